/*
 * cron_random.c - random cron expressions compared with a walk over every minute, or second, of
 * the C library's local times.
 *
 * The generator writes an expression and, beside it, the values that it means; the walk knows only
 * these. PAWL_SEED=n repeats a run; a failure prints it. The zones and years follow from it, too.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"
#include "model/cron.h"
#include "check.h"
#include "zone_ref.h"

static uint64_t seed, dice;

static int roll(int n)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((dice >> 33) % (uint64_t)n);
}

static void seed_take(void)
{
    const char *given = getenv("PAWL_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)now.tv_nsec;
    dice = seed * 2 + 1;
    printf("PAWL_SEED=%llu\n", (unsigned long long)seed);
}

/* ---- Expressions ----------------------------------------------------------------------------- */

enum { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, PARTS };

static const struct {
    int low, high;
    const char *names; /* three letters each, from `low` on */
} parts[PARTS] = {
    { 0, 59, NULL },
    { 0, 59, NULL },
    { 0, 23, NULL },
    { 1, 31, NULL },
    { 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC" },
    { 0, 6, "SUNMONTUEWEDTHUFRISAT" },
};

static struct {
    char text[1000];
    size_t len;
    bool on[PARTS][60];
    bool any[PARTS], stepped[PARTS];
    bool last_day, weekday_last[7], weekday_no[7][6];
} e;

PRINTF_LIKE(1, 2) static void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    e.len += (size_t)vsnprintf(e.text + e.len, sizeof e.text - e.len, fmt, args);
    va_end(args);
}

/* A value as a number, sometimes with zeros before it, or as a name in any case. */
static void say_value(int part, int n)
{
    if (!parts[part].names || roll(2)) {
        say("%0*d", roll(4) ? 1 : 2, n);
        return;
    }
    for (int i = 0; i < 3; i++)
        say("%c", parts[part].names[3 * (n - parts[part].low) + i] | (roll(2) ? 0x20 : 0));
}

static void mean(int part, int from, int to, int step)
{
    for (int n = from; n <= to; n += step)
        e.on[part][n] = true;
}

static void say_item(int part)
{
    int low = parts[part].low, high = parts[part].high;
    int from = low + roll(high - low + 1), to = from + roll(high - from + 1);
    int step = 1 + roll(high - low);
    if (part == DAY && roll(8) == 0) {
        say("%c", roll(2) ? 'L' : 'l');
        e.last_day = true;
    } else if (part == WEEKDAY && roll(4) == 0) {
        say_value(part, from);
        step = 1 + roll(5);
        if (roll(2)) {
            say("%c", roll(2) ? 'L' : 'l');
            e.weekday_last[from] = true;
        } else {
            say("#%d", step);
            e.weekday_no[from][step] = true;
        }
    } else if (roll(4) == 0) {
        if (roll(2)) {
            say("*/%d", step);
            mean(part, low, high, step);
        } else {
            say_value(part, from);
            say("/%d", step);
            mean(part, from, high, step);
        }
        e.stepped[part] = true;
    } else if (roll(2)) {
        say_value(part, from);
        mean(part, from, from, 1);
    } else {
        say_value(part, from);
        say("-");
        say_value(part, to);
        bool stepped = roll(3) == 0;
        if (stepped)
            say("/%d", step);
        e.stepped[part] |= stepped;
        mean(part, from, to, stepped ? step : 1);
    }
}

static void say_field(int part)
{
    static const int stars[PARTS] = { 4, 4, 3, 2, 2, 2 }; /* one in so many is a star */
    if (roll(stars[part]) == 0) {
        say("*");
        mean(part, parts[part].low, parts[part].high, 1);
        e.any[part] = true;
        return;
    }
    for (int n = 1 + (roll(3) ? 0 : roll(4)); n > 0; n--) {
        say_item(part);
        if (n > 1)
            say(",");
    }
}

static void say_expression(bool seconds)
{
    memset(&e, 0, sizeof e);
    for (int part = seconds ? SECOND : MINUTE; part < PARTS; part++) {
        if (e.len)
            say("%s", roll(5) ? " " : "\t ");
        say_field(part);
    }
    if (!seconds)
        e.on[SECOND][0] = true;
}

/* ---- What it means --------------------------------------------------------------------------- */

