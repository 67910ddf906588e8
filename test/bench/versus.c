/*
 * versus.c - Pawl's figures in the rows that it shares with other systems, for a comparison in one
 * run on one machine.
 *
 * Each figure is a line ROW<TAB>SYSTEM<TAB>VALUE<TAB>UNIT; a row that cannot be measured is
 * skip<TAB>SYSTEM<TAB>ROW<TAB>reason; config<TAB>SYSTEM<TAB>text describes the setup. Everything
 * else goes to stderr. The environment says what to measure: BENCH_URL (a database of its own),
 * BENCH_ROWS (groups: enqueue drain latency http hot keys backlog held light cost workflows;
 * default all), BENCH_N, BENCH_SECONDS, BENCH_HELD, BENCH_BACKLOG. --own: a private PostgreSQL with
 * default settings instead of BENCH_URL. Every group has its own schema, so that none is affected
 * by another.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/err.h"
#include "bench/client.h"
#include "bench/engine.h"
#include "bench/load.h"
#include "bench/server.h"
#include "bench/table.h"
#include "db_server.h"
#include "pg_cost.h"

#define CONNS 64
#define KEYS 10000
#define BATCH 1000
/* The number of pending calls is in the rows' names; this many of them are run for the figure. */
#define BACKLOG_SMALL 1000
#define SMALL_ROUNDS 9
/* The longest time that a caller may wait. */
#define LIGHT_WAIT_S 60
/* A backlog is worked off at most at this rate; the figure is measured while some of it is left. */
#define HEAVY_PER_S 50000
/* Transactions are counted with this delay. */
#define COUNTED_S 2

struct versus {
    const char *url;
    const char *system, *floor; /* as in the lines */
    bool postgres, sqlite;
    size_t n, backlog;
    double seconds, held_s;
    char schema[33]; /* of the group */
    struct bench_server_conf server;
};

/* ---- Lines ----------------------------------------------------------------------------------- */

static void line(const char *row, const char *system, double value, const char *unit)
{
    printf("%s\t%s\t%.2f\t%s\n", row, system, value, unit);
    fflush(stdout);
}

static void skip(const struct versus *v, const char *row, const char *why)
{
    printf("skip\t%s\t%s\t%s\n", v->system, row, why);
    fflush(stdout);
}

static void nap(double s)
{
    struct timespec t = { .tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9) };
    nanosleep(&t, NULL);
}

/* ---- The library ----------------------------------------------------------------------------- */

static enum pawl_status library(const struct versus *v, const char *url, struct pawl **out,
                                struct pawl_err *err)
{
    return load_open(&(struct load_conf){ .url = url, .schema = v->schema, .node = "library" }, out,
                     err);
}

static enum pawl_status fill(const struct versus *v, const char *type, const char *queue, size_t n,
                             struct pawl_err *err)
{
    AUTO(load_end) struct pawl *p = NULL;
    double rate;
    enum pawl_status st = library(v, v->url, &p, err);
    struct load_batch b = { .type = type, .queue = queue, .n = n, .batch = BATCH };
    return st == PAWL_OK ? load_submit(p, &b, &rate, err) : st;
}

/* Batches of one thread; then one by one through a server that runs none of them. */
static enum pawl_status enqueue(struct versus *v, struct pawl_err *err)
{
    struct bench_server s = { 0 };
    struct bench_hit hit = { 0 };
    double rate = 0;
    {
        AUTO(load_end) struct pawl *p = NULL;
        enum pawl_status st = library(v, v->url, &p, err);
        struct load_batch b = { .type = LOAD_TYPE_HAND, .n = v->n, .batch = BATCH };
        if (st == PAWL_OK)
            st = load_submit(p, &b, &rate, err);
        if (st != PAWL_OK)
            return st;
    }
    line("enqueue_batch", v->system, rate, "1/s");
    enum pawl_status st = bench_server_open(&s, &v->server, err);
    struct bench_hits hits = { .port = s.port,
                               .conns = CONNS,
                               .type = LOAD_TYPE_HAND,
                               .no_wait = true,
                               .calls = v->n,
                               .seconds = 6 * v->seconds };
    if (st == PAWL_OK)
        st = bench_client_hit(&hits, &hit, err);
    bench_server_close(&s);
    if (st == PAWL_OK)
        line("enqueue_64", v->system, hit.per_s, "1/s");
    return st;
}

