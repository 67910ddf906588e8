/*
 * work.c - claim, extend and finish over HTTP: every form of a result, waiting without a thread,
 * clients that disconnect, leases that have ended.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "base/text.h"
#include "lib/lib.h"
#include "web.h"

RUNS_ON(ENGINES_ALL)

static void submit(struct web *w, const char *id, const char *more)
{
    EQ_INT(POST(w, "/v1/calls", web_text("{\"id\":\"%s\",\"type\":\"job\"%s}", id, more)).status,
           202);
}

/* Claims one call. Returns its lease. */
static const char *claim(struct web *w, const char *id)
{
    struct web_answer a = POST(w, "/v1/work/claim", "{\"worker\":\"w1\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "calls.0.id"), id);
    return AT(a, "lease");
}

static struct web_answer finish(struct web *w, const char *lease, const char *results)
{
    return POST(w, "/v1/work/finish",
                web_text("{\"lease\":\"%s\",\"results\":[%s]}", lease, results));
}

TEST(claim_shows_the_call)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", ",\"input\":{\"n\": 1.50}");
    struct web_answer a = POST(&w, "/v1/work/claim",
                               "{\"worker\":\"w1\",\"queues\":[\"default\"],\"types\":[\"job\"]}");
    EQ_INT(a.status, 200);
    EQ_INT(strlen(AT(a, "lease")), 32);
    EQ_INT(strlen(AT(a, "until")), 27);
    EQ_STR(AT(a, "calls.0.input"), "{\"n\": 1.50}");
    EQ_STR(AT(a, "calls.0.status"), "processing");
    EQ_STR(AT(a, "calls.0.node"), "w1");
    EQ_STR(AT(a, "calls.0.attempt"), "1");
    EQ_STR(AT(a, "calls.0.state"), "null");
    EQ_STR(AT(a, "calls.0.state_base64"), "null");
    EQ_STR(AT(a, "calls.0.state_version"), "null");
    a = POST(&w, "/v1/work/claim", "");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "lease"), "null");
    EQ_STR(AT(a, "until"), "null");
    EQ_STR(AT(a, "calls"), "[]");
    web_end(&w);
}

TEST(claim_is_strict)
{
    static const char *const bad[] = {
        "{\"max\":0}",
        "{\"max\":1001}",
        "{\"wait\":301}",
        "{\"wait\":-1}",
        "{\"lease_for\":0.5}",
        "{\"lease_for\":3601}",
        "{\"queues\":[]}",
        "{\"queues\":[1]}",
        "{\"queues\":[\"\"]}",
        "{\"types\":\"job\"}",
        "{\"worker\":\"\"}",
        "{\"what\":1}",
        "{\"max\":1,\"max\":1}",
        "[]",
        "{",
    };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct web_answer a = POST(&w, "/v1/work/claim", bad[i]);
        EQ_INT(a.status, 400);
        EQ_STR(AT(a, "error.code"), "INVALID");
    }
    web_end(&w);
}

TEST(claims_the_best_first)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "low", ",\"priority\":-5");
    submit(&w, "high", ",\"priority\":5");
    submit(&w, "other", ",\"queue\":\"slow\"");
    struct web_answer a = POST(&w, "/v1/work/claim", "{\"max\":10,\"queues\":[\"default\"]}");
    EQ_STR(AT(a, "calls.0.id"), "high");
    EQ_STR(AT(a, "calls.1.id"), "low");
    FALSE(AT(a, "calls.2"));
    web_end(&w);
}

/* ---- Results --------------------------------------------------------------------------------- */

