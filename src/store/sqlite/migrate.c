/*
 * migrate.c - the schema's steps on SQLite, all that are due in one transaction.
 *
 * DDL is transactional here, so a step is there whole or not at all, and the write lock lets two
 * processes that start together take turns: the second finds everything done. The steps themselves
 * are store/ledger/steps.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/engine.h"

static const struct led_steps steps = {
    .v = sql_sqlite_migrations,
    .texts = sql_sqlite,
    .first = { SQL_MIGRATION_TABLE },
    .n_first = 1,
    .tries = 10, /* of BUSY_US each */
    .joined = true,
    .own_names = lite_own_names,
    .run = lite_script,
    .print = { .before = "",
               .table = "pawl_migration",
               .hex = "X'",
               .clock = "CAST(strftime('%s', 'now') AS INTEGER) * 1000000" },
};

enum pawl_status lite_migrate(struct store *s, bool finish, struct pawl_err *err)
{
    return led_migrate(led_of(s), &steps, finish, err);
}

enum pawl_status lite_schema(struct store *s, struct schema *out, struct pawl_err *err)
{
    return led_schema(led_of(s), &steps, out, err);
}

enum pawl_status lite_steps(const struct store_conf *conf, struct arena *a, struct steps *out,
                            struct pawl_err *err)
{
    return led_steps_print(&steps, conf, a, out, err);
}
