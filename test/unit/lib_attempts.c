/*
 * lib_attempts.c - how attempts end through pawl.h: replies, errors with backoff, refusals, later,
 * timeouts, hangs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"

RUNS_ON(ENGINES_ALL)

/* ---- Codes and answers ---- */

static int by_input(struct pawl_call *c)
{
    int64_t what = -1;
    atomic_fetch_add(&fixture_runs, 1);
    if (pawl_input_int(c, &what))
        return pawl_refuse(c, "no number");
    switch (what) {
    case 0:
        return 0;
    case 1:
        return pawl_reply_text(c, "a \"b\" \xc3\xa4\n");
    case 2:
        return pawl_reply_int(c, -5);
    case 3:
        return pawl_reply_json(c, "{\"n\":%d}", 7);
    case 4:
        return pawl_reply_json(c, "{not json");
    case 5:
        return pawl_refuse(c, "never %d", 5);
    case 6:
        return 99;
    case 7:
        pawl_fail(c, "said, not returned");
        return 0;
    case 8:
        pawl_reply_int(c, 1);
        return pawl_fail(c, "after all");
    default:
        return pawl_fail(c, "no such case");
    }
}

TEST(what_a_handler_returns_decides)
{
    static const struct {
        const char *input;
        enum pawl_state state;
        const char *result, *error;
    } cases[] = {
        { "0", PAWL_COMPLETED, "", NULL },
        { "1", PAWL_COMPLETED, "\"a \\\"b\\\" \xc3\xa4\\n\"", NULL },
        { "2", PAWL_COMPLETED, "-5", NULL },
        { "3", PAWL_COMPLETED, "{\"n\":7}", NULL },
        { "4", PAWL_FAILED, "", "its result is not JSON" },
        { "5", PAWL_FAILED, "", "never 5" },
        { "6", PAWL_FAILED, "", "the handler returned 99" },
        { "7", PAWL_COMPLETED, "", NULL },
        { "8", PAWL_FAILED, "", "after all" },
        { "\"x\"", PAWL_FAILED, "", "no number" },
    };
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", by_input);
    fixture_start(p, 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pawl_shown *shown;
        struct pawl_err err;
        struct pawl_spec s = { PAWL_SPEC_INIT, .type = "t", .max_attempts = 1 };
        s.input = (struct pawl_data){ PAWL_JSON, cases[i].input, strlen(cases[i].input) };
        OK(pawl_submit_wait(p, &s, 60 * FIXTURE_SEC, &shown, &err), &err);
        const struct pawl_view *v = pawl_shown_view(shown);
        EQ_STR(pawl_state_name(v->state), pawl_state_name(cases[i].state));
        EQ_BYTES(v->result.data ? v->result.data : "", v->result.len, cases[i].result,
                 strlen(cases[i].result));
        if (cases[i].error)
            HAS_STR(v->error, cases[i].error);
        else
            EQ_STR(v->error, NULL);
        pawl_shown_free(shown);
    }
    pawl_close(p);
}

TEST(a_method_nobody_has_is_an_error)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 1);
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "x", .type = "t", .method = "m", .max_attempts = 1 });
    fixture_ends(p, "x", PAWL_FAILED);
    struct pawl_shown *shown = fixture_get(p, "x");
    EQ_STR(pawl_shown_view(shown)->error, "t has no method \"m\" on node \"fixture\"");
    pawl_shown_free(shown);
    pawl_close(p);
}

/* ---- Retries ---- */

enum { TIMES_MAX = 16 };
static _Atomic int64_t times[TIMES_MAX];
static atomic_int n_times;

static void note_time(void)
{
    int n = atomic_fetch_add(&n_times, 1);
    if (n < TIMES_MAX)
        atomic_store(&times[n], fixture_mono());
}

static int fails_notes(struct pawl_call *c)
{
    note_time();
    EQ_INT(pawl_call_attempt_no(c), atomic_load(&n_times));
    return pawl_fail(c, "try %d", pawl_call_attempt_no(c));
}

static int returns_7(struct pawl_call *c)
{
    (void)c;
    note_time();
    return 7;
}

/* Attempts are at least this far apart: the first two by base, the next by base * factor. */
static void check_backoff(struct pawl *p, const char *type)
{
    fixture_start(p, 1);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x",
                                             .type = type,
                                             .max_attempts = 3,
                                             .backoff_base_us = 150 * FIXTURE_MS,
                                             .backoff_factor = 2,
                                             .backoff_jitter = -1 });
    fixture_ends(p, "x", PAWL_DEAD_LETTER);
    EQ_INT(atomic_load(&n_times), 3);
    GE_INT(times[1] - times[0], 149 * FIXTURE_MS);
    GE_INT(times[2] - times[1], 299 * FIXTURE_MS);
    LT_INT(times[2] - times[0], 10 * FIXTURE_SEC * check_scale());
}

