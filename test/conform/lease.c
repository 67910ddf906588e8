/*
 * lease.c - leases: extending, losing, and which calls a loss is charged to.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static enum pawl_status extend(struct conform_fixture *b, struct token t, int64_t lease_us)
{
    struct op op = { .kind = OP_EXTEND, .extend = { .token = t, .lease_us = lease_us } };
    return one(b, &op);
}

CASE(a_lease_is_extended)
{
    accept_one(b, "a");
    struct token t = claim_for(b, 1, 30 * SEC_US);
    advance(b, 20 * SEC_US);
    OK(extend(b, t, 30 * SEC_US), NULL);
    EQ_INT(b->op.extend.until_us, now(b) + 30 * SEC_US);
    EQ_INT(b->op.extend.n_cancelled, 0);
    advance(b, 20 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 0);
    EQ_INT(b->op.sweep.next_us, now(b) + 10 * SEC_US);
    finish_ok(b, t, "a", "1");
}

CASE(a_lease_without_end_keeps_none)
{
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    OK(extend(b, t, 5 * SEC_US), NULL);
    EQ_INT(b->op.extend.until_us, 0);
    advance(b, 1000 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 0);
    EQ_INT(b->op.sweep.next_us, 0);
    finish_ok(b, t, "a", "1");
}

CASE(a_lease_that_is_over_is_not_extended)
{
    accept_one(b, "a");
    struct token t = claim_for(b, 1, 30 * SEC_US);
    EQ_STATUS(extend(b, fresh_token(b), SEC_US), PAWL_LOST_LEASE, NULL);
    advance(b, 30 * SEC_US);
    EQ_STATUS(extend(b, t, 30 * SEC_US), PAWL_LOST_LEASE, NULL); /* no sweep was necessary */
}

CASE(a_lost_lease_gives_its_calls_back_in_place)
{
    struct call_spec s = plan("a");
    s.priority = 3;
    accept_spec(b, s);
    int64_t due = now(b);
    struct claim q = want(b, 1);
    q.worker = BYTES("w1");
    q.lease_us = 30 * SEC_US;
    claim_as(b, q);
    advance(b, 30 * SEC_US);
    struct sweep w = sweep(b);
    EQ_INT(w.reclaimed, 1);
    EQ_INT(w.expired, 0);
    FALSE(w.more);
    EQ_INT(b->op.n_ended, 0);
    EQ_INT(b->op.n_lost, 1); /* for the log */
    EQ_TEXT(b->op.lost[0].id, "a");
    EQ_TEXT(b->op.lost[0].type, "t");
    EQ_TEXT(b->op.lost[0].error, "worker \"w1\" was lost");
    EQ_INT(b->op.lost[0].attempt_no, 1);
    EQ_INT(b->op.lost[0].state, PAWL_PENDING);
    struct call c = get(b, "a");
    EQ_INT(c.state, PAWL_PENDING);
    EQ_INT(c.counts.lost, 1);
    EQ_INT(c.counts.attempts, 0);
    EQ_INT(c.run_at_us, due); /* a lost attempt is repeated at once */
    EQ_INT(c.spec.priority, 3);
    EQ_TEXT(c.error, "worker \"w1\" was lost");
    struct attempts t = attempts_of(b, "a");
    EQ_INT(t.n, 1);
    EQ_INT(t.v[0].how, END_LOST);
    EQ_INT(t.v[0].attempt_no, 1);
    EQ_TEXT(t.v[0].error, "worker \"w1\" was lost");
    EQ_TEXT(t.v[0].node, "w1");
    EQ_INT(t.v[0].started_us, due);
    EQ_INT(t.v[0].finished_us, now(b));
}

