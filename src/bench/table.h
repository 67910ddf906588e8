/*
 * table.h - rounds, medians, and the one table that every benchmark prints.
 *
 * A figure says little without the floor it was measured beside and the goal it has to reach, so a
 * row has all three. Rounds of the two sides alternate, and the ratio of a row is the median of the
 * rounds' ratios, so that other load on the machine affects both sides. One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_ROUNDS_MAX 31

/* The rounds of one row. */
struct bench_rounds {
    double figure[BENCH_ROUNDS_MAX], floor[BENCH_ROUNDS_MAX];
    size_t n;
};
/* Add one round: the figure and what the floor did beside it; past BENCH_ROUNDS_MAX it is dropped.
 */
void bench_rounds_add(struct bench_rounds *r, double figure, double floor);
/* The median of n numbers, which are sorted in place; 0 for none. */
double bench_median(double *v, size_t n);
/* The value below which this share of n numbers lies; sorts them. */
double bench_quantile(double *v, size_t n, double share);

enum bench_goal {
    BENCH_NO_GOAL,
    BENCH_RATIO_MIN, /* figure / floor at least */
    BENCH_RATIO_MAX, /* figure / floor at most */
    BENCH_FIGURE_MIN,
    BENCH_FIGURE_MAX, /* below */
    BENCH_FIGURE_EXACT,
};

struct bench_row {
    const char *name;
    const char *unit; /* "/s", "us", "MB" */
    const struct bench_rounds *rounds;
    enum bench_goal goal;
    double bound;
};

struct bench_table {
    FILE *out;
    bool json;
    bool loaded;    /* load was filled by bench_table_load() */
    double load[3]; /* load averages of the machine, before anything was measured */
    size_t rows, missed;
};

/* Note how busy the machine is before measuring; bench_table_begin() does it if this was not
 * called. */
void bench_table_load(struct bench_table *t);
/* Print the machine and its load, without which figures mislead, then the head of the columns. */
void bench_table_begin(struct bench_table *t, const char *title);
/* Print one row, with its ratio and whether it reaches its goal. */
void bench_table_row(struct bench_table *t, const struct bench_row *row);
/* Print the end of the table, and how many rows missed their goal. */
void bench_table_end(struct bench_table *t);

/* A monotonic clock in seconds, for durations. */
double bench_clock(void);

#endif
