/*
 * serve.c - the figures of `pawl serve` over HTTP, with longer rounds than `pawl bench`.
 *
 * Scratch files go into the working directory, which tools/bench-run.sh creates. PAWL_BENCH_QUICK:
 * shorter rounds. PAWL_BENCH_SECONDS: one round of that length, for a profiler.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/macros.h"
#include "bench/http.h"

int main(void)
{
    const char *quick = getenv("PAWL_BENCH_QUICK"), *seconds = getenv("PAWL_BENCH_SECONDS");
    bool is_quick = quick && *quick;
    struct bench_http http = { .server = { .program = PAWL_BUILD_DIR "/pawl",
                                           .echo = PAWL_BUILD_DIR "/samples/echo.so",
                                           .wallet = PAWL_BUILD_DIR "/samples/wallet.so",
                                           .db = "sqlite:serve.db" },
                               .rounds = is_quick ? 3 : 5,
                               .seconds = is_quick ? 1 : 3 };
    struct bench_table table = { .out = stdout };
    struct pawl_err err;
    if (seconds && *seconds) {
        http.rounds = 1;
        http.seconds = strtod(seconds, NULL);
    }
    bench_table_load(&table);
    enum pawl_status st = bench_http_run(&http, &err);
    if (st == PAWL_OK) {
        bench_table_begin(&table, "serve");
        bench_http_rows(&http, &table);
        bench_table_end(&table);
    } else {
        fprintf(stderr, "bench serve: %s\n", err.text);
    }
    static const char *const files[] = { "serve.db", "serve.db-wal", "serve.db-shm" };
    for (size_t i = 0; i < COUNT_OF(files); i++)
        unlink(files[i]);
    return st == PAWL_OK ? 0 : 1;
}
