/*
 * cron_overlap.c - what becomes of a tick while the call of the last one has not ended, and of the
 * ticks of a schedule that is replaced, removed or run by hand.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cron_case.h"

RUNS_ON(ENGINES_DURABLE)

/* ---- Overlap --------------------------------------------------------------------------------- */

#define FIRST "cron:a@2026-11-15T08:01:00Z"
#define SECOND "cron:a@2026-11-15T08:02:00Z"
#define THIRD "cron:a@2026-11-15T08:03:00Z"

/* Its first tick is claimed, and two more have come. */
static struct token overlapping(struct conform_fixture *b, const char *how)
{
    put_minute(b, "a", arena_printf(&b->a, ",\"overlap\":\"%s\"", how));
    advance(b, MINUTE_US);
    EQ_INT(tick(b)->submitted, 1);
    struct token t = claim_n(b, 1);
    advance(b, MINUTE_US);
    tick(b);
    advance(b, MINUTE_US);
    tick(b);
    return t;
}

CASE(overlapping_ticks_are_allowed)
{
    overlapping(b, "allow");
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 submitted, 08:03 submitted");
    EQ_INT(get(b, SECOND).spec.watch, 0);
}

CASE(overlapping_ticks_are_skipped)
{
    struct token t = overlapping(b, "skip");
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 skipped/overlap, 08:03 skipped/overlap");
    finish_ok(b, t, FIRST, "1");
    advance(b, MINUTE_US);
    EQ_INT(tick(b)->submitted, 1);
}

CASE(the_newest_tick_waits_for_the_end)
{
    struct token t = overlapping(b, "wait");
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 skipped/replaced");
    EQ_INT(row_of(b, "a").waiting_us, now(b));
    EQ_STATUS(found(b, THIRD), PAWL_NOT_FOUND, NULL);
    finish_ok(b, t, FIRST, "1");
    OK(found(b, THIRD), NULL); /* in the commit of that end */
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 skipped/replaced, 08:03 submitted");
    EQ_INT(row_of(b, "a").waiting_us, 0);
    EQ_TEXT(row_of(b, "a").last_id, THIRD);
    EQ_STR(due(b), THIRD);
}

CASE(a_retry_is_no_end)
{
    struct token t = overlapping(b, "wait");
    finish_error(b, t, FIRST, "no");
    EQ_STATUS(found(b, THIRD), PAWL_NOT_FOUND, NULL);
    EQ_INT(row_of(b, "a").waiting_us, now(b));
    OK(by_id(b, OP_CANCEL, FIRST), NULL);
    OK(found(b, THIRD), NULL); /* a cancel is one */
}

CASE(a_newer_tick_replaces_the_running_one)
{
    put_minute(b, "a", ",\"overlap\":\"replace\"");
    advance(b, MINUTE_US);
    tick(b);
    struct token t = claim_n(b, 1);
    advance(b, MINUTE_US);
    struct cron_op *q = tick(b);
    EQ_UINT(q->n_cancels, 1);
    EQ_TEXT(q->cancels[0], FIRST);
    OK(by_id(b, OP_CANCEL, FIRST), NULL);
    /* It ignores its cancel for two more ticks: only the newest waits, and is asked for again. */
    for (int i = 0; i < 2; i++) {
        advance(b, MINUTE_US);
        EQ_UINT(tick(b)->n_cancels, 1);
    }
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 skipped/replaced, 08:03 skipped/replaced");
    finish_ok(b, t, FIRST, "1");
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 skipped/replaced, 08:03 skipped/replaced, "
                         "08:04 submitted");
    EQ_INT(tick(b)->n_cancels, 0);
}

CASE(a_pending_tick_is_replaced_at_once)
{
    put_minute(b, "a", ",\"overlap\":\"replace\"");
    advance(b, MINUTE_US);
    tick(b);
    advance(b, MINUTE_US);
    struct cron_op *q = tick(b);
    EQ_TEXT(q->cancels[0], FIRST);
    OK(by_id(b, OP_CANCEL, FIRST), NULL);
    STATE_IS(b, FIRST, PAWL_CANCELLED);
    EQ_STR(due(b), SECOND);
}

