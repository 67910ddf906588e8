/*
 * lib_writer_bulk.c - a long backlog, worked off by bulk writers with their own connections where
 * the engine has them: every call runs once, whatever happens meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hook.h"
#include "base/limits.h"
#include "db_server.h"
#include "exec/internal.h"
#include "lib/lib.h"
#include "fixture.h"

RUNS_ON(ENGINES_ALL)

enum { CROWD = 5000, KEYS = 10, KEYED = 500 };

static atomic_int ran[CROWD], runs;

static int index_of(struct pawl_call *c)
{
    return (int)strtol(pawl_call_id(c) + 1, NULL, 10);
}

static int counts(struct pawl_call *c)
{
    atomic_fetch_add(&ran[index_of(c)], 1);
    return pawl_reply_int(c, atomic_fetch_add(&runs, 1));
}

static void each_ran_once(void)
{
    for (int i = 0; i < CROWD; i++)
        if (atomic_load(&ran[i]) != 1)
            FAIL("call %d ran %d times", i, atomic_load(&ran[i]));
}

/* Types count as quick, and there are many slots: on a busy machine a handler that does nothing may
 * take half a millisecond, and the backlog is long enough for bulk writers nevertheless. */
static void start(struct pawl *p)
{
    fixture_assume_quick();
    fixture_start(p, 16);
}

/* Did bulk writers take part, as they must where the engine has them? */
static void bulk_writers_run(const struct pawl *p)
{
    bool can = !(p->e->traits & STORE_ONE_WRITER);
    EQ_INT(p->e->bulk.v[0].runs, can);
}

TEST(every_call_of_a_backlog_runs_once)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", counts);
    fixture_submit_many(p, "t", CROWD);
    start(p);
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), CROWD);
    each_ran_once();
    bulk_writers_run(p);
    pawl_close(p);
}

/* What has run is stored, everything else is unchanged. */
TEST(a_stop_in_the_middle)
{
    struct pawl_err err;
    struct pawl *p = fixture_open(param);
    if (fixture_is_mem(param))
        skip("mem: nothing is left after it was closed");
    fixture_on(p, "t", counts);
    fixture_submit_many(p, "t", CROWD);
    start(p);
    UNTIL(atomic_load(&runs) > CROWD / 3);
    OK(pawl_stop(p, 10 * FIXTURE_SEC, &err), &err);
    int had_run = atomic_load(&runs);
    bulk_writers_run(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), had_run);
    EQ_INT(fixture_count(p, PAWL_PROCESSING), 0);
    printf("%d of %d had run\n", had_run, CROWD);
    pawl_close(p);
    p = fixture_open(param);
    fixture_on(p, "t", counts);
    start(p);
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), CROWD);
    each_ran_once();
    pawl_close(p);
}

/* The same without a clean stop: every call is handed back, or stored. */
TEST(a_close_in_the_middle)
{
    struct pawl *p = fixture_open(param);
    if (fixture_is_mem(param))
        skip("mem: nothing is left after it was closed");
    fixture_on(p, "t", counts);
    fixture_submit_many(p, "t", CROWD);
    start(p);
    UNTIL(atomic_load(&runs) > CROWD / 3);
    pawl_close(p);
    p = fixture_open(param);
    EQ_INT(fixture_count(p, PAWL_PROCESSING), 0);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), atomic_load(&runs));
    pawl_close(p);
}

/* ---- Other calls in the queue ---------------------------------------------------------------- */

static atomic_int next_of_key[KEYS], out_of_order;

static int in_order(struct pawl_call *c)
{
    int i = index_of(c);
    if (pawl_call_id(c)[0] == 'k' && atomic_fetch_add(&next_of_key[i % KEYS], 1) != i / KEYS)
        atomic_fetch_add(&out_of_order, 1);
    atomic_fetch_add(&runs, 1);
    return pawl_reply_int(c, i);
}

static void submit_keyed(struct pawl *p)
{
    for (int i = 0; i < KEYED; i++) {
        char id[16], key[16];
        snprintf(id, sizeof id, "k%d", i);
        snprintf(key, sizeof key, "key-%d", i % KEYS);
        fixture_submit_as(p,
                          (struct pawl_spec){ PAWL_SPEC_INIT, .id = id, .type = "t", .key = key });
    }
}

/* Calls with a key are not for bulk writers: they are run as usual. */
TEST(keys_keep_their_order_in_a_backlog)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", in_order);
    fixture_submit_many(p, "t", CROWD / 2);
    submit_keyed(p);
    start(p);
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), CROWD / 2 + KEYED);
    EQ_INT(atomic_load(&runs), CROWD / 2 + KEYED);
    EQ_INT(atomic_load(&out_of_order), 0);
    bulk_writers_run(p);
    pawl_close(p);
}

static int sometimes(struct pawl_call *c)
{
    int i = index_of(c);
    atomic_fetch_add(&ran[i], 1);
    return i % 10 == 0 ? pawl_fail(c, "not this one") : pawl_reply_int(c, i);
}

