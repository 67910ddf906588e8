/*
 * feature.c - operations of a feature: their fence, what they commit with, and what the feature is
 * told of calls. The feature is the counter of the tests (counter.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform.h"
#include "counter.h"
#include "store/feature.h"

/* A fixture whose handles have the feature, with its tables. */
static struct conform_fixture *counting(void *param, const char *wrapper)
{
    static char url[200];
    if (engine_of(param)->kind == ENGINE_MEM)
        skip("mem keeps calls only");
    if (strchr(param, '+') && *wrapper)
        skip("%s is wrapped already", (const char *)param);
    snprintf(url, sizeof url, "%s%s", wrapper, (const char *)param);
    struct conform_fixture *b = conform_fixture_open(url);
    store_close(b->s);
    b->features = counter_features;
    b->n_features = COUNT_OF(counter_features);
    b->s = conform_fixture_handle(b);
    counter_tables(b->s, b->engine);
    counter_seen = (struct counter_seen){ 0 };
    return b;
}

#define COUNTING(name, ...)                                                                        \
    static void name##_body(struct conform_fixture *b);                                            \
    TEST(name, __VA_ARGS__)                                                                        \
    {                                                                                              \
        AUTO(conform_fixture_end) struct conform_fixture *b = counting(param, "");                 \
        name##_body(b);                                                                            \
    }                                                                                              \
    static void name##_body(struct conform_fixture *b)

static struct counter_sums sums(struct conform_fixture *b)
{
    struct counter_sums out = { 0 };
    OK(store_look(b->s, LOOK_SNAPSHOT, counter_look, &out, &b->err), &b->err);
    return out;
}

static struct counter_op counted(const char *id, const char *name, int64_t by)
{
    return (struct counter_op){ .id = id ? bytes_of(id) : BYTES_NONE,
                                .name = bytes_of(name),
                                .by = by };
}

static struct call_spec watched(const char *id)
{
    struct call_spec s = plan(id);
    s.watch = WATCH_END;
    return s;
}

/* What the feature was told of a call: "from-to", oldest first. */
static const char *told(struct conform_fixture *b, const char *id)
{
    static char sql[300];
    snprintf(sql, sizeof sql,
             "SELECT was * 10 + state FROM counter_moved WHERE id = '%s' ORDER BY 1", id);
    (void)b;
    return engine_rows(b->url, sql);
}

/* ---- One operation --------------------------------------------------------------------------- */

CASE(memory_keeps_calls_only)
{
    struct counter_op q = counted("one", "a", 1);
    struct op count = counter_count(&q), wake = { .kind = OP_WAKE };
    struct counter_sums s;
    int64_t seq = accept_one(b, "x");
    wake.wake = (struct wake){ &seq, 1 };
    if (b->engine->kind != ENGINE_MEM)
        skip("%s keeps more", b->engine->name);
    EQ_STATUS(one(b, &count), PAWL_INVALID, &count.err);
    EQ_STR(count.err.text, "mem: keeps calls only");
    EQ_STATUS(one(b, &wake), PAWL_INVALID, &wake.err);
    EQ_STR(wake.err.text, "mem: keeps calls only");
    EQ_STATUS(store_look(b->s, LOOK_SNAPSHOT, counter_look, &s, &b->err), PAWL_INVALID, &b->err);
    EQ_STR(b->err.text, "mem: keeps calls only");
    struct feature_op with = count.feature;
    struct finish_item f = item("x", END_RESULT);
    f.with = &with;
    struct op end = finish_op(claim_n(b, 1), &f, 1);
    EQ_STATUS(one(b, &end), PAWL_INVALID, &end.err);
    EQ_STR(end.err.text, "mem: keeps calls only");
    STATE_IS(b, "x", PAWL_PROCESSING);
}

COUNTING(an_operation_counts_once)
{
    struct counter_op q = counted("one", "a", 5), again = q, other = counted("two", "a", 7);
    struct op op = counter_count(&q), repeat = counter_count(&again), more = counter_count(&other);
    OK(one(b, &op), &op.err);
    FALSE(op.feature.repeated);
    EQ_INT(q.value, 5);
    OK(one(b, &repeat), &repeat.err);
    TRUE(repeat.feature.repeated);
    EQ_INT(again.value, 5);
    OK(one(b, &more), &more.err);
    EQ_INT(other.value, 12);
    struct counter_sums s = sums(b);
    EQ_INT(s.counters, 1);
    EQ_INT(s.total, 12);
    EQ_INT(s.ops, 2);
}

COUNTING(a_refused_operation_does_nothing)
{
    struct counter_op no = counted("one", "a", 5), yes = counted("two", "b", 1);
    no.refuse = true;
    struct op refused = counter_count(&no), op = counter_count(&yes);
    TOGETHER(b, &refused, &op);
    EQ_STATUS(refused.status, PAWL_INVALID, &refused.err);
    EQ_STR(refused.err.text, "counter \"a\": refused");
    OK(op.status, &op.err);
    EQ_INT(sums(b).ops, 1);
    EQ_INT(sums(b).total, 1);
}

