/*
 * cron_lost.c - the commit of a schedule's operation was stored but its answer was lost, or it was
 * rolled back and repeated: it takes effect once, and its answer is that of the first try.
 *
 * Runs on the fault wrapper over the engine of the case.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "cron_case.h"

RUNS_ON(ENGINES_DURABLE)

static struct conform_fixture *faulty(const char *over)
{
    static char url[200];
    snprintf(url, sizeof url, "fault+%s", over);
    return conform_fixture_open(url);
}

#define FAULTY_CASE(name)                                                                          \
    static void name##_body(struct conform_fixture *b);                                            \
    TEST(name)                                                                                     \
    {                                                                                              \
        AUTO(conform_fixture_end) struct conform_fixture *b = faulty(param);                       \
        name##_body(b);                                                                            \
    }                                                                                              \
    static void name##_body(struct conform_fixture *b)

/* Commit it; the answer of the first commit is lost. */
static struct cron_op *lost(struct conform_fixture *b, struct cron_op q)
{
    struct op op = cron_op_of(b, q);
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
    one(b, &op);
    EQ_INT(store_fault_count(), 2); /* the commit was sent twice */
    return op.feature.ctx;
}

FAULTY_CASE(a_lost_put_is_stored_once)
{
    struct cron_op q = put_op(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}");
    q.if_none = true;
    struct cron_op *got = lost(b, q);
    OK(b->op.status, &b->op.err); /* not STALE, although it is there by now */
    TRUE(got->created);
    TRUE(got->changed);
    int64_t version = got->version;
    EQ_INT(row_of(b, "a").version, version);
    q = put_op(b, "a", "{\"every\":61,\"call\":{\"type\":\"t\"}}");
    q.if_version = version;
    got = lost(b, q);
    OK(b->op.status, &b->op.err);
    FALSE(got->created);
    EQ_INT(row_of(b, "a").version, got->version);
    q.if_version = version;
    cron(b, q); /* another one meets the new version */
    EQ_STATUS(b->op.status, PAWL_STALE, NULL);
}

FAULTY_CASE(a_lost_delete_is_done)
{
    int64_t version = put(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}")->version;
    lost(b, (struct cron_op){ .what = CRON_DELETE, .name = BYTES("a"), .if_version = version });
    OK(b->op.status, &b->op.err);
    EQ_STATUS(named(b, CRON_DELETE, "a"), PAWL_NOT_FOUND, NULL);
}

FAULTY_CASE(a_lost_pause_is_one_change)
{
    int64_t version = put(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}")->version;
    struct cron_op *q =
        lost(b, (struct cron_op){ .what = CRON_PAUSE, .name = BYTES("a"), .if_version = version });
    OK(b->op.status, &b->op.err);
    TRUE(q->changed);
    EQ_INT(row_of(b, "a").version, q->version);
    TRUE(row_of(b, "a").paused);
    q = lost(b, (struct cron_op){ .what = CRON_RESUME, .name = BYTES("a"), .if_any = true });
    OK(b->op.status, &b->op.err);
    EQ_INT(row_of(b, "a").version, q->version);
    FALSE(row_of(b, "a").paused);
}

FAULTY_CASE(a_lost_manual_run_is_one_run)
{
    put_minute(b, "a", "");
    struct cron_op *q = lost(b, (struct cron_op){ .what = CRON_RUN, .name = BYTES("a") });
    OK(b->op.status, &b->op.err);
    EQ_TEXT(q->id, "cron:a@2026-11-15T08:00:00.000000Z!manual");
    FALSE(q->duplicate);
    EQ_STR(runs(b, "a"), "08:00 manual");
    EQ_STR(due(b), "cron:a@2026-11-15T08:00:00.000000Z!manual");
    q = lost(b, (struct cron_op){ .what = CRON_RUN, .name = BYTES("a"), .run_key = BYTES("k") });
    OK(b->op.status, &b->op.err);
    EQ_TEXT(q->id, "cron:a!k");
    EQ_STR(runs(b, "a"), "08:00 manual, 08:00 manual");
}

FAULTY_CASE(a_lost_tick_is_one_tick)
{
    put_minute(b, "a", "");
    put_minute(b, "b", ",\"catch_up\":\"all\"");
    put_minute(b, "c", ",\"catch_up\":\"none\"");
    advance(b, 3 * MINUTE_US + SEC_US);
    struct cron_op *q =
        lost(b, (struct cron_op){ .what = CRON_TICK, .max = 10, .node = BYTES("n1") });
    OK(b->op.status, &b->op.err);
    FALSE(q->more);
    EQ_INT(q->next_us, now(b) + 59 * SEC_US);
    EQ_STR(runs(b, "a"), "08:02 missed*2, 08:03 submitted");
    EQ_STR(runs(b, "b"), "08:01 submitted, 08:02 submitted, 08:03 submitted");
    EQ_STR(runs(b, "c"), "08:03 missed*3");
}

FAULTY_CASE(a_lost_end_submits_the_waiting_tick_once)
{
    put_minute(b, "a", ",\"overlap\":\"wait\"");
    advance(b, MINUTE_US);
    tick(b);
    struct token t = claim_n(b, 1);
    advance(b, MINUTE_US);
    tick(b);
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
    finish_ok(b, t, "cron:a@2026-11-15T08:01:00Z", "1");
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 submitted");
    EQ_STR(due(b), "cron:a@2026-11-15T08:02:00Z");
}

FAULTY_CASE(lost_removals_are_done)
{
    put_minute(b, "a", "");
    for (int i = 0; i < 3; i++) {
        advance(b, MINUTE_US);
        tick(b);
    }
    lost(b, (struct cron_op){ .what = CRON_FORGET, .max = 2, .before_us = now(b) - 1 });
    OK(b->op.status, &b->op.err);
    EQ_STR(runs(b, "a"), "08:03 submitted");
}

/* A commit that is refused before it is stored is repeated, too, and chooses the same again. */
FAULTY_CASE(a_commit_that_was_rolled_back_is_decided_again)
{
    struct op op = cron_op_of(b, put_op(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}"));
    store_fault(1, FAULT_BEFORE, PAWL_BUSY);
    OK(one(b, &op), &op.err);
    TRUE(((struct cron_op *)op.feature.ctx)->created);
    op = cron_op_of(b, (struct cron_op){ .what = CRON_RUN, .name = BYTES("a") });
    store_fault(1, FAULT_BEFORE, PAWL_BUSY);
    OK(one(b, &op), &op.err);
    EQ_STR(runs(b, "a"), "08:00 manual");
    advance(b, MINUTE_US);
    op = cron_op_of(b, (struct cron_op){ .what = CRON_TICK, .max = 10 });
    store_fault(1, FAULT_BEFORE, PAWL_BUSY);
    OK(one(b, &op), &op.err);
    EQ_INT(((struct cron_op *)op.feature.ctx)->submitted, 1);
}
