/*
 * sqlite_cost.c - the cost of an operation does not depend on rows that it does not touch. Counted
 * in SQLite's own steps, so that no clock decides.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "feature/all.h"
#include "feature/workflow.h"
#include "flow.h"
#include "lite.h"
#include "own_world.h"

#define MANY 20000

/* Steps of all statements since the last call. */
static int64_t steps(struct lite_fixture *r)
{
    struct lite *c = lite_of_fixture(r);
    int64_t n = 0;
    for (int i = 0; i < SQL_COUNT; i++)
        if (c->stmts[i])
            n += sqlite3_stmt_status(c->stmts[i], SQLITE_STMTSTATUS_VM_STEP, 1);
    return n;
}

static void pause_queue(struct lite_fixture *r, const char *queue)
{
    struct op op = { .kind = OP_PAUSE, .pause = { .queue = bytes_of(queue), .paused = true } };
    OK(lite_one(r, &op), &op.err);
}

/* Twice: the second time is the cost when everything is prepared and cached. */
static int64_t claim_steps(struct lite_fixture *r, const char *type, unsigned char token)
{
    int64_t n = 0;
    for (int i = 0; i < 2; i++) {
        lite_accept_n(r, type, 3, 1, 0);
        steps(r);
        struct op op = lite_claim_of(r, type, 3, (unsigned char)(token + i));
        EQ_INT(op.claim.n, 3);
        n = steps(r);
    }
    return n;
}

TEST(a_claim_does_not_pay_for_what_others_wait_for)
{
    struct own_world world;
    struct lite_fixture r;
    own_world_init(&world, 1);
    lite_fixture_open(&r, "sqlite:cost.db", &world.world);
    int64_t alone = claim_steps(&r, "served", 1);
    lite_accept_n(&r, "nobody serves this", MANY, 1, 0);
    lite_accept_n(&r, "served", MANY, 1, 1000 * SEC_US); /* not due yet */
    int64_t beside = claim_steps(&r, "served", 10);
    /* A few steps to skip the other lane and to learn what is due next; not thousands. */
    LT_INT(beside, alone + 200);

    lite_accept_n(&r, "paused later", MANY, 1, 0);
    pause_queue(&r, "default");
    steps(&r);
    struct op op = lite_claim_of(&r, NULL, 3, 20);
    EQ_INT(op.claim.n, 0);
    LT_INT(steps(&r), 500);
    lite_fixture_close(&r);
}

TEST(a_thousand_lost_calls_do_not_stand_in_the_way)
{
    struct own_world world;
    struct lite_fixture r;
    own_world_init(&world, 1);
    lite_fixture_open(&r, "sqlite:cost.db", &world.world);
    int64_t alone = claim_steps(&r, "t", 1);
    lite_accept_n(&r, "t", 1000, 1, 0);
    struct op held = lite_claim_of(&r, "t", 1000, 50);
    EQ_INT(held.claim.n, 1000);
    struct op join = { .kind = OP_JOIN, .node = { .node = BYTES("n1"), .boot = BYTES("b2") } };
    OK(lite_one(&r, &join), &join.err);
    own_world_advance(&world, SEC_US);
    lite_accept_n(&r, "t", 3, 1, 0);
    steps(&r);
    struct op op = { .kind = OP_CLAIM,
                     .claim = { .token = { { 60, 1 } },
                                .node = BYTES("n1"),
                                .boot = BYTES("b2"),
                                .max = 3,
                                .no_retry_alone = true } };
    OK(lite_one(&r, &op), &op.err);
    EQ_INT(op.claim.n, 3);
    LT_INT(steps(&r), alone + 200);
    lite_fixture_close(&r);
}

/* A result is one insert: the call, other outcomes and the list are not read. */
TEST(a_finish_costs_the_same_in_a_lease_of_a_thousand)
{
    struct lite_fixture r;
    int64_t cost[2];
    lite_fixture_open(&r, "sqlite:cost.db", NULL);
    for (int i = 0; i < 2; i++) {
        int n = i ? 1000 : 3;
        lite_accept_n(&r, "t", n, 1, 0);
        struct op op = lite_claim_of(&r, "t", n, (unsigned char)(i + 1));
        EQ_INT(op.claim.n, n);
        for (int k = 0; k < 2; k++) {
            steps(&r);
            OK(lite_finish_seq(&r, op.claim.token, op.claim.calls[k].seq), NULL);
            cost[i] = steps(&r);
        }
    }
    EQ_INT(cost[0], cost[1]);
    lite_fixture_close(&r);
}

