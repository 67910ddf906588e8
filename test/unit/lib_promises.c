/*
 * lib_promises.c - each promise that concerns one process, through pawl.h, under its own number.
 *
 * Tests that need a kill -9 are in test/crash; those that need several processes in lib_life.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "fixture.h"

RUNS_ON(ENGINES_ALL)

/* The answer comes after the commit: a process that dies right after it has lost nothing. */
TEST(promise_1_accepted_means_stored)
{
    if (fixture_is_mem(param)) {
        struct pawl *p = fixture_open(param), *other;
        fixture_submit(p, "x", "t");
        other = fixture_open_as(param, (struct pawl_options){ .node = "other" });
        EQ_INT(fixture_state(other, "x"), PAWL_PENDING);
        pawl_close(p);
        EQ_INT(fixture_state(other, "x"), PAWL_PENDING);
        pawl_close(other);
        return;
    }
    engine_url(param); /* one for all of them */
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            char id[32];
            struct pawl *p = fixture_open(param);
            snprintf(id, sizeof id, "x%d", i);
            fixture_submit(p, id, "t");
            kill(getpid(), SIGKILL);
        }
        EQ_INT(waitpid(pid, NULL, 0), pid);
    }
    struct pawl *p = fixture_open(param);
    EQ_INT(fixture_count(p, PAWL_PENDING), 5);
    pawl_close(p);
}

static int sends_or_fails(struct pawl_call *c)
{
    struct pawl_err err;
    OK(pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "child" }, &err), &err);
    if (pawl_call_attempt_no(c) < 3)
        return pawl_fail(c, "try %d", pawl_call_attempt_no(c));
    return pawl_reply_int(c, pawl_call_attempt_no(c));
}

/* However often it is attempted, its effect in the database happens once, together with its
 * outcome. */
TEST(promise_2_at_most_one_committed_effect)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", sends_or_fails);
    fixture_on(p, "child", fixture_echo);
    fixture_start(p, 4);
    for (int i = 0; i < 20; i++) {
        char id[32];
        snprintf(id, sizeof id, "x%d", i);
        fixture_submit_as(
            p, (struct pawl_spec){ .id = id, .type = "t", .backoff_base_us = FIXTURE_MS });
    }
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 40);
    EQ_INT(atomic_load(&fixture_runs), 20);
    pawl_close(p);
}

/* Also while it runs, and without a write: nothing about the call changes. */
TEST(promise_3_a_duplicate_gets_the_first_ones_answer)
{
    struct pawl *p = fixture_open(param);
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = "x", .type = "t", .input = PAWL_TEXT("7") };
    struct pawl_shown *shown;
    struct pawl_err err;
    fixture_on(p, "t", fixture_echo);
    fixture_submit_as(p, s);
    TRUE(fixture_offer(p, s).duplicate);
    fixture_start(p, 1);
    fixture_ends(p, "x", PAWL_COMPLETED);
    struct pawl_shown *before = fixture_get(p, "x");
    for (int i = 0; i < 10; i++) {
        OK(pawl_submit_wait(p, &s, FIXTURE_SEC, &shown, &err), &err);
        TRUE(pawl_shown_view(shown)->duplicate);
        EQ_BYTES(pawl_shown_view(shown)->result.data, pawl_shown_view(shown)->result.len, "7", 1);
        EQ_INT(pawl_shown_view(shown)->finished_at_us, pawl_shown_view(before)->finished_at_us);
        EQ_INT(pawl_shown_view(shown)->keep_until_us, pawl_shown_view(before)->keep_until_us);
        pawl_shown_free(shown);
    }
    pawl_shown_free(before);
    EQ_INT(atomic_load(&fixture_runs), 1);
    s.input = PAWL_TEXT("8");
    EQ_STATUS(pawl_submit_wait(p, &s, FIXTURE_SEC, &shown, &err), PAWL_CONFLICT, &err);
    struct pawl_receipt next = fixture_offer(p, (struct pawl_spec){ .id = "y", .type = "t" });
    struct pawl_receipt first =
        fixture_offer(p, (struct pawl_spec){ .id = "x", .type = "t", .input = PAWL_TEXT("7") });
    EQ_INT(next.seq, first.seq + 1); /* no number was used */
    pawl_close(p);
}

/* A worker that lost its lease can neither finish, nor fail, nor extend; the new owner's result
 * stands. */
TEST(promise_5_a_stale_owner_can_change_nothing)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_lease *stale, *owner;
    int64_t until;
    fixture_submit(p, "x", "t");
    OK(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .lease_us = FIXTURE_SEC }, &stale,
                  &err),
       &err);
    UNTIL(fixture_state(p, "x") == PAWL_PENDING);
    owner = fixture_claim(p, "t", 1);
    for (int how = PAWL_END_RESULT; how <= PAWL_END_CANCELLED; how++)
        EQ_STATUS(fixture_finish(p, stale->token, "x", (enum pawl_ending)how, NULL, &err),
                  PAWL_LOST_LEASE, &err);
    EQ_STATUS(pawl_extend(p, stale->token, 0, &until, &err), PAWL_LOST_LEASE, &err);
    OK(fixture_finish(p, owner->token, "x", PAWL_END_REFUSE, NULL, &err), &err);
    for (int how = PAWL_END_RESULT; how <= PAWL_END_CANCELLED; how++)
        EQ_STATUS(fixture_finish(p, stale->token, "x", (enum pawl_ending)how, NULL, &err),
                  PAWL_LOST_LEASE, &err);
    EQ_INT(fixture_state(p, "x"), PAWL_FAILED);
    pawl_lease_free(stale);
    pawl_lease_free(owner);
    pawl_close(p);
}

