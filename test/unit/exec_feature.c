/*
 * exec_feature.c - what an operation of a feature brings is taken up at once, and calls that it
 * ends are told to their waiters, although nothing else says so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdatomic.h>
#include <stdio.h>

#include "base/macros.h"
#include "counter.h"
#include "exec/exec.h"
#include "exec/node.h"
#include "exec/one_shot.h"
#include "exec/waiter.h"
#include "exec/write_job.h"
#include "fixture.h"

RUNS_ON(ENGINES_DURABLE)

/* Nothing here looks by itself for as long as the cases last. */
#define NEVER_US (600 * SEC_US)

static struct one_shot ran;

static int handler(struct pawl_call *c)
{
    one_shot_set(&ran);
    return pawl_reply_int(c, 1);
}

static struct exec *open_counting(void *param)
{
    struct exec_conf conf = { .url = engine_url(param),
                              .world = &world_real,
                              .pool_size = 2,
                              .heartbeat_interval_us = 2 * SEC_US,
                              .heartbeat_grace_us = 60 * SEC_US,
                              .reclaim_interval_us = NEVER_US,
                              .retention_us = NEVER_US,
                              .remember_us = NEVER_US,
                              .pool_timeout_us = 30 * SEC_US,
                              .poll_min_us = NEVER_US,
                              .poll_max_us = NEVER_US,
                              .key_pending_max = 1000,
                              .features = counter_features,
                              .n_features = COUNT_OF(counter_features) };
    struct exec *e;
    struct store *s;
    struct pawl_err err;
    struct store_conf own = { .url = conf.url };
    OK(exec_open(&conf, &e, &err), &err);
    OK(store_open(&own, &s, &err), &err);
    counter_tables(s, engine_of(param));
    store_close(s);
    return e;
}

static struct call_spec plan(struct arena *a, const char *id, int64_t delay_us)
{
    struct call_spec s;
    struct pawl_err err;
    call_spec_init(&s);
    s.id = bytes_of(id);
    s.type = BYTES("t");
    s.input = (struct payload){ PAWL_JSON, BYTES("1") };
    s.delay_us = delay_us;
    OK(call_spec_settle(a, &world_real, &s, &err), &err);
    return s;
}

static void soon(struct one_shot *g)
{
    TRUE(one_shot_wait(g, world_mono(&world_real) + 3 * SEC_US * check_scale()));
}

TEST(calls_that_an_operation_accepts_run_at_once)
{
    struct pawl_err err;
    struct arena a;
    struct exec *e = open_counting(param);
    arena_init(&a, 1 << 20);
    one_shot_init(&ran);
    OK(exec_on(e, "t", "run", handler, &err), &err);
    OK(exec_start(e, &(struct exec_workers){ .slots = 1 }, &err), &err);
    struct call_spec s = plan(&a, "x", 0);
    struct op nested = { .kind = OP_ACCEPT, .accept = { .v = &s, .n = 1 } };
    struct counter_op q = { .id = BYTES("1"), .name = BYTES("a"), .by = 1 };
    q.nested = &nested;
    q.n_nested = 1;
    struct op op = counter_count(&q);
    op.a = &a;
    OK(exec_do(e, &op), &op.err);
    soon(&ran);
    /* A call that is woken runs at once, too. */
    s = plan(&a, "y", NEVER_US);
    struct op accept = { .kind = OP_ACCEPT, .a = &a, .accept = { .v = &s, .n = 1 } };
    OK(exec_do(e, &accept), &accept.err);
    one_shot_init(&ran);
    struct op wake = { .kind = OP_WAKE, .a = &a };
    wake.wake = (struct wake){ &accept.accept.out[0].call.seq, 1 };
    OK(exec_do(e, &wake), &wake.err);
    soon(&ran);
    OK(exec_stop(e, SEC_US, &err), &err);
    exec_close(e);
    arena_release(&a);
}

struct waiting {
    struct waiter waiter;
    struct one_shot told;
    enum pawl_state state;
};

static void tell(struct waiter *w, const struct call *c)
{
    ((struct waiting *)w)->state = c->state;
}

static void wake(struct waiter *w)
{
    one_shot_set(&((struct waiting *)w)->told);
}

static void wait_for(struct exec *e, struct waiting *w, const char *id)
{
    *w = (struct waiting){ .waiter = { .id = bytes_of(id), .tell = tell, .wake = wake } };
    one_shot_init(&w->told);
    exec_wait(e, &w->waiter);
}

TEST(calls_that_features_end_are_told_to_their_waiters)
{
    struct arena a;
    struct waiting nested_end, moved_end;
    struct exec *e = open_counting(param);
    arena_init(&a, 1 << 20);
    struct call_spec v[] = { plan(&a, "x", NEVER_US), plan(&a, "y", NEVER_US),
                             plan(&a, "first>y", NEVER_US) };
    v[2].watch = WATCH_END;
    struct op accept = { .kind = OP_ACCEPT, .a = &a, .accept = { .v = v, .n = COUNT_OF(v) } };
    OK(exec_do(e, &accept), &accept.err);
    wait_for(e, &nested_end, "x");
    wait_for(e, &moved_end, "y");
    struct op nested = { .kind = OP_CANCEL, .by_id.id = BYTES("x") };
    struct counter_op q = { .name = BYTES("a"), .by = 1, .nested = &nested, .n_nested = 1 };
    struct op op = counter_count(&q);
    op.a = &a;
    OK(exec_do(e, &op), &op.err);
    soon(&nested_end.told);
    EQ_INT(nested_end.state, PAWL_CANCELLED);
    struct op cancel = { .kind = OP_CANCEL, .a = &a, .by_id.id = BYTES("first>y") };
    OK(exec_do(e, &cancel), &cancel.err);
    soon(&moved_end.told);
    EQ_INT(moved_end.state, PAWL_CANCELLED);
    exec_close(e);
    arena_release(&a);
}
