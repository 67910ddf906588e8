/*
 * lib_sql.c - a handler's SQL in its call's own transaction: what is stored, what is rolled back,
 * what is refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"
#include "store/store.h"

RUNS_ON(ENGINES_DURABLE)

/* Run one statement that must succeed. */
static const struct pawl_rows *sql(struct pawl_call *c, const char *text)
{
    const struct pawl_rows *rows = NULL;
    struct pawl_err err;
    OK(pawl_sql(c, text, NULL, 0, &rows, &err), &err);
    return rows;
}

static int count_rows(struct pawl_call *c)
{
    const struct pawl_rows *r = sql(c, "SELECT count(*) FROM box");
    EQ_INT((int)r->n, 1);
    EQ_INT((int)r->columns, 1);
    return pawl_reply_int(c, r->v[0].i);
}

static struct pawl *open_box(const void *param, pawl_handler *h, int slots)
{
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .reclaim_interval_us = 30 * FIXTURE_SEC,
                                                      .heartbeat_grace_us = 30 * FIXTURE_SEC });
    OK(pawl_prepare(pawl_program(p),
                    "CREATE TABLE IF NOT EXISTS box (id VARCHAR(100) PRIMARY KEY, n INTEGER)"),
       NULL);
    fixture_on(p, "t", h);
    fixture_on(p, "count", count_rows);
    fixture_on(p, "echo", fixture_echo);
    fixture_start(p, slots);
    return p;
}

/* How many rows the application's table has, counted by a call. */
static int in_box(struct pawl *p)
{
    struct pawl_shown *shown;
    struct pawl_err err;
    char text[32] = "";
    OK(pawl_submit_wait(p, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "count" }, 60 * FIXTURE_SEC,
                        &shown, &err),
       &err);
    EQ_INT(pawl_shown_view(shown)->state, PAWL_COMPLETED);
    snprintf(text, sizeof text, "%.*s", (int)pawl_shown_view(shown)->result.len,
             (const char *)pawl_shown_view(shown)->result.data);
    pawl_shown_free(shown);
    return (int)strtol(text, NULL, 10);
}

static int puts_one(struct pawl_call *c)
{
    struct pawl_value v[] = {
        { .kind = PAWL_V_TEXT, .data = pawl_call_id(c), .len = strlen(pawl_call_id(c)) },
        { .kind = PAWL_V_INT, .i = pawl_call_attempt_no(c) }
    };
    const struct pawl_rows *rows;
    struct pawl_err err;
    atomic_fetch_add(&fixture_runs, 1);
    OK(pawl_sql(c, "INSERT INTO box VALUES (?, ?)", v, 2, &rows, &err), &err);
    EQ_INT(rows->changed, 1);
    int64_t what = 0;
    pawl_input_int(c, &what);
    if (what == 1)
        return pawl_fail(c, "after the insert");
    if (what == 2)
        return pawl_refuse(c, "after the insert");
    if (what == 3 && atomic_load(&fixture_runs) == 1)
        return pawl_later(c, 1);
    if (what == 4)
        return 9;
    return pawl_reply_int(c, 1);
}

TEST(sql_commits_with_a_reply_and_is_undone_by_every_other_ending)
{
    static const struct {
        const char *input;
        enum pawl_state state;
        int rows;
    } v[] = { { "0", PAWL_COMPLETED, 1 },
              { "1", PAWL_FAILED, 1 },
              { "2", PAWL_FAILED, 1 },
              { "4", PAWL_FAILED, 1 },
              { "5", PAWL_COMPLETED, 2 } };
    struct pawl *p = open_box(param, puts_one, 2);
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        char id[32];
        snprintf(id, sizeof id, "x%zu", i);
        fixture_submit_as(p, (struct pawl_spec){ .id = id,
                                                 .type = "t",
                                                 .max_attempts = 1,
                                                 .input = { PAWL_JSON, v[i].input, 1 } });
        fixture_ends(p, id, v[i].state);
        EQ_INT(in_box(p), v[i].rows);
    }
    atomic_store(&fixture_runs, 0);
    fixture_submit_as(p, (struct pawl_spec){ .id = "later", .type = "t", .input = PAWL_TEXT("3") });
    fixture_ends(p, "later", PAWL_COMPLETED);
    EQ_INT(in_box(p), 3);
    pawl_close(p);
}