/* Without any request from a client, the calls of a lost owner run again. */
TEST(promise_6_recovery_needs_no_traffic)
{
    struct pawl *p = fixture_open(param);
    struct pawl_lease *l;
    struct pawl_stats st = { PAWL_STATS_INIT };
    fixture_submit(p, "x", "t");
    OK(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .lease_us = FIXTURE_SEC }, &l, NULL),
       NULL);
    pawl_lease_free(l);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 1);
    int64_t begun = fixture_mono();
    UNTIL((pawl_stats(p, &st), st.completed == 1));
    LT_INT(fixture_mono() - begun, 15 * FIXTURE_SEC * check_scale());
    pawl_close(p);
}

/* A clean stop hands over at once, without counting an attempt. */
TEST(promise_6_a_clean_stop_hands_over_at_once)
{
    struct pawl *a = fixture_open_as(param, (struct pawl_options){ .node = "a" });
    struct pawl *b = fixture_open_as(param, (struct pawl_options){ .node = "b" });
    fixture_on(a, "t", fixture_blocks);
    fixture_start(a, 1);
    fixture_submit_many(a, "t", 3);
    UNTIL(atomic_load(&fixture_inside) == 1);
    EQ_STATUS(pawl_stop(a, 0, NULL), PAWL_BUSY, NULL);
    fixture_on(b, "t", fixture_echo);
    fixture_start(b, 1);
    fixture_drain(b);
    for (int i = 0; i < 3; i++) {
        char id[32];
        snprintf(id, sizeof id, "c%d", i);
        struct pawl_shown *shown = fixture_get(b, id);
        EQ_INT(pawl_shown_view(shown)->state, PAWL_COMPLETED);
        EQ_INT(pawl_shown_view(shown)->attempts + pawl_shown_view(shown)->lost, 0);
        pawl_shown_free(shown);
    }
    fixture_open_gate();
    pawl_close(a);
    pawl_close(b);
}

static int bad_or_good(struct pawl_call *c)
{
    return pawl_call_view(c)->priority > 0 ? pawl_fail(c, "bad") : pawl_reply_int(c, 1);
}

/* Bad calls with the highest priority that are retried at once do not keep others from running. */
TEST(promise_7_bad_work_cannot_block_good_work)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", bad_or_good);
    for (int i = 0; i < 50; i++)
        fixture_submit_as(
            p, (struct pawl_spec){
                   .type = "t", .priority = 1000, .max_attempts = 4, .backoff_base_us = 1 });
    fixture_submit_many(p, "t", 50);
    fixture_submit(p, "never", "nobody's");
    fixture_start(p, 2);
    UNTIL(fixture_count(p, PAWL_COMPLETED) == 50 && fixture_count(p, PAWL_DEAD_LETTER) == 50);
    pawl_close(p);
}

/* A call that was lost with its owner is claimed by itself, so that other calls are not charged
 * again. */
TEST(promise_7_what_was_lost_is_claimed_alone)
{
    struct pawl *p = fixture_open(param);
    struct pawl_lease *l;
    struct pawl_err err;
    fixture_submit_many(p, "t", 4);
    OK(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .max = 2, .lease_us = FIXTURE_SEC }, &l,
                  &err),
       &err);
    EQ_INT((int)l->n, 2);
    pawl_lease_free(l);
    UNTIL(fixture_count(p, PAWL_PENDING) == 4);
    for (int i = 0; i < 2; i++) {
        l = fixture_claim(p, "t", 10);
        EQ_INT((int)l->n, 1);
        EQ_INT(l->calls[0].lost, 1);
        pawl_lease_free(l);
    }
    l = fixture_claim(p, "t", 10);
    EQ_INT((int)l->n, 2);
    EQ_INT(l->calls[0].lost, 0);
    pawl_lease_free(l);
    pawl_close(p);
}

/* All stored times come from the database's clock, and they are in order. */
TEST(promise_8_one_clock_for_everything_stored)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 1);
    int64_t last = 0;
    for (int i = 0; i < 20; i++) {
        struct pawl_shown *shown;
        struct pawl_err err;
        OK(pawl_submit_wait(p, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "t" }, 60 * FIXTURE_SEC,
                            &shown, &err),
           &err);
        const struct pawl_view *v = pawl_shown_view(shown);
        LE_INT(last, v->created_at_us);
        LE_INT(v->created_at_us, v->run_at_us);
        LE_INT(v->run_at_us, v->claimed_at_us);
        LE_INT(v->claimed_at_us, v->finished_at_us);
        LE_INT(v->claimed_at_us, v->started_at_us + FIXTURE_SEC);
        last = v->created_at_us;
        pawl_shown_free(shown);
    }
    pawl_close(p);
}
