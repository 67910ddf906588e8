/*
 * if_match.c - the headers If-Match and If-None-Match (RFC 9110, 13.1) as the condition of a write.
 *
 * A tag that is well-formed and cannot be one of our versions matches nothing: the write is refused
 * as STALE, not as INVALID. Weak tags never match, because If-Match uses the strong comparison.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/ask_spec.h"
#include "base/text.h"

/* The condition when no tag can match: nothing ever has this version. */
#define NO_VERSION INT64_MAX

struct tags {
    int64_t *v; /* the versions that match */
    size_t n;
    size_t seen; /* number of tags */
    bool any;    /* `*` */
};

static void skip_space(struct bytes *h)
{
    while (h->len && (h->data[0] == ' ' || h->data[0] == '\t'))
        *h = (struct bytes){ h->data + 1, h->len - 1 };
}

static bool is_etag_char(char c)
{
    unsigned char u = (unsigned char)c;
    return u == 0x21 || (u >= 0x23 && u <= 0x7e) || u >= 0x80;
}

/* Take one `[W/]"..."` off the front; false: there is none. */
static bool take_tag(struct bytes *h, struct tags *t)
{
    bool weak = h->len >= 2 && h->data[0] == 'W' && h->data[1] == '/';
    size_t at = weak ? 2 : 0, from = at + 1;
    int64_t version;
    if (at >= h->len || h->data[at] != '"')
        return false;
    for (at++; at < h->len && is_etag_char(h->data[at]);)
        at++;
    if (at >= h->len || h->data[at] != '"')
        return false;
    struct bytes tag = { h->data + from, at - from };
    /* Tags are compared as text: "01" is not the tag "1". */
    if (!weak && tag.len && tag.data[0] >= '1' && tag.data[0] <= '9' && int_parse(tag, &version))
        t->v[t->n++] = version;
    t->seen++;
    *h = (struct bytes){ h->data + at + 1, h->len - at - 1 };
    return true;
}

/* Read one header line: `*`, or tags separated by commas; RFC 9110 allows empty elements. */
static bool take_line(struct bytes h, struct tags *t)
{
    if (bytes_eq(h, BYTES("*"))) {
        t->any = true;
        return true;
    }
    for (;;) {
        skip_space(&h);
        if (h.len && h.data[0] != ',' && !take_tag(&h, t))
            return false;
        skip_space(&h);
        if (!h.len)
            return true;
        if (h.data[0] != ',')
            return false;
        h = (struct bytes){ h.data + 1, h.len - 1 };
    }
}

static bool take_all(const struct http_request *r, struct tags *t)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (bytes_eq(r->headers[i].name, BYTES("if-match")) && !take_line(r->headers[i].value, t))
            return false;
    return t->any ? !t->seen : t->seen > 0;
}

/* If-None-Match can only say that there must be nothing yet. */
static enum pawl_status none_match_read(struct ask *q, bool may_none, struct if_match *out,
                                        struct pawl_err *err)
{
    struct bytes h = http_header(q->r, "if-none-match");
    if (!h.data)
        return PAWL_OK;
    if (!may_none)
        return err_set(err, PAWL_INVALID,
                       "field \"If-None-Match\": is not supported here; send If-Match");
    if (!bytes_eq(h, BYTES("*")) || http_header_count(q->r, "if-none-match") > 1)
        return err_set(err, PAWL_INVALID, "field \"If-None-Match\": must be *");
    if (http_header_count(q->r, "if-match"))
        return err_set(err, PAWL_INVALID,
                       "field \"If-None-Match\": is given together with If-Match");
    out->none = true;
    return PAWL_OK;
}

enum pawl_status if_match_read(struct ask *q, bool may_none, struct if_match *out,
                               struct pawl_err *err)
{
    struct tags t = { 0 };
    size_t room = 1;
    *out = (struct if_match){ 0 };
    enum pawl_status st = none_match_read(q, may_none, out, err);
    if (st != PAWL_OK || !http_header_count(q->r, "if-match"))
        return st;
    for (size_t i = 0; i < q->r->n_headers; i++)
        room += q->r->headers[i].value.len / 2; /* the shortest tag is `""` */
    t.v = arena_alloc(q->a, room * sizeof *t.v);
    if (!t.v)
        return err_no_memory(err, "If-Match");
    if (!take_all(q->r, &t))
        return err_set(err, PAWL_INVALID,
                       "field \"If-Match\": must be * or versions in quotes, such as \"7\"");
    out->any = t.any;
    out->version = t.n ? t.v[0] : t.any ? 0 : NO_VERSION;
    out->or_versions = t.v + 1;
    out->n_or_versions = t.n ? t.n - 1 : 0;
    return PAWL_OK;
}
