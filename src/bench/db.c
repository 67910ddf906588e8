/*
 * db.c - the rows of `pawl bench` on a server's database (db.h).
 *
 * How many calls a round has is measured first, since a server may be far away, or slow.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench/db.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "bench/client.h"
#include "bench/engine.h"
#include "bench/load.h"

#define ROUNDS 3
#define CONNS 64
#define KEYS 10000
/* How long all rounds together, with the one for warming up, should take; it decides the calls of a
 * round. */
#define ENGINE_S 14.0
#define ENGINE_QUICK_S 4.0
#define STEP (BENCH_BATCH * BENCH_CONNS)
#define CALLS_MAX 40000
/* Seconds for one figure over HTTP, and for latencies. */
#define LOAD_S 1.0
#define LOAD_QUICK_S 0.4

struct figures {
    const struct bench_db *b;
    double seconds;
    struct bench_engine engine;
    struct bench_rounds work, latency_p50, latency_p99, post, one, one_p50, one_p99, many, many_p50,
        many_p99, hot, keys;
};

static void tell(const struct figures *f, const char *what)
{
    if (f->b->told)
        f->b->told(f->b->ctx, what);
}

/* ---- Beside the floor ------------------------------------------------------------------------ */

static void engine_make(struct figures *f, size_t rounds, size_t calls)
{
    const struct bench_scratch *s = f->b->scratch;
    f->engine = (struct bench_engine){ .place = { s->url, s->names[SCRATCH_ENGINE] },
                                       .floor_place = { s->url, s->names[SCRATCH_FLOOR] },
                                       .floor = bench_floor_of(s->url),
                                       .rounds = rounds,
                                       .calls = calls };
}

static enum pawl_status engine_rounds(struct figures *f, struct pawl_err *err)
{
    double began = bench_clock(), budget = f->b->quick ? ENGINE_QUICK_S : ENGINE_S;
    tell(f, "how fast the database is");
    engine_make(f, 1, STEP); /* two rounds: the first is for warming up */
    enum pawl_status st = bench_engine_run(&f->engine, err);
    double steps = budget / (ROUNDS + 1) / ((bench_clock() - began) / 2);
    size_t calls = (size_t)MAX(steps, 1) * STEP;
    tell(f, "storing and draining, beside the floor");
    engine_make(f, ROUNDS, MIN(calls, CALLS_MAX));
    return st == PAWL_OK ? bench_engine_run(&f->engine, err) : st;
}

/* ---- A process with workers ------------------------------------------------------------------ */

static enum pawl_status work_round(struct figures *f, struct pawl *p, struct pawl_err *err)
{
    double rate = 0;
    size_t n = f->engine.calls;
    struct load_batch fill = { .type = LOAD_TYPE_NOOP, .n = n, .batch = BENCH_BATCH };
    enum pawl_status st = load_submit(p, &fill, &rate, err);
    if (st == PAWL_OK)
        st = load_work_off(p, n, &rate, err);
    bench_rounds_add(&f->work, rate, 0);
    return st;
}

static enum pawl_status latency_round(struct figures *f, struct pawl *p, struct pawl_err *err)
{
    struct load_wait w = { .threads = 1, .seconds = 2 * f->seconds, .to_handler = true };
    struct load_waited out = { 0 };
    enum pawl_status st = load_start(p, err);
    if (st == PAWL_OK)
        st = load_wait(p, &w, &out, err);
    bench_rounds_add(&f->latency_p50, out.p50_us, 0);
    bench_rounds_add(&f->latency_p99, out.p99_us, 0);
    return st;
}

/* A handle whose workers drained a backlog has stopped them, so another handle measures latency. */
static enum pawl_status library_rounds(struct figures *f, struct pawl_err *err)
{
    const struct bench_scratch *s = f->b->scratch;
    struct load_conf conf = { s->url, s->names[SCRATCH_SERVED], "bench", false };
    AUTO(load_end) struct pawl *worker = NULL;
    AUTO(load_end) struct pawl *idle = NULL;
    tell(f, "draining by workers");
    enum pawl_status st = load_open(&conf, &worker, err);
    if (st == PAWL_OK)
        st = work_round(f, worker, err);
    tell(f, "one call at a time");
    conf.node = "idle";
    if (st == PAWL_OK)
        st = load_open(&conf, &idle, err);
    return st == PAWL_OK ? latency_round(f, idle, err) : st;
}

/* ---- Over HTTP ------------------------------------------------------------------------------- */

static enum pawl_status hit(struct bench_hits *hits, struct bench_rounds *rate,
                            struct bench_rounds *p50, struct bench_rounds *p99,
                            struct pawl_err *err)
{
    struct bench_hit out = { 0 };
    enum pawl_status st = bench_client_hit(hits, &out, err);
    bench_rounds_add(rate, out.per_s, 0);
    if (p50)
        bench_rounds_add(p50, out.p50_us, 0);
    if (p99)
        bench_rounds_add(p99, out.p99_us, 0);
    return st;
}

