/*
 * gate.c - rules of a feature that hold calls back by their lane ("Gates" in README.md): limits.
 *
 * Every claim reads the revision of the rules with the paused queues, in a statement that keeps
 * them from changing until its transaction ends; the feature reads them again when the revision has
 * moved. So a change binds every claim that begins after it, and costs the others nothing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "base/limits.h"
#include "store/ledger/claim.h"

enum pawl_status led_gates_read(struct ledger *c, bool *out, struct pawl_err *err)
{
    *out = false;
    if (!c->gates)
        return PAWL_OK;
    enum pawl_status st = led_paused_read(c, err);
    if (st != PAWL_OK || c->tx->limits_rev == 0)
        return st;
    if (!c->tx->gates_read)
        st = c->gates->gates_read(c, c->tx->limits_rev, &c->gate_memory, err);
    c->tx->gates_read = *out = st == PAWL_OK;
    return st;
}

static struct gated_lane gated_lane(const struct led_lane *lane)
{
    return (struct gated_lane){ lane->names.queue, lane->names.type, lane->names.gate };
}

bool led_gated(const struct ledger *c, const struct led_lane *lane)
{
    struct gated_lane g = gated_lane(lane);
    return c->tx->gates_read && c->gates->gated(c->gate_memory, &g);
}

/* The gate that the rules want for a call. */
static struct bytes gate_of(struct ledger *c, const struct led_lane_names *names, struct bytes key)
{
    struct gated_lane g = { names->queue, names->type, BYTES_NONE };
    return key.data ? c->gates->gate_of(c->gate_memory, &c->scratch, &g, key) : BYTES("");
}

enum pawl_status led_lane_names(struct ledger *c, const struct call_spec *s,
                                struct led_lane_names *out, struct pawl_err *err)
{
    bool any = false;
    *out = (struct led_lane_names){ s->queue, s->type, s->needs, s->n_needs, BYTES("") };
    enum pawl_status st = s->key.data ? led_gates_read(c, &any, err) : PAWL_OK;
    if (st == PAWL_OK && any)
        out->gate = gate_of(c, out, s->key);
    return st == PAWL_OK && !out->gate.data ? err_no_memory(err, "a lane") : st;
}

void led_gates_end(struct ledger *c)
{
    if (c->gate_memory)
        c->gates->gates_free(c->gate_memory);
    c->gate_memory = NULL;
}

enum pawl_status led_gate_closed(struct ledger *c, int lane, bool *out, struct pawl_err *err)
{
    const struct led_lane *it = NULL;
    bool any = false;
    *out = false;
    enum pawl_status st = led_gates_read(c, &any, err);
    if (st == PAWL_OK && any)
        st = led_lane_try(c, lane, &it, err);
    if (st != PAWL_OK || !it || !led_gated(c, it))
        return st;
    struct gated_lane g = gated_lane(it);
    return c->gates->gate_shut(c, c->gate_memory, &g, out, err);
}

/* ---- Claims ---------------------------------------------------------------------------------- */

bool led_gate_shut(const struct ledger *c, int64_t track)
{
    for (size_t i = 0; i < c->tx->n_shut; i++)
        if (c->tx->shut[i] == track)
            return true;
    return false;
}

static enum pawl_status shut(struct ledger *c, int64_t track, struct pawl_err *err)
{
    struct led_cache *tx = c->tx;
    if (tx->n_shut == tx->shut_room) {
        size_t room = tx->shut_room ? tx->shut_room * 2 : 16;
        int64_t *v = arena_alloc(&c->scratch, room * sizeof *v);
        if (!v)
            return err_no_memory(err, "a claim");
        if (tx->n_shut)
            memcpy(v, tx->shut, tx->n_shut * sizeof *v);
        tx->shut = v;
        tx->shut_room = room;
    }
    tx->shut[tx->n_shut++] = track;
    return PAWL_OK;
}

enum pawl_status led_claim_regate(struct claiming *g, struct led_call *it, bool *out,
                                  struct pawl_err *err)
{
    struct ledger *c = g->c;
    const struct led_lane *lane;
    struct led_stand to = it->now;
    *out = false;
    if (!c->tx->gates_read)
        return PAWL_OK;
    enum pawl_status st = led_lane(c, it->now.lane, &lane, err);
    if (st != PAWL_OK)
        return st;
    struct led_lane_names names = lane->names; /* their bytes stay when lanes move */
    names.gate = gate_of(c, &names, it->spec.key);
    if (!names.gate.data)
        return err_no_memory(err, "a lane");
    if (bytes_eq(names.gate, lane->names.gate))
        return PAWL_OK;
    *out = true;
    st = led_lane_for(c, &names, &to.lane, err);
    if (st != PAWL_OK || !to.lane) { /* as many lanes as there may be: it waits for one */
        it->skipped = g->passed = true;
        return st;
    }
    it->own_lane = to.lane;
    it->moved = true;
    if (++g->regated == CLAIM_MAX)
        g->complete = g->q->more = true;
    return led_put(c, it, to, 0, err);
}

/* How many calls the claim may still take from this pair. */
static size_t want(const struct claiming *g, const struct pair *p)
{
    const struct claim *q = g->q;
    size_t n = (size_t)(q->max_any ? MIN(q->max, q->max_any) : q->max);
    if (p->run_at_us > g->c->now_us || n <= q->n || !led_claim_goes_on(g))
        return 0;
    if (p->track % 2) /* retried alone: as the only call of its lease */
        return q->n == 0;
    return n - q->n;
}

