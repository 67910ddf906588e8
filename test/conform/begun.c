/*
 * begun.c - claimed calls that have not started: how they are shown, and that they never count as
 * lost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

/* "processing", "pending worker", "pending 2 key" and so on; with the number for calls with a key.
 */
static const char *shown(struct conform_fixture *b, const char *id)
{
    struct call c = get(b, id);
    const char *wait = call_wait_name(c.waiting_for);
    const char *place = c.in_line ? arena_printf(&b->a, " %d", (int)c.position) : "";
    if (!c.in_line)
        EQ_INT(c.position, 0);
    return arena_printf(&b->a, "%s%s%s%s", pawl_state_name(c.state), place, wait ? " " : "",
                        wait ? wait : "");
}

/* A claim of up to max calls, of which `width` run at the same time. */
static struct claim claim_wide(struct conform_fixture *b, int max, int width)
{
    struct claim q = want(b, max);
    q.run_max = 10;
    q.width = width;
    return claim_as(b, q);
}

/* The ids of a state, newest first. */
static const char *listed(struct conform_fixture *b, enum pawl_state state)
{
    struct query q = { .state = state, .limit = 2 };
    const char *out = "";
    do {
        struct page page;
        OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
        for (size_t i = 0; i < page.n; i++) {
            EQ_INT(page.v[i].state, state);
            out = arena_printf(&b->a, "%s%s%s", out, *out ? " " : "",
                               arena_text(&b->a, page.v[i].spec.id));
        }
        q.before_seq = page.next_before;
    } while (q.before_seq);
    return out;
}

static int lost(struct conform_fixture *b, const char *id)
{
    return get(b, id).counts.lost;
}

/* ---- Shown ----------------------------------------------------------------------------------- */

CASE(calls_beyond_the_width_are_pending)
{
    accept_n(b, "a", 5);
    advance(b, 7);
    struct claim q = claim_wide(b, 10, 2);
    EQ_INT(q.n, 5);
    for (size_t i = 0; i < q.n; i++) {
        EQ_INT(q.calls[i].state, PAWL_PROCESSING); /* all of them belong to the claimer's node */
        EQ_INT(q.calls[i].waiting_for, WAIT_NONE);
    }
    EQ_STR(shown(b, "a0"), "processing");
    EQ_STR(shown(b, "a1"), "processing");
    EQ_STR(shown(b, "a2"), "pending worker");
    EQ_STR(shown(b, "a4"), "pending worker");
    EQ_TEXT(get(b, "a2").node, "n1"); /* of its lease */
    EQ_INT(get(b, "a2").claimed_us, now(b));
    finish_ok(b, q.token, "a1", "1"); /* the order of their ends does not matter */
    EQ_STR(shown(b, "a0"), "processing");
    EQ_STR(shown(b, "a2"), "processing");
    EQ_STR(shown(b, "a3"), "pending worker");
    OK(finish(b, q.token, "a0", END_RELEASE), NULL);
    EQ_STR(shown(b, "a3"), "processing");
    EQ_STR(shown(b, "a4"), "pending worker");
    finish_ok(b, q.token, "a4", "1"); /* the owner's report wins */
    EQ_STR(shown(b, "a3"), "processing");
    EQ_STR(shown(b, "a4"), "completed");
}

CASE(without_a_width_all_have_begun)
{
    accept_n(b, "a", 3);
    claim_wide(b, 10, 0);
    EQ_STR(listed(b, PAWL_PROCESSING), "a2 a1 a0");
    EQ_STR(listed(b, PAWL_PENDING), "");
}

CASE(a_width_as_wide_as_the_lease_makes_no_difference)
{
    accept_n(b, "a", 3);
    claim_wide(b, 10, 3);
    EQ_STR(listed(b, PAWL_PROCESSING), "a2 a1 a0");
}

