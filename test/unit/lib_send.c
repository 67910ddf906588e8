/*
 * lib_send.c - calls that a handler sends with its outcome, and calls that it submits and waits
 * for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "fixture.h"

RUNS_ON(ENGINES_ALL)

/* ---- Sent calls ---- */

static int sends_two(struct pawl_call *c)
{
    struct pawl_err err;
    int64_t fail = 0;
    struct pawl_spec s = { PAWL_SPEC_INIT, .type = "child", .input = PAWL_TEXT("{\"n\":1}") };
    OK(pawl_send(c, &s, &err), &err);
    s.id = "named";
    s.input = PAWL_TEXT("{\"n\":2}");
    OK(pawl_send(c, &s, &err), &err);
    EQ_STR(pawl_sent_id(c, 1), "named");
    EQ_PTR(pawl_sent_id(c, 2), NULL);
    if (pawl_input_get_int(c, "fail", &fail) == 0 && fail >= pawl_call_attempt_no(c))
        return pawl_fail(c, "after sending");
    return pawl_reply_text(c, pawl_sent_id(c, 0));
}

TEST(sent_calls_are_accepted_with_the_outcome)
{
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .client = "shop" });
    fixture_on(p, "t", sends_two);
    fixture_on(p, "child", fixture_echo);
    fixture_start(p, 2);
    fixture_submit(p, "x", "t");
    fixture_ends(p, "x", PAWL_COMPLETED);
    fixture_ends(p, "x.1", PAWL_COMPLETED);
    fixture_ends(p, "named", PAWL_COMPLETED);
    struct pawl_shown *shown = fixture_get(p, "x.1");
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_STR(v->parent, "x");
    EQ_STR(v->client, "shop");
    EQ_BYTES(v->result.data, v->result.len, "{\"n\":1}", 7);
    pawl_shown_free(shown);
    EQ_INT(fixture_count(p, 0), 3);
    pawl_close(p);
}

TEST(an_attempt_that_fails_has_sent_nothing)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", sends_two);
    fixture_start(p, 1);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x",
                                             .type = "t",
                                             .input = PAWL_TEXT("{\"fail\":9}"),
                                             .max_attempts = 2,
                                             .backoff_base_us = 1 });
    fixture_ends(p, "x", PAWL_DEAD_LETTER);
    EQ_INT(fixture_count(p, 0), 1);
    fixture_submit_as(
        p, (struct pawl_spec){
               .id = "y", .type = "t", .input = PAWL_TEXT("{\"fail\":1}"), .backoff_base_us = 1 });
    fixture_ends(p, "y", PAWL_COMPLETED);
    EQ_INT(fixture_state(p, "y.1"), PAWL_PENDING);
    EQ_INT(fixture_count(p, 0), 4);
    pawl_close(p);
}

TEST(a_sent_id_that_means_something_else_fails_the_sender)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", sends_two);
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "named", .type = "child", .input = PAWL_TEXT("0") });
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    fixture_ends(p, "x", PAWL_FAILED);
    struct pawl_shown *shown = fixture_get(p, "x");
    HAS_STR(pawl_shown_view(shown)->error, "\"named\" already exists with other content");
    pawl_shown_free(shown);
    EQ_INT(fixture_count(p, 0), 2); /* x.1 was not stored either */
    pawl_close(p);
}

TEST(a_sent_call_that_is_known_already_is_fine)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", sends_two);
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "named", .type = "child", .input = PAWL_TEXT("{\"n\": 2}") });
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    fixture_ends(p, "x", PAWL_COMPLETED);
    EQ_INT(fixture_count(p, 0), 3);
    pawl_close(p);
}

/* Everything it sends is on a stack frame that is gone when the outcome is stored. */
static int sends_from_stack(struct pawl_call *c)
{
    char type[32] = "child", id[8] = "kid", input[8] = "[7]", queue[8] = "q", caller[8] = "me";
    char parent[8] = "other", name[8] = "tag", value[8] = "val";
    char trace[] = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
    struct pawl_tag tag = { name, value };
    struct pawl_err err;
    struct pawl_spec s = { PAWL_SPEC_INIT,   .type = type,
                           .id = id,         .input = { PAWL_JSON, input, 3 },
                           .queue = queue,   .caller = caller,
                           .parent = parent, .traceparent = trace,
                           .tags = &tag,     .n_tags = 1 };
    OK(pawl_send(c, &s, &err), &err);
    char *all[] = { type, id, input, queue, caller, parent, name, value, trace };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        memset(all[i], '#', strlen(all[i]));
    return 0;
}

