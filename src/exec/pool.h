/*
 * pool.h - the workers, the calls waiting for them, and how much to claim.
 *
 * The store thread asks pool_want() when it forms a group and adds a claim for that many; what
 * comes back is queued here, in runs (run.h). A node claims what it can run: as many calls as it
 * has slots that no slow call holds, and ahead of that only calls of quick types (duration.h), as
 * many as are likely to begin within PREFETCH_US. What has not begun after STALE_US all the same is
 * handed back, for other nodes, and for calls of a higher priority.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_POOL_H
#define EXEC_POOL_H

#include <pthread.h>

#include "base/limits.h"
#include "exec/duration.h"
#include "exec/try.h"

/* What was claimed was expected to begin within PREFETCH_US (pool.c). After this long it is handed
 * back. */
#define STALE_US (100 * MS_US)

struct hauler;
struct run;

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work;  /* workers: something is queued, or leave */
    pthread_cond_t quiet; /* exec_stop: a worker has left, a run's results are stored */

    struct run *head, *tail;   /* queued, in the order of run_before() */
    struct pawl_call *running; /* list; also hung ones whose try is over */
    size_t n_queued;           /* calls in the queued runs */
    size_t n_hauled;           /* those of them that haulers claimed */
    size_t n_running;          /* a run counts as one: it is one slot's work */
    int n_slow;             /* runs, queued or running, that hold a slot for more than a moment */
    atomic_int ending;      /* running tries whose finish is posted: their slots are free */
    atomic_int ending_slow; /* those of them that are in n_slow */
    int slots, threads, idle;
    int flights; /* longer runs, and late finishes, whose results are on their way */
    int blocked; /* workers that wait for a call they asked for; others take their place */
    int hung;    /* workers whose handler ran out of time and has not returned */
    bool started, stopping;
    bool replaced; /* another process has taken this node's name: claim no more */
    bool drained;  /* somebody wants this node to begin nothing more, for now */
    bool cut;      /* our beats are not stored: others may take what we hold */

    bool hungry;           /* something may be due */
    bool suspect;          /* one suspect at a time */
    int64_t next_claim_us; /* monotonic: when something will be due */
    struct durations durations;

    struct bytes *queues; /* owned, with their bytes */
    size_t n_queues;
    struct lease_run *spare; /* store thread only: a claim that came back empty */
    struct bytes crowd;      /* store thread only: the queue that filled the last claim; in: */
    char crowd_name[NAME_LEN_MAX];
    bool hauled;           /* store thread only: haulers run it off, nobody else claims from it */
    int64_t haul_until_us; /* for so long at most; monotonic */
};

enum pawl_status pool_init(struct pool *p, struct pawl_err *err);
void pool_release(struct pool *p);

/* exec_start() has been called. */
bool pool_started(struct pool *p);

/* Store thread: how many calls to claim with this group; 0: none. `fresh`: the group brings calls
 * that may run here. */
int pool_want(struct exec *e, bool fresh);
/* Store thread: until when there is nothing to claim (monotonic). */
int64_t pool_next_claim(struct exec *e);
/* Store thread: a claim to put into a group, of this hauler's or its own; NULL without memory. */
struct job *pool_claim_job(struct exec *e, int max, struct hauler *h);
/* Store thread: how many calls a hauler is to claim; 0: none. And is it time for a claim that sees
 * everything? */
int pool_haul_want(struct exec *e);
void pool_haul_check(struct exec *e);

/* Something may be due; from database time `at_us` on (0: now). */
void pool_work_came(struct exec *e, int64_t at_us);
/* Keeper: end tries whose time is up; returns the next deadline (monotonic), INT64_MAX for none. */
int64_t pool_deadlines(struct exec *e, int64_t now_us);
/* A try is over and its handler has not returned: somebody else takes its slot. */
void pool_hung(struct pawl_call *t);
/* Another process has our name: nothing we hold is ours any more. */
void pool_replaced(struct exec *e);
/* Our beats are not stored for too long: begin nothing more, hand back what has not begun, tell
 * what runs to stop. Off: go on. */
void pool_cut_off(struct exec *e, bool cut);
/* Take what still runs from its handlers and hand it back. */
void pool_take_all(struct exec *e);
/* Worker, before it posts the finish of its try: the slot is as good as free. */
void pool_ending(struct pawl_call *t);
/* Keeper: hand back what was claimed and has not begun in STALE_US; returns when to look again
 * (monotonic), INT64_MAX: nothing is queued. */
int64_t pool_stale(struct exec *e, int64_t now_us);
/* Store thread: the runs of a claim in the order they are to begin. */
struct run *pool_arrange(struct run *first);
/* Under the lock: add linked runs that pool_arrange() put in order, n calls in all. */
void pool_enqueue(struct pool *p, struct run *first, size_t n);
/* Under the lock: take the first run, which begins now; there is one. */
struct run *pool_dequeue(struct pool *p);
/* Under the lock: take a run out of the queue; `before` is the one in front of it. */
void pool_unqueue(struct pool *p, struct run *before, struct run *r);
/* Under the lock: does this try hold a slot as a slow one? `n_slow` follows. */
void pool_count_slow(struct pool *p, struct pawl_call *t, bool counts);

/* Store thread: a finish is settled. */
void pool_finish_done(struct job *j);
/* Store thread: this finish takes longer than its group; exec_stop() waits for it. */
void pool_finish_late(struct job *j);
/* The finish of a try that is no part of a flow is stored, or never will be. */
void pool_finish_over(struct pawl_call *t);
/* Store thread: a try's end is stored; what follows for those who wait, and for the next claim. */
void pool_stored(struct pawl_call *t, const struct finish_item *f);

/* A longer run or a late finish begins or ends to have results on their way to the store. */
void pool_flights(struct exec *e, int more);

/* One more worker, detached: exec_stop() waits for `threads`, and the handle for its refs. */
bool pool_add_worker(struct exec *e);
/* The running tries for which `pick` holds, each with a reference, at most max. */
size_t pool_pick(struct pool *p, bool (*pick)(struct pawl_call *t, int64_t x), int64_t x,
                 struct pawl_call **out, size_t max);
bool pool_any(struct pawl_call *t, int64_t x);

#endif
