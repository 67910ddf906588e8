/*
 * lib_queues.c - queues that share workers, and types that are not registered.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "exec/stats.h"
#include "lib/lib.h"
#include "fixture.h"

RUNS_ON(ENGINES_ALL)

#define CROWD 6000

static atomic_int ran, light_at;

static int counts(struct pawl_call *c)
{
    int at = atomic_fetch_add(&ran, 1) + 1;
    if (strcmp(pawl_call_id(c), "light") == 0)
        atomic_store(&light_at, at);
    return pawl_reply_int(c, at);
}

/* A call in another queue that becomes due later does not wait for the whole backlog of the first.
 */
TEST(a_full_queue_lets_others_through)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", counts);
    fixture_submit_many(p, "t", CROWD);
    fixture_submit_as(
        p, (struct pawl_spec){ PAWL_SPEC_INIT, .id = "light", .type = "t", .queue = "light" });
    fixture_start(p, 1);
    fixture_ends(p, "light", PAWL_COMPLETED);
    fixture_drain(p);
    EQ_INT(atomic_load(&ran), CROWD + 1);
    printf("ran as number %d of %d\n", atomic_load(&light_at), CROWD + 1);
    LT_INT(atomic_load(&light_at), CROWD / 2);
    pawl_close(p);
}

/* Two full queues are served in turn. Otherwise the second has done nothing when the first is done.
 * On a server the first is claimed on two connections and the second on one, which a busy machine
 * may serve less often: at least an eighth of the second must be done by then. */
static atomic_int done[2], other_when_done[2];

static int takes_turns(struct pawl_call *c)
{
    int i = pawl_call_id(c)[0] == 'b';
    if (atomic_fetch_add(&done[i], 1) + 1 == CROWD / 2)
        atomic_store(&other_when_done[i], atomic_load(&done[!i]));
    return pawl_reply_int(c, i);
}

static void fill(struct pawl *p, char name, const char *queue)
{
    static struct pawl_spec v[1000];
    static char ids[1000][16];
    static struct pawl_receipt r[1000];
    struct pawl_err err;
    for (int i = 0; i < CROWD / 2; i++) {
        int k = i % 1000;
        snprintf(ids[k], sizeof ids[k], "%c%d", name, i);
        v[k] = (struct pawl_spec){ PAWL_SPEC_INIT, .id = ids[k], .type = "t", .queue = queue };
        if (k == 999)
            OK(pawl_submit(p, v, 1000, 0, r, &err), &err);
    }
}

TEST(two_full_queues_take_turns)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", takes_turns);
    fill(p, 'a', "first");
    fill(p, 'b', "second");
    fixture_start(p, 1);
    fixture_drain(p);
    EQ_INT(atomic_load(&done[0]), CROWD / 2);
    EQ_INT(atomic_load(&done[1]), CROWD / 2);
    printf("when one was done: %d and %d of %d of the other\n", atomic_load(&other_when_done[0]),
           atomic_load(&other_when_done[1]), CROWD / 2);
    GT_INT(atomic_load(&other_when_done[0]), CROWD / 2 / 8);
    pawl_close(p);
}

/* ---- Types of other nodes -------------------------------------------------------------------- */

/* Operations that were not alone in their commit. */
static int64_t company(const struct pawl *p)
{
    const struct histogram *h = &exec_stats_of(p->e)->group_ops;
    int64_t groups = 0;
    for (size_t i = 0; i <= h->n; i++)
        groups += atomic_load(&h->at[i]);
    return atomic_load(&h->sum) - groups;
}

TEST(calls_that_others_run_bring_no_claim)
{
    enum { OTHERS = 100 };
    /* Heartbeats, sweeps and polls would share commits too. */
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .reclaim_interval_us = 600 * FIXTURE_SEC,
                                                      .heartbeat_interval_us = 5 * FIXTURE_SEC,
                                                      .poll_min_us = 600 * FIXTURE_SEC,
                                                      .poll_max_us = 600 * FIXTURE_SEC });
    struct pawl_receipt receipts[2];
    struct pawl_err err;
    fixture_on(p, "t", counts);
    fixture_start(p, 2);
    fixture_submit(p, "first", "t");
    fixture_ends(p, "first", PAWL_COMPLETED);
    int64_t before = company(p);
    for (int i = 0; i < OTHERS; i++) {
        char id[16];
        snprintf(id, sizeof id, "other-%d", i);
        fixture_submit(p, id, "other");
    }
    /* With a claim for each there would be as many as calls. */
    LT_INT(company(p) - before, OTHERS / 2);
    /* One of our calls among them is not overlooked. */
    struct pawl_spec both[] = { { PAWL_SPEC_INIT, .id = "theirs", .type = "other" },
                                { PAWL_SPEC_INIT, .id = "ours", .type = "t" } };
    OK(pawl_submit(p, both, 2, 0, receipts, &err), &err);
    fixture_ends(p, "ours", PAWL_COMPLETED);
    EQ_INT(fixture_count(p, PAWL_PENDING), OTHERS + 1);
    pawl_close(p);
}
