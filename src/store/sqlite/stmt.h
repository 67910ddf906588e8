/*
 * stmt.h - named statements, bound and stepped; rows as borrowed bytes. Private to store/sqlite.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_SQLITE_STMT_H
#define STORE_SQLITE_STMT_H

#include <sqlite3.h>

#include "base/arena.h"
#include "base/err.h"
#include "sql_names.h"

struct ledger;
struct lite;

/* Statements without table names. */
enum lite_plain {
    PLAIN_BEGIN,
    PLAIN_BEGIN_WRITE,
    PLAIN_COMMIT,
    PLAIN_ROLLBACK,
    PLAIN_VERSION,
    PLAIN_COUNT
};

enum lite_arg_kind { ARG_NULL, ARG_INT, ARG_TEXT, ARG_BLOB };
struct lite_arg {
    enum lite_arg_kind kind;
    int64_t i;
    struct bytes b; /* absent: NULL */
};
#define INT(x) ((struct lite_arg){ .kind = ARG_INT, .i = (x) })
/* A missing time or number is 0 in memory and NULL in the table. */
#define INT_OR_NULL(x) lite_opt(x)
#define TEXT(x) ((struct lite_arg){ .kind = ARG_TEXT, .b = (x) })
#define BLOB(x) ((struct lite_arg){ .kind = ARG_BLOB, .b = (x) })
#define TOKEN(t) BLOB(((struct bytes){ (const char *)(t)->b, sizeof(t)->b }))

/* What INT_OR_NULL does. */
static inline struct lite_arg lite_opt(int64_t x)
{
    return (struct lite_arg){ .kind = x ? ARG_INT : ARG_NULL, .i = x };
}

/* The named statement, prepared at first use; it belongs to the connection. */
MUST_USE enum pawl_status lite_prepared(struct lite *c, enum sql_name name, sqlite3_stmt **out,
                                        struct pawl_err *err);
/* The named statement with `?1`... bound, ready to step. Bound bytes must live until it is reset.
 */
MUST_USE enum pawl_status lite_query(struct lite *c, enum sql_name name, const struct lite_arg *v,
                                     size_t n, sqlite3_stmt **out, struct pawl_err *err);
/* The next row. False: there is none, and the statement is reset. */
MUST_USE enum pawl_status lite_next(struct lite *c, sqlite3_stmt *q, bool *out_row,
                                    struct pawl_err *err);
/* Run a statement without rows; *out_changed (may be NULL) rows were written. */
MUST_USE enum pawl_status lite_run(struct lite *c, enum sql_name name, const struct lite_arg *v,
                                   size_t n, int *out_changed, struct pawl_err *err);
/* The first column of the first row; `otherwise` when there is no row. */
MUST_USE enum pawl_status lite_number(struct lite *c, enum sql_name name, const struct lite_arg *v,
                                      size_t n, int64_t otherwise, int64_t *out,
                                      struct pawl_err *err);
#define ARGS(...)                                                                                  \
    (const struct lite_arg[]){ __VA_ARGS__ },                                                      \
        sizeof((const struct lite_arg[]){ __VA_ARGS__ }) / sizeof(struct lite_arg)
#define NO_ARGS NULL, 0
/* For AUTO; the statement stays prepared. */
void lite_reset(sqlite3_stmt **q);
/* Run one of the statements above. After PLAIN_VERSION the caller reads the row and resets it. */
MUST_USE enum pawl_status lite_plain(struct lite *c, enum lite_plain what, struct pawl_err *err);
/* Free all prepared statements. */
void lite_statements_end(struct lite *c);
/* Our text with the schema's name instead of `pawl` where a word begins with `pawl_`; in `a`, or
 * the text itself. NULL without memory. */
const char *lite_own_names(const char *schema, struct arena *a, const char *text);
/* Run a text that is not kept prepared, like "SAVEPOINT x". */
MUST_USE enum pawl_status lite_say(struct lite *c, const char *text, struct pawl_err *err);
/* The statements of a schema's step, one after the other. */
MUST_USE enum pawl_status lite_script(struct ledger *l, const char *text, struct pawl_err *err);

/* A column as borrowed bytes, until the next step; NULL reads as absent. */
struct bytes lite_column(sqlite3_stmt *q, int i);
/* A column as a number, NULL as 0; whether it is NULL. */
int64_t lite_int(sqlite3_stmt *q, int i);
bool lite_null(sqlite3_stmt *q, int i);

#endif
