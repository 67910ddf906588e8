/*
 * schedules_ticks.c - what GET /v1/schedules/NAME/runs shows of ticks that were submitted, skipped
 * or missed, or that wait, with exact values.
 *
 * No workers are started, and so no scheduler: the case says when ticks are decided.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/world.h"
#include "web.h"

RUNS_ON(ENGINES_DURABLE)

#define MORE(members) members ",\"call\":{\"type\":\"t\"}"

static void begin(struct web *w, const void *param)
{
    web_begin_as(w, fixture_open(param), NULL);
}

static void done(struct web_answer a, int status)
{
    if (a.status != status)
        FAIL("%d, not %d: %.*s", a.status, status, BYTES_ARG(a.body));
}

static struct web_answer runs(struct web *w, const char *name)
{
    struct web_answer a = GET(w, web_text("/v1/schedules/%s/runs", name));
    done(a, 200);
    EQ_STR(AT(a, "next"), "null");
    return a;
}

/* The run that an answer shows at this place. */
static const char *at(struct web_answer a, int i, const char *member)
{
    return AT(a, web_text("runs.%d.%s", i, member));
}

/* Its members, in the order in which they are shown; the call, node and times are the case's own
 * business. */
static void run_is(struct web_answer a, int i, int64_t at_us, const char *want)
{
    static const char *const members[] = { "cron_name", "timezone", "status", "reason", "count" };
    const char *got = "";
    for (size_t k = 0; k < COUNT_OF(members); k++)
        got = web_text("%s%s%s", got, k ? " " : "", at(a, i, members[k]));
    EQ_STR(got, want);
    EQ_STR(at(a, i, "scheduled_time"), web_time(at_us));
}

/* No call came of it. */
static void no_call(struct web_answer a, int i)
{
    EQ_STR(at(a, i, "call"), "null");
    EQ_STR(at(a, i, "started_at"), "null");
    EQ_STR(at(a, i, "completed_at"), "null");
    EQ_STR(at(a, i, "error"), "null");
}

/* When it was decided: its time and how late that was. */
static int64_t decided_us(struct web_answer a, int i)
{
    int64_t at_us = 0;
    const char *late = at(a, i, "late_seconds"), *time = at(a, i, "scheduled_time");
    TRUE(late && time_parse(bytes_of(time), &at_us));
    return at_us + llround(strtod(late, NULL) * FIXTURE_SEC);
}

static const char *tick_id(const char *name, int64_t at_us)
{
    return web_text("cron:%s@%s", name, web_time(at_us));
}

/* ---- Skipped --------------------------------------------------------------------------------- */

TEST(a_skipped_tick)
{
    struct web w;
    begin(&w, param);
    int64_t t = web_put_times(
        &w, "s", 2, MORE(",\"overlap\":\"skip\",\"catch_up\":\"all\",\"zone\":\"Europe/Berlin\""));
    web_wait_past(t + FIXTURE_MS);
    int64_t from_us = world_now(&world_real);
    web_tick(&w);
    int64_t until_us = world_now(&world_real);
    struct web_answer a = runs(&w, "s");
    run_is(a, 0, t + FIXTURE_MS, "s Europe/Berlin skipped overlap 1");
    no_call(a, 0);
    EQ_STR(at(a, 0, "node_id"), "test");
    run_is(a, 1, t, "s Europe/Berlin pending null 1");
    EQ_STR(at(a, 1, "call"), tick_id("s", t));
    EQ_STR(at(a, 1, "completed_at"), "null");
    EQ_PTR(at(a, 2, "status"), NULL);
    /* Both were decided in one commit, at the same moment of the database's clock. */
    EQ_INT(decided_us(a, 0), decided_us(a, 1));
    TRUE(decided_us(a, 0) >= from_us && decided_us(a, 0) <= until_us);
    a = GET(&w, "/v1/schedules/s");
    EQ_STR(AT(a, "last.status"), "skipped");
    EQ_STR(AT(a, "next_at"), "null");
    EQ_STR(AT(a, "next"), "[]");
    EQ_STR(AT(a, "lag_seconds"), "0");
    EQ_STR(AT(a, "waiting_at"), "null");
    web_end(&w);
}

/* A client has submitted another call with the id of a tick. */
TEST(a_tick_whose_id_is_taken)
{
    struct web w;
    begin(&w, param);
    int64_t t = web_put_times(&w, "s", 2, MORE(""));
    done(POST(&w, "/v1/calls", web_text("{\"id\":\"%s\",\"type\":\"other\"}", tick_id("s", t))),
         202);
    web_wait_past(t + FIXTURE_MS);
    web_tick(&w);
    struct web_answer a = runs(&w, "s");
    run_is(a, 0, t + FIXTURE_MS, "s UTC pending null 1");
    run_is(a, 1, t, "s UTC skipped conflict 1");
    no_call(a, 1);
    EQ_STR(AT(GET(&w, web_text("/v1/calls/%s", tick_id("s", t))), "schedule"), "null");
    web_end(&w);
}

/* ---- Missed ---------------------------------------------------------------------------------- */

/* Store a schedule of four times, pause it, and resume it when they have passed. */
static int64_t missed(struct web *w, const char *name, const char *members)
{
    int64_t t = web_put_times(w, name, 4, members);
    done(POST(w, web_text("/v1/schedules/%s/pause", name), ""), 200);
    web_wait_past(t + 3 * FIXTURE_MS);
    struct web_answer a = GET(w, web_text("/v1/schedules/%s", name));
    EQ_STR(AT(a, "lag_seconds"), "0"); /* it is paused, not late */
    EQ_STR(AT(a, "next_at"), "null");
    a = POST(w, web_text("/v1/schedules/%s/resume", name), "");
    done(a, 200);
    EQ_STR(AT(a, "next_at"), web_time(t)); /* to be decided */
    TRUE(strtod(AT(a, "lag_seconds"), NULL) > 0);
    return t;
}

