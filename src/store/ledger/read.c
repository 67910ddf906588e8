/*
 * read.c - calls by id, their attempts, and pages of calls. Each slot reads in one snapshot.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/ledger/flow.h"

/* Load calls by number, with everything that is needed to show them. */
static enum pawl_status foresee(struct ledger *c, const int64_t *seqs, size_t n, unsigned with,
                                struct pawl_err *err)
{
    struct led_call **v = arena_alloc(&c->scratch, (n + 1) * sizeof(struct led_call *));
    size_t m = 0;
    if (!v)
        return err_no_memory(err, "calls");
    enum pawl_status st = led_calls_load(c, seqs, n, err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++)
        if ((v[m] = led_call_find(c, seqs[i])))
            m++;
    if (st == PAWL_OK)
        st = led_holders_load(c, v, m, err);
    if (st == PAWL_OK)
        st = led_flows_look(c, v, m, err);
    return st == PAWL_OK && with ? led_payloads_load(c, v, m, err) : st;
}

static enum pawl_status get_all(struct ledger *c, struct arena *a, struct get *g,
                                struct pawl_err *err)
{
    int64_t *seqs = arena_alloc(&c->scratch, (g->n + 1) * sizeof *seqs);
    size_t n = 0;
    enum pawl_status st = seqs ? led_ids_load(c, g->ids, g->n, err) : err_no_memory(err, "calls");
    for (size_t i = 0; st == PAWL_OK && i < g->n; i++) {
        struct led_id *id;
        st = led_id_get(c, g->ids[i], &id, err);
        if (st == PAWL_OK && id->seq)
            seqs[n++] = id->seq;
    }
    if (st == PAWL_OK)
        st = foresee(c, seqs, n, g->with, err);
    for (size_t i = 0; st == PAWL_OK && i < g->n; i++) {
        struct led_id *id;
        struct led_call *it = NULL;
        st = led_id_get(c, g->ids[i], &id, err);
        g->found[i] = PAWL_NOT_FOUND;
        if (st != PAWL_OK || !id->seq)
            continue;
        it = led_call_find(c, id->seq);
        if (!it)
            return err_set(err, PAWL_BROKEN, "call %lld has an id and no row", (long long)id->seq);
        g->found[i] = it->now.place == AT_GONE ? PAWL_GONE : PAWL_OK;
        st = led_id_check(g->ids[i], it, err);
        if (st == PAWL_OK)
            st = led_show(c, a, it, g->with, &g->out[i], err);
    }
    return st;
}

