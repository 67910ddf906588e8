/*
 * lanes.c - number <-> (queue, type, needs, gate) in memory, and which queues are paused.
 *
 * Numbers rise and are never used again: a transaction that makes a lane, brings one back or
 * removes one holds an advisory lock until the commit, and the lane with the highest number stays.
 * So new lanes have numbers above the last one known. A lane is removed only when it has been
 * retired for longer than any handle may use what it knew before ("Lanes" in README.md). An undone
 * transaction forgets the lanes it made.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>

#include "base/hook.h"
#include "base/limits.h"
#include "base/mem.h"
#include "model/needs.h"
#include "store/ledger/cache.h"

#define CAP_FIRST 32

static struct led_lane *lane_at(const struct led_lanes *l, int lane)
{
    size_t low = 0, high = l->n;
    if (lane < 1 || l->n == 0)
        return NULL;
    size_t guess = MIN((size_t)lane, l->n) - 1; /* right as long as there are no gaps */
    if (l->v[guess].number == lane)
        return &l->v[guess];
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (l->v[mid].number < lane)
            low = mid + 1;
        else
            high = mid;
    }
    return low < l->n && l->v[low].number == lane ? &l->v[low] : NULL;
}

struct led_lane *led_lane_at(const struct ledger *c, int lane)
{
    return lane_at(&c->lanes, lane);
}

static int last_number(const struct led_lanes *l)
{
    CHECK(!l->n || l->v);
    return l->n ? l->v[l->n - 1].number : 0;
}

/* ---- By name --------------------------------------------------------------------------------- */

static uint64_t hash_add(uint64_t h, struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        h = (h ^ (unsigned char)b.data[i]) * UINT64_C(0x100000001b3);
    return (h ^ 0x100) * UINT64_C(0x100000001b3);
}

static uint64_t names_hash(const struct led_lane_names *names)
{
    uint64_t h = hash_add(hash_add(UINT64_C(0xcbf29ce484222325), names->queue), names->type);
    for (size_t i = 0; i < names->n_needs; i++)
        h = hash_add(h, names->needs[i]);
    h = hash_add(h, names->gate);
    return h ^ h >> 29;
}

static bool same_names(const struct led_lane_names *a, const struct led_lane_names *b)
{
    return bytes_eq(a->queue, b->queue) && bytes_eq(a->type, b->type) &&
           needs_same(a->needs, a->n_needs, b->needs, b->n_needs) && bytes_eq(a->gate, b->gate);
}

/* The slot of the lane that has these names, or the free slot where it would be. */
static int *slot_of(const struct led_lanes *l, const struct led_lane_names *names)
{
    size_t i = names_hash(names) & (l->n_slots - 1);
    for (;; i = (i + 1) & (l->n_slots - 1)) {
        int at = l->slots[i];
        if (!at || same_names(&l->v[at - 1].names, names))
            return &l->slots[i];
    }
}

static struct led_lane *lane_named(const struct led_lanes *l, const struct led_lane_names *names)
{
    struct led_lane *last = l->last < l->n ? &l->v[l->last] : NULL;
    if (last && same_names(&last->names, names))
        return last;
    int at = l->n_slots ? *slot_of(l, names) : 0;
    return at ? &l->v[at - 1] : NULL;
}

static void slot_fill(struct led_lanes *l, size_t at)
{
    int *slot = slot_of(l, &l->v[at].names);
    if (!*slot)
        *slot = (int)at + 1;
}

static void slots_fill(struct led_lanes *l)
{
    if (l->n_slots)
        memset(l->slots, 0, l->n_slots * sizeof *l->slots);
    for (size_t i = 0; i < l->n; i++)
        slot_fill(l, i);
}

