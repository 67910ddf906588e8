/*
 * http.c - fuzz: requests are parsed the same however their bytes are split, and keep the parser's
 * promises.
 *
 * The first byte seeds the splits. The rest is a stream of requests, fed once as a whole and once
 * in pieces; the two results must agree byte for byte. Built for libFuzzer, and by
 * test/unit/net_corpus.c to run the corpus and every input that once failed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "net/intake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The parsed requests as text, for comparison. */
struct reading {
    struct buf log;
    struct intake_rules rules;
    struct intake intake;
};

static void part(struct buf *log, char what, struct bytes b)
{
    buf_addf(log, "%c%zu:", what, b.len);
    buf_add_bytes(log, b);
}

static void no_control(struct bytes b)
{
    for (size_t k = 0; k < b.len; k++)
        CHECK((unsigned char)b.data[k] >= 0x20 || b.data[k] == '\t');
}

static void request_check(const struct intake *i)
{
    const struct http_request *r = &i->request;
    size_t hosts = http_header_count(r, "host");
    CHECK(hosts == 1 || (i->http10 && hosts == 0));
    CHECK(r->path.len > 0 && (r->path.data[0] == '/' || r->path.data[0] == '*'));
    CHECK(http_header_count(r, "content-length") + http_header_count(r, "transfer-encoding") <= 1);
    CHECK(r->body.data && r->body.len <= i->rules->limits.body_len);
    CHECK(!r->too_large || r->body.len == 0);
    no_control(r->path);
    no_control(r->query);
    for (size_t k = 0; k < r->n_headers; k++) {
        CHECK(r->headers[k].name.len > 0);
        no_control(r->headers[k].name);
        no_control(r->headers[k].value);
    }
}

static void request_log(struct reading *g)
{
    const struct intake *i = &g->intake;
    const struct http_request *r = &i->request;
    request_check(i);
    buf_addf(&g->log, "\n%s%s%s%s ", http_method_name(r->method), i->keep_alive ? " keep" : "",
             r->too_large ? " large" : "", i->http10 ? " 1.0" : "");
    part(&g->log, 'p', r->path);
    part(&g->log, 'q', r->query);
    for (size_t k = 0; k < r->n_headers; k++) {
        part(&g->log, 'n', r->headers[k].name);
        part(&g->log, 'v', r->headers[k].value);
    }
    part(&g->log, 'b', r->body);
}

/* False: nothing more is read on this connection. */
static bool feed(struct reading *g, struct bytes in)
{
    size_t used = 0;
    while (used < in.len) {
        size_t n = intake_feed(&g->intake, (struct bytes){ in.data + used, in.len - used });
        CHECK(n <= in.len - used);
        used += n;
        if (g->intake.state == INTAKE_BAD) {
            CHECK(g->intake.bad >= 400 && g->intake.bad < 600 && g->intake.bad_text);
            buf_addf(&g->log, "\nbad %d", g->intake.bad);
            return false;
        }
        if (g->intake.state == INTAKE_DONE) {
            bool keep = g->intake.keep_alive;
            request_log(g);
            intake_reset(&g->intake);
            if (!keep)
                return false;
        }
    }
    return true;
}

static void reading_init(struct reading *g)
{
    *g = (struct reading){ 0 };
    http_limits_init(&g->rules.limits);
    g->rules.limits.header_len = 512;
    g->rules.limits.body_len = 64;
    g->rules.limits.body_read_len = 256;
    buf_init(&g->log, 64 << 20);
    intake_init(&g->intake, &g->rules);
}

static void reading_release(struct reading *g)
{
    intake_release(&g->intake);
    CHECK(g->rules.held_len == 0);
    buf_release(&g->log);
}

/* Each piece in its own block, so that the sanitizer sees a read past its end. */
static bool feed_copy(struct reading *g, const char *data, size_t len)
{
    char *copy = malloc(len ? len : 1);
    if (len)
        memcpy(copy, data, len);
    bool more = feed(g, (struct bytes){ copy, len });
    free(copy);
    return more;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 2)
        return 0;
    struct reading whole, cut;
    const char *text = (const char *)data + 1;
    len--;
    reading_init(&whole);
    reading_init(&cut);
    feed_copy(&whole, text, len);
    uint32_t seed = data[0];
    for (size_t at = 0, n; at < len; at += n) {
        seed = seed * 1664525 + 1013904223;
        n = MIN(1 + (data[0] ? (seed >> 16) % (1 + data[0] % 40) : 0), len - at);
        if (!feed_copy(&cut, text + at, n))
            break;
    }
    if (!bytes_eq(buf_bytes(&whole.log), buf_bytes(&cut.log))) {
        fprintf(stderr, "whole: %.*s\ncut: %.*s\n", BYTES_ARG(buf_bytes(&whole.log)),
                BYTES_ARG(buf_bytes(&cut.log)));
        abort();
    }
    reading_release(&whole);
    reading_release(&cut);
    return 0;
}
