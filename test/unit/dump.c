/*
 * dump.c - the command line of a server's dump program, and what happens to its output file.
 *
 * The programs in these cases are scripts in the case's own folder, which is first in PATH.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/world.h"
#include "check.h"

static struct arena arena;

static enum pawl_status plan(const char *url, struct dump_plan *out, struct pawl_err *err)
{
    static struct step step = {
        .number = 1,
        .word = "ledger",
        .expand =
            "CREATE TABLE shop_meta (\n  x INT\n);\nCREATE TABLE IF NOT EXISTS `shop_call` (x "
            "INT);\nCREATE INDEX shop_i ON shop_call (x);\n",
        .finish = ""
    };
    arena_release(&arena);
    arena_init(&arena, 1 << 20);
    return dump_plan(url, "shop", &(struct steps){ .v = &step, .n = 1 }, &arena, out, err);
}

/* All arguments after the program's name, "a b c". */
static const char *args(const struct dump_plan *p)
{
    static char text[4096];
    text[0] = 0;
    for (size_t i = 1; p->argv[i]; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 1 ? " " : "",
                 p->argv[i]);
    return text;
}

#define PG "--format=custom --no-password --lock-wait-timeout=30000 --schema=\"shop\" --dbname="

static void pg_is(const char *url, const char *without, const char *secret)
{
    struct dump_plan p;
    struct pawl_err err;
    char want[512];
    snprintf(want, sizeof want, PG "%s", without);
    OK(plan(url, &p, &err), &err);
    EQ_STR(p.programs[0], "pg_dump");
    EQ_STR(args(&p), want);
    EQ_STR(p.secret, secret);
}

TEST(a_password_is_taken_out_of_a_postgres_url)
{
    pg_is("postgres://host/db", "postgres://host/db", NULL);
    pg_is("postgres://ann@host:5433/db", "postgres://ann@host:5433/db", NULL);
    pg_is("postgresql://ann:hush@host/db", "postgresql://ann@host/db", "PGPASSWORD=hush");
    pg_is("postgres://ann:a%20b%2Fc%25%40@h/db", "postgres://ann@h/db", "PGPASSWORD=a b/c%@");
    pg_is("postgres://ann:@h/db", "postgres://ann@h/db", "PGPASSWORD=");
    pg_is("postgres://:hush@h/db", "postgres://@h/db", "PGPASSWORD=hush");
    pg_is("postgres://a:b:c@h1:1,h2:2/db?target_session_attrs=any",
          "postgres://a@h1:1,h2:2/db?target_session_attrs=any", "PGPASSWORD=b:c");
    pg_is("postgres://ann@/db?host=/tmp&password=h%26h&sslmode=require",
          "postgres://ann@/db?host=/tmp&sslmode=require", "PGPASSWORD=h&h");
    pg_is("postgres:///db?pass%77ord=hush", "postgres:///db", "PGPASSWORD=hush");
    pg_is("trace+postgres://ann:hush@h/db", "postgres://ann@h/db", "PGPASSWORD=hush");
    pg_is("postgres://h?user=ann", "postgres://h/?user=ann", NULL);
}

TEST(what_cannot_be_kept_secret_is_refused)
{
    struct dump_plan p;
    struct pawl_err err;
    const char *const bad[] = { "postgres://ann:hu/sh@host/db", "postgres://ann:hu@sh@host/db",
                                "postgres://ann:%zz@host/db",   "postgres://ann:%4@host/db",
                                "postgres://ann:%00@host/db",   "postgres://h/db?sslpassword=hush",
                                "mysql://ann:hu/sh@host/db" };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        EQ_STATUS(plan(bad[i], &p, &err), PAWL_INVALID, &err);
        FALSE(strstr(err.text, "hush"));
    }
}

TEST(a_mysql_url_becomes_options_and_tables)
{
    struct dump_plan p;
    struct pawl_err err;
    const char *always = "--single-transaction --quick --hex-blob --no-tablespaces "
                         "--default-character-set=utf8mb4 ";
    OK(plan("mysql://ann:hu%2Fsh@host:3307/my%20db", &p, &err), &err);
    EQ_STR(p.programs[0], "mariadb-dump");
    EQ_STR(p.programs[1], "mysqldump");
    EQ_STR(p.secret, "MYSQL_PWD=hu/sh");
    HAS_STR(args(&p), always);
    EQ_STR(args(&p) + strlen(always),
           "--host=host --port=3307 --user=ann my db shop_meta shop_call");
    OK(plan("mariadb://ann@[::1]:1/d?socket=%2Frun%2Fx&password=p&x=y", &p, &err), &err);
    EQ_STR(args(&p) + strlen(always),
           "--host=::1 --port=1 --user=ann --socket=/run/x d shop_meta shop_call");
    EQ_STR(p.secret, "MYSQL_PWD=p");
    EQ_STATUS(plan("mysql://host", &p, &err), PAWL_INVALID, &err);
    EQ_STATUS(plan("mysql://host/--all-databases", &p, &err), PAWL_INVALID, &err);
}

