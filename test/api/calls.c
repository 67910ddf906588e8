/*
 * calls.c - calls over HTTP: submit, wait, get, result, attempts, cancel, retry, move.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "exec/write_job.h"
#include "lib/lib.h"
#include "web.h"

RUNS_ON(ENGINES_ALL)

static int echo(struct pawl_call *c)
{
    return pawl_reply(c, pawl_input(c));
}

static int refuse(struct pawl_call *c)
{
    return pawl_refuse(c, "never \"again\"");
}

static int hold(struct pawl_call *c)
{
    while (!pawl_sleep(c, 10 * FIXTURE_SEC))
        ;
    return pawl_fail(c, "stopped");
}

/* A server with workers for echo.run, bad.run and hold.run. */
static void begin(struct web *w, const void *param)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "echo", echo);
    fixture_on(p, "bad", refuse);
    fixture_on(p, "hold", hold);
    fixture_start(p, 4);
    web_begin_as(w, p, NULL);
}

static const char *const fields[] = {
    "id",           "seq",          "type",         "method",
    "key",          "key_no",       "position",     "queue",
    "priority",     "status",       "waiting_for",  "cancel_requested",
    "input",        "input_base64", "result",       "result_base64",
    "error",        "attempts",     "lost",         "redrives",
    "max_attempts", "max_lost",     "timeout",      "node",
    "caller",       "client",       "parent",       "trace_id",
    "tags",         "needs",        "created_at",   "run_at",
    "claimed_at",   "started_at",   "finished_at",  "expires_at",
    "keep_until",   "schedule",     "scheduled_at", "duplicate",
};

static void has_every_field(struct web_answer a)
{
    const struct json *m = a.json->first;
    for (size_t i = 0; i < COUNT_OF(fields); i++, m = m->next) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", BYTES_ARG(m->name));
        EQ_STR(name, fields[i]);
    }
    EQ_PTR(m, NULL);
}

/* ---- Submit ---------------------------------------------------------------------------------- */

TEST(accepted_is_202_with_every_field)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a =
        POST(&w, "/v1/calls",
             "{\"id\":\"a/b c\",\"type\":\"mail\",\"method\":\"send\",\"input\":{\"n\": 9.990},"
             "\"priority\":-7,\"max_attempts\":9,\"max_lost\":4,\"timeout\":1.5,\"caller\":\"me\","
             "\"parent\":\"p\",\"queue\":\"q\",\"tags\":{\"b\":\"2\",\"a\":\"\"},\"traceparent\":"
             "\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"}");
    EQ_INT(a.status, 202);
    has_every_field(a);
    HAS_STR(a.head.data, "\r\nLocation: /v1/calls/a%2Fb%20c\r\n");
    EQ_STR(AT(a, "id"), "a/b c");
    EQ_STR(AT(a, "method"), "send");
    EQ_STR(AT(a, "queue"), "q");
    EQ_STR(AT(a, "priority"), "-7");
    EQ_STR(AT(a, "status"), "pending");
    EQ_STR(AT(a, "waiting_for"), "worker");
    EQ_STR(AT(a, "input"), "{\"n\": 9.990}");
    EQ_STR(AT(a, "input_base64"), "null");
    EQ_STR(AT(a, "result"), "null");
    EQ_STR(AT(a, "max_attempts"), "9");
    EQ_STR(AT(a, "max_lost"), "4");
    EQ_STR(AT(a, "timeout"), "1.5");
    EQ_STR(AT(a, "caller"), "me");
    EQ_STR(AT(a, "parent"), "p");
    EQ_STR(AT(a, "client"), "null");
    EQ_STR(AT(a, "trace_id"), "0af7651916cd43dd8448eb211c80319c");
    EQ_STR(AT(a, "tags"), "{\"b\":\"2\",\"a\":\"\"}");
    EQ_INT(strlen(AT(a, "created_at")), 27);
    EQ_STR(AT(a, "finished_at"), "null");
    EQ_STR(AT(a, "duplicate"), "false");
    struct web_answer b = GET(&w, "/v1/calls/a%2Fb%20c");
    EQ_INT(b.status, 200);
    has_every_field(b);
    EQ_STR(AT(b, "input"), "{\"n\": 9.990}");
    EQ_STR(AT(b, "created_at"), AT(a, "created_at"));
    EQ_STR(AT(b, "tags"), "{\"b\":\"2\",\"a\":\"\"}");
    web_end(&w);
}

