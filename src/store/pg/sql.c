/*
 * sql.c - the application's own SQL: a handler's, and a module's script.
 *
 * It runs on the connection of the store, inside our transaction. A savepoint before each statement
 * keeps an error from aborting the transaction. A statement that would end our transaction or
 * change the connection is refused by its first word; after each statement we check that the
 * transaction is still there.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/limits.h"
#include "store/pg/pg.h"

/* Types whose text we convert to numbers; every other type stays text. */
enum { TYPE_BOOL = 16, TYPE_BYTEA = 17, TYPE_INT8 = 20, TYPE_INT2 = 21, TYPE_INT4 = 23 };
enum { TYPE_OID = 26, TYPE_FLOAT4 = 700, TYPE_FLOAT8 = 701 };

/* ---- One statement --------------------------------------------------------------------------- */

/* Skip white space and comments. */
static const char *first_word(const char *at)
{
    for (;;) {
        while (isspace((unsigned char)*at) || *at == ';' || *at == '(')
            at++;
        if (at[0] == '-' && at[1] == '-') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            at = end ? end + 2 : at + strlen(at);
        } else {
            return at;
        }
    }
}

static const char *refused_word(const char *sql)
{
    static const char *const words[] = { "BEGIN",    "START",    "COMMIT",    "END",
                                         "ROLLBACK", "ABORT",    "SAVEPOINT", "RELEASE",
                                         "PREPARE",  "SET",      "RESET",     "DISCARD",
                                         "LISTEN",   "UNLISTEN", "COPY",      "DEALLOCATE",
                                         "EXECUTE",  "DECLARE" };
    const char *at = first_word(sql);
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        size_t len = strlen(words[i]);
        if (strncasecmp(at, words[i], len) == 0 && !isalnum((unsigned char)at[len]) &&
            at[len] != '_')
            return words[i];
    }
    return NULL;
}

/* A mistake in the application's SQL is INVALID, with what the server said. Trouble of the database
 * keeps its status. */
static enum pawl_status their_fault(struct pg *c, const PGresult *r, struct pawl_err *err)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    bool theirs = state && (strncmp(state, "22", 2) == 0 || strncmp(state, "23", 2) == 0 ||
                            strncmp(state, "42", 2) == 0 || strncmp(state, "0A", 2) == 0 ||
                            strncmp(state, "P0", 2) == 0 || strncmp(state, "25", 2) == 0 ||
                            strncmp(state, "3", 1) == 0);
    if (!theirs)
        return pg_fail(c, r, LED_PHASE("SQL"), err);
    enum pawl_status st = err_set(err, PAWL_INVALID, "SQL: %.300s", text ? text : "?");
    if (err)
        snprintf(err->sqlstate, sizeof err->sqlstate, "%s", state);
    return st;
}

struct their_params {
    const char *v[SQL_PARAMS_MAX];
    int len[SQL_PARAMS_MAX], binary[SQL_PARAMS_MAX];
    Oid types[SQL_PARAMS_MAX];
};

static enum pawl_status bind_all(struct arena *a, const struct sql_query *q,
                                 struct their_params *out, struct pawl_err *err)
{
    if (q->n_params > SQL_PARAMS_MAX)
        return err_set(err, PAWL_TOO_LARGE, "SQL: more than %d parameters", SQL_PARAMS_MAX);
    *out = (struct their_params){ 0 };
    for (size_t i = 0; i < q->n_params; i++) {
        const struct pawl_value *v = &q->params[i];
        switch (v->kind) {
        case PAWL_V_NULL:
            break;
        case PAWL_V_INT:
            out->v[i] = arena_printf(a, "%lld", (long long)v->i);
            break;
        case PAWL_V_REAL:
            out->v[i] = arena_printf(a, "%.17g", v->r);
            break;
        case PAWL_V_TEXT:
            out->v[i] = arena_text(a, (struct bytes){ v->data ? v->data : "", v->len });
            break;
        case PAWL_V_BLOB:
            out->v[i] = v->data ? v->data : "";
            out->len[i] = (int)v->len;
            out->binary[i] = 1;
            out->types[i] = TYPE_BYTEA;
            break;
        }
    }
    return a->failed ? err_no_memory(err, "parameters") : PAWL_OK;
}

