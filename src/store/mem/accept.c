/*
 * accept.c - accepting calls, and the lanes and queues that they create.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/mem.h"
#include "store/mem/mem.h"

struct queue *queue_get(struct mem_db *db, struct bytes name)
{
    struct table_node *n = table_find(&db->queues, name);
    if (n)
        return THING_OF(n, struct queue, by_name);
    struct queue *q = mem_zalloc(sizeof *q + name.len);
    if (!q)
        return NULL;
    q->thing.kind = THING_QUEUE;
    memcpy(q->name, name.data, name.len);
    q->by_name.name = (struct bytes){ q->name, name.len };
    return thing_add(db, &q->thing) ? q : NULL;
}

static struct lane *lane_find(struct mem_db *db, struct bytes queue, struct bytes type)
{
    char text[2 * NAME_LEN_MAX + 1];
    CHECK(queue.len <= NAME_LEN_MAX && type.len <= NAME_LEN_MAX);
    memcpy(text, queue.data, queue.len);
    text[queue.len] = '\0';
    memcpy(text + queue.len + 1, type.data, type.len);
    struct table_node *n = table_find(&db->lanes, (struct bytes){ text, queue.len + 1 + type.len });
    return n ? THING_OF(n, struct lane, by_name) : NULL;
}

static struct lane *lane_new(struct mem_db *db, struct bytes queue, struct bytes type)
{
    struct queue *q = queue_get(db, queue);
    size_t len = queue.len + 1 + type.len;
    struct lane *l = q ? mem_zalloc(sizeof *l + len) : NULL;
    if (!l)
        return NULL;
    l->thing.kind = THING_LANE;
    l->number = db->last_lane + 1;
    CHECK((size_t)l->number == db->lanes.count + 1); /* their numbers have no gaps */
    l->queue = q;
    memcpy(l->name, queue.data, queue.len);
    memcpy(l->name + queue.len + 1, type.data, type.len);
    l->type = (struct bytes){ l->name + queue.len + 1, type.len };
    l->by_name.name = (struct bytes){ l->name, len };
    return thing_add(db, &l->thing) ? l : NULL;
}

enum pawl_status lane_get(struct mem_db *db, struct bytes queue, struct bytes type,
                          struct lane **out)
{
    *out = lane_find(db, queue, type);
    if (*out)
        return PAWL_OK;
    if (db->last_lane >= LANES_MAX)
        return PAWL_FULL;
    *out = lane_new(db, queue, type);
    if (!*out)
        return PAWL_NO_MEMORY;
    db->last_lane++;
    return PAWL_OK;
}

static enum pawl_status known(struct mem_tx *tx, const struct mem_call *c, bool want_result,
                              const struct call_spec *spec, struct accepted *out)
{
    bool same = memcmp(c->fingerprint, spec->fingerprint, FINGERPRINT_LEN) == 0;
    out->status = !same ? PAWL_CONFLICT : c->now.place == PLACE_GONE ? PAWL_GONE : PAWL_OK;
    out->duplicate = out->status == PAWL_OK;
    unsigned with = out->duplicate && want_result ? WITH_INPUT | WITH_RESULT : 0;
    return call_show(tx->op->a, c, tx->now_us, with, &out->call) ? PAWL_OK : PAWL_NO_MEMORY;
}

/* How many calls are pending on its key, if that has reached the limit; else 0. */
static int64_t key_full(const struct mem_tx *tx, const struct call_spec *spec)
{
    const struct mem_key *k = spec->key.data ? key_find(tx->db, spec->key) : NULL;
    int64_t n = k ? key_pending(k) : 0;
    CHECK(n >= 0);
    return tx->s->key_pending_max && n >= tx->s->key_pending_max ? n : 0;
}

static enum pawl_status accept_one(struct mem_tx *tx, const struct call_spec *spec,
                                   bool want_result, struct accepted *out)
{
    struct mem_call *c = call_by_id(tx->db, spec->id);
    if (c)
        return known(tx, c, want_result, spec, out);
    out->line_full = key_full(tx, spec);
    if (out->line_full) {
        out->status = PAWL_FULL;
        return PAWL_OK;
    }
    out->status = call_make(tx, spec, &c);
    if (out->status == PAWL_NO_MEMORY)
        return PAWL_NO_MEMORY;
    if (out->status == PAWL_OK) {
        out->call = call_model(c, tx->now_us);
        out->call.spec = *spec;
        /* The first call of a held key counts as begun; the contract spares accepts that check. */
        if (out->call.in_line)
            out->call.position = tree_rank(&c->now.key->line, KEY(c->now.pos)) + !c->now.key->held;
        CHECK(c->seq == tx->db->last_seq && call_by_id(tx->db, spec->id) == c);
    }
    return PAWL_OK;
}

static void say_refused(struct mem_tx *tx, const struct call_spec *spec, const struct accepted *a)
{
    struct op *op = tx->op;
    enum pawl_status st = op->status = a->status;
    if (a->line_full)
        err_set(&op->err, st, "key \"%.*s\": %lld calls pending, limit %lld", BYTES_ARG(spec->key),
                (long long)a->line_full, (long long)tx->s->key_pending_max);
    else if (st == PAWL_FULL)
        err_set(&op->err, st, "queue \"%.*s\", type \"%.*s\": %d lanes, limit %d",
                BYTES_ARG(spec->queue), BYTES_ARG(spec->type), LANES_MAX, LANES_MAX);
    else if (st == PAWL_GONE)
        err_set(&op->err, st, "call \"%.*s\" has ended and is no longer kept", BYTES_ARG(spec->id));
    else
        err_set(&op->err, st, "call \"%.*s\" already exists with other content",
                BYTES_ARG(spec->id));
}

enum pawl_status mem_accept(struct mem_tx *tx, struct accept *q)
{
    struct undo_mark mark = undo_mark(tx->db);
    q->out = arena_zalloc(tx->op->a, q->n, sizeof *q->out);
    if (!q->out)
        return PAWL_NO_MEMORY;
    for (size_t i = 0; i < q->n; i++) {
        enum pawl_status st = accept_one(tx, &q->v[i], q->want_result, &q->out[i]);
        if (st != PAWL_OK)
            return st;
        if (q->atomic && q->out[i].status != PAWL_OK) {
            q->refused = i;
            say_refused(tx, &q->v[i], &q->out[i]);
            undo_to(tx->db, mark);
            return PAWL_OK;
        }
    }
    return PAWL_OK;
}
