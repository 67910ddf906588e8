/*
 * object.c - states of objects, and operations on keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "store/ledger/flow.h"

/* ---- States ---------------------------------------------------------------------------------- */

static struct led_object **object_slot(struct ledger *c, struct bytes type, struct bytes key)
{
    struct led_object **at = &c->tx->objects[led_hash(key.data, key.len) % LED_BUCKETS];
    while (*at && !(bytes_eq((*at)->key, key) && bytes_eq((*at)->type, type)))
        at = &(*at)->same;
    return at;
}

static bool object_new(struct ledger *c, struct bytes type, struct bytes key)
{
    struct led_object *o = arena_zalloc(&c->scratch, 1, sizeof *o);
    if (!o)
        return false;
    o->type = arena_copy(&c->scratch, type);
    o->key = arena_copy(&c->scratch, key);
    if (!o->type.data || !o->key.data)
        return false;
    o->newer = c->tx->first_object;
    c->tx->first_object = o;
    *object_slot(c, type, key) = o;
    return true;
}

static enum pawl_status object_row(struct ledger *c, const struct led_rows *r, int row,
                                   struct pawl_err *err)
{
    struct led_object *o = *object_slot(c, led_get(r, row, 1), led_get(r, row, 0));
    if (!o)
        return err_set(err, PAWL_BROKEN, "database: object \"%.*s\" \"%.*s\" was not asked for",
                       BYTES_ARG(led_get(r, row, 1)), BYTES_ARG(led_get(r, row, 0)));
    o->state.payload.form = (enum pawl_form)led_get_int(r, row, 2);
    o->state.payload.bytes = led_get(r, row, 3);
    o->state.version = led_get_int(r, row, 4);
    o->updated_us = led_get_int(r, row, 5);
    return led_object_check(o, LED_LOADED, err);
}

enum pawl_status led_objects_load(struct ledger *c, const struct bytes *types,
                                  const struct bytes *keys, size_t n, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    struct led_column k, t;
    led_column_init(&k, &c->scratch, LED_TEXTS);
    led_column_init(&t, &c->scratch, LED_TEXTS);
    for (size_t i = 0; i < n; i++) {
        if (*object_slot(c, types[i], keys[i]))
            continue;
        if (!object_new(c, types[i], keys[i]))
            return err_no_memory(err, "objects");
        led_add_bytes(&k, keys[i]);
        led_add_bytes(&t, types[i]);
    }
    if (k.n == 0)
        return PAWL_OK;
    led_column(&p, &k);
    led_column(&p, &t);
    enum pawl_status st = led_query(c, SQL_OBJECT_READ, &p, &r, err);
    if (st == PAWL_OK)
        st = led_rows_check(r, SQL_OBJECT_READ, k.n, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++)
        st = object_row(c, r, i, err);
    return st;
}

enum pawl_status led_object_get(struct ledger *c, struct bytes type, struct bytes key,
                                struct led_object **out, struct pawl_err *err)
{
    enum pawl_status st = led_objects_load(c, &type, &key, 1, err);
    *out = st == PAWL_OK ? *object_slot(c, type, key) : NULL;
    assert(st != PAWL_OK || *out);
    return st;
}

enum pawl_status led_object_over(struct ledger *c, struct bytes type, struct bytes key,
                                 struct led_object **out, struct pawl_err *err)
{
    CHECK(led_key_find(c, key)->got);
    if (!*object_slot(c, type, key) && !object_new(c, type, key))
        return err_no_memory(err, "objects");
    *out = *object_slot(c, type, key);
    return PAWL_OK;
}

enum pawl_status led_object_set(struct ledger *c, struct led_object *o, enum state_do how,
                                struct payload state, struct pawl_err *err)
{
    enum pawl_status st = how == STATE_SET ? led_versions(c, 1, err) : PAWL_OK;
    if (st != PAWL_OK || (how == STATE_DELETE && !o->state.version))
        return st;
    o->state = (struct object_state){ 0 };
    if (how == STATE_SET) {
        o->state.version = c->tx->versions.v[c->tx->versions.at++];
        o->state.payload = state; /* borrowed from the operation, for the transaction */
    }
    o->updated_us = c->now_us;
    o->dirty = true;
    return PAWL_OK;
}

