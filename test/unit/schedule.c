/*
 * schedule.c - schedules read from JSON: defaults, every refusal with its field, and the text that
 * is stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "model/schedule.h"

#include <stdio.h>

#include "base/text.h"
#include "base/world.h"
#include "check.h"

/* 2026-11-15T08:00:00Z. */
#define NOW_US (INT64_C(1794729600) * SEC_US)

static struct arena a;
static const struct schedule_limits limits = { .input_len_max = 64 };

static struct json *parsed(const char *text)
{
    struct json *v;
    struct pawl_err err;
    arena_release(&a);
    arena_init(&a, 1 << 20);
    OK(json_parse(&a, bytes_of(text), &v, &err), &err);
    return v;
}

/* As a PUT does it at NOW_US. */
static enum pawl_status read(const char *text, struct schedule *out, struct pawl_err *err)
{
    AUTO(zone_end) struct zone *z = NULL;
    enum pawl_status st = schedule_read(&a, parsed(text), &limits, out, err);
    if (st == PAWL_OK)
        st = zone_load(NULL, out->zone, &z, err);
    return st == PAWL_OK ? schedule_rule_check(&out->rule, z, NOW_US, err) : st;
}

#define CALL "\"call\":{\"type\":\"report\"}"

TEST(defaults)
{
    struct schedule s;
    struct pawl_err err;
    OK(read("{\"cron\":\"0 3 * * *\"," CALL "}", &s, &err), &err);
    EQ_PTR(s.name.data, NULL);
    TRUE(bytes_eq(s.cron, BYTES("0 3 * * *")));
    TRUE(bytes_eq(s.zone, BYTES("UTC")));
    TRUE(bytes_eq(s.call.type, BYTES("report")));
    EQ_PTR(s.call.method.data, NULL);
    EQ_INT(s.catch_up, CATCH_UP_LAST);
    EQ_INT(s.catch_up_for_us, 3600 * SEC_US);
    EQ_INT(s.overlap, OVERLAP_ALLOW);
    EQ_INT(s.jitter_us, 0);
    EQ_INT(s.rule.starts_us, 0);
    EQ_INT(s.rule.ends_us, 0);
    TRUE(!s.paused && !s.paused_given);
}

TEST(every_field)
{
    struct schedule s;
    struct pawl_err err;
    OK(read("{\"name\":\"n\",\"cron\":null,\"every\":1.5,\"at\":null,\"zone\":\"Europe/Berlin\","
            "\"call\":{\"type\":\"t\",\"delay\":2,\"expires_in\":3},\"catch_up\":\"all\","
            "\"catch_up_for\":0,\"overlap\":\"replace\",\"jitter\":86400,"
            "\"starts_at\":\"2026-11-15T09:00:00+01:00\",\"ends_at\":\"2026-11-15T08:00:02Z\","
            "\"paused\":false}",
            &s, &err),
       &err);
    TRUE(bytes_eq(s.name, BYTES("n")));
    EQ_INT(s.rule.every_us, 1500000);
    EQ_INT(s.call.delay_us, 2 * SEC_US);
    EQ_INT(s.call.expires_in_us, 3 * SEC_US);
    EQ_INT(s.catch_up, CATCH_UP_ALL);
    EQ_INT(s.catch_up_for_us, 0);
    EQ_INT(s.overlap, OVERLAP_REPLACE);
    EQ_INT(s.jitter_us, 86400 * SEC_US);
    EQ_INT(s.rule.starts_us, NOW_US);
    EQ_INT(s.rule.ends_us, NOW_US + 2 * SEC_US);
    TRUE(!s.paused && s.paused_given);
}

/* 1970 is a time like others, also where 0 means that none was given. */
TEST(an_interval_counts_from_1970)
{
    struct schedule s;
    struct pawl_err err;
    OK(read("{\"every\":60,\"starts_at\":\"1970-01-01T00:00:00Z\"," CALL "}", &s, &err), &err);
    EQ_INT(s.rule.starts_us, 0);
    EQ_STATUS(read("{\"every\":60,\"ends_at\":\"1970-01-01T00:00:00Z\"," CALL "}", &s, &err),
              PAWL_INVALID, &err);
    HAS_STR(err.text, "ends_at");
}

