/*
 * workflows.c - workflows over HTTP: workers that take steps, signals, lists, published values,
 * cancel, retry and fork. Refusals are in workflows_bad.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/text.h"
#include "lib/lib.h"
#include "web.h"
#include "workflow_web.h"

RUNS_ON(ENGINES_DURABLE)

/* ---- Steps ----------------------------------------------------------------------------------- */

TEST(a_run_goes_on_where_it_stopped)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    EQ_STR(AT(p.claim, "calls.0.steps"), "[]");
    EQ_STR(AT(p.claim, "calls.0.open_steps"), "[]");
    EQ_STR(AT(p.claim, "calls.0.steps_next"), "null");
    EQ_STR(AT(p.claim, "calls.0.undoing"), "false");
    EQ_STR(AT(p.claim, "calls.0.doubt"), "false");
    struct web_answer a = step_send(&w, &p, RESULT(1, "charge", "{\"paid\": 7}"));
    stored(a, 200);
    EQ_STR(AT(a, "steps.0.no"), "1");
    EQ_STR(AT(a, "steps.0.name"), "charge");
    EQ_STR(AT(a, "steps.0.kind"), "run");
    EQ_STR(AT(a, "steps.0.status"), "completed");
    EQ_STR(AT(a, "steps.0.result"), "{\"paid\": 7}");
    EQ_STR(AT(a, "steps.0.error"), "null");
    EQ_STR(AT(a, "steps.0.attempts"), "1");
    EQ_INT(strlen(AT(a, "steps.0.completed_at")), 27);
    /* The answer was lost; another result is not taken. */
    a = step_send(&w, &p, RESULT(1, "charge", "{\"paid\": 8}"));
    EQ_STR(AT(a, "steps.0.result"), "{\"paid\": 7}");
    a = step_send(&w, &p, RESULT(2, "charge", "9"));
    EQ_STR(AT(a, "steps.0.name"), "charge#2");
    run_finish(&w, &p, "\"release\":true", "processing");
    EQ_STR(AT(POST(&w, "/v1/work/claim", "{}"), "lease"), "null");
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.steps.0.result"), "{\"paid\": 7}");
    EQ_STR(AT(p.claim, "calls.0.steps.1.name"), "charge#2");
    EQ_PTR(AT(p.claim, "calls.0.steps.2"), NULL);
    EQ_STR(AT(p.claim, "calls.0.needs"), "[]");
    run_finish(&w, &p, "\"result\":\"done\"", "completed");
    a = GET(&w, "/v1/workflows/o1");
    stored(a, 200);
    EQ_STR(AT(a, "workflow_name"), "order");
    EQ_STR(AT(a, "status"), "completed");
    EQ_STR(AT(a, "output"), "done");
    EQ_STR(AT(a, "input"), "{\"n\": 1}");
    EQ_STR(AT(a, "steps.0.step_name"), "charge");
    EQ_STR(AT(a, "steps.0.node"), "w1");
    EQ_STR(AT(a, "current_step"), "charge#2");
    EQ_STR(AT(a, "waiting_for"), "null");
    EQ_STR(AT(a, "compensation_status"), "null");
    web_end(&w);
}

TEST(every_way_in_which_a_step_ends)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    struct web_answer a = step_send(&w, &p, "{\"no\":1,\"name\":\"a\",\"kind\":\"run\"}");
    EQ_STR(AT(a, "steps.0.status"), "running");
    a = step_send(&w, &p,
                  "{\"no\":1,\"name\":\"a\",\"kind\":\"run\",\"error\":\"503\",\"retry_in\":0}");
    EQ_STR(AT(a, "suspended"), "true");
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.steps"), "[]");
    EQ_STR(AT(p.claim, "calls.0.open_steps.0.status"), "retrying");
    EQ_STR(AT(p.claim, "calls.0.open_steps.0.attempts"), "1");
    EQ_STR(AT(p.claim, "calls.0.open_steps.0.error"), "503");
    a = step_send(&w, &p, "{\"no\":1,\"name\":\"a\",\"kind\":\"run\",\"error\":\"504\"}");
    EQ_STR(AT(a, "steps.0.status"), "failed");
    EQ_STR(AT(a, "steps.0.error"), "504");
    EQ_STR(AT(a, "steps.0.attempts"), "2");
    a = step_send(&w, &p,
                  "{\"no\":2,\"name\":\"b\",\"kind\":\"run\",\"error\":\"no\",\"retry\":false},"
                  "{\"no\":3,\"name\":\"c\",\"kind\":\"run\",\"result_base64\":\"/wA=\"},"
                  "{\"no\":4,\"name\":\"patched:x\",\"kind\":\"value\",\"result\":true}");
    EQ_STR(AT(a, "steps.0.status"), "failed");
    EQ_STR(AT(a, "steps.1.result_base64"), "/wA=");
    EQ_STR(AT(a, "steps.2.result"), "true");
    run_finish(&w, &p, "\"result\":1", "completed");
    web_end(&w);
}