TEST(defaults_and_a_made_id)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = POST(&w, "/v1/calls", "{\"type\":\"mail\"}");
    EQ_INT(a.status, 202);
    EQ_INT(strlen(AT(a, "id")), 36);
    EQ_STR(AT(a, "method"), "run");
    EQ_STR(AT(a, "queue"), "default");
    EQ_STR(AT(a, "input"), "null");
    EQ_STR(AT(a, "timeout"), "60");
    EQ_STR(AT(a, "tags"), "{}");
    EQ_INT(GET(&w, web_text("/v1/calls/%s", AT(a, "id"))).status, 200);
    web_end(&w);
}

TEST(nulls_that_mean_nothing)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = POST(
        &w, "/v1/calls",
        "{\"id\":\"t\",\"type\":\"Wallet\",\"method\":\"add\",\"key\":null,\"input\":5,\"queue\":"
        "\"default\",\"priority\":0,\"delay\":0,\"run_at\":null,\"max_attempts\":3,\"max_lost\":5,"
        "\"backoff\":{\"base\":1,\"factor\":2,\"max\":300,\"jitter\":0.1},\"timeout\":60,"
        "\"expires_in\":null,\"expires_at\":null,\"keep\":null,\"caller\":null,\"parent\":null,"
        "\"traceparent\":null,\"tags\":{},\"on_dead\":\"skip\"}");
    EQ_INT(a.status, 202);
    web_end(&w);
}

TEST(waits_for_the_result)
{
    struct web w;
    begin(&w, param);
    struct web_answer a = POST(&w, "/v1/calls?wait=10",
                               "{\"type\":\"echo\",\"input\":[1e400, 18446744073709551616]}");
    EQ_INT(a.status, 200);
    has_every_field(a);
    EQ_STR(AT(a, "status"), "completed");
    EQ_STR(AT(a, "result"), "[1e400, 18446744073709551616]");
    EQ_STR(AT(a, "input"), "[1e400, 18446744073709551616]");
    EQ_STR(AT(a, "duplicate"), "false");
    EQ_INT(strlen(AT(a, "finished_at")), 27);
    EQ_INT(strlen(AT(a, "keep_until")), 27);
    EQ_STR(AT(a, "node"), "fixture");
    a = POST(&w, "/v1/calls?wait=10", "{\"type\":\"bad\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "status"), "failed");
    EQ_STR(AT(a, "error"), "never \"again\"");
    web_end(&w);
}

TEST(prefer_wait_does_the_same)
{
    struct web w;
    begin(&w, param);
    w.more = "Prefer: respond-async, wait=10\r\n";
    struct web_answer a = POST(&w, "/v1/calls", "{\"type\":\"echo\",\"input\":\"x\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "result"), "x");
    web_end(&w);
}

TEST(wait_that_is_over_says_how_it_is)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = POST(&w, "/v1/calls?wait=0.05", "{\"id\":\"x\",\"type\":\"nobody\"}");
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "status"), "pending");
    HAS_STR(a.head.data, "Location: /v1/calls/x\r\n");
    a = POST(&w, "/v1/calls?wait=0.05", "{\"id\":\"x\",\"type\":\"nobody\"}");
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "duplicate"), "true");
    a = GET(&w, "/v1/calls/x?wait=0.05");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "status"), "pending");
    web_end(&w);
}

