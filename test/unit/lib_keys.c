/*
 * lib_keys.c - calls with a key: one at a time, in order, on the state the one before left; and
 * what becomes of those behind one that did not complete.
 *
 * What is submitted before the workers start is claimed as one run, so that the cases about the
 * middle of a run have one.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"
#include "store/store.h"

RUNS_ON(ENGINES_ALL)

#define TEXT_MAX 4096

/* The ids in the order their handlers ran, each with a space behind it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char order[TEXT_MAX];
static atomic_int inside, overlaps;

static void note(const char *id)
{
    pthread_mutex_lock(&lock);
    size_t len = strlen(order);
    snprintf(order + len, sizeof order - len, "%s ", id);
    pthread_mutex_unlock(&lock);
}

static bool noted(const char *id)
{
    pthread_mutex_lock(&lock);
    bool is = strstr(order, id);
    pthread_mutex_unlock(&lock);
    return is;
}

static struct pawl_data json(const char *text)
{
    return (struct pawl_data){ PAWL_JSON, text, strlen(text) };
}

/* Adds 1 to the state, replies the sum. */
static int counts(struct pawl_call *c)
{
    if (atomic_fetch_add(&inside, 1) > 0)
        atomic_fetch_add(&overlaps, 1);
    note(pawl_call_id(c));
    int64_t n = pawl_state_int(c, 0) + 1;
    EQ_INT(pawl_set_state_int(c, n), 0);
    EQ_INT(pawl_state_int(c, 0), n); /* what it has set is what it sees */
    atomic_fetch_sub(&inside, 1);
    return pawl_reply_int(c, n);
}

/* "c0" ... "c(n-1)" of one key, in one commit. */
static void submit_line(struct pawl *p, const char *type, int n)
{
    struct pawl_spec *v = calloc((size_t)n, sizeof *v);
    struct pawl_receipt *r = calloc((size_t)n, sizeof *r);
    char(*ids)[16] = calloc((size_t)n, sizeof *ids);
    struct pawl_err err;
    fixture_assume_quick(); /* a line is claimed in runs, which is what these cases are about */
    for (int i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "c%d", i);
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT,      .id = ids[i],      .type = type,
                                   .key = "k",          .max_attempts = 2, .backoff_base_us = 1000,
                                   .backoff_jitter = -1 };
    }
    OK(pawl_submit(p, v, (size_t)n, 0, r, &err), &err);
    for (int i = 0; i < n; i++)
        EQ_INT(r[i].status, PAWL_OK);
    free(v);
    free(r);
    free(ids);
}

/* Of an ended call: its result as a number, INT64_MIN without one. */
static int64_t result_of(struct pawl *p, const char *id)
{
    struct pawl_shown *s = fixture_get(p, id);
    const struct pawl_view *v = pawl_shown_view(s);
    char text[32] = "";
    if (v->result.form == PAWL_JSON)
        snprintf(text, sizeof text, "%.*s", (int)v->result.len, (const char *)v->result.data);
    pawl_shown_free(s);
    return *text ? strtoll(text, NULL, 10) : INT64_MIN;
}

static int64_t key_no(struct pawl *p, const char *id)
{
    struct pawl_shown *s = fixture_get(p, id);
    int64_t n = pawl_shown_view(s)->key_no;
    pawl_shown_free(s);
    return n;
}

/* What the object (type, "k") keeps, as a number; -1: nothing. */
static int64_t kept(struct pawl *p, const char *type)
{
    struct pawl_object *o = NULL;
    struct pawl_err err;
    enum pawl_status st = pawl_object_load(p, type, "k", &o, &err);
    if (st == PAWL_NOT_FOUND)
        return -1;
    OK(st, &err);
    int64_t n = strtoll(o->state.data, NULL, 10);
    pawl_object_free(o);
    return n;
}

/* ---- Order and state ------------------------------------------------------------------------- */

#define CALLERS 200

struct caller {
    struct pawl *p;
    pthread_t thread;
    char id[16];
    int64_t result, key_no, started, finished;
};

static void *call_it(void *arg)
{
    struct caller *c = arg;
    struct pawl_shown *s;
    struct pawl_err err;
    struct pawl_spec spec = { PAWL_SPEC_INIT, .id = c->id, .type = "t", .key = "k" };
    OK(pawl_submit_wait(c->p, &spec, FIXTURE_WAIT_US, &s, &err), &err);
    const struct pawl_view *v = pawl_shown_view(s);
    EQ_STR(pawl_state_name(v->state), "completed");
    EQ_INT(v->position, -1);
    c->result = strtoll(v->result.data, NULL, 10);
    c->key_no = v->key_no;
    c->started = v->started_at_us;
    c->finished = v->finished_at_us;
    pawl_shown_free(s);
    return NULL;
}

