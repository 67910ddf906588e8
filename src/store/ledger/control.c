/*
 * control.c - operations on one call or lease: extend, cancel, retry, move.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "store/ledger/flow.h"

/* ---- Extend ---------------------------------------------------------------------------------- */

/* Which of the lease's calls have a cancel request in the tables. */
static enum pawl_status cancel_requests_stored(struct ledger *c, const struct led_lease *l,
                                               bool *out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *r = NULL;
    int64_t low = INT64_MAX, high = 0;
    for (size_t i = 0; i < l->n; i++) {
        low = MIN(low, l->held[i].seq);
        high = MAX(high, l->held[i].seq);
    }
    led_int(&p, low);
    led_int(&p, high);
    enum pawl_status st = led_query(c, SQL_LEASE_CANCEL_REQUESTS, &p, &r, err);
    for (int row = 0; st == PAWL_OK && row < r->n; row++) {
        int64_t seq = led_get_int(r, row, 0);
        ssize_t at = led_lease_find(l, seq);
        if (seq < low || seq > high)
            return err_set(err, PAWL_BROKEN, "database: %s gives call %lld, which it was not asked",
                           sql_name_text[SQL_LEASE_CANCEL_REQUESTS], (long long)seq);
        if (at >= 0)
            out[at] = true;
    }
    return st;
}

static enum pawl_status cancel_requests_read(struct ledger *c, struct op *op,
                                             const struct led_lease *l, struct pawl_err *err)
{
    struct extend *q = &op->extend;
    int64_t *seqs = arena_alloc(&c->scratch, (l->n + 1) * sizeof *seqs);
    bool *requested = arena_zalloc(&c->scratch, l->n + 1, sizeof *requested);
    size_t n = 0;
    q->cancelled = arena_zalloc(op->a, l->n + 1, sizeof *q->cancelled);
    if (!seqs || !requested || !q->cancelled)
        return err_no_memory(err, "a lease");
    enum pawl_status st = cancel_requests_stored(c, l, requested, err);
    /* An earlier operation of the group may have requested a cancel: that is in memory only. */
    for (size_t i = 0; i < l->n; i++)
        if (l->state[i] == HELD_OPEN && (requested[i] || led_call_find(c, l->held[i].seq)))
            seqs[n++] = l->held[i].seq;
    if (st == PAWL_OK && n)
        st = led_calls_load(c, seqs, n, err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        const struct led_call *it = led_call_find(c, seqs[i]);
        if (it && it->now.cancel_requested)
            q->cancelled[q->n_cancelled++] = arena_copy(op->a, it->spec.id);
    }
    return st == PAWL_OK && op->a->failed ? err_no_memory(err, "a lease") : st;
}

enum pawl_status led_extend(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct extend *q = &op->extend;
    struct led_lease *l;
    int64_t last_us = 0;
    q->until_us = 0;
    q->n_cancelled = q->n_timed_out = 0;
    enum pawl_status st = led_lease_get(c, &q->token, &l, err);
    if (l && st == PAWL_OK && led_lease_over(l, c->now_us))
        l = NULL;
    if (l && st == PAWL_OK && l->until_us)
        st = led_time_out(c, op, l, &last_us, err);
    if (st != PAWL_OK)
        return st;
    if (!l || l->missing)
        return op_lost_lease(op, &q->token);
    if (l->until_us) {
        l->until_us = q->until_us = MIN(c->now_us + q->lease_us, last_us);
        CHECK(last_us > c->now_us); /* calls that are past their timeout have ended */
        l->dirty = true;
    }
    return cancel_requests_read(c, op, l, err);
}

/* ---- By id ----------------------------------------------------------------------------------- */

/* The call that an operation names; NULL: op->status says why there is none. */
static enum pawl_status named_call(struct ledger *c, struct op *op, struct led_call **out,
                                   struct pawl_err *err)
{
    struct by_id *q = &op->by_id;
    struct led_id *id;
    *out = NULL;
    enum pawl_status st = led_id_get(c, q->id, &id, err);
    if (st != PAWL_OK)
        return st;
    q->seq = id->seq;
    q->state = 0;
    if (!q->seq) {
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "no call \"%.*s\"", BYTES_ARG(q->id));
        return PAWL_OK;
    }
    st = led_call_get(c, q->seq, out, err);
    if (st == PAWL_OK && !*out)
        return led_again(c, "an id names a call that does not exist", err);
    if (st == PAWL_OK)
        st = led_id_check(q->id, *out, err);
    if (st != PAWL_OK)
        return st;
    st = led_state(c, *out, &q->state, err);
    if (st == PAWL_OK && (*out)->now.place == AT_GONE) {
        op->status = err_set(&op->err, PAWL_GONE, "call \"%.*s\" has ended and is no longer kept",
                             BYTES_ARG(q->id));
        *out = NULL;
    }
    return st;
}