TEST(a_run_that_diverged_stops_and_both_steps_are_named)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, RESULT(1, "charge", "7"));
    struct web_answer a = step_send(&w, &p, RESULT(1, "mail", "7"));
    refused(a, 409, "STATE");
    HAS_STR(AT(a, "error.message"), "step 1 is run \"charge\", and the code asks for run \"mail\"");
    EQ_STR(AT(a, "error.id"), "o1");
    /* Its answer was lost. */
    a = step_send(&w, &p, RESULT(1, "mail", "7"));
    refused(a, 409, "STATE");
    refused(step_send(&w, &p, RESULT(1, "charge", "7")), 409, "LOST_LEASE");
    EQ_STR(AT(GET(&w, "/v1/calls/o1"), "status"), "dead_letter");
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "status"), "failed");
    stored(POST(&w, "/v1/workflows/o1/retry", ""), 202);
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.steps.0.result"), "7");
    /* The same with the last steps of a pass. */
    a = POST(
        &w, "/v1/work/finish",
        web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"o1\",\"result\":1,\"steps\":[%s]}]}",
                 p.lease, RESULT(1, "mail", "7")));
    stored(a, 200);
    EQ_STR(AT(a, "results.0.status"), "dead_letter");
    HAS_STR(AT(GET(&w, "/v1/calls/o1"), "error"), "the code asks for run");
    web_end(&w);
}

TEST(lazy_steps_and_values_come_with_the_end)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    struct web_answer a =
        POST(&w, "/v1/work/finish",
             web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"o1\",\"result\":1,\"steps\":[%s],"
                      "\"publish\":{\"x\":[1, 2]}}]}",
                      p.lease, RESULT(1, "log", "5")));
    EQ_STR(AT(a, "results.0.status"), "completed");
    a = GET(&w, "/v1/workflows/o1");
    EQ_STR(AT(a, "steps.0.result"), "5");
    EQ_STR(AT(a, "published.x"), "[1, 2]");
    EQ_STR(AT(a, "status"), "completed");
    web_end(&w);
}

TEST(a_restart_begins_again_with_another_input)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, RESULT(1, "a", "1"));
    run_finish(&w, &p, "\"restart\":{\"n\":2}", "processing");
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.input"), "{\"n\":2}");
    EQ_STR(AT(p.claim, "calls.0.steps"), "[]");
    struct web_answer a = step_send(&w, &p, RESULT(1, "b", "2"));
    EQ_STR(AT(a, "steps.0.name"), "b");
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "input"), "{\"n\":2}");
    run_finish(&w, &p, "\"result\":1", "completed");
    web_end(&w);
}

TEST(steps_come_in_pages)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    char *big = malloc(1000001);
    memset(big, 'x', 1000000);
    big[1000000] = 0;
    for (int i = 1; i <= 10; i++)
        stored(step_send(&w, &p, RESULT(i, "s", web_text("\"%s\"", big))), 200);
    free(big);
    run_finish(&w, &p, "\"release\":true", "processing");
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.steps.7.no"), "8");
    EQ_PTR(AT(p.claim, "calls.0.steps.8"), NULL);
    const char *next = AT(p.claim, "calls.0.steps_next");
    struct web_answer a =
        GET(&w, web_text("/v1/work/steps?lease=%s&id=o1&cursor=%s", p.lease, next));
    stored(a, 200);
    EQ_STR(AT(a, "steps.0.no"), "9");
    EQ_STR(AT(a, "steps.1.no"), "10");
    EQ_STR(AT(a, "steps_next"), "null");
    a = GET(&w, web_text("/v1/work/steps?lease=%s&id=o1", p.lease));
    EQ_STR(AT(a, "steps.0.no"), "1");
    run_finish(&w, &p, "\"result\":1", "completed");
    refused(GET(&w, web_text("/v1/work/steps?lease=%s&id=o1", p.lease)), 409, "LOST_LEASE");
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "truncated"), "true");
    web_end(&w);
}

