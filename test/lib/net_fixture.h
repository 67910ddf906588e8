/*
 * net_fixture.h - an HTTP server on a loop thread, and a client that sends raw bytes to it.
 *
 * The handler answers by path: /dump (the request it got, as text), /park (no answer until
 * net_release(); on_gone is counted), /leave (parks, and replies "left" when its client is gone),
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
    struct http_request *parked; /* linked by user; loop thread only */
    atomic_int n_parked, n_gone, n_requests, n_drained;
    int64_t live; /* our allocations before the start */
};

/* Set defaults; `conf` may be changed before net_begin(). */
void net_init(struct net_fixture *fixture);
/* Start the server and its loop thread. */
void net_begin(struct net_fixture *fixture);
/* Answer parked requests, stop the server, and assert that none of our memory is left. */
void net_end(struct net_fixture *fixture);
/* Run fn on the loop thread and wait until it returns. */
void net_on_loop(struct net_fixture *fixture, void (*fn)(struct net_fixture *fixture, void *arg),
                 void *arg);
/* Answer every parked request with 200 "late". */
void net_release(struct net_fixture *fixture);
/* Read the server's counters, on the loop thread. */
void net_stats(struct net_fixture *fixture, struct http_stats *out);

/* Connect to the server: a blocking socket with a timeout. */
int net_connect(struct net_fixture *fixture);
/* The server's port. */
int net_port(struct net_fixture *fixture);
/* Send these bytes; ends the case when that fails. */
void net_send(int fd, const char *bytes, size_t len);
/* The same for a string. */
void net_say(int fd, const char *text);
/* Read one answer, head and body; the value of Date is replaced by `-`. "" at the end of the
 * stream. Valid until the next call in this thread. */
const char *net_answer(int fd);
/* The same for an answer that has no body although it may have a Content-Length (HEAD). */
const char *net_answer_head(int fd);
/* True when the stream has ended. */
bool net_ended(int fd);
/* Connect, send the text, read one answer, close. */
const char *net_ask(struct net_fixture *fixture, const char *text);
/* The HTTP status of the answer to `text`. */
int net_status(struct net_fixture *fixture, const char *text);

/* Wait until x holds, up to 10 s. */
#define NET_UNTIL(x)                                                                               \
    do {                                                                                           \
        for (int net_i = 0; !(x); net_i++) {                                                       \
            if (net_i > 5000 * check_scale())                                                      \
                FAIL("did not happen: %s", #x);                                                    \
            net_nap();                                                                             \
        }                                                                                          \
    } while (0)
/* Sleep for 2 ms. */
void net_nap(void);

#endif
