/*
 * rows.c - the main figures on SQLite: the library beside the floor (rows.h).
 *
 * A round does one shape of work on the floor and right after it the same on the library. Both
 * files live through all rounds and take the same calls, so they always have the same size.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/world.h"
#include "bench/floor.h"
#include "bench/load.h"

#define BATCH 1000
#define THREADS 64
/* The goals: accept and drain in batches of 1,000, and 64 threads that wait. */
#define GOAL_OF_FLOOR 0.60
#define GOAL_PER_S 20000

const struct bench_size bench_size_full = { .rounds = 5, .calls = 60000, .seconds = 2.0 };
const struct bench_size bench_size_user = { .rounds = 3, .calls = 40000, .seconds = 1.0 };
const struct bench_size bench_size_quick = { .rounds = 3, .calls = 20000, .seconds = 0.7 };

/* ---- Files ----------------------------------------------------------------------------------- */

enum pawl_status bench_files_name(const char *dir, struct bench_files *out, struct pawl_err *err)
{
    int pid = (int)getpid();
    int a = snprintf(out->floor, sizeof out->floor, "%s/pawlbench-%d-floor.db", dir, pid);
    int b = snprintf(out->lib, sizeof out->lib, "%s/pawlbench-%d.db", dir, pid);
    int c = snprintf(out->http, sizeof out->http, "%s/pawlbench-%d-http.db", dir, pid);
    /* Room for the longest file name ending. */
    if (a < 0 || b < 0 || c < 0 || (size_t)MAX(a, c) + sizeof "-wal" > sizeof out->floor)
        return err_set(err, PAWL_INVALID, "the folder's name is too long: %.100s...", dir);
    return PAWL_OK;
}

static void remove_one(const char *path)
{
    static const char *const endings[] = { "", "-wal", "-shm" };
    char name[sizeof((struct bench_files *)0)->floor];
    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        size_t n = 0;
        for (const char *s = path; *s && n < sizeof name - 1; s++)
            name[n++] = *s;
        for (const char *s = endings[i]; *s && n < sizeof name - 1; s++)
            name[n++] = *s;
        name[n] = 0;
        unlink(name);
    }
}

void bench_files_remove(const struct bench_files *files)
{
    remove_one(files->floor);
    remove_one(files->lib);
    remove_one(files->http);
}

/* ---- Both sides ------------------------------------------------------------------------------ */

struct sides {
    const struct bench_run *run;
    struct floor *floor;
    struct pawl *lib;
    char url[1100];
    struct bench_id *ids; /* owned; calls of one round */
    struct bench_rounds accept, accept_v7, drain, drain_no_input, work, wait, wait_p50, wait_p99,
        one, one_p50, one_p99;
    struct bench_http http;
};

static void tell(const struct sides *s, const char *what)
{
    if (s->run->told)
        s->run->told(s->run->ctx, what);
}

static void floor_end(struct floor **f)
{
    floor_close(*f);
}

static double per_s(size_t n, double began)
{
    return (double)n / (bench_clock() - began);
}

/* ---- Accepting ------------------------------------------------------------------------------- */

static double floor_accept_all(struct sides *s, size_t n)
{
    double began = bench_clock();
    for (size_t at = 0; at < n; at += BATCH)
        floor_accept(s->floor, s->ids + at, BATCH);
    return per_s(n, began);
}

static enum pawl_status accept_round(struct sides *s, enum bench_ids kind, struct bench_rounds *out,
                                     struct pawl_err *err)
{
    size_t n = s->run->size->calls;
    double figure = 0;
    bench_ids_make(kind, s->ids, n);
    double floor = floor_accept_all(s, n);
    enum pawl_status st = load_submit(
        s->lib,
        &(struct load_batch){ .type = LOAD_TYPE_HAND, .ids = s->ids, .n = n, .batch = BATCH },
        &figure, err);
    bench_rounds_add(out, figure, floor);
    return st == PAWL_OK ? floor_ok(s->floor, err) : st;
}

/* ---- Draining -------------------------------------------------------------------------------- */

enum drain { DRAIN_PAIRS, DRAIN_NO_INPUT, DRAIN_FUSED };

static double floor_drain_all(struct sides *s, size_t n, enum drain how)
{
    struct floor_lease l = { 0 };
    bool with_input = how != DRAIN_NO_INPUT;
    double began = bench_clock();
    if (how == DRAIN_FUSED)
        floor_claim(s->floor, BATCH, with_input, &l);
    for (size_t at = 0; at < n; at += BATCH) {
        if (how == DRAIN_FUSED) {
            floor_finish_claim(s->floor, at + BATCH < n ? BATCH : 0, with_input, &l);
            continue;
        }
        floor_claim(s->floor, BATCH, with_input, &l);
        floor_finish(s->floor, &l);
    }
    return per_s(n, began);
}