/* ---- Waits and signals ----------------------------------------------------------------------- */

TEST(a_signal_wakes_a_run)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    struct web_answer a = step_send(&w, &p, SIGNAL(1, "shipped"));
    EQ_STR(AT(a, "suspended"), "true");
    a = step_send(&w, &p, SIGNAL(1, "shipped")); /* the answer was lost */
    EQ_STR(AT(a, "suspended"), "true");
    a = GET(&w, "/v1/workflows/o1");
    EQ_STR(AT(a, "status"), "waiting");
    EQ_STR(AT(a, "waiting_for.signal"), "shipped");
    EQ_STR(AT(a, "current_step"), "shipped");
    EQ_STR(AT(GET(&w, "/v1/calls/o1"), "waiting_for"), "signal");
    EQ_STR(AT(GET(&w, "/v1/workflows?status=waiting"), "workflows.0.waiting_for.signal"),
           "shipped");
    EQ_STR(AT(POST(&w, "/v1/work/claim", "{\"steps\":true}"), "lease"), "null");
    w.more = "Idempotency-Key: k1\r\n";
    a = POST(&w, "/v1/workflows/o1/signals/shipped", "{\"parcel\": 9}");
    stored(a, 202);
    EQ_STR(AT(a, "duplicate"), "false");
    a = POST(&w, "/v1/workflows/o1/signals/shipped", "{\"parcel\": 9}");
    EQ_STR(AT(a, "duplicate"), "true");
    stored(POST(&w, "/v1/workflows/o1/signals/shipped", "{ \"parcel\" : 9 }"), 202); /* the same */
    refused(POST(&w, "/v1/workflows/o1/signals/shipped", "1"), 409, "CONFLICT");
    w.more = NULL;
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.open_steps.0.status"), "waiting");
    a = step_send(&w, &p, SIGNAL(1, "shipped"));
    EQ_STR(AT(a, "steps.0.result"), "{\"parcel\": 9}");
    a = GET(&w, "/v1/workflows/o1");
    EQ_STR(AT(a, "status"), "running");
    EQ_STR(AT(a, "signals.0.name"), "shipped");
    TRUE(strcmp(AT(a, "signals.0.consumed_at"), "null") != 0);
    EQ_PTR(AT(a, "signals.1"), NULL);
    run_finish(&w, &p, "\"result\":1", "completed");
    a = POST(&w, "/v1/workflows/o1/signals/shipped", "1");
    refused(a, 409, "STATE");
    EQ_STR(AT(a, "error.status"), "completed");
    EQ_STR(AT(a, "error.message"), "run \"o1\" is completed: a signal would never be read");
    web_end(&w);
}

/* A worker that waits in a claim gets the run as soon as the signal is there, and one that sleeps
 * at its time. */
TEST(a_claim_that_waits_gets_a_run_that_was_woken)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, SIGNAL(1, "go"));
    int fd = web_connect(&w);
    web_send(&w, fd, "POST", "/v1/work/claim", "{\"steps\":true,\"wait\":60}");
    UNTIL(web_open_requests(&w) == 1);
    stored(POST(&w, "/v1/workflows/o1/signals/go", ""), 202);
    p = run_of(web_take(fd));
    struct web_answer a = step_send(&w, &p, SIGNAL(1, "go"));
    EQ_STR(AT(a, "steps.0.result"), "null");
    const char *soon = web_time(web_now(&w) + 300 * FIXTURE_MS);
    a = step_send(
        &w, &p,
        web_text("{\"no\":2,\"name\":\"nap\",\"kind\":\"sleep\",\"wait\":{\"until\":\"%s\"}}",
                 soon));
    EQ_STR(AT(a, "suspended"), "true");
    a = GET(&w, "/v1/workflows/o1");
    EQ_STR(AT(a, "waiting_for.until"), soon);
    fd = web_connect(&w);
    web_send(&w, fd, "POST", "/v1/work/claim", "{\"steps\":true,\"wait\":60}");
    p = run_of(web_take(fd));
    a = step_send(
        &w, &p,
        web_text("{\"no\":2,\"name\":\"nap\",\"kind\":\"sleep\",\"wait\":{\"until\":\"%s\"}}",
                 soon));
    EQ_STR(AT(a, "steps.0.status"), "completed");
    run_finish(&w, &p, "\"result\":1", "completed");
    web_end(&w);
}

