/*
 * objects.c - /v1/objects/{type}/{key}: calling a method, and reading, writing and deleting the
 * state from outside a call.
 *
 * A write waits for the key to become free, and is committed together with the finish that frees
 * it. It asks again every few milliseconds, by a timer, until its time is up or its client has
 * left. What must stay true: 503 means that nothing was written.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "api/ask.h"
#include "api/ask_io.h"
#include "api/ask_spec.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/internal.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/submit.h"
#include "api/wait.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/text.h"
#include "exec/waiter.h"
#include "model/fields.h"

#define CALL_WAIT_US (30 * SEC_US)
#define TURN_WAIT_US (5 * SEC_US)
/* One write waits this long for a finish of this process to free the key. A key that another
 * process holds is found free by a later write. */
#define TURN_LOOK_US (20 * MS_US)
#define AGAIN_US (1 * MS_US)

const struct shape any_shape = { .name = "Json" };

/* ---- A method -------------------------------------------------------------------------------- */

static enum pawl_status method_read(struct ask *q, struct call_spec *s, int64_t *wait_us,
                                    struct pawl_err *err)
{
    struct bytes header_id;
    call_spec_init(s);
    s->type = q->path[0];
    s->key = q->path[1];
    s->method = q->path[2];
    s->max_attempts = 1;
    if (q->api->call_timeout_us)
        s->timeout_us = q->api->call_timeout_us;
    enum pawl_status st = ask_wait_us(q, CALL_WAIT_US, wait_us, err);
    if (st == PAWL_OK)
        st = body_value(q, true, &s->input, err);
    if (st == PAWL_OK)
        st = ask_idempotency_key(q, &header_id, err);
    return st == PAWL_OK ? spec_complete(q, header_id, s, err) : st;
}

void route_object_call(struct ask *q)
{
    struct pawl_err err;
    int64_t wait_us;
    struct submit *s = arena_zalloc(q->a, 1, sizeof *s);
    if (!s)
        ask_no_memory(q);
    else if ((err.status = method_read(q, &s->spec, &wait_us, &err)) != PAWL_OK)
        ask_fail(q, &err);
    else
        submit_begin(q, s, wait_us);
}

/* ---- Who may --------------------------------------------------------------------------------- */

/* Objects belong to no client. An app that may claim from every queue could read and write every
 * state that way, so it may do it here. One that is limited to some queues may only call methods.
 */
static enum pawl_status object_allowed(const struct ask *q, struct pawl_err *err)
{
    if (q->who.role != ROLE_APP || !q->who.n_queues)
        return PAWL_OK;
    return err_set(err, PAWL_FORBIDDEN,
                   "token \"%.*s\" is for some queues only: it may call methods of objects, not "
                   "read or write their states",
                   BYTES_ARG(q->who.name));
}

/* ---- Answers --------------------------------------------------------------------------------- */

struct object_read {
    struct ask_read read; /* first */
    struct object object;
};

/* Answer with the object. `pending` below 0: not known. */
static void object_reply(struct ask *q, const struct object *o, int64_t pending)
{
    struct buf *b = ask_buf(q);
    char etag[32];
    struct http_header h = { BYTES("ETag"), { etag, 0 } };
    bool secret = q->who.role == ROLE_MONITOR;
    h.value.len = (size_t)snprintf(etag, sizeof etag, "\"%lld\"", (long long)o->version);
    buf_add_char(b, '{');
    add_text(b, "type", q->path[0]);
    add_text(b, "key", q->path[1]);
    add_payload(b, "state", "state_base64", secret ? (struct payload){ 0 } : o->state, 0);
    add_int(b, "version", o->version);
    add_time(b, "updated_at", o->updated_us);
    if (pending < 0)
        add_raw(b, "pending", BYTES_NONE);
    else
        add_int(b, "pending", pending);
    buf_add_char(b, '}');
    ask_reply_with(q, 200, b, &h, 1);
}

static enum pawl_status object_work(struct ask_read *rd, struct store *s)
{
    const struct ask *q = rd->ask;
    struct object *out = &((struct object_read *)rd)->object;
    return store_object(s, &rd->arena, q->path[0], q->path[1], out, &rd->err);
}

static void object_done(struct ask_read *rd)
{
    struct ask *q = rd->ask;
    struct arena keep = rd->arena; /* The state lives in it, and rd is freed with the answer. */
    if (rd->status == PAWL_OK) {
        struct object o = ((struct object_read *)rd)->object;
        object_reply(q, &o, o.pending);
    } else {
        struct pawl_err err = rd->err;
        err.status = rd->status;
        ask_fail(q, &err);
    }
    arena_release(&keep);
}

