/*
 * lib_wait.c - waiting through pawl.h: which waiters are told, when and what, and that giving up
 * changes nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>

#include "exec/internal.h"
#include "exec/housekeeping.h"
#include "lib/lib.h"
#include "fixture.h"

RUNS_ON(ENGINES_ALL)

/* One caller that waits on its own thread. */
struct caller {
    pthread_t thread;
    struct pawl *p;
    const char *id;
    int64_t wait_us, took_us;
    enum pawl_status status;
    enum pawl_state state;
    atomic_bool back;
};

static void *wait_for_it(void *arg)
{
    struct caller *c = arg;
    struct pawl_shown *shown = NULL;
    int64_t begun = fixture_mono();
    c->status = pawl_get(c->p, c->id, c->wait_us, &shown, NULL);
    c->took_us = fixture_mono() - begun;
    if (c->status == PAWL_OK)
        c->state = pawl_shown_view(shown)->state;
    pawl_shown_free(shown);
    atomic_store(&c->back, true);
    return NULL;
}

static void caller_begin(struct caller *c, struct pawl *p, const char *id)
{
    struct pawl_stats s = { PAWL_STATS_INIT };
    pawl_stats(p, &s);
    int64_t before = s.waiting;
    *c = (struct caller){ .p = p, .id = id, .wait_us = 100 * FIXTURE_SEC };
    EQ_INT(pthread_create(&c->thread, NULL, wait_for_it, c), 0);
    /* Counted among the waiters, or already told, if the machine stalled meanwhile. */
    UNTIL((pawl_stats(p, &s), s.waiting > before) || atomic_load(&c->back));
}

/* It was told so soon that it did not wait for its own timeout. */
static void caller_end(struct caller *c, enum pawl_state want)
{
    UNTIL(atomic_load(&c->back));
    pthread_join(c->thread, NULL);
    EQ_STATUS(c->status, PAWL_OK, NULL);
    EQ_STR(pawl_state_name(c->state), pawl_state_name(want));
}

TEST(submit_and_wait_gets_the_result)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_shown *shown;
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 2);
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = "x", .type = "t", .input = PAWL_TEXT("[1,2]") };
    for (int i = 0; i < 2; i++) { /* The second is a duplicate and gets the answer of the first. */
        OK(pawl_submit_wait(p, &s, 60 * FIXTURE_SEC, &shown, &err), &err);
        const struct pawl_view *v = pawl_shown_view(shown);
        EQ_INT(v->state, PAWL_COMPLETED);
        EQ_BYTES(v->result.data, v->result.len, "[1,2]", 5);
        EQ_INT(v->duplicate, i);
        EQ_STR(v->error, NULL);
        pawl_shown_free(shown);
    }
    EQ_INT(atomic_load(&fixture_runs), 1);
    s.input = PAWL_TEXT("[1]");
    EQ_STATUS(pawl_submit_wait(p, &s, 60 * FIXTURE_SEC, &shown, &err), PAWL_CONFLICT, &err);
    HAS_STR(err.text, "\"x\" already exists");
    pawl_close(p);
}

static void same_text(const char *a, const char *b)
{
    EQ_STR(a, b);
}

/* Every field, so that the two ways of showing a call stay equal. */
static void same_view(const struct pawl_view *a, const struct pawl_view *b)
{
    EQ_INT(a->seq, b->seq);
    same_text(a->id, b->id);
    same_text(a->type, b->type);
    same_text(a->method, b->method);
    same_text(a->queue, b->queue);
    EQ_INT(a->state, b->state);
    same_text(a->waiting_for, b->waiting_for);
    EQ_INT(a->cancel_requested, b->cancel_requested);
    EQ_INT(a->input.form, b->input.form);
    EQ_BYTES(a->input.data, a->input.len, b->input.data, b->input.len);
    EQ_INT(a->result.form, b->result.form);
    EQ_INT((int)a->result.len, (int)b->result.len);
    same_text(a->error, b->error);
    EQ_INT(a->priority, b->priority);
    EQ_INT(a->attempts, b->attempts);
    EQ_INT(a->lost, b->lost);
    EQ_INT(a->redrives, b->redrives);
    EQ_INT(a->timeout_us, b->timeout_us);
    same_text(a->node, b->node);
    same_text(a->caller, b->caller);
    same_text(a->client, b->client);
    same_text(a->parent, b->parent);
    EQ_INT((int)a->n_tags, (int)b->n_tags);
    EQ_INT(a->created_at_us, b->created_at_us);
    EQ_INT(a->claimed_at_us, b->claimed_at_us);
    EQ_INT(a->started_at_us, b->started_at_us);
    EQ_INT(a->finished_at_us, b->finished_at_us);
    EQ_INT(a->expires_at_us, b->expires_at_us);
    EQ_INT(a->keep_until_us, b->keep_until_us);
}

