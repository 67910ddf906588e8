/*
 * ymd.h - the Gregorian calendar, extended to all years from 1 on: a day as a number, and as year,
 * month and day.
 *
 * The calendar is computed here because the range of gmtime() differs between machines. Pure, any
 * thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_YMD_H
#define BASE_YMD_H

#include <stdint.h>

/* The calendar repeats after this many days, weekdays included: 400 years. */
#define YMD_CYCLE_DAYS 146097

struct ymd {
    int year, month, day; /* month and day from 1 */
};

/* Days since 1970-01-01. The day is valid and not before 0000-03-01. */
int64_t ymd_days(struct ymd d);
/* The inverse, for days from 0000-03-01 to the year 1,000,000. */
struct ymd ymd_of(int64_t days);
/* The days of a month: 28 to 31. */
int ymd_month_days(int year, int month);
/* The weekday of a day since 1970-01-01: 0 is Sunday. */
int ymd_weekday(int64_t days);

/* n / d, rounded down, for d > 0: the day of a time before 1970 is below 0 as well. */
static inline int64_t floor_div(int64_t n, int64_t d)
{
    return n / d - (n % d < 0);
}

#endif
