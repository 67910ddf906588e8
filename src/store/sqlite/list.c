/*
 * list.c - pages of calls, newest first, by one index and a filter.
 *
 * A feed gives seqs falling, from the index that fits the question best; each is then read and held
 * against all filters. A page looks at LIST_LOOK_MAX of them at most, so its cost is bounded
 * whatever is asked. created_at rises with seq as long as the clock does: after a step back of the
 * clock, since and until may leave out calls accepted in the time that came twice.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/sqlite/read.h"

/* The newest call of one lane that the page has not passed. */
struct head {
    int lane;
    int64_t seq; /* 0: none */
};

/* Seqs falling, from one of three: a statement, a list, or the lanes merged. */
struct feed {
    sqlite3_stmt *q;
    int64_t *v;
    size_t n, at;
    int64_t ahead; /* read from q and not given out; 0: nothing */
    struct head *heads;
    size_t n_heads;
};

struct listing {
    struct lite *c;
    const struct query *q;
    struct feed feed;
    bool *lanes;   /* by lane - 1: those asked for; NULL: all */
    int64_t below; /* look at seqs below this */
};

/* ---- Feeds ----------------------------------------------------------------------------------- */

static int compare_falling(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static enum pawl_status held_add(struct lite *c, struct feed *f, struct bytes packed, int64_t below,
                                 size_t *cap, struct pawl_err *err)
{
    struct held *held;
    size_t n;
    arena_reset(&c->unpack);
    enum pawl_status st = lease_unpack(&c->unpack, packed, &held, &n, err);
    if (st != PAWL_OK)
        return st;
    if (f->n + n > *cap) {
        *cap = 2 * (f->n + n);
        int64_t *v = arena_alloc(&c->scratch, *cap * sizeof *v);
        if (!v)
            return err_no_memory(err, "a page");
        if (f->n)
            memcpy(v, f->v, f->n * sizeof *v);
        f->v = v;
    }
    for (size_t i = 0; i < n && held[i].seq < below; i++)
        f->v[f->n++] = held[i].seq;
    return PAWL_OK;
}

/* What leases name. Those that have ended meanwhile are passed over when they are read. */
static enum pawl_status feed_held(struct listing *l, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    struct feed *f = &l->feed;
    bool row = false;
    size_t cap = 0;
    enum pawl_status st = lite_query(l->c, SQL_LEASE_LIST, ARGS(INT(l->below)), &q, err);
    while (st == PAWL_OK && (st = lite_next(l->c, q, &row, err)) == PAWL_OK && row)
        st = held_add(l->c, f, lite_column(q, 0), l->below, &cap, err);
    if (f->n)
        qsort(f->v, f->n, sizeof *f->v, compare_falling);
    return st;
}

static enum pawl_status head_move(struct lite *c, struct head *h, int64_t below,
                                  struct pawl_err *err)
{
    return lite_number(c, SQL_CALL_LIST_LANE, ARGS(INT(h->lane), INT(below)), 0, &h->seq, err);
}

static enum pawl_status feed_lanes(struct listing *l, struct pawl_err *err)
{
    struct feed *f = &l->feed;
    size_t n = l->c->lanes.n;
    enum pawl_status st = PAWL_OK;
    f->heads = arena_zalloc(&l->c->scratch, n + 1, sizeof *f->heads);
    if (!f->heads)
        return err_no_memory(err, "a page");
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        if (!l->lanes[i])
            continue;
        struct head *h = &f->heads[f->n_heads++];
        h->lane = (int)i + 1;
        st = head_move(l->c, h, l->below, err);
    }
    return st;
}

static enum pawl_status heads_next(struct lite *c, struct feed *f, int64_t *out,
                                   struct pawl_err *err)
{
    struct head *best = NULL;
    for (size_t i = 0; i < f->n_heads; i++)
        if (f->heads[i].seq && (!best || f->heads[i].seq > best->seq))
            best = &f->heads[i];
    *out = best ? best->seq : 0;
    return best ? head_move(c, best, best->seq, err) : PAWL_OK;
}

static enum pawl_status row_next(struct listing *l, int64_t *out, struct pawl_err *err)
{
    struct feed *f = &l->feed;
    bool row = false;
    *out = 0;
    enum pawl_status st = f->q ? lite_next(l->c, f->q, &row, err) : PAWL_OK;
    if (st == PAWL_OK && row)
        *out = lite_int(f->q, 0);
    if (!row)
        f->q = NULL; /* reset already */
    return st;
}

