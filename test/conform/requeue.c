/*
 * requeue.c - ending leases that are too old, even if their owners are alive.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static struct requeue requeue_max(struct conform_fixture *b, int64_t before_us, int max)
{
    struct op op = { .kind = OP_REQUEUE,
                     .requeue = { .max = max, .claimed_before_us = before_us } };
    OK(one(b, &op), &op.err);
    return op.requeue;
}

static struct requeue requeue(struct conform_fixture *b, int64_t before_us)
{
    return requeue_max(b, before_us, 100);
}

CASE(a_stuck_call_is_pending_again)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    advance(b, SEC_US);
    OK(node(b, OP_BEAT, "n1", "b1"), NULL); /* its owner is alive, which does not matter */
    struct requeue r = requeue(b, now(b));
    EQ_INT(r.leases, 1);
    EQ_INT(r.reclaimed, 1);
    FALSE(r.more);
    EQ_INT(b->op.n_ended, 0);
    struct call c = get(b, "a");
    EQ_INT(c.state, PAWL_PENDING);
    EQ_INT(c.counts.lost, 1); /* counted */
    EQ_TEXT(c.error, "node \"n1\" was lost");
    EQ_STATUS(finish(b, t, "a", END_RESULT), PAWL_LOST_LEASE, NULL);
    OK(node(b, OP_BEAT, "n1", "b1"), NULL); /* it is still a node */
    advance(b, 3600 * SEC_US);
    finish_ok(b, claim_n(b, 1), "a", "1");
}

CASE(a_lease_with_an_end_is_ended_too)
{
    accept_one(b, "a");
    struct token t = claim_for(b, 1, 3600 * SEC_US);
    advance(b, SEC_US);
    struct op op = { .kind = OP_EXTEND, .extend = { .token = t, .lease_us = 3600 * SEC_US } };
    OK(one(b, &op), &op.err);
    EQ_INT(requeue(b, now(b)).reclaimed, 1);
    EQ_STATUS(finish(b, t, "a", END_RESULT), PAWL_LOST_LEASE, NULL);
    op = (struct op){ .kind = OP_EXTEND, .extend = { .token = t, .lease_us = SEC_US } };
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, NULL);
}

CASE(younger_leases_are_left_alone)
{
    accept_n(b, "a", 2);
    struct token old = claim_n(b, 1);
    advance(b, SEC_US);
    int64_t edge = now(b);
    struct token young = claim_n(b, 1); /* claimed exactly at the limit: not before it */
    advance(b, SEC_US);
    struct requeue r = requeue(b, edge);
    EQ_INT(r.leases, 1);
    FALSE(r.more);
    STATE_IS(b, "a0", PAWL_PENDING);
    STATE_IS(b, "a1", PAWL_PROCESSING);
    EQ_STATUS(finish(b, old, "a0", END_RESULT), PAWL_LOST_LEASE, NULL);
    finish_ok(b, young, "a1", "1");
    EQ_INT(requeue(b, now(b) + 1).leases, 0);
}

CASE(requeue_has_a_bound)
{
    accept_n(b, "a", 3);
    for (int i = 0; i < 3; i++) {
        claim_n(b, 1);
        advance(b, 1);
    }
    struct requeue r = requeue_max(b, now(b), 2);
    EQ_INT(r.leases, 2);
    TRUE(r.more);
    STATE_IS(b, "a1", PAWL_PENDING); /* the oldest lease first */
    STATE_IS(b, "a2", PAWL_PROCESSING);
    r = requeue_max(b, now(b), 2);
    EQ_INT(r.leases, 1);
    FALSE(r.more);
}

CASE(what_has_ended_stays_ended)
{
    accept_n(b, "a", 3);
    struct token t = claim_n(b, 3);
    finish_ok(b, t, "a1", "1");
    advance(b, 1);
    struct requeue r = requeue(b, now(b));
    EQ_INT(r.leases, 1);
    EQ_INT(r.reclaimed, 2);
    STATE_IS(b, "a1", PAWL_COMPLETED);
    STATE_IS(b, "a0", PAWL_PENDING);
    OK(finish(b, t, "a1", END_RESULT), NULL); /* a repeat still gets the first answer */
}

/* Lost by itself as often as allowed: it ends, and waiting callers are told. */
CASE(requeue_respects_max_lost)
{
    struct call_spec s = plan("a");
    s.max_lost = 2;
    accept_spec(b, s);
    claim_n(b, 1);
    advance(b, 1);
    requeue(b, now(b));
    STATE_IS(b, "a", PAWL_PENDING);
    advance(b, 3600 * SEC_US);
    claim_n(b, 1);
    advance(b, 1);
    EQ_INT(requeue(b, now(b)).reclaimed, 1);
    EQ_INT(b->op.n_ended, 1);
    STATE_IS(b, "a", PAWL_DEAD_LETTER);
}

CASE(requeue_tells_what_it_ended)
{
    accept_one(b, "a");
    claim_n(b, 1);
    advance(b, 1);
    struct op op = { .kind = OP_REQUEUE,
                     .requeue = { .max = 1, .claimed_before_us = now(b), .fail_lost = true } };
    OK(one(b, &op), &op.err);
    EQ_INT(op.n_ended, 1);
    EQ_TEXT(op.ended[0], "a");
    STATE_IS(b, "a", PAWL_FAILED);
}

CASE(a_cancel_request_is_met_by_a_requeue)
{
    accept_one(b, "a");
    claim_n(b, 1);
    OK(by_id(b, OP_CANCEL, "a"), NULL);
    advance(b, 1);
    EQ_INT(requeue(b, now(b)).reclaimed, 1);
    EQ_INT(b->op.n_ended, 1);
    STATE_IS(b, "a", PAWL_CANCELLED);
}

/* The first call of a run was lost, those behind it had not started; all keep their places. */
CASE(a_requeue_keeps_the_order_of_a_key)
{
    line_up(b, "k", "abcd");
    struct claim q = claim_run(b, 3, 3);
    EQ_STR(ids_of(b, &q), "a b c");
    OK(finish_run(b, q.token, "a", "r"), &b->op.err);
    advance(b, 1);
    struct requeue r = requeue(b, now(b));
    EQ_INT(r.reclaimed, 2);
    EQ_INT(get(b, "b").counts.lost, 1);
    EQ_INT(get(b, "c").counts.lost, 0);
    EQ_STATUS(finish_run(b, q.token, "b", "r"), PAWL_LOST_LEASE, NULL);
    advance(b, 3600 * SEC_US);
    q = claim_run(b, 4, 4);
    EQ_STR(ids_of(b, &q), "b"); /* a retry_alone call is claimed by itself */
    OK(finish_run(b, q.token, "b", "r"), &b->op.err);
    q = claim_run(b, 4, 4);
    EQ_STR(ids_of(b, &q), "c d");
    EQ_INT(q.calls[0].key_no, 3);
}

CASE(nothing_is_stuck_in_an_empty_ledger)
{
    struct requeue r = requeue(b, now(b));
    EQ_INT(r.leases + r.reclaimed, 0);
    FALSE(r.more);
}
