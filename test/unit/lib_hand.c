/*
 * lib_hand.c - working by hand through pawl.h: claim, extend, finish, and leases that have ended.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>

#include "fixture.h"

RUNS_ON(ENGINES_ALL)

TEST(a_claim_by_hand_is_finished_by_hand)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_lease *l;
    enum pawl_state state = 0;
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .input = PAWL_TEXT("[1]") });
    struct pawl_claim c = { PAWL_CLAIM_INIT, .worker = "bob", .max = 10 };
    OK(pawl_claim(p, &c, &l, &err), &err);
    EQ_INT((int)l->n, 1);
    EQ_STR(l->calls[0].id, "x");
    EQ_BYTES(l->calls[0].input.data, l->calls[0].input.len, "[1]", 3);
    EQ_INT(l->calls[0].state, PAWL_PROCESSING);
    EQ_STR(l->calls[0].node, "bob");
    GT_INT(l->until_us, l->calls[0].claimed_at_us + 29 * FIXTURE_SEC);
    struct pawl_lease *none;
    OK(pawl_claim(p, &c, &none, &err), &err);
    EQ_INT((int)none->n, 0);
    EQ_STR(none->token, "");
    pawl_lease_free(none);
    OK(fixture_finish(p, l->token, "x", PAWL_END_RESULT, &state, &err), &err);
    EQ_INT(state, PAWL_COMPLETED);
    state = 0; /* The answer was lost; the same finish again gets the same answer. */
    OK(fixture_finish(p, l->token, "x", PAWL_END_RESULT, &state, &err), &err);
    EQ_INT(state, PAWL_COMPLETED);
    struct pawl_shown *shown = fixture_get(p, "x");
    EQ_STR(pawl_shown_view(shown)->node, "bob");
    EQ_BYTES(pawl_shown_view(shown)->result.data, pawl_shown_view(shown)->result.len, "1", 1);
    pawl_shown_free(shown);
    pawl_lease_free(l);
    pawl_close(p);
}

TEST(every_ending_by_hand)
{
    static const struct {
        enum pawl_ending how;
        enum pawl_state state;
        int attempts;
    } v[] = {
        { PAWL_END_ERROR, PAWL_PENDING, 1 },    { PAWL_END_TIMEOUT, PAWL_PENDING, 1 },
        { PAWL_END_REFUSE, PAWL_FAILED, 1 },    { PAWL_END_LATER, PAWL_PENDING, 0 },
        { PAWL_END_RELEASE, PAWL_PENDING, 0 },  { PAWL_END_CANCELLED, PAWL_PENDING, 0 },
        { PAWL_END_RESULT, PAWL_COMPLETED, 0 },
    };
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        char id[32], type[32];
        enum pawl_state state = 0;
        snprintf(id, sizeof id, "x%zu", i);
        snprintf(type, sizeof type, "t%zu", i);
        fixture_submit(p, id, type);
        struct pawl_lease *l = fixture_claim(p, type, 1);
        for (int k = 0; k < 2; k++) { /* and once more: the same answer, nothing is counted twice */
            OK(fixture_finish(p, l->token, id, v[i].how, &state, &err), &err);
            EQ_INT(state, v[i].state);
        }
        struct pawl_shown *shown = fixture_get(p, id);
        EQ_INT(pawl_shown_view(shown)->attempts, v[i].attempts);
        pawl_shown_free(shown);
        pawl_lease_free(l);
    }
    pawl_close(p);
}

TEST(a_token_that_is_none_is_a_lost_lease)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    int64_t until;
    static const char *const bad[] = { "", "x", "00000000-0000-0000-0000-000000000000", NULL };
    for (size_t i = 0; i < 4; i++) {
        EQ_STATUS(fixture_finish(p, bad[i], "x", PAWL_END_RESULT, NULL, &err), PAWL_LOST_LEASE,
                  &err);
        EQ_STATUS(pawl_extend(p, bad[i], 0, &until, &err), PAWL_LOST_LEASE, &err);
    }
    pawl_close(p);
}

