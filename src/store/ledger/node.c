/*
 * node.c - the registry of process incarnations, and taking back what one of them held.
 *
 * A node's row is locked before its leases are listed, and a claim of the node shares that lock:
 * so no lease is made behind the back of who takes them away.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/ledger/cache.h"

/* ---- Reclaim --------------------------------------------------------------------------------- */

static enum pawl_status take_back(struct ledger *c, struct op *op, struct led_lease *l, size_t i,
                                  const struct led_end *how, int64_t *count, struct pawl_err *err)
{
    struct led_end e = *how;
    struct led_call *it;
    enum pawl_status st = led_try_end(c, l, i, &e, &it, err);
    ++*count;
    if (st == PAWL_OK)
        l->state[i] = HELD_OFF;
    if (st == PAWL_OK && it->now.place == AT_ENDED)
        st = led_told_ended(op, it->spec.id, err);
    return st;
}

/* Calls and keys of a lease, at once. */
static enum pawl_status lease_load(struct ledger *c, const struct led_lease *l,
                                   struct pawl_err *err)
{
    int64_t *seqs = arena_alloc(&c->scratch, (l->n + 1) * sizeof *seqs);
    struct bytes *keys = arena_alloc(&c->scratch, (l->n + 1) * sizeof *keys);
    size_t n = 0, n_keys = 0;
    if (!seqs || !keys)
        return err_no_memory(err, "a lease");
    for (size_t i = 0; i < l->n; i++)
        if (l->state[i] == HELD_OPEN)
            seqs[n++] = l->held[i].seq;
    enum pawl_status st = led_calls_load(c, seqs, n, err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        const struct led_call *it = led_call_find(c, seqs[i]);
        if (it && it->spec.key.data)
            keys[n_keys++] = it->spec.key;
    }
    return st == PAWL_OK && n_keys ? led_keys_load(c, keys, n_keys, LOCK_WAIT, err) : st;
}

enum pawl_status led_reclaim(struct ledger *c, struct op *op, const struct token *token,
                             const struct try_end *how, int64_t *count, struct pawl_err *err)
{
    struct led_lease *l;
    struct led_end e = { .end = *how }, back = { .end = { .how = END_RELEASE } };
    enum pawl_status st = led_lease_get(c, token, &l, err);
    if (st != PAWL_OK || !l)
        return st;
    e.end.alone = l->named == 1;
    if (how->how == END_LOST) {
        const char *text =
            arena_printf(&c->scratch, "owner \"%.*s\" was lost", BYTES_ARG(l->owner));
        if (!text)
            return err_no_memory(err, "a reclaim");
        e.error = bytes_of(text);
    }
    st = lease_load(c, l, err);
    for (size_t i = 0; i < l->n && st == PAWL_OK; i++) {
        int before = l->run[i].before;
        if (l->state[i] != HELD_OPEN || (before >= 0 && l->state[before] == HELD_OPEN))
            continue;
        /* A call, and those behind it in its run, which have not begun. */
        st = take_back(c, op, l, i, &e, count, err);
        for (int at = l->run[i].behind; at >= 0 && st == PAWL_OK; at = l->run[at].behind)
            st = take_back(c, op, l, (size_t)at, &back, count, err);
    }
    l->missing = l->dirty = true;
    return st;
}

/* The leases of a name: of this boot, or of every other. */
static enum pawl_status reclaim_node(struct ledger *c, struct op *op, bool own, enum ending how,
                                     struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct node_op *n = &op->node;
    struct try_end end = { .how = how, .fail_lost = n->fail_lost };
    struct led_params p = { 0 };
    n->reclaimed = 0;
    enum pawl_status st = led_flush(c, err);
    led_text(&p, n->node);
    led_text(&p, n->boot);
    led_int(&p, own);
    if (st == PAWL_OK)
        st = led_query(c, SQL_LEASE_OF_NODE, &p, &r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct bytes b = led_get(r, i, 0);
        struct token token;
        if (b.len != sizeof token.b)
            return err_set(err, PAWL_BROKEN, "a lease has a token of %zu bytes", b.len);
        memcpy(token.b, b.data, sizeof token.b);
        st = led_reclaim(c, op, &token, &end, &n->reclaimed, err);
    }
    return st;
}

/* ---- The registry ---------------------------------------------------------------------------- */

struct node {
    bool there, dead;
    struct bytes boot; /* in scratch */
    int64_t beats;
};

static struct node node_of(const struct led_rows *r)
{
    if (r->n == 0)
        return (struct node){ 0 };
    return (struct node){ .there = true,
                          .dead = led_get_int(r, 0, 2) != 0,
                          .boot = led_get(r, 0, 0),
                          .beats = led_get_int(r, 0, 1) };
}

