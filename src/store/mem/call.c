/*
 * call.c - calls in memory: creating, moving and showing them ("Where a call is" in
 * store/README.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/mem.h"
#include "store/mem/mem.h"

#define CALLS_CAP_FIRST 1024

struct tree_key ready_key(const struct mem_call *c)
{
    const struct stand *s = &c->now;
    return KEY(s->lane->number, counts_retry_alone(s->counts), -s->priority, s->run_at_us, c->seq);
}

struct mem_call *call_by_id(const struct mem_db *db, struct bytes id)
{
    struct table_node *n = table_find(&db->ids, id);
    return n ? THING_OF(n, struct mem_call, by_id) : NULL;
}

struct mem_call *call_at(struct tree_node *by_place)
{
    return by_place ? THING_OF(by_place, struct mem_call, by_place) : NULL;
}

/* ---- Making ---------------------------------------------------------------------------------- */

static bool calls_reserve(struct mem_db *db)
{
    if ((size_t)db->last_seq < db->calls_cap)
        return true;
    size_t cap = db->calls_cap ? db->calls_cap * 2 : CALLS_CAP_FIRST;
    struct mem_call **v = mem_resize(db->calls, cap * sizeof *v);
    if (!v)
        return false;
    memset(v + db->calls_cap, 0, (cap - db->calls_cap) * sizeof *v);
    db->calls = v;
    db->calls_cap = cap;
    return true;
}

int64_t seq_next(struct mem_db *db)
{
    return calls_reserve(db) ? ++db->last_seq : 0;
}

static bool keep_tags(struct mem_call *c, const struct call_spec *from)
{
    if (from->n_tags == 0)
        return true;
    struct tag *tags = call_blob(c, from->n_tags * sizeof *tags);
    if (!tags)
        return false;
    for (size_t i = 0; i < from->n_tags; i++)
        if (!call_keep(c, from->tags[i].name, &tags[i].name) ||
            !call_keep(c, from->tags[i].value, &tags[i].value))
            return false;
    c->spec.tags = tags;
    return true;
}

/* Copy the spec into the call. Queue, type and needs are those of the lane; the times are in
 * c->now. */
static bool keep_spec(struct mem_call *c, const struct call_spec *from)
{
    c->spec = *from;
    c->spec.id = c->id;
    c->spec.type = c->spec.queue = BYTES_NONE; /* the lane has them, and the needs */
    c->spec.needs = NULL;
    c->spec.n_needs = 0;
    c->spec.delay_us = c->spec.run_at_us = c->spec.expires_in_us = c->spec.expires_at_us = 0;
    return call_keep(c, from->method, &c->spec.method) && call_keep(c, from->key, &c->spec.key) &&
           call_keep(c, from->input.bytes, &c->spec.input.bytes) &&
           call_keep(c, from->caller, &c->spec.caller) &&
           call_keep(c, from->client, &c->spec.client) &&
           call_keep(c, from->parent, &c->spec.parent) &&
           call_keep(c, from->traceparent, &c->spec.traceparent) &&
           call_keep(c, from->schedule, &c->spec.schedule) && keep_tags(c, from);
}

static struct mem_call *call_new(const struct call_spec *spec)
{
    struct mem_call *c = mem_zalloc(sizeof *c + spec->id.len);
    if (!c)
        return NULL;
    c->thing.kind = THING_CALL;
    memcpy(c->id_text, spec->id.data, spec->id.len);
    c->id = (struct bytes){ c->id_text, spec->id.len };
    memcpy(c->fingerprint, spec->fingerprint, FINGERPRINT_LEN);
    if (!keep_spec(c, spec)) {
        thing_free(&c->thing);
        return NULL;
    }
    return c;
}

/* Choose the place of a new call. False without memory. */
static bool place_new(struct mem_tx *tx, struct mem_call *c)
{
    struct stand *s = &c->now;
    s->place = PLACE_READY;
    if (!c->spec.key.data)
        return true;
    s->key = key_get(tx->db, c->spec.key);
    s->place = s->run_at_us > tx->now_us ? PLACE_DELAYED : PLACE_LINE;
    s->pos = s->place == PLACE_LINE ? c->seq : 0;
    return s->key != NULL;
}

