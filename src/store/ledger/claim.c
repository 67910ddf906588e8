/*
 * claim.c - the operation: leasing due calls, best first, over every lane a worker serves.
 *
 * claim_look.c finds the pairs (track, rank) in use, claim_memory.c and claim_stored.c find
 * candidates, claim_run.c decides about a candidate and takes its key's next calls with it,
 * claim_take.c puts a call into the lease, claim_show.c makes the answer. While a claim takes calls
 * no key gets a new head in `ready`: the rows that the claim has read must stay as they are.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "store/ledger/claim.h"

#include "model/needs.h"

/* ---- The lease ------------------------------------------------------------------------------- */

/* The version that the worker says it has, for the runs that it begins. An older program would read
 * it in a lease as damage. */
static enum pawl_status version_of(struct claiming *g, struct bytes *out, struct pawl_err *err)
{
    bool finished = false;
    *out = needs_one_version(g->q->has, g->q->n_has);
    enum pawl_status st = out->data ? led_finished(g->c, FLOW_STEP, &finished, err) : PAWL_OK;
    if (!finished)
        *out = BYTES_NONE;
    return st;
}

static enum pawl_status lease_write(struct claiming *g, struct pawl_err *err)
{
    const struct claim *q = g->q;
    struct led_lease *l;
    struct bytes version;
    enum pawl_status st = led_lease_make(g->c, &q->token, &l, err);
    if (st == PAWL_OK)
        st = version_of(g, &version, err);
    if (st != PAWL_OK)
        return st;
    const struct led_ahead *a = &g->c->tx->ahead;
    bool shared = a->shared && bytes_eq(a->whose, q->node);
    if (!q->lease_us && !shared) { /* not earlier: a claim that finds nothing writes nothing */
        struct led_rows *node;
        struct led_params p = { 0 };
        led_text(&p, q->node);
        st = led_query(g->c, SQL_NODE_SHARE, &p, &node, err);
        if (st == PAWL_OK)
            st = led_node_rows_check(q->node, node, err);
        if (st != PAWL_OK)
            return st;
        if (led_node_replaced(q->boot, node))
            return led_again(g->c, "the node", err);
    }
    led_sort(g->held, q->n, sizeof *g->held, led_held_compare);
    if (!led_lease_list(g->c, l, g->held, q->n))
        return err_no_memory(err, "a lease");
    l->missing = l->rewritten = false;
    l->writes = 0;
    l->dirty = l->locked = l->fresh = true;
    l->node = q->node;
    l->boot = q->boot;
    l->worker = q->worker;
    l->owner = q->worker.data ? q->worker : q->node;
    l->claimed_us = g->c->now_us;
    l->until_us = g->q->until_us = led_claim_until(q, g->taken, g->position, g->c->now_us);
    l->width = q->width;
    l->version = version;
    l->rev = 1;
    for (size_t i = 0; i < q->n; i++)
        g->taken[i]->lease = l;
    return PAWL_OK;
}

/* ---- Taking calls ---------------------------------------------------------------------------- */

/* By when their first calls are due. */
static int compare_gated(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->gated != y->gated)
        return x->gated ? 1 : -1;
    if (x->gated && x->run_at_us != y->run_at_us)
        return x->run_at_us < y->run_at_us ? -1 : 1;
    return (x->track > y->track) - (x->track < y->track);
}

/* Take calls of n pairs of one rank. Each gated one is asked by itself, so that neither those nor
 * the others have to wait: the pair whose first call has been due for longest comes first. */
static enum pawl_status take_rank(struct claiming *g, struct pair *p, size_t n,
                                  struct pawl_err *err)
{
    size_t open = 0;
    int64_t first_us = INT64_MAX;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < n; i++)
        if (!p[i].gated) {
            first_us = MIN(first_us, p[i].run_at_us);
            open++;
        }
    if (open == n)
        return led_claim_rank(g, p, n, err);
    qsort(p, n, sizeof *p, compare_gated);
    bool done = open == 0;
    for (size_t i = open; i < n && st == PAWL_OK && led_claim_goes_on(g); i++) {
        if (!done && first_us <= p[i].run_at_us) {
            st = led_claim_rank(g, p, open, err);
            done = true;
        }
        if (st == PAWL_OK)
            st = led_claim_gated(g, &p[i], err);
    }
    return st == PAWL_OK && !done ? led_claim_rank(g, p, open, err) : st;
}

