/*
 * schedules.c - schedules over HTTP: storing them under a condition, reading, pausing, running and
 * deleting them, their runs, previews, and who may do what. Refusals are in schedules_bad.c, runs
 * with exact times in schedules_ticks.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/text.h"
#include "lib/lib.h"
#include "web.h"

RUNS_ON(ENGINES_DURABLE)

static int echo(struct pawl_call *c)
{
    return pawl_reply(c, pawl_input(c));
}

static void begin(struct web *w, const void *param)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "echo", echo);
    fixture_start(p, 2);
    web_begin_as(w, p, NULL);
}

static struct web_answer ask_with(struct web *w, const char *method, const char *path,
                                  const char *header, const char *body)
{
    w->more = header;
    struct web_answer a = web_ask(w, method, path, body);
    w->more = NULL;
    return a;
}

static struct web_answer put(struct web *w, const char *path, const char *body)
{
    return web_ask(w, "PUT", path, body);
}

static void refused(struct web_answer a, int status, const char *code)
{
    if (a.status != status)
        FAIL("%d, not %d: %.*s", a.status, status, BYTES_ARG(a.body));
    EQ_STR(AT(a, "error.code"), code);
}

static void stored(struct web_answer a, int status)
{
    if (a.status != status)
        FAIL("%d, not %d: %.*s", a.status, status, BYTES_ARG(a.body));
}

#define ECHO "\"call\":{\"type\":\"echo\",\"input\":{\"n\": 1}}"

/* ---- Storing --------------------------------------------------------------------------------- */

TEST(a_schedule_is_stored_shown_and_deleted)
{
    struct web w;
    begin(&w, param);
    struct web_answer a = put(&w, "/v1/schedules/a%20b",
                              "{\"cron\":\"0 3 * * 1-5\",\"zone\":\"Europe/Berlin\"," ECHO "}");
    stored(a, 201);
    const char *version = AT(a, "version");
    TRUE(strstr(a.head.data, web_text("ETag: \"%s\"\r\n", version)) != NULL);
    TRUE(strstr(a.head.data, "Location: /v1/schedules/a%20b\r\n") != NULL);
    EQ_STR(AT(a, "name"), "a b");
    EQ_STR(AT(a, "cron"), "0 3 * * 1-5");
    EQ_STR(AT(a, "every"), "null");
    EQ_STR(AT(a, "at"), "null");
    EQ_STR(AT(a, "zone"), "Europe/Berlin");
    EQ_STR(AT(a, "call"), "{\"type\":\"echo\",\"input\":{\"n\": 1}}");
    EQ_STR(AT(a, "catch_up"), "last");
    EQ_STR(AT(a, "catch_up_for"), "3600");
    EQ_STR(AT(a, "overlap"), "allow");
    EQ_STR(AT(a, "jitter"), "0");
    EQ_STR(AT(a, "starts_at"), "null");
    EQ_STR(AT(a, "ends_at"), "null");
    EQ_STR(AT(a, "paused"), "false");
    EQ_STR(AT(a, "last"), "null");
    EQ_STR(AT(a, "note"), "null");
    EQ_STR(AT(a, "lag_seconds"), "0");
    EQ_STR(AT(a, "next.0"), AT(a, "next_at"));
    TRUE(AT(a, "next.9") != NULL);
    EQ_PTR(AT(a, "next.10"), NULL);

    struct web_answer b = GET(&w, "/v1/schedules/a%20b");
    stored(b, 200);
    EQ_STR(AT(b, "version"), version);
    TRUE(strstr(b.head.data, web_text("ETag: \"%s\"\r\n", version)) != NULL);

    a = web_ask(&w, "DELETE", "/v1/schedules/a%20b", NULL);
    stored(a, 200);
    EQ_STR(AT(a, "name"), "a b");
    EQ_STR(AT(a, "deleted"), "true");
    refused(GET(&w, "/v1/schedules/a%20b"), 404, "NOT_FOUND");
    refused(web_ask(&w, "DELETE", "/v1/schedules/a%20b", NULL), 404, "NOT_FOUND");
    web_end(&w);
}

