/*
 * run.h - calls of one key that were claimed together: what one worker takes, and runs in order.
 *
 * A call without a key is a run of one; most runs are, and those need nothing of this but to be
 * queued. In a longer one the next call begins as soon as the handler before it has returned a
 * result, on the state that one left in memory; nobody waits for a commit. The results stream to
 * the store in order, one finish at a time: while it is under way further results gather, and they
 * go together in the next. So a later result is never stored without the earlier, also when a
 * finish has to be repeated.
 *
 *     v[0 .. settled) stored   [settled .. sent) on their way   [sent .. done) gathered
 *     [done .. begun) at most one: its handler runs             [begun .. n) have not begun
 *
 * A run is closed when a call of it did not end with a result: the store hands back whatever is
 * behind it in the same commit, so those tries are dropped here. It is void when the store says
 * that a call did not complete after all: then what has run behind it has run for nothing.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_RUN_H
#define EXEC_RUN_H

#include <pthread.h>

#include "exec/try.h"

/* How the results of a longer run go to the store. */
struct flow {
    struct flow *next; /* of the same lease */
    pthread_mutex_t lock;
    pthread_cond_t moved;      /* a worker that is about to run SQL waits for `settled` */
    struct finish_item *items; /* one for each try, in the lease's arena: how it ended */
    size_t begun, done, sent, settled;
    bool flying; /* a finish of it is under way */
    bool taken;  /* that is the transaction of the try that runs */
    bool singly; /* a finish of several was refused: one at a time, to see which it is */
    bool closed, voided;
    int64_t ended_us; /* store thread: when the call before ended */
};

struct run {
    struct pawl_call *v; /* its tries, standing together in the lease's arena */
    size_t n;
    struct flow *flow; /* with n > 1; else NULL */
    struct run *next;  /* queued; under pool.lock */

    /* The worker's own. */
    int64_t began_us;           /* monotonic: its first handler */
    struct payload state;       /* of the object, as the last call left it */
    struct pawl_call *state_of; /* whose arena holds it, with a reference; NULL: the lease's */
};

/* Worker: begin with its first call. True when it is a longer one: its memory stays until the
 * worker leaves it. One of a single call may be gone with that. */
bool run_enter(struct run *r);
void run_leave(struct run *r);
/* Worker: the call to run after one that ended (`on`: with a result); NULL: that was all. */
struct pawl_call *run_next(struct run *r, bool on);

/* Whoever ended this try: this is how. Sees it to the store, in its turn. */
void run_end(struct pawl_call *t, struct finish_item *v);
/* Nobody has begun it: hand it back uncounted, all of it. */
void run_release(struct run *r);
/* Worker, before a result is handed over: the next call sees what this one set. */
void run_keep_state(struct pawl_call *t);

/* Worker, before its first SQL: wait until everything before it in the run is stored; its own end
 * goes by its transaction then, which is the only finish under way. */
MUST_USE enum pawl_status run_take(struct pawl_call *t, struct pawl_err *err);
/* The transaction never began: its end goes the ordinary way. */
void run_untake(struct pawl_call *t);

/* Store thread: a finish of a longer run is settled. */
void run_settled(struct pawl_call *t, const struct op *op);
/* Store thread: a finish was refused. True when it goes on its way again as something smaller. */
bool run_refused(struct pawl_call *t);
/* A finish will never be settled: the database is closed. */
void run_abandon(struct job *finish);

/* Send the finish of one try on its way; its run waits for it. */
void run_post_one(struct pawl_call *t, struct finish_item *v);

#endif
