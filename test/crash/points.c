/*
 * points.c - the program is killed at every crash point, at its 1st, 2nd and 7th pass, and
 * restarted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "crash_fixture.h"

enum { ROUNDS = 4, POINTS_MAX = 100 };

RUNS_ON_CRASH_FIXTURE

static char points[POINTS_MAX][128];
static int n_points;
static const char *const nodes[] = { "a" };

/* Run the workload once without a crash, and collect the names of the points. */
static void learn(void *param, bool bulk)
{
    struct crash_fixture b = {
        .param = param, .node = "a", .rounds = ROUNDS, .log = "points.log", .bulk = bulk
    };
    EQ_INT(crash_fixture_wait(crash_fixture_start(&b)), 0);
    crash_fixture_count(param, nodes, 1, ROUNDS);
    FILE *f = fopen("points.log", "r");
    TRUE(f != NULL);
    while (n_points < POINTS_MAX && fgets(points[n_points], sizeof points[0], f)) {
        points[n_points][strcspn(points[n_points], "\n")] = '\0';
        n_points++;
    }
    fclose(f);
    GT_INT(n_points, 5);
}

/* Kill the program at the n-th pass of every start until it completes, at most `kills` times.
 * False: the point was never reached. */
static bool killed_at(void *param, const char *point, int pass, int kills, bool bulk)
{
    char crash[sizeof points[0] + 16];
    bool met = false;
    engine_fresh(param);
    unlink("acked.a");
    snprintf(crash, sizeof crash, "%.127s:%d", point, pass);
    printf("%s\n", crash);
    for (int i = 0;; i++) {
        struct crash_fixture b = { .param = param, .node = "a", .rounds = ROUNDS, .bulk = bulk };
        b.crash = i < kills ? crash : NULL;
        if (crash_fixture_wait(crash_fixture_start(&b)) == 0)
            break;
        LT_INT(i, kills);
        met = true;
    }
    crash_fixture_count(param, nodes, 1, ROUNDS);
    return met;
}

/* Points that are passed only when SQLite's WAL is long. */
TEST(points_of_the_checkpoint, .deadline_s = 240)
{
    int met = 0;
    if (engine_of(param)->kind != ENGINE_FILE)
        skip("%s: has no checkpoints of ours", engine_of(param)->name);
    learn(param, true);
    for (int i = 0; i < n_points; i++)
        if (strcmp(points[i], "checkpoint.before") == 0 ||
            strcmp(points[i], "checkpoint.after") == 0)
            met += killed_at(param, points[i], 1, 1, true);
    EQ_INT(met, 2);
}

TEST(every_point_and_every_pass, .deadline_s = 240)
{
    static const int passes[] = { 1, 2, 7 };
    int met = 0, ran = 0;
    learn(param, false);
    for (int i = 0; i < n_points; i++) {
        bool any = false;
        for (int k = 0; k < (check_long() ? 3 : 1); k++) {
            bool was = killed_at(param, points[i], passes[k], k == 0 ? 2 : 1, false);
            any |= was;
            met += was;
            ran++;
        }
        /* What gc does in the background is met only if its turn comes before the program ends. */
        for (int more = 0; !any && more < 5; more++)
            any = killed_at(param, points[i], 1, 2, false);
        if (!any)
            FAIL("point \"%s\" was passed when it was learnt and never again", points[i]);
    }
    printf("%d points, %d runs, killed in %d of them\n", n_points, ran, met);
}
