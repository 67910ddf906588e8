/*
 * sql.c - the application's own SQL: a handler's, and a module's script.
 *
 * A handler's runs on the connection of the store, inside our transaction, as a prepared statement:
 * one at a time, parameters apart. A statement that fails is undone by itself. What would end our
 * transaction, which is also everything that defines tables, or change the connection is refused by
 * its first word; that the transaction still stands is checked after each statement. A script
 * defines tables, so it runs on a connection of its own.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <mariadb/mysqld_error.h>
#include <stdio.h>
#include <strings.h>

#include "base/limits.h"
#include "store/mysql/mydb.h"

/* The buffer for a column's value; a longer value is fetched again into one of its length. */
#define CELL_FIRST 256
#define COLUMNS_MAX 256

/* ---- What may be said ------------------------------------------------------------------------ */

/* Skip white space and comments, but not comments that the server executes. */
static const char *first_word(const char *at)
{
    for (;;) {
        while (isspace((unsigned char)*at) || *at == ';' || *at == '(')
            at++;
        if ((at[0] == '-' && at[1] == '-') || at[0] == '#') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*' && at[2] != '!' && at[2] != 'M') {
            const char *end = strstr(at + 2, "*/");
            at = end ? end + 2 : at + strlen(at);
        } else {
            return at;
        }
    }
}

static const char *refused_word(const char *sql)
{
    static const char *const words[] = {
        "ALTER",   "ANALYZE",  "BEGIN",  "CACHE", "CALL",       "CHANGE",    "CHECK",
        "COMMIT",  "CREATE",   "DROP",   "END",   "EXECUTE",    "FLUSH",     "GRANT",
        "INSTALL", "KILL",     "LOAD",   "LOCK",  "OPTIMIZE",   "PREPARE",   "PURGE",
        "RELEASE", "RENAME",   "REPAIR", "RESET", "REVOKE",     "ROLLBACK",  "SAVEPOINT",
        "SET",     "SHUTDOWN", "START",  "STOP",  "TRUNCATE",   "UNINSTALL", "UNLOCK",
        "USE",     "XA",       "/*!",    "/*M",   "DEALLOCATE",
    };
    const char *at = first_word(sql);
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        size_t len = strlen(words[i]);
        if (strncasecmp(at, words[i], len) == 0 &&
            (words[i][0] == '/' || (!isalnum((unsigned char)at[len]) && at[len] != '_')))
            return words[i];
    }
    return NULL;
}

static const char *past_string(const char *at)
{
    char quote = *at++;
    while (*at && *at != quote)
        at += *at == '\\' && at[1] ? 2 : 1;
    return *at ? at + 1 : at;
}

static bool in_name(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_' || ch == '$';
}

/* The first of our tables that a text names outside strings; 0: none. Rights cannot do this,
 * because handlers and Pawl share one account. */
static size_t own_table(const char *schema, const char *sql, const char **out)
{
    static const char *const names[] = {
        "archive", "attempt", "bucket",    "call",  "cancel",  "change",    "child",    "expiry",
        "find",    "gone",    "guard",     "hint",  "id",      "inbox",     "key",      "lane",
        "leader",  "lease",   "limits",    "line",  "meta",    "migration", "node",     "number",
        "object",  "outcome", "published", "queue", "ready",   "reserve",   "schedule", "signal",
        "slot",    "step",    "tag",       "tick",  "version", "workflow",
    };
    size_t len = strlen(schema);
    for (const char *at = sql; *at;) {
        if (*at == '\'' || *at == '"') {
            at = past_string(at);
            continue;
        }
        size_t word = 0;
        while (in_name(at[word]))
            word++;
        for (size_t i = 0; word > len + 1 && i < COUNT_OF(names); i++) {
            if (word == len + 1 + strlen(names[i]) && strncasecmp(at, schema, len) == 0 &&
                at[len] == '_' && strncasecmp(at + len + 1, names[i], word - len - 1) == 0) {
                *out = at;
                return word;
            }
        }
        at += MAX(word, 1);
    }
    return 0;
}

/* INVALID for a statement that a handler may not run. */
static enum pawl_status check_own(const struct ledger *c, const char *sql, struct pawl_err *err)
{
    const char *name;
    size_t len = own_table(c->schema, sql, &name);
    if (len)
        return err_set(err, PAWL_INVALID, "SQL: %.*s is a table of Pawl's own", (int)len, name);
    return PAWL_OK;
}

/* A mistake in the application's SQL is INVALID, with what the server said. Trouble of the database
 * keeps its status. */
