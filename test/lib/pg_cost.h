/*
 * pg_cost.h - what a PostgreSQL server on this machine spends: processor time of all its processes,
 * bytes of its log, transactions.
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
    double cpu_s; /* of the postmaster and all that it ever started */
    int64_t wal;
    int64_t transactions; /* of the database; comes up to a second late */
};
/* False: the server cannot be asked, or is on another machine. */
bool pg_cost_read(const char *url, struct pg_cost *out);

/* As pg_log_begin(), for any server of this machine that one may tell what to write down, and whose
 * errors go into a file. False: not so. */
bool pg_cost_log(const char *url, struct pg_log *out);

/* Seconds a process has spent, with what its children had that are gone; 0: there is none. */
double pg_cost_process(pid_t pid);

#endif
