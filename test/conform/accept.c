/*
 * accept.c - accepting calls: a new call, a duplicate, a conflict, and limits that are reached.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "conform.h"

CASE(a_new_call_is_pending_and_shown_as_it_was_asked)
{
    struct call_spec s = plan("a");
    s.priority = 7;
    struct accepted r = accept_spec(b, s);
    OK(r.status, NULL);
    FALSE(r.duplicate);
    EQ_INT(r.call.seq, 1);
    EQ_INT(r.call.state, PAWL_PENDING);
    EQ_INT(r.call.created_us, now(b));
    EQ_INT(r.call.run_at_us, now(b));
    EQ_INT(r.call.expires_us, 0);
    EQ_INT(r.call.waiting_for, WAIT_WORKER);
    EQ_INT(r.call.finished_us, 0);
    EQ_INT(r.call.counts.attempts + r.call.counts.lost + r.call.counts.redrives, 0);
    EQ_TEXT(r.call.spec.id, "a");
    EQ_TEXT(r.call.spec.method, "run");
    EQ_TEXT(r.call.spec.queue, "default");
    EQ_INT(r.call.spec.priority, 7);
    ABSENT(r.call.error);
    ABSENT(r.call.node);
}

CASE(every_field_comes_back)
{
    struct tag tags[] = { { BYTES("color"), BYTES("green") }, { BYTES("size"), BYTES("") } };
    struct call_spec s = plan("a");
    s.method = BYTES("go");
    s.queue = BYTES("mail");
    s.priority = -3;
    s.max_attempts = 9;
    s.max_lost = 2;
    s.timeout_us = 5 * SEC_US;
    s.keep_us = 77 * SEC_US;
    s.backoff = (struct backoff){ .base_us = 3, .max_us = 9, .factor = 1.5, .jitter = 0.25 };
    s.on_dead = PAWL_ON_DEAD_BLOCK;
    s.caller = BYTES("me");
    s.client = BYTES("c");
    s.parent = BYTES("p");
    s.traceparent = BYTES("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    s.tags = tags;
    s.n_tags = 2;
    accept_spec(b, s);
    struct call c = get(b, "a");
    EQ_TEXT(c.spec.method, "go");
    EQ_TEXT(c.spec.queue, "mail");
    EQ_INT(c.spec.priority, -3);
    EQ_INT(c.spec.max_attempts, 9);
    EQ_INT(c.spec.max_lost, 2);
    EQ_INT(c.spec.timeout_us, 5 * SEC_US);
    EQ_INT(c.spec.keep_us, 77 * SEC_US);
    EQ_INT(c.spec.backoff.base_us, 3);
    EQ_INT(c.spec.backoff.max_us, 9);
    TRUE(c.spec.backoff.factor == 1.5);
    TRUE(c.spec.backoff.jitter == 0.25);
    EQ_INT(c.spec.on_dead, PAWL_ON_DEAD_BLOCK);
    EQ_TEXT(c.spec.caller, "me");
    EQ_TEXT(c.spec.client, "c");
    EQ_TEXT(c.spec.parent, "p");
    EQ_TEXT(c.spec.traceparent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    EQ_INT(c.spec.n_tags, 2);
    EQ_TEXT(c.spec.tags[0].name, "color");
    EQ_TEXT(c.spec.tags[1].value, "");
}

CASE(absent_fields_stay_absent)
{
    accept_one(b, "a");
    struct call c = get(b, "a");
    ABSENT(c.spec.key);
    ABSENT(c.spec.caller);
    ABSENT(c.spec.client);
    ABSENT(c.spec.parent);
    ABSENT(c.spec.traceparent);
    EQ_INT(c.spec.n_tags, 0);
    EQ_INT(c.spec.keep_us, 0);
}

CASE(numbers_are_consecutive_and_a_refused_call_uses_none)
{
    EQ_INT(accept_one(b, "a"), 1);
    accept_spec(b, plan("a"));
    struct call_spec other = plan("a");
    other.input.bytes = BYTES("2");
    EQ_STATUS(accept_spec(b, other).status, PAWL_CONFLICT, NULL);
    EQ_INT(accept_one(b, "b"), 2);
}

CASE(a_duplicate_shows_the_call_as_it_stands)
{
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    struct accepted r = accept_spec(b, plan("a"));
    TRUE(r.duplicate);
    EQ_INT(r.call.state, PAWL_PROCESSING);
    EQ_TEXT(r.call.node, "n1");
    finish_ok(b, t, "a", "[42]");
    r = accept_spec(b, plan("a"));
    OK(r.status, NULL);
    TRUE(r.duplicate);
    EQ_INT(r.call.state, PAWL_COMPLETED);
    EQ_INT(r.call.seq, 1);
    EQ_TEXT(r.call.result.bytes, "[42]");
    EQ_TEXT(r.call.spec.input.bytes, "1");
}

CASE(a_duplicate_without_want_result_has_no_payloads)
{
    accept_one(b, "a");
    finish_ok(b, claim_n(b, 1), "a", "[42]");
    struct op op = accept_op(b, plan("a"));
    op.accept.want_result = false;
    OK(one(b, &op), &op.err);
    TRUE(op.accept.out[0].duplicate);
    EQ_INT(op.accept.out[0].call.state, PAWL_COMPLETED);
    ABSENT(op.accept.out[0].call.result.bytes);
}

CASE(other_fields_of_a_repeat_are_ignored)
{
    accept_one(b, "a");
    struct call_spec s = plan("a");
    s.queue = BYTES("elsewhere");
    s.priority = 9;
    s.delay_us = SEC_US;
    struct accepted r = accept_spec(b, s);
    TRUE(r.duplicate);
    EQ_TEXT(r.call.spec.queue, "default");
    EQ_INT(r.call.spec.priority, 0);
    EQ_INT(get(b, "a").run_at_us, now(b));
    struct queue_rows rows;
    OK(store_queues(b->s, &b->a, &rows, &b->err), &b->err);
    EQ_INT(rows.n, 1); /* no lane was created */
}

