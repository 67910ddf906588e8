/*
 * guard.c - the application's own SQL, a handler's or a module's script, on the writer's
 * connection.
 *
 * It runs inside our transaction, so the guard (an authorizer) sees each of its statements when it
 * is prepared and refuses what would touch our tables, end our transaction or change the
 * connection. It is installed once and switched by a flag, because installing one expires every
 * prepared statement.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <strings.h>

#include "base/limits.h"
#include "store/sqlite/engine.h"

/* Instructions of SQLite's virtual machine between two readings of the clock: some tens of
 * microseconds. */
#define CLOCK_STEPS 1000

/* ---- The guard ------------------------------------------------------------------------------- */

static bool ours(const struct lite *c, const char *name)
{
    size_t len = strlen(c->ledger.schema);
    return name && strncasecmp(name, c->ledger.schema, len) == 0 && name[len] == '_';
}

/* `name`, then why it is refused. */
static int refuse(struct lite *c, const char *name, const char *why)
{
    snprintf(c->refused, sizeof c->refused, "%s %s", name ? name : "this", why);
    return SQLITE_DENY;
}

static int authorize(void *ctx, int action, const char *a, const char *b, const char *db,
                     const char *by)
{
    struct lite *c = ctx;
    (void)db;
    (void)by;
    if (!c->guard)
        return SQLITE_OK;
    switch (action) {
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
        return refuse(c, a,
                      "is not allowed here: Pawl commits the transaction with the call's result");
    case SQLITE_ATTACH:
        return refuse(c, "ATTACH", "cannot be used here");
    case SQLITE_DETACH:
        return refuse(c, "DETACH", "cannot be used here");
    case SQLITE_PRAGMA:
        return refuse(c, "PRAGMA", "cannot be used here");
    case SQLITE_SELECT:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    default: /* tables, indexes, views and triggers: `a` is its name, `b` what an index or trigger
                is on */
        if (ours(c, a))
            return refuse(c, a, "is one of Pawl's own tables");
        if (action != SQLITE_READ && action != SQLITE_UPDATE && ours(c, b))
            return refuse(c, b, "is one of Pawl's own tables");
        return SQLITE_OK;
    }
}

static int late(void *ctx)
{
    struct lite *c = ctx;
    c->sql_late = c->sql_until_us && world_mono(c->ledger.world) >= c->sql_until_us;
    return c->sql_late;
}

void lite_guard_init(struct lite *c)
{
    sqlite3_set_authorizer(c->db, authorize, c);
}

/* ---- One statement --------------------------------------------------------------------------- */

/* A mistake in the application's SQL is INVALID, with what SQLite said. Trouble of the database
 * keeps its status. */
static enum pawl_status their_fault(struct lite *c, int rc, struct pawl_err *err)
{
    int code = rc & 0xff;
    const char *state = "";
    if (c->refused[0])
        return err_set(err, PAWL_INVALID, "SQL: %s", c->refused);
    if (c->sql_late)
        return err_set(err, PAWL_BUSY, "SQL: its time is up");
    if (code == SQLITE_CONSTRAINT)
        state = "23000";
    else if (code == SQLITE_ERROR)
        state = "42000";
    else if (code == SQLITE_MISMATCH || code == SQLITE_RANGE || code == SQLITE_TOOBIG)
        state = "22000";
    else
        return lite_fail(c, rc, LED_PHASE("SQL"), err);
    enum pawl_status st = err_set(err, PAWL_INVALID, "SQL: %s", sqlite3_errmsg(c->db));
    if (err) {
        err->native = sqlite3_extended_errcode(c->db);
        snprintf(err->sqlstate, sizeof err->sqlstate, "%s", state);
    }
    return st;
}

static void statement_end(sqlite3_stmt **q)
{
    sqlite3_finalize(*q);
}

/* The next statement of the text, or NULL at its end. */
static enum pawl_status prepare_theirs(struct lite *c, struct bytes text, sqlite3_stmt **out,
                                       const char **out_tail, struct pawl_err *err)
{
    c->refused[0] = 0;
    c->guard = true;
    int rc = sqlite3_prepare_v3(c->db, text.data, (int)text.len, 0, out, out_tail);
    c->guard = false;
    return rc == SQLITE_OK ? PAWL_OK : their_fault(c, rc, err);
}

