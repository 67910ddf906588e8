/*
 * http.c - requests and answers of the event service. Loop thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "events/inside.h"

/* More than everything that the database may take for a request (table.c): it passes only when the
 * database does not answer at all. */
#define ANSWER_US (20 * SEC_US)

/* ---- Answers --------------------------------------------------------------------------------- */

static void refuse(struct http_request *r, enum pawl_status st, const char *text)
{
    struct pawl_err err;
    err_set(&err, st, "%s", text);
    front_refuse(r, &err, BYTES_NONE);
}

static void reply(struct http_request *r, int status, const struct buf *b, const char *where)
{
    struct http_header h = { BYTES("Location"), bytes_of(where) };
    if (!buf_ok(b)) {
        refuse(r, PAWL_NO_MEMORY, "no memory for this answer");
        return;
    }
    http_reply(
        r, &(struct http_reply){
               .status = status, .headers = &h, .n_headers = where ? 1 : 0, .body = buf_bytes(b) });
}

/* {"id":7,"value":"..."}; without the value where only the id is answered. */
static void reply_event(const struct errand *j, int status, bool with_value, const char *where)
{
    struct buf b;
    buf_init(&b, 4096);
    buf_addf(&b, "{\"id\":%" PRId64, (int64_t)j->id);
    if (with_value) {
        json_add_name(&b, "value");
        if (j->pending)
            buf_add_text(&b, "null");
        else
            json_add_string(&b, (struct bytes){ j->value, j->value_len });
    }
    buf_add_char(&b, '}');
    reply(j->r, status, &b, where);
    buf_release(&b);
}

static void reply_found(const struct errand *j)
{
    struct pawl_err err;
    if (j->there) {
        reply_event(j, 200, true, NULL);
        return;
    }
    err_set(&err, PAWL_NOT_FOUND, "event %" PRId64 " does not exist", (int64_t)j->id);
    front_refuse(j->r, &err, BYTES_NONE);
}

static void reply_ready(struct http_request *r, const char *why)
{
    struct buf b;
    buf_init(&b, 4096);
    buf_addf(&b, "{\"ready\":%s,\"reason\":", why ? "false" : "true");
    if (why)
        json_add_string(&b, bytes_of(why));
    else
        buf_add_text(&b, "null");
    buf_add_char(&b, '}');
    reply(r, why ? 503 : 200, &b, NULL);
    buf_release(&b);
}

static void reply_count(const struct errand *j)
{
    struct buf b;
    buf_init(&b, 64);
    buf_addf(&b, "{\"count\":%" PRId64 "}", j->count);
    reply(j->r, 200, &b, NULL);
    buf_release(&b);
}

/* An error names the id of an event that may be stored. */
static void reply_failed(const struct errand *j, const struct pawl_err *err)
{
    char id[24] = "";
    if (err->status == PAWL_UNKNOWN && j->id)
        snprintf(id, sizeof id, "%" PRId64, (int64_t)j->id);
    front_refuse(j->r, err, *id ? bytes_of(id) : BYTES_NONE);
}

void errand_answer(struct errand *j)
{
    char where[40];
    snprintf(where, sizeof where, "/events/%" PRId64, (int64_t)j->id);
    if (j->kind == ERRAND_READY) {
        reply_ready(j->r, j->status == PAWL_OK ? NULL : j->err.text);
        return;
    }
    if (j->status != PAWL_OK) {
        reply_failed(j, &j->err);
        return;
    }
    switch (j->kind) {
    case ERRAND_ADD:
        reply_event(j, 201, true, where);
        break;
    case ERRAND_ADD_LATER:
        reply_event(j, 202, false, where);
        break;
    case ERRAND_COUNT:
        reply_count(j);
        break;
    case ERRAND_FIND:
        reply_found(j);
        break;
    case ERRAND_READY:
        break;
    }
}

/* ---- Errands --------------------------------------------------------------------------------- */

void errand_free(struct errand *j)
{
    loop_timer_cancel(j->s->loop, &j->timer);
    if (j->newer)
        j->newer->at = j->at;
    *j->at = j->newer;
    mem_free(j);
}

static void came_back(struct loop_task *t)
{
    struct errand *j = (struct errand *)((char *)t - offsetof(struct errand, back));
    if (j->r)
        errand_answer(j);
    errand_free(j);
}

/* The database does not answer. An errand that was not begun is dropped; of any other the result is
 * unknown. The errand itself returns when its lane does. */
