/*
 * lost_answer.c - the commit was stored but its answer was lost: store_commit() repeats it, and it
 * takes effect once.
 *
 * Runs on the fault wrapper over the engine of the case.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "conform.h"

static struct conform_fixture *faulty(const char *over)
{
    static char url[200];
    if (strncmp(over, "fault+", 6) == 0)
        skip("%s is faulty already", over);
    snprintf(url, sizeof url, "fault+%s", over);
    return conform_fixture_open(url);
}

TEST(a_lost_accept_is_stored_once)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = faulty(param);
    struct op op = accept_op(b, plan("a"));
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
    OK(one(b, &op), &op.err);
    EQ_INT(store_fault_count(), 2); /* the commit was sent twice */
    EQ_INT(op.accept.out[0].call.seq, 1);
    EQ_INT(accept_one(b, "b"), 2);
}

TEST(a_lost_claim_is_the_same_lease)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = faulty(param);
    accept_n(b, "a", 3);
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
    struct claim q = claim_as(b, want(b, 2));
    EQ_INT(q.n, 2);
    EQ_INT(q.calls[0].seq, 1);
    STATE_IS(b, "a2", PAWL_PENDING);
    finish_ok(b, q.token, "a0", "1");
    finish_ok(b, q.token, "a1", "1");
}

TEST(a_lost_finish_is_answered_as_the_first)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = faulty(param);
    accept_n(b, "a", 2);
    struct token t = claim_for(b, 2, 30 * SEC_US);
    struct call_spec send[] = { settled(b, plan("sent")) };
    struct finish_item v[] = { item("a0", END_RESULT), item("a1", END_ERROR) };
    v[0].send = send;
    v[0].n_send = 1;
    v[1].error = BYTES("boom");
    struct op op = finish_op(t, v, 2);
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
    OK(one(b, &op), &op.err);
    EQ_INT(v[0].state, PAWL_COMPLETED);
    EQ_INT(v[1].state, PAWL_PENDING);
    EQ_TEXT(v[1].error_out, "boom");
    EQ_INT(attempts_of(b, "a1").n, 1);
    EQ_INT(accept_one(b, "next"), 4);
}

TEST(a_lost_group_is_repeated_as_a_whole)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = faulty(param);
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    struct finish_item f = item("a", END_RESULT);
    struct op end = finish_op(t, &f, 1), accept = accept_op(b, plan("b"));
    struct op claim = claim_op(want(b, 5)), cancel = by_id_op(OP_CANCEL, "b");
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
    TOGETHER(b, &end, &accept, &claim, &cancel);
    EQ_INT(f.state, PAWL_COMPLETED);
    EQ_INT(claim.claim.n, 1);
    EQ_INT(cancel.by_id.state, PAWL_PROCESSING);
    finish_ok(b, claim.claim.token, "b", "1");
}

TEST(a_refused_commit_stores_nothing)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = faulty(param);
    struct op op = accept_op(b, plan("a"));
    struct op *v = &op;
    op.a = &b->a;
    store_fault(1, FAULT_BEFORE, PAWL_BROKEN);
    EQ_STATUS(store_commit(b->s, &v, 1), PAWL_BROKEN, &op.err);
    EQ_STATUS(op.status, PAWL_BROKEN, &op.err);
    store_fault(0, FAULT_BEFORE, PAWL_OK);
    EQ_STATUS(found(b, "a"), PAWL_NOT_FOUND, NULL);
}

TEST(a_busy_database_is_asked_again)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = faulty(param);
    store_fault(1, FAULT_BEFORE, PAWL_BUSY);
    EQ_INT(accept_one(b, "a"), 1);
}
