/*
 * server_keys.c - calls with keys on several connections of a server at once: one at a time, in
 * order, none forgotten.
 *
 * An accept does not wait for a key that another transaction has locked; it leaves a key note
 * instead, which must never be missed. Each accepting thread waits for every answer, so its calls
 * of one key must end in the order it sent them. Workers fail some attempts and hand some calls
 * back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hook.h"
#include "base/limits.h"
#include "check.h"
#include "engines.h"
#include "store/store.h"

RUNS_ON(ENGINE_SERVER)

enum { ACCEPTERS = 3, WORKERS = 3, KEYS = 4 };

static const char *url;
static atomic_int done, holder[KEYS], busy;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int last[KEYS][ACCEPTERS]; /* protected by the lock */

static int calls_each(void)
{
    return check_long() ? 400 / check_scale() : 60;
}

static struct store *handle(void)
{
    struct store *s = NULL;
    struct pawl_err err;
    struct store_conf conf = { .url = url,
                               .retention_us = SEC_US * 3600,
                               .key_pending_max = 100000 };
    OK(store_open(&conf, &s, &err), &err);
    return s;
}

/* BUSY is allowed when many transactions want the same row; repeat. */
static void commit(struct store *s, struct op *op)
{
    struct op *v = op;
    while (store_commit(s, &v, 1) != PAWL_OK) {
        EQ_STATUS(op->status, PAWL_BUSY, &op->err);
        atomic_fetch_add(&busy, 1);
    }
}

static void *accepts(void *arg)
{
    int who = (int)(intptr_t)arg;
    AUTO(store_end) struct store *s = handle();
    struct arena a;
    arena_init(&a, 64 << 20);
    for (int n = 1; n <= calls_each(); n++) {
        struct call_spec spec;
        struct pawl_err err;
        arena_reset(&a);
        call_spec_init(&spec);
        spec.id = bytes_of(arena_printf(&a, "%d-%d-%d", n % KEYS, who, n));
        spec.key = bytes_of(arena_printf(&a, "k%d", n % KEYS));
        spec.type = n % KEYS % 2 ? BYTES("slow") : BYTES("quick");
        spec.max_attempts = 1000;
        spec.backoff.base_us = 1;
        spec.backoff.max_us = 1;
        OK(call_spec_settle(&a, &world_real, &spec, &err), &err);
        struct op op = { .kind = OP_ACCEPT, .a = &a, .accept = { .v = &spec, .n = 1 } };
        commit(s, &op);
        OK(op.accept.out[0].status, NULL);
        FALSE(op.accept.out[0].duplicate && !atomic_load(&busy));
    }
    arena_release(&a);
    return NULL;
}

/* "key-accepter-n" */
static void parts(struct bytes id, int out[3])
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", BYTES_ARG(id));
    EQ_INT(sscanf(text, "%d-%d-%d", &out[0], &out[1], &out[2]), 3);
}

static void ended(struct bytes id)
{
    int p[3];
    parts(id, p);
    pthread_mutex_lock(&lock);
    GT_INT(p[2], last[p[0]][p[1]]);
    last[p[0]][p[1]] = p[2];
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&done, 1);
}

/* No other worker has a call of these keys while we hold them. */
static void hold(const struct claim *q, int who, bool take)
{
    for (size_t i = 0; i < q->n; i++) {
        int p[3];
        parts(q->calls[i].spec.id, p);
        int before = atomic_exchange(&holder[p[0]], take ? who : 0);
        TRUE(before == (take ? 0 : who) || before == (take ? who : 0));
    }
}

static void finish_all(struct store *s, struct arena *a, const struct claim *q, int who, int turn)
{
    struct finish_item *v = arena_zalloc(a, q->n, sizeof *v);
    for (size_t i = 0; i < q->n; i++) {
        bool fails = (turn + (int)i) % 7 == 3;
        v[i] = (struct finish_item){ .seq = q->calls[i].seq,
                                     .how = fails ? END_ERROR : END_RESULT,
                                     .retry_in_us = fails ? 0 : -1 };
    }
    struct op op = { .kind = OP_FINISH,
                     .a = a,
                     .finish = { .token = q->token, .v = v, .n = q->n } };
    hold(q, who, false);
    /* In the order of their run. Recorded before the commit, because the next run may end before we
     * get the answer that this one did. */
    bool broken[KEYS] = { 0 };
    for (size_t i = 0; i < q->n; i++) {
        int p[3];
        parts(q->calls[i].spec.id, p);
        if (v[i].how == END_RESULT && !broken[p[0]])
            ended(q->calls[i].spec.id);
        broken[p[0]] = broken[p[0]] || v[i].how != END_RESULT;
    }
    commit(s, &op);
    OK(op.status, &op.err);
}

static void *works(void *arg)
{
    int who = (int)(intptr_t)arg, turn = 0;
    const struct bytes quick = BYTES("quick");
    AUTO(store_end) struct store *s = handle();
    struct arena a;
    arena_init(&a, 64 << 20);
    while (atomic_load(&done) < ACCEPTERS * calls_each()) {
        struct token token = token_make(&world_real);
        arena_reset(&a);
        struct op op = { .kind = OP_CLAIM,
                         .a = &a,
                         .claim = { .token = token,
                                    .node = BYTES("n"),
                                    .boot = BYTES("b"),
                                    .max = 8,
                                    .run_max = 1 + turn % 4,
                                    .max_any = turn % 5, /* sometimes: any */
                                    .quick = &quick,
                                    .n_quick = 1,
                                    .width = turn % 3,
                                    .lease_us = 60 * SEC_US } };
        commit(s, &op);
        OK(op.status, &op.err);
        if (op.claim.n) {
            hold(&op.claim, who, true);
            finish_all(s, &a, &op.claim, who, ++turn);
        }
    }
    arena_release(&a);
    return NULL;
}