TEST(a_lease_that_ran_out_is_lost_and_its_call_comes_back)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_lease *l, *again;
    int64_t until;
    fixture_submit(p, "x", "t");
    struct pawl_claim c = { PAWL_CLAIM_INIT, .lease_us = FIXTURE_SEC };
    OK(pawl_claim(p, &c, &l, &err), &err);
    UNTIL(fixture_state(p, "x") == PAWL_PENDING); /* without any request */
    EQ_STATUS(fixture_finish(p, l->token, "x", PAWL_END_RESULT, NULL, &err), PAWL_LOST_LEASE, &err);
    EQ_STATUS(pawl_extend(p, l->token, 0, &until, &err), PAWL_LOST_LEASE, &err);
    again = fixture_claim(p, "t", 5);
    EQ_INT(again->calls[0].lost, 1);
    EQ_STATUS(fixture_finish(p, l->token, "x", PAWL_END_RESULT, NULL, &err), PAWL_LOST_LEASE, &err);
    EQ_INT(fixture_state(p, "x"), PAWL_PROCESSING);
    OK(fixture_finish(p, again->token, "x", PAWL_END_RESULT, NULL, &err), &err);
    EQ_INT(fixture_state(p, "x"), PAWL_COMPLETED);
    EQ_STATUS(fixture_finish(p, l->token, "x", PAWL_END_ERROR, NULL, &err), PAWL_LOST_LEASE, &err);
    pawl_lease_free(l);
    pawl_lease_free(again);
    pawl_close(p);
}

TEST(extending_keeps_a_lease)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_lease *l;
    int64_t until = 0;
    fixture_submit(p, "x", "t");
    OK(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .lease_us = 3 * FIXTURE_SEC }, &l,
                  &err),
       &err);
    OK(pawl_extend(p, l->token, 60 * FIXTURE_SEC, &until, &err), &err);
    GT_INT(until, l->until_us + 50 * FIXTURE_SEC);
    int64_t past = fixture_mono() + 3300 * FIXTURE_MS; /* its lease has ended by then */
    UNTIL(fixture_mono() > past);
    EQ_INT(fixture_state(p, "x"), PAWL_PROCESSING);
    OK(fixture_finish(p, l->token, "x", PAWL_END_RESULT, NULL, &err), &err);
    pawl_lease_free(l);
    pawl_close(p);
}

TEST(a_claim_that_is_repeated_gets_the_same_lease)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_lease *l, *again;
    fixture_submit_many(p, "t", 5);
    l = fixture_claim(p, "t", 3);
    EQ_INT((int)l->n, 3);
    struct pawl_claim c = { PAWL_CLAIM_INIT, .max = 3, .repeats = l->token };
    OK(pawl_claim(p, &c, &again, &err), &err);
    EQ_STR(again->token, l->token);
    EQ_INT((int)again->n, 3);
    for (size_t i = 0; i < 3; i++)
        EQ_STR(again->calls[i].id, l->calls[i].id);
    EQ_INT(again->until_us, l->until_us);
    EQ_INT(fixture_count(p, PAWL_PROCESSING), 3);
    pawl_lease_free(again);
    c.repeats = "nonsense";
    EQ_STATUS(pawl_claim(p, &c, &again, &err), PAWL_LOST_LEASE, &err);
    pawl_lease_free(l);
    pawl_close(p);
}

TEST(some_calls_of_a_lease_are_finished_together_or_not_at_all)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    enum pawl_state states[3];
    fixture_submit_many(p, "t", 4);
    struct pawl_lease *l = fixture_claim(p, "t", 3);
    struct pawl_finish f[] = {
        { PAWL_FINISH_INIT, .id = "c0", .how = PAWL_END_RESULT, .result = PAWL_TEXT("0") },
        { PAWL_FINISH_INIT, .id = "c3", .how = PAWL_END_RESULT, .result = PAWL_TEXT("3") },
        { PAWL_FINISH_INIT, .id = "c1", .how = PAWL_END_REFUSE, .error = "no" },
    };
    EQ_STATUS(pawl_finish(p, l->token, f, 3, states, &err), PAWL_LOST_LEASE, &err);
    EQ_INT(fixture_count(p, PAWL_PROCESSING), 3);
    f[1] = f[2];
    OK(pawl_finish(p, l->token, f, 2, states, &err), &err);
    EQ_INT(states[0], PAWL_COMPLETED);
    EQ_INT(states[1], PAWL_FAILED);
    f[1] = f[0];
    EQ_STATUS(pawl_finish(p, l->token, f, 2, states, &err), PAWL_INVALID, &err);
    EQ_INT(fixture_state(p, "c2"), PAWL_PROCESSING);
    pawl_lease_free(l);
    pawl_close(p);
}

