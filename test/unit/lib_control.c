/*
 * lib_control.c - operator functions of pawl.h: cancel, expiry, delay, priority, queues, retry,
 * move, tags, lists.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "fixture.h"

RUNS_ON(ENGINES_ALL)

/* ---- Cancel ---- */

TEST(cancelling_a_pending_call_ends_it)
{
    struct pawl *p = fixture_open(param);
    enum pawl_state state = 0;
    struct pawl_err err;
    fixture_on(p, "t", fixture_echo);
    fixture_submit(p, "x", "t");
    OK(pawl_cancel(p, "x", &state, &err), &err);
    EQ_INT(state, PAWL_CANCELLED);
    OK(pawl_cancel(p, "x", &state, &err), &err); /* the same again has no effect */
    EQ_INT(state, PAWL_CANCELLED);
    fixture_start(p, 1);
    fixture_submit(p, "y", "t");
    fixture_ends(p, "y", PAWL_COMPLETED);
    EQ_INT(atomic_load(&fixture_runs), 1);
    EQ_INT(fixture_state(p, "x"), PAWL_CANCELLED);
    EQ_STATUS(pawl_cancel(p, "y", &state, &err), PAWL_STATE, &err);
    EQ_INT(state, PAWL_COMPLETED);
    EQ_STATUS(pawl_cancel(p, "z", &state, &err), PAWL_NOT_FOUND, &err);
    pawl_close(p);
}

static int until_cancelled(struct pawl_call *c)
{
    atomic_fetch_add(&fixture_runs, 1);
    atomic_fetch_add(&fixture_inside, 1);
    int cancelled = pawl_sleep(c, 600 * FIXTURE_SEC);
    EQ_INT(cancelled, pawl_cancelled(c));
    return pawl_fail(c, "stopped");
}

TEST(a_handler_that_notices_a_cancel_ends_cancelled)
{
    struct pawl *p = fixture_open(param);
    enum pawl_state state;
    fixture_on(p, "t", until_cancelled);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    UNTIL(atomic_load(&fixture_inside) == 1);
    OK(pawl_cancel(p, "x", &state, NULL), NULL);
    EQ_INT(state, PAWL_PROCESSING);
    fixture_ends(p, "x", PAWL_CANCELLED);
    EQ_INT(atomic_load(&fixture_runs), 1);
    pawl_close(p);
}

TEST(a_handler_that_finishes_first_wins)
{
    struct pawl *p = fixture_open(param);
    enum pawl_state state;
    fixture_on(p, "t", fixture_blocks);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    UNTIL(atomic_load(&fixture_inside) == 1);
    OK(pawl_cancel(p, "x", &state, NULL), NULL);
    struct pawl_shown *shown = fixture_get(p, "x");
    TRUE(pawl_shown_view(shown)->cancel_requested);
    pawl_shown_free(shown);
    fixture_open_gate();
    fixture_ends(p, "x", PAWL_COMPLETED);
    pawl_close(p);
}

TEST(a_cancelled_call_is_not_retried)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    enum pawl_state state;
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .max_attempts = 5 });
    struct pawl_lease *l = fixture_claim(p, "t", 1);
    OK(pawl_cancel(p, "x", &state, &err), &err);
    OK(fixture_finish(p, l->token, "x", PAWL_END_ERROR, &state, &err), &err);
    EQ_INT(state, PAWL_CANCELLED);
    pawl_lease_free(l);
    pawl_close(p);
}

/* Claimed, and waiting for a slot in this process. */
TEST(cancelling_a_call_that_was_claimed_but_has_not_begun)
{
    struct pawl *p = fixture_open(param);
    enum pawl_state state;
    fixture_on(p, "t", fixture_blocks);
    fixture_assume_quick(); /* so that it is claimed ahead, until it is handed back */
    fixture_submit_many(p, "t", 5);
    fixture_start(p, 1);
    UNTIL(atomic_load(&fixture_inside) == 1);
    OK(pawl_cancel(p, "c4", &state, NULL), NULL);
    fixture_ends(p, "c4", PAWL_CANCELLED);
    EQ_INT(atomic_load(&fixture_runs), 1);
    fixture_open_gate();
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 4);
    pawl_close(p);
}