/* The accept before it left the calls of one round on either side. */
static enum pawl_status drain_round(struct sides *s, enum drain how, struct bench_rounds *out,
                                    struct pawl_err *err)
{
    size_t n = s->run->size->calls;
    double figure = 0, floor = floor_drain_all(s, n, how);
    enum pawl_status st = load_drain(s->lib, n, BATCH, &figure, err);
    bench_rounds_add(out, figure, floor);
    return st == PAWL_OK ? floor_ok(s->floor, err) : st;
}

/* Workers start and stop with the round, in a handle of their own beside the one that submitted. */
static enum pawl_status work_round(struct sides *s, struct pawl_err *err)
{
    AUTO(load_end) struct pawl *p = NULL;
    size_t n = s->run->size->calls;
    double ignored, figure = 0;
    bench_ids_make(BENCH_IDS_RANDOM, s->ids, n);
    floor_accept_all(s, n);
    enum pawl_status st = load_submit(
        s->lib,
        &(struct load_batch){ .type = LOAD_TYPE_NOOP, .ids = s->ids, .n = n, .batch = BATCH },
        &ignored, err);
    if (st == PAWL_OK)
        st = load_open(&(struct load_conf){ .url = s->url, .node = "bench-workers" }, &p, err);
    double floor = floor_drain_all(s, n, DRAIN_FUSED);
    if (st == PAWL_OK)
        st = load_work_off(p, n, &figure, err);
    bench_rounds_add(&s->work, figure, floor);
    return st == PAWL_OK ? floor_ok(s->floor, err) : st;
}

static enum pawl_status batch_rounds(struct sides *s, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < s->run->size->rounds && st == PAWL_OK; i++) {
        tell(s, "batches of 1,000");
        st = accept_round(s, BENCH_IDS_RANDOM, &s->accept, err);
        if (st == PAWL_OK)
            st = drain_round(s, DRAIN_PAIRS, &s->drain, err);
        if (st == PAWL_OK)
            st = accept_round(s, BENCH_IDS_ORDERED, &s->accept_v7, err);
        if (st == PAWL_OK)
            st = drain_round(s, DRAIN_NO_INPUT, &s->drain_no_input, err);
        tell(s, "draining by workers");
        if (st == PAWL_OK)
            st = work_round(s, err);
    }
    return st;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* What one connection does for n callers in step: their calls are accepted and claimed in one
 * commit and finished in the next. */
static void floor_wait(struct sides *s, size_t n, struct load_waited *out)
{
    enum { KEPT = 100000 };
    struct bench_id ids[THREADS];
    struct floor_lease l;
    double *us = malloc(KEPT * sizeof *us);
    size_t steps = 0;
    double began = bench_clock(), now = began;
    while (us && now - began < s->run->size->seconds / 2 && floor_ok(s->floor, NULL) == PAWL_OK) {
        double from = now;
        bench_ids_make(BENCH_IDS_ORDERED, ids, n);
        floor_accept_claim(s->floor, ids, n, &l);
        floor_finish(s->floor, &l);
        now = bench_clock();
        us[steps++ % KEPT] = (now - from) * 1e6;
    }
    *out = (struct load_waited){ .per_s = (double)(steps * n) / (now - began),
                                 .p50_us = bench_quantile(us, MIN(steps, KEPT), 0.5),
                                 .p99_us = bench_quantile(us, MIN(steps, KEPT), 0.99) };
    free(us);
}

static enum pawl_status wait_round(struct sides *s, size_t threads, struct bench_rounds *out[3],
                                   struct pawl_err *err)
{
    struct load_waited floor, figure = { 0 };
    floor_wait(s, threads, &floor);
    enum pawl_status st = floor_ok(s->floor, err);
    if (st == PAWL_OK)
        st = load_wait(s->lib,
                       &(struct load_wait){ .threads = threads, .seconds = s->run->size->seconds },
                       &figure, err);
    bench_rounds_add(out[0], figure.per_s, floor.per_s);
    bench_rounds_add(out[1], figure.p50_us, floor.p50_us);
    bench_rounds_add(out[2], figure.p99_us, floor.p99_us);
    return st;
}

