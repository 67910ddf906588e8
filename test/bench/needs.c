/*
 * needs.c - 500,000 waiting calls that need what no worker has: what they cost other calls; by
 * design of the ledger nothing.
 *
 * Two databases on each engine, one with the backlog and one without, alternating rounds. The
 * backlog is of the same queue and types as what is measured: calls that are claimed by hand, calls
 * of workers in the process, and calls of `pawl serve`, a third each. "beside" is the database
 * without it. --quick (or PAWL_BENCH_QUICK): a tenth of the backlog, shorter rounds; names of
 * engines: only these.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "bench/client.h"
#include "bench/load.h"
#include "bench/server.h"
#include "bench/table.h"
#include "db_server.h"

#define NEED "what-no-worker-has"
#define TYPE_HTTP "echo"
#define CONNS 64

struct sizes {
    size_t rounds, backlog, calls;
    double seconds;
};
static const struct sizes full = { 7, 500000, 10000, 2.0 }, quick = { 3, 50000, 4000, 0.7 };

struct engine {
    const char *key, *name;
    struct db_server *server; /* NULL: SQLite */
};
static const struct engine engines[] = {
    { "postgres", "PostgreSQL", &db_postgres },
    { "mariadb", "MariaDB", &db_mariadb },
    { "sqlite", "SQLite", NULL },
};

/* One database. */
struct base {
    char url[200];
    struct pawl *p;
    struct bench_server served;
};

struct bench {
    const struct sizes *size;
    struct base with, without;
    struct bench_table table;
};

/* ---- Databases ------------------------------------------------------------------------------- */

static const char *const files[] = { "needs-with.db", "needs-without.db" };

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

static enum pawl_status backlog(struct pawl *p, size_t n, struct pawl_err *err)
{
    static const char *const types[] = { LOAD_TYPE_HAND, LOAD_TYPE_NOOP, TYPE_HTTP };
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < COUNT_OF(types) && st == PAWL_OK; i++) {
        double rate;
        size_t share = i + 1 < COUNT_OF(types) ? n / COUNT_OF(types)
                                               : n - (COUNT_OF(types) - 1) * (n / COUNT_OF(types));
        struct load_batch b = { .type = types[i], .need = NEED, .n = share, .batch = 1000 };
        st = load_submit(p, &b, &rate, err);
    }
    return st;
}

static enum pawl_status base_open(struct base *d, size_t n, struct pawl_err *err)
{
    enum pawl_status st =
        load_open(&(struct load_conf){ .url = d->url, .node = "bench" }, &d->p, err);
    return st == PAWL_OK ? backlog(d->p, n, err) : st;
}

static void base_close(struct base *d)
{
    pawl_close(TAKE(d->p));
    bench_server_close(&d->served);
}

static void base_name(struct base *d, const struct engine *e, const char *file)
{
    *d = (struct base){ .served.out = -1 };
    snprintf(d->url, sizeof d->url, "%s%s",
             e->server ? "" : "sqlite:", e->server ? db_database(e->server) : file);
}

/* ---- What is measured ------------------------------------------------------------------------ */

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

static enum pawl_status wait_1(struct bench *b, struct base *d, double *out, struct pawl_err *err)
{
    struct load_waited w;
    enum pawl_status st = load_wait(
        d->p, &(struct load_wait){ .threads = 1, .seconds = b->size->seconds / 2 }, &w, err);
    *out = w.p50_us;
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
    const char *name, *unit;
    shape *ask;
    enum bench_goal goal;
    double bound;
};
/* Differences below a tenth count as none, because of noise. */
static const struct question in_process[] = {
    { "submit 1,000", "/s", submit, BENCH_RATIO_MIN, 0.9 },
    { "claim 1,000 + finish 1,000", "/s", drain, BENCH_RATIO_MIN, 0.9 },
    { "64 threads, submit one and wait", "/s", wait_64, BENCH_RATIO_MIN, 0.9 },
    { "1 thread, p50", "us", wait_1, BENCH_RATIO_MAX, 1.1 },
};
static const struct question over_http[] = {
    { "HTTP, 64 connections", "/s", http_64, BENCH_RATIO_MIN, 0.9 },
};