TEST(a_finish_by_hand_sends_calls_with_its_result)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_spec send[] = {
        { PAWL_SPEC_INIT, .type = "u", .input = PAWL_TEXT("1") },
        { PAWL_SPEC_INIT, .id = "named", .type = "u" },
    };
    fixture_submit(p, "x", "t");
    struct pawl_lease *l = fixture_claim(p, "t", 1);
    struct pawl_finish f = { PAWL_FINISH_INIT, .id = "x",    .how = PAWL_END_ERROR,
                             .error = "no",    .send = send, .n_send = 2 };
    EQ_STATUS(pawl_finish(p, l->token, &f, 1, NULL, &err), PAWL_INVALID, &err);
    EQ_INT(fixture_count(p, 0), 1);
    f.how = PAWL_END_RESULT;
    OK(pawl_finish(p, l->token, &f, 1, NULL, &err), &err);
    struct pawl_shown *shown = fixture_get(p, "x.1");
    EQ_STR(pawl_shown_view(shown)->parent, "x");
    pawl_shown_free(shown);
    EQ_INT(fixture_state(p, "named"), PAWL_PENDING);
    OK(pawl_finish(p, l->token, &f, 1, NULL, &err), &err);
    EQ_INT(fixture_count(p, 0), 3);
    pawl_lease_free(l);
    pawl_close(p);
}

/* ---- A claim that waits ---- */

struct claimer {
    pthread_t thread;
    struct pawl *p;
    struct pawl_claim claim;
    atomic_bool back;
    int64_t took_us;
    enum pawl_status status;
    size_t n;
    char id[256];
};

static void *claim_it(void *arg)
{
    struct claimer *c = arg;
    struct pawl_lease *l = NULL;
    int64_t begun = fixture_mono();
    c->status = pawl_claim(c->p, &c->claim, &l, NULL);
    c->took_us = fixture_mono() - begun;
    if (c->status == PAWL_OK) {
        c->n = l->n;
        if (l->n)
            snprintf(c->id, sizeof c->id, "%s", l->calls[0].id);
        pawl_lease_free(l);
    }
    atomic_store(&c->back, true);
    return NULL;
}

/* Starts to wait for work; returns when it has certainly asked once. */
static void claimer_begin(struct claimer *c, struct pawl *p)
{
    struct pawl_stats s = { PAWL_STATS_INIT };
    pawl_stats(p, &s);
    int64_t commits = s.commits;
    *c = (struct claimer){ .p = p, .claim = { PAWL_CLAIM_INIT, .wait_us = 100 * FIXTURE_SEC } };
    EQ_INT(pthread_create(&c->thread, NULL, claim_it, c), 0);
    UNTIL((pawl_stats(p, &s), s.commits > commits));
}

static void claimer_got(struct claimer *c, const char *id)
{
    UNTIL(atomic_load(&c->back));
    pthread_join(c->thread, NULL);
    EQ_STATUS(c->status, PAWL_OK, NULL);
    EQ_INT((int)c->n, 1);
    EQ_STR(c->id, id);
}

/* Few sweeps, so that only the right notification wakes it. */
static struct pawl *open_quiet(void *param)
{
    return fixture_open_as(param, (struct pawl_options){ .reclaim_interval_us = 500 * FIXTURE_MS });
}

TEST(a_waiting_claim_is_woken_by_a_submit)
{
    struct pawl *p = open_quiet(param);
    struct claimer c;
    claimer_begin(&c, p);
    fixture_submit(p, "x", "t");
    claimer_got(&c, "x");
    pawl_close(p);
}

TEST(a_waiting_claim_is_woken_by_a_delayed_call)
{
    struct pawl *p = open_quiet(param);
    struct claimer c;
    claimer_begin(&c, p);
    int64_t begun = fixture_mono();
    fixture_submit_as(p,
                      (struct pawl_spec){ .id = "x", .type = "t", .delay_us = 200 * FIXTURE_MS });
    claimer_got(&c, "x");
    GE_INT(fixture_mono() - begun, 199 * FIXTURE_MS);
    pawl_close(p);
}

