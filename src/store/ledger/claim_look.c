/*
 * claim_look.c - which pairs (track, rank) have calls, asked before a claim takes any and after it.
 *
 * The pairs in use are found by skipping through the index of `ready`. The first look also finds
 * what has to be taken up before a claim: the inbox, key notes of keys, delayed calls whose time
 * has come. The last look says whether more is due, and when.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/ledger/claim.h"

/* Another transaction held a key: its calls are looked at again after this time. */
#define PASSED_US (5 * MS_US)

/* ---- Which pairs ----------------------------------------------------------------------------- */

static bool named(const struct bytes *v, size_t n, struct bytes name)
{
    for (size_t i = 0; i < n; i++)
        if (bytes_eq(v[i], name))
            return true;
    return n == 0;
}

bool led_claim_quick(const struct claim *q, struct bytes type)
{
    return !q->max_any || (q->n_quick && named(q->quick, q->n_quick, type));
}

enum pawl_status led_claim_serves(struct claiming *g, struct pair *p, bool *out,
                                  struct pawl_err *err)
{
    const struct claim *q = g->q;
    const struct led_lane *lane;
    bool paused = false;
    *out = p->last = p->quick = p->gated = false;
    if (q->no_retry_alone && p->track % 2)
        return PAWL_OK;
    enum pawl_status st = led_lane_try(g->c, (int)(p->track / 2), &lane, err);
    /* Calls whose lane does not exist are damaged; claims leave them alone. */
    if (st != PAWL_OK || !lane || !led_lane_served(g->c, lane->number))
        return st;
    struct bytes queue = lane->names.queue, type = lane->names.type;
    if (!named(q->queues, q->n_queues, queue) || !named(q->types, q->n_types, type) ||
        (q->without.data && bytes_eq(queue, q->without) && led_claim_quick(q, type)))
        return st;
    p->last = q->last.data && bytes_eq(queue, q->last);
    p->gated = led_gated(g->c, lane);
    p->quick = !p->gated && led_claim_quick(q, type);
    st = led_lane_paused(g->c, (int)(p->track / 2), &paused, err);
    *out = !paused;
    return st;
}

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->last != y->last)
        return y->last ? -1 : 1;
    return (x->track > y->track) - (x->track < y->track);
}

/* The pairs of an answer of ready_pairs or ready_known that the claim serves. */
static enum pawl_status pairs_take(struct claiming *g, const struct led_rows *r,
                                   struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    g->n_pairs = 0;
    g->pairs = arena_alloc(&g->c->scratch, ((size_t)r->n + 1) * sizeof *g->pairs);
    if (!g->pairs)
        return err_no_memory(err, "a claim");
    for (int i = 0; i < r->n && st == PAWL_OK; i++)
        st = led_ready_check(led_get_int(r, i, 0), led_get_int(r, i, 1), led_get_int(r, i, 2), err);
    if (st == PAWL_OK)
        st = led_gates_read(g->c, &(bool){ false }, err);
    if (st != PAWL_OK)
        return st;
    led_cursors_answered(g->c, r);
    for (int i = 0; i < r->n && st == PAWL_OK; i++) {
        struct pair p = { .track = led_get_int(r, i, 0),
                          .rank = led_get_int(r, i, 1),
                          .run_at_us = led_get_int(r, i, 2) };
        bool served = false;
        st = led_claim_serves(g, &p, &served, err);
        if (served)
            g->pairs[g->n_pairs++] = p;
    }
    qsort(g->pairs, g->n_pairs, sizeof *g->pairs, compare_pairs);
    return st;
}

/* ---- The first look and the last ------------------------------------------------------------- */

static void pairs_ask(struct ledger *c, struct led_batch *b, bool last)
{
    c->tx->ahead.by_cursors = led_cursors_trusted(c, last);
    c->tx->ahead.full |= !c->tx->ahead.by_cursors;
    if (c->tx->ahead.by_cursors)
        led_cursors_ask(c, b, &c->tx->ahead.pairs);
    else
        led_batch_ask(b, SQL_READY_PAIRS, NULL, &c->tx->ahead.pairs);
}

static void look_ask(struct ledger *c, struct led_batch *b)
{
    led_batch_ask(b, SQL_CLAIM_LOOK, NULL, &c->tx->ahead.look);
    pairs_ask(c, b, false);
}

