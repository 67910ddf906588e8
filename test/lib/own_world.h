/*
 * own_world.h - a clock that a test moves by hand, and random numbers that are the same in every
 * run.
 *
 * Any thread may read; one thread at a time may move the clock.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef OWN_WORLD_H
#define OWN_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/world.h"

/* 2026-11-15T08:00:00Z: far enough from 0 that an uninitialised time is noticed. */
#define OWN_WORLD_BEGIN INT64_C(1794729600000000)

struct own_world {
    struct world world; /* to be passed to the store */
    atomic_int_least64_t now_us;
    atomic_uint_least64_t seed;
    bool steady; /* return the same random number until the clock moves */
};

/* Start the clock at OWN_WORLD_BEGIN, with this seed. */
void own_world_init(struct own_world *w, uint64_t seed);
/* Move the clock forward. */
void own_world_advance(struct own_world *w, int64_t us);
/* 64 well-mixed bits from n. */
uint64_t mix64(uint64_t n);

#endif
