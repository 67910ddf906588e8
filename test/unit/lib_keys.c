/*
 * lib_keys.c - calls with a key through pawl.h: one at a time, in order, each on the state that the
 * one before left.
 *
 * Calls that are submitted before the workers start are claimed as one run.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "key_fixture.h"
#include "store/store.h"

RUNS_ON(ENGINES_ALL)

static struct pawl_data json(const char *text)
{
    return (struct pawl_data){ PAWL_JSON, text, strlen(text) };
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

/* Reads the database while they run: never two calls of a key at once. */
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
    fixture_on(p, "t", keyf_counts);
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
    EQ_INT(atomic_load(&keyf_overlaps), 0);
    for (int i = 0; i < CALLERS; i++) {
        EQ_INT(v[i].result, v[i].key_no); /* they ran in the order of their numbers */
        TRUE(v[i].key_no >= 1 && v[i].key_no <= CALLERS);
        EQ_PTR(by_no[v[i].key_no], NULL);
        by_no[v[i].key_no] = &v[i];
    }
    for (int i = 2; i <= CALLERS; i++)
        GE_INT(by_no[i]->started, by_no[i - 1]->finished);
    EQ_INT(keyf_state(p, "t"), CALLERS);
    pawl_close(p);
}

static _Atomic int64_t first_us, last_us;

static int counts_timed(struct pawl_call *c)
{
    int64_t none = 0;
    atomic_compare_exchange_strong(&first_us, &none, fixture_mono());
    int how = keyf_counts(c);
    atomic_store(&last_us, fixture_mono());
    return how;
}

/* Ten calls of one key in their own schema. False: the machine stalled so long between them that
 * calls that had not started were handed back and claimed again, which is another case. */
static bool one_run(void *param, const char *schema)
{
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .schema = schema,
                                                      .heartbeat_interval_us = 5 * FIXTURE_SEC,
                                                      .reclaim_interval_us = 600 * FIXTURE_SEC });
    struct pawl_stats stats = { PAWL_STATS_INIT };
    keyf_order[0] = 0;
    atomic_store(&first_us, 0);
    fixture_on(p, "t", counts_timed);
    keyf_submit(p, "t", 10);
    pawl_stats(p, &stats);
    int64_t commits = stats.commits;
    fixture_start(p, 1);
    fixture_drain(p);
    EQ_STR(keyf_order, "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 ");
    for (int i = 0; i < 10; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        EQ_INT(keyf_result(p, id), i + 1);
        EQ_INT(keyf_number(p, id), i + 1);
    }
    EQ_INT(keyf_state(p, "t"), 10);
    pawl_stats(p, &stats);
    pawl_close(p);
    if (stats.claimed > 10 && atomic_load(&last_us) - atomic_load(&first_us) >= 50 * FIXTURE_MS)
        return false;
    EQ_INT(stats.claimed, 10);
    LT_INT(stats.commits - commits, 40); /* fewer claims than calls */
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
    keyf_submit(p, "t", 8);
    fixture_start(p, 2);
    fixture_drain(p);
    EQ_INT(keyf_result(p, "c2"), 3);
    EQ_INT(keyf_result(p, "c3"), 1);
    EQ_INT(keyf_result(p, "c7"), 2);
    EQ_INT(keyf_state(p, "t"), 2);
    pawl_close(p);
}

static int other_type(struct pawl_call *c)
{
    keyf_note(pawl_call_id(c));
    EQ_INT(pawl_state_int(c, 7), 7); /* a state belongs to type and key */
    EQ_STR(pawl_call_key(c), "k");
    return 0;
}

