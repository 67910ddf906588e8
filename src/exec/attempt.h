/*
 * attempt.h - one attempt of one call: what a handler holds as `struct pawl_call`. For exec and
 * lib.
 *
 * An attempt is ended once. Its handler's answer, its deadline, a stop and a cancel race for that
 * by moving `stage` from RUNNING (or QUEUED) to OVER with compare-and-swap: the winner provides the
 * finish, the others' answers are void. Memory: the attempts of a lease live in the lease's arena.
 * An attempt is done with when its finish is settled and its handler has returned, a lease when all
 * its attempts are.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_ATTEMPT_H
#define EXEC_ATTEMPT_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/one_shot.h"
#include "exec/write_job.h"
#include "store/op.h"

struct exec;
struct flow;
struct pass;
struct writer_bulk;
struct run;
struct session;

/* A lease that this process holds: the calls of one claim. */
struct lease_run {
    struct exec *e; /* borrowed */
    struct token token;
    struct arena arena;       /* owned: the claimed calls and their attempts */
    struct write_job job;     /* the claim itself */
    atomic_size_t left;       /* attempts that are not done with, and workers inside a longer run */
    struct flow *flows;       /* of its longer runs */
    struct writer_bulk *bulk; /* the bulk writer that claimed it (writer_bulk.h); NULL: the store
                                 thread */
    int64_t came_us;          /* when its calls were queued; monotonic */
    struct run *begun;        /* the last of its runs that a worker took; under pool.lock */
    bool retry_alone;         /* its one call was lost before, and is retried alone */
    bool again; /* the claim failed, perhaps only its answer was lost: repeat it with the same token
                 */
};

enum attempt_stage { ATTEMPT_QUEUED, ATTEMPT_RUNNING, ATTEMPT_OVER };
/* Why a handler is told to stop; the first reason stays. */
enum attempt_stop { STOP_NONE, STOP_CANCEL_REQUEST, STOP_TIME, STOP_PROCESS };

struct pawl_call {
    struct exec *e;           /* borrowed */
    struct lease_run *lease;  /* kept alive by its `left` */
    struct run *run;          /* borrowed from the lease's arena */
    const struct call *call;  /* borrowed from the lease's arena */
    int handler;              /* its index in the registry; below 0: no handler serves it */
    atomic_bool slow;         /* counted in pool.n_slow; written under pool.lock */
    bool ending, ending_slow; /* counted in the pool's members of these names; the worker's own */
    bool ran;                 /* the handler was called; the worker's own */
    struct pawl_view view;    /* filled at its first use */
    bool viewed;

    atomic_int stage, stop, refs;
    struct one_shot stopped; /* set with `stop` */
    struct one_shot *also;   /* set with it, while the handler waits for another call; under
                              * pool.lock
                              */
    int64_t started_us, began_us, deadline_us; /* database clock; monotonic; monotonic */
    int64_t run_until_us;            /* of a pass: its run is out of its time then (monotonic); 0:
                                        never. Under pool.lock */
    bool in_run_list, hung, blocked; /* under pool.lock */
    struct pawl_call *next, *prev;   /* run list, under pool.lock */

    _Atomic(struct pass *) pass; /* owned: it takes steps (pass.h); NULL: none yet */
    atomic_bool undoing;         /* the pass undoes: a cancel changes nothing */
    struct payload input; /* the call's; after a restart of a run the one it was restarted with */

    struct arena arena;      /* memory for the handler */
    struct finish_item item; /* the handler's answer */
    bool answered;           /* the handler set item.result or item.error */
    struct payload state; /* the object's state when the handler began; borrowed for the attempt */
    struct bytes state_fault; /* why a state could not be set, so that a reply becomes an error;
                                 absent: it could */
    bool state_for_good;      /* and the next attempt would fail the same way: do not retry */
    struct call_spec *send;   /* in arena */
    size_t n_send, cap_send;
    int n_asked;
    _Atomic(struct session *) session; /* NULL: no SQL yet */

