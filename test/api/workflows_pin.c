/*
 * workflows_pin.c - workers over HTTP that say in `has` which version their code is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "workflow_web.h"

RUNS_ON(ENGINES_DURABLE)

static void begin(struct web *w, const void *param, bool pin)
{
    web_begin_as(w, fixture_open_as(param, (struct pawl_options){ .pin_versions = pin }), NULL);
}

/* A claim of a worker for steps with this `has`. */
static struct web_answer claim(struct web *w, const char *has)
{
    struct web_answer a =
        POST(w, "/v1/work/claim", web_text("{\"worker\":\"w1\",\"steps\":true,\"has\":[%s]}", has));
    stored(a, 200);
    return a;
}

/* Nobody but this worker gets the run, which is due. */
static void only_for(struct web *w, const char *has)
{
    static const char *const all[] = { "", "\"v:1\"", "\"v:2\"", "\"v:22\"", "\"gpu\"" };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i], has) != 0)
            EQ_STR(AT(claim(w, all[i]), "lease"), "null");
    EQ_STR(AT(POST(w, "/v1/work/claim", web_text("{\"has\":[%s]}", has)), "lease"), "null");
}

static void submit(struct web *w, const char *id)
{
    stored(POST(w, "/v1/calls",
                web_text("{\"id\":\"%s\",\"type\":\"order\",\"needs\":[\"gpu\"]}", id)),
           202);
}

TEST(a_run_is_pinned_to_what_its_first_worker_says)
{
    struct web w;
    begin(&w, param, true);
    stored(POST(&w, "/v1/calls", "{\"id\":\"x\",\"type\":\"order\"}"), 202);
    struct run_pass p = run_of(claim(&w, "\"v:2\""));
    step_send(&w, &p, RESULT(1, "a", "1"));
    stored(step_send(&w, &p, SIGNAL(2, "go")), 200);
    stored(POST(&w, "/v1/workflows/x/signals/go", "5"), 202);
    struct web_answer a = GET(&w, "/v1/workflows/x");
    EQ_STR(AT(a, "version"), "2");
    EQ_STR(AT(GET(&w, "/v1/calls/x"), "needs.0"), NULL);
    EQ_STR(AT(GET(&w, "/v1/calls/x"), "waiting_for"), "worker");
    only_for(&w, "\"v:2\"");
    p = run_of(claim(&w, "\"v:2\""));
    EQ_STR(AT(p.claim, "calls.0.needs.0"), NULL);
    run_finish(&w, &p, "\"error\":\"later\",\"retry_in\":0", "processing");
    only_for(&w, "\"v:2\"");
    p = run_of(claim(&w, "\"gpu\",\"v:1\",\"v:2\"")); /* it has both */
    run_finish(&w, &p, "\"result\":1", "completed");
    web_end(&w);
}

/* What a finish stores begins a run, too: steps, and a restart. */
TEST(a_finish_that_begins_a_run_pins_it)
{
    struct web w;
    begin(&w, param, true);
    for (int i = 0; i < 2; i++) {
        submit(&w, i ? "x" : "y");
        struct run_pass p = run_of(claim(&w, "\"gpu\",\"v:1\""));
        if (i)
            run_finish(&w, &p, "\"restart\":{\"n\":2}", "processing");
        else
            run_finish(
                &w, &p,
                web_text("\"error\":\"later\",\"retry_in\":0,\"steps\":[%s]", RESULT(1, "a", "1")),
                "processing");
        EQ_STR(AT(claim(&w, "\"gpu\",\"v:2\""), "lease"), "null");
        EQ_STR(AT(claim(&w, "\"gpu\""), "lease"), "null");
        EQ_STR(AT(claim(&w, "\"v:1\""), "lease"), "null"); /* the call needs gpu as well */
        p = run_of(claim(&w, "\"gpu\",\"v:1\""));
        EQ_STR(AT(p.claim, "calls.0.needs.0"), "gpu");
        EQ_STR(AT(p.claim, "calls.0.needs.1"), NULL);
        EQ_STR(AT(GET(&w, web_text("/v1/workflows/%s", p.id)), "version"), "1");
        run_finish(&w, &p, "\"result\":1", "completed");
    }
    web_end(&w);
}