/* ---- Pending calls of an object -------------------------------------------------------------- */

/* All pending calls of (type, key) that no lease holds. */
static enum pawl_status pending_of(struct ledger *c, const struct led_key *k, struct bytes type,
                                   struct led_call ***out, size_t *out_n, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    *out_n = 0;
    enum pawl_status st = led_flush(c, err);
    led_text(&p, k->name);
    led_int(&p, COUNT_MAX);
    if (st == PAWL_OK)
        st = led_query(c, SQL_LINE_OF_KEY, &p, &r, err);
    if (st != PAWL_OK)
        return st;
    size_t n = r->n;
    int64_t *seqs = arena_alloc(&c->scratch, (n + 1) * sizeof *seqs);
    *out = arena_alloc(&c->scratch, (n + 1) * sizeof(struct led_call *));
    if (!seqs || !*out)
        return err_no_memory(err, "a line");
    for (size_t i = 0; i < n; i++)
        seqs[i] = led_get_int(r, (int)i, 0);
    if (k->turn == KEY_OFFERED)
        seqs[n++] = k->head;
    st = led_calls_load(c, seqs, n, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct led_call *it = led_call_find(c, seqs[i]);
        const struct led_lane *lane;
        if (!it || it->now.state != PAWL_PENDING)
            return led_again(c, "a line", err);
        st = led_lane(c, it->now.lane, &lane, err);
        if (st == PAWL_OK && bytes_eq(lane->names.type, type))
            (*out)[(*out_n)++] = it;
    }
    return st;
}

static enum pawl_status cancel_all(struct ledger *c, struct op *op, struct led_call **v, size_t n,
                                   struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        bool flow;
        st = led_flow(c, v[i], &flow, err);
        if (st == PAWL_OK && flow)
            st = led_flow_cancel(c, v[i], err);
        else if (st == PAWL_OK)
            st = led_end_pending(c, v[i], PAWL_CANCELLED, err);
        if (st == PAWL_OK && !flow)
            st = led_told_ended(op, v[i]->spec.id, err);
        op->object.cancelled++;
    }
    return st;
}

/* ---- OP_OBJECT ------------------------------------------------------------------------------- */

#define REFUSE(op, st, ...) ((op)->status = err_set(&(op)->err, (st), __VA_ARGS__))

/* Does a call of the key run? A flow that waits does, whichever call of a lease comes and goes. */
static enum pawl_status key_runs(struct ledger *c, const struct led_key *k, bool *out,
                                 struct pawl_err *err)
{
    struct led_call *it;
    *out = k->held;
    if (k->held || k->turn != KEY_OFFERED || !c->flows)
        return PAWL_OK;
    enum pawl_status st = led_call_get(c, k->head, &it, err);
    return st == PAWL_OK && it ? led_flow(c, it, out, err) : st;
}

/* May the operation be done? If not, op->status says why; otherwise *v has the calls to cancel. */
static enum pawl_status object_check(struct ledger *c, struct op *op, const struct led_key *k,
                                     const struct led_object *now, struct led_call ***v, size_t *n,
                                     struct pawl_err *err)
{
    struct object_op *o = &op->object;
    bool runs;
    enum pawl_status st = key_runs(c, k, &runs, err);
    *n = 0;
    if (st != PAWL_OK)
        return st;
    if (k->held || (runs && !(o->how == STATE_DELETE && o->cancel))) {
        REFUSE(op, PAWL_BUSY, "key \"%.*s\": a call is running", BYTES_ARG(o->key));
        return PAWL_OK;
    }
    if (o->how == STATE_DELETE)
        st = pending_of(c, k, o->type, v, n, err);
    if (st != PAWL_OK)
        return st;
    if (!object_fits(o, now->state.version)) {
        o->version = now->state.version;
        if (now->state.version)
            REFUSE(op, PAWL_STALE, "object \"%.*s\" \"%.*s\" has version %lld", BYTES_ARG(o->type),
                   BYTES_ARG(o->key), (long long)now->state.version);
        else
            REFUSE(op, PAWL_STALE, "object \"%.*s\" \"%.*s\" does not exist", BYTES_ARG(o->type),
                   BYTES_ARG(o->key));
    } else if (*n && !o->cancel) {
        REFUSE(op, PAWL_STATE, "object \"%.*s\" \"%.*s\": %zu calls are pending",
               BYTES_ARG(o->type), BYTES_ARG(o->key), *n);
    } else if (o->how == STATE_DELETE && !now->state.version && !*n) {
        REFUSE(op, PAWL_NOT_FOUND, "no object \"%.*s\" \"%.*s\"", BYTES_ARG(o->type),
               BYTES_ARG(o->key));
    }
    return PAWL_OK;
}

