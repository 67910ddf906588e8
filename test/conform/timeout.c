/*
 * timeout.c - how long an attempt may take under a lease with an end: extending does not help a
 * call that is past its timeout, and does not affect the other calls of its lease.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static enum pawl_status extend(struct conform_fixture *b, struct token t, int64_t lease_us)
{
    struct op op = { .kind = OP_EXTEND, .extend = { .token = t, .lease_us = lease_us } };
    return one(b, &op);
}

static void accept_timed(struct conform_fixture *b, const char *id, const char *key,
                         int64_t timeout_us)
{
    struct call_spec s = key ? keyed(id, key) : plan(id);
    s.timeout_us = timeout_us;
    OK(accept_spec(b, s).status, NULL);
}

/* Its last attempt was a timeout, and the only one so far. */
static void timed_out_once(struct conform_fixture *b, const char *id, const char *error)
{
    struct attempts t = attempts_of(b, id);
    EQ_INT(t.n, 1);
    EQ_INT(t.v[0].how, END_TIMEOUT);
    EQ_TEXT(t.v[0].error, error);
    EQ_INT(get(b, id).counts.attempts, 1);
    EQ_INT(get(b, id).counts.lost, 0);
}

CASE(extending_does_not_move_a_lease_past_the_timeout)
{
    accept_timed(b, "a", NULL, 20 * SEC_US);
    int64_t claimed = now(b);
    struct token t = claim_for(b, 1, 15 * SEC_US);
    advance(b, 10 * SEC_US);
    OK(extend(b, t, 15 * SEC_US), NULL);
    EQ_INT(b->op.extend.until_us, claimed + 20 * SEC_US);
    EQ_INT(b->op.extend.n_timed_out, 0);
    advance(b, 9 * SEC_US);
    OK(extend(b, t, 15 * SEC_US), NULL);
    EQ_INT(b->op.extend.until_us, claimed + 20 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 0);
    advance(b, SEC_US);
    EQ_STATUS(extend(b, t, 15 * SEC_US), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(finish(b, t, "a", END_RESULT), PAWL_LOST_LEASE, NULL);
    EQ_INT(sweep(b).reclaimed, 1);
    STATE_IS(b, "a", PAWL_PENDING);
    EQ_INT(get(b, "a").run_at_us, now(b) + SEC_US); /* its backoff, as after an error */
    timed_out_once(b, "a", "took longer than its timeout of 20 s");
    EQ_STATUS(finish(b, t, "a", END_RESULT), PAWL_LOST_LEASE, NULL);
}

CASE(a_claim_lasts_no_longer_than_the_timeout)
{
    accept_timed(b, "a", NULL, 20 * SEC_US);
    accept_timed(b, "b", NULL, 1500 * MS_US);
    struct claim q = want(b, 2);
    q.lease_us = 3600 * SEC_US;
    q = claim_as(b, q);
    EQ_INT(q.n, 2);
    EQ_INT(q.until_us, now(b) + 20 * SEC_US); /* the longest timeout of its calls */
    struct claim again = q;
    EQ_INT(claim_as(b, again).until_us, q.until_us);
    advance(b, 20 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 2);
    timed_out_once(b, "a", "took longer than its timeout of 20 s");
    timed_out_once(b, "b", "took longer than its timeout of 1.5 s");
}

CASE(a_lease_goes_on_without_the_call_that_is_late)
{
    accept_timed(b, "a", NULL, 10 * SEC_US);
    accept_timed(b, "b", NULL, 60 * SEC_US);
    accept_timed(b, "c", NULL, 10 * SEC_US);
    struct token t = claim_for(b, 3, 30 * SEC_US);
    finish_ok(b, t, "c", "1"); /* in time */
    advance(b, 12 * SEC_US);
    OK(extend(b, t, 30 * SEC_US), NULL);
    EQ_INT(b->op.extend.until_us, now(b) + 30 * SEC_US);
    EQ_INT(b->op.extend.n_timed_out, 1);
    EQ_TEXT(b->op.extend.timed_out[0], "a");
    EQ_INT(b->op.n_lost, 1); /* for the log */
    TRUE(b->op.lost[0].late);
    EQ_TEXT(b->op.lost[0].error, "took longer than its timeout of 10 s");
    EQ_INT(b->op.n_ended, 0); /* it will be retried */
    timed_out_once(b, "a", "took longer than its timeout of 10 s");
    EQ_STATUS(finish(b, t, "a", END_RESULT), PAWL_LOST_LEASE, NULL);
    STATE_IS(b, "b", PAWL_PROCESSING);
    advance(b, 20 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 0);
    finish_ok(b, t, "b", "2");
    EQ_INT(get(b, "b").counts.attempts, 0);
    STATE_IS(b, "c", PAWL_COMPLETED);
}

CASE(a_lease_of_late_calls_only_is_over)
{
    struct call_spec s = plan("a");
    s.timeout_us = 10 * SEC_US;
    s.max_attempts = 1;
    accept_spec(b, s);
    accept_timed(b, "b", NULL, 60 * SEC_US);
    struct token t = claim_for(b, 2, 30 * SEC_US);
    finish_ok(b, t, "b", "1");
    advance(b, 10 * SEC_US);
    EQ_STATUS(extend(b, t, 30 * SEC_US), PAWL_LOST_LEASE, NULL);
    EQ_INT(b->op.n_ended, 1);
    EQ_TEXT(b->op.ended[0], "a");
    STATE_IS(b, "a", PAWL_FAILED); /* its only attempt */
    EQ_TEXT(get(b, "a").error, "took longer than its timeout of 10 s");
    EQ_STATUS(extend(b, t, 30 * SEC_US), PAWL_LOST_LEASE, NULL);
    EQ_INT(sweep(b).reclaimed, 0);
    EQ_INT(b->op.sweep.next_us, 0); /* the lease is gone */
}

CASE(silence_before_the_timeout_is_still_a_loss)
{
    accept_timed(b, "a", NULL, 10 * SEC_US);
    accept_timed(b, "b", NULL, 60 * SEC_US);
    claim_for(b, 2, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 2);
    timed_out_once(b, "a", "took longer than its timeout of 10 s");
    EQ_INT(get(b, "b").counts.lost, 1);
    EQ_INT(get(b, "b").counts.attempts, 0);
    EQ_INT(attempts_of(b, "b").v[0].how, END_LOST);
}

CASE(a_late_call_that_is_to_be_cancelled_is)
{
    accept_timed(b, "a", NULL, 10 * SEC_US);
    accept_timed(b, "b", NULL, 60 * SEC_US);
    struct token t = claim_for(b, 2, 30 * SEC_US);
    OK(by_id(b, OP_CANCEL, "a"), NULL);
    advance(b, 10 * SEC_US);
    OK(extend(b, t, 30 * SEC_US), NULL);
    EQ_INT(b->op.extend.n_cancelled, 0);
    EQ_INT(b->op.n_ended, 1);
    EQ_TEXT(b->op.ended[0], "a");
    STATE_IS(b, "a", PAWL_CANCELLED);
}

CASE(a_late_call_keeps_its_key_back_until_its_retry)
{
    accept_timed(b, "a", "k", 10 * SEC_US);
    accept_timed(b, "b", "k", 60 * SEC_US);
    accept_timed(b, "z", NULL, 60 * SEC_US);
    struct token t = claim_for(b, 2, 30 * SEC_US);
    advance(b, 11 * SEC_US);
    OK(extend(b, t, 30 * SEC_US), NULL);
    EQ_INT(b->op.extend.n_timed_out, 1);
    EQ_TEXT(b->op.extend.timed_out[0], "a");
    EQ_STR(claimable(b, want(b, 9)), "");
    advance(b, SEC_US);
    EQ_STR(claimable(b, want(b, 9)), "a");
    STATE_IS(b, "z", PAWL_PROCESSING);
}

/* Calls behind the first of a run have not started: they are not late, and count nothing. */
CASE(a_run_is_timed_from_where_each_begins)
{
    accept_timed(b, "a", "k", 10 * SEC_US);
    accept_timed(b, "b", "k", 10 * SEC_US);
    accept_timed(b, "c", "k", 10 * SEC_US);
    struct claim q = claim_run_for(b, 3, 3, 15 * SEC_US);
    EQ_INT(q.n, 3);
    EQ_INT(q.until_us, now(b) + 15 * SEC_US); /* it is not known when each of them will start */
    advance(b, 8 * SEC_US);
    finish_ok(b, q.token, "a", "1");
    int64_t begun = now(b);
    advance(b, 6 * SEC_US);
    OK(extend(b, q.token, 30 * SEC_US), NULL);
    EQ_INT(b->op.extend.n_timed_out, 0);
    EQ_INT(b->op.extend.until_us, now(b) + 30 * SEC_US); /* c has not started */
    advance(b, 4 * SEC_US);
    EQ_INT(now(b), begun + 10 * SEC_US);
    EQ_STATUS(extend(b, q.token, 30 * SEC_US), PAWL_LOST_LEASE, NULL);
    timed_out_once(b, "b", "took longer than its timeout of 10 s");
    EQ_INT(get(b, "c").counts.attempts, 0);
    EQ_INT(get(b, "c").counts.lost, 0);
    advance(b, SEC_US);
    EQ_STR(claimable(b, want(b, 9)), "b");
}

/* A lease without an end is watched by its own node. */
CASE(a_lease_without_end_is_not_timed_here)
{
    accept_timed(b, "a", NULL, 10 * SEC_US);
    struct token t = claim_n(b, 1);
    advance(b, 100 * SEC_US);
    OK(extend(b, t, 30 * SEC_US), NULL);
    EQ_INT(b->op.extend.n_timed_out, 0);
    EQ_INT(sweep(b).reclaimed, 0);
    finish_ok(b, t, "a", "1");
}
