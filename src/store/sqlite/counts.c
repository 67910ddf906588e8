/*
 * counts.c - what operators look at: queues with their numbers, nodes, wishes.
 *
 * Counting stops at COUNT_MAX a queue, and goes by (lane, priority), so that calls that are not due
 * yet are not walked over to count those that are.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/sqlite/engine.h"

/* ---- Queues ---------------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
    return bytes_cmp(((const struct queue_row *)a)->queue, ((const struct queue_row *)b)->queue);
}

static struct queue_row *row_of(const struct queue_rows *rows, struct bytes queue)
{
    struct queue_row key = { .queue = queue };
    return rows->n ? bsearch(&key, rows->v, rows->n, sizeof key, compare_rows) : NULL;
}

/* Names of lanes, sorted, each once. */
static void rows_unique(struct queue_rows *rows)
{
    size_t n = 0;
    if (rows->n)
        qsort(rows->v, rows->n, sizeof *rows->v, compare_rows);
    for (size_t i = 0; i < rows->n; i++)
        if (n == 0 || !bytes_eq(rows->v[n - 1].queue, rows->v[i].queue))
            rows->v[n++] = rows->v[i];
        else
            rows->v[n - 1].paused = rows->v[n - 1].paused || rows->v[i].paused;
    rows->n = n;
}

/* Every queue of a lane, and every one that is paused. */
static enum pawl_status rows_make(struct lite *c, struct arena *a, struct queue_rows *out,
                                  struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    size_t cap = c->lanes.n + 16;
    bool row = false;
    out->v = arena_zalloc(a, cap, sizeof *out->v);
    for (size_t i = 0; out->v && i < c->lanes.n; i++)
        out->v[out->n++].queue = arena_copy(a, c->lanes.v[i].queue);
    enum pawl_status st =
        out->v ? lite_query(c, SQL_QUEUE_LIST, NO_ARGS, &q, err) : err_no_memory(err, "queues");
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row) {
        if (out->n == cap) {
            struct queue_row *v = arena_zalloc(a, cap * 2, sizeof *v);
            if (!v)
                return err_no_memory(err, "queues");
            memcpy(v, out->v, out->n * sizeof *v);
            out->v = v;
            cap *= 2;
        }
        out->v[out->n++] = (struct queue_row){ .queue = arena_copy(a, lite_column(q, 0)),
                                               .paused = lite_int(q, 1) != 0 };
    }
    if (st == PAWL_OK && a->failed)
        st = err_no_memory(err, "queues");
    if (st == PAWL_OK)
        rows_unique(out);
    return st;
}

static enum pawl_status lane_row(struct lite *c, const struct queue_rows *rows, int lane,
                                 struct queue_row **out, struct pawl_err *err)
{
    const struct lite_lane *l;
    enum pawl_status st = lite_lane(c, lane, &l, err);
    if (st != PAWL_OK)
        return st;
    *out = row_of(rows, l->queue);
    return *out ? PAWL_OK : err_set(err, PAWL_BROKEN, "lane %d has no queue", lane);
}

/* Up to what is still missing to COUNT_MAX. */
static enum pawl_status count_pair(struct lite *c, int64_t track, int64_t rank, int64_t until_us,
                                   int64_t *n, struct pawl_err *err)
{
    int64_t more = 0;
    enum pawl_status st =
        lite_number(c, SQL_READY_COUNT,
                    ARGS(INT(track), INT(rank), INT(until_us), INT(COUNT_MAX - *n)), 0, &more, err);
    *n += more;
    return st;
}

static enum pawl_status pair_add(struct lite *c, const struct queue_rows *rows, int64_t track,
                                 int64_t rank, struct pawl_err *err)
{
    struct queue_row *row;
    int64_t first = 0;
    enum pawl_status st = lane_row(c, rows, (int)(track / 2), &row, err);
    if (st == PAWL_OK)
        st = count_pair(c, track, rank, INT64_MAX, &row->pending, err);
    if (st == PAWL_OK)
        st = count_pair(c, track, rank, c->now_us, &row->due, err);
    if (st == PAWL_OK)
        st = lite_number(c, SQL_READY_AFTER, ARGS(INT(track), INT(rank), INT(INT64_MIN)), 0, &first,
                         err);
    if (st == PAWL_OK && first && first <= c->now_us &&
        (!row->oldest_due_us || first < row->oldest_due_us))
        row->oldest_due_us = first;
    return st;
}

