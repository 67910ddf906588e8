/*
 * lib_schedules_told.c - what a node tells of schedules: ticks that nobody asked for and schedules
 * that cannot be read, in its counters and its log; and its settings for the calls of schedules.
 *
 * The clock is the server's, or that of this process for a file.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "exec/node.h"
#include "exec/stats.h"
#include "exec/write_job.h"
#include "feature/cron.h"
#include "fixture.h"
#include "lib/lib.h"
#include "model/schedule.h"
#include "store/feature.h"

RUNS_ON(ENGINES_DURABLE)

static atomic_int ran;

static int slow(struct pawl_call *c)
{
    atomic_fetch_add(&ran, 1);
    while (!pawl_cancelled(c))
        usleep(1000);
    return pawl_refuse(c, "cancelled");
}

static enum pawl_status change(struct pawl *p, struct cron_op *q)
{
    struct arena a;
    arena_init(&a, 1 << 20);
    struct op op = { .kind = OP_FEATURE, .a = &a, .feature = { .of = &feature_cron, .ctx = q } };
    enum pawl_status st = exec_do(p->e, &op);
    arena_release(&a);
    return st;
}

static void put(struct pawl *p, const char *name, const struct schedule *s)
{
    struct cron_op q = { .what = CRON_PUT, .name = bytes_of(name), .schedule = s };
    OK(change(p, &q), NULL);
}

static struct schedule each_second(const char *type)
{
    struct schedule s;
    schedule_init(&s);
    s.rule.kind = SCHEDULE_EVERY;
    s.rule.every_us = FIXTURE_SEC;
    s.call.type = bytes_of(type);
    return s;
}

/* The schedule; its text as a string that stays valid until the next call. */
static struct cron_row row_of(struct pawl *p, const char *name, const char **out_spec)
{
    static char spec[10000];
    struct cron_row r;
    struct pawl_err err;
    struct store *s;
    struct arena a;
    arena_init(&a, 1 << 20);
    OK(exec_reader(p->e, &s, &err), &err);
    OK(cron_get(s, &a, bytes_of(name), &r, &err), &err);
    exec_reader_back(p->e, s);
    snprintf(spec, sizeof spec, "%.*s", BYTES_ARG(r.spec));
    if (out_spec)
        *out_spec = spec;
    arena_release(&a);
    return r;
}

/* ---- The log --------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char warned[1000], failed[1000];

static void hear(const struct log_record *r, void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    if (strstr(r->message, "schedule \""))
        snprintf(r->level == LOG_ERROR ? failed : warned, sizeof warned, "%s", r->message);
    pthread_mutex_unlock(&lock);
}

static bool heard(const char *text, const char *what)
{
    pthread_mutex_lock(&lock);
    bool yes = strstr(text, what);
    pthread_mutex_unlock(&lock);
    return yes;
}

/* ---- Told ------------------------------------------------------------------------------------ */

TEST(ticks_that_a_change_ends_are_counted)
{
    struct pawl *p = fixture_open(param); /* not started: nobody ticks */
    const struct exec_stats *stats = exec_stats_of(p->e);
    struct schedule s = each_second("t");
    put(p, "a", &s);
    put(p, "b", &s);
    int64_t first_us = row_of(p, "b", NULL).next_us;
    UNTIL(exec_now(p->e) > first_us + FIXTURE_SEC * 3 / 2);
    s.call.type = BYTES("u");
    put(p, "a", &s);
    int64_t missed = atomic_load(&stats->ticks_missed);
    GE_INT(missed, 2);
    put(p, "a", &s); /* no change */
    EQ_INT(atomic_load(&stats->ticks_missed), missed);
    struct cron_op gone = { .what = CRON_DELETE, .name = BYTES("b") };
    OK(change(p, &gone), NULL);
    GE_INT(atomic_load(&stats->ticks_missed), missed + 2);
    pawl_close(p);
}

TEST(a_waiting_tick_that_a_change_ends_is_counted)
{
    struct pawl *p = fixture_open(param);
    const struct exec_stats *stats = exec_stats_of(p->e);
    struct schedule s = each_second("t");
    s.overlap = OVERLAP_WAIT;
    fixture_on(p, "t", slow);
    put(p, "a", &s);
    fixture_start(p, 1);
    UNTIL(row_of(p, "a", NULL).waiting_us);
    EQ_INT(atomic_load(&stats->ticks_skipped[CRON_CHANGED]), 0);
    struct cron_op gone = { .what = CRON_DELETE, .name = BYTES("a") };
    OK(change(p, &gone), NULL);
    EQ_INT(atomic_load(&stats->ticks_skipped[CRON_CHANGED]), 1);
    pawl_close(p);
}

