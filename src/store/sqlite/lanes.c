/*
 * lanes.c - number <-> (queue, type) in memory, and which queues are paused.
 *
 * Lanes are never deleted and their numbers are dense, so what was read once stays true; a
 * transaction that needs lanes first reads those beyond the last one known. An undone transaction
 * forgets what it made.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "store/sqlite/engine.h"

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

/* The slot that has this lane, or the free one where it would be. */
static int *slot_of(const struct lite_lanes *l, struct bytes queue, struct bytes type)
{
    size_t i = lane_hash(queue, type) & (l->n_slots - 1);
    for (;; i = (i + 1) & (l->n_slots - 1)) {
        int lane = l->slots[i];
        if (!lane || (bytes_eq(l->v[lane - 1].queue, queue) && bytes_eq(l->v[lane - 1].type, type)))
            return &l->slots[i];
    }
}

static void slots_fill(struct lite_lanes *l)
{
    memset(l->slots, 0, l->n_slots * sizeof *l->slots);
    for (size_t i = 0; i < l->n; i++)
        *slot_of(l, l->v[i].queue, l->v[i].type) = (int)i + 1;
}

/* Room for one more; the slots stay at most half full. */
static bool lanes_reserve(struct lite_lanes *l)
{
    if (l->n < l->cap)
        return true;
    size_t cap = l->cap ? l->cap * 2 : SLOTS_FIRST / 2;
    struct lite_lane *v = mem_resize(l->v, cap * sizeof *v);
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

/* Remember lane n + 1. */
static enum pawl_status lane_keep(struct lite *c, struct bytes queue, struct bytes type,
                                  struct pawl_err *err)
{
    struct lite_lanes *l = &c->lanes;
    char *names = lanes_reserve(l) ? mem_alloc(queue.len + type.len) : NULL;
    if (!names)
        return err_no_memory(err, "a lane");
    memcpy(names, queue.data, queue.len);
    memcpy(names + queue.len, type.data, type.len);
    l->v[l->n++] = (struct lite_lane){ .queue = { names, queue.len },
                                       .type = { names + queue.len, type.len } };
    const struct lite_lane *kept = &l->v[l->n - 1];
    *slot_of(l, kept->queue, kept->type) = (int)l->n;
    return PAWL_OK;
}

enum pawl_status lite_lanes_read(struct lite *c, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    if (c->lanes.read_tx == c->tx)
        return PAWL_OK;
    enum pawl_status st = lite_query(c, SQL_LANE_LIST, ARGS(INT((int64_t)c->lanes.n)), &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row) {
        if (lite_int(q, 0) != (int64_t)c->lanes.n + 1)
            return err_set(err, PAWL_BROKEN, "lane %zu is missing", c->lanes.n + 1);
        st = lane_keep(c, lite_column(q, 1), lite_column(q, 2), err);
    }
    /* What is in the table survives us; only lanes made from here on are ours to forget. */
    c->lanes.n_stored = c->lanes.n;
    if (st == PAWL_OK)
        c->lanes.read_tx = c->tx;
    return st;
}

enum pawl_status lite_lane_find(struct lite *c, struct bytes queue, struct bytes type, int *out,
                                struct pawl_err *err)
{
    *out = c->lanes.n_slots ? *slot_of(&c->lanes, queue, type) : 0;
    if (*out || c->lanes.read_tx == c->tx)
        return PAWL_OK;
    enum pawl_status st = lite_lanes_read(c, err);
    if (st == PAWL_OK && c->lanes.n_slots)
        *out = *slot_of(&c->lanes, queue, type);
    return st;
}

bool lite_lanes_full(const struct lite *c, size_t more)
{
    return c->lanes.n + more > LANES_MAX;
}

enum pawl_status lite_lane_make(struct lite *c, struct bytes queue, struct bytes type, int *out,
                                struct pawl_err *err)
{
    assert(c->lanes.read_tx == c->tx && !lite_lanes_full(c, 1));
    int64_t lane = (int64_t)c->lanes.n + 1;
    enum pawl_status st =
        lite_run(c, SQL_LANE_ADD, ARGS(INT(lane), TEXT(queue), TEXT(type)), NULL, err);
    if (st == PAWL_OK)
        st = lane_keep(c, queue, type, err);
    *out = (int)lane;
    return st;
}

enum pawl_status lite_lane(struct lite *c, int lane, const struct lite_lane **out,
                           struct pawl_err *err)
{
    if (lane > (int)c->lanes.n) {
        enum pawl_status st = lite_lanes_read(c, err);
        if (st != PAWL_OK)
            return st;
    }
    if (lane < 1 || lane > (int)c->lanes.n)
        return err_set(err, PAWL_BROKEN, "a call names lane %d, which does not exist", lane);
    *out = &c->lanes.v[lane - 1];
    return PAWL_OK;
}

void lite_lanes_undo(struct lite *c)
{
    struct lite_lanes *l = &c->lanes;
    l->read_tx = 0; /* a flag of ours, not of the table: reading again is always right */
    if (l->n == l->n_stored)
        return;
    while (l->n > l->n_stored)
        mem_free((char *)l->v[--l->n].queue.data);
    slots_fill(l);
}

void lite_lanes_end(struct lite *c)
{
    c->lanes.n_stored = 0;
    lite_lanes_undo(c);
    mem_free(c->lanes.v);
    mem_free(c->lanes.slots);
}

/* ---- Paused queues --------------------------------------------------------------------------- */

/* The names of paused queues in byte order, read once a transaction; nearly always none. */
static enum pawl_status paused_read(struct lite *c, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    size_t cap = 0;
    if (c->paused_tx == c->tx)
        return PAWL_OK;
    c->n_paused = 0;
    enum pawl_status st = lite_query(c, SQL_QUEUE_LIST, NO_ARGS, &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row) {
        if (!lite_int(q, 1))
            continue;
        if (c->n_paused == cap) {
            cap = cap ? cap * 2 : 16;
            struct bytes *v = arena_zalloc(&c->scratch, cap, sizeof *v);
            if (!v)
                return err_no_memory(err, "paused queues");
            if (c->n_paused)
                memcpy(v, c->paused, c->n_paused * sizeof *v);
            c->paused = v;
        }
        c->paused[c->n_paused++] = arena_copy(&c->scratch, lite_column(q, 0));
    }
    if (st == PAWL_OK && c->scratch.failed)
        st = err_no_memory(err, "paused queues");
    if (st == PAWL_OK)
        c->paused_tx = c->tx;
    return st;
}

static int compare_names(const void *a, const void *b)
{
    return bytes_cmp(*(const struct bytes *)a, *(const struct bytes *)b);
}

enum pawl_status lite_lane_paused(struct lite *c, int lane, bool *out, struct pawl_err *err)
{
    const struct lite_lane *found;
    enum pawl_status st = paused_read(c, err);
    *out = false;
    if (st != PAWL_OK || c->n_paused == 0)
        return st;
    st = lite_lane(c, lane, &found, err);
    if (st != PAWL_OK)
        return st;
    struct lite_lane *l = &c->lanes.v[lane - 1];
    if (l->paused_tx != c->tx) {
        l->paused = bsearch(&l->queue, c->paused, c->n_paused, sizeof *c->paused, compare_names);
        l->paused_tx = c->tx;
    }
    *out = l->paused;
    return PAWL_OK;
}

enum pawl_status lite_pause(struct lite *c, struct op *op, struct pawl_err *err)
{
    /* What this transaction believed about paused queues is over; lanes ask again. */
    c->paused_tx = 0;
    for (size_t i = 0; i < c->lanes.n; i++)
        c->lanes.v[i].paused_tx = 0;
    if (!op->pause.paused)
        return lite_run(c, SQL_QUEUE_RESUME, ARGS(TEXT(op->pause.queue)), NULL, err);
    return lite_run(c, SQL_QUEUE_PAUSE, ARGS(TEXT(op->pause.queue), INT(1)), NULL, err);
}
