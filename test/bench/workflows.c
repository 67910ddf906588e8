/*
 * workflows.c - what workflows cost: steps one after another, long loops, many children.
 *
 * Callers that each start a workflow and wait for its end: ten steps that do nothing, each stored
 * before the next begins, and one such step. 64 callers and 64 slots on servers, 16 of both on
 * SQLite, and 64 callers with the 16 slots of the default settings. A loop of steps and one of
 * sleeps under one name: the bytes that their statements return, a step, at 1,000 beside 100; a run
 * that read its steps again at each would read ten times as much. The children of one run on four
 * handles, as four processes have them, joined.
 *
 * A private server with default settings for each engine, or a file of SQLite in the working
 * directory. --quick (or PAWL_BENCH_QUICK): shorter. --trace: instead, what a workflow costs on
 * PostgreSQL: processor time, and which statements, from the server's log. Names of engines, and of
 * rows (steps, loops, children): only these.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <dlfcn.h>
#include <libpq-fe.h>
#include <mysql.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/macros.h"
#include "base/world.h"
#include "bench/load.h"
#include "bench/table.h"
#include "db_server.h"
#include "pg_cost.h"

enum { NODES = 4, LOOP_SHORT = 100, LOOP_LONG = 1000 };
/* All that a run may have besides the step that joins them. */
#define CHILDREN_ALL 9999
#define SQLITE_FILE "workflows.db"
/* Steps a second, on SQLite with 16 slots. */
#define GOAL_STEPS 5000
/* Bytes a step in a long loop beside a short one. */
#define GOAL_GROWTH 2

struct sizes {
    size_t rounds, children;
    double seconds;
};
static const struct sizes full = { 5, CHILDREN_ALL, 5 }, quick = { 3, 1000, 1 };

struct engine {
    const char *key, *name;
    struct db_server *server; /* NULL: SQLite */
    size_t slots;
};
static const struct engine engines[] = {
    { "postgres", "PostgreSQL", &db_postgres, 64 },
    { "mariadb", "MariaDB", &db_mariadb, 64 },
    { "sqlite", "SQLite", NULL, 16 },
};

struct bench {
    const struct sizes *size;
    const struct engine *e;
    struct bench_table table;
};

/* ---- Databases ------------------------------------------------------------------------------- */

static void files_remove(void)
{
    unlink(SQLITE_FILE);
    unlink(SQLITE_FILE "-wal");
    unlink(SQLITE_FILE "-shm");
}

/* A new database. */
static const char *database(const struct engine *e)
{
    if (e->server)
        return db_database(e->server);
    files_remove();
    return "sqlite:" SQLITE_FILE;
}

static void row(struct bench *b, const char *name, const char *unit, const struct bench_rounds *r,
                enum bench_goal goal, double bound)
{
    char text[100];
    snprintf(text, sizeof text, "%s: %s", b->e->name, name);
    bench_table_row(&b->table, &(struct bench_row){ text, unit, r, goal, bound });
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* One kind of workflow, with so many callers. */
struct kind {
    const char *name, *type;
    double steps;
};
static const struct kind kinds[] = { { "steps/s of 10-step workflows", LOAD_TYPE_FLOW10, 10 },
                                     { "1-step workflows", LOAD_TYPE_FLOW1, 1 } };

struct rates {
    struct bench_rounds per_s[COUNT_OF(kinds)], p50[COUNT_OF(kinds)];
};

static enum pawl_status steps_round(struct bench *b, struct pawl *p, size_t callers,
                                    struct rates *r, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < COUNT_OF(kinds) && st == PAWL_OK; i++) {
        struct load_waited w;
        st = load_wait(p,
                       &(struct load_wait){
                           .type = kinds[i].type, .threads = callers, .seconds = b->size->seconds },
                       &w, err);
        if (st != PAWL_OK)
            break;
        bench_rounds_add(&r->per_s[i], w.per_s * kinds[i].steps, 0);
        bench_rounds_add(&r->p50[i], w.p50_us / 1e3, 0);
    }
    return st;
}

