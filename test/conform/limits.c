/*
 * limits.c - limits: how many calls run at once, and how many begin in a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"
#include "feature/all.h"
#include "feature/limit.h"

RUNS_ON(ENGINES_DURABLE)

/* ---- Helpers --------------------------------------------------------------------------------- */

static void with_features(struct conform_fixture *b)
{
    if (b->features)
        return;
    b->features = features_all(&b->n_features);
    store_close(b->s);
    b->s = conform_fixture_handle(b);
}

static struct op limit_op_of(struct conform_fixture *b, struct limit_op q)
{
    struct limit_op *ctx = arena_zalloc(&b->a, 1, sizeof *ctx);
    TRUE(ctx != NULL);
    *ctx = q;
    with_features(b);
    return (struct op){ .kind = OP_FEATURE, .feature = { .of = &feature_limit, .ctx = ctx } };
}

static struct limit_op put_op(struct conform_fixture *b, const char *name, const char *json)
{
    struct limit *l = arena_zalloc(&b->a, 1, sizeof *l);
    struct json *v;
    TRUE(l != NULL);
    OK(json_parse(&b->a, bytes_of(json), &v, &b->err), &b->err);
    OK(limit_read(&b->a, v, l, &b->err), &b->err);
    return (struct limit_op){ .what = LIMIT_PUT, .name = bytes_of(name), .limit = l };
}

static struct limit_op *limit(struct conform_fixture *b, struct limit_op q)
{
    struct op op = limit_op_of(b, q);
    one(b, &op);
    return op.feature.ctx;
}

static struct limit_op *put(struct conform_fixture *b, const char *name, const char *json)
{
    struct limit_op *q = limit(b, put_op(b, name, json));
    OK(b->op.status, &b->op.err);
    return q;
}

static enum pawl_status removed(struct conform_fixture *b, const char *name)
{
    limit(b, (struct limit_op){ .what = LIMIT_REMOVE, .name = bytes_of(name) });
    return b->op.status;
}

static struct limit_row row(struct conform_fixture *b, const char *name)
{
    struct limit_row out;
    OK(limit_get(b->s, &b->a, bytes_of(name), &out, &b->err), &b->err);
    return out;
}

/* How many rows a limit's slots have, in all. */
static int64_t slots(struct conform_fixture *b)
{
    return engine_int(b->url, "SELECT COUNT(*) FROM pawl_slot");
}

/* Claim what may be taken now, up to `max`. Returns how many. */
static size_t taken(struct conform_fixture *b, int max, struct token *out)
{
    struct claim q = claim_as(b, want(b, max));
    *out = q.token;
    return q.n;
}

/* ---- How many run at once -------------------------------------------------------------------- */

CASE(a_claim_takes_no_more_than_the_limit)
{
    struct token one, two;
    put(b, "three", "{\"type\":\"t\",\"max\":3}");
    accept_n(b, "c", 10);
    EQ_INT(taken(b, 10, &one), 3);
    EQ_INT(row(b, "three").running, 3);
    struct claim q = claim_as(b, want(b, 10));
    EQ_INT(q.n, 0);
    FALSE(q.more); /* nothing is to be had until a call leaves */
    finish_ok(b, one, "c1", "1");
    EQ_INT(row(b, "three").running, 2);
    EQ_INT(taken(b, 10, &two), 1);
    EQ_INT(row(b, "three").running, 3);
    EQ_INT(slots(b), 3);
}

CASE(a_call_that_waits_for_a_limit_says_so)
{
    struct token t;
    put(b, "one", "{\"type\":\"t\",\"max\":1}");
    accept_n(b, "c", 2);
    EQ_INT(get(b, "c1").waiting_for, WAIT_WORKER);
    EQ_INT(taken(b, 10, &t), 1);
    EQ_INT(get(b, "c1").waiting_for, WAIT_LIMIT);
    finish_ok(b, t, "c0", "1");
    EQ_INT(get(b, "c1").waiting_for, WAIT_WORKER);
    put(b, "rate", "{\"type\":\"t\",\"rate\":1,\"per\":10}");
    EQ_INT(taken(b, 10, &t), 1);
    accept_one(b, "d");
    finish_ok(b, t, "c1", "1");
    EQ_INT(get(b, "d").waiting_for, WAIT_LIMIT);
    advance(b, 10 * SEC_US);
    EQ_INT(get(b, "d").waiting_for, WAIT_WORKER);
}

