/*
 * workflows_change.c - cancel, retry and fork of runs in every state over HTTP: the answer, what it
 * leaves as it is, and whom it fences. What each stores is in test/conform/workflow_*.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "web.h"
#include "workflow_web.h"

RUNS_ON(ENGINES_DURABLE)

static const char *undo(int no, const char *name)
{
    return web_text("{\"no\":%d,\"name\":\"undo:%s\",\"kind\":\"undo\",\"result\":null}", no, name);
}

/* A run that did a and b and was refused: its next pass undoes. */
static struct run_pass refused_run(struct web *w, const char *id)
{
    struct run_pass p = run_begin(w, id);
    stored(step_send(w, &p, RESULT(1, "a", "1")), 200);
    stored(step_send(w, &p, RESULT(2, "b", "2")), 200);
    run_finish(w, &p, "\"error\":\"no\",\"retry\":false", "processing");
    return run_claim(w);
}

static const char *cancel_of(const char *id)
{
    return web_text("/v1/workflows/%s/cancel", id);
}

/* ---- Cancel ---------------------------------------------------------------------------------- */

TEST(a_cancel_while_it_undoes_changes_nothing)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = refused_run(&w, "o1");
    for (int i = 0; i < 2; i++) {
        const char *before = AT(GET(&w, "/v1/workflows/o1"), "steps");
        struct web_answer a = POST(&w, cancel_of("o1"), "{}");
        stored(a, 202);
        EQ_STR(AT(a, "status"), "processing");
        a = POST(&w, "/v1/calls/o1/cancel", "");
        stored(a, 202);
        EQ_STR(AT(a, "cancel_requested"), "false");
        a = GET(&w, "/v1/workflows/o1");
        EQ_STR(AT(a, "status"), "compensating");
        EQ_STR(AT(a, "error"), "no");
        EQ_STR(AT(a, "steps"), before);
        if (i == 0)
            stored(step_send(&w, &p, undo(3, "b")), 200);
    }
    stored(step_send(&w, &p, undo(4, "a")), 200);
    run_finish(&w, &p, "\"result\":null", "failed"); /* and not cancelled */
    refused(POST(&w, cancel_of("o1"), "{}"), 409, "STATE");
    web_end(&w);
}

TEST(without_compensation_it_ends_and_fences_the_pass_that_undoes)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = refused_run(&w, "o1");
    stored(step_send(&w, &p, undo(3, "b")), 200);
    struct web_answer a = POST(&w, cancel_of("o1"), "{\"compensate\":false}");
    stored(a, 200);
    EQ_STR(AT(a, "status"), "cancelled");
    refused(step_send(&w, &p, undo(4, "a")), 409, "LOST_LEASE");
    a = POST(&w, "/v1/work/finish",
             web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"o1\",\"result\":1}]}", p.lease));
    refused(a, 409, "LOST_LEASE");
    a = GET(&w, "/v1/workflows/o1");
    EQ_STR(AT(a, "status"), "cancelled");
    EQ_STR(AT(a, "compensation_status"), "null");
    EQ_STR(AT(a, "steps.1.undone"), "true");
    EQ_STR(AT(a, "steps.0.undone"), "false");
    stored(POST(&w, cancel_of("o1"), "{\"compensate\":false}"), 200); /* a repeat */
    refused(POST(&w, cancel_of("o1"), "{}"), 409, "STATE");
    EQ_STR(AT(POST(&w, "/v1/work/claim", "{\"steps\":true}"), "lease"), "null");
    web_end(&w);
}

/* ---- Retry ----------------------------------------------------------------------------------- */

TEST(a_retry_after_an_undo_cannot_begin_behind_it)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = refused_run(&w, "o1");
    stored(step_send(&w, &p, undo(3, "b")), 200);
    refused(POST(&w, "/v1/workflows/o1/retry", "{\"from\":\"a\"}"), 409, "STATE"); /* not ended */
    stored(step_send(&w, &p, undo(4, "a")), 200);
    run_finish(&w, &p, "\"result\":null", "failed");
    struct web_answer a = POST(&w, "/v1/workflows/o1/retry", "{\"from\":\"b\"}");
    refused(a, 409, "STATE");
    HAS_STR(AT(a, "error.message"), "step 1 was undone: a retry begins there or before it");
    EQ_STR(AT(a, "error.id"), "o1");
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "status"), "compensated");
    stored(POST(&w, "/v1/workflows/o1/retry", "{\"from\":\"a\"}"), 202);
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "status"), "running");
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "steps"), "[]");
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.undoing"), "false");
    a = step_send(&w, &p,
                  "{\"no\":1,\"name\":\"c\",\"kind\":\"child\",\"call\":{\"type\":\"part\"}}");
    EQ_STR(AT(a, "steps.0.result"), "o1~2.c#1");
    run_finish(&w, &p, "\"result\":1", "completed");
    refused(POST(&w, "/v1/workflows/o1/retry", "{\"from\":\"c\"}"), 409, "STATE"); /* it completed
                                                                                    */
    web_end(&w);
}