static void too_late(struct loop_timer *t)
{
    struct errand *j = (struct errand *)((char *)t - offsetof(struct errand, timer));
    enum errand_stage queued = ERRAND_QUEUED;
    struct pawl_err err;
    if (!j->r)
        return;
    if (atomic_compare_exchange_strong(&j->stage, &queued, ERRAND_DROPPED))
        err_set(&err, PAWL_BUSY, "the database was busy for too long; nothing was stored");
    else if (j->kind == ERRAND_ADD || j->kind == ERRAND_ADD_LATER)
        err_set(&err, PAWL_UNKNOWN, "the database does not answer; the event may be stored or not");
    else
        err_set(&err, PAWL_BUSY, "the database does not answer");
    if (j->kind == ERRAND_READY)
        reply_ready(j->r, err.text);
    else
        reply_failed(j, &err);
    j->r = NULL;
}

static void submit(struct events_server *s, struct http_request *r, enum errand_kind kind,
                   int64_t id)
{
    struct lane *lane = kind == ERRAND_ADD || kind == ERRAND_ADD_LATER ? &s->adds : &s->looks;
    struct errand *j = mem_zalloc(sizeof *j);
    if (!j) {
        refuse(r, PAWL_NO_MEMORY, "no memory for this request");
        return;
    }
    j->back.run = came_back;
    j->timer.run = too_late;
    j->s = s;
    j->r = r;
    j->kind = kind;
    j->id = id;
    j->newer = s->errands;
    j->at = &s->errands;
    if (s->errands)
        s->errands->at = &j->newer;
    s->errands = j;
    if (lane_post(lane, j)) {
        loop_timer_set(s->loop, &j->timer, world_mono(&world_real) + ANSWER_US);
        return;
    }
    errand_free(j);
    if (kind == ERRAND_READY)
        reply_ready(r, "too many requests wait for the database");
    else
        refuse(r, PAWL_BUSY, "too many requests wait for the database; nothing was stored");
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void refuse_method(struct http_request *r, const struct events_question *q,
                          const struct pawl_err *err)
{
    struct buf b;
    struct http_header h = { BYTES("Allow"), bytes_of(q->allow) };
    buf_init(&b, 4096);
    front_add(&b, err, BYTES_NONE);
    http_reply(r, &(struct http_reply){ .status = err_http(PAWL_METHOD),
                                        .headers = &h,
                                        .n_headers = 1,
                                        .body = buf_bytes(&b) });
    buf_release(&b);
}

static void run(struct events_server *s, struct http_request *r, const struct events_question *q)
{
    switch (q->path) {
    case PATH_EVENTS:
        submit(s, r, r->method == HTTP_POST ? ERRAND_ADD : ERRAND_COUNT, 0);
        break;
    case PATH_ASYNC:
        submit(s, r, ERRAND_ADD_LATER, 0);
        break;
    case PATH_EVENT:
        submit(s, r, ERRAND_FIND, q->id);
        break;
    case PATH_READYZ:
        if (atomic_load(&s->stopping))
            reply_ready(r, "the server is stopping");
        else
            submit(s, r, ERRAND_READY, 0);
        break;
    case PATH_HEALTHZ:
    case PATH_NONE:
        http_reply(r, &(struct http_reply){ .status = 200, .body = BYTES("{\"alive\":true}") });
        break;
    }
}

static unsigned may(const struct http_request *r, enum events_path path)
{
    if (path == PATH_HEALTHZ || path == PATH_READYZ || path == PATH_NONE)
        return MAY_OPEN;
    return r->method == HTTP_POST ? MAY_APP : MAY_APP | MAY_MONITOR;
}

void events_handle(struct http_request *r, void *server)
{
    struct events_server *s = server;
    struct pawl_err err;
    struct principal who;
    struct events_question q;
    enum pawl_status st = auth_check(s->auth, r, may(r, events_path_of(r)), &who, &err);
    if (st == PAWL_OK)
        st = events_question_read(r, &q, &err);
    if (st == PAWL_METHOD)
        refuse_method(r, &q, &err);
    else if (st != PAWL_OK)
        front_refuse(r, &err, BYTES_NONE);
    else
        run(s, r, &q);
}

size_t events_body_max(const struct http_request *r, void *server)
{
    (void)r, (void)server;
    return EVENTS_BODY_MAX;
}
