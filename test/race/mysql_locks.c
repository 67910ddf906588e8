/*
 * mysql_locks.c - on MariaDB and MySQL a statement locks the rows it needs, and no others.
 *
 * A plan that scans a small table would wait for any locked row in it, and two such plans would
 * deadlock. So a session locks rows here for as long as a case lasts, and other work must go on;
 * and eight connections accept, claim and finish at the same time without a single deadlock.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "db_server.h"
#include "engines.h"
#include "store/store.h"

RUNS_ON_ENGINE("mariadb")

enum { THREADS = 8, BATCH = 20 };

static const char *url;
static struct arena memory;

static struct store *handle(void)
{
    struct store *s = NULL;
    struct pawl_err err;
    struct store_conf conf = { .url = url, .retention_us = SEC_US * 3600 };
    OK(store_open(&conf, &s, &err), &err);
    return s;
}

static struct store *first(void *param)
{
    struct pawl_err err;
    url = engine_url(param);
    struct store *s = handle();
    OK(store_migrate(s, true, &err), &err);
    arena_init(&memory, 64 << 20);
    return s;
}

static void commit(struct store *s, struct op *op)
{
    struct op *v = op;
    store_commit(s, &v, 1);
    OK(op->status, &op->err);
}

static void accept_some(struct store *s, struct arena *a, const char *prefix, int n,
                        const char *key)
{
    struct call_spec *v = arena_zalloc(a, (size_t)n, sizeof *v);
    struct pawl_err err;
    TRUE(v != NULL);
    for (int i = 0; i < n; i++) {
        call_spec_init(&v[i]);
        v[i].id = bytes_of(arena_printf(a, "%s-%d", prefix, i));
        v[i].type = BYTES("t");
        v[i].key = key ? bytes_of(key) : BYTES_NONE;
        OK(call_spec_settle(a, &world_real, &v[i], &err), &err);
    }
    struct op op = { .kind = OP_ACCEPT, .a = a, .accept = { .v = v, .n = (size_t)n } };
    commit(s, &op);
    for (int i = 0; i < n; i++)
        EQ_INT(op.accept.out[i].status, PAWL_OK);
}

static struct claim claim_some(struct store *s, struct arena *a, int max)
{
    struct op op = { .kind = OP_CLAIM,
                     .a = a,
                     .claim = { .token = token_make(&world_real),
                                .node = BYTES("n"),
                                .boot = BYTES("b"),
                                .max = max,
                                .run_max = 1,
                                .lease_us = 60 * SEC_US } };
    commit(s, &op);
    return op.claim;
}

static void finish_all(struct store *s, struct arena *a, const struct claim *q)
{
    struct finish_item *v = arena_zalloc(a, q->n + 1, sizeof *v);
    TRUE(v != NULL);
    for (size_t i = 0; i < q->n; i++)
        v[i] = (struct finish_item){ .seq = q->calls[i].seq, .how = END_RESULT };
    struct op op = { .kind = OP_FINISH,
                     .a = a,
                     .finish = { .token = q->token, .v = v, .n = q->n } };
    commit(s, &op);
}

/* ---- While other rows are locked ------------------------------------------------------------- */

/* Locks every row that exists now, until the session ends. */
static struct db_session *hold_all(void)
{
    static const char *const tables[] = { "lease", "ready",   "call", "outcome",
                                          "key",   "attempt", "id",   "line" };
    struct db_session *v = db_session_open(&db_mariadb);
    db_session_say(v, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;");
    db_session_say(v, "BEGIN;");
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        char sql[100];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM (SELECT * FROM pawl_%s FOR UPDATE) t;",
                 tables[i]);
        db_session_say(v, sql);
    }
    return v;
}

/* A lease, a ready call, an ended one, a key with calls: one row of most tables, all of them
 * locked. */