enum pawl_status led_claim_gated(struct claiming *g, const struct pair *p, struct pawl_err *err)
{
    struct ledger *c = g->c;
    const struct led_lane *lane;
    struct gate_pass pass = { .n = want(g, p) };
    size_t wanted = pass.n, before = g->q->n, found = 0;
    if (!wanted)
        return PAWL_OK;
    enum pawl_status st = led_lane(c, (int)(p->track / 2), &lane, err);
    if (st != PAWL_OK)
        return st;
    pass.lane = gated_lane(lane);
    st = c->gates->gate_ask(c, c->gate_memory, &pass, err);
    CHECK(st != PAWL_OK || pass.n <= wanted);
    PAUSE_POINT("ledger.gate_asked");
    if (st == PAWL_OK && pass.n)
        st = led_claim_from(g, p, pass.n, &found, err);
    size_t n = g->q->n - before;
    int64_t *seqs = arena_alloc(&c->scratch, (n + 1) * sizeof *seqs);
    if (st == PAWL_OK && !seqs)
        st = err_no_memory(err, "a claim");
    CHECK(st != PAWL_OK || n <= pass.n);
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        seqs[i] = g->held[before + i].seq;
        g->held[before + i].marks = g->taken[before + i]->now.marks = WATCH_LIMIT;
    }
    if (st == PAWL_OK && n)
        st = c->gates->gate_took(c, &pass, seqs, n, err);
    if (st == PAWL_OK && pass.next_us)
        g->next_us = MIN(g->next_us, pass.next_us);
    /* What is left of it waits for the rules, not for the next claim. */
    return st == PAWL_OK && pass.n < wanted && n == pass.n ? shut(c, p->track, err) : st;
}

/* ---- For the feature ------------------------------------------------------------------------- */

enum pawl_status feature_again(struct ledger *d, const char *what, struct pawl_err *err)
{
    return led_again(d, what, err);
}

void feature_brings(struct ledger *d)
{
    CHECK(d->tx->telling);
    d->tx->telling->brings = true;
}

enum pawl_status feature_gates_lock(struct ledger *d, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *r;
    if (d->db->one_writer)
        return PAWL_OK;
    led_text(&p, bytes_of(d->schema));
    return led_query(d, SQL_LIMIT_LOCK, &p, &r, err);
}

/* Lock these leases, then read their calls, and which of them have ended. */
static enum pawl_status leases_read(struct ledger *c, const struct token *v, size_t n,
                                    struct pawl_err *err)
{
    struct led_rows *rows = NULL;
    struct led_batch *b = arena_alloc(&c->scratch, sizeof *b);
    if (!b)
        return err_no_memory(err, "leases");
    b->n = 0;
    enum pawl_status st = led_leases_ask(c, b, v, n, &rows, err);
    if (st == PAWL_OK && b->n)
        st = led_batch_run(c, b, err);
    if (st == PAWL_OK && rows)
        st = led_leases_take(c, v, n, rows, err);
    return st == PAWL_OK ? led_leases_calls(c, err) : st;
}

/* Lock all leases. No claim runs beside, so there will be no others until the commit. */
static enum pawl_status leases_lock(struct ledger *c, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    enum pawl_status st = led_query(c, SQL_LEASE_TOKENS, NULL, &r, err);
    struct token *v =
        st == PAWL_OK ? arena_alloc(&c->scratch, ((size_t)r->n + 1) * sizeof *v) : NULL;
    if (st == PAWL_OK && !v)
        return err_no_memory(err, "leases");
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct bytes b = led_get(r, i, 0);
        if (b.len != sizeof v->b)
            return err_set(err, PAWL_BROKEN, "a lease has a token of %zu bytes", b.len);
        memcpy(v[i].b, b.data, b.len);
    }
    return st == PAWL_OK && r->n ? leases_read(c, v, (size_t)r->n, err) : st;
}

static int compare_seqs(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Watch those of this lease's open calls that match. */
static enum pawl_status watch_lease(struct ledger *c, struct led_lease *l, unsigned marks,
                                    feature_match_fn *match, void *ctx, int64_t *out, size_t *n,
                                    struct pawl_err *err)
{
    for (size_t i = 0; i < l->n; i++) {
        struct led_call *it = led_call_find(c, l->held[i].seq);
        const struct led_lane *lane;
        if (l->state[i] != HELD_OPEN || !it)
            continue;
        enum pawl_status st = led_lane(c, l->held[i].lane, &lane, err);
        if (st != PAWL_OK)
            return st;
        struct gated_lane g = gated_lane(lane);
        if (!match(&g, it->spec.key, ctx))
            continue;
        l->dirty = l->dirty || (l->held[i].marks & marks) != marks;
        l->held[i].marks |= marks;
        it->now.marks = it->was.marks = l->held[i].marks;
        out[(*n)++] = it->seq;
    }
    return PAWL_OK;
}

enum pawl_status feature_held_watch(struct ledger *d, unsigned marks, feature_match_fn *match,
                                    void *ctx, int64_t **out, size_t *out_n, struct pawl_err *err)
{
    size_t max = 1, n = 0;
    enum pawl_status st = leases_lock(d, err);
    for (struct led_lease *l = d->tx->first_lease; l; l = l->newer)
        max += l->missing ? 0 : l->n;
    *out = arena_alloc(&d->scratch, max * sizeof **out);
    if (st == PAWL_OK && !*out)
        return err_no_memory(err, "leases");
    for (struct led_lease *l = d->tx->first_lease; l && st == PAWL_OK; l = l->newer)
        if (!l->missing)
            st = watch_lease(d, l, marks, match, ctx, *out, &n, err);
    if (st == PAWL_OK)
        led_sort(*out, n, sizeof **out, compare_seqs);
    *out_n = n;
    return st;
}
