/*
 * server_migrate.c - the steps of the schema on database servers. Programs of two releases on one
 * database: the older one goes on after the first half of a step, and gets a clear error after the
 * second. And tables of other programs that have names of ours.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "plain_store.h"
#include "check.h"
#include "db_server.h"
#include "sql_names.h"
#include "store/ledger/ledger.h"

#define KNOWN_MAX 40
/* The step's own number, in its second half. */
#define NEWER "$NEWER"

/* The steps of a program that is one step ahead of ours, in two halves. */
static const struct sql_migration *newer_program(const struct sql_migration *ours,
                                                 const char *expand, const char *finish)
{
    static struct sql_migration v[KNOWN_MAX];
    static char second[1000];
    int n = 0;
    for (; ours[n].number; n++)
        v[n] = ours[n];
    TRUE(n + 2 <= KNOWN_MAX);
    const char *at = strstr(finish, NEWER);
    TRUE(at != NULL);
    snprintf(second, sizeof second, "%.*s%d%s", (int)(at - finish), finish, n + 1,
             at + sizeof NEWER - 1);
    v[n] = (struct sql_migration){ n + 1, "word", expand, second };
    v[n + 1] = (struct sql_migration){ 0 };
    return v;
}

#define SAYS(err, ...)                                                                             \
    do {                                                                                           \
        char text_[100];                                                                           \
        snprintf(text_, sizeof text_, __VA_ARGS__);                                                \
        HAS_STR((err).text, text_);                                                                \
    } while (0)

static int last_of(const struct sql_migration *v)
{
    int n = 0;
    while (v[n].number)
        n++;
    return v[n - 1].number;
}

static void two_releases(struct db_server *server, const struct sql_migration *newer)
{
    int last = last_of(newer);
    struct pawl_err err;
    const char *url = db_database(server);
    AUTO(store_end) struct store *old = plain_open(url, NULL);
    OK(store_migrate(old, true, &err), &err);
    plain_accept(old, "before", BYTES_NONE);

    led_steps_newer = newer;
    AUTO(store_end) struct store *new = plain_open(url, NULL);
    EQ_STATUS(store_fits(new, &err), PAWL_STATE, &err);
    SAYS(err, "has version %d and this program wants %d", last - 1, last);
    OK(store_migrate(new, false, &err), &err);
    EQ_INT(plain_schema(new).version, last);
    TRUE(plain_schema(new).finish_due);
    plain_accept(new, "new", BYTES_NONE);

    led_steps_newer = NULL; /* the old program, on its old connection and on a new one */
    plain_accept(old, "between", BYTES_NONE);
    AUTO(store_end) struct store *again = plain_open(url, NULL);
    OK(store_migrate(again, false, &err), &err);
    OK(store_fits(again, &err), &err);
    EQ_INT(plain_schema(again).version, last);
    plain_accept(again, "again", BYTES_NONE);
    OK(store_migrate(again, true, &err), &err); /* nothing of its own is left to finish */
    EQ_INT(plain_schema(again).min_version, 13);

    led_steps_newer = newer;
    OK(store_migrate(new, true, &err), &err);
    OK(store_migrate(new, true, &err), &err); /* once is enough */
    FALSE(plain_schema(new).finish_due);
    EQ_INT(plain_schema(new).min_version, last);
    OK(store_fits(new, &err), &err);
    plain_accept(new, "after", BYTES_NONE);

    led_steps_newer = NULL;
    EQ_STATUS(store_migrate(again, false, &err), PAWL_STATE, &err);
    SAYS(err, "schema %d or later", last);
    SAYS(err, "knows %d", last - 1);
    EQ_STATUS(store_fits(again, &err), PAWL_STATE, &err);
    SAYS(err, "version %d or later", last);
}

TEST(two_releases_on_postgresql)
{
    if (!db_there(&db_postgres))
        skip("no PostgreSQL is installed");
    two_releases(&db_postgres,
                 newer_program(sql_pg_migrations, "ALTER TABLE pawl.call ADD COLUMN word text;\n",
                               "UPDATE pawl.meta SET value = " NEWER
                               " WHERE name = 'min_version';\n"
                               "CREATE INDEX call_word ON pawl.call (word);\n"));
}

TEST(two_releases_on_mariadb)
{
    if (!db_there(&db_mariadb))
        skip("no MariaDB is installed");
    two_releases(&db_mariadb,
                 newer_program(sql_mysql_migrations,
                               "ALTER TABLE pawl_call ADD COLUMN IF NOT EXISTS word BIGINT;\n",
                               "UPDATE pawl_meta SET value = " NEWER
                               " WHERE name = 'min_version';\n"
                               "CREATE INDEX IF NOT EXISTS call_word ON pawl_call (word);\n"));
}

/* ---- Step 8: lanes with needs ---------------------------------------------------------------- */

static void needs_wait(struct db_server *server, const struct sql_migration *ours)
{
    static struct sql_migration older[LANES_STEP];
    struct pawl_err err;
    const char *url = db_database(server);
    AUTO(store_end) struct store *s = plain_open(url, NULL);
    memcpy(older, ours, (LANES_STEP - 1) * sizeof *older);
    led_steps_newer = older;
    OK(store_migrate(s, false, &err), &err);
    led_steps_newer = NULL;
    OK(store_migrate(s, false, &err), &err);
    plain_accept(s, "before", BYTES_NONE);
    plain_refuses_needs(s);
    TRUE(plain_lane_stays(url, "one"));
    OK(store_migrate(s, true, &err), &err);
    OK(plain_needing(s, "needs", &err), &err);
    FALSE(plain_lane_stays(url, "two"));
}

