/*
 * world.c - the real clock moves, random numbers differ, and a forked child does not repeat its
 * parent's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/world.h"
#include "check.h"

static const struct world *w = &world_real;

TEST(clocks)
{
    int64_t now = world_now(w), mono = world_mono(w);
    TRUE(llabs((long long)now / SEC_US - (long long)time(NULL)) <= 2);
    usleep(2000);
    GE_INT(world_mono(w), mono + 2000);
}

static int cmp(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void all_differ(uint64_t *v, size_t n)
{
    qsort(v, n, sizeof *v, cmp);
    for (size_t i = 1; i < n; i++)
        TRUE(v[i] != v[i - 1]);
}

#define ROLLS 2000

static void *roll(void *out)
{
    uint64_t *v = out;
    for (size_t i = 0; i < ROLLS; i++)
        v[i] = world_dice(w);
    return NULL;
}

TEST(dice_differ_across_threads)
{
    static uint64_t v[4 * ROLLS];
    pthread_t t[4];
    for (size_t i = 0; i < 4; i++)
        EQ_INT(pthread_create(&t[i], NULL, roll, v + i * ROLLS), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    all_differ(v, 4 * ROLLS);
    uint64_t any = 0, all = UINT64_MAX;
    for (size_t i = 0; i < 4 * ROLLS; i++) {
        any |= v[i];
        all &= v[i];
    }
    EQ_UINT(any, UINT64_MAX);
    EQ_UINT(all, 0);
}

TEST(a_child_does_not_repeat_its_parent)
{
    uint64_t *v = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TRUE(v != MAP_FAILED);
    (void)world_dice(w); /* the buffer is full of random words */
    for (size_t child = 0; child < 2; child++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (size_t i = 0; i < 40; i++)
                v[child * 40 + i] = world_dice(w);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    for (size_t i = 80; i < 120; i++)
        v[i] = world_dice(w);
    all_differ(v, 120);
    munmap(v, 4096);
}

static uint64_t fixed(void *ctx)
{
    return *(uint64_t *)ctx;
}

TEST(unit_is_below_one)
{
    uint64_t word = UINT64_MAX;
    struct world own = { .dice = fixed, .ctx = &word };
    TRUE(world_unit(&own) < 1);
    TRUE(world_unit(&own) > 0.999999);
    word = 0;
    TRUE(world_unit(&own) == 0);
    double sum = 0;
    for (int i = 0; i < 10000; i++)
        sum += world_unit(w);
    TRUE(sum > 4500 && sum < 5500);
}
