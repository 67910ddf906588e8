/*
 * cron.c - nodes that tick are killed, at random and at every crash point of a tick: each tick is
 * one call, and each call takes effect once.
 *
 * The nodes are this binary, started with CRON_NODE set. Their handler inserts the id of its call
 * into the table `box`, which has no unique constraint. On a server two of them have a clock that
 * is ten minutes off. PAWL_SEED repeats a sequence of kills.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/macros.h"
#include "exec/write_job.h"
#include "feature/cron.h"
#include "fixture.h"
#include "lib/lib.h"
#include "model/schedule.h"
#include "own_world.h"
#include "store/feature.h"

enum { NODES_MAX = 5, TIMES = 3 };

/* ---- The program ----------------------------------------------------------------------------- */

static volatile sig_atomic_t told_to_stop;

static void stop(int sig)
{
    (void)sig;
    told_to_stop = 1;
}

static int effect(struct pawl_call *c)
{
    struct pawl_value id = { .kind = PAWL_V_TEXT, .data = pawl_call_id(c) };
    id.len = strlen(id.data);
    if (pawl_sql(c, "INSERT INTO box (id) VALUES (?)", &id, 1, NULL, NULL) != PAWL_OK)
        return pawl_fail(c, "no SQL");
    return pawl_reply_int(c, 1);
}

static struct pawl_options options_of(const char *db, const char *node)
{
    return (struct pawl_options){ PAWL_OPTIONS_INIT,
                                  .db = db,
                                  .node = node,
                                  .heartbeat_interval_us = 100 * FIXTURE_MS,
                                  .heartbeat_grace_us = FIXTURE_SEC * check_scale(),
                                  .reclaim_interval_us = 100 * FIXTURE_MS };
}

/* Until it is killed, or told to stop. A database that is busy for a moment is tried again. */
static void program(void)
{
    const char *node = getenv("CRON_NODE");
    struct pawl_err err;
    struct pawl *p = NULL;
    enum pawl_status st = PAWL_BUSY;
    if (!node)
        return;
    alarm((unsigned)(200 * check_scale()));
    signal(SIGTERM, stop);
    struct pawl_options o = options_of(getenv("CRON_DB"), node);
    while (st != PAWL_OK && !told_to_stop) {
        st = pawl_open(&o, &p, &err);
        if (st == PAWL_OK)
            st = pawl_on(pawl_program(p), "t", "run", effect);
        if (st == PAWL_OK)
            st = pawl_start(p, &(struct pawl_workers){ PAWL_WORKERS_INIT, .slots = 8 }, &err);
        if (st == PAWL_OK)
            break;
        fprintf(stderr, "%s: %s\n", node, err.text);
        pawl_close(p);
        usleep(20000);
    }
    while (!told_to_stop)
        usleep(5000);
    pawl_close(p);
    exit(0);
}

CHECK_PARAMS
{
    program();
    engines_add(ENGINES_DURABLE);
}

/* ---- The case -------------------------------------------------------------------------------- */

static uint64_t seed;

static int64_t dice(int64_t below)
{
    seed++;
    return (int64_t)(mix64(seed) % (uint64_t)below);
}

static const char *faketime(void)
{
    static const char *const paths[] = { "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
                                         "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1" };
#if defined(__SANITIZE_THREAD__) || defined(ASAN)
    return NULL; /* a sanitizer must be the first library, and does not see how libfaketime waits */
#endif
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        if (access(paths[i], R_OK) == 0)
            return paths[i];
    return NULL;
}

static pid_t start(const void *param, int number, const char *crash)
{
    static const char *const clocks[] = { "+600s", "-600s", NULL };
    const char *db = engine_url(param), *clock = clocks[number % 3];
    char node[16];
    snprintf(node, sizeof node, "n%d", number);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("CRON_NODE", node, 1);
        setenv("CRON_DB", db, 1);
        unsetenv("PAWL_CRASH");
        if (crash)
            setenv("PAWL_CRASH", crash, 1);
        /* For a file the clock of the process is the database's. */
        if (clock && faketime() && engine_of(param)->kind == ENGINE_SERVER) {
            setenv("LD_PRELOAD", faketime(), 1);
            setenv("FAKETIME", clock, 1);
            setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1);
        }
        execl("/proc/self/exe", "cron", (char *)NULL);
        _exit(127);
    }
    GT_INT(pid, 0);
    return pid;
}

static void kill_node(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    EQ_INT(waitpid(pid, &status, 0), pid);
}