static enum pawl_status steps_with(struct bench *b, size_t callers, size_t slots,
                                   struct pawl_err *err)
{
    AUTO(load_end) struct pawl *p = NULL;
    struct rates warm = { 0 }, r = { 0 };
    char name[80];
    enum pawl_status st =
        load_open(&(struct load_conf){ .url = database(b->e), .node = "bench" }, &p, err);
    if (st == PAWL_OK)
        st = load_start_flows(p, (int)slots, err);
    if (st == PAWL_OK)
        st = steps_round(b, p, callers, &warm, err);
    for (size_t i = 0; i < b->size->rounds && st == PAWL_OK; i++)
        st = steps_round(b, p, callers, &r, err);
    bool goal = !b->e->server && slots == 16 && callers == 16;
    for (size_t i = 0; i < COUNT_OF(kinds) && st == PAWL_OK; i++) {
        snprintf(name, sizeof name, "%s, %zu callers, %zu slots", kinds[i].name, callers, slots);
        row(b, name, "/s", &r.per_s[i], goal && i == 0 ? BENCH_FIGURE_MIN : BENCH_NO_GOAL,
            GOAL_STEPS);
        row(b, "  p50 of a workflow", "ms", &r.p50[i], BENCH_NO_GOAL, 0);
    }
    return st;
}

static enum pawl_status steps(struct bench *b, struct pawl_err *err)
{
    enum pawl_status st = steps_with(b, b->e->slots, b->e->slots, err);
    return st == PAWL_OK ? steps_with(b, 64, 16, err) : st;
}

/* ---- Loops ----------------------------------------------------------------------------------- */

/* The bytes in the rows that statements return to this process, counted where the client libraries
 * hand them over: these definitions come before those of the libraries. */
static atomic_llong bytes_read;
static atomic_bool counting;

static void real_function(const char *name, void *out, size_t size)
{
    void *at = dlsym(RTLD_NEXT, name);
    if (!at)
        abort();
    memcpy(out, &at, size);
}

int sqlite3_step(sqlite3_stmt *q)
{
    static int (*real)(sqlite3_stmt *);
    if (!real)
        real_function("sqlite3_step", &real, sizeof real);
    int rc = real(q);
    long long n = 0;
    if (rc != SQLITE_ROW || !atomic_load(&counting))
        return rc;
    for (int i = 0; i < sqlite3_column_count(q); i++) {
        int type = sqlite3_column_type(q, i);
        bool text = type == SQLITE_TEXT || type == SQLITE_BLOB;
        n += text ? sqlite3_column_bytes(q, i) : type == SQLITE_NULL ? 0 : (int)sizeof(int64_t);
    }
    atomic_fetch_add(&bytes_read, n);
    return rc;
}

PGresult *PQgetResult(PGconn *db)
{
    static PGresult *(*real)(PGconn *);
    if (!real)
        real_function("PQgetResult", &real, sizeof real);
    PGresult *r = real(db);
    long long n = 0;
    for (int i = 0; atomic_load(&counting) && r && i < PQntuples(r); i++)
        for (int k = 0; k < PQnfields(r); k++)
            n += PQgetlength(r, i, k);
    atomic_fetch_add(&bytes_read, n);
    return r;
}

MYSQL_ROW STDCALL mysql_fetch_row(MYSQL_RES *res)
{
    static MYSQL_ROW(STDCALL * real)(MYSQL_RES *);
    if (!real)
        real_function("mysql_fetch_row", &real, sizeof real);
    MYSQL_ROW v = real(res);
    const unsigned long *lengths = v && atomic_load(&counting) ? mysql_fetch_lengths(res) : NULL;
    long long n = 0;
    for (unsigned i = 0; lengths && i < mysql_num_fields(res); i++)
        n += (long long)lengths[i];
    atomic_fetch_add(&bytes_read, n);
    return v;
}

/* Static, because a handler gets no argument from its program. */
static atomic_int loop_n;

static int nothing(struct pawl_call *c, void *arg)
{
    (void)arg;
    return pawl_reply_int(c, 1);
}

static int loop_steps(struct pawl_call *c)
{
    for (int i = 0; i < atomic_load(&loop_n); i++)
        if (pawl_step(c, &(struct pawl_step){ PAWL_STEP_INIT, .name = "again", .run = nothing },
                      NULL))
            return 0;
    return 0;
}

