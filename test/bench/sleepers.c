/*
 * sleepers.c - runs that sleep: what 1,000,000 of them cost other calls, and how soon 10,000 that
 * are due at once have gone on.
 *
 * The runs are made by the store's own operations in large groups (accept, claim, and a step that
 * sleeps), and each answer is checked. "beside": two databases on each engine, one with the
 * sleepers and one without, alternating rounds; the sleepers are of the same queue and types as
 * what is measured: calls that are claimed by hand, calls of workers in the process, and calls of
 * `pawl serve`, a third each. "due": 10,000 runs sleep until one moment, while the workers of a
 * node that has never seen them wait for it; the time from that moment until each has stored its
 * next step.
 *
 * A private server with default settings for each engine, or files of SQLite in the working
 * directory. --quick (or PAWL_BENCH_QUICK): 20,000 sleepers, fewer rounds. --trace: instead, what
 * "due" costs on PostgreSQL: processor time, and which statements, from the server's log. Names of
 * engines, and `beside` or `due`: only these.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/world.h"
#include "bench/client.h"
#include "bench/load.h"
#include "bench/server.h"
#include "bench/table.h"
#include "db_server.h"
#include "feature/all.h"
#include "feature/workflow.h"
#include "pg_cost.h"
#include "store/store.h"

#define TYPE_HTTP "echo"
#define TYPE_DUE "due"
#define CONNS 64
/* Runs in one commit: a step each, the calls of the next ones, and their claim. */
#define MAKE 1000
#define DAY_US (86400 * SEC_US)
/* Changes below this count as none. */
#define GOAL_BESIDE 0.95
/* Seconds until the last of them has stored its next step. */
#define GOAL_DUE_S 3
#define DUE 10000
/* They are made, and the workers started, in this time before they are due. */
#define DUE_LEAD_US (15 * SEC_US)
#define DUE_STUCK_S 60

struct sizes {
    size_t rounds, http_rounds, due_rounds, sleepers, calls;
    double seconds;
};
static const struct sizes full = { 31, 15, 3, 1000000, 10000, 1.0 };
static const struct sizes quick = { 7, 3, 1, 20000, 4000, 0.5 };
_Static_assert(31 <= BENCH_ROUNDS_MAX, "the table keeps all rounds");

struct engine {
    const char *key, *name;
    struct db_server *server; /* NULL: SQLite */
    const char *tend[2];      /* what the server may do by itself at any moment, done now */
};
static const struct engine engines[] = {
    { "postgres", "PostgreSQL", &db_postgres, { "VACUUM ANALYZE", "CHECKPOINT" } },
    { "mariadb", "MariaDB", &db_mariadb, { NULL } },
    { "sqlite", "SQLite", NULL, { NULL } },
};

/* One database. */
struct base {
    char url[400];
    struct pawl *p;
    struct bench_server served;
};

struct bench {
    const struct sizes *size;
    const struct engine *e;
    struct base with, without;
    struct bench_table table;
};

static void row(struct bench *b, const char *name, const char *unit, const struct bench_rounds *r,
                enum bench_goal goal, double bound)
{
    char text[100];
    snprintf(text, sizeof text, "%s: %s", b->e->name, name);
    bench_table_row(&b->table, &(struct bench_row){ text, unit, r, goal, bound });
}

/* ---- Making sleepers ------------------------------------------------------------------------- */

static enum pawl_status handle_open(const char *url, struct store **out, struct pawl_err *err)
{
    size_t n = 0;
    const struct feature *const *features = features_all(&n);
    return store_open(&(struct store_conf){ .url = url,
                                            .role = STORE_WRITER,
                                            .retention_us = 7 * DAY_US,
                                            .remember_us = 30 * DAY_US,
                                            .key_pending_max = 100000,
                                            .features = features,
                                            .n_features = n },
                      out, err);
}

/* The operations of one commit: MAKE steps of the runs of the lease, then the calls of the next
 * runs, and their claim. */
struct making {
    struct store *s;
    const char *type;
    int64_t until_us;
    struct arena a[2]; /* of this commit, and of the one before, which has the claimed calls */
    struct op ops[MAKE + 2], *v[MAKE + 2];
    struct workflow_op says[MAKE];
    struct workflow_step steps[MAKE];
    struct call_spec specs[MAKE];
    struct bench_id ids[MAKE];
    struct claim lease; /* n 0: none is held */
    size_t n;
};

