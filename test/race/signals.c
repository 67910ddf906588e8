/*
 * signals.c - a signal whose transaction has read the run's call before the run began to wait for
 * it, on another node: the run is woken all the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/macros.h"
#include "check.h"
#include "engines.h"
#include "feature/workflow.h"
#include "model/needs.h"
#include "store/feature.h"

RUNS_ON(ENGINE_SERVER)

static struct store *one, *two;
static struct arena a;
static struct pawl_err err;

static void commit(struct store *s, struct op *op)
{
    op->a = &a;
    while (store_commit(s, &op, 1) != PAWL_OK)
        EQ_STATUS(op->status, PAWL_BUSY, &op->err);
    OK(op->status, &op->err);
}

/* ---- The other node -------------------------------------------------------------------------- */

static struct token token;
static int64_t seq;

static size_t claim_it(void)
{
    static const struct bytes has[] = { NEED_STEPS };
    struct op op = { .kind = OP_CLAIM,
                     .claim = { .token = token = token_make(&world_real),
                                .node = BYTES("n"),
                                .boot = BYTES("b"),
                                .has = has,
                                .n_has = COUNT_OF(has),
                                .max = 1,
                                .lease_us = 600 * SEC_US } };
    commit(two, &op);
    return op.claim.n;
}

static void wait_for_go(void)
{
    struct bytes go = BYTES("go");
    struct workflow_step s = { .no = 1,
                               .name = go,
                               .kind = STEP_SIGNAL,
                               .says = SAYS_WAIT,
                               .wait = { .signals = &go, .n_signals = 1 } };
    struct workflow_op q = { .what = WORKFLOW_STEPS, .steps = { .v = &s, .n = 1 } };
    struct op op = { .kind = OP_FEATURE,
                     .feature = {
                         .of = &feature_workflow, .ctx = &q, .token = token, .seq = seq } };
    commit(two, &op);
    TRUE(q.steps.suspended);
}

/* ---- The signal ------------------------------------------------------------------------------ */

static bool claims; /* the other node claims the call meanwhile; else it holds it already */
static int acted;

/* The transaction reads the call; then the other node acts; then the signal is decided. */
static enum pawl_status then_signal(struct ledger *d, struct op *op, struct pawl_err *why)
{
    struct op *signal = op->feature.ctx;
    struct feature_call c;
    signal->a = op->a; /* what it chooses outlives a transaction that is repeated */
    enum pawl_status st = feature_call_named(d, BYTES("x"), &c, why);
    if (!acted++ && st == PAWL_OK) {
        EQ_INT(c.state, claims ? PAWL_PENDING : PAWL_PROCESSING);
        EQ_UINT(claims ? claim_it() : 1, 1);
        wait_for_go();
    }
    return st == PAWL_OK ? feature_nested(d, signal, why) : st;
}

static const struct feature before = { .name = "before", .apply = then_signal };

static struct store *opened(const char *param)
{
    static const struct feature *features[2] = { &feature_workflow, &before };
    struct store *s = NULL;
    struct store_conf conf = { .url = engine_url(param),
                               .retention_us = 3600 * SEC_US,
                               .features = features,
                               .n_features = COUNT_OF(features) };
    OK(store_open(&conf, &s, &err), &err);
    OK(store_migrate(s, true, &err), &err);
    return s;
}

static void submit(const char *key)
{
    struct call_spec call;
    call_spec_init(&call);
    call.id = BYTES("x");
    call.type = BYTES("t");
    call.key = bytes_of(key);
    OK(call_spec_settle(&a, &world_real, &call, &err), &err);
    struct op accept = { .kind = OP_ACCEPT, .accept = { .v = &call, .n = 1 } };
    commit(one, &accept);
    seq = accept.accept.out[0].call.seq;
}

static void wakes(void *param, const char *key)
{
    arena_init(&a, 64 << 20);
    one = opened(param);
    two = opened(param);
    submit(key);
    if (!claims)
        EQ_UINT(claim_it(), 1);
    struct workflow_op q = { .what = WORKFLOW_SIGNAL,
                             .id = BYTES("x"),
                             .name = BYTES("go"),
                             .value = { PAWL_JSON, BYTES("7") } };
    struct op signal = { .kind = OP_FEATURE, .feature = { .of = &feature_workflow, .ctx = &q } };
    struct op outer = { .kind = OP_FEATURE, .feature = { .of = &before, .ctx = &signal } };
    commit(one, &outer);
    OK(signal.status, &signal.err);
    GT_INT(acted, 1); /* the group was repeated */
    EQ_UINT(claim_it(), 1);
    store_close(one);
    store_close(two);
    arena_release(&a);
}

TEST(a_run_that_was_held_when_it_was_read_is_woken)
{
    wakes(param, NULL);
}

TEST(a_run_with_a_key_that_was_held_when_it_was_read_is_woken)
{
    wakes(param, "k");
}

TEST(a_run_that_was_due_when_it_was_read_is_woken)
{
    claims = true;
    wakes(param, NULL);
}