static enum pawl_status refuse_state(struct op *op)
{
    op->status = err_set(&op->err, PAWL_STATE, "call \"%.*s\" is %s", BYTES_ARG(op->by_id.id),
                         pawl_state_name(op->by_id.state));
    return PAWL_OK;
}

/* The cancel request is stored under the lock of the lease: a transaction that hands the call back
 * reads requests after it has waited for that lock, so it sees this one. */
static enum pawl_status request_cancel(struct ledger *c, struct led_call *it, struct pawl_err *err)
{
    struct led_lease *l;
    bool flow = false;
    if (it->now.cancel_requested)
        return PAWL_OK;
    enum pawl_status st = led_holders_load(c, &it, 1, err);
    if (st == PAWL_OK)
        st = led_lease_get(c, &it->lease->token, &l, err);
    if (st == PAWL_OK &&
        (!l || led_lease_find(l, it->seq) < 0 || l->state[led_lease_find(l, it->seq)] != HELD_OPEN))
        st = led_again(c, "a call of a lease", err);
    if (st == PAWL_OK && c->flows)
        st = led_lane_flow(c, l->held[led_lease_find(l, it->seq)].lane, &flow, err);
    if (st == PAWL_OK && flow) /* it has begun since it was read */
        st = led_again(c, "a call that is a flow now", err);
    if (st == PAWL_OK)
        it->now.cancel_requested = true;
    return st;
}

enum pawl_status led_cancel(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct by_id *q = &op->by_id;
    struct led_call *it;
    bool flow = false;
    enum pawl_status st = named_call(c, op, &it, err);
    if (st != PAWL_OK || !it || q->state == PAWL_CANCELLED)
        return st;
    if (q->state == PAWL_PROCESSING && q->only_pending)
        return refuse_state(op);
    if (q->state == PAWL_PROCESSING)
        st = led_flow(c, it, &flow, err);
    if (st != PAWL_OK)
        return st;
    if (flow)
        return led_flow_cancel(c, it, err);
    if (q->state == PAWL_PROCESSING)
        return request_cancel(c, it, err);
    if (q->state != PAWL_PENDING)
        return refuse_state(op);
    q->state = PAWL_CANCELLED;
    return led_end_pending(c, it, PAWL_CANCELLED, err);
}

/* Turn the outcome into a row of `attempt`, which is never shown: a repeated finish still finds it.
 */
static enum pawl_status former_row(struct ledger *c, struct led_call *it, struct pawl_err *err)
{
    const struct led_outcome *o = it->now.outcome;
    struct led_attempt *t = arena_zalloc(&c->scratch, 1, sizeof *t);
    if (!t)
        return err_no_memory(err, "an attempt");
    *t = (struct led_attempt){ .older = it->ended_attempts,
                               .attempt_no = it->now.counts.attempts + it->now.counts.lost,
                               .state = it->now.state,
                               .error = o->error,
                               .node = o->node,
                               .token = o->token,
                               .started_us = o->started_us,
                               .finished_us = o->finished_us };
    it->ended_attempts = t;
    return PAWL_OK;
}

/* Choose its place in the line: a call that blocks its key goes where it was, any other to the end.
 */
static enum pawl_status line_up(struct ledger *c, const struct led_call *it, struct led_stand *to,
                                struct pawl_err *err)
{
    struct led_key *k;
    enum pawl_status st = led_key_get(c, it->spec.key, LOCK_WAIT, &k, err);
    if (st != PAWL_OK)
        return st;
    to->place = AT_LINE;
    if (k->turn == KEY_BLOCKED && k->head == it->seq) {
        to->pos = k->head_pos;
        to->key_no = k->head_no;
        return PAWL_OK;
    }
    to->key_no = 0;
    return led_line_end(c, &to->pos, err);
}

