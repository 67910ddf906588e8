/*
 * http.h - the figures of `pawl serve`: calls over HTTP, and the memory that a waiting caller
 * needs.
 *
 * Shared by `pawl bench` and test/bench/serve.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H

#include "bench/server.h"
#include "bench/table.h"

struct bench_http {
    struct bench_server_conf server;
    size_t rounds;
    double seconds; /* of one round */
    struct bench_rounds many, many_p50, many_p99, one, one_p50, one_p99, idle, after, parked;
    struct bench_rounds hot, hot_p50, hot_p99, keys;
};

/* Paths of what is served. */
struct bench_beside {
    char program[1024], echo[1100], wallet[1100];
};
/* Find the running program, and the samples echo and wallet beside it, as in a build folder. False:
 * they are not there, and out_why says where they were looked for. */
bool bench_http_beside(struct bench_beside *out, char *out_why, size_t size);

/* Start servers on h->server.db, which the caller removes, measure, and fill the rounds. */
MUST_USE enum pawl_status bench_http_run(struct bench_http *h, struct pawl_err *err);
/* Print the rows, between bench_table_begin() and bench_table_end(). */
void bench_http_rows(const struct bench_http *h, struct bench_table *t);

#endif
