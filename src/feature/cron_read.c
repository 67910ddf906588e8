/*
 * cron_read.c - reading schedules and their ticks (cron.h). Any thread, with a connection of its
 * own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "feature/cron_inside.h"
#include "store/store.h"

/* What a look is for; its answer goes into `a`. */
struct looking {
    struct arena *a;
    union {
        const struct bytes *name;
        const struct cron_query *query;
        const struct cron_run_query *runs;
        const struct cron_rows *page;
    };
    struct cron_row *row;
    struct cron_rows *rows;
    struct cron_run_rows *ticks;
    struct cron_due *due;
    bool found;
};

static struct bytes keep(struct looking *l, struct bytes b)
{
    return arena_copy(l->a, b);
}

static struct cron_row shown(struct looking *l, const struct row *r)
{
    return (struct cron_row){ .name = keep(l, r->name),
                              .spec = keep(l, r->spec),
                              .version = r->version,
                              .next_us = r->next.at_us,
                              .paused = r->pause == PAUSE_YES,
                              .zone_data = keep(l, r->zone_data),
                              .last_us = r->last.at_us,
                              .last_id = keep(l, r->last_id),
                              .waiting_us = r->waiting_us,
                              .created_us = r->created_us,
                              .updated_us = r->updated_us };
}

/* ---- Schedules ------------------------------------------------------------------------------- */

static enum pawl_status look_one(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct looking *l = ctx;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_text(&p, *l->name);
    enum pawl_status st = feature_query(d, SQL_CRON_READ, &p, &rows, err);
    if (st != PAWL_OK || rows->n == 0)
        return st;
    struct row r = row_read(rows, 0);
    *l->row = shown(l, &r);
    l->found = true;
    return l->a->failed ? err_no_memory(err, "a schedule") : PAWL_OK;
}

enum pawl_status cron_get(struct store *s, struct arena *a, struct bytes name, struct cron_row *out,
                          struct pawl_err *err)
{
    struct looking l = { .a = a, .name = &name, .row = out };
    enum pawl_status st = store_look(s, LOOK_ALONE, look_one, &l, err);
    if (st != PAWL_OK || l.found)
        return st;
    return err_set(err, PAWL_NOT_FOUND, "no schedule \"%.*s\"", BYTES_ARG(name));
}

/* How many of the next schedules fit into a page, at least one, and whether more follow. Asked
 * before they are read, so that no page is larger in memory. */
static enum pawl_status list_fits(struct ledger *d, const struct cron_query *q, int *out,
                                  bool *out_more, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *rows;
    int64_t len = 0;
    int n = 0;
    led_text(&p, q->after.data ? q->after : BYTES(""));
    led_int(&p, q->limit + 1);
    enum pawl_status st = feature_query(d, SQL_CRON_LENGTHS, &p, &rows, err);
    if (st != PAWL_OK)
        return st;
    for (; n < rows->n && n < q->limit; n++) {
        len += led_get_int(rows, n, 0);
        if (n && len > SCHEDULE_PAGE_LEN_MAX)
            break;
    }
    *out = n;
    *out_more = n < rows->n;
    return PAWL_OK;
}

static enum pawl_status look_list(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct looking *l = ctx;
    const struct cron_query *q = l->query;
    struct led_params p = { 0 };
    struct led_rows *rows;
    int fits;
    bool more;
    enum pawl_status st = list_fits(d, q, &fits, &more, err);
    if (st != PAWL_OK)
        return st;
    led_text(&p, q->after.data ? q->after : BYTES(""));
    led_int(&p, fits);
    st = feature_query(d, SQL_CRON_LIST, &p, &rows, err);
    if (st != PAWL_OK)
        return st;
    l->rows->n = (size_t)rows->n;
    l->rows->v = arena_zalloc(l->a, l->rows->n + 1, sizeof *l->rows->v);
    if (!l->rows->v)
        return err_no_memory(err, "schedules");
    for (size_t i = 0; i < l->rows->n; i++) {
        struct row r = row_read(rows, (int)i);
        l->rows->v[i] = shown(l, &r);
    }
    l->rows->next = BYTES_NONE;
    if (!l->a->failed && more && l->rows->n)
        l->rows->next = l->rows->v[l->rows->n - 1].name;
    return l->a->failed ? err_no_memory(err, "schedules") : PAWL_OK;
}

