/*
 * objects.c - the state of (type, key), written and deleted from outside a call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static struct object_op set(const char *json, int64_t if_version)
{
    return (struct object_op){ .type = BYTES("t"),
                               .key = BYTES("k"),
                               .how = STATE_SET,
                               .state = { PAWL_JSON, bytes_of(json) },
                               .if_version = if_version };
}

static struct object_op del(int64_t if_version, bool cancel)
{
    return (struct object_op){ .type = BYTES("t"),
                               .key = BYTES("k"),
                               .how = STATE_DELETE,
                               .if_version = if_version,
                               .cancel = cancel };
}

CASE(an_object_is_written_and_read)
{
    EQ_STATUS(object_found(b, "t", "k"), PAWL_NOT_FOUND, NULL);
    EQ_STR(b->err.text, "no object \"t\" \"k\"");
    OK(object(b, set("{\"a\": 1.50}", 0)), NULL);
    EQ_INT(b->op.object.version, 1);
    EQ_INT(b->op.object.updated_us, now(b));
    struct object o = object_of(b, "t", "k");
    EQ_TEXT(o.type, "t");
    EQ_TEXT(o.key, "k");
    EQ_TEXT(o.state.bytes, "{\"a\": 1.50}"); /* byte for byte */
    EQ_INT(o.state.form, PAWL_JSON);
    EQ_INT(o.version, 1);
    EQ_INT(o.updated_us, now(b));
    EQ_INT(o.pending, 0);
    EQ_STATUS(object_found(b, "u", "k"), PAWL_NOT_FOUND, NULL);
    EQ_STATUS(object_found(b, "t", "l"), PAWL_NOT_FOUND, NULL);
    EQ_STR(keys_shown(b, false), ""); /* no call is waiting */
}

CASE(a_state_of_bytes_and_of_nothing_but_bytes)
{
    struct object_op q = set("", 0);
    char *big = arena_zalloc(&b->a, STATE_LEN_MAX, 1);
    TRUE(big != NULL);
    q.state = (struct payload){ PAWL_BYTES, { big, STATE_LEN_MAX } };
    OK(object(b, q), NULL);
    EQ_INT(object_of(b, "t", "k").state.form, PAWL_BYTES);
    EQ_INT(object_of(b, "t", "k").state.bytes.len, STATE_LEN_MAX);
    q.state.bytes.len = 0;
    OK(object(b, q), NULL);
    EQ_INT(object_of(b, "t", "k").state.bytes.len, 0);
}

CASE(versions_rise_over_all_objects_and_never_come_back)
{
    EQ_INT(object_put(b, "t", "k", "1"), 1);
    EQ_INT(object_put(b, "t", "l", "1"), 2);
    EQ_INT(object_put(b, "t", "k", "1"), 3);
    OK(object(b, del(0, false)), NULL);
    EQ_STATUS(object_found(b, "t", "k"), PAWL_NOT_FOUND, NULL);
    EQ_INT(object_put(b, "t", "k", "1"), 4);
    EQ_INT(object_of(b, "t", "l").version, 2);
}

CASE(a_condition_names_several_versions_or_any)
{
    static const int64_t others[] = { 7, 2, 9 };
    struct object_op q = set("1", 8), any = set("[1]", 0), gone = del(0, false);
    q.or_versions = others;
    q.n_or_versions = 3;
    any.if_any = gone.if_any = true;
    EQ_STATUS(object(b, any), PAWL_STALE, NULL);
    EQ_STR(b->op.err.text, "object \"t\" \"k\" does not exist");
    EQ_STATUS(object(b, gone), PAWL_STALE, NULL);
    EQ_STATUS(object(b, q), PAWL_STALE, NULL);
    EQ_INT(object_put(b, "t", "k", "0"), 1);
    EQ_STATUS(object(b, q), PAWL_STALE, NULL);
    EQ_STR(b->op.err.text, "object \"t\" \"k\" has version 1");
    EQ_INT(b->op.object.version, 1);
    OK(object(b, any), NULL);
    EQ_INT(object_of(b, "t", "k").version, 2);
    OK(object(b, q), NULL);
    EQ_TEXT(object_of(b, "t", "k").state.bytes, "1");
    EQ_STATUS(object(b, q), PAWL_STALE, NULL);
    OK(object(b, gone), NULL);
    EQ_STATUS(object_found(b, "t", "k"), PAWL_NOT_FOUND, NULL);
}

CASE(another_version_is_stale)
{
    EQ_STATUS(object(b, set("1", 5)), PAWL_STALE, NULL);
    EQ_STR(b->op.err.text, "object \"t\" \"k\" does not exist");
    EQ_INT(b->op.object.version, 0);
    EQ_STATUS(object(b, del(5, false)), PAWL_STALE, NULL);
    EQ_STR(b->op.err.text, "object \"t\" \"k\" does not exist");
    int64_t version = object_put(b, "t", "k", "[1]");
    EQ_STATUS(object(b, set("2", version + 1)), PAWL_STALE, NULL);
    EQ_STR(b->op.err.text, "object \"t\" \"k\" has version 1");
    EQ_INT(b->op.object.version, version);
    EQ_STATUS(object(b, del(version + 1, false)), PAWL_STALE, NULL);
    EQ_STR(b->op.err.text, "object \"t\" \"k\" has version 1");
    EQ_TEXT(object_of(b, "t", "k").state.bytes, "[1]");
    OK(object(b, set("[2]", version)), NULL);
    OK(object(b, del(version + 1, false)), NULL); /* the version that it has now */
    EQ_STATUS(object_found(b, "t", "k"), PAWL_NOT_FOUND, NULL);
}

