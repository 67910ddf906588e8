/*
 * claim_memory.c - the calls that a claim takes from memory: the new calls of its own group.
 *
 * They are taken when nothing that is stored is due, and then they are never written to `ready`.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "store/ledger/claim.h"

static int compare_fresh(const void *a, const void *b, void *q)
{
    const struct led_call *x = *(struct led_call *const *)a, *y = *(struct led_call *const *)b;
    const struct bytes *last = &((const struct claim *)q)->last;
    if (x->now.priority != y->now.priority)
        return x->now.priority > y->now.priority ? -1 : 1;
    bool x_last = last->data && bytes_eq(x->spec.queue, *last);
    bool y_last = last->data && bytes_eq(y->spec.queue, *last);
    if (x_last != y_last)
        return y_last ? -1 : 1;
    return led_claim_compare(a, b);
}

enum pawl_status led_claim_memory(struct claiming *g, struct pawl_err *err)
{
    struct ledger *c = g->c;
    struct led_call **v;
    size_t n = 0, all = 0;
    enum pawl_status st = PAWL_OK;
    for (struct led_call *it = c->tx->first_call; it; it = it->newer)
        all += it->fresh;
    v = arena_alloc(&c->scratch, (all + 1) * sizeof(struct led_call *));
    if (!v)
        return err_no_memory(err, "a claim");
    for (struct led_call *it = c->tx->first_call; it && st == PAWL_OK; it = it->newer) {
        struct pair of = { .track = (int64_t)it->now.lane * 2 };
        bool served = false;
        if (it->fresh && it->now.place == AT_READY && it->now.run_at_us <= c->now_us)
            st = led_claim_serves(g, &of, &served, err);
        if (served)
            v[n++] = it;
    }
    qsort_r(v, n, sizeof(struct led_call *), compare_fresh, g->q);
    for (size_t i = 0; i < n && st == PAWL_OK && led_claim_goes_on(g); i++)
        st = led_claim_candidate(g, v[i], &(bool){ false }, err);
    return st;
}
