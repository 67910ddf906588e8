/*
 * waits.c - what comes for a run against the run's own wait, in both orders: a signal, the instant
 * of a timeout, the end of a child, a cancel. One transaction has the run's row and is paused, the
 * other one waits for it; nothing falls between, and nothing is consumed twice.
 *
 * The order is forced: `first` is paused where it has looked or written and not committed, and goes
 * on when `second` waits for it (on SQLite: when it has been started, since one connection writes).
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>

#include "base/hook.h"
#include "base/limits.h"
#include "db_server.h"
#include "feature/workflow.h"
#include "fixture.h"
#include "model/needs.h"
#include "own_world.h"
#include "store/feature.h"

RUNS_ON(ENGINES_DURABLE)

/* ---- The fixture ----------------------------------------------------------------------------- */

static struct own_world world;
static const char *url;
static struct arena memory; /* by the case's first thread */

/* One connection, and the operation it runs on its own thread. */
struct side {
    struct store *s;
    struct arena a;
    struct op op;
    const char *hold_at; /* NULL: does not pause */
    pthread_t thread;
    atomic_bool held, go, over;
};
static struct side one, two, third;
static _Thread_local struct side *self;

static void side_open(struct side *v)
{
    static const struct feature *const features[] = { &feature_workflow };
    struct pawl_err err;
    struct store_conf conf = { .url = url,
                               .world = &world.world,
                               .retention_us = 3600 * SEC_US,
                               .key_pending_max = 1000,
                               .features = features,
                               .n_features = COUNT_OF(features) };
    *v = (struct side){ 0 };
    OK(store_open(&conf, &v->s, &err), &err);
    arena_init(&v->a, 64 << 20);
}

static void side_close(struct side *v)
{
    store_close(v->s);
    arena_release(&v->a);
}

static void on_pause(const char *name, void *ctx)
{
    (void)ctx;
    struct side *v = self;
    if (!v || !v->hold_at || atomic_load(&v->go) || !engine_point(name, v->hold_at))
        return;
    atomic_store(&v->held, true);
    while (!atomic_load(&v->go))
        usleep(200);
}

static void open_all(const void *param)
{
    struct pawl_err err;
    url = engine_url(param);
    own_world_init(&world, 1);
    arena_init(&memory, 64 << 20);
    side_open(&one);
    OK(store_migrate(one.s, true, &err), &err);
    side_open(&two);
    side_open(&third);
    hook_on_pause(on_pause, NULL);
}

static void close_all(void)
{
    hook_on_pause(NULL, NULL);
    side_close(&one);
    side_close(&two);
    side_close(&third);
    arena_release(&memory);
}

/* Repeated while other writers keep it from being decided. */
static void commit(struct side *v)
{
    struct op *at = &v->op;
    int64_t until_us = fixture_mono() + FIXTURE_WAIT_US;
    v->op.a = &v->a;
    while (store_commit(v->s, &at, 1) != PAWL_OK && v->op.status == PAWL_BUSY)
        LT_INT(fixture_mono(), until_us);
}

static void *runs(void *arg)
{
    struct side *v = arg;
    self = v;
    commit(v);
    atomic_store(&v->over, true);
    return NULL;
}

static void start(struct side *v, struct op op, const char *hold_at)
{
    v->op = op;
    v->hold_at = hold_at;
    atomic_store(&v->held, false);
    atomic_store(&v->go, false);
    atomic_store(&v->over, false);
    EQ_INT(pthread_create(&v->thread, NULL, runs, v), 0);
}

static void finished(struct side *v)
{
    atomic_store(&v->go, true);
    EQ_INT(pthread_join(v->thread, NULL), 0);
    OK(v->op.status, &v->op.err);
}

/* The first one has done its part, the second one waits for it; then both go on. */
static void play(struct op first, const char *hold_at, struct op second)
{
    start(&one, first, hold_at);
    UNTIL(atomic_load(&one.held));
    start(&two, second, NULL);
    if (engine_of(url)->server)
        UNTIL(db_waits(engine_of(url)->server));
    FALSE(atomic_load(&two.over));
    finished(&one);
    finished(&two);
}

