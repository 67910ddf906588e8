/*
 * node.c - the registry of process incarnations, and taking back what one of them held.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "store/mem/mem.h"

/* ---- Reclaim ----------------------------------------------------------------------------------
 */

enum pawl_status lease_reclaim(struct mem_tx *tx, struct mem_lease *l, struct try_end how,
                               int64_t *count)
{
    struct mem_db *db = tx->db;
    struct bytes owner = l->worker.data ? l->worker : l->node;
    struct ending_of e = { .end = how };
    enum pawl_status st = PAWL_OK;
    if (how.how == END_LOST) {
        e.error = bytes_of(arena_printf(tx->op->a, "owner \"%.*s\" was lost", BYTES_ARG(owner)));
        if (!e.error.data)
            return PAWL_NO_MEMORY;
    }
    e.end.alone = l->now.named == 1;
    for (struct mem_call *c = lease_first(db, l); c; c = lease_first(db, l)) {
        struct mem_key *k = c->now.key;
        if (k)
            c = line_first(k); /* of its run: those behind have not begun */
        st = try_end_write(tx, c, &e);
        if (st == PAWL_OK && c->now.place == PLACE_ENDED)
            st = told_ended(tx, c);
        if (st == PAWL_OK && k)
            st = run_hand_back(tx, k, false, count);
        if (st != PAWL_OK)
            return st;
        (*count)++;
    }
    return thing_drop(db, &l->thing) ? PAWL_OK : PAWL_NO_MEMORY;
}

/* Which leases of a name: those of this boot, or those of every other. One with an end of its own
 * belongs to a worker outside the process. */
static bool lease_of(const struct mem_lease *l, const struct node_op *q, bool same_boot)
{
    return !l->now.until_us && bytes_eq(l->node, q->node) &&
           bytes_eq(l->boot, q->boot) == same_boot;
}