/* ---- Fork ------------------------------------------------------------------------------------ */

/* Who runs the one runs the other: queue, type and needs are the run's, and after a restart its
 * input. */
TEST(a_fork_is_served_as_its_run)
{
    struct web w;
    web_begin(&w, param);
    stored(
        POST(&w, "/v1/calls",
             "{\"id\":\"o1\",\"type\":\"order\",\"queue\":\"q\",\"needs\":[\"gpu\"],\"input\":1}"),
        202);
    static const char claim[] = "{\"types\":[\"order\"],\"queues\":[\"q\"],\"steps\":true,"
                                "\"has\":[\"gpu\"]}";
    struct run_pass p = run_of(POST(&w, "/v1/work/claim", claim));
    stored(step_send(&w, &p, RESULT(1, "old", "1")), 200);
    run_finish(&w, &p, "\"restart\":{\"n\":2}", "processing");
    p = run_of(POST(&w, "/v1/work/claim", claim));
    stored(step_send(&w, &p, RESULT(1, "a", "1")), 200);
    stored(step_send(&w, &p, RESULT(2, "b", "2")), 200);
    stored(POST(&w, "/v1/workflows/o1/fork", "{\"id\":\"o2\",\"from\":\"b\"}"), 202);
    stored(POST(&w, "/v1/workflows/o1/fork", "{\"id\":\"o3\",\"from\":\"a\"}"), 202);
    for (int i = 2; i <= 3; i++) {
        struct run_pass f = run_of(POST(&w, "/v1/work/claim", claim));
        EQ_STR(f.id, web_text("o%d", i));
        EQ_STR(AT(f.claim, "calls.0.input"), "{\"n\":2}");
        EQ_STR(AT(f.claim, "calls.0.needs.0"), "gpu");
        EQ_STR(AT(f.claim, "calls.0.steps.0.name"), i == 2 ? "a" : NULL);
        run_finish(&w, &f, "\"result\":1", "completed");
        EQ_STR(AT(GET(&w, web_text("/v1/workflows/o%d", i)), "workflow_name"), "order");
    }
    run_finish(&w, &p, "\"result\":1", "completed");
    web_end(&w);
}

/* ---- run_timeout ----------------------------------------------------------------------------- */

/* A worker that is late is told so when it stores what it did; then the run undoes. */
TEST(a_run_out_of_its_time_undoes_what_it_did)
{
    struct web w;
    web_begin(&w, param);
    stored(POST(&w, "/v1/calls", "{\"id\":\"o1\",\"type\":\"order\",\"run_timeout\":600}"), 202);
    struct run_pass p = run_claim(&w);
    stored(step_send(&w, &p, RESULT(1, "a", "1")), 200);
    engine_rows(param, "UPDATE pawl_workflow SET deadline = 1"); /* as if that had passed */
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "status"), "running");
    struct web_answer a = step_send(&w, &p, RESULT(2, "b", "2"));
    EQ_STR(AT(a, "suspended"), "true");
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "status"), "compensating");
    p = run_claim(&w);
    EQ_STR(AT(p.claim, "calls.0.undoing"), "true");
    EQ_STR(AT(p.claim, "calls.0.error"), "its run_timeout has passed");
    EQ_STR(AT(p.claim, "calls.0.cancel_requested"), "true");
    EQ_STR(AT(p.claim, "calls.0.steps.1.name"), "b"); /* what happened is known */
    stored(step_send(&w, &p, undo(3, "b")), 200);
    stored(step_send(&w, &p, undo(4, "a")), 200);
    run_finish(&w, &p, "\"result\":null", "cancelled");
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "status"), "compensated");
    web_end(&w);
}