/* The next seq; 0: no more. */
static enum pawl_status feed_next(struct listing *l, int64_t *out, struct pawl_err *err)
{
    struct feed *f = &l->feed;
    enum pawl_status st = PAWL_OK;
    if (f->heads)
        return heads_next(l->c, f, out, err);
    if (!f->ahead)
        st = row_next(l, &f->ahead, err);
    /* A call may stand on two lists: ended on one, held by another. */
    while (f->at && f->at < f->n && f->v[f->at] == f->v[f->at - 1])
        f->at++;
    int64_t listed = f->at < f->n ? f->v[f->at] : 0;
    *out = MAX(f->ahead, listed);
    if (*out == listed)
        f->at++;
    if (*out == f->ahead)
        f->ahead = 0;
    return st;
}

/* The index that fits best: few rows stand under these states; then names; then lanes; then all. */
static enum pawl_status feed_open(struct listing *l, struct pawl_err *err)
{
    const struct query *q = l->q;
    struct lite *c = l->c;
    sqlite3_stmt **to = &l->feed.q;
    struct lite_arg below = INT(l->below);
    /* Calls that are held and have not begun are shown pending. */
    if (q->state == PAWL_PENDING || q->state == PAWL_PROCESSING) {
        enum pawl_status st = feed_held(l, err);
        if (st == PAWL_OK && q->state == PAWL_PENDING)
            st = lite_query(c, SQL_READY_LIST, ARGS(below), to, err);
        return st;
    }
    if (q->state && q->state != PAWL_COMPLETED)
        return lite_query(c, SQL_OUTCOME_LIST_BAD, ARGS(INT(q->state), below), to, err);
    if (q->key.data)
        return lite_query(c, SQL_CALL_LIST_KEY, ARGS(TEXT(q->key), below), to, err);
    if (q->parent.data)
        return lite_query(c, SQL_CALL_LIST_PARENT, ARGS(TEXT(q->parent), below), to, err);
    if (q->caller.data)
        return lite_query(c, SQL_CALL_LIST_CALLER, ARGS(TEXT(q->caller), below), to, err);
    if (q->tag_name.data && q->tag_value.data)
        return lite_query(c, SQL_TAG_LIST, ARGS(TEXT(q->tag_name), TEXT(q->tag_value), below), to,
                          err);
    if (q->client.data)
        return lite_query(c, SQL_CALL_LIST_CLIENT, ARGS(TEXT(q->client), below), to, err);
    if (l->lanes)
        return feed_lanes(l, err);
    return lite_query(c, SQL_CALL_LIST, ARGS(below), to, err);
}

/* ---- Where to begin -------------------------------------------------------------------------- */

