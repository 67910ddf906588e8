/*
 * cron.c - a schedule is replaced, deleted or paused while it ticks: behind the answer of the
 * change no tick of the former one appears.
 *
 * Two connections of a server, in every order that matters. One is paused inside its transaction:
 * the tick where all is decided and nothing written (cron.ticked), the change where all is written
 * and nothing committed. The other one begins meanwhile. The clock is the case's own. Calls of the
 * former schedule have the type "old".
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>

#include "base/hook.h"
#include "cron_fixture.h"
#include "db_server.h"
#include "fixture.h"

RUNS_ON(ENGINE_SERVER)

#define MINUTE_US (60 * SEC_US)

/* ---- Sides ----------------------------------------------------------------------------------- */

/* One connection, and the operation it runs on its own thread. */
struct side {
    struct store *s;
    struct arena a;
    struct cron_op q;
    struct op op;
    const char *hold_at; /* NULL: does not pause */
    pthread_t thread;
    atomic_bool held, go, over;
};

static struct own_world world;
static const char *url;
static struct side one, two;
static _Thread_local struct side *self;

static void on_pause(const char *name, void *ctx)
{
    struct side *v = self;
    (void)ctx;
    if (!v || !v->hold_at || atomic_load(&v->go) || strcmp(name, v->hold_at) != 0)
        return;
    atomic_store(&v->held, true);
    while (!atomic_load(&v->go))
        usleep(200);
}

static void *runs(void *arg)
{
    struct side *v = self = arg;
    (void)cron_fixture_commit(v->s, &v->op);
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

static void start_held(struct side *v, struct op op, const char *hold_at)
{
    start(v, op, hold_at);
    UNTIL(atomic_load(&v->held));
}

static void finished(struct side *v)
{
    atomic_store(&v->go, true);
    EQ_INT(pthread_join(v->thread, NULL), 0);
    OK(v->op.status, &v->op.err);
}

/* ---- Operations ------------------------------------------------------------------------------ */

static struct op tick_op(struct side *v)
{
    v->q = (struct cron_op){ .what = CRON_TICK, .max = CRON_STEP_MAX, .node = BYTES("n") };
    return cron_fixture_op(&v->a, &v->q);
}

static struct op change_op(struct side *v, enum cron_do what)
{
    if (what == CRON_PUT)
        v->q =
            cron_fixture_put_op(&v->a, "s", "{\"cron\":\"* * * * *\",\"call\":{\"type\":\"new\"}}");
    else
        v->q = (struct cron_op){ .what = what, .name = BYTES("s") };
    return cron_fixture_op(&v->a, &v->q);
}

static int64_t olds(void)
{
    return engine_int(url, "SELECT COUNT(*) FROM pawl_call c JOIN pawl_lane l ON l.lane = c.lane "
                           "WHERE l.type = 'old'");
}

/* A database with a schedule that has just become due. */
static void begin(const void *param, const char *overlap)
{
    struct pawl_err err;
    engine_fresh(param);
    url = engine_url(param);
    own_world_init(&world, 1);
    one = two = (struct side){ 0 };
    arena_init(&one.a, 16 << 20);
    arena_init(&two.a, 16 << 20);
    one.s = cron_fixture_open(url, &world);
    OK(store_migrate(one.s, true, &err), &err);
    two.s = cron_fixture_open(url, &world);
    cron_fixture_put(one.s, &one.a, "s",
                     arena_printf(&one.a,
                                  "{\"cron\":\"* * * * *\",\"overlap\":\"%s\","
                                  "\"call\":{\"type\":\"old\"}}",
                                  overlap));
    own_world_advance(&world, MINUTE_US);
    hook_on_pause(on_pause, NULL);
}

/* Minutes later there is no further call of the former schedule, and its ticks are its calls. */
static void end(enum cron_do what, int64_t want)
{
    EQ_INT(olds(), want);
    for (int i = 0; i < 3; i++) {
        own_world_advance(&world, MINUTE_US);
        EQ_INT(cron_fixture_tick(one.s, &one.a, "n"), what == CRON_PUT);
        EQ_INT(cron_fixture_tick(two.s, &two.a, "n"), 0);
    }
    EQ_INT(olds(), want);
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_tick WHERE kind = 1"),
           want + (what == CRON_PUT ? 3 : 0));
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_call"), want + (what == CRON_PUT ? 3 : 0));
    hook_on_pause(NULL, NULL);
    store_close(one.s);
    store_close(two.s);
    arena_release(&one.a);
    arena_release(&two.a);
}