TEST(every_form_of_a_result)
{
    static const struct {
        const char *more, *status, *member, *value;
    } forms[] = {
        { "\"result\":{\"b\": 2,\"a\":1.0}", "completed", "result", "{\"b\": 2,\"a\":1.0}" },
        { "\"result\":null", "completed", "result", "null" },
        { "\"result_base64\":\"/wA=\"", "completed", "result_base64", "/wA=" },
        { "\"error\":\"no\"", "pending", "attempts", "1" },
        { "\"error\":\"no\",\"retry\":true", "pending", "error", "no" },
        { "\"error\":\"no\",\"retry_in\":0", "pending", "attempts", "1" },
        { "\"error\":\"never\",\"retry\":false", "failed", "error", "never" },
        { "\"retry_in\":60", "pending", "attempts", "0" },
        { "\"release\":true", "pending", "attempts", "0" },
        { "\"cancelled\":true", "pending", "attempts", "0" }, /* although no claim asked for it */
    };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        const char *id = web_text("c%zu", i);
        submit(&w, id, ",\"priority\":9");
        const char *lease = claim(&w, id);
        struct web_answer a = finish(&w, lease, web_text("{\"id\":\"%s\",%s}", id, forms[i].more));
        EQ_INT(a.status, 200);
        EQ_STR(AT(a, "results.0.id"), id);
        EQ_STR(AT(a, "results.0.status"), forms[i].status);
        EQ_STR(AT(a, "until"), "null");
        a = GET(&w, web_text("/v1/calls/%s", id));
        EQ_STR(AT(a, "status"), forms[i].status);
        EQ_STR(web_at(a, forms[i].member), forms[i].value);
        /* So that the next claim does not take it. */
        POST(&w, web_text("/v1/calls/%s/cancel", id), NULL);
    }
    web_end(&w);
}

TEST(cancelled_when_somebody_wanted_it)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    const char *lease = claim(&w, "a");
    EQ_INT(POST(&w, "/v1/calls/a/cancel", NULL).status, 202);
    struct web_answer a = finish(&w, lease, "{\"id\":\"a\",\"cancelled\":true}");
    EQ_STR(AT(a, "results.0.status"), "cancelled");
    EQ_STR(AT(GET(&w, "/v1/calls/a"), "status"), "cancelled");
    web_end(&w);
}

TEST(finish_is_strict)
{
    static const char *const bad[] = {
        "",
        "{\"id\":\"a\"}",
        "{\"result\":1}",
        "{\"id\":\"a\",\"result\":1,\"error\":\"x\"}",
        "{\"id\":\"a\",\"result\":1,\"release\":true}",
        "{\"id\":\"a\",\"release\":false}",
        "{\"id\":\"a\",\"result\":1,\"retry\":false}",
        "{\"id\":\"a\",\"error\":\"x\",\"retry\":false,\"retry_in\":1}",
        "{\"id\":\"a\",\"retry_in\":-1}",
        "{\"id\":\"a\",\"result_base64\":\"?\"}",
        "{\"id\":\"a\",\"error\":1}",
        "{\"id\":\"a\",\"result\":1,\"state\":1}",
        "{\"id\":\"a\",\"result\":1,\"state_delete\":true}",
        "{\"id\":\"a\",\"result\":1,\"what\":1}",
        "{\"id\":\"a\",\"error\":\"x\",\"calls\":[{\"type\":\"t\"}]}",
        "{\"id\":\"a\",\"result\":1,\"calls\":[1]}",
        "{\"id\":\"a\",\"result\":1,\"calls\":[{\"type\":\"\"}]}",
        "{\"id\":\"a\",\"result\":1},{\"id\":\"a\",\"result\":1}",
        "1",
    };
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    const char *lease = claim(&w, "a");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct web_answer a = finish(&w, lease, bad[i]);
        if (a.status != 400)
            FAIL("%s: %.*s", bad[i], BYTES_ARG(a.body));
        EQ_STR(AT(a, "error.code"), "INVALID");
    }
    EQ_STR(AT(GET(&w, "/v1/calls/a"), "status"), "processing");
    EQ_INT(finish(&w, lease, "{\"id\":\"a\",\"result\":1}").status, 200);
    web_end(&w);
}

