/*
 * chaos_load.h - clients of a fleet that move money and count, go to another node when one does not
 * answer, and write down everything they see.
 *
 * Each call has an id of its own, and whoever was not answered repeats it elsewhere. Some hang up,
 * some ask twice without need, some use a known id for something else, some do not wait for the
 * end. One more sends poison when it is told to.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHAOS_LOAD_H
#define CHAOS_LOAD_H

#include <stdint.h>

#include "history.h"

void chaos_load_begin(uint64_t seed);
/* One call that kills whoever runs it, from now on. */
void chaos_load_poison(void);
/* From now on every count takes a second. */
void chaos_load_slow(void);
/* No more requests from the moment this returns; what is under way is given up. */
void chaos_load_over(void);
/* Wait for the clients, add what they saw to `h`, let go of them. */
void chaos_load_end(struct history *h);

/* What the database holds, read beside Pawl; nobody works on it. */
void history_read(struct history *h, const void *param);
/* Rows in the tables of what waits or is held, just now. */
int64_t history_left(const void *param);
/* What these are, for people. */
void history_print_left(const void *param);

#endif