static enum pawl_status count_ready(struct lite *c, const struct queue_rows *rows,
                                    struct pawl_err *err)
{
    int64_t track = 0, rank = INT64_MIN;
    for (;;) {
        AUTO(lite_reset) sqlite3_stmt *q = NULL;
        bool row = false;
        enum pawl_status st = lite_query(c, SQL_READY_PAIR, ARGS(INT(track), INT(rank)), &q, err);
        if (st == PAWL_OK)
            st = lite_next(c, q, &row, err);
        if (st != PAWL_OK || !row)
            return st;
        track = lite_int(q, 0);
        rank = lite_int(q, 1);
        st = pair_add(c, rows, track, rank, err);
        if (st != PAWL_OK)
            return st;
        rank++;
    }
}

/* Calls with a key that are not on offer. */
static enum pawl_status count_line(struct lite *c, const struct queue_rows *rows,
                                   struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool more = false;
    enum pawl_status st = lite_query(c, SQL_LINE_LIST, ARGS(INT(COUNT_MAX)), &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &more, err)) == PAWL_OK && more) {
        struct queue_row *row;
        int64_t run_at_us = lite_int(q, 1);
        st = lane_row(c, rows, (int)lite_int(q, 0), &row, err);
        if (st != PAWL_OK)
            return st;
        row->pending = MIN(row->pending + 1, COUNT_MAX);
        if (run_at_us > c->now_us)
            continue;
        row->due = MIN(row->due + 1, COUNT_MAX);
        if (!row->oldest_due_us || run_at_us < row->oldest_due_us)
            row->oldest_due_us = run_at_us;
    }
    return st;
}

static void count_one(struct lite *c, struct queue_row *row, const struct held *h, bool pending)
{
    if (!pending) {
        row->processing = MIN(row->processing + 1, COUNT_MAX);
        return;
    }
    row->pending = MIN(row->pending + 1, COUNT_MAX);
    row->due += h->run_at_us <= c->now_us && row->due < COUNT_MAX;
    if (h->run_at_us <= c->now_us && (!row->oldest_due_us || h->run_at_us < row->oldest_due_us))
        row->oldest_due_us = h->run_at_us;
}

/* What one lease holds; a call that has not begun counts as what it is shown as: pending. */
static enum pawl_status count_list(struct lite *c, const struct queue_rows *rows,
                                   struct bytes packed, int width, struct pawl_err *err)
{
    struct lite_looked l = { .width = width };
    arena_reset(&c->unpack);
    enum pawl_status st = lease_unpack(&c->unpack, packed, &l.held, &l.n, err);
    if (st == PAWL_OK)
        st = lite_looked_begun(c, &c->unpack, &l, err);
    for (size_t i = 0; i < l.n && st == PAWL_OK; i++) {
        struct queue_row *row;
        st = lane_row(c, rows, l.held[i].lane, &row, err);
        if (st == PAWL_OK && l.open[i])
            count_one(c, row, &l.held[i], !l.begun[i]);
    }
    return st;
}

static enum pawl_status count_held(struct lite *c, const struct queue_rows *rows,
                                   struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_LEASE_LIST, ARGS(INT(INT64_MAX)), &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row)
        st = count_list(c, rows, lite_column(q, 0), (int)lite_int(q, 1), err);
    return st;
}

enum pawl_status lite_queues(struct store *s, struct arena *a, struct queue_rows *out,
                             struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    AUTO(lite_undo) struct lite *tx = NULL;
    *out = (struct queue_rows){ 0 };
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = lite_lanes_read(c, err);
    if (st == PAWL_OK)
        st = rows_make(c, a, out, err);
    if (st == PAWL_OK)
        st = count_ready(c, out, err);
    if (st == PAWL_OK)
        st = count_line(c, out, err);
    return st == PAWL_OK ? count_held(c, out, err) : st;
}

