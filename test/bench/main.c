/*
 * main.c - the main figures, with longer rounds than `pawl bench`: the library compared with plain
 * SQL.
 *
 * Scratch files go into the working directory, which tools/bench-run.sh creates. PAWL_BENCH_QUICK:
 * fewer calls.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/rows.h"

int main(void)
{
    const char *quick = getenv("PAWL_BENCH_QUICK");
    struct bench_table table = { .out = stdout };
    struct bench_files files;
    struct pawl_err err;
    struct bench_run run = { .files = &files,
                             .size = quick && *quick ? &bench_size_quick : &bench_size_full,
                             .table = &table };
    enum pawl_status st = bench_files_name(".", &files, &err);
    if (st == PAWL_OK)
        st = bench_rows(&run, &err);
    if (st != PAWL_OK)
        fprintf(stderr, "bench main: %s\n", err.text);
    bench_files_remove(&files);
    return st == PAWL_OK ? 0 : 1;
}
