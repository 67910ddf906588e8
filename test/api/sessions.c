/*
 * sessions.c - requests of a session: one at a time, in order, and the answer to a caller whose
 * time is up before its request ran.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "web.h"

RUNS_ON(ENGINES_ALL)

#define PATH "/v1/sessions/s1/requests"

/* Submits the first request of the session and claims it. Returns its lease. */
static const char *hold(struct web *w)
{
    EQ_INT(POST(w, PATH "?wait=0", "{\"id\":\"first\",\"type\":\"chat\"}").status, 202);
    struct web_answer a = POST(w, "/v1/work/claim", "{\"lease_for\":300}");
    EQ_STR(AT(a, "calls.0.id"), "first");
    return AT(a, "lease");
}

static void finish(struct web *w, const char *lease, const char *result)
{
    EQ_INT(
        POST(w, "/v1/work/finish", web_text("{\"lease\":\"%s\",\"results\":[%s]}", lease, result))
            .status,
        200);
}

TEST(a_request_is_a_call_of_the_session)
{
    struct web w;
    struct pawl *p = fixture_open(param);
    fixture_on(p, "echo", fixture_echo);
    fixture_start(p, 2);
    web_begin_as(&w, p, NULL);
    struct web_answer a = POST(&w, PATH, "{\"id\":\"a\",\"type\":\"echo\",\"input\":\"hi\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "key"), "session:s1");
    EQ_STR(AT(a, "result"), "hi");
    EQ_STR(AT(a, "key_no"), "1");
    HAS_STR(a.head.data, "Location: /v1/calls/a\r\n");
    FALSE(strstr(a.head.data, "Retry-After"));
    /* The same request again is a duplicate. */
    a = POST(&w, PATH,
             "{\"id\":\"a\",\"type\":\"echo\",\"input\":\"hi\",\"on_timeout\":\"cancel\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "duplicate"), "true");
    a = POST(&w, "/v1/sessions/s2/requests", "{\"id\":\"a\",\"type\":\"echo\",\"input\":\"hi\"}");
    EQ_INT(a.status, 409);
    EQ_STR(AT(a, "error.code"), "CONFLICT");
    w.more = "Idempotency-Key: b\r\n";
    a = POST(&w, PATH, "{\"type\":\"echo\",\"on_timeout\":\"wait\"}");
    EQ_STR(AT(a, "id"), "b");
    EQ_STR(AT(a, "key_no"), "2");
    web_end(&w);
}

TEST(not_ended_in_time_it_stays_in_line)
{
    struct web w;
    web_begin_as(&w, fixture_open(param), &(struct api_conf){ .session_wait_us = 20 * FIXTURE_MS });
    const char *lease = hold(&w);
    for (int i = 1; i <= 2; i++) {
        struct web_answer a = POST(&w, PATH, web_text("{\"id\":\"c%d\",\"type\":\"chat\"}", i));
        EQ_INT(a.status, 202);
        HAS_STR(a.head.data, "Retry-After: 1\r\n");
        HAS_STR(a.head.data, web_text("Location: /v1/calls/c%d\r\n", i));
        EQ_STR(AT(a, "status"), "pending");
        EQ_STR(AT(a, "waiting_for"), "key");
        EQ_INT(web_int(a, "position"), i);
    }
    EQ_STR(AT(GET(&w, "/v1/calls/first"), "position"), "0");
    finish(&w, lease, "{\"id\":\"first\",\"result\":1}");
    EQ_STR(AT(GET(&w, "/v1/calls/first"), "position"), "null");
    EQ_STR(AT(GET(&w, "/v1/calls/c1"), "waiting_for"), "worker");
    struct web_answer a = POST(&w, "/v1/work/claim", "{\"max\":10}");
    EQ_STR(AT(a, "calls.0.id"), "c1");
    EQ_STR(AT(a, "calls.0.key_no"), "2");
    FALSE(AT(a, "calls.1")); /* one per key */
    EQ_STR(AT(GET(&w, "/v1/calls/c2"), "position"), "1");
    web_end(&w);
}

TEST(a_caller_who_waits_gets_his_turn)
{
    struct web w;
    web_begin(&w, param);
    const char *lease = hold(&w);
    int fd = web_connect(&w);
    web_send(&w, fd, "POST", PATH "?wait=60", "{\"id\":\"next\",\"type\":\"chat\"}");
    UNTIL(GET(&w, "/v1/calls/next").status == 200);
    int worker = web_connect(&w);
    web_send(&w, worker, "POST", "/v1/work/claim", "{\"wait\":60}");
    UNTIL(web_open_requests(&w) == 2);
    finish(&w, lease, "{\"id\":\"first\",\"result\":1}");
    struct web_answer a = web_take(worker); /* a waiting claim is woken */
    close(worker);
    EQ_STR(AT(a, "calls.0.id"), "next");
    finish(&w, AT(a, "lease"), "{\"id\":\"next\",\"result\":\"done\"}");
    a = web_take(fd);
    close(fd);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "result"), "done");
    GE_INT(strcmp(AT(a, "started_at"), AT(GET(&w, "/v1/calls/first"), "finished_at")), 0);
    web_end(&w);
}