static int every_value(struct pawl_call *c)
{
    struct pawl_value v[] = { { .kind = PAWL_V_NULL },
                              { .kind = PAWL_V_INT, .i = INT64_MIN },
                              { .kind = PAWL_V_REAL, .r = 1.5 },
                              { .kind = PAWL_V_TEXT, .data = "\xc3\xa4", .len = 2 },
                              { .kind = PAWL_V_BLOB, .data = "\0\1", .len = 2 } };
    const struct pawl_rows *r;
    struct pawl_err err;
    OK(pawl_sql(c, "INSERT INTO kinds VALUES (?, ?, ?, ?, ?)", v, 5, &r, &err), &err);
    EQ_INT(r->changed, 1);
    OK(pawl_sql(c, "SELECT a, b, c, d, e FROM kinds", NULL, 0, &r, &err), &err);
    EQ_INT((int)r->n, 1);
    EQ_INT((int)r->columns, 5);
    EQ_INT(r->v[0].kind, PAWL_V_NULL);
    EQ_INT(r->v[1].i, INT64_MIN);
    TRUE(r->v[2].kind == PAWL_V_REAL && r->v[2].r == 1.5);
    EQ_INT(r->v[3].kind, PAWL_V_TEXT);
    EQ_STR(r->v[3].data, "\xc3\xa4");
    EQ_INT(r->v[4].kind, PAWL_V_BLOB);
    EQ_BYTES(r->v[4].data, r->v[4].len, "\0\1", 2);
    OK(pawl_sql(c, "SELECT 1, 2 UNION ALL SELECT 3, 4 ORDER BY 1", NULL, 0, &r, &err), &err);
    EQ_INT((int)r->n, 2);
    EQ_INT(r->v[3].i, 4);
    OK(pawl_sql(c, "SELECT n FROM box WHERE 1 = 0", NULL, 0, &r, &err), &err);
    EQ_INT((int)r->n, 0);
    OK(pawl_sql(c, "SELECT 1", NULL, 0, NULL, &err), &err);
    return 0;
}

TEST(values_go_in_and_come_out)
{
    struct pawl *p = open_box(param, every_value, 1);
    char sql[200];
    snprintf(sql, sizeof sql,
             "CREATE TABLE kinds (a INTEGER, b BIGINT, c DOUBLE PRECISION, d VARCHAR(9), e %s)",
             engine_of(param)->blob);
    OK(pawl_prepare(pawl_program(p), sql), NULL);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .max_attempts = 1 });
    fixture_ends(p, "x", PAWL_COMPLETED);
    pawl_close(p);
}

static int sql_from_input(struct pawl_call *c)
{
    const char *text;
    struct pawl_err err = { 0 };
    EQ_INT(pawl_input_get_text(c, "sql", &text), 0);
    sql(c, "INSERT INTO box VALUES ('before', 0)");
    enum pawl_status st = pawl_sql(c, text, NULL, 0, NULL, &err);
    NE_INT(st, PAWL_OK);
    NE_INT(strlen(err.text), 0);
    EQ_STATUS(pawl_sql(c, "SELECT 1", NULL, 0, NULL, &err), PAWL_STATE, &err);
    return pawl_reply_int(c, 1); /* which becomes an error */
}

