/*
 * cron.c - cron expressions: ticks compared with a walk minute by minute over the C library's local
 * times, ticks at gaps and folds that are written out, and every mistake with its column.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/macros.h"
#include "base/world.h"
#include "model/cron.h"
#include "check.h"
#include "zone_ref.h"

static struct cron parsed(const char *text)
{
    struct pawl_err err = { 0 };
    struct cron c;
    OK(cron_parse(bytes_of(text), &c, &err), &err);
    return c;
}

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
    return us / SEC_US;
}

static const char *shown(int64_t at_s)
{
    static char text[2][TIME_TEXT_LEN + 1];
    static int which;
    which = !which;
    time_text(at_s * SEC_US, text[which]);
    memcpy(text[which] + 19, "Z", 2);
    return text[which];
}

/* ---- The reference: a walk minute by minute -------------------------------------------------- */

struct date {
    int year, month, day, weekday, len; /* len: days of the month */
};

static const struct expression {
    const char *text;
    bool (*day)(const struct date *d);
    bool (*time)(int hour, int minute);
    bool elapsed;
} * expression;

static int month_len(int year, int month)
{
    if (month == 2)
        return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

static void day_forward(struct date *d)
{
    d->weekday = (d->weekday + 1) % 7;
    if (++d->day > d->len) {
        d->day = 1;
        if (++d->month > 12) {
            d->month = 1;
            d->year++;
        }
        d->len = month_len(d->year, d->month);
    }
}

static void day_back(struct date *d)
{
    d->weekday = (d->weekday + 6) % 7;
    if (--d->day < 1) {
        if (--d->month < 1) {
            d->month = 12;
            d->year--;
        }
        d->day = d->len = month_len(d->year, d->month);
    }
}

/* The day that was asked about last, and whether it matches. Days are stepped one at a time. */
static const struct expression *asked;
static int64_t asked_day;
static bool asked_matches, asked_times[1440];

static bool day_matches(const struct expression *e, int64_t local_s)
{
    static struct date date = { 1970, 1, 1, 4, 31 };
    int64_t want = local_s / 86400 - (local_s % 86400 < 0);
    if (asked == e && asked_day == want)
        return asked_matches;
    if (asked != e)
        for (int m = 0; m < 1440; m++)
            asked_times[m] = e->time(m / 60, m % 60);
    asked = e;
    for (; asked_day < want; asked_day++)
        day_forward(&date);
    for (; asked_day > want; asked_day--)
        day_back(&date);
    asked_matches = e->day(&date);
    return asked_matches;
}

static bool matches(const struct expression *e, int64_t local_s)
{
    return day_matches(e, local_s) && asked_times[(local_s - asked_day * 86400) / 60];
}

struct walk {
    const struct zone *z;
    const struct cron *c;
    int64_t next, before, n;
    bool more;
};

/* The walk has a tick here: ours must be the next one. */
static void tick(struct walk *w, int64_t at_s)
{
    int64_t prev;
    if (!w->more || w->next != at_s)
        FAIL("%s in %s: the next tick after %s is %s, want %s", expression->text, zone_name(w->z),
             shown(w->before), w->more ? shown(w->next) : "none", shown(at_s));
    if (w->n++ % 50 == 0) {
        TRUE(cron_prev(w->c, w->z, at_s, &prev));
        EQ_INT(prev, at_s);
        if (w->n > 1) {
            TRUE(cron_prev(w->c, w->z, at_s - 1, &prev));
            EQ_INT(prev, w->before);
        }
    }
    w->before = at_s;
    w->more = cron_next(w->c, w->z, at_s, &w->next);
}

/* Walk from `from_s` to `to_s` over spans that cover them. */
static void walk(const struct zone *z, const struct expression *e, const struct ref_span *span,
                 int64_t from_s, int64_t to_s)
{
    struct cron c = parsed(e->text);
    struct walk w = { .z = z, .c = &c, .before = from_s };
    int64_t most = from_s + ref_offset(from_s);
    EQ_INT(c.elapsed, e->elapsed);
    expression = e;
    w.more = cron_next(&c, z, from_s, &w.next);
    while (span->to_s <= from_s + 1)
        span++;
    for (; span->from_s <= to_s; span++) {
        int64_t s = MAX(span->from_s, from_s + 1), local = s + span->offset_s;
        if (s == span->from_s) { /* the minutes that the clock passes over */
            bool lost = false;
            for (int64_t m = most - (most % 60 + 60) % 60 + 60; m < local; m += 60)
                lost |= !e->elapsed && matches(e, m);
            if (lost && (local % 60 != 0 || !matches(e, local)))
                tick(&w, s);
            most = MAX(most, local - 1);
        }
        s += (60 - (local % 60 + 60) % 60) % 60;
        for (; s < span->to_s && s <= to_s; s += 60) {
            local = s + span->offset_s;
            if (!day_matches(e, local)) {
                s += (asked_day + 1) * 86400 - local - 60; /* on to midnight */
                continue;
            }
            if ((local > most || e->elapsed) && matches(e, local))
                tick(&w, s);
            most = MAX(most, local);
        }
        most = MAX(most, MIN(span->to_s - 1, to_s) + span->offset_s);
        if (span->to_s > to_s)
            break;
    }
    if (w.more && w.next <= to_s)
        FAIL("%s in %s: a tick at %s, want none up to %s", e->text, zone_name(z), shown(w.next),
             shown(to_s));
    EQ_INT(cron_count(&c, z, from_s, to_s), w.n);
}

static bool any_day(const struct date *d)
{
    return d->day > 0;
}
static bool leap_day(const struct date *d)
{
    return d->month == 2 && d->day == 29;
}
static bool last_day(const struct date *d)
{
    return d->day == d->len;
}
static bool work_day(const struct date *d)
{
    return d->weekday >= 1 && d->weekday <= 5;
}
static bool second_friday_or_31st(const struct date *d)
{
    return d->day == 31 || (d->weekday == 5 && d->day > 7 && d->day <= 14);
}
static bool friday_or_13th(const struct date *d)
{
    return d->day == 13 || d->weekday == 5;
}
static bool last_friday(const struct date *d)
{
    return d->weekday == 5 && d->day + 7 > d->len;
}
static bool sunday_of_change(const struct date *d)
{
    return d->weekday == 0 && (d->month == 3 || d->month == 10 || d->month == 11);
}
static bool every_seventh(const struct date *d)
{
    return d->day % 7 == 1;
}
static bool at_2_30(int hour, int minute)
{
    return hour == 2 && minute == 30;
}
static bool at_midnight(int hour, int minute)
{
    return hour == 0 && minute == 0;
}
static bool quarters(int hour, int minute)
{
    return hour >= 1 && hour <= 3 && (minute == 15 || minute == 45);
}
static bool tens(int hour, int minute)
{
    return hour == 0 && minute % 10 == 0;
}
static bool sevens(int hour, int minute)
{
    return (hour == 1 || hour == 2) && minute % 7 == 0;
}
static bool hourly(int hour, int minute)
{
    return hour >= 0 && minute == 0;
}
static bool half_hours(int hour, int minute)
{
    return hour >= 0 && minute % 30 == 0;
}
static bool six_hours(int hour, int minute)
{
    return hour % 6 == 0 && minute == 0;
}
static bool from_one(int hour, int minute)
{
    return (hour == 1 || hour == 3 || hour == 5) && minute == 59;
}
static bool noon(int hour, int minute)
{
    return hour == 12 && minute == 0;
}

static const struct expression expressions[] = {
    { "30 2 * * *", any_day, at_2_30, false },
    { "0 0 * * *", any_day, at_midnight, false },
    { "15,45 1-3 * * *", any_day, quarters, false },
    { "*/10 0 * * *", any_day, tens, false },
    { "*/7 1,2 * * *", any_day, sevens, false },
    { "30 2 * * mon-FRI", work_day, at_2_30, false },
    { "30 2 * 3,10,Nov 7", sunday_of_change, at_2_30, false },
    { "0 12 29 2 *", leap_day, noon, false },
    { "0 0 31 * FRI#2", second_friday_or_31st, at_midnight, false },
    { "30 2 13 * 5", friday_or_13th, at_2_30, false },
    { "0 0 L * *", last_day, at_midnight, false },
    { "0 0 * * FRIL", last_friday, at_midnight, false },
    { "30 2 */7 * *", every_seventh, at_2_30, false },
    { "0 * * * *", any_day, hourly, true },
    { "*/30 * * * *", any_day, half_hours, true },
    { "0 */6 * * *", any_day, six_hours, true },
    { "59 1-6/2 * * *", any_day, from_one, true },
    { "0 */6 */7 * *", every_seventh, six_hours, true },
};

static const char *const sample[] = {
    "Australia/Lord_Howe", "Pacific/Apia",      "America/Santiago", "Europe/Berlin",
    "America/New_York",    "Africa/Casablanca", "Europe/Dublin",    "Asia/Gaza",
    "Africa/Monrovia",     "America/Nuuk",      "Antarctica/Troll", "Australia/Sydney",
};

static void walk_zone(const char *name, bool all)
{
    static struct ref_span ref[2000];
    struct zone *z = zone_of(name);
    printf("%s\n", name);
    ref_use(name);
    size_t n = ref_spans(REF_FROM_S, REF_TO_S, 6 * 3600, ref, 2000);
    for (size_t e = 0; e < COUNT_OF(expressions); e++) {
        if (all)
            walk(z, &expressions[e], ref, REF_FROM_S, REF_TO_S - 1);
        /* A third of the changes each; six expressions share them. */
        for (size_t i = 1 + e % 3; i < n && !all; i += 3)
            walk(z, &expressions[e], ref, MAX(ref[i].from_s - 2 * 86400, REF_FROM_S),
                 MIN(ref[i].from_s + 2 * 86400, REF_TO_S - 1));
    }
    zone_free(z);
}

/* Around the changes of twelve zones; the long form: all zones of the system, every minute of 68
 * years. In four parts that run at the same time. */
static void walk_part(int part)
{
    bool all = check_long();
    const char *const *names = all ? ref_zones(1) : sample;
    for (int i = 0; all ? names[i] != NULL : i < (int)COUNT_OF(sample); i++)
        if (i % 4 == part)
            walk_zone(names[i], all);
}

TEST(the_same_ticks_as_a_walk_1, .deadline_s = 3000)
{
    walk_part(0);
}
TEST(the_same_ticks_as_a_walk_2, .deadline_s = 3000)
{
    walk_part(1);
}
TEST(the_same_ticks_as_a_walk_3, .deadline_s = 3000)
{
    walk_part(2);
}
TEST(the_same_ticks_as_a_walk_4, .deadline_s = 3000)
{
    walk_part(3);
}

/* All zones, the expressions that gaps and folds touch, around each change. */
TEST(every_zone_around_its_changes)
{
    static const int which[] = { 0, 2, 13 };
    static struct ref_span ref[2000];
    int zones = 0;
    for (const char *const *name = ref_zones(1); *name; name++, zones++) {
        struct zone *z = zone_of(*name);
        size_t n = 1;
        int64_t change = REF_FROM_S;
        ref_use(*name);
        ref[0] = (struct ref_span){ REF_FROM_S, REF_TO_S, ref_offset(REF_FROM_S) };
        while (zone_next_change(z, change, &change) && change < REF_TO_S && n < 2000) {
            ref[n - 1].to_s = change;
            ref[n++] = (struct ref_span){ change, REF_TO_S, ref_offset(change) };
        }
        for (size_t i = 1; i < n; i += zones % 5 + 1)
            for (size_t e = 0; e < COUNT_OF(which); e++)
                walk(z, &expressions[which[e]], ref, MAX(ref[i].from_s - 86400, REF_FROM_S),
                     MIN(ref[i].from_s + 86400, REF_TO_S - 1));
        zone_free(z);
    }
    GE_INT(zones, 250);
}

/* ---- Ticks that are written out -------------------------------------------------------------- */

static const struct known {
    const char *zone, *text, *after, *ticks[6];
} known[] = {
    /* Berlin: 02:00 to 03:00 does not exist on 29 March 2026, and exists twice on 25 October. */
    { "Europe/Berlin",
      "30 2 * * *",
      "2026-03-28T12:00:00Z",
      { "2026-03-29T01:00:00Z gap", "2026-03-30T00:30:00Z" } },
    { "Europe/Berlin",
      "0,30 2 * * *",
      "2026-03-28T12:00:00Z",
      { "2026-03-29T01:00:00Z gap", "2026-03-30T00:00:00Z", "2026-03-30T00:30:00Z" } },
    { "Europe/Berlin",
      "0 2,3 * * *",
      "2026-03-28T12:00:00Z",
      { "2026-03-29T01:00:00Z gap", "2026-03-30T00:00:00Z", "2026-03-30T01:00:00Z" } },
    { "Europe/Berlin",
      "0 3 * * *",
      "2026-03-28T12:00:00Z",
      { "2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z" } },
    { "Europe/Berlin",
      "30 2 * * *",
      "2026-10-24T12:00:00Z",
      { "2026-10-25T00:30:00Z fold", "2026-10-26T01:30:00Z" } },
    { "Europe/Berlin", "30 2 * * *", "2026-10-25T00:45:00Z", { "2026-10-26T01:30:00Z" } },
    { "Europe/Berlin", "30 2 * * *", "2026-10-25T01:10:00Z", { "2026-10-26T01:30:00Z" } },
    { "Europe/Berlin",
      "30 2-2/1 25 10 *",
      "2026-10-25T00:00:00Z", /* a step in the hour */
      { "2026-10-25T00:30:00Z fold", "2026-10-25T01:30:00Z fold", "2027-10-25T00:30:00Z" } },
    { "Europe/Berlin",
      "*/20 2 * * *",
      "2026-10-25T00:30:00Z",
      { "2026-10-25T00:40:00Z fold", "2026-10-26T01:00:00Z" } },
    { "Europe/Berlin",
      "0 * * * *",
      "2026-03-28T23:00:00Z",
      { "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z" } },
    { "Europe/Berlin",
      "0 * * * *",
      "2026-10-24T23:00:00Z",
      { "2026-10-25T00:00:00Z fold", "2026-10-25T01:00:00Z fold", "2026-10-25T02:00:00Z" } },
    { "Europe/Berlin",
      "0 */2 * * *",
      "2026-03-28T22:00:00Z",
      { "2026-03-28T23:00:00Z", "2026-03-29T02:00:00Z" } },
    { "Europe/Berlin",
      "0 */2 * * *",
      "2026-10-24T21:00:00Z",
      { "2026-10-24T22:00:00Z", "2026-10-25T00:00:00Z fold", "2026-10-25T01:00:00Z fold",
        "2026-10-25T03:00:00Z" } },
    { "Europe/Berlin",
      "0 30 2 * * *",
      "2026-03-28T12:00:00Z",
      { "2026-03-29T01:00:00Z gap", "2026-03-30T00:30:00Z" } },
    { "Europe/Berlin",
      "0 30 2 29 3 *",
      "2026-01-01T00:00:00Z",
      { "2026-03-29T01:00:00Z gap", "2027-03-29T00:30:00Z" } },
    { "America/New_York",
      "30 2 * * *",
      "2026-03-08T00:00:00Z",
      { "2026-03-08T07:00:00Z gap", "2026-03-09T06:30:00Z" } },
    { "America/New_York",
      "30 1 * * *",
      "2026-10-31T12:00:00Z",
      { "2026-11-01T05:30:00Z fold", "2026-11-02T06:30:00Z" } },
    { "America/New_York",
      "*/30 * * * *",
      "2026-11-01T04:30:00Z",
      { "2026-11-01T05:00:00Z fold", "2026-11-01T05:30:00Z fold", "2026-11-01T06:00:00Z fold",
        "2026-11-01T06:30:00Z fold", "2026-11-01T07:00:00Z" } },
    /* Lord Howe moves by half an hour, at 2 o'clock. */
    { "Australia/Lord_Howe",
      "15 2 * * *",
      "2026-10-03T00:00:00Z",
      { "2026-10-03T15:30:00Z gap", "2026-10-04T15:15:00Z" } },
    { "Australia/Lord_Howe",
      "*/30 * * * *",
      "2026-10-03T14:30:00Z",
      { "2026-10-03T15:00:00Z", "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z" } },
    { "Australia/Lord_Howe",
      "45 1 * * *",
      "2026-04-04T00:00:00Z",
      { "2026-04-04T14:45:00Z fold", "2026-04-05T15:15:00Z" } },
    { "Australia/Lord_Howe",
      "*/30 * * * *",
      "2026-04-04T14:00:00Z",
      { "2026-04-04T14:30:00Z fold", "2026-04-04T15:00:00Z fold", "2026-04-04T15:30:00Z",
        "2026-04-04T16:00:00Z" } },
    /* Apia had no 30 December 2011. */
    { "Pacific/Apia",
      "0 3 * * *",
      "2011-12-29T12:00:00Z",
      { "2011-12-29T13:00:00Z", "2011-12-30T10:00:00Z gap", "2011-12-30T13:00:00Z",
        "2011-12-31T13:00:00Z" } },
    { "Pacific/Apia",
      "0 3,4,5 30 12 *",
      "2011-12-01T00:00:00Z",
      { "2011-12-30T10:00:00Z gap", "2012-12-29T13:00:00Z" } },
    { "Pacific/Apia",
      "0 * * * *",
      "2011-12-30T08:00:00Z",
      { "2011-12-30T09:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T11:00:00Z" } },
    /* The southern half: Santiago moves at midnight. */
    { "America/Santiago",
      "30 0 * * *",
      "2026-09-05T12:00:00Z",
      { "2026-09-06T04:00:00Z gap", "2026-09-07T03:30:00Z" } },
    { "America/Santiago",
      "0 0 6 9 *",
      "2026-01-01T00:00:00Z",
      { "2026-09-06T04:00:00Z gap", "2027-09-06T03:00:00Z" } },
    { "America/Santiago",
      "30 23 * * *",
      "2026-04-04T12:00:00Z",
      { "2026-04-05T02:30:00Z fold", "2026-04-06T03:30:00Z" } },
    { "Australia/Sydney",
      "30 2 * * *",
      "2026-10-03T00:00:00Z",
      { "2026-10-03T16:00:00Z gap", "2026-10-04T15:30:00Z" } },
    /* Casablanca goes back for Ramadan, and forward after it. */
    { "Africa/Casablanca",
      "30 2 * * *",
      "2026-02-14T12:00:00Z",
      { "2026-02-15T01:30:00Z fold", "2026-02-16T02:30:00Z" } },
    { "Africa/Casablanca",
      "30 2 * * *",
      "2026-03-21T12:00:00Z",
      { "2026-03-22T02:00:00Z gap", "2026-03-23T01:30:00Z" } },
    /* Dublin's winter is negative daylight time. */
    { "Europe/Dublin",
      "30 1 * * *",
      "2026-03-28T12:00:00Z",
      { "2026-03-29T01:00:00Z gap", "2026-03-30T00:30:00Z" } },
    { "Europe/Dublin",
      "30 1 * * *",
      "2026-10-24T12:00:00Z",
      { "2026-10-25T00:30:00Z fold", "2026-10-26T01:30:00Z" } },
    { "Asia/Gaza",
      "30 2 * * *",
      "2026-03-27T12:00:00Z",
      { "2026-03-28T00:00:00Z gap", "2026-03-28T23:30:00Z" } },
    { "Asia/Gaza",
      "30 1 * * *",
      "2026-10-23T12:00:00Z",
      { "2026-10-23T22:30:00Z fold", "2026-10-24T23:30:00Z" } },
    /* Troll moves by two hours. */
    { "Antarctica/Troll",
      "30 1,2 * * *",
      "2026-03-28T12:00:00Z",
      { "2026-03-29T01:00:00Z gap", "2026-03-29T23:30:00Z" } },
    { "Antarctica/Troll",
      "30 1 * * *",
      "2026-10-24T12:00:00Z",
      { "2026-10-24T23:30:00Z fold", "2026-10-26T01:30:00Z" } },
    { "America/Nuuk",
      "30 23 * * *",
      "2026-03-28T12:00:00Z",
      { "2026-03-29T01:00:00Z gap", "2026-03-30T00:30:00Z" } },
    { "Africa/Monrovia",
      "20 0 * * *",
      "1972-01-06T12:00:00Z",
      { "1972-01-07T00:44:30Z gap", "1972-01-08T00:20:00Z" } },
    /* The calendar. */
    { "UTC",
      "0 0 29 2 *",
      "2095-01-01T00:00:00Z",
      { "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z" } },
    { "UTC",
      "0 0 31 * *",
      "2026-01-31T00:00:00Z",
      { "2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z", "2026-07-31T00:00:00Z",
        "2026-08-31T00:00:00Z" } },
    { "UTC",
      "0 0 L * *",
      "2028-01-31T00:00:00Z",
      { "2028-02-29T00:00:00Z", "2028-03-31T00:00:00Z", "2028-04-30T00:00:00Z" } },
    { "UTC",
      "0 0 15,L 2 *",
      "2026-01-31T00:00:00Z",
      { "2026-02-15T00:00:00Z", "2026-02-28T00:00:00Z", "2027-02-15T00:00:00Z" } },
    { "UTC",
      "0 9 * * MON#2",
      "2026-11-01T00:00:00Z",
      { "2026-11-09T09:00:00Z", "2026-12-14T09:00:00Z", "2027-01-11T09:00:00Z" } },
    { "UTC",
      "0 9 * * 1#1,5L",
      "2026-11-01T00:00:00Z",
      { "2026-11-02T09:00:00Z", "2026-11-27T09:00:00Z", "2026-12-07T09:00:00Z",
        "2026-12-25T09:00:00Z" } },
    { "UTC",
      "0 0 13 * FRI",
      "2026-11-07T00:00:00Z",
      { "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z",
        "2026-12-04T00:00:00Z", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z" } },
    { "UTC",
      "0 0 */2 * MON",
      "2026-11-01T00:00:00Z", /* a step restricts */
      { "2026-11-02T00:00:00Z", "2026-11-03T00:00:00Z", "2026-11-05T00:00:00Z" } },
    { "UTC",
      "0 0 1-31 2 MON",
      "2026-02-01T00:00:00Z",
      { "2026-02-02T00:00:00Z", "2026-02-03T00:00:00Z", "2026-02-04T00:00:00Z" } },
    { "UTC",
      "0 0 * 2 MON",
      "2026-02-01T00:00:00Z",
      { "2026-02-02T00:00:00Z", "2026-02-09T00:00:00Z", "2026-02-16T00:00:00Z" } },
    { "UTC",
      "0 0 31 2 SUN",
      "2026-01-01T00:00:00Z",
      { "2026-02-01T00:00:00Z", "2026-02-08T00:00:00Z" } },
    { "UTC",
      "0 0 * 2 MON#5",
      "2026-01-01T00:00:00Z",
      { "2044-02-29T00:00:00Z", "2072-02-29T00:00:00Z", "2112-02-29T00:00:00Z" } },
    { "UTC",
      "*/7 * * * *",
      "2026-11-01T00:49:00Z",
      { "2026-11-01T00:56:00Z", "2026-11-01T01:00:00Z", "2026-11-01T01:07:00Z" } },
    { "UTC",
      "*/25 59 23 31 12 *",
      "2026-11-01T00:00:00Z",
      { "2026-12-31T23:59:00Z", "2026-12-31T23:59:25Z", "2026-12-31T23:59:50Z",
        "2027-12-31T23:59:00Z" } },
    { "UTC",
      "@hourly",
      "2026-12-31T22:30:00Z",
      { "2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z" } },
    { "UTC", "@daily", "2026-12-31T22:30:00Z", { "2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z" } },
    { "UTC", "@midnight", "2026-12-31T22:30:00Z", { "2027-01-01T00:00:00Z" } },
    { "UTC",
      "@weekly",
      "2026-11-01T00:00:00Z",
      { "2026-11-08T00:00:00Z", "2026-11-15T00:00:00Z" } },
    { "UTC", "@Monthly", "2026-11-01T00:00:00Z", { "2026-12-01T00:00:00Z" } },
    { "UTC", "@yearly", "2026-11-01T00:00:00Z", { "2027-01-01T00:00:00Z" } },
    { "UTC", "@ANNUALLY", "2026-11-01T00:00:00Z", { "2027-01-01T00:00:00Z" } },
    { "UTC", "* * * * * *", "9999-12-31T23:59:58Z", { "9999-12-31T23:59:59Z", "none" } },
    { "UTC", "30 12 * * *", "9999-12-31T12:30:00Z", { "none" } },
};

static void check_known(const struct known *k)
{
    struct zone *z = zone_of(k->zone);
    struct cron c = parsed(k->text);
    int64_t next = at(k->after), prev;
    printf("%s in %s after %s\n", k->text, k->zone, k->after);
    for (int i = 0; i < 6 && k->ticks[i]; i++) {
        char got[64];
        int64_t after = next;
        bool more = cron_next(&c, z, after, &next);
        enum zone_fit fit = more ? cron_fit(&c, z, next) : ZONE_ONCE;
        snprintf(got, sizeof got, "%s%s", more ? shown(next) : "none",
                 fit == ZONE_GAP    ? " gap"
                 : fit == ZONE_FOLD ? " fold"
                                    : "");
        EQ_STR(got, k->ticks[i]);
        if (!more)
            break;
        EQ_INT(cron_count(&c, z, after, next), 1);
        EQ_INT(cron_count(&c, z, after, next - 1), 0);
        TRUE(cron_prev(&c, z, next, &prev));
        EQ_INT(prev, next);
        TRUE(cron_prev(&c, z, next - 1, &prev));
        if (i > 0)
            EQ_INT(prev, after);
        LE_INT(prev, after);
    }
    zone_free(z);
}

TEST(known_ticks)
{
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (known[i].ticks[0])
            check_known(&known[i]);
}

/* ---- Expressions ----------------------------------------------------------------------------- */

TEST(written_differently)
{
    static const char *const same[][2] = {
        { "0 0 * * *", "  0\t0 * * *  " },      { "0 0 * * *", "0 0 0 * * *" },
        { "0 0 * * 0", "0 0 * * 7" },           { "0 0 * * 0", "0 0 * * sun" },
        { "0 0 * * 5-7", "0 0 * * FRI-SUN" },   { "0 0 * * 5-7", "0 0 * * 0,5,6" },
        { "0 0 * * 0-6", "0 0 * * SUN-SAT" },   { "0 0 * * 0-6", "0 0 * * 1-7" },
        { "0 0 * * 1#2", "0 0 * * mOn#2" },     { "0 0 * * 7#2", "0 0 * * SUN#2" },
        { "0 0 * * 5L", "0 0 * * fril" },       { "0 0 l * *", "0 0 L * *" },
        { "0 0 1 1-12 *", "0 0 1 jan-DEC *" },  { "0,15,30,45 1 * * *", "*/15 1 * * *" },
        { "5,25,45 1 * * *", "5/20 1 * * *" },  { "1,6,11 1 * * *", "1-14/5 1 * * *" },
        { "1,2,3 1 * * *", "3,1-2,2 1 * * *" }, { "00 07 01 01 *", "0 7 1 1 *" },
        { "0 0 * * 2/2", "0 0 * * 2,4,6" },     { "0 0 */1 * 1", "0 0 1/1 * 1" },
    };
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        struct cron a = parsed(same[i][0]), b = parsed(same[i][1]);
        if (memcmp(&a, &b, offsetof(struct cron, elapsed)) != 0)
            FAIL("\"%s\" does not mean \"%s\"", same[i][0], same[i][1]);
    }
}

TEST(elapsed_time_is_a_star_or_a_step_in_the_hour)
{
    TRUE(parsed("0 * * * *").elapsed);
    TRUE(parsed("0 */2 * * *").elapsed);
    TRUE(parsed("0 1-23/2 * * *").elapsed);
    TRUE(parsed("0 5/10 * * *").elapsed);
    TRUE(parsed("0 3,*/6 * * *").elapsed);
    TRUE(parsed("@hourly").elapsed);
    FALSE(parsed("*/5 0-23 * * *").elapsed);
    FALSE(parsed("* 2 * * *").elapsed);
    FALSE(parsed("* * 2,3 * * *").elapsed);
    FALSE(parsed("@daily").elapsed);
}

TEST(notes)
{
    struct cron c = parsed("0 0 13 * FRI");
    HAS_STR(cron_note(&c), "either");
    c = parsed("0 0 */2 * FRI");
    HAS_STR(cron_note(&c), "either");
    c = parsed("0 0 L * FRI#1");
    HAS_STR(cron_note(&c), "either");
    c = parsed("0 0 * * FRI");
    EQ_STR(cron_note(&c), NULL);
    c = parsed("0 0 13 * *");
    EQ_STR(cron_note(&c), NULL);
    c = parsed("@weekly");
    EQ_STR(cron_note(&c), NULL);
}

static const struct {
    const char *text, *quoted;
    int column;
    const char *why;
} wrong[] = {
    { "60 * * * *", "60", 1, "0..59" },
    { "0 24 * * *", "24", 3, "0..23, the range of hour" },
    { "0 0 0 * *", "0", 5, "1..31" },
    { "0 0 32 * *", "32", 5, "1..31" },
    { "0 0 1 13 *", "13", 7, "1..12" },
    { "0 0 1 0 *", "0", 7, "1..12" },
    { "0 0 * * 8", "8", 9, "0..7" },
    { "60 0 0 * * *", "60", 1, "the range of second" },
    { "0 60 0 * * *", "60", 3, "the range of minute" },
    { "99999999999999999999 0 * * *", "99999999999999999999", 1, "0..59" },
    { "-1 * * * *", "-", 1, "not understood in minute" },
    { "+1 * * * *", "+", 1, "not understood in minute" },
    { "1.5 * * * *", ".", 2, "not understood in minute" },
    { "0 x * * *", "x", 3, "not understood in hour; expected 0..23" },
    { "0 0 * foo *", "foo", 7, "1..12 or JAN..DEC" },
    { "0 0 * january *", "uary", 10, "not understood in month" },
    { "0 0 * ja *", "ja", 7, "not understood in month" },
    { "0 0 * * MON-", "MON-", 9, "ends where a value of weekday is expected" },
    { "0 0 * * L", "L", 9, "MON#2 or FRIL" },
    { "0 0 * * MON#6", "6", 13, "1..5, the range of its week" },
    { "0 0 * * MON#0", "0", 13, "1..5" },
    { "0 0 * * MON#", "MON#", 9, "ends where" },
    { "0 0 * * MON#2-3", "-", 14, "not understood in weekday" },
    { "0 0 * * 5L-6", "-", 11, "not understood in weekday" },
    { "0 0 L-3 * *", "-", 6, "not understood in day" },
    { "0 0 1-L * *", "L", 7, "not understood in day" },
    { "0 0 LW * *", "W", 6, "not understood in day" },
    { "0 0 15W * *", "W", 7, "not understood in day" },
    { "0 0 ? * *", "?", 5, "not understood in day" },
    { "0 L * * *", "L", 3, "not understood in hour" },
    { "1#2 * * * *", "#", 2, "not understood in minute" },
    { "30-10 * * * *", "30-10", 1, "runs backwards" },
    { "0 0 * DEC-feb *", "DEC-feb", 7, "runs backwards" },
    { "0 0 * * FRI-MON", "FRI-MON", 9, "runs backwards" },
    { "0 22-2 * * *", "22-2", 3, "runs backwards" },
    { "1-2-3 * * * *", "-", 4, "not understood" },
    { "*/0 * * * *", "0", 3, "1..59, the range of its step" },
    { "*/60 * * * *", "60", 3, "1..59" },
    { "0 */24 * * *", "24", 5, "1..23" },
    { "0 0 */31 * *", "31", 7, "1..30" },
    { "0 0 * */12 *", "12", 9, "1..11" },
    { "0 0 * * */7", "7", 11, "1..6" },
    { "*/ * * * *", "*/", 1, "ends where a value of minute is expected" },
    { "*/x * * * *", "x", 3, "not understood in minute" },
    { "*/2/3 * * * *", "/", 4, "not understood" },
    { "/5 * * * *", "/", 1, "not understood" },
    { "*5 * * * *", "5", 2, "not understood" },
    { "**  * * * *", "*", 2, "not understood" },
    { "1,,2 * * * *", ",", 3, "not understood" },
    { ",1 * * * *", ",", 1, "not understood" },
    { "0 1, * * *", "1,", 3, "ends where a value of hour is expected" },
    { "0 0 31 2 *", "31 2", 5, "never comes" },
    { "0 0 30 2 *", "30 2", 5, "never comes" },
    { "0 0 0 30,31  feb *", "30,31  feb", 7, "never comes" },
    { "0 0 31 4,6,9,11 *", "31 4,6,9,11", 5, "never comes" },
    { "* * * *", "* * * *", 1, "has 4 fields; expected five" },
    { "  0", "0", 3, "has 1 field;" },
    { "0 0 1 1 * 2027 x", "x", 16, "one field too many" },
    { "0 0 0 1 1 * 2027", "2027", 13, "one field too many" },
    { "@reboot", "@reboot", 1, "expected @hourly, @daily" },
    { "@daily 3", "@daily 3", 1, "is unknown" },
    { "@dail", "@dail", 1, "is unknown" },
    { " @", "@", 2, "is unknown" },
    { "0 0 * * \xc3\xa9", "\xc3\xa9", 9, "not understood" },
    { "0 0 * * 1,\xe6\x9c\x88\xe7\x81\xab", "\xe6\x9c\x88", 11, "not understood in weekday" },
    { "\xf0\x9f\x95\x90 0 * * *", "\xf0\x9f\x95\x90", 1, "not understood in minute" },
    { "\xc3\xa9 0 0 1 1 * 2027", "2027", 13, "one field too many" }, /* counted in characters */
    { "0 0 * * \xc3", "?", 9, "not understood" },
    { "0 0 *\n* * *", "?", 6, "not understood" },
};

TEST(every_mistake_has_its_column)
{
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct pawl_err err = { 0 };
        struct cron c = { .second = 77 };
        char begins[200];
        printf("%s\n", wrong[i].text);
        EQ_STATUS(cron_parse(bytes_of(wrong[i].text), &c, &err), PAWL_INVALID, &err);
        snprintf(begins, sizeof begins, "field \"cron\": \"%s\" at column %d ", wrong[i].quoted,
                 wrong[i].column);
        HAS_STR(err.text, begins);
        HAS_STR(err.text, wrong[i].why);
        EQ_INT(c.second, 77);
    }
}

TEST(empty_and_too_long)
{
    struct pawl_err err = { 0 };
    struct cron c;
    char text[CRON_LEN_MAX + 1];
    EQ_STATUS(cron_parse(BYTES(""), &c, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "field \"cron\": is empty; expected five");
    EQ_STATUS(cron_parse(BYTES(" \t "), &c, &err), PAWL_INVALID, &err);
    EQ_STATUS(cron_parse(BYTES_NONE, &c, &err), PAWL_INVALID, &err);
    EQ_STATUS(cron_parse(BYTES("0 0 * * *\0"), &c, &err), PAWL_INVALID, &err);
    memset(text, ' ', sizeof text);
    memcpy(text, "0 0 * * *", 9);
    OK(cron_parse((struct bytes){ text, CRON_LEN_MAX }, &c, &err), &err);
    EQ_STATUS(cron_parse((struct bytes){ text, CRON_LEN_MAX + 1 }, &c, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "is 1001 bytes, limit 1000");
}

/* ---- Other data of the same zone ------------------------------------------------------------- */

TEST(a_local_time_does_not_come_again)
{
    struct zone *z = zone_of("Europe/Berlin");
    struct cron daily = parsed("0 3 * * *"), hourly_ = parsed("0 * * * *");
    int64_t next;
    /* What showed 03:00 by older data shows 02:00 by ours: 03:00 has been, wait for tomorrow's. */
    int64_t last = at("2026-06-01T00:00:00Z"), local = at("2026-06-01T03:00:00Z");
    TRUE(cron_next(&daily, z, last, &next));
    EQ_STR(shown(next), "2026-06-01T01:00:00Z");
    TRUE(cron_next_past(&daily, z, last, local, &next));
    EQ_STR(shown(next), "2026-06-02T01:00:00Z");
    TRUE(cron_next_past(&hourly_, z, last, local, &next));
    EQ_STR(shown(next), "2026-06-01T02:00:00Z");
    /* In the repeated hour, and in a gap. */
    TRUE(
        cron_next_past(&hourly_, z, at("2026-10-24T23:00:00Z"), at("2026-10-25T02:00:00Z"), &next));
    EQ_STR(shown(next), "2026-10-25T02:00:00Z");
    TRUE(cron_next_past(&daily, z, at("2026-03-28T12:00:00Z"), at("2026-03-29T02:30:00Z"), &next));
    EQ_STR(shown(next), "2026-03-29T01:00:00Z");
    TRUE(cron_next_past(&daily, z, at("2026-03-28T12:00:00Z"), at("2026-03-29T03:00:00Z"), &next));
    EQ_STR(shown(next), "2026-03-30T01:00:00Z");
    FALSE(cron_next_past(&daily, z, 0, ZONE_LAST_S, &next));
    zone_free(z);
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

/* Rare expressions and all ends of the calendar; with the deadline of a case, this is also a bound
 * on time: 1,000 years of the rarest one, and seconds counted over all years. */
TEST(rare_ones_and_the_ends_of_time)
{
    static const char *const texts[] = { "0 0 29 2 *",  "0 0 * 2 MON#5", "59 59 23 29 2 *",
                                         "* * * * * *", "30 2 * * *",    "0 0 L 2 *" };
    static const int64_t ends[] = { INT64_MIN,       ZONE_FIRST_S - 1, ZONE_FIRST_S, 0,
                                    ZONE_LAST_S - 1, ZONE_LAST_S,      INT64_MAX };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        for (size_t k = 0; k < COUNT_OF(sample); k++) {
            struct cron c = parsed(texts[i]);
            struct zone *z = zone_of(sample[k]);
            int64_t found = 0;
            for (size_t n = 0; n < COUNT_OF(ends); n++) {
                if (cron_next(&c, z, ends[n], &found))
                    GT_INT(found, ends[n]);
                if (cron_prev(&c, z, ends[n], &found))
                    LE_INT(found, ends[n]);
            }
            int64_t all = cron_count(&c, z, INT64_MIN, INT64_MAX), n = 0;
            int64_t from = at("9000-01-01T00:00:00Z");
            for (found = from; i < 3 && cron_next(&c, z, found, &found);)
                n++;
            if (i < 3)
                EQ_INT(n, cron_count(&c, z, from, INT64_MAX));
            GE_INT(all, cron_count(&c, z, from, INT64_MAX));
            zone_free(z);
        }
    struct cron seconds = parsed("* * * * * *");
    struct zone *utc = zone_of("UTC");
    EQ_INT(cron_count(&seconds, utc, INT64_MIN, INT64_MAX), ZONE_LAST_S - ZONE_FIRST_S + 1);
    zone_free(utc);
}

/* Random times: each tick is the next one of the tick before, and the count adds up. */
TEST(next_and_previous_and_count_agree)
{
    static const char *const texts[] = { "* * * * * *",    "*/7 * * * *",   "30 2 * * *",
                                         "0 */3 * * *",    "15 2 13 * FRI", "0,30 0-4 * * *",
                                         "*/50 59 1 * * *" };
    for (int i = 0; i < 3000; i++) {
        struct cron c = parsed(texts[i % COUNT_OF(texts)]);
        struct zone *z = zone_of(sample[world_dice(&world_real) % COUNT_OF(sample)]);
        int64_t from = (int64_t)(world_dice(&world_real) % 2145916800), change = from;
        /* Half of them just before or after a change. */
        if (i % 2 && zone_next_change(z, from, &change))
            from = change + 5000 - (int64_t)(world_dice(&world_real) % 9000);
        int64_t found = from, before = from, prev;
        for (int n = 1; n <= 20; n++) {
            TRUE(cron_next(&c, z, before, &found));
            GT_INT(found, before);
            EQ_INT(cron_count(&c, z, from, found), n);
            EQ_INT(cron_count(&c, z, before, found - 1), 0);
            TRUE(cron_prev(&c, z, found, &prev));
            EQ_INT(prev, found);
            TRUE(cron_prev(&c, z, found - 1, &prev));
            if (n > 1)
                EQ_INT(prev, before);
            before = found;
        }
        zone_free(z);
    }
}
