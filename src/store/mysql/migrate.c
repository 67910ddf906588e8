/*
 * migrate.c - the schema's steps on MariaDB and MySQL.
 *
 * DDL commits by itself here, so a step may be half done after a power cut: its statements can be
 * repeated, and its row is written after the last of them. A named lock of the server (GET_LOCK)
 * lets two processes that start together take turns; it ends with the connection. The steps
 * themselves are store/ledger/steps.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/mysql/mydb.h"

/* How long one try waits for another process that migrates. */
#define LOCK_S 10
/* Rows of connections that have written nothing for so long are dropped. */
#define CHANGE_OLD_US (24 * 3600 * SEC_US)

static const struct led_steps steps;

/* ---- Tables of other programs -----------------------------------------------------------------
 *
 * A step that was interrupted finds tables that it created before. Those have all the columns of
 * the step; a table that lacks one is another program's. Our steps have one line for each column.
 */

static bool has_column(const struct led_rows *r, struct bytes table, struct bytes column, bool *any)
{
    bool has = false;
    *any = false;
    for (int i = 0; i < r->n && !has; i++) {
        bool same = bytes_eq(led_get(r, i, 0), table);
        *any = *any || same;
        has = same && bytes_eq(led_get(r, i, 1), column);
    }
    return has;
}

/* The next column of the table at *at, which is advanced; absent: there is no more. */
static struct bytes column_next(const char **at)
{
    const char *line = *at;
    while (*line && *line != ')') {
        const char *word = line + strspn(line, " `");
        size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyz_");
        line += strcspn(line, "\n");
        line += *line == '\n';
        if (len) {
            *at = line;
            return (struct bytes){ word, len };
        }
    }
    return BYTES_NONE;
}

/* A table that this text creates and that exists as another program's; absent: none. */
static struct bytes taken_in(const struct led_rows *r, const char *text)
{
    static const char make[] = "CREATE TABLE IF NOT EXISTS ";
    for (const char *at = text; (at = strstr(at, make));) {
        at += sizeof make - 1;
        struct bytes table = { at, strcspn(at, " (\n") }, column;
        at += strcspn(at, "\n");
        at += *at == '\n';
        bool there = true, ours = true;
        while (there && ours && (column = column_next(&at)).data)
            ours = has_column(r, table, column, &there);
        if (there && !ours)
            return table;
    }
    return BYTES_NONE;
}

/* BROKEN: another program's table is in the way of a step that is due. */
static enum pawl_status before(struct ledger *c, const struct led_applied *had,
                               struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *r = NULL;
    led_text(&p, bytes_of(c->schema));
    enum pawl_status st = led_query(c, SQL_MIGRATION_COLUMNS, &p, &r, err);
    for (const struct sql_migration *m = led_steps_known(&steps);
         st == PAWL_OK && r->n && m->number; m++) {
        if (m->number <= had->version)
            continue;
        const char *own = mydb_own_names(c->schema, &c->scratch, m->expand);
        if (!own)
            return err_no_memory(err, "a step of the schema");
        struct bytes table = taken_in(r, own);
        if (table.data)
            st = err_set(err, PAWL_BROKEN,
                         "database: a step of the schema: table %.*s already exists",
                         BYTES_ARG(table));
    }
    return st;
}

/* ---- Under the lock -------------------------------------------------------------------------- */

static enum pawl_status lock(struct ledger *c, struct pawl_err *err)
{
    struct led_params p = { 0 };
    int64_t got = 0;
    led_text(&p, bytes_of(c->schema));
    led_int(&p, LOCK_S);
    enum pawl_status st = led_number(c, SQL_MIGRATION_LOCK, &p, 0, &got, err);
    if (st == PAWL_OK && !got)
        st = err_set(err, PAWL_BUSY, "database: another process is changing its schema");
    return st;
}

static void unlock(struct ledger *c)
{
    struct led_params p = { 0 };
    led_text(&p, bytes_of(c->schema));
    enum pawl_status gone = led_run(c, SQL_MIGRATION_UNLOCK, &p, NULL, NULL);
    (void)gone; /* a connection that fails here is lost, and the lock with it */
}

/* Each connection that has written left a row; those of connections that ended are dropped. */
static enum pawl_status after(struct ledger *c, struct pawl_err *err)
{
    struct led_params p = { 0 }, old = { 0 };
    struct led_column conns;
    struct led_rows *r = NULL;
    led_int(&p, world_now(&world_real) - CHANGE_OLD_US);
    enum pawl_status st = led_query(c, SQL_CHANGE_OLD, &p, &r, err);
    led_column_init(&conns, &c->scratch, LED_INTS);
    for (int i = 0; st == PAWL_OK && i < r->n; i++)
        led_add_int(&conns, led_get_int(r, i, 0));
    led_column(&old, &conns);
    return st == PAWL_OK && conns.n ? led_run(c, SQL_CHANGE_REMOVE, &old, NULL, err) : st;
}

static struct led_refusal refusal(struct ledger *c)
{
    return (struct led_refusal){ .account = "this account", .why = mysql_error(mydb_of(c)->db) };
}

static const struct led_steps steps = {
    .v = sql_mysql_migrations,
    .texts = sql_mysql,
    .first = { SQL_MIGRATION_TABLE },
    .n_first = 1,
    .tries = 30,
    .own_names = mydb_own_names,
    .run = mydb_plain,
    .lock = lock,
    .unlock = unlock,
    .before = before,
    .after = after,
    .refusal = refusal,
    .print = { .before = "",
               .table = "pawl_migration",
               .hex = "x'",
               .clock = "UNIX_TIMESTAMP() * 1000000" },
};

enum pawl_status mydb_migrate(struct store *s, bool finish, struct pawl_err *err)
{
    return led_migrate(led_of(s), &steps, finish, err);
}

enum pawl_status mydb_schema(struct store *s, struct schema *out, struct pawl_err *err)
{
    return led_schema(led_of(s), &steps, out, err);
}

enum pawl_status mydb_steps(const struct store_conf *conf, struct arena *a, struct steps *out,
                            struct pawl_err *err)
{
    return led_steps_print(&steps, conf, a, out, err);
}
