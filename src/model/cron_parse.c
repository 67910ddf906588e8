/*
 * cron_parse.c - from the text of a cron expression to its sets (cron.h). Pure, any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/limits.h"
#include "model/cron.h"

enum { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, PARTS };

static const struct part {
    const char *name, *expected;
    int low, high;
    const char *words; /* of three letters each, the first for `low` */
} parts[PARTS] = {
    [SECOND] = { "second", "0..59", 0, 59, "" },
    [MINUTE] = { "minute", "0..59", 0, 59, "" },
    [HOUR] = { "hour", "0..23", 0, 23, "" },
    [DAY] = { "day", "1..31 or L", 1, 31, "" },
    [MONTH] = { "month", "1..12 or JAN..DEC", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC" },
    [WEEKDAY] = { "weekday", "0..7 or SUN..SAT, MON#2 or FRIL", 0, 7, "SUNMONTUEWEDTHUFRISAT" },
};

struct scan {
    const char *start;       /* of the expression, for columns */
    const char *field, *end; /* of the field that is being read */
    const char *at;
    int part;
    enum pawl_status status; /* after a failure nothing more is read */
    struct pawl_err *err;
};

/* What a field means: the values of its items together. */
struct set {
    uint64_t bits;
    bool any, step;
};

/* Is this byte of UTF-8 not the first of its character? */
static bool goes_on(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The place as a reader counts it: in characters, from 1. */
static int column(const struct scan *s, const char *at)
{
    int n = 1;
    for (const char *p = s->start; p < at; p++)
        n += !goes_on(*p);
    return n;
}

/* `field "cron": "61" at column 3 ...`; the first failure counts. */
static void PRINTF_LIKE(4, 5)
    wrong(struct scan *s, const char *from, const char *to, const char *fmt, ...)
{
    char shown[TEXT_QUOTE_LEN], why[200];
    va_list args;
    if (s->status != PAWL_OK)
        return;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    text_quote((struct bytes){ from, (size_t)(to - from) }, shown);
    s->status = err_set(s->err, PAWL_INVALID, "field \"cron\": \"%s\" at column %d %s", shown,
                        column(s, from), why);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The text at a place that the grammar does not allow: a word, or one character; all of the field
 * when it ends there. */
static void unexpected(struct scan *s, const char *from)
{
    const struct part *p = &parts[s->part];
    const char *to = from;
    while (to < s->end && (is_digit(*to) || (upper(*to) >= 'A' && upper(*to) <= 'Z')))
        to++;
    if (to == from && from < s->end)
        for (to++; to < s->end && goes_on(*to);)
            to++;
    if (from == s->end)
        wrong(s, s->field, s->end, "ends where a value of %s is expected: %s", p->name,
              p->expected);
    else
        wrong(s, from, to,
              "is not understood in %s; expected %s, or `*`, lists, ranges and steps of them",
              p->name, p->expected);
}

static bool take(struct scan *s, char c)
{
    if (s->status != PAWL_OK || s->at == s->end || upper(*s->at) != c)
        return false;
    s->at++;
    return true;
}

static int take_number(struct scan *s, int low, int high, const char *what)
{
    const char *from = s->at;
    int n = 0;
    while (s->at < s->end && is_digit(*s->at)) {
        n = n < 10000 ? n * 10 + (*s->at - '0') : n;
        s->at++;
    }
    if (s->at == from)
        unexpected(s, from);
    else if (n < low || n > high)
        wrong(s, from, s->at, "is not in %d..%d, the range of %s", low, high, what);
    return s->status == PAWL_OK ? n : low;
}

/* A number or a name; *word says which. */
static int take_value(struct scan *s, bool *word)
{
    const struct part *p = &parts[s->part];
    *word = false;
    if (s->at < s->end && is_digit(*s->at))
        return take_number(s, p->low, p->high, p->name);
    for (int i = 0; s->end - s->at >= 3 && p->words[3 * i]; i++)
        if (upper(s->at[0]) == p->words[3 * i] && upper(s->at[1]) == p->words[3 * i + 1] &&
            upper(s->at[2]) == p->words[3 * i + 2]) {
            s->at += 3;
            *word = true;
            return p->low + i;
        }
    unexpected(s, s->at);
    return p->low;
}

/* `-b/n` and what else may follow a value or a star. */
static void take_range(struct scan *s, const char *from, int low, int high, bool one,
                       struct set *out)
{
    const struct part *p = &parts[s->part];
    int last = s->part == WEEKDAY ? 6 : p->high, step = 1;
    bool word;
    if (one && take(s, '-')) {
        high = take_value(s, &word);
        if (word && s->part == WEEKDAY && high == 0 && low > 0)
            high = 7; /* FRI-SUN */
        if (high < low)
            wrong(s, from, s->at, "is a range that runs backwards");
        one = false;
    }
    if (take(s, '/')) {
        step = take_number(s, 1, last - p->low, "its step");
        out->step = true;
        if (one) {
            low = s->part == WEEKDAY ? low % 7 : low;
            high = last;
        }
    }
    for (int n = low; s->status == PAWL_OK && n <= high; n += step)
        out->bits |= UINT64_C(1) << (s->part == WEEKDAY ? n % 7 : n);
}

static void take_item(struct scan *s, struct cron *c, struct set *out)
{
    const char *from = s->at;
    bool word;
    if (take(s, '*')) {
        take_range(s, from, parts[s->part].low, s->part == WEEKDAY ? 6 : parts[s->part].high, false,
                   out);
        out->any |= s->at == from + 1;
        return;
    }
    if (s->part == DAY && take(s, 'L')) {
        c->last_day = true;
        return;
    }
    int value = take_value(s, &word);
    if (s->part == WEEKDAY && take(s, 'L'))
        c->weekday_no[0] |= (uint8_t)(1 << value % 7);
    else if (s->part == WEEKDAY && take(s, '#'))
        c->weekday_no[take_number(s, 1, 5, "its week")] |= (uint8_t)(1 << value % 7);
    else
        take_range(s, from, value, value, true, out);
}

static struct set take_field(struct scan *s, struct cron *c)
{
    struct set set = { 0 };
    do
        take_item(s, c, &set);
    while (take(s, ','));
    if (s->at < s->end)
        unexpected(s, s->at);
    return set;
}

/* ---- The expression -------------------------------------------------------------------------- */

static struct bytes macro_text(struct bytes text)
{
    static const struct {
        const char *name, *text;
    } macros[] = {
        { "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },   { "@midnight", "0 0 * * *" },
        { "@weekly", "0 0 * * 0" },   { "@monthly", "0 0 1 * *" }, { "@yearly", "0 0 1 1 *" },
        { "@annually", "0 0 1 1 *" },
    };
    for (size_t i = 0; i < COUNT_OF(macros); i++) {
        size_t n = 0, len = strlen(macros[i].name);
        while (n < text.len && n < len && upper(text.data[n]) == upper(macros[i].name[n]))
            n++;
        if (n == len && n == text.len)
            return bytes_of(macros[i].text);
    }
    return BYTES_NONE;
}

/* Split into fields; returns how many there are, at most one more than PARTS. */
static int split(struct bytes text, struct bytes fields[PARTS + 1])
{
    int n = 0;
    for (size_t i = 0; i < text.len && n <= PARTS; n++) {
        size_t from = i;
        while (i < text.len && !is_blank(text.data[i]))
            i++;
        fields[n] = (struct bytes){ text.data + from, i - from };
        while (i < text.len && is_blank(text.data[i]))
            i++;
    }
    return n;
}

static void put(struct cron *c, int part, struct set set)
{
    switch (part) {
    case SECOND:
        c->second = set.bits;
        break;
    case MINUTE:
        c->minute = set.bits;
        break;
    case HOUR:
        c->hour = (uint32_t)set.bits;
        c->elapsed = set.any || set.step;
        break;
    case DAY:
        c->day = (uint32_t)set.bits;
        c->any_day = set.any;
        break;
    case MONTH:
        c->month = (uint32_t)set.bits;
        break;
    default:
        c->weekday = (uint8_t)set.bits;
        c->any_weekday = set.any;
    }
}

#define FIELDS_EXPECTED "expected five (minute hour day month weekday) or six (second first)"

static void read_fields(struct scan *s, struct bytes text, struct cron *c)
{
    struct bytes fields[PARTS + 1] = { 0 };
    int n = split(text, fields), first = PARTS - n;
    const char *end = text.data + text.len;
    if (n > PARTS)
        wrong(s, fields[PARTS].data, fields[PARTS].data + fields[PARTS].len,
              "is one field too many; " FIELDS_EXPECTED);
    if (n < PARTS - 1)
        wrong(s, text.data, end, "has %d field%s; " FIELDS_EXPECTED, n, plural(n));
    if (s->status != PAWL_OK)
        return;
    c->second = 1;
    for (s->part = first; s->part < PARTS && s->status == PAWL_OK; s->part++) {
        struct bytes f = fields[s->part - first];
        s->field = s->at = f.data;
        s->end = f.data + f.len;
        put(c, s->part, take_field(s, c));
    }
    if (s->status == PAWL_OK && !cron_ever_fires(c)) {
        struct bytes month = fields[MONTH - first];
        wrong(s, fields[DAY - first].data, month.data + month.len,
              "never comes: no such month has such a day");
    }
}

enum pawl_status cron_parse(struct bytes text, struct cron *out, struct pawl_err *err)
{
    struct scan s = { .start = text.data, .status = PAWL_OK, .err = err };
    struct cron c = { 0 };
    if (text.len > CRON_LEN_MAX)
        return err_set(err, PAWL_INVALID, "field \"cron\": is %zu bytes, limit %d", text.len,
                       CRON_LEN_MAX);
    while (text.len > 0 && is_blank(text.data[text.len - 1]))
        text.len--;
    while (text.len > 0 && is_blank(text.data[0]))
        text = (struct bytes){ text.data + 1, text.len - 1 };
    if (text.len == 0)
        return err_set(err, PAWL_INVALID, "field \"cron\": is empty; " FIELDS_EXPECTED);
    if (text.data[0] == '@') {
        struct bytes macro = macro_text(text);
        if (!macro.data)
            wrong(&s, text.data, text.data + text.len,
                  "is unknown; expected @hourly, @daily, @midnight, @weekly, @monthly, @yearly or "
                  "@annually");
        text = macro;
    }
    if (s.status == PAWL_OK)
        read_fields(&s, text, &c);
    if (s.status == PAWL_OK)
        *out = c;
    return s.status;
}

const char *cron_note(const struct cron *c)
{
    return c->any_day || c->any_weekday
               ? NULL
               : "day and weekday are both restricted: a day that matches either counts";
}
