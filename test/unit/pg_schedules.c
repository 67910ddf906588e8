/*
 * pg_schedules.c - schedules that are put and removed in SQL: with the transaction, through the
 * inbox, and never half; and the view of their runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "engines.h"
#include "feature/all.h"
#include "feature/cron.h"
#include "pg_fixture.h"
#include "store/feature.h"

RUNS_ON_ENGINE("postgres")

static struct pg_fixture r;

static enum pawl_status found(const char *name)
{
    struct cron_row row;
    return cron_get(r.s, &r.a, bytes_of(name), &row, &r.err);
}

static struct cron_op *tick(void)
{
    static struct cron_op q;
    q = (struct cron_op){ .what = CRON_TICK, .max = 10, .node = BYTES("n1") };
    struct op op = { .kind = OP_FEATURE, .feature = { .of = &feature_cron, .ctx = &q } };
    pgf_do(&r, &op);
    OK(op.status, &op.err);
    return &q;
}

#define HOURLY "{\"cron\": \"@hourly\", \"call\": {\"type\": \"t\", \"input\": {\"x\": 1.0}}}"

TEST(a_schedule_exists_when_its_transaction_commits)
{
    pgf_open(&r, NULL);
    PGconn *app = pgf_connect(&r, NULL);
    sql_run(app, "BEGIN; SELECT pawl.schedule('a', '" HOURLY "')");
    pgf_sweep(&r);
    EQ_STATUS(found("a"), PAWL_NOT_FOUND, NULL);
    sql_run(app, "COMMIT");
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.calls"), 0); /* it is no call */
    pgf_sweep(&r);
    OK(found("a"), &r.err);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.inbox"), 0);
    sql_run(app, "BEGIN; SELECT pawl.unschedule('a'); ROLLBACK");
    pgf_sweep(&r);
    OK(found("a"), &r.err);
    /* Several rows are taken over in their order, beside calls. */
    sql_run(app, "BEGIN; SELECT pawl.unschedule('a'); SELECT pawl.submit('t', id => 'x'); "
                 "SELECT pawl.schedule('b', '" HOURLY "'); SELECT pawl.unschedule('b'); "
                 "SELECT pawl.schedule('b', '" HOURLY "'); COMMIT");
    EQ_INT(pgf_claim(&r, 10).n, 1); /* a claim does the same as a sweep */
    EQ_STATUS(found("a"), PAWL_NOT_FOUND, NULL);
    OK(found("b"), &r.err);
    PQfinish(app);
    pgf_close(&r);
}

TEST(a_refused_schedule_is_a_conflict)
{
    pgf_open(&r, NULL);
    sql_run(
        r.db,
        "SELECT pawl.schedule('bad', '{\"cron\": \"61 * * * *\", \"call\": {\"type\": \"t\"}}')");
    sql_run(r.db, "SELECT pawl.schedule('past', '{\"at\": [\"2000-01-01T00:00:00Z\"], "
                  "\"call\": {\"type\": \"t\"}}')");
    sql_run(r.db, "SELECT pawl.schedule('good', '" HOURLY "')");
    sql_run(r.db, "SELECT pawl.unschedule('never')"); /* gone already: that is what was asked for */
    pgf_sweep(&r);
    OK(found("good"), &r.err);
    EQ_STR(sql_ask(r.db,
                   "SELECT string_agg(id || ' ' || type || ' ' || method || ' ' || code, ', ' "
                   "ORDER BY n) FROM pawl.inbox_conflicts"),
           "bad pawl.schedule put INVALID, past pawl.schedule put INVALID");
    HAS_STR(sql_ask(r.db, "SELECT reason FROM pawl.inbox_conflicts WHERE id = 'bad'"), "\"61\"");
    EQ_STR(sql_ask(r.db, "SELECT client FROM pawl.inbox_conflicts WHERE id = 'bad'"), "pawl");
    pgf_close(&r);
}