TEST(a_result_over_its_limit)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    const char *lease = claim(&w, "a");
    char *text = malloc(RESULT_LEN_MAX + 1);
    memset(text, 'x', RESULT_LEN_MAX);
    text[RESULT_LEN_MAX - 1] = 0; /* one byte too many, with its quotes */
    struct web_answer a = finish(&w, lease, web_text("{\"id\":\"a\",\"result\":\"%s\"}", text));
    EQ_INT(a.status, 413);
    EQ_STR(AT(a, "error.code"), "TOO_LARGE");
    a = finish(&w, lease, web_text("{\"id\":\"a\",\"result\":\"%s\"}", text + 1));
    EQ_INT(a.status, 200);
    free(text);
    web_end(&w);
}

TEST(the_rest_may_be_finished_later)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    submit(&w, "b", "");
    struct web_answer c = POST(&w, "/v1/work/claim", "{\"max\":2,\"lease_for\":60}");
    const char *lease = AT(c, "lease");
    struct web_answer a = finish(&w, lease, "{\"id\":\"a\",\"result\":1}");
    EQ_STR(AT(a, "until"), AT(c, "until"));
    a = finish(&w, lease, "{\"id\":\"b\",\"result\":2}");
    EQ_STR(AT(a, "until"), "null");
    EQ_STR(AT(GET(&w, "/v1/calls/b"), "result"), "2");
    web_end(&w);
}

TEST(the_same_finish_gets_the_same_answer)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    submit(&w, "b", "");
    struct web_answer c = POST(&w, "/v1/work/claim", "{\"max\":2}");
    const char *both = "{\"id\":\"a\",\"result\":1},{\"id\":\"b\",\"error\":\"x\"}";
    struct web_answer first = finish(&w, AT(c, "lease"), both);
    struct web_answer again = finish(&w, AT(c, "lease"), both);
    EQ_INT(first.status, 200);
    EQ_INT(again.status, 200);
    EQ_STR(AT(again, "results"), AT(first, "results"));
    EQ_INT(web_int(GET(&w, "/v1/calls/b"), "attempts"), 1);
    web_end(&w);
}

TEST(a_lease_that_is_none)
{
    static const char *const leases[] = { "\"\"",
                                          "\"x\"",
                                          "\"00000000000000000000000000000000\"",
                                          "\"0123456789abcdef0123456789abcdef\"",
                                          "\"0123456789ABCDEF0123456789ABCDEF\"",
                                          "\"0123456789abcdef0123456789abcdef0\"",
                                          "null",
                                          "17",
                                          "true",
                                          "[\"x\"]",
                                          "{\"lease\":1}" };
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    const char *lease = claim(&w, "a");
    for (size_t i = 0; i < COUNT_OF(leases); i++) {
        struct web_answer a =
            POST(&w, "/v1/work/finish",
                 web_text("{\"lease\":%s,\"results\":[{\"id\":\"a\",\"result\":1}]}", leases[i]));
        EQ_INT(a.status, 409);
        EQ_STR(AT(a, "error.code"), "LOST_LEASE");
        a = POST(&w, "/v1/work/finish",
                 web_text("{\"lease\":%s,\"results\":[{\"id\":\"a\",\"result\":1}],\"claim\":{}}",
                          leases[i]));
        EQ_INT(a.status, 409);
        EQ_STR(AT(a, "error.code"), "LOST_LEASE");
        a = POST(&w, "/v1/work/extend", web_text("{\"lease\":%s}", leases[i]));
        EQ_INT(a.status, 409);
        EQ_STR(AT(a, "error.code"), "LOST_LEASE");
    }
    EQ_INT(POST(&w, "/v1/work/extend", "{}").status, 400); /* no lease was named */
    /* One of the calls does not belong to the lease: nothing is stored for the others. */
    submit(&w, "b", "");
    struct web_answer a =
        finish(&w, lease, "{\"id\":\"a\",\"result\":1},{\"id\":\"b\",\"result\":1}");
    EQ_INT(a.status, 409);
    EQ_STR(AT(GET(&w, "/v1/calls/a"), "status"), "processing");
    web_end(&w);
}

