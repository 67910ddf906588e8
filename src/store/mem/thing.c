/*
 * thing.c - things of the in-memory database: in and out of their indexes, made and freed.
 *
 * Which indexes a thing is in follows from what it is and from nothing else, so that undoing a
 * change is taking it out, restoring it and putting it back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/mem/thing.h"

#include "base/mem.h"
#include "store/mem/mem.h"

static void link_call(struct mem_db *db, struct mem_call *c)
{
    const struct stand *s = &c->now;
    table_add(&db->ids, &c->by_id, c->id);
    db->calls[c->seq - 1] = c;
    switch (s->place) {
    case PLACE_READY:
        tree_add(&db->ready, &c->by_place, ready_key(c));
        if (s->expires_us)
            tree_add(&db->expiry, &c->by_expiry, KEY(s->expires_us, c->seq));
        return;
    case PLACE_HELD:
        tree_add(&db->held, &c->by_place,
                 KEY(s->lease->serial, -s->priority, s->run_at_us, c->seq));
        return;
    case PLACE_ENDED:
        tree_add(&db->keep, &c->by_place, KEY(s->outcome->keep_until_us, c->seq));
        return;
    case PLACE_GONE:
        tree_add(&db->forget, &c->by_place, KEY(s->forget_us, c->seq));
        return;
    }
}

static void unlink_call(struct mem_db *db, struct mem_call *c)
{
    table_remove(&db->ids, &c->by_id);
    db->calls[c->seq - 1] = NULL;
    switch (c->now.place) {
    case PLACE_READY:
        tree_remove(&db->ready, &c->by_place);
        if (c->now.expires_us)
            tree_remove(&db->expiry, &c->by_expiry);
        return;
    case PLACE_HELD:
        tree_remove(&db->held, &c->by_place);
        return;
    case PLACE_ENDED:
        tree_remove(&db->keep, &c->by_place);
        return;
    case PLACE_GONE:
        tree_remove(&db->forget, &c->by_place);
        return;
    }
}

static void link_lease(struct mem_db *db, struct mem_lease *l)
{
    struct tree_key key = token_key(l->token);
    tree_add(&db->leases, &l->by_token, key);
    if (l->now.until_us)
        tree_add(&db->ends, &l->by_until, KEY(l->now.until_us, key.k[0], key.k[1]));
}

static void unlink_lease(struct mem_db *db, struct mem_lease *l)
{
    tree_remove(&db->leases, &l->by_token);
    if (l->now.until_us)
        tree_remove(&db->ends, &l->by_until);
}

void thing_link(struct mem_db *db, struct thing *t)
{
    switch (t->kind) {
    case THING_CALL:
        link_call(db, (struct mem_call *)t);
        return;
    case THING_LEASE:
        link_lease(db, (struct mem_lease *)t);
        return;
    case THING_LANE:
        table_add(&db->lanes, &((struct lane *)t)->by_name, ((struct lane *)t)->by_name.name);
        return;
    case THING_QUEUE:
        table_add(&db->queues, &((struct queue *)t)->by_name, ((struct queue *)t)->by_name.name);
        return;
    case THING_NODE:
        table_add(&db->nodes, &((struct mem_node *)t)->by_name, ((struct mem_node *)t)->name);
        return;
    }
}

void thing_unlink(struct mem_db *db, struct thing *t)
{
    switch (t->kind) {
    case THING_CALL:
        unlink_call(db, (struct mem_call *)t);
        return;
    case THING_LEASE:
        unlink_lease(db, (struct mem_lease *)t);
        return;
    case THING_LANE:
        table_remove(&db->lanes, &((struct lane *)t)->by_name);
        return;
    case THING_QUEUE:
        table_remove(&db->queues, &((struct queue *)t)->by_name);
        return;
    case THING_NODE:
        table_remove(&db->nodes, &((struct mem_node *)t)->by_name);
        return;
    }
}

bool thing_add(struct mem_db *db, struct thing *t)
{
    if (!undo_save(db, t)) {
        thing_free(t);
        return false;
    }
    t->present = true;
    thing_link(db, t);
    return true;
}

bool thing_drop(struct mem_db *db, struct thing *t)
{
    if (!undo_save(db, t))
        return false;
    thing_unlink(db, t);
    t->present = false;
    return true;
}

void thing_free(struct thing *t)
{
    if (t->kind == THING_CALL)
        blobs_free(((struct mem_call *)t)->now.blobs, NULL);
    mem_free(t);
}

void blobs_free(struct blob *b, const struct blob *until)
{
    while (b && b != until) {
        struct blob *older = b->older;
        mem_free(b);
        b = older;
    }
}

void *call_blob(struct mem_call *c, size_t size)
{
    struct blob *b = mem_zalloc(sizeof *b + size);
    if (!b)
        return NULL;
    b->older = c->now.blobs;
    c->now.blobs = b;
    return b->data;
}

bool call_keep(struct mem_call *c, struct bytes in, struct bytes *out)
{
    *out = BYTES_NONE;
    if (!in.data)
        return true;
    char *copy = call_blob(c, in.len);
    if (!copy)
        return false;
    if (in.len)
        memcpy(copy, in.data, in.len);
    *out = (struct bytes){ copy, in.len };
    return true;
}