enum pawl_status cron_list(struct store *s, struct arena *a, const struct cron_query *q,
                           struct cron_rows *out, struct pawl_err *err)
{
    struct looking l = { .a = a, .query = q, .rows = out };
    assert(q->limit >= 1 && q->limit <= LIST_MAX);
    return store_look(s, LOOK_SNAPSHOT, look_list, &l, err);
}

static enum pawl_status look_due(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct looking *l = ctx;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_int(&p, feature_now(d));
    enum pawl_status st = feature_query(d, SQL_CRON_LOOK, &p, &rows, err);
    if (st != PAWL_OK)
        return st;
    CHECK(rows->n == 1);
    l->due->now_us = led_get_int(rows, 0, 0);
    l->due->next_us = led_get_int(rows, 0, 1);
    CHECK(l->due->now_us > 0 && l->due->next_us >= 0);
    return PAWL_OK;
}

enum pawl_status cron_due(struct store *s, struct cron_due *out, struct pawl_err *err)
{
    struct looking l = { .due = out };
    return store_look(s, LOOK_ALONE, look_due, &l, err);
}

/* ---- Ticks ----------------------------------------------------------------------------------- */

/* Columns of tick_list and tick_last. */
enum { T_AT, T_NO, T_KIND, T_REASON, T_ZONE, T_COUNT, T_CALL_ID, T_NODE, T_CREATED_AT, T_NAME };

/* Read a tick. BROKEN: it is damaged, which its readers are told, as of a call. */
static enum pawl_status run_read(struct looking *l, const struct led_rows *rows, int i,
                                 struct bytes name, struct cron_run *out, struct pawl_err *err)
{
    *out = (struct cron_run){ .name = name,
                              .at_us = led_get_int(rows, i, T_AT),
                              .no = led_get_int(rows, i, T_NO),
                              .kind = (enum cron_kind)led_get_int(rows, i, T_KIND),
                              .reason = keep(l, led_get(rows, i, T_REASON)),
                              .zone = keep(l, led_get(rows, i, T_ZONE)),
                              .count = led_get_int(rows, i, T_COUNT),
                              .decided_us = led_get_int(rows, i, T_CREATED_AT),
                              .id = keep(l, led_get(rows, i, T_CALL_ID)),
                              .node = keep(l, led_get(rows, i, T_NODE)) };
    bool called = out->kind == CRON_SUBMITTED || out->kind == CRON_MANUAL;
    const char *wrong = out->kind < CRON_SUBMITTED || out->kind > CRON_MISSED ? "an unknown kind"
                        : called && !led_get(rows, i, T_CALL_ID).data         ? "no call"
                        : out->count < 1                                      ? "a count below 1"
                        : out->at_us <= 0                                     ? "no time"
                                                                              : NULL;
    if (!wrong)
        return PAWL_OK;
    return err_set(err, PAWL_BROKEN, "database: a run of schedule \"%.*s\" has %s",
                   (int)MIN(name.len, 60), name.data ? name.data : "", wrong);
}

/* Is row i of this list older than the one before it? */
static bool older(const struct cron_run *v, size_t i)
{
    return i == 0 || v[i].at_us < v[i - 1].at_us ||
           (v[i].at_us == v[i - 1].at_us && v[i].no < v[i - 1].no);
}

static enum pawl_status look_ticks(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct looking *l = ctx;
    const struct cron_run_query *q = l->runs;
    struct cron_run_rows *out = l->ticks;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_text(&p, q->name);
    led_int(&p, q->before_us ? q->before_us : INT64_MAX);
    led_int(&p, q->before_us ? q->before_no : INT64_MAX);
    led_int(&p, q->limit + 1);
    enum pawl_status st = feature_query(d, SQL_TICK_LIST, &p, &rows, err);
    if (st != PAWL_OK)
        return st;
    CHECK(rows->n <= q->limit + 1);
    out->n = (size_t)MIN(rows->n, q->limit);
    out->more = rows->n > q->limit;
    out->v = arena_zalloc(l->a, out->n + 1, sizeof *out->v);
    for (size_t i = 0; st == PAWL_OK && out->v && i < out->n; i++) {
        st = run_read(l, rows, (int)i, keep(l, q->name), &out->v[i], err);
        CHECK(st != PAWL_OK || older(out->v, i));
    }
    return l->a->failed ? err_no_memory(err, "ticks") : st;
}