void led_claim_ask_node(struct ledger *c, struct led_batch *b, const struct claim *q, bool likely)
{
    struct led_params p = { 0 };
    led_text(&p, q->node);
    /* A shared lock is a write: it is taken only where the claim is likely to find something. */
    c->tx->ahead.shared = (c->busy || likely) && !q->lease_us;
    led_batch_ask(b, c->tx->ahead.shared ? SQL_NODE_SHARE : SQL_NODE_READ, &p, &c->tx->ahead.node);
    c->tx->ahead.whose = q->node;
}

void led_claim_ask(struct ledger *c, struct led_batch *b)
{
    look_ask(c, b);
    c->tx->ahead.asked = true;
}

bool led_claim_any_due(const struct claiming *g)
{
    for (size_t i = 0; i < g->n_pairs; i++)
        if (g->pairs[i].run_at_us <= g->c->now_us &&
            !(g->pairs[i].gated && led_gate_shut(g->c, g->pairs[i].track)))
            return true;
    return false;
}

/* Run the queries of a look; `write`: after everything that is decided is written. */
static enum pawl_status look_now(struct claiming *g, bool write, struct pawl_err *err)
{
    struct ledger *c = g->c;
    struct led_batch *b = arena_alloc(&c->scratch, sizeof *b);
    if (!b)
        return err_no_memory(err, "a claim");
    b->n = 0;
    if (write)
        return led_flush_ask(c, look_ask, err);
    look_ask(c, b);
    return led_batch_run(c, b, err);
}

/* Ask for every pair that is stored. */
static enum pawl_status pairs_again(struct claiming *g, struct pawl_err *err)
{
    struct led_batch *b = arena_alloc(&g->c->scratch, sizeof *b);
    if (!b)
        return err_no_memory(err, "a claim");
    b->n = 0;
    pairs_ask(g->c, b, false);
    enum pawl_status st = led_batch_run(g->c, b, err);
    return st == PAWL_OK ? pairs_take(g, g->c->tx->ahead.pairs, err) : st;
}

/* Columns of claim_look; it has one row. */
enum { LOOK_INBOX, LOOK_KEY_NOTE, LOOK_JOINS };

bool led_claim_no_key_notes(const struct ledger *c)
{
    const struct led_rows *r = c->tx->ahead.look;
    CHECK(!r || r->n == 1);
    return r && led_null(r, 0, LOOK_KEY_NOTE);
}

/* Do what comes before a claim: the inbox, key notes, delayed calls whose time has come. */
static enum pawl_status take_up(struct ledger *c, struct pawl_err *err)
{
    const struct led_rows *r = c->tx->ahead.look;
    int64_t joined;
    enum pawl_status st = PAWL_OK;
    CHECK(r->n == 1);
    bool due = !led_null(r, 0, LOOK_JOINS) && led_get_int(r, 0, LOOK_JOINS) <= c->now_us;
    if (!led_null(r, 0, LOOK_INBOX))
        st = led_inbox_move(c, CLAIM_MAX, err);
    if (st == PAWL_OK && !led_null(r, 0, LOOK_KEY_NOTE))
        st = led_key_notes_fold(c, err);
    if (st == PAWL_OK && due)
        st = led_keys_join_due(c, CLAIM_MAX, &joined, err);
    return st;
}

/* The pairs that are stored and served. */
static enum pawl_status look_first(struct claiming *g, struct pawl_err *err)
{
    struct ledger *c = g->c;
    struct led_ahead *a = &c->tx->ahead;
    enum pawl_status st = PAWL_OK;
    if (!a->asked || c->tx->news)
        st = look_now(g, c->tx->news, err);
    unsigned writes = c->tx->writes;
    if (st == PAWL_OK)
        st = take_up(c, err);
    if (st == PAWL_OK && (c->tx->news || c->tx->writes != writes))
        st = look_now(g, true, err);
    a->asked = false;
    if (st == PAWL_OK)
        st = pairs_take(g, a->pairs, err);
    /* Nothing is due behind the cursors. Other processes may have written rows before them. */
    if (st == PAWL_OK && a->by_cursors && !led_claim_any_due(g) && led_cursors_doubt(c))
        st = pairs_again(g, err);
    c->cursors.dry = st == PAWL_OK && !led_claim_any_due(g);
    return st;
}

