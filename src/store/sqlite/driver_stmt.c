/*
 * driver_stmt.c - the ledger's statements on SQLite, questions and changes.
 *
 * SQLite runs inside the process, so a statement runs once for each value of a column: asking for
 * many rows at once would save nothing. A statement that must read a table only once (json_each)
 * gets the column as a JSON array. Values are bound without a copy: they stay in the transaction's
 * memory until the statement has run.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/buf.h"
#include "store/sqlite/engine.h"

#define LIST_LEN_MAX (1 << 20)
#define ROWS_FIRST 16
/* The most rows for which room is made in advance. */
#define ANSWERED_MAX 1024
/* Fewer rows of ready are removed one by one. */
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
    int rc;
    if (!b.data)
        rc = sqlite3_bind_null(q, at);
    else if (kind == LED_TEXTS)
        rc = sqlite3_bind_text(q, at, b.data, (int)b.len, SQLITE_STATIC);
    else
        rc = sqlite3_bind_blob(q, at, b.data, (int)b.len, SQLITE_STATIC);
    CHECK(rc == SQLITE_OK); /* else the value of another row would be stored, or null */
}

static void bind_int(sqlite3_stmt *q, int at, int64_t i)
{
    int rc = i == LED_NULL ? sqlite3_bind_null(q, at) : sqlite3_bind_int64(q, at, i);
    CHECK(rc == SQLITE_OK); /* see bind_bytes() */
}

/* How many parameters the text names; further ones are not bound. */
static int params_named(sqlite3_stmt *q, const struct led_params *p)
{
    return p ? MIN(p->n, sqlite3_bind_parameter_count(q)) : 0;
}

/* Is the row-th value the same as in the row before? */
static bool value_stays(const struct led_param *v, size_t row)
{
    if (!v->many)
        return true;
    if (v->kind == LED_INTS)
        return v->k.ints[row] == v->k.ints[row - 1];
    const struct bytes *b = &v->k.bytes[row];
    return b->data == b[-1].data && b->len == b[-1].len;
}

/* The row-th value of every column, and what is one value for all rows; n parameters. After
 * another row (`next`) values that are the same stay bound. */
static void bind_row(sqlite3_stmt *q, const struct led_params *p, int n, size_t row, bool next)
{
    for (int i = 0; i < n; i++) {
        const struct led_param *v = &p->v[i];
        if (next && value_stays(v, row))
            continue;
        if (v->kind == LED_INTS)
            bind_int(q, i + 1, v->many ? v->k.ints[row] : v->i);
        else
            bind_bytes(q, i + 1, v->kind, v->many ? v->k.bytes[row] : v->b);
    }
}

/* The same with every column as a JSON array of numbers; false without memory. */
static bool bind_lists(sqlite3_stmt *q, struct arena *a, const struct led_params *p)
{
    int n = params_named(q, p);
    bind_row(q, p, n, 0, false);
    for (int i = 0; i < n; i++)
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
    size_t guess; /* rows that the statement answered the last time */
};

static bool answer_grow(struct answer *to)
{
    struct led_rows *r = to->r;
    size_t cap = to->cap ? to->cap * 2 : MAX(ROWS_FIRST, to->guess),
           width = (size_t)r->columns * sizeof *r->v;
    struct led_cell *v = arena_alloc(&to->c->ledger.scratch, cap * width);
    if (!v)
        return false;
    if (r->n)
        memcpy(v, r->v, (size_t)r->n * width);
    r->v = v;
    to->cap = cap;
    return true;
}

/* The value is read in place: safe, because only one thread uses this connection. */
static void cell_read(struct arena *a, sqlite3_value *v, struct led_cell *out)
{
    int type = sqlite3_value_type(v);
    *out = (struct led_cell){ .b = BYTES_NONE };
    if (type == SQLITE_INTEGER)
        *out = (struct led_cell){ .b = BYTES(""), .i = sqlite3_value_int64(v) };
    else if (type != SQLITE_NULL) {
        const char *data = sqlite3_value_blob(v); /* NULL: it is empty */
        size_t len = (size_t)sqlite3_value_bytes(v);
        out->b = arena_copy(a, data ? (struct bytes){ data, len } : BYTES(""));
    }
}

