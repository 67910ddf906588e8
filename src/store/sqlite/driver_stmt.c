/*
 * driver_stmt.c - the ledger's statements on SQLite, questions and changes.
 *
 * SQLite is inside the process, so a statement is run once for each value of a column, and nothing
 * is gained by asking for many rows at once; where it has to be one look at a table (json_each),
 * the column goes as a JSON array. Values are bound where they are, without a copy: they live in
 * the transaction's memory until the statement has run.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/buf.h"
#include "store/sqlite/engine.h"

#define LIST_LEN_MAX (1 << 20)
#define ROWS_FIRST 16
/* Fewer rows of ready go one by one: a range has to be counted first. */
#define SPAN_MIN 4

/* ---- Values ---------------------------------------------------------------------------------- */

static const char *list_text(struct arena *a, const struct led_column *k)
{
    struct buf b;
    buf_init(&b, LIST_LEN_MAX);
    buf_add_char(&b, '[');
    for (size_t i = 0; i < k->n; i++)
        buf_addf(&b, "%s%lld", i ? "," : "", (long long)k->ints[i]);
    buf_add_char(&b, ']');
    const char *text = buf_ok(&b) ? arena_text(a, buf_bytes(&b)) : NULL;
    a->failed = a->failed || !text;
    buf_release(&b);
    return text;
}

static void bind_bytes(sqlite3_stmt *q, int at, enum led_kind kind, struct bytes b)
{
    if (!b.data)
        sqlite3_bind_null(q, at);
    else if (kind == LED_TEXTS)
        sqlite3_bind_text(q, at, b.data, (int)b.len, SQLITE_STATIC);
    else
        sqlite3_bind_blob(q, at, b.data, (int)b.len, SQLITE_STATIC);
}

static void bind_int(sqlite3_stmt *q, int at, int64_t i)
{
    if (i == LED_NULL)
        sqlite3_bind_null(q, at);
    else
        sqlite3_bind_int64(q, at, i);
}

/* The row-th value of every column, and what is one value for all rows; as many parameters as the
 * text names. */
static void bind_row(sqlite3_stmt *q, const struct led_params *p, size_t row)
{
    int n = p ? MIN(p->n, sqlite3_bind_parameter_count(q)) : 0;
    for (int i = 0; i < n; i++) {
        const struct led_param *v = &p->v[i];
        if (v->kind == LED_INTS)
            bind_int(q, i + 1, v->many ? v->k.ints[row] : v->i);
        else
            bind_bytes(q, i + 1, v->kind, v->many ? v->k.bytes[row] : v->b);
    }
}

/* The same with every column as a JSON array of numbers; false without memory. */
static bool bind_lists(sqlite3_stmt *q, struct arena *a, const struct led_params *p)
{
    bind_row(q, p, 0);
    for (int i = 0; i < p->n; i++)
        if (p->v[i].many) {
            const char *text = list_text(a, &p->v[i].k);
            if (text)
                bind_bytes(q, i + 1, LED_TEXTS, bytes_of(text));
        }
    return !a->failed;
}

/* How often a statement is run. */
static size_t rows_of(const struct led_params *p)
{
    for (int i = 0; p && i < p->n; i++)
        if (p->v[i].many)
            return p->v[i].k.n;
    return 1;
}

/* ---- Questions ------------------------------------------------------------------------------- */

/* An answer while it grows. */
struct answer {
    struct lite *c;
    struct led_rows *r;
    size_t cap;
};

static bool answer_grow(struct answer *to)
{
    struct led_rows *r = to->r;
    size_t cap = to->cap ? to->cap * 2 : ROWS_FIRST, width = (size_t)r->columns * sizeof *r->v;
    struct led_cell *v = arena_alloc(&to->c->ledger.scratch, cap * width);
    if (!v)
        return false;
    if (r->n)
        memcpy(v, r->v, (size_t)r->n * width);
    r->v = v;
    to->cap = cap;
    return true;
}

