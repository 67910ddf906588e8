/*
 * wake.c - calls are woken while other connections have locked their keys: nobody waits, and no
 * call is forgotten.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/hook.h"
#include "base/limits.h"
#include "check.h"
#include "engines.h"
#include "store/store.h"

RUNS_ON(ENGINES_DURABLE)

static const char *url;

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
    while (store_commit(s, &op, 1) != PAWL_OK)
        EQ_STATUS(op->status, PAWL_BUSY, &op->err);
    OK(op->status, &op->err);
}

static int64_t accept(struct store *s, struct arena *a, const char *id, const char *key,
                      int64_t delay_us)
{
    struct call_spec spec;
    struct pawl_err err;
    call_spec_init(&spec);
    spec.id = bytes_of(id);
    spec.key = bytes_of(key);
    spec.type = BYTES("t");
    spec.delay_us = delay_us;
    spec.input = (struct payload){ PAWL_JSON, BYTES("1") };
    OK(call_spec_settle(a, &world_real, &spec, &err), &err);
    struct op op = { .kind = OP_ACCEPT, .a = a, .accept = { .v = &spec, .n = 1 } };
    commit(s, &op);
    OK(op.accept.out[0].status, NULL);
    return op.accept.out[0].call.seq;
}

static struct claim claim(struct store *s, struct arena *a, int max, int run_max)
{
    struct op op = { .kind = OP_CLAIM,
                     .a = a,
                     .claim = { .token = token_make(&world_real),
                                .node = BYTES("n"),
                                .boot = BYTES("b"),
                                .max = max,
                                .run_max = run_max,
                                .lease_us = 600 * SEC_US } };
    commit(s, &op);
    return op.claim;
}

/* A row that another connection wrote before our cursors is found by a later look. */
static struct claim claim_soon(struct store *s, struct arena *a)
{
    for (;;) {
        struct claim q = claim(s, a, 5, 5);
        if (q.n)
            return q;
        FALSE(q.n == 0 && !q.more && !q.next_due_us); /* it says when it looks again */
    }
}

static void finish(struct store *s, struct arena *a, struct token token, int64_t seq,
                   enum ending how)
{
    struct finish_item item = { .seq = seq, .how = how, .retry_in_us = 3600 * SEC_US };
    struct op op = { .kind = OP_FINISH, .a = a, .finish = { .token = token, .v = &item, .n = 1 } };
    commit(s, &op);
}

static struct op wake(struct store *s, struct arena *a, int64_t seq)
{
    struct op op = { .kind = OP_WAKE, .a = a, .wake = { &seq, 1 } };
    commit(s, &op);
    op.wake.seqs = NULL;
    return op;
}

/* ---- By hand --------------------------------------------------------------------------------- */

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

struct locker {
    struct store *s;
    const char *id, *key;
};

/* Accept a call, and stop before the commit: its key is locked meanwhile. */
static void *locks(void *arg)
{
    const struct locker *k = arg;
    struct arena a;
    arena_init(&a, 1 << 20);
    who_stops = pthread_self();
    hook_on_pause(on_pause, NULL);
    accept(k->s, &a, k->id, k->key, 0);
    arena_release(&a);
    return NULL;
}

static pthread_t lock(struct locker *k)
{
    pthread_t thread;
    atomic_store(&stopped, false);
    atomic_store(&go_on, false);
    EQ_INT(pthread_create(&thread, NULL, locks, k), 0);
    while (!atomic_load(&stopped))
        ;
    return thread;
}

static void unlock(pthread_t thread)
{
    atomic_store(&go_on, true);
    EQ_INT(pthread_join(thread, NULL), 0);
    hook_on_pause(NULL, NULL);
}

static void begin(void *param, struct store **one, struct store **two, struct arena *a)
{
    struct pawl_err err;
    if (engine_of(param)->kind == ENGINE_FILE)
        skip("%s has one writer: no key is locked by another", engine_of(param)->name);
    url = engine_url(param);
    arena_init(a, 16 << 20);
    *one = handle();
    *two = handle();
    OK(store_migrate(*one, true, &err), &err);
}

TEST(the_head_of_a_locked_key_is_woken_when_it_is_free)
{
    AUTO(store_end) struct store *one = NULL, *two = NULL;
    struct arena a;
    begin(param, &one, &two, &a);
    accept(one, &a, "a", "k", 0);
    struct claim q = claim(one, &a, 1, 1);
    int64_t seq = q.calls[0].seq;
    finish(one, &a, q.token, seq, END_LATER);
    EQ_INT(claim(two, &a, 5, 5).n, 0);
    pthread_t thread = lock(&(struct locker){ one, "b", "k" });
    TRUE(wake(two, &a, seq).brings);
    q = claim(two, &a, 5, 5);
    EQ_INT(q.n, 0);
    GT_INT(q.next_due_us, 0); /* it looks again soon */
    int64_t now_us;
    struct pawl_err err;
    OK(store_now(two, &now_us, &err), &err);
    LE_INT(q.next_due_us, now_us + 5 * MS_US);
    unlock(thread);
    q = claim_soon(two, &a);
    EQ_INT(q.n, 2);
    EQ_INT(q.calls[0].seq, seq);
    arena_release(&a);
}