TEST(one_request_starts_or_signals)
{
    static const char body[] = "{\"id\":\"o1\",\"type\":\"order\",\"signal\":{\"name\":\"paid\","
                               "\"value\":{\"n\": 1},\"key\":\"k1\"}}";
    struct web w;
    web_begin(&w, param);
    struct web_answer a = POST(&w, "/v1/calls", body);
    stored(a, 202);
    EQ_STR(AT(a, "duplicate"), "false");
    HAS_STR(a.head.data, "Location: /v1/calls/o1\r\n");
    a = POST(&w, "/v1/calls", body);
    stored(a, 202);
    EQ_STR(AT(a, "duplicate"), "true");
    stored(POST(&w, "/v1/calls",
                "{\"id\":\"o1\",\"type\":\"order\",\"signal\":{\"name\":\"paid\",\"value\":2}}"),
           202);
    refused(POST(&w, "/v1/calls",
                 "{\"id\":\"o1\",\"type\":\"order\",\"signal\":{\"name\":\"paid\",\"value\":2,"
                 "\"key\":\"k1\"}}"),
            409, "CONFLICT");
    refused(POST(&w, "/v1/calls",
                 "{\"id\":\"o1\",\"type\":\"other\",\"signal\":{\"name\":\"paid\",\"value\":2}}"),
            409, "CONFLICT");
    a = GET(&w, "/v1/workflows/o1");
    EQ_STR(AT(a, "signals.1.name"), "paid");
    EQ_PTR(AT(a, "signals.2"), NULL);
    struct run_pass p = run_claim(&w);
    a = step_send(&w, &p, SIGNAL(1, "paid"));
    EQ_STR(AT(a, "steps.0.result"), "{\"n\": 1}");
    a = step_send(&w, &p, SIGNAL(2, "paid"));
    EQ_STR(AT(a, "steps.0.result"), "2");
    run_finish(&w, &p, "\"result\":1", "completed");
    stored(POST(&w, "/v1/calls", body), 200); /* its key is known */
    refused(POST(&w, "/v1/calls",
                 "{\"id\":\"o1\",\"type\":\"order\",\"signal\":{\"name\":\"paid\",\"value\":3}}"),
            409, "STATE");
    web_end(&w);
}

TEST(a_run_waits_for_its_children)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    struct web_answer a = step_send(&w, &p,
                                    "{\"no\":1,\"name\":\"ship\",\"kind\":\"child\",\"call\":"
                                    "{\"type\":\"ship\",\"input\":1}}");
    EQ_STR(AT(a, "steps.0.result"), "o1.ship#1");
    EQ_STR(AT(GET(&w, "/v1/calls/o1.ship%231"), "parent"), "o1");
    a = POST(
        &w, "/v1/work/steps",
        web_text("{\"lease\":\"%s\",\"id\":\"o1\",\"steps\":[{\"no\":2,\"name\":\"all\","
                 "\"kind\":\"join\"}],\"wait\":{\"children\":[\"o1.ship#1\"],\"for\":\"any\"}}",
                 p.lease));
    EQ_STR(AT(a, "suspended"), "true");
    a = GET(&w, "/v1/workflows/o1");
    EQ_STR(AT(a, "waiting_for.children.0"), "o1.ship#1");
    EQ_STR(AT(a, "children.0"), "o1.ship#1");
    a = POST(&w, "/v1/work/claim", "{\"types\":[\"ship\"]}");
    stored(POST(&w, "/v1/work/finish",
                web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"o1.ship#1\",\"result\":1}]}",
                         AT(a, "lease"))),
           200);
    p = run_claim(&w);
    a = step_send(&w, &p,
                  "{\"no\":2,\"name\":\"all\",\"kind\":\"join\",\"wait\":{\"children\":"
                  "[\"o1.ship#1\"],\"for\":\"any\"}}");
    EQ_STR(AT(a, "steps.0.result"), "[\"o1.ship#1\"]");
    run_finish(&w, &p, "\"result\":1", "completed");
    web_end(&w);
}