static bool value_read(struct arena *a, const PGresult *r, int row, int column,
                       struct pawl_value *out)
{
    const char *text = PQgetvalue(r, row, column);
    *out = (struct pawl_value){ .kind = PAWL_V_NULL };
    if (PQgetisnull(r, row, column))
        return true;
    switch (PQftype(r, column)) {
    case TYPE_BOOL:
        *out = (struct pawl_value){ .kind = PAWL_V_INT, .i = *text == 't' };
        return true;
    case TYPE_INT2:
    case TYPE_INT4:
    case TYPE_INT8:
    case TYPE_OID:
        *out = (struct pawl_value){ .kind = PAWL_V_INT, .i = strtoll(text, NULL, 10) };
        return true;
    case TYPE_FLOAT4:
    case TYPE_FLOAT8:
        *out = (struct pawl_value){ .kind = PAWL_V_REAL, .r = strtod(text, NULL) };
        return true;
    case TYPE_BYTEA: {
        size_t len = 0;
        unsigned char *raw = PQunescapeBytea((const unsigned char *)text, &len);
        struct bytes copy = arena_copy(a, (struct bytes){ (char *)raw, len });
        PQfreemem(raw);
        *out = (struct pawl_value){ .kind = PAWL_V_BLOB, .data = copy.data, .len = copy.len };
        return copy.data != NULL;
    }
    default: {
        struct bytes copy =
            arena_copy(a, (struct bytes){ text, (size_t)PQgetlength(r, row, column) });
        *out = (struct pawl_value){ .kind = PAWL_V_TEXT, .data = copy.data, .len = copy.len };
        return copy.data != NULL;
    }
    }
}

static enum pawl_status rows_read(struct arena *a, PGresult *r, struct pawl_rows *out,
                                  struct pawl_err *err)
{
    int n = PQntuples(r), columns = PQnfields(r);
    if (n > SQL_ROWS_MAX)
        return err_set(err, PAWL_TOO_LARGE, "SQL: more than %d rows", SQL_ROWS_MAX);
    struct pawl_value *v = arena_zalloc(a, (size_t)n * (size_t)columns + 1, sizeof *v);
    bool ok = v != NULL;
    for (int i = 0; ok && i < n; i++)
        for (int k = 0; ok && k < columns; k++)
            ok = value_read(a, r, i, k, &v[i * columns + k]);
    if (!ok)
        return err_no_memory(err, "rows");
    out->columns = (size_t)columns;
    out->n = (size_t)n;
    out->v = v;
    if (PQresultStatus(r) == PGRES_COMMAND_OK || n == 0 ||
        strncmp(PQcmdStatus(r), "SELECT", 6) != 0) {
        const char *changed = PQcmdTuples(r);
        out->changed =
            *changed && strncmp(PQcmdStatus(r), "SELECT", 6) ? strtoll(changed, NULL, 10) : 0;
    }
    return PAWL_OK;
}

/* ---- Parameters ------------------------------------------------------------------------------ */

/* Skip a quoted piece that ends with `end`, which is doubled inside; E'' also has backslashes. */
static const char *past_quote(const char *at, char end, bool backslash)
{
    for (at++; *at; at++) {
        if (*at == '\\' && backslash && at[1])
            at++;
        else if (*at == end && at[1] == end)
            at++;
        else if (*at == end)
            return at + 1;
    }
    return at;
}

/* Skip $tag$ ... $tag$; NULL: it does not begin here. */
static const char *past_dollar(const char *at)
{
    size_t len = 1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                    "0123456789");
    if (at[len] != '$' || isdigit((unsigned char)at[1]))
        return NULL;
    for (const char *end = at + len + 1; (end = strchr(end, '$')); end++)
        if (strncmp(end, at, len + 1) == 0)
            return end + len + 1;
    return at + strlen(at);
}

/* Skip a comment, which may be nested. */
static const char *past_comment(const char *at)
{
    int depth = 0;
    do {
        if (at[0] == '/' && at[1] == '*') {
            depth++;
            at += 2;
        } else if (at[0] == '*' && at[1] == '/') {
            depth--;
            at += 2;
        } else {
            at++;
        }
    } while (depth && *at);
    return at;
}

/* Skip a string, a quoted name or a comment, in which `?` has no meaning; `at`: none begins here.
 */
static const char *past_other(const char *sql, const char *at)
{
    const char *end = NULL;
    bool e = at > sql && (at[-1] == 'E' || at[-1] == 'e') &&
             (at == sql + 1 || (!isalnum((unsigned char)at[-2]) && at[-2] != '_'));
    if (*at == '\'' || *at == '"')
        end = past_quote(at, *at, e && *at == '\'');
    else if (*at == '$')
        end = past_dollar(at);
    else if (at[0] == '-' && at[1] == '-')
        end = at + strcspn(at, "\n");
    else if (at[0] == '/' && at[1] == '*')
        end = past_comment(at);
    return end ? end : at;
}

/* Every engine takes `?` for a parameter: here it becomes $1, $2, ...; `??` is an operator `?`. */
static char *numbered(struct arena *a, const char *sql)
{
    size_t len = strlen(sql), marks = 0;
    for (const char *at = sql; *at; at++)
        marks += *at == '?';
    char *out = arena_alloc(a, len + marks * 5 + 1), *to = out;
    int n = 0;
    for (const char *at = sql; out && *at;) {
        const char *end = past_other(sql, at);
        if (end > at) {
            memcpy(to, at, (size_t)(end - at));
            to += end - at;
            at = end;
        } else if (at[0] == '?' && at[1] == '?') {
            *to++ = '?';
            at += 2;
        } else if (*at == '?' && n < SQL_PARAMS_MAX) {
            to += snprintf(to, 6, "$%d", ++n);
            at++;
        } else {
            *to++ = *at++;
        }
    }
    if (out)
        *to = 0;
    return out;
}

