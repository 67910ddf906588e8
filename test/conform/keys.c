/*
 * keys.c - calls with a key: their order, when they join the key's queue, and what a claim takes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

#define OFTEN 100

/* Claims and completes the key's due calls until there are none. */
static const char *order_of(struct conform_fixture *b, int run_max)
{
    char *out = arena_printf(&b->a, "%s", "");
    for (int i = 0; i < OFTEN; i++) {
        struct claim q = claim_run(b, 10, run_max);
        if (q.n == 0 && !q.more)
            break;
        if (q.n)
            out = arena_printf(&b->a, "%s%s%s", out, *out ? "|" : "", ids_of(b, &q));
        for (size_t k = 0; k < q.n; k++)
            OK(finish_item(b, q.token,
                           (struct finish_item){ .seq = q.calls[k].seq, .how = END_RESULT }),
               &b->err);
    }
    return out;
}

/* ---- One at a time --------------------------------------------------------------------------- */

CASE(calls_of_a_key_run_one_at_a_time_in_order)
{
    line_up(b, "k", "abc");
    struct claim q = claim_run(b, 10, 0);
    EQ_STR(ids_of(b, &q), "a");
    FALSE(q.more);
    EQ_INT(q.next_due_us, 0);
    EQ_INT(claim_run(b, 10, 10).n, 0); /* no second lease ever holds a call of the key */
    finish_ok(b, q.token, "a", "1");
    EQ_STR(order_of(b, 1), "b|c");
}

CASE(keys_do_not_wait_for_each_other)
{
    line_up(b, "k1", "ab");
    line_up(b, "k2", "cd");
    accept_one(b, "plain");
    struct claim q = claim_run(b, 10, 1);
    EQ_STR(ids_of(b, &q), "a c plain");
    finish_ok(b, q.token, "c", "1");
    EQ_STR(claimable(b, want(b, 10)), "d");
}

CASE(inside_a_key_order_wins_over_priority)
{
    struct call_spec s = keyed("b", "k");
    line_up(b, "k", "a");
    s.priority = 9;
    accept_spec(b, s);
    s = plan("plain");
    s.priority = 5;
    accept_spec(b, s);
    EQ_STR(claimable(b, want(b, 10)), "plain a"); /* the first call of a key counts with its own */
    EQ_STR(order_of(b, 1), "plain a|b");
}

CASE(types_and_queues_share_one_space_of_keys)
{
    struct call_spec s = keyed("b", "k");
    line_up(b, "k", "a");
    s.type = BYTES("u");
    s.queue = BYTES("other");
    accept_spec(b, s);
    EQ_STR(order_of(b, 10), "a|b");
}

