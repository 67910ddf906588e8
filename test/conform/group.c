/*
 * group.c - several operations in one commit: independent of each other, in the given order, with
 * one clock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

CASE(submit_and_cancel_of_one_id)
{
    struct op accept = accept_op(b, plan("a")), cancel = by_id_op(OP_CANCEL, "a");
    TOGETHER(b, &accept, &cancel);
    OK(accept.status, &accept.err);
    OK(cancel.status, &cancel.err);
    EQ_INT(cancel.by_id.state, PAWL_CANCELLED);
    STATE_IS(b, "a", PAWL_CANCELLED);
}

CASE(cancel_before_submit_finds_nothing)
{
    struct op cancel = by_id_op(OP_CANCEL, "a"), accept = accept_op(b, plan("a"));
    TOGETHER(b, &cancel, &accept);
    EQ_STATUS(cancel.status, PAWL_NOT_FOUND, &cancel.err);
    STATE_IS(b, "a", PAWL_PENDING);
}

CASE(accept_and_claim)
{
    struct op accept = accept_op(b, plan("a")), claim = claim_op(want(b, 5));
    TOGETHER(b, &accept, &claim);
    EQ_INT(claim.claim.n, 1);
    EQ_INT(accept.accept.out[0].call.state, PAWL_PENDING); /* as it was at that time */
    STATE_IS(b, "a", PAWL_PROCESSING);
    finish_ok(b, claim.claim.token, "a", "1");
}

CASE(finish_and_claim)
{
    accept_n(b, "a", 3);
    struct token t = claim_n(b, 1);
    struct finish_item f = item("a0", END_ERROR);
    f.retry_in_us = 0;
    struct op end = finish_op(t, &f, 1), claim = claim_op(want(b, 5));
    TOGETHER(b, &end, &claim);
    OK(end.status, &end.err);
    EQ_INT(claim.claim.n, 3); /* calls that were just released are claimable */
    STATE_IS(b, "a0", PAWL_PROCESSING);
}

CASE(given_back_and_claimed_again_shows_its_new_owner)
{
    accept_n(b, "a", 2);
    struct claim q = want(b, 2);
    q.worker = BYTES("w1");
    struct token t = claim_as(b, q).token;
    advance(b, 5);
    struct finish_item f = item("a1", END_RELEASE);
    q = want(b, 2);
    q.worker = BYTES("w2");
    struct op end = finish_op(t, &f, 1), claim = claim_op(q), again = accept_op(b, plan("a1"));
    struct op cancel = by_id_op(OP_CANCEL, "a1");
    TOGETHER(b, &end, &claim, &again, &cancel);
    EQ_INT(claim.claim.n, 1);
    TRUE(again.accept.out[0].duplicate);
    EQ_TEXT(again.accept.out[0].call.node, "w2");
    EQ_INT(again.accept.out[0].call.claimed_us, now(b));
    EQ_INT(cancel.by_id.state, PAWL_PROCESSING);
    EQ_TEXT(get(b, "a1").node, "w2");
    EQ_TEXT(get(b, "a0").node, "w1");
}

CASE(two_claims_share_the_work)
{
    accept_n(b, "a", 3);
    struct op first = claim_op(want(b, 2)), second = claim_op(want(b, 2));
    TOGETHER(b, &first, &second);
    EQ_INT(first.claim.n, 2);
    EQ_INT(second.claim.n, 1);
    EQ_INT(second.claim.calls[0].seq, 3);
    TRUE(first.claim.more);
    FALSE(second.claim.more);
}

CASE(two_finishes_of_one_lease)
{
    accept_n(b, "a", 2);
    struct token t = claim_n(b, 2);
    struct finish_item f0 = item("a0", END_RESULT), f1 = item("a1", END_REFUSE);
    struct op first = finish_op(t, &f0, 1), second = finish_op(t, &f1, 1);
    TOGETHER(b, &first, &second);
    OK(first.status, &first.err);
    OK(second.status, &second.err);
    STATE_IS(b, "a0", PAWL_COMPLETED);
    STATE_IS(b, "a1", PAWL_FAILED);
}

CASE(a_finish_and_its_repeat)
{
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    struct finish_item f0 = item("a", END_RESULT), f1 = item("a", END_REFUSE);
    struct op first = finish_op(t, &f0, 1), second = finish_op(t, &f1, 1);
    TOGETHER(b, &first, &second);
    OK(first.status, &first.err);
    OK(second.status, &second.err); /* the answer of the first */
    EQ_INT(f1.state, PAWL_COMPLETED);
}

CASE(a_bad_operation_fails_alone)
{
    accept_one(b, "a");
    struct finish_item f = item("a", END_RESULT);
    struct call_spec other = plan("a");
    other.input.bytes = BYTES("2");
    struct op bad1 = finish_op(fresh_token(b), &f, 1), good1 = accept_op(b, plan("b"));
    struct op bad2 = accept_op(b, other), good2 = by_id_op(OP_CANCEL, "a");
    struct op bad3 = by_id_op(OP_RETRY, "none");
    bad2.accept.atomic = true;
    TOGETHER(b, &bad1, &good1, &bad2, &good2, &bad3);
    EQ_STATUS(bad1.status, PAWL_LOST_LEASE, &bad1.err);
    OK(good1.status, &good1.err);
    EQ_STATUS(bad2.status, PAWL_CONFLICT, &bad2.err);
    OK(good2.status, &good2.err);
    EQ_STATUS(bad3.status, PAWL_NOT_FOUND, &bad3.err);
    STATE_IS(b, "b", PAWL_PENDING);
}

