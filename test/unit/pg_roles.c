/*
 * pg_roles.c - roles that try to get more than they were granted, with real accounts: through
 * functions that match better than Pawl's own, through triggers, and with what older versions
 * granted.
 *
 * `submit` and similar functions run with the rights of the schema's owner. Invariant: they never
 * call anything that another role created.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "engines.h"
#include "pg_fixture.h"

RUNS_ON_ENGINE("postgres")

static struct pg_fixture r;

static const char *role(const char *name)
{
    sql_run(r.db, "CREATE ROLE %s LOGIN", name);
    return name;
}

static void grant(const struct roles *roles)
{
    const char *text;
    struct store_conf conf = { .url = r.url, .schema = r.schema };
    OK(store_grants(&conf, roles, &r.a, &text, &r.err), &r.err);
    OK(store_grant(r.s, text, &r.err), &r.err);
}

/* What `migrate grants` printed for an admin up to schema step 6. */
static void grant_as_before(const char *admin)
{
    sql_run(r.db,
            "GRANT USAGE, CREATE ON SCHEMA pawl TO %1$s;"
            "GRANT ALL ON ALL TABLES IN SCHEMA pawl TO %1$s;"
            "GRANT ALL ON ALL SEQUENCES IN SCHEMA pawl TO %1$s;"
            "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA pawl TO %1$s",
            admin);
}

/* ---- Two ways to gain rights ----------------------------------------------------------------- */

static const char better_match[] =
    "CREATE FUNCTION pawl.check_number(text, integer, integer, integer) RETURNS void "
    "LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'GRANT pawl TO ' || session_user; END $$";
static const char trap[] = "CREATE FUNCTION own.trap() RETURNS trigger LANGUAGE plpgsql AS "
                           "$$ BEGIN EXECUTE 'GRANT pawl TO ' || session_user; RETURN new; END $$";
static const char trigger[] =
    "CREATE TRIGGER trap BEFORE INSERT ON pawl.inbox FOR EACH ROW EXECUTE FUNCTION own.trap()";

static bool owns_everything(const char *name)
{
    return strcmp(sql_ask(r.db, "SELECT pg_has_role('%s', 'pawl', 'MEMBER')::text", name),
                  "true") == 0;
}

TEST(an_admin_adds_no_function)
{
    pgf_open_alone(&r, NULL);
    const char *admin = role("admin");
    sql_run(r.db, "CREATE SCHEMA own AUTHORIZATION %s", admin);
    grant(&(struct roles){ .admin = admin });
    PGconn *db = pgf_connect(&r, admin);
    EQ_STR(sql_fails(db, "%s", better_match), "42501");
    static const char *const forbidden[] = {
        "CREATE TABLE pawl.own (x int)",
        "CREATE TABLE own.child (seq bigint REFERENCES pawl.call (seq))",
        "CREATE RULE own AS ON INSERT TO pawl.inbox DO ALSO NOTIFY x",
        "TRUNCATE pawl.inbox",
        "ALTER TABLE pawl.inbox ADD COLUMN x int",
        "CREATE OR REPLACE FUNCTION pawl.refuse(text, text) RETURNS void LANGUAGE sql AS ''",
        "DROP FUNCTION pawl.hint_nodes()",
        "SELECT setval('pawl.seq', 1)",
    };
    for (size_t i = 0; i < COUNT_OF(forbidden); i++)
        EQ_STR(sql_fails(db, "%s", forbidden[i]), "42501");
    sql_run(db, "SELECT pawl.submit('t')");
    FALSE(owns_everything(admin));
    PQfinish(db);
    pgf_close(&r);
}

TEST(an_admin_adds_no_trigger)
{
    pgf_open_alone(&r, NULL);
    const char *admin = role("admin");
    sql_run(r.db, "CREATE SCHEMA own AUTHORIZATION %s", admin);
    grant(&(struct roles){ .admin = admin });
    PGconn *db = pgf_connect(&r, admin);
    sql_run(db, "%s", trap);
    EQ_STR(sql_fails(db, "%s", trigger), "42501");
    sql_run(db, "SELECT pawl.submit('t')");
    FALSE(owns_everything(admin));
    PQfinish(db);
    pgf_close(&r);
}

