/*
 * ticks.c - intervals, lists and cron rules between their start and end; what is submitted and
 * what is missed after downtime, decided by the rules and compared with a walk over every tick.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <unistd.h>

#include "base/world.h"
#include "model/ticks.h"
#include "check.h"

#define MINUTE_US (60 * SEC_US)
#define HOUR_US (60 * MINUTE_US)

static struct zone *zone_of(const char *name)
{
    struct pawl_err err = { 0 };
    struct zone *z = NULL;
    if (access(ZONE_DIR, R_OK) != 0 && strcmp(name, "UTC") != 0)
        skip("there are no time zones in %s", ZONE_DIR);
    OK(zone_load(NULL, bytes_of(name), &z, &err), &err);
    return z;
}

static int64_t at(const char *text)
{
    int64_t us = 0;
    if (!time_parse(bytes_of(text), &us))
        FAIL("not a time: %s", text);
    return us;
}

static struct schedule_rule cron_rule(const char *text)
{
    struct schedule_rule r = { .kind = SCHEDULE_CRON };
    struct pawl_err err = { 0 };
    OK(cron_parse(bytes_of(text), &r.cron, &err), &err);
    return r;
}

static const char *shown(int64_t at_us)
{
    static char text[2][TIME_TEXT_LEN + 1];
    static int which;
    which = !which;
    schedule_time_text(at_us, text[which]);
    return text[which];
}

static const char *next(const struct schedule_rule *r, const struct zone *z, const char *after)
{
    struct schedule_tick t;
    return schedule_next(r, z, at(after), &t) ? shown(t.at_us) : "none";
}

static const char *prev(const struct schedule_rule *r, const struct zone *z, const char *until)
{
    struct schedule_tick t;
    return schedule_prev(r, z, at(until), &t) ? shown(t.at_us) : "none";
}

static struct schedule_tick tick_of(const struct zone *z, const char *text)
{
    int64_t us = at(text);
    return (struct schedule_tick){ us, us + zone_offset(z, us / SEC_US) * SEC_US };
}

/* ---- Ticks ----------------------------------------------------------------------------------- */

TEST(an_interval_counts_from_1970_or_from_its_start)
{
    struct zone *z = zone_of("UTC");
    struct schedule_rule r = { .kind = SCHEDULE_EVERY, .every_us = 7 * SEC_US };
    EQ_STR(next(&r, z, "1970-01-01T00:00:00Z"), "1970-01-01T00:00:07Z");
    EQ_STR(next(&r, z, "1970-01-01T00:00:06.999999Z"), "1970-01-01T00:00:07Z");
    EQ_STR(next(&r, z, "1969-12-31T23:59:59Z"), "1970-01-01T00:00:00Z");
    EQ_STR(next(&r, z, "1969-12-31T23:59:52Z"), "1969-12-31T23:59:53Z");
    EQ_STR(prev(&r, z, "1970-01-01T00:00:07Z"), "1970-01-01T00:00:07Z");
    EQ_STR(prev(&r, z, "1970-01-01T00:00:06.999999Z"), "1970-01-01T00:00:00Z");
    EQ_STR(prev(&r, z, "1969-12-31T23:59:59Z"), "1969-12-31T23:59:53Z");
    EQ_INT(schedule_count(&r, z, -1, 14 * SEC_US), 3);
    EQ_INT(schedule_count(&r, z, 0, 14 * SEC_US - 1), 1);
    EQ_INT(schedule_count(&r, z, 14 * SEC_US, 14 * SEC_US), 0);

    r.starts_us = at("2026-11-15T08:00:00.5Z");
    r.ends_us = at("2026-11-15T08:00:14.5Z");
    EQ_STR(next(&r, z, "2020-01-01T00:00:00Z"), "2026-11-15T08:00:00.500000Z");
    EQ_STR(next(&r, z, "2026-11-15T08:00:00.5Z"), "2026-11-15T08:00:07.500000Z");
    EQ_STR(next(&r, z, "2026-11-15T08:00:07.5Z"), "none"); /* the end is no tick */
    EQ_STR(prev(&r, z, "2026-11-15T08:00:00.499999Z"), "none");
    EQ_STR(prev(&r, z, "2030-01-01T00:00:00Z"), "2026-11-15T08:00:07.500000Z");
    EQ_INT(schedule_count(&r, z, 0, at("2030-01-01T00:00:00Z")), 2);
    zone_free(z);
}

