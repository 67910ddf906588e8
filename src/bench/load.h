/*
 * load.h - the shapes of work as a program that links libpawl has them: batches, hand-made
 * claims, handlers, and many threads that each submit one call and wait.
 *
 * Everything goes through pawl.h and nothing else, so that what is measured is what users get. A
 * function that fails returns the status and leaves the sentence in err; figures mean something
 * only after PAWL_OK.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdint.h>

#include <pawl.h>

#include "bench/floor.h"

/* Served by load_workers(); the other is claimed by hand and never by workers. */
#define LOAD_TYPE_NOOP "noop"
#define LOAD_TYPE_HAND "hand"

struct load_conf {
    const char *url;
    const char *schema; /* NULL: "pawl" */
    const char *node;
    bool gc; /* remove what is over its time, at once and continuously; else never */
};
MUST_USE enum pawl_status load_open(const struct load_conf *conf, struct pawl **out,
                                    struct pawl_err *err);
/* For AUTO. */
void load_end(struct pawl **p);

/* A handler that does nothing, on workers of the library's own. */
MUST_USE enum pawl_status load_start(struct pawl *p, struct pawl_err *err);

/* ids NULL: the library makes them. Every receipt is looked at; a refusal is a failure. */
struct load_batch {
    const char *type, *queue; /* queue NULL: the default one */
    const struct bench_id *ids;
    size_t n, batch;
};
MUST_USE enum pawl_status load_submit(struct pawl *p, const struct load_batch *b, double *out_per_s,
                                      struct pawl_err *err);

/* Claim and finish n calls of LOAD_TYPE_HAND by hand, max at a time, with a small result each. */
MUST_USE enum pawl_status load_drain(struct pawl *p, size_t n, size_t max, double *out_per_s,
                                     struct pawl_err *err);

/* Start workers on a waiting backlog of n, until all of it has ended; stops them again. */
MUST_USE enum pawl_status load_work_off(struct pawl *p, size_t n, double *out_per_s,
                                        struct pawl_err *err);

/* With workers that run: let the default queue go on, which was paused with at least n calls in it,
 * until n have completed. It is paused again. */
MUST_USE enum pawl_status load_first(struct pawl *p, size_t n, double *out_per_s,
                                     struct pawl_err *err);

/* Threads that each submit a call of LOAD_TYPE_NOOP and wait for its end, again and again. */
struct load_wait {
    size_t threads;
    double seconds;
    bool to_handler; /* latencies: until the handler ran, and not until the caller knows; of one
                        thread */
};
struct load_waited {
    double per_s, p50_us, p99_us;
};
MUST_USE enum pawl_status load_wait(struct pawl *p, const struct load_wait *w,
                                    struct load_waited *out, struct pawl_err *err);

#endif
