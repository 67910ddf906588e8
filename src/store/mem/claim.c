/*
 * claim.c - leasing due calls, best first, over every lane that the claimer serves.
 *
 * Each lane has two tracks: ordinary calls, and calls that are retried alone. One cursor for each
 * track points to its best due call; the best of all cursors is the next candidate.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/mem.h"
#include "model/needs.h"
#include "store/mem/mem.h"

struct cursor {
    int64_t lane, retry_alone;
    bool quick;            /* its type is quick: it may fill the claim beyond max_any */
    struct mem_call *best; /* NULL: nothing is due */
};

struct claiming {
    struct mem_tx *tx;
    struct claim *q;
    struct cursor *v; /* on the operation's arena */
    size_t n;
    struct mem_call **taken; /* q->max, on the arena */
    struct mem_lease *lease; /* NULL until something is taken */
    struct mem_key **left;   /* CLAIM_MAX, on the arena: keys whose call on offer expired */
    size_t n_left;
    size_t len;    /* of the inputs taken so far */
    bool complete; /* the next call does not fit */
};

static bool named(const struct bytes *v, size_t n, struct bytes name)
{
    for (size_t i = 0; i < n; i++)
        if (bytes_eq(v[i], name))
            return true;
    return n == 0;
}

/* Is the lane's type quick, or do types make no difference? */
static bool is_quick(const struct claim *q, const struct lane *l)
{
    return !q->max_any || (q->n_quick && named(q->quick, q->n_quick, l->type));
}

static bool serves(const struct claim *q, const struct lane *l)
{
    struct bytes queue = l->queue->by_name.name;
    return !l->queue->paused && named(q->queues, q->n_queues, queue) &&
           !(q->without.data && bytes_eq(queue, q->without) && is_quick(q, l)) &&
           named(q->types, q->n_types, l->type) &&
           needs_served(l->needs, l->n_needs, q->has, q->n_has);
}

/* The best due call of this lane and track (`due`), or the one that is due first. Goes from rank to
 * rank: the first call of a rank is its earliest. */
static struct mem_call *track_first(const struct claiming *g, const struct cursor *at, bool due)
{
    struct tree_key from = KEY(at->lane, at->retry_alone, INT64_MIN, INT64_MIN, INT64_MIN);
    struct mem_call *best = NULL;
    for (;;) {
        struct mem_call *c = call_at(tree_from(&g->tx->db->ready, from));
        if (!c || c->by_place.key.k[0] != at->lane || c->by_place.key.k[1] != at->retry_alone)
            return best;
        if (due && c->now.run_at_us <= g->tx->now_us)
            return c;
        if (!due && (!best || c->now.run_at_us < best->now.run_at_us))
            best = c;
        /* Nothing is due in this rank: continue with the next. */
        from = KEY(at->lane, at->retry_alone, c->by_place.key.k[2] + 1, INT64_MIN, INT64_MIN);
    }
}

static bool cursors_make(struct claiming *g)
{
    struct mem_db *db = g->tx->db;
    int tracks = g->q->no_retry_alone ? 1 : 2;
    g->v = arena_zalloc(g->tx->op->a, 2 * db->lanes.count + 1, sizeof *g->v);
    if (!g->v)
        return false;
    for (struct table_node *t = table_next(&db->lanes, NULL); t; t = table_next(&db->lanes, t)) {
        const struct lane *l = THING_OF(t, struct lane, by_name);
        if (!serves(g->q, l))
            continue;
        for (int retry_alone = 0; retry_alone < tracks; retry_alone++) {
            struct cursor *at = &g->v[g->n++];
            *at = (struct cursor){ .lane = l->number,
                                   .retry_alone = retry_alone,
                                   .quick = is_quick(g->q, l) };
            at->best = track_first(g, at, true);
        }
    }
    return true;
}

static bool comes_last(const struct claim *q, const struct mem_call *c)
{
    return q->last.data && bytes_eq(c->now.lane->queue->by_name.name, q->last);
}

