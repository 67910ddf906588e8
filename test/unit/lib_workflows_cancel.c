/*
 * lib_workflows_cancel.c - a cancel reaches passes that are claimed or run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "base/hook.h"
#include "steps_fixture.h"

RUNS_ON(ENGINES_DURABLE)

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
