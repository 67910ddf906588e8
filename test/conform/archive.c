/*
 * archive.c - removing ended calls into the archive before their retention: which calls go, which
 * stay, and what is left of them. How the archive is read depends on the engine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

/* One step; ended_before 0: calls past their retention. */
static struct gc archive_step(struct conform_fixture *b, int64_t before_us, int64_t after_seq,
                              int max)
{
    struct op op = {
        .kind = OP_GC,
        .gc = { .max = max, .ended_before_us = before_us, .after_seq = after_seq, .archive = true }
    };
    OK(one(b, &op), &op.err);
    return op.gc;
}

/* Archive in steps of max until none is left. Returns how many calls were removed. */
static int64_t archive_all(struct conform_fixture *b, int64_t before_us, int max)
{
    int64_t removed = 0;
    struct gc g = { .more = true };
    for (int steps = 0; g.more; steps++) {
        TRUE(steps < 100);
        g = archive_step(b, before_us, g.next_seq, max);
        removed += g.removed;
        EQ_INT(g.forgotten, 0);
    }
    EQ_INT(g.next_seq, 0);
    return removed;
}

CASE(an_archived_call_is_gone_and_remembered)
{
    ended_call(b, "a", PAWL_COMPLETED);
    struct call was = get(b, "a");
    advance(b, 1);
    EQ_INT(archive_all(b, now(b), 10), 1);
    EQ_STATUS(found(b, "a"), PAWL_GONE, NULL);
    struct accepted r = accept_spec(b, plan("a"));
    EQ_STATUS(r.status, PAWL_GONE, NULL);
    EQ_INT(r.call.state, PAWL_COMPLETED);
    EQ_INT(r.call.created_us, was.created_us);
    EQ_INT(r.call.finished_us, was.finished_us);
    EQ_INT(claim_as(b, want(b, 1)).n, 0);
    /* Its id is refused exactly as long as it would have been without the archive. */
    advance(b, RETENTION_US + REMEMBER_US - 2);
    EQ_INT(gc(b).forgotten, 0);
    EQ_STATUS(found(b, "a"), PAWL_GONE, NULL);
    advance(b, 1);
    EQ_INT(gc(b).forgotten, 1);
    EQ_STATUS(found(b, "a"), PAWL_NOT_FOUND, NULL);
}

CASE(an_archive_has_one_fixed_edge)
{
    ended_call(b, "a", PAWL_COMPLETED);
    advance(b, 1);
    int64_t edge = now(b);
    ended_call(b, "b", PAWL_COMPLETED); /* ended exactly at the limit: not before it */
    advance(b, 5);
    EQ_INT(archive_all(b, edge, 10), 1);
    EQ_STATUS(found(b, "a"), PAWL_GONE, NULL);
    STATE_IS(b, "b", PAWL_COMPLETED);
    EQ_INT(archive_all(b, edge, 10), 0);
    EQ_INT(archive_all(b, edge + 1, 10), 1);
}

CASE(every_way_to_end_is_archived)
{
    ended_call(b, "completed", PAWL_COMPLETED);
    ended_call(b, "failed", PAWL_FAILED);
    ended_call(b, "dead", PAWL_DEAD_LETTER);
    ended_call(b, "cancelled", PAWL_CANCELLED);
    ended_call(b, "expired", PAWL_EXPIRED);
    advance(b, 1);
    EQ_INT(archive_all(b, now(b), 2), 5);
    EQ_STATUS(found(b, "completed"), PAWL_GONE, NULL);
    EQ_STATUS(found(b, "expired"), PAWL_GONE, NULL);
}

