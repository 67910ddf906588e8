/*
 * claim_take.c - one call goes into the lease of the running claim, or ends because it has expired.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "store/ledger/claim.h"

bool led_claim_over(const struct claiming *g, const struct led_call *it)
{
    return it->now.expires_us && it->now.expires_us <= g->c->now_us;
}

enum pawl_status led_claim_fits(struct claiming *g, struct led_call *it, bool *out,
                                struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    bool room = !g->q->n || g->len + it->input_len <= CLAIM_LEN_MAX;
    if (it->cut && room) {
        st = led_payloads_load(g->c, &it, 1, err);
        it->cut = st != PAWL_OK;
    }
    *out = !it->cut && (!g->q->n || g->len + it->spec.input.bytes.len <= CLAIM_LEN_MAX);
    return st;
}

bool led_claim_only_quick(const struct claiming *g)
{
    return g->q->max_any && g->q->n >= (size_t)g->q->max_any;
}

bool led_claim_goes_on(const struct claiming *g)
{
    return g->q->n < (size_t)g->q->max && g->expired < CLAIM_MAX && !g->complete;
}

enum pawl_status led_claim_expire(struct claiming *g, struct led_call *it, struct pawl_err *err)
{
    enum pawl_status st =
        led_end_pending(g->c, it, call_expired_as(&it->spec, it->now.expires_us), err);
    g->expired++;
    return st == PAWL_OK ? led_told_ended(g->op, it->spec.id, err) : st;
}

/* The call's number in its key. Where several connections write it also gets the place where it
 * stands if it is handed back: behind all calls that were handed out before it. */
static void place(const struct ledger *c, struct led_key *k, const struct led_call *it,
                  struct led_stand *to)
{
    bool numbered = to->key_no;
    if (!numbered)
        to->key_no = k->next_no++;
    if (c->db->one_writer) /* it keeps the place it has */
        return;
    if (!numbered || to->pos >= LINE_FRESH) {
        to->pos = MAX(k->last_place, (k->next_no - 1) * LINE_STEP) + numbered;
        to->pos += numbered && to->pos == it->seq; /* in the list that means the place of key_no */
    }
    k->last_place = MAX(k->last_place, to->pos);
}

enum pawl_status led_claim_take(struct claiming *g, struct led_call *it, struct led_key *k,
                                int64_t position, struct pawl_err *err)
{
    struct led_stand to = it->now;
    size_t n = g->q->n;
    CHECK(n < (size_t)g->q->max && (k ? k->got : !it->spec.key.data));
    if (k)
        place(g->c, k, it, &to);
    g->n_keys += k && position == 0;
    g->held[n] = (struct held){ .seq = it->seq,
                                .run_at_us = to.run_at_us,
                                .lane = to.lane,
                                .priority = to.priority,
                                .counts = to.counts,
                                .key = k ? g->n_keys : 0,
                                .pos = k ? to.pos : 0,
                                .key_no = k ? to.key_no : 0 };
    to.place = AT_HELD;
    to.state = PAWL_PROCESSING;
    g->taken[n] = it;
    g->position[n] = position;
    g->len += it->spec.input.bytes.len;
    g->q->n++;
    return led_put(g->c, it, to, 0, err);
}