TEST(a_statement_that_fails_poisons_the_attempt)
{
    static const char *const bad[] = {
        "SELEC 1",
        "INSERT INTO box VALUES ('before', 1)",
        "SELECT 1; SELECT 2",
        "",
        "SELECT ?",
        "DELETE FROM pawl_call",
        "SELECT * FROM pawl_lease",
        "UPDATE PAWL_OUTCOME SET status = 3",
        "DROP TABLE pawl_ready",
        "CREATE INDEX i ON pawl_call (id)",
        "CREATE TRIGGER tr AFTER INSERT ON pawl_call BEGIN DELETE FROM box; END",
        "ALTER TABLE pawl_call ADD COLUMN x",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT a",
        "RELEASE a",
        "PRAGMA synchronous = OFF",
        "PRAGMA writable_schema = 1",
        "ATTACH 'other.db' AS o",
        "VACUUM",
    };
    struct pawl *p = open_box(param, sql_from_input, 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char input[200], id[32];
        int len = snprintf(input, sizeof input, "{\"sql\":\"%s\"}", bad[i]);
        snprintf(id, sizeof id, "x%zu", i);
        fixture_submit_as(p, (struct pawl_spec){ .id = id,
                                                 .type = "t",
                                                 .max_attempts = 1,
                                                 .input = { PAWL_JSON, input, (size_t)len } });
        fixture_ends(p, id, PAWL_FAILED);
        struct pawl_shown *shown = fixture_get(p, id);
        HAS_STR(pawl_shown_view(shown)->error, "its SQL failed");
        pawl_shown_free(shown);
    }
    EQ_INT(in_box(p), 0);
    EQ_INT(fixture_count(p, 0), (int)(sizeof bad / sizeof bad[0]) + 1);
    pawl_close(p);
}

static int sends_and_writes(struct pawl_call *c)
{
    struct pawl_err err;
    const struct pawl_view *v;
    sql(c, "INSERT INTO box VALUES ('s', 0)");
    EQ_STATUS(pawl_ask(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "echo" }, &v, &err),
              PAWL_STATE, &err);
    OK(pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .id = "kid", .type = "echo" }, &err),
       &err);
    return 0;
}

TEST(sql_and_sends_are_one_commit)
{
    struct pawl *p = open_box(param, sends_and_writes, 1);
    fixture_submit_as(p, (struct pawl_spec){ .id = "kid", .type = "other" });
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t" });
    /* The id it sends already means another call: the SQL is rolled back too. */
    fixture_ends(p, "x", PAWL_FAILED);
    EQ_INT(in_box(p), 0);
    pawl_close(p);
}

TEST(sql_and_sends_land_together)
{
    struct pawl *p = open_box(param, sends_and_writes, 1);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t" });
    fixture_ends(p, "x", PAWL_COMPLETED);
    fixture_ends(p, "kid", PAWL_COMPLETED);
    EQ_INT(in_box(p), 1);
    pawl_close(p);
}

/* ---- The limit of 1 s ---- */

static int holds_too_long(struct pawl_call *c)
{
    atomic_fetch_add(&fixture_runs, 1);
    sql(c, "INSERT INTO box VALUES ('h', 0)");
    EQ_INT(pawl_sleep(c, 600 * FIXTURE_SEC), 1);
    struct pawl_err err;
    NE_INT(pawl_sql(c, "SELECT 1", NULL, 0, NULL, &err), PAWL_OK);
    return pawl_reply_int(c, 1);
}

/* There is a limit on the length of a transaction only where it blocks all other writers. */
static void one_writer(const char *param)
{
    if (engine_of(param)->kind == ENGINE_SERVER)
        skip("%s: an open transaction holds nobody up, and has no limit", engine_of(param)->name);
}

TEST(a_transaction_open_for_too_long_is_undone)
{
    one_writer(param);
    struct pawl *p = open_box(param, holds_too_long, 2);
    int64_t begun = fixture_mono();
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .max_attempts = 1 });
    UNTIL(atomic_load(&fixture_runs) == 1);
    /* All other writers wait for it, and not for longer than that. */
    fixture_submit(p, "y", "echo");
    fixture_ends(p, "y", PAWL_COMPLETED);
    fixture_ends(p, "x", PAWL_FAILED);
    LT_INT(fixture_mono() - begun, 6 * FIXTURE_SEC * check_scale());
    struct pawl_shown *shown = fixture_get(p, "x");
    HAS_STR(pawl_shown_view(shown)->error, "longer than 1 s");
    pawl_shown_free(shown);
    EQ_INT(in_box(p), 0);
    pawl_close(p);
}

