/*
 * flow_end.c - how flows end, are cancelled and retried, and when gc removes them: what their
 * feature decides (test/lib/flow.h), and what follows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "flow_case.h"

#include <stdio.h>
#include <string.h>

/* ---- The end of an attempt ------------------------------------------------------------------- */

/* A call with a first step, held by the lease in *t. */
static int64_t begun(struct conform_fixture *b, struct call_spec s, struct token *t)
{
    int64_t seq = accept_spec(b, s).call.seq;
    *t = claim_steps(b, 1, 0);
    flow_step(b, *t, seq, 1);
    return seq;
}

FLOW_CASE(a_refused_flow_runs_again_to_undo)
{
    struct token t;
    int64_t x = begun(b, plan("saga"), &t);
    OK(finish(b, t, "saga", END_REFUSE), &b->err);
    EQ_INT(b->item.state, PAWL_PENDING);
    EQ_INT(b->item.counts.attempts, 0);
    EQ_INT(b->item.run_at_us, now(b));
    STATE_IS(b, "saga", PAWL_PROCESSING);
    EQ_UINT(attempts_of(b, "saga").n, 1);
    t = claim_steps(b, 1, 0);
    flow_step(b, t, x, 2);
    OK(finish(b, t, "saga", END_RESULT), &b->err);
    EQ_INT(b->item.state, PAWL_FAILED);
    EQ_TEXT(b->item.error_out, "undone");
    struct call c = get(b, "saga");
    EQ_INT(c.state, PAWL_FAILED);
    EQ_TEXT(c.error, "undone");
    ABSENT(c.result.bytes);
    EQ_STR(flow_told(b, x), "21\n24");
    EQ_STR(engine_rows(b->url, "SELECT undoing FROM flow"), "1");
}

FLOW_CASE(a_flow_out_of_attempts_runs_again_to_undo)
{
    struct token t;
    struct call_spec s = plan("saga");
    s.max_attempts = 1;
    begun(b, s, &t);
    finish_error(b, t, "saga", "no");
    EQ_INT(flow_seen.state, PAWL_FAILED); /* what the model said */
    STATE_IS(b, "saga", PAWL_PROCESSING);
    t = claim_steps(b, 1, 0);
    OK(finish(b, t, "saga", END_REFUSE), &b->err);
    EQ_INT(b->item.state, PAWL_DEAD_LETTER);
    EQ_TEXT(get(b, "saga").error, "undo refused");
}

FLOW_CASE(a_flow_that_ends_otherwise_sends_nothing)
{
    struct token t;
    object_put(b, "t", "k", "1");
    begun(b, keyed("saga", "k"), &t);
    OK(finish(b, t, "saga", END_REFUSE), &b->err);
    t = claim_steps(b, 1, 0);
    struct call_spec sent = settled(b, plan("sent"));
    struct finish_item f = item("saga", END_RESULT);
    f.send = &sent;
    f.n_send = 1;
    f.state_do = STATE_SET;
    f.object = (struct payload){ PAWL_JSON, BYTES("2") };
    OK(finish_item(b, t, f), &b->err);
    EQ_INT(b->item.state, PAWL_FAILED);
    EQ_INT(b->item.version, 0);
    EQ_STATUS(found(b, "sent"), PAWL_NOT_FOUND, NULL);
    EQ_TEXT(object_of(b, "t", "k").state.bytes, "1");
}

FLOW_CASE(a_flow_that_completes_sends_as_every_call)
{
    struct token t;
    begun(b, keyed("x", "k"), &t);
    struct call_spec sent = settled(b, plan("sent"));
    struct finish_item f = item("x", END_RESULT);
    f.send = &sent;
    f.n_send = 1;
    f.state_do = STATE_SET;
    f.object = (struct payload){ PAWL_JSON, BYTES("2") };
    OK(finish_item(b, t, f), &b->err);
    EQ_INT(b->item.state, PAWL_COMPLETED);
    STATE_IS(b, "sent", PAWL_PENDING);
    EQ_TEXT(object_of(b, "t", "k").state.bytes, "2");
}

