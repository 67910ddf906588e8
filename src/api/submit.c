/*
 * submit.c - POST /v1/calls: accept one call, and with `wait` answer when it has ended (submit.h).
 * Sessions and objects also use submit_begin().
 *
 * The hot path: one write, and one wake-up for a caller that waits. Two things come back, in either
 * order: the answer of the accept and the end of the call. The ask ends when both are there or one
 * of them makes the other unnecessary. An accept that only says "stored, pending" to a caller that
 * waits for the end is not announced to the loop: the end says it, too.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/submit.h"

#include <stdio.h>

#include "api/ask.h"
#include "api/ask_io.h"
#include "api/ask_spec.h"
#include "api/auth.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/get.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/wait.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "api/internal.h"
#include "model/spec_json.h"

void accepted_text(const struct call_spec *s, const struct accepted *r, char *out, size_t size)
{
    const struct call_spec *o = &r->call.spec;
    out[0] = 0;
    if (r->status == PAWL_CONFLICT && o->type.data) {
        bool same = bytes_eq(o->type, s->type) && bytes_eq(o->method, s->method);
        snprintf(out, size, "call \"%.*s\" already exists for %.*s.%.*s%s", BYTES_ARG(s->id),
                 BYTES_ARG(o->type), BYTES_ARG(o->method), same ? " with another input" : "");
    } else if (r->status == PAWL_CONFLICT) {
        snprintf(out, size, "call \"%.*s\" already exists with other content", BYTES_ARG(s->id));
    } else if (r->status == PAWL_GONE) {
        snprintf(out, size, "call \"%.*s\" ended %s and is no longer kept", BYTES_ARG(s->id),
                 pawl_state_name(r->call.state));
    } else if (r->status == PAWL_FULL && r->line_full) {
        snprintf(out, size, "key \"%.*s\": %lld calls are pending, which is the limit",
                 BYTES_ARG(s->key), (long long)r->line_full);
    } else if (r->status == PAWL_FULL) {
        snprintf(out, size, "queue \"%.*s\", type \"%.*s\": limit of %d lanes reached",
                 BYTES_ARG(s->queue), BYTES_ARG(s->type), LANES_MAX);
    } else if (r->status == PAWL_STATE) {
        snprintf(out, size,
                 "field \"%s\": every node must run this version first: run pawl migrate "
                 "finish",
                 s->run_timeout_us ? "run_timeout" : "needs");
    }
}

void accepted_hide(const struct ask *q, struct accepted *r)
{
    /* The tombstone of a call past its retention does not know its client, and shows nothing. */
    bool known = r->status == PAWL_CONFLICT || r->duplicate;
    if (!known || principal_sees(&q->who, r->call.spec.client))
        return;
    r->status = PAWL_CONFLICT;
    r->duplicate = false;
    r->call = (struct call){ 0 };
}

/* ---- The answer ------------------------------------------------------------------------------ */

static void submit_end(struct submit *s)
{
    ask_write_end(&s->write);
    if (s->waits)
        wait_end(&s->wait);
}

static void submit_refuse(struct submit *s, const struct accepted *r)
{
    struct ask *q = s->write.ask;
    struct bytes id = s->spec.id;
    if (r && r->status == PAWL_GONE) {
        submit_end(s);
        show_call(q, id, 0, SHOW_ALL); /* which refuses it, and says when it was archived */
        return;
    }
    struct pawl_err err = s->write.job.op.err;
    struct refusal why = { .status = s->write.job.op.status, .text = err.text, .id = id };
    if (r) {
        accepted_text(&s->spec, r, err.text, sizeof err.text);
        why.status = r->status;
        why.state = r->call.state;
    }
    submit_end(s);
    ask_refuse(q, &why);
}

/* Answer with a call that lives in one of our arenas: they are freed after the answer, s with it.
 */
static void submit_show(struct submit *s, const struct call *from, bool duplicate)
{
    struct arena keep[2] = { s->write.arena, s->wait.arena };
    struct call c = *from;
    if (!duplicate && !c.spec.input.bytes.data)
        c.spec.input = s->spec.input;
    reply_call(s->write.ask, &c, 0,
               SHOW_ALL | SHOW_LOCATION | SHOW_STORED | s->show | (duplicate ? SHOW_DUPLICATE : 0));
    arena_release(&keep[0]);
    arena_release(&keep[1]);
}

/* It has not ended: answer with the call as it is now. */
static void submit_look(struct submit *s, bool duplicate)
{
    struct ask *q = s->write.ask;
    struct bytes id = s->spec.id;
    unsigned show = SHOW_ALL | SHOW_LOCATION | SHOW_STORED | s->show;
    submit_end(s);
    show_call(q, id, 0, show | (duplicate ? SHOW_DUPLICATE : 0));
}

