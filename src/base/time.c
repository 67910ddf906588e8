/*
 * time.c - times and durations as text (text.h). Pure.
 *
 * The calendar is ymd.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/limits.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/world.h"
#include "base/ymd.h"

#define DAY_US (86400 * SEC_US)

static char *put(char *at, int64_t n, int digits)
{
    for (int i = digits - 1; i >= 0; i--, n /= 10)
        at[i] = (char)('0' + n % 10);
    return at + digits;
}

void time_text(int64_t us, char out[TIME_TEXT_LEN + 1])
{
    us = MIN(MAX(us, TIME_FIRST_US), TIME_LAST_US);
    int64_t days = floor_div(us, DAY_US), rest = us - days * DAY_US;
    struct ymd d = ymd_of(days);
    int64_t sec = rest / SEC_US;
    const struct {
        int64_t n;
        int digits;
        char after;
    } field[] = { { d.year, 4, '-' },       { d.month, 2, '-' },       { d.day, 2, 'T' },
                  { sec / 3600, 2, ':' },   { sec / 60 % 60, 2, ':' }, { sec % 60, 2, '.' },
                  { rest % SEC_US, 6, 'Z' } };
    char *at = out;
    for (size_t i = 0; i < COUNT_OF(field); i++) {
        at = put(at, field[i].n, field[i].digits);
        *at++ = field[i].after;
    }
    *at = 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Take exactly `digits` digits, between low and high, from the front of *t. */
static bool take(struct bytes *t, int digits, int low, int high, int *out)
{
    int n = 0;
    if (t->len < (size_t)digits)
        return false;
    for (int i = 0; i < digits; i++) {
        if (!is_digit(t->data[i]))
            return false;
        n = n * 10 + (t->data[i] - '0');
    }
    *t = (struct bytes){ t->data + digits, t->len - (size_t)digits };
    *out = n;
    return n >= low && n <= high;
}

/* Take one of the characters in `any`. */
static bool take_char(struct bytes *t, const char *any)
{
    if (t->len == 0 || !t->data[0] || !strchr(any, t->data[0]))
        return false;
    *t = (struct bytes){ t->data + 1, t->len - 1 };
    return true;
}

/* Take `.` and 1 to 9 digits, as microseconds; without `.` 0. */
static bool take_fraction(struct bytes *t, int64_t *out)
{
    *out = 0;
    if (!take_char(t, "."))
        return true;
    int64_t scale = 100000;
    size_t n = 0;
    for (; n < t->len && is_digit(t->data[n]); n++, scale /= 10)
        *out += (t->data[n] - '0') * scale;
    *t = (struct bytes){ t->data + n, t->len - n };
    return n >= 1 && n <= 9;
}

/* Take Z or +hh:mm, as minutes east. */
static bool take_offset(struct bytes *t, int *out)
{
    *out = 0;
    if (take_char(t, "Zz"))
        return true;
    bool west = t->len > 0 && t->data[0] == '-';
    int hours, minutes;
    if (!take_char(t, "+-") || !take(t, 2, 0, 23, &hours) || !take_char(t, ":") ||
        !take(t, 2, 0, 59, &minutes))
        return false;
    *out = (hours * 60 + minutes) * (west ? -1 : 1);
    return true;
}

static bool take_date(struct bytes *t, struct ymd *d)
{
    return take(t, 4, 1, 9999, &d->year) && take_char(t, "-") && take(t, 2, 1, 12, &d->month) &&
           take_char(t, "-") && take(t, 2, 1, ymd_month_days(d->year, d->month), &d->day);
}

bool time_parse(struct bytes text, int64_t *out_us)
{
    struct ymd d;
    int hour, minute, second, east;
    int64_t fraction;
    /* Second 60 is refused: the stored clock has none. */
    if (!take_date(&text, &d) || !take_char(&text, "Tt") || !take(&text, 2, 0, 23, &hour) ||
        !take_char(&text, ":") || !take(&text, 2, 0, 59, &minute) || !take_char(&text, ":") ||
        !take(&text, 2, 0, 59, &second) || !take_fraction(&text, &fraction) ||
        !take_offset(&text, &east) || text.len > 0)
        return false;
    int64_t minutes = ymd_days(d) * 1440 + hour * 60 + minute - east;
    int64_t us = (minutes * 60 + second) * SEC_US + fraction;
    if (us < TIME_FIRST_US || us > TIME_LAST_US)
        return false;
    *out_us = us;
    return true;
}

/* ---- Durations ------------------------------------------------------------------------------- */

static const struct unit {
    const char *name;
    int64_t us;
} units[] = { { "d", DAY_US },
              { "h", 3600 * SEC_US },
              { "m", 60 * SEC_US },
              { "s", SEC_US },
              { "ms", MS_US } };

static int64_t unit_us(struct bytes name)
{
    if (name.len == 0)
        return SEC_US;
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (bytes_eq(name, bytes_of(units[i].name)))
            return units[i].us;
    return 0;
}

bool duration_parse(struct bytes text, int64_t *out_us)
{
    /* Fraction digits after the 9th are dropped: below a microsecond in all units but h and d. */
    int64_t whole = 0, fraction = 0, scale = 1;
    size_t i = 0;
    for (; i < text.len && is_digit(text.data[i]) && whole <= DURATION_MAX_US; i++)
        whole = whole * 10 + (text.data[i] - '0');
    if (i == 0 || whole > DURATION_MAX_US)
        return false;
    if (i < text.len && text.data[i] == '.') {
        size_t from = ++i;
        for (; i < text.len && is_digit(text.data[i]); i++)
            if (scale < SEC_US * 1000) {
                fraction = fraction * 10 + (text.data[i] - '0');
                scale *= 10;
            }
        if (i == from)
            return false;
    }
    int64_t unit = unit_us((struct bytes){ text.data + i, text.len - i });
    if (unit == 0)
        return false;
    __extension__ __int128 us = (__int128)whole * unit + (__int128)fraction * unit / scale;
    if (us > DURATION_MAX_US)
        return false;
    *out_us = (int64_t)us;
    return true;
}

void duration_text(int64_t us, char out[32])
{
    const char *sign = us < 0 ? "-" : "";
    uint64_t left = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (left > 0 && left % (uint64_t)units[i].us == 0) {
            snprintf(out, 32, "%s%llu%s", sign, (unsigned long long)(left / (uint64_t)units[i].us),
                     units[i].name);
            return;
        }
    if (left == 0) {
        snprintf(out, 32, "0s");
        return;
    }
    int n = snprintf(out, 32, "%s%llu.%06llu", sign, (unsigned long long)(left / SEC_US),
                     (unsigned long long)(left % SEC_US));
    while (n > 0 && out[n - 1] == '0')
        n--;
    snprintf(out + n, 32 - (size_t)n, "s");
}