TEST(a_waiting_claim_is_woken_by_a_lease_that_ran_out)
{
    struct pawl *p = open_quiet(param);
    struct claimer c;
    struct pawl_lease *l;
    fixture_submit(p, "x", "t");
    OK(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .lease_us = FIXTURE_SEC }, &l, NULL),
       NULL);
    EQ_INT((int)l->n, 1);
    pawl_lease_free(l);
    claimer_begin(&c, p);
    claimer_got(&c, "x");
    LT_INT(c.took_us, 10 * FIXTURE_SEC * check_scale());
    pawl_close(p);
}

TEST(a_waiting_claim_is_woken_by_resume_retry_and_a_failed_attempt)
{
    struct pawl *p = open_quiet(param);
    struct claimer c;
    struct pawl_err err;
    OK(pawl_pause(p, "default", true, &err), &err);
    fixture_submit(p, "x", "t");
    claimer_begin(&c, p);
    OK(pawl_pause(p, "default", false, &err), &err);
    claimer_got(&c, "x");

    fixture_submit_as(p, (struct pawl_spec){ .id = "y", .type = "t", .expires_at_us = 1 });
    fixture_ends(p, "y", PAWL_EXPIRED);
    claimer_begin(&c, p);
    OK(pawl_retry(p, "y", &err), &err);
    claimer_got(&c, "y");

    fixture_submit(p, "z", "z");
    struct pawl_lease *l = fixture_claim(p, "z", 1);
    claimer_begin(&c, p);
    OK(fixture_finish(p, l->token, "z", PAWL_END_RELEASE, NULL, &err), &err);
    claimer_got(&c, "z");
    pawl_lease_free(l);
    pawl_close(p);
}

static int sends_one(struct pawl_call *c)
{
    struct pawl_err err;
    OK(pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .id = "sent", .type = "u" }, &err), &err);
    return 0;
}

TEST(a_waiting_claim_is_woken_by_what_a_handler_sends)
{
    struct pawl *p = open_quiet(param);
    struct claimer c;
    fixture_on(p, "t", sends_one);
    fixture_start(p, 1);
    claimer_begin(&c, p);
    fixture_submit(p, "x", "t");
    UNTIL(atomic_load(&c.back));
    pthread_join(c.thread, NULL);
    TRUE(strcmp(c.id, "sent") == 0 || strcmp(c.id, "x") == 0); /* either may be claimed by hand */
    pawl_close(p);
}

TEST(a_waiting_claim_comes_back_empty_when_its_time_is_up)
{
    struct pawl *p = open_quiet(param);
    struct pawl_lease *l;
    struct pawl_err err;
    int64_t begun = fixture_mono();
    OK(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .wait_us = 150 * FIXTURE_MS }, &l,
                  &err),
       &err);
    GE_INT(fixture_mono() - begun, 149 * FIXTURE_MS);
    EQ_INT((int)l->n, 0);
    pawl_lease_free(l);
    pawl_close(p);
}

TEST(claims_take_only_what_they_ask_for)
{
    struct pawl *p = fixture_open(param);
    struct pawl_lease *l;
    static const char *const q[] = { "a" }, *const t[] = { "t", "u" };
    fixture_submit_as(p, (struct pawl_spec){ .id = "1", .type = "t", .queue = "a" });
    fixture_submit_as(p, (struct pawl_spec){ .id = "2", .type = "v", .queue = "a" });
    fixture_submit_as(p, (struct pawl_spec){ .id = "3", .type = "u", .queue = "b" });
    fixture_submit_as(p, (struct pawl_spec){ .id = "4", .type = "u", .queue = "a", .priority = 1 });
    struct pawl_claim c = { PAWL_CLAIM_INIT, .queues = q,  .n_queues = 1,
                            .types = t,      .n_types = 2, .max = 10 };
    OK(pawl_claim(p, &c, &l, NULL), NULL);
    EQ_INT((int)l->n, 2);
    EQ_STR(l->calls[0].id, "4");
    EQ_STR(l->calls[1].id, "1");
    pawl_lease_free(l);
    pawl_close(p);
}