CASE(they_begin_best_first)
{
    struct call_spec s = plan("low");
    s.priority = -1;
    accept_spec(b, s);
    s = plan("later");
    s.delay_us = 5;
    accept_spec(b, s);
    accept_one(b, "first");
    s = plan("high");
    s.priority = 1;
    accept_spec(b, s);
    advance(b, 10);
    struct claim q = claim_wide(b, 10, 1);
    EQ_STR(listed(b, PAWL_PROCESSING), "high");
    finish_ok(b, q.token, "high", "1");
    EQ_STR(listed(b, PAWL_PROCESSING), "first");
    finish_ok(b, q.token, "first", "1");
    EQ_STR(listed(b, PAWL_PROCESSING), "later");
    finish_ok(b, q.token, "later", "1");
    EQ_STR(listed(b, PAWL_PROCESSING), "low");
}

CASE(lists_and_queues_go_by_what_is_shown)
{
    struct call_spec s = plan("c");
    s.queue = BYTES("other");
    accept_n(b, "a", 2);
    accept_spec(b, s);
    accept_one(b, "d");
    int64_t due = now(b);
    advance(b, 5);
    struct claim q = claim_wide(b, 10, 2);
    EQ_STR(listed(b, PAWL_PROCESSING), "a1 a0");
    EQ_STR(listed(b, PAWL_PENDING), "d c");
    struct queue_row r = queue_of(b, "default");
    EQ_INT(r.processing, 2);
    EQ_INT(r.pending, 1);
    EQ_INT(r.due, 1);
    EQ_INT(r.oldest_due_us, due);
    EQ_INT(queue_of(b, "other").pending, 1);
    EQ_INT(queue_of(b, "other").processing, 0);
    finish_ok(b, q.token, "a0", "1");
    EQ_INT(queue_of(b, "other").processing, 1);
    EQ_INT(queue_of(b, "other").pending, 0);
    EQ_STR(listed(b, PAWL_PENDING), "d");
}

CASE(each_lease_has_its_own_width)
{
    accept_n(b, "a", 3);
    struct claim one = claim_wide(b, 10, 1);
    accept_n(b, "b", 3);
    claim_wide(b, 10, 2);
    EQ_STR(listed(b, PAWL_PROCESSING), "b1 b0 a0");
    finish_ok(b, one.token, "a0", "1");
    EQ_STR(listed(b, PAWL_PROCESSING), "b1 b0 a1");
    EQ_STR(listed(b, PAWL_PENDING), "b2 a2");
}

CASE(one_that_waits_again_shows_its_error)
{
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    struct finish_item f = item("a", END_ERROR);
    f.error = BYTES("boom");
    f.retry_in_us = 0;
    OK(finish_item(b, t, f), NULL);
    struct call_spec s = plan("before");
    s.priority = 1;
    accept_spec(b, s);
    claim_wide(b, 10, 1);
    EQ_STR(shown(b, "a"), "pending worker");
    EQ_TEXT(get(b, "a").error, "boom");
}

CASE(a_paused_queue_says_nothing_of_what_is_held)
{
    accept_n(b, "a", 2);
    claim_wide(b, 10, 1);
    pause_queue(b, "default", true);
    EQ_STR(shown(b, "a1"), "pending worker");
}

CASE(a_duplicate_is_shown_as_it_stands)
{
    accept_n(b, "a", 2);
    claim_wide(b, 10, 1);
    struct accepted a = accept_spec(b, plan("a1"));
    TRUE(a.duplicate);
    EQ_INT(a.call.state, PAWL_PENDING);
    EQ_INT(a.call.claimed_us, now(b));
}

