/*
 * tx.c - transactions of a connection: begin, undo, commit.
 *
 * What must stay true: a commit that may or may not have happened is UNKNOWN and never BUSY,
 * because work that is BUSY is repeated and would be stored twice.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/engine.h"

/* SQLite rolls back by itself after some errors; then there is nothing to undo. */
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
    c->ledger.now_us = world_now(c->ledger.world);
    return PAWL_OK;
}

void lite_undo(struct lite **tx)
{
    struct lite *c = *tx;
    if (!c)
        return;
    /* Without memory even this may fail; then lite_begin() does it before anything else. */
    enum pawl_status undone = lite_rolled_back(c, NULL);
    (void)undone;
    *tx = NULL;
}

enum pawl_status lite_commit(struct lite *taken, struct pawl_err *err)
{
    AUTO(lite_undo) struct lite *tx = taken;
    enum pawl_status st = lite_intact(tx, err); /* before COMMIT: nothing was stored then */
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
    tx = NULL;
    return PAWL_OK;
}
