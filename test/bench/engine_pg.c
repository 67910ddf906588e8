/*
 * engine_pg.c - the PostgreSQL engine compared with plain libpq on the same tables, in one run on a
 * private server with default settings.
 *
 * --quick (or PAWL_BENCH_QUICK): fewer calls. --trace: instead, which statements a group of each
 * kind runs and how long they take, from the server's log.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "bench/engine.h"
#include "pg_log.h"
#include "db_server.h"

#define GOAL 0.80
/* Not more: with a wrong plan every group would read all of them. */
#define BURST 10000

static enum pawl_status plain(PGconn *db, const char *text, struct pawl_err *err)
{
    PGresult *r = PQexec(db, text);
    ExecStatusType is = PQresultStatus(r);
    enum pawl_status st = PAWL_OK;
    if (is != PGRES_COMMAND_OK && is != PGRES_TUPLES_OK)
        st = err_set(err, PAWL_BUSY, "straight libpq: %.*s", (int)strcspn(PQerrorMessage(db), "\n"),
                     PQerrorMessage(db));
    PQclear(r);
    return st;
}

/* Run autovacuum and a checkpoint before the measurement, so that they do not run during it. */
static enum pawl_status tend(const char *url, struct pawl_err *err)
{
    PGconn *db = PQconnectdb(url);
    enum pawl_status st = plain(db, "VACUUM ANALYZE", err);
    if (st == PAWL_OK)
        st = plain(db, "CHECKPOINT", err);
    PQfinish(db);
    return st;
}

/* ---- The trace ------------------------------------------------------------------------------- */

#define TRACE_GROUPS 20

static void trace_print(const char *what, const struct pg_counts *t, double took_s)
{
    printf("%s: %.2f ms a group, %.2f ms of it in %.1f statements\n", what,
           took_s * 1000 / TRACE_GROUPS, t->all_ms / TRACE_GROUPS, (double)t->all_n / TRACE_GROUPS);
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].n * 10 >= TRACE_GROUPS)
            printf("    %-40.40s %6.1f times %8.3f ms\n", t->v[i].name,
                   (double)t->v[i].n / TRACE_GROUPS, t->v[i].ms / TRACE_GROUPS);
}

static enum pawl_status trace(const char *url, struct pawl_err *err)
{
    static const struct {
        const char *what;
        const struct bench_side *side;
        enum bench_shape shape;
    } steps[] = {
        { "floor, accept", &bench_floor_pg, SHAPE_ACCEPT },
        { "floor, claim + finish", &bench_floor_pg, SHAPE_DRAIN },
        { "floor, accept", &bench_floor_pg, SHAPE_ACCEPT },
        { "floor, finish and claim", &bench_floor_pg, SHAPE_FUSED },
        { "engine, accept", &bench_side_batch, SHAPE_ACCEPT },
        { "engine, claim + finish", &bench_side_batch, SHAPE_DRAIN },
        { "engine, accept of singles", &bench_side_singles, SHAPE_ACCEPT },
        { "engine, finish and claim", &bench_side_batch, SHAPE_FUSED },
    };
    struct pg_log log;
    pg_log_begin(&log, url);
    enum pawl_status st = bench_engine_schema(&(struct bench_place){ .url = url }, err);
    for (size_t i = 0; i < COUNT_OF(steps) && st == PAWL_OK; i++) {
        struct pg_counts t;
        double took = 0;
        pg_log_skip(&log);
        st = bench_engine_alone(&(struct bench_alone){ .place = { .url = log.url },
                                                       .side = steps[i].side,
                                                       .shape = steps[i].shape,
                                                       .calls = TRACE_GROUPS * BENCH_BATCH },
                                &took, err);
        pg_log_count(&log, &t);
        if (st == PAWL_OK)
            trace_print(steps[i].what, &t, took);
    }
    return st;
}

/* ---- The program ----------------------------------------------------------------------------- */

struct urls {
    char engine[200], floor[200];
};

static struct urls databases(void)
{
    struct urls u;
    snprintf(u.engine, sizeof u.engine, "%s", db_database(&db_postgres));
    snprintf(u.floor, sizeof u.floor, "%s", db_database(&db_postgres));
    return u;
}

static enum pawl_status measure(bool quick, struct pawl_err *err)
{
    struct urls u = databases();
    struct bench_table table = { .out = stdout };
    struct bench_engine e = { .place = { .url = u.engine },
                              .floor_place = { .url = u.floor },
                              .floor = &bench_floor_pg,
                              .tend = tend,
                              .rounds = quick ? 3 : 9,
                              .calls = quick ? 20000 : 60000,
                              .goal = GOAL };
    bench_table_load(&table);
    enum pawl_status st = bench_engine_run(&e, err);
    for (size_t i = 0; i < e.rounds && st == PAWL_OK; i++) {
        u = databases();
        e.calls = BURST;
        e.tend = tend;
        st = bench_engine_burst(&e, err);
    }
    if (st != PAWL_OK)
        return st;
    bench_table_begin(&table, "PostgreSQL: the engine beside straight libpq, 2 connections");
    bench_engine_rows(&e, &table);
    bench_table_end(&table);
    return PAWL_OK;
}

int main(int argc, char **argv)
{
    const char *env = getenv("PAWL_BENCH_QUICK");
    bool quick = env && *env, traced = false;
    struct pawl_err err = { 0 };
    for (int i = 1; i < argc; i++) {
        quick = quick || strcmp(argv[i], "--quick") == 0;
        traced = traced || strcmp(argv[i], "--trace") == 0;
    }
    if (!db_there(&db_postgres)) {
        printf("PostgreSQL: not measured, there is no server to start\n");
        return 0;
    }
    db_start_own(&db_postgres);
    enum pawl_status st = traced ? trace(db_database(&db_postgres), &err) : measure(quick, &err);
    if (st != PAWL_OK)
        fprintf(stderr, "bench engine_pg: %s\n", err.text);
    return st == PAWL_OK ? 0 : 1;
}
