/*
 * migrate.c - bringing the schema up to date, a step at a time, all of it in one transaction.
 *
 * DDL is transactional here, so a step is there whole or not at all, and an advisory lock lets two
 * processes that start together take turns: the second finds everything done. The
 * steps themselves are store/ledger/steps.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "store/pg/pg.h"

/* Another process may be migrating: each try waits for lock_timeout. */
#define MIGRATE_TRIES 300

static enum pawl_status script(struct ledger *c, const char *text, struct pawl_err *err)
{
    char *own = pg_own_names(pg_of(c), &c->scratch, text);
    return own ? pg_plain(c, own, err) : err_no_memory(err, "a step of the schema");
}

static const struct led_steps steps = {
    .v = sql_pg_migrations,
    .texts = sql_pg,
    .first = { SQL_MIGRATION_SCHEMA, SQL_MIGRATION_TABLE },
    .n_first = 2,
    .script = script,
};

/* The role that owns the schema applies its steps; one that only runs nodes is told so. */
static enum pawl_status steps_run(struct ledger *c, struct led_applied *had, bool finish,
                                  struct pawl_err *err)
{
    struct pawl_err own = { 0 };
    /* Names in a step mean what they mean to the server, whatever others have put into schemas of
     * the session's path. */
    enum pawl_status st = pg_plain(c, "SET LOCAL search_path = pg_catalog, pg_temp", &own);
    if (st == PAWL_OK)
        st = led_steps_run(c, &steps, had, finish, &own);
    if (st != PAWL_OK && store_denied(&own))
        return err_set(err, st,
                       "database: schema \"%s\" is at step %d of %d, and role \"%.63s\" may not "
                       "change it (%s): run pawl migrate up as its owner",
                       c->schema, had->version, led_steps_wanted(&steps), PQuser(pg_of(c)->db),
                       pg_of(c)->said);
    if (st != PAWL_OK && err)
        *err = own;
    return st;
}

static enum pawl_status migrate_once(struct ledger *c, bool finish, struct pawl_err *err)
{
    struct led_applied had;
    struct led_params p = { 0 };
    AUTO(led_undo) struct ledger *tx = NULL;
    enum pawl_status st = led_begin(c, LED_WRITE, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    led_text(&p, bytes_of(c->schema));
    st = led_run(c, SQL_MIGRATION_LOCK, &p, NULL, err);
    if (st == PAWL_OK)
        st = led_applied_read(c, &steps, &had, err);
    if (st == PAWL_OK)
        st = led_steps_fit(&steps, &had, err);
    if (st != PAWL_OK || !led_steps_due(&steps, &had, finish))
        return st;
    CRASH_POINT("migrate.begin");
    PAUSE_POINT("migrate.begin");
    st = steps_run(c, &had, finish, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("migrate.before_commit");
    st = led_commit(TAKE(tx), NULL, err);
    CRASH_POINT("migrate.after_commit");
    return st;
}

enum pawl_status pg_migrate(struct store *s, bool finish, struct pawl_err *err)
{
    enum pawl_status st = PAWL_BUSY;
    for (int i = 0; i < MIGRATE_TRIES && st == PAWL_BUSY; i++)
        st = migrate_once(led_of(s), finish, err);
    return st;
}

enum pawl_status pg_schema(struct store *s, struct schema *out, struct pawl_err *err)
{
    return led_schema(led_of(s), &steps, out, err);
}