/* ---- Time ---- */

TEST(an_expired_call_never_runs)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_echo);
    fixture_submit_as(p,
                      (struct pawl_spec){ .id = "in", .type = "t", .expires_in_us = FIXTURE_MS });
    fixture_submit_as(p, (struct pawl_spec){ .id = "at", .type = "t", .expires_at_us = 1 });
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "not", .type = "t", .expires_in_us = 600 * FIXTURE_SEC });
    fixture_ends(p, "in", PAWL_EXPIRED);
    fixture_ends(p, "at", PAWL_EXPIRED);
    fixture_start(p, 1);
    fixture_ends(p, "not", PAWL_COMPLETED);
    EQ_INT(atomic_load(&fixture_runs), 1);
    pawl_close(p);
}

TEST(a_delayed_call_runs_when_due_without_traffic)
{
    /* No sweep runs: each call starts at its own time. */
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .reclaim_interval_us = 3600 * FIXTURE_SEC });
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 1);
    fixture_submit_as(p,
                      (struct pawl_spec){ .id = "w", .type = "t", .delay_us = 600 * FIXTURE_SEC });
    struct pawl_shown *shown = fixture_get(p, "w");
    EQ_STR(pawl_shown_view(shown)->waiting_for, "time");
    int64_t at = pawl_shown_view(shown)->created_at_us + 500 * FIXTURE_MS;
    pawl_shown_free(shown);
    fixture_submit_as(p, (struct pawl_spec){ .id = "z", .type = "t", .run_at_us = 5 });
    fixture_ends(p, "z", PAWL_COMPLETED); /* not behind another call's time */
    int64_t begun = fixture_mono();
    fixture_submit_as(p,
                      (struct pawl_spec){ .id = "x", .type = "t", .delay_us = 300 * FIXTURE_MS });
    fixture_submit_as(p, (struct pawl_spec){ .id = "y", .type = "t", .run_at_us = at });
    fixture_ends(p, "x", PAWL_COMPLETED);
    GE_INT(fixture_mono() - begun, 299 * FIXTURE_MS);
    LT_INT(fixture_mono() - begun, 20 * FIXTURE_SEC * check_scale());
    fixture_ends(p, "y", PAWL_COMPLETED);
    shown = fixture_get(p, "y");
    GE_INT(pawl_shown_view(shown)->claimed_at_us, at);
    pawl_shown_free(shown);
    pawl_close(p);
}

/* ---- Order ---- */

static char order[2000];

static int notes_order(struct pawl_call *c)
{
    size_t len = strlen(order);
    snprintf(order + len, sizeof order - len, "%s ", pawl_call_id(c));
    return 0;
}

TEST(higher_priority_first_then_older)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", notes_order);
    static const struct {
        const char *id;
        int priority;
    } v[] = { { "a", 0 }, { "b", 5 }, { "c", -1000 }, { "d", 5 }, { "e", 1000 }, { "f", 0 } };
    for (size_t i = 0; i < 6; i++)
        fixture_submit_as(
            p, (struct pawl_spec){ .id = v[i].id, .type = "t", .priority = v[i].priority });
    fixture_start(p, 1);
    fixture_drain(p);
    pawl_close(p); /* The worker thread has ended, so its variables can be read. */
    EQ_STR(order, "e b d a f c ");
}

