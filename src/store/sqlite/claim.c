/*
 * claim.c - leasing due calls, best first.
 *
 * Calls accepted in the same group are claimed from memory: they never touch pawl_ready, and are
 * not read back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/sqlite/move.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/read.h"
#include "store/sqlite/walk.h"

/* Expired calls one claim ends on its way before it says "come again": the sweeper has the rest. */
#define EXPIRED_MAX 1000

struct claiming {
    struct lite *c;
    struct op *op;
    struct claim *q;
    struct walk walk;
    struct lite_shelf to;
    sqlite3_stmt *along; /* walks along pawl_call */
    struct held *held;   /* in scratch */
    int64_t *keep_us;
    size_t cap;     /* of held, keep_us and the answer's calls */
    size_t len;     /* bytes of input taken */
    size_t expired; /* ended on the way */
};

/* ---- The call of a candidate ----------------------------------------------------------------- */

static enum pawl_status tags_copy(struct arena *a, struct call_spec *s, struct pawl_err *err)
{
    if (s->n_tags == 0)
        return PAWL_OK;
    struct tag *tags = arena_alloc(a, s->n_tags * sizeof *tags);
    if (!tags)
        return err_no_memory(err, "a call's tags");
    for (size_t i = 0; i < s->n_tags; i++) {
        tags[i].name = arena_copy(a, s->tags[i].name);
        tags[i].value = arena_copy(a, s->tags[i].value);
    }
    s->tags = tags;
    return PAWL_OK;
}

/* As it would be read back: everything in the answer's arena, wishes about time turned into times.
 */
static enum pawl_status fresh_copy(struct claiming *g, const struct lite_fresh *f, struct call *out,
                                   struct pawl_err *err)
{
    struct arena *a = g->to.a;
    struct call_spec *s = &out->spec;
    *s = *f->spec;
    s->delay_us = s->run_at_us = s->expires_in_us = s->expires_at_us = 0;
    memset(s->fingerprint, 0, sizeof s->fingerprint);
    if (g->to.lane != f->lane) {
        g->to.queue = arena_copy(a, s->queue);
        g->to.type = arena_copy(a, s->type);
        g->to.lane = f->lane;
    }
    s->queue = g->to.queue;
    s->type = g->to.type;
    struct bytes *const copied[] = { &s->id,     &s->method, &s->key,    &s->input.bytes,
                                     &s->caller, &s->client, &s->parent, &s->traceparent };
    for (size_t i = 0; i < COUNT_OF(copied); i++)
        *copied[i] = arena_copy(a, *copied[i]);
    out->seq = f->seq;
    out->created_us = g->c->now_us;
    out->expires_us = f->expires_us;
    enum pawl_status st = tags_copy(a, s, err);
    return st == PAWL_OK && a->failed ? err_no_memory(err, "a call") : st;
}

static enum pawl_status candidate_read(struct claiming *g, const struct candidate *k,
                                       struct call *out, struct pawl_err *err)
{
    enum pawl_status st;
    *out = (struct call){ .seq = k->seq };
    if (k->fresh)
        st = fresh_copy(g, k->fresh, out, err);
    else
        st = lite_asked_along(g->c, &g->to, k->seq, &g->along, out, err);
    out->state = PAWL_PENDING;
    out->run_at_us = k->run_at_us;
    out->tries = k->tries;
    if (k->tries.redrives > 0)
        out->expires_us = 0;
    return st;
}

/* ---- Taking ---------------------------------------------------------------------------------- */

/* A fresh call leaves the list of those to be written: its place in it is marked by seq 0. */
static void fresh_taken(struct lite_fresh *f)
{
    CHECK(call_may(0, PAWL_PENDING) && call_may(PAWL_PENDING, PAWL_PROCESSING));
    f->seq = 0;
}

static void fresh_compact(struct lite *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_fresh; i++)
        if (c->fresh[i].seq)
            c->fresh[n++] = c->fresh[i];
    c->n_fresh = n;
}