static void step_make(struct making *m, size_t i, struct arena *a)
{
    m->steps[i] = (struct workflow_step){ .no = 1,
                                          .name = BYTES("nap"),
                                          .kind = STEP_SLEEP,
                                          .says = SAYS_WAIT,
                                          .wait = { .has_until = true, .until_us = m->until_us } };
    m->says[i] =
        (struct workflow_op){ .what = WORKFLOW_STEPS,
                              .steps = { .v = &m->steps[i], .n = 1, .node = BYTES("maker") } };
    m->ops[m->n] = (struct op){ .kind = OP_FEATURE,
                                .a = a,
                                .feature = { .of = &feature_workflow,
                                             .ctx = &m->says[i],
                                             .token = m->lease.token,
                                             .seq = m->lease.calls[i].seq } };
    m->n++;
}

static enum pawl_status calls_make(struct making *m, size_t n, struct arena *a,
                                   struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    bench_ids_make(BENCH_IDS_ORDERED, m->ids, n);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct call_spec *s = &m->specs[i];
        call_spec_init(s);
        s->id = bytes_of(m->ids[i].text);
        s->type = bytes_of(m->type);
        s->input = (struct payload){ .form = PAWL_JSON, .bytes = { bench_input, bench_input_len } };
        st = call_spec_settle(a, &world_real, s, err);
    }
    m->ops[m->n++] = (struct op){ .kind = OP_ACCEPT, .a = a, .accept = { .v = m->specs, .n = n } };
    return st;
}

static void claim_make(struct making *m, size_t n, struct arena *a)
{
    static const struct bytes queue = { "default", 7 };
    static struct bytes type;
    type = bytes_of(m->type);
    m->ops[m->n++] = (struct op){ .kind = OP_CLAIM,
                                  .a = a,
                                  .claim = { .token = token_make(&world_real),
                                             .node = BYTES("maker"),
                                             .boot = BYTES("maker"),
                                             .queues = &queue,
                                             .n_queues = 1,
                                             .types = &type,
                                             .n_types = 1,
                                             .max = (int)n,
                                             .lease_us = 60 * SEC_US } };
}

/* Is every answer what was asked for? */
static enum pawl_status made(const struct making *m, enum pawl_status st, struct pawl_err *err)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct op *op = &m->ops[i];
        if (op->status != PAWL_OK) {
            *err = op->err;
            return op->status;
        }
        if (op->kind == OP_FEATURE && (!m->says[i].steps.suspended || op->feature.repeated ||
                                       m->says[i].steps.run_at_us != m->until_us))
            return err_set(err, PAWL_BROKEN, "a run that was to sleep does not");
        for (size_t k = 0; op->kind == OP_ACCEPT && k < op->accept.n; k++)
            if (op->accept.out[k].status != PAWL_OK || op->accept.out[k].duplicate)
                return err_set(err, PAWL_BROKEN, "a new call was not accepted as one");
    }
    return st == PAWL_OK ? PAWL_OK : err_set(err, st, "a commit had no answer");
}

/* The runs of the lease fall asleep; `n` others are accepted and claimed. */
static enum pawl_status make_group(struct making *m, size_t n, struct arena *a,
                                   struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    arena_reset(a);
    m->n = 0;
    for (size_t i = 0; i < m->lease.n; i++)
        step_make(m, i, a);
    if (n) {
        st = calls_make(m, n, a, err);
        claim_make(m, n, a);
    }
    for (size_t i = 0; i < m->n; i++)
        m->v[i] = &m->ops[i];
    if (st == PAWL_OK)
        st = made(m, store_commit(m->s, m->v, m->n), err);
    m->lease = n ? m->ops[m->n - 1].claim : (struct claim){ 0 };
    if (st == PAWL_OK && m->lease.n != n)
        st = err_set(err, PAWL_BROKEN, "%zu of %zu calls were claimed", m->lease.n, n);
    return st;
}