static enum pawl_status reclaim_node(struct mem_tx *tx, struct node_op *q, bool same_boot,
                                     enum ending how)
{
    struct tree_node *n =
        tx->db->leases.root ? tree_from(&tx->db->leases, KEY(INT64_MIN, INT64_MIN)) : NULL;
    while (n) {
        struct mem_lease *l = THING_OF(n, struct mem_lease, by_token);
        n = tree_after(&tx->db->leases, n);
        if (!lease_of(l, q, same_boot))
            continue;
        struct try_end end = { .how = how, .fail_lost = q->fail_lost };
        enum pawl_status st = lease_reclaim(tx, l, end, &q->reclaimed);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

/* ---- The registry -----------------------------------------------------------------------------
 */

static struct mem_node *node_find(const struct mem_db *db, struct bytes name)
{
    struct table_node *n = table_find(&db->nodes, name);
    return n ? THING_OF(n, struct mem_node, by_name) : NULL;
}

static enum pawl_status not_ours(struct mem_tx *tx, const struct node_op *q)
{
    tx->op->status = err_set(&tx->op->err, PAWL_LOST_LEASE,
                             "node \"%.*s\" is no longer this process", BYTES_ARG(q->node));
    return PAWL_OK;
}

static char *put_text(char *at, struct bytes in, struct bytes *out)
{
    *out = BYTES_NONE;
    if (!in.data)
        return at;
    if (in.len)
        memcpy(at, in.data, in.len);
    *out = (struct bytes){ at, in.len };
    return at + in.len;
}

/* What it says of itself with every beat. */
static void said(const struct mem_tx *tx, struct mem_node *n, const struct node_op *q)
{
    n->now.beat_us = tx->now_us;
    n->now.slots = q->slots;
    n->now.busy = q->busy;
    n->now.connections = q->connections;
    n->now.cpu_milli = q->cpu_milli;
    n->now.memory = q->memory;
}

static bool node_make(struct mem_tx *tx, const struct node_op *q, bool drain)
{
    size_t len = q->node.len + q->boot.len + q->host.len + q->version.len + q->address.len +
                 q->roles.len + q->queues.len;
    struct mem_node *n = mem_zalloc(sizeof *n + len);
    if (!n)
        return false;
    n->thing.kind = THING_NODE;
    char *at = put_text(n->text, q->node, &n->name);
    at = put_text(at, q->boot, &n->boot);
    at = put_text(at, q->host, &n->host);
    at = put_text(at, q->version, &n->version);
    at = put_text(at, q->address, &n->address);
    at = put_text(at, q->roles, &n->roles);
    put_text(at, q->queues, &n->queues);
    n->started_us = tx->now_us;
    n->now.drain = drain;
    said(tx, n, q);
    return thing_add(tx->db, &n->thing);
}

enum pawl_status mem_join(struct mem_tx *tx, struct node_op *q)
{
    struct mem_node *n = node_find(tx->db, q->node);
    q->reclaimed = 0;
    enum pawl_status st = reclaim_node(tx, q, false, END_LOST);
    if (st != PAWL_OK)
        return st;
    bool drain = n && n->now.drain;
    if (!leaders_vacate(tx->db, q->node, q->boot, false) || (n && !thing_drop(tx->db, &n->thing)))
        return PAWL_NO_MEMORY;
    return node_make(tx, q, drain) ? PAWL_OK : PAWL_NO_MEMORY;
}

enum pawl_status mem_beat(struct mem_tx *tx, struct node_op *q)
{
    struct mem_node *n = node_find(tx->db, q->node);
    if (!n || n->now.dead || !bytes_eq(n->boot, q->boot))
        return not_ours(tx, q);
    if (!undo_save(tx->db, &n->thing))
        return PAWL_NO_MEMORY;
    n->now.beats++;
    n->now.state = q->state;
    said(tx, n, q);
    return PAWL_OK;
}

enum pawl_status mem_leave(struct mem_tx *tx, struct node_op *q)
{
    struct mem_node *n = node_find(tx->db, q->node);
    q->reclaimed = 0;
    if (!n || !bytes_eq(n->boot, q->boot))
        return not_ours(tx, q);
    enum pawl_status st = reclaim_node(tx, q, true, END_RELEASE);
    if (st != PAWL_OK)
        return st;
    if (!leaders_vacate(tx->db, q->node, q->boot, true))
        return PAWL_NO_MEMORY;
    return thing_drop(tx->db, &n->thing) ? PAWL_OK : PAWL_NO_MEMORY;
}

enum pawl_status mem_bury(struct mem_tx *tx, struct node_op *q)
{
    struct mem_node *n = node_find(tx->db, q->node);
    q->reclaimed = 0;
    if (!n || !bytes_eq(n->boot, q->boot) || n->now.beats != q->beats) {
        tx->op->status =
            err_set(&tx->op->err, PAWL_STATE, "node \"%.*s\" has moved on", BYTES_ARG(q->node));
        return PAWL_OK;
    }
    enum pawl_status st = reclaim_node(tx, q, true, END_LOST);
    if (st != PAWL_OK)
        return st;
    if (!leaders_vacate(tx->db, q->node, q->boot, true) || !undo_save(tx->db, &n->thing))
        return PAWL_NO_MEMORY;
    n->now.dead = true;
    return PAWL_OK;
}

enum pawl_status mem_drain(struct mem_tx *tx, struct node_op *q)
{
    struct mem_node *n = node_find(tx->db, q->node);
    if (!n) {
        tx->op->status =
            err_set(&tx->op->err, PAWL_NOT_FOUND, "no node \"%.*s\"", BYTES_ARG(q->node));
        return PAWL_OK;
    }
    if (!undo_save(tx->db, &n->thing))
        return PAWL_NO_MEMORY;
    n->now.drain = q->drain;
    return PAWL_OK;
}

bool mem_node_replaced(const struct mem_db *db, struct bytes node, struct bytes boot)
{
    const struct mem_node *n = node_find(db, node);
    return n && (n->now.dead || !bytes_eq(n->boot, boot));
}
