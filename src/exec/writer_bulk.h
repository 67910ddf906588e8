/*
 * writer_bulk.h - bulk writers: threads that work off the long backlog of one queue, each with its
 * own connection. Room-private.
 *
 * When claims come back full with hundreds of quick calls of one queue, none of them with a key,
 * the groups of the store thread become long: all other writes would wait for each of them, and the
 * database would serve one connection at a time. So bulk writers claim from that queue and store
 * the results of what they claimed, in groups that commit side by side; meanwhile the store thread
 * claims from all other queues. The store thread forms the groups of the bulk writers and settles
 * them; a bulk writer only commits. Only on engines with several writers.
 *
 *     idle -> loading            store thread: is there something to commit?
 *     loading -> loaded, idle    store thread: a group was formed; there is nothing
 *     loaded -> back             bulk writer: it is committed
 *     back -> idle               store thread: it is settled
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_WRITER_BULK_H
#define EXEC_WRITER_BULK_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/group.h"
#include "exec/attempt.h"

#define BULK_WRITERS 2
/* A claim of the store thread that brought this many calls starts the bulk writers. */
#define BULK_MIN 256

enum bulk_stage { BULK_IDLE, BULK_LOADING, BULK_LOADED, BULK_BACK };

struct writer_bulk {
    struct exec *e; /* borrowed */
    pthread_t thread;
    bool runs; /* its thread was made */

    /* Under the lock of `struct bulk_writers`. */
    enum bulk_stage stage;
    struct write_job *head, **end; /* finishes that wait for its next group */
    size_t n;
    size_t out; /* calls of its last claim whose finishes have not come, as far as is known; */
    int64_t claimed_us; /* when that claim was made; monotonic */
    int64_t since_us;   /* when the first finish that waits came; monotonic */
    bool flying;        /* finishes wait or are being committed */

    /* The store thread's; the bulk writer's while the stage is BULK_LOADED. */
    struct group group;
    int64_t took_us;
    enum pawl_status status;

    /* The store thread's. */
    struct lease_run *spare; /* a claim that came back empty, or got no answer */
    int64_t again_us;        /* when to repeat a claim that got no answer; monotonic */
    char queue_name[NAME_LEN_MAX];
    struct bytes queue; /* the queue it claims from; in queue_name */
};

struct bulk_writers {
    pthread_mutex_t lock;
    pthread_cond_t loaded; /* bulk writers wait for a group, or for the end */
    pthread_cond_t idle;   /* bulk_close() waits until one has nothing left */
    struct writer_bulk v[BULK_WRITERS];
    bool open, closed;
    atomic_int_least64_t others_us; /* when the store thread last got another write; monotonic */
    bool off; /* store thread: no thread could be made, so there are no bulk writers */
};

/* Get ready; threads and connections are made when they are first needed. Does nothing on an engine
 * with one writer. */
void bulk_open(struct exec *e);
/* Store what they have, then end their threads. The store thread still runs. */
void bulk_close(struct exec *e);
/* Free what is left; after bulk_close(). */
void bulk_release(struct exec *e);

/* Any thread: queue the finish of an attempt for the bulk writer that claimed it. False: the caller
 * posts it to the store thread. */
bool bulk_post(struct pawl_call *t);
/* Any thread: an attempt ended without a finish; of any claim. */
void bulk_let_go(struct pawl_call *t);
/* Store thread: a claim of this bulk writer brought n calls. */
void bulk_out(struct writer_bulk *h, size_t n);
/* Store thread, once a round: settle the groups that are back, load those who have enough. */
void bulk_turn(struct exec *e);
/* Store thread: when to call bulk_turn() again without a nudge (monotonic). */
int64_t bulk_next(struct exec *e);

#endif
