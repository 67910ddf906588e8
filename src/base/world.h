/*
 * world.h - the clock and the random numbers, which a test can replace.
 *
 * Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_WORLD_H
#define BASE_WORLD_H

#include <stdint.h>

#define MS_US INT64_C(1000)
#define SEC_US INT64_C(1000000)

struct world {
    int64_t (*now_us)(void *ctx);  /* UTC since 1970; for embedded engines the database's clock */
    int64_t (*mono_us)(void *ctx); /* monotonic, for durations and liveness */
    uint64_t (*dice)(void *ctx);   /* 64 random bits, good enough for tokens */
    void *ctx;
};

/* The real ones: CLOCK_REALTIME, CLOCK_MONOTONIC, getrandom (buffered per thread). */
extern const struct world world_real;

static inline int64_t world_now(const struct world *w)
{
    return w->now_us(w->ctx);
}
static inline int64_t world_mono(const struct world *w)
{
    return w->mono_us(w->ctx);
}
static inline uint64_t world_dice(const struct world *w)
{
    return w->dice(w->ctx);
}

/* A random number in [0, 1). */
double world_unit(const struct world *w);

#endif