TEST(an_interval_ends_with_the_years)
{
    struct zone *z = zone_of("UTC");
    struct schedule_rule r = { .kind = SCHEDULE_EVERY, .every_us = DURATION_MAX_US };
    struct schedule_tick t;
    EQ_STR(next(&r, z, "9999-12-31T23:59:59Z"), "none");
    FALSE(schedule_next(&r, z, INT64_MAX, &t));
    TRUE(schedule_next(&r, z, INT64_MIN, &t));
    GE_INT(t.at_us, TIME_FIRST_US);
    FALSE(schedule_prev(&r, z, INT64_MIN, &t));
    TRUE(schedule_prev(&r, z, INT64_MAX, &t));
    LE_INT(t.at_us, TIME_LAST_US);
    EQ_INT(schedule_count(&r, z, INT64_MIN, INT64_MAX), 100);
    zone_free(z);
}

TEST(a_list_of_times)
{
    struct zone *z = zone_of("UTC");
    int64_t times[] = { at("2026-11-15T08:00:00Z"), at("2026-01-01T00:00:00.25Z"),
                        at("2026-11-15T08:00:00Z"), at("2027-01-01T00:00:00Z") };
    size_t n = schedule_sort(times, 4);
    EQ_INT(n, 3);
    struct schedule_rule r = { .kind = SCHEDULE_AT, .at_us = times, .n_at = n };
    EQ_STR(next(&r, z, "2020-01-01T00:00:00Z"), "2026-01-01T00:00:00.250000Z");
    EQ_STR(next(&r, z, "2026-01-01T00:00:00.25Z"), "2026-11-15T08:00:00Z");
    EQ_STR(next(&r, z, "2027-01-01T00:00:00Z"), "none");
    EQ_STR(prev(&r, z, "2026-12-31T00:00:00Z"), "2026-11-15T08:00:00Z");
    EQ_STR(prev(&r, z, "2026-01-01T00:00:00Z"), "none");
    EQ_INT(schedule_count(&r, z, 0, at("2026-11-15T08:00:00Z")), 2);
    r.starts_us = at("2026-02-01T00:00:00Z");
    r.ends_us = at("2027-01-01T00:00:00Z");
    EQ_INT(schedule_count(&r, z, 0, INT64_MAX), 1);
    EQ_STR(next(&r, z, "2026-11-15T08:00:00Z"), "none");
    EQ_INT(schedule_sort(times, 0), 0);
    zone_free(z);
}

TEST(a_cron_rule_has_a_start_and_an_end)
{
    struct zone *z = zone_of("Europe/Berlin");
    struct schedule_rule r = cron_rule("30 2 * * *");
    struct schedule_tick t;
    r.starts_us = at("2026-03-29T01:00:00Z");
    r.ends_us = at("2026-03-31T00:30:00Z");
    EQ_STR(next(&r, z, "2020-01-01T00:00:00Z"), "2026-03-29T01:00:00Z");
    EQ_STR(next(&r, z, "2026-03-29T01:00:00.5Z"), "2026-03-30T00:30:00Z");
    EQ_STR(next(&r, z, "2026-03-30T00:30:00Z"), "none");
    EQ_STR(prev(&r, z, "2040-01-01T00:00:00Z"), "2026-03-30T00:30:00Z");
    EQ_STR(prev(&r, z, "2026-03-29T00:59:59Z"), "none");
    EQ_INT(schedule_count(&r, z, 0, INT64_MAX), 2);
    EQ_INT(schedule_fit(&r, z, at("2026-03-29T01:00:00Z")), ZONE_GAP);
    EQ_INT(schedule_fit(&r, z, at("2026-03-30T00:30:00Z")), ZONE_ONCE);
    TRUE(schedule_next(&r, z, 0, &t));
    EQ_INT(t.local_us, at("2026-03-29T03:00:00Z"));
    zone_free(z);
}