/* Looks into the database while they run: never two of a key at once. */
struct watcher {
    struct pawl *p;
    pthread_t thread;
    atomic_bool over;
    int looks, seen;
};

static void *watch(void *arg)
{
    struct watcher *w = arg;
    struct pawl_query q = { PAWL_QUERY_INIT, .state = PAWL_PROCESSING, .key = "k" };
    while (!atomic_load(&w->over)) {
        struct pawl_page *page;
        struct pawl_err err;
        OK(pawl_list(w->p, &q, &page, &err), &err);
        LE_INT((int64_t)page->n, 1);
        w->seen += page->n == 1;
        w->looks++;
        pawl_page_free(page);
    }
    return NULL;
}

TEST(two_hundred_at_once_run_one_at_a_time)
{
    struct pawl *p = fixture_open(param);
    static struct caller v[CALLERS];
    const struct caller *by_no[CALLERS + 1] = { 0 };
    struct watcher w = { .p = p };
    fixture_on(p, "t", counts);
    fixture_start(p, 8);
    EQ_INT(pthread_create(&w.thread, NULL, watch, &w), 0);
    for (int i = 0; i < CALLERS; i++) {
        v[i].p = p;
        snprintf(v[i].id, sizeof v[i].id, "c%d", i);
        EQ_INT(pthread_create(&v[i].thread, NULL, call_it, &v[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(v[i].thread, NULL);
    atomic_store(&w.over, true);
    pthread_join(w.thread, NULL);
    printf("%d looks, %d of them saw one running\n", w.looks, w.seen);
    GT_INT(w.looks, 0);
    EQ_INT(atomic_load(&overlaps), 0);
    for (int i = 0; i < CALLERS; i++) {
        EQ_INT(v[i].result, v[i].key_no); /* they ran in the order of their numbers */
        TRUE(v[i].key_no >= 1 && v[i].key_no <= CALLERS);
        EQ_PTR(by_no[v[i].key_no], NULL);
        by_no[v[i].key_no] = &v[i];
    }
    for (int i = 2; i <= CALLERS; i++)
        GE_INT(by_no[i]->started, by_no[i - 1]->finished);
    EQ_INT(kept(p, "t"), CALLERS);
    pawl_close(p);
}

static _Atomic int64_t first_us, last_us;

static int counts_timed(struct pawl_call *c)
{
    int64_t none = 0;
    atomic_compare_exchange_strong(&first_us, &none, fixture_mono());
    int how = counts(c);
    atomic_store(&last_us, fixture_mono());
    return how;
}

/* Ten calls of one key in a schema of their own. False: the machine stood still between them for so
 * long that what had not begun was handed back and claimed again; that is another case's. */
static bool one_run(void *param, const char *schema)
{
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .schema = schema,
                                                      .heartbeat_interval_us = 5 * FIXTURE_SEC,
                                                      .reclaim_interval_us = 600 * FIXTURE_SEC });
    struct pawl_stats stats = { PAWL_STATS_INIT };
    order[0] = 0;
    atomic_store(&first_us, 0);
    fixture_on(p, "t", counts_timed);
    submit_line(p, "t", 10);
    pawl_stats(p, &stats);
    int64_t commits = stats.commits;
    fixture_start(p, 1);
    fixture_drain(p);
    EQ_STR(order, "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 ");
    for (int i = 0; i < 10; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        EQ_INT(result_of(p, id), i + 1);
        EQ_INT(key_no(p, id), i + 1);
    }
    EQ_INT(kept(p, "t"), 10);
    pawl_stats(p, &stats);
    pawl_close(p);
    if (stats.claimed > 10 && atomic_load(&last_us) - atomic_load(&first_us) >= 50 * FIXTURE_MS)
        return false;
    EQ_INT(stats.claimed, 10);
    LT_INT(stats.commits - commits, 40); /* not one claim for each */
    return true;
}

TEST(a_run_hands_its_state_on)
{
    static const char *const schemas[] = { NULL, "r1", "r2", "r3", "r4" };
    size_t i = 0;
    while (i < COUNT_OF(schemas) && !one_run(param, schemas[i]))
        i++;
    LT_INT((int64_t)i, COUNT_OF(schemas));
}

static int deletes_every_third(struct pawl_call *c)
{
    int64_t n = pawl_state_int(c, 0) + 1;
    if (n == 3)
        EQ_INT(pawl_delete_state(c), 0);
    else
        EQ_INT(pawl_set_state_json(c, "  %" PRId64 " ", n), 0);
    if (n == 3)
        EQ_INT(pawl_state(c).form, PAWL_NOTHING);
    return pawl_reply_int(c, n);
}

TEST(a_deleted_state_is_nothing_to_the_next)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", deletes_every_third);
    submit_line(p, "t", 8);
    fixture_start(p, 2);
    fixture_drain(p);
    EQ_INT(result_of(p, "c2"), 3);
    EQ_INT(result_of(p, "c3"), 1);
    EQ_INT(result_of(p, "c7"), 2);
    EQ_INT(kept(p, "t"), 2);
    pawl_close(p);
}

static int other_type(struct pawl_call *c)
{
    note(pawl_call_id(c));
    EQ_INT(pawl_state_int(c, 7), 7); /* a state belongs to type and key */
    EQ_STR(pawl_call_key(c), "k");
    return 0;
}

TEST(types_share_the_line_and_not_the_state)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", counts);
    fixture_on(p, "u", other_type);
    fixture_submit_as(p, (struct pawl_spec){ .id = "a", .type = "t", .key = "k" });
    fixture_submit_as(p, (struct pawl_spec){ .id = "b", .type = "u", .key = "k", .priority = 100 });
    fixture_submit_as(p, (struct pawl_spec){ .id = "c", .type = "t", .key = "k" });
    fixture_start(p, 4);
    fixture_drain(p);
    EQ_STR(order, "a b c ");
    EQ_INT(kept(p, "t"), 2);
    EQ_INT(kept(p, "u"), -1);
    pawl_close(p);
}