TEST(workers_serve_only_their_queues)
{
    struct pawl *p = fixture_open(param);
    static const char *const queues[] = { "a", "b" };
    struct pawl_err err;
    fixture_on(p, "t", fixture_echo);
    fixture_submit_as(p, (struct pawl_spec){ .id = "1", .type = "t", .queue = "a" });
    fixture_submit_as(p, (struct pawl_spec){ .id = "2", .type = "t", .queue = "c" });
    fixture_submit_as(p, (struct pawl_spec){ .id = "3", .type = "t", .queue = "b" });
    fixture_submit_as(p, (struct pawl_spec){ .id = "4", .type = "u", .queue = "a" });
    OK(pawl_start(p, &(struct pawl_workers){ PAWL_WORKERS_INIT, .queues = queues, .n_queues = 2 },
                  &err),
       &err);
    fixture_ends(p, "1", PAWL_COMPLETED);
    fixture_ends(p, "3", PAWL_COMPLETED);
    EQ_INT(fixture_state(p, "2"), PAWL_PENDING);
    EQ_INT(fixture_state(p, "4"), PAWL_PENDING);
    OK(pawl_move(p, "2", 0, PAWL_SAME, "b", &err), &err);
    fixture_ends(p, "2", PAWL_COMPLETED);
    pawl_close(p);
}

TEST(a_paused_queue_accepts_and_does_not_run)
{
    struct pawl *p = fixture_open(param);
    struct pawl_queues *q;
    struct pawl_err err;
    fixture_on(p, "t", fixture_echo);
    OK(pawl_pause(p, "a", true, &err), &err);
    fixture_start(p, 1);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .queue = "a" });
    fixture_submit_as(p, (struct pawl_spec){ .id = "y", .type = "t", .queue = "b" });
    fixture_ends(p, "y", PAWL_COMPLETED);
    struct pawl_shown *shown = fixture_get(p, "x");
    EQ_INT(pawl_shown_view(shown)->state, PAWL_PENDING);
    EQ_STR(pawl_shown_view(shown)->waiting_for, "paused");
    pawl_shown_free(shown);
    OK(pawl_queues(p, &q, &err), &err);
    EQ_INT((int)q->n, 2);
    EQ_STR(q->v[0].queue, "a");
    TRUE(q->v[0].paused);
    EQ_INT(q->v[0].pending, 1);
    EQ_INT(q->v[0].due, 1);
    GT_INT(q->v[0].oldest_pending_us, 0);
    EQ_STR(q->v[1].queue, "b");
    FALSE(q->v[1].paused);
    EQ_INT(q->v[1].pending, 0);
    pawl_queues_free(q);
    OK(pawl_pause(p, "a", false, &err), &err);
    fixture_ends(p, "x", PAWL_COMPLETED);
    pawl_close(p);
}

/* ---- Retry and move ---- */

static atomic_bool works;

static int works_later(struct pawl_call *c)
{
    atomic_fetch_add(&fixture_runs, 1);
    if (!atomic_load(&works))
        return pawl_fail(c, "broken");
    return pawl_reply_int(c, pawl_call_view(c)->redrives);
}

TEST(a_retried_call_has_fresh_attempts)
{
    struct pawl *p = fixture_open(param);
    struct pawl_attempts *a;
    struct pawl_err err;
    fixture_on(p, "t", works_later);
    fixture_start(p, 1);
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "x", .type = "t", .max_attempts = 2, .backoff_base_us = 1 });
    fixture_ends(p, "x", PAWL_DEAD_LETTER);
    OK(pawl_retry(p, "x", &err), &err);
    fixture_ends(p, "x", PAWL_DEAD_LETTER);
    EQ_INT(atomic_load(&fixture_runs), 4);
    atomic_store(&works, true);
    OK(pawl_retry(p, "x", &err), &err);
    fixture_ends(p, "x", PAWL_COMPLETED);
    struct pawl_shown *shown = fixture_get(p, "x");
    EQ_INT(pawl_shown_view(shown)->redrives, 2);
    EQ_INT(pawl_shown_view(shown)->attempts, 0);
    EQ_BYTES(pawl_shown_view(shown)->result.data, pawl_shown_view(shown)->result.len, "2", 1);
    EQ_STR(pawl_shown_view(shown)->error, NULL);
    pawl_shown_free(shown);
    OK(pawl_attempts(p, "x", &a, &err), &err);
    GE_INT((int)a->n, 4);
    pawl_attempts_free(a);
    EQ_STATUS(pawl_retry(p, "x", &err), PAWL_STATE, &err);
    fixture_submit_as(p,
                      (struct pawl_spec){ .id = "y", .type = "t", .delay_us = 600 * FIXTURE_SEC });
    EQ_STATUS(pawl_retry(p, "y", &err), PAWL_STATE, &err);
    EQ_STATUS(pawl_retry(p, "z", &err), PAWL_NOT_FOUND, &err);
    pawl_close(p);
}