static struct op *now_do(struct op op)
{
    third.op = op;
    commit(&third);
    OK(third.op.status, &third.op.err);
    return &third.op;
}

/* ---- Operations ------------------------------------------------------------------------------ */

static void *keep(const void *from, size_t size)
{
    void *to = arena_alloc(&memory, size);
    TRUE(to != NULL);
    return memcpy(to, from, size);
}

static struct op accept_of(const char *id, const char *type)
{
    struct call_spec *v = arena_zalloc(&memory, 1, sizeof *v);
    struct pawl_err err;
    TRUE(v != NULL);
    call_spec_init(v);
    v->id = bytes_of(id);
    v->type = bytes_of(type);
    OK(call_spec_settle(&memory, &world.world, v, &err), &err);
    return (struct op){ .kind = OP_ACCEPT, .accept = { .v = v, .n = 1 } };
}

/* A lease of one call. */
struct held_call {
    struct token token;
    int64_t seq;
};

static struct op claim_op(const char *type)
{
    static const struct bytes has[] = { NEED_STEPS };
    struct bytes name = bytes_of(type);
    return (struct op){ .kind = OP_CLAIM,
                        .claim = { .token = token_make(&world_real),
                                   .node = BYTES("n"),
                                   .boot = BYTES("b"),
                                   .max = 1,
                                   .types = keep(&name, sizeof name),
                                   .n_types = 1,
                                   .has = has,
                                   .n_has = 1,
                                   .lease_us = 600 * SEC_US } };
}

/* A connection finds what others have made due after a moment. */
static struct held_call claim(const char *type)
{
    UNTIL(now_do(claim_op(type))->claim.n == 1);
    return (struct held_call){ third.op.claim.token, third.op.claim.calls[0].seq };
}

static struct op steps_op(struct held_call h, struct workflow_step s)
{
    struct workflow_op q = { .what = WORKFLOW_STEPS, .steps = { .v = keep(&s, sizeof s), .n = 1 } };
    return (struct op){ .kind = OP_FEATURE,
                        .feature = { .of = &feature_workflow,
                                     .ctx = keep(&q, sizeof q),
                                     .token = h.token,
                                     .seq = h.seq } };
}

/* Wait for the signal "go"; 0 seconds: without an end. */
static struct op wait_op(struct held_call h, int64_t no, int64_t seconds)
{
    static const struct bytes go[] = { BYTES("go") };
    return steps_op(h, (struct workflow_step){ .no = no,
                                               .name = BYTES("go"),
                                               .kind = STEP_SIGNAL,
                                               .says = SAYS_WAIT,
                                               .wait = { .signals = go,
                                                         .n_signals = 1,
                                                         .has_until = seconds > 0,
                                                         .in_us = seconds * SEC_US } });
}

static struct op signal_op(const char *value, const char *key)
{
    struct workflow_op q = { .what = WORKFLOW_SIGNAL,
                             .id = BYTES("x"),
                             .name = BYTES("go"),
                             .value = { PAWL_JSON, bytes_of(value) },
                             .key = key ? bytes_of(key) : BYTES_NONE };
    return (struct op){ .kind = OP_FEATURE,
                        .feature = { .of = &feature_workflow, .ctx = keep(&q, sizeof q) } };
}

static const struct workflow_op *asked(const struct op *op)
{
    return op->feature.ctx;
}

static bool suspended(const struct op *op)
{
    return asked(op)->steps.suspended;
}

/* The wait was settled by a signal with this value. */
static void settled(const struct op *op, const char *value)
{
    const struct workflow_step *s = asked(op)->steps.v;
    FALSE(suspended(op));
    EQ_INT(s->status, STEP_COMPLETED);
    EQ_BYTES(s->result_out.bytes.data, s->result_out.bytes.len, value, strlen(value));
}

/* A run with one step that is undoable, held by a lease. */
static struct held_call begun(void)
{
    now_do(accept_of("x", "run"));
    struct held_call h = claim("run");
    now_do(steps_op(
        h, (struct workflow_step){
               .no = 1, .name = BYTES("a"), .kind = STEP_RUN, .says = SAYS_RESULT, .undo = true }));
    return h;
}