enum pawl_status call_make(struct mem_tx *tx, const struct call_spec *spec, struct mem_call **out)
{
    struct mem_db *db = tx->db;
    struct lane *lane;
    enum pawl_status st = lane_get(db, spec, &lane);
    if (st != PAWL_OK)
        return st;
    struct mem_call *c = calls_reserve(db) ? call_new(spec) : NULL;
    if (!c)
        return PAWL_NO_MEMORY;
    CHECK(call_may(0, PAWL_PENDING) && spec->id.len > 0);
    c->seq = db->last_seq + 1;
    c->created_us = tx->now_us;
    c->now.state = PAWL_PENDING;
    c->now.lane = lane;
    c->now.priority = spec->priority;
    call_times(spec, tx->now_us, &c->now.run_at_us, &c->now.expires_us);
    call_run_until(&c->spec, c->now.run_at_us, &c->now.expires_us);
    c->now.own_run_at_us = c->now.run_at_us;
    if (!place_new(tx, c)) {
        thing_free(&c->thing);
        return PAWL_NO_MEMORY;
    }
    if (!thing_add(db, &c->thing))
        return PAWL_NO_MEMORY;
    db->last_seq++;
    *out = c;
    return key_settle(db, c->now.key) ? PAWL_OK : PAWL_NO_MEMORY;
}

/* ---- Moving ---------------------------------------------------------------------------------- */

void call_put(struct mem_db *db, struct mem_call *c, struct stand to)
{
    CHECK(c->now.state == to.state || call_may(c->now.state, to.state));
    CHECK((to.place <= PLACE_DELAYED) == (to.state == PAWL_PENDING));
    CHECK(to.key || (to.place != PLACE_LINE && to.place != PLACE_DELAYED));
    CHECK((to.place == PLACE_HELD) == (to.state == PAWL_PROCESSING));
    CHECK(to.place != PLACE_HELD || to.lease);
    CHECK(to.place != PLACE_ENDED || (to.outcome && to.outcome->state == to.state));
    CHECK(to.counts.attempts >= 0 && to.counts.lost >= 0 && to.counts.redrives >= 0);
    thing_unlink(db, &c->thing);
    to.blobs = c->now.blobs;
    if (to.place != PLACE_HELD)
        to.lease = NULL;
    if (to.place != PLACE_ENDED)
        to.outcome = NULL;
    c->now = to;
    thing_link(db, &c->thing);
}

enum pawl_status call_end(struct mem_tx *tx, struct mem_call *c, enum pawl_state state)
{
    CHECK(c->now.state == PAWL_PENDING && pawl_state_ended(state));
    if (!undo_save(tx->db, &c->thing))
        return PAWL_NO_MEMORY;
    struct outcome *o = call_blob(c, sizeof *o);
    if (!o)
        return PAWL_NO_MEMORY;
    int64_t keep_us = c->spec.keep_us ? c->spec.keep_us : tx->s->retention_us;
    *o = (struct outcome){ .state = state,
                           .finished_us = tx->now_us,
                           .keep_until_us = tx->now_us + keep_us };
    struct stand to = c->now;
    to.place = PLACE_ENDED;
    to.state = state;
    to.outcome = o;
    to.cancel_requested = false;
    call_put(tx->db, c, to);
    return PAWL_OK;
}

enum pawl_status told_ended(struct mem_tx *tx, const struct mem_call *c)
{
    struct op *op = tx->op;
    /* Space for 8, 16, 32, ...: the arena frees nothing, so the list grows by doubling. */
    if (op->n_ended == 0 || (op->n_ended >= 8 && (op->n_ended & (op->n_ended - 1)) == 0)) {
        size_t cap = op->n_ended ? op->n_ended * 2 : 8;
        struct bytes *v = arena_zalloc(op->a, cap, sizeof *v);
        if (!v)
            return PAWL_NO_MEMORY;
        if (op->n_ended)
            memcpy(v, op->ended, op->n_ended * sizeof *v);
        op->ended = v;
    }
    struct bytes id = arena_copy(op->a, c->id);
    if (!id.data)
        return PAWL_NO_MEMORY;
    op->ended[op->n_ended++] = id;
    return PAWL_OK;
}