static enum pawl_status their_fault(struct mydb *c, unsigned code, const char *state,
                                    const char *text, struct pawl_err *err)
{
    bool redo = c->ledger.redo;
    enum pawl_status st = mydb_fail(c, code, text, LED_PHASE("SQL"), err);
    c->ledger.redo = redo; /* a handler has run and cannot run again */
    if (st == PAWL_BROKEN || st == PAWL_INVALID || st == PAWL_TOO_LARGE)
        st = err_set(err, PAWL_INVALID, "SQL: %.300s", text);
    if (err) {
        err->native = (int)code;
        snprintf(err->sqlstate, sizeof err->sqlstate, "%s", state);
    }
    return st;
}

static enum pawl_status statement_failed(struct mydb *c, MYSQL_STMT *q, struct pawl_err *err)
{
    return their_fault(c, mysql_stmt_errno(q), mysql_stmt_sqlstate(q), mysql_stmt_error(q), err);
}

/* ---- Values in ------------------------------------------------------------------------------- */

static enum pawl_status bind_all(struct arena *a, MYSQL_STMT *stmt, const struct sql_query *q,
                                 struct pawl_err *err)
{
    if (q->n_params > SQL_PARAMS_MAX)
        return err_set(err, PAWL_TOO_LARGE, "SQL: more than %d parameters", SQL_PARAMS_MAX);
    if (mysql_stmt_param_count(stmt) != q->n_params)
        return err_set(err, PAWL_INVALID, "SQL: it has %lu parameters, and %zu were given",
                       mysql_stmt_param_count(stmt), q->n_params);
    MYSQL_BIND *v = arena_zalloc(a, q->n_params + 1, sizeof *v);
    if (!v)
        return err_no_memory(err, "parameters");
    for (size_t i = 0; i < q->n_params; i++) {
        const struct pawl_value *p = &q->params[i];
        switch (p->kind) {
        case PAWL_V_NULL:
            v[i].buffer_type = MYSQL_TYPE_NULL;
            break;
        case PAWL_V_INT:
            v[i].buffer_type = MYSQL_TYPE_LONGLONG;
            v[i].buffer = (void *)&p->i;
            break;
        case PAWL_V_REAL:
            v[i].buffer_type = MYSQL_TYPE_DOUBLE;
            v[i].buffer = (void *)&p->r;
            break;
        case PAWL_V_TEXT:
        case PAWL_V_BLOB:
            v[i].buffer_type = p->kind == PAWL_V_TEXT ? MYSQL_TYPE_STRING : MYSQL_TYPE_BLOB;
            v[i].buffer = (void *)(p->data ? p->data : "");
            v[i].buffer_length = p->len;
            break;
        }
    }
    if (q->n_params && mysql_stmt_bind_param(stmt, v) != 0)
        return err_set(err, PAWL_INVALID, "SQL: %.300s", mysql_stmt_error(stmt));
    return PAWL_OK;
}

/* ---- Values out ------------------------------------------------------------------------------ */

struct cell {
    int64_t i;
    double r;
    char *data;
    unsigned long len;
    my_bool null, cut;
};

static enum pawl_value_kind kind_of(const MYSQL_FIELD *f)
{
    switch (f->type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
        return PAWL_V_INT;
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE:
        return PAWL_V_REAL;
    case MYSQL_TYPE_NULL:
        return PAWL_V_NULL;
    case MYSQL_TYPE_TINY_BLOB:
    case MYSQL_TYPE_BLOB:
    case MYSQL_TYPE_MEDIUM_BLOB:
    case MYSQL_TYPE_LONG_BLOB:
    case MYSQL_TYPE_STRING:
    case MYSQL_TYPE_VAR_STRING:
    case MYSQL_TYPE_VARCHAR:
    case MYSQL_TYPE_BIT:
        return f->charsetnr == 63 ? PAWL_V_BLOB : PAWL_V_TEXT; /* 63: bytes */
    default:
        return PAWL_V_TEXT;
    }
}

