/*
 * expiry.c - calls that have not started before their expiry end as `expired`, by a claim or a
 * sweep.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static void accept_expiring(struct conform_fixture *b, const char *id, int64_t in_us, int priority)
{
    struct call_spec s = plan(id);
    s.expires_in_us = in_us;
    s.priority = priority;
    OK(accept_spec(b, s).status, NULL);
}

CASE(the_sweeper_ends_what_has_expired)
{
    accept_expiring(b, "a", 10, 0);
    accept_expiring(b, "b", 11, 0);
    accept_one(b, "never");
    EQ_INT(sweep(b).next_us, now(b) + 10);
    advance(b, 9);
    EQ_INT(sweep(b).expired, 0);
    advance(b, 1);
    struct sweep q = sweep(b);
    EQ_INT(q.expired, 1);
    FALSE(q.more);
    EQ_INT(q.next_us, now(b) + 1);
    EQ_INT(b->op.n_ended, 1);
    EQ_TEXT(b->op.ended[0], "a");
    struct call c = get(b, "a");
    EQ_INT(c.state, PAWL_EXPIRED);
    EQ_INT(c.finished_us, now(b));
    EQ_INT(c.keep_until_us, now(b) + RETENTION_US);
    EQ_INT(c.expires_us, now(b));
    ABSENT(c.node);
    ABSENT(c.error);
    EQ_INT(c.claimed_us, 0);
    advance(b, 1);
    EQ_INT(sweep(b).expired, 1);
    EQ_INT(sweep(b).next_us, 0);
    STATE_IS(b, "never", PAWL_PENDING);
}

CASE(a_sweep_has_a_bound)
{
    for (int i = 0; i < 5; i++)
        accept_expiring(b, arena_printf(&b->a, "a%d", i), 10 - i, 0);
    advance(b, 10);
    struct sweep q = sweep_max(b, 2);
    EQ_INT(q.expired, 2);
    TRUE(q.more);
    STATE_IS(b, "a4", PAWL_EXPIRED); /* the earliest first */
    STATE_IS(b, "a3", PAWL_EXPIRED);
    STATE_IS(b, "a2", PAWL_PENDING);
    EQ_INT(sweep_max(b, 3).expired, 3);
    FALSE(b->op.sweep.more);
}

CASE(a_claim_never_takes_what_has_expired)
{
    accept_expiring(b, "a", 10, 5);
    accept_expiring(b, "b", 11, 4);
    accept_one(b, "c");
    accept_one(b, "d");
    advance(b, 10);
    struct claim q = claim_as(b, want(b, 2));
    EQ_INT(q.n, 2); /* expired calls do not count toward max */
    EQ_TEXT(q.calls[0].spec.id, "b");
    EQ_TEXT(q.calls[1].spec.id, "c");
    EQ_INT(b->op.n_ended, 1);
    EQ_TEXT(b->op.ended[0], "a");
    STATE_IS(b, "a", PAWL_EXPIRED);
    STATE_IS(b, "b", PAWL_PROCESSING);
}

CASE(a_claim_of_only_expired_calls_writes_no_lease)
{
    accept_expiring(b, "a", 10, 0);
    accept_expiring(b, "b", 10, 0);
    advance(b, 10);
    struct claim q = claim_as(b, want(b, 5));
    EQ_INT(q.n, 0);
    EQ_INT(b->op.n_ended, 2);
    FALSE(q.more);
    struct op op = { .kind = OP_EXTEND, .extend = { .token = q.token, .lease_us = SEC_US } };
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, &op.err);
}

CASE(what_a_full_claim_did_not_reach_is_not_ended)
{
    accept_one(b, "a");
    accept_expiring(b, "b", 10, -1);
    advance(b, 10);
    struct claim q = claim_as(b, want(b, 1));
    EQ_INT(q.n, 1);
    EQ_INT(b->op.n_ended, 0);
    TRUE(q.more); /* the next claim ends it */
    STATE_IS(b, "b", PAWL_PENDING);
    EQ_INT(claim_as(b, want(b, 1)).n, 0);
    STATE_IS(b, "b", PAWL_EXPIRED);
}

CASE(what_has_begun_does_not_expire)
{
    accept_expiring(b, "a", 10, 0);
    struct token t = claim_n(b, 1);
    EQ_INT(sweep(b).next_us, 0);
    advance(b, 100);
    EQ_INT(sweep(b).expired, 0);
    finish_ok(b, t, "a", "1");
}

CASE(a_retry_may_expire)
{
    accept_expiring(b, "a", 10, 0);
    accept_expiring(b, "b", 5 * SEC_US, 0);
    struct token t = claim_n(b, 2);
    advance(b, 20);
    finish_error(b, t, "a", "x");
    EQ_INT(sweep(b).expired, 1); /* its expiry was stored again, and has passed */
    STATE_IS(b, "a", PAWL_EXPIRED);
    EQ_INT(get(b, "a").counts.attempts, 1);
    finish_error(b, t, "b", "x");
    EQ_INT(sweep(b).next_us, get(b, "b").expires_us);
}

CASE(a_call_that_expires_before_it_is_due)
{
    struct call_spec s = plan("a");
    s.delay_us = 100;
    s.expires_in_us = 10;
    accept_spec(b, s);
    advance(b, 10);
    EQ_INT(claim_as(b, want(b, 1)).n, 0);
    STATE_IS(b, "a", PAWL_PENDING); /* not due: no claim reads it */
    EQ_INT(sweep(b).expired, 1);
}

CASE(an_expiry_in_the_past_is_accepted)
{
    struct call_spec s = plan("a");
    s.expires_at_us = now(b) - 5;
    OK(accept_spec(b, s).status, NULL);
    EQ_INT(claim_as(b, want(b, 1)).n, 0);
    STATE_IS(b, "a", PAWL_EXPIRED);
}

CASE(a_paused_queue_expires_all_the_same)
{
    accept_expiring(b, "a", 10, 0);
    pause_queue(b, "default", true);
    advance(b, 10);
    EQ_INT(sweep(b).expired, 1);
}
