/*
 * peers.c - which other nodes are dead: silence counts only while this process itself sent
 * heartbeats.
 *
 * Counters are compared, never clocks of other machines, and time is measured by our own monotonic
 * clock: after a database outage, or a stop of this process, all counters stood still and no node
 * is declared dead for it. Only the thread that sends heartbeats calls this.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "exec/internal.h"
#include "exec/housekeeping.h"

void peers_release(struct peers *o)
{
    mem_free(o->v);
    *o = (struct peers){ 0 };
}

static struct seen_node *find(struct peers *o, const struct node_row *r)
{
    for (size_t i = 0; i < o->n; i++)
        if (bytes_eq(bytes_of(o->v[i].node), r->node) && bytes_eq(bytes_of(o->v[i].boot), r->boot))
            return &o->v[i];
    return NULL;
}

static struct seen_node *add(struct peers *o, const struct node_row *r)
{
    struct seen_node *v = mem_resize(o->v, (o->n + 1) * sizeof(*v));
    if (!v)
        return NULL;
    o->v = v;
    struct seen_node *s = &v[o->n++];
    *s = (struct seen_node){ .beats = -1 };
    snprintf(s->node, sizeof(s->node), "%.*s", BYTES_ARG(r->node));
    snprintf(s->boot, sizeof(s->boot), "%.*s", BYTES_ARG(r->boot));
    return s;
}

/* Forget nodes that are no longer in the registry. */
static void drop_stale(struct peers *o)
{
    size_t kept = 0;
    for (size_t i = 0; i < o->n; i++) {
        if (o->v[i].fresh)
            o->v[kept++] = o->v[i];
    }
    o->n = kept;
}

static void bury(struct exec *e, const struct seen_node *s)
{
    struct periodic *c = &e->housekeeping->periodics[PERIODIC_BURY];
    if (atomic_load(&c->under_way))
        return; /* The next look declares it dead. */
    memcpy(c->node, s->node, sizeof(c->node));
    memcpy(c->boot, s->boot, sizeof(c->boot));
    periodic_post(c, (struct op){ .kind = OP_BURY,
                                  .node = { .node = bytes_of(c->node),
                                            .boot = bytes_of(c->boot),
                                            .beats = s->beats,
                                            .fail_lost = e->conf.fail_lost } });
}

/* Since when its counter has not moved: since that heartbeat was stored, by the database's clock,
 * but no earlier than we last saw another value. */
static int64_t still_since(struct exec *e, const struct node_row *r, int64_t now_us)
{
    int64_t age_us = exec_now(e) - r->beat_us;
    int64_t since_us = now_us - MAX(age_us, 0);
    return MAX(since_us, e->housekeeping->peers.seen_us);
}

/* Look at one other node. Returns when it has to be declared dead (monotonic). */
static int64_t consider(struct exec *e, const struct node_row *r, int64_t now_us)
{
    struct peers *o = &e->housekeeping->peers;
    struct seen_node *s = find(o, r);
    bool known = s;
    if (!s)
        s = add(o, r);
    if (!s)
        return INT64_MAX;
    s->fresh = true;
    if (s->beats != r->beats) {
        s->beats = r->beats;
        s->since_us = known ? still_since(e, r, now_us) : now_us;
    }
    int64_t due_us = MAX(s->since_us, o->beating_since_us) + e->conf.heartbeat_grace_us;
    if (now_us >= due_us)
        bury(e, s);
    return now_us >= due_us ? INT64_MAX : due_us;
}

void peers_silent(struct exec *e)
{
    e->housekeeping->peers.last_us = 0;
}

/* Look at all rows of the registry. */
static int64_t consider_all(struct exec *e, const struct node_rows *rows, uint64_t since,
                            int64_t now_us)
{
    struct peers *o = &e->housekeeping->peers;
    int64_t due_us = INT64_MAX;
    for (size_t i = 0; i < o->n; i++)
        o->v[i].fresh = false;
    for (size_t i = 0; i < rows->n; i++) {
        const struct node_row *r = &rows->v[i];
        if (bytes_eq(r->node, bytes_of(e->conf.node)))
            member_seen(e, r, since);
        else if (!r->dead)
            due_us = MIN(due_us, consider(e, r, now_us));
    }
    drop_stale(o);
    o->seen_us = now_us;
    return due_us;
}

int64_t peers_look(struct exec *e, struct store *s, int64_t now_us)
{
    struct peers *o = &e->housekeeping->peers;
    struct node_rows rows;
    struct pawl_err err;
    struct arena a;
    int64_t due_us = INT64_MAX;
    /* A look that comes late was itself silent, so start counting again. */
    if (!o->last_us || now_us - o->last_us > 2 * e->conf.heartbeat_interval_us)
        o->beating_since_us = now_us;
    o->last_us = now_us;
    uint64_t since = member_look(e);
    arena_init(&a, 16 << 20);
    if (store_nodes(s, &a, &rows, &err) != PAWL_OK)
        o->last_us = 0;
    else
        due_us = consider_all(e, &rows, since, now_us);
    arena_release(&a);
    return due_us;
}
