/*
 * backup.c - `pawl backup` of a database server: the server's own programs restore exactly one
 * schema from the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "plain_store.h"
#include "check.h"
#include "db_server.h"

static int run(const char *fmt, ...) PRINTF_LIKE(1, 2);

static int run(const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    int status = system(line);
    TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Quotes, backslashes, four-byte characters and bytes that are not text survive. */
static const char odd[] = "\xf0\x9f\x90\x98 '\\\" \0\xff end";
static const struct bytes odd_input = { odd, sizeof odd - 1 };

/* Two schemas in one database, and another, empty database. */
struct moving {
    char from[256], to[256];
};

static struct moving moving_begin(struct db_server *server, const char *schema)
{
    struct moving m;
    struct pawl_err err;
    snprintf(m.from, sizeof m.from, "%s", db_database(server));
    snprintf(m.to, sizeof m.to, "%s", db_database(server));
    NE_INT(strcmp(m.from, m.to), 0);
    const char *const schemas[] = { schema, "pawl" };
    for (size_t i = 0; i < COUNT_OF(schemas); i++) {
        AUTO(store_end) struct store *s = plain_open(m.from, schemas[i]);
        OK(store_migrate(s, false, &err), &err);
        plain_accept(s, "x", odd_input);
    }
    return m;
}

static void moving_ends(const struct moving *m, const char *schema)
{
    struct pawl_err err;
    AUTO(store_end) struct store *back = plain_open(m->to, schema);
    OK(store_fits(back, &err), &err);
    plain_has(back, "x", odd_input);
    plain_accept(back, "y", odd_input); /* and it works */
    plain_has(back, "y", odd_input);
    AUTO(store_end) struct store *other = plain_open(m->to, "pawl");
    EQ_INT(plain_schema(other).version, 0);
}

TEST(a_schema_comes_back_on_postgresql, .deadline_s = 60)
{
    if (!db_there(&db_postgres))
        skip("no PostgreSQL is installed");
    if (run("command -v pg_dump >/dev/null && command -v pg_restore >/dev/null") != 0)
        skip("pg_dump and pg_restore are not in PATH");
    /* PostgreSQL needs quotes around a name with a capital letter. */
    struct moving m = moving_begin(&db_postgres, "Shop");
    EQ_INT(run(PAWL_BUILD_DIR "/pawl backup shop.dump --schema Shop --db '%s'", m.from), 0);
    EQ_INT(run("pg_restore --no-owner --dbname='%s' shop.dump", m.to), 0);
    moving_ends(&m, "Shop");
    EQ_INT(run(PAWL_BUILD_DIR "/pawl backup none.dump --schema none --db '%s' 2>err.txt", m.from),
           13);
    EQ_INT(run("grep -q 'pg_dump failed: error: no matching schemas' err.txt"), 0);
}

/* Feed the file to the server's client program. The URL is
 * mysql://USER:PASSWORD@HOST:PORT/DATABASE. */
static int feed(const char *url, const char *file)
{
    char user[40], password[40], host[60], name[80];
    int port;
    EQ_INT(sscanf(url, "mysql://%39[^:]:%39[^@]@%59[^:]:%d/%79[^?]", user, password, host, &port,
                  name),
           5);
    return run("mariadb --host=%s --port=%d --user=%s --password=%s '%s' < %s", host, port, user,
               password, name, file);
}

TEST(a_schema_comes_back_on_mariadb, .deadline_s = 60)
{
    if (!db_there(&db_mariadb))
        skip("no MariaDB is installed");
    if (run("command -v mariadb-dump >/dev/null && command -v mariadb >/dev/null") != 0)
        skip("mariadb-dump and mariadb are not in PATH");
    struct moving m = moving_begin(&db_mariadb, "shop");
    EQ_INT(run(PAWL_BUILD_DIR "/pawl backup shop.sql --schema shop --db '%s'", m.from), 0);
    EQ_INT(feed(m.to, "shop.sql"), 0);
    moving_ends(&m, "shop");
}
