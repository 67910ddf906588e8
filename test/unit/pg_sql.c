/*
 * pg_sql.c - submitting in SQL: a call exists if and only if its transaction commits, submits do
 * not wait for each other, mistakes are named, and ids that mean another call are found.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "engines.h"
#include "pg_fixture.h"

RUNS_ON_ENGINE("postgres")

static struct pg_fixture r;

static int64_t in_inbox(void)
{
    return sql_count(r.db, "SELECT count(*) FROM pawl.inbox");
}

/* ---- With and without a commit --------------------------------------------------------------- */

TEST(a_call_exists_when_its_transaction_commits)
{
    struct call c;
    pgf_open(&r, NULL);
    PGconn *app = pgf_connect(&r, NULL);
    sql_run(app, "BEGIN");
    EQ_STR(sql_ask(app, "SELECT pawl.submit(type => 't', id => 'a', input => '{\"x\": 1.0}')"),
           "a");
    pgf_sweep(&r);
    EQ_INT(pgf_claim(&r, 10).n, 0);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.calls"), 0);
    sql_run(app, "COMMIT");
    EQ_STR(sql_ask(r.db, "SELECT status FROM pawl.calls WHERE id = 'a' AND seq IS NULL"),
           "pending");
    struct claim q = pgf_claim(&r, 10);
    EQ_INT(q.n, 1);
    EQ_BYTES(q.calls[0].spec.input.bytes.data, q.calls[0].spec.input.bytes.len, "{\"x\": 1.0}",
             10); /* byte for byte */
    EQ_INT(in_inbox(), 0);
    pgf_finish(&r, q.token, "a", END_RESULT);
    OK(pgf_get(&r, "a", &c), NULL);
    EQ_INT(c.state, PAWL_COMPLETED);
    PQfinish(app);
    pgf_close(&r);
}

TEST(a_call_is_undone_with_its_transaction)
{
    struct call c;
    pgf_open(&r, NULL);
    sql_run(r.db, "BEGIN; SELECT pawl.submit('t', id => 'a'); ROLLBACK");
    sql_run(r.db, "BEGIN; SAVEPOINT s; SELECT pawl.submit('t', id => 'b');"
                  "ROLLBACK TO s; SELECT pawl.submit('t', id => 'c'); COMMIT");
    pgf_sweep(&r);
    EQ_STATUS(pgf_get(&r, "a", &c), PAWL_NOT_FOUND, NULL);
    EQ_STATUS(pgf_get(&r, "b", &c), PAWL_NOT_FOUND, NULL);
    OK(pgf_get(&r, "c", &c), NULL);
    pgf_close(&r);
}

/* In any isolation level that the application has chosen. */
TEST(any_isolation_may_submit)
{
    static const char *const levels[] = { "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE" };
    struct call c;
    pgf_open(&r, NULL);
    PGconn *app = pgf_connect(&r, NULL);
    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        const char *id = arena_printf(&r.a, "c%zu", i);
        sql_run(app, "BEGIN ISOLATION LEVEL %s; SELECT count(*) FROM pawl.calls", levels[i]);
        /* The ledger changes while its snapshot stays. */
        sql_run(r.db, "SELECT pawl.submit('t')");
        EQ_INT(pgf_claim(&r, 1000).n, i ? 2 : 1);
        sql_run(app, "SELECT pawl.submit('t', id => '%s', strict => %s)", id,
                i % 2 ? "true" : "false");
        sql_run(app, "COMMIT");
        EQ_INT(pgf_sweep(&r).more, false);
        OK(pgf_get(&r, id, &c), NULL);
    }
    PQfinish(app);
    pgf_close(&r);
}

/* ---- What is stored -------------------------------------------------------------------------- */