/* Plain SQL, in its own tables. */
static enum pawl_status drain_floor(const struct versus *v, struct pawl_err *err)
{
    struct bench_alone b = { .place = { .url = v->url, .schema = "v_floor" },
                             .side = bench_floor_of(v->url),
                             .calls = v->n / BATCH * BATCH };
    double accept = 0, drain = 0;
    if (!b.side)
        return PAWL_OK;
    enum pawl_status st = bench_engine_schema(&b.place, err);
    if (st == PAWL_OK)
        st = bench_engine_through(&b, &accept, &drain, err);
    if (st != PAWL_OK)
        return st;
    line("enqueue_batch", v->floor, accept, "1/s");
    line("drain", v->floor, drain, "1/s");
    return PAWL_OK;
}

static enum pawl_status drain(struct versus *v, struct pawl_err *err)
{
    AUTO(load_end) struct pawl *p = NULL;
    double rate = 0;
    enum pawl_status st = fill(v, LOAD_TYPE_NOOP, NULL, v->n, err);
    if (st == PAWL_OK)
        st = library(v, v->url, &p, err);
    if (st == PAWL_OK)
        st = load_work_off(p, v->n, &rate, err);
    if (st != PAWL_OK)
        return st;
    line("drain", v->system, rate, "1/s");
    return drain_floor(v, err);
}

static enum pawl_status latency(struct versus *v, struct pawl_err *err)
{
    AUTO(load_end) struct pawl *p = NULL;
    struct load_wait w = { .threads = 1, .seconds = v->seconds, .to_handler = true };
    struct load_waited out = { 0 };
    enum pawl_status st = library(v, v->url, &p, err);
    if (st == PAWL_OK)
        st = load_start(p, err);
    struct load_wait warm = { .threads = 1, .seconds = v->seconds / 5 };
    if (st == PAWL_OK)
        st = load_wait(p, &warm, &out, err);
    if (st == PAWL_OK)
        st = load_wait(p, &w, &out, err);
    if (st != PAWL_OK)
        return st;
    line("latency_p50", v->system, out.p50_us, "us");
    line("latency_p99", v->system, out.p99_us, "us");
    return PAWL_OK;
}

/* ---- Workflows ------------------------------------------------------------------------------- */

/* Callers that each start a workflow and wait for its end. As many run at once as there are
 * callers; on SQLite as many as there are slots by default. */
static enum pawl_status workflows(struct versus *v, struct pawl_err *err)
{
    static const struct {
        const char *row, *type;
        int steps;
    } rows[] = { { "flow10", LOAD_TYPE_FLOW10, 10 }, { "flow1", LOAD_TYPE_FLOW1, 1 } };
    AUTO(load_end) struct pawl *p = NULL;
    enum pawl_status st = library(v, v->url, &p, err);
    if (st == PAWL_OK)
        st = load_start_flows(p, v->sqlite ? 0 : CONNS, err);
    for (size_t i = 0; i < COUNT_OF(rows) && st == PAWL_OK; i++) {
        struct load_wait w = { .type = rows[i].type, .threads = CONNS, .seconds = v->seconds / 5 };
        struct load_waited out = { 0 };
        st = load_wait(p, &w, &out, err);
        w.seconds = v->seconds;
        if (st == PAWL_OK)
            st = load_wait(p, &w, &out, err);
        if (st == PAWL_OK)
            line(rows[i].row, v->system, out.per_s * rows[i].steps, "1/s");
    }
    return st;
}

/* ---- Backlogs -------------------------------------------------------------------------------- */

struct backlog {
    const char *row;
    size_t size, part;
    int rounds;
};

/* This many calls are pending; the first of them are run. */
static enum pawl_status backlog_one(const struct versus *v, struct pawl *p, const struct backlog *b,
                                    struct pawl_err *err)
{
    double rates[SMALL_ROUNDS], ignored;
    size_t want = MIN(b->size, v->backlog), part = MIN(b->part, want);
    enum pawl_status st = PAWL_OK;
    for (int i = 0; i < b->rounds && st == PAWL_OK; i++) {
        struct pawl_stats stats = { PAWL_STATS_INIT };
        pawl_stats(p, &stats);
        size_t left = (size_t)(stats.accepted - stats.completed);
        struct load_batch fill = { .type = LOAD_TYPE_NOOP,
                                   .n = want > left ? want - left : 0,
                                   .batch = BATCH };
        st = load_submit(p, &fill, &ignored, err);
        if (st == PAWL_OK)
            st = load_first(p, part, &rates[i], err);
    }
    if (st == PAWL_OK && b->row)
        line(b->row, v->system, bench_median(rates, (size_t)b->rounds), "1/s");
    return st;
}