/* `two` must wait for `one`, which is held; after its answer it counts the calls of the former
 * schedule. */
static int64_t answer_behind(struct op op)
{
    start(&two, op, NULL);
    UNTIL(db_waits(engine_of(url)->server));
    FALSE(atomic_load(&two.over));
    atomic_store(&one.go, true);
    EQ_INT(pthread_join(two.thread, NULL), 0);
    OK(two.op.status, &two.op.err);
    int64_t n = olds();
    finished(&one);
    return n;
}

static const enum cron_do changes[] = { CRON_PUT, CRON_DELETE, CRON_PAUSE };

/* ---- Ticks ----------------------------------------------------------------------------------- */

TEST(a_change_behind_a_tick_waits_for_it)
{
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        begin(param, "allow");
        start_held(&one, tick_op(&one), "cron.ticked");
        EQ_INT(answer_behind(change_op(&two, changes[i])), 1);
        EQ_INT(one.q.submitted, 1);
        end(changes[i], 1);
    }
}

TEST(a_tick_behind_a_change_leaves_the_schedule_alone)
{
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        begin(param, "allow");
        start_held(&one, change_op(&one, changes[i]), "ledger.before_commit");
        start(&two, tick_op(&two), NULL);
        finished(&two); /* it does not wait */
        EQ_INT(two.q.submitted, 0);
        finished(&one);
        end(changes[i], 0);
    }
}

/* The tick has begun its transaction, and the change is answered before it reads what is due. */
TEST(a_tick_that_began_before_the_change_sees_it)
{
    static const char *const points[] = { "ledger.begin", "ledger.features_loaded" };
    for (size_t k = 0; k < COUNT_OF(points); k++)
        for (size_t i = 0; i < COUNT_OF(changes); i++) {
            begin(param, "allow");
            start_held(&one, tick_op(&one), points[k]);
            start(&two, change_op(&two, changes[i]), NULL);
            finished(&two);
            EQ_INT(olds(), 0);
            finished(&one);
            EQ_INT(one.q.submitted, 0);
            end(changes[i], 0);
        }
}

/* ---- Ticks that wait ------------------------------------------------------------------------- */

/* The call of the first tick is claimed, and the second tick waits for its end. */
static struct op begin_waiting(const void *param, struct claim *c)
{
    begin(param, "wait");
    EQ_INT(cron_fixture_tick(one.s, &one.a, "n"), 1);
    own_world_advance(&world, MINUTE_US);
    EQ_INT(cron_fixture_tick(one.s, &one.a, "n"), 0);
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_schedule WHERE waiting_at IS NOT NULL"), 1);
    *c = cron_fixture_claim(one.s, &one.a, 5);
    EQ_UINT(c->n, 1);
    return cron_fixture_finish(&one.a, c);
}

TEST(a_change_behind_the_end_that_a_tick_waited_for)
{
    for (size_t i = 0; i < 2; i++) {
        struct claim c;
        struct op finish = begin_waiting(param, &c);
        start_held(&one, finish, "ledger.before_commit");
        EQ_INT(answer_behind(change_op(&two, changes[i])), 2);
        end(changes[i], 2);
    }
}

/* The end does wait: it may be that the tick is still to be submitted. */
TEST(the_end_that_a_tick_waited_for_behind_a_change)
{
    for (size_t i = 0; i < 2; i++) {
        struct claim c;
        struct op finish = begin_waiting(param, &c);
        start_held(&one, change_op(&one, changes[i]), "ledger.before_commit");
        EQ_INT(answer_behind(finish), 1);
        EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_tick WHERE kind = 3"), 1);
        end(changes[i], 1);
    }
}
