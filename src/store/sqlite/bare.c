/*
 * bare.c - a connection without the ledger, driven like those of the database servers.
 *
 * Whoever has tables of another kind gets what the other engines' driver is: named statements in
 * transactions of their own, with this engine's waiting and its meaning of errors. A column of
 * values of a question goes as a JSON array of numbers; a statement that changes something is run
 * once a row.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/buf.h"
#include "base/hook.h"
#include "base/mem.h"
#include "store/ledger/ledger.h"
#include "store/sqlite/engine.h"

/* Steps of SQLite's machine between two looks at the clock. */
#define LOOK_STEPS 10000
#define LIST_LEN_MAX (1 << 20)
#define ROWS_FIRST 64

struct bare {
    struct ledger ledger;
    struct lite *c; /* owned */
};

static struct lite *lite_in(struct ledger *l)
{
    return ((struct bare *)l)->c;
}

static int late(void *ctx)
{
    struct lite *c = ctx;
    return c->sql_until_us && world_mono(c->world) >= c->sql_until_us;
}

/* patience(ms): what the transaction does from here on may take so long; it is 0 when one begins.
 */
static void patience(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    struct lite *c = sqlite3_user_data(ctx);
    int64_t ms = n ? sqlite3_value_int64(v[0]) : 0;
    c->sql_until_us = ms ? world_mono(c->world) + ms * MS_US : 0;
    sqlite3_result_int64(ctx, ms);
}

/* The lock of somebody else's transaction: the same again may well do. */
static enum pawl_status said(struct ledger *l, enum pawl_status st)
{
    int rc = sqlite3_errcode(lite_in(l)->db) & 0xff;
    if (st == PAWL_BUSY && (rc == SQLITE_BUSY || rc == SQLITE_LOCKED))
        l->redo = true;
    return st;
}

/* ---- Statements ------------------------------------------------------------------------------ */

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

static struct lite_arg arg_of(const struct led_param *p, size_t row)
{
    bool number = p->kind == LED_INTS;
    int64_t i = p->many && number ? p->k.ints[row] : p->i;
    struct bytes b = p->many && !number ? p->k.bytes[row] : p->b;
    if (number)
        return i == LED_NULL ? (struct lite_arg){ .kind = ARG_NULL } : INT(i);
    return p->kind == LED_TEXTS ? TEXT(b) : BLOB(b);
}

static bool row_keep(struct ledger *l, sqlite3_stmt *q, struct led_rows *r, size_t *cap)
{
    int n = sqlite3_column_count(q);
    if ((size_t)r->n == *cap) {
        size_t more = *cap ? *cap * 2 : ROWS_FIRST;
        struct led_cell *v = arena_zalloc(&l->scratch, more * (size_t)n, sizeof *v);
        if (!v)
            return false;
        if (r->n)
            memcpy(v, r->v, (size_t)r->n * (size_t)n * sizeof *v);
        r->v = v;
        *cap = more;
    }
    struct led_cell *to = &r->v[r->n++ * n];
    for (int i = 0; i < n; i++) {
        bool number = sqlite3_column_type(q, i) == SQLITE_INTEGER;
        to[i].i = number ? lite_int(q, i) : 0;
        to[i].b = number ? BYTES("") : arena_copy(&l->scratch, lite_column(q, i));
    }
    return !l->scratch.failed;
}

static enum pawl_status ask(struct ledger *l, enum sql_name name, const struct led_params *p,
                            struct led_rows **out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    struct lite_arg v[LED_PARAMS_MAX];
    struct led_rows *r = arena_zalloc(&l->scratch, 1, sizeof *r);
    size_t n = p ? (size_t)p->n : 0, cap = 0;
    bool row = false;
    for (size_t i = 0; i < n; i++)
        v[i] =
            p->v[i].many ? TEXT(bytes_of(list_text(&l->scratch, &p->v[i].k))) : arg_of(&p->v[i], 0);
    if (!r || l->scratch.failed)
        return err_no_memory(err, sql_name_text[name]);
    enum pawl_status st = lite_query(lite_in(l), name, v, n, &q, err);
    if (st == PAWL_OK)
        r->columns = sqlite3_column_count(q);
    while (st == PAWL_OK && (st = lite_next(lite_in(l), q, &row, err)) == PAWL_OK && row)
        if (!row_keep(l, q, r, &cap))
            return err_no_memory(err, sql_name_text[name]);
    *out = r;
    return st;
}