enum pawl_status led_retry_call(struct ledger *c, struct led_call *it, struct pawl_err *err)
{
    struct led_stand to = it->now;
    CHECK(it->now.place == AT_ENDED && it->now.outcome);
    to.place = AT_READY;
    enum pawl_status st = led_lease_leave(c, it->now.outcome->token, it->seq, err);
    if (st == PAWL_OK && it->spec.key.data)
        st = line_up(c, it, &to, err);
    if (st == PAWL_OK)
        st = former_row(c, it, err);
    if (st != PAWL_OK)
        return st;
    to.state = PAWL_PENDING;
    to.counts = (struct attempt_counts){ .redrives = it->now.counts.redrives + 1 };
    to.lane = it->own_lane;
    to.priority = it->own_priority;
    to.run_at_us = c->now_us;
    to.expires_us = 0;
    return led_put(c, it, to, 0, err);
}

enum pawl_status led_retry(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct by_id *q = &op->by_id;
    struct led_call *it;
    enum pawl_status st = named_call(c, op, &it, err);
    if (st != PAWL_OK || !it)
        return st;
    if (!pawl_state_ended(q->state) || !call_may(q->state, PAWL_PENDING))
        return refuse_state(op);
    st = led_flow_retry(c, op, it, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    st = led_retry_call(c, it, err);
    return st == PAWL_OK ? led_state(c, it, &q->state, err) : st;
}

/* With a run_at in the future it leaves the line; a delayed call that is due now joins it. */
static enum pawl_status line_move(struct ledger *c, struct led_stand *to, struct pawl_err *err)
{
    if (to->run_at_us > c->now_us) {
        to->place = AT_DELAYED;
        to->pos = 0;
        return PAWL_OK;
    }
    if (to->place != AT_DELAYED)
        return PAWL_OK;
    to->place = AT_LINE;
    return led_line_end(c, &to->pos, err);
}

/* Refuse to move a held call. If it has not begun, its owner may hand it back soon: the error says
 * so. Nothing is locked, because nothing changes. */
static enum pawl_status refuse_held(struct ledger *c, struct op *op, struct led_call *it,
                                    struct pawl_err *err)
{
    bool flow;
    enum pawl_status st = led_flow(c, it, &flow, err);
    if (st == PAWL_OK && flow)
        return refuse_state(op);
    if (st == PAWL_OK)
        st = led_holders_load(c, &it, 1, err);
    if (st != PAWL_OK)
        return st;
    ssize_t at = led_lease_find(it->lease, it->seq);
    CHECK(at >= 0);
    if (led_lease_begun(it->lease, (size_t)at))
        return refuse_state(op);
    op_not_begun(op, it->lease->owner);
    return PAWL_OK;
}

enum pawl_status led_move_to(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct by_id *q = &op->by_id;
    const struct led_lane *lane;
    struct led_call *it;
    enum pawl_status st = named_call(c, op, &it, err);
    if (st != PAWL_OK || !it)
        return st;
    if (q->state == PAWL_PROCESSING)
        return refuse_held(c, op, it, err);
    if (q->state != PAWL_PENDING)
        return refuse_state(op);
    struct led_stand to = it->now;
    st = led_lane(c, to.lane, &lane, err);
    if (st == PAWL_OK && q->queue.data) {
        struct led_lane_names to_names = lane->names; /* their bytes stay when lanes move */
        to_names.queue = q->queue;
        st = led_lane_for(c, &to_names, &to.lane, err);
        if (st == PAWL_OK && !to.lane)
            op->status =
                err_set(&op->err, PAWL_FULL, "queue \"%.*s\", type \"%.*s\": %d lanes, limit %d",
                        BYTES_ARG(q->queue), BYTES_ARG(to_names.type), LANES_MAX, LANES_MAX);
    }
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    if (q->priority != PAWL_SAME)
        to.priority = q->priority;
    if (q->run_at_us)
        to.run_at_us = it->own_run_at_us = MAX(q->run_at_us, c->now_us);
    if (it->spec.key.data && to.place == AT_READY)
        to.place = AT_LINE; /* it will be offered again */
    if (it->spec.key.data && q->run_at_us)
        st = line_move(c, &to, err);
    it->own_lane = to.lane;
    it->own_priority = to.priority;
    it->moved = true;
    return st == PAWL_OK ? led_put(c, it, to, 0, err) : st;
}
