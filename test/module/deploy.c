/*
 * deploy.c - one program in several versions, for tests of deploys: crash/versions.c.
 *
 * DEPLOY says which one a node runs. Versions 1 and 2 take different steps in another order, so a
 * pass of the other one stops a run as dead_letter at once. Each step replies the version whose
 * code ran it. `bad` is a mistake in version 1: it asks for another step; `patched` is version 1
 * with a change that begins with pawl_patched().
 *
 * Input: how long to sleep, in milliseconds; below 0 it is refused in the end, and undone.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000)

static const char *deploy(void)
{
    const char *name = getenv("DEPLOY");
    return name ? name : "1";
}

static int is(const char *name)
{
    return strcmp(deploy(), name) == 0;
}

static int run(struct pawl_call *c, void *arg)
{
    (void)arg;
    return pawl_reply_int(c, is("2") ? 2 : 1);
}

static int undo(struct pawl_call *c, int known, struct pawl_data result, void *arg)
{
    (void)known;
    (void)result;
    (void)arg;
    return pawl_reply_int(c, is("2") ? 2 : 1);
}

/* A step of a node that may be killed at any time. */
static int step(struct pawl_call *c, const char *name)
{
    return pawl_step(
        c, &(struct pawl_step){ PAWL_STEP_INIT, .name = name, .run = run, .undo = undo }, NULL);
}

static int order_1(struct pawl_call *c, int64_t ms)
{
    if (step(c, is("bad") ? "pack" : "reserve"))
        return 0;
    if (is("patched") && pawl_patched(c, "weigh-first") && step(c, "weigh"))
        return 0;
    if (step(c, "charge") || pawl_step_sleep(c, "nap", ms * MS) || step(c, "pack") ||
        pawl_step_signal(c, "go", 0, NULL))
        return 0;
    if (is("patched") && !pawl_patched(c, "weigh-first") && step(c, "weigh-late"))
        return 0;
    return step(c, "ship");
}

static int order_2(struct pawl_call *c, int64_t ms)
{
    return pawl_step_sleep(c, "think", ms * MS) || step(c, "check") || step(c, "reserve") ||
           pawl_step_signal(c, "go", 0, NULL) || step(c, "pack-and-ship") ||
           pawl_step_sleep(c, "nap", ms * MS) || step(c, "charge");
}

static int order(struct pawl_call *c)
{
    int64_t ms = 0;
    pawl_input_int(c, &ms);
    if (is("2") ? order_2(c, llabs(ms)) : order_1(c, llabs(ms)))
        return 0;
    return ms < 0 ? pawl_refuse(c, "not wanted any more") : run(c, NULL);
}

PAWL_MODULE(m)
{
    pawl_module_version(m, is("2") ? "2" : "1");
    pawl_on(m, "order", "run", order);
}
