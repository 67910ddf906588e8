/*
 * mysql_cost.c - how many statements a call and an idle node send to MariaDB, as the server counts
 * them: `Questions`, in which every statement of a packet counts.
 *
 * Each case has a server of its own, because the count is the whole server's.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <mariadb/mysql.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "check.h"
#include "db_server.h"
#include "engines.h"
#include "exec/node.h"
#include "feature/all.h"
#include "feature/cron.h"
#include "feature/workflow.h"
#include "fixture.h"
#include "flow.h"
#include "lib/lib.h"
#include "store/feature.h"
#include "store/mysql/mydb.h"
#include "store/store.h"

RUNS_ON_ENGINE("mariadb")

static struct arena a;
static struct pawl_err err;
static MYSQL *monitor;

/* ---- Counting -------------------------------------------------------------------------------- */

/* A connection of its own, which sends one statement for each count. */
static void monitor_open(const char *url)
{
    struct mydb_url u;
    OK(mydb_url_read(url, &u, &err), &err);
    monitor = mysql_init(NULL);
    if (!mysql_real_connect(monitor, u.host, u.user, u.password, u.database, u.port, u.socket, 0))
        FAIL("no connection: %s", mysql_error(monitor));
    mydb_url_release(&u);
}

static int64_t questions(void)
{
    EQ_INT(mysql_query(monitor, "SHOW GLOBAL STATUS LIKE 'Questions'"), 0);
    MYSQL_RES *r = mysql_store_result(monitor);
    MYSQL_ROW row = r ? mysql_fetch_row(r) : NULL;
    TRUE(row != NULL);
    int64_t n = strtoll(row[1], NULL, 10);
    mysql_free_result(r);
    return n;
}

/* Statements of others since questions() gave `before`. */
static int64_t since(int64_t before)
{
    return questions() - before - 1;
}

/* ---- A call ---------------------------------------------------------------------------------- */

/* What a submit-and-wait of one call may send in its commits, as a node does them: accept and
 * claim, then finish, with a claim if the call has a key. Now and then a claim looks at everything,
 * so it is the fewest of twelve. */
#define PLAIN_STATEMENTS 26
#define KEYED_STATEMENTS 37
#define NEW_KEY_STATEMENTS 38

static unsigned calls;

static struct op node_claim(void)
{
    static struct bytes type = BYTES("t");
    return (struct op){ .kind = OP_CLAIM,
                        .claim = { .token = token_make(&world_real),
                                   .node = BYTES("node-1"),
                                   .boot = BYTES("boot-1"),
                                   .types = &type,
                                   .n_types = 1,
                                   .max = 16,
                                   .run_max = 16,
                                   .width = 16 } };
}

static void commit(struct store *s, struct op *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i]->a = &a;
    OK(store_commit(s, v, n), &v[0]->err);
    for (size_t i = 0; i < n; i++)
        OK(v[i]->status, &v[i]->err);
}

static int64_t call_cost(struct store *s, const char *key)
{
    struct call_spec spec;
    call_spec_init(&spec);
    spec.id = bytes_of(arena_printf(&a, "call-%u", ++calls));
    spec.type = BYTES("t");
    spec.key = key ? bytes_of(key) : BYTES_NONE;
    OK(call_spec_settle(&a, &world_real, &spec, &err), &err);
    struct op accept = { .kind = OP_ACCEPT, .accept = { .v = &spec, .n = 1 } };
    struct op claim = node_claim(), next = node_claim();
    int64_t before = questions();
    commit(s, (struct op *[]){ &accept, &claim }, 2);
    EQ_INT(claim.claim.n, 1);
    struct finish_item item = { .seq = claim.claim.calls[0].seq,
                                .id = spec.id,
                                .how = END_RESULT,
                                .result = { PAWL_JSON, BYTES("1") },
                                .retry_in_us = -1 };
    struct op finish = { .kind = OP_FINISH,
                         .finish = { .token = claim.claim.token, .v = &item, .n = 1 } };
    commit(s, (struct op *[]){ &finish, &next }, key ? 2 : 1);
    EQ_INT(item.state, PAWL_COMPLETED);
    return since(before);
}

static int64_t calls_cost(struct store *s, const char *key, bool new_keys)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 12; i++) {
        int64_t n = call_cost(s, new_keys ? arena_printf(&a, "%s-%u", key, calls) : key);
        least = MIN(least, n);
    }
    return least;
}