TEST(a_delayed_call_of_a_locked_key_joins_its_line)
{
    AUTO(store_end) struct store *one = NULL, *two = NULL;
    struct arena a;
    begin(param, &one, &two, &a);
    int64_t seq = accept(one, &a, "later", "k", 3600 * SEC_US);
    pthread_t thread = lock(&(struct locker){ one, "now", "k" });
    TRUE(wake(two, &a, seq).brings);
    EQ_INT(claim(two, &a, 5, 5).n, 0);
    unlock(thread);
    struct claim q = claim_soon(two, &a);
    EQ_INT(q.n, 2);
    EQ_INT(q.calls[1].seq, seq);
    arena_release(&a);
}

/* ---- At random ------------------------------------------------------------------------------- */

enum { KEYS = 3, ACCEPTERS = 2, WORKERS = 2, WAKERS = 2, CALLS_MAX = 4000 };

static atomic_int done, n_asleep, n_woken;
static int64_t asleep[CALLS_MAX]; /* seqs, to be woken in this order; 0: not written yet */
static atomic_bool slept[CALLS_MAX * 8];

static int calls_each(void)
{
    return check_long() ? 300 / check_scale() : 40;
}

static int calls_all(void)
{
    return ACCEPTERS * calls_each();
}

static void *accepts(void *arg)
{
    int who = (int)(intptr_t)arg;
    AUTO(store_end) struct store *s = handle();
    struct arena a;
    arena_init(&a, 64 << 20);
    for (int n = 0; n < calls_each(); n++) {
        arena_reset(&a);
        accept(s, &a, arena_printf(&a, "%d-%d", who, n), arena_printf(&a, "k%d", n % KEYS), 0);
    }
    arena_release(&a);
    return NULL;
}

/* The first attempt of each call puts it off for an hour and has it woken, once. */
static void attempt(struct store *s, struct arena *a, struct token token, int64_t seq)
{
    CHECK(seq < (int64_t)COUNT_OF(slept));
    if (atomic_exchange(&slept[seq], true)) {
        finish(s, a, token, seq, END_RESULT);
        atomic_fetch_add(&done, 1);
        return;
    }
    finish(s, a, token, seq, END_LATER);
    __atomic_store_n(&asleep[atomic_fetch_add(&n_asleep, 1)], seq, __ATOMIC_SEQ_CST);
}

static void *works(void *arg)
{
    AUTO(store_end) struct store *s = handle();
    struct arena a;
    (void)arg;
    arena_init(&a, 64 << 20);
    while (atomic_load(&done) < calls_all()) {
        arena_reset(&a);
        struct claim q = claim(s, &a, 4, 1);
        for (size_t i = 0; i < q.n; i++)
            attempt(s, &a, q.token, q.calls[i].seq);
    }
    arena_release(&a);
    return NULL;
}

static void *wakes(void *arg)
{
    AUTO(store_end) struct store *s = handle();
    struct arena a;
    (void)arg;
    arena_init(&a, 64 << 20);
    for (int i; (i = atomic_fetch_add(&n_woken, 1)) < calls_all();) {
        int64_t seq;
        while (!(seq = __atomic_load_n(&asleep[i], __ATOMIC_SEQ_CST)))
            sched_yield();
        arena_reset(&a);
        wake(s, &a, seq);
    }
    arena_release(&a);
    return NULL;
}

TEST(every_call_that_is_woken_runs_again, .deadline_s = 300)
{
    pthread_t t[ACCEPTERS + WORKERS + WAKERS];
    int n = 0;
    url = engine_url(param);
    AUTO(store_end) struct store *s = handle();
    struct pawl_err err;
    OK(store_migrate(s, true, &err), &err);
    for (int i = 0; i < WORKERS; i++)
        EQ_INT(pthread_create(&t[n++], NULL, works, NULL), 0);
    for (int i = 0; i < WAKERS; i++)
        EQ_INT(pthread_create(&t[n++], NULL, wakes, NULL), 0);
    for (int i = 0; i < ACCEPTERS; i++)
        EQ_INT(pthread_create(&t[n++], NULL, accepts, (void *)(intptr_t)i), 0);
    for (int i = 0; i < n; i++)
        EQ_INT(pthread_join(t[i], NULL), 0);
    EQ_INT(atomic_load(&done), calls_all());
}