/* ---- Nodes and wishes ------------------------------------------------------------------------ */

static void node_read(struct arena *a, sqlite3_stmt *q, struct node_row *out)
{
    *out = (struct node_row){ .node = arena_copy(a, lite_column(q, 0)),
                              .boot = arena_copy(a, lite_column(q, 1)),
                              .host = arena_copy(a, lite_column(q, 2)),
                              .version = arena_copy(a, lite_column(q, 3)),
                              .address = arena_copy(a, lite_column(q, 4)),
                              .roles = arena_copy(a, lite_column(q, 5)),
                              .queues = arena_copy(a, lite_column(q, 6)),
                              .dead = lite_int(q, 7) != 0,
                              .state = (enum node_state)lite_int(q, 8),
                              .drain = lite_int(q, 9) != 0,
                              .slots = (int)lite_int(q, 10),
                              .busy = (int)lite_int(q, 11),
                              .connections = lite_int(q, 12),
                              .cpu_milli = lite_int(q, 13),
                              .memory = lite_int(q, 14),
                              .beats = lite_int(q, 15),
                              .started_us = lite_int(q, 16),
                              .beat_us = lite_int(q, 17) };
}

/* Room for one more of an array that grows by doubling; NULL without memory. */
static void *room(struct arena *a, void *v, size_t n, size_t size)
{
    if (n != 0 && (n < 8 || (n & (n - 1)) != 0))
        return v;
    void *more = arena_zalloc(a, n ? n * 2 : 8, size);
    if (more && n)
        memcpy(more, v, n * size);
    return more;
}

enum pawl_status lite_nodes(struct store *s, struct arena *a, struct node_rows *out,
                            struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    bool row = false;
    AUTO(lite_undo) struct lite *tx = NULL;
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    *out = (struct node_rows){ 0 };
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = lite_query(c, SQL_NODE_LIST, NO_ARGS, &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row) {
        out->v = room(a, out->v, out->n, sizeof *out->v);
        if (!out->v)
            return err_no_memory(err, "nodes");
        node_read(a, q, &out->v[out->n++]);
    }
    return st == PAWL_OK && a->failed ? err_no_memory(err, "nodes") : st;
}

enum pawl_status lite_leaders(struct store *s, struct arena *a, struct leader_rows *out,
                              struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    bool row = false;
    AUTO(lite_undo) struct lite *tx = NULL;
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    *out = (struct leader_rows){ 0 };
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = lite_query(c, SQL_LEADER_LIST, NO_ARGS, &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row) {
        out->v = room(a, out->v, out->n, sizeof *out->v);
        if (!out->v)
            return err_no_memory(err, "leaders");
        struct leader_row *r = &out->v[out->n++];
        *r = (struct leader_row){ .role = arena_copy(a, lite_column(q, 0)),
                                  .epoch = lite_int(q, 3) };
        if (!lite_int(q, 5))
            continue;
        r->node = arena_copy(a, lite_column(q, 1));
        r->boot = arena_copy(a, lite_column(q, 2));
        r->acquired_us = lite_int(q, 4);
        r->until_us = lite_int(q, 5);
    }
    return st == PAWL_OK && a->failed ? err_no_memory(err, "leaders") : st;
}

enum pawl_status lite_wishes(struct store *s, struct arena *a, struct wishes *out,
                             struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    bool row = false;
    AUTO(lite_undo) struct lite *tx = NULL;
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    *out = (struct wishes){ 0 };
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = lite_query(c, SQL_WISH_LIST, ARGS(INT(COUNT_MAX)), &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row) {
        out->seqs = room(a, out->seqs, out->n, sizeof *out->seqs);
        if (!out->seqs)
            return err_no_memory(err, "wishes");
        out->seqs[out->n++] = lite_int(q, 0);
    }
    return st;
}
