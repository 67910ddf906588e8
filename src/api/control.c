/*
 * control.c - cancel, retry and move one call: the operation, its consequences in this process, and
 * the call as it is then.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/ask_io.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/get.h"
#include "api/internal.h"
#include "api/list.h"
#include "api/reply.h"
#include "api/routes.h"
#include "base/limits.h"
#include "exec/waiter.h"
#include "exec/work_signal.h"
#include "model/fields.h"

struct decide {
    struct ask_write write; /* first */
    struct ask_read look;   /* an app's request first reads whose call it is */
    struct found found;
    struct bytes id;
};

void decided(struct api *api, const struct op *op)
{
    const struct by_id *what = &op->by_id;
    if (op->status != PAWL_OK)
        return;
    if (op->kind == OP_CANCEL && what->state == PAWL_PROCESSING)
        exec_cancel(api->exec, what->seq);
    else if (op->kind == OP_CANCEL)
        exec_look(api->exec, &what->id, 1);
    else
        exec_work_came(api->exec);
}

static void decide_written(struct ask_write *w)
{
    struct decide *d = (struct decide *)w;
    struct ask *q = w->ask;
    const struct op *op = &w->job.op;
    enum pawl_state state = op->by_id.state;
    enum op_kind kind = op->kind;
    struct pawl_err err = op->err;
    err.status = op->status;
    decided(q->api, op);
    ask_write_end(w);
    if (err.status == PAWL_GONE) {
        show_call(q, d->id, 0, SHOW_ALL); /* which refuses it, and says when it was archived */
        return;
    }
    if (err.status != PAWL_OK) {
        ask_refuse(q, &(struct refusal){
                          .status = err.status, .text = err.text, .id = d->id, .state = state });
        return;
    }
    int status = kind == OP_RETRY || (kind == OP_CANCEL && state == PAWL_PROCESSING) ? 202 : 200;
    show_call(q, d->id, status, SHOW_ALL);
}

static enum pawl_status look_work(struct ask_read *rd, struct store *s)
{
    struct decide *d = (struct decide *)((char *)rd - offsetof(struct decide, look));
    return call_find(rd, s, d->id, 0, &d->found);
}

static void decide_write(struct ask *q, struct decide *d)
{
    if (d->write.job.op.kind == OP_MOVE)
        d->write.job.turn_until_us = world_mono(&world_real) + MOVE_WAIT_US;
    ask_write(q, &d->write);
}

static void look_done(struct ask_read *rd)
{
    struct decide *d = (struct decide *)((char *)rd - offsetof(struct decide, look));
    ask_read_end(rd);
    if (rd->status == PAWL_OK) {
        decide_write(rd->ask, d);
        return;
    }
    rd->err.status = rd->status;
    refuse_found(rd->ask, &rd->err, d->id, &d->found);
}

/* Do this operation to the call that the path names. */
static void decide(struct ask *q, enum op_kind kind, struct by_id what)
{
    struct decide *d = arena_zalloc(q->a, 1, sizeof *d);
    if (!d) {
        ask_no_memory(q);
        return;
    }
    what.id = d->id = q->path[0];
    d->write.job.op = (struct op){ .kind = kind, .by_id = what };
    d->write.id = what.id;
    d->write.done = decide_written;
    d->look.work = look_work;
    d->look.done = look_done;
    if (q->who.role == ROLE_APP)
        ask_read(q, &d->look);
    else
        decide_write(q, d);
}

void route_cancel(struct ask *q)
{
    decide(q, OP_CANCEL, (struct by_id){ 0 });
}

void route_retry(struct ask *q)
{
    decide(q, OP_RETRY, (struct by_id){ 0 });
}

/* ---- PATCH ----------------------------------------------------------------------------------- */

static const struct field patch_fields[] = {
    { "run_at", FIELD_TIME, offsetof(struct by_id, run_at_us), .dflt = "as it is",
      .about = "when to run it; a time that has passed means now" },
    { "priority", FIELD_INT, offsetof(struct by_id, priority), 0, PRIORITY_MIN, PRIORITY_MAX,
      .dflt = "as it is", .about = "higher first" },
    { "queue", FIELD_NAME, offsetof(struct by_id, queue), .dflt = "as it is",
      .about = "where to run it" },
};
const struct shape patch_shape = SHAPE("CallPatch", patch_fields);

void route_patch(struct ask *q)
{
    struct by_id what = { .priority = PAWL_SAME };
    struct pawl_err err;
    uint64_t given;
    err.status = body_object(q, &what, &given, &err);
    if (err.status == PAWL_OK && !given)
        err_set(&err, PAWL_INVALID, "the body changes nothing; it may set run_at, priority, queue");
    if (err.status == PAWL_OK)
        decide(q, OP_MOVE, what);
    else
        ask_fail(q, &err);
}
