/*
 * workflow_fork.c - a new run that begins with the results of another one's first steps.
 *
 * Store thread, under the lock of the other run's row. The transaction in which a child ends locks
 * the rows of its parents before it reads which they are. So the end of a child that is taken over
 * here is seen by this transaction or by that one.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/workflow_inside.h"

#include "base/ident.h"
#include "base/text.h"
#include "model/needs.h"

/* After a restart the input is that of the run, and not that of its call. */
static enum pawl_status input_of(struct ledger *d, const struct run *r, struct payload *out,
                                 struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *rows;
    if (!(r->flags & RUN_HAS_INPUT))
        return PAWL_OK;
    led_ints(d, &p, &r->seq, 1);
    enum pawl_status st = feature_query(d, SQL_WORKFLOW_READ, &p, &rows, err);
    if (st != PAWL_OK)
        return st;
    CHECK(rows->n == 1);
    *out = (struct payload){ (enum pawl_form)led_get_int(rows, 0, RUN_COLUMNS),
                             led_get(rows, 0, RUN_COLUMNS + 1) };
    return PAWL_OK;
}

/* The call of the new run: the other one's under another id. It has begun from the start, with
 * steps of the other one's version, and is for the same workers. A refusal is in op->status. */
static enum pawl_status spec_make(struct ledger *d, struct op *op, const struct run *r,
                                  struct call_spec *out, struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    struct arena *a = feature_arena(d);
    struct bytes version = r->flags & RUN_PINNED ? r->version : BYTES_NONE;
    enum pawl_status st = feature_call_spec(d, r->seq, out, err);
    if (st == PAWL_OK)
        st = input_of(d, r, &out->input, err);
    if (st != PAWL_OK)
        return st;
    if (!q->fork_id.data && !q->made_id.data) {
        const char *id =
            arena_printf(op->a, "%.*s-fork-%lld", BYTES_ARG(q->id), (long long)feature_now(d));
        q->made_id = id ? ident_derived(op->a, bytes_of(id)) : BYTES_NONE;
    }
    out->id = q->fork_id.data ? q->fork_id : q->made_id;
    out->parent = BYTES_NONE;
    out->watch = 0;
    if (!out->id.data)
        return err_no_memory(err, "a fork");
    st = call_spec_settle(a, feature_world(d), out, &op->err);
    if (st == PAWL_NO_MEMORY)
        return err_no_memory(err, "a fork");
    op->status = st;
    if (st != PAWL_OK)
        return PAWL_OK;
    return needs_begin(a, version, &out->needs, &out->n_needs, err);
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
    led_int(&q, no);
    return st == PAWL_OK ? feature_run(d, SQL_CHILD_FORK, &q, NULL, err) : st;
}

/* The new run's row. */
static enum pawl_status run_copy(struct ledger *d, const struct run *r, const struct call *c,
                                 int64_t no, struct pawl_err *err)
{
    struct run *to;
    int64_t steps = 0;
    enum pawl_status st = run_get(d, c->seq, &to, err);
    if (st == PAWL_OK)
        st = rows_copy(d, r, c->seq, no, &steps, err);
    if (st != PAWL_OK)
        return st;
    st = run_new(d, to, r->name, err);
    if (st == PAWL_OK)
        st = steps_len(d, c->seq, &to->bytes, err);
    if (st != PAWL_OK)
        return st;
    to->flags = RUN_BEGUN | (r->flags & RUN_PINNED);
    to->version = r->version;
    to->next_no = no;
    to->steps = steps;
    to->last_done_us = r->last_done_us;
    to->deadline_us = c->spec.run_until_us;
    return run_put(d, to, err);
}

/* May a fork begin with this step? If not, the operation is refused. */
static enum pawl_status from_check(struct ledger *d, struct op *op, const struct run *r,
                                   const struct step_row *from, struct pawl_err *err)
{
    const struct workflow_op *q = op->feature.ctx;
    char name[TEXT_QUOTE_LEN];
    int64_t no = 0;
    enum pawl_status st = first_undone(d, r, &no, err);
    if (from->kind == STEP_UNDO)
        op->status =
            err_set(&op->err, PAWL_STATE, "step \"%s\" is an undo: a fork cannot begin there",
                    text_quote(q->from, name));
    else if (st == PAWL_OK && no && no < from->no)
        op->status =
            err_set(&op->err, PAWL_STATE, "step %lld was undone: a fork begins there or before it",
                    (long long)no);
    return st;
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
    st = from_check(d, op, r, from, err);
    if (st == PAWL_OK && op->status == PAWL_OK)
        st = spec_make(d, op, r, &spec, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
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
    return q->duplicate ? PAWL_OK : run_copy(d, r, &q->call->call, from->no, err);
}