CASE(a_conflict_shows_what_stands)
{
    accept_one(b, "a");
    struct call_spec types[3] = { plan("a"), plan("a"), plan("a") };
    types[0].type = BYTES("u");
    types[1].method = BYTES("other");
    types[2].input = (struct payload){ PAWL_BYTES, BYTES("1") };
    for (int i = 0; i < 3; i++) {
        struct accepted r = accept_spec(b, types[i]);
        EQ_STATUS(r.status, PAWL_CONFLICT, NULL);
        FALSE(r.duplicate);
        EQ_TEXT(r.call.spec.id, "a");
        EQ_TEXT(r.call.spec.type, "t");
        EQ_INT(r.call.state, PAWL_PENDING);
    }
}

CASE(the_same_json_value_is_the_same_content)
{
    struct call_spec s = plan("a");
    s.input.bytes = BYTES("{\"x\":1,\"y\":[true]}");
    accept_spec(b, s);
    s.input.bytes = BYTES(" { \"y\" : [ true ] , \"x\":1 } ");
    TRUE(accept_spec(b, s).duplicate);
    s.input.bytes = BYTES("{\"x\":1.0,\"y\":[true]}");
    EQ_STATUS(accept_spec(b, s).status, PAWL_CONFLICT, NULL);
    EQ_TEXT(get(b, "a").spec.input.bytes, "{\"x\":1,\"y\":[true]}");
}

CASE(the_same_id_twice_in_a_batch)
{
    struct call_spec other = plan("a");
    other.input.bytes = BYTES("2");
    struct call_spec v[] = { settled(b, plan("a")), settled(b, plan("a")), settled(b, other),
                             settled(b, plan("b")) };
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = v, .n = 4 } };
    OK(one(b, &op), &op.err);
    FALSE(op.accept.out[0].duplicate);
    TRUE(op.accept.out[1].duplicate);
    EQ_INT(op.accept.out[1].call.seq, 1);
    EQ_STATUS(op.accept.out[2].status, PAWL_CONFLICT, NULL);
    EQ_INT(op.accept.out[3].call.seq, 2);
}