TEST(times_are_sorted_and_kept_once)
{
    struct schedule s;
    struct pawl_err err;
    OK(read("{\"at\":[\"2026-11-15T09:00:00Z\",\"2020-01-01T00:00:00Z\","
            "\"2026-11-15T10:00:00+01:00\"]," CALL "}",
            &s, &err),
       &err);
    EQ_INT(s.rule.n_at, 2);
    EQ_INT(s.rule.at_us[0], INT64_C(1577836800) * SEC_US);
    EQ_INT(s.rule.at_us[1], NOW_US + 3600 * SEC_US);
}

/* Each names its field; the sentence is part of the contract only up to there. */
TEST(refusals_name_the_field)
{
    static const struct {
        const char *text, *begins;
    } cases[] = {
        { "[]", "a schedule must be a JSON object" },
        { "{" CALL "}", "field \"cron\": is missing; a schedule has one of cron, every and at" },
        { "{\"cron\":null," CALL "}", "field \"cron\": is missing" },
        { "{\"cron\":\"* * * * *\",\"every\":5," CALL "}",
          "field \"every\": is given together with \"cron\"" },
        { "{\"cron\":\"* * * * *\",\"at\":[\"2030-01-01T00:00:00Z\"]," CALL "}",
          "field \"at\": is given together with \"cron\"" },
        { "{\"every\":5,\"at\":[\"2030-01-01T00:00:00Z\"]," CALL "}",
          "field \"at\": is given together with \"every\"" },
        { "{\"cron\":7," CALL "}", "field \"cron\": is 7, not a string" },
        { "{\"cron\":\"\"," CALL "}", "field \"cron\": " },
        { "{\"cron\":\"* * * *\"," CALL "}", "field \"cron\": " },
        { "{\"cron\":\"* * * * * * *\"," CALL "}", "field \"cron\": " },
        { "{\"cron\":\"0 24 * * *\"," CALL "}", "field \"cron\": \"24\" at column 3" },
        { "{\"cron\":\"60 * * * *\"," CALL "}", "field \"cron\": \"60\" at column 1" },
        { "{\"cron\":\"0 0 31 2 *\"," CALL "}", "field \"cron\": " },
        { "{\"cron\":\"0 0 * FOO *\"," CALL "}", "field \"cron\": \"FOO\" at column 7" },
        { "{\"cron\":\"@often\"," CALL "}", "field \"cron\": \"@often\" at column 1" },
        { "{\"cron\":\"0 0 1 1 *\",\"starts_at\":\"2027-02-01T00:00:00Z\","
          "\"ends_at\":\"2027-12-31T00:00:00Z\"," CALL "}",
          "field \"cron\": has no tick in the future" },
        { "{\"every\":0.999999," CALL "}", "field \"every\": is 0.999999, not in 1.." },
        { "{\"every\":\"5\"," CALL "}", "field \"every\": is \"5\", not a number of seconds" },
        { "{\"every\":1e300," CALL "}", "field \"every\": is 1e300, not in 1.." },
        { "{\"at\":\"2030-01-01T00:00:00Z\"," CALL "}", "field \"at\": is \"2030" },
        { "{\"at\":[]," CALL "}", "field \"at\": is empty" },
        { "{\"at\":[\"2030-01-01T00:00:00Z\",\"tomorrow\"]," CALL "}",
          "field \"at\": item 2 is \"tomorrow\", not a time" },
        { "{\"at\":[5]," CALL "}", "field \"at\": item 1 is 5, not a time" },
        { "{\"at\":[\"2026-11-15T08:00:00Z\"]," CALL "}",
          "field \"at\": has no tick in the future" },
        { "{\"at\":[\"2027-01-01T00:00:00Z\"],\"ends_at\":\"2026-12-01T00:00:00Z\"," CALL "}",
          "field \"at\": has no tick in the future, " },
        { "{\"at\":[\"2027-01-01T00:00:00Z\"],\"starts_at\":\"2027-01-01T00:00:01Z\"," CALL "}",
          "field \"at\": has no tick in the future, " },
        { "{\"every\":5,\"starts_at\":\"2027-01-01T00:00:00Z\",\"ends_at\":"
          "\"2027-01-01T00:00:00Z\"," CALL "}",
          "field \"ends_at\": is not after starts_at" },
        { "{\"every\":5,\"ends_at\":\"2026-11-15T08:00:00Z\"," CALL "}",
          "field \"ends_at\": is not in the future" },
        { "{\"every\":5,\"ends_at\":\"soon\"," CALL "}", "field \"ends_at\": is \"soon\"" },
        { "{\"every\":5,\"zone\":\"\"," CALL "}", "field \"zone\": " },
        { "{\"every\":5,\"zone\":\"../etc/passwd\"," CALL "}", "field \"zone\": " },
        { "{\"every\":5,\"zone\":\"/etc/localtime\"," CALL "}", "field \"zone\": " },
        { "{\"every\":5,\"zone\":null," CALL "}", "field \"zone\": is null, not a string" },
        { "{\"every\":5,\"catch_up\":\"some\"," CALL "}",
          "catch_up \"some\" is unknown; expected last, none or all" },
        { "{\"every\":5,\"overlap\":\"queue\"," CALL "}",
          "overlap \"queue\" is unknown; expected allow, skip, wait or replace" },
        { "{\"every\":5,\"catch_up_for\":-1," CALL "}",
          "field \"catch_up_for\": is -1, not in 0.." },
        { "{\"every\":5,\"jitter\":86400.1," CALL "}",
          "field \"jitter\": is 86400.1, not in 0..86400 seconds" },
        { "{\"every\":5,\"paused\":1," CALL "}", "field \"paused\": is 1, not true or false" },
        { "{\"every\":5,\"name\":\"\"," CALL "}", "field \"name\": " },
        { "{\"every\":5,\"timezone\":\"UTC\"," CALL "}",
          "field \"timezone\": is unknown; expected" },
        { "{\"every\":5,\"every\":5," CALL "}", "field \"every\": is given twice" },
        { "{\"every\":5}", "field \"call\": is missing" },
        { "{\"every\":5,\"call\":null}", "field \"call\": is null, not an object" },
        { "{\"every\":5,\"call\":{}}", "field \"call.type\": is missing" },
        { "{\"every\":5,\"call\":{\"type\":\"\"}}", "field \"call.type\": " },
        { "{\"every\":5,\"call\":{\"type\":\"t\",\"id\":\"x\"}}",
          "field \"call.id\": is unknown; expected type, method" },
        { "{\"every\":5,\"call\":{\"type\":\"t\",\"run_at\":null}}",
          "field \"call.run_at\": is unknown" },
        { "{\"every\":5,\"call\":{\"type\":\"t\",\"expires_at\":null}}",
          "field \"call.expires_at\": is unknown" },
        { "{\"every\":5,\"call\":{\"type\":\"t\",\"on_timeout\":\"wait\"}}",
          "field \"call.on_timeout\": is unknown" },
        { "{\"every\":5,\"call\":{\"type\":\"t\",\"on_dead\":\"x\"}}",
          "call.on_dead \"x\" is unknown; expected skip or block" },
        { "{\"every\":5,\"call\":{\"type\":\"t\",\"backoff\":{\"base\":-1}}}",
          "field \"call.backoff.base\": is -1" },
        { "{\"every\":5,\"call\":{\"type\":\"t\",\"backoff\":{\"factor\":0}}}",
          "field \"call.backoff.factor\": is 0" },
        { "{\"every\":5,\"call\":{\"type\":\"t\",\"tags\":{\"a\":1}}}", "field \"call.tags\": " },
        { "{\"every\":5,\"call\":{\"type\":\"t\",\"input\":1,\"input_base64\":\"AA==\"}}",
          "field \"call.input_base64\": is given together with \"input\"" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct schedule s;
        struct pawl_err err = { 0 };
        EQ_INT(read(cases[i].text, &s, &err), PAWL_INVALID);
        if (strncmp(err.text, cases[i].begins, strlen(cases[i].begins)) != 0)
            EQ_STR(err.text, cases[i].begins);
    }
}

TEST(an_input_has_a_limit)
{
    struct schedule s;
    struct pawl_err err = { 0 };
    char text[200];
    for (int digits = 62; digits <= 63; digits++) {
        snprintf(text, sizeof text, "{\"every\":5,\"call\":{\"type\":\"t\",\"input\":\"%0*d\"}}",
                 digits, 1);
        enum pawl_status st = read(text, &s, &err);
        EQ_INT(st, digits == 62 ? PAWL_OK : PAWL_TOO_LARGE);
    }
    EQ_STR(err.text, "field \"call.input\": is 65 bytes, limit 64");
}

TEST(at_has_a_limit)
{
    for (int n = 1000; n <= 1001; n++) {
        struct schedule s;
        struct pawl_err err = { 0 };
        struct buf b;
        buf_init(&b, 1 << 20);
        buf_add_text(&b, "{\"at\":[");
        for (int i = 0; i < n; i++)
            buf_addf(&b, "%s\"2030-01-01T00:%02d:%02dZ\"", i ? "," : "", i / 60, i % 60);
        buf_addf(&b, "],%s}%c", CALL, 0);
        enum pawl_status st = read(b.data, &s, &err);
        EQ_INT(st, n == 1000 ? PAWL_OK : PAWL_INVALID);
        if (n > 1000)
            EQ_STR(err.text, "field \"at\": has 1001 times, limit 1000");
        buf_release(&b);
    }
}

TEST(the_stored_text_reads_as_the_same)
{
    static const char *const cases[][2] = {
        { "{\"call\":{\"type\":\"t\",\"priority\":0,\"tags\":{}},\"every\":60.0,\"paused\":true,"
          "\"name\":\"x\"}",
          "{\"every\":60,\"zone\":\"UTC\",\"call\":{\"type\":\"t\"},\"catch_up\":\"last\","
          "\"catch_up_for\":3600,\"overlap\":\"allow\",\"jitter\":0}" },
        { "{\"cron\":\"0 3 * * 1-5\",\"zone\":\"Europe/Berlin\",\"overlap\":\"wait\","
          "\"jitter\":0.25,"
          "\"starts_at\":\"2027-01-01T00:00:00+01:00\",\"ends_at\":\"2028-01-01T00:00:00Z\","
          "\"catch_up\":\"none\",\"catch_up_for\":1,\"call\":{\"type\":\"t\",\"key\":\"k\\\"\","
          "\"input\": {\"b\": 1, \"a\":[ ]},\"tags\":{\"a\":\"b\"},\"backoff\":{\"max\":9,"
          "\"factor\":1.5},"
          "\"timeout\":0.5,\"on_dead\":\"block\",\"max_attempts\":1,\"delay\":1,\"expires_in\":0}}",
          "{\"cron\":\"0 3 * * 1-5\",\"zone\":\"Europe/Berlin\",\"call\":{\"type\":\"t\","
          "\"delay\":1,"
          "\"max_attempts\":1,\"timeout\":0.5,\"expires_in\":0.000001,\"key\":\"k\\\"\","
          "\"on_dead\":\"block\",\"input\":{\"b\": 1, \"a\":[ ]},\"backoff\":{\"factor\":1.5,"
          "\"max\":9},"
          "\"tags\":{\"a\":\"b\"}},\"catch_up\":\"none\",\"catch_up_for\":1,\"overlap\":\"wait\","
          "\"jitter\":0.25,\"starts_at\":\"2026-12-31T23:00:00.000000Z\","
          "\"ends_at\":\"2028-01-01T00:00:00.000000Z\"}" },
        { "{\"at\":[\"2027-01-01T00:00:00Z\"],\"call\":{\"type\":\"t\",\"input_base64\":\"AP8=\","
          "\"tags\":{\"b\":\"1\",\"a\":\"2\"},\"needs\":[\"gpu\",\"big\",\"gpu\"]}}",
          "{\"at\":[\"2027-01-01T00:00:00.000000Z\"],\"zone\":\"UTC\",\"call\":{\"type\":\"t\","
          "\"input_base64\":\"AP8=\",\"tags\":{\"a\":\"2\",\"b\":\"1\"},"
          "\"needs\":[\"big\",\"gpu\"]},"
          "\"catch_up\":\"last\",\"catch_up_for\":3600,"
          "\"overlap\":\"allow\",\"jitter\":0}" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct schedule s, again;
        struct bytes text, twice;
        struct pawl_err err;
        OK(read(cases[i][0], &s, &err), &err);
        OK(schedule_write(&a, &s, &text, &err), &err);
        EQ_STR(arena_text(&a, text), cases[i][1]);
        OK(schedule_stored(&a, BYTES("name"), text, &again, &err), &err);
        TRUE(bytes_eq(again.name, BYTES("name")));
        OK(schedule_write(&a, &again, &twice, &err), &err);
        TRUE(bytes_eq(text, twice));
    }
}

/* A list of times that are all past was accepted when one was still to come. */
TEST(what_is_stored_may_be_over)
{
    struct schedule s;
    struct pawl_err err;
    parsed("0");
    OK(schedule_stored(
           &a, BYTES("n"),
           BYTES("{\"at\":[\"2001-01-01T00:00:00.000000Z\"],\"call\":{\"type\":\"t\"}}"), &s, &err),
       &err);
    EQ_INT(s.rule.n_at, 1);
    EQ_INT(schedule_stored(&a, BYTES("n"), BYTES("{\"every\":5}"), &s, &err), PAWL_BROKEN);
    EQ_STR(err.text, "schedule \"n\": its stored text cannot be read: field \"call\": is missing");
    EQ_INT(schedule_stored(&a, BYTES("n"), BYTES("{"), &s, &err), PAWL_BROKEN);
}

TEST(a_flat_object_has_the_call_beside_the_rule)
{
    struct schedule s, nested;
    struct bytes one, other;
    struct pawl_err err = { 0 };
    struct json *v =
        parsed("{\"every\":5,\"type\":\"t\",\"key\":\"k\",\"overlap\":\"skip\",\"input\":[1]}");
    OK(schedule_read_flat(&a, v, &limits, &s, &err), &err);
    OK(schedule_write(&a, &s, &one, &err), &err);
    OK(json_parse(&a,
                  BYTES("{\"every\":5,\"overlap\":\"skip\",\"call\":{\"type\":\"t\",\"key\":\"k\","
                        "\"input\":[1]}}"),
                  &v, &err),
       &err);
    OK(schedule_read(&a, v, &limits, &nested, &err), &err);
    OK(schedule_write(&a, &nested, &other, &err), &err);
    EQ_STR(arena_text(&a, one), arena_text(&a, other));
    EQ_INT(schedule_read_flat(&a, parsed("{\"every\":5,\"type\":\"t\",\"id\":\"x\"}"), &limits, &s,
                              &err),
           PAWL_INVALID);
    TRUE(strncmp(err.text, "field \"id\": is unknown", 22) == 0);
    EQ_INT(schedule_read_flat(&a, parsed("{\"every\":5}"), &limits, &s, &err), PAWL_INVALID);
    EQ_STR(err.text, "field \"type\": is missing");
    EQ_INT(schedule_read_flat(&a, parsed("{\"every\":5,\"type\":\"t\",\"call\":{}}"), &limits, &s,
                              &err),
           PAWL_INVALID);
    TRUE(strncmp(err.text, "field \"call\": is unknown", 24) == 0);
}
