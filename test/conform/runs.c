/*
 * runs.c - how the calls of a run end: in order, and with effects on the calls behind them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static const char *states_of(struct conform_fixture *b, const char *letters)
{
    char *out = arena_printf(&b->a, "%s", "");
    for (const char *at = letters; *at; at++)
        out = arena_printf(&b->a, "%s%s%s", out, *out ? " " : "",
                           pawl_state_name(state_of(b, arena_printf(&b->a, "%c", *at))));
    return out;
}

/* ---- Order ----------------------------------------------------------------------------------- */

CASE(a_run_ends_in_order)
{
    line_up(b, "k", "abc");
    struct claim q = claim_run(b, 10, 10);
    const char *before = snapshot(b);
    EQ_STATUS(finish(b, q.token, "b", END_RESULT), PAWL_INVALID, NULL);
    EQ_STR(b->err.text, "call \"b\": the call before it in key \"k\" has not ended");
    EQ_STATUS(finish_run(b, q.token, "ac", "rr"), PAWL_INVALID, NULL);
    EQ_STR(b->op.err.text, "call \"c\": the call before it in key \"k\" has not ended");
    EQ_STATUS(finish_run(b, q.token, "ba", "rr"), PAWL_INVALID, NULL);
    EQ_STATUS(finish_run(b, q.token, "b", "e"), PAWL_INVALID, NULL); /* whatever its end, but for a
                                                                        release */
    EQ_STATUS(finish_run(b, q.token, "b", "l"), PAWL_INVALID, NULL);
    EQ_STATUS(finish_run(b, q.token, "b", "c"), PAWL_INVALID, NULL);
    EQ_STR(snapshot(b), before);
    OK(finish_run(b, q.token, "ab", "rr"), NULL);
    OK(finish_run(b, q.token, "c", "r"), NULL);
    EQ_STR(states_of(b, "abc"), "completed completed completed");
}

CASE(runs_of_two_keys_may_be_mixed)
{
    line_up(b, "k", "ab");
    line_up(b, "m", "cd");
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a b c d");
    OK(finish_run(b, q.token, "cadb", "rrrr"), NULL);
    EQ_STR(states_of(b, "abcd"), "completed completed completed completed");
}

CASE(the_key_goes_to_the_next_when_the_run_is_over)
{
    line_up(b, "k", "abc");
    struct claim q = claim_run(b, 10, 2);
    finish_ok(b, q.token, "a", "1");
    EQ_INT(claim_run(b, 10, 1).n, 0); /* b is still held */
    finish_ok(b, q.token, "b", "1");
    EQ_STR(claimable(b, want(b, 10)), "c");
}

CASE(who_begins_behind_another_begins_after_its_end)
{
    line_up(b, "k", "abc");
    int64_t begin = now(b);
    struct claim q = claim_run(b, 10, 10);
    advance(b, 5 * SEC_US);
    finish_ok(b, q.token, "a", "1");
    advance(b, 5 * SEC_US);
    struct finish_item f = item("b", END_RESULT);
    f.started_us = begin + SEC_US;
    OK(finish_item(b, q.token, f), &b->err);
    f = item("c", END_ERROR);
    f.started_us = begin + 11 * SEC_US;
    advance(b, 5 * SEC_US);
    OK(finish_item(b, q.token, f), &b->err);
    EQ_INT(get(b, "a").started_us, begin);
    EQ_INT(get(b, "a").finished_us, begin + 5 * SEC_US);
    EQ_INT(get(b, "b").started_us, begin + 5 * SEC_US);
    EQ_INT(get(b, "b").finished_us, begin + 10 * SEC_US);
    EQ_INT(attempts_of(b, "c").v[0].started_us, begin + 11 * SEC_US);
    EQ_INT(get(b, "b").claimed_us, begin);
}

CASE(ended_in_one_finish_they_begin_at_its_time)
{
    line_up(b, "k", "ab");
    struct claim q = claim_run(b, 10, 10);
    advance(b, 5 * SEC_US);
    OK(finish_run(b, q.token, "ab", "rr"), NULL);
    EQ_INT(get(b, "b").started_us, now(b));
}

/* ---- Calls that do not complete -------------------------------------------------------------- */