static int no_key_at_all(struct pawl_call *c)
{
    EQ_INT(pawl_state(c).form, PAWL_NOTHING);
    EQ_STR(pawl_call_key(c), NULL);
    NE_INT(pawl_set_state_int(c, 1), 0);
    return pawl_reply_int(c, 1);
}

static int bad_state(struct pawl_call *c)
{
    NE_INT(pawl_set_state_json(c, "{no json"), 0);
    return pawl_reply_int(c, 1);
}

static int large_state(struct pawl_call *c)
{
    static char text[(1 << 20) + 1];
    NE_INT(pawl_set_state(c, (struct pawl_data){ PAWL_BYTES, text, sizeof text }), 0);
    EQ_INT(pawl_set_state(c, (struct pawl_data){ PAWL_BYTES, text, sizeof text - 1 }), 0);
    return 0;
}

static void fails_with(struct pawl *p, const char *id, const char *words)
{
    fixture_ends(p, id, PAWL_FAILED);
    struct pawl_shown *s = fixture_get(p, id);
    HAS_STR(pawl_shown_view(s)->error, words);
    pawl_shown_free(s);
}

TEST(a_state_that_cannot_be_kept_is_an_error)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "a", no_key_at_all);
    fixture_on(p, "b", bad_state);
    fixture_on(p, "c", large_state);
    fixture_start(p, 2);
    fixture_submit(p, "x", "a");
    fixture_submit_as(p,
                      (struct pawl_spec){ .id = "y", .type = "b", .key = "k", .max_attempts = 1 });
    fixture_submit_as(p, (struct pawl_spec){ .id = "z", .type = "c", .key = "k" });
    fails_with(p, "x", "call \"x\" has no key: it cannot keep a state");
    fails_with(p, "y", "is not JSON");
    fails_with(p, "z", "limit 1048576");
    EQ_INT(kept(p, "c"), -1);
    pawl_close(p);
}

/* ---- What ends a run ------------------------------------------------------------------------- */

static int fourth_is_bad(struct pawl_call *c)
{
    note(pawl_call_id(c));
    int64_t n = pawl_state_int(c, 0) + 1;
    pawl_set_state_int(c, n);
    if (strcmp(pawl_call_id(c), "c3") == 0)
        return pawl_refuse(c, "not this one");
    return pawl_reply_int(c, n);
}

