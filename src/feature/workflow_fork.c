/*
 * workflow_fork.c - a new run that begins with the results of another one's first steps.
 *
 * Store thread, under the lock of the other run's row. Who ends a child locks the rows of its
 * parents before it reads which they are; so a child that is taken over here is seen to end, by
 * this transaction or by that one.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/workflow_inside.h"

#include "base/ident.h"
#include "base/text.h"
#include "model/needs.h"

/* The call of the new run: the other one's under another id. It has begun from the start. */
static enum pawl_status spec_make(struct ledger *d, struct op *op, const struct run *r,
                                  struct call_spec *out, struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    struct arena *a = feature_arena(d);
    enum pawl_status st = feature_call_spec(d, r->seq, out, err);
    if (st != PAWL_OK)
        return st;
    if (!q->fork_id.data && !q->made_id.data) {
        struct bytes id = bytes_of(
            arena_printf(op->a, "%.*s-fork-%lld", BYTES_ARG(q->id), (long long)feature_now(d)));
        q->made_id = id;
    }
    out->id = q->fork_id.data ? q->fork_id : q->made_id;
    out->parent = BYTES_NONE;
    out->watch = 0;
    out->delay_us = out->run_at_us = 0;
    if (!needs_steps(out->needs, out->n_needs)) {
        out->needs = needs_with_steps(a, out->needs, out->n_needs);
        out->n_needs++;
    }
    return out->needs && out->id.data ? PAWL_OK : err_no_memory(err, "a fork");
}

static enum pawl_status rows_copy(struct ledger *d, const struct run *r, int64_t to, int64_t no,
                                  int64_t *out_steps, struct pawl_err *err)
{
    struct led_params p = { 0 }, q = { 0 };
    led_int(&p, to);
    led_int(&p, r->seq);
    led_int(&p, no);
    enum pawl_status st = feature_run(d, SQL_STEP_FORK, &p, out_steps, err);
    led_int(&q, to);
    led_int(&q, r->seq);
    return st == PAWL_OK ? feature_run(d, SQL_CHILD_FORK, &q, NULL, err) : st;
}

/* The new run's row. */
static enum pawl_status run_copy(struct ledger *d, const struct run *r, int64_t seq, int64_t no,
                                 struct pawl_err *err)
{
    struct run *to;
    int64_t steps = 0;
    enum pawl_status st = run_get(d, seq, &to, err);
    if (st == PAWL_OK)
        st = rows_copy(d, r, seq, no, &steps, err);
    if (st != PAWL_OK)
        return st;
    st = run_new(d, to, r->name, err);
    if (st == PAWL_OK)
        st = steps_len(d, seq, no, &to->bytes, err);
    if (st != PAWL_OK)
        return st;
    to->flags = RUN_BEGUN;
    to->version = r->version;
    to->next_no = no;
    to->steps = steps;
    to->last_done_us = r->last_done_us;
    return run_put(d, to, err);
}

enum pawl_status workflow_fork(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    struct feature_call c;
    struct run *r;
    struct step_row *from = NULL;
    struct call_spec spec;
    enum pawl_status st = workflow_named(d, op, q->id, &c, &r, err);
    if (st == PAWL_OK && op->status == PAWL_OK)
        st = workflow_from(d, op, r, &from, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    if (from->kind == STEP_UNDO) {
        op->status = err_set(&op->err, PAWL_STATE, "a fork cannot begin with an undo");
        return PAWL_OK;
    }
    st = spec_make(d, op, r, &spec, err);
    if (st != PAWL_OK)
        return st;
    struct op nested = { .kind = OP_ACCEPT, .a = op->a, .accept = { .v = &spec, .n = 1 } };
    st = feature_nested(d, &nested, err);
    if (st != PAWL_OK)
        return st;
    q->call = &nested.accept.out[0];
    q->duplicate = q->call->duplicate;
    q->state = q->call->call.state;
    if (q->call->status != PAWL_OK) {
        workflow_say_refused(op, spec.id, q->call->status);
        return PAWL_OK;
    }
    return q->duplicate ? PAWL_OK : run_copy(d, r, q->call->call.seq, from->no, err);
}