static int64_t unread(void)
{
    return engine_int(url, "SELECT COUNT(*) FROM pawl_signal WHERE used IS NULL");
}

/* ---- A signal against the wait --------------------------------------------------------------- */

TEST(a_signal_has_the_row_and_the_wait_comes)
{
    open_all(param);
    struct held_call h = begun();
    play(signal_op("1", NULL), "before_commit", wait_op(h, 2, 0));
    settled(&two.op, "1");
    EQ_INT(unread(), 0);
    close_all();
}

TEST(a_wait_has_the_row_and_the_signal_comes)
{
    static const char *const points[] = { "wait_looked", "flow_suspended", "before_commit" };
    open_all(param);
    struct held_call h = begun();
    for (int i = 0; i < (int)COUNT_OF(points); i++) {
        char value[4];
        snprintf(value, sizeof value, "%d", i);
        play(wait_op(h, i + 2, 60), points[i], signal_op(value, NULL));
        TRUE(suspended(&one.op));
        EQ_INT(unread(), 1);
        h = claim("run"); /* it was woken */
        settled(now_do(wait_op(h, i + 2, 60)), value);
    }
    EQ_INT(unread(), 0);
    close_all();
}

/* ---- At the instant of the timeout ----------------------------------------------------------- */

/* A run whose wait ends at this instant. */
static void at_its_timeout(void)
{
    TRUE(suspended(now_do(wait_op(begun(), 2, 10))));
    own_world_advance(&world, 10 * SEC_US);
}

TEST(a_signal_has_the_row_at_the_instant_of_the_timeout)
{
    open_all(param);
    at_its_timeout();
    struct held_call h = claim("run");
    play(signal_op("1", NULL), "before_commit", wait_op(h, 2, 10));
    settled(&two.op, "1");
    EQ_INT(unread(), 0);
    close_all();
}

/* The timeout is decided: the signal is there for the next wait. */
TEST(a_timeout_has_the_row_and_the_signal_comes)
{
    open_all(param);
    at_its_timeout();
    struct held_call h = claim("run");
    play(wait_op(h, 2, 10), "wait_looked", signal_op("1", NULL));
    FALSE(suspended(&one.op));
    EQ_INT(asked(&one.op)->steps.v->status, STEP_TIMEOUT);
    EQ_INT(unread(), 1);
    now_do(wait_op(h, 2, 10)); /* its answer was lost */
    EQ_INT(asked(&third.op)->steps.v->status, STEP_TIMEOUT);
    settled(now_do(wait_op(h, 3, 10)), "1");
    close_all();
}

/* The run is being claimed because its time has come; or the signal wakes it first. */
static void claim_against_signal(const void *param, bool claims_first)
{
    open_all(param);
    at_its_timeout();
    struct op claims = claim_op("run"), signals = signal_op("1", NULL);
    start(&one, claims_first ? claims : signals, "before_commit");
    UNTIL(atomic_load(&one.held));
    start(&two, claims_first ? signals : claims, NULL);
    struct db_server *server = engine_of(url)->server;
    UNTIL(!server || atomic_load(&two.over) || db_waits(server)); /* a claim passes it by */
    finished(&one);
    finished(&two);
    struct op *c = claims_first ? &one.op : &two.op;
    struct held_call h =
        c->claim.n ? (struct held_call){ c->claim.token, c->claim.calls[0].seq } : claim("run");
    settled(now_do(wait_op(h, 2, 10)), "1");
    EQ_INT(unread(), 0);
    EQ_UINT(now_do(claim_op("run"))->claim.n, 0);
    close_all();
}

TEST(a_claim_at_the_timeout_and_then_a_signal)
{
    claim_against_signal(param, true);
}

TEST(a_signal_at_the_timeout_and_then_a_claim)
{
    claim_against_signal(param, false);
}

/* ---- Two signals ----------------------------------------------------------------------------- */

