/*
 * schedules_bad.c - every wrong value of a schedule, and every wrong combination, is refused with
 * its field; a wrong expression with the place of the mistake.
 *
 * Each body is sent as a PUT, as a dry run and, where it can be, as a preview: the three agree. A
 * case at the end knows the tables of fields: a new field needs a wrong value here.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "api/routes.h"
#include "base/limits.h"
#include "model/schedule.h"
#include "model/spec_json.h"
#include "web.h"

RUNS_ON(ENGINES_DURABLE)

/* `field` of the refusal, and a part of its message, which may be "". */
static void refused(struct web_answer a, const char *body, const char *field, const char *part)
{
    if (a.status != 400)
        FAIL("%s: %d, not 400: %.*s", body, a.status, BYTES_ARG(a.body));
    EQ_STR(AT(a, "error.code"), "INVALID");
    if (strcmp(AT(a, "error.field"), field) != 0)
        FAIL("%s: the field is %s, not %s", body, AT(a, "error.field"), field);
    HAS_STR(AT(a, "error.message"), part);
    EQ_STR(AT(a, "error.retry"), "never");
}

static void put_refused(struct web *w, const char *body, const char *field, const char *part)
{
    refused(web_ask(w, "PUT", "/v1/schedules/s", body), body, field, part);
    refused(web_ask(w, "PUT", "/v1/schedules/s?dry_run=true", body), body, field, part);
}

static void nothing_is_stored(struct web *w)
{
    EQ_STR(AT(GET(w, "/v1/schedules"), "schedules"), "[]");
}

/* ---- Expressions ----------------------------------------------------------------------------- */

static const struct {
    const char *cron;
    int column;        /* of the mistake */
    const char *quote; /* what stands there */
    const char *why;   /* behind it */
} expressions[] = {
    /* One value after the other is out of its range. */
    { "60 * * * *", 1, "60", "is not in 0..59, the range of minute" },
    { "* 24 * * *", 3, "24", "is not in 0..23, the range of hour" },
    { "* * 0 * *", 5, "0", "is not in 1..31, the range of day" },
    { "* * 32 * *", 5, "32", "is not in 1..31, the range of day" },
    { "* * * 0 *", 7, "0", "is not in 1..12, the range of month" },
    { "* * * 13 *", 7, "13", "is not in 1..12, the range of month" },
    { "* * * * 8", 9, "8", "is not in 0..7, the range of weekday" },
    { "60 * * * * *", 1, "60", "is not in 0..59, the range of second" },
    { "0 0 24 * * *", 5, "24", "is not in 0..23, the range of hour" },
    { "99999999999999999999 * * * *", 1, "99999999999999999999", "is not in 0..59" },
    /* Lists, ranges and steps. */
    { "0,60 * * * *", 3, "60", "is not in 0..59" },
    { "0,30,90 * * * *", 6, "90", "is not in 0..59" },
    { "5-60 * * * *", 3, "60", "is not in 0..59" },
    { "5-1 * * * *", 1, "5-1", "is a range that runs backwards" },
    { "0 0 * * 0,FRI-WED", 11, "FRI-WED", "is a range that runs backwards" },
    { "*/0 * * * *", 3, "0", "is not in 1..59, the range of its step" },
    { "*/60 * * * *", 3, "60", "is not in 1..59, the range of its step" },
    { "0 1-5/0 * * *", 7, "0", "is not in 1..23, the range of its step" },
    { "1, * * * *", 1, "1,", "ends where a value of minute is expected" },
    { "1- * * * *", 1, "1-", "ends where a value of minute is expected" },
    { "*/ * * * *", 1, "*/", "ends where a value of minute is expected" },
    { ",1 * * * *", 1, ",", "is not understood in minute" },
    { "1,,2 * * * *", 3, ",", "is not understood in minute" },
    { "/5 * * * *", 1, "/", "is not understood in minute" },
    { "-1 * * * *", 1, "-", "is not understood in minute" },
    { "1-2-3 * * * *", 4, "-", "is not understood in minute" },
    { "*/5/5 * * * *", 4, "/", "is not understood in minute" },
    { "** * * * *", 2, "*", "is not understood in minute" },
    { "*5 * * * *", 2, "5", "is not understood in minute" },
    { "1.5 * * * *", 2, ".", "is not understood in minute" },
    { "0x5 * * * *", 2, "x5", "is not understood in minute" },
    { "1e1 * * * *", 2, "e1", "is not understood in minute" },
    { "? * * * *", 1, "?", "is not understood in minute" },
    /* Names, L and #. */
    { "MON * * * *", 1, "MON", "is not understood in minute" },
    { "* * * FOO *", 7, "FOO", "is not understood in month" },
    { "* * * JANUARY *", 10, "UARY", "is not understood in month" },
    { "* * * * XYZ", 9, "XYZ", "is not understood in weekday" },
    { "* * * * MO", 9, "MO", "is not understood in weekday" },
    { "L * * * *", 1, "L", "is not understood in minute" },
    { "* * LW * *", 6, "W", "is not understood in day" },
    { "* * L-3 * *", 6, "-", "is not understood in day" },
    { "* * 15W * *", 7, "W", "is not understood in day" },
    { "* * * * L", 9, "L", "is not understood in weekday" },
    { "* * * * MON#0", 13, "0", "is not in 1..5, the range of its week" },
    { "* * * * MON#6", 13, "6", "is not in 1..5, the range of its week" },
    { "* * * * MON#", 9, "MON#", "ends where a value of weekday is expected" },
    { "* * * * MON#-1", 13, "-", "is not understood in weekday" },
    { "* * 5#2 * *", 6, "#", "is not understood in day" },
    { "* * * * MONL#2", 13, "#", "is not understood in weekday" },
    /* Fields and what stands between them. */
    { "*", 1, "*", "has 1 field; expected five" },
    { "* * * *", 1, "* * * *", "has 4 fields; expected five" },
    { "* * * * * * *", 13, "*", "is one field too many" },
    { "  60 * * * *", 3, "60", "is not in 0..59" },
    { "*\t 24 * * *", 4, "24", "is not in 0..23" },
    { "@never", 1, "@never", "is unknown; expected @hourly" },
    { "@", 1, "@", "is unknown; expected @hourly" },
    { "@daily 5", 1, "@daily 5", "is unknown; expected @hourly" },
    { "@every 5m", 1, "@every 5m", "is unknown; expected @hourly" },
    /* What never comes. */
    { "0 0 31 2 *", 5, "31 2", "never comes" },
    { "0 0 30 FEB *", 5, "30 FEB", "never comes" },
    { "0 0 31 4,6,9,11 *", 5, "31 4,6,9,11", "never comes" },
    { "0 0 0 30-31 2 *", 7, "30-31 2", "never comes" },
};

