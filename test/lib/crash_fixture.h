/*
 * crash_fixture.h - a program that is killed and started again, and the count that is made
 * afterwards.
 *
 * The test's own binary, started with CRASH_FIXTURE set, is the program: it opens the
 * database it is told, submits what has not been acknowledged yet, writes each acknowledged id into
 * a file right after the answer, runs the handlers and leaves with status 0 when everything it
 * submitted has ended. Whatever happens to it on the way, the count must come out:
 * crash_fixture_count().
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CRASH_FIXTURE_H
#define CRASH_FIXTURE_H

#include <sys/types.h>

#include "fixture.h"

/* First thing in main(): does not return in the program. */
void crash_fixture_program(void);

/* Start it: `node` is its name in the database and the prefix of its ids, n how many rounds of
 * calls it submits (7 calls a round). PAWL_CRASH is `crash` (NULL: none), PAWL_CRASH_LOG is `log`
 * (NULL: none). */
struct crash_fixture {
    const void *param; /* the case's: which engine */
    const char *node;
    int rounds;
    const char *crash, *log;
    bool bulk; /* and 40 MiB of inputs in one batch, so that SQLite's log outgrows its bound */
};
pid_t crash_fixture_start(const struct crash_fixture *b);
/* Wait for it: 0 when it has done everything, -9 when it was killed; anything else ends the case.
 */
int crash_fixture_wait(pid_t pid);

/* Nothing acknowledged is lost, no effect is there twice, nothing is stuck or left behind. `nodes`
 * are all that were started on this database. */
void crash_fixture_count(const void *param, const char *const *nodes, size_t n_nodes, int rounds);

/* A file whose cases run on every engine that a killed process can be started on again. */
#define RUNS_ON_CRASH_FIXTURE                                                                      \
    CHECK_PARAMS                                                                                   \
    {                                                                                              \
        crash_fixture_program();                                                                   \
        engines_add(ENGINES_DURABLE);                                                              \
    }

#endif
