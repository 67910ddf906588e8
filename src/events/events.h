/*
 * events.h - the event service: a server that numbers events, and workers that give them values.
 *
 * Two tables, `status(id)` with the counter and `events(id, value)`, without keys, indexes,
 * procedures or triggers. README.md says how they stay consistent.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVENTS_EVENTS_H
#define EVENTS_EVENTS_H

#include <stdatomic.h>

#include "api/api.h"
#include "net/http.h"

/* The length of a value in characters; in the words made here these are bytes. */
#define EVENT_VALUE_MAX 255
/* The largest id: the column is an int of 32 bits. */
#define EVENT_ID_MAX INT64_C(2147483647)

/* Write a random word of 1 to EVENT_VALUE_MAX letters, ended with NUL, and return its length. Any
 * thread. */
size_t event_word(const struct world *w, char out[EVENT_VALUE_MAX + 1]);

/* ---- The server ------------------------------------------------------------------------------ */

struct events_server;

/* Borrowed for the call, except `db`, which must outlive the server. */
struct events_server_conf {
    const char *db;     /* the URL; never printed */
    const char *listen; /* as in http_conf */
    const char *tls_cert, *tls_key;
    int connections;        /* 0: the default limit */
    struct api_conf access; /* used: tokens, origins and hosts */
    int64_t lifetime_us;    /* of connections to the database; 0: unlimited */
    size_t queue_max;       /* requests that may wait for the database; 0: EVENTS_QUEUE_MAX */
};

/* Connect, create the tables if they are missing, and listen. On failure err names the cause. */
MUST_USE enum pawl_status events_server_open(const struct events_server_conf *conf,
                                             struct events_server **out, struct pawl_err *err);
/* The address that it listens on; borrowed. */
const char *events_server_address(const struct events_server *s);
/* Serve until events_server_stop(). The calling thread is the loop thread. */
void events_server_run(struct events_server *s);
/* Accept no further connection, answer the requests that wait, and make run return. Any thread, any
 * number of times. */
void events_server_stop(struct events_server *s);
/* Free it, after run has returned or without it; accepts NULL. */
void events_server_close(struct events_server *s);

/* ---- Workers --------------------------------------------------------------------------------- */

struct events_workers;

/* Make the value of one event: 1 to EVENT_VALUE_MAX bytes of UTF-8 in `out`. Returns its length, or
 * 0 when it cannot be made now. Runs on any worker's thread. */
typedef size_t event_maker(void *ctx, int64_t id, char out[EVENT_VALUE_MAX + 1]);

struct events_workers_conf {
    const char *db;
    int threads;                /* each with its own connection */
    int batch;                  /* events in one transaction, 1..EVENTS_BATCH_MAX */
    int64_t poll_us, jitter_us; /* after an empty poll: wait this long, plus a random part of the
                                   jitter */
    int64_t skip_us;            /* how long an event that failed is skipped at first; 0: a second */
    int64_t lifetime_us;
    event_maker *make; /* NULL: a random word */
    void *ctx;
};

struct events_figures {
    int64_t done, failed, polls, empty, again; /* again: transactions that were repeated after a
                                                  conflict with another */
};

/* Connect, create the tables if they are missing, and start the threads. On failure err names the
 * cause. */
MUST_USE enum pawl_status events_workers_open(const struct events_workers_conf *conf,
                                              struct events_workers **out, struct pawl_err *err);
/* Begin no new batch; batches that have begun are finished. Any thread, any number of times. */
void events_workers_stop(struct events_workers *w);
/* Wait until the threads have stopped, and free them; accepts NULL. Stops them first. */
void events_workers_close(struct events_workers *w);
/* Read the counters. Any thread. */
void events_workers_figures(const struct events_workers *w, struct events_figures *out);

#endif
