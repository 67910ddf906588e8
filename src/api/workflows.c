/*
 * workflows.c - reading runs: GET /v1/workflows, one of them, and what it shows while it runs.
 *
 * A monitor sees everything but inputs, results, errors and values.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/ask_io.h"
#include "api/auth.h"
#include "api/call_json.h"
#include "api/internal.h"
#include "api/list.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/wait.h"
#include "base/json.h"
#include "base/limits.h"
#include "feature/workflow.h"
#include "model/cursor.h"

/* How often a request that waits for a value looks for it. */
#define VALUE_LOOK_US (100 * MS_US)

static bool sees_contents(const struct ask *q)
{
    return q->who.role != ROLE_MONITOR;
}

/* Whose runs this principal sees; absent: all. */
static struct bytes client_of(const struct ask *q)
{
    return q->who.role == ROLE_APP ? q->who.name : BYTES_NONE;
}

static void read_fail(struct ask_read *rd)
{
    struct ask *q = rd->ask;
    struct pawl_err err = rd->err;
    err.status = rd->status;
    ask_read_end(rd);
    ask_fail_id(q, &err, q->path[0]);
}

/* ---- A run as JSON --------------------------------------------------------------------------- */

static void names_add(struct buf *b, const char *name, const struct bytes *v, size_t n)
{
    json_add_name(b, name);
    buf_add_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        json_add_comma(b);
        json_add_string(b, v[i]);
    }
    buf_add_char(b, ']');
}

static void waiting_add(struct buf *b, const struct workflow_run *r)
{
    if (r->status != WORKFLOW_WAITING) {
        add_raw(b, "waiting_for", BYTES_NONE);
        return;
    }
    json_add_name(b, "waiting_for");
    buf_add_char(b, '{');
    if (r->n_wait_signals) {
        add_text(b, "signal", r->wait_signals[0]);
        names_add(b, "signals", r->wait_signals, r->n_wait_signals);
    }
    if (r->n_wait_children)
        names_add(b, "children", r->wait_children, r->n_wait_children);
    if (r->wait_until_us)
        add_time(b, "until", r->wait_until_us);
    buf_add_char(b, '}');
}

static void head_add(struct buf *b, const struct workflow_run *r)
{
    const struct call *c = &r->call;
    add_text(b, "id", c->spec.id);
    add_text(b, "workflow_name", c->spec.type);
    add_text(b, "status", bytes_of(workflow_status_name(r->status)));
    add_text(b, "current_step", r->current_step);
    waiting_add(b, r);
}

static void tail_add(struct buf *b, const struct workflow_run *r, bool contents)
{
    const struct call *c = &r->call;
    struct bytes trace = c->spec.traceparent;
    const char *compensation = workflow_compensation_name(r->compensation);
    add_text(b, "error", contents ? r->error : BYTES_NONE);
    add_text(b, "compensation_status", compensation ? bytes_of(compensation) : BYTES_NONE);
    add_text(b, "version", r->version);
    add_text(b, "trace_id", trace.len >= 35 ? (struct bytes){ trace.data + 3, 32 } : BYTES_NONE);
    add_time(b, "started_at", r->started_us);
    add_time(b, "completed_at", c->finished_us);
}

static void published_add(struct buf *b, const struct workflow_detail *d)
{
    json_add_name(b, "published");
    buf_add_char(b, '{');
    for (size_t i = 0; i < d->n_published; i++) {
        struct payload p = d->published[i].value;
        json_add_comma(b);
        json_add_string(b, d->published[i].name);
        buf_add_char(b, ':');
        if (p.form == PAWL_JSON) {
            buf_add_bytes(b, p.bytes);
        } else if (p.form == PAWL_BYTES) {
            buf_add_text(b, "{\"base64\":");
            json_add_base64(b, p.bytes);
            buf_add_char(b, '}');
        } else {
            buf_add_text(b, "null");
        }
    }
    buf_add_char(b, '}');
}

