/*
 * hook.h - crash points and pause points: nothing in a release build, controlled by the test
 * harness in a test build (PAWL_TEST).
 *
 * CRASH_POINT("commit.before") kills the process with SIGKILL when the environment has
 * PAWL_CRASH=commit.before:N and the process passes the point for the N-th time (N counts from 1,
 * default 1). PAWL_CRASH=cron.ticked>commit.before:N counts only the passes after cron.ticked was
 * passed. With PAWL_CRASH_LOG=FILE the name of every point is appended to FILE when it is first
 * passed; from that file the harness learns the names. PAUSE_POINT("claim.after_select") calls the
 * test's hook, which may block the thread. SLOWER(us) is a time limit that a busy machine or a
 * sanitizer may exceed although nothing is wrong: in a test build it is PAWL_CHECK_SCALE times as
 * long. Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_HOOK_H
#define BASE_HOOK_H

#include <stdbool.h>

#ifdef PAWL_TEST
#define CRASH_POINT(name) hook_crash(name)
#define PAUSE_POINT(name) hook_pause(name)
#define SLOWER(us) ((us)*hook_scale())
/* What CRASH_POINT does; it does not return when the process is to die here. */
void hook_crash(const char *name);
/* Set a function that hears of every crash point that is passed, on the thread that passes it; NULL
 * removes it. Unlike a pause hook it changes nothing: no work is done in more steps. */
void hook_on_pass(void (*fn)(const char *name));
/* What PAUSE_POINT does: call the hook, if there is one, on this thread. */
void hook_pause(const char *name);
/* Set the hook of all pause points; NULL removes it. */
void hook_on_pause(void (*fn)(const char *name, void *ctx), void *ctx);
/* Is there a hook? Work that is otherwise done at once is then done in steps, with a pause point
 * between them. */
bool hook_pausing(void);
/* PAWL_CHECK_SCALE, from 1 to 100: how many times longer time limits are in this test run. */
int hook_scale(void);
#else
#define hook_pausing() false
#define CRASH_POINT(name) ((void)0)
#define PAUSE_POINT(name) ((void)0)
#define SLOWER(us) (us)
#endif

#endif
