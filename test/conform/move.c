/*
 * move.c - changing when, in which order or in which queue a pending call runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static enum pawl_status move(struct conform_fixture *b, const char *id, int64_t run_at_us,
                             int priority, const char *queue)
{
    struct op op = { .kind = OP_MOVE,
                     .by_id = { .id = bytes_of(id),
                                .run_at_us = run_at_us,
                                .priority = priority,
                                .queue = bytes_of(queue) } };
    return one(b, &op);
}

CASE(a_call_is_moved_in_time)
{
    int64_t seq = accept_one(b, "a");
    OK(move(b, "a", now(b) + 50, PAWL_SAME, NULL), NULL);
    EQ_INT(b->op.by_id.seq, seq);
    EQ_INT(b->op.by_id.state, PAWL_PENDING);
    EQ_INT(get(b, "a").run_at_us, now(b) + 50);
    EQ_INT(claim_as(b, want(b, 1)).n, 0);
    OK(move(b, "a", now(b) - 50, PAWL_SAME, NULL), NULL);
    EQ_INT(get(b, "a").run_at_us, now(b)); /* a time in the past means now */
    EQ_STR(claimable(b, want(b, 1)), "a");
}

CASE(a_call_is_moved_in_order_and_place)
{
    accept_one(b, "a");
    accept_one(b, "b");
    OK(move(b, "b", 0, 10, NULL), NULL);
    EQ_STR(claimable(b, want(b, 2)), "b a");
    OK(move(b, "b", 0, PAWL_SAME, "q2"), NULL);
    struct call c = get(b, "b");
    EQ_TEXT(c.spec.queue, "q2");
    EQ_INT(c.spec.priority, 10);
    EQ_INT(queue_of(b, "q2").pending, 1);
    EQ_INT(queue_of(b, "default").pending, 1);
    struct claim q = want(b, 5);
    struct bytes queue = BYTES("default");
    q.queues = &queue;
    q.n_queues = 1;
    EQ_STR(claimable(b, q), "a");
}

CASE(it_shows_what_it_was_moved_to_for_good)
{
    accept_one(b, "a");
    advance(b, 5);
    OK(move(b, "a", now(b) + 1, 3, "q2"), NULL);
    advance(b, 1);
    finish_ok(b, claim_n(b, 1), "a", "1");
    struct call c = get(b, "a");
    EQ_TEXT(c.spec.queue, "q2");
    EQ_INT(c.spec.priority, 3);
    EQ_INT(c.run_at_us, now(b));
    struct page page;
    struct query q = { .queue = BYTES("q2"), .limit = 10 };
    OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
    EQ_INT(page.n, 1);
    q.queue = BYTES("default");
    OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
    EQ_INT(page.n, 0);
}

CASE(a_retried_call_keeps_what_it_was_moved_to)
{
    accept_one(b, "a");
    OK(move(b, "a", 0, 9, "q2"), NULL);
    OK(finish(b, claim_n(b, 1), "a", END_REFUSE), NULL);
    OK(by_id(b, OP_RETRY, "a"), NULL);
    EQ_TEXT(get(b, "a").spec.queue, "q2");
    EQ_INT(get(b, "a").spec.priority, 9);
}

CASE(moving_nothing_leaves_it_as_it_is)
{
    accept_one(b, "a");
    finish_error(b, claim_n(b, 1), "a", "x");
    const char *before = snapshot(b);
    OK(move(b, "a", 0, PAWL_SAME, NULL), NULL);
    EQ_STR(snapshot(b), before);
}

CASE(a_retry_is_moved_and_keeps_its_attempts)
{
    accept_one(b, "a");
    finish_error(b, claim_n(b, 1), "a", "x");
    OK(move(b, "a", now(b), 1, "q2"), NULL);
    struct claim q = claim_as(b, want(b, 1));
    EQ_INT(q.n, 1);
    EQ_INT(q.calls[0].counts.attempts, 1);
}

CASE(a_moved_call_still_expires)
{
    struct call_spec s = plan("a");
    s.expires_in_us = 10;
    accept_spec(b, s);
    OK(move(b, "a", now(b) + 5, 2, "q2"), NULL);
    EQ_INT(get(b, "a").expires_us, now(b) + 10);
    advance(b, 10);
    EQ_INT(sweep(b).expired, 1);
}

CASE(only_pending_calls_move)
{
    accept_one(b, "a");
    claim_n(b, 1);
    EQ_STATUS(move(b, "a", 0, 1, NULL), PAWL_STATE, NULL);
    EQ_INT(b->op.by_id.state, PAWL_PROCESSING);
    ended_call(b, "b", PAWL_COMPLETED);
    EQ_STATUS(move(b, "b", 0, 1, "nowhere"), PAWL_STATE, NULL);
    EQ_STATUS(move(b, "c", 0, 1, NULL), PAWL_NOT_FOUND, NULL);
    advance(b, RETENTION_US);
    gc(b);
    EQ_STATUS(move(b, "b", 0, 1, NULL), PAWL_GONE, NULL);
    struct queue_rows rows;
    OK(store_queues(b->s, &b->a, &rows, &b->err), &b->err);
    EQ_INT(rows.n, 1); /* a refused move creates no lane */
}