CASE(other_calls_are_not_held_up)
{
    struct token t;
    put(b, "one", "{\"type\":\"t\",\"max\":1}");
    accept_n(b, "c", 5);
    struct call_spec s = plan("other");
    s.type = BYTES("u");
    accept_spec(b, s);
    EQ_INT(taken(b, 10, &t), 2);
    STATE_IS(b, "c0", PAWL_PROCESSING);
    STATE_IS(b, "other", PAWL_PROCESSING);
    STATE_IS(b, "c1", PAWL_PENDING);
}

CASE(an_attempt_that_ends_in_any_way_leaves_its_slot)
{
    static const enum ending how[] = { END_RESULT, END_ERROR, END_REFUSE, END_LATER, END_RELEASE };
    struct token t;
    put(b, "two", "{\"type\":\"t\",\"max\":2}");
    for (size_t i = 0; i < COUNT_OF(how); i++) {
        const char *id = arena_printf(&b->a, "x%zu", i);
        accept_one(b, id);
        EQ_INT(taken(b, 10, &t), 1);
        EQ_INT(row(b, "two").running, 1);
        OK(finish(b, t, id, how[i]), &b->op.err);
        EQ_INT(row(b, "two").running, 0);
        by_id(b, OP_CANCEL, id);
    }
}

CASE(a_lost_lease_leaves_its_slots)
{
    put(b, "two", "{\"type\":\"t\",\"max\":2}");
    accept_n(b, "c", 4);
    claim_for(b, 2, 10 * SEC_US);
    EQ_INT(row(b, "two").running, 2);
    advance(b, 11 * SEC_US);
    sweep(b);
    EQ_INT(row(b, "two").running, 0);
}

CASE(several_limits_must_all_allow_it)
{
    struct token t;
    put(b, "a", "{\"type\":\"t\",\"max\":3}");
    put(b, "b", "{\"queue\":\"default\",\"max\":2}");
    put(b, "c", "{\"queue\":\"other\",\"type\":\"t\",\"max\":1}");
    accept_n(b, "c", 5);
    EQ_INT(taken(b, 10, &t), 2);
    EQ_INT(row(b, "a").running, 2);
    EQ_INT(row(b, "b").running, 2);
    EQ_INT(row(b, "c").running, 0);
    finish_ok(b, t, "c0", "1");
    EQ_INT(row(b, "a").running, 1);
    EQ_INT(row(b, "b").running, 1);
}

/* ---- Changes --------------------------------------------------------------------------------- */

CASE(what_runs_already_counts)
{
    struct token one, two;
    accept_n(b, "c", 6);
    with_features(b);
    EQ_INT(taken(b, 4, &one), 4);
    put(b, "two", "{\"type\":\"t\",\"max\":2}");
    EQ_INT(row(b, "two").running, 4);
    EQ_INT(taken(b, 10, &two), 0);
    finish_ok(b, one, "c0", "1");
    finish_ok(b, one, "c1", "1");
    EQ_INT(row(b, "two").running, 2);
    EQ_INT(slots(b), 2);
    EQ_INT(taken(b, 10, &two), 0);
    finish_ok(b, one, "c2", "1");
    EQ_INT(taken(b, 10, &two), 1);
    EQ_INT(row(b, "two").running, 2);
}

/* Leases of which some calls have ended, and some were handed back. */
CASE(what_has_ended_does_not_count)
{
    struct token one, two;
    accept_n(b, "c", 6);
    with_features(b);
    EQ_INT(taken(b, 3, &one), 3);
    EQ_INT(taken(b, 2, &two), 2);
    finish_ok(b, one, "c0", "1");
    OK(finish(b, two, "c4", END_RELEASE), &b->op.err);
    put(b, "x", "{\"type\":\"t\",\"max\":4}");
    EQ_INT(row(b, "x").running, 3);
    finish_ok(b, one, "c1", "1");
    finish_ok(b, two, "c3", "1");
    EQ_INT(row(b, "x").running, 1);
    EQ_INT(taken(b, 10, &two), 2);
    EQ_INT(row(b, "x").running, 3);
}