TEST(every_field_arrives)
{
    struct call c;
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit(type => 'mail', method => 'send', id => 'x', key => 'k', "
                  "queue => 'q', priority => -7, run_at => '2100-01-02T03:04:05.000006Z', "
                  "max_attempts => 9, max_lost => 8, timeout => '90 s', keep => '1 h', "
                  "backoff => '{\"base\": 0.5, \"factor\": 3, \"max\": 60, \"jitter\": 0.25}', "
                  "expires_at => '2100-02-03T00:00:00Z', caller => 'me', parent => 'p', "
                  "traceparent => '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01', "
                  "tags => '{\"a\": \"1\", \"b\": \"\"}', on_dead => 'block', "
                  "input_bytes => '\\x00ff27')");
    pgf_sweep(&r);
    OK(pgf_get(&r, "x", &c), NULL);
    const struct call_spec *s = &c.spec;
    TRUE(bytes_eq(s->type, BYTES("mail")) && bytes_eq(s->method, BYTES("send")));
    TRUE(bytes_eq(s->key, BYTES("k")) && bytes_eq(s->queue, BYTES("q")));
    TRUE(bytes_eq(s->caller, BYTES("me")) && bytes_eq(s->parent, BYTES("p")));
    TRUE(bytes_eq(s->client, BYTES("pawl"))); /* the session's user */
    EQ_INT(s->priority, -7);
    EQ_INT(c.run_at_us, INT64_C(4102542245000006));
    EQ_INT(c.expires_us, INT64_C(4105296000000000));
    EQ_INT(s->max_attempts, 9);
    EQ_INT(s->max_lost, 8);
    EQ_INT(s->timeout_us, 90 * SEC_US);
    EQ_INT(s->keep_us, 3600 * SEC_US);
    EQ_INT(s->backoff.base_us, SEC_US / 2);
    EQ_INT(s->backoff.max_us, 60 * SEC_US);
    TRUE(s->backoff.factor == 3 && s->backoff.jitter == 0.25);
    EQ_INT(s->on_dead, PAWL_ON_DEAD_BLOCK);
    EQ_INT(s->n_tags, 2);
    EQ_INT(s->input.form, PAWL_BYTES);
    EQ_BYTES(s->input.bytes.data, s->input.bytes.len, "\x00\xff'", 3);
    EQ_STR(sql_ask(r.db, "SELECT input_base64 FROM pawl.calls WHERE id = 'x'"), "AP8n");
    pgf_close(&r);
}

/* Nulls are defaults, an interval counts from the submit, a time in the past means now. */
TEST(what_is_not_said_has_its_default)
{
    struct call c, d;
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit('t', NULL, NULL, 'x', NULL, NULL, NULL)");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'late', delay => '1 h', expires_in => '2 h')");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'past', run_at => '1970-01-01T00:00:00Z')");
    int64_t by =
        sql_count(r.db, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    pgf_sweep(&r);
    OK(pgf_get(&r, "x", &c), NULL);
    struct call_spec plain = pgf_plan("x");
    EQ_STATUS(pgf_accept(&r, &plain).status, PAWL_OK, NULL);
    TRUE(pgf_accept(&r, &plain).duplicate); /* exactly the same call */
    EQ_INT(c.spec.max_attempts, plain.max_attempts);
    EQ_INT(c.spec.timeout_us, plain.timeout_us);
    EQ_INT(c.spec.keep_us, 0);
    EQ_INT(c.spec.input.form, PAWL_NOTHING);
    OK(pgf_get(&r, "late", &d), NULL);
    LE_INT(d.run_at_us, by + 3600 * SEC_US);
    EQ_INT(d.expires_us - d.run_at_us, 3600 * SEC_US);
    EQ_INT(pgf_claim(&r, 10).n, 2);
    pgf_close(&r);
}

TEST(ids_are_made)
{
    pgf_open(&r, NULL);
    sql_run(r.db,
            "CREATE TABLE made AS SELECT n, pawl.submit('t') AS id FROM generate_series(1, 50) n");
    EQ_INT(sql_count(r.db,
                     "SELECT count(DISTINCT id) FROM made WHERE id ~ "
                     "'^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'"),
           50);
    /* They begin with the time, so later ones sort behind. */
    EQ_STR(sql_ask(r.db,
                   "SELECT (pawl.new_id(1700000000000123) < pawl.new_id(1700000000000500))::text"),
           "true");
    EQ_STR(sql_ask(r.db, "SELECT left(pawl.new_id(1700000000000500), 18)"), "018bcfe5-6800-7800");
    pgf_close(&r);
}

TEST(calls_of_a_key_stand_in_the_order_they_were_submitted)
{
    pgf_open(&r, NULL);
    sql_run(r.db, "BEGIN; SELECT pawl.submit('t', id => 'z', key => 'k');"
                  "SELECT pawl.submit('t', id => 'a', key => 'k'); COMMIT;"
                  "SELECT pawl.submit('t', id => 'm', key => 'k')");
    struct claim q = pgf_claim(&r, 10);
    EQ_INT(q.n, 3);
    TRUE(bytes_eq(q.calls[0].spec.id, BYTES("z")) && bytes_eq(q.calls[1].spec.id, BYTES("a")) &&
         bytes_eq(q.calls[2].spec.id, BYTES("m")));
    pgf_close(&r);
}

/* ---- Needs ----------------------------------------------------------------------------------- */

