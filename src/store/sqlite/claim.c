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
    struct bytes *keys; /* by held.key - 1 */
    size_t n_keys;
    size_t cap;     /* of held, keep_us, keys and the answer's calls */
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
    if (k->fresh && k->fresh->spec)
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

/* The call is ours: the last of the answer, and on the list. */
static void hold(struct claiming *g, struct call *call, struct held h)
{
    struct claim *q = g->q;
    call->state = PAWL_PROCESSING;
    call->claimed_us = g->c->now_us;
    call->in_line = h.key != 0;
    call->key_no = h.key_no;
    g->held[q->n] = h;
    g->keep_us[q->n] = call->spec.keep_us;
    g->len += call->spec.input.bytes.len;
    q->n++;
}

/* With the first call of a key comes the object's state. */
static enum pawl_status take_key(struct claiming *g, const struct call *call, struct held *h,
                                 struct lite_key **out, struct pawl_err *err)
{
    struct claim *q = g->q;
    if (!q->states)
        q->states = arena_zalloc(g->op->a, g->cap, sizeof *q->states);
    if (!q->states)
        return err_no_memory(err, "a claim");
    enum pawl_status st = lite_key_get(g->c, call->spec.key, out, err);
    if (st == PAWL_OK)
        st = lite_object_read(g->c, g->op->a, call->spec.type, call->spec.key, &q->states[q->n],
                              err);
    if (st != PAWL_OK)
        return st;
    g->keys[g->n_keys++] = call->spec.key;
    h->key = (int)g->n_keys;
    h->key_no = lite_key_take_head(*out, &h->pos);
    return PAWL_OK;
}

/* key: whose run goes on behind it; NULL: it has none. */
static enum pawl_status take(struct claiming *g, const struct candidate *k, struct call *call,
                             struct lite_key **key, struct pawl_err *err)
{
    struct held h = { .seq = k->seq,
                      .run_at_us = k->run_at_us,
                      .lane = k->lane,
                      .priority = (int)-k->rank,
                      .tries = k->tries };
    enum pawl_status st = PAWL_OK;
    *key = NULL;
    if (call->expires_us && !(k->fresh && k->fresh->spec))
        st = lite_run(g->c, SQL_EXPIRY_REMOVE, ARGS(INT(call->expires_us), INT(k->seq)), NULL, err);
    if (k->fresh)
        fresh_taken(k->fresh);
    walk_pop(&g->walk, true);
    if (st == PAWL_OK && call->spec.key.data)
        st = take_key(g, call, &h, key, err);
    if (st == PAWL_OK)
        hold(g, call, h);
    return st;
}

