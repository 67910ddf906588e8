/*
 * pool.c - how much a node claims and which types: the store thread's decisions, tested on a pool
 * that runs nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/pool.h"

#include "base/mem.h"
#include "check.h"
#include "exec/internal.h"

enum { SLOTS = 4 };

static struct exec e;

static int handler(struct pawl_call *c)
{
    (void)c;
    return 0;
}

/* Two types, of which the first n are quick. */
static void begin(int n_quick)
{
    struct pawl_err err;
    OK(registry_add(&e.registry, "a", "run", handler, &err), &err);
    OK(registry_add(&e.registry, "b", "run", handler, &err), &err);
    OK(registry_seal(&e.registry, &err), &err);
    OK(pool_init(&e.pool, &err), &err);
    OK(durations_init(&e.pool.durations, &e.registry, &err), &err);
    e.conf.node = "n";
    e.conf.world = &world_real;
    e.pool.slots = e.pool.threads = SLOTS;
    e.pool.started = true;
    for (int i = 0; i < n_quick * DURATION_SAMPLES_MIN; i++)
        durations_note(&e.pool.durations, i / DURATION_SAMPLES_MIN, 100);
}

static void end(void)
{
    pool_release(&e.pool);
    registry_release(&e.registry);
}

static struct lease_run *lease_of(struct write_job *j)
{
    TRUE(j != NULL);
    return (struct lease_run *)((char *)j - offsetof(struct lease_run, job));
}

/* A claim for this many whose answer was lost. */
static struct token lost_claim(int max)
{
    struct lease_run *l = lease_of(pool_claim_job(&e, max, NULL));
    EQ_INT(l->job.op.claim.max, max);
    l->job.op.status = PAWL_UNKNOWN;
    l->job.done(&l->job);
    TRUE(e.pool.spare == l && l->again);
    return l->token;
}

/* What it may have taken belongs to its token: without memory for the next attempt the token is not
 * lost. */
TEST(a_repeated_claim_survives_a_lack_of_memory)
{
    begin(1);
    struct token token = lost_claim(10);
    arena_release(&e.pool.spare->arena); /* a chunk of its own would have enough memory */
    arena_init(&e.pool.spare->arena, 1 << 20);
    mem_torture(1, 1);
    struct write_job *j = pool_claim_job(&e, 5, NULL);
    mem_torture(0, 0);
    EQ_PTR(j, NULL);
    TRUE(e.pool.spare && e.pool.spare->again);
    struct lease_run *l = lease_of(pool_claim_job(&e, 5, NULL));
    EQ_INT(memcmp(&l->token, &token, sizeof token), 0);
    EQ_INT(l->job.op.claim.max, 10);
    lease_run_free(l);
    end();
}

/* A repeat asks for as many as the first claim, which may have been many quick ones. If types have
 * become slow since, and the first took nothing, it takes no more than there are slots. */
TEST(a_repeated_claim_takes_no_more_slow_calls_than_slots)
{
    begin(2);
    lost_claim(1000);
    for (int i = 0; i < 2; i++)
        durations_note_running(&e.pool.durations, i, SEC_US);
    struct lease_run *l = lease_of(pool_claim_job(&e, 1, NULL));
    const struct claim *c = &l->job.op.claim;
    EQ_INT(c->max, 1000);
    EQ_INT(c->max_any, SLOTS);
    EQ_INT((int64_t)c->n_quick, 0);
    lease_run_free(l);
    end();
}

/* The same for a bulk writer: an empty list of types would mean every type. */
TEST(a_bulk_writers_repeated_claim_takes_no_more_either)
{
    begin(0);
    static struct writer_bulk h;
    h.e = &e;
    e.pool.busiest_queue = BYTES("q");
    struct lease_run *l = lease_of(pool_claim_job(&e, 1000, &h));
    const struct claim *c = &l->job.op.claim;
    EQ_INT(c->max_any, SLOTS);
    EQ_INT((int64_t)c->n_types, 2);
    lease_run_free(l);
    end();
}

/* A delayed call is due, and the database is away: without the pause the store thread asks it as
 * often as a processor can. */
TEST(a_refused_claim_waits_also_when_a_delayed_call_is_due)
{
    begin(0);
    int64_t now_us = world_mono(&world_real);
    e.pool.next_claim_us = now_us - SEC_US;
    TRUE(pool_want(&e, false) > 0);
    struct lease_run *l = lease_of(pool_claim_job(&e, 1, NULL));
    l->job.op.status = PAWL_BUSY;
    l->job.done(&l->job);
    EQ_INT(pool_want(&e, false), 0);
    TRUE(pool_next_claim(&e) > now_us);
    end();
}

/* A slot whose thread could not be created runs nothing, and nothing is claimed for it. */
TEST(slots_without_a_thread_claim_nothing)
{
    begin(0);
    EQ_INT(pool_want(&e, true), SLOTS);
    e.pool.threads = 1;
    EQ_INT(pool_want(&e, true), 1);
    e.pool.blocked = 1; /* it waits, and no other thread took its place */
    EQ_INT(pool_want(&e, true), 0);
    e.pool.threads = SLOTS + 1; /* others did */
    EQ_INT(pool_want(&e, true), SLOTS);
    end();
}