TEST(files_and_memory_have_no_program)
{
    FALSE(dump_for("sqlite:x.db"));
    FALSE(dump_for("mem:postgres://"));
    FALSE(dump_for("trace+sqlite:x.db"));
    TRUE(dump_for("fault+trace+postgresql://h/d"));
    TRUE(dump_for("mysql://h/d"));
}

/* ---- Running --------------------------------------------------------------------------------- */

static void script(const char *name, const char *body)
{
    FILE *f = fopen(name, "w");
    TRUE(f && fprintf(f, "#!/bin/sh\n%s\n", body) > 0 && fclose(f) == 0);
    EQ_INT(chmod(name, 0755), 0);
    char path[4096], here[2048];
    TRUE(getcwd(here, sizeof here) != NULL);
    snprintf(path, sizeof path, "%s:/bin:/usr/bin", here);
    setenv("PATH", path, 1);
}

static const char *content(const char *path)
{
    static char text[4096];
    FILE *f = fopen(path, "r");
    TRUE(f != NULL);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static enum pawl_status run(const char *url, int64_t for_us, struct pawl_err *err)
{
    struct dump_plan p;
    OK(plan(url, &p, err), err);
    return dump_run(
        &p, &(struct dump_run){ .path = "out", .until_us = world_mono(&world_real) + for_us }, err);
}

TEST(the_password_is_in_the_environment_and_nowhere_else)
{
    struct pawl_err err;
    struct stat s;
    setenv("PGPASSWORD", "another", 1);
    script("pg_dump", "echo \"env:$PGPASSWORD args:$*\"; cat");
    OK(run("postgres://ann:hush@host/db", 30 * SEC_US, &err), &err);
    EQ_STR(content("out"), "env:hush args:" PG "postgres://ann@host/db\n");
    EQ_INT(stat("out", &s), 0);
    EQ_INT(s.st_mode & 0777, 0600);
    unlink("out");
    OK(run("postgres://ann@host/db", 30 * SEC_US, &err), &err);
    HAS_STR(content("out"), "env:another ");
}

TEST(the_second_program_is_tried_when_the_first_is_not_there)
{
    struct pawl_err err;
    script("mysqldump", "echo \"$0 $MYSQL_PWD\"");
    setenv("PATH", ".", 1); /* PATH has only this folder: MariaDB's own program may be elsewhere */
    OK(run("mysql://ann:hush@host/db", 30 * SEC_US, &err), &err);
    HAS_STR(content("out"), "mysqldump hush");
}

TEST(a_missing_program_is_named)
{
    struct pawl_err err;
    setenv("PATH", "/nowhere", 1);
    EQ_STATUS(run("postgres://host/db", 30 * SEC_US, &err), PAWL_NOT_FOUND, &err);
    EQ_STR(err.text, "pg_dump is not in PATH: install PostgreSQL's client programs");
    NE_INT(access("out", F_OK), 0);
}

TEST(a_failing_program_says_why_and_leaves_nothing)
{
    struct pawl_err err;
    script("pg_dump", "echo half; seq 1 5000 >&2; echo 'pg_dump: error: no server\n\tIs it there?' "
                      ">&2; exit 1");
    EQ_STATUS(run("postgres://host/db", 30 * SEC_US, &err), PAWL_BUSY, &err);
    EQ_STR(err.text, "pg_dump failed: error: no server");
    NE_INT(access("out", F_OK), 0);
    script("pg_dump", "echo strange >&2; exit 3");
    EQ_STATUS(run("postgres://host/db", 30 * SEC_US, &err), PAWL_BUSY, &err);
    EQ_STR(err.text, "pg_dump failed: strange");
    script("pg_dump", "exit 3");
    EQ_STATUS(run("postgres://host/db", 30 * SEC_US, &err), PAWL_BUSY, &err);
    EQ_STR(err.text, "pg_dump failed: it did not say why");
    script("pg_dump", "exit 0");
    EQ_STATUS(run("postgres://host/db", 30 * SEC_US, &err), PAWL_BROKEN, &err);
    NE_INT(access("out", F_OK), 0);
}

TEST(a_program_that_hangs_is_ended)
{
    struct pawl_err err;
    script("pg_dump", "echo half; exec sleep 600");
    EQ_STATUS(run("postgres://host/db", 0, &err), PAWL_BUSY, &err);
    HAS_STR(err.text, "did not end within --timeout");
    NE_INT(access("out", F_OK), 0);
}

TEST(a_dump_overwrites_nothing)
{
    struct pawl_err err;
    script("pg_dump", "echo new");
    FILE *f = fopen("out", "w");
    TRUE(f && fputs("mine", f) >= 0 && fclose(f) == 0);
    EQ_STATUS(run("postgres://host/db", 30 * SEC_US, &err), PAWL_INVALID, &err);
    EQ_STR(content("out"), "mine");
}