TEST(repeats_get_the_first_answer)
{
    struct web w;
    begin(&w, param);
    struct web_answer a = POST(&w, "/v1/calls?wait=10",
                               "{\"id\":\"r\",\"type\":\"echo\",\"input\":{\"a\":1,\"b\": 2}}");
    EQ_INT(a.status, 200);
    struct web_answer b = POST(&w, "/v1/calls",
                               "{\"id\":\"r\",\"type\":\"echo\",\"input\":{\"b\":2,\"a\":1},"
                               "\"priority\":3}");
    EQ_INT(b.status, 200);
    EQ_STR(AT(b, "duplicate"), "true");
    EQ_STR(AT(b, "priority"), "0");
    EQ_STR(AT(b, "input"), "{\"a\":1,\"b\": 2}");
    EQ_STR(AT(b, "result"), "{\"a\":1,\"b\": 2}");
    b = POST(&w, "/v1/calls?wait=10",
             "{\"id\":\"r\",\"type\":\"echo\",\"input\":{\"b\":2,\"a\":1}}");
    EQ_INT(b.status, 200);
    EQ_STR(AT(b, "duplicate"), "true");
    EQ_STR(AT(b, "result"), "{\"a\":1,\"b\": 2}");
    b = POST(&w, "/v1/calls?wait=10", "{\"id\":\"r\",\"type\":\"echo\",\"input\":{\"b\":2.0}}");
    EQ_INT(b.status, 409);
    EQ_STR(AT(b, "error.code"), "CONFLICT");
    EQ_STR(AT(b, "error.id"), "r");
    EQ_STR(AT(b, "error.status"), "completed");
    EQ_STR(AT(b, "error.retry"), "never");
    EQ_STR(AT(b, "error.message"), "call \"r\" already exists for echo.run with another input");
    web_end(&w);
}

TEST(bytes_in_and_out)
{
    struct web w;
    begin(&w, param);
    struct web_answer a = POST(&w, "/v1/calls?wait=10",
                               "{\"id\":\"b\",\"type\":\"echo\",\"input_base64\":\"AP8QJw==\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "input"), "null");
    EQ_STR(AT(a, "input_base64"), "AP8QJw==");
    EQ_STR(AT(a, "result"), "null");
    EQ_STR(AT(a, "result_base64"), "AP8QJw==");
    a = GET(&w, "/v1/calls/b/result");
    EQ_INT(a.status, 200);
    EQ_INT(a.body.len, 4);
    EQ_INT(memcmp(a.body.data, "\0\377\20\47", 4), 0);
    HAS_STR(a.head.data, "application/octet-stream");
    web_end(&w);
}

TEST(idempotency_key)
{
    struct web w;
    web_begin(&w, param);
    w.more = "Idempotency-Key: plain-1\r\n";
    EQ_STR(AT(POST(&w, "/v1/calls", "{\"type\":\"m\"}"), "id"), "plain-1");
    EQ_STR(AT(POST(&w, "/v1/calls", "{\"type\":\"m\",\"id\":\"plain-1\"}"), "duplicate"), "true");
    EQ_STR(AT(POST(&w, "/v1/calls", "{\"type\":\"m\",\"id\":\"other\"}"), "error.field"), "id");
    w.more = "Idempotency-Key: \"quo\\\"ted\"\r\n";
    EQ_STR(AT(POST(&w, "/v1/calls", "{\"type\":\"m\"}"), "id"), "quo\"ted");
    w.more = "Idempotency-Key: \"open\r\n";
    EQ_STR(AT(POST(&w, "/v1/calls", "{\"type\":\"m\"}"), "error.field"), "Idempotency-Key");
    w.more = "Idempotency-Key: a\r\nIdempotency-Key: a\r\n";
    EQ_INT(POST(&w, "/v1/calls", "{\"type\":\"m\"}").status, 400);
    web_end(&w);
}

TEST(times_and_expiry)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a =
        POST(&w, "/v1/calls",
             "{\"id\":\"l\",\"type\":\"m\",\"run_at\":\"2099-01-02T03:04:05.5+01:00\"}");
    EQ_STR(AT(a, "run_at"), "2099-01-02T02:04:05.500000Z");
    EQ_STR(AT(a, "waiting_for"), "time");
    a = POST(&w, "/v1/calls?wait=20", "{\"id\":\"e\",\"type\":\"m\",\"expires_in\":0}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "status"), "expired");
    a = POST(&w, "/v1/calls?wait=20",
             "{\"id\":\"e2\",\"type\":\"m\",\"expires_at\":\"1970-01-01T00:00:00Z\"}");
    EQ_STR(AT(a, "status"), "expired");
    web_end(&w);
}

/* ---- Get ------------------------------------------------------------------------------------- */

TEST(get_waits_until_it_ends)
{
    struct web w;
    web_begin(&w, param);
    POST(&w, "/v1/calls", "{\"id\":\"x\",\"type\":\"job\",\"input\":1}");
    int fd = web_connect(&w), fd2 = web_connect(&w);
    web_send(&w, fd, "GET", "/v1/calls/x?wait=60", NULL);
    web_send(&w, fd2, "POST", "/v1/calls?wait=60", "{\"id\":\"x\",\"type\":\"job\",\"input\":1}");
    struct pawl_stats s = { PAWL_STATS_INIT };
    UNTIL((pawl_stats(w.p, &s), s.waiting == 2));
    struct pawl_lease *l = fixture_claim(w.p, "job", 1);
    struct pawl_err err;
    OK(fixture_finish(w.p, l->token, "x", PAWL_END_RESULT, NULL, &err), &err);
    pawl_lease_free(l);
    struct web_answer a = web_take(fd), b = web_take(fd2);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "status"), "completed");
    EQ_INT(b.status, 200);
    EQ_STR(AT(b, "status"), "completed");
    EQ_STR(AT(b, "duplicate"), "true");
    close(fd);
    close(fd2);
    web_end(&w);
}