TEST(missed_ticks_and_their_count)
{
    struct web w;
    begin(&w, param);
    int64_t none = missed(&w, "none", MORE(",\"catch_up\":\"none\""));
    int64_t last = missed(&w, "last", MORE(",\"catch_up\":\"last\""));
    int64_t late = missed(&w, "late", MORE(",\"catch_up\":\"last\",\"catch_up_for\":0"));
    int64_t all = missed(&w, "all", MORE(",\"catch_up\":\"all\""));
    int64_t from_us = world_now(&world_real);
    web_tick(&w);
    int64_t until_us = world_now(&world_real);

    struct web_answer a = runs(&w, "none");
    run_is(a, 0, none + 3 * FIXTURE_MS, "none UTC missed null 4");
    no_call(a, 0);
    EQ_STR(at(a, 0, "node_id"), "test");
    EQ_PTR(at(a, 1, "status"), NULL);
    int64_t decided = decided_us(a, 0);
    TRUE(decided >= from_us && decided <= until_us);
    EQ_STR(AT(GET(&w, "/v1/schedules/none"), "last.count"), "4");
    EQ_STR(AT(GET(&w, "/v1/schedules/none"), "lag_seconds"), "0");

    a = runs(&w, "last");
    run_is(a, 0, last + 3 * FIXTURE_MS, "last UTC pending null 1");
    EQ_STR(at(a, 0, "call"), tick_id("last", last + 3 * FIXTURE_MS));
    run_is(a, 1, last + 2 * FIXTURE_MS, "last UTC missed null 3");
    no_call(a, 1);
    EQ_PTR(at(a, 2, "status"), NULL);
    EQ_INT(decided_us(a, 0), decided);
    EQ_INT(decided_us(a, 1), decided);

    a = runs(&w, "late");
    run_is(a, 0, late + 3 * FIXTURE_MS, "late UTC missed null 4");

    a = runs(&w, "all");
    for (int i = 0; i < 4; i++) {
        int64_t at_us = all + (3 - i) * FIXTURE_MS;
        run_is(a, i, at_us, "all UTC pending null 1");
        EQ_STR(at(a, i, "call"), tick_id("all", at_us));
        EQ_INT(decided_us(a, i), decided);
    }
    EQ_PTR(at(a, 4, "status"), NULL);
    web_end(&w);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

TEST(a_tick_that_waits)
{
    struct web w;
    begin(&w, param);
    int64_t t = web_put_times(&w, "s", 3, MORE(",\"overlap\":\"wait\",\"catch_up\":\"all\""));
    EQ_STR(AT(GET(&w, "/v1/schedules/s"), "waiting_at"), "null");
    web_wait_past(t + 2 * FIXTURE_MS);
    web_tick(&w);
    struct web_answer a = GET(&w, "/v1/schedules/s");
    EQ_STR(AT(a, "waiting_at"), web_time(t + 2 * FIXTURE_MS));
    EQ_STR(AT(a, "lag_seconds"), "0");
    EQ_STR(AT(GET(&w, "/v1/schedules"), "schedules.0.waiting_at"), web_time(t + 2 * FIXTURE_MS));
    a = runs(&w, "s");
    run_is(a, 0, t + FIXTURE_MS, "s UTC skipped replaced 1");
    no_call(a, 0);
    run_is(a, 1, t, "s UTC pending null 1");
    EQ_PTR(at(a, 2, "status"), NULL); /* what waits is no run yet */

    int64_t from_us = world_now(&world_real);
    done(POST(&w, web_text("/v1/calls/%s/cancel", tick_id("s", t)), ""), 200);
    int64_t until_us = world_now(&world_real);
    EQ_STR(AT(GET(&w, "/v1/schedules/s"), "waiting_at"), "null");
    a = runs(&w, "s");
    run_is(a, 0, t + 2 * FIXTURE_MS, "s UTC pending null 1");
    EQ_STR(at(a, 0, "call"), tick_id("s", t + 2 * FIXTURE_MS));
    TRUE(decided_us(a, 0) >= from_us && decided_us(a, 0) <= until_us);
    run_is(a, 2, t, "s UTC cancelled null 1");
    web_end(&w);
}

/* What waits is given up when its schedule is replaced or deleted. */
TEST(a_tick_that_waits_for_a_schedule_that_goes)
{
    struct web w;
    begin(&w, param);
    int64_t t = web_put_times(&w, "s", 2, MORE(",\"overlap\":\"wait\",\"catch_up\":\"all\""));
    web_wait_past(t + FIXTURE_MS);
    web_tick(&w);
    EQ_STR(AT(GET(&w, "/v1/schedules/s"), "waiting_at"), web_time(t + FIXTURE_MS));
    done(web_ask(&w, "DELETE", "/v1/schedules/s", NULL), 200);
    struct web_answer a = runs(&w, "s");
    run_is(a, 0, t + FIXTURE_MS, "s UTC skipped changed 1");
    no_call(a, 0);
    done(POST(&w, web_text("/v1/calls/%s/cancel", tick_id("s", t)), ""), 200);
    web_tick(&w);
    EQ_PTR(at(runs(&w, "s"), 2, "status"), NULL);
    EQ_INT(GET(&w, web_text("/v1/calls/%s", tick_id("s", t + FIXTURE_MS))).status, 404);
    web_end(&w);
}