/* Find the place in the message, and what stands there in the expression. */
static void points_at(struct web_answer a, size_t i)
{
    const char *cron = expressions[i].cron;
    char want[200];
    int column = expressions[i].column;
    snprintf(want, sizeof want, "field \"cron\": \"%s\" at column %d %s", expressions[i].quote,
             column, expressions[i].why);
    refused(a, cron, "cron", want);
}

static void expression_refused(struct web *w, size_t i)
{
    const char *json = expressions[i].cron;
    if (strchr(json, '\t'))
        json = "*\\t 24 * * *";
    const char *body = web_text("{\"cron\":\"%s\",\"call\":{\"type\":\"t\"}}", json);
    points_at(web_ask(w, "PUT", "/v1/schedules/s", body), i);
    points_at(web_ask(w, "PUT", "/v1/schedules/s?dry_run=true", body), i);
    points_at(POST(w, "/v1/schedules/preview", web_text("{\"cron\":\"%s\"}", json)), i);
}

TEST(a_wrong_expression_is_quoted_with_its_column)
{
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(expressions); i++)
        expression_refused(&w, i);
    nothing_is_stored(&w);
    web_end(&w);
}

/* All of it is wrong; and characters that a message cannot show as they are. */
TEST(an_expression_that_is_none)
{
    struct web w;
    char *cron;
    web_begin(&w, param);
#define WITH(text) "{\"cron\":\"" text "\",\"call\":{\"type\":\"t\"}}"
    put_refused(&w, WITH(""), "cron", "is empty; expected five");
    put_refused(&w, WITH("  \\t"), "cron", "is empty; expected five");
    put_refused(&w, WITH("é * * * *"), "cron", "at column 1 is not understood in minute");
    put_refused(&w, WITH("\\u0000 * * * *"), "cron", "at column 1 is not understood in minute");
    put_refused(&w, WITH("* ５ * * *"), "cron", "at column 3 is not understood in hour");
    put_refused(&w, WITH("0 3 * *\\n*"), "cron", "\"0 3 * *?*\" at column 1 has 4 fields");
    cron = malloc(CRON_LEN_MAX + 2);
    TRUE(cron);
    snprintf(cron, CRON_LEN_MAX + 2, "* * * *%*s", CRON_LEN_MAX - 7, "*");
    struct web_answer a = POST(&w, "/v1/schedules/preview", web_text("{\"cron\":\"%s\"}", cron));
    EQ_INT(a.status, 200);
    snprintf(cron, CRON_LEN_MAX + 2, "* * * *%*s", CRON_LEN_MAX - 6, "*");
    put_refused(&w, web_text("{\"cron\":\"%s\",\"call\":{\"type\":\"t\"}}", cron), "cron",
                "is 1001 bytes, limit 1000");
    free(cron);
    nothing_is_stored(&w);
    web_end(&w);
}

