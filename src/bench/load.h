/*
 * load.h - loads as a program that links libpawl makes them: batches, claims by hand, handlers, and
 * many threads that each submit one call and wait.
 *
 * Everything goes through pawl.h, so that what is measured is what users get. A function that fails
 * returns the status and fills err; figures are valid only after PAWL_OK.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdint.h>

#include <pawl.h>

#include "bench/floor.h"

/* NOOP is served by load_start(); HAND is claimed by hand, never by workers. */
#define LOAD_TYPE_NOOP "noop"
#define LOAD_TYPE_HAND "hand"
/* Workflows of ten steps and of one, each of which returns a number and does nothing else; served
 * by load_start_flows(). */
#define LOAD_TYPE_FLOW10 "flow10"
#define LOAD_TYPE_FLOW1 "flow1"

struct load_conf {
    const char *url;
    const char *schema; /* NULL: "pawl" */
    const char *node;
    bool gc; /* gc removes what is past its retention, continuously; else never */
};
/* Open the library on this database. */
MUST_USE enum pawl_status load_open(const struct load_conf *conf, struct pawl **out,
                                    struct pawl_err *err);
/* Close it; for AUTO. */
void load_end(struct pawl **p);

/* Start the library's workers with a handler that does nothing. */
MUST_USE enum pawl_status load_start(struct pawl *p, struct pawl_err *err);
/* The same with this many slots (0: the default) and the handlers of the workflows. */
MUST_USE enum pawl_status load_start_flows(struct pawl *p, int slots, struct pawl_err *err);

struct load_batch {
    const char *type, *queue;   /* queue NULL: the default one */
    const char *need;           /* a capability that the calls need; NULL: none */
    const struct bench_id *ids; /* NULL: the library makes them */
    size_t n, batch;            /* calls in all, and in one batch */
};
/* Submit the calls in batches. Every receipt is checked; a refusal is a failure. */
MUST_USE enum pawl_status load_submit(struct pawl *p, const struct load_batch *b, double *out_per_s,
                                      struct pawl_err *err);

/* Claim and finish n calls of LOAD_TYPE_HAND by hand, max at a time, with a small result each. */
MUST_USE enum pawl_status load_drain(struct pawl *p, size_t n, size_t max, double *out_per_s,
                                     struct pawl_err *err);

/* Start workers on a waiting backlog of n calls, and stop them when all have ended. */
MUST_USE enum pawl_status load_work_off(struct pawl *p, size_t n, double *out_per_s,
                                        struct pawl_err *err);

/* With running workers: resume the default queue, which was paused with at least n calls in it,
 * until n have completed; then pause it again. */
MUST_USE enum pawl_status load_first(struct pawl *p, size_t n, double *out_per_s,
                                     struct pawl_err *err);

struct load_wait {
    const char *type; /* NULL: LOAD_TYPE_NOOP */
    size_t threads;
    double seconds;
    bool to_handler; /* latencies end when the handler ran, not when the caller knows; for one
                        thread */
};
struct load_waited {
    double per_s, p50_us, p99_us;
};
/* Let threads submit a call of the type and wait for its end, again and again. */
MUST_USE enum pawl_status load_wait(struct pawl *p, const struct load_wait *w,
                                    struct load_waited *out, struct pawl_err *err);

#endif
