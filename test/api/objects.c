/*
 * objects.c - objects over HTTP: calling methods, and reading, writing and deleting states from
 * outside a call, with versions, waits for running calls, and clients that disconnect.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/ident.h"
#include "base/limits.h"
#include "base/log.h"
#include "web.h"

RUNS_ON(ENGINES_ALL)

static struct web_answer put(struct web *w, const char *path, const char *match, const char *state)
{
    w->more = match ? web_text("If-Match: %s\r\n", match) : NULL;
    struct web_answer a = web_ask(w, "PUT", path, state);
    w->more = NULL;
    return a;
}

static struct web_answer remove_object(struct web *w, const char *path, const char *match)
{
    w->more = match ? web_text("If-Match: %s\r\n", match) : NULL;
    struct web_answer a = web_ask(w, "DELETE", path, NULL);
    w->more = NULL;
    return a;
}

static void refused(struct web_answer a, int status, const char *code)
{
    if (a.status != status)
        FAIL("%d, not %d: %.*s", a.status, status, BYTES_ARG(a.body));
    EQ_STR(AT(a, "error.code"), code);
}

/* Claims a call of the key. Returns its lease. */
static const char *hold(struct web *w, const char *type, const char *key)
{
    EQ_INT(POST(w, "/v1/calls",
                web_text("{\"id\":\"held\",\"type\":\"%s\",\"key\":\"%s\"}", type, key))
               .status,
           202);
    struct web_answer a =
        POST(w, "/v1/work/claim", web_text("{\"types\":[\"%s\"],\"lease_for\":300}", type));
    EQ_STR(AT(a, "calls.0.id"), "held");
    return AT(a, "lease");
}

static void let_go(struct web *w, const char *lease)
{
    struct web_answer a =
        POST(w, "/v1/work/finish",
             web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"held\",\"result\":1}]}", lease));
    EQ_INT(a.status, 200);
}

/* Requests that have no answer yet, without the one that asks. */
static int open_requests(struct web *w)
{
    struct web_answer a = GET(w, "/metrics");
    const char *at = strstr(a.body.data, "\npawl_requests_open ");
    TRUE(at);
    return (int)strtol(at + 20, NULL, 10) - 1;
}

/* ---- Methods --------------------------------------------------------------------------------- */

TEST(a_method_is_a_keyed_call)
{
    struct web w;
    struct pawl *p = fixture_open(param);
    fixture_on(p, "echo", fixture_echo);
    fixture_start(p, 2);
    web_begin_as(&w, p, NULL);
    struct web_answer a = POST(&w, "/v1/objects/echo/k%201/run", " {\"n\": 1.50} ");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "status"), "completed");
    EQ_STR(AT(a, "result"), "{\"n\": 1.50}");
    EQ_STR(AT(a, "type"), "echo");
    EQ_STR(AT(a, "method"), "run");
    EQ_STR(AT(a, "key"), "k 1");
    EQ_STR(AT(a, "key_no"), "1");
    EQ_STR(AT(a, "position"), "null");
    EQ_STR(AT(a, "max_attempts"), "1");
    HAS_STR(a.head.data, web_text("Location: /v1/calls/%s\r\n", AT(a, "id")));
    a = POST(&w, "/v1/objects/echo/k%201/run", NULL);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "result"), "null");
    EQ_STR(AT(a, "key_no"), "2");
    w.more = "Idempotency-Key: \"one\"\r\n";
    a = POST(&w, "/v1/objects/echo/k/run", "7");
    EQ_STR(AT(a, "id"), "one");
    EQ_STR(AT(a, "duplicate"), "false");
    a = POST(&w, "/v1/objects/echo/k/run", "7");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "duplicate"), "true");
    refused(POST(&w, "/v1/objects/echo/k/run", "8"), 409, "CONFLICT");
    refused(POST(&w, "/v1/objects/echo/other/run", "7"), 409, "CONFLICT");
    w.more = NULL;
    web_end(&w);
}

TEST(a_method_is_tried_once)
{
    struct web w;
    struct pawl *p = fixture_open(param);
    fixture_on(p, "fails", fixture_fails);
    fixture_start(p, 1);
    web_begin_as(&w, p, NULL);
    struct web_answer a = POST(&w, "/v1/objects/fails/k/run", "1");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "status"), "failed");
    EQ_STR(AT(a, "attempts"), "1");
    web_end(&w);
}