static enum pawl_status change(struct ledger *l, enum sql_name name, const struct led_params *p,
                               int64_t *out_rows, struct pawl_err *err)
{
    struct lite_arg v[LED_PARAMS_MAX];
    size_t rows = 1, n = p ? (size_t)p->n : 0;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < n; i++)
        if (p->v[i].many)
            rows = p->v[i].k.n;
    *out_rows = 0;
    for (size_t at = 0; at < rows && st == PAWL_OK; at++) {
        int changed = 0;
        for (size_t i = 0; i < n; i++)
            v[i] = arg_of(&p->v[i], at);
        st = lite_run(lite_in(l), name, v, n, &changed, err);
        *out_rows += changed;
    }
    return st;
}

static enum pawl_status query(struct ledger *l, enum sql_name name, const struct led_params *p,
                              struct led_rows **out, int64_t *out_rows, struct pawl_err *err)
{
    int64_t changed;
    return said(l, out ? ask(l, name, p, out, err)
                       : change(l, name, p, out_rows ? out_rows : &changed, err));
}

static enum pawl_status batch(struct ledger *l, const struct led_batch *b, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; b && i < b->n && st == PAWL_OK; i++) {
        const struct led_batched *it = &b->v[i];
        int64_t changed = 0;
        st = query(l, it->name, &it->p, it->out, &changed, err);
        if (st == PAWL_OK && it->rows >= 0 && changed != it->rows)
            st = led_again(l, sql_name_text[it->name], err);
    }
    return st;
}

/* ---- Transactions ---------------------------------------------------------------------------- */

static enum pawl_status begin(struct ledger *l, enum led_begin how, const struct led_batch *first,
                              struct pawl_err *err)
{
    struct lite *c = lite_in(l);
    c->sql_until_us = 0;
    enum pawl_status st = lite_begin(c, how == LED_READ ? PLAIN_BEGIN : PLAIN_BEGIN_WRITE, err);
    l->now_us = c->now_us;
    return st == PAWL_OK ? batch(l, first, err) : said(l, st);
}

static bool in_tx(struct ledger *l)
{
    return !sqlite3_get_autocommit(lite_in(l)->db);
}

static void rollback(struct ledger *l)
{
    struct lite *c = lite_in(l);
    lite_undo(&c);
}

static enum pawl_status commit(struct ledger *l, const struct led_batch *last, struct pawl_err *err)
{
    struct lite *c = lite_in(l);
    enum pawl_status st = batch(l, last, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("sqlite.bare.before_commit");
    st = lite_commit(c, err);
    CRASH_POINT("sqlite.bare.after_commit");
    if (st == PAWL_OK)
        lite_bound_log(c);
    return said(l, st);
}

static const struct led_driver driver = {
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .in_tx = in_tx,
    .query = query,
    .batch = batch,
};

/* ---- Opening --------------------------------------------------------------------------------- */

static void bare_close(struct store *s)
{
    struct bare *b = (struct bare *)s;
    if (b->c)
        lite_close(&b->c->base);
    led_end(&b->ledger);
    mem_free(b);
}

static const struct store_ops bare_ops = {
    .name = "sqlite",
    .traits = STORE_ONE_WRITER | STORE_DURABLE | STORE_SHARED | STORE_DRIVEN,
    .close = bare_close,
};

enum pawl_status lite_bare_open(const struct store_conf *conf, struct store **out,
                                struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    struct store_conf inner = *conf;
    struct store *opened;
    struct bare *b = mem_zalloc(sizeof *b);
    if (!b)
        return err_no_memory(err, "a connection");
    b->ledger.base.ops = &bare_ops;
    s = &b->ledger.base;
    led_init(&b->ledger, conf, &driver);
    inner.role = STORE_WRITER;
    enum pawl_status st = lite_open(&inner, &opened, err);
    if (st != PAWL_OK)
        return st;
    b->c = lite_of(opened);
    sqlite3_progress_handler(b->c->db, LOOK_STEPS, late, b->c);
    if (sqlite3_create_function(b->c->db, "patience", 1, SQLITE_UTF8, b->c, patience, NULL, NULL) !=
        SQLITE_OK)
        return err_no_memory(err, "a connection");
    *out = TAKE(s);
    return PAWL_OK;
}
