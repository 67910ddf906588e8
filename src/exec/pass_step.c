/*
 * pass_step.c - steps that run code: their tries, and what is stored of them (pass.h).
 *
 * While a step runs, the attempt's answer, its sends and its SQL are the step's; those of the
 * handler are put aside.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/pass_inside.h"

#include <stdio.h>

#include "base/hook.h"
#include "base/limits.h"

/* ---- One try --------------------------------------------------------------------------------- */

/* What the handler has answered, sent and asked so far; put aside while a step runs. */
struct aside {
    struct finish_item item;
    bool answered, state_for_good;
    struct bytes state_fault;
    struct call_spec *send;
    size_t n_send, cap_send;
    int n_asked;
};

static struct aside put_aside(struct pawl_call *t)
{
    struct aside a = { t->item, t->answered, t->state_for_good, t->state_fault,
                       t->send, t->n_send,   t->cap_send,       t->n_asked };
    t->item =
        (struct finish_item){ .seq = t->call->seq, .id = t->call->spec.id, .retry_in_us = -1 };
    t->answered = t->state_for_good = false;
    t->state_fault = BYTES_NONE;
    t->send = NULL;
    t->n_send = t->cap_send = 0;
    t->n_asked = 0;
    return a;
}

static void take_back(struct pawl_call *t, const struct aside *a)
{
    t->item = a->item;
    t->answered = a->answered;
    t->state_for_good = a->state_for_good;
    t->state_fault = a->state_fault;
    t->send = a->send;
    t->n_send = a->n_send;
    t->cap_send = a->cap_send;
    t->n_asked = a->n_asked;
}

const char *pass_sent_id(struct pawl_call *t, bool ask, size_t n)
{
    const struct pass *p = atomic_load(&t->pass);
    int64_t generation = MAX(p->journal->generation, 1);
    char mark[32] = "";
    if (!p->inside.data)
        return NULL;
    if (generation > 1)
        snprintf(mark, sizeof mark, "~%lld", (long long)generation);
    return arena_printf(&t->arena, "%.*s%s.%.*s.%s%zu", BYTES_ARG(t->call->spec.id), mark,
                        BYTES_ARG(p->inside), ask ? "ask." : "", n);
}

void pass_try(struct pawl_call *t, const struct pass_step *s, const struct pass_undo *undo,
              struct bytes stored, struct pass_try *out)
{
    struct pass *p = atomic_load(&t->pass);
    struct aside outer = put_aside(t);
    int code;
    p->inside = stored;
    p->fault = BYTES_NONE;
    if (undo) {
        const struct payload r = undo->result;
        code = s->undo(t, undo->unknown ? PAWL_STEP_UNKNOWN : 0,
                       (struct pawl_data){ r.form, r.bytes.data, r.bytes.len }, s->arg);
    } else {
        code = s->run(t, s->arg);
    }
    attempt_settle(t, code);
    if (p->fault.data)
        attempt_error(t, END_REFUSE, p->fault);
    session_check(t);
    p->inside = BYTES_NONE;
    bool sql = session_open(t);
    bool result = t->item.how == END_RESULT;
    *out = (struct pass_try){ .how = t->item.how,
                              .result = t->item.result,
                              .error = t->item.error,
                              .retry_in_us = t->item.retry_in_us,
                              .send = result ? t->send : NULL,
                              .n_send = result ? t->n_send : 0,
                              .sql = !sql     ? PASS_NO_SQL
                                     : result ? PASS_SQL_KEPT
                                              : PASS_SQL_UNDONE };
    take_back(t, &outer);
    if (!sql)
        session_reset(t);
    PAUSE_POINT("pass.tried");
}

/* ---- Time ------------------------------------------------------------------------------------ */

