/*
 * ends.c - two ends of one attempt at the same time: result, stop, cancel, timeout. Exactly one of
 * them takes effect.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hook.h"
#include "fixture.h"

RUNS_ON(ENGINES_ALL)

/* Handlers and the test meet at this barrier, and go on together. */
static pthread_barrier_t meeting;

static int meets_and_replies(struct pawl_call *c)
{
    pthread_barrier_wait(&meeting);
    return pawl_reply_int(c, 1);
}

/* A different delay before the test's part in every round, so that either comes first. */
static void stagger(int round)
{
    int64_t until = fixture_mono() + round % 8 * 20;
    while (fixture_mono() < until)
        ;
}

static int rounds(int n)
{
    return check_long() ? n : n / 4;
}

TEST(finish_against_stop)
{
    int completed = 0, handed_back = 0;
    struct pawl *watch = fixture_open_as(param, (struct pawl_options){ .node = "watch" });
    pthread_barrier_init(&meeting, NULL, 2);
    for (int i = 0; i < rounds(60); i++) {
        char id[32];
        struct pawl *p = fixture_open(param);
        fixture_on(p, "t", meets_and_replies);
        fixture_start(p, 1);
        snprintf(id, sizeof id, "x%d", i);
        fixture_submit(p, id, "t");
        pthread_barrier_wait(&meeting);
        stagger(i);
        /* It ends within the time a hard stop allows, or, if the machine stalled, is handed back
         * first. */
        UNTIL(pawl_stop(p, 0, NULL) == PAWL_OK);
        pawl_close(p);
        struct pawl_shown *shown = fixture_get(watch, id);
        const struct pawl_view *v = pawl_shown_view(shown);
        EQ_INT(v->attempts + v->lost, 0);
        TRUE(v->state == PAWL_COMPLETED || v->state == PAWL_PENDING);
        completed += v->state == PAWL_COMPLETED;
        handed_back += v->state == PAWL_PENDING;
        pawl_shown_free(shown);
        if (fixture_state(watch, id) == PAWL_PENDING)
            OK(pawl_cancel(watch, id, NULL, NULL), NULL);
    }
    printf("%d completed, %d handed back\n", completed, handed_back);
    pawl_close(watch);
}

TEST(cancel_against_finish)
{
    struct pawl *p = fixture_open(param);
    int completed = 0, cancelled = 0, late = 0;
    pthread_barrier_init(&meeting, NULL, 2);
    fixture_on(p, "t", meets_and_replies);
    fixture_start(p, 1);
    for (int i = 0; i < rounds(200); i++) {
        char id[32];
        enum pawl_state said = 0;
        snprintf(id, sizeof id, "x%d", i);
        fixture_submit(p, id, "t");
        pthread_barrier_wait(&meeting);
        stagger(i);
        enum pawl_status st = pawl_cancel(p, id, &said, NULL);
        enum pawl_state ended = fixture_ended(p, id);
        if (st == PAWL_STATE) {
            EQ_INT(said, PAWL_COMPLETED);
            EQ_INT(ended, PAWL_COMPLETED);
            late++;
        } else {
            EQ_STATUS(st, PAWL_OK, NULL);
            EQ_INT(said, PAWL_PROCESSING);
            TRUE(ended == PAWL_COMPLETED || ended == PAWL_CANCELLED);
        }
        completed += ended == PAWL_COMPLETED;
        cancelled += ended == PAWL_CANCELLED;
        EQ_INT(fixture_state(p, id), ended);
    }
    printf("%d completed, %d cancelled, %d cancels came too late\n", completed, cancelled, late);
    pawl_close(p);
}

/* Takes about as long as its timeout; its result is the number of its attempt. */
static int takes_its_time(struct pawl_call *c)
{
    int64_t us = 2900 + pawl_call_view(c)->seq % 7 * 50;
    int64_t until = fixture_mono() + us;
    while (fixture_mono() < until && pawl_call_attempt_no(c) < 6)
        ;
    return pawl_reply_int(c, pawl_call_attempt_no(c));
}

TEST(timeout_against_answer)
{
    struct pawl *p = fixture_open(param);
    int timeouts = 0, n = rounds(150);
    fixture_on(p, "t", takes_its_time);
    fixture_start(p, 2);
    for (int i = 0; i < n; i++) {
        char id[32];
        snprintf(id, sizeof id, "x%d", i);
        fixture_submit_as(p, (struct pawl_spec){ .id = id,
                                                 .type = "t",
                                                 .timeout_us = 3000,
                                                 .max_attempts = 1000,
                                                 .backoff_base_us = 1 });
    }
    fixture_drain(p);
    for (int i = 0; i < n; i++) {
        char id[32], want[32];
        snprintf(id, sizeof id, "x%d", i);
        struct pawl_shown *shown = fixture_get(p, id);
        const struct pawl_view *v = pawl_shown_view(shown);
        EQ_INT(v->state, PAWL_COMPLETED);
        /* The stored result is that of the attempt after all that were charged. */
        snprintf(want, sizeof want, "%d", v->attempts + 1);
        EQ_BYTES(v->result.data, v->result.len, want, strlen(want));
        timeouts += v->attempts;
        pawl_shown_free(shown);
    }
    printf("%d timeouts in %d calls\n", timeouts, n);
    pawl_close(p);
}

