/*
 * count.h - what the machine counts: totals, how large groups are and how long they take, and each
 * queue's pace over the last seconds.
 *
 * The store thread counts a group after its commit and before its answers, so that whoever has an
 * answer finds it counted. Any thread reads.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_COUNT_H
#define EXEC_COUNT_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/op.h"

/* How many values fell at or under each bound, as Prometheus has it but not added up. */
#define HISTOGRAM_BOUNDS_MAX 16
struct histogram {
    const double *bounds; /* borrowed from the program; rising */
    size_t n;             /* of them; values above the last are counted in at[n] */
    atomic_int_least64_t at[HISTOGRAM_BOUNDS_MAX + 1];
    atomic_int_least64_t sum; /* in the unit of the values; commit_us: microseconds */
};

struct exec_stats {
    atomic_int_least64_t accepted, duplicates, claimed, completed, failed_tries, ended, lost,
        commits, repeats;
    struct histogram group_ops; /* operations of one commit */
    struct histogram commit_us; /* how long it took; bounds in microseconds */
};

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

struct exec;

void stats_init(struct exec_stats *s);
void rates_init(struct rates *r);
void rates_release(struct rates *r);

/* Store thread: a group was committed, in this time. */
void count_group(struct exec *e, struct op *const *v, size_t n, int64_t took_us);

/* Calls a second over the last RATE_SECONDS, as this process saw them: what it accepted, and what
 * was finished through it. Both 0 for a queue it knows nothing of. */
struct pace {
    double accepted, ended;
};
struct pace exec_pace(struct exec *e, struct bytes queue);

#endif