enum with { WITH_NONE, WITH_ALL, WITH_FLOWS };
static struct store *opened(const char *url, enum with features)
{
    struct store *s = NULL;
    struct store_conf conf = { .url = url,
                               .retention_us = 3600 * SEC_US,
                               .remember_us = 7200 * SEC_US,
                               .key_pending_max = 100000 }; /* the default */
    if (features == WITH_ALL)
        conf.features = features_all(&conf.n_features);
    if (features == WITH_FLOWS) { /* of the tests */
        conf.features = flow_features;
        conf.n_features = COUNT_OF(flow_features);
    }
    OK(store_open(&conf, &s, &err), &err);
    OK(store_migrate(s, true, &err), &err);
    struct op join = { .kind = OP_JOIN,
                       .node = { .node = BYTES("node-1"), .boot = BYTES("boot-1"), .slots = 16 } };
    commit(s, &(struct op *){ &join }, 1);
    for (int i = 0; i < 5; i++) /* cursors are known */
        call_cost(s, i % 2 ? "k" : NULL);
    return s;
}

struct costs {
    int64_t plain, keyed, new_key;
};

static struct costs costs(const char *url, enum with features)
{
    struct store *s = opened(url, features);
    struct costs out = { .plain = calls_cost(s, NULL, false),
                         .keyed = calls_cost(s, "k", false),
                         .new_key = calls_cost(s, "n", true) };
    store_close(s);
    printf("%s features: %lld, with a key %lld, with a new key %lld statements\n",
           features == WITH_FLOWS ? "flows as"
           : features             ? "with"
                                  : "without",
           (long long)out.plain, (long long)out.keyed, (long long)out.new_key);
    return out;
}

/* Features that are not used cost a call no statement. */
TEST(a_call_costs_as_few_statements_with_features, .deadline_s = 60)
{
    engine_own(param);
    const char *url = engine_url(param);
    arena_init(&a, 64 << 20);
    monitor_open(url);
    EQ_INT(since(questions()), 0); /* nobody else is there */
    struct costs without = costs(url, WITH_NONE);
    LE_INT(without.plain, PLAIN_STATEMENTS);
    LE_INT(without.keyed, KEYED_STATEMENTS);
    LE_INT(without.new_key, NEW_KEY_STATEMENTS);
    for (enum with i = WITH_ALL; i <= WITH_FLOWS; i++) {
        struct costs with = costs(url, i);
        EQ_INT(with.plain, without.plain);
        EQ_INT(with.keyed, without.keyed);
        EQ_INT(with.new_key, without.new_key);
    }
    mysql_close(monitor);
    arena_release(&a);
}

/* Statements of a step of a flow, in a commit of its own. The first one, which begins the flow,
 * sends no more; the first of all makes a lane. */
#define STEP_STATEMENTS 7

static int64_t step_cost(struct store *s, struct token token, int64_t seq, int64_t step)
{
    struct flow_op q = { .step = step };
    struct op op = flow_fenced(&q, token, seq);
    int64_t before = questions();
    commit(s, (struct op *[]){ &op }, 1);
    EQ_INT(q.steps, step);
    return since(before);
}

/* The lease is written by each step; its calls are not read again for that. */
TEST(a_step_costs_few_statements, .deadline_s = 60)
{
    engine_own(param);
    const char *url = engine_url(param);
    arena_init(&a, 64 << 20);
    monitor_open(url);
    struct store *s = opened(url, WITH_FLOWS);
    flow_tables(s, engine_of(url));
    int64_t first = INT64_MAX, next = INT64_MAX;
    for (int i = 0; i < 6; i++) {
        struct call_spec spec;
        call_spec_init(&spec);
        spec.id = bytes_of(arena_printf(&a, "flow-%d", i));
        spec.type = BYTES("t");
        OK(call_spec_settle(&a, &world_real, &spec, &err), &err);
        struct op accept = { .kind = OP_ACCEPT, .accept = { .v = &spec, .n = 1 } };
        struct op claim = node_claim();
        commit(s, (struct op *[]){ &accept, &claim }, 2);
        EQ_INT(claim.claim.n, 1);
        int64_t seq = claim.claim.calls[0].seq;
        first = MIN(first, step_cost(s, claim.claim.token, seq, 1));
        for (int step = 2; step < 5; step++)
            next = MIN(next, step_cost(s, claim.claim.token, seq, step));
    }
    printf("a first step: %lld statements, another one: %lld\n", (long long)first, (long long)next);
    LE_INT(first, STEP_STATEMENTS);
    LE_INT(next, STEP_STATEMENTS);
    store_close(s);
    mysql_close(monitor);
    arena_release(&a);
}

/* ---- Steps of workflows ---------------------------------------------------------------------- */

#define FLOWS 40

static struct claim flows_claim(struct store *s, int n)
{
    struct call_spec v[FLOWS];
    struct op claim = node_claim();
    for (int i = 0; i < n; i++) {
        call_spec_init(&v[i]);
        v[i].id = bytes_of(arena_printf(&a, "run-%u", calls++));
        v[i].type = BYTES("t");
        OK(call_spec_settle(&a, &world_real, &v[i], &err), &err);
    }
    struct op accept = { .kind = OP_ACCEPT, .accept = { .v = v, .n = (size_t)n } };
    claim.claim.max = n;
    commit(s, (struct op *[]){ &accept, &claim }, 2);
    EQ_INT(claim.claim.n, n);
    return claim.claim;
}

