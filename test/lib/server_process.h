/*
 * server_process.h - `pawl serve` as a process that is killed and started again, and clients that
 * do not give up: what a program on the other side of a crash does.
 *
 * One server at a time, on the case's database. Everything here ends the case when it cannot do
 * what it says.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SERVER_PROCESS_H
#define SERVER_PROCESS_H

#include "base/arena.h"
#include "base/json.h"
#include "fixture.h"

/* ---- The server: one thread starts and ends it ------------------------------------------------
 */

/* Which engine, once, before it is started. */
void server_process_on(const void *param);
/* Start it; what it says on stderr is added to ./server.log. Nobody is told its port yet. */
void server_process_start(void);
/* Wait until it listens, and let clients in. */
void server_process_ready(void);
/* Kill -9 and reap. It must have been alive until then. */
void server_process_kill(void);
/* SIGTERM; it must end with status 0. */
void server_process_stop(void);

/* ---- A client: a thread each ------------------------------------------------------------------
 */

struct server_client {
    int fd; /* -1: not connected */
    struct arena a;
    char *buf;       /* owned */
    uint64_t seed;   /* of its dice */
    int lost;        /* answers that did not come */
    int port;        /* of a server that is not server_process.h's own; 0: the one that is */
    int patience_ms; /* an answer that has not come by then is lost; 0: ends the case */
};
void server_client_init(struct server_client *c, uint64_t seed);
void server_client_release(struct server_client *c);
/* 0..below-1 */
int64_t server_client_dice(struct server_client *c, int64_t below);

struct server_answer {
    int status;
    struct json *json; /* until the client's next question */
};
/* Ask until there is an answer, however often the server dies meanwhile: the same question each
 * time. body NULL: a GET. Statuses that ask to come again (503, 504) are asked again. */
struct server_answer server_client_ask(struct server_client *c, const char *path, const char *body);

/* Ask a server that lives once, whatever its answer. */
struct server_answer server_client_once(struct server_client *c, const char *path,
                                        const char *body);

/* Ask whoever listens on `port` once; 0: no answer came, and the connection is given up. */
struct server_answer server_client_try(struct server_client *c, int port, const char *path,
                                       const char *body);

/* Ask, and leave before the answer comes. */
void server_client_abandon(struct server_client *c, const char *path, const char *body);
void server_client_abandon_at(struct server_client *c, int port, const char *path,
                              const char *body);

/* A member of the answer as text, "" when it is none; numbers as written. */
const char *server_client_text(struct server_client *c, const struct json *object,
                               const char *member);
int64_t server_client_int(const struct json *object, const char *member);

#endif
