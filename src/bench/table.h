/*
 * table.h - rounds, medians, and the one table every benchmark prints.
 *
 * A figure is worth little without the floor it was taken beside and the goal it is held to, so a
 * row has room for all three. Rounds of the two sides alternate; the ratio of a row is the median
 * of the rounds' ratios, so that a noisy neighbour who comes and goes falls on both sides of it.
 * One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_ROUNDS_MAX 9

/* The rounds of one row. */
struct bench_rounds {
    double figure[BENCH_ROUNDS_MAX], floor[BENCH_ROUNDS_MAX];
    size_t n;
};
void bench_rounds_add(struct bench_rounds *r, double figure, double floor);
/* Of n numbers, which are sorted in place; 0 of none. */
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
    bool loaded;    /* load holds what bench_table_load() saw */
    double load[3]; /* of the machine, before anything was measured */
    size_t rows, missed;
};

/* How busy the machine is before it is measured; bench_table_begin() asks when nobody did. */
void bench_table_load(struct bench_table *t);
/* What machine, how busy: figures without it mislead. Then the head of the columns. */
void bench_table_begin(struct bench_table *t, const char *title);
void bench_table_row(struct bench_table *t, const struct bench_row *row);
void bench_table_end(struct bench_table *t);

/* Seconds since some moment, for durations. */
double bench_clock(void);

#endif