/* The same again writes nothing, in any spelling of the same values. */
TEST(no_change_no_write)
{
    struct web w;
    begin(&w, param);
    struct web_answer a = put(&w, "/v1/schedules/s", "{\"every\":3600," ECHO "}");
    stored(a, 201);
    const char *version = AT(a, "version");
    a = put(
        &w, "/v1/schedules/s",
        "{\"name\":\"s\", \"zone\":\"UTC\",\"catch_up\":\"last\",\"call\":{\"input\":{\"n\": 1},"
        "\"priority\":0,\"type\":\"echo\"}, \"every\":3600.0,\"starts_at\":null}");
    stored(a, 200);
    EQ_STR(AT(a, "version"), version);
    a = put(&w, "/v1/schedules/t",
            "{\"every\":60,\"call\":{\"type\":\"echo\",\"tags\":{\"b\":\"1\",\"a\":\"2\"},"
            "\"needs\":[\"gpu\",\"big\"]}}");
    stored(a, 201);
    const char *other = AT(a, "version");
    a = put(&w, "/v1/schedules/t",
            "{\"every\":60,\"call\":{\"type\":\"echo\",\"needs\":[\"big\",\"gpu\",\"big\"],"
            "\"tags\":{\"a\":\"2\",\"b\":\"1\"}}}");
    stored(a, 200);
    EQ_STR(AT(a, "version"), other);
    a = put(&w, "/v1/schedules/s", "{\"every\":3601," ECHO "}");
    stored(a, 200);
    TRUE(strcmp(AT(a, "version"), version) != 0);
    EQ_STR(AT(a, "every"), "3601");
    web_end(&w);
}

TEST(conditions)
{
    struct web w;
    begin(&w, param);
    const char *path = "/v1/schedules/s", *one = "{\"every\":60," ECHO "}";
    const char *two = "{\"every\":61," ECHO "}";
    refused(ask_with(&w, "PUT", path, "If-Match: *\r\n", one), 412, "STALE");
    refused(ask_with(&w, "PUT", path, "If-Match: \"1\"\r\n", one), 412, "STALE");
    stored(ask_with(&w, "PUT", path, "If-None-Match: *\r\n", one), 201);
    refused(ask_with(&w, "PUT", path, "If-None-Match: *\r\n", two), 412, "STALE");
    struct web_answer a = GET(&w, path);
    EQ_STR(AT(a, "every"), "60");
    const char *good = web_text("If-Match: \"1\", \"%s\"\r\n", AT(a, "version"));
    refused(ask_with(&w, "PUT", path, "If-Match: \"1\"\r\n", two), 412, "STALE");
    stored(ask_with(&w, "PUT", path, good, two), 200);
    refused(ask_with(&w, "PUT", path, good, one), 412, "STALE");
    refused(ask_with(&w, "DELETE", path, good, NULL), 412, "STALE");
    refused(ask_with(&w, "POST", "/v1/schedules/s/pause", good, ""), 412, "STALE");
    refused(ask_with(&w, "PUT", path, "If-Match: 7\r\n", two), 400, "INVALID");
    refused(ask_with(&w, "PUT", path, "If-None-Match: \"7\"\r\n", two), 400, "INVALID");
    refused(ask_with(&w, "PUT", path, "If-Match: *\r\nIf-None-Match: *\r\n", two), 400, "INVALID");
    refused(ask_with(&w, "DELETE", path, "If-None-Match: *\r\n", NULL), 400, "INVALID");
    stored(ask_with(&w, "DELETE", path, "If-Match: *\r\n", NULL), 200);
    web_end(&w);
}