    struct arena end_arena;    /* memory for the finish's answer */
    struct finish_item theirs; /* the finish of another thread that ended it */
    char their_error[256];
    struct finish finish;
    struct write_job job; /* its finish on the way to the store */
    bool replaced_once;   /* a refused finish was turned into an error, which is done once */
    bool late; /* the finish was refused and goes out again: it counts in pool.finishes_in_flight */
};

/* Store thread: make a lease's attempts from its claim's answer, as linked runs in *out. NO_MEMORY:
 * none were made. */
MUST_USE enum pawl_status attempt_make_all(struct lease_run *l, struct run **out);
/* Worker: run the handler and post its answer to the store. True: it ended with a result that
 * stands. */
bool attempt_run(struct pawl_call *t);
/* End the attempt in place of its handler, if it is still in stage `from`. True: this call ended
 * it. Any thread. */
bool attempt_take_over(struct pawl_call *t, enum attempt_stage from, enum ending how,
                       const char *error);
/* Tell the handler to stop; an attempt that has not begun will not begin. Any thread that does not
 * hold pool.lock. */
void attempt_stop(struct pawl_call *t, enum attempt_stop why);
/* The same under pool.lock. */
void attempt_tell(struct pawl_call *t, enum attempt_stop why);
/* Worker: open this event too when the handler is told to stop, at once if it was; NULL: no more.
 */
void attempt_also(struct pawl_call *t, struct one_shot *g);
/* Worker: the handler is about to wait for another call (true), or is back (false). Meanwhile
 * another worker takes its slot. */
void attempt_block(struct pawl_call *t, bool blocked);
/* Drop a reference; the last one frees the attempt's memory. */
void attempt_unref(struct pawl_call *t);

/* Free a lease that no attempt uses. Accepts NULL. */
void lease_run_free(struct lease_run *l);
/* Empty it for the next claim; its memory is kept. */
void lease_run_reset(struct lease_run *l);
/* One of its `left` is done with; the last one frees it. */
void lease_run_unref(struct lease_run *l);
/* The attempt whose finish this job is. */
struct pawl_call *attempt_of(struct write_job *j);

/* Worker: the handler has returned, or never `returns`: store how the attempt ends. True: with a
 * result that stands. */
bool attempt_close(struct pawl_call *t, bool returns);
/* Worker: decide how the handler ended, from what it returned and answered: t->item. */
void attempt_settle(struct pawl_call *t, int code);

/* ---- session.c: SQL in the call's own transaction -------------------------------------------- */

/* Worker: run one statement, beginning the transaction with the first; rows live in t->arena.
 * STATE: the attempt or its transaction is over, or an earlier statement failed; BUSY: it could not
 * begin; else the statement's own error. */
MUST_USE enum pawl_status session_sql(struct pawl_call *t, const struct sql_query *q,
                                      struct pawl_rows *out, struct pawl_err *err);
/* Worker: turn a reply after a failed statement into an error. */
void session_check(struct pawl_call *t);
/* The worker ended the attempt: commit the transaction with `item`. False: none is open, so the
 * caller posts a plain finish. */
bool session_finish(struct pawl_call *t);
/* Another thread ended the attempt: undo the transaction and store `theirs`. False: none is open,
 * so the caller posts a plain finish. */
bool session_abort(struct pawl_call *t);
/* Worker: is a transaction open? */
bool session_open(struct pawl_call *t);
/* Worker, of a pass: end the open transaction of a step with this OP_FEATURE, and with its SQL if
 * `keep`; then the next step may open one. Returns end->status; STATE: the attempt is over. */
MUST_USE enum pawl_status session_step(struct pawl_call *t, struct op *end, bool keep);
/* Worker, of a pass: the step is over, and its transaction, if it had one: the next may open one.
 */
void session_reset(struct pawl_call *t);
/* Free it; called when the attempt's memory goes. Accepts an attempt without SQL. */
void session_free(struct pawl_call *t);
/* Let the attempt end with this error; the text is cut at ERROR_LEN_MAX and lives as long as the
 * attempt. */
void attempt_error(struct pawl_call *t, enum ending how, struct bytes text);

#endif
