/*
 * blocked.c - keys that a failed call blocks until an operator decides.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static struct call_spec blocking(const char *id, const char *key)
{
    struct call_spec s = keyed(id, key);
    s.on_dead = PAWL_ON_DEAD_BLOCK;
    return s;
}

/* Call "x" on key "k" fails and blocks it; "a" and "b" are behind it. */
static void blocked_line(struct conform_fixture *b)
{
    accept_spec(b, blocking("x", "k"));
    line_up(b, "k", "ab");
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "x a b");
    OK(finish(b, q.token, "x", END_REFUSE), NULL);
    STATE_IS(b, "x", PAWL_FAILED);
}

CASE(skip_lets_the_next_run)
{
    line_up(b, "k", "ab");
    struct claim q = claim_run(b, 10, 1);
    OK(finish(b, q.token, "a", END_REFUSE), NULL);
    EQ_STR(keys_shown(b, true), "");
    EQ_INT(get(b, "a").keep_until_us, now(b) + RETENTION_US);
    EQ_STR(claimable(b, want(b, 10)), "b");
}

CASE(block_holds_the_key)
{
    blocked_line(b);
    int64_t since = now(b);
    advance(b, SEC_US);
    struct claim q = claim_run(b, 10, 10);
    EQ_INT(q.n, 0);
    FALSE(q.more);
    EQ_INT(q.next_due_us, 0);
    EQ_STR(keys_shown(b, true), "k");
    EQ_STR(keys_shown(b, false), "k");
    struct key_row row = key_of(b, "k");
    EQ_TEXT(row.head, "x");
    EQ_INT(row.head_state, PAWL_FAILED);
    EQ_INT(row.waiting_for, WAIT_NONE);
    TRUE(row.blocked);
    EQ_INT(row.pending, 2);
    EQ_INT(row.since_us, since);
    EQ_INT(get(b, "a").waiting_for, WAIT_KEY);
    EQ_INT(get(b, "a").position, 1);
    EQ_INT(get(b, "b").position, 2);
    EQ_INT(get(b, "x").keep_until_us, 0);
    FALSE(get(b, "x").in_line);
    EQ_INT(get(b, "x").key_no, 1);
}

CASE(a_dead_letter_blocks_too)
{
    struct call_spec s = blocking("x", "k");
    s.max_attempts = 2;
    accept_spec(b, s);
    for (int i = 0; i < 2; i++) {
        EQ_STR(keys_shown(b, true), "");
        finish_error(b, claim_run(b, 1, 1).token, "x", "boom");
        advance(b, SEC_US);
    }
    STATE_IS(b, "x", PAWL_DEAD_LETTER);
    EQ_STR(keys_shown(b, true), "k");
}

