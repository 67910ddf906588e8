/*
 * hook.c - crash points kill the process at the n-th pass and log their names; pause points call
 * the hook.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hook.h"
#include "check.h"

/* How a child ends that passes "a" three times, with this PAWL_CRASH. */
static int pass_three(const char *point)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (point)
            setenv("PAWL_CRASH", point, 1);
        setenv("PAWL_CRASH_LOG", "points", 1);
        for (int i = 0; i < 3; i++) {
            CRASH_POINT("a");
            CRASH_POINT("b.c");
        }
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    return status;
}

TEST(kills_at_the_nth_pass)
{
    EQ_INT(pass_three(NULL), 0);
    EQ_INT(WTERMSIG(pass_three("a")), SIGKILL);
    EQ_INT(WTERMSIG(pass_three("a:3")), SIGKILL);
    EQ_INT(WTERMSIG(pass_three("b.c:2")), SIGKILL);
    EQ_INT(pass_three("a:4"), 0);
    EQ_INT(pass_three("b"), 0);
}

TEST(logs_each_name_once)
{
    EQ_INT(pass_three("none"), 0);
    FILE *f = fopen("points", "r");
    char text[100] = "";
    TRUE(f != NULL);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    EQ_BYTES(text, n, "a\nb.c\n", 6);
}

static int pauses;

static void paused(const char *name, void *ctx)
{
    EQ_STR(name, "claim.after_select");
    EQ_PTR(ctx, &pauses);
    pauses++;
}

TEST(pauses_only_when_asked)
{
    PAUSE_POINT("claim.after_select");
    hook_on_pause(paused, &pauses);
    PAUSE_POINT("claim.after_select");
    hook_on_pause(NULL, NULL);
    PAUSE_POINT("claim.after_select");
    EQ_INT(pauses, 1);
}