TEST(a_method_nobody_serves)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = POST(&w, "/v1/objects/t/k/m?wait=0.05", "1");
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "status"), "pending");
    EQ_STR(AT(a, "position"), "1");
    EQ_STR(AT(a, "key_no"), "null");
    EQ_STR(AT(a, "waiting_for"), "worker");
    a = POST(&w, "/v1/objects/t/k/m?wait=0", "2");
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "position"), "2");
    EQ_STR(AT(a, "waiting_for"), "key");
    EQ_STR(AT(GET(&w, "/v1/calls?key=k"), "calls.0.position"), "2");
    web_end(&w);
}

TEST(methods_are_read_strictly)
{
    static const struct {
        const char *path, *body, *more;
        int status;
        const char *field;
    } bad[] = {
        { "/v1/objects/t/k/m", "{", NULL, 400, "null" },
        { "/v1/objects/t/k/m", "1 2", NULL, 400, "null" },
        { "/v1/objects/t/k/m?wait=301", "1", NULL, 400, "wait" },
        { "/v1/objects/t/k/m?what=1", "1", NULL, 400, "what" },
        { "/v1/objects/%00/k/m", "1", NULL, 400, "type" },
        { "/v1/objects/t/../m", "1", NULL, 400, "key" },
        { "/v1/objects/t/k/%ff", "1", NULL, 400, "method" },
        { "/v1/objects/t/k/m", "1", "Content-Type: text/plain\r\n", 415, "null" },
        { "/v1/objects/t/k/m", "1", "Idempotency-Key: \"x\r\n", 400, "Idempotency-Key" },
    };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        w.more = bad[i].more;
        struct web_answer a = POST(&w, bad[i].path, bad[i].body);
        if (a.status != bad[i].status)
            FAIL("%s: %d: %.*s", bad[i].path, a.status, BYTES_ARG(a.body));
        EQ_STR(AT(a, "error.field"), bad[i].field);
    }
    w.more = NULL;
    char *name = calloc(1, 257);
    memset(name, 'n', 256);
    EQ_INT(POST(&w, web_text("/v1/objects/t/%s/m", name), "1").status, 400);
    EQ_INT(web_ask(&w, "GET", web_text("/v1/objects/%s/k", name), NULL).status, 400);
    EQ_INT(put(&w, web_text("/v1/objects/t/%s", name), NULL, "1").status, 400);
    EQ_INT(POST(&w, web_text("/v1/objects/t/%s/m?wait=0", name + 1), "1").status, 202);
    free(name);
    refused(web_ask(&w, "PUT", "/v1/objects/t/k/m", "1"), 405, "METHOD");
    EQ_STR(AT(GET(&w, "/v1/calls?key=k"), "calls"), "[]");
    web_end(&w);
}

/* ---- States ---------------------------------------------------------------------------------- */

TEST(a_state_comes_back_byte_for_byte)
{
    struct web w;
    web_begin(&w, param);
    refused(GET(&w, "/v1/objects/T/k"), 404, "NOT_FOUND");
    struct web_answer a = put(&w, "/v1/objects/T/k", NULL, " {\"b\": 1.10,\"a\":[ ]}\n");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "type"), "T");
    EQ_STR(AT(a, "key"), "k");
    EQ_STR(AT(a, "state"), "{\"b\": 1.10,\"a\":[ ]}");
    EQ_STR(AT(a, "state_base64"), "null");
    EQ_STR(AT(a, "pending"), "0");
    EQ_INT(strlen(AT(a, "updated_at")), 27);
    HAS_STR(a.head.data, web_text("ETag: \"%s\"\r\n", AT(a, "version")));
    struct web_answer got = GET(&w, "/v1/objects/T/k");
    EQ_INT(got.status, 200);
    EQ_STR(web_text("%.*s", BYTES_ARG(got.body)), web_text("%.*s", BYTES_ARG(a.body)));
    HAS_STR(got.head.data, web_text("ETag: \"%s\"\r\n", AT(a, "version")));
    /* The state belongs to type and key: another type with the same key has none. */
    refused(GET(&w, "/v1/objects/U/k"), 404, "NOT_FOUND");
    a = put(&w, "/v1/objects/T/k", NULL, "null");
    EQ_STR(AT(a, "state"), "null");
    GT_INT(web_int(a, "version"), web_int(got, "version"));
    web_end(&w);
}

