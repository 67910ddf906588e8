/*
 * workflow_change.c - what people ask of a run: cancel, retry, retry from a step, a fork; and what
 * its code asks of itself: a restart.
 *
 * Store thread, under the lock of the run's row.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/workflow_inside.h"

#include "base/limits.h"
#include "base/text.h"

/* ---- Cancel ---------------------------------------------------------------------------------- */

/* An ended run begins to undo what is not undone. */
static enum pawl_status cancel_ended(struct ledger *d, struct op *op, struct run *r,
                                     const struct feature_call *c, struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    bool may = c->state == PAWL_FAILED || c->state == PAWL_DEAD_LETTER;
    if (q->compensate && (!may || !r->stored || !r->steps || r->compensation == UNDO_DONE)) {
        workflow_say_ended(op, c, ", and nothing of it is left to undo");
        return PAWL_OK;
    }
    if (!q->compensate && c->state == PAWL_CANCELLED && r->compensation != UNDO_FAILED)
        return PAWL_OK;   /* a repeat */
    if (!q->compensate) { /* the admin's drop of a failed compensation */
        if (r->compensation != UNDO_FAILED) {
            workflow_say_ended(op, c, "");
            return PAWL_OK;
        }
        if (q->no_drop) {
            op->status =
                err_set(&op->err, PAWL_FORBIDDEN,
                        "run \"%.*s\": its undoing failed, and only the role admin may drop it",
                        BYTES_ARG(c->id));
            return PAWL_OK;
        }
        r->compensation = UNDO_NONE;
        return run_put(d, r, err);
    }
    struct op nested = { .kind = OP_RETRY, .by_id = { .id = c->id } };
    r->wants_undo = true;
    enum pawl_status st = feature_nested(d, &nested, err);
    r->wants_undo = false;
    if (st == PAWL_OK && nested.status != PAWL_OK) {
        op->status = nested.status;
        op->err = nested.err;
    }
    if (st == PAWL_OK && op->status == PAWL_OK)
        q->state = PAWL_PROCESSING; /* it undoes */
    return st;
}

enum pawl_status workflow_cancel(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    struct feature_call c;
    struct run *r;
    enum pawl_status st = workflow_named(d, op, q->id, &c, &r, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    q->state = c.state;
    q->seq = c.seq;
    if (run_ended(r, &c))
        return cancel_ended(d, op, r, &c, err);
    if (c.flow && !q->compensate) {
        r->let_go = true;
        st = feature_flow_end(d, c.seq, (struct flow_end_as){ .state = PAWL_CANCELLED }, err);
        q->state = PAWL_CANCELLED;
        return st;
    }
    struct op nested = { .kind = OP_CANCEL, .a = op->a, .by_id = { .id = c.id } };
    st = feature_nested(d, &nested, err);
    op->status = nested.status;
    op->err = nested.err;
    q->state = nested.by_id.state;
    return st;
}

/* ---- Retry ----------------------------------------------------------------------------------- */

/* Forget the steps from `no` on, and begin a generation. With `unread` the signals that they
 * consumed are unread again, and their results leave room. */
static enum pawl_status forget_from(struct ledger *d, struct run *r, int64_t no, bool unread,
                                    struct pawl_err *err)
{
    struct led_params p = { 0 }, q = { 0 };
    int64_t again = 0, used = signal_used_by(r, no);
    led_ints(d, &p, &r->seq, 1);
    led_ints(d, &p, &no, 1);
    led_ints(d, &q, &r->seq, 1);
    led_ints(d, &q, &used, 1);
    enum pawl_status st = feature_run(d, SQL_STEP_FORGET, &p, NULL, err);
    if (st == PAWL_OK && unread)
        st = feature_run(d, SQL_SIGNAL_UNUSE, &q, &again, err);
    if (st == PAWL_OK && unread)
        st = steps_len(d, r->seq, &r->bytes, err);
    r->steps_read = NULL;
    r->uses = NULL;
    r->unread += again;
    r->next_no = MIN(r->next_no, no);
    r->steps = MIN(r->steps, no - 1);
    r->generation++;
    return st;
}

enum pawl_status first_undone(struct ledger *d, const struct run *r, int64_t *out,
                              struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_int(&p, r->seq);
    enum pawl_status st = feature_query(d, SQL_STEP_UNDONE, &p, &rows, err);
    *out = st == PAWL_OK && rows->n ? led_get_int(rows, 0, 0) : 0;
    return st;
}

/* The run goes forward again: it no longer undoes. Its run_timeout counts, unless it has passed. */
static enum pawl_status forward(struct ledger *d, struct run *r, struct pawl_err *err)
{
    struct feature_call c;
    enum pawl_status st = feature_call_at(d, r->seq, &c, err);
    r->deadline_us = st == PAWL_OK && c.run_until_us > feature_now(d) ? c.run_until_us : 0;
    r->undoing_us = 0;
    r->reason = REASON_NONE;
    r->error = BYTES_NONE;
    r->compensation = UNDO_NONE;
    r->undone = 0;
    return st;
}

/* A run that has failed begins to undo. What it failed with stays its error. */
static enum pawl_status undo_ended(struct ledger *d, struct run *r, struct pawl_err *err)
{
    struct feature_call c;
    enum pawl_status st = feature_call_at(d, r->seq, &c, err);
    struct bytes error = c.error.data ? c.error : BYTES("cancelled after it had failed");
    return st == PAWL_OK ? run_undo(d, r, REASON_FAILED, error, err) : st;
}

enum pawl_status flow_retry(struct ledger *d, int64_t seq, struct op *op, struct pawl_err *err)
{
    struct run *r;
    int64_t no = 0;
    enum pawl_status st = run_get(d, seq, &r, err);
    if (st != PAWL_OK || !r->stored)
        return st;
    if (r->wants_undo && !r->undoing_us)
        st = undo_ended(d, r, err);
    else if (r->compensation != UNDO_FAILED && !r->wants_undo) {
        st = first_undone(d, r, &no, err);
        if (st == PAWL_OK && r->from_no && no && r->from_no > no) {
            op->status =
                err_set(&op->err, PAWL_STATE,
                        "step %lld was undone: a retry begins there or before it", (long long)no);
            return PAWL_OK;
        }
        no = r->from_no ? r->from_no : no;
        if (st == PAWL_OK && no)
            st = forget_from(d, r, no, true, err);
        if (st == PAWL_OK)
            st = forward(d, r, err);
    } else if (r->from_no) {
        op->status = err_set(&op->err, PAWL_STATE,
                             "its undoing has failed: retry it without a step, so that it goes on");
        return PAWL_OK;
    } else
        r->compensation = UNDO_GOES_ON;
    r->flags &= ~(RUN_ENDED | RUN_DIVERGED);
    r->pass = BYTES_NONE;
    return st == PAWL_OK ? run_put(d, r, err) : st;
}

enum pawl_status workflow_from(struct ledger *d, struct op *op, struct run *r,
                               struct step_row **out, struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    char name[TEXT_QUOTE_LEN];
    enum pawl_status st = step_by_name(d, r, q->from, out, err);
    if (st == PAWL_OK && !*out)
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "run \"%.*s\" has no step \"%s\"",
                             BYTES_ARG(q->id), text_quote(q->from, name));
    return st;
}