static void local_text_is(const char *zone, const char *utc, const char *want)
{
    struct zone *z = zone_of(zone);
    struct schedule_tick t = tick_of(z, utc);
    char text[LOCAL_TEXT_LEN + 1];
    schedule_local_text(&t, text);
    EQ_STR(text, want);
    zone_free(z);
}

TEST(texts)
{
    char text[TIME_TEXT_LEN + 1];
    schedule_time_text(at("2026-11-15T02:00:00Z"), text);
    EQ_STR(text, "2026-11-15T02:00:00Z");
    schedule_time_text(at("2026-11-15T02:00:00.000001Z"), text);
    EQ_STR(text, "2026-11-15T02:00:00.000001Z");
    local_text_is("UTC", "2026-11-15T02:00:00Z", "2026-11-15T02:00:00+00:00");
    local_text_is("Europe/Berlin", "2026-11-15T02:00:00Z", "2026-11-15T03:00:00+01:00");
    local_text_is("America/St_Johns", "2026-11-15T02:00:00Z", "2026-11-14T22:30:00-03:30");
    local_text_is("Pacific/Kiritimati", "2026-11-15T02:00:00.25Z",
                  "2026-11-15T16:00:00.250000+14:00");
    local_text_is("Africa/Monrovia", "1971-01-01T00:00:00.5Z",
                  "1970-12-31T23:15:30.500000-00:44:30");
}

/* ---- Checking -------------------------------------------------------------------------------- */

static void refused(struct schedule_rule r, const char *why)
{
    struct pawl_err err = { 0 };
    struct zone *z = zone_of("UTC");
    EQ_STATUS(schedule_rule_check(&r, z, at("2026-11-15T08:00:00Z"), &err), PAWL_INVALID, &err);
    HAS_STR(err.text, why);
    zone_free(z);
}

static void accepted(struct schedule_rule r)
{
    struct pawl_err err = { 0 };
    struct zone *z = zone_of("UTC");
    OK(schedule_rule_check(&r, z, at("2026-11-15T08:00:00Z"), &err), &err);
    zone_free(z);
}

TEST(rules_are_checked)
{
    static int64_t many[SCHEDULE_TIMES_MAX + 1];
    struct schedule_rule every = { .kind = SCHEDULE_EVERY, .every_us = SCHEDULE_EVERY_MIN_US };
    struct schedule_rule list = { .kind = SCHEDULE_AT, .at_us = many, .n_at = SCHEDULE_TIMES_MAX };
    struct schedule_rule cron = cron_rule("0 3 * * *");
    for (int i = 0; i <= SCHEDULE_TIMES_MAX; i++)
        many[i] = at("2026-11-15T07:00:00Z") + i * MINUTE_US;
    accepted(every);
    accepted(list);
    accepted(cron);
    every.every_us--;
    refused(every, "field \"every\": is not in 1..");
    every.every_us = DURATION_MAX_US;
    accepted(every);
    every.every_us++;
    refused(every, "field \"every\": is not in 1..");
    list.n_at++;
    refused(list, "field \"at\": has 1001 times, not in 1..1000");
    list.n_at = 0;
    refused(list, "field \"at\": has 0 times");
    list.n_at = 61; /* 08:00:00 itself is not in the future */
    refused(list, "field \"at\": has no tick in the future");
    list.n_at = 62;
    accepted(list);
    many[61] = TIME_LAST_US + 1;
    refused(list, "field \"at\": a time is not in the years");
    cron.ends_us = at("2026-11-15T08:00:00Z");
    refused(cron, "field \"ends_at\": is not in the future");
    cron.ends_us = at("2026-11-16T03:00:00Z");
    refused(cron, "field \"cron\": has no tick in the future, from starts_at to ends_at");
    cron.ends_us++;
    accepted(cron);
    cron.starts_us = cron.ends_us;
    refused(cron, "field \"ends_at\": is not after starts_at");
    cron.starts_us = TIME_FIRST_US - 1;
    refused(cron, "field \"starts_at\": is not in the years");
    cron.starts_us = 0;
    cron.ends_us = TIME_LAST_US + 1;
    refused(cron, "field \"ends_at\": is not in the years");
}

