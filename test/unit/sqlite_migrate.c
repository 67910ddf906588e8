/*
 * sqlite_migrate.c - the schema's steps on a file: several processes at once, steps that are not
 * ours, other schemas beside it, and every statement against the result.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "store/sqlite/engine.h"

#define PROCESSES 6

static struct store *opened(const char *url, const char *schema)
{
    struct pawl_err err;
    struct store *s = NULL;
    struct store_conf conf = { .url = url, .schema = schema, .retention_us = SEC_US };
    OK(store_open(&conf, &s, &err), &err);
    return s;
}

static void run_sql(struct store *s, const char *sql)
{
    EQ_INT(sqlite3_exec(((struct lite *)s)->db, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* Together, on a file that is not there yet. */
TEST(processes_that_start_together_all_succeed)
{
    struct pawl_err err;
    for (int i = 0; i < PROCESSES; i++) {
        pid_t child = fork();
        TRUE(child >= 0);
        if (child == 0) {
            AUTO(store_end) struct store *s = opened("sqlite:together.db", NULL);
            OK(store_migrate(s, true, &err), &err);
            store_end(&s);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        TRUE(wait(&status) > 0);
        EQ_INT(status, 0);
    }
    AUTO(store_end) struct store *s = opened("sqlite:together.db", NULL);
    struct schema schema;
    OK(store_schema(s, &schema, &err), &err);
    EQ_INT(schema.version, schema.wanted);
    FALSE(schema.finish_due);
}

TEST(an_empty_file_is_version_0)
{
    AUTO(store_end) struct store *s = opened("sqlite:empty.db", NULL);
    struct pawl_err err;
    struct schema schema;
    OK(store_schema(s, &schema, &err), &err);
    EQ_INT(schema.version, 0);
    GT_INT(schema.wanted, 0);
}

TEST(a_step_that_is_not_ours_is_refused)
{
    AUTO(store_end) struct store *s = opened("sqlite:other.db", NULL);
    struct pawl_err err;
    OK(store_migrate(s, true, &err), &err);
    run_sql(s, "UPDATE pawl_migration SET checksum = x'00' WHERE number = 1");
    EQ_STATUS(store_migrate(s, true, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, "step 1 (ledger)");
}

TEST(a_newer_schema_says_which_program_can)
{
    AUTO(store_end) struct store *s = opened("sqlite:newer.db", NULL);
    struct pawl_err err;
    OK(store_migrate(s, true, &err), &err);
    run_sql(s, "INSERT INTO pawl_migration SELECT 1 + max(number), 'later', x'00', 0, 1 "
               "FROM pawl_migration");
    OK(store_migrate(s, true, &err), &err); /* a step that old programs may live with */
    run_sql(s, "UPDATE pawl_meta SET value = 99 WHERE name = 'min_version'");
    EQ_STATUS(store_migrate(s, true, &err), PAWL_STATE, &err);
    HAS_STR(err.text, "knows schema 99");
}

TEST(schemas_stand_side_by_side)
{
    AUTO(store_end) struct store *one = opened("sqlite:two.db", NULL);
    AUTO(store_end) struct store *two = opened("sqlite:two.db", "shop_1");
    struct pawl_err err;
    OK(store_migrate(one, true, &err), &err);
    OK(store_migrate(two, true, &err), &err);
    run_sql(two, "DROP TABLE pawl_call");
    run_sql(two, "SELECT count(*) FROM shop_1_call");
}

static void prepare_all(struct store *s)
{
    struct lite *c = (struct lite *)s;
    struct arena a;
    arena_init(&a, 1 << 20);
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_stmt *q = NULL;
        const char *text = lite_own_names(c, &a, sql_sqlite[i]);
        if (sqlite3_prepare_v2(c->db, text, -1, &q, NULL) != SQLITE_OK)
            FAIL("%s: %s", sql_name_text[i], sqlite3_errmsg(c->db));
        sqlite3_finalize(q);
    }
    arena_release(&a);
}

TEST(every_statement_fits_the_schema)
{
    const char *const schemas[] = { NULL, "other" };
    for (size_t i = 0; i < COUNT_OF(schemas); i++) {
        AUTO(store_end) struct store *s = opened("sqlite:all.db", schemas[i]);
        struct pawl_err err;
        OK(store_migrate(s, true, &err), &err);
        prepare_all(s);
    }
}

TEST(what_cannot_be_opened_is_named)
{
    struct pawl_err err;
    struct store *s = NULL;
    struct store_conf conf = { .url = "sqlite:nowhere/x.db" };
    EQ_STATUS(store_open(&conf, &s, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "nowhere/x.db");
    HAS_STR(err.text, "No such file");
    conf.url = "sqlite:";
    EQ_STATUS(store_open(&conf, &s, &err), PAWL_INVALID, &err);
    conf.url = "sqlite:x.db";
    conf.schema = "1no";
    EQ_STATUS(store_open(&conf, &s, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "1no");
}

TEST(a_file_that_is_no_database_is_broken)
{
    struct pawl_err err;
    struct store *s = NULL;
    FILE *f = fopen("text.db", "w");
    TRUE(f != NULL);
    for (int i = 0; i < 1000; i++)
        fputs("this is no database at all\n", f);
    fclose(f);
    EQ_STATUS(store_open(&(struct store_conf){ .url = "sqlite:text.db" }, &s, &err), PAWL_BROKEN,
              &err);
    HAS_STR(err.text, "text.db");
}
