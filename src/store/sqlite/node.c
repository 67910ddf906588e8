/*
 * node.c - the registry of process incarnations, and taking back what one of them held.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/move.h"
#include "store/sqlite/ops.h"

/* ---- Reclaim --------------------------------------------------------------------------------- */

static enum pawl_status take_back(struct lite *c, struct op *op, struct lite_lease *l, size_t i,
                                  const struct lite_try *how, struct pawl_err *err)
{
    struct lite_try t = *how;
    struct bytes id;
    enum pawl_status st = lite_try_end(c, l, i, &t, &id, err);
    if (st == PAWL_OK && id.data)
        st = lite_told_ended(op, id, err);
    return st;
}

/* A call, and those behind it in its run, which have not begun. */
static enum pawl_status take_run(struct lite *c, struct op *op, struct lite_lease *l, size_t i,
                                 const struct lite_try *how, int64_t *count, struct pawl_err *err)
{
    struct lite_try back = { .end = { .how = END_RELEASE } };
    enum pawl_status st = take_back(c, op, l, i, how, err);
    ++*count;
    for (int at = l->run[i].behind; at >= 0 && st == PAWL_OK; at = l->run[at].behind, ++*count)
        st = take_back(c, op, l, (size_t)at, &back, err);
    return st;
}

enum pawl_status lite_reclaim(struct lite *c, struct op *op, const struct token *token,
                              const struct try_end *how, int64_t *count, struct pawl_err *err)
{
    struct lite_lease *l;
    enum pawl_status st = lite_lease_get(c, token, &l, err);
    if (st != PAWL_OK || !l)
        return st;
    struct lite_try t = { .end = *how };
    t.end.alone = l->named == 1;
    if (how->how == END_LOST) {
        const char *text =
            arena_printf(&c->scratch, "owner \"%.*s\" was lost", BYTES_ARG(l->owner));
        if (!text)
            return err_no_memory(err, "a reclaim");
        t.error = bytes_of(text);
    }
    for (size_t i = 0; i < l->n && st == PAWL_OK; i++) {
        int before = l->run[i].before;
        if (l->state[i] == HELD_OPEN && (before < 0 || l->state[before] != HELD_OPEN))
            st = take_run(c, op, l, i, &t, count, err);
    }
    return st == PAWL_OK ? lite_lease_drop(c, l, err) : st;
}

/* The leases of a name: of this boot, or of every other. */
static enum pawl_status reclaim_node(struct lite *c, struct op *op, bool own, enum ending how,
                                     struct pawl_err *err)
{
    struct node_op *n = &op->node;
    struct try_end end = { .how = how, .fail_lost = n->fail_lost };
    n->reclaimed = 0;
    for (;;) {
        AUTO(lite_reset) sqlite3_stmt *q = NULL;
        struct token token;
        bool row = false;
        enum pawl_status st =
            lite_query(c, SQL_LEASE_OF_NODE, ARGS(TEXT(n->node), TEXT(n->boot), INT(own)), &q, err);
        if (st == PAWL_OK)
            st = lite_next(c, q, &row, err);
        if (st != PAWL_OK || !row)
            return st;
        struct bytes b = lite_column(q, 0);
        if (b.len != sizeof token.b)
            return err_set(err, PAWL_BROKEN, "a lease has a token of %zu bytes", b.len);
        memcpy(token.b, b.data, sizeof token.b);
        /* Each lease read is a lease gone, so asking for the first again moves on. */
        sqlite3_reset(q);
        st = lite_reclaim(c, op, &token, &end, &n->reclaimed, err);
        if (st != PAWL_OK)
            return st;
    }
}

/* ---- The registry ---------------------------------------------------------------------------- */

