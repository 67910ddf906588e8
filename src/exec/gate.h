/*
 * gate.h - a one-shot event on a futex: a thread waits until another opens it. Opening is cheap
 * when no thread waits.
 *
 * The event may live on the waiter's stack: once gate_wait() has returned true, the opener touches
 * it no more.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_GATE_H
#define EXEC_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gate {
    atomic_uint word; /* 0 closed, 1 closed and a thread sleeps on it, 2 open */
};

/* Closed. */
void gate_init(struct gate *g);
/* Open it and wake the threads that wait. Any thread; opening it again does nothing. */
void gate_open(struct gate *g);
/* Is it open? Does not wait. */
bool gate_is_open(struct gate *g);
/* Wait until it is open. False: until_us (CLOCK_MONOTONIC) passed first. */
bool gate_wait(struct gate *g, int64_t until_us);

#endif