/* Steps of reading one page of calls of one lease, all of them leased: how many are processing. */
static int64_t page_steps(struct lite_fixture *r, int64_t *out_processing)
{
    struct query q = { .limit = 100 };
    struct page page;
    steps(r);
    OK(store_list(r->s, &r->a, &q, &page, &r->err), &r->err);
    EQ_INT(page.n, 100);
    *out_processing = 0;
    for (size_t i = 0; i < page.n; i++)
        *out_processing += page.v[i].state == PAWL_PROCESSING;
    return steps(r);
}

/* A page of a lease with more calls than run at once reads each of them once, not once for each
 * call that it shows; a lease with fewer is not read at all. */
TEST(a_page_looks_through_a_lease_once)
{
    int64_t cost[3], processing[3];
    const int width[] = { 0, 1000, 950 };
    for (int i = 0; i < 3; i++) {
        struct lite_fixture r;
        char url[40];
        snprintf(url, sizeof url, "sqlite:cost%d.db", i);
        lite_fixture_open(&r, url, NULL);
        lite_accept_n(&r, "t", 1000, 1, 0);
        struct op op = { .kind = OP_CLAIM,
                         .claim = { .token = { { 1, 1 } },
                                    .node = BYTES("n1"),
                                    .boot = BYTES("b1"),
                                    .max = 1000,
                                    .width = width[i] } };
        OK(lite_one(&r, &op), &op.err);
        EQ_INT(op.claim.n, 1000);
        cost[i] = page_steps(&r, &processing[i]);
        lite_fixture_close(&r);
    }
    EQ_INT(processing[0], 100);
    EQ_INT(processing[1], 100);
    EQ_INT(processing[2], 50);
    EQ_INT(cost[1], cost[0]);
    LT_INT(cost[2], cost[0] + 1000 * 40); /* reading one takes some 20 steps */
}

/* A claim that may take few slow calls reads few of them, however many it may take in all. */
TEST(a_claim_reads_no_more_slow_calls_than_it_may_take)
{
    struct lite_fixture r;
    lite_fixture_open(&r, "sqlite:cost.db", NULL);
    lite_accept_n(&r, "slow", 5000, 1, 0);
    int64_t cost[2];
    for (int i = 0; i < 4; i++) {
        struct op op = { .kind = OP_CLAIM,
                         .claim = { .token = { { (unsigned char)(1 + i), 1 } },
                                    .node = BYTES("n1"),
                                    .boot = BYTES("b1"),
                                    .max = i % 2 ? 1000 : 3,
                                    .max_any = i % 2 ? 3 : 0 } };
        steps(&r);
        OK(lite_one(&r, &op), &op.err);
        EQ_INT(op.claim.n, 3);
        cost[i % 2] = steps(&r);
    }
    LT_INT(cost[1], cost[0] + 100);
    lite_fixture_close(&r);
}

/* Runs of a statement since the last time. */
static int runs(struct lite_fixture *r, enum sql_name name)
{
    sqlite3_stmt *q = lite_of_fixture(r)->stmts[name];
    return q ? sqlite3_stmt_status(q, SQLITE_STMTSTATUS_RUN, 1) : 0;
}

/* A claim, and before it in the same group the end of two calls in the midst of what it takes. */
static size_t claim_all(struct lite_fixture *r, const char *type)
{
    struct bytes types[] = { bytes_of(type) };
    struct op out[] = { { .kind = OP_CANCEL, .a = &r->a, .by_id.id = BYTES("i125") },
                        { .kind = OP_CANCEL, .a = &r->a, .by_id.id = BYTES("i310") },
                        { .kind = OP_CLAIM,
                          .a = &r->a,
                          .claim = { .token = { { 1, 1 } },
                                     .node = BYTES("n1"),
                                     .boot = BYTES("b1"),
                                     .types = types,
                                     .n_types = 1,
                                     .max = 270 } } };
    struct op *v[] = { &out[0], &out[1], &out[2] };
    OK(store_commit(r->s, v, COUNT_OF(v)), &out[2].err);
    return out[2].claim.n;
}

/* Of calls of six moments, and of another type between them. Just those go that were taken. */
TEST(a_claim_removes_ranges)
{
    struct own_world world;
    struct lite_fixture r;
    own_world_init(&world, 1);
    lite_fixture_open(&r, "sqlite:cost.db", &world.world);
    for (int i = 0; i < 6; i++) {
        lite_accept_n(&r, "t", 50, 1, 0);
        lite_accept_n(&r, "other", 50, 1, 0);
        own_world_advance(&world, SEC_US);
    }
    runs(&r, SQL_READY_REMOVE);
    EQ_INT(claim_all(&r, "t"), 270);
    LE_INT(runs(&r, SQL_READY_REMOVE), 2);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_ready"), 600 - 2 - 270);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_ready r JOIN pawl_call c ON c.seq = r.seq JOIN "
                        "pawl_lane l ON l.lane = c.lane WHERE l.type = 'other'"),
           300);
    EQ_INT(lite_ask(&r, "SELECT min(seq) FROM pawl_ready WHERE track = 2"), 500 + 22 + 1);
    lite_fixture_close(&r);
}

