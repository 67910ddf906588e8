/*
 * key_moves.c - calls with a key that are cancelled, expire, are moved or forgotten; lost answers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "conform.h"

static struct call_spec delayed(const char *id, const char *key, int64_t us)
{
    struct call_spec s = keyed(id, key);
    s.delay_us = us;
    return s;
}

static const char *line_of(struct conform_fixture *b)
{
    struct claim q = claim_run(b, 10, 10);
    const char *out = ids_of(b, &q);
    for (size_t i = 0; i < q.n; i++) {
        struct finish_item f = { .seq = q.calls[i].seq, .how = END_RELEASE };
        OK(finish_item(b, q.token, f), &b->err);
        break; /* the other calls go with it */
    }
    return out;
}

/* ---- Cancel and expiry ----------------------------------------------------------------------- */

CASE(cancel_takes_a_call_out_of_its_line)
{
    line_up(b, "k", "abcd");
    accept_spec(b, delayed("late", "k", SEC_US));
    OK(by_id(b, OP_CANCEL, "c"), NULL); /* in the key's queue */
    EQ_INT(b->op.by_id.state, PAWL_CANCELLED);
    EQ_STR(line_of(b), "a b d");
    OK(by_id(b, OP_CANCEL, "a"), NULL); /* ready to be claimed */
    EQ_INT(get(b, "b").waiting_for, WAIT_WORKER);
    EQ_STR(line_of(b), "b d");
    OK(by_id(b, OP_CANCEL, "late"), NULL); /* delayed */
    advance(b, SEC_US);
    EQ_STR(line_of(b), "b d");
    OK(by_id(b, OP_CANCEL, "b"), NULL);
    OK(by_id(b, OP_CANCEL, "d"), NULL);
    EQ_STR(keys_shown(b, false), "");
    FALSE(get(b, "d").in_line);
}

CASE(expiry_takes_a_call_out_of_its_line)
{
    for (int i = 0; i < 4; i++) {
        struct call_spec s = keyed(arena_printf(&b->a, "%c", 'a' + i), "k");
        s.expires_in_us = i == 0 || i == 2 ? SEC_US : 0;
        accept_spec(b, s);
    }
    struct call_spec s = delayed("late", "k", 5 * SEC_US);
    s.expires_in_us = SEC_US;
    accept_spec(b, s);
    EQ_INT(sweep(b).next_us, now(b) + SEC_US);
    advance(b, SEC_US);
    EQ_INT(sweep(b).expired, 3);
    EQ_INT(b->op.n_ended, 3);
    EQ_STR(line_of(b), "b d");
    STATE_IS(b, "late", PAWL_EXPIRED);
}

CASE(what_a_lease_holds_does_not_expire)
{
    struct call_spec s = keyed("b", "k");
    s.expires_in_us = SEC_US;
    line_up(b, "k", "a");
    accept_spec(b, s);
    struct claim q = claim_run(b, 10, 10);
    advance(b, SEC_US);
    struct sweep w = sweep(b);
    EQ_INT(w.expired, 0);
    EQ_INT(w.next_us, 0);
    OK(finish(b, q.token, "a", END_RELEASE), NULL); /* it may after it was handed back */
    EQ_INT(sweep(b).expired, 1);
    STATE_IS(b, "b", PAWL_EXPIRED);
}

/* ---- Move ------------------------------------------------------------------------------------ */

static void move(struct conform_fixture *b, const char *id, int64_t run_at_us, const char *queue)
{
    struct op op = by_id_op(OP_MOVE, id);
    op.by_id.run_at_us = run_at_us;
    if (queue)
        op.by_id.queue = bytes_of(queue);
    OK(one(b, &op), &op.err);
}

