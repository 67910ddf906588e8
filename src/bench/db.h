/*
 * db.h - the rows of `pawl bench` on a server's database: the engine beside straight libpq or
 * libmariadb, workers, latency, and calls over HTTP.
 *
 * Everything happens in a scratch place that is there already; nothing is made or removed.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_DB_H
#define BENCH_DB_H

#include "bench/rows.h"
#include "bench/scratch.h"

struct bench_db {
    const struct bench_scratch *scratch;
    bool quick;
    struct bench_table *table;
    bench_told *told;
    void *ctx;
    const struct bench_beside *http; /* what to serve over HTTP; NULL: no such rows */
};
/* Some 15 to 40 seconds, whatever the database's speed; quick: a third of it. Prints its rows at
 * the end. */
MUST_USE enum pawl_status bench_db(const struct bench_db *b, struct pawl_err *err);

#endif
