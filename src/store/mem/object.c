/*
 * object.c - objects: the state of (type, key), written by calls that complete and by OP_OBJECT.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/mem.h"
#include "store/mem/mem.h"

struct mem_object *object_find(const struct mem_db *db, struct bytes type, struct bytes key)
{
    char text[2 * NAME_LEN_MAX + 1];
    if (type.len > NAME_LEN_MAX || key.len > NAME_LEN_MAX)
        return NULL;
    memcpy(text, type.data, type.len);
    text[type.len] = '\0';
    memcpy(text + type.len + 1, key.data, key.len);
    struct table_node *n = table_find(&db->objects, (struct bytes){ text, type.len + 1 + key.len });
    return n ? THING_OF(n, struct mem_object, by_name) : NULL;
}

bool object_remove(struct mem_db *db, struct bytes type, struct bytes key)
{
    struct mem_object *o = object_find(db, type, key);
    return !o || thing_drop(db, &o->thing);
}

int64_t object_set(struct mem_tx *tx, struct bytes type, struct mem_key *k, struct payload state)
{
    struct mem_db *db = tx->db;
    struct bytes key = k->by_name.name;
    size_t name_len = type.len + 1 + key.len;
    if (!object_remove(db, type, key))
        return 0;
    struct mem_object *o = mem_zalloc(sizeof *o + name_len + state.bytes.len);
    if (!o)
        return 0;
    o->thing.kind = THING_OBJECT;
    o->key = k;
    memcpy(o->text, type.data, type.len);
    memcpy(o->text + type.len + 1, key.data, key.len);
    o->by_name.name = (struct bytes){ o->text, name_len };
    if (state.bytes.len)
        memcpy(o->text + name_len, state.bytes.data, state.bytes.len);
    o->state = (struct payload){ state.form, { o->text + name_len, state.bytes.len } };
    CHECK(!object_find(db, type, key)); /* the former state was removed */
    o->version = db->last_version + 1;
    o->updated_us = tx->now_us;
    if (!thing_add(db, &o->thing))
        return 0;
    return ++db->last_version;
}

/* ---- From outside a call --------------------------------------------------------------------- */

/* Is the operation allowed? If not, op->status says why. */
static bool allowed(struct mem_tx *tx, struct object_op *q, const struct mem_key *k,
                    const struct mem_object *o)
{
    struct op *op = tx->op;
    int64_t pending = k && q->how == STATE_DELETE ? key_pending_type(k, q->type) : 0;
    if (k && k->held) {
        op->status =
            err_set(&op->err, PAWL_BUSY, "key \"%.*s\": a call is running", BYTES_ARG(q->key));
    } else if (object_conditional(q) && !o) {
        op->status = err_set(&op->err, PAWL_STALE, "object \"%.*s\" \"%.*s\" does not exist",
                             BYTES_ARG(q->type), BYTES_ARG(q->key));
    } else if (o && !object_fits(q, o->version)) {
        q->version = o->version;
        op->status = err_set(&op->err, PAWL_STALE, "object \"%.*s\" \"%.*s\" has version %lld",
                             BYTES_ARG(q->type), BYTES_ARG(q->key), (long long)o->version);
    } else if (pending && !q->cancel) {
        op->status =
            err_set(&op->err, PAWL_STATE, "object \"%.*s\" \"%.*s\": %lld calls are pending",
                    BYTES_ARG(q->type), BYTES_ARG(q->key), (long long)pending);
    } else if (q->how == STATE_DELETE && !o && !pending) {
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "no object \"%.*s\" \"%.*s\"",
                             BYTES_ARG(q->type), BYTES_ARG(q->key));
    }
    return op->status == PAWL_OK;
}

/* End every call of this type in one of the key's trees; the key is not held. */
static enum pawl_status cancel_all(struct mem_tx *tx, struct tree *t, struct object_op *q)
{
    for (struct tree_node *n = tree_from(t, KEY(0)), *next; n; n = next) {
        struct mem_call *c = THING_OF(n, struct mem_call, by_line);
        next = tree_after(t, n);
        if (!bytes_eq(c->now.lane->type, q->type))
            continue;
        enum pawl_status st = call_end(tx, c, PAWL_CANCELLED);
        if (st == PAWL_OK)
            st = told_ended(tx, c);
        if (st != PAWL_OK)
            return st;
        q->cancelled++;
    }
    return PAWL_OK;
}

static enum pawl_status delete (struct mem_tx *tx, struct object_op *q, struct mem_key *k) {
    enum pawl_status st = cancel_all(tx, &k->line, q);
    if (st == PAWL_OK) st = cancel_all(tx, &k->delayed, q);
    if (st != PAWL_OK) return st;
    bool ok = object_remove(tx->db, q->type, q->key) && key_settle(tx->db, k) &&
              key_forget(tx->db, k);
    return ok ? PAWL_OK : PAWL_NO_MEMORY;
}

enum pawl_status mem_object(struct mem_tx *tx, struct object_op *q)
{
    struct mem_key *k = key_find(tx->db, q->key);
    q->version = q->updated_us = q->cancelled = 0;
    if (!allowed(tx, q, k, object_find(tx->db, q->type, q->key)))
        return PAWL_OK;
    if (q->how == STATE_DELETE)
        return delete (tx, q, k);
    k = key_get(tx->db, q->key);
    q->version = k ? object_set(tx, q->type, k, q->state) : 0;
    q->updated_us = tx->now_us;
    return q->version ? PAWL_OK : PAWL_NO_MEMORY;
}
