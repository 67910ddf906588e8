/*
 * schedules_unread.c - schedules whose answers are unusual: those that cannot be read, those that
 * are large or over, and times of 1970.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "exec/write_job.h"
#include "feature/cron.h"
#include "lib/lib.h"
#include "model/schedule.h"
#include "web.h"

RUNS_ON(ENGINES_DURABLE)

static double value(struct web_answer a, const char *name)
{
    const char *at = strstr(a.body.data, web_text("\n%s ", name));
    if (!at)
        FAIL("no %s", name);
    return strtod(at + 2 + strlen(name), NULL);
}

/* Store a schedule of each second with this text of its expression, which is not read. */
static void put_as(struct web *w, const char *name, const char *text)
{
    struct schedule s;
    struct arena a;
    struct pawl_err err;
    arena_init(&a, 1 << 20);
    schedule_init(&s);
    OK(cron_parse(BYTES("* * * * * *"), &s.rule.cron, &err), &err);
    s.cron = bytes_of(text);
    s.call.type = BYTES("echo");
    struct cron_op cron = { .what = CRON_PUT, .name = bytes_of(name), .schedule = &s };
    struct op op = { .kind = OP_FEATURE,
                     .a = &a,
                     .feature = { .of = &feature_cron, .ctx = &cron } };
    OK(exec_do(w->p->e, &op), &op.err);
    arena_release(&a);
}

TEST(a_schedule_that_cannot_be_read_is_shown_with_its_error)
{
    struct web w;
    struct pawl *p = fixture_open(param);
    fixture_on(p, "echo", fixture_echo);
    web_begin_as(&w, p, NULL);
    put_as(&w, "bad", "61 * * * *");
    put_as(&w, "good", "* * * * * *");
    struct web_answer a = GET(&w, "/v1/schedules");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "schedules.0.name"), "bad");
    HAS_STR(AT(a, "schedules.0.error"), "\"61\" at column 1");
    EQ_STR(AT(a, "schedules.0.cron"), "null");
    EQ_STR(AT(a, "schedules.0.call"), "null");
    EQ_STR(AT(a, "schedules.0.zone"), "null");
    EQ_STR(AT(a, "schedules.1.name"), "good");
    EQ_STR(AT(a, "schedules.1.error"), "null");
    EQ_STR(AT(a, "schedules.1.cron"), "* * * * * *");
    a = GET(&w, "/v1/schedules/bad");
    EQ_INT(a.status, 200);
    HAS_STR(AT(a, "error"), "cannot be read");
    EQ_STR(AT(a, "next"), "[]");
    EQ_STR(AT(a, "paused"), "false");
    TRUE(strcmp(AT(a, "version"), "null") != 0);
    /* It is due again in a minute; its tick is late all the same. */
    fixture_start(p, 1);
    UNTIL(value(GET(&w, "/metrics"), "pawl_schedules_unread_total") >= 1);
    UNTIL(value(GET(&w, "/metrics"), "pawl_schedule_lag_seconds") > 3);
    UNTIL(strtod(AT(GET(&w, "/v1/schedules/bad"), "lag_seconds"), NULL) > 3);
    a = web_ask(&w, "PUT", "/v1/schedules/bad", "{\"every\":1,\"call\":{\"type\":\"echo\"}}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "error"), "null");
    web_end(&w);
}

/* What is read from an input of many small values is many times as long as its text. */
TEST(a_list_of_large_schedules_has_short_pages)
{
    struct web w;
    size_t len = 1000000, begin;
    char *body = malloc(len + 100);
    int seen = 0, pages = 0;
    char cursor[600] = "";
    TRUE(body != NULL);
    begin = (size_t)snprintf(body, 100, "{\"every\":3600,\"call\":{\"type\":\"t\",\"input\":[0");
    for (size_t i = 0; i + 2 < len; i += 2)
        memcpy(body + begin + i, ",1", 2);
    memcpy(body + begin + len - 2, "]}}", 4);
    web_begin(&w, param);
    for (int i = 0; i < 9; i++)
        EQ_INT(web_ask(&w, "PUT", web_text("/v1/schedules/s%d", i), body).status, 201);
    while (strcmp(cursor, "null") != 0) {
        char path[700];
        snprintf(path, sizeof path, "/v1/schedules?limit=9%s%s", *cursor ? "&cursor=" : "", cursor);
        struct web_answer a = GET(&w, path);
        EQ_INT(a.status, 200);
        for (int i = 0; i < 9 && AT(a, web_text("schedules.%d.name", i)); i++)
            EQ_STR(AT(a, web_text("schedules.%d.name", i)), web_text("s%d", seen++));
        snprintf(cursor, sizeof cursor, "%s", AT(a, "next"));
        pages++;
    }
    EQ_INT(seen, 9);
    EQ_INT(pages, 3);
    free(body);
    web_end(&w);
}

/* No change, no write: a file of schedules can be applied again when one of them is over. */
TEST(a_schedule_that_is_over_may_be_put_again)
{
    struct web w;
    char at[TIME_TEXT_LEN + 1], body[200];
    web_begin(&w, param);
    int64_t at_us = exec_now(w.p->e) + FIXTURE_SEC;
    time_text(at_us, at);
    snprintf(body, sizeof body, "{\"at\":[\"%s\"],\"call\":{\"type\":\"t\"}}", at);
    EQ_INT(web_ask(&w, "PUT", "/v1/schedules/a", body).status, 201);
    UNTIL(exec_now(w.p->e) > at_us + FIXTURE_SEC / 2);
    EQ_INT(web_ask(&w, "PUT", "/v1/schedules/a", body).status, 200);
    struct web_answer a = web_ask(&w, "PUT", "/v1/schedules/a?dry_run=true", body);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "change"), "none");
    snprintf(body, sizeof body, "{\"at\":[\"%s\"],\"call\":{\"type\":\"u\"}}", at);
    for (int dry = 0; dry < 2; dry++) {
        a = web_ask(&w, "PUT", dry ? "/v1/schedules/a?dry_run=true" : "/v1/schedules/a", body);
        EQ_INT(a.status, 400);
        EQ_STR(AT(a, "error.field"), "at");
    }
    a = web_ask(&w, "PUT", "/v1/schedules/b?dry_run=true", body);
    EQ_INT(a.status, 400);
    web_end(&w);
}

TEST(a_preview_of_1970_is_exact)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = POST(&w, "/v1/schedules/preview",
                               "{\"cron\":\"* * * * *\",\"from\":\"1969-12-31T23:59:00Z\"}");
    EQ_STR(AT(a, "times.0.utc"), "1969-12-31T23:59:00.000000Z");
    EQ_STR(AT(a, "times.1.utc"), "1970-01-01T00:00:00.000000Z");
    EQ_STR(AT(a, "times.1.local"), "1970-01-01T00:00:00+00:00");
    EQ_STR(AT(a, "times.2.utc"), "1970-01-01T00:01:00.000000Z");
    a = POST(&w, "/v1/schedules/preview",
             "{\"cron\":\"* * * * *\",\"from\":\"1970-01-01T00:00:00Z\"}");
    EQ_STR(AT(a, "times.0.utc"), "1970-01-01T00:00:00.000000Z"); /* `from` itself counts */
    web_end(&w);
}