FLOW_CASE(a_lost_lease_asks_once_for_all_its_flows)
{
    int64_t seq[3];
    struct call_spec s = plan("saga0");
    s.max_lost = 1;
    for (int i = 0; i < 3; i++) {
        s.id = bytes_of(arena_printf(&b->a, "%s%d", i == 2 ? "plain" : "saga", i));
        seq[i] = accept_spec(b, s).call.seq;
    }
    struct token t = claim_steps(b, 3, 10 * SEC_US);
    flow_step(b, t, seq[1], 1);
    flow_step(b, t, seq[0], 1);
    flow_seen = (struct flow_seen){ 0 };
    advance(b, 11 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 3);
    EQ_INT(flow_seen.ending, 1);
    EQ_INT(flow_seen.ended, 2);
    EQ_INT(flow_seen.asked, 2);
    STATE_IS(b, "saga0", PAWL_PROCESSING);
    STATE_IS(b, "plain2", PAWL_PENDING);
}

FLOW_CASE(a_node_that_fails_what_it_loses_does_not_fail_a_saga)
{
    int64_t x = accept_one(b, "saga"), y = accept_one(b, "y");
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    struct token t = claim_steps(b, 2, 0);
    flow_step(b, t, x, 1);
    flow_step(b, t, y, 1);
    struct op join = node_op(OP_JOIN, "n1", "b2");
    join.node.fail_lost = true;
    OK(one(b, &join), &join.err);
    STATE_IS(b, "saga", PAWL_PROCESSING);
    STATE_IS(b, "y", PAWL_FAILED);
    EQ_UINT(b->op.n_ended, 1);
}

FLOW_CASE(a_node_that_leaves_hands_flows_back)
{
    int64_t x = accept_one(b, "x");
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    struct token t = claim_steps(b, 1, 0);
    flow_step(b, t, x, 1);
    OK(node(b, OP_LEAVE, "n1", "b1"), NULL);
    EQ_INT(flow_seen.how, END_RELEASE);
    struct call c = get(b, "x");
    EQ_INT(c.state, PAWL_PROCESSING);
    EQ_INT(c.counts.lost, 0);
    EQ_STR(claimable(b, want_steps(b, 1)), "x");
}

FLOW_CASE(a_group_reads_its_flows_once)
{
    int64_t seq[4];
    struct token t[4];
    for (int i = 0; i < 4; i++)
        seq[i] = begun(b, plan(arena_printf(&b->a, "x%d", 3 - i)), &t[i]);
    flow_seen = (struct flow_seen){ 0 };
    struct finish_item f = item("x0", END_RESULT), g = item("x2", END_ERROR);
    struct op end = finish_op(t[3], &f, 1), other = finish_op(t[1], &g, 1),
              stop = by_id_op(OP_CANCEL, "x3"), add = accept_op(b, plan("y"));
    TOGETHER(b, &end, &other, &stop, &add);
    OK(end.status, &end.err);
    OK(other.status, &other.err);
    OK(stop.status, &stop.err);
    EQ_INT(flow_seen.ending, 1);
    EQ_INT(flow_seen.ended, 3);
    (void)seq;
}

FLOW_CASE(a_step_goes_with_the_finish)
{
    struct token t;
    int64_t x = begun(b, plan("x"), &t);
    struct flow_op last = { .step = 2 };
    struct op op = flow_fenced(&last, t, x);
    struct feature_op with = op.feature;
    struct finish_item f = item("x", END_RESULT);
    f.with = &with;
    OK(finish_item(b, t, f), &b->err);
    STATE_IS(b, "x", PAWL_COMPLETED);
    EQ_STR(engine_rows(b->url, "SELECT steps FROM flow"), "2");
}

/* ---- Cancel ---------------------------------------------------------------------------------- */

static const char *undoing(struct conform_fixture *b, int64_t seq)
{
    return engine_rows(
        b->url, arena_printf(&b->a, "SELECT undoing FROM flow WHERE seq = %lld", (long long)seq));
}

