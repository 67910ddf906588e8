/*
 * lib_claims.c - a node claims what it can run: no more slow calls than it has free slots, quick
 * ones a little ahead, and calls that do not start in time go back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/internal.h"
#include "lib/lib.h"
#include "fixture.h"

RUNS_ON(ENGINES_ALL)

enum { NODES = 3, SLOTS = 4 };

static const char *const names[NODES] = { "n0", "n1", "n2" };
static atomic_int inside[NODES], quick_runs, begun;
static atomic_bool open_all;
static atomic_int passes; /* how many may end */
static char order[64][32];
static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;

static int node_of(struct pawl_call *c)
{
    return c->e->conf.node[1] - '0';
}

/* A reader of `begun` may read that many entries of `order`. */
static void note(struct pawl_call *c)
{
    pthread_mutex_lock(&order_lock);
    int at = atomic_load(&begun);
    if (at < 64)
        snprintf(order[at], sizeof order[at], "%s", pawl_call_id(c));
    atomic_store(&begun, at + 1);
    pthread_mutex_unlock(&order_lock);
}

/* Ends when it gets a permit, or when all may end. */
static int waits(struct pawl_call *c)
{
    note(c);
    atomic_fetch_add(&inside[node_of(c)], 1);
    for (;;) {
        int n = atomic_load(&passes);
        if (atomic_load(&open_all) || (n > 0 && atomic_compare_exchange_strong(&passes, &n, n - 1)))
            break;
        if (pawl_sleep(c, FIXTURE_MS))
            break;
    }
    atomic_fetch_sub(&inside[node_of(c)], 1);
    return pawl_reply_int(c, pawl_call_attempt_no(c));
}

static int quick(struct pawl_call *c)
{
    atomic_fetch_add(&quick_runs, 1);
    return pawl_reply_int(c, pawl_call_attempt_no(c));
}

static struct pawl *node(const void *param, int i)
{
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = names[i] });
    fixture_on(p, "slow", waits);
    fixture_on(p, "quick", quick);
    return p;
}

static void submit_n(struct pawl *p, const char *type, const char *prefix, int n, int priority)
{
    for (int i = 0; i < n; i++) {
        char id[32];
        snprintf(id, sizeof id, "%s%d", prefix, i);
        fixture_submit_as(
            p, (struct pawl_spec){ PAWL_SPEC_INIT, .id = id, .type = type, .priority = priority });
    }
}

static int all_inside(void)
{
    return atomic_load(&inside[0]) + atomic_load(&inside[1]) + atomic_load(&inside[2]);
}

static bool each_inside(int n)
{
    return atomic_load(&inside[0]) == n && atomic_load(&inside[1]) == n &&
           atomic_load(&inside[2]) == n;
}

static void close_all(struct pawl *const *p, int n)
{
    atomic_store(&open_all, true);
    fixture_drain(p[0]);
    EQ_INT(fixture_count(p[0], 0), fixture_count(p[0], PAWL_COMPLETED));
    for (int i = 0; i < n; i++)
        pawl_close(p[i]);
}

/* Submitted to one of three idle nodes: each runs as many as it has slots, and holds no more. */
TEST(slow_calls_spread_over_idle_nodes)
{
    struct pawl *p[NODES];
    for (int i = 0; i < NODES; i++)
        fixture_start(p[i] = node(param, i), SLOTS);
    fixture_submit_many(p[0], "slow", NODES * SLOTS + 5);
    UNTIL(each_inside(SLOTS));
    EQ_INT(fixture_count(p[0], PAWL_PROCESSING), NODES * SLOTS);
    EQ_INT(fixture_count(p[0], PAWL_PENDING), 5);
    close_all(p, NODES);
}

/* A type that was quick and is not any more: calls that were claimed ahead become free for others
 * soon. */
TEST(what_does_not_begin_is_handed_back)
{
    struct pawl *p[NODES];
    fixture_assume_quick();
    p[0] = node(param, 0);
    fixture_submit_many(p[0], "slow", NODES * SLOTS + 5);
    fixture_start(p[0], SLOTS);
    UNTIL(atomic_load(&inside[0]) == SLOTS);
    for (int i = 1; i < NODES; i++)
        fixture_start(p[i] = node(param, i), SLOTS);
    UNTIL(each_inside(SLOTS));
    UNTIL(fixture_count(p[0], PAWL_PROCESSING) == NODES * SLOTS &&
          fixture_count(p[0], PAWL_PENDING) == 5);
    close_all(p, NODES);
}

static bool none_queued(struct pawl *p)
{
    pthread_mutex_lock(&p->e->pool.lock);
    bool yes = p->e->pool.n_queued == 0;
    pthread_mutex_unlock(&p->e->pool.lock);
    return yes;
}

/* Handing back is not an attempt, and is not counted as one. */
TEST(what_is_handed_back_is_not_counted)
{
    struct pawl *p = node(param, 0);
    fixture_assume_quick();
    fixture_submit_many(p, "slow", 3 * SLOTS);
    fixture_start(p, SLOTS);
    UNTIL(atomic_load(&inside[0]) == SLOTS && none_queued(p));
    atomic_store(&open_all, true);
    fixture_drain(p);
    for (int i = 0; i < 3 * SLOTS; i++) {
        char id[32];
        snprintf(id, sizeof id, "c%d", i);
        struct pawl_shown *s = fixture_get(p, id);
        EQ_INT(pawl_shown_view(s)->attempts + pawl_shown_view(s)->lost, 0);
        EQ_INT(pawl_shown_view(s)->state, PAWL_COMPLETED);
        pawl_shown_free(s);
    }
    pawl_close(p);
}