COUNTING(a_group_is_loaded_once)
{
    enum { N = 60 };
    static struct counter_op q[N];
    static struct op ops[N], *v[N];
    struct op accept = accept_op(b, plan("x"));
    for (int i = 0; i < N; i++) {
        q[i] = counted(arena_printf(&b->a, "op%d", i), arena_printf(&b->a, "c%d", i % 7), 1);
        ops[i] = counter_count(&q[i]);
        v[i] = &ops[i];
    }
    v[N / 2] = &accept; /* another kind between them */
    commit(b, v, N);
    EQ_INT(counter_seen.loads, 1);
    EQ_INT(counter_seen.loaded, N - 1);
    EQ_INT(counter_seen.applied, N - 1);
    struct counter_sums s = sums(b);
    EQ_INT(s.counters, 7);
    EQ_INT(s.total, N - 1);
    EQ_INT(s.ops, N - 1);
    STATE_IS(b, "x", PAWL_PENDING);
}

struct looking {
    struct conform_fixture *b;
    struct counter_sums before, after;
};

/* Read, let another handle commit, and read again. */
static enum pawl_status look_twice(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct looking *k = ctx;
    struct counter_op q = counted("2", "b", 10);
    struct op op = counter_count(&q);
    enum pawl_status st = counter_look(d, &k->before, err);
    OK(one(k->b, &op), &op.err);
    GT_INT(feature_now(d), 0);
    return st == PAWL_OK ? counter_look(d, &k->after, err) : st;
}

COUNTING(a_look_sees_one_moment)
{
    AUTO(store_end) struct store *reader = conform_fixture_handle(b);
    struct counter_op q = counted("1", "a", 5);
    struct op op = counter_count(&q);
    struct looking k = { .b = b };
    OK(one(b, &op), &op.err);
    OK(store_look(reader, LOOK_SNAPSHOT, look_twice, &k, &b->err), &b->err);
    EQ_INT(k.before.total, 5);
    EQ_INT(k.after.total, 5);
    EQ_INT(k.after.ops, 1);
    EQ_INT(sums(b).total, 15);
}

static enum pawl_status look_fails(struct ledger *d, void *ctx, struct pawl_err *err)
{
    (void)d, (void)ctx;
    return err_set(err, PAWL_NOT_FOUND, "no counter \"x\"");
}

COUNTING(a_look_returns_what_its_function_returns)
{
    EQ_STATUS(store_look(b->s, LOOK_SNAPSHOT, look_fails, NULL, &b->err), PAWL_NOT_FOUND, &b->err);
    EQ_STR(b->err.text, "no counter \"x\"");
    accept_one(b, "x"); /* the handle can be used */
}

/* ---- The fence ------------------------------------------------------------------------------- */

static enum pawl_status fenced(struct conform_fixture *b, struct counter_op q, struct token token,
                               int64_t seq)
{
    struct op op = counter_fenced(&q, token, seq);
    return one(b, &op);
}