CASE(a_failure_in_the_middle_hands_the_rest_back)
{
    line_up(b, "k", "abcde");
    struct claim q = claim_run(b, 10, 4);
    OK(finish_run(b, q.token, "abcd", "rerf"), NULL);
    struct finish_item *v = b->op.finish.v;
    EQ_INT(v[0].state, PAWL_COMPLETED);
    EQ_INT(v[1].state, PAWL_PENDING);
    EQ_INT(v[1].counts.attempts, 1);
    for (int i = 2; i < 4; i++) { /* whatever the finish says about it */
        EQ_INT(v[i].state, PAWL_PENDING);
        EQ_INT(v[i].counts.attempts, 0);
        EQ_INT(v[i].finished_us, 0);
        ABSENT(v[i].error_out);
    }
    EQ_STR(states_of(b, "abcde"), "completed pending pending pending pending");
    EQ_INT(attempts_of(b, "d").n, 0);
    EQ_INT(get(b, "e").position, 4);
    EQ_INT(claim_run(b, 10, 10).n, 0); /* b is first, and keeps its key waiting until it is due */
    EQ_INT(b->op.claim.next_due_us, now(b) + SEC_US);
    advance(b, SEC_US);
    q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "b c d e");
}

CASE(every_other_end_hands_the_rest_back)
{
    static const char *const ends[] = { "e", "f", "l", "b", "c" };
    for (int i = 0; i < 5; i++) {
        const char *key = arena_printf(&b->a, "k%d", i);
        const char *first = arena_printf(&b->a, "%c", 'a' + 2 * i);
        const char *second = arena_printf(&b->a, "%c", 'b' + 2 * i);
        line_up(b, key, first);
        line_up(b, key, second);
        struct claim q = claim_run(b, 10, 10);
        EQ_STR(ids_of(b, &q), arena_printf(&b->a, "%s %s", first, second));
        OK(finish_run(b, q.token, first, ends[i]), NULL);
        EQ_STATUS(finish(b, q.token, second, END_RESULT), PAWL_LOST_LEASE, NULL);
        EQ_INT(state_of(b, second), PAWL_PENDING);
        if (ends[i][0] != 'f')
            OK(by_id(b, OP_CANCEL, first), NULL);
        OK(by_id(b, OP_CANCEL, second), NULL);
    }
}

CASE(what_is_not_named_goes_back_too)
{
    line_up(b, "k", "abc");
    struct claim q = claim_run(b, 10, 10);
    OK(finish(b, q.token, "a", END_REFUSE), NULL);
    EQ_INT(b->op.finish.until_us, 0);
    EQ_STR(claimable(b, want(b, 10)), "b");
    EQ_INT(get(b, "b").counts.attempts, 0);
}

CASE(neighbours_without_the_key_are_not_concerned)
{
    line_up(b, "k", "ab");
    line_up(b, "m", "cd");
    accept_one(b, "p");
    struct claim q = claim_run_for(b, 10, 10, 30 * SEC_US);
    EQ_INT(q.n, 5);
    OK(finish(b, q.token, "a", END_REFUSE), NULL);
    EQ_INT(b->op.finish.until_us, now(b) + 30 * SEC_US);
    OK(finish_run(b, q.token, "cdp", "rrr"), NULL);
}

CASE(a_send_that_conflicts_in_the_middle_of_a_run)
{
    line_up(b, "k", "abc");
    accept_one(b, "known");
    struct claim q = claim_run(b, 3, 3);
    struct call_spec other = plan("known");
    other.input = (struct payload){ PAWL_JSON, BYTES("2") };
    struct call_spec send[] = { settled(b, plan("sent")), settled(b, other) };
    struct finish_item v[] = { item("a", END_RESULT), item("b", END_RESULT),
                               item("c", END_RESULT) };
    v[1].send = send;
    v[1].n_send = 2;
    v[1].state_do = STATE_SET;
    v[1].object = (struct payload){ PAWL_JSON, BYTES("1") };
    struct op op = finish_op(q.token, v, 3);
    OK(one(b, &op), &op.err);
    EQ_INT(v[0].state, PAWL_COMPLETED);
    EQ_INT(v[1].state, PAWL_FAILED);
    EQ_INT(v[1].version, 0);
    EQ_INT(v[2].state, PAWL_PENDING);
    EQ_STATUS(found(b, "sent"), PAWL_NOT_FOUND, NULL);
    EQ_STATUS(object_found(b, "t", "k"), PAWL_NOT_FOUND, NULL);
    EQ_STR(claimable(b, want(b, 10)), "c known");
}

CASE(a_run_may_send_to_its_own_key)
{
    line_up(b, "k", "ab");
    struct claim q = claim_run(b, 10, 10);
    struct call_spec send[] = { settled(b, keyed("c", "k")) };
    struct finish_item f = item("a", END_RESULT);
    f.send = send;
    f.n_send = 1;
    OK(finish_item(b, q.token, f), &b->err);
    EQ_INT(get(b, "c").position, 1);
    EQ_INT(claim_run(b, 10, 10).n, 0);
    finish_ok(b, q.token, "b", "1");
    EQ_STR(claimable(b, want(b, 10)), "c");
}

/* ---- Cancel ---------------------------------------------------------------------------------- */

