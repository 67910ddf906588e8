/*
 * claim_stored.c - the calls of `ready` that a claim takes, rank by rank, best first.
 *
 * The due rows of the served tracks are deleted when they are found, or locked where keys are
 * about, and read together with their calls. Rows that another transaction has locked are passed
 * over, and so are calls whose key another transaction has locked.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "store/ledger/claim.h"

/* Columns of ready_take: where the call's begin. */
#define TAKEN_READY 8

/* A row of ready_take as a call. */
static enum pawl_status candidate(struct claiming *g, const struct led_rows *r, int row,
                                  struct led_call **out, struct pawl_err *err)
{
    struct led_call *it = led_call_new(g->c, led_get_int(r, row, 0));
    *out = it;
    if (!it)
        return err_no_memory(err, "a claim");
    it->grabbed = g->grab;
    if (it->skipped)
        return PAWL_OK;
    it->lease = NULL;
    it->now = (struct led_stand){ .place = AT_READY,
                                  .state = PAWL_PENDING,
                                  .lane = (int)(led_get_int(r, row, 1) / 2),
                                  .priority = (int)-g->rank,
                                  .run_at_us = led_get_int(r, row, 2),
                                  .counts = { .attempts = (int)led_get_int(r, row, 3),
                                              .lost = (int)led_get_int(r, row, 4),
                                              .redrives = (int)led_get_int(r, row, 5) },
                                  .pos = led_get_int(r, row, 6),
                                  .key_no = led_get_int(r, row, 7) };
    if (it->now.run_at_us > g->c->now_us)
        return err_set(err, PAWL_BROKEN, "database: call %lld was found due before its time",
                       (long long)it->seq);
    return led_call_taken(g->c, r, row, TAKEN_READY, it, err);
}

