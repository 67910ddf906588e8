/*
 * limits.c - /v1/limits: storing, reading and removing limits.
 *
 * A change is one operation of feature_limit; its answer is the limit as a read finds it then.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/ask_io.h"
#include "api/ask_spec.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/internal.h"
#include "api/list.h"
#include "api/reply.h"
#include "api/routes.h"
#include "base/json.h"
#include "base/limits.h"
#include "exec/work_signal.h"
#include "feature/limit.h"
#include "model/words.h"

static void add_name(struct buf *b, const char *name, struct bytes text)
{
    add_text(b, name, text.data && !text.len ? BYTES_NONE : text);
}

static void add_int_or_null(struct buf *b, const char *name, int64_t n)
{
    json_add_name(b, name);
    if (n)
        buf_addf(b, "%lld", (long long)n);
    else
        buf_add_text(b, "null");
}

static void limit_json_add(struct buf *b, const struct limit_row *r)
{
    const struct limit *l = &r->limit;
    buf_add_char(b, '{');
    add_text(b, "name", l->name);
    add_name(b, "queue", l->queue);
    add_name(b, "type", l->type);
    add_name(b, "key_prefix", l->key_prefix);
    add_int_or_null(b, "max", l->max);
    add_int_or_null(b, "rate", l->rate);
    if (l->rate)
        add_seconds(b, "per", l->per_us);
    else
        add_int_or_null(b, "per", 0);
    add_int_or_null(b, "burst", l->burst);
    add_int(b, "running", r->running);
    add_time(b, "created_at", r->created_us);
    add_time(b, "updated_at", r->updated_us);
    buf_add_char(b, '}');
}

/* ---- One limit ------------------------------------------------------------------------------- */

struct limit_look {
    struct ask_read read; /* first */
    struct bytes name;
    struct limit_row row;
    bool stored, created; /* it was stored a moment ago; there was none before */
};

static enum pawl_status limit_work(struct ask_read *rd, struct store *s)
{
    struct limit_look *r = (struct limit_look *)rd;
    return limit_get(s, &rd->arena, r->name, &r->row, &rd->err);
}

static void limit_done(struct ask_read *rd)
{
    struct limit_look *r = (struct limit_look *)rd;
    struct ask *q = rd->ask;
    if (rd->status != PAWL_OK && r->stored) {
        struct pawl_err err = ask_read_why(rd);
        ask_refusef(q, PAWL_UNKNOWN, "limit \"%.*s\" was stored, but not read back: %s",
                    BYTES_ARG(r->name), err.text);
        return;
    }
    if (ask_read_failed(rd))
        return;
    struct buf *b = ask_buf(q);
    limit_json_add(b, &r->row);
    ask_read_end(rd);
    ask_reply(q, r->created ? 201 : 200, b);
}

static void limit_look(struct ask *q, bool stored, bool created)
{
    struct limit_look *r = arena_zalloc(q->a, 1, sizeof *r);
    if (!r) {
        ask_no_memory(q);
        return;
    }
    r->name = q->path[0];
    r->stored = stored;
    r->created = created;
    r->read.work = limit_work;
    r->read.done = limit_done;
    ask_read(q, &r->read);
}

void route_limit_get(struct ask *q)
{
    limit_look(q, false, false);
}

/* ---- The list -------------------------------------------------------------------------------- */

struct limits_look {
    struct ask_read read; /* first */
    struct limit_query query;
    struct limit_page page;
};

static enum pawl_status limits_work(struct ask_read *rd, struct store *s)
{
    struct limits_look *r = (struct limits_look *)rd;
    return limit_list(s, &rd->arena, &r->query, &r->page, &rd->err);
}

static void limits_done(struct ask_read *rd)
{
    struct limits_look *r = (struct limits_look *)rd;
    struct ask *q = rd->ask;
    if (ask_read_failed(rd))
        return;
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"limits\":[");
    for (size_t i = 0; i < r->page.n; i++) {
        json_add_comma(b);
        limit_json_add(b, &r->page.v[i]);
    }
    buf_add_char(b, ']');
    list_next_name(b, r->page.next);
    buf_add_char(b, '}');
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_limits(struct ask *q)
{
    struct value limit = ask_query(q, "limit"), cursor = ask_query(q, "cursor");
    struct limits_look *r = arena_zalloc(q->a, 1, sizeof *r);
    if (!r) {
        ask_no_memory(q);
        return;
    }
    r->query.limit = limit.given ? (int)limit.n : LIST_DEFAULT;
    if (!list_cursor_name(q, cursor, &r->query.after))
        return;
    r->read.work = limits_work;
    r->read.done = limits_done;
    ask_read(q, &r->read);
}

/* ---- Changes --------------------------------------------------------------------------------- */

struct limit_write {
    struct ask_write write; /* first */
    struct limit_op op;
    struct limit limit;
};

static void limit_written(struct ask_write *aw)
{
    struct limit_write *w = (struct limit_write *)aw;
    struct ask *q = aw->ask;
    struct pawl_err err = aw->job.op.err;
    /* The operation's answer is in its copy, if exec made one. */
    const struct limit_op *op = aw->job.op.feature.ctx;
    bool created = op->created, removes = w->op.what == LIMIT_REMOVE;
    err.status = aw->job.op.status;
    ask_write_end(aw);
    if (err.status != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    exec_work_came(q->api->exec);
    if (!removes) {
        limit_look(q, true, created);
        return;
    }
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    add_text(b, "name", q->path[0]);
    add_bool(b, "deleted", true);
    buf_add_char(b, '}');
    ask_reply(q, 200, b);
}

static void limit_post(struct ask *q, struct limit_write *w)
{
    w->op.name = q->path[0];
    w->op.limit = w->op.what == LIMIT_PUT ? &w->limit : NULL;
    w->write.job.op =
        (struct op){ .kind = OP_FEATURE, .feature = { .of = &feature_limit, .ctx = &w->op } };
    w->write.done = limit_written;
    ask_write(q, &w->write);
}

static enum pawl_status put_read(struct ask *q, struct limit_write *w, struct pawl_err *err)
{
    enum pawl_status st = body_object(q, &w->limit, NULL, err);
    if (st == PAWL_OK)
        st = limit_settle(&w->limit, err);
    if (st != PAWL_OK || !w->limit.name.data || bytes_eq(w->limit.name, q->path[0]))
        return st;
    return err_set(err, PAWL_INVALID, "field \"name\": is \"%.*s\", and the path says \"%.*s\"",
                   BYTES_ARG(text_shown(q->a, w->limit.name)),
                   BYTES_ARG(text_shown(q->a, q->path[0])));
}

void route_limit_put(struct ask *q)
{
    struct limit_write *w = arena_zalloc(q->a, 1, sizeof *w);
    struct pawl_err err;
    if (!w) {
        ask_no_memory(q);
        return;
    }
    w->op.what = LIMIT_PUT;
    if (put_read(q, w, &err) == PAWL_OK)
        limit_post(q, w);
    else
        ask_fail(q, &err);
}

void route_limit_delete(struct ask *q)
{
    struct limit_write *w = arena_zalloc(q->a, 1, sizeof *w);
    if (!w) {
        ask_no_memory(q);
        return;
    }
    w->op.what = LIMIT_REMOVE;
    limit_post(q, w);
}
