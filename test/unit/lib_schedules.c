/*
 * lib_schedules.c - schedules of programs: stored when the workers start, ticked by one node, and
 * noticed when another node puts one.
 *
 * The clock is the server's, or that of this process for a file.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hook.h"
#include "engines.h"
#include "exec/node.h"
#include "exec/schedules.h"
#include "exec/stats.h"
#include "exec/write_job.h"
#include "feature/all.h"
#include "feature/cron.h"
#include "feature/zones.h"
#include "fixture.h"
#include "lib/lib.h"
#include "model/schedule.h"
#include "store/feature.h"
#include "zone_folder.h"

RUNS_ON(ENGINES_DURABLE)

#define SEEN_MAX 10000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char seen[SEEN_MAX][64];
static int n_seen;
static atomic_int ran;

static int notes(struct pawl_call *c)
{
    pthread_mutex_lock(&lock);
    if (n_seen < SEEN_MAX)
        snprintf(seen[n_seen++], sizeof seen[0], "%s", pawl_call_id(c));
    pthread_mutex_unlock(&lock);
    return pawl_reply_int(c, atomic_fetch_add(&ran, 1));
}

static int slow(struct pawl_call *c)
{
    atomic_fetch_add(&ran, 1);
    while (!pawl_cancelled(c))
        usleep(1000);
    return pawl_refuse(c, "replaced");
}

#define CALL(t) (&(struct pawl_spec){ PAWL_SPEC_INIT, .type = (t) })

static struct pawl_schedule each_second(const char *name, const struct pawl_spec *call)
{
    return (struct pawl_schedule){ PAWL_SCHEDULE_INIT, .name = name, .every_us = FIXTURE_SEC,
                                   .call = call };
}

static struct pawl_err declare(struct pawl *p, struct pawl_schedule s, enum pawl_status want)
{
    enum pawl_status st = pawl_schedule(pawl_program(p), &s);
    struct pawl_err err = pawl_program(p)->err;
    EQ_STATUS(st, want, &err);
    pawl_program(p)->err = (struct pawl_err){ 0 };
    return err;
}

static enum pawl_status change(struct pawl *p, struct cron_op *q)
{
    struct arena a;
    arena_init(&a, 1 << 20);
    struct op op = { .kind = OP_FEATURE, .a = &a, .feature = { .of = &feature_cron, .ctx = q } };
    enum pawl_status st = exec_do(p->e, &op);
    const struct cron_op *did = op.feature.ctx; /* on a server it is a copy */
    if (st == PAWL_OK)
        q->version = did->version;
    arena_release(&a);
    return st;
}

static void put(struct pawl *p, const char *name, const char *type)
{
    struct schedule s;
    schedule_init(&s);
    s.rule.kind = SCHEDULE_EVERY;
    s.rule.every_us = FIXTURE_SEC;
    s.call.type = bytes_of(type);
    struct cron_op q = { .what = CRON_PUT, .name = bytes_of(name), .schedule = &s };
    OK(change(p, &q), NULL);
}

static bool stored(struct pawl *p, const char *name)
{
    struct cron_row r;
    struct pawl_err err;
    struct store *s;
    struct arena a;
    arena_init(&a, 1 << 20);
    OK(exec_reader(p->e, &s, &err), &err);
    enum pawl_status st = cron_get(s, &a, bytes_of(name), &r, &err);
    exec_reader_back(p->e, s);
    arena_release(&a);
    return st == PAWL_OK;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* ---- Ticking --------------------------------------------------------------------------------- */

TEST(a_declared_schedule_runs)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", notes);
    declare(p, each_second("mine", CALL("t")), PAWL_OK);
    FALSE(stored(p, "mine")); /* not before the workers start */
    fixture_start(p, 2);
    TRUE(stored(p, "mine"));
    UNTIL(atomic_load(&ran) >= 2);
    pthread_mutex_lock(&lock);
    TRUE(strncmp(seen[0], "cron:mine@", 10) == 0);
    TRUE(strcmp(seen[0], seen[1]) != 0);
    pthread_mutex_unlock(&lock);
    GE_INT(atomic_load(&exec_stats_of(p->e)->ticks), 2);
    pawl_close(p);
}

TEST(each_tick_of_three_nodes_runs_once, .deadline_s = 120)
{
    struct pawl *p[3];
    char name[8];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "n%d", i);
        p[i] = fixture_open_as(param, (struct pawl_options){ .node = name });
        fixture_on(p[i], "t", notes);
        for (int k = 0; k < 20; k++) {
            snprintf(name, sizeof name, "s%d", k);
            declare(p[i], each_second(name, CALL("t")), PAWL_OK); /* each node declares all of them
                                                                   */
        }
        fixture_start(p[i], 4);
    }
    UNTIL(atomic_load(&ran) >= 100);
    /* The leader, if there is one, leaves: another node goes on. */
    int leader = 0;
    for (int i = 0; i < 3; i++)
        leader = exec_leads(p[i]->e, LEAD_SCHEDULER) ? i : leader;
    pawl_close(p[leader]);
    int then = atomic_load(&ran);
    UNTIL(atomic_load(&ran) >= then + 60);
    for (int i = 0; i < 3; i++)
        if (i != leader)
            pawl_close(p[i]);
    qsort(seen, (size_t)n_seen, sizeof seen[0], compare_ids);
    for (int i = 1; i < n_seen; i++)
        TRUE(strcmp(seen[i - 1], seen[i]) != 0);
}