TEST(pawl_send_copies_what_it_is_given)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", sends_from_stack);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    fixture_ends(p, "x", PAWL_COMPLETED);
    struct pawl_shown *shown = fixture_get(p, "kid");
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_STR(v->type, "child");
    EQ_STR(v->queue, "q");
    EQ_STR(v->caller, "me");
    EQ_BYTES(v->input.data, v->input.len, "[7]", 3);
    EQ_STR(v->parent, "other");
    HAS_STR(v->traceparent, "00-0123");
    EQ_INT((int)v->n_tags, 1);
    EQ_STR(v->tags[0].name, "tag");
    EQ_STR(v->tags[0].value, "val");
    pawl_shown_free(shown);
    pawl_close(p);
}

static int sends_many(struct pawl_call *c)
{
    struct pawl_err err;
    for (int i = 0; i < 10000; i++)
        OK(pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "child" }, &err), &err);
    EQ_STATUS(pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "child" }, &err), PAWL_FULL,
              &err);
    EQ_STATUS(pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "" }, &err), PAWL_FULL,
              &err);
    return 0;
}

TEST(ten_thousand_calls_are_sent_and_not_one_more)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", sends_many);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    fixture_ends(p, "x", PAWL_COMPLETED);
    EQ_INT(fixture_count(p, PAWL_PENDING), 10000);
    EQ_INT(fixture_state(p, "x.10000"), PAWL_PENDING);
    pawl_close(p);
}

/* ---- Calls that a handler waits for ---- */

static int asks(struct pawl_call *c)
{
    const struct pawl_view *v;
    struct pawl_err err;
    int64_t sum = 0;
    for (int i = 0; i < 2; i++) {
        struct pawl_spec s = { PAWL_SPEC_INIT, .type = "child", .input = PAWL_TEXT("21") };
        OK(pawl_ask(c, &s, &v, &err), &err);
        EQ_INT(v->state, PAWL_COMPLETED);
        EQ_BYTES(v->result.data, v->result.len, "21", 2);
        sum += 21;
    }
    EQ_STR(v->type, "child");
    if (pawl_call_attempt_no(c) == 1 && pawl_input(c).form == PAWL_NOTHING)
        return pawl_fail(c, "once more");
    return pawl_reply_json(c, "{\"sum\":%d,\"last\":\"%s\"}", (int)sum, v->id);
}

TEST(asked_calls_are_remembered_over_attempts)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", asks);
    fixture_on(p, "child", fixture_echo);
    /* The waiting thread is replaced; otherwise no slot would be free to answer it. */
    fixture_start(p, 1);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .backoff_base_us = 1 });
    fixture_ends(p, "x", PAWL_COMPLETED);
    struct pawl_shown *shown = fixture_get(p, "x");
    EQ_BYTES(pawl_shown_view(shown)->result.data, pawl_shown_view(shown)->result.len,
             "{\"sum\":42,\"last\":\"x.ask.2\"}", 27);
    pawl_shown_free(shown);
    EQ_INT(atomic_load(&fixture_runs), 2); /* the second attempt asked again and was answered */
    EQ_INT(fixture_count(p, 0), 3);
    pawl_close(p);
}

TEST(many_asks_with_few_slots_do_not_block_one_another)
{
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .reclaim_interval_us = 30 * FIXTURE_SEC });
    fixture_on(p, "t", asks);
    fixture_on(p, "child", fixture_echo);
    fixture_start(p, 2);
    for (int i = 0; i < 40; i++)
        fixture_submit_as(p, (struct pawl_spec){ .type = "t", .input = PAWL_TEXT("1") });
    int64_t begun = fixture_mono();
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 120);
    LT_INT(fixture_mono() - begun, 15 * FIXTURE_SEC * check_scale());
    pawl_close(p);
}

static int asks_deep(struct pawl_call *c)
{
    int64_t n = 0;
    const struct pawl_view *v;
    struct pawl_err err;
    char text[32];
    EQ_INT(pawl_input_int(c, &n), 0);
    if (n == 0)
        return pawl_reply_int(c, 0);
    snprintf(text, sizeof text, "%d", (int)n - 1);
    struct pawl_spec s = { PAWL_SPEC_INIT, .type = "t",
                           .input = { PAWL_JSON, text, strlen(text) } };
    OK(pawl_ask(c, &s, &v, &err), &err);
    EQ_INT(v->state, PAWL_COMPLETED);
    return pawl_reply(c, v->result);
}

TEST(asks_can_be_nested)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", asks_deep);
    fixture_start(p, 1);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .input = PAWL_TEXT("20") });
    fixture_ends(p, "x", PAWL_COMPLETED);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 21);
    pawl_close(p);
}

