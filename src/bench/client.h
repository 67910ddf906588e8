/*
 * client.h - a load generator: keep-alive connections that each send one request again and again,
 * all on one epoll thread.
 *
 * It reads as little of an answer as it can (the status, the length, one word of the body), because
 * it shares the processors with the server that it measures. One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl.h>

#include "base/macros.h"

/* Raise the limit of open files for this many connections besides our own files. Returns how many
 * connections are possible. */
size_t bench_client_files(size_t connections);

struct bench_hits {
    int port;          /* of 127.0.0.1 */
    size_t conns;      /* keep-alive connections */
    double seconds;    /* the measured time; a fifth of it is spent warming up before */
    bool at_once;      /* without warming up */
    const char *type;  /* of the calls */
    const char *queue; /* NULL: the default one */
    int priority;      /* of the calls */
    size_t keys;  /* this many keys in turn, up to 100,000: Wallet.add of 1; 0: calls without a key
                   */
    int wait_s;   /* how long a request waits for the end of its call; 0: 10 s */
    bool no_wait; /* answered when the call is stored, not when it has ended */
    size_t calls; /* stop after this many calls; 0: after the time */
};
struct bench_hit {
    double per_s, p50_us, p99_us;
};
/* Send POST /v1/calls?wait=N on all connections and measure. Every answer must be a completed call
 * (no_wait: an accepted one); the first that is not is an error. */
MUST_USE enum pawl_status bench_client_hit(const struct bench_hits *h, struct bench_hit *out,
                                           struct pawl_err *err);

/* Connections that wait. */
struct bench_parked;
/* Open conns connections that each wait for a call which no worker serves, and return when the
 * server says that all of them wait. They stay open until bench_client_leave(). */
MUST_USE enum pawl_status bench_client_park(const struct bench_hits *h, struct bench_parked **out,
                                            struct pawl_err *err);
/* Close them. Accepts NULL. */
void bench_client_leave(struct bench_parked *p);

#endif
