/*
 * claim_memory.c - the calls that a claim takes from memory: those that its own group made ready
 * and that are not stored in `ready`.
 *
 * They are new calls without a key, new calls that are the head of their key, and heads of keys
 * that the group has freed, read from the stored part of the line. They are taken only while
 * nothing that is stored is due; else they are written, and the database sorts them among the
 * others. A call that is taken from memory is never written to `ready`.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/ledger/claim.h"

/* ---- Heads of keys --------------------------------------------------------------------------- */

enum pawl_status led_claim_heads(struct claiming *g, struct pawl_err *err)
{
    struct ledger *c = g->c;
    struct led_key **v = NULL;
    size_t n = 0, m = 0;
    int64_t room = g->q->max;
    enum pawl_status st = led_keys_headless(c, false, &v, &n, err);
    int64_t *max = st == PAWL_OK ? arena_alloc(&c->scratch, (n + 1) * sizeof *max) : NULL;
    if (st == PAWL_OK && !max)
        st = err_no_memory(err, "a claim");
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct led_key *k = v[i];
        if (room <= 0) { /* the claim will be full: the key gets its head when it is written */
            led_key_turn(c, k);
            continue;
        }
        max[m] = MIN(MIN((int64_t)g->q->run_max, led_line_stored(k)), room);
        room -= max[m];
        v[m++] = k;
    }
    if (st == PAWL_OK && m)
        st = led_lines_take(c, v, max, m, CLAIM_LEN_MAX, err);
    for (size_t i = 0; i < m && st == PAWL_OK; i++) {
        if (!v[i]->n_ahead)
            return led_line_missing(v[i], err);
        led_line_offer(c, v[i], *v[i]->ahead++);
        v[i]->n_ahead--;
    }
    return st;
}

/* ---- Candidates ------------------------------------------------------------------------------ */

struct candidate {
    struct led_call *call;
    bool last; /* of the queue that comes last in its rank */
};

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->call->now.priority != y->call->now.priority)
        return x->call->now.priority > y->call->now.priority ? -1 : 1;
    if (x->last != y->last)
        return y->last ? -1 : 1;
    return led_claim_compare(&x->call, &y->call);
}

/* Can it be claimed, now or later, and is not in `ready` as it is stored? */
static bool is_unstored(const struct led_call *it)
{
    return it->now.place == AT_READY && it->was.place != AT_READY && !it->partial && !it->lean;
}

/* Those that the claim serves and that are due, best first; of those that are due later, when. */
static enum pawl_status gather(struct claiming *g, struct candidate **out, size_t *out_n,
                               struct pawl_err *err)
{
    struct ledger *c = g->c;
    size_t all = 0;
    enum pawl_status st = PAWL_OK;
    for (const struct led_call *it = c->tx->first_call; it; it = it->newer)
        all += is_unstored(it);
    *out = arena_alloc(&c->scratch, (all + 1) * sizeof **out);
    *out_n = 0;
    if (!*out)
        return err_no_memory(err, "a claim");
    for (struct led_call *it = c->tx->first_call; it && st == PAWL_OK; it = it->newer) {
        struct pair of = { .track =
                               (int64_t)it->now.lane * 2 + counts_retry_alone(it->now.counts) };
        bool served = false;
        if (is_unstored(it))
            st = led_claim_serves(g, &of, &served, err);
        if (served && of.gated) /* it is asked when it is stored */
            g->left = true;
        else if (served && it->now.run_at_us <= c->now_us)
            (*out)[(*out_n)++] = (struct candidate){ it, of.last };
        else if (served)
            g->next_us = MIN(g->next_us, it->now.run_at_us);
    }
    qsort(*out, *out_n, sizeof **out, compare_candidates);
    return st;
}

enum pawl_status led_claim_memory(struct claiming *g, struct pawl_err *err)
{
    struct candidate *v = NULL;
    size_t n = 0;
    enum pawl_status st = gather(g, &v, &n, err);
    for (size_t i = 0; i < n && st == PAWL_OK && led_claim_goes_on(g); i++)
        st = led_claim_candidate(g, v[i].call, &(bool){ false }, err);
    for (size_t i = 0; i < n && st == PAWL_OK && !g->left; i++)
        g->left = v[i].call->now.place == AT_READY;
    return st;
}