static int fails_first(struct pawl_call *c)
{
    if (pawl_call_attempt_no(c) == 1)
        return pawl_fail(c, "the first time");
    return pawl_reply(c, pawl_input(c));
}

/* The commit tells the waiter what the database shows. */
TEST(what_a_waiter_is_told_is_what_is_stored)
{
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .client = "shop" });
    static const char *const types[] = { "echo", "refuse", "fails", "again" };
    struct pawl_tag tag = { "k", "v" };
    struct pawl_err err;
    fixture_on(p, "echo", fixture_echo);
    fixture_on(p, "refuse", fixture_refuse);
    fixture_on(p, "fails", fixture_fails);
    fixture_on(p, "again", fails_first);
    fixture_start(p, 2);
    for (int i = 0; i < 4; i++) {
        struct pawl_shown *told, *stored;
        struct pawl_spec s = { PAWL_SPEC_INIT,
                               .type = types[i],
                               .input = PAWL_TEXT("{\"a\":1}"),
                               .priority = 4,
                               .max_attempts = 2,
                               .expires_in_us = 3600 * FIXTURE_SEC,
                               .backoff_base_us = 1,
                               .keep_us = 77 * FIXTURE_SEC,
                               .caller = "me",
                               .parent = "up",
                               .tags = &tag,
                               .n_tags = 1 };
        OK(pawl_submit_wait(p, &s, 60 * FIXTURE_SEC, &told, &err), &err);
        stored = fixture_get(p, pawl_shown_view(told)->id);
        same_view(pawl_shown_view(told), pawl_shown_view(stored));
        pawl_shown_free(told);
        pawl_shown_free(stored);
    }
    pawl_close(p);
}

/* For an ended call run_at is the call's own, not that of its last retry. */
TEST(a_waiter_is_told_the_run_at_that_is_stored)
{
    struct pawl *p = fixture_open(param);
    struct pawl_shown *told, *stored;
    struct pawl_err err;
    fixture_on(p, "again", fails_first);
    fixture_start(p, 1);
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = "x", .type = "again",
                           .backoff_base_us = FIXTURE_MS };
    OK(pawl_submit_wait(p, &s, 60 * FIXTURE_SEC, &told, &err), &err);
    stored = fixture_get(p, "x");
    EQ_INT(pawl_shown_view(told)->run_at_us, pawl_shown_view(stored)->run_at_us);
    pawl_shown_free(told);
    pawl_shown_free(stored);
    pawl_close(p);
}

TEST(a_wait_shorter_than_the_call_shows_it_as_it_is)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_shown *shown;
    fixture_on(p, "t", fixture_blocks);
    fixture_start(p, 1);
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = "x", .type = "t" };
    OK(pawl_submit_wait(p, &s, 1, &shown, &err), &err);
    FALSE(pawl_state_ended(pawl_shown_view(shown)->state));
    pawl_shown_free(shown);
    UNTIL(atomic_load(&fixture_inside) == 1);
    OK(pawl_get(p, "x", 30 * FIXTURE_MS, &shown, &err), &err);
    EQ_INT(pawl_shown_view(shown)->state, PAWL_PROCESSING);
    EQ_STR(pawl_shown_view(shown)->node, "fixture");
    pawl_shown_free(shown);
    fixture_open_gate(); /* The caller that gave up changed nothing. */
    fixture_ends(p, "x", PAWL_COMPLETED);
    EQ_INT(atomic_load(&fixture_runs), 1);
    pawl_close(p);
}

