/*
 * needs.c - what calls need and workers have, over HTTP.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <unistd.h>

#include "web.h"

RUNS_ON(ENGINES_ALL)

#define GPU "\"needs\":[\"gpu\"]"

TEST(needs_are_read_wherever_a_call_is)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = POST(&w, "/v1/calls", "{\"id\":\"none\",\"type\":\"t\"}");
    EQ_STR(AT(a, "needs"), "[]");
    a = POST(&w, "/v1/calls",
             "{\"id\":\"one\",\"type\":\"t\",\"needs\":[\"v:2\",\"gpu\",\"gpu\"]}");
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "needs"), "[\"gpu\",\"v:2\"]");
    EQ_STR(AT(GET(&w, "/v1/calls/one"), "needs"), "[\"gpu\",\"v:2\"]");
    a = POST(&w, "/v1/calls/batch", "{\"calls\":[{\"id\":\"two\",\"type\":\"t\"," GPU "}]}");
    EQ_STR(AT(a, "calls.0.needs"), "[\"gpu\"]");
    a = POST(&w, "/v1/sessions/s/requests?wait=0", "{\"id\":\"three\",\"type\":\"t\"," GPU "}");
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "needs"), "[\"gpu\"]");
    a = POST(&w, "/v1/work/claim", "{\"max\":10}");
    EQ_STR(AT(a, "calls.0.id"), "none");
    FALSE(AT(a, "calls.1"));
    a = POST(&w, "/v1/work/finish",
             web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"none\",\"result\":1,\"calls\":"
                      "[{\"id\":\"four\",\"type\":\"t\"," GPU "}]}]}",
                      AT(a, "lease")));
    EQ_INT(a.status, 200);
    EQ_STR(AT(GET(&w, "/v1/calls/four"), "needs"), "[\"gpu\"]");
    a = GET(&w, "/v1/calls?type=t");
    EQ_STR(AT(a, "calls.0.needs"), "[\"gpu\"]");
    EQ_STR(AT(a, "calls.4.needs"), "[]");
    a = POST(&w, "/v1/work/claim", "{\"max\":10,\"has\":[\"gpu\",\"big\"]}");
    EQ_STR(AT(a, "calls.0.id"), "two");
    EQ_STR(AT(a, "calls.0.needs"), "[\"gpu\"]");
    EQ_STR(AT(a, "calls.2.id"), "four");
    FALSE(AT(a, "calls.3"));
    web_end(&w);
}

TEST(needs_do_not_make_another_call)
{
    struct web w;
    web_begin(&w, param);
    POST(&w, "/v1/calls", "{\"id\":\"a\",\"type\":\"t\"," GPU "}");
    struct web_answer a = POST(&w, "/v1/calls", "{\"id\":\"a\",\"type\":\"t\"}");
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "duplicate"), "true");
    EQ_STR(AT(a, "needs"), "[\"gpu\"]");
    web_end(&w);
}

/* One claim waits for each: the call goes to the one that has what it needs. */
TEST(a_waiting_claim_gets_what_it_can_run)
{
    struct web w;
    web_begin(&w, param);
    int plain = web_connect(&w), able = web_connect(&w);
    web_send(&w, plain, "POST", "/v1/work/claim", "{\"worker\":\"plain\",\"wait\":60}");
    web_send(&w, able, "POST", "/v1/work/claim",
             "{\"worker\":\"able\",\"wait\":60,\"has\":[\"gpu\"]}");
    POST(&w, "/v1/calls", "{\"id\":\"gpu\",\"type\":\"t\"," GPU "}");
    struct web_answer a = web_take(able);
    EQ_STR(AT(a, "calls.0.id"), "gpu");
    EQ_STR(AT(a, "calls.0.node"), "able");
    POST(&w, "/v1/calls", "{\"id\":\"any\",\"type\":\"t\"}");
    a = web_take(plain);
    EQ_STR(AT(a, "calls.0.id"), "any");
    close(plain);
    close(able);
    web_end(&w);
}

TEST(wrong_lists_are_refused)
{
    static const struct {
        const char *list, *text;
    } bad[] = {
        { "\"gpu\"", "is \\\"gpu\\\", not an array" },
        { "[1]", "name 1, 1, is not a string" },
        { "[\"\"]", "name 1, \"\", is not 1..64 letters" },
        { "[\"a b\"]", "name 1, \"a b\", is not 1..64 letters" },
        { "[\"a\",\"b\\n\"]", "name 2, \"b?\", is not 1..64 letters" },
    };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        for (int k = 0; k < 2; k++) {
            struct web_answer a =
                k ? POST(&w, "/v1/work/claim", web_text("{\"has\":%s}", bad[i].list))
                  : POST(&w, "/v1/calls", web_text("{\"type\":\"t\",\"needs\":%s}", bad[i].list));
            EQ_INT(a.status, 400);
            EQ_STR(AT(a, "error.code"), "INVALID");
            EQ_STR(AT(a, "error.field"), k ? "has" : "needs");
            if (i)
                HAS_STR(AT(a, "error.message"), bad[i].text);
        }
    EQ_INT(POST(&w, "/v1/calls", "{\"type\":\"t\",\"needs\":null}").status, 202);
    EQ_INT(POST(&w, "/v1/calls", "{\"type\":\"t\",\"needs\":[]}").status, 202);
    EQ_STR(AT(GET(&w, "/v1/nodes"), "nodes.0.has"), "[]");
    web_end(&w);
}
