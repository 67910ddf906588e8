/*
 * schedules.c - /v1/schedules: storing, reading, pausing and running schedules, their runs, and a
 * preview of times.
 *
 * A change is one operation of feature_cron; its answer is the schedule as a read finds it then.
 * What must stay true: once the change is stored, no failure of that read may look as if nothing
 * had been stored.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "api/ask.h"
#include "api/ask_io.h"
#include "api/ask_spec.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/get.h"
#include "api/internal.h"
#include "api/list.h"
#include "api/match.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/schedule_json.h"
#include "base/json.h"
#include "feature/zones.h"
#include "exec/work_signal.h"
#include "model/cursor.h"
#include "model/words.h"

static bool sees_contents(const struct ask *q)
{
    return q->who.role != ROLE_MONITOR;
}

/* ---- One schedule ---------------------------------------------------------------------------- */

struct schedule_read {
    struct ask_read read; /* first */
    struct bytes name;
    struct schedule_shown *shown; /* one */
    int64_t now_us;
    bool stored;  /* it was stored a moment ago */
    bool created; /* with stored: there was none before */
};

static enum pawl_status schedule_work(struct ask_read *rd, struct store *s)
{
    struct schedule_read *r = (struct schedule_read *)rd;
    struct cron_row row;
    struct cron_rows rows = { .v = &row, .n = 1 };
    enum pawl_status st = cron_get(s, &rd->arena, r->name, &row, &rd->err);
    return st == PAWL_OK ? schedules_show(rd, s, &rows, r->now_us, &r->shown) : st;
}

static char *schedule_path(struct arena *a, struct bytes name)
{
    struct buf b;
    buf_init(&b, 4096);
    buf_add_text(&b, "/v1/schedules/");
    percent_add(&b, name);
    char *path = buf_ok(&b) ? arena_text(a, buf_bytes(&b)) : NULL;
    buf_release(&b);
    return path;
}

static void schedule_reply(struct schedule_read *r)
{
    struct ask *q = r->read.ask;
    struct buf *b = ask_buf(q);
    char etag[32];
    struct http_header h[2] = { { BYTES("ETag"), { etag, 0 } }, { BYTES("Location"), BYTES_NONE } };
    h[0].value.len =
        (size_t)snprintf(etag, sizeof etag, "\"%lld\"", (long long)r->shown->row.version);
    if (r->created)
        h[1].value = bytes_of(schedule_path(q->a, r->name));
    schedule_json_add(b, r->shown, r->now_us, sees_contents(q));
    ask_read_end(&r->read);
    ask_reply_with(q, r->created ? 201 : 200, b, h, h[1].value.data ? 2 : 1);
}

/* The change is stored, and the schedule cannot be read back. */
static void stored_unread(struct schedule_read *r)
{
    struct ask *q = r->read.ask;
    bool gone = r->read.status == PAWL_NOT_FOUND;
    struct pawl_err err = ask_read_why(&r->read);
    if (gone)
        ask_refusef(q, PAWL_NOT_FOUND, "schedule \"%.*s\" was stored, and deleted since",
                    BYTES_ARG(text_shown(q->a, r->name)));
    else
        ask_refusef(q, PAWL_UNKNOWN, "schedule \"%.*s\" was stored, but not read back: %s",
                    BYTES_ARG(text_shown(q->a, r->name)), err.text);
}

static void schedule_done(struct ask_read *rd)
{
    struct schedule_read *r = (struct schedule_read *)rd;
    if (rd->status != PAWL_OK && r->stored)
        stored_unread(r);
    else if (!ask_read_failed(rd))
        schedule_reply(r);
}

/* Read the schedule and answer with it. */
static void schedule_look(struct ask *q, bool stored, bool created)
{
    struct schedule_read *r = arena_zalloc(q->a, 1, sizeof *r);
    if (!r) {
        ask_no_memory(q);
        return;
    }
    r->name = q->path[0];
    r->now_us = exec_now(q->api->exec);
    r->stored = stored;
    r->created = created;
    r->read.work = schedule_work;
    r->read.done = schedule_done;
    ask_read(q, &r->read);
}

void route_schedule_get(struct ask *q)
{
    schedule_look(q, false, false);
}

/* ---- The list -------------------------------------------------------------------------------- */

