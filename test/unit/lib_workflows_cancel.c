/*
 * lib_workflows_cancel.c - a cancel, the end of a run, or of its time reaches the step that runs.
 *
 * The steps here sleep until they are told: one that is not ends its case at its deadline.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "base/hook.h"
#include "steps_fixture.h"

RUNS_ON(ENGINES_DURABLE)

/* What a step does when it is told to stop. */
enum told { REPLIES, FAILS };

/* Sleeps until it is told. */
static int sleeps(struct pawl_call *c, void *name)
{
    FALSE(pawl_cancelled(c));
    steps_note("", name);
    atomic_fetch_add(&fixture_inside, 1);
    bool told = pawl_sleep(c, 600 * FIXTURE_SEC);
    EQ_INT(told, pawl_cancelled(c));
    steps_note("", told ? "told" : "slept");
    return atomic_load(&steps_told) == FAILS ? pawl_fail(c, "it stopped") : pawl_reply_int(c, 1);
}

/* Undoing takes a moment, in which a cancel is no reason to stop. */
static int undoes(struct pawl_call *c, int known, struct pawl_data result, void *name)
{
    bool told = pawl_cancelled(c) || pawl_sleep(c, 20 * FIXTURE_MS);
    steps_note("", told ? "told" : "calm");
    return steps_undo(c, known, result, name);
}

static int step(struct pawl_call *c, const char *name, pawl_step_run *run)
{
    return pawl_step(c,
                     &(struct pawl_step){ PAWL_STEP_INIT, .name = name, .run = run, .undo = undoes,
                                          .arg = (void *)name },
                     NULL);
}

static int two_steps(struct pawl_call *c)
{
    return step(c, "a", steps_run) || step(c, "b", sleeps) || step(c, "c", steps_run)
               ? 0
               : pawl_reply_int(c, 1);
}

/* One program runs the handler; the other cancels. */
struct programs {
    struct pawl *runs, *other;
};
static struct programs programs_open(const void *param, pawl_handler *h)
{
    const char *url = engine_url(param);
    struct programs p;
    steps_log[0] = '\0';
    atomic_store(&steps_told, REPLIES);
    p.runs = fixture_open_as(param, (struct pawl_options){ .db = url, .node = "one" });
    fixture_on(p.runs, "flow", h);
    p.other = fixture_open_as(param, (struct pawl_options){ .db = url, .node = "two" });
    fixture_start(p.runs, 2);
    return p;
}

static void programs_close(struct programs *p)
{
    pawl_close(p->other);
    pawl_close(p->runs);
}

/* Begin a run, and wait until its step sleeps. */
static void sleeps_in(const struct programs *p, const char *id)
{
    int before = atomic_load(&fixture_inside);
    steps_log[0] = '\0';
    steps_start(p->runs, id, "1");
    UNTIL(atomic_load(&fixture_inside) > before);
}