CASE(the_same_claim_again_returns_all_of_it)
{
    accept_n(b, "a", 3);
    struct claim first = want(b, 10);
    first.width = 1;
    claim_as(b, first);
    struct claim again = claim_as(b, first);
    EQ_INT(again.n, 3);
    for (size_t i = 0; i < again.n; i++)
        EQ_INT(again.calls[i].state, PAWL_PROCESSING);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

CASE(a_run_inside_the_width)
{
    line_up(b, "k", "abcd");
    struct claim q = want(b, 10);
    q.run_max = 3;
    q.width = 1;
    q = claim_as(b, q);
    EQ_STR(shown(b, "a"), "processing 0");
    EQ_STR(shown(b, "b"), "pending 1 key");
    EQ_STR(shown(b, "c"), "pending 2 key");
    EQ_STR(shown(b, "d"), "pending 3 key");
    finish_ok(b, q.token, "a", "1");
    EQ_STR(shown(b, "b"), "processing 0");
    EQ_STR(shown(b, "d"), "pending 2 key");
}

CASE(a_run_beyond_the_width_is_next_in_its_key)
{
    accept_one(b, "x");
    line_up(b, "k", "abcd");
    struct claim q = want(b, 10);
    q.run_max = 2;
    q.width = 1;
    q = claim_as(b, q);
    EQ_STR(ids_of(b, &q), "x a b");
    EQ_INT(q.calls[1].position, 0); /* relative to the claimer */
    EQ_INT(q.calls[2].position, 1);
    EQ_STR(shown(b, "x"), "processing");
    EQ_STR(shown(b, "a"), "pending 1 worker");
    EQ_STR(shown(b, "b"), "pending 2 key");
    EQ_STR(shown(b, "c"), "pending 3 key");
    EQ_STR(shown(b, "d"), "pending 4 key");
    struct key_row row = key_of(b, "k");
    EQ_TEXT(row.head, "a");
    EQ_INT(row.head_state, PAWL_PENDING);
    EQ_INT(row.waiting_for, WAIT_WORKER);
    EQ_INT(row.pending, 2);
    EQ_STR(listed(b, PAWL_PROCESSING), "x");
    EQ_STR(listed(b, PAWL_PENDING), "d c b a");
    finish_ok(b, q.token, "x", "1");
    EQ_STR(shown(b, "a"), "processing 0");
    EQ_STR(shown(b, "b"), "pending 1 key");
    EQ_STR(shown(b, "c"), "pending 2 key");
    EQ_INT(key_of(b, "k").head_state, PAWL_PROCESSING);
}

/* Only the first call of a run counts for the width, at its own place. */
CASE(calls_behind_do_not_take_a_place)
{
    struct call_spec s = keyed("b", "k");
    line_up(b, "k", "a");
    s.priority = 9;
    accept_spec(b, s);
    s = plan("x");
    s.priority = 5;
    accept_spec(b, s);
    accept_one(b, "y");
    struct claim q = claim_wide(b, 10, 1);
    EQ_INT(q.n, 4);
    EQ_STR(listed(b, PAWL_PROCESSING), "x"); /* b is behind a, which has a lower priority */
    finish_ok(b, q.token, "x", "1");
    EQ_STR(listed(b, PAWL_PROCESSING), "a");
    finish_ok(b, q.token, "a", "1");
    EQ_STR(listed(b, PAWL_PROCESSING), "b");
    EQ_STR(listed(b, PAWL_PENDING), "y");
}

/* The lease is not read for a call that was just accepted: the first one counts as started. */
CASE(a_new_call_counts_the_first_as_begun)
{
    accept_one(b, "x");
    line_up(b, "k", "a");
    claim_wide(b, 10, 1);
    EQ_INT(accept_spec(b, keyed("b", "k")).call.position, 1);
    EQ_STR(shown(b, "b"), "pending 2 key");
}

/* ---- Operators ------------------------------------------------------------------------------- */

CASE(what_is_held_counts_as_processing_to_operators)
{
    accept_n(b, "a", 3);
    struct claim q = claim_wide(b, 10, 1);
    STATE_IS(b, "a1", PAWL_PENDING);
    struct op op = by_id_op(OP_CANCEL, "a1");
    op.by_id.only_pending = true;
    EQ_STATUS(one(b, &op), PAWL_STATE, &op.err);
    EQ_INT(op.by_id.state, PAWL_PROCESSING);
    EQ_STATUS(by_id(b, OP_RETRY, "a1"), PAWL_STATE, NULL);
    OK(by_id(b, OP_CANCEL, "a1"), NULL);
    EQ_INT(b->op.by_id.state, PAWL_PROCESSING); /* a cancel request */
    STATE_IS(b, "a1", PAWL_PENDING);
    TRUE(get(b, "a1").cancel_requested);
    struct cancel_requests w;
    OK(store_cancel_requests(b->s, &b->a, &w, &b->err), &b->err);
    EQ_INT(w.n, 1);
    EQ_INT(w.seqs[0], 2);
    OK(finish(b, q.token, "a1", END_RELEASE), NULL);
    STATE_IS(b, "a1", PAWL_CANCELLED);
}

/* Only its owner knows whether it will begin, so a move does not take it; it is handed back soon.
 */
CASE(a_move_waits_for_what_has_not_begun)
{
    accept_n(b, "a", 3);
    struct claim q = claim_wide(b, 10, 1);
    EQ_STATUS(by_id(b, OP_MOVE, "a0"), PAWL_STATE, NULL);
    EQ_INT(b->op.by_id.state, PAWL_PROCESSING);
    EQ_STATUS(by_id(b, OP_MOVE, "a1"), PAWL_BUSY, NULL);
    EQ_INT(b->op.by_id.state, PAWL_PENDING);
    EQ_STR(b->op.err.text, "call \"a1\": \"n1\" has claimed it and has not begun it; try again");
    OK(finish(b, q.token, "a1", END_RELEASE), NULL);
    struct op op = by_id_op(OP_MOVE, "a1");
    op.by_id.queue = BYTES("other");
    op.by_id.priority = 3;
    OK(one(b, &op), &op.err);
    EQ_TEXT(get(b, "a1").spec.queue, "other");
    EQ_STATUS(finish(b, q.token, "a1", END_RESULT), PAWL_LOST_LEASE, NULL);
    finish_ok(b, q.token, "a0", "1");
    EQ_STATUS(by_id(b, OP_MOVE, "a2"), PAWL_STATE, NULL); /* it has begun */
    EQ_STR(claimable(b, want(b, 10)), "a1");
}

/* ---- Behind the first call of a run ---------------------------------------------------------- */

static void move_to(struct conform_fixture *b, const char *id, const char *queue, int64_t run_at_us)
{
    struct op op = by_id_op(OP_MOVE, id);
    op.by_id.priority = PAWL_SAME;
    op.by_id.queue = bytes_of(queue);
    op.by_id.run_at_us = run_at_us;
    OK(one(b, &op), &op.err);
}

CASE(what_is_behind_in_a_run_can_be_handed_back)
{
    line_up(b, "k", "abcde");
    struct claim q = want(b, 10);
    q.run_max = 4;
    q.width = 1;
    q = claim_as(b, q);
    EQ_STATUS(by_id(b, OP_MOVE, "c"), PAWL_BUSY, NULL);
    EQ_STATUS(finish(b, q.token, "c", END_RESULT), PAWL_INVALID, NULL);
    EQ_STATUS(finish(b, q.token, "c", END_LATER), PAWL_INVALID, NULL);
    OK(finish(b, q.token, "c", END_RELEASE), NULL);
    EQ_INT(b->item.state, PAWL_PENDING);
    EQ_STR(shown(b, "a"), "processing 0");
    EQ_STR(shown(b, "b"), "pending 1 key");
    EQ_STR(shown(b, "c"), "pending 2 key");
    EQ_STR(shown(b, "d"), "pending 3 key"); /* it went along */
    EQ_STR(shown(b, "e"), "pending 4 key");
    EQ_STR(claimable(b, want(b, 10)), "");
    EQ_TEXT(key_of(b, "k").head, "a");
    EQ_INT(key_of(b, "k").pending, 3);
    EQ_STATUS(finish(b, q.token, "d", END_RELEASE), PAWL_LOST_LEASE, NULL);
    move_to(b, "c", "other", 0);
    finish_ok(b, q.token, "a", "1");
    EQ_STR(shown(b, "b"), "processing 0");
    finish_ok(b, q.token, "b", "1");
    EQ_STR(shown(b, "c"), "pending 1 worker");
    struct claim other = want(b, 10);
    other.queues = &BYTES("other");
    other.n_queues = 1;
    other = claim_as(b, other);
    EQ_STR(ids_of(b, &other), "c");
    EQ_INT(other.calls[0].key_no, 3);
    finish_ok(b, other.token, "c", "1");
    struct claim rest = claim_wide(b, 10, 0);
    EQ_STR(ids_of(b, &rest), "d e");
}

CASE(what_is_behind_can_be_moved_to_later)
{
    line_up(b, "k", "abc");
    struct claim q = claim_wide(b, 10, 1);
    OK(finish(b, q.token, "b", END_RELEASE), NULL);
    move_to(b, "b", NULL, now(b) + SEC_US);
    EQ_STR(shown(b, "c"), "pending 1 key");
    finish_ok(b, q.token, "a", "1");
    EQ_STR(claimable(b, want(b, 10)), "c");
    advance(b, SEC_US);
    EQ_STR(shown(b, "a"), "completed");
}

/* The first one's own end does not hand back a second time what went back before. */
CASE(the_first_of_a_run_fails_after_the_rest_went_back)
{
    line_up(b, "k", "abc");
    struct claim q = claim_wide(b, 10, 1);
    struct finish_item back = item("c", END_RELEASE), fail = item("a", END_ERROR);
    struct op first = finish_op(q.token, &back, 1), second = finish_op(q.token, &fail, 1);
    TOGETHER(b, &first, &second);
    OK(first.status, &first.err);
    OK(second.status, &second.err);
    STATE_IS(b, "a", PAWL_PENDING);
    EQ_STR(shown(b, "b"), "pending 2 key");
    EQ_STR(shown(b, "c"), "pending 3 key");
    EQ_INT(get(b, "b").counts.lost + get(b, "c").counts.lost, 0);
}

/* One that is to be cancelled ends when it is handed back, before the first of its run does. */
CASE(a_cancel_request_acts_on_what_is_handed_back_from_behind)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    line_up(b, "k", "abcd");
    struct claim q = claim_wide(b, 10, 1);
    OK(by_id(b, OP_CANCEL, "c"), NULL);
    OK(finish(b, q.token, "c", END_RELEASE), NULL);
    STATE_IS(b, "c", PAWL_CANCELLED);
    advance(b, 5);
    EQ_STR(shown(b, "a"), "processing 0");
    EQ_STR(shown(b, "b"), "pending 1 key");
    EQ_STR(shown(b, "d"), "pending 2 key");
    OK(finish(b, q.token, "c", END_RELEASE), NULL); /* repeated: it has its answer */
    EQ_INT(b->item.state, PAWL_CANCELLED);
    OK(node(b, OP_JOIN, "n1", "b2"), NULL);
    EQ_INT(b->op.node.reclaimed, 2);
    EQ_INT(lost(b, "a"), 1);
    EQ_INT(lost(b, "b"), 0);
    STATE_IS(b, "c", PAWL_CANCELLED);
}

