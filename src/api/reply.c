/*
 * reply.c - answers: JSON from a buffer, and every error in the one shape of the contract (reply.h,
 * service.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/reply.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/ask.h"
#include "api/auth.h"
#include "api/call_json.h"
#include "api/service.h"
#include "api/internal.h"
#include "api/route.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"

/* A larger buffer is freed after an answer, so that one large answer does not hold memory for ever.
 */
#define SCRATCH_KEPT (256 << 10)
/* How many headers a route may add. */
#define HEADERS_MAX 8
/* When to try again, in seconds: a full queue or a busy database usually lasts a moment. */
#define RETRY_AFTER BYTES("1")

/* ---- What all answers have in common --------------------------------------------------------- */

/* Report an admin action: client, request and status. */
static void audit(struct ask *q, int status)
{
    const struct api *api = q->api;
    if (!api->audit || !q->route || !q->route->audited || q->who.role != ROLE_ADMIN ||
        q->only_asks || status >= 400)
        return;
    const struct log_field fields[] = {
        LOG_TEXT("client", q->who.name.data ? q->who.name : BYTES("-")),
        LOG_TEXT("method", bytes_of(http_method_name(q->r->method))),
        LOG_TEXT("path", q->r->path),
        LOG_NUMBER("status", status),
    };
    api->audit(&(struct log_record){ LOG_INFO, "admin action", fields, COUNT_OF(fields) },
               api->audit_ctx);
}

/* Add the headers that let a page of an allowed origin read the answer. Returns the number of
 * headers. */
static size_t add_cors(const struct ask *q, struct http_header *v, size_t n)
{
    struct bytes origin = auth_origin(q->api->auth, q->r);
    if (!origin.data)
        return n;
    v[n++] = (struct http_header){ BYTES("Access-Control-Allow-Origin"), origin };
    v[n++] = (struct http_header){ BYTES("Access-Control-Expose-Headers"),
                                   BYTES("Location, Retry-After, ETag, Allow") };
    v[n++] = (struct http_header){ BYTES("Vary"), BYTES("Origin") };
    return n;
}

/* The reply with those headers; `headers` has room for HEADERS_MAX + 3. */
static struct http_reply with_cors(const struct ask *q, const struct http_reply *reply,
                                   struct http_header *headers)
{
    struct http_reply with = *reply;
    CHECK(reply->n_headers <= HEADERS_MAX);
    for (size_t i = 0; i < reply->n_headers; i++)
        headers[i] = reply->headers[i];
    with.headers = headers;
    with.n_headers = add_cors(q, headers, reply->n_headers);
    return with;
}

void ask_reply_raw(struct ask *q, const struct http_reply *reply)
{
    struct api *api = q->api;
    struct http_header headers[HEADERS_MAX + 3];
    struct http_reply with = with_cors(q, reply, headers);
    CHECK(!q->timed);
    enum pawl_status revoked = q->revoked;
    if (revoked != PAWL_OK) {
        q->revoked = PAWL_OK;
        ask_refusef(q, revoked, "the token lost this right while the request waited");
        return;
    }
    audit(q, reply->status);
    q->r->on_gone = NULL;
    api->n_asks--;
    http_reply(q->r, &with); /* q is freed with it */
    if (api->scratch.cap > SCRATCH_KEPT)
        buf_release(&api->scratch);
}

struct buf *ask_buf(struct ask *q)
{
    buf_reset(&q->api->scratch);
    return &q->api->scratch;
}

void ask_reply_with(struct ask *q, int status, struct buf *b, const struct http_header *headers,
                    size_t n)
{
    if (!buf_ok(b)) {
        ask_no_memory(q);
        return;
    }
    ask_reply_raw(q,
                  &(struct http_reply){
                      .status = status, .headers = headers, .n_headers = n, .body = buf_bytes(b) });
}

