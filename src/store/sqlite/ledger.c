/*
 * ledger.c - the engine `sqlite+ledger:`: SQLite driven by store/ledger, on the native engine's
 * tables.
 *
 * Beside the native engine until it takes its place. A file may be used by the one or the other,
 * not by both at the same time: they give places in a key's line by different rules.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/driver.h"

extern const struct store_ops store_sqlite_ledger;

static enum pawl_status ledger_open(const struct store_conf *conf, struct store **out,
                                    struct pawl_err *err)
{
    if (conf->role == STORE_BARE)
        return lite_bare_open(conf, out, err);
    return lite_drive(conf, &store_sqlite_ledger, out, err);
}

static enum pawl_status ledger_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                                   struct pawl_rows *out, struct pawl_err *err)
{
    struct led_tx *t = (struct led_tx *)tx;
    struct lite *c = lite_of(&t->c->base);
    *out = (struct pawl_rows){ 0 };
    if (t->lost)
        return err_set(err, PAWL_STATE, "SQL: the transaction was rolled back before");
    enum pawl_status st = lite_theirs(c, a, q, out, err);
    t->lost = sqlite3_get_autocommit(c->db);
    return st;
}

const struct store_ops store_sqlite_ledger = {
    .name = "sqlite+ledger",
    .traits = STORE_ONE_WRITER | STORE_DURABLE | STORE_SHARED | STORE_DRIVEN,
    .open = ledger_open,
    .close = lite_drive_close,
    .migrate = lite_migrate,
    .schema = lite_schema,
    .commit = led_commit_ops,
    .get = led_get_calls,
    .list = led_list,
    .attempts = led_attempts,
    .archived = led_archived,
    .object = led_read_object,
    .keys = led_read_keys,
    .queues = led_queues,
    .nodes = led_nodes,
    .leaders = led_leaders,
    .wishes = led_wishes,
    .now = lite_now,
    .version = lite_version,
    .tend = lite_tend,
    .steps = lite_steps,
    .doctor = lite_doctor,
    .backup = lite_backup,
    .sql = ledger_sql,
};
