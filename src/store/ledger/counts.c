/*
 * counts.c - what operators look at: queues with their counts, nodes, cancel requests.
 *
 * Counting stops at COUNT_MAX for a queue. It goes by (lane, priority), so that counting due calls
 * does not scan calls that are not due yet.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/ledger/cache.h"

/* ---- Queues ---------------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
    return bytes_cmp(((const struct queue_row *)a)->queue, ((const struct queue_row *)b)->queue);
}

static bool is_flow(const struct ledger *c, int64_t lane)
{
    const struct led_lane *it = led_lane_at(c, (int)lane);
    return it && it->flow;
}

/* Sort the rows and merge duplicates. */
static void rows_unique(struct queue_rows *rows)
{
    size_t n = 0;
    qsort(rows->v, rows->n, sizeof *rows->v, compare_rows);
    for (size_t i = 0; i < rows->n; i++)
        if (n == 0 || !bytes_eq(rows->v[n - 1].queue, rows->v[i].queue))
            rows->v[n++] = rows->v[i];
        else
            rows->v[n - 1].paused = rows->v[n - 1].paused || rows->v[i].paused;
    rows->n = n;
}

/* Make a row for every queue that has a lane and for every paused queue. */
static enum pawl_status rows_make(struct ledger *c, struct arena *a, struct queue_rows *out,
                                  struct pawl_err *err)
{
    struct led_rows *r = NULL;
    enum pawl_status st = led_query(c, SQL_QUEUE_LIST, NULL, &r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++)
        if (!led_get(r, i, 0).len)
            st = err_set(err, PAWL_BROKEN, "database: a paused queue has no name");
    if (st != PAWL_OK)
        return st;
    out->v = arena_zalloc(a, c->lanes.n + r->n + 1, sizeof *out->v);
    for (size_t i = 0; out->v && i < c->lanes.n; i++)
        out->v[out->n++].queue = arena_copy(a, c->lanes.v[i].names.queue);
    for (int i = 0; out->v && i < r->n; i++)
        out->v[out->n++] = (struct queue_row){ .queue = arena_copy(a, led_get(r, i, 0)),
                                               .paused = led_get_int(r, i, 1) != 0 };
    if (!out->v || a->failed)
        return err_no_memory(err, "queues");
    rows_unique(out);
    return PAWL_OK;
}

static enum pawl_status lane_row(struct ledger *c, const struct queue_rows *rows, int lane,
                                 struct queue_row **out, struct pawl_err *err)
{
    const struct led_lane *l;
    enum pawl_status st = led_lane_try(c, lane, &l, err);
    if (st == PAWL_OK && !l) { /* a damaged call: no queue counts it */
        *out = arena_zalloc(&c->scratch, 1, sizeof **out);
        return *out ? PAWL_OK : err_no_memory(err, "queues");
    }
    if (st != PAWL_OK)
        return st;
    struct queue_row key = { .queue = l->names.queue };
    *out = rows->n ? bsearch(&key, rows->v, rows->n, sizeof key, compare_rows) : NULL;
    return *out ? PAWL_OK : err_set(err, PAWL_BROKEN, "lane %d has no queue", lane);
}

static void up(int64_t *n, int64_t more)
{
    *n = MIN(*n + more, COUNT_MAX);
}

static void oldest(struct queue_row *row, int64_t run_at_us, int64_t now_us)
{
    if (run_at_us <= now_us && (!row->oldest_due_us || run_at_us < row->oldest_due_us))
        row->oldest_due_us = run_at_us;
}

/* Add the number of calls in these pairs, each up to COUNT_MAX; `due`: only calls that are due. */
static enum pawl_status count_pairs(struct ledger *c, const struct queue_rows *rows,
                                    const struct led_rows *pairs, bool due, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    struct led_column tracks, ranks;
    led_column_init(&tracks, &c->scratch, LED_INTS);
    led_column_init(&ranks, &c->scratch, LED_INTS);
    for (int i = 0; i < pairs->n; i++) {
        led_add_int(&tracks, led_get_int(pairs, i, 0));
        led_add_int(&ranks, led_get_int(pairs, i, 1));
    }
    led_column(&p, &tracks);
    led_column(&p, &ranks);
    led_int(&p, due ? c->now_us : INT64_MAX);
    led_int(&p, COUNT_MAX);
    enum pawl_status st = led_query(c, SQL_READY_COUNT, &p, &r, err);
    if (st == PAWL_OK && r->n != pairs->n)
        st = err_set(err, PAWL_BROKEN, "database: %d pairs of ready are counted instead of %d",
                     r->n, pairs->n);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct queue_row *row;
        st = lane_row(c, rows, (int)led_get_int(r, i, 0) / 2, &row, err);
        bool flow = is_flow(c, led_get_int(r, i, 0) / 2);
        if (st == PAWL_OK && !flow)
            up(due ? &row->due : &row->pending, led_get_int(r, i, 1));
        else if (st == PAWL_OK && !due)
            up(&row->waiting, led_get_int(r, i, 1));
    }
    return st;
}

