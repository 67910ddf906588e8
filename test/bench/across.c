/*
 * across.c - how soon a caller that waits on one node is answered after another node has finished
 * its call.
 *
 * Two handles on one database, as two processes have them: one runs the handler, the other waits.
 * The time is from the handler's return (so it includes the commit) to the answer. Between two
 * calls both are idle for a random time, so that a polling handle has slowed down. --quick (or
 * PAWL_BENCH_QUICK): fewer calls.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/macros.h"
#include "base/world.h"
#include "bench/table.h"
#include "db_server.h"

enum { CALLS = 200, CALLS_QUICK = 50, ROUNDS = 3 };

static _Atomic double returned;

/* Long enough that the caller is waiting by then. */
static int finishes(struct pawl_call *c)
{
    pawl_sleep(c, 30000);
    atomic_store(&returned, bench_clock());
    return pawl_reply_int(c, 1);
}

static enum pawl_status one(struct pawl *p, double *out_ms, struct pawl_err *err)
{
    struct pawl_shown *shown = NULL;
    struct pawl_spec s = { PAWL_SPEC_INIT, .type = "far", .method = "run" };
    enum pawl_status st = pawl_submit_wait(p, &s, 30000000, &shown, err);
    *out_ms = (bench_clock() - atomic_load(&returned)) * 1000;
    pawl_shown_free(shown);
    return st;
}

static enum pawl_status round_of(struct pawl *near, size_t n, struct bench_rounds *p50,
                                 struct bench_rounds *p99, struct pawl_err *err)
{
    double v[CALLS];
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        usleep((unsigned)(world_dice(&world_real) % 300000));
        st = one(near, &v[i], err);
    }
    if (st != PAWL_OK)
        return st;
    bench_rounds_add(p50, bench_quantile(v, n, 0.50), 0);
    bench_rounds_add(p99, bench_quantile(v, n, 0.99), 0);
    return PAWL_OK;
}

static enum pawl_status measure(const char *db, size_t n, struct bench_rounds *p50,
                                struct bench_rounds *p99, struct pawl_err *err)
{
    struct pawl *near = NULL, *far = NULL;
    enum pawl_status st = pawl_open(
        &(struct pawl_options){ PAWL_OPTIONS_INIT, .db = db, .node = "near" }, &near, err);
    if (st == PAWL_OK)
        st = pawl_open(&(struct pawl_options){ PAWL_OPTIONS_INIT, .db = db, .node = "far" }, &far,
                       err);
    if (st == PAWL_OK)
        st = pawl_on(pawl_program(far), "far", "run", finishes);
    if (st == PAWL_OK)
        st = pawl_start(far, NULL, err);
    for (int i = 0; i < ROUNDS && st == PAWL_OK; i++)
        st = round_of(near, n, p50, p99, err);
    pawl_close(near);
    pawl_close(far);
    return st;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *p50, *p99;
        struct db_server *server;
        double goal;
    } engines[] = {
        { "PostgreSQL: finish there to answer here, p50", "  p99", &db_postgres, 50 },
        { "MariaDB: finish there to answer here, p50", "  p99", &db_mariadb, 300 },
        { "SQLite: finish there to answer here, p50", "  p99", NULL, 300 },
    };
    const char *env = getenv("PAWL_BENCH_QUICK");
    bool quick = (env && *env) || (argc > 1 && strcmp(argv[1], "--quick") == 0);
    struct bench_table table = { .out = stdout };
    struct pawl_err err = { 0 };
    int code = 0;
    bench_table_load(&table);
    bench_table_begin(&table, "waiting across nodes");
    for (size_t i = 0; i < COUNT_OF(engines); i++) {
        struct db_server *s = engines[i].server;
        struct bench_rounds p50 = { 0 }, p99 = { 0 };
        if (s && !db_there(s)) {
            printf("%s: not measured, there is no server to start\n", db_name(s));
            continue;
        }
        if (s)
            db_start_own(s);
        if (measure(s ? db_database(s) : "sqlite:across.db", quick ? CALLS_QUICK : CALLS, &p50,
                    &p99, &err) != PAWL_OK) {
            fprintf(stderr, "bench across: %s\n", err.text);
            code = 1;
            continue;
        }
        bench_table_row(&table,
                        &(struct bench_row){ engines[i].p50, "ms", &p50, BENCH_NO_GOAL, 0 });
        bench_table_row(&table, &(struct bench_row){ engines[i].p99, "ms", &p99, BENCH_FIGURE_MAX,
                                                     engines[i].goal });
    }
    bench_table_end(&table);
    return code;
}
