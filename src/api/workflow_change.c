/*
 * workflow_change.c - changing runs: signals, also those that start a run, cancel, retry, fork.
 *
 * A change is one operation of feature_workflow. An app's request first reads whose run it is.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/ask_io.h"
#include "api/ask_spec.h"
#include "api/auth.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/get.h"
#include "api/internal.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/submit.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "exec/waiter.h"
#include "exec/work_signal.h"
#include "feature/workflow.h"
#include "model/fields.h"
#include "model/spec_json.h"

struct run_change {
    struct ask_write write; /* first */
    struct ask_read look;   /* an app's request: whose run is it? */
    struct found found;
    struct workflow_op op;
    int64_t wait_us;
};

static struct run_change *change_new(struct ask *q, enum workflow_do what)
{
    struct run_change *c = arena_zalloc(q->a, 1, sizeof *c);
    if (!c) {
        ask_no_memory(q);
        return NULL;
    }
    c->op = (struct workflow_op){ .what = what, .id = q->path[0], .compensate = true };
    return c;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void signal_reply(struct run_change *c)
{
    struct ask *q = c->write.ask;
    bool duplicate = c->op.duplicate;
    struct buf *b = ask_buf(q);
    ask_write_end(&c->write);
    buf_add_char(b, '{');
    add_text(b, "id", q->path[0]);
    add_text(b, "name", q->path[1]);
    add_bool(b, "duplicate", duplicate);
    buf_add_char(b, '}');
    ask_reply(q, 202, b);
}

static void call_reply(struct run_change *c)
{
    struct ask *q = c->write.ask;
    bool forks = c->op.what == WORKFLOW_FORK, ended = pawl_state_ended(c->op.state);
    bool starts = c->op.start != NULL;
    unsigned show = SHOW_ALL | SHOW_STORED | (forks || starts ? SHOW_LOCATION : 0) |
                    ((forks && c->op.duplicate) || (starts && !c->op.started) ? SHOW_DUPLICATE : 0);
    struct bytes id = forks ? arena_copy(q->a, c->op.call->call.spec.id) : c->op.id;
    int64_t wait_us = c->wait_us;
    bool cancels = c->op.what == WORKFLOW_CANCEL;
    ask_write_end(&c->write);
    if (!id.data)
        ask_no_memory(q);
    else if (starts)
        show_call_wait(q, id, wait_us, show);
    else
        show_call(q, id, cancels && ended ? 200 : forks ? 0 : 202, show);
}

static void change_fail(struct run_change *c)
{
    struct ask *q = c->write.ask;
    const struct op *op = &c->write.job.op;
    struct pawl_err err = op->err;
    struct bytes id = c->op.id;
    enum pawl_state state = op->status == PAWL_STATE ? c->op.state : 0;
    err.status = op->status;
    ask_write_end(&c->write);
    ask_refuse(
        q, &(struct refusal){ .status = err.status, .text = err.text, .id = id, .state = state });
}

static void change_written(struct ask_write *w)
{
    struct run_change *c = (struct run_change *)w;
    struct exec *e = w->ask->api->exec;
    const struct op *op = &w->job.op;
    if (op->status != PAWL_OK) {
        change_fail(c);
        return;
    }
    exec_look(e, op->ended, op->n_ended);
    if (c->op.what == WORKFLOW_CANCEL && pawl_state_ended(c->op.state))
        exec_look(e, &c->op.id, 1);
    if (c->op.what == WORKFLOW_CANCEL)
        exec_cancel(e, c->op.seq);
    exec_work_came(e);
    if (c->op.what == WORKFLOW_SIGNAL && !c->op.start)
        signal_reply(c);
    else
        call_reply(c);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static void change_write(struct ask *q, struct run_change *c)
{
    c->write.job.op =
        (struct op){ .kind = OP_FEATURE, .feature = { .of = &feature_workflow, .ctx = &c->op } };
    c->write.job.len = c->op.value.bytes.len + (c->op.start ? c->op.start->input.bytes.len : 0);
    c->write.id = c->op.id;
    c->write.done = change_written;
    ask_write(q, &c->write);
}

static struct run_change *change_of(struct ask_read *rd)
{
    return (struct run_change *)((char *)rd - offsetof(struct run_change, look));
}

static enum pawl_status look_work(struct ask_read *rd, struct store *s)
{
    struct run_change *c = change_of(rd);
    return call_find(rd, s, c->op.id, 0, &c->found);
}

static void look_done(struct ask_read *rd)
{
    struct run_change *c = change_of(rd);
    struct ask *q = rd->ask;
    ask_read_end(rd);
    if (rd->status != PAWL_OK) {
        rd->err.status = rd->status;
        refuse_found(q, &rd->err, c->op.id, &c->found);
    } else {
        change_write(q, c);
    }
}

/* Post the change, or end the ask with what was wrong. */
static void change_post(struct ask *q, struct run_change *c, const struct pawl_err *err)
{
    if (err->status != PAWL_OK) {
        ask_fail(q, err);
        return;
    }
    c->look.work = look_work;
    c->look.done = look_done;
    if (q->who.role == ROLE_APP)
        ask_read(q, &c->look);
    else
        change_write(q, c);
}

/* ---- Routes ---------------------------------------------------------------------------------- */

void route_signal(struct ask *q)
{
    struct run_change *c = change_new(q, WORKFLOW_SIGNAL);
    struct pawl_err err;
    if (!c)
        return;
    c->op.name = q->path[1];
    err.status = ask_idempotency_key(q, &c->op.key, &err);
    const char *bad = err.status == PAWL_OK && c->op.key.data ? name_fault(c->op.key) : NULL;
    if (bad)
        err.status = err_set(&err, PAWL_INVALID, "field \"Idempotency-Key\": %s", bad);
    if (err.status == PAWL_OK)
        err.status = body_value(q, true, &c->op.value, &err);
    if (err.status == PAWL_OK && !c->op.value.bytes.data)
        c->op.value = (struct payload){ PAWL_JSON, BYTES("null") };
    if (err.status == PAWL_OK && c->op.value.bytes.len > RESULT_LEN_MAX)
        err.status = err_set(&err, PAWL_TOO_LARGE, "the value is %zu bytes, limit %d",
                             c->op.value.bytes.len, RESULT_LEN_MAX);
    change_post(q, c, &err);
}

struct cancel_in {
    bool compensate;
};
static const struct field cancel_fields[] = {
    { "compensate", FIELD_BOOL, offsetof(struct cancel_in, compensate), .dflt = "true",
      .about = "false: it ends at once, and nothing is undone" },
};
const struct shape workflow_cancel_shape = SHAPE("WorkflowCancel", cancel_fields);

void route_workflow_cancel(struct ask *q)
{
    struct run_change *c = change_new(q, WORKFLOW_CANCEL);
    struct cancel_in in = { .compensate = true };
    struct pawl_err err;
    if (!c)
        return;
    err.status = body_object(q, &in, NULL, &err);
    c->op.compensate = in.compensate;
    c->op.no_drop = q->who.role == ROLE_APP;
    change_post(q, c, &err);
}

struct from_in {
    struct bytes id, from;
};
static const struct field retry_fields[] = {
    { "from", FIELD_NAME, offsetof(struct from_in, from), FIELD_NULL,
      .dflt = "it goes on where it stopped",
      .about = "a step, by its stored name: what it and the later ones came to is forgotten" },
};
const struct shape workflow_retry_shape = SHAPE("WorkflowRetry", retry_fields);

void route_workflow_retry(struct ask *q)
{
    struct run_change *c = change_new(q, WORKFLOW_RETRY);
    struct from_in in = { 0 };
    struct pawl_err err;
    if (!c)
        return;
    err.status = body_object(q, &in, NULL, &err);
    c->op.from = in.from;
    change_post(q, c, &err);
}

static const struct field fork_fields[] = {
    { "id", FIELD_NAME, offsetof(struct from_in, id), FIELD_NULL, .dflt = "one is made",
      .about = "of the new run; a repeat with the same id forks once" },
    { "from", FIELD_NAME, offsetof(struct from_in, from), FIELD_MUST,
      .about = "a step, by its stored name: the results before it are taken over" },
};
const struct shape workflow_fork_shape = SHAPE("WorkflowFork", fork_fields);

void route_workflow_fork(struct ask *q)
{
    struct run_change *c = change_new(q, WORKFLOW_FORK);
    struct from_in in = { 0 };
    struct pawl_err err;
    if (!c)
        return;
    err.status = body_object(q, &in, NULL, &err);
    c->op.from = in.from;
    c->op.fork_id = in.id;
    change_post(q, c, &err);
}

/* ---- A signal that starts -------------------------------------------------------------------- */

void submit_signal(struct ask *q, const struct call_spec *spec, const struct signal_spec *signal,
                   int64_t wait_us)
{
    struct run_change *c = change_new(q, WORKFLOW_SIGNAL);
    if (!c)
        return;
    if (signal->value.len > RESULT_LEN_MAX) {
        ask_refusef(q, PAWL_TOO_LARGE, "field \"signal.value\": is %zu bytes, limit %d",
                    signal->value.len, RESULT_LEN_MAX);
        return;
    }
    c->op.id = spec->id;
    c->op.name = signal->name;
    c->op.value = (struct payload){ PAWL_JSON, signal->value };
    c->op.key = signal->key;
    c->op.start = spec;
    c->op.own = q->who.role == ROLE_APP;
    c->wait_us = wait_us;
    change_write(q, c);
}