CASE(a_lowered_limit_lets_what_runs_end)
{
    struct token one, two;
    put(b, "x", "{\"type\":\"t\",\"max\":5}");
    accept_n(b, "c", 10);
    EQ_INT(taken(b, 4, &one), 4);
    struct limit_op *q = put(b, "x", "{\"type\":\"t\",\"max\":2}");
    FALSE(q->created);
    TRUE(q->changed);
    EQ_INT(slots(b), 4);
    EQ_INT(taken(b, 10, &two), 0);
    finish_ok(b, one, "c3", "1");
    finish_ok(b, one, "c0", "1");
    EQ_INT(slots(b), 2);
    EQ_INT(taken(b, 10, &two), 0);
    finish_ok(b, one, "c1", "1");
    EQ_INT(taken(b, 10, &two), 1);
    EQ_INT(slots(b), 2);
}

CASE(a_raised_limit_has_room_at_once)
{
    struct token t;
    put(b, "x", "{\"type\":\"t\",\"max\":2}");
    accept_n(b, "c", 10);
    EQ_INT(taken(b, 10, &t), 2);
    put(b, "x", "{\"type\":\"t\",\"max\":5}");
    EQ_INT(taken(b, 10, &t), 3);
    put(b, "x", "{\"type\":\"t\",\"max\":1}");
    put(b, "x", "{\"type\":\"t\",\"max\":6}");
    EQ_INT(row(b, "x").running, 5);
    EQ_INT(taken(b, 10, &t), 1);
    EQ_INT(slots(b), 6);
}

CASE(removed_and_made_again_it_counts_what_runs)
{
    struct token one, two;
    put(b, "x", "{\"type\":\"t\",\"max\":3}");
    accept_n(b, "c", 10);
    EQ_INT(taken(b, 10, &one), 3);
    EQ_STATUS(removed(b, "x"), PAWL_OK, &b->op.err);
    EQ_STATUS(removed(b, "x"), PAWL_NOT_FOUND, &b->op.err);
    EQ_INT(slots(b), 3); /* of the calls that run */
    EQ_INT(taken(b, 2, &two), 2);
    put(b, "x", "{\"type\":\"t\",\"max\":3}");
    EQ_INT(row(b, "x").running, 5);
    EQ_INT(taken(b, 10, &two), 0);
    finish_ok(b, one, "c0", "1");
    finish_ok(b, one, "c1", "1");
    finish_ok(b, one, "c2", "1");
    EQ_INT(row(b, "x").running, 2);
    EQ_INT(slots(b), 3);
    EQ_INT(taken(b, 10, &two), 1);
}

CASE(the_same_again_is_no_change)
{
    TRUE(put(b, "x", "{\"type\":\"t\",\"max\":3}")->created);
    const char *before = snapshot(b);
    struct limit_op *q = put(b, "x", "{\"type\":\"t\",\"max\":3}");
    FALSE(q->changed);
    EQ_STR(snapshot(b), before);
}

CASE(other_calls_make_it_another_limit)
{
    struct token t;
    put(b, "x", "{\"type\":\"t\",\"max\":1}");
    accept_n(b, "c", 5);
    EQ_INT(taken(b, 10, &t), 1);
    put(b, "x", "{\"type\":\"u\",\"max\":1}");
    EQ_INT(row(b, "x").running, 0);
    EQ_INT(taken(b, 10, &t), 4);
    EQ_INT(slots(b), 2); /* one is c0's until it ends */
}

/* ---- Rates ----------------------------------------------------------------------------------- */

CASE(a_rate_lets_so_many_begin_in_its_time)
{
    struct token t;
    size_t n = 0;
    put(b, "r", "{\"type\":\"t\",\"rate\":10,\"per\":1,\"burst\":2}");
    accept_n(b, "c", 100);
    EQ_INT(taken(b, 50, &t), 2);
    struct claim q = claim_as(b, want(b, 50));
    EQ_INT(q.n, 0);
    FALSE(q.more);
    EQ_INT(q.next_due_us, now(b) + SEC_US / 10);
    for (int i = 0; i < 40; i++) {
        advance(b, SEC_US / 20);
        n += taken(b, 50, &t);
    }
    EQ_INT(n, 20);
    advance(b, 60 * SEC_US);
    EQ_INT(taken(b, 50, &t), 2);
}

CASE(two_lanes_share_a_rate)
{
    struct token t;
    put(b, "r", "{\"queue\":\"default\",\"rate\":3,\"per\":1}");
    accept_n(b, "c", 5);
    for (int i = 0; i < 5; i++) {
        struct call_spec s = plan(arena_printf(&b->a, "d%d", i));
        s.type = BYTES("u");
        accept_spec(b, s);
    }
    EQ_INT(taken(b, 50, &t), 3);
    EQ_INT(taken(b, 50, &t), 0);
    advance(b, SEC_US);
    EQ_INT(taken(b, 50, &t), 3);
}