TEST(two_waiters_are_both_told)
{
    struct pawl *p = fixture_open(param);
    struct caller a, b;
    fixture_on(p, "t", fixture_blocks);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    caller_begin(&a, p, "x");
    caller_begin(&b, p, "x");
    fixture_open_gate();
    caller_end(&a, PAWL_COMPLETED);
    caller_end(&b, PAWL_COMPLETED);
    pawl_close(p);
}

TEST(a_cancel_is_told_to_who_waits)
{
    struct pawl *p = fixture_open(param);
    struct caller a;
    enum pawl_state state;
    fixture_submit(p, "x", "t");
    caller_begin(&a, p, "x");
    OK(pawl_cancel(p, "x", &state, NULL), NULL);
    EQ_INT(state, PAWL_CANCELLED);
    caller_end(&a, PAWL_CANCELLED);
    LT_INT(a.took_us, 20 * FIXTURE_SEC * check_scale());
    pawl_close(p);
}

TEST(an_expiry_is_told_to_who_waits)
{
    struct pawl *p = fixture_open(param);
    struct caller a;
    fixture_submit_as(p,
                      (struct pawl_spec){ .id = "x", .type = "t", .expires_in_us = FIXTURE_SEC });
    caller_begin(&a, p, "x");
    caller_end(&a, PAWL_EXPIRED);
    pawl_close(p);
}

TEST(a_dead_letter_is_told_to_who_waits)
{
    struct pawl *p = fixture_open(param);
    struct caller a;
    fixture_on(p, "t", fixture_fails);
    fixture_submit_as(
        p, (struct pawl_spec){
               .id = "x", .type = "t", .max_attempts = 3, .backoff_base_us = 10 * FIXTURE_MS });
    caller_begin(&a, p, "x");
    fixture_start(p, 1);
    caller_end(&a, PAWL_DEAD_LETTER);
    EQ_INT(atomic_load(&fixture_runs), 3);
    pawl_close(p);
}

TEST(a_finish_by_hand_is_told_to_who_waits)
{
    struct pawl *p = fixture_open(param);
    struct caller a;
    enum pawl_state state;
    struct pawl_err err;
    fixture_submit(p, "x", "t");
    caller_begin(&a, p, "x");
    struct pawl_lease *l = fixture_claim(p, "t", 1);
    OK(fixture_finish(p, l->token, "x", PAWL_END_RESULT, &state, &err), &err);
    pawl_lease_free(l);
    caller_end(&a, PAWL_COMPLETED);
    pawl_close(p);
}

TEST(a_loss_that_ends_a_call_is_told_to_who_waits)
{
    struct pawl *p = fixture_open(param);
    struct caller a;
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .max_lost = 1 });
    struct pawl_lease *l;
    OK(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .lease_us = FIXTURE_SEC }, &l, NULL),
       NULL);
    EQ_INT((int)l->n, 1);
    pawl_lease_free(l);
    caller_begin(&a, p, "x");
    caller_end(&a, PAWL_DEAD_LETTER);
    pawl_close(p);
}

/* A cancel request meets a call that a stopping process hands back: the call ends there. */
TEST(a_cancel_request_met_by_a_stop_is_told_to_who_waits)
{
    struct pawl *p = fixture_open(param);
    struct caller a;
    enum pawl_state state;
    fixture_on(p, "t", fixture_blocks);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    UNTIL(atomic_load(&fixture_inside) == 1);
    caller_begin(&a, p, "x");
    OK(pawl_cancel(p, "x", &state, NULL), NULL);
    EQ_INT(state, PAWL_PROCESSING);
    EQ_STATUS(pawl_stop(p, 0, NULL), PAWL_BUSY, NULL);
    caller_end(&a, PAWL_CANCELLED);
    fixture_open_gate();
    pawl_close(p);
}

