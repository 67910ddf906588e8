/*
 * cron.c - schedules: what a tick submits, skips and misses, and that each tick is decided once.
 *
 * cron_overlap.c has ticks that meet others, cron_lost.c commits whose answer was lost.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "cron_case.h"
#include "feature/zones.h"
#include "model/ticks.h"

RUNS_ON(ENGINES_DURABLE)

/* ---- Storing --------------------------------------------------------------------------------- */

CASE(a_schedule_is_put_changed_and_removed)
{
    struct cron_op *q = put(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}");
    TRUE(q->created);
    TRUE(q->changed);
    struct cron_row r = row_of(b, "a");
    EQ_INT(r.version, q->version);
    EQ_INT(r.next_us, now(b) + MINUTE_US); /* never the present moment */
    EQ_INT(r.created_us, now(b));
    FALSE(r.paused);
    const char *before = snapshot(b);
    q = put(b, "a", "{\"call\":{\"type\":\"t\"},\"every\":60.0}"); /* the same */
    FALSE(q->created);
    FALSE(q->changed);
    EQ_INT(q->version, r.version);
    EQ_STR(snapshot(b), before);
    advance(b, 10);
    q = put(b, "a", "{\"every\":30,\"call\":{\"type\":\"t\"}}");
    FALSE(q->created);
    TRUE(q->changed);
    GT_INT(q->version, r.version);
    EQ_INT(row_of(b, "a").created_us, r.created_us);
    OK(named(b, CRON_DELETE, "a"), &b->op.err);
    EQ_STATUS(named(b, CRON_DELETE, "a"), PAWL_NOT_FOUND, NULL);
    HAS_STR(b->op.err.text, "no schedule \"a\"");
    EQ_STATUS(cron_get(b->s, &b->a, BYTES("a"), &r, &b->err), PAWL_NOT_FOUND, NULL);
}