TEST(a_failure_in_the_middle_leaves_the_rest)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fourth_is_bad);
    submit_line(p, "t", 8);
    fixture_start(p, 2);
    fixture_drain(p);
    EQ_STR(order, "c0 c1 c2 c3 c4 c5 c6 c7 ");
    EQ_INT(fixture_state(p, "c3"), PAWL_FAILED);
    EQ_INT(result_of(p, "c4"), 4); /* what the failed one set is gone */
    EQ_INT(result_of(p, "c7"), 7);
    EQ_INT(key_no(p, "c7"), 8);
    EQ_INT(kept(p, "t"), 7);
    pawl_close(p);
}

static int third_fails_once(struct pawl_call *c)
{
    note(pawl_call_id(c));
    int64_t n = pawl_state_int(c, 0) + 1;
    pawl_set_state_int(c, n);
    if (strcmp(pawl_call_id(c), "c2") == 0 && pawl_call_try(c) == 1)
        return pawl_fail(c, "once more");
    return pawl_reply_int(c, n);
}

TEST(a_retry_holds_its_key_back)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", third_fails_once);
    submit_line(p, "t", 6);
    fixture_start(p, 4);
    fixture_drain(p);
    EQ_STR(order, "c0 c1 c2 c2 c3 c4 c5 ");
    for (int i = 0; i < 6; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        EQ_INT(result_of(p, id), i + 1);
        EQ_INT(key_no(p, id), i + 1);
    }
    pawl_close(p);
}

/* The send of the third means something else already: its result turns into a failure, after the
 * next ones have run on its state. */
static int third_conflicts(struct pawl_call *c)
{
    struct pawl_err err;
    note(pawl_call_id(c));
    int64_t n = pawl_state_int(c, 0) + 1;
    pawl_set_state_int(c, n);
    if (strcmp(pawl_call_id(c), "c2") == 0)
        OK(pawl_send(c,
                     &(struct pawl_spec){ PAWL_SPEC_INIT, .id = "taken", .type = "other",
                                          .input = PAWL_TEXT("2") },
                     &err),
           &err);
    return pawl_reply_int(c, n);
}

TEST(what_ran_behind_a_conflict_runs_again)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", third_conflicts);
    fixture_submit_as(p, (struct pawl_spec){ .id = "taken", .type = "other" });
    submit_line(p, "t", 6);
    fixture_start(p, 2);
    fixture_ends(p, "c5", PAWL_COMPLETED);
    fails_with(p, "c2", "already exists with other content");
    EQ_INT(result_of(p, "c3"), 3); /* on the state of c1 */
    EQ_INT(result_of(p, "c5"), 5);
    EQ_INT(key_no(p, "c5"), 6);
    EQ_INT(kept(p, "t"), 5);
    struct pawl_shown *s = fixture_get(p, "c5");
    EQ_INT(pawl_shown_view(s)->attempts, 0); /* having run for nothing counts as nothing */
    pawl_shown_free(s);
    pawl_close(p);
}

static int second_hangs(struct pawl_call *c)
{
    note(pawl_call_id(c));
    if (strcmp(pawl_call_id(c), "c1") == 0 && pawl_call_try(c) == 1)
        while (!pawl_cancelled(c) || atomic_load(&fixture_runs) == 0)
            usleep(500);
    int64_t n = pawl_state_int(c, 0) + 1;
    pawl_set_state_int(c, n);
    return pawl_reply_int(c, n);
}

/* Its thread comes back only when everything else has ended: nothing waits for it. */
TEST(a_timeout_in_the_middle_is_the_end_of_its_run)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", second_hangs);
    const char *ids[] = { "c0", "c1", "c2", "c3" };
    for (int i = 0; i < 4; i++)
        fixture_submit_as(p, (struct pawl_spec){ .id = ids[i],
                                                 .type = "t",
                                                 .key = "k",
                                                 .timeout_us = i == 1 ? 2 * FIXTURE_SEC : 0,
                                                 .backoff_base_us = 1000 });
    fixture_start(p, 1);
    fixture_drain(p);
    EQ_STR(order, "c0 c1 c1 c2 c3 ");
    EQ_INT(result_of(p, "c1"), 2);
    EQ_INT(result_of(p, "c3"), 4);
    struct pawl_shown *s = fixture_get(p, "c1");
    EQ_INT(pawl_shown_view(s)->attempts, 1);
    pawl_shown_free(s);
    atomic_store(&fixture_runs, 1);
    pawl_close(p);
}

/* The first waits at the gate, with the others behind it in its run. */
static int first_blocks(struct pawl_call *c)
{
    note(pawl_call_id(c));
    if (strcmp(pawl_call_id(c), "c0") == 0)
        return fixture_blocks(c);
    return pawl_reply_int(c, pawl_call_try(c));
}

