/*
 * node.c - the registry of nodes, and taking back what a node held.
 *
 * A node's row is locked before its leases are listed, and a claim of the node share-locks that
 * row: so no lease can be made while they are being taken back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/ledger/flow.h"

/* ---- Reclaim --------------------------------------------------------------------------------- */

static enum pawl_status tell_lost(struct ledger *c, struct op *op, const struct led_lease *l,
                                  size_t i, const struct led_end *e, const struct led_call *it,
                                  struct pawl_err *err)
{
    const struct led_lane *lane;
    enum pawl_status st = led_lane_try(c, l->held[i].lane, &lane, err);
    if (st != PAWL_OK)
        return st;
    struct attempt_counts before = l->held[i].counts;
    return op_lost(op,
                   &(struct lost_attempt){ .id = it->spec.id,
                                           .type = lane ? lane->names.type : BYTES("?"),
                                           .error = e->error,
                                           .late = e->end.how == END_TIMEOUT,
                                           .attempt_no = before.attempts + before.lost + 1,
                                           .state = e->verdict.next },
                   err);
}

static enum pawl_status take_back(struct ledger *c, struct op *op, struct led_lease *l, size_t i,
                                  const struct led_end *how, int64_t *count, struct pawl_err *err)
{
    struct led_end e = *how;
    struct led_call *it;
    enum pawl_status st = led_attempt_end(c, l, i, &e, &it, err);
    ++*count;
    if (st == PAWL_OK)
        l->state[i] = HELD_OFF;
    if (st == PAWL_OK && it->now.place == AT_ENDED)
        st = led_told_ended(op, it->spec.id, err);
    if (st == PAWL_OK && e.end.how != END_RELEASE)
        st = tell_lost(c, op, l, i, &e, it, err);
    return st;
}

/* Load the calls and keys of a lease together. `late`: only the keys of calls that were claimed so
 * long ago that they may be past their timeout. */
static enum pawl_status lease_load(struct ledger *c, const struct led_lease *l, bool late,
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
        bool wanted = !late || (it && call_deadline(&it->spec, l->claimed_us) <= c->now_us);
        if (it && it->spec.key.data && wanted)
            keys[n_keys++] = it->spec.key;
    }
    return st == PAWL_OK && n_keys ? led_keys_load(c, keys, n_keys, LOCK_WAIT, err) : st;
}

/* Read what features have of the flows that the lease holds. */
static enum pawl_status flows_load(struct ledger *c, const struct led_lease *l,
                                   struct pawl_err *err)
{
    struct led_call **v = arena_alloc(&c->scratch, (l->n + 1) * sizeof *v);
    size_t n = 0;
    if (!v)
        return err_no_memory(err, "a lease");
    for (size_t i = 0; i < l->n; i++)
        if (l->state[i] == HELD_OPEN && (v[n] = led_call_find(c, l->held[i].seq)))
            n++;
    enum pawl_status st = led_holders_load(c, v, n, err); /* which have their lanes */
    return st == PAWL_OK ? led_flows_ending(c, v, n, err) : st;
}

/* When the i-th call of the lease is past its timeout; INT64_MAX: it has not begun, because another
 * call of its run comes before it. */
static enum pawl_status deadline_of(struct ledger *c, const struct led_lease *l, size_t i,
                                    const struct led_call *it, int64_t *out, struct pawl_err *err)
{
    int before = l->run[i].before;
    struct led_key *k = NULL;
    enum pawl_status st = PAWL_OK;
    *out = INT64_MAX;
    if (before >= 0 && l->state[before] == HELD_OPEN)
        return PAWL_OK;
    if (before >= 0)
        st = led_key_get(c, it->spec.key, LOCK_WAIT, &k, err);
    int64_t since_us = led_since(l, i);
    *out = call_deadline(&it->spec, k ? MAX(since_us, k->ended_us) : since_us);
    return st;
}

/* End the i-th call, which is past its timeout, and hand back those behind it in its run, which
 * have not begun. All of them leave the list, including those that end: their outcomes have no
 * token, so a retry could not take them off it. */
