/*
 * features.c - a process that uses a feature is killed at every crash point of its commits, and
 * started again: what the feature stored and what the calls say are one, and each counts once.
 *
 * The feature is the counter of the tests. The process runs operations that accept watched calls,
 * and ends the calls with a `with` each. Every attempt has a step before that, whose SQL commits
 * with an operation of the feature (handler_op.end). Some calls are put off for an hour by their
 * first attempt, and woken. The process begins from the front after every start. The case itself
 * passes no crash point before it starts a process, because the first one reads the environment.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "counter.h"

RUNS_ON(ENGINES_DURABLE)

enum { OPS = 4, CALLS_EACH = 3, POINTS_MAX = 40 };

static const char *url;

static struct store *handle(void)
{
    struct store *s = NULL;
    struct pawl_err err;
    struct store_conf conf = { .url = url,
                               .retention_us = 3600 * SEC_US,
                               .features = counter_features,
                               .n_features = COUNT_OF(counter_features) };
    OK(store_open(&conf, &s, &err), &err);
    return s;
}

static void commit(struct store *s, struct op *const *v, size_t n)
{
    bool busy = true;
    while (busy) { /* a killed process may still hold a row */
        busy = false;
        (void)store_commit(s, v, n);
        for (size_t i = 0; i < n; i++) {
            busy = busy || v[i]->status == PAWL_BUSY;
            if (v[i]->status != PAWL_BUSY)
                OK(v[i]->status, &v[i]->err);
        }
    }
}

/* ---- The process ----------------------------------------------------------------------------- */

static struct call_spec plan(struct arena *a, const char *id, bool brief)
{
    struct call_spec s;
    struct pawl_err err;
    call_spec_init(&s);
    s.id = bytes_of(id);
    s.type = BYTES("t");
    s.input = (struct payload){ PAWL_JSON, BYTES("1") };
    s.watch = WATCH_END;
    s.keep_us = brief ? 1 : 0;
    OK(call_spec_settle(a, &world_real, &s, &err), &err);
    return s;
}

/* Operation i counts, and accepts calls: one of them makes another one when it ends. */
static struct op *counting(struct arena *a, int i)
{
    struct call_spec *v = arena_zalloc(a, CALLS_EACH, sizeof *v);
    struct op *nested = arena_zalloc(a, 1, sizeof *nested), *op = arena_zalloc(a, 1, sizeof *op);
    struct counter_op *q = arena_zalloc(a, 1, sizeof *q);
    for (int k = 0; k < CALLS_EACH; k++)
        v[k] = plan(a, arena_printf(a, k ? "call-%d-%d" : "next:%d", i, k), k == 1);
    *nested = (struct op){ .kind = OP_ACCEPT, .a = a, .accept = { .v = v, .n = CALLS_EACH } };
    *q = (struct counter_op){ .id = bytes_of(arena_printf(a, "op-%d", i)),
                              .name = BYTES("ops"),
                              .by = 1,
                              .nested = nested,
                              .n_nested = 1 };
    *op = counter_count(q);
    op->a = a;
    return op;
}

static struct op *claiming(struct arena *a)
{
    struct op *op = arena_zalloc(a, 1, sizeof *op);
    /* Always the same token: what a killed process held is got back with it. */
    *op = (struct op){ .kind = OP_CLAIM,
                       .a = a,
                       .claim = { .token = { { 7 } },
                                  .node = BYTES("n"),
                                  .boot = BYTES("b"),
                                  .max = 2,
                                  .lease_us = 3600 * SEC_US } };
    return op;
}

/* The SQL of a step. Its table has no unique constraint. */
struct step_run {
    struct arena *a;
    const char *id;
};

static bool step_sql(void *ctx, struct sql_tx *tx)
{
    struct step_run *p = ctx;
    struct pawl_rows rows;
    struct pawl_err err;
    struct sql_query q = { .sql = arena_printf(p->a, "INSERT INTO app (id) VALUES ('%s')", p->id),
                           .deadline_us = INT64_MAX };
    enum pawl_status st = store_sql(tx, p->a, &q, &rows, &err);
    if (st != PAWL_BUSY)
        OK(st, &err);
    return st == PAWL_OK;
}

