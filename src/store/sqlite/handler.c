/*
 * handler.c - the application's own SQL: a handler's inside its finish, and a module's script.
 *
 * What it may do is guard.c's. A savepoint lets us undo the SQL and still store how the try ended.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "store/sqlite/ops.h"

struct lite_tx {
    struct sql_tx base;
    struct lite *c;
    bool lost; /* a statement rolled the whole transaction back (OR ROLLBACK, a full disk) */
};

enum pawl_status lite_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                          struct pawl_rows *out, struct pawl_err *err)
{
    struct lite_tx *t = (struct lite_tx *)tx;
    *out = (struct pawl_rows){ 0 };
    if (t->lost)
        return err_set(err, PAWL_STATE, "SQL: the transaction was rolled back before");
    enum pawl_status st = lite_theirs(t->c, a, q, out, err);
    t->lost = sqlite3_get_autocommit(t->c->db);
    return st;
}

/* Back to the savepoint, in the database and in memory; or to a new transaction when theirs was
 * lost. */
static enum pawl_status undo_theirs(struct lite *c, struct pawl_err *err)
{
    lite_forget(c);
    if (sqlite3_get_autocommit(c->db)) {
        enum pawl_status st = lite_begin(c, PLAIN_BEGIN_WRITE, err);
        return st == PAWL_OK ? lite_say(c, "SAVEPOINT handler", err) : st;
    }
    return lite_say(c, "ROLLBACK TO handler", err);
}

/* Did everything end now, and as the handler wanted, so that its SQL may stand? A finish that turns
 * out to be a repeat was stored together with the SQL of the first. */
static bool completed(const struct op *op, size_t stored)
{
    const struct finish *f = op->handler.finish;
    if (stored != f->n)
        return false;
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].state != PAWL_COMPLETED)
            return false;
    return op->status == PAWL_OK;
}

enum pawl_status lite_handler(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct handler_op *h = &op->handler;
    struct lite_tx tx = { .base = { .ops = &store_sqlite }, .c = c };
    size_t stored;
    h->committed_sql = false;
    enum pawl_status st = lite_say(c, "SAVEPOINT handler", err);
    if (st != PAWL_OK)
        return st;
    bool keep = h->run(h->ctx, &tx.base) && !tx.lost;
    CRASH_POINT("sqlite.handler_ran");
    PAUSE_POINT("sqlite.handler_ran");
    if (keep) {
        st = lite_finish(c, op, h->finish, &stored, err);
        h->committed_sql = st == PAWL_OK && completed(op, stored);
    }
    if (st == PAWL_OK && !h->committed_sql) {
        st = undo_theirs(c, err);
        /* A refused finish is refused without the SQL too; a failed one is stored alone. */
        if (st == PAWL_OK && op->status == PAWL_OK)
            st = lite_finish(c, op, h->finish, &stored, err);
    }
    return st == PAWL_OK ? lite_say(c, "RELEASE handler", err) : st;
}

enum pawl_status lite_script_op(struct lite *c, struct op *op, struct pawl_err *err)
{
    enum pawl_status st = lite_theirs_script(c, op->script.sql, err);
    if (st != PAWL_INVALID || sqlite3_get_autocommit(c->db))
        return st;
    /* Theirs alone: the rest of the group goes on. */
    op->status = err_set(&op->err, PAWL_INVALID, "%s", err ? err->text : "SQL");
    return PAWL_OK;
}
