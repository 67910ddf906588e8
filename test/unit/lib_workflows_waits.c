/*
 * lib_workflows_waits.c - what a run may wait for: times, signals, children, and the first of
 * several.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "steps_fixture.h"

RUNS_ON(ENGINES_DURABLE)

/* Replies its input, or waits for the gate when that is 0. */
static int child(struct pawl_call *c)
{
    int64_t n = 0;
    pawl_input_int(c, &n);
    if (n == 0)
        return fixture_blocks(c);
    return n < 0 ? pawl_refuse(c, "below 0") : pawl_reply_int(c, n);
}

static int child_of(struct pawl_call *c, const char *input, const char **out)
{
    return pawl_step_child(
        c, "part",
        &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "child", .input = pawl_text(input) }, out);
}

static struct pawl *open_parent(const void *param, pawl_handler *h)
{
    struct pawl *p = steps_open(param, h);
    fixture_on(p, "child", child);
    fixture_start(p, 4);
    return p;
}

/* ---- Children -------------------------------------------------------------------------------- */

static int adds(struct pawl_call *c)
{
    const char *ids[3], *inputs[] = { "1", "2", "-1" };
    int64_t sum = 0;
    struct pawl_err err;
    for (int i = 0; i < 3; i++)
        if (child_of(c, inputs[i], &ids[i]))
            return 0;
    if (pawl_step_join(c, PAWL_ALL, ids, 3, 0))
        return 0;
    for (int i = 0; i < 3; i++) {
        const struct pawl_view *v;
        OK(pawl_step_result(c, ids[i], &v, &err), &err);
        if (v->state == PAWL_COMPLETED)
            sum += ((const char *)v->result.data)[0] - '0';
        else
            HAS_STR(v->error, "below 0");
    }
    EQ_STR(ids[2], "x.part#3");
    return pawl_reply_int(c, sum);
}

TEST(a_run_joins_its_children_and_sees_their_outcomes)
{
    struct pawl *p = open_parent(param, adds);
    steps_start(p, "x", "1");
    steps_complete(p, "x", "3");
    pawl_close(p);
}

static int takes_any(struct pawl_call *c)
{
    const char *ids[2];
    const struct pawl_view *v;
    struct pawl_err err;
    if (child_of(c, "0", &ids[0]) || child_of(c, "7", &ids[1]) ||
        pawl_step_join(c, PAWL_ANY, ids, 2, 0))
        return 0;
    EQ_STATUS(pawl_step_result(c, ids[0], &v, &err), PAWL_NOT_FOUND, &err);
    OK(pawl_step_result(c, ids[1], &v, &err), &err);
    return pawl_reply(c, v->result);
}

TEST(one_child_is_enough)
{
    struct pawl *p = open_parent(param, takes_any);
    steps_start(p, "x", "1");
    steps_complete(p, "x", "7");
    fixture_open_gate();
    fixture_ends(p, "x.part#1", PAWL_COMPLETED);
    pawl_close(p);
}

/* ---- Select ---------------------------------------------------------------------------------- */

static int selects(struct pawl_call *c)
{
    const char *id, *names[] = { "yes", "no" };
    char text[100];
    if (child_of(c, "0", &id))
        return 0;
    struct pawl_select what = {
        PAWL_SELECT_INIT, .signals = names, .n_signals = 2,
        .ids = &id,       .n_ids = 1,       .timeout_us = 600 * FIXTURE_SEC
    };
    if (pawl_step_select(c, &what))
        return 0;
    EQ_STR(what.signal, "no");
    EQ_INT((int)what.n_ended, 0);
    struct pawl_select next = { PAWL_SELECT_INIT, .signals = names, .n_signals = 1, .ids = &id,
                                .n_ids = 1 };
    if (pawl_step_select(c, &next))
        return 0;
    EQ_STR(next.signal, NULL);
    EQ_INT((int)next.n_ended, 1);
    EQ_STR(next.ended[0], id);
    struct pawl_select last = { PAWL_SELECT_INIT, .signals = names, .n_signals = 1,
                                .timeout_us = 1 };
    int code = pawl_step_select(c, &last);
    if (code != PAWL_STEP_TIMEOUT)
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)what.value.len, (const char *)what.value.data);
    return pawl_reply_json(c, "%s", text);
}

