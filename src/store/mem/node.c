/*
 * node.c - the registry of nodes, and reclaiming what a node held.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "model/lease.h"
#include "store/mem/mem.h"

/* ---- Reclaim --------------------------------------------------------------------------------- */

/* The first call of each run of the lease, in its order; NULL without memory. */
static struct mem_call **firsts(struct mem_tx *tx, const struct mem_lease *l, size_t *out_n)
{
    struct mem_call **v =
        arena_zalloc(tx->op->a, (size_t)l->now.named + 1, sizeof(struct mem_call *));
    *out_n = 0;
    for (struct mem_call *c = lease_first(tx->db, l); v && c; c = lease_next(tx->db, c))
        if (!call_behind(c))
            v[(*out_n)++] = c;
    CHECK(*out_n <= (size_t)l->now.named); /* the list names every call that is held */
    return v;
}

/* Add to op->lost, for the log: an attempt that ended without a finish of its owner. */
static enum pawl_status tell_lost(struct mem_tx *tx, const struct mem_call *c,
                                  struct attempt_counts before, struct bytes error)
{
    const struct attempt_row *row = c->now.newest_attempt;
    bool ended = c->now.place == PLACE_ENDED, late = row && row->how == END_TIMEOUT;
    return op_lost(tx->op,
                   &(struct lost_attempt){ .id = c->id,
                                           .type = c->now.lane->type,
                                           .error = late ? row->error : error,
                                           .late = late,
                                           .attempt_no = before.attempts + before.lost + 1,
                                           .state = ended ? c->now.outcome->state : PAWL_PENDING },
                   NULL);
}

/* Reclaim one call, and hand back those behind it in its run, which have not begun. */
static enum pawl_status take_back(struct mem_tx *tx, struct mem_call *c, const struct ending_of *e,
                                  int64_t *count)
{
    struct mem_key *k = c->now.key;
    struct attempt_counts before = c->now.counts;
    enum pawl_status st = attempt_end_write(tx, c, e);
    if (st == PAWL_OK && e->end.how != END_RELEASE)
        st = tell_lost(tx, c, before, e->error);
    if (st == PAWL_OK && c->now.place == PLACE_ENDED)
        st = told_ended(tx, c);
    if (st == PAWL_OK && k)
        st = run_hand_back(tx, k, c->now.pos, false, count);
    (*count)++;
    return st;
}

/* When a held call exceeds its timeout. A call behind another of its run has not begun, so it has
 * no deadline. */
static int64_t held_deadline(const struct mem_call *c)
{
    int64_t begun_us = c->now.lease->claimed_us;
    if (call_behind(c))
        return INT64_MAX;
    return call_deadline(&c->spec, c->now.key ? MAX(begun_us, c->now.key->now.ended_us) : begun_us);
}

int64_t lease_deadline(const struct mem_db *db, const struct mem_lease *l)
{
    int64_t last_us = 0;
    for (struct mem_call *c = lease_first(db, l); c; c = lease_next(db, c))
        last_us = MAX(last_us, held_deadline(c));
    return last_us;
}

enum pawl_status lease_time_out(struct mem_tx *tx, struct mem_lease *l, struct extend *q)
{
    struct ending_of e = { .end = { .how = END_LOST, .timed = true } };
    struct mem_call *c = lease_first(tx->db, l);
    while (c) {
        int64_t count = 0, named = l->now.named;
        if (held_deadline(c) > tx->now_us) {
            c = lease_next(tx->db, c);
            continue;
        }
        q->timed_out[q->n_timed_out++] = arena_copy(tx->op->a, c->id);
        enum pawl_status st = take_back(tx, c, &e, &count);
        if (st != PAWL_OK)
            return st;
        while (l->now.named > named - count) /* calls that ended leave the list too */
            if (!lease_off(tx->db, l))
                return PAWL_NO_MEMORY;
        c = lease_first(tx->db, l); /* start again: other calls may have left the lease with it */
    }
    return PAWL_OK;
}

enum pawl_status lease_reclaim(struct mem_tx *tx, struct mem_lease *l, struct attempt_end how,
                               int64_t *count)
{
    struct bytes owner = l->worker.data ? l->worker : l->node;
    struct ending_of begun = { .end = how }, other = { .end = { .how = END_RELEASE } };
    size_t n;
    struct mem_call **v = firsts(tx, l, &n);
    if (!v)
        return PAWL_NO_MEMORY;
    if (how.how == END_LOST) {
        const char *text = lease_lost_text(tx->op->a, l->worker.data != NULL, owner);
        if (!text)
            return PAWL_NO_MEMORY;
        begun.error = bytes_of(text);
    }
    begun.end.alone = l->now.named == 1;
    for (size_t i = 0; i < n; i++) {
        bool runs = !l->width || i < (size_t)l->width;
        enum pawl_status st = take_back(tx, v[i], runs ? &begun : &other, count);
        if (st != PAWL_OK)
            return st;
    }
    CHECK(!lease_first(tx->db, l)); /* else no place would have this call */
    return thing_drop(tx->db, &l->thing) ? PAWL_OK : PAWL_NO_MEMORY;
}

/* Is it a lease of this node, and of this boot (same_boot) or of another? A lease with an end does
 * not count: it belongs to a worker outside the process. */
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
        struct attempt_end end = { .how = how, .fail_lost = q->fail_lost };
        enum pawl_status st = lease_reclaim(tx, l, end, &q->reclaimed);
        if (st != PAWL_OK)
            return st;
    }
    return PAWL_OK;
}

/* ---- The registry ---------------------------------------------------------------------------- */

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

/* Store what a node says of itself with a join and with every beat. */
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
    CHECK(q->node.len > 0 && q->boot.len > 0);
    size_t len = q->node.len + q->boot.len + q->host.len + q->version.len + q->address.len +
                 q->roles.len + q->queues.len + q->has.len;
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
    at = put_text(at, q->queues, &n->queues);
    put_text(at, q->has, &n->has);
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
    CHECK(q->state <= NODE_DRAINING && n->now.beats >= 0);
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
