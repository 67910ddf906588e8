/*
 * api_count.c - the counters of exec: totals of every kind of write, the rates of queues, the
 * signal that work may be due. /metrics and /v1/queues show them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/internal.h"
#include "lib/lib.h"
#include "fixture.h"

RUNS_ON(ENGINES_ALL)

#define COUNT(p, name) ((int64_t)atomic_load(&(p)->e->stats.name))

TEST(totals)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    enum pawl_state state;
    fixture_submit(p, "a", "t");
    fixture_submit(p, "b", "t");
    fixture_offer(p, (struct pawl_spec){ PAWL_SPEC_INIT, .id = "a", .type = "t" });
    EQ_INT(COUNT(p, accepted), 2);
    EQ_INT(COUNT(p, duplicates), 1);
    struct pawl_lease *l = fixture_claim(p, "t", 2);
    EQ_INT(COUNT(p, claimed), 2);
    OK(fixture_finish(p, l->token, "a", PAWL_END_RESULT, &state, &err), &err);
    OK(fixture_finish(p, l->token, "a", PAWL_END_RESULT, &state, &err), &err); /* a repeat */
    OK(fixture_finish(p, l->token, "b", PAWL_END_REFUSE, &state, &err), &err);
    EQ_INT(COUNT(p, completed), 1);
    EQ_INT(COUNT(p, failed_tries), 1);
    EQ_INT(COUNT(p, ended), 2);
    EQ_INT(COUNT(p, lost), 0);
    struct pace pace = exec_pace(p->e, BYTES("default"));
    EQ_INT((int64_t)(pace.accepted * RATE_SECONDS + .5), 2);
    EQ_INT((int64_t)(pace.ended * RATE_SECONDS + .5), 2);
    pace = exec_pace(p->e, BYTES("other"));
    TRUE(pace.accepted == 0 && pace.ended == 0);
    pawl_lease_free(l);
    pawl_close(p);
}

static int64_t sum_of(const struct histogram *h)
{
    int64_t sum = 0;
    for (size_t i = 0; i <= h->n; i++)
        sum += atomic_load(&h->at[i]);
    return sum;
}

TEST(groups_and_commits_are_counted_alike)
{
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .reclaim_interval_us = 600 * FIXTURE_SEC });
    const struct exec_stats *s = &p->e->stats;
    fixture_submit_many(p, "t", 100);
    GT_INT(sum_of(&s->group_ops), 0);
    /* They are counted one after the other. */
    UNTIL(sum_of(&s->group_ops) == sum_of(&s->commit_us));
    pawl_close(p);
}

/* ---- The work signal ------------------------------------------------------------------------- */

struct seen {
    struct work_signal_watch watch; /* first */
    atomic_int times;
};

static void moved(struct work_signal_watch *w)
{
    atomic_fetch_add(&((struct seen *)w)->times, 1);
}

TEST(a_watch_is_told_once_for_each_time_it_asked)
{
    struct seen seen = { .watch.moved = moved };
    struct pawl *p = fixture_open(param);
    exec_work_signal_watch(p->e, &seen.watch);
    fixture_submit(p, "a", "t");
    EQ_INT(seen.times, 0);
    exec_work_signal_ask(p->e);
    TRUE(exec_listens(p->e));
    exec_work_signal_ask(p->e);
    fixture_submit(p, "b", "t");
    UNTIL(seen.times == 1);
    fixture_submit(p, "c", "t");
    fixture_submit(p, "d", "t");
    EQ_INT(seen.times, 1);
    exec_work_signal_ask(p->e);
    exec_work_signal_unask(p->e);
    exec_work_signal_raise(p->e);
    EQ_INT(seen.times, 1);
    exec_work_signal_ask(p->e);
    exec_work_signal_watch(p->e, NULL);
    exec_work_signal_raise(p->e);
    EQ_INT(seen.times, 1);
    pawl_close(p);
}

/* A call that goes back to pending wakes claims by hand. */
TEST(a_handler_that_fails_raises_the_work_signal)
{
    struct seen seen = { .watch.moved = moved };
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_fails);
    fixture_start(p, 1);
    exec_work_signal_watch(p->e, &seen.watch);
    fixture_submit_as(p, (struct pawl_spec){ PAWL_SPEC_INIT, .id = "a", .type = "t",
                                             .backoff_base_us = 3600 * FIXTURE_SEC });
    UNTIL(COUNT(p, failed_tries) == 1);
    uint64_t before = exec_work_signal(p->e);
    fixture_submit_as(p, (struct pawl_spec){ PAWL_SPEC_INIT, .id = "b", .type = "t",
                                             .backoff_base_us = 3600 * FIXTURE_SEC });
    UNTIL(COUNT(p, failed_tries) == 2);
    UNTIL(exec_work_signal(p->e) >= before + 2); /* its submit, and its failure */
    exec_work_signal_watch(p->e, NULL);
    pawl_close(p);
}