struct schedules_read {
    struct ask_read read; /* first */
    struct cron_query query;
    struct schedule_shown *v;
    size_t n;
    struct bytes next;
    int64_t now_us;
};

static enum pawl_status schedules_work(struct ask_read *rd, struct store *s)
{
    struct schedules_read *r = (struct schedules_read *)rd;
    struct cron_rows rows;
    enum pawl_status st = cron_list(s, &rd->arena, &r->query, &rows, &rd->err);
    if (st != PAWL_OK)
        return st;
    r->next = rows.next;
    r->n = rows.n;
    return schedules_show(rd, s, &rows, r->now_us, &r->v);
}

static void schedules_done(struct ask_read *rd)
{
    struct schedules_read *r = (struct schedules_read *)rd;
    struct ask *q = rd->ask;
    if (ask_read_failed(rd))
        return;
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"schedules\":[");
    for (size_t i = 0; i < r->n; i++) {
        json_add_comma(b);
        schedule_json_add(b, &r->v[i], r->now_us, sees_contents(q));
    }
    buf_add_char(b, ']');
    list_next_name(b, r->next);
    buf_add_char(b, '}');
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_schedules(struct ask *q)
{
    struct value limit = ask_query(q, "limit"), cursor = ask_query(q, "cursor");
    struct schedules_read *r = arena_zalloc(q->a, 1, sizeof *r);
    if (!r) {
        ask_no_memory(q);
        return;
    }
    r->query.limit = limit.given ? (int)limit.n : LIST_DEFAULT;
    if (!list_cursor_name(q, cursor, &r->query.after))
        return;
    r->now_us = exec_now(q->api->exec);
    r->read.work = schedules_work;
    r->read.done = schedules_done;
    ask_read(q, &r->read);
}

/* ---- Changes --------------------------------------------------------------------------------- */

struct schedule_write {
    struct ask_write write; /* first */
    struct cron_op op;
    struct schedule s;
};

static void run_reply(struct ask *q, struct schedule_write *w)
{
    struct bytes id = arena_copy(q->a, w->op.id);
    unsigned show = SHOW_ALL | SHOW_STORED | SHOW_LOCATION;
    if (w->op.duplicate)
        show |= SHOW_DUPLICATE;
    ask_write_end(&w->write);
    exec_work_came(q->api->exec);
    if (id.data)
        show_call(q, id, 0, show);
    else
        ask_no_memory(q);
}

static void delete_reply(struct ask *q, struct schedule_write *w)
{
    struct buf *b = ask_buf(q);
    ask_write_end(&w->write);
    buf_add_char(b, '{');
    add_text(b, "name", q->path[0]);
    add_bool(b, "deleted", true);
    buf_add_char(b, '}');
    ask_reply(q, 200, b);
}

static void schedule_written(struct ask_write *aw)
{
    struct schedule_write *w = (struct schedule_write *)aw;
    struct ask *q = aw->ask;
    if (aw->job.op.status != PAWL_OK) {
        struct pawl_err err = aw->job.op.err;
        err.status = aw->job.op.status;
        ask_write_end(aw);
        ask_fail(q, &err);
    } else if (w->op.what == CRON_RUN) {
        run_reply(q, w);
    } else if (w->op.what == CRON_DELETE) {
        delete_reply(q, w);
    } else {
        bool created = w->op.created;
        ask_write_end(aw);
        schedule_look(q, true, created);
    }
}

/* Post the change, or end the ask with what was wrong. */
static void schedule_post(struct ask *q, struct schedule_write *w, const struct pawl_err *err)
{
    if (err->status != PAWL_OK) {
        ask_fail(q, err);
        return;
    }
    w->write.job.op =
        (struct op){ .kind = OP_FEATURE, .feature = { .of = &feature_cron, .ctx = &w->op } };
    w->write.job.len = w->s.call.input.bytes.len;
    w->write.done = schedule_written;
    ask_write(q, &w->write);
}

static struct schedule_write *write_new(struct ask *q, enum cron_do what)
{
    struct schedule_write *w = arena_zalloc(q->a, 1, sizeof *w);
    if (!w) {
        ask_no_memory(q);
        return NULL;
    }
    w->op = (struct cron_op){ .what = what,
                              .name = q->path[0],
                              .client = q->who.name,
                              .node = bytes_of(exec_node(q->api->exec)) };
    return w;
}

