/*
 * conn.c - opening a connection, its transactions, and what the server's errors mean.
 *
 * What must stay true: transactions are READ COMMITTED, so that a statement after a lock sees what
 * the former holder of the lock committed; text is UTF-8; and a caller is answered only after a
 * commit that waited for the disk. The last is a setting of the server, which the doctor checks.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/hook.h"
#include "base/limits.h"
#include "base/mem.h"
#include "store/pg/pg.h"

/* How long a transaction may be idle when the settings do not say. */
#define IDLE_US (60 * SEC_US)

/* ---- Errors ---------------------------------------------------------------------------------- */

static bool is(const char *state, const char *prefix)
{
    return strncmp(state, prefix, strlen(prefix)) == 0;
}

/* Lost a race with another transaction, or waited too long for its lock: retry. */
static bool passing(const char *state)
{
    return is(state, "40") || is(state, "55P03") || is(state, "23505");
}

static enum pawl_status status_of(const char *state)
{
    static const struct {
        const char *prefix;
        enum pawl_status status;
    } map[] = {
        { "40", PAWL_BUSY },       /* serialization, deadlock */
        { "55P03", PAWL_BUSY },    /* lock_timeout */
        { "57014", PAWL_BUSY },    /* statement_timeout */
        { "57P", PAWL_BUSY },      /* shutting down, starting up */
        { "08", PAWL_BUSY },       /* connection */
        { "53", PAWL_BUSY },       /* full disk, the server has no memory, too many connections */
        { "25006", PAWL_BUSY },    /* read-only: a standby, until it is promoted */
        { "58", PAWL_BUSY },       /* I/O */
        { "22021", PAWL_INVALID }, /* not a character of UTF-8 */
        { "42501", PAWL_INVALID }, /* no right: led_denied() */
        { "28", PAWL_INVALID },    /* login failed */
        { "3D000", PAWL_INVALID }, /* no such database */
    };
    for (size_t i = 0; i < COUNT_OF(map); i++)
        if (is(state, map[i].prefix))
            return map[i].status;
    return PAWL_BROKEN;
}

/* Of the first line: libpq ends its sentences with a newline. */
static int text_len(const char *text)
{
    size_t len = strcspn(text, "\n");
    return (int)MIN(len, (size_t)300);
}

enum pawl_status pg_fail(struct pg *c, const PGresult *r, struct led_doing doing,
                         struct pawl_err *err)
{
    const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
    const char *text = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    enum pawl_status st = PAWL_BUSY;
    if (!text)
        text = c->db ? PQerrorMessage(c->db) : "no connection";
    if (state)
        st = status_of(state);
    c->ledger.redo = c->ledger.redo || (state && passing(state));
    c->ledger.blocked = c->ledger.blocked || (state && is(state, "55P03"));
    snprintf(c->said, sizeof c->said, "%.*s", text_len(text), text);
    if (state && is(state, "42501") && !c->driver_only && c->db)
        return led_denied(PQuser(c->db), text, err);
    st = led_failed(st, NULL, doing, (struct bytes){ text, (size_t)text_len(text) }, err);
    if (err && state)
        snprintf(err->sqlstate, sizeof err->sqlstate, "%s", state);
    return st;
}

/* ---- Connecting ------------------------------------------------------------------------------ */

static void noticed(void *ctx, const PGresult *r)
{
    struct pg *c = ctx;
    const char *level = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
    c->warned = c->warned || (level && strcmp(level, "WARNING") == 0);
}

enum pawl_status pg_plain(struct ledger *l, const char *text, struct pawl_err *err)
{
    struct pg *c = pg_of(l);
    AUTO(pg_clear) PGresult *r = pg_exec(c, text);
    ExecStatusType st = PQresultStatus(r);
    return st == PGRES_COMMAND_OK || st == PGRES_TUPLES_OK ? PAWL_OK
                                                           : pg_fail(c, r, LED_PLAIN, err);
}

/* Is there a pooler? It reports another backend number than the server, and may use another backend
 * for each transaction: then nothing that belongs to a session can be relied on. */
static enum pawl_status probe(struct pg *c, struct pawl_err *err)
{
    AUTO(pg_clear)
    PGresult *r = pg_exec(c, "SELECT pg_backend_pid(), current_setting('server_encoding')");
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        return pg_fail(c, r, LED_PHASE("connecting"), err);
    c->pooled = strtol(PQgetvalue(r, 0, 0), NULL, 10) != PQbackendPID(c->db);
    const char *encoding = PQgetvalue(r, 0, 1);
    if (strcmp(encoding, "UTF8") != 0)
        return err_set(err, PAWL_INVALID, "database: its encoding is \"%.60s\", Pawl needs UTF8",
                       encoding);
    return PAWL_OK;
}