/* n new runs store five steps, the n steps of one number in one group. Returns the statements of
 * the last group. */
static int64_t steps_cost(struct store *s, int n)
{
    struct claim q = flows_claim(s, n);
    int64_t before = 0;
    for (int no = 1; no <= 5; no++) {
        struct op ops[FLOWS], *v[FLOWS];
        struct workflow_op w[FLOWS];
        struct workflow_step step[FLOWS];
        for (int i = 0; i < n; i++) {
            step[i] = (struct workflow_step){ .no = no,
                                              .name = bytes_of(no % 2 ? "odd" : "even"),
                                              .kind = STEP_RUN,
                                              .says = SAYS_RESULT };
            w[i] = (struct workflow_op){ .what = WORKFLOW_STEPS,
                                         .steps = { .v = &step[i], .n = 1, .node = BYTES("n") } };
            ops[i] = (struct op){ .kind = OP_FEATURE,
                                  .feature = { .of = &feature_workflow,
                                               .ctx = &w[i],
                                               .token = q.token,
                                               .seq = q.calls[i].seq } };
            v[i] = &ops[i];
        }
        before = questions();
        commit(s, v, (size_t)n);
    }
    return since(before);
}

/* Rows are found and written with one statement for all runs of a group. */
TEST(the_steps_of_a_group_cost_as_many_statements_as_one, .deadline_s = 60)
{
    engine_own(param);
    const char *url = engine_url(param);
    arena_init(&a, 64 << 20);
    monitor_open(url);
    struct store *s = opened(url, WITH_ALL);
    int64_t two = MIN(steps_cost(s, 2), steps_cost(s, 2));
    int64_t many = MIN(steps_cost(s, FLOWS), steps_cost(s, FLOWS));
    printf("2 steps: %lld statements, %d steps: %lld\n", (long long)two, FLOWS, (long long)many);
    EQ_INT(many, two);
    store_close(s);
    mysql_close(monitor);
    arena_release(&a);
}

/* Writes the rows of runs that do not exist; ctx: how many. */
static enum pawl_status ghosts_apply(struct ledger *d, struct op *op, struct pawl_err *e)
{
    enum pawl_status st = PAWL_OK;
    for (int i = 0; i < *(const int *)op->feature.ctx && st == PAWL_OK; i++) {
        union feature_value v[22] = { { .i = 1000000 + i }, { .i = 1 } };
        st = feature_row(d, SQL_WORKFLOW_PUT, "iiitiiiitziiizitiizitz", v, FEATURE_EXACT, e);
    }
    return st;
}

static const struct feature ghosts = { .name = "ghosts", .apply = ghosts_apply };

/* The statement that updates runs would insert one that is not there, and tells it by the count. */
TEST(a_run_that_is_not_there_is_noticed_by_its_update, .deadline_s = 60)
{
    static const struct feature *const features[] = { &ghosts };
    static const int sizes[] = { 1, 2, 9 };
    struct store *s = NULL;
    engine_own(param);
    const char *url = engine_url(param);
    arena_init(&a, 64 << 20);
    OK(store_open(&(struct store_conf){ .url = url,
                                        .retention_us = 3600 * SEC_US,
                                        .remember_us = 7200 * SEC_US,
                                        .features = features,
                                        .n_features = COUNT_OF(features) },
                  &s, &err),
       &err);
    OK(store_migrate(s, true, &err), &err);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        int n = sizes[i];
        struct op op = { .kind = OP_FEATURE, .a = &a, .feature = { .of = &ghosts, .ctx = &n } };
        struct op *v[] = { &op };
        (void)!store_commit(s, v, 1);
        EQ_STATUS(op.status, PAWL_BROKEN, &op.err);
        db_ask(&db_mariadb, "DELETE FROM pawl_workflow");
    }
    store_close(s);
    arena_release(&a);
}

/* ---- A list of schedules --------------------------------------------------------------------- */

static int64_t page_cost(struct store *s, int limit)
{
    struct cron_query q = { .limit = limit };
    struct cron_rows rows;
    struct cron_run *last;
    int64_t before = questions();
    OK(cron_list(s, &a, &q, &rows, &err), &err);
    OK(cron_last(s, &a, &rows, &last, &err), &err);
    EQ_UINT(rows.n, (size_t)limit);
    for (size_t i = 0; i < rows.n; i++)
        EQ_INT(last[i].at_us, 9);
    return since(before);
}

