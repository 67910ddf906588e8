/*
 * server_migrate.c - programs of two releases on one database server: the older one goes on after
 * the first half of a step, and gets a clear error after the second.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "bare_store.h"
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
    AUTO(store_end) struct store *old = bare_open(url, NULL);
    OK(store_migrate(old, true, &err), &err);
    bare_accept(old, "before", BYTES_NONE);

    led_steps_newer = newer;
    AUTO(store_end) struct store *new = bare_open(url, NULL);
    EQ_STATUS(store_fits(new, &err), PAWL_STATE, &err);
    SAYS(err, "has version %d and this program wants %d", last - 1, last);
    OK(store_migrate(new, false, &err), &err);
    EQ_INT(bare_schema(new).version, last);
    TRUE(bare_schema(new).finish_due);
    bare_accept(new, "new", BYTES_NONE);

    led_steps_newer = NULL; /* the old program, on its old connection and on a new one */
    bare_accept(old, "between", BYTES_NONE);
    AUTO(store_end) struct store *again = bare_open(url, NULL);
    OK(store_migrate(again, false, &err), &err);
    OK(store_fits(again, &err), &err);
    EQ_INT(bare_schema(again).version, last);
    bare_accept(again, "again", BYTES_NONE);
    OK(store_migrate(again, true, &err), &err); /* nothing of its own is left to finish */
    EQ_INT(bare_schema(again).min_version, 1);

    led_steps_newer = newer;
    OK(store_migrate(new, true, &err), &err);
    OK(store_migrate(new, true, &err), &err); /* once is enough */
    FALSE(bare_schema(new).finish_due);
    EQ_INT(bare_schema(new).min_version, last);
    OK(store_fits(new, &err), &err);
    bare_accept(new, "after", BYTES_NONE);

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