CASE(the_former_owner_is_told)
{
    accept_n(b, "a", 2);
    struct token old = claim_for(b, 2, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    sweep(b);
    EQ_STATUS(finish(b, old, "a0", END_RESULT), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(finish(b, old, "a1", END_RELEASE), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(extend(b, old, SEC_US), PAWL_LOST_LEASE, NULL);
    STATE_IS(b, "a0", PAWL_PENDING);
}

CASE(a_sweep_takes_leases_up_to_max)
{
    accept_n(b, "a", 4);
    claim_for(b, 1, 32 * SEC_US);
    claim_for(b, 2, 31 * SEC_US);
    claim_for(b, 1, 30 * SEC_US);
    EQ_INT(sweep(b).next_us, now(b) + 30 * SEC_US);
    advance(b, 40 * SEC_US);
    struct sweep q = sweep_max(b, 2);
    EQ_INT(q.reclaimed, 3); /* max counts leases, the answer counts calls */
    TRUE(q.more);
    STATE_IS(b, "a0", PAWL_PROCESSING);
    EQ_INT(sweep_max(b, 2).reclaimed, 1);
    FALSE(b->op.sweep.more);
}

/* Call 3 of lease 1 is retried, claimed and completed under lease 2; then lease 1 is lost. */
CASE(a_retry_inside_a_batch_is_not_revived_by_the_reclaim)
{
    accept_n(b, "a", 3);
    struct token t1 = claim_for(b, 3, 30 * SEC_US);
    struct finish_item f = item("a2", END_ERROR);
    f.retry_in_us = 0;
    OK(finish_item(b, t1, f), NULL);
    struct token t2 = claim_n(b, 1);
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 2);
    STATE_IS(b, "a2", PAWL_PROCESSING);
    finish_ok(b, t2, "a2", "1");
    EQ_STR(claimable(b, want(b, 10)), "a0");
    STATE_IS(b, "a2", PAWL_COMPLETED);
}

CASE(what_was_handed_back_is_not_revived_either)
{
    accept_n(b, "a", 2);
    struct token t1 = claim_for(b, 2, 30 * SEC_US);
    OK(finish(b, t1, "a1", END_RELEASE), NULL);
    struct token t2 = claim_n(b, 1);
    finish_ok(b, t2, "a1", "1");
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    STATE_IS(b, "a1", PAWL_COMPLETED);
    EQ_INT(get(b, "a1").counts.lost, 0);
}

CASE(a_completed_neighbour_is_not_revived)
{
    accept_n(b, "a", 2);
    struct token t = claim_for(b, 2, 30 * SEC_US);
    finish_ok(b, t, "a0", "1");
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    STATE_IS(b, "a0", PAWL_COMPLETED);
    STATE_IS(b, "a1", PAWL_PENDING);
}

CASE(a_completed_neighbour_that_gc_removed_is_not_revived)
{
    struct call_spec s = plan("short");
    s.keep_us = SEC_US;
    accept_spec(b, s);
    accept_one(b, "long");
    struct token t = claim_for(b, 2, 30 * SEC_US);
    finish_ok(b, t, "short", "1");
    advance(b, SEC_US);
    EQ_INT(gc(b).removed, 1);
    EQ_STATUS(finish(b, t, "short", END_RESULT), PAWL_LOST_LEASE, NULL);
    struct claim again = want(b, 2);
    again.token = t;
    EQ_INT(claim_as(b, again).n, 1);
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    EQ_STATUS(found(b, "short"), PAWL_GONE, NULL);
    EQ_STR(claimable(b, want(b, 5)), "long");
}

/* ---- retry_alone ----------------------------------------------------------------------------- */

/* Claim n calls and lose the lease. */
static void lose(struct conform_fixture *b, int n)
{
    claim_for(b, n, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, n);
}

CASE(a_lost_call_is_claimed_alone)
{
    accept_n(b, "a", 3);
    lose(b, 3);
    accept_one(b, "fresh");
    for (int i = 0; i < 3; i++) {
        struct claim q = claim_as(b, want(b, 10));
        EQ_INT(q.n, 1);
        EQ_INT(q.calls[0].seq, i + 1);
        EQ_INT(q.calls[0].counts.lost, 1);
        TRUE(q.more);
        finish_ok(b, q.token, i == 0 ? "a0" : i == 1 ? "a1" : "a2", "1");
    }
    EQ_STR(claimable(b, want(b, 10)), "fresh");
}

CASE(lost_calls_behind_the_first_are_passed_over)
{
    struct call_spec s = plan("first");
    s.priority = 1;
    accept_one(b, "lost");
    lose(b, 1);
    accept_spec(b, s);
    accept_one(b, "third");
    struct claim q = claim_as(b, want(b, 10));
    EQ_INT(q.n, 2);
    EQ_TEXT(q.calls[0].spec.id, "first");
    EQ_TEXT(q.calls[1].spec.id, "third");
    TRUE(q.more); /* the retry_alone call is due, and this claim could have taken it */
    EQ_STR(claimable(b, want(b, 10)), "lost");
}

CASE(no_retry_alone_means_as_if_they_were_not_there)
{
    accept_n(b, "s", 2);
    lose(b, 2);
    struct claim q = want(b, 10);
    q.no_retry_alone = true;
    q = claim_as(b, q);
    EQ_INT(q.n, 0);
    FALSE(q.more);
    EQ_INT(q.next_due_us, 0);
    accept_one(b, "fresh");
    q = want(b, 10);
    q.no_retry_alone = true;
    EQ_STR(claimable(b, q), "fresh");
}

CASE(lost_calls_expire_only_when_looked_at)
{
    struct call_spec s = plan("lost");
    s.expires_in_us = 40 * SEC_US;
    accept_spec(b, s);
    lose(b, 1);
    advance(b, 10 * SEC_US);
    s = plan("first");
    s.priority = 1;
    accept_spec(b, s);
    struct claim q = want(b, 10);
    q.no_retry_alone = true;
    EQ_STR(claimable(b, q), "first");
    EQ_STR(claimable(b, want(b, 10)), "first"); /* passed over: unchanged */
    STATE_IS(b, "lost", PAWL_PENDING);
    OK(by_id(b, OP_CANCEL, "first"), NULL);
    /* First in order: ended before anything else is decided. */
    EQ_INT(claim_as(b, want(b, 10)).n, 0);
    STATE_IS(b, "lost", PAWL_EXPIRED);
}

CASE(a_shared_loss_is_counted_but_charges_nobody_out)
{
    struct call_spec s = plan("a");
    s.max_lost = 1;
    accept_spec(b, s);
    s.id = BYTES("b");
    accept_spec(b, s);
    lose(b, 2);
    STATE_IS(b, "a", PAWL_PENDING); /* max_lost is reached, but it was not claimed by itself */
    EQ_INT(get(b, "a").counts.lost, 1);
    lose(b, 1);
    STATE_IS(b, "a", PAWL_DEAD_LETTER);
    STATE_IS(b, "b", PAWL_PENDING);
    EQ_INT(b->op.n_ended, 1);
    struct call c = get(b, "a");
    EQ_INT(c.counts.lost, 2);
    EQ_TEXT(c.error, "node \"n1\" was lost");
    EQ_TEXT(c.node, "n1");
    EQ_INT(c.claimed_us, now(b) - 30 * SEC_US);
    EQ_INT(c.started_us, c.claimed_us);
    EQ_INT(c.finished_us, now(b));
}

/* One call beyond the limit; the others are counted. Calls behind it that had not started were not
 * lost. */
CASE(lost_attempts_are_told_up_to_a_bound)
{
    accept_n(b, "a", LOST_TOLD_MAX + 1);
    claim_for(b, LOST_TOLD_MAX + 1, 30 * SEC_US);
    struct call_spec s = plan("k1");
    s.key = BYTES("k");
    accept_spec(b, s);
    s.id = BYTES("k2");
    accept_spec(b, s);
    struct claim q = want(b, 2);
    q.run_max = 2;
    q.lease_us = 30 * SEC_US;
    claim_as(b, q);
    advance(b, 30 * SEC_US);
    sweep(b);
    EQ_INT(b->op.n_lost, LOST_TOLD_MAX + 2);
    for (size_t i = 0; i < LOST_TOLD_MAX; i++) {
        EQ_INT(b->op.lost[i].attempt_no, 1);
        TRUE(b->op.lost[i].id.len && !bytes_eq(b->op.lost[i].id, BYTES("k2")));
    }
    sweep(b);
    EQ_INT(b->op.n_lost, 0);
}

CASE(losses_run_out_at_max_lost)
{
    struct call_spec s = plan("a");
    s.max_lost = 3;
    accept_spec(b, s);
    lose(b, 1);
    lose(b, 1);
    STATE_IS(b, "a", PAWL_PENDING);
    lose(b, 1);
    STATE_IS(b, "a", PAWL_DEAD_LETTER);
    EQ_INT(attempts_of(b, "a").n, 3);
}

CASE(an_error_in_between_keeps_the_count)
{
    accept_one(b, "a");
    lose(b, 1);
    struct token t = claim_n(b, 1);
    finish_error(b, t, "a", "x");
    EQ_INT(b->item.counts.lost, 1);
    EQ_INT(b->item.counts.attempts, 1);
    EQ_INT(attempts_of(b, "a").v[1].attempt_no, 2);
    /* Marked retry_alone until it is retried by an operator. */
    TRUE(counts_retry_alone(get(b, "a").counts));
}

CASE(reclaim_may_fail_at_once)
{
    accept_n(b, "a", 2);
    claim_for(b, 2, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    struct op op = { .kind = OP_SWEEP, .sweep = { .max = 10, .fail_lost = true } };
    OK(one(b, &op), &op.err);
    EQ_INT(op.sweep.reclaimed, 2);
    EQ_INT(op.n_ended, 2);
    STATE_IS(b, "a0", PAWL_FAILED);
    EQ_TEXT(get(b, "a1").error, "node \"n1\" was lost");
}
