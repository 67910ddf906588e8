/*
 * get.c - reading calls and their attempts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

CASE(many_at_once_in_the_order_asked)
{
    accept_n(b, "a", 3);
    struct bytes ids[] = { BYTES("a2"), BYTES("none"), BYTES("a0"), BYTES("a2"), BYTES("A0") };
    struct get g = { .ids = ids, .n = 5 };
    OK(store_get(b->s, &b->a, &g, &b->err), &b->err);
    EQ_INT(g.out[0].seq, 3);
    EQ_STATUS(g.found[1], PAWL_NOT_FOUND, NULL);
    EQ_INT(g.out[2].seq, 1);
    EQ_INT(g.out[3].seq, 3);
    EQ_STATUS(g.found[4], PAWL_NOT_FOUND, NULL);
}

CASE(payloads_only_when_asked_for)
{
    accept_one(b, "a");
    finish_ok(b, claim_n(b, 1), "a", "[1]");
    struct bytes id = BYTES("a");
    struct get g = { .ids = &id, .n = 1 };
    OK(store_get(b->s, &b->a, &g, &b->err), &b->err);
    ABSENT(g.out[0].spec.input.bytes);
    ABSENT(g.out[0].result.bytes);
    g.with = WITH_INPUT;
    OK(store_get(b->s, &b->a, &g, &b->err), &b->err);
    EQ_TEXT(g.out[0].spec.input.bytes, "1");
    ABSENT(g.out[0].result.bytes);
    g.with = WITH_RESULT;
    OK(store_get(b->s, &b->a, &g, &b->err), &b->err);
    ABSENT(g.out[0].spec.input.bytes);
    EQ_TEXT(g.out[0].result.bytes, "[1]");
}

CASE(attempts_of_nothing)
{
    struct attempts t;
    EQ_STATUS(store_attempts(b->s, &b->a, BYTES("a"), &t, &b->err), PAWL_NOT_FOUND, &b->err);
    ended_call(b, "a", PAWL_COMPLETED);
    EQ_INT(attempts_of(b, "a").n, 0);
    advance(b, RETENTION_US);
    gc(b);
    EQ_STATUS(store_attempts(b->s, &b->a, BYTES("a"), &t, &b->err), PAWL_GONE, &b->err);
}

CASE(the_last_attempts_are_shown)
{
    struct call_spec s = plan("a");
    s.max_attempts = ATTEMPTS_MAX;
    accept_spec(b, s);
    for (int i = 1; i <= ATTEMPTS_SHOWN_MAX + 1; i++) {
        struct finish_item f = item("a", END_ERROR);
        f.retry_in_us = 0;
        f.error = bytes_of(arena_printf(&b->a, "error %d", i));
        OK(finish_item(b, claim_n(b, 1), f), NULL);
    }
    struct attempts t = attempts_of(b, "a");
    EQ_INT(t.n, ATTEMPTS_SHOWN_MAX);
    EQ_INT(t.v[0].attempt_no, 2);
    EQ_TEXT(t.v[0].error, "error 2");
    EQ_INT(t.v[ATTEMPTS_SHOWN_MAX - 1].attempt_no, ATTEMPTS_SHOWN_MAX + 1);
    EQ_TEXT(get(b, "a").error, "error 101");
}

CASE(the_newest_attempt_speaks_for_a_pending_call)
{
    accept_one(b, "a");
    ABSENT(get(b, "a").error);
    finish_error(b, claim_n(b, 1), "a", "first");
    advance(b, SEC_US);
    struct token t = claim_n(b, 1);
    OK(finish(b, t, "a", END_RELEASE), NULL);
    EQ_TEXT(get(b, "a").error, "first"); /* a call that was handed back has no entry */
    t = claim_n(b, 1);
    OK(finish(b, t, "a", END_TIMEOUT), NULL);
    ABSENT(get(b, "a").error);
}

CASE(errors_of_ended_calls_are_their_outcomes)
{
    ended_call(b, "a", PAWL_DEAD_LETTER);
    EQ_TEXT(get(b, "a").error, "second");
    accept_one(b, "b");
    finish_error(b, claim_n(b, 1), "b", "boom");
    advance(b, SEC_US);
    finish_ok(b, claim_n(b, 1), "b", "1");
    ABSENT(get(b, "b").error);
    EQ_INT(get(b, "b").counts.attempts, 1);
}

CASE(waiting_for_says_why)
{
    struct call_spec s = plan("a");
    s.delay_us = 10;
    accept_spec(b, s);
    EQ_INT(get(b, "a").waiting_for, WAIT_TIME);
    advance(b, 10);
    EQ_INT(get(b, "a").waiting_for, WAIT_WORKER);
    pause_queue(b, "default", true);
    EQ_INT(get(b, "a").waiting_for, WAIT_PAUSED);
    pause_queue(b, "default", false);
    struct token t = claim_n(b, 1);
    EQ_INT(get(b, "a").waiting_for, WAIT_NONE);
    finish_error(b, t, "a", "x");
    EQ_INT(get(b, "a").waiting_for, WAIT_RETRY);
}

/* The name of the schedule lives in the options, beside the columns with the other names. */
CASE(what_is_shown_is_not_what_was_read_later)
{
    struct call_spec s = plan("a"), other = plan("b");
    s.schedule = BYTES("nightly");
    s.scheduled_us = 1000000;
    other.schedule = BYTES("another");
    accept_spec(b, s);
    accept_spec(b, other);
    struct call read = get(b, "a");
    get(b, "b");
    EQ_TEXT(read.spec.schedule, "nightly");
    EQ_INT(read.spec.scheduled_us, 1000000);
    struct claim q = claim_as(b, want(b, 1));
    EQ_INT(q.n, 1);
    EQ_STR(claimable(b, want(b, 1)), "b");
    EQ_TEXT(q.calls[0].spec.schedule, "nightly");
    finish_ok(b, q.token, "a", "1");
    OK(by_id(b, OP_CANCEL, "b"), NULL);
    read = get(b, "a");
    for (int i = 0; i < 3; i++) {
        advance(b, RETENTION_US);
        gc(b);
        accept_spec(b, settled(b, (other.id = bytes_of(arena_printf(&b->a, "c%d", i)), other)));
    }
    EQ_TEXT(read.spec.schedule, "nightly");
}