/* The order of a claim: priority falling, the queue `last` after the others, run_at rising, seq
 * rising. */
static bool before(const struct claim *q, const struct mem_call *a, const struct mem_call *b)
{
    if (a->now.priority != b->now.priority)
        return a->now.priority > b->now.priority;
    if (comes_last(q, a) != comes_last(q, b))
        return comes_last(q, b);
    if (a->now.run_at_us != b->now.run_at_us)
        return a->now.run_at_us < b->now.run_at_us;
    return a->seq < b->seq;
}

static struct cursor *best_of(const struct claiming *g, bool retry_alone_too, bool slow_too)
{
    struct cursor *best = NULL;
    for (size_t i = 0; i < g->n; i++) {
        struct cursor *at = &g->v[i];
        if (at->best && (retry_alone_too || !at->retry_alone) && (slow_too || at->quick) &&
            (!best || before(g->q, at->best, best->best)))
            best = at;
    }
    return best;
}

static char *put_text(char *at, struct bytes in, struct bytes *out)
{
    *out = BYTES_NONE;
    if (!in.data)
        return at;
    memcpy(at, in.data, in.len);
    *out = (struct bytes){ at, in.len };
    return at + in.len;
}

static bool lease_make(struct claiming *g)
{
    const struct claim *q = g->q;
    struct mem_tx *tx = g->tx;
    struct mem_lease *l = mem_zalloc(sizeof *l + q->node.len + q->boot.len + q->worker.len);
    if (!l)
        return false;
    l->thing.kind = THING_LEASE;
    l->db = tx->db;
    l->token = q->token;
    l->width = q->width;
    l->serial = ++tx->db->last_serial;
    l->claimed_us = tx->now_us;
    l->now.until_us = q->lease_us ? tx->now_us + q->lease_us : 0;
    char *at = put_text(l->text, q->node, &l->node);
    at = put_text(at, q->boot, &l->boot);
    put_text(at, q->worker, &l->worker);
    CHECK(!lease_find_token(tx->db, q->token)); /* else this claim is a repeat */
    if (!thing_add(tx->db, &l->thing))
        return false;
    g->lease = l;
    return true;
}

/* Give it the next number of its key if it has none. False without memory. */
static bool number(struct mem_db *db, struct stand *to)
{
    struct mem_key *k = to->key;
    if (!k)
        return true;
    if (!undo_save(db, &k->thing))
        return false;
    if (!to->key_no)
        to->key_no = ++k->now.last_no;
    CHECK(to->key_no > 0 && to->key_no <= k->now.last_no);
    return true;
}

static bool expired(const struct mem_call *c, int64_t now_us)
{
    return c->now.expires_us && c->now.expires_us <= now_us;
}

static bool take(struct claiming *g, struct mem_call *c)
{
    struct mem_db *db = g->tx->db;
    CHECK(c->now.run_at_us <= g->tx->now_us && !expired(c, g->tx->now_us));
    if (!g->lease && !lease_make(g))
        return false;
    struct stand to = c->now;
    if (!number(db, &to) || !undo_save(db, &c->thing))
        return false;
    to.place = PLACE_HELD;
    to.state = PAWL_PROCESSING;
    to.lease = g->lease;
    call_put(db, c, to);
    g->lease->now.named++;
    g->len += c->spec.input.bytes.len;
    g->taken[g->q->n++] = c;
    return true;
}

static enum pawl_status expire(struct claiming *g, struct mem_call *c)
{
    enum pawl_status st = call_end(g->tx, c, call_expired_as(&c->spec, c->now.expires_us));
    return st == PAWL_OK ? told_ended(g->tx, c) : st;
}

static bool fits(const struct claiming *g, const struct mem_call *c)
{
    return g->len + c->spec.input.bytes.len <= CLAIM_LEN_MAX;
}

static bool goes_on(const struct claiming *g)
{
    return g->q->n < (size_t)g->q->max && g->tx->op->n_ended < CLAIM_MAX && !g->complete;
}