TEST(expiry_against_claim)
{
    struct pawl *p = fixture_open(param);
    int n = rounds(200);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 2);
    for (int i = 0; i < n; i++) {
        char id[32];
        snprintf(id, sizeof id, "x%d", i);
        fixture_submit_as(p, (struct pawl_spec){ .id = id,
                                                 .type = "t",
                                                 .delay_us = 20 * FIXTURE_MS,
                                                 .expires_in_us = 20 * FIXTURE_MS + i % 5 * 100 });
    }
    fixture_drain(p);
    int completed = fixture_count(p, PAWL_COMPLETED);
    EQ_INT(completed + fixture_count(p, PAWL_EXPIRED), n);
    EQ_INT(completed, atomic_load(&fixture_runs)); /* a call either expired or ran, never both */
    printf("%d ran, %d expired\n", completed, n - completed);
    pawl_close(p);
}

/* ---- With the store thread held at a point ---- */

static atomic_bool hold, held;
static const char *hold_at;

static void on_pause(const char *name, void *ctx)
{
    (void)ctx;
    if (!atomic_load(&hold) || !engine_point(name, hold_at))
        return;
    atomic_store(&held, true);
    while (atomic_load(&hold))
        usleep(500);
    atomic_store(&held, false);
}

struct canceller {
    struct pawl *p;
    enum pawl_status status;
    enum pawl_state state;
};

static void *cancels(void *arg)
{
    struct canceller *c = arg;
    c->status = pawl_cancel(c->p, "x", &c->state, NULL);
    return NULL;
}

/* The finish is in an unfinished commit when the cancel comes: the cancel is told that it is too
 * late. */
TEST(cancel_behind_a_commit_that_is_under_way)
{
    if (fixture_is_mem(param))
        skip("mem: has no point to hold it at");
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .reclaim_interval_us = 30 * FIXTURE_SEC });
    struct canceller c = { .p = p };
    struct pawl_stats st = { PAWL_STATS_INIT };
    pthread_t thread;
    pthread_barrier_init(&meeting, NULL, 2);
    hold_at = "before_commit";
    hook_on_pause(on_pause, NULL);
    fixture_on(p, "t", meets_and_replies);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    UNTIL((pawl_stats(p, &st), st.running == 1));
    atomic_store(&hold, true);
    pthread_barrier_wait(&meeting);
    UNTIL(atomic_load(&held)); /* its finish is written but not committed */
    EQ_INT(pthread_create(&thread, NULL, cancels, &c), 0);
    UNTIL((pawl_stats(p, &st), st.queue_depth >= 1));
    atomic_store(&hold, false);
    pthread_join(thread, NULL);
    hook_on_pause(NULL, NULL);
    if (c.status == PAWL_STATE)
        EQ_INT(c.state, PAWL_COMPLETED);
    else /* the commit that was held was a heartbeat, and the finish came after the cancel */
        EQ_STATUS(c.status, PAWL_OK, NULL);
    TRUE(pawl_state_ended(fixture_ended(p, "x")));
    pawl_close(p);
}

/* The attempt times out while its finish waits behind a slow commit: the result came first and
 * stands. */
TEST(an_answer_in_the_queue_is_not_overtaken_by_its_deadline)
{
    if (fixture_is_mem(param))
        skip("mem: has no point to hold it at");
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .heartbeat_grace_us = 60 * FIXTURE_SEC });
    struct pawl_stats st = { PAWL_STATS_INIT };
    /* Everything up to the result fits into it, which takes some milliseconds. */
    const int64_t timeout_us = FIXTURE_SEC * check_scale();
    pthread_barrier_init(&meeting, NULL, 2);
    hold_at = "begin";
    hook_on_pause(on_pause, NULL);
    fixture_on(p, "t", meets_and_replies);
    fixture_start(p, 1);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .timeout_us = timeout_us });
    UNTIL((pawl_stats(p, &st), st.running == 1));
    atomic_store(&hold, true);
    UNTIL(atomic_load(&held)); /* by a heartbeat or a sweep */
    pthread_barrier_wait(&meeting);
    UNTIL((pawl_stats(p, &st), st.running == 0)); /* it has returned its result */
    int64_t past = fixture_mono() + timeout_us + 100 * FIXTURE_MS;
    UNTIL(fixture_mono() > past); /* and its deadline has passed */
    atomic_store(&hold, false);
    fixture_ends(p, "x", PAWL_COMPLETED);
    hook_on_pause(NULL, NULL);
    struct pawl_shown *shown = fixture_get(p, "x");
    EQ_INT(pawl_shown_view(shown)->attempts, 0);
    pawl_shown_free(shown);
    pawl_close(p);
}
