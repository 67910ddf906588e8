/*
 * pg_log.h - which statements a PostgreSQL server ran, how often and how long, from its log.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PG_LOG_H
#define PG_LOG_H

#include <stddef.h>

struct pg_log {
    char url[400];  /* connections made with this URL log all their statements */
    char path[200]; /* path of the log file */
    long at;        /* the log is read up to here */
};
/* Start logging for the database of this URL, which is one of db_database()'s. */
void pg_log_begin(struct pg_log *log, const char *url);
/* Ignore what was logged so far. */
void pg_log_skip(struct pg_log *log);

struct pg_counted {
    char name[64]; /* of the prepared statement, or the beginning of its text */
    size_t n;      /* times it was executed */
    double ms;     /* total, with parsing and binding */
};
struct pg_counts {
    struct pg_counted v[100]; /* in the order of their first use; more than 100 are left out */
    size_t n;
    size_t all_n; /* the sums */
    double all_ms;
};
/* Count the statements since the last skip or count. */
void pg_log_count(struct pg_log *log, struct pg_counts *out);

#endif
