/*
 * finish.c - finishing: outcomes, retries, repeats, refusals, and the calls sent with them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

CASE(a_result_completes)
{
    accept_one(b, "a");
    advance(b, 5);
    struct token t = claim_n(b, 1);
    advance(b, 5);
    struct finish_item f = item("a", END_RESULT);
    f.result = (struct payload){ PAWL_JSON, BYTES("{\"n\": 9.99}") };
    f.error = BYTES("ignored");
    f.started_us = now(b) - 2;
    OK(finish_item(b, t, f), &b->err);
    EQ_INT(b->item.state, PAWL_COMPLETED);
    EQ_INT(b->item.seq_found, 1);
    EQ_INT(b->item.finished_us, now(b));
    EQ_INT(b->item.run_at_us, 0);
    ABSENT(b->item.error_out);
    struct call c = get(b, "a");
    EQ_INT(c.state, PAWL_COMPLETED);
    EQ_TEXT(c.result.bytes, "{\"n\": 9.99}");
    EQ_INT(c.result.form, PAWL_JSON);
    ABSENT(c.error);
    EQ_TEXT(c.node, "n1");
    EQ_INT(c.claimed_us, now(b) - 5);
    EQ_INT(c.started_us, now(b) - 2);
    EQ_INT(c.finished_us, now(b));
    EQ_INT(c.keep_until_us, now(b) + RETENTION_US);
    EQ_INT(c.run_at_us, now(b) - 10);
    EQ_INT(attempts_of(b, "a").n, 0);
}

CASE(results_of_every_form)
{
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    accept_n(b, "a", 3);
    struct token t = claim_n(b, 3);
    struct finish_item f = item("a0", END_RESULT);
    f.result = (struct payload){ PAWL_BYTES, { all, 256 } };
    OK(finish_item(b, t, f), &b->err);
    f = item("a1", END_RESULT);
    f.result = (struct payload){ PAWL_BYTES, BYTES("") };
    OK(finish_item(b, t, f), &b->err);
    OK(finish(b, t, "a2", END_RESULT), &b->err);
    struct call c = get(b, "a0");
    EQ_BYTES(c.result.bytes.data, c.result.bytes.len, all, 256);
    EQ_INT(get(b, "a1").result.form, PAWL_BYTES);
    EQ_INT(get(b, "a2").result.form, PAWL_NOTHING);
    STATE_IS(b, "a2", PAWL_COMPLETED);
}

/* What a finish reports about the lease and the queue; a repeat was counted when it was stored. */
CASE(a_finish_says_when_the_rest_ends_and_where_it_was)
{
    accept_n(b, "a", 2);
    struct token t = claim_for(b, 2, 30 * SEC_US);
    int64_t until_us = now(b) + 30 * SEC_US;
    OK(finish(b, t, "a0", END_RESULT), &b->err);
    EQ_INT(b->op.finish.until_us, until_us);
    EQ_TEXT(b->item.queue, "default");
    OK(finish(b, t, "a0", END_RESULT), &b->err);
    EQ_INT(b->op.finish.until_us, until_us);
    ABSENT(b->item.queue);
    OK(finish(b, t, "a1", END_RELEASE), &b->err);
    EQ_INT(b->op.finish.until_us, 0);
    EQ_TEXT(b->item.queue, "default");
}

CASE(a_lease_of_a_node_has_no_end)
{
    accept_n(b, "a", 2);
    struct token t = claim_n(b, 2);
    OK(finish(b, t, "a0", END_RESULT), &b->err);
    EQ_INT(b->op.finish.until_us, 0);
}

CASE(started_is_the_claim_when_nobody_says)
{
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    int64_t claimed = now(b);
    advance(b, 5);
    finish_ok(b, t, "a", "1");
    EQ_INT(get(b, "a").started_us, claimed);
}

CASE(a_call_may_be_named_by_its_number)
{
    int64_t seq = accept_one(b, "a");
    struct finish_item f = { .seq = seq, .how = END_RESULT };
    OK(finish_item(b, claim_n(b, 1), f), &b->err);
    EQ_INT(b->item.seq_found, seq);
    STATE_IS(b, "a", PAWL_COMPLETED);
}

