/*
 * claim.c - claiming: order, lanes, limits, and what a claim reports about the calls it left.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static void accept_at(struct conform_fixture *b, const char *id, const char *queue,
                      const char *type, int priority, int64_t delay_us)
{
    struct call_spec s = plan(id);
    s.queue = bytes_of(queue);
    s.type = bytes_of(type);
    s.priority = priority;
    s.delay_us = delay_us;
    OK(accept_spec(b, s).status, NULL);
}

CASE(a_claimed_call_is_processing)
{
    struct call_spec s = plan("a");
    s.input.bytes = BYTES("[1,2]");
    accept_spec(b, s);
    advance(b, 5);
    struct claim q = claim_as(b, want(b, 10));
    EQ_INT(q.n, 1);
    EQ_INT(q.until_us, 0);
    EQ_INT(q.calls[0].state, PAWL_PROCESSING);
    EQ_INT(q.calls[0].claimed_us, now(b));
    EQ_INT(q.calls[0].seq, 1);
    EQ_TEXT(q.calls[0].spec.input.bytes, "[1,2]");
    EQ_TEXT(q.calls[0].node, "n1");
    EQ_INT(q.calls[0].counts.attempts, 0);
    struct call c = get(b, "a");
    EQ_INT(c.state, PAWL_PROCESSING);
    EQ_INT(c.claimed_us, now(b));
    EQ_INT(c.started_us, 0);
    EQ_INT(c.waiting_for, WAIT_NONE);
    EQ_TEXT(c.node, "n1");
}

CASE(the_worker_is_shown_as_the_node)
{
    accept_one(b, "a");
    struct claim q = want(b, 1);
    q.worker = BYTES("w");
    q = claim_as(b, q);
    EQ_TEXT(q.calls[0].node, "w");
    EQ_TEXT(get(b, "a").node, "w");
}

CASE(nothing_to_claim_is_an_answer)
{
    struct claim q = claim_as(b, want(b, 10));
    EQ_INT(q.n, 0);
    FALSE(q.more);
    EQ_INT(q.next_due_us, 0);
    struct op op = { .kind = OP_EXTEND, .extend = { .token = q.token, .lease_us = SEC_US } };
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, &op.err); /* no lease was stored */
}

CASE(a_lease_with_an_end_says_when)
{
    accept_one(b, "a");
    struct claim q = want(b, 1);
    q.lease_us = 30 * SEC_US;
    EQ_INT(claim_as(b, q).until_us, now(b) + 30 * SEC_US);
}

CASE(best_first_over_all_lanes)
{
    accept_at(b, "low", "q1", "t", -1, 0);
    accept_at(b, "a", "q2", "u", 0, 2);
    accept_at(b, "b", "q1", "t", 0, 1);
    accept_at(b, "c", "q3", "t", 0, 1);
    accept_at(b, "high", "q3", "u", 5, 3);
    advance(b, 10);
    EQ_STR(claimable(b, want(b, 10)), "high b c a low");
    EQ_STR(claimable(b, want(b, 2)), "high b");
}

CASE(a_queue_may_come_last)
{
    accept_at(b, "full-1", "full", "t", 0, 0);
    accept_at(b, "full-2", "full", "u", 0, 0);
    accept_at(b, "full-3", "full", "t", 5, 0);
    accept_at(b, "other", "other", "t", 0, 0);
    accept_at(b, "low", "other", "t", -5, 0);
    struct claim q = want(b, 10);
    q.last = BYTES("full");
    EQ_STR(claimable(b, q), "full-3 other full-1 full-2 low");
    q.max = 2;
    EQ_STR(claimable(b, q), "full-3 other");
    q.last = BYTES("other");
    EQ_STR(claimable(b, q), "full-3 full-1");
    q.last = BYTES("nobody's");
    EQ_STR(claimable(b, q), "full-3 full-1");
}

