/*
 * pg_lost.c - the answer to a COMMIT never came: the repeated commit takes effect once, and waits
 * for a backend that is still busy with the first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>

#include "base/hook.h"
#include "db_server.h"
#include "fixture.h"
#include "store/store.h"
#include "proxy.h"

RUNS_ON_ENGINE("postgres")

static struct store *handle_at(const char *url, struct arena *a)
{
    struct store *s = NULL;
    struct pawl_err err;
    struct store_conf conf = { .url = url, .retention_us = FIXTURE_SEC * 3600 };
    OK(store_open(&conf, &s, &err), &err);
    OK(store_migrate(s, true, &err), &err);
    arena_init(a, 64 << 20);
    return s;
}

static struct store *handle(void *param, struct arena *a)
{
    return handle_at(proxy_url(engine_url(param)), a);
}

static struct op accept_on(struct arena *a, const char *id, struct bytes key)
{
    struct pawl_err err;
    struct call_spec *v = arena_zalloc(a, 1, sizeof *v);
    TRUE(v != NULL);
    call_spec_init(v);
    v->id = bytes_of(id);
    v->type = BYTES("t");
    v->key = key;
    OK(call_spec_settle(a, &world_real, v, &err), &err);
    return (struct op){ .kind = OP_ACCEPT, .a = a, .accept = { .v = v, .n = 1 } };
}

static struct op accept_of(struct arena *a, const char *id)
{
    return accept_on(a, id, BYTES_NONE);
}

static enum pawl_status commit(struct store *s, struct op *op)
{
    struct op *v = op;
    return store_commit(s, &v, 1);
}

static int64_t rows(const char *table)
{
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM pawl.%s;", table);
    return db_int(&db_postgres, sql);
}

TEST(an_accept_is_stored_once)
{
    static const enum proxy_cut cuts[] = { PROXY_AFTER, PROXY_NEVER, PROXY_BEHIND };
    static const char *const ids[] = { "first", "second", "third" };
    struct arena a;
    struct store *s = handle(param, &a);
    for (int i = 0; i < 3; i++) {
        struct op op = accept_of(&a, ids[i]);
        proxy_cut_commit(cuts[i]);
        OK(commit(s, &op), &op.err);
        TRUE(proxy_was_cut());
        OK(op.accept.out[0].status, NULL);
        EQ_INT(op.accept.out[0].duplicate, cuts[i] == PROXY_AFTER);
        EQ_INT(rows("call"), i + 1);
    }
    store_close(s);
    arena_release(&a);
}

TEST(a_claim_and_a_finish_are_stored_once)
{
    struct arena a;
    struct store *s = handle(param, &a);
    struct op op = accept_of(&a, "x");
    OK(commit(s, &op), &op.err);
    op = (struct op){ .kind = OP_CLAIM,
                      .a = &a,
                      .claim = { .token = token_make(&world_real),
                                 .node = BYTES("n"),
                                 .boot = BYTES("b"),
                                 .max = 5 } };
    proxy_cut_commit(PROXY_AFTER);
    OK(commit(s, &op), &op.err);
    TRUE(proxy_was_cut());
    EQ_INT(op.claim.n, 1);
    EQ_INT(rows("lease"), 1);
    struct finish_item f = { .seq = op.claim.calls[0].seq, .how = END_RESULT };
    struct op end = { .kind = OP_FINISH,
                      .a = &a,
                      .finish = { .token = op.claim.token, .v = &f, .n = 1 } };
    proxy_cut_commit(PROXY_AFTER);
    OK(commit(s, &end), &end.err);
    TRUE(proxy_was_cut());
    EQ_INT(f.state, PAWL_COMPLETED);
    EQ_INT(rows("outcome"), 1);
    store_close(s);
    arena_release(&a);
}

static struct op claim_of(struct arena *a)
{
    return (struct op){ .kind = OP_CLAIM,
                        .a = a,
                        .claim = { .token = token_make(&world_real),
                                   .node = BYTES("n"),
                                   .boot = BYTES("b"),
                                   .max = 5,
                                   .run_max = 5 } };
}

/* Of one group: the call goes from accept to claim in memory. Then the finish and the next claim of
 * another. */
TEST(a_call_with_a_key_and_its_claim_are_stored_once)
{
    static const enum proxy_cut cuts[] = { PROXY_AFTER, PROXY_NEVER, PROXY_BEHIND };
    static const char *const ids[] = { "first", "second", "third" };
    struct arena a;
    struct store *s = handle(param, &a);
    for (int i = 0; i < 3; i++) {
        struct op accept = accept_on(&a, ids[i], BYTES("k"));
        struct op claim = claim_of(&a), next = claim_of(&a);
        proxy_cut_commit(cuts[i]);
        OK(store_commit(s, (struct op *[]){ &accept, &claim }, 2), &accept.err);
        TRUE(proxy_was_cut());
        EQ_INT(claim.claim.n, 1);
        EQ_INT(claim.claim.calls[0].key_no, i + 1);
        EQ_INT(rows("call"), i + 1);
        EQ_INT(rows("lease"), 1);
        struct finish_item f = { .seq = claim.claim.calls[0].seq, .how = END_RESULT };
        struct op end = { .kind = OP_FINISH,
                          .a = &a,
                          .finish = { .token = claim.claim.token, .v = &f, .n = 1 } };
        proxy_cut_commit(cuts[i]);
        OK(store_commit(s, (struct op *[]){ &end, &next }, 2), &end.err);
        TRUE(proxy_was_cut());
        EQ_INT(f.state, PAWL_COMPLETED);
        EQ_INT(next.claim.n, 0);
        EQ_INT(rows("outcome"), i + 1);
        EQ_INT(rows("lease") + rows("ready") + rows("line") + rows("hint"), 0);
        EQ_INT(db_int(&db_postgres, "SELECT state + held + waiting FROM pawl.key;"), 0);
    }
    store_close(s);
    arena_release(&a);
}

