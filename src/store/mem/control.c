/*
 * control.c - operations that control calls: extend, cancel, retry, move; and pausing a queue.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "store/mem/mem.h"

/* Move the lease's end, at most to the last deadline of its calls. *left: does a call remain? */
static enum pawl_status move_end(struct mem_tx *tx, struct mem_lease *l, struct extend *q,
                                 bool *left)
{
    struct mem_db *db = tx->db;
    enum pawl_status st = lease_time_out(tx, l, q);
    if (st != PAWL_OK)
        return st;
    *left = lease_first(db, l) != NULL;
    if (!*left)
        return thing_drop(db, &l->thing) ? PAWL_OK : PAWL_NO_MEMORY;
    if (!undo_save(db, &l->thing))
        return PAWL_NO_MEMORY;
    thing_unlink(db, &l->thing);
    CHECK(lease_deadline(db, l) > tx->now_us); /* calls that are past their timeout have ended */
    l->now.until_us = q->until_us = MIN(tx->now_us + q->lease_us, lease_deadline(db, l));
    thing_link(db, &l->thing);
    return PAWL_OK;
}

enum pawl_status mem_extend(struct mem_tx *tx, struct extend *q)
{
    struct mem_db *db = tx->db;
    struct mem_lease *l = lease_find_token(db, q->token);
    bool left = true;
    size_t n = 0;
    q->until_us = 0;
    q->n_cancelled = q->n_timed_out = 0;
    if (!l || lease_over(l, tx->now_us))
        return op_lost_lease(tx->op, &q->token);
    for (struct mem_call *c = lease_first(db, l); c; c = lease_next(db, c))
        n++;
    q->cancelled = arena_zalloc(tx->op->a, n + 1, sizeof *q->cancelled);
    q->timed_out = arena_zalloc(tx->op->a, n + 1, sizeof *q->timed_out);
    if (!q->cancelled || !q->timed_out)
        return PAWL_NO_MEMORY;
    enum pawl_status st = l->now.until_us ? move_end(tx, l, q, &left) : PAWL_OK;
    if (st != PAWL_OK)
        return st;
    if (!left)
        return op_lost_lease(tx->op, &q->token);
    for (struct mem_call *c = lease_first(db, l); c; c = lease_next(db, c))
        if (c->now.cancel_requested)
            q->cancelled[q->n_cancelled++] = arena_copy(tx->op->a, c->id);
    return tx->op->a->failed ? PAWL_NO_MEMORY : PAWL_OK;
}

/* The call that an operation names; if NULL, op->status says why. */
static struct mem_call *named_call(struct mem_tx *tx, struct by_id *q)
{
    struct op *op = tx->op;
    struct mem_call *c = call_by_id(tx->db, q->id);
    CHECK(!c || tx->db->calls[c->seq - 1] == c);
    q->seq = c ? c->seq : 0;
    q->state = c ? c->now.state : 0;
    if (!c)
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "no call \"%.*s\"", BYTES_ARG(q->id));
    else if (c->now.place == PLACE_GONE)
        op->status = err_set(&op->err, PAWL_GONE, "call \"%.*s\" has ended and is no longer kept",
                             BYTES_ARG(q->id));
    return op->status == PAWL_OK ? c : NULL;
}

static enum pawl_status refuse_state(struct mem_tx *tx, const struct by_id *q)
{
    tx->op->status = err_set(&tx->op->err, PAWL_STATE, "call \"%.*s\" is %s", BYTES_ARG(q->id),
                             pawl_state_name(q->state));
    return PAWL_OK;
}

static enum pawl_status request_cancel(struct mem_tx *tx, struct mem_call *c)
{
    CHECK(c->now.place == PLACE_HELD); /* only a held call can have a cancel request */
    if (c->now.cancel_requested)
        return PAWL_OK;
    if (!undo_save(tx->db, &c->thing))
        return PAWL_NO_MEMORY;
    struct stand to = c->now;
    to.cancel_requested = true;
    call_put(tx->db, c, to);
    return PAWL_OK;
}

enum pawl_status mem_cancel(struct mem_tx *tx, struct by_id *q)
{
    struct mem_call *c = named_call(tx, q);
    if (!c || c->now.state == PAWL_CANCELLED)
        return PAWL_OK;
    if (c->now.state == PAWL_PROCESSING)
        return q->only_pending ? refuse_state(tx, q) : request_cancel(tx, c);
    if (c->now.state != PAWL_PENDING)
        return refuse_state(tx, q);
    q->state = PAWL_CANCELLED;
    enum pawl_status st = call_end(tx, c, PAWL_CANCELLED);
    if (st == PAWL_OK && !key_settle(tx->db, c->now.key))
        st = PAWL_NO_MEMORY;
    return st;
}

