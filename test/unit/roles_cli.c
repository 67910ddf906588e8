/*
 * roles_cli.c - the program `pawl` with the roles of `migrate grants`, on real servers: a refusal
 * is a message that names the account and the role that may, and never exit code 9.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "check.h"
#include "db_server.h"
#include "engines.h"

#define PAWL PAWL_BUILD_DIR "/pawl"
#define TEXT_MAX (64 << 10)

CHECK_PARAMS
{
    engines_add_servers();
}

static char out[TEXT_MAX], err_out[TEXT_MAX];
static struct arena a;
static struct db_server *server;
static const char *url; /* of the account that owns everything */

static bool is_pg(void)
{
    return server == &db_postgres;
}

static void slurp(const char *path, char *to)
{
    FILE *f = fopen(path, "r");
    TRUE(f != NULL);
    to[fread(to, 1, TEXT_MAX - 1, f)] = 0;
    fclose(f);
}

/* The same database with another account; on MariaDB its password is its name. */
static const char *url_as(const char *name)
{
    const char *rest = strchr(url, '@');
    if (is_pg())
        return arena_printf(&a, "%s&user=%s", url, name);
    TRUE(rest != NULL);
    return arena_printf(&a, "mysql://%s:%s%s", name, name, rest);
}

/* Run `pawl ARGS --db` with this account. Returns the exit code. */
static int pawl_as(const char *name, const char *fmt, ...) PRINTF_LIKE(2, 3);

static int pawl_as(const char *name, const char *fmt, ...)
{
    char args[512], line[2048];
    va_list v;
    va_start(v, fmt);
    vsnprintf(args, sizeof args, fmt, v);
    va_end(v);
    snprintf(line, sizeof line, "timeout 60 " PAWL " %s --db '%s' >out.txt 2>err.txt", args,
             url_as(name));
    int status = system(line);
    TRUE(WIFEXITED(status));
    slurp("out.txt", out);
    slurp("err.txt", err_out);
    return WEXITSTATUS(status);
}

/* An account's name for `migrate grants`. */
static const char *account(const char *name)
{
    db_ask(server, arena_printf(&a,
                                is_pg() ? "CREATE ROLE %1$s LOGIN"
                                        : "CREATE USER %1$s@'127.0.0.1' IDENTIFIED BY '%1$s'",
                                name));
    return arena_printf(&a, is_pg() ? "%s" : "%s@127.0.0.1", name);
}

/* A server of the case's own and an empty database that belongs to the account "boss". */
static void begin(void *param)
{
    server = param;
    arena_init(&a, 16 << 20);
    db_start_own(server);
    url = db_database(server);
    account("boss");
    const char *database =
        db_ask(server, is_pg() ? "SELECT current_database()" : "SELECT DATABASE()");
    db_ask(server, arena_printf(&a,
                                is_pg() ? "GRANT CREATE ON DATABASE \"%s\" TO boss"
                                        : "GRANT ALL ON `%s`.* TO boss@'127.0.0.1' WITH GRANT "
                                          "OPTION",
                                arena_printf(&a, "%s", database)));
}

/* The same with Pawl's tables, and app, monitor and admin as `migrate grants` makes them. */
static void begin_with_roles(void *param)
{
    begin(param);
    EQ_INT(pawl_as("boss", "migrate up"), 0);
    EQ_INT(pawl_as("boss", "migrate grants --apply --app %s --monitor %s --admin %s",
                   account("app"), account("monitor"), account("admin")),
           0);
}

/* How many rights on tables this account has. */
static int64_t rights(const char *name)
{
    return db_int(server,
                  arena_printf(&a,
                               is_pg() ? "SELECT has_schema_privilege('%s', 'pawl', 'USAGE')"
                                         "::int"
                                       : "SELECT COUNT(*) FROM mysql.tables_priv WHERE "
                                         "User = '%s' AND Table_priv <> '';",
                               name));
}

/* ---- Granting -------------------------------------------------------------------------------- */

