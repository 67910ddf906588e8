/*
 * cron_former.c - what a schedule leaves behind when it is changed or removed, schedules that
 * cannot be read, ticks that nobody asked for, and pages of large schedules.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "cron_case.h"

RUNS_ON(ENGINES_DURABLE)

/* ---- Changed and removed --------------------------------------------------------------------- */

#define FIRST "cron:a@2026-11-15T08:01:00Z"
#define SECOND "cron:a@2026-11-15T08:02:00Z"

/* 08:01 runs, 08:02 waits for its end, and 08:03 to 08:05 are due. */
static struct token waiting(struct conform_fixture *b, const char *zone)
{
    put_minute(b, "a", arena_printf(&b->a, ",\"overlap\":\"wait\",\"zone\":\"%s\"", zone));
    advance(b, MINUTE_US);
    EQ_INT(tick(b)->submitted, 1);
    struct token t = claim_n(b, 1);
    advance(b, MINUTE_US);
    tick(b);
    EQ_INT(row_of(b, "a").waiting_us, now(b));
    advance(b, 3 * MINUTE_US + 20 * SEC_US);
    return t;
}

static void counted(struct conform_fixture *b, const struct cron_op *q, int64_t missed)
{
    OK(b->op.status, &b->op.err);
    EQ_INT(q->skipped, 1);
    EQ_INT(q->skipped_for[CRON_CHANGED], 1);
    EQ_INT(q->missed, missed);
}

CASE(what_a_change_ends_is_recorded_and_answered)
{
    waiting(b, "UTC");
    struct cron_op *q = put(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}");
    counted(b, q, 3);
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 skipped/changed, 08:05 missed*3");
    q = put(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}"); /* no change */
    EQ_INT(q->skipped + q->missed, 0);
}

CASE(what_a_removal_ends_is_recorded_and_answered)
{
    waiting(b, "UTC");
    struct cron_op *q = cron(b, (struct cron_op){ .what = CRON_DELETE, .name = BYTES("a") });
    counted(b, q, 3);
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 skipped/changed, 08:05 missed*3");
}