/* ---- Values ---------------------------------------------------------------------------------- */

#define CALL "\"call\":{\"type\":\"t\"}"
#define RULE(more) "{\"every\":60," more "," CALL "}"
#define IN_CALL(more) "{\"every\":60,\"call\":{\"type\":\"t\"," more "}}"

struct bad {
    const char *body, *field, *part;
};

static const struct bad values[] = {
    { RULE("\"name\":1"), "name", "is 1, not a string" },
    { RULE("\"name\":\"\""), "name", "is empty" },
    { RULE("\"name\":\"other\""), "name", "is \"other\", and the path says \"s\"" },
    { RULE("\"name\":\"a\\nb\""), "name", "" },
    { "{\"cron\":5," CALL "}", "cron", "is 5, not a string" },
    { "{\"cron\":[\"@daily\"]," CALL "}", "cron", "not a string" },
    { "{\"every\":0," CALL "}", "every", "is 0, not in 1.." },
    { "{\"every\":0.5," CALL "}", "every", "is 0.5, not in 1.." },
    { "{\"every\":-60," CALL "}", "every", "is -60, not in 1.." },
    { "{\"every\":3162240001," CALL "}", "every", "is 3162240001, not in 1..3162240000" },
    { "{\"every\":1e999," CALL "}", "every", "is 1e999" },
    { "{\"every\":\"60\"," CALL "}", "every", "not a number of seconds" },
    { "{\"every\":\"5m\"," CALL "}", "every", "not a number of seconds" },
    { "{\"at\":\"2100-01-01T00:00:00Z\"," CALL "}", "at", "not an array" },
    { "{\"at\":[]," CALL "}", "at", "is empty" },
    { "{\"at\":[1]," CALL "}", "at", "item 1" },
    { "{\"at\":[\"2100-01-01T00:00:00Z\",\"tomorrow\"]," CALL "}", "at",
      "item 2 is \"tomorrow\", not a time" },
    { "{\"at\":[\"2100-02-30T00:00:00Z\"]," CALL "}", "at", "item 1" },
    { "{\"at\":[\"2100-01-01 00:00:00\"]," CALL "}", "at", "item 1" },
    { RULE("\"zone\":\"\""), "zone", "is empty" },
    { RULE("\"zone\":null"), "zone", "is null, not a string" },
    { RULE("\"zone\":2"), "zone", "is 2, not a string" },
    { RULE("\"zone\":\"Mars/Base\""), "zone", "\"Mars/Base\" is unknown" },
    { RULE("\"zone\":\"+02:00\""), "zone", "no IANA name" },
    { RULE("\"zone\":\"europe/berlin\""), "zone", "begins with a capital" },
    { RULE("\"zone\":\"../../etc/passwd\""), "zone", "no IANA name" },
    { RULE("\"zone\":\"/etc/localtime\""), "zone", "no IANA name" },
    { RULE("\"zone\":\"Europe/Berlin\\u0000\""), "zone", "no IANA name" },
    { "{\"every\":60}", "call", "is missing" },
    { "{\"every\":60,\"call\":null}", "call", "not an object" },
    { "{\"every\":60,\"call\":\"t\"}", "call", "not an object" },
    { "{\"every\":60,\"call\":[]}", "call", "not an object" },
    { RULE("\"catch_up\":\"some\""), "catch_up", "expected last, none or all" },
    { RULE("\"catch_up\":1"), "catch_up", "" },
    { RULE("\"catch_up_for\":-1"), "catch_up_for", "is -1, not in 0.." },
    { RULE("\"catch_up_for\":\"1h\""), "catch_up_for", "not a number of seconds" },
    { RULE("\"overlap\":\"both\""), "overlap", "expected allow, skip, wait or replace" },
    { RULE("\"overlap\":\"Allow\""), "overlap", "expected allow, skip, wait or replace" },
    { RULE("\"overlap\":null"), "overlap", "" },
    { RULE("\"jitter\":-1"), "jitter", "is -1, not in 0..86400" },
    { RULE("\"jitter\":86401"), "jitter", "is 86401, not in 0..86400" },
    { RULE("\"starts_at\":\"soon\""), "starts_at", "not a time" },
    { RULE("\"starts_at\":1794729600"), "starts_at", "" },
    { RULE("\"ends_at\":\"2100-13-01T00:00:00Z\""), "ends_at", "not a time" },
    { RULE("\"ends_at\":false"), "ends_at", "" },
    { RULE("\"paused\":1"), "paused", "is 1, not true or false" },
    { RULE("\"paused\":null"), "paused", "is null, not true or false" },
    { RULE("\"paused\":\"yes\""), "paused", "not true or false" },
    { RULE("\"color\":1"), "color", "is unknown; expected name, cron" },
    { RULE("\"next_at\":null"), "next_at", "is unknown" },
    { RULE("\"every\":60"), "every", "twice" },
    /* The call. */
    { "{\"every\":60,\"call\":{}}", "call.type", "is missing" },
    { "{\"every\":60,\"call\":{\"type\":\"\"}}", "call.type", "is empty" },
    { "{\"every\":60,\"call\":{\"type\":7}}", "call.type", "is 7, not a string" },
    { IN_CALL("\"type\":\"u\""), "call.type", "twice" },
    { IN_CALL("\"id\":\"x\""), "call.id", "is unknown" },
    { IN_CALL("\"run_at\":\"2100-01-01T00:00:00Z\""), "call.run_at", "is unknown" },
    { IN_CALL("\"expires_at\":\"2100-01-01T00:00:00Z\""), "call.expires_at", "is unknown" },
    { IN_CALL("\"on_timeout\":\"wait\""), "call.on_timeout", "is unknown" },
    { IN_CALL("\"method\":\"\""), "call.method", "is empty" },
    { IN_CALL("\"queue\":\"\""), "call.queue", "is empty" },
    { IN_CALL("\"input_base64\":\"%%\""), "call.input_base64", "" },
    { IN_CALL("\"priority\":1000000"), "call.priority", "not in" },
    { IN_CALL("\"on_dead\":\"x\""), "call.on_dead", "skip or block" },
    { IN_CALL("\"delay\":-1"), "call.delay", "not in 0.." },
    { IN_CALL("\"max_attempts\":0"), "call.max_attempts", "not in 1.." },
    { IN_CALL("\"max_lost\":0"), "call.max_lost", "not in 1.." },
    { IN_CALL("\"backoff\":5"), "call.backoff", "not an object" },
    { IN_CALL("\"backoff\":{\"bass\":5}"), "call.backoff.bass", "is unknown" },
    { IN_CALL("\"timeout\":0"), "call.timeout", "" },
    { IN_CALL("\"run_timeout\":-1"), "call.run_timeout", "not in" },
    { IN_CALL("\"expires_in\":-1"), "call.expires_in", "not in" },
    { IN_CALL("\"keep\":-1"), "call.keep", "not in" },
    { IN_CALL("\"caller\":\"\""), "call.caller", "is empty" },
    { IN_CALL("\"parent\":\"\""), "call.parent", "is empty" },
    { IN_CALL("\"traceparent\":\"x\""), "call.traceparent", "" },
    { IN_CALL("\"tags\":{\"a\":1}"), "call.tags", "\"a\" is 1, not a string" },
    { IN_CALL("\"needs\":[\"a b\"]"), "call.needs", "name 1, \"a b\", is not" },
    { IN_CALL("\"key\":\"\""), "call.key", "is empty" },
};

