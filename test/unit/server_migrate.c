/*
 * server_migrate.c - programs of two releases on one database server: the older one goes on after
 * the first half of a step, and is told why it cannot after the second.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bare_store.h"
#include "check.h"
#include "db_server.h"
#include "sql_names.h"
#include "store/ledger/ledger.h"

static bool there[2];

int main(int argc, char **argv)
{
    struct db_server *const servers[] = { &db_postgres, &db_mariadb };
    for (size_t i = 0; i < COUNT_OF(servers); i++) {
        there[i] = db_there(servers[i]);
        if (there[i] && !db_start(servers[i]))
            return 1;
    }
    return check_run(argc, argv);
}

#define KNOWN_MAX 8

/* What a program knows that is one step ahead of ours, in two halves. */
static const struct sql_migration *newer_program(const struct sql_migration *ours,
                                                 const char *expand, const char *finish)
{
    static struct sql_migration v[KNOWN_MAX];
    int n = 0;
    for (; ours[n].number; n++)
        v[n] = ours[n];
    TRUE(n + 2 <= KNOWN_MAX);
    v[n] = (struct sql_migration){ n + 1, "word", expand, finish };
    v[n + 1] = (struct sql_migration){ 0 };
    EQ_INT(n + 1, 5); /* a new step of ours: say its number in the second halves below */
    return v;
}

static void two_releases(struct db_server *server, const struct sql_migration *newer)
{
    struct pawl_err err;
    const char *url = db_database(server);
    AUTO(store_end) struct store *old = bare_open(url, NULL);
    OK(store_migrate(old, true, &err), &err);
    bare_accept(old, "before", BYTES_NONE);

    led_steps_newer = newer;
    AUTO(store_end) struct store *new = bare_open(url, NULL);
    EQ_STATUS(store_fits(new, &err), PAWL_STATE, &err);
    HAS_STR(err.text, "has version 4 and this program wants 5");
    OK(store_migrate(new, false, &err), &err);
    EQ_INT(bare_schema(new).version, 5);
    TRUE(bare_schema(new).finish_due);
    bare_accept(new, "new", BYTES_NONE);

    led_steps_newer = NULL; /* the old one, on its old connection and on a new one */
    bare_accept(old, "between", BYTES_NONE);
    AUTO(store_end) struct store *again = bare_open(url, NULL);
    OK(store_migrate(again, false, &err), &err);
    OK(store_fits(again, &err), &err);
    EQ_INT(bare_schema(again).version, 5);
    bare_accept(again, "again", BYTES_NONE);
    OK(store_migrate(again, true, &err), &err); /* nothing of its own is left to finish */
    EQ_INT(bare_schema(again).min_version, 1);

    led_steps_newer = newer;
    OK(store_migrate(new, true, &err), &err);
    OK(store_migrate(new, true, &err), &err); /* once is enough */
    FALSE(bare_schema(new).finish_due);
    EQ_INT(bare_schema(new).min_version, 5);
    OK(store_fits(new, &err), &err);
    bare_accept(new, "after", BYTES_NONE);

    led_steps_newer = NULL;
    EQ_STATUS(store_migrate(again, false, &err), PAWL_STATE, &err);
    HAS_STR(err.text, "schema 5 or later");
    HAS_STR(err.text, "knows 4");
    EQ_STATUS(store_fits(again, &err), PAWL_STATE, &err);
    HAS_STR(err.text, "version 5 or later");
}

TEST(two_releases_on_postgresql)
{
    if (!there[0])
        skip("no PostgreSQL is installed");
    two_releases(&db_postgres,
                 newer_program(sql_pg_migrations, "ALTER TABLE pawl.call ADD COLUMN word text;\n",
                               "UPDATE pawl.meta SET value = 5 WHERE name = 'min_version';\n"
                               "CREATE INDEX call_word ON pawl.call (word);\n"));
}

TEST(two_releases_on_mariadb)
{
    if (!there[1])
        skip("no MariaDB is installed");
    two_releases(&db_mariadb,
                 newer_program(sql_mysql_migrations,
                               "ALTER TABLE pawl_call ADD COLUMN IF NOT EXISTS word BIGINT;\n",
                               "UPDATE pawl_meta SET value = 5 WHERE name = 'min_version';\n"
                               "CREATE INDEX IF NOT EXISTS call_word ON pawl_call (word);\n"));
}