/* The data of its zone is gone from this node, so only the stored tick is known. */
CASE(a_former_schedule_that_cannot_be_read_is_recorded_too)
{
    zone_data("old", "2026a", 1);
    zone_data("other", "2026c", 1);
    EQ_INT(system("rm other/Europe/Berlin"), 0);
    for (int removes = 0; removes < 2; removes++) {
        use_zones("old");
        struct token t = waiting(b, "Europe/Berlin");
        use_zones("other");
        if (removes)
            counted(b, cron(b, (struct cron_op){ .what = CRON_DELETE, .name = BYTES("a") }), 1);
        else
            counted(b, put(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}"), 1);
        if (!removes)
            EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 skipped/changed, 08:03 missed*1");
        else
            HAS_STR(runs(b, "a"), "08:07 submitted, 08:08 skipped/changed, 08:09 missed*1");
        struct cron_run_rows r;
        struct cron_run_query q = { .name = BYTES("a"), .limit = 1 };
        OK(cron_runs(b->s, &b->a, &q, &r, &b->err), &b->err);
        EQ_TEXT(r.v[0].zone, "Europe/Berlin");
        if (removes)
            break;
        finish_ok(b, t, FIRST, "1");
        OK(named(b, CRON_DELETE, "a"), &b->op.err);
        advance(b, 40 * SEC_US); /* 08:06 */
    }
}

CASE(a_former_schedule_with_a_damaged_text_is_recorded_too)
{
    put_unread(b, "a");
    advance(b, 5 * MINUTE_US);
    struct cron_op *q = put(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}");
    EQ_INT(q->missed, 1);
    EQ_STR(runs(b, "a"), "08:01 missed*1");
}

/* Ticks of a pause are caught up when it is resumed. The schedule that they belong to never is. */
CASE(a_change_while_paused_records_what_was_missed)
{
    put_minute(b, "a", ",\"catch_up\":\"all\"");
    OK(named(b, CRON_PAUSE, "a"), &b->op.err);
    advance(b, 10 * MINUTE_US + SEC_US);
    struct cron_op *q = put(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}");
    EQ_INT(q->missed, 10);
    EQ_STR(runs(b, "a"), "08:10 missed*10");
    TRUE(row_of(b, "a").paused);
    advance(b, 5 * MINUTE_US);
    OK(named(b, CRON_RESUME, "a"), &b->op.err);
    q = tick(b); /* those of the new one follow its own policy */
    EQ_INT(q->submitted, 1);
    EQ_INT(q->missed, 4);
    OK(named(b, CRON_PAUSE, "a"), &b->op.err);
    advance(b, 2 * MINUTE_US);
    q = cron(b, (struct cron_op){ .what = CRON_DELETE, .name = BYTES("a") });
    EQ_INT(q->missed, 2);
    EQ_STR(runs(b, "a"), "08:10 missed*10, 08:14 missed*4, 08:15 submitted, 08:17 missed*2");
}

/* ---- Nobody asked ---------------------------------------------------------------------------- */

CASE(a_tick_that_waited_and_lost_its_id_is_told)
{
    struct cron_unasked before, after;
    struct cron_unasked_refused r;
    struct token t = waiting(b, "UTC");
    struct call_spec s = plan(SECOND);
    s.type = BYTES("other");
    accept_spec(b, s);
    while (cron_unasked_take(&r))
        continue;
    cron_unasked(&before);
    finish_ok(b, t, FIRST, "1");
    cron_unasked(&after);
    EQ_STR(runs(b, "a"), "08:01 submitted, 08:02 skipped/conflict");
    EQ_INT(after.skipped[CRON_CONFLICT] - before.skipped[CRON_CONFLICT], 1);
    EQ_INT(after.waited, before.waited);
    TRUE(cron_unasked_take(&r));
    EQ_STR(r.schedule, "a");
    EQ_STR(r.id, SECOND);
    HAS_STR(r.text, "already has this id");
    FALSE(cron_unasked_take(&r));
}

CASE(no_more_than_so_many_of_them_are_kept)
{
    struct cron_unasked_refused r;
    int n = 0;
    while (cron_unasked_take(&r))
        continue;
    for (int i = 0; i <= CRON_REFUSED_MAX; i++) {
        const char *name = arena_printf(&b->a, "s%02d", i);
        put_minute(b, name, ",\"overlap\":\"wait\"");
    }
    advance(b, MINUTE_US);
    EQ_INT(tick(b)->submitted, CRON_REFUSED_MAX + 1);
    advance(b, MINUTE_US);
    tick(b);
    struct claim all = claim_as(b, want(b, 100));
    for (size_t i = 0; i < all.n; i++) {
        struct call_spec s = plan(arena_printf(&b->a, "cron:s%02d@2026-11-15T08:02:00Z", (int)i));
        s.type = BYTES("other");
        accept_spec(b, s);
    }
    for (size_t i = 0; i < all.n; i++)
        finish_ok(b, all.token, arena_printf(&b->a, "%.*s", BYTES_ARG(all.calls[i].spec.id)), "1");
    EQ_INT(all.n, CRON_REFUSED_MAX + 1);
    while (cron_unasked_take(&r))
        EQ_STR(r.schedule, arena_printf(&b->a, "s%02d", n++));
    EQ_INT(n, CRON_REFUSED_MAX);
}

/* ---- Unreadable ------------------------------------------------------------------------------ */

CASE(a_schedule_that_cannot_be_read_is_told_with_its_tick)
{
    put_unread(b, "bad");
    put_minute(b, "good", "");
    int64_t first_us = row_of(b, "bad").next_us;
    for (int i = 0; i < 3; i++) {
        advance(b, MINUTE_US);
        struct cron_op *q = tick(b);
        EQ_INT(q->submitted, 1);
        EQ_INT(q->unread, 1);
        EQ_INT(q->unread_since_us, first_us);
        EQ_UINT(q->n_refused, 1);
        EQ_TEXT(q->refused[0].schedule, "bad");
        ABSENT(q->refused[0].id);
        EQ_INT(q->refused[0].status, PAWL_BROKEN);
    }
    EQ_INT(tick(b)->unread, 0); /* not until it is looked at again */
    put_minute(b, "bad", "");
    advance(b, MINUTE_US);
    EQ_INT(tick(b)->submitted, 2);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* Store a schedule whose text has this many bytes. */
static void put_long(struct conform_fixture *b, const char *name, size_t len)
{
    static size_t plain;
    put(b, name, "{\"every\":60,\"call\":{\"type\":\"t\",\"input\":\"\"}}");
    plain = row_of(b, name).spec.len;
    size_t more = len - plain;
    char *json = arena_alloc(&b->a, more + 100);
    TRUE(json != NULL);
    int n = snprintf(json, 100, "{\"every\":60,\"call\":{\"type\":\"t\",\"input\":\"");
    memset(json + n, 'x', more);
    snprintf(json + (size_t)n + more, 4, "\"}}");
    put(b, name, json);
    EQ_UINT(row_of(b, name).spec.len, len);
}

static struct cron_rows page(struct conform_fixture *b, struct bytes after, int limit)
{
    struct cron_query q = { .after = after, .limit = limit };
    struct cron_rows r;
    OK(cron_list(b->s, &b->a, &q, &r, &b->err), &b->err);
    return r;
}

CASE(a_page_of_large_schedules_is_shorter)
{
    for (int i = 0; i < 5; i++)
        put_long(b, arena_printf(&b->a, "s%d", i), SCHEDULE_PAGE_LEN_MAX / 4);
    struct cron_rows r = page(b, BYTES_NONE, 5);
    EQ_UINT(r.n, 4); /* exactly what fits */
    EQ_TEXT(r.next, "s3");
    r = page(b, r.next, 5);
    EQ_UINT(r.n, 1);
    ABSENT(r.next);
    r = page(b, BYTES("s0"), 4); /* all that is left fits, in limit and length */
    EQ_UINT(r.n, 4);
    ABSENT(r.next);
    put_long(b, "s1", SCHEDULE_PAGE_LEN_MAX / 4 + 1); /* one more byte */
    r = page(b, BYTES_NONE, 5);
    EQ_UINT(r.n, 3);
    EQ_TEXT(r.next, "s2");
    r = page(b, r.next, 1);
    EQ_UINT(r.n, 1);
    EQ_TEXT(r.next, "s3");
}

/* Of each schedule of a page the run that a list of its runs has first. */
CASE(a_page_has_the_newest_run_of_each_schedule)
{
    put_minute(b, "a", "");
    put_minute(b, "b", ",\"paused\":true");
    put_minute(b, "c", "");
    EQ_UINT(page(b, BYTES_NONE, LIST_MAX).n, 3);
    for (int i = 0; i < 3; i++) {
        advance(b, MINUTE_US);
        EQ_INT(tick(b)->submitted, 2);
    }
    cron(b, (struct cron_op){ .what = CRON_RUN, .name = BYTES("c"), .run_key = BYTES("k") });
    struct cron_rows r = page(b, BYTES_NONE, LIST_MAX);
    struct cron_run *last;
    OK(cron_last(b->s, &b->a, &r, &last, &b->err), &b->err);
    EQ_INT(last[1].kind, 0);
    for (size_t i = 0; i < r.n; i += 2) {
        struct cron_run_query q = { .name = r.v[i].name, .limit = 1 };
        struct cron_run_rows of;
        OK(cron_runs(b->s, &b->a, &q, &of, &b->err), &b->err);
        TRUE(bytes_eq(last[i].name, of.v[0].name));
        TRUE(bytes_eq(last[i].id, of.v[0].id));
        EQ_INT(last[i].at_us, of.v[0].at_us);
        EQ_INT(last[i].state, PAWL_PENDING);
        EQ_INT(last[i].kind, i ? CRON_MANUAL : CRON_SUBMITTED);
    }
    r.n = 0;
    OK(cron_last(b->s, &b->a, &r, &last, &b->err), &b->err);
}

CASE(an_error_of_the_zone_names_its_field)
{
    cron(b, put_op(b, "a", "{\"every\":60,\"zone\":\"No/Where\",\"call\":{\"type\":\"t\"}}"));
    EQ_STATUS(b->op.status, PAWL_INVALID, &b->op.err);
    TRUE(strncmp(b->op.err.text, "field \"zone\": ", 14) == 0);
}

/* Ids of two schedules may be spelled alike: then it is one call, of the one that was first. */
CASE(a_call_of_another_schedule_is_a_conflict)
{
    put_minute(b, "a", "");
    put_minute(b, "a!b", "");
    struct cron_op run = { .what = CRON_RUN, .name = BYTES("a"), .run_key = BYTES("b!k") };
    struct cron_op *q = cron(b, run);
    OK(b->op.status, &b->op.err);
    EQ_TEXT(q->id, "cron:a!b!k");
    EQ_STR(runs(b, "a"), "08:00 manual");
    TRUE(cron(b, run)->duplicate); /* the same run */
    OK(b->op.status, &b->op.err);
    cron(b, (struct cron_op){ .what = CRON_RUN, .name = BYTES("a!b"), .run_key = BYTES("k") });
    EQ_STATUS(b->op.status, PAWL_CONFLICT, &b->op.err);
    EQ_STR(runs(b, "a!b"), "");
    /* A tick of the one, which the other's key spells. */
    run.run_key = BYTES("b@2026-11-15T08:01:00Z");
    cron(b, run);
    OK(b->op.status, &b->op.err);
    EQ_INT(named(b, CRON_PAUSE, "a"), PAWL_OK);
    advance(b, MINUTE_US);
    q = tick(b);
    EQ_INT(q->submitted, 0);
    EQ_INT(q->skipped_for[CRON_CONFLICT], 1);
    EQ_STR(runs(b, "a!b"), "08:01 skipped/conflict");
}