CASE(an_error_is_tried_again_after_the_backoff)
{
    accept_one(b, "a");
    finish_error(b, claim_n(b, 1), "a", "boom");
    EQ_INT(b->item.state, PAWL_PENDING);
    EQ_INT(b->item.run_at_us, now(b) + SEC_US);
    EQ_INT(b->item.counts.attempts, 1);
    EQ_INT(b->item.finished_us, 0);
    EQ_TEXT(b->item.error_out, "boom");
    struct call c = get(b, "a");
    EQ_INT(c.state, PAWL_PENDING);
    EQ_INT(c.waiting_for, WAIT_RETRY);
    EQ_TEXT(c.error, "boom");
    EQ_INT(c.claimed_us, 0);
    ABSENT(c.node);
    EQ_INT(claim_as(b, want(b, 1)).n, 0);
    advance(b, SEC_US);
    finish_error(b, claim_n(b, 1), "a", "bang");
    EQ_INT(b->item.run_at_us, now(b) + 2 * SEC_US);
    EQ_TEXT(get(b, "a").error, "bang");
}

CASE(an_error_may_say_when)
{
    accept_one(b, "a");
    struct finish_item f = item("a", END_ERROR);
    f.retry_in_us = 0;
    OK(finish_item(b, claim_n(b, 1), f), &b->err);
    EQ_INT(b->item.run_at_us, now(b));
    f.retry_in_us = 77;
    OK(finish_item(b, claim_n(b, 1), f), &b->err);
    EQ_INT(b->item.run_at_us, now(b) + 77);
    ABSENT(get(b, "a").error);
}

CASE(attempts_run_out)
{
    struct call_spec s = plan("a");
    s.max_attempts = 2;
    accept_spec(b, s);
    finish_error(b, claim_n(b, 1), "a", "one");
    advance(b, SEC_US);
    OK(finish(b, claim_n(b, 1), "a", END_TIMEOUT), &b->err);
    EQ_INT(b->item.state, PAWL_DEAD_LETTER);
    EQ_INT(b->item.counts.attempts, 2);
    struct attempts t = attempts_of(b, "a");
    EQ_INT(t.n, 2);
    EQ_INT(t.v[0].attempt_no, 1);
    EQ_INT(t.v[0].how, END_ERROR);
    EQ_TEXT(t.v[0].error, "one");
    EQ_TEXT(t.v[0].node, "n1");
    EQ_INT(t.v[0].started_us, now(b) - SEC_US);
    EQ_INT(t.v[0].finished_us, now(b) - SEC_US);
    EQ_INT(t.v[1].attempt_no, 2);
    EQ_INT(t.v[1].how, END_TIMEOUT);
    ABSENT(t.v[1].error);
}

CASE(a_single_attempt_fails_instead)
{
    struct call_spec s = plan("a");
    s.max_attempts = 1;
    accept_spec(b, s);
    finish_error(b, claim_n(b, 1), "a", "boom");
    EQ_INT(b->item.state, PAWL_FAILED);
    EQ_TEXT(b->item.error_out, "boom");
    struct call c = get(b, "a");
    EQ_TEXT(c.error, "boom");
    EQ_INT(c.result.form, PAWL_NOTHING);
    EQ_INT(c.keep_until_us, now(b) + RETENTION_US);
}

CASE(a_refusal_is_for_good)
{
    struct call_spec s = plan("a");
    s.keep_us = 5 * SEC_US;
    accept_spec(b, s);
    struct finish_item f = item("a", END_REFUSE);
    f.error = BYTES("never");
    f.result = (struct payload){ PAWL_JSON, BYTES("1") };
    OK(finish_item(b, claim_n(b, 1), f), &b->err);
    EQ_INT(b->item.state, PAWL_FAILED);
    struct call c = get(b, "a");
    EQ_TEXT(c.error, "never");
    EQ_INT(c.result.form, PAWL_NOTHING); /* a result only for completed */
    EQ_INT(c.keep_until_us, now(b) + 5 * SEC_US);
    EQ_INT(attempts_of(b, "a").v[0].how, END_REFUSE);
}

CASE(the_longest_error_comes_back)
{
    accept_one(b, "a");
    char text[ERROR_LEN_MAX + 1];
    memset(text, 'e', ERROR_LEN_MAX);
    text[ERROR_LEN_MAX] = '\0';
    finish_error(b, claim_n(b, 1), "a", text);
    EQ_TEXT(get(b, "a").error, text);
    EQ_TEXT(attempts_of(b, "a").v[0].error, text);
}

