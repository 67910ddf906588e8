/*
 * server.h - `pawl serve` as a child process on a scratch database, for measuring.
 *
 * The server dies with the thread that started it. One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include <pawl.h>

#include "base/macros.h"

struct bench_server_conf {
    const char *program;       /* the pawl to run */
    const char *echo, *wallet; /* samples to load, as shared objects */
    const char *db;            /* the database's URL */
    const char *schema;        /* NULL: "pawl" */
};

struct bench_server {
    pid_t pid;
    int out;  /* its stdout; read up to the ready line */
    int port; /* on 127.0.0.1 */
};

/* Start it, and return when it listens. BUSY: it did not come up in 10 s; what it said is on
 * stderr. */
MUST_USE enum pawl_status bench_server_open(struct bench_server *s,
                                            const struct bench_server_conf *conf,
                                            struct pawl_err *err);
/* Kill it and reap it; accepts one that was never opened (all 0). */
void bench_server_close(struct bench_server *s);

/* Its resident memory in MiB; -1: it has ended. */
double bench_server_mib(const struct bench_server *s);

#endif
