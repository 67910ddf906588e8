/*
 * scenario.h - a script that uses all of the library while something fails, and the count
 * afterwards.
 *
 * scenario_play() goes through the script and forgives every honest refusal; scenario_check() opens
 * the same database again, with nothing failing, lets everything end and holds what was
 * acknowledged against what is there. In between nothing of the process may be left.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "fixture.h"

struct scenario {
    const char *url;       /* what the script opens */
    const char *plain;     /* the same database without anything that fails */
    bool has_sql;          /* the engine has SQL */
    bool broken;           /* BROKEN is an honest answer in this run */
    void (*between)(void); /* called between two steps; may be NULL */
    int acked;             /* how many calls were acknowledged, for the printout */
};

void scenario_play(struct scenario *s);
void scenario_check(struct scenario *s);

/* Call run(n) for the points n = 1..total, spread evenly, until `seconds` have passed;
 * PAWL_TORTURE=full: for every one. Prints how many there are and how many ran. */
void scenario_points(int64_t total, int seconds, void (*run)(int64_t n));

#endif