/* n runs of the type that sleep until then. No worker of the type may run meanwhile. */
static enum pawl_status sleepers_make(const char *url, const char *type, size_t n, int64_t until_us,
                                      struct pawl_err *err)
{
    struct making *m = calloc(1, sizeof *m);
    if (!m)
        return err_no_memory(err, "sleepers");
    m->type = type;
    m->until_us = until_us;
    arena_init(&m->a[0], (size_t)64 << 20);
    arena_init(&m->a[1], (size_t)64 << 20);
    enum pawl_status st = handle_open(url, &m->s, err);
    for (size_t at = 0, turn = 0; (at < n || m->lease.n) && st == PAWL_OK; turn = !turn) {
        size_t some = MIN((size_t)MAKE, n - at);
        st = make_group(m, some, &m->a[turn], err);
        at += some;
    }
    store_close(m->s);
    arena_release(&m->a[0]);
    arena_release(&m->a[1]);
    free(m);
    return st;
}

/* ---- Databases ------------------------------------------------------------------------------- */

static const char *const files[] = { "sleepers-with.db", "sleepers-without.db" };

static void files_remove(void)
{
    static const char *const endings[] = { "", "-wal", "-shm" };
    for (size_t i = 0; i < COUNT_OF(files) * COUNT_OF(endings); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", files[i / COUNT_OF(endings)],
                 endings[i % COUNT_OF(endings)]);
        unlink(name);
    }
}

static void base_name(struct base *d, const struct engine *e, const char *file)
{
    *d = (struct base){ .served.out = -1 };
    snprintf(d->url, sizeof d->url, "%s%s",
             e->server ? "" : "sqlite:", e->server ? db_database(e->server) : file);
}

static enum pawl_status base_open(struct base *d, struct pawl_err *err)
{
    return load_open(&(struct load_conf){ .url = d->url, .node = "bench" }, &d->p, err);
}

static void base_close(struct base *d)
{
    pawl_close(TAKE(d->p));
    bench_server_close(&d->served);
}

/* A third of each type, for a month. The library makes the tables. */
static enum pawl_status base_fill(struct bench *b, struct base *d, struct pawl_err *err)
{
    static const char *const types[] = { LOAD_TYPE_HAND, LOAD_TYPE_NOOP, TYPE_HTTP };
    int64_t until_us = world_now(&world_real) + 30 * DAY_US;
    size_t n = b->size->sleepers, third = n / COUNT_OF(types);
    struct bench_rounds took = { 0 };
    enum pawl_status st = base_open(d, err);
    base_close(d);
    double began = bench_clock();
    for (size_t i = 0; i < COUNT_OF(types) && st == PAWL_OK; i++)
        st = sleepers_make(d->url, types[i], i ? third : n - 2 * third, until_us, err);
    bench_rounds_add(&took, (double)n / (bench_clock() - began), 0);
    if (st == PAWL_OK)
        row(b, "sleepers made", "/s", &took, BENCH_NO_GOAL, 0);
    return st;
}

/* ---- Beside sleepers ------------------------------------------------------------------------- */

typedef enum pawl_status shape(struct bench *b, struct base *d, double *out, struct pawl_err *err);

static enum pawl_status submit(struct bench *b, struct base *d, double *out, struct pawl_err *err)
{
    struct load_batch batch = { .type = LOAD_TYPE_HAND, .n = b->size->calls, .batch = 1000 };
    return load_submit(d->p, &batch, out, err);
}

/* The calls that submit() left. */
static enum pawl_status drain(struct bench *b, struct base *d, double *out, struct pawl_err *err)
{
    return load_drain(d->p, b->size->calls, 1000, out, err);
}

static enum pawl_status wait_64(struct bench *b, struct base *d, double *out, struct pawl_err *err)
{
    struct load_waited w;
    enum pawl_status st =
        load_wait(d->p, &(struct load_wait){ .threads = 64, .seconds = b->size->seconds }, &w, err);
    *out = w.per_s;
    return st;
}

static enum pawl_status http_64(struct bench *b, struct base *d, double *out, struct pawl_err *err)
{
    struct bench_hit hit = { 0 };
    enum pawl_status st = bench_client_hit(&(struct bench_hits){ .port = d->served.port,
                                                                 .conns = CONNS,
                                                                 .seconds = b->size->seconds,
                                                                 .type = TYPE_HTTP },
                                           &hit, err);
    *out = hit.per_s;
    return st;
}