enum pawl_status lite_join(struct lite *c, struct op *op, struct pawl_err *err)
{
    const struct node_op *n = &op->node;
    enum pawl_status st = reclaim_node(c, op, false, END_LOST, err);
    if (st == PAWL_OK)
        st = lite_vacate(c, n, false, err);
    if (st != PAWL_OK)
        return st;
    return lite_run(c, SQL_NODE_JOIN,
                    ARGS(TEXT(n->node), TEXT(n->boot), TEXT(n->host), TEXT(n->version),
                         TEXT(n->address), TEXT(n->roles), TEXT(n->queues), INT(n->slots),
                         INT(n->busy), INT(n->connections), INT(n->cpu_milli), INT(n->memory),
                         INT(c->now_us)),
                    NULL, err);
}

static enum pawl_status not_ours(struct op *op)
{
    op->status = err_set(&op->err, PAWL_LOST_LEASE, "node \"%.*s\" is no longer this process",
                         BYTES_ARG(op->node.node));
    return PAWL_OK;
}

enum pawl_status lite_beat(struct lite *c, struct op *op, struct pawl_err *err)
{
    const struct node_op *n = &op->node;
    int changed = 0;
    enum pawl_status st =
        lite_run(c, SQL_NODE_BEAT,
                 ARGS(TEXT(n->node), TEXT(n->boot), INT(n->state), INT(n->slots), INT(n->busy),
                      INT(n->connections), INT(n->cpu_milli), INT(n->memory), INT(c->now_us)),
                 &changed, err);
    return st == PAWL_OK && changed == 0 ? not_ours(op) : st;
}

/* Is the row this boot's, and (with beats >= 0) has it beaten that often? */
static enum pawl_status node_is(struct lite *c, const struct node_op *n, int64_t beats, bool *out,
                                struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_NODE_READ, ARGS(TEXT(n->node)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    *out = st == PAWL_OK && row && bytes_eq(lite_column(q, 0), n->boot) &&
           (beats < 0 || lite_int(q, 1) == beats);
    return st;
}

enum pawl_status lite_leave(struct lite *c, struct op *op, struct pawl_err *err)
{
    bool ours;
    op->node.reclaimed = 0;
    enum pawl_status st = node_is(c, &op->node, -1, &ours, err);
    if (st != PAWL_OK || !ours)
        return st == PAWL_OK ? not_ours(op) : st;
    st = reclaim_node(c, op, true, END_RELEASE, err);
    if (st == PAWL_OK)
        st = lite_vacate(c, &op->node, true, err);
    if (st == PAWL_OK)
        st = lite_run(c, SQL_NODE_REMOVE, ARGS(TEXT(op->node.node)), NULL, err);
    return st;
}

enum pawl_status lite_bury(struct lite *c, struct op *op, struct pawl_err *err)
{
    const struct node_op *n = &op->node;
    bool still;
    op->node.reclaimed = 0;
    enum pawl_status st = node_is(c, n, n->beats, &still, err);
    if (st != PAWL_OK)
        return st;
    if (!still) {
        op->status =
            err_set(&op->err, PAWL_STATE, "node \"%.*s\" has moved on", BYTES_ARG(n->node));
        return PAWL_OK;
    }
    st = reclaim_node(c, op, true, END_LOST, err);
    if (st == PAWL_OK)
        st = lite_vacate(c, n, true, err);
    if (st == PAWL_OK)
        st = lite_run(c, SQL_NODE_BURY, ARGS(TEXT(n->node), TEXT(n->boot), INT(n->beats)), NULL,
                      err);
    return st;
}

enum pawl_status lite_drain(struct lite *c, struct op *op, struct pawl_err *err)
{
    const struct node_op *n = &op->node;
    int changed = 0;
    enum pawl_status st =
        lite_run(c, SQL_NODE_DRAIN, ARGS(TEXT(n->node), INT(n->drain)), &changed, err);
    if (st == PAWL_OK && changed == 0)
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "no node \"%.*s\"", BYTES_ARG(n->node));
    return st;
}

enum pawl_status lite_node_replaced(struct lite *c, struct bytes node, struct bytes boot, bool *out,
                                    struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_NODE_READ, ARGS(TEXT(node)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    *out = st == PAWL_OK && row && (lite_int(q, 2) || !bytes_eq(lite_column(q, 0), boot));
    return st;
}