/* ---- Combinations ---------------------------------------------------------------------------- */

#define PAST "\"2001-01-01T00:00:00Z\""
#define Y2100 "\"2100-01-01T00:00:00Z\""
#define Y2101 "\"2101-01-01T00:00:00Z\""

static const struct bad combinations[] = {
    { "{" CALL "}", "cron", "one of cron, every and at" },
    { "{\"cron\":null,\"every\":null,\"at\":null," CALL "}", "cron", "one of cron, every and at" },
    { "{\"cron\":\"@daily\",\"every\":60," CALL "}", "every", "together with \"cron\"" },
    { "{\"cron\":\"@daily\",\"at\":[" Y2100 "]," CALL "}", "at", "together with \"cron\"" },
    { "{\"every\":60,\"at\":[" Y2100 "]," CALL "}", "at", "together with \"every\"" },
    { "{\"cron\":\"@daily\",\"every\":60,\"at\":[" Y2100 "]," CALL "}", "every", "together" },
    { IN_CALL("\"input\":1,\"input_base64\":\"AA==\""), "call.input_base64",
      "together with \"input\"" },
    /* What can never fire. */
    { "{\"at\":[" PAST "]," CALL "}", "at", "has no tick in the future" },
    { "{\"at\":[" PAST ",\"2002-01-01T00:00:00Z\"]," CALL "}", "at", "has no tick in the future" },
    { "{\"at\":[" PAST "],\"catch_up\":\"all\"," CALL "}", "at", "has no tick in the future" },
    { "{\"at\":[" Y2100 "],\"starts_at\":" Y2101 "," CALL "}", "at", "from starts_at to ends_at" },
    { "{\"at\":[" Y2100 "],\"ends_at\":" Y2100 "," CALL "}", "at", "from starts_at to ends_at" },
    { RULE("\"ends_at\":" PAST), "ends_at", "is not in the future" },
    { RULE("\"starts_at\":" Y2101 ",\"ends_at\":" Y2100), "ends_at", "is not after starts_at" },
    { RULE("\"starts_at\":" Y2100 ",\"ends_at\":" Y2100), "ends_at", "is not after starts_at" },
    { "{\"every\":3162240000,\"ends_at\":" Y2100 ",\"starts_at\":" PAST "," CALL "}", "every",
      "has no tick in the future" },
    { "{\"cron\":\"0 0 29 2 *\",\"starts_at\":\"2097-03-01T00:00:00Z\","
      "\"ends_at\":\"2104-02-29T00:00:00Z\"," CALL "}",
      "cron", "has no tick in the future, from starts_at to ends_at" },
    { "{\"cron\":\"0 0 1 1 *\",\"starts_at\":\"2099-06-01T00:00:00Z\",\"ends_at\":" Y2100
      ",\"zone\":\"America/New_York\"," CALL "}",
      "cron", "has no tick in the future" },
};