TEST(a_dry_run_answers_what_would_change)
{
    struct web w;
    begin(&w, param);
    const char *path = "/v1/schedules/s?dry_run=true", *one = "{\"every\":60," ECHO "}";
    struct web_answer a = put(&w, path, one);
    stored(a, 200);
    EQ_STR(AT(a, "change"), "create");
    refused(GET(&w, "/v1/schedules/s"), 404, "NOT_FOUND");
    stored(put(&w, "/v1/schedules/s", one), 201);
    EQ_STR(AT(put(&w, path, one), "change"), "none");
    EQ_STR(AT(put(&w, path, "{\"every\":60,\"paused\":false," ECHO "}"), "change"), "none");
    EQ_STR(AT(put(&w, path, "{\"every\":60,\"paused\":true," ECHO "}"), "change"), "update");
    EQ_STR(AT(put(&w, path, "{\"every\":61," ECHO "}"), "change"), "update");
    refused(put(&w, path, "{\"every\":0," ECHO "}"), 400, "INVALID");
    refused(ask_with(&w, "PUT", path, "If-Match: *\r\n", one), 400, "INVALID");
    EQ_STR(AT(GET(&w, "/v1/schedules/s"), "every"), "60");
    web_end(&w);
}

/* What the same PUT without dry_run would. */
TEST(a_dry_run_of_paused_alone)
{
    struct web w;
    begin(&w, param);
    const char *path = "/v1/schedules/s?dry_run=true";
    refused(put(&w, path, "{\"paused\":true}"), 404, "NOT_FOUND");
    stored(put(&w, "/v1/schedules/s", "{\"every\":60," ECHO "}"), 201);
    EQ_STR(AT(put(&w, path, "{\"paused\":true}"), "change"), "update");
    EQ_STR(AT(put(&w, path, "{\"paused\":false}"), "change"), "none");
    refused(put(&w, path, "{\"paused\":1}"), 400, "INVALID");
    EQ_STR(AT(GET(&w, "/v1/schedules/s"), "paused"), "false");
    web_end(&w);
}

/* A schedule that is over is paused like others: only a change needs a tick to come. */
TEST(a_dry_run_of_a_schedule_that_is_over)
{
    struct web w;
    char at[TIME_TEXT_LEN + 1], body[300];
    begin(&w, param);
    time_text(world_now(&world_real) + 2 * SEC_US * check_scale(), at);
    snprintf(body, sizeof body, "{\"at\":[\"%s\"],\"paused\":false," ECHO "}", at);
    stored(put(&w, "/v1/schedules/s", body), 201);
    UNTIL(strcmp(AT(GET(&w, "/v1/schedules/s"), "next_at"), "null") == 0);
    snprintf(body, sizeof body, "{\"at\":[\"%s\"],\"paused\":true," ECHO "}", at);
    EQ_STR(AT(put(&w, "/v1/schedules/s?dry_run=true", body), "change"), "update");
    stored(put(&w, "/v1/schedules/s", body), 200);
    snprintf(body, sizeof body, "{\"at\":[\"%s\"],\"jitter\":1," ECHO "}", at);
    refused(put(&w, "/v1/schedules/s?dry_run=true", body), 400, "INVALID");
    refused(put(&w, "/v1/schedules/s", body), 400, "INVALID");
    web_end(&w);
}

TEST(a_dry_run_waits_for_migrate_finish)
{
    struct web w;
    begin(&w, param);
    const char *one = "{\"every\":60," ECHO "}";
    engine_rows(param, "UPDATE pawl_migration SET finished = 0 WHERE number = 10");
    struct web_answer a = put(&w, "/v1/schedules/s?dry_run=true", one);
    refused(a, 409, "STATE");
    HAS_STR(AT(a, "error.message"), "pawl migrate finish");
    struct web_answer b = put(&w, "/v1/schedules/s", one);
    refused(b, 409, "STATE");
    EQ_STR(AT(b, "error.message"), AT(a, "error.message"));
    engine_rows(param, "UPDATE pawl_migration SET finished = 1 WHERE number = 10");
    EQ_STR(AT(put(&w, "/v1/schedules/s?dry_run=true", one), "change"), "create");
    web_end(&w);
}

