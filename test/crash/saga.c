/*
 * saga.c - sagas over money: their process is killed at every point of a commit and at random, one
 * of two processes is stopped for longer than the grace, the answer of a commit is lost.
 *
 * What must be true afterwards is in lib/saga_check.c. PAWL_SEED replays one seed of
 * killed_at_random; PAWL_SEEDS is how many there are, from PAWL_SEED_FIRST on.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/macros.h"
#include "db_server.h"
#include "my_proxy.h"
#include "own_world.h"
#include "saga_fixture.h"

RUNS_ON(ENGINES_DURABLE)

static const char *url;

static void begin(void *param)
{
    url = engine_url(param);
    saga_make(url);
}

static int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

/* ---- Every point ----------------------------------------------------------------------------- */

enum { POINTS_MAX = 60, PASSES_MAX = 200 };
static char points[POINTS_MAX][100];
static int n_points;

/* Between them they pass every point that sagas pass: one completes, one undoes everything with a
 * step in doubt, one is cancelled while it works. */
static struct saga_program three(const char *prefix)
{
    return (struct saga_program){
        .url = url,
        .prefix = prefix,
        .v = { { .end = SAGA_COMPLETES, .trips = 7 },
               { .end = SAGA_FAILS, .at = 10, .early = true },
               { .end = SAGA_CANCELLED, .at = 8, .lingers = true, .obeys = true } },
        .n = 3,
        .slots = 2
    };
}