static enum pawl_status node_find(struct ledger *c, enum sql_name name, struct bytes node,
                                  struct node *out, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    led_text(&p, node);
    enum pawl_status st = led_query(c, name, &p, &r, err);
    if (st == PAWL_OK)
        *out = node_of(r);
    return st;
}

/* What it says of itself with every beat. */
static void said(struct led_params *p, const struct node_op *n)
{
    led_int(p, n->slots);
    led_int(p, n->busy);
    led_int(p, n->connections);
    led_int(p, n->cpu_milli);
    led_int(p, n->memory);
}

enum pawl_status led_join(struct ledger *c, struct op *op, struct pawl_err *err)
{
    const struct node_op *n = &op->node;
    struct node now;
    struct led_params p = { 0 };
    enum pawl_status st = node_find(c, SQL_NODE_LOCK, n->node, &now, err);
    if (st == PAWL_OK)
        st = reclaim_node(c, op, false, END_LOST, err);
    if (st == PAWL_OK)
        st = led_vacate(c, n, false, err);
    led_text(&p, n->node);
    led_text(&p, n->boot);
    led_text(&p, n->host);
    led_text(&p, n->version);
    led_text(&p, n->address);
    led_text(&p, n->roles);
    led_text(&p, n->queues);
    said(&p, n);
    led_int(&p, c->now_us);
    return st == PAWL_OK ? led_run(c, SQL_NODE_JOIN, &p, NULL, err) : st;
}

static enum pawl_status not_ours(struct op *op)
{
    op->status = err_set(&op->err, PAWL_LOST_LEASE, "node \"%.*s\" is no longer this process",
                         BYTES_ARG(op->node.node));
    return PAWL_OK;
}

enum pawl_status led_beat(struct ledger *c, struct op *op, struct pawl_err *err)
{
    const struct node_op *n = &op->node;
    struct led_params p = { 0 };
    int64_t changed = 0;
    led_text(&p, n->node);
    led_text(&p, n->boot);
    led_int(&p, n->state);
    said(&p, n);
    led_int(&p, c->now_us);
    enum pawl_status st = led_run(c, SQL_NODE_BEAT, &p, &changed, err);
    return st == PAWL_OK && changed == 0 ? not_ours(op) : st;
}

enum pawl_status led_leave(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct node now;
    struct led_params p = { 0 };
    op->node.reclaimed = 0;
    enum pawl_status st = node_find(c, SQL_NODE_LOCK, op->node.node, &now, err);
    if (st != PAWL_OK || !now.there || !bytes_eq(now.boot, op->node.boot))
        return st == PAWL_OK ? not_ours(op) : st;
    st = reclaim_node(c, op, true, END_RELEASE, err);
    if (st == PAWL_OK)
        st = led_vacate(c, &op->node, true, err);
    led_text(&p, op->node.node);
    return st == PAWL_OK ? led_run(c, SQL_NODE_REMOVE, &p, NULL, err) : st;
}

enum pawl_status led_bury(struct ledger *c, struct op *op, struct pawl_err *err)
{
    const struct node_op *n = &op->node;
    struct node now;
    struct led_params p = { 0 };
    op->node.reclaimed = 0;
    enum pawl_status st = node_find(c, SQL_NODE_LOCK, n->node, &now, err);
    if (st != PAWL_OK)
        return st;
    if (!now.there || !bytes_eq(now.boot, n->boot) || now.beats != n->beats) {
        op->status =
            err_set(&op->err, PAWL_STATE, "node \"%.*s\" has moved on", BYTES_ARG(n->node));
        return PAWL_OK;
    }
    st = reclaim_node(c, op, true, END_LOST, err);
    if (st == PAWL_OK)
        st = led_vacate(c, n, true, err);
    led_text(&p, n->node);
    led_text(&p, n->boot);
    led_int(&p, n->beats);
    return st == PAWL_OK ? led_run(c, SQL_NODE_BURY, &p, NULL, err) : st;
}

enum pawl_status led_drain(struct ledger *c, struct op *op, struct pawl_err *err)
{
    const struct node_op *n = &op->node;
    struct led_params p = { 0 };
    int64_t changed = 0;
    led_text(&p, n->node);
    led_int(&p, n->drain);
    enum pawl_status st = led_run(c, SQL_NODE_DRAIN, &p, &changed, err);
    if (st == PAWL_OK && changed == 0)
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "no node \"%.*s\"", BYTES_ARG(n->node));
    return st;
}

bool led_node_replaced(struct bytes boot, const struct led_rows *r)
{
    struct node now = node_of(r);
    return now.there && (now.dead || !bytes_eq(now.boot, boot));
}