static bool bind_columns(struct arena *a, const MYSQL_FIELD *fields, unsigned n, MYSQL_BIND *v,
                         struct cell *cells)
{
    for (unsigned i = 0; i < n; i++) {
        enum pawl_value_kind kind = kind_of(&fields[i]);
        struct cell *to = &cells[i];
        v[i] = (MYSQL_BIND){ .is_null = &to->null, .error = &to->cut, .length = &to->len };
        if (kind == PAWL_V_INT) {
            v[i].buffer_type = MYSQL_TYPE_LONGLONG;
            v[i].buffer = &to->i;
        } else if (kind == PAWL_V_REAL) {
            v[i].buffer_type = MYSQL_TYPE_DOUBLE;
            v[i].buffer = &to->r;
        } else {
            to->data = arena_alloc(a, CELL_FIRST);
            v[i].buffer_type = kind == PAWL_V_BLOB ? MYSQL_TYPE_BLOB : MYSQL_TYPE_STRING;
            v[i].buffer = to->data;
            v[i].buffer_length = CELL_FIRST;
        }
    }
    return !a->failed;
}

static bool value_read(struct arena *a, MYSQL_STMT *stmt, unsigned column, const MYSQL_FIELD *f,
                       const struct cell *from, struct pawl_value *out)
{
    enum pawl_value_kind kind = kind_of(f);
    *out = (struct pawl_value){ .kind = PAWL_V_NULL };
    if (from->null || kind == PAWL_V_NULL)
        return true;
    out->kind = kind;
    if (kind == PAWL_V_INT) {
        out->i = from->i;
    } else if (kind == PAWL_V_REAL) {
        out->r = from->r;
    } else {
        char *data = arena_alloc(a, from->len + 1);
        MYSQL_BIND whole = { .buffer_type = MYSQL_TYPE_BLOB,
                             .buffer = data,
                             .buffer_length = from->len };
        if (!data)
            return false;
        if (from->len > CELL_FIRST && mysql_stmt_fetch_column(stmt, &whole, column, 0) != 0)
            return false;
        if (from->len <= CELL_FIRST)
            memcpy(data, from->data, from->len);
        data[from->len] = 0;
        out->data = data;
        out->len = from->len;
    }
    return true;
}

static enum pawl_status rows_read(struct mydb *c, struct arena *a, MYSQL_STMT *stmt,
                                  MYSQL_RES *meta, struct pawl_rows *out, struct pawl_err *err)
{
    unsigned n = mysql_num_fields(meta);
    const MYSQL_FIELD *fields = mysql_fetch_fields(meta);
    if (n > COLUMNS_MAX)
        return err_set(err, PAWL_TOO_LARGE, "SQL: more than %d columns", COLUMNS_MAX);
    MYSQL_BIND *v = arena_zalloc(a, n, sizeof *v);
    struct cell *cells = arena_zalloc(a, n, sizeof *cells);
    if (!v || !cells || !bind_columns(a, fields, n, v, cells))
        return err_no_memory(err, "rows");
    if (mysql_stmt_bind_result(stmt, v) != 0 || mysql_stmt_store_result(stmt) != 0)
        return statement_failed(c, stmt, err);
    size_t rows = (size_t)mysql_stmt_num_rows(stmt);
    if (rows > SQL_ROWS_MAX)
        return err_set(err, PAWL_TOO_LARGE, "SQL: more than %d rows", SQL_ROWS_MAX);
    out->columns = n;
    out->v = arena_zalloc(a, rows * n + 1, sizeof *out->v);
    for (size_t i = 0; out->v && i < rows; i++) {
        int said = mysql_stmt_fetch(stmt);
        if (said != 0 && said != MYSQL_DATA_TRUNCATED)
            return statement_failed(c, stmt, err);
        for (unsigned k = 0; k < n; k++)
            if (!value_read(a, stmt, k, &fields[k], &cells[k],
                            (struct pawl_value *)&out->v[i * n + k]))
                return err_no_memory(err, "rows");
    }
    out->n = rows;
    return out->v ? PAWL_OK : err_no_memory(err, "rows");
}

/* ---- A handler's ----------------------------------------------------------------------------- */

static enum pawl_status run_prepared(struct mydb *c, struct arena *a, MYSQL_STMT *stmt,
                                     const struct sql_query *q, struct pawl_rows *out,
                                     struct pawl_err *err)
{
    if (mysql_stmt_prepare(stmt, q->sql, strlen(q->sql)) != 0)
        return mysql_stmt_errno(stmt) == ER_EMPTY_QUERY
                   ? err_set(err, PAWL_INVALID, "SQL: the text has no statement")
                   : statement_failed(c, stmt, err);
    enum pawl_status st = bind_all(a, stmt, q, err);
    if (st != PAWL_OK)
        return st;
    if (mysql_stmt_execute(stmt) != 0)
        return statement_failed(c, stmt, err);
    MYSQL_RES *meta = mysql_stmt_result_metadata(stmt);
    if (!meta) {
        out->changed = (int64_t)mysql_stmt_affected_rows(stmt);
        c->wrote = c->wrote || out->changed > 0;
        return PAWL_OK;
    }
    st = rows_read(c, a, stmt, meta, out, err);
    mysql_free_result(meta);
    return st;
}

