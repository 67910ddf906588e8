/*
 * bad.c - invalid requests: each gets a clear error that names the field, and nothing is stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/limits.h"
#include "web.h"

RUNS_ON(ENGINES_ALL)

/* Assert that the request was refused with this error, and that nothing was stored. */
static void refused(struct web *w, struct web_answer a, int status, const char *field)
{
    EQ_INT(a.status, status);
    TRUE(AT(a, "error.code") != NULL);
    EQ_STR(AT(a, "error.field"), field ? field : "null");
    GT_INT(strlen(AT(a, "error.message")), 5);
    EQ_STR(AT(GET(w, "/v1/calls"), "calls"), "[]");
}

TEST(bodies)
{
    static const struct {
        const char *body, *field;
    } bad[] = {
        { "", NULL },
        { " ", NULL },
        { "{", NULL },
        { "{\"type\":\"a\"", NULL },
        { "{\"type\":\"a\"}}", NULL },
        { "{\"type\":\"a\",}", NULL },
        { "{'type':'a'}", NULL },
        { "nul", NULL },
        { "[]", NULL },
        { "\"a\"", NULL },
        { "5", NULL },
        { "null", NULL },
        { "{}", "type" },
        { "{\"type\":null}", "type" },
        { "{\"type\":5}", "type" },
        { "{\"type\":\"\"}", "type" },
        { "{\"type\":\".\"}", "type" },
        { "{\"type\":\"..\"}", "type" },
        { "{\"type\":\"a\\u0000b\"}", "type" },
        { "{\"type\":\"a\\u0085b\"}", "type" },
        { "{\"type\":\"a\nb\"}", NULL },
        { "{\"type\":\"\xff\"}", NULL },
        { "{\"type\":\"\xc0\xaf\"}", NULL },
        { "{\"type\":\"\xed\xa0\x80\"}", NULL },
        { "{\"type\":\"\\ud800\"}", NULL },
        { "{\"type\":\"\\udc00\\ud800\"}", NULL },
        { "{\"type\":\"a\",\"type\":\"a\"}", "type" },
        { "{\"type\":\"a\",\"t\\u0079pe\":\"a\"}", "type" },
        { "{\"type\":\"a\",\"colour\":1}", "colour" },
        { "{\"type\":\"a\",\"Type\":1}", "Type" },
        { "{\"type\":\"a\",\"\":1}", "" },
        { "{\"type\":\"a\",\"a\\\"b\":1}", "a?b" },
        { "{\"type\":\"a\",\"id\":7}", "id" },
        { "{\"type\":\"a\",\"id\":\"\"}", "id" },
        { "{\"type\":\"a\",\"id\":\"..\"}", "id" },
        { "{\"type\":\"a\",\"method\":null}", "method" },
        { "{\"type\":\"a\",\"queue\":null}", "queue" },
        { "{\"type\":\"a\",\"queue\":[]}", "queue" },
        { "{\"type\":\"a\",\"priority\":1001}", "priority" },
        { "{\"type\":\"a\",\"priority\":-1001}", "priority" },
        { "{\"type\":\"a\",\"priority\":1.5}", "priority" },
        { "{\"type\":\"a\",\"priority\":\"1\"}", "priority" },
        { "{\"type\":\"a\",\"priority\":null}", "priority" },
        { "{\"type\":\"a\",\"priority\":99999999999999999999}", "priority" },
        { "{\"type\":\"a\",\"max_attempts\":0}", "max_attempts" },
        { "{\"type\":\"a\",\"max_attempts\":1001}", "max_attempts" },
        { "{\"type\":\"a\",\"max_lost\":0}", "max_lost" },
        { "{\"type\":\"a\",\"delay\":-1}", "delay" },
        { "{\"type\":\"a\",\"delay\":\"5\"}", "delay" },
        { "{\"type\":\"a\",\"delay\":1e400}", "delay" },
        { "{\"type\":\"a\",\"delay\":1e12}", "delay" },
        { "{\"type\":\"a\",\"timeout\":0}", "timeout" },
        { "{\"type\":\"a\",\"timeout\":-0.0}", "timeout" },
        { "{\"type\":\"a\",\"timeout\":null}", "timeout" },
        { "{\"type\":\"a\",\"run_at\":\"tomorrow\"}", "run_at" },
        { "{\"type\":\"a\",\"run_at\":1700000000}", "run_at" },
        { "{\"type\":\"a\",\"run_at\":\"2026-02-30T00:00:00Z\"}", "run_at" },
        { "{\"type\":\"a\",\"delay\":1,\"run_at\":\"2099-01-01T00:00:00Z\"}", "run_at" },
        { "{\"type\":\"a\",\"expires_in\":1,\"expires_at\":\"2099-01-01T00:00:00Z\"}",
          "expires_at" },
        { "{\"type\":\"a\",\"input\":1,\"input_base64\":\"AA==\"}", "input_base64" },
        { "{\"type\":\"a\",\"input_base64\":\"A\"}", "input_base64" },
        { "{\"type\":\"a\",\"input_base64\":\"AA==\\n\"}", "input_base64" },
        { "{\"type\":\"a\",\"input_base64\":5}", "input_base64" },
        { "{\"type\":\"a\",\"backoff\":5}", "backoff" },
        { "{\"type\":\"a\",\"backoff\":{\"base\":-1}}", "backoff.base" },
        { "{\"type\":\"a\",\"backoff\":{\"factor\":0.5}}", "backoff.factor" },
        { "{\"type\":\"a\",\"backoff\":{\"factor\":\"2\"}}", "backoff.factor" },
        { "{\"type\":\"a\",\"backoff\":{\"jitter\":2}}", "backoff.jitter" },
        { "{\"type\":\"a\",\"backoff\":{\"x\":2}}", "backoff.x" },
        { "{\"type\":\"a\",\"backoff\":{\"max\":1,\"max\":1}}", "backoff.max" },
        { "{\"type\":\"a\",\"tags\":[]}", "tags" },
        { "{\"type\":\"a\",\"tags\":{\"a\":1}}", "tags" },
        { "{\"type\":\"a\",\"tags\":{\"a\":\"1\",\"a\":\"2\"}}", "tags" },
        { "{\"type\":\"a\",\"tags\":{\"\":\"1\"}}", "tags" },
        { "{\"type\":\"a\",\"on_dead\":\"explode\"}", "on_dead" },
        { "{\"type\":\"a\",\"traceparent\":\"00-zz\"}", "traceparent" },
        { "{\"type\":\"a\",\"status\":\"completed\"}", "status" },
    };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct web_answer a = POST(&w, "/v1/calls?wait=1", bad[i].body);
        if (a.status != 400 || strcmp(AT(a, "error.field"), bad[i].field ? bad[i].field : "null"))
            FAIL("%s: %d %.*s", bad[i].body, a.status, BYTES_ARG(a.body));
    }
    refused(&w, POST(&w, "/v1/calls", ""), 400, NULL);
    web_end(&w);
}