RUNS_ON(ENGINE_FILE)

/* Runs of all statements since the last time. */
static int runs_all(struct lite_fixture *r)
{
    int n = 0;
    for (int i = 0; i < SQL_COUNT; i++)
        n += runs(r, (enum sql_name)i);
    return n;
}

/* Commit n signals of this name to the run as one group. How many statements that were. */
static int signals_runs(struct lite_fixture *r, const char *name, int n)
{
    struct workflow_op q[2];
    struct op op[2], *v[2];
    for (int i = 0; i < n; i++) {
        q[i] = (struct workflow_op){ .what = WORKFLOW_SIGNAL,
                                     .id = BYTES("i1"),
                                     .name = bytes_of(name),
                                     .value = { PAWL_JSON, BYTES("1") } };
        op[i] = (struct op){ .kind = OP_FEATURE,
                             .a = &r->a,
                             .feature = { .of = &feature_workflow, .ctx = &q[i] } };
        v[i] = &op[i];
    }
    runs_all(r);
    OK(store_commit(r->s, v, (size_t)n), &op[0].err);
    return runs_all(r);
}

/* One step of gc, with nothing to remove. */
static int64_t gc_steps(struct lite_fixture *r, int *out_looks)
{
    struct op op = { .kind = OP_GC, .a = &r->a, .gc = { .max = 100 } };
    runs_all(r);
    steps(r);
    OK(lite_one(r, &op), &op.err);
    EQ_INT(op.gc.removed, 0);
    FALSE(op.gc.more);
    *out_looks = runs(r, SQL_SIGNAL_OLD);
    return steps(r);
}

/* Signals that were consumed long ago, and whose keys are known because they are among the last of
 * their runs, cost gc nothing. */
TEST(gc_reads_no_signals_that_stay)
{
    struct lite_fixture r;
    struct store_conf conf = { .url = "sqlite:cost.db", .retention_us = 100 * SEC_US };
    int looks;
    lite_fixture_open(&r, conf.url, NULL);
    store_end(&r.s);
    conf.features = features_all(&conf.n_features);
    OK(store_open(&conf, &r.s, &r.err), &r.err);
    gc_steps(&r, &looks);
    int64_t none = gc_steps(&r, &looks);
    EQ_INT(looks, 1);
    lite_ask(&r, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
                 "INSERT INTO pawl_signal (seq, no, name, form, value, idem, at, used, used_at) "
                 "SELECT i, 1, 'go', 1, '1', 'k', 1, 1, 1 FROM n RETURNING 1");
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_signal"), 5000);
    int64_t many = gc_steps(&r, &looks);
    EQ_INT(looks, 1);
    printf("%lld steps, beside 5000 signals %lld\n", (long long)none, (long long)many);
    EQ_INT(many, none);
    lite_fixture_close(&r);
}

/* A run that changes twice in a group is written twice, and read once. */
TEST(the_second_change_of_a_run_reads_nothing)
{
    struct lite_fixture r;
    struct store_conf conf = { .url = "sqlite:cost.db", .retention_us = 100 * SEC_US };
    lite_fixture_open(&r, conf.url, NULL);
    store_end(&r.s);
    conf.features = features_all(&conf.n_features);
    OK(store_open(&conf, &r.s, &r.err), &r.err);
    lite_accept_n(&r, "t", 2, 1, 0);
    signals_runs(&r, "a", 2); /* makes the run's row */
    int alone = signals_runs(&r, "a", 1), both = signals_runs(&r, "a", 2);
    printf("%d statements for a signal, %d for two\n", alone, both);
    EQ_INT(both, alone + 3); /* a look for its key, its row, and the run's */
    lite_fixture_close(&r);
}

