/*
 * ymd.c - the calendar compared with the C library's, day by day from year 1 to 9999.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <time.h>

#include "base/ymd.h"
#include "check.h"

TEST(every_day_as_the_c_library)
{
    int month = 1, days = 0;
    for (int64_t day = -719162; day < 2932897; day++) {
        time_t sec = (time_t)(day * 86400);
        struct ymd d = ymd_of(day);
        struct tm tm;
        gmtime_r(&sec, &tm);
        EQ_INT(d.year, tm.tm_year + 1900);
        EQ_INT(d.month, tm.tm_mon + 1);
        EQ_INT(d.day, tm.tm_mday);
        EQ_INT(ymd_weekday(day), tm.tm_wday);
        EQ_INT(ymd_days(d), day);
        if (d.month != month)
            EQ_INT(days, ymd_month_days(month == 12 ? d.year - 1 : d.year, month));
        month = d.month;
        days = d.day;
    }
}

TEST(repeats_after_400_years)
{
    for (int64_t day = 0; day < 2 * YMD_CYCLE_DAYS; day += 13) {
        struct ymd near = ymd_of(day), far = ymd_of(day + YMD_CYCLE_DAYS);
        EQ_INT(far.year, near.year + 400);
        EQ_INT(far.month, near.month);
        EQ_INT(far.day, near.day);
        EQ_INT(ymd_weekday(day + YMD_CYCLE_DAYS), ymd_weekday(day));
    }
}

TEST(rounds_down)
{
    EQ_INT(floor_div(7, 7), 1);
    EQ_INT(floor_div(6, 7), 0);
    EQ_INT(floor_div(0, 7), 0);
    EQ_INT(floor_div(-1, 7), -1);
    EQ_INT(floor_div(-7, 7), -1);
    EQ_INT(floor_div(-8, 7), -2);
}
