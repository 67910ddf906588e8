/*
 * workflows_begun.c - a run that has begun and sleeps is a running call to everybody: what can be
 * done to calls that wait to begin cannot be done to it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "web.h"
#include "workflow_web.h"

RUNS_ON(ENGINES_DURABLE)

/* Let the run sleep till the end of the century. */
static void sleeps(struct web *w, const struct run_pass *p, int no)
{
    struct web_answer a =
        step_send(w, p,
                  web_text("{\"no\":%d,\"name\":\"nap\",\"kind\":\"sleep\",\"wait\":{\"until\":"
                           "\"2099-01-01T00:00:00Z\"}}",
                           no));
    stored(a, 200);
    EQ_STR(AT(a, "suspended"), "true");
}

/* Start a run with these members, take its step `a`, and let it sleep. */
static void begin(struct web *w, const char *id, const char *members)
{
    stored(POST(w, "/v1/calls", web_text("{\"id\":\"%s\",\"type\":\"order\"%s}", id, members)),
           202);
    struct run_pass p = run_claim(w);
    EQ_STR(p.id, id);
    stored(step_send(w, &p, RESULT(1, "a", "1")), 200);
    sleeps(w, &p, 2);
}

/* It sleeps as before. */
static void is_asleep(struct web *w, const char *id)
{
    struct web_answer a = GET(w, web_text("/v1/calls/%s", id));
    EQ_STR(AT(a, "status"), "processing");
    EQ_STR(AT(a, "waiting_for"), "timer");
    EQ_STR(AT(a, "cancel_requested"), "false");
    EQ_STR(AT(a, "node"), "null");
    a = GET(w, web_text("/v1/workflows/%s", id));
    EQ_STR(AT(a, "status"), "waiting");
    EQ_STR(AT(a, "waiting_for.until"), "2099-01-01T00:00:00.000000Z");
}

/* It is due, to undo its step. */
static void undoes(struct web *w, const char *id)
{
    EQ_STR(AT(GET(w, web_text("/v1/workflows/%s", id)), "status"), "compensating");
    struct run_pass p = run_claim(w);
    EQ_STR(p.id, id);
    EQ_STR(AT(p.claim, "calls.0.undoing"), "true");
    stored(step_send(w, &p, "{\"no\":3,\"name\":\"undo:a\",\"kind\":\"undo\",\"result\":null}"),
           200);
    run_finish(w, &p, "\"result\":null", "cancelled");
}

#define SESSION "/v1/sessions/s1/requests"

TEST(a_session_does_not_take_it_back)
{
    struct web w;
    web_begin(&w, param);
    stored(POST(&w, SESSION "?wait=0", "{\"id\":\"o1\",\"type\":\"order\"}"), 202);
    struct run_pass p = run_claim(&w);
    stored(step_send(&w, &p, RESULT(1, "a", "1")), 200);
    sleeps(&w, &p, 2);
    struct web_answer a = POST(&w, SESSION "?wait=0.02",
                               "{\"id\":\"o1\",\"type\":\"order\",\"on_timeout\":\"cancel\"}");
    stored(a, 202); /* 503 would mean that it will not run */
    EQ_STR(AT(a, "status"), "processing");
    EQ_STR(AT(a, "position"), "0");
    EQ_STR(AT(a, "duplicate"), "true");
    HAS_STR(a.head.data, "Retry-After: 1\r\n");
    is_asleep(&w, "o1");
    /* The next request of the session has not begun. */
    a = POST(&w, SESSION "?wait=0.02",
             "{\"id\":\"n1\",\"type\":\"order\",\"on_timeout\":\"cancel\"}");
    stored(a, 503);
    EQ_STR(AT(a, "error.call.status"), "cancelled");
    a = POST(&w, SESSION "?wait=0.02", "{\"id\":\"n2\",\"type\":\"order\"}");
    stored(a, 202);
    EQ_STR(AT(a, "position"), "1");
    EQ_STR(AT(a, "waiting_for"), "key");
    EQ_STR(AT(POST(&w, "/v1/work/claim", "{\"steps\":true}"), "lease"), "null");
    is_asleep(&w, "o1");
    web_end(&w);
}