TEST(types_share_the_line_and_not_the_state)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", keyf_counts);
    fixture_on(p, "u", other_type);
    fixture_submit_as(p, (struct pawl_spec){ .id = "a", .type = "t", .key = "k" });
    fixture_submit_as(p, (struct pawl_spec){ .id = "b", .type = "u", .key = "k", .priority = 100 });
    fixture_submit_as(p, (struct pawl_spec){ .id = "c", .type = "t", .key = "k" });
    fixture_start(p, 4);
    fixture_drain(p);
    EQ_STR(keyf_order, "a b c ");
    EQ_INT(keyf_state(p, "t"), 2);
    EQ_INT(keyf_state(p, "u"), -1);
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
    keyf_fails(p, "x", "call \"x\" has no key: it cannot keep a state");
    keyf_fails(p, "y", "is not JSON");
    keyf_fails(p, "z", "limit 1048576");
    EQ_INT(keyf_state(p, "c"), -1);
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
    fixture_on(p, "t", keyf_counts);
    keyf_submit(p, "t", 300);
    fixture_start(p, 4);
    atomic_store(&disturb, true);
    EQ_INT(pthread_create(&thread, NULL, disturber, NULL), 0);
    usleep(300000);
    atomic_store(&disturb, false);
    pthread_join(thread, NULL);
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 300);
    EQ_INT(atomic_load(&keyf_overlaps), 0);
    EQ_INT(keyf_state(p, "t"), 300);
    for (int i = 0; i < 300; i += 7) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        EQ_INT(keyf_result(p, id), i + 1);
        EQ_INT(keyf_number(p, id), i + 1);
    }
    pawl_close(p);
}

/* ---- SQL inside a run ------------------------------------------------------------------------ */

static int some_sql(struct pawl_call *c)
{
    struct pawl_err err;
    keyf_note(pawl_call_id(c));
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
    if (strcmp(pawl_call_id(c), "c5") == 0 && pawl_call_attempt_no(c) == 1)
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
    keyf_submit(p, "t", 10);
    fixture_start(p, 2);
    fixture_drain(p);
    EQ_STR(keyf_order, "c0 c1 c2 c3 c4 c5 c5 c6 c7 c8 c9 ");
    for (int i = 0; i < 10; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        EQ_INT(keyf_result(p, id), i + 1);
    }
    EQ_INT(keyf_state(p, "t"), 10);
    pawl_close(p);
}

/* ---- Calls that a handler waits for ---------------------------------------------------------- */

static char asked_error[600];

/* Asks for the call in its input: {"type", "key", "input"}. */
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
    fixture_on(p, "t", keyf_counts);
    fixture_start(p, 2);
    fixture_submit_as(p, (struct pawl_spec){ .id = "a",
                                             .type = "asks",
                                             .key = "k",
                                             .input = json("{\"type\":\"t\",\"key\":\"k\"}") });
    keyf_fails(p, "a", "call \"a\" would wait for key \"k\", which call \"a\" itself holds");
    fixture_submit_as(p, (struct pawl_spec){ .id = "b",
                                             .type = "asks",
                                             .key = "k",
                                             .input = json("{\"type\":\"t\",\"key\":\"l\"}") });
    fixture_ends(p, "b", PAWL_COMPLETED);
    EQ_INT(keyf_result(p, "b"), 1);
    pawl_close(p);
}

TEST(asking_for_a_parents_key_names_the_cycle)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "asks", asks);
    fixture_on(p, "t", keyf_counts);
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
    EQ_INT(keyf_state(p, "t"), -1);
    pawl_close(p);
}

/* ---- By hand --------------------------------------------------------------------------------- */

TEST(by_hand_one_of_a_key_comes_with_its_state)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    enum pawl_state state;
    keyf_submit(p, "t", 3);
    fixture_submit(p, "alone", "t");
    for (int i = 0; i < 3; i++) {
        struct pawl_lease *l = fixture_claim(p, "t", 10);
        char id[16], want[16];
        snprintf(id, sizeof id, "c%d", i);
        snprintf(want, sizeof want, "%d", i * 10);
        EQ_INT((int)l->n, i == 0 ? 2 : 1); /* with the call that has no key */
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
    EQ_INT(keyf_state(p, "t"), 30);
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
    EQ_INT(keyf_state(p, "t"), 1);
    pawl_lease_free(l);
    pawl_close(p);
}

/* A finish by hand lets the workers of this process run the key's next call. */
TEST(a_finish_by_hand_lets_the_next_run)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", keyf_counts);
    keyf_submit(p, "t", 3);
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
