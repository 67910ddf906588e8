/*
 * events_fixture.h - the event service for tests: servers and workers as processes that can be
 * killed, a server in this process, clients that ask, and a look at what the tables say.
 *
 * Everything here ends the case when it cannot do what it says.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVENTS_FIXTURE_H
#define EVENTS_FIXTURE_H

#include <pthread.h>
#include <sys/types.h>

#include "check.h"
#include "engines.h"
#include "events/events.h"

/* ---- Processes ------------------------------------------------------------------------------- */

struct events_proc {
    pid_t pid;
    int out, port; /* 0: a worker */
};
/* `pawl events WHAT` on the case's database with these options (NULL ends them); crash (may be
 * NULL) is PAWL_CRASH. What it says on stderr is added to ./events.log. Not waited for. */
struct events_proc events_start(const char *url, const char *what, const char *crash,
                                const char *const *options);
/* Wait until it says that it is ready. */
void events_ready(struct events_proc *p);
/* Send it a signal and reap it; its status as waitpid() has it. */
int events_end(struct events_proc *p, int sig);

/* ---- A server in this process ---------------------------------------------------------------- */

struct events_here {
    struct events_server *s;
    pthread_t thread;
    int port;
};
/* queue_max 0: the usual. */
void events_here_open(struct events_here *h, const char *url, size_t queue_max);
void events_here_close(struct events_here *h);

/* ---- Clients --------------------------------------------------------------------------------- */

struct events_answer {
    int status; /* 0: the connection ended before it */
    char head[1024], body[2048];
    int64_t id; /* of the body; 0: none */
    char value[300];
};
/* A connection; -1 when there is none to be had. */
int events_connect(int port);
void events_send(int fd, const char *method, const char *path, const char *body);
/* The next answer. */
struct events_answer events_read(int fd);
/* Connect, ask, read, hang up. body NULL: none. */
struct events_answer events_ask(int port, const char *method, const char *path, const char *body);

/* ---- The tables ------------------------------------------------------------------------------ */

/* Ids are 1..n, each once, and the counter says n; n. */
int64_t events_whole(const char *param);
/* n pending events, straight into the tables, which are made. */
void events_pending(const char *param, int n);
int64_t events_left(const char *param);
/* Wait until none is left. */
void events_until_done(const char *param);

#endif