/* Returns whether the step was stored now, not by an earlier attempt. */
static bool step(struct store *s, struct arena *a, struct token token, const struct call *c)
{
    struct step_run p = { a, arena_printf(a, "step-%.*s", BYTES_ARG(c->spec.id)) };
    struct counter_op q = { .id = bytes_of(p.id), .name = BYTES("steps"), .by = 1 };
    struct op end = counter_fenced(&q, token, c->seq);
    struct op op = { .kind = OP_HANDLER,
                     .a = a,
                     .handler = { .run = step_sql, .ctx = &p, .end = &end } };
    struct op *v = &op;
    commit(s, &v, 1);
    TRUE(op.handler.committed_sql == !end.feature.repeated);
    return op.handler.committed_sql;
}

/* Is it one that its first attempt puts off? */
static bool sleeps(const struct call *c)
{
    return c->spec.id.len == strlen("call-0-2") && c->spec.id.data[c->spec.id.len - 1] == '2';
}

/* Wake those that sleep: this process, or one before it, put them off. */
static void wake_all(struct store *s, struct arena *a)
{
    struct bytes ids[OPS];
    int64_t seqs[OPS];
    struct pawl_err err;
    struct get g = { .ids = ids, .n = OPS };
    struct op op = { .kind = OP_WAKE, .a = a, .wake = { seqs, 0 } }, *v = &op;
    for (int i = 0; i < OPS; i++)
        ids[i] = bytes_of(arena_printf(a, "call-%d-2", i));
    OK(store_get(s, a, &g, &err), &err);
    for (int i = 0; i < OPS; i++)
        if (g.found[i] == PAWL_OK && g.out[i].state == PAWL_PENDING)
            seqs[op.wake.n++] = g.out[i].seq;
    if (op.wake.n)
        commit(s, &v, 1);
}

static struct op *finishing(struct store *s, struct arena *a, const struct claim *c)
{
    struct finish_item *v = arena_zalloc(a, c->n + 1, sizeof *v);
    struct feature_op *with = arena_zalloc(a, c->n + 1, sizeof *with);
    struct counter_op *q = arena_zalloc(a, c->n + 1, sizeof *q);
    struct op *op = arena_zalloc(a, 1, sizeof *op);
    for (size_t i = 0; i < c->n; i++) {
        bool first = step(s, a, c->token, &c->calls[i]);
        v[i] = (struct finish_item){ .seq = c->calls[i].seq };
        if (first && sleeps(&c->calls[i])) {
            v[i].how = END_LATER;
            v[i].retry_in_us = 3600 * SEC_US;
            continue;
        }
        q[i] = (struct counter_op){ .id = bytes_of(arena_printf(a, "end-%.*s",
                                                                BYTES_ARG(c->calls[i].spec.id))),
                                    .name = BYTES("ends"),
                                    .by = 1 };
        with[i] = (struct feature_op){ .of = &counter_feature, .ctx = &q[i] };
        v[i].how = END_RESULT;
        v[i].with = &with[i];
    }
    *op = (struct op){ .kind = OP_FINISH,
                       .a = a,
                       .finish = { .token = c->token, .v = v, .n = c->n } };
    return op;
}

static void work(void)
{
    AUTO(store_end) struct store *s = handle();
    struct arena a;
    struct op gc = { .kind = OP_GC, .a = &a, .gc.max = 3 }, *collect = &gc;
    arena_init(&a, 64 << 20);
    struct op *claim = claiming(&a);
    for (int i = 0; i < OPS || claim->claim.n; i++) {
        struct op *v[3];
        size_t n = 0;
        if (i < OPS)
            v[n++] = counting(&a, i);
        if (claim->claim.n)
            v[n++] = finishing(s, &a, &claim->claim);
        commit(s, v, n);
        wake_all(s, &a);
        claim = claiming(&a);
        commit(s, &claim, 1);
    }
    do
        commit(s, &collect, 1);
    while (gc.gc.more);
    arena_release(&a);
}

