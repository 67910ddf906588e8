/*
 * workflows_bad.c - workflows over HTTP: every wrong request is refused with its field and stores
 * nothing, and who may do what.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/ident.h"
#include "base/limits.h"
#include "web.h"
#include "workflow_web.h"

RUNS_ON(ENGINES_DURABLE)

static void invalid(struct web_answer a, const char *body, const char *field)
{
    if (a.status != 400)
        FAIL("%s: %d, not 400: %.*s", body, a.status, BYTES_ARG(a.body));
    EQ_STR(AT(a, "error.code"), "INVALID");
    if (field && strcmp(AT(a, "error.field"), field) != 0)
        FAIL("%s: the field is %s, not %s", body, AT(a, "error.field"), field);
}

#define STEP(members) "\"steps\":[{\"no\":1,\"name\":\"a\"," members "}]"

/* What a finish brings is checked as in a request of its own: nothing of it is stored. */
TEST(wrong_steps_of_a_finish)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    invalid(POST(&w, "/v1/work/finish",
                 web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"o1\",\"result\":1,\"steps\":[{"
                          "\"no\":1,\"name\":\"a#b\",\"kind\":\"run\",\"result\":1}]}]}",
                          p.lease)),
            "a#b", "steps");
    run_finish(&w, &p, "\"result\":1", "completed");
    invalid(POST(&w, "/v1/calls", "{\"type\":\"order\",\"run_timeout\":0}"), "0", "run_timeout");
    web_end(&w);
}