static bool row_keep(struct answer *to, sqlite3_stmt *q)
{
    struct led_rows *r = to->r;
    CHECK(sqlite3_data_count(q) == r->columns); /* the same statement for every value */
    if ((size_t)r->n == to->cap && !answer_grow(to))
        return false;
    struct led_cell *at = &r->v[r->n++ * r->columns];
    for (int i = 0; i < r->columns; i++)
        cell_read(&to->c->ledger.scratch, sqlite3_column_value(q, i), &at[i]);
    return !to->c->ledger.scratch.failed;
}

/* Run the statement, which is bound, and append its rows. */
static enum pawl_status rows_read(struct answer *to, enum sql_name name, sqlite3_stmt *q,
                                  struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    int rc;
    while ((rc = sqlite3_step(q)) == SQLITE_ROW && st == PAWL_OK)
        if (!row_keep(to, q))
            st = err_no_memory(err, "what the database answers");
    if (st == PAWL_OK && rc != SQLITE_DONE)
        st = lite_fail(to->c, rc, LED_STATEMENT(name), err);
    sqlite3_reset(q);
    return st;
}

static enum pawl_status ask(struct lite *c, enum sql_name name, const struct led_params *p,
                            struct led_rows **out, struct pawl_err *err)
{
    struct answer to = { .c = c,
                         .r = arena_zalloc(&c->ledger.scratch, 1, sizeof *to.r),
                         .guess = c->answered[name] };
    sqlite3_stmt *q;
    if (!to.r)
        return err_no_memory(err, "what the database answers");
    enum pawl_status st = lite_prepared(c, name, &q, err);
    if (st != PAWL_OK)
        return st;
    bool lists = p && c->lists[name];
    to.r->columns = sqlite3_column_count(q);
    if (lists && !bind_lists(q, &c->ledger.scratch, p))
        return err_no_memory(err, "what the database answers");
    int named = params_named(q, p);
    size_t n = lists ? 1 : rows_of(p);
    for (size_t row = 0; row < n && st == PAWL_OK; row++) {
        if (!lists)
            bind_row(q, p, named, row, row > 0);
        st = rows_read(&to, name, q, err);
    }
    c->answered[name] = (unsigned short)MIN(to.r->n, ANSWERED_MAX);
    *out = to.r;
    return st;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = ((const struct led_cell *)a)->i, y = ((const struct led_cell *)b)->i;
    return (x > y) - (x < y);
}

/* A claim takes the best calls of several tracks, and each track could fill it. So the run_at of
 * the last call that it can take is found first, in the index alone. */
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

