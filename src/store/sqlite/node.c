/*
 * node.c - the registry of process incarnations, and taking back what one of them held.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "store/sqlite/move.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/read.h"

/* ---- Reclaim --------------------------------------------------------------------------------- */

static enum pawl_status tell_lost(struct lite *c, struct op *op, const struct lite_lease *l,
                                  size_t i, const struct lite_try *t, struct pawl_err *err)
{
    const struct lite_lane *lane;
    enum pawl_status st = lite_lane(c, l->held[i].lane, &lane, err);
    if (st != PAWL_OK)
        return st;
    struct tries before = l->held[i].tries;
    return op_lost(op,
                   &(struct lost_attempt){ .id = t->id,
                                           .type = lane->type,
                                           .error = t->error,
                                           .late = t->end.how == END_TIMEOUT,
                                           .attempt_no = before.attempts + before.lost + 1,
                                           .state = t->verdict.next },
                   err);
}

static enum pawl_status take_back(struct lite *c, struct op *op, struct lite_lease *l, size_t i,
                                  const struct lite_try *how, struct pawl_err *err)
{
    struct lite_try t = *how;
    struct bytes id;
    enum pawl_status st = lite_try_end(c, l, i, &t, &id, err);
    if (st == PAWL_OK && id.data)
        st = lite_told_ended(op, id, err);
    if (st == PAWL_OK && t.end.how != END_RELEASE)
        st = tell_lost(c, op, l, i, &t, err);
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

/* When the i-th call of the lease is past its timeout; INT64_MAX: it has not begun, since another
 * of its run comes before it. *id is in scratch. */
static enum pawl_status deadline_of(struct lite *c, const struct lite_lease *l, size_t i,
                                    struct bytes *id, int64_t *out, struct pawl_err *err)
{
    struct lite_shelf to = { .a = &c->scratch };
    int before = l->run[i].before;
    int64_t begun_us = l->claimed_us;
    struct call call;
    struct lite_key *k = NULL;
    *out = INT64_MAX;
    if (before >= 0 && l->state[before] == HELD_OPEN)
        return PAWL_OK;
    enum pawl_status st = lite_asked(c, &to, l->held[i].seq, false, &call, err);
    if (st == PAWL_OK && before >= 0)
        st = lite_key_get(c, call.spec.key, &k, err);
    if (st != PAWL_OK)
        return st;
    *id = call.spec.id;
    *out = call_deadline(&call.spec, k ? MAX(begun_us, k->ended_us) : begun_us);
    return PAWL_OK;
}

/* The i-th call is past its timeout; those behind it in its run, which have not begun, go back. All
 * of them leave the list, also those that end: their outcomes bear no token, so that a redrive
 * could not take them off it. */
static enum pawl_status time_out_run(struct lite *c, struct op *op, struct lite_lease **l, size_t i,
                                     struct pawl_err *err)
{
    struct try_end how = { .how = END_LOST, .timed = true };
    enum pawl_status st = PAWL_OK;
    for (int at = (int)i, behind; at >= 0 && st == PAWL_OK; at = behind) {
        struct lite_try t = { .end = how };
        struct bytes id;
        behind = (*l)->run[at].behind;
        st = lite_try_end(c, *l, (size_t)at, &t, &id, err);
        if (st == PAWL_OK && id.data)
            st = lite_told_ended(op, id, err);
        if (st == PAWL_OK && t.end.how != END_RELEASE)
            st = tell_lost(c, op, *l, (size_t)at, &t, err);
        if (st == PAWL_OK)
            st = lite_lease_done(c, l, (size_t)at, true, err);
        how = (struct try_end){ .how = END_RELEASE };
    }
    return st;
}

enum pawl_status lite_time_out(struct lite *c, struct op *op, struct lite_lease **l,
                               int64_t *out_last_us, struct pawl_err *err)
{
    struct extend *q = &op->extend;
    size_t n = (*l)->n;
    int64_t *deadline = arena_zalloc(&c->scratch, n, sizeof *deadline);
    q->timed_out = arena_zalloc(op->a, n, sizeof *q->timed_out);
    if (!deadline || !q->timed_out)
        return err_no_memory(err, "a lease");
    for (size_t i = 0; i < n; i++) {
        struct bytes id = BYTES_NONE;
        enum pawl_status st = PAWL_OK;
        if ((*l)->state[i] == HELD_OPEN)
            st = deadline_of(c, *l, i, &id, &deadline[i], err);
        bool late = st == PAWL_OK && deadline[i] && deadline[i] <= c->now_us;
        if (late) {
            q->timed_out[q->n_timed_out++] = arena_copy(op->a, id);
            st = time_out_run(c, op, l, i, err);
        }
        if (st != PAWL_OK || !*l)
            return st;
    }
    *out_last_us = 0;
    for (size_t i = 0; i < n; i++)
        if ((*l)->state[i] == HELD_OPEN)
            *out_last_us = MAX(*out_last_us, deadline[i]);
    return op->a->failed ? err_no_memory(err, "a lease") : PAWL_OK;
}

enum pawl_status lite_reclaim(struct lite *c, struct op *op, const struct token *token,
                              const struct try_end *how, int64_t *count, struct pawl_err *err)
{
    struct lite_lease *l;
    bool begun[CLAIM_MAX];
    enum pawl_status st = lite_lease_get(c, token, &l, err);
    if (st != PAWL_OK || !l)
        return st;
    struct lite_try t = { .end = *how }, back = { .end = { .how = END_RELEASE } };
    t.end.alone = l->named == 1;
    lite_lease_begun(l, begun);
    if (how->how == END_LOST) {
        const char *text = lease_lost_text(&c->scratch, l->by_worker, l->owner);
        if (!text)
            return err_no_memory(err, "a reclaim");
        t.error = bytes_of(text);
    }
    for (size_t i = 0; i < l->n && st == PAWL_OK; i++) {
        int before = l->run[i].before;
        if (l->state[i] == HELD_OPEN && (before < 0 || l->state[before] != HELD_OPEN))
            st = take_run(c, op, l, i, begun[i] ? &t : &back, count, err);
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