COUNTING(the_fence_is_the_lease_and_the_call)
{
    int64_t x = accept_one(b, "x"), y = accept_one(b, "y"), z = accept_one(b, "z");
    struct token t = claim_for(b, 2, 30 * SEC_US), wrong = t;
    wrong.b[0] ^= 1;
    OK(fenced(b, counted("1", "a", 1), t, x), NULL);
    EQ_STATUS(fenced(b, counted("2", "a", 1), wrong, x), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(fenced(b, counted("3", "a", 1), t, z), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(fenced(b, counted("4", "a", 1), t, 999), PAWL_LOST_LEASE, NULL);
    finish_ok(b, t, "x", "1");
    EQ_STATUS(fenced(b, counted("5", "a", 1), t, x), PAWL_LOST_LEASE, NULL);
    OK(fenced(b, counted("6", "a", 1), t, y), NULL);
    advance(b, 31 * SEC_US); /* over, and nobody has taken it back */
    EQ_STATUS(fenced(b, counted("7", "a", 1), t, y), PAWL_LOST_LEASE, NULL);
    sweep(b);
    EQ_STATUS(fenced(b, counted("8", "a", 1), t, y), PAWL_LOST_LEASE, NULL);
    HAS_STR(b->op.err.text, "does not hold call");
    EQ_INT(sums(b).total, 2);
}

/* A second handle does not remember the lease: it reads which of its calls have ended. */
COUNTING(the_fence_holds_on_a_handle_that_does_not_remember)
{
    int64_t x = accept_one(b, "x"), y = accept_one(b, "y");
    struct token t = claim_n(b, 2);
    AUTO(store_end) struct store *first = b->s;
    b->s = conform_fixture_handle(b);
    OK(fenced(b, counted("1", "a", 1), t, x), NULL);
    finish_ok(b, t, "x", "1");
    EQ_STATUS(fenced(b, counted("2", "a", 1), t, x), PAWL_LOST_LEASE, NULL);
    OK(fenced(b, counted("3", "a", 1), t, y), NULL);
    struct store *second = b->s;
    b->s = first;
    first = second;
    EQ_STATUS(fenced(b, counted("4", "a", 1), t, x), PAWL_LOST_LEASE, NULL);
    OK(fenced(b, counted("5", "a", 1), t, y), NULL);
    finish_ok(b, t, "y", "1");
    EQ_INT(sums(b).total, 3);
}

COUNTING(the_fence_sees_what_the_group_did_before)
{
    int64_t x = accept_one(b, "x");
    struct token t = claim_n(b, 1);
    struct counter_op q = counted("1", "a", 1), late = counted("2", "a", 1);
    struct op before = counter_fenced(&q, t, x), after = counter_fenced(&late, t, x);
    struct finish_item f = item("x", END_RESULT);
    struct op end = finish_op(t, &f, 1);
    TOGETHER(b, &before, &end, &after);
    OK(before.status, &before.err);
    OK(end.status, &end.err);
    EQ_STATUS(after.status, PAWL_LOST_LEASE, &after.err);
    EQ_INT(sums(b).total, 1);
}

/* ---- With an item ---------------------------------------------------------------------------- */

COUNTING(with_is_stored_with_its_item)
{
    accept_n(b, "x", 3);
    struct token t = claim_n(b, 3);
    struct counter_op q[] = { counted("0", "a", 1), counted("1", "a", 10), counted("2", "b", 100) };
    struct feature_op with[3];
    struct finish_item v[] = { item("x0", END_RESULT), item("x1", END_ERROR),
                               item("x2", END_RESULT) };
    for (size_t i = 0; i < 3; i++) {
        with[i] = (struct feature_op){ .of = &counter_feature, .ctx = &q[i] };
        v[i].with = &with[i];
    }
    v[1].error = BYTES("boom");
    struct op op = finish_op(t, v, 3);
    OK(one(b, &op), &op.err);
    EQ_INT(counter_seen.loads, 1);
    EQ_INT(v[0].state, PAWL_COMPLETED);
    EQ_INT(v[1].state, PAWL_PENDING);
    EQ_INT(q[1].value, 11);
    EQ_INT(sums(b).total, 111);
    /* A repeat is answered, and does not count again. */
    for (size_t i = 0; i < 3; i++)
        q[i].id = BYTES_NONE;
    OK(one(b, &op), &op.err);
    EQ_INT(sums(b).total, 111);
    /* Neither does a finish that is refused. */
    t.b[0] ^= 1;
    op = finish_op(t, v, 1);
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, NULL);
    EQ_INT(sums(b).total, 111);
}

COUNTING(a_with_that_is_refused_fails_its_item)
{
    accept_one(b, "x");
    accept_one(b, "y");
    struct token t = claim_n(b, 2);
    struct counter_op no = counted("0", "a", 1), yes = counted("1", "a", 10);
    no.refuse = true;
    struct feature_op with[] = { { .of = &counter_feature, .ctx = &no },
                                 { .of = &counter_feature, .ctx = &yes } };
    struct call_spec send[] = { settled(b, plan("sent")) };
    struct finish_item v[] = { item("x", END_RESULT), item("y", END_RESULT) };
    v[0].with = &with[0];
    v[0].send = send;
    v[0].n_send = 1;
    v[1].with = &with[1];
    struct op op = finish_op(t, v, 2);
    OK(one(b, &op), &op.err);
    EQ_INT(v[0].state, PAWL_PENDING);
    EQ_TEXT(v[0].error_out, "counter \"a\": refused");
    EQ_INT(v[0].counts.attempts, 1);
    EQ_INT(v[0].run_at_us, now(b) + 1 * SEC_US);
    EQ_INT(v[1].state, PAWL_COMPLETED);
    EQ_STATUS(found(b, "sent"), PAWL_NOT_FOUND, NULL);
    EQ_INT(sums(b).total, 10);
    EQ_INT(attempts_of(b, "x").n, 1);
}

/* ---- A handler's SQL ------------------------------------------------------------------------- */

struct sql_step {
    struct conform_fixture *b;
    bool apply;
    enum pawl_status status;
};

static bool step_sql(void *ctx, struct sql_tx *tx)
{
    struct sql_step *s = ctx;
    struct pawl_rows rows;
    struct sql_query q = { .sql = "INSERT INTO app VALUES (1)", .deadline_us = INT64_MAX };
    s->status = store_sql(tx, &s->b->a, &q, &rows, &s->b->err);
    return s->apply;
}

/* Run the SQL, and end it with this operation of the feature. */
static struct op stepped(struct conform_fixture *b, struct counter_op *q, struct token t,
                         int64_t seq, bool apply)
{
    struct sql_step s = { .b = b, .apply = apply };
    struct op end = counter_fenced(q, t, seq);
    struct op op = { .kind = OP_HANDLER,
                     .a = &b->a,
                     .handler = { .run = step_sql, .ctx = &s, .end = &end } };
    store_commit(b->s, &(struct op *){ &op }, 1);
    OK(s.status, &b->err);
    op.handler.end = NULL;
    return op;
}

static int64_t in_app(struct conform_fixture *b)
{
    return engine_int(b->url, "SELECT count(*) FROM app");
}

COUNTING(a_step_commits_with_its_sql)
{
    struct op make = { .kind = OP_SCRIPT, .script.sql = BYTES("CREATE TABLE app (n INTEGER)") };
    int64_t x = accept_one(b, "x");
    struct token t = claim_n(b, 1), wrong = t;
    wrong.b[0] ^= 1;
    OK(one(b, &make), &make.err);
    struct counter_op q = counted("1", "a", 1), again = counted("1", "a", 1),
                      other = counted("2", "a", 1), stale = counted("3", "a", 1),
                      no = counted("4", "a", 1);
    struct op op = stepped(b, &q, t, x, true);
    OK(op.status, &op.err);
    TRUE(op.handler.committed_sql);
    EQ_INT(in_app(b), 1);
    /* The step was stored before: what the SQL did now is undone, and the stored answer is given.
     */
    op = stepped(b, &again, t, x, true);
    OK(op.status, &op.err);
    FALSE(op.handler.committed_sql);
    EQ_INT(again.value, 1);
    EQ_INT(in_app(b), 1);
    /* The handler wants the step without its SQL. */
    op = stepped(b, &other, t, x, false);
    OK(op.status, &op.err);
    FALSE(op.handler.committed_sql);
    EQ_INT(other.value, 2);
    EQ_INT(in_app(b), 1);
    /* The lease is lost, or the feature refuses: neither is stored. */
    op = stepped(b, &stale, wrong, x, true);
    EQ_STATUS(op.status, PAWL_LOST_LEASE, &op.err);
    FALSE(op.handler.committed_sql);
    no.refuse = true;
    op = stepped(b, &no, t, x, true);
    EQ_STATUS(op.status, PAWL_INVALID, &op.err);
    EQ_INT(in_app(b), 1);
    EQ_INT(sums(b).total, 2);
    STATE_IS(b, "x", PAWL_PROCESSING);
}

/* ---- Nested operations ----------------------------------------------------------------------- */

enum { MANY = 1000 };

static struct op accept_thousand(struct conform_fixture *b, const char *prefix, unsigned watch)
{
    struct call_spec *v = arena_zalloc(&b->a, MANY, sizeof *v);
    for (int i = 0; i < MANY; i++) {
        v[i] = plan(arena_printf(&b->a, "%s%d", prefix, i));
        v[i].watch = watch;
        if (i % 10 == 0)
            v[i].key = bytes_of(arena_printf(&b->a, "k%d", i % 70));
        v[i] = settled(b, v[i]);
    }
    return (struct op){ .kind = OP_ACCEPT, .accept = { .v = v, .n = MANY } };
}

COUNTING(a_thousand_calls_are_accepted_in_an_operation)
{
    struct counter_op q = counted("1", "a", 1), again = counted("2", "a", 1);
    struct op nested = accept_thousand(b, "x", WATCH_END),
              known = accept_thousand(b, "x", WATCH_END);
    q.nested = &nested;
    again.nested = &known;
    q.n_nested = again.n_nested = 1;
    nested.a = known.a = &b->a;
    struct op op = counter_count(&q), repeat = counter_count(&again);
    OK(one(b, &op), &op.err);
    TRUE(op.brings);
    for (int i = 0; i < MANY; i++) {
        OK(nested.accept.out[i].status, NULL);
        FALSE(nested.accept.out[i].duplicate);
    }
    OK(one(b, &repeat), &repeat.err);
    FALSE(repeat.brings);
    for (int i = 0; i < MANY; i++)
        TRUE(known.accept.out[i].duplicate);
    EQ_INT(sums(b).total, 2);
    struct claim c = claim_as(b, want(b, CLAIM_MAX));
    EQ_INT(c.n, 900 + 7); /* one of each key, and all without a key */
}

COUNTING(what_is_nested_is_seen_by_the_group)
{
    accept_one(b, "old");
    struct op nested[] = { accept_op(b, plan("new")), by_id_op(OP_CANCEL, "old"),
                           by_id_op(OP_CANCEL, "nobody") };
    struct counter_op q = counted("1", "a", 1);
    q.nested = nested;
    q.n_nested = 3;
    struct op op = counter_count(&q), claim = claim_op(want(b, 5));
    TOGETHER(b, &op, &claim);
    OK(op.status, &op.err);
    EQ_STATUS(nested[2].status, PAWL_NOT_FOUND, &nested[2].err);
    EQ_INT(op.n_ended, 1); /* for those who wait for it */
    EQ_TEXT(op.ended[0], "old");
    EQ_INT(claim.claim.n, 1);
    EQ_TEXT(claim.claim.calls[0].spec.id, "new");
    STATE_IS(b, "old", PAWL_CANCELLED);
}

COUNTING(an_attempt_ends_in_an_operation)
{
    int64_t x = accept_one(b, "x");
    struct token t = claim_n(b, 1);
    struct finish_item f = item("x", END_LATER);
    struct op nested = finish_op(t, &f, 1);
    struct counter_op q = counted("1", "a", 1);
    f.retry_in_us = 60 * SEC_US;
    q.nested = &nested;
    q.n_nested = 1;
    struct op op = counter_fenced(&q, t, x);
    OK(one(b, &op), &op.err);
    OK(nested.status, &nested.err);
    STATE_IS(b, "x", PAWL_PENDING);
    EQ_STATUS(fenced(b, counted("2", "a", 1), t, x), PAWL_LOST_LEASE, NULL);
}

/* ---- Calls that moved ------------------------------------------------------------------------ */

COUNTING(a_feature_is_told_of_watched_calls)
{
    struct call_spec s = watched("retried");
    accept_spec(b, s);
    accept_one(b, "unwatched");
    s = watched("expires");
    s.expires_in_us = 1;
    s.run_at_us = now(b) + SEC_US;
    accept_spec(b, s);
    accept_spec(b, watched("cancelled"));
    OK(by_id(b, OP_CANCEL, "cancelled"), NULL);
    EQ_STR(told(b, "cancelled"), "16"); /* pending, cancelled */
    struct token t = claim_for(b, 2, 30 * SEC_US);
    EQ_STR(told(b, "retried"), "");
    finish_error(b, t, "retried", "boom");
    finish_ok(b, t, "unwatched", "1");
    EQ_STR(told(b, "retried"), "21");
    EQ_STR(told(b, "unwatched"), "");
    sweep(b);
    advance(b, SEC_US);
    sweep(b);
    EQ_STR(told(b, "expires"), "17");
    t = claim_for(b, 1, SEC_US);
    advance(b, 2 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    EQ_STR(told(b, "retried"), "21\n21");
    finish_ok(b, claim_n(b, 1), "retried", "1");
    EQ_STR(told(b, "retried"), "21\n21\n23");
    EQ_INT(counter_seen.moved, 5);
}

/* Ways in which an attempt ends without its owner: the node goes, its leases are taken back, a call
 * before it in its run does not complete. */
COUNTING(a_feature_is_told_of_attempts_that_others_end)
{
    struct call_spec v[] = { keyed("a", "k"), keyed("b", "k"), plan("x") };
    struct op requeue = { .kind = OP_REQUEUE, .requeue.max = 10 };
    struct finish_item f = item("a", END_ERROR);
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        v[i].watch = WATCH_END;
        v[i].timeout_us = 10 * SEC_US;
        v[i].max_attempts = 1;
        accept_spec(b, v[i]);
    }
    EQ_INT(claim_run(b, 5, 5).n, 3);
    OK(node(b, OP_LEAVE, "n1", "b1"), NULL);
    EQ_STR(told(b, "a"), "21");
    EQ_STR(told(b, "b"), "21");
    EQ_STR(told(b, "x"), "21");
    OK(node(b, OP_JOIN, "n1", "b2"), NULL);
    struct claim q = want(b, 5);
    q.boot = BYTES("b2");
    q.run_max = 5;
    q = claim_as(b, q);
    EQ_INT(q.n, 3);
    f.error = BYTES("broke");
    OK(finish_item(b, q.token, f), &b->err); /* and b, behind it, is handed back */
    EQ_STR(told(b, "a"), "21\n24");
    EQ_STR(told(b, "b"), "21\n21");
    requeue.requeue.claimed_before_us = now(b) + 1;
    OK(one(b, &requeue), &requeue.err);
    EQ_STR(told(b, "x"), "21\n21");
}

COUNTING(a_feature_is_told_of_timeouts_that_an_extend_finds)
{
    struct call_spec s = watched("short");
    s.timeout_us = 10 * SEC_US;
    s.max_attempts = 1;
    accept_spec(b, s);
    s.id = BYTES("long");
    s.timeout_us = 600 * SEC_US;
    accept_spec(b, s);
    struct token t = claim_for(b, 2, 900 * SEC_US);
    advance(b, 11 * SEC_US);
    struct op extend = { .kind = OP_EXTEND, .extend = { .token = t, .lease_us = 60 * SEC_US } };
    OK(one(b, &extend), &extend.err);
    EQ_STR(told(b, "short"), "24");
    EQ_STR(told(b, "long"), "");
}

/* The lease is empty then, so the extend is refused; what the feature does is stored all the same,
 * and told in its answer, not in that of another refused operation. */
COUNTING(a_feature_is_told_by_an_extend_that_is_refused)
{
    struct call_spec s = watched("next:x");
    s.timeout_us = 10 * SEC_US;
    s.max_attempts = 1;
    accept_one(b, "other");
    struct token gone = claim_n(b, 1);
    finish_ok(b, gone, "other", "1");
    accept_spec(b, s);
    s = plan("long");
    s.timeout_us = 600 * SEC_US;
    accept_spec(b, s);
    struct token t = claim_for(b, 2, 900 * SEC_US);
    finish_ok(b, t, "long", "1");
    advance(b, 11 * SEC_US);
    struct op refused = { .kind = OP_EXTEND, .extend = { .token = gone, .lease_us = SEC_US } };
    struct op extend = { .kind = OP_EXTEND, .extend = { .token = t, .lease_us = 60 * SEC_US } };
    TOGETHER(b, &refused, &extend);
    EQ_STATUS(refused.status, PAWL_LOST_LEASE, &refused.err);
    FALSE(refused.brings);
    EQ_STATUS(extend.status, PAWL_LOST_LEASE, &extend.err);
    TRUE(extend.brings);
    EQ_INT(extend.n_ended, 1);
    EQ_STR(told(b, "next:x"), "24");
    STATE_IS(b, "after:x", PAWL_PENDING);
}

/* Pending calls of an object that is deleted, which no claim has read. */
COUNTING(a_feature_is_told_of_calls_that_go_with_their_object)
{
    const char *letters[] = { "a", "b", "c" };
    for (size_t i = 0; i < COUNT_OF(letters); i++) {
        struct call_spec s = keyed(letters[i], "k");
        s.watch = i == 1 ? 0 : WATCH_END;
        if (i == 2)
            s.run_at_us = now(b) + SEC_US; /* delayed */
        accept_spec(b, s);
    }
    object_put(b, "t", "k", "1");
    OK(object(b,
              (struct object_op){
                  .type = BYTES("t"), .key = BYTES("k"), .how = STATE_DELETE, .cancel = true }),
       NULL);
    EQ_INT(b->op.object.cancelled, 3);
    EQ_STR(told(b, "a"), "16");
    EQ_STR(told(b, "b"), "");
    EQ_STR(told(b, "c"), "16");
}

/* A claim ends those that have expired, in `ready` and behind the head of a key. */
COUNTING(a_feature_is_told_of_what_expires_in_a_claim)
{
    struct call_spec v[] = { keyed("a", "k"), keyed("b", "k"), plan("x") };
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        v[i].watch = WATCH_END;
        v[i].expires_in_us = i ? SEC_US : 0;
        accept_spec(b, v[i]);
    }
    accept_spec(b, keyed("c", "k"));
    advance(b, 2 * SEC_US);
    struct claim q = claim_run(b, 5, 5);
    EQ_STR(ids_of(b, &q), "a c");
    EQ_STR(told(b, "b"), "17");
    EQ_STR(told(b, "x"), "17");
    EQ_STR(told(b, "a"), "");
}