/* May it be taken in a run whose first call is of this lane? */
static bool runs_along(const struct claiming *g, const struct mem_call *c, const struct lane *lane)
{
    return c->now.lane == lane && !counts_retry_alone(c->now.counts) &&
           c->now.run_at_us <= g->tx->now_us;
}

/* Take the run of a call that was just taken: the calls behind it in its line. */
static enum pawl_status take_run(struct claiming *g, struct mem_call *first)
{
    struct mem_key *k = first->now.key;
    struct mem_call *c = line_next(k, first), *next;
    for (int run = 1; run < g->q->run_max && c && goes_on(g); c = next) {
        next = line_next(k, c);
        if (!runs_along(g, c, first->now.lane))
            break;
        if (expired(c, g->tx->now_us)) {
            if (expire(g, c) != PAWL_OK)
                return PAWL_NO_MEMORY;
            continue;
        }
        if (!fits(g, c)) {
            g->complete = true;
            break;
        }
        if (!take(g, c))
            return PAWL_NO_MEMORY;
        run++;
    }
    return PAWL_OK;
}

/* End a call on offer as expired. The rest of its line is left to the next claim: offer_left(). */
static enum pawl_status expire_offered(struct claiming *g, struct mem_call *c)
{
    if (c->now.key)
        g->left[g->n_left++] = c->now.key;
    return expire(g, c);
}

static bool offer_left(struct claiming *g)
{
    for (size_t i = 0; i < g->n_left; i++) {
        if (!key_settle(g->tx->db, g->left[i]))
            return false;
        g->q->more |= g->left[i]->offer != NULL;
    }
    return true;
}

static enum pawl_status take_all(struct claiming *g)
{
    struct claim *q = g->q;
    while (goes_on(g)) {
        struct cursor *at = best_of(g, q->n == 0, q->n < (size_t)q->max_any);
        if (!at)
            break;
        struct mem_call *c = at->best;
        if (expired(c, g->tx->now_us)) {
            if (expire_offered(g, c) != PAWL_OK)
                return PAWL_NO_MEMORY;
        } else {
            if (q->n && !fits(g, c))
                break;
            if (!take(g, c))
                return PAWL_NO_MEMORY;
            if (c->now.key && !at->retry_alone && at->quick && take_run(g, c) != PAWL_OK)
                return PAWL_NO_MEMORY;
        }
        at->best = track_first(g, at, true);
        if (at->retry_alone && q->n)
            break; /* a call that was lost before is claimed alone */
    }
    return PAWL_OK;
}

/* Set `more` and `next_due_us` from what is left that this claim serves. */
static void look_ahead(struct claiming *g)
{
    struct claim *q = g->q;
    struct mem_call *later = call_at(tree_from(&g->tx->db->delayed, KEY(INT64_MIN, INT64_MIN)));
    q->more |= best_of(g, true, true) != NULL;
    if (q->more)
        return;
    q->next_due_us = later ? later->now.run_at_us : 0;
    for (size_t i = 0; i < g->n; i++) {
        const struct mem_call *c = track_first(g, &g->v[i], false);
        if (c && (!q->next_due_us || c->now.run_at_us < q->next_due_us))
            q->next_due_us = c->now.run_at_us;
    }
}

/* Add the state of its object to the answer, for the first call of a key. */
static bool show_state(struct claiming *g, size_t i)
{
    struct claim *q = g->q;
    struct arena *a = g->tx->op->a;
    const struct mem_call *c = g->taken[i];
    if (!c->now.key)
        return true;
    if (!q->states)
        q->states = arena_zalloc(a, q->n, sizeof *q->states);
    if (!q->states || call_behind(c))
        return q->states != NULL;
    const struct mem_object *o =
        object_find(g->tx->db, c->now.lane->type, c->now.key->by_name.name);
    if (o)
        q->states[i] =
            (struct object_state){ { o->state.form, arena_copy(a, o->state.bytes) }, o->version };
    return !a->failed;
}