static enum pawl_status count_ready(struct ledger *c, const struct queue_rows *rows,
                                    struct pawl_err *err)
{
    struct led_rows *r = NULL;
    enum pawl_status st = led_query(c, SQL_READY_PAIRS, NULL, &r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct queue_row *row;
        st = led_ready_check(led_get_int(r, i, 0), led_get_int(r, i, 1), led_get_int(r, i, 2), err);
        if (st == PAWL_OK)
            st = lane_row(c, rows, (int)(led_get_int(r, i, 0) / 2), &row, err);
        if (st == PAWL_OK && !is_flow(c, led_get_int(r, i, 0) / 2))
            oldest(row, led_get_int(r, i, 2), c->now_us);
    }
    if (st != PAWL_OK || r->n == 0)
        return st;
    st = count_pairs(c, rows, r, false, err);
    return st == PAWL_OK ? count_pairs(c, rows, r, true, err) : st;
}

/* Count calls with a key that are not the head. */
static enum pawl_status count_line(struct ledger *c, const struct queue_rows *rows,
                                   struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    led_int(&p, c->now_us);
    led_int(&p, COUNT_MAX);
    enum pawl_status st = led_query(c, SQL_LINE_LIST, &p, &r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct queue_row *row;
        st = lane_row(c, rows, (int)led_get_int(r, i, 0), &row, err);
        if (st != PAWL_OK)
            break;
        if (led_get_int(r, i, 2) < 0 || led_get_int(r, i, 2) > led_get_int(r, i, 1))
            return err_set(err, PAWL_BROKEN,
                           "database: %lld of %lld calls in the lines of lane "
                           "%lld are due",
                           (long long)led_get_int(r, i, 2), (long long)led_get_int(r, i, 1),
                           (long long)led_get_int(r, i, 0));
        if (is_flow(c, led_get_int(r, i, 0))) {
            up(&row->waiting, led_get_int(r, i, 1));
            continue;
        }
        up(&row->pending, led_get_int(r, i, 1));
        up(&row->due, led_get_int(r, i, 2));
        oldest(row, led_get_int(r, i, 3), c->now_us);
    }
    return st;
}

/* Count what leases hold. A call that has not begun counts as pending, as it is shown. */
static enum pawl_status count_held(struct ledger *c, const struct queue_rows *rows,
                                   struct pawl_err *err)
{
    enum pawl_status st = led_all_leases(c, err);
    for (struct led_lease *l = c->tx->first_lease; l && st == PAWL_OK; l = l->newer)
        for (size_t i = 0; i < l->n && st == PAWL_OK; i++) {
            struct queue_row *row;
            if (l->state[i] != HELD_OPEN)
                continue;
            st = lane_row(c, rows, l->held[i].lane, &row, err);
            if (st != PAWL_OK)
                break;
            if (led_lease_begun(l, i) || is_flow(c, l->held[i].lane)) {
                up(&row->processing, 1);
                continue;
            }
            up(&row->pending, 1);
            up(&row->due, l->held[i].run_at_us <= c->now_us);
            oldest(row, l->held[i].run_at_us, c->now_us);
        }
    return st;
}

/* A queue whose lanes are all retired is listed only while it is paused or has calls. (What this
 * handle knows may be old: a retired lane may have been brought back.) */
static enum pawl_status drop_retired(struct ledger *c, struct queue_rows *rows,
                                     struct pawl_err *err)
{
    const struct led_lanes *l = &c->lanes;
    struct queue_row *used = arena_zalloc(&c->scratch, l->n + 1, sizeof *used);
    size_t n_used = 0, n = 0;
    if (!used)
        return err_no_memory(err, "queues");
    for (size_t i = 0; i < l->n; i++)
        if (!l->v[i].retired_us)
            used[n_used++].queue = l->v[i].names.queue;
    if (n_used == l->n)
        return PAWL_OK;
    qsort(used, n_used, sizeof *used, compare_rows);
    for (size_t i = 0; i < rows->n; i++) {
        const struct queue_row *row = &rows->v[i];
        if (row->paused || row->pending || row->processing || row->waiting ||
            bsearch(row, used, n_used, sizeof *used, compare_rows))
            rows->v[n++] = *row;
    }
    rows->n = n;
    return PAWL_OK;
}