/* ---- Reclaim --------------------------------------------------------------------------------- */

CASE(a_dead_node_is_charged_for_what_had_begun)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_n(b, "a", 1000);
    struct claim q = claim_wide(b, CLAIM_MAX, 16);
    EQ_INT(q.n, 1000);
    for (int i = 0; i < 4; i++) /* four more start */
        finish_ok(b, q.token, arena_printf(&b->a, "a%d", i), "1");
    struct op op = node_op(OP_BURY, "n1", "b1");
    OK(one(b, &op), &op.err);
    EQ_INT(op.node.reclaimed, 996);
    int charged = 0;
    for (int i = 4; i < 1000; i++)
        charged += lost(b, arena_printf(&b->a, "a%d", i));
    EQ_INT(charged, 16);
    EQ_INT(lost(b, "a4"), 1);
    EQ_INT(lost(b, "a19"), 1);
    EQ_INT(lost(b, "a20"), 0);
    EQ_INT(attempts_of(b, "a20").n, 0); /* not an attempt */
    ABSENT(get(b, "a20").error);
    EQ_STATUS(finish(b, q.token, "a20", END_RESULT), PAWL_LOST_LEASE, NULL);
    struct claim again = want(b, 10); /* calls that had not started are not marked retry_alone */
    again.no_retry_alone = true;
    again.node = BYTES("n2");
    again = claim_as(b, again);
    EQ_INT(again.n, 10);
    EQ_TEXT(again.calls[0].spec.id, "a20");
}

