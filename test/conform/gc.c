/*
 * gc.c - retention: what is kept, what is remembered, what is forgotten, and what is never removed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

CASE(a_call_is_kept_remembered_and_forgotten)
{
    ended_call(b, "a", PAWL_COMPLETED);
    int64_t created = get(b, "a").created_us, finished = now(b);
    advance(b, RETENTION_US - 1);
    struct gc g = gc(b);
    EQ_INT(g.removed + g.forgotten, 0);
    EQ_STATUS(found(b, "a"), PAWL_OK, NULL);
    advance(b, 1);
    g = gc(b);
    EQ_INT(g.removed, 1);
    EQ_INT(g.forgotten, 0);
    FALSE(g.more);

    struct bytes id = BYTES("a");
    struct get q = { .ids = &id, .n = 1, .with = WITH_INPUT | WITH_RESULT };
    OK(store_get(b->s, &b->a, &q, &b->err), &b->err);
    EQ_STATUS(q.found[0], PAWL_GONE, NULL);
    EQ_TEXT(q.out[0].spec.id, "a");
    EQ_INT(q.out[0].state, PAWL_COMPLETED);
    EQ_INT(q.out[0].created_us, created);
    EQ_INT(q.out[0].finished_us, finished);
    ABSENT(q.out[0].spec.input.bytes);
    ABSENT(q.out[0].result.bytes);

    advance(b, REMEMBER_US - 1);
    EQ_INT(gc(b).forgotten, 0);
    EQ_STATUS(found(b, "a"), PAWL_GONE, NULL);
    advance(b, 1);
    g = gc(b);
    EQ_INT(g.removed, 0);
    EQ_INT(g.forgotten, 1);
    EQ_STATUS(found(b, "a"), PAWL_NOT_FOUND, NULL);
    EQ_INT(accept_one(b, "a"), 2); /* the id is free again; a number is never reused */
}

CASE(keep_is_the_calls_own)
{
    struct call_spec s = plan("short");
    s.keep_us = 5;
    accept_spec(b, s);
    s = plan("long");
    s.keep_us = 2 * RETENTION_US;
    accept_spec(b, s);
    struct token t = claim_n(b, 2);
    finish_ok(b, t, "short", "1");
    finish_ok(b, t, "long", "1");
    advance(b, 5);
    EQ_INT(gc(b).removed, 1);
    EQ_STATUS(found(b, "short"), PAWL_GONE, NULL);
    advance(b, RETENTION_US);
    EQ_INT(gc(b).removed, 0);
    STATE_IS(b, "long", PAWL_COMPLETED);
}

CASE(what_is_gone_is_refused_not_run)
{
    ended_call(b, "a", PAWL_FAILED);
    struct call was = get(b, "a");
    advance(b, RETENTION_US);
    gc(b);
    struct call_spec s = plan("a");
    struct accepted r = accept_spec(b, s);
    EQ_STATUS(r.status, PAWL_GONE, NULL);
    FALSE(r.duplicate);
    EQ_TEXT(r.call.spec.id, "a");
    EQ_INT(r.call.state, PAWL_FAILED);
    EQ_INT(r.call.created_us, was.created_us);
    EQ_INT(r.call.finished_us, was.finished_us);
    s.input.bytes = BYTES("2");
    r = accept_spec(b, s);
    EQ_STATUS(r.status, PAWL_CONFLICT, NULL); /* the id is still bound to its content */
    EQ_TEXT(r.call.spec.id, "a");
    EQ_INT(r.call.state, PAWL_FAILED);
    EQ_INT(claim_as(b, want(b, 1)).n, 0);
}

CASE(an_atomic_batch_meets_what_is_gone)
{
    ended_call(b, "a", PAWL_COMPLETED);
    advance(b, RETENTION_US);
    gc(b);
    struct call_spec v[] = { settled(b, plan("b")), settled(b, plan("a")) };
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = v, .n = 2, .atomic = true } };
    EQ_STATUS(one(b, &op), PAWL_GONE, &op.err);
    EQ_INT(op.accept.refused, 1);
    EQ_STATUS(found(b, "b"), PAWL_NOT_FOUND, NULL);
}