static void cell_read(struct arena *a, sqlite3_stmt *q, int i, struct led_cell *out)
{
    int type = sqlite3_column_type(q, i);
    if (type == SQLITE_INTEGER)
        *out = (struct led_cell){ .b = BYTES(""), .i = lite_int(q, i) };
    else if (type == SQLITE_NULL)
        *out = (struct led_cell){ .b = BYTES_NONE };
    else
        *out = (struct led_cell){ .b = arena_copy(a, lite_column(q, i)) };
}

static bool row_keep(struct answer *to, sqlite3_stmt *q)
{
    struct led_rows *r = to->r;
    if ((size_t)r->n == to->cap && !answer_grow(to))
        return false;
    struct led_cell *at = &r->v[r->n++ * r->columns];
    for (int i = 0; i < r->columns; i++)
        cell_read(&to->c->ledger.scratch, q, i, &at[i]);
    return !to->c->ledger.scratch.failed;
}

/* What the statement, bound, answers. */
static enum pawl_status rows_read(struct answer *to, enum sql_name name, sqlite3_stmt *q,
                                  struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    int rc;
    while ((rc = sqlite3_step(q)) == SQLITE_ROW && st == PAWL_OK)
        if (!row_keep(to, q))
            st = err_no_memory(err, sql_name_text[name]);
    if (st == PAWL_OK && rc != SQLITE_DONE)
        st = lite_fail(to->c, rc, sql_name_text[name], err);
    sqlite3_reset(q);
    return st;
}

static enum pawl_status ask(struct lite *c, enum sql_name name, const struct led_params *p,
                            struct led_rows **out, struct pawl_err *err)
{
    struct answer to = { .c = c, .r = arena_zalloc(&c->ledger.scratch, 1, sizeof *to.r) };
    sqlite3_stmt *q;
    if (!to.r)
        return err_no_memory(err, sql_name_text[name]);
    enum pawl_status st = lite_prepared(c, name, &q, err);
    if (st != PAWL_OK)
        return st;
    bool lists = p && c->lists[name];
    to.r->columns = sqlite3_column_count(q);
    if (lists && !bind_lists(q, &c->ledger.scratch, p))
        return err_no_memory(err, sql_name_text[name]);
    size_t n = lists ? 1 : rows_of(p);
    for (size_t row = 0; row < n && st == PAWL_OK; row++) {
        if (!lists)
            bind_row(q, p, row);
        st = rows_read(&to, name, q, err);
    }
    *out = to.r;
    return st;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = ((const struct led_cell *)a)->i, y = ((const struct led_cell *)b)->i;
    return (x > y) - (x < y);
}

/* A claim takes the best of several tracks. Each of them could fill it, so the time of the last
 * call that it can take is looked for first, in the index alone. */
static enum pawl_status take_tracks(struct lite *c, const struct led_params *p,
                                    struct led_rows **out, struct pawl_err *err)
{
    struct led_params until = *p;
    struct led_rows *times = NULL;
    size_t max = (size_t)p->v[3].i;
    enum pawl_status st = ask(c, SQL_READY_TIMES, p, &times, err);
    if (st != PAWL_OK)
        return st;
    CHECK(times->columns == 1 || times->n == 0);
    if ((size_t)times->n > max) {
        qsort(times->v, (size_t)times->n, sizeof *times->v, compare_times);
        until.v[2].i = times->v[max - 1].i;
    }
    return ask(c, SQL_READY_TAKE, &until, out, err);
}

/* ---- Changes --------------------------------------------------------------------------------- */

/* Once a row, from `first` on; their changes are added to *out_rows. */
static enum pawl_status change_rows(struct lite *c, enum sql_name name, const struct led_params *p,
                                    size_t first, size_t n, int64_t *out_rows, struct pawl_err *err)
{
    sqlite3_stmt *q;
    enum pawl_status st = lite_prepared(c, name, &q, err);
    for (size_t row = first; row < first + n && st == PAWL_OK; row++) {
        bind_row(q, p, row);
        int rc = sqlite3_step(q);
        if (rc == SQLITE_DONE)
            *out_rows += sqlite3_changes(c->db);
        else if (rc != SQLITE_ROW)
            st = lite_fail(c, rc, sql_name_text[name], err);
        sqlite3_reset(q);
    }
    return st;
}