static void table_is_refused(struct web *w, const struct bad *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_refused(w, v[i].body, v[i].field, v[i].part);
    nothing_is_stored(w);
}

TEST(a_wrong_value_is_refused_with_its_field)
{
    struct web w;
    web_begin(&w, param);
    table_is_refused(&w, values, COUNT_OF(values));
    web_end(&w);
}

TEST(a_wrong_combination_is_refused)
{
    struct web w;
    web_begin(&w, param);
    table_is_refused(&w, combinations, COUNT_OF(combinations));
    /* What stands beside them, and is right. */
    static const char *const right[] = {
        "{\"at\":[" PAST "," Y2100 "]," CALL "}",
        "{\"at\":[" Y2100 "],\"starts_at\":" Y2100 ",\"ends_at\":" Y2101 "," CALL "}",
        "{\"cron\":\"0 0 29 2 *\",\"starts_at\":\"2097-03-01T00:00:00Z\","
        "\"ends_at\":\"2104-02-29T00:00:01Z\"," CALL "}",
        "{\"cron\":\"0 0 31 2 MON\"," CALL "}", /* each Monday of February */
        "{\"cron\":\"0 0 1 1 *\",\"starts_at\":\"2099-06-01T00:00:00Z\",\"ends_at\":" Y2100
        ",\"zone\":\"Europe/Berlin\"," CALL "}", /* an hour before the year ends in UTC */
        "{\"cron\":null,\"every\":60,\"at\":null,\"starts_at\":null,\"ends_at\":null," CALL "}",
    };
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        struct web_answer a = web_ask(&w, "PUT", "/v1/schedules/s", right[i]);
        if (a.status / 100 != 2)
            FAIL("%s: %.*s", right[i], BYTES_ARG(a.body));
    }
    /* A stored schedule stays as it was when a change of it is refused. */
    struct web_answer a = GET(&w, "/v1/schedules/s");
    const char *version = AT(a, "version");
    put_refused(&w, RULE("\"ends_at\":" PAST), "ends_at", "");
    EQ_STR(AT(GET(&w, "/v1/schedules/s"), "version"), version);
    web_end(&w);
}

