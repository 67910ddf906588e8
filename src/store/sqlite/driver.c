/*
 * driver.c - a connection as struct led_driver: for the ledger, and for tables that are not the
 * ledger's (STORE_DRIVER_ONLY).
 *
 * Transactions, numbers and slots; driver_stmt.c runs the statements, conn.c waits for locks and
 * translates errors.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "store/sqlite/engine.h"

/* Instructions of SQLite's virtual machine between two readings of the clock. */
#define LOOK_STEPS 10000

static const char *const counter_names[LITE_COUNTERS] = { "seq", "version" };

/* ---- Numbers --------------------------------------------------------------------------------- */

static enum pawl_status counter_read(struct ledger *l, int which, struct pawl_err *err)
{
    struct lite_counter *k = &lite_in(l)->counters[which];
    if (k->known)
        return PAWL_OK;
    enum pawl_status st = lite_number(
        lite_in(l), SQL_META_GET, ARGS(TEXT(bytes_of(counter_names[which]))), -1, &k->last, err);
    k->known = st == PAWL_OK;
    k->stored = k->last;
    if (st == PAWL_OK && k->last < 0)
        st = err_set(err, PAWL_BROKEN, "database: the counter \"%s\" is missing",
                     counter_names[which]);
    return st;
}

static enum pawl_status numbers(struct ledger *l, int64_t *out, size_t n, struct pawl_err *err)
{
    struct lite_counter *k = &lite_in(l)->counters[LITE_SEQ];
    enum pawl_status st = counter_read(l, LITE_SEQ, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        out[i] = ++k->last;
    return st;
}

static void numbers_back(struct ledger *l, size_t n)
{
    struct lite_counter *k = &lite_in(l)->counters[LITE_SEQ];
    CHECK(k->known && k->last - (int64_t)n >= k->stored);
    k->last -= (int64_t)n;
}

/* The ledger asks for versions by a statement; here they come from memory. */
static enum pawl_status versions(struct ledger *l, const struct led_params *p,
                                 struct led_rows **out, struct pawl_err *err)
{
    struct lite_counter *k = &lite_in(l)->counters[LITE_VERSION];
    size_t n = (size_t)p->v[0].i;
    struct led_rows *r = arena_zalloc(&l->scratch, 1, sizeof *r);
    struct led_cell *v = arena_zalloc(&l->scratch, MAX(n, 1), sizeof *v);
    if (!r || !v)
        return err_no_memory(err, "versions");
    enum pawl_status st = counter_read(l, LITE_VERSION, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        v[i] = (struct led_cell){ .b = BYTES(""), .i = ++k->last };
    *r = (struct led_rows){ .n = (int)n, .columns = 1, .v = v };
    *out = r;
    return st;
}

static enum pawl_status counters_write(struct ledger *l, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (int i = 0; i < LITE_COUNTERS && st == PAWL_OK; i++) {
        struct lite_counter *k = &lite_in(l)->counters[i];
        int changed = 1;
        CHECK(k->last >= k->stored); /* a number is given once */
        if (k->last != k->stored)
            st = lite_run(lite_in(l), SQL_META_SET,
                          ARGS(TEXT(bytes_of(counter_names[i])), INT(k->last)), &changed, err);
        CHECK(st != PAWL_OK || changed == 1);
        k->stored = k->last;
    }
    return st;
}

/* Drop what the former transaction kept in memory. */
static void forget(struct ledger *l)
{
    struct lite *c = lite_in(l);
    memset(c->counters, 0, sizeof c->counters);
    c->took = NULL;
}

/* ---- The driver's slots ---------------------------------------------------------------------- */

/* Another transaction holds the lock: a retry may succeed. The ledger does not retry, since it has
 * waited for BUSY_US: its caller does. */
static enum pawl_status said(struct ledger *l, enum pawl_status st)
{
    int rc = sqlite3_errcode(lite_in(l)->db) & 0xff;
    if (lite_in(l)->driver_only && st == PAWL_BUSY && (rc == SQLITE_BUSY || rc == SQLITE_LOCKED))
        l->redo = true;
    return st;
}

static enum pawl_status query(struct ledger *l, enum sql_name name, const struct led_params *p,
                              struct led_rows **out, int64_t *out_rows, struct pawl_err *err)
{
    int64_t changed = 0;
    enum pawl_status st;
    if (name == SQL_VERSION_NEXT)
        return versions(l, p, out, err);
    if (out)
        st = lite_drive_ask(lite_in(l), name, p, out, err);
    else
        st = lite_drive_change(lite_in(l), name, p, &changed, err);
    if (out_rows)
        *out_rows = changed;
    return said(l, st);
}

static enum pawl_status batch(struct ledger *l, const struct led_batch *b, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; b && i < b->n && st == PAWL_OK; i++) {
        const struct led_batched *it = &b->v[i];
        int64_t changed = 0;
        st = query(l, it->name, &it->p, it->out, &changed, err);
        if (st == PAWL_OK && it->rows >= 0 && changed != it->rows)
            st = led_row_changed(l, it->name, err);
    }
    return st;
}

static enum pawl_status begin(struct ledger *l, enum led_begin how, const struct led_batch *first,
                              struct pawl_err *err)
{
    struct lite *c = lite_in(l);
    c->sql_until_us = 0;
    forget(l);
    enum pawl_status st = lite_begin(c, how == LED_READ ? PLAIN_BEGIN : PLAIN_BEGIN_WRITE, err);
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
    forget(l);
}

/* The statement commits by itself, so the check of the file comes before it. now_us can be set
 * here, because the clock is this process's. */
static enum pawl_status autocommit(struct ledger *l, struct pawl_err *err)
{
    rollback(l);
    l->now_us = world_now(l->world);
    return said(l, lite_intact(lite_in(l), err));
}

static enum pawl_status commit(struct ledger *l, const struct led_batch *last, struct pawl_err *err)
{
    struct lite *c = lite_in(l);
    enum pawl_status st = batch(l, last, err);
    if (st == PAWL_OK)
        st = counters_write(l, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("sqlite.driver.before_commit");
    st = lite_commit(c, err);
    CRASH_POINT("sqlite.driver.after_commit");
    if (st == PAWL_OK)
        lite_bound_log(c);
    return said(l, st);
}

static enum pawl_status plain(struct ledger *l, const char *text, struct pawl_err *err)
{
    return lite_say(lite_in(l), text, err);
}

static enum pawl_status script(struct ledger *l, struct bytes text, struct pawl_err *err)
{
    return lite_theirs_script(lite_in(l), text, err);
}

const struct led_driver lite_driver = {
    .one_writer = true,
    .begin = begin,
    .autocommit = autocommit,
    .commit = commit,
    .rollback = rollback,
    .in_tx = in_tx,
    .query = query,
    .batch = batch,
    .numbers = numbers,
    .numbers_back = numbers_back,
    .plain = plain,
    .script = script,
};

/* ---- Tables of another kind ------------------------------------------------------------------ */

static int late(void *ctx)
{
    struct lite *c = ctx;
    return c->sql_until_us && world_mono(c->ledger.world) >= c->sql_until_us;
}

/* patience(ms): how long the rest of the transaction may take; 0, as at its beginning: no limit. */
static void patience(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    struct lite *c = sqlite3_user_data(ctx);
    int64_t ms = n ? sqlite3_value_int64(v[0]) : 0;
    c->sql_until_us = ms ? world_mono(c->ledger.world) + ms * MS_US : 0;
    sqlite3_result_int64(ctx, ms);
}

enum pawl_status lite_driver_init(struct lite *c, struct pawl_err *err)
{
    sqlite3_progress_handler(c->db, LOOK_STEPS, late, c);
    int rc = sqlite3_create_function(c->db, "patience", 1, SQLITE_UTF8, c, patience, NULL, NULL);
    return rc == SQLITE_OK ? PAWL_OK : err_no_memory(err, "a connection");
}