static enum pawl_status backlog(struct versus *v, struct pawl_err *err)
{
    static const struct backlog rows[] = {
        { NULL, 10000, 10000, 1 }, /* everything has run once */
        { "backlog_1k", BACKLOG_SMALL, BACKLOG_SMALL, SMALL_ROUNDS },
        { "backlog_100k", 100000, 20000, 1 },
        { "backlog_1m", 1000000, 50000, 1 },
    };
    AUTO(load_end) struct pawl *p = NULL;
    enum pawl_status st = library(v, v->url, &p, err);
    if (st == PAWL_OK)
        st = pawl_pause(p, "default", true, err);
    if (st == PAWL_OK)
        st = load_start(p, err);
    for (size_t i = 0; i < COUNT_OF(rows) && st == PAWL_OK; i++)
        st = backlog_one(v, p, &rows[i], err);
    return st;
}

/* ---- Over HTTP ------------------------------------------------------------------------------- */

static enum pawl_status http(struct versus *v, struct pawl_err *err)
{
    static const struct {
        const char *rate, *p50;
        size_t conns;
    } rows[] = { { "http_1", "http_1_p50", 1 }, { "http_64", "http_64_p50", CONNS } };
    struct bench_server s = { 0 };
    enum pawl_status st = bench_server_open(&s, &v->server, err);
    for (size_t i = 0; i < COUNT_OF(rows) && st == PAWL_OK; i++) {
        struct bench_hits hits = {
            .port = s.port, .conns = rows[i].conns, .seconds = v->seconds, .type = "echo"
        };
        struct bench_hit hit = { 0 };
        st = bench_client_hit(&hits, &hit, err);
        if (st != PAWL_OK)
            break;
        line(rows[i].rate, v->system, hit.per_s, "1/s");
        line(rows[i].p50, v->system, hit.p50_us, "us");
    }
    bench_server_close(&s);
    return st;
}

static enum pawl_status keyed(struct versus *v, const char *row, size_t keys, struct pawl_err *err)
{
    struct bench_server s = { 0 };
    struct bench_hit hit = { 0 };
    enum pawl_status st = bench_server_open(&s, &v->server, err);
    struct bench_hits hits = {
        .port = s.port, .conns = CONNS, .seconds = v->seconds, .keys = keys
    };
    if (st == PAWL_OK)
        st = bench_client_hit(&hits, &hit, err);
    bench_server_close(&s);
    if (st == PAWL_OK)
        line(row, v->system, hit.per_s, "1/s");
    return st;
}

static enum pawl_status hot(struct versus *v, struct pawl_err *err)
{
    return keyed(v, "hot_key", 1, err);
}

static enum pawl_status keys(struct versus *v, struct pawl_err *err)
{
    return keyed(v, "keys_10k", KEYS, err);
}

/* ---- An open snapshot ------------------------------------------------------------------------ */

static enum pawl_status hold(const char *url, PGconn **out, struct pawl_err *err)
{
    PGconn *db = PQconnectdb(url);
    PGresult *r = PQexec(db, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    enum pawl_status st = PQresultStatus(r) == PGRES_TUPLES_OK
                              ? PAWL_OK
                              : err_set(err, PAWL_BUSY, "an open transaction: %.*s",
                                        (int)strcspn(PQerrorMessage(db), "\n"), PQerrorMessage(db));
    PQclear(r);
    *out = db;
    return st;
}

/* The same amount of work precedes the figure without the snapshot and the one with it: tables and
 * log grow, and that must not count as an effect of the snapshot. */
static enum pawl_status held(struct versus *v, struct pawl_err *err)
{
    struct bench_server s = { 0 };
    struct bench_hit before = { 0 }, meanwhile = { 0 }, after = { 0 };
    PGconn *other = NULL;
    if (!v->postgres) {
        skip(v, "held_before", "the snapshot that is held is PostgreSQL's");
        skip(v, "held_after", "the snapshot that is held is PostgreSQL's");
        return PAWL_OK;
    }
    enum pawl_status st = bench_server_open(&s, &v->server, err);
    struct bench_hits hits = {
        .port = s.port, .conns = CONNS, .seconds = v->held_s, .type = "echo"
    };
    if (st == PAWL_OK)
        st = bench_client_hit(&hits, &meanwhile, err);
    hits.seconds = v->seconds;
    if (st == PAWL_OK)
        st = bench_client_hit(&hits, &before, err);
    if (st == PAWL_OK)
        st = hold(v->url, &other, err);
    hits.seconds = v->held_s;
    if (st == PAWL_OK)
        st = bench_client_hit(&hits, &meanwhile, err);
    hits.seconds = v->seconds;
    if (st == PAWL_OK)
        st = bench_client_hit(&hits, &after, err);
    PQfinish(other);
    bench_server_close(&s);
    if (st != PAWL_OK)
        return st;
    line("held_before", v->system, before.per_s, "1/s");
    line("held_after", v->system, after.per_s, "1/s");
    return PAWL_OK;
}

/* ---- A light queue --------------------------------------------------------------------------- */

/* Calls that are pending in a queue, counted up to 100,000. */
static int64_t pending(const struct versus *v, const char *queue)
{
    AUTO(load_end) struct pawl *p = NULL;
    struct pawl_queues *all = NULL;
    struct pawl_err err;
    int64_t n = 0;
    if (library(v, v->url, &p, &err) != PAWL_OK || pawl_queues(p, &all, &err) != PAWL_OK)
        return -1;
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->v[i].queue, queue) == 0)
            n = all->v[i].pending;
    pawl_queues_free(all);
    return n;
}

