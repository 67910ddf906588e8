/*
 * mysql_roles.c - `migrate grants` on MariaDB with real accounts: each can do its work and no more.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <mariadb/mysql.h>
#include <mariadb/mysqld_error.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "check.h"
#include "db_server.h"
#include "engines.h"
#include "fixture.h"
#include "store/store.h"

RUNS_ON_ENGINE("mariadb")

static struct arena a;
static struct pawl_err err;
static const char *owner_url;

/* The same database with another account, whose password is its name. */
static char *url_as(const char *name)
{
    const char *rest = strchr(owner_url, '@');
    TRUE(rest != NULL);
    return arena_printf(&a, "mysql://%s:%s%s", name, name, rest);
}

/* A server of the case's own, a database with the tables of `schema`, and an owner that may grant.
 */
static void begin(const char *schema)
{
    struct store *s = NULL;
    arena_init(&a, 16 << 20);
    db_start_own(&db_mariadb);
    const char *url = db_database(&db_mariadb);
    owner_url = url;
    db_ask(&db_mariadb, arena_printf(&a,
                                     "CREATE USER owner@'127.0.0.1' IDENTIFIED BY 'owner';"
                                     "GRANT ALL ON `%s`.* TO owner@'127.0.0.1' WITH GRANT OPTION",
                                     strrchr(url, '/') + 1));
    owner_url = url_as("owner");
    OK(store_open(&(struct store_conf){ .url = owner_url, .schema = schema }, &s, &err), &err);
    OK(store_migrate(s, true, &err), &err);
    store_close(s);
}

static const char *account(const char *name)
{
    db_ask(&db_mariadb,
           arena_printf(&a, "CREATE USER %1$s@'127.0.0.1' IDENTIFIED BY '%1$s'", name));
    return arena_printf(&a, "%s@127.0.0.1", name);
}

static enum pawl_status grant(const char *schema, const struct roles *roles)
{
    const char *text = NULL;
    struct store *s = NULL;
    struct store_conf conf = { .url = owner_url, .schema = schema };
    OK(store_grants(&conf, roles, &a, &text, &err), &err);
    OK(store_open(&conf, &s, &err), &err);
    enum pawl_status st = store_grant(s, text, &err);
    if (st == PAWL_OK)
        st = store_grant(s, text, &err); /* running it again does no harm */
    store_close(s);
    return st;
}

/* ---- Plain SQL as an account ----------------------------------------------------------------- */

static MYSQL *connected(const char *name)
{
    unsigned port = 0;
    char database[100];
    EQ_INT(sscanf(strrchr(owner_url, ':'), ":%u/%99s", &port, database), 2);
    MYSQL *db = mysql_init(NULL);
    if (!mysql_real_connect(db, "127.0.0.1", name, name, database, port, NULL, 0))
        FAIL("no connection as %s: %s", name, mysql_error(db));
    return db;
}

static void does(MYSQL *db, const char *sql)
{
    if (mysql_query(db, sql))
        FAIL("%s: %s", sql, mysql_error(db));
    mysql_free_result(mysql_store_result(db));
}

/* Fails because of a missing right, and for no other reason. */
static void may_not(MYSQL *db, const char *sql)
{
    if (!mysql_query(db, sql)) {
        mysql_free_result(mysql_store_result(db));
        FAIL("%s: was done", sql);
    }
    unsigned code = mysql_errno(db);
    if (code != ER_TABLEACCESS_DENIED_ERROR && code != ER_COLUMNACCESS_DENIED_ERROR &&
        code != ER_DBACCESS_DENIED_ERROR)
        FAIL("%s: %s", sql, mysql_error(db));
}

static void may_none(MYSQL *db, const char *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        may_not(db, v[i]);
}

/* ---- The application ------------------------------------------------------------------------- */

static int twice(struct pawl_call *c)
{
    int64_t n;
    if (pawl_input_int(c, &n))
        return pawl_refuse(c, "input must be a whole number");
    return pawl_reply_int(c, 2 * n);
}

static struct pawl *open_as(const char *url, const char *node)
{
    struct pawl *p = NULL;
    struct pawl_options o = { PAWL_OPTIONS_INIT, .db = url, .node = node };
    OK(pawl_open(&o, &p, &err), &err);
    return p;
}

