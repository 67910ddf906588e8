/*
 * stmt.c - named statements: prepared at first use, kept for the connection's life, bound and
 * stepped.
 *
 * Texts come from sql/sqlite/ as they are compiled in; nothing here puts user text into SQL. Values
 * are bound without a copy: they must live until the statement is reset, which each function here
 * does before it returns, or its caller by AUTO(lite_reset).
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>

#include "base/buf.h"
#include "base/limits.h"
#include "store/sqlite/engine.h"

#define PREFIX "pawl_"
#define TEXT_LEN_MAX (1 << 20)

static const char *const plain_text[PLAIN_COUNT] = {
    [PLAIN_BEGIN] = "BEGIN",
    [PLAIN_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [PLAIN_COMMIT] = "COMMIT",
    [PLAIN_ROLLBACK] = "ROLLBACK",
    [PLAIN_VERSION] = "PRAGMA data_version",
};

static bool word_char(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_';
}

const char *lite_own_names(const char *schema, struct arena *a, const char *text)
{
    size_t prefix_len = sizeof PREFIX - 1;
    if (strcmp(schema, "pawl") == 0)
        return text;
    struct buf b;
    buf_init(&b, TEXT_LEN_MAX);
    const char *from = text;
    for (const char *at = text; (at = strstr(at, PREFIX)); at += prefix_len) {
        if (at > text && word_char(at[-1]))
            continue;
        buf_add(&b, from, (size_t)(at - from));
        buf_addf(&b, "%s_", schema);
        from = at + prefix_len;
    }
    buf_add_text(&b, from);
    const char *own = buf_ok(&b) ? arena_text(a, buf_bytes(&b)) : NULL;
    buf_release(&b);
    return own;
}

static enum pawl_status prepare_named(struct lite *c, enum sql_name name, struct pawl_err *err)
{
    struct arena a;
    arena_init(&a, TEXT_LEN_MAX);
    const char *text = lite_own_names(c->ledger.schema, &a, sql_sqlite[name]);
    int rc =
        text ? sqlite3_prepare_v3(c->db, text, -1, SQLITE_PREPARE_PERSISTENT, &c->stmts[name], NULL)
             : SQLITE_NOMEM;
    arena_release(&a);
    return rc == SQLITE_OK ? PAWL_OK : lite_fail(c, rc, LED_STATEMENT(name), err);
}

enum pawl_status lite_prepared(struct lite *c, enum sql_name name, sqlite3_stmt **out,
                               struct pawl_err *err)
{
    CHECK(sql_sqlite[name]); /* a statement of another engine */
    enum pawl_status st = c->stmts[name] ? PAWL_OK : prepare_named(c, name, err);
    *out = c->stmts[name];
    assert(st != PAWL_OK || !sqlite3_stmt_busy(*out)); /* a second use would end the first */
    return st;
}

static void bind(sqlite3_stmt *q, const struct lite_arg *v, size_t n)
{
    assert(sqlite3_bind_parameter_count(q) == (int)n);
    for (int i = 1; i <= (int)n; i++, v++) {
        if (v->kind == ARG_INT)
            sqlite3_bind_int64(q, i, v->i);
        else if (v->kind == ARG_NULL || !v->b.data)
            sqlite3_bind_null(q, i);
        else if (v->kind == ARG_TEXT)
            sqlite3_bind_text(q, i, v->b.data, (int)v->b.len, SQLITE_STATIC);
        else
            sqlite3_bind_blob(q, i, v->b.data, (int)v->b.len, SQLITE_STATIC);
    }
}

enum pawl_status lite_query(struct lite *c, enum sql_name name, const struct lite_arg *v, size_t n,
                            sqlite3_stmt **out, struct pawl_err *err)
{
    enum pawl_status st = lite_prepared(c, name, out, err);
    if (st == PAWL_OK)
        bind(*out, v, n);
    return st;
}

enum pawl_status lite_next(struct lite *c, sqlite3_stmt *q, bool *out_row, struct pawl_err *err)
{
    int rc = sqlite3_step(q);
    *out_row = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW)
        return PAWL_OK;
    enum pawl_status st = PAWL_OK;
    if (rc != SQLITE_DONE)
        st = lite_fail(c, rc, LED_PLAIN, err);
    sqlite3_reset(q);
    return st;
}

enum pawl_status lite_run(struct lite *c, enum sql_name name, const struct lite_arg *v, size_t n,
                          int *out_changed, struct pawl_err *err)
{
    sqlite3_stmt *q;
    enum pawl_status st = lite_query(c, name, v, n, &q, err);
    if (st != PAWL_OK)
        return st;
    int rc = sqlite3_step(q);
    if (rc != SQLITE_DONE)
        st = lite_fail(c, rc, LED_STATEMENT(name), err);
    else if (out_changed)
        *out_changed = sqlite3_changes(c->db);
    sqlite3_reset(q);
    return st;
}

enum pawl_status lite_number(struct lite *c, enum sql_name name, const struct lite_arg *v, size_t n,
                             int64_t otherwise, int64_t *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, name, v, n, &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    if (st == PAWL_OK)
        *out = row ? lite_int(q, 0) : otherwise;
    return st;
}

void lite_reset(sqlite3_stmt **q)
{
    if (*q)
        sqlite3_reset(*q);
}

enum pawl_status lite_plain(struct lite *c, enum lite_plain what, struct pawl_err *err)
{
    int rc = SQLITE_OK;
    if (!c->plain[what])
        rc = sqlite3_prepare_v3(c->db, plain_text[what], -1, SQLITE_PREPARE_PERSISTENT,
                                &c->plain[what], NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(c->plain[what]);
    enum pawl_status st = PAWL_OK;
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        st = lite_fail(c, rc, LED_PLAIN, err);
    if (rc != SQLITE_ROW)
        sqlite3_reset(c->plain[what]);
    return st;
}

enum pawl_status lite_say(struct lite *c, const char *text, struct pawl_err *err)
{
    int rc = sqlite3_exec(c->db, text, NULL, NULL, NULL);
    return rc == SQLITE_OK ? PAWL_OK : lite_fail(c, rc, LED_PLAIN, err);
}

void lite_statements_end(struct lite *c)
{
    for (size_t i = 0; i < SQL_COUNT; i++)
        sqlite3_finalize(c->stmts[i]);
    for (size_t i = 0; i < PLAIN_COUNT; i++)
        sqlite3_finalize(c->plain[i]);
}

enum pawl_status lite_script(struct ledger *l, const char *text, struct pawl_err *err)
{
    struct lite *c = lite_in(l);
    int rc = sqlite3_exec(c->db, text, NULL, NULL, NULL);
    return rc == SQLITE_OK ? PAWL_OK : lite_fail(c, rc, LED_PHASE("a step of the schema"), err);
}

struct bytes lite_column(sqlite3_stmt *q, int i)
{
    if (sqlite3_column_type(q, i) == SQLITE_NULL)
        return BYTES_NONE;
    /* Text as a blob, too: that avoids a copy that ends in NUL. */
    const char *data = sqlite3_column_blob(q, i);
    return data ? (struct bytes){ data, (size_t)sqlite3_column_bytes(q, i) } : BYTES("");
}

int64_t lite_int(sqlite3_stmt *q, int i)
{
    return sqlite3_column_int64(q, i);
}

bool lite_null(sqlite3_stmt *q, int i)
{
    return sqlite3_column_type(q, i) == SQLITE_NULL;
}