/* The function was created while that was allowed: it is never called. */
TEST(a_better_match_that_is_there_is_not_called)
{
    pgf_open_alone(&r, NULL);
    const char *admin = role("admin");
    grant_as_before(admin);
    PGconn *db = pgf_connect(&r, admin);
    sql_run(db, "%s", better_match);
    sql_run(db, "SELECT pawl.submit('t')");
    FALSE(owns_everything(admin));
    PQfinish(db);
    pgf_close(&r);
}

/* The same for every function that another one calls, with every type that a literal may become. */
TEST(no_overload_is_ever_called)
{
    static const char *const overloads[] = {
        "refuse(varchar, varchar)",
        "refuse(name, text)",
        "refuse(text, name)",
        "refuse(anyelement, anyelement)",
        "refuse(VARIADIC text[])",
        "has_control(varchar)",
        "has_control(name)",
        "has_control(anyelement)",
        "check_name(text, name)",
        "check_name(varchar, varchar)",
        "check_name(name, name)",
        "check_name(anyelement, anyelement)",
        "check_number(text, integer, integer, integer)",
        "check_number(varchar, numeric, integer, integer)",
        "check_number(text, numeric, integer, integer)",
        "check_number(text, bigint, bigint, bigint)",
        "check_number(text, anyelement, anyelement, anyelement)",
        "check_seconds(text, numeric, integer)",
        "check_seconds(text, double precision, integer)",
        "check_seconds(varchar, numeric, numeric)",
        "check_seconds(text, anyelement, integer)",
        "check_moment(varchar, timestamptz)",
        "check_moment(text, anyelement)",
        "check_trace(varchar)",
        "check_trace(anyelement)",
        "check_tags(json)",
        "check_tags(anyelement)",
        "check_backoff(json)",
        "check_backoff(anyelement)",
        "check_needs(anyarray)",
        "check_needs(anyelement)",
        "schedule_row(varchar, varchar, json)",
        "schedule_row(name, name, json)",
        "schedule_row(text, anyelement, json)",
        "schedule_row(text, text, jsonb)",
        "schedule_row(text, text, anyelement)",
        "new_id(integer)",
        "new_id(anyelement)",
        "known(record)",
        "known(anyelement)",
        "same_input(bigint, bytea, bigint, bytea)",
        "same_input(integer, anyelement, integer, anyelement)",
        "plain_json(jsonb)",
        "plain_json(anyelement)",
        "archive_copy(anyarray, bigint)",
        "held(anyelement)",
        "moment(anyelement)",
        "state_name(anyelement)",
    };
    pgf_open_alone(&r, NULL);
    const char *admin = role("admin");
    grant_as_before(admin);
    PGconn *db = pgf_connect(&r, admin);
    for (size_t i = 0; i < COUNT_OF(overloads); i++)
        sql_run(db,
                "CREATE FUNCTION pawl.%s RETURNS bigint LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'called'; END $$",
                overloads[i]);
    sql_run(db, "SELECT pawl.submit(type => 't', id => 'x', key => 'k', delay => '1 ms', "
                "expires_in => '1 h', timeout => '1 s', keep => '1 h', caller => 'c', "
                "traceparent => '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01', "
                "tags => '{\"a\": \"b\"}', notify => true, strict => true, input => '{\"a\": [1]}',"
                "backoff => '{\"base\": 1, \"factor\": 2, \"max\": 3, \"jitter\": 0.5}');"
                "SELECT pawl.submit('t', id => 'y', run_at => now(), expires_at => now() + '1 h');"
                "SELECT pawl.submit('t', id => 'z', needs => '{gpu}')");
    EQ_STR(sql_fails(db, "SELECT pawl.submit('t', id => 'x', strict => true, key => 'k', "
                         "input => '{\"a\": [2]}')"),
           "23505");
    static const char *const wrong[] = {
        "NULL",
        "''",
        "'t', priority => 1001",
        "'t', key => E'\\t'",
        "'t', delay => '-1 s'",
        "'t', run_at => 'infinity'",
        "'t', tags => '[]'",
        "'t', tags => '{\"a\": 1}'",
        "'t', backoff => '{\"x\": 1}'",
        "'t', backoff => '{\"base\": \"1\"}'",
        "'t', traceparent => 'x'",
        "'t', on_dead => 'x'",
        "'t', input => '1', input_bytes => ''",
        "'t', needs => '{NULL}'",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        EQ_STR(sql_fails(db, "SELECT pawl.submit(%s)", wrong[i]), "22023");
    sql_run(db, "SELECT pawl.schedule('s', '{\"every\": 3600}'); SELECT pawl.unschedule('s')");
    EQ_STR(sql_fails(db, "SELECT pawl.schedule('s', NULL)"), "22023");
    struct claim q = pgf_claim(&r, 10);
    EQ_INT(q.n, 2);
    EQ_INT(sql_count(db, "SELECT pawl.requeue_stuck('0')"), 2);
    pgf_sweep(&r);
    q = pgf_claim(&r, 1); /* a call that was lost is claimed by itself */
    EQ_INT(q.n, 1);
    pgf_finish(&r, q.token, arena_text(&r.a, q.calls[0].spec.id), END_RESULT);
    EQ_INT(sql_count(db, "SELECT pawl.archive('0')"), 1);
    sql_run(db, "SELECT pawl.cleanup_expired(); SELECT * FROM pawl.calls");
    EQ_STR(sql_fails(db, "SELECT pawl.archive(NULL)"), "22023");
    EQ_STR(sql_fails(db, "SELECT pawl.requeue_stuck(NULL)"), "22023");
    /* A function whose further arguments have defaults makes the call ambiguous: an error, not a
     * call. */
    sql_run(db, "CREATE FUNCTION pawl.hint_nodes(integer DEFAULT 0) RETURNS void LANGUAGE sql "
                "AS ''");
    PGconn *next = pgf_connect(&r, admin); /* a session caches what it has resolved */
    EQ_STR(sql_fails(next, "SELECT pawl.submit('t', notify => true)"), "42725");
    PQfinish(next);
    PQfinish(db);
    pgf_close(&r);
}

/* ---- Grants of older versions ---------------------------------------------------------------- */

TEST(grants_take_back_what_older_ones_gave)
{
    static const char rights[] =
        "SELECT concat_ws(',', has_schema_privilege('%1$s', 'pawl', 'CREATE'), "
        "bool_or(has_table_privilege('%1$s', c.oid, 'TRIGGER, TRUNCATE, REFERENCES')), "
        "bool_or(c.relkind = 'S' AND has_sequence_privilege('%1$s', c.oid, 'UPDATE'))) "
        "FROM pg_class c WHERE c.relnamespace = 'pawl'::regnamespace "
        "AND c.relkind IN ('r', 'v', 'S')";
    pgf_open_alone(&r, NULL);
    const char *admin = role("admin");
    grant_as_before(admin);
    EQ_STR(sql_ask(r.db, rights, admin), "t,t,t");
    grant(&(struct roles){ .admin = admin });
    EQ_STR(sql_ask(r.db, rights, admin), "f,f,f");
    PGconn *db = pgf_connect(&r, admin);
    EQ_STR(sql_fails(db, "%s", better_match), "42501");
    sql_run(db, "SELECT pawl.submit('t'); INSERT INTO pawl.queue VALUES ('q', 1); "
                "UPDATE pawl.queue SET paused = 0; DELETE FROM pawl.queue; SELECT nextval("
                "'pawl.seq')");
    PQfinish(db);
    pgf_close(&r);
}

/* Revoking from the owner would leave a schema that no role can migrate. */
TEST(grants_leave_the_owner_alone)
{
    const char *text;
    pgf_open_alone(&r, NULL);
    struct store_conf conf = { .url = r.url };
    struct roles roles = { .admin = "pawl" };
    OK(store_grants(&conf, &roles, &r.a, &text, &r.err), &r.err);
    TRUE(store_grant(r.s, text, &r.err) != PAWL_OK);
    HAS_STR(r.err.text, "role \"pawl\" owns schema \"pawl\"");
    EQ_STR(sql_ask(r.db, "SELECT has_schema_privilege('pawl', 'pawl', 'CREATE')::text"), "true");
    pgf_close(&r);
}

TEST(the_doctor_names_what_others_left)
{
    struct findings f;
    pgf_open_alone(&r, NULL);
    const char *admin = role("admin");
    OK(store_doctor(r.s, &r.a, &f, &r.err), &r.err);
    for (size_t i = 0; i < f.n; i++)
        TRUE(strcmp(f.v[i].name, "stranger") != 0);
    sql_run(r.db, "CREATE SCHEMA own AUTHORIZATION %s", admin);
    grant_as_before(admin);
    PGconn *db = pgf_connect(&r, admin);
    sql_run(db, "%s; %s; %s", better_match, trap, trigger);
    size_t seen = 0;
    OK(store_doctor(r.s, &r.a, &f, &r.err), &r.err);
    for (size_t i = 0; i < f.n; i++) {
        if (strcmp(f.v[i].name, "stranger") != 0)
            continue;
        EQ_INT(f.v[i].level, FINDING_WARN);
        HAS_STR(f.v[i].text, seen++
                                 ? "trigger \"trap\" on pawl.inbox"
                                 : "function pawl.check_number(text, integer, integer, integer)");
    }
    EQ_INT(seen, 2);
    PQfinish(db);
    pgf_close(&r);
}

/* Findings of this name; the last one is returned. */
static int findings(const char *name, struct finding *last)
{
    struct findings f;
    int n = 0;
    OK(store_doctor(r.s, &r.a, &f, &r.err), &r.err);
    for (size_t i = 0; i < f.n; i++)
        if (strcmp(f.v[i].name, name) == 0) {
            *last = f.v[i];
            n++;
        }
    return n;
}

/* An upgrade revokes nothing: the next `migrate grants` does, and doctor must report it. */
TEST(the_doctor_names_who_may_still_add)
{
    struct finding f;
    char command[120];
    pgf_open_alone(&r, NULL);
    const char *admin = role("admin");
    EQ_INT(findings("grants", &f), 0);
    grant_as_before(admin);
    EQ_INT(findings("grants", &f), 1);
    EQ_INT(f.level, FINDING_WARN);
    snprintf(command, sizeof command, "role \"%s\" has CREATE on schema pawl", admin);
    HAS_STR(f.text, command);
    snprintf(command, sizeof command, "pawl migrate grants --admin %s ", admin);
    HAS_STR(f.text, command);
    grant(&(struct roles){ .admin = admin });
    EQ_INT(findings("grants", &f), 0);
    sql_run(r.db, "GRANT TRIGGER ON pawl.inbox TO %s", admin);
    EQ_INT(findings("grants", &f), 1);
    HAS_STR(f.text, "has TRIGGER on table pawl.inbox");
    grant(&(struct roles){ .admin = admin });
    EQ_INT(findings("grants", &f), 0);
    sql_run(r.db, "GRANT CREATE ON SCHEMA pawl TO PUBLIC");
    EQ_INT(findings("grants", &f), 1);
    HAS_STR(f.text, "every role has CREATE on schema pawl");
    pgf_close(&r);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Only the owner applies steps, and the admin can use what they create without further grants. */
TEST(an_admin_is_told_who_brings_the_schema_up_to_date)
{
    struct store *s = NULL;
    pgf_open_alone(&r, NULL);
    const char *admin = role("admin");
    grant(&(struct roles){ .admin = admin });
    int64_t last = sql_count(r.db, "SELECT max(number) FROM pawl.migration");
    sql_run(r.db, "DELETE FROM pawl.migration WHERE number = %lld", (long long)last);
    char *url = arena_printf(&r.a, "%s&user=%s", r.url, admin);
    OK(store_open(&(struct store_conf){ .url = url }, &s, &r.err), &r.err);
    EQ_STATUS(store_migrate(s, false, &r.err), PAWL_INVALID, &r.err);
    HAS_STR(r.err.text, "run pawl migrate up as its owner");
    store_close(s);
    sql_run(r.db, "CREATE TABLE pawl.later (x int)");
    PGconn *db = pgf_connect(&r, admin);
    sql_run(db, "INSERT INTO pawl.later VALUES (1); DELETE FROM pawl.later");
    EQ_STR(sql_fails(db, "TRUNCATE pawl.later"), "42501");
    PQfinish(db);
    pgf_close(&r);
}

/* An application cannot have rows that it may not see passed to its own function. */
TEST(a_search_path_shows_no_others_calls)
{
    pgf_open_alone(&r, NULL);
    const char *app = role("app");
    grant(&(struct roles){ .app = app });
    sql_run(r.db, "CREATE SCHEMA mine AUTHORIZATION %s", app);
    PGconn *db = pgf_connect(&r, app);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'foreign')");
    sql_run(db, "SELECT pawl.submit('t', id => 'own')");
    EQ_INT(pgf_claim(&r, 2).n, 2); /* one lease has both */
    sql_run(db, "CREATE FUNCTION mine.octet_length(bytea) RETURNS integer LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'seen'; END $$; "
                "SET search_path = mine, pg_catalog");
    EQ_STR(sql_ask(db, "SELECT string_agg(id, ',') FROM pawl.own_calls"), "own");
    PQfinish(db);
    pgf_close(&r);
}
