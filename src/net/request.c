/*
 * request.c - reading the headers of a request, and the names and limits of http.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "net/http.h"

const char *http_method_name(enum http_method m)
{
    switch (m) {
    case HTTP_GET:
        return "GET";
    case HTTP_HEAD:
        return "HEAD";
    case HTTP_POST:
        return "POST";
    case HTTP_PUT:
        return "PUT";
    case HTTP_PATCH:
        return "PATCH";
    case HTTP_DELETE:
        return "DELETE";
    case HTTP_OPTIONS:
        return "OPTIONS";
    case HTTP_OTHER:
        break;
    }
    return "OTHER";
}

struct bytes http_header(const struct http_request *r, const char *name)
{
    struct bytes want = bytes_of(name);
    for (size_t k = 0; k < r->n_headers; k++)
        if (bytes_eq(r->headers[k].name, want))
            return r->headers[k].value;
    return BYTES_NONE;
}

size_t http_header_count(const struct http_request *r, const char *name)
{
    struct bytes want = bytes_of(name);
    size_t n = 0;
    for (size_t k = 0; k < r->n_headers; k++)
        n += bytes_eq(r->headers[k].name, want);
    return n;
}

void http_limits_init(struct http_limits *l)
{
    *l = (struct http_limits){
        .header_len = HTTP_HEAD_LEN_MAX,
        .body_len = HTTP_BODY_LEN_MAX,
        .body_read_len = HTTP_BODY_LEN_MAX,
        .held_len = HTTP_HELD_LEN_MAX,
        .arena_len = HTTP_ARENA_LEN_MAX,
        .connections = HTTP_CONNS_MAX,
        .header_us = HTTP_HEAD_US,
        .body_us = HTTP_BODY_US,
        .idle_us = HTTP_IDLE_US,
        .write_us = HTTP_WRITE_US,
    };
}
