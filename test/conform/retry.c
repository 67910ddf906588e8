/*
 * retry.c - retry: running an ended call once more.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

CASE(what_did_not_complete_is_retried)
{
    enum pawl_state states[] = { PAWL_FAILED, PAWL_DEAD_LETTER, PAWL_CANCELLED, PAWL_EXPIRED };
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        const char *id = pawl_state_name(states[i]);
        ended_call(b, id, states[i]);
        advance(b, 5);
        OK(by_id(b, OP_RETRY, id), NULL);
        EQ_INT(b->op.by_id.state, PAWL_PENDING);
        EQ_INT(b->op.by_id.seq, i + 1);
        struct call c = get(b, id);
        EQ_INT(c.state, PAWL_PENDING);
        EQ_INT(c.counts.attempts, 0);
        EQ_INT(c.counts.lost, 0);
        EQ_INT(c.counts.redrives, 1);
        EQ_INT(c.run_at_us, now(b));
        EQ_INT(c.finished_us, 0);
        EQ_INT(c.keep_until_us, 0);
        EQ_INT(c.expires_us, 0);
        EQ_INT(c.spec.priority, PRIORITY_MAX);
        ABSENT(c.error);
        ABSENT(c.node);
        finish_ok(b, claim_n(b, 1), id, "\"again\"");
        EQ_TEXT(get(b, id).result.bytes, "\"again\"");
        EQ_INT(get(b, id).counts.redrives, 1);
    }
}

CASE(a_completed_call_is_not_retried)
{
    ended_call(b, "a", PAWL_COMPLETED);
    EQ_STATUS(by_id(b, OP_RETRY, "a"), PAWL_STATE, NULL);
    EQ_INT(b->op.by_id.state, PAWL_COMPLETED);
    STATE_IS(b, "a", PAWL_COMPLETED);
}

CASE(what_has_not_ended_is_not_retried)
{
    accept_one(b, "a");
    EQ_STATUS(by_id(b, OP_RETRY, "a"), PAWL_STATE, NULL);
    EQ_INT(b->op.by_id.state, PAWL_PENDING);
    claim_n(b, 1);
    EQ_STATUS(by_id(b, OP_RETRY, "a"), PAWL_STATE, NULL);
    EQ_INT(b->op.by_id.state, PAWL_PROCESSING);
}

CASE(retry_of_nothing)
{
    EQ_STATUS(by_id(b, OP_RETRY, "a"), PAWL_NOT_FOUND, NULL);
    ended_call(b, "a", PAWL_FAILED);
    advance(b, RETENTION_US);
    gc(b);
    EQ_STATUS(by_id(b, OP_RETRY, "a"), PAWL_GONE, NULL);
}

CASE(attempts_of_every_retry_are_shown)
{
    ended_call(b, "a", PAWL_DEAD_LETTER);
    OK(by_id(b, OP_RETRY, "a"), NULL);
    finish_error(b, claim_n(b, 1), "a", "third");
    struct attempts t = attempts_of(b, "a");
    EQ_INT(t.n, 3); /* the former outcome is not an attempt */
    EQ_TEXT(t.v[0].error, "first");
    EQ_TEXT(t.v[1].error, "second");
    EQ_TEXT(t.v[2].error, "third");
    EQ_INT(t.v[2].attempt_no, 1);
    advance(b, SEC_US);
    finish_error(b, claim_n(b, 1), "a", "fourth");
    STATE_IS(b, "a", PAWL_DEAD_LETTER);
    OK(by_id(b, OP_RETRY, "a"), NULL);
    EQ_INT(get(b, "a").counts.redrives, 2);
}

CASE(a_retried_call_no_longer_expires)
{
    struct call_spec s = plan("a");
    s.expires_in_us = 10;
    accept_spec(b, s);
    advance(b, 10);
    EQ_INT(sweep(b).expired, 1);
    OK(by_id(b, OP_RETRY, "a"), NULL);
    EQ_INT(get(b, "a").expires_us, 0);
    advance(b, SEC_US);
    EQ_INT(sweep(b).expired, 0);
    EQ_INT(claim_as(b, want(b, 1)).n, 1);
}

CASE(an_owner_learns_its_own_ending_after_a_retry)
{
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    OK(finish(b, t, "a", END_REFUSE), NULL);
    int64_t ended = b->item.finished_us;
    advance(b, 5);
    OK(by_id(b, OP_RETRY, "a"), NULL);
    OK(finish(b, t, "a", END_REFUSE), NULL); /* a repeat, not a second ending */
    EQ_INT(b->item.state, PAWL_FAILED);
    EQ_INT(b->item.finished_us, ended);
    STATE_IS(b, "a", PAWL_PENDING);
}

/* The batch lease it ended under still exists: neither a finish by that owner nor a reclaim may
 * touch it. */
CASE(a_retried_call_is_none_of_its_former_leases_business)
{
    accept_n(b, "a", 3);
    struct token old = claim_for(b, 3, 30 * SEC_US);
    OK(finish(b, old, "a0", END_REFUSE), NULL);
    OK(by_id(b, OP_RETRY, "a0"), NULL);
    struct token t = claim_n(b, 1);
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 2);
    STATE_IS(b, "a0", PAWL_PROCESSING);
    EQ_INT(get(b, "a0").counts.lost, 0);
    finish_ok(b, t, "a0", "1");
    /* Retry_alone calls come one by one; a0 does not come at all. */
    EQ_STR(claimable(b, want(b, 10)), "a1");
    STATE_IS(b, "a0", PAWL_COMPLETED);
}

CASE(a_former_lease_cannot_end_a_retried_call)
{
    accept_n(b, "a", 2);
    struct token old = claim_n(b, 2);
    OK(finish(b, old, "a0", END_REFUSE), NULL);
    OK(by_id(b, OP_RETRY, "a0"), NULL);
    OK(finish(b, old, "a0", END_RESULT), NULL);
    EQ_INT(b->item.state, PAWL_FAILED);
    STATE_IS(b, "a0", PAWL_PENDING);
    finish_ok(b, old, "a1", "1");
    EQ_STR(claimable(b, want(b, 10)), "a0");
}
