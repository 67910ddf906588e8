/*
 * alloc.c - every allocation of the library, and of SQLite below it, made to fail in turn.
 *
 * One at a time, and from one on for a stretch. There are hundreds of points and each costs a run,
 * so an even sample is taken within a few seconds; PAWL_TORTURE=full runs every one.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "scenario.h"

enum { SECONDS = 7, STRETCH = 60 };

/* ---- SQLite's allocator, counted ---- */

static sqlite3_mem_methods real;
static atomic_llong lite_asked, lite_fail_at;
static atomic_bool lite_on;

static bool lite_says_no(void)
{
    long long n = atomic_fetch_add(&lite_asked, 1) + 1, at = atomic_load(&lite_fail_at);
    return at && (n == at || (n > at && atomic_load(&lite_on)));
}

static void *lite_malloc(int n)
{
    return lite_says_no() ? NULL : real.xMalloc(n);
}

static void *lite_realloc(void *p, int n)
{
    return lite_says_no() ? NULL : real.xRealloc(p, n);
}

static void lite_hook(void)
{
    sqlite3_shutdown();
    EQ_INT(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real), SQLITE_OK);
    sqlite3_mem_methods ours = real;
    ours.xMalloc = lite_malloc;
    ours.xRealloc = lite_realloc;
    EQ_INT(sqlite3_config(SQLITE_CONFIG_MALLOC, &ours), SQLITE_OK);
    EQ_INT(sqlite3_initialize(), SQLITE_OK);
}

static void lite_torture(int64_t n, int on)
{
    atomic_store(&lite_fail_at, 0);
    atomic_store(&lite_on, on != 0);
    atomic_store(&lite_asked, 0);
    atomic_store(&lite_fail_at, n);
}

static int64_t lite_count(void)
{
    return atomic_load(&lite_asked);
}

/* ---- One run ---- */

struct dial {
    void (*torture)(int64_t n, int on);
    int64_t (*count)(void);
    int on;
};
static struct dial dial;
static int64_t point;

/* A stretch of failures ends after this many. */
static void end_stretch(void)
{
    if (dial.on && point && dial.count() > point + STRETCH)
        dial.torture(0, 0);
}

/* An idle handle that keeps a mem: database alive between two others. It does no work: handles of
 * mem: do not notify each other, so the other handle would not run what this one had swept. */
#define ANCHOR                                                                                     \
    (struct pawl_options)                                                                          \
    {                                                                                              \
        .node = "anchor", .reclaim_interval_us = 3600 * FIXTURE_SEC                                \
    }

static void remove_files(void)
{
    unlink("t.db");
    unlink("t.db-wal");
    unlink("t.db-shm");
}

/* Run one point. Returns how many allocations the script made. */
static int64_t run_point(const char *url, int64_t n)
{
    struct scenario s = {
        .url = url, .plain = url, .has_sql = !fixture_is_mem(url), .between = end_stretch
    };
    struct pawl *anchor = NULL;
    int64_t before = mem_live();
    remove_files();
    if (fixture_is_mem(url)) /* the database is freed with its last handle, so keep one open */
        anchor = fixture_open_as(url, ANCHOR);
    point = n;
    dial.torture(n, dial.on);
    scenario_play(&s);
    int64_t asked = dial.count();
    dial.torture(0, 0);
    scenario_check(&s);
    pawl_close(anchor);
    UNTIL(mem_live() == before); /* threads may still be ending */
    return asked;
}

static const char *where;

static void run_here(int64_t n)
{
    run_point(where, n);
}

static void torture(const char *url, struct dial d)
{
    dial = d;
    where = url;
    log_level_set(LOG_OFF); /* hundreds of expected warnings */
    run_point(url, 0);
    scenario_points(run_point(url, 0), check_long() ? SECONDS : 2, run_here);
}

#define TORTURE(name, url, ...)                                                                    \
    TEST(name, .deadline_s = 3600)                                                                 \
    {                                                                                              \
        torture(url, (struct dial){ __VA_ARGS__ });                                                \
    }                                                                                              \
    _Static_assert(1, "")

TORTURE(each_allocation_on_mem, "mem:t", mem_torture, mem_count, 0);
TORTURE(stretches_of_allocations_on_mem, "mem:t", mem_torture, mem_count, 1);
TORTURE(each_allocation_on_sqlite, "sqlite:t.db", mem_torture, mem_count, 0);
TORTURE(stretches_of_allocations_on_sqlite, "sqlite:t.db", mem_torture, mem_count, 1);

/* The same for SQLite's own allocations. */
#define TORTURE_LITE(name, url, on)                                                                \
    TEST(name, .deadline_s = 3600)                                                                 \
    {                                                                                              \
        lite_hook();                                                                               \
        torture(url, (struct dial){ lite_torture, lite_count, on });                               \
    }                                                                                              \
    _Static_assert(1, "")

TORTURE_LITE(each_allocation_of_sqlites_own, "sqlite:t.db", 0);
TORTURE_LITE(stretches_of_allocations_of_sqlites_own, "sqlite:t.db", 1);