TEST(a_call_submitted_in_sql_has_needs)
{
    struct call c;
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'a', max_lost => 1, needs => '{v:2,gpu,gpu}')");
    EQ_STR(sql_ask(r.db, "SELECT options FROM pawl.inbox"),
           "{\"needs\": [\"gpu\", \"v:2\"], \"max_lost\": 1}");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'b', needs => '{}');"
                  "SELECT pawl.submit('t', id => 'c', needs => NULL)");
    pgf_sweep(&r);
    EQ_INT(in_inbox(), 0);
    OK(pgf_get(&r, "a", &c), NULL);
    EQ_UINT(c.spec.n_needs, 2);
    EQ_BYTES(c.spec.needs[1].data, c.spec.needs[1].len, "v:2", 3);
    EQ_INT(pgf_claim(&r, 10).n, 2); /* by a worker that has nothing */
    EQ_STR(sql_ask(r.db, "SELECT options FROM pawl.call WHERE id = 'a'"), "{\"max_lost\":1}");
    /* In SQL too they wait until every node runs this version. */
    sql_run(r.db, "UPDATE pawl.migration SET finished = 0 WHERE number = 8");
    EQ_STR(sql_fails(r.db, "SELECT pawl.submit('t', needs => '{gpu}')"), "55000");
    HAS_STR(sql_said(), "run pawl migrate finish");
    sql_run(r.db, "SELECT pawl.submit('t')");
    pgf_close(&r);
}

/* ---- run_timeout ----------------------------------------------------------------------------- */

TEST(a_call_submitted_in_sql_has_a_run_timeout)
{
    struct call a, b, c, d;
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'a', run_timeout => '1 hour'),"
                  "       pawl.submit('t', id => 'b', run_timeout => '1 hour', delay => '2 hours'),"
                  "       pawl.submit('t', id => 'c', run_timeout => '0'),"
                  "       pawl.submit('t', id => 'd', run_timeout => '1 us')");
    /* As if a node came late: it counts from the submit. */
    sql_run(r.db, "UPDATE pawl.inbox SET created_at = created_at - 60000000 WHERE id = 'a'");
    int64_t until_us = sql_count(r.db, "SELECT options::jsonb -> 'run_until_us' FROM pawl.inbox "
                                       "WHERE id = 'a'");
    pgf_sweep(&r);
    EQ_INT(in_inbox(), 0);
    OK(pgf_get(&r, "a", &a), NULL);
    OK(pgf_get(&r, "b", &b), NULL);
    OK(pgf_get(&r, "c", &c), NULL);
    EQ_INT(a.spec.run_timeout_us, 3600 * SEC_US);
    EQ_INT(a.spec.run_until_us, until_us);
    EQ_INT(a.expires_us, a.spec.run_until_us);
    EQ_INT(b.spec.run_until_us, b.run_at_us + 3600 * SEC_US);
    EQ_INT(c.spec.run_timeout_us, 0);
    EQ_INT(c.expires_us, 0);
    pgf_sweep(&r); /* its time was over before a node took it over */
    OK(pgf_get(&r, "d", &d), NULL);
    EQ_INT(d.state, PAWL_CANCELLED);
    /* In SQL too it waits until every node runs this version. */
    sql_run(r.db, "UPDATE pawl.migration SET finished = 0 WHERE number = 11");
    EQ_STR(sql_fails(r.db, "SELECT pawl.submit('t', run_timeout => '1 s')"), "55000");
    HAS_STR(sql_said(), "field \"run_timeout\": every node must run this version first");
    sql_run(r.db, "SELECT pawl.submit('t', run_timeout => '0')");
    pgf_close(&r);
}

/* The function was made anew by a step; roles that could use it still can, and no others. */
TEST(the_right_to_submit_outlives_a_step)
{
    pgf_open(&r, NULL);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = "
                           "p.pronamespace WHERE n.nspname = 'pawl' AND p.proname = 'submit'"),
           1);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pg_proc p, aclexplode(p.proacl) a WHERE p.oid = "
                           "'pawl.submit'::regproc AND a.grantee = 0"),
           0);
    pgf_close(&r);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

