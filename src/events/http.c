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

/* Longer than everything the database may take for it (table.c): only a server that answers nothing
 * at all gets there. */
#define ANSWER_US (20 * SEC_US)
/* There is nothing to say in a body; a client library may say {} all the same. */
#define BODY_LEN_MAX 4096

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
        refuse(r, PAWL_NO_MEMORY, "there is no memory for this answer");
        return;
    }
    http_reply(
        r, &(struct http_reply){
               .status = status, .headers = &h, .n_headers = where ? 1 : 0, .body = buf_bytes(b) });
}

/* {"id":7,"value":"..."}; the value is left out of what has only an id to say. */
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
    err_set(&err, PAWL_NOT_FOUND, "there is no event %" PRId64, (int64_t)j->id);
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

/* The database says nothing at all. What was not begun is not done any more; of the rest nobody
 * knows. The errand itself comes back when its lane does. */
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
        err_set(&err, PAWL_UNKNOWN, "the database does not answer; the event is stored, or not");
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
        refuse(r, PAWL_NO_MEMORY, "there is no memory for this request");
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

enum path { PATH_EVENTS, PATH_ASYNC, PATH_EVENT, PATH_HEALTHZ, PATH_READYZ, PATH_NONE };

static enum path path_of(struct bytes path, struct bytes *out_id)
{
    static const struct bytes names[] = { [PATH_EVENTS] = BYTES("/events"),
                                          [PATH_ASYNC] = BYTES("/events/async"),
                                          [PATH_HEALTHZ] = BYTES("/healthz"),
                                          [PATH_READYZ] = BYTES("/readyz") };
    static const char begin[] = "/events/";
    size_t len = sizeof begin - 1;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].data && bytes_eq(path, names[i]))
            return (enum path)i;
    if (path.len <= len || memcmp(path.data, begin, len) != 0)
        return PATH_NONE;
    *out_id = (struct bytes){ path.data + len, path.len - len };
    return memchr(out_id->data, '/', out_id->len) ? PATH_NONE : PATH_EVENT;
}

/* As we write it, and no other way: 1 to EVENT_ID_MAX. */
static bool id_read(struct bytes text, int64_t *out)
{
    *out = 0;
    if (!text.len || text.len > 10 || text.data[0] == '0')
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        *out = *out * 10 + (text.data[i] - '0');
    }
    return *out <= EVENT_ID_MAX;
}

static void refuse_id(struct http_request *r, struct bytes id)
{
    struct pawl_err err;
    err_set(&err, PAWL_INVALID, "field \"id\": \"%.*s\" is not a whole number from 1 to %" PRId64,
            (int)MIN(id.len, 40), id.data, EVENT_ID_MAX);
    front_refuse(r, &err, BYTES_NONE);
}

static void refuse_method(struct http_request *r, const char *allow)
{
    struct pawl_err err;
    struct buf b;
    struct http_header h = { BYTES("Allow"), bytes_of(allow) };
    err_set(&err, PAWL_METHOD, "%s is not for %.*s; it takes %s", http_method_name(r->method),
            (int)MIN(r->path.len, 60), r->path.data, allow);
    buf_init(&b, 4096);
    front_add(&b, &err, BYTES_NONE);
    http_reply(r, &(struct http_reply){ .status = err_http(PAWL_METHOD),
                                        .headers = &h,
                                        .n_headers = 1,
                                        .body = buf_bytes(&b) });
    buf_release(&b);
}

/* The values are ours to make up: whoever sends one is told so, and not left to wonder. */
static enum pawl_status check_body(struct http_request *r, struct pawl_err *err)
{
    struct json *body;
    struct pawl_err why;
    if (r->too_large)
        return err_set(err, PAWL_TOO_LARGE, "the body is larger than %d bytes", BODY_LEN_MAX);
    if (!r->body.len)
        return PAWL_OK;
    if (!body_is_json(r))
        return err_set(err, PAWL_MEDIA, "the body is not JSON; send none, or {}");
    enum pawl_status st = json_parse(&r->arena, r->body, &body, &why);
    if (st != PAWL_OK)
        return err_set(err, st, "the body is not JSON: %.300s", why.text);
    if (body->kind != JSON_OBJECT && body->kind != JSON_NULL)
        return err_set(err, PAWL_INVALID, "the body is neither empty nor {}");
    if (body->kind == JSON_OBJECT && body->first)
        return err_set(err, PAWL_INVALID, "field \"%.*s\": an event has none to be sent",
                       (int)MIN(body->first->name.len, 100), body->first->name.data);
    return PAWL_OK;
}

static enum pawl_status check(struct events_server *s, struct http_request *r, enum path path,
                              bool post, struct pawl_err *err)
{
    struct principal who;
    unsigned may = path == PATH_HEALTHZ || path == PATH_READYZ || path == PATH_NONE ? MAY_OPEN
                   : post                                                           ? MAY_APP
                          : MAY_APP | MAY_MONITOR;
    enum pawl_status st = doors_check(s->doors, r, may, &who, err);
    if (st == PAWL_OK && path == PATH_NONE)
        st = err_set(err, PAWL_NOT_FOUND, "there is no %.*s here; there is /events",
                     (int)MIN(r->path.len, 100), r->path.data);
    if (st == PAWL_OK && r->query.len)
        st = err_set(err, PAWL_INVALID, "parameter \"%.*s\": there is none here",
                     (int)MIN(strcspn(r->query.data, "=&"), MIN(r->query.len, 60)), r->query.data);
    return st;
}

static void run(struct events_server *s, struct http_request *r, enum path path, struct bytes id)
{
    int64_t number;
    switch (path) {
    case PATH_EVENTS:
        submit(s, r, r->method == HTTP_POST ? ERRAND_ADD : ERRAND_COUNT, 0);
        break;
    case PATH_ASYNC:
        submit(s, r, ERRAND_ADD_LATER, 0);
        break;
    case PATH_EVENT:
        if (id_read(id, &number))
            submit(s, r, ERRAND_FIND, number);
        else
            refuse_id(r, id);
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

void events_handle(struct http_request *r, void *server)
{
    static const char *const allow[] = { [PATH_EVENTS] = "GET, HEAD, POST",
                                         [PATH_ASYNC] = "POST",
                                         [PATH_EVENT] = "GET, HEAD",
                                         [PATH_HEALTHZ] = "GET, HEAD",
                                         [PATH_READYZ] = "GET, HEAD" };
    struct events_server *s = server;
    struct pawl_err err;
    struct bytes id = BYTES_NONE;
    enum path path = path_of(r->path, &id);
    bool post = r->method == HTTP_POST, get = r->method == HTTP_GET || r->method == HTTP_HEAD;
    bool fits =
        (post && (path == PATH_EVENTS || path == PATH_ASYNC)) || (get && path != PATH_ASYNC);
    if (check(s, r, path, post, &err) != PAWL_OK)
        front_refuse(r, &err, BYTES_NONE);
    else if (!fits)
        refuse_method(r, allow[path]);
    else if (check_body(r, &err) != PAWL_OK)
        front_refuse(r, &err, BYTES_NONE);
    else
        run(s, r, path, id);
}

size_t events_body_max(const struct http_request *r, void *server)
{
    (void)r, (void)server;
    return BODY_LEN_MAX;
}
