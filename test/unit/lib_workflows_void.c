/*
 * lib_workflows_void.c - a handler that does not look at the answer of a point: what it does behind
 * one that suspends or fails is void.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "steps_fixture.h"

RUNS_ON(ENGINES_DURABLE)

static int never_checks(struct pawl_call *c)
{
    struct pawl_data go = { PAWL_JSON, "old", 3 };
    struct pawl_err err;
    const struct pawl_rows *rows;
    (void)!steps_do(c, "a");
    (void)!pawl_step_signal(c, "go", 0, &go);
    (void)!steps_do(c, "b");
    pawl_publish(c, "at", PAWL_TEXT("1"));
    pawl_set_state_int(c, 9);
    if (go.form == PAWL_NOTHING) {
        EQ_STATUS(pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "none" }, &err),
                  PAWL_STATE, &err);
        EQ_STATUS(pawl_sql(c, "SELECT 1", NULL, 0, &rows, &err), PAWL_STATE, &err);
    }
    return pawl_reply_int(c, 1);
}

TEST(what_follows_an_unchecked_wait_is_void)
{
    struct pawl *p = steps_open(param, never_checks);
    fixture_start(p, 2);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "flow", .key = "k" });
    UNTIL(steps_wait(p, "x", "signal"));
    EQ_STR(steps_log, "a");
    steps_signal(p, "x", "go", "1");
    steps_complete(p, "x", "1");
    EQ_STR(steps_log, "a b");
    EQ_INT(fixture_count(p, 0), 1);
    pawl_close(p);
}

/* How a point ends the pass. */
enum ends {
    SLEEPS,
    SIGNAL,
    JOINS,
    SELECTS,
    FAILS_ONCE,
    ENDS_SUSPENDED,
    REFUSES = ENDS_SUSPENDED,
    RESTARTS,
    ENDS
};

static int never_works(struct pawl_call *c, void *arg)
{
    return arg ? pawl_refuse(c, "no") : pawl_fail(c, "not now");
}

static int ends_as(struct pawl_call *c, int64_t how)
{
    static const char *const names[] = { "go" };
    struct pawl_select what = { PAWL_SELECT_INIT, .signals = names, .n_signals = 1,
                                .timeout_us = 600 * FIXTURE_SEC };
    const char *id;
    switch ((enum ends)how) {
    case SLEEPS:
        return pawl_step_sleep(c, "nap", 600 * FIXTURE_SEC);
    case SIGNAL:
        return pawl_step_signal(c, "go", 0, NULL);
    case JOINS:
        return pawl_step_child(c, "c", &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "none" },
                               &id) ||
               pawl_step_join(c, PAWL_ALL, &id, 1, 0);
    case SELECTS:
        return pawl_step_select(c, &what);
    case FAILS_ONCE:
    case REFUSES:
        return pawl_step(c,
                         &(struct pawl_step){ PAWL_STEP_INIT, .name = "b", .run = never_works,
                                              .arg = how == REFUSES ? c : NULL,
                                              .backoff_base_us = 600 * FIXTURE_SEC },
                         NULL);
    case RESTARTS:
        return pawl_restart(c, PAWL_TEXT("-1"));
    case ENDS:
        break;
    }
    return 0;
}

/* Everything that a handler can do, behind a point whose answer it does not look at. */
static int does_all(struct pawl_call *c)
{
    int64_t how = 0, now = 7;
    uint64_t dice = 7;
    char uuid[37] = "";
    struct pawl_data out = { PAWL_JSON, "old", 3 };
    const struct pawl_rows *rows;
    struct pawl_err err;
    pawl_input_int(c, &how);
    if (how < 0 || steps_do(c, "a"))
        return pawl_reply_int(c, how);
    NE_INT(ends_as(c, how), 0);
    EQ_STATUS(pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "sent" }, &err), PAWL_STATE,
              &err);
    EQ_STATUS(pawl_sql(c, "SELECT 1", NULL, 0, &rows, &err), PAWL_STATE, &err);
    pawl_set_state_int(c, 9);
    pawl_publish(c, "at", PAWL_TEXT("1"));
    NE_INT(steps_do(c, "behind"), 0);
    NE_INT(pawl_step_signal(c, "early", 0, &out), 0);
    EQ_INT(out.form, PAWL_NOTHING);
    NE_INT(pawl_step_now(c, &now) && pawl_step_random(c, &dice) && pawl_step_uuid(c, uuid), 0);
    EQ_INT(now, 0);
    EQ_UINT(dice, 0);
    EQ_STR(uuid, "");
    FALSE(pawl_patched(c, "change"));
    NE_INT(pawl_step_child(c, "c2", &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "none" }, NULL),
           0);
    NE_INT(pawl_restart(c, PAWL_TEXT("5")), 0);
    return pawl_reply_int(c, 5);
}