static int compare_name(const void *name, const void *row)
{
    return bytes_cmp(*(const struct bytes *)name, ((const struct cron_row *)row)->name);
}

/* The place of the schedule of this name; q->n: it is not one of them. */
static size_t place_of(const struct cron_rows *q, struct bytes name)
{
    const struct cron_row *r = bsearch(&name, q->v, q->n, sizeof *q->v, compare_name);
    return r ? (size_t)(r - q->v) : q->n;
}

static enum pawl_status look_last(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct looking *l = ctx;
    const struct cron_rows *q = l->page;
    struct led_params p = { 0 };
    struct led_rows *rows;
    struct bytes *names = arena_alloc(feature_arena(d), q->n * sizeof *names);
    if (!names)
        return err_no_memory(err, "schedules");
    for (size_t i = 0; i < q->n; i++)
        names[i] = q->v[i].name;
    led_texts(d, &p, names, q->n);
    enum pawl_status st = feature_query(d, SQL_TICK_LAST, &p, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        size_t at = place_of(q, led_get(rows, i, T_NAME));
        CHECK(at < q->n && !l->ticks->v[at].kind); /* it was asked for, and each has one */
        st = run_read(l, rows, i, q->v[at].name, &l->ticks->v[at], err);
    }
    return st == PAWL_OK && l->a->failed ? err_no_memory(err, "ticks") : st;
}

/* What the calls came to. Read after the ticks, so a call may be further than its tick says, never
 * behind it. */
static enum pawl_status calls_read(struct store *s, struct arena *a, struct cron_run_rows *out,
                                   struct pawl_err *err)
{
    struct bytes *ids = arena_alloc(a, (out->n + 1) * sizeof *ids);
    struct cron_run **of = arena_alloc(a, (out->n + 1) * sizeof(struct cron_run *));
    struct get g = { .ids = ids };
    if (!ids || !of)
        return err_no_memory(err, "ticks");
    for (size_t i = 0; i < out->n; i++)
        if (out->v[i].id.data) {
            of[g.n] = &out->v[i];
            ids[g.n++] = out->v[i].id;
        }
    enum pawl_status st = g.n ? store_get(s, a, &g, err) : PAWL_OK;
    for (size_t i = 0; st == PAWL_OK && i < g.n; i++) {
        const struct call *c = &g.out[i];
        if (g.found[i] == PAWL_NOT_FOUND)
            continue;
        of[i]->state = c->state;
        of[i]->started_us = c->started_us;
        of[i]->finished_us = c->finished_us;
        of[i]->error = c->error;
        of[i]->node = c->node.data ? c->node : of[i]->node;
    }
    return st;
}

enum pawl_status cron_runs(struct store *s, struct arena *a, const struct cron_run_query *q,
                           struct cron_run_rows *out, struct pawl_err *err)
{
    struct looking l = { .a = a, .runs = q, .ticks = out };
    assert(q->limit >= 1 && q->limit <= LIST_MAX);
    enum pawl_status st = store_look(s, LOOK_ALONE, look_ticks, &l, err);
    return st == PAWL_OK ? calls_read(s, a, out, err) : st;
}

enum pawl_status cron_last(struct store *s, struct arena *a, const struct cron_rows *of,
                           struct cron_run **out, struct pawl_err *err)
{
    struct cron_run_rows ticks = { .v = arena_zalloc(a, of->n + 1, sizeof *ticks.v), .n = of->n };
    struct looking l = { .a = a, .page = of, .ticks = &ticks };
    assert(of->n <= LIST_MAX);
    *out = ticks.v;
    if (!ticks.v)
        return err_no_memory(err, "ticks");
    for (size_t i = 1; i < of->n; i++)
        CHECK(bytes_cmp(of->v[i - 1].name, of->v[i].name) < 0);
    enum pawl_status st = of->n ? store_look(s, LOOK_ALONE, look_last, &l, err) : PAWL_OK;
    return st == PAWL_OK ? calls_read(s, a, &ticks, err) : st;
}
