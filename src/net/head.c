/*
 * head.c - the rules of a head that llhttp leaves to its user: method, target, Host, transfer
 * coding, Expect.
 *
 * Called by intake.c when the head is parsed; loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <strings.h>

#include "net/intake.h"

static bool same_word(struct bytes b, const char *word)
{
    return b.len == strlen(word) && strncasecmp(b.data, word, b.len) == 0;
}

static void method_set(struct intake *i)
{
    static const char *const names[] = {
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"
    };
    i->request.method = HTTP_OTHER;
    for (size_t m = 0; m < COUNT_OF(names); m++)
        if (bytes_eq(i->method, bytes_of(names[m])))
            i->request.method = (enum http_method)m;
}

/* ---- Target and Host ------------------------------------------------------------------------- */

static bool host_ok(struct bytes host)
{
    for (size_t k = 0; k < host.len; k++)
        if ((unsigned char)host.data[k] <= ' ' || (unsigned char)host.data[k] >= 0x7f ||
            strchr("/\\@,?#<>\"", host.data[k]))
            return false;
    return true;
}

static struct http_header *header_find(struct intake *i, struct bytes name)
{
    for (size_t k = 0; k < i->request.n_headers; k++)
        if (bytes_eq(i->headers[k].name, name))
            return &i->headers[k];
    return NULL;
}

static bool host_check(struct intake *i)
{
    const struct http_header *host = header_find(i, BYTES("host"));
    if (!host && i->http11)
        return intake_fail(i, 400, "the Host header is missing");
    if (http_header_count(&i->request, "host") > 1)
        return intake_fail(i, 400, "there is more than one Host header");
    if (host && !host_ok(host->value))
        return intake_fail(i, 400, "the Host header is not NAME or NAME:PORT");
    return true;
}

/* `http://host:port/path`: the authority replaces Host (RFC 9112, 3.2.2). */
static bool target_absolute(struct intake *i, struct bytes *target)
{
    size_t skip = target->len > 7 && strncasecmp(target->data, "http://", 7) == 0    ? 7
                  : target->len > 8 && strncasecmp(target->data, "https://", 8) == 0 ? 8
                                                                                     : 0;
    if (!skip)
        return intake_fail(i, 400, "the target is not a path");
    const char *begin = target->data + skip, *end = target->data + target->len, *at = begin;
    while (at < end && *at != '/' && *at != '?')
        at++;
    struct bytes authority = { begin, (size_t)(at - begin) };
    if (authority.len == 0 || !host_ok(authority))
        return intake_fail(i, 400, "the target's authority is not NAME or NAME:PORT");
    struct http_header *host = header_find(i, BYTES("host"));
    if (host)
        host->value = authority;
    *target = (struct bytes){ at, (size_t)(end - at) };
    return true;
}

static bool target_set(struct intake *i)
{
    struct bytes target = i->target;
    if (memchr(target.data, '#', target.len))
        return intake_fail(i, 400, "the target has a fragment");
    if (target.data[0] == '*') {
        if (target.len != 1 || i->request.method != HTTP_OPTIONS)
            return intake_fail(i, 400, "the target * is allowed with OPTIONS only");
    } else if (target.data[0] != '/' && !target_absolute(i, &target)) {
        return false;
    }
    const char *mark = target.len ? memchr(target.data, '?', target.len) : NULL;
    i->request.path = target;
    if (mark) {
        i->request.path.len = (size_t)(mark - target.data);
        i->request.query = (struct bytes){ mark + 1, target.len - i->request.path.len - 1 };
    }
    if (i->request.path.len == 0)
        i->request.path = BYTES("/");
    return true;
}

/* ---- Body ------------------------------------------------------------------------------------ */

/* llhttp does not report an empty Transfer-Encoding, and accepts any coding before `chunked`. */
static bool coding_check(struct intake *i)
{
    const struct http_header *coding = header_find(i, BYTES("transfer-encoding"));
    if (!coding)
        return true;
    if (i->http10)
        return intake_fail(i, 400, "Transfer-Encoding is not allowed in HTTP/1.0");
    if (coding->value.len == 0 || http_header_count(&i->request, "transfer-encoding") > 1 ||
        http_header_count(&i->request, "content-length") > 0)
        return intake_fail(i, 400,
                           "Transfer-Encoding is empty, repeated or given with Content-Length");
    if (!same_word(coding->value, "chunked"))
        return intake_fail(i, 501, "the transfer coding is not implemented; expected chunked");
    return true;
}

static bool expect_check(struct intake *i)
{
    struct bytes expect = http_header(&i->request, "expect");
    if (!expect.data || i->http10)
        return true;
    if (!same_word(expect, "100-continue"))
        return intake_fail(i, 417, "the expectation is unknown; expected 100-continue");
    i->expects = !i->complete;
    return true;
}

bool head_check(struct intake *i)
{
    if (!i->http10 && !i->http11)
        return intake_fail(i, 505, "the HTTP version is not supported; expected 1.1 or 1.0");
    method_set(i);
    if (bytes_eq(i->method, BYTES("CONNECT")))
        return intake_fail(i, 501, "CONNECT is not implemented");
    return host_check(i) && target_set(i) && coding_check(i) && expect_check(i);
}