TEST(cancelled_and_expired_calls_can_be_retried)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    fixture_on(p, "t", fixture_echo);
    fixture_submit(p, "x", "t");
    fixture_submit_as(p, (struct pawl_spec){ .id = "y", .type = "t", .expires_at_us = 1 });
    OK(pawl_cancel(p, "x", NULL, &err), &err);
    fixture_ends(p, "y", PAWL_EXPIRED);
    OK(pawl_retry(p, "x", &err), &err);
    OK(pawl_retry(p, "y", &err), &err);
    fixture_start(p, 1);
    fixture_ends(p, "x", PAWL_COMPLETED);
    fixture_ends(p, "y", PAWL_COMPLETED);
    pawl_close(p);
}

TEST(a_pending_call_can_be_moved)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    fixture_on(p, "t", notes_order);
    OK(pawl_pause(p, "default", true, &err), &err);
    fixture_submit(p, "a", "t");
    fixture_submit(p, "b", "t");
    fixture_submit_as(p,
                      (struct pawl_spec){ .id = "c", .type = "t", .delay_us = 600 * FIXTURE_SEC });
    OK(pawl_move(p, "b", 0, 7, NULL, &err), &err);
    OK(pawl_move(p, "c", 1, PAWL_SAME, "other", &err), &err);
    fixture_start(p, 1);
    fixture_ends(p, "c", PAWL_COMPLETED); /* not delayed and not paused any more */
    struct pawl_shown *shown = fixture_get(p, "c");
    EQ_STR(pawl_shown_view(shown)->queue, "other");
    pawl_shown_free(shown);
    OK(pawl_pause(p, "default", false, &err), &err);
    fixture_drain(p);
    EQ_STATUS(pawl_move(p, "a", 1, PAWL_SAME, NULL, &err), PAWL_STATE, &err);
    EQ_STATUS(pawl_move(p, "z", 1, PAWL_SAME, NULL, &err), PAWL_NOT_FOUND, &err);
    EQ_STATUS(pawl_move(p, "a", 0, 1001, NULL, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_move(p, "a", -1, PAWL_SAME, NULL, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_move(p, "a", 0, PAWL_SAME, "", &err), PAWL_INVALID, &err);
    pawl_close(p);
    EQ_STR(order, "c b a ");
}

/* ---- Lists ---- */

/* How many calls a query finds, page by page, each once. */
static int found(struct pawl *p, struct pawl_query q)
{
    char cursor[200];
    int64_t last = INT64_MAX;
    struct pawl_err err;
    int n = 0;
    q.size = sizeof q;
    for (;;) {
        struct pawl_page *page;
        OK(pawl_list(p, &q, &page, &err), &err);
        if (q.limit)
            LE_INT((int)page->n, q.limit);
        for (size_t i = 0; i < page->n; i++) {
            LT_INT(page->calls[i].seq, last); /* newest first, none twice */
            last = page->calls[i].seq;
            if (!q.with_input)
                EQ_PTR(page->calls[i].input.data, NULL);
        }
        n += (int)page->n;
        bool more = page->next != NULL;
        if (more)
            snprintf(cursor, sizeof cursor, "%s", page->next);
        pawl_page_free(page);
        if (!more)
            return n;
        q.cursor = cursor;
    }
}

TEST(lists_page_and_filter)
{
    struct pawl *p = fixture_open(param);
    struct pawl_tag even[] = { { "even", "yes" }, { "all", "1" } }, odd[] = { { "even", "no" } };
    fixture_on(p, "t", fixture_echo);
    for (int i = 0; i < 25; i++) {
        char id[32];
        snprintf(id, sizeof id, "c%d", i);
        fixture_submit_as(p, (struct pawl_spec){ .id = id,
                                                 .type = i % 5 ? "t" : "u",
                                                 .queue = i < 10 ? "q" : "default",
                                                 .method = i == 3 ? "m" : "run",
                                                 .input = PAWL_TEXT("1"),
                                                 .parent = i == 4 ? "c3" : NULL,
                                                 .caller = i == 5 ? "bob" : NULL,
                                                 .tags = i % 2 ? odd : even,
                                                 .n_tags = i % 2 ? 1 : 2 });
    }
    for (int limit = 0; limit <= 26; limit++)
        EQ_INT(found(p, (struct pawl_query){ .limit = limit }), 25);
    EQ_INT(found(p, (struct pawl_query){ .type = "u", .limit = 2 }), 5);
    EQ_INT(found(p, (struct pawl_query){ .queue = "q", .limit = 3, .with_input = true }), 10);
    EQ_INT(found(p, (struct pawl_query){ .queue = "q", .type = "u" }), 2);
    EQ_INT(found(p, (struct pawl_query){ .method = "m" }), 1);
    EQ_INT(found(p, (struct pawl_query){ .parent = "c3" }), 1);
    EQ_INT(found(p, (struct pawl_query){ .caller = "bob" }), 1);
    EQ_INT(found(p, (struct pawl_query){ .tag_name = "even", .tag_value = "yes", .limit = 4 }), 13);
    EQ_INT(found(p, (struct pawl_query){ .tag_name = "all", .tag_value = "2" }), 0);
    EQ_INT(found(p, (struct pawl_query){ .state = PAWL_PENDING, .limit = 7 }), 25);
    EQ_INT(found(p, (struct pawl_query){ .state = PAWL_COMPLETED }), 0);
    EQ_INT(found(p, (struct pawl_query){ .queue = "nobody's" }), 0);
    struct pawl_shown *shown = fixture_get(p, "c10");
    int64_t at = pawl_shown_view(shown)->created_at_us;
    pawl_shown_free(shown);
    EQ_INT(found(p, (struct pawl_query){ .since_us = at }) +
               found(p, (struct pawl_query){ .until_us = at }),
           25);
    EQ_INT(found(p, (struct pawl_query){ .until_us = 1 }), 0);
    fixture_start(p, 2);
    UNTIL(fixture_count(p, PAWL_COMPLETED) == 19); /* c3 has a method that is not registered */
    EQ_INT(found(p, (struct pawl_query){ .state = PAWL_COMPLETED, .limit = 4 }), 19);
    EQ_INT(found(p, (struct pawl_query){ .state = PAWL_PENDING, .type = "u" }), 5);
    pawl_close(p);
}

TEST(a_cursor_that_was_not_given_is_invalid)
{
    struct pawl *p = fixture_open(param);
    struct pawl_page *page;
    struct pawl_err err;
    static const char *const bad[] = { "", "x", "0", "-1", "99999999999999999999", "1 ", "c1\xff" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pawl_query q = { PAWL_QUERY_INIT, .cursor = bad[i] };
        EQ_STATUS(pawl_list(p, &q, &page, &err), PAWL_INVALID, &err);
        HAS_STR(err.text, "cursor");
    }
    pawl_close(p);
}

TEST(a_list_longer_than_one_look_is_found_in_full)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    fixture_submit(p, "first", "rare");
    for (int i = 0; i < 3; i++) {
        static struct pawl_spec v[5000];
        static struct pawl_receipt r[5000];
        for (int k = 0; k < 5000; k++)
            v[k] = (struct pawl_spec){ PAWL_SPEC_INIT, .type = "t" };
        OK(pawl_submit(p, v, 5000, 0, r, &err), &err);
    }
    /* 15,001 rows are more than one scan: a page may be short, and the following pages find
     * everything once. */
    struct pawl_query q = { PAWL_QUERY_INIT, .method = "nobody's" };
    EQ_INT(found(p, q), 0);
    EQ_INT(found(p, (struct pawl_query){ .type = "rare" }), 1);
    pawl_close(p);
}