static int loop_sleeps(struct pawl_call *c)
{
    for (int i = 0; i < atomic_load(&loop_n); i++)
        if (pawl_step_sleep(c, "again", MS_US))
            return 0;
    return 0;
}

/* One run of the type, to its end. */
static enum pawl_status one(struct pawl *p, const char *type, double *out_s, struct pawl_err *err)
{
    struct pawl_shown *shown = NULL;
    struct pawl_spec spec = { PAWL_SPEC_INIT, .type = type, .timeout_us = 300 * SEC_US };
    double began = bench_clock();
    enum pawl_status st = pawl_submit_wait(p, &spec, 300 * SEC_US, &shown, err);
    *out_s = bench_clock() - began;
    if (st == PAWL_OK && pawl_shown_view(shown)->state != PAWL_COMPLETED)
        st = err_set(err, PAWL_BUSY, "a run of \"%s\" is %s after %.0f s", type,
                     pawl_state_name(pawl_shown_view(shown)->state), *out_s);
    pawl_shown_free(shown);
    return st;
}

/* A loop of so many; bytes and microseconds a step. */
struct loop {
    double bytes, us;
};

static enum pawl_status loop_of(struct pawl *p, const char *type, int n, struct loop *out,
                                struct pawl_err *err)
{
    double took;
    atomic_store(&loop_n, n);
    long long before = atomic_load(&bytes_read);
    enum pawl_status st = one(p, type, &took, err);
    out->bytes = (double)(atomic_load(&bytes_read) - before) / n;
    out->us = took * 1e6 / n;
    return st;
}

static enum pawl_status loop_rows(struct bench *b, struct pawl *p, const char *type,
                                  const char *name, struct pawl_err *err)
{
    struct bench_rounds bytes = { 0 }, us = { 0 };
    char text[80];
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < b->size->rounds && st == PAWL_OK; i++) {
        struct loop small = { 0 }, large = { 0 };
        st = loop_of(p, type, LOOP_SHORT, &small, err);
        if (st == PAWL_OK)
            st = loop_of(p, type, LOOP_LONG, &large, err);
        bench_rounds_add(&bytes, large.bytes, small.bytes);
        bench_rounds_add(&us, large.us, small.us);
    }
    if (st != PAWL_OK)
        return st;
    snprintf(text, sizeof text, "%d %s: bytes read each (of %d)", LOOP_LONG, name, LOOP_SHORT);
    row(b, text, "B", &bytes, BENCH_RATIO_MAX, GOAL_GROWTH);
    row(b, "  time each", "us", &us, BENCH_NO_GOAL, 0);
    return PAWL_OK;
}

static enum pawl_status loops(struct bench *b, struct pawl_err *err)
{
    AUTO(load_end) struct pawl *p = NULL;
    enum pawl_status st =
        load_open(&(struct load_conf){ .url = database(b->e), .node = "bench" }, &p, err);
    atomic_store(&counting, true);
    if (st == PAWL_OK)
        st = pawl_on(pawl_program(p), "steps", "run", loop_steps);
    if (st == PAWL_OK)
        st = pawl_on(pawl_program(p), "sleeps", "run", loop_sleeps);
    if (st == PAWL_OK)
        st = load_start(p, err);
    if (st == PAWL_OK)
        st = loop_rows(b, p, "steps", "steps of one name", err);
    if (st == PAWL_OK)
        st = loop_rows(b, p, "sleeps", "sleeps of 1 ms", err);
    atomic_store(&counting, false);
    return st;
}

/* ---- Children -------------------------------------------------------------------------------- */

static atomic_int children_n, children_ran;
static _Atomic double children_made; /* when the last one was stored */

static int child(struct pawl_call *c)
{
    (void)c;
    atomic_fetch_add(&children_ran, 1);
    return 0;
}