static enum pawl_status wait_rounds(struct sides *s, struct pawl_err *err)
{
    struct bench_rounds *many[] = { &s->wait, &s->wait_p50, &s->wait_p99 };
    struct bench_rounds *one[] = { &s->one, &s->one_p50, &s->one_p99 };
    enum pawl_status st = load_start(s->lib, err);
    for (size_t i = 0; i < s->run->size->rounds && st == PAWL_OK; i++) {
        tell(s, "64 threads that wait");
        st = wait_round(s, THREADS, many, err);
        tell(s, "one thread that waits");
        if (st == PAWL_OK)
            st = wait_round(s, 1, one, err);
    }
    return st;
}

/* ---- The rows -------------------------------------------------------------------------------- */

static void rows_print(const struct sides *s)
{
    const struct bench_row rows[] = {
        { "accept, batches of 1,000, random ids", "/s", &s->accept, BENCH_RATIO_MIN,
          GOAL_OF_FLOOR },
        { "accept, batches of 1,000, UUIDv7", "/s", &s->accept_v7, BENCH_RATIO_MIN, GOAL_OF_FLOOR },
        { "drain by hand, claim 1,000 + finish 1,000", "/s", &s->drain, BENCH_RATIO_MIN,
          GOAL_OF_FLOOR },
        { "  beside a floor that reads no input", "/s", &s->drain_no_input, BENCH_NO_GOAL, 0 },
        { "drain by workers (floor: fused)", "/s", &s->work, BENCH_NO_GOAL, 0 },
        { "64 threads, submit one and wait", "/s", &s->wait, BENCH_FIGURE_MIN, GOAL_PER_S },
        { "  64 threads, latency p50", "us", &s->wait_p50, BENCH_NO_GOAL, 0 },
        { "  64 threads, latency p99", "us", &s->wait_p99, BENCH_NO_GOAL, 0 },
        { "1 thread, submit one and wait", "/s", &s->one, BENCH_NO_GOAL, 0 },
        { "  1 thread, latency p50", "us", &s->one_p50, BENCH_NO_GOAL, 0 },
        { "  1 thread, latency p99", "us", &s->one_p99, BENCH_NO_GOAL, 0 },
    };
    bench_table_begin(s->run->table, "main");
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        bench_table_row(s->run->table, &rows[i]);
    if (s->run->http)
        bench_http_rows(&s->http, s->run->table);
    bench_table_end(s->run->table);
}

static const char *engine_of(const struct bench_run *run)
{
    return run->engine ? run->engine : "sqlite:";
}

static enum pawl_status measure_http(struct sides *s, struct pawl_err *err)
{
    const struct bench_run *run = s->run;
    char db[sizeof run->files->http + 64];
    tell(s, "calls over HTTP");
    snprintf(db, sizeof db, "%s%s", engine_of(run), run->files->http);
    s->http = (struct bench_http){ .server = { .program = run->http->program,
                                               .echo = run->http->echo,
                                               .wallet = run->http->wallet,
                                               .db = db },
                                   .rounds = run->size->rounds,
                                   .seconds = run->size->seconds };
    return bench_http_run(&s->http, err);
}

static enum pawl_status measure(struct sides *s, struct pawl_err *err)
{
    AUTO(floor_end) struct floor *floor = NULL;
    AUTO(load_end) struct pawl *lib = NULL;
    enum pawl_status st =
        floor_open(&(struct floor_conf){ .path = s->run->files->floor }, &floor, err);
    if (st == PAWL_OK)
        st = load_open(&(struct load_conf){ .url = s->url, .node = "bench" }, &lib, err);
    s->floor = floor;
    s->lib = lib;
    if (st == PAWL_OK)
        st = batch_rounds(s, err);
    if (st == PAWL_OK)
        st = wait_rounds(s, err);
    return st;
}

enum pawl_status bench_rows(const struct bench_run *run, struct pawl_err *err)
{
    struct sides *s = calloc(1, sizeof *s);
    struct bench_id *ids = calloc(run->size->calls, sizeof *ids);
    enum pawl_status st = s && ids ? PAWL_OK : err_no_memory(err, "the benchmark");
    bench_table_load(run->table);
    if (st == PAWL_OK) {
        s->run = run;
        s->ids = ids;
        snprintf(s->url, sizeof s->url, "%s%s", engine_of(run), run->files->lib);
        st = measure(s, err);
    }
    if (st == PAWL_OK && run->http)
        st = measure_http(s, err);
    if (st == PAWL_OK)
        rows_print(s);
    free(ids);
    free(s);
    return st;
}