CASE(a_version_is_never_used_again)
{
    int64_t first = put(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}")->version;
    int64_t second = put(b, "a", "{\"every\":61,\"call\":{\"type\":\"t\"}}")->version;
    GT_INT(second, first); /* although the clock stands still */
    advance(b, 100);
    OK(named(b, CRON_DELETE, "a"), &b->op.err);
    GT_INT(put(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}")->version, second);
}

CASE(conditions_hold_or_nothing_is_written)
{
    struct cron_op q = put_op(b, "a", "{\"every\":60,\"call\":{\"type\":\"t\"}}");
    q.if_any = true;
    struct cron_op *got = cron(b, q);
    EQ_STATUS(b->op.status, PAWL_STALE, NULL);
    EQ_INT(got->version, 0);
    q.if_any = false;
    q.if_none = true;
    int64_t version = cron(b, q)->version;
    OK(b->op.status, &b->op.err);
    cron(b, q);
    EQ_STATUS(b->op.status, PAWL_STALE, NULL);
    q = put_op(b, "a", "{\"every\":61,\"call\":{\"type\":\"t\"}}");
    q.if_version = version + 1;
    EQ_INT(cron(b, q)->version, version);
    EQ_STATUS(b->op.status, PAWL_STALE, NULL);
    HAS_STR(b->op.err.text, "schedule \"a\" has version ");
    int64_t other[] = { 7, version };
    q.or_versions = other;
    q.n_or_versions = 2;
    GT_INT(cron(b, q)->version, version);
    OK(b->op.status, &b->op.err);
    cron(b, (struct cron_op){ .what = CRON_DELETE, .name = BYTES("a"), .if_version = version });
    EQ_STATUS(b->op.status, PAWL_STALE, NULL);
    cron(b, (struct cron_op){ .what = CRON_PAUSE, .name = BYTES("a"), .if_version = version });
    EQ_STATUS(b->op.status, PAWL_STALE, NULL);
}

CASE(what_never_fires_is_refused)
{
    struct cron_op q =
        put_op(b, "a", "{\"at\":[\"2026-11-15T08:00:00Z\"],\"call\":{\"type\":\"t\"}}");
    cron(b, q); /* the present moment is not in the future */
    EQ_STATUS(b->op.status, PAWL_INVALID, NULL);
    HAS_STR(b->op.err.text, "\"at\"");
    q = put_op(b, "a", "{\"every\":60,\"zone\":\"Nowhere/Land\",\"call\":{\"type\":\"t\"}}");
    cron(b, q);
    EQ_STATUS(b->op.status, PAWL_INVALID, NULL);
    HAS_STR(b->op.err.text, "Nowhere/Land");
    EQ_INT(tick(b)->next_us, 0);
}

/* Ask what the change would do, then do it: both answer the same. */
static void as_asked(struct conform_fixture *b, struct cron_op q)
{
    enum cron_change change;
    const char *before = snapshot(b);
    cron_op_of(b, q); /* the handle knows the feature */
    enum pawl_status st = cron_would(b->s, &q, &change, &b->err);
    EQ_STR(snapshot(b), before);
    struct cron_op *done = cron(b, q);
    EQ_STATUS(b->op.status, st, &b->op.err);
    if (st != PAWL_OK) {
        EQ_STR(b->err.text, b->op.err.text);
        return;
    }
    EQ_INT(change, done->created ? CRON_CREATE : done->changed ? CRON_UPDATE : CRON_NO_CHANGE);
}

CASE(what_a_change_would_do_it_does)
{
    static const char minute[] = "{\"every\":60,\"call\":{\"type\":\"t\"}}";
    static const char *const puts[] = {
        minute,
        minute,
        "{\"every\":61,\"call\":{\"type\":\"t\"}}",
        "{\"every\":61,\"paused\":true,\"call\":{\"type\":\"t\"}}",
        "{\"every\":62,\"paused\":false,\"call\":{\"type\":\"t\"}}",
        "{\"at\":[\"2026-11-15T08:00:00Z\"],\"call\":{\"type\":\"t\"}}",
        "{\"every\":60,\"zone\":\"Nowhere/Land\",\"call\":{\"type\":\"t\"}}",
    };
    as_asked(b, (struct cron_op){ .what = CRON_PAUSE, .name = BYTES("a") });
    for (size_t i = 0; i < COUNT_OF(puts); i++) {
        struct cron_op q = put_op(b, "a", puts[i]), none = q;
        none.if_none = true;
        as_asked(b, q);
        as_asked(b, none); /* the condition does not hold */
        q.if_version = 7;
        as_asked(b, q);
        advance(b, 10);
    }
    for (int i = 0; i < 4; i++)
        as_asked(b, (struct cron_op){ .what = i < 2 ? CRON_PAUSE : CRON_RESUME,
                                      .name = BYTES("a"),
                                      .if_version = i % 2 ? 7 : 0 });
    as_asked(b, (struct cron_op){ .what = CRON_RESUME, .name = BYTES("a") });
}

CASE(schedules_are_listed_by_name_in_pages)
{
    for (int i = 4; i >= 0; i--)
        put_minute(b, arena_printf(&b->a, "s%d", i), "");
    struct cron_query q = { .limit = 2 };
    struct cron_rows r;
    const char *all = "";
    for (int page = 0; page < 3; page++, q.after = r.next) {
        OK(cron_list(b->s, &b->a, &q, &r, &b->err), &b->err);
        for (size_t i = 0; i < r.n; i++)
            all = arena_printf(&b->a, "%s %.*s", all, BYTES_ARG(r.v[i].name));
    }
    EQ_STR(all, " s0 s1 s2 s3 s4");
    ABSENT(r.next);
}

/* ---- Ticks ----------------------------------------------------------------------------------- */

CASE(a_tick_is_a_call_with_the_time_in_its_id)
{
    put(b, "nightly",
        "{\"cron\":\"30 9 * * *\",\"zone\":\"Europe/Berlin\","
        "\"call\":{\"type\":\"report\",\"input\":{\"kind\":\"daily\"},\"priority\":3}}");
    EQ_INT(row_of(b, "nightly").next_us, now(b) + 30 * MINUTE_US); /* Berlin is an hour ahead */
    advance(b, 30 * MINUTE_US - 1);
    struct cron_op *q = tick(b);
    EQ_INT(q->submitted, 0);
    EQ_INT(q->next_us, now(b) + 1);
    advance(b, 1);
    q = tick(b);
    EQ_INT(q->submitted, 1);
    EQ_UINT(q->n_ids, 1);
    EQ_TEXT(q->ids[0], "cron:nightly@2026-11-15T08:30:00Z");
    EQ_INT(q->next_us, now(b) + 24 * HOUR_US);
    FALSE(q->more);
    TRUE(b->op.brings);
    struct call c = get(b, "cron:nightly@2026-11-15T08:30:00Z");
    EQ_TEXT(c.spec.type, "report");
    EQ_TEXT(c.spec.input.bytes, "{\"kind\":\"daily\"}");
    EQ_INT(c.spec.priority, 3);
    EQ_TEXT(c.spec.schedule, "nightly");
    EQ_INT(c.spec.scheduled_us, now(b));
    EQ_INT(c.run_at_us, now(b));
    EQ_INT(tick(b)->submitted, 0); /* it has moved on */
    struct cron_row r = row_of(b, "nightly");
    EQ_INT(r.last_us, now(b));
    EQ_TEXT(r.last_id, "cron:nightly@2026-11-15T08:30:00Z");
}

CASE(a_tick_shows_what_its_call_came_to)
{
    struct cron_run_rows r;
    struct cron_run_query q = { .name = BYTES("a"), .limit = 1 };
    put_minute(b, "a", "");
    for (int i = 0; i < 2; i++) {
        advance(b, MINUTE_US);
        tick(b);
    }
    struct token t = claim_n(b, 2);
    finish_error(b, t, "cron:a@2026-11-15T08:01:00Z", "broke");
    finish_ok(b, t, "cron:a@2026-11-15T08:02:00Z", "2");
    OK(cron_runs(b->s, &b->a, &q, &r, &b->err), &b->err);
    EQ_UINT(r.n, 1);
    TRUE(r.more);
    EQ_INT(r.v[0].at_us, now(b));
    EQ_INT(r.v[0].state, PAWL_COMPLETED);
    EQ_INT(r.v[0].finished_us, now(b));
    EQ_TEXT(r.v[0].zone, "UTC");
    EQ_TEXT(r.v[0].node, "n1");
    q.before_us = r.v[0].at_us;
    q.before_no = r.v[0].no;
    OK(cron_runs(b->s, &b->a, &q, &r, &b->err), &b->err);
    EQ_UINT(r.n, 1);
    FALSE(r.more);
    EQ_INT(r.v[0].state, PAWL_PENDING);
    EQ_TEXT(r.v[0].error, "broke");
}

CASE(a_long_name_gives_ids_that_are_names)
{
    char name[256];
    memset(name, 'n', 255);
    name[255] = 0;
    put_minute(b, name, "");
    advance(b, MINUTE_US);
    struct cron_op *q = tick(b);
    EQ_UINT(q->n_ids, 1);
    LE_INT(q->ids[0].len, 255);
    EQ_INT(row_of(b, name).last_id.len, q->ids[0].len);
    OK(found(b, q->ids[0].data), NULL);
}

CASE(a_late_tick_counts_from_its_own_time)
{
    put_minute(b, "a", "");
    put(b, "d", "{\"every\":60,\"call\":{\"type\":\"t\",\"delay\":10,\"expires_in\":30}}");
    advance(b, MINUTE_US + 2 * SEC_US);
    struct cron_op *q = tick(b);
    EQ_INT(q->submitted, 2);
    EQ_INT(q->late_us, 2 * SEC_US);
    struct call c = get(b, "cron:d@2026-11-15T08:01:00Z");
    EQ_INT(c.run_at_us, now(b) + 8 * SEC_US);
    EQ_INT(c.expires_us, now(b) + 28 * SEC_US);
    EQ_INT(get(b, "cron:a@2026-11-15T08:01:00Z").run_at_us, now(b)); /* the past means now */
}

CASE(jitter_moves_the_start_and_never_the_id)
{
    int64_t first = 0;
    bool differ = false;
    put(b, "j", "{\"every\":3600,\"jitter\":1800,\"call\":{\"type\":\"t\"}}");
    for (int i = 0; i < 5; i++) {
        advance(b, HOUR_US);
        struct cron_op *q = tick(b);
        EQ_UINT(q->n_ids, 1);
        int64_t late = get(b, q->ids[0].data).run_at_us - now(b);
        TRUE(late >= 0 && late <= 1800 * SEC_US);
        differ = differ || (i && late != first);
        first = i ? first : late;
    }
    TRUE(differ);
}

CASE(a_schedule_starts_and_ends)
{
    put(b, "a",
        "{\"cron\":\"* * * * *\",\"starts_at\":\"2026-11-15T08:02:00Z\","
        "\"ends_at\":\"2026-11-15T08:04:30Z\",\"call\":{\"type\":\"t\"}}");
    for (int i = 0; i < 6; i++) {
        tick(b);
        advance(b, MINUTE_US);
    }
    EQ_STR(runs(b, "a"), "08:02 submitted, 08:03 submitted, 08:04 submitted");
    EQ_INT(row_of(b, "a").next_us, 0);
    EQ_INT(tick(b)->next_us, 0);
}

CASE(a_list_of_times_ticks_at_each_of_them)
{
    put(b, "a",
        "{\"at\":[\"2026-11-15T08:05:00.5Z\",\"2026-11-15T08:02:00Z\",\"2026-11-15T07:00:00Z\"],"
        "\"call\":{\"type\":\"t\"}}");
    advance(b, 2 * MINUTE_US);
    EQ_INT(tick(b)->submitted, 1);
    advance(b, 3 * MINUTE_US);
    EQ_INT(tick(b)->submitted, 0);
    advance(b, SEC_US / 2);
    struct cron_op *q = tick(b);
    EQ_TEXT(q->ids[0], "cron:a@2026-11-15T08:05:00.500000Z");
    EQ_INT(row_of(b, "a").next_us, 0);
}

CASE(an_id_that_a_client_took_is_no_tick)
{
    struct call_spec s = plan("cron:a@2026-11-15T08:01:00Z");
    s.type = BYTES("other");
    accept_spec(b, s);
    put_minute(b, "a", "");
    put_minute(b, "b", "");
    advance(b, MINUTE_US);
    struct cron_op *q = tick(b);
    EQ_INT(q->submitted, 1); /* the other one is not stopped */
    EQ_INT(q->skipped, 1);
    EQ_INT(q->skipped_for[CRON_CONFLICT], 1);
    EQ_UINT(q->n_refused, 1);
    EQ_TEXT(q->refused[0].schedule, "a");
    EQ_INT(q->refused[0].status, PAWL_CONFLICT);
    EQ_STR(runs(b, "a"), "08:01 skipped/conflict");
    advance(b, MINUTE_US);
    EQ_INT(tick(b)->submitted, 2); /* and it goes on */
}

CASE(a_tick_has_a_bound)
{
    for (int i = 0; i < 7; i++)
        put_minute(b, arena_printf(&b->a, "s%d", i), "");
    advance(b, MINUTE_US);
    int n = 0;
    for (int i = 0; i < 4; i++) {
        struct cron_op *q = cron(b, (struct cron_op){ .what = CRON_TICK, .max = 2 });
        OK(b->op.status, &b->op.err);
        EQ_INT(q->more, i < 3);
        n += q->submitted;
    }
    EQ_INT(n, 7);
}

CASE(operations_of_one_group_see_each_other)
{
    put_minute(b, "a", "");
    advance(b, MINUTE_US);
    struct op other = cron_op_of(b, put_op(b, "b", "{\"every\":60,\"call\":{\"type\":\"t\"}}"));
    struct op run = cron_op_of(b, (struct cron_op){ .what = CRON_RUN, .name = BYTES("b") });
    struct op ticks = cron_op_of(b, (struct cron_op){ .what = CRON_TICK, .max = 10 });
    struct op pause = cron_op_of(b, (struct cron_op){ .what = CRON_PAUSE, .name = BYTES("a") });
    struct op gone = cron_op_of(b, (struct cron_op){ .what = CRON_DELETE, .name = BYTES("b") });
    struct op again = cron_op_of(b, put_op(b, "b", "{\"every\":9,\"call\":{\"type\":\"t\"}}"));
    TOGETHER(b, &other, &run, &ticks, &pause, &gone, &again);
    OK(run.status, &run.err);
    EQ_INT(((struct cron_op *)ticks.feature.ctx)->submitted, 1);
    OK(pause.status, &pause.err);
    OK(gone.status, &gone.err);
    OK(again.status, &again.err);
    TRUE(((struct cron_op *)again.feature.ctx)->created);
    struct cron_row r = row_of(b, "a");
    TRUE(r.paused);
    EQ_INT(r.last_us, now(b));
    EQ_INT(row_of(b, "b").next_us % (9 * SEC_US), 0);
}

/* ---- Catching up ----------------------------------------------------------------------------- */

/* Down for 90 minutes under a schedule of each minute, with this policy. */
static struct cron_op *down(struct conform_fixture *b, const char *policy)
{
    put_minute(b, "a", arena_printf(&b->a, ",\"catch_up\":\"%s\"", policy));
    advance(b, MINUTE_US);
    EQ_INT(tick(b)->submitted, 1);
    advance(b, 90 * MINUTE_US + 20 * SEC_US);
    return tick(b);
}

CASE(after_downtime_the_newest_is_caught_up)
{
    struct cron_op *q = down(b, "last");
    EQ_INT(q->submitted, 1);
    EQ_INT(q->missed, 89);
    EQ_TEXT(q->ids[0], "cron:a@2026-11-15T09:31:00Z");
    EQ_STR(runs(b, "a"), "08:01 submitted, 09:30 missed*89, 09:31 submitted");
    advance(b, 40 * SEC_US);
    EQ_INT(tick(b)->submitted, 1); /* and the next one on time */
}

CASE(after_downtime_none_is_caught_up)
{
    struct cron_op *q = down(b, "none");
    EQ_INT(q->submitted, 0);
    EQ_INT(q->missed, 90);
    EQ_STR(runs(b, "a"), "08:01 submitted, 09:31 missed*90");
    EQ_INT(row_of(b, "a").last_us, now(b) - 20 * SEC_US);
    advance(b, 40 * SEC_US);
    EQ_INT(tick(b)->submitted, 1);
}

CASE(after_downtime_all_are_caught_up_in_order)
{
    struct cron_op *q = down(b, "all");
    char at[TIME_TEXT_LEN + 1];
    EQ_INT(q->submitted, 90);
    EQ_INT(q->missed, 0);
    for (int i = 0; i < 90; i++) {
        schedule_time_text(OWN_WORLD_BEGIN + (2 + i) * MINUTE_US, at);
        EQ_TEXT(q->ids[i], arena_printf(&b->a, "cron:a@%s", at));
    }
    struct claim all = claim_as(b, want(b, 1000));
    EQ_INT(all.n, 91);
    for (size_t i = 1; i < 91; i++)
        EQ_TEXT(all.calls[i].spec.id, arena_printf(&b->a, "%.*s", BYTES_ARG(q->ids[i - 1])));
}

CASE(a_newest_tick_that_is_too_late_is_missed)
{
    put(b, "a", "{\"cron\":\"0 9 * * *\",\"catch_up_for\":600,\"call\":{\"type\":\"t\"}}");
    advance(b, HOUR_US + 601 * SEC_US);
    struct cron_op *q = tick(b);
    EQ_INT(q->submitted, 0);
    EQ_INT(q->missed, 1);
    advance(b, 24 * HOUR_US - SEC_US);
    EQ_INT(tick(b)->submitted, 1);
}

CASE(no_more_than_a_hundred_are_caught_up)
{
    put_minute(b, "a", ",\"catch_up\":\"all\"");
    advance(b, 250 * MINUTE_US);
    struct cron_op *q = tick(b);
    EQ_INT(q->submitted, 100);
    EQ_INT(q->missed, 150);
}

CASE(large_inputs_are_caught_up_in_several_commits)
{
    size_t len = 1000000;
    char *json = arena_alloc(&b->a, len + 200);
    TRUE(json != NULL);
    int n = snprintf(json, 200,
                     "{\"every\":60,\"catch_up\":\"all\",\"call\":{\"type\":\"t\",\"input\":\"");
    memset(json + n, 'x', len);
    snprintf(json + (size_t)n + len, 4, "\"}}");
    put(b, "a", json);
    advance(b, 40 * MINUTE_US);
    int total = 0, commits = 0;
    struct cron_op *q;
    do {
        q = tick(b);
        total += q->submitted;
        commits++;
    } while (q->more && commits < 10);
    EQ_INT(total, 40);
    GT_INT(commits, 1);
    FALSE(q->more);
}

/* Paused for ten hours and `more_us`. */
static const struct paused {
    const char *policy;
    int64_t more_us;
    int submitted, missed;
} pauses[] = {
    { "last", 20 * SEC_US, 1, 599 },
    { "none", 20 * SEC_US, 0, 600 },
    { "all", 20 * SEC_US, 100, 500 },
    /* A tick that is due at the very moment of the resume is on time under every policy. */
    { "last", 0, 1, 599 },
    { "none", 0, 1, 599 },
    { "all", 0, 100, 500 },
};

CASE(a_pause_is_downtime)
{
    for (size_t i = 0; i < COUNT_OF(pauses); i++) {
        const char *name = pauses[i].policy;
        put_minute(b, name, arena_printf(&b->a, ",\"catch_up\":\"%s\"", name));
        OK(named(b, CRON_PAUSE, name), &b->op.err);
        TRUE(row_of(b, name).paused);
        int64_t version = row_of(b, name).version;
        OK(named(b, CRON_PAUSE, name), &b->op.err); /* no change, no write */
        EQ_INT(row_of(b, name).version, version);
        advance(b, 600 * MINUTE_US + pauses[i].more_us);
        EQ_INT(tick(b)->submitted, 0);
        OK(named(b, CRON_RESUME, name), &b->op.err);
        FALSE(row_of(b, name).paused);
        struct cron_op *q = tick(b);
        EQ_INT(q->submitted, pauses[i].submitted);
        EQ_INT(q->missed, pauses[i].missed);
        EQ_UINT(q->n_ids, pauses[i].submitted);
        OK(named(b, CRON_DELETE, name), &b->op.err);
        advance(b, pauses[i].more_us ? MINUTE_US - pauses[i].more_us : 0); /* a full minute */
    }
}

CASE(after_a_short_pause_none_is_caught_up_either)
{
    put_minute(b, "a", ",\"catch_up\":\"none\"");
    OK(named(b, CRON_PAUSE, "a"), &b->op.err);
    advance(b, MINUTE_US + SEC_US); /* late by less than a tick may be */
    OK(named(b, CRON_RESUME, "a"), &b->op.err);
    EQ_INT(tick(b)->submitted, 0);
    EQ_STR(runs(b, "a"), "08:01 missed*1");
    advance(b, 59 * SEC_US);
    EQ_INT(tick(b)->submitted, 1);
}

CASE(a_put_of_paused_alone_is_pause_or_resume)
{
    put_minute(b, "a", "");
    struct cron_op *q = put(
        b, "a", "{\"cron\":\"* * * * *\",\"call\":{\"type\":\"t\",\"input\":1},\"paused\":true}");
    TRUE(q->changed);
    FALSE(q->created);
    advance(b, 10 * MINUTE_US + SEC_US);
    EQ_INT(tick(b)->submitted, 0);
    put_minute(b, "a", ""); /* without the member it stays as it is */
    TRUE(row_of(b, "a").paused);
    put(b, "a", "{\"cron\":\"* * * * *\",\"call\":{\"type\":\"t\",\"input\":1},\"paused\":false}");
    q = tick(b);
    EQ_INT(q->submitted, 1); /* so it looks back, as a resume does */
    EQ_INT(q->missed, 9);
}

CASE(a_put_never_looks_back)
{
    put_minute(b, "a", "");
    advance(b, 10 * MINUTE_US);
    put_minute(b, "a", ",\"jitter\":1");
    EQ_INT(tick(b)->submitted, 0);
    EQ_STR(runs(b, "a"), "08:10 missed*10"); /* of the former schedule */
    EQ_INT(row_of(b, "a").next_us, now(b) + MINUTE_US);
}

/* ---- Zones ----------------------------------------------------------------------------------- */

CASE(newer_zone_data_moves_the_next_tick)
{
    char release[ZONE_VERSION_LEN];
    zone_data("old", "2026a", 1);
    zone_data("new", "2026b", 2);
    use_zones("old");
    put(b, "a", "{\"cron\":\"0 12 * * *\",\"zone\":\"Europe/Berlin\",\"call\":{\"type\":\"t\"}}");
    EQ_INT(row_of(b, "a").next_us, now(b) + 3 * HOUR_US); /* 11:00 UTC */
    EQ_TEXT(row_of(b, "a").zone_data, "2026a");
    use_zones("new");
    zones_release(release);
    EQ_STR(release, "2026b");
    struct cron_op *q = cron(b, (struct cron_op){ .what = CRON_ZONES, .max = 10 });
    OK(b->op.status, &b->op.err);
    EQ_INT(q->removed, 1);
    FALSE(q->more);
    EQ_INT(row_of(b, "a").next_us, now(b) + 2 * HOUR_US);
    EQ_TEXT(row_of(b, "a").zone_data, "2026b");
    use_zones("old"); /* older data changes nothing */
    EQ_INT(cron(b, (struct cron_op){ .what = CRON_ZONES, .max = 10 })->removed, 0);
    advance(b, 2 * HOUR_US);
    EQ_INT(tick(b)->submitted, 1);
}

/* Two nodes, of which one has newer data: the clock is set back an hour by it. Whichever of them
 * ticks, a day has one tick. */
CASE(two_nodes_with_different_zone_data_make_one_tick)
{
    zone_data("old", "2026a", 2);
    zone_data("new", "2026b", 1);
    use_zones("old");
    put(b, "a", "{\"cron\":\"0 12 * * *\",\"zone\":\"Europe/Berlin\",\"call\":{\"type\":\"t\"}}");
    int submitted = 0;
    for (int hour = 0; hour < 24 * 4; hour++) {
        advance(b, HOUR_US);
        use_zones(hour % 2 ? "old" : "new");
        if (hour == 10)
            cron(b, (struct cron_op){ .what = CRON_ZONES, .max = 10 });
        submitted += tick(b)->submitted;
        use_zones(hour % 2 ? "new" : "old");
        submitted += tick(b)->submitted;
    }
    EQ_INT(submitted, 4);
}

CASE(zone_data_that_is_missing_stops_only_its_own_schedules)
{
    zone_data("old", "2026a", 1);
    EQ_INT(system("mkdir -p none"), 0);
    use_zones("old");
    put(b, "a", "{\"cron\":\"* * * * *\",\"zone\":\"Europe/Berlin\",\"call\":{\"type\":\"t\"}}");
    put_minute(b, "b", "");
    advance(b, MINUTE_US);
    zone_data("other", "2026c", 1); /* makes the cache read every zone again */
    EQ_INT(system("rm other/Europe/Berlin"), 0);
    use_zones("other");
    struct cron_op *q = tick(b);
    EQ_INT(q->submitted, 1);
    EQ_UINT(q->n_refused, 1);
    EQ_TEXT(q->refused[0].schedule, "a");
    ABSENT(q->refused[0].id);
    FALSE(q->more); /* it is left alone for a while */
    use_zones("old");
    advance(b, MINUTE_US);
    q = tick(b);
    EQ_INT(q->submitted, 2);
}

/* ---- Retention ------------------------------------------------------------------------------- */

CASE(old_ticks_are_removed_in_steps)
{
    put_minute(b, "a", "");
    for (int i = 0; i < 5; i++) {
        advance(b, MINUTE_US);
        tick(b);
    }
    struct cron_op forget = { .what = CRON_FORGET, .max = 2, .keep_us = 2 * MINUTE_US };
    struct cron_op *q = cron(b, forget);
    OK(b->op.status, &b->op.err);
    EQ_INT(q->removed, 2);
    TRUE(q->more);
    q = cron(b, forget);
    EQ_INT(q->removed, 1);
    FALSE(q->more);
    EQ_STR(runs(b, "a"), "08:04 submitted, 08:05 submitted");
}

CASE(a_call_past_its_retention_leaves_its_tick)
{
    put_minute(b, "a", ",\"overlap\":\"skip\"");
    advance(b, MINUTE_US);
    tick(b);
    finish_ok(b, claim_n(b, 1), "cron:a@2026-11-15T08:01:00Z", "1");
    advance(b, RETENTION_US);
    EQ_INT(gc(b).removed, 1);
    struct cron_run_rows r;
    struct cron_run_query q = { .name = BYTES("a"), .limit = 10 };
    OK(cron_runs(b->s, &b->a, &q, &r, &b->err), &b->err);
    EQ_UINT(r.n, 1);
    EQ_INT(r.v[0].state, PAWL_COMPLETED);
    EQ_INT(tick(b)->submitted, 1); /* a call that is gone has ended */
}