TEST(one_behind_can_be_cancelled)
{
    struct pawl *p = fixture_open(param);
    enum pawl_state state;
    struct pawl_err err;
    fixture_on(p, "t", first_blocks);
    submit_line(p, "t", 5);
    fixture_start(p, 1);
    UNTIL(atomic_load(&fixture_inside) == 1);
    struct pawl_shown *s = fixture_get(p, "c2");
    EQ_INT(pawl_shown_view(s)->state, PAWL_PENDING);
    EQ_INT(pawl_shown_view(s)->position, 2);
    EQ_STR(pawl_shown_view(s)->waiting_for, "key");
    pawl_shown_free(s);
    OK(pawl_cancel(p, "c2", &state, &err), &err);
    fixture_open_gate();
    fixture_drain(p);
    EQ_INT(fixture_state(p, "c2"), PAWL_CANCELLED);
    EQ_STR(order, "c0 c1 c3 c4 ");
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 4);
    pawl_close(p);
}

static int first_blocks_and_fails(struct pawl_call *c)
{
    note(pawl_call_id(c));
    if (strcmp(pawl_call_id(c), "c0") != 0)
        return pawl_reply_int(c, 1);
    fixture_blocks(c);
    return pawl_refuse(c, "no");
}

static void *wait_for_c1(void *arg)
{
    static struct pawl_shown *shown;
    struct pawl_err err;
    OK(pawl_get(arg, "c1", 20 * FIXTURE_SEC * check_scale(), &shown, &err), &err);
    return shown;
}

/* Nobody of ours ends it: the store does, when it hands the run back. */
TEST(who_waits_for_one_cancelled_behind_a_failure_is_told)
{
    struct pawl *p = fixture_open(param);
    enum pawl_state state;
    struct pawl_err err;
    pthread_t thread;
    void *shown;
    fixture_on(p, "t", first_blocks_and_fails);
    submit_line(p, "t", 3);
    fixture_start(p, 1);
    UNTIL(atomic_load(&fixture_inside) == 1);
    EQ_INT(pthread_create(&thread, NULL, wait_for_c1, p), 0);
    OK(pawl_cancel(p, "c1", &state, &err), &err);
    EQ_INT(state, PAWL_PROCESSING);
    int64_t began = fixture_mono();
    fixture_open_gate();
    EQ_INT(pthread_join(thread, &shown), 0);
    EQ_INT(pawl_shown_view(shown)->state, PAWL_CANCELLED);
    LT_INT(fixture_mono() - began, 10 * FIXTURE_SEC * check_scale());
    pawl_shown_free(shown);
    fixture_ends(p, "c2", PAWL_COMPLETED);
    EQ_STR(order, "c0 c2 ");
    pawl_close(p);
}

/* The sweeper does not come by: the claim itself ends the first and must look again. */
TEST(a_claim_that_ends_the_first_takes_the_next)
{
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .reclaim_interval_us = 3600 * FIXTURE_SEC });
    struct pawl_lease *l;
    struct pawl_err err;
    fixture_submit_as(p,
                      (struct pawl_spec){ .id = "a", .type = "t", .key = "k", .expires_in_us = 1 });
    fixture_submit_as(p, (struct pawl_spec){ .id = "b", .type = "t", .key = "k" });
    int64_t began = fixture_mono();
    UNTIL(fixture_mono() > began + 10);
    OK(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .wait_us = 20 * FIXTURE_SEC }, &l,
                  &err),
       &err);
    EQ_INT((int64_t)l->n, 1);
    EQ_STR(l->calls[0].id, "b");
    LT_INT(fixture_mono() - began, 10 * FIXTURE_SEC * check_scale());
    pawl_lease_free(l);
    EQ_INT(fixture_state(p, "a"), PAWL_EXPIRED);
    pawl_close(p);
}

TEST(the_running_one_can_be_cancelled)
{
    struct pawl *p = fixture_open(param);
    enum pawl_state state;
    fixture_on(p, "t", second_hangs);
    atomic_store(&fixture_runs, 1);
    submit_line(p, "t", 4);
    fixture_start(p, 1);
    UNTIL(noted("c1 "));
    OK(pawl_cancel(p, "c1", &state, NULL), NULL);
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 4); /* it answered, and a worker that answers wins */
    EQ_STR(order, "c0 c1 c2 c3 ");
    pawl_close(p);
}

