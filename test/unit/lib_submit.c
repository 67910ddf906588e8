/*
 * lib_submit.c - submitting through pawl.h: one, many, all or none, known ids, ids whose call is
 * gone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"

RUNS_ON(ENGINES_ALL)

TEST(one_call_is_pending_and_shown_as_given)
{
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .client = "shop" });
    struct pawl_tag tags[] = { { "a", "1" }, { "b", "" } };
    fixture_submit_as(p, (struct pawl_spec){ .id = "x",
                                             .type = "mail",
                                             .method = "send",
                                             .queue = "slow",
                                             .input = PAWL_TEXT("{ \"to\": 1 }"),
                                             .priority = -3,
                                             .max_attempts = 7,
                                             .max_lost = 2,
                                             .timeout_us = 5 * FIXTURE_SEC,
                                             .caller = "me",
                                             .parent = "y",
                                             .tags = tags,
                                             .n_tags = 2 });
    struct pawl_shown *shown = fixture_get(p, "x");
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_STR(v->id, "x");
    EQ_STR(v->type, "mail");
    EQ_STR(v->method, "send");
    EQ_STR(v->queue, "slow");
    EQ_STR(v->caller, "me");
    EQ_STR(v->parent, "y");
    EQ_STR(v->client, "shop");
    EQ_STR(v->waiting_for, "worker");
    EQ_BYTES(v->input.data, v->input.len, "{ \"to\": 1 }", 11);
    EQ_INT(v->input.form, PAWL_JSON);
    EQ_INT(v->result.form, PAWL_NOTHING);
    EQ_INT(v->state, PAWL_PENDING);
    EQ_INT(v->priority, -3);
    EQ_INT(v->max_attempts, 7);
    EQ_INT(v->max_lost, 2);
    EQ_INT(v->timeout_us, 5 * FIXTURE_SEC);
    EQ_INT((int)v->n_tags, 2);
    EQ_STR(v->tags[0].name, "a");
    EQ_STR(v->tags[1].value, "");
    GT_INT(v->created_at_us, 0);
    EQ_INT(v->finished_at_us, 0);
    pawl_shown_free(shown);
    pawl_close(p);
}

/* PAWL_TEXT(line) with a pointer once stored only its first seven bytes. */
TEST(a_string_at_run_time_is_stored_whole)
{
    struct pawl *p = fixture_open(param);
    char line[] = "{\"name\": \"longer than a pointer\"} and what is cut off";
    line[33] = 0;
    struct pawl_data input = pawl_text(line);
    EQ_INT(input.form, PAWL_JSON);
    EQ_PTR(input.data, line);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .input = input });
    fixture_submit_as(p, (struct pawl_spec){ .id = "none", .type = "t", .input = pawl_text(NULL) });
    struct pawl_shown *x = fixture_get(p, "x"), *none = fixture_get(p, "none");
    struct pawl_data got = pawl_shown_view(x)->input;
    EQ_BYTES(got.data, got.len, "{\"name\": \"longer than a pointer\"}", 33);
    EQ_INT(pawl_shown_view(none)->input.form, PAWL_NOTHING);
    pawl_shown_free(x);
    pawl_shown_free(none);
    pawl_close(p);
}

TEST(without_an_id_the_library_makes_one)
{
    struct pawl *p = fixture_open(param);
    struct pawl_receipt a = fixture_offer(p, (struct pawl_spec){ .type = "t" });
    struct pawl_receipt b = fixture_offer(p, (struct pawl_spec){ .type = "t" });
    EQ_INT((int)strlen(a.id), 36);
    NE_INT(strcmp(a.id, b.id), 0);
    EQ_INT(b.seq, a.seq + 1);
    EQ_INT(fixture_state(p, a.id), PAWL_PENDING);
    pawl_close(p);
}

TEST(a_duplicate_is_told_and_stores_nothing)
{
    struct pawl *p = fixture_open(param);
    struct pawl_spec s = { .id = "x", .type = "t", .input = PAWL_TEXT("{\"a\":1,\"b\":2}") };
    struct pawl_receipt a = fixture_offer(p, s);
    s.input = PAWL_TEXT("{ \"b\": 2, \"a\": 1 }"); /* the same content, written differently */
    s.queue = "elsewhere";                         /* options are not part of the content */
    struct pawl_receipt b = fixture_offer(p, s);
    EQ_STATUS(b.status, PAWL_OK, NULL);
    FALSE(a.duplicate);
    TRUE(b.duplicate);
    EQ_INT(b.seq, a.seq);
    EQ_INT(b.state, PAWL_PENDING);
    EQ_INT(fixture_count(p, 0), 1);
    struct pawl_stats st = { PAWL_STATS_INIT };
    pawl_stats(p, &st);
    EQ_INT(st.accepted, 1);
    EQ_INT(st.duplicates, 1);
    pawl_close(p);
}

