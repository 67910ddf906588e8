/*
 * lib_workflows_ask.c - what a program asks of a run from outside: signal, cancel, retry, fork; and
 * what is refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/macros.h"
#include "steps_fixture.h"

RUNS_ON(ENGINES_DURABLE)

/* Takes a, waits for the signal `go`, takes b; refuses while the case has told 1. */
static int waits(struct pawl_call *c)
{
    if (steps_do_undoable(c, "a") || pawl_step_signal(c, "go", 0, NULL) || steps_do(c, "b"))
        return 0;
    return atomic_load(&steps_told) == 1 ? pawl_refuse(c, "no") : pawl_reply_int(c, 1);
}

static struct pawl *waiting(const void *param)
{
    struct pawl *p = steps_open(param, waits);
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    UNTIL(steps_wait(p, "x", "signal"));
    return p;
}

TEST(a_fork_goes_on_from_its_step)
{
    struct pawl *p = waiting(param);
    char id[256];
    struct pawl_err err;
    steps_signal(p, "x", "go", "1");
    steps_complete(p, "x", "1");
    OK(pawl_workflow_fork(p, "x", "b", "y", id, &err), &err);
    EQ_STR(id, "y");
    steps_complete(p, "y", "1");
    EQ_STR(steps_log, "a b b");
    OK(pawl_workflow_fork(p, "x", "b", NULL, id, &err), &err);
    HAS_STR(id, "x-fork-");
    steps_complete(p, id, "1");
    EQ_STR(steps_log, "a b b b");
    EQ_STATUS(pawl_workflow_fork(p, "x", "c", "z", id, &err), PAWL_NOT_FOUND, &err);
    HAS_STR(err.text, "has no step \"c\"");
    EQ_STATUS(pawl_workflow_fork(p, "none", "b", "z", id, &err), PAWL_NOT_FOUND, &err);
    EQ_STATUS(pawl_workflow_fork(p, "x", NULL, "z", id, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_workflow_fork(p, "x", "b", "", id, &err), PAWL_INVALID, &err);
    pawl_close(p);
}

/* Its first step is the other run's: that one undoes it, once. */
TEST(a_fork_never_undoes_what_it_took_over)
{
    struct pawl *p = waiting(param);
    struct pawl_err err;
    OK(pawl_workflow_fork(p, "x", "go", "y", NULL, &err), &err);
    UNTIL(steps_wait(p, "y", "signal"));
    OK(pawl_workflow_cancel(p, "y", 0, NULL, &err), &err);
    fixture_ends(p, "y", PAWL_CANCELLED);
    EQ_STR(steps_log, "a");
    OK(pawl_workflow_cancel(p, "x", 0, NULL, &err), &err);
    fixture_ends(p, "x", PAWL_CANCELLED);
    EQ_STR(steps_log, "a una");
    pawl_close(p);
}

TEST(a_retry_goes_on_or_forgets_from_a_step_on)
{
    struct pawl *p = waiting(param);
    struct pawl_err err;
    atomic_store(&steps_told, 1);
    EQ_STATUS(pawl_workflow_retry(p, "x", NULL, &err), PAWL_STATE, &err); /* it has not ended */
    steps_signal(p, "x", "go", "1");
    steps_end(p, "x", PAWL_FAILED, "no");
    EQ_STR(steps_log, "a b una");
    atomic_store(&steps_told, 0);
    EQ_STATUS(pawl_workflow_retry(p, "x", "b", &err), PAWL_STATE, &err); /* a was undone */
    EQ_STATUS(pawl_workflow_retry(p, "x", "c", &err), PAWL_NOT_FOUND, &err);
    EQ_STATUS(pawl_workflow_retry(p, "none", NULL, &err), PAWL_NOT_FOUND, &err);
    EQ_STATUS(pawl_workflow_retry(p, "x", "", &err), PAWL_INVALID, &err);
    OK(pawl_workflow_retry(p, "x", "a", &err), &err); /* the signal is unread again */
    steps_complete(p, "x", "1");
    EQ_STR(steps_log, "a b una a b");
    EQ_STATUS(pawl_workflow_retry(p, "x", NULL, &err), PAWL_STATE, &err);
    pawl_close(p);
}

TEST(a_cancel_without_undo_ends_it_at_once)
{
    struct pawl *p = waiting(param);
    enum pawl_state state = PAWL_PENDING;
    struct pawl_err err;
    EQ_STATUS(pawl_workflow_cancel(p, "x", 8, NULL, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_workflow_cancel(p, "none", 0, NULL, &err), PAWL_NOT_FOUND, &err);
    EQ_STATUS(pawl_workflow_cancel(NULL, "x", 0, NULL, &err), PAWL_INVALID, &err);
    OK(pawl_workflow_cancel(p, "x", PAWL_NO_UNDO, &state, &err), &err);
    EQ_INT(state, PAWL_CANCELLED);
    fixture_ends(p, "x", PAWL_CANCELLED);
    EQ_STR(steps_log, "a");
    EQ_STATUS(pawl_workflow_cancel(p, "x", 0, NULL, &err), PAWL_STATE, &err);
    EQ_STATUS(pawl_signal(p, "x", "go", pawl_text("1"), NULL, &err), PAWL_STATE, &err);
    pawl_close(p);
}

TEST(signals_that_are_wrong)
{
    struct pawl *p = waiting(param);
    struct pawl_err err;
    char *big = calloc(1, RESULT_LEN_MAX + 2);
    memset(big, '1', RESULT_LEN_MAX + 1);
    EQ_STATUS(pawl_signal(NULL, "x", "s", pawl_text("1"), NULL, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_signal(p, NULL, "s", pawl_text("1"), NULL, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_signal(p, "x", "", pawl_text("1"), NULL, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_signal(p, "x", "s", pawl_text("{"), NULL, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_signal(p, "x", "s", pawl_text("1"), "\n", &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_signal(p, "x", "s", pawl_text(big), NULL, &err), PAWL_TOO_LARGE, &err);
    EQ_STATUS(pawl_signal(p, "none", "s", pawl_text("1"), NULL, &err), PAWL_NOT_FOUND, &err);
    OK(pawl_signal(p, "x", "s", pawl_text("1"), "k", &err), &err);
    OK(pawl_signal(p, "x", "s", pawl_text("1"), "k", &err), &err); /* the same signal */
    EQ_STATUS(pawl_signal(p, "x", "s", pawl_text("2"), "k", &err), PAWL_CONFLICT, &err);
    HAS_STR(err.text, "signal key \"k\"");
    free(big);
    pawl_close(p);
}

/* ---- What a handler does wrongly ------------------------------------------------------------- */

static int sql_first(struct pawl_call *c)
{
    const struct pawl_rows *rows;
    struct pawl_err err;
    if (pawl_sql(c, "SELECT 1", NULL, 0, &rows, &err) != PAWL_OK)
        return pawl_fail(c, "%s", err.text);
    return steps_do(c, "a") ? 0 : pawl_reply_int(c, 1);
}

TEST(sql_before_the_first_step_fails_the_run)
{
    struct pawl *p = steps_open(param, sql_first);
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    steps_end(p, "x", PAWL_FAILED, "pawl_sql() was called outside of a step");
    EQ_STR(steps_log, "");
    pawl_close(p);
}

static int inner(struct pawl_call *c, void *arg)
{
    (void)arg;
    return pawl_step_sleep(c, "nap", 1) ? 0 : pawl_reply_int(c, 1);
}

/* What the handler does wrongly in its first step, by its input. */
static int wrong(struct pawl_call *c)
{
    struct pawl_step s = { PAWL_STEP_INIT, .name = "a", .run = steps_run, .arg = "a" };
    struct pawl_select none = { .size = 1 };
    int64_t how = 0;
    int code = 0;
    pawl_input_int(c, &how);
    if (how == 1)
        s.size = 1;
    if (how == 2)
        s.run = NULL;
    if (how == 3)
        s.timeout_us = -1;
    if (how == 4)
        s.run = inner;
    if (how <= 4)
        code = pawl_step(c, &s, NULL);
    else if (how == 5)
        code = pawl_step_select(c, &none);
    else if (how == 6)
        code = pawl_step_join(c, PAWL_ALL, NULL, 1, 0);
    else if (how == 7)
        code = pawl_restart(c, pawl_text("{"));
    else
        code = pawl_publish(c, "v", pawl_text("{"));
    return code ? 0 : pawl_reply_int(c, 1);
}

TEST(wrong_calls_fail_the_run_and_say_why)
{
    static const char *const texts[] = { "initialise it with PAWL_STEP_INIT",
                                         "its name or its function is NULL",
                                         "its timeout must be 0..",
                                         "a step cannot take steps of its own",
                                         "initialise it with PAWL_SELECT_INIT",
                                         "the ids are NULL",
                                         "pawl_restart: ",
                                         "published value \"v\": " };
    struct pawl *p = steps_open(param, wrong);
    fixture_start(p, 2);
    for (size_t how = 1; how <= COUNT_OF(texts); how++) {
        char id[] = { 'x', (char)('0' + how), 0 };
        steps_start(p, id, id + 1);
        steps_end(p, id, PAWL_FAILED, texts[how - 1]);
    }
    EQ_STR(steps_log, "");
    pawl_close(p);
}