/* ---- Names ----------------------------------------------------------------------------------- */

TEST(what_is_not_there)
{
    struct web w;
    begin(&w, param);
    refused(GET(&w, "/v1/schedules/none"), 404, "NOT_FOUND");
    refused(GET(&w, "/v1/schedules/none/runs"), 404, "NOT_FOUND");
    refused(POST(&w, "/v1/schedules/none/pause", ""), 404, "NOT_FOUND");
    refused(POST(&w, "/v1/schedules/none/resume", ""), 404, "NOT_FOUND");
    refused(POST(&w, "/v1/schedules/none/run", ""), 404, "NOT_FOUND");
    refused(put(&w, "/v1/schedules/none", "{\"paused\":true}"), 404, "NOT_FOUND");
    web_end(&w);
}

/* A schedule may be called as a literal segment of another route is. */
TEST(a_schedule_called_preview)
{
    struct web w;
    begin(&w, param);
    stored(put(&w, "/v1/schedules/preview", "{\"every\":60," ECHO "}"), 201);
    EQ_STR(AT(GET(&w, "/v1/schedules/preview"), "name"), "preview");
    stored(web_ask(&w, "DELETE", "/v1/schedules/preview", NULL), 200);
    web_end(&w);
}

/* ---- Pause ----------------------------------------------------------------------------------- */

TEST(pause_and_resume)
{
    struct web w;
    begin(&w, param);
    const char *path = "/v1/schedules/s", *spec = "{\"every\":3600," ECHO "}";
    stored(put(&w, path, spec), 201);
    struct web_answer a = POST(&w, "/v1/schedules/s/pause", "");
    stored(a, 200);
    EQ_STR(AT(a, "paused"), "true");
    EQ_STR(AT(a, "next_at"), "null");
    EQ_STR(AT(a, "next"), "[]");
    const char *version = AT(a, "version");
    EQ_STR(AT(POST(&w, "/v1/schedules/s/pause", ""), "version"), version);
    /* A PUT without `paused` leaves what an operator did. */
    EQ_STR(AT(put(&w, path, spec), "version"), version);
    EQ_STR(AT(put(&w, path, "{\"every\":1800," ECHO "}"), "paused"), "true");
    EQ_STR(AT(put(&w, path, "{\"paused\":false}"), "paused"), "false");
    EQ_STR(AT(GET(&w, path), "every"), "1800");
    EQ_STR(AT(put(&w, path, "{\"paused\":true}"), "paused"), "true");
    a = POST(&w, "/v1/schedules/s/resume", "");
    stored(a, 200);
    EQ_STR(AT(a, "paused"), "false");
    TRUE(strcmp(AT(a, "next_at"), "null") != 0);
    EQ_STR(AT(put(&w, "/v1/schedules/t", "{\"every\":60,\"paused\":true," ECHO "}"), "paused"),
           "true");
    web_end(&w);
}

/* ---- The list -------------------------------------------------------------------------------- */

