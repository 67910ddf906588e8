/*
 * backup_pg.c - `pawl backup` of a PostgreSQL database: Pawl's schema, and nothing but it, comes
 * back from the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"
#include "db_server.h"
#include "store/store.h"

static bool there;

int main(int argc, char **argv)
{
    there = db_there(&db_postgres);
    if (there && !db_start(&db_postgres))
        return 1;
    return check_run(argc, argv);
}

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

static struct store *opened(const char *url, const char *schema)
{
    struct store *s = NULL;
    struct pawl_err err;
    struct store_conf conf = { .url = url, .schema = schema };
    OK(store_open(&conf, &s, &err), &err);
    return s;
}

static void accept_call(struct store *s, const char *id)
{
    struct pawl_err err;
    struct arena a;
    struct call_spec spec;
    arena_init(&a, 1 << 20);
    call_spec_init(&spec);
    spec.id = bytes_of(id);
    spec.type = BYTES("t");
    OK(call_spec_settle(&a, &world_real, &spec, &err), &err);
    struct op op = { .kind = OP_ACCEPT, .a = &a, .accept = { .v = &spec, .n = 1 } };
    OK(store_commit(s, &(struct op *){ &op }, 1), &op.err);
    arena_release(&a);
}

static enum pawl_status found(struct store *s, const char *id)
{
    struct pawl_err err;
    struct arena a;
    struct bytes ids[] = { bytes_of(id) };
    struct get g = { .ids = ids, .n = 1 };
    arena_init(&a, 1 << 20);
    OK(store_get(s, &a, &g, &err), &err);
    enum pawl_status st = g.found[0];
    arena_release(&a);
    return st;
}

TEST(a_schema_comes_back_from_its_backup, .deadline_s = 60)
{
    if (!there)
        skip("no PostgreSQL is installed");
    if (system("command -v pg_dump >/dev/null && command -v pg_restore >/dev/null") != 0)
        skip("pg_dump and pg_restore are not in PATH");
    struct pawl_err err;
    char from[256];
    snprintf(from, sizeof from, "%s", db_database(&db_postgres));
    const char *to = db_database(&db_postgres);
    NE_INT(strcmp(from, to), 0);
    /* A name with a capital is one that PostgreSQL must be given between quotes. */
    const char *const schemas[] = { "Shop", "pawl" };
    for (size_t i = 0; i < COUNT_OF(schemas); i++) {
        AUTO(store_end) struct store *s = opened(from, schemas[i]);
        OK(store_migrate(s, false, &err), &err);
        accept_call(s, "x");
    }
    EQ_INT(run(PAWL_BUILD_DIR "/pawl backup shop.dump --schema Shop --db '%s'", from), 0);
    EQ_INT(run("pg_restore --no-owner --dbname='%s' shop.dump", to), 0);
    AUTO(store_end) struct store *back = opened(to, "Shop");
    OK(store_fits(back, &err), &err);
    EQ_STATUS(found(back, "x"), PAWL_OK, NULL);
    accept_call(back, "y"); /* and it works */
    AUTO(store_end) struct store *other = opened(to, "pawl");
    struct schema schema;
    OK(store_schema(other, &schema, &err), &err);
    EQ_INT(schema.version, 0);
    EQ_INT(run(PAWL_BUILD_DIR "/pawl backup none.dump --schema none --db '%s' 2>err.txt", from), 6);
    EQ_INT(run("grep -q 'pg_dump failed: error: no matching schemas' err.txt"), 0);
}
