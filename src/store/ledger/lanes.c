/*
 * lanes.c - number <-> (queue, type) in memory, and which queues are paused.
 *
 * Lanes are never deleted, their numbers have no gaps, and a transaction that makes one holds an
 * advisory lock until the commit. So what was read once stays true, and new lanes have numbers
 * above the last one known. An undone transaction forgets the lanes it made.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/mem.h"
#include "store/ledger/cache.h"

#define SLOTS_FIRST 64

static uint64_t lane_hash(struct bytes queue, struct bytes type)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < queue.len; i++)
        h = (h ^ (unsigned char)queue.data[i]) * UINT64_C(0x100000001b3);
    h = (h ^ 0x100) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < type.len; i++)
        h = (h ^ (unsigned char)type.data[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

/* The slot of this lane, or the free slot where it would be. */
static int *slot_of(const struct led_lanes *l, struct bytes queue, struct bytes type)
{
    size_t i = lane_hash(queue, type) & (l->n_slots - 1);
    for (;; i = (i + 1) & (l->n_slots - 1)) {
        int lane = l->slots[i];
        if (!lane || (bytes_eq(l->v[lane - 1].queue, queue) && bytes_eq(l->v[lane - 1].type, type)))
            return &l->slots[i];
    }
}

static void slots_fill(struct led_lanes *l)
{
    memset(l->slots, 0, l->n_slots * sizeof *l->slots);
    for (size_t i = 0; i < l->n; i++)
        *slot_of(l, l->v[i].queue, l->v[i].type) = (int)i + 1;
}

/* Make room for one more; the slots stay at most half full. */
static bool lanes_reserve(struct led_lanes *l)
{
    if (l->n < l->cap)
        return true;
    size_t cap = l->cap ? l->cap * 2 : SLOTS_FIRST / 2;
    struct led_lane *v = mem_resize(l->v, cap * sizeof *v);
    if (!v)
        return false;
    l->v = v;
    int *slots = mem_resize(l->slots, 2 * cap * sizeof *slots);
    if (!slots)
        return false;
    l->slots = slots;
    l->n_slots = 2 * cap;
    l->cap = cap;
    slots_fill(l);
    return true;
}

/* Add lane n + 1 in memory. */
static enum pawl_status lane_keep(struct ledger *c, struct bytes queue, struct bytes type,
                                  struct pawl_err *err)
{
    struct led_lanes *l = &c->lanes;
    char *names = lanes_reserve(l) ? mem_alloc(queue.len + type.len) : NULL;
    if (!names)
        return err_no_memory(err, "a lane");
    memcpy(names, queue.data, queue.len);
    memcpy(names + queue.len, type.data, type.len);
    l->v[l->n++] =
        (struct led_lane){ .queue = { names, queue.len }, .type = { names + queue.len, type.len } };
    const struct led_lane *kept = &l->v[l->n - 1];
    *slot_of(l, kept->queue, kept->type) = (int)l->n;
    return PAWL_OK;
}

enum pawl_status led_lanes_read(struct ledger *c, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    if (c->lanes.read)
        return PAWL_OK;
    if (c->lanes.n != c->lanes.n_stored)
        return PAWL_OK; /* this transaction makes lanes, so no other does */
    led_int(&p, (int64_t)c->lanes.n);
    enum pawl_status st = led_query(c, SQL_LANE_LIST, &p, &r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        if (led_get_int(r, i, 0) != (int64_t)c->lanes.n + 1)
            return err_set(err, PAWL_BROKEN, "lane %zu is missing", c->lanes.n + 1);
        if (c->lanes.n == LANES_MAX)
            return err_set(err, PAWL_BROKEN, "database: there are more than %d lanes", LANES_MAX);
        st = lane_keep(c, led_get(r, i, 1), led_get(r, i, 2), err);
    }
    c->lanes.n_stored = c->lanes.n;
    c->lanes.read = st == PAWL_OK;
    return st;
}

enum pawl_status led_lane_find(struct ledger *c, struct bytes queue, struct bytes type, int *out,
                               struct pawl_err *err)
{
    *out = c->lanes.n_slots ? *slot_of(&c->lanes, queue, type) : 0;
    if (*out || c->lanes.read)
        return PAWL_OK;
    enum pawl_status st = led_lanes_read(c, err);
    if (st == PAWL_OK && c->lanes.n_slots)
        *out = *slot_of(&c->lanes, queue, type);
    return st;
}

bool led_lanes_full(const struct ledger *c, size_t more)
{
    return c->lanes.n + more > LANES_MAX;
}