static int parent(struct pawl_call *c)
{
    static const char *ids[CHILDREN_ALL];
    int n = atomic_load(&children_n);
    for (int i = 0; i < n; i++)
        if (pawl_step_child(c, "child", &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "child" },
                            &ids[i]))
            return 0;
    if (!atomic_load(&children_made))
        atomic_store(&children_made, bench_clock());
    if (pawl_step_join(c, PAWL_ALL, ids, (size_t)n, 0))
        return 0;
    return pawl_reply_int(c, n);
}

static enum pawl_status node_open(const char *url, int i, struct pawl **out, struct pawl_err *err)
{
    char name[16];
    snprintf(name, sizeof name, "node-%d", i + 1);
    enum pawl_status st = load_open(&(struct load_conf){ .url = url, .node = name }, out, err);
    if (st == PAWL_OK)
        st = pawl_on(pawl_program(*out), "parent", "run", parent);
    if (st == PAWL_OK)
        st = pawl_on(pawl_program(*out), "child", "run", child);
    return st == PAWL_OK ? load_start(*out, err) : st;
}

static enum pawl_status children(struct bench *b, struct pawl_err *err)
{
    struct pawl *p[NODES] = { NULL };
    struct bench_rounds took = { 0 }, made = { 0 };
    char name[80];
    const char *url = database(b->e);
    int n = (int)b->size->children;
    enum pawl_status st = PAWL_OK;
    for (int i = 0; i < NODES && st == PAWL_OK; i++)
        st = node_open(url, i, &p[i], err);
    for (size_t i = 0; i < b->size->rounds && st == PAWL_OK; i++) {
        double s = 0, began = bench_clock();
        atomic_store(&children_n, n);
        atomic_store(&children_ran, 0);
        atomic_store(&children_made, 0);
        st = one(p[0], "parent", &s, err);
        if (st == PAWL_OK && atomic_load(&children_ran) != n)
            st = err_set(err, PAWL_BROKEN, "%d of %d children ran", atomic_load(&children_ran), n);
        bench_rounds_add(&took, s, 0);
        bench_rounds_add(&made, atomic_load(&children_made) - began, 0);
    }
    for (int i = 0; i < NODES; i++)
        pawl_close(p[i]);
    if (st != PAWL_OK)
        return st;
    snprintf(name, sizeof name, "%d children over %d nodes, joined", n, NODES);
    row(b, name, "s", &took, BENCH_NO_GOAL, 0);
    row(b, "  until all were submitted", "s", &made, BENCH_NO_GOAL, 0);
    return PAWL_OK;
}

/* ---- The trace ------------------------------------------------------------------------------- */

static enum pawl_status trace_with(const struct kind *k, size_t callers, struct pawl_err *err)
{
    AUTO(load_end) struct pawl *p = NULL;
    struct pg_log log;
    struct pg_counts t;
    struct pawl_stats before = { PAWL_STATS_INIT }, after = { PAWL_STATS_INIT };
    struct load_wait q = { .type = k->type, .threads = callers, .seconds = 2 };
    struct load_waited w;
    pg_log_begin(&log, db_database(&db_postgres));
    enum pawl_status st =
        load_open(&(struct load_conf){ .url = log.url, .node = "bench" }, &p, err);
    if (st == PAWL_OK)
        st = load_start_flows(p, 64, err);
    if (st == PAWL_OK)
        st = load_wait(p, &q, &w, err);
    if (st != PAWL_OK)
        return st;
    pg_log_skip(&log);
    pawl_stats(p, &before);
    st = load_wait(p, &q, &w, err);
    pawl_stats(p, &after);
    pg_log_count(&log, &t);
    double n = (double)(after.completed - before.completed);
    double commits = (double)(after.commits - before.commits);
    printf("%s, %zu callers: %.0f/s with the log on; of a workflow: %.2f commits, %.1f statements, "
           "%.2f ms in them; a commit: %.1f statements, %.2f ms\n",
           k->name, callers, w.per_s * k->steps, commits / n, (double)t.all_n / n, t.all_ms / n,
           (double)t.all_n / commits, t.all_ms / commits);
    for (size_t i = 0; i < t.n; i++)
        if ((double)t.v[i].n > n / 100)
            printf("    %-40.40s %8.2f a workflow %8.2f a commit %8.3f ms each\n", t.v[i].name,
                   (double)t.v[i].n / n, (double)t.v[i].n / commits, t.v[i].ms / (double)t.v[i].n);
    return st;
}

