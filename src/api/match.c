/*
 * match.c - from a path to its route (match.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/match.h"

#include <stdio.h>

#include "api/ask.h"
#include "api/route.h"
#include "base/buf.h"
#include "base/text.h"

/* ---- Percent signs --------------------------------------------------------------------------- */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct bytes percent_decode(struct arena *a, struct bytes text, bool plus)
{
    char *out = arena_alloc(a, text.len + 1), *put = out;
    if (!out)
        return BYTES_NONE;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '%') {
            int high = text.len - i > 2 ? hex(text.data[i + 1]) : -1;
            int low = high >= 0 ? hex(text.data[i + 2]) : -1;
            if (low < 0)
                return BYTES_NONE;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        *put++ = c;
    }
    *put = 0;
    return (struct bytes){ out, (size_t)(put - out) };
}

void percent_add(struct buf *b, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '-' || c == '_' || c == '.' || c == '~';
        if (plain)
            buf_add_char(b, (char)c);
        else
            buf_addf(b, "%%%02X", c);
    }
}

/* ---- Patterns -------------------------------------------------------------------------------- */

/* Take the next `/segment` off a path; false at its end. */
static bool segment(struct bytes *path, struct bytes *out)
{
    if (!path->len)
        return false;
    const char *at = path->data + 1, *end = path->data + path->len;
    const char *slash = memchr(at, '/', (size_t)(end - at));
    const char *stop = slash ? slash : end;
    *out = (struct bytes){ at, (size_t)(stop - at) };
    *path = (struct bytes){ stop, (size_t)(end - stop) };
    return true;
}

/* Does the undecoded path match the pattern? Then raw[i] is the segment for the i-th `{}`. */
static bool fits(const char *pattern, struct bytes path, struct bytes raw[ASK_PARAMS_MAX])
{
    struct bytes rest = bytes_of(pattern), want, have;
    size_t n = 0;
    if (!path.len || path.data[0] != '/')
        return false;
    while (segment(&rest, &want)) {
        if (!segment(&path, &have))
            return false;
        if (want.len && want.data[0] == '{') {
            if (!have.len)
                return false;
            CHECK(n < ASK_PARAMS_MAX);
            raw[n++] = have;
        } else if (!bytes_eq(want, have)) {
            return false;
        }
    }
    return !path.len;
}

/* The name between the i-th braces, for error texts. */
static struct bytes param_name(const char *pattern, size_t i)
{
    const char *open = pattern - 1;
    for (size_t k = 0; k <= i; k++)
        open = strchr(open + 1, '{');
    return (struct bytes){ open + 1, (size_t)(strchr(open, '}') - open - 1) };
}

static enum pawl_status decode(struct ask *q, const struct bytes raw[ASK_PARAMS_MAX],
                               struct pawl_err *err)
{
    for (size_t i = 0; i < ASK_PARAMS_MAX && raw[i].data; i++) {
        struct bytes name = param_name(q->route->pattern, i);
        q->path[i] = percent_decode(q->a, raw[i], false);
        if (!q->path[i].data)
            return q->a->failed
                       ? err_no_memory(err, "a path")
                       : err_set(err, PAWL_INVALID,
                                 "field \"%.*s\": has a %% that is not followed by two hex digits",
                                 BYTES_ARG(name));
        const char *fault = name_fault(q->path[i]);
        if (fault)
            return err_set(err, PAWL_INVALID, "field \"%.*s\": %s", BYTES_ARG(name), fault);
    }
    return PAWL_OK;
}

static void allow_add(char out[64], const char *method)
{
    size_t len = strlen(out);
    if (!strstr(out, method))
        snprintf(out + len, 64 - len, "%s%s", len ? ", " : "", method);
}

enum matched match(struct ask *q, char out_allow[64], struct pawl_err *err)
{
    enum http_method method = q->r->method == HTTP_HEAD ? HTTP_GET : q->r->method;
    enum matched m = MATCH_NONE;
    out_allow[0] = 0;
    for (size_t i = 0; i < n_routes; i++) {
        struct bytes raw[ASK_PARAMS_MAX] = { 0 };
        if (!fits(routes[i].pattern, q->r->path, raw))
            continue;
        if (routes[i].method == method) {
            q->route = &routes[i];
            err->status = decode(q, raw, err);
            return MATCH_FOUND;
        }
        m = MATCH_METHOD;
        allow_add(out_allow, http_method_name(routes[i].method));
        if (routes[i].method == HTTP_GET)
            allow_add(out_allow, "HEAD");
    }
    return m;
}