TEST(a_select_is_settled_by_what_comes_first)
{
    struct pawl *p = open_parent(param, selects);
    steps_start(p, "x", "1");
    UNTIL(steps_wait(p, "x", "signal"));
    steps_signal(p, "x", "no", "{\"why\":1}");
    UNTIL(atomic_load(&fixture_inside) == 1);
    fixture_open_gate();
    steps_complete(p, "x", "{\"why\":1}");
    pawl_close(p);
}

/* ---- Signals and times ----------------------------------------------------------------------- */

static int sums_signals(struct pawl_call *c)
{
    int64_t sum = 0;
    for (int i = 0; i < 10; i++) {
        struct pawl_data n;
        if (pawl_step_signal(c, "n", 0, &n))
            return 0;
        sum = sum * 2 + ((const char *)n.data)[0] - '0';
    }
    return pawl_reply_int(c, sum);
}

TEST(signals_are_taken_in_their_order_also_those_that_came_early)
{
    struct pawl *p = steps_open(param, sums_signals);
    fixture_submit(p, "x", "flow");
    for (int i = 0; i < 5; i++)
        steps_signal(p, "x", "n", i % 2 ? "1" : "0");
    fixture_start(p, 2);
    for (int i = 5; i < 10; i++)
        steps_signal(p, "x", "n", i % 2 ? "1" : "0");
    steps_complete(p, "x", "341");
    pawl_close(p);
}

static int sleeps(struct pawl_call *c)
{
    steps_note("", "pass");
    for (int i = 0; i < 20; i++)
        if (pawl_step_sleep(c, "nap", 1000))
            return 0;
    int64_t now;
    if (pawl_step_now(c, &now) || pawl_step_until(c, "then", now))
        return 0;
    return pawl_reply_int(c, 1);
}

TEST(a_run_sleeps_many_times)
{
    struct pawl *p = steps_open(param, sleeps);
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    steps_complete(p, "x", "1");
    pawl_close(p);
}

/* A keyed run holds its key while it waits. */
static int waits_for_go(struct pawl_call *c)
{
    struct pawl_data v;
    if (pawl_step_signal(c, "go", 0, &v))
        return 0;
    pawl_set_state_int(c, pawl_state_int(c, 0) + 1);
    return pawl_reply_int(c, pawl_state_int(c, 0));
}

TEST(a_run_with_a_key_is_not_overtaken_while_it_waits)
{
    fixture_assume_quick();
    struct pawl *p = steps_open(param, waits_for_go);
    for (int i = 0; i < 5; i++) {
        char id[8];
        snprintf(id, sizeof id, "x%d", i);
        fixture_submit_as(p, (struct pawl_spec){ .id = id, .type = "flow", .key = "k" });
    }
    fixture_start(p, 4);
    for (int i = 0; i < 5; i++) {
        char id[8], result[8];
        snprintf(id, sizeof id, "x%d", i);
        snprintf(result, sizeof result, "%d", i + 1);
        UNTIL(steps_wait(p, id, "signal"));
        steps_signal(p, id, "go", "1");
        steps_complete(p, id, result);
    }
    pawl_close(p);
}

static int waits_for_ever(struct pawl_call *c)
{
    if (steps_do_undoable(c, "a"))
        return 0;
    return pawl_step_signal(c, "go", 0, NULL) ? 0 : pawl_reply_int(c, 1);
}

TEST(a_run_out_of_its_time_is_cancelled_and_undone)
{
    struct pawl *p = steps_open(param, waits_for_ever);
    /* One that cannot begin is cancelled by the sweep. */
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "idle", .type = "none", .run_timeout_us = 300 * FIXTURE_MS });
    fixture_submit_as(p, (struct pawl_spec){ .id = "late",
                                             .type = "none",
                                             .delay_us = FIXTURE_SEC,
                                             .expires_in_us = 200 * FIXTURE_MS,
                                             .run_timeout_us = 300 * FIXTURE_MS });
    fixture_start(p, 2);
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "x", .type = "flow", .run_timeout_us = 500 * FIXTURE_MS });
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "y", .type = "flow", .run_timeout_us = 600 * FIXTURE_SEC });
    fixture_ends(p, "x", PAWL_CANCELLED);
    fixture_ends(p, "idle", PAWL_CANCELLED);
    fixture_ends(p, "late", PAWL_EXPIRED);
    TRUE(steps_wait(p, "y", "signal"));
    EQ_STR(steps_log + strlen(steps_log) - 3, "una");
    pawl_close(p);
}