CASE(joining_charges_what_had_begun)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_n(b, "a", 4);
    claim_wide(b, 10, 1);
    OK(node(b, OP_JOIN, "n1", "b2"), NULL);
    EQ_INT(b->op.node.reclaimed, 4);
    EQ_INT(lost(b, "a0"), 1);
    EQ_INT(lost(b, "a1") + lost(b, "a2") + lost(b, "a3"), 0);
}

CASE(a_lease_that_runs_out_charges_what_had_begun)
{
    accept_n(b, "a", 3);
    struct claim q = want(b, 10);
    q.width = 2;
    q.lease_us = 10 * SEC_US;
    claim_as(b, q);
    advance(b, 10 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 3);
    EQ_INT(lost(b, "a0"), 1);
    EQ_INT(lost(b, "a1"), 1);
    EQ_INT(lost(b, "a2"), 0);
}

CASE(requeueing_charges_what_had_begun)
{
    accept_n(b, "a", 3);
    claim_wide(b, 10, 1);
    advance(b, SEC_US);
    struct op op = { .kind = OP_REQUEUE,
                     .requeue = { .max = 10, .claimed_before_us = now(b), .fail_lost = true } };
    OK(one(b, &op), &op.err);
    EQ_INT(op.requeue.reclaimed, 3);
    /* Reclaim_action = fail applies only to calls that had started. */
    STATE_IS(b, "a0", PAWL_FAILED);
    STATE_IS(b, "a1", PAWL_PENDING);
    EQ_INT(lost(b, "a1"), 0);
    EQ_INT(op.n_ended, 1);
}

