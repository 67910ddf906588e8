/*
 * pass_inside.h - what the files of passes share: pass.c (durable points, operations, the end),
 * pass_step.c (steps that run code), pass_point.c (steps that run none), pass_undo.c (undoing).
 * Private to them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_PASS_INSIDE_H
#define EXEC_PASS_INSIDE_H

#include "exec/internal.h"
#include "exec/pass.h"

/* Why the pass is over. */
enum pass_over {
    PASS_RUNS,
    PASS_GONE,   /* its call has left the lease: suspended, ended, or another owner's */
    PASS_BACK,   /* handed back uncounted: the process stops, or the database does not store */
    PASS_FAILED, /* for good, with `error` */
    PASS_ERROR,  /* it is tried again, with `error` */
    PASS_UNDONE, /* every undo has ended */
};

/* A step that is to be undone. */
struct pass_undo {
    int64_t no, completed_us;
    struct bytes name; /* as stored */
    const struct pass_step *step;
    struct payload result;
    bool unknown; /* it may have happened */
};

/* How often a name was used. */
struct pass_name {
    struct pass_name *same;
    struct bytes name;
    int64_t n;
};
#define PASS_NAMES 256

struct pass {
    struct journal *journal; /* owned */
    size_t at;               /* rows of the journal before it were passed */
    int64_t no;              /* of the last durable point that has one */
    bool begun;              /* the call has begun to take steps */
    enum pass_over over;
    struct bytes error;
    int voids; /* points that did nothing */
    struct pass_name *names[PASS_NAMES];
    struct pass_name *patched[1]; /* changes; `n`: the answer, from 1 */
    struct pass_name *ended[1];   /* children; `n` 1: it has */
    struct workflow_step *lazy;
    size_t n_lazy, cap_lazy;
    bool must_store; /* one of them has to be stored before any code runs */
    struct workflow_value *published;
    size_t n_published, cap_published;
    struct pass_undo *undos;
    size_t n_undos, cap_undos;
    struct bytes inside; /* the stored name of the step that runs; absent: none */
    struct bytes fault;  /* what was done wrong inside of it */
    struct arena answers;
    _Atomic(struct pass_late *) late; /* what a step says whose time is up; NULL: none has one */
};

/* The finish of a try whose time is up. */
struct pass_late {
    struct finish_item item;
    struct feature_op with;
    struct workflow_op op;
    struct workflow_step step;
};

/* A pass over this journal, which it takes. NULL without memory. */
struct pass *pass_make(struct pawl_call *t, struct journal *taken);
/* A durable point: is the pass still running, and may it have one here? */
MUST_USE bool pass_enter(struct pawl_call *t);
/* The stored row of the forward step with this number; NULL: there is none. */
const struct workflow_row *pass_row(struct pass *p, int64_t no);
/* The stored name of the next use of this name, in t->arena; absent without memory. */
struct bytes pass_name(struct pawl_call *t, struct bytes name);
/* Check the next step: *out_row is its stored row, or NULL. False: the pass is over. */
MUST_USE bool pass_next(struct pawl_call *t, enum step_kind kind, struct bytes name,
                        const struct workflow_row **out_row, struct bytes *out_stored);

enum pass_sql { PASS_NO_SQL, PASS_SQL_KEPT, PASS_SQL_UNDONE };
/* What every operation of the pass says of it: version, node, and whether it undoes. */
struct workflow_steps pass_context(struct pawl_call *t);
/* Store these steps with what waits to be stored. True: they are stored, or refused: *out_op has
 * the answer. False: the pass is over. */
MUST_USE bool pass_say(struct pawl_call *t, struct workflow_step *v, size_t n, enum pass_sql sql,
                       struct op *out_op);
/* The same, with calls that are accepted if the last of the steps is stored now. */
struct pass_saying {
    struct workflow_step *v; /* question and answer */
    size_t n;
    enum pass_sql sql;
    const struct call_spec *send;
    size_t n_send;
};
/* pass_say() with them. */
MUST_USE bool pass_say_sending(struct pawl_call *t, const struct pass_saying *s, struct op *out_op);
/* Another operation, after which its call has left the lease. True: it was refused, and *out_op
 * says why. False: the pass is over. */
MUST_USE bool pass_ask(struct pawl_call *t, struct workflow_op *q, struct op *out_op);
/* Store what waits to be stored. False: the pass is over. */
MUST_USE bool pass_flush(struct pawl_call *t);
/* What came of a step that has ended. */
enum pass_answer pass_known(struct pawl_call *t, const struct workflow_row *row,
                            struct payload *out);
/* The entry of a name in a table of n buckets; NULL without memory. */
struct pass_name *pass_entry(struct pawl_call *t, struct pass_name **table, size_t n,
                             struct bytes name);
/* Remember an ended step of ours, to be stored later. */
MUST_USE bool pass_lazy(struct pawl_call *t, const struct workflow_step *s);
/* The pass is over. The error is copied. Returns PASS_VOID. */
enum pass_answer pass_over(struct pawl_call *t, enum pass_over how, struct bytes error);
/* Give the attempt this long from now on; 0: its call's timeout. */
void pass_deadline(struct pawl_call *t, int64_t timeout_us);

/* One try of a step's function or of its undo (`undo` not NULL): what came of it. */
struct pass_try {
    enum ending how;
    struct payload result;
    struct bytes error;
    int64_t retry_in_us;
    const struct call_spec *send;
    size_t n_send;
    enum pass_sql sql;
};
/* Run it. */
void pass_try(struct pawl_call *t, const struct pass_step *s, const struct pass_undo *undo,
              struct bytes stored, struct pass_try *out);
/* Let a try of this step end like this when its time is up. */
void pass_try_timed(struct pawl_call *t, const struct pass_step *s,
                    const struct workflow_step *says);

/* That try is over. */
void pass_try_over(struct pawl_call *t, const struct pass_step *s);

/* Undoing pass: this step has ended, or may have happened. */
void pass_undo_note(struct pawl_call *t, const struct pass_step *s, struct bytes stored,
                    const struct workflow_row *row);
/* A step that has an undo to run, and to which the handler of this pass did not come; NULL: none.
 */
const struct workflow_row *pass_undo_missing(const struct pass *p);
/* Undo all that was noted; then the pass is over. Nothing is undone if a step is missing: then the
 * pass ends with an error that names it. */
enum pass_answer pass_undo(struct pawl_call *t);

/* The error text of an operation that was refused. */
struct bytes pass_refusal(struct pawl_call *t, const struct op *op);

#endif