int led_claim_compare(const void *a, const void *b)
{
    const struct led_call *x = *(struct led_call *const *)a, *y = *(struct led_call *const *)b;
    if (x->now.run_at_us != y->now.run_at_us)
        return x->now.run_at_us < y->now.run_at_us ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Inputs that ready_grab left out because they are long, as far as the claim has room for them. */
static enum pawl_status inputs_load(struct claiming *g, struct led_call **v, size_t n,
                                    struct pawl_err *err)
{
    struct led_call **cut = arena_alloc(&g->c->scratch, (n + 1) * sizeof *cut);
    size_t m = 0, len = g->len;
    if (!cut)
        return err_no_memory(err, "a claim");
    for (size_t i = 0; i < n; i++) {
        len += v[i]->input_len;
        if (v[i]->cut && (len <= CLAIM_LEN_MAX || (g->q->n == 0 && i == 0)))
            cut[m++] = v[i];
    }
    enum pawl_status st = m ? led_payloads_load(g->c, cut, m, err) : PAWL_OK;
    for (size_t i = 0; i < m; i++)
        cut[i]->cut = false;
    return st;
}

/* The rows of ready_take or ready_grab, best first. */
static enum pawl_status found(struct claiming *g, const struct led_rows *r, struct led_call **v,
                              struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    g->c->keyed = false;
    for (int i = 0; i < r->n && st == PAWL_OK; i++) {
        st = candidate(g, r, i, &v[i], err);
        g->c->keyed |= st == PAWL_OK && v[i]->spec.key.data;
    }
    if (st != PAWL_OK || !(g->grab || g->c->db->one_writer))
        return st;
    led_sort(v, (size_t)r->n, sizeof(struct led_call *), led_claim_compare);
    return g->c->db->one_writer ? PAWL_OK : inputs_load(g, v, (size_t)r->n, err);
}

static void take_ask(struct ledger *c, struct led_batch *b)
{
    led_batch_ask(b, c->tx->take.name, c->tx->take.params, &c->tx->take.rows);
}

/* The row from which each due track of a rank is read. */
struct from {
    struct led_column track, run_at, seq;
    struct led_cursor last; /* the cursor that was added last */
};

/* May calls of this pair be taken now? A call that is retried alone is taken only as the first call
 * of a claim. */
static bool may_give(const struct claiming *g, const struct pair *p, bool quick)
{
    return p->run_at_us <= g->c->now_us && (g->q->n == 0 || p->track % 2 == 0) &&
           (p->quick || !quick);
}

static void from_gather(struct claiming *g, const struct pair *p, size_t n, bool quick,
                        struct from *out)
{
    led_column_init(&out->track, &g->c->scratch, LED_INTS);
    led_column_init(&out->run_at, &g->c->scratch, LED_INTS);
    led_column_init(&out->seq, &g->c->scratch, LED_INTS);
    for (size_t i = 0; i < n; i++)
        if (may_give(g, &p[i], quick)) {
            struct led_cursor *m = &out->last;
            *m = (struct led_cursor){ .track = p[i].track };
            led_cursor_get(g->c, p[i].track, p[i].rank, &m->run_at_us, &m->seq);
            led_add_int(&out->track, m->track);
            led_add_int(&out->run_at, m->run_at_us);
            led_add_int(&out->seq, m->seq);
        }
}

static void from_put(struct led_params *q, const struct led_column *k, bool one, int64_t last)
{
    if (one)
        led_int(q, last);
    else
        led_column(q, k);
}

/* How many calls of a rank to look for at a time, and of which pairs. */
struct share {
    size_t limit;
    bool quick; /* only of quick types */
    bool any;   /* some pair of the rank may give calls */
    bool slow;  /* some pair of a slow type may give calls, which lowers the limit */
};

/* No more than may be taken: while calls of slow types are due in the rank, up to max_any of all;
 * else up to max. */
static struct share share_of(const struct claiming *g, const struct pair *p, size_t n, bool quick)
{
    struct share s = { .limit = (size_t)g->q->max - g->q->n,
                       .quick = quick || led_claim_only_quick(g) };
    for (size_t i = 0; i < n; i++) {
        bool may = may_give(g, &p[i], s.quick);
        s.any = s.any || may;
        s.slow = s.slow || (may && !p[i].quick);
    }
    if (s.slow)
        s.limit = MIN(s.limit, (size_t)g->q->max_any - g->q->n);
    return s;
}

/* The best due calls of one rank, locked, in order, no more than may be taken. Without keys all of
 * them will be taken; with keys many may not, since the calls behind each head go with it. The
 * first fetch of a claim also writes what the group has decided so far, so that rows of ended
 * leases are not locked for longer than they must be. Later fetches do not: that would write back
 * rows which this claim has found and left. */
static enum pawl_status fetch(struct claiming *g, const struct pair *p, size_t n,
                              struct share share, struct led_call ***out, size_t *out_n,
                              struct pawl_err *err)
{
    struct led_params q = { 0 };
    struct from from;
    size_t limit = share.limit;
    from_gather(g, p, n, share.quick, &from);
    *out_n = 0;
    if (from.track.n == 0)
        return PAWL_OK;
    g->rank = p[0].rank;
    g->grab = g->c->db->grabs && !g->c->keyed;
    bool one = g->grab && from.track.n == 1;
    from_put(&q, &from.track, one, from.last.track);
    led_int(&q, g->rank);
    led_int(&q, g->c->now_us);
    led_int(&q, (int64_t)limit);
    bool each = g->grab || g->c->db->one_writer;
    led_int(&q, MAX(CLAIM_LEN_MAX - (int64_t)g->len, 0) / (each ? (int64_t)limit : 1));
    from_put(&q, &from.run_at, one, from.last.run_at_us);
    from_put(&q, &from.seq, one, from.last.seq);
    struct led_take *t = &g->c->tx->take;
    t->name = one ? SQL_READY_GRAB_ONE : g->grab ? SQL_READY_GRAB : SQL_READY_TAKE;
    t->params = &q;
    enum pawl_status st = g->fetched ? led_query(g->c, t->name, &q, &t->rows, err)
                                     : led_flush_ask(g->c, take_ask, err);
    if (st != PAWL_OK)
        return st;
    const struct led_rows *r = t->rows;
    if (!g->c->db->one_writer) /* which gives up to `limit` rows of each track */
        st = led_rows_check(r, t->name, limit, err);
    if (st != PAWL_OK)
        return st;
    g->fetched = true;
    *out = arena_alloc(&g->c->scratch, ((size_t)r->n + 1) * sizeof **out);
    if (!*out)
        return err_no_memory(err, "a claim");
    *out_n = MIN((size_t)r->n, limit);
    return found(g, r, *out, err);
}

enum pawl_status led_claim_from(struct claiming *g, const struct pair *p, size_t n, size_t *out,
                                struct pawl_err *err)
{
    struct led_call **v = NULL;
    bool progress = false;
    enum pawl_status st = fetch(g, p, 1, (struct share){ .limit = n }, &v, out, err);
    if (st == PAWL_OK && *out)
        st = led_claim_lines(g, v, *out, err);
    for (size_t i = 0; i < *out && st == PAWL_OK && led_claim_goes_on(g); i++)
        st = led_claim_candidate(g, v[i], &progress, err);
    return st;
}

enum pawl_status led_claim_rank(struct claiming *g, const struct pair *p, size_t n,
                                struct pawl_err *err)
{
    bool whole = false, again = false, quick = false;
    enum pawl_status st = PAWL_OK;
    while (st == PAWL_OK && !whole && led_claim_goes_on(g)) {
        struct led_call **v = NULL;
        struct share share = share_of(g, p, n, quick);
        size_t m = 0;
        bool progress = false;
        if (!share.any)
            break;
        st = again ? led_flush(g->c, err) : PAWL_OK;
        if (st == PAWL_OK)
            st = fetch(g, p, n, share, &v, &m, err);
        whole = m < share.limit;
        again = true;
        if (st == PAWL_OK && m)
            st = led_claim_lines(g, v, m, err);
        for (size_t i = 0; i < m && st == PAWL_OK && led_claim_goes_on(g); i++)
            st = led_claim_candidate(g, v[i], &progress, err);
        if (!progress && !share.slow)
            break;
        /* Calls of locked keys came first: look for quick types behind them. */
        quick = quick || !progress;
    }
    return st;
}
