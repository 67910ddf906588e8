/*
 * gate.h - a one-shot event: one thread waits, another opens. Opening is cheap when nobody waits.
 *
 * The waiter may live on a stack: once gate_wait() has returned true the opener touches the gate no
 * more.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_GATE_H
#define EXEC_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gate {
    atomic_uint word; /* 0 closed, 1 closed with a sleeper, 2 open */
};

void gate_init(struct gate *g);
void gate_open(struct gate *g);
bool gate_is_open(struct gate *g);
/* True once open; false when until_us (CLOCK_MONOTONIC) passed first. */
bool gate_wait(struct gate *g, int64_t until_us);

#endif
