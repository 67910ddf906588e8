/*
 * count.h - counting what a group did (stats.h is what others see of it). Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_COUNT_H
#define EXEC_COUNT_H

#include <pthread.h>

#include "exec/stats.h"
#include "store/op.h"

/* One queue's pace: what happened in each of the last RATE_SECONDS, by second modulo that. */
#define RATE_SECONDS 10
struct rate {
    struct rate *next;  /* same bucket */
    struct bytes queue; /* owned, in the same block */
    struct {
        int64_t second;
        int64_t accepted, ended;
    } at[RATE_SECONDS];
};

#define RATE_BUCKETS 256
struct rates {
    pthread_mutex_t lock;
    struct rate *buckets[RATE_BUCKETS]; /* owned */
    size_t n;                           /* at most LANES_MAX: a queue has a lane at least */
};

/* Set the histograms' bounds; everything else is zero. */
void stats_init(struct exec_stats *s);
/* An empty table, of zeroed memory. */
void rates_init(struct rates *r);
/* No thread counts or reads any more. */
void rates_release(struct rates *r);

/* Any thread: these operations were committed together, in this time. */
void count_group(struct exec *e, struct op *const *v, size_t n, int64_t took_us);

#endif