TEST(needs_wait_for_migrate_finish_on_postgresql)
{
    if (!db_there(&db_postgres))
        skip("no PostgreSQL is installed");
    needs_wait(&db_postgres, sql_pg_migrations);
}

TEST(needs_wait_for_migrate_finish_on_mariadb)
{
    if (!db_there(&db_mariadb))
        skip("no MariaDB is installed");
    needs_wait(&db_mariadb, sql_mysql_migrations);
}

/* ---- Tables of other programs ---------------------------------------------------------------- */

#define HINT "that one is not Pawl's: --schema NAME gives Pawl names of its own"

/* What `sql` made is in the way of the schema's steps, and is named; under another name there is
 * room beside it. */
static void in_the_way(struct db_server *server, const char *sql, const char *named)
{
    struct pawl_err err = { 0 };
    const char *url = db_database(server);
    db_ask(server, sql);
    AUTO(store_end) struct store *s = plain_open(url, NULL);
    EQ_STATUS(store_migrate(s, false, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, named);
    HAS_STR(err.text, HINT);
    AUTO(store_end) struct store *mine = plain_open(url, "mine");
    OK(store_migrate(mine, false, &err), &err);
    plain_accept(mine, "a", BYTES_NONE);
    EQ_STATUS(store_migrate(s, false, &err), PAWL_BROKEN, &err); /* it changed nothing of theirs */
    HAS_STR(err.text, HINT);
}

TEST(a_table_that_is_not_ours_leads_to_schema_on_postgresql)
{
    if (!db_there(&db_postgres))
        skip("no PostgreSQL is installed");
    in_the_way(&db_postgres, "CREATE SCHEMA pawl; CREATE TABLE pawl.call (x int)",
               "relation \"call\" already exists");
    in_the_way(&db_postgres, "CREATE SCHEMA pawl; CREATE TABLE pawl.archive (x int)",
               "relation \"archive\" already exists");
    in_the_way(&db_postgres,
               "CREATE SCHEMA pawl; CREATE FUNCTION pawl.moment(bigint) RETURNS timestamptz"
               " LANGUAGE sql AS 'SELECT now()'",
               "function \"moment\" already exists");
    in_the_way(&db_postgres, "CREATE SCHEMA pawl; CREATE TABLE pawl.migration (x int)",
               "table \"migration\"");
    in_the_way(&db_postgres, "CREATE SCHEMA pawl; CREATE TABLE pawl.meta (x int)",
               "table \"meta\"");
}

TEST(a_table_that_is_not_ours_leads_to_schema_on_mariadb)
{
    if (!db_there(&db_mariadb))
        skip("no MariaDB is installed");
    in_the_way(&db_mariadb, "CREATE TABLE pawl_call (x INT)", "table pawl_call already exists");
    in_the_way(&db_mariadb, "CREATE TABLE pawl_tag (seq BIGINT, name INT)",
               "table pawl_tag already exists");
    in_the_way(&db_mariadb, "CREATE VIEW pawl_leader AS SELECT 1 AS role",
               "table pawl_leader already exists");
    in_the_way(&db_mariadb, "CREATE TABLE pawl_migration (x INT)", "table \"migration\"");
    in_the_way(&db_mariadb, "CREATE TABLE pawl_meta (x INT)", "table \"meta\"");
}

/* Made later than the first steps, before the one that wants its name. */
TEST(a_table_in_the_way_of_a_later_step_on_mariadb)
{
    if (!db_there(&db_mariadb))
        skip("no MariaDB is installed");
    struct pawl_err err = { 0 };
    const char *url = db_database(&db_mariadb);
    AUTO(store_end) struct store *s = plain_open(url, NULL);
    OK(store_migrate(s, false, &err), &err);
    db_ask(&db_mariadb, "CREATE TABLE pawl_news (x INT)");
    led_steps_newer =
        newer_program(sql_mysql_migrations,
                      "CREATE TABLE IF NOT EXISTS pawl_news (\n  a BIGINT NOT NULL,\n"
                      "  `b` BIGINT NOT NULL,\n  PRIMARY KEY (a)\n) ENGINE = InnoDB;\n",
                      "UPDATE pawl_meta SET value = " NEWER " WHERE name = 'min_version';\n");
    EQ_STATUS(store_migrate(s, false, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, "table pawl_news already exists; " HINT);
    db_ask(&db_mariadb, "ALTER TABLE pawl_news ADD a BIGINT");
    EQ_STATUS(store_migrate(s, false, &err), PAWL_BROKEN, &err);
    /* One that a step of ours made, which was cut short, has all its columns. */
    db_ask(&db_mariadb, "ALTER TABLE pawl_news ADD b BIGINT");
    OK(store_migrate(s, false, &err), &err);
    led_steps_newer = NULL;
}

/* Every step is cut short after its tables were made, and knows its own tables again.
 */
TEST(a_step_that_was_cut_short_knows_its_own_tables_on_mariadb)
{
    if (!db_there(&db_mariadb))
        skip("no MariaDB is installed");
    struct pawl_err err = { 0 };
    const char *url = db_database(&db_mariadb);
    AUTO(store_end) struct store *s = plain_open(url, NULL);
    OK(store_migrate(s, false, &err), &err);
    for (int i = last_of(sql_mysql_migrations); i > 0; i--) {
        char sql[100];
        snprintf(sql, sizeof sql, "DELETE FROM pawl_migration WHERE number >= %d", i);
        db_ask(&db_mariadb, sql);
        OK(store_migrate(s, false, &err), &err);
    }
    plain_accept(s, "a", BYTES_NONE);
}
