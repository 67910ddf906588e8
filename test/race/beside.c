/*
 * beside.c - results whose row is locked by another transaction: the solo writer commits them, and
 * repeats refused ones until they are stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>

#include "db_server.h"
#include "exec/internal.h"
#include "lib/lib.h"
#include "fixture.h"

RUNS_ON(ENGINE_SERVER)

/* A session that locks every lease in an open transaction. */
static struct db_session *leases_hold(const void *param)
{
    struct db_session *v = db_session_open(engine_of(param)->server);
    char sql[200];
    snprintf(sql, sizeof sql, "BEGIN; SELECT count(*) FROM (SELECT * FROM %slease FOR UPDATE) t;",
             engine_of(param)->tables);
    db_session_say(v, sql);
    return v;
}

static int64_t repeats(struct pawl *p)
{
    struct pawl_stats s = { PAWL_STATS_INIT };
    pawl_stats(p, &s);
    return s.repeats;
}

/* The calls c0 to c(n-1) are in one lease, the first is blocked in its handler. Its result is
 * refused several times, until the lease's row is unlocked. Each call runs once. */
static void end_behind_a_lock(struct pawl *p, const void *param, int n)
{
    UNTIL(atomic_load(&fixture_inside) == 1);
    struct db_session *person = leases_hold(param);
    fixture_open_gate();
    UNTIL(repeats(p) > 1);
    db_session_say(person, "ROLLBACK;");
    for (int i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        fixture_ends(p, id, PAWL_COMPLETED);
    }
    EQ_INT(atomic_load(&fixture_runs), n);
    db_session_close(person);
    pawl_close(p);
}

TEST(a_result_that_is_refused_there_is_stored_in_the_end, .deadline_s = 120)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_blocks);
    fixture_start(p, 2);
    fixture_submit(p, "c0", "t");
    end_behind_a_lock(p, param, 1);
}

/* The results of a run are committed together. */
TEST(a_run_that_is_refused_there_is_stored_in_the_end, .deadline_s = 120)
{
    enum { N = 3 };
    struct pawl *p = fixture_open(param);
    fixture_assume_quick();
    fixture_on(p, "t", fixture_blocks);
    for (int i = 0; i < N; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        fixture_submit_as(p, (struct pawl_spec){ .id = id, .type = "t", .key = "k" });
    }
    fixture_start(p, 2);
    end_behind_a_lock(p, param, N);
}

/* ---- A stop at the same time ----------------------------------------------------------------- */

/* A session that has inserted the id "x" and not committed. */
static struct db_session *id_hold(const void *param)
{
    struct db_session *v = db_session_open(engine_of(param)->server);
    char sql[200];
    snprintf(sql, sizeof sql, "BEGIN; INSERT INTO %sid (id, seq, fingerprint) VALUES ('x', 0, '');",
             engine_of(param)->tables);
    db_session_say(v, sql);
    return v;
}

static int sends_x(struct pawl_call *c)
{
    struct pawl_err err;
    OK(pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .id = "x", .type = "u" }, &err), &err);
    return fixture_blocks(c);
}

struct freeing {
    struct pawl *p;
    struct db_session *person;
};

/* Unlocks the id after the result was refused once more since the stop began. */
static void *free_later(void *arg)
{
    struct freeing *f = arg;
    struct pool *pool = &f->p->e->pool;
    bool stopping = false;
    while (!stopping) {
        usleep(1000);
        pthread_mutex_lock(&pool->lock);
        stopping = pool->stopping;
        pthread_mutex_unlock(&pool->lock);
    }
    int64_t from = repeats(f->p);
    UNTIL(repeats(f->p) > from);
    db_session_say(f->person, "ROLLBACK;");
    return NULL;
}

/* Its handler has returned, so the call is not handed back while its result is being stored. */
TEST(a_stop_waits_for_a_result_on_its_way, .deadline_s = 120)
{
    struct pawl_err err;
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", sends_x);
    fixture_start(p, 2);
    fixture_submit(p, "c0", "t");
    UNTIL(atomic_load(&fixture_inside) == 1);
    struct freeing f = { p, id_hold(param) };
    pthread_t thread;
    fixture_open_gate();
    UNTIL(repeats(p) > 0);
    EQ_INT(pthread_create(&thread, NULL, free_later, &f), 0);
    OK(pawl_stop(p, 60 * FIXTURE_SEC, &err), &err);
    EQ_INT(fixture_state(p, "c0"), PAWL_COMPLETED);
    EQ_INT(fixture_state(p, "x"), PAWL_PENDING);
    pthread_join(thread, NULL);
    db_session_close(f.person);
    pawl_close(p);
}