TEST(mistakes_are_named)
{
    static const struct {
        const char *args, *state, *text;
    } v[] = {
        { "NULL", "22023", "field \"type\": is missing" },
        { "''", "22023", "field \"type\": is empty" },
        { "'..'", "22023", "field \"type\": must not be \".\" or \"..\"" },
        { "'t', id => '.'", "22023", "field \"id\": must not be" },
        { "repeat('x', 256)", "22023", "field \"type\": is longer than 255 bytes" },
        { "repeat('é', 128)", "22023", "field \"type\": is longer than 255 bytes" },
        { "'t', key => E'a\\tb'", "22023", "field \"key\": has a control character" },
        { "'t', key => E'a\\u0085b'", "22023", "field \"key\": has a control character" },
        { "'t', queue => E'a\\x7f'", "22023", "field \"queue\": has a control character" },
        { "'t', priority => 1001", "22023", "field \"priority\": is 1001, not in -1000..1000" },
        { "'t', max_attempts => 0", "22023", "field \"max_attempts\": is 0, not in 1..1000" },
        { "'t', max_lost => 1001", "22023", "field \"max_lost\"" },
        { "'t', delay => '-1 s'", "22023", "field \"delay\": is not at least 0" },
        { "'t', delay => '200 years'", "22023", "field \"delay\"" },
        { "'t', timeout => '0'", "22023", "field \"timeout\": is not above 0" },
        { "'t', run_timeout => '-1 s'", "22023", "field \"run_timeout\": is not at least 0" },
        { "'t', run_timeout => '200 years'", "22023", "field \"run_timeout\"" },
        { "'t', delay => '1 s', run_at => now()", "22023", "field \"run_at\": is given together" },
        { "'t', expires_in => '1 s', expires_at => now()", "22023", "field \"expires_at\"" },
        { "'t', run_at => 'infinity'", "22023", "field \"run_at\": is not in the years" },
        { "'t', input => '1', input_bytes => ''", "22023", "field \"input_bytes\"" },
        { "'t', backoff => '{\"bas\": 1}'", "22023", "field \"backoff.bas\": is unknown" },
        { "'t', backoff => '{\"base\": \"1\"}'", "22023", "field \"backoff.base\"" },
        { "'t', backoff => '{\"factor\": 0.5}'", "22023", "field \"backoff.factor\"" },
        { "'t', backoff => '{\"jitter\": 2}'", "22023", "field \"backoff.jitter\"" },
        { "'t', on_dead => 'stop'", "22023", "field \"on_dead\"" },
        { "'t', traceparent => '00-x'", "22023", "field \"traceparent\"" },
        { "'t', tags => '[]'", "22023", "field \"tags\": is not an object" },
        { "'t', tags => '{\"a\": 1}'", "22023", "field \"tags\": \"a\" is not a string" },
        { "'t', tags => '{\"\": \"\"}'", "22023", "field \"tags\": a name" },
        { "'t', tags => (SELECT jsonb_object_agg(n, 'x') FROM generate_series(1, 17) n)", "22023",
          "field \"tags\": has more than 16" },
        { "'t', needs => '{gpu,a b}'", "22023", "field \"needs\": a name is not 1..64 letters" },
        { "'t', needs => ARRAY['gpu', NULL]", "22023", "field \"needs\": a name is not" },
        { "'t', needs => ARRAY[repeat('x', 65)]", "22023", "field \"needs\": a name is not" },
        { "'t', needs => ARRAY(SELECT 'n' || n FROM generate_series(1, 17) n)", "22023",
          "field \"needs\": has 17 names, limit 16" },
        { "'t', input => to_json(repeat('x', 1048576))", "54000",
          "field \"input\": is 1048578 bytes" },
        { "'t', input => '{'", "22P02", "json" },
        { "method => 'run'", "42883", "does not exist" },
    };
    pgf_open(&r, NULL);
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        EQ_STR(sql_fails(r.db, "SELECT pawl.submit(%s)", v[i].args), v[i].state);
        HAS_STR(sql_said(), v[i].text);
    }
    EQ_INT(in_inbox(), 0);
    /* One less is accepted. */
    sql_run(r.db, "SELECT pawl.submit(repeat('x', 255), id => repeat('é', 127) || 'x', priority => "
                  "1000, max_attempts => 1000, delay => '99 years', tags => (SELECT "
                  "jsonb_object_agg(n, 'x') FROM generate_series(1, 16) n))");
    sql_run(r.db, "SELECT pawl.submit('t', input => to_json(repeat('x', 1048574)))");
    pgf_sweep(&r);
    EQ_INT(in_inbox(), 0);
    pgf_close(&r);
}

/* ---- Submits do not wait --------------------------------------------------------------------- */

TEST(an_open_transaction_holds_up_nobody)
{
    pgf_open(&r, NULL);
    PGconn *holds = pgf_connect(&r, NULL), *other = pgf_connect(&r, NULL);
    sql_run(holds, "BEGIN; SELECT pawl.submit('t', id => 'x', key => 'k')");
    sql_run(other, "SET statement_timeout = '20s'"); /* the wait is detected */
    sql_run(other, "SELECT pawl.submit('t', id => 'x', key => 'k')");
    struct claim q = pgf_claim(&r, 10);
    EQ_INT(q.n, 1);
    struct call_spec s = pgf_plan("x");
    s.key = BYTES("k");
    TRUE(pgf_accept(&r, &s).duplicate);
    s.id = BYTES("y");
    FALSE(pgf_accept(&r, &s).duplicate);
    pgf_finish(&r, q.token, "x", END_RESULT);
    q = pgf_claim(&r, 10);
    EQ_INT(q.n, 1);
    pgf_finish(&r, q.token, "y", END_RESULT);
    pgf_sweep(&r);
    /* Cases beside this one wait for locks of their own, in other databases. */
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
                           " WHERE NOT granted AND datname = current_database()"),
           0);
    /* When it comes late, the id is a duplicate. */
    sql_run(holds, "COMMIT");
    EQ_INT(pgf_claim(&r, 10).n, 0);
    EQ_INT(in_inbox(), 0);
    PQfinish(holds);
    PQfinish(other);
    pgf_close(&r);
}

