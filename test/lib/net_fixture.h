/*
 * net_fixture.h - an HTTP server on a loop thread, and a client that speaks raw bytes to it.
 *
 * The handler answers by path: /dump (what it was given, as text), /park (nothing until
 * net_release; on_gone is counted), /leave (parks, and replies "left" when its client is gone),
 * /close, /204, /big/N (N bytes), /evil (a header with CRLF in it).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NET_FIXTURE_H
#define NET_FIXTURE_H

#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "net/http.h"

struct net_fixture {
    struct http_conf conf;
    struct loop *loop;
    struct http_server *server;
    pthread_t thread;
    struct http_request *parked; /* linked by user; loop thread */
    atomic_int n_parked, n_gone, n_requests, n_drained;
    int64_t live; /* allocations before */
};

/* Defaults; change conf before net_begin(). */
void net_init(struct net_fixture *fixture);
void net_begin(struct net_fixture *fixture);
/* Answer what is parked, close, check that no memory of ours is left. */
void net_end(struct net_fixture *fixture);
/* Run on the loop thread and wait for it. */
void net_on_loop(struct net_fixture *fixture, void (*fn)(struct net_fixture *fixture, void *arg),
                 void *arg);
/* Answer everything parked with 200 "late". */
void net_release(struct net_fixture *fixture);
void net_stats(struct net_fixture *fixture, struct http_stats *out);

/* A blocking socket with a timeout. */
int net_connect(struct net_fixture *fixture);
int net_port(struct net_fixture *fixture);
void net_send(int fd, const char *bytes, size_t len);
void net_say(int fd, const char *text);
/* One answer, head and body; Date's value is replaced by `-`. "" at the end of the stream. Valid
 * until the next call in this thread. */
const char *net_answer(int fd);
/* The same for an answer without a body whatever its length says. */
const char *net_answer_head(int fd);
/* True when the stream ends here. */
bool net_ended(int fd);
/* Connect, say, one answer, close. */
const char *net_ask(struct net_fixture *fixture, const char *text);
/* The status of one answer to `text`. */
int net_status(struct net_fixture *fixture, const char *text);

/* Wait until x, up to 10 s. */
#define NET_UNTIL(x)                                                                               \
    do {                                                                                           \
        for (int net_i = 0; !(x); net_i++) {                                                       \
            if (net_i > 5000 * check_scale())                                                      \
                FAIL("did not happen: %s", #x);                                                    \
            net_nap();                                                                             \
        }                                                                                          \
    } while (0)
void net_nap(void); /* 2 ms */

#endif