TEST(a_lease_that_is_over)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    const char *lease = AT(POST(&w, "/v1/work/claim", "{\"lease_for\":1}"), "lease");
    struct web_answer next = POST(&w, "/v1/work/claim", "{\"wait\":30}");
    EQ_STR(AT(next, "calls.0.id"), "a");
    EQ_STR(AT(next, "calls.0.attempt"), "2");
    EQ_STR(AT(next, "calls.0.lost"), "1");
    EQ_INT(finish(&w, lease, "{\"id\":\"a\",\"result\":1}").status, 409);
    EQ_INT(finish(&w, AT(next, "lease"), "{\"id\":\"a\",\"result\":2}").status, 200);
    EQ_STR(AT(GET(&w, "/v1/calls/a"), "result"), "2");
    web_end(&w);
}

/* A time of an answer in microseconds. */
static int64_t time_at(struct web_answer a, const char *path)
{
    int64_t us = 0;
    const char *text = web_at(a, path);
    if (!text || !time_parse(bytes_of(text), &us))
        FAIL("%s is %s, not a time", path, text ? text : "not there");
    return us;
}

/* Extend once more: is this call, and no other, reported as past its timeout? */
static bool extend_ends(struct web *w, const char *extend, const char *id)
{
    struct web_answer a = POST(w, "/v1/work/extend", extend);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "cancelled"), "[]");
    bool ends = strcmp(AT(a, "timed_out"), "[]") != 0;
    if (ends)
        EQ_STR(AT(a, "timed_out"), web_text("[\"%s\"]", id));
    return ends;
}

/* A worker that keeps extending: the call that hangs is retried, the other one is kept. */
TEST(a_timeout_ends_a_call_though_its_worker_extends)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "hangs", ",\"timeout\":1,\"max_attempts\":2,\"backoff\":{\"base\":0}");
    submit(&w, "works", "");
    struct web_answer c = POST(&w, "/v1/work/claim", "{\"max\":2,\"lease_for\":30}");
    const char *lease = AT(c, "lease");
    const char *extend = web_text("{\"lease\":\"%s\",\"lease_for\":30}", lease);
    UNTIL(extend_ends(&w, extend, "hangs"));
    struct web_answer a = finish(&w, lease, "{\"id\":\"hangs\",\"result\":1}");
    EQ_INT(a.status, 409);
    EQ_STR(AT(a, "error.code"), "LOST_LEASE");
    a = GET(&w, "/v1/calls/hangs/attempts");
    EQ_STR(AT(a, "attempts.0.kind"), "timeout");
    EQ_STR(AT(a, "attempts.0.error"), "took longer than its timeout of 1 s");
    /* Not before its time; how long the extends took does not matter. */
    GE_INT(time_at(a, "attempts.0.finished_at") - time_at(a, "attempts.0.started_at"),
           1 * FIXTURE_SEC);
    EQ_INT(finish(&w, lease, "{\"id\":\"works\",\"result\":1}").status, 200);

    /* Alone in its lease: it times out without a request, and callers that wait for its outcome are
     * told. */
    int fd = web_connect(&w);
    web_send(&w, fd, "GET", "/v1/calls/hangs?wait=60", NULL);
    c = POST(&w, "/v1/work/claim", "{\"wait\":30,\"lease_for\":3600}");
    EQ_STR(AT(c, "calls.0.id"), "hangs");
    EQ_STR(AT(c, "calls.0.attempts"), "1");
    EQ_STR(AT(c, "calls.0.lost"), "0");
    extend = web_text("{\"lease\":\"%s\",\"lease_for\":3600}", AT(c, "lease"));
    UNTIL(POST(&w, "/v1/work/extend", extend).status == 409);
    a = web_take(fd);
    EQ_STR(AT(a, "status"), "dead_letter");
    EQ_STR(AT(a, "attempts"), "2");
    close(fd);
    web_end(&w);
}

