/*
 * metrics.c - /metrics: the text follows the format, and the figures match what happened.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/world.h"
#include "web.h"

RUNS_ON(ENGINES_ALL)

static double value(struct web_answer a, const char *series)
{
    const char *at = strstr(a.body.data, web_text("\n%s ", series));
    if (!at)
        FAIL("there is no %s", series);
    return strtod(at + strlen(series) + 2, NULL);
}

/* Heartbeats and sweeps commit at any time, also between two figures of one answer. */
static bool commits_agree(struct web *w)
{
    struct web_answer a = GET(w, "/metrics");
    double commits = value(a, "pawl_commits_total");
    return value(a, "pawl_commit_seconds_count") == commits &&
           value(a, "pawl_group_operations_bucket{le=\"+Inf\"}") == commits;
}

TEST(counts_what_happened)
{
    struct web w;
    struct pawl *p = fixture_open(param);
    fixture_on(p, "echo", fixture_echo);
    fixture_on(p, "fails", fixture_fails);
    fixture_start(p, 2);
    web_begin_as(&w, p, NULL);
    POST(&w, "/v1/calls?wait=30", "{\"type\":\"echo\",\"id\":\"a\"}");
    POST(&w, "/v1/calls?wait=30", "{\"type\":\"echo\",\"id\":\"a\"}");
    POST(&w, "/v1/calls?wait=30", "{\"type\":\"fails\",\"max_attempts\":1}");
    POST(&w, "/v1/calls", "{\"type\":\"nobody\",\"queue\":\"a\\\"b\\\\c\"}");
    POST(&w, "/v1/work/finish",
         "{\"lease\":\"0123456789abcdef0123456789abcdef\",\"results\":[{\"id\":\"a\","
         "\"result\":1}]}");
    struct web_answer a = GET(&w, "/metrics");
    EQ_INT(a.status, 200);
    HAS_STR(a.head.data, "text/plain; version=0.0.4");
    EQ_INT(value(a, "pawl_accepted_total"), 3);
    EQ_INT(value(a, "pawl_duplicates_total"), 1);
    EQ_INT(value(a, "pawl_claimed_total"), 2);
    EQ_INT(value(a, "pawl_completed_total"), 1);
    EQ_INT(value(a, "pawl_failed_tries_total"), 1);
    EQ_INT(value(a, "pawl_ended_total"), 2);
    EQ_INT(value(a, "pawl_lost_total"), 1);
    EQ_INT(value(a, "pawl_slots"), 2);
    EQ_INT(value(a, "pawl_http_requests_total"), 6);
    EQ_INT(value(a, "pawl_database_up"), 1);
    EQ_INT(value(a, "pawl_queue_pending{queue=\"a\\\"b\\\\c\"}"), 1);
    EQ_INT(value(a, "pawl_queue_pending{queue=\"default\"}"), 0);
    UNTIL(commits_agree(&w));
    web_end(&w);
}

/* ---- The format ------------------------------------------------------------------------------ */

static size_t name_len(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == ':')
        n++;
    return n;
}

/* Where the number begins in `name{label="value",...} number`. */
static const char *series(const char *line, size_t name)
{
    const char *at = line + name;
    if (*at == '{') {
        do {
            size_t label = name_len(++at);
            TRUE(label > 0 && at[label] == '=' && at[label + 1] == '"');
            for (at += label + 2; *at != '"'; at++) {
                NE_INT(*at, '\n');
                if (*at == '\\')
                    TRUE(strchr("\\\"n", *++at));
            }
            at++;
        } while (*at == ',');
        EQ_INT(*at++, '}');
    }
    EQ_INT(*at++, ' ');
    return at;
}

/* Every series comes behind the HELP and TYPE of its family, each family once and in one piece;
 * counters end in _total; a histogram's buckets rise. */
