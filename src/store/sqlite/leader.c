/*
 * leader.c - roles that one node at a time has, by a lease and the database's clock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/ops.h"

enum pawl_status lite_vacate(struct lite *c, const struct node_op *n, bool own,
                             struct pawl_err *err)
{
    return lite_run(c, SQL_LEADER_VACATE, ARGS(TEXT(n->node), TEXT(n->boot), INT(own)), NULL, err);
}

struct leader {
    bool there, ours;
    int64_t epoch, acquired_us, until_us;
};

static enum pawl_status leader_read(struct lite *c, const struct lead *q, struct leader *out,
                                    struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *r = NULL;
    *out = (struct leader){ 0 };
    enum pawl_status st = lite_query(c, SQL_LEADER_READ, ARGS(TEXT(q->role)), &r, err);
    if (st == PAWL_OK)
        st = lite_next(c, r, &out->there, err);
    if (st != PAWL_OK || !out->there)
        return st;
    out->epoch = lite_int(r, 2);
    out->acquired_us = lite_int(r, 3);
    out->until_us = lite_int(r, 4);
    out->ours = out->until_us > c->now_us && bytes_eq(lite_column(r, 0), q->node) &&
                bytes_eq(lite_column(r, 1), q->boot);
    return PAWL_OK;
}

/* How it stands from now on, if that is for this one to say. */
static enum pawl_status settle(struct lite *c, struct lead *q, struct leader l,
                               struct pawl_err *err)
{
    bool may = q->resign ? l.ours : l.ours || l.until_us <= c->now_us;
    if (may && !l.ours) {
        l.epoch++;
        l.acquired_us = c->now_us;
    }
    if (may)
        l.until_us = q->resign ? 0 : c->now_us + q->lease_us;
    q->ours = may && !q->resign;
    q->epoch = l.epoch;
    q->until_us = l.until_us;
    if (!may)
        return PAWL_OK;
    return lite_run(c, SQL_LEADER_WRITE,
                    ARGS(TEXT(q->role), TEXT(q->node), TEXT(q->boot), INT(l.epoch),
                         INT(l.acquired_us), INT(l.until_us)),
                    NULL, err);
}

enum pawl_status lite_lead(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct lead *q = &op->lead;
    struct leader l;
    bool replaced = false;
    enum pawl_status st = leader_read(c, q, &l, err);
    if (st == PAWL_OK && l.there)
        st = lite_node_replaced(c, q->node, q->boot, &replaced, err);
    if (st != PAWL_OK)
        return st;
    if (!l.there)
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "no role \"%.*s\"", BYTES_ARG(q->role));
    else if (replaced)
        op->status = err_set(&op->err, PAWL_LOST_LEASE, "node \"%.*s\" is no longer this process",
                             BYTES_ARG(q->node));
    return op->status == PAWL_OK ? settle(c, q, l, err) : PAWL_OK;
}