TEST(a_schedule_that_another_node_puts_is_noticed)
{
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = "ticks" });
    struct pawl *other = fixture_open_as(param, (struct pawl_options){ .node = "puts" });
    fixture_on(p, "t", notes);
    fixture_start(p, 2);
    UNTIL(exec_leads(p->e, LEAD_SCHEDULER));
    put(other, "a", "t");
    UNTIL(atomic_load(&ran) >= 1);
    struct cron_op q = { .what = CRON_PAUSE, .name = BYTES("a") };
    OK(change(other, &q), NULL);
    q = (struct cron_op){ .what = CRON_RESUME, .name = BYTES("a") };
    int then = atomic_load(&ran);
    OK(change(other, &q), NULL);
    UNTIL(atomic_load(&ran) > then);
    pawl_close(other);
    pawl_close(p);
}

TEST(a_replaced_call_is_cancelled)
{
    struct pawl *p = fixture_open(param);
    struct pawl_schedule s = each_second("a", CALL("t"));
    s.overlap = PAWL_OVERLAP_REPLACE;
    fixture_on(p, "t", slow);
    declare(p, s, PAWL_OK);
    fixture_start(p, 2);
    UNTIL(atomic_load(&ran) >= 3); /* only a cancel ends the one before */
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

TEST(a_tick_that_waits_follows_the_end)
{
    struct pawl *p = fixture_open(param);
    struct pawl_schedule s = each_second("a", CALL("t"));
    s.overlap = PAWL_OVERLAP_WAIT;
    fixture_on(p, "t", slow);
    declare(p, s, PAWL_OK);
    fixture_start(p, 2);
    for (int i = 1; i <= 2; i++) {
        UNTIL(atomic_load(&ran) >= i);
        cancel_running(p);
    }
    UNTIL(atomic_load(&ran) >= 3);
    pawl_close(p);
}

/* ---- Retention ------------------------------------------------------------------------------- */

static size_t n_runs(struct pawl *p, const char *name)
{
    struct cron_run_query q = { .name = bytes_of(name), .limit = 1000 };
    struct cron_run_rows r;
    struct pawl_err err;
    struct store *s;
    struct arena a;
    arena_init(&a, 4 << 20);
    OK(exec_reader(p->e, &s, &err), &err);
    OK(cron_runs(s, &a, &q, &r, &err), &err);
    exec_reader_back(p->e, s);
    arena_release(&a);
    return r.n;
}

/* An installation without automatic collection collects by hand: more runs than fit into a step. */
TEST(runs_are_removed_by_hand)
{
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .cron_runs_us = FIXTURE_MS });
    struct pawl_err err;
    int64_t removed, forgotten;
    put(p, "a", "t");
    for (int i = 0; i < 450; i++) {
        struct cron_op q = { .what = CRON_RUN, .name = BYTES("a") };
        OK(change(p, &q), NULL);
    }
    EQ_UINT(n_runs(p, "a"), 450);
    usleep(2000); /* so that the last one is past its time as well */
    OK(pawl_gc(p, 0, NULL, NULL, &err), &err);
    EQ_UINT(n_runs(p, "a"), 450);
    OK(pawl_gc(p, 10, &removed, &forgotten, &err), &err);
    EQ_UINT(n_runs(p, "a"), 0);
    EQ_INT(removed + forgotten, 0); /* the calls are kept for longer */
    pawl_close(p);
    /* Those that are kept stay. */
    p = fixture_open_as(param, (struct pawl_options){ .cron_runs_us = 3600 * FIXTURE_SEC });
    struct cron_op q = { .what = CRON_RUN, .name = BYTES("a") };
    OK(change(p, &q), NULL);
    OK(pawl_gc(p, 10, &removed, &forgotten, &err), &err);
    EQ_UINT(n_runs(p, "a"), 1);
    pawl_close(p);
}

/* ---- Declaring ------------------------------------------------------------------------------- */

TEST(an_unwanted_schedule_is_removed)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", notes);
    put(p, "old", "t");
    OK(pawl_unschedule(pawl_program(p), "old"), NULL);
    OK(pawl_unschedule(pawl_program(p), "never"), NULL);
    fixture_start(p, 1);
    FALSE(stored(p, "old"));
    EQ_STATUS(pawl_unschedule(pawl_program(p), "late"), PAWL_STATE, NULL);
    pawl_close(p);
}

