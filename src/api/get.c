/*
 * get.c - one call: as it is, when it has ended, its attempts, its result (get.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/get.h"

#include "api/ask.h"
#include "api/ask_io.h"
#include "api/auth.h"
#include "api/call_json.h"
#include "api/match.h"
#include "api/wait.h"
#include "api/reply.h"
#include "api/routes.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"

/* How often a request that waits reads its call again while the database does not answer. */
#define LOOK_AGAIN_US (250 * MS_US)

/* ---- A call as an answer --------------------------------------------------------------------- */

/* A call that was stored a moment ago must not be answered with a status that means "nothing was
 * stored". */
static void no_memory(struct ask *q, unsigned show)
{
    if (show & SHOW_STORED)
        ask_refusef(q, PAWL_UNKNOWN,
                    "the call is stored, but there is no memory to show it; read it by its id");
    else
        ask_no_memory(q);
}

void reply_call(struct ask *q, const struct call *c, int status, unsigned show)
{
    struct buf *b = ask_buf(q);
    struct http_header h[2];
    size_t from = 0, n = 0;
    if (show & SHOW_LOCATION) {
        buf_add_text(b, "/v1/calls/");
        percent_add(b, c->spec.id);
        from = b->len;
    }
    call_add(b, c, ask_show(q, show));
    if (!buf_ok(b)) {
        no_memory(q, show);
        return;
    }
    if (!status)
        status = pawl_state_ended(c->state) ? 200 : 202;
    if (from)
        h[n++] = (struct http_header){ BYTES("Location"), { b->data, from } };
    if (show & SHOW_RETRY && !pawl_state_ended(c->state))
        h[n++] = (struct http_header){ BYTES("Retry-After"), BYTES("1") };
    ask_reply_raw(q, &(struct http_reply){ .status = status,
                                           .headers = h,
                                           .n_headers = n,
                                           .body = { b->data + from, b->len - from } });
}

/* ---- Finding one ----------------------------------------------------------------------------- */

/* Find out whether the archive has a call that is gone. If that fails, the answer says nothing
 * about it. */
static void archive_ask(struct ask_read *rd, struct store *s, struct bytes id, struct found *out)
{
    struct archived copy;
    struct pawl_err err;
    if (store_archived(s, &rd->arena, id, &copy, &err) == PAWL_OK &&
        principal_sees(&rd->ask->who, copy.call.spec.client))
        out->archived_us = copy.archived_us;
}

static enum pawl_status say_gone(struct ask_read *rd, struct bytes id, const struct found *f)
{
    char when[TIME_TEXT_LEN + 1];
    if (!f->archived_us)
        return err_set(&rd->err, PAWL_GONE, "call \"%.*s\" ended %s and is no longer kept",
                       BYTES_ARG(id), pawl_state_name(f->call.state));
    time_text(f->archived_us, when);
    return err_set(&rd->err, PAWL_GONE,
                   "call \"%.*s\" ended %s and was archived at %s: ?archived=true (pawl get "
                   "--archived) shows it",
                   BYTES_ARG(id), pawl_state_name(f->call.state), when);
}

enum pawl_status call_find(struct ask_read *rd, struct store *s, struct bytes id, unsigned with,
                           struct found *out)
{
    struct get g = { .ids = &id, .n = 1, .with = with };
    *out = (struct found){ 0 };
    enum pawl_status st = store_get(s, &rd->arena, &g, &rd->err);
    if (st != PAWL_OK)
        return st;
    out->call = g.out[0];
    if (g.found[0] == PAWL_GONE) {
        archive_ask(rd, s, id, out);
        return say_gone(rd, id, out);
    }
    /* To another client the call does not exist. */
    if (g.found[0] != PAWL_OK || !principal_sees(&rd->ask->who, out->call.spec.client))
        return err_set(&rd->err, PAWL_NOT_FOUND, "no call \"%.*s\"", BYTES_ARG(id));
    return PAWL_OK;
}

void refuse_found(struct ask *q, const struct pawl_err *err, struct bytes id, const struct found *f)
{
    struct call times = f->call;
    bool gone = err->status == PAWL_GONE;
    ask_refuse(q, &(struct refusal){ .status = err->status,
                                     .text = err->text,
                                     .id = id,
                                     .state = gone ? times.state : 0,
                                     .times = gone ? &times : NULL });
}