/* ---- Other data of the zone ------------------------------------------------------------------ */

TEST(a_tick_of_other_data_is_followed_once)
{
    struct zone *ours = zone_of("Europe/Berlin"), *theirs = zone_of("Europe/Kyiv");
    struct schedule_rule r = cron_rule("0 3 * * *"), every = { .kind = SCHEDULE_EVERY };
    /* Their data showed 03:00 where ours shows 02:00. */
    struct schedule_tick last = tick_of(theirs, "2026-06-01T00:00:00Z"), t;
    EQ_INT(last.local_us, at("2026-06-01T03:00:00Z"));
    TRUE(schedule_follow(&r, ours, &last, last.at_us, &t));
    EQ_STR(shown(t.at_us), "2026-06-02T01:00:00Z");
    TRUE(schedule_follow(&r, theirs, &last, last.at_us, &t));
    EQ_STR(shown(t.at_us), "2026-06-02T00:00:00Z");
    /* The other way round: ours showed 03:00, for them it is 04:00. */
    last = tick_of(ours, "2026-06-01T01:00:00Z");
    TRUE(schedule_follow(&r, theirs, &last, last.at_us, &t));
    EQ_STR(shown(t.at_us), "2026-06-02T00:00:00Z");
    /* Never before `after`. */
    TRUE(schedule_follow(&r, theirs, &last, at("2026-06-10T12:00:00Z"), &t));
    EQ_STR(shown(t.at_us), "2026-06-11T00:00:00Z");
    /* Intervals have no local time. */
    every.every_us = HOUR_US;
    TRUE(schedule_follow(&every, theirs, &last, last.at_us, &t));
    EQ_STR(shown(t.at_us), "2026-06-01T02:00:00Z");
    /* The same data: the repeated hour ticks again by elapsed time. */
    r = cron_rule("0 * * * *");
    last = tick_of(ours, "2026-10-25T00:00:00Z");
    TRUE(schedule_follow(&r, ours, &last, last.at_us, &t));
    EQ_STR(shown(t.at_us), "2026-10-25T01:00:00Z");
    zone_free(ours);
    zone_free(theirs);
}

/* Two nodes whose data differ by an hour take turns: each day has one tick. */
TEST(nodes_with_different_data_make_one_tick_a_day)
{
    struct zone *z[] = { zone_of("Europe/Berlin"), zone_of("Europe/Kyiv") };
    struct schedule_rule r = cron_rule("0 3 * * *");
    struct schedule_tick t = tick_of(z[0], "2026-05-01T01:00:00Z"), next_tick;
    int64_t day = t.local_us / (24 * HOUR_US);
    for (int i = 0; i < 1000; i++) {
        TRUE(schedule_follow(&r, z[world_dice(&world_real) % 2], &t, t.at_us, &next_tick));
        EQ_INT(next_tick.local_us / (24 * HOUR_US), day + i + 1);
        t = next_tick;
    }
    zone_free(z[0]);
    zone_free(z[1]);
}

/* ---- Catching up ----------------------------------------------------------------------------- */

static struct schedule_due decide(const char *text, const char *due, const char *now, bool paused,
                                  enum catch_up policy, int64_t for_us)
{
    struct zone *z = zone_of("UTC");
    struct schedule_rule r = cron_rule(text);
    struct schedule_tick t = tick_of(z, due);
    struct schedule_due out;
    schedule_decide(&r, z, &t, at(now), paused, policy, for_us, &out);
    for (size_t i = 1; i < out.n_submit; i++)
        LT_INT(out.submit[i - 1].at_us, out.submit[i].at_us);
    zone_free(z);
    return out;
}