TEST(names_at_the_edge)
{
    struct web w;
    char name[258];
    web_begin(&w, param);
    memset(name, 'n', sizeof name);
    name[256] = 0;
    refused(&w, POST(&w, "/v1/calls", web_text("{\"type\":\"%s\"}", name)), 400, "type");
    refused(&w, POST(&w, "/v1/calls", web_text("{\"type\":\"t\",\"id\":\"%s\"}", name)), 400, "id");
    refused(&w, GET(&w, web_text("/v1/calls/%s", name)), 400, "id");
    name[255] = 0;
    EQ_INT(POST(&w, "/v1/calls", web_text("{\"type\":\"%s\",\"id\":\"%s\"}", name, name)).status,
           202);
    EQ_INT(GET(&w, web_text("/v1/calls/%s", name)).status, 200);
    web_end(&w);
}

/* `levels` arrays in each other. */
static const char *nested(int levels)
{
    char *text = web_text("%*s", 2 * levels, "");
    memset(text, '[', (size_t)levels);
    memset(text + levels, ']', (size_t)levels);
    return text;
}

/* What is around the value does not count, wherever it is given. */
TEST(nesting_at_the_edge)
{
    static const struct {
        const char *method, *path, *body, *field;
        int status;
    } cases[] = {
        { "POST", "/v1/calls", "{\"type\":\"t\",\"input\":%s}", "input", 202 },
        { "POST", "/v1/calls/batch", "{\"calls\":[{\"type\":\"t\",\"input\":%s}],\"atomic\":true}",
          "input", 200 },
        { "POST", "/v1/objects/t/k/m", "%s", NULL, 202 },
        { "PUT", "/v1/objects/t/other", "%s", NULL, 200 },
        { "PUT", "/v1/schedules/s", "{\"every\":3600,\"call\":{\"type\":\"t\",\"input\":%s}}",
          "call.input", 201 },
    };
    struct web w;
    web_begin(&w, param);
    /* First those that are refused, which must store nothing. */
    for (int over = 1; over >= 0; over--)
        /* mem: has no schedules, so its last case is only the refusal. */
        for (size_t i = 0; i < COUNT_OF(cases) - (!over && fixture_is_mem(param)); i++) {
            const char *value = nested(JSON_DEPTH_MAX + over), *at = strchr(cases[i].body, '%');
            struct web_answer a = web_ask(
                &w, cases[i].method, cases[i].path,
                web_text("%.*s%s%s", (int)(at - cases[i].body), cases[i].body, value, at + 2));
            if (over) {
                refused(&w, a, 400, cases[i].field);
                HAS_STR(AT(a, "error.message"), "is nested deeper than 512 levels");
            } else {
                EQ_INT(a.status, cases[i].status);
            }
        }
    web_end(&w);
}

