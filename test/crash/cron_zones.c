/*
 * cron_zones.c - two processes of one cluster that have different data about a time zone, and are
 * killed now and then: each day of a schedule has one tick.
 *
 * In both folders Europe/Berlin goes from two hours to one hour ahead of UTC, in one of them two
 * days later than in the other; so between these days they do not agree on what time it is. The
 * clock is the case's own, in memory that all processes share. At each of its moments both
 * processes tick at the same time. PAWL_SEED repeats a sequence of kills.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "cron_fixture.h"
#include "feature/zones.h"
#include "fixture.h"

RUNS_ON(ENGINES_DURABLE)

enum { DAYS = 6, HOUR_FIRST = 4, HOUR_LAST = 15, HOUR_LEFT_OUT = 9 };
enum { SCHEDULES = HOUR_LAST - HOUR_FIRST, TICKS = SCHEDULES * DAYS };
#define HOUR_US (3600 * SEC_US)

static const char *const names[] = { "early", "late" };

static struct shared {
    struct own_world w;
    atomic_int round;   /* the moment that is ticked; -1: that was all */
    atomic_int done[2]; /* the last one that each of them has ticked */
} * shared;

static const char *url;
static pid_t pids[2];

/* ---- A process ------------------------------------------------------------------------------- */

static void recompute(struct store *s, struct arena *a)
{
    bool more = true;
    struct bytes after = BYTES_NONE;
    while (more) {
        struct cron_op q = { .what = CRON_ZONES, .max = 5, .after = after };
        struct op op = cron_fixture_op(a, &q);
        OK(cron_fixture_commit(s, &op), &op.err);
        more = q.more;
        after = q.next;
    }
}

/* The folder of this process, not the one that the case has used. The days between the changes
 * begin 70 hours after the clock does. */
static void use_zones(int which)
{
    const struct zone *z;
    struct pawl_err err;
    setenv("TZDIR", names[which], 1);
    zones_look();
    OK(zones_get(BYTES("Europe/Berlin"), &z, &err), &err);
    EQ_INT(zone_offset(z, (OWN_WORLD_BEGIN + 70 * HOUR_US) / SEC_US), which ? 7200 : 3600);
}

/* It computes again what older data has computed when it starts, and now and then. */
static void work(int which)
{
    struct arena a;
    arena_init(&a, 64 << 20);
    use_zones(which);
    struct store *s = cron_fixture_open(url, &shared->w);
    for (int seen = 0, round; (round = atomic_load(&shared->round)) >= 0;) {
        if (round == seen) {
            usleep(50);
            continue;
        }
        arena_reset(&a);
        if (seen == 0 || round % 10 == 0)
            recompute(s, &a);
        (void)cron_fixture_tick(s, &a, names[which]);
        atomic_store(&shared->done[which], round);
        seen = round;
    }
    store_close(s);
    arena_release(&a);
}

static void start(int which)
{
    fflush(NULL);
    pids[which] = fork();
    if (pids[which] == 0) {
        work(which);
        exit(0);
    }
    GT_INT(pids[which], 0);
}

static void kill_again(int which)
{
    int status;
    kill(pids[which], SIGKILL);
    EQ_INT(waitpid(pids[which], &status, 0), pids[which]);
    TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    start(which);
}

/* ---- The case -------------------------------------------------------------------------------- */

/* A folder in which the clock is set back at noon of this day; without a release, if that is "". */
static void zone_data(const char *dir, const char *release, int day)
{
    char command[1000];
    snprintf(command, sizeof command,
             "set -e; mkdir -p '%s'; printf 'Zone Europe/Berlin 2:00 - AAA 2026 Nov %d 12:00\\n"
             " 1:00 - BBB\\nZone Europe/London %d:00 - XXX\\n' > '%s/src'; zic -d '%s' '%s/src'",
             dir, day, day % 3, dir, dir, dir);
    EQ_INT(system(command), 0);
    if (!*release)
        return;
    snprintf(command, sizeof command, "printf '# version %s\\n' > '%s/tzdata.zi'", release, dir);
    EQ_INT(system(command), 0);
}

/* One of each hour of the day, at half past. (The hour in which the case begins is left out: its
 * first and last day are not whole.) */
