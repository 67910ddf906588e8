/*
 * backup_maria.c - `pawl backup` of a MariaDB database: Pawl's tables, and nothing but them, come
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
    there = db_there(&db_mariadb);
    if (there && !db_start(&db_mariadb))
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

/* Quotes, backslashes, four-byte characters and bytes that are no text survive. */
static const char odd_input[] = "\xf0\x9f\x90\x98 '\\\" \0\xff end";

static void accept_call(struct store *s, const char *id)
{
    struct pawl_err err;
    struct arena a;
    struct call_spec spec;
    arena_init(&a, 1 << 20);
    call_spec_init(&spec);
    spec.id = bytes_of(id);
    spec.type = BYTES("t");
    spec.input = (struct payload){ PAWL_BYTES, { odd_input, sizeof odd_input - 1 } };
    OK(call_spec_settle(&a, &world_real, &spec, &err), &err);
    struct op op = { .kind = OP_ACCEPT, .a = &a, .accept = { .v = &spec, .n = 1 } };
    OK(store_commit(s, &(struct op *){ &op }, 1), &op.err);
    OK(op.accept.out[0].status, NULL);
    arena_release(&a);
}

static void is_there(struct store *s, const char *id)
{
    struct pawl_err err;
    struct arena a;
    struct bytes ids[] = { bytes_of(id) };
    struct get g = { .ids = ids, .n = 1, .with = WITH_INPUT };
    arena_init(&a, 1 << 20);
    OK(store_get(s, &a, &g, &err), &err);
    OK(g.found[0], NULL);
    struct bytes input = g.out[0].spec.input.bytes;
    EQ_BYTES(input.data, input.len, odd_input, sizeof odd_input - 1);
    arena_release(&a);
}

/* Feed the file to the client, as one would: mysql://USER:PASSWORD@HOST:PORT/DATABASE. */
static int restore(const char *url, const char *file)
{
    char user[40], password[40], host[60], name[80];
    int port;
    EQ_INT(sscanf(url, "mysql://%39[^:]:%39[^@]@%59[^:]:%d/%79[^?]", user, password, host, &port,
                  name),
           5);
    return run("mariadb --host=%s --port=%d --user=%s --password=%s '%s' < %s", host, port, user,
               password, name, file);
}

TEST(tables_come_back_from_their_backup, .deadline_s = 60)
{
    if (!there)
        skip("no MariaDB is installed");
    if (system("command -v mariadb-dump >/dev/null && command -v mariadb >/dev/null") != 0)
        skip("mariadb-dump and mariadb are not in PATH");
    struct pawl_err err;
    char from[256];
    snprintf(from, sizeof from, "%s", db_database(&db_mariadb));
    const char *to = db_database(&db_mariadb);
    NE_INT(strcmp(from, to), 0);
    const char *const schemas[] = { "shop", "pawl" };
    for (size_t i = 0; i < COUNT_OF(schemas); i++) {
        AUTO(store_end) struct store *s = opened(from, schemas[i]);
        OK(store_migrate(s, false, &err), &err);
        accept_call(s, "x");
    }
    EQ_INT(run(PAWL_BUILD_DIR "/pawl backup shop.sql --schema shop --db '%s'", from), 0);
    EQ_INT(restore(to, "shop.sql"), 0);
    AUTO(store_end) struct store *back = opened(to, "shop");
    OK(store_fits(back, &err), &err);
    is_there(back, "x");
    accept_call(back, "y"); /* and it works */
    is_there(back, "y");
    AUTO(store_end) struct store *other = opened(to, "pawl");
    struct schema schema;
    OK(store_schema(other, &schema, &err), &err);
    EQ_INT(schema.version, 0);
}
