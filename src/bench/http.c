/*
 * http.c - the figures of `pawl serve` (http.h).
 *
 * It uses two servers. A fresh one is idle, then holds waiting callers, so that their memory is not
 * hidden in memory that an earlier load left behind. The other one gets the load.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench/http.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "bench/client.h"

/* The load, and goals for a load generator and a server that share the processors. */
#define CONNS 64
#define GOAL_PER_S 15000
#define GOAL_HOT_PER_S 5000
/* Calls of many keys, to compare with calls without a key. */
#define KEYS 10000
#define GOAL_KEYS_RATIO 0.5
#define GOAL_P50_US 1000
#define GOAL_IDLE_MIB 30
#define PARKED 5000
#define GOAL_PARKED_MIB 150

bool bench_http_beside(struct bench_beside *out, char *out_why, size_t size)
{
    char self[sizeof out->program] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0) {
        snprintf(out_why, size, "this program does not know where it is");
        return false;
    }
    memcpy(out->program, self, sizeof self);
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    snprintf(out->echo, sizeof out->echo, "%s/samples/echo.so", self);
    snprintf(out->wallet, sizeof out->wallet, "%s/samples/wallet.so", self);
    bool echo = access(out->echo, R_OK) == 0;
    if (echo && access(out->wallet, R_OK) == 0)
        return true;
    snprintf(out_why, size, "there is no %s to serve", echo ? out->wallet : out->echo);
    return false;
}

static enum pawl_status park_round(struct bench_http *h, struct pawl_err *err)
{
    struct bench_server s = { 0 };
    struct bench_parked *parked = NULL;
    struct bench_hit one;
    size_t room = bench_client_files(PARKED);
    if (room < PARKED)
        return err_set(err, PAWL_FULL, "the system allows %zu connections, not %d", room, PARKED);
    enum pawl_status st = bench_server_open(&s, &h->server, err);
    struct bench_hits hits = { .port = s.port, .conns = 1, .seconds = 0.02, .type = "echo" };
    if (st == PAWL_OK)
        st = bench_client_hit(&hits, &one, err); /* warm: every path has run once */
    double idle = bench_server_mib(&s);
    hits.conns = PARKED;
    hits.type = "nobody.serves.this";
    if (st == PAWL_OK)
        st = bench_client_park(&hits, &parked, err);
    if (st == PAWL_OK) {
        bench_rounds_add(&h->idle, idle, 0);
        bench_rounds_add(&h->parked, bench_server_mib(&s), 0);
    }
    bench_client_leave(parked);
    bench_server_close(&s);
    return st;
}

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

/* Measure calls of many keys, and right after them the same without a key. */
static enum pawl_status keys_round(struct bench_http *h, int port, struct pawl_err *err)
{
    struct bench_hits hits = { .port = port, .conns = CONNS, .seconds = h->seconds, .keys = KEYS };
    struct bench_hit keyed = { 0 }, plain = { 0 };
    enum pawl_status st = bench_client_hit(&hits, &keyed, err);
    hits.keys = 0;
    hits.type = "echo";
    if (st == PAWL_OK)
        st = bench_client_hit(&hits, &plain, err);
    bench_rounds_add(&h->keys, keyed.per_s, plain.per_s);
    return st;
}

static enum pawl_status load_rounds(struct bench_http *h, struct pawl_err *err)
{
    struct bench_rounds *const many[] = { &h->many, &h->many_p50, &h->many_p99 };
    struct bench_rounds *const one[] = { &h->one, &h->one_p50, &h->one_p99 };
    struct bench_rounds *const hot[] = { &h->hot, &h->hot_p50, &h->hot_p99 };
    struct bench_server s = { 0 };
    enum pawl_status st = bench_server_open(&s, &h->server, err);
    struct bench_hits hits = { .port = s.port, .seconds = h->seconds, .type = "echo" };
    for (size_t i = 0; i < h->rounds && st == PAWL_OK; i++) {
        hits.conns = CONNS;
        st = hit_round(&hits, many, err);
        hits.conns = 1;
        if (st == PAWL_OK)
            st = hit_round(&hits, one, err);
        hits.conns = CONNS;
        hits.keys = 1;
        if (st == PAWL_OK)
            st = hit_round(&hits, hot, err);
        hits.keys = 0;
        if (st == PAWL_OK)
            st = keys_round(h, s.port, err);
    }
    if (st == PAWL_OK)
        bench_rounds_add(&h->after, bench_server_mib(&s), 0);
    bench_server_close(&s);
    return st;
}

enum pawl_status bench_http_run(struct bench_http *h, struct pawl_err *err)
{
    enum pawl_status st = park_round(h, err);
    return st == PAWL_OK ? load_rounds(h, err) : st;
}

void bench_http_rows(const struct bench_http *h, struct bench_table *t)
{
    const struct bench_row rows[] = {
        { "HTTP, 64 connections, submit one and wait", "/s", &h->many, BENCH_FIGURE_MIN,
          GOAL_PER_S },
        { "  64 connections, latency p50", "us", &h->many_p50, BENCH_NO_GOAL, 0 },
        { "  64 connections, latency p99", "us", &h->many_p99, BENCH_NO_GOAL, 0 },
        { "HTTP, 1 connection, submit one and wait", "/s", &h->one, BENCH_NO_GOAL, 0 },
        { "  1 connection, latency p50", "us", &h->one_p50, BENCH_FIGURE_MAX, GOAL_P50_US },
        { "  1 connection, latency p99", "us", &h->one_p99, BENCH_NO_GOAL, 0 },
        { "HTTP, 64 connections, one key, Wallet.add", "/s", &h->hot, BENCH_FIGURE_MIN,
          GOAL_HOT_PER_S },
        { "  one key, latency p50", "us", &h->hot_p50, BENCH_NO_GOAL, 0 },
        { "  one key, latency p99", "us", &h->hot_p99, BENCH_NO_GOAL, 0 },
        { "HTTP, 10,000 keys (beside: no key)", "/s", &h->keys, BENCH_RATIO_MIN, GOAL_KEYS_RATIO },
        { "server, idle, resident", "MiB", &h->idle, BENCH_FIGURE_MAX, GOAL_IDLE_MIB },
        { "  with 5,000 callers that wait", "MiB", &h->parked, BENCH_FIGURE_MAX, GOAL_PARKED_MIB },
        { "  after the load", "MiB", &h->after, BENCH_NO_GOAL, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        bench_table_row(t, &rows[i]);
}