COUNTING(what_features_do_is_claimed_in_the_same_group)
{
    accept_spec(b, watched("next:x"));
    struct token t = claim_n(b, 1);
    struct finish_item f = item("next:x", END_RESULT);
    struct op end = finish_op(t, &f, 1), claim = claim_op(want(b, 5));
    TOGETHER(b, &end, &claim);
    OK(end.status, &end.err);
    TRUE(end.brings);
    EQ_INT(claim.claim.n, 1);
    EQ_TEXT(claim.claim.calls[0].spec.id, "after:x");
}

/* A chain of n calls, each of which is cancelled when the one before it has ended. */
static const char *chain(struct conform_fixture *b, int n)
{
    const char *id = "end";
    accept_spec(b, watched(id));
    for (int i = 1; i < n; i++) {
        id = arena_printf(&b->a, "%d>%s", i, id);
        accept_spec(b, watched(id));
    }
    return id;
}

COUNTING(what_moves_moves_others)
{
    const char *first = chain(b, 8); /* as many as rounds */
    struct op op = by_id_op(OP_CANCEL, first);
    OK(one(b, &op), &op.err);
    EQ_INT(op.n_ended, 7);
    EQ_INT(counter_seen.told, 8);
    EQ_INT(counter_seen.moved, 8);
    STATE_IS(b, "end", PAWL_CANCELLED);
}

