/*
 * serve_pg.c - `pawl serve` on PostgreSQL: calls over HTTP, the statements of an idle node, and the
 * cost of an open transaction of another session.
 *
 * A private server with default settings; the node and the load generator share the machine with
 * it. --quick (or PAWL_BENCH_QUICK): shorter rounds. --trace: instead, which statements a call
 * costs, from the server's log.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "bench/client.h"
#include "bench/server.h"
#include "bench/table.h"
#include "pg_log.h"
#include "db_server.h"

#define CONNS 64
#define GOAL_PER_S 10000
#define GOAL_IDLE 5
#define GOAL_HELD 0.90
/* A node that has just started runs more statements than an idle one. */
#define SETTLE_S 3

struct sizes {
    size_t rounds, held_rounds;
    double seconds, held_s, idle_s;
};
static const struct sizes full = { 5, 1, 3, 30, 10 }, quick = { 3, 3, 1, 1.5, 5 };

struct figures {
    const struct sizes *size;
    struct bench_server_conf server;
    struct bench_rounds many, many_p50, many_p99, one, one_p50, one_p99, idle, id, snapshot;
    struct pg_counts asked; /* by the idle node */
};

static void nap(double s)
{
    struct timespec t = { .tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9) };
    nanosleep(&t, NULL);
}

/* ---- Another session ------------------------------------------------------------------------- */

static const char hold_id[] =
    "BEGIN; SELECT pawl.submit('echo', id => 'held ' || random(), key => 'k')";
static const char hold_snapshot[] =
    "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pawl.node";

/* A transaction that stays open until PQfinish(). */
static enum pawl_status hold(const char *url, const char *text, PGconn **out, struct pawl_err *err)
{
    PGconn *db = PQconnectdb(url);
    PGresult *r = PQexec(db, text);
    ExecStatusType is = PQresultStatus(r);
    enum pawl_status st = PAWL_OK;
    if (is != PGRES_COMMAND_OK && is != PGRES_TUPLES_OK)
        st = err_set(err, PAWL_BUSY, "an open transaction: %.*s",
                     (int)strcspn(PQerrorMessage(db), "\n"), PQerrorMessage(db));
    PQclear(r);
    *out = db;
    return st;
}

/* The rate with an open transaction, and then without one. */
static enum pawl_status held_round(struct figures *f, int port, const char *text,
                                   struct bench_rounds *out, struct pawl_err *err)
{
    struct bench_hits hits = { .port = port, .conns = CONNS, .type = "echo" };
    struct bench_hit free_hit = { 0 }, held_hit = { 0 };
    PGconn *other = NULL;
    hits.seconds = f->size->held_s < 10 ? f->size->held_s : 10;
    enum pawl_status st = bench_client_hit(&hits, &free_hit, err);
    if (st == PAWL_OK)
        st = hold(f->server.db, text, &other, err);
    hits.seconds = f->size->held_s;
    if (st == PAWL_OK)
        st = bench_client_hit(&hits, &held_hit, err);
    PQfinish(other);
    bench_rounds_add(out, held_hit.per_s, free_hit.per_s);
    return st;
}

/* ---- A node ---------------------------------------------------------------------------------- */

static enum pawl_status hit_round(const struct bench_hits *hits, struct bench_rounds *const out[3],
                                  struct pawl_err *err)
{
    struct bench_hit hit = { 0 };
    enum pawl_status st = bench_client_hit(hits, &hit, err);
    bench_rounds_add(out[0], hit.per_s, 0);
    bench_rounds_add(out[1], hit.p50_us, 0);
    bench_rounds_add(out[2], hit.p99_us, 0);
    return st;
}

static enum pawl_status load_rounds(struct figures *f, struct pawl_err *err)
{
    struct bench_rounds *const many[] = { &f->many, &f->many_p50, &f->many_p99 };
    struct bench_rounds *const one[] = { &f->one, &f->one_p50, &f->one_p99 };
    struct bench_server s = { 0 };
    enum pawl_status st = bench_server_open(&s, &f->server, err);
    struct bench_hits hits = { .port = s.port, .seconds = f->size->seconds, .type = "echo" };
    for (size_t i = 0; i < f->size->rounds && st == PAWL_OK; i++) {
        hits.conns = CONNS;
        st = hit_round(&hits, many, err);
        hits.conns = 1;
        if (st == PAWL_OK)
            st = hit_round(&hits, one, err);
    }
    for (size_t i = 0; i < f->size->held_rounds && st == PAWL_OK; i++) {
        st = held_round(f, s.port, hold_id, &f->id, err);
        if (st == PAWL_OK)
            st = held_round(f, s.port, hold_snapshot, &f->snapshot, err);
    }
    bench_server_close(&s);
    return st;
}

/* Statements a second of an idle node, over all its connections. */
static enum pawl_status idle_round(struct figures *f, struct pawl_err *err)
{
    struct bench_server_conf conf = f->server;
    struct bench_server s = { 0 };
    struct pg_log log;
    pg_log_begin(&log, conf.db);
    conf.db = log.url;
    enum pawl_status st = bench_server_open(&s, &conf, err);
    if (st == PAWL_OK) {
        nap(SETTLE_S);
        pg_log_skip(&log);
        nap(f->size->idle_s);
        pg_log_count(&log, &f->asked);
        bench_rounds_add(&f->idle, (double)f->asked.all_n / f->size->idle_s, 0);
    }
    bench_server_close(&s);
    return st;
}

