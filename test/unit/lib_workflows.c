/*
 * lib_workflows.c - handlers that take steps: each step once, whatever happens to the passes;
 * waits, children, undoing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "steps_fixture.h"

RUNS_ON(ENGINES_DURABLE)

/* ---- Cases ----------------------------------------------------------------------------------- */

static int saga(struct pawl_call *c)
{
    struct pawl_data paid, shipped;
    steps_note("", "(");
    if (steps_do_undoable(c, "reserve") ||
        pawl_step(c,
                  &(struct pawl_step){ PAWL_STEP_INIT, .name = "charge", .run = steps_run,
                                       .undo = steps_undo, .arg = "charge" },
                  &paid))
        return 0;
    switch (pawl_step_signal(c, "shipped", 600 * FIXTURE_SEC, &shipped)) {
    case 0:
        break;
    case PAWL_STEP_TIMEOUT:
        return pawl_refuse(c, "not shipped in time");
    default:
        return 0;
    }
    if (shipped.len == 4 && !memcmp(shipped.data, "null", 4))
        return pawl_refuse(c, "it was lost");
    if (pawl_step_sleep(c, "cool-off", FIXTURE_MS) || steps_do(c, "mail"))
        return 0;
    return pawl_reply(c, paid);
}

TEST(a_saga_completes_and_each_of_its_steps_runs_once)
{
    struct pawl *p = steps_open(param, saga);
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    UNTIL(steps_wait(p, "x", "signal"));
    steps_signal(p, "x", "shipped", "{\"by\":\"post\"}");
    steps_complete(p, "x", "\"charge\"");
    EQ_STR(steps_log, "( reserve charge ( ( mail");
    pawl_close(p);
}

TEST(a_refusal_undoes_the_steps_the_last_one_first)
{
    struct pawl *p = steps_open(param, saga);
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    steps_signal(p, "x", "shipped", "null");
    steps_end(p, "x", PAWL_FAILED, "it was lost");
    EQ_STR(steps_log, "( reserve charge ( uncharge unreserve");
    pawl_close(p);
}

TEST(a_cancel_undoes_the_steps)
{
    struct pawl *p = steps_open(param, saga);
    struct pawl_err err;
    enum pawl_state state;
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    UNTIL(steps_wait(p, "x", "signal"));
    OK(pawl_cancel(p, "x", &state, &err), &err);
    EQ_INT(state, PAWL_PROCESSING);
    fixture_ends(p, "x", PAWL_CANCELLED);
    EQ_STR(steps_log, "( reserve charge ( uncharge unreserve");
    EQ_STATUS(pawl_signal(p, "x", "shipped", pawl_text("1"), NULL, &err), PAWL_STATE, &err);
    pawl_close(p);
}

/* Works until it is told to stop. */
static int works(struct pawl_call *c, void *arg)
{
    steps_note("", arg);
    atomic_fetch_add(&fixture_inside, 1);
    while (!pawl_cancelled(c))
        pawl_sleep(c, 600 * FIXTURE_SEC);
    return pawl_fail(c, "told to stop");
}

static int long_step(struct pawl_call *c)
{
    if (steps_do_undoable(c, "a") ||
        pawl_step(c,
                  &(struct pawl_step){ PAWL_STEP_INIT, .name = "b", .run = works,
                                       .undo = steps_undo, .arg = "b" },
                  NULL))
        return 0;
    return pawl_reply_int(c, 1);
}

/* In the same process, and in another one. */
TEST(a_step_is_told_that_its_run_is_cancelled)
{
    struct pawl *p = steps_open(param, long_step);
    struct pawl *q = fixture_open_as(param, (struct pawl_options){ .node = "other" });
    struct pawl_err err;
    const char *const ids[] = { "w", "x", "y" };
    fixture_start(p, 2);
    for (int i = 0; i < 3; i++) {
        struct pawl *by = i == 2 ? q : p;
        steps_log[0] = '\0';
        fixture_submit_as(
            p, (struct pawl_spec){ .id = ids[i], .type = "flow", .timeout_us = 600 * FIXTURE_SEC });
        UNTIL(atomic_load(&fixture_inside) == i + 1);
        OK(i == 0 ? pawl_cancel(by, ids[i], NULL, &err)
                  : pawl_workflow_cancel(by, ids[i], 0, NULL, &err),
           &err);
        fixture_ends(p, ids[i], PAWL_CANCELLED);
        EQ_STR(steps_log, "a b perhaps-unb una");
    }
    pawl_close(q);
    pawl_close(p);
}

static int waits_a_moment(struct pawl_call *c)
{
    switch (pawl_step_signal(c, "go", FIXTURE_MS, NULL)) {
    case 0:
        return pawl_reply_text(c, "signal");
    case PAWL_STEP_TIMEOUT:
        return pawl_reply_text(c, "timeout");
    default:
        return 0;
    }
}