/* ---- Reading one ----------------------------------------------------------------------------- */

/* One call that is being read. */
struct call_read {
    struct ask_read read; /* first */
    struct bytes id;
    struct found got;
    int status;
    unsigned show;
    void (*found)(struct call_read *cr); /* called when it was found and may be seen */
    void (*hand)(struct ask *q, const struct call *c, void *ctx); /* for read_call() */
    void *ctx;
    struct wait wait; /* for GET with wait */
    int64_t until_us;
    bool waits;
};

static enum pawl_status call_work(struct ask_read *rd, struct store *s)
{
    struct call_read *cr = (struct call_read *)rd;
    return call_find(rd, s, cr->id, WITH_INPUT | WITH_RESULT, &cr->got);
}

/* Free what it holds, before the ask ends. */
static void call_read_end(struct call_read *cr)
{
    ask_read_end(&cr->read);
    wait_end(&cr->wait);
}

static void refuse_read(struct call_read *cr)
{
    struct ask *q = cr->read.ask;
    const struct call *c = &cr->got.call;
    struct refusal why = { .status = cr->read.status, .text = cr->read.err.text, .id = cr->id };
    struct call times;
    if (cr->show & SHOW_STORED && (why.status == PAWL_BUSY || why.status == PAWL_NO_MEMORY)) {
        why.status = PAWL_UNKNOWN;
        why.text = "the call is stored, but could not be read back; read it by its id";
    }
    if (why.status == PAWL_GONE) {
        times = *c;
        why.times = &times;
        why.state = c->state;
    }
    call_read_end(cr);
    ask_refuse(q, &why);
}

/* Read again? A database that is away, or a connection that was cut a moment ago, is no answer for
 * a request that waits: it is repeated until the call ends or the time is up. */
static bool looks_again(const struct call_read *cr)
{
    return cr->waits && cr->read.status == PAWL_BUSY && world_mono(&world_real) < cr->until_us;
}

static void call_read_done(struct ask_read *rd)
{
    struct call_read *cr = (struct call_read *)rd;
    if (rd->status == PAWL_OK) {
        cr->found(cr);
        return;
    }
    if (looks_again(cr)) {
        ask_read_end(rd);
        wait_begin(&cr->wait, MIN(world_mono(&world_real) + LOOK_AGAIN_US, cr->until_us));
        return;
    }
    /* Completed concurrently: wait_done() answers, or refuses if the client may not see the call.
     */
    if (!cr->waits || wait_leave(&cr->wait))
        refuse_read(cr);
}

static struct call_read *call_read_new(struct ask *q, struct bytes id, unsigned show)
{
    struct call_read *cr = arena_zalloc(q->a, 1, sizeof *cr);
    if (!cr) {
        no_memory(q, show);
        return NULL;
    }
    cr->id = id;
    cr->show = show;
    cr->read.work = call_work;
    cr->read.done = call_read_done;
    return cr;
}

static void found_show(struct call_read *cr)
{
    struct ask *q = cr->read.ask;
    struct arena keep = cr->read.arena; /* The call lives in it, and cr is freed with the answer. */
    struct call c = cr->got.call;
    wait_end(&cr->wait);
    reply_call(q, &c, cr->status, cr->show);
    arena_release(&keep);
}

void show_call(struct ask *q, struct bytes id, int status, unsigned show)
{
    struct call_read *cr = call_read_new(q, id, show);
    if (!cr)
        return;
    cr->status = status;
    cr->found = found_show;
    ask_read(q, &cr->read);
}

static void found_hand(struct call_read *cr)
{
    struct ask *q = cr->read.ask;
    struct arena keep = cr->read.arena;
    struct call c = cr->got.call;
    cr->hand(q, &c, cr->ctx);
    arena_release(&keep);
}

void read_call(struct ask *q, struct bytes id, unsigned show,
               void (*found)(struct ask *q, const struct call *c, void *ctx), void *ctx)
{
    struct call_read *cr = call_read_new(q, id, show);
    if (!cr)
        return;
    cr->found = found_hand;
    cr->hand = found;
    cr->ctx = ctx;
    ask_read(q, &cr->read);
}