/* Run the program once without a crash, and collect the names of the points. */
static void learn(void)
{
    struct saga_program s = three("learn");
    s.log = "points.log";
    FALSE(saga_killed(saga_start(&s)));
    saga_check(&s, 0);
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

/* Kill the program at the n-th pass of the point, and start it again. False: it ended before. */
static bool killed_at(const char *point, int pass)
{
    static int no;
    char prefix[30], crash[120];
    snprintf(prefix, sizeof prefix, "k%d", ++no);
    snprintf(crash, sizeof crash, "%.99s:%d", point, pass);
    printf("%s\n", crash);
    struct saga_program s = three(prefix);
    s.crash = crash;
    bool killed = saga_killed(saga_start(&s));
    s.crash = NULL;
    if (killed)
        FALSE(saga_killed(saga_start(&s)));
    saga_check(&s, killed);
    return killed;
}

/* In the short form SQLite's points are met once each, at a pass that differs from point to point;
 * on a server every third of them, and each server begins with another one. In the long form every
 * pass of every point is met. */
TEST(killed_at_every_point, .deadline_s = 1800)
{
    const char *engine = engine_of(param)->name;
    bool file = engine_of(param)->kind == ENGINE_FILE;
    int met = 0, first = file ? 0 : strcmp(engine, "postgres") ? 1 : 2;
    begin(param);
    learn();
    TRUE(knows("ledger.flow_begun") && knows("ledger.flow_suspended") &&
         knows("ledger.flow_cancel") && knows("ledger.before_commit") &&
         knows("ledger.after_commit") && knows("ledger.handler_ran") && knows("pass.step_stored") &&
         knows("workflow.signal_stored") && knows("workflow.children_ended"));
    if (check_long()) {
        for (int i = 0; i < n_points; i++)
            for (int pass = 1; pass <= PASSES_MAX && killed_at(points[i], pass); pass++)
                met++;
    } else {
        for (int i = first; i < n_points; i += file ? 1 : 3)
            if (killed_at(points[i], 1 + i * 3 % 11) || killed_at(points[i], 1))
                met++;
            else
                FAIL("point \"%s\" was passed when it was learnt and never again", points[i]);
    }
    printf("%d points, killed %d times\n", n_points, met);
    GT_INT(met, 4);
}

/* ---- Random ---------------------------------------------------------------------------------- */

enum { RUNS = 6, NODES = 2, KILLS_MAX = 5 };

/* The processes of one seed, and its dice. */
struct generation {
    struct saga_program s;
    pid_t pids[NODES];
    int nodes, kills;
    uint64_t dice;
};

/* What a seed took that was not killed. */
static int64_t took_us = 100 * FIXTURE_MS;

static int64_t dice(struct generation *g, int64_t below)
{
    return (int64_t)(mix64(g->dice++) % (uint64_t)below);
}

/* One in three dies by itself, at a random pass of a random point, if it comes there. */
static void start(struct generation *g, int which, bool may_die)
{
    static const char *const names[NODES] = { "saga", "other" };
    char crash[120];
    snprintf(crash, sizeof crash, "%.99s:%d", points[dice(g, n_points)], 1 + (int)dice(g, 30));
    struct saga_program s = g->s;
    s.node = names[which];
    s.crash = may_die && dice(g, 3) == 0 ? crash : NULL;
    g->pids[which] = saga_start(&s);
}

/* Several kills, then all processes are left to finish. */
static int one_seed(uint64_t seed)
{
    char prefix[40], path[60];
    snprintf(prefix, sizeof prefix, "s%llu", (unsigned long long)seed);
    struct generation g = { .s = { .url = url, .prefix = prefix, .slots = 4 },
                            .dice = mix64(seed) };
    saga_plan(&g.s, RUNS, seed);
    int kills = (int)dice(&g, KILLS_MAX + 1);
    g.nodes = dice(&g, 3) ? 1 : 2;
    int64_t begun = fixture_mono();
    for (int i = 0; i < g.nodes; i++)
        start(&g, i, kills > 0);
    for (int i = 0; i < kills; i++) {
        int which = (int)dice(&g, g.nodes);
        usleep((unsigned)dice(&g, took_us));
        kill(g.pids[which], SIGKILL);
        g.kills += saga_killed(g.pids[which]);
        start(&g, which, i + 1 < kills);
    }
    for (int left = g.nodes; left > 0;) {
        pid_t pid;
        if (saga_killed_any(&pid)) {
            start(&g, pid == g.pids[0] ? 0 : 1, false);
            g.kills++;
        } else {
            left--;
        }
    }
    if (!kills && g.nodes == 1)
        took_us = fixture_mono() - begun;
    saga_check(&g.s, g.kills);
    snprintf(path, sizeof path, "%s.world", prefix);
    unlink(path);
    return g.kills;
}

TEST(killed_at_random, .deadline_s = 3600)
{
    bool file = engine_of(param)->kind == ENGINE_FILE;
    int64_t otherwise = !check_long() ? (file ? 12 : 8) : check_scale() > 1 ? 100 : 1000;
    int64_t n = setting("PAWL_SEEDS", otherwise), kills = 0;
    uint64_t first = (uint64_t)setting("PAWL_SEED_FIRST", check_long() ? 1 : fixture_mono());
    uint64_t replay = (uint64_t)setting("PAWL_SEED", 0);
    begin(param);
    learn();
    if (replay) {
        first = replay;
        n = 1;
    }
    for (int64_t i = 0; i < n; i++) {
        printf("PAWL_SEED=%llu\n", (unsigned long long)first + (unsigned long long)i);
        fflush(stdout);
        kills += one_seed(first + (uint64_t)i);
    }
    printf("%lld seeds, %lld kills\n", (long long)n, (long long)kills);
    if (!replay)
        GT_INT(kills, n / 4);
    engine_intact(param);
}

/* ---- A node that is stopped ------------------------------------------------------------------ */

static struct saga_program stopped;

/* The first node stays in step 8 of one run and in the undo of step 7 of the other, with what they
 * have written uncommitted, until it may go on. None writes before both are there: what it locks
 * would stop the other one. */
static void hold(const char *run, int step, bool undoes, bool done)
{
    bool first = run[strlen(run) - 1] == '0';
    if (undoes == first || step != (first ? 8 : 7))
        return;
    saga_note(&stopped, run, "-", done ? "held" : "there");
    if (!done)
        UNTIL(saga_noted(&stopped, first ? "stop-1" : "stop-0", "-", "there"));
    while (done && access("hold", F_OK) == 0)
        usleep(1000);
    if (done)
        saga_note(&stopped, run, "-", "let-go");
}

static const char *node_of(const char *run, const char *step)
{
    char sql[300];
    snprintf(sql, sizeof sql,
             "SELECT s.node FROM pawl_step s JOIN pawl_id i ON i.seq = s.seq WHERE i.id = '%s' "
             "AND s.name = '%s'",
             run, step);
    return engine_rows(url, sql);
}

/* How many tries of steps and of undos have begun. */
static int begun_in_all(void)
{
    return saga_noted(&stopped, NULL, NULL, SAGA_BEGUN) +
           saga_noted(&stopped, NULL, NULL, SAGA_KNOWN);
}

/* What is held there is stored nowhere, and no step follows it there. The other node does it again,
 * and its results stand. */
TEST(a_node_stopped_inside_a_step_stores_nothing_more, .deadline_s = 120)
{
    if (engine_of(param)->kind == ENGINE_FILE)
        skip("a stopped process has SQLite's only write lock");
    begin(param);
    stopped = (struct saga_program){ .url = url,
                                     .prefix = "stop",
                                     .v = { { .end = SAGA_COMPLETES, .early = true },
                                            { .end = SAGA_DECLINED, .at = 10, .early = true } },
                                     .n = 2,
                                     .node = "n0",
                                     .slots = 2,
                                     .grace_us = MIN(2 * check_scale(), 4) * FIXTURE_SEC,
                                     .inside = hold };
    int status, fd = open("hold", O_WRONLY | O_CREAT, 0666);
    GE_INT(fd, 0);
    close(fd);
    pid_t first = saga_start(&stopped);
    UNTIL(saga_noted(&stopped, "stop-0", "-", "held") &&
          saga_noted(&stopped, "stop-1", "-", "held"));
    kill(first, SIGSTOP);
    EQ_INT(waitpid(first, &status, WUNTRACED), first);
    TRUE(WIFSTOPPED(status));
    struct saga_program other = stopped;
    other.node = "n1";
    other.inside = NULL;
    FALSE(saga_killed(saga_start(&other)));
    char *before = strdup(saga_rows(&stopped));
    int begun = begun_in_all();
    EQ_INT(saga_noted(&stopped, NULL, "-", "let-go"), 0);
    unlink("hold");
    kill(first, SIGCONT);
    FALSE(saga_killed(first));
    EQ_INT(saga_noted(&stopped, NULL, "-", "let-go"), 2);
    EQ_STR(saga_rows(&stopped), before);
    EQ_INT(begun_in_all(), begun);
    EQ_STR(node_of("stop-0", "tax"), "n0");
    EQ_STR(node_of("stop-0", "ring"), "n1");
    EQ_STR(node_of("stop-1", "undo:ring"), "n0");
    EQ_STR(node_of("stop-1", "undo:tax"), "n1");
    saga_check(&stopped, 1);
    free(before);
}

/* ---- The answer of a commit is lost ---------------------------------------------------------- */

/* One completes, one undoes everything. */
static struct saga_program two(const char *at, const char *prefix)
{
    return (struct saga_program){ .url = at,
                                  .prefix = prefix,
                                  .v = { { .end = SAGA_COMPLETES, .early = true },
                                         { .end = SAGA_DECLINED, .at = 10, .early = true } },
                                  .n = 2,
                                  .slots = 1,
                                  .beat_us = 5 * FIXTURE_SEC };
}

static struct {
    bool pg;
    enum proxy_cut how;
    int every; /* steps whose number is divisible by it, because each cut takes its time */
    bool cut[2][SAGA_STEPS + 1][2]; /* of which run, step, undo */
    atomic_bool held, over;
    int waited; /* commits that were let go because a transaction waited for them */
} wire;

/* Cut the next commit, once for each step and each undo that has SQL. */
static void cut_here(const char *run, int step, bool undoes, bool done)
{
    bool *cut = &wire.cut[run[strlen(run) - 1] - '0'][step][undoes];
    if (*cut || !done || !(saga_steps[step].sql || undoes) || step % wire.every)
        return;
    *cut = true;
    if (wire.pg)
        proxy_cut_commit(wire.how);
    else
        my_proxy_cut_commit(wire.how, 0);
    atomic_store(&wire.held, wire.how == PROXY_HOLD);
}

/* A commit that is held arrives when another transaction waits for what it has locked. */
static void *let_go(void *server)
{
    for (; !atomic_load(&wire.over); usleep(2000)) {
        if (!atomic_load(&wire.held) || !(wire.pg ? proxy_was_cut() : my_proxy_was_cut()))
            continue;
        UNTIL(db_waits(server));
        wire.waited++;
        atomic_store(&wire.held, false);
        if (wire.pg)
            proxy_let_go();
        else
            my_proxy_let_go();
    }
    return NULL;
}

/* How many of the steps whose commit was cut ran once more. */
static int ran_again(const struct saga_program *s, int *out_cut)
{
    int again = *out_cut = 0;
    for (int run = 0; run < 2; run++)
        for (int no = 1; no <= SAGA_STEPS; no++) {
            char id[40];
            snprintf(id, sizeof id, "%.30s-%d", s->prefix, run);
            *out_cut += wire.cut[run][no][0];
            again +=
                wire.cut[run][no][0] * (saga_noted(s, id, saga_steps[no].name, SAGA_BEGUN) - 1);
        }
    return again;
}

/* Every effect is there once in any case. A step whose result was stored does not run again, and a
 * pass that does not know it is over: the next one reads it. */
static void cut_all(const void *param, const char *at, enum proxy_cut how, int every)
{
    static const char *const names[] = {
        [PROXY_NEVER] = "never", [PROXY_AFTER] = "after", [PROXY_HOLD] = "held"
    };
    struct saga_program s = two(at, names[how]);
    pthread_t thread;
    int n, again;
    memset(&wire, 0, sizeof wire);
    wire.pg = strcmp(engine_of(param)->name, "postgres") == 0;
    wire.how = how;
    wire.every = every;
    s.inside = cut_here;
    EQ_INT(pthread_create(&thread, NULL, let_go, engine_of(param)->server), 0);
    saga_run(&s);
    atomic_store(&wire.over, true);
    pthread_join(thread, NULL);
    saga_check(&s, 0);
    again = ran_again(&s, &n);
    printf("%s: %d commits, %d steps ran again, %d commits were waited for\n", s.prefix, n, again,
           wire.waited);
    GE_INT(saga_noted(&s, NULL, "-", SAGA_PASS), n);
    if (how == PROXY_AFTER)
        EQ_INT(again, 0);
    /* A commit of something else may come before that of a step, and be cut in its place. */
    if (how == PROXY_NEVER)
        GT_INT(again, n / 2);
    if (how == PROXY_HOLD)
        GT_INT(wire.waited, 0);
}

/* SQLite has no wire: the process is killed when the commit is stored and its answer not told. */
static void killed_behind_commits(void)
{
    struct saga_program s = two(url, "lost");
    int kills = 0, undos = 0, transactions;
    s.crash = "ledger.handler_ran>ledger.after_commit:1";
    while (saga_killed(saga_start(&s)))
        LT_INT(++kills, 100);
    saga_check(&s, kills);
    for (int no = 1; no <= SAGA_STEPS; no++) {
        EQ_INT(saga_noted(&s, NULL, saga_steps[no].name, SAGA_BEGUN), 2);
        undos += saga_steps[no].undo;
    }
    /* Of each run the steps with SQL, a child and a call that a step has sent. */
    transactions = 2 * (8 + 1 + 1) + undos;
    EQ_INT(kills, transactions);
}

TEST(the_answer_of_a_commit_is_lost, .deadline_s = 120)
{
    begin(param);
    if (engine_of(param)->kind == ENGINE_FILE) {
        killed_behind_commits();
        return;
    }
    bool pg = strcmp(engine_of(param)->name, "postgres") == 0;
    const char *at = pg ? proxy_url(url) : my_proxy_url(url);
    cut_all(param, at, PROXY_AFTER, check_long() ? 1 : 2);
    cut_all(param, at, PROXY_NEVER, check_long() ? 1 : 3);
    cut_all(param, at, PROXY_HOLD, check_long() ? 2 : 8);
}
