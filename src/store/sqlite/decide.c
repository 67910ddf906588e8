/*
 * decide.c - what people decide about a call or a lease: extend, cancel, redrive, move.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "store/sqlite/move.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/read.h"

/* ---- Extend ---------------------------------------------------------------------------------- */

static enum pawl_status wished_read(struct lite *c, struct op *op, const struct lite_lease *l,
                                    struct pawl_err *err)
{
    struct extend *q = &op->extend;
    struct lite_shelf to = { .a = &c->scratch };
    q->n_cancelled = 0;
    q->cancelled = NULL;
    for (size_t i = 0; i < l->n; i++) {
        struct call call;
        bool wish = false;
        enum pawl_status st = PAWL_OK;
        if (l->state[i] == HELD_OPEN)
            st = lite_wish_has(c, l->held[i].seq, &wish, err);
        if (st == PAWL_OK && wish)
            st = lite_asked(c, &to, l->held[i].seq, false, &call, err);
        if (st != PAWL_OK)
            return st;
        if (!wish)
            continue;
        if (!q->cancelled)
            q->cancelled = arena_zalloc(op->a, l->n, sizeof *q->cancelled);
        if (!q->cancelled)
            return err_no_memory(err, "cancelled calls");
        q->cancelled[q->n_cancelled++] = arena_copy(op->a, call.spec.id);
    }
    return op->a->failed ? err_no_memory(err, "cancelled calls") : PAWL_OK;
}

enum pawl_status lite_extend(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct extend *q = &op->extend;
    struct lite_lease *l;
    int64_t last_us = 0;
    q->until_us = 0;
    q->n_cancelled = q->n_timed_out = 0;
    enum pawl_status st = lite_lease_get(c, &q->token, &l, err);
    if (l && st == PAWL_OK && lite_lease_over(l, c->now_us))
        l = NULL;
    if (l && st == PAWL_OK && l->until_us)
        st = lite_time_out(c, op, &l, &last_us, err);
    if (st != PAWL_OK)
        return st;
    if (!l)
        return op_lost_lease(op, &q->token);
    if (l->until_us) {
        l->touched = true;
        l->until_us = q->until_us = MIN(c->now_us + q->lease_us, last_us);
        st = lite_run(c, SQL_LEASE_EXTEND, ARGS(TOKEN(&q->token), INT(q->until_us)), NULL, err);
    }
    return st == PAWL_OK ? wished_read(c, op, l, err) : st;
}

/* ---- By id ----------------------------------------------------------------------------------- */

/* The call an operation names, as it stands; op->status says why there is none. */
static enum pawl_status named_call(struct lite *c, struct op *op, struct call *out,
                                   struct pawl_err *err)
{
    struct by_id *q = &op->by_id;
    struct lite_shelf to = { .a = &c->scratch };
    *out = (struct call){ 0 };
    enum pawl_status st = lite_id_find(c, q->id, &q->seq, NULL, err);
    if (st != PAWL_OK)
        return st;
    if (!q->seq) {
        q->state = 0;
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "no call \"%.*s\"", BYTES_ARG(q->id));
        return PAWL_OK;
    }
    st = lite_stands(c, &to, q->seq, 0, out, err);
    /* Behind another of its run: it is shown pending, but a lease holds it. */
    if (st == PAWL_OK && out->state == PAWL_PENDING && out->claimed_us)
        out->state = PAWL_PROCESSING;
    q->state = out->state;
    if (st == PAWL_GONE) {
        op->status = err_set(&op->err, PAWL_GONE, "call \"%.*s\" has ended and is no longer kept",
                             BYTES_ARG(q->id));
        return PAWL_OK;
    }
    return st;
}

static enum pawl_status refuse_state(struct op *op)
{
    op->status = err_set(&op->err, PAWL_STATE, "call \"%.*s\" is %s", BYTES_ARG(op->by_id.id),
                         pawl_state_name(op->by_id.state));
    return PAWL_OK;
}

enum pawl_status lite_end_pending(struct lite *c, const struct call *as, enum pawl_state to,
                                  struct pawl_err *err)
{
    return lite_move(c,
                     &(struct lite_move){ .seq = as->seq,
                                          .from = PAWL_PENDING,
                                          .to = to,
                                          .tries = as->tries,
                                          .expires_us = as->expires_us,
                                          .end = &(struct lite_end){ .keep_us = as->spec.keep_us },
                                          .key = as->spec.key,
                                          .key_no = as->key_no },
                     err);
}

enum pawl_status lite_cancel(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct by_id *q = &op->by_id;
    struct call call;
    enum pawl_status st = named_call(c, op, &call, err);
    if (st != PAWL_OK || op->status != PAWL_OK || q->state == PAWL_CANCELLED)
        return st;
    if (q->state == PAWL_PROCESSING && q->only_pending)
        return refuse_state(op);
    if (q->state == PAWL_PROCESSING)
        return call.cancel_requested ? PAWL_OK : lite_wish_add(c, q->seq, err);
    if (q->state != PAWL_PENDING)
        return refuse_state(op);
    q->state = PAWL_CANCELLED;
    return lite_end_pending(c, &call, PAWL_CANCELLED, err);
}