/* ---- Undoing --------------------------------------------------------------------------------- */

static const char *undo(int no, const char *name)
{
    return web_text("{\"no\":%d,\"name\":\"undo:%s\",\"kind\":\"undo\",\"result\":null}", no, name);
}

TEST(a_refusal_undoes_what_was_done)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, RESULT(1, "reserve", "1"));
    step_send(&w, &p, RESULT(2, "charge", "2"));
    run_finish(&w, &p, "\"error\":\"sold out\",\"retry\":false", "processing");
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "status"), "compensating");
    EQ_STR(AT(GET(&w, "/v1/workflows?status=compensating"), "workflows.0.id"), "o1");
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.undoing"), "true");
    EQ_STR(AT(p.claim, "calls.0.doubt"), "false");
    EQ_STR(AT(p.claim, "calls.0.error"), "sold out");
    EQ_STR(AT(p.claim, "calls.0.cancel_requested"), "false");
    refused(step_send(&w, &p, RESULT(3, "mail", "1")), 409, "STATE");
    stored(step_send(&w, &p, undo(3, "charge")), 200);
    stored(step_send(&w, &p, undo(4, "reserve")), 200);
    run_finish(&w, &p, "\"result\":null", "failed");
    struct web_answer a = GET(&w, "/v1/workflows/o1");
    EQ_STR(AT(a, "status"), "compensated");
    EQ_STR(AT(a, "compensation_status"), "compensated");
    EQ_STR(AT(a, "error"), "sold out");
    EQ_STR(AT(a, "steps.0.undone"), "true");
    EQ_STR(AT(a, "steps.2.step_name"), "undo:charge");
    EQ_STR(AT(GET(&w, "/v1/workflows?status=compensated"), "workflows.0.id"), "o1");
    EQ_STR(AT(GET(&w, "/v1/workflows?status=failed"), "workflows"), "[]");
    web_end(&w);
}

/* A pass that was claimed before the cancel does not undo; the next one does. */
TEST(a_cancelled_run_undoes_in_its_next_pass)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, RESULT(1, "reserve", "1"));
    stored(POST(&w, "/v1/workflows/o1/cancel", "{}"), 202);
    stored(POST(&w, "/v1/workflows/o1/cancel", "{}"), 202); /* changes nothing */
    struct web_answer a = step_send(&w, &p, RESULT(2, "charge", "2"));
    EQ_STR(AT(a, "suspended"), "true");
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.undoing"), "true");
    EQ_STR(AT(p.claim, "calls.0.cancel_requested"), "true");
    EQ_STR(AT(p.claim, "calls.0.steps.1.name"), "charge"); /* what happened is known */
    step_send(&w, &p, undo(3, "charge"));
    step_send(&w, &p, undo(4, "reserve"));
    run_finish(&w, &p, "\"result\":null", "cancelled");
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "status"), "compensated");
    web_end(&w);
}

TEST(without_compensation_a_cancel_ends_it_at_once)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, RESULT(1, "reserve", "1"));
    struct web_answer a = POST(&w, "/v1/workflows/o1/cancel", "{\"compensate\":false}");
    stored(a, 200);
    EQ_STR(AT(a, "status"), "cancelled");
    refused(step_send(&w, &p, RESULT(2, "charge", "2")), 409, "LOST_LEASE");
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "status"), "cancelled");
    a = POST(&w, "/v1/workflows/o1/cancel", "{}");
    refused(a, 409, "STATE");
    EQ_STR(AT(a, "error.status"), "cancelled");
    web_end(&w);
}

