/*
 * scenario.h - a script that uses all of the library while something fails, and a check afterwards.
 *
 * scenario_play() runs the script and accepts every error that the contract allows.
 * scenario_check() opens the same database again without faults, waits until every call has ended,
 * and compares what was acknowledged with what is stored. In between nothing of the process may be
 * left.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "fixture.h"

struct scenario {
    const char *url;       /* what the script opens, with faults */
    const char *plain;     /* the same database without faults */
    bool has_sql;          /* the engine has handler SQL */
    bool broken;           /* BROKEN is an allowed answer in this run */
    void (*between)(void); /* called between two steps; may be NULL */
    int acked;             /* how many calls were acknowledged, for the output */
};

/* Run the script on s->url. */
void scenario_play(struct scenario *s);
/* Check the database at s->plain afterwards. */
void scenario_check(struct scenario *s);

/* Call run(n) for points n = 1..total, spread evenly, until `seconds` have passed; with
 * PAWL_TORTURE=full for every point. Prints how many there are and how many ran. */
void scenario_points(int64_t total, int seconds, void (*run)(int64_t n));

#endif