/* What is stored of everything that a handler can do. */
static void nothing_behind(const void *param, int steps)
{
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_published"), 0);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_object"), 0);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_signal WHERE used IS NOT NULL"), 0);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_step"), steps);
    EQ_STR(steps_log, "a");
}

TEST(nothing_is_done_behind_a_point_that_suspends_or_fails)
{
    static const char *const waits[] = { "timer", "signal", "children", "signal", "retry" };
    for (int how = 0; how < ENDS; how++) {
        struct pawl *p = steps_open(param, does_all);
        struct pawl_err err;
        char input[4];
        snprintf(input, sizeof input, "%d", how);
        fixture_submit_as(
            p,
            (struct pawl_spec){ .id = "x", .type = "flow", .key = "k", .input = pawl_text(input) });
        steps_signal(p, "x", "early", "1");
        fixture_start(p, 1);
        if (how < ENDS_SUSPENDED) {
            UNTIL(steps_wait(p, "x", waits[how]));
            EQ_INT(fixture_count(p, 0), how == JOINS ? 2 : 1);
        } else if (how == REFUSES) {
            steps_end(p, "x", PAWL_FAILED, "no");
        } else {
            steps_complete(p, "x", "-1");
        }
        nothing_behind(param, how == RESTARTS ? 0 : how == JOINS ? 3 : 2);
        if (how < ENDS_SUSPENDED)
            OK(pawl_workflow_cancel(p, "x", PAWL_NO_UNDO, NULL, &err), &err);
        pawl_close(p);
        engine_fresh(param);
    }
}

static int loops(struct pawl_call *c)
{
    while (pawl_step_signal(c, "go", 0, NULL) != 0)
        ;
    return pawl_reply_int(c, 1);
}

TEST(a_loop_over_void_points_is_stopped)
{
    static struct pawl *p; /* never closed, and so it is not a leak */
    p = steps_open(param, loops);
    struct pawl_stats st = { PAWL_STATS_INIT };
    fixture_on(p, "u", fixture_echo);
    fixture_start(p, 1);
    steps_start(p, "x", "1");
    UNTIL((pawl_stats(p, &st), st.hung == 1));
    TRUE(steps_wait(p, "x", "signal"));
    fixture_submit(p, "y", "u");
    fixture_ends(p, "y", PAWL_COMPLETED);
    /* The thread never returns, so the handle cannot be closed. */
}

/* ---- Published values ------------------------------------------------------------------------ */

/* Publishes `first` values, and after a step and a wait the rest of as many as it is told. */
static int publishes(struct pawl_call *c)
{
    const int first = 600, all = atomic_load(&steps_told);
    char name[16];
    for (int i = 1; i <= all; i++) {
        if (i == first + 1 && (steps_do_undoable(c, "a") || pawl_step_sleep(c, "nap", FIXTURE_MS)))
            return 0;
        snprintf(name, sizeof name, "v%d", i);
        if (pawl_publish(c, name, PAWL_TEXT("1")))
            return 0;
    }
    return steps_do_undoable(c, "b") ? 0 : pawl_reply_int(c, 1);
}

/* The run fails where the last of them is stored; the step that came along has happened. */
TEST(a_run_publishes_a_thousand_values)
{
    struct pawl *p = steps_open(param, publishes);
    fixture_start(p, 2);
    atomic_store(&steps_told, 1000);
    steps_start(p, "x", "1");
    steps_complete(p, "x", "1");
    EQ_STR(steps_log, "a b");
    steps_log[0] = '\0';
    atomic_store(&steps_told, 1001);
    steps_start(p, "y", "1");
    steps_end(p, "y", PAWL_FAILED, "published value \"v1001\": the run shows 1000 values already");
    EQ_STR(steps_log, "a b unb una");
    pawl_close(p);
}