TEST(errors_are_retried_with_backoff)
{
    struct pawl *p = fixture_open(param);
    struct pawl_attempts *a;
    fixture_on(p, "t", fails_notes);
    check_backoff(p, "t");
    OK(pawl_attempts(p, "x", &a, NULL), NULL);
    EQ_INT((int)a->n, 3);
    EQ_STR(a->v[0].error, "try 1");
    EQ_STR(a->v[2].error, "try 3");
    EQ_INT(a->v[2].try_no, 3);
    EQ_STR(a->v[1].kind, "error");
    EQ_STR(a->v[1].node, "fixture");
    LE_INT(a->v[0].finished_at_us, a->v[1].started_at_us);
    pawl_attempts_free(a);
    pawl_close(p);
}

TEST(a_plain_return_code_is_retried_with_backoff_too)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", returns_7);
    check_backoff(p, "t");
    pawl_close(p);
}

TEST(a_call_that_waits_for_its_retry_says_so)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_fails);
    fixture_start(p, 1);
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "x", .type = "t", .backoff_base_us = 600 * FIXTURE_SEC });
    UNTIL(atomic_load(&fixture_runs) == 1 && fixture_state(p, "x") == PAWL_PENDING);
    struct pawl_shown *shown = fixture_get(p, "x");
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_STR(v->waiting_for, "retry");
    EQ_STR(v->error, "no luck with x");
    EQ_INT(v->attempts, 1);
    pawl_shown_free(shown);
    pawl_close(p);
}

static int later_twice(struct pawl_call *c)
{
    note_time();
    if (atomic_load(&n_times) < 3)
        return pawl_later(c, 50 * FIXTURE_MS);
    return pawl_reply_int(c, pawl_call_attempt_no(c));
}

TEST(later_counts_as_nothing)
{
    struct pawl *p = fixture_open(param);
    struct pawl_shown *shown;
    struct pawl_err err;
    fixture_on(p, "t", later_twice);
    fixture_start(p, 1);
    struct pawl_spec s = { PAWL_SPEC_INIT, .type = "t", .max_attempts = 1 };
    OK(pawl_submit_wait(p, &s, 60 * FIXTURE_SEC, &shown, &err), &err);
    EQ_BYTES(pawl_shown_view(shown)->result.data, pawl_shown_view(shown)->result.len, "1", 1);
    EQ_INT(pawl_shown_view(shown)->attempts, 0);
    GE_INT(times[1] - times[0], 49 * FIXTURE_MS);
    pawl_shown_free(shown);
    pawl_close(p);
}

/* ---- Time ---- */

/* The first attempt ignores the deadline and answers late; the second answers at once. */
static int late_first(struct pawl_call *c)
{
    if (pawl_call_attempt_no(c) == 2)
        return pawl_reply_int(c, 2);
    return fixture_blocks(c);
}

TEST(a_handler_that_ignores_its_deadline_is_replaced)
{
    struct pawl *p = fixture_open(param);
    struct pawl_attempts *a;
    struct pawl_stats st = { PAWL_STATS_INIT };
    fixture_on(p, "t", late_first);
    fixture_on(p, "u", fixture_echo);
    fixture_start(p, 1); /* One slot: only a replaced thread can go on. */
    fixture_submit_as(
        p, (struct pawl_spec){
               .id = "x", .type = "t", .timeout_us = FIXTURE_SEC, .backoff_base_us = FIXTURE_MS });
    fixture_ends(p, "x", PAWL_COMPLETED);
    fixture_submit(p, "y", "u");
    fixture_ends(p, "y", PAWL_COMPLETED);
    pawl_stats(p, &st);
    EQ_INT(st.hung, 1);
    fixture_open_gate(); /* Its late answer is void. */
    UNTIL((pawl_stats(p, &st), st.hung == 0 && st.running == 0));
    struct pawl_shown *shown = fixture_get(p, "x");
    EQ_BYTES(pawl_shown_view(shown)->result.data, pawl_shown_view(shown)->result.len, "2", 1);
    EQ_INT(pawl_shown_view(shown)->attempts, 1);
    pawl_shown_free(shown);
    OK(pawl_attempts(p, "x", &a, NULL), NULL);
    EQ_INT((int)a->n, 1);
    EQ_STR(a->v[0].kind, "timeout");
    HAS_STR(a->v[0].error, "took longer than its timeout of 1 s");
    pawl_attempts_free(a);
    pawl_close(p);
}

static int sees_deadline(struct pawl_call *c)
{
    atomic_fetch_add(&fixture_runs, 1);
    GT_INT(pawl_time_left_us(c), 0);
    LE_INT(pawl_time_left_us(c), 500 * FIXTURE_MS);
    EQ_INT(pawl_sleep(c, 600 * FIXTURE_SEC), 1);
    TRUE(pawl_cancelled(c));
    EQ_INT(pawl_time_left_us(c), 0);
    return pawl_reply_int(c, 1);
}

TEST(a_handler_that_sleeps_is_woken_by_its_deadline)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", sees_deadline);
    fixture_start(p, 1);
    fixture_submit_as(
        p, (struct pawl_spec){
               .id = "x", .type = "t", .timeout_us = 500 * FIXTURE_MS, .max_attempts = 1 });
    fixture_ends(p, "x", PAWL_FAILED);
    pawl_close(p);
}