static enum pawl_status take(struct claiming *g, const struct candidate *k, struct call *call,
                             struct pawl_err *err)
{
    struct claim *q = g->q;
    enum pawl_status st = PAWL_OK;
    if (k->fresh)
        fresh_taken(k->fresh);
    else if (call->expires_us)
        st = lite_run(g->c, SQL_EXPIRY_REMOVE, ARGS(INT(call->expires_us), INT(k->seq)), NULL, err);
    walk_pop(&g->walk, true);
    call->state = PAWL_PROCESSING;
    call->claimed_us = g->c->now_us;
    g->held[q->n] = (struct held){ .seq = k->seq,
                                   .run_at_us = k->run_at_us,
                                   .lane = k->lane,
                                   .priority = call->spec.priority,
                                   .tries = k->tries };
    g->keep_us[q->n] = call->spec.keep_us;
    g->len += call->spec.input.bytes.len;
    q->n++;
    return st;
}

static enum pawl_status expire(struct claiming *g, const struct candidate *k,
                               const struct call *call, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    /* A fresh call that is over already is written first, so that it ends like any other. The walk
     * points into the list: it is marked here and dropped with the taken ones. */
    if (k->fresh) {
        struct lite_fresh *f = k->fresh;
        st = lite_move(g->c,
                       &(struct lite_move){ .seq = f->seq,
                                            .to = PAWL_PENDING,
                                            .lane = f->lane,
                                            .priority = f->spec->priority,
                                            .run_at_us = f->run_at_us,
                                            .expires_us = f->expires_us },
                       err);
        f->seq = 0;
    }
    if (st == PAWL_OK)
        st = lite_end_pending(g->c, call, PAWL_EXPIRED, err);
    if (st == PAWL_OK)
        st = lite_told_ended(g->op, call->spec.id, err);
    g->expired++;
    return st;
}

static void *grown(struct arena *a, const void *v, size_t n, size_t cap, size_t size)
{
    void *more = arena_zalloc(a, cap, size);
    if (more && n)
        memcpy(more, v, n * size);
    return more;
}

/* Room for one more call. By doubling: most claims that ask for a thousand get three. */
static enum pawl_status make_room(struct claiming *g, struct pawl_err *err)
{
    struct claim *q = g->q;
    if (q->n < g->cap)
        return PAWL_OK;
    size_t cap = g->cap ? g->cap * 2 : 8;
    q->calls = grown(g->op->a, q->calls, q->n, cap, sizeof *q->calls);
    g->held = grown(&g->c->scratch, g->held, q->n, cap, sizeof *g->held);
    g->keep_us = grown(&g->c->scratch, g->keep_us, q->n, cap, sizeof *g->keep_us);
    if (!q->calls || !g->held || !g->keep_us)
        return err_no_memory(err, "a claim");
    g->cap = cap;
    return PAWL_OK;
}

/* One candidate; false in *more: the claim is complete. */
static enum pawl_status take_next(struct claiming *g, bool *more, struct pawl_err *err)
{
    struct claim *q = g->q;
    const struct candidate *at;
    *more = false;
    enum pawl_status st = walk_peek(g->c, &g->walk, &at, err);
    if (st != PAWL_OK || !at)
        return st;
    struct candidate k = *at;
    st = make_room(g, err);
    struct call *call = &q->calls[q->n];
    if (st == PAWL_OK)
        st = candidate_read(g, &k, call, err);
    if (st != PAWL_OK)
        return st;
    if (call->expires_us && call->expires_us <= g->c->now_us) {
        st = expire(g, &k, call, err);
        walk_pop(&g->walk, false);
        *more = g->expired < EXPIRED_MAX;
        return st;
    }
    if (q->n && g->len + call->spec.input.bytes.len > CLAIM_LEN_MAX)
        return PAWL_OK;
    st = take(g, &k, call, err);
    g->walk.no_suspects = true; /* the first has decided: it was alone, or they are passed over */
    *more = q->n < (size_t)q->max && !tries_suspect(k.tries);
    return st;
}