TEST(holds_to_the_format)
{
    struct web w;
    char family[128] = "", type[32] = "";
    double last = 0;
    web_begin(&w, param);
    POST(&w, "/v1/calls", "{\"type\":\"t\"}");
    struct web_answer a = GET(&w, "/metrics");
    EQ_INT(a.body.data[a.body.len - 1], '\n');
    for (const char *line = a.body.data; *line; line = strchr(line, '\n') + 1) {
        if (!strncmp(line, "# HELP ", 7)) {
            size_t n = name_len(line + 7);
            snprintf(family, sizeof family, "%.*s", (int)n, line + 7);
            FALSE(strstr(line + 7, web_text("# HELP %s ", family)));
            EQ_INT(line[7 + n], ' ');
            last = 0;
        } else if (*line == '#') {
            char name[128];
            EQ_INT(sscanf(line, "# TYPE %127s %31s", name, type), 2);
            EQ_STR(name, family);
            EQ_INT(!strcmp(type, "counter"),
                   strlen(name) > 6 && !strcmp(name + strlen(name) - 6, "_total"));
        } else {
            size_t n = name_len(line);
            char *end;
            double v = strtod(series(line, n), &end);
            EQ_INT(*end, '\n');
            bool bucket =
                !strcmp(type, "histogram") && !strncmp(line + strlen(family), "_bucket", 7);
            EQ_MEM(line, family, strlen(family));
            if (strcmp(type, "histogram"))
                EQ_UINT(n, strlen(family));
            if (bucket)
                TRUE(v >= last);
            last = v;
        }
    }
    web_end(&w);
}

/* Many queue names do not make as many series. */
TEST(shows_a_bounded_number_of_queues)
{
    struct web w;
    struct buf b;
    web_begin(&w, param);
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 300; i++)
        buf_addf(&b, "%s{\"type\":\"t\",\"queue\":\"q%d\"}", i ? "," : "{\"calls\":[", i);
    buf_addf(&b, "]}%c", 0);
    EQ_INT(POST(&w, "/v1/calls/batch", b.data).status, 200);
    buf_release(&b);
    struct web_answer a = GET(&w, "/metrics");
    EQ_INT(value(a, "pawl_queues"), 300);
    int shown = 0;
    for (const char *at = a.body.data; (at = strstr(at, "\npawl_queue_due{")); at++)
        shown++;
    EQ_INT(shown, 200);
    web_end(&w);
}

/* ---- Ticks ----------------------------------------------------------------------------------- */

/* pawl_ticks_total by reason, where it is not 0, and pawl_ticks_missed_total. */
static const char *ticks(struct web *w)
{
    static const char *const reasons[] = {
        "submitted", "manual",   "waited", "overlap", "replaced",
        "changed",   "conflict", "gone",   "full",    "invalid"
    };
    struct web_answer a = GET(w, "/metrics");
    const char *got = "";
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        double n = value(a, web_text("pawl_ticks_total{reason=\"%s\"}", reasons[i]));
        if (n != 0)
            got = web_text("%s%s %g, ", got, reasons[i], n);
    }
    return web_text("%smissed %g", got, value(a, "pawl_ticks_missed_total"));
}

static double lag(struct web *w)
{
    return value(GET(w, "/metrics"), "pawl_schedule_lag_seconds");
}

static void post(struct web *w, const char *path, const char *body)
{
    struct web_answer a = POST(w, path, body);
    if (a.status / 100 != 2)
        FAIL("%d: %.*s", a.status, BYTES_ARG(a.body));
}

#define MORE(members) members ",\"call\":{\"type\":\"t\"}"
#define ALL ",\"catch_up\":\"all\""

