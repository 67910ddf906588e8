/*
 * request.c - what a request to the event service asks for, or why it is refused, from its bytes
 * alone. Fuzzed by test/fuzz/events.c.
 *
 * What must stay true: parts of a request are runs with a length, not ended with NUL (struct
 * bytes), so no function here may look for a NUL.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>

#include "base/json.h"
#include "base/limits.h"
#include "events/inside.h"

/* ---- Paths ----------------------------------------------------------------------------------- */

static enum events_path path_of(struct bytes path, struct bytes *out_id)
{
    static const struct bytes names[] = { [PATH_EVENTS] = BYTES("/events"),
                                          [PATH_ASYNC] = BYTES("/events/async"),
                                          [PATH_HEALTHZ] = BYTES("/healthz"),
                                          [PATH_READYZ] = BYTES("/readyz") };
    static const char begin[] = "/events/";
    size_t len = sizeof begin - 1;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].data && bytes_eq(path, names[i]))
            return (enum events_path)i;
    if (path.len <= len || memcmp(path.data, begin, len) != 0)
        return PATH_NONE;
    *out_id = (struct bytes){ path.data + len, path.len - len };
    return memchr(out_id->data, '/', out_id->len) ? PATH_NONE : PATH_EVENT;
}

enum events_path events_path_of(const struct http_request *r)
{
    struct bytes id;
    return path_of(r->path, &id);
}

/* Read an id as this service writes it, in no other form: 1 to EVENT_ID_MAX. */
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

/* ---- Refusals -------------------------------------------------------------------------------- */

/* The name of the first parameter of a query. */
static struct bytes first_name(struct bytes query)
{
    size_t n = 0;
    while (n < query.len && query.data[n] != '=' && query.data[n] != '&')
        n++;
    return (struct bytes){ query.data, n };
}

static bool fits(const struct http_request *r, enum events_path path)
{
    bool get = r->method == HTTP_GET || r->method == HTTP_HEAD;
    if (r->method == HTTP_POST)
        return path == PATH_EVENTS || path == PATH_ASYNC;
    return get && path != PATH_ASYNC;
}

/* The server makes the values: a body that has one is refused instead of ignored. */
static enum pawl_status body_check(struct http_request *r, struct pawl_err *err)
{
    struct json *body;
    struct pawl_err why;
    if (r->too_large)
        return err_set(err, PAWL_TOO_LARGE, "the body is larger than %d bytes", EVENTS_BODY_MAX);
    if (!r->body.len)
        return PAWL_OK;
    if (!body_is_json(r))
        return err_set(err, PAWL_MEDIA, "the body is not JSON; send none, or {}");
    enum pawl_status st = json_parse(&r->arena, r->body, &body, &why);
    if (st != PAWL_OK)
        return err_set(err, st, "the body is not JSON: %.300s", why.text);
    if (body->kind != JSON_OBJECT)
        return err_set(err, PAWL_INVALID, "the body is neither empty nor {}");
    if (body->first)
        return err_set(err, PAWL_INVALID, "field \"%.*s\": is unknown; an event takes no fields",
                       (int)MIN(body->first->name.len, 100), body->first->name.data);
    return PAWL_OK;
}

enum pawl_status events_question_read(struct http_request *r, struct events_question *out,
                                      struct pawl_err *err)
{
    static const char *const allow[] = { [PATH_EVENTS] = "GET, HEAD, POST",
                                         [PATH_ASYNC] = "POST",
                                         [PATH_EVENT] = "GET, HEAD",
                                         [PATH_HEALTHZ] = "GET, HEAD",
                                         [PATH_READYZ] = "GET, HEAD" };
    struct bytes id = BYTES_NONE, name = first_name(r->query);
    *out = (struct events_question){ .path = path_of(r->path, &id) };
    if (out->path == PATH_NONE)
        return err_set(err, PAWL_NOT_FOUND, "path %.*s is unknown; expected /events",
                       (int)MIN(r->path.len, 100), r->path.data);
    if (r->query.len)
        return err_set(err, PAWL_INVALID,
                       "field \"%.*s\": is no query parameter of this path; it takes none",
                       (int)MIN(name.len, 60), name.data);
    out->allow = allow[out->path];
    if (!fits(r, out->path))
        return err_set(err, PAWL_METHOD, "method %s is not allowed for %.*s; expected %s",
                       http_method_name(r->method), (int)MIN(r->path.len, 60), r->path.data,
                       out->allow);
    enum pawl_status st = body_check(r, err);
    if (st == PAWL_OK && out->path == PATH_EVENT && !id_read(id, &out->id))
        st = err_set(err, PAWL_INVALID,
                     "field \"id\": \"%.*s\" is not a whole number from 1 to %" PRId64,
                     (int)MIN(id.len, 40), id.data, EVENT_ID_MAX);
    return st;
}