/* Make room for n lanes; the slots stay at most half full. */
static bool lanes_reserve(struct led_lanes *l, size_t n)
{
    size_t cap = l->cap ? l->cap : CAP_FIRST;
    while (cap < n)
        cap *= 2;
    if (cap == l->cap) {
        CHECK(l->v);
        return true;
    }
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

/* ---- Lanes in memory ------------------------------------------------------------------------- */

static char *put(char *at, struct bytes from, struct bytes *to)
{
    memcpy(at, from.data ? from.data : "", from.len);
    *to = (struct bytes){ at, from.len };
    return at + from.len;
}

/* A lane with its own copy of the names. False without memory. */
static bool lane_copy(struct led_lanes *l, const struct led_lane *from, struct led_lane *out)
{
    const struct led_lane_names *names = &from->names;
    size_t len = names->queue.len + names->type.len + names->gate.len;
    for (size_t i = 0; i < names->n_needs; i++)
        len += names->needs[i].len;
    struct bytes *needs = mem_alloc(names->n_needs * sizeof *needs + len + 1);
    if (!needs)
        return false;
    *out = *from;
    out->block = needs;
    out->flow = needs_steps(names->needs, names->n_needs);
    l->any_flow |= out->flow;
    out->names.needs = needs;
    char *at = put((char *)(needs + names->n_needs), names->queue, &out->names.queue);
    at = put(at, names->type, &out->names.type);
    at = put(at, names->gate, &out->names.gate);
    for (size_t i = 0; i < names->n_needs; i++)
        at = put(at, names->needs[i], &needs[i]);
    out->version = needs_version(needs, names->n_needs);
    return true;
}

/* Add a lane behind the others in memory. */
static enum pawl_status lane_keep(struct ledger *c, const struct led_lane *it, struct pawl_err *err)
{
    struct led_lanes *l = &c->lanes;
    CHECK(it->number > last_number(l));
    if (!lanes_reserve(l, l->n + 1) || !lane_copy(l, it, &l->v[l->n]))
        return err_no_memory(err, "a lane");
    slot_fill(l, l->n++);
    return PAWL_OK;
}

/* A row of lane_list; its names are borrowed from the answer. */
static enum pawl_status row_read(struct ledger *c, const struct led_rows *r, int i,
                                 struct led_lane *out, struct pawl_err *err)
{
    int64_t number = led_get_int(r, i, 0), before = i ? led_get_int(r, i - 1, 0) : 0;
    if (number <= before || number > LANE_NUMBER_MAX)
        return err_set(err, PAWL_BROKEN, "database: lane %lld follows lane %lld", (long long)number,
                       (long long)before);
    *out = (struct led_lane){
        .number = (int)number,
        .names = { .queue = led_get(r, i, 1), .type = led_get(r, i, 2), .gate = led_get(r, i, 4) },
        .retired_us = led_get_int(r, i, 5)
    };
    if (!needs_of_text(&c->scratch, led_get(r, i, 3), &out->names.needs, &out->names.n_needs))
        return err_no_memory(err, "a lane");
    return PAWL_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* The lanes of an answer as an array; what this handle knows of a lane stays. */
static enum pawl_status lanes_of(struct ledger *c, const struct led_rows *r, struct led_lane *v,
                                 struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    int n = 0;
    for (; st == PAWL_OK && n < r->n; n++) {
        struct led_lane row;
        st = row_read(c, r, n, &row, err);
        if (st != PAWL_OK)
            break;
        const struct led_lane *known = lane_at(&c->lanes, row.number);
        v[n] = known ? *known : row;
        v[n].back = false;
        if (known && known->retired_us != row.retired_us) {
            v[n].retired_us = row.retired_us;
            v[n].since_us = 0;
        } else if (!known && !lane_copy(&c->lanes, &row, &v[n])) {
            st = err_no_memory(err, "lanes");
            break;
        }
    }
    for (int i = 0; i < n && st != PAWL_OK; i++)
        if (!lane_at(&c->lanes, v[i].number))
            mem_free(v[i].block);
    return st;
}

/* Room to bury every lane that is known. */
static bool dead_reserve(struct led_lanes *l)
{
    if (l->cap_dead >= l->n_dead + l->n)
        return true;
    void *v = mem_resize(l->dead, (l->n_dead + l->n) * sizeof *l->dead);
    if (!v)
        return false;
    l->dead = v;
    l->cap_dead = l->n_dead + l->n;
    return true;
}

static enum pawl_status read_all(struct ledger *c, struct pawl_err *err)
{
    struct led_lanes *l = &c->lanes;
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    int64_t mono_us = world_mono(c->world);
    CHECK(l->n == l->n_stored && !l->n_back); /* what this transaction made is in no row yet */
    led_int(&p, 0);
    enum pawl_status st = led_query(c, SQL_LANE_LIST, &p, &r, err);
    if (st != PAWL_OK)
        return st;
    if (r->n > LANES_MAX)
        return err_set(err, PAWL_BROKEN, "database: there are more than %d lanes", LANES_MAX);
    struct led_lane *v = arena_alloc(&c->scratch, ((size_t)r->n + 1) * sizeof *v);
    if (!v || !dead_reserve(l) || !lanes_reserve(l, (size_t)r->n))
        return err_no_memory(err, "lanes");
    st = lanes_of(c, r, v, err);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0, at = 0; i < l->n; i++) {
        while (at < (size_t)r->n && v[at].number < l->v[i].number)
            at++;
        if (at == (size_t)r->n || v[at].number != l->v[i].number)
            l->dead[l->n_dead++] = l->v[i].block;
    }
    memcpy(l->v, v, (size_t)r->n * sizeof *v);
    l->n = l->n_stored = l->n_written = (size_t)r->n;
    slots_fill(l);
    l->whole_us = mono_us;
    l->whole_now_us = c->now_us;
    l->stale = false;
    l->read = true;
    return PAWL_OK;
}

/* Read those that are new. Lanes that others removed are still known here: if there would be too
 * many, read all. */
static enum pawl_status read_new(struct ledger *c, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    led_int(&p, last_number(&c->lanes));
    enum pawl_status st = led_query(c, SQL_LANE_LIST, &p, &r, err);
    if (st == PAWL_OK && c->lanes.n + (size_t)r->n > LANES_MAX)
        return read_all(c, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct led_lane it;
        st = row_read(c, r, i, &it, err);
        if (st == PAWL_OK)
            st = lane_keep(c, &it, err);
    }
    c->lanes.n_stored = c->lanes.n_written = c->lanes.n;
    c->lanes.read = st == PAWL_OK;
    return st;
}

/* By two clocks: a machine that sleeps stops the one, and a person sets the other. */
static bool is_old(const struct ledger *c, int64_t age_us)
{
    const struct led_lanes *l = &c->lanes;
    int64_t passed_us = c->now_us - l->whole_now_us;
    return !l->whole_us || world_mono(c->world) - l->whole_us > age_us || passed_us > age_us ||
           passed_us < -age_us;
}

enum pawl_status led_lanes_read(struct ledger *c, struct pawl_err *err)
{
    if (c->lanes.read)
        return PAWL_OK;
    if (c->lanes.n != c->lanes.n_stored || c->lanes.n_back)
        return PAWL_OK; /* this transaction makes lanes, so no other does */
    return c->lanes.stale || is_old(c, LANES_AGE_US) ? read_all(c, err) : read_new(c, err);
}

/* What is known is young enough for a new call. If it was for the transaction's first one, it is
 * for the others: led_lanes_young() looks at the first. */
static enum pawl_status lanes_fresh(struct ledger *c, struct pawl_err *err)
{
    struct led_lanes *l = &c->lanes;
    if (l->whole || (l->used_us && !l->stale) || l->n != l->n_stored || l->n_back)
        return PAWL_OK;
    return l->stale || is_old(c, LANES_AGE_US) ? read_all(c, err) : PAWL_OK;
}

enum pawl_status led_lanes_young(struct ledger *c, struct pawl_err *err)
{
    /* With one writer no lane is removed while this transaction is open. Else neither the lock nor
     * a later read helps a call that got its lane before them. */
    if (c->db->one_writer || !c->lanes.used_us ||
        world_mono(c->world) - c->lanes.used_us <= LANES_STALL_US)
        return PAWL_OK;
    c->lanes.stale = true;
    return led_again(c, "the transaction was stopped for too long", err);
}

/* ---- For new calls --------------------------------------------------------------------------- */

bool led_lane_known(const struct ledger *c, const struct led_lane_names *names)
{
    return lane_named(&c->lanes, names) != NULL;
}

static int in_use(struct led_lanes *l, const struct led_lane_names *names)
{
    const struct led_lane *it = lane_named(l, names);
    if (!it || it->retired_us)
        return 0;
    l->used_us = l->used_us ? l->used_us : l->whole_us;
    l->last = (size_t)(it - l->v);
    return it->number;
}

enum pawl_status led_lane_find(struct ledger *c, const struct led_lane_names *names, int *out,
                               struct pawl_err *err)
{
    enum pawl_status st = lanes_fresh(c, err);
    *out = in_use(&c->lanes, names);
    if (st != PAWL_OK || *out || c->lanes.read)
        return st;
    st = led_lanes_read(c, err);
    *out = in_use(&c->lanes, names);
    return st;
}

bool led_lanes_full(const struct ledger *c, size_t more)
{
    return c->lanes.n + more > LANES_MAX ||
           last_number(&c->lanes) + (int64_t)more > LANE_NUMBER_MAX;
}

enum pawl_status led_lanes_lock(struct ledger *c, struct pawl_err *err)
{
    struct led_params p = { 0 };
    if (c->lanes.locked)
        return PAWL_OK;
    led_text(&p, bytes_of(c->schema));
    enum pawl_status st = c->db->one_writer ? PAWL_OK : led_run(c, SQL_LANE_LOCK, &p, NULL, err);
    if (st != PAWL_OK)
        return st;
    c->lanes.locked = true;
    if (!c->db->one_writer)
        c->lanes.read = false; /* read the lanes that were made while we waited for the lock */
    st = lanes_fresh(c, err);
    if (st == PAWL_OK)
        st = led_lanes_read(c, err);
    PAUSE_POINT("ledger.lanes_locked");
    return st;
}

enum pawl_status led_lanes_sure(struct ledger *c, struct pawl_err *err)
{
    struct led_lanes *l = &c->lanes;
    CHECK(l->locked);
    if (l->whole || l->n != l->n_stored || l->n_back)
        return PAWL_OK;
    enum pawl_status st = read_all(c, err);
    l->whole = st == PAWL_OK;
    return st;
}

/* Under the lock: bring the lane back if it is retired, or make it. */
static enum pawl_status lane_make(struct ledger *c, const struct led_lane_names *names, int *out,
                                  struct pawl_err *err)
{
    struct led_lanes *l = &c->lanes;
    struct led_lane *it = lane_named(l, names);
    *out = it && !it->retired_us ? it->number : 0;
    if (*out)
        return PAWL_OK;
    if (it) {
        it->retired_us = it->since_us = 0;
        it->back = true;
        l->n_back++;
        l->changed = true;
        *out = it->number;
        return PAWL_OK;
    }
    if (led_lanes_full(c, 1))
        return PAWL_OK;
    CHECK(l->locked || c->db->one_writer); /* else two lanes could get one number */
    *out = last_number(l) + 1;
    return lane_keep(c, &(struct led_lane){ .number = *out, .names = *names }, err);
}

enum pawl_status led_lane_for(struct ledger *c, const struct led_lane_names *names, int *out,
                              struct pawl_err *err)
{
    enum pawl_status st = led_lane_find(c, names, out, err);
    if (st != PAWL_OK || *out)
        return st;
    st = led_lanes_lock(c, err);
    /* A retired lane may have been removed, and so may others that fill the table. */
    if (st == PAWL_OK && (led_lane_known(c, names) || led_lanes_full(c, 1)))
        st = led_lanes_sure(c, err);
    return st == PAWL_OK ? lane_make(c, names, out, err) : st;
}

/* ---- By number ------------------------------------------------------------------------------- */

enum pawl_status led_lane_try(struct ledger *c, int lane, const struct led_lane **out,
                              struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    *out = lane_at(&c->lanes, lane);
    if (!*out && (lane > last_number(&c->lanes) || c->lanes.stale)) {
        c->lanes.read = false;
        st = led_lanes_read(c, err);
        *out = lane_at(&c->lanes, lane);
    }
    return st;
}

enum pawl_status led_lane(struct ledger *c, int lane, const struct led_lane **out,
                          struct pawl_err *err)
{
    enum pawl_status st = led_lane_try(c, lane, out, err);
    if (st == PAWL_OK && !*out)
        st = err_set(err, PAWL_BROKEN, "a call names lane %d, which does not exist", lane);
    return st;
}

enum pawl_status led_lane_flow(struct ledger *c, int lane, bool *out, struct pawl_err *err)
{
    const struct led_lane *it = NULL;
    enum pawl_status st = led_lane_try(c, lane, &it, err);
    *out = it && it->flow;
    return st;
}

/* ---- What a worker has ----------------------------------------------------------------------- */

enum pawl_status led_lanes_shape(struct ledger *c, const struct bytes *has, size_t n_has,
                                 struct pawl_err *err)
{
    struct led_lanes *l = &c->lanes;
    if (l->shape && needs_same(l->has, l->n_has, has, n_has))
        return PAWL_OK;
    size_t len = 0;
    for (size_t i = 0; i < n_has; i++)
        len += has[i].len;
    struct bytes *v = mem_alloc(n_has * sizeof *v + len + 1);
    if (!v)
        return err_no_memory(err, "a claim");
    char *at = (char *)(v + n_has);
    for (size_t i = 0; i < n_has; i++)
        at = put(at, has[i], &v[i]);
    mem_free(l->has);
    l->has = v;
    l->n_has = n_has;
    if (++l->shape == 0) { /* no lane remembers an answer for 0 */
        for (size_t i = 0; i < l->n; i++)
            l->v[i].shape = 0;
        l->shape = 1;
    }
    return PAWL_OK;
}

/* Has the worker of this shape what the lane needs? A version is needed for the lane's type. */
static bool serves(const struct led_lanes *l, const struct led_lane *it)
{
    const struct led_lane_names *names = &it->names;
    if (!it->version.data)
        return needs_served(names->needs, names->n_needs, l->has, l->n_has);
    for (size_t i = 0; i < names->n_needs; i++)
        if (!needs_served(&names->needs[i], 1, l->has, l->n_has) &&
            !(needs_version(&names->needs[i], 1).data &&
              needs_version_served(it->version, names->type, l->has, l->n_has)))
            return false;
    return true;
}

bool led_lane_served(struct ledger *c, int lane)
{
    struct led_lanes *l = &c->lanes;
    struct led_lane *it = lane_at(l, lane);
    CHECK(it && l->shape);
    if (it->names.n_needs && it->shape != l->shape) {
        it->served = serves(l, it);
        it->shape = l->shape;
    }
    return !it->names.n_needs || it->served;
}

/* ---- Transactions ---------------------------------------------------------------------------- */

void led_lanes_begin(struct ledger *c)
{
    while (c->lanes.n_dead)
        mem_free(c->lanes.dead[--c->lanes.n_dead]);
}

void led_lanes_stored(struct ledger *c)
{
    struct led_lanes *l = &c->lanes;
    CHECK(!l->n_back && l->n == l->n_written);
    l->n_stored = l->n;
    l->used_us = 0;
    l->read = l->locked = l->whole = l->changed = false;
}

void led_lanes_undo(struct ledger *c)
{
    struct led_lanes *l = &c->lanes;
    l->read = l->locked = l->whole = false;
    l->stale = l->stale || l->changed;
    l->changed = false;
    l->n_back = 0;
    l->used_us = 0;
    l->n_written = l->n_stored;
    if (l->n == l->n_stored)
        return;
    while (l->n > l->n_stored)
        mem_free(l->v[--l->n].block);
    slots_fill(l);
}

void led_lanes_end(struct ledger *c)
{
    c->lanes.n_stored = 0;
    led_lanes_undo(c);
    led_lanes_begin(c);
    mem_free(c->lanes.v);
    mem_free(c->lanes.slots);
    mem_free(c->lanes.dead);
    mem_free(c->lanes.has);
}

/* ---- Paused queues --------------------------------------------------------------------------- */

enum sql_name led_paused_name(struct ledger *c, struct led_params *p)
{
    if (!c->tx->claims || c->reading)
        return SQL_QUEUE_LOOK;
    if (!c->db->one_writer)
        led_text(p, bytes_of(c->schema));
    return SQL_QUEUE_CLAIM;
}

enum pawl_status led_paused_take(struct ledger *c, const struct led_rows *r, struct pawl_err *err)
{
    c->tx->n_paused = 0;
    c->tx->paused = arena_zalloc(&c->scratch, (size_t)r->n + 1, sizeof *c->tx->paused);
    if (!c->tx->paused)
        return err_no_memory(err, "paused queues");
    c->tx->limits_rev = -1;
    for (int i = 0; i < r->n; i++) {
        bool named = led_get(r, i, 0).len, paused = led_get_int(r, i, 1);
        if (named != paused || (!named && c->tx->limits_rev >= 0))
            return err_set(err, PAWL_BROKEN, "database: a paused queue has no name");
        if (named)
            c->tx->paused[c->tx->n_paused++] = led_get(r, i, 0);
        else
            c->tx->limits_rev = led_get_int(r, i, 2);
    }
    if (c->tx->limits_rev < 0)
        return err_set(err, PAWL_BROKEN, "database: limits have no revision");
    c->tx->paused_read = true;
    c->tx->gates_read = false;
    return PAWL_OK;
}

enum pawl_status led_paused_read(struct ledger *c, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    if (c->tx->paused_read)
        return PAWL_OK;
    struct led_params p = { 0 };
    enum sql_name name = led_paused_name(c, &p);
    enum pawl_status st = led_query(c, name, &p, &r, err);
    return st == PAWL_OK ? led_paused_take(c, r, err) : st;
}

enum pawl_status led_lane_paused(struct ledger *c, int lane, bool *out, struct pawl_err *err)
{
    const struct led_lane *l;
    enum pawl_status st = led_paused_read(c, err);
    *out = false;
    if (st != PAWL_OK || c->tx->n_paused == 0)
        return st;
    st = led_lane(c, lane, &l, err);
    for (size_t i = 0; st == PAWL_OK && i < c->tx->n_paused && !*out; i++)
        *out = bytes_eq(c->tx->paused[i], l->names.queue);
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
