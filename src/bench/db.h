/*
 * db.h - the rows of `pawl bench` on a server's database: the engine beside plain libpq or
 * libmariadb, workers, latency, and calls over HTTP.
 *
 * Everything happens in scratch schemas that exist already; nothing is made or removed.
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
/* Measure and print the rows at the end. Takes 15 to 40 seconds, however fast the database is;
 * quick: a third of that. */
MUST_USE enum pawl_status bench_db(const struct bench_db *b, struct pawl_err *err);

#endif