static enum pawl_status take_calls(struct claiming *g, struct pawl_err *err)
{
    struct ledger *c = g->c;
    enum pawl_status st = PAWL_OK;
    c->tx->hold = true;
    if (c->tx->fresh)
        st = led_claim_memory(g, err);
    for (size_t i = 0, n; st == PAWL_OK && i < g->n_pairs && led_claim_goes_on(g); i += n) {
        struct pair *p = g->pairs + i;
        for (n = 1; i + n < g->n_pairs && p[n].rank == p->rank && p[n].last == p->last; n++)
            ;
        st = take_rank(g, p, n, err);
    }
    c->tx->hold = false;
    for (struct led_key *k = c->tx->first_key; k; k = k->newer)
        k->n_ahead = 0; /* read for this claim, and not taken */
    return st;
}

static enum pawl_status take_all(struct claiming *g, struct pawl_err *err)
{
    struct ledger *c = g->c;
    enum pawl_status st = led_claim_look(g, err);
    if (st == PAWL_OK && (c->tx->fresh || led_claim_any_due(g)))
        st = take_calls(g, err);
    if (st == PAWL_OK && g->q->n)
        st = lease_write(g, err);
    c->busy = g->q->n > 0;
    return st == PAWL_OK ? led_claim_answer(g, err) : st;
}

/* ---- The operation --------------------------------------------------------------------------- */

static bool room(struct claiming *g)
{
    size_t max = (size_t)g->q->max;
    struct arena *a = &g->c->scratch;
    /* Not zeroed: few of the places are used, and each is written when a call is taken. */
    g->taken = arena_alloc(a, max * sizeof(struct led_call *));
    g->held = arena_alloc(a, max * sizeof *g->held);
    g->position = arena_alloc(a, max * sizeof *g->position);
    return g->taken && g->held && g->position;
}

static enum pawl_status node_asked(struct ledger *c, const struct claim *q, bool *replaced,
                                   struct pawl_err *err)
{
    struct led_rows *node = c->tx->ahead.node;
    struct led_params p = { 0 };
    enum pawl_status st = PAWL_OK;
    led_text(&p, q->node);
    if (!node || !bytes_eq(c->tx->ahead.whose, q->node))
        st = led_query(c, SQL_NODE_READ, &p, &node, err);
    if (st == PAWL_OK)
        st = led_node_rows_check(q->node, node, err);
    *replaced = st == PAWL_OK && led_node_replaced(q->boot, node);
    return st;
}

enum pawl_status led_claim(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct claim *q = &op->claim;
    struct claiming g = { .c = c, .op = op, .q = q, .next_us = INT64_MAX };
    struct led_lease *l;
    bool replaced = false;
    q->calls = NULL;
    q->states = NULL;
    q->n = 0;
    q->run_max = MAX(q->run_max, 1);
    q->more = false;
    q->next_due_us = q->until_us = 0;
    if (!room(&g))
        return err_no_memory(err, "a claim");
    enum pawl_status st = led_lanes_shape(c, q->has, q->n_has, err);
    if (st == PAWL_OK)
        st = led_lease_get(c, &q->token, &l, err);
    if (st == PAWL_OK && !l && !q->lease_us)
        st = node_asked(c, q, &replaced, err);
    if (st != PAWL_OK)
        return st;
    if (l) {
        st = led_claim_repeat(&g, l, err);
    } else if (replaced) {
        op->status = err_set(&op->err, PAWL_LOST_LEASE, "node \"%.*s\" is no longer this process",
                             BYTES_ARG(q->node));
        return PAWL_OK;
    } else {
        q->until_us = q->lease_us ? c->now_us + q->lease_us : 0;
        st = take_all(&g, err);
        if (q->n == 0)
            q->until_us = 0;
    }
    return st == PAWL_OK ? led_claim_show(&g, err) : st;
}