static int asks_nobody(struct pawl_call *c)
{
    const struct pawl_view *v;
    atomic_fetch_add(&fixture_inside, 1);
    struct pawl_spec s = { PAWL_SPEC_INIT, .type = "nobody" };
    enum pawl_status st = pawl_ask(c, &s, &v, NULL);
    if (st != PAWL_OK || v->state != PAWL_COMPLETED)
        return pawl_fail(c, "no answer");
    return 0;
}

/* A cancel or a stop reaches a handler that waits for an answer, as it reaches one that sleeps. */
TEST(a_handler_that_asks_notices_a_cancel)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", asks_nobody);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    UNTIL(atomic_load(&fixture_inside) == 1);
    int64_t begun = fixture_mono();
    OK(pawl_cancel(p, "x", NULL, NULL), NULL);
    fixture_ends(p, "x", PAWL_CANCELLED);
    LT_INT(fixture_mono() - begun, 10 * FIXTURE_SEC * check_scale());
    pawl_close(p);
}

TEST(a_stop_does_not_wait_for_an_ask_nobody_answers)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", asks_nobody);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    UNTIL(atomic_load(&fixture_inside) == 1);
    UNTIL(pawl_stop(p, 0, NULL) == PAWL_OK);
    struct pawl_shown *shown = fixture_get(p, "x");
    EQ_INT(pawl_shown_view(shown)->state, PAWL_PENDING);
    EQ_INT(pawl_shown_view(shown)->attempts + pawl_shown_view(shown)->lost, 0);
    pawl_shown_free(shown);
    pawl_close(p);
}

static int asks_wrongly(struct pawl_call *c)
{
    const struct pawl_view *v;
    struct pawl_err err;
    EQ_STATUS(pawl_ask(c, NULL, &v, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_ask(c, &(struct pawl_spec){ PAWL_SPEC_INIT }, &v, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_ask(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "t" }, NULL, &err),
              PAWL_INVALID, &err);
    EQ_STATUS(pawl_send(c, NULL, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_send(c, &(struct pawl_spec){ .size = 8 }, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "t", .key = "\n" }, &err),
              PAWL_INVALID, &err);
    int64_t n = 3;
    bool b;
    const char *text;
    struct pawl_data d;
    NE_INT(pawl_input_get_int(c, "n", &n), 0);
    NE_INT(pawl_input_get_int(c, NULL, &n), 0);
    NE_INT(pawl_input_get_bool(c, NULL, &b), 0);
    NE_INT(pawl_input_get_text(c, NULL, &text), 0);
    NE_INT(pawl_input_get_json(c, NULL, &d), 0);
    EQ_INT(n, 3);
    atomic_fetch_add(&fixture_runs, 1);
    return pawl_reply_text(c, NULL);
}

TEST(misuse_inside_a_handler_is_told)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", asks_wrongly);
    fixture_start(p, 1);
    fixture_submit_as(p, (struct pawl_spec){
                             .id = "x", .type = "t", .input = PAWL_TEXT("{}"), .max_attempts = 1 });
    TRUE(pawl_state_ended(fixture_ended(p, "x")));
    EQ_INT(atomic_load(&fixture_runs), 1);
    EQ_INT(fixture_count(p, 0), 1);
    pawl_close(p);
}

static int replies_nothing_long(struct pawl_call *c)
{
    atomic_fetch_add(&fixture_runs, 1);
    return pawl_reply(c, (struct pawl_data){ PAWL_BYTES, NULL, 100 });
}

TEST(a_reply_of_no_bytes_that_claims_a_length_reads_nothing)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", replies_nothing_long);
    fixture_start(p, 1);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .max_attempts = 1 });
    fixture_ends(p, "x", PAWL_FAILED);
    pawl_close(p);
}

static int replies_edge(struct pawl_call *c)
{
    static char big[(1 << 20) + 1];
    int64_t over = 0;
    memset(big, 'b', sizeof big);
    EQ_INT(pawl_input_int(c, &over), 0);
    return pawl_reply(c, (struct pawl_data){ PAWL_BYTES, big, (1 << 20) + (size_t)over });
}

TEST(a_result_of_one_mebibyte_is_stored_and_one_byte_more_is_not)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", replies_edge);
    fixture_start(p, 1);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .input = PAWL_TEXT("0") });
    fixture_submit_as(p, (struct pawl_spec){ .id = "y", .type = "t", .input = PAWL_TEXT("1") });
    fixture_ends(p, "x", PAWL_COMPLETED);
    fixture_ends(p, "y", PAWL_FAILED);
    struct pawl_shown *shown = fixture_get(p, "x");
    EQ_INT((int)pawl_shown_view(shown)->result.len, 1 << 20);
    pawl_shown_free(shown);
    shown = fixture_get(p, "y");
    HAS_STR(pawl_shown_view(shown)->error, "1048577 bytes, limit 1048576");
    pawl_shown_free(shown);
    pawl_close(p);
}
