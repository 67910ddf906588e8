/*
 * writer_bulk.c - a process is killed repeatedly while it works off a long backlog: no call is
 * lost, and none runs more often than its process died.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "fixture.h"

RUNS_ON(ENGINES_DURABLE)

/* Leases that a process has at a time: the store thread's, and one or two of each bulk writer. */
enum { CROWD = 5000, KILLS = 1, SLOTS = 4, LEASES_MAX = 8 };

static int quick(struct pawl_call *c)
{
    return pawl_reply_int(c, 1);
}

static _Noreturn void works(const void *param)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", quick);
    fixture_start(p, SLOTS);
    for (;;)
        pause();
}

static int64_t ended(const void *param)
{
    return engine_int(param, "SELECT count(*) FROM pawl_outcome");
}

TEST(a_backlog_survives_whoever_runs_it)
{
    struct pawl *p = fixture_open(param);
    fixture_submit_many(p, "t", CROWD);
    pawl_close(p);
    for (int i = 1; i <= KILLS; i++) {
        int64_t before = ended(param);
        pid_t pid = fork();
        if (pid == 0)
            works(param);
        UNTIL(ended(param) >= before + CROWD / (KILLS + 2));
        EQ_INT(kill(pid, SIGKILL), 0);
        EQ_INT(waitpid(pid, NULL, 0), pid);
        printf("killed after %lld of %d\n", (long long)ended(param), CROWD);
    }
    p = fixture_open(param);
    fixture_on(p, "t", quick);
    fixture_start(p, 4);
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), CROWD);
    pawl_close(p);
    EQ_INT(ended(param), CROWD);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_lease"), 0);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_ready"), 0);
    LE_INT(engine_int(param, "SELECT max(lost) FROM pawl_outcome"), KILLS);
    /* Only calls that may have started count as lost: as many of each lease as the process has
     * slots. */
    LE_INT(engine_int(param, "SELECT count(*) FROM pawl_outcome WHERE lost > 0"),
           KILLS * LEASES_MAX * SLOTS);
    EQ_INT(engine_int(param, "SELECT max(attempts) FROM pawl_outcome"), 0);
}
