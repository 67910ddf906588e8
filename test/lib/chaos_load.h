/*
 * chaos_load.h - clients of a fleet that move money and count, switch to another node when one does
 * not answer, and record everything they see.
 *
 * Each call has its own id, and a client that got no answer repeats the call on another node. Some
 * clients hang up, some ask twice, some use a known id for another call, some do not wait for the
 * end. One more client sends poison calls (calls that kill their process) when it is told to.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHAOS_LOAD_H
#define CHAOS_LOAD_H

#include <stdint.h>

#include "history.h"

/* Start the clients' threads; their random choices follow from the seed. */
void chaos_load_begin(uint64_t seed);
/* From now on, send one call that kills the process that runs it. */
void chaos_load_poison(void);
/* From now on every count takes a second. */
void chaos_load_slow(void);
/* Stop the clients: no request is sent after this returns, and pending ones are abandoned. */
void chaos_load_over(void);
/* Join the clients' threads, add what they recorded to `h`, and free them. */
void chaos_load_end(struct history *h);

/* Read the calls and attempts from the database's tables, without Pawl. No process may be working
 * on it. */
void history_read(struct history *h, const void *param);
/* How many rows the tables of pending and claimed calls have now. */
int64_t history_left(const void *param);
/* Print these rows. */
void history_print_left(const void *param);

#endif