/* Two nodes look at the same time: each row is taken by one of them. */
TEST(two_nodes_share_the_inbox)
{
    struct pg_fixture second;
    pgf_open(&r, NULL);
    pgf_beside(&second, &r, NULL);
    PGconn *holds = pgf_connect(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'a'); SELECT pawl.submit('t', id => 'b')");
    sql_run(holds, "BEGIN; SELECT 1 FROM pawl.inbox WHERE id = 'a' FOR UPDATE");
    struct claim q = pgf_claim(&second, 10); /* the other one is being moved at this moment */
    EQ_INT(q.n, 1);
    TRUE(bytes_eq(q.calls[0].spec.id, BYTES("b")));
    sql_run(holds, "ROLLBACK");
    q = pgf_claim(&r, 10);
    EQ_INT(q.n, 1);
    TRUE(bytes_eq(q.calls[0].spec.id, BYTES("a")));
    PQfinish(holds);
    pgf_close(&second);
    pgf_close(&r);
}

/* A claim that is full does not look at the inbox again at once; the next claim that is not full
 * does. */
TEST(a_busy_node_still_sees_what_was_submitted)
{
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit('t') FROM generate_series(1, 4)");
    EQ_INT(pgf_claim(&r, 4).n, 4); /* full */
    sql_run(r.db, "SELECT pawl.submit('t', id => 'last')");
    struct claim q = pgf_claim(&r, 4);
    if (q.n == 0) {
        TRUE(q.more);
        q = pgf_claim(&r, 4);
    }
    EQ_INT(q.n, 1);
    pgf_close(&r);
}

/* Large inputs are moved in several steps, each of them limited. */
TEST(large_inputs_come_in_steps)
{
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit('t', input => to_json(repeat('x', 1000000))) "
                  "FROM generate_series(1, 40)");
    TRUE(pgf_sweep(&r).more);
    int64_t left = in_inbox();
    TRUE(left > 0 && left < 40);
    int steps = 1;
    while (pgf_sweep(&r).more)
        steps++;
    EQ_INT(in_inbox(), 0);
    EQ_INT(steps, 2);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.calls WHERE status = 'pending'"), 40);
    pgf_close(&r);
}

/* ---- Ids that are known ---------------------------------------------------------------------- */

TEST(a_duplicate_is_dropped_and_a_conflict_is_kept)
{
    struct call_spec s = pgf_plan("x");
    pgf_open(&r, NULL);
    s.input = (struct payload){ PAWL_JSON, BYTES("{\"a\":1,\"b\":[2]}") };
    pgf_accept(&r, &s);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'x', input => '{ \"b\": [2], \"a\": 1 }')");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'x', input => '{\"a\": 2}')");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'x', key => 'k')");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'y')"); /* the ones behind it go on */
    EQ_INT(pgf_claim(&r, 10).n, 2);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.inbox_conflicts WHERE id = 'x' "
                           "AND code = 'CONFLICT' AND refused_at >= created_at"),
           2);
    EQ_STR(sql_ask(r.db, "SELECT reason FROM pawl.inbox_conflicts LIMIT 1"),
           "call \"x\" already exists with other content");
    EQ_INT(in_inbox(), 2);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.calls"), 2);
    /* They are read once. */
    FALSE(pgf_sweep(&r).more);
    EQ_INT(sql_count(r.db, "SELECT count(DISTINCT refused_at) FROM pawl.inbox_conflicts"), 1);
    pgf_close(&r);
}

/* Rows that break the contract in a way that only the ledger detects, or that were inserted without
 * submit(). */