static void make(void)
{
    AUTO(store_end) struct store *s = handle();
    struct pawl_err err;
    OK(store_migrate(s, true, &err), &err);
    counter_tables(s, engine_of(url));
    struct arena a;
    arena_init(&a, 1 << 20);
    struct op op = { .kind = OP_SCRIPT,
                     .a = &a,
                     .script.sql = BYTES("CREATE TABLE app (id VARCHAR(100))") };
    struct op *v = &op;
    commit(s, &v, 1);
    arena_release(&a);
}

/* Run it in a process, with this crash or this log. Returns true when it was killed. */
static bool run(void (*what)(void), const char *crash, const char *log)
{
    int status;
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

static void count(void)
{
    enum { CALLS = OPS * CALLS_EACH, MORE = OPS, BRIEF = OPS };
    struct pawl_err err;
    struct counter_sums sums;
    AUTO(store_end) struct store *s = handle();
    OK(store_look(s, LOOK_SNAPSHOT, counter_look, &sums, &err), &err);
    EQ_INT(sums.counters, 3);
    EQ_INT(sums.ops, OPS + 2 * (CALLS + MORE));
    EQ_INT(sums.total, OPS + 2 * (CALLS + MORE));
    /* The SQL of each step took effect once. */
    EQ_INT(engine_int(url, "SELECT count(*) FROM app"), CALLS + MORE);
    EQ_INT(engine_int(url, "SELECT count(DISTINCT id) FROM app"), CALLS + MORE);
    EQ_INT(engine_int(url, "SELECT count(*) FROM app JOIN counter_op o ON o.id = app.id"),
           CALLS + MORE);
    EQ_INT(engine_int(url, "SELECT value FROM counter WHERE name = 'ops'"), OPS);
    EQ_INT(engine_int(url, "SELECT count(*) FROM pawl_outcome"), CALLS + MORE - BRIEF);
    EQ_INT(engine_int(url, "SELECT count(*) FROM pawl_call"), CALLS + MORE - BRIEF);
    EQ_INT(engine_int(url, "SELECT count(*) FROM pawl_lease"), 0);
    /* The end of each watched call that is still there was told of once, and no other. */
    EQ_INT(engine_int(url, "SELECT count(*) FROM counter_moved WHERE state <> 1"), CALLS - BRIEF);
    EQ_INT(engine_int(url, "SELECT count(DISTINCT m.seq) FROM counter_moved m JOIN pawl_call c "
                           "ON c.seq = m.seq WHERE m.state <> 1"),
           CALLS - BRIEF);
    /* So was that a call was put off; an attempt that was killed behind its step is the last. */
    EQ_INT(engine_int(url, "SELECT count(*) FROM counter_moved WHERE state = 1"),
           engine_int(url, "SELECT count(DISTINCT seq) FROM counter_moved WHERE state = 1"));
    EQ_INT(engine_int(url, "SELECT count(*) FROM counter_moved WHERE state = 1 "
                           "AND id NOT LIKE 'call-%-2'"),
           0);
}

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
    EQ_INT(engine_int(url, "SELECT count(*) FROM counter_moved WHERE state = 1"), OPS);
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

/* Passes are counted from the start, from the first step, and from the first wake. */
TEST(every_point_of_a_commit_with_features, .deadline_s = 300)
{
    static const char *const behind[] = { "", "ledger.handler_ran>", "ledger.woken>" };
    static const int passes[] = { 1, 3, 2, 6 };
    int met = 0, ran = 0;
    learn(param);
    TRUE(knows("ledger.features_loaded") && knows("ledger.moved_told") &&
         knows("ledger.features_forgot") && knows("ledger.before_commit") &&
         knows("ledger.handler_ran") && knows("ledger.woken"));
    for (int i = 0; i < n_points; i++)
        for (size_t b = 0; b < COUNT_OF(behind); b++)
            for (size_t k = 0; k < (check_long() ? COUNT_OF(passes) : b ? 1 : 2); k++) {
                char crash[200];
                snprintf(crash, sizeof crash, "%s%.127s:%d", behind[b], points[i], passes[k]);
                printf("%s\n", crash);
                fresh(param);
                met += run(work, crash, NULL);
                ran++;
                while (run(work, NULL, NULL))
                    ;
                count();
            }
    printf("%d points, killed in %d of %d runs\n", n_points, met, ran);
    GT_INT(met, n_points * 3);
}
