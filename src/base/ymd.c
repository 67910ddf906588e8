/*
 * ymd.c - the Gregorian calendar (ymd.h). Pure, any thread.
 *
 * Days are counted from 1 March of year 0, so that the leap day ends its year and months have a
 * formula.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdbool.h>

#include "base/macros.h"
#include "base/ymd.h"

/* Days from 0000-03-01 to 1970-01-01. */
#define DAYS_TO_1970 719468

int64_t ymd_days(struct ymd d)
{
    int64_t year = d.month > 2 ? d.year : d.year - 1;
    assert(year >= 0 && d.month >= 1 && d.month <= 12);
    int64_t era = year / 400, of_era = year % 400;
    int64_t of_year = (153 * (d.month > 2 ? d.month - 3 : d.month + 9) + 2) / 5 + d.day - 1;
    return era * YMD_CYCLE_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - DAYS_TO_1970;
}

struct ymd ymd_of(int64_t days)
{
    days += DAYS_TO_1970;
    assert(days >= 0);
    int64_t era = days / YMD_CYCLE_DAYS, of_era = days % YMD_CYCLE_DAYS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t shifted = (5 * of_year + 2) / 153;
    int month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
    return (struct ymd){ (int)(era * 400 + year) + (month <= 2), month,
                         (int)(of_year - (153 * shifted + 2) / 5 + 1) };
}

int ymd_month_days(int year, int month)
{
    static const char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    assert(month >= 1 && month <= 12);
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

int ymd_weekday(int64_t days)
{
    /* 1970-01-01 was a Thursday. */
    int64_t rest = (days + 4) % 7;
    return (int)(rest < 0 ? rest + 7 : rest);
}
