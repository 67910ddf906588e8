/*
 * lib_workflows_pin.c - versions of modules: two processes of one program, one of each version, and
 * who goes on with which run.
 *
 * Both are handles in this process, with a node's name each. A handler writes down the version
 * whose code ran each step.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "steps_fixture.h"

RUNS_ON(ENGINES_DURABLE)

static int note_1(struct pawl_call *c, void *name)
{
    steps_note("1:", name);
    return pawl_reply_int(c, 1);
}

static int note_2(struct pawl_call *c, void *name)
{
    steps_note("2:", name);
    return pawl_reply_int(c, 2);
}

static int code(struct pawl_call *c, int (*note)(struct pawl_call *, void *))
{
    struct pawl_step a = { PAWL_STEP_INIT, .name = "a", .run = note, .arg = "a" };
    struct pawl_step b = { PAWL_STEP_INIT, .name = "b", .run = note, .arg = "b" };
    struct pawl_data last;
    if (pawl_step(c, &a, NULL) || pawl_step_signal(c, "go", 0, NULL) || pawl_step(c, &b, &last))
        return 0;
    return pawl_reply(c, last);
}

static int code_1(struct pawl_call *c)
{
    return code(c, note_1);
}

static int code_2(struct pawl_call *c)
{
    return code(c, note_2);
}

/* A process that runs flow.run in this version. */
static struct pawl *process(const void *param, int version, bool pin)
{
    char text[2] = { (char)('0' + version), '\0' };
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .db = engine_url(param),
                                                      .node = version == 1 ? "one" : "two",
                                                      .pin_versions = pin });
    OK(pawl_module_version(pawl_program(p), text), NULL);
    fixture_on(p, "flow", version == 1 ? code_1 : code_2);
    fixture_on(p, version == 1 ? "only-1" : "only-2", fixture_echo);
    return p;
}

/* A call that this process alone runs has ended: it has claimed since, best first. */
static void claims(struct pawl *p, const char *type)
{
    static int n;
    char id[20];
    snprintf(id, sizeof id, "claim%d", n++);
    fixture_submit(p, id, type);
    fixture_ends(p, id, PAWL_COMPLETED);
}

TEST(a_pinned_run_waits_for_its_version)
{
    steps_log[0] = '\0';
    struct pawl *one = process(param, 1, true);
    fixture_start(one, 2);
    steps_start(one, "x", "1");
    UNTIL(steps_wait(one, "x", "signal"));
    pawl_close(one);
    struct pawl *two = process(param, 2, true);
    fixture_start(two, 2);
    steps_signal(two, "x", "go", "1");
    UNTIL(steps_wait(two, "x", "worker"));
    for (int i = 0; i < 3; i++)
        claims(two, "only-2");
    TRUE(steps_wait(two, "x", "worker"));
    /* New runs begin in the new version. */
    steps_start(two, "y", "1");
    UNTIL(steps_wait(two, "y", "signal"));
    steps_signal(two, "y", "go", "1");
    steps_complete(two, "y", "2");
    one = process(param, 1, true);
    fixture_start(one, 2);
    steps_complete(one, "x", "1");
    EQ_STR(steps_log, "1:a 2:a 2:b 1:b");
    pawl_close(one);
    pawl_close(two);
}

TEST(a_run_that_follows_goes_on_in_the_new_version)
{
    steps_log[0] = '\0';
    struct pawl *one = process(param, 1, false);
    fixture_start(one, 2);
    steps_start(one, "x", "1");
    UNTIL(steps_wait(one, "x", "signal"));
    pawl_close(one);
    /* What has begun unpinned stays unpinned, whatever the setting is now. */
    struct pawl *two = process(param, 2, true);
    fixture_start(two, 2);
    steps_signal(two, "x", "go", "1");
    steps_complete(two, "x", "2");
    EQ_STR(steps_log, "1:a 2:b");
    pawl_close(two);
}

/* A node that runs version 2 of this type and version 1 of another one. */
TEST(a_node_has_each_version_for_its_own_types)
{
    steps_log[0] = '\0';
    struct pawl *one = process(param, 1, true);
    fixture_start(one, 2);
    steps_start(one, "x", "1");
    UNTIL(steps_wait(one, "x", "signal"));
    pawl_close(one);
    struct pawl *two = process(param, 2, true);
    OK(pawl_module_version(pawl_program(two), "1"), NULL);
    fixture_on(two, "other", code_1);
    fixture_start(two, 2);
    steps_signal(two, "x", "go", "1");
    fixture_submit(two, "z", "other");
    UNTIL(steps_wait(two, "z", "signal"));
    steps_signal(two, "z", "go", "1");
    steps_complete(two, "z", "1");
    claims(two, "only-2");
    TRUE(steps_wait(two, "x", "worker"));
    EQ_STR(steps_log, "1:a 1:a 1:b");
    pawl_close(two);
}