TEST(wrong_steps)
{
    static const struct {
        const char *members, *field;
    } bad[] = {
        { "\"steps\":{}", "steps" },
        { "\"steps\":[1]", "steps" },
        { "\"steps\":[]", "steps" },
        { "\"what\":1", "what" },
        { "\"steps\":[{\"name\":\"a\",\"kind\":\"run\"}]", "no" },
        { "\"steps\":[{\"no\":0,\"name\":\"a\",\"kind\":\"run\"}]", "no" },
        { "\"steps\":[{\"no\":1,\"kind\":\"run\"}]", "name" },
        { "\"steps\":[{\"no\":1,\"name\":7,\"kind\":\"run\"}]", "name" },
        { "\"steps\":[{\"no\":1,\"name\":\"\",\"kind\":\"run\",\"result\":1}]", NULL },
        { "\"steps\":[{\"no\":1,\"name\":\"a#2\",\"kind\":\"run\",\"result\":1}]", NULL },
        { "\"steps\":[{\"no\":5000,\"name\":\"a\",\"kind\":\"run\",\"result\":1}]", NULL },
        { "\"steps\":[{\"no\":1,\"name\":\"a\"}]", "kind" },
        { STEP("\"kind\":\"walk\""), "kind" },
        { STEP("\"kind\":\"run\",\"result\":1,\"error\":\"x\""), "steps" },
        { STEP("\"kind\":\"run\",\"result\":1,\"result_base64\":\"\""), "steps" },
        { STEP("\"kind\":\"run\",\"result_base64\":\"?\""), "result_base64" },
        { STEP("\"kind\":\"run\",\"retry\":false"), "steps" },
        { STEP("\"kind\":\"run\",\"retry_in\":1"), "steps" },
        { STEP("\"kind\":\"run\",\"error\":\"x\",\"retry_in\":-1"), "retry_in" },
        { STEP("\"kind\":\"run\",\"error\":\"x\",\"retry_in\":1,\"retry\":false"), "steps" },
        { STEP("\"kind\":\"run\",\"wait\":{\"signals\":[\"s\"]}"), "steps" },
        { STEP("\"kind\":\"run\",\"call\":{\"type\":\"t\"}"), "steps" },
        { STEP("\"kind\":\"child\""), "steps" },
        { STEP("\"kind\":\"child\",\"call\":{}"), "type" },
        { STEP("\"kind\":\"child\",\"call\":{\"type\":\"t\",\"id\":\"x\"}"), "steps" },
        { STEP("\"kind\":\"child\",\"call\":{\"type\":\"t\",\"parent\":\"x\"}"), "steps" },
        { STEP("\"kind\":\"child\",\"call\":{\"type\":\"\"}"), NULL },
        { STEP("\"kind\":\"value\""), "steps" },
        { STEP("\"kind\":\"undo\",\"result\":1"), "steps" },
        { STEP("\"kind\":\"signal\",\"result\":1"), "steps" },
        { STEP("\"kind\":\"signal\""), "steps" },
        { STEP("\"kind\":\"signal\",\"wait\":{}"), "wait" },
        { STEP("\"kind\":\"signal\",\"wait\":{\"signals\":[]}"), "wait" },
        { STEP("\"kind\":\"signal\",\"wait\":{\"signals\":[1]}"), "signals" },
        { STEP("\"kind\":\"signal\",\"wait\":{\"signals\":[\"\"]}"), "signals" },
        { STEP("\"kind\":\"signal\",\"wait\":{\"until\":\"2100-01-01T00:00:00Z\"}"), "steps" },
        { STEP("\"kind\":\"sleep\",\"wait\":{\"signals\":[\"s\"]}"), "steps" },
        { STEP("\"kind\":\"sleep\",\"wait\":{\"until\":\"soon\"}"), "until" },
        { STEP("\"kind\":\"join\",\"wait\":{\"signals\":[\"s\"]}"), "steps" },
        { STEP("\"kind\":\"join\",\"wait\":{\"children\":[\"x\"],\"for\":\"some\"}"), "for" },
        { STEP("\"kind\":\"run\"") ",\"wait\":{\"signals\":[\"s\"]}", "steps" },
        { STEP("\"kind\":\"run\",\"result\":1") ",\"wait\":{\"signals\":[\"s\"]}", "wait" },
        { "\"publish\":[]", "publish" },
        { "\"publish\":{\"\":1}", "publish" },
        { "\"publish\":{\"a\":1,\"a\":2}", NULL },
    };
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const char *body = web_text("{\"lease\":\"%s\",\"id\":\"o1\",%s}", p.lease, bad[i].members);
        invalid(POST(&w, "/v1/work/steps", body), body, bad[i].field);
    }
    invalid(POST(&w, "/v1/work/steps", "{\"id\":\"o1\"}"), "no lease", "lease");
    invalid(POST(&w, "/v1/work/steps", web_text("{\"lease\":\"%s\"}", p.lease)), "no id", "id");
    refused(GET(&w, "/v1/workflows/o1"), 404, "NOT_FOUND");
    /* A lease that is none, or does not hold the call. */
    p.lease = "x";
    refused(step_send(&w, &p, RESULT(1, "a", "1")), 409, "LOST_LEASE");
    p.lease = "00000000000000000000000000000000";
    refused(step_send(&w, &p, RESULT(1, "a", "1")), 409, "LOST_LEASE");
    refused(GET(&w, web_text("/v1/work/steps?lease=%s&id=o1", p.lease)), 409, "LOST_LEASE");
    p.lease = AT(p.claim, "lease");
    p.id = "o2";
    refused(step_send(&w, &p, RESULT(1, "a", "1")), 409, "LOST_LEASE");
    refused(GET(&w, web_text("/v1/work/steps?lease=%s&id=o2", p.lease)), 409, "LOST_LEASE");
    invalid(GET(&w, "/v1/work/steps"), "no lease", "lease");
    invalid(GET(&w, web_text("/v1/work/steps?lease=%s", p.lease)), "no id", "id");
    invalid(GET(&w, web_text("/v1/work/steps?lease=%s&id=o1&cursor=7", p.lease)), "cursor",
            "cursor");
    web_end(&w);
}

/* A name that no step can have reaches no row: one with "#!" ended the server. */
TEST(an_undo_names_a_step_as_it_is_stored)
{
    static const char *const bad[] = {
        "a#",
        "a#!",
        "a#-7",
        "a#0",
        "#2",
        "a\\u0001",
        "a#100000",
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    };
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, RESULT(1, "a", "1"));
    run_finish(&w, &p, "\"error\":\"x\",\"retry\":false", "processing");
    p = run_claim(&w);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const char *step =
            web_text("{\"no\":2,\"name\":\"undo:%s\",\"kind\":\"undo\",\"result\":1}", bad[i]);
        invalid(step_send(&w, &p, step), step, NULL);
    }
    stored(step_send(&w, &p, "{\"no\":2,\"name\":\"undo:a\",\"kind\":\"undo\",\"result\":1}"), 200);
    run_finish(&w, &p, "\"result\":null", "failed");
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "status"), "compensated");
    web_end(&w);
}

