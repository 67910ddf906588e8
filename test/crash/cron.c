/*
 * cron.c - nodes that tick are killed, at random, in the middle of a tick and at every crash point
 * of a node that ticks: each tick is one call, and each call takes effect once.
 *
 * The nodes are this binary, started with CRON_NODE set. Their handler inserts the id of its call
 * into the table `box`, which has no unique constraint. On a server two of three have a clock that
 * is ten minutes off. A node and the case share a page (struct node_page): the node says there how
 * far its clock is off and whether it is inside a tick. PAWL_SEED repeats a sequence of kills.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/hook.h"
#include "base/macros.h"
#include "exec/write_job.h"
#include "feature/cron.h"
#include "fixture.h"
#include "lib/lib.h"
#include "model/schedule.h"
#include "own_world.h"
#include "store/feature.h"

enum { NODES_MAX = 5, TICKS_MAX = 10, POINTS_MAX = 40 };

/* What a node says. A new one begins with zeros. */
struct node_page {
    atomic_bool in_tick; /* from the lock of what is due until the commit was answered */
    atomic_bool open;    /* the database is open, and off_s is set */
    atomic_int off_s;    /* its clock minus the database's */
};

static struct node_page *page_map(const char *node)
{
    char file[32];
    snprintf(file, sizeof file, "page.%s", node);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    GE_INT(fd, 0);
    EQ_INT(ftruncate(fd, sizeof(struct node_page)), 0);
    void *at = mmap(NULL, sizeof(struct node_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    TRUE(at != MAP_FAILED);
    close(fd);
    return at;
}

/* ---- The program ----------------------------------------------------------------------------- */

static volatile sig_atomic_t told_to_stop;
static struct node_page *mine;

static void stop(int sig)
{
    (void)sig;
    told_to_stop = 1;
}

static void on_pass(const char *name)
{
    static _Thread_local bool ticking;
    if (strcmp(name, "cron.due") != 0 && strcmp(name, "ledger.after_commit") != 0)
        return;
    if (ticking || name[0] == 'c')
        atomic_store(&mine->in_tick, name[0] == 'c');
    ticking = name[0] == 'c';
}

static int effect(struct pawl_call *c)
{
    struct pawl_value id = { .kind = PAWL_V_TEXT, .data = pawl_call_id(c) };
    id.len = strlen(id.data);
    if (pawl_sql(c, "INSERT INTO box (id) VALUES (?)", &id, 1, NULL, NULL) != PAWL_OK)
        return pawl_fail(c, "no SQL");
    return pawl_reply_int(c, 1);
}

/* Ends when the case says so, which it does by making a file. */
static int effect_later(struct pawl_call *c)
{
    while (access("gate", F_OK) != 0)
        usleep(2000);
    return effect(c);
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

/* A database that is busy for a moment is tried again. NULL: told to stop. */
static struct pawl *node_open(const char *node)
{
    struct pawl_options o = options_of(getenv("CRON_DB"), node);
    struct pawl_err err;
    while (!told_to_stop) {
        struct pawl *p = NULL;
        enum pawl_status st = pawl_open(&o, &p, &err);
        if (st == PAWL_OK)
            st = pawl_on(pawl_program(p), "t", "run", effect);
        if (st == PAWL_OK)
            st = pawl_on(pawl_program(p), "later", "run", effect_later);
        if (st == PAWL_OK)
            st = pawl_start(p, &(struct pawl_workers){ PAWL_WORKERS_INIT, .slots = 8 }, &err);
        if (st == PAWL_OK)
            return p;
        fprintf(stderr, "%s: %s\n", node, err.text);
        pawl_close(p);
        usleep(20000);
    }
    return NULL;
}

/* Until it is killed, or told to stop. */
static void program(void)
{
    const char *node = getenv("CRON_NODE");
    sigset_t term;
    if (!node)
        return;
    alarm((unsigned)(400 * check_scale()));
    signal(SIGTERM, stop);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &term, NULL);
    mine = page_map(node);
    hook_on_pass(on_pass);
    struct pawl *p = node_open(node);
    if (p) {
        atomic_store(&mine->off_s, (int)(time(NULL) - exec_now(p->e) / FIXTURE_SEC));
        atomic_store(&mine->open, true);
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

/* ---- Nodes ----------------------------------------------------------------------------------- */

struct node {
    pid_t pid;
    struct node_page *page;
};
static struct node nodes[NODES_MAX];
static const char *const clocks[] = { "+600s", "-600s", NULL };
static const int clocks_s[] = { 600, -600, 0 };

static const char *faketime(void)
{
    static const char *const paths[] = { "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
                                         "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1" };
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        if (access(paths[i], R_OK) == 0)
            return paths[i];
    return NULL;
}

/* Why no node can have a clock of its own; NULL: they have. */
static const char *one_clock(const void *param)
{
#if ASAN || defined(__SANITIZE_THREAD__)
    return "a sanitizer must be the first library, and does not see how libfaketime waits";
#endif
    if (engine_of(param)->kind != ENGINE_SERVER)
        return "the clock of the process is the database's";
    return faketime() ? NULL : "libfaketime is not installed";
}

static void become(const void *param, int number, const char *crash, const char *log)
{
    char node[16];
    sigset_t term;
    snprintf(node, sizeof node, "n%d", number);
    setenv("CRON_NODE", node, 1);
    setenv("CRON_DB", engine_url(param), 1);
    unsetenv("PAWL_CRASH");
    if (crash)
        setenv("PAWL_CRASH", crash, 1);
    if (log)
        setenv("PAWL_CRASH_LOG", log, 1);
    if (clocks[number % 3] && !one_clock(param)) {
        setenv("LD_PRELOAD", faketime(), 1);
        setenv("FAKETIME", clocks[number % 3], 1);
        setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1);
        /* It believes that glibc waits by the real clock, so that no wait would last. */
        setenv("FAKETIME_FORCE_MONOTONIC_FIX", "0", 1);
    }
    sigemptyset(&term); /* until it handles the signal */
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    execl("/proc/self/exe", "cron", (char *)NULL);
    _exit(127);
}

static void start(const void *param, int number, const char *crash, const char *log)
{
    struct node *v = &nodes[number];
    char name[16];
    snprintf(name, sizeof name, "n%d", number);
    if (!v->page)
        v->page = page_map(name);
    memset(v->page, 0, sizeof *v->page);
    (void)engine_url(param);
    fflush(NULL);
    v->pid = fork();
    if (v->pid == 0)
        become(param, number, crash, log);
    GT_INT(v->pid, 0);
}

/* Returns whether it was inside a tick. */
static bool kill_node(int number)
{
    int status;
    kill(nodes[number].pid, SIGKILL);
    EQ_INT(waitpid(nodes[number].pid, &status, 0), nodes[number].pid);
    return atomic_load(&nodes[number].page->in_tick);
}

/* Its clock is off by as much as it should be. */
static void clock_check(const void *param, int number)
{
    enum { SLACK_S = 20 };
    int want = one_clock(param) ? 0 : clocks_s[number % 3];
    UNTIL(atomic_load(&nodes[number].page->open));
    int off = atomic_load(&nodes[number].page->off_s);
    printf("n%d: clock minus the database's: %d s\n", number, off);
    GE_INT(off, want - SLACK_S);
    LE_INT(off, want + SLACK_S);
}

/* `armed`: it has a crash point that it may pass while it stops. */
static void stop_node(const void *param, int number, bool armed)
{
    int status;
    clock_check(param, number);
    kill(nodes[number].pid, SIGTERM);
    EQ_INT(waitpid(nodes[number].pid, &status, 0), nodes[number].pid);
    TRUE((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
         (armed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
}

/* ---- Schedules ------------------------------------------------------------------------------- */

/* The times of all schedules of a case. */
struct tick_times {
    int64_t at_us[TICKS_MAX];
    int n;
    int puts; /* how often the schedules were put */
};

/* Returns false if all of these times have passed. */
static bool put(struct pawl *p, const char *name, const struct tick_times *t, bool waits)
{
    struct schedule s;
    struct arena a;
    arena_init(&a, 1 << 20);
    schedule_init(&s);
    s.rule.kind = SCHEDULE_AT;
    s.rule.at_us = t->at_us;
    s.rule.n_at = (size_t)t->n;
    s.call.type = waits ? BYTES("later") : BYTES("t");
    s.call.max_lost = 1000;
    s.catch_up = CATCH_UP_ALL;
    s.overlap = waits ? OVERLAP_WAIT : OVERLAP_ALLOW;
    struct cron_op q = { .what = CRON_PUT, .name = bytes_of(name), .schedule = &s };
    struct op op = { .kind = OP_FEATURE, .a = &a, .feature = { .of = &feature_cron, .ctx = &q } };
    enum pawl_status st = exec_do(p->e, &op);
    bool late = st == PAWL_INVALID && strstr(op.err.text, "no tick in the future");
    if (!late)
        OK(st, &op.err);
    arena_release(&a);
    return !late;
}

static int64_t count(const void *param, const char *sql)
{
    return engine_int(param, sql);
}

/* Store schedules that tick at the same n times, the first about so long from now; the last
 * `waiting` of them with overlap wait. On a slow machine that time may pass meanwhile, and a
 * schedule never looks back: then later times are chosen, and ticks that were due are recorded as
 * missed. */
static struct tick_times put_all(struct pawl *p, const void *param, int schedules, int waiting,
                                 int n, int64_t in_us, int64_t apart_us)
{
    struct tick_times t = { .n = n };
    char sql[100];
    bool late;
    do {
        char name[16];
        late = false;
        t.puts++;
        int64_t now_us = exec_now(p->e);
        for (int i = 0; i < n; i++)
            t.at_us[i] = (now_us + in_us + FIXTURE_SEC) / FIXTURE_SEC * FIXTURE_SEC + i * apart_us;
        for (int i = 0; i < schedules; i++) {
            snprintf(name, sizeof name, "s%d", i);
            late |= !put(p, name, &t, i >= schedules - waiting);
        }
        in_us = 2 * in_us + FIXTURE_SEC;
        snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM pawl_schedule WHERE next_at = %lld",
                 (long long)t.at_us[0]);
    } while (late || count(param, sql) < schedules);
    return t;
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

/* Wait for n outcomes; as long as there are more of them than a moment ago, that takes as long as
 * it takes. */
static void outcomes_wait(const void *param, int64_t n)
{
    for (int64_t was = -1, now = 0; now < n; was = now) {
        UNTIL((now = count(param, "SELECT COUNT(*) FROM pawl_outcome")) > was);
        usleep(5000);
    }
}

/* Every tick of every schedule is one call, which completed, took effect once and is recorded. */
static void check_all(const void *param, int schedules, const struct tick_times *t)
{
    int64_t n = (int64_t)schedules * t->n;
    char sql[300];
    outcomes_wait(param, n);
    EQ_INT(count(param, "SELECT COUNT(*) FROM pawl_outcome WHERE status = 3"), n);
    EQ_INT(count(param, "SELECT COUNT(*) FROM pawl_call"), n);
    EQ_INT(count(param, "SELECT COUNT(DISTINCT id) FROM pawl_call"), n);
    EQ_INT(count(param, "SELECT COUNT(*) FROM box"), n);
    EQ_INT(count(param, "SELECT COUNT(DISTINCT id) FROM box"), n);
    EQ_INT(count(param, t->puts == 1 ? "SELECT COUNT(*) FROM pawl_tick"
                                     : "SELECT COUNT(*) FROM pawl_tick WHERE kind <> 4"),
           n);
    EQ_INT(count(param, "SELECT COUNT(DISTINCT call_id) FROM pawl_tick WHERE kind = 1"), n);
    EQ_INT(count(param, "SELECT COUNT(*) FROM pawl_tick t JOIN pawl_call c ON c.id = t.call_id"),
           n);
    EQ_INT(count(param, "SELECT COUNT(*) FROM pawl_tick t JOIN box b ON b.id = t.call_id"), n);
    for (int i = 0; i < t->n; i++) {
        snprintf(sql, sizeof sql,
                 "SELECT COUNT(DISTINCT name) FROM pawl_tick WHERE kind = 1 AND at = %lld",
                 (long long)t->at_us[i]);
        EQ_INT(count(param, sql), schedules);
    }
    EQ_INT(count(param, "SELECT COUNT(*) FROM pawl_cron_runs WHERE status = 'completed'"), n);
    EQ_INT(count(param, "SELECT COUNT(*) FROM pawl_schedule WHERE due_at IS NOT NULL"), 0);
    engine_intact(param);
}

/* ---- At random ------------------------------------------------------------------------------- */

static uint64_t seed;

static int64_t dice(int64_t below)
{
    seed++;
    return (int64_t)(mix64(seed) % (uint64_t)below);
}

static int n_nodes, kills, aimed, blind, half;

static void kill_again(const void *param, int number)
{
    half += kill_node(number);
    kills++;
    start(param, number, NULL, NULL);
}

/* A node that is inside a tick; -1: none. */
static int ticking(void)
{
    for (int i = 0; i < n_nodes; i++)
        if (atomic_load(&nodes[i].page->in_tick))
            return i;
    return -1;
}

/* The node that leads `scheduler`, so that it ticks; else any. */
static int leader(const void *param)
{
    const char *node = engine_rows(param, "SELECT node FROM pawl_leader WHERE role = 'scheduler'");
    return node[0] == 'n' && node[1] - '0' < n_nodes ? node[1] - '0' : (int)dice(n_nodes);
}

/* Blindly: the leader, up to 300 ms after the moment that is due. */
static void kill_leader(struct pawl *p, const void *param, int64_t at_us)
{
    int which = leader(param);
    int64_t left_us = at_us + dice(300 * FIXTURE_MS) - exec_now(p->e);
    if (left_us > 0)
        usleep((unsigned)left_us);
    kill_again(param, which);
    blind++;
}

/* The node that enters the tick, and the one that does so after it. The first at once, all others a
 * little later, so that some are killed before they have decided, some behind that, and some during
 * the commit. A tick takes about 100 us for each schedule on a server, and 10 us on a file. */
static void kill_ticking(struct pawl *p, const void *param, int schedules, int64_t until_us)
{
    int64_t within_us = schedules * (engine_of(param)->kind == ENGINE_SERVER ? 50 : 3);
    for (int which, n = 0; n < 2 && exec_now(p->e) < until_us; usleep(100))
        if ((which = ticking()) >= 0) {
            usleep(half ? (unsigned)dice(within_us) : 0);
            kill_again(param, which);
            aimed++;
            n++;
        }
}

/* Until then any node. */
static void kill_any(struct pawl *p, const void *param, int64_t until_us)
{
    while (exec_now(p->e) < until_us) {
        usleep((unsigned)(100000 + dice(500000)));
        kill_again(param, (int)dice(n_nodes));
    }
}

TEST(nodes_are_killed_at_random_while_they_tick, .deadline_s = 400)
{
    int schedules = check_long() ? 1000 : 100, ticks = check_long() ? TICKS_MAX : 4;
    int64_t apart_us = (check_long() ? 5 : 2) * FIXTURE_SEC;
    const char *text = getenv("PAWL_SEED");
    seed = text && *text ? strtoull(text, NULL, 10) : (uint64_t)fixture_mono();
    printf("PAWL_SEED=%llu\n", (unsigned long long)seed);
    n_nodes = check_long() ? NODES_MAX : 3;
    struct pawl *p = begin(param);
    struct tick_times t =
        put_all(p, param, schedules, 0, ticks, (check_long() ? 8 : 1) * FIXTURE_SEC, apart_us);
    for (int i = 0; i < n_nodes; i++)
        start(param, i, NULL, NULL);
    for (int i = 0; i < t.n; i++) {
        kill_any(p, param, t.at_us[i] - FIXTURE_SEC);
        if (i % 2)
            kill_leader(p, param, t.at_us[i]);
        kill_ticking(p, param, schedules, t.at_us[i] + apart_us / 2);
    }
    check_all(param, schedules, &t);
    for (int i = 0; i < n_nodes; i++)
        stop_node(param, i, false);
    printf("%d schedules, %d ticks of each, %d nodes, %d kills (%d of them at a due moment, %d "
           "aimed at a tick), %d of them in the middle of a tick, %d calls\n",
           schedules, t.n, n_nodes, kills, blind, aimed, half, schedules * t.n);
    if (engine_of(param)->kind == ENGINE_SERVER) /* on a file a tick may be too short to be hit */
        GT_INT(half, 0);
    pawl_close(p);
}

/* ---- Clocks ---------------------------------------------------------------------------------- */

TEST(the_clocks_of_the_nodes_are_ten_minutes_off)
{
    if (one_clock(param))
        skip("%s: %s", engine_of(param)->name, one_clock(param));
    struct pawl *p = begin(param);
    for (int i = 0; i < 3; i++)
        start(param, i, NULL, NULL);
    for (int i = 0; i < 3; i++)
        stop_node(param, i, false);
    pawl_close(p);
}

/* ---- Points ---------------------------------------------------------------------------------- */

enum { SCHEDULES = 20, WAITING = 3 };

static char points[POINTS_MAX][128];
static int n_points;

/* Let the waiting schedules' first calls end, when their second ticks wait for that, or when nobody
 * is left who could tick. Returns how the node ended; 0: not yet. */
static pid_t watch_first(const void *param, const struct tick_times *t, int *status)
{
    pid_t ended = 0;
    bool opened = false;
    int64_t until_us = fixture_mono() + FIXTURE_WAIT_US;
    while (!ended && count(param, "SELECT COUNT(*) FROM pawl_outcome") < SCHEDULES * t->n) {
        LT_INT(fixture_mono(), until_us);
        ended = waitpid(nodes[0].pid, status, WNOHANG);
        opened = opened || count(param, "SELECT COUNT(*) FROM pawl_schedule WHERE waiting_at IS "
                                        "NOT NULL") == WAITING;
        if (opened || ended)
            close(open("gate", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        usleep(5000);
    }
    return ended;
}

/* The first node, with this crash or log. When it was killed it starts again, in the long form
 * another one, which waits until the first counts as dead. Returns whether it was killed. */
static bool run_points(const void *param, const char *crash, const char *log)
{
    int status, second = check_long() ? 1 : 0;
    (void)unlink("gate");
    engine_fresh(param);
    struct pawl *p = begin(param);
    struct tick_times t = put_all(p, param, SCHEDULES, WAITING, 2, 0, FIXTURE_SEC);
    start(param, 0, crash, log);
    bool ended = watch_first(param, &t, &status) != 0;
    if (ended) {
        TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        start(param, second, NULL, NULL);
    }
    check_all(param, SCHEDULES, &t);
    stop_node(param, ended ? second : 0, crash && !ended);
    pawl_close(p);
    return ended;
}

/* The points that a node passes once it ticks. */
static void learn(const void *param)
{
    bool ticked = false;
    char line[128];
    FALSE(run_points(param, NULL, "points.log"));
    /* Those that the end of a call submitted. */
    EQ_INT(count(param, "SELECT COUNT(*) FROM pawl_tick WHERE node IS NULL"), WAITING);
    FILE *f = fopen("points.log", "r");
    TRUE(f != NULL);
    while (n_points < POINTS_MAX && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        ticked = ticked || strcmp(line, "cron.due") == 0;
        if (strncmp(line, "migrate.", 8) != 0) /* before it ticks */
            memcpy(points[n_points++], line, sizeof line);
    }
    fclose(f);
    TRUE(ticked);
}

/* Is it one that only a node has? The others are in cron_points.c, without nodes. */
static bool of_node(const char *point)
{
    return strncmp(point, "exec.", 5) == 0 || strcmp(point, "ledger.handler_ran") == 0;
}

/* The node is killed at this pass of each point after its first tick began, and after the first
 * tick that waited was submitted. */
TEST(nodes_are_killed_at_every_point_of_a_tick, .deadline_s = 900)
{
    static const char *const behind[] = { "cron.due>", "ledger.moved_told>" };
    static const int passes[] = { 1, 3 };
    int killed = 0, ran = 0, own = 0;
    learn(param);
    for (int i = 0; i < n_points; i++)
        for (size_t b = 0; b < COUNT_OF(behind); b++)
            for (size_t k = 0; k < (check_long() ? COUNT_OF(passes) : 1); k++) {
                char crash[200];
                if (!check_long() && !of_node(points[i]))
                    continue;
                snprintf(crash, sizeof crash, "%s%.127s:%d", behind[b], points[i], passes[k]);
                bool was = run_points(param, crash, NULL);
                printf("%s: %s\n", crash, was ? "killed" : "not passed so often");
                killed += was;
                own += was && of_node(points[i]);
                ran++;
            }
    printf("%d points, %d runs, killed in %d of them\n", n_points, ran, killed);
    GE_INT(own, 4);
}