CASE(a_queue_may_be_left_out)
{
    accept_at(b, "full", "full", "t", 5, 0);
    accept_at(b, "soon", "full", "t", 5, 10);
    accept_at(b, "other", "other", "t", 0, 0);
    accept_at(b, "late", "other", "t", 0, 20);
    struct claim q = want(b, 10);
    q.without = BYTES("full");
    q = claim_as(b, q);
    EQ_INT(q.n, 1);
    EQ_TEXT(q.calls[0].spec.id, "other");
    /* The claim leaves out the queue "full": its calls are neither due nor coming. */
    FALSE(q.more);
    EQ_INT(q.next_due_us, now(b) + 20);
    EQ_STR(claimable(b, want(b, 10)), "full");
}

CASE(what_is_not_due_waits)
{
    accept_at(b, "later", "q", "t", 1000, 10);
    accept_at(b, "now", "q", "t", -1000, 0);
    accept_at(b, "last", "q", "t", -1000, 20);
    struct claim q = claim_as(b, want(b, 10));
    EQ_INT(q.n, 1);
    EQ_TEXT(q.calls[0].spec.id, "now");
    FALSE(q.more);
    EQ_INT(q.next_due_us, now(b) + 10);
    advance(b, 9);
    EQ_INT(claim_as(b, want(b, 10)).n, 0);
    advance(b, 1); /* run_at <= now */
    EQ_STR(claimable(b, want(b, 10)), "later");
}

CASE(more_means_something_due_was_left)
{
    accept_n(b, "a", 3);
    struct claim q = claim_as(b, want(b, 2));
    TRUE(q.more);
    EQ_INT(q.next_due_us, 0);
    q = claim_as(b, want(b, 2));
    EQ_INT(q.n, 1);
    FALSE(q.more);
}

CASE(more_is_true_exactly_at_max)
{
    accept_n(b, "a", 2);
    FALSE(claim_as(b, want(b, 2)).more);
}

CASE(a_claim_sees_only_its_queues_and_types)
{
    accept_at(b, "1", "q1", "t1", 0, 0);
    accept_at(b, "2", "q1", "t2", 0, 0);
    accept_at(b, "3", "q2", "t1", 0, 0);
    accept_at(b, "4", "q2", "t2", 0, 50);
    struct bytes queues[] = { BYTES("q2"), BYTES("none") }, types[] = { BYTES("t1"), BYTES("t3") };
    struct claim q = want(b, 10);
    q.queues = queues;
    q.n_queues = 2;
    EQ_STR(claimable(b, q), "3");
    q.token = fresh_token(b);
    q.types = types;
    q.n_types = 2;
    EQ_STR(claimable(b, q), "3");
    q.token = fresh_token(b);
    q.n_queues = 0;
    EQ_STR(claimable(b, q), "1 3");
    q.token = fresh_token(b);
    struct bytes only[] = { BYTES("t2") };
    q.types = only;
    q.n_types = 1;
    q.max = 1;
    q = claim_as(b, q);
    EQ_TEXT(q.calls[0].spec.id, "2");
    FALSE(q.more); /* the claim does not touch the others */
    EQ_INT(q.next_due_us, now(b) + 50);
}

CASE(a_type_nobody_serves_is_invisible)
{
    accept_n(b, "other", 1000);
    accept_at(b, "mine", "default", "mine", -5, 0);
    struct claim q = want(b, 10);
    struct bytes type = BYTES("mine");
    q.types = &type;
    q.n_types = 1;
    q = claim_as(b, q);
    EQ_INT(q.n, 1);
    FALSE(q.more);
    EQ_INT(q.next_due_us, 0);
}

CASE(a_paused_queue_gives_nothing)
{
    accept_at(b, "a", "q1", "t", 5, 0);
    accept_at(b, "b", "q2", "t", 0, 0);
    accept_at(b, "c", "q1", "t", 0, 9);
    pause_queue(b, "q1", true);
    EQ_INT(get(b, "a").waiting_for, WAIT_PAUSED);
    struct claim q = claim_as(b, want(b, 10));
    EQ_INT(q.n, 1);
    EQ_TEXT(q.calls[0].spec.id, "b");
    FALSE(q.more);
    EQ_INT(q.next_due_us, 0);
    pause_queue(b, "q1", false);
    EQ_STR(claimable(b, want(b, 10)), "a");
}

