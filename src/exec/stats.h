/*
 * stats.h - what the machine counts, for others to read: totals, histograms of groups and commits,
 * and how fast each queue moves.
 *
 * The store thread counts a group after its commit and before its answers, so a caller that has an
 * answer finds it counted. Any thread reads.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_STATS_H
#define EXEC_STATS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "feature/cron.h"

struct exec;

/* How many values fell at or under each bound and above the one before: as Prometheus has it, but
 * not added up. */
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
    /* Ticks of schedules: submitted by the clock, asked for by a person, skipped by reason, missed.
     */
    atomic_int_least64_t ticks, ticks_manual, ticks_skipped[CRON_REASONS], ticks_missed;
    /* Looks at schedules that could not be read; the oldest tick that one of them waits for, and
     * when that was seen (world_mono). */
    atomic_int_least64_t unread, unread_since, unread_seen;
    struct histogram group_ops; /* operations of one commit */
    struct histogram commit_us; /* how long it took; bounds in microseconds */
};
/* The oldest tick of a schedule that this process cannot read; 0: there is none, as far as it has
 * found in the last minute and a half. Any thread. */
int64_t exec_unread_since(const struct exec_stats *s);
/* The counters of this handle; valid while it is open. */
const struct exec_stats *exec_stats_of(const struct exec *e);

struct pace {
    double accepted, ended; /* calls a second */
};
/* How fast this queue moved over the last 10 seconds, as this process saw it: what it accepted, and
 * what was finished through it. Both 0 for a queue that it has not seen. */
struct pace exec_pace(struct exec *e, struct bytes queue);

#endif
