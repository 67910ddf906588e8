/*
 * lib_key_runs.c - what ends a run of calls with one key: failures, retries, timeouts, cancels and
 * stops in its middle, and what happens to the calls behind.
 *
 * Calls that are submitted before the workers start are claimed as one run.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "key_fixture.h"
#include "store/store.h"

RUNS_ON(ENGINES_ALL)

/* ---- What ends a run ------------------------------------------------------------------------- */

static int fourth_is_bad(struct pawl_call *c)
{
    keyf_note(pawl_call_id(c));
    int64_t n = pawl_state_int(c, 0) + 1;
    pawl_set_state_int(c, n);
    if (strcmp(pawl_call_id(c), "c3") == 0)
        return pawl_refuse(c, "not this one");
    return pawl_reply_int(c, n);
}

TEST(a_failure_in_the_middle_leaves_the_rest)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fourth_is_bad);
    keyf_submit(p, "t", 8);
    fixture_start(p, 2);
    fixture_drain(p);
    EQ_STR(keyf_order, "c0 c1 c2 c3 c4 c5 c6 c7 ");
    EQ_INT(fixture_state(p, "c3"), PAWL_FAILED);
    EQ_INT(keyf_result(p, "c4"), 4); /* the state that the failed one set is gone */
    EQ_INT(keyf_result(p, "c7"), 7);
    EQ_INT(keyf_number(p, "c7"), 8);
    EQ_INT(keyf_state(p, "t"), 7);
    pawl_close(p);
}

static int third_fails_once(struct pawl_call *c)
{
    keyf_note(pawl_call_id(c));
    int64_t n = pawl_state_int(c, 0) + 1;
    pawl_set_state_int(c, n);
    if (strcmp(pawl_call_id(c), "c2") == 0 && pawl_call_attempt_no(c) == 1)
        return pawl_fail(c, "once more");
    return pawl_reply_int(c, n);
}

TEST(a_retry_holds_its_key_back)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", third_fails_once);
    keyf_submit(p, "t", 6);
    fixture_start(p, 4);
    fixture_drain(p);
    EQ_STR(keyf_order, "c0 c1 c2 c2 c3 c4 c5 ");
    for (int i = 0; i < 6; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        EQ_INT(keyf_result(p, id), i + 1);
        EQ_INT(keyf_number(p, id), i + 1);
    }
    pawl_close(p);
}

/* The id that the third one sends already means another call: its result turns into a failure,
 * after the next ones have run on its state. */
static int third_conflicts(struct pawl_call *c)
{
    struct pawl_err err;
    keyf_note(pawl_call_id(c));
    int64_t n = pawl_state_int(c, 0) + 1;
    pawl_set_state_int(c, n);
    if (strcmp(pawl_call_id(c), "c2") == 0)
        OK(pawl_send(c,
                     &(struct pawl_spec){ PAWL_SPEC_INIT, .id = "taken", .type = "other",
                                          .input = PAWL_TEXT("2") },
                     &err),
           &err);
    return pawl_reply_int(c, n);
}

TEST(what_ran_behind_a_conflict_runs_again)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", third_conflicts);
    fixture_submit_as(p, (struct pawl_spec){ .id = "taken", .type = "other" });
    keyf_submit(p, "t", 6);
    fixture_start(p, 2);
    fixture_ends(p, "c5", PAWL_COMPLETED);
    keyf_fails(p, "c2", "already exists with other content");
    EQ_INT(keyf_result(p, "c3"), 3); /* on the state of c1 */
    EQ_INT(keyf_result(p, "c5"), 5);
    EQ_INT(keyf_number(p, "c5"), 6);
    EQ_INT(keyf_state(p, "t"), 5);
    struct pawl_shown *s = fixture_get(p, "c5");
    /* An attempt whose result is discarded is not counted. */
    EQ_INT(pawl_shown_view(s)->attempts, 0);
    pawl_shown_free(s);
    pawl_close(p);
}

static int second_hangs(struct pawl_call *c)
{
    keyf_note(pawl_call_id(c));
    if (strcmp(pawl_call_id(c), "c1") == 0 && pawl_call_attempt_no(c) == 1)
        while (!pawl_cancelled(c) || atomic_load(&fixture_runs) == 0)
            usleep(500);
    int64_t n = pawl_state_int(c, 0) + 1;
    pawl_set_state_int(c, n);
    return pawl_reply_int(c, n);
}