/* ---- Showing --------------------------------------------------------------------------------- */

bool attempt_shown(const struct attempt_row *t)
{
    return t->how == END_ERROR || t->how == END_TIMEOUT || t->how == END_REFUSE ||
           t->how == END_LOST;
}

static struct bytes pending_error(const struct mem_call *c)
{
    if (c->now.counts.attempts + c->now.counts.lost == 0)
        return BYTES_NONE;
    const struct attempt_row *t = c->now.newest_attempt;
    while (t && !attempt_shown(t))
        t = t->older;
    return t ? t->error : BYTES_NONE;
}

static void model_ended(const struct mem_call *c, struct call *out)
{
    const struct outcome *o = c->now.outcome;
    out->result = o->result;
    out->error = o->error;
    out->node = o->node;
    out->claimed_us = o->claimed_us;
    out->started_us = o->started_us;
    out->finished_us = o->finished_us;
    out->keep_until_us = o->keep_until_us;
    out->run_at_us = c->now.own_run_at_us;
}

/* Readers see a held call that has not begun as pending. */
static void model_held(const struct mem_call *c, struct call *out)
{
    const struct mem_lease *l = c->now.lease;
    out->node = l->worker.data ? l->worker : l->node;
    out->claimed_us = l->claimed_us;
    if (!call_begun(c)) {
        out->state = PAWL_PENDING;
        out->error = pending_error(c);
    }
}

/* Its number and position in its key. */
static void model_key(const struct mem_call *c, struct call *out)
{
    const struct stand *s = &c->now;
    out->key_no = s->key_no;
    out->in_line = s->place == PLACE_READY || s->place == PLACE_LINE || s->place == PLACE_HELD;
    if (out->in_line)
        out->position = tree_rank(&s->key->line, KEY(s->pos)) + !line_runs(s->key);
}

/* Why it waits; WAIT_NONE when it does not. */
static enum call_wait model_wait(const struct mem_call *c, const struct call *out, int64_t now_us)
{
    const struct stand *s = &c->now;
    bool held = s->place == PLACE_HELD;
    CHECK(s->lane); /* until it is gone */
    struct call_where where = { .queue_paused = s->lane->queue->paused && !held,
                                .behind = s->place == PLACE_LINE || call_behind(c) };
    return call_waiting_for(out, now_us, where);
}

struct call call_model(const struct mem_call *c, int64_t now_us)
{
    const struct stand *s = &c->now;
    struct call out = { .spec = c->spec,
                        .seq = c->seq,
                        .state = s->state,
                        .cancel_requested = s->cancel_requested,
                        .counts = s->counts,
                        .created_us = c->created_us,
                        .run_at_us = s->run_at_us,
                        .expires_us = s->expires_us };
    if (s->lane) {
        out.spec.type = s->lane->type;
        out.spec.queue = s->lane->queue->by_name.name;
        out.spec.needs = s->lane->needs;
        out.spec.n_needs = s->lane->n_needs;
    }
    out.spec.priority = s->priority;
    switch (s->place) {
    case PLACE_READY:
    case PLACE_LINE:
    case PLACE_DELAYED:
        out.error = pending_error(c);
        break;
    case PLACE_HELD:
        model_held(c, &out);
        break;
    case PLACE_ENDED:
        model_ended(c, &out);
        break;
    case PLACE_GONE:
        return (struct call){ .spec.id = c->id,
                              .seq = c->seq,
                              .state = s->state,
                              .created_us = c->created_us,
                              .finished_us = s->finished_us };
    }
    if (s->key)
        model_key(c, &out);
    out.waiting_for = model_wait(c, &out, now_us);
    return out;
}

bool call_show(struct arena *a, const struct mem_call *c, int64_t now_us, unsigned with,
               struct call *out)
{
    *out = call_model(c, now_us);
    if (!(with & WITH_INPUT))
        out->spec.input = (struct payload){ 0 };
    if (!(with & WITH_RESULT))
        out->result = (struct payload){ 0 };
    return call_copy(a, out, out);
}