TEST(what_goes_with_the_end_of_an_attempt)
{
    static const char *const bad[] = {
        "\"restart\":1,\"result\":1",
        "\"restart\":1,\"steps\":[]",
        "\"restart\":1,\"publish\":{\"a\":1}",
        "\"result\":1,\"steps\":[{\"no\":1,\"name\":\"a\",\"kind\":\"run\"}]",
        "\"result\":1,\"steps\":[{\"no\":1,\"name\":\"a\",\"kind\":\"sleep\",\"wait\":{\"until\":"
        "\"2100-01-01T00:00:00Z\"}}]",
        "\"result\":1,\"steps\":[{\"no\":1,\"name\":\"a\",\"kind\":\"child\",\"call\":{\"type\":"
        "\"t\"}}]",
        "\"result\":1,\"publish\":7",
    };
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        invalid(
            POST(&w, "/v1/work/finish",
                 web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"o1\",%s}]}", p.lease, bad[i])),
            bad[i], NULL);
    run_finish(&w, &p, "\"result\":1", "completed");
    web_end(&w);
}

TEST(wrong_reads_and_changes)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, RESULT(1, "a", "1"));
    invalid(GET(&w, "/v1/workflows?status=pending"), "status", "status");
    invalid(GET(&w, "/v1/workflows?name="), "name", "name");
    invalid(GET(&w, "/v1/workflows?limit=0"), "limit", "limit");
    invalid(GET(&w, "/v1/workflows?cursor=x"), "cursor", "cursor");
    invalid(GET(&w, "/v1/workflows?type=t"), "type", "type");
    invalid(GET(&w, "/v1/workflows/o1/published/x?wait=9999"), "wait", "wait");
    refused(GET(&w, "/v1/workflows/none"), 404, "NOT_FOUND");
    refused(GET(&w, "/v1/workflows/none/published/x"), 404, "NOT_FOUND");
    refused(POST(&w, "/v1/workflows/none/signals/x", "1"), 404, "NOT_FOUND");
    refused(POST(&w, "/v1/workflows/none/cancel", ""), 404, "NOT_FOUND");
    refused(POST(&w, "/v1/workflows/none/retry", ""), 404, "NOT_FOUND");
    refused(POST(&w, "/v1/workflows/none/fork", "{\"from\":\"a\"}"), 404, "NOT_FOUND");
    invalid(POST(&w, "/v1/workflows/o1/signals/x", "{"), "signal", NULL);
    w.more = "Idempotency-Key: \"\"\r\n";
    invalid(POST(&w, "/v1/workflows/o1/signals/x", "1"), "key", "Idempotency-Key");
    w.more = NULL;
    invalid(POST(&w, "/v1/workflows/o1/cancel", "{\"compensate\":1}"), "cancel", "compensate");
    invalid(POST(&w, "/v1/workflows/o1/cancel", "{\"what\":1}"), "cancel", "what");
    invalid(POST(&w, "/v1/workflows/o1/retry", "{\"from\":7}"), "retry", "from");
    invalid(POST(&w, "/v1/workflows/o1/fork", "{}"), "fork", "from");
    invalid(POST(&w, "/v1/workflows/o1/fork", "{\"from\":\"a\",\"id\":\"\"}"), "fork", "id");
    refused(POST(&w, "/v1/workflows/o1/fork", "{\"from\":\"z\"}"), 404, "NOT_FOUND");
    invalid(POST(&w, "/v1/calls", "{\"type\":\"t\",\"signal\":1}"), "signal", "signal");
    invalid(POST(&w, "/v1/calls", "{\"type\":\"t\",\"signal\":{}}"), "signal", NULL);
    invalid(POST(&w, "/v1/calls", "{\"type\":\"t\",\"signal\":{\"name\":\"a\",\"x\":1}}"), "signal",
            NULL);
    invalid(POST(&w, "/v1/calls/batch",
                 "{\"calls\":[{\"type\":\"t\",\"signal\":{\"name\":\"a\"}}],"
                 "\"atomic\":true}"),
            "signal in a batch", "signal");
    char *big = malloc(RESULT_LEN_MAX + 8);
    memset(big, 'x', RESULT_LEN_MAX + 3);
    big[0] = big[RESULT_LEN_MAX + 2] = '"';
    big[RESULT_LEN_MAX + 3] = 0;
    refused(POST(&w, "/v1/workflows/o1/signals/x", big), 413, "TOO_LARGE");
    refused(step_send(&w, &p, RESULT(2, "b", big)), 413, "TOO_LARGE");
    free(big);
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "signals"), "[]");
    EQ_PTR(AT(GET(&w, "/v1/workflows/o1"), "steps.1"), NULL);
    run_finish(&w, &p, "\"result\":1", "completed");
    web_end(&w);
}