/* Its thread returns only when everything else has ended: nothing waits for it. */
TEST(a_timeout_in_the_middle_is_the_end_of_its_run)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", second_hangs);
    const char *ids[] = { "c0", "c1", "c2", "c3" };
    for (int i = 0; i < 4; i++)
        fixture_submit_as(p, (struct pawl_spec){ .id = ids[i],
                                                 .type = "t",
                                                 .key = "k",
                                                 .timeout_us = i == 1 ? 2 * FIXTURE_SEC : 0,
                                                 .backoff_base_us = 1000 });
    fixture_start(p, 1);
    fixture_drain(p);
    EQ_STR(keyf_order, "c0 c1 c1 c2 c3 ");
    EQ_INT(keyf_result(p, "c1"), 2);
    EQ_INT(keyf_result(p, "c3"), 4);
    struct pawl_shown *s = fixture_get(p, "c1");
    EQ_INT(pawl_shown_view(s)->attempts, 1);
    pawl_shown_free(s);
    atomic_store(&fixture_runs, 1);
    pawl_close(p);
}

/* The first is blocked in its handler, with the others behind it in its run. */
static int first_blocks(struct pawl_call *c)
{
    keyf_note(pawl_call_id(c));
    if (strcmp(pawl_call_id(c), "c0") == 0)
        return fixture_blocks(c);
    return pawl_reply_int(c, pawl_call_attempt_no(c));
}

TEST(one_behind_can_be_cancelled)
{
    struct pawl *p = fixture_open(param);
    enum pawl_state state;
    struct pawl_err err;
    fixture_on(p, "t", first_blocks);
    keyf_submit(p, "t", 5);
    fixture_start(p, 1);
    UNTIL(atomic_load(&fixture_inside) == 1);
    struct pawl_shown *s = fixture_get(p, "c2");
    EQ_INT(pawl_shown_view(s)->state, PAWL_PENDING);
    EQ_INT(pawl_shown_view(s)->position, 2);
    EQ_STR(pawl_shown_view(s)->waiting_for, "key");
    pawl_shown_free(s);
    OK(pawl_cancel(p, "c2", &state, &err), &err);
    fixture_open_gate();
    fixture_drain(p);
    EQ_INT(fixture_state(p, "c2"), PAWL_CANCELLED);
    EQ_STR(keyf_order, "c0 c1 c3 c4 ");
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 4);
    pawl_close(p);
}

static int first_blocks_and_fails(struct pawl_call *c)
{
    keyf_note(pawl_call_id(c));
    if (strcmp(pawl_call_id(c), "c0") != 0)
        return pawl_reply_int(c, 1);
    fixture_blocks(c);
    return pawl_refuse(c, "no");
}

static void *wait_for_c1(void *arg)
{
    static struct pawl_shown *shown;
    struct pawl_err err;
    OK(pawl_get(arg, "c1", 20 * FIXTURE_SEC * check_scale(), &shown, &err), &err);
    return shown;
}

/* No thread of this process ends it: the store does, when it hands the run back. */
TEST(who_waits_for_one_cancelled_behind_a_failure_is_told)
{
    struct pawl *p = fixture_open(param);
    enum pawl_state state;
    struct pawl_err err;
    pthread_t thread;
    void *shown;
    fixture_on(p, "t", first_blocks_and_fails);
    keyf_submit(p, "t", 3);
    fixture_start(p, 1);
    UNTIL(atomic_load(&fixture_inside) == 1);
    EQ_INT(pthread_create(&thread, NULL, wait_for_c1, p), 0);
    OK(pawl_cancel(p, "c1", &state, &err), &err);
    EQ_INT(state, PAWL_PROCESSING);
    int64_t began = fixture_mono();
    fixture_open_gate();
    EQ_INT(pthread_join(thread, &shown), 0);
    EQ_INT(pawl_shown_view(shown)->state, PAWL_CANCELLED);
    LT_INT(fixture_mono() - began, 10 * FIXTURE_SEC * check_scale());
    pawl_shown_free(shown);
    fixture_ends(p, "c2", PAWL_COMPLETED);
    EQ_STR(keyf_order, "c0 c2 ");
    pawl_close(p);
}

/* No sweep runs: the claim itself ends the first and must look again. */
TEST(a_claim_that_ends_the_first_takes_the_next)
{
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .reclaim_interval_us = 3600 * FIXTURE_SEC });
    struct pawl_lease *l;
    struct pawl_err err;
    fixture_submit_as(p,
                      (struct pawl_spec){ .id = "a", .type = "t", .key = "k", .expires_in_us = 1 });
    fixture_submit_as(p, (struct pawl_spec){ .id = "b", .type = "t", .key = "k" });
    int64_t began = fixture_mono();
    UNTIL(fixture_mono() > began + 10);
    OK(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .wait_us = 20 * FIXTURE_SEC }, &l,
                  &err),
       &err);
    EQ_INT((int64_t)l->n, 1);
    EQ_STR(l->calls[0].id, "b");
    LT_INT(fixture_mono() - began, 10 * FIXTURE_SEC * check_scale());
    pawl_lease_free(l);
    EQ_INT(fixture_state(p, "a"), PAWL_EXPIRED);
    pawl_close(p);
}