static enum pawl_status run_theirs(struct pg *c, struct arena *a, const struct sql_query *q,
                                   struct pawl_rows *out, struct pawl_err *err)
{
    AUTO(pg_clear) PGresult *r = NULL;
    struct their_params p;
    const char *word = refused_word(q->sql);
    if (strnlen(q->sql, SQL_LEN_MAX + 1) > SQL_LEN_MAX)
        return err_set(err, PAWL_TOO_LARGE, "SQL: more than %d bytes", SQL_LEN_MAX);
    if (word)
        return err_set(
            err, PAWL_INVALID,
            "SQL: %s is not allowed here: Pawl commits the transaction with the call's result",
            word);
    enum pawl_status st = bind_all(a, q, &p, err);
    char *sql = st == PAWL_OK ? numbered(a, q->sql) : NULL;
    if (st == PAWL_OK && !sql)
        st = err_no_memory(err, "a statement");
    if (st != PAWL_OK)
        return st;
    if (PQsendQueryParams(c->db, sql, (int)q->n_params, p.types, p.v, p.len, p.binary, 0))
        r = pg_answer(c);
    ExecStatusType said = PQresultStatus(r);
    if (said != PGRES_TUPLES_OK && said != PGRES_COMMAND_OK)
        return said == PGRES_EMPTY_QUERY
                   ? err_set(err, PAWL_INVALID, "SQL: the text has no statement")
                   : their_fault(c, r, err);
    return rows_read(a, r, out, err);
}

enum pawl_status pg_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                        struct pawl_rows *out, struct pawl_err *err)
{
    struct led_tx *t = (struct led_tx *)tx;
    struct pg *c = pg_of(t->c);
    char text[120];
    *out = (struct pawl_rows){ 0 };
    if (t->lost)
        return err_set(err, PAWL_STATE, "SQL: the transaction was rolled back before");
    int64_t left_us = q->deadline_us - world_mono(t->c->world);
    if (left_us <= 0)
        return err_set(err, PAWL_BUSY, "SQL: its time is up");
    snprintf(text, sizeof text, "SAVEPOINT statement; SET LOCAL statement_timeout = %lld",
             (long long)MIN(left_us / MS_US + 1, INT64_C(1000000000)));
    enum pawl_status st = pg_plain(t->c, text, err);
    if (st == PAWL_OK)
        st = run_theirs(c, a, q, out, err);
    PGTransactionStatusType now = PQtransactionStatus(c->db);
    if (now == PQTRANS_INERROR && pg_plain(t->c, "ROLLBACK TO statement", NULL) != PAWL_OK)
        t->lost = true;
    t->lost = t->lost || (now != PQTRANS_INTRANS && now != PQTRANS_INERROR);
    if (!t->lost &&
        pg_plain(t->c, "RELEASE statement; SET LOCAL statement_timeout = '60s'", NULL) != PAWL_OK)
        t->lost = true;
    /* What it did was undone with the transaction, whatever its result. */
    if (st == PAWL_OK && t->lost)
        st = err_set(err, PAWL_BUSY, "SQL: the transaction was lost behind the statement");
    return st;
}

/* ---- A script -------------------------------------------------------------------------------- */

enum pawl_status pg_script(struct ledger *l, struct bytes sql, struct pawl_err *err)
{
    struct pg *c = pg_of(l);
    char *text = arena_text(&l->scratch, sql);
    if (!text)
        return err_no_memory(err, "a script");
    enum pawl_status st = led_run(l, SQL_SCRIPT_LOCK, NULL, NULL, err);
    if (st == PAWL_OK)
        st = pg_plain(l, "SAVEPOINT script", err);
    if (st != PAWL_OK)
        return st;
    AUTO(pg_clear) PGresult *r = pg_exec(c, text);
    ExecStatusType said = PQresultStatus(r);
    bool fine = said == PGRES_COMMAND_OK || said == PGRES_TUPLES_OK || said == PGRES_EMPTY_QUERY;
    if (PQtransactionStatus(c->db) == PQTRANS_IDLE)
        return err_set(err, PAWL_BUSY, "SQL: it ended the transaction");
    if (!fine)
        st = their_fault(c, r, err);
    if (st == PAWL_INVALID && pg_plain(l, "ROLLBACK TO script", NULL) != PAWL_OK)
        return err_set(err, PAWL_BUSY, "SQL: the transaction is gone");
    if (st == PAWL_OK)
        st = pg_plain(l, "RELEASE script", err);
    return st;
}
