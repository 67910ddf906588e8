/*
 * sessions.c - POST /v1/sessions/{session}/requests: a call whose key is the session, and a client
 * that waits for it.
 *
 * When the wait is over the call stays in line; with "on_timeout":"cancel" it is cancelled if it
 * has not begun. What must stay true: 503 is answered only when the call will not run, and a client
 * whose time is up changes nothing about a call that runs. So the cancel takes pending calls only,
 * and the answer is what is read after it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/ask_io.h"
#include "api/ask_spec.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/get.h"
#include "api/internal.h"
#include "api/list.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/submit.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/spec_json.h"

#define KEY_BEGIN "session:"
#define SESSION_LEN_MAX (NAME_LEN_MAX - (sizeof(KEY_BEGIN) - 1))

struct session {
    struct submit submit; /* first */
    struct ask_write cancel;
    unsigned show;
};

/* An attempt that ended in an error was also a beginning. */
static bool has_begun(const struct call *c)
{
    return c->state == PAWL_PROCESSING || c->counts.attempts || c->counts.lost;
}

/* The last read decides the answer. */
static void answer(struct ask *q, const struct call *c, void *ctx)
{
    struct session *s = ctx;
    if (c->state != PAWL_CANCELLED || has_begun(c)) {
        reply_call(q, c, 0, s->show);
        return;
    }
    const char *text = arena_printf(
        q->a, "session \"%.*s\": the call had not begun when its wait was over, and was cancelled",
        BYTES_ARG(q->path[0]));
    ask_refuse(q, &(struct refusal){ .status = PAWL_BUSY,
                                     .text = text,
                                     .id = s->submit.spec.id,
                                     .state = c->state,
                                     .call = c,
                                     .show = ask_show(q, s->show) });
}

/* Whether the cancel succeeded or not, the call itself says what became of it. */
static void cancel_written(struct ask_write *w)
{
    struct session *s = (struct session *)((char *)w - offsetof(struct session, cancel));
    decided(w->ask->api, &w->job.op);
    ask_write_end(w);
    read_call(w->ask, s->submit.spec.id, s->show, answer, s);
}

static void looked(struct ask *q, const struct call *c, void *ctx)
{
    struct session *s = ctx;
    if (c->state != PAWL_PENDING || has_begun(c)) {
        answer(q, c, s);
        return;
    }
    s->cancel.job.op = (struct op){ .kind = OP_CANCEL,
                                    .by_id = { .id = s->submit.spec.id, .only_pending = true } };
    s->cancel.done = cancel_written;
    ask_write(q, &s->cancel);
}

static void session_late(struct submit *submit, bool duplicate)
{
    struct session *s = (struct session *)submit;
    s->show =
        SHOW_ALL | SHOW_LOCATION | SHOW_STORED | SHOW_RETRY | (duplicate ? SHOW_DUPLICATE : 0);
    read_call(submit->write.ask, submit->spec.id, s->show, looked, s);
}

/* ---- The request ----------------------------------------------------------------------------- */

static enum pawl_status read_key(struct ask *q, struct bytes *out, struct pawl_err *err)
{
    struct bytes id = q->path[0];
    if (id.len > SESSION_LEN_MAX)
        return err_set(err, PAWL_INVALID, "field \"session\": is %zu bytes, limit %zu", id.len,
                       SESSION_LEN_MAX);
    *out = bytes_of(arena_printf(q->a, KEY_BEGIN "%.*s", BYTES_ARG(id)));
    return out->data ? PAWL_OK : err_no_memory(err, "a session's key");
}

static enum pawl_status session_read(struct ask *q, struct session *s, int64_t *wait_us,
                                     struct pawl_err *err)
{
    struct call_spec *spec = &s->submit.spec;
    struct bytes header_id, key;
    struct json *body;
    bool cancel = false;
    enum pawl_status st = read_key(q, &key, err);
    if (st == PAWL_OK)
        st = ask_wait_us(q, q->api->session_wait_us, wait_us, err);
    if (st == PAWL_OK)
        st = body_json(q, false, &body, err);
    if (st == PAWL_OK)
        st = ask_idempotency_key(q, &header_id, err);
    if (st == PAWL_OK)
        st = session_read_json(q->a, body, q->api->call_timeout_us, spec, &cancel, err);
    if (st != PAWL_OK)
        return st;
    spec->key = key;
    s->submit.show = SHOW_RETRY;
    s->submit.late = cancel ? session_late : NULL;
    return spec_complete(q, header_id, spec, err);
}

void route_session(struct ask *q)
{
    struct pawl_err err;
    int64_t wait_us;
    struct session *s = arena_zalloc(q->a, 1, sizeof *s);
    if (!s)
        ask_no_memory(q);
    else if ((err.status = session_read(q, s, &wait_us, &err)) != PAWL_OK)
        ask_fail(q, &err);
    else
        submit_begin(q, &s->submit, wait_us);
}