struct question {
    const char *name;
    shape *ask;
};
static const struct question in_process[] = {
    { "submit 1,000", submit },
    { "claim 1,000 + finish 1,000", drain },
    { "64 threads, submit one and wait", wait_64 },
};
static const struct question over_http[] = { { "HTTP, 64 connections", http_64 } };

/* Every question on both databases, alternating; then its rows. */
static enum pawl_status ask_all(struct bench *b, const struct question *v, size_t n, size_t rounds,
                                struct pawl_err *err)
{
    struct bench_rounds r[4] = { 0 };
    enum pawl_status st = PAWL_OK;
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < n && st == PAWL_OK; i++) {
            double with = 0, without = 0;
            bool first = round % 2;
            st = v[i].ask(b, first ? &b->with : &b->without, first ? &with : &without, err);
            if (st == PAWL_OK)
                st = v[i].ask(b, first ? &b->without : &b->with, first ? &without : &with, err);
            bench_rounds_add(&r[i], with, without);
        }
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        row(b, v[i].name, "/s", &r[i], BENCH_RATIO_MIN, GOAL_BESIDE);
    return st;
}

static enum pawl_status beside_in_process(struct bench *b, struct pawl_err *err)
{
    struct base *const bases[] = { &b->with, &b->without };
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < COUNT_OF(bases) && st == PAWL_OK; i++) {
        double ignored;
        st = base_open(bases[i], err);
        if (st == PAWL_OK)
            st = load_start(bases[i]->p, err);
        if (st == PAWL_OK) /* statements are prepared */
            st = submit(b, bases[i], &ignored, err);
        if (st == PAWL_OK)
            st = drain(b, bases[i], &ignored, err);
    }
    if (st == PAWL_OK)
        st = ask_all(b, in_process, COUNT_OF(in_process), b->size->rounds, err);
    for (size_t i = 0; i < COUNT_OF(bases); i++)
        base_close(bases[i]);
    return st;
}

/* A database has one server that is measured. */
static enum pawl_status beside_over_http(struct bench *b, struct pawl_err *err)
{
    struct bench_server_conf conf = { .program = PAWL_BUILD_DIR "/pawl",
                                      .echo = PAWL_BUILD_DIR "/samples/echo.so",
                                      .wallet = PAWL_BUILD_DIR "/samples/wallet.so" };
    struct base *const bases[] = { &b->with, &b->without };
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < COUNT_OF(bases) && st == PAWL_OK; i++) {
        conf.db = bases[i]->url;
        st = bench_server_open(&bases[i]->served, &conf, err);
    }
    if (st == PAWL_OK)
        st = ask_all(b, over_http, COUNT_OF(over_http), b->size->http_rounds, err);
    for (size_t i = 0; i < COUNT_OF(bases); i++)
        base_close(bases[i]);
    return st;
}

static enum pawl_status beside(struct bench *b, struct pawl_err *err)
{
    base_name(&b->with, b->e, files[0]);
    enum pawl_status st = base_fill(b, &b->with, err);
    for (size_t i = 0; i < COUNT_OF(b->e->tend) && st == PAWL_OK; i++)
        if (b->e->tend[i])
            db_ask(b->e->server, b->e->tend[i]);
    base_name(&b->without, b->e, files[1]);
    if (st == PAWL_OK)
        st = base_open(&b->without, err);
    base_close(&b->without);
    if (st == PAWL_OK)
        st = beside_in_process(b, err);
    return st == PAWL_OK ? beside_over_http(b, err) : st;
}

/* ---- Due at once ----------------------------------------------------------------------------- */

/* Static, because a handler gets no argument from its program. */
static struct {
    int64_t at_us;
    double ms[DUE]; /* from then until each has stored its next step */
    atomic_size_t n;
} due;

static int nothing(struct pawl_call *c, void *arg)
{
    (void)arg;
    return pawl_reply_int(c, 1);
}

