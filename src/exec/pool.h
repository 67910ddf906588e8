/*
 * pool.h - the workers, the calls that wait for them, and how much to claim. Room-private.
 *
 * The store thread asks pool_want() when it forms a group and adds a claim for that many calls;
 * what comes back is queued here, in runs (run.h). A node claims what it can run: as many calls as
 * it has slots that no slow call holds, and ahead of that only calls of quick types (duration.h),
 * as many as are likely to begin within PREFETCH_US. What has not begun after STALE_US is handed
 * back, so that other nodes, or calls of a higher priority, get their turn.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_POOL_H
#define EXEC_POOL_H

#include <pthread.h>

#include "base/limits.h"
#include "exec/duration.h"
#include "exec/has.h"
#include "exec/attempt.h"

/* Claimed calls that have not begun after this long are handed back; they were expected to begin
 * within PREFETCH_US (pool.c). */
#define STALE_US (100 * MS_US)

struct writer_bulk;
struct run;

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work;  /* workers wait until something is queued, or they have to leave */
    pthread_cond_t quiet; /* exec_stop() waits until a worker has left, or results are stored */

    struct run *head, *tail;   /* queued, in the order of run_before() (run_queue.c) */
    struct pawl_call *running; /* list; also hung ones, whose attempt is over */
    size_t n_queued;           /* calls in the queued runs */
    size_t n_bulk;             /* those of them that bulk writers claimed */
    size_t n_running;          /* a run counts as one, because it occupies one slot */
    int n_slow;                /* runs of slow types, queued or running */
    atomic_int ending;      /* running attempts whose finish is posted: their slots count as free */
    atomic_int ending_slow; /* those of them that count in n_slow */
    int slots, threads, idle;
    int finishes_in_flight; /* results on their way that exec_stop() waits for: longer runs, late
                    finishes, bulk writers */
    int blocked; /* workers whose handler waits for another call; other threads take their slots */
    int hung;    /* workers whose handler did not return from its timeout */
    bool started, stopping;
    bool replaced; /* another process has taken this node's name: claim no more */
    bool drained;  /* the node is drained: it begins nothing new */
    bool cut;      /* no heartbeat was stored for too long: other nodes may take what we hold */

    bool work_may_be_due;  /* something may be due that no claim has looked for */
    bool retry_alone;      /* a call that was lost before runs here: claim no other such call (retry
                            * alone)
                            */
    int64_t next_claim_us; /* monotonic: when the next call is due */
    struct durations durations;

    struct bytes *queues; /* owned, with their bytes */
    size_t n_queues;
    struct has has;          /* what the workers have; set before `started` */
    struct lease_run *spare; /* store thread only: a claim that came back empty, kept for the next
                              */
    struct bytes busiest_queue; /* store thread only: the queue that filled the last claim; in: */
    char busiest_name[NAME_LEN_MAX];
    bool bulk; /* store thread only: bulk writers claim from `busiest_queue`, and only they */
    int64_t bulk_until_us; /* until then at most; monotonic */
};

/* No workers yet. Cannot fail. */
enum pawl_status pool_init(struct pool *p, struct pawl_err *err);
/* Nothing is queued or runs. */
void pool_release(struct pool *p);

/* Has exec_start() succeeded? */
bool pool_started(struct pool *p);

/* Store thread: how many calls to claim with this group; 0: none. `fresh`: the group brings calls
 * that may run here. */
int pool_want(struct exec *e, bool fresh);
/* Store thread: when to form a group for a claim alone (monotonic); 0: now, INT64_MAX: not at all.
 */
int64_t pool_next_claim(struct exec *e);
/* Store thread: a claim for a group of this bulk writer, or of the store thread (NULL). NULL
 * without memory. */
struct write_job *pool_claim_job(struct exec *e, int max, struct writer_bulk *h);
/* Store thread: how many calls a bulk writer is to claim; 0: none. */
int pool_bulk_want(struct exec *e);
/* Store thread: end bulk writing when its time is over, so that a claim sees every queue again. */
void pool_bulk_check(struct exec *e);

/* Something may be due from this database time on (0: now). Any thread. */
void pool_work_came(struct exec *e, int64_t at_us);
/* Housekeeping thread: end attempts whose time is up. Returns the next deadline (monotonic),
 * INT64_MAX for none. */
int64_t pool_deadlines(struct exec *e, int64_t now_us);
/* An attempt is over and its handler has not returned: another thread takes its slot. Any thread.
 */
void pool_hung(struct pawl_call *t);
/* Another process has this node's name: claim no more, tell handlers to stop. What is held here is
 * lost. */
void pool_replaced(struct exec *e);
/* No heartbeat was stored for too long: begin nothing more, hand back what has not begun, tell
 * handlers to stop. False: work again. */
void pool_cut_off(struct exec *e, bool cut);
/* End the attempts that still run in place of their handlers, and hand their calls back. */
void pool_take_all(struct exec *e);
/* Worker, before it posts the finish of its attempt: the slot counts as free for the next claim. */
void pool_ending(struct pawl_call *t);
/* Housekeeping thread: hand back what was claimed and has not begun in STALE_US. Returns when to
 * look again (monotonic), INT64_MAX: nothing is queued. */
int64_t pool_stale(struct exec *e, int64_t now_us);
/* Store thread: the runs of a claim, sorted in the order they are to begin. */
struct run *pool_arrange(struct run *first);
/* Under the lock: queue linked runs that pool_arrange() sorted, n calls in all. */
void pool_enqueue(struct pool *p, struct run *first, size_t n);
/* Under the lock: take the first run, which begins now. There must be one. */
struct run *pool_dequeue(struct pool *p);
/* Under the lock: remove a run from the queue; `before` is the one in front of it, NULL: none. */
void pool_unqueue(struct pool *p, struct run *before, struct run *r);
/* Under the lock: count this attempt in n_slow, or no longer. */
void pool_count_slow(struct pool *p, struct pawl_call *t, bool counts);

/* Store thread: the `done` of a finish. */
void pool_finish_done(struct write_job *j);
/* Store thread: this finish takes longer than its group, so exec_stop() has to wait for it. */
void pool_finish_late(struct write_job *j);
/* The attempt is over: if its call was lost before, another such call may be claimed now. Any
 * thread.
 */
void pool_alone_over(struct pawl_call *t);
/* The finish of an attempt without a flow is stored, or never will be. */
void pool_finish_over(struct pawl_call *t);
/* Store thread: the end of an attempt is stored: tell the waiters of its call, and note when it is
 * due again. */
void pool_stored(struct pawl_call *t, const struct finish_item *f);

/* Results begin (1) or cease (-1) to be on their way to the store, for exec_stop(). Any thread. */
void pool_finishes_in_flight(struct exec *e, int more);

/* Start one more worker thread, detached: exec_stop() waits for `threads`, the handle for its
 * references. False: no thread. */
bool pool_add_worker(struct exec *e);
/* Collect the running attempts for which `pick` holds, at most max, each with a reference. */
size_t pool_pick(struct pool *p, bool (*pick)(struct pawl_call *t, int64_t x), int64_t x,
                 struct pawl_call **out, size_t max);
/* A `pick` that holds for all. */
bool pool_any(struct pawl_call *t, int64_t x);

#endif