TEST(nesting_of_a_result_and_a_state)
{
    struct web w;
    web_begin(&w, param);
    EQ_INT(POST(&w, "/v1/calls", "{\"id\":\"a\",\"type\":\"t\",\"key\":\"k\"}").status, 202);
    struct web_answer a = POST(&w, "/v1/work/claim", "{}");
    EQ_STR(AT(a, "calls.0.id"), "a");
    const char *lease = AT(a, "lease");
    for (int over = 1; over >= 0; over--) {
        a = POST(
            &w, "/v1/work/finish",
            web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"a\",\"result\":%s,\"state\":%s}]}",
                     lease, nested(JSON_DEPTH_MAX), nested(JSON_DEPTH_MAX + over)));
        EQ_INT(a.status, over ? 400 : 200);
        if (over)
            HAS_STR(AT(a, "error.message"), "state\": is nested deeper than 512 levels");
        else
            EQ_STR(AT(a, "results.0.status"), "completed");
    }
    EQ_INT(strlen(AT(GET(&w, "/v1/calls/a"), "result")), 2 * JSON_DEPTH_MAX);
    EQ_INT(strlen(AT(GET(&w, "/v1/objects/t/k"), "state")), 2 * JSON_DEPTH_MAX);
    web_end(&w);
}

TEST(inputs_at_the_edge)
{
    struct web w;
    web_begin(&w, param);
    char *text = web_text("%*s", INPUT_LEN_MAX - 2, "x");
    struct web_answer a =
        POST(&w, "/v1/calls", web_text("{\"type\":\"t\",\"input\":\" %s\"}", text));
    refused(&w, a, 413, "input");
    EQ_STR(AT(a, "error.code"), "TOO_LARGE");
    a = POST(&w, "/v1/calls", web_text("{\"type\":\"t\",\"input\":\"%s%s\"}", text, text));
    refused(&w, a, 413, NULL);
    a = POST(&w, "/v1/calls", web_text("{\"type\":\"t\",\"input\":\"%s\"}", text));
    EQ_INT(a.status, 202);
    EQ_INT(strlen(AT(a, "input")), INPUT_LEN_MAX - 2);
    web_end(&w);
}

TEST(queries)
{
    static const struct {
        const char *path, *field;
    } bad[] = {
        { "/v1/calls?limit=0", "limit" },
        { "/v1/calls?limit=1001", "limit" },
        { "/v1/calls?limit=x", "limit" },
        { "/v1/calls?limit=", "limit" },
        { "/v1/calls?limit=5&limit=5", "limit" },
        { "/v1/calls?colour=1", "colour" },
        { "/v1/calls?Limit=1", "Limit" },
        { "/v1/calls?status=done", "status" },
        { "/v1/calls?cursor=zzz", "cursor" },
        { "/v1/calls?tag=x", "tag" },
        { "/v1/calls?tag=:x", "tag" },
        { "/v1/calls?since=yesterday", "since" },
        { "/v1/calls?include=error", "include" },
        { "/v1/calls?queue=", "queue" },
        { "/v1/calls?queue=%00", "queue" },
        { "/v1/calls?queue=%zz", "queue" },
        { "/v1/calls?queue=%f", "queue" },
        { "/v1/calls?queue=%ff", "queue" },
        { "/v1/calls/x?wait=-1", "wait" },
        { "/v1/calls/x?wait=301", "wait" },
        { "/v1/calls/x?wait=nan", "wait" },
        { "/v1/calls/x?wait=soon", "wait" },
        { "/v1/calls/x?wait", "wait" },
        { "/v1/calls/x/attempts?wait=1", "wait" },
        { "/v1/calls/%ff", "id" },
        { "/v1/calls/%2e%2e", "id" },
        { "/v1/calls/%0a", "id" },
        { "/v1/calls/%", "id" },
    };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct web_answer a = GET(&w, bad[i].path);
        if (a.status != 400 || strcmp(AT(a, "error.field"), bad[i].field))
            FAIL("%s: %d %.*s", bad[i].path, a.status, BYTES_ARG(a.body));
    }
    EQ_INT(GET(&w, "/v1/calls?").status, 200);
    EQ_INT(GET(&w, "/v1/calls?limit=1&").status, 200);
    web_end(&w);
}