/* The attempt names the worker, also one that gave no name; never the server it claimed from. */
TEST(a_lost_worker_is_named)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    struct web_answer c = POST(&w, "/v1/work/claim", "{\"worker\":\"w1\",\"lease_for\":1}");
    EQ_STR(AT(c, "calls.0.node"), "w1");
    c = POST(&w, "/v1/work/claim", "{\"wait\":30,\"lease_for\":1}");
    EQ_STR(AT(c, "calls.0.node"), "http");
    c = POST(&w, "/v1/work/claim", "{\"wait\":30}");
    EQ_STR(AT(c, "calls.0.attempt"), "3");
    struct web_answer a = GET(&w, "/v1/calls/a/attempts");
    EQ_STR(AT(a, "attempts.0.error"), "worker \"w1\" was lost");
    EQ_STR(AT(a, "attempts.0.node"), "w1");
    EQ_STR(AT(a, "attempts.1.error"), "worker \"http\" was lost");
    EQ_STR(AT(a, "attempts.1.node"), "http");
    web_end(&w);
}

TEST(extend_says_who_is_to_be_cancelled)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    struct web_answer c = POST(&w, "/v1/work/claim", "{\"lease_for\":30}");
    struct web_answer a = POST(&w, "/v1/work/extend",
                               web_text("{\"lease\":\"%s\",\"lease_for\":60}", AT(c, "lease")));
    EQ_INT(a.status, 200);
    GT_INT(strcmp(AT(a, "until"), AT(c, "until")), 0);
    EQ_STR(AT(a, "cancelled"), "[]");
    EQ_INT(POST(&w, "/v1/calls/a/cancel", NULL).status, 202);
    a = POST(&w, "/v1/work/extend", web_text("{\"lease\":\"%s\"}", AT(c, "lease")));
    EQ_STR(AT(a, "cancelled.0"), "a");
    web_end(&w);
}

/* ---- Outgoing calls -------------------------------------------------------------------------- */

TEST(sends_calls)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    const char *lease = claim(&w, "a");
    const char *sends = "{\"id\":\"a\",\"result\":1,\"calls\":[{\"type\":\"job\",\"input\":7},"
                        "{\"type\":\"job\",\"id\":\"mine\",\"parent\":\"p\"}]}";
    EQ_INT(finish(&w, lease, sends).status, 200);
    struct web_answer a = GET(&w, "/v1/calls/a.1");
    EQ_STR(AT(a, "parent"), "a");
    EQ_STR(AT(a, "input"), "7");
    a = GET(&w, "/v1/calls/mine");
    EQ_STR(AT(a, "parent"), "p");
    EQ_INT(finish(&w, lease, sends).status, 200); /* the same again: nothing changes */
    a = GET(&w, "/v1/calls?parent=a");
    FALSE(AT(a, "calls.1"));
    web_end(&w);
}

TEST(a_conflict_in_what_it_sends_fails_it)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", ",\"priority\":9");
    submit(&w, "taken", ",\"input\":1");
    struct web_answer a = finish(&w, claim(&w, "a"),
                                 "{\"id\":\"a\",\"result\":1,\"calls\":[{\"type\":\"job\",\"id\":"
                                 "\"taken\",\"input\":2}]}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "results.0.status"), "failed");
    web_end(&w);
}

/* ---- Finish and claim ------------------------------------------------------------------------ */

TEST(finish_claims_more)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    const char *lease = claim(&w, "a");
    submit(&w, "b", "");
    const char *body = web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"a\",\"result\":1}],"
                                "\"claim\":{\"worker\":\"w2\",\"max\":5}}",
                                lease);
    struct web_answer a = POST(&w, "/v1/work/finish", body);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "results.0.status"), "completed");
    EQ_STR(AT(a, "claim.calls.0.id"), "b");
    EQ_STR(AT(a, "claim.calls.0.node"), "w2");
    /* The answer was lost: the same claim again returns the same lease, not more calls. */
    submit(&w, "c", "");
    struct web_answer again = POST(&w, "/v1/work/finish", body);
    EQ_STR(AT(again, "claim.lease"), AT(a, "claim.lease"));
    EQ_STR(AT(again, "claim.calls.0.id"), "b");
    FALSE(AT(again, "claim.calls.1"));
    web_end(&w);
}

