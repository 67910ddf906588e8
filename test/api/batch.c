/*
 * batch.c - many calls in one request, as JSON and as NDJSON, all or some of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/limits.h"
#include "web.h"

RUNS_ON(ENGINES_ALL)

TEST(in_order_each_its_own_answer)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a =
        POST(&w, "/v1/calls/batch",
             "{\"calls\":[{\"id\":\"a\",\"type\":\"t\",\"input\":1},{\"id\":\"b\",\"typ\":\"t\"},"
             "{\"id\":\"a\",\"type\":\"t\",\"input\":1},{\"id\":\"a\",\"type\":\"t\",\"input\":2},"
             "{\"type\":\"t\"},5]}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "calls.0.id"), "a");
    EQ_STR(AT(a, "calls.0.status"), "pending");
    EQ_STR(AT(a, "calls.0.duplicate"), "false");
    EQ_PTR(AT(a, "calls.0.input"), NULL);
    EQ_STR(AT(a, "calls.1.id"), "b");
    EQ_STR(AT(a, "calls.1.error.code"), "INVALID");
    EQ_STR(AT(a, "calls.1.error.field"), "typ");
    EQ_STR(AT(a, "calls.2.duplicate"), "true");
    EQ_STR(AT(a, "calls.3.id"), "a");
    EQ_STR(AT(a, "calls.3.error.code"), "CONFLICT");
    EQ_INT(strlen(AT(a, "calls.4.id")), 36);
    EQ_STR(AT(a, "calls.5.id"), "null");
    EQ_STR(AT(a, "calls.5.error.code"), "INVALID");
    EQ_PTR(AT(a, "calls.6"), NULL);
    EQ_INT(fixture_count(w.p, 0), 2);
    web_end(&w);
}

TEST(atomic_is_all_or_none)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = POST(
        &w, "/v1/calls/batch",
        "{\"atomic\":true,\"calls\":[{\"id\":\"a\",\"type\":\"t\"},{\"id\":\"b\",\"type\":5}]}");
    EQ_INT(a.status, 400);
    EQ_STR(AT(a, "error.index"), "1");
    EQ_STR(AT(a, "error.field"), "type");
    EQ_INT(fixture_count(w.p, 0), 0);
    a = POST(
        &w, "/v1/calls/batch",
        "{\"atomic\":true,\"calls\":[{\"id\":\"a\",\"type\":\"t\"},{\"id\":\"b\",\"type\":\"t\"},"
        "{\"id\":\"a\",\"type\":\"u\"}]}");
    EQ_INT(a.status, 409);
    EQ_STR(AT(a, "error.code"), "CONFLICT");
    EQ_STR(AT(a, "error.index"), "2");
    EQ_STR(AT(a, "error.id"), "a");
    EQ_INT(fixture_count(w.p, 0), 0);
    a = POST(&w, "/v1/calls/batch",
             "{\"atomic\":true,\"calls\":[{\"id\":\"a\",\"type\":\"t\"},"
             "{\"id\":\"b\",\"type\":\"t\"}]}");
    EQ_INT(a.status, 200);
    EQ_INT(fixture_count(w.p, 0), 2);
    web_end(&w);
}

TEST(lines)
{
    struct web w;
    web_begin(&w, param);
    w.more = "Content-Type: application/x-ndjson\r\n";
    struct web_answer a = POST(&w, "/v1/calls/batch",
                               "{\"id\":\"a\",\"type\":\"t\"}\n\n  \r\n{\"id\":\"b\"\n"
                               "{\"id\":\"c\",\"type\":\"t\"}\r\n");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "calls.0.id"), "a");
    EQ_STR(AT(a, "calls.1.error.code"), "INVALID");
    EQ_STR(AT(a, "calls.2.id"), "c");
    EQ_PTR(AT(a, "calls.3"), NULL);
    a = POST(&w, "/v1/calls/batch?atomic=true", "{\"id\":\"d\",\"type\":\"t\"}\n{\n");
    EQ_INT(a.status, 400);
    EQ_STR(AT(a, "error.index"), "1");
    EQ_INT(POST(&w, "/v1/calls/batch", "\n").status, 400);
    EQ_INT(fixture_count(w.p, 0), 2);
    web_end(&w);
}

TEST(how_many)
{
    struct web w;
    struct buf b;
    web_begin(&w, param);
    EQ_STR(AT(POST(&w, "/v1/calls/batch", "{\"calls\":[]}"), "error.field"), "calls");
    EQ_STR(AT(POST(&w, "/v1/calls/batch", "{}"), "error.field"), "calls");
    EQ_STR(AT(POST(&w, "/v1/calls/batch", "{\"calls\":[],\"x\":1}"), "error.field"), "x");
    EQ_INT(POST(&w, "/v1/calls/batch", NULL).status, 400);
    buf_init(&b, 1 << 22);
    for (int n = BATCH_MAX; n <= BATCH_MAX + 1; n++) {
        buf_reset(&b);
        buf_add_text(&b, "{\"calls\":[");
        for (int i = 0; i < n; i++)
            buf_addf(&b, "%s{\"type\":\"t\"}", i ? "," : "");
        buf_add_text(&b, "]}");
        buf_add_char(&b, '\0');
        struct web_answer a = POST(&w, "/v1/calls/batch", b.data);
        EQ_INT(a.status, n == BATCH_MAX ? 200 : 400);
        if (n == BATCH_MAX)
            EQ_STR(AT(a, "calls.9999.status"), "pending");
    }
    buf_release(&b);
    web_end(&w);
}