/* ---- on_timeout: cancel ---------------------------------------------------------------------- */

TEST(cancelled_when_it_has_not_begun)
{
    static const char *const waits[] = { "0", "0.02" };
    struct web w;
    web_begin(&w, param);
    const char *lease = hold(&w);
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        struct web_answer a = POST(&w, web_text(PATH "?wait=%s", waits[i]),
                                   web_text("{\"id\":\"c%zu\",\"type\":\"chat\",\"input\":[ 1 ],"
                                            "\"on_timeout\":\"cancel\"}",
                                            i));
        EQ_INT(a.status, 503);
        HAS_STR(a.head.data, "Retry-After: 1\r\n");
        EQ_STR(AT(a, "error.code"), "BUSY");
        EQ_STR(AT(a, "error.id"), web_text("c%zu", i));
        EQ_STR(AT(a, "error.status"), "cancelled");
        EQ_STR(AT(a, "error.call.id"), web_text("c%zu", i));
        EQ_STR(AT(a, "error.call.status"), "cancelled");
        EQ_STR(AT(a, "error.call.input"), "[ 1 ]");
        EQ_STR(AT(a, "error.call.started_at"), "null");
        HAS_STR(AT(a, "error.message"), "session \"s1\"");
    }
    /* It will not run. */
    finish(&w, lease, "{\"id\":\"first\",\"result\":1}");
    EQ_STR(AT(POST(&w, "/v1/work/claim", ""), "lease"), "null");
    /* The same request again gets the same answer. */
    struct web_answer a =
        POST(&w, PATH "?wait=1", "{\"id\":\"c0\",\"type\":\"chat\",\"input\":[1]}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "status"), "cancelled");
    web_end(&w);
}

TEST(not_cancelled_when_it_has_begun)
{
    struct web w;
    web_begin(&w, param);
    const char *lease = hold(&w);
    struct web_answer a = POST(&w, PATH "?wait=0.02",
                               "{\"id\":\"first\",\"type\":\"chat\",\"on_timeout\":\"cancel\"}");
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "status"), "processing");
    EQ_STR(AT(a, "cancel_requested"), "false");
    EQ_STR(AT(a, "duplicate"), "true");
    HAS_STR(a.head.data, "Retry-After: 1\r\n");
    a = POST(&w, "/v1/work/extend", web_text("{\"lease\":\"%s\"}", lease));
    EQ_STR(AT(a, "cancelled"), "[]");
    /* An attempt that ended in an error also counts as started. */
    finish(&w, lease, "{\"id\":\"first\",\"error\":\"x\",\"retry_in\":600}");
    a = POST(&w, PATH "?wait=0.02",
             "{\"id\":\"first\",\"type\":\"chat\",\"on_timeout\":\"cancel\"}");
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "status"), "pending");
    EQ_STR(AT(a, "attempts"), "1");
    EQ_STR(AT(a, "waiting_for"), "retry");
    web_end(&w);
}

TEST(the_next_of_the_key_has_its_turn_when_one_is_cancelled)
{
    struct web w;
    web_begin(&w, param);
    EQ_INT(POST(&w, "/v1/queues/slow/pause", NULL).status, 200);
    EQ_INT(POST(&w, "/v1/calls",
                "{\"id\":\"head\",\"type\":\"chat\",\"key\":\"k\",\"queue\":\"slow\"}")
               .status,
           202);
    EQ_INT(POST(&w, "/v1/calls", "{\"id\":\"next\",\"type\":\"chat\",\"key\":\"k\"}").status, 202);
    EQ_STR(AT(GET(&w, "/v1/calls/head"), "waiting_for"), "paused");
    int worker = web_connect(&w);
    web_send(&w, worker, "POST", "/v1/work/claim", "{\"wait\":60}");
    UNTIL(web_open_requests(&w) == 1);
    EQ_INT(POST(&w, "/v1/calls/head/cancel", NULL).status, 200);
    EQ_STR(AT(web_take(worker), "calls.0.id"), "next");
    close(worker);
    web_end(&w);
}