CASE(an_atomic_batch_is_all)
{
    accept_one(b, "b");
    struct call_spec v[] = { settled(b, plan("a")), settled(b, plan("b")), settled(b, plan("a")) };
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = v, .n = 3, .atomic = true } };
    OK(one(b, &op), &op.err); /* duplicates are not refused */
    EQ_INT(op.accept.out[0].call.seq, 2);
    TRUE(op.accept.out[1].duplicate);
    TRUE(op.accept.out[2].duplicate);
}

CASE(an_atomic_batch_is_none)
{
    accept_one(b, "b");
    const char *before = snapshot(b);
    struct call_spec first = plan("a"), other = plan("b");
    first.queue = BYTES("new queue");
    other.input.bytes = BYTES("2");
    struct call_spec v[] = { settled(b, first), settled(b, plan("c")), settled(b, other) };
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = v, .n = 3, .atomic = true } };
    EQ_STATUS(one(b, &op), PAWL_CONFLICT, &op.err);
    EQ_INT(op.accept.refused, 2);
    EQ_INT(op.err.status, PAWL_CONFLICT);
    NE_INT(strlen(op.err.text), 0);
    EQ_STR(snapshot(b), before);
    EQ_INT(accept_one(b, "d"), 2);
}

CASE(an_atomic_batch_that_contradicts_itself_is_none)
{
    struct call_spec other = plan("a");
    other.input.bytes = BYTES("2");
    struct call_spec v[] = { settled(b, plan("a")), settled(b, other) };
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = v, .n = 2, .atomic = true } };
    EQ_STATUS(one(b, &op), PAWL_CONFLICT, &op.err);
    EQ_INT(op.accept.refused, 1);
    EQ_STATUS(found(b, "a"), PAWL_NOT_FOUND, NULL);
}

CASE(delay_run_at_and_expiry_become_times)
{
    struct call_spec s = plan("delay");
    s.delay_us = 5;
    s.expires_in_us = 9;
    EQ_INT(accept_spec(b, s).call.run_at_us, now(b) + 5);
    EQ_INT(get(b, "delay").expires_us, now(b) + 9);
    EQ_INT(get(b, "delay").waiting_for, WAIT_TIME);
    s = plan("at");
    s.run_at_us = now(b) + 7;
    s.expires_at_us = now(b) + 8;
    EQ_INT(accept_spec(b, s).call.expires_us, now(b) + 8);
    EQ_INT(get(b, "at").run_at_us, now(b) + 7);
    s = plan("past");
    s.run_at_us = now(b) - 7;
    EQ_INT(accept_spec(b, s).call.run_at_us, now(b));
}

CASE(names_are_compared_byte_for_byte)
{
    const char *ids[] = { "a",
                          "A",
                          "a ",
                          " a",
                          "a'",
                          "a\"",
                          "a\\",
                          "a%",
                          "\xc3\xa4",
                          "a\xcc\x88",
                          "\xf0\x9f\x90\xbe",
                          "a;--",
                          "$1",
                          "NULL" };
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        struct call_spec s = plan(ids[i]);
        s.type = s.queue = s.method = bytes_of(ids[i]);
        EQ_INT(accept_spec(b, s).call.seq, i + 1);
    }
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        struct call c = get(b, ids[i]);
        EQ_INT(c.seq, i + 1);
        EQ_TEXT(c.spec.type, ids[i]);
        EQ_TEXT(c.spec.queue, ids[i]);
        EQ_TEXT(c.spec.method, ids[i]);
        struct claim q = want(b, 10);
        struct bytes type = bytes_of(ids[i]);
        q.types = q.queues = &type;
        q.n_types = q.n_queues = 1;
        EQ_STR(claimable(b, q), ids[i]);
    }
}

