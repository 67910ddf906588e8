/*
 * work.h - the worker behind `pawl work --exec`: slots that claim a call, run a program, and send
 * its result.
 *
 * Each slot is a thread with its own client and one call at a time. Private to src/cli.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include <pthread.h>
#include <stdatomic.h>

#include "cli/child.h"
#include "cli/client.h"

struct worker {
    struct cli *cli;
    const char *command, *name;          /* borrowed */
    const char *types, *queues, *has;    /* JSON arrays; queues NULL: all; has NULL: nothing.
                                            Borrowed */
    int64_t lease_us, later_us, idle_us; /* idle_us 0: do not exit when idle */
    atomic_bool stop;                    /* claim no more */
    atomic_bool hard;                    /* terminate running programs, hand their calls back */
    atomic_int_least64_t busy_us;        /* monotonic: when a program last ended */
    atomic_int running;                  /* programs */

    pthread_mutex_t lock; /* protects what follows, and stderr */
    pthread_cond_t changed;
    int n_alive;         /* slots whose thread has not ended */
    struct pawl_err err; /* the first error that ended a slot */
    int64_t n_done;
};

struct slot {
    struct worker *w;
    struct client *client; /* owned */
    bool claiming;         /* is waiting for the answer to a claim; under worker.lock */
    pthread_t thread;
    bool runs;
};

/* The main function of a slot's thread: claims and runs calls until worker.stop. */
void *slot_main(void *slot);

/* A claimed call. */
struct held {
    const char *lease, *id, *type, *method, *key, *trace_id; /* key, trace_id: NULL for none */
    int64_t attempt, timeout_us;
    struct bytes input;
    int64_t deadline_us, until_us; /* monotonic: end of the program's time, end of the lease */
};

/* How long the program may run: a tenth less than the call's timeout, at most half a second less.
 * The database measures the timeout from the claim and we measure from its answer, and the result
 * must arrive before the timeout. */
int64_t work_run_us(int64_t timeout_us);
/* The environment for the program: `ours` without secrets, plus PAWL_CALL_ID and the other
 * variables that describe the call. In the arena; NULL without memory. now_us: wall clock. */
char **work_environment(struct arena *a, const struct held *h, char *const *ours, int64_t now_us);
/* How an attempt ended. */
struct ending_of {
    const struct child *child;
    bool cancelled, released, timed_out;
    int64_t later_us;
};
/* Add the JSON object for this call in the `results` of a finish request. */
void work_result(struct buf *b, const struct held *h, const struct ending_of *e);

#endif
