/*
 * send.c - calls sent with an outcome: accepted in the same commit, or not at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static enum pawl_status finish_sending(struct conform_fixture *b, struct token t, const char *id,
                                       const struct call_spec *send, size_t n)
{
    struct finish_item f = item(id, END_RESULT);
    f.send = send;
    f.n_send = n;
    return finish_item(b, t, f);
}

CASE(sends_are_accepted_with_the_outcome)
{
    accept_one(b, "a");
    struct call_spec s = plan("a.1");
    s.delay_us = 5;
    s.parent = BYTES("a");
    struct call_spec send[] = { settled(b, s), settled(b, plan("a.2")) };
    OK(finish_sending(b, claim_n(b, 1), "a", send, 2), &b->err);
    EQ_INT(b->item.state, PAWL_COMPLETED);
    struct call c = get(b, "a.1");
    EQ_INT(c.seq, 2);
    EQ_INT(c.run_at_us, now(b) + 5);
    EQ_TEXT(c.spec.parent, "a");
    EQ_INT(get(b, "a.2").seq, 3);
}

CASE(a_known_send_is_fine)
{
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    accept_one(b, "known");
    struct call_spec send[] = { settled(b, plan("known")), settled(b, plan("new")),
                                settled(b, plan("new")) };
    OK(finish_sending(b, t, "a", send, 3), &b->err);
    EQ_INT(b->item.state, PAWL_COMPLETED);
    EQ_INT(get(b, "new").seq, 3);
    EQ_INT(accept_one(b, "next"), 4);
}

CASE(a_send_that_is_gone_is_fine)
{
    ended_call(b, "old", PAWL_COMPLETED);
    advance(b, RETENTION_US);
    EQ_INT(gc(b).removed, 1);
    accept_one(b, "a");
    struct call_spec send[] = { settled(b, plan("old")) };
    OK(finish_sending(b, claim_n(b, 1), "a", send, 1), &b->err);
    EQ_INT(b->item.state, PAWL_COMPLETED);
    EQ_STATUS(found(b, "old"), PAWL_GONE, NULL);
}

CASE(a_conflicting_send_fails_the_sender_for_good)
{
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    accept_one(b, "taken");
    struct call_spec other = plan("taken");
    other.input.bytes = BYTES("2");
    struct call_spec send[] = { settled(b, plan("first")), settled(b, other) };
    struct finish_item f = item("a", END_RESULT);
    f.result = (struct payload){ PAWL_JSON, BYTES("1") };
    f.send = send;
    f.n_send = 2;
    OK(finish_item(b, t, f), &b->err);
    EQ_INT(b->item.state, PAWL_FAILED);
    EQ_TEXT(b->item.error_out, "outgoing call \"taken\" already exists with other content");
    EQ_STATUS(found(b, "first"), PAWL_NOT_FOUND, NULL);
    struct call c = get(b, "a");
    EQ_TEXT(c.error, "outgoing call \"taken\" already exists with other content");
    EQ_INT(c.result.form, PAWL_NOTHING);
    EQ_INT(accept_one(b, "next"), 3); /* no number was used */
    EQ_INT(attempts_of(b, "a").v[0].how, END_REFUSE);
    OK(finish_item(b, t, f), &b->err); /* a repeat gets the same answer */
    EQ_INT(b->item.state, PAWL_FAILED);
}

CASE(sends_that_contradict_each_other)
{
    accept_one(b, "a");
    struct call_spec other = plan("x");
    other.input.bytes = BYTES("2");
    struct call_spec send[] = { settled(b, plan("x")), settled(b, other) };
    OK(finish_sending(b, claim_n(b, 1), "a", send, 2), &b->err);
    EQ_INT(b->item.state, PAWL_FAILED);
    EQ_STATUS(found(b, "x"), PAWL_NOT_FOUND, NULL);
}

CASE(only_a_result_sends)
{
    accept_one(b, "a");
    struct call_spec send[] = { settled(b, plan("x")) };
    struct finish_item f = item("a", END_ERROR);
    f.send = send;
    f.n_send = 1;
    OK(finish_item(b, claim_n(b, 1), f), &b->err);
    EQ_STATUS(found(b, "x"), PAWL_NOT_FOUND, NULL);
}

CASE(one_items_conflict_is_not_its_neighbours)
{
    accept_n(b, "a", 2);
    struct token t = claim_n(b, 2);
    struct call_spec mine = plan("x"), other = plan("x");
    other.input.bytes = BYTES("2");
    struct call_spec first[] = { settled(b, mine) }, second[] = { settled(b, other) };
    struct finish_item v[] = { item("a0", END_RESULT), item("a1", END_RESULT) };
    v[0].send = first;
    v[1].send = second;
    v[0].n_send = v[1].n_send = 1;
    struct op op = finish_op(t, v, 2);
    OK(one(b, &op), &op.err);
    EQ_INT(v[0].state, PAWL_COMPLETED);
    EQ_INT(v[1].state, PAWL_FAILED);
    STATE_IS(b, "x", PAWL_PENDING);
}

CASE(a_lost_lease_sends_nothing)
{
    accept_one(b, "a");
    struct call_spec send[] = { settled(b, plan("x")) };
    EQ_STATUS(finish_sending(b, fresh_token(b), "a", send, 1), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(found(b, "x"), PAWL_NOT_FOUND, NULL);
}

CASE(a_repeat_sends_nothing_twice)
{
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    struct call_spec send[] = { settled(b, plan("x")) };
    OK(finish_sending(b, t, "a", send, 1), &b->err);
    ended_call(b, "other", PAWL_COMPLETED);
    const char *before = snapshot(b);
    OK(finish_sending(b, t, "a", send, 1), &b->err);
    EQ_STR(snapshot(b), before);
}

CASE(many_sends)
{
    accept_one(b, "a");
    struct call_spec *send = arena_zalloc(&b->a, SEND_MAX, sizeof *send);
    for (int i = 0; i < SEND_MAX; i++)
        send[i] = settled(b, plan(arena_printf(&b->a, "a.%d", i)));
    OK(finish_sending(b, claim_n(b, 1), "a", send, SEND_MAX), &b->err);
    EQ_INT(get(b, "a.9999").seq, SEND_MAX + 1);
}
