/*
 * events.h - the event service: a server that numbers events, and workers that give them values.
 *
 * Two tables, `status(id)` with the counter and `events(id, value)`, without keys, indexes,
 * procedures or triggers. What keeps them right is said in README.md.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVENTS_EVENTS_H
#define EVENTS_EVENTS_H

#include <stdatomic.h>

#include "api/api.h"
#include "net/http.h"

/* Of a value, in characters, which are bytes in the words we make. */
#define EVENT_VALUE_MAX 255
/* The last id there can be: the column is an int of 32 bits. */
#define EVENT_ID_MAX INT64_C(2147483647)

/* A random word of 1 to EVENT_VALUE_MAX letters, ended with NUL; its length. Any thread. */
size_t event_word(const struct world *w, char out[EVENT_VALUE_MAX + 1]);

/* ---- The server ------------------------------------------------------------------------------ */

struct events_server;

/* Borrowed for the call, but for `db`. */
struct events_server_conf {
    const char *db;     /* the URL; never printed */
    const char *listen; /* as http_conf has it */
    const char *tls_cert, *tls_key;
    int connections;        /* 0: the usual limit */
    struct api_conf access; /* of it: tokens, origins and hosts */
    int64_t lifetime_us;    /* of connections to the database; 0: no end */
    size_t queue_max;       /* requests that wait for the database; 0: EVENTS_QUEUE_MAX */
};

/* Connected, tables made, listening. */
MUST_USE enum pawl_status events_server_open(const struct events_server_conf *conf,
                                             struct events_server **out, struct pawl_err *err);
const char *events_server_address(const struct events_server *s); /* borrowed */
/* Serve until events_server_stop(); the calling thread is the loop's. */
void events_server_run(struct events_server *s);
/* Accept nobody new, answer who is here, return from run. Any thread, and any number of times. */
void events_server_stop(struct events_server *s);
/* After run returned, or without it; accepts NULL. */
void events_server_close(struct events_server *s);

/* ---- Workers --------------------------------------------------------------------------------- */

struct events_workers;

/* Makes the value of one event, 1 to EVENT_VALUE_MAX bytes of UTF-8 into `out`; its length, or 0:
 * it cannot be made now. Any worker's thread. */
typedef size_t event_maker(void *ctx, int64_t id, char out[EVENT_VALUE_MAX + 1]);

struct events_workers_conf {
    const char *db;
    int threads;                /* each with a connection of its own */
    int batch;                  /* events of one transaction, 1..EVENTS_BATCH_MAX */
    int64_t poll_us, jitter_us; /* after an empty poll: so long, and up to so much more */
    int64_t skip_us; /* how long an event that failed is passed by at first; 0: a second */
    int64_t lifetime_us;
    event_maker *make; /* NULL: a random word */
    void *ctx;
};

struct events_figures {
    int64_t done, failed, polls, empty, again; /* again: transactions that met somebody and were
                                                  done once more */
};

MUST_USE enum pawl_status events_workers_open(const struct events_workers_conf *conf,
                                              struct events_workers **out, struct pawl_err *err);
/* No new batch is begun; what is under way ends. Any thread, any number of times. */
void events_workers_stop(struct events_workers *w);
/* Wait until they have stopped; accepts NULL. */
void events_workers_close(struct events_workers *w);
void events_workers_figures(const struct events_workers *w, struct events_figures *out);

#endif