/* ---- Who may do what ------------------------------------------------------------------------- */

static const char *line(const char *who, const char *token, char out[256])
{
    unsigned char d[32];
    char hex[65] = { 0 };
    TRUE(digest_plain(bytes_of(token), d));
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", d[i]);
    snprintf(out, 256, "%s:%s", who, hex);
    return out;
}

TEST(who_may_do_what)
{
    static char v[4][256];
    const char *tokens[] = { line("alice:app", "ta", v[0]), line("bob:app", "tb", v[1]),
                             line("mon:monitor", "tm", v[2]), line("root:admin", "tr", v[3]) };
    struct web w;
    web_begin_as(&w, fixture_open(param), &(struct api_conf){ .tokens = tokens, .n_tokens = 4 });
    w.token = "ta";
    struct run_pass p = run_begin(&w, "o1");
    step_send(&w, &p, RESULT(1, "a", "\"secret\""));
    POST(&w, "/v1/work/steps",
         web_text("{\"lease\":\"%s\",\"id\":\"o1\",\"publish\":{\"x\":\"secret\"}}", p.lease));
    step_send(&w, &p, SIGNAL(2, "go"));
    EQ_STR(AT(GET(&w, "/v1/workflows"), "workflows.0.id"), "o1");
    stored(GET(&w, "/v1/workflows/o1/published/x"), 200);
    refused(POST(&w, "/v1/workflows/o1/retry", ""), 403, "FORBIDDEN");
    refused(POST(&w, "/v1/workflows/o1/fork", "{\"from\":\"a\"}"), 403, "FORBIDDEN");
    w.token = "tb"; /* to bob it does not exist */
    EQ_STR(AT(GET(&w, "/v1/workflows"), "workflows"), "[]");
    refused(GET(&w, "/v1/workflows/o1"), 404, "NOT_FOUND");
    refused(GET(&w, "/v1/workflows/o1/published/x"), 404, "NOT_FOUND");
    refused(POST(&w, "/v1/workflows/o1/signals/go", "1"), 404, "NOT_FOUND");
    refused(POST(&w, "/v1/workflows/o1/cancel", ""), 404, "NOT_FOUND");
    refused(POST(&w, "/v1/calls",
                 "{\"id\":\"o1\",\"type\":\"order\",\"input\":{\"n\": 1},\"signal\":{\"name\":"
                 "\"go\"}}"),
            409, "CONFLICT");
    w.token = "tm";
    struct web_answer a = GET(&w, "/v1/workflows/o1");
    EQ_STR(AT(a, "status"), "waiting");
    EQ_STR(AT(a, "input"), "null");
    EQ_STR(AT(a, "steps.0.result"), "null");
    EQ_STR(AT(a, "published"), "{}");
    EQ_STR(AT(GET(&w, "/v1/workflows"), "workflows.0.id"), "o1");
    refused(GET(&w, "/v1/workflows/o1/published/x"), 403, "FORBIDDEN");
    refused(POST(&w, "/v1/workflows/o1/signals/go", "1"), 403, "FORBIDDEN");
    w.token = "ta";
    EQ_STR(AT(GET(&w, "/v1/workflows/o1"), "signals"), "[]");
    stored(POST(&w, "/v1/workflows/o1/signals/go", "1"), 202);
    w.token = "tr";
    stored(POST(&w, "/v1/workflows/o1/signals/go", "2"), 202);
    web_end(&w);
}