TEST(a_bulk_cancel_of_pending_calls_does_not_see_it)
{
    struct web w;
    web_begin(&w, param);
    begin(&w, "o1", "");
    stored(POST(&w, "/v1/calls", "{\"id\":\"p1\",\"type\":\"order\"}"), 202);
    struct web_answer a = POST(&w, "/v1/calls/cancel", "{\"status\":\"pending\"}");
    EQ_STR(AT(a, "changed"), "1");
    EQ_STR(AT(GET(&w, "/v1/calls/p1"), "status"), "cancelled");
    is_asleep(&w, "o1");
    a = POST(&w, "/v1/calls/retry", "{\"type\":\"order\",\"status\":\"failed\"}");
    EQ_STR(AT(a, "changed"), "0");
    /* Of running calls it is one: it is asked to undo. */
    a = POST(&w, "/v1/calls/cancel", "{\"status\":\"processing\"}");
    EQ_STR(AT(a, "changed"), "1");
    undoes(&w, "o1");
    web_end(&w);
}

TEST(it_is_not_moved)
{
    static const char *const bodies[] = { "{\"run_at\":\"2030-01-01T00:00:00Z\"}",
                                          "{\"priority\":7}", "{\"queue\":\"other\"}" };
    struct web w;
    web_begin(&w, param);
    begin(&w, "o1", "");
    const char *before = AT(GET(&w, "/v1/calls/o1"), "run_at");
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        struct web_answer a = web_ask(&w, "PATCH", "/v1/calls/o1", bodies[i]);
        refused(a, 409, "STATE");
        EQ_STR(AT(a, "error.message"), "call \"o1\" is processing");
    }
    struct web_answer a = GET(&w, "/v1/calls/o1");
    EQ_STR(AT(a, "run_at"), before);
    EQ_STR(AT(a, "queue"), "default");
    EQ_STR(AT(a, "priority"), "0");
    is_asleep(&w, "o1");
    web_end(&w);
}

#define OBJECT "/v1/objects/order/k"

TEST(its_object_is_not_written)
{
    struct web w;
    web_begin(&w, param);
    stored(web_ask(&w, "PUT", OBJECT, "{\"n\": 1}"), 200);
    begin(&w, "o1", ",\"key\":\"k\"");
    refused(web_ask(&w, "PUT", OBJECT "?wait=0.02", "{\"n\": 2}"), 503, "BUSY");
    refused(web_ask(&w, "DELETE", OBJECT "?wait=0.02", NULL), 503, "BUSY");
    struct web_answer a = GET(&w, OBJECT);
    EQ_STR(AT(a, "state"), "{\"n\": 1}");
    EQ_STR(AT(a, "version"), "1");
    EQ_STR(AT(a, "pending"), "0"); /* it has begun */
    is_asleep(&w, "o1");
    /* Another key's object, and another type's of this key, which waits for the same turn. */
    stored(web_ask(&w, "PUT", "/v1/objects/order/k2", "1"), 200);
    refused(web_ask(&w, "PUT", "/v1/objects/other/k?wait=0.02", "1"), 503, "BUSY");
    web_end(&w);
}

TEST(a_delete_of_its_object_that_cancels_lets_it_undo)
{
    struct web w;
    web_begin(&w, param);
    stored(web_ask(&w, "PUT", OBJECT, "{\"n\": 1}"), 200);
    begin(&w, "o1", ",\"key\":\"k\"");
    stored(POST(&w, "/v1/calls", "{\"id\":\"n1\",\"type\":\"order\",\"key\":\"k\"}"), 202);
    refused(web_ask(&w, "DELETE", OBJECT "?wait=0.02", NULL), 503, "BUSY");
    EQ_STR(AT(GET(&w, "/v1/calls/n1"), "status"), "pending");
    struct web_answer a = web_ask(&w, "DELETE", OBJECT "?cancel=true", NULL);
    TRUE(a.status == 200 || a.status == 204);
    EQ_STR(AT(GET(&w, "/v1/calls/n1"), "status"), "cancelled");
    undoes(&w, "o1");
    refused(GET(&w, OBJECT), 404, "NOT_FOUND");
    web_end(&w);
}

TEST(it_no_longer_expires)
{
    struct web w;
    web_begin(&w, param);
    stored(POST(&w, "/v1/calls", "{\"id\":\"p1\",\"type\":\"other\",\"expires_in\":600}"), 202);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_expiry"), 1);
    stored(POST(&w, "/v1/calls", "{\"id\":\"o1\",\"type\":\"order\",\"expires_in\":600}"), 202);
    struct web_answer a = POST(&w, "/v1/work/claim", "{\"types\":[\"order\"],\"steps\":true}");
    struct run_pass p = run_of(a);
    NE_INT(strcmp(AT(GET(&w, "/v1/calls/o1"), "expires_at"), "null"), 0);
    stored(step_send(&w, &p, RESULT(1, "a", "1")), 200);
    sleeps(&w, &p, 2);
    EQ_STR(AT(GET(&w, "/v1/calls/o1"), "expires_at"), "null");
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_expiry"), 1); /* the other's */
    is_asleep(&w, "o1");
    web_end(&w);
}