static int spins_in_sql(struct pawl_call *c)
{
    struct pawl_err err;
    NE_INT(pawl_sql(c,
                    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
                    "SELECT count(*) FROM r",
                    NULL, 0, NULL, &err),
           PAWL_OK);
    return pawl_reply_int(c, 1);
}

TEST(a_statement_that_runs_for_too_long_is_cut)
{
    one_writer(param);
    struct pawl *p = open_box(param, spins_in_sql, 2);
    int64_t begun = fixture_mono();
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .max_attempts = 1 });
    fixture_ends(p, "x", PAWL_FAILED);
    LT_INT(fixture_mono() - begun, 6 * FIXTURE_SEC * check_scale());
    pawl_close(p);
}

static int hangs_in_transaction(struct pawl_call *c)
{
    sql(c, "INSERT INTO box VALUES ('h', 0)");
    return fixture_blocks(c);
}

/* Its transaction ends after 1 s, and its attempt with it: its slot must be given to another call
 * too. */
TEST(a_handler_that_hangs_in_its_transaction_is_replaced)
{
    struct pawl *p = open_box(param, hangs_in_transaction, 1);
    fixture_submit_as(
        p, (struct pawl_spec){
               .id = "x", .type = "t", .max_attempts = 1, .timeout_us = 2 * FIXTURE_SEC });
    UNTIL(atomic_load(&fixture_inside) == 1);
    fixture_submit(p, "y", "echo");
    struct pawl_shown *shown;
    OK(pawl_get(p, "y", 8 * FIXTURE_SEC * check_scale(), &shown, NULL), NULL);
    EQ_STR(pawl_state_name(pawl_shown_view(shown)->state), "completed");
    pawl_shown_free(shown);
    fixture_ends(p, "x", PAWL_FAILED);
    fixture_open_gate();
    EQ_INT(in_box(p), 0);
    pawl_close(p);
}

/* ---- Throughput of nothing but SQL ---- */

/* A claim does not join a handler's transaction, so the next claim must be made separately. */
TEST(a_backlog_of_sql_handlers_drains_without_pauses)
{
    struct pawl *p = open_box(param, puts_one, 1);
    OK(pawl_pause(p, "default", true, NULL), NULL);
    fixture_submit_many(p, "t", 300);
    int64_t begun = fixture_mono();
    OK(pawl_pause(p, "default", false, NULL), NULL);
    fixture_drain(p);
    int64_t took = fixture_mono() - begun;
    EQ_INT(in_box(p), 300);
    printf("300 handlers with SQL took %lld ms\n", (long long)(took / 1000));
    struct pawl_stats st = { PAWL_STATS_INIT };
    pawl_stats(p, &st);
    LT_INT(took, 20 * FIXTURE_SEC * check_scale());
    pawl_close(p);
}

/* ---- When the database refuses ---- */

/* The fault is set inside the handler, so that mostly the commit of its SQL fails; a round in which
 * something else failed proves nothing, so there are several. */
enum { ROUNDS = 12 };

static enum pawl_status put_id(struct pawl_call *c, struct pawl_err *err)
{
    struct pawl_value id = { .kind = PAWL_V_TEXT, .data = pawl_call_id(c) };
    id.len = strlen(id.data);
    return pawl_sql(c, "INSERT INTO box VALUES (?, 1)", &id, 1, NULL, err);
}

/* Reads through a handle that never fails, and switches the fault off. */
static void ends_completed(struct pawl *watch, const char *id)
{
    fixture_ends(watch, id, PAWL_COMPLETED);
    store_fault(0, FAULT_BEFORE, PAWL_OK);
}

