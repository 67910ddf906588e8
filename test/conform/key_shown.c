/*
 * key_shown.c - how calls with a key are shown: positions, reasons, lists, queues, keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

/* "PROCESSING 0" and so on, with the reason why it waits. */
static const char *shown(struct conform_fixture *b, const char *id)
{
    struct call c = get(b, id);
    const char *wait = call_wait_name(c.waiting_for);
    return arena_printf(&b->a, "%s %s%d%s%s", pawl_state_name(c.state), c.in_line ? "" : "-",
                        (int)c.position, wait ? " " : "", wait ? wait : "");
}

CASE(a_fresh_call_shows_its_place)
{
    struct call c = accept_spec(b, keyed("a", "k")).call;
    TRUE(c.in_line);
    EQ_INT(c.position, 1);
    EQ_INT(c.waiting_for, WAIT_WORKER);
    EQ_INT(c.key_no, 0);
    EQ_TEXT(c.spec.key, "k");
    c = accept_spec(b, keyed("b", "k")).call;
    EQ_INT(c.position, 2);
    EQ_INT(c.waiting_for, WAIT_KEY);
    claim_run(b, 10, 1);
    c = accept_spec(b, keyed("c", "k")).call;
    EQ_INT(c.position, 2);                    /* a runs, b is next */
    c = accept_spec(b, keyed("c", "k")).call; /* a duplicate shows the same */
    EQ_INT(c.position, 2);
    FALSE(accept_spec(b, plan("plain")).call.in_line);
}

CASE(positions_count_on_behind_a_run)
{
    line_up(b, "k", "abcde");
    EQ_STR(shown(b, "a"), "pending 1 worker");
    EQ_STR(shown(b, "e"), "pending 5 key");
    struct claim q = want(b, 10);
    q.run_max = 3;
    q.worker = BYTES("w");
    q = claim_as(b, q);
    EQ_STR(shown(b, "a"), "processing 0");
    EQ_STR(shown(b, "b"), "pending 1 key");
    EQ_STR(shown(b, "c"), "pending 2 key");
    EQ_STR(shown(b, "d"), "pending 3 key");
    EQ_STR(shown(b, "e"), "pending 4 key");
    EQ_TEXT(get(b, "b").node, "w"); /* of its lease */
    EQ_INT(get(b, "b").claimed_us, now(b));
    ABSENT(get(b, "d").node);
    EQ_INT(get(b, "d").claimed_us, 0);
    finish_ok(b, q.token, "a", "1");
    EQ_STR(shown(b, "a"), "completed -0");
    EQ_STR(shown(b, "b"), "processing 0");
    EQ_STR(shown(b, "c"), "pending 1 key");
    EQ_STR(shown(b, "e"), "pending 3 key");
    finish_error(b, q.token, "b", "x");
    EQ_STR(shown(b, "b"), "pending 1 retry");
    EQ_STR(shown(b, "c"), "pending 2 key");
    EQ_STR(shown(b, "e"), "pending 4 key");
}

CASE(lists_go_by_what_is_shown)
{
    line_up(b, "k", "abc");
    line_up(b, "m", "d");
    claim_run(b, 2, 2);
    struct query q = { .state = PAWL_PENDING, .key = BYTES("k"), .limit = 10 };
    struct page page;
    OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
    EQ_INT(page.n, 2);
    EQ_TEXT(page.v[0].spec.id, "c");
    EQ_TEXT(page.v[1].spec.id, "b"); /* behind a in its run */
    EQ_INT(page.v[1].position, 1);
    EQ_INT(page.v[1].key_no, 2);
    q.state = PAWL_PROCESSING;
    OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
    EQ_INT(page.n, 1);
    EQ_TEXT(page.v[0].spec.id, "a");
    q.state = 0;
    OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
    EQ_INT(page.n, 3);
}

CASE(queues_count_lines_and_delayed_calls)
{
    struct call_spec s = keyed("late", "k");
    s.delay_us = 5 * SEC_US;
    line_up(b, "k", "abc");
    accept_spec(b, s);
    struct queue_row row = queue_of(b, "default");
    EQ_INT(row.pending, 4);
    EQ_INT(row.due, 3);
    EQ_INT(row.processing, 0);
    claim_run(b, 10, 2);
    row = queue_of(b, "default");
    EQ_INT(row.pending, 3); /* b has not started */
    EQ_INT(row.processing, 1);
    advance(b, 5 * SEC_US);
    EQ_INT(queue_of(b, "default").due, 3);
}

CASE(keys_are_shown_by_name)
{
    int64_t begin = now(b);
    struct call_spec s = keyed("late", "idle");
    s.delay_us = 5 * SEC_US;
    accept_spec(b, s);
    line_up(b, "m", "c");
    line_up(b, "k", "ab");
    s.id = BYTES("d");
    s.key = BYTES("k");
    accept_spec(b, s);
    EQ_STR(keys_shown(b, false), "k m");
    EQ_STR(keys_shown(b, true), "");
    advance(b, SEC_US);
    struct key_row row = key_of(b, "k");
    EQ_TEXT(row.head, "a");
    EQ_INT(row.head_state, PAWL_PENDING);
    EQ_INT(row.waiting_for, WAIT_WORKER);
    EQ_INT(row.pending, 3); /* the delayed call too */
    EQ_INT(row.since_us, begin);
    FALSE(row.blocked);
    struct claim q = claim_run(b, 10, 1);
    row = key_of(b, "k");
    EQ_TEXT(row.head, "a");
    EQ_INT(row.head_state, PAWL_PROCESSING);
    EQ_INT(row.waiting_for, WAIT_NONE);
    EQ_INT(row.pending, 2);
    finish_ok(b, q.token, "c", "1");
    EQ_STR(keys_shown(b, false), "k");
}