/* A run that failed without undoing begins to undo: it is processing again. */
TEST(a_failed_run_that_is_cancelled_undoes)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, RESULT(1, "reserve", "1"));
    run_finish(&w, &p, "\"error\":\"no\",\"retry\":false", "processing");
    p = run_claim(&w);
    run_finish(&w, &p, "\"result\":1", "failed"); /* it had nothing to undo, it says */
    struct web_answer a = POST(&w, "/v1/workflows/o1/cancel", "{}");
    stored(a, 202);
    EQ_STR(AT(a, "status"), "processing");
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.undoing"), "true");
    web_end(&w);
}

/* The same finish again has the same answer: a run that goes on is processing. */
TEST(a_repeated_finish_of_a_run_that_goes_on)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, RESULT(1, "reserve", "1"));
    run_finish(&w, &p, "\"restart\":[2]", "processing");
    run_finish(&w, &p, "\"restart\":[2]", "processing");
    web_end(&w);
}

/* ---- Retry and fork -------------------------------------------------------------------------- */

TEST(a_retry_from_a_step_forgets_it)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, RESULT(1, "a", "1"));
    step_send(&w, &p, RESULT(2, "b", "2"));
    refused(POST(&w, "/v1/workflows/o1/retry", "{\"from\":\"b\"}"), 409, "STATE");
    stored(POST(&w, "/v1/workflows/o1/cancel", "{\"compensate\":false}"), 200);
    refused(POST(&w, "/v1/workflows/o1/retry", "{\"from\":\"c\"}"), 404, "NOT_FOUND");
    stored(POST(&w, "/v1/workflows/o1/retry", "{\"from\":\"b\"}"), 202);
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.steps.0.name"), "a");
    EQ_PTR(AT(p.claim, "calls.0.steps.1"), NULL);
    struct web_answer a = step_send(&w, &p, RESULT(2, "b", "3"));
    EQ_STR(AT(a, "steps.0.result"), "3");
    run_finish(&w, &p, "\"result\":1", "completed");
    web_end(&w);
}

TEST(a_fork_is_made_once)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, RESULT(1, "a", "1"));
    step_send(&w, &p, RESULT(2, "b", "2"));
    run_finish(&w, &p, "\"result\":1", "completed");
    for (int i = 0; i < 2; i++) {
        struct web_answer a = POST(&w, "/v1/workflows/o1/fork", "{\"id\":\"o2\",\"from\":\"b\"}");
        stored(a, 202);
        EQ_STR(AT(a, "id"), "o2");
        EQ_STR(AT(a, "duplicate"), i ? "true" : "false");
    }
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.id"), "o2");
    EQ_STR(AT(p.claim, "calls.0.steps.0.result"), "1");
    EQ_PTR(AT(p.claim, "calls.0.steps.1"), NULL);
    run_finish(&w, &p, "\"result\":1", "completed");
    web_end(&w);
}

static const char *body_of(struct web_answer a)
{
    return web_text("%.*s", BYTES_ARG(a.body));
}

/* ---- Lists and values ------------------------------------------------------------------------ */

TEST(runs_are_listed_in_pages)
{
    struct web w;
    web_begin(&w, param);
    for (int i = 0; i < 3; i++) {
        struct run_pass p = run_begin_as(&w, web_text("o%d", i), i == 1 ? "other" : "order");
        step_send(&w, &p, RESULT(1, "a", "1"));
        if (i != 2)
            run_finish(&w, &p, "\"result\":1", "completed");
    }
    stored(POST(&w, "/v1/calls", "{\"id\":\"plain\",\"type\":\"order\"}"), 202);
    struct web_answer a = GET(&w, "/v1/workflows?limit=2");
    EQ_STR(AT(a, "workflows.0.id"), "o2");
    EQ_STR(AT(a, "workflows.0.status"), "running");
    EQ_STR(AT(a, "workflows.0.current_step"), "a");
    EQ_STR(AT(a, "workflows.1.id"), "o1");
    EQ_PTR(AT(a, "workflows.2"), NULL);
    a = GET(&w, web_text("/v1/workflows?limit=2&cursor=%s", AT(a, "next")));
    EQ_STR(AT(a, "workflows.0.id"), "o0");
    EQ_STR(AT(a, "next"), "null");
    a = GET(&w, "/v1/workflows?name=other");
    EQ_STR(AT(a, "workflows.0.id"), "o1");
    EQ_PTR(AT(a, "workflows.1"), NULL);
    a = GET(&w, "/v1/workflows?status=completed&name=order");
    EQ_STR(AT(a, "workflows.0.id"), "o0");
    EQ_PTR(AT(a, "workflows.1"), NULL);
    EQ_STR(AT(GET(&w, "/v1/workflows?status=cancelled"), "workflows"), "[]");
    EQ_STR(AT(GET(&w, "/v1/workflows?status=waiting"), "workflows"), "[]");
    refused(GET(&w, "/v1/workflows/plain"), 404, "NOT_FOUND");
    web_end(&w);
}