enum pawl_status led_get_calls(struct store *s, struct arena *a, struct get *g,
                               struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    AUTO(led_undo) struct ledger *tx = NULL;
    g->out = arena_zalloc(a, g->n, sizeof *g->out);
    g->found = arena_zalloc(a, g->n, sizeof *g->found);
    if (!g->out || !g->found)
        return err_no_memory(err, "calls");
    enum pawl_status st = led_begin(c, LED_READ, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    return get_all(c, a, g, err);
}

static enum pawl_status attempts_read(struct ledger *c, struct arena *a, int64_t seq,
                                      struct attempts *out, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    led_int(&p, seq);
    led_int(&p, ATTEMPTS_SHOWN_MAX);
    enum pawl_status st = led_query(c, SQL_ATTEMPT_LIST, &p, &r, err);
    if (st != PAWL_OK)
        return st;
    out->n = r->n;
    out->v = arena_zalloc(a, out->n + 1, sizeof *out->v);
    for (int i = 0; i < r->n; i++)
        if (led_get_int(r, i, 0) < 0 || led_get_int(r, i, 5) <= 0)
            return err_set(err, PAWL_BROKEN, "call %lld: an attempt has no number or time",
                           (long long)seq);
    /* The rows are newest first, because only the newest are read; the answer is oldest first. */
    for (size_t i = 0; out->v && i < out->n; i++)
        out->v[out->n - 1 - i] = (struct attempt){ .attempt_no = (int)led_get_int(r, (int)i, 0),
                                                   .how = (enum ending)led_get_int(r, (int)i, 1),
                                                   .error = arena_copy(a, led_get(r, (int)i, 2)),
                                                   .node = arena_copy(a, led_get(r, (int)i, 3)),
                                                   .started_us = led_get_int(r, (int)i, 4),
                                                   .finished_us = led_get_int(r, (int)i, 5) };
    return a->failed ? err_no_memory(err, "attempts") : PAWL_OK;
}

enum pawl_status led_attempts(struct store *s, struct arena *a, struct bytes id,
                              struct attempts *out, struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    struct led_id *found;
    struct led_call *it = NULL;
    AUTO(led_undo) struct ledger *tx = NULL;
    enum pawl_status st = led_begin(c, LED_READ, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = led_id_get(c, id, &found, err);
    if (st == PAWL_OK && found->seq)
        st = led_call_get(c, found->seq, &it, err);
    if (st == PAWL_OK && it)
        st = led_id_check(id, it, err);
    if (st != PAWL_OK)
        return st;
    if (!it)
        return err_set(err, PAWL_NOT_FOUND, "no call \"%.*s\"", BYTES_ARG(id));
    if (it->now.place == AT_GONE)
        return err_set(err, PAWL_GONE, "call \"%.*s\" has ended and is no longer kept",
                       BYTES_ARG(id));
    return attempts_read(c, a, it->seq, out, err);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* Numbers are read in pieces of growing size: the first piece usually fills the page. */
#define PIECE_FIRST 256
#define PIECE_MAX 2048

struct listing {
    struct ledger *c;
    const struct query *q;
    int64_t *lanes; /* lanes that the query names; NULL: all */
    size_t n_lanes;
    int64_t below;
    int64_t *v; /* the current piece, falling */
    size_t n, at;
    int piece;
    bool ended;
};

static enum pawl_status lanes_find(struct listing *l, struct pawl_err *err)
{
    const struct query *q = l->q;
    struct led_lanes *lanes = &l->c->lanes;
    enum pawl_status st = led_lanes_read(l->c, err);
    if (st != PAWL_OK || (!q->queue.data && !q->type.data))
        return st;
    l->lanes = arena_alloc(&l->c->scratch, (lanes->n + 1) * sizeof *l->lanes);
    if (!l->lanes)
        return err_no_memory(err, "a page");
    for (size_t i = 0; i < lanes->n; i++)
        if ((!q->queue.data || bytes_eq(q->queue, lanes->v[i].names.queue)) &&
            (!q->type.data || bytes_eq(q->type, lanes->v[i].names.type)))
            l->lanes[l->n_lanes++] = lanes->v[i].number;
    return PAWL_OK;
}

/* Choose the index that fits the query best. A list by lane finds a call that was moved by its
 * present lane, because its row of `call` is updated. */
static enum sql_name feed_of(const struct listing *l, struct led_params *p)
{
    const struct query *q = l->q;
    if (q->key.data) {
        led_text(p, q->key);
        return SQL_CALL_LIST_KEY;
    }
    if (q->parent.data) {
        led_text(p, q->parent);
        return SQL_CALL_LIST_PARENT;
    }
    if (q->tag_name.data && q->tag_value.data) {
        led_text(p, q->tag_name);
        led_text(p, q->tag_value);
        return SQL_CALL_LIST_TAG;
    }
    if (q->caller.data) {
        led_text(p, q->caller);
        return SQL_CALL_LIST_CALLER;
    }
    if (q->client.data) {
        led_text(p, q->client);
        return SQL_CALL_LIST_CLIENT;
    }
    if (pawl_state_ended(q->state) && q->state != PAWL_COMPLETED) {
        led_int(p, q->state);
        return SQL_CALL_LIST_BAD;
    }
    if (l->lanes) {
        led_ints(l->c, p, l->lanes, l->n_lanes);
        return SQL_CALL_LIST_LANE;
    }
    return SQL_CALL_LIST;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static enum pawl_status feed(struct listing *l, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    led_int(&p, l->below);
    led_int(&p, l->piece);
    enum sql_name name = feed_of(l, &p);
    enum pawl_status st = led_query(l->c, name, &p, &r, err);
    if (st != PAWL_OK)
        return st;
    l->v = arena_alloc(&l->c->scratch, ((size_t)r->n + 1) * sizeof *l->v);
    if (!l->v)
        return err_no_memory(err, "a page");
    for (int i = 0; i < r->n; i++)
        l->v[i] = led_get_int(r, i, 0);
    led_sort(l->v, (size_t)r->n, sizeof *l->v, newest_first); /* the rows may come lane by lane */
    l->n = MIN((size_t)r->n, (size_t)l->piece);
    if (l->n && (l->v[0] >= l->below || l->v[l->n - 1] <= 0))
        return err_set(err, PAWL_BROKEN, "database: a page has call %lld, which is not before %lld",
                       (long long)l->v[0], (long long)l->below);
    l->at = 0;
    l->ended = l->n < (size_t)l->piece;
    l->piece = MIN(l->piece * 2, PIECE_MAX);
    if (l->n)
        l->below = l->v[l->n - 1];
    return foresee(l->c, l->v, l->n, 0, err);
}

static bool other(struct bytes filter, struct bytes value)
{
    return filter.data && !bytes_eq(filter, value);
}

static bool tagged(const struct call_spec *s, const struct query *q)
{
    if (!q->tag_name.data)
        return true;
    for (size_t i = 0; i < s->n_tags; i++)
        if (bytes_eq(s->tags[i].name, q->tag_name) && !other(q->tag_value, s->tags[i].value))
            return true;
    return false;
}

static bool lane_asked(const struct listing *l, int lane)
{
    bool asked = !l->lanes;
    for (size_t i = 0; i < l->n_lanes && !asked; i++)
        asked = l->lanes[i] == lane;
    return asked;
}

/* The state that is shown: a held call that has not begun is pending, and a flow is processing. */
static enum pawl_state shown_state(const struct ledger *c, const struct led_call *it)
{
    const struct led_lane *lane = led_lane_at(c, it->now.lane);
    if (!pawl_state_ended(it->now.state) && lane && lane->flow)
        return PAWL_PROCESSING;
    if (it->now.place != AT_HELD)
        return it->now.state;
    ssize_t at = led_lease_find(it->lease, it->seq);
    CHECK(at >= 0); /* it was found by this list */
    return led_lease_begun(it->lease, (size_t)at) ? PAWL_PROCESSING : PAWL_PENDING;
}

static bool matches(const struct listing *l, const struct led_call *it)
{
    const struct query *q = l->q;
    const struct call_spec *s = &it->spec;
    return it->now.place != AT_GONE && (!q->state || shown_state(l->c, it) == q->state) &&
           (!q->since_us || it->created_us >= q->since_us) &&
           (!q->until_us || it->created_us < q->until_us) && lane_asked(l, it->now.lane) &&
           !other(q->method, s->method) && !other(q->key, s->key) && !other(q->parent, s->parent) &&
           !other(q->caller, s->caller) && !other(q->client, s->client) && tagged(s, q);
}

static enum pawl_status page_fill(struct listing *l, struct arena *a, struct page *out,
                                  struct pawl_err *err)
{
    int64_t last = 0;
    for (int looked = 0;; looked++) {
        enum pawl_status st = PAWL_OK;
        while (l->at == l->n && !l->ended && st == PAWL_OK)
            st = feed(l, err);
        if (st != PAWL_OK || l->at == l->n)
            return st;
        if (out->n == (size_t)l->q->limit || looked == LIST_LOOK_MAX) {
            out->next_before = last;
            return PAWL_OK;
        }
        last = l->v[l->at++];
        struct led_call *it = led_call_find(l->c, last);
        if (it && matches(l, it))
            st = led_show(l->c, a, it, l->q->with, &out->v[out->n++], err);
        if (st != PAWL_OK)
            return st;
    }
}

enum pawl_status led_list(struct store *s, struct arena *a, const struct query *q, struct page *out,
                          struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    struct listing l = { .c = c,
                         .q = q,
                         .below = q->before_seq ? q->before_seq : INT64_MAX,
                         .piece = MIN(PIECE_FIRST, q->limit + 1) };
    AUTO(led_undo) struct ledger *tx = NULL;
    *out = (struct page){ .v = arena_zalloc(a, (size_t)q->limit, sizeof *out->v) };
    if (!out->v)
        return err_no_memory(err, "a page");
    enum pawl_status st = led_begin(c, LED_READ, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = lanes_find(&l, err);
    return st == PAWL_OK ? page_fill(&l, a, out, err) : st;
}
