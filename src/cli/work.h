/*
 * work.h - the worker behind `pawl work --exec`: slots that claim, run a program, and finish.
 *
 * Each slot is a thread with a client of its own and one call at a time. Room-private.
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
    const char *types, *queues;          /* JSON arrays; queues NULL: all. Borrowed */
    int64_t lease_us, later_us, idle_us; /* idle_us 0: never leaves by itself */
    atomic_bool stop;                    /* claim no more */
    atomic_bool hard;                    /* end what runs, hand it back */
    atomic_int_least64_t busy_us;        /* monotonic: when something was last run */
    atomic_int running;

    pthread_mutex_t lock; /* what follows, and stderr */
    pthread_cond_t changed;
    int n_alive;         /* slots whose thread has not ended */
    struct pawl_err err; /* the first thing that made a slot leave */
    int64_t n_done;
};

struct slot {
    struct worker *w;
    struct client *client; /* owned */
    bool claiming;         /* waits for work right now; under worker.lock */
    pthread_t thread;
    bool runs;
};

/* The thread of a slot. */
void *slot_main(void *slot);

/* A claimed call, for the time it is held. */
struct held {
    const char *lease, *id, *type, *method, *key, *trace_id; /* key, trace_id: NULL for none */
    int64_t attempt, timeout_us;
    struct bytes input;
    int64_t deadline_us, until_us; /* monotonic: of the program, of the lease */
};

/* For how long its program may run. Less than its timeout by a tenth, half a second at most: the
 * database counts from the claim, we from its answer, and what we say of the end must come in time.
 */
int64_t work_run_us(int64_t timeout_us);
/* The environment of the program: ours without secrets, and what the call is. In the arena; NULL
 * without memory. `now_us` is the wall clock. */
char **work_environment(struct arena *a, const struct held *h, char *const *ours, int64_t now_us);
/* One result of a finish, as JSON: what this end means. */
struct ending_of {
    const struct child *child;
    bool cancelled, released, timed_out;
    int64_t later_us;
};
void work_result(struct buf *b, const struct held *h, const struct ending_of *e);

#endif