/* ---- Previews, bodies, paths ----------------------------------------------------------------- */

static const struct bad previews[] = {
    { "{\"zone\":\"UTC\"}", "cron", "is missing" },
    { "{\"cron\":null}", "cron", "not a string" },
    { "{\"cron\":\"@daily\",\"zone\":\"Mars/Base\"}", "zone", "is unknown" },
    { "{\"cron\":\"@daily\",\"zone\":\"../x\"}", "zone", "no IANA name" },
    { "{\"cron\":\"@daily\",\"zone\":\"\"}", "zone", "is empty" },
    { "{\"cron\":\"@daily\",\"from\":\"now\"}", "from", "not a time" },
    { "{\"cron\":\"@daily\",\"from\":0}", "from", "" },
    { "{\"cron\":\"@daily\",\"count\":0}", "count", "not in 1..1000" },
    { "{\"cron\":\"@daily\",\"count\":1001}", "count", "not in 1..1000" },
    { "{\"cron\":\"@daily\",\"count\":1.5}", "count", "" },
    { "{\"cron\":\"@daily\",\"every\":60}", "every", "is unknown" },
};

TEST(a_wrong_preview_is_refused)
{
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(previews); i++)
        refused(POST(&w, "/v1/schedules/preview", previews[i].body), previews[i].body,
                previews[i].field, previews[i].part);
    web_end(&w);
}

TEST(wrong_bodies_and_paths)
{
    static const struct {
        const char *method, *path, *body, *field;
    } cases[] = {
        { "PUT", "/v1/schedules/s", "", "null" },
        { "PUT", "/v1/schedules/s", "{", "null" },
        { "PUT", "/v1/schedules/s", "[1]", "null" },
        { "PUT", "/v1/schedules/s", "{\"paused\":1}", "paused" },
        { "PUT", "/v1/schedules/s?dry_run=perhaps", RULE("\"paused\":true"), "dry_run" },
        { "PUT", "/v1/schedules/%00", RULE("\"paused\":true"), "name" },
        { "POST", "/v1/schedules/s/pause", "{\"x\":1}", "x" },
        { "POST", "/v1/schedules/s/resume", "{\"x\":1}", "x" },
        { "POST", "/v1/schedules/s/run", "{\"x\":1}", "x" },
        { "DELETE", "/v1/schedules/s", "{\"x\":1}", "x" },
        { "GET", "/v1/schedules?cursor=zz", NULL, "cursor" },
        { "GET", "/v1/schedules?limit=1001", NULL, "limit" },
        { "GET", "/v1/schedules?name=s", NULL, "name" },
        { "GET", "/v1/schedules/s/runs?cursor=00", NULL, "cursor" },
        { "GET", "/v1/schedules/s/runs?limit=0", NULL, "limit" },
    };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        refused(web_ask(&w, cases[i].method, cases[i].path, cases[i].body), cases[i].path,
                cases[i].field, "");
    nothing_is_stored(&w);
    web_end(&w);
}

/* ---- Completeness ---------------------------------------------------------------------------- */

static bool has_case(const struct bad *v, size_t n, const char *field)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(v[i].field, field) == 0)
            return true;
    return false;
}

/* Every field of the shape has a wrong value in the table. */
static void all_have(const struct shape *s, const char *prefix, const char *but,
                     const struct bad *v, size_t n)
{
    char name[64];
    for (size_t i = 0; i < s->n; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, s->v[i].name);
        if (shape_has(s, i) && strcmp(name, but) != 0 && !has_case(v, n, name))
            FAIL("no wrong value of %s is tested", name);
    }
}

TEST(every_field_has_a_wrong_value, .plain = true)
{
    all_have(&schedule_shape, "", "", values, COUNT_OF(values));
    /* Any JSON is an input. */
    all_have(&tick_spec_shape, "call.", "call.input", values, COUNT_OF(values));
    all_have(&preview_shape, "", "", previews, COUNT_OF(previews));
}
