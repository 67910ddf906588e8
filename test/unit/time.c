/*
 * time.c - the calendar compared with the C library's, RFC 3339 parsed strictly, durations in both
 * directions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <time.h>

#include "base/limits.h"
#include "base/text.h"
#include "base/world.h"
#include "check.h"

static int64_t at(const char *text)
{
    int64_t us = 0;
    if (!time_parse(bytes_of(text), &us))
        FAIL("not a time: %s", text);
    return us;
}

#define EQ_TIME(us, want)                                                                          \
    do {                                                                                           \
        char text_[TIME_TEXT_LEN + 1];                                                             \
        time_text(us, text_);                                                                      \
        EQ_STR(text_, want);                                                                       \
    } while (0)

TEST(known_times)
{
    EQ_TIME(0, "1970-01-01T00:00:00.000000Z");
    EQ_TIME(-1, "1969-12-31T23:59:59.999999Z");
    EQ_TIME(INT64_C(951782400000000), "2000-02-29T00:00:00.000000Z");
    EQ_TIME(INT64_C(951868799999999), "2000-02-29T23:59:59.999999Z");
    EQ_TIME(INT64_C(4107542400000000), "2100-03-01T00:00:00.000000Z");
    EQ_TIME(INT64_C(1794729600123456), "2026-11-15T08:00:00.123456Z");
}

TEST(the_first_the_last_and_beyond)
{
    EQ_TIME(TIME_FIRST_US, "0001-01-01T00:00:00.000000Z");
    EQ_TIME(TIME_FIRST_US - 1, "0001-01-01T00:00:00.000000Z");
    EQ_TIME(INT64_MIN, "0001-01-01T00:00:00.000000Z");
    EQ_TIME(TIME_LAST_US, "9999-12-31T23:59:59.999999Z");
    EQ_TIME(TIME_LAST_US + 1, "9999-12-31T23:59:59.999999Z");
    EQ_TIME(INT64_MAX, "9999-12-31T23:59:59.999999Z");
    EQ_INT(at("0001-01-01T00:00:00Z"), TIME_FIRST_US);
    EQ_INT(at("9999-12-31T23:59:59.999999999Z"), TIME_LAST_US);
}

TEST(agrees_with_the_c_library)
{
    for (int64_t day = -719162; day < 2932897; day++) {
        char got[TIME_TEXT_LEN + 1], want[64];
        time_t sec = (time_t)(day * 86400 + (day * 7919 % 86400 + 86400) % 86400);
        struct tm tm;
        gmtime_r(&sec, &tm);
        snprintf(want, sizeof want, "%04d-%02d-%02dT%02d:%02d:%02d.000000Z", tm.tm_year + 1900,
                 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
        time_text((int64_t)sec * SEC_US, got);
        EQ_STR(got, want);
        EQ_INT(at(got), (int64_t)sec * SEC_US);
    }
}

TEST(reads_rfc_3339)
{
    int64_t noon = at("2026-11-15T12:00:00Z");
    EQ_INT(at("2026-11-15t12:00:00z"), noon);
    EQ_INT(at("2026-11-15T13:30:00+01:30"), noon);
    EQ_INT(at("2026-11-15T00:00:00-12:00"), noon);
    EQ_INT(at("2026-11-16T11:59:00+23:59"), noon);
    EQ_INT(at("2026-11-15T12:00:00-00:00"), noon);
    EQ_INT(at("2026-11-15T12:00:00.1Z"), noon + 100000);
    EQ_INT(at("2026-11-15T12:00:00.000001Z"), noon + 1);
    EQ_INT(at("2026-11-15T12:00:00.0000019Z"), noon + 1);
    EQ_INT(at("2026-11-15T12:00:00.123456789+00:00"), noon + 123456);
    EQ_INT(at("2000-02-29T00:00:00Z"), at("2000-02-28T00:00:00Z") + 86400 * SEC_US);
    EQ_INT(at("2024-02-29T00:00:00Z") + 86400 * SEC_US, at("2024-03-01T00:00:00Z"));
}

TEST(refuses_what_is_no_time)
{
    static const char *const bad[] = {
        "",
        "2026-11-15",
        "2026-11-15T12:00:00",
        "2026-11-15 12:00:00Z",
        "2026-11-15T12:00Z",
        "2026-11-15T12:00:00.Z",
        "2026-11-15T12:00:00.1234567890Z",
        "2026-11-15T12:00:00ZZ",
        "2026-11-15T12:00:00Z ",
        " 2026-11-15T12:00:00Z",
        "2026-13-15T12:00:00Z",
        "2026-00-15T12:00:00Z",
        "2026-11-31T12:00:00Z",
        "2026-11-00T12:00:00Z",
        "2025-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2026-11-15T24:00:00Z",
        "2026-11-15T12:60:00Z",
        "2026-11-15T12:00:60Z",
        "0000-01-01T00:00:00Z",
        "2026-11-15T12:00:00+24:00",
        "2026-11-15T12:00:00+01:60",
        "2026-11-15T12:00:00+0100",
        "2026-11-15T12:00:00+1",
        "26-11-15T12:00:00Z",
        "2026-1-15T12:00:00Z",
        "-026-11-15T12:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "1794729600",
    };
    int64_t us = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (time_parse(bytes_of(bad[i]), &us))
            FAIL("taken for a time: %s", bad[i]);
    FALSE(time_parse(BYTES_NONE, &us));
    FALSE(time_parse(BYTES("2026-11-15T12:00:00\0Z"), &us));
    EQ_INT(us, 7);
}

/* ---- Durations ------------------------------------------------------------------------------- */