TEST(a_published_value_is_waited_for)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    refused(GET(&w, "/v1/workflows/o1/published/done"), 404, "NOT_FOUND");
    refused(GET(&w, "/v1/workflows/o1/published/done?wait=0.05"), 404, "NOT_FOUND");
    int fd = web_connect(&w);
    web_send(&w, fd, "GET", "/v1/workflows/o1/published/done?wait=60", NULL);
    UNTIL(web_open_requests(&w) == 1);
    stored(POST(&w, "/v1/work/steps",
                web_text("{\"lease\":\"%s\",\"id\":\"o1\",\"publish\":{\"done\":{\"of\": 5}}}",
                         p.lease)),
           200);
    struct web_answer a = web_take(fd);
    EQ_INT(a.status, 200);
    EQ_STR(body_of(a), "{\"of\": 5}");
    stored(POST(&w, "/v1/work/steps",
                web_text("{\"lease\":\"%s\",\"id\":\"o1\",\"publish\":{\"done\":6}}", p.lease)),
           200);
    EQ_STR(body_of(GET(&w, "/v1/workflows/o1/published/done")), "6");
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "published.done"), "6");
    run_finish(&w, &p, "\"result\":1", "completed");
    EQ_STR(body_of(GET(&w, "/v1/workflows/o1/published/done")), "6");
    refused(GET(&w, "/v1/workflows/o1/published/other?wait=60"), 404, "NOT_FOUND");
    web_end(&w);
}

/* Publish n values, from this number on. */
static struct web_answer publish(struct web *w, const struct run_pass *p, int from, int n)
{
    char body[8000];
    size_t len = (size_t)snprintf(body, sizeof body,
                                  "{\"lease\":\"%s\",\"id\":\"o1\",\"publish\":{", p->lease);
    for (int i = 0; i < n; i++)
        len += (size_t)snprintf(body + len, sizeof body - len, "%s\"v%d\":%d", i ? "," : "",
                                from + i, i);
    snprintf(body + len, sizeof body - len, "}}");
    return POST(w, "/v1/work/steps", body);
}

TEST(a_run_publishes_a_thousand_values)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    for (int i = 0; i < 10; i++)
        stored(publish(&w, &p, i * 100 + 1, 100), 200);
    struct web_answer a = publish(&w, &p, 1000, 2);
    refused(a, 429, "FULL");
    EQ_STR(AT(a, "error.message"), "published value \"v1001\": the run shows 1000 values already");
    stored(publish(&w, &p, 901, 100), 200);
    refused(GET(&w, "/v1/workflows/o1/published/v1001"), 404, "NOT_FOUND");
    run_finish(&w, &p, "\"result\":1", "completed");
    web_end(&w);
}

TEST(figures_of_workflows)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, SIGNAL(1, "go"));
    struct web_answer a = GET(&w, "/metrics");
    HAS_STR(a.body.data, "\npawl_waiting{queue=\"default\",for=\"signal\"} 1\n");
    HAS_STR(a.body.data, "\npawl_workflows 1\n");
    HAS_STR(a.body.data, "\npawl_workflow_steps_total ");
    HAS_STR(a.body.data, "\npawl_workflow_signals_total ");
    HAS_STR(a.body.data, "\npawl_workflow_compensations_total ");
    HAS_STR(a.body.data, "\npawl_workflow_divergences_total ");
    HAS_STR(a.body.data, "\npawl_workflow_children_taken_total ");
    web_end(&w);
}