static void put_all(struct store *s, struct arena *a)
{
    for (int hour = HOUR_FIRST; hour <= HOUR_LAST; hour++)
        if (hour != HOUR_LEFT_OUT)
            cron_fixture_put(s, a, arena_printf(a, "s%d", hour),
                             arena_printf(a,
                                          "{\"cron\":\"30 %d * * *\",\"zone\":\"Europe/Berlin\","
                                          "\"overlap\":\"allow\",\"catch_up\":\"all\","
                                          "\"call\":{\"type\":\"t\"}}",
                                          hour));
}

static void begin(const void *param)
{
    struct pawl_err err;
    struct arena a;
    url = engine_url(param);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TRUE(shared != MAP_FAILED);
    own_world_init(&shared->w, 1);
    arena_init(&a, 1 << 20);
    setenv("TZDIR", names[0], 1);
    AUTO(store_end) struct store *s = cron_fixture_open(url, &shared->w);
    OK(store_migrate(s, true, &err), &err);
    put_all(s, &a);
    arena_release(&a);
}

static int64_t count(const char *sql)
{
    return engine_int(url, sql);
}

static void check_all(void)
{
    EQ_INT(count("SELECT COUNT(*) FROM pawl_tick"), TICKS);
    EQ_INT(count("SELECT COUNT(*) FROM pawl_tick WHERE kind = 1"), TICKS);
    EQ_INT(count("SELECT COUNT(*) FROM (SELECT DISTINCT name, at - at % 86400000000 FROM pawl_tick)"
                 " t"),
           TICKS);
    EQ_INT(count("SELECT COUNT(*) FROM pawl_call"), TICKS);
    EQ_INT(count("SELECT COUNT(*) FROM pawl_tick t JOIN pawl_call c ON c.id = t.call_id"), TICKS);
    EQ_INT(count("SELECT COUNT(*) FROM pawl_schedule WHERE waiting_at IS NOT NULL"), 0);
    GT_INT(count("SELECT COUNT(*) FROM pawl_tick WHERE node = 'early'"), 0);
    GT_INT(count("SELECT COUNT(*) FROM pawl_tick WHERE node = 'late'"), 0);
}

static void end(void)
{
    atomic_store(&shared->round, -1);
    for (int i = 0; i < 2; i++) {
        int status;
        EQ_INT(waitpid(pids[i], &status, 0), pids[i]);
        TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void days_pass(const void *param)
{
    int64_t step_us = (check_long() ? 10 : 30) * 60 * SEC_US;
    const char *text = getenv("PAWL_SEED");
    uint64_t seed = text && *text ? strtoull(text, NULL, 10) : (uint64_t)fixture_mono();
    int kills = 0;
    printf("PAWL_SEED=%llu\n", (unsigned long long)seed);
    begin(param);
    for (int i = 0; i < 2; i++)
        start(i);
    for (int round = 1; round <= DAYS * 24 * HOUR_US / step_us; round++) {
        own_world_advance(&shared->w, step_us);
        atomic_store(&shared->round, round);
        uint64_t dice = mix64(++seed);
        if (dice % 8 == 0) {
            usleep((unsigned)(dice >> 8) % 3000);
            kill_again((int)(dice >> 32 & 1));
            kills++;
        }
        UNTIL(atomic_load(&shared->done[0]) == round && atomic_load(&shared->done[1]) == round);
    }
    end();
    printf("%d kills, %lld ticks of \"early\", %lld of \"late\"\n", kills,
           (long long)count("SELECT COUNT(*) FROM pawl_tick WHERE node = 'early'"),
           (long long)count("SELECT COUNT(*) FROM pawl_tick WHERE node = 'late'"));
    check_all();
}

TEST(two_releases_of_zone_data_make_one_tick_a_day, .deadline_s = 120)
{
    zone_data("early", "2026a", 17);
    zone_data("late", "2026b", 19);
    days_pass(param);
}

TEST(the_newer_release_changes_earlier, .deadline_s = 120)
{
    zone_data("early", "2026b", 17);
    zone_data("late", "2026a", 19);
    days_pass(param);
}

/* Hashes have no order: neither of them computes again what the other one has computed. */
TEST(zone_data_without_a_release_makes_one_tick_a_day, .deadline_s = 120)
{
    zone_data("early", "", 17);
    zone_data("late", "", 19);
    days_pass(param);
}