CASE(a_cancel_that_was_lost_is_asked_for_again)
{
    put(b, "a", "{\"every\":3600,\"overlap\":\"replace\",\"call\":{\"type\":\"t\"}}");
    advance(b, HOUR_US);
    tick(b);
    claim_n(b, 1);
    advance(b, HOUR_US);
    struct cron_op *q = tick(b);
    EQ_UINT(q->n_cancels, 1);
    LE_INT(q->next_us, now(b) + 10 * SEC_US);
    advance(b, q->next_us - now(b));
    EQ_UINT(tick(b)->n_cancels, 1);
}

CASE(the_end_and_the_tick_in_one_group)
{
    put_minute(b, "a", ",\"overlap\":\"wait\"");
    advance(b, MINUTE_US);
    tick(b);
    struct token t = claim_n(b, 1);
    advance(b, MINUTE_US);
    struct finish_item f = item(FIRST, END_RESULT);
    f.result = (struct payload){ PAWL_JSON, BYTES("1") };
    struct op end = finish_op(t, &f, 1);
    struct op claim = claim_op(want(b, 5)); /* calls that moved are told before a claim */
    struct op ticks = cron_op_of(b, (struct cron_op){ .what = CRON_TICK, .max = 10 });
    TOGETHER(b, &end, &claim, &ticks);
    OK(end.status, &end.err);
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 submitted");
    EQ_INT(row_of(b, "a").waiting_us, 0);
}

CASE(the_tick_and_the_end_in_one_group)
{
    put_minute(b, "a", ",\"overlap\":\"wait\"");
    advance(b, MINUTE_US);
    tick(b);
    struct token t = claim_n(b, 1);
    advance(b, MINUTE_US);
    struct finish_item f = item(FIRST, END_RESULT);
    f.result = (struct payload){ PAWL_JSON, BYTES("1") };
    struct op end = finish_op(t, &f, 1);
    struct op ticks = cron_op_of(b, (struct cron_op){ .what = CRON_TICK, .max = 10 });
    TOGETHER(b, &ticks, &end);
    OK(end.status, &end.err);
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 submitted");
    EQ_INT(row_of(b, "a").waiting_us, 0);
}

CASE(a_schedule_that_begins_to_wait_sees_the_end_of_an_older_call)
{
    put_minute(b, "a", "");
    advance(b, MINUTE_US);
    tick(b);
    struct token t = claim_n(b, 1); /* submitted when overlap was allowed: not watched */
    put_minute(b, "a", ",\"overlap\":\"wait\"");
    advance(b, MINUTE_US);
    tick(b);
    EQ_INT(row_of(b, "a").waiting_us, now(b));
    finish_ok(b, t, FIRST, "1");
    EQ_STATUS(found(b, SECOND), PAWL_NOT_FOUND, NULL);
    advance(b, 5 * SEC_US);
    EQ_INT(tick(b)->submitted, 1);
    OK(found(b, SECOND), NULL);
}

CASE(a_paused_schedule_submits_no_waiting_tick)
{
    struct token t = overlapping(b, "wait");
    OK(named(b, CRON_PAUSE, "a"), &b->op.err);
    finish_ok(b, t, FIRST, "1");
    EQ_STATUS(found(b, THIRD), PAWL_NOT_FOUND, NULL);
    OK(named(b, CRON_RESUME, "a"), &b->op.err);
    EQ_INT(tick(b)->submitted, 1);
    OK(found(b, THIRD), NULL);
}

