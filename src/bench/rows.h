/*
 * rows.h - the main figures on SQLite: the library beside the floor, in alternating rounds on one
 * disk.
 *
 * Shared by `pawl bench` and test/bench/main.c, so that a user measures what the project measures.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <stddef.h>

#include <pawl.h>

#include "base/macros.h"
#include "bench/http.h"
#include "bench/table.h"

/* Files of the floor, the library and the server. bench_rows() makes them; its caller removes them,
 * with their -wal and -shm. */
struct bench_files {
    char floor[1024], lib[1024], http[1024];
};
/* Choose names in the folder `dir`. INVALID: they do not fit. */
MUST_USE enum pawl_status bench_files_name(const char *dir, struct bench_files *out,
                                           struct pawl_err *err);
/* Remove the files. Uses only unlink(), so it is safe in a signal handler. */
void bench_files_remove(const struct bench_files *files);

struct bench_size {
    size_t rounds;
    size_t calls;   /* of one round of batches, a multiple of 1,000 */
    double seconds; /* of one round of waiting threads */
};
extern const struct bench_size bench_size_full, bench_size_user, bench_size_quick;

/* Called with the name of what is measured next. */
typedef void bench_told(void *ctx, const char *what);

struct bench_run {
    const struct bench_files *files;
    const char *engine; /* the beginning of the URL; NULL: "sqlite:" */
    const struct bench_size *size;
    struct bench_table *table;
    bench_told *told; /* may be NULL */
    void *ctx;
    const struct bench_beside *http; /* what to serve over HTTP; NULL: no such rows */
};
/* Measure, and print the rows at the end, so that an error leaves no half table. */
MUST_USE enum pawl_status bench_rows(const struct bench_run *run, struct pawl_err *err);

#endif