static struct pawl *node_as(const char *url)
{
    struct pawl *p = open_as(url, "node");
    OK(pawl_on(pawl_program(p), "twice", "run", twice), NULL);
    OK(pawl_start(p, NULL, &err), &err);
    return p;
}

static bool submitted(struct pawl *p, struct pawl_spec s)
{
    struct pawl_receipt receipt;
    s.size = sizeof s;
    s.type = s.type ? s.type : "twice";
    s.input = PAWL_TEXT("21");
    OK(pawl_submit(p, &s, 1, 0, &receipt, &err), &err);
    return !receipt.duplicate;
}

static void ends_with(struct pawl *p, const char *id, const char *result)
{
    struct pawl_shown *shown = NULL;
    OK(pawl_get(p, id, 60 * INT64_C(1000000), &shown, &err), &err);
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_INT(v->state, PAWL_COMPLETED);
    EQ_BYTES(v->result.data, v->result.len, result, strlen(result));
    pawl_shown_free(shown);
}

TEST(an_application_submits_with_the_library, .deadline_s = 120)
{
    begin(NULL);
    struct roles roles = { .app = account("app") };
    OK(grant(NULL, &roles), &err);
    struct pawl *app = open_as(url_as("app"), "app");
    struct pawl_tag tags[] = { { "tenant", "4" } };
    TRUE(submitted(app, (struct pawl_spec){ .id = "a" }));
    FALSE(submitted(app, (struct pawl_spec){ .id = "a" }));
    TRUE(submitted(app, (struct pawl_spec){ .id = "k1", .key = "k" }));
    TRUE(submitted(app, (struct pawl_spec){ .id = "k2", .key = "k" }));
    TRUE(submitted(app, (struct pawl_spec){ .id = "later", .key = "k", .delay_us = 200000 }));
    TRUE(submitted(app, (struct pawl_spec){ .id = "all",
                                            .queue = "q",
                                            .parent = "a",
                                            .caller = "me",
                                            .tags = tags,
                                            .n_tags = 1,
                                            .expires_in_us = INT64_C(3600000000) }));
    struct pawl *node = node_as(owner_url);
    ends_with(app, "a", "42");
    ends_with(app, "k2", "42");
    ends_with(app, "later", "42");
    ends_with(app, "all", "42");
    TRUE(submitted(app, (struct pawl_spec){ .id = "k3", .key = "k" })); /* its row exists now */
    ends_with(app, "k3", "42");
    pawl_close(node);
    pawl_close(app);

    static const char *const forbidden[] = {
        "UPDATE pawl_outcome SET status = 4",
        "DELETE FROM pawl_outcome",
        "INSERT INTO pawl_outcome (seq, status) VALUES (1, 3)",
        "UPDATE pawl_call SET client = 'another'",
        "DELETE FROM pawl_call",
        "DELETE FROM pawl_ready",
        "DELETE FROM pawl_id",
        "INSERT INTO pawl_lease (token) VALUES ('x')",
        "INSERT INTO pawl_cancel VALUES (1, 1)",
        "UPDATE pawl_object SET version = 1",
        "INSERT INTO pawl_queue VALUES ('q', 1)",
        "UPDATE pawl_node SET dead = 1",
        "SELECT 1 FROM pawl_archive",
        "DELETE FROM pawl_migration",
        "CREATE TABLE pawl_own (x INT)",
        "CREATE TRIGGER own BEFORE INSERT ON pawl_call FOR EACH ROW SET @x = 1",
        "ALTER TABLE pawl_call ADD COLUMN x INT",
        "DROP TABLE pawl_call",
        "TRUNCATE TABLE pawl_call",
    };
    MYSQL *db = connected("app");
    may_none(db, forbidden, COUNT_OF(forbidden));
    mysql_close(db);
    arena_release(&a);
}

struct heard {
    atomic_int sweeps;
};

static void hear(const struct log_record *r, void *ctx)
{
    struct heard *h = ctx;
    if (strncmp(r->message, "sweep: ", 7) == 0)
        atomic_fetch_add(&h->sweeps, 1);
}

/* Housekeeping is for nodes: a process that may only submit logs once that it may not, and stops
 * trying. */