/* Calls that fail end as they would anywhere. */
TEST(failures_in_a_backlog)
{
    struct pawl_err err;
    struct pawl *p = fixture_open(param);
    static struct pawl_spec v[1000];
    static char ids[1000][16];
    static struct pawl_receipt r[1000];
    fixture_on(p, "t", sometimes);
    for (int from = 0; from < CROWD; from += 1000) {
        for (int i = 0; i < 1000; i++) {
            snprintf(ids[i], sizeof ids[i], "c%d", from + i);
            v[i] =
                (struct pawl_spec){ PAWL_SPEC_INIT, .id = ids[i], .type = "t", .max_attempts = 1 };
        }
        OK(pawl_submit(p, v, 1000, 0, r, &err), &err);
    }
    start(p);
    fixture_drain(p);
    each_ran_once();
    EQ_INT(fixture_count(p, PAWL_COMPLETED), CROWD / 10 * 9);
    EQ_INT(fixture_count(p, PAWL_COMPLETED) + fixture_count(p, PAWL_FAILED) +
               fixture_count(p, PAWL_DEAD_LETTER),
           CROWD);
    bulk_writers_run(p);
    pawl_close(p);
}

/* Two calls of different claims take long: no other call waits for them. */
static int may_block(struct pawl_call *c)
{
    int i = index_of(c);
    if (i == CROWD / 4 || i == CROWD / 2)
        return fixture_blocks(c);
    return counts(c);
}

TEST(long_calls_hold_up_nobody)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", may_block);
    fixture_submit_many(p, "t", CROWD);
    start(p);
    UNTIL(atomic_load(&runs) == CROWD - 2 && atomic_load(&fixture_inside) == 2);
    fixture_submit_as(p, (struct pawl_spec){ PAWL_SPEC_INIT, .id = "c0-more", .type = "t" });
    fixture_ends(p, "c0-more", PAWL_COMPLETED);
    fixture_open_gate();
    fixture_drain(p);
    bulk_writers_run(p);
    pawl_close(p);
}

/* ---- A close while results wait behind a commit ---------------------------------------------- */

static atomic_bool holding, waited, behind;

static void hold_bulk(const char *name, void *ctx)
{
    (void)ctx;
    while (strcmp(name, "bulk.commit") == 0 && atomic_load(&holding))
        usleep(1000);
}

/* Is this bulk writer inside a commit? */
static bool commits(struct writer_bulk *h)
{
    pthread_mutex_lock(&h->e->bulk.lock);
    bool inside = h->stage == BULK_LOADED;
    pthread_mutex_unlock(&h->e->bulk.lock);
    return inside;
}

static bool is_closed(struct pawl *p)
{
    pthread_mutex_lock(&p->e->bulk.lock);
    bool closed = p->e->bulk.closed;
    pthread_mutex_unlock(&p->e->bulk.lock);
    return closed;
}

/* One handler ends only when the bulk writer of its lease is inside a commit, which is held: its
 * result is left for the commit after that. */
static int ends_behind(struct pawl_call *c)
{
    struct writer_bulk *h = c->lease->bulk;
    bool here = h && atomic_load(&runs) > CROWD / 4 && !atomic_exchange(&waited, true);
    if (here) {
        atomic_store(&holding, true);
        UNTIL(commits(h));
    }
    int answer = counts(c);
    if (here)
        atomic_store(&behind, true);
    return answer;
}

static void *lets_go(void *arg)
{
    UNTIL(is_closed(arg));
    atomic_store(&holding, false);
    return NULL;
}

TEST(a_close_while_results_wait_behind_a_commit)
{
    pthread_t opener;
    struct pawl *p = fixture_open(param);
    if (!engine_of(param)->server) {
        pawl_close(p);
        skip("%s: no bulk writers, or nothing is left after it was closed", engine_of(param)->name);
    }
    hook_on_pause(hold_bulk, NULL);
    fixture_on(p, "t", ends_behind);
    fixture_submit_many(p, "t", CROWD);
    start(p);
    UNTIL(atomic_load(&behind));
    EQ_INT(pthread_create(&opener, NULL, lets_go, p), 0);
    pawl_close(p);
    EQ_INT(pthread_join(opener, NULL), 0);
    hook_on_pause(NULL, NULL);
    p = fixture_open(param);
    EQ_INT(fixture_count(p, PAWL_PROCESSING), 0);
    /* The commit took longer than a close waits: what it had not stored was handed back. */
    LE_INT(fixture_count(p, PAWL_COMPLETED), atomic_load(&runs));
    EQ_INT(fixture_count(p, PAWL_COMPLETED) + fixture_count(p, PAWL_PENDING), CROWD);
    pawl_close(p);
}

/* ---- Faults ---------------------------------------------------------------------------------- */

/* Connections are cut repeatedly in the middle: results of calls that ran are stored nevertheless.
 */
TEST(connections_that_end_meanwhile)
{
    const struct engine *g = engine_of(param);
    if (!g->server)
        skip("%s: no connection to lose", g->name);
    struct db_server *server = engine_own(param);
    struct pawl *p = fixture_open_as(
        param, (struct pawl_options){ PAWL_OPTIONS_INIT, .heartbeat_grace_us = 20 * FIXTURE_SEC });
    fixture_on(p, "t", counts);
    fixture_submit_many(p, "t", CROWD);
    start(p);
    for (int i = 1; i <= 4; i++) {
        UNTIL(atomic_load(&runs) > CROWD * i / 6);
        db_kill_connections(server);
    }
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), CROWD);
    each_ran_once();
    pawl_close(p);
}