static enum pawl_status prepare_one(struct lite *c, struct bytes text, sqlite3_stmt **out,
                                    struct pawl_err *err)
{
    AUTO(statement_end) sqlite3_stmt *second = NULL;
    const char *tail;
    enum pawl_status st = prepare_theirs(c, text, out, &tail, err);
    if (st != PAWL_OK)
        return st;
    if (!*out)
        return err_set(err, PAWL_INVALID, "SQL: the text has no statement");
    struct bytes rest = { tail, text.len - (size_t)(tail - text.data) };
    st = prepare_theirs(c, rest, &second, &tail, err);
    if (st != PAWL_OK || second)
        return err_set(err, PAWL_INVALID, "SQL: more than one statement");
    return PAWL_OK;
}

static enum pawl_status bind_all(struct lite *c, sqlite3_stmt *q, const struct sql_query *ask,
                                 struct pawl_err *err)
{
    size_t wants = (size_t)sqlite3_bind_parameter_count(q);
    if (wants != ask->n_params)
        return err_set(err, PAWL_INVALID, "SQL: it has %zu parameters and was given %zu", wants,
                       ask->n_params);
    for (int i = 1; i <= (int)ask->n_params; i++) {
        const struct pawl_value *v = &ask->params[i - 1];
        const char *data = v->data ? v->data : "";
        int rc = SQLITE_OK;
        switch (v->kind) {
        case PAWL_V_NULL:
            rc = sqlite3_bind_null(q, i);
            break;
        case PAWL_V_INT:
            rc = sqlite3_bind_int64(q, i, v->i);
            break;
        case PAWL_V_REAL:
            rc = sqlite3_bind_double(q, i, v->r);
            break;
        case PAWL_V_TEXT:
            rc = sqlite3_bind_text64(q, i, data, v->len, SQLITE_STATIC, SQLITE_UTF8);
            break;
        case PAWL_V_BLOB:
            rc = sqlite3_bind_blob64(q, i, data, v->len, SQLITE_STATIC);
            break;
        }
        if (rc != SQLITE_OK)
            return their_fault(c, rc, err);
    }
    return PAWL_OK;
}

static bool value_read(struct arena *a, sqlite3_stmt *q, int i, struct pawl_value *out)
{
    *out = (struct pawl_value){ .kind = PAWL_V_NULL };
    switch (sqlite3_column_type(q, i)) {
    case SQLITE_INTEGER:
        *out = (struct pawl_value){ .kind = PAWL_V_INT, .i = sqlite3_column_int64(q, i) };
        return true;
    case SQLITE_FLOAT:
        *out = (struct pawl_value){ .kind = PAWL_V_REAL, .r = sqlite3_column_double(q, i) };
        return true;
    case SQLITE_TEXT:
        out->kind = PAWL_V_TEXT;
        break;
    case SQLITE_BLOB:
        out->kind = PAWL_V_BLOB;
        break;
    default:
        return true;
    }
    struct bytes copy = arena_copy(a, lite_column(q, i));
    out->data = copy.data;
    out->len = copy.len;
    return copy.data != NULL;
}

/* Make room for one more row, by doubling. */
static struct pawl_value *rows_grow(struct arena *a, struct pawl_value *v,
                                    const struct pawl_rows *r)
{
    if (r->n != 0 && (r->n < 8 || (r->n & (r->n - 1)) != 0))
        return v;
    size_t cap = r->n ? r->n * 2 : 8;
    struct pawl_value *more = arena_zalloc(a, cap * r->columns, sizeof *more);
    if (more && v)
        memcpy(more, v, r->n * r->columns * sizeof *more);
    return more;
}

