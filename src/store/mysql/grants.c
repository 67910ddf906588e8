/*
 * grants.c - the rights of accounts on the tables of one schema.
 *
 * These servers have no row-level rights, and our schema has no functions here: an account has
 * rights on tables and columns. So `app` is an application that links the library and submits with
 * it, `monitor` reads every column but those that hold contents, `admin` runs nodes. Text for GRANT
 * is made here because tables carry the schema's name as a prefix. What must stay true: none of
 * them may alter a table.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <mariadb/mysqld_error.h>
#include <stdio.h>

#include "base/buf.h"
#include "store/mysql/mydb.h"

#define GRANTS_LEN_MAX (64 << 10)
#define NAME_LEN_MAX 64

/* A right, and the tables it is about, without their prefix. */
struct right {
    const char *right;
    const char *tables[24];
};

/* What accepting a call, reading it and waiting for its end touch. Rows in `hint` go when they are
 * added up, those in `change` when their connection has been silent for a day; `meta` has the row
 * that makers of lanes lock. */
static const struct right app_rights[] = {
    { "SELECT",
      { "attempt", "cancel", "change", "expiry",    "find",  "gone",    "guard",   "hint",
        "id",      "key",    "lane",   "leader",    "lease", "line",    "number",  "object",
        "outcome", "queue",  "ready",  "migration", "node",  "version", "workflow" } },
    { "SELECT, INSERT", { "call", "tag" } },
    { "SELECT, INSERT, UPDATE", { "reserve" } },
    { "SELECT, UPDATE", { "meta" } },
    { "INSERT",
      { "change", "expiry", "find", "hint", "id", "key", "lane", "line", "number", "ready" } },
    { "UPDATE", { "change", "key", "lane" } },
    { "DELETE", { "change", "hint" } },
};

/* Columns without contents. Of what a call carries nothing is named here: input, options, tags,
 * result, error, state; nor its fingerprint, which would confirm a guess. */
static const struct {
    const char *table, *columns;
} monitor_columns[] = {
    { "archive", "seq, id, status, queue, type, method, `key`, key_no, attempts, lost, redrives,\n"
                 "  priority, node, created_at, run_at, started_at, finished_at, archived_at, "
                 "caller,\n  client, parent, trace, needs" },
    { "attempt", "seq, no, try, how, status, node, started_at, finished_at" },
    { "call", "seq, id, lane, method, `key`, form, priority, created_at, run_at, expires_at, "
              "caller,\n  client, parent, trace" },
    { "cancel", "seq, wished_at" },
    { "expiry", "expires_at, seq" },
    { "find", "kind, value, seq" },
    { "gone", "seq, id, status, created_at, finished_at, forget_at" },
    { "hint", "n, `key`, waiting, later" },
    { "id", "id, seq" },
    { "key", "`key`, state, head, head_pos, head_no, next_no, held, waiting, later, since,\n"
             "  ended_at, blocked" },
    { "lane", "lane, queue, type, needs, gate, retired_at" },
    { "leader", "role, node, boot, epoch, acquired_at, `until`" },
    { "lease", "node, boot, worker, claimed_at, `until`, low, high, held, width" },
    { "line", "`key`, pos, seq, lane, priority, run_at, due, attempts, lost, redrives, key_no" },
    { "meta", "name, value" },
    { "migration", "number, word, checksum, applied_at, finished" },
    { "node", "node, boot, host, version, dead, slots, busy, beats, started_at, beat_at,\n"
              "  address, roles, queues, has, state, drain, connections, cpu_milli, memory" },
    { "object", "`key`, type, form, version, updated_at" },
    { "outcome", "seq, status, form, attempts, lost, redrives, key_no, node, claimed_at,\n"
                 "  started_at, finished_at, keep_until, bad" },
    { "queue", "queue, paused" },
    { "reserve", "name, upto" },
    { "ready", "seq, track, `rank`, run_at, attempts, lost, redrives, pos, key_no" },
    { "schedule", "name, version, paused, zone_data, due_at, next_at, next_local, last_at,\n"
                  "  last_local, last_id, last_seq, waiting_at, created_at, updated_at" },
    { "tick", "name, at, no, kind, reason, zone, count, call_id, node, created_at" },
    { "workflow", "seq, rev, generation, version, next_no, steps, bytes, waits, deadline,\n"
                  "  next_signal, unread, flags, undoing_at, reason, compensation, undone,\n"
                  "  last_done_at, created_at, name, shown, wait_at" },
    { "step", "seq, no, name, nth, kind, status, form, attempts, undos, until_at, awaits, node,\n"
              "  started_at, completed_at" },
    { "signal", "seq, no, name, form, at, used, used_at, old_at" },
    { "published", "seq, name, form, at" },
    { "child", "parent, child, id, awaited, ended, no" },
    { "workflow_runs", "id, workflow_name, status, current_step, started_at, completed_at,\n"
                       "  compensation_status, trace_id, version" },
    { "workflow_steps", "id, workflow_run_id, step_name, no, kind, status, attempts, node,\n"
                        "  started_at, completed_at" },
    { "cron_runs", "id, cron_name, scheduled_time, timezone, status, reason, count, `call`,\n"
                   "  node_id, started_at, completed_at" },
};