static void cancel(struct pawl *p, const char *id, unsigned flags)
{
    enum pawl_state state;
    struct pawl_err err;
    OK(pawl_workflow_cancel(p, id, flags, &state, &err), &err);
    EQ_INT(state, flags & PAWL_NO_UNDO ? PAWL_CANCELLED : PAWL_PROCESSING);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

TEST(a_cancel_tells_the_step_that_runs)
{
    struct programs p = programs_open(param, two_steps);
    for (int other = 0; other < 2; other++) {
        char id[8];
        snprintf(id, sizeof id, "x%d", other);
        sleeps_in(&p, id);
        cancel(other ? p.other : p.runs, id, 0);
        fixture_ends(p.runs, id, PAWL_CANCELLED);
        EQ_STR(steps_log, "a b told calm unb calm una"); /* its result is stored */
        sleeps_in(&p, other ? "y1" : "y0");
        enum pawl_state state;
        struct pawl_err err;
        OK(pawl_cancel(other ? p.other : p.runs, other ? "y1" : "y0", &state, &err), &err);
        fixture_ends(p.runs, other ? "y1" : "y0", PAWL_CANCELLED);
        EQ_STR(steps_log, "a b told calm unb calm una");
    }
    programs_close(&p);
}

TEST(a_step_that_obeys_a_cancel_is_in_doubt)
{
    struct programs p = programs_open(param, two_steps);
    atomic_store(&steps_told, FAILS);
    sleeps_in(&p, "x");
    cancel(p.other, "x", 0);
    fixture_ends(p.runs, "x", PAWL_CANCELLED);
    EQ_STR(steps_log, "a b told calm perhaps-unb calm una");
    programs_close(&p);
}

/* A handler that looks between its steps. */
static int looks(struct pawl_call *c)
{
    if (step(c, "a", steps_run))
        return 0;
    if (atomic_fetch_add(&fixture_inside, 1) == 0) {
        EQ_INT(pawl_sleep(c, 600 * FIXTURE_SEC), 1);
        return pawl_fail(c, "it stopped");
    }
    return step(c, "b", steps_run) ? 0 : pawl_reply_int(c, 1);
}

TEST(between_steps_nothing_is_in_doubt)
{
    struct programs p = programs_open(param, looks);
    steps_start(p.runs, "x", "1");
    UNTIL(atomic_load(&fixture_inside) == 1);
    cancel(p.other, "x", 0);
    fixture_ends(p.runs, "x", PAWL_CANCELLED);
    EQ_STR(steps_log, "a calm una");
    programs_close(&p);
}

TEST(the_end_of_a_run_tells_the_step_that_runs)
{
    struct programs p = programs_open(param, two_steps);
    for (int other = 0; other < 2; other++) {
        sleeps_in(&p, other ? "x1" : "x0");
        cancel(other ? p.other : p.runs, other ? "x1" : "x0", PAWL_NO_UNDO);
        fixture_ends(p.runs, other ? "x1" : "x0", PAWL_CANCELLED);
        UNTIL(strstr(steps_log, "told") != NULL);
        EQ_STR(steps_log, "a b told");
    }
    programs_close(&p);
}

/* Sleeps in its undo, until it is told. */
static int undoes_long(struct pawl_call *c, int known, struct pawl_data result, void *name)
{
    (void)known, (void)result;
    return sleeps(c, name);
}

static int undoes_for_long(struct pawl_call *c)
{
    if (pawl_step(c,
                  &(struct pawl_step){ PAWL_STEP_INIT, .name = "a", .run = steps_run,
                                       .undo = undoes_long, .arg = "a" },
                  NULL))
        return 0;
    return pawl_refuse(c, "no");
}

/* A cancel changes nothing about a run that undoes; its end does. */
TEST(an_undo_is_told_when_the_run_ends_and_not_of_a_cancel)
{
    struct programs p = programs_open(param, undoes_for_long);
    struct pawl_err err;
    enum pawl_state state;
    for (int other = 0; other < 2; other++) {
        const char *id = other ? "x1" : "x0";
        sleeps_in(&p, id);
        cancel(p.runs, id, 0);
        cancel(p.other, id, 0);
        OK(pawl_cancel(p.runs, id, &state, &err), &err);
        EQ_STR(steps_log, "a a");
        cancel(other ? p.other : p.runs, id, PAWL_NO_UNDO);
        UNTIL(strstr(steps_log, "told") != NULL);
        fixture_ends(p.runs, id, PAWL_CANCELLED);
    }
    programs_close(&p);
}

/* ---- run_timeout ----------------------------------------------------------------------------- */

static int sleeps_first(struct pawl_call *c)
{
    return step(c, "b", sleeps) || step(c, "c", steps_run) ? 0 : pawl_reply_int(c, 1);
}

static void out_of_time(const void *param, pawl_handler *h, enum told what, const char *log)
{
    struct programs p = programs_open(param, h);
    atomic_store(&steps_told, what);
    fixture_submit_as(p.runs, (struct pawl_spec){
                                  .id = "x", .type = "flow", .run_timeout_us = 300 * FIXTURE_MS });
    fixture_ends(p.runs, "x", PAWL_CANCELLED);
    EQ_STR(steps_log, log);
    programs_close(&p);
}

TEST(a_step_is_told_that_its_run_is_out_of_its_time)
{
    out_of_time(param, two_steps, REPLIES, "a b told calm unb calm una");
}

TEST(a_step_that_stops_then_is_not_tried_again)
{
    out_of_time(param, two_steps, FAILS, "a b told calm perhaps-unb calm una");
}

/* The run began with it, and so it is undone too. */
TEST(the_first_step_is_told)
{
    out_of_time(param, sleeps_first, REPLIES, "b told calm unb");
}

static int no_undo(struct pawl_call *c)
{
    if (pawl_step(c, &(struct pawl_step){ PAWL_STEP_INIT, .name = "b", .run = sleeps, .arg = "b" },
                  NULL))
        return 0;
    return step(c, "c", steps_run) ? 0 : pawl_reply_int(c, 1);
}

/* Its result is the first thing that is stored of the run, after its time. */
TEST(a_run_that_begins_out_of_its_time_ends)
{
    out_of_time(param, no_undo, REPLIES, "b told");
}

/* ---- Claimed too early ----------------------------------------------------------------------- */

static int waits_between(struct pawl_call *c)
{
    steps_note("", "(");
    if (steps_do_undoable(c, "a") || pawl_step_signal(c, "go", 0, NULL) ||
        steps_do_undoable(c, "b"))
        return 0;
    return pawl_reply_int(c, 1);
}

/* Once the run is claimed, and before its pass begins, another program cancels it. */
static struct pawl *other;
static atomic_int cancels; /* 1: when it is claimed */
static void when_claimed(const char *name, void *ctx)
{
    struct pawl_err err;
    enum pawl_state state;
    int now = 1;
    (void)ctx;
    if (strcmp(name, "exec.claimed") || atomic_load(&cancels) != 1)
        return;
    struct pawl_shown *shown = fixture_get(other, "x");
    bool claimed = pawl_shown_view(shown)->node != NULL;
    pawl_shown_free(shown);
    if (!claimed || !atomic_compare_exchange_strong(&cancels, &now, 2))
        return;
    OK(pawl_cancel(other, "x", &state, &err), &err);
    EQ_INT(state, PAWL_PROCESSING);
}

/* The pass that was claimed before the cancel gives the run back, and runs nothing. */
TEST(a_pass_that_was_claimed_before_the_cancel_does_not_run)
{
    const char *url = engine_url(param);
    steps_log[0] = '\0';
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .db = url, .node = "one" });
    fixture_on(p, "flow", waits_between);
    other = fixture_open_as(param, (struct pawl_options){ .db = url, .node = "two" });
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    UNTIL(steps_wait(p, "x", "signal"));
    hook_on_pause(when_claimed, NULL);
    atomic_store(&cancels, 1);
    steps_signal(other, "x", "go", "1");
    fixture_ends(p, "x", PAWL_CANCELLED);
    hook_on_pause(NULL, NULL);
    EQ_INT(atomic_load(&cancels), 2);
    EQ_STR(steps_log, "( a ( una");
    pawl_close(other);
    pawl_close(p);
}
