/*
 * key_groups.c - groups that take a key's next call from memory, beside another connection that
 * uses the same key.
 *
 * A group accepts a call, frees a key or both, and claims; what it claims is never written to where
 * others could find it. It is held at a point of its transaction: when its keys are locked and it
 * has looked for key notes (`loaded`), or when everything is written and nothing committed
 * (`before_commit`). The other connection's call must not be lost, must not wait for the key, and
 * must run behind what the group took.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>

#include "base/hook.h"
#include "base/limits.h"
#include "db_server.h"
#include "own_world.h"
#include "fixture.h"
#include "store/store.h"

RUNS_ON(ENGINE_SERVER)

#define GROUP_OPS 4
#define KEEP_US (60 * SEC_US)

/* One connection, and a group of operations that it does in a thread of its own. */
struct side {
    struct store *s;
    struct arena a;
    struct op ops[GROUP_OPS];
    size_t n;
    const char *hold_at; /* NULL: goes through */
    pthread_t thread;
    atomic_bool begun, held, go, over;
};

static struct own_world world;
static const char *url;
static struct side one, two;
static _Thread_local struct side *self;

/* ---- The fixture ----------------------------------------------------------------------------- */

static void side_open(struct side *v)
{
    struct pawl_err err;
    struct store_conf conf = {
        .url = url, .world = &world.world, .retention_us = KEEP_US, .remember_us = KEEP_US
    };
    *v = (struct side){ 0 };
    arena_init(&v->a, 64 << 20);
    OK(store_open(&conf, &v->s, &err), &err);
}

static void on_pause(const char *name, void *ctx)
{
    (void)ctx;
    struct side *v = self;
    if (!v)
        return;
    if (engine_point(name, "begin"))
        atomic_store(&v->begun, true);
    if (!v->hold_at || atomic_load(&v->go) || !engine_point(name, v->hold_at))
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
    side_open(&one);
    OK(store_migrate(one.s, true, &err), &err);
    side_open(&two);
    hook_on_pause(on_pause, NULL);
}

