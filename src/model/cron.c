/*
 * cron.c - when an expression fires (cron.h). Pure, any thread.
 *
 * Below, a calendar without zones: the next and the previous matching local time, and how many
 * there are. Above, the zone. A fixed expression fires at the first instant at which the clock has
 * come to a matching local time (zone_local), which never decreases; so the ticks after an instant
 * are those of the local times after the latest one shown by then (zone_reached), in their order,
 * and gaps and folds need no cases. An expression that follows elapsed time is matched in each span
 * of one offset by itself.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/macros.h"
#include "base/ymd.h"
#include "model/cron.h"

#define DAY_S INT64_C(86400)
/* The first month that may match is found within the calendar's cycle, or never. */
#define MONTHS_MAX (400 * 12)

/* The lowest value of a set from n on; -1 without one. */
static int next_in(uint64_t set, int n)
{
    set = n < 64 ? set >> n << n : 0;
    return set ? __builtin_ctzll(set) : -1;
}

/* The highest value up to n; -1 without one. */
static int prev_in(uint64_t set, int n)
{
    if (n < 0)
        return -1;
    set &= n < 63 ? (UINT64_C(2) << n) - 1 : UINT64_MAX;
    return set ? 63 - __builtin_clzll(set) : -1;
}

/* ---- The time of day ------------------------------------------------------------------------- */

/* The first time of day from `from_s` on, in seconds; -1 when the day has none left. */
static int time_next(const struct cron *c, int from_s)
{
    int hour = from_s / 3600, minute = from_s / 60 % 60, second = from_s % 60;
    int h = next_in(c->hour, hour), m = 0, s = 0;
    if (h == hour) {
        m = next_in(c->minute, minute);
        if (m == minute) {
            s = next_in(c->second, second);
            if (s >= 0)
                return from_s - second + s;
            m = next_in(c->minute, minute + 1);
        }
        if (m < 0)
            h = next_in(c->hour, hour + 1);
    } else {
        m = -1;
    }
    if (h < 0)
        return -1;
    m = m < 0 ? next_in(c->minute, 0) : m;
    return h * 3600 + m * 60 + next_in(c->second, 0);
}

/* The last one up to `until_s`; -1 when there is none so early. */
static int time_prev(const struct cron *c, int until_s)
{
    int hour = until_s / 3600, minute = until_s / 60 % 60, second = until_s % 60;
    int h = prev_in(c->hour, hour), m = -1, s;
    if (h == hour) {
        m = prev_in(c->minute, minute);
        if (m == minute) {
            s = prev_in(c->second, second);
            if (s >= 0)
                return until_s - second + s;
            m = prev_in(c->minute, minute - 1);
        }
        if (m < 0)
            h = prev_in(c->hour, hour - 1);
    }
    if (h < 0)
        return -1;
    m = m < 0 ? prev_in(c->minute, 59) : m;
    return h * 3600 + m * 60 + prev_in(c->second, 59);
}

/* How many there are before `before_s`. */
static int64_t times_before(const struct cron *c, int before_s)
{
    int hour = before_s / 3600, minute = before_s / 60 % 60, second = before_s % 60;
    int64_t seconds = __builtin_popcountll(c->second), minutes = __builtin_popcountll(c->minute);
    int64_t n = __builtin_popcount(c->hour & ((1u << hour) - 1)) * minutes * seconds;
    if (!(c->hour >> hour & 1))
        return n;
    n += __builtin_popcountll(c->minute & ((UINT64_C(1) << minute) - 1)) * seconds;
    if (c->minute >> minute & 1)
        n += __builtin_popcountll(c->second & ((UINT64_C(1) << second) - 1));
    return n;
}

/* ---- The day --------------------------------------------------------------------------------- */

/* The days of a month whose weekday matches. */
static uint64_t weekday_days(const struct cron *c, int year, int month, int len)
{
    int first = ymd_weekday(ymd_days((struct ymd){ year, month, 1 }));
    uint64_t days = 0;
    for (int w = 0; w < 7; w++) {
        int day = 1 + (w - first + 7) % 7;
        if (c->weekday >> w & 1)
            days |= UINT64_C(0x10204081) << day; /* and each seventh day after it */
        for (int no = 1; no <= 5; no++)
            if (c->weekday_no[no] >> w & 1)
                days |= UINT64_C(1) << (day + 7 * (no - 1));
        if (c->weekday_no[0] >> w & 1)
            days |= UINT64_C(1) << (day + 28 <= len ? day + 28 : day + 21);
    }
    return days;
}

/* The matching days of a month, as bits 1 to 31. */
static uint64_t month_days(const struct cron *c, int year, int month)
{
    if (!(c->month >> month & 1))
        return 0;
    int len = ymd_month_days(year, month);
    uint64_t all = (UINT64_C(2) << len) - 2, days = 0;
    if (!c->any_day)
        days = c->day | (uint64_t)c->last_day << len;
    else if (c->any_weekday)
        days = all;
    if (!c->any_weekday)
        days |= weekday_days(c, year, month, len);
    return days & all;
}