CASE(the_longest_names_work)
{
    char name[NAME_LEN_MAX + 1];
    memset(name, 'x', NAME_LEN_MAX);
    name[NAME_LEN_MAX] = '\0';
    struct call_spec s = plan(name);
    s.type = s.queue = s.method = s.caller = s.parent = s.client = bytes_of(name);
    OK(accept_spec(b, s).status, NULL);
    EQ_INT(get(b, name).spec.queue.len, NAME_LEN_MAX);
    EQ_INT(claim_as(b, want(b, 1)).n, 1);
}

CASE(payloads_come_back_byte_for_byte)
{
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    struct call_spec s = plan("bytes");
    s.input = (struct payload){ PAWL_BYTES, { all, sizeof all } };
    accept_spec(b, s);
    s = plan("empty");
    s.input = (struct payload){ PAWL_BYTES, BYTES("") };
    accept_spec(b, s);
    s = plan("nothing");
    s.input = (struct payload){ 0 };
    accept_spec(b, s);
    s = plan("json");
    s.input = (struct payload){ PAWL_JSON, BYTES(" 18446744073709551616.00e5 ") };
    accept_spec(b, s);
    struct call c = get(b, "bytes");
    EQ_INT(c.spec.input.form, PAWL_BYTES);
    EQ_BYTES(c.spec.input.bytes.data, c.spec.input.bytes.len, all, sizeof all);
    c = get(b, "empty");
    EQ_INT(c.spec.input.form, PAWL_BYTES);
    EQ_INT(c.spec.input.bytes.len, 0);
    EQ_INT(get(b, "nothing").spec.input.form, PAWL_NOTHING);
    EQ_TEXT(get(b, "json").spec.input.bytes, " 18446744073709551616.00e5 ");
}

CASE(lanes_have_an_edge, .deadline_s = 120)
{
    struct call_spec *v = arena_zalloc(&b->a, LANES_MAX, sizeof *v);
    for (int i = 0; i < LANES_MAX; i++) {
        struct call_spec s = plan(arena_printf(&b->a, "id%d", i));
        s.type = bytes_of(arena_printf(&b->a, "type%d", i));
        v[i] = settled(b, s);
    }
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = v, .n = LANES_MAX } };
    OK(one(b, &op), &op.err);
    OK(op.accept.out[LANES_MAX - 1].status, NULL);

    struct call_spec s = plan("one past");
    s.queue = BYTES("q");
    EQ_STATUS(accept_spec(b, s).status, PAWL_FULL, NULL);
    EQ_STATUS(found(b, "one past"), PAWL_NOT_FOUND, NULL);
    op = accept_op(b, s);
    op.accept.atomic = true;
    EQ_STATUS(one(b, &op), PAWL_FULL, &op.err);
    EQ_STR(op.err.text, "queue \"q\", type \"t\": 10000 lanes, limit 10000");
    EQ_INT(op.accept.refused, 0);

    op = by_id_op(OP_MOVE, "id0"); /* another queue is another lane */
    op.by_id.queue = BYTES("q");
    EQ_STATUS(one(b, &op), PAWL_FULL, &op.err);

    /* No lane is left for a sent call: the finish fails, is tried again later, and nothing is sent.
     */
    struct claim q = want(b, 1);
    struct bytes type = BYTES("type0");
    q.types = &type;
    q.n_types = 1;
    struct token t = claim_as(b, q).token;
    struct call_spec send[] = { settled(b, v[0]), settled(b, s) };
    send[0].id = BYTES("sent");
    struct finish_item f = item("id0", END_RESULT);
    f.send = send;
    f.n_send = 2;
    OK(finish_item(b, t, f), &b->err);
    EQ_INT(b->item.state, PAWL_PENDING);
    EQ_TEXT(b->item.error_out, "outgoing call \"one past\": too many queues and types");
    EQ_INT(b->item.run_at_us, now(b) + SEC_US);
    EQ_STATUS(found(b, "sent"), PAWL_NOT_FOUND, NULL);

    s = plan("known lane"); /* calls of an existing lane are accepted */
    s.type = BYTES("type7");
    EQ_INT(accept_spec(b, s).call.seq, LANES_MAX + 1);
}
