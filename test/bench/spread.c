/*
 * spread.c - slow calls submitted to one of three idle nodes: how long until all of them have
 * ended.
 *
 * Three handles on one database, as three processes have them, 16 slots each. 1,000 calls of 100 ms
 * in one batch: ideally no slot is idle while a call waits. The ratio is to that ideal. --quick (or
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
#include "bench/table.h"
#include "db_server.h"

enum { CALLS = 1000, CALLS_QUICK = 240, NODES = 3, SLOTS = 16, ROUNDS = 3, CALL_MS = 100 };

static atomic_int ended;

static int sleeps(struct pawl_call *c)
{
    pawl_sleep(c, CALL_MS * 1000);
    atomic_fetch_add(&ended, 1);
    return pawl_reply_int(c, 1);
}

static enum pawl_status submit(struct pawl *p, int n, struct pawl_err *err)
{
    static struct pawl_receipt r[CALLS];
    static struct pawl_spec v[CALLS];
    for (int i = 0; i < n; i++)
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT, .type = "slow", .method = "run" };
    return pawl_submit(p, v, (size_t)n, 0, r, err);
}

static enum pawl_status round_of(struct pawl *p, int n, struct bench_rounds *out,
                                 struct pawl_err *err)
{
    double began = bench_clock(), until = began + 120;
    double ideal = (double)((n + NODES * SLOTS - 1) / (NODES * SLOTS)) * CALL_MS / 1000;
    atomic_store(&ended, 0);
    enum pawl_status st = submit(p, n, err);
    while (st == PAWL_OK && atomic_load(&ended) < n && bench_clock() < until)
        usleep(500);
    if (st == PAWL_OK && atomic_load(&ended) < n)
        st = err_set(err, PAWL_BUSY, "%d of %d calls ended in 120 s", atomic_load(&ended), n);
    double took = bench_clock() - began;
    if (st == PAWL_OK)
        bench_rounds_add(out, took * 1000, ideal * 1000);
    return st;
}

static enum pawl_status node_open(const char *db, const char *name, struct pawl **out,
                                  struct pawl_err *err)
{
    enum pawl_status st =
        pawl_open(&(struct pawl_options){ PAWL_OPTIONS_INIT, .db = db, .node = name }, out, err);
    if (st == PAWL_OK)
        st = pawl_on(pawl_program(*out), "slow", "run", sleeps);
    if (st == PAWL_OK)
        st = pawl_start(*out, &(struct pawl_workers){ PAWL_WORKERS_INIT, .slots = SLOTS }, err);
    return st;
}

static enum pawl_status measure(const char *db, int n, struct bench_rounds *out,
                                struct pawl_err *err)
{
    static const char *const names[NODES] = { "n1", "n2", "n3" };
    struct pawl *p[NODES] = { NULL };
    enum pawl_status st = PAWL_OK;
    for (int i = 0; i < NODES && st == PAWL_OK; i++)
        st = node_open(db, names[i], &p[i], err);
    for (int i = 0; i < ROUNDS && st == PAWL_OK; i++)
        st = round_of(p[0], n, out, err);
    for (int i = 0; i < NODES; i++)
        pawl_close(p[i]);
    return st;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        struct db_server *server;
    } engines[] = { { "PostgreSQL: calls of 100 ms over 3 x 16 slots", &db_postgres },
                    { "MariaDB: calls of 100 ms over 3 x 16 slots", &db_mariadb },
                    { "SQLite: calls of 100 ms over 3 x 16 slots", NULL } };
    const char *env = getenv("PAWL_BENCH_QUICK");
    bool quick = (env && *env) || (argc > 1 && strcmp(argv[1], "--quick") == 0);
    struct bench_table table = { .out = stdout };
    struct pawl_err err = { 0 };
    int code = 0;
    bench_table_load(&table);
    bench_table_begin(&table, "slow calls over idle nodes, beside the ideal");
    for (size_t i = 0; i < COUNT_OF(engines); i++) {
        struct db_server *s = engines[i].server;
        struct bench_rounds rounds = { 0 };
        if (s && !db_there(s)) {
            printf("%s: not measured, there is no server to start\n", db_name(s));
            continue;
        }
        if (s)
            db_start_own(s);
        if (measure(s ? db_database(s) : "sqlite:spread.db", quick ? CALLS_QUICK : CALLS, &rounds,
                    &err) != PAWL_OK) {
            fprintf(stderr, "bench spread: %s\n", err.text);
            code = 1;
            continue;
        }
        bench_table_row(
            &table, &(struct bench_row){ engines[i].name, "ms", &rounds, BENCH_RATIO_MAX, 1.1 });
    }
    bench_table_end(&table);
    return code;
}