static void close_all(void)
{
    hook_on_pause(NULL, NULL);
    struct side *both[] = { &one, &two };
    for (int i = 0; i < 2; i++) {
        store_close(both[i]->s);
        arena_release(&both[i]->a);
    }
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static void add(struct side *v, struct op op)
{
    TRUE(v->n < GROUP_OPS);
    op.a = &v->a;
    v->ops[v->n++] = op;
}

static void add_accept(struct side *v, const char *id)
{
    struct call_spec *s = arena_zalloc(&v->a, 1, sizeof *s);
    struct pawl_err err;
    TRUE(s != NULL);
    call_spec_init(s);
    s->id = bytes_of(id);
    s->type = BYTES("t");
    s->key = BYTES("k");
    OK(call_spec_settle(&v->a, &world.world, s, &err), &err);
    add(v, (struct op){ .kind = OP_ACCEPT, .accept = { .v = s, .n = 1 } });
}

static void add_claim(struct side *v)
{
    add(v, (struct op){ .kind = OP_CLAIM,
                        .claim = { .token = token_make(&world_real),
                                   .node = BYTES("n"),
                                   .boot = BYTES("b"),
                                   .max = 4,
                                   .run_max = 4,
                                   .lease_us = 30 * SEC_US } });
}

/* The end of everything that a claim took. */
static void add_finish(struct side *v, const struct claim *q)
{
    struct finish_item *items = arena_zalloc(&v->a, q->n, sizeof *items);
    TRUE(items != NULL);
    for (size_t i = 0; i < q->n; i++)
        items[i] = (struct finish_item){ .seq = q->calls[i].seq, .how = END_RESULT };
    add(v,
        (struct op){ .kind = OP_FINISH, .finish = { .token = q->token, .v = items, .n = q->n } });
}

static void commit(struct side *v)
{
    struct op *ops[GROUP_OPS];
    for (size_t i = 0; i < v->n; i++)
        ops[i] = &v->ops[i];
    store_commit(v->s, ops, v->n);
    for (size_t i = 0; i < v->n; i++)
        OK(v->ops[i].status, &v->ops[i].err);
    v->n = 0; /* the next group's; the answers stay */
}

static void *runs(void *arg)
{
    self = arg;
    commit(arg);
    atomic_store(&self->over, true);
    return NULL;
}

static void start(struct side *v, const char *hold_at)
{
    v->hold_at = hold_at;
    atomic_store(&v->begun, false);
    atomic_store(&v->held, false);
    atomic_store(&v->go, false);
    atomic_store(&v->over, false);
    EQ_INT(pthread_create(&v->thread, NULL, runs, v), 0);
    if (hold_at)
        UNTIL(atomic_load(&v->held));
}

static void finished(struct side *v)
{
    atomic_store(&v->go, true);
    EQ_INT(pthread_join(v->thread, NULL), 0);
}

/* The claim took this call alone, with this number in its key. */
static void took(const struct op *claim, const char *id, int64_t key_no)
{
    EQ_INT((int)claim->claim.n, 1);
    TRUE(bytes_eq(claim->claim.calls[0].spec.id, bytes_of(id)));
    EQ_INT(claim->claim.calls[0].key_no, key_no);
}

/* A call of the key has run: its row is there. Its number was 1. */
static void key_is_known(void)
{
    add_accept(&one, "former");
    add_claim(&one);
    commit(&one);
    took(&one.ops[1], "former", 1);
    struct claim q = one.ops[1].claim;
    add_finish(&one, &q);
    commit(&one);
}

/* Nothing is left of the key: no call waits, runs or is looked for. */
static void is_idle(void)
{
    struct key_rows keys;
    struct pawl_err err;
    OK(store_keys(one.s, &one.a, &(struct key_query){ .limit = LIST_MAX }, &keys, &err), &err);
    EQ_INT((int)keys.n, 0);
    EQ_INT(db_int(engine_of(url)->server,
                  arena_printf(&one.a, "SELECT count(*) FROM %shint;", engine_of(url)->tables)),
           0);
}

/* ---- An accept beside an accept and claim ---------------------------------------------------- */

/* `a` goes from accept to claim in one group, and `b` joins its key meanwhile. */
static void joins_beside(const char *hold_at)
{
    key_is_known();
    add_accept(&one, "a");
    add_claim(&one);
    start(&one, hold_at);
    add_accept(&two, "b");
    add_claim(&two);
    commit(&two);
    EQ_INT(two.ops[0].accept.out[0].call.waiting_for, WAIT_KEY);
    EQ_INT((int)two.ops[1].claim.n, 0);
    /* It left a key note, which the group may not see: it looks again soon, without being told. */
    FALSE(two.ops[1].claim.more);
    GT_INT(two.ops[1].claim.next_due_us, 0);
    LE_INT(two.ops[1].claim.next_due_us, world_now(&world.world) + 50 * MS_US);
    finished(&one);
    took(&one.ops[1], "a", 2);
    struct claim q = one.ops[1].claim;
    add_finish(&one, &q);
    add_claim(&one);
    commit(&one);
    took(&one.ops[1], "b", 3);
    q = one.ops[1].claim;
    add_finish(&one, &q);
    commit(&one);
    is_idle();
}

TEST(an_accept_beside_a_claim_from_memory_that_has_looked)
{
    open_all(param);
    joins_beside("loaded");
    close_all();
}

TEST(an_accept_beside_a_claim_from_memory_that_is_written)
{
    open_all(param);
    joins_beside("before_commit");
    close_all();
}

/* Neither finds a row of the key. Who is second waits for the first one's row, and does its group
 * again. */
TEST(two_groups_that_make_one_key)
{
    open_all(param);
    add_accept(&one, "a");
    add_claim(&one);
    start(&one, "before_commit");
    add_accept(&two, "b");
    add_claim(&two);
    start(&two, NULL);
    UNTIL(db_waits(engine_of(url)->server) || atomic_load(&two.over));
    FALSE(atomic_load(&two.over));
    finished(&one);
    finished(&two);
    took(&one.ops[1], "a", 1);
    EQ_INT(two.ops[0].accept.out[0].call.waiting_for, WAIT_KEY);
    EQ_INT((int)two.ops[1].claim.n, 0);
    struct claim q = one.ops[1].claim;
    add_finish(&one, &q);
    add_claim(&one);
    commit(&one);
    took(&one.ops[1], "b", 2);
    q = one.ops[1].claim;
    add_finish(&one, &q);
    commit(&one);
    is_idle();
    close_all();
}

/* ---- An accept beside a finish and claim ----------------------------------------------------- */

/* `a` ends, `c` is accepted and claimed in the same group, and `b` joins meanwhile: it is behind
 * `c`, whose group had the key. */
static void joins_beside_the_next(const char *hold_at)
{
    add_accept(&one, "a");
    add_claim(&one);
    commit(&one);
    took(&one.ops[1], "a", 1);
    struct claim q = one.ops[1].claim;
    add_finish(&one, &q);
    add_accept(&one, "c");
    add_claim(&one);
    start(&one, hold_at);
    add_accept(&two, "b");
    commit(&two);
    finished(&one);
    took(&one.ops[2], "c", 2);
    q = one.ops[2].claim;
    add_finish(&one, &q);
    add_claim(&one);
    commit(&one);
    took(&one.ops[1], "b", 3);
    q = one.ops[1].claim;
    add_finish(&one, &q);
    commit(&one);
    is_idle();
}

TEST(an_accept_beside_a_finish_that_has_looked)
{
    open_all(param);
    joins_beside_the_next("loaded");
    close_all();
}

TEST(an_accept_beside_a_finish_that_is_written)
{
    open_all(param);
    joins_beside_the_next("before_commit");
    close_all();
}

/* A stored line and new calls behind it: the group that ends `a` takes `b`, which is stored, before
 * `c` and `d`, which it brings; `e` joins beside it. */
TEST(a_run_of_stored_and_new_calls)
{
    static const char *const ids[] = { "b", "c", "d" };
    open_all(param);
    add_accept(&one, "a");
    add_claim(&one);
    commit(&one);
    struct claim q = one.ops[1].claim;
    add_accept(&one, "b");
    commit(&one);
    add_finish(&one, &q);
    add_accept(&one, "c");
    add_accept(&one, "d");
    add_claim(&one);
    start(&one, "loaded");
    add_accept(&two, "e");
    commit(&two);
    finished(&one);
    q = one.ops[3].claim;
    EQ_INT((int)q.n, 3);
    for (int i = 0; i < 3; i++) {
        TRUE(bytes_eq(q.calls[i].spec.id, bytes_of(ids[i])));
        EQ_INT(q.calls[i].key_no, i + 2);
        EQ_INT(q.calls[i].position, i);
    }
    add_finish(&one, &q);
    add_claim(&one);
    commit(&one);
    took(&one.ops[1], "e", 5);
    q = one.ops[1].claim;
    add_finish(&one, &q);
    commit(&one);
    is_idle();
    close_all();
}

/* ---- A key that goes ------------------------------------------------------------------------- */

/* Retention takes the key's last call and its row, and `b` joins meanwhile: its key note outlives
 * the row, and makes a new one. */
TEST(an_accept_beside_the_end_of_its_key)
{
    open_all(param);
    key_is_known();
    own_world_advance(&world, 2 * KEEP_US);
    add(&one, (struct op){ .kind = OP_GC, .gc = { .max = 100 } });
    start(&one, "before_commit");
    add_accept(&two, "b");
    commit(&two);
    finished(&one);
    EQ_INT(db_int(engine_of(url)->server,
                  arena_printf(&one.a, "SELECT count(*) FROM %skey;", engine_of(url)->tables)),
           0);
    add_accept(&two, "c");
    add_claim(&two);
    commit(&two);
    struct claim q = two.ops[1].claim;
    EQ_INT((int)q.n, 2);
    TRUE(bytes_eq(q.calls[0].spec.id, BYTES("b")));
    TRUE(bytes_eq(q.calls[1].spec.id, BYTES("c")));
    EQ_INT(q.calls[0].key_no, 1);
    add_finish(&two, &q);
    commit(&two);
    is_idle();
    close_all();
}

/* `one` remembers its lease and the key. Its call was taken back, ran elsewhere and is gone, and so
 * is the key: a late finish is refused, and does not make the key again. */
TEST(a_late_finish_makes_no_key)
{
    open_all(param);
    add_accept(&one, "a");
    add_claim(&one);
    commit(&one);
    took(&one.ops[1], "a", 1);
    struct claim lost = one.ops[1].claim;
    own_world_advance(&world, KEEP_US);
    add(&two, (struct op){ .kind = OP_SWEEP, .sweep = { .max = 100 } });
    add_claim(&two);
    commit(&two);
    took(&two.ops[1], "a", 1);
    struct claim q = two.ops[1].claim;
    add_finish(&two, &q);
    commit(&two);
    own_world_advance(&world, 2 * KEEP_US);
    add(&two, (struct op){ .kind = OP_GC, .gc = { .max = 100 } });
    commit(&two);
    add_finish(&one, &lost);
    struct op *late = &one.ops[0];
    one.n = 0;
    store_commit(one.s, &late, 1);
    EQ_STATUS(late->status, PAWL_LOST_LEASE, &late->err);
    EQ_INT(db_int(engine_of(url)->server,
                  arena_printf(&one.a, "SELECT count(*) FROM %skey;", engine_of(url)->tables)),
           0);
    close_all();
}

/* ---- A group that is halved ------------------------------------------------------------------ */

/* A person's open transaction has the id of one of the group's calls. The others are stored all the
 * same, by halves of the group, and the key is right. */
TEST(a_group_that_is_halved)
{
    open_all(param);
    key_is_known();
    struct db_session *person = db_session_open(engine_of(url)->server);
    db_session_say(person,
                   arena_printf(&one.a,
                                "BEGIN; INSERT INTO %sid (id, seq, fingerprint) VALUES ('held', "
                                "1000000, 'abc');",
                                engine_of(url)->tables));
    add_accept(&one, "a");
    add_accept(&one, "held");
    add_accept(&one, "b");
    add_claim(&one);
    struct op *ops[] = { &one.ops[0], &one.ops[1], &one.ops[2], &one.ops[3] };
    store_commit(one.s, ops, 4);
    one.n = 0;
    OK(one.ops[0].status, &one.ops[0].err);
    EQ_STATUS(one.ops[1].status, PAWL_BUSY, &one.ops[1].err);
    OK(one.ops[2].status, &one.ops[2].err);
    OK(one.ops[3].status, &one.ops[3].err);
    struct claim q = one.ops[3].claim;
    EQ_INT((int)q.n, 2);
    TRUE(bytes_eq(q.calls[0].spec.id, BYTES("a")));
    TRUE(bytes_eq(q.calls[1].spec.id, BYTES("b")));
    db_session_say(person, "ROLLBACK;");
    db_session_close(person);
    add_finish(&one, &q);
    add_accept(&one, "held");
    add_claim(&one);
    commit(&one);
    took(&one.ops[2], "held", 4);
    q = one.ops[2].claim;
    add_finish(&one, &q);
    commit(&one);
    is_idle();
    close_all();
}