void route_object_get(struct ask *q)
{
    struct pawl_err err;
    struct object_read *o = arena_zalloc(q->a, 1, sizeof *o);
    if (!o) {
        ask_no_memory(q);
        return;
    }
    err.status = object_allowed(q, &err);
    if (err.status != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    o->read.work = object_work;
    o->read.done = object_done;
    ask_read(q, &o->read);
}

/* ---- Writing --------------------------------------------------------------------------------- */

struct object_ask {
    struct ask_write write; /* first */
    struct object_op want;
    struct timed_wait timed;
    struct ask_read read; /* reads how many calls wait, once it is written */
    struct object now;
    struct object written;
    int64_t until_us;
};

static void object_look(struct object_ask *o);

static void object_refuse(struct object_ask *o)
{
    struct ask *q = o->write.ask;
    struct pawl_err err = o->write.job.op.err;
    err.status = o->write.job.op.status;
    /* If the object does not exist, no version matches. */
    if (err.status == PAWL_NOT_FOUND && object_conditional(&o->want))
        err.status = PAWL_STALE;
    ask_write_end(&o->write);
    ask_fail(q, &err);
}

static void object_over(struct timed_wait *p, enum wait_why why)
{
    struct object_ask *o = (struct object_ask *)((char *)p - offsetof(struct object_ask, timed));
    if (why != WAIT_TIME_UP) {
        object_refuse(o);
        return;
    }
    ask_write_end(&o->write);
    object_look(o);
}

/* The key is held: try again a little later, if there is time left. */
static bool object_again(struct object_ask *o)
{
    int64_t now_us = world_mono(&world_real);
    if (o->write.job.op.status != PAWL_BUSY || now_us >= o->until_us)
        return false;
    o->timed.over = object_over;
    timed_wait_enter(o->write.ask, &o->timed, now_us + AGAIN_US); /* o may be freed inside */
    return true;
}

static enum pawl_status count_work(struct ask_read *rd, struct store *s)
{
    struct object_ask *o = (struct object_ask *)((char *)rd - offsetof(struct object_ask, read));
    return store_object(s, &rd->arena, o->want.type, o->want.key, &o->now, &rd->err);
}

/* The state is written: a failure to count the pending calls must not look like a failed write. */
static void count_done(struct ask_read *rd)
{
    struct object_ask *o = (struct object_ask *)((char *)rd - offsetof(struct object_ask, read));
    int64_t pending = rd->status == PAWL_OK ? o->now.pending : -1;
    ask_read_end(rd);
    object_reply(rd->ask, &o->written, pending);
}

static void put_reply(struct object_ask *o)
{
    struct ask *q = o->write.ask;
    const struct object_op *op = &o->write.job.op.object;
    o->written = (struct object){ .state = o->want.state,
                                  .version = op->version,
                                  .updated_us = op->updated_us };
    ask_write_end(&o->write);
    o->read.work = count_work;
    o->read.done = count_done;
    ask_read(q, &o->read);
}

static void delete_reply(struct object_ask *o)
{
    struct ask *q = o->write.ask;
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    add_text(b, "type", q->path[0]);
    add_text(b, "key", q->path[1]);
    add_int(b, "cancelled", o->write.job.op.object.cancelled);
    buf_add_char(b, '}');
    ask_write_end(&o->write);
    ask_reply(q, 200, b);
}

static void object_written(struct ask_write *w)
{
    struct object_ask *o = (struct object_ask *)w;
    struct exec *e = w->ask->api->exec;
    const struct op *op = &w->job.op;
    if (op->n_ended)
        exec_look(e, op->ended, op->n_ended);
    if (op->status == PAWL_OK && o->want.how == STATE_SET)
        put_reply(o);
    else if (op->status == PAWL_OK)
        delete_reply(o);
    else if (!object_again(o))
        object_refuse(o);
}

static void object_look(struct object_ask *o)
{
    struct ask *q = o->timed.ask;
    o->write = (struct ask_write){ .done = object_written };
    o->write.job.op = (struct op){ .kind = OP_OBJECT, .object = o->want };
    o->write.job.len = o->want.state.bytes.len;
    o->write.job.turn_until_us = MIN(world_mono(&world_real) + TURN_LOOK_US, o->until_us);
    ask_write(q, &o->write);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static enum pawl_status object_begin(struct ask *q, struct object_ask *o, enum state_do how,
                                     struct pawl_err *err)
{
    struct if_match m = { 0 };
    int64_t wait_us;
    o->want.type = q->path[0];
    o->want.key = q->path[1];
    o->want.how = how;
    o->timed.ask = q;
    enum pawl_status st = object_allowed(q, err);
    if (st == PAWL_OK)
        st = ask_wait_us(q, TURN_WAIT_US, &wait_us, err);
    if (st == PAWL_OK)
        st = if_match_read(q, false, &m, err);
    o->want.if_any = m.any;
    o->want.if_version = m.version;
    o->want.or_versions = m.or_versions;
    o->want.n_or_versions = m.n_or_versions;
    if (st == PAWL_OK)
        o->until_us = world_mono(&world_real) + wait_us;
    return st;
}

static void object_go(struct ask *q, struct object_ask *o, const struct pawl_err *err)
{
    if (err->status == PAWL_OK)
        object_look(o);
    else
        ask_fail(q, err);
}

void route_object_put(struct ask *q)
{
    struct pawl_err err;
    struct object_ask *o = arena_zalloc(q->a, 1, sizeof *o);
    if (!o) {
        ask_no_memory(q);
        return;
    }
    err.status = object_begin(q, o, STATE_SET, &err);
    if (err.status == PAWL_OK)
        err.status = body_value(q, false, &o->want.state, &err);
    if (err.status == PAWL_OK && o->want.state.bytes.len > STATE_LEN_MAX)
        err_set(&err, PAWL_TOO_LARGE, "object \"%.*s\" \"%.*s\": its state is %zu bytes, limit %d",
                BYTES_ARG(q->path[0]), BYTES_ARG(q->path[1]), o->want.state.bytes.len,
                STATE_LEN_MAX);
    object_go(q, o, &err);
}

void route_object_delete(struct ask *q)
{
    struct pawl_err err;
    struct object_ask *o = arena_zalloc(q->a, 1, sizeof *o);
    if (!o) {
        ask_no_memory(q);
        return;
    }
    o->want.cancel = ask_query(q, "cancel").n;
    err.status = object_begin(q, o, STATE_DELETE, &err);
    if (err.status == PAWL_OK && o->want.cancel && q->who.role == ROLE_APP)
        err_set(&err, PAWL_FORBIDDEN, "token \"%.*s\" may not cancel the calls of others",
                BYTES_ARG(q->who.name));
    object_go(q, o, &err);
}
