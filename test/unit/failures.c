/*
 * failures.c - attempts that fail or are lost leave a line in the log, with fields; many of them at
 * once leave a limited number of lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "exec/internal.h"
#include "exec/housekeeping.h"
#include "lib/lib.h"
#include "fixture.h"

RUNS_ON(ENGINES_ALL)

/* ---- Collecting log lines -------------------------------------------------------------------- */

#define LINES_MAX 64
#define LINE_LEN 400

static struct {
    pthread_mutex_t lock;
    char lines[LINES_MAX][LINE_LEN]; /* the first lines about calls */
    int64_t n, left_out;
} heard = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void hear(const struct log_record *r, void *ctx)
{
    struct buf b;
    (void)ctx;
    bool call = strncmp(r->message, "call ", 5) == 0;
    bool count = r->n_fields == 1 && strcmp(r->fields[0].name, "left_out") == 0;
    if (!call && !count)
        return;
    EQ_INT(r->level, LOG_WARN);
    buf_init(&b, 64 << 10);
    log_text_add(&b, r);
    TRUE(buf_ok(&b));
    pthread_mutex_lock(&heard.lock);
    if (call && heard.n < LINES_MAX)
        snprintf(heard.lines[heard.n], LINE_LEN, "%.*s", BYTES_ARG(buf_bytes(&b)));
    heard.n += call;
    heard.left_out += count ? r->fields[0].number : 0;
    pthread_mutex_unlock(&heard.lock);
    buf_release(&b);
}

static void wait_lines(int64_t n)
{
    for (int64_t have = 0; have < n;) { /* the case's deadline ends the wait */
        pthread_mutex_lock(&heard.lock);
        have = heard.n;
        pthread_mutex_unlock(&heard.lock);
        usleep(1000);
    }
}

/* ---- Failed ---------------------------------------------------------------------------------- */

static int fails(struct pawl_call *c)
{
    return pawl_fail(c, "no \"luck\"\nat all");
}

static int refuses(struct pawl_call *c)
{
    return pawl_refuse(c, "never");
}

static int sql_fails(struct pawl_call *c)
{
    const struct pawl_rows *rows;
    if (pawl_sql(c, "SELECT 1", NULL, 0, &rows, NULL))
        return pawl_fail(c, "no SQL");
    return pawl_fail(c, "after SQL");
}

TEST(a_failed_attempt_is_told_with_its_fields)
{
    struct pawl *p = fixture_open(param);
    log_sink_set(hear, NULL);
    fixture_on(p, "mail", fails);
    fixture_on(p, "no", refuses);
    struct pawl_spec s = { PAWL_SPEC_INIT,       .id = "a",
                           .type = "mail",       .max_attempts = 2,
                           .backoff_base_us = 1, .backoff_jitter = -1 };
    fixture_submit_as(p, s);
    fixture_start(p, 1);
    fixture_ends(p, "a", PAWL_DEAD_LETTER);
    s = (struct pawl_spec){ PAWL_SPEC_INIT, .id = "b", .type = "no" };
    fixture_submit_as(p, s);
    fixture_ends(p, "b", PAWL_FAILED);
    wait_lines(3);
    EQ_STR(heard.lines[0], "call failed, to be tried again: id=\"a\" type=\"mail\" try=1 "
                           "status=\"pending\" error=\"no \\\"luck\\\"\\nat all\"");
    EQ_STR(heard.lines[1], "call failed too often: dead letter: id=\"a\" type=\"mail\" try=2 "
                           "status=\"dead_letter\" error=\"no \\\"luck\\\"\\nat all\"");
    EQ_STR(heard.lines[2], "call failed for good: id=\"b\" type=\"no\" try=1 "
                           "status=\"failed\" error=\"never\"");
    pawl_close(p);
    EQ_INT(heard.n, 3);
}

static int done(struct pawl_call *c, void *arg)
{
    (void)arg;
    return pawl_reply_int(c, 1);
}

static int refuses_after_a_step(struct pawl_call *c)
{
    struct pawl_step s = { PAWL_STEP_INIT, .name = "a", .run = done };
    return pawl_step(c, &s, NULL) ? 0 : pawl_refuse(c, "never");
}

TEST(a_run_that_undoes_is_told_twice)
{
    struct pawl *p = fixture_open(param);
    bool keeps_runs = p->e->traits & STORE_DRIVEN;
    log_sink_set(hear, NULL);
    fixture_on(p, "flow", refuses_after_a_step);
    fixture_submit(p, "a", "flow");
    fixture_start(p, 1);
    fixture_ends(p, "a", PAWL_FAILED);
    wait_lines(1 + keeps_runs);
    EQ_STR(heard.lines[0], keeps_runs
                               ? "call failed, and undoes its steps: id=\"a\" type=\"flow\" try=1 "
                                 "status=\"processing\" error=\"never\""
                               : "call failed for good: id=\"a\" type=\"flow\" try=1 "
                                 "status=\"failed\" error=\"mem: keeps calls only\"");
    if (keeps_runs)
        EQ_STR(heard.lines[1], "call failed for good: id=\"a\" type=\"flow\" try=1 "
                               "status=\"failed\" error=\"never\"");
    pawl_close(p);
    EQ_INT(heard.n, 1 + keeps_runs);
}

