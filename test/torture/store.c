/*
 * store.c - every call into the store made to fail in turn: refused before the commit, or stored
 * with its answer lost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "scenario.h"
#include "store/store.h"

enum { SECONDS = 3 };

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

static int64_t run_point(const char *url, int64_t n, enum fault_when when, enum pawl_status status)
{
    const char *plain = strchr(url, '+') + 1;
    struct scenario s = { .url = url,
                          .plain = plain,
                          .has_sql = !fixture_is_mem(plain),
                          .broken = status == PAWL_BROKEN };
    struct pawl *anchor = NULL;
    int64_t before = mem_live();
    remove_files();
    store_fault(0, when, status);
    if (fixture_is_mem(plain))
        anchor = fixture_open_as(plain, ANCHOR);
    store_fault(n, when, status);
    scenario_play(&s);
    int64_t asked = store_fault_count();
    store_fault(0, when, status);
    scenario_check(&s);
    pawl_close(anchor);
    UNTIL(mem_live() == before);
    return asked;
}

static const char *where;
static enum fault_when fault_when;
static enum pawl_status fault_status;

static void run_here(int64_t n)
{
    run_point(where, n, fault_when, fault_status);
}

static void torture(const char *url, enum fault_when when, enum pawl_status status)
{
    where = url;
    fault_when = when;
    fault_status = status;
    log_level_set(LOG_OFF); /* hundreds of expected warnings */
    scenario_points(run_point(url, 0, when, status), check_long() ? SECONDS : 1, run_here);
}

#define TORTURE(name, url, when, status)                                                           \
    TEST(name, .deadline_s = 3600)                                                                 \
    {                                                                                              \
        torture(url, when, status);                                                                \
    }                                                                                              \
    _Static_assert(1, "")

TORTURE(busy_on_mem, "fault+mem:t", FAULT_BEFORE, PAWL_BUSY);
TORTURE(unknown_before_on_mem, "fault+mem:t", FAULT_BEFORE, PAWL_UNKNOWN);
TORTURE(lost_answer_on_mem, "fault+mem:t", FAULT_AFTER, PAWL_UNKNOWN);
TORTURE(no_memory_on_mem, "fault+mem:t", FAULT_BEFORE, PAWL_NO_MEMORY);
TORTURE(broken_on_mem, "fault+mem:t", FAULT_BEFORE, PAWL_BROKEN);
TORTURE(busy_on_sqlite, "fault+sqlite:t.db", FAULT_BEFORE, PAWL_BUSY);
TORTURE(unknown_before_on_sqlite, "fault+sqlite:t.db", FAULT_BEFORE, PAWL_UNKNOWN);
TORTURE(lost_answer_on_sqlite, "fault+sqlite:t.db", FAULT_AFTER, PAWL_UNKNOWN);
TORTURE(no_memory_on_sqlite, "fault+sqlite:t.db", FAULT_BEFORE, PAWL_NO_MEMORY);
TORTURE(broken_on_sqlite, "fault+sqlite:t.db", FAULT_BEFORE, PAWL_BROKEN);

/* ---- Outages: not one call, but nearly all of them for a while ---- */

static atomic_bool outage_over;

/* Repeatedly makes the next store call fail. */
static void *outage(void *arg)
{
    int64_t from = fixture_mono() + *(int64_t *)arg, until = from + 250 * FIXTURE_MS;
    while (!atomic_load(&outage_over) && fixture_mono() < until) {
        if (fixture_mono() >= from)
            store_fault(1, fault_when, fault_status);
        usleep(30);
    }
    return NULL;
}

static void outages(const char *url, enum fault_when when, enum pawl_status status)
{
    const char *plain = strchr(url, '+') + 1;
    int rounds = check_long() ? 8 : 3;
    fault_when = when;
    fault_status = status;
    log_level_set(LOG_OFF);
    for (int i = 0; i < rounds; i++) {
        struct scenario s = { .url = url, .plain = plain, .has_sql = !fixture_is_mem(plain) };
        struct pawl *anchor = NULL;
        pthread_t thread;
        int64_t before = mem_live(), offset = i * (fixture_is_mem(plain) ? 300 : 4000);
        remove_files();
        store_fault(0, when, status);
        if (fixture_is_mem(plain))
            anchor = fixture_open_as(plain, ANCHOR);
        atomic_store(&outage_over, false);
        EQ_INT(pthread_create(&thread, NULL, outage, &offset), 0);
        scenario_play(&s);
        atomic_store(&outage_over, true);
        pthread_join(thread, NULL);
        store_fault(0, when, status);
        scenario_check(&s);
        pawl_close(anchor);
        UNTIL(mem_live() == before);
        printf("%d calls were acknowledged\n", s.acked);
    }
}

#define OUTAGE(name, url, when, status)                                                            \
    TEST(name, .deadline_s = 600)                                                                  \
    {                                                                                              \
        outages(url, when, status);                                                                \
    }                                                                                              \
    _Static_assert(1, "")

OUTAGE(an_outage_that_refuses_on_mem, "fault+mem:t", FAULT_BEFORE, PAWL_BUSY);
OUTAGE(an_outage_that_loses_answers_on_mem, "fault+mem:t", FAULT_AFTER, PAWL_UNKNOWN);
OUTAGE(an_outage_that_refuses_on_sqlite, "fault+sqlite:t.db", FAULT_BEFORE, PAWL_BUSY);
OUTAGE(an_outage_that_loses_answers_on_sqlite, "fault+sqlite:t.db", FAULT_AFTER, PAWL_UNKNOWN);
