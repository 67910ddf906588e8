/*
 * pass.h - a pass: one attempt of a handler that takes steps. For exec and lib.
 *
 * A step that has ended is stored and never runs again: the pass returns its stored result. Steps
 * are numbered in the order of the program. A point of the handler at which something is stored is
 * durable; one at which the run is suspended, or fails, returns PASS_VOID, and from then on every
 * durable point does: the pass is over, and the handler has to return.
 *
 * All functions are the worker's, inside its handler, unless they say otherwise.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_PASS_H
#define EXEC_PASS_H

#include "exec/attempt.h"
#include "feature/workflow.h"

enum pass_answer { PASS_GOES_ON, PASS_VOID, PASS_TIMEOUT };

/* A step that runs code. */
struct pass_step {
    struct bytes name;
    pawl_step_run *run;
    pawl_step_undo *undo; /* NULL: none */
    void *arg;
    int max_attempts;
    struct backoff backoff;
    int64_t timeout_us; /* of one try; 0: the call's */
    bool lazy;          /* its result is stored with the next operation */
};
/* Run it, unless it has ended. */
enum pass_answer pass_step(struct pawl_call *t, const struct pass_step *s, struct payload *out);
/* Wait: a sleep, a signal, a join, a select. What settled it is in *out. */
enum pass_answer pass_wait(struct pawl_call *t, enum step_kind kind, struct bytes name,
                           const struct workflow_wait *w, struct payload *out);
/* Accept a child; *out is its id as JSON. */
enum pass_answer pass_child(struct pawl_call *t, struct bytes name, const struct call_spec *call,
                            struct payload *out);
/* A value that is the same on every pass: `mine` on the first. */
enum pass_answer pass_value(struct pawl_call *t, struct bytes name, struct payload mine,
                            struct payload *out);
/* Has this run met the change `id` first in code that has it? */
bool pass_patched(struct pawl_call *t, struct bytes id);
/* Show a value, stored with the next new step. */
enum pass_answer pass_publish(struct pawl_call *t, struct bytes name, struct payload value);
/* Forget the steps and begin again with this input. */
enum pass_answer pass_restart(struct pawl_call *t, struct payload input);
/* A durable point was called wrongly: the run fails with this text. A pass that undoes is as far as
 * the handler comes, and undoes now. */
enum pass_answer pass_refuse(struct pawl_call *t, const char *text);
/* There is no memory for a durable point: the attempt ends with an error, and another one tries
 * again. */
enum pass_answer pass_no_memory(struct pawl_call *t);
/* Has a join or select of this pass found that this child has ended? */
bool pass_child_ended(struct pawl_call *t, struct bytes id);
/* Remember that a join or select found it so. */
void pass_child_is_ended(struct pawl_call *t, struct bytes id);

/* Is the pass over, so that nothing has an effect any more? Then this counts as a point that did
 * nothing. */
bool pass_void(struct pawl_call *t);
/* Does it take steps, and is it outside of one? Then SQL is refused. */
bool pass_between(const struct pawl_call *t);
/* Is it inside a step? Then a state cannot be set. */
bool pass_inside(const struct pawl_call *t);
/* The id of the n-th call, from 1, that the step sends which runs now, in t->arena; `ask`: that it
 * asks. It has the name of the step, because a later pass does not run the steps before it. NULL
 * outside of a step, and without memory. */
const char *pass_sent_id(struct pawl_call *t, bool ask, size_t n);

/* ---- For attempts ---------------------------------------------------------------------------- */

/* Before the handler of a call that has begun: read its journal. False: it cannot be read now. */
MUST_USE bool pass_open(struct pawl_call *t);
/* After the handler and attempt_settle(): undo if that is due, and decide how the pass ends, in
 * t->item. False: without a finish, because its call has left the lease. */
MUST_USE bool pass_end(struct pawl_call *t);
/* The deadline of a step with a timeout of its own has come: the finish that says so. Any thread.
 */
void pass_timed_out(struct pawl_call *t, struct finish_item *theirs);
/* Where the answers of its operations live. */
struct arena *pass_answers(struct pawl_call *t);
/* Free it; accepts an attempt without one. The thread that drops the last reference. */
void pass_free(struct pawl_call *t);

#endif
