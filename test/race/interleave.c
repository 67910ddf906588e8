/*
 * interleave.c - two connections of a server working on one call, in every order that matters.
 *
 * Each case names two operations. One is paused at a point of its transaction: before its first
 * read (`begin`), or when everything is written and nothing committed (`before_commit`). The other
 * runs meanwhile, or at least begins, and then the first goes on. The second must see what the
 * first did, or get an error; no other outcome is allowed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hook.h"
#include "base/limits.h"
#include "db_server.h"
#include "own_world.h"
#include "fixture.h"
#include "store/store.h"

RUNS_ON(ENGINE_SERVER)

/* ---- The fixture ----------------------------------------------------------------------------- */

static struct own_world world;
static const char *url;
static struct arena memory; /* by the case's first thread */

static struct store *handle(void)
{
    struct store *s = NULL;
    struct pawl_err err;
    struct store_conf conf = { .url = url,
                               .world = &world.world,
                               .retention_us = 3600 * SEC_US,
                               .remember_us = 3600 * SEC_US };
    OK(store_open(&conf, &s, &err), &err);
    return s;
}

/* One connection, and the operation it runs on its own thread. */
struct side {
    struct store *s;
    struct arena a;
    struct op op;
    enum pawl_status status; /* the status of the commit */
    const char *hold_at;     /* NULL: does not pause */
    pthread_t thread;
    atomic_bool begun, held, go, over;
};

static struct side one, two, third;

static void side_open(struct side *v)
{
    *v = (struct side){ .s = handle() };
    arena_init(&v->a, 64 << 20);
}

static void side_close(struct side *v)
{
    store_close(v->s);
    arena_release(&v->a);
}

static _Thread_local struct side *self;