TEST(a_version_that_must_hold)
{
    struct web w;
    web_begin(&w, param);
    refused(put(&w, "/v1/objects/T/k", "\"1\"", "1"), 412, "STALE");
    refused(GET(&w, "/v1/objects/T/k"), 404, "NOT_FOUND");
    const char *first = AT(put(&w, "/v1/objects/T/k", NULL, "1"), "version");
    struct web_answer a = put(&w, "/v1/objects/T/k", web_text("\"%s\"", first), "2");
    EQ_INT(a.status, 200);
    const char *second = AT(a, "version");
    refused(put(&w, "/v1/objects/T/k", web_text("\"%s\"", first), "3"), 412, "STALE");
    EQ_STR(AT(GET(&w, "/v1/objects/T/k"), "state"), "2");
    refused(remove_object(&w, "/v1/objects/T/k", web_text("\"%s\"", first)), 412, "STALE");
    EQ_INT(remove_object(&w, "/v1/objects/T/k", web_text("\"%s\"", second)).status, 200);
    refused(GET(&w, "/v1/objects/T/k"), 404, "NOT_FOUND");
    refused(remove_object(&w, "/v1/objects/T/k", web_text("\"%s\"", second)), 412, "STALE");
    refused(remove_object(&w, "/v1/objects/T/k", NULL), 404, "NOT_FOUND");
    /* A version is never reused. */
    GT_INT(web_int(put(&w, "/v1/objects/T/k", NULL, "1"), "version"), strtol(second, NULL, 10));
    web_end(&w);
}

TEST(states_are_read_strictly)
{
    static const struct {
        const char *path, *body, *more;
        int status;
        const char *field;
    } bad[] = {
        { "/v1/objects/T/k", "", NULL, 400, "null" },
        { "/v1/objects/T/k", "{\"a\":}", NULL, 400, "null" },
        { "/v1/objects/T/k", "nul", NULL, 400, "null" },
        { "/v1/objects/T/k", "1", "Content-Type: application/octet-stream\r\n", 415, "null" },
        { "/v1/objects/T/k?wait=-1", "1", NULL, 400, "wait" },
        { "/v1/objects/T/k?cancel=true", "1", NULL, 400, "cancel" },
        { "/v1/objects/T/k", "1", "If-Match: 1\r\n", 400, "If-Match" },
        { "/v1/objects/T/k", "1", "If-Match: \r\n", 400, "If-Match" },
        { "/v1/objects/T/k", "1", "If-Match: \"1\r\n", 400, "If-Match" },
        { "/v1/objects/T/k", "1", "If-Match: \"1 2\"\r\n", 400, "If-Match" },
        { "/v1/objects/T/k", "1", "If-Match: \"1\" \"2\"\r\n", 400, "If-Match" },
        { "/v1/objects/T/k", "1", "If-Match: w/\"1\"\r\n", 400, "If-Match" },
        { "/v1/objects/T/k", "1", "If-Match: *, \"1\"\r\n", 400, "If-Match" },
        { "/v1/objects/T/k", "1", "If-Match: *\r\nIf-Match: \"1\"\r\n", 400, "If-Match" },
        { "/v1/objects/T/k", "1", "If-None-Match: *\r\n", 400, "If-None-Match" },
    };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        w.more = bad[i].more;
        struct web_answer a = web_ask(&w, "PUT", bad[i].path, bad[i].body);
        if (a.status != bad[i].status)
            FAIL("%zu %s: %d: %.*s", i, bad[i].path, a.status, BYTES_ARG(a.body));
        EQ_STR(AT(a, "error.field"), bad[i].field);
    }
    w.more = NULL;
    refused(web_ask(&w, "DELETE", "/v1/objects/T/k", "{\"x\":1}"), 400, "INVALID");
    refused(web_ask(&w, "DELETE", "/v1/objects/T/k?cancel=yes", NULL), 400, "INVALID");
    refused(GET(&w, "/v1/objects/T/k?wait=1"), 400, "INVALID");
    refused(GET(&w, "/v1/objects/T/k"), 404, "NOT_FOUND");
    web_end(&w);
}