static int compare_held(const void *a, const void *b)
{
    const struct held *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* The list is kept by seq; what goes with a call must be sorted along with it. */
static enum pawl_status lease_write(struct claiming *g, struct pawl_err *err)
{
    struct claim *q = g->q;
    bool rising = true;
    for (size_t i = 1; i < q->n; i++)
        rising = rising && g->held[i - 1].seq < g->held[i].seq;
    if (!rising) {
        qsort(g->held, q->n, sizeof *g->held, compare_held);
        for (size_t i = 0; i < q->n; i++) {
            ssize_t at = lease_find(g->held, q->n, q->calls[i].seq) - g->held;
            g->keep_us[at] = q->calls[i].spec.keep_us;
        }
    }
    return lite_lease_make(g->c, q, g->held, g->keep_us, q->n, err);
}

static enum pawl_status look_ahead(struct claiming *g, struct pawl_err *err)
{
    const struct candidate *left;
    g->walk.no_suspects = g->q->no_suspects;
    enum pawl_status st = walk_peek(g->c, &g->walk, &left, err);
    if (st != PAWL_OK)
        return st;
    g->q->more = left != NULL;
    return left ? PAWL_OK : walk_next_due(g->c, &g->walk, &g->q->next_due_us, err);
}

static enum pawl_status take_all(struct claiming *g, struct pawl_err *err)
{
    bool more = true;
    enum pawl_status st = walk_open(g->c, g->q, &g->walk, err);
    while (st == PAWL_OK && more)
        st = take_next(g, &more, err);
    lite_reset(&g->along);
    if (st == PAWL_OK)
        st = look_ahead(g, err);
    if (st == PAWL_OK)
        st = walk_claim(g->c, &g->walk, err);
    fresh_compact(g->c);
    if (st == PAWL_OK && g->q->n)
        st = lease_write(g, err);
    return st;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static int compare_claimed(const void *a, const void *b)
{
    const struct held *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    if (x->run_at_us != y->run_at_us)
        return x->run_at_us < y->run_at_us ? -1 : 1;
    return compare_held(a, b);
}

/* The answer of the first claim was lost: the lease as it is now. */
static enum pawl_status repeat(struct claiming *g, const struct lite_lease *l, struct pawl_err *err)
{
    struct claim *q = g->q;
    struct held *v = arena_alloc(&g->c->scratch, l->n * sizeof *v);
    size_t n = 0;
    if (!v)
        return err_no_memory(err, "a claim");
    for (size_t i = 0; i < l->n; i++)
        if (l->state[i] == HELD_OPEN)
            v[n++] = l->held[i];
    qsort(v, n, sizeof *v, compare_claimed);
    q->until_us = l->until_us;
    for (size_t i = 0; i < n && q->n < (size_t)q->max; i++) {
        enum pawl_status st = make_room(g, err);
        if (st != PAWL_OK)
            return st;
        struct call *call = &q->calls[q->n++];
        st = lite_asked(g->c, &g->to, v[i].seq, true, call, err);
        if (st == PAWL_OK)
            st = lite_wish_has(g->c, v[i].seq, &call->cancel_requested, err);
        if (st != PAWL_OK)
            return st;
        call->state = PAWL_PROCESSING;
        call->run_at_us = v[i].run_at_us;
        call->spec.priority = v[i].priority;
        call->tries = v[i].tries;
        call->claimed_us = l->claimed_us;
        if (v[i].tries.redrives > 0)
            call->expires_us = 0;
    }
    return PAWL_OK;
}

enum pawl_status lite_claim(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct claim *q = &op->claim;
    struct claiming g = { .c = c, .op = op, .q = q, .to = { .a = op->a } };
    struct lite_lease *l;
    q->calls = NULL;
    q->n = 0;
    q->more = false;
    q->next_due_us = q->until_us = 0;
    bool replaced = false;
    enum pawl_status st = lite_lease_get(c, &q->token, &l, err);
    if (st == PAWL_OK && !l && !q->lease_us)
        st = lite_node_replaced(c, q->node, q->boot, &replaced, err);
    if (st != PAWL_OK)
        return st;
    struct bytes owner = q->worker.data ? q->worker : q->node;
    if (l) {
        owner = arena_copy(op->a, l->owner);
        st = repeat(&g, l, err);
    } else if (replaced) {
        op->status = err_set(&op->err, PAWL_LOST_LEASE, "node \"%.*s\" is no longer this process",
                             BYTES_ARG(q->node));
    } else {
        q->until_us = q->lease_us ? c->now_us + q->lease_us : 0;
        st = take_all(&g, err);
        owner = arena_copy(op->a, owner);
        if (q->n == 0)
            q->until_us = 0;
    }
    for (size_t i = 0; i < q->n; i++)
        q->calls[i].node = owner;
    return st == PAWL_OK && op->a->failed ? err_no_memory(err, "a claim") : st;
}