/* ---- Connections that end in the middle ------------------------------------------------------ */

static const char *end_at; /* a pause point */
static bool ended;

static void end_them(void)
{
    db_ask(&db_postgres, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                         "WHERE datname = current_database() AND pid <> pg_backend_pid();");
    ended = true;
}

static void on_pause(const char *name, void *ctx)
{
    (void)ctx;
    if (ended || strcmp(name, end_at) != 0)
        return;
    end_them();
}

/* Wherever its connection ends, a group is stored once, by a later connection. */
TEST(a_group_outlives_its_connection)
{
    static const char *const points[] = { "ledger.begin", "ledger.before_commit", "between" };
    struct arena a;
    struct store *s = handle_at(engine_url(param), &a);
    hook_on_pause(on_pause, NULL);
    for (int i = 0; i < 60; i++) {
        char id[32];
        snprintf(id, sizeof id, "c%d", i);
        struct op op = accept_of(&a, id);
        end_at = points[i % 3];
        ended = false;
        if (i % 3 == 2)
            end_them();
        OK(commit(s, &op), &op.err);
        TRUE(ended);
        EQ_INT(rows("call"), i + 1);
    }
    hook_on_pause(NULL, NULL);
    store_close(s);
    arena_release(&a);
}

struct asked {
    struct store *s;
    struct op op;
    atomic_bool done;
};

static void *asks(void *arg)
{
    struct asked *q = arg;
    commit(q->s, &q->op);
    atomic_store(&q->done, true);
    return NULL;
}

/* The old backend has not got the COMMIT yet; the repeat waits for it, and finds its call. */
TEST(a_repeat_waits_for_the_first)
{
    struct arena a;
    struct asked q = { .s = handle(param, &a), .op = accept_of(&a, "x") };
    pthread_t thread;
    proxy_cut_commit(PROXY_HOLD);
    EQ_INT(pthread_create(&thread, NULL, asks, &q), 0);
    UNTIL(proxy_was_cut());
    UNTIL(db_waits(&db_postgres));
    FALSE(atomic_load(&q.done));
    proxy_let_go();
    pthread_join(thread, NULL);
    OK(q.op.status, &q.op.err);
    TRUE(q.op.accept.out[0].duplicate);
    EQ_INT(rows("call"), 1);
    store_close(q.s);
    arena_release(&a);
}

/* The backend never gets it: the fate of the call is unknown, and that is the answer; BUSY would
 * mean that nothing was stored. */
TEST(what_cannot_be_found_out_is_unknown)
{
    struct arena a;
    struct store *s = handle(param, &a);
    struct op op = accept_of(&a, "x");
    proxy_cut_commit(PROXY_HOLD);
    EQ_STATUS(commit(s, &op), PAWL_UNKNOWN, &op.err);
    EQ_STATUS(op.status, PAWL_UNKNOWN, &op.err);
    HAS_STR(op.err.text, "answer was lost");
    proxy_let_go();
    UNTIL(rows("call") == 1);
    op = accept_of(&a, "x");
    OK(commit(s, &op), &op.err);
    TRUE(op.accept.out[0].duplicate);
    store_close(s);
    arena_release(&a);
}

/* ---- A handler's SQL ------------------------------------------------------------------------- */

static atomic_int tallied;

/* The first connection is lost after the statement was answered. */
static int tallies(struct pawl_call *c)
{
    struct pawl_err err;
    if (atomic_fetch_add(&tallied, 1) == 0)
        proxy_cut_at("RELEASE statement", PROXY_NEVER);
    if (pawl_sql(c, "UPDATE tally SET n = n + 1", NULL, 0, NULL, &err) != PAWL_OK)
        return pawl_fail(c, "%s", err.text);
    return pawl_reply_int(c, 1);
}

TEST(a_result_is_not_stored_without_its_sql)
{
    const char *straight = engine_url(param);
    struct pawl *p = fixture_open_as(proxy_url(straight),
                                     (struct pawl_options){ PAWL_OPTIONS_INIT, .node = "n" });
    db_ask(&db_postgres, "CREATE TABLE tally (n bigint NOT NULL); INSERT INTO tally VALUES (0);");
    fixture_on(p, "tally", tallies);
    fixture_start(p, 1);
    fixture_submit_as(p, (struct pawl_spec){ PAWL_SPEC_INIT, .id = "t", .type = "tally",
                                             .backoff_base_us = 1000 });
    fixture_ends(p, "t", PAWL_COMPLETED);
    TRUE(proxy_was_cut());
    EQ_INT(atomic_load(&tallied), 2);
    EQ_INT(db_int(&db_postgres, "SELECT n FROM tally;"), 1);
    pawl_close(p);
}