/* No workers are started, and so no scheduler: the case says when ticks are decided. */
TEST(counts_ticks_by_what_came_of_them)
{
    if (fixture_is_mem(param))
        skip("it has no schedules");
    struct web w;
    web_begin(&w, param);
    EQ_STR(ticks(&w), "missed 0");
    web_put_times(&w, "allow", 3, MORE(ALL));
    web_put_times(&w, "skip", 3, MORE(ALL ",\"overlap\":\"skip\""));
    int64_t waits = web_put_times(&w, "wait", 3, MORE(ALL ",\"overlap\":\"wait\""));
    web_put_times(&w, "replace", 3, MORE(ALL ",\"overlap\":\"replace\""));
    int64_t taken = web_put_times(&w, "taken", 1, MORE(ALL));
    post(&w, "/v1/calls",
         web_text("{\"id\":\"cron:taken@%s\",\"type\":\"other\"}", web_time(taken)));
    web_wait_past(taken);
    EQ_STR(ticks(&w), "missed 0");
    double accepted = value(GET(&w, "/metrics"), "pawl_accepted_total");

    web_tick(&w);
    /* 3 of allow; 1 and 2 skipped of skip; 1, 1 replaced and 1 that waits of wait; of replace only
     * the newest of those that are decided at once. */
    EQ_STR(ticks(&w), "submitted 6, overlap 2, replaced 3, conflict 1, missed 0");
    EQ_INT(value(GET(&w, "/metrics"), "pawl_accepted_total"), accepted + 6);
    post(&w, web_text("/v1/calls/cron:wait@%s/cancel", web_time(waits)), "");
    EQ_STR(ticks(&w), "submitted 6, waited 1, overlap 2, replaced 3, conflict 1, missed 0");
    EQ_INT(value(GET(&w, "/metrics"), "pawl_accepted_total"), accepted + 7);
    web_tick(&w); /* nothing is due */
    EQ_STR(ticks(&w), "submitted 6, waited 1, overlap 2, replaced 3, conflict 1, missed 0");

    w.more = "Idempotency-Key: once\r\n";
    post(&w, "/v1/schedules/allow/run", "");
    post(&w, "/v1/schedules/allow/run", ""); /* a repeat is the same run */
    w.more = NULL;
    EQ_STR(ticks(&w),
           "submitted 6, manual 1, waited 1, overlap 2, replaced 3, conflict 1, missed 0");
    web_end(&w);
}

TEST(counts_missed_ticks)
{
    if (fixture_is_mem(param))
        skip("it has no schedules");
    struct web w;
    web_begin(&w, param);
    web_put_times(&w, "none", 4, MORE(",\"catch_up\":\"none\""));
    post(&w, "/v1/schedules/none/pause", "");
    int64_t t = web_put_times(&w, "last", 4, MORE(",\"catch_up\":\"last\""));
    post(&w, "/v1/schedules/last/pause", "");
    web_wait_past(t + 3 * FIXTURE_MS);
    web_tick(&w); /* they are paused */
    EQ_STR(ticks(&w), "missed 0");
    post(&w, "/v1/schedules/none/resume", "");
    web_tick(&w);
    EQ_STR(ticks(&w), "missed 4");
    post(&w, "/v1/schedules/last/resume", "");
    web_tick(&w);
    EQ_STR(ticks(&w), "submitted 1, missed 7");
    web_end(&w);
}

/* The lag is that of the schedule that is due for longest, while nobody ticks. */
TEST(the_lag_of_ticks)
{
    if (fixture_is_mem(param))
        skip("it has no schedules");
    struct web w;
    web_begin(&w, param);
    EQ_INT(llround(lag(&w) * FIXTURE_SEC), 0);
    EQ_INT(web_ask(&w, "PUT", "/v1/schedules/far", MORE("{\"at\":[\"2100-01-01T00:00:00Z\"]") "}")
               .status,
           201);
    EQ_INT(llround(lag(&w) * FIXTURE_SEC), 0);
    int64_t first_us = web_put_times(&w, "first", 2, MORE(ALL));
    web_wait_past(web_put_times(&w, "second", 1, MORE(ALL)));
    for (int i = 0; i < 2; i++) {
        int64_t from_us = world_now(&world_real);
        double seconds = lag(&w);
        int64_t until_us = world_now(&world_real);
        GE_INT(llround(seconds * FIXTURE_SEC), from_us - first_us);
        LE_INT(llround(seconds * FIXTURE_SEC), until_us - first_us);
    }
    web_tick(&w);
    EQ_INT(llround(lag(&w) * FIXTURE_SEC), 0);
    web_end(&w);
}

/* The scheduler of a node counts as well. */
TEST(counts_the_ticks_of_its_scheduler)
{
    if (fixture_is_mem(param))
        skip("it has no schedules");
    struct web w;
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 1);
    web_begin_as(&w, p, NULL);
    web_put_times(&w, "a", 3, MORE(ALL));
    UNTIL(value(GET(&w, "/metrics"), "pawl_ticks_total{reason=\"submitted\"}") >= 3);
    EQ_STR(ticks(&w), "submitted 3, missed 0");
    web_end(&w);
}