/* 90 minutes of downtime under a minute schedule: the ticks of 10:01 to 11:30 were missed. */
TEST(ninety_minutes_down)
{
    struct schedule_due d = decide("* * * * *", "2026-11-15T10:01:00Z", "2026-11-15T11:30:30Z",
                                   false, CATCH_UP_LAST, 3600 * SEC_US);
    EQ_INT(d.n_submit, 1);
    EQ_STR(shown(d.submit[0].at_us), "2026-11-15T11:30:00Z");
    EQ_INT(d.missed, 89);
    EQ_STR(shown(d.missed_first_us), "2026-11-15T10:01:00Z");
    EQ_STR(shown(d.missed_last_us), "2026-11-15T11:29:00Z");
    TRUE(d.has_next);
    EQ_STR(shown(d.next.at_us), "2026-11-15T11:31:00Z");

    d = decide("* * * * *", "2026-11-15T10:01:00Z", "2026-11-15T11:30:30Z", false, CATCH_UP_NONE,
               3600 * SEC_US);
    EQ_INT(d.n_submit, 0);
    EQ_INT(d.missed, 90);
    EQ_STR(shown(d.missed_last_us), "2026-11-15T11:30:00Z");
    EQ_STR(shown(d.next.at_us), "2026-11-15T11:31:00Z");

    d = decide("* * * * *", "2026-11-15T10:01:00Z", "2026-11-15T11:30:30Z", false, CATCH_UP_ALL, 0);
    EQ_INT(d.n_submit, 90);
    EQ_INT(d.missed, 0);
    EQ_STR(shown(d.submit[0].at_us), "2026-11-15T10:01:00Z");
    EQ_STR(shown(d.submit[89].at_us), "2026-11-15T11:30:00Z");
    EQ_STR(shown(d.next.at_us), "2026-11-15T11:31:00Z");
}

TEST(a_tick_at_this_very_moment_is_not_missed)
{
    struct schedule_due d = decide("* * * * *", "2026-11-15T10:01:00Z", "2026-11-15T11:30:00Z",
                                   false, CATCH_UP_NONE, 0);
    EQ_INT(d.n_submit, 1);
    EQ_STR(shown(d.submit[0].at_us), "2026-11-15T11:30:00Z");
    EQ_INT(d.missed, 89);
    d = decide("* * * * *", "2026-11-15T10:01:00Z", "2026-11-15T11:30:00.000001Z", false,
               CATCH_UP_NONE, 0);
    EQ_INT(d.n_submit, 0);
    EQ_INT(d.missed, 90);
}

TEST(all_is_the_newest_hundred)
{
    struct schedule_due d =
        decide("* * * * *", "2026-11-15T00:00:00Z", "2026-11-16T12:00:00Z", false, CATCH_UP_ALL, 0);
    EQ_INT(d.n_submit, CATCH_UP_MAX);
    EQ_INT(d.missed, 36 * 60 + 1 - CATCH_UP_MAX);
    EQ_STR(shown(d.submit[0].at_us), "2026-11-16T10:21:00Z");
    EQ_STR(shown(d.submit[99].at_us), "2026-11-16T12:00:00Z");
    EQ_STR(shown(d.missed_first_us), "2026-11-15T00:00:00Z");
    EQ_STR(shown(d.missed_last_us), "2026-11-16T10:20:00Z");
    d = decide("* * * * *", "2026-11-15T00:01:00Z", "2026-11-15T01:40:59Z", false, CATCH_UP_ALL, 0);
    EQ_INT(d.n_submit, 100);
    EQ_INT(d.missed, 0);
    d = decide("* * * * *", "2026-11-15T00:01:00Z", "2026-11-15T01:41:00Z", false, CATCH_UP_ALL, 0);
    EQ_INT(d.n_submit, 100);
    EQ_INT(d.missed, 1);
    EQ_STR(shown(d.missed_first_us), "2026-11-15T00:01:00Z");
    EQ_STR(shown(d.missed_last_us), "2026-11-15T00:01:00Z");
}

TEST(last_is_for_a_time)
{
    struct schedule_due d = decide("0 3 * * *", "2026-11-14T03:00:00Z", "2026-11-15T04:00:00Z",
                                   false, CATCH_UP_LAST, HOUR_US);
    EQ_INT(d.n_submit, 1);
    EQ_INT(d.missed, 1);
    EQ_STR(shown(d.missed_last_us), "2026-11-14T03:00:00Z");
    d = decide("0 3 * * *", "2026-11-14T03:00:00Z", "2026-11-15T04:00:00.000001Z", false,
               CATCH_UP_LAST, HOUR_US);
    EQ_INT(d.n_submit, 0);
    EQ_INT(d.missed, 2);
    EQ_STR(shown(d.missed_last_us), "2026-11-15T03:00:00Z");
    d = decide("0 3 * * *", "2026-11-14T03:00:00Z", "2027-11-15T02:00:00Z", false, CATCH_UP_ALL, 0);
    EQ_INT(d.n_submit, 100);
    EQ_INT(d.missed, 266);
}