TEST(stopping_in_the_middle_burns_no_try)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    fixture_on(p, "t", first_blocks);
    submit_line(p, "t", 5);
    fixture_start(p, 1);
    UNTIL(atomic_load(&fixture_inside) == 1);
    pthread_t opener;
    EQ_INT(
        pthread_create(&opener, NULL, (void *(*)(void *))(void (*)(void))fixture_open_gate, NULL),
        0);
    OK(pawl_stop(p, 10 * FIXTURE_SEC, &err), &err);
    pthread_join(opener, NULL);
    pawl_close(p);
    if (fixture_is_mem(param))
        skip("mem: is gone with its last handle");
    p = fixture_open(param);
    EQ_INT(fixture_state(p, "c0"), PAWL_COMPLETED);
    fixture_on(p, "t", first_blocks);
    fixture_start(p, 1);
    fixture_drain(p);
    for (int i = 1; i < 5; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        EQ_INT(result_of(p, id), 1); /* the number of the try */
        EQ_INT(key_no(p, id), i + 1);
    }
    pawl_close(p);
}

static int counts_runs(struct pawl_call *c)
{
    atomic_fetch_add(&fixture_runs, 1);
    int64_t n = pawl_state_int(c, 0) + 1;
    pawl_set_state_int(c, n);
    return pawl_reply_int(c, n);
}

/* What has run when the workers stop is stored, however much of it had gathered. */
TEST(a_clean_stop_loses_no_result)
{
    if (fixture_is_mem(param))
        skip("mem: is gone with its last handle");
    for (int round = 0; round < 10; round++) {
        struct pawl_err err;
        engine_fresh(param);
        struct pawl *p = fixture_open(param);
        fixture_on(p, "t", counts_runs);
        submit_line(p, "t", 400);
        atomic_store(&fixture_runs, 0);
        fixture_start(p, 2);
        UNTIL(atomic_load(&fixture_runs) > round * 20);
        OK(pawl_stop(p, 10 * FIXTURE_SEC, &err), &err);
        int ran = atomic_load(&fixture_runs);
        EQ_INT(fixture_count(p, PAWL_COMPLETED), ran);
        EQ_INT(kept(p, "t"), ran);
        EQ_INT(fixture_count(p, PAWL_PENDING), 400 - ran);
        pawl_close(p);
    }
}

TEST(a_hard_stop_hands_the_whole_run_back)
{
    struct pawl *p = fixture_open(param), *other;
    struct pawl_err err;
    fixture_on(p, "t", first_blocks);
    submit_line(p, "t", 5);
    fixture_start(p, 1);
    UNTIL(atomic_load(&fixture_inside) == 1);
    EQ_STATUS(pawl_stop(p, 0, &err), PAWL_BUSY, &err);
    other = fixture_open_as(param, (struct pawl_options){ .node = "other" });
    fixture_open_gate();
    fixture_on(other, "t", first_blocks);
    fixture_start(other, 1);
    fixture_drain(other);
    EQ_INT(fixture_count(other, PAWL_COMPLETED), 5);
    EQ_INT(result_of(other, "c4"), 1);
    pawl_close(p);
    pawl_close(other);
}

static int takes_20_ms(struct pawl_call *c)
{
    note(pawl_call_id(c));
    usleep(20000);
    return pawl_reply_int(c, pawl_call_try(c));
}

TEST(a_long_run_is_handed_back_and_goes_on)
{
    struct pawl *p = fixture_open(param);
    struct pawl_stats stats = { PAWL_STATS_INIT };
    fixture_on(p, "t", takes_20_ms);
    submit_line(p, "t", 9);
    fixture_start(p, 1);
    fixture_drain(p);
    EQ_STR(order, "c0 c1 c2 c3 c4 c5 c6 c7 c8 ");
    EQ_INT(result_of(p, "c8"), 1);
    pawl_stats(p, &stats);
    GT_INT(stats.claimed, 9); /* some were claimed more than once */
    pawl_close(p);
}

/* ---- Answers that get lost ------------------------------------------------------------------- */

static atomic_bool disturb;

static void *disturber(void *arg)
{
    (void)arg;
    for (unsigned i = 0; atomic_load(&disturb); i++) {
        bool busy = i & 1;
        store_fault(1, busy ? FAULT_BEFORE : FAULT_AFTER, busy ? PAWL_BUSY : PAWL_UNKNOWN);
        usleep(50);
    }
    store_fault(0, FAULT_BEFORE, PAWL_OK);
    return NULL;
}

