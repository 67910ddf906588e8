/*
 * beside.c - results that meet a row which another transaction holds: a side thread commits them
 * (exec/side.c), and what is refused there is offered again until it is stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "db_server.h"
#include "lib/lib.h"
#include "rig.h"

RUNS_ON(ENGINE_SERVER)

/* A session that holds every lease there is, in a transaction that stays open. */
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

/* The calls c0 to c(n-1) are held by a lease, the first of them at the gate. Its result is refused
 * more than once, until the lease is free. Each call runs once. */
static void end_behind_a_lock(struct pawl *p, const void *param, int n)
{
    UNTIL(atomic_load(&rig_inside) == 1);
    struct db_session *person = leases_hold(param);
    rig_open_gate();
    UNTIL(repeats(p) > 1);
    db_session_say(person, "ROLLBACK;");
    for (int i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        rig_ends(p, id, PAWL_COMPLETED);
    }
    EQ_INT(atomic_load(&rig_runs), n);
    db_session_close(person);
    pawl_close(p);
}

TEST(a_result_that_is_refused_there_is_stored_in_the_end, .deadline_s = 120)
{
    struct pawl *p = rig_open(param);
    rig_on(p, "t", rig_blocks);
    rig_start(p, 2);
    rig_submit(p, "c0", "t");
    end_behind_a_lock(p, param, 1);
}

/* The results of a run go together. */
TEST(a_run_that_is_refused_there_is_stored_in_the_end, .deadline_s = 120)
{
    enum { N = 3 };
    struct pawl *p = rig_open(param);
    rig_assume_quick();
    rig_on(p, "t", rig_blocks);
    for (int i = 0; i < N; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        rig_submit_as(p, (struct pawl_spec){ .id = id, .type = "t", .key = "k" });
    }
    rig_start(p, 2);
    end_behind_a_lock(p, param, N);
}