struct led_params pg_settings(const struct pg *c, bool local)
{
    struct led_params p = { 0 };
    led_int(&p, local);
    led_int(&p, c->idle_us / MS_US);
    return p;
}

/* For the session; behind a pooler each transaction begins with them instead. */
static enum pawl_status settings(struct pg *c, struct pawl_err *err)
{
    struct led_params p = pg_settings(c, false);
    enum pawl_status st = probe(c, err);
    if (st != PAWL_OK || c->pooled)
        return st;
    return led_run(&c->ledger, SQL_SETTINGS, &p, NULL, err);
}

static void disconnect(struct ledger *l)
{
    struct pg *c = pg_of(l);
    PQfinish(c->db);
    c->db = NULL;
    c->listening = false;
    memset(c->prepared, 0, sizeof c->prepared);
    pg_shapes_forget(c);
}

static enum pawl_status connect_now(struct ledger *l, struct pawl_err *err)
{
    struct pg *c = pg_of(l);
    /* The URL comes last, so that its options override these. */
    static const char *const names[] = {
        "connect_timeout",  "keepalives_idle",  "keepalives_interval",
        "keepalives_count", "tcp_user_timeout", "fallback_application_name",
        "client_encoding",  "dbname",           NULL
    };
    /* At first only the process that starts waits; later every caller does. */
    const char *const values[] = {
        c->known ? "2" : "10", "10", "5", "3", "30000", "pawl", "UTF8", c->url, NULL
    };
    c->db = PQconnectdbParams(names, values, 1);
    if (!c->db)
        return err_no_memory(err, "a connection");
    if (PQstatus(c->db) != CONNECTION_OK)
        return err_set(err, PAWL_BUSY, "database: connecting: %.*s",
                       text_len(PQerrorMessage(c->db)), PQerrorMessage(c->db));
    if (PQserverVersion(c->db) < 130000)
        return err_set(err, PAWL_INVALID, "database: PostgreSQL %d is too old, Pawl needs 13",
                       PQserverVersion(c->db) / 10000);
    c->known = true;
    PQsetNoticeReceiver(c->db, noticed, c);
    return settings(c, err);
}

/* A connection that could not leave pipeline mode is lost. */
static bool usable(const struct pg *c)
{
    return c->db && PQstatus(c->db) == CONNECTION_OK && PQpipelineStatus(c->db) == PQ_PIPELINE_OFF;
}

/* The server's last error and the end of the connection arrive one after the other. */
static bool still_usable(struct ledger *l, bool stale)
{
    struct pg *c = pg_of(l);
    if (c->db && stale && PQconsumeInput(c->db))
        PQconsumeInput(c->db);
    return usable(c);
}

enum pawl_status pg_connect(struct pg *c, struct pawl_err *err)
{
    static const struct led_conn_ops ops = { still_usable, disconnect, connect_now };
    return led_connect(&c->ledger, &c->conn, &ops, err);
}

/* ---- Transactions ---------------------------------------------------------------------------- */

static enum pawl_status autocommit(struct ledger *l, struct pawl_err *err)
{
    struct pg *c = pg_of(l);
    enum pawl_status st = pg_connect(c, err);
    led_conn_autocommits(&c->conn);
    if (st == PAWL_OK && PQtransactionStatus(c->db) != PQTRANS_IDLE)
        st = pg_plain(l, "ROLLBACK", err);
    return st;
}

static enum pawl_status begin(struct ledger *l, enum led_begin how, const struct led_batch *first,
                              struct pawl_err *err)
{
    struct pg *c = pg_of(l);
    struct pg_frame f = { .begin = how == LED_READ
                                       ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
                                       : "BEGIN ISOLATION LEVEL READ COMMITTED" };
    enum pawl_status st = autocommit(l, err);
    c->wrote = false;
    led_conn_begins(&c->conn, how, first);
    if (st == PAWL_OK)
        st = pg_batch_framed(c, first, &f, err);
    c->conn.patience_us = 0;
    return st;
}

static bool in_tx(struct ledger *l)
{
    const struct pg *c = pg_of(l);
    return usable(c) && PQtransactionStatus(c->db) != PQTRANS_IDLE;
}