TEST(only_the_owner_grants, .deadline_s = 120)
{
    begin_with_roles(param);
    const char *new_app = account("newapp");
    static const char *const others[] = { "admin", "app", "monitor" };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        EQ_INT(
            pawl_as(others[i], "migrate grants --apply --app %s --monitor '' --admin ''", new_app),
            2);
        EQ_STR(out, "");
        HAS_STR(err_out, arena_printf(&a, is_pg() ? "role \"%s\"" : "account \"%s\"", others[i]));
        HAS_STR(err_out,
                is_pg() ? "schema \"pawl\" belongs to role \"boss\"" : "WITH GRANT OPTION");
        EQ_INT(rights("newapp"), 0);
    }
    EQ_INT(pawl_as("boss", "migrate grants --apply --app %s --monitor '' --admin ''", new_app), 0);
    TRUE(rights("newapp") > 0);
}

/* A table that another role owns would only be skipped with a warning of the server. */
TEST(every_table_must_be_the_grantors, .deadline_s = 120)
{
    begin_with_roles(param);
    if (!is_pg())
        skip("tables have no owners here");
    const char *new_app = account("newapp");
    db_ask(server, "ALTER TABLE pawl.queue OWNER TO admin; GRANT SELECT ON pawl.queue TO boss");
    EQ_INT(pawl_as("boss", "migrate grants --apply --app %s --monitor ''", new_app), 2);
    HAS_STR(err_out, "role \"boss\"");
    HAS_STR(err_out, "table pawl.queue belongs to role \"admin\"");
    EQ_INT(rights("newapp"), 0);
}

/* Names come from the user: INVALID, with the name and what would be right, and nothing is granted.
 */
TEST(a_role_must_exist, .deadline_s = 120)
{
    begin_with_roles(param);
    const char *new_app = account("newapp");
    const char *ghost = is_pg() ? "role \"ghost\" does not exist: CREATE ROLE"
                                : "account 'ghost' does not exist: CREATE USER";
    EQ_INT(pawl_as("boss", "migrate grants --apply --app ghost --monitor '' --admin ''"), 2);
    HAS_STR(err_out, ghost);
    EQ_INT(pawl_as("boss", "migrate grants --apply --app %s --monitor ghost --admin ''", new_app),
           2);
    HAS_STR(err_out, ghost);
    EQ_INT(pawl_as("boss", "migrate grants --apply --app %s --monitor '' --admin ghost", new_app),
           2);
    HAS_STR(err_out, ghost);
    EQ_INT(rights("newapp"), 0);
    if (!is_pg()) {
        EQ_INT(pawl_as("boss", "migrate grants --apply --app ghost@10.0.0.1 --monitor '' "
                               "--admin ''"),
               2);
        HAS_STR(err_out, "account 'ghost'@'10.0.0.1' does not exist: CREATE USER");
        return;
    }
    EQ_INT(pawl_as("boss", "migrate grants --apply --app '' --monitor '' --admin boss"), 2);
    HAS_STR(err_out, "role \"boss\" owns schema \"pawl\"");
}

TEST(a_schema_is_made_before_it_is_granted, .deadline_s = 120)
{
    static const char command[] = "migrate grants --apply --app %s --monitor '' --admin ''";
    begin(param);
    const char *app = account("app");
    EQ_INT(pawl_as("boss", command, app), 13);
    HAS_STR(err_out, "no schema \"pawl\"");
    HAS_STR(err_out, "run pawl migrate up");
    EQ_INT(pawl_as("boss", "migrate up"), 0);
    db_ask(server, is_pg() ? "DELETE FROM pawl.migration WHERE number > 2"
                           : "DELETE FROM pawl_migration WHERE number > 2");
    EQ_INT(pawl_as("boss", command, app), 13);
    HAS_STR(err_out, "schema \"pawl\" has version 2");
    HAS_STR(err_out, "run pawl migrate up");
    EQ_INT(rights("app"), 0);
}

/* ---- Doctor ---------------------------------------------------------------------------------- */