TEST(a_whole_life_beside_rows_that_are_held)
{
    AUTO(store_end) struct store *s = first(param);
    accept_some(s, &memory, "ended", 1, NULL);
    struct claim q = claim_some(s, &memory, 1);
    finish_all(s, &memory, &q);
    accept_some(s, &memory, "held", 1, NULL);
    q = claim_some(s, &memory, 1);
    EQ_INT(q.n, 1);
    accept_some(s, &memory, "keyed", 2, "theirs");
    accept_some(s, &memory, "ready", 1, NULL);
    struct db_session *other = hold_all();
    accept_some(s, &memory, "mine", 2, "mine");
    accept_some(s, &memory, "free", 2, NULL);
    for (int left = 4; left > 0;) {
        q = claim_some(s, &memory, 4);
        GT_INT(q.n, 0);
        for (size_t i = 0; i < q.n; i++)
            TRUE(strncmp(q.calls[i].spec.id.data, "mine", 4) == 0 ||
                 strncmp(q.calls[i].spec.id.data, "free", 4) == 0);
        finish_all(s, &memory, &q);
        left -= (int)q.n;
    }
    db_session_close(other);
    /* The ready call and the first of its key: found when their locks are released and a claim
     * reads again where it skipped them. */
    int64_t until = world_mono(&world_real) + 20 * SEC_US;
    for (size_t got = 0; got < 2; got += q.n) {
        TRUE(world_mono(&world_real) < until);
        q = claim_some(s, &memory, 4);
    }
    EQ_INT(claim_some(s, &memory, 4).n, 0);
    arena_release(&memory);
}

/* ---- Eight connections ----------------------------------------------------------------------- */

static atomic_int accepted, finished;

static int rounds(void)
{
    return check_long() ? 60 / check_scale() : 10;
}

static void *accepts(void *arg)
{
    AUTO(store_end) struct store *s = handle();
    struct arena a;
    arena_init(&a, 64 << 20);
    for (int i = 0; i < rounds(); i++) {
        char prefix[40];
        arena_reset(&a);
        snprintf(prefix, sizeof prefix, "%d-%d", (int)(intptr_t)arg, i);
        accept_some(s, &a, prefix, BATCH, NULL);
        atomic_fetch_add(&accepted, BATCH);
    }
    arena_release(&a);
    return NULL;
}

static void *drains(void *arg)
{
    AUTO(store_end) struct store *s = handle();
    struct arena a;
    int all = THREADS / 2 * rounds() * BATCH;
    (void)arg;
    arena_init(&a, 64 << 20);
    while (atomic_load(&finished) < all) {
        arena_reset(&a);
        struct claim q = claim_some(s, &a, BATCH);
        if (q.n)
            finish_all(s, &a, &q);
        atomic_fetch_add(&finished, (int)q.n);
    }
    arena_release(&a);
    return NULL;
}

TEST(eight_connections_hear_of_no_deadlock, .deadline_s = 120)
{
    pthread_t v[THREADS];
    AUTO(store_end) struct store *s = first(param);
    for (intptr_t i = 0; i < THREADS; i++)
        EQ_INT(pthread_create(&v[i], NULL, i % 2 ? drains : accepts, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        EQ_INT(pthread_join(v[i], NULL), 0);
    EQ_INT(atomic_load(&finished), atomic_load(&accepted));
    EQ_INT(db_int(&db_mariadb, "SELECT count(*) FROM pawl_outcome;"), atomic_load(&accepted));
    EQ_INT(db_int(&db_mariadb, "SELECT count(*) FROM pawl_ready;"), 0);
    EQ_INT(db_int(&db_mariadb, "SELECT count(*) FROM pawl_lease;"), 0);
    arena_release(&memory);
}

/* ---- A connection that was closed ------------------------------------------------------------ */

TEST(a_connection_closed_while_idle_is_replaced_without_a_word)
{
    AUTO(store_end) struct store *s = first(param);
    char sql[60];
    int64_t now, id = db_int(&db_mariadb, "SELECT id FROM information_schema.processlist"
                                          " WHERE db = DATABASE() AND user = 'pawl';");
    struct pawl_err err;
    struct db_session *other = db_session_open(&db_mariadb);
    snprintf(sql, sizeof sql, "KILL %lld;", (long long)id);
    db_session_say(other, sql);
    db_session_close(other);
    int64_t past = world_mono(&world_real) + 100 * MS_US; /* longer than what counts as idle */
    while (world_mono(&world_real) < past)
        ;
    accept_some(s, &memory, "x", 1, NULL);
    OK(store_now(s, &now, &err), &err);
    arena_release(&memory);
}
