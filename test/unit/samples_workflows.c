/*
 * samples_workflows.c - the modules order and approval, as users run them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "steps_fixture.h"

RUNS_ON(ENGINES_DURABLE)

#define SAMPLES PAWL_BUILD_DIR "/samples/"

static struct pawl *host(void *param, const char *module)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    OK(pawl_load(p, module, &err), &err);
    fixture_start(p, 8);
    return p;
}

static void submit(struct pawl *p, const char *id, const char *type, const char *method,
                   const char *input)
{
    fixture_submit_as(p, (struct pawl_spec){
                             .id = id, .type = type, .method = method, .input = pawl_text(input) });
}

/* Assert what the tables of the shop have in all. */
static void books_say(struct pawl *p, const char *id, const char *json)
{
    submit(p, id, "order", "books", "1");
    steps_complete(p, id, json);
}

#define ORDER "{\"item\":\"pen\",\"n\":2,\"account\":\"ann\",\"cents\":50,\"cool_off\":0"

TEST(an_order_is_shipped_or_given_back)
{
    struct pawl *p = host(param, SAMPLES "order.so");
    struct pawl_err err;
    submit(p, "s", "order", "shop", "{\"item\":\"pen\",\"n\":5,\"account\":\"ann\",\"cents\":90}");
    fixture_ends(p, "s", PAWL_COMPLETED);
    submit(p, "a", "order", "run", ORDER "}");
    UNTIL(steps_wait(p, "a", "signal"));
    books_say(p, "b1", "{\"n\":3,\"cents\":40}");
    steps_signal(p, "a", "shipped", "null");
    steps_complete(p, "a", "{\"paid\":50}");
    fixture_ends(p, "a.mail.1", PAWL_COMPLETED);
    /* The goods are there, the money is not: the goods are given back. */
    submit(p, "b", "order", "run", ORDER "}");
    steps_end(p, "b", PAWL_FAILED, "too little money");
    books_say(p, "b2", "{\"n\":3,\"cents\":40}");
    submit(p, "c", "order", "run",
           "{\"item\":\"pen\",\"n\":1,\"account\":\"ann\",\"cents\":10,\"ship_within\":1}");
    steps_end(p, "c", PAWL_FAILED, "not shipped in time");
    books_say(p, "b3", "{\"n\":3,\"cents\":40}");
    submit(p, "d", "order", "run", "{\"item\":\"pen\",\"n\":1,\"account\":\"ann\",\"cents\":10}");
    UNTIL(steps_wait(p, "d", "signal"));
    OK(pawl_workflow_cancel(p, "d", 0, NULL, &err), &err);
    fixture_ends(p, "d", PAWL_CANCELLED);
    books_say(p, "b4", "{\"n\":3,\"cents\":40}");
    pawl_close(p);
}

TEST(an_approval_waits_for_its_reviewers)
{
    struct pawl *p = host(param, SAMPLES "approval.so");
    submit(p, "a", "approval", NULL, "{\"reviewers\":2,\"within\":600}");
    UNTIL(steps_wait(p, "a", "signal"));
    steps_signal(p, "a.review#1", "answer", "true");
    steps_signal(p, "a.review#2", "answer", "true");
    steps_complete(p, "a", "{\"approved\":true,\"yes\":2}");
    submit(p, "b", "approval", NULL, "{\"reviewers\":2,\"within\":1}");
    UNTIL(steps_wait(p, "b", "signal"));
    steps_signal(p, "b.review#1", "answer", "true");
    steps_complete(p, "b", "{\"approved\":false,\"yes\":1}");
    submit(p, "c", "approval", NULL, "{\"reviewers\":3,\"within\":600}");
    UNTIL(steps_wait(p, "c", "signal"));
    steps_signal(p, "c", "withdraw", "null");
    steps_end(p, "c", PAWL_FAILED, "withdrawn");
    fixture_ends(p, "c.review#3", PAWL_CANCELLED);
    pawl_close(p);
}
