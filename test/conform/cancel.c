/*
 * cancel.c - cancelling: pending calls at once, processing calls by a stored cancel request.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

CASE(a_pending_call_is_cancelled_at_once)
{
    accept_one(b, "a");
    finish_error(b, claim_n(b, 1), "a", "boom");
    OK(by_id(b, OP_CANCEL, "a"), NULL);
    EQ_INT(b->op.by_id.seq, 1);
    EQ_INT(b->op.by_id.state, PAWL_CANCELLED);
    struct call c = get(b, "a");
    EQ_INT(c.state, PAWL_CANCELLED);
    EQ_INT(c.counts.attempts, 1); /* unchanged */
    EQ_INT(c.finished_us, now(b));
    EQ_INT(c.keep_until_us, now(b) + RETENTION_US);
    EQ_INT(c.claimed_us, 0);
    EQ_INT(c.started_us, 0);
    ABSENT(c.node);
    ABSENT(c.error);
    FALSE(c.cancel_requested);
    advance(b, 10 * SEC_US);
    EQ_INT(claim_as(b, want(b, 1)).n, 0);
}

CASE(a_processing_call_gets_a_cancel_request)
{
    int64_t seq = accept_one(b, "a");
    claim_n(b, 1);
    for (int i = 0; i < 2; i++) {
        OK(by_id(b, OP_CANCEL, "a"), NULL);
        EQ_INT(b->op.by_id.state, PAWL_PROCESSING);
    }
    TRUE(get(b, "a").cancel_requested);
    struct cancel_requests w;
    OK(store_cancel_requests(b->s, &b->a, &w, &b->err), &b->err);
    EQ_INT(w.n, 1); /* stored once */
    EQ_INT(w.seqs[0], seq);
}

static enum pawl_state requested_then(struct conform_fixture *b, enum ending how)
{
    char *id = arena_printf(&b->a, "w%d", (int)how);
    accept_one(b, id);
    struct token t = claim_n(b, 1);
    OK(by_id(b, OP_CANCEL, id), NULL);
    struct finish_item f = item(id, how);
    f.result = (struct payload){ PAWL_JSON, BYTES("1") };
    f.error = BYTES("boom");
    OK(finish_item(b, t, f), &b->err);
    struct call c = get(b, id);
    EQ_INT(c.state, b->item.state);
    FALSE(c.cancel_requested); /* an outcome removes the cancel request */
    struct cancel_requests w;
    OK(store_cancel_requests(b->s, &b->a, &w, &b->err), &b->err);
    EQ_INT(w.n, 0);
    if (c.state == PAWL_CANCELLED) {
        ABSENT(c.error);
        EQ_INT(c.result.form, PAWL_NOTHING);
        EQ_TEXT(c.node, "n1");
    }
    OK(finish_item(b, t, f), &b->err);
    EQ_INT(b->item.state, c.state);
    return c.state;
}

CASE(whichever_comes_first_wins)
{
    EQ_INT(requested_then(b, END_RESULT), PAWL_COMPLETED);
    EQ_INT(requested_then(b, END_REFUSE), PAWL_FAILED);
    EQ_INT(requested_then(b, END_ERROR), PAWL_CANCELLED);
    EQ_INT(requested_then(b, END_TIMEOUT), PAWL_CANCELLED);
    EQ_INT(requested_then(b, END_LATER), PAWL_CANCELLED);
    EQ_INT(requested_then(b, END_RELEASE), PAWL_CANCELLED);
    EQ_INT(requested_then(b, END_CANCELLED), PAWL_CANCELLED);
    EQ_INT(attempts_of(b, "w2").n, 1); /* an error still counts as an attempt */
}

CASE(a_cancel_request_is_never_undone_by_a_reclaim)
{
    accept_n(b, "a", 2);
    claim_for(b, 2, 30 * SEC_US);
    OK(by_id(b, OP_CANCEL, "a1"), NULL);
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 2);
    EQ_INT(b->op.n_ended, 1);
    EQ_TEXT(b->op.ended[0], "a1");
    STATE_IS(b, "a0", PAWL_PENDING);
    STATE_IS(b, "a1", PAWL_CANCELLED);
    EQ_INT(get(b, "a1").counts.lost, 1);
}

CASE(a_cancel_request_meets_a_node_that_leaves)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_one(b, "a");
    claim_n(b, 1);
    OK(by_id(b, OP_CANCEL, "a"), NULL);
    OK(node(b, OP_LEAVE, "n1", "b1"), NULL);
    EQ_INT(b->op.n_ended, 1);
    STATE_IS(b, "a", PAWL_CANCELLED);
    EQ_INT(get(b, "a").counts.lost, 0);
}

CASE(cancelling_twice_is_fine)
{
    ended_call(b, "a", PAWL_CANCELLED);
    const char *before = snapshot(b);
    OK(by_id(b, OP_CANCEL, "a"), NULL);
    EQ_INT(b->op.by_id.state, PAWL_CANCELLED);
    EQ_STR(snapshot(b), before);
}

CASE(what_has_ended_otherwise_stands_in_the_way)
{
    enum pawl_state states[] = { PAWL_COMPLETED, PAWL_FAILED, PAWL_DEAD_LETTER, PAWL_EXPIRED };
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        const char *id = pawl_state_name(states[i]);
        ended_call(b, id, states[i]);
        EQ_STATUS(by_id(b, OP_CANCEL, id), PAWL_STATE, NULL);
        EQ_INT(b->op.by_id.state, states[i]);
        EQ_INT(b->op.by_id.seq, i + 1);
        EQ_INT(state_of(b, id), states[i]);
    }
}

CASE(cancel_of_nothing)
{
    EQ_STATUS(by_id(b, OP_CANCEL, "a"), PAWL_NOT_FOUND, NULL);
    ended_call(b, "a", PAWL_COMPLETED);
    advance(b, RETENTION_US);
    gc(b);
    EQ_STATUS(by_id(b, OP_CANCEL, "a"), PAWL_GONE, NULL);
}

CASE(extend_names_what_is_to_be_cancelled)
{
    accept_n(b, "a", 4);
    struct token t = claim_for(b, 3, 30 * SEC_US);
    OK(by_id(b, OP_CANCEL, "a0"), NULL);
    OK(by_id(b, OP_CANCEL, "a2"), NULL);
    OK(by_id(b, OP_CANCEL, "a3"), NULL); /* pending: it is not in this lease */
    struct op op = { .kind = OP_EXTEND, .extend = { .token = t, .lease_us = SEC_US } };
    OK(one(b, &op), &op.err);
    EQ_INT(op.extend.n_cancelled, 2);
    TRUE(holds(op.extend.cancelled, 2, "a0"));
    TRUE(holds(op.extend.cancelled, 2, "a2"));
    OK(finish(b, t, "a0", END_CANCELLED), NULL);
    OK(one(b, &op), &op.err);
    EQ_INT(op.extend.n_cancelled, 1);
}
