/*
 * random.c - two processes on one database, killed at random times under load and restarted.
 *
 * PAWL_SEED repeats a sequence of times; PAWL_CRASH_SECONDS is the length of the test (2; 12 at
 * night).
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "crash_fixture.h"
#include "own_world.h"

RUNS_ON_CRASH_FIXTURE

static int64_t from_env(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

static uint64_t seed;

static int64_t dice(int64_t below)
{
    seed++;
    return (int64_t)(mix64(seed) % (uint64_t)below);
}

/* One generation: a new database, both processes killed repeatedly, then left to finish. */
static int generation(void *param, int rounds, int kills)
{
    static const char *const nodes[] = { "a", "b" };
    pid_t pids[2] = { 0, 0 };
    int killed = 0;
    engine_fresh(param);
    unlink("acked.a");
    unlink("acked.b");
    for (int i = 0; i < 2; i++)
        pids[i] = crash_fixture_start(
            &(struct crash_fixture){ .param = param, .node = nodes[i], .rounds = rounds });
    for (int i = 0; i < kills; i++) {
        int which = (int)dice(2);
        usleep((unsigned)(1000 + dice(150000) * check_scale())); /* a random time */
        kill(pids[which], SIGKILL);
        killed += crash_fixture_wait(pids[which]) == -9;
        pids[which] = crash_fixture_start(
            &(struct crash_fixture){ .param = param, .node = nodes[which], .rounds = rounds });
    }
    int64_t begun = fixture_mono();
    for (int i = 0; i < 2; i++)
        EQ_INT(crash_fixture_wait(pids[i]), 0);
    int64_t took = fixture_mono() - begun;
    printf("%d rounds each, done %lld ms after the last kill\n", rounds, (long long)took / 1000);
    LT_INT(took, 20 * FIXTURE_SEC * check_scale()); /* the grace, 2 s, and the work */
    crash_fixture_count(param, nodes, 2, rounds);
    return killed;
}

TEST(killed_at_random_moments, .deadline_s = 600)
{
    int64_t seconds = from_env("PAWL_CRASH_SECONDS", check_long() ? 12 : 2);
    int generations = 0, killed = 0;
    seed = (uint64_t)from_env("PAWL_SEED", fixture_mono());
    int64_t until = fixture_mono() + seconds * FIXTURE_SEC;
    do {
        printf("PAWL_SEED=%llu\n", (unsigned long long)seed);
        fflush(stdout);
        killed += generation(param, 20 + (int)dice(60), 6);
        generations++;
    } while (fixture_mono() < until || (killed == 0 && generations < 20));
    printf("%d generations, %d kills\n", generations, killed);
    GT_INT(killed, 0);
}