static int64_t lasts(const char *text)
{
    int64_t us = 0;
    if (!duration_parse(bytes_of(text), &us))
        FAIL("not a duration: %s", text);
    return us;
}

TEST(durations)
{
    EQ_INT(lasts("500ms"), 500000);
    EQ_INT(lasts("5s"), 5000000);
    EQ_INT(lasts("2m"), 120000000);
    EQ_INT(lasts("3h"), INT64_C(10800000000));
    EQ_INT(lasts("7d"), INT64_C(604800000000));
    EQ_INT(lasts("1.5s"), 1500000);
    EQ_INT(lasts("0.25"), 250000);
    EQ_INT(lasts("30"), 30000000);
    EQ_INT(lasts("0"), 0);
    EQ_INT(lasts("0.001ms"), 1);
    EQ_INT(lasts("0.0009ms"), 0);
    EQ_INT(lasts("1.5d"), INT64_C(129600000000));
    EQ_INT(lasts("0.1h"), 360000000);
    EQ_INT(lasts("0.1000000000000000000000000s"), 100000);
    EQ_INT(lasts("36600d"), DURATION_MAX_US);
    EQ_INT(lasts("3162240000"), DURATION_MAX_US);
    EQ_INT(lasts("3162240000.0000001"), DURATION_MAX_US);
}

TEST(refuses_what_is_no_duration)
{
    static const char *const bad[] = {
        "",
        "s",
        "-1s",
        "+1s",
        "1 s",
        " 1s",
        "1s ",
        "1.s",
        ".5s",
        "1e3",
        "1x",
        "1S",
        "1us",
        "1sm",
        "1..5s",
        "0x1",
        "36600.000001d",
        "3162240000.000001",
        "99999999999999999999999999999d",
        "36601d",
        "nan",
        "1,5s",
    };
    int64_t us = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (duration_parse(bytes_of(bad[i]), &us))
            FAIL("taken for a duration: %s", bad[i]);
    FALSE(duration_parse(BYTES_NONE, &us));
    EQ_INT(us, 7);
}

static const char *shown(int64_t us)
{
    static char text[32];
    duration_text(us, text);
    return text;
}

TEST(durations_are_shown_short)
{
    EQ_STR(shown(0), "0s");
    EQ_STR(shown(1), "0.000001s");
    EQ_STR(shown(1000), "1ms");
    EQ_STR(shown(1500000), "1500ms");
    EQ_STR(shown(1234560), "1.23456s");
    EQ_STR(shown(30 * SEC_US), "30s");
    EQ_STR(shown(90 * SEC_US), "90s");
    EQ_STR(shown(120 * SEC_US), "2m");
    EQ_STR(shown(7 * 86400 * SEC_US), "7d");
    EQ_STR(shown(-5 * SEC_US), "-5s");
    EQ_STR(shown(INT64_MIN), "-9223372036854.775808s");
}

TEST(durations_read_back_as_they_were)
{
    for (int i = 0; i < 20000; i++) {
        int64_t us = (int64_t)(world_dice(&world_real) % ((uint64_t)DURATION_MAX_US + 1));
        us /= i % 3 ? 1 : 86400;
        EQ_INT(lasts(shown(us)), us);
    }
}
