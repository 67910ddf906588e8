/*
 * own_world.c - see own_world.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "own_world.h"

uint64_t mix64(uint64_t n)
{
    n += UINT64_C(0x9e3779b97f4a7c15);
    n = (n ^ (n >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    n = (n ^ (n >> 27)) * UINT64_C(0x94d049bb133111eb);
    return n ^ (n >> 31);
}

static int64_t own_now(void *ctx)
{
    return atomic_load(&((struct own_world *)ctx)->now_us);
}

static uint64_t own_dice(void *ctx)
{
    struct own_world *w = ctx;
    if (w->steady)
        return mix64(atomic_load(&w->seed) ^ (uint64_t)atomic_load(&w->now_us));
    return mix64(atomic_fetch_add(&w->seed, 1));
}

void own_world_init(struct own_world *w, uint64_t seed)
{
    w->world = (struct world){ .now_us = own_now, .mono_us = own_now, .dice = own_dice, .ctx = w };
    atomic_init(&w->now_us, OWN_WORLD_BEGIN);
    atomic_init(&w->seed, mix64(seed));
    w->steady = false;
}

void own_world_advance(struct own_world *w, int64_t us)
{
    atomic_fetch_add(&w->now_us, us);
}
