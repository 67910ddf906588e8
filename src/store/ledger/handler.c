/*
 * handler.c - the application's own SQL: a handler's inside its finish, and a module's script.
 *
 * It runs on the connection of the store, inside our transaction. A savepoint before the first
 * statement lets us undo the SQL and still store how the attempt ended.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "store/ledger/cache.h"

/* Undo the handler's SQL: go back to the savepoint, in the database and in memory, or begin a new
 * transaction if the handler's was lost. */
static enum pawl_status undo_theirs(struct ledger *c, struct pawl_err *err)
{
    led_lanes_undo(c);
    if (!c->db->in_tx(c)) {
        enum pawl_status st = led_begin(c, LED_WRITE, NULL, err);
        return st == PAWL_OK ? c->db->plain(c, "SAVEPOINT handler", err) : st;
    }
    enum pawl_status st = c->db->plain(c, "ROLLBACK TO SAVEPOINT handler", err);
    return st == PAWL_OK ? led_forget(c, err) : st;
}

/* Did every call complete now, as the handler wanted, so that its SQL may be committed? If the
 * finish is a repeat, the SQL of the first one was committed with it. */
static bool completed(const struct finish *f, size_t stored)
{
    if (stored != f->n)
        return false;
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].state != PAWL_COMPLETED)
            return false;
    return true;
}

/* Apply what ends the transaction; its answer becomes that of the handler's operation. *out: the
 * SQL may be committed with it. */
static enum pawl_status end_apply(struct ledger *c, struct op *op, bool *out, struct pawl_err *err)
{
    struct op *end = op->handler.end;
    size_t stored = 0;
    enum pawl_status st;
    *out = false;
    CHECK(end->kind == OP_FINISH || end->kind == OP_FEATURE);
    end->a = op->a;
    op_clear(end);
    c->tx->telling = end;
    if (end->kind == OP_FINISH) {
        st = led_finish(c, end, &end->finish, &stored, err);
        *out = st == PAWL_OK && end->status == PAWL_OK && completed(&end->finish, stored);
    } else {
        st = led_feature(c, end, err);
        *out = st == PAWL_OK && end->status == PAWL_OK && !end->feature.repeated;
    }
    op->status = end->status;
    op->err = end->err;
    op->ended = end->ended;
    op->n_ended = end->n_ended;
    op->lost = end->lost;
    op->n_lost = end->n_lost;
    op->brings = end->brings;
    op->timed = end->timed;
    c->tx->telling = op;
    return st;
}

enum pawl_status led_handler(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct handler_op *h = &op->handler;
    struct led_tx tx = { .base = { .ops = c->base.ops }, .c = c };
    h->committed_sql = false;
    enum pawl_status st = c->db->plain(c, "SAVEPOINT handler", err);
    if (st != PAWL_OK)
        return st;
    bool keep = h->run(h->ctx, &tx.base);
    CRASH_POINT("ledger.handler_ran");
    PAUSE_POINT("ledger.handler_ran");
    bool lost = tx.lost || !c->db->in_tx(c);
    /* A result without its SQL must not be stored: the handler has to run again. Inside the process
     * no connection is lost: then a statement of the handler ended the transaction (OR ROLLBACK),
     * it would do so again, and the handler was told. */
    if (keep && lost && !c->db->one_writer)
        return err_set(err, PAWL_BUSY, "database: a handler's transaction was lost");
    keep = keep && !lost;
    if (keep)
        st = end_apply(c, op, &h->committed_sql, err);
    if (st == PAWL_OK && !h->committed_sql) {
        bool alone;
        st = undo_theirs(c, err);
        /* What was refused stays refused without the SQL; a failed finish is stored alone, and a
         * feature answers what it has stored before. */
        if (st == PAWL_OK && op->status == PAWL_OK)
            st = end_apply(c, op, &alone, err);
    }
    return st;
}

enum pawl_status led_script_op(struct ledger *c, struct op *op, struct pawl_err *err)
{
    enum pawl_status st = c->db->script(c, op->script.sql, err);
    if (st != PAWL_INVALID || !c->db->in_tx(c))
        return st;
    /* The error is in the script: the rest of the group goes on. */
    op->status = err_set(&op->err, PAWL_INVALID, "%s", err ? err->text : "SQL");
    return PAWL_OK;
}