FLOW_CASE(a_cancel_wakes_a_flow_that_waits)
{
    int64_t x = flow_waiting(b, plan("x"), FLOW_NEVER_US);
    OK(by_id(b, OP_CANCEL, "x"), &b->op.err);
    EQ_INT(b->op.by_id.state, PAWL_PROCESSING);
    EQ_INT(b->op.n_ended, 0);
    TRUE(b->op.brings);
    EQ_STR(undoing(b, x), "1");
    STATE_IS(b, "x", PAWL_PROCESSING);
    FALSE(get(b, "x").cancel_requested);
    EQ_STR(claimable(b, want_steps(b, 1)), "x");
}

FLOW_CASE(a_cancel_of_a_flow_that_runs_leaves_no_request)
{
    struct token t;
    int64_t x = begun(b, plan("x"), &t);
    OK(by_id(b, OP_CANCEL, "x"), &b->op.err);
    EQ_INT(b->op.by_id.state, PAWL_PROCESSING);
    EQ_INT(flow_seen.cancelled, 1);
    EQ_STR(undoing(b, x), "1");
    FALSE(get(b, "x").cancel_requested);
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM pawl_cancel"), "0");
    finish_error(b, t, "x", "no"); /* a request would end it now */
    STATE_IS(b, "x", PAWL_PROCESSING);
}

FLOW_CASE(what_cancels_only_pending_calls_leaves_a_flow)
{
    flow_waiting(b, plan("x"), FLOW_NEVER_US);
    struct op op = by_id_op(OP_CANCEL, "x");
    op.by_id.only_pending = true;
    EQ_STATUS(one(b, &op), PAWL_STATE, &op.err);
    EQ_INT(op.by_id.state, PAWL_PROCESSING);
    EQ_STR(op.err.text, "call \"x\" is processing");
    EQ_INT(flow_seen.cancelled, 0);
}

FLOW_CASE(a_flow_is_not_moved)
{
    struct token t;
    begun(b, plan("x"), &t);
    flow_waiting(b, plan("y"), FLOW_NEVER_US);
    struct op op = by_id_op(OP_MOVE, "x");
    op.by_id.priority = 5;
    EQ_STATUS(one(b, &op), PAWL_STATE, &op.err);
    op = by_id_op(OP_MOVE, "y");
    op.by_id.priority = PAWL_SAME;
    op.by_id.run_at_us = now(b) + SEC_US;
    EQ_STATUS(one(b, &op), PAWL_STATE, &op.err);
    EQ_STR(op.err.text, "call \"y\" is processing");
}

/* ---- Ended from outside ---------------------------------------------------------------------- */

static struct flow_op ending(int64_t seq, enum pawl_state state, const char *error)
{
    return (struct flow_op){
        .seq = seq, .end = { .state = state, .error = error ? bytes_of(error) : BYTES_NONE }
    };
}

FLOW_CASE(a_flow_that_waits_is_ended)
{
    static const enum pawl_state state[] = { PAWL_FAILED, PAWL_CANCELLED, PAWL_DEAD_LETTER };
    for (size_t i = 0; i < COUNT_OF(state); i++) {
        const char *id = arena_printf(&b->a, "x%zu", i);
        int64_t x = flow_waiting(b, plan(id), FLOW_NEVER_US);
        OK(flow_from_outside(b, ending(x, state[i], "why")), &b->op.err);
        EQ_UINT(b->op.n_ended, 1);
        EQ_TEXT(b->op.ended[0], id);
        struct call c = get(b, id);
        EQ_INT(c.state, state[i]);
        EQ_INT(c.finished_us, now(b));
        if (state[i] == PAWL_CANCELLED)
            ABSENT(c.error);
        else
            EQ_TEXT(c.error, "why");
        OK(flow_from_outside(b, ending(x, PAWL_FAILED, "late")), &b->op.err);
        EQ_INT(get(b, id).state, state[i]); /* once */
        EQ_UINT(b->op.n_ended, 0);
    }
    EQ_STR(claimable(b, want_steps(b, 5)), "");
}

FLOW_CASE(a_flow_that_runs_is_ended_and_its_owner_is_fenced)
{
    struct token t;
    int64_t x = begun(b, keyed("x", "k"), &t);
    accept_spec(b, keyed("y", "k"));
    OK(flow_from_outside(b, ending(x, PAWL_CANCELLED, NULL)), &b->op.err);
    TRUE(b->op.brings);
    STATE_IS(b, "x", PAWL_CANCELLED);
    EQ_STR(flow_told(b, x), "26");
    EQ_STATUS(finish(b, t, "x", END_RESULT), PAWL_LOST_LEASE, &b->err);
    struct flow_op q = { .step = 2 };
    EQ_STATUS(flow_do(b, &q, t, x), PAWL_LOST_LEASE, &b->op.err);
    EQ_STR(claimable(b, want_steps(b, 1)), "y");
}