static void learn(struct pawl *p)
{
    submit_n(p, "quick", "learn", 2 * DURATION_SAMPLES_MIN, 0);
    fixture_drain(p);
}

/* Quick calls among slow ones in one queue are claimed ahead; slow ones never wait inside a node.
 */
TEST(slow_and_quick_types_in_one_queue)
{
    struct pawl *p[NODES];
    for (int i = 0; i < 2; i++)
        fixture_start(p[i] = node(param, i), SLOTS);
    learn(p[0]);
    int before = atomic_load(&quick_runs);
    submit_n(p[0], "slow", "s", SLOTS, 0);
    submit_n(p[0], "quick", "q", 20, 0);
    submit_n(p[0], "slow", "t", SLOTS, 0);
    UNTIL(all_inside() == 2 * SLOTS);
    UNTIL(fixture_count(p[0], PAWL_PROCESSING) == 2 * SLOTS);
    atomic_store(&passes, 1);
    UNTIL(atomic_load(&quick_runs) == before + 20);
    close_all(p, 2);
}

/* While every slot is busy nothing is claimed ahead, so the call with the highest priority starts
 * when the next slot is free. */
TEST(a_high_priority_begins_with_the_next_free_slot)
{
    struct pawl *p = node(param, 0);
    fixture_start(p, 2);
    submit_n(p, "slow", "s", 20, 0);
    UNTIL(all_inside() == 2);
    submit_n(p, "slow", "urgent", 1, 100);
    atomic_store(&passes, 1);
    UNTIL(atomic_load(&begun) == 3);
    EQ_STR(order[2], "urgent0");
    EQ_INT(fixture_state(p, "urgent0"), PAWL_PROCESSING);
    close_all(&p, 1);
}

/* Is `type` known as slow, and nothing queued? Between two claims nothing is queued either, but
 * only a quick type is claimed ahead again. */
static bool slow_and_none_queued(struct pawl *p, const char *type)
{
    struct pool *pool = &p->e->pool;
    pthread_mutex_lock(&pool->lock);
    bool yes = pool->n_queued == 0;
    for (size_t i = 0; i < pool->durations.n_quick; i++)
        yes = yes && !bytes_eq(pool->durations.quick[i], bytes_of(type));
    pthread_mutex_unlock(&pool->lock);
    return yes;
}

/* Nothing has become free meanwhile. */
TEST(what_is_handed_back_is_not_claimed_again_at_once)
{
    struct pawl *p = node(param, 0);
    fixture_assume_quick();
    fixture_submit_many(p, "slow", 3 * SLOTS);
    fixture_start(p, SLOTS);
    UNTIL(atomic_load(&inside[0]) == SLOTS && slow_and_none_queued(p, "slow"));
    EQ_INT(atomic_load(&p->e->stats.claimed), 3 * SLOTS);
    close_all(&p, 1);
}

/* The same when calls were claimed ahead that turned out to be slow. */
TEST(a_high_priority_overtakes_what_was_claimed_ahead)
{
    struct pawl *p = node(param, 0);
    fixture_assume_quick();
    fixture_submit_many(p, "slow", 20);
    fixture_start(p, 2);
    UNTIL(all_inside() == 2);
    submit_n(p, "slow", "urgent", 1, 100);
    UNTIL(slow_and_none_queued(p, "slow"));
    /* A claim that began before the type was known as slow has ended when this call is stored. */
    submit_n(p, "slow", "last", 1, 0);
    UNTIL(slow_and_none_queued(p, "slow"));
    atomic_store(&passes, 1);
    UNTIL(atomic_load(&begun) == 3);
    EQ_STR(order[2], "urgent0");
    close_all(&p, 1);
}

/* For callers it is pending, and can be cancelled as such, while all slots are busy. */
TEST(what_waits_for_a_slot_is_pending)
{
    struct pawl *p = node(param, 0);
    struct pawl_err err;
    enum pawl_state state;
    fixture_start(p, 2);
    submit_n(p, "slow", "s", 10, 0);
    UNTIL(all_inside() == 2 && fixture_count(p, PAWL_PROCESSING) == 2);
    EQ_INT(fixture_count(p, PAWL_PENDING), 8);
    OK(pawl_cancel(p, "s9", &state, &err), &err);
    EQ_INT(state, PAWL_CANCELLED);
    atomic_store(&open_all, true);
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 9);
    EQ_INT(atomic_load(&begun), 9);
    pawl_close(p);
}

/* ---- What is measured ------------------------------------------------------------------------ */

static int samples(struct pawl *p)
{
    struct pool *pool = &p->e->pool;
    int n = 0;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < p->e->registry.n; i++)
        n += pool->durations.v[i].n;
    pthread_mutex_unlock(&pool->lock);
    return n;
}

/* A call that is cancelled before its handler started has no run time, and is not measured. */
TEST(a_call_that_never_began_is_not_measured)
{
    struct pawl *p = node(param, 0);
    struct pawl_err err;
    fixture_assume_quick(); /* so that calls of a key come in one run */
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "c%d", i);
        fixture_submit_as(
            p, (struct pawl_spec){ PAWL_SPEC_INIT, .id = id, .type = "slow", .key = "k" });
    }
    fixture_start(p, 1);
    int before = samples(p);
    UNTIL(all_inside() == 1);
    OK(pawl_cancel(p, "c1", NULL, &err), &err);
    atomic_store(&open_all, true);
    fixture_drain(p);
    EQ_INT(fixture_state(p, "c1"), PAWL_CANCELLED);
    EQ_INT(atomic_load(&begun), 2);
    EQ_INT(samples(p) - before, 2);
    pawl_close(p);
}
