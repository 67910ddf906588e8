/*
 * walk.c - due calls best first (walk.h): pairs of (track, rank) by skipping, rows in chunks,
 * merged.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/sqlite/move.h"
#include "store/sqlite/walk.h"

/* With many pairs of one rank each gives few: read ahead this much, at least. */
#define CHUNK_MIN 16

/* The due rows of one (track, rank), a chunk at a time. */
struct source {
    int64_t track, rank;
    struct candidate *v; /* chunk */
    size_t chunk;        /* rows to read at a time */
    size_t n, at;
    bool ended; /* nothing is stored beyond v */
    struct lite_claimed claimed;
};

/* ---- Which lanes ----------------------------------------------------------------------------- */

static bool named(const struct bytes *v, size_t n, struct bytes name)
{
    for (size_t i = 0; i < n; i++)
        if (bytes_eq(v[i], name))
            return true;
    return n == 0;
}

static enum pawl_status served_find(struct lite *c, struct walk *w, struct pawl_err *err)
{
    const struct claim *q = w->q;
    enum pawl_status st = lite_lanes_read(c, err);
    if (st != PAWL_OK)
        return st;
    w->served = arena_zalloc(&c->scratch, c->lanes.n + 1, sizeof *w->served);
    w->last = arena_zalloc(&c->scratch, c->lanes.n + 1, sizeof *w->last);
    w->quick = arena_zalloc(&c->scratch, c->lanes.n + 1, sizeof *w->quick);
    if (!w->served || !w->last || !w->quick)
        return err_no_memory(err, "a claim");
    for (size_t i = 0; i < c->lanes.n && st == PAWL_OK; i++) {
        const struct lite_lane *l = &c->lanes.v[i];
        bool paused = false;
        w->quick[i] = !q->max_any || (q->n_quick && named(q->quick, q->n_quick, l->type));
        if (!named(q->types, q->n_types, l->type) || !named(q->queues, q->n_queues, l->queue) ||
            (q->without.data && bytes_eq(l->queue, q->without) && w->quick[i]))
            continue;
        st = lite_lane_paused(c, (int)i + 1, &paused, err);
        w->served[i] = !paused;
        w->last[i] = q->last.data && bytes_eq(l->queue, q->last);
    }
    return st;
}

/* The first track from this one on that is served; 0: none. */
static int64_t track_from(const struct lite *c, const struct walk *w, int64_t track)
{
    for (; track / 2 <= (int64_t)c->lanes.n; track++) {
        if (track < 2 || !w->served[track / 2 - 1])
            track |= 1; /* neither of the lane's two */
        else if (!(track & 1 && w->q->no_suspects))
            return track;
    }
    return 0;
}

/* ---- Which pairs ----------------------------------------------------------------------------- */

static int compare_pairs(const void *a, const void *b)
{
    const struct source *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->track > y->track) - (x->track < y->track);
}

static enum pawl_status pair_add(struct lite *c, struct walk *w, size_t *cap, int64_t track,
                                 int64_t rank, struct pawl_err *err)
{
    if (w->n_pairs == *cap) {
        *cap = *cap ? *cap * 2 : 16;
        struct source *v = arena_zalloc(&c->scratch, *cap, sizeof *v);
        if (!v)
            return err_no_memory(err, "a claim");
        if (w->n_pairs)
            memcpy(v, w->pairs, w->n_pairs * sizeof *v);
        w->pairs = v;
    }
    w->pairs[w->n_pairs++] = (struct source){ .track = track, .rank = rank };
    return PAWL_OK;
}

/* Two lists leap over each other: the served tracks and the pairs in use. */
static enum pawl_status pairs_find(struct lite *c, struct walk *w, struct pawl_err *err)
{
    int64_t track = track_from(c, w, 2), rank = INT64_MIN;
    size_t cap = 0;
    while (track) {
        AUTO(lite_reset) sqlite3_stmt *q = NULL;
        bool row = false;
        enum pawl_status st = lite_query(c, SQL_READY_PAIR, ARGS(INT(track), INT(rank)), &q, err);
        if (st == PAWL_OK)
            st = lite_next(c, q, &row, err);
        if (st != PAWL_OK)
            return st;
        if (!row)
            break;
        int64_t found = lite_int(q, 0);
        track = track_from(c, w, found);
        rank = INT64_MIN;
        if (track != found)
            continue;
        st = pair_add(c, w, &cap, found, lite_int(q, 1), err);
        if (st != PAWL_OK)
            return st;
        rank = lite_int(q, 1) + 1;
    }
    if (w->n_pairs)
        qsort(w->pairs, w->n_pairs, sizeof *w->pairs, compare_pairs);
    return PAWL_OK;
}

