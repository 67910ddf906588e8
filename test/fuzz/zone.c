/*
 * zone.c - fuzz: the file of a time zone is refused with a sentence, or every question about it has
 * an answer that agrees with the others.
 *
 * An input that begins with `T` is a file; any other one is a rule, put into a file.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/zone.h"
#include "made_zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A span contains its instant; the spans beside it begin and end where it ends and begins. */
static void span(const struct zone *z, int64_t at_s)
{
    struct zone_span s = zone_span(z, at_s);
    CHECK(s.from_s <= at_s && at_s < s.to_s);
    CHECK(s.offset_s > -ZONE_OFFSET_MAX && s.offset_s < ZONE_OFFSET_MAX);
    CHECK(zone_offset(z, at_s) == s.offset_s);
    if (s.to_s <= ZONE_LAST_S)
        CHECK(zone_span(z, s.to_s).from_s == s.to_s && zone_offset(z, s.to_s) != s.offset_s);
    if (s.from_s >= ZONE_FIRST_S)
        CHECK(zone_span(z, s.from_s - 1).to_s == s.from_s);
}

/* The first instant of a local time is the first one at which the clock has come to it. */
static void local(const struct zone *z, int64_t local_s)
{
    struct zone_local l = zone_local(z, local_s);
    CHECK(zone_reached(z, l.first_s) >= local_s);
    CHECK(zone_reached(z, l.first_s - 1) < local_s);
    CHECK((l.fit == ZONE_GAP) == (l.first_s + zone_offset(z, l.first_s) != local_s));
    CHECK((l.fit == ZONE_FOLD) == (l.second_s > l.first_s));
    if (l.fit != ZONE_GAP)
        CHECK(l.second_s + zone_offset(z, l.second_s) == local_s);
}

static void questions(const struct zone *z)
{
    int64_t at_s = ZONE_FIRST_S + ZONE_REPEAT_MAX, last_s = ZONE_LAST_S - ZONE_REPEAT_MAX;
    for (int64_t s = at_s; s < last_s; s += INT64_C(7000000007)) {
        span(z, s);
        local(z, s);
    }
    for (int n = 0; n < 60 && zone_next_change(z, at_s, &at_s) && at_s < last_s; n++) {
        span(z, at_s);
        span(z, at_s - 1);
        for (int64_t s = at_s - 100000; s <= at_s + 100000; s += 20011)
            local(z, s);
        local(z, at_s + zone_offset(z, at_s - 1));
        local(z, at_s + zone_offset(z, at_s));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char made[MADE_ZONE_MAX];
    struct zone *z = NULL;
    struct pawl_err err = { 0 };
    if (len > 2048)
        return 0;
    struct bytes text = { (const char *)data, len };
    if (len < 1 || data[0] != 'T')
        text = made_zone(text, made);
    char *copy = malloc(text.len);
    memcpy(copy, text.data, text.len);
    enum pawl_status st =
        zone_parse(BYTES("Test/Zone"), "test", (struct bytes){ copy, text.len }, &z, &err);
    if (st == PAWL_OK) {
        questions(z);
    } else {
        struct buf b;
        buf_init(&b, 64 << 10);
        json_add_string(&b, bytes_of(err.text));
        CHECK(json_check(buf_bytes(&b), NULL) == PAWL_OK);
        buf_release(&b);
        CHECK(st == PAWL_BROKEN || st == PAWL_INVALID);
        CHECK(strncmp(err.text, "zone \"Test/Zone\": the file test ", 32) == 0);
    }
    zone_free(z);
    free(copy);
    return 0;
}