/* Every question on both databases, alternating; then its rows. */
static enum pawl_status ask_all(struct bench *b, const struct engine *e, const struct question *v,
                                size_t n, struct pawl_err *err)
{
    struct bench_rounds r[8] = { 0 };
    enum pawl_status st = PAWL_OK;
    for (size_t round = 0; round < b->size->rounds; round++)
        for (size_t i = 0; i < n && st == PAWL_OK; i++) {
            double with = 0, without = 0;
            bool first = round % 2;
            st = v[i].ask(b, first ? &b->with : &b->without, first ? &with : &without, err);
            if (st == PAWL_OK)
                st = v[i].ask(b, first ? &b->without : &b->with, first ? &without : &with, err);
            bench_rounds_add(&r[i], with, without);
        }
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s: %s", e->name, v[i].name);
        bench_table_row(&b->table,
                        &(struct bench_row){ name, v[i].unit, &r[i], v[i].goal, v[i].bound });
    }
    return st;
}

/* The library first, then servers in its place: a database has one server that is measured. */
static enum pawl_status measure(struct bench *b, const struct engine *e, struct pawl_err *err)
{
    struct bench_server_conf conf = { .program = PAWL_BUILD_DIR "/pawl",
                                      .echo = PAWL_BUILD_DIR "/samples/echo.so",
                                      .wallet = PAWL_BUILD_DIR "/samples/wallet.so" };
    struct base *const bases[] = { &b->with, &b->without };
    enum pawl_status st = base_open(&b->with, b->size->backlog, err);
    if (st == PAWL_OK)
        st = base_open(&b->without, 0, err);
    for (size_t i = 0; i < COUNT_OF(bases) && st == PAWL_OK; i++)
        st = load_start(bases[i]->p, err);
    if (st == PAWL_OK)
        st = ask_all(b, e, in_process, COUNT_OF(in_process), err);
    for (size_t i = 0; i < COUNT_OF(bases); i++) {
        base_close(bases[i]);
        conf.db = bases[i]->url;
        if (st == PAWL_OK)
            st = bench_server_open(&bases[i]->served, &conf, err);
    }
    if (st == PAWL_OK)
        st = ask_all(b, e, over_http, COUNT_OF(over_http), err);
    base_close(&b->with);
    base_close(&b->without);
    return st;
}

static bool asked(const struct engine *e, int argc, char **argv)
{
    bool any = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], e->key) == 0)
            return true;
        any = any || *argv[i] != '-';
    }
    return !any;
}

int main(int argc, char **argv)
{
    const char *env = getenv("PAWL_BENCH_QUICK");
    bool is_quick = (env && *env) || (argc > 1 && strcmp(argv[1], "--quick") == 0);
    struct bench b = { .size = is_quick ? &quick : &full, .table = { .out = stdout } };
    char title[128];
    int code = 0;
    snprintf(title, sizeof title, "%zu calls that need what no worker has, beside none",
             b.size->backlog);
    bench_table_begin(&b.table, title);
    for (size_t i = 0; i < COUNT_OF(engines); i++) {
        const struct engine *e = &engines[i];
        struct pawl_err err = { 0 };
        if (!asked(e, argc, argv))
            continue;
        if (e->server && !db_there(e->server)) {
            printf("%s: not measured, there is no server to start\n", e->name);
            continue;
        }
        if (e->server)
            db_start_own(e->server);
        files_remove();
        base_name(&b.with, e, files[0]);
        base_name(&b.without, e, files[1]);
        if (measure(&b, e, &err) != PAWL_OK) {
            fprintf(stderr, "bench needs: %s: %s\n", e->name, err.text);
            code = 1;
        }
        files_remove();
    }
    bench_table_end(&b.table);
    return code;
}