TEST(a_bad_row_stops_nobody)
{
    pgf_open(&r, NULL);
    sql_run(r.db, "INSERT INTO pawl.inbox (id, type, method, queue, form, priority, created_at) "
                  "VALUES ('bad', '', 'run', 'default', 0, 0, 0)");
    sql_run(r.db, "INSERT INTO pawl.inbox (id, type, method, queue, form, priority, created_at, "
                  "options) VALUES ('odd', 't', 'run', 'default', 0, 0, 0, '{\"x\": 1}')");
    sql_run(r.db, "INSERT INTO pawl.inbox (id, type, method, queue, form, priority, created_at, "
                  "tags) VALUES ('tag', 't', 'run', 'default', 0, 0, 0, '[')");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'deep', input => (repeat('[', 600) || "
                  "repeat(']', 600))::json)");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'good')");
    struct claim q = pgf_claim(&r, 10);
    EQ_INT(q.n, 1);
    TRUE(bytes_eq(q.calls[0].spec.id, BYTES("good")));
    EQ_STR(sql_ask(r.db, "SELECT string_agg(id || ' ' || code, ', ' ORDER BY n) "
                         "FROM pawl.inbox_conflicts"),
           "bad INVALID, odd BROKEN, tag BROKEN, deep INVALID");
    EQ_STR(sql_ask(r.db, "SELECT reason FROM pawl.inbox_conflicts WHERE id = 'bad'"),
           "field \"type\": is empty");
    pgf_close(&r);
}

/* A key may be full: the call stays in the inbox until an operator acts, and can then be moved. */
TEST(a_full_line_refuses)
{
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit('t', key => 'k') FROM generate_series(1, 101)");
    pgf_sweep(&r);
    EQ_STR(sql_ask(r.db, "SELECT code || ': ' || reason FROM pawl.inbox_conflicts"),
           "FULL: key \"k\": 100 calls pending, limit 100");
    pgf_claim(&r, 10);
    sql_run(r.db, "UPDATE pawl.inbox SET refused_at = NULL");
    pgf_sweep(&r);
    EQ_INT(in_inbox(), 0);
    pgf_close(&r);
}

TEST(what_was_refused_is_forgotten_in_time)
{
    struct op op = { .kind = OP_GC, .gc = { .max = 10 } };
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'x'); SELECT pawl.submit('u', id => 'x')");
    pgf_sweep(&r);
    pgf_do(&r, &op);
    EQ_INT(in_inbox(), 1);
    sql_run(r.db, "UPDATE pawl.inbox SET refused_at = refused_at - %lld",
            (long long)FIXTURE_RETENTION_US);
    pgf_do(&r, &op);
    EQ_INT(in_inbox(), 0);
    pgf_close(&r);
}

/* ---- Strict ---------------------------------------------------------------------------------- */

TEST(strict_finds_what_is_there)
{
    struct call_spec s = pgf_plan("x");
    pgf_open(&r, NULL);
    s.input = (struct payload){ PAWL_JSON, BYTES("{\"a\":1,\"b\":[2, \"\xc3\xa9\"]}") };
    pgf_accept(&r, &s);
    EQ_STR(sql_ask(r.db, "SELECT pawl.submit('t', id => 'x', strict => true, "
                         "input => ' {\"b\": [2,\"é\"], \"a\": 1 } ')"),
           "x");
    EQ_INT(in_inbox(), 0); /* nothing to do */
    static const char *const others[] = {
        "'u', id => 'x', input => '{\"a\": 1, \"b\": [2, \"é\"]}'",
        "'t', 'm', id => 'x', input => '{\"a\": 1, \"b\": [2, \"é\"]}'",
        "'t', id => 'x', key => 'k', input => '{\"a\": 1, \"b\": [2, \"é\"]}'",
        "'t', id => 'x', input => '{\"a\": 1.0, \"b\": [2, \"é\"]}'",
        "'t', id => 'x', input => '{\"a\": 1, \"b\": [\"é\", 2]}'",
        "'t', id => 'x'",
        "'t', id => 'x', input_bytes => ''",
    };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        EQ_STR(sql_fails(r.db, "SELECT pawl.submit(%s, strict => true)", others[i]), "23505");
        EQ_STR(sql_said(), "call \"x\" already exists with other content");
    }
    EQ_INT(in_inbox(), 0);
    /* Calls in the inbox count too, the transaction's own included. */
    sql_run(r.db, "BEGIN; SELECT pawl.submit('t', id => 'y', strict => true)");
    EQ_STR(sql_ask(r.db, "SELECT pawl.submit('t', id => 'y', strict => true)"), "y");
    EQ_STR(sql_fails(r.db, "SELECT pawl.submit('u', id => 'y', strict => true)"), "23505");
    sql_run(r.db, "ROLLBACK; SELECT pawl.submit('u', id => 'y', strict => true)");
    EQ_STR(sql_fails(r.db, "SELECT pawl.submit('t', id => 'y', strict => true)"), "23505");
    EQ_INT(in_inbox(), 1);
    pgf_close(&r);
}