enum pawl_status led_lanes_lock(struct ledger *c, struct pawl_err *err)
{
    struct led_params p = { 0 };
    if (c->lanes.locked)
        return PAWL_OK;
    if (c->db->one_writer)
        return led_lanes_read(c, err);
    led_text(&p, bytes_of(c->schema));
    enum pawl_status st = led_run(c, SQL_LANE_LOCK, &p, NULL, err);
    if (st != PAWL_OK)
        return st;
    c->lanes.locked = true;
    c->lanes.read = false; /* read the lanes that were made while we waited for the lock */
    return led_lanes_read(c, err);
}

enum pawl_status led_lane_for(struct ledger *c, struct bytes queue, struct bytes type, int *out,
                              struct pawl_err *err)
{
    enum pawl_status st = led_lane_find(c, queue, type, out, err);
    if (st != PAWL_OK || *out)
        return st;
    st = led_lanes_lock(c, err);
    if (st == PAWL_OK)
        st = led_lane_find(c, queue, type, out, err);
    if (st != PAWL_OK || *out || led_lanes_full(c, 1))
        return st;
    CHECK(c->lanes.locked || c->db->one_writer); /* else two lanes could get one number */
    st = lane_keep(c, queue, type, err);
    *out = (int)c->lanes.n;
    return st;
}

enum pawl_status led_lane(struct ledger *c, int lane, const struct led_lane **out,
                          struct pawl_err *err)
{
    if (lane > (int)c->lanes.n && c->lanes.n == c->lanes.n_stored) {
        c->lanes.read = false;
        enum pawl_status st = led_lanes_read(c, err);
        if (st != PAWL_OK)
            return st;
    }
    if (lane < 1 || lane > (int)c->lanes.n)
        return err_set(err, PAWL_BROKEN, "a call names lane %d, which does not exist", lane);
    *out = &c->lanes.v[lane - 1];
    return PAWL_OK;
}

void led_lanes_undo(struct ledger *c)
{
    struct led_lanes *l = &c->lanes;
    l->read = l->locked = false;
    l->n_written = l->n_stored;
    if (l->n == l->n_stored)
        return;
    while (l->n > l->n_stored)
        mem_free((char *)l->v[--l->n].queue.data);
    slots_fill(l);
}

void led_lanes_end(struct ledger *c)
{
    c->lanes.n_stored = 0;
    led_lanes_undo(c);
    mem_free(c->lanes.v);
    mem_free(c->lanes.slots);
}

/* ---- Paused queues --------------------------------------------------------------------------- */

enum pawl_status led_paused_take(struct ledger *c, const struct led_rows *r, struct pawl_err *err)
{
    c->tx->n_paused = 0;
    c->tx->paused = arena_zalloc(&c->scratch, (size_t)r->n + 1, sizeof *c->tx->paused);
    if (!c->tx->paused)
        return err_no_memory(err, "paused queues");
    for (int i = 0; i < r->n; i++) {
        if (!led_get(r, i, 0).len)
            return err_set(err, PAWL_BROKEN, "database: a paused queue has no name");
        if (led_get_int(r, i, 1))
            c->tx->paused[c->tx->n_paused++] = led_get(r, i, 0);
    }
    c->tx->paused_read = true;
    return PAWL_OK;
}

static enum pawl_status paused_read(struct ledger *c, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    if (c->tx->paused_read)
        return PAWL_OK;
    enum pawl_status st = led_query(c, SQL_QUEUE_LIST, NULL, &r, err);
    return st == PAWL_OK ? led_paused_take(c, r, err) : st;
}

enum pawl_status led_lane_paused(struct ledger *c, int lane, bool *out, struct pawl_err *err)
{
    const struct led_lane *l;
    enum pawl_status st = paused_read(c, err);
    *out = false;
    if (st != PAWL_OK || c->tx->n_paused == 0)
        return st;
    st = led_lane(c, lane, &l, err);
    for (size_t i = 0; st == PAWL_OK && i < c->tx->n_paused && !*out; i++)
        *out = bytes_eq(c->tx->paused[i], l->queue);
    return st;
}

enum pawl_status led_pause(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct led_params p = { 0 };
    int64_t changed = 0;
    led_text(&p, op->pause.queue);
    c->tx->paused_read = false;
    if (op->pause.paused)
        led_int(&p, 1);
    enum pawl_status st =
        led_run(c, op->pause.paused ? SQL_QUEUE_PAUSE : SQL_QUEUE_RESUME, &p, &changed, err);
    /* A queue that is not paused need not have a row. */
    CHECK(st != PAWL_OK || (op->pause.paused ? changed >= 1 : changed <= 1));
    return st;
}