bool cron_ever_fires(const struct cron *c)
{
    for (int i = 0; i < MONTHS_MAX; i++)
        if (month_days(c, 2000 + i / 12, 1 + i % 12))
            return true;
    return false;
}

static int64_t on_day(int year, int month, int day, int time_s)
{
    return ymd_days((struct ymd){ year, month, day }) * DAY_S + time_s;
}

/* ---- Local times, without a zone ------------------------------------------------------------- */

/* The first matching local time from `from_s` on. */
static bool local_next(const struct cron *c, int64_t from_s, int64_t *out)
{
    int64_t day = floor_div(from_s, DAY_S);
    struct ymd d = ymd_of(day);
    uint64_t days = month_days(c, d.year, d.month);
    int time_s = days >> d.day & 1 ? time_next(c, (int)(from_s - day * DAY_S)) : -1;
    if (time_s >= 0) {
        *out = day * DAY_S + time_s;
        return true;
    }
    d.day = next_in(days, d.day + 1);
    for (int i = 0; d.day < 0 && i < MONTHS_MAX; i++) {
        d.year += d.month == 12;
        d.month = d.month % 12 + 1;
        d.day = next_in(month_days(c, d.year, d.month), 1);
    }
    if (d.day < 0)
        return false;
    *out = on_day(d.year, d.month, d.day, time_next(c, 0));
    return true;
}

/* The last matching local time up to `until_s`. */
static bool local_prev(const struct cron *c, int64_t until_s, int64_t *out)
{
    int64_t day = floor_div(until_s, DAY_S);
    struct ymd d = ymd_of(day);
    uint64_t days = month_days(c, d.year, d.month);
    int time_s = days >> d.day & 1 ? time_prev(c, (int)(until_s - day * DAY_S)) : -1;
    if (time_s >= 0) {
        *out = day * DAY_S + time_s;
        return true;
    }
    d.day = prev_in(days, d.day - 1);
    for (int i = 0; d.day < 0 && i < MONTHS_MAX; i++) {
        d.year -= d.month == 1;
        d.month = d.month == 1 ? 12 : d.month - 1;
        if (d.year < 1)
            return false;
        d.day = prev_in(month_days(c, d.year, d.month), 31);
    }
    if (d.day < 0)
        return false;
    *out = on_day(d.year, d.month, d.day, time_prev(c, (int)DAY_S - 1));
    return true;
}

/* How many matching days of the month of `d` are before `d`. */
static int days_before(const struct cron *c, struct ymd d)
{
    return __builtin_popcountll(month_days(c, d.year, d.month) & ((UINT64_C(1) << d.day) - 1));
}

/* How many matching local times there are from `from_s` on and before `to_s`. */
static int64_t local_count(const struct cron *c, int64_t from_s, int64_t to_s)
{
    if (from_s >= to_s)
        return 0;
    int64_t first = floor_div(from_s, DAY_S), last = floor_div(to_s, DAY_S);
    struct ymd a = ymd_of(first), b = ymd_of(last);
    bool in_a = month_days(c, a.year, a.month) >> a.day & 1;
    bool in_b = month_days(c, b.year, b.month) >> b.day & 1;
    int64_t days = -days_before(c, a) + days_before(c, b), n = 0;
    for (int year = a.year, month = a.month; year < b.year || month < b.month;) {
        days += __builtin_popcountll(month_days(c, year, month));
        year += month == 12;
        month = month % 12 + 1;
    }
    n = days * times_before(c, (int)DAY_S - 1);
    if (c->hour >> 23 & 1 && c->minute >> 59 & 1 && c->second >> 59 & 1)
        n += days; /* 23:59:59 itself */
    n -= in_a ? times_before(c, (int)(from_s - first * DAY_S)) : 0;
    n += in_b ? times_before(c, (int)(to_s - last * DAY_S)) : 0;
    return n;
}

/* ---- With a zone: by elapsed time ------------------------------------------------------------ */

/* Local times that are before the present one may be shown again for ZONE_REPEAT_MAX, so every span
 * that begins by then is looked into; after that the clock shows no matching time before it comes
 * to the next one. */
static bool elapsed_next(const struct cron *c, const struct zone *z, int64_t after_s, int64_t *out)
{
    int64_t at_s = after_s + 1, local_s;
    while (at_s <= ZONE_LAST_S) {
        struct zone_span span = zone_span(z, at_s);
        if (!local_next(c, at_s + span.offset_s, &local_s))
            return false;
        *out = local_s - span.offset_s;
        if (*out < span.to_s)
            return true;
        at_s = span.to_s <= at_s + ZONE_REPEAT_MAX ? span.to_s
                                                   : MAX(span.to_s, local_s - ZONE_OFFSET_MAX);
    }
    return false;
}

static bool elapsed_prev(const struct cron *c, const struct zone *z, int64_t at_s, int64_t *out)
{
    int64_t local_s;
    while (at_s >= ZONE_FIRST_S) {
        struct zone_span span = zone_span(z, at_s);
        if (!local_prev(c, at_s + span.offset_s, &local_s))
            return false;
        *out = local_s - span.offset_s;
        if (*out >= span.from_s)
            return true;
        at_s = span.from_s > at_s - ZONE_REPEAT_MAX
                   ? span.from_s - 1
                   : MIN(span.from_s - 1, local_s + ZONE_OFFSET_MAX);
    }
    return false;
}