static int due_run(struct pawl_call *c)
{
    if (pawl_step_until(c, "nap", due.at_us) ||
        pawl_step(c, &(struct pawl_step){ PAWL_STEP_INIT, .name = "next", .run = nothing }, NULL))
        return 0;
    double ms = (double)(world_now(&world_real) - due.at_us) / MS_US;
    size_t i = atomic_fetch_add(&due.n, 1);
    if (i < DUE)
        due.ms[i] = ms;
    return 0;
}

struct due_rounds {
    struct bench_rounds last, p99, rate;
};

/* Until so many have gone on, or completed. */
static enum pawl_status due_await(struct pawl *p, size_t *out_n, struct pawl_err *err)
{
    struct pawl_stats stats = { PAWL_STATS_INIT };
    double until = bench_clock() + DUE_STUCK_S;
    do {
        usleep(5000);
        pawl_stats(p, &stats);
    } while (stats.completed < DUE && bench_clock() < until);
    *out_n = MIN(atomic_load(&due.n), (size_t)DUE);
    return stats.completed >= DUE ? PAWL_OK
                                  : err_set(err, PAWL_BUSY, "%lld of %d runs have ended in %d s",
                                            (long long)stats.completed, DUE, DUE_STUCK_S);
}

/* Each round has workers that have not seen the runs before. */
static enum pawl_status due_round(struct base *d, int slots, struct due_rounds *r,
                                  struct pawl_err *err)
{
    struct pawl_workers w = { PAWL_WORKERS_INIT, .slots = slots };
    AUTO(load_end) struct pawl *p = NULL;
    size_t n = 0;
    due.at_us = world_now(&world_real) + DUE_LEAD_US;
    atomic_store(&due.n, 0);
    enum pawl_status st = sleepers_make(d->url, TYPE_DUE, DUE, due.at_us, err);
    if (st == PAWL_OK)
        st = load_open(&(struct load_conf){ .url = d->url, .node = "bench" }, &p, err);
    if (st == PAWL_OK)
        st = pawl_on(pawl_program(p), TYPE_DUE, "run", due_run);
    if (st == PAWL_OK)
        st = pawl_start(p, &w, err);
    int64_t left_us = due.at_us - world_now(&world_real);
    if (st == PAWL_OK && left_us < SEC_US)
        st = err_set(err, PAWL_BUSY, "the runs were due before all of them slept");
    if (st != PAWL_OK)
        return st;
    usleep((unsigned)left_us);
    st = due_await(p, &n, err);
    if (st != PAWL_OK)
        return st;
    bench_rounds_add(&r->p99, bench_quantile(due.ms, n, 0.99), 0);
    bench_rounds_add(&r->last, due.ms[n - 1] / 1e3, 0); /* they are sorted */
    bench_rounds_add(&r->rate, (double)n / (due.ms[n - 1] / 1e3), 0);
    return PAWL_OK;
}

static enum pawl_status due_with(struct bench *b, int slots, struct pawl_err *err)
{
    struct due_rounds r = { 0 };
    char name[80];
    base_name(&b->with, b->e, files[0]);
    enum pawl_status st = base_open(&b->with, err);
    base_close(&b->with);
    for (size_t i = 0; i < b->size->due_rounds && st == PAWL_OK; i++)
        st = due_round(&b->with, slots, &r, err);
    if (st != PAWL_OK)
        return st;
    snprintf(name, sizeof name, "%d due at once, %d slots, the last", DUE, slots);
    row(b, name, "s", &r.last, BENCH_FIGURE_MAX, GOAL_DUE_S);
    row(b, "  p99", "ms", &r.p99, BENCH_NO_GOAL, 0);
    row(b, "  rate", "/s", &r.rate, BENCH_NO_GOAL, 0);
    return PAWL_OK;
}

/* With the slots of the default settings, and with more. */
static enum pawl_status due_all(struct bench *b, struct pawl_err *err)
{
    enum pawl_status st = due_with(b, 16, err);
    files_remove();
    return st == PAWL_OK ? due_with(b, 64, err) : st;
}