static void rollback(struct ledger *l)
{
    /* The server counts it as ended, and own_commits does not: version() then reports a change that
     * was none, which costs one needless look. */
    if (in_tx(l)) {
        enum pawl_status undone = pg_plain(l, "ROLLBACK", NULL);
        (void)undone;
    }
}

/* After COMMIT is sent, a lost answer leaves open whether it committed: UNKNOWN. */
static enum pawl_status commit(struct ledger *l, const struct led_batch *last, struct pawl_err *err)
{
    struct pg *c = pg_of(l);
    struct pg_frame f = { .commit = true };
    c->warned = false;
    enum pawl_status st = pg_batch_framed(c, last, &f, err);
    store_commits(&l->base, false);
    if (f.committed == PG_COMMITTED && st == PAWL_OK && !c->warned) {
        c->own_commits += c->wrote;
        return PAWL_OK;
    }
    bool lost = f.committed == PG_SENT || (f.committed == PG_UNDONE && !usable(c));
    if (lost || (f.committed == PG_COMMITTED && c->warned))
        return err_set(err, PAWL_UNKNOWN, "database: the answer to COMMIT was lost");
    c->ledger.redo = c->ledger.redo && f.committed != PG_COMMITTED;
    if (f.committed == PG_COMMITTED)
        return err_set(err, PAWL_BROKEN, "database: a row that was locked was not there");
    return st != PAWL_OK ? st : err_set(err, PAWL_BUSY, "database: the commit was undone");
}

static const struct led_driver driver = {
    .cursors = true,
    .grabs = true,
    .inbox = true,
    .begin = begin,
    .autocommit = autocommit,
    .commit = commit,
    .rollback = rollback,
    .in_tx = in_tx,
    .query = pg_query,
    .batch = pg_batch,
    .numbers = pg_numbers,
    .plain = pg_plain,
    .script = pg_script,
};

/* ---- Opening --------------------------------------------------------------------------------- */

static enum pawl_status open_pg(const struct store_conf *conf, struct store **out,
                                struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    struct pg *c = mem_zalloc(sizeof *c);
    size_t len = strlen(conf->url) + 1;
    if (!c)
        return err_no_memory(err, "a connection");
    c->ledger.base.ops = &store_pg;
    s = &c->ledger.base;
    led_init(&c->ledger, conf, &driver);
    c->url = mem_alloc(len);
    if (!c->url)
        return err_no_memory(err, "a connection");
    memcpy(c->url, conf->url, len);
    c->driver_only = conf->role == STORE_DRIVER_ONLY;
    led_conn_init(&c->conn, conf);
    c->idle_us = conf->idle_us ? MAX(conf->idle_us, MS_US) : IDLE_US;
    enum pawl_status st = pg_connect(c, err);
    if (st != PAWL_OK)
        return st;
    *out = TAKE(s);
    return PAWL_OK;
}

static void close_pg(struct store *s)
{
    struct pg *c = pg_of(led_of(s));
    disconnect(&c->ledger);
    for (size_t i = 0; i < SQL_COUNT; i++)
        mem_free(c->texts[i]);
    pg_shapes_end(c);
    led_end(&c->ledger);
    if (c->url)
        explicit_bzero(c->url, strlen(c->url));
    mem_free(c->url);
    mem_free(c);
}

/* ---- Small slots ----------------------------------------------------------------------------- */

/* How many transactions that may have written have ended, without our own. The count is taken from
 * a snapshot, so a transaction is counted exactly when its rows become visible. */
static enum pawl_status version(struct store *s, int64_t *out, struct pawl_err *err)
{
    struct ledger *l = led_of(s);
    int64_t ended;
    enum pawl_status st = led_number_alone(l, SQL_VERSION, &ended, err);
    if (st == PAWL_OK)
        *out = ended - pg_of(l)->own_commits;
    return st;
}

const struct store_ops store_pg = {
    .name = "postgres",
    .traits = STORE_DURABLE | STORE_SHARED | STORE_HINTS | STORE_DRIVEN,
    .open = open_pg,
    .close = close_pg,
    .migrate = pg_migrate,
    .schema = pg_schema,
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
    .cancel_requests = led_cancel_requests,
    .look = led_feature_look,
    .now = led_now,
    .version = version,
    .hint = pg_hint,
    .steps = pg_steps,
    .grants = pg_grants,
    .grant = pg_grant,
    .doctor = pg_doctor,
    .sql = pg_sql,
};
