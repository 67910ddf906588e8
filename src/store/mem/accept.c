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

/* How many bytes the name of a lane can have. */
#define LANE_NAME_MAX (2 * NAME_LEN_MAX + 1 + NEEDS_MAX * (NEED_LEN_MAX + 1))

/* Write the name of the spec's lane; returns its length. */
static size_t lane_name(const struct call_spec *s, char *out)
{
    char *at = out;
    CHECK(s->queue.len <= NAME_LEN_MAX && s->type.len <= NAME_LEN_MAX && s->n_needs <= NEEDS_MAX);
    memcpy(at, s->queue.data, s->queue.len);
    at += s->queue.len;
    *at++ = '\0';
    memcpy(at, s->type.data, s->type.len);
    at += s->type.len;
    for (size_t i = 0; i < s->n_needs; i++) {
        *at++ = '\0';
        memcpy(at, s->needs[i].data, s->needs[i].len);
        at += s->needs[i].len;
    }
    return (size_t)(at - out);
}

static struct lane *lane_find(struct mem_db *db, const struct call_spec *s)
{
    char text[LANE_NAME_MAX];
    struct table_node *n = table_find(&db->lanes, (struct bytes){ text, lane_name(s, text) });
    return n ? THING_OF(n, struct lane, by_name) : NULL;
}

static struct lane *lane_new(struct mem_db *db, const struct call_spec *s)
{
    char text[LANE_NAME_MAX];
    size_t len = lane_name(s, text);
    struct queue *q = queue_get(db, s->queue);
    struct lane *l = q ? mem_zalloc(sizeof *l + len) : NULL;
    if (!l)
        return NULL;
    l->thing.kind = THING_LANE;
    l->number = db->last_lane + 1;
    CHECK((size_t)l->number > db->lanes.count); /* removed lanes leave gaps */
    l->queue = q;
    memcpy(l->name, text, len);
    l->type = (struct bytes){ l->name + s->queue.len + 1, s->type.len };
    const char *at = l->type.data + l->type.len;
    for (size_t i = 0; i < s->n_needs; i++) {
        l->needs[l->n_needs++] = (struct bytes){ at + 1, s->needs[i].len };
        at += 1 + s->needs[i].len;
    }
    l->by_name.name = (struct bytes){ l->name, len };
    return thing_add(db, &l->thing) ? l : NULL;
}

enum pawl_status lane_get(struct mem_db *db, const struct call_spec *spec, struct lane **out)
{
    *out = lane_find(db, spec);
    if (*out)
        return PAWL_OK;
    if (db->lanes.count >= LANES_MAX)
        return PAWL_FULL;
    *out = lane_new(db, spec);
    if (!*out)
        return PAWL_NO_MEMORY;
    db->last_lane++;
    return PAWL_OK;
}

/* The next lane to remove; it is marked when gc finds it empty for the first time, and the mark is
 * removed when it has calls. False without memory. */
static bool lane_over(struct mem_tx *tx, struct lane **out)
{
    struct mem_db *db = tx->db;
    *out = NULL;
    for (struct table_node *t = table_next(&db->lanes, NULL); t; t = table_next(&db->lanes, t)) {
        struct lane *l = THING_OF(t, struct lane, by_name);
        int64_t empty_us = l->calls ? 0 : l->empty_us ? l->empty_us : tx->now_us;
        if (empty_us != l->empty_us && !undo_save(db, &l->thing))
            return false;
        l->empty_us = empty_us;
        if (empty_us && tx->now_us - empty_us >= MEM_LANE_EMPTY_US && l->number < db->last_lane)
            *out = l;
    }
    return true;
}

bool lanes_remove(struct mem_tx *tx)
{
    struct lane *l;
    do {
        if (!lane_over(tx, &l) || (l && !thing_drop(tx->db, &l->thing)))
            return false;
    } while (l);
    return true;
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