CASE(later_and_release_count_as_nothing)
{
    struct call_spec s = plan("a");
    s.delay_us = 3;
    accept_spec(b, s);
    advance(b, 10);
    struct finish_item f = item("a", END_LATER);
    f.retry_in_us = 50;
    OK(finish_item(b, claim_n(b, 1), f), &b->err);
    EQ_INT(b->item.state, PAWL_PENDING);
    EQ_INT(b->item.run_at_us, now(b) + 50);
    ABSENT(b->item.error_out);
    EQ_INT(get(b, "a").waiting_for, WAIT_TIME);
    advance(b, 50);
    OK(finish(b, claim_n(b, 1), "a", END_RELEASE), &b->err);
    EQ_INT(b->item.run_at_us, now(b)); /* keeps its place */
    struct call c = get(b, "a");
    EQ_INT(c.counts.attempts + c.counts.lost, 0);
    ABSENT(c.error);
    EQ_INT(attempts_of(b, "a").n, 0);
}

CASE(what_is_handed_back_under_an_end_is_not_shown_either)
{
    accept_one(b, "a");
    enum ending hows[] = { END_LATER, END_RELEASE, END_CANCELLED };
    for (int i = 0; i < 3; i++) {
        struct finish_item f = item("a", hows[i]);
        f.retry_in_us = 0;
        OK(finish_item(b, claim_for(b, 1, 30 * SEC_US), f), &b->err);
        EQ_INT(b->item.state, PAWL_PENDING);
    }
    EQ_INT(attempts_of(b, "a").n, 0);
    ABSENT(get(b, "a").error);
    finish_error(b, claim_n(b, 1), "a", "x");
    EQ_INT(attempts_of(b, "a").v[0].attempt_no, 1);
}

CASE(cancelled_without_a_request_is_handed_back)
{
    accept_one(b, "a");
    OK(finish(b, claim_n(b, 1), "a", END_CANCELLED), &b->err);
    EQ_INT(b->item.state, PAWL_PENDING);
    STATE_IS(b, "a", PAWL_PENDING);
}

CASE(a_retry_keeps_lane_and_priority)
{
    struct call_spec s = plan("a");
    s.queue = BYTES("q");
    s.priority = 4;
    accept_spec(b, s);
    finish_error(b, claim_n(b, 1), "a", "x");
    struct call c = get(b, "a");
    EQ_TEXT(c.spec.queue, "q");
    EQ_INT(c.spec.priority, 4);
    EQ_INT(c.run_at_us, now(b) + SEC_US);
    advance(b, SEC_US);
    finish_ok(b, claim_n(b, 1), "a", "1");
    EQ_INT(get(b, "a").run_at_us, now(b) - SEC_US); /* the call's own time, once it has ended */
}

CASE(a_lease_is_finished_in_parts)
{
    accept_n(b, "a", 3);
    struct token t = claim_n(b, 3);
    finish_ok(b, t, "a1", "1");
    STATE_IS(b, "a0", PAWL_PROCESSING);
    struct finish_item rest[] = { item("a2", END_RESULT), item("a0", END_REFUSE) };
    struct op op = finish_op(t, rest, 2);
    OK(one(b, &op), &op.err);
    EQ_INT(rest[0].state, PAWL_COMPLETED);
    EQ_INT(rest[1].state, PAWL_FAILED);
    op = (struct op){ .kind = OP_EXTEND, .extend = { .token = t, .lease_us = SEC_US } };
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, &op.err); /* the last finish deletes it */
}

CASE(all_items_or_none)
{
    accept_n(b, "a", 2);
    struct token t = claim_n(b, 1); /* a0 only */
    const char *before = snapshot(b);
    struct finish_item v[] = { item("a0", END_RESULT), item("a1", END_RESULT) };
    struct op op = finish_op(t, v, 2);
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, &op.err);
    NE_INT(strlen(op.err.text), 0);
    EQ_STR(snapshot(b), before);
    v[1] = item("unknown", END_RESULT);
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, &op.err);
    EQ_STR(snapshot(b), before);
}

CASE(the_same_call_twice_is_invalid)
{
    int64_t seq = accept_one(b, "a");
    struct token t = claim_n(b, 1);
    struct finish_item v[] = { item("a", END_RESULT), { .seq = seq, .how = END_REFUSE } };
    struct op op = finish_op(t, v, 2);
    EQ_STATUS(one(b, &op), PAWL_INVALID, &op.err);
    STATE_IS(b, "a", PAWL_PROCESSING);
    op = finish_op(fresh_token(b), v, 2);
    EQ_STATUS(one(b, &op), PAWL_INVALID, &op.err); /* before anything else */
}

CASE(a_token_nobody_knows_is_refused)
{
    accept_one(b, "a");
    claim_n(b, 1);
    EQ_STATUS(finish(b, fresh_token(b), "a", END_RESULT), PAWL_LOST_LEASE, NULL);
    STATE_IS(b, "a", PAWL_PROCESSING);
}