CASE(an_archive_goes_by_seq_in_steps)
{
    accept_n(b, "a", 5);
    struct token t = claim_n(b, 5);
    for (int i = 4; i >= 0; i--) /* ended in another order */
        finish_ok(b, t, arena_printf(&b->a, "a%d", i), "1");
    advance(b, 1);
    struct gc g = archive_step(b, now(b), 0, 2);
    EQ_INT(g.removed, 2);
    TRUE(g.more);
    EQ_INT(g.next_seq, 2);
    EQ_STATUS(found(b, "a1"), PAWL_GONE, NULL);
    STATE_IS(b, "a2", PAWL_COMPLETED);
    /* Calls behind the cursor are not read again. */
    g = archive_step(b, now(b), 4, 10);
    EQ_INT(g.removed, 1);
    FALSE(g.more);
    EQ_INT(g.next_seq, 0);
    STATE_IS(b, "a3", PAWL_COMPLETED);
    EQ_INT(archive_all(b, now(b), 1), 2);
}

CASE(what_has_not_ended_is_never_archived)
{
    accept_one(b, "pending");
    struct call_spec s = plan("processing");
    s.priority = 1;
    accept_spec(b, s);
    struct token t = claim_n(b, 1);
    ended_call(b, "retried", PAWL_CANCELLED);
    OK(by_id(b, OP_RETRY, "retried"), NULL);
    advance(b, RETENTION_US);
    EQ_INT(archive_all(b, now(b), 10), 0);
    STATE_IS(b, "pending", PAWL_PENDING);
    STATE_IS(b, "processing", PAWL_PROCESSING);
    finish_ok(b, t, "processing", "1");
}

CASE(what_blocks_its_key_is_never_archived)
{
    struct call_spec s = keyed("bad", "k");
    s.on_dead = PAWL_ON_DEAD_BLOCK;
    s.max_attempts = 1;
    accept_spec(b, s);
    accept_spec(b, keyed("next", "k"));
    finish_error(b, claim_n(b, 1), "bad", "x");
    advance(b, 10 * RETENTION_US);
    EQ_INT(archive_all(b, now(b), 10), 0);
    TRUE(key_of(b, "k").blocked);
    OK(unblock(b, "k", false), NULL);
    EQ_INT(archive_all(b, now(b), 10), 1);
    EQ_STATUS(found(b, "bad"), PAWL_GONE, NULL);
    claim_n(b, 1); /* the key's next call can run */
}

/* When the last call of a key is removed, the key's row is removed too. */
CASE(a_key_ends_with_its_last_call)
{
    line_up(b, "k", "ab");
    struct claim q = claim_run(b, 2, 2);
    OK(finish_run(b, q.token, "ab", "rr"), &b->op.err);
    advance(b, 1);
    EQ_INT(archive_all(b, now(b), 1), 2);
    EQ_STATUS(unblock(b, "k", false), PAWL_NOT_FOUND, NULL);
}