/* ---- With other things ----------------------------------------------------------------------- */

CASE(a_key_of_a_limited_type_is_taken_one_by_one)
{
    put(b, "x", "{\"type\":\"t\",\"max\":2}");
    line_up(b, "k", "abc");
    line_up(b, "l", "de");
    struct claim q = claim_run(b, 10, 5);
    EQ_STR(ids_of(b, &q), "a d");
    q = claim_run(b, 10, 5);
    EQ_INT(q.n, 0);
}

CASE(calls_of_the_group_itself_are_limited)
{
    with_features(b);
    put(b, "x", "{\"type\":\"t\",\"max\":1}");
    struct op first = accept_op(b, plan("a")), second = accept_op(b, plan("b"));
    struct op claim = claim_op(want(b, 10));
    TOGETHER(b, &first, &second, &claim);
    struct token t = claim.claim.token;
    if (claim.claim.n == 0) { /* they are asked when they are stored */
        TRUE(claim.claim.more);
        EQ_INT(taken(b, 10, &t), 1);
    }
    EQ_INT(row(b, "x").running, 1);
    finish_ok(b, t, "a", "1");
    EQ_INT(taken(b, 10, &t), 1);
    STATE_IS(b, "b", PAWL_PROCESSING);
}

CASE(a_retry_alone_has_a_slot_too)
{
    struct token t;
    put(b, "x", "{\"type\":\"t\",\"max\":2}");
    accept_n(b, "c", 2);
    claim_for(b, 2, 10 * SEC_US);
    advance(b, 11 * SEC_US);
    sweep(b);
    EQ_INT(taken(b, 10, &t), 1);
    EQ_INT(taken(b, 10, &t), 1);
    EQ_INT(row(b, "x").running, 2);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static void accept_keys(struct conform_fixture *b, const char *prefix, int n)
{
    for (int i = 0; i < n; i++) {
        const char *id = arena_printf(&b->a, "%s%d", prefix, i);
        accept_spec(b, keyed(id, id));
    }
}

CASE(a_prefix_holds_for_keys_that_begin_with_it)
{
    with_features(b);
    put(b, "p", "{\"key_prefix\":\"acme-\",\"max\":2}");
    accept_keys(b, "acme-", 4);
    accept_keys(b, "other-", 3);
    accept_one(b, "none");
    struct claim q = claim_as(b, want(b, 20));
    EQ_STR(ids_of(b, &q), "other-0 other-1 other-2 none acme-0 acme-1");
    EQ_INT(row(b, "p").running, 2);
    finish_ok(b, q.token, "acme-0", "1");
    q = claim_as(b, want(b, 20));
    EQ_STR(ids_of(b, &q), "acme-2");
}

CASE(a_prefix_binds_what_waits_already)
{
    with_features(b);
    accept_keys(b, "acme-", 30);
    accept_keys(b, "other-", 2);
    put(b, "p", "{\"key_prefix\":\"acme-\",\"max\":3}");
    struct claim q = claim_as(b, want(b, 20));
    size_t n = q.n;
    for (int i = 0; i < 5 && q.more; i++, n += q.n)
        q = claim_as(b, want(b, 20));
    EQ_INT(n, 5);
    EQ_INT(row(b, "p").running, 3);
    EQ_INT(queue_of(b, "default").pending, 27);
}

CASE(a_prefix_that_is_gone_binds_nothing)
{
    struct token t;
    with_features(b);
    put(b, "p", "{\"key_prefix\":\"acme-\",\"max\":1}");
    accept_keys(b, "acme-", 10);
    EQ_INT(taken(b, 20, &t), 1);
    OK(removed(b, "p"), &b->op.err);
    size_t n = 1;
    for (int i = 0; i < 5; i++)
        n += taken(b, 20, &t);
    EQ_INT(n, 10);
}

CASE(a_prefix_counts_what_runs_already)
{
    struct token one, two;
    with_features(b);
    accept_keys(b, "acme-", 5);
    accept_keys(b, "other-", 5);
    EQ_INT(taken(b, 8, &one), 8);
    put(b, "p", "{\"key_prefix\":\"acme-\",\"max\":3}");
    EQ_INT(row(b, "p").running, 5);
    EQ_INT(taken(b, 8, &two), 2);
}
