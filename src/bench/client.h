/*
 * client.h - a load generator: keep-alive connections that each ask one question again and
 * again, all on one thread over epoll.
 *
 * It reads as little of an answer as it can (the status, the length, one word of the body) because
 * it shares the processors with the server it measures. One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl.h>

#include "base/macros.h"

/* More files for this process, for so many connections beside its own; what the system allows. */
size_t bench_client_files(size_t connections);

struct bench_hits {
    int port;          /* of 127.0.0.1 */
    size_t conns;      /* keep-alive connections */
    double seconds;    /* measured; a fifth of it passes before */
    bool at_once;      /* nothing passes before */
    const char *type;  /* of the calls */
    const char *queue; /* NULL: the default one */
    int priority;      /* of the calls */
    size_t keys;  /* so many keys in turn, up to 100,000: Wallet.add of 1; 0: calls without one */
    int wait_s;   /* for the end of a call; 0: 10 s */
    bool no_wait; /* answered when it is stored, and not when it has ended */
    size_t calls; /* it is over after so many; 0: when its time is */
};
struct bench_hit {
    double per_s, p50_us, p99_us;
};
/* POST /v1/calls?wait=N, every answer completed (no_wait: accepted); the first that is not is an
 * error. */
MUST_USE enum pawl_status bench_client_hit(const struct bench_hits *h, struct bench_hit *out,
                                           struct pawl_err *err);

/* Open conns connections that each wait for a call nobody serves, until the server says that all of
 * them wait. They stay open until bench_client_leave(). */
struct bench_parked;
MUST_USE enum pawl_status bench_client_park(const struct bench_hits *h, struct bench_parked **out,
                                            struct pawl_err *err);
void bench_client_leave(struct bench_parked *p); /* accepts NULL */

#endif