/* Cancelled while its version is away: it is undone by the code that did it. */
static int saga(struct pawl_call *c)
{
    if (steps_do_undoable(c, "pay") || pawl_step_signal(c, "go", 0, NULL))
        return 0;
    return pawl_reply_int(c, 1);
}

static struct pawl *saga_process(const void *param, const char *version)
{
    struct pawl *p = fixture_open_as(
        param,
        (struct pawl_options){ .db = engine_url(param), .node = version, .pin_versions = true });
    OK(pawl_module_version(pawl_program(p), version), NULL);
    fixture_on(p, "flow", version[0] == '1' ? saga : code_2);
    fixture_on(p, version[0] == '1' ? "only-1" : "only-2", fixture_echo);
    return p;
}

TEST(a_pinned_run_is_undone_by_its_version)
{
    struct pawl_err err;
    steps_log[0] = '\0';
    struct pawl *one = saga_process(param, "1");
    fixture_start(one, 2);
    steps_start(one, "x", "1");
    UNTIL(steps_wait(one, "x", "signal"));
    pawl_close(one);
    struct pawl *two = saga_process(param, "2");
    fixture_start(two, 2);
    OK(pawl_cancel(two, "x", NULL, &err), &err);
    claims(two, "only-2");
    EQ_INT(fixture_state(two, "x"), PAWL_PROCESSING);
    one = saga_process(param, "1");
    fixture_start(one, 2);
    fixture_ends(one, "x", PAWL_CANCELLED);
    EQ_STR(steps_log, "pay unpay");
    pawl_close(one);
    pawl_close(two);
}

/* Its first durable point is a step that takes too long: the finish that says so begins it. */
static int slow(struct pawl_call *c, void *name)
{
    steps_note("", name);
    pawl_sleep(c, 600 * FIXTURE_SEC);
    return pawl_reply_int(c, 1);
}

static int slow_run(struct pawl_call *c)
{
    if (pawl_step(c,
                  &(struct pawl_step){ PAWL_STEP_INIT, .name = "slow", .run = slow, .arg = "slow",
                                       .timeout_us = 100 * FIXTURE_MS, .max_attempts = 2,
                                       .backoff_base_us = 600 * FIXTURE_SEC },
                  NULL))
        return 0;
    return pawl_reply_int(c, 1);
}

TEST(a_run_that_begins_with_a_timeout_is_pinned_too)
{
    steps_log[0] = '\0';
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .pin_versions = true });
    OK(pawl_module_version(pawl_program(p), "1.0"), NULL);
    fixture_on(p, "flow", slow_run);
    fixture_start(p, 1);
    steps_start(p, "x", "1");
    UNTIL(engine_int(param, "SELECT COUNT(*) FROM pawl_workflow") == 1);
    EQ_STR(engine_rows(param, "SELECT version FROM pawl_workflow"), "1.0");
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_lane WHERE needs LIKE '@steps%@v:1.0'"), 1);
    pawl_close(p);
}

/* ---- Refused --------------------------------------------------------------------------------- */

TEST(a_version_must_fit_into_a_need)
{
    static const char *const bad[] = { "", "a b",
                                       "123456789012345678901234567890123456789012345678901" };
    struct pawl *p = fixture_open(param);
    struct pawl_module *m = pawl_program(p);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        EQ_STATUS(pawl_module_version(m, bad[i]), PAWL_INVALID, NULL);
    EQ_STATUS(pawl_module_version(m, NULL), PAWL_INVALID, NULL);
    OK(pawl_module_version(m, "12345678901234567890123456789012345678901234567890"), NULL);
    pawl_close(p);
}

TEST(one_type_has_one_version)
{
    struct pawl *p = fixture_open(param);
    struct pawl_module *m = pawl_program(p);
    struct pawl_err err;
    OK(pawl_module_version(m, "1"), NULL);
    OK(pawl_on(m, "order", "create", fixture_echo), NULL);
    OK(pawl_module_version(m, "2"), NULL);
    OK(pawl_on(m, "approval", "run", fixture_echo), NULL);
    OK(pawl_on(m, "order", "cancel", fixture_echo), NULL);
    EQ_STATUS(pawl_start(p, NULL, &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "handlers \"order.cancel\" (version \"2\") and \"order.create\" (version "
                     "\"1\"): handlers of one type must have the same version");
    pawl_close(p);
}
