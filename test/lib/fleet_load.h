/*
 * fleet_load.h - clients of a fleet that switch to another node when one does not answer.
 *
 * Each call is one `lab.count`, requested with the same id until an answer says that it has ended.
 * Any answer other than that or a request to come again ends the case.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FLEET_LOAD_H
#define FLEET_LOAD_H

#include <stdbool.h>

/* Start this many threads that call until fleet_load_end(). */
void fleet_load_begin(int threads);
/* Stop the threads. Returns how many calls completed. */
int fleet_load_end(void);
/* How many calls have completed so far. */
int fleet_load_done(void);
/* After the end, when no node works: assert that each call counted once, and that no call used up
 * or lost an attempt. With `database_went`, a statement that was running when the database went
 * down may have cost an attempt. */
void fleet_load_check(const void *param, int calls, bool database_went);

#endif