enum pawl_status workflow_retry(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    struct feature_call c;
    struct run *r;
    struct step_row *from = NULL;
    enum pawl_status st = workflow_named(d, op, q->id, &c, &r, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    q->state = c.state;
    if (r->stored && q->made_rev && r->rev > q->made_rev && !run_ended(r, &c))
        return PAWL_OK; /* its answer was lost */
    q->made_rev = r->rev;
    if (q->from.data)
        st = workflow_from(d, op, r, &from, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    struct op nested = { .kind = OP_RETRY, .by_id = { .id = c.id } };
    r->from_no = from ? from->no : 0;
    st = feature_nested(d, &nested, err);
    r->from_no = 0;
    op->status = nested.status;
    op->err = nested.err;
    q->state = nested.by_id.state;
    return st;
}

/* ---- Restart --------------------------------------------------------------------------------- */

static enum pawl_status input_put(struct ledger *d, const struct run *r, struct payload input,
                                  struct pawl_err *err)
{
    const union feature_value v[] = { I(r->seq), I((int64_t)input.form), B(input.bytes) };
    return feature_row(d, SQL_WORKFLOW_INPUT, "iib", v, FEATURE_EXACT, err);
}

/* The children so far are final, as the steps that made them. */
static enum pawl_status children_final(struct ledger *d, const struct run *r, struct pawl_err *err)
{
    struct led_params p = { 0 };
    led_ints(d, &p, &r->seq, 1);
    return feature_run(d, SQL_CHILD_FINAL, &p, NULL, err);
}

/* It was cancelled, or its run_timeout passed, before it began or restarted: it does not restart,
 * and a pass that is claimed later undoes. */
static enum pawl_status undoes_instead(struct ledger *d, struct op *op, struct run *r,
                                       struct pawl_err *err)
{
    const struct workflow_op *q = op->feature.ctx;
    r->flags &= ~RUN_CUT;
    r->let_go = true;
    r->pass = q->steps.ends ? BYTES_NONE : workflow_pass(d, op);
    op->feature.brings = true;
    enum pawl_status st = run_put(d, r, err);
    return st == PAWL_OK && !q->steps.ends ? feature_flow_suspend(d, op, feature_now(d), err) : st;
}

enum pawl_status workflow_restart(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    struct run *r;
    bool go;
    enum pawl_status st = run_get(d, op->feature.seq, &r, err);
    if (st == PAWL_OK && r->undoing_us) {
        op->status = err_set(&op->err, PAWL_STATE, "the run undoes, and does not restart");
        return PAWL_OK;
    }
    if (st == PAWL_OK)
        st = workflow_begin(d, op, r, &go, err);
    if (st != PAWL_OK || !go)
        return st;
    if (r->undoing_us)
        return undoes_instead(d, op, r, err);
    r->flags = ((r->flags & ~RUN_CUT) | RUN_HAS_INPUT) + RUN_RESTARTS;
    r->bytes = 0;
    r->waits = r->wait_us = 0;
    r->let_go = true;
    r->pass = BYTES_NONE;
    if (!q->steps.ends)
        r->pass = workflow_pass(d, op);
    st = forget_from(d, r, 1, false, err);
    if (st == PAWL_OK)
        st = children_final(d, r, err);
    if (st == PAWL_OK)
        st = run_put(d, r, err);
    if (st == PAWL_OK)
        st = input_put(d, r, q->input, err);
    op->feature.brings = true;
    return st == PAWL_OK && !q->steps.ends ? feature_flow_suspend(d, op, feature_now(d), err) : st;
}
