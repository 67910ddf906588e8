/*
 * claim.c - leasing due calls, best first, over every lane a worker serves.
 *
 * One cursor per lane and track (ordinary, suspect) stands at its best due call; the best of the
 * cursors is the next candidate.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/mem.h"
#include "store/mem/mem.h"

struct cursor {
    int64_t lane, suspect;
    struct mem_call *best; /* NULL: nothing due */
};

struct claiming {
    struct mem_tx *tx;
    struct claim *q;
    struct cursor *v; /* on the operation's arena */
    size_t n;
    struct mem_call **taken; /* q->max, on the arena */
    struct mem_lease *lease; /* NULL until something is taken */
    size_t len;
};

static bool named(const struct bytes *v, size_t n, struct bytes name)
{
    for (size_t i = 0; i < n; i++)
        if (bytes_eq(v[i], name))
            return true;
    return n == 0;
}

static bool serves(const struct claim *q, const struct lane *l)
{
    return !l->queue->paused && named(q->queues, q->n_queues, l->queue->by_name.name) &&
           named(q->types, q->n_types, l->type);
}

/* The first call of this lane and track at or after rank, and the ranks behind it until `due` says
 * yes. */
static struct mem_call *track_first(const struct claiming *g, const struct cursor *at, bool due)
{
    struct tree_key from = KEY(at->lane, at->suspect, INT64_MIN, INT64_MIN, INT64_MIN);
    struct mem_call *best = NULL;
    for (;;) {
        struct mem_call *c = call_at(tree_from(&g->tx->db->ready, from));
        if (!c || c->by_place.key.k[0] != at->lane || c->by_place.key.k[1] != at->suspect)
            return best;
        if (due && c->now.run_at_us <= g->tx->now_us)
            return c;
        if (!due && (!best || c->now.run_at_us < best->now.run_at_us))
            best = c;
        /* Nothing due in this rank: its first is its earliest. On to the next rank. */
        from = KEY(at->lane, at->suspect, c->by_place.key.k[2] + 1, INT64_MIN, INT64_MIN);
    }
}

static bool cursors_make(struct claiming *g)
{
    struct mem_db *db = g->tx->db;
    g->v = arena_zalloc(g->tx->op->a, 2 * db->lanes.count + 1, sizeof *g->v);
    if (!g->v)
        return false;
    for (struct table_node *t = table_next(&db->lanes, NULL); t; t = table_next(&db->lanes, t)) {
        const struct lane *l = THING_OF(t, struct lane, by_name);
        if (!serves(g->q, l))
            continue;
        for (int suspect = 0; suspect <= !g->q->no_suspects; suspect++) {
            struct cursor *at = &g->v[g->n++];
            *at = (struct cursor){ .lane = l->number, .suspect = suspect };
            at->best = track_first(g, at, true);
        }
    }
    return true;
}

/* Priority falling, run_at rising, seq rising. */
static bool before(const struct mem_call *a, const struct mem_call *b)
{
    if (a->now.priority != b->now.priority)
        return a->now.priority > b->now.priority;
    if (a->now.run_at_us != b->now.run_at_us)
        return a->now.run_at_us < b->now.run_at_us;
    return a->seq < b->seq;
}

static struct cursor *best_of(const struct claiming *g, bool suspects_too)
{
    struct cursor *best = NULL;
    for (size_t i = 0; i < g->n; i++) {
        struct cursor *at = &g->v[i];
        if (at->best && (suspects_too || !at->suspect) && (!best || before(at->best, best->best)))
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
    l->token = q->token;
    l->serial = ++tx->db->last_serial;
    l->claimed_us = tx->now_us;
    l->now.until_us = q->lease_us ? tx->now_us + q->lease_us : 0;
    char *at = put_text(l->text, q->node, &l->node);
    at = put_text(at, q->boot, &l->boot);
    put_text(at, q->worker, &l->worker);
    if (!thing_add(tx->db, &l->thing))
        return false;
    g->lease = l;
    return true;
}

static bool take(struct claiming *g, struct mem_call *c)
{
    struct mem_db *db = g->tx->db;
    if (!g->lease && !lease_make(g))
        return false;
    if (!undo_save(db, &c->thing))
        return false;
    struct stand to = c->now;
    to.place = PLACE_HELD;
    to.state = PAWL_PROCESSING;
    to.lease = g->lease;
    call_put(db, c, to);
    g->lease->now.named++;
    g->len += c->spec.input.bytes.len;
    g->taken[g->q->n++] = c;
    return true;
}

static bool expired(const struct mem_call *c, int64_t now_us)
{
    return c->now.expires_us && c->now.expires_us <= now_us;
}

static enum pawl_status take_all(struct claiming *g)
{
    struct claim *q = g->q;
    while (q->n < (size_t)q->max && g->tx->op->n_ended < CLAIM_MAX) {
        struct cursor *at = best_of(g, q->n == 0);
        if (!at)
            break;
        struct mem_call *c = at->best;
        if (expired(c, g->tx->now_us)) {
            if (call_end(g->tx, c, PAWL_EXPIRED) != PAWL_OK || told_ended(g->tx, c) != PAWL_OK)
                return PAWL_NO_MEMORY;
        } else {
            if (q->n && g->len + c->spec.input.bytes.len > CLAIM_LEN_MAX)
                break;
            if (!take(g, c))
                return PAWL_NO_MEMORY;
        }
        at->best = track_first(g, at, true);
        if (at->suspect && q->n)
            break; /* a suspect is alone */
    }
    return PAWL_OK;
}

/* What is left, in the eyes of this claim. */
static void look_ahead(struct claiming *g)
{
    struct claim *q = g->q;
    q->more = best_of(g, true) != NULL;
    if (q->more)
        return;
    for (size_t i = 0; i < g->n; i++) {
        const struct mem_call *c = track_first(g, &g->v[i], false);
        if (c && (!q->next_due_us || c->now.run_at_us < q->next_due_us))
            q->next_due_us = c->now.run_at_us;
    }
}

static enum pawl_status show_taken(struct claiming *g)
{
    struct claim *q = g->q;
    struct arena *a = g->tx->op->a;
    q->calls = arena_zalloc(a, q->n + 1, sizeof *q->calls);
    if (!q->calls)
        return PAWL_NO_MEMORY;
    for (size_t i = 0; i < q->n; i++)
        if (!call_show(a, g->taken[i], g->tx->now_us, WITH_INPUT, &q->calls[i]))
            return PAWL_NO_MEMORY;
    return PAWL_OK;
}

/* The answer of the first claim was lost: the lease as it is now. */
static void repeat(struct claiming *g)
{
    struct mem_db *db = g->tx->db;
    for (struct mem_call *c = lease_first(db, g->lease); c && g->q->n < (size_t)g->q->max;
         c = lease_next(db, c))
        g->taken[g->q->n++] = c;
}

enum pawl_status mem_claim(struct mem_tx *tx, struct claim *q)
{
    struct claiming g = { .tx = tx, .q = q, .lease = lease_find_token(tx->db, q->token) };
    q->n = 0;
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
    } else {
        if (!cursors_make(&g) || take_all(&g) != PAWL_OK)
            return PAWL_NO_MEMORY;
        look_ahead(&g);
    }
    if (g.lease)
        q->until_us = g.lease->now.until_us;
    return show_taken(&g);
}