TEST(finish_that_is_refused_claims_nothing)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    struct web_answer a =
        POST(&w, "/v1/work/finish",
             "{\"lease\":\"0123456789abcdef0123456789abcdef\",\"results\":[{\"id\":\"a\","
             "\"result\":1}],\"claim\":{}}");
    EQ_INT(a.status, 409);
    EQ_STR(AT(a, "error.code"), "LOST_LEASE");
    a = POST(&w, "/v1/work/claim", "{\"wait\":30}");
    EQ_STR(AT(a, "calls.0.id"), "a");
    EQ_STR(AT(a, "calls.0.attempt"), "1");
    web_end(&w);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static size_t waiting(struct web *w)
{
    struct web_answer a = GET(w, "/metrics");
    const char *at = strstr(a.body.data, "\npawl_claims_waiting ");
    TRUE(at);
    return strtoul(at + 21, NULL, 10);
}

TEST(waits_for_a_call)
{
    struct web w;
    web_begin(&w, param);
    int fd = web_connect(&w);
    web_send(&w, fd, "POST", "/v1/work/claim", "{\"wait\":60}");
    UNTIL(waiting(&w) == 1);
    submit(&w, "a", "");
    struct web_answer a = web_take(fd);
    EQ_STR(AT(a, "calls.0.id"), "a");
    EQ_INT(waiting(&w), 0);
    close(fd);
    web_end(&w);
}

TEST(waits_until_its_time_is_up)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = POST(&w, "/v1/work/claim", "{\"wait\":0.05}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "lease"), "null");
    web_end(&w);
}

TEST(waits_for_a_call_that_is_not_due)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", ",\"delay\":0.2");
    struct web_answer a = POST(&w, "/v1/work/claim", "{\"wait\":60}");
    EQ_STR(AT(a, "calls.0.id"), "a");
    web_end(&w);
}

TEST(waits_for_a_retry_and_for_a_resume)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "");
    const char *lease = claim(&w, "a");
    int fd = web_connect(&w);
    web_send(&w, fd, "POST", "/v1/work/claim", "{\"wait\":60}");
    UNTIL(waiting(&w) == 1);
    finish(&w, lease, "{\"id\":\"a\",\"error\":\"x\",\"retry_in\":0.1}");
    struct web_answer a = web_take(fd);
    EQ_STR(AT(a, "calls.0.attempt"), "2");
    EQ_INT(POST(&w, "/v1/queues/default/pause", NULL).status, 200);
    finish(&w, AT(a, "lease"), "{\"id\":\"a\",\"release\":true}");
    web_send(&w, fd, "POST", "/v1/work/claim", "{\"wait\":60}");
    UNTIL(waiting(&w) == 1);
    EQ_INT(POST(&w, "/v1/queues/default/resume", NULL).status, 200);
    a = web_take(fd);
    EQ_STR(AT(a, "calls.0.id"), "a");
    close(fd);
    web_end(&w);
}

/* Waiting claims are kept by type: a claim for one type is not woken, and not forgotten, because of
 * another. */
TEST(each_line_gets_its_own)
{
    enum { N = 20 };
    struct web w;
    int fds[N];
    web_begin(&w, param);
    for (int i = 0; i < N; i++) {
        fds[i] = web_connect(&w);
        web_send(&w, fds[i], "POST", "/v1/work/claim",
                 web_text("{\"wait\":60,\"types\":[\"t%d\"]}", i % 2));
    }
    UNTIL(waiting(&w) == N);
    for (int i = 0; i < N; i++)
        EQ_INT(POST(&w, "/v1/calls", web_text("{\"type\":\"t%d\"}", i % 2)).status, 202);
    for (int i = 0; i < N; i++) {
        struct web_answer a = web_take(fds[i]);
        EQ_STR(AT(a, "calls.0.type"), web_text("t%d", i % 2));
        close(fds[i]);
    }
    web_end(&w);
}