/* A deadline takes effect soon after it passed, also when handlers start while housekeeping is
 * busy. */
TEST(deadlines_are_kept_soon)
{
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .reclaim_interval_us = 600 * FIXTURE_SEC });
    fixture_on(p, "t", sees_deadline);
    fixture_start(p, 8);
    int64_t begun = fixture_mono();
    for (int i = 0; i < 40; i++) {
        char id[32];
        snprintf(id, sizeof id, "x%d", i);
        fixture_submit_as(
            p, (struct pawl_spec){
                   .id = id, .type = "t", .timeout_us = 500 * FIXTURE_MS, .max_attempts = 1 });
    }
    fixture_drain(p);
    LT_INT(fixture_mono() - begun, 10 * FIXTURE_SEC * check_scale());
    pawl_close(p);
}

/* A node tolerates at most 64 hung handlers; when they return it claims again. */
TEST(a_node_full_of_hung_handlers_claims_no_more_until_they_return)
{
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .reclaim_interval_us = 600 * FIXTURE_SEC });
    struct pawl_stats st = { PAWL_STATS_INIT };
    fixture_on(p, "t", fixture_blocks);
    fixture_on(p, "u", fixture_echo);
    fixture_start(p, 8);
    for (int i = 0; i < 64; i++) {
        char id[32];
        snprintf(id, sizeof id, "x%d", i);
        fixture_submit_as(
            p, (struct pawl_spec){
                   .id = id, .type = "t", .timeout_us = 20 * FIXTURE_MS, .max_attempts = 1 });
    }
    UNTIL((pawl_stats(p, &st), st.hung == 64));
    fixture_submit(p, "y", "u");
    struct pawl_shown *shown;
    OK(pawl_get(p, "y", 300 * FIXTURE_MS, &shown, NULL), NULL);
    EQ_INT(pawl_shown_view(shown)->state, PAWL_PENDING);
    pawl_shown_free(shown);
    int64_t begun = fixture_mono();
    fixture_open_gate();
    fixture_ends(p, "y", PAWL_COMPLETED);
    LT_INT(fixture_mono() - begun, 15 * FIXTURE_SEC * check_scale());
    pawl_close(p);
}

/* The slots keep going: many more calls than a claim takes, one slot. */
TEST(a_backlog_drains_without_pauses)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 1);
    int64_t begun = fixture_mono();
    fixture_submit_many(p, "t", 2000);
    fixture_drain(p);
    EQ_INT(atomic_load(&fixture_runs), 2000);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 2000);
    LT_INT(fixture_mono() - begun, 15 * FIXTURE_SEC * check_scale());
    pawl_close(p);
}

/* ---- Reading the input ---- */

static int reads_input(struct pawl_call *c)
{
    int64_t n = 7;
    bool b = false;
    const char *t = "same";
    struct pawl_data d;
    EQ_INT(pawl_input_get_int(c, "n", &n), 0);
    EQ_INT(n, -12);
    EQ_INT(pawl_input_get_bool(c, "b", &b), 0);
    TRUE(b);
    EQ_INT(pawl_input_get_text(c, "t", &t), 0);
    EQ_STR(t, "\xc3\xa4\n");
    EQ_INT(pawl_input_get_json(c, "o", &d), 0);
    EQ_BYTES(d.data, d.len, "{\"x\":[1]}", 9);
    n = 7;
    NE_INT(pawl_input_get_int(c, "t", &n), 0);
    NE_INT(pawl_input_get_int(c, "none", &n), 0);
    NE_INT(pawl_input_get_int(c, "f", &n), 0);
    NE_INT(pawl_input_int(c, &n), 0);
    EQ_INT(n, 7);
    NE_INT(pawl_input_get_bool(c, "n", &b), 0);
    NE_INT(pawl_input_get_text(c, "n", &t), 0);
    NE_INT(pawl_input_get_text(c, "nul", &t), 0);
    EQ_STR(pawl_call_id(c), "x");
    EQ_STR(pawl_call_type(c), "t");
    EQ_STR(pawl_call_method(c), "run");
    char *m = pawl_alloc(c, 100000);
    TRUE(m != NULL);
    memset(m, 1, 100000);
    EQ_PTR(pawl_alloc(c, 65 << 20), NULL);
    return 0;
}

TEST(a_handler_reads_its_input)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", reads_input);
    fixture_start(p, 1);
    fixture_submit_as(p,
                      (struct pawl_spec){
                          .id = "x",
                          .type = "t",
                          .input = PAWL_TEXT("{\"n\":-12,\"b\":true,\"t\":\"\\u00e4\\n\",\"f\":1.5,"
                                             "\"o\":{\"x\":[1]},\"nul\":\"a\\u0000b\"}") });
    fixture_ends(p, "x", PAWL_COMPLETED);
    pawl_close(p);
}
