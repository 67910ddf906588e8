/*
 * queues.c - GET /v1/queues, and POST .../pause and .../resume.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/ask_io.h"
#include "api/call_json.h"
#include "api/internal.h"
#include "api/reply.h"
#include "api/routes.h"
#include "base/buf.h"
#include "base/json.h"
#include "exec/work_signal.h"
#include "exec/stats.h"

struct queues_read {
    struct ask_read rd; /* first */
    struct queue_rows rows;
};

static enum pawl_status queues_work(struct ask_read *rd, struct store *s)
{
    return store_queues(s, &rd->arena, &((struct queues_read *)rd)->rows, &rd->err);
}

static void add_real(struct buf *b, const char *name, double n)
{
    json_add_name(b, name);
    buf_addf(b, "%.1f", n);
}

static void queue_add(struct buf *b, struct exec *e, const struct queue_row *r)
{
    struct pace pace = exec_pace(e, r->queue);
    int64_t oldest_us = r->oldest_due_us ? MAX(exec_now(e) - r->oldest_due_us, 0) : 0;
    json_add_comma(b);
    buf_add_char(b, '{');
    add_text(b, "queue", r->queue);
    add_bool(b, "paused", r->paused);
    add_int(b, "pending", r->pending);
    add_int(b, "due", r->due);
    add_int(b, "processing", r->processing);
    add_seconds(b, "oldest_pending_seconds", oldest_us);
    add_real(b, "accepted_per_second", pace.accepted);
    add_real(b, "ended_per_second", pace.ended);
    buf_add_char(b, '}');
}

static void queues_done(struct ask_read *rd)
{
    struct ask *q = rd->ask;
    const struct queue_rows *rows = &((struct queues_read *)rd)->rows;
    if (ask_read_failed(rd))
        return;
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"queues\":[");
    for (size_t i = 0; i < rows->n; i++)
        queue_add(b, q->api->exec, &rows->v[i]);
    buf_add_text(b, "]}");
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_queues(struct ask *q)
{
    struct queues_read *r = arena_zalloc(q->a, 1, sizeof(*r));
    if (!r) {
        ask_refusef(q, PAWL_NO_MEMORY, "there is no memory for this request");
        return;
    }
    r->rd.work = queues_work;
    r->rd.done = queues_done;
    ask_read(q, &r->rd);
}

/* ---- Pausing --------------------------------------------------------------------------------- */

static void paused(struct ask_write *w)
{
    struct ask *q = w->ask;
    const struct op *op = &w->job.op;
    bool on = op->pause.paused;
    if (op->status != PAWL_OK) {
        struct pawl_err err = op->err;
        ask_write_end(w);
        ask_fail(q, &err);
        return;
    }
    ask_write_end(w);
    if (!on)
        exec_work_came(q->api->exec);
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    add_text(b, "queue", q->path[0]);
    add_bool(b, "paused", on);
    buf_add_char(b, '}');
    ask_reply(q, 200, b);
}

static void pause_to(struct ask *q, bool on)
{
    struct ask_write *w = arena_zalloc(q->a, 1, sizeof(*w));
    if (!w) {
        ask_refusef(q, PAWL_NO_MEMORY, "there is no memory for this request");
        return;
    }
    w->job.op = (struct op){ .kind = OP_PAUSE, .pause = { .queue = q->path[0], .paused = on } };
    w->done = paused;
    ask_write(q, w);
}

void route_pause(struct ask *q)
{
    pause_to(q, true);
}

void route_resume(struct ask *q)
{
    pause_to(q, false);
}