CASE(moved_without_a_time_it_keeps_its_place)
{
    struct op op = by_id_op(OP_MOVE, "b");
    line_up(b, "k", "abc");
    op.by_id.priority = 7;
    OK(one(b, &op), &op.err);
    EQ_INT(get(b, "b").position, 2);
    EQ_INT(get(b, "b").spec.priority, 7);
    move(b, "a", 0, "other"); /* it is ready in the other lane now */
    struct bytes other = BYTES("other");
    struct claim q = want(b, 10);
    q.queues = &other;
    q.n_queues = 1;
    EQ_STR(claimable(b, q), "a");
    EQ_STR(line_of(b), "a"); /* the next one is of another lane */
}

CASE(moved_to_now_it_keeps_its_place)
{
    line_up(b, "k", "abc");
    advance(b, SEC_US);
    move(b, "b", now(b) - 5, NULL);
    EQ_INT(get(b, "b").position, 2);
    EQ_INT(get(b, "b").run_at_us, now(b));
    EQ_STR(line_of(b), "a b c");
}

/* It keeps its number, and is behind higher numbers: places define the order. */
CASE(a_call_that_joins_again_runs_where_it_stands)
{
    line_up(b, "k", "abc");
    struct claim q = claim_run(b, 1, 1);
    EQ_STR(ids_of(b, &q), "a");
    OK(finish_run(b, q.token, "a", "l"), NULL);
    move(b, "a", now(b) + SEC_US, NULL);
    advance(b, SEC_US);
    q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "b c a");
    EQ_INT(q.calls[2].key_no, 1);
    EQ_INT(get(b, "b").position, 0);
    EQ_INT(get(b, "b").state, PAWL_PROCESSING);
    EQ_INT(get(b, "a").position, 2);
    EQ_STR(arena_text(&b->a, key_of(b, "k").head), "b");
    OK(finish_run(b, q.token, "bca", "rrr"), NULL);
    EQ_INT(get(b, "a").state, PAWL_COMPLETED);
}

CASE(a_retry_that_waits_may_be_moved_to_now)
{
    line_up(b, "k", "ab");
    finish_error(b, claim_run(b, 1, 1).token, "a", "x");
    EQ_STR(line_of(b), "");
    move(b, "a", now(b), NULL);
    EQ_STR(line_of(b), "a b");
}

CASE(moved_to_a_time_to_come_it_leaves_the_line)
{
    line_up(b, "k", "abc");
    move(b, "a", now(b) + SEC_US, NULL); /* ready to be claimed */
    struct call c = get(b, "a");
    FALSE(c.in_line);
    EQ_INT(c.position, 0);
    EQ_INT(c.waiting_for, WAIT_TIME);
    EQ_STR(line_of(b), "b c");
    move(b, "c", now(b) + SEC_US, NULL); /* in the key's queue */
    EQ_STR(line_of(b), "b");
    advance(b, SEC_US);
    EQ_STR(line_of(b), "b a c");
}

CASE(a_delayed_call_moved_to_now_joins)
{
    accept_spec(b, delayed("late", "k", 50 * SEC_US));
    line_up(b, "k", "a");
    move(b, "late", now(b), NULL);
    EQ_INT(get(b, "late").position, 2);
    EQ_STR(line_of(b), "a late");
    accept_spec(b, delayed("later", "k", 50 * SEC_US));
    move(b, "later", now(b) + SEC_US, NULL);
    FALSE(get(b, "later").in_line);
    EQ_INT(sweep(b).next_us, now(b) + SEC_US);
}

/* ---- Gc -------------------------------------------------------------------------------------- */

CASE(a_key_is_forgotten_with_its_last_call)
{
    line_up(b, "k", "ab");
    finish_ok(b, claim_run(b, 1, 1).token, "a", "1");
    advance(b, RETENTION_US);
    EQ_INT(gc(b).removed, 1); /* b is left, and with it the key's counters */
    finish_ok(b, claim_run(b, 1, 1).token, "b", "1");
    EQ_INT(get(b, "b").key_no, 2);
    EQ_STATUS(unblock(b, "k", false), PAWL_STATE, NULL);
    advance(b, RETENTION_US);
    EQ_INT(gc(b).removed, 1);
    EQ_STATUS(unblock(b, "k", false), PAWL_NOT_FOUND, NULL); /* the key has no row */
    line_up(b, "k", "c");
    EQ_INT(claim_run(b, 1, 1).calls[0].key_no, 1);
}

