/*
 * observer.c - who is dead: silence counts only while the observer itself was beating.
 *
 * Counters are compared, never clocks, and time is our own monotonic one: after a database outage,
 * or a stop of this very process, everybody's counter stood still and nobody is blamed. One thread
 * only, the one that beats.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "exec/exec.h"
#include "exec/keeper.h"

void observer_release(struct observer *o)
{
    mem_free(o->v);
    *o = (struct observer){ 0 };
}

static struct seen_node *find(struct observer *o, const struct node_row *r)
{
    for (size_t i = 0; i < o->n; i++)
        if (bytes_eq(bytes_of(o->v[i].node), r->node) && bytes_eq(bytes_of(o->v[i].boot), r->boot))
            return &o->v[i];
    return NULL;
}

static struct seen_node *add(struct observer *o, const struct node_row *r)
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

/* Forget who is no longer in the registry. */
static void drop_stale(struct observer *o)
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
    struct chore *c = &e->keeper->chores[KEEP_BURY];
    if (atomic_load(&c->under_way))
        return; /* Its turn comes with the next look. */
    memcpy(c->node, s->node, sizeof(c->node));
    memcpy(c->boot, s->boot, sizeof(c->boot));
    chore_post(c, (struct op){ .kind = OP_BURY,
                               .node = { .node = bytes_of(c->node),
                                         .boot = bytes_of(c->boot),
                                         .beats = s->beats,
                                         .fail_lost = e->conf.fail_lost } });
}

static void consider(struct exec *e, const struct node_row *r, int64_t now_us)
{
    struct observer *o = &e->keeper->observer;
    struct seen_node *s = find(o, r);
    if (!s)
        s = add(o, r);
    if (!s)
        return;
    s->fresh = true;
    if (s->beats != r->beats) {
        s->beats = r->beats;
        s->since_us = now_us;
    }
    int64_t grace_us = e->conf.heartbeat_grace_us;
    if (now_us - s->since_us >= grace_us && now_us - o->beating_since_us >= grace_us)
        bury(e, s);
}

void observer_silent(struct exec *e)
{
    e->keeper->observer.last_us = 0;
}

void observer_look(struct exec *e, struct store *s, int64_t now_us)
{
    struct observer *o = &e->keeper->observer;
    struct node_rows rows;
    struct pawl_err err;
    struct arena a;
    /* A look that comes late was itself silent: start counting anew. */
    if (!o->last_us || now_us - o->last_us > 2 * e->conf.heartbeat_interval_us)
        o->beating_since_us = now_us;
    o->last_us = now_us;
    arena_init(&a, 16 << 20);
    if (store_nodes(s, &a, &rows, &err) != PAWL_OK) {
        o->last_us = 0;
    } else {
        for (size_t i = 0; i < o->n; i++)
            o->v[i].fresh = false;
        for (size_t i = 0; i < rows.n; i++)
            if (!rows.v[i].dead && !bytes_eq(rows.v[i].node, bytes_of(e->conf.node)))
                consider(e, &rows.v[i], now_us);
        drop_stale(o);
    }
    arena_release(&a);
}