enum pawl_status led_object_op(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct object_op *o = &op->object;
    struct led_object *now;
    struct led_key *k;
    struct led_call **v = NULL;
    size_t n;
    o->version = o->updated_us = o->cancelled = 0;
    enum pawl_status st = led_key_get(c, o->key, LOCK_ROW, &k, err);
    if (st == PAWL_OK)
        st = led_object_get(c, o->type, o->key, &now, err);
    if (st == PAWL_OK)
        st = object_check(c, op, k, now, &v, &n, err);
    if (st != PAWL_OK)
        return st;
    if (op->status != PAWL_OK)
        return led_key_gone(c, o->key, err); /* LOCK_ROW may have inserted a row that is not needed
                                              */
    st = cancel_all(c, op, v, n, err);
    if (st == PAWL_OK)
        st = led_object_set(c, now, o->how, o->state, err);
    if (st == PAWL_OK && o->how == STATE_DELETE)
        st = led_key_gone(c, o->key, err);
    if (o->how == STATE_SET) {
        o->version = now->state.version;
        o->updated_us = c->now_us;
        k->drop = false;
    }
    return st;
}

/* ---- OP_UNBLOCK ------------------------------------------------------------------------------ */

/* Does the key have a call or an object? */
static enum pawl_status key_known(struct ledger *c, struct bytes key, int64_t *out,
                                  struct pawl_err *err)
{
    struct led_params p = { 0 };
    enum pawl_status st = led_flush(c, err);
    led_text(&p, key);
    if (st == PAWL_OK)
        st = led_number(c, SQL_CALL_OF_KEY, &p, 0, out, err);
    return st == PAWL_OK && !*out ? led_number(c, SQL_OBJECT_ANY, &p, 0, out, err) : st;
}

/* The call no longer blocks its key, and is kept like any other ended call. */
static enum pawl_status let_go(struct ledger *c, struct led_call *it, struct led_key *k,
                               struct pawl_err *err)
{
    struct led_outcome *o = arena_alloc(&c->scratch, sizeof *o);
    if (!o)
        return err_no_memory(err, "an outcome");
    *o = *it->now.outcome;
    o->keep_until_us = c->now_us + (it->spec.keep_us ? it->spec.keep_us : c->retention_us);
    it->now.outcome = o;
    k->turn = KEY_IDLE;
    k->head = k->head_pos = k->head_no = k->since_us = 0;
    k->dirty = true;
    led_key_turn(c, k);
    return PAWL_OK;
}

enum pawl_status led_unblock(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct unblock *u = &op->unblock;
    struct led_key *k = NULL;
    struct led_call *it;
    int64_t known = 0;
    u->id = BYTES_NONE;
    enum pawl_status st = key_known(c, u->key, &known, err);
    if (st == PAWL_OK && known)
        st = led_key_get(c, u->key, LOCK_WAIT, &k, err);
    if (st != PAWL_OK)
        return st;
    if (!known) {
        REFUSE(op, PAWL_NOT_FOUND, "no key \"%.*s\"", BYTES_ARG(u->key));
        return PAWL_OK;
    }
    if (k->turn != KEY_BLOCKED) {
        REFUSE(op, PAWL_STATE, "key \"%.*s\" is not blocked", BYTES_ARG(u->key));
        return PAWL_OK;
    }
    st = led_call_get(c, k->head, &it, err);
    if (st == PAWL_OK && (!it || it->now.place != AT_ENDED))
        return led_again(c, "the call that blocks a key", err);
    if (st != PAWL_OK)
        return st;
    u->id = arena_copy(op->a, it->spec.id);
    if (!u->id.data)
        return err_no_memory(err, "a key");
    st = u->retry ? led_flow_retry(c, op, it, err) : PAWL_OK;
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    return u->retry ? led_retry_call(c, it, err) : let_go(c, it, k, err);
}