/* ---- Fresh calls ----------------------------------------------------------------------------- */

static bool before(const struct candidate *a, const struct candidate *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank;
    if (a->last != b->last)
        return b->last;
    if (a->run_at_us != b->run_at_us)
        return a->run_at_us < b->run_at_us;
    return a->seq < b->seq;
}

static int compare_candidates(const void *a, const void *b)
{
    return before(a, b) ? -1 : 1;
}

static enum pawl_status fresh_find(struct lite *c, struct walk *w, struct pawl_err *err)
{
    if (c->n_fresh == 0)
        return PAWL_OK;
    w->fresh = arena_alloc(&c->scratch, c->n_fresh * sizeof *w->fresh);
    if (!w->fresh)
        return err_no_memory(err, "a claim");
    bool sorted = true;
    for (size_t i = 0; i < c->n_fresh; i++) {
        struct lite_fresh *f = &c->fresh[i];
        if (!w->served[f->lane - 1] || f->run_at_us > c->now_us)
            continue;
        w->fresh[w->n_fresh++] = (struct candidate){ .rank = -f->priority,
                                                     .run_at_us = f->run_at_us,
                                                     .seq = f->seq,
                                                     .last = w->last[f->lane - 1],
                                                     .lane = f->lane,
                                                     .tries = f->tries,
                                                     .fresh = f };
        if (w->n_fresh > 1 && !before(&w->fresh[w->n_fresh - 2], &w->fresh[w->n_fresh - 1]))
            sorted = false;
    }
    if (!sorted)
        qsort(w->fresh, w->n_fresh, sizeof *w->fresh, compare_candidates);
    return PAWL_OK;
}