/* The outcome as a row of `attempt` that is never shown; NULL without memory. */
static struct attempt_row *former_row(struct mem_call *c)
{
    const struct outcome *o = c->now.outcome;
    CHECK(pawl_state_ended(o->state) && o->state == c->now.state);
    struct attempt_row *t = call_blob(c, sizeof *t);
    if (!t)
        return NULL;
    *t = (struct attempt_row){ .older = c->now.newest_attempt,
                               .no = c->now.newest_attempt ? c->now.newest_attempt->no + 1 : 1,
                               .attempt_no = c->now.counts.attempts + c->now.counts.lost,
                               .state = o->state,
                               .error = o->error,
                               .node = o->node,
                               .token = o->token,
                               .started_us = o->started_us,
                               .finished_us = o->finished_us };
    return t;
}

/* Put a retried call into its line: at its old place if it blocks its key, else at the end. */
static bool line_up(struct mem_db *db, struct stand *to)
{
    to->place = PLACE_LINE;
    if (!to->blocks) {
        to->pos = seq_next(db);
        to->key_no = 0;
    }
    to->blocks = false;
    return to->pos != 0;
}

enum pawl_status call_retry(struct mem_tx *tx, struct mem_call *c)
{
    if (!lease_leave(tx->db, c) || !undo_save(tx->db, &c->thing))
        return PAWL_NO_MEMORY;
    struct attempt_row *former = former_row(c);
    if (!former)
        return PAWL_NO_MEMORY;
    struct stand to = c->now;
    to.place = PLACE_READY;
    if (to.key && !line_up(tx->db, &to))
        return PAWL_NO_MEMORY;
    to.state = PAWL_PENDING;
    to.newest_attempt = former;
    to.counts = (struct attempt_counts){ .redrives = c->now.counts.redrives + 1 };
    to.run_at_us = tx->now_us;
    to.expires_us = 0;
    call_put(tx->db, c, to);
    return key_settle(tx->db, to.key) ? PAWL_OK : PAWL_NO_MEMORY;
}

enum pawl_status mem_retry(struct mem_tx *tx, struct by_id *q)
{
    struct mem_call *c = named_call(tx, q);
    if (!c)
        return PAWL_OK;
    if (!pawl_state_ended(c->now.state) || !call_may(c->now.state, PAWL_PENDING))
        return refuse_state(tx, q);
    q->state = PAWL_PENDING;
    return call_retry(tx, c);
}

/* A call that is moved to a later time leaves the line; a delayed call that is moved to now joins
 * it. False without memory. */
static bool line_move(struct mem_tx *tx, struct stand *to)
{
    if (to->run_at_us > tx->now_us) {
        to->place = PLACE_DELAYED;
        to->pos = 0;
    } else if (to->place == PLACE_DELAYED) {
        to->place = PLACE_LINE;
        to->pos = seq_next(tx->db);
        return to->pos != 0;
    }
    return true;
}

enum pawl_status mem_move(struct mem_tx *tx, struct by_id *q)
{
    struct mem_call *c = named_call(tx, q);
    if (!c)
        return PAWL_OK;
    if (c->now.place == PLACE_HELD && !call_begun(c)) {
        const struct mem_lease *l = c->now.lease;
        op_not_begun(tx->op, l->worker.data ? l->worker : l->node);
        return PAWL_OK;
    }
    if (c->now.state != PAWL_PENDING)
        return refuse_state(tx, q);
    struct stand to = c->now;
    if (q->queue.data) {
        const struct lane *from = c->now.lane;
        struct call_spec spec = {
            .queue = q->queue, .type = from->type, .needs = from->needs, .n_needs = from->n_needs
        };
        enum pawl_status st = lane_get(tx->db, &spec, &to.lane);
        if (st == PAWL_FULL)
            tx->op->status =
                err_set(&tx->op->err, st, "queue \"%.*s\", type \"%.*s\": %d lanes, limit %d",
                        BYTES_ARG(q->queue), BYTES_ARG(from->type), LANES_MAX, LANES_MAX);
        if (st != PAWL_OK)
            return st == PAWL_FULL ? PAWL_OK : st;
    }
    if (q->priority != PAWL_SAME)
        to.priority = q->priority;
    if (q->run_at_us)
        to.run_at_us = to.own_run_at_us = MAX(q->run_at_us, tx->now_us);
    if (to.key && q->run_at_us && !line_move(tx, &to))
        return PAWL_NO_MEMORY;
    if (!undo_save(tx->db, &c->thing))
        return PAWL_NO_MEMORY;
    call_put(tx->db, c, to);
    return key_settle(tx->db, to.key) ? PAWL_OK : PAWL_NO_MEMORY;
}

enum pawl_status mem_pause(struct mem_tx *tx, struct pause *q)
{
    struct queue *queue = queue_get(tx->db, q->queue);
    if (!queue || !undo_save(tx->db, &queue->thing))
        return PAWL_NO_MEMORY;
    queue->paused = q->paused;
    return PAWL_OK;
}