static void steps_add(struct buf *b, const struct workflow_detail *d, bool contents)
{
    json_add_name(b, "steps");
    buf_add_char(b, '[');
    for (size_t i = 0; i < d->n_steps; i++) {
        const struct workflow_row *s = &d->steps[i];
        json_add_comma(b);
        buf_add_char(b, '{');
        add_text(b, "step_name", s->name);
        add_int(b, "no", s->no);
        add_text(b, "kind", bytes_of(step_kind_name((int64_t)s->kind)));
        add_text(b, "status", bytes_of(step_status_name((int64_t)s->status)));
        add_payload(b, "result", "result_base64", contents ? s->result : (struct payload){ 0 }, 0);
        add_text(b, "error", contents ? s->error : BYTES_NONE);
        add_int(b, "attempts", s->attempts);
        add_bool(b, "undone", s->undone);
        add_text(b, "node", s->node);
        add_time(b, "until", s->until_us);
        add_time(b, "started_at", s->started_us);
        add_time(b, "completed_at", s->completed_us);
        buf_add_char(b, '}');
    }
    buf_add_char(b, ']');
}

static void signals_add(struct buf *b, const struct workflow_detail *d)
{
    json_add_name(b, "signals");
    buf_add_char(b, '[');
    for (size_t i = 0; i < d->n_signals; i++) {
        json_add_comma(b);
        buf_add_char(b, '{');
        add_text(b, "name", d->signals[i].name);
        add_time(b, "at", d->signals[i].at_us);
        add_time(b, "consumed_at", d->signals[i].used_us);
        buf_add_char(b, '}');
    }
    buf_add_char(b, ']');
}

static void detail_add(struct buf *b, const struct workflow_detail *d, bool contents)
{
    buf_add_char(b, '{');
    head_add(b, &d->run);
    add_payload(b, "input", "input_base64", d->run.call.spec.input, 0);
    add_payload(b, "output", "output_base64", d->run.call.result, 0);
    tail_add(b, &d->run, contents);
    published_add(b, d);
    steps_add(b, d, contents);
    signals_add(b, d);
    names_add(b, "children", d->children, d->n_children);
    add_bool(b, "truncated", d->truncated);
    buf_add_char(b, '}');
}

/* ---- One run --------------------------------------------------------------------------------- */

struct run_read {
    struct ask_read read; /* first */
    struct bytes id, client;
    bool contents;
    struct workflow_detail detail;
};

static enum pawl_status run_work(struct ask_read *rd, struct store *s)
{
    struct run_read *r = (struct run_read *)rd;
    return workflow_get(s, &rd->arena, r->id, r->client, STEPS_PAGE_LEN_MAX, r->contents,
                        &r->detail, &rd->err);
}