void ask_reply(struct ask *q, int status, struct buf *b)
{
    ask_reply_with(q, status, b, NULL, 0);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The quoted word at `text` if `behind` follows it. It contains no quotes (text_shown). */
static struct bytes quoted(const char *text, const char *behind)
{
    const char *end = *text == '"' ? strchr(text + 1, '"') : NULL;
    if (!end || strncmp(end + 1, behind, strlen(behind)) != 0)
        return BYTES_NONE;
    return (struct bytes){ text + 1, (size_t)(end - text - 1) };
}

struct bytes refusal_field(const char *text)
{
    static const char begin[] = "field ";
    size_t word = text ? strcspn(text, " \"") : 0;
    if (!word || text[word] != ' ')
        return BYTES_NONE;
    if (strncmp(text, begin, sizeof begin - 1) == 0)
        return quoted(text + sizeof begin - 1, ": ");
    bool is = quoted(text + word + 1, " is unknown; expected ").data;
    return is ? (struct bytes){ text, word } : BYTES_NONE;
}

/* The contract has no code for a lack of memory: clients see a busy server. */
static enum pawl_status shown_status(enum pawl_status st)
{
    return st == PAWL_NO_MEMORY || st == PAWL_OK ? PAWL_BUSY : st;
}

void refusal_add(struct buf *b, const struct refusal *why)
{
    enum pawl_status st = shown_status(why->status);
    const char *text = why->text && why->text[0] ? why->text : err_meaning(st);
    buf_addf(b, "{\"code\":\"%s\",\"message\":", pawl_status_name(st));
    json_add_string(b, bytes_of(text));
    add_text(b, "id", why->id);
    add_text(b, "field", refusal_field(text));
    add_text(b, "status", why->state ? bytes_of(pawl_state_name(why->state)) : BYTES_NONE);
    buf_addf(b, ",\"retry\":\"%s\"", err_retry_text(st));
    if (why->indexed)
        add_int(b, "index", (int64_t)why->index);
    if (why->times) {
        add_time(b, "created_at", why->times->created_us);
        add_time(b, "finished_at", why->times->finished_us);
        add_time(b, "keep_until", why->times->keep_until_us);
    }
    if (why->call) {
        json_add_name(b, "call");
        call_add(b, why->call, why->show);
    }
    buf_add_char(b, '}');
}

void ask_refuse(struct ask *q, const struct refusal *why)
{
    enum pawl_status st = shown_status(why->status);
    struct http_header h = { 0 };
    struct buf *b = ask_buf(q);
    if (st == PAWL_BUSY || st == PAWL_FULL)
        h = (struct http_header){ BYTES("Retry-After"), RETRY_AFTER };
    else if (st == PAWL_UNAUTHORIZED)
        h = (struct http_header){ BYTES("WWW-Authenticate"), BYTES("Bearer realm=\"pawl\"") };
    buf_add_text(b, "{\"error\":");
    refusal_add(b, why);
    buf_add_char(b, '}');
    if (!buf_ok(b)) {
        static const char plain[] =
            "{\"error\":{\"code\":\"BUSY\",\"message\":\"no memory\",\"id\":null,\"field\":null,"
            "\"status\":null,\"retry\":\"soon\"}}";
        buf_reset(b);
        ask_reply_raw(q, &(struct http_reply){ .status = 503, .body = bytes_of(plain) });
        return;
    }
    ask_reply_with(q, err_http(st), b, &h, h.name.data ? 1 : 0);
}

void ask_unknown(struct ask *q, const struct pawl_err *err, struct bytes id)
{
    struct http_header headers[HEADERS_MAX + 3];
    struct buf b;
    if (q->r->cut)
        return;
    buf_init(&b, 8192);
    front_add(&b, err, id);
    struct http_reply plain = { .status = err_http(err->status),
                                .body = buf_ok(&b) ? buf_bytes(&b) : BYTES("{}") };
    struct http_reply with = with_cors(q, &plain, headers);
    http_reply_early(q->r, &with); /* q may be freed with it */
    buf_release(&b);
}

void ask_fail_id(struct ask *q, const struct pawl_err *err, struct bytes id)
{
    ask_refuse(q, &(struct refusal){ .status = err->status, .text = err->text, .id = id });
}

void ask_fail(struct ask *q, const struct pawl_err *err)
{
    ask_fail_id(q, err, BYTES_NONE);
}

void ask_refusef(struct ask *q, enum pawl_status status, const char *fmt, ...)
{
    struct pawl_err err = { .status = status };
    va_list args;
    va_start(args, fmt);
    vsnprintf(err.text, sizeof err.text, fmt, args);
    va_end(args);
    ask_fail(q, &err);
}

void ask_no_memory(struct ask *q)
{
    ask_refusef(q, PAWL_NO_MEMORY, "there is no memory for this request");
}

void front_add(struct buf *b, const struct pawl_err *err, struct bytes id)
{
    buf_add_text(b, "{\"error\":");
    refusal_add(b, &(struct refusal){ .status = err->status, .text = err->text, .id = id });
    buf_add_char(b, '}');
}

void front_refuse(struct http_request *r, const struct pawl_err *err, struct bytes id)
{
    enum pawl_status st = shown_status(err->status);
    struct http_header h = { BYTES("Retry-After"), RETRY_AFTER };
    struct buf b;
    buf_init(&b, 8192);
    if (st == PAWL_UNAUTHORIZED)
        h = (struct http_header){ BYTES("WWW-Authenticate"), BYTES("Bearer realm=\"pawl\"") };
    front_add(&b, err, id);
    bool with = st == PAWL_BUSY || st == PAWL_FULL || st == PAWL_UNAUTHORIZED;
    http_reply(r, &(struct http_reply){ .status = err_http(st),
                                        .headers = &h,
                                        .n_headers = with ? 1 : 0,
                                        .body = buf_ok(&b) ? buf_bytes(&b) : BYTES("{}") });
    buf_release(&b);
}

/* ---- The HTTP server's own refusals ---------------------------------------------------------- */

static enum pawl_status status_of(int http)
{
    switch (http) {
    case 408:
        return PAWL_TIMEOUT;
    case 413:
    case 431:
        return PAWL_TOO_LARGE;
    case 503:
        return PAWL_BUSY;
    default:
        return PAWL_INVALID;
    }
}

struct bytes api_error_body(struct arena *a, int status, const char *text, void *api)
{
    struct buf b;
    (void)api;
    buf_init(&b, 4096);
    buf_add_text(&b, "{\"error\":");
    refusal_add(&b, &(struct refusal){ .status = status_of(status), .text = text });
    buf_add_char(&b, '}');
    struct bytes body = buf_ok(&b) ? arena_copy(a, buf_bytes(&b)) : BYTES_NONE;
    buf_release(&b);
    return body.data ? body : BYTES("{}");
}