static int month_len(int year, int month)
{
    static const int len[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return len[month - 1] + (month == 2 && leap);
}

static bool day_matches(const struct tm *d)
{
    int len = month_len(d->tm_year + 1900, d->tm_mon + 1), w = d->tm_wday;
    bool day = e.on[DAY][d->tm_mday] || (e.last_day && d->tm_mday == len);
    bool weekday = e.on[WEEKDAY][w] || e.weekday_no[w][(d->tm_mday - 1) / 7 + 1] ||
                   (e.weekday_last[w] && d->tm_mday + 7 > len);
    if (!e.on[MONTH][d->tm_mon + 1])
        return false;
    return e.any[DAY] || e.any[WEEKDAY] ? day && weekday : day || weekday;
}

/* The days that were asked about last: those of one window follow each other. */
static bool local_matches(int64_t local_s)
{
    static char text[sizeof e.text];
    static int64_t known_day = INT64_MIN;
    static bool known;
    int64_t day = local_s / 86400;
    int s = (int)(local_s % 86400);
    if (day != known_day || strcmp(text, e.text) != 0) {
        time_t at = (time_t)(day * 86400);
        struct tm d;
        gmtime_r(&at, &d);
        known = day_matches(&d);
        known_day = day;
        memcpy(text, e.text, sizeof text);
    }
    return known && e.on[HOUR][s / 3600] && e.on[MINUTE][s / 60 % 60] && e.on[SECOND][s % 60];
}

/* Is there such a day in forty years, in which every date has had every weekday? */
static bool ever(void)
{
    for (int64_t day = 10957; day < 10957 + 40 * 366; day++) {
        time_t at = (time_t)(day * 86400);
        struct tm d;
        gmtime_r(&at, &d);
        if (day_matches(&d))
            return true;
    }
    return false;
}

/* ---- The walk -------------------------------------------------------------------------------- */

/* Local times of `n` instants, `step_s` apart. */
struct window {
    int64_t from_s;
    int step_s, n, begin; /* what is before `begin` only says what the clock has shown */
    int64_t *local;
};

/* Three days of minutes; 72 minutes of seconds. */
#define BEGIN 4320

static void fill(struct window *w, int64_t from_s, int step_s, int n)
{
    static int64_t local[600000];
    *w = (struct window){ from_s, step_s, n, BEGIN, local };
    TRUE(n > w->begin && n <= (int)COUNT_OF(local));
    for (int i = 0; i < n; i++) {
        int64_t at_s = from_s + (int64_t)i * step_s;
        local[i] = at_s + ref_offset(at_s);
    }
}

/* With a star or a step in the hour, each instant at which the clock shows a matching time; else
 * where it shows one for the first time, or has just passed it over. */
static bool ticks_at(const struct window *w, int i, int64_t most)
{
    if (e.any[HOUR] || e.stepped[HOUR])
        return local_matches(w->local[i]);
    for (int64_t m = most + w->step_s; m <= w->local[i]; m += w->step_s)
        if (local_matches(m))
            return true;
    return false;
}

#define TICKS_MAX 3000

static int compare(const struct zone *z, const struct cron *c, const struct window *w)
{
    int64_t most = w->local[0], first_s = w->from_s + (int64_t)(w->begin - 1) * w->step_s;
    int64_t before_s = first_s, next_s, prev_s;
    bool more = cron_next(c, z, before_s, &next_s);
    int n = 0, i = 1;
    for (; i < w->n && n < TICKS_MAX; i++) {
        int64_t at_s = w->from_s + (int64_t)i * w->step_s;
        bool want = i >= w->begin && ticks_at(w, i, most);
        most = MAX(most, w->local[i]);
        if (want != (more && next_s == at_s && i >= w->begin))
            FAIL("PAWL_SEED=%llu: \"%s\" in %s: after %lld comes %lld, want %lld%s",
                 (unsigned long long)seed, e.text, zone_name(z), (long long)before_s,
                 more ? (long long)next_s : -1LL, (long long)at_s, want ? "" : " not to be one");
        if (!want)
            continue;
        if (!cron_prev(c, z, at_s, &prev_s) || prev_s != at_s ||
            (n && (!cron_prev(c, z, at_s - 1, &prev_s) || prev_s != before_s)))
            FAIL("PAWL_SEED=%llu: \"%s\" in %s: the tick at or before %lld is %lld",
                 (unsigned long long)seed, e.text, zone_name(z), (long long)at_s,
                 (long long)prev_s);
        n++;
        before_s = at_s;
        more = cron_next(c, z, at_s, &next_s);
    }
    int64_t last_s = w->from_s + (int64_t)(i - 1) * w->step_s;
    if (cron_count(c, z, first_s, last_s) != n)
        FAIL("PAWL_SEED=%llu: \"%s\" in %s: %lld ticks after %lld to %lld, want %d",
             (unsigned long long)seed, e.text, zone_name(z),
             (long long)cron_count(c, z, first_s, last_s), (long long)first_s, (long long)last_s,
             n);
    return n;
}

/* Random expressions over one window; returns how many of them had a tick in it. */
static int run(const struct zone *z, const struct window *w, int expressions)
{
    int ticked = 0;
    for (int i = 0; i < expressions; i++) {
        struct cron c;
        struct pawl_err err = { 0 };
        say_expression(w->step_s == 1);
        enum pawl_status st = cron_parse(bytes_of(e.text), &c, &err);
        if ((st == PAWL_OK) != ever())
            FAIL("PAWL_SEED=%llu: \"%s\" %s: %s", (unsigned long long)seed, e.text,
                 st == PAWL_OK ? "is taken and never comes" : "is refused", err.text);
        if (st == PAWL_OK)
            ticked += compare(z, &c, w) > 0;
    }
    return ticked;
}

static struct zone *random_zone(void)
{
    const char *const *names = ref_zones(1);
    struct pawl_err err;
    struct zone *z;
    int n = 0;
    while (names[n])
        n++;
    const char *name = names[roll(n)];
    ref_use(name);
    OK(zone_load(NULL, bytes_of(name), &z, &err), &err);
    printf("%s\n", name);
    return z;
}

/* 1975 to 2036: since 1972 every offset has been one of whole minutes. */
static int64_t random_time(void)
{
    return (INT64_C(5) * 365 + 1 + roll(61 * 365)) * 86400 + roll(1440) * 60;
}

TEST(random_expressions_over_a_year, .deadline_s = 600)
{
    int zones = check_long() ? 60 : 10, ticked = 0;
    seed_take();
    for (int i = 0; i < zones; i++) {
        struct window w;
        struct zone *z = random_zone();
        fill(&w, random_time(), 60, 400 * 1440);
        ticked += run(z, &w, 150);
        zone_free(z);
    }
    printf("%d expressions ticked in %d zones\n", ticked, zones);
    GT_INT(ticked, 100 * zones);
}

/* Around changes of the clock, where the rules are. */
TEST(random_expressions_around_changes, .deadline_s = 600)
{
    int zones = check_long() ? 400 : 60, ticked = 0, changes = 0;
    seed_take();
    for (int i = 0; i < zones; i++) {
        struct window w;
        int64_t change_s = random_time();
        struct zone *z = random_zone();
        changes += zone_next_change(z, change_s, &change_s) && change_s < REF_TO_S;
        change_s = change_s < REF_TO_S ? change_s : random_time();
        fill(&w, change_s - 5 * 86400, 60, 7 * 1440);
        ticked += run(z, &w, 100);
        zone_free(z);
    }
    printf("%d expressions ticked around %d changes\n", ticked, changes);
    GT_INT(ticked, 30 * zones);
    GT_INT(changes, 0);
}

/* With seconds: twelve hours around a change. */
TEST(random_expressions_with_seconds, .deadline_s = 600)
{
    int zones = check_long() ? 100 : 15, ticked = 0;
    seed_take();
    for (int i = 0; i < zones; i++) {
        struct window w;
        int64_t change_s = random_time();
        struct zone *z = random_zone();
        if (!zone_next_change(z, change_s, &change_s) || change_s >= REF_TO_S)
            change_s = random_time();
        fill(&w, change_s - 6 * 3600, 1, 12 * 3600);
        ticked += run(z, &w, 100);
        zone_free(z);
    }
    printf("%d expressions ticked in %d zones\n", ticked, zones);
    GT_INT(ticked, 0);
}
