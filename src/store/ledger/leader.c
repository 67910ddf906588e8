/*
 * leader.c - roles that one node at a time leads, by a lease and the database's clock.
 *
 * A node's row is locked before a role's, as everywhere: a transaction that removes the node waits
 * for us, or has committed and we see it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/ledger/cache.h"

enum pawl_status led_vacate(struct ledger *c, const struct node_op *n, bool own,
                            struct pawl_err *err)
{
    struct led_params p = { 0 };
    led_text(&p, n->node);
    led_text(&p, n->boot);
    led_int(&p, own);
    return led_run(c, SQL_LEADER_VACATE, &p, NULL, err);
}

struct leader {
    bool there, ours;
    struct led_leader row;
};

static enum pawl_status leader_read(struct ledger *c, const struct lead *q, struct leader *out,
                                    struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    *out = (struct leader){ 0 };
    led_text(&p, q->role);
    enum pawl_status st = led_query(c, SQL_LEADER_READ, &p, &r, err);
    if (st != PAWL_OK || r->n == 0)
        return st;
    struct led_leader *l = &out->row;
    out->there = true;
    *l = (struct led_leader){ .node = led_get(r, 0, 0),
                              .boot = led_get(r, 0, 1),
                              .epoch = led_get_int(r, 0, 2),
                              .acquired_us = led_get_int(r, 0, 3),
                              .until_us = led_get_int(r, 0, 4) };
    out->ours = l->until_us > c->now_us && bytes_eq(l->node, q->node) && bytes_eq(l->boot, q->boot);
    return led_leader_check(q->role, l, LED_LOADED, err);
}

/* Write the new leader and lease, if this node may do so. */
static enum pawl_status settle(struct ledger *c, struct lead *q, const struct leader *was,
                               struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_leader l = was->row;
    bool may = q->resign ? was->ours : was->ours || l.until_us <= c->now_us;
    if (may && !was->ours) {
        l.epoch++;
        l.acquired_us = c->now_us;
    }
    if (may) {
        l.node = q->node;
        l.boot = q->boot;
    }
    if (may)
        l.until_us = q->resign ? 0 : c->now_us + q->lease_us;
    q->ours = may && !q->resign;
    q->epoch = l.epoch;
    q->until_us = l.until_us;
    /* An epoch never falls: it tells a former leader from the present one. */
    CHECK(l.epoch >= was->row.epoch && led_leader_check(q->role, &l, LED_DECIDED, err) == PAWL_OK);
    led_text(&p, q->role);
    led_text(&p, l.node);
    led_text(&p, l.boot);
    led_int(&p, l.epoch);
    led_int(&p, l.acquired_us);
    led_int(&p, l.until_us);
    int64_t changed = 1;
    enum pawl_status st = may ? led_run(c, SQL_LEADER_WRITE, &p, &changed, err) : PAWL_OK;
    CHECK(st != PAWL_OK || changed == 1); /* its row is locked */
    return st;
}

enum pawl_status led_lead(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct lead *q = &op->lead;
    struct led_rows *node = NULL;
    struct led_params p = { 0 };
    struct leader l = { 0 };
    led_text(&p, q->node);
    enum pawl_status st = led_query(c, SQL_NODE_SHARE, &p, &node, err);
    if (st == PAWL_OK)
        st = led_node_rows_check(q->node, node, err);
    if (st == PAWL_OK)
        st = leader_read(c, q, &l, err);
    if (st != PAWL_OK)
        return st;
    if (!l.there)
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "no role \"%.*s\"", BYTES_ARG(q->role));
    else if (led_node_replaced(q->boot, node))
        op->status = err_set(&op->err, PAWL_LOST_LEASE, "node \"%.*s\" is no longer this process",
                             BYTES_ARG(q->node));
    return op->status == PAWL_OK ? settle(c, q, &l, err) : PAWL_OK;
}