COUNTING(a_chain_without_an_end_is_a_bug)
{
    const char *first = chain(b, 9);
    store_close(TAKE(b->s));
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        b->s = conform_fixture_handle(b);
        struct op op = by_id_op(OP_CANCEL, first);
        one(b, &op);
        _exit(0);
    }
    int status;
    EQ_INT(waitpid(pid, &status, 0), pid);
    TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    b->s = conform_fixture_handle(b);
    EQ_INT(state_of(b, first), PAWL_PENDING);
    STATE_IS(b, "end", PAWL_PENDING);
}

COUNTING(gc_tells_which_calls_are_gone)
{
    struct call_spec s = watched("short");
    s.keep_us = 10 * SEC_US;
    accept_spec(b, s);
    accept_spec(b, watched("long"));
    OK(by_id(b, OP_CANCEL, "short"), NULL);
    OK(by_id(b, OP_CANCEL, "long"), NULL);
    advance(b, 11 * SEC_US);
    struct gc g = gc(b);
    EQ_INT(g.removed, 1);
    EQ_INT(counter_seen.forgotten, 1);
    EQ_STR(told(b, "short"), "");
    EQ_STR(told(b, "long"), "16");
    advance(b, RETENTION_US);
    EQ_INT(gc(b).removed, 1);
    EQ_INT(counter_seen.forgotten, 2);
    EQ_STR(told(b, "long"), "");
}