/* A little late is on time, whatever the policy: alone up to 60 s, together up to 3 s. */
TEST(on_time)
{
    static const enum catch_up policies[] = { CATCH_UP_LAST, CATCH_UP_NONE, CATCH_UP_ALL };
    for (int i = 0; i < 3; i++) {
        bool all = policies[i] == CATCH_UP_ALL;
        struct schedule_due d = decide("0 * * * *", "2026-11-15T10:00:00Z", "2026-11-15T10:01:00Z",
                                       false, policies[i], 0);
        EQ_INT(d.n_submit, 1);
        EQ_INT(d.missed, 0);
        EQ_STR(shown(d.next.at_us), "2026-11-15T11:00:00Z");
        d = decide("0 * * * *", "2026-11-15T10:00:00Z", "2026-11-15T10:01:00.000001Z", false,
                   policies[i], 0);
        EQ_INT(d.n_submit, all);
        EQ_INT(d.missed, !all);
        d = decide("* * * * * *", "2026-11-15T10:00:00Z", "2026-11-15T10:00:03Z", false,
                   policies[i], 0);
        EQ_INT(d.n_submit, 4);
        EQ_INT(d.missed, 0);
        d = decide("* * * * * *", "2026-11-15T10:00:00Z", "2026-11-15T10:00:03.000001Z", false,
                   policies[i], 0);
        EQ_INT(d.n_submit, all ? 4 : 0);
        EQ_INT(d.missed, all ? 0 : 4);
    }
}

TEST(a_pause_is_downtime)
{
    struct schedule_due d =
        decide("0 * * * *", "2026-11-15T10:00:00Z", "2026-11-15T10:00:01Z", true, CATCH_UP_NONE, 0);
    EQ_INT(d.n_submit, 0);
    EQ_INT(d.missed, 1);
    d = decide("*/10 * * * *", "2026-11-15T00:00:00Z", "2026-11-15T10:05:00Z", true, CATCH_UP_LAST,
               HOUR_US);
    EQ_INT(d.n_submit, 1);
    EQ_STR(shown(d.submit[0].at_us), "2026-11-15T10:00:00Z");
    EQ_INT(d.missed, 60);
    d = decide("*/10 * * * *", "2026-11-15T00:00:00Z", "2026-11-15T10:05:00Z", true, CATCH_UP_ALL,
               0);
    EQ_INT(d.n_submit, 61);
}

TEST(nothing_is_due_yet)
{
    struct schedule_due d = decide("0 * * * *", "2026-11-15T10:00:00Z",
                                   "2026-11-15T09:59:59.999999Z", false, CATCH_UP_ALL, 0);
    EQ_INT(d.n_submit, 0);
    EQ_INT(d.missed, 0);
    TRUE(d.has_next);
    EQ_STR(shown(d.next.at_us), "2026-11-15T10:00:00Z");
}

TEST(a_schedule_ends)
{
    struct zone *z = zone_of("UTC");
    struct schedule_rule r = cron_rule("0 * * * *");
    struct schedule_tick due = tick_of(z, "2026-11-15T10:00:00Z");
    struct schedule_due d;
    r.ends_us = at("2026-11-15T12:00:00Z");
    schedule_decide(&r, z, &due, at("2026-11-15T20:00:00Z"), false, CATCH_UP_ALL, 0, &d);
    EQ_INT(d.n_submit, 2);
    EQ_STR(shown(d.submit[1].at_us), "2026-11-15T11:00:00Z");
    FALSE(d.has_next);
    EQ_INT(d.missed, 0);
    zone_free(z);
}

/* The stored tick is one by older data: it is submitted as it is, and its local time is not taken
 * again by ours. */