TEST(not_found)
{
    struct web w;
    web_begin(&w, param);
    static const char *const paths[] = { "/v1/calls/none", "/v1/calls/none?wait=5",
                                         "/v1/calls/none/result", "/v1/calls/none/attempts" };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct web_answer a = GET(&w, paths[i]);
        EQ_INT(a.status, 404);
        EQ_STR(AT(a, "error.code"), "NOT_FOUND");
        EQ_STR(AT(a, "error.id"), "none");
    }
    EQ_INT(POST(&w, "/v1/calls/none/cancel", NULL).status, 404);
    EQ_INT(POST(&w, "/v1/calls/none/retry", "{}").status, 404);
    EQ_INT(web_ask(&w, "PATCH", "/v1/calls/none", "{\"priority\":1}").status, 404);
    web_end(&w);
}

static void gc_once(struct pawl *p, int64_t *removed)
{
    struct pawl_err err;
    OK(pawl_gc(p, 100, removed, NULL, &err), &err);
}

TEST(gone_says_when)
{
    struct web w;
    begin(&w, param);
    POST(&w, "/v1/calls?wait=10", "{\"id\":\"g\",\"type\":\"echo\",\"keep\":0}");
    int64_t removed = 0;
    UNTIL((gc_once(w.p, &removed), removed == 1));
    struct web_answer a = GET(&w, "/v1/calls/g");
    EQ_INT(a.status, 410);
    EQ_STR(AT(a, "error.code"), "GONE");
    EQ_STR(AT(a, "error.id"), "g");
    EQ_STR(AT(a, "error.status"), "completed");
    EQ_INT(strlen(AT(a, "error.finished_at")), 27);
    a = POST(&w, "/v1/calls?wait=1", "{\"id\":\"g\",\"type\":\"echo\"}");
    EQ_INT(a.status, 410);
    EQ_INT(POST(&w, "/v1/calls/g/cancel", NULL).status, 410);
    web_end(&w);
}

TEST(result_as_it_is)
{
    struct web w;
    begin(&w, param);
    POST(&w, "/v1/calls?wait=10", "{\"id\":\"a\",\"type\":\"echo\",\"input\": {\"k\" : 1.0} }");
    struct web_answer a = GET(&w, "/v1/calls/a/result");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, ""), "{\"k\" : 1.0}");
    POST(&w, "/v1/calls?wait=10", "{\"id\":\"f\",\"type\":\"bad\"}");
    a = GET(&w, "/v1/calls/f/result");
    EQ_INT(a.status, 409);
    EQ_STR(AT(a, "error.code"), "STATE");
    EQ_STR(AT(a, "error.status"), "failed");
    HAS_STR(AT(a, "error.message"), "never \"again\"");
    POST(&w, "/v1/calls", "{\"id\":\"n\",\"type\":\"nobody\"}");
    a = GET(&w, "/v1/calls/n/result");
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "status"), "pending");
    web_end(&w);
}