static double own_cpu(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* What it costs on PostgreSQL: processor time, and which statements, from the server's log. With
 * how the runs are made, in both. */
static enum pawl_status due_trace(struct pawl_err *err)
{
    struct base d = { .served.out = -1 };
    struct due_rounds r = { 0 };
    struct pg_cost from, to;
    struct pg_log log;
    struct pg_counts t;
    if (!db_there(&db_postgres))
        return err_set(err, PAWL_BUSY, "there is no PostgreSQL to start");
    db_start_own(&db_postgres);
    snprintf(d.url, sizeof d.url, "%s", db_database(&db_postgres));
    enum pawl_status st = base_open(&d, err);
    base_close(&d);
    if (st == PAWL_OK)
        st = due_round(&d, 16, &r, err);
    if (st == PAWL_OK && !pg_cost_read(d.url, &from))
        st = err_set(err, PAWL_BUSY, "the costs of the server cannot be read");
    double own = own_cpu();
    if (st == PAWL_OK)
        st = due_round(&d, 16, &r, err);
    own = own_cpu() - own;
    if (st != PAWL_OK || !pg_cost_read(d.url, &to))
        return st;
    printf("%d runs made, due, gone on in %.2f s, and ended: a run needs %.1f us of the database, "
           "%.1f us of the program, %.0f bytes of log\n",
           DUE, r.last.figure[1], (to.cpu_s - from.cpu_s) / DUE * 1e6, own / DUE * 1e6,
           (double)(to.wal - from.wal) / DUE);
    pg_log_begin(&log, d.url);
    snprintf(d.url, sizeof d.url, "%s", log.url);
    pg_log_skip(&log);
    st = due_round(&d, 16, &r, err);
    pg_log_count(&log, &t);
    for (size_t i = 0; i < t.n; i++)
        if (t.v[i].n > 20)
            printf("    %-40.40s %6zu times %8.3f ms each\n", t.v[i].name, t.v[i].n,
                   t.v[i].ms / (double)t.v[i].n);
    return st;
}

/* ---- The program ----------------------------------------------------------------------------- */

static const struct {
    const char *key;
    enum pawl_status (*run)(struct bench *b, struct pawl_err *err);
} parts[] = { { "due", due_all }, { "beside", beside } };

static bool is_part(const char *word)
{
    bool is = false;
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        is = is || strcmp(word, parts[i].key) == 0;
    return is;
}

/* Is this word among the arguments, or no word of its sort? */
static bool asked(const char *word, int argc, char **argv)
{
    bool any = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], word) == 0)
            return true;
        any = any || (*argv[i] != '-' && is_part(argv[i]) == is_part(word));
    }
    return !any;
}

static int engine_run(struct bench *b, int argc, char **argv)
{
    int code = 0;
    if (b->e->server && !db_there(b->e->server)) {
        printf("%s: not measured, there is no server to start\n", b->e->name);
        return 0;
    }
    if (b->e->server)
        db_start_own(b->e->server);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        struct pawl_err err = { 0 };
        if (!asked(parts[i].key, argc, argv))
            continue;
        files_remove();
        if (parts[i].run(b, &err) != PAWL_OK) {
            fprintf(stderr, "bench sleepers: %s, %s: %s\n", b->e->name, parts[i].key, err.text);
            code = 1;
        }
        files_remove();
    }
    return code;
}

int main(int argc, char **argv)
{
    const char *env = getenv("PAWL_BENCH_QUICK");
    bool is_quick = env && *env;
    int code = 0;
    for (int i = 1; i < argc; i++)
        is_quick = is_quick || strcmp(argv[i], "--quick") == 0;
    if (argc > 1 && strcmp(argv[1], "--trace") == 0) {
        struct pawl_err err = { 0 };
        if (due_trace(&err) == PAWL_OK)
            return 0;
        fprintf(stderr, "bench sleepers: %s\n", err.text);
        return 1;
    }
    struct bench b = { .size = is_quick ? &quick : &full, .table = { .out = stdout } };
    char title[128];
    snprintf(title, sizeof title, "runs that sleep; beside: %zu of them, and none",
             b.size->sleepers);
    bench_table_begin(&b.table, title);
    for (size_t i = 0; i < COUNT_OF(engines); i++) {
        b.e = &engines[i];
        if (asked(b.e->key, argc, argv))
            code |= engine_run(&b, argc, argv);
    }
    bench_table_end(&b.table);
    return code;
}