static enum pawl_status time_out_run(struct ledger *c, struct op *op, struct led_lease *l, size_t i,
                                     struct pawl_err *err)
{
    struct attempt_end how = { .how = END_LOST, .timed = true };
    enum pawl_status st = PAWL_OK;
    for (int at = (int)i; at >= 0 && st == PAWL_OK; at = l->run[at].behind) {
        struct led_end e = { .end = how };
        struct led_call *it;
        if (l->state[at] != HELD_OPEN)
            continue;
        st = led_attempt_end(c, l, (size_t)at, &e, &it, err);
        if (st == PAWL_OK && it->now.place == AT_ENDED)
            st = led_told_ended(op, it->spec.id, err);
        if (st == PAWL_OK && e.end.how != END_RELEASE)
            st = tell_lost(c, op, l, (size_t)at, &e, it, err);
        if (st == PAWL_OK)
            led_lease_done(l, (size_t)at, true);
        how = (struct attempt_end){ .how = END_RELEASE };
    }
    return st;
}

/* The deadlines of the lease's open calls, if their timeouts alone tell. *out false: one may be
 * over, or began when the call before it in its run ended, and then its call and key have to be
 * read. */
static enum pawl_status deadlines_ahead(struct ledger *c, const struct led_lease *l,
                                        int64_t *deadline, bool *out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_column seqs;
    struct led_rows *r = NULL;
    led_column_init(&seqs, &c->scratch, LED_INTS);
    for (size_t i = 0; i < l->n; i++) {
        deadline[i] = INT64_MAX;
        if (l->state[i] == HELD_OPEN)
            led_add_int(&seqs, l->held[i].seq);
    }
    led_column(&p, &seqs);
    enum pawl_status st = led_query(c, SQL_LEASE_TIMEOUTS, &p, &r, err);
    *out = st == PAWL_OK;
    for (int row = 0; *out && row < r->n; row++) {
        ssize_t at = led_lease_find(l, led_get_int(r, row, 0));
        CHECK(at >= 0);
        int before = l->run[at].before;
        if (before >= 0 && l->state[before] == HELD_OPEN)
            continue; /* it has not begun */
        deadline[at] = led_since(l, (size_t)at) + led_get_int(r, row, 1);
        *out = before < 0 && deadline[at] > c->now_us;
    }
    return st;
}

/* The last deadline of the open calls; 0: there are none. */
static int64_t last_deadline(const struct led_lease *l, const int64_t *deadline)
{
    int64_t last_us = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->state[i] == HELD_OPEN)
            last_us = MAX(last_us, deadline[i]);
    return last_us;
}

enum pawl_status led_time_out(struct ledger *c, struct op *op, struct led_lease *l,
                              int64_t *out_last_us, struct pawl_err *err)
{
    struct extend *q = &op->extend;
    int64_t *deadline = arena_zalloc(&c->scratch, l->n + 1, sizeof *deadline);
    q->timed_out = arena_zalloc(op->a, l->n + 1, sizeof *q->timed_out);
    bool ahead;
    if (!deadline || !q->timed_out)
        return err_no_memory(err, "a lease");
    enum pawl_status st = deadlines_ahead(c, l, deadline, &ahead, err);
    *out_last_us = last_deadline(l, deadline);
    if (st != PAWL_OK || ahead)
        return st;
    st = lease_load(c, l, true, err);
    for (size_t i = 0; i < l->n && st == PAWL_OK; i++) {
        if (l->state[i] != HELD_OPEN)
            continue;
        const struct led_call *it = led_call_find(c, l->held[i].seq);
        if (!it)
            return led_again(c, "a call of a lease", err);
        st = deadline_of(c, l, i, it, &deadline[i], err);
        if (st != PAWL_OK || deadline[i] > c->now_us)
            continue;
        q->timed_out[q->n_timed_out++] = arena_copy(op->a, it->spec.id);
        st = time_out_run(c, op, l, i, err);
    }
    *out_last_us = last_deadline(l, deadline);
    return st == PAWL_OK && op->a->failed ? err_no_memory(err, "a lease") : st;
}

