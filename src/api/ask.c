/*
 * ask.c - a request from its arrival to its route, and its writes and reads. Loop thread, except
 * for the functions that say otherwise.
 *
 * What must stay true: whatever a job or a read can still touch lives in a request that has not
 * been answered, so nothing here needs a lock or a reference count.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"

#include <stdio.h>

#include "api/ask_io.h"
#include "api/auth.h"
#include "api/body.h"
#include "api/claim_wait.h"
#include "api/internal.h"
#include "api/match.h"
#include "api/reply.h"
#include "api/route.h"
#include "api/routes.h"
#include "api/wait.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "exec/write_job.h"
#include "model/fields.h"

/* The largest arguments and answer of one request. */
#define ANSWER_LEN_MAX ((size_t)256 << 20)

/* ---- Writes ---------------------------------------------------------------------------------- */

/* OUT: posted, not settled. QUIET: settled, not announced to the loop. WANTED: announce it after
 * all. */
enum { WRITE_OUT, WRITE_QUIET, WRITE_WANTED };

static void write_back(struct loop_task *t)
{
    struct ask_write *w = (struct ask_write *)((char *)t - offsetof(struct ask_write, task));
    w->done(w);
}

/* On the store thread; the last line is its last access to w. */
static void write_settled(struct write_job *j)
{
    struct ask_write *w = (struct ask_write *)j;
    int out = WRITE_OUT;
    /* A late write is always announced: the task that says it is late must run before the ask can
     * end. */
    if (!w->is_late && w->quiet && w->quiet(w) &&
        atomic_compare_exchange_strong(&w->settled, &out, WRITE_QUIET))
        return;
    loop_post(w->ask->api->loop, &w->task);
}

/* On the thread that watches commits. */
static void write_late(struct write_job *j)
{
    struct ask_write *w = (struct ask_write *)j;
    w->is_late = true;
    loop_post(w->ask->api->loop, &w->late);
}

/* The answer has not come, or its task is queued behind this one, so the ask is still alive. */
static void write_is_late(struct loop_task *t)
{
    struct ask_write *w = (struct ask_write *)((char *)t - offsetof(struct ask_write, late));
    struct pawl_err err = { 0 };
    exec_unknown(&err);
    ask_unknown(w->ask, &err, w->id);
}

bool ask_write_settled(struct ask_write *w)
{
    int out = WRITE_OUT;
    atomic_compare_exchange_strong(&w->settled, &out, WRITE_WANTED);
    return out == WRITE_QUIET;
}

/* Post all writes of this turn's requests at once, so that one commit answers them. */
static void turn_over(struct loop_task *t)
{
    struct api *api = (struct api *)((char *)t - offsetof(struct api, turn_task));
    struct ask_write *first = api->turn;
    struct pawl_err err;
    api->turn = NULL;
    api->turn_end = &api->turn;
    for (struct ask_write *w = first; w; w = w->next)
        w->job.next = w->next ? &w->next->job : NULL;
    enum pawl_status st = first ? exec_post_all(api->exec, &first->job, &err) : PAWL_OK;
    if (st == PAWL_OK)
        return;
    for (struct ask_write *w = first, *next; w; w = next) {
        next = w->next; /* `done` may end its request */
        op_refuse(&w->job.op, &err);
        w->done(w);
    }
}

void ask_write(struct ask *q, struct ask_write *w)
{
    struct api *api = q->api;
    w->ask = q;
    w->next = NULL;
    w->task.run = write_back;
    w->late.run = write_is_late;
    arena_init(&w->arena, ANSWER_LEN_MAX);
    w->job.op.a = &w->arena;
    w->job.done = write_settled;
    w->job.late = write_late;
    w->job.weight = w->job.weight ? w->job.weight : 1;
    if (!api->turn)
        loop_later(api->loop, &api->turn_task);
    *api->turn_end = w;
    api->turn_end = &w->next;
}

void ask_write_end(struct ask_write *w)
{
    arena_release(&w->arena);
}

/* ---- Reads ----------------------------------------------------------------------------------- */

/* On one of the loop's threads for work. */
static void read_work(struct loop_work *inside)
{
    struct ask_read *rd = (struct ask_read *)inside;
    struct exec *e = rd->ask->api->exec;
    struct store *s;
    rd->status = exec_reader(e, &s, &rd->err);
    if (rd->status != PAWL_OK)
        return;
    rd->status = rd->work(rd, s);
    exec_reader_back(e, s);
}

