/*
 * migrate.c - the schema's steps on PostgreSQL, all that are due in one transaction.
 *
 * DDL is transactional here, so a step is there whole or not at all, and an advisory lock lets two
 * processes that start together take turns: the second finds everything done. The steps themselves
 * are store/ledger/steps.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "store/pg/pg.h"

/* Names in a step mean what they mean to the server, whatever others have put into schemas of the
 * session's path. */
#define OWN_PATH "SET LOCAL search_path = pg_catalog, pg_temp"

/* Waits for at most lock_timeout. */
static enum pawl_status lock(struct ledger *c, struct pawl_err *err)
{
    struct led_params p = { 0 };
    led_text(&p, bytes_of(c->schema));
    return led_run(c, SQL_MIGRATION_LOCK, &p, NULL, err);
}

static enum pawl_status before(struct ledger *c, const struct led_applied *had,
                               struct pawl_err *err)
{
    (void)had;
    return pg_plain(c, OWN_PATH, err);
}

static struct led_refusal refusal(struct ledger *c)
{
    struct led_refusal r = { .why = pg_of(c)->said };
    snprintf(r.account, sizeof r.account, "role \"%.63s\"", PQuser(pg_of(c)->db));
    return r;
}

static const struct led_steps steps = {
    .v = sql_pg_migrations,
    .texts = sql_pg,
    .first = { SQL_MIGRATION_SCHEMA, SQL_MIGRATION_TABLE },
    .n_first = 2,
    .tries = 300,
    .own_names = pg_own_names,
    .run = pg_plain,
    .lock = lock,
    .before = before,
    .refusal = refusal,
    .print = { .before = OWN_PATH ";\n",
               .table = "pawl.migration",
               .hex = "'\\x",
               .clock = "(extract(epoch FROM now()) * 1000000)::bigint" },
};

enum pawl_status pg_migrate(struct store *s, bool finish, struct pawl_err *err)
{
    return led_migrate(led_of(s), &steps, finish, err);
}

enum pawl_status pg_schema(struct store *s, struct schema *out, struct pawl_err *err)
{
    return led_schema(led_of(s), &steps, out, err);
}

enum pawl_status pg_steps(const struct store_conf *conf, struct arena *a, struct steps *out,
                          struct pawl_err *err)
{
    return led_steps_print(&steps, conf, a, out, err);
}