/* More types than hash buckets; the only claims of some leave again. */
TEST(many_lines)
{
    enum { N = 400 };
    struct web w;
    int fds[N];
    web_begin(&w, param);
    for (int i = 0; i < N; i++) {
        fds[i] = web_connect(&w);
        web_send(&w, fds[i], "POST", "/v1/work/claim",
                 web_text("{\"wait\":60,\"types\":[\"t%d\"]}", i));
    }
    UNTIL(waiting(&w) == N);
    for (int i = 0; i < N; i += 2)
        close(fds[i]);
    UNTIL(waiting(&w) == N / 2);
    for (int i = 1; i < N; i += 20)
        EQ_INT(POST(&w, "/v1/calls", web_text("{\"type\":\"t%d\"}", i)).status, 202);
    for (int i = 1; i < N; i += 20)
        EQ_STR(AT(web_take(fds[i]), "calls.0.type"), web_text("t%d", i));
    for (int i = 1; i < N; i += 2)
        close(fds[i]);
    web_end(&w);
}

/* Two of several claims for the same type are cancelled; the others are served. */
TEST(leaving_a_line)
{
    enum { N = 6 };
    struct web w;
    int fds[N];
    web_begin(&w, param);
    for (int i = 0; i < N; i++) {
        fds[i] = web_connect(&w);
        web_send(&w, fds[i], "POST", "/v1/work/claim", "{\"wait\":60}");
        UNTIL(waiting(&w) == (size_t)i + 1);
    }
    close(fds[0]);
    close(fds[3]);
    UNTIL(waiting(&w) == N - 2);
    for (int i = 0; i < N - 2; i++)
        submit(&w, web_text("c%d", i), "");
    for (int i = 0; i < N; i++)
        if (i != 0 && i != 3) {
            EQ_STR(AT(web_take(fds[i]), "calls.0.type"), "job");
            close(fds[i]);
        }
    web_end(&w);
}

TEST(a_burst_wakes_all)
{
    enum { N = 100 };
    struct web w;
    int fds[N];
    struct buf b;
    web_begin(&w, param);
    for (int i = 0; i < N; i++) {
        fds[i] = web_connect(&w);
        web_send(&w, fds[i], "POST", "/v1/work/claim", "{\"wait\":60}");
    }
    UNTIL(waiting(&w) == N);
    buf_init(&b, 1 << 20);
    for (int i = 0; i < N; i++)
        buf_addf(&b, "%s{\"type\":\"job\"}", i ? "," : "{\"calls\":[");
    buf_addf(&b, "]}%c", 0);
    EQ_INT(POST(&w, "/v1/calls/batch", b.data).status, 200);
    buf_release(&b);
    for (int i = 0; i < N; i++) {
        struct web_answer a = web_take(fds[i]);
        EQ_STR(AT(a, "calls.0.type"), "job");
        close(fds[i]);
    }
    web_end(&w);
}

TEST(a_client_that_has_gone_takes_nothing)
{
    struct web w;
    web_begin(&w, param);
    int fd = web_connect(&w);
    web_send(&w, fd, "POST", "/v1/work/claim", "{\"wait\":60}");
    UNTIL(waiting(&w) == 1);
    close(fd);
    UNTIL(waiting(&w) == 0);
    submit(&w, "a", "");
    struct web_answer a = POST(&w, "/v1/work/claim", "{}");
    EQ_STR(AT(a, "calls.0.id"), "a");
    EQ_STR(AT(a, "calls.0.attempt"), "1");
    web_end(&w);
}

/* Clients disconnect while their claims are being committed: what was leased for them comes back
 * without counting an attempt. */