static void read_done(struct loop_work *inside)
{
    struct ask_read *rd = (struct ask_read *)inside;
    rd->done(rd);
}

void ask_read(struct ask *q, struct ask_read *rd)
{
    rd->ask = q;
    rd->inside = (struct loop_work){ .work = read_work, .done = read_done };
    arena_init(&rd->arena, ANSWER_LEN_MAX);
    /* Once it is handed over, only the other thread may touch status and err: it may have set them
     * already. */
    struct pawl_err err;
    enum pawl_status st = loop_work(q->api->loop, &rd->inside, &err);
    if (st == PAWL_OK)
        return;
    rd->status = st;
    rd->err = err;
    rd->done(rd);
}

void ask_read_end(struct ask_read *rd)
{
    arena_release(&rd->arena);
}

struct pawl_err ask_read_why(struct ask_read *rd)
{
    struct pawl_err err = rd->err;
    err.status = rd->status;
    ask_read_end(rd);
    return err;
}

bool ask_read_failed(struct ask_read *rd)
{
    if (rd->status == PAWL_OK)
        return false;
    struct pawl_err err = ask_read_why(rd);
    ask_fail(rd->ask, &err);
    return true;
}

/* ---- A request arrives ----------------------------------------------------------------------- */

/* A route without a body takes an empty one, or an object without members. */
static enum pawl_status check_no_body(struct ask *q, struct pawl_err *err)
{
    static const struct shape none = { .name = "Nothing" };
    struct json *body;
    if (q->route->body || q->route->raw_body || (!q->r->body.len && !q->r->too_large))
        return PAWL_OK;
    enum pawl_status st = body_json(q, true, &body, err);
    return st == PAWL_OK && body ? fields_read(q->a, body, &none, NULL, NULL, err) : st;
}

static void refuse_method(struct ask *q, const char *allow)
{
    struct http_header h = { BYTES("Allow"), bytes_of(allow) };
    struct buf *b = ask_buf(q);
    char text[160];
    snprintf(text, sizeof text, "%.*s does not take %s; it takes %s", (int)MIN(q->r->path.len, 64),
             q->r->path.data, http_method_name(q->r->method), allow);
    buf_add_text(b, "{\"error\":");
    refusal_add(b, &(struct refusal){ .status = PAWL_METHOD, .text = text });
    buf_add_char(b, '}');
    ask_reply_with(q, err_http(PAWL_METHOD), b, &h, 1);
}

/* Answer the preflight request of a browser, for a page of an allowed origin. */
static void answer_preflight(struct ask *q, const char *allow)
{
    const struct http_header h[] = {
        { BYTES("Access-Control-Allow-Methods"), bytes_of(allow) },
        { BYTES("Access-Control-Allow-Headers"),
          BYTES("Authorization, Content-Type, Idempotency-Key, If-Match, Prefer") },
        { BYTES("Access-Control-Max-Age"), BYTES("600") },
    };
    ask_reply_raw(q, &(struct http_reply){ .status = 204, .headers = h, .n_headers = COUNT_OF(h) });
}

/* Is the route about calls? Only gateways answer those. */
static bool about_calls(const struct route *r)
{
    static const char *const others[] = { "/v1/nodes", "/v1/leaders", "/v1/info" };
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (strncmp(r->pattern, others[i], strlen(others[i])) == 0)
            return false;
    return strncmp(r->pattern, "/v1/", 4) == 0;
}

