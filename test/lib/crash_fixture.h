/*
 * crash_fixture.h - a program that is killed and started again, and the count afterwards.
 *
 * The program is the test's own binary, started with CRASH_FIXTURE set. It opens the given
 * database, submits the calls that are not acknowledged yet, writes each acknowledged id into a
 * file right after the answer, runs the handlers, and exits with status 0 when everything it
 * submitted has ended. No matter when it was killed, crash_fixture_count() must find every call
 * exactly once.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CRASH_FIXTURE_H
#define CRASH_FIXTURE_H

#include <sys/types.h>

#include "fixture.h"

/* To be called first in main(). In the program it does not return; elsewhere it does nothing. */
void crash_fixture_program(void);

/* How the program is started. */
struct crash_fixture {
    const void *param; /* the case's parameter: which engine */
    const char *node;
    int rounds;
    const char *crash, *log;
    bool bulk; /* also submit 40 MiB of inputs in one batch, so that SQLite's WAL outgrows its limit
                */
};
/* Start the program. `node` is its name in the database and the prefix of its ids; it submits
 * `rounds` rounds of 7 calls. PAWL_CRASH is `crash` and PAWL_CRASH_LOG is `log`; NULL: unset. */
pid_t crash_fixture_start(const struct crash_fixture *b);
/* Wait for the program. Returns 0 when it has done everything, -9 when it was killed; any other end
 * fails the case. */
int crash_fixture_wait(pid_t pid);

/* Assert that no acknowledged call is lost, no effect happened twice, and nothing is pending or
 * left over. `nodes` are all that were started on this database. */
void crash_fixture_count(const void *param, const char *const *nodes, size_t n_nodes, int rounds);

/* For a file whose cases run on every engine that survives its process. */
#define RUNS_ON_CRASH_FIXTURE                                                                      \
    CHECK_PARAMS                                                                                   \
    {                                                                                              \
        crash_fixture_program();                                                                   \
        engines_add(ENGINES_DURABLE);                                                              \
    }

#endif
