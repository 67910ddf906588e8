/*
 * commit.c - transactions, and a group of operations as one of them.
 *
 * One writer at a time: after BEGIN IMMEDIATE nobody else changes anything, so an operation reads,
 * decides, and only then writes; a refusal is always decided before its first write and needs no
 * undoing. What several operations of a group would each write (the sequence number, rows of
 * pawl_ready that the same group claims, the list of a lease) is kept in memory and written once,
 * before the commit.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "store/sqlite/move.h"
#include "store/sqlite/ops.h"

/* Some errors have rolled back already; then there is nothing to undo but our memory of it. */
static enum pawl_status lite_rolled_back(struct lite *c, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    if (!sqlite3_get_autocommit(c->db))
        st = lite_plain(c, PLAIN_ROLLBACK, err);
    return sqlite3_get_autocommit(c->db) ? PAWL_OK : st;
}

enum pawl_status lite_begin(struct lite *c, enum lite_plain how, struct pawl_err *err)
{
    enum pawl_status st = lite_rolled_back(c, err);
    if (st == PAWL_OK)
        st = lite_plain(c, how, err);
    if (st != PAWL_OK)
        return st;
    c->tx++;
    c->now_us = world_now(c->world);
    c->n_fresh = 0;
    c->lanes.n_stored = c->lanes.n;
    arena_reset(&c->scratch);
    return PAWL_OK;
}

void lite_forget(struct lite *c)
{
    c->n_fresh = 0;
    c->seq_tx = c->version_tx = c->wishes_tx = c->paused_tx = c->keys.tx = c->looks.tx = 0;
    lite_leases_after(c, true);
    lite_lanes_undo(c);
}

void lite_undo(struct lite **tx)
{
    struct lite *c = *tx;
    if (!c)
        return;
    /* Without memory even this may fail; then lite_begin() does it before anything else. */
    enum pawl_status undone = lite_rolled_back(c, NULL);
    (void)undone;
    lite_forget(c);
    *tx = NULL;
}

enum pawl_status lite_commit(struct lite *taken, struct pawl_err *err)
{
    AUTO(lite_undo) struct lite *tx = taken;
    enum pawl_status st = lite_moved(tx, err); /* before COMMIT: nothing was stored then */
    if (st != PAWL_OK)
        return st;
    st = lite_plain(tx, PLAIN_COMMIT, err);
    if (st != PAWL_OK) {
        /* The commit record may be in the log although its fsync failed: a crash now could bring it
         * back. */
        if ((sqlite3_extended_errcode(tx->db) & 0xff) == SQLITE_IOERR && st == PAWL_BUSY) {
            st = PAWL_UNKNOWN;
            if (err)
                err->status = st;
        }
        return st;
    }
    lite_leases_after(tx, false);
    tx = NULL;
    return PAWL_OK;
}

/* ---- A group --------------------------------------------------------------------------------- */

/* Everything kept in memory goes into its tables: what follows looks there. */
static enum pawl_status settle(struct lite *c, struct pawl_err *err)
{
    enum pawl_status st = lite_fresh_write(c, err);
    if (st == PAWL_OK)
        st = lite_leases_write(c, err);
    return st == PAWL_OK ? lite_keys_write(c, err) : st;
}

static enum pawl_status apply(struct lite *c, struct op *op, struct pawl_err *err)
{
    size_t stored;
    c->gathers = op->kind == OP_ACCEPT || op->kind == OP_CLAIM || op->kind == OP_FINISH;
    if (!c->gathers) {
        enum pawl_status st = settle(c, err);
        if (st != PAWL_OK)
            return st;
    }
    switch (op->kind) {
    case OP_ACCEPT:
        return lite_accept(c, op, err);
    case OP_CLAIM:
        return lite_claim(c, op, err);
    case OP_FINISH:
        return lite_finish(c, op, &op->finish, &stored, err);
    case OP_EXTEND:
        return lite_extend(c, op, err);
    case OP_CANCEL:
        return lite_cancel(c, op, err);
    case OP_REDRIVE:
        return lite_redrive(c, op, err);
    case OP_MOVE:
        return lite_move_to(c, op, err);
    case OP_PAUSE:
        return lite_pause(c, op, err);
    case OP_OBJECT:
        return lite_object_op(c, op, err);
    case OP_UNBLOCK:
        return lite_unblock(c, op, err);
    case OP_JOIN:
        return lite_join(c, op, err);
    case OP_BEAT:
        return lite_beat(c, op, err);
    case OP_LEAVE:
        return lite_leave(c, op, err);
    case OP_BURY:
        return lite_bury(c, op, err);
    case OP_DRAIN:
        return lite_drain(c, op, err);
    case OP_LEAD:
        return lite_lead(c, op, err);
    case OP_SWEEP:
        return lite_sweep(c, op, err);
    case OP_GC:
        return lite_gc(c, op, err);
    case OP_REQUEUE:
        return lite_requeue(c, op, err);
    case OP_HANDLER:
        return lite_handler(c, op, err);
    case OP_SCRIPT:
        return lite_script_op(c, op, err);
    case OP_COUNT:
        break;
    }
    return err_set(err, PAWL_INVALID, "operation %d is none", (int)op->kind);
}

static enum pawl_status seq_write(struct lite *c, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    if (c->seq_tx == c->tx && c->seq != c->seq_stored)
        st = lite_run(c, SQL_META_SET, ARGS(TEXT(BYTES("seq")), INT(c->seq)), NULL, err);
    if (st == PAWL_OK && c->version_tx == c->tx)
        st = lite_run(c, SQL_META_SET, ARGS(TEXT(BYTES("version")), INT(c->version)), NULL, err);
    return st;
}

enum pawl_status lite_commit_ops(struct store *s, struct op *const *v, size_t n,
                                 struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    AUTO(lite_undo) struct lite *tx = NULL;
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN_WRITE, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    CRASH_POINT("sqlite.begin");
    PAUSE_POINT("sqlite.begin");
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        v[i]->status = PAWL_OK;
        st = apply(c, v[i], err);
    }
    if (st == PAWL_OK)
        st = settle(c, err);
    if (st == PAWL_OK)
        st = seq_write(c, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("sqlite.before_commit");
    PAUSE_POINT("sqlite.before_commit");
    st = lite_commit(TAKE(tx), err);
    CRASH_POINT("sqlite.after_commit");
    if (st == PAWL_OK)
        lite_bound_log(c);
    return st;
}