enum pawl_status led_queues(struct store *s, struct arena *a, struct queue_rows *out,
                            struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    AUTO(led_undo) struct ledger *tx = NULL;
    enum pawl_status st = led_begin(c, LED_READ, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = led_lanes_read(c, err);
    if (st == PAWL_OK)
        st = rows_make(c, a, out, err);
    if (st == PAWL_OK)
        st = count_ready(c, out, err);
    if (st == PAWL_OK)
        st = count_line(c, out, err);
    if (st == PAWL_OK)
        st = count_held(c, out, err);
    return st == PAWL_OK ? drop_retired(c, out, err) : st;
}

/* ---- Nodes and cancel requests --------------------------------------------------------------- */

static enum pawl_status node_check(const struct node_row *n, struct pawl_err *err)
{
    enum pawl_status st = led_node_check(n->node, n->boot, n->beats, err);
    if (st == PAWL_OK && (n->state > NODE_DRAINING || n->slots < 0 || n->busy < 0))
        st = err_set(err, PAWL_BROKEN,
                     "database: node \"%.*s\" has an unknown state, or slots below 0",
                     BYTES_ARG(n->node));
    return st;
}

enum pawl_status led_nodes(struct store *s, struct arena *a, struct node_rows *out,
                           struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    struct led_rows *r = NULL;
    enum pawl_status st = led_begin_autocommit(c, err);
    AUTO(led_undo) struct ledger *tx = st == PAWL_OK ? c : NULL;
    if (st == PAWL_OK)
        st = led_query(c, SQL_NODE_LIST, NULL, &r, err);
    if (st != PAWL_OK)
        return st;
    out->v = arena_zalloc(a, r->n + 1, sizeof *out->v);
    for (int i = 0; out->v && st == PAWL_OK && i < r->n; i++) {
        out->v[out->n++] = (struct node_row){ .node = arena_copy(a, led_get(r, i, 0)),
                                              .boot = arena_copy(a, led_get(r, i, 1)),
                                              .host = arena_copy(a, led_get(r, i, 2)),
                                              .version = arena_copy(a, led_get(r, i, 3)),
                                              .address = arena_copy(a, led_get(r, i, 4)),
                                              .roles = arena_copy(a, led_get(r, i, 5)),
                                              .queues = arena_copy(a, led_get(r, i, 6)),
                                              .has = arena_copy(a, led_get(r, i, 7)),
                                              .dead = led_get_int(r, i, 8) != 0,
                                              .state = (enum node_state)led_get_int(r, i, 9),
                                              .drain = led_get_int(r, i, 10) != 0,
                                              .slots = (int)led_get_int(r, i, 11),
                                              .busy = (int)led_get_int(r, i, 12),
                                              .connections = led_get_int(r, i, 13),
                                              .cpu_milli = led_get_int(r, i, 14),
                                              .memory = led_get_int(r, i, 15),
                                              .beats = led_get_int(r, i, 16),
                                              .started_us = led_get_int(r, i, 17),
                                              .beat_us = led_get_int(r, i, 18) };
        st = node_check(&out->v[out->n - 1], err);
    }
    if (st != PAWL_OK)
        return st;
    return a->failed ? err_no_memory(err, "nodes") : PAWL_OK;
}

enum pawl_status led_leaders(struct store *s, struct arena *a, struct leader_rows *out,
                             struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    struct led_rows *r = NULL;
    enum pawl_status st = led_begin_autocommit(c, err);
    AUTO(led_undo) struct ledger *tx = st == PAWL_OK ? c : NULL;
    if (st == PAWL_OK)
        st = led_query(c, SQL_LEADER_LIST, NULL, &r, err);
    if (st != PAWL_OK)
        return st;
    out->v = arena_zalloc(a, r->n + 1, sizeof *out->v);
    for (int i = 0; out->v && i < r->n; i++) {
        struct leader_row *to = &out->v[out->n++];
        struct led_leader l = { led_get(r, i, 1), led_get(r, i, 2), led_get_int(r, i, 3),
                                led_get_int(r, i, 4), led_get_int(r, i, 5) };
        st = led_leader_check(led_get(r, i, 0), &l, LED_LOADED, err);
        if (st != PAWL_OK)
            return st;
        *to = (struct leader_row){ .role = arena_copy(a, led_get(r, i, 0)),
                                   .epoch = led_get_int(r, i, 3) };
        if (!led_get_int(r, i, 5))
            continue;
        to->node = arena_copy(a, led_get(r, i, 1));
        to->boot = arena_copy(a, led_get(r, i, 2));
        to->acquired_us = led_get_int(r, i, 4);
        to->until_us = led_get_int(r, i, 5);
    }
    return a->failed ? err_no_memory(err, "leaders") : PAWL_OK;
}

enum pawl_status led_cancel_requests(struct store *s, struct arena *a, struct cancel_requests *out,
                                     struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    struct led_rows *r = NULL;
    AUTO(led_undo) struct ledger *tx = NULL;
    struct led_params p = { 0 };
    enum pawl_status st = led_begin(c, LED_READ, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    led_int(&p, COUNT_MAX);
    st = led_query(c, SQL_CANCEL_REQUEST_LIST, &p, &r, err);
    if (st != PAWL_OK)
        return st;
    out->seqs = arena_zalloc(a, r->n + 1, sizeof *out->seqs);
    for (int i = 0; out->seqs && st == PAWL_OK && i < r->n; i++) {
        out->seqs[out->n++] = led_get_int(r, i, 0);
        st = led_number_check(led_get_int(r, i, 0), "a cancel request", err);
    }
    if (st != PAWL_OK)
        return st;
    return a->failed ? err_no_memory(err, "cancel_requests") : PAWL_OK;
}