CASE(catching_up_all_obeys_the_overlap)
{
    static const struct {
        const char *overlap, *want;
    } cases[] = {
        { "skip", "08:01 submitted, 08:02 skipped/overlap, 08:03 skipped/overlap" },
        { "wait", "08:01 submitted, 08:02 skipped/replaced" },
        { "replace", "08:01 skipped/replaced, 08:02 skipped/replaced, 08:03 submitted" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        put_minute(
            b, cases[i].overlap,
            arena_printf(&b->a, ",\"catch_up\":\"all\",\"overlap\":\"%s\"", cases[i].overlap));
    advance(b, 3 * MINUTE_US);
    tick(b);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        EQ_STR(runs(b, cases[i].overlap), cases[i].want);
    EQ_INT(row_of(b, "wait").waiting_us, now(b));
}

/* ---- Replaced and deleted -------------------------------------------------------------------- */

CASE(a_removed_schedule_ticks_no_more)
{
    struct token t = overlapping(b, "wait");
    OK(named(b, CRON_DELETE, "a"), &b->op.err);
    finish_ok(b, t, FIRST, "1");
    advance(b, MINUTE_US);
    EQ_INT(tick(b)->submitted, 0);
    EQ_STATUS(found(b, THIRD), PAWL_NOT_FOUND, NULL);
    OK(found(b, FIRST), NULL); /* what was submitted stays */
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 skipped/replaced, 08:03 skipped/changed");
}

CASE(a_replaced_schedule_submits_no_tick_of_the_former)
{
    struct token t = overlapping(b, "wait");
    put(b, "a", "{\"every\":3600,\"overlap\":\"wait\",\"call\":{\"type\":\"u\"}}");
    finish_ok(b, t, FIRST, "1");
    advance(b, MINUTE_US);
    EQ_INT(tick(b)->submitted, 0);
    EQ_STR(due(b), "");
}

/* ---- Manual runs ----------------------------------------------------------------------------- */

CASE(a_manual_run_is_submitted_at_once)
{
    put_minute(b, "a", ",\"overlap\":\"skip\"");
    OK(named(b, CRON_RUN, "a"), &b->op.err);
    const struct cron_op *q = b->op.feature.ctx;
    EQ_TEXT(q->id, "cron:a@2026-11-15T08:00:00.000000Z!manual");
    FALSE(q->duplicate);
    EQ_TEXT(get(b, "cron:a@2026-11-15T08:00:00.000000Z!manual").spec.schedule, "a");
    OK(named(b, CRON_RUN, "a"), &b->op.err); /* a second one in the same microsecond */
    q = b->op.feature.ctx;
    EQ_TEXT(q->id, "cron:a@2026-11-15T08:00:00.000001Z!manual");
    EQ_STR(runs(b, "a"), "08:00 manual, 08:00 manual");
    ABSENT(row_of(b, "a").last_id); /* no tick: the next one is not skipped for it */
    advance(b, MINUTE_US);
    EQ_INT(tick(b)->submitted, 1);
    EQ_STATUS(named(b, CRON_RUN, "b"), PAWL_NOT_FOUND, NULL);
}

/* Each is a run of its own; none is answered with the call of another. */
CASE(more_manual_runs_than_a_moment_has_ids_are_refused)
{
    enum pawl_status st = PAWL_OK;
    int n = 0;
    put_minute(b, "a", "");
    while (st == PAWL_OK && n < 1000)
        n += (st = named(b, CRON_RUN, "a")) == PAWL_OK;
    EQ_INT(n, 101);
    EQ_STATUS(st, PAWL_BUSY, &b->op.err);
    EQ_STR(b->op.err.text, "schedule \"a\": too many runs of it were asked for at this moment");
    EQ_UINT(claim_as(b, want(b, 200)).n, 101);
    advance(b, SEC_US);
    OK(named(b, CRON_RUN, "a"), &b->op.err);
}

CASE(a_manual_run_with_a_key_runs_once)
{
    struct cron_op run = { .what = CRON_RUN, .name = BYTES("a"), .run_key = BYTES("k") };
    put_minute(b, "a", "");
    OK(named(b, CRON_PAUSE, "a"), &b->op.err); /* also while it is paused */
    struct cron_op *q = cron(b, run);
    OK(b->op.status, &b->op.err);
    EQ_TEXT(q->id, "cron:a!k");
    FALSE(q->duplicate);
    advance(b, SEC_US);
    q = cron(b, run);
    OK(b->op.status, &b->op.err);
    EQ_TEXT(q->id, "cron:a!k");
    TRUE(q->duplicate);
    EQ_STR(runs(b, "a"), "08:00 manual");
    put_minute(b, "a", ",\"catch_up\":\"none\"");
    put(b, "a", "{\"every\":60,\"call\":{\"type\":\"other\"}}");
    cron(b, run);
    EQ_STATUS(b->op.status, PAWL_CONFLICT, NULL);
}