TEST(attempts_are_shown)
{
    struct web w;
    begin(&w, param);
    POST(&w, "/v1/calls?wait=10", "{\"id\":\"f\",\"type\":\"bad\"}");
    struct web_answer a = GET(&w, "/v1/calls/f/attempts");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "attempts.0.try"), "1");
    EQ_STR(AT(a, "attempts.0.kind"), "error");
    EQ_STR(AT(a, "attempts.0.error"), "never \"again\"");
    EQ_STR(AT(a, "attempts.0.node"), "fixture");
    EQ_INT(strlen(AT(a, "attempts.0.finished_at")), 27);
    EQ_PTR(AT(a, "attempts.1"), NULL);
    web_end(&w);
}

/* ---- Operator requests ----------------------------------------------------------------------- */

TEST(cancel_in_every_state)
{
    struct web w;
    begin(&w, param);
    POST(&w, "/v1/calls", "{\"id\":\"p\",\"type\":\"nobody\"}");
    struct web_answer a = POST(&w, "/v1/calls/p/cancel", NULL);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "status"), "cancelled");
    EQ_INT(POST(&w, "/v1/calls/p/cancel", "{}").status, 200);
    POST(&w, "/v1/calls", "{\"id\":\"h\",\"type\":\"hold\"}");
    UNTIL(fixture_state(w.p, "h") == PAWL_PROCESSING);
    a = POST(&w, "/v1/calls/h/cancel", NULL);
    EQ_INT(a.status, 202);
    EQ_STR(AT(GET(&w, "/v1/calls/h?wait=20"), "status"), "cancelled");
    POST(&w, "/v1/calls?wait=10", "{\"id\":\"d\",\"type\":\"echo\"}");
    a = POST(&w, "/v1/calls/d/cancel", NULL);
    EQ_INT(a.status, 409);
    EQ_STR(AT(a, "error.code"), "STATE");
    EQ_STR(AT(a, "error.status"), "completed");
    EQ_INT(POST(&w, "/v1/calls/d/cancel", "{\"x\":1}").status, 400);
    web_end(&w);
}

TEST(cancel_wakes_those_who_wait)
{
    struct web w;
    web_begin(&w, param);
    int fd = web_connect(&w);
    web_send(&w, fd, "POST", "/v1/calls?wait=60", "{\"id\":\"p\",\"type\":\"nobody\"}");
    UNTIL(fixture_offer(w.p, (struct pawl_spec){ .id = "p", .type = "nobody" }).duplicate);
    EQ_INT(POST(&w, "/v1/calls/p/cancel", NULL).status, 200);
    struct web_answer a = web_take(fd);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "status"), "cancelled");
    close(fd);
    web_end(&w);
}

TEST(retry_and_move)
{
    struct web w;
    begin(&w, param);
    POST(&w, "/v1/calls?wait=10", "{\"id\":\"f\",\"type\":\"bad\"}");
    struct web_answer a = POST(&w, "/v1/calls/f/retry", NULL);
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "redrives"), "1");
    POST(&w, "/v1/calls?wait=10", "{\"id\":\"e\",\"type\":\"echo\"}");
    a = POST(&w, "/v1/calls/e/retry", NULL);
    EQ_INT(a.status, 409);
    EQ_STR(AT(a, "error.status"), "completed");

    POST(&w, "/v1/calls", "{\"id\":\"p\",\"type\":\"nobody\"}");
    a = web_ask(&w, "PATCH", "/v1/calls/p",
                "{\"run_at\":\"2099-01-01T00:00:00Z\",\"priority\":5,\"queue\":\"slow\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "run_at"), "2099-01-01T00:00:00.000000Z");
    EQ_STR(AT(a, "priority"), "5");
    EQ_STR(AT(a, "queue"), "slow");
    a = web_ask(&w, "PATCH", "/v1/calls/p", "{\"priority\":6}");
    EQ_STR(AT(a, "run_at"), "2099-01-01T00:00:00.000000Z");
    EQ_STR(AT(a, "priority"), "6");
    EQ_INT(web_ask(&w, "PATCH", "/v1/calls/p", "{}").status, 400);
    EQ_INT(web_ask(&w, "PATCH", "/v1/calls/p", NULL).status, 400);
    EQ_STR(AT(web_ask(&w, "PATCH", "/v1/calls/p", "{\"priority\":1001}"), "error.field"),
           "priority");
    EQ_INT(web_ask(&w, "PATCH", "/v1/calls/e", "{\"priority\":1}").status, 409);
    web_end(&w);
}

