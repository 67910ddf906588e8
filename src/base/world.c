/*
 * world.c - the real clock and random numbers.
 *
 * Any thread. Random words come from getrandom() 32 at a time, stay in a buffer per thread, and are
 * wiped as they are used. A fork empties every buffer, because a child must not use its parent's
 * words.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/random.h>
#include <time.h>

#include "base/macros.h"
#include "base/world.h"

/* 256 bytes: getrandom() delivers so many whole, without interruption. */
#define WORDS 32

struct dice {
    uint64_t word[WORDS];
    unsigned left;
    unsigned forks; /* forks of the process when it was filled */
};

static _Thread_local struct dice dice;
static atomic_uint forks;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void forked(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

static void dice_fill(struct dice *d)
{
    pthread_once(&fork_once, watch_forks);
    d->forks = atomic_load_explicit(&forks, memory_order_relaxed);
    ssize_t n;
    do
        n = getrandom(d->word, sizeof d->word, 0);
    while (n < 0 && errno == EINTR);
    CHECK(n == (ssize_t)sizeof d->word); /* a token that can be guessed is worse than no process */
    d->left = WORDS;
}

static uint64_t real_dice(void *ctx)
{
    (void)ctx;
    struct dice *d = &dice;
    if (d->left == 0 || d->forks != atomic_load_explicit(&forks, memory_order_relaxed))
        dice_fill(d);
    uint64_t word = d->word[--d->left];
    d->word[d->left] = 0;
    return word;
}

static int64_t clock_us(clockid_t clock)
{
    struct timespec t;
    int failed = clock_gettime(clock, &t);
    CHECK(!failed);
    return (int64_t)t.tv_sec * SEC_US + t.tv_nsec / 1000;
}

static int64_t real_now(void *ctx)
{
    (void)ctx;
    return clock_us(CLOCK_REALTIME);
}

static int64_t real_mono(void *ctx)
{
    (void)ctx;
    return clock_us(CLOCK_MONOTONIC);
}

const struct world world_real = { real_now, real_mono, real_dice, NULL };

double world_unit(const struct world *w)
{
    return (double)(world_dice(w) >> 11) * 0x1p-53;
}
