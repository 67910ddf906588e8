/*
 * run.h - a run: calls of one key that were claimed together, for one worker, in order.
 * Room-private.
 *
 * A call without a key is a run of one, and most runs are: it is queued as a run, and uses nothing
 * else here. In a longer run the next call begins as soon as the handler before it has returned a
 * result, on the state that it left in memory, without waiting for a commit. The results go to the
 * store in order, one finish at a time: while one is under way further results gather, and the next
 * finish carries all of them. So a later result is never stored without the earlier one, also when
 * a finish has to be repeated.
 *
 *     v[0 .. settled) stored   [settled .. sent) on their way   [sent .. done) gathered
 *     [done .. begun) at most one: its handler runs             [begun .. n) have not begun
 *
 * When a handler takes long, the calls behind it are handed back: n falls to `begun`, and their
 * attempts end by a finish of their own, which nothing waits for.
 *
 * A run is closed when one of its calls did not end with a result: the store hands back the calls
 * behind it in the same commit, so their attempts are dropped here. It is void when the store says
 * that a call did not complete after all: then the handlers behind it have run for nothing.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_RUN_H
#define EXEC_RUN_H

#include <pthread.h>

#include "exec/attempt.h"

/* How the results of a longer run get to the store. */
struct flow {
    struct flow *next; /* of the same lease */
    pthread_mutex_t lock;
    pthread_cond_t moved;      /* a worker whose handler is about to run SQL waits for `settled` */
    struct finish_item *items; /* how each attempt ended; in the lease's arena */
    size_t n; /* calls of the run that were not handed back; at first all of them */
    size_t begun, done, sent, settled;
    bool flying; /* a finish of this run is under way */
    bool taken;  /* that finish is the SQL transaction of the attempt that runs */
    bool singly; /* a finish of several was refused: send one at a time, to find out which one */
    bool closed, voided;
    int64_t ended_us; /* store thread: when the last stored call ended */
};

struct run {
    struct pawl_call *v; /* its attempts, an array in the lease's arena */
    size_t n;
    struct flow *flow; /* with n > 1; else NULL */
    struct run *next;  /* queued; under pool.lock */
    bool cut;          /* what is behind the call that runs was handed back; under pool.lock */

    /* The worker's own. */
    int64_t began_us;           /* monotonic: its first handler */
    struct payload state;       /* the object's state as the last call left it */
    struct pawl_call *state_of; /* the attempt whose arena holds it, with a reference; NULL: the
                                   lease's */
};

/* Worker: begin with its first call. True for a longer run: its memory stays until run_leave(). A
 * run of one may be freed as soon as its call has ended. */
bool run_enter(struct run *r);
/* Worker: after the last call of a longer run. */
void run_leave(struct run *r);
/* Worker: the call to run after one that ended (`on`: with a result); NULL: there is no more. */
struct pawl_call *run_next(struct run *r, bool on);

/* The attempt ended like this: store it, in the order of its run. Called once, by the thread that
 * ended it: its worker, the housekeeping thread, or a thread that stops the workers. */
void run_end(struct pawl_call *t, struct finish_item *v);
/* Hand back a run that no worker has begun, uncounted. */
void run_release(struct run *r);
/* Hand back, uncounted, the calls of a longer run that have not begun, while one of it runs. The
 * caller has a reference to that one. Once for a run. */
void run_cut(struct run *r);
/* Worker, before a result is handed over: the next call of the run sees the state that this one
 * set. */
void run_keep_state(struct pawl_call *t);

/* Worker, before its first SQL: wait until everything before it in the run is stored. From then on
 * the attempt's end is stored by its transaction, the only finish of the run under way. STATE: the
 * attempt is over; BUSY: its deadline came first. */
MUST_USE enum pawl_status run_take(struct pawl_call *t, struct pawl_err *err);
/* The transaction never began: the attempt's end is stored by a plain finish after all. */
void run_untake(struct pawl_call *t);

/* Worker, before the first step: wait until everything before it in the run is stored. STATE: the
 * attempt is over; BUSY: its deadline came first. */
MUST_USE enum pawl_status run_wait_before(struct pawl_call *t, struct pawl_err *err);
/* Worker: the attempt ended without a finish, because its call has left the lease. */
void run_let_go(struct pawl_call *t);

/* Store thread: a finish of a longer run is settled; t is the first attempt in it. */
void run_settled(struct pawl_call *t, const struct op *op);
/* Store thread: the database refused this finish itself. True: it carried several results, and goes
 * out again with one at a time. False: the caller decides. */
bool run_refused(struct pawl_call *t);
/* This finish will never be stored, because the handle is closed: drop what depends on it. */
void run_abandon(struct write_job *finish);

/* Post the finish of one attempt, past its flow; the run waits for it. */
void run_post_one(struct pawl_call *t, struct finish_item *v);

#endif