/* ---- GET /v1/calls/{id} ---------------------------------------------------------------------- */

/* Register before reading, so that an end between the two is not missed. */
static void wait_look(struct ask *q, struct call_read *cr)
{
    wait_enter(q, &cr->wait, cr->id);
    ask_read(q, &cr->read);
}

/* The call ended before a read succeeded: may this client see it? */
static void told_unseen(struct call_read *cr, const struct wait *w)
{
    cr->read.status = PAWL_OK;
    if (!principal_sees(&cr->read.ask->who, w->call.spec.client))
        cr->read.status =
            err_set(&cr->read.err, PAWL_NOT_FOUND, "no call \"%.*s\"", BYTES_ARG(cr->id));
}

static void wait_done(struct wait *w, enum wait_end how)
{
    struct call_read *cr = (struct call_read *)((char *)w - offsetof(struct call_read, wait));
    struct ask *q = cr->read.ask;
    if (how == WAIT_OVER && w->why == WAIT_TIME_UP && looks_again(cr)) {
        wait_look(q, cr);
        return;
    }
    if (how == WAIT_TOLD && cr->read.status == PAWL_BUSY)
        told_unseen(cr, w);
    if (cr->read.status != PAWL_OK) {
        refuse_read(cr);
        return;
    }
    if (how == WAIT_TOLD) {
        struct arena keep = w->arena;
        struct call c = w->call;
        ask_read_end(&cr->read);
        reply_call(q, &c, 200, SHOW_ALL);
        arena_release(&keep);
        return;
    }
    /* What was read may be old by now: read it again. */
    call_read_end(cr);
    show_call(q, cr->id, 200, SHOW_ALL);
}

static void found_wait(struct call_read *cr)
{
    if (pawl_state_ended(cr->got.call.state)) {
        cr->waits = false;
        if (wait_leave(&cr->wait))
            found_show(cr);
        return;
    }
    ask_read_end(&cr->read); /* A caller that waits should hold little memory. */
    wait_begin(&cr->wait, cr->until_us);
}

/* ---- GET /v1/calls/{id}?archived=true -------------------------------------------------------- */

struct archive_read {
    struct ask_read read; /* first */
    struct archived copy;
};

static enum pawl_status archived_work(struct ask_read *rd, struct store *s)
{
    struct archive_read *ar = (struct archive_read *)rd;
    struct bytes id = rd->ask->path[0];
    enum pawl_status st = store_archived(s, &rd->arena, id, &ar->copy, &rd->err);
    if (st == PAWL_OK && !principal_sees(&rd->ask->who, ar->copy.call.spec.client))
        st = err_set(&rd->err, PAWL_NOT_FOUND, "no call \"%.*s\" in the archive", BYTES_ARG(id));
    return st;
}