TEST(bulk_changes_what_fits)
{
    struct web w;
    begin(&w, param);
    for (int i = 0; i < 5; i++)
        POST(&w, "/v1/calls?wait=10", web_text("{\"id\":\"f%d\",\"type\":\"bad\"}", i));
    for (int i = 0; i < 3; i++)
        POST(&w, "/v1/calls", web_text("{\"id\":\"n%d\",\"type\":\"nobody\"}", i));
    struct web_answer a =
        POST(&w, "/v1/calls/cancel", "{\"type\":\"nobody\",\"status\":\"pending\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "changed"), "3");
    EQ_STR(AT(a, "next"), "null");
    EQ_STR(AT(GET(&w, "/v1/calls/n2"), "status"), "cancelled");
    a = POST(&w, "/v1/calls/retry", "{\"status\":\"failed\",\"limit\":2}");
    EQ_STR(AT(a, "changed"), "2");
    NE_INT(strcmp(AT(a, "next"), "null"), 0);
    a = POST(&w, "/v1/calls/retry",
             web_text("{\"status\":\"failed\",\"limit\":2,\"before\":\"%s\"}", AT(a, "next")));
    EQ_STR(AT(a, "changed"), "2");
    a = POST(&w, "/v1/calls/retry", "{\"before\":\"2000-01-01T00:00:00Z\"}");
    EQ_STR(AT(a, "changed"), "0");
    EQ_STR(AT(POST(&w, "/v1/calls/retry", "{\"status\":\"completed\"}"), "error.field"), "status");
    EQ_STR(AT(POST(&w, "/v1/calls/retry", "{\"status\":\"x\"}"), "error.field"), "status");
    EQ_STR(AT(POST(&w, "/v1/calls/cancel", "{\"before\":\"x\"}"), "error.field"), "before");
    web_end(&w);
}

/* ---- The archive ----------------------------------------------------------------------------- */

/* Archive everything that has ended, as `pawl archive` does. */
static void archive_all(struct pawl *p)
{
    struct arena a;
    arena_init(&a, 1 << 20);
    struct op op = { .kind = OP_GC,
                     .a = &a,
                     .gc = { .max = 100, .ended_before_us = INT64_MAX, .archive = true } };
    OK(exec_do(p->e, &op), &op.err);
    arena_release(&a);
}

/* 410 with the time when it was archived (mem keeps no archive), its status and its times. */
static void says_gone(struct web_answer a, bool mem)
{
    EQ_INT(a.status, 410);
    EQ_STR(AT(a, "error.code"), "GONE");
    EQ_STR(AT(a, "error.id"), "a b");
    EQ_STR(AT(a, "error.status"), "completed");
    EQ_INT(strlen(AT(a, "error.finished_at")), 27);
    HAS_STR(AT(a, "error.message"), mem ? "call \"a b\" ended completed and is no longer kept"
                                        : "call \"a b\" ended completed and was archived at 2");
}

TEST(archived_calls_say_so_and_can_be_read)
{
    struct web w;
    bool mem = fixture_is_mem(param); /* keeps no archive */
    begin(&w, param);
    EQ_INT(POST(&w, "/v1/calls?wait=30",
                "{\"id\":\"a b\",\"type\":\"echo\",\"input\":{\"n\": 1.0},\"tags\":{\"k\":\"v\"}}")
               .status,
           200);
    struct web_answer was = GET(&w, "/v1/calls/a%20b");
    EQ_INT(GET(&w, "/v1/calls/a%20b?archived=true").status, 404);
    archive_all(w.p);
    static const char *const reads[] = { "", "?wait=1", "/result", "/attempts" };
    for (size_t i = 0; i < COUNT_OF(reads); i++)
        says_gone(GET(&w, web_text("/v1/calls/a%%20b%s", reads[i])), mem);
    static const char again[] = "{\"id\":\"a b\",\"type\":\"echo\",\"input\":{\"n\": 1.0}}";
    says_gone(POST(&w, "/v1/calls", again), mem);
    says_gone(POST(&w, "/v1/calls?wait=5", again), mem);
    says_gone(POST(&w, "/v1/calls/a%20b/retry", NULL), mem);
    says_gone(POST(&w, "/v1/calls/a%20b/cancel", NULL), mem);
    struct web_answer a = GET(&w, "/v1/calls/a%20b?archived=true");
    if (mem) {
        EQ_INT(a.status, 404);
        web_end(&w);
        return;
    }
    EQ_INT(a.status, 200);
    static const char *const same[] = { "id",      "seq",      "type",         "method", "status",
                                        "queue",   "input",    "result",       "tags",   "node",
                                        "timeout", "attempts", "max_attempts", "error",  "key" };
    for (size_t i = 0; i < COUNT_OF(same); i++)
        EQ_STR(AT(a, same[i]), AT(was, same[i]));
    EQ_INT(strlen(AT(a, "archived_at")), 27);
    EQ_INT(strncmp(AT(a, "finished_at"), AT(was, "finished_at"), 23), 0);
    a = GET(&w, "/v1/calls/nobody?archived=true");
    EQ_INT(a.status, 404);
    EQ_STR(AT(a, "error.message"), "no call \"nobody\" in the archive");
    EQ_STR(AT(a, "error.id"), "nobody");
    web_end(&w);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

TEST(list_filters_and_pages)
{
    struct web w;
    web_begin(&w, param);
    for (int i = 0; i < 5; i++)
        POST(&w, "/v1/calls",
             web_text("{\"id\":\"c%d\",\"type\":\"t%d\",\"queue\":\"q%d\",\"tags\":{\"n\":\"%d\"},"
                      "\"caller\":\"me\",\"input\":%d}",
                      i, i % 2, i % 3, i, i));
    struct web_answer a = GET(&w, "/v1/calls?limit=2");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "calls.0.id"), "c4");
    EQ_STR(AT(a, "calls.1.id"), "c3");
    EQ_PTR(AT(a, "calls.2"), NULL);
    a = GET(&w, web_text("/v1/calls?limit=2&cursor=%s", AT(a, "next")));
    EQ_STR(AT(a, "calls.0.id"), "c2");
    a = GET(&w, "/v1/calls?type=t1&include=input,result");
    EQ_STR(AT(a, "calls.0.id"), "c3");
    EQ_STR(AT(a, "calls.0.input"), "3");
    EQ_STR(AT(a, "calls.1.id"), "c1");
    EQ_STR(AT(a, "next"), "null");
    a = GET(&w, "/v1/calls?tag=n%3A2&status=pending&caller=me&queue=q2&method=run");
    EQ_STR(AT(a, "calls.0.id"), "c2");
    EQ_PTR(AT(a, "calls.1"), NULL);
    EQ_STR(AT(GET(&w, "/v1/calls?since=2099-01-01T00:00:00Z"), "calls"), "[]");
    EQ_STR(AT(GET(&w, "/v1/calls?until=2000-01-01T00:00:00Z"), "calls"), "[]");
    EQ_STR(AT(GET(&w, "/v1/calls?parent=none"), "calls"), "[]");
    web_end(&w);
}

