/*
 * one_shot.c - the one-shot event on a futex.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/one_shot.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/world.h"

enum { UNSET, WAITED_FOR, SET };

void one_shot_init(struct one_shot *g)
{
    atomic_init(&g->word, UNSET);
}

void one_shot_set(struct one_shot *g)
{
    /* After the exchange the waiter may be gone. Waking a stale address is harmless: no thread
     * waits on it. */
    if (atomic_exchange(&g->word, SET) == WAITED_FOR)
        syscall(SYS_futex, &g->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

bool one_shot_is_set(struct one_shot *g)
{
    return atomic_load(&g->word) == SET;
}

bool one_shot_wait(struct one_shot *g, int64_t until_us)
{
    struct timespec until = { .tv_sec = until_us / SEC_US, .tv_nsec = until_us % SEC_US * 1000 };
    for (;;) {
        unsigned seen = UNSET;
        if (!atomic_compare_exchange_strong(&g->word, &seen, WAITED_FOR) && seen == SET)
            return true;
        if (world_mono(&world_real) >= until_us)
            return one_shot_is_set(g);
        /* BITSET takes an absolute CLOCK_MONOTONIC time; a spurious return only loops. */
        syscall(SYS_futex, &g->word, FUTEX_WAIT_BITSET_PRIVATE, WAITED_FOR, &until, NULL,
                FUTEX_BITSET_MATCH_ANY);
    }
}
