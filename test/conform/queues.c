/*
 * queues.c - the figures of queues, and pausing them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

CASE(a_queue_counts_its_calls)
{
    struct call_spec s = plan("due");
    s.queue = BYTES("q");
    accept_spec(b, s);
    int64_t first = now(b);
    s.id = BYTES("later");
    s.delay_us = SEC_US;
    accept_spec(b, s);
    s.id = BYTES("other type");
    s.type = BYTES("u");
    s.delay_us = 0;
    advance(b, 5);
    accept_spec(b, s);
    struct queue_row r = queue_of(b, "q");
    EQ_INT(r.pending, 3);
    EQ_INT(r.due, 2);
    EQ_INT(r.processing, 0);
    EQ_INT(r.oldest_due_us, first);
    FALSE(r.paused);
    struct token t = claim_n(b, 1);
    r = queue_of(b, "q");
    EQ_INT(r.pending, 2);
    EQ_INT(r.due, 1);
    EQ_INT(r.processing, 1);
    EQ_INT(r.oldest_due_us, now(b));
    finish_ok(b, t, "due", "1");
    EQ_INT(queue_of(b, "q").processing, 0);
    finish_ok(b, claim_n(b, 1), "other type", "1");
    EQ_INT(queue_of(b, "q").oldest_due_us, 0);
}

CASE(a_queue_is_known_for_good)
{
    struct call_spec s = plan("a");
    s.queue = BYTES("was here");
    accept_spec(b, s);
    finish_ok(b, claim_n(b, 1), "a", "1");
    advance(b, RETENTION_US + REMEMBER_US);
    gc(b);
    gc(b);
    EQ_INT(queue_of(b, "was here").pending, 0);
}

CASE(queues_come_by_name)
{
    const char *names[] = { "b", "a", "B", "a b", "\xc3\xa4" };
    for (int i = 0; i < 5; i++) {
        struct call_spec s = plan(names[i]);
        s.queue = bytes_of(names[i]);
        accept_spec(b, s);
    }
    pause_queue(b, "aa", true);
    struct queue_rows rows;
    OK(store_queues(b->s, &b->a, &rows, &b->err), &b->err);
    const char *want_names[] = { "B", "a", "a b", "aa", "b", "\xc3\xa4" };
    EQ_INT(rows.n, 6);
    for (int i = 0; i < 6; i++)
        EQ_TEXT(rows.v[i].queue, want_names[i]);
    TRUE(rows.v[3].paused);
}

CASE(a_queue_need_not_exist_to_be_paused)
{
    pause_queue(b, "q", true);
    TRUE(queue_of(b, "q").paused);
    struct call_spec s = plan("a");
    s.queue = BYTES("q");
    OK(accept_spec(b, s).status, NULL); /* calls are still accepted */
    EQ_INT(accept_spec(b, s).call.waiting_for, WAIT_PAUSED);
    EQ_INT(claim_as(b, want(b, 1)).n, 0);
    EQ_INT(queue_of(b, "q").due, 1);
    pause_queue(b, "q", false);
    pause_queue(b, "q", false);
    FALSE(queue_of(b, "q").paused);
    EQ_STR(claimable(b, want(b, 1)), "a");
}

CASE(a_queue_without_calls_goes_with_its_pause)
{
    pause_queue(b, "typo", true);
    pause_queue(b, "never paused", false);
    TRUE(queue_of(b, "typo").paused);
    pause_queue(b, "typo", false);
    struct queue_rows rows;
    OK(store_queues(b->s, &b->a, &rows, &b->err), &b->err);
    EQ_INT(rows.n, 0);
    struct call_spec s = plan("a"); /* a queue with that name is like any other */
    s.queue = BYTES("typo");
    accept_spec(b, s);
    EQ_STR(claimable(b, want(b, 1)), "a");
    pause_queue(b, "typo", true);
    EQ_STR(claimable(b, want(b, 1)), "");
    pause_queue(b, "typo", false);
    EQ_INT(queue_of(b, "typo").pending, 1);
}

CASE(pausing_does_not_stop_what_runs)
{
    accept_n(b, "a", 2);
    struct token t = claim_n(b, 2);
    pause_queue(b, "default", true);
    finish_ok(b, t, "a0", "1");
    finish_error(b, t, "a1", "x");
    advance(b, SEC_US);
    EQ_INT(get(b, "a1").waiting_for, WAIT_PAUSED);
}

CASE(pausing_one_queue_leaves_the_others)
{
    struct call_spec s = plan("a");
    s.queue = BYTES("q");
    accept_spec(b, s);
    accept_one(b, "b");
    pause_queue(b, "q", true);
    EQ_STR(claimable(b, want(b, 5)), "b");
}