TEST(an_application_leaves_housekeeping_to_nodes)
{
    struct heard h = { 0 };
    struct pawl *app = NULL;
    begin(NULL);
    struct roles roles = { .app = account("app") };
    OK(grant(NULL, &roles), &err);
    log_sink_set(hear, &h);
    struct pawl_options o = { PAWL_OPTIONS_INIT, .db = url_as("app"),
                              .reclaim_interval_us = 20000 };
    OK(pawl_open(&o, &app, &err), &err);
    TRUE(submitted(app, (struct pawl_spec){ .id = "x", .expires_in_us = 1 }));
    while (!atomic_load(&h.sweeps)) /* the case's deadline ends the wait */
        usleep(1000);
    for (int i = 0; i < 50; i++) { /* time for many more of them, and calls are still accepted */
        usleep(10000);
        TRUE(submitted(app, (struct pawl_spec){ .type = "other" }));
    }
    pawl_close(app);
    EQ_INT(atomic_load(&h.sweeps), 1);
    log_sink_set(NULL, NULL);
    arena_release(&a);
}

/* ---- The monitor ----------------------------------------------------------------------------- */

TEST(a_monitor_sees_no_contents, .deadline_s = 120)
{
    struct node_rows nodes;
    struct store *s = NULL;
    begin(NULL);
    struct roles roles = { .monitor = account("monitor") };
    OK(grant(NULL, &roles), &err);
    struct pawl *node = node_as(owner_url);
    TRUE(submitted(node, (struct pawl_spec){ .id = "a", .key = "k" }));
    TRUE(submitted(node, (struct pawl_spec){ .id = "b", .type = "other", .queue = "q" }));
    ends_with(node, "a", "42");

    MYSQL *db = connected("monitor");
    does(db, "SELECT i.id, l.queue, l.type, c.method, c.`key`, c.client, o.status, o.node, "
             "o.finished_at FROM pawl_call c JOIN pawl_id i ON i.seq = c.seq "
             "JOIN pawl_lane l ON l.lane = c.lane JOIN pawl_outcome o ON o.seq = c.seq");
    does(db, "SELECT node, state, beat_at FROM pawl_node");
    does(db, "SELECT `key`, state, waiting FROM pawl_key");
    does(db, "SELECT type, `key`, version FROM pawl_object");
    does(db, "SELECT cron_name, scheduled_time, status, `call` FROM pawl_cron_runs");
    does(db, "SELECT id, workflow_name, status, current_step FROM pawl_workflow_runs");
    does(db, "SELECT workflow_run_id, step_name, no, status FROM pawl_workflow_steps");
    does(db, "SELECT name, next_at FROM pawl_schedule");
    static const char *const forbidden[] = {
        "SELECT input FROM pawl_call",
        "SELECT options FROM pawl_call",
        "SELECT tags FROM pawl_call",
        "SELECT * FROM pawl_call",
        "SELECT 1 FROM pawl_call WHERE input LIKE 'x%'",
        "SELECT result FROM pawl_outcome",
        "SELECT error FROM pawl_outcome",
        "SELECT error FROM pawl_attempt",
        "SELECT state FROM pawl_object",
        "SELECT input FROM pawl_archive",
        "SELECT result_bytes FROM pawl_archive",
        "SELECT 1 FROM pawl_tag",
        "SELECT token FROM pawl_lease",
        "SELECT token FROM pawl_outcome",
        "SELECT fingerprint FROM pawl_id",
        "SELECT input FROM pawl_inbox",
        "SELECT spec FROM pawl_schedule",
        "SELECT error FROM pawl_cron_runs",
        "SELECT input FROM pawl_workflow_runs",
        "SELECT result FROM pawl_workflow_steps",
        "SELECT value FROM pawl_signal",
        "INSERT INTO pawl_queue VALUES ('q', 1)",
        "UPDATE pawl_node SET dead = 1",
        "DELETE FROM pawl_call",
        "CREATE TABLE pawl_own (x INT)",
    };
    may_none(db, forbidden, COUNT_OF(forbidden));
    mysql_close(db);

    /* It may see nodes and the schema's state; but not the token of a lease, with which a call
     * could be ended. */
    struct store_conf conf = { .url = url_as("monitor"), .role = STORE_READER };
    OK(store_open(&conf, &s, &err), &err);
    OK(store_fits(s, &err), &err);
    OK(store_nodes(s, &a, &nodes, &err), &err);
    EQ_INT(nodes.n, 1);
    store_close(s);
    pawl_close(node);
    arena_release(&a);
}

