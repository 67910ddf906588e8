/*
 * claim_show.c - the answer of a claim: the calls it took, or those of a lease whose answer was
 * lost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "store/ledger/claim.h"

int led_held_compare(const void *a, const void *b)
{
    const struct held *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* The states of the objects whose calls come first in their runs. */
static enum pawl_status states_load(struct claiming *g, struct pawl_err *err)
{
    struct claim *q = g->q;
    struct bytes *types = arena_alloc(&g->c->scratch, (q->n + 1) * sizeof *types);
    struct bytes *keys = arena_alloc(&g->c->scratch, (q->n + 1) * sizeof *keys);
    size_t n = 0;
    bool any = false;
    if (!types || !keys)
        return err_no_memory(err, "a claim");
    for (size_t i = 0; i < q->n; i++) {
        const struct led_lane *lane;
        any = any || g->taken[i]->spec.key.data;
        if (!g->taken[i]->spec.key.data || g->position[i] > 0)
            continue;
        enum pawl_status st = led_lane(g->c, g->taken[i]->now.lane, &lane, err);
        if (st != PAWL_OK)
            return st;
        keys[n] = g->taken[i]->spec.key;
        types[n++] = lane->names.type;
    }
    if (any && !(q->states = arena_zalloc(g->op->a, q->n, sizeof *q->states)))
        return err_no_memory(err, "a claim");
    return n ? led_objects_load(g->c, types, keys, n, err) : PAWL_OK;
}

static enum pawl_status show_state(struct claiming *g, size_t i, struct pawl_err *err)
{
    struct claim *q = g->q;
    const struct led_call *it = g->taken[i];
    struct led_object *o;
    if (!it->spec.key.data || g->position[i] > 0)
        return PAWL_OK;
    enum pawl_status st = led_object_get(g->c, q->calls[i].spec.type, it->spec.key, &o, err);
    if (st == PAWL_OK) {
        q->states[i] = o->state;
        q->states[i].payload.bytes = arena_copy(g->op->a, o->state.payload.bytes);
    }
    return st;
}

enum pawl_status led_claim_show(struct claiming *g, struct pawl_err *err)
{
    struct claim *q = g->q;
    q->calls = arena_zalloc(g->op->a, q->n + 1, sizeof *q->calls);
    enum pawl_status st = q->calls ? states_load(g, err) : err_no_memory(err, "a claim");
    for (size_t i = 0; i < q->n && st == PAWL_OK; i++) {
        st = led_show(g->c, g->op->a, g->taken[i], WITH_INPUT | LED_AS_OWNER, &q->calls[i], err);
        if (st == PAWL_OK)
            st = show_state(g, i, err);
        q->calls[i].position = g->position[i];
    }
    return st == PAWL_OK && g->op->a->failed ? err_no_memory(err, "a claim") : st;
}

/* A call of a run is sorted by the first call of the run that is left. */
struct left {
    const struct held *held, *lead;
    int64_t position;
};

static int compare_claimed(const void *a, const void *b)
{
    const struct left *x = a, *y = b;
    const struct held *p = x->lead, *q = y->lead;
    if (p == q)
        return (x->position > y->position) - (x->position < y->position);
    if (p->priority != q->priority)
        return p->priority > q->priority ? -1 : 1;
    if (p->run_at_us != q->run_at_us)
        return p->run_at_us < q->run_at_us ? -1 : 1;
    return led_held_compare(p, q);
}

static struct left left_of(const struct led_lease *l, size_t i)
{
    struct left out = { .held = &l->held[i] };
    int before;
    for (; (before = l->run[i].before) >= 0 && l->state[before] == HELD_OPEN; i = (size_t)before)
        out.position++;
    out.lead = &l->held[i];
    return out;
}

enum pawl_status led_claim_repeat(struct claiming *g, const struct led_lease *l,
                                  struct pawl_err *err)
{
    struct claim *q = g->q;
    struct left *v = arena_alloc(&g->c->scratch, (l->n + 1) * sizeof *v);
    int64_t *seqs = arena_alloc(&g->c->scratch, (l->n + 1) * sizeof *seqs);
    size_t n = 0;
    if (!v || !seqs)
        return err_no_memory(err, "a claim");
    for (size_t i = 0; i < l->n; i++)
        if (l->state[i] == HELD_OPEN) {
            seqs[n] = l->held[i].seq;
            v[n++] = left_of(l, i);
        }
    enum pawl_status st = led_calls_load(g->c, seqs, n, err);
    qsort(v, n, sizeof *v, compare_claimed);
    q->until_us = l->until_us;
    for (size_t i = 0; st == PAWL_OK && i < n && q->n < (size_t)q->max; i++) {
        g->taken[q->n] = led_call_find(g->c, v[i].held->seq);
        g->position[q->n] = v[i].position;
        if (!g->taken[q->n])
            return led_again(g->c, "a call of a lease", err);
        q->n++;
    }
    if (st == PAWL_OK)
        st = led_holders_load(g->c, g->taken, q->n, err);
    return st == PAWL_OK ? led_payloads_load(g->c, g->taken, q->n, err) : st;
}