static void stop_node(pid_t pid)
{
    int status;
    kill(pid, SIGTERM);
    EQ_INT(waitpid(pid, &status, 0), pid);
    TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void put(struct pawl *p, const char *name, const int64_t *at)
{
    struct schedule s;
    struct arena a;
    arena_init(&a, 1 << 20);
    schedule_init(&s);
    s.rule.kind = SCHEDULE_AT;
    s.rule.at_us = at;
    s.rule.n_at = TIMES;
    s.call.type = BYTES("t");
    s.call.max_lost = 1000;
    s.catch_up = CATCH_UP_ALL;
    struct cron_op q = { .what = CRON_PUT, .name = bytes_of(name), .schedule = &s };
    struct op op = { .kind = OP_FEATURE, .a = &a, .feature = { .of = &feature_cron, .ctx = &q } };
    OK(exec_do(p->e, &op), &op.err);
    arena_release(&a);
}

/* Store n schedules that tick at the same TIMES times, the first about so long from now. On a slow
 * machine that time may pass meanwhile, and a schedule never looks back: then later ones are
 * chosen. Returns the last one. */
static int64_t put_all(struct pawl *p, int n, int64_t in_us, int64_t apart_us)
{
    int64_t at[TIMES];
    do {
        char name[16];
        int64_t now_us = exec_now(p->e);
        for (int i = 0; i < TIMES; i++)
            at[i] = (now_us + in_us + i * apart_us) / FIXTURE_SEC * FIXTURE_SEC;
        for (int i = 0; i < n; i++) {
            snprintf(name, sizeof name, "s%d", i);
            put(p, name, at);
        }
        in_us *= 2;
    } while (exec_now(p->e) >= at[0]);
    return at[TIMES - 1];
}

static struct pawl *begin(const void *param)
{
    struct pawl_options o = options_of(engine_url(param), "parent");
    struct pawl_err err;
    struct pawl *p;
    OK(pawl_open(&o, &p, &err), &err);
    OK(pawl_prepare(pawl_program(p), "CREATE TABLE IF NOT EXISTS box (id VARCHAR(100))"), NULL);
    return p;
}

static int64_t count(const void *param, const char *sql)
{
    return engine_int(param, sql);
}

/* Every tick of every schedule is one call, which completed, took effect once and is recorded. */
static void check_all(const void *param, int64_t n)
{
    UNTIL(count(param, "SELECT COUNT(*) FROM pawl_outcome") >= n);
    EQ_INT(count(param, "SELECT COUNT(*) FROM pawl_outcome WHERE status = 3"), n);
    EQ_INT(count(param, "SELECT COUNT(*) FROM pawl_call"), n);
    EQ_INT(count(param, "SELECT COUNT(DISTINCT id) FROM pawl_call"), n);
    EQ_INT(count(param, "SELECT COUNT(*) FROM box"), n);
    EQ_INT(count(param, "SELECT COUNT(DISTINCT id) FROM box"), n);
    EQ_INT(count(param, "SELECT COUNT(*) FROM pawl_tick WHERE kind = 1"), n);
    EQ_INT(count(param, "SELECT COUNT(*) FROM pawl_tick WHERE kind <> 4"), n);
    EQ_INT(count(param, "SELECT COUNT(*) FROM pawl_schedule WHERE due_at IS NOT NULL"), 0);
    engine_intact(param);
}

TEST(nodes_are_killed_at_random_while_they_tick, .deadline_s = 400)
{
    int schedules = check_long() ? 1000 : 150, nodes = check_long() ? NODES_MAX : 3, kills = 0;
    pid_t pids[NODES_MAX];
    const char *text = getenv("PAWL_SEED");
    seed = text && *text ? strtoull(text, NULL, 10) : (uint64_t)fixture_mono();
    printf("PAWL_SEED=%llu\n", (unsigned long long)seed);
    struct pawl *p = begin(param);
    int64_t last_us = put_all(p, schedules, (check_long() ? 8 : 3) * FIXTURE_SEC, 2 * FIXTURE_SEC);
    for (int i = 0; i < nodes; i++)
        pids[i] = start(param, i, NULL);
    while (exec_now(p->e) < last_us + 2 * FIXTURE_SEC) {
        int which = (int)dice(nodes);
        usleep((unsigned)(100000 + dice(500000)));
        kill_node(pids[which]);
        kills++;
        pids[which] = start(param, which, NULL);
    }
    check_all(param, (int64_t)schedules * TIMES);
    for (int i = 0; i < nodes; i++)
        stop_node(pids[i]);
    printf("%d kills\n", kills);
    pawl_close(p);
}

/* The points that the commit of a tick passes. The first node is killed at the n-th pass since the
 * tick was decided, another one goes on. */
TEST(nodes_are_killed_at_every_point_of_a_tick, .deadline_s = 400)
{
    /* The process is killed at the n-th pass of the point after the first tick was decided. */
    static const struct {
        const char *point;
        bool of_engine;
        int passes;
    } points[] = {
        { "cron.ticked", false, 2 },        { "before_commit", true, 2 },
        { "after_commit", true, 2 },        { "exec.before_answers", false, 1 },
        { "exec.after_answers", false, 1 },
    };
    const char *engine = engine_of(param)->kind == ENGINE_FILE ? "sqlite.driver." : "ledger.";
    enum { SCHEDULES = 20 };
    int killed = 0, ran = 0;
    for (size_t i = 0; i < COUNT_OF(points); i++)
        for (int pass = 1; pass <= (check_long() ? 4 : points[i].passes); pass++) {
            char crash[100];
            int status;
            snprintf(crash, sizeof crash, "%s%s%s:%d", i ? "cron.ticked>" : "",
                     points[i].of_engine ? engine : "", points[i].point, pass);
            printf("%s\n", crash);
            engine_fresh(param);
            struct pawl *p = begin(param);
            put_all(p, SCHEDULES, 2 * FIXTURE_SEC, FIXTURE_SEC);
            pid_t first = start(param, 0, crash);
            int64_t until_us = fixture_mono() + 8 * FIXTURE_SEC * check_scale();
            pid_t ended = 0;
            while (!ended && fixture_mono() < until_us &&
                   count(param, "SELECT COUNT(*) FROM pawl_outcome") < SCHEDULES * TIMES) {
                usleep(20000);
                ended = waitpid(first, &status, WNOHANG);
            }
            killed += ended == first;
            ran++;
            if (ended == first)
                TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            pid_t second = start(param, 1, NULL);
            check_all(param, SCHEDULES * TIMES);
            stop_node(second);
            if (ended != first)
                stop_node(first);
            pawl_close(p);
        }
    printf("%d runs, killed in %d of them\n", ran, killed);
    GE_INT(killed, ran * 3 / 4); /* a point may not be passed so often */
}