/* Read the headers that say under which condition a change is made. */
static enum pawl_status condition_read(struct ask *q, struct cron_op *op, struct pawl_err *err)
{
    struct if_match m;
    enum pawl_status st = if_match_read(q, op->what == CRON_PUT, &m, err);
    op->if_any = m.any;
    op->if_none = m.none;
    op->if_version = m.version;
    op->or_versions = m.or_versions;
    op->n_or_versions = m.n_or_versions;
    return st;
}

/* Read all that needs no time. Whether it has a tick to come is asked of a change alone: a repeat
 * of a schedule that is over is none. */
static enum pawl_status put_read(struct ask *q, struct schedule_write *w, const struct json *body,
                                 struct pawl_err *err)
{
    const struct schedule_limits limits = { q->api->call_timeout_us, q->api->input_len_max };
    const struct zone *zone;
    enum pawl_status st = schedule_read(q->a, body, &limits, &w->s, err);
    if (st != PAWL_OK)
        return st;
    if (w->s.name.data && !bytes_eq(w->s.name, q->path[0]))
        return err_set(err, PAWL_INVALID, "field \"name\": is \"%.*s\", and the path says \"%.*s\"",
                       BYTES_ARG(text_shown(q->a, w->s.name)),
                       BYTES_ARG(text_shown(q->a, q->path[0])));
    w->op.schedule = &w->s;
    return zones_of_field(w->s.zone, &zone, err);
}

/* A body that is `{"paused":...}` and nothing else; then it is pause or resume. */
static bool only_paused(const struct json *body)
{
    return body->kind == JSON_OBJECT && body->count == 1 && json_member(body, "paused");
}

/* Read the body, and so what is to be done. */
static enum pawl_status put_body(struct ask *q, struct schedule_write *w, struct pawl_err *err)
{
    struct json *body;
    enum pawl_status st = body_json(q, false, &body, err);
    if (st != PAWL_OK || !only_paused(body))
        return st == PAWL_OK ? put_read(q, w, body, err) : st;
    const struct json *paused = json_member(body, "paused");
    w->op.what = paused->kind == JSON_TRUE ? CRON_PAUSE : CRON_RESUME;
    if (paused->kind == JSON_TRUE || paused->kind == JSON_FALSE)
        return PAWL_OK;
    return err_set(err, PAWL_INVALID, "field \"paused\": is %.*s, not true or false",
                   (int)MIN(paused->raw.len, 60), paused->raw.data);
}

/* ---- PUT as a question: what would change? --------------------------------------------------- */

struct plan_read {
    struct ask_read read; /* first */
    const struct cron_op *op;
    enum cron_change change;
};

static enum pawl_status plan_work(struct ask_read *rd, struct store *s)
{
    struct plan_read *p = (struct plan_read *)rd;
    return cron_would(s, p->op, &p->change, &rd->err);
}