static void archived_done(struct ask_read *rd)
{
    struct archive_read *ar = (struct archive_read *)rd;
    struct ask *q = rd->ask;
    if (rd->status != PAWL_OK) {
        struct pawl_err err = ask_read_why(rd);
        ask_fail_id(q, &err, q->path[0]);
        return;
    }
    struct buf *b = ask_buf(q);
    call_add(b, &ar->copy.call, ask_show(q, SHOW_ALL) | SHOW_OPEN);
    add_time(b, "archived_at", ar->copy.archived_us);
    buf_add_char(b, '}');
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

static void archived_begin(struct ask *q)
{
    struct archive_read *ar = arena_zalloc(q->a, 1, sizeof *ar);
    if (!ar) {
        ask_no_memory(q);
        return;
    }
    ar->read.work = archived_work;
    ar->read.done = archived_done;
    ask_read(q, &ar->read);
}

void route_get(struct ask *q)
{
    struct pawl_err err;
    int64_t wait_us;
    if (ask_query(q, "archived").n && ask_query(q, "wait").n) {
        ask_refusef(
            q, PAWL_INVALID,
            "field \"wait\": cannot be combined with archived: a call in the archive has ended");
        return;
    }
    if (ask_query(q, "archived").n) {
        archived_begin(q);
        return;
    }
    if (ask_wait_us(q, 0, &wait_us, &err) != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    if (!wait_us) {
        show_call(q, q->path[0], 200, SHOW_ALL);
        return;
    }
    struct call_read *cr = call_read_new(q, q->path[0], SHOW_ALL);
    if (!cr)
        return;
    cr->status = 200;
    cr->found = found_wait;
    cr->until_us = world_mono(&world_real) + wait_us;
    cr->waits = true;
    cr->wait.done = wait_done;
    wait_look(q, cr);
}

/* ---- GET /v1/calls/{id}/result --------------------------------------------------------------- */

static void refuse_result(struct call_read *cr, const struct call *c)
{
    struct ask *q = cr->read.ask;
    const char *text =
        arena_printf(q->a, "call \"%.*s\" is %s%s%.*s", BYTES_ARG(cr->id),
                     pawl_state_name(c->state), c->error.len ? ": " : "", BYTES_ARG(c->error));
    enum pawl_state state = c->state;
    ask_read_end(&cr->read);
    ask_refuse(
        q, &(struct refusal){ .status = PAWL_STATE, .text = text, .id = cr->id, .state = state });
}

static void found_result(struct call_read *cr)
{
    struct ask *q = cr->read.ask;
    struct call c = cr->got.call;
    if (!pawl_state_ended(c.state)) {
        found_show(cr);
        return;
    }
    if (c.state != PAWL_COMPLETED) {
        refuse_result(cr, &c);
        return;
    }
    struct arena keep = cr->read.arena;
    bool bytes = c.result.form == PAWL_BYTES;
    ask_reply_raw(q, &(struct http_reply){
                         .status = 200,
                         .content_type = bytes ? "application/octet-stream" : NULL,
                         .body = c.result.form == PAWL_NOTHING ? BYTES("null") : c.result.bytes });
    arena_release(&keep);
}

void route_result(struct ask *q)
{
    struct call_read *cr = call_read_new(q, q->path[0], SHOW_ALL);
    if (!cr)
        return;
    cr->status = 202;
    cr->found = found_result;
    ask_read(q, &cr->read);
}

/* ---- GET /v1/calls/{id}/attempts ------------------------------------------------------------- */

struct attempts_read {
    struct ask_read read; /* first */
    struct bytes id;
    struct found found;
    struct attempts attempts;
};

static enum pawl_status attempts_work(struct ask_read *rd, struct store *s)
{
    struct attempts_read *ar = (struct attempts_read *)rd;
    enum pawl_status st = call_find(rd, s, ar->id, 0, &ar->found);
    if (st == PAWL_OK)
        st = store_attempts(s, &rd->arena, ar->id, &ar->attempts, &rd->err);
    return st;
}

static void attempt_add(struct buf *b, const struct attempt *t, bool secrets)
{
    const char *kind = t->how == END_TIMEOUT ? "timeout" : t->how == END_LOST ? "lost" : "error";
    json_add_comma(b);
    buf_add_char(b, '{');
    add_int(b, "try", t->attempt_no);
    add_text(b, "kind", bytes_of(kind));
    add_text(b, "error", secrets ? t->error : BYTES_NONE);
    add_text(b, "node", t->node);
    add_time(b, "started_at", t->started_us);
    add_time(b, "finished_at", t->finished_us);
    buf_add_char(b, '}');
}

static void attempts_done(struct ask_read *rd)
{
    struct attempts_read *ar = (struct attempts_read *)rd;
    struct ask *q = rd->ask;
    struct buf *b = ask_buf(q);
    if (rd->status != PAWL_OK) {
        struct pawl_err err = ask_read_why(rd);
        refuse_found(q, &err, ar->id, &ar->found);
        return;
    }
    buf_add_text(b, "{\"attempts\":[");
    for (size_t i = 0; i < ar->attempts.n; i++)
        attempt_add(b, &ar->attempts.v[i], ask_show(q, SHOW_SECRETS));
    buf_add_text(b, "]}");
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_attempts(struct ask *q)
{
    struct attempts_read *ar = arena_zalloc(q->a, 1, sizeof *ar);
    if (!ar) {
        ask_no_memory(q);
        return;
    }
    ar->id = q->path[0];
    ar->read.work = attempts_work;
    ar->read.done = attempts_done;
    ask_read(q, &ar->read);
}