TEST(a_caller_who_leaves_changes_nothing)
{
    struct web w;
    web_begin(&w, param);
    hold(&w);
    int fd = web_connect(&w);
    web_send(&w, fd, "POST", PATH "?wait=300",
             "{\"id\":\"c\",\"type\":\"chat\",\"on_timeout\":\"cancel\"}");
    UNTIL(GET(&w, "/v1/calls/c").status == 200);
    close(fd);
    UNTIL(web_open_requests(&w) == 0);
    EQ_STR(AT(GET(&w, "/v1/calls/c"), "status"), "pending");
    web_end(&w);
}

TEST(nor_does_a_server_that_stops)
{
    struct web w;
    web_begin(&w, param);
    hold(&w);
    int fd = web_connect(&w);
    web_send(&w, fd, "POST", PATH "?wait=300",
             "{\"id\":\"c\",\"type\":\"chat\",\"on_timeout\":\"cancel\"}");
    UNTIL(GET(&w, "/v1/calls/c").status == 200);
    web_stop(&w);
    struct web_answer a = web_take(fd);
    close(fd);
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "status"), "pending");
    web_end(&w);
}

/* ---- Bad requests ---------------------------------------------------------------------------- */

TEST(requests_are_read_strictly)
{
    static const struct {
        const char *path, *body, *field;
    } bad[] = {
        { PATH, "", "null" },
        { PATH, "[]", "null" },
        { PATH, "{", "null" },
        { PATH, "{}", "type" },
        { PATH, "{\"type\":\"t\",\"key\":\"k\"}", "key" },
        { PATH, "{\"type\":\"t\",\"key\":null}", "key" },
        { PATH, "{\"type\":\"t\",\"on_timeout\":\"stay\"}", "on_timeout" },
        { PATH, "{\"type\":\"t\",\"on_timeout\":true}", "on_timeout" },
        { PATH, "{\"type\":\"t\",\"on_timeout\":null}", "on_timeout" },
        { PATH, "{\"type\":\"t\",\"what\":1}", "what" },
        { PATH, "{\"type\":\"t\",\"input\":1,\"input_base64\":\"\"}", "input_base64" },
        { PATH, "{\"type\":\"t\",\"delay\":1,\"run_at\":\"2026-11-15T08:00:00Z\"}", "run_at" },
        { PATH "?wait=301", "{\"type\":\"t\"}", "wait" },
        { PATH "?wait=", "{\"type\":\"t\"}", "wait" },
        { PATH "?what=1", "{\"type\":\"t\"}", "what" },
        { "/v1/sessions/%01/requests", "{\"type\":\"t\"}", "session" },
        { "/v1/sessions/../requests", "{\"type\":\"t\"}", "session" },
    };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct web_answer a = POST(&w, bad[i].path, bad[i].body);
        if (a.status != 400)
            FAIL("%s %s: %d: %.*s", bad[i].path, bad[i].body, a.status, BYTES_ARG(a.body));
        EQ_STR(AT(a, "error.code"), "INVALID");
        EQ_STR(AT(a, "error.field"), bad[i].field);
    }
    EQ_STR(AT(GET(&w, "/v1/calls"), "calls"), "[]");
    /* Only a session may use on_timeout. */
    EQ_INT(POST(&w, "/v1/calls", "{\"type\":\"t\",\"on_timeout\":\"wait\"}").status, 400);
    web_end(&w);
}

TEST(names_of_sessions)
{
    struct web w;
    web_begin(&w, param);
    char name[249] = { 0 };
    memset(name, 's', 248);
    struct web_answer a =
        POST(&w, web_text("/v1/sessions/%s/requests?wait=0", name), "{\"type\":\"t\"}");
    EQ_INT(a.status, 400);
    EQ_STR(AT(a, "error.field"), "session");
    HAS_STR(AT(a, "error.message"), "is 248 bytes, limit 247");
    a = POST(&w, web_text("/v1/sessions/%s/requests?wait=0", name + 1), "{\"type\":\"t\"}");
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "key"), web_text("session:%s", name + 1));
    a = POST(&w, "/v1/sessions/a%2Fb%20c/requests?wait=0", "{\"type\":\"t\"}");
    EQ_STR(AT(a, "key"), "session:a/b c");
    web_end(&w);
}