TEST(many_waiters_are_told)
{
    enum { N = 60 };
    struct pawl *p = fixture_open(param);
    static struct caller v[N];
    static char ids[N][16];
    fixture_on(p, "t", fixture_blocks);
    fixture_start(p, 4);
    fixture_submit_many(p, "t", N);
    for (int i = 0; i < N; i++) {
        snprintf(ids[i], sizeof ids[i], "c%d", i);
        caller_begin(&v[i], p, ids[i]);
    }
    fixture_open_gate();
    for (int i = 0; i < N; i++)
        caller_end(&v[i], PAWL_COMPLETED);
    struct pawl_stats s = { PAWL_STATS_INIT };
    pawl_stats(p, &s);
    EQ_INT(s.waiting, 0);
    pawl_close(p);
}

TEST(waiting_for_what_nobody_knows_is_answered_at_once)
{
    struct pawl *p = fixture_open(param);
    struct pawl_shown *shown;
    struct pawl_err err;
    int64_t begun = fixture_mono();
    EQ_STATUS(pawl_get(p, "x", 100 * FIXTURE_SEC, &shown, &err), PAWL_NOT_FOUND, &err);
    LT_INT(fixture_mono() - begun, 20 * FIXTURE_SEC * check_scale());
    pawl_close(p);
}

/* Another handle on the same database runs the call. */
TEST(what_another_handle_ends_is_told_here)
{
    struct pawl *p = fixture_open(param),
                *w = fixture_open_as(param, (struct pawl_options){ .node = "w" });
    struct caller a;
    fixture_on(w, "t", fixture_echo);
    fixture_start(w, 1);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .delay_us = FIXTURE_SEC });
    caller_begin(&a, p, "x");
    caller_end(&a, PAWL_COMPLETED);
    LT_INT(a.took_us, 10 * FIXTURE_SEC * check_scale());
    pawl_close(p);
    pawl_close(w);
}

/* ---- Refused while another thread tells the waiters ------------------------------------------ */

static atomic_bool store_held, store_goes_on;

/* The store thread is blocked here; nothing is committed for it. */
static void hold_store(struct write_job *j)
{
    atomic_store(&store_held, true);
    UNTIL(atomic_load(&store_goes_on));
    j->answered = true;
}

static void nothing(struct write_job *j)
{
    (void)j;
}

static void *submit_another(void *arg)
{
    struct caller *c = arg;
    struct pawl_shown *shown = NULL;
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = c->id, .type = "t", .input = PAWL_TEXT("8") };
    c->status = pawl_submit_wait(c->p, &s, c->wait_us, &shown, NULL);
    pawl_shown_free(shown);
    return NULL;
}

static int64_t waiting(struct pawl *p)
{
    struct pawl_stats s = { PAWL_STATS_INIT };
    pawl_stats(p, &s);
    return s.waiting;
}

static bool told(struct pawl *p)
{
    waiters_mark_all(&p->e->waiters);
    housekeeping_nudge(p->e);
    return waiting(p) == 0;
}

/* The end of another call with the same id is not an answer to this one, whichever comes first: the
 * refusal from the store thread, or a read that finds the id ended. */
TEST(a_conflict_is_no_answer_of_the_call_before)
{
    struct pawl *p = fixture_open(param);
    struct caller c = { .p = p, .id = "x", .wait_us = 30 * FIXTURE_SEC };
    struct write_job held = { .prepare = hold_store, .done = nothing, .weight = 1 };
    struct pawl_err err;
    fixture_on(p, "t", fixture_echo);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .input = PAWL_TEXT("7") });
    fixture_start(p, 1);
    fixture_ends(p, "x", PAWL_COMPLETED);
    OK(exec_post(p->e, &held, &err), &err);
    UNTIL(atomic_load(&store_held));
    EQ_INT(pthread_create(&c.thread, NULL, submit_another, &c), 0);
    UNTIL(waiting(p) == 1);
    UNTIL(told(p));
    atomic_store(&store_goes_on, true);
    pthread_join(c.thread, NULL);
    EQ_STATUS(c.status, PAWL_CONFLICT, NULL);
    pawl_close(p);
}