static void plan_done(struct ask_read *rd)
{
    static const char *const words[] = {
        [CRON_NO_CHANGE] = "none", [CRON_CREATE] = "create", [CRON_UPDATE] = "update"
    };
    struct plan_read *p = (struct plan_read *)rd;
    struct ask *q = rd->ask;
    if (ask_read_failed(rd))
        return;
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    add_text(b, "name", p->op->name);
    add_text(b, "change", bytes_of(words[p->change]));
    buf_add_char(b, '}');
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

/* Answer what this change would do. */
static void plan_look(struct ask *q, const struct cron_op *op)
{
    struct plan_read *p = arena_zalloc(q->a, 1, sizeof *p);
    if (!p) {
        ask_no_memory(q);
        return;
    }
    p->op = op;
    p->read.work = plan_work;
    p->read.done = plan_done;
    ask_read(q, &p->read);
}

static void put_plan(struct ask *q, struct schedule_write *w)
{
    struct pawl_err err;
    err.status = put_body(q, w, &err);
    if (err.status == PAWL_OK &&
        (http_header(q->r, "if-match").data || http_header(q->r, "if-none-match").data))
        err_set(&err, PAWL_INVALID,
                "field \"dry_run\": is given together with If-Match or If-None-Match");
    if (err.status == PAWL_OK)
        plan_look(q, &w->op);
    else
        ask_fail(q, &err);
}

void route_schedule_put(struct ask *q)
{
    struct schedule_write *w = write_new(q, CRON_PUT);
    struct pawl_err err;
    if (!w)
        return;
    q->only_asks = ask_query(q, "dry_run").n;
    if (q->only_asks) {
        put_plan(q, w);
        return;
    }
    err.status = condition_read(q, &w->op, &err);
    if (err.status == PAWL_OK)
        err.status = put_body(q, w, &err);
    schedule_post(q, w, &err);
}

/* DELETE, pause and resume. */
static void change(struct ask *q, enum cron_do what)
{
    struct schedule_write *w = write_new(q, what);
    struct pawl_err err;
    if (!w)
        return;
    err.status = condition_read(q, &w->op, &err);
    schedule_post(q, w, &err);
}

void route_schedule_delete(struct ask *q)
{
    change(q, CRON_DELETE);
}

void route_schedule_pause(struct ask *q)
{
    change(q, CRON_PAUSE);
}

void route_schedule_resume(struct ask *q)
{
    change(q, CRON_RESUME);
}

void route_schedule_run(struct ask *q)
{
    struct schedule_write *w = write_new(q, CRON_RUN);
    struct pawl_err err;
    if (!w)
        return;
    err.status = ask_idempotency_key(q, &w->op.run_key, &err);
    const char *bad =
        err.status == PAWL_OK && w->op.run_key.data ? name_fault(w->op.run_key) : NULL;
    if (bad)
        err_set(&err, PAWL_INVALID, "field \"Idempotency-Key\": %s", bad);
    schedule_post(q, w, &err);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

struct runs_read {
    struct ask_read read; /* first */
    struct cron_run_query query;
    struct cron_run_rows rows;
};

static enum pawl_status runs_work(struct ask_read *rd, struct store *s)
{
    struct runs_read *r = (struct runs_read *)rd;
    struct cron_row row;
    enum pawl_status st = cron_runs(s, &rd->arena, &r->query, &r->rows, &rd->err);
    /* A deleted schedule has its runs as long as they are kept; without any it must exist. */
    if (st == PAWL_OK && !r->rows.n)
        st = cron_get(s, &rd->arena, r->query.name, &row, &rd->err);
    return st;
}

/* A place in the list of runs is a time and a number: two cursors in one. */
static void runs_next(struct buf *b, const struct cron_run_rows *rows)
{
    char at[CURSOR_TEXT_MAX], no[CURSOR_TEXT_MAX];
    if (!rows->more || !rows->n) {
        add_text(b, "next", BYTES_NONE);
        return;
    }
    cursor_write(rows->v[rows->n - 1].at_us, at);
    cursor_write(rows->v[rows->n - 1].no, no);
    json_add_name(b, "next");
    buf_addf(b, "\"%s%s\"", at, no);
}

static bool runs_cursor(struct bytes text, struct cron_run_query *out)
{
    size_t half = text.len / 2;
    return text.len % 2 == 0 && cursor_read((struct bytes){ text.data, half }, &out->before_us) &&
           cursor_read((struct bytes){ text.data + half, half }, &out->before_no);
}

static void runs_done(struct ask_read *rd)
{
    struct runs_read *r = (struct runs_read *)rd;
    struct ask *q = rd->ask;
    if (ask_read_failed(rd))
        return;
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"runs\":[");
    for (size_t i = 0; i < r->rows.n; i++) {
        json_add_comma(b);
        run_json_add(b, &r->rows.v[i], sees_contents(q));
    }
    buf_add_char(b, ']');
    runs_next(b, &r->rows);
    buf_add_char(b, '}');
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_schedule_runs(struct ask *q)
{
    struct value limit = ask_query(q, "limit"), cursor = ask_query(q, "cursor");
    struct runs_read *r = arena_zalloc(q->a, 1, sizeof *r);
    if (!r) {
        ask_no_memory(q);
        return;
    }
    r->query = (struct cron_run_query){ .name = q->path[0],
                                        .limit = limit.given ? (int)limit.n : LIST_DEFAULT };
    if (cursor.given && !runs_cursor(cursor.text, &r->query)) {
        refuse_cursor(q, cursor.text);
        return;
    }
    r->read.work = runs_work;
    r->read.done = runs_done;
    ask_read(q, &r->read);
}