CASE(the_same_claim_again_returns_the_same_lease)
{
    accept_at(b, "low", "q", "t", 0, 0);
    accept_at(b, "high", "q", "t", 1, 0);
    accept_at(b, "third", "q", "t", -1, 0);
    struct claim first = want(b, 2);
    first.lease_us = 30 * SEC_US;
    struct claim q = claim_as(b, first);
    advance(b, SEC_US);
    struct claim again = claim_as(b, first);
    EQ_INT(again.n, 2);
    EQ_TEXT(again.calls[0].spec.id, "high");
    EQ_TEXT(again.calls[1].spec.id, "low");
    EQ_TEXT(again.calls[0].spec.input.bytes, "1");
    EQ_INT(again.until_us, q.until_us);
    EQ_INT(again.calls[0].claimed_us, now(b) - SEC_US);
    FALSE(again.more);
    EQ_INT(again.next_due_us, 0);
    finish_ok(b, q.token, "high", "1");
    again = claim_as(b, first);
    EQ_INT(again.n, 1);
    EQ_TEXT(again.calls[0].spec.id, "low");
    STATE_IS(b, "third", PAWL_PENDING);
}

CASE(a_claim_may_take_a_thousand)
{
    accept_n(b, "a", CLAIM_MAX + 1);
    struct claim q = claim_as(b, want(b, CLAIM_MAX));
    EQ_INT(q.n, CLAIM_MAX);
    TRUE(q.more);
    for (int i = 0; i < CLAIM_MAX; i++)
        EQ_INT(q.calls[i].seq, i + 1);
}

static void accept_big(struct conform_fixture *b, const char *id, size_t len)
{
    struct call_spec s = plan(id);
    char *data = arena_zalloc(&b->a, len, 1);
    TRUE(data != NULL);
    s.input = (struct payload){ PAWL_BYTES, { data, len } };
    OK(accept_spec(b, s).status, NULL);
}

CASE(inputs_of_one_claim_have_an_edge)
{
    int n = CLAIM_LEN_MAX / INPUT_LEN_MAX;
    for (int i = 0; i < n - 1; i++)
        accept_big(b, arena_printf(&b->a, "big%d", i), INPUT_LEN_MAX);
    accept_big(b, "almost", INPUT_LEN_MAX - 1);
    accept_big(b, "brim", 1);
    accept_big(b, "over", 1);
    accept_big(b, "empty", 0);
    struct claim q = claim_as(b, want(b, 100));
    EQ_INT(q.n, n + 1);
    EQ_TEXT(q.calls[n].spec.id, "brim");
    TRUE(q.more);
    EQ_STR(claimable(b, want(b, 100)), "over empty");
}

CASE(the_first_that_does_not_fit_ends_the_claim)
{
    int n = CLAIM_LEN_MAX / INPUT_LEN_MAX;
    for (int i = 0; i < n - 1; i++)
        accept_big(b, arena_printf(&b->a, "big%d", i), INPUT_LEN_MAX);
    accept_big(b, "brim", 2);
    accept_big(b, "over", INPUT_LEN_MAX);
    accept_big(b, "small", 1); /* it would fit, but the order wins */
    EQ_INT(claim_as(b, want(b, 100)).n, n);
}

CASE(a_hundred_thousand_pending_are_claimed_in_order, .deadline_s = 120)
{
    int total = check_long() ? 100000 : 20000, batch = 10000;
    for (int i = 0; i < total; i += batch) {
        accept_n(b, arena_printf(&b->a, "b%d-", i), batch);
        arena_release(&b->a);
        arena_init(&b->a, 1u << 30);
    }
    for (int i = 0; i < total; i += CLAIM_MAX) {
        struct claim q = claim_as(b, want(b, CLAIM_MAX));
        EQ_INT(q.n, CLAIM_MAX);
        EQ_INT(q.calls[0].seq, i + 1);
        EQ_INT(q.calls[CLAIM_MAX - 1].seq, i + CLAIM_MAX);
        arena_release(&b->a);
        arena_init(&b->a, 1u << 30);
    }
    EQ_INT(claim_as(b, want(b, 1)).n, 0);
}