TEST(the_list_is_by_name_and_in_pages)
{
    struct web w;
    begin(&w, param);
    static const char *const names[] = { "b", "a", "d", "c", "e" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        stored(put(&w, web_text("/v1/schedules/%s", names[i]), "{\"every\":60," ECHO "}"), 201);
    const char *cursor = "";
    char seen[16] = "";
    for (int pages = 0; pages < 4 && strcmp(cursor, "null"); pages++) {
        struct web_answer a =
            GET(&w, web_text("/v1/schedules?limit=2%s%s", *cursor ? "&cursor=" : "", cursor));
        stored(a, 200);
        for (int i = 0; i < 2; i++) {
            const char *name = AT(a, web_text("schedules.%d.name", i));
            if (name)
                strncat(seen, name, 1);
        }
        TRUE(AT(a, "schedules.0.next.9") != NULL);
        cursor = AT(a, "next");
    }
    EQ_STR(seen, "abcde");
    EQ_STR(cursor, "null");
    web_end(&w);
}

/* Inputs count: a page ends early, and the list can be read to its end. */
TEST(the_list_of_long_inputs_has_more_pages)
{
    enum { LONG = 1000000, MANY = 24 };
    struct web w;
    char *input = malloc(LONG + 1);
    const char *cursor = "";
    int n = 0, pages = 0;
    begin(&w, param);
    TRUE(input);
    memset(input, 'x', LONG);
    input[LONG] = 0;
    for (int i = 0; i < MANY; i++)
        stored(put(&w, web_text("/v1/schedules/s%02d", i),
                   web_text("{\"at\":[\"2100-01-01T00:00:00Z\"],\"call\":{\"type\":\"echo\","
                            "\"input\":\"%s\"}}",
                            input)),
               201);
    do {
        struct web_answer a =
            GET(&w, web_text("/v1/schedules?limit=1000%s%s", n ? "&cursor=" : "", cursor));
        stored(a, 200);
        LE_INT((int64_t)a.body.len, 21 * LONG);
        for (int i = 0; AT(a, web_text("schedules.%d.name", i)); i++)
            EQ_STR(AT(a, web_text("schedules.%d.name", i)), web_text("s%02d", n++));
        cursor = AT(a, "next");
        pages++;
    } while (strcmp(cursor, "null") != 0);
    EQ_INT(n, MANY);
    GE_INT(pages, 2);
    free(input);
    web_end(&w);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

TEST(a_manual_run_and_its_repeat)
{
    struct web w;
    begin(&w, param);
    stored(
        put(&w, "/v1/schedules/s", "{\"at\":[\"2100-01-01T00:00:00Z\"],\"paused\":true," ECHO "}"),
        201);
    struct web_answer a = POST(&w, "/v1/schedules/s/run", "");
    if (a.status != 202 && a.status != 200)
        FAIL("%d: %.*s", a.status, BYTES_ARG(a.body));
    HAS_STR(AT(a, "id"), "cron:s@");
    HAS_STR(AT(a, "id"), "!manual");
    EQ_STR(AT(a, "schedule"), "s");
    EQ_STR(AT(a, "input"), "{\"n\": 1}");
    HAS_STR(a.head.data, "Location: /v1/calls/cron%3As%40");
    a = ask_with(&w, "POST", "/v1/schedules/s/run", "Idempotency-Key: \"nov \\\"1\\\"\"\r\n", "");
    EQ_STR(AT(a, "id"), "cron:s!nov \"1\"");
    EQ_STR(AT(a, "duplicate"), "false");
    a = ask_with(&w, "POST", "/v1/schedules/s/run", "Idempotency-Key: nov \"1\"\r\n", "");
    EQ_STR(AT(a, "id"), "cron:s!nov \"1\"");
    EQ_STR(AT(a, "duplicate"), "true");
    refused(ask_with(&w, "POST", "/v1/schedules/s/run", "Idempotency-Key: \"\"\r\n", ""), 400,
            "INVALID");
    refused(ask_with(&w, "POST", "/v1/schedules/s/run",
                     "Idempotency-Key: a\r\nIdempotency-Key: b\r\n", ""),
            400, "INVALID");
    stored(GET(&w, "/v1/calls/cron%3As%21nov%20%221%22?wait=10"), 200);
    a = GET(&w, "/v1/schedules/s/runs");
    stored(a, 200);
    EQ_STR(AT(a, "runs.0.cron_name"), "s");
    EQ_STR(AT(a, "runs.0.reason"), "manual");
    EQ_STR(AT(a, "runs.0.status"), "completed");
    EQ_STR(AT(a, "runs.0.timezone"), "UTC");
    EQ_STR(AT(a, "runs.0.count"), "1");
    TRUE(strcmp(AT(a, "runs.0.completed_at"), "null") != 0);
    TRUE(AT(a, "runs.1.call") != NULL);
    EQ_PTR(AT(a, "runs.2"), NULL);
    EQ_STR(AT(GET(&w, "/v1/schedules/s"), "last.call"), "cron:s!nov \"1\"");
    web_end(&w);
}

/* A tick is a call under its own id, and a run. */
TEST(ticks_are_runs)
{
    struct web w;
    begin(&w, param);
    stored(put(&w, "/v1/schedules/s", "{\"every\":1," ECHO "}"), 201);
    struct web_answer a;
    for (int i = 0;; i++) {
        web_tick(&w);
        a = GET(&w, "/v1/schedules/s/runs?limit=2");
        stored(a, 200);
        if (AT(a, "runs.1.call"))
            break;
        if (i > 1000 * check_scale())
            FAIL("no ticks: %.*s", BYTES_ARG(a.body));
        usleep(10000);
    }
    stored(POST(&w, "/v1/schedules/s/pause", ""), 200);
    char id[64];
    snprintf(id, sizeof id, "cron:s@%.19sZ", AT(a, "runs.1.scheduled_time"));
    EQ_STR(AT(a, "runs.1.call"), id);
    struct web_answer call = GET(&w, web_text("/v1/calls/%s?wait=10", id));
    stored(call, 200);
    EQ_STR(AT(call, "status"), "completed");
    EQ_STR(AT(call, "schedule"), "s");
    EQ_STR(AT(call, "scheduled_at"), AT(a, "runs.1.scheduled_time"));
    EQ_STR(AT(a, "runs.1.reason"), "null");
    /* The pages of the list end where it ends, and show each run once. */
    const char *cursor = AT(GET(&w, "/v1/schedules/s/runs?limit=1"), "next");
    struct web_answer b = GET(&w, web_text("/v1/schedules/s/runs?limit=1000&cursor=%s", cursor));
    stored(b, 200);
    EQ_STR(AT(b, "next"), "null");
    TRUE(strcmp(AT(b, "runs.0.scheduled_time"),
                AT(GET(&w, "/v1/schedules/s/runs?limit=1"), "runs.0.scheduled_time")) != 0);
    /* They outlive the schedule. */
    stored(web_ask(&w, "DELETE", "/v1/schedules/s", NULL), 200);
    TRUE(AT(GET(&w, "/v1/schedules/s/runs"), "runs.1.call") != NULL);
    web_end(&w);
}

/* ---- Preview --------------------------------------------------------------------------------- */

TEST(a_preview_shows_gaps_and_folds)
{
    struct web w;
    begin(&w, param);
    struct web_answer a = POST(&w, "/v1/schedules/preview",
                               "{\"cron\":\"30 2 * * *\",\"zone\":\"Europe/Berlin\","
                               "\"from\":\"2027-03-27T01:30:00Z\",\"count\":3}");
    stored(a, 200);
    EQ_STR(AT(a, "times.0.utc"), "2027-03-27T01:30:00.000000Z"); /* `from` itself counts */
    EQ_STR(AT(a, "times.0.local"), "2027-03-27T02:30:00+01:00");
    EQ_STR(AT(a, "times.0.dst"), "null");
    EQ_STR(AT(a, "times.1.utc"), "2027-03-28T01:00:00.000000Z");
    EQ_STR(AT(a, "times.1.local"), "2027-03-28T03:00:00+02:00");
    EQ_STR(AT(a, "times.1.dst"), "gap");
    EQ_PTR(AT(a, "times.3"), NULL);
    EQ_STR(AT(a, "note"), "null");
    a = POST(
        &w, "/v1/schedules/preview",
        "{\"cron\":\"30 2 * * *\",\"zone\":\"Europe/Berlin\",\"from\":\"2027-10-31T00:00:00Z\"}");
    EQ_STR(AT(a, "times.0.utc"), "2027-10-31T00:30:00.000000Z");
    EQ_STR(AT(a, "times.0.dst"), "fold");
    EQ_STR(AT(a, "times.1.utc"), "2027-11-01T01:30:00.000000Z");
    TRUE(AT(a, "times.9") != NULL);
    EQ_PTR(AT(a, "times.10"), NULL);
    a = POST(&w, "/v1/schedules/preview", "{\"cron\":\"0 9 1 * MON\",\"count\":1}");
    HAS_STR(AT(a, "note"), "either");
    a = POST(&w, "/v1/schedules/preview", "{\"cron\":\"0 25 * * *\"}");
    refused(a, 400, "INVALID");
    EQ_STR(AT(a, "error.field"), "cron");
    HAS_STR(AT(a, "error.message"), "\"25\" at column 3");
    a = POST(&w, "/v1/schedules/preview", "{\"cron\":\"@daily\",\"zone\":\"Mars/Base\"}");
    refused(a, 400, "INVALID");
    EQ_STR(AT(a, "error.field"), "zone");
    refused(POST(&w, "/v1/schedules/preview", "{\"cron\":\"@daily\",\"count\":1001}"), 400,
            "INVALID");
    refused(POST(&w, "/v1/schedules/preview", "{\"zone\":\"UTC\"}"), 400, "INVALID");
    EQ_STR(AT(GET(&w, "/v1/schedules"), "schedules"), "[]");
    web_end(&w);
}

/* ---- Rights ---------------------------------------------------------------------------------- */

static const char *line(const char *who, const char *token, char out[256])
{
    unsigned char d[32];
    char hex[65] = { 0 };
    TRUE(digest_plain(bytes_of(token), d));
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", d[i]);
    snprintf(out, 256, "%s:%s", who, hex);
    return out;
}

TEST(who_may_do_what)
{
    static char v[3][256];
    const char *tokens[] = { line("app:app", "ta", v[0]), line("mon:monitor", "tm", v[1]),
                             line("root:admin", "tr", v[2]) };
    const char *spec = "{\"every\":60,\"call\":{\"type\":\"echo\",\"input\":\"secret\",\"tags\":"
                       "{\"a\":\"hidden\"}}}";
    struct web w;
    struct pawl *p = fixture_open(param);
    web_begin_as(&w, p, &(struct api_conf){ .tokens = tokens, .n_tokens = 3 });
    static const char *const writes[][2] = { { "PUT", "/v1/schedules/s" },
                                             { "DELETE", "/v1/schedules/s" },
                                             { "POST", "/v1/schedules/s/pause" },
                                             { "POST", "/v1/schedules/s/resume" },
                                             { "POST", "/v1/schedules/s/run" } };
    static const char *const reads[] = { "/v1/schedules", "/v1/schedules/s",
                                         "/v1/schedules/s/runs" };
    w.token = "tr";
    stored(put(&w, "/v1/schedules/s", spec), 201);
    stored(POST(&w, "/v1/schedules/s/run", ""), 202);
    HAS_STR(GET(&w, "/v1/schedules/s").body.data, "secret");
    for (size_t i = 0; i < COUNT_OF(writes); i++) {
        w.token = "ta";
        refused(web_ask(&w, writes[i][0], writes[i][1], spec), 403, "FORBIDDEN");
        w.token = "tm";
        refused(web_ask(&w, writes[i][0], writes[i][1], spec), 403, "FORBIDDEN");
        w.token = NULL;
        refused(web_ask(&w, writes[i][0], writes[i][1], spec), 401, "UNAUTHORIZED");
    }
    for (size_t i = 0; i < COUNT_OF(reads); i++) {
        w.token = "ta";
        refused(GET(&w, reads[i]), 403, "FORBIDDEN");
        w.token = "tm";
        struct web_answer a = GET(&w, reads[i]);
        stored(a, 200);
        TRUE(!memmem(a.body.data, a.body.len, "secret", 6));
        TRUE(!memmem(a.body.data, a.body.len, "hidden", 6));
    }
    w.token = "tm";
    stored(POST(&w, "/v1/schedules/preview", "{\"cron\":\"@daily\"}"), 200);
    w.token = "ta";
    refused(POST(&w, "/v1/schedules/preview", "{\"cron\":\"@daily\"}"), 403, "FORBIDDEN");
    web_end(&w);
}