TEST(a_name_inside_the_spec_is_that_of_the_schedule)
{
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.schedule('a', '{\"name\": \"b\", \"every\": 60, "
                  "\"call\": {\"type\": \"t\"}}')");
    sql_run(r.db, "SELECT pawl.schedule('c', '{\"name\": \"c\", \"every\": 60, "
                  "\"call\": {\"type\": \"t\"}}')");
    pgf_sweep(&r);
    EQ_STATUS(found("a"), PAWL_NOT_FOUND, NULL);
    EQ_STATUS(found("b"), PAWL_NOT_FOUND, NULL);
    OK(found("c"), &r.err);
    EQ_STR(sql_ask(r.db, "SELECT id || ': ' || code || ': ' || reason FROM pawl.inbox_conflicts"),
           "a: INVALID: field \"name\": is \"b\", and the argument says \"a\"");
    pgf_close(&r);
}

/* The settings of the node that takes it over, as for a PUT. */
TEST(a_schedule_of_sql_follows_the_settings_of_the_node)
{
    struct cron_row row;
    pgf_open(&r, NULL);
    store_close(r.s);
    struct store_conf conf = { .url = r.url,
                               .retention_us = FIXTURE_RETENTION_US,
                               .remember_us = FIXTURE_REMEMBER_US,
                               .call_timeout_us = 90 * SEC_US,
                               .input_len_max = 100 };
    conf.features = features_all(&conf.n_features);
    OK(store_open(&conf, &r.s, &r.err), &r.err);
    sql_run(r.db, "SELECT pawl.schedule('a', json_build_object('every', 60, 'call', "
                  "json_build_object('type', 't', 'input', repeat('x', 98))))");
    sql_run(r.db, "SELECT pawl.schedule('b', json_build_object('every', 60, 'call', "
                  "json_build_object('type', 't', 'input', repeat('x', 99))))");
    sql_run(r.db, "SELECT pawl.schedule('c', '{\"every\": 60, \"call\": {\"type\": \"t\", "
                  "\"timeout\": 60}}')");
    pgf_sweep(&r);
    OK(cron_get(r.s, &r.a, BYTES("a"), &row, &r.err), &r.err);
    HAS_STR(arena_text(&r.a, row.spec), "\"timeout\":90");
    EQ_STATUS(found("b"), PAWL_NOT_FOUND, NULL);
    EQ_STR(sql_ask(r.db, "SELECT id || ': ' || code || ': ' || reason FROM pawl.inbox_conflicts"),
           "b: TOO_LARGE: field \"call.input\": is 101 bytes, limit 100");
    OK(cron_get(r.s, &r.a, BYTES("c"), &row, &r.err), &r.err);
    EQ_PTR(strstr(arena_text(&r.a, row.spec), "timeout"), NULL);
    pgf_close(&r);
}

/* Nobody answers for the transaction that changed it. */
TEST(what_a_change_in_sql_ends_is_counted)
{
    struct cron_unasked before, after;
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.schedule('a', '" HOURLY "')");
    pgf_sweep(&r);
    sql_run(r.db, "UPDATE pawl.schedule SET due_at = next_at - 7200000000, "
                  "next_at = next_at - 7200000000");
    cron_unasked(&before);
    sql_run(r.db, "SELECT pawl.unschedule('a')");
    pgf_sweep(&r);
    cron_unasked(&after);
    EQ_INT(after.missed - before.missed, 2);
    pgf_close(&r);
}