CASE(an_object_keeps_its_key)
{
    line_up(b, "k", "a");
    object_put(b, "t", "k", "1");
    finish_ok(b, claim_run(b, 1, 1).token, "a", "1");
    advance(b, RETENTION_US);
    EQ_INT(gc(b).removed, 1);
    line_up(b, "k", "b");
    struct claim q = claim_run(b, 1, 1);
    EQ_INT(q.calls[0].key_no, 2);
    EQ_INT(q.states[0].version, 1);
}

CASE(a_forgotten_call_of_a_run_is_not_revived)
{
    struct call_spec s = keyed("short", "k");
    s.keep_us = SEC_US;
    accept_spec(b, s);
    line_up(b, "k", "ab");
    struct claim q = claim_run_for(b, 10, 10, 30 * SEC_US);
    finish_ok(b, q.token, "short", "1");
    advance(b, SEC_US);
    EQ_INT(gc(b).removed, 1);
    struct claim again = claim_as(b, q);
    EQ_STR(ids_of(b, &again), "a b");
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 2);
    EQ_INT(get(b, "a").counts.lost, 1);
    EQ_STATUS(found(b, "short"), PAWL_GONE, NULL);
}

/* ---- Lost answers ---------------------------------------------------------------------------- */

static struct conform_fixture *faulty(const char *over)
{
    static char url[200];
    if (strncmp(over, "fault+", 6) == 0)
        skip("%s is faulty already", over);
    snprintf(url, sizeof url, "fault+%s", over);
    return conform_fixture_open(url);
}

TEST(a_lost_claim_of_a_run_is_the_same_run)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = faulty(param);
    line_up(b, "k", "abc");
    object_put(b, "t", "k", "[1]");
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
    struct claim q = claim_run(b, 10, 2);
    EQ_INT(store_fault_count(), 2);
    EQ_STR(ids_of(b, &q), "a b");
    EQ_INT(q.calls[0].key_no, 1);
    EQ_INT(q.calls[1].key_no, 2);
    EQ_INT(q.states[0].version, 1);
    EQ_INT(q.states[1].version, 0);
    OK(finish_run(b, q.token, "ab", "rr"), NULL);
}

TEST(a_lost_finish_of_a_run_is_stored_once)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = faulty(param);
    line_up(b, "k", "abcd");
    struct claim q = claim_run_for(b, 10, 3, 30 * SEC_US);
    struct finish_item v[] = { item("a", END_RESULT), item("b", END_ERROR), item("c", END_RESULT) };
    v[0].state_do = STATE_SET;
    v[0].object = (struct payload){ PAWL_JSON, BYTES("[1]") };
    struct op op = finish_op(q.token, v, 3);
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
    OK(one(b, &op), &op.err);
    EQ_INT(store_fault_count(), 2);
    EQ_INT(v[0].state, PAWL_COMPLETED);
    EQ_INT(v[1].state, PAWL_PENDING);
    EQ_INT(v[1].counts.attempts, 1);
    EQ_INT(v[2].state, PAWL_PENDING);
    EQ_INT(object_of(b, "t", "k").version, 1);
    EQ_INT(attempts_of(b, "b").n, 1);
    EQ_INT(get(b, "d").position, 3);
}

TEST(a_lost_object_is_written_again)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = faulty(param);
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
    EQ_INT(object_put(b, "t", "k", "[1]"), 2); /* as often as it was submitted */
    EQ_INT(object_of(b, "t", "k").version, 2);
}