/* Once for each row from `first` on; *out_rows grows by the rows that were changed. */
static enum pawl_status change_rows(struct lite *c, enum sql_name name, const struct led_params *p,
                                    size_t first, size_t n, int64_t *out_rows, struct pawl_err *err)
{
    sqlite3_stmt *q;
    enum pawl_status st = lite_prepared(c, name, &q, err);
    int named = st == PAWL_OK ? params_named(q, p) : 0;
    for (size_t row = first; row < first + n && st == PAWL_OK; row++) {
        bind_row(q, p, named, row, row > first);
        int rc = sqlite3_step(q);
        if (rc == SQLITE_DONE)
            *out_rows += sqlite3_changes(c->db);
        else if (rc != SQLITE_ROW)
            st = lite_fail(c, rc, LED_STATEMENT(name), err);
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

static bool same_pair(const struct led_params *p, size_t a, size_t b)
{
    return out_at(p, OUT_TRACK, a) == out_at(p, OUT_TRACK, b) &&
           out_at(p, OUT_RANK, a) == out_at(p, OUT_RANK, b);
}

/* How many rows from `at` on are neighbours in the index of one pair: the last ready_take found
 * them in this order, and nothing was added since. */
static size_t span_len(struct lite *c, const struct led_params *p, size_t at, size_t n)
{
    const struct led_rows *took = c->took;
    int row = c->took_at;
    size_t i = at;
    for (; took && row < took->n && led_get_int(took, row, 0) != out_at(p, OUT_SEQ, at); row++)
        ;
    for (; took && row < took->n && i < n && same_pair(p, i, at); i++, row++)
        if (led_get_int(took, row, 0) != out_at(p, OUT_SEQ, i))
            break;
    if (i > at)
        c->took_at = row;
    return i > at ? i - at : 1;
}

/* How many of the rows from `at` on have the run_at of the first. */
static size_t same_time(const struct led_params *p, size_t at, size_t n)
{
    size_t i = at + 1;
    while (i < at + n && out_at(p, OUT_RUN_AT, i) == out_at(p, OUT_RUN_AT, at))
        i++;
    return i - at;
}

static enum pawl_status remove_range(struct lite *c, enum sql_name name, const struct lite_arg *v,
                                     size_t n, int64_t *out_rows, struct pawl_err *err)
{
    int gone = 0;
    enum pawl_status st = lite_run(c, name, v, n, &gone, err);
    *out_rows += gone;
    return st;
}

/* The rows first to last, all of one run_at. */
static enum pawl_status remove_same(struct lite *c, const struct led_params *p, size_t first,
                                    size_t last, int64_t *out_rows, struct pawl_err *err)
{
    return remove_range(c, SQL_READY_REMOVE_SAME,
                        ARGS(INT(out_at(p, OUT_TRACK, first)), INT(out_at(p, OUT_RANK, first)),
                             INT(out_at(p, OUT_RUN_AT, first)), INT(out_at(p, OUT_SEQ, first)),
                             INT(out_at(p, OUT_SEQ, last))),
                        out_rows, err);
}

/* As ranges of the index, at half the cost of single rows: those of the first run_at, those of the
 * last, and all between. The ledger checks how many were removed. */
static enum pawl_status remove_span(struct lite *c, const struct led_params *p, size_t at, size_t n,
                                    int64_t *out_rows, struct pawl_err *err)
{
    size_t last = at + n - 1, head = same_time(p, at, n), tail = last;
    enum pawl_status st = remove_same(c, p, at, at + head - 1, out_rows, err);
    if (st != PAWL_OK || head == n)
        return st;
    while (out_at(p, OUT_RUN_AT, tail - 1) == out_at(p, OUT_RUN_AT, last))
        tail--;
    if (tail > at + head)
        st = remove_range(c, SQL_READY_REMOVE_BETWEEN,
                          ARGS(INT(out_at(p, OUT_TRACK, at)), INT(out_at(p, OUT_RANK, at)),
                               INT(out_at(p, OUT_RUN_AT, at)), INT(out_at(p, OUT_RUN_AT, last))),
                          out_rows, err);
    return st == PAWL_OK ? remove_same(c, p, tail, last, out_rows, err) : st;
}

static enum pawl_status ready_remove(struct lite *c, const struct led_params *p, int64_t *out_rows,
                                     struct pawl_err *err)
{
    size_t n = rows_of(p), len = 0;
    enum pawl_status st = PAWL_OK;
    CHECK(p->n == OUT_COLUMNS);
    for (size_t at = 0; at < n && st == PAWL_OK; at += len) {
        len = span_len(c, p, at, n);
        st = len < SPAN_MIN ? change_rows(c, SQL_READY_REMOVE, p, at, len, out_rows, err)
                            : remove_span(c, p, at, len, out_rows, err);
    }
    return st;
}

enum pawl_status lite_drive_ask(struct lite *c, enum sql_name name, const struct led_params *p,
                                struct led_rows **out, struct pawl_err *err)
{
    if (name != SQL_READY_TAKE)
        return ask(c, name, p, out, err);
    enum pawl_status st = rows_of(p) > 1 ? take_tracks(c, p, out, err) : ask(c, name, p, out, err);
    c->took = st == PAWL_OK ? *out : NULL;
    c->took_at = 0;
    return st;
}

enum pawl_status lite_drive_change(struct lite *c, enum sql_name name, const struct led_params *p,
                                   int64_t *out_rows, struct pawl_err *err)
{
    *out_rows = 0;
    if (name == SQL_READY_ADD)
        c->took = NULL;
    return name == SQL_READY_REMOVE ? ready_remove(c, p, out_rows, err)
                                    : change_rows(c, name, p, 0, rows_of(p), out_rows, err);
}