/* For a GRANT to an account that does not exist MariaDB creates one without a password, unless this
 * mode is set; MySQL 8 never does, and has no such mode. */
static const char no_new_accounts[] =
    "SET @pawl_grants = 1\n"
    "/*M!, SESSION sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_CREATE_USER') */;\n";

struct grants_text {
    struct buf b;
    const char *schema, *database;
};

/* 'user'@'host' where a host is given, else a role, or the account for every host. */
static void add_account(struct buf *b, const char *name)
{
    const char *at = strrchr(name, '@');
    if (at)
        buf_addf(b, "'%.*s'@'%s'", (int)(at - name), name, at + 1);
    else
        buf_addf(b, "'%s'", name);
}

static void add_grant(struct grants_text *s, const char *right, const char *table,
                      const char *account)
{
    buf_addf(&s->b, "GRANT %s ON `", right);
    for (const char *c = s->database; *c; c++)
        buf_addf(&s->b, *c == '`' ? "``" : "%c", *c);
    buf_addf(&s->b, "`.`%s_%s` TO ", s->schema, table);
    add_account(&s->b, account);
    buf_add_text(&s->b, ";\n");
}

/* GRANT USAGE grants nothing, and fails for an account that does not exist. It comes before the
 * first right of all accounts, because each GRANT commits by itself. */
static void add_probes(struct grants_text *s, const struct roles *roles)
{
    const char *const names[] = { roles->app, roles->monitor, roles->admin };
    buf_add_text(&s->b, "-- Nothing is granted unless every account exists.\n");
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i])
            add_grant(s, "USAGE", "migration", names[i]);
}

static void add_app(struct grants_text *s, const char *account)
{
    buf_addf(&s->b,
             "-- %s submits with the library, and reads: it sees every call, and ends none.\n",
             account);
    for (size_t i = 0; i < COUNT_OF(app_rights); i++)
        for (const char *const *table = app_rights[i].tables; *table; table++)
            add_grant(s, app_rights[i].right, *table, account);
}

static void add_monitor(struct grants_text *s, const char *account)
{
    buf_addf(&s->b,
             "-- %s sees every call, but not what it carries: inputs, results, errors, states and "
             "tags.\n",
             account);
    for (size_t i = 0; i < COUNT_OF(monitor_columns); i++) {
        char right[600];
        snprintf(right, sizeof right, "SELECT (%s)", monitor_columns[i].columns);
        add_grant(s, right, monitor_columns[i].table, account);
    }
}

/* Grant this right on every table or view whose name stands behind `makes` in a text. */
static void add_made(struct grants_text *s, const char *text, const char *makes, const char *right,
                     const char *account)
{
    for (const char *at = text; (at = strstr(at, makes));) {
        char table[NAME_LEN_MAX];
        at += strlen(makes);
        snprintf(table, sizeof table, "%.*s", (int)strcspn(at, " (\n"), at);
        add_grant(s, right, table, account);
    }
}

