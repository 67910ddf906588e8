/*
 * undo.c - the undo log, which makes every group of operations atomic.
 *
 * A record is what one thing was before one change. Undo restores the records from the last to the
 * first and needs no memory. A thing that is in no index and in no record is freed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "store/mem/mem.h"

#define UNDO_CAP_FIRST 64

static bool undo_grow(struct undo *u)
{
    size_t cap = u->cap ? u->cap * 2 : UNDO_CAP_FIRST;
    struct undo_record *v = mem_resize(u->v, cap * sizeof *v);
    if (!v)
        return false;
    u->v = v;
    u->cap = cap;
    return true;
}

bool undo_save(struct mem_db *db, struct thing *t)
{
    struct undo *u = &db->undo;
    if (u->n == u->cap && !undo_grow(u))
        return false;
    struct undo_record *r = &u->v[u->n++];
    *r = (struct undo_record){ .thing = t, .was_present = t->present };
    t->undo_refs++;
    switch (t->kind) {
    case THING_CALL:
        r->was.call = ((struct mem_call *)t)->now;
        break;
    case THING_LEASE:
        r->was.lease = ((struct mem_lease *)t)->now;
        break;
    case THING_QUEUE:
        r->was.paused = ((struct queue *)t)->paused;
        break;
    case THING_NODE:
        r->was.node = ((struct mem_node *)t)->now;
        break;
    case THING_LEADER:
        r->was.leader = ((struct mem_leader *)t)->now;
        break;
    case THING_KEY:
        r->was.key = ((struct mem_key *)t)->now;
        break;
    case THING_LANE:
        r->was.empty_us = ((struct lane *)t)->empty_us;
        break;
    case THING_OBJECT: /* never changes: it is only added and dropped */
        break;
    }
    return true;
}

static void restore(struct undo_record *r)
{
    struct thing *t = r->thing;
    switch (t->kind) {
    case THING_CALL: {
        struct mem_call *c = (struct mem_call *)t;
        blobs_free(c->now.blobs, r->was.call.blobs);
        c->now = r->was.call;
        break;
    }
    case THING_LEASE:
        ((struct mem_lease *)t)->now = r->was.lease;
        break;
    case THING_QUEUE:
        ((struct queue *)t)->paused = r->was.paused;
        break;
    case THING_NODE:
        ((struct mem_node *)t)->now = r->was.node;
        break;
    case THING_LEADER:
        ((struct mem_leader *)t)->now = r->was.leader;
        break;
    case THING_KEY:
        ((struct mem_key *)t)->now = r->was.key;
        break;
    case THING_LANE:
        ((struct lane *)t)->empty_us = r->was.empty_us;
        break;
    case THING_OBJECT:
        break;
    }
}

static void record_end(struct undo_record *r)
{
    if (--r->thing->undo_refs == 0 && !r->thing->present)
        thing_free(r->thing);
}

struct undo_mark undo_mark(const struct mem_db *db)
{
    return (struct undo_mark){ db->undo.n, db->last_seq, db->last_version, db->last_lane };
}

void undo_to(struct mem_db *db, struct undo_mark mark)
{
    while (db->undo.n > mark.n) {
        struct undo_record *r = &db->undo.v[--db->undo.n];
        if (r->thing->present)
            thing_unlink(db, r->thing);
        restore(r);
        r->thing->present = r->was_present;
        if (r->was_present)
            thing_link(db, r->thing);
        record_end(r);
    }
    db->last_seq = mark.last_seq;
    db->last_version = mark.last_version;
    db->last_lane = mark.last_lane;
}

void undo_forget(struct mem_db *db)
{
    for (size_t i = 0; i < db->undo.n; i++) {
        blobs_free(db->undo.v[i].trash, NULL);
        record_end(&db->undo.v[i]);
    }
    db->undo.n = 0;
}