TEST(two_signals_come_in_the_order_of_their_commits)
{
    open_all(param);
    struct held_call h = begun();
    play(signal_op("1", NULL), "before_commit", signal_op("2", NULL));
    settled(now_do(wait_op(h, 2, 0)), "1");
    settled(now_do(wait_op(h, 3, 0)), "2");
    play(signal_op("3", "k"), "before_commit", signal_op("3", "k")); /* one key: one signal */
    FALSE(asked(&one.op)->duplicate);
    TRUE(asked(&two.op)->duplicate);
    EQ_INT(unread(), 1);
    settled(now_do(wait_op(h, 4, 0)), "3");
    TRUE(suspended(now_do(wait_op(h, 5, 0))));
    close_all();
}

/* Neither finds the run's row: one of the two makes it, and the other one is decided again. */
TEST(the_first_signal_against_the_first_step)
{
    for (int i = 0; i < 2; i++) {
        open_all(param);
        now_do(accept_of("x", "run"));
        struct held_call h = claim("run");
        struct op signals = signal_op("1", NULL), waits = wait_op(h, 1, 0);
        play(i ? signals : waits, "before_commit", i ? waits : signals);
        if (i) {
            settled(&two.op, "1");
        } else {
            TRUE(suspended(&one.op));
            h = claim("run");
            settled(now_do(wait_op(h, 1, 0)), "1");
        }
        EQ_INT(unread(), 0);
        close_all();
        engine_fresh(param);
    }
}

/* ---- A child's end, and a cancel ------------------------------------------------------------- */

static struct op join_op(struct held_call h)
{
    static const struct bytes ids[] = { BYTES("x.c#1") };
    return steps_op(h, (struct workflow_step){
                           .no = 3,
                           .name = BYTES("all"),
                           .kind = STEP_JOIN,
                           .says = SAYS_WAIT,
                           .wait = { .children = ids, .n_children = 1, .children_given = true } });
}

TEST(the_end_of_a_child_against_the_join)
{
    for (int i = 0; i < 2; i++) {
        open_all(param);
        struct held_call h = begun();
        struct op spec = accept_of("unused", "part");
        now_do(steps_op(h, (struct workflow_step){ .no = 2,
                                                   .name = BYTES("c"),
                                                   .kind = STEP_CHILD,
                                                   .says = SAYS_CHILD,
                                                   .call = spec.accept.v }));
        struct held_call c = claim("part");
        struct finish_item item = { .seq = c.seq, .how = END_RESULT };
        struct op ends = { .kind = OP_FINISH,
                           .finish = { .token = c.token, .v = keep(&item, sizeof item), .n = 1 } };
        play(i ? ends : join_op(h), i ? "before_commit" : "wait_looked", i ? join_op(h) : ends);
        if (i == 0)
            TRUE(suspended(&one.op));
        settled(i ? &two.op : now_do(join_op(claim("run"))), "[\"x.c#1\"]");
        close_all();
        engine_fresh(param);
    }
}

/* Whichever is first: the run is due now, to undo. */
TEST(a_cancel_against_the_wait)
{
    for (int i = 0; i < 2; i++) {
        open_all(param);
        struct held_call h = begun();
        struct op cancels = { .kind = OP_CANCEL, .by_id = { .id = BYTES("x") } };
        own_world_advance(&world, SEC_US);
        play(i ? cancels : wait_op(h, 2, 0), i ? "before_commit" : "wait_looked",
             i ? wait_op(h, 2, 0) : cancels);
        TRUE(suspended(i ? &two.op : &one.op));
        EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_step WHERE status = 2"), i ? 0 : 1);
        h = claim("run");
        struct workflow_step undo = {
            .no = 3, .name = BYTES("a"), .kind = STEP_UNDO, .says = SAYS_RESULT
        };
        struct op op = steps_op(h, undo);
        ((struct workflow_op *)op.feature.ctx)->steps.undoing = true;
        FALSE(suspended(now_do(op)));
        struct finish_item item = { .seq = h.seq, .how = END_RESULT };
        now_do(
            (struct op){ .kind = OP_FINISH, .finish = { .token = h.token, .v = &item, .n = 1 } });
        EQ_INT(item.state, PAWL_CANCELLED);
        close_all();
        engine_fresh(param);
    }
}