enum pawl_status walk_open(struct lite *c, const struct claim *q, struct walk *out,
                           struct pawl_err *err)
{
    *out = (struct walk){ .q = q, .no_suspects = q->no_suspects };
    enum pawl_status st = served_find(c, out, err);
    if (st == PAWL_OK)
        st = pairs_find(c, out, err);
    if (st == PAWL_OK)
        st = fresh_find(c, out, err);
    if (st != PAWL_OK)
        return st;
    size_t all = (size_t)q->max + 1, even = all / (out->n_pairs + 1);
    out->chunk = out->n_pairs == 1 ? all : MIN(all, MAX(even, CHUNK_MIN));
    for (size_t i = 0; i < out->n_pairs; i++) {
        struct source *s = &out->pairs[i];
        bool quick = out->quick[s->track / 2 - 1];
        s->chunk = quick ? out->chunk : MIN(out->chunk, (size_t)q->max_any + 1);
    }
    return PAWL_OK;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static enum pawl_status rows_read(struct lite *c, struct walk *w, struct source *s, sqlite3_stmt *q,
                                  struct pawl_err *err)
{
    bool row = false;
    enum pawl_status st;
    while ((st = lite_next(c, q, &row, err)) == PAWL_OK && row) {
        CHECK(s->n < s->chunk);
        s->v[s->n++] = (struct candidate){ .rank = s->rank,
                                           .seq = lite_int(q, 0),
                                           .run_at_us = lite_int(q, 1),
                                           .lane = (int)s->track / 2,
                                           .last = w->last[s->track / 2 - 1],
                                           .tries = { .attempts = (int)lite_int(q, 2),
                                                      .lost = (int)lite_int(q, 3),
                                                      .redrives = (int)lite_int(q, 4) } };
    }
    return st;
}

/* The next chunk: the rest of the run_at we stopped in, then later ones. */
static enum pawl_status source_fill(struct lite *c, struct walk *w, struct source *s,
                                    struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *same = NULL;
    AUTO(lite_reset) sqlite3_stmt *later = NULL;
    int64_t after = INT64_MIN, seq = 0;
    bool first = !s->v;
    enum pawl_status st = PAWL_OK;
    if (first) {
        s->v = arena_alloc(&c->scratch, s->chunk * sizeof *s->v);
        if (!s->v)
            return err_no_memory(err, "a claim");
    } else {
        after = s->v[s->n - 1].run_at_us;
        seq = s->v[s->n - 1].seq;
    }
    s->n = s->at = 0;
    int64_t chunk = (int64_t)s->chunk;
    if (!first) {
        st = lite_query(c, SQL_READY_DUE_SAME,
                        ARGS(INT(s->track), INT(s->rank), INT(after), INT(seq), INT(chunk)), &same,
                        err);
        if (st == PAWL_OK)
            st = rows_read(c, w, s, same, err);
    }
    if (st == PAWL_OK && s->n < s->chunk)
        st = lite_query(c, SQL_READY_DUE,
                        ARGS(INT(s->track), INT(s->rank), INT(after), INT(c->now_us),
                             INT(chunk - (int64_t)s->n)),
                        &later, err);
    if (st == PAWL_OK && later)
        st = rows_read(c, w, s, later, err);
    s->ended = s->n < s->chunk;
    return st;
}

/* ---- Merging --------------------------------------------------------------------------------- */

static bool passed_over(const struct walk *w, const struct source *s)
{
    return (s->track & 1 && w->no_suspects) || (w->only_quick && !w->quick[s->track / 2 - 1]);
}

/* The first fresh call that is not passed over; n_fresh: none. */
static size_t first_fresh(struct walk *w)
{
    size_t i = w->only_quick ? MAX(w->at_fresh, w->at_quick) : w->at_fresh;
    while (i < w->n_fresh &&
           (!w->fresh[i].fresh || (w->only_quick && !w->quick[w->fresh[i].lane - 1])))
        i++;
    if (w->only_quick)
        w->at_quick = i;
    return i;
}

/* Fill whoever has run dry, so that every begun source shows its best or has ended. */
static enum pawl_status heads_fill(struct lite *c, struct walk *w, struct pawl_err *err)
{
    for (size_t i = 0; i < w->n_open; i++) {
        struct source *s = &w->pairs[i];
        if (s->at < s->n || s->ended || passed_over(w, s))
            continue;
        enum pawl_status st = source_fill(c, w, s, err);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

static const struct candidate *best_head(struct walk *w)
{
    w->best_fresh = first_fresh(w);
    const struct candidate *best = w->best_fresh < w->n_fresh ? &w->fresh[w->best_fresh] : NULL;
    w->best = NULL;
    for (size_t i = 0; i < w->n_open; i++) {
        struct source *s = &w->pairs[i];
        if (s->at == s->n || passed_over(w, s) || (best && !before(&s->v[s->at], best)))
            continue;
        best = &s->v[s->at];
        w->best = s;
    }
    return best;
}

enum pawl_status walk_peek(struct lite *c, struct walk *w, const struct candidate **out,
                           struct pawl_err *err)
{
    for (;;) {
        enum pawl_status st = heads_fill(c, w, err);
        if (st != PAWL_OK)
            return st;
        *out = best_head(w);
        /* Ranks are begun only when nothing better is left: the worse ones may never be looked at.
         */
        if (w->n_open == w->n_pairs || (*out && (*out)->rank < w->pairs[w->n_open].rank))
            return PAWL_OK;
        int64_t rank = w->pairs[w->n_open].rank;
        while (w->n_open < w->n_pairs && w->pairs[w->n_open].rank == rank)
            w->n_open++;
    }
}

void walk_pop(struct walk *w, bool taken)
{
    struct source *s = w->best;
    if (!s) {
        w->fresh[w->best_fresh].fresh = NULL; /* done with */
        while (w->at_fresh < w->n_fresh && !w->fresh[w->at_fresh].fresh)
            w->at_fresh++;
        return;
    }
    const struct candidate *k = &s->v[s->at++];
    if (taken)
        s->claimed = (struct lite_claimed){ .track = s->track,
                                            .rank = s->rank,
                                            .run_at_us = k->run_at_us,
                                            .seq = k->seq,
                                            .n = s->claimed.n + 1 };
}

enum pawl_status walk_claim(struct lite *c, const struct walk *w, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < w->n_open && st == PAWL_OK; i++)
        if (w->pairs[i].claimed.n)
            st = lite_move_claimed(c, &w->pairs[i].claimed, err);
    return st;
}

enum pawl_status walk_next_due(struct lite *c, struct walk *w, int64_t *out, struct pawl_err *err)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < w->n_pairs; i++) {
        int64_t at;
        enum pawl_status st = lite_number(
            c, SQL_READY_AFTER, ARGS(INT(w->pairs[i].track), INT(w->pairs[i].rank), INT(c->now_us)),
            INT64_MAX, &at, err);
        if (st != PAWL_OK)
            return st;
        next = MIN(next, at);
    }
    for (size_t i = 0; i < c->n_fresh; i++)
        if (w->served[c->fresh[i].lane - 1] && c->fresh[i].run_at_us > c->now_us)
            next = MIN(next, c->fresh[i].run_at_us);
    *out = next == INT64_MAX ? 0 : next;
    return PAWL_OK;
}