/* ---- The trace ------------------------------------------------------------------------------- */

static void trace_print(const struct pg_counts *t, size_t conns, const struct bench_hit *hit,
                        double took_s)
{
    double calls = hit->per_s * took_s;
    printf(
        "%zu connections, logged: %.0f calls/s, p50 %.0f us; per call %.2f statements, %.3f ms\n",
        conns, hit->per_s, hit->p50_us, (double)t->all_n / calls, t->all_ms / calls);
    for (size_t i = 0; i < t->n; i++)
        printf("    %-40.40s %8.3f a call %8.3f ms each\n", t->v[i].name, (double)t->v[i].n / calls,
               t->v[i].n ? t->v[i].ms / (double)t->v[i].n : 0);
}

static enum pawl_status trace(struct figures *f, struct pawl_err *err)
{
    static const size_t conns[] = { 1, CONNS };
    struct bench_server s = { 0 };
    struct pg_log log;
    pg_log_begin(&log, f->server.db);
    f->server.db = log.url;
    enum pawl_status st = bench_server_open(&s, &f->server, err);
    for (size_t i = 0; i < COUNT_OF(conns) && st == PAWL_OK; i++) {
        struct bench_hits hits = {
            .port = s.port, .seconds = f->size->seconds, .type = "echo", .conns = conns[i]
        };
        struct bench_hit hit = { 0 };
        struct pg_counts t;
        pg_log_skip(&log);
        st = bench_client_hit(&hits, &hit, err);
        pg_log_count(&log, &t);
        if (st == PAWL_OK) /* the warm-up, a fifth, is in the log too */
            trace_print(&t, conns[i], &hit, hits.seconds * 1.2);
    }
    bench_server_close(&s);
    return st;
}

/* ---- The program ----------------------------------------------------------------------------- */

static void print(const struct figures *f, struct bench_table *t)
{
    const struct bench_row rows[] = {
        { "HTTP, 64 connections, submit one and wait", "/s", &f->many, BENCH_FIGURE_MIN,
          GOAL_PER_S },
        { "  64 connections, latency p50", "us", &f->many_p50, BENCH_NO_GOAL, 0 },
        { "  64 connections, latency p99", "us", &f->many_p99, BENCH_NO_GOAL, 0 },
        { "HTTP, 1 connection, submit one and wait", "/s", &f->one, BENCH_NO_GOAL, 0 },
        { "  1 connection, latency p50", "us", &f->one_p50, BENCH_NO_GOAL, 0 },
        { "  1 connection, latency p99", "us", &f->one_p99, BENCH_NO_GOAL, 0 },
        { "64 beside an id in an open transaction", "/s", &f->id, BENCH_RATIO_MIN, GOAL_HELD },
        { "64 beside an open snapshot", "/s", &f->snapshot, BENCH_RATIO_MIN, GOAL_HELD },
        { "statements of an idle node", "/s", &f->idle, BENCH_FIGURE_MAX, GOAL_IDLE },
    };
    bench_table_begin(t, "PostgreSQL: a node over HTTP");
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        bench_table_row(t, &rows[i]);
    for (size_t i = 0; i < f->asked.n; i++)
        fprintf(t->out, "    idle: %-38.38s %8.2f/s\n", f->asked.v[i].name,
                (double)f->asked.v[i].n / f->size->idle_s);
    bench_table_end(t);
}

static enum pawl_status measure(struct figures *f, struct pawl_err *err)
{
    struct bench_table table = { .out = stdout };
    bench_table_load(&table);
    enum pawl_status st = load_rounds(f, err);
    if (st == PAWL_OK)
        st = idle_round(f, err);
    if (st == PAWL_OK)
        print(f, &table);
    return st;
}

int main(int argc, char **argv)
{
    const char *env = getenv("PAWL_BENCH_QUICK");
    bool is_quick = env && *env, traced = false;
    struct pawl_err err = { 0 };
    for (int i = 1; i < argc; i++) {
        is_quick = is_quick || strcmp(argv[i], "--quick") == 0;
        traced = traced || strcmp(argv[i], "--trace") == 0;
    }
    struct figures f = { .size = is_quick ? &quick : &full,
                         .server = { .program = PAWL_BUILD_DIR "/pawl",
                                     .echo = PAWL_BUILD_DIR "/samples/echo.so",
                                     .wallet = PAWL_BUILD_DIR "/samples/wallet.so" } };
    if (!db_there(&db_postgres)) {
        printf("PostgreSQL: not measured, there is no server to start\n");
        return 0;
    }
    db_start_own(&db_postgres);
    f.server.db = db_database(&db_postgres);
    enum pawl_status st = traced ? trace(&f, &err) : measure(&f, &err);
    if (st != PAWL_OK)
        fprintf(stderr, "bench serve_pg: %s\n", err.text);
    return st == PAWL_OK ? 0 : 1;
}
