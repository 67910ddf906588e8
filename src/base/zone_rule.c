/*
 * zone_rule.c - the last line of a TZif file: the rule for all times after its table, as a TZ
 * string of POSIX (zone_inside.h). Pure, any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/macros.h"
#include "base/zone_inside.h"

struct reader {
    const char *at, *end;
    const char *fault; /* NULL while nothing is wrong */
};

static void wrong(struct reader *r, const char *why)
{
    if (!r->fault)
        r->fault = why;
    r->at = r->end;
}

static bool take(struct reader *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool is_digit(const struct reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

static int number(struct reader *r, int low, int high, const char *why)
{
    int n = 0, digits = 0;
    for (; is_digit(r) && digits < 4; digits++, r->at++)
        n = n * 10 + (*r->at - '0');
    if (digits == 0 || n < low || n > high) {
        wrong(r, why);
        return low;
    }
    return n;
}

/* Three letters or more, or `<` letters, digits and signs `>`. What it is called is not kept. */
static void name(struct reader *r)
{
    bool quoted = take(r, '<');
    int n = 0;
    for (; r->at < r->end; r->at++, n++) {
        char c = *r->at;
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(quoted && (is_digit(r) || c == '+' || c == '-')))
            break;
    }
    if (n < 3 || (quoted && !take(r, '>')))
        wrong(r, "has an abbreviation of fewer than 3 letters, or one that does not end");
}

/* [+-]hh[:mm[:ss]] in seconds. */
static int hms(struct reader *r, int hours_max, const char *why)
{
    bool minus = r->at < r->end && *r->at == '-';
    if (!take(r, '-'))
        take(r, '+');
    int s = number(r, 0, hours_max, why) * 3600;
    if (take(r, ':'))
        s += number(r, 0, 59, why) * 60;
    if (take(r, ':'))
        s += number(r, 0, 59, why);
    return minus ? -s : s;
}

/* POSIX counts what is added to local time: west is positive. */
static int offset(struct reader *r)
{
    return -hms(r, 24, "has an offset that is not within 24 hours");
}

static struct zone_when when(struct reader *r)
{
    static const char why[] = "has a date that is not Jn, n or Mm.w.d";
    struct zone_when w = { .kind = ZONE_DAY_OF_YEAR, .time_s = 2 * 3600 };
    if (!take(r, ','))
        wrong(r, "has daylight time without the two dates of its begin and end");
    if (take(r, 'J')) {
        w.kind = ZONE_JULIAN;
        w.day = number(r, 1, 365, why);
    } else if (take(r, 'M')) {
        w.kind = ZONE_WEEKDAY;
        w.month = number(r, 1, 12, why);
        bool dots = take(r, '.');
        w.week = number(r, 1, 5, why);
        dots &= take(r, '.');
        w.day = number(r, 0, 6, why);
        if (!dots)
            wrong(r, why);
    } else {
        w.day = number(r, 0, 365, why);
    }
    if (take(r, '/'))
        w.time_s = hms(r, 167, "has a time of day that is not within 167 hours");
    return w;
}

const char *zone_rule_read(struct bytes text, struct zone_rule *out)
{
    struct reader r = { text.data, text.data + text.len, NULL };
    struct zone_rule rule = { 0 };
    name(&r);
    rule.std_s = offset(&r);
    if (r.at < r.end) {
        rule.has_dst = true;
        name(&r);
        bool given = is_digit(&r) || (r.at < r.end && (*r.at == '-' || *r.at == '+'));
        rule.dst_s = given ? offset(&r) : rule.std_s + 3600;
        rule.begin = when(&r);
        rule.end = when(&r);
    }
    if (r.at < r.end)
        wrong(&r, "goes on after its end");
    *out = rule;
    return r.fault;
}

/* The local midnight of the day, and the time of day, as seconds since 1970. */
static int64_t local_of(const struct zone_when *w, int year)
{
    int64_t first = ymd_days((struct ymd){ year, w->kind == ZONE_WEEKDAY ? w->month : 1, 1 });
    int64_t day = first + w->day;
    if (w->kind == ZONE_JULIAN) {
        bool leap = ymd_month_days(year, 2) == 29;
        day = first + w->day - 1 + (leap && w->day >= 60); /* 29 February is never counted */
    } else if (w->kind == ZONE_WEEKDAY) {
        day = first + (w->day - ymd_weekday(first) + 7) % 7 + 7 * (w->week - 1);
        if (day >= first + ymd_month_days(year, w->month))
            day -= 7; /* week 5 is the last one */
    }
    return day * ZONE_DAY_S + w->time_s;
}

void zone_rule_year(const struct zone_rule *r, int year, struct zone_change out[2])
{
    /* Each date is told in the time that it ends. */
    out[0] = (struct zone_change){ local_of(&r->begin, year) - r->std_s, r->dst_s, true };
    out[1] = (struct zone_change){ local_of(&r->end, year) - r->dst_s, r->std_s, false };
}