TEST(clients_that_leave_at_any_moment)
{
    int rounds = check_long() ? 300 : 50;
    struct web w;
    web_begin(&w, param);
    for (int i = 0; i < rounds; i++) {
        int fd = web_connect(&w);
        web_send(&w, fd, "POST", "/v1/work/claim", "{\"wait\":60,\"lease_for\":3600}");
        if (i % 2)
            submit(&w, web_text("c%d", i), "");
        close(fd);
        if (!(i % 2))
            submit(&w, web_text("c%d", i), "");
    }
    /* Calls whose claim was answered before its client left stay leased for an hour; all others are
     * claimable. */
    UNTIL(waiting(&w) == 0);
    struct web_answer a = POST(&w, "/v1/work/claim", "{\"max\":1000,\"wait\":10}");
    for (int i = 0; AT(a, "calls.0") && web_at(a, web_text("calls.%d", i)); i++)
        EQ_INT(web_int(a, web_text("calls.%d.lost", i)), 0);
    web_end(&w);
}

/* ---- Everything together --------------------------------------------------------------------- */

struct worker {
    struct web *w;
    pthread_t thread;
    int done;
};

/* The request of a worker that finishes one call and asks for more. */
static const char *done_and_more(struct web_answer a, const char *prefix, int *done)
{
    const char *id, *results = "";
    for (int i = 0; (id = AT(a, web_text("%scalls.%d.id", prefix, i))); i++, ++*done)
        results = web_text("%s%s{\"id\":\"%s\",\"result\":%d}", results, i ? "," : "", id, i);
    return web_text("{\"lease\":\"%s\",\"claim\":{\"max\":3,\"wait\":60},\"results\":[%s]}",
                    AT(a, web_text("%slease", prefix)), results);
}

/* Finish and claim in one request, repeatedly on one connection, until nothing is left. */
static void *work(void *arg)
{
    struct worker *me = arg;
    const char *prefix = "";
    int fd = web_connect(me->w);
    web_send(me->w, fd, "POST", "/v1/work/claim", "{\"max\":3,\"wait\":60}");
    struct web_answer a = web_take(fd);
    while (strcmp(AT(a, web_text("%slease", prefix)), "null")) {
        web_send(me->w, fd, "POST", "/v1/work/finish", done_and_more(a, prefix, &me->done));
        a = web_take(fd);
        EQ_INT(a.status, 200);
        prefix = "claim.";
    }
    close(fd);
    web_forget();
    return NULL;
}

TEST(workers_and_submitters, .deadline_s = 120)
{
    enum { WORKERS = 8 };
    int n = check_long() ? 1000 : 300;
    struct worker workers[WORKERS];
    struct web w;
    int done = 0;
    web_begin(&w, param);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){ .w = &w };
        EQ_INT(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < n; i++)
        submit(&w, web_text("c%d", i), "");
    UNTIL(fixture_count(w.p, PAWL_COMPLETED) == n);
    web_stop(&w); /* tells waiting claims that there is nothing */
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        done += workers[i].done;
    }
    EQ_INT(done, n);
    web_end(&w);
}

TEST(stopping_answers_those_who_wait)
{
    struct web w;
    web_begin(&w, param);
    int fd = web_connect(&w);
    web_send(&w, fd, "POST", "/v1/work/claim", "{\"wait\":300}");
    UNTIL(waiting(&w) == 1);
    web_stop(&w);
    struct web_answer a = web_take(fd);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "calls"), "[]");
    close(fd);
    web_end(&w);
}

TEST(a_drained_node_gives_nothing)
{
    struct web w;
    web_begin(&w, param);
    EQ_INT(POST(&w, "/v1/nodes/fixture/drain", NULL).status, 200);
    submit(&w, "a", "");
    EQ_STR(AT(POST(&w, "/v1/work/claim", "{}"), "lease"), "null");
    int fd = web_connect(&w);
    web_send(&w, fd, "POST", "/v1/work/claim", "{\"wait\":60}");
    UNTIL(waiting(&w) == 1);
    EQ_INT(POST(&w, "/v1/nodes/fixture/undrain", NULL).status, 200);
    struct web_answer a = web_take(fd);
    EQ_STR(AT(a, "calls.0.id"), "a");
    close(fd);
    web_end(&w);
}