TEST(the_same_id_with_other_content_is_a_conflict)
{
    struct pawl *p = fixture_open(param);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .input = PAWL_TEXT("1") });
    const struct pawl_spec others[] = {
        { .id = "x", .type = "t", .input = PAWL_TEXT("2") },
        { .id = "x", .type = "u", .input = PAWL_TEXT("1") },
        { .id = "x", .type = "t", .method = "m", .input = PAWL_TEXT("1") },
        { .id = "x", .type = "t", .input = { PAWL_BYTES, "1", 1 } },
        { .id = "x", .type = "t" },
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct pawl_receipt r = fixture_offer(p, others[i]);
        EQ_STATUS(r.status, PAWL_CONFLICT, NULL);
        HAS_STR(r.error, "\"x\" already exists");
        FALSE(r.duplicate);
    }
    EQ_INT(fixture_count(p, 0), 1);
    pawl_close(p);
}

TEST(a_batch_answers_each_call)
{
    struct pawl *p = fixture_open(param);
    fixture_submit_as(p, (struct pawl_spec){ .id = "old", .type = "t", .input = PAWL_TEXT("1") });
    struct pawl_spec v[] = {
        { PAWL_SPEC_INIT, .id = "new", .type = "t" },
        { PAWL_SPEC_INIT, .id = "old", .type = "t", .input = PAWL_TEXT("1") },
        { PAWL_SPEC_INIT, .id = "old", .type = "t", .input = PAWL_TEXT("2") },
        { PAWL_SPEC_INIT, .id = "bad", .type = "" },
        { PAWL_SPEC_INIT, .id = "new", .type = "t" },
        { PAWL_SPEC_INIT, .id = "new2", .type = "t", .input = { PAWL_JSON, "{", 1 } },
        { PAWL_SPEC_INIT, .id = "new3", .type = "t" },
    };
    struct pawl_receipt r[7];
    struct pawl_err err;
    OK(pawl_submit(p, v, 7, 0, r, &err), &err);
    EQ_STATUS(r[0].status, PAWL_OK, NULL);
    TRUE(r[1].status == PAWL_OK && r[1].duplicate);
    EQ_STATUS(r[2].status, PAWL_CONFLICT, NULL);
    EQ_STATUS(r[3].status, PAWL_INVALID, NULL);
    TRUE(r[4].status == PAWL_OK && r[4].duplicate);
    EQ_STATUS(r[5].status, PAWL_INVALID, NULL);
    TRUE(r[6].status == PAWL_OK && !r[6].duplicate);
    EQ_STR(r[3].id, "bad");
    EQ_INT(fixture_count(p, 0), 3);
    pawl_close(p);
}

TEST(an_atomic_batch_is_all_or_nothing)
{
    struct pawl *p = fixture_open(param);
    fixture_submit_as(p, (struct pawl_spec){ .id = "old", .type = "t", .input = PAWL_TEXT("1") });
    struct pawl_spec v[] = {
        { PAWL_SPEC_INIT, .id = "a", .type = "t" },
        { PAWL_SPEC_INIT, .id = "old", .type = "t", .input = PAWL_TEXT("2") },
        { PAWL_SPEC_INIT, .id = "b", .type = "t" },
    };
    struct pawl_receipt r[3];
    struct pawl_err err;
    EQ_STATUS(pawl_submit(p, v, 3, PAWL_ATOMIC, r, &err), PAWL_CONFLICT, &err);
    EQ_INT(fixture_count(p, 0), 1);
    v[1] = (struct pawl_spec){ PAWL_SPEC_INIT, .id = "x", .type = "t", .max_attempts = -1 };
    EQ_STATUS(pawl_submit(p, v, 3, PAWL_ATOMIC, r, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "call 1 of the batch");
    EQ_INT(fixture_count(p, 0), 1);
    v[1] = (struct pawl_spec){ PAWL_SPEC_INIT, .id = "old", .type = "t", .input = PAWL_TEXT("1") };
    OK(pawl_submit(p, v, 3, PAWL_ATOMIC, r, &err), &err);
    TRUE(r[1].duplicate);
    EQ_INT(fixture_count(p, 0), 3);
    pawl_close(p);
}

/* Zeroed receipts would read as OK: after a refusal none may. */
TEST(no_receipt_of_a_refused_atomic_batch_says_ok)
{
    struct pawl *p = fixture_open(param);
    fixture_submit_as(p, (struct pawl_spec){ .id = "old", .type = "t", .input = PAWL_TEXT("1") });
    struct pawl_spec v[] = {
        { PAWL_SPEC_INIT, .id = "a", .type = "t" },
        { PAWL_SPEC_INIT, .id = "b", .type = "" },
        { PAWL_SPEC_INIT, .id = "c", .type = "t" },
    };
    struct pawl_receipt r[3] = { 0 };
    struct pawl_err err;
    EQ_STATUS(pawl_submit(p, v, 3, PAWL_ATOMIC, r, &err), PAWL_INVALID, &err);
    for (int i = 0; i < 3; i++)
        NE_INT(r[i].status, PAWL_OK);
    v[1] = (struct pawl_spec){ PAWL_SPEC_INIT, .id = "old", .type = "t" };
    memset(r, 0, sizeof r);
    EQ_STATUS(pawl_submit(p, v, 3, PAWL_ATOMIC, r, &err), PAWL_CONFLICT, &err);
    for (int i = 0; i < 3; i++)
        NE_INT(r[i].status, PAWL_OK);
    pawl_close(p);
}

TEST(bytes_and_nothing_come_through_as_they_are)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 2);
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "b", .type = "t", .input = { PAWL_BYTES, "\0\xff", 2 } });
    fixture_submit_as(p,
                      (struct pawl_spec){ .id = "e", .type = "t", .input = { PAWL_BYTES, "", 0 } });
    fixture_submit_as(p, (struct pawl_spec){ .id = "n", .type = "t" });
    fixture_drain(p);
    struct pawl_shown *b = fixture_get(p, "b"), *e = fixture_get(p, "e"), *n = fixture_get(p, "n");
    EQ_INT(pawl_shown_view(b)->result.form, PAWL_BYTES);
    EQ_BYTES(pawl_shown_view(b)->result.data, pawl_shown_view(b)->result.len, "\0\xff", 2);
    EQ_INT(pawl_shown_view(e)->result.form, PAWL_BYTES);
    EQ_INT((int)pawl_shown_view(e)->result.len, 0);
    EQ_INT(pawl_shown_view(n)->result.form, PAWL_NOTHING);
    pawl_shown_free(b);
    pawl_shown_free(e);
    pawl_shown_free(n);
    pawl_close(p);
}

