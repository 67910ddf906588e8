/*
 * web.h - the whole server in this process for tests of the API: a database, a loop thread, real
 * sockets, and a client that asks and looks into the answers.
 *
 * Everything here ends the case when it cannot do what it says.
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

/* Open the database `param` names and serve it. Change *conf (NULL: defaults) to have tokens. */
void web_begin(struct web *w, const void *param);
void web_begin_as(struct web *w, struct pawl *p, const struct api_conf *conf);
/* Answer what is parked, close everything. */
void web_end(struct web *w);
/* The first half of it alone: stop, and let the answers go out. Then web_end() as ever. */
void web_stop(struct web *w);

/* One answer; what it points at is the thread's, and lives until its web_forget() or web_end(). */
struct web_answer {
    int status;
    struct bytes head, body;
    struct json *json; /* NULL: the body is none */
};

/* Connect, ask, take the answer, close. body NULL: none. */
struct web_answer web_ask(struct web *w, const char *method, const char *path, const char *body);
#define GET(w, path) web_ask(w, "GET", path, NULL)
#define POST(w, path, body) web_ask(w, "POST", path, body)
/* The same in two steps, on a socket of one's own. */
int web_connect(struct web *w);
/* Requests that are being answered, this question left out. */
int web_open_requests(struct web *w);
void web_send(struct web *w, int fd, const char *method, const char *path, const char *body);
struct web_answer web_take(int fd);

/* A member by its path ("calls.0.id") as it was written, a string without its quotes; NULL: there
 * is none. */
const char *web_at(struct web_answer a, const char *path);
int64_t web_int(struct web_answer a, const char *path);
#define AT(a, path) web_at(a, path)

/* A thread other than the case's own lets go of what it was answered. */
void web_forget(void);

/* printf into memory that lives as long. */
char *web_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