/* Steps of one call, from its accept to its end, when everything is prepared and cached. */
enum with { WITH_NONE, WITH_ALL, WITH_FLOWS };
static int64_t call_steps(enum with features, const char *key)
{
    struct own_world world;
    struct lite_fixture r;
    char url[40];
    struct store_conf conf = { .url = url, .world = &world.world, .retention_us = 100 * SEC_US };
    int64_t n = 0;
    snprintf(url, sizeof url, "sqlite:call%d%d.db", features, key != NULL);
    own_world_init(&world, 1);
    lite_fixture_open(&r, url, &world.world);
    store_end(&r.s);
    if (features == WITH_ALL)
        conf.features = features_all(&conf.n_features);
    if (features == WITH_FLOWS) { /* of the tests */
        conf.features = flow_features;
        conf.n_features = COUNT_OF(flow_features);
    }
    OK(store_open(&conf, &r.s, &r.err), &r.err);
    for (unsigned char i = 1; i < 4; i++) {
        struct call_spec s;
        call_spec_init(&s);
        s.id = bytes_of(arena_printf(&r.a, "c%d", i));
        s.type = BYTES("t");
        s.key = key ? bytes_of(key) : BYTES_NONE;
        OK(call_spec_settle(&r.a, &world.world, &s, &r.err), &r.err);
        struct op op = { .kind = OP_ACCEPT, .accept = { .v = &s, .n = 1 } };
        steps(&r);
        OK(lite_one(&r, &op), &op.err);
        op = lite_claim_of(&r, "t", 1, i);
        EQ_INT(op.claim.n, 1);
        OK(lite_finish_seq(&r, op.claim.token, op.claim.calls[0].seq), NULL);
        n = steps(&r);
    }
    lite_fixture_close(&r);
    return n;
}

/* Features that are not used cost a call nothing. */
TEST(a_call_costs_the_same_with_features)
{
    int64_t plain = call_steps(WITH_NONE, NULL), keyed = call_steps(WITH_NONE, "k");
    printf("%lld steps, with a key %lld\n", (long long)plain, (long long)keyed);
    GT_INT(plain, 0);
    for (enum with i = WITH_ALL; i <= WITH_FLOWS; i++) {
        EQ_INT(call_steps(i, NULL), plain);
        EQ_INT(call_steps(i, "k"), keyed);
    }
}

/* ---- Children -------------------------------------------------------------------------------- */

#define CHILDREN 1000

static void say_steps(struct lite_fixture *r, const struct claim *q, struct workflow_step *v,
                      size_t n)
{
    struct workflow_op w = { .what = WORKFLOW_STEPS,
                             .steps = { .v = v, .n = n, .node = BYTES("n") } };
    struct op op = {
        .kind = OP_FEATURE,
        .feature = { .of = &feature_workflow, .ctx = &w, .token = q->token, .seq = q->calls[0].seq }
    };
    OK(lite_one(r, &op), &op.err);
}

/* Steps of the statements with which a run waits for n children. */
static int64_t join_steps(int n)
{
    static struct workflow_step v[CHILDREN];
    static struct bytes ids[CHILDREN];
    struct lite_fixture r;
    struct call_spec child;
    char url[40];
    struct store_conf conf = { .url = url, .retention_us = 100 * SEC_US };
    snprintf(url, sizeof url, "sqlite:join%d.db", n);
    lite_fixture_open(&r, url, NULL);
    store_end(&r.s);
    conf.features = features_all(&conf.n_features);
    OK(store_open(&conf, &r.s, &r.err), &r.err);
    lite_accept_n(&r, "parent", 1, 1, 0);
    struct op op = lite_claim_of(&r, "parent", 1, 1);
    EQ_INT(op.claim.n, 1);
    call_spec_init(&child);
    child.type = BYTES("child");
    for (int i = 0; i < n; i++) {
        v[i] = (struct workflow_step){
            .no = i + 1, .name = BYTES("c"), .kind = STEP_CHILD, .says = SAYS_CHILD, .call = &child
        };
        ids[i] =
            bytes_of(arena_printf(&r.a, "%.*s.c#%d", BYTES_ARG(op.claim.calls[0].spec.id), i + 1));
    }
    say_steps(&r, &op.claim, v, (size_t)n);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_child"), n);
    steps(&r);
    v[0] = (struct workflow_step){
        .no = n + 1,
        .name = BYTES("join"),
        .kind = STEP_JOIN,
        .says = SAYS_WAIT,
        .wait = { .children = ids, .n_children = (size_t)n, .children_given = true }
    };
    say_steps(&r, &op.claim, v, 1);
    int64_t cost = steps(&r);
    EQ_INT(v[0].status, STEP_WAITING);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_child WHERE awaited > 0"), n);
    lite_fixture_close(&r);
    return cost;
}

/* Each child is found by its id, not among all children of the run. */
TEST(a_join_costs_in_proportion_to_its_children)
{
    int64_t few = join_steps(CHILDREN / 10), many = join_steps(CHILDREN);
    GT_INT(few, 0);
    LT_INT(many, 20 * few); /* a hundred times, if each reads all of them */
}
