/*
 * hook.h - crash points and pause points: nothing in a release build, the harness's handles in a
 * test build (PAWL_TEST).
 *
 * CRASH_POINT("commit.before") kills the process with SIGKILL when the environment says
 * PAWL_CRASH=commit.before:N and this is the N-th time it is passed (N counts from 1, default 1).
 * With PAWL_CRASH_LOG=FILE the name of every point is appended to FILE the first time it is passed,
 * which is how the harness learns them. PAUSE_POINT("claim.after_select") calls the test's hook,
 * which may block the thread. SLOWER(us) is a limit of time that a busy machine or a sanitizer may
 * break though nothing is wrong: PAWL_CHECK_SCALE times as long in a test build. Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_HOOK_H
#define BASE_HOOK_H

#include <stdbool.h>

#ifdef PAWL_TEST
#define CRASH_POINT(name) hook_crash(name)
#define PAUSE_POINT(name) hook_pause(name)
#define SLOWER(us) ((us)*hook_scale())
void hook_crash(const char *name);
void hook_pause(const char *name);
/* NULL switches off. */
void hook_on_pause(void (*fn)(const char *name, void *ctx), void *ctx);
/* Is there one? What is done in one go is then done in steps between which it can stop. */
bool hook_pausing(void);
/* PAWL_CHECK_SCALE, at least 1: by how much limits of time are longer in this test. */
int hook_scale(void);
#else
#define hook_pausing() false
#define CRASH_POINT(name) ((void)0)
#define PAUSE_POINT(name) ((void)0)
#define SLOWER(us) (us)
#endif

#endif