static const char *faulty(const char *param)
{
    static char url[200];
    snprintf(url, sizeof url, "fault+%s", param);
    return url;
}

static int ignores_sql_errors(struct pawl_call *c)
{
    static char before[32];
    atomic_fetch_add(&fixture_runs, 1);
    if (strcmp(before, pawl_call_id(c)) != 0) /* the first time */
        store_fault(1, FAULT_BEFORE, PAWL_BUSY);
    snprintf(before, sizeof before, "%s", pawl_call_id(c));
    return pawl_reply_int(c, put_id(c, NULL) == PAWL_OK);
}

/* "After an error every further statement fails and a reply becomes an error": also when the
 * transaction could not begin; but that does not count as an attempt. */
TEST(a_reply_after_sql_that_could_not_begin_is_none)
{
    struct pawl *p = open_box(faulty(param), ignores_sql_errors, 1);
    struct pawl *watch = fixture_open_as(param, (struct pawl_options){ .node = "watch" });
    for (int i = 0; i < ROUNDS; i++) {
        char id[32];
        snprintf(id, sizeof id, "x%d", i);
        fixture_submit_as(p, (struct pawl_spec){ .id = id, .type = "t", .max_attempts = 1 });
        ends_completed(watch, id);
        EQ_INT(in_box(p), i + 1);
    }
    /* Some faults may have hit other operations. */
    GT_INT(atomic_load(&fixture_runs), ROUNDS + ROUNDS / 2);
    pawl_close(p);
    pawl_close(watch);
}

static int loses_answer(struct pawl_call *c)
{
    struct pawl_err err;
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
    enum pawl_status st = put_id(c, &err);
    /* The fault hit the opening of a connection: nothing began, which does not count as an attempt.
     */
    if (st == PAWL_BUSY)
        return pawl_reply_int(c, 0);
    OK(st, &err);
    atomic_fetch_add(&fixture_runs, 1);
    return pawl_reply_int(c, 42);
}

/* The commit happened but its answer was lost: the waiter gets the stored result. */
TEST(a_handlers_commit_whose_answer_was_lost_is_not_run_again)
{
    struct pawl *p = open_box(faulty(param), loses_answer, 1);
    for (int i = 0; i < ROUNDS; i++) {
        struct pawl_shown *shown = NULL;
        struct pawl_err err;
        OK(pawl_submit_wait(p, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "t" }, 60 * FIXTURE_SEC,
                            &shown, &err),
           &err);
        store_fault(0, FAULT_BEFORE, PAWL_OK);
        const struct pawl_view *v = pawl_shown_view(shown);
        EQ_STR(pawl_state_name(v->state), "completed");
        EQ_INT(atomic_load(&fixture_runs), i + 1);
        EQ_INT(in_box(p), i + 1);
        EQ_BYTES(v->result.data, v->result.len, "42", 2);
        pawl_shown_free(shown);
    }
    pawl_close(p);
}

static int too_many_rows(struct pawl_call *c)
{
    const struct pawl_rows *r;
    struct pawl_err err;
    int64_t over = 0;
    char text[200];
    EQ_INT(pawl_input_int(c, &over), 0);
    snprintf(text, sizeof text,
             "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < %d) "
             "SELECT n FROM r",
             10000 + (int)over);
    enum pawl_status st = pawl_sql(c, text, NULL, 0, &r, &err);
    if (st != PAWL_OK)
        return pawl_refuse(c, "%s", err.text);
    return pawl_reply_int(c, (int64_t)r->n);
}

TEST(ten_thousand_rows_come_back_and_not_one_more)
{
    struct pawl *p = open_box(param, too_many_rows, 1);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .input = PAWL_TEXT("0") });
    fixture_submit_as(p, (struct pawl_spec){ .id = "y", .type = "t", .input = PAWL_TEXT("1") });
    fixture_ends(p, "x", PAWL_COMPLETED);
    fixture_ends(p, "y", PAWL_FAILED);
    pawl_close(p);
}