enum pawl_status led_claim_look(struct claiming *g, struct pawl_err *err)
{
    struct ledger *c = g->c;
    enum pawl_status st = look_first(g, err);
    bool due = st == PAWL_OK && led_claim_any_due(g), write = false;
    if (st == PAWL_OK && !due && led_keys_unsettled(c))
        st = led_claim_heads(g, err);
    /* A line has to be written before it is known which call is its head. */
    for (const struct led_key *k = c->tx->due; k && st == PAWL_OK; k = k->next_due)
        write = write || k->moving;
    /* Stored calls and calls in memory are due: the database sorts them. */
    if (due)
        write = c->tx->fresh || led_keys_unsettled(c);
    if (st == PAWL_OK && write) {
        st = look_now(g, true, err);
        if (st == PAWL_OK)
            st = pairs_take(g, c->tx->ahead.pairs, err);
    }
    g->writes = c->tx->writes;
    return st;
}

void led_claim_ask_last(struct ledger *c, struct led_batch *b)
{
    if (c->tx->delayed) /* else the first delayed call is the one that the first look found */
        led_batch_ask(b, SQL_CLAIM_LOOK, NULL, &c->tx->ahead.look);
    pairs_ask(c, b, true);
}

static void next_due_by(struct claim *q, int64_t at_us)
{
    if (at_us < FLOW_NEVER_US && (!q->next_due_us || at_us < q->next_due_us))
        q->next_due_us = at_us;
}

/* `more` and `next_due_us`, from the pairs and from what is in memory. */
static void look_ahead(struct claiming *g)
{
    struct claim *q = g->q;
    const struct led_ahead *a = &g->c->tx->ahead;
    int64_t now_us = g->c->now_us;
    q->more = q->more || g->left || led_claim_any_due(g);
    for (size_t i = 0; i < g->n_pairs; i++)
        if (!(g->pairs[i].gated && led_gate_shut(g->c, g->pairs[i].track)))
            next_due_by(q, g->pairs[i].run_at_us);
    if (g->next_us != INT64_MAX)
        next_due_by(q, g->next_us);
    CHECK(a->look && a->look->n == 1);
    if (!led_null(a->look, 0, LOOK_JOINS))
        next_due_by(q, MAX(led_get_int(a->look, 0, LOOK_JOINS), now_us + 1));
    /* Only calls of keys that other transactions hold are left: asking again at once is useless. */
    if (g->passed && q->n == 0) {
        q->more = false;
        q->next_due_us = now_us + PASSED_US;
    }
    /* A key that another transaction has locked got a call: that transaction may not see it. */
    if (g->c->tx->noted)
        next_due_by(q, now_us + PASSED_US);
    /* Rows that other processes write before our cursors are found only by a full look, and no
     * notification says so: a call must not wait until the next one arrives. */
    if (!a->full)
        next_due_by(q, now_us + led_cursors_rest(g->c));
    if (q->more)
        q->next_due_us = 0;
}

void led_claim_late(struct ledger *c)
{
    struct claiming g = {
        .c = c, .q = c->tx->late, .passed = c->tx->late_passed, .next_us = INT64_MAX
    };
    if (led_lanes_shape(c, g.q->has, g.q->n_has, NULL) == PAWL_OK &&
        pairs_take(&g, c->tx->ahead.pairs, NULL) == PAWL_OK)
        look_ahead(&g);
    else
        g.q->more = true; /* the group is stored: let the next claim look */
}

enum pawl_status led_claim_answer(struct claiming *g, struct pawl_err *err)
{
    struct ledger *c = g->c;
    enum pawl_status st = PAWL_OK;
    bool stored = g->writes == c->tx->writes && !c->tx->news && !c->tx->delayed;
    if (stored && !led_keys_unsettled(c)) {
        look_ahead(g);
        /* Hundreds of claims for other types may follow in the group, and one look is enough. */
        c->tx->ahead.asked = true;
        return PAWL_OK;
    }
    c->tx->late = g->q;
    c->tx->late_passed = g->passed;
    if (c->tx->last_op)
        return PAWL_OK;
    st = led_flush_ask(c, led_claim_ask_last, err);
    if (st == PAWL_OK)
        led_claim_late(c);
    c->tx->late = NULL;
    return st;
}