/* Every latency counts from the first on: a served backlog may be gone soon. */
static enum pawl_status light_one(const struct versus *v, const char *row, double seconds,
                                  int priority, struct pawl_err *err)
{
    struct bench_server s = { 0 };
    struct bench_hit hit = { 0 };
    enum pawl_status st = bench_server_open(&s, &v->server, err);
    struct bench_hits hits = { .port = s.port,
                               .conns = 1,
                               .seconds = seconds,
                               .at_once = true,
                               .type = "echo",
                               .queue = "light",
                               .priority = priority,
                               .wait_s = LIGHT_WAIT_S };
    if (st == PAWL_OK)
        st = bench_client_hit(&hits, &hit, err);
    bench_server_close(&s);
    if (st == PAWL_OK)
        line(row, v->system, hit.p99_us, "us");
    return st;
}

/* A backlog in a queue that the same workers serve, submitted before they start. First without a
 * priority: calls run in the order in which they became due. Then with a priority for the light
 * ones. */
static enum pawl_status light_beside(struct versus *v, const char *row, int priority,
                                     struct pawl_err *err)
{
    double seconds = MIN((double)v->backlog / HEAVY_PER_S, v->seconds);
    enum pawl_status st = fill(v, "echo", "heavy", v->backlog, err);
    if (st == PAWL_OK)
        st = light_one(v, row, seconds, priority, err);
    if (st == PAWL_OK && pending(v, "heavy") == 0)
        fprintf(stderr, "versus: %s: the backlog of %zu was gone before the end\n", row,
                v->backlog);
    return st;
}

/* Calls that are not served wait in the light queue itself. */
static enum pawl_status light(struct versus *v, struct pawl_err *err)
{
    enum pawl_status st = light_one(v, "light_idle_p99", v->seconds, 0, err);
    if (st == PAWL_OK)
        st = light_beside(v, "light_backlog_p99", 0, err);
    snprintf(v->schema, sizeof v->schema, "v_light_first");
    if (st == PAWL_OK)
        st = light_beside(v, "light_priority_p99", 1, err);
    snprintf(v->schema, sizeof v->schema, "v_unserved");
    if (st == PAWL_OK)
        st = fill(v, "nobody.serves.this", "light", v->backlog, err);
    return st == PAWL_OK ? light_one(v, "light_unserved_p99", v->seconds, 0, err) : st;
}

/* ---- Cost ------------------------------------------------------------------------------------ */

/* The cost of one kind of work: calls, and our CPU time. */
struct spent {
    double calls, cpu_s;
};
typedef enum pawl_status work_of(const struct versus *v, const char *url, struct spent *out,
                                 struct pawl_err *err);