static enum pawl_status http_round(struct figures *f, int port, struct pawl_err *err)
{
    struct bench_hits hits = {
        .port = port, .conns = CONNS, .seconds = f->seconds, .type = LOAD_TYPE_HAND
    };
    hits.no_wait = true;
    enum pawl_status st = hit(&hits, &f->post, NULL, NULL, err);
    hits.no_wait = false;
    hits.type = "echo";
    if (st == PAWL_OK)
        st = hit(&hits, &f->many, &f->many_p50, &f->many_p99, err);
    hits.conns = 1;
    if (st == PAWL_OK)
        st = hit(&hits, &f->one, &f->one_p50, &f->one_p99, err);
    hits.conns = CONNS;
    hits.keys = 1;
    if (st == PAWL_OK)
        st = hit(&hits, &f->hot, NULL, NULL, err);
    hits.keys = KEYS;
    return st == PAWL_OK ? hit(&hits, &f->keys, NULL, NULL, err) : st;
}

static enum pawl_status http_rounds(struct figures *f, struct pawl_err *err)
{
    const struct bench_scratch *s = f->b->scratch;
    struct bench_server_conf conf = { .program = f->b->http->program,
                                      .echo = f->b->http->echo,
                                      .wallet = f->b->http->wallet,
                                      .db = s->url,
                                      .schema = s->names[SCRATCH_SERVED] };
    struct bench_server server = { 0 };
    tell(f, "calls over HTTP");
    enum pawl_status st = bench_server_open(&server, &conf, err);
    for (int i = 0; i < (f->b->quick ? 1 : ROUNDS) && st == PAWL_OK; i++)
        st = http_round(f, server.port, err);
    bench_server_close(&server);
    return st;
}

/* ---- The rows -------------------------------------------------------------------------------- */

static void rows_print(const struct figures *f)
{
    const struct bench_engine *e = &f->engine;
    const struct bench_row rows[] = {
        { "enqueue, batches of 1,000", "/s", &e->accept, BENCH_NO_GOAL, 0 },
        { "enqueue, 1,000 callers in one commit", "/s", &e->singles, BENCH_NO_GOAL, 0 },
        { "enqueue, HTTP, 64 connections one by one", "/s", &f->post, BENCH_NO_GOAL, 0 },
        { "drain, claim 1,000 + finish 1,000", "/s", &e->drain, BENCH_NO_GOAL, 0 },
        { "drain, finish and claim in one commit", "/s", &e->fused, BENCH_NO_GOAL, 0 },
        { "drain by workers", "/s", &f->work, BENCH_NO_GOAL, 0 },
        { "latency until the handler ran, p50", "us", &f->latency_p50, BENCH_NO_GOAL, 0 },
        { "  p99", "us", &f->latency_p99, BENCH_NO_GOAL, 0 },
        { "HTTP, 1 connection, submit one and wait", "/s", &f->one, BENCH_NO_GOAL, 0 },
        { "  1 connection, latency p50", "us", &f->one_p50, BENCH_NO_GOAL, 0 },
        { "  1 connection, latency p99", "us", &f->one_p99, BENCH_NO_GOAL, 0 },
        { "HTTP, 64 connections, submit one and wait", "/s", &f->many, BENCH_NO_GOAL, 0 },
        { "  64 connections, latency p50", "us", &f->many_p50, BENCH_NO_GOAL, 0 },
        { "  64 connections, latency p99", "us", &f->many_p99, BENCH_NO_GOAL, 0 },
        { "HTTP, 64 connections, one key", "/s", &f->hot, BENCH_NO_GOAL, 0 },
        { "HTTP, 64 connections, 10,000 keys", "/s", &f->keys, BENCH_NO_GOAL, 0 },
    };
    bench_table_begin(f->b->table, bench_floor_of(f->b->scratch->url) == &bench_floor_pg
                                       ? "PostgreSQL, beside straight libpq"
                                       : "MariaDB or MySQL, beside straight libmariadb");
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].rounds->n)
            bench_table_row(f->b->table, &rows[i]);
    bench_table_end(f->b->table);
}

enum pawl_status bench_db(const struct bench_db *b, struct pawl_err *err)
{
    struct figures *f = calloc(1, sizeof *f);
    if (!f)
        return err_no_memory(err, "the benchmark");
    f->b = b;
    f->seconds = b->quick ? LOAD_QUICK_S : LOAD_S;
    bench_table_load(b->table);
    enum pawl_status st = engine_rounds(f, err);
    if (st == PAWL_OK)
        st = library_rounds(f, err);
    if (st == PAWL_OK && b->http)
        st = http_rounds(f, err);
    if (st == PAWL_OK)
        rows_print(f);
    free(f);
    return st;
}