/* The newest runs of a page are read together. */
TEST(a_page_of_schedules_costs_as_many_statements_as_one, .deadline_s = 60)
{
    struct db_server *db = engine_own(param);
    const char *url = engine_url(param);
    arena_init(&a, 64 << 20);
    monitor_open(url);
    struct store *s = opened(url, true);
    db_ask(db, "INSERT INTO pawl_schedule SELECT CONCAT('s', i.seq), '{}', 1, 1, 'UTC', 0, 0, 0, "
               "0, 0, NULL, 0, 0, 1, 1 FROM seq_1_to_1000 i;"
               "INSERT INTO pawl_tick SELECT CONCAT('s', i.seq), t.seq, 0, 4, NULL, 'UTC', 1, "
               "NULL, NULL, 1 FROM seq_1_to_1000 i, seq_1_to_9 t;");
    page_cost(s, 1); /* the connection is there */
    int64_t one = page_cost(s, 1);
    printf("%lld statements\n", (long long)one);
    int64_t all = INT64_MAX; /* the server's count has other statements now and then */
    for (int i = 0; i < 5; i++)
        all = MIN(all, page_cost(s, LIST_MAX));
    LE_INT(all, one);
    store_close(s);
    mysql_close(monitor);
    arena_release(&a);
}

/* ---- Idle ------------------------------------------------------------------------------------ */

/* Until the node has run a call, and polls slowly again. */
static void settles(struct pawl *p, const char *id)
{
    fixture_submit(p, id, "t");
    fixture_ends(p, id, PAWL_COMPLETED);
    UNTIL(exec_leads(p->e, LEAD_SCHEDULER));
    usleep(2000000);
}

/* When the machine stalls, connections end, and new ones run more statements: a count that is too
 * high then is measured again. A node that really runs too many does so each time. */
static double statements_a_second(const char *what, double max)
{
    double each = max;
    int seconds = check_long() ? 20 : 6; /* some come every two seconds */
    for (int i = 0; i < 4 && each >= max; i++) {
        int64_t before = questions(), began_us = fixture_mono();
        usleep((unsigned)seconds * 1000000);
        each = (double)since(before) * FIXTURE_SEC / (double)(fixture_mono() - began_us);
        printf("%s: %.2f statements a second\n", what, each);
    }
    return each;
}

/* Without notifications a node asks four times a second whether another process has changed
 * something, and one of these is its sweep's look. Every two seconds it reads when the next
 * schedule is due, sends a heartbeat and reads the others': about 6 statements a second, and 8 more
 * whenever it extends its lead of a role. On PostgreSQL it is 4. */
#define IDLE_STATEMENTS 8

/* 100,000 schedules, none of them due, on the node that ticks them, with the settings of `pawl
 * serve`: the node says no more than with one. Time itself is measured here, so time has to pass.
 */
TEST(an_idle_node_with_many_schedules_says_no_more, .deadline_s = 180)
{
    struct db_server *db = engine_own(param);
    const char *url = engine_url(param);
    struct pawl_options o = { .db = url,
                              .node = "counted",
                              .heartbeat_interval_us = 2 * FIXTURE_SEC,
                              .heartbeat_grace_us = 10 * FIXTURE_SEC,
                              .reclaim_interval_us = 1 * FIXTURE_SEC,
                              .gc_interval_us = 60 * FIXTURE_SEC };
    struct pawl_schedule s = { PAWL_SCHEDULE_INIT, .name = "s", .every_us = 3600 * FIXTURE_SEC,
                               .starts_at_us = INT64_C(4000000000) * FIXTURE_SEC,
                               .call = &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "t" } };
    struct pawl *other = fixture_open_as(NULL, (struct pawl_options){ .db = url });
    OK(pawl_schedule(pawl_program(other), &s), NULL);
    fixture_on(other, "t", fixture_echo);
    OK(pawl_start(other, NULL, &err), &err);
    pawl_close(other);
    struct pawl *p = fixture_open_as(NULL, o);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 2);
    settles(p, "a");
    monitor_open(url);
    double one = statements_a_second("one schedule", IDLE_STATEMENTS);
    db_ask(db, "INSERT INTO pawl_schedule SELECT CONCAT('s', i.seq), spec, version, paused, "
               "zone_data, due_at, next_at, next_local, last_at, last_local, last_id, last_seq, "
               "waiting_at, created_at, updated_at FROM pawl_schedule, seq_1_to_100000 i; "
               "ANALYZE TABLE pawl_schedule;");
    EQ_INT(db_int(db, "SELECT COUNT(*) FROM pawl_schedule"), 100001);
    settles(p, "b");
    double many = statements_a_second("100,000 schedules", MIN(IDLE_STATEMENTS, one + 2));
    TRUE(one < IDLE_STATEMENTS);
    TRUE(many < IDLE_STATEMENTS);
    TRUE(many < one + 2);
    TRUE(one > 0.2); /* it is alive, and this is its server */
    mysql_close(monitor);
    pawl_close(p);
}