/* Which payload members the first call of an answer has, as letters: i, I, r, R. */
static const char *payloads_shown(struct web_answer a)
{
    static const char *const names[] = { "input", "input_base64", "result", "result_base64" };
    char *out = web_text("....");
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (AT(a, web_text("calls.0.%s", names[i])))
            out[i] = "iIrR"[i];
    return out;
}

TEST(lists_have_payloads_only_when_included)
{
    struct web w;
    web_begin(&w, param);
    POST(&w, "/v1/calls", "{\"id\":\"a\",\"type\":\"t\",\"input\":1}");
    struct web_answer a = GET(&w, "/v1/calls");
    EQ_STR(payloads_shown(a), "....");
    size_t n = 0;
    for (const struct json *m = json_member(a.json, "calls")->first->first; m; m = m->next)
        n++;
    EQ_UINT(n, COUNT_OF(fields) - 4);
    EQ_STR(payloads_shown(GET(&w, "/v1/calls?include=input")), "iI..");
    EQ_STR(payloads_shown(GET(&w, "/v1/calls?include=result")), "..rR");
    a = GET(&w, "/v1/calls?include=result,input");
    EQ_STR(payloads_shown(a), "iIrR");
    EQ_STR(AT(a, "calls.0.input"), "1");
    EQ_STR(AT(a, "calls.0.result"), "null");
    a = POST(&w, "/v1/calls/batch", "{\"calls\":[{\"id\":\"b\",\"type\":\"t\",\"input\":1}]}");
    EQ_STR(payloads_shown(a), "....");
    web_end(&w);
}