CASE(a_paused_queue_holds_its_keys)
{
    struct call_spec s = keyed("b", "k");
    line_up(b, "k", "a");
    s.queue = BYTES("other");
    accept_spec(b, s);
    pause_queue(b, "default", true);
    EQ_INT(claim_run(b, 10, 10).n, 0);
    EQ_INT(get(b, "a").waiting_for, WAIT_PAUSED);
    EQ_INT(get(b, "b").waiting_for, WAIT_KEY);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

CASE(numbers_follow_the_first_claims_without_gaps)
{
    struct call_spec s = keyed("x", "k");
    s.expires_in_us = SEC_US;
    line_up(b, "k", "abc");
    accept_spec(b, s);
    line_up(b, "k", "d");
    line_up(b, "other", "o");
    EQ_INT(get(b, "a").key_no, 0);
    OK(by_id(b, OP_CANCEL, "b"), NULL);
    advance(b, SEC_US);
    EQ_STR(order_of(b, 1), "a o|c|d");
    EQ_INT(get(b, "a").key_no, 1);
    EQ_INT(get(b, "b").key_no, 0);
    EQ_INT(get(b, "c").key_no, 2);
    EQ_INT(get(b, "x").key_no, 0);
    EQ_INT(get(b, "d").key_no, 3);
    EQ_INT(get(b, "o").key_no, 1);
}

CASE(a_number_is_kept_over_retry_give_back_and_loss)
{
    line_up(b, "k", "ab");
    struct claim q = claim_run(b, 10, 2);
    EQ_INT(q.calls[0].key_no, 1);
    EQ_INT(q.calls[1].key_no, 2);
    OK(finish_run(b, q.token, "a", "l"), NULL);
    EQ_INT(get(b, "a").key_no, 1);
    EQ_INT(get(b, "b").key_no, 2);
    advance(b, SEC_US);
    q = claim_run(b, 10, 2);
    EQ_INT(q.calls[0].key_no, 1);
    EQ_INT(q.calls[1].key_no, 2);
    finish_error(b, q.token, "a", "x");
    advance(b, SEC_US);
    claim_run_for(b, 10, 2, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    sweep(b);
    EQ_STR(order_of(b, 1), "a|b");
    EQ_INT(get(b, "a").key_no, 1);
    EQ_INT(get(b, "b").key_no, 2);
}

CASE(a_retried_call_gets_a_new_number_at_the_end)
{
    line_up(b, "k", "ab");
    struct claim q = claim_run(b, 10, 1);
    OK(finish(b, q.token, "a", END_REFUSE), NULL);
    EQ_INT(get(b, "a").key_no, 1);
    OK(by_id(b, OP_RETRY, "a"), NULL);
    EQ_INT(get(b, "a").key_no, 0);
    EQ_INT(get(b, "a").position, 2);
    EQ_STR(order_of(b, 1), "b|a");
    EQ_INT(get(b, "b").key_no, 2);
    EQ_INT(get(b, "a").key_no, 3);
    EQ_INT(accept_one(b, "next"), 4); /* its place used a number */
}

/* ---- Delayed calls --------------------------------------------------------------------------- */

static struct call_spec delayed(const char *id, const char *key, int64_t us)
{
    struct call_spec s = keyed(id, key);
    s.delay_us = us;
    return s;
}

CASE(a_delayed_call_holds_nobody_back)
{
    struct call c = accept_spec(b, delayed("late", "k", 5 * SEC_US)).call;
    FALSE(c.in_line);
    EQ_INT(c.position, 0);
    EQ_INT(c.waiting_for, WAIT_TIME);
    EQ_STR(keys_shown(b, false), ""); /* idle: delayed calls do not count */
    line_up(b, "k", "a");
    EQ_INT(get(b, "a").position, 1);
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a");
    EQ_INT(q.next_due_us, now(b) + 5 * SEC_US);
    EQ_INT(get(b, "late").waiting_for, WAIT_TIME);
}

CASE(a_delayed_call_joins_at_the_end_when_it_is_due)
{
    int64_t seq = accept_spec(b, delayed("late", "k", 5 * SEC_US)).call.seq;
    EQ_INT(seq, 1);
    line_up(b, "k", "a");
    advance(b, 5 * SEC_US);
    line_up(b, "k", "b");
    struct sweep w = sweep(b);
    EQ_INT(w.joined, 1);
    EQ_INT(w.next_us, 0);
    FALSE(w.more);
    struct call c = get(b, "late");
    TRUE(c.in_line);
    EQ_INT(c.position, 3);
    EQ_INT(c.waiting_for, WAIT_KEY);
    EQ_INT(c.seq, 1);
    line_up(b, "k", "c");
    EQ_INT(get(b, "c").seq, 5); /* its place is the fourth number, which no call got */
    EQ_STR(order_of(b, 10), "a b late c");
}

CASE(delayed_calls_join_by_run_at_then_seq)
{
    accept_spec(b, delayed("c", "k", 3 * SEC_US));
    accept_spec(b, delayed("a", "k", 1 * SEC_US));
    accept_spec(b, delayed("d", "k", 3 * SEC_US));
    accept_spec(b, delayed("b", "k", 2 * SEC_US));
    EQ_INT(sweep(b).next_us, now(b) + SEC_US);
    advance(b, 3 * SEC_US);
    struct sweep w = sweep_max(b, 3);
    EQ_INT(w.joined, 3);
    TRUE(w.more);
    FALSE(get(b, "d").in_line);
    EQ_STR(order_of(b, 10), "a b c d");
}

CASE(a_claim_lets_delayed_calls_join_whatever_their_lanes)
{
    struct bytes type = BYTES("u");
    accept_spec(b, delayed("late", "k", SEC_US));
    struct claim q = want(b, 10);
    q.types = &type;
    q.n_types = 1;
    EQ_INT(claim_as(b, q).next_due_us, now(b) + SEC_US);
    advance(b, SEC_US);
    q.token = fresh_token(b);
    q = claim_as(b, q);
    EQ_INT(q.n, 0);
    FALSE(q.more);
    EQ_INT(q.next_due_us, 0);
    TRUE(get(b, "late").in_line);
    EQ_STR(claimable(b, want(b, 10)), "late");
}

CASE(a_claim_takes_what_has_just_joined)
{
    accept_spec(b, delayed("late", "k", SEC_US));
    advance(b, SEC_US);
    struct claim q = claim_run(b, 10, 1);
    EQ_STR(ids_of(b, &q), "late");
    EQ_INT(q.calls[0].key_no, 1);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

CASE(a_run_is_as_long_as_asked_for)
{
    line_up(b, "k", "abcde");
    line_up(b, "m", "xy");
    EQ_STR(claimable(b, want(b, 10)), "a x");
    struct claim q = claim_run(b, 10, 3);
    EQ_STR(ids_of(b, &q), "a b c x y"); /* they stay together */
    OK(finish_run(b, q.token, "abcxy", "bbbbb"), NULL);
    q = claim_run(b, 4, 3);
    EQ_STR(ids_of(b, &q), "a b c x");
    OK(finish_run(b, q.token, "abcx", "bbbb"), NULL);
    q = claim_run(b, 2, 3);
    EQ_STR(ids_of(b, &q), "a b");
    TRUE(q.more); /* x */
}

CASE(a_run_ends_at_another_lane)
{
    struct call_spec s = keyed("b", "k");
    line_up(b, "k", "a");
    s.queue = BYTES("other");
    accept_spec(b, s);
    s.id = BYTES("c");
    accept_spec(b, s);
    s.id = BYTES("d");
    s.type = BYTES("u");
    accept_spec(b, s);
    EQ_STR(order_of(b, 10), "a|b c|d");
}

CASE(a_run_ends_at_a_lost_call)
{
    struct op move = by_id_op(OP_MOVE, "s");
    line_up(b, "k", "s");
    claim_for(b, 1, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    sweep(b);
    move.by_id.run_at_us = now(b) + SEC_US;
    OK(one(b, &move), &move.err);
    line_up(b, "k", "ab");
    advance(b, SEC_US);
    sweep(b);
    line_up(b, "k", "cd");
    EQ_STR(order_of(b, 10), "a b|s|c d");
    EQ_INT(get(b, "s").key_no, 1); /* assigned when it was lost */
}

CASE(a_run_ends_at_one_that_is_not_due)
{
    advance(b, 10 * SEC_US);
    struct call_spec s = keyed("b", "k");
    line_up(b, "k", "a");
    advance(b, SEC_US);
    accept_spec(b, s);
    advance(b, -SEC_US); /* the database's clock was corrected */
    EQ_STR(claimable(b, want(b, 10)), "a");
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a");
    finish_ok(b, q.token, "a", "1");
    EQ_INT(claim_run(b, 10, 10).next_due_us, now(b) + SEC_US);
}

CASE(a_run_ends_with_the_claim_at_what_does_not_fit)
{
    int n = CLAIM_LEN_MAX / INPUT_LEN_MAX;
    char *data = arena_zalloc(&b->a, INPUT_LEN_MAX, 1);
    TRUE(data != NULL);
    for (int i = 0; i < n; i++) {
        struct call_spec s = keyed(arena_printf(&b->a, "big%d", i), "k");
        s.input = (struct payload){ PAWL_BYTES, { data, INPUT_LEN_MAX - (i == 0) } };
        OK(accept_spec(b, s).status, NULL);
    }
    struct call_spec s = keyed("over", "k");
    s.input = (struct payload){ PAWL_BYTES, { data, 2 } };
    accept_spec(b, s);
    s = plan("small"); /* it would fit, but the order wins */
    s.input = (struct payload){ PAWL_BYTES, { data, 1 } };
    accept_spec(b, s);
    struct claim q = claim_run(b, 100, 100);
    EQ_INT(q.n, n);
    TRUE(q.more);
    STATE_IS(b, "small", PAWL_PENDING);
}

CASE(expired_inside_a_run)
{
    struct call_spec s = keyed("x", "k");
    s.expires_in_us = SEC_US;
    line_up(b, "k", "a");
    accept_spec(b, s);
    s.id = BYTES("y");
    accept_spec(b, s);
    line_up(b, "k", "bc");
    advance(b, SEC_US);
    struct claim q = claim_run(b, 10, 2);
    EQ_STR(ids_of(b, &q), "a b"); /* they do not count for run_max */
    EQ_INT(q.calls[1].key_no, 2);
    EQ_INT(b->op.n_ended, 2);
    TRUE(holds(b->op.ended, 2, "x") && holds(b->op.ended, 2, "y"));
    STATE_IS(b, "x", PAWL_EXPIRED);
    EQ_INT(get(b, "c").position, 2);
}

CASE(an_expired_call_beyond_run_max_is_not_looked_at)
{
    struct call_spec s = keyed("x", "k");
    s.expires_in_us = SEC_US;
    line_up(b, "k", "a");
    accept_spec(b, s);
    advance(b, SEC_US);
    EQ_INT(claim_run(b, 10, 1).n, 1);
    EQ_INT(b->op.n_ended, 0);
    STATE_IS(b, "x", PAWL_PENDING);
}

CASE(an_expired_call_on_offer_leaves_its_line_to_the_next_claim)
{
    struct call_spec s = keyed("x", "k");
    s.expires_in_us = SEC_US;
    accept_spec(b, s);
    line_up(b, "k", "ab");
    advance(b, SEC_US);
    struct claim q = claim_run(b, 10, 10);
    EQ_INT(q.n, 0);
    TRUE(q.more);
    EQ_INT(b->op.n_ended, 1);
    EQ_INT(get(b, "a").position, 1);
    EQ_INT(get(b, "a").waiting_for, WAIT_WORKER);
    q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a b");
}

CASE(a_lost_call_that_is_first_is_alone)
{
    line_up(b, "k", "ab");
    claim_for(b, 1, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    sweep(b);
    accept_one(b, "plain");
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a");
    EQ_INT(q.calls[0].counts.lost, 1);
    finish_ok(b, q.token, "a", "1");
    q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "b plain");
}

CASE(a_claim_without_lost_calls_leaves_the_whole_line)
{
    line_up(b, "k", "ab");
    claim_for(b, 1, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    sweep(b);
    struct claim q = want(b, 10);
    q.no_retry_alone = true;
    q = claim_as(b, q);
    EQ_INT(q.n, 0);
    FALSE(q.more);
}

/* ---- States ---------------------------------------------------------------------------------- */

CASE(the_first_call_of_each_key_brings_its_state)
{
    int64_t version = object_put(b, "t", "k", "[1]");
    object_put(b, "u", "m", "[2]");
    line_up(b, "k", "ab");
    line_up(b, "m", "c"); /* of type t, which has no state */
    accept_one(b, "plain");
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a b c plain");
    EQ_INT(q.states[0].version, version);
    EQ_INT(q.states[0].payload.form, PAWL_JSON);
    EQ_TEXT(q.states[0].payload.bytes, "[1]");
    for (int i = 1; i < 4; i++) {
        EQ_INT(q.states[i].version, 0);
        EQ_INT(q.states[i].payload.form, PAWL_NOTHING);
    }
}

CASE(without_keys_there_are_no_states)
{
    accept_one(b, "plain");
    struct claim q = claim_run(b, 10, 10);
    EQ_INT(q.n, 1);
    TRUE(q.states == NULL);
}

/* ---- The same claim again -------------------------------------------------------------------- */

CASE(a_repeated_claim_shows_runs_together)
{
    struct call_spec s = keyed("b", "k");
    line_up(b, "k", "a");
    accept_one(b, "plain");
    accept_spec(b, s);
    int64_t version = object_put(b, "t", "k", "1");
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a b plain");
    struct claim again = claim_as(b, q);
    EQ_STR(ids_of(b, &again), "a b plain");
    EQ_INT(again.calls[1].state, PAWL_PROCESSING);
    EQ_INT(again.calls[1].key_no, 2);
    EQ_INT(again.states[0].version, version);
    EQ_INT(again.states[1].version, 0);
    finish_ok(b, q.token, "a", "1");
    again = claim_as(b, q);
    EQ_STR(ids_of(b, &again), "plain b"); /* at the place of its first remaining call */
    EQ_INT(again.states[1].version, version);
}

/* ---- How much a key holds -------------------------------------------------------------------- */

static void bound(struct conform_fixture *b, int64_t max)
{
    store_close(b->s);
    b->key_pending_max = max;
    b->s = conform_fixture_handle(b);
    OK(store_migrate(b->s, true, &b->err), &b->err);
}

CASE(a_key_has_an_edge)
{
    bound(b, 3);
    line_up(b, "k", "ab");
    EQ_STATUS(accept_spec(b, delayed("late", "k", SEC_US)).status, PAWL_OK, NULL);
    EQ_STATUS(accept_spec(b, keyed("d", "k")).status, PAWL_FULL, NULL);
    EQ_STATUS(found(b, "d"), PAWL_NOT_FOUND, NULL);
    /* A duplicate, not a new call. */
    EQ_STATUS(accept_spec(b, keyed("a", "k")).status, PAWL_OK, NULL);
    line_up(b, "other", "o");
    EQ_INT(get(b, "o").seq, 4);
    struct claim q = claim_run(b, 10, 1); /* one is in a lease */
    EQ_STATUS(accept_spec(b, keyed("d", "k")).status, PAWL_OK, NULL);
    EQ_STATUS(accept_spec(b, keyed("e", "k")).status, PAWL_FULL, NULL);
    finish_error(b, q.token, "a", "x"); /* released: exceeding the limit does no harm */
    EQ_INT(key_of(b, "k").pending, 4);
}

CASE(an_atomic_batch_counts_itself)
{
    bound(b, 2);
    struct call_spec v[3];
    for (int i = 0; i < 3; i++)
        v[i] = settled(b, keyed(arena_printf(&b->a, "a%d", i), "k"));
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = v, .n = 3, .atomic = true } };
    EQ_STATUS(one(b, &op), PAWL_FULL, NULL);
    EQ_INT(op.accept.refused, 2);
    EQ_STR(op.err.text, "key \"k\": 2 calls pending, limit 2");
    EQ_STATUS(found(b, "a0"), PAWL_NOT_FOUND, NULL);
    EQ_INT(accept_one(b, "next"), 1);
}

CASE(a_finish_sends_beyond_the_edge)
{
    bound(b, 1);
    line_up(b, "k", "a");
    accept_one(b, "plain");
    struct call_spec send[] = { settled(b, keyed("b", "k")), settled(b, keyed("c", "k")) };
    struct claim q = claim_run(b, 10, 1);
    struct finish_item f = item("plain", END_RESULT);
    f.send = send;
    f.n_send = 2;
    OK(finish_item(b, q.token, f), &b->err);
    EQ_INT(b->item.state, PAWL_COMPLETED);
    EQ_INT(key_of(b, "k").pending, 2);
}
