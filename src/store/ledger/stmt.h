/*
 * stmt.h - parameters of a named statement, and the rows that it answers; the same for every
 * engine.
 *
 * For store/ledger, its drivers and features (src/feature), which run statements by name. Text of
 * SQL is in sql/ENGINE alone.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_LEDGER_STMT_H
#define STORE_LEDGER_STMT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/macros.h"
#include "sql_names.h"

struct ledger;

#define LED_PARAMS_MAX 24

/* ---- In -------------------------------------------------------------------------------------- */

/* A column of values for a statement. Bytes are borrowed until the statement has run. A failed
 * allocation shows in the arena's `failed`, and led_query() and its like then return NO_MEMORY. */
enum led_kind { LED_INTS, LED_TEXTS, LED_BLOBS };
#define LED_NULL INT64_MIN
struct led_column {
    struct arena *a;
    enum led_kind kind;
    size_t n, cap;
    int64_t *ints;       /* INTS; LED_NULL: null */
    struct bytes *bytes; /* else; absent: null */
};
/* Begin an empty column; its memory comes from `a`. The others add one value to it:
 * led_add_int_or_null() a null for 0, led_add_bytes() a null for absent bytes. */
void led_column_init(struct led_column *k, struct arena *a, enum led_kind kind);
void led_add_int(struct led_column *k, int64_t v);
void led_add_int_or_null(struct led_column *k, int64_t v);
void led_add_bytes(struct led_column *k, struct bytes v);

/* Parameters, in order: one value, or a column of them. */
struct led_param {
    bool many;
    int64_t i;      /* one number */
    struct bytes b; /* or bytes */
    enum led_kind kind;
    struct led_column k;
};
struct led_params {
    struct led_param v[LED_PARAMS_MAX];
    int n;
    bool many;   /* some are columns */
    size_t rows; /* the length of the last column */
};
/* Each adds one parameter: a value, or a column of values. Bytes are borrowed until the statement
 * has run. More than LED_PARAMS_MAX, or columns of different lengths, end the process. */
void led_int(struct led_params *p, int64_t v);
void led_text(struct led_params *p, struct bytes v);
void led_blob(struct led_params *p, struct bytes v);
void led_column(struct led_params *p, const struct led_column *k);
void led_ints(struct ledger *c, struct led_params *p, const int64_t *v, size_t n);
void led_texts(struct ledger *c, struct led_params *p, const struct bytes *v, size_t n);

/* ---- Out ------------------------------------------------------------------------------------- */

/* Rows of an answer, in scratch: they live as long as the transaction. */
struct led_cell {
    struct bytes b; /* absent: null. For text and blobs; for numbers only whether it is absent means
                       something */
    int64_t i;      /* numbers; null: 0 */
};
struct led_rows {
    int n, columns;
    struct led_cell *v;
};
/* A value of an answer. A row or column that it does not have ends the process. Here, because every
 * call that is claimed or finished reads some 50 of them. */
static inline const struct led_cell *led_cell(const struct led_rows *r, int row, int column)
{
    CHECK((unsigned)row < (unsigned)r->n && (unsigned)column < (unsigned)r->columns);
    return &r->v[row * r->columns + column];
}

static inline int64_t led_get_int(const struct led_rows *r, int row, int column) /* null: 0 */
{
    return led_cell(r, row, column)->i;
}

static inline struct bytes led_get(const struct led_rows *r, int row, int column) /* null: absent */
{
    return led_cell(r, row, column)->b;
}

static inline bool led_null(const struct led_rows *r, int row, int column)
{
    return !led_cell(r, row, column)->b.data;
}

#endif