TEST(a_script_that_is_wrong_is_told)
{
    struct pawl *p = fixture_open(param);
    struct pawl_module *m = pawl_program(p);
    EQ_STATUS(pawl_prepare(m, "CREATE TABL x"), PAWL_INVALID, NULL);
    EQ_STATUS(pawl_prepare(m, NULL), PAWL_INVALID, NULL);
    EQ_STATUS(pawl_prepare(m, "DELETE FROM pawl_call"), PAWL_INVALID, NULL);
    EQ_STATUS(pawl_prepare(NULL, "SELECT 1"), PAWL_INVALID, NULL);
    OK(pawl_prepare(m, "CREATE TABLE IF NOT EXISTS ok (x INTEGER)"), NULL);
    OK(pawl_prepare(m, "CREATE TABLE IF NOT EXISTS ok (x INTEGER)"), NULL);
    fixture_submit(p, "x", "t"); /* and the writer goes on */
    pawl_close(p);
}

enum { LOADERS = 4, TABLES = 20 };
static pthread_barrier_t at_once;

static void *loads(void *arg)
{
    for (int i = 0; i < TABLES; i++) {
        char text[100];
        snprintf(text, sizeof text, "CREATE TABLE IF NOT EXISTS many%d (x INTEGER)", i);
        pthread_barrier_wait(&at_once);
        OK(pawl_prepare(pawl_program(arg), text), NULL);
    }
    return NULL;
}

/* As with processes that are started together, each with the same module. */
TEST(tables_that_are_made_by_several_at_once_are_made)
{
    pthread_t threads[LOADERS];
    struct pawl *v[LOADERS];
    pthread_barrier_init(&at_once, NULL, LOADERS);
    for (int i = 0; i < LOADERS; i++) {
        static const char *const names[LOADERS] = { "a", "b", "c", "d" };
        v[i] = fixture_open_as(param, (struct pawl_options){ .node = names[i] });
    }
    for (int i = 0; i < LOADERS; i++)
        EQ_INT(pthread_create(&threads[i], NULL, loads, v[i]), 0);
    for (int i = 0; i < LOADERS; i++)
        EQ_INT(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < LOADERS; i++)
        pawl_close(v[i]);
    pthread_barrier_destroy(&at_once);
}

static int sends_u(struct pawl_call *c)
{
    struct pawl_err err;
    sql(c, "INSERT INTO box VALUES ('u', 0)");
    OK(pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .id = "kid", .type = "u" }, &err), &err);
    return 0;
}

static void *claims_u(void *arg)
{
    static const char *const u = "u";
    struct pawl_claim c = { PAWL_CLAIM_INIT, .types = &u, .n_types = 1,
                            .wait_us = 60 * FIXTURE_SEC };
    struct pawl_lease *l;
    struct pawl_err err;
    OK(pawl_claim(arg, &c, &l, &err), &err);
    EQ_INT((int)l->n, 1);
    pawl_lease_free(l);
    atomic_fetch_add(&fixture_runs, 1);
    return NULL;
}

/* A call that a handler with SQL sends wakes waiting claims by hand, as any other accept does. */
TEST(a_call_sent_with_sql_wakes_a_waiting_claim)
{
    struct pawl *p = open_box(param, sends_u, 1);
    struct pawl_stats st = { PAWL_STATS_INIT };
    pthread_t thread;
    pawl_stats(p, &st);
    int64_t commits = st.commits;
    EQ_INT(pthread_create(&thread, NULL, claims_u, p), 0);
    UNTIL((pawl_stats(p, &st), st.commits > commits)); /* it has looked once, and waits */
    fixture_submit(p, "x", "t");
    fixture_ends(p, "x", PAWL_COMPLETED);
    int64_t begun = fixture_mono();
    UNTIL(atomic_load(&fixture_runs) == 1);
    LT_INT(fixture_mono() - begun, 10 * FIXTURE_SEC * check_scale());
    pthread_join(thread, NULL);
    pawl_close(p);
}