void pass_try_timed(struct pawl_call *t, const struct pass_step *s,
                    const struct workflow_step *says)
{
    struct pass *p = atomic_load(&t->pass);
    struct pass_late *late = s->timeout_us ? arena_zalloc(&t->arena, 1, sizeof *late) : NULL;
    if (!late)
        return; /* without memory the whole attempt times out */
    bool last = says->attempts >= s->max_attempts;
    struct bytes text = bytes_of(arena_printf(&t->arena, "took longer than its timeout of %g s",
                                              (double)s->timeout_us / SEC_US));
    late->step = *says;
    late->step.says = last && says->kind != STEP_UNDO ? SAYS_ERROR : SAYS_BEGUN;
    late->step.error = text;
    late->op = (struct workflow_op){ .what = WORKFLOW_STEPS, .steps = pass_context(t) };
    late->op.steps.v = &late->step;
    late->op.steps.n = 1;
    late->op.steps.ends = true;
    late->with = (struct feature_op){ .of = &feature_workflow, .ctx = &late->op };
    late->item = (struct finish_item){
        .seq = t->call->seq,
        .id = t->call->spec.id,
        .how = !last                     ? END_LATER
               : says->kind == STEP_UNDO ? END_TIMEOUT
                                         : END_REFUSE,
        .retry_in_us = backoff_us(&s->backoff, says->attempts, &world_real),
        .error = last ? text : BYTES_NONE,
        .with = &late->with,
        .started_us = t->started_us,
    };
    atomic_store(&p->late, late);
    pass_deadline(t, s->timeout_us);
}

void pass_try_over(struct pawl_call *t, const struct pass_step *s)
{
    atomic_store(&atomic_load(&t->pass)->late, NULL);
    if (s->timeout_us)
        pass_deadline(t, 0);
}

void pass_timed_out(struct pawl_call *t, struct finish_item *theirs)
{
    struct pass *p = atomic_load(&t->pass);
    struct pass_late *late = p ? atomic_load(&p->late) : NULL;
    if (late)
        *theirs = late->item;
}

/* ---- A step ---------------------------------------------------------------------------------- */

/* Store the lazy steps. What was published is stored with the step itself. */
static bool flush_lazy(struct pawl_call *t, struct pass *p)
{
    size_t published = p->n_published;
    p->n_published = 0;
    bool ok = pass_flush(t);
    p->n_published = published;
    return ok;
}

/* Before it runs: what has to be stored first. The first step of a run with an undo is stored as
 * begun, so that it is known to be in doubt if nothing follows; before a later one it is enough
 * that nothing else is unstored. */
static bool before(struct pawl_call *t, const struct pass_step *s, const struct workflow_step *step)
{
    struct pass *p = atomic_load(&t->pass);
    struct workflow_step begun = *step;
    struct op op;
    if (p->must_store && (!s->undo || p->begun))
        return pass_flush(t);
    if (!s->undo || p->begun)
        return s->undo && p->n_lazy ? flush_lazy(t, p) : true;
    begun.says = SAYS_BEGUN;
    begun.attempts = 0;
    if (!pass_say(t, &begun, 1, PASS_NO_SQL, &op))
        return false;
    if (op.status != PAWL_OK)
        pass_over(t, op.status == PAWL_STATE ? PASS_ERROR : PASS_FAILED, pass_refusal(t, &op));
    return op.status == PAWL_OK;
}

/* The step has failed for good, and so does the pass. */
static enum pass_answer failed(struct pawl_call *t, struct workflow_step *step, enum step_says says,
                               const struct pass_try *try)
{
    struct op op;
    step->says = says;
    step->result = (struct payload){ 0 };
    step->error = try->error;
    enum pass_sql sql = try->sql == PASS_NO_SQL ? PASS_NO_SQL : PASS_SQL_UNDONE;
    if (!pass_say(t, step, 1, sql, &op))
        return PASS_VOID;
    return pass_over(t, PASS_FAILED, try->error.data ? try->error : BYTES("a step failed"));
}

/* The store refused the step's result: it has happened, and has none. */
static enum pass_answer unstorable(struct pawl_call *t, struct workflow_step *step,
                                   const struct op *op)
{
    if (op->status == PAWL_STATE)
        return pass_over(t, PASS_ERROR, pass_refusal(t, op));
    const struct pass_try why = { .error = pass_refusal(t, op) };
    return failed(t, step, SAYS_ERROR, &why);
}

