/*
 * move.c - the function that moves a call between places, in memory; its key's numbers follow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/ledger/flow.h"

/* Is it a held call of a run whose first call is held as well? It is then handed back, or ends
 * cancelled. */
static bool is_behind(const struct led_call *call, const struct led_key *k)
{
    return call->now.place == AT_HELD && k->turn == KEY_HELD && k->head != call->seq;
}

static void leave(struct led_call *call, struct led_key *k, int64_t behind)
{
    switch (call->now.place) {
    case AT_READY:
        k->waiting--;
        if (k->turn == KEY_OFFERED && k->head == call->seq)
            k->turn = KEY_IDLE;
        break;
    case AT_LINE:
        k->waiting--;
        if (call->joined)
            led_line_left(k, call);
        else
            k->moving = true;
        break;
    case AT_DELAYED:
        k->later--;
        break;
    case AT_HELD:
        CHECK(k->held > 0);
        k->held--;
        if (k->turn == KEY_HELD && k->head == call->seq)
            k->head = behind;
        if (k->turn == KEY_HELD && !k->held)
            k->turn = KEY_IDLE;
        break;
    case AT_ENDED:
        if (k->turn == KEY_BLOCKED && k->head == call->seq) {
            k->turn = KEY_IDLE; /* the call that blocked the key is retried, or no longer blocks it
                                 */
            k->since_us = 0;
        }
        break;
    case AT_NONE:
    case AT_GONE:
        break;
    }
}

static void enter(struct ledger *c, struct led_call *call, const struct led_stand *to,
                  struct led_key *k, bool was_behind)
{
    switch (to->place) {
    case AT_READY:
        led_key_offer(k, call->seq, to);
        k->waiting++;
        break;
    case AT_LINE:
        k->waiting++;
        k->moving = true;
        break;
    case AT_DELAYED:
        k->later++;
        break;
    case AT_HELD:
        k->held++;
        if (k->turn != KEY_HELD)
            k->head = call->seq;
        k->turn = KEY_HELD;
        break;
    case AT_ENDED:
        if (call->now.place == AT_HELD && !was_behind)
            k->ended_us = c->now_us;
        if (to->outcome->keep_until_us == INT64_MAX) {
            k->turn = KEY_BLOCKED;
            k->head = call->seq;
            k->head_pos = to->pos;
            k->head_no = to->key_no;
            k->since_us = c->now_us;
        }
        break;
    case AT_NONE:
    case AT_GONE:
        break;
    }
}

enum pawl_status led_put(struct ledger *c, struct led_call *call, struct led_stand to,
                         int64_t behind, struct pawl_err *err)
{
    struct led_key *k;
    enum pawl_state from = call->now.state;
    enum pawl_status st = PAWL_OK;
    bool flowless = led_flowless(c, call->now.lane);
    if (!flowless)
        st = led_state(c, call, &from, err);
    if (st != PAWL_OK)
        return st;
    /* A flow that waits stays PENDING where it is stored. */
    CHECK(call->now.state == to.state || call_may(from, to.state) ||
          (!flowless && call_may(call->now.state, to.state)));
    CHECK((to.place >= AT_READY && to.place <= AT_DELAYED) == (to.state == PAWL_PENDING));
    if (to.place != AT_ENDED && to.place != AT_GONE)
        to.outcome = NULL;
    if (to.place == AT_ENDED)
        to.cancel_requested = false;
    if (call->spec.watch || call->now.marks || !flowless)
        st = led_moved_add(c, call, &to, err);
    if (st != PAWL_OK)
        return st;
    if (to.place != AT_HELD)
        to.marks = 0;
    if (call->spec.key.data) {
        st = led_key_get(c, call->spec.key, LOCK_WAIT, &k, err);
        if (st == PAWL_OK)
            st = led_key_counts(c, k, call, err);
        if (st != PAWL_OK)
            return st;
        bool was_behind = is_behind(call, k);
        leave(call, k, behind);
        enter(c, call, &to, k, was_behind);
        k->dirty = true;
        c->tx->delayed = c->tx->delayed || call->now.place == AT_DELAYED || to.place == AT_DELAYED;
        led_key_turn(c, k);
    }
    bool here = to.state == PAWL_PENDING || call->now.state == PAWL_PENDING;
    c->tx->news = c->tx->news || (here && !c->tx->hold);
    if (to.place != AT_HELD) {
        call->left = call->lease ? call->lease : call->left;
        call->lease = NULL;
    }
    call->now = to;
    return PAWL_OK;
}

enum pawl_status led_end_pending(struct ledger *c, struct led_call *call, enum pawl_state state,
                                 struct pawl_err *err)
{
    struct led_outcome *o = arena_zalloc(&c->scratch, 1, sizeof *o);
    struct led_stand to = call->now;
    if (!o)
        return err_no_memory(err, "an outcome");
    o->finished_us = c->now_us;
    o->keep_until_us = c->now_us + (call->spec.keep_us ? call->spec.keep_us : c->retention_us);
    to.place = AT_ENDED;
    to.state = state;
    to.outcome = o;
    to.lane = call->own_lane;
    to.priority = call->own_priority;
    return led_put(c, call, to, 0, err);
}

enum pawl_status led_told_ended(struct op *op, struct bytes id, struct pawl_err *err)
{
    /* Room for 8, 16, 32, ...: memory of an arena cannot be resized, so grow by doubling. */
    size_t n = op->n_ended;
    if (n == 0 || (n >= 8 && (n & (n - 1)) == 0)) {
        struct bytes *v = arena_zalloc(op->a, n ? n * 2 : 8, sizeof *v);
        if (!v)
            return err_no_memory(err, "ended calls");
        if (n)
            memcpy(v, op->ended, n * sizeof *v);
        op->ended = v;
    }
    op->ended[n] = arena_copy(op->a, id);
    if (!op->ended[n].data)
        return err_no_memory(err, "ended calls");
    op->n_ended++;
    return PAWL_OK;
}