TEST(a_due_tick_of_other_data)
{
    struct zone *ours = zone_of("Europe/Berlin"), *theirs = zone_of("Europe/Kyiv");
    struct schedule_rule r = cron_rule("0 3 * * *");
    struct schedule_tick due = tick_of(theirs, "2026-06-01T00:00:00Z");
    struct schedule_due d;
    schedule_decide(&r, ours, &due, at("2026-06-01T00:00:01Z"), false, CATCH_UP_NONE, 0, &d);
    EQ_INT(d.n_submit, 1);
    EQ_INT(d.submit[0].at_us, due.at_us);
    EQ_STR(shown(d.next.at_us), "2026-06-02T01:00:00Z");
    schedule_decide(&r, ours, &due, at("2026-06-03T12:00:00Z"), false, CATCH_UP_ALL, 0, &d);
    EQ_INT(d.n_submit, 3);
    EQ_INT(d.submit[0].at_us, due.at_us);
    EQ_STR(shown(d.submit[1].at_us), "2026-06-02T01:00:00Z");
    EQ_STR(shown(d.submit[2].at_us), "2026-06-03T01:00:00Z");
    EQ_INT(d.missed, 0);
    zone_free(ours);
    zone_free(theirs);
}

/* A year of minutes is decided without walking them; the deadline of the case is the check. */
TEST(a_year_down)
{
    for (int i = 0; i < 1000; i++) {
        struct schedule_due d = decide("* * * * * *", "2025-11-15T10:00:00Z",
                                       "2026-11-15T10:00:00.5Z", false, i % 3, HOUR_US);
        EQ_INT(d.missed + (int64_t)d.n_submit, 365 * 86400 + 1);
    }
}

/* Random cases compared with a list of every tick that is due. */
TEST(decided_as_by_a_list)
{
    static const char *const texts[] = { "* * * * *",    "*/20 * * * * *", "0 * * * *",
                                         "30 2 * * *",   "0,30 1-3 * * *", "*/7 * * * *",
                                         "15 2 * * SUN", "0 */2 * * *" };
    static const char *const zones[] = { "UTC", "Europe/Berlin", "Australia/Lord_Howe" };
    for (int i = 0; i < 3000; i++) {
        struct zone *z = zone_of(zones[i % 3]);
        struct schedule_rule r = cron_rule(texts[world_dice(&world_real) % COUNT_OF(texts)]);
        int64_t from = at("2026-01-01T00:00:00Z") +
                       (int64_t)(world_dice(&world_real) % (uint64_t)(300 * 24 * HOUR_US));
        int64_t span =
            (int64_t)(world_dice(&world_real) % (uint64_t)(i % 2 ? HOUR_US : 3 * MINUTE_US));
        bool paused = i % 5 == 0;
        enum catch_up policy = (enum catch_up)(i % 7 % 3);
        struct schedule_tick due, list[2000];
        struct schedule_due d;
        TRUE(schedule_next(&r, z, from, &due));
        int64_t now = due.at_us + span, n = 0, want;
        for (list[n++] = due; n < 2000; n++)
            if (!schedule_next(&r, z, list[n - 1].at_us, &list[n]) || list[n].at_us > now)
                break;
        LT_INT(n, 2000);
        schedule_decide(&r, z, &due, now, paused, policy, 30 * MINUTE_US, &d);
        bool on_time = !paused && (n == 1 ? span <= 60 * SEC_US : span <= 3 * SEC_US);
        int64_t late = now - list[n - 1].at_us;
        if (on_time || policy == CATCH_UP_ALL)
            want = MIN(n, 100);
        else
            want = late == 0 || (policy == CATCH_UP_LAST && late <= 30 * MINUTE_US);
        EQ_INT((int64_t)d.n_submit, want);
        EQ_INT(d.missed, n - want);
        for (int64_t k = 0; k < want; k++)
            EQ_INT(d.submit[k].at_us, list[n - want + k].at_us);
        if (d.missed) {
            EQ_INT(d.missed_first_us, due.at_us);
            EQ_INT(d.missed_last_us, list[n - want - 1].at_us);
        }
        TRUE(d.has_next);
        EQ_INT(d.next.at_us, list[n].at_us);
        zone_free(z);
    }
}