/* The claimer owns all of them, so calls that have not begun are PROCESSING here too. */
static enum pawl_status show_taken(struct claiming *g)
{
    struct claim *q = g->q;
    struct arena *a = g->tx->op->a;
    q->calls = arena_zalloc(a, q->n + 1, sizeof *q->calls);
    if (!q->calls)
        return PAWL_NO_MEMORY;
    CHECK(q->n <= (size_t)q->max);
    CHECK(!q->n || (g->lease && (size_t)g->lease->now.named >= q->n));
    for (size_t i = 0; i < q->n; i++) {
        CHECK(g->taken[i]->now.place == PLACE_HELD && g->taken[i]->now.lease == g->lease);
        if (!call_show(a, g->taken[i], g->tx->now_us, WITH_INPUT, &q->calls[i]) ||
            !show_state(g, i))
            return PAWL_NO_MEMORY;
        q->calls[i].state = PAWL_PROCESSING;
        q->calls[i].waiting_for = WAIT_NONE;
        q->calls[i].error = BYTES_NONE;
        const struct stand *s = &g->taken[i]->now;
        q->calls[i].position = s->key ? tree_rank(&s->key->line, KEY(s->pos)) : 0;
    }
    return PAWL_OK;
}

/* The claim is a repeat, because the first answer was lost: take the calls of the lease as it is
 * now. A run comes at the place of its first call. */
static void repeat(struct claiming *g)
{
    struct mem_db *db = g->tx->db;
    size_t max = (size_t)g->q->max;
    for (struct mem_call *c = lease_first(db, g->lease); c; c = lease_next(db, c)) {
        if (call_behind(c))
            continue;
        for (struct mem_call *r = c; r && r->now.lease == g->lease && g->q->n < max;
             r = c->now.key ? line_next(c->now.key, r) : NULL)
            g->taken[g->q->n++] = r;
    }
}

/* A lease with an end does not outlive the timeouts of its calls. */
static void cap_end(struct claiming *g)
{
    struct mem_lease *l = g->lease;
    if (!l || !l->now.until_us)
        return;
    thing_unlink(g->tx->db, &l->thing);
    l->now.until_us = MIN(l->now.until_us, lease_deadline(g->tx->db, l));
    CHECK(l->now.until_us > g->tx->now_us);
    thing_link(g->tx->db, &l->thing);
}

/* A claim that is not a repeat. Delayed calls join first, so that this claim can take them. */
static bool claim_fresh(struct claiming *g)
{
    g->left = arena_zalloc(g->tx->op->a, CLAIM_MAX, sizeof(struct mem_key *));
    if (!g->left || join_due(g->tx, CLAIM_MAX) < 0 || !cursors_make(g))
        return false;
    if (take_all(g) != PAWL_OK || !offer_left(g))
        return false;
    look_ahead(g);
    cap_end(g);
    return true;
}

enum pawl_status mem_claim(struct mem_tx *tx, struct claim *q)
{
    struct claiming g = { .tx = tx, .q = q, .lease = lease_find_token(tx->db, q->token) };
    q->n = 0;
    q->states = NULL;
    q->until_us = q->next_due_us = 0;
    q->more = false;
    g.taken = arena_zalloc(tx->op->a, (size_t)q->max, sizeof(struct mem_call *));
    if (!g.taken)
        return PAWL_NO_MEMORY;
    if (g.lease) {
        repeat(&g);
    } else if (!q->lease_us && mem_node_replaced(tx->db, q->node, q->boot)) {
        tx->op->status = err_set(&tx->op->err, PAWL_LOST_LEASE,
                                 "node \"%.*s\" is no longer this process", BYTES_ARG(q->node));
        return PAWL_OK;
    } else if (!claim_fresh(&g)) {
        return PAWL_NO_MEMORY;
    }
    if (g.lease)
        q->until_us = g.lease->now.until_us;
    return show_taken(&g);
}
