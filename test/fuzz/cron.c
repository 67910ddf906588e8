/*
 * cron.c - fuzz: any cron expression is refused with a sentence that has a column, or its ticks
 * ascend, match, and are the same forwards, backwards and counted.
 *
 * The first byte chooses a zone, the next four a time; the rest is the expression.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/ymd.h"
#include "model/cron.h"
#include "made_zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define ZONES 6

static struct zone *zone_no(int i)
{
    static struct zone *zones[ZONES];
    static const char *const rules[ZONES] = {
        "UTC0",
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
        "AAA8BBB-16,J100/0,J200/0", /* a whole day, forward and back */
        "EST5EDT,M3.2.0,M11.1.0",
        "AAA0:20:30BBB,J100,J100/5", /* seconds; back after 5 hours */
    };
    char made[MADE_ZONE_MAX];
    if (!zones[i])
        CHECK(zone_parse(BYTES("Test/Zone"), "test", made_zone(bytes_of(rules[i]), made), &zones[i],
                         NULL) == PAWL_OK);
    return zones[i];
}

/* Does a local time match, field by field? Without names for the days that count from an end. */
static bool matches(const struct cron *c, int64_t local_s)
{
    int64_t day = floor_div(local_s, 86400);
    int s = (int)(local_s - day * 86400), w = ymd_weekday(day);
    struct ymd d = ymd_of(day);
    int len = ymd_month_days(d.year, d.month);
    bool on_day = c->day >> d.day & 1 || (c->last_day && d.day == len);
    bool on_weekday = c->weekday >> w & 1 || c->weekday_no[(d.day - 1) / 7 + 1] >> w & 1 ||
                      (c->weekday_no[0] >> w & 1 && d.day + 7 > len);
    bool counts =
        c->any_day ? c->any_weekday || on_weekday : on_day || (!c->any_weekday && on_weekday);
    return counts && c->month >> d.month & 1 && c->hour >> s / 3600 & 1 &&
           c->minute >> s / 60 % 60 & 1 && c->second >> s % 60 & 1;
}

static void ticks(const struct cron *c, const struct zone *z, int64_t from_s)
{
    int64_t before_s = from_s, at_s, prev_s;
    for (int n = 1; n <= 12 && cron_next(c, z, before_s, &at_s); n++, before_s = at_s) {
        int64_t local_s = at_s + zone_offset(z, at_s);
        CHECK(at_s > before_s);
        CHECK(matches(c, local_s) || (!c->elapsed && cron_fit(c, z, at_s) == ZONE_GAP));
        CHECK(cron_count(c, z, from_s, at_s) == n);
        CHECK(cron_count(c, z, before_s, at_s - 1) == 0);
        CHECK(cron_prev(c, z, at_s, &prev_s) && prev_s == at_s);
        if (cron_prev(c, z, at_s - 1, &prev_s))
            CHECK(n == 1 ? prev_s <= before_s : prev_s == before_s);
        /* Nothing was left out: no time between them matches for the first time. */
        for (int64_t s = before_s + 1; s < at_s; s += (at_s - before_s) / 50 + 1) {
            int64_t l = s + zone_offset(z, s);
            CHECK(!matches(c, l) || (!c->elapsed && zone_reached(z, s - 1) >= l));
        }
    }
    if (cron_next_past(c, z, from_s, from_s + 50000, &at_s))
        CHECK(at_s > from_s && at_s + zone_offset(z, at_s) > from_s + 50000);
}

static void sentence(struct bytes text, const struct pawl_err *err)
{
    struct buf b;
    buf_init(&b, 64 << 10);
    json_add_string(&b, bytes_of(err->text));
    CHECK(json_check(buf_bytes(&b), NULL) == PAWL_OK);
    buf_release(&b);
    CHECK(strncmp(err->text, "field \"cron\": ", 14) == 0);
    const char *column = NULL;
    for (const char *at = err->text; (at = strstr(at, "\" at column ")) != NULL; at++)
        column = at; /* the last one: the text that is quoted may say the same */
    if (column)
        CHECK(strtoul(column + 12, NULL, 10) >= 1 &&
              strtoul(column + 12, NULL, 10) <= text.len + 1);
    else
        CHECK(strstr(err->text, "is empty") || strstr(err->text, "bytes, limit"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct cron c;
    struct pawl_err err = { 0 };
    uint32_t time;
    if (len < 5)
        return 0;
    char *copy = malloc(len);
    memcpy(copy, data + 5, len - 5);
    memcpy(&time, data + 1, sizeof time);
    struct bytes text = { copy, len - 5 };
    if (cron_parse(text, &c, &err) == PAWL_OK) {
        cron_note(&c);
        CHECK(cron_ever_fires(&c));
        ticks(&c, zone_no(data[0] % ZONES), (int64_t)time);
    } else {
        sentence(text, &err);
    }
    free(copy);
    return 0;
}
