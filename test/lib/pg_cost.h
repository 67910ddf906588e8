/*
 * pg_cost.h - the cost of work on a PostgreSQL server of this machine: CPU time of its processes,
 * bytes of WAL, transactions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PG_COST_H
#define PG_COST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pg_log.h"

struct pg_cost {
    double cpu_s; /* of the postmaster and all processes it ever started */
    int64_t wal;
    int64_t transactions; /* of the database; up to a second late */
};
/* Read the present totals. False: the query failed, or the server is on another machine. */
bool pg_cost_read(const char *url, struct pg_cost *out);

/* As pg_log_begin(), for any server of this machine that logs to a file and whose log settings this
 * account may change. False: that is not the case. */
bool pg_cost_log(const char *url, struct pg_log *out);

/* CPU seconds of a process and of its ended children; 0: there is no such process. */
double pg_cost_process(pid_t pid);

#endif