/* What is told before gc in its group must not be lost when gc drops what the group remembers. */
COUNTING(gc_in_a_group_with_others)
{
    struct call_spec s = watched("gone");
    s.keep_us = 1;
    accept_spec(b, s);
    accept_spec(b, watched("next:x"));
    OK(by_id(b, OP_CANCEL, "gone"), NULL);
    advance(b, SEC_US);
    EQ_INT(gc(b).removed, 1);
    struct counter_op q = counted("1", "a", 1), more = counted("2", "a", 1);
    struct op first = counter_count(&q), cancel = by_id_op(OP_CANCEL, "next:x"),
              collect = { .kind = OP_GC, .gc.max = 100 }, last = counter_count(&more);
    advance(b, REMEMBER_US + SEC_US);
    TOGETHER(b, &first, &cancel, &collect, &last);
    EQ_INT(collect.gc.forgotten, 1);
    EQ_STR(told(b, "next:x"), "16");
    STATE_IS(b, "after:x", PAWL_PENDING);
    EQ_INT(more.value, 2);
    EQ_INT(sums(b).total, 2);
}

/* ---- Repeats --------------------------------------------------------------------------------- */

TEST(a_lost_group_counts_once)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = counting(param, "fault+");
    accept_spec(b, watched("next:x"));
    accept_one(b, "y");
    struct token t = claim_n(b, 2);
    struct counter_op q = counted("1", "a", 1), with = counted("2", "a", 10);
    struct op nested = accept_thousand(b, "n", 0), op = counter_count(&q);
    struct feature_op lazy = { .of = &counter_feature, .ctx = &with };
    struct finish_item v[] = { item("next:x", END_RESULT), item("y", END_RESULT) };
    struct op end = finish_op(t, v, 2);
    q.nested = &nested;
    q.n_nested = 1;
    v[1].with = &lazy;
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
    TOGETHER(b, &op, &end);
    EQ_INT(store_fault_count(), 2);
    OK(op.status, &op.err);
    TRUE(op.feature.repeated);
    EQ_INT(q.value, 1);
    EQ_INT(v[1].state, PAWL_COMPLETED);
    EQ_INT(sums(b).total, 11);
    EQ_STR(told(b, "next:x"), "23");
    STATE_IS(b, "after:x", PAWL_PENDING);
    STATE_IS(b, "n999", PAWL_PENDING);
    /* Before: nothing was stored, and nothing is repeated. */
    struct counter_op other = counted("3", "a", 100);
    struct op late = counter_count(&other);
    store_fault(1, FAULT_BEFORE, PAWL_BUSY);
    OK(one(b, &late), &late.err);
    FALSE(late.feature.repeated);
    EQ_INT(sums(b).total, 111);
    store_fault(1, FAULT_BEFORE, PAWL_BUSY);
    struct counter_sums s;
    EQ_STATUS(store_look(b->s, LOOK_SNAPSHOT, counter_look, &s, &b->err), PAWL_BUSY, &b->err);
    store_fault(0, FAULT_BEFORE, PAWL_OK);
}