static int64_t removed, forgotten; /* by collect(), in all */

static bool collect(struct pawl *p)
{
    int64_t r, f;
    struct pawl_err err;
    OK(pawl_gc(p, 100, &r, &f, &err), &err);
    removed += r;
    forgotten += f;
    return true;
}

TEST(after_retention_the_id_is_gone_and_later_new)
{
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .retention_us = 50 * FIXTURE_MS,
                                                      .remember_us = 400 * FIXTURE_MS });
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "kept", .type = "t", .keep_us = 3600 * FIXTURE_SEC });
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "later", .type = "t", .delay_us = 3600 * FIXTURE_SEC });
    fixture_ends(p, "x", PAWL_COMPLETED);
    struct pawl_err err;
    struct pawl_shown *shown;
    UNTIL(collect(p) && removed == 1);
    if (!forgotten) {
        EQ_STATUS(pawl_get(p, "x", 0, &shown, &err), PAWL_GONE, &err);
        HAS_STR(err.text, "completed");
        struct pawl_receipt r = fixture_offer(p, (struct pawl_spec){ .id = "x", .type = "t" });
        EQ_STATUS(r.status, PAWL_GONE, NULL);
        r = fixture_offer(p, (struct pawl_spec){ .id = "x", .type = "u" });
        EQ_STATUS(r.status, PAWL_CONFLICT, NULL);
        UNTIL(collect(p) && forgotten == 1);
    }
    EQ_STATUS(pawl_get(p, "x", 0, &shown, &err), PAWL_NOT_FOUND, &err);
    EQ_INT(fixture_ended(p, "kept"), PAWL_COMPLETED);
    EQ_INT(fixture_state(p, "later"), PAWL_PENDING);
    fixture_submit(p, "x", "t");
    fixture_ends(p, "x", PAWL_COMPLETED);
    EQ_INT(atomic_load(&fixture_runs), 3);
    pawl_close(p);
}

TEST(the_library_collects_by_itself)
{
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .retention_us = 1,
                                                      .remember_us = 3600 * FIXTURE_SEC,
                                                      .gc_interval_us = 20 * FIXTURE_MS });
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 2);
    fixture_submit_many(p, "t", 300);
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "later", .type = "t", .delay_us = 3600 * FIXTURE_SEC });
    UNTIL(fixture_count(p, 0) == 1);
    EQ_INT(fixture_state(p, "later"), PAWL_PENDING);
    pawl_close(p);
}

TEST(a_submit_through_another_handle_is_known_here)
{
    struct pawl *a = fixture_open(param),
                *b = fixture_open_as(param, (struct pawl_options){ .node = "b" });
    fixture_submit(a, "x", "t");
    struct pawl_receipt r = fixture_offer(b, (struct pawl_spec){ .id = "x", .type = "t" });
    TRUE(r.duplicate);
    pawl_close(a);
    EQ_INT(fixture_state(b, "x"), PAWL_PENDING);
    pawl_close(b);
}