/* The list of the lease it ended under must not name it any longer: see lite_lease_leave(). */
static enum pawl_status leave_lease(struct lite *c, int64_t seq, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_CALL_READ, ARGS(INT(seq), INT(0), INT(0)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    if (st == PAWL_OK && row)
        st = lite_lease_leave(c, lite_column(q, READ_TOKEN), seq, err);
    return st;
}

enum pawl_status lite_redrive_call(struct lite *c, const struct call *as, struct pawl_err *err)
{
    struct lite_move m = { .seq = as->seq,
                           .from = as->state,
                           .to = PAWL_PENDING,
                           .tries = { .redrives = as->tries.redrives + 1 },
                           .priority = as->spec.priority,
                           .run_at_us = c->now_us,
                           .key = as->spec.key };
    enum pawl_status st = lite_lane_find(c, as->spec.queue, as->spec.type, &m.lane, err);
    if (st == PAWL_OK && m.key.data) {
        struct lite_key *k;
        st = lite_key_get(c, m.key, &k, err);
        if (st == PAWL_OK && k->turn == KEY_BLOCKED && k->head == as->seq) {
            m.pos = k->head_pos;
            m.key_no = k->head_no;
        }
    }
    if (st == PAWL_OK)
        st = leave_lease(c, as->seq, err);
    if (st == PAWL_OK)
        st = lite_run(c, SQL_ATTEMPT_OF_OUTCOME, ARGS(INT(as->seq)), NULL, err);
    return st == PAWL_OK ? lite_move(c, &m, err) : st;
}

enum pawl_status lite_redrive(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct by_id *q = &op->by_id;
    struct call call;
    enum pawl_status st = named_call(c, op, &call, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    if (!pawl_state_ended(q->state) || !call_may(q->state, PAWL_PENDING))
        return refuse_state(op);
    q->state = PAWL_PENDING;
    return lite_redrive_call(c, &call, err);
}

/* The lane a call is moved to; 0 and op->status when it cannot be made. */
static enum pawl_status lane_for(struct lite *c, struct op *op, const struct call *call, int *out,
                                 struct pawl_err *err)
{
    struct by_id *q = &op->by_id;
    struct call_spec to = call->spec;
    if (q->queue.data)
        to.queue = q->queue;
    enum pawl_status st = lite_lane_for(c, &to, out, err);
    if (st == PAWL_OK && !*out)
        op->status =
            err_set(&op->err, PAWL_FULL, "queue \"%.*s\", type \"%.*s\": %d lanes, limit %d",
                    BYTES_ARG(to.queue), BYTES_ARG(to.type), LANES_MAX, LANES_MAX);
    return st;
}

/* Its own row follows, so that it shows for good what it was moved to. A retry's run_at is ready's
 * alone. */
static enum pawl_status row_follow(struct lite *c, const struct by_id *q, const struct lite_move *m,
                                   struct pawl_err *err)
{
    struct lite_shelf to = { .a = &c->scratch };
    struct call asked;
    enum pawl_status st = lite_asked(c, &to, m->seq, false, &asked, err);
    if (st != PAWL_OK)
        return st;
    int64_t run_at_us = q->run_at_us ? m->run_at_us : asked.run_at_us;
    return lite_run(c, SQL_CALL_MOVE,
                    ARGS(INT(m->seq), INT(m->lane), INT(m->priority), INT(run_at_us)), NULL, err);
}

/* Where in its key's line a call goes that is moved: it keeps its place, unless it has none or is
 * to wait for a time. */
static enum pawl_status place_for(struct lite *c, const struct by_id *q, struct lite_move *m,
                                  struct pawl_err *err)
{
    struct lite_place at = { 0 };
    struct lite_key *k;
    bool found = false;
    if (!m->key.data)
        return PAWL_OK;
    enum pawl_status st = lite_key_get(c, m->key, &k, err);
    if (st == PAWL_OK)
        st = lite_key_place(c, m->seq, &found, &at, err);
    if (st != PAWL_OK)
        return st;
    m->later = q->run_at_us ? m->run_at_us > c->now_us : at.pos < 0;
    m->pos = found ? MAX(at.pos, 0) : k->head_pos;
    return PAWL_OK;
}

enum pawl_status lite_move_to(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct by_id *q = &op->by_id;
    struct call call;
    int lane;
    enum pawl_status st = named_call(c, op, &call, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    if (q->state != PAWL_PENDING)
        return refuse_state(op);
    st = lane_for(c, op, &call, &lane, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    struct lite_move m = { .seq = q->seq,
                           .from = PAWL_PENDING,
                           .to = PAWL_PENDING,
                           .tries = call.tries,
                           .lane = lane,
                           .priority = q->priority == PAWL_SAME ? call.spec.priority : q->priority,
                           .run_at_us =
                               q->run_at_us ? MAX(q->run_at_us, c->now_us) : call.run_at_us,
                           .expires_us = call.expires_us,
                           .key = call.spec.key,
                           .key_no = call.key_no };
    st = place_for(c, q, &m, err);
    if (st == PAWL_OK)
        st = lite_move(c, &m, err);
    return st == PAWL_OK ? row_follow(c, q, &m, err) : st;
}