TEST(a_timeout_is_an_answer)
{
    struct pawl *p = steps_open(param, waits_a_moment);
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    steps_complete(p, "x", "\"timeout\"");
    pawl_close(p);
}

/* ---- Tries ----------------------------------------------------------------------------------- */

static int fails_twice(struct pawl_call *c, void *arg)
{
    (void)arg;
    steps_note("", "try");
    return atomic_fetch_add(&steps_told, 1) < 2 ? pawl_fail(c, "not yet") : pawl_reply_int(c, 7);
}

static int tries(struct pawl_call *c)
{
    struct pawl_data seven;
    if (steps_do_undoable(c, "a") ||
        pawl_step(c,
                  &(struct pawl_step){ PAWL_STEP_INIT, .name = "b", .run = fails_twice,
                                       .backoff_base_us = FIXTURE_MS },
                  &seven))
        return 0;
    return pawl_reply(c, seven);
}

TEST(a_step_has_tries_of_its_own)
{
    struct pawl *p = steps_open(param, tries);
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    steps_complete(p, "x", "7");
    EQ_STR(steps_log, "a try try try");
    atomic_store(&steps_told, -1);
    steps_log[0] = '\0';
    steps_start(p, "y", "1");
    steps_end(p, "y", PAWL_FAILED, "not yet");
    EQ_STR(steps_log, "a try try try una");
    pawl_close(p);
}

/* ---- Lost passes ----------------------------------------------------------------------------- */

/* Dies in the step whose number is told. */
static int dies(struct pawl_call *c, void *arg)
{
    if (*(const int *)arg == atomic_load(&steps_told))
        kill(getpid(), SIGKILL);
    return pawl_reply_int(c, *(const int *)arg);
}

static int five_steps(struct pawl_call *c)
{
    int64_t sum = 0;
    /* A process died since the last stored step, or none did: never more. */
    EQ_INT(pawl_call_view(c)->lost, atomic_load(&steps_told) != 1);
    EQ_INT(pawl_call_view(c)->attempts, 0);
    for (int i = 1; i <= 5; i++) {
        struct pawl_data n;
        if (pawl_step(c,
                      &(struct pawl_step){ PAWL_STEP_INIT, .name = "add", .run = dies, .arg = &i,
                                           .arg_size = sizeof i },
                      &n))
            return 0;
        sum += ((const char *)n.data)[0] - '0';
    }
    return pawl_reply_int(c, sum);
}

TEST(five_passes_may_be_lost_in_five_steps)
{
    const char *url = engine_url(param);
    for (int i = 0; i <= 5; i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            struct pawl *p = fixture_open_as(param, (struct pawl_options){ .db = url });
            atomic_store(&steps_told, i ? i : -1);
            fixture_on(p, "flow", five_steps);
            if (i == 0)
                fixture_submit_as(
                    p, (struct pawl_spec){
                           .id = "x", .type = "flow", .max_attempts = 1, .max_lost = 2 });
            else
                fixture_start(p, 2);
            if (i)
                fixture_ended(p, "x");
            pawl_close(p);
            _exit(0);
        }
        waitpid(pid, &status, 0);
        EQ_INT(WIFSIGNALED(status), i > 0);
    }
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .db = url });
    atomic_store(&steps_told, -1);
    fixture_on(p, "flow", five_steps);
    fixture_start(p, 2);
    steps_complete(p, "x", "15");
    EQ_INT(engine_int(param, "SELECT lost + attempts FROM pawl_outcome"), 0);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_attempt"), 5);
    pawl_close(p);
}

/* Waits for the gate inside its step. */
static int gated(struct pawl_call *c, void *arg)
{
    steps_note("", arg);
    return fixture_blocks(c);
}

static int stopped(struct pawl_call *c)
{
    if (steps_do(c, "a") ||
        pawl_step(c, &(struct pawl_step){ PAWL_STEP_INIT, .name = "b", .run = gated, .arg = "b" },
                  NULL) ||
        steps_do(c, "c"))
        return 0;
    return pawl_reply_int(c, 1);
}

TEST(a_stop_hands_a_run_back_and_another_process_goes_on)
{
    const char *url = engine_url(param);
    struct pawl_err err;
    steps_log[0] = '\0';
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .db = url, .node = "one" });
    fixture_on(p, "flow", stopped);
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    UNTIL(atomic_load(&fixture_inside) == 1);
    EQ_STATUS(pawl_stop(p, 0, &err), PAWL_BUSY, &err);
    struct pawl *q = fixture_open_as(param, (struct pawl_options){ .db = url, .node = "two" });
    fixture_on(q, "flow", stopped);
    fixture_start(q, 2);
    UNTIL(atomic_load(&fixture_inside) == 2);
    fixture_open_gate();
    steps_complete(q, "x", "1");
    EQ_STR(steps_log, "a b b c");
    pawl_close(q);
    pawl_close(p);
}
