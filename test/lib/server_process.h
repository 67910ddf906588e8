/*
 * server_process.h - `pawl serve` as a process that tests kill and start again, and clients that
 * repeat a request until it is answered.
 *
 * One server at a time, on the case's database. Every function ends the case when it cannot do its
 * work.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SERVER_PROCESS_H
#define SERVER_PROCESS_H

#include "base/arena.h"
#include "base/json.h"
#include "fixture.h"

/* ---- The server: one thread starts and ends it ----------------------------------------------- */

/* Choose the engine; once, before the first start. */
void server_process_on(const void *param);
/* Start the server. Its stderr is appended to ./server.log. Clients do not get its port yet. */
void server_process_start(void);
/* Wait until the server listens, and give clients its port. */
void server_process_ready(void);
/* Kill the server with SIGKILL and reap it. It must have been running until then. */
void server_process_kill(void);
/* Stop the server with SIGTERM; it must end with status 0. */
void server_process_stop(void);

/* ---- A client: a thread each ----------------------------------------------------------------- */

struct server_client {
    int fd; /* -1: not connected */
    struct arena a;
    char *buf;       /* owned */
    uint64_t seed;   /* of its random numbers */
    int lost;        /* answers that did not arrive */
    int port;        /* of another server; 0: the one that server_process_start() started */
    int patience_ms; /* how long to wait for an answer before it counts as lost; 0: a late answer
                        ends the case */
};
/* A client that is not connected yet. */
void server_client_init(struct server_client *c, uint64_t seed);
/* Close the connection and free the client. */
void server_client_release(struct server_client *c);
/* A random number from 0 to below-1. */
int64_t server_client_dice(struct server_client *c, int64_t below);

struct server_answer {
    int status;
    struct json *json; /* valid until the client's next request */
};
/* Send the same request until it is answered, even if the server is killed meanwhile. body NULL: a
 * GET. Answers 503 and 504 are repeated too. */
struct server_answer server_client_ask(struct server_client *c, const char *path, const char *body);

/* Send a request once to a running server, and return any answer. */
struct server_answer server_client_once(struct server_client *c, const char *path,
                                        const char *body);

/* Send a request once to the server on `port`. Status 0: no answer came, and the connection was
 * closed. */
struct server_answer server_client_try(struct server_client *c, int port, const char *path,
                                       const char *body);

/* Send a request and close the connection before the answer comes. */
void server_client_abandon(struct server_client *c, const char *path, const char *body);
/* The same to the server on `port`. */
void server_client_abandon_at(struct server_client *c, int port, const char *path,
                              const char *body);

/* A member of the answer as text, numbers as written; "" when it is missing. */
const char *server_client_text(struct server_client *c, const struct json *object,
                               const char *member);
/* A member of the answer as a number. */
int64_t server_client_int(const struct json *object, const char *member);

#endif
