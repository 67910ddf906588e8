/*
 * try.h - one try of one call: what a handler holds as `struct pawl_call`.
 *
 * A try is ended once. Its handler's answer, its deadline, a stop and a cancel race for that by
 * moving `stage` from RUNNING (or QUEUED) to OVER; whoever moves it provides the finish, everybody
 * else's is void. Memory: the tries of a lease live in the lease's arena; a try is over with when
 * both its finish is settled and its handler has returned, a lease when all its tries are.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_TRY_H
#define EXEC_TRY_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/gate.h"
#include "exec/job.h"
#include "store/op.h"

struct exec;
struct flow;
struct hauler;
struct run;
struct session;

/* A lease this process holds. */
struct lease_run {
    struct exec *e; /* borrowed */
    struct token token;
    struct arena arena;    /* owned: the claimed calls and their tries */
    struct job job;        /* the claim itself */
    atomic_size_t left;    /* tries that are not over with, and workers inside a longer run */
    struct flow *flows;    /* of its longer runs */
    struct hauler *hauler; /* who claimed it (haul.h); NULL: the store thread */
    int64_t came_us;       /* when its calls were queued; monotonic */
    struct run *begun;     /* the last of its runs that a worker took; under pool.lock */
    bool suspect;          /* its one call was lost before */
    bool again;            /* the claim failed: perhaps only its answer was lost, so repeat it */
};

enum try_stage { TRY_QUEUED, TRY_RUNNING, TRY_OVER };
/* Why a handler should come to an end; the first reason stays. */
enum try_stop { STOP_NONE, STOP_WISH, STOP_TIME, STOP_PROCESS };

struct pawl_call {
    struct exec *e;           /* borrowed */
    struct lease_run *lease;  /* held by its `left` */
    struct run *run;          /* borrowed from the lease's arena */
    const struct call *call;  /* borrowed from the lease's arena */
    int handler;              /* its index in the registry; below 0: there is none */
    atomic_bool slow;         /* counted in pool.n_slow; written under pool.lock */
    bool ending, ending_slow; /* counted in the pool's numbers of that name; the worker's own */
    bool ran;                 /* its handler was called; the worker's own */
    struct pawl_view view;    /* filled at its first use */
    bool viewed;

    atomic_int stage, stop, refs;
    struct gate stopped; /* opened with `stop` */
    struct gate *also;   /* opened with it, while the handler waits for a call; under pool.lock */
    int64_t started_us, began_us, deadline_us; /* database clock; monotonic; monotonic */
    bool in_run_list, hung, blocked;           /* under pool.lock */
    struct pawl_call *next, *prev;             /* run list, under pool.lock */

    struct arena arena;       /* the handler's own */
    struct finish_item item;  /* the handler's answer */
    bool answered;            /* item.result or item.error was set */
    struct payload state;     /* of its object when the handler began; borrowed for the try */
    struct bytes state_fault; /* why a state could not be set: a reply is an error then; absent */
    bool state_for_good;      /* and the next try would fare no better */
    struct call_spec *send;   /* in arena */
    size_t n_send, cap_send;
    int n_asked;
    _Atomic(struct session *) session; /* NULL: no SQL yet */

    struct arena end_arena;    /* the finish's answer */
    struct finish_item theirs; /* the finish of somebody else who ended it */
    char their_error[256];
    struct finish finish;
    struct job job;     /* the finish on its way */
    bool replaced_once; /* a refused finish was turned into an error */
    bool late;          /* the finish was refused and goes out again: it counts in pool.flights */
};

/* Fill a lease's tries from its claim's answer, in runs, linked. NO_MEMORY: none were made. */
MUST_USE enum pawl_status try_make_all(struct lease_run *l, struct run **out);
/* On a worker: run the handler and see its answer to the store. True when it ended with a result
 * that stands. */
bool try_run(struct pawl_call *t);
/* End it in the handler's stead, if nobody has: true when it was ours to end. */
bool try_take_over(struct pawl_call *t, enum try_stage from, enum ending how, const char *error);
/* Ask the handler to come to an end; one that has not begun will not. */
void try_stop(struct pawl_call *t, enum try_stop why);
/* The same for who holds pool.lock. */
void try_tell(struct pawl_call *t, enum try_stop why);
/* On the worker: this gate opens too when the handler is to stop; NULL: no more. */
void try_also(struct pawl_call *t, struct gate *g);
/* On the worker: the handler is about to wait for another call, and is back. Another worker takes
 * its slot meanwhile. */
void try_block(struct pawl_call *t, bool blocked);
void try_unref(struct pawl_call *t);

void lease_run_free(struct lease_run *l);
/* As it was before its claim, the memory kept. */
void lease_run_reset(struct lease_run *l);
void lease_run_unref(struct lease_run *l);
/* The try whose finish this job is. */
struct pawl_call *try_of(struct job *j);

/* ---- session.c: SQL in the call's own transaction -------------------------------------------- */

MUST_USE enum pawl_status session_sql(struct pawl_call *t, const struct sql_query *q,
                                      struct pawl_rows *out, struct pawl_err *err);
/* Worker: a reply after SQL that failed is an error. */
void session_check(struct pawl_call *t);
/* The try is over and was ours to end: let the open transaction apply it, `item` with what the SQL
 * did, or `theirs` after undoing it. False when there is none: post a plain finish. */
bool session_finish(struct pawl_call *t);
bool session_abort(struct pawl_call *t);
/* Is a transaction open? Worker only. */
bool session_open(struct pawl_call *t);
void session_free(struct pawl_call *t);
/* The try ended with an error that says this; the text is cut. */
void try_error(struct pawl_call *t, enum ending how, struct bytes text);

#endif