/* A handler is not run again by the store: its caller asks again. Then the step is there, and what
 * the SQL did the second time is undone. */
TEST(a_step_with_sql_whose_answer_is_lost_is_stored_once)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = counting(param, "fault+");
    struct op make = { .kind = OP_SCRIPT, .script.sql = BYTES("CREATE TABLE app (n INTEGER)") };
    int64_t x = accept_one(b, "x");
    struct token t = claim_n(b, 1);
    OK(one(b, &make), &make.err);
    struct counter_op q = counted("1", "a", 1), again = counted("1", "a", 1),
                      other = counted("2", "a", 10);
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
    struct op op = stepped(b, &q, t, x, true);
    EQ_STATUS(op.status, PAWL_UNKNOWN, &op.err);
    EQ_INT(store_fault_count(), 1);
    EQ_INT(in_app(b), 1);
    EQ_INT(sums(b).ops, 1);
    op = stepped(b, &again, t, x, true);
    OK(op.status, &op.err);
    FALSE(op.handler.committed_sql);
    EQ_INT(again.value, 1);
    EQ_INT(in_app(b), 1);
    EQ_INT(sums(b).total, 1);
    /* Before: neither the SQL nor the step was stored. */
    store_fault(1, FAULT_BEFORE, PAWL_BUSY);
    op = stepped(b, &other, t, x, true);
    EQ_STATUS(op.status, PAWL_BUSY, &op.err);
    EQ_INT(in_app(b), 1);
    EQ_INT(sums(b).ops, 1);
    op = stepped(b, &other, t, x, true);
    OK(op.status, &op.err);
    TRUE(op.handler.committed_sql);
    EQ_INT(in_app(b), 2);
    EQ_INT(sums(b).total, 11);
    STATE_IS(b, "x", PAWL_PROCESSING);
    store_fault(0, FAULT_BEFORE, PAWL_OK);
}