static enum pawl_status run_theirs(struct mydb *c, struct arena *a, const struct sql_query *q,
                                   struct pawl_rows *out, struct pawl_err *err)
{
    const char *word = refused_word(q->sql);
    if (strnlen(q->sql, SQL_LEN_MAX + 1) > SQL_LEN_MAX)
        return err_set(err, PAWL_TOO_LARGE, "SQL: more than %d bytes", SQL_LEN_MAX);
    if (word)
        return err_set(
            err, PAWL_INVALID,
            "SQL: %s is not allowed here: Pawl commits the transaction with the call's result",
            word);
    enum pawl_status st = check_own(&c->ledger, q->sql, err);
    if (st != PAWL_OK)
        return st;
    MYSQL_STMT *stmt = mysql_stmt_init(c->db);
    if (!stmt)
        return err_no_memory(err, "SQL");
    st = run_prepared(c, a, stmt, q, out, err);
    mysql_stmt_close(stmt);
    return st;
}

/* Whole seconds, so that a handler's statements mostly share one setting; begin() resets it. */
static enum pawl_status limit(struct mydb *c, int64_t left_us, struct pawl_err *err)
{
    char text[120];
    int seconds = (int)MIN(left_us / SEC_US + 1, INT64_C(1000000));
    if (seconds == c->limit_s)
        return PAWL_OK;
    /* MySQL has no limit for idle transactions, only one for idle connections. */
    if (c->maria)
        snprintf(text, sizeof text, "SET SESSION max_statement_time = %d", seconds);
    else
        snprintf(text, sizeof text, "SET SESSION max_execution_time = %d000, wait_timeout = %d",
                 seconds, c->idle_s);
    c->limit_s = seconds;
    return mydb_say(c, text, NULL, err);
}

enum pawl_status mydb_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                          struct pawl_rows *out, struct pawl_err *err)
{
    struct led_tx *t = (struct led_tx *)tx;
    struct mydb *c = mydb_of(t->c);
    *out = (struct pawl_rows){ 0 };
    if (t->lost)
        return err_set(err, PAWL_STATE, "SQL: the transaction was rolled back before");
    int64_t left_us = q->deadline_us - world_mono(t->c->world);
    if (left_us <= 0)
        return err_set(err, PAWL_BUSY, "SQL: its time is up");
    enum pawl_status st = limit(c, left_us, err);
    if (st == PAWL_OK)
        st = run_theirs(c, a, q, out, err);
    if (st == PAWL_OK && !(c->db->server_status & SERVER_STATUS_IN_TRANS))
        c->open = false;
    t->lost = t->lost || c->lost || !c->open;
    if (st == PAWL_OK && t->lost)
        st = err_set(err, PAWL_BUSY, "SQL: the transaction was over behind the statement");
    return st;
}

/* ---- A script -------------------------------------------------------------------------------- */

/* Every statement's answer; 0, or the number of the first that failed. */
static unsigned script_run(MYSQL *db, struct bytes sql)
{
    if (mysql_query(db, "SET SESSION lock_wait_timeout = 10, innodb_lock_wait_timeout = 5,"
                        " time_zone = '+00:00'") != 0 ||
        mysql_real_query(db, sql.data, sql.len) != 0)
        return mysql_errno(db);
    int more;
    do {
        MYSQL_RES *res = mysql_store_result(db);
        mysql_free_result(res);
        more = mysql_errno(db) ? 1 : mysql_next_result(db);
    } while (more == 0);
    return more > 0 ? mysql_errno(db) : 0;
}

enum pawl_status mydb_script(struct ledger *l, struct bytes sql, struct pawl_err *err)
{
    struct mydb *c = mydb_of(l);
    MYSQL *db;
    const char *text = arena_text(&l->scratch, sql);
    enum pawl_status st = text ? check_own(l, text, err) : err_no_memory(err, "a script");
    if (st == PAWL_OK)
        st = mydb_second(c, &db, err);
    if (st != PAWL_OK)
        return st;
    bool lost = c->lost, open = c->open;
    unsigned code = script_run(db, sql);
    if (code && code != ER_EMPTY_QUERY)
        st = their_fault(c, code, mysql_sqlstate(db), mysql_error(db), err);
    c->lost = lost; /* the error was another connection's */
    c->open = open;
    mysql_close(db);
    return st;
}