CASE(leaving_charges_nothing)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_n(b, "a", 3);
    claim_wide(b, 10, 1);
    OK(node(b, OP_LEAVE, "n1", "b1"), NULL);
    EQ_INT(b->op.node.reclaimed, 3);
    EQ_INT(lost(b, "a0"), 0);
    EQ_STR(claimable(b, want(b, 10)), "a0 a1 a2");
}

CASE(runs_are_charged_by_what_had_begun)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    line_up(b, "k", "abc");
    line_up(b, "m", "de");
    accept_one(b, "x");
    struct claim q = claim_wide(b, 10, 2);
    EQ_INT(q.n, 6);
    finish_ok(b, q.token, "a", "1");
    OK(node(b, OP_JOIN, "n1", "b2"), NULL);
    EQ_INT(b->op.node.reclaimed, 5);
    EQ_INT(lost(b, "b"), 1);
    EQ_INT(lost(b, "d"), 1);
    EQ_INT(lost(b, "c") + lost(b, "e") + lost(b, "x"), 0);
    EQ_STR(shown(b, "b"), "pending 1 worker");
    EQ_STR(shown(b, "c"), "pending 2 key");
}

CASE(a_cancel_request_is_kept_by_what_did_not_begin)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_n(b, "a", 3);
    claim_wide(b, 10, 1);
    OK(by_id(b, OP_CANCEL, "a2"), NULL);
    OK(node(b, OP_JOIN, "n1", "b2"), NULL);
    STATE_IS(b, "a2", PAWL_CANCELLED);
    EQ_INT(lost(b, "a2"), 0);
    TRUE(holds(b->op.ended, b->op.n_ended, "a2"));
}

/* A lease of a single call is charged to that call, whatever its width; a lease of several is not.
 */
CASE(a_call_that_is_left_of_many_is_not_alone)
{
    struct call_spec s = plan("a");
    s.max_lost = 1;
    accept_spec(b, s);
    accept_one(b, "c");
    struct claim q = want(b, 10);
    q.width = 1;
    q.lease_us = SEC_US;
    claim_as(b, q);
    advance(b, SEC_US);
    sweep(b);
    STATE_IS(b, "a", PAWL_PENDING);
    EQ_INT(lost(b, "a"), 1);
    q.token = fresh_token(b);
    EQ_INT(claim_as(b, q).n, 1); /* a retry_alone call is claimed by itself */
    advance(b, SEC_US);
    sweep(b);
    STATE_IS(b, "a", PAWL_DEAD_LETTER);
}
