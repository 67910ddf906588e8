/*
 * events_fixture.h - the event service for tests: servers and workers as processes that can be
 * killed, a server in this process, clients, and checks of the tables.
 *
 * Every function ends the case when it cannot do its work.
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
    int out, port; /* port 0: a worker */
};
/* Start `pawl events WHAT` on the case's database with these options (NULL ends them); `crash` is
 * PAWL_CRASH, NULL: unset. Its stderr is appended to ./events.log. Does not wait until it is ready.
 */
struct events_proc events_start(const char *url, const char *what, const char *crash,
                                const char *const *options);
/* Wait until the process prints that it is ready. */
void events_ready(struct events_proc *p);
/* Send a signal and reap the process. Returns its status from waitpid(). */
int events_end(struct events_proc *p, int sig);

/* ---- A server in this process ---------------------------------------------------------------- */

struct events_here {
    struct events_server *s;
    pthread_t thread;
    int port;
};
/* Start a server on a thread of this process; queue_max 0: the default. */
void events_here_open(struct events_here *h, const char *url, size_t queue_max);
/* Stop the server and join its thread. */
void events_here_close(struct events_here *h);

/* ---- Clients --------------------------------------------------------------------------------- */

struct events_answer {
    int status; /* 0: the connection ended before an answer */
    char head[1024], body[2048];
    int64_t id; /* in the body; 0: none */
    char value[300];
};
/* Connect to the port; -1 when that fails. */
int events_connect(int port);
/* Send one request; body NULL: none. */
void events_send(int fd, const char *method, const char *path, const char *body);
/* Read the next answer. */
struct events_answer events_read(int fd);
/* Connect, send a request, read the answer, close. body NULL: none. */
struct events_answer events_ask(int port, const char *method, const char *path, const char *body);

/* ---- The tables ------------------------------------------------------------------------------ */

/* Assert that the ids are 1..n, each once, and that the counter is n. Returns n. */
int64_t events_whole(const char *param);
/* Create the tables and insert n pending events directly. */
void events_pending(const char *param, int n);
/* How many events are pending. */
int64_t events_left(const char *param);
/* Wait until no event is pending. */
void events_until_done(const char *param);

#endif