TEST(list_cuts_what_is_long)
{
    struct web w;
    web_begin(&w, param);
    char *text = web_text("%5000s", "x");
    POST(&w, "/v1/calls", web_text("{\"id\":\"s\",\"type\":\"t\",\"input\":\"%s\"}", text));
    struct web_answer a = GET(&w, "/v1/calls?include=input");
    EQ_INT(strlen(AT(a, "calls.0.input")), 4096);
    EQ_STR(AT(a, "calls.0.truncated"), "true");
    EQ_PTR(AT(GET(&w, "/v1/calls"), "calls.0.truncated"), NULL);
    EQ_INT(strlen(AT(GET(&w, "/v1/calls/s"), "input")), 5000);
    web_end(&w);
}

/* ---- Waiting requests ------------------------------------------------------------------------ */

TEST(a_client_that_leaves_changes_nothing)
{
    struct web w;
    web_begin(&w, param);
    int fd = web_connect(&w);
    web_send(&w, fd, "POST", "/v1/calls?wait=60", "{\"id\":\"x\",\"type\":\"nobody\"}");
    struct pawl_stats s = { PAWL_STATS_INIT };
    UNTIL((pawl_stats(w.p, &s), s.waiting == 1 && s.accepted == 1));
    close(fd);
    UNTIL((pawl_stats(w.p, &s), s.waiting == 0));
    EQ_STR(AT(GET(&w, "/v1/calls/x"), "status"), "pending");
    web_end(&w);
}

TEST(clients_that_leave_at_any_moment)
{
    struct web w;
    begin(&w, param);
    for (int i = 0; i < 300; i++) {
        int fd = web_connect(&w);
        web_send(&w, fd, "POST", "/v1/calls?wait=60",
                 web_text("{\"id\":\"x%d\",\"type\":\"%s\"}", i, i % 2 ? "echo" : "nobody"));
        if (i % 3)
            usleep((unsigned)(i % 7) * 100);
        close(fd);
    }
    struct pawl_stats s = { PAWL_STATS_INIT };
    UNTIL((pawl_stats(w.p, &s), s.waiting == 0));
    EQ_INT(POST(&w, "/v1/calls?wait=10", "{\"type\":\"echo\"}").status, 200);
    web_end(&w);
}

TEST(stopping_answers_those_who_wait)
{
    struct web w;
    web_begin(&w, param);
    int fd = web_connect(&w), fd2 = web_connect(&w);
    web_send(&w, fd, "POST", "/v1/calls?wait=60", "{\"id\":\"x\",\"type\":\"nobody\"}");
    UNTIL(fixture_offer(w.p, (struct pawl_spec){ .id = "x", .type = "nobody" }).duplicate);
    web_send(&w, fd2, "GET", "/v1/calls/x?wait=60", NULL);
    struct pawl_stats s = { PAWL_STATS_INIT };
    UNTIL((pawl_stats(w.p, &s), s.waiting == 2));
    web_stop(&w);
    struct web_answer a = web_take(fd), b = web_take(fd2);
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "status"), "pending");
    EQ_INT(b.status, 200);
    EQ_STR(AT(b, "status"), "pending");
    close(fd);
    close(fd2);
    web_end(&w);
}