static int makes_a_child(struct pawl_call *c)
{
    const char *id;
    if (pawl_step_child(c, "part", &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "t" }, &id))
        return 0;
    return pawl_reply_text(c, id);
}

TEST(a_child_whose_id_is_taken_is_told)
{
    struct pawl *p = fixture_open(param);
    if (!(p->e->traits & STORE_DRIVEN))
        skip("mem keeps calls only");
    log_sink_set(hear, NULL);
    fixture_on(p, "flow", makes_a_child);
    fixture_submit(p, "a.part#1", "other");
    fixture_submit(p, "a", "flow");
    fixture_start(p, 1);
    fixture_ends(p, "a", PAWL_FAILED);
    wait_lines(3);
    EQ_STR(heard.lines[0],
           "call not accepted as a child, because another one has its id: id=\"a.part#1\"");
    HAS_STR(heard.lines[2], "CONFLICT: a call with the id \\\"a.part#1\\\" exists already");
    pawl_close(p);
    EQ_INT(heard.n, 3);
}

/* Calls with SQL are committed on another thread where the engine has several. */
TEST(a_failed_attempt_with_sql_is_told)
{
    struct pawl *p = fixture_open(param);
    log_sink_set(hear, NULL);
    fixture_on(p, "sql", sql_fails);
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = "a", .type = "sql", .max_attempts = 1 };
    fixture_submit_as(p, s);
    fixture_start(p, 1);
    fixture_ends(p, "a", PAWL_FAILED);
    wait_lines(1);
    HAS_STR(heard.lines[0], "id=\"a\" type=\"sql\" try=1 status=\"failed\" error=\"");
    pawl_close(p);
    EQ_INT(heard.n, 1);
}

/* ---- Lost attempts --------------------------------------------------------------------------- */

TEST(a_lost_attempt_is_told_with_its_fields)
{
    struct pawl *p = fixture_open(param);
    struct pawl_lease *l = NULL;
    struct pawl_err err;
    log_sink_set(hear, NULL);
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = "a", .type = "mail", .max_lost = 2 };
    fixture_submit_as(p, s);
    for (int i = 0; i < 2; i++) {
        struct pawl_claim c = { PAWL_CLAIM_INIT, .worker = "w1", .max = 1,
                                .wait_us = 60 * FIXTURE_SEC, .lease_us = FIXTURE_SEC };
        OK(pawl_claim(p, &c, &l, &err), &err);
        TRUE(l != NULL);
        pawl_lease_free(l); /* its worker never finishes it */
        wait_lines(i + 1);
        HAS_STR(heard.lines[i],
                i ? "call lost too often: dead letter: id=\"a\" type=\"mail\" "
                    "try=2 status=\"dead_letter\" error=\"worker \\\"w1\\\" was lost\""
                  : "call lost, to be tried again: id=\"a\" type=\"mail\" "
                    "try=1 status=\"pending\" error=\"worker \\\"w1\\\" was lost\"");
    }
    pawl_close(p);
}

/* ---- A storm --------------------------------------------------------------------------------- */

/* Every failure has a line or is counted in one, and there are few lines. */
TEST(a_storm_of_failures_is_a_bounded_number_of_lines)
{
    enum { CALLS = 2000 };
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    static struct pawl_spec v[CALLS];
    static struct pawl_receipt receipts[CALLS];
    log_sink_set(hear, NULL);
    fixture_on(p, "mail", refuses);
    for (size_t i = 0; i < CALLS; i++)
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT, .type = "mail" };
    OK(pawl_submit(p, v, CALLS, 0, receipts, &err), &err);
    int64_t began_us = fixture_mono();
    fixture_start(p, 8);
    while (fixture_count(p, PAWL_FAILED) < CALLS)
        usleep(10000);
    pawl_close(p);
    /* With the partial seconds at both ends. */
    int64_t seconds = (fixture_mono() - began_us) / FIXTURE_SEC + 2;
    LE_INT(heard.n, seconds * LOG_FAILURES_MAX);
    EQ_INT(heard.n + heard.left_out, CALLS);
    GT_INT(heard.left_out, 0);
}

/* ---- Housekeeping that is refused ------------------------------------------------------------ */

static atomic_int refusals;

static void hear_refusals(const struct log_record *r, void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&refusals, strstr(r->message, "permission denied") != NULL);
}

/* Fails the answer to a gc step, three times; in these tests nothing else runs one. */
static int lines_of_three(struct pawl *p)
{
    struct periodic *c = &p->e->housekeeping->periodics[PERIODIC_GC];
    atomic_store(&refusals, 0);
    TRUE(periodic_post(c, (struct op){ .kind = OP_GC, .gc = { .max = 1 } }));
    UNTIL(!atomic_load(&c->under_way));
    for (int i = 0; i < 3; i++) {
        c->job.op.status = err_set(&c->job.op.err, PAWL_INVALID, "permission denied");
        c->job.done(&c->job);
    }
    return atomic_load(&refusals);
}

/* A process that only submits logs it once, and leaves gc to the nodes. A node keeps trying, and
 * logs it each time. */
TEST(a_node_says_each_time_that_it_may_not)
{
    struct pawl *p = fixture_open(param);
    log_sink_set(hear_refusals, NULL);
    EQ_INT(lines_of_three(p), 1);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 1);
    EQ_INT(lines_of_three(p), 3);
    pawl_close(p);
}