static enum pass_answer succeeded(struct pawl_call *t, const struct pass_step *s,
                                  struct workflow_step *step, const struct pass_try *try,
                                  struct payload *out)
{
    struct op op;
    step->says = SAYS_RESULT;
    step->result = try->result;
    if (s->lazy && !s->undo && try->sql == PASS_NO_SQL && !try->n_send) {
        if (out)
            *out = try->result;
        return pass_lazy(t, step) ? PASS_GOES_ON : PASS_VOID;
    }
    if (!pass_say_sending(
            t,
            &(struct pass_saying){
                .v = step, .n = 1, .sql = try->sql, .send = try->send, .n_send = try->n_send },
            &op))
        return PASS_VOID;
    if (op.status != PAWL_OK)
        return unstorable(t, step, &op);
    CRASH_POINT("pass.step_stored");
    struct workflow_row row = { .status = step->status,
                                .error = step->error_out,
                                .result = { step->result_out.form,
                                            arena_copy(&t->arena, step->result_out.bytes) } };
    return pass_known(t, &row, out);
}

/* Another try follows, now or in another pass. */
static enum pass_answer again(struct pawl_call *t, const struct pass_step *s,
                              struct workflow_step *step, const struct pass_try *try)
{
    struct op op;
    bool counts = try->how != END_LATER;
    step->says = SAYS_RETRY;
    step->error = try->error;
    step->retry_in_us = !counts || try->retry_in_us >= 0
                            ? MAX(try->retry_in_us, 0)
                            : backoff_us(&s->backoff, step->attempts, &world_real);
    step->attempts -= !counts;
    if (pass_say(t, step, 1, try->sql, &op))
        return pass_over(t, PASS_ERROR, op.status == PAWL_OK ? try->error : pass_refusal(t, &op));
    return PASS_VOID;
}

static enum pass_answer run(struct pawl_call *t, const struct pass_step *s,
                            const struct workflow_row *row, struct bytes stored,
                            struct payload *out)
{
    struct pass *p = atomic_load(&t->pass);
    struct pass_try try;
    struct workflow_step step = { .no = p->no,
                                  .name = arena_copy(&t->arena, s->name),
                                  .kind = STEP_RUN,
                                  .attempts = (row ? row->attempts : 0) + 1,
                                  .undo = s->undo };
    if (!step.name.data)
        return pass_over(t, PASS_ERROR, BYTES("no memory for its steps"));
    if (!before(t, s, &step))
        return PASS_VOID;
    pass_try_timed(t, s, &step);
    pass_try(t, s, NULL, stored, &try);
    pass_try_over(t, s);
    if (atomic_load(&t->stage) != ATTEMPT_RUNNING)
        return pass_over(t, PASS_GONE, BYTES_NONE);
    switch (try.how) {
    case END_RESULT:
        return succeeded(t, s, &step, &try, out);
    case END_REFUSE:
        return failed(t, &step, SAYS_REFUSED, &try);
    case END_LATER:
        return again(t, s, &step, &try);
    case END_ERROR:
    case END_TIMEOUT:
        if (step.attempts < s->max_attempts)
            return again(t, s, &step, &try);
        return failed(t, &step, SAYS_ERROR, &try);
    case END_CANCELLED: /* it stopped because it was told to: whether it happened is not known */
    case END_RELEASE:
    case END_LOST:
        break;
    }
    return pass_over(t, PASS_BACK, BYTES_NONE);
}

enum pass_answer pass_step(struct pawl_call *t, const struct pass_step *s, struct payload *out)
{
    const struct workflow_row *row;
    struct bytes stored;
    if (!pass_enter(t) || !pass_next(t, STEP_RUN, s->name, &row, &stored))
        return PASS_VOID;
    bool ended = row && step_ended(row->status);
    if (atomic_load(&t->undoing)) {
        pass_undo_note(t, s, stored, row);
        if (!ended)
            return pass_undo(t);
    }
    return ended ? pass_known(t, row, out) : run(t, s, row, stored, out);
}
