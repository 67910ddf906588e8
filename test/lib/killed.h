/*
 * killed.h - `pawl serve` as a process that is killed and started again, and clients that do not
 * give up: what a program on the other side of a crash does.
 *
 * One server at a time, on the case's database. Everything here ends the case when it cannot do
 * what it says.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILLED_H
#define KILLED_H

#include "base/arena.h"
#include "base/json.h"
#include "rig.h"

/* ---- The server: one thread starts and ends it ------------------------------------------------
 */

/* Which engine, once, before it is started. */
void killed_on(const void *param);
/* Start it; what it says on stderr is added to ./server.log. Nobody is told its port yet. */
void killed_start(void);
/* Wait until it listens, and let clients in. */
void killed_ready(void);
/* Kill -9 and reap. It must have been alive until then. */
void killed_kill(void);
/* SIGTERM; it must end with status 0. */
void killed_stop(void);

/* ---- A client: a thread each ------------------------------------------------------------------
 */

struct killed_client {
    int fd; /* -1: not connected */
    struct arena a;
    char *buf;       /* owned */
    uint64_t seed;   /* of its dice */
    int lost;        /* answers that did not come */
    int port;        /* of a server that is not killed.h's own; 0: the one that is */
    int patience_ms; /* an answer that has not come by then is lost; 0: ends the case */
};
void killed_client_init(struct killed_client *c, uint64_t seed);
void killed_client_release(struct killed_client *c);
/* 0..below-1 */
int64_t killed_dice(struct killed_client *c, int64_t below);

struct killed_answer {
    int status;
    struct json *json; /* until the client's next question */
};
/* Ask until there is an answer, however often the server dies meanwhile: the same question each
 * time. body NULL: a GET. Statuses that ask to come again (503, 504) are asked again. */
struct killed_answer killed_ask(struct killed_client *c, const char *path, const char *body);

/* Ask a server that lives once, whatever its answer. */
struct killed_answer killed_once(struct killed_client *c, const char *path, const char *body);

/* Ask whoever listens on `port` once; 0: no answer came, and the connection is given up. */
struct killed_answer killed_try(struct killed_client *c, int port, const char *path,
                                const char *body);

/* Ask, and leave before the answer comes. */
void killed_abandon(struct killed_client *c, const char *path, const char *body);
void killed_abandon_at(struct killed_client *c, int port, const char *path, const char *body);

/* A member of the answer as text, "" when it is none; numbers as written. */
const char *killed_text(struct killed_client *c, const struct json *object, const char *member);
int64_t killed_int(const struct json *object, const char *member);

#endif