TEST(the_running_one_can_be_cancelled)
{
    struct pawl *p = fixture_open(param);
    enum pawl_state state;
    fixture_on(p, "t", second_hangs);
    atomic_store(&fixture_runs, 1);
    keyf_submit(p, "t", 4);
    fixture_start(p, 1);
    UNTIL(keyf_noted("c1 "));
    OK(pawl_cancel(p, "c1", &state, NULL), NULL);
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 4); /* it returned a result, and that wins */
    EQ_STR(keyf_order, "c0 c1 c2 c3 ");
    pawl_close(p);
}

TEST(stopping_in_the_middle_counts_no_attempt)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    fixture_on(p, "t", first_blocks);
    keyf_submit(p, "t", 5);
    fixture_start(p, 1);
    UNTIL(atomic_load(&fixture_inside) == 1);
    pthread_t opener;
    EQ_INT(
        pthread_create(&opener, NULL, (void *(*)(void *))(void (*)(void))fixture_open_gate, NULL),
        0);
    OK(pawl_stop(p, 10 * FIXTURE_SEC, &err), &err);
    pthread_join(opener, NULL);
    pawl_close(p);
    if (fixture_is_mem(param))
        skip("mem: is gone with its last handle");
    p = fixture_open(param);
    EQ_INT(fixture_state(p, "c0"), PAWL_COMPLETED);
    fixture_on(p, "t", first_blocks);
    fixture_start(p, 1);
    fixture_drain(p);
    for (int i = 1; i < 5; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        EQ_INT(keyf_result(p, id), 1); /* the number of the attempt */
        EQ_INT(keyf_number(p, id), i + 1);
    }
    pawl_close(p);
}

static int counts_runs(struct pawl_call *c)
{
    atomic_fetch_add(&fixture_runs, 1);
    int64_t n = pawl_state_int(c, 0) + 1;
    pawl_set_state_int(c, n);
    return pawl_reply_int(c, n);
}

/* What has run when the workers stop is stored, however many results are pending. */
TEST(a_clean_stop_loses_no_result)
{
    if (fixture_is_mem(param))
        skip("mem: is gone with its last handle");
    for (int round = 0; round < 10; round++) {
        struct pawl_err err;
        engine_fresh(param);
        struct pawl *p = fixture_open(param);
        fixture_on(p, "t", counts_runs);
        keyf_submit(p, "t", 400);
        atomic_store(&fixture_runs, 0);
        fixture_start(p, 2);
        UNTIL(atomic_load(&fixture_runs) > round * 20);
        OK(pawl_stop(p, 10 * FIXTURE_SEC, &err), &err);
        int ran = atomic_load(&fixture_runs);
        EQ_INT(fixture_count(p, PAWL_COMPLETED), ran);
        EQ_INT(keyf_state(p, "t"), ran);
        EQ_INT(fixture_count(p, PAWL_PENDING), 400 - ran);
        pawl_close(p);
    }
}

TEST(a_hard_stop_hands_the_whole_run_back)
{
    struct pawl *p = fixture_open(param), *other;
    struct pawl_err err;
    fixture_on(p, "t", first_blocks);
    keyf_submit(p, "t", 5);
    fixture_start(p, 1);
    UNTIL(atomic_load(&fixture_inside) == 1);
    EQ_STATUS(pawl_stop(p, 0, &err), PAWL_BUSY, &err);
    other = fixture_open_as(param, (struct pawl_options){ .node = "other" });
    fixture_open_gate();
    fixture_on(other, "t", first_blocks);
    fixture_start(other, 1);
    fixture_drain(other);
    EQ_INT(fixture_count(other, PAWL_COMPLETED), 5);
    EQ_INT(keyf_result(other, "c4"), 1);
    pawl_close(p);
    pawl_close(other);
}

static int takes_20_ms(struct pawl_call *c)
{
    keyf_note(pawl_call_id(c));
    usleep(20000);
    return pawl_reply_int(c, pawl_call_attempt_no(c));
}

TEST(a_long_run_is_handed_back_and_goes_on)
{
    struct pawl *p = fixture_open(param);
    struct pawl_stats stats = { PAWL_STATS_INIT };
    fixture_on(p, "t", takes_20_ms);
    keyf_submit(p, "t", 9);
    fixture_start(p, 1);
    fixture_drain(p);
    EQ_STR(keyf_order, "c0 c1 c2 c3 c4 c5 c6 c7 c8 ");
    EQ_INT(keyf_result(p, "c8"), 1);
    pawl_stats(p, &stats);
    GT_INT(stats.claimed, 9); /* some were claimed more than once */
    pawl_close(p);
}