static void cancel_running(struct pawl *p)
{
    struct pawl_query q = { PAWL_QUERY_INIT, .state = PAWL_PROCESSING };
    struct pawl_page *page = NULL;
    struct pawl_err err;
    enum pawl_state state;
    OK(pawl_list(p, &q, &page, &err), &err);
    EQ_UINT(page->n, 1);
    OK(pawl_cancel(p, page->calls[0].id, &state, &err), &err);
    pawl_page_free(page);
}

TEST(a_waiting_tick_that_loses_its_id_is_logged_and_counted)
{
    struct pawl *p = fixture_open(param);
    struct cron_unasked before, after;
    char at[TIME_TEXT_LEN + 1], id[100];
    int64_t begin_us = exec_now(p->e) / FIXTURE_SEC * FIXTURE_SEC;
    int64_t times[] = { begin_us + 2 * FIXTURE_SEC, begin_us + 3 * FIXTURE_SEC };
    struct schedule s = each_second("t");
    s.rule = (struct schedule_rule){ .kind = SCHEDULE_AT, .at_us = times, .n_at = 2 };
    s.overlap = OVERLAP_WAIT;
    log_sink_set(hear, NULL);
    fixture_on(p, "t", slow);
    put(p, "a", &s);
    schedule_time_text(times[1], at);
    snprintf(id, sizeof id, "cron:a@%s", at);
    fixture_submit(p, id, "other");
    cron_unasked(&before);
    fixture_start(p, 1);
    UNTIL(row_of(p, "a", NULL).waiting_us);
    UNTIL(atomic_load(&ran) == 1);
    cancel_running(p);
    UNTIL(heard(warned, "was not submitted"));
    TRUE(heard(warned, id));
    TRUE(heard(warned, "schedule \"a\": its tick "));
    cron_unasked(&after);
    GE_INT(after.skipped[CRON_CONFLICT] - before.skipped[CRON_CONFLICT], 1);
    pawl_close(p);
    log_sink_set(NULL, NULL);
}

TEST(a_schedule_that_cannot_be_read_is_logged_and_counted)
{
    struct pawl *p = fixture_open(param);
    const struct exec_stats *stats = exec_stats_of(p->e);
    struct schedule s = each_second("t");
    s.rule.every_us = FIXTURE_SEC;
    s.zone = BYTES("UTC");
    log_sink_set(hear, NULL);
    EQ_INT(exec_unread_since(stats), 0);
    struct pawl_err err;
    OK(cron_parse(BYTES("* * * * * *"), &s.rule.cron, &err), &err);
    s.rule.kind = SCHEDULE_CRON;
    s.cron = BYTES("61 * * * *"); /* what is stored */
    put(p, "bad", &s);
    int64_t next_us = row_of(p, "bad", NULL).next_us;
    fixture_on(p, "t", slow);
    fixture_start(p, 1);
    UNTIL(heard(failed, "schedule \"bad\" does not tick: "));
    TRUE(heard(failed, "cannot be read"));
    UNTIL(atomic_load(&stats->unread) >= 1);
    EQ_INT(exec_unread_since(stats), next_us);
    pawl_close(p);
    log_sink_set(NULL, NULL);
}

/* ---- Settings -------------------------------------------------------------------------------- */

TEST(declared_schedules_follow_the_settings_of_the_node)
{
    char input[103];
    const char *spec;
    struct pawl *p;
    struct pawl_err err;
    struct pawl_options o = { PAWL_OPTIONS_INIT, .db = engine_url(param), .node = "fixture" };
    OK(pawl_open_with(&o, &(struct call_defaults){ 90 * FIXTURE_SEC, 100 }, &p, &err), &err);
    struct pawl_spec call = { PAWL_SPEC_INIT, .type = "t" };
    struct pawl_schedule s = { PAWL_SCHEDULE_INIT, .name = "a", .every_us = 60 * FIXTURE_SEC,
                               .call = &call };
    memset(input, 'x', sizeof input);
    input[0] = input[99] = '"';
    call.input = (struct pawl_data){ PAWL_JSON, input, 100 };
    OK(pawl_schedule(pawl_program(p), &s), &pawl_program(p)->err);
    s.name = "b";
    call.timeout_us = 60 * FIXTURE_SEC; /* its own, although it is the usual one */
    OK(pawl_schedule(pawl_program(p), &s), &pawl_program(p)->err);
    input[99] = 'x';
    input[100] = '"';
    call.input.len = 101;
    EQ_STATUS(pawl_schedule(pawl_program(p), &s), PAWL_TOO_LARGE, NULL);
    HAS_STR(pawl_program(p)->err.text, "is 101 bytes, limit 100");
    pawl_program(p)->err = (struct pawl_err){ 0 };
    fixture_on(p, "t", slow);
    fixture_start(p, 1);
    row_of(p, "a", &spec);
    HAS_STR(spec, "\"timeout\":90");
    row_of(p, "b", &spec);
    EQ_PTR(strstr(spec, "timeout"), NULL);
    pawl_close(p);
}