/* ---- The admin ------------------------------------------------------------------------------- */

TEST(an_admin_runs_nodes_and_alters_nothing, .deadline_s = 120)
{
    begin(NULL);
    struct roles roles = { .admin = account("admin") };
    OK(grant(NULL, &roles), &err);
    struct pawl *node = node_as(url_as("admin"));
    TRUE(submitted(node, (struct pawl_spec){ .id = "a", .key = "k" }));
    ends_with(node, "a", "42");
    pawl_close(node);
    static const char *const forbidden[] = {
        "CREATE TABLE pawl_own (x INT)",
        "CREATE TRIGGER own BEFORE INSERT ON pawl_call FOR EACH ROW SET @x = 1",
        "CREATE VIEW pawl_own AS SELECT 1",
        "ALTER TABLE pawl_call ADD COLUMN x INT",
        "CREATE INDEX own ON pawl_call (method)",
        "DROP TABLE pawl_call",
        "TRUNCATE TABLE pawl_call",
    };
    MYSQL *db = connected("admin");
    may_none(db, forbidden, COUNT_OF(forbidden));
    mysql_close(db);
    /* It may read every table of the schema. */
    const char *missing = db_ask(
        &db_mariadb, "SELECT GROUP_CONCAT(t.TABLE_NAME) FROM information_schema.TABLES t WHERE "
                     "t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME LIKE 'pawl\\_%' AND (SELECT "
                     "COUNT(*) FROM information_schema.TABLE_PRIVILEGES p WHERE p.GRANTEE = "
                     "\"'admin'@'127.0.0.1'\" AND p.TABLE_SCHEMA = t.TABLE_SCHEMA AND "
                     "p.TABLE_NAME = t.TABLE_NAME) <> IF(t.TABLE_TYPE = 'VIEW', 1, 4);");
    EQ_STR(missing, "NULL");
    arena_release(&a);
}

/* Only the owner applies steps; an account that only runs nodes is told so. */
TEST(an_admin_is_told_who_brings_the_schema_up_to_date)
{
    struct store *s = NULL;
    begin(NULL);
    struct roles roles = { .admin = account("admin") };
    OK(grant(NULL, &roles), &err);
    db_ask(&db_mariadb, "DELETE FROM pawl_migration WHERE number > 1; DROP TABLE pawl_archive");
    OK(store_open(&(struct store_conf){ .url = url_as("admin") }, &s, &err), &err);
    EQ_STATUS(store_migrate(s, false, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "run pawl migrate up as its owner");
    store_close(s);
    arena_release(&a);
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* GRANT to an account that does not exist would create one without a password. */
TEST(no_account_is_made)
{
    begin(NULL);
    EQ_STATUS(grant(NULL, &(struct roles){ .admin = "nobody@127.0.0.1" }), PAWL_INVALID, &err);
    EQ_STATUS(grant(NULL, &(struct roles){ .app = "nobody" }), PAWL_INVALID, &err);
    EQ_INT(db_int(&db_mariadb, "SELECT COUNT(*) FROM mysql.user WHERE user = 'nobody';"), 0);
    arena_release(&a);
}

/* A role without a host, and tables with another prefix. */
TEST(roles_and_schemas_have_names_of_their_own)
{
    begin("Other");
    account("ann");
    db_ask(&db_mariadb, "CREATE ROLE pawl_watch; GRANT pawl_watch TO ann@'127.0.0.1';"
                        "SET DEFAULT ROLE pawl_watch FOR ann@'127.0.0.1'");
    OK(grant("Other", &(struct roles){ .monitor = "pawl_watch" }), &err);
    MYSQL *db = connected("ann");
    does(db, "SELECT id, seq FROM Other_id");
    may_not(db, "SELECT fingerprint FROM Other_id");
    mysql_close(db);
    arena_release(&a);
}
