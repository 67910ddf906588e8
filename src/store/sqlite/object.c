/*
 * object.c - objects' states, and what people decide about keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "store/sqlite/move.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/read.h"

/* ---- States ---------------------------------------------------------------------------------- */

static enum pawl_status object_row(struct lite *c, struct arena *a, struct bytes type,
                                   struct bytes key, struct object *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_OBJECT_READ, ARGS(TEXT(key), TEXT(type)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    *out = (struct object){ 0 };
    if (st != PAWL_OK || !row)
        return st;
    out->state.form = (enum pawl_form)lite_int(q, 0);
    out->state.bytes = arena_copy(a, lite_column(q, 1));
    out->version = lite_int(q, 2);
    out->updated_us = lite_int(q, 3);
    return a->failed ? err_no_memory(err, "an object") : PAWL_OK;
}

enum pawl_status lite_object_read(struct lite *c, struct arena *a, struct bytes type,
                                  struct bytes key, struct object_state *out, struct pawl_err *err)
{
    struct object row;
    enum pawl_status st = object_row(c, a, type, key, &row, err);
    *out = (struct object_state){ row.state, row.version };
    return st;
}

enum pawl_status lite_object_write(struct lite *c, const struct object_op *o, int64_t *out_version,
                                   struct pawl_err *err)
{
    *out_version = 0;
    if (o->how == STATE_DELETE)
        return lite_run(c, SQL_OBJECT_REMOVE, ARGS(TEXT(o->key), TEXT(o->type)), NULL, err);
    enum pawl_status st = lite_version_next(c, out_version, err);
    if (st != PAWL_OK)
        return st;
    return lite_run(c, SQL_OBJECT_WRITE,
                    ARGS(TEXT(o->key), TEXT(o->type), INT(o->state.form), BLOB(o->state.bytes),
                         INT(*out_version), INT(c->now_us)),
                    NULL, err);
}

/* ---- Pending calls of an object -------------------------------------------------------------- */

static enum pawl_status of_type(struct lite *c, int lane, struct bytes type, bool *out,
                                struct pawl_err *err)
{
    const struct lite_lane *l;
    enum pawl_status st = lite_lane(c, lane, &l, err);
    *out = st == PAWL_OK && bytes_eq(l->type, type);
    return st;
}

/* The call on offer, if it is of this type; 0: none. */
static enum pawl_status offered(struct lite *c, const struct lite_key *k, struct bytes type,
                                int64_t *out, struct pawl_err *err)
{
    struct lite_shelf to = { .a = &c->scratch };
    struct call call;
    *out = 0;
    if (k->turn != KEY_OFFERED)
        return PAWL_OK;
    enum pawl_status st = lite_asked(c, &to, k->head, false, &call, err);
    if (st == PAWL_OK && bytes_eq(call.spec.type, type))
        *out = k->head;
    return st;
}

/* Every pending call of (type, key) that no lease holds, up to max: the last of the line first, the
 * one on offer at the end, so that taking them out one by one moves nobody up. */
static enum pawl_status pending_of(struct lite *c, const struct lite_key *k, struct bytes type,
                                   int64_t max, int64_t **out, size_t *out_n, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false, same;
    int64_t head, most = MIN(lite_key_pending(k), max);
    *out_n = 0;
    *out = arena_alloc(&c->scratch, (size_t)(most + 1) * sizeof **out);
    if (!*out)
        return err_no_memory(err, "a line");
    enum pawl_status st = lite_query(c, SQL_LINE_OF_KEY, ARGS(TEXT(k->name), INT(most)), &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row) {
        st = of_type(c, (int)lite_int(q, 1), type, &same, err);
        if (same)
            (*out)[(*out_n)++] = lite_int(q, 0);
    }
    if (st == PAWL_OK)
        st = offered(c, k, type, &head, err);
    if (st == PAWL_OK && head)
        (*out)[(*out_n)++] = head;
    return st;
}

/* What lite_end_pending() needs of a call, and no more: there may be a hundred thousand of them. */
static enum pawl_status cancel_one(struct lite *c, struct op *op, const struct lite_key *k,
                                   int64_t seq, struct pawl_err *err)
{
    struct lite_shelf to = { .a = &c->unpack };
    struct lite_place at = { .key_no = k->head_no };
    struct call call;
    bool found = false;
    arena_reset(&c->unpack);
    enum pawl_status st = lite_asked(c, &to, seq, false, &call, err);
    if (st == PAWL_OK)
        st = lite_key_place(c, seq, &found, &at, err);
    if (st == PAWL_OK && !found)
        st = lite_tries(c, seq, &at.tries, err);
    if (st != PAWL_OK)
        return st;
    call.tries = at.tries;
    call.key_no = at.key_no;
    if (call.tries.redrives > 0)
        call.expires_us = 0;
    st = lite_end_pending(c, &call, PAWL_CANCELLED, err);
    if (st == PAWL_OK)
        st = lite_told_ended(op, call.spec.id, err);
    op->object.cancelled++;
    return st;
}

/* ---- OP_OBJECT ------------------------------------------------------------------------------- */

#define REFUSE(op, st, ...) ((op)->status = err_set(&(op)->err, (st), __VA_ARGS__))

/* Refused, or op->status is OK and `v` is what has to be cancelled. */
static enum pawl_status object_check(struct lite *c, struct op *op, const struct lite_key *k,
                                     int64_t **v, size_t *n, struct pawl_err *err)
{
    struct object_op *o = &op->object;
    struct object now;
    *n = 0;
    if (k->held) {
        REFUSE(op, PAWL_BUSY, "key \"%.*s\": a call is running", BYTES_ARG(o->key));
        return PAWL_OK;
    }
    enum pawl_status st = object_row(c, &c->scratch, o->type, o->key, &now, err);
    if (st == PAWL_OK && o->how == STATE_DELETE)
        st = pending_of(c, k, o->type, INT64_MAX, v, n, err);
    if (st != PAWL_OK)
        return st;
    if (!object_fits(o, now.version)) {
        o->version = now.version;
        if (now.version)
            REFUSE(op, PAWL_STALE, "object \"%.*s\" \"%.*s\" has version %lld", BYTES_ARG(o->type),
                   BYTES_ARG(o->key), (long long)now.version);
        else
            REFUSE(op, PAWL_STALE, "object \"%.*s\" \"%.*s\" does not exist", BYTES_ARG(o->type),
                   BYTES_ARG(o->key));
    } else if (*n && !o->cancel) {
        REFUSE(op, PAWL_STATE, "object \"%.*s\" \"%.*s\": %zu calls are pending",
               BYTES_ARG(o->type), BYTES_ARG(o->key), *n);
    } else if (o->how == STATE_DELETE && !now.version && !*n) {
        REFUSE(op, PAWL_NOT_FOUND, "no object \"%.*s\" \"%.*s\"", BYTES_ARG(o->type),
               BYTES_ARG(o->key));
    }
    return PAWL_OK;
}

enum pawl_status lite_object_op(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct object_op *o = &op->object;
    struct lite_key *k;
    int64_t *v = NULL;
    size_t n;
    o->version = o->updated_us = o->cancelled = 0;
    enum pawl_status st = lite_lanes_read(c, err);
    if (st == PAWL_OK)
        st = lite_key_get(c, o->key, &k, err);
    if (st == PAWL_OK)
        st = object_check(c, op, k, &v, &n, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        st = cancel_one(c, op, k, v[i], err);
    if (st == PAWL_OK)
        st = lite_object_write(c, o, &o->version, err);
    if (st == PAWL_OK && o->how == STATE_DELETE)
        st = lite_key_gone(c, o->key, err);
    o->updated_us = o->how == STATE_SET ? c->now_us : 0;
    return st;
}

/* ---- OP_UNBLOCK ------------------------------------------------------------------------------ */

enum pawl_status lite_unblock(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct unblock *u = &op->unblock;
    struct lite_shelf to = { .a = &c->scratch };
    struct lite_key *k;
    struct call call;
    u->id = BYTES_NONE;
    enum pawl_status st = lite_key_get(c, u->key, &k, err);
    if (st != PAWL_OK)
        return st;
    int64_t known = k->stored;
    if (!known)
        st = lite_number(c, SQL_OBJECT_ANY, ARGS(TEXT(u->key)), 0, &known, err);
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
    st = lite_stands(c, &to, k->head, 0, &call, err);
    if (st != PAWL_OK)
        return st;
    u->id = arena_copy(op->a, call.spec.id);
    if (!u->id.data)
        return err_no_memory(err, "a key");
    if (u->retry)
        return lite_redrive_call(c, &call, err);
    int64_t keep_us = call.spec.keep_us ? call.spec.keep_us : c->retention_us;
    st = lite_run(c, SQL_OUTCOME_KEEP, ARGS(INT(k->head), INT(c->now_us + keep_us)), NULL, err);
    if (st != PAWL_OK)
        return st;
    k->turn = KEY_IDLE;
    k->since_us = 0;
    k->dirty = true;
    return lite_key_turn(c, k, err);
}

/* ---- Reading --------------------------------------------------------------------------------- */

enum pawl_status lite_object(struct store *s, struct arena *a, struct bytes type, struct bytes key,
                             struct object *out, struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    AUTO(lite_undo) struct lite *tx = NULL;
    struct lite_key *k;
    int64_t *v;
    size_t n;
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = lite_lanes_read(c, err);
    if (st == PAWL_OK)
        st = object_row(c, a, type, key, out, err);
    if (st == PAWL_OK && !out->version)
        st = err_set(err, PAWL_NOT_FOUND, "no object \"%.*s\" \"%.*s\"", BYTES_ARG(type),
                     BYTES_ARG(key));
    if (st == PAWL_OK)
        st = lite_key_get(c, key, &k, err);
    if (st == PAWL_OK)
        st = pending_of(c, k, type, COUNT_MAX, &v, &n, err);
    if (st != PAWL_OK)
        return st;
    out->pending = (int64_t)n;
    out->type = arena_copy(a, type);
    out->key = arena_copy(a, key);
    return a->failed ? err_no_memory(err, "an object") : PAWL_OK;
}

static enum pawl_status key_show(struct lite *c, struct arena *a, struct bytes name,
                                 struct key_row *out, struct pawl_err *err)
{
    struct lite_shelf to = { .a = a };
    struct lite_key *k;
    struct call call = { 0 };
    enum pawl_status st = lite_key_get(c, name, &k, err);
    if (st == PAWL_OK)
        st = lite_stands(c, &to, k->head, 0, &call, err);
    if (st != PAWL_OK)
        return st;
    bool blocked = k->turn == KEY_BLOCKED;
    *out = (struct key_row){ .key = arena_copy(a, name),
                             .head = call.spec.id,
                             .head_state = call.state,
                             .waiting_for = call.waiting_for,
                             .blocked = blocked,
                             .pending = lite_key_pending(k),
                             .since_us = blocked ? k->since_us : call.created_us };
    return a->failed ? err_no_memory(err, "keys") : PAWL_OK;
}

/* Names first: showing one reads other tables, and writes nothing. */
static enum pawl_status keys_read(struct lite *c, struct arena *a, const struct key_query *q,
                                  struct key_rows *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *rows = NULL;
    bool row = false;
    struct bytes after = q->after.data ? q->after : BYTES(""), last = BYTES_NONE;
    enum pawl_status st = lite_query(c, q->blocked ? SQL_KEY_LIST_BLOCKED : SQL_KEY_LIST,
                                     ARGS(TEXT(after)), &rows, err);
    for (int looked = 0; st == PAWL_OK; looked++) {
        st = lite_next(c, rows, &row, err);
        if (st != PAWL_OK || !row)
            return st;
        if (out->n == (size_t)q->limit || looked == LIST_LOOK_MAX) {
            out->next = last;
            return PAWL_OK;
        }
        last = arena_copy(&c->scratch, lite_column(rows, 0));
        if (!last.data)
            return err_no_memory(err, "keys");
        if (lite_int(rows, 1) != KEY_IDLE)
            st = key_show(c, a, last, &out->v[out->n++], err);
    }
    return st;
}

enum pawl_status lite_keys(struct store *s, struct arena *a, const struct key_query *q,
                           struct key_rows *out, struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    AUTO(lite_undo) struct lite *tx = NULL;
    out->v = arena_zalloc(a, (size_t)q->limit, sizeof *out->v);
    if (!out->v)
        return err_no_memory(err, "keys");
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = keys_read(c, a, q, out, err);
    out->next = arena_copy(a, out->next);
    return st == PAWL_OK && a->failed ? err_no_memory(err, "keys") : st;
}
