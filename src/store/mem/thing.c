/*
 * thing.c - the things of the in-memory database: putting them into their indexes, taking them out,
 * freeing them.
 *
 * Which indexes contain a thing follows only from its present value. So a change is undone by
 * taking the thing out of its indexes, restoring the value and putting it back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/mem/thing.h"

#include "base/mem.h"
#include "store/mem/mem.h"

static bool in_line(const struct stand *s)
{
    return s->key && (s->place == PLACE_READY || s->place == PLACE_LINE || s->place == PLACE_HELD);
}

static bool expires(const struct stand *s)
{
    return s->state == PAWL_PENDING && s->expires_us;
}

static void link_to_key(struct mem_call *c)
{
    const struct stand *s = &c->now;
    struct mem_key *k = s->key;
    k->calls++;
    if (in_line(s))
        tree_add(&k->line, &c->by_line, KEY(s->pos));
    else if (s->place == PLACE_DELAYED)
        tree_add(&k->delayed, &c->by_line, KEY(c->seq));
    k->held += s->place == PLACE_HELD;
    if (s->place == PLACE_READY) {
        CHECK(!k->offer);
        k->offer = c;
    }
    if (s->blocks) {
        CHECK(s->place == PLACE_ENDED && !k->blocker);
        k->blocker = c;
    }
}

static void unlink_from_key(struct mem_call *c)
{
    const struct stand *s = &c->now;
    struct mem_key *k = s->key;
    k->calls--;
    if (in_line(s))
        tree_remove(&k->line, &c->by_line);
    else if (s->place == PLACE_DELAYED)
        tree_remove(&k->delayed, &c->by_line);
    k->held -= s->place == PLACE_HELD;
    CHECK(k->calls >= 0 && k->held >= 0);
    if (k->offer == c)
        k->offer = NULL;
    if (k->blocker == c)
        k->blocker = NULL;
}

/* The index that contains calls of this place, and the call's key there; NULL: there is none. */
static struct tree *place_index(struct mem_db *db, const struct mem_call *c, struct tree_key *out)
{
    const struct stand *s = &c->now;
    switch (s->place) {
    case PLACE_READY:
        *out = ready_key(c);
        return &db->ready;
    case PLACE_LINE:
        return NULL;
    case PLACE_DELAYED:
        *out = KEY(s->run_at_us, c->seq);
        return &db->delayed;
    case PLACE_HELD:
        *out = KEY(s->lease->serial, -s->priority, s->run_at_us, c->seq);
        return &db->held;
    case PLACE_ENDED:
        *out = KEY(s->outcome->keep_until_us, c->seq);
        return s->blocks ? NULL : &db->keep;
    case PLACE_GONE:
        *out = KEY(s->forget_us, c->seq);
        return &db->forget;
    }
    return NULL;
}

static void link_call(struct mem_db *db, struct mem_call *c)
{
    struct tree_key key;
    struct tree *index = place_index(db, c, &key);
    CHECK(c->seq > 0 && (size_t)c->seq <= db->calls_cap && !db->calls[c->seq - 1]);
    table_add(&db->ids, &c->by_id, c->id);
    db->calls[c->seq - 1] = c;
    if (index)
        tree_add(index, &c->by_place, key);
    if (expires(&c->now))
        tree_add(&db->expiry, &c->by_expiry, KEY(c->now.expires_us, c->seq));
    if (c->now.key)
        link_to_key(c);
    if (c->now.lane)
        c->now.lane->calls++;
}

static void unlink_call(struct mem_db *db, struct mem_call *c)
{
    struct tree_key key;
    struct tree *index = place_index(db, c, &key);
    CHECK(db->calls[c->seq - 1] == c);
    table_remove(&db->ids, &c->by_id);
    db->calls[c->seq - 1] = NULL;
    if (index)
        tree_remove(index, &c->by_place);
    if (expires(&c->now))
        tree_remove(&db->expiry, &c->by_expiry);
    if (c->now.key)
        unlink_from_key(c);
    if (c->now.lane)
        c->now.lane->calls--;
}

static void link_lease(struct mem_db *db, struct mem_lease *l)
{
    struct tree_key key = token_key(l->token);
    CHECK(!token_none(l->token) && l->now.named >= 0);
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

static void link_object(struct mem_db *db, struct mem_object *o)
{
    CHECK(o->version > 0 && o->state.form != PAWL_NOTHING);
    table_add(&db->objects, &o->by_name, o->by_name.name);
    o->key->objects++;
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
    case THING_LEADER:
        return;
    case THING_KEY:
        table_add(&db->keys, &((struct mem_key *)t)->by_name, ((struct mem_key *)t)->by_name.name);
        return;
    case THING_OBJECT:
        link_object(db, (struct mem_object *)t);
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
    case THING_LEADER:
        return;
    case THING_KEY:
        table_remove(&db->keys, &((struct mem_key *)t)->by_name);
        return;
    case THING_OBJECT:
        table_remove(&db->objects, &((struct mem_object *)t)->by_name);
        ((struct mem_object *)t)->key->objects--;
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