static void add_tables(struct grants_text *s, const char *text, const char *account)
{
    add_made(s, text, "CREATE TABLE IF NOT EXISTS pawl_", "SELECT, INSERT, UPDATE, DELETE",
             account);
    add_made(s, text, "CREATE OR REPLACE VIEW pawl_", "SELECT", account);
}

/* Every table that a step makes, so that none is forgotten. */
static void add_admin(struct grants_text *s, const char *account)
{
    buf_addf(&s->b, "-- %s runs nodes: it reads and writes every table, and alters none.\n",
             account);
    add_tables(s, sql_mysql[SQL_MIGRATION_TABLE], account);
    for (const struct sql_migration *m = sql_mysql_migrations; m->number; m++)
        add_tables(s, m->expand, account);
}

enum pawl_status mydb_grants(const struct store_conf *conf, const struct roles *roles,
                             struct arena *a, const char **out, struct pawl_err *err)
{
    struct mydb_url url;
    enum pawl_status st = mydb_url_read(conf->url, &url, err);
    if (st != PAWL_OK)
        return st;
    struct grants_text s = { .schema = conf->schema ? conf->schema : "pawl",
                             .database = url.database };
    buf_init(&s.b, GRANTS_LEN_MAX);
    buf_add_text(&s.b, no_new_accounts);
    add_probes(&s, roles);
    if (roles->app)
        add_app(&s, roles->app);
    if (roles->monitor)
        add_monitor(&s, roles->monitor);
    if (roles->admin)
        add_admin(&s, roles->admin);
    *out = buf_ok(&s.b) ? arena_text(a, buf_bytes(&s.b)) : NULL;
    buf_release(&s.b);
    mydb_url_release(&url);
    return *out ? PAWL_OK : err_no_memory(err, "printing grants");
}

/* The account of a GRANT: the text after its last " TO ". */
static struct bytes grantee(struct bytes sql)
{
    static const char to[] = " TO ";
    const char *at = sql.data, *found = sql.data + sql.len;
    while ((at = memmem(at, (size_t)(sql.data + sql.len - at), to, sizeof to - 1)))
        found = at += sizeof to - 1;
    return (struct bytes){ found, (size_t)(sql.data + sql.len - found) };
}

static enum pawl_status grant_failed(struct mydb *c, struct bytes sql, const struct pawl_err *own,
                                     struct pawl_err *err)
{
    struct bytes account = grantee(sql);
    if (own->native == ER_PASSWORD_NO_MATCH || own->native == ER_CANT_CREATE_USER_WITH_GRANT)
        return err_set(err, PAWL_INVALID,
                       "database: account %.*s does not exist: CREATE USER comes first (an account "
                       "that is not for every host is called user@host)",
                       BYTES_ARG(account));
    if (store_denied(own))
        return err_set(
            err, PAWL_INVALID,
            "database: account \"%.80s\" may not grant (%.200s): run pawl migrate grants "
            "--apply as the owner of the tables, who has its rights WITH GRANT OPTION",
            c->url.user ? c->url.user : "?", mysql_error(c->db));
    if (err)
        *err = *own;
    return own->status;
}

/* Each GRANT commits by itself here: after a failure in the middle those before it stand, and the
 * whole may be run again. */
enum pawl_status mydb_grant(struct store *s, const char *sql, struct pawl_err *err)
{
    static const char between[] = ";\n";
    struct mydb *c = mydb_of(led_of(s));
    enum pawl_status st = led_grantable(&c->ledger, err);
    for (const char *at = sql, *end; st == PAWL_OK && (end = strstr(at, between));
         at = end + sizeof between - 1) {
        struct pawl_err own = { 0 };
        struct bytes one = { at, (size_t)(end - at) };
        char *text = arena_text(&c->ledger.scratch, one);
        if (!text)
            return err_no_memory(err, "a grant");
        st = mydb_say(c, text, NULL, &own);
        if (st != PAWL_OK)
            return grant_failed(c, one, &own, err);
    }
    return st;
}