TEST(order_holds_when_finishes_are_repeated)
{
    char url[64];
    snprintf(url, sizeof url, "fault+%s", (const char *)param);
    struct pawl *p =
        fixture_open_as(url, (struct pawl_options){ .reclaim_interval_us = FIXTURE_SEC,
                                                    .heartbeat_interval_us = FIXTURE_SEC,
                                                    .heartbeat_grace_us = 30 * FIXTURE_SEC });
    pthread_t thread;
    fixture_on(p, "t", counts);
    submit_line(p, "t", 300);
    fixture_start(p, 4);
    atomic_store(&disturb, true);
    EQ_INT(pthread_create(&thread, NULL, disturber, NULL), 0);
    usleep(300000);
    atomic_store(&disturb, false);
    pthread_join(thread, NULL);
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 300);
    EQ_INT(atomic_load(&overlaps), 0);
    EQ_INT(kept(p, "t"), 300);
    for (int i = 0; i < 300; i += 7) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        EQ_INT(result_of(p, id), i + 1);
        EQ_INT(key_no(p, id), i + 1);
    }
    pawl_close(p);
}

/* ---- SQL inside a run ------------------------------------------------------------------------ */

static int some_sql(struct pawl_call *c)
{
    struct pawl_err err;
    note(pawl_call_id(c));
    int64_t n = pawl_state_int(c, 0) + 1;
    if (n % 2 == 0) {
        struct pawl_value v = { .kind = PAWL_V_INT, .i = n };
        OK(pawl_sql(c, "INSERT INTO box (n) VALUES (?)", &v, 1, NULL, &err), &err);
        const struct pawl_rows *rows;
        /* Everything before it in the run is stored: seen from inside its transaction. */
        OK(pawl_sql(c, "SELECT count(*) FROM box", NULL, 0, &rows, &err), &err);
        EQ_INT(rows->v[0].i, n / 2);
    }
    pawl_set_state_int(c, n);
    if (strcmp(pawl_call_id(c), "c5") == 0 && pawl_call_try(c) == 1)
        return pawl_fail(c, "undo it");
    return pawl_reply_int(c, n);
}

TEST(sql_in_a_run_keeps_the_order)
{
    if (fixture_is_mem(param))
        skip("mem: has no SQL");
    struct pawl *p = fixture_open(param);
    OK(pawl_prepare(pawl_program(p), "CREATE TABLE box (n INTEGER)"), NULL);
    fixture_on(p, "t", some_sql);
    submit_line(p, "t", 10);
    fixture_start(p, 2);
    fixture_drain(p);
    EQ_STR(order, "c0 c1 c2 c3 c4 c5 c5 c6 c7 c8 c9 ");
    for (int i = 0; i < 10; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        EQ_INT(result_of(p, id), i + 1);
    }
    EQ_INT(kept(p, "t"), 10);
    pawl_close(p);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static char asked_error[600];

/* Asks for what its input says: {"type", "key", "input"}. */
static int asks(struct pawl_call *c)
{
    struct pawl_spec spec = { PAWL_SPEC_INIT };
    const struct pawl_view *v;
    struct pawl_err err;
    if (pawl_input_get_text(c, "type", &spec.type) || pawl_input_get_text(c, "key", &spec.key))
        return pawl_refuse(c, "what should it ask for?");
    (void)pawl_input_get_json(c, "input", &spec.input);
    enum pawl_status st = pawl_ask(c, &spec, &v, &err);
    if (st == PAWL_STATE)
        snprintf(asked_error, sizeof asked_error, "%s", err.text);
    if (st != PAWL_OK)
        return pawl_refuse(c, "%s", err.text);
    return v->state == PAWL_COMPLETED ? pawl_reply(c, v->result)
                                      : pawl_refuse(c, "asked in vain: %s", v->error);
}

TEST(asking_for_ones_own_key_is_an_error_at_once)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "asks", asks);
    fixture_on(p, "t", counts);
    fixture_start(p, 2);
    fixture_submit_as(p, (struct pawl_spec){ .id = "a",
                                             .type = "asks",
                                             .key = "k",
                                             .input = json("{\"type\":\"t\",\"key\":\"k\"}") });
    fails_with(p, "a", "call \"a\" would wait for key \"k\", which call \"a\" itself holds");
    fixture_submit_as(p, (struct pawl_spec){ .id = "b",
                                             .type = "asks",
                                             .key = "k",
                                             .input = json("{\"type\":\"t\",\"key\":\"l\"}") });
    fixture_ends(p, "b", PAWL_COMPLETED);
    EQ_INT(result_of(p, "b"), 1);
    pawl_close(p);
}