/* RFC 9110: any of the listed tags matches, weak ones never, and * matches any existing state. */
TEST(if_match_takes_every_form_of_a_tag)
{
    static const char *const never[] = { "\"\"",     "\"0\"",          "\"-1\"",
                                         "\"x\"",    "\"01\"",         "\"99999999999999999999\"",
                                         "W/\"%s\"", "\"x\", W/\"%s\"" };
    struct web w;
    web_begin(&w, param);
    refused(put(&w, "/v1/objects/T/k", "*", "1"), 412, "STALE");
    struct web_answer a = put(&w, "/v1/objects/T/k", NULL, "1");
    const char *version = AT(a, "version");
    for (size_t i = 0; i < COUNT_OF(never); i++) {
        const char *at = strstr(never[i], "%s");
        const char *tag =
            at ? web_text("%.*s%s%s", (int)(at - never[i]), never[i], version, at + 2) : never[i];
        refused(put(&w, "/v1/objects/T/k", tag, "2"), 412, "STALE");
        a = remove_object(&w, "/v1/objects/T/k", tag);
        refused(a, 412, "STALE");
        HAS_STR(AT(a, "error.message"), web_text("has version %s", version));
    }
    a = put(&w, "/v1/objects/T/k", web_text("\"x\" ,, W/\"1\",\"%s\"", version), "2");
    EQ_INT(a.status, 200);
    refused(put(&w, "/v1/objects/T/k", web_text("\"%s\", \"x\"", version), "3"), 412, "STALE");
    a = put(&w, "/v1/objects/T/k",
            web_text("\"x\"\r\nIf-Match: \"%s\", \"%s\"", version, AT(a, "version")), "3");
    EQ_INT(a.status, 200);
    EQ_INT(put(&w, "/v1/objects/T/k", "*", "4").status, 200);
    EQ_STR(AT(GET(&w, "/v1/objects/T/k"), "state"), "4");
    EQ_INT(remove_object(&w, "/v1/objects/T/k", "*").status, 200);
    refused(remove_object(&w, "/v1/objects/T/k", "*"), 412, "STALE");
    web_end(&w);
}

TEST(a_state_over_its_limit)
{
    struct web w;
    web_begin(&w, param);
    char *text = malloc(STATE_LEN_MAX + 2);
    memset(text, 'x', STATE_LEN_MAX + 1);
    text[0] = text[STATE_LEN_MAX] = '"';
    text[STATE_LEN_MAX + 1] = 0;
    refused(put(&w, "/v1/objects/T/k", NULL, text), 413, "TOO_LARGE");
    refused(GET(&w, "/v1/objects/T/k"), 404, "NOT_FOUND");
    text[1] = '"';
    EQ_INT(put(&w, "/v1/objects/T/k", NULL, text + 1).status, 200);
    free(text);
    web_end(&w);
}

TEST(states_of_bytes_are_shown_as_base64)
{
    struct web w;
    web_begin(&w, param);
    const char *lease = hold(&w, "T", "k");
    EQ_INT(POST(&w, "/v1/work/finish",
                web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"held\",\"result\":1,"
                         "\"state_base64\":\"/wA=\"}]}",
                         lease))
               .status,
           200);
    struct web_answer a = GET(&w, "/v1/objects/T/k");
    EQ_STR(AT(a, "state"), "null");
    EQ_STR(AT(a, "state_base64"), "/wA=");
    web_end(&w);
}

TEST(deleting_minds_calls_that_wait)
{
    struct web w;
    web_begin(&w, param);
    put(&w, "/v1/objects/T/k", NULL, "1");
    for (int i = 0; i < 3; i++)
        EQ_INT(POST(&w, "/v1/calls", web_text("{\"id\":\"c%d\",\"type\":\"T\",\"key\":\"k\"}", i))
                   .status,
               202);
    EQ_STR(AT(GET(&w, "/v1/objects/T/k"), "pending"), "3");
    EQ_STR(AT(put(&w, "/v1/objects/T/k", NULL, "2"), "pending"), "3");
    struct web_answer a = remove_object(&w, "/v1/objects/T/k", NULL);
    refused(a, 409, "STATE");
    refused(remove_object(&w, "/v1/objects/T/k?cancel=false", NULL), 409, "STATE");
    EQ_STR(AT(GET(&w, "/v1/objects/T/k"), "state"), "2");
    int fd = web_connect(&w);
    web_send(&w, fd, "GET", "/v1/calls/c2?wait=30", NULL);
    a = remove_object(&w, "/v1/objects/T/k?cancel=true", NULL);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "type"), "T");
    EQ_STR(AT(a, "key"), "k");
    EQ_STR(AT(a, "cancelled"), "3");
    EQ_STR(AT(web_take(fd), "status"), "cancelled"); /* the waiting request is told */
    close(fd);
    EQ_STR(AT(GET(&w, "/v1/calls/c0"), "status"), "cancelled");
    refused(GET(&w, "/v1/objects/T/k"), 404, "NOT_FOUND");
    web_end(&w);
}

/* ---- Waiting for running calls --------------------------------------------------------------- */