TEST(strict_knows_what_is_gone)
{
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'x', keep => '0')");
    struct claim q = pgf_claim(&r, 1);
    pgf_finish(&r, q.token, "x", END_RESULT);
    EQ_INT(sql_count(r.db, "SELECT pawl.cleanup_expired()"), 1);
    EQ_INT(pgf_gc(&r).removed, 1);
    EQ_STR(sql_fails(r.db, "SELECT pawl.submit('t', id => 'x', strict => true)"), "23505");
    EQ_STR(sql_said(), "call \"x\" has ended and is no longer kept");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'z')");
    q = pgf_claim(&r, 1);
    pgf_finish(&r, q.token, "z", END_RESULT);
    EQ_INT(sql_count(r.db, "SELECT pawl.archive('0')"), 1);
    EQ_INT(pgf_gc(&r).removed, 1);
    EQ_STR(sql_fails(r.db, "SELECT pawl.submit('t', id => 'z', strict => true)"), "23505");
    EQ_STR(sql_said(), "call \"z\" has ended and was archived: pawl get --archived reads it");
    /* Without it, the move detects it. */
    sql_run(r.db, "SELECT pawl.submit('t', id => 'x')");
    pgf_sweep(&r);
    EQ_STR(sql_ask(r.db, "SELECT code FROM pawl.inbox_conflicts"), "GONE");
    pgf_close(&r);
}

/* Two submits of one id run one after the other; neither waits longer than its timeout, and nothing
 * else waits. */
TEST(strict_takes_turns_and_has_a_limit)
{
    pgf_open(&r, NULL);
    PGconn *first = pgf_connect(&r, NULL), *second = pgf_connect(&r, NULL);
    sql_run(first, "BEGIN; SELECT pawl.submit('t', id => 'x', strict => true)");
    sql_run(second, "SET lock_timeout = '10ms'");
    EQ_STR(sql_fails(second, "SELECT pawl.submit('u', id => 'x', strict => true)"), "55P03");
    EQ_STR(sql_ask(second, "SHOW lock_timeout"), "10ms");
    sql_run(second, "SET lock_timeout = 0");
    EQ_STR(sql_fails(second, "SELECT pawl.submit('u', id => 'x', strict => true)"), "55P03");
    EQ_STR(sql_ask(second, "SHOW lock_timeout"), "0");
    sql_run(second, "SELECT pawl.submit('t', id => 'x')");
    sql_run(second, "SELECT pawl.submit('t', id => 'y', strict => true)");
    struct call_spec s = pgf_plan("x");
    TRUE(pgf_accept(&r, &s).status == PAWL_OK);
    sql_run(first, "COMMIT");
    EQ_STR(sql_fails(second, "SELECT pawl.submit('u', id => 'x', strict => true)"), "23505");
    PQfinish(first);
    PQfinish(second);
    pgf_close(&r);
}

/* ---- Notify ---------------------------------------------------------------------------------- */

/* How many notifications have arrived when the server has answered; the payload of the last one. */
static int hints(PGconn *db, char payload[100])
{
    int n = 0;
    PGnotify *it;
    sql_run(db, "SELECT 1");
    while ((it = PQnotifies(db))) {
        snprintf(payload, 100, "%s", it->extra);
        PQfreemem(it);
        n++;
    }
    return n;
}

TEST(notify_tells_once_and_on_commit)
{
    char payload[100] = "";
    pgf_open(&r, NULL);
    PGconn *node = pgf_connect(&r, NULL);
    EQ_STR(sql_ask(r.db, "SELECT pawl.channel()"), "pawl_pawl");
    sql_run(node, "LISTEN pawl_pawl");
    sql_run(r.db, "SELECT pawl.submit('t')");
    EQ_INT(hints(node, payload), 0);
    sql_run(r.db, "BEGIN; SELECT pawl.submit('t', notify => true) FROM generate_series(1, 100)");
    EQ_INT(hints(node, payload), 0);
    sql_run(r.db, "COMMIT");
    EQ_INT(hints(node, payload), 1);
    EQ_STR(payload, "inbox");
    sql_run(r.db, "BEGIN; SELECT pawl.submit('t', notify => true); ROLLBACK");
    EQ_INT(hints(node, payload), 0);
    PQfinish(node);
    pgf_close(&r);
}

/* ---- Two schemas ----------------------------------------------------------------------------- */