/* An error message quotes the wrong value and says what would be right. */
TEST(errors_name_the_thing)
{
    static const struct {
        const char *method, *path, *body, *text;
    } rows[] = {
        { "GET", "/v1/calls/none%20such", NULL, "no call \"none such\"" },
        { "GET", "/v1/calls/x/result", NULL, "no call \"x\"" },
        { "GET", "/v1/calls/x/attempts", NULL, "no call \"x\"" },
        { "POST", "/v1/calls/x/cancel", NULL, "no call \"x\"" },
        { "POST", "/v1/calls/x/retry", NULL, "no call \"x\"" },
        { "GET", "/v1/objects/T/k", NULL, "no object \"T\" \"k\"" },
        { "POST", "/v1/nodes/x/drain", NULL, "no node \"x\"" },
        { "GET", "/v1/nothing", NULL, "no route /v1/nothing; /openapi.json lists them" },
        { "DELETE", "/v1/calls/x", NULL, "/v1/calls/x does not take DELETE; it takes GET, HEAD" },
        { "GET", "/v1/calls?status=zzz", NULL,
          "status \"zzz\" is unknown; expected pending, processing, completed, failed, "
          "dead_letter, cancelled or expired" },
        { "GET", "/v1/calls?include=error", NULL,
          "include \"error\" is unknown; expected input or result" },
        { "GET", "/v1/calls?limit=x%22", NULL, "field \"limit\": is \"x?\", not a whole number" },
        { "GET", "/v1/calls?colour=1", NULL,
          "field \"colour\": is no query parameter of this path; it takes status, queue" },
        { "GET", "/v1/calls?cursor=zzz", NULL,
          "field \"cursor\": is \"zzz\", not the `next` of an earlier answer" },
        { "GET", "/v1/calls/x?archived=true&wait=5", NULL,
          "field \"wait\": cannot be combined with archived: a call in the archive has ended" },
        { "GET", "/v1/calls?tag=x", NULL, "field \"tag\": is \"x\", not NAME:VALUE" },
        { "GET", "/v1/keys?blocked=yes", NULL, "field \"blocked\": is \"yes\", not true or false" },
        { "POST", "/v1/calls/retry", "{\"status\":\"zzz\"}",
          "status \"zzz\" is unknown; expected failed, dead_letter, cancelled or expired" },
        { "POST", "/v1/calls/cancel", "{\"status\":\"failed\"}",
          "field \"status\": calls that are failed cannot be cancelled; expected pending or "
          "processing" },
        { "POST", "/v1/calls/retry", "{\"status\":\"pending\"}",
          "field \"status\": calls that are pending cannot be retried; expected failed, "
          "dead_letter, cancelled or expired" },
        { "POST", "/v1/calls", "{\"type\":7}", "field \"type\": is 7, not a string" },
        { "POST", "/v1/calls", "{\"typ\":\"t\"}",
          "field \"typ\": is unknown; expected id, type, method" },
        { "POST", "/v1/calls", "{\"type\":\"t\",\"on_dead\":\"stop\"}",
          "on_dead \"stop\" is unknown; expected skip or block" },
        { "POST", "/v1/calls", "{\"type\":\"t\",\"tags\":{\"a\":1}}",
          "field \"tags\": \"a\" is 1, not a string" },
        { "POST", "/v1/calls", "[1]", "a call must be a JSON object, it is [1]" },
        { "POST", "/v1/keys/k/unblock", "{\"action\":\"go\"}",
          "action \"go\" is unknown; expected skip or retry" },
        { "POST", "/v1/work/claim", "{\"queues\":[\"a\",5]}",
          "field \"queues\": name 2, 5, is not a string" },
        { "POST", "/v1/work/extend", "{\"lease\":\"x\"}",
          "lease \"x\" is malformed; expected the 32 hex digits a claim gave" },
        { "POST", "/v1/work/extend", "{\"lease\":5}",
          "lease \"5\" is malformed; expected the 32 hex digits a claim gave" },
        { "POST", "/v1/work/finish", "{\"lease\":null,\"results\":[{\"id\":\"x\",\"result\":1}]}",
          "lease \"null\" is malformed; expected the 32 hex digits a claim gave" },
        { "POST", "/v1/work/extend", "{\"lease\":12345678901234567890123456789012}",
          "lease \"123456789012345678901234\" is malformed; expected the 32 hex digits" },
        { "POST", "/v1/work/extend", "{\"lease\":\"0123456789abcdef0123456789abcdef\"}",
          "lease \"0123456789abcdef0123456789abcdef\" is over, or was never given" },
        { "POST", "/v1/work/finish",
          "{\"lease\":\"0123456789abcdef0123456789abcdef\",\"results\":[{\"id\":\"c\",\"result\":"
          "1}]}",
          "lease \"0123456789abcdef0123456789abcdef\" does not hold call \"c\"" },
    };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct web_answer a = web_ask(&w, rows[i].method, rows[i].path, rows[i].body);
        GE_INT(a.status, 400);
        const char *got = AT(a, "error.message");
        if (!got || strncmp(got, rows[i].text, strlen(rows[i].text)))
            FAIL("%s %s: \"%s\", not \"%s\"", rows[i].method, rows[i].path, got, rows[i].text);
    }
    EQ_STR(AT(GET(&w, "/v1/calls?status=zzz"), "error.field"), "status");
    web_end(&w);
}