static void run_done(struct ask_read *rd)
{
    struct run_read *r = (struct run_read *)rd;
    struct ask *q = rd->ask;
    if (rd->status != PAWL_OK) {
        read_fail(rd);
        return;
    }
    struct buf *b = ask_buf(q);
    detail_add(b, &r->detail, r->contents);
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_workflow(struct ask *q)
{
    struct run_read *r = arena_zalloc(q->a, 1, sizeof *r);
    if (!r) {
        ask_no_memory(q);
        return;
    }
    r->id = q->path[0];
    r->client = client_of(q);
    r->contents = sees_contents(q);
    r->read.work = run_work;
    r->read.done = run_done;
    ask_read(q, &r->read);
}

/* ---- The list -------------------------------------------------------------------------------- */

struct runs_read {
    struct ask_read read; /* first */
    struct workflow_query query;
    struct workflow_page page;
};

static enum pawl_status runs_work(struct ask_read *rd, struct store *s)
{
    struct runs_read *r = (struct runs_read *)rd;
    return workflow_list(s, &rd->arena, &r->query, &r->page, &rd->err);
}

static void runs_done(struct ask_read *rd)
{
    struct runs_read *r = (struct runs_read *)rd;
    struct ask *q = rd->ask;
    if (rd->status != PAWL_OK) {
        struct pawl_err err = rd->err;
        err.status = rd->status;
        ask_read_end(rd);
        ask_fail(q, &err);
        return;
    }
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"workflows\":[");
    for (size_t i = 0; i < r->page.n; i++) {
        json_add_comma(b);
        buf_add_char(b, '{');
        head_add(b, &r->page.v[i]);
        tail_add(b, &r->page.v[i], sees_contents(q));
        buf_add_char(b, '}');
    }
    buf_add_char(b, ']');
    list_next(b, r->page.next_before);
    buf_add_char(b, '}');
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_workflows(struct ask *q)
{
    struct value limit = ask_query(q, "limit"), cursor = ask_query(q, "cursor");
    struct runs_read *r = arena_zalloc(q->a, 1, sizeof *r);
    if (!r) {
        ask_no_memory(q);
        return;
    }
    r->query = (struct workflow_query){ .status = workflow_status_of(ask_query(q, "status").text),
                                        .name = ask_query(q, "name").text,
                                        .client = client_of(q),
                                        .limit = limit.given ? (int)limit.n : LIST_DEFAULT };
    if (cursor.given && !cursor_read(cursor.text, &r->query.before_seq)) {
        refuse_cursor(q, cursor.text);
        return;
    }
    r->read.work = runs_work;
    r->read.done = runs_done;
    ask_read(q, &r->read);
}

/* ---- Published values ------------------------------------------------------------------------ */

struct value_read {
    struct ask_read read; /* first */
    struct timed_wait timed;
    struct bytes id, name, client;
    int64_t until_us; /* monotonic; 0: it does not wait */
    struct payload value;
    bool found, ended;
};

static enum pawl_status value_work(struct ask_read *rd, struct store *s)
{
    struct value_read *r = (struct value_read *)rd;
    return workflow_published(s, &rd->arena, r->id, r->client, r->name, &r->value, &r->found,
                              &r->ended, &rd->err);
}

static void value_reply(struct value_read *r)
{
    struct ask *q = r->read.ask;
    struct arena keep = r->read.arena; /* The value lives in it, and r is freed with the answer. */
    bool bytes = r->value.form == PAWL_BYTES;
    ask_reply_raw(q, &(struct http_reply){
                         .status = 200,
                         .content_type = bytes ? "application/octet-stream" : NULL,
                         .body = r->value.form == PAWL_NOTHING ? BYTES("null") : r->value.bytes });
    arena_release(&keep);
}

static void value_missing(struct value_read *r)
{
    struct ask *q = r->read.ask;
    bool ended = r->ended;
    ask_read_end(&r->read);
    ask_refusef(q, PAWL_NOT_FOUND, "workflow \"%.*s\" %s published no \"%.*s\"",
                BYTES_ARG(q->path[0]), ended ? "has ended and has" : "has", BYTES_ARG(q->path[1]));
}

/* Only a value, or the end of the run, ends the wait early. */
static void value_again(struct timed_wait *p, enum wait_why why)
{
    struct value_read *r = (struct value_read *)((char *)p - offsetof(struct value_read, timed));
    if (why == WAIT_TIME_UP)
        ask_read(r->read.ask, &r->read);
    else
        value_missing(r);
}

static void value_done(struct ask_read *rd)
{
    struct value_read *r = (struct value_read *)rd;
    int64_t now_us = world_mono(&world_real);
    if (rd->status != PAWL_OK) {
        read_fail(rd);
    } else if (r->found) {
        value_reply(r);
    } else if (r->ended || now_us >= r->until_us) {
        value_missing(r);
    } else {
        ask_read_end(rd);
        r->timed.over = value_again;
        timed_wait_enter(rd->ask, &r->timed, MIN(now_us + VALUE_LOOK_US, r->until_us));
    }
}

void route_published(struct ask *q)
{
    struct value_read *r = arena_zalloc(q->a, 1, sizeof *r);
    struct pawl_err err;
    int64_t wait_us = 0;
    if (!r) {
        ask_no_memory(q);
        return;
    }
    if (ask_wait_us(q, 0, &wait_us, &err) != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    r->id = q->path[0];
    r->name = q->path[1];
    r->client = client_of(q);
    r->until_us = wait_us ? world_mono(&world_real) + wait_us : 0;
    r->read.work = value_work;
    r->read.done = value_done;
    ask_read(q, &r->read);
}
