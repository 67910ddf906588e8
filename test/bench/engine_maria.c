/*
 * engine_maria.c - the MariaDB engine compared with plain libmariadb on the same tables, in one run
 * on a private server with default settings.
 *
 * --quick (or PAWL_BENCH_QUICK): fewer calls.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "bench/engine.h"
#include "db_server.h"

#define GOAL 0.60

/* ---- The program ----------------------------------------------------------------------------- */

static enum pawl_status measure(bool quick, struct pawl_err *err)
{
    char engine[200], floor[200];
    struct bench_table table = { .out = stdout };
    struct bench_engine e = { .place = { .url = engine },
                              .floor_place = { .url = floor },
                              .floor = &bench_floor_maria,
                              .rounds = quick ? 3 : 5,
                              .calls = quick ? 20000 : 60000,
                              .goal = GOAL };
    snprintf(engine, sizeof engine, "%s", db_database(&db_mariadb));
    snprintf(floor, sizeof floor, "%s", db_database(&db_mariadb));
    bench_table_load(&table);
    enum pawl_status st = bench_engine_run(&e, err);
    if (st != PAWL_OK)
        return st;
    bench_table_begin(&table, "MariaDB: the engine beside straight libmariadb, 2 connections");
    bench_engine_rows(&e, &table);
    bench_table_end(&table);
    return PAWL_OK;
}

int main(int argc, char **argv)
{
    const char *env = getenv("PAWL_BENCH_QUICK");
    bool quick = env && *env;
    struct pawl_err err = { 0 };
    for (int i = 1; i < argc; i++)
        quick = quick || strcmp(argv[i], "--quick") == 0;
    if (!db_there(&db_mariadb)) {
        printf("MariaDB: not measured, there is no server to start\n");
        return 0;
    }
    db_start_own(&db_mariadb);
    enum pawl_status st = measure(quick, &err);
    if (st != PAWL_OK)
        fprintf(stderr, "bench engine_maria: %s\n", err.text);
    return st == PAWL_OK ? 0 : 1;
}