static double own_cpu(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Processor time and log bytes of a workflow: other load on the machine disturbs them less than
 * rates. */
static enum pawl_status trace_cost(const struct kind *k, struct pawl_err *err)
{
    AUTO(load_end) struct pawl *p = NULL;
    struct pg_cost from, to;
    struct pawl_stats before = { PAWL_STATS_INIT }, after = { PAWL_STATS_INIT };
    struct load_wait q = { .type = k->type, .threads = 64, .seconds = 3 };
    struct load_waited w;
    const char *url = db_database(&db_postgres);
    enum pawl_status st = load_open(&(struct load_conf){ .url = url, .node = "bench" }, &p, err);
    if (st == PAWL_OK)
        st = load_start_flows(p, 64, err);
    if (st == PAWL_OK)
        st = load_wait(p, &q, &w, err);
    if (st == PAWL_OK && !pg_cost_read(url, &from))
        st = err_set(err, PAWL_BUSY, "the costs of the server cannot be read");
    pawl_stats(p, &before);
    double own = own_cpu();
    if (st == PAWL_OK)
        st = load_wait(p, &q, &w, err);
    own = own_cpu() - own;
    pawl_stats(p, &after);
    if (st != PAWL_OK || !pg_cost_read(url, &to))
        return st;
    double n = (double)(after.completed - before.completed);
    printf("%s: %.0f/s; of a workflow: %.1f us of the database, %.1f us of the program, %.0f bytes "
           "of log, %.3f commits\n",
           k->name, w.per_s * k->steps, (to.cpu_s - from.cpu_s) / n * 1e6, own / n * 1e6,
           (double)(to.wal - from.wal) / n, (double)(after.commits - before.commits) / n);
    return st;
}

static enum pawl_status trace(struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    if (!db_there(&db_postgres))
        return err_set(err, PAWL_BUSY, "there is no PostgreSQL to start");
    db_start_own(&db_postgres);
    for (size_t i = 0; i < COUNT_OF(kinds) && st == PAWL_OK; i++)
        st = trace_cost(&kinds[i], err);
    for (size_t i = 0; i < COUNT_OF(kinds) && st == PAWL_OK; i++)
        st = trace_with(&kinds[i], 1, err);
    for (size_t i = 0; i < COUNT_OF(kinds) && st == PAWL_OK; i++)
        st = trace_with(&kinds[i], 64, err);
    return st;
}

/* ---- The program ----------------------------------------------------------------------------- */

static const struct {
    const char *key;
    enum pawl_status (*run)(struct bench *b, struct pawl_err *err);
} parts[] = { { "steps", steps }, { "loops", loops }, { "children", children } };

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

static bool flag(const char *name, int argc, char **argv)
{
    bool is = false;
    for (int i = 1; i < argc; i++)
        is = is || strcmp(argv[i], name) == 0;
    return is;
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
        if (!asked(parts[i].key, argc, argv) || parts[i].run(b, &err) == PAWL_OK)
            continue;
        fprintf(stderr, "bench workflows: %s, %s: %s\n", b->e->name, parts[i].key, err.text);
        code = 1;
    }
    files_remove();
    return code;
}

int main(int argc, char **argv)
{
    const char *env = getenv("PAWL_BENCH_QUICK");
    bool is_quick = (env && *env) || flag("--quick", argc, argv);
    struct bench b = { .size = is_quick ? &quick : &full, .table = { .out = stdout } };
    struct pawl_err err = { 0 };
    int code = 0;
    if (flag("--trace", argc, argv)) {
        if (trace(&err) == PAWL_OK)
            return 0;
        fprintf(stderr, "bench workflows: %s\n", err.text);
        return 1;
    }
    bench_table_begin(&b.table, "workflows");
    for (size_t i = 0; i < COUNT_OF(engines); i++) {
        b.e = &engines[i];
        if (asked(b.e->key, argc, argv))
            code |= engine_run(&b, argc, argv);
    }
    bench_table_end(&b.table);
    return code;
}