TEST(asking_for_a_parents_key_names_the_cycle)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "asks", asks);
    fixture_on(p, "t", counts);
    fixture_start(p, 4);
    fixture_submit_as(
        p, (struct pawl_spec){
               .id = "a",
               .type = "asks",
               .key = "k",
               .input = json("{\"type\":\"asks\",\"key\":\"l\",\"input\":{\"type\":\"asks\","
                             "\"key\":\"m\",\"input\":{\"type\":\"t\",\"key\":\"k\"}}}") });
    fixture_ends(p, "a", PAWL_FAILED);
    EQ_STR(asked_error, "call \"a.ask.1.ask.1\" would wait for key \"k\", which call \"a\" holds, "
                        "waiting for \"a.ask.1\", waiting for \"a.ask.1.ask.1\"");
    EQ_INT(kept(p, "t"), -1);
    pawl_close(p);
}

/* ---- By hand --------------------------------------------------------------------------------- */

TEST(by_hand_one_of_a_key_comes_with_its_state)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    enum pawl_state state;
    submit_line(p, "t", 3);
    fixture_submit(p, "alone", "t");
    for (int i = 0; i < 3; i++) {
        struct pawl_lease *l = fixture_claim(p, "t", 10);
        char id[16], want[16];
        snprintf(id, sizeof id, "c%d", i);
        snprintf(want, sizeof want, "%d", i * 10);
        EQ_INT((int)l->n, i == 0 ? 2 : 1); /* with the one that has no key */
        EQ_STR(l->calls[0].id, id);
        EQ_INT(l->calls[0].key_no, i + 1);
        EQ_INT(l->calls[0].position, 0);
        if (i)
            EQ_BYTES(l->states[0].state.data, l->states[0].state.len, want, strlen(want));
        else
            EQ_INT(l->states[0].state.form, PAWL_NOTHING);
        EQ_INT(l->states[0].version > 0, i > 0);
        snprintf(want, sizeof want, "%d", i * 10 + 10);
        struct pawl_finish f = { PAWL_FINISH_INIT, .id = id, .how = PAWL_END_RESULT,
                                 .state = json(want) };
        OK(pawl_finish(p, l->token, &f, 1, &state, &err), &err);
        pawl_lease_free(l);
    }
    EQ_INT(kept(p, "t"), 30);
    pawl_close(p);
}

TEST(by_hand_a_wrong_state_is_refused)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .key = "k" });
    fixture_submit(p, "alone", "t");
    struct pawl_lease *l = fixture_claim(p, "t", 2);
    struct pawl_finish f = { PAWL_FINISH_INIT, .id = "x", .how = PAWL_END_RESULT };
    f.state = json("{");
    EQ_STATUS(pawl_finish(p, l->token, &f, 1, NULL, &err), PAWL_INVALID, &err);
    f.state = json("1");
    f.delete_state = true;
    EQ_STATUS(pawl_finish(p, l->token, &f, 1, NULL, &err), PAWL_INVALID, &err);
    f.delete_state = false;
    f.how = PAWL_END_ERROR;
    EQ_STATUS(pawl_finish(p, l->token, &f, 1, NULL, &err), PAWL_INVALID, &err);
    f.how = PAWL_END_RESULT;
    f.id = "alone";
    EQ_STATUS(pawl_finish(p, l->token, &f, 1, NULL, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "call \"alone\" has no key: it cannot keep a state");
    f.id = "x";
    OK(pawl_finish(p, l->token, &f, 1, NULL, &err), &err);
    EQ_INT(kept(p, "t"), 1);
    pawl_lease_free(l);
    pawl_close(p);
}

/* A finish by hand frees a key for the workers of this process. */
TEST(a_finish_by_hand_lets_the_next_run)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", counts);
    submit_line(p, "t", 3);
    struct pawl_lease *l = fixture_claim(p, "t", 1);
    fixture_start(p, 1);
    struct pawl_shown *s = fixture_get(p, "c1");
    EQ_INT(pawl_shown_view(s)->position, 1);
    pawl_shown_free(s);
    OK(fixture_finish(p, l->token, "c0", PAWL_END_RESULT, NULL, NULL), NULL);
    fixture_ends(p, "c2", PAWL_COMPLETED);
    pawl_lease_free(l);
    pawl_close(p);
}