CASE(what_has_not_ended_is_never_touched)
{
    struct call_spec s = plan("pending");
    s.keep_us = 1;
    accept_spec(b, s);
    s.id = BYTES("processing");
    s.priority = 1;
    accept_spec(b, s);
    struct token t = claim_n(b, 1);
    ended_call(b, "retried", PAWL_CANCELLED);
    OK(by_id(b, OP_RETRY, "retried"), NULL);
    for (int i = 0; i < 3; i++) {
        advance(b, RETENTION_US + REMEMBER_US);
        struct gc g = gc(b);
        EQ_INT(g.removed + g.forgotten, 0);
        FALSE(g.more);
    }
    STATE_IS(b, "pending", PAWL_PENDING);
    STATE_IS(b, "processing", PAWL_PROCESSING);
    finish_ok(b, t, "processing", "1");
}

CASE(gc_has_a_bound)
{
    for (int i = 0; i < 5; i++) {
        ended_call(b, arena_printf(&b->a, "a%d", i), PAWL_COMPLETED);
        advance(b, 1);
    }
    advance(b, RETENTION_US);
    struct gc g = gc_max(b, 2);
    EQ_INT(g.removed, 2);
    TRUE(g.more);
    EQ_STATUS(found(b, "a1"), PAWL_GONE, NULL); /* the earliest first */
    STATE_IS(b, "a2", PAWL_COMPLETED);
    EQ_INT(gc_max(b, 3).removed, 3);
    FALSE(b->op.gc.more);
    advance(b, REMEMBER_US);
    g = gc_max(b, 3);
    EQ_INT(g.forgotten, 3);
    TRUE(g.more);
    EQ_STATUS(found(b, "a2"), PAWL_NOT_FOUND, NULL);
    EQ_STATUS(found(b, "a3"), PAWL_GONE, NULL);
    EQ_INT(gc_max(b, 3).forgotten, 2);
    FALSE(b->op.gc.more);
}

CASE(both_halves_of_gc_in_one_step)
{
    ended_call(b, "a", PAWL_COMPLETED);
    advance(b, RETENTION_US + REMEMBER_US); /* gc did not run for a long time */
    struct gc g = gc(b);
    EQ_INT(g.removed, 1);
    EQ_INT(g.forgotten, 1);
    EQ_STATUS(found(b, "a"), PAWL_NOT_FOUND, NULL);
}

CASE(a_retried_call_is_kept_from_its_new_end)
{
    ended_call(b, "a", PAWL_FAILED);
    advance(b, RETENTION_US - 1);
    OK(by_id(b, OP_RETRY, "a"), NULL);
    finish_ok(b, claim_n(b, 1), "a", "1");
    advance(b, 1);
    EQ_INT(gc(b).removed, 0);
    advance(b, RETENTION_US - 1);
    EQ_INT(gc(b).removed, 1);
}

CASE(a_call_with_a_history_goes_as_a_whole)
{
    struct tag tag = { BYTES("k"), BYTES("v") };
    struct call_spec s = plan("a");
    s.tags = &tag;
    s.n_tags = 1;
    accept_spec(b, s);
    finish_error(b, claim_n(b, 1), "a", "x");
    advance(b, SEC_US);
    finish_ok(b, claim_n(b, 1), "a", "1");
    advance(b, RETENTION_US);
    EQ_INT(gc(b).removed, 1);
    advance(b, REMEMBER_US);
    EQ_INT(gc(b).forgotten, 1);
    accept_one(b, "a");
    EQ_INT(attempts_of(b, "a").n, 0); /* nothing of the previous call with this id */
    struct query q = { .tag_name = BYTES("k"), .tag_value = BYTES("v"), .limit = 10 };
    struct page page;
    OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
    EQ_INT(page.n, 0);
}