CASE(a_call_behind_in_a_run_counts_as_processing)
{
    line_up(b, "k", "abc");
    struct claim q = claim_run(b, 10, 10);
    OK(by_id(b, OP_CANCEL, "b"), NULL);
    EQ_INT(b->op.by_id.state, PAWL_PROCESSING);
    STATE_IS(b, "b", PAWL_PENDING);
    TRUE(get(b, "b").cancel_requested);
    EQ_STATUS(by_id(b, OP_RETRY, "c"), PAWL_STATE, NULL);
    EQ_INT(b->op.by_id.state, PAWL_PROCESSING);
    EQ_STATUS(by_id(b, OP_MOVE, "c"), PAWL_BUSY, NULL); /* until it is handed back */
    EQ_INT(b->op.by_id.state, PAWL_PENDING);
    finish_ok(b, q.token, "a", "1");
    OK(finish(b, q.token, "b", END_CANCELLED), NULL);
    EQ_INT(b->item.state, PAWL_CANCELLED);
    EQ_STR(claimable(b, want(b, 10)), "c");
}

CASE(a_cancel_request_is_met_when_the_run_is_handed_back)
{
    line_up(b, "k", "abc");
    struct claim q = claim_run(b, 10, 10);
    OK(by_id(b, OP_CANCEL, "b"), NULL);
    finish_error(b, q.token, "a", "x");
    EQ_INT(b->op.n_ended, 1);
    TRUE(holds(b->op.ended, 1, "b"));
    EQ_STR(states_of(b, "abc"), "pending cancelled pending");
    FALSE(get(b, "b").in_line);
    EQ_INT(get(b, "c").position, 2);
}

/* ---- State ----------------------------------------------------------------------------------- */

static struct finish_item with_state(const char *id, enum ending how, const char *json)
{
    struct finish_item f = item(id, how);
    f.state_do = STATE_SET;
    f.object = (struct payload){ PAWL_JSON, bytes_of(json) };
    return f;
}

CASE(a_result_and_its_state_are_one)
{
    line_up(b, "k", "ab");
    struct claim q = claim_run(b, 10, 10);
    struct finish_item v[] = { with_state("a", END_RESULT, "[1]"),
                               with_state("b", END_RESULT, "[2]") };
    struct op op = finish_op(q.token, v, 2);
    OK(one(b, &op), &op.err);
    EQ_INT(v[0].version, 1);
    EQ_INT(v[1].version, 2);
    struct object o = object_of(b, "t", "k");
    EQ_TEXT(o.state.bytes, "[2]");
    EQ_INT(o.state.form, PAWL_JSON);
    EQ_INT(o.version, 2);
    EQ_INT(o.updated_us, now(b));
    OK(one(b, &op), &op.err); /* the same again: it writes no state */
    EQ_INT(v[0].version, 0);
    EQ_INT(v[0].state, PAWL_COMPLETED);
    EQ_INT(object_of(b, "t", "k").version, 2);
}

CASE(a_failed_call_leaves_the_state_as_it_was)
{
    line_up(b, "k", "abc");
    struct claim q = claim_run(b, 10, 1);
    OK(finish_item(b, q.token, with_state("a", END_RESULT, "[1]")), &b->err);
    static const enum ending hows[] = { END_ERROR, END_TIMEOUT, END_LATER, END_RELEASE,
                                        END_REFUSE };
    for (int i = 0; i < 5; i++) {
        advance(b, 10 * SEC_US);
        q = claim_run(b, 10, 1);
        OK(finish_item(b, q.token, with_state("b", hows[i], "[2]")), &b->err);
        EQ_INT(b->item.version, 0);
    }
    STATE_IS(b, "b", PAWL_FAILED);
    EQ_INT(object_of(b, "t", "k").version, 1);
    EQ_TEXT(object_of(b, "t", "k").state.bytes, "[1]");
}

CASE(what_was_handed_back_writes_no_state)
{
    line_up(b, "k", "ab");
    struct claim q = claim_run(b, 10, 10);
    struct finish_item v[] = { item("a", END_REFUSE), with_state("b", END_RESULT, "[2]") };
    struct op op = finish_op(q.token, v, 2);
    OK(one(b, &op), &op.err);
    EQ_INT(v[1].version, 0);
    EQ_STATUS(object_found(b, "t", "k"), PAWL_NOT_FOUND, NULL);
}

CASE(a_call_may_delete_its_state)
{
    object_put(b, "t", "k", "1");
    object_put(b, "u", "k", "1");
    line_up(b, "k", "ab");
    struct claim q = claim_run(b, 10, 10);
    struct finish_item f = item("a", END_RESULT);
    f.state_do = STATE_DELETE;
    OK(finish_item(b, q.token, f), &b->err);
    EQ_INT(b->item.version, 0);
    EQ_STATUS(object_found(b, "t", "k"), PAWL_NOT_FOUND, NULL);
    OK(object_found(b, "u", "k"), NULL); /* the state belongs to type and key */
    f.id = BYTES("b");                   /* also when there is none */
    OK(finish_item(b, q.token, f), &b->err);
}