FLOW_CASE(a_flow_ends_in_its_own_step)
{
    struct token t;
    struct call_spec s = keyed("x", "k");
    s.on_dead = PAWL_ON_DEAD_BLOCK;
    int64_t x = begun(b, s, &t);
    struct flow_op q = { .step = 2,
                         .end = { .state = PAWL_DEAD_LETTER, .error = BYTES("step 2 differs") } };
    accept_spec(b, keyed("y", "k"));
    OK(flow_do(b, &q, t, x), &b->op.err);
    EQ_TEXT(get(b, "x").error, "step 2 differs");
    TRUE(key_of(b, "k").blocked);
    EQ_STR(claimable(b, want_steps(b, 1)), "");
    OK(unblock(b, "k", true), &b->op.err);
    EQ_INT(flow_seen.retried, 1);
    EQ_STR(claimable(b, want_steps(b, 5)), "x");
    STATE_IS(b, "x", PAWL_PROCESSING);
}

FLOW_CASE(calls_behind_an_ended_flow_go_back)
{
    int64_t a = accept_spec(b, keyed("a", "k")).call.seq;
    accept_spec(b, keyed("b", "k"));
    struct claim q = want_steps(b, 2);
    q.run_max = 2;
    q = claim_as(b, q);
    EQ_UINT(q.n, 2);
    flow_step(b, q.token, a, 1);
    OK(flow_from_outside(b, ending(a, PAWL_FAILED, "e")), &b->op.err);
    STATE_IS(b, "b", PAWL_PENDING);
    finish_ok(b, claim_steps(b, 1, 0), "b", "1");
}

/* ---- Retry ----------------------------------------------------------------------------------- */

FLOW_CASE(a_retried_flow_goes_on_as_one)
{
    struct token t;
    int64_t x = begun(b, plan("x"), &t);
    OK(finish(b, t, "x", END_REFUSE), &b->err);
    STATE_IS(b, "x", PAWL_FAILED);
    OK(by_id(b, OP_RETRY, "x"), &b->op.err);
    EQ_INT(b->op.by_id.state, PAWL_PROCESSING);
    EQ_INT(flow_seen.retried, 1);
    struct call c = get(b, "x");
    EQ_INT(c.state, PAWL_PROCESSING);
    EQ_INT(c.counts.redrives, 1);
    EQ_INT(c.counts.attempts, 0);
    EQ_STR(claimable(b, want(b, 1)), "");
    t = claim_steps(b, 1, 0);
    flow_step(b, t, x, 2);
    EQ_INT(get(b, "x").counts.redrives, 1);
    finish_ok(b, t, "x", "1");
}

FLOW_CASE(a_feature_may_refuse_a_retry)
{
    struct token t;
    begun(b, plan("final"), &t);
    OK(finish(b, t, "final", END_REFUSE), &b->err);
    EQ_STATUS(by_id(b, OP_RETRY, "final"), PAWL_STATE, &b->op.err);
    EQ_STR(b->op.err.text, "flow \"final\" is final");
    STATE_IS(b, "final", PAWL_FAILED);
    ended_call(b, "y", PAWL_FAILED); /* no flow */
    OK(by_id(b, OP_RETRY, "y"), &b->op.err);
    EQ_INT(b->op.by_id.state, PAWL_PENDING);
    EQ_INT(flow_seen.retried, 1);
}

/* ---- gc -------------------------------------------------------------------------------------- */