enum pawl_status led_reclaim(struct ledger *c, struct op *op, const struct token *token,
                             const struct attempt_end *how, int64_t *count, struct pawl_err *err)
{
    struct led_lease *l;
    struct led_end e = { .end = *how }, back = { .end = { .how = END_RELEASE } };
    enum pawl_status st = led_lease_get(c, token, &l, err);
    if (st != PAWL_OK || !l)
        return st;
    e.end.alone = l->named == 1;
    bool *begun = arena_alloc(&c->scratch, (l->n + 1) * sizeof *begun);
    if (!begun)
        return err_no_memory(err, "a reclaim");
    for (size_t i = 0; i < l->n; i++)
        begun[i] = led_lease_begun(l, i);
    if (how->how == END_LOST) {
        const char *text = lease_lost_text(&c->scratch, l->worker.data != NULL, l->owner);
        if (!text)
            return err_no_memory(err, "a reclaim");
        e.error = bytes_of(text);
    }
    st = lease_load(c, l, false, err);
    if (st == PAWL_OK && c->flows)
        st = flows_load(c, l, err);
    for (size_t i = 0; i < l->n && st == PAWL_OK; i++) {
        int before = l->run[i].before;
        if (l->state[i] != HELD_OPEN || (before >= 0 && l->state[before] == HELD_OPEN))
            continue;
        /* Take back a call, and those behind it in its run, which have not begun. */
        st = take_back(c, op, l, i, begun[i] ? &e : &back, count, err);
        for (int at = l->run[i].behind; at >= 0 && st == PAWL_OK; at = l->run[at].behind)
            if (l->state[at] == HELD_OPEN)
                st = take_back(c, op, l, (size_t)at, &back, count, err);
    }
    for (size_t i = 0; i < l->n && st == PAWL_OK; i++)
        CHECK(l->state[i] != HELD_OPEN); /* else no place would have this call */
    l->missing = l->dirty = true;
    return st;
}

/* Take back the leases of a node: those of this boot, or those of every other boot. */
static enum pawl_status reclaim_node(struct ledger *c, struct op *op, bool own, enum ending how,
                                     struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct node_op *n = &op->node;
    struct attempt_end end = { .how = how, .fail_lost = n->fail_lost };
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
    if (st != PAWL_OK)
        return st;
    *out = node_of(r);
    return led_node_rows_check(node, r, err);
}

/* Add what a node reports with every heartbeat. */
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
    led_text(&p, n->has);
    said(&p, n);
    led_int(&p, c->now_us);
    int64_t changed = 0;
    if (st == PAWL_OK)
        st = led_run(c, SQL_NODE_JOIN, &p, &changed, err);
    CHECK(st != PAWL_OK || changed > 0); /* inserted, or its row was locked */
    return st;
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
    CHECK(st != PAWL_OK || changed <= 1); /* a node has one row */
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
    int64_t gone = 0;
    if (st == PAWL_OK)
        st = led_run(c, SQL_NODE_REMOVE, &p, &gone, err);
    CHECK(st != PAWL_OK || gone == 1); /* its row is locked */
    return st;
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
        op->status = err_set(&op->err, PAWL_STATE,
                             "node \"%.*s\" has sent a heartbeat since, or is another process",
                             BYTES_ARG(n->node));
        return PAWL_OK;
    }
    st = reclaim_node(c, op, true, END_LOST, err);
    if (st == PAWL_OK)
        st = led_vacate(c, n, true, err);
    led_text(&p, n->node);
    led_text(&p, n->boot);
    led_int(&p, n->beats);
    int64_t changed = 0;
    if (st == PAWL_OK)
        st = led_run(c, SQL_NODE_BURY, &p, &changed, err);
    CHECK(st != PAWL_OK || changed == 1); /* its row is locked, with this boot and count */
    return st;
}

enum pawl_status led_drain(struct ledger *c, struct op *op, struct pawl_err *err)
{
    const struct node_op *n = &op->node;
    struct led_params p = { 0 };
    int64_t changed = 0;
    led_text(&p, n->node);
    led_int(&p, n->drain);
    enum pawl_status st = led_run(c, SQL_NODE_DRAIN, &p, &changed, err);
    CHECK(st != PAWL_OK || changed <= 1);
    if (st == PAWL_OK && changed == 0)
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "no node \"%.*s\"", BYTES_ARG(n->node));
    return st;
}

bool led_node_replaced(struct bytes boot, const struct led_rows *r)
{
    struct node now = node_of(r);
    return now.there && (now.dead || !bytes_eq(now.boot, boot));
}