TEST(paths_and_methods)
{
    struct web w;
    web_begin(&w, param);
    static const char *const none[] = {
        "/v1",       "/v1/",          "/v1/calls/",          "/v1/call",
        "/v2/calls", "/v1/calls/a/b", "/v1/calls/a/cancel/", "//v1/calls"
    };
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        struct web_answer a = GET(&w, none[i]);
        if (a.status != 404 || strcmp(AT(a, "error.code"), "NOT_FOUND"))
            FAIL("%s: %d", none[i], a.status);
    }
    struct web_answer a = web_ask(&w, "DELETE", "/v1/calls/x", NULL);
    EQ_INT(a.status, 405);
    EQ_STR(AT(a, "error.code"), "METHOD");
    HAS_STR(a.head.data, "\r\nAllow: GET, HEAD, PATCH\r\n");
    a = web_ask(&w, "PUT", "/v1/calls", "{}");
    EQ_INT(a.status, 405);
    HAS_STR(a.head.data, "\r\nAllow: POST, GET, HEAD\r\n");
    EQ_INT(web_ask(&w, "OPTIONS", "/v1/calls", NULL).status, 405);
    web_end(&w);
}

TEST(content_types)
{
    static const struct {
        const char *type;
        int status;
    } types[] = {
        { "application/json", 202 },
        { "Application/JSON; charset=utf-8", 202 },
        { "application/vnd.pawl+json", 202 },
        { "application/x-www-form-urlencoded", 202 },
        { "text/plain", 415 },
        { "multipart/form-data; boundary=x", 415 },
        { "application/xml", 415 },
    };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        w.more = web_text("Content-Type: %s\r\n", types[i].type);
        struct web_answer a = POST(&w, "/v1/calls", "{\"type\":\"a\"}");
        EQ_INT(a.status, types[i].status);
        if (a.status == 415)
            EQ_STR(AT(a, "error.code"), "MEDIA");
    }
    w.more = "Content-Encoding: gzip\r\n";
    struct web_answer a = POST(&w, "/v1/calls", "\x1f\x8b");
    EQ_INT(a.status, 415);
    HAS_STR(AT(a, "error.message"), "gzip");
    w.more = "Content-Encoding: gzip\r\nContent-Type: application/x-ndjson\r\n";
    EQ_INT(POST(&w, "/v1/calls/batch", "\x1f\x8b").status, 415);
    w.more = "Content-Encoding: identity\r\n";
    EQ_INT(POST(&w, "/v1/calls", "{\"type\":\"a\"}").status, 202);
    web_end(&w);
}

TEST(a_refusal_leaves_the_connection_usable)
{
    struct web w;
    web_begin(&w, param);
    int fd = web_connect(&w);
    for (int i = 0; i < 5; i++) {
        web_send(&w, fd, "POST", "/v1/calls?wait=1", "{\"type\":}");
        EQ_INT(web_take(fd).status, 400);
        web_send(&w, fd, "GET", "/v1/calls/none", NULL);
        EQ_INT(web_take(fd).status, 404);
    }
    web_send(&w, fd, "POST", "/v1/calls", "{\"type\":\"a\"}");
    EQ_INT(web_take(fd).status, 202);
    close(fd);
    web_end(&w);
}