FLOW_CASE(gc_leaves_what_a_feature_keeps)
{
    struct token t;
    int64_t x = begun(b, plan("x"), &t);
    finish_ok(b, t, "x", "1");
    int64_t y = begun(b, plan("y"), &t);
    finish_ok(b, t, "y", "1");
    ended_call(b, "z", PAWL_COMPLETED);
    OK(flow_from_outside(b, (struct flow_op){ .seq = x, .keep = 1 }), &b->op.err);
    advance(b, RETENTION_US + SEC_US);
    struct gc g = gc(b);
    EQ_INT(g.removed, 2);
    FALSE(g.more); /* it is not looked at again at once */
    STATE_IS(b, "x", PAWL_COMPLETED);
    EQ_STATUS(found(b, "y"), PAWL_GONE, NULL);
    EQ_INT(flow_seen.forgotten, 2);
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM flow"), "1");
    OK(flow_from_outside(b, (struct flow_op){ .seq = x, .keep = -1 }), &b->op.err);
    advance(b, 3601 * SEC_US);
    EQ_INT(gc(b).removed, 1);
    EQ_STATUS(found(b, "x"), PAWL_GONE, NULL);
    (void)y;
}

FLOW_CASE(gc_by_hand_leaves_them_too)
{
    struct token t;
    int64_t x = begun(b, plan("x"), &t);
    finish_ok(b, t, "x", "1");
    ended_call(b, "z", PAWL_COMPLETED);
    OK(flow_from_outside(b, (struct flow_op){ .seq = x, .keep = 1 }), &b->op.err);
    advance(b, SEC_US);
    struct op op = { .kind = OP_GC,
                     .gc = { .max = 10, .ended_before_us = now(b), .archive = true } };
    OK(one(b, &op), &op.err);
    EQ_INT(op.gc.removed, 1);
    FALSE(op.gc.more);
    STATE_IS(b, "x", PAWL_COMPLETED);
    struct archived row;
    EQ_STATUS(store_archived(b->s, &b->a, BYTES("x"), &row, &b->err), PAWL_NOT_FOUND, &b->err);
    OK(flow_from_outside(b, (struct flow_op){ .seq = x, .keep = -1 }), &b->op.err);
    OK(one(b, &op), &op.err);
    EQ_INT(op.gc.removed, 1);
    OK(store_archived(b->s, &b->a, BYTES("x"), &row, &b->err), &b->err);
    EQ_UINT(row.call.spec.n_needs, 0);
}

/* ---- Calls as a group sees them -------------------------------------------------------------- */

static enum pawl_status look_calls(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct feature_call *out = ctx;
    enum pawl_status st = PAWL_OK;
    static const char *const ids[] = { "held", "waits", "pending", "ended", "none" };
    for (size_t i = 0; i < COUNT_OF(ids) && st == PAWL_OK; i++) {
        st = feature_call_named(d, bytes_of(ids[i]), &out[i], err);
        if (out[i].id.data) /* it lives as long as the transaction */
            EQ_TEXT(out[i].id, ids[i]);
        if (out[i].key.data)
            EQ_TEXT(out[i].key, "k");
        if (out[i].seq && !out[i].gone)
            EQ_TEXT(out[i].type, "t");
    }
    return st;
}

FLOW_CASE(a_feature_sees_calls)
{
    struct token t;
    struct feature_call c[5];
    flow_waiting(b, plan("waits"), FLOW_NEVER_US);
    ended_call(b, "ended", PAWL_COMPLETED);
    int64_t held = begun(b, keyed("held", "k"), &t);
    struct call_spec s = plan("pending");
    s.priority = 7;
    accept_spec(b, s);
    OK(store_look(b->s, LOOK_SNAPSHOT, look_calls, c, &b->err), &b->err);
    EQ_INT(c[0].seq, held);
    TRUE(c[0].held && c[0].flow && c[0].state == PAWL_PROCESSING);
    TRUE(!c[1].held && c[1].flow && c[1].state == PAWL_PROCESSING);
    TRUE(!c[2].held && !c[2].flow && c[2].state == PAWL_PENDING && c[2].priority == 7);
    TRUE(!c[3].held && !c[3].flow && c[3].state == PAWL_COMPLETED);
    EQ_INT(c[4].seq, 0);
    advance(b, RETENTION_US + SEC_US);
    gc(b);
    OK(store_look(b->s, LOOK_SNAPSHOT, look_calls, c, &b->err), &b->err);
    TRUE(c[3].gone && c[3].state == PAWL_COMPLETED);
}
