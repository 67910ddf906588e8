/*
 * fleet_load.h - callers of a fleet that go elsewhere when a node does not answer.
 *
 * Each call is one `lab.count`, asked for by the same id until somebody says that it has ended. A
 * caller that hears anything but that, or to come again, ends the case.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FLEET_LOAD_H
#define FLEET_LOAD_H

#include <stdbool.h>

/* Threads that call, until fleet_load_end(); it gives how many calls completed. */
void fleet_load_begin(int threads);
int fleet_load_end(void);
/* So far. */
int fleet_load_done(void);
/* After the end, when nothing runs: each call counted once, and no try of any was burnt or lost;
 * but that a statement under way when the database went may have cost its try. */
void fleet_load_check(const void *param, int calls, bool database_went);

#endif