/* Other calls of the lease still run: the archived call is not restored with it. */
CASE(a_reclaim_does_not_bring_an_archived_call_back)
{
    accept_n(b, "a", 2);
    struct token t = claim_for(b, 2, 30 * SEC_US);
    finish_ok(b, t, "a0", "1");
    advance(b, 1);
    EQ_INT(archive_all(b, now(b), 10), 1);
    advance(b, 31 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    EQ_STATUS(found(b, "a0"), PAWL_GONE, NULL);
    STATE_IS(b, "a1", PAWL_PENDING);
    EQ_STATUS(finish(b, t, "a0", END_RESULT), PAWL_LOST_LEASE, NULL);
}

/* gc can also archive what it removes. */
CASE(retention_may_archive)
{
    ended_call(b, "a", PAWL_COMPLETED);
    advance(b, RETENTION_US - 1);
    EQ_INT(archive_step(b, 0, 0, 10).removed, 0);
    advance(b, 1);
    struct gc g = archive_step(b, 0, 0, 10);
    EQ_INT(g.removed, 1);
    EQ_INT(g.next_seq, 0);
    EQ_STATUS(found(b, "a"), PAWL_GONE, NULL);
}

CASE(an_archive_may_leave_no_copy)
{
    ended_call(b, "a", PAWL_COMPLETED);
    advance(b, 1);
    struct op op = { .kind = OP_GC, .gc = { .max = 10, .ended_before_us = now(b) } };
    OK(one(b, &op), &op.err);
    EQ_INT(op.gc.removed, 1);
    EQ_STATUS(found(b, "a"), PAWL_GONE, NULL);
}

/* An archived call is returned unchanged; an engine in memory has no archive. */
CASE(an_archived_call_is_read_back)
{
    static const struct tag tags[] = { { { "k", 1 }, { "v\xc3\xa9", 3 } } };
    struct call_spec s = keyed("a", "k");
    s.input = (struct payload){ PAWL_JSON, BYTES("{\"n\": 9.990}") };
    s.method = BYTES("m");
    s.queue = BYTES("q");
    s.priority = -3;
    s.max_attempts = 7;
    s.timeout_us = 1500 * MS_US;
    s.caller = BYTES("me");
    s.client = BYTES("app");
    s.parent = BYTES("p");
    s.tags = tags;
    s.n_tags = 1;
    accept_spec(b, s);
    advance(b, 100 * MS_US);
    struct token t = claim_n(b, 1);
    finish_error(b, t, "a", "once");
    advance(b, SEC_US);
    struct finish_item f = item("a", END_RESULT);
    f.result = (struct payload){ PAWL_BYTES, { "\0\xff", 2 } };
    OK(finish_item(b, claim_n(b, 1), f), NULL);
    struct call was = get(b, "a");
    advance(b, 700 * MS_US);
    int64_t then = now(b);
    EQ_INT(archive_all(b, now(b), 10), 1);
    struct archived got;
    struct pawl_err err;
    enum pawl_status st = store_archived(b->s, &b->a, BYTES("a"), &got, &err);
    if (b->engine->kind & ENGINE_MEM) {
        EQ_STATUS(st, PAWL_NOT_FOUND, NULL);
        return;
    }
    OK(st, &err);
    EQ_INT(got.archived_us, then);
    EQ_INT(got.call.seq, was.seq);
    EQ_INT(got.call.state, PAWL_COMPLETED);
    EQ_TEXT(got.call.spec.id, "a");
    EQ_TEXT(got.call.spec.type, "t");
    EQ_TEXT(got.call.spec.method, "m");
    EQ_TEXT(got.call.spec.queue, "q");
    EQ_TEXT(got.call.spec.key, "k");
    EQ_INT(got.call.key_no, 1);
    EQ_INT(got.call.spec.priority, -3);
    EQ_INT(got.call.spec.max_attempts, 7);
    EQ_INT(got.call.spec.timeout_us, 1500 * MS_US);
    EQ_INT(got.call.spec.input.form, PAWL_JSON);
    EQ_TEXT(got.call.spec.input.bytes, "{\"n\": 9.990}");
    EQ_INT(got.call.result.form, PAWL_BYTES);
    EQ_UINT(got.call.result.bytes.len, 2);
    EQ_INT(memcmp(got.call.result.bytes.data, "\0\xff", 2), 0);
    ABSENT(got.call.error);
    EQ_INT(got.call.counts.attempts, 1);
    EQ_TEXT(got.call.node, "n1");
    EQ_TEXT(got.call.spec.caller, "me");
    EQ_TEXT(got.call.spec.client, "app");
    EQ_TEXT(got.call.spec.parent, "p");
    EQ_INT(got.call.spec.n_tags, 1);
    EQ_TEXT(got.call.spec.tags[0].value, "v\xc3\xa9");
    EQ_INT(got.call.created_us, was.created_us);
    EQ_INT(got.call.run_at_us, was.run_at_us);
    EQ_INT(got.call.started_us, was.started_us);
    EQ_INT(got.call.finished_us, was.finished_us);
    EQ_STATUS(store_archived(b->s, &b->a, BYTES("b"), &got, &err), PAWL_NOT_FOUND, &err);
    EQ_STR(err.text, "no call \"b\" in the archive");
}