CASE(a_lease_that_is_over_is_refused)
{
    accept_n(b, "a", 2);
    struct token t = claim_for(b, 2, 30 * SEC_US);
    advance(b, 30 * SEC_US - 1);
    finish_ok(b, t, "a0", "1");
    advance(b, 1); /* until <= now */
    EQ_STATUS(finish(b, t, "a1", END_RESULT), PAWL_LOST_LEASE, NULL);
    STATE_IS(b, "a1", PAWL_PROCESSING);
    OK(finish(b, t, "a0", END_RESULT), NULL); /* what it stored in time is still accepted */
}

/* ---- Repeats --------------------------------------------------------------------------------- */

static void repeats(struct conform_fixture *b, enum ending how, int64_t lease_us)
{
    struct call_spec s = plan(arena_printf(&b->a, "r%d", (int)how));
    accept_spec(b, s);
    struct token t = claim_for(b, 1, lease_us);
    struct finish_item f = {
        .id = s.id, .how = how, .retry_in_us = 9 * SEC_US, .error = BYTES("e")
    };
    OK(finish_item(b, t, f), &b->err);
    struct finish_item first = b->item;
    advance(b, 1);
    const char *before = snapshot(b);
    OK(finish_item(b, t, f), &b->err);
    EQ_INT(b->item.state, first.state);
    EQ_INT(b->item.seq_found, first.seq_found);
    EQ_INT(b->item.run_at_us, first.run_at_us);
    EQ_INT(b->item.finished_us, first.finished_us);
    EQ_INT(b->item.counts.attempts, first.counts.attempts);
    TRUE(bytes_eq(b->item.error_out, first.error_out));
    EQ_STR(snapshot(b), before);
}

CASE(a_repeated_finish_gets_the_answer_of_the_first)
{
    enum ending hows[] = { END_RESULT, END_ERROR,   END_TIMEOUT,  END_REFUSE,
                           END_LATER,  END_RELEASE, END_CANCELLED };
    for (size_t i = 0; i < COUNT_OF(hows); i++) {
        repeats(b, hows[i], 30 * SEC_US);
        if (state_of(b, arena_printf(&b->a, "r%d", (int)hows[i])) == PAWL_PENDING)
            OK(by_id(b, OP_CANCEL, arena_printf(&b->a, "r%d", (int)hows[i])), NULL);
    }
}

CASE(a_repeat_under_a_lease_without_end)
{
    repeats(b, END_RESULT, 0);
    repeats(b, END_ERROR, 0);
    repeats(b, END_REFUSE, 0);
}

CASE(a_repeat_is_answered_whatever_happened_since)
{
    accept_one(b, "a");
    struct token t1 = claim_n(b, 1);
    finish_error(b, t1, "a", "boom");
    advance(b, SEC_US);
    struct token t2 = claim_n(b, 1);
    OK(finish(b, t1, "a", END_ERROR), &b->err); /* another node runs it meanwhile */
    EQ_INT(b->item.state, PAWL_PENDING);
    EQ_TEXT(b->item.error_out, "boom");
    STATE_IS(b, "a", PAWL_PROCESSING);
    finish_ok(b, t2, "a", "1");
    OK(finish(b, t1, "a", END_ERROR), &b->err);
    EQ_INT(b->item.state, PAWL_PENDING);
    STATE_IS(b, "a", PAWL_COMPLETED);
    EQ_INT(attempts_of(b, "a").n, 1);
}

CASE(a_repeat_with_another_ending_changes_nothing)
{
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    finish_ok(b, t, "a", "1");
    struct finish_item f = item("a", END_RESULT);
    f.result = (struct payload){ PAWL_JSON, BYTES("2") };
    OK(finish_item(b, t, f), &b->err);
    OK(finish(b, t, "a", END_REFUSE), &b->err);
    EQ_INT(b->item.state, PAWL_COMPLETED);
    EQ_TEXT(get(b, "a").result.bytes, "1");
}

CASE(a_repeat_half_of_which_is_new)
{
    accept_n(b, "a", 2);
    struct token t = claim_n(b, 2);
    finish_ok(b, t, "a0", "1");
    struct finish_item v[] = { item("a0", END_RESULT), item("a1", END_RESULT) };
    struct op op = finish_op(t, v, 2);
    OK(one(b, &op), &op.err);
    EQ_INT(v[0].state, PAWL_COMPLETED);
    EQ_TEXT(get(b, "a0").result.bytes, "1");
    STATE_IS(b, "a1", PAWL_COMPLETED);
}