static void on_pause(const char *name, void *ctx)
{
    (void)ctx;
    struct side *v = self;
    if (!v)
        return;
    bool migrates = strncmp(name, "migrate.", 8) == 0;
    if (engine_point(name, "begin") || migrates)
        atomic_store(&v->begun, true);
    if (!v->hold_at || atomic_load(&v->go) ||
        !(migrates ? strcmp(name, v->hold_at) == 0 : engine_point(name, v->hold_at)))
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

/* ---- Running operations ---------------------------------------------------------------------- */

static enum pawl_status commit(struct side *v, struct op op)
{
    struct op *at = &v->op;
    v->op = op;
    v->op.a = &v->a;
    v->status = store_commit(v->s, &at, 1);
    return v->op.status;
}

static void *runs(void *arg)
{
    struct side *v = arg;
    self = v;
    commit(v, v->op);
    atomic_store(&v->over, true);
    return NULL;
}

static void start(struct side *v, struct op op, const char *hold_at)
{
    v->op = op;
    v->hold_at = hold_at;
    atomic_store(&v->begun, false);
    atomic_store(&v->held, false);
    atomic_store(&v->go, false);
    atomic_store(&v->over, false);
    EQ_INT(pthread_create(&v->thread, NULL, runs, v), 0);
}

static void finished(struct side *v)
{
    atomic_store(&v->go, true);
    EQ_INT(pthread_join(v->thread, NULL), 0);
}

/* The shortest lock timeout: 100 ms on PostgreSQL, 1 s on MariaDB. */
#define LOCK_WAIT_MIN_US (90 * FIXTURE_MS)

/* Pause `one`; start `two`, which may end; then continue `one`. True: `two` did not have to wait
 * for `one`. */
static bool play(struct op first, const char *hold_at, struct op second)
{
    start(&one, first, hold_at);
    UNTIL(atomic_load(&one.held));
    int64_t begun = fixture_mono();
    start(&two, second, NULL);
    UNTIL(atomic_load(&two.begun));
    /* Either it ends, or the server reports that it waits for a lock of the first. */
    while (!atomic_load(&two.over) && !db_waits(engine_of(url)->server))
        usleep(5000);
    bool alone = atomic_load(&two.over);
    finished(&one);
    finished(&two);
    OK(one.status, &one.op.err);
    if (two.op.status == PAWL_BUSY) {
        /* Only when the machine stalled for as long as a server's lock timeout. */
        GE_INT(fixture_mono() - begun, LOCK_WAIT_MIN_US);
        commit(&two, second);
    }
    return alone;
}

static struct call_spec *spec(const char *id, const char *input)
{
    struct call_spec *v = arena_zalloc(&memory, 1, sizeof *v);
    struct pawl_err err;
    TRUE(v != NULL);
    call_spec_init(v);
    v->id = bytes_of(id);
    v->type = BYTES("t");
    v->input = (struct payload){ PAWL_JSON, bytes_of(input) };
    OK(call_spec_settle(&memory, &world.world, v, &err), &err);
    return v;
}

static struct op accept_of(const char *id, const char *input)
{
    return (struct op){ .kind = OP_ACCEPT, .accept = { .v = spec(id, input), .n = 1 } };
}

static void accept_one(const char *id)
{
    OK(commit(&third, accept_of(id, "1")), &third.op.err);
    OK(third.op.accept.out[0].status, NULL);
    FALSE(third.op.accept.out[0].duplicate);
}

static struct op claim_of(int max)
{
    return (struct op){ .kind = OP_CLAIM,
                        .claim = { .token = token_make(&world_real),
                                   .node = BYTES("n"),
                                   .boot = BYTES("b"),
                                   .max = max,
                                   .run_max = 1,
                                   .lease_us = 30 * SEC_US } };
}

static struct claim claim_one(void)
{
    OK(commit(&third, claim_of(1)), &third.op.err);
    EQ_INT(third.op.claim.n, 1);
    return third.op.claim;
}

static struct op finish_of(const struct claim *q)
{
    struct finish_item *v = arena_zalloc(&memory, 1, sizeof *v);
    TRUE(v != NULL);
    *v = (struct finish_item){ .seq = q->calls[0].seq, .how = END_RESULT };
    v->result = (struct payload){ PAWL_JSON, BYTES("7") };
    return (struct op){ .kind = OP_FINISH, .finish = { .token = q->token, .v = v, .n = 1 } };
}

static struct op cancel_of(const char *id)
{
    return (struct op){ .kind = OP_CANCEL, .by_id = { .id = bytes_of(id) } };
}

static struct op sweep_of(void)
{
    return (struct op){ .kind = OP_SWEEP, .sweep = { .max = 100 } };
}

static struct call shown(const char *id)
{
    struct bytes ids[] = { bytes_of(id) };
    struct get g = { .ids = ids, .n = 1, .with = WITH_RESULT };
    struct pawl_err err;
    OK(store_get(third.s, &memory, &g, &err), &err);
    OK(g.found[0], NULL);
    return g.out[0];
}

static void is(const char *id, enum pawl_state want)
{
    EQ_STR(pawl_state_name(shown(id).state), pawl_state_name(want));
}

/* Nothing is left of the call: no cancel request, no lease that a sweep would find. */
static void nothing_left(void)
{
    struct cancel_requests w;
    struct pawl_err err;
    OK(store_cancel_requests(third.s, &memory, &w, &err), &err);
    EQ_INT((int)w.n, 0);
    own_world_advance(&world, 3000 * SEC_US);
    OK(commit(&third, sweep_of()), &third.op.err);
    EQ_INT(third.op.sweep.reclaimed, 0);
}

/* ---- Two claims ------------------------------------------------------------------------------ */

/* The second does not wait for the first: it skips rows that the first has locked. */
TEST(two_claims_of_one_call)
{
    open_all(param);
    accept_one("x");
    TRUE(play(claim_of(1), "before_commit", claim_of(1)));
    OK(one.op.status, &one.op.err);
    OK(two.op.status, &two.op.err);
    EQ_INT(one.op.claim.n, 1);
    EQ_INT(two.op.claim.n, 0);
    accept_one("y");
    TRUE(play(claim_of(1), "begin", claim_of(1)));
    EQ_INT(one.op.claim.n, 0);
    EQ_INT(two.op.claim.n, 1);
    close_all();
}

TEST(two_claims_of_two_calls)
{
    open_all(param);
    accept_one("x");
    accept_one("y");
    TRUE(play(claim_of(1), "before_commit", claim_of(1)));
    EQ_INT(one.op.claim.n, 1);
    EQ_INT(two.op.claim.n, 1);
    NE_INT(one.op.claim.calls[0].seq, two.op.claim.calls[0].seq);
    close_all();
}

/* The same claim on two connections, because its answer was lost: one lease. */
TEST(a_claim_against_itself)
{
    open_all(param);
    accept_one("x");
    accept_one("y");
    struct op op = claim_of(1);
    play(op, "before_commit", op);
    OK(one.op.status, &one.op.err);
    OK(two.op.status, &two.op.err);
    EQ_INT(one.op.claim.n, 1);
    EQ_INT(two.op.claim.n, 1);
    EQ_INT(one.op.claim.calls[0].seq, two.op.claim.calls[0].seq);
    OK(commit(&third, claim_of(10)), &third.op.err);
    EQ_INT(third.op.claim.n, 1); /* the other call is free */
    close_all();
}

/* ---- A call that was committed late ---------------------------------------------------------- */

static struct op accept_keyed(const char *id)
{
    struct op op = accept_of(id, "1");
    struct call_spec *v = spec(id, "1");
    v->key = BYTES("k");
    op.accept.v = v;
    return op;
}

static const char *claimed_by_two(void)
{
    OK(commit(&two, claim_of(1)), &two.op.err);
    EQ_INT(two.op.claim.n, 1);
    return arena_text(&memory, two.op.claim.calls[0].spec.id);
}

/* `early` has the lower place and is committed when `late` is already running. The running call is
 * the head of its key, and stays the head when it is handed back. */
TEST(a_head_that_is_handed_back_is_not_overtaken)
{
    open_all(param);
    OK(commit(&third, accept_keyed("first")), &third.op.err);
    struct claim q = claim_one();
    start(&third, finish_of(&q), "before_commit"); /* has locked the key's row */
    UNTIL(atomic_load(&third.held));
    start(&one, accept_keyed("early"), "before_commit");
    UNTIL(atomic_load(&one.held));
    finished(&third);
    OK(third.op.status, &third.op.err);
    OK(commit(&two, accept_keyed("late")), &two.op.err);
    EQ_STR(claimed_by_two(), "late");
    q = two.op.claim;
    finished(&one);
    OK(one.op.status, &one.op.err);
    LT_INT(shown("early").seq, shown("late").seq);
    struct op back = finish_of(&q);
    back.finish.v[0] = (struct finish_item){ .seq = q.calls[0].seq, .how = END_RELEASE };
    OK(commit(&two, back), &two.op.err);
    EQ_STR(claimed_by_two(), "late");
    q = two.op.claim;
    OK(commit(&two, finish_of(&q)), &two.op.err);
    EQ_STR(claimed_by_two(), "early");
    EQ_INT(shown("early").key_no, shown("late").key_no + 1);
    close_all();
}

/* The same for calls behind the head that were claimed with it. */
TEST(a_run_that_is_handed_back_is_not_overtaken)
{
    open_all(param);
    OK(commit(&third, accept_keyed("first")), &third.op.err);
    struct claim q = claim_one();
    start(&third, finish_of(&q), "before_commit"); /* has locked the key's row */
    UNTIL(atomic_load(&third.held));
    OK(commit(&two, accept_keyed("head")), &two.op.err);
    start(&one, accept_keyed("early"), "before_commit");
    UNTIL(atomic_load(&one.held));
    finished(&third);
    OK(third.op.status, &third.op.err);
    OK(commit(&two, accept_keyed("behind")), &two.op.err);
    struct op run = claim_of(2);
    run.claim.run_max = 2;
    OK(commit(&two, run), &two.op.err);
    EQ_INT(two.op.claim.n, 2);
    q = two.op.claim;
    finished(&one);
    OK(one.op.status, &one.op.err);
    LT_INT(shown("early").seq, shown("behind").seq);
    struct finish_item v[] = { { .seq = q.calls[0].seq, .how = END_RELEASE },
                               { .seq = q.calls[1].seq, .how = END_RELEASE } };
    struct op back = { .kind = OP_FINISH, .finish = { .token = q.token, .v = v, .n = 2 } };
    OK(commit(&two, back), &two.op.err);
    static const char *const order[] = { "head", "behind", "early" };
    for (int i = 0; i < 3; i++) {
        EQ_STR(claimed_by_two(), order[i]);
        EQ_INT(two.op.claim.calls[0].key_no, i + 2);
        q = two.op.claim;
        OK(commit(&two, finish_of(&q)), &two.op.err);
    }
    close_all();
}

/* ---- What a group loaded before it locked the key -------------------------------------------- */

/* `one` asks about `b` and claims, in one group; what it read of `b` is stale when it claims.
 * (Asked to run `b` again, which is refused, because an accept of a call with a key locks it
 * first.) */
static void *asks_and_claims(void *arg)
{
    struct side *v = arg;
    static struct op again;
    struct op *group[] = { &again, &v->op };
    self = v;
    again = (struct op){ .kind = OP_RETRY, .by_id = { .id = BYTES("b") } };
    again.a = v->op.a = &v->a;
    v->status = store_commit(v->s, group, 2);
    EQ_STATUS(again.status, PAWL_STATE, &again.err);
    atomic_store(&v->over, true);
    return NULL;
}

static void asks_again(bool held_then)
{
    static const char *const ids[] = { "a", "b", "c" };
    for (int i = 0; i < 3; i++)
        OK(commit(&third, accept_keyed(ids[i])), &third.op.err);
    struct op run = claim_of(2);
    run.claim.run_max = 2;
    if (held_then)
        OK(commit(&two, run), &two.op.err);
    one.hold_at = "loaded";
    one.op = claim_of(3);
    one.op.claim.run_max = 3;
    EQ_INT(pthread_create(&one.thread, NULL, asks_and_claims, &one), 0);
    UNTIL(atomic_load(&one.held));
    if (!held_then)
        OK(commit(&two, run), &two.op.err);
    struct claim q = two.op.claim;
    EQ_INT(q.n, 2);
    struct finish_item v[] = { { .seq = q.calls[0].seq, .how = END_RELEASE },
                               { .seq = q.calls[1].seq, .how = END_RELEASE } };
    struct op back = { .kind = OP_FINISH, .finish = { .token = q.token, .v = v, .n = 2 } };
    OK(commit(&two, back), &two.op.err);
    finished(&one);
    OK(one.status, &one.op.err);
    EQ_INT(one.op.claim.n, 3);
    for (int i = 0; i < 3; i++) {
        EQ_STR(arena_text(&memory, one.op.claim.calls[i].spec.id), ids[i]);
        EQ_INT(one.op.claim.calls[i].key_no, i + 1);
    }
}

TEST(a_place_that_was_read_before_it_changed)
{
    open_all(param);
    asks_again(false);
    close_all();
}

TEST(an_owner_that_was_read_before_it_gave_back)
{
    open_all(param);
    asks_again(true);
    close_all();
}

/* ---- Finish against reclaim ------------------------------------------------------------------ */

/* The finish is written when the lease ends: the sweep leaves the lease alone. */
TEST(a_finish_before_a_reclaim)
{
    open_all(param);
    accept_one("x");
    struct claim q = claim_one();
    start(&one, finish_of(&q), "before_commit");
    UNTIL(atomic_load(&one.held));
    own_world_advance(&world, 31 * SEC_US);
    start(&two, sweep_of(), NULL);
    while (!atomic_load(&two.over) && !db_waits(engine_of(url)->server))
        usleep(1000);
    finished(&one);
    finished(&two);
    OK(one.op.status, &one.op.err);
    OK(two.op.status, &two.op.err);
    EQ_INT(two.op.sweep.reclaimed, 0);
    is("x", PAWL_COMPLETED);
    EQ_INT(shown("x").counts.lost, 0);
    nothing_left();
    close_all();
}

/* The lease is being taken back: the finish is refused, and stores nothing. */
TEST(a_reclaim_before_a_finish)
{
    open_all(param);
    accept_one("x");
    struct claim q = claim_one();
    own_world_advance(&world, 31 * SEC_US);
    play(sweep_of(), "before_commit", finish_of(&q));
    OK(one.op.status, &one.op.err);
    EQ_INT(one.op.sweep.reclaimed, 1);
    EQ_STATUS(two.op.status, PAWL_LOST_LEASE, &two.op.err);
    is("x", PAWL_PENDING);
    EQ_INT(shown("x").counts.lost, 1);
    EQ_INT(claim_one().n, 1);
    close_all();
}

TEST(two_reclaims_of_one_lease)
{
    open_all(param);
    accept_one("x");
    claim_one();
    own_world_advance(&world, 31 * SEC_US);
    play(sweep_of(), "before_commit", sweep_of());
    EQ_INT(one.op.sweep.reclaimed + two.op.sweep.reclaimed, 1);
    EQ_INT(shown("x").counts.lost, 1);
    close_all();
}

/* The same finish twice, because its answer was lost: both get the same answer. */
TEST(a_finish_against_itself)
{
    open_all(param);
    accept_one("x");
    struct claim q = claim_one();
    play(finish_of(&q), "before_commit", finish_of(&q));
    OK(one.op.status, &one.op.err);
    OK(two.op.status, &two.op.err);
    EQ_INT(one.op.finish.v[0].state, PAWL_COMPLETED);
    EQ_INT(two.op.finish.v[0].state, PAWL_COMPLETED);
    EQ_INT(one.op.finish.v[0].finished_us, two.op.finish.v[0].finished_us);
    nothing_left();
    close_all();
}

/* ---- Cancel against finish, and claim -------------------------------------------------------- */

/* The first one wins: a cancel after the finish is told that it is too late, or its cancel request
 * is removed with the call. */
TEST(a_finish_before_a_cancel)
{
    open_all(param);
    accept_one("x");
    struct claim q = claim_one();
    play(finish_of(&q), "before_commit", cancel_of("x"));
    OK(one.op.status, &one.op.err);
    is("x", PAWL_COMPLETED);
    if (two.op.status == PAWL_OK)
        EQ_INT(two.op.by_id.state, PAWL_PROCESSING);
    else
        EQ_STATUS(two.op.status, PAWL_STATE, &two.op.err);
    nothing_left();
    close_all();
}

TEST(a_cancel_before_a_finish)
{
    open_all(param);
    accept_one("x");
    struct claim q = claim_one();
    play(cancel_of("x"), "before_commit", finish_of(&q));
    OK(one.op.status, &one.op.err);
    EQ_INT(one.op.by_id.state, PAWL_PROCESSING);
    OK(two.op.status, &two.op.err);
    EQ_INT(two.op.finish.v[0].state, PAWL_COMPLETED);
    is("x", PAWL_COMPLETED);
    nothing_left();
    close_all();
}

/* A cancel that was accepted is never undone by a reclaim. */
TEST(a_cancel_against_a_reclaim)
{
    open_all(param);
    accept_one("x");
    claim_one();
    own_world_advance(&world, 31 * SEC_US);
    play(cancel_of("x"), "before_commit", sweep_of());
    OK(one.op.status, &one.op.err);
    OK(commit(&third, sweep_of()), &third.op.err);
    is("x", PAWL_CANCELLED);
    accept_one("y");
    claim_one();
    own_world_advance(&world, 31 * SEC_US);
    play(sweep_of(), "before_commit", cancel_of("y"));
    OK(two.op.status, &two.op.err);
    OK(commit(&third, sweep_of()), &third.op.err);
    is("y", PAWL_CANCELLED);
    nothing_left();
    close_all();
}

/* A call is either cancelled or claimed: a claimed call may have a cancel request, and a cancelled
 * one is never claimed. */
TEST(a_cancel_against_a_claim)
{
    open_all(param);
    accept_one("x");
    play(claim_of(1), "before_commit", cancel_of("x"));
    EQ_INT(one.op.claim.n, 1);
    OK(two.op.status, &two.op.err);
    EQ_INT(two.op.by_id.state, PAWL_PROCESSING);
    is("x", PAWL_PROCESSING);
    accept_one("y");
    TRUE(play(cancel_of("y"), "before_commit", claim_of(1)));
    OK(one.op.status, &one.op.err);
    EQ_INT(one.op.by_id.state, PAWL_CANCELLED);
    EQ_INT(two.op.claim.n, 0);
    is("y", PAWL_CANCELLED);
    close_all();
}

/* ---- Accept against accept ------------------------------------------------------------------- */

static void accepts(const char *id, const char *hold_at, const char *other_input)
{
    bool same = strcmp(other_input, "1") == 0;
    play(accept_of(id, "1"), hold_at, accept_of(id, other_input));
    OK(one.op.status, &one.op.err);
    OK(two.op.status, &two.op.err);
    const struct accepted *a = &one.op.accept.out[0], *b = &two.op.accept.out[0];
    bool first = a->status == PAWL_OK && !a->duplicate;
    const struct accepted *loser = first ? b : a;
    OK((first ? a : b)->status, NULL);
    FALSE((first ? a : b)->duplicate);
    EQ_STATUS(loser->status, same ? PAWL_OK : PAWL_CONFLICT, NULL);
    EQ_INT(loser->duplicate, same);
    EQ_INT(a->call.seq, b->call.seq);
    EQ_INT(shown(id).seq, a->call.seq);
}

TEST(two_accepts_of_one_id)
{
    open_all(param);
    accepts("x1", "before_commit", "1");
    accepts("x2", "before_commit", "2");
    accepts("x3", "begin", "1");
    accepts("x4", "begin", "2");
    OK(commit(&third, claim_of(10)), &third.op.err);
    EQ_INT(third.op.claim.n, 4); /* each is there once */
    close_all();
}

/* ---- Migrate against migrate ----------------------------------------------------------------- */

static void *migrates(void *arg)
{
    struct side *v = arg;
    struct pawl_err err;
    self = v;
    v->status = store_migrate(v->s, true, &err);
    if (v->status != PAWL_OK)
        fprintf(stderr, "migrate: %s\n", err.text);
    atomic_store(&v->over, true);
    return NULL;
}

TEST(two_migrations_of_an_empty_database)
{
    struct schema schema;
    struct pawl_err err;
    engine_empty(param);
    url = engine_url(param);
    own_world_init(&world, 1);
    arena_init(&memory, 64 << 20);
    side_open(&one);
    side_open(&two);
    side_open(&third);
    hook_on_pause(on_pause, NULL);
    one.hold_at = "migrate.begin";
    EQ_INT(pthread_create(&one.thread, NULL, migrates, &one), 0);
    UNTIL(atomic_load(&one.held));
    EQ_INT(pthread_create(&two.thread, NULL, migrates, &two), 0);
    UNTIL(db_waits(engine_of(url)->server));
    FALSE(atomic_load(&two.over));
    finished(&one);
    finished(&two);
    OK(one.status, NULL);
    OK(two.status, NULL);
    OK(store_schema(third.s, &schema, &err), &err);
    EQ_INT(schema.version, schema.wanted);
    FALSE(schema.finish_due);
    accept_one("x"); /* and it works */
    EQ_INT(claim_one().n, 1);
    close_all();
}

/* ---- An open transaction of another session -------------------------------------------------- */

static void hold_id(struct db_session *v, const char *param, const char *id)
{
    char sql[300];
    snprintf(sql, sizeof sql,
             "BEGIN; INSERT INTO %sid (id, seq, fingerprint) VALUES ('%s', 1000000, 'abc');",
             engine_of(param)->tables, id);
    db_session_say(v, sql);
}

/* A session has inserted an id and not committed. Meanwhile every other id is accepted soon, by
 * itself and in one group with the locked one; the locked one is BUSY, and accepted when it is free
 * again. */
TEST(an_id_in_a_strangers_open_transaction)
{
    enum { N = 8 };
    open_all(param);
    struct db_session *person = db_session_open(engine_of(param)->server);
    hold_id(person, param, "held");
    int64_t begun = fixture_mono();
    accept_one("alone");
    LT_INT(fixture_mono() - begun, 15 * FIXTURE_SEC * check_scale());
    struct op ops[N], *v[N];
    for (int i = 0; i < N; i++) {
        char *id = arena_printf(&memory, i == N / 2 ? "held" : "g%d", i);
        ops[i] = accept_of(id, "1");
        ops[i].a = &third.a;
        v[i] = &ops[i];
    }
    begun = fixture_mono();
    store_commit(third.s, v, N);
    printf("a group with a held id took %lld ms\n", (long long)(fixture_mono() - begun) / 1000);
    for (int i = 0; i < N; i++)
        if (i == N / 2)
            EQ_STATUS(ops[i].status, PAWL_BUSY, &ops[i].err);
        else
            OK(ops[i].status, &ops[i].err);
    LT_INT(fixture_mono() - begun, 15 * FIXTURE_SEC * check_scale());
    db_session_say(person, "ROLLBACK;");
    accept_one("held");
    db_session_close(person);
    close_all();
}