CASE(an_atomic_batch_that_is_refused_leaves_its_neighbours)
{
    struct call_spec other = plan("b");
    other.input.bytes = BYTES("2");
    struct call_spec v[] = { settled(b, plan("a")), settled(b, plan("b")), settled(b, other) };
    struct op atomic = { .kind = OP_ACCEPT, .accept = { .v = v, .n = 3, .atomic = true } };
    struct op before = accept_op(b, plan("before")), after = accept_op(b, plan("a"));
    TOGETHER(b, &before, &atomic, &after);
    EQ_STATUS(atomic.status, PAWL_CONFLICT, &atomic.err);
    EQ_INT(atomic.accept.refused, 2);
    EQ_INT(before.accept.out[0].call.seq, 1);
    FALSE(after.accept.out[0].duplicate); /* of a row that was deleted */
    EQ_INT(after.accept.out[0].call.seq, 2);
    EQ_STATUS(found(b, "b"), PAWL_NOT_FOUND, NULL);
}

CASE(the_same_id_in_two_operations)
{
    struct call_spec changed = plan("a");
    changed.input.bytes = BYTES("2");
    struct op first = accept_op(b, plan("a")), same = accept_op(b, plan("a"));
    struct op other = accept_op(b, changed);
    TOGETHER(b, &first, &same, &other);
    FALSE(first.accept.out[0].duplicate);
    TRUE(same.accept.out[0].duplicate);
    EQ_INT(same.accept.out[0].call.seq, 1);
    EQ_STATUS(other.accept.out[0].status, PAWL_CONFLICT, NULL);
}

CASE(a_whole_life_in_one_commit)
{
    struct claim q = want(b, 1), again = want(b, 1);
    struct finish_item f = item("a", END_REFUSE), g = item("a", END_RESULT);
    struct call_spec sent[] = { settled(b, plan("child")) };
    g.send = sent;
    g.n_send = 1;
    struct op ops[] = { accept_op(b, plan("a")),     claim_op(q),     finish_op(q.token, &f, 1),
                        by_id_op(OP_RETRY, "a"),     claim_op(again), finish_op(again.token, &g, 1),
                        by_id_op(OP_CANCEL, "child") };
    TOGETHER(b, &ops[0], &ops[1], &ops[2], &ops[3], &ops[4], &ops[5], &ops[6]);
    for (size_t i = 0; i < COUNT_OF(ops); i++)
        OK(ops[i].status, &ops[i].err);
    STATE_IS(b, "a", PAWL_COMPLETED);
    STATE_IS(b, "child", PAWL_CANCELLED);
    EQ_INT(get(b, "a").counts.redrives, 1);
}

CASE(pause_and_claim)
{
    accept_one(b, "a");
    struct op pause = { .kind = OP_PAUSE, .pause = { .queue = BYTES("default"), .paused = true } };
    struct op claim = claim_op(want(b, 1));
    TOGETHER(b, &pause, &claim);
    EQ_INT(claim.claim.n, 0);
}

CASE(move_and_claim)
{
    accept_one(b, "a");
    struct op move = by_id_op(OP_MOVE, "a"), claim = claim_op(want(b, 1));
    move.by_id.run_at_us = now(b) + 5;
    TOGETHER(b, &move, &claim);
    EQ_INT(claim.claim.n, 0);
    EQ_INT(claim.claim.next_due_us, now(b) + 5);
}

CASE(join_and_claim)
{
    OK(node(b, OP_JOIN, "n1", "b0"), NULL);
    accept_one(b, "a");
    struct claim q = want(b, 1);
    q.boot = BYTES("b0");
    claim_as(b, q);
    struct op join = node_op(OP_JOIN, "n1", "b1"), claim = claim_op(want(b, 1));
    TOGETHER(b, &join, &claim);
    EQ_INT(join.node.reclaimed, 1);
    EQ_INT(claim.claim.n, 1);
    EQ_INT(claim.claim.calls[0].counts.lost, 1);
}

CASE(sweep_gc_and_accept)
{
    ended_call(b, "a", PAWL_COMPLETED);
    advance(b, RETENTION_US + REMEMBER_US);
    struct op collect = { .kind = OP_GC, .gc = { .max = 10 } };
    struct op accept = accept_op(b, plan("a"));
    TOGETHER(b, &collect, &accept);
    EQ_INT(collect.gc.forgotten, 1);
    FALSE(accept.accept.out[0].duplicate);
    EQ_INT(accept.accept.out[0].call.seq, 2);
}

static int64_t moving_clock(void *ctx)
{
    return atomic_fetch_add(&((struct own_world *)ctx)->now_us, 1);
}

CASE(one_commit_has_one_now)
{
    b->world.world.now_us = moving_clock;
    struct op first = accept_op(b, plan("a")), second = accept_op(b, plan("b"));
    struct op claim = claim_op(want(b, 5));
    TOGETHER(b, &first, &second, &claim);
    int64_t t = first.accept.out[0].call.created_us;
    EQ_INT(second.accept.out[0].call.created_us, t);
    EQ_INT(claim.claim.n, 2);
    EQ_INT(claim.claim.calls[1].claimed_us, t);
}

CASE(a_group_of_a_thousand)
{
    enum { N = 1000 };
    struct op *ops = arena_zalloc(&b->a, N, sizeof *ops);
    struct op **v = arena_zalloc(&b->a, N, sizeof *v);
    for (int i = 0; i < N; i++) {
        ops[i] = accept_op(b, plan(arena_printf(&b->a, "a%d", i / 2)));
        v[i] = &ops[i];
    }
    commit(b, v, N);
    for (int i = 0; i < N; i++) {
        EQ_INT(ops[i].accept.out[0].duplicate, i % 2);
        EQ_INT(ops[i].accept.out[0].call.seq, i / 2 + 1);
    }
}