CASE(an_object_is_busy_while_its_key_is_held)
{
    struct call_spec s = keyed("a", "k");
    s.type = BYTES("other"); /* the order belongs to the key alone */
    accept_spec(b, s);
    struct token t = claim_n(b, 1);
    EQ_STATUS(object(b, set("1", 7)), PAWL_BUSY, NULL);
    EQ_STR(b->op.err.text, "key \"k\": a call is running");
    EQ_STATUS(object(b, del(0, true)), PAWL_BUSY, NULL);
    finish_ok(b, t, "a", "1");
    OK(object(b, set("1", 0)), NULL);
}

CASE(a_write_does_not_wait_for_the_line)
{
    line_up(b, "k", "ab");
    OK(object(b, set("1", 0)), NULL);
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a b");
    EQ_INT(q.states[0].version, 1);
}

CASE(pending_calls_are_of_its_type)
{
    struct call_spec s = keyed("u", "k");
    s.type = BYTES("u");
    line_up(b, "k", "ab");
    accept_spec(b, s);
    s = keyed("late", "k");
    s.delay_us = SEC_US;
    accept_spec(b, s);
    object_put(b, "t", "k", "1");
    object_put(b, "u", "k", "1");
    EQ_INT(object_of(b, "t", "k").pending, 3);
    EQ_INT(object_of(b, "u", "k").pending, 1);
    struct claim q = claim_run(b, 10, 10);
    EQ_STR(ids_of(b, &q), "a b");
    EQ_INT(object_of(b, "t", "k").pending, 1); /* no lease holds them */
}

CASE(delete_refuses_while_calls_are_pending)
{
    struct call_spec s = keyed("late", "k");
    s.delay_us = SEC_US;
    line_up(b, "k", "ab");
    accept_spec(b, s);
    EQ_STATUS(object(b, del(0, false)), PAWL_STATE, NULL);
    EQ_STR(b->op.err.text, "object \"t\" \"k\": 3 calls are pending");
    object_put(b, "t", "k", "1");
    EQ_STATUS(object(b, del(0, false)), PAWL_STATE, NULL);
    OK(object_found(b, "t", "k"), NULL);
    STATE_IS(b, "a", PAWL_PENDING);
}

CASE(calls_of_another_type_do_not_stand_in_the_way)
{
    struct call_spec s = keyed("u", "k");
    s.type = BYTES("u");
    accept_spec(b, s);
    object_put(b, "t", "k", "1");
    OK(object(b, del(0, false)), NULL);
    STATE_IS(b, "u", PAWL_PENDING);
}

CASE(delete_may_cancel_them)
{
    struct call_spec s = keyed("late", "k");
    s.delay_us = SEC_US;
    line_up(b, "k", "ab");
    accept_spec(b, s);
    s = keyed("u", "k");
    s.type = BYTES("u");
    accept_spec(b, s);
    object_put(b, "t", "k", "1");
    OK(object(b, del(0, true)), NULL);
    EQ_INT(b->op.object.cancelled, 3);
    EQ_INT(b->op.n_ended, 3);
    TRUE(holds(b->op.ended, 3, "a") && holds(b->op.ended, 3, "b") && holds(b->op.ended, 3, "late"));
    EQ_STATUS(object_found(b, "t", "k"), PAWL_NOT_FOUND, NULL);
    STATE_IS(b, "late", PAWL_CANCELLED);
    EQ_INT(get(b, "u").position, 1);
    EQ_STR(claimable(b, want(b, 10)), "u");
}

CASE(delete_of_nothing)
{
    EQ_STATUS(object(b, del(0, true)), PAWL_NOT_FOUND, NULL);
    EQ_STR(b->op.err.text, "no object \"t\" \"k\"");
    line_up(b, "k", "a");
    OK(object(b, del(0, true)), NULL); /* there was no state, but calls were cancelled */
    EQ_INT(b->op.object.cancelled, 1);
    EQ_STATUS(object(b, del(0, true)), PAWL_NOT_FOUND, NULL);
}

CASE(a_blocked_key_stays_blocked)
{
    struct call_spec s = keyed("x", "k");
    s.on_dead = PAWL_ON_DEAD_BLOCK;
    accept_spec(b, s);
    line_up(b, "k", "a");
    OK(finish(b, claim_run(b, 1, 1).token, "x", END_REFUSE), NULL);
    OK(object(b, set("1", 0)), NULL);
    OK(object(b, del(0, true)), NULL);
    EQ_INT(b->op.object.cancelled, 1);
    EQ_STR(keys_shown(b, true), "k");
    EQ_INT(key_of(b, "k").pending, 0);
}

CASE(operations_of_one_commit_see_each_other)
{
    struct op put = { .kind = OP_OBJECT, .object = set("1", 0) };
    struct op accept = accept_op(b, keyed("a", "k"));
    struct op claim = claim_op(want(b, 1));
    struct op again = { .kind = OP_OBJECT, .object = set("2", 0) };
    TOGETHER(b, &put, &accept, &claim, &again);
    EQ_INT(claim.claim.n, 1);
    EQ_INT(claim.claim.states[0].version, 1);
    EQ_STATUS(again.status, PAWL_BUSY, NULL);
}