static double own_cpu(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Stored in batches and run by workers of the same process. */
static enum pawl_status work_jobs(const struct versus *v, const char *url, struct spent *out,
                                  struct pawl_err *err)
{
    AUTO(load_end) struct pawl *p = NULL;
    double rate, before = own_cpu();
    enum pawl_status st = library(v, url, &p, err);
    struct load_batch b = { .type = LOAD_TYPE_NOOP, .n = v->n, .batch = BATCH };
    if (st == PAWL_OK)
        st = load_submit(p, &b, &rate, err);
    if (st == PAWL_OK)
        st = load_work_off(p, v->n, &rate, err);
    *out = (struct spent){ .calls = (double)v->n, .cpu_s = own_cpu() - before };
    return st;
}

/* One by one over HTTP, from 64 connections that wait; the load generator is not counted. */
static enum pawl_status work_http(const struct versus *v, const char *url, struct spent *out,
                                  struct pawl_err *err)
{
    struct bench_server s = { 0 };
    struct bench_server_conf conf = v->server;
    struct bench_hit hit = { 0 };
    conf.db = url;
    enum pawl_status st = bench_server_open(&s, &conf, err);
    struct bench_hits hits = {
        .port = s.port, .conns = CONNS, .seconds = v->seconds, .type = "echo"
    };
    double before = pg_cost_process(s.pid);
    if (st == PAWL_OK)
        st = bench_client_hit(&hits, &hit, err);
    /* The warm-up, a fifth, counts here too. */
    *out = (struct spent){ .calls = hit.per_s * v->seconds * 1.2,
                           .cpu_s = pg_cost_process(s.pid) - before };
    bench_server_close(&s);
    return st;
}

static enum pawl_status cost_spent(const struct versus *v, work_of *work, const char *const rows[3],
                                   struct pawl_err *err)
{
    struct pg_cost before, after;
    struct spent spent = { 0 };
    pg_cost_read(v->url, &before);
    enum pawl_status st = work(v, v->url, &spent, err);
    if (st != PAWL_OK)
        return st;
    nap(COUNTED_S);
    pg_cost_read(v->url, &after);
    line(rows[0], v->system, (after.cpu_s - before.cpu_s + spent.cpu_s) / spent.calls * 1e6, "us");
    line(rows[1], v->system, (double)(after.wal - before.wal) / spent.calls, "bytes");
    fprintf(stderr, "versus: %s: database %.1f us, program %.1f us, %.4f transactions a call\n",
            rows[0], (after.cpu_s - before.cpu_s) / spent.calls * 1e6,
            spent.cpu_s / spent.calls * 1e6,
            (double)(after.transactions - before.transactions) / spent.calls);
    return PAWL_OK;
}

/* A separate run: logging statements costs more than the statements. */
static enum pawl_status cost_statements(const struct versus *v, work_of *work, const char *row,
                                        struct pawl_err *err)
{
    struct versus less = *v;
    struct pg_log log;
    struct pg_counts counts;
    struct spent spent = { 0 };
    if (!pg_cost_log(v->url, &log)) {
        skip(v, row, "the server's log cannot be had");
        return PAWL_OK;
    }
    less.n = MAX(v->n / 10, BATCH);
    less.seconds = MIN(v->seconds, 2);
    enum pawl_status st = work(&less, log.url, &spent, err);
    pg_log_count(&log, &counts);
    if (st == PAWL_OK)
        line(row, v->system, (double)counts.all_n / spent.calls, "statements");
    return st;
}

static enum pawl_status cost(struct versus *v, struct pawl_err *err)
{
    static const struct {
        work_of *work;
        const char *schema, *rows[3];
    } shapes[] = {
        { work_jobs, "v_cost", { "cpu_per_call", "wal_per_call", "statements_per_call" } },
        { work_http,
          "v_cost_http",
          { "cpu_per_http_call", "wal_per_http_call", "statements_per_http_call" } },
    };
    struct pg_cost there;
    enum pawl_status st = PAWL_OK;
    if (!v->postgres || !pg_cost_read(v->url, &there)) {
        for (int i = 0; i < 3; i++)
            skip(v, shapes[0].rows[i], "only a PostgreSQL on this machine is looked into");
        return PAWL_OK;
    }
    for (size_t i = 0; i < COUNT_OF(shapes) && st == PAWL_OK; i++) {
        snprintf(v->schema, sizeof v->schema, "%s", shapes[i].schema);
        st = fill(v, "nobody.serves.this", NULL, BATCH, err); /* its tables are there */
        if (st == PAWL_OK)
            st = cost_spent(v, shapes[i].work, shapes[i].rows, err);
        if (st == PAWL_OK)
            st = cost_statements(v, shapes[i].work, shapes[i].rows[2], err);
    }
    return st;
}

/* ---- The program ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum pawl_status (*run)(struct versus *v, struct pawl_err *err);
} groups[] = {
    { "enqueue", enqueue }, { "drain", drain }, { "latency", latency },     { "http", http },
    { "hot", hot },         { "keys", keys },   { "backlog", backlog },     { "held", held },
    { "light", light },     { "cost", cost },   { "workflows", workflows },
};

static double setting(const char *name, double otherwise)
{
    const char *text = getenv(name);
    double v = text && *text ? strtod(text, NULL) : otherwise;
    return v > 0 ? v : otherwise;
}

static bool wanted(const char *group)
{
    const char *rows = getenv("BENCH_ROWS"), *at = rows;
    size_t len = strlen(group);
    if (!rows || !*rows)
        return true;
    while ((at = strstr(at, group))) {
        if ((at == rows || at[-1] == ' ') && (at[len] == 0 || at[len] == ' '))
            return true;
        at += len;
    }
    return false;
}

/* "PostgreSQL 15.18, fsync on, synchronous_commit on", as reported by the server. */
static void database_says(const struct versus *v, char *out, size_t size)
{
    snprintf(out, size, "%.*s", (int)strcspn(v->url, ":"), v->url);
    if (!v->postgres)
        return;
    PGconn *db = PQconnectdb(v->url);
    PGresult *r = PQexec(db, "SELECT 'PostgreSQL ' || split_part(current_setting('server_version'),"
                             " ' ', 1) || ', fsync ' || current_setting('fsync') || "
                             "', synchronous_commit ' || current_setting('synchronous_commit')");
    if (PQresultStatus(r) == PGRES_TUPLES_OK)
        snprintf(out, size, "%s", PQgetvalue(r, 0, 0));
    PQclear(r);
    PQfinish(db);
}

static void config(const struct versus *v)
{
    char database[200];
    database_says(v, database, sizeof database);
    printf("config\t%s\tpawl %s, settings as shipped (16 slots, history kept 7 days), %s; "
           "enqueue_batch by the library in batches of %d; drain, latency (until the handler "
           "ran) and backlog by workers in the process; enqueue_64, http, keys, held and light "
           "over HTTP by pawl serve; cost of calls stored in batches and drained, statements from "
           "the server's log; workflows by %d callers and %s slots in the process\n",
           v->system, PAWL_VERSION, database, BATCH, CONNS, v->sqlite ? "16" : "64");
    if (bench_floor_of(v->url))
        printf("config\t%s\tstraight %s on Pawl's tables, 2 connections, batches of %d, finish "
               "and claim in one commit\n",
               v->floor, v->postgres ? "libpq" : "libmariadb", BATCH);
    fflush(stdout);
}

static const char *system_of(const char *url)
{
    return strncmp(url, "postgres", 8) == 0  ? "pawl"
           : strncmp(url, "sqlite:", 7) == 0 ? "pawl-sqlite"
           : bench_floor_of(url)             ? "pawl-mariadb"
                                             : "pawl-other";
}

int main(int argc, char **argv)
{
    struct pawl_err err = { 0 };
    struct versus v = { .url = getenv("BENCH_URL"),
                        .n = (size_t)setting("BENCH_N", 100000),
                        .backlog = (size_t)setting("BENCH_BACKLOG", 1000000),
                        .seconds = setting("BENCH_SECONDS", 10),
                        .held_s = setting("BENCH_HELD", 60),
                        .server = { .program = PAWL_BUILD_DIR "/pawl",
                                    .echo = PAWL_BUILD_DIR "/samples/echo.so",
                                    .wallet = PAWL_BUILD_DIR "/samples/wallet.so",
                                    .schema = v.schema } };
    if (argc > 1 && strcmp(argv[1], "--own") == 0 && db_there(&db_postgres)) {
        db_start_own(&db_postgres);
        v.url = db_database(&db_postgres);
    }
    if (!v.url || !*v.url) {
        fprintf(stderr, "versus: not measured, BENCH_URL names no database\n");
        return 0;
    }
    v.server.db = v.url;
    v.system = system_of(v.url);
    v.postgres = strcmp(v.system, "pawl") == 0;
    v.sqlite = strcmp(v.system, "pawl-sqlite") == 0;
    v.floor = v.postgres ? "floor" : "floor-mariadb";
    config(&v);
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        if (!wanted(groups[i].name))
            continue;
        fprintf(stderr, "versus: %s\n", groups[i].name);
        snprintf(v.schema, sizeof v.schema, "v_%s", groups[i].name);
        if (groups[i].run(&v, &err) != PAWL_OK) {
            fprintf(stderr, "versus: %s: %s\n", groups[i].name, err.text);
            return 1;
        }
    }
    return 0;
}
