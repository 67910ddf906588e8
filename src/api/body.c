/*
 * body.c - a request's body as JSON, and which content types count as JSON (body.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/body.h"

#include <strings.h>

#include "api/ask.h"
#include "api/route.h"
#include "api/service.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/fields.h"

/* The content type without its parameters. */
static struct bytes media_type(const struct http_request *r)
{
    struct bytes type = http_header(r, "content-type");
    const char *params = type.len ? memchr(type.data, ';', type.len) : NULL;
    if (params)
        type.len = (size_t)(params - type.data);
    while (type.len && (type.data[type.len - 1] == ' ' || type.data[type.len - 1] == '\t'))
        type.len--;
    return type;
}

static bool is_type(struct bytes type, const char *name)
{
    return type.len == strlen(name) && !strncasecmp(type.data, name, type.len);
}

bool body_is_json(const struct http_request *r)
{
    struct bytes t = media_type(r);
    if (!t.len || is_type(t, "application/json") || is_type(t, "text/json"))
        return true;
    /* The default type of curl -d. */
    if (is_type(t, "application/x-www-form-urlencoded"))
        return true;
    return t.len > 17 && !strncasecmp(t.data, "application/", 12) &&
           !strncasecmp(t.data + t.len - 5, "+json", 5);
}

bool body_is_ndjson(const struct http_request *r)
{
    struct bytes t = media_type(r);
    return is_type(t, "application/x-ndjson") || is_type(t, "application/ndjson") ||
           is_type(t, "application/jsonl") || is_type(t, "application/x-jsonlines");
}

enum pawl_status body_plain(const struct http_request *r, struct pawl_err *err)
{
    struct bytes how = http_header(r, "content-encoding");
    if (!how.len || is_type(how, "identity"))
        return PAWL_OK;
    return err_set(err, PAWL_MEDIA, "the body is encoded as %.*s; send it as it is",
                   (int)MIN(how.len, 100), how.data);
}

enum pawl_status body_json(struct ask *q, bool empty_ok, struct json **out, struct pawl_err *err)
{
    const struct http_request *r = q->r;
    *out = NULL;
    if (r->too_large)
        return err_set(err, PAWL_TOO_LARGE, "the body is larger than %zu bytes",
                       api_body_max(r, q->api));
    if (!r->body.len)
        return empty_ok ? PAWL_OK : err_set(err, PAWL_INVALID, "the body is empty");
    enum pawl_status st = body_plain(r, err);
    if (st != PAWL_OK)
        return st;
    if (!body_is_json(r)) {
        struct bytes type = media_type(r);
        return err_set(err, PAWL_MEDIA, "the body's type is %.*s; send application/json",
                       (int)MIN(type.len, 100), type.data);
    }
    struct pawl_err why;
    st = json_parse(q->a, r->body, out, &why);
    return st == PAWL_OK ? st : err_set(err, st, "the body is not JSON: %.400s", why.text);
}

enum pawl_status body_value(struct ask *q, bool empty_ok, struct payload *out, struct pawl_err *err)
{
    struct json *body;
    *out = (struct payload){ 0 };
    enum pawl_status st = body_json(q, empty_ok, &body, err);
    if (st == PAWL_OK && body && body->levels > JSON_DEPTH_MAX)
        return err_set(err, PAWL_INVALID, "the body is nested deeper than %d levels",
                       JSON_DEPTH_MAX);
    if (st == PAWL_OK && body)
        *out = (struct payload){ PAWL_JSON, body->raw };
    return st;
}

enum pawl_status body_object(struct ask *q, void *out, uint64_t *given, struct pawl_err *err)
{
    static const struct json none = { .kind = JSON_OBJECT };
    struct json *body;
    enum pawl_status st = body_json(q, true, &body, err);
    if (st != PAWL_OK)
        return st;
    return fields_read(q->a, body ? body : &none, q->route->body, out, given, err);
}