TEST(another_call_of_its_key_waits)
{
    struct web w;
    web_begin(&w, param);
    begin(&w, "o1", ",\"key\":\"k\"");
    for (int i = 1; i <= 2; i++) {
        stored(
            POST(&w, "/v1/calls",
                 web_text("{\"id\":\"n%d\",\"type\":\"order\",\"key\":\"k\",\"priority\":9}", i)),
            202);
        struct web_answer a = GET(&w, web_text("/v1/calls/n%d", i));
        EQ_STR(AT(a, "status"), "pending");
        EQ_STR(AT(a, "waiting_for"), "key");
        EQ_INT(web_int(a, "position"), i);
    }
    EQ_STR(AT(POST(&w, "/v1/work/claim", "{\"steps\":true}"), "lease"), "null");
    EQ_STR(AT(GET(&w, "/v1/calls/o1"), "position"), "0");
    struct web_answer a = GET(&w, "/v1/keys");
    EQ_STR(AT(a, "keys.0.key"), "k");
    EQ_STR(AT(a, "keys.0.head"), "o1");
    EQ_STR(AT(a, "keys.0.head_status"), "processing");
    EQ_STR(AT(a, "keys.0.waiting_for"), "timer");
    EQ_STR(AT(a, "keys.0.blocked"), "false");
    refused(POST(&w, "/v1/keys/k/unblock", "{\"action\":\"skip\"}"), 409, "STATE");
    is_asleep(&w, "o1");
    stored(POST(&w, "/v1/workflows/o1/cancel", "{\"compensate\":false}"), 200);
    struct run_pass p = run_claim(&w);
    EQ_STR(p.id, "n1");
    run_finish(&w, &p, "\"result\":1", "completed");
    web_end(&w);
}

/* Two runs whose children have each other's key: what GET shows leads from one to the other. */
TEST(runs_that_wait_for_each_other_are_named)
{
    struct web w;
    web_begin(&w, param);
    struct run_pass p[2];
    for (int i = 0; i < 2; i++) {
        stored(POST(&w, "/v1/calls",
                    web_text("{\"id\":\"o%d\",\"type\":\"order\",\"key\":\"k%d\"}", i + 1, i + 1)),
               202);
        p[i] = run_claim(&w);
    }
    for (int i = 0; i < 2; i++) {
        struct web_answer a =
            step_send(&w, &p[i],
                      web_text("{\"no\":1,\"name\":\"c\",\"kind\":\"child\",\"call\":{\"type\":"
                               "\"part\",\"key\":\"k%d\"}}",
                               2 - i));
        stored(a, 200);
        a = step_send(&w, &p[i],
                      web_text("{\"no\":2,\"name\":\"all\",\"kind\":\"join\",\"wait\":"
                               "{\"children\":[\"o%d.c#1\"]}}",
                               i + 1));
        EQ_STR(AT(a, "suspended"), "true");
    }
    for (int i = 1; i <= 2; i++) {
        struct web_answer a = GET(&w, web_text("/v1/calls/o%d", i));
        EQ_STR(AT(a, "waiting_for"), "children");
        a = GET(&w, web_text("/v1/workflows/o%d", i));
        EQ_STR(AT(a, "waiting_for.children.0"), web_text("o%d.c#1", i));
        a = GET(&w, web_text("/v1/calls/o%d.c%%231", i));
        EQ_STR(AT(a, "parent"), web_text("o%d", i));
        EQ_STR(AT(a, "waiting_for"), "key");
        EQ_STR(AT(a, "position"), "1");
        EQ_STR(AT(a, "key"), web_text("k%d", 3 - i));
    }
    struct web_answer a = GET(&w, "/v1/keys");
    for (int i = 0; i < 2; i++) {
        EQ_STR(AT(a, web_text("keys.%d.waiting_for", i)), "children");
        EQ_STR(AT(a, web_text("keys.%d.head_status", i)), "processing");
    }
    web_end(&w);
}
