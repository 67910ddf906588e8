/*
 * pg_log.h - which statements a server of pg_server.h ran, how often and how long, from its log.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PG_LOG_H
#define PG_LOG_H

#include <stddef.h>

struct pg_log {
    char url[400];  /* connections made with it have all they run written down */
    char path[200]; /* of the log */
    long at;        /* read up to here */
};
/* From now on, for the database of this URL of pg_server_database()'s. */
void pg_log_begin(struct pg_log *log, const char *url);
/* What comes next counts, what came before does not. */
void pg_log_skip(struct pg_log *log);

struct pg_counted {
    char name[64]; /* of the prepared statement, or the beginning of its text */
    size_t n;      /* times it was executed */
    double ms;     /* in all, with parsing and binding */
};
struct pg_counts {
    struct pg_counted v[100]; /* in the order they came first; what does not fit is left out */
    size_t n;
    size_t all_n; /* the sums */
    double all_ms;
};
/* Since the last skip or count. */
void pg_log_count(struct pg_log *log, struct pg_counts *out);

#endif