CASE(without_a_key_there_is_no_state)
{
    accept_one(b, "p");
    struct token t = claim_n(b, 1);
    EQ_STATUS(finish_item(b, t, with_state("p", END_RESULT, "1")), PAWL_INVALID, NULL);
    EQ_STR(b->err.text, "call \"p\" has no key: it cannot keep a state");
    STATE_IS(b, "p", PAWL_PROCESSING);
}

/* ---- Repeats --------------------------------------------------------------------------------- */

CASE(a_repeated_finish_of_a_run_is_answered_as_the_first)
{
    line_up(b, "k", "abc");
    struct claim q = claim_run_for(b, 10, 10, 30 * SEC_US);
    OK(finish_run(b, q.token, "abc", "rer"), NULL);
    const char *before = snapshot(b);
    OK(finish_run(b, q.token, "abc", "rer"), NULL);
    EQ_INT(b->op.finish.v[0].state, PAWL_COMPLETED);
    EQ_INT(b->op.finish.v[1].state, PAWL_PENDING);
    EQ_INT(b->op.finish.v[1].counts.attempts, 1);
    EQ_INT(b->op.finish.v[2].state, PAWL_PENDING);
    EQ_STR(snapshot(b), before);
}

/* ---- Lost leases ----------------------------------------------------------------------------- */

CASE(of_a_lost_run_only_the_first_is_charged)
{
    line_up(b, "k", "abcd");
    struct claim q = claim_run_for(b, 10, 3, 30 * SEC_US);
    finish_ok(b, q.token, "a", "1");
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 2);
    EQ_INT(get(b, "b").counts.lost, 1);
    EQ_INT(get(b, "c").counts.lost, 0);
    EQ_INT(attempts_of(b, "c").n, 0);
    EQ_INT(get(b, "b").position, 1);
    EQ_INT(get(b, "c").position, 2);
    EQ_STATUS(finish(b, q.token, "b", END_RESULT), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(finish(b, q.token, "c", END_RELEASE), PAWL_LOST_LEASE, NULL);
    q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "b"); /* a retry_alone call at the head is claimed by itself */
    finish_ok(b, q.token, "b", "1");
    q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "c d");
}

CASE(of_several_lost_runs_each_first_is_charged)
{
    line_up(b, "k", "ab");
    line_up(b, "m", "cd");
    claim_run_for(b, 10, 10, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 4);
    EQ_INT(get(b, "a").counts.lost + get(b, "c").counts.lost, 2);
    EQ_INT(get(b, "b").counts.lost + get(b, "d").counts.lost, 0);
}

CASE(a_poisonous_head_is_given_up_and_the_key_goes_on)
{
    struct call_spec s = keyed("x", "k");
    s.max_lost = 2;
    accept_spec(b, s);
    line_up(b, "k", "ab");
    for (int i = 0; i < 2; i++) {
        STATE_IS(b, "x", PAWL_PENDING);
        claim_run_for(b, 10, 10, 30 * SEC_US);
        advance(b, 30 * SEC_US);
        sweep(b);
    }
    STATE_IS(b, "x", PAWL_DEAD_LETTER);
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a b");
    EQ_INT(q.calls[0].counts.lost, 0);
}

CASE(a_node_that_leaves_releases_its_runs)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    line_up(b, "k", "ab");
    claim_run(b, 10, 10);
    OK(node(b, OP_LEAVE, "n1", "b1"), NULL);
    EQ_INT(b->op.node.reclaimed, 2);
    EQ_INT(get(b, "a").counts.lost, 0);
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a b");
}

CASE(a_buried_node_loses_its_runs)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    line_up(b, "k", "abc");
    claim_run(b, 10, 2);
    OK(node(b, OP_BURY, "n1", "b1"), NULL);
    EQ_INT(b->op.node.reclaimed, 2);
    EQ_INT(get(b, "a").counts.lost, 1);
    EQ_INT(get(b, "b").counts.lost, 0);
    EQ_INT(get(b, "c").position, 3);
}

CASE(a_cancel_request_behind_a_lost_head_is_met)
{
    line_up(b, "k", "abc");
    claim_run_for(b, 10, 10, 30 * SEC_US);
    OK(by_id(b, OP_CANCEL, "b"), NULL);
    advance(b, 30 * SEC_US);
    sweep(b);
    EQ_INT(b->op.n_ended, 1);
    EQ_STR(states_of(b, "abc"), "pending cancelled pending");
    EQ_INT(get(b, "b").counts.lost, 0);
}
