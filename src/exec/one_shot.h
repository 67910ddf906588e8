/*
 * one_shot.h - a one-shot event on a futex: a thread waits until another sets it. Setting is cheap
 * when no thread waits.
 *
 * The event may live on the waiter's stack: once one_shot_wait() has returned true, the setter
 * touches it no more.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_ONE_SHOT_H
#define EXEC_ONE_SHOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct one_shot {
    atomic_uint word; /* 0 not set, 1 not set and a thread sleeps on it, 2 set */
};

/* Make it usable, not set. */
void one_shot_init(struct one_shot *g);
/* Set it and wake the threads that wait. Any thread; setting it again does nothing. */
void one_shot_set(struct one_shot *g);
/* Is it set? Does not wait. */
bool one_shot_is_set(struct one_shot *g);
/* Wait until it is set. False: until_us (CLOCK_MONOTONIC) passed first. */
bool one_shot_wait(struct one_shot *g, int64_t until_us);

#endif