static enum pawl_status rows_read(struct lite *c, struct arena *a, sqlite3_stmt *q,
                                  struct pawl_rows *out, struct pawl_err *err)
{
    struct pawl_value *v = NULL;
    int rc;
    out->columns = (size_t)sqlite3_column_count(q);
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        if (out->n == SQL_ROWS_MAX)
            return err_set(err, PAWL_TOO_LARGE, "SQL: more than %d rows", SQL_ROWS_MAX);
        v = rows_grow(a, v, out);
        bool ok = v != NULL;
        for (size_t i = 0; ok && i < out->columns; i++)
            ok = value_read(a, q, (int)i, &v[out->n * out->columns + i]);
        if (!ok)
            return err_no_memory(err, "rows");
        out->v = v;
        out->n++;
    }
    return rc == SQLITE_DONE ? PAWL_OK : their_fault(c, rc, err);
}

static enum pawl_status run_theirs(struct lite *c, struct arena *a, const struct sql_query *ask,
                                   struct pawl_rows *out, struct pawl_err *err)
{
    AUTO(statement_end) sqlite3_stmt *q = NULL;
    size_t len = strnlen(ask->sql, SQL_LEN_MAX + 1);
    if (len > SQL_LEN_MAX)
        return err_set(err, PAWL_TOO_LARGE, "SQL: more than %d bytes", SQL_LEN_MAX);
    enum pawl_status st = prepare_one(c, (struct bytes){ ask->sql, len }, &q, err);
    if (st == PAWL_OK)
        st = bind_all(c, q, ask, err);
    if (st != PAWL_OK)
        return st;
    int64_t before = sqlite3_total_changes64(c->db);
    st = rows_read(c, a, q, out, err);
    /* changes() keeps its number over statements that change nothing. */
    if (st == PAWL_OK && sqlite3_total_changes64(c->db) != before)
        out->changed = sqlite3_changes64(c->db);
    return st;
}

/* One statement, inside the running transaction and until its deadline. */
static enum pawl_status theirs(struct lite *c, struct arena *a, const struct sql_query *q,
                               struct pawl_rows *out, struct pawl_err *err)
{
    c->sql_until_us = q->deadline_us;
    if (late(c))
        return err_set(err, PAWL_BUSY, "SQL: its time is up");
    sqlite3_progress_handler(c->db, CLOCK_STEPS, late, c);
    enum pawl_status st = run_theirs(c, a, q, out, err);
    sqlite3_progress_handler(c->db, 0, NULL, NULL);
    c->sql_late = false;
    return st;
}

enum pawl_status lite_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                          struct pawl_rows *out, struct pawl_err *err)
{
    struct led_tx *t = (struct led_tx *)tx;
    struct lite *c = lite_in(t->c);
    *out = (struct pawl_rows){ 0 };
    if (t->lost)
        return err_set(err, PAWL_STATE, "SQL: the transaction was rolled back before");
    enum pawl_status st = theirs(c, a, q, out, err);
    /* OR ROLLBACK, or a full disk: the whole transaction may be gone. */
    t->lost = sqlite3_get_autocommit(c->db);
    return st;
}

/* ---- A script -------------------------------------------------------------------------------- */

static enum pawl_status script_run(struct lite *c, struct bytes text, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    while (st == PAWL_OK && text.len) {
        AUTO(statement_end) sqlite3_stmt *q = NULL;
        const char *tail;
        st = prepare_theirs(c, text, &q, &tail, err);
        if (st != PAWL_OK || !q)
            return st;
        int rc;
        while ((rc = sqlite3_step(q)) == SQLITE_ROW)
            ;
        if (rc != SQLITE_DONE)
            st = their_fault(c, rc, err);
        text = (struct bytes){ tail, text.len - (size_t)(tail - text.data) };
    }
    return st;
}

enum pawl_status lite_theirs_script(struct lite *c, struct bytes text, struct pawl_err *err)
{
    enum pawl_status st = lite_say(c, "SAVEPOINT script", err);
    if (st != PAWL_OK)
        return st;
    st = script_run(c, text, err);
    bool undo = st == PAWL_INVALID && !sqlite3_get_autocommit(c->db);
    if (st != PAWL_OK && !undo)
        return st;
    struct pawl_err end;
    enum pawl_status ended = undo ? lite_say(c, "ROLLBACK TO script", &end) : PAWL_OK;
    if (ended == PAWL_OK)
        ended = lite_say(c, "RELEASE script", &end);
    if (ended == PAWL_OK)
        return st;
    if (err)
        *err = end;
    return ended;
}
