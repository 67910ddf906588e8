/*
 * cron_points.c - a process that ticks schedules, and ends their calls, is killed at every crash
 * point of its commits, and started again: each tick is one call, and is recorded once.
 *
 * The points are learnt from a run without a crash. With `overlap` wait two ticks pass before the
 * first call ends; so the second one is submitted by the commit of that end (cron_moved). The
 * process begins from the front after every start, and its clock too. The case itself passes no
 * crash point before it starts a process, because the first one reads the environment.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "cron_fixture.h"
#include "engines.h"

RUNS_ON(ENGINES_DURABLE)

enum { EACH = 3, ROUNDS = 2, TICKS = 2 * ROUNDS, POINTS_MAX = 40 };
#define MINUTE_US (60 * SEC_US)

static const char *url;

/* ---- The process ----------------------------------------------------------------------------- */

static void put_all(struct store *s, struct arena *a)
{
    for (int i = 0; i < 2 * EACH; i++)
        cron_fixture_put(s, a, arena_printf(a, "%s%d", i < EACH ? "wait" : "plain", i % EACH),
                         i < EACH ? "{\"cron\":\"* * * * *\",\"overlap\":\"wait\","
                                    "\"call\":{\"type\":\"t\"}}"
                                  : "{\"cron\":\"* * * * *\",\"catch_up\":\"all\","
                                    "\"call\":{\"type\":\"t\"}}");
}

/* Two at a time, so that several commits end calls that a tick waits for. */
static void finish_all(struct store *s, struct arena *a)
{
    for (;;) {
        struct claim c = cron_fixture_claim(s, a, 2);
        if (!c.n)
            return;
        struct op op = cron_fixture_finish(a, &c);
        OK(cron_fixture_commit(s, &op), &op.err);
    }
}

static void work(void)
{
    struct own_world w;
    struct arena a;
    own_world_init(&w, (uint64_t)getpid());
    arena_init(&a, 64 << 20);
    AUTO(store_end) struct store *s = cron_fixture_open(url, &w);
    put_all(s, &a);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            own_world_advance(&w, MINUTE_US);
            cron_fixture_tick(s, &a, "n");
        }
        finish_all(s, &a);
    }
    arena_release(&a);
}

static void make(void)
{
    struct own_world w;
    struct pawl_err err;
    own_world_init(&w, 1);
    AUTO(store_end) struct store *s = cron_fixture_open(url, &w);
    OK(store_migrate(s, true, &err), &err);
}

/* Run it in a process, with this crash or this log. Returns true when it was killed. */
static bool run(void (*what)(void), const char *crash, const char *log)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (crash)
            setenv("PAWL_CRASH", crash, 1);
        if (log)
            setenv("PAWL_CRASH_LOG", log, 1);
        what();
        _exit(0);
    }
    EQ_INT(waitpid(pid, &status, 0), pid);
    TRUE((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
         (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    return WIFSIGNALED(status);
}

/* ---- Counting afterwards --------------------------------------------------------------------- */

static void count_schedule(const char *name)
{
    for (int i = 1; i <= TICKS; i++) {
        char sql[300];
        snprintf(sql, sizeof sql,
                 "SELECT COUNT(*) FROM pawl_tick t JOIN pawl_call c ON c.id = t.call_id "
                 "JOIN pawl_outcome o ON o.seq = c.seq WHERE t.kind = 1 AND o.status = 3 "
                 "AND t.call_id = 'cron:%s@2026-11-15T08:0%d:00Z'",
                 name, i);
        EQ_INT(engine_int(url, sql), 1);
    }
}

static void count(void)
{
    enum { ALL = 2 * EACH * TICKS };
    char name[16];
    for (int i = 0; i < 2 * EACH; i++) {
        snprintf(name, sizeof name, "%s%d", i < EACH ? "wait" : "plain", i % EACH);
        count_schedule(name);
    }
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_tick"), ALL);
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_call"), ALL);
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_outcome"), ALL);
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_lease"), 0);
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_schedule WHERE waiting_at IS NULL"),
           2 * EACH);
}

/* ---- The case -------------------------------------------------------------------------------- */

static void fresh(void *param)
{
    engine_fresh(param);
    url = engine_url(param);
    FALSE(run(make, NULL, NULL));
}

static char points[POINTS_MAX][128];
static int n_points;

static void learn(void *param)
{
    fresh(param);
    FALSE(run(work, NULL, "points.log"));
    count();
    /* Those that were submitted by the commit of an end: no node ticked them. */
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_tick WHERE node IS NULL"), EACH * ROUNDS);
    FILE *f = fopen("points.log", "r");
    TRUE(f != NULL);
    while (n_points < POINTS_MAX && fgets(points[n_points], sizeof points[0], f)) {
        points[n_points][strcspn(points[n_points], "\n")] = '\0';
        n_points++;
    }
    fclose(f);
}

static bool knows(const char *point)
{
    for (int i = 0; i < n_points; i++)
        if (strcmp(points[i], point) == 0)
            return true;
    return false;
}

/* Killed at this pass, then run again to the end. */
static bool killed(void *param, const char *crash)
{
    printf("%s\n", crash);
    fresh(param);
    bool was = run(work, crash, NULL);
    while (run(work, NULL, NULL))
        ;
    count();
    return was;
}

/* Passes are counted from the start, from the first commit of a tick (cron.due), and from the first
 * commit that submits ticks that waited (ledger.moved_told). */
TEST(every_point_of_a_tick, .deadline_s = 300)
{
    static const char *const behind[] = { "", "cron.due>", "ledger.moved_told>" };
    static const int passes[] = { 1, 2, 3, 5, 8 };
    int met = 0, ran = 0;
    learn(param);
    TRUE(knows("cron.due") && knows("cron.ticked") && knows("ledger.moved_told") &&
         knows("ledger.features_loaded") && knows("ledger.before_commit") &&
         knows("ledger.after_commit"));
    for (int i = 0; i < n_points; i++) {
        bool any = false;
        for (size_t b = 0; b < COUNT_OF(behind); b++)
            for (size_t k = 0; k < (check_long() ? COUNT_OF(passes) : 2); k++) {
                char crash[200];
                snprintf(crash, sizeof crash, "%s%.127s:%d", behind[b], points[i], passes[k]);
                bool was = killed(param, crash);
                any |= was;
                met += was;
                ran++;
            }
        if (!any)
            FAIL("point \"%s\" was passed when it was learnt and never again", points[i]);
    }
    printf("%d points, killed in %d of %d runs\n", n_points, met, ran);
}