static int64_t elapsed_count(const struct cron *c, const struct zone *z, int64_t after_s,
                             int64_t until_s)
{
    int64_t n = 0;
    for (int64_t at_s = after_s + 1; at_s <= until_s;) {
        struct zone_span span = zone_span(z, at_s);
        int64_t to_s = MIN(span.to_s, until_s + 1);
        n += local_count(c, at_s + span.offset_s, to_s + span.offset_s);
        at_s = to_s;
    }
    return n;
}

/* ---- With a zone: each local time once ------------------------------------------------------- */

/* The local times that the clock passes over when the span begins: from *from_s on, before *to_s.
 * False when it passes over none. */
static bool gap_of(const struct zone *z, struct zone_span span, int64_t *from_s, int64_t *to_s)
{
    if (span.from_s == INT64_MIN)
        return false;
    *from_s = zone_reached(z, span.from_s - 1) + 1;
    *to_s = span.from_s + span.offset_s;
    return *from_s < *to_s;
}

/* All local times of a gap, and the one that is shown at its end, are one tick. */
static int64_t fixed_count(const struct cron *c, const struct zone *z, int64_t after_s,
                           int64_t until_s)
{
    int64_t first_s = MAX(zone_reached(z, after_s) + 1, ZONE_FIRST_S);
    int64_t n = local_count(c, first_s, MIN(zone_reached(z, until_s), ZONE_LAST_S) + 1);
    for (int64_t at_s = after_s; zone_next_change(z, at_s, &at_s) && at_s <= until_s;) {
        int64_t from_s, to_s;
        if (gap_of(z, zone_span(z, at_s), &from_s, &to_s))
            n -= MAX(local_count(c, from_s, to_s + 1) - 1, 0);
    }
    return n;
}

/* ---- Both ------------------------------------------------------------------------------------ */

static bool in_range(int64_t at_s)
{
    return at_s >= ZONE_FIRST_S && at_s <= ZONE_LAST_S;
}

bool cron_next(const struct cron *c, const struct zone *z, int64_t after_s, int64_t *out_at_s)
{
    return cron_next_past(c, z, after_s, INT64_MIN, out_at_s);
}

bool cron_next_past(const struct cron *c, const struct zone *z, int64_t after_s,
                    int64_t past_local_s, int64_t *out_at_s)
{
    int64_t local_s, at_s;
    after_s = MAX(after_s, ZONE_FIRST_S - 1);
    if (after_s >= ZONE_LAST_S || past_local_s >= ZONE_LAST_S)
        return false;
    if (c->elapsed) {
        if (past_local_s >= ZONE_FIRST_S)
            after_s = MAX(after_s, zone_local(z, past_local_s + 1).first_s - 1);
        do {
            if (!elapsed_next(c, z, after_s, &at_s) || !in_range(at_s))
                return false;
            after_s = at_s;
        } while (at_s + zone_offset(z, at_s) <= past_local_s);
    } else {
        int64_t from_s = MAX(zone_reached(z, after_s), past_local_s) + 1;
        if (!local_next(c, MAX(from_s, ZONE_FIRST_S), &local_s) || local_s > ZONE_LAST_S)
            return false;
        at_s = zone_local(z, local_s).first_s;
        if (!in_range(at_s))
            return false;
    }
    *out_at_s = at_s;
    return true;
}

bool cron_prev(const struct cron *c, const struct zone *z, int64_t at_s, int64_t *out_at_s)
{
    int64_t found_s;
    at_s = MIN(at_s, ZONE_LAST_S);
    if (at_s < ZONE_FIRST_S)
        return false;
    if (c->elapsed) {
        if (!elapsed_prev(c, z, at_s, &found_s))
            return false;
    } else {
        if (!local_prev(c, MIN(zone_reached(z, at_s), ZONE_LAST_S), &found_s) ||
            found_s < ZONE_FIRST_S)
            return false;
        found_s = zone_local(z, found_s).first_s;
    }
    if (!in_range(found_s))
        return false;
    *out_at_s = found_s;
    return true;
}

int64_t cron_count(const struct cron *c, const struct zone *z, int64_t after_s, int64_t until_s)
{
    after_s = MAX(after_s, ZONE_FIRST_S - 1);
    until_s = MIN(until_s, ZONE_LAST_S);
    if (after_s >= until_s)
        return 0;
    return c->elapsed ? elapsed_count(c, z, after_s, until_s) : fixed_count(c, z, after_s, until_s);
}

enum zone_fit cron_fit(const struct cron *c, const struct zone *z, int64_t at_s)
{
    struct zone_span span = zone_span(z, at_s);
    struct zone_local local = zone_local(z, at_s + span.offset_s);
    int64_t from_s, to_s;
    if (!c->elapsed && span.from_s == at_s && gap_of(z, span, &from_s, &to_s) &&
        local_count(c, from_s, to_s) > 0)
        return ZONE_GAP;
    return local.fit;
}