TEST(two_schemas_know_nothing_of_each_other)
{
    struct pg_fixture b;
    char payload[100];
    struct call c;
    pgf_open(&r, NULL);
    pgf_beside(&b, &r, "Other_1");
    PGconn *node = pgf_connect(&r, NULL);
    EQ_STR(sql_ask(r.db, "SELECT \"Other_1\".channel()"), "pawl_Other_1");
    sql_run(node, "LISTEN \"pawl_Other_1\"");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'x', notify => true, strict => true)");
    EQ_INT(hints(node, payload), 0);
    sql_run(r.db, "SELECT \"Other_1\".submit('u', id => 'x', notify => true, strict => true)");
    EQ_INT(hints(node, payload), 1);
    EQ_STR(sql_ask(r.db, "SELECT string_agg(type, ',') FROM \"Other_1\".calls"), "u");
    EQ_STR(sql_ask(r.db, "SELECT string_agg(type, ',') FROM pawl.calls"), "t");
    struct claim q = pgf_claim(&b, 10);
    EQ_INT(q.n, 1);
    TRUE(bytes_eq(q.calls[0].spec.type, BYTES("u")));
    EQ_STATUS(pgf_get(&r, "x", &c), PAWL_NOT_FOUND, NULL); /* still in its inbox */
    pgf_finish(&b, q.token, "x", END_RESULT);
    EQ_INT(sql_count(r.db, "SELECT \"Other_1\".archive('0')"), 1);
    EQ_INT(pgf_gc(&b).removed, 1);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM \"Other_1\".archive"), 1);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.archive"), 0);
    /* No function's text contains the other schema's name. */
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM (SELECT p.oid FROM pg_proc p JOIN pg_namespace n "
                           "ON n.oid = p.pronamespace WHERE n.nspname = 'Other_1' OFFSET 0) p "
                           "WHERE pg_get_functiondef(p.oid) ~ '\\mpawl\\.'"),
           0);
    PQfinish(node);
    pgf_close(&b);
    pgf_close(&r);
}

/* The printed script makes the same schema: nothing is due on a database that was made by hand. */
TEST(the_printed_steps_make_the_same)
{
    struct steps steps;
    struct schema schema;
    pgf_open(&r, NULL);
    struct store_conf conf = { .url = r.url, .schema = "By_hand" };
    struct store *s = NULL;
    OK(store_steps(&conf, &r.a, &steps, &r.err), &r.err);
    for (size_t i = 0; i < steps.n; i++) {
        PGresult *done = PQexec(r.db, steps.v[i].expand);
        if (PQresultStatus(done) != PGRES_COMMAND_OK)
            FAIL("step %d: %s", steps.v[i].number, PQerrorMessage(r.db));
        PQclear(done);
    }
    OK(store_open(&conf, &s, &r.err), &r.err);
    OK(store_schema(s, &schema, &r.err), &r.err);
    EQ_INT(schema.version, schema.wanted);
    OK(store_migrate(s, true, &r.err), &r.err);
    sql_run(r.db, "SELECT \"By_hand\".submit('t')");
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM \"By_hand\".calls"), 1);
    store_close(s);
    pgf_close(&r);
}

/* ---- With a process that runs calls ---------------------------------------------------------- */

static int twice(struct pawl_call *c)
{
    int64_t n;
    if (pawl_input_int(c, &n))
        return pawl_refuse(c, "input must be a whole number");
    return pawl_reply_int(c, 2 * n);
}

/* The call's result, once it has ended. */
static const char *result_of(const char *id)
{
    const char *result = "";
    while (!*result) /* the case's deadline ends the wait */
        result = sql_ask(r.db,
                         "SELECT coalesce(result, status) FROM pawl.calls WHERE id = '%s' AND "
                         "status NOT IN ('pending', 'processing')",
                         id);
    return result;
}

TEST(what_is_submitted_runs)
{
    struct pawl *p;
    pgf_open(&r, NULL);
    struct pawl_options options = { PAWL_OPTIONS_INIT, .db = r.url };
    OK(pawl_open(&options, &p, &r.err), &r.err);
    OK(pawl_on(pawl_program(p), "twice", "run", twice), NULL);
    OK(pawl_start(p, NULL, &r.err), &r.err);
    sql_run(r.db, "SELECT pawl.submit('twice', id => 'a', input => '21')");
    EQ_STR(result_of("a"), "42");
    sql_run(r.db,
            "SELECT pawl.submit('twice', id => 'b', input => '4', key => 'k', notify => true);"
            "SELECT pawl.submit('twice', id => 'c', input => '5', key => 'k', notify => true)");
    EQ_STR(result_of("c"), "10");
    EQ_STR(result_of("b"), "8");
    EQ_STR(sql_ask(r.db,
                   "SELECT (b.finished_at <= c.started_at)::text FROM pawl.calls b, pawl.calls c "
                   "WHERE b.id = 'b' AND c.id = 'c'"),
           "true");
    pawl_close(p);
    pgf_close(&r);
}