/* A database is not bad because of what an account may not see of it. */
TEST(the_doctor_skips_what_it_may_not_read, .deadline_s = 120)
{
    static const char *const names[] = { "app", "monitor", "admin" };
    begin_with_roles(param);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        bool skips = i < 2;
        EQ_INT(pawl_as(names[i], "doctor"), 0);
        EQ_INT(strstr(out, "may not read") != NULL, skips);
        EQ_INT(strstr(out, "not checked") != NULL, skips);
        FALSE(strstr(out, "migration_list"));
        FALSE(strstr(out, "lease_around"));
        FALSE(strstr(out, "bad "));
        EQ_INT(pawl_as(names[i], "doctor --json"), 0);
        EQ_INT(strstr(out, "\"level\":\"skip\"") != NULL, skips);
        FALSE(strstr(out, "\"verdict\":\"skip\""));
    }
}

/* ---- Nodes and commands ---------------------------------------------------------------------- */

TEST(an_account_that_may_not_run_a_node_is_told_who_may, .deadline_s = 120)
{
    static const char *const commands[] = { "serve --listen 127.0.0.1:0", "gc",
                                            "archive --older-than 0s", "requeue-stuck" };
    begin_with_roles(param);
    static const char *const names[] = { "app", "monitor" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        for (size_t k = 0; k < COUNT_OF(commands); k++) {
            int code = pawl_as(names[i], "%s", commands[k]);
            if (!is_pg() && k > 0 && code == 0)
                continue; /* it may read, and had nothing to write */
            EQ_INT(code, 2);
            HAS_STR(err_out, arena_printf(&a, "account \"%s\" may not", names[i]));
            HAS_STR(err_out, "pawl migrate grants gives as --admin");
        }
    for (size_t k = 1; k < COUNT_OF(commands); k++)
        EQ_INT(pawl_as("admin", "%s", commands[k]), 0);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

TEST(a_backup_takes_an_account_that_reads_everything, .deadline_s = 120)
{
    begin_with_roles(param);
    if (system(is_pg() ? "command -v pg_dump >/dev/null" : "command -v mariadb-dump >/dev/null"))
        skip("the server's program for copies is not in PATH");
    static const char *const names[] = { "app", "monitor" };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        EQ_INT(pawl_as(names[i], "backup x.dump"), 2);
        HAS_STR(err_out, "the role that pawl migrate grants calls --admin");
        FALSE(exists("x.dump") || exists("x.dump.partial"));
    }
    EQ_INT(pawl_as("admin", "backup admin.dump"), 0);
    EQ_INT(pawl_as("boss", "backup boss.dump"), 0);
    struct stat admin, boss;
    TRUE(stat("admin.dump", &admin) == 0 && stat("boss.dump", &boss) == 0);
}

/* An old schema must be copied before an update: its tables, and no others. */
TEST(an_older_schema_can_be_copied, .deadline_s = 120)
{
    begin(param);
    if (system(is_pg() ? "command -v pg_dump >/dev/null" : "command -v mariadb-dump >/dev/null"))
        skip("the server's program for copies is not in PATH");
    EQ_INT(pawl_as("boss", "backup none.dump"), 13);
    HAS_STR(err_out, "run pawl migrate up");
    FALSE(exists("none.dump"));
    EQ_INT(pawl_as("boss", "migrate up"), 0);
    db_ask(server, is_pg() ? "DELETE FROM pawl.migration WHERE number > 1; DROP TABLE pawl.archive "
                             "CASCADE"
                           : "DELETE FROM pawl_migration WHERE number > 1; DROP TABLE "
                             "pawl_archive");
    EQ_INT(pawl_as("boss", "backup old.dump"), 0);
    if (is_pg())
        return;
    /* A table that is really missing is named. */
    db_ask(server, "DROP TABLE pawl_queue");
    EQ_INT(pawl_as("boss", "backup broken.dump"), 2);
    HAS_STR(err_out, "pawl_queue");
    HAS_STR(err_out, "the table does not exist");
}