static void handle(struct ask *q)
{
    struct pawl_err err = { 0 }, path_err = { 0 };
    char allow[64];
    enum matched m = match(q, allow, &path_err);
    unsigned may = m == MATCH_FOUND ? q->route->may : MAY_OPEN;
    if (m == MATCH_FOUND && q->route->run == route_metrics && q->api->metrics_open)
        may |= MAY_OPEN;
    enum pawl_status st = auth_check(q->api->auth, q->r, may, &q->who, &err);
    q->reloads = q->api->reloads;
    if (st != PAWL_OK) {
        ask_fail(q, &err);
    } else if (m == MATCH_NONE) {
        ask_refusef(q, PAWL_NOT_FOUND, "no route %.*s; /openapi.json lists them",
                    (int)MIN(q->r->path.len, 120), q->r->path.data);
    } else if (m == MATCH_METHOD && q->r->method == HTTP_OPTIONS &&
               auth_origin(q->api->auth, q->r).data) {
        answer_preflight(q, allow);
    } else if (m == MATCH_METHOD) {
        refuse_method(q, allow);
    } else if (path_err.status != PAWL_OK) {
        ask_fail(q, &path_err);
    } else if (q->api->no_gateway && about_calls(q->route)) {
        ask_refusef(q, PAWL_BUSY, "node \"%s\" is not a gateway: ask another node",
                    exec_node(q->api->exec));
    } else if (query_read(q, &err) != PAWL_OK || check_no_body(q, &err) != PAWL_OK) {
        ask_fail(q, &err);
    } else {
        q->route->run(q);
    }
}

void api_handle(struct http_request *r, void *ctx)
{
    struct api *api = ctx;
    struct ask *q = arena_zalloc(&r->arena, 1, sizeof *q);
    if (!q) {
        http_reply(
            r, &(struct http_reply){ .status = 503,
                                     .body = api_error_body(&r->arena, 503, "no memory", api) });
        return;
    }
    q->api = api;
    q->r = r;
    q->a = &r->arena;
    r->user = q;
    api->n_asks++;
    handle(q);
}

size_t api_body_max(const struct http_request *r, void *ctx)
{
    const struct api *api = ctx;
    static const struct bytes large[] = { BYTES("/v1/calls/batch"), BYTES("/v1/work/finish"),
                                          BYTES("/v1/work/steps") };
    for (size_t i = 0; i < COUNT_OF(large); i++)
        if (bytes_eq(r->path, large[i]))
            return api->batch_len_max;
    /* One input as base64, with room for everything around it. */
    return api->input_len_max / 3 * 4 + (256 << 10);
}

/* ---- Begin and end --------------------------------------------------------------------------- */

enum pawl_status api_open(const struct api_conf *conf, struct api **out, struct pawl_err *err)
{
    struct api *api = mem_zalloc(sizeof *api);
    if (!api)
        return err_no_memory(err, "the API");
    api->exec = conf->exec;
    api->loop = conf->loop;
    api->world = exec_conf_of(conf->exec)->world;
    api->metrics_open = conf->metrics_open;
    api->no_gateway = conf->no_gateway;
    api->lease_us = conf->lease_us ? conf->lease_us : 30 * SEC_US;
    api->call_timeout_us = conf->call_timeout_us;
    api->session_wait_us = conf->session_wait_us ? conf->session_wait_us : 120 * SEC_US;
    api->input_len_max = conf->input_len_max ? conf->input_len_max : INPUT_LEN_MAX;
    api->batch_len_max = conf->batch_len_max ? conf->batch_len_max : BATCH_LEN_MAX;
    api->audit = conf->audit;
    api->audit_ctx = conf->audit_ctx;
    api->not_ready = conf->not_ready;
    api->ready_ctx = conf->ready_ctx;
    api->turn_end = &api->turn;
    api->turn_task.run = turn_over;
    api->started_us = world_now(&world_real);
    buf_init(&api->scratch, ANSWER_LEN_MAX);
    enum pawl_status st = auth_open(conf, &api->auth, err);
    if (st == PAWL_OK)
        st = claim_wait_open(api, err);
    if (st != PAWL_OK) {
        auth_close(api->auth);
        mem_free(api);
        return st;
    }
    *out = api;
    return PAWL_OK;
}

enum pawl_status api_reload(struct api *api, const struct api_conf *conf, struct pawl_err *err)
{
    struct auth *fresh;
    enum pawl_status st = auth_open(conf, &fresh, err);
    if (st != PAWL_OK)
        return st;
    auth_close(api->auth); /* Requests that were let in have copies of what they need. */
    api->auth = fresh;
    api->metrics_open = conf->metrics_open;
    api->reloads++;
    timed_wait_check(api);
    return PAWL_OK;
}

int64_t api_busy(const struct api *api)
{
    return api->n_asks;
}

void api_close(struct api *api)
{
    if (!api)
        return;
    CHECK(!api->n_asks && !api->waits);
    claim_wait_close(api);
    auth_close(api->auth);
    buf_release(&api->scratch);
    mem_free(api);
}
