/*
 * grants.c - the rights of roles on the schema's tables and functions.
 *
 * The steps themselves grant nothing: only the user knows the names of roles. What must stay true:
 * a role that only submits cannot read a table, one that only monitors cannot read what calls
 * contain, and no role can make the owner run its code.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/pg/pg.h"

static const char app[] =
    "-- %1$s submits in its own transactions, and sees the calls it submitted.\n"
    "GRANT USAGE ON SCHEMA \"%2$s\" TO \"%1$s\";\n"
    "GRANT EXECUTE ON FUNCTION \"%2$s\".submit, \"%2$s\".signal TO \"%1$s\";\n"
    "GRANT SELECT ON \"%2$s\".own_calls TO \"%1$s\";\n";

static const char monitor[] =
    "-- %1$s sees every call, but not what it carries: inputs, results, errors and tags.\n"
    "GRANT USAGE ON SCHEMA \"%2$s\" TO \"%1$s\";\n"
    "GRANT SELECT (id, seq, type, method, key, key_no, queue, priority, status, attempts, lost,\n"
    "              redrives, node, caller, client, parent, trace_id, created_at, run_at,\n"
    "              claimed_at, started_at, finished_at, expires_at, keep_until)\n"
    "  ON \"%2$s\".calls TO \"%1$s\";\n"
    "GRANT SELECT (n, id, type, method, key, queue, client, code, reason, created_at, refused_at)\n"
    "  ON \"%2$s\".inbox_conflicts TO \"%1$s\";\n"
    "GRANT SELECT (id, cron_name, scheduled_time, timezone, status, reason, count, call, node_id,\n"
    "              started_at, completed_at)\n"
    "  ON \"%2$s\".cron_runs TO \"%1$s\";\n"
    "GRANT SELECT (id, workflow_name, status, current_step, started_at, completed_at,\n"
    "              compensation_status, trace_id, version)\n"
    "  ON \"%2$s\".workflow_runs TO \"%1$s\";\n"
    "GRANT SELECT (id, workflow_run_id, step_name, no, kind, status, attempts, node, started_at,\n"
    "              completed_at)\n"
    "  ON \"%2$s\".workflow_steps TO \"%1$s\";\n";

/* What versions before schema step 7 granted is revoked first: CREATE in the schema, or TRIGGER
 * on one of its tables, lets a role run code with the owner's rights, through `submit`. */
static const char admin[] =
    "-- %1$s runs nodes: it reads and writes every table, and creates or alters nothing.\n"
    "DO $$ BEGIN\n"
    "  IF EXISTS (SELECT FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r\n"
    "             ON r.oid = n.nspowner WHERE n.nspname = '%2$s' AND r.rolname = '%1$s') THEN\n"
    "    RAISE EXCEPTION USING ERRCODE = 'invalid_grant_operation', MESSAGE =\n"
    "      'role \"%1$s\" owns schema \"%2$s\", and may do everything there already';\n"
    "  END IF;\n"
    "END $$;\n"
    "REVOKE ALL ON SCHEMA \"%2$s\" FROM \"%1$s\";\n"
    "REVOKE ALL ON ALL TABLES IN SCHEMA \"%2$s\" FROM \"%1$s\";\n"
    "REVOKE ALL ON ALL SEQUENCES IN SCHEMA \"%2$s\" FROM \"%1$s\";\n"
    "GRANT USAGE ON SCHEMA \"%2$s\" TO \"%1$s\";\n"
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \"%2$s\" TO \"%1$s\";\n"
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA \"%2$s\" TO \"%1$s\";\n"
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA \"%2$s\" TO \"%1$s\";\n"
    "-- The same for what later steps make, when the role that runs this applies them.\n"
    "ALTER DEFAULT PRIVILEGES IN SCHEMA \"%2$s\"\n"
    "  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO \"%1$s\";\n"
    "ALTER DEFAULT PRIVILEGES IN SCHEMA \"%2$s\" GRANT USAGE, SELECT ON SEQUENCES TO \"%1$s\";\n"
    "ALTER DEFAULT PRIVILEGES IN SCHEMA \"%2$s\" GRANT EXECUTE ON FUNCTIONS TO \"%1$s\";\n";

/* One role's part; "" for a role that is left out. */
#define PART(text, role) ((role) ? arena_printf(a, text, role, schema) : "")

enum pawl_status pg_grants(const struct store_conf *conf, const struct roles *roles,
                           struct arena *a, const char **out, struct pawl_err *err)
{
    const char *schema = conf->schema ? conf->schema : "pawl";
    const char *parts[] = { PART(app, roles->app), PART(monitor, roles->monitor),
                            PART(admin, roles->admin) };
    if (a->failed)
        return err_no_memory(err, "printing grants");
    *out = arena_printf(a, "%s%s%s", parts[0], parts[1], parts[2]);
    return *out ? PAWL_OK : err_no_memory(err, "printing grants");
}

/* The server only warns of a GRANT that had no effect, so the connected role must own it all. */
static enum pawl_status owns_schema(struct ledger *c, struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = NULL;
    struct led_params p = { 0 };
    struct led_rows *r = NULL;
    enum pawl_status st = led_begin(c, LED_READ, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    led_text(&p, bytes_of(c->schema));
    st = led_query(c, SQL_MIGRATION_FOREIGN, &p, &r, err);
    if (st != PAWL_OK || r->n == 0)
        return st;
    struct bytes what = led_get(r, 0, 0), owner = led_get(r, 0, 1);
    return err_set(err, PAWL_INVALID,
                   "database: role \"%.63s\" may not grant: %.*s belongs to role \"%.*s\"; run "
                   "pawl migrate grants --apply as the role that owns all of it",
                   PQuser(pg_of(c)->db), BYTES_ARG(what), BYTES_ARG(owner));
}

/* A name that cannot be granted to is the user's mistake, whatever its SQLSTATE. */
static enum pawl_status grant_failed(const struct pg *c, const struct pawl_err *own,
                                     struct pawl_err *err)
{
    static const char undefined_object[] = "42704", reserved_name[] = "42939",
                      invalid_grant[] = "0LP01";
    const char *state = own->sqlstate;
    bool missing = strcmp(state, undefined_object) == 0;
    if (!missing && strcmp(state, reserved_name) != 0 && strcmp(state, invalid_grant) != 0) {
        if (err)
            *err = *own;
        return own->status;
    }
    return err_set(err, PAWL_INVALID, "database: %s%s", c->said,
                   missing ? ": CREATE ROLE comes first" : "");
}

enum pawl_status pg_grant(struct store *s, const char *sql, struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    struct pawl_err own = { 0 };
    AUTO(led_undo) struct ledger *tx = NULL;
    enum pawl_status st = owns_schema(c, err);
    if (st == PAWL_OK)
        st = led_grantable(c, err);
    if (st == PAWL_OK)
        st = led_begin(c, LED_WRITE, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = pg_plain(c, sql, &own);
    return st == PAWL_OK ? led_commit(TAKE(tx), NULL, err) : grant_failed(pg_of(c), &own, err);
}