/* ---- Reading --------------------------------------------------------------------------------- */

enum pawl_status led_read_object(struct store *s, struct arena *a, struct bytes type,
                                 struct bytes key, struct object *out, struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    AUTO(led_undo) struct ledger *tx = NULL;
    struct led_object *o;
    struct led_key *k;
    struct led_call **v;
    size_t n = 0;
    enum pawl_status st = led_begin(c, LED_READ, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = led_object_get(c, type, key, &o, err);
    if (st == PAWL_OK && !o->state.version)
        st = err_set(err, PAWL_NOT_FOUND, "no object \"%.*s\" \"%.*s\"", BYTES_ARG(type),
                     BYTES_ARG(key));
    if (st == PAWL_OK)
        st = led_key_look(c, key, &k, err);
    if (st == PAWL_OK && k)
        st = pending_of(c, k, type, &v, &n, err);
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0, all = n; i < all; i++)
        n -= led_flow_waits(c, v[i]);
    *out =
        (struct object){ .type = arena_copy(a, type),
                         .key = arena_copy(a, key),
                         .state = { o->state.payload.form, arena_copy(a, o->state.payload.bytes) },
                         .version = o->state.version,
                         .updated_us = o->updated_us,
                         .pending = (int64_t)MIN(n, (size_t)COUNT_MAX) };
    return a->failed ? err_no_memory(err, "an object") : PAWL_OK;
}

static enum pawl_status key_show(struct ledger *c, struct arena *a, struct bytes name,
                                 struct key_row *out, struct pawl_err *err)
{
    struct led_key *k;
    struct led_call *it;
    struct call call = { 0 };
    enum pawl_status st = led_key_look(c, name, &k, err);
    if (st == PAWL_OK)
        st = led_call_get(c, k->head, &it, err);
    if (st == PAWL_OK && !it)
        st = err_set(err, PAWL_BROKEN, "key \"%.*s\": its first call does not exist",
                     BYTES_ARG(name));
    if (st == PAWL_OK)
        st = led_show(c, a, it, 0, &call, err);
    if (st != PAWL_OK)
        return st;
    bool blocked = k->turn == KEY_BLOCKED;
    *out = (struct key_row){ .key = arena_copy(a, name),
                             .head = call.spec.id,
                             .head_state = call.state,
                             .waiting_for = call.waiting_for,
                             .blocked = blocked,
                             .pending = led_key_pending(k),
                             .since_us = blocked ? k->since_us : call.created_us };
    return a->failed ? err_no_memory(err, "keys") : PAWL_OK;
}

static enum pawl_status keys_read(struct ledger *c, struct arena *a, const struct key_query *q,
                                  struct key_rows *out, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    led_text(&p, q->after.data ? q->after : BYTES(""));
    led_int(&p, LIST_LOOK_MAX + 1);
    enum pawl_status st =
        led_query(c, q->blocked ? SQL_KEY_LIST_BLOCKED : SQL_KEY_LIST, &p, &r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct bytes name = led_get(r, i, 0), before = i ? led_get(r, i - 1, 0) : q->after;
        if (before.data && bytes_cmp(name, before) <= 0) /* the pages would not end */
            return err_set(err, PAWL_BROKEN, "database: key \"%.*s\" is listed before \"%.*s\"",
                           BYTES_ARG(before), BYTES_ARG(name));
        if (out->n == (size_t)q->limit || i == LIST_LOOK_MAX) {
            out->next = arena_copy(a, led_get(r, i - 1, 0));
            break;
        }
        if (led_get_int(r, i, 1) != KEY_IDLE)
            st = key_show(c, a, name, &out->v[out->n++], err);
    }
    return st;
}

enum pawl_status led_read_keys(struct store *s, struct arena *a, const struct key_query *q,
                               struct key_rows *out, struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    AUTO(led_undo) struct ledger *tx = NULL;
    out->v = arena_zalloc(a, (size_t)q->limit, sizeof *out->v);
    if (!out->v)
        return err_no_memory(err, "keys");
    enum pawl_status st = led_begin(c, LED_READ, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = keys_read(c, a, q, out, err);
    return st == PAWL_OK && a->failed ? err_no_memory(err, "keys") : st;
}