TEST(keys_on_many_connections, .deadline_s = 300)
{
    pthread_t accepters[ACCEPTERS], workers[WORKERS];
    url = engine_url(param);
    AUTO(store_end) struct store *s = handle();
    struct pawl_err err;
    OK(store_migrate(s, true, &err), &err);
    for (int i = 0; i < WORKERS; i++)
        EQ_INT(pthread_create(&workers[i], NULL, works, (void *)(intptr_t)(i + 1)), 0);
    for (int i = 0; i < ACCEPTERS; i++)
        EQ_INT(pthread_create(&accepters[i], NULL, accepts, (void *)(intptr_t)i), 0);
    for (int i = 0; i < ACCEPTERS; i++)
        EQ_INT(pthread_join(accepters[i], NULL), 0);
    for (int i = 0; i < WORKERS; i++)
        EQ_INT(pthread_join(workers[i], NULL), 0);
    printf("# %d times busy\n", atomic_load(&busy));
    struct arena a;
    struct key_rows keys;
    struct queue_rows queues;
    arena_init(&a, 64 << 20);
    OK(store_keys(s, &a, &(struct key_query){ .limit = LIST_MAX }, &keys, &err), &err);
    EQ_INT(keys.n, 0); /* nothing is pending, running or blocked */
    OK(store_queues(s, &a, &queues, &err), &err);
    EQ_INT(queues.v[0].pending + queues.v[0].processing, 0);
    arena_release(&a);
}

/* ---- One at a time, by hand ------------------------------------------------------------------ */

static atomic_bool stopped, go_on;
static pthread_t who_stops;

static void on_pause(const char *name, void *ctx)
{
    (void)ctx;
    if (!engine_point(name, "before_commit") || !pthread_equal(pthread_self(), who_stops))
        return;
    atomic_store(&stopped, true);
    while (!atomic_load(&go_on))
        ;
}

struct finisher {
    struct store *s;
    struct token token;
    int64_t seq;
};

static void *finishes(void *arg)
{
    const struct finisher *f = arg;
    struct arena a;
    struct finish_item item = { .seq = f->seq, .how = END_RESULT };
    arena_init(&a, 1 << 20);
    struct op op = { .kind = OP_FINISH,
                     .a = &a,
                     .finish = { .token = f->token, .v = &item, .n = 1 } };
    who_stops = pthread_self();
    hook_on_pause(on_pause, NULL);
    commit(f->s, &op);
    EQ_INT(item.state, PAWL_COMPLETED);
    arena_release(&a);
    return NULL;
}

static struct accepted accept_one(struct store *s, struct arena *a, const char *id)
{
    struct call_spec spec;
    struct pawl_err err;
    call_spec_init(&spec);
    spec.id = bytes_of(id);
    spec.key = BYTES("k");
    spec.type = BYTES("t");
    OK(call_spec_settle(a, &world_real, &spec, &err), &err);
    struct op op = { .kind = OP_ACCEPT, .a = a, .accept = { .v = &spec, .n = 1 } };
    commit(s, &op);
    OK(op.accept.out[0].status, NULL);
    return op.accept.out[0];
}

static struct claim claim_one(struct store *s, struct arena *a)
{
    struct op op = { .kind = OP_CLAIM,
                     .a = a,
                     .claim = { .token = token_make(&world_real),
                                .node = BYTES("n"),
                                .boot = BYTES("b"),
                                .max = 1,
                                .lease_us = 60 * SEC_US } };
    commit(s, &op);
    OK(op.status, &op.err);
    return op.claim;
}

/* A finish has decided that its key is idle and has not committed. An accept on the key is answered
 * meanwhile, and the next claim finds its call. */
TEST(an_accept_does_not_wait_for_a_key_and_is_not_forgotten)
{
    struct pawl_err err;
    struct arena a;
    pthread_t thread;
    url = engine_url(param);
    AUTO(store_end) struct store *one = handle(), *two = NULL;
    two = handle();
    OK(store_migrate(one, true, &err), &err);
    arena_init(&a, 1 << 20);
    accept_one(one, &a, "first");
    struct claim q = claim_one(one, &a);
    EQ_INT(q.n, 1);
    struct finisher f = { one, q.token, q.calls[0].seq };
    EQ_INT(pthread_create(&thread, NULL, finishes, &f), 0);
    while (!atomic_load(&stopped))
        ;
    struct accepted second = accept_one(two, &a, "second");
    EQ_INT(second.call.waiting_for, WAIT_KEY);
    EQ_INT(claim_one(two, &a).n, 0); /* other connections do not see the end of the first yet */
    atomic_store(&go_on, true);
    EQ_INT(pthread_join(thread, NULL), 0);
    hook_on_pause(NULL, NULL);
    EQ_INT(claim_one(two, &a).n, 1);
    arena_release(&a);
}