/* The time is up (the client has not left, and the server does not stop). */
static void submit_late(struct submit *s, bool duplicate)
{
    submit_end(s);
    s->late(s, duplicate);
}

static void submit_answer(struct submit *s)
{
    const struct op *op = &s->write.job.op;
    struct accepted *r = op->status == PAWL_OK && !s->fresh ? &op->accept.out[0] : NULL;
    if (!s->fresh && op->status != PAWL_OK) {
        submit_refuse(s, NULL);
        return;
    }
    if (r)
        accepted_hide(s->write.ask, r);
    if (r && r->status != PAWL_OK)
        submit_refuse(s, r);
    else if (s->told)
        submit_show(s, &s->wait.call, r && r->duplicate);
    else if (r && pawl_state_ended(r->call.state))
        submit_show(s, &r->call, r->duplicate);
    else if (s->late && (!s->waits || s->wait.why == WAIT_TIME_UP))
        submit_late(s, r && r->duplicate);
    else if (r && !s->waits)
        submit_show(s, &r->call, r->duplicate);
    else
        submit_look(s, r && r->duplicate);
}

static void submit_step(struct submit *s)
{
    if (s->settled && (s->over || !s->waits))
        submit_answer(s);
}

/* ---- What comes back ------------------------------------------------------------------------- */

/* Store thread. A new call whose caller waits: the answer says only "stored", so its memory is
 * freed at once. */
static bool submit_quiet(struct ask_write *w)
{
    struct submit *s = (struct submit *)w;
    const struct op *op = &w->job.op;
    if (!s->waits || op->status != PAWL_OK)
        return false;
    const struct accepted *r = &op->accept.out[0];
    if (r->status != PAWL_OK || r->duplicate || pawl_state_ended(r->call.state))
        return false;
    s->fresh = true;
    ask_write_end(w);
    return true;
}

static void submit_written(struct ask_write *w)
{
    struct submit *s = (struct submit *)w;
    const struct op *op = &w->job.op;
    s->settled = true;
    const struct accepted *r = op->status == PAWL_OK && !s->fresh ? &op->accept.out[0] : NULL;
    bool final = !s->fresh && (!r || r->status != PAWL_OK || pawl_state_ended(r->call.state) ||
                               !principal_sees(&w->ask->who, r->call.spec.client));
    if (s->waits && !s->over && final)
        s->over = wait_leave(&s->wait);
    submit_step(s);
}

static void submit_waited(struct wait *w, enum wait_end how)
{
    struct submit *s = (struct submit *)((char *)w - offsetof(struct submit, wait));
    s->over = true;
    s->told = how == WAIT_TOLD;
    if (!s->settled && ask_write_settled(&s->write))
        s->settled = true;
    submit_step(s);
}

/* ---- The request ----------------------------------------------------------------------------- */

static enum pawl_status submit_read(struct ask *q, struct submit *s, int64_t *wait_us,
                                    struct signal_spec *signal, struct pawl_err *err)
{
    struct bytes header_id = BYTES_NONE;
    struct json *body = NULL;
    enum pawl_status st = ask_wait_us(q, 0, wait_us, err);
    if (st == PAWL_OK)
        st = body_json(q, false, &body, err);
    if (st == PAWL_OK)
        st = ask_idempotency_key(q, &header_id, err);
    if (st == PAWL_OK)
        st = submit_read_json(q->a, body, q->api->call_timeout_us, &s->spec, signal, err);
    return st == PAWL_OK ? spec_complete(q, header_id, &s->spec, err) : st;
}

void submit_begin(struct ask *q, struct submit *s, int64_t wait_us)
{
    s->write.job.op =
        (struct op){ .kind = OP_ACCEPT, .accept = { .v = &s->spec, .n = 1, .want_result = true } };
    s->write.job.len = s->spec.input.bytes.len;
    s->write.id = s->spec.id;
    s->write.done = submit_written;
    s->write.quiet = submit_quiet;
    s->waits = wait_us > 0;
    if (s->waits) {
        s->wait.done = submit_waited;
        wait_enter(q, &s->wait, s->spec.id);
    }
    ask_write(q, &s->write);
    if (s->waits)
        wait_begin(&s->wait, world_mono(&world_real) + wait_us);
}

void route_submit(struct ask *q)
{
    struct pawl_err err;
    struct signal_spec signal;
    int64_t wait_us;
    struct submit *s = arena_zalloc(q->a, 1, sizeof *s);
    if (!s)
        ask_no_memory(q);
    else if ((err.status = submit_read(q, s, &wait_us, &signal, &err)) != PAWL_OK)
        ask_fail_id(q, &err, name_fault(s->spec.id) ? BYTES_NONE : s->spec.id);
    else if (signal.name.data)
        submit_signal(q, &s->spec, &signal, wait_us);
    else
        submit_begin(q, s, wait_us);
}