/* The newest call below: its seq and when it was accepted; seq 0: none. */
static enum pawl_status probe(struct lite *c, int64_t below, int64_t *out_seq, int64_t *out_us,
                              struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_CALL_BELOW, ARGS(INT(below)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    *out_seq = st == PAWL_OK && row ? lite_int(q, 0) : 0;
    *out_us = st == PAWL_OK && row ? lite_int(q, 1) : 0;
    return st;
}

/* Leave out what is too new, by halving: `below` becomes the first seq accepted at `until` or
 * later. */
static enum pawl_status skip_newer(struct listing *l, struct pawl_err *err)
{
    int64_t low = 0, high, at_us;
    enum pawl_status st = probe(l->c, l->below, &high, &at_us, err);
    if (st != PAWL_OK || !high || at_us < l->q->until_us)
        return st;
    while (low < high) {
        int64_t middle = low + (high - low) / 2, seq;
        st = probe(l->c, middle + 1, &seq, &at_us, err);
        if (st != PAWL_OK)
            return st;
        if (!seq || at_us < l->q->until_us)
            low = middle + 1;
        else
            high = seq;
    }
    l->below = low;
    return PAWL_OK;
}

static enum pawl_status lanes_find(struct listing *l, struct pawl_err *err)
{
    const struct query *q = l->q;
    struct lite *c = l->c;
    enum pawl_status st = lite_lanes_read(c, err);
    if (st != PAWL_OK || (!q->queue.data && !q->type.data))
        return st;
    l->lanes = arena_zalloc(&c->scratch, c->lanes.n + 1, sizeof *l->lanes);
    if (!l->lanes)
        return err_no_memory(err, "a page");
    for (size_t i = 0; i < c->lanes.n; i++)
        l->lanes[i] = (!q->queue.data || bytes_eq(q->queue, c->lanes.v[i].queue)) &&
                      (!q->type.data || bytes_eq(q->type, c->lanes.v[i].type));
    return PAWL_OK;
}

/* ---- The filter ------------------------------------------------------------------------------ */

static enum pawl_status row_state(struct listing *l, int64_t seq, sqlite3_stmt *row,
                                  enum pawl_state *out, struct pawl_err *err)
{
    struct lite_shelf to = { .a = &l->c->scratch };
    struct lite_holder by = { 0 };
    enum pawl_status st = PAWL_OK;
    *out = (enum pawl_state)lite_int(row, READ_STATUS);
    if (!lite_null(row, READ_STATUS))
        return PAWL_OK;
    *out = PAWL_PENDING;
    if (!lite_null(row, READ_TRACK) || !lite_null(row, READ_POS))
        return PAWL_OK;
    st = lite_holder(l->c, &to, seq, &by, err);
    if (by.begun)
        *out = PAWL_PROCESSING;
    return st;
}

static bool other(struct bytes filter, sqlite3_stmt *row, int column)
{
    return filter.data && !bytes_eq(filter, lite_column(row, column));
}

static enum pawl_status tagged(struct listing *l, sqlite3_stmt *row, bool *out,
                               struct pawl_err *err)
{
    const struct query *q = l->q;
    struct call_spec s;
    *out = !q->tag_name.data;
    if (*out)
        return PAWL_OK;
    arena_reset(&l->c->unpack);
    enum pawl_status st = call_tags_read(&l->c->unpack, lite_column(row, ASKED_TAGS), &s, err);
    for (size_t i = 0; st == PAWL_OK && i < s.n_tags && !*out; i++)
        *out = bytes_eq(s.tags[i].name, q->tag_name) &&
               (!q->tag_value.data || bytes_eq(s.tags[i].value, q->tag_value));
    return st;
}

static enum pawl_status matches(struct listing *l, int64_t seq, sqlite3_stmt *row, bool *out,
                                struct pawl_err *err)
{
    const struct query *q = l->q;
    int64_t lane = lite_int(row, ASKED_LANE), created_us = lite_int(row, ASKED_CREATED);
    enum pawl_state state = 0;
    enum pawl_status st = q->state ? row_state(l, seq, row, &state, err) : PAWL_OK;
    if (st != PAWL_OK)
        return st;
    *out = state == q->state && (!q->until_us || created_us < q->until_us) &&
           (!q->since_us || created_us >= q->since_us) &&
           (!l->lanes || (lane > 0 && lane <= (int64_t)l->c->lanes.n && l->lanes[lane - 1])) &&
           !other(q->method, row, ASKED_METHOD) && !other(q->key, row, ASKED_KEY) &&
           !other(q->parent, row, ASKED_PARENT) && !other(q->caller, row, ASKED_CALLER) &&
           !other(q->client, row, ASKED_CLIENT);
    return *out ? tagged(l, row, out, err) : PAWL_OK;
}

/* ---- The page -------------------------------------------------------------------------------- */

/* One call: into the page when it matches. *out_older: it and all that follow were accepted too
 * early. */
static enum pawl_status look_at(struct listing *l, struct lite_shelf *to, int64_t seq,
                                struct page *out, bool *out_older, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *row = NULL;
    const struct query *q = l->q;
    bool there = false, match = false;
    enum pawl_status st = lite_query(
        l->c, SQL_CALL_READ,
        ARGS(INT(seq), INT((q->with & WITH_INPUT) != 0), INT((q->with & WITH_RESULT) != 0)), &row,
        err);
    if (st == PAWL_OK)
        st = lite_next(l->c, row, &there, err);
    if (st != PAWL_OK || !there)
        return st;
    *out_older = q->since_us && lite_int(row, ASKED_CREATED) < q->since_us;
    st = matches(l, seq, row, &match, err);
    if (st != PAWL_OK || !match)
        return st;
    return lite_stands_row(l->c, to, seq, q->with, row, &out->v[out->n++], err);
}

static enum pawl_status page_fill(struct listing *l, struct arena *a, struct page *out,
                                  struct pawl_err *err)
{
    struct lite_shelf to = { .a = a };
    int64_t seq, last = 0;
    for (int looked = 0;; looked++) {
        bool older = false;
        enum pawl_status st = feed_next(l, &seq, err);
        if (st != PAWL_OK || !seq)
            return st;
        if (out->n == (size_t)l->q->limit || looked == LIST_LOOK_MAX) {
            out->next_before = last;
            return PAWL_OK;
        }
        st = look_at(l, &to, seq, out, &older, err);
        if (st != PAWL_OK || older)
            return st;
        last = seq;
    }
}

enum pawl_status lite_list(struct store *s, struct arena *a, const struct query *q,
                           struct page *out, struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    struct listing l = { .c = c, .q = q, .below = q->before_seq ? q->before_seq : INT64_MAX };
    AUTO(lite_undo) struct lite *tx = NULL;
    *out = (struct page){ .v = arena_zalloc(a, (size_t)q->limit, sizeof *out->v) };
    if (!out->v)
        return err_no_memory(err, "a page");
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = lanes_find(&l, err);
    if (st == PAWL_OK && q->until_us)
        st = skip_newer(&l, err);
    if (st == PAWL_OK)
        st = feed_open(&l, err);
    if (st == PAWL_OK)
        st = page_fill(&l, a, out, err);
    lite_reset(&l.feed.q);
    return st;
}