TEST(mistakes_are_named_at_once)
{
    pgf_open(&r, NULL);
    EQ_STR(sql_fails(r.db, "SELECT pawl.schedule(NULL, '{}')"), "22023");
    EQ_STR(sql_fails(r.db, "SELECT pawl.schedule('', '{}')"), "22023");
    EQ_STR(sql_fails(r.db, "SELECT pawl.schedule('a', NULL)"), "22023");
    HAS_STR(sql_said(), "field \"spec\": is missing");
    EQ_STR(sql_fails(r.db, "SELECT pawl.schedule(repeat('x', 256), '{}')"), "22023");
    EQ_STR(sql_fails(r.db, "SELECT pawl.schedule('a', to_json(repeat('x', 5000000)))"), "54000");
    EQ_STR(sql_fails(r.db, "SELECT pawl.unschedule('.')"), "22023");
    sql_run(r.db, "UPDATE pawl.migration SET finished = 0 WHERE number = 10");
    EQ_STR(sql_fails(r.db, "SELECT pawl.schedule('a', '" HOURLY "')"), "55000");
    HAS_STR(sql_said(), "pawl migrate finish");
    sql_run(r.db, "CREATE ROLE stranger LOGIN; GRANT USAGE ON SCHEMA pawl TO stranger");
    PGconn *db = pgf_connect(&r, "stranger");
    EQ_STR(sql_fails(db, "SELECT pawl.schedule('a', '" HOURLY "')"), "42501");
    EQ_STR(sql_fails(db, "SELECT pawl.unschedule('a')"), "42501");
    EQ_STR(sql_fails(db, "SELECT pawl.schedule_row('a', 'put', '" HOURLY "')"), "42501");
    PQfinish(db);
    sql_run(r.db, "REVOKE ALL ON SCHEMA pawl FROM stranger; DROP ROLE stranger");
    pgf_close(&r);
}

TEST(the_view_shows_runs_with_the_columns_of_a_table_of_runs)
{
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.schedule('a', '{\"every\": 3600, \"zone\": \"Europe/Berlin\", "
                  "\"call\": {\"type\": \"t\"}}')");
    pgf_sweep(&r);
    sql_run(r.db, "UPDATE pawl.schedule SET due_at = next_at - 7200000000, "
                  "next_at = next_at - 7200000000");
    struct cron_op *q = tick();
    EQ_INT(q->submitted, 1);
    struct token t = pgf_claim(&r, 1).token;
    EQ_STR(sql_ask(r.db, "SELECT status FROM pawl.cron_runs WHERE call IS NOT NULL"), "processing");
    pgf_finish(
        &r, t,
        arena_text(&r.a, bytes_of(sql_ask(
                             r.db, "SELECT call FROM pawl.cron_runs WHERE call IS NOT NULL"))),
        END_REFUSE);
    EQ_STR(
        sql_ask(r.db,
                "SELECT cron_name || ' ' || timezone || ' ' || status || ' ' || "
                "(scheduled_time <= now())::text || ' ' || (completed_at <= now() + '1 s')::text "
                "FROM pawl.cron_runs WHERE call IS NOT NULL"),
        "a Europe/Berlin failed true true");
    EQ_INT(sql_count(r.db, "SELECT count(DISTINCT id) FROM pawl.cron_runs"), 1 + (q->missed > 0));
    pgf_close(&r);
}

/* A run that is damaged is told to its readers, and ends nothing. */
TEST(a_damaged_run_is_told)
{
    static const char *const damage[] = { "kind = 9", "kind = 1, call_id = NULL", "count = 0",
                                          "at = -1" };
    const struct cron_run_query q = { .name = BYTES("a"), .limit = 10 };
    struct cron_run_rows rows;
    pgf_open(&r, NULL);
    for (size_t i = 0; i < COUNT_OF(damage); i++) {
        sql_run(r.db, "DELETE FROM pawl.tick; INSERT INTO pawl.tick (name, at, no, kind, zone, "
                      "count, created_at) VALUES ('a', 1000000, 0, 4, 'UTC', 1, 1)");
        OK(cron_runs(r.s, &r.a, &q, &rows, &r.err), &r.err);
        sql_run(r.db, "%s", arena_printf(&r.a, "UPDATE pawl.tick SET %s", damage[i]));
        EQ_STATUS(cron_runs(r.s, &r.a, &q, &rows, &r.err), PAWL_BROKEN, &r.err);
        TRUE(strstr(r.err.text, "a run of schedule \"a\" has ") != NULL);
    }
    pgf_close(&r);
}