TEST(a_worker_that_says_no_version_or_several_pins_nothing)
{
    static const char *const has[] = { "", "\"v:1\",\"v:2\"", "\"v1\"" };
    struct web w;
    begin(&w, param, true);
    for (size_t i = 0; i < sizeof has / sizeof *has; i++) {
        stored(POST(&w, "/v1/calls", web_text("{\"id\":\"x%zu\",\"type\":\"order\"}", i)), 202);
        struct run_pass p = run_of(claim(&w, has[i]));
        stored(step_send(&w, &p, RESULT(1, "a", "1")), 200);
        EQ_STR(AT(GET(&w, web_text("/v1/workflows/x%zu", i)), "version"), "null");
        run_finish(&w, &p, "\"error\":\"later\",\"retry_in\":0", "processing");
        p = run_of(claim(&w, "\"v:3\""));
        run_finish(&w, &p, "\"result\":1", "completed");
    }
    web_end(&w);
}

TEST(a_run_that_follows_remembers_the_version_and_is_for_everybody)
{
    struct web w;
    begin(&w, param, false);
    stored(POST(&w, "/v1/calls", "{\"id\":\"x\",\"type\":\"order\"}"), 202);
    struct run_pass p = run_of(claim(&w, "\"v:1\""));
    stored(step_send(&w, &p, RESULT(1, "a", "1")), 200);
    EQ_STR(AT(GET(&w, "/v1/workflows/x"), "version"), "1");
    run_finish(&w, &p, "\"error\":\"later\",\"retry_in\":0", "processing");
    p = run_of(claim(&w, "\"v:2\""));
    run_finish(&w, &p, "\"result\":1", "completed");
    EQ_STR(AT(GET(&w, "/v1/workflows/x"), "version"), "1");
    web_end(&w);
}

/* A claim of a finish is one like any other. */
TEST(a_claim_of_a_finish_says_a_version)
{
    struct web w;
    begin(&w, param, true);
    stored(POST(&w, "/v1/calls", "{\"id\":\"x\",\"type\":\"order\"}"), 202);
    stored(POST(&w, "/v1/calls", "{\"id\":\"y\",\"type\":\"order\"}"), 202);
    struct run_pass p = run_of(claim(&w, ""));
    struct web_answer a =
        POST(&w, "/v1/work/finish",
             web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"x\",\"result\":1}],\"claim\":"
                      "{\"steps\":true,\"has\":[\"v:2\"]}}",
                      p.lease));
    stored(a, 200);
    p = (struct run_pass){ .lease = AT(a, "claim.lease"), .id = AT(a, "claim.calls.0.id") };
    EQ_STR(p.id, "y");
    stored(step_send(&w, &p, RESULT(1, "a", "1")), 200);
    run_finish(&w, &p, "\"error\":\"later\",\"retry_in\":0", "processing");
    only_for(&w, "\"v:2\"");
    EQ_STR(AT(GET(&w, "/v1/workflows/y"), "version"), "2");
    web_end(&w);
}

TEST(a_version_has_at_most_50_characters)
{
    struct web w;
    begin(&w, param, true);
    const char *edge = "v:12345678901234567890123456789012345678901234567890";
    stored(POST(&w, "/v1/work/claim", web_text("{\"steps\":true,\"has\":[\"%s\"]}", edge)), 200);
    struct web_answer a =
        POST(&w, "/v1/work/claim", web_text("{\"steps\":true,\"has\":[\"%s1\"]}", edge));
    refused(a, 400, "INVALID");
    HAS_STR(AT(a, "error.message"), "field \"has\": \"v:123");
    HAS_STR(AT(a, "error.message"), "names a version, which is longer than 50 bytes");
    refused(POST(&w, "/v1/work/claim", "{\"steps\":true,\"has\":[\"v:\"]}"), 400, "INVALID");
    /* A worker that takes no steps has any capability. */
    stored(POST(&w, "/v1/work/claim", web_text("{\"has\":[\"%s1\"]}", edge)), 200);
    web_end(&w);
}