CASE(a_lost_head_may_block)
{
    accept_spec(b, blocking("x", "k"));
    line_up(b, "k", "a");
    claim_run_for(b, 10, 10, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    struct op op = { .kind = OP_SWEEP, .sweep = { .max = 10, .fail_lost = true } };
    OK(one(b, &op), &op.err);
    STATE_IS(b, "x", PAWL_FAILED);
    STATE_IS(b, "a", PAWL_PENDING);
    EQ_STR(keys_shown(b, true), "k");
    EQ_INT(claim_run(b, 10, 10).n, 0);
}

CASE(cancelled_and_expired_heads_never_block)
{
    accept_spec(b, blocking("c", "k"));
    struct call_spec s = blocking("e", "k");
    s.expires_in_us = SEC_US;
    accept_spec(b, s);
    accept_spec(b, blocking("w", "k"));
    line_up(b, "k", "a");
    OK(by_id(b, OP_CANCEL, "c"), NULL);
    advance(b, SEC_US);
    EQ_INT(sweep(b).expired, 1);
    struct claim q = claim_run(b, 10, 1);
    EQ_STR(ids_of(b, &q), "w");
    OK(by_id(b, OP_CANCEL, "w"), NULL);
    OK(finish(b, q.token, "w", END_CANCELLED), NULL);
    STATE_IS(b, "w", PAWL_CANCELLED);
    EQ_STR(keys_shown(b, true), "");
    EQ_STR(claimable(b, want(b, 10)), "a");
}

CASE(a_blocked_key_takes_calls_and_runs_none)
{
    blocked_line(b);
    struct call c = accept_spec(b, keyed("c", "k")).call;
    EQ_INT(c.position, 3);
    EQ_INT(c.waiting_for, WAIT_KEY);
    line_up(b, "other", "o");
    EQ_STR(claimable(b, want(b, 10)), "o");
}

CASE(a_delayed_call_joins_a_blocked_key_and_waits)
{
    struct call_spec s = keyed("late", "k");
    s.delay_us = SEC_US;
    blocked_line(b);
    accept_spec(b, s);
    advance(b, SEC_US);
    EQ_INT(sweep(b).joined, 1);
    EQ_INT(get(b, "late").position, 3);
    EQ_INT(claim_run(b, 10, 10).n, 0);
}

CASE(pending_calls_of_a_blocked_key_may_be_cancelled)
{
    blocked_line(b);
    OK(by_id(b, OP_CANCEL, "a"), NULL);
    EQ_INT(get(b, "b").position, 1);
    EQ_STR(keys_shown(b, true), "k");
    EQ_INT(claim_run(b, 10, 10).n, 0);
}

/* ---- Unblocking ------------------------------------------------------------------------------ */

CASE(unblock_skip_lets_the_next_run)
{
    blocked_line(b);
    advance(b, 5 * SEC_US);
    OK(unblock(b, "k", false), NULL);
    EQ_TEXT(b->op.unblock.id, "x");
    STATE_IS(b, "x", PAWL_FAILED);
    EQ_INT(get(b, "x").keep_until_us, now(b) + RETENTION_US);
    EQ_STR(keys_shown(b, true), "");
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a b");
    EQ_INT(q.calls[0].key_no, 2);
}

CASE(unblock_retry_runs_it_again_first)
{
    blocked_line(b);
    advance(b, 5 * SEC_US);
    OK(unblock(b, "k", true), NULL);
    EQ_TEXT(b->op.unblock.id, "x");
    struct call c = get(b, "x");
    EQ_INT(c.state, PAWL_PENDING);
    EQ_INT(c.position, 1);
    EQ_INT(c.counts.attempts, 0);
    EQ_INT(c.counts.redrives, 1);
    EQ_INT(c.run_at_us, now(b));
    EQ_INT(c.waiting_for, WAIT_WORKER);
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "x a b");
    EQ_INT(q.calls[0].key_no, 1); /* it kept its number */
    EQ_INT(q.calls[1].key_no, 2);
}

CASE(retry_of_the_one_that_blocks_is_the_same)
{
    blocked_line(b);
    OK(by_id(b, OP_RETRY, "x"), NULL);
    EQ_STR(keys_shown(b, true), "");
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "x a b");
    EQ_INT(q.calls[0].key_no, 1);
}

CASE(retry_of_another_one_does_not_decide)
{
    line_up(b, "k", "f");
    OK(finish(b, claim_run(b, 1, 1).token, "f", END_REFUSE), NULL);
    blocked_line(b);
    OK(by_id(b, OP_RETRY, "f"), NULL);
    EQ_STR(keys_shown(b, true), "k");
    EQ_INT(get(b, "f").position, 3);
    OK(unblock(b, "k", false), NULL);
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a b f");
}

CASE(retried_after_a_skip_it_goes_to_the_end)
{
    blocked_line(b);
    OK(unblock(b, "k", false), NULL);
    OK(by_id(b, OP_RETRY, "x"), NULL);
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a b x");
    EQ_INT(q.calls[2].key_no, 4);
}

CASE(it_may_block_again)
{
    blocked_line(b);
    for (int i = 0; i < 2; i++) {
        OK(unblock(b, "k", true), NULL);
        struct claim q = claim_run(b, 1, 1);
        EQ_STR(ids_of(b, &q), "x");
        OK(finish(b, q.token, "x", END_REFUSE), NULL);
        EQ_STR(keys_shown(b, true), "k");
    }
}

CASE(unblock_of_what_is_not_blocked)
{
    EQ_STATUS(unblock(b, "k", false), PAWL_NOT_FOUND, NULL);
    line_up(b, "k", "a");
    EQ_STATUS(unblock(b, "k", false), PAWL_STATE, NULL);
    claim_n(b, 1);
    EQ_STATUS(unblock(b, "k", true), PAWL_STATE, NULL);
}

CASE(gc_keeps_the_one_that_blocks)
{
    blocked_line(b);
    advance(b, 10 * RETENTION_US);
    EQ_INT(gc(b).removed, 0);
    FALSE(b->op.gc.more);
    STATE_IS(b, "x", PAWL_FAILED);
    OK(unblock(b, "k", false), NULL);
    EQ_INT(gc(b).removed, 0);
    advance(b, RETENTION_US);
    EQ_INT(gc(b).removed, 1);
    EQ_STATUS(found(b, "x"), PAWL_GONE, NULL);
}