TEST(a_write_waits_for_its_turn)
{
    struct web w;
    web_begin(&w, param);
    const char *lease = hold(&w, "T", "k");
    struct web_answer a = put(&w, "/v1/objects/T/k?wait=0", NULL, "1");
    refused(a, 503, "BUSY");
    HAS_STR(a.head.data, "Retry-After: 1\r\n");
    int64_t began_us = fixture_mono();
    refused(put(&w, "/v1/objects/T/k?wait=0.2", NULL, "1"), 503, "BUSY");
    GE_INT(fixture_mono() - began_us, 200 * FIXTURE_MS);
    refused(remove_object(&w, "/v1/objects/T/k?wait=0.01", NULL), 503, "BUSY");
    /* The order belongs to the key alone: a call of another type with the same key waits too. */
    refused(put(&w, "/v1/objects/U/k?wait=0", NULL, "1"), 503, "BUSY");
    EQ_INT(put(&w, "/v1/objects/T/other?wait=0", NULL, "1").status, 200);
    int fd = web_connect(&w);
    web_send(&w, fd, "PUT", "/v1/objects/T/k?wait=60", "\"mine\"");
    UNTIL(open_requests(&w) == 1);
    let_go(&w, lease);
    a = web_take(fd);
    close(fd);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "state"), "mine");
    web_end(&w);
}

TEST(who_leaves_writes_nothing)
{
    struct web w;
    web_begin(&w, param);
    const char *lease = hold(&w, "T", "k");
    int fd = web_connect(&w);
    web_send(&w, fd, "PUT", "/v1/objects/T/k?wait=300", "1");
    UNTIL(open_requests(&w) == 1);
    close(fd);
    UNTIL(open_requests(&w) == 0);
    let_go(&w, lease);
    refused(GET(&w, "/v1/objects/T/k"), 404, "NOT_FOUND");
    web_end(&w);
}

TEST(who_waits_is_answered_when_the_server_stops)
{
    struct web w;
    web_begin(&w, param);
    hold(&w, "T", "k");
    int fd = web_connect(&w);
    web_send(&w, fd, "PUT", "/v1/objects/T/k?wait=300", "1");
    UNTIL(open_requests(&w) == 1);
    web_stop(&w);
    refused(web_take(fd), 503, "BUSY");
    close(fd);
    web_end(&w);
}

/* ---- Permissions ----------------------------------------------------------------------------- */

static const char *line(const char *who, const char *token, const char *queues)
{
    unsigned char d[32];
    char hex[65] = { 0 };
    TRUE(digest_plain(bytes_of(token), d));
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", d[i]);
    return web_text("%s:%s%s", who, hex, queues);
}

static char audited[512];
static void on_audit(const struct log_record *r, void *ctx)
{
    (void)ctx;
    struct buf b;
    buf_init(&b, sizeof audited - 1);
    log_text_add(&b, r);
    TRUE(buf_ok(&b));
    snprintf(audited, sizeof audited, "%.*s", BYTES_ARG(buf_bytes(&b)));
    buf_release(&b);
}

TEST(roles)
{
    const char *tokens[] = { line("app:app", "ta", ""), line("some:app", "ts", ":mail"),
                             line("mon:monitor", "tm", ""), line("root:admin", "tr", "") };
    struct web w;
    web_begin_as(&w, fixture_open(param),
                 &(struct api_conf){ .tokens = tokens, .n_tokens = 4, .audit = on_audit });
    static const struct {
        const char *token;
        int call, get, put, delete, cancel;
    } rows[] = {
        { "ta", 202, 200, 200, 409, 403 },
        { "ts", 202, 403, 403, 403, 403 },
        { "tm", 403, 200, 403, 403, 403 },
        { "tr", 202, 200, 200, 409, 200 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *path = "/v1/objects/T/k";
        w.token = "tr";
        EQ_INT(put(&w, path, NULL, "\"secret\"").status, 200);
        HAS_STR(audited, "method=\"PUT\" path=\"/v1/objects/T/k\" status=200");
        w.token = rows[i].token;
        EQ_INT(POST(&w, "/v1/objects/T/k/m?wait=0", "1").status, rows[i].call);
        struct web_answer a = GET(&w, path);
        EQ_INT(a.status, rows[i].get);
        if (a.status == 200)
            EQ_STR(AT(a, "state"), strcmp(w.token, "tm") ? "secret" : "null");
        EQ_INT(put(&w, path, NULL, "1").status, rows[i].put);
        EQ_INT(remove_object(&w, path, NULL).status, rows[i].delete);
        EQ_INT(remove_object(&w, web_text("%s?cancel=true", path), NULL).status, rows[i].cancel);
    }
    HAS_STR(audited, "method=\"DELETE\" path=\"/v1/objects/T/k\" status=200");
    w.token = NULL;
    EQ_INT(GET(&w, "/v1/objects/T/k").status, 401);
    web_end(&w);
}
