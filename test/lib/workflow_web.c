/*
 * workflow_web.c - see workflow_web.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "workflow_web.h"

#include "base/text.h"

struct run_pass run_begin_as(struct web *w, const char *id, const char *type)
{
    stored(POST(w, "/v1/calls",
                web_text("{\"id\":\"%s\",\"type\":\"%s\",\"input\":{\"n\": 1}}", id, type)),
           202);
    struct run_pass p = run_claim(w);
    EQ_STR(p.id, id);
    return p;
}

struct run_pass run_begin(struct web *w, const char *id)
{
    return run_begin_as(w, id, "order");
}

struct run_pass run_of(struct web_answer a)
{
    stored(a, 200);
    struct run_pass p = { .lease = AT(a, "lease"), .id = AT(a, "calls.0.id"), .claim = a };
    if (!p.id)
        FAIL("there was no run to claim: %.*s", BYTES_ARG(a.body));
    return p;
}

struct run_pass run_claim(struct web *w)
{
    return run_of(POST(w, "/v1/work/claim", "{\"worker\":\"w1\",\"steps\":true}"));
}

struct web_answer step_send(struct web *w, const struct run_pass *p, const char *steps)
{
    return POST(
        w, "/v1/work/steps",
        web_text("{\"lease\":\"%s\",\"id\":\"%s\",\"steps\":[%s]}", p->lease, p->id, steps));
}

void run_finish(struct web *w, const struct run_pass *p, const char *members, const char *status)
{
    struct web_answer a = POST(
        w, "/v1/work/finish",
        web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"%s\",%s}]}", p->lease, p->id, members));
    stored(a, 200);
    EQ_STR(AT(a, "results.0.status"), status);
}

void stored(struct web_answer a, int status)
{
    if (a.status != status)
        FAIL("%d, not %d: %.*s", a.status, status, BYTES_ARG(a.body));
}

void refused(struct web_answer a, int status, const char *code)
{
    stored(a, status);
    EQ_STR(AT(a, "error.code"), code);
}

int64_t web_now(struct web *w)
{
    int64_t us = 0;
    TRUE(time_parse(bytes_of(AT(GET(w, "/v1/info"), "now")), &us));
    return us;
}