/* ---- Beside nodes of an older version -------------------------------------------------------- */

/* An older program reads a watched call as damage. */
COUNTING(watched_calls_wait_for_migrate_finish)
{
    struct call_spec s = settled(b, watched("a"));
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = &s, .n = 1 } };
    struct schema has;
    engine_rows(b->url, "UPDATE pawl_migration SET finished = 0 WHERE number = 9");
    EQ_STATUS(one(b, &op), PAWL_STATE, &op.err);
    EQ_STR(op.err.text, "a call that a feature watches needs every node to run this version: run "
                        "pawl migrate finish");
    OK(store_schema(b->s, &has, &b->err), &b->err);
    TRUE(has.finish_due);
    OK(store_migrate(b->s, true, &b->err), &b->err);
    OK(one(b, &op), &op.err);
    OK(store_schema(b->s, &has, &b->err), &b->err);
    FALSE(has.finish_due);
    GE_INT(has.min_version, 9);
    finish_ok(b, claim_n(b, 1), "a", "1");
    EQ_STR(told(b, "a"), "23");
}

/* ---- Waking ---------------------------------------------------------------------------------- */

static struct op wake(struct conform_fixture *b, const int64_t *seqs, size_t n)
{
    struct op op = { .kind = OP_WAKE, .wake = { seqs, n } };
    OK(one(b, &op), &op.err);
    return op;
}

static int64_t later(struct conform_fixture *b, struct call_spec s)
{
    s.run_at_us = now(b) + 60 * SEC_US;
    return accept_spec(b, s).call.seq;
}

COUNTING(wake_makes_pending_calls_due)
{
    int64_t v[] = { later(b, plan("a")), later(b, keyed("k1", "k")), accept_one(b, "due"), 999,
                    later(b, plan("b")) };
    EQ_STR(claimable(b, want(b, 10)), "due");
    struct op op = wake(b, v, 2);
    TRUE(op.brings);
    EQ_STR(claimable(b, want(b, 10)), "a k1 due");
    op = wake(b, v, 4); /* nothing is due later any more */
    FALSE(op.brings);
    wake(b, v + 4, 1);
    EQ_STR(claimable(b, want(b, 10)), "a k1 due b");
}

COUNTING(wake_leaves_other_calls_alone)
{
    int64_t v[] = { accept_one(b, "held"), accept_one(b, "ended") };
    struct token t = claim_n(b, 2);
    finish_ok(b, t, "ended", "1");
    FALSE(wake(b, v, 2).brings);
    STATE_IS(b, "held", PAWL_PROCESSING);
    STATE_IS(b, "ended", PAWL_COMPLETED);
    finish_ok(b, t, "held", "1");
}

/* The head of a key stays its head, and those behind it stay behind it. */
COUNTING(wake_keeps_the_order_of_a_key)
{
    line_up(b, "k", "abc");
    struct claim q = claim_run(b, 5, 1);
    int64_t seq = q.calls[0].seq;
    struct finish_item f = item("a", END_LATER);
    f.retry_in_us = 60 * SEC_US;
    OK(finish_item(b, q.token, f), &b->err);
    EQ_STR(claimable(b, want(b, 5)), "");
    TRUE(wake(b, &seq, 1).brings);
    q = claim_run(b, 5, 5);
    EQ_STR(ids_of(b, &q), "a b c");
}

/* In one group with what it wakes, and with the claim that takes it. */
COUNTING(wake_in_an_operation_and_its_group)
{
    int64_t x = later(b, keyed("x", "k"));
    struct op nested[] = { { .kind = OP_WAKE, .wake = { &x, 1 } } };
    struct counter_op q = counted("1", "a", 1);
    q.nested = nested;
    q.n_nested = 1;
    struct op op = counter_count(&q), claim = claim_op(want(b, 5));
    TOGETHER(b, &op, &claim);
    TRUE(op.brings);
    EQ_INT(claim.claim.n, 1);
    EQ_TEXT(claim.claim.calls[0].spec.id, "x");
}