TEST(declaring_again_changes_nothing)
{
    struct pawl *p = fixture_open(param);
    struct pawl_schedule s = each_second("a", CALL("t"));
    s.starts_at_us = INT64_C(4000000000) * FIXTURE_SEC;
    fixture_on(p, "t", notes);
    declare(p, s, PAWL_OK);
    fixture_start(p, 1);
    struct cron_op q = { .what = CRON_PAUSE, .name = BYTES("a") };
    OK(change(p, &q), NULL);
    pawl_close(p);
    p = fixture_open(param);
    fixture_on(p, "t", notes);
    declare(p, s, PAWL_OK);
    fixture_start(p, 1);
    struct cron_op again = { .what = CRON_PAUSE, .name = BYTES("a") };
    OK(change(p, &again), NULL);
    GT_INT(q.version, 0);
    EQ_INT(again.version, q.version); /* the operator's pause stayed */
    pawl_close(p);
}

TEST(wrong_schedules_are_refused_where_they_are_declared)
{
    struct pawl *p = fixture_open(param);
    const int64_t times[] = { 5 };
    struct pawl_spec call = { PAWL_SPEC_INIT };
    struct pawl_schedule s = each_second(NULL, CALL("t"));
    HAS_STR(declare(p, s, PAWL_INVALID).text, "field \"name\": is missing");
    s.name = "a";
    s.cron = "* * * * *";
    HAS_STR(declare(p, s, PAWL_INVALID).text, "exactly one of");
    s.every_us = 0;
    s.cron = "61 * * * *";
    HAS_STR(declare(p, s, PAWL_INVALID).text, "\"61\"");
    s.cron = NULL;
    s.every_us = -1;
    HAS_STR(declare(p, s, PAWL_INVALID).text, "every");
    s.every_us = 0;
    s.n_at = 1;
    HAS_STR(declare(p, s, PAWL_INVALID).text, "NULL pointer");
    s.at_us = times;
    s.call = NULL;
    HAS_STR(declare(p, s, PAWL_INVALID).text, "field \"call\": is missing");
    s.call = &call;
    HAS_STR(declare(p, s, PAWL_INVALID).text, "type");
    call.type = "t";
    call.id = "x";
    HAS_STR(declare(p, s, PAWL_INVALID).text, "each tick");
    call.id = NULL;
    s.overlap = (enum pawl_overlap)9;
    HAS_STR(declare(p, s, PAWL_INVALID).text, "overlap");
    s.overlap = PAWL_OVERLAP_ALLOW;
    declare(p, s, PAWL_OK); /* that it is over is for the database's clock to say */
    struct pawl_err err;
    EQ_STATUS(pawl_start(p, NULL, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "schedule \"a\": field \"at\"");
    pawl_close(p);
}

/* ---- Time zones ------------------------------------------------------------------------------ */

static atomic_int walks;

/* While the first walk over the schedules is not over, newer data comes. */
static void newer_meanwhile(const char *name, void *ctx)
{
    (void)ctx;
    if (strcmp(name, "cron.zones") == 0 && atomic_fetch_add(&walks, 1) == 0) {
        zone_data("z", "2026c", 3);
        zones_look();
    }
}

/* Let the node look, and read with which data its schedule was computed. */
static bool computed_with(struct pawl *p, struct store *s, const char *release)
{
    struct cron_row row;
    struct pawl_err err;
    struct arena a;
    arena_init(&a, 1 << 20);
    schedules_changed(p->e);
    OK(cron_get(s, &a, BYTES("z"), &row, &err), &err);
    bool same = bytes_eq(row.zone_data, bytes_of(release));
    arena_release(&a);
    return same;
}

TEST(zone_data_that_changes_during_the_walk_is_not_missed)
{
    struct pawl_schedule z = { PAWL_SCHEDULE_INIT, .name = "z", .cron = "0 12 1 1 *",
                               .zone = "Europe/London", .call = CALL("t") };
    struct pawl_err err;
    zone_data("z", "2026a", 1);
    use_zones("z");
    struct pawl *p = fixture_open(param);
    struct store_conf conf = { .url = engine_url(param) };
    struct store *s;
    conf.features = features_all(&conf.n_features);
    fixture_on(p, "t", notes);
    declare(p, z, PAWL_OK);
    fixture_start(p, 1);
    OK(store_open(&conf, &s, &err), &err);
    UNTIL(computed_with(p, s, "2026a"));
    UNTIL(exec_leads(p->e, LEAD_SCHEDULER));
    zone_data("z", "2026b", 2);
    hook_on_pause(newer_meanwhile, NULL);
    zones_look();
    UNTIL(computed_with(p, s, "2026c"));
    GT_INT(atomic_load(&walks), 1);
    hook_on_pause(NULL, NULL);
    store_close(s);
    pawl_close(p);
}