/* Columns of ready_remove. */
enum { OUT_SEQ, OUT_TRACK, OUT_RANK, OUT_RUN_AT, OUT_COLUMNS };

static int64_t out_at(const struct led_params *p, int column, size_t row)
{
    return p->v[column].k.ints[row];
}

/* How many rows from `at` on are of one pair and in the order of its index. */
static size_t span_len(const struct led_params *p, size_t at, size_t n)
{
    size_t i = at + 1;
    for (; i < n; i++) {
        int64_t before = out_at(p, OUT_RUN_AT, i - 1), run_at = out_at(p, OUT_RUN_AT, i);
        if (out_at(p, OUT_TRACK, i) != out_at(p, OUT_TRACK, at) ||
            out_at(p, OUT_RANK, i) != out_at(p, OUT_RANK, at) || run_at < before ||
            (run_at == before && out_at(p, OUT_SEQ, i) <= out_at(p, OUT_SEQ, i - 1)))
            break;
    }
    return i - at;
}

/* As a range, if just these rows stand in it; else *out_rows stays as it was. */
static enum pawl_status remove_span(struct lite *c, const struct led_params *p, size_t at, size_t n,
                                    int64_t *out_rows, struct pawl_err *err)
{
    size_t last = at + n - 1;
    const struct lite_arg v[] = {
        INT(out_at(p, OUT_TRACK, at)),    INT(out_at(p, OUT_RANK, at)),
        INT(out_at(p, OUT_RUN_AT, at)),   INT(out_at(p, OUT_SEQ, at)),
        INT(out_at(p, OUT_RUN_AT, last)), INT(out_at(p, OUT_SEQ, last)),
    };
    int64_t there = 0;
    int gone = 0;
    enum pawl_status st = lite_number(c, SQL_READY_SPAN, v, COUNT_OF(v), 0, &there, err);
    if (st != PAWL_OK || there != (int64_t)n)
        return st;
    st = lite_run(c, SQL_READY_REMOVE_SPAN, v, COUNT_OF(v), &gone, err);
    CHECK(st != PAWL_OK || gone == there);
    *out_rows += gone;
    return st;
}

static enum pawl_status ready_remove(struct lite *c, const struct led_params *p, int64_t *out_rows,
                                     struct pawl_err *err)
{
    size_t n = rows_of(p), len = 0;
    enum pawl_status st = PAWL_OK;
    CHECK(p->n == OUT_COLUMNS);
    for (size_t at = 0; at < n && st == PAWL_OK; at += len) {
        int64_t before = *out_rows;
        len = span_len(p, at, n);
        if (len >= SPAN_MIN)
            st = remove_span(c, p, at, len, out_rows, err);
        if (st == PAWL_OK && *out_rows == before)
            st = change_rows(c, SQL_READY_REMOVE, p, at, len, out_rows, err);
    }
    return st;
}

enum pawl_status lite_drive_ask(struct lite *c, enum sql_name name, const struct led_params *p,
                                struct led_rows **out, struct pawl_err *err)
{
    return name == SQL_READY_TAKE && rows_of(p) > 1 ? take_tracks(c, p, out, err)
                                                    : ask(c, name, p, out, err);
}

enum pawl_status lite_drive_change(struct lite *c, enum sql_name name, const struct led_params *p,
                                   int64_t *out_rows, struct pawl_err *err)
{
    *out_rows = 0;
    return name == SQL_READY_REMOVE ? ready_remove(c, p, out_rows, err)
                                    : change_rows(c, name, p, 0, rows_of(p), out_rows, err);
}
