/*
 * web.h - the whole server in this process, for tests of the API: a database, a loop thread, real
 * sockets, and a client that reads members of the answers.
 *
 * Every function ends the case when it cannot do its work.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef WEB_H
#define WEB_H

#include <pthread.h>

#include "api/api.h"
#include "base/json.h"
#include "fixture.h"

struct web {
    struct pawl *p;
    struct loop *loop;
    struct api *api;
    struct http_server *server;
    pthread_t thread;
    bool stopped;
    const char *token; /* sent with every request; NULL: none */
    const char *more;  /* header lines, each with its CRLF, sent with every request; NULL: none */
};

/* Open the database of `param` and serve it with default settings. */
void web_begin(struct web *w, const void *param);
/* Serve the open database p, which web_end() closes. conf NULL: defaults. */
void web_begin_as(struct web *w, struct pawl *p, const struct api_conf *conf);
/* Answer waiting requests and close everything. */
void web_end(struct web *w);
/* The first half of web_end(): stop the server and wait until all answers are sent. web_end() must
 * still be called. */
void web_stop(struct web *w);

/* One answer. What it points at belongs to the thread, and is valid until its web_forget() or until
 * web_end(). */
struct web_answer {
    int status;
    struct bytes head, body;
    struct json *json; /* NULL: the body is not JSON */
};

/* Connect, send a request, read the answer, close. body NULL: none. */
struct web_answer web_ask(struct web *w, const char *method, const char *path, const char *body);
#define GET(w, path) web_ask(w, "GET", path, NULL)
#define POST(w, path, body) web_ask(w, "POST", path, body)
/* Connect to the server; the caller closes the socket. */
int web_connect(struct web *w);
/* How many requests are being answered, without this one. */
int web_open_requests(struct web *w);
/* Send one request on this socket; body NULL: none. */
void web_send(struct web *w, int fd, const char *method, const char *path, const char *body);
/* Read one answer from this socket. */
struct web_answer web_take(int fd);

/* A member by its path ("calls.0.id") as it was written, a string without its quotes; NULL when it
 * is missing. */
const char *web_at(struct web_answer a, const char *path);
/* The same as a number. */
int64_t web_int(struct web_answer a, const char *path);
#define AT(a, path) web_at(a, path)

/* Decide the ticks of schedules that are due, once, as the scheduler of node "test" would: it works
 * without workers, and so without a scheduler. */
void web_tick(struct web *w);
/* Store the schedule /v1/schedules/NAME with n times that are to come, a millisecond apart, and
 * these members (`,"overlap":"skip","call":{...}`). Returns the first of them; the database's clock
 * is this machine's. */
int64_t web_put_times(struct web *w, const char *name, int n, const char *members);
/* Wait until this time has passed. */
void web_wait_past(int64_t us);
/* The time as answers show it; it lives as long as an answer. */
const char *web_time(int64_t us);

/* For a thread other than the case's first: free the answers it got. */
void web_forget(void);

/* printf into memory that lives as long as an answer. */
char *web_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