static enum pawl_status expire(struct claiming *g, const struct candidate *k, struct call *call,
                               struct pawl_err *err)
{
    struct lite_key *key = NULL;
    enum pawl_status st =
        call->spec.key.data ? lite_key_get(g->c, call->spec.key, &key, err) : PAWL_OK;
    if (st != PAWL_OK)
        return st;
    if (key)
        call->key_no = key->head_no;
    /* A fresh call that is over already is written first, so that it ends like any other. The walk
     * points into the list: it is marked here and dropped with the taken ones. */
    if (k->fresh) {
        st = lite_ready_add(g->c, k->fresh, err);
        k->fresh->seq = 0;
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
    g->keys = grown(&g->c->scratch, g->keys, g->n_keys, cap, sizeof *g->keys);
    if (q->states)
        q->states = grown(g->op->a, q->states, q->n, cap, sizeof *q->states);
    if (!q->calls || !g->held || !g->keep_us || !g->keys)
        return err_no_memory(err, "a claim");
    g->cap = cap;
    return PAWL_OK;
}

static bool over(const struct claiming *g, const struct call *call)
{
    return call->expires_us && call->expires_us <= g->c->now_us;
}

static bool fits(const struct claiming *g, const struct call *call)
{
    return !g->q->n || g->len + call->spec.input.bytes.len <= CLAIM_LEN_MAX;
}

static enum pawl_status place_call(struct claiming *g, const struct lite_place *p, struct call *out,
                                   struct pawl_err *err)
{
    enum pawl_status st = lite_asked_along(g->c, &g->to, p->seq, &g->along, out, err);
    out->state = PAWL_PENDING;
    out->run_at_us = p->run_at_us;
    out->spec.priority = p->priority;
    out->tries = p->tries;
    out->key_no = p->key_no;
    if (p->tries.redrives > 0)
        out->expires_us = 0;
    return st;
}

/* One call behind a key's first one. */
static enum pawl_status take_behind(struct claiming *g, struct lite_key *key, struct call *call,
                                    const struct lite_place *p, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    if (call->expires_us)
        st = lite_run(g->c, SQL_EXPIRY_REMOVE, ARGS(INT(call->expires_us), INT(p->seq)), NULL, err);
    hold(g, call,
         (struct held){ .seq = p->seq,
                        .run_at_us = p->run_at_us,
                        .lane = p->lane,
                        .priority = p->priority,
                        .tries = p->tries,
                        .key = (int)g->n_keys,
                        .pos = p->pos,
                        .key_no = lite_key_take_next(key, p) });
    return st;
}

/* How far a run has come. */
struct run {
    struct lite_key *key;
    int lane, left;     /* how many it may still take */
    int64_t position;   /* of the next one */
    bool stopped, more; /* at one that may not go with it; the claim goes on */
};

static enum pawl_status run_some(struct claiming *g, struct run *r, struct pawl_err *err)
{
    struct lite_place *line;
    size_t n, taken = 0;
    int64_t upto = 0;
    enum pawl_status st = lite_key_line(g->c, r->key, r->left, &line, &n, err);
    r->stopped = n == 0;
    for (size_t i = 0; i < n && st == PAWL_OK && !r->stopped; i++) {
        const struct lite_place *p = &line[i];
        r->stopped = p->lane != r->lane || tries_suspect(p->tries) || p->run_at_us > g->c->now_us;
        if (!r->stopped)
            st = make_room(g, err);
        struct call *call = &g->q->calls[g->q->n];
        if (st == PAWL_OK && !r->stopped)
            st = place_call(g, p, call, err);
        if (st != PAWL_OK || r->stopped)
            break;
        if (over(g, call)) {
            st = lite_end_pending(g->c, call, PAWL_EXPIRED, err);
            if (st == PAWL_OK)
                st = lite_told_ended(g->op, call->spec.id, err);
            r->more = ++g->expired < EXPIRED_MAX;
        } else if ((r->more = fits(g, call))) {
            call->position = ++r->position;
            st = take_behind(g, r->key, call, p, err);
            upto = p->pos;
            taken++;
            r->left--;
        }
        r->stopped = !r->more;
    }
    return st == PAWL_OK && taken ? lite_key_taken(g->c, r->key, upto, taken, err) : st;
}

/* The calls behind a key's first one, as far as they may go with it. False in *more: the claim is
 * complete. */
static enum pawl_status take_run(struct claiming *g, struct lite_key *key, int lane, bool *more,
                                 struct pawl_err *err)
{
    const struct claim *q = g->q;
    struct run r = { .key = key, .lane = lane, .left = MIN(q->run_max, q->max) - 1, .more = true };
    r.left = (int)MIN((int64_t)r.left, (int64_t)q->max - (int64_t)q->n);
    enum pawl_status st = PAWL_OK;
    /* Some of a look may have expired: look again. */
    while (st == PAWL_OK && r.left > 0 && !r.stopped)
        st = run_some(g, &r, err);
    *more = r.more;
    return st;
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
    if (over(g, call)) {
        st = expire(g, &k, call, err);
        walk_pop(&g->walk, false);
        *more = g->expired < EXPIRED_MAX;
        return st;
    }
    if (!fits(g, call))
        return PAWL_OK;
    struct lite_key *key;
    st = take(g, &k, call, &key, err);
    g->walk.no_suspects = true; /* the first has decided: it was alone, or they are passed over */
    *more = !tries_suspect(k.tries);
    if (st == PAWL_OK && key && *more && g->walk.quick[k.lane - 1])
        st = take_run(g, key, k.lane, more, err);
    g->walk.only_quick = q->max_any && q->n >= (size_t)q->max_any;
    *more = *more && q->n < (size_t)q->max;
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
    q->until_us = claim_until(q);
    return lite_lease_make(g->c, q,
                           &(struct lite_hold){ .held = g->held,
                                                .keep_us = g->keep_us,
                                                .n = q->n,
                                                .keys = g->keys,
                                                .n_keys = g->n_keys },
                           err);
}

static enum pawl_status look_ahead(struct claiming *g, struct pawl_err *err)
{
    const struct candidate *left = NULL;
    int64_t joins = 0;
    g->walk.no_suspects = g->q->no_suspects;
    g->walk.only_quick = false;
    enum pawl_status st = walk_peek(g->c, &g->walk, &left, err);
    if (st != PAWL_OK)
        return st;
    g->q->more = left != NULL;
    if (left)
        return PAWL_OK;
    st = walk_next_due(g->c, &g->walk, &g->q->next_due_us, err);
    if (st == PAWL_OK)
        st = lite_number(g->c, SQL_LINE_NEXT, ARGS(INT(g->c->now_us)), 0, &joins, err);
    if (joins && (!g->q->next_due_us || joins < g->q->next_due_us))
        g->q->next_due_us = joins;
    return st;
}

static enum pawl_status take_all(struct claiming *g, struct pawl_err *err)
{
    bool more = true, offered = false;
    int64_t joined;
    enum pawl_status st = lite_keys_join_due(g->c, CLAIM_MAX, &joined, err);
    /* What the walk has read must stay as it is until it is done. */
    lite_keys_hold(g->c);
    if (st == PAWL_OK)
        st = walk_open(g->c, g->q, &g->walk, err);
    while (st == PAWL_OK && more)
        st = take_next(g, &more, err);
    lite_reset(&g->along);
    if (st == PAWL_OK)
        st = look_ahead(g, err);
    if (st == PAWL_OK)
        st = walk_claim(g->c, &g->walk, err);
    fresh_compact(g->c);
    if (st == PAWL_OK)
        st = lite_keys_release(g->c, &offered, err);
    if (offered) {
        g->q->more = true;
        g->q->next_due_us = 0;
    }
    if (st == PAWL_OK && g->q->n)
        st = lease_write(g, err);
    return st;
}

/* ---- The answer ------------------------------------------------------------------------------ */

/* A call of a run stands where the first of it that is left does. */
struct left {
    const struct held *held, *lead;
    int64_t position;
};

static int compare_claimed(const void *a, const void *b)
{
    const struct left *x = a, *y = b;
    const struct held *p = x->lead, *q = y->lead;
    if (p == q)
        return (x->held->pos > y->held->pos) - (x->held->pos < y->held->pos);
    if (p->priority != q->priority)
        return p->priority > q->priority ? -1 : 1;
    if (p->run_at_us != q->run_at_us)
        return p->run_at_us < q->run_at_us ? -1 : 1;
    return compare_held(p, q);
}

static struct left left_of(const struct lite_lease *l, size_t i)
{
    struct left out = { .held = &l->held[i] };
    int before;
    for (; (before = l->run[i].before) >= 0 && l->state[before] == HELD_OPEN; i = (size_t)before)
        out.position++;
    out.lead = &l->held[i];
    return out;
}

static enum pawl_status repeat_one(struct claiming *g, const struct lite_lease *l,
                                   const struct left *at, struct pawl_err *err)
{
    struct claim *q = g->q;
    const struct held *h = at->held;
    enum pawl_status st = make_room(g, err);
    if (st != PAWL_OK)
        return st;
    struct call *call = &q->calls[q->n];
    st = lite_asked(g->c, &g->to, h->seq, true, call, err);
    if (st == PAWL_OK)
        st = lite_wish_has(g->c, h->seq, &call->cancel_requested, err);
    if (st == PAWL_OK && h->key && !q->states)
        q->states = arena_zalloc(g->op->a, g->cap, sizeof *q->states);
    if (st == PAWL_OK && h->key && !q->states)
        st = err_no_memory(err, "a claim");
    if (st == PAWL_OK && h->key && at->lead == h)
        st = lite_object_read(g->c, g->op->a, call->spec.type, call->spec.key, &q->states[q->n],
                              err);
    call->state = PAWL_PROCESSING;
    call->run_at_us = h->run_at_us;
    call->spec.priority = h->priority;
    call->tries = h->tries;
    call->claimed_us = l->claimed_us;
    call->in_line = h->key != 0;
    call->position = at->position;
    call->key_no = h->key_no;
    if (h->tries.redrives > 0)
        call->expires_us = 0;
    q->n++;
    return st;
}

/* The answer of the first claim was lost: the lease as it is now. */
static enum pawl_status repeat(struct claiming *g, const struct lite_lease *l, struct pawl_err *err)
{
    struct claim *q = g->q;
    struct left *v = arena_alloc(&g->c->scratch, l->n * sizeof *v);
    size_t n = 0;
    enum pawl_status st = v ? PAWL_OK : err_no_memory(err, "a claim");
    for (size_t i = 0; st == PAWL_OK && i < l->n; i++)
        if (l->state[i] == HELD_OPEN)
            v[n++] = left_of(l, i);
    if (st == PAWL_OK)
        qsort(v, n, sizeof *v, compare_claimed);
    q->until_us = l->until_us;
    for (size_t i = 0; st == PAWL_OK && i < n && q->n < (size_t)q->max; i++)
        st = repeat_one(g, l, &v[i], err);
    return st;
}

enum pawl_status lite_claim(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct claim *q = &op->claim;
    struct claiming g = { .c = c, .op = op, .q = q, .to = { .a = op->a } };
    struct lite_lease *l;
    q->calls = NULL;
    q->states = NULL;
    q->n = 0;
    q->run_max = MAX(q->run_max, 1);
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
