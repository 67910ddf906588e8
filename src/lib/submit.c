/*
 * submit.c - submit one and many, submit and wait, get.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "exec/one_shot.h"
#include "exec/write_job.h"
#include "exec/attempt.h"
#include "exec/waiter.h"
#include "lib/lib.h"

/* How often a caller whose time is up checks whether the commit of its accept hangs. */
#define ANSWER_LOOK_US (100 * MS_US)
/* How often a waiting caller reads its call again while the database does not answer. */
#define LOOK_AGAIN_US (100 * MS_US)

/* Only a caller that knows the id can act on UNKNOWN, and the id may have been made here: put it
 * before `why`. A long id was given by the caller, and is cut. */
static enum pawl_status unknown_of(struct bytes id, const char *why, struct pawl_err *err)
{
    return err_set(err, PAWL_UNKNOWN, "call \"%.*s\": %.110s", (int)MIN(id.len, 76), id.data, why);
}

/* ---- Many ------------------------------------------------------------------------------------ */

static void receipt_of(const struct exec *e, const struct call_spec *s, const struct accepted *r,
                       struct pawl_receipt *out)
{
    *out = (struct pawl_receipt){
        .status = r->status, .duplicate = r->duplicate, .state = r->call.state, .seq = r->call.seq
    };
    snprintf(out->id, sizeof(out->id), "%.*s", BYTES_ARG(s->id));
    accepted_error(e, s, r, out->error, sizeof(out->error));
}

static void receipt_refused(const char *id, const struct pawl_err *err, struct pawl_receipt *out)
{
    *out = (struct pawl_receipt){ .status = err->status };
    snprintf(out->id, sizeof(out->id), "%s", id ? id : "");
    snprintf(out->error, sizeof(out->error), "%.190s", err->text);
}

/* One submit in progress: which of the n calls are valid, and where each receipt goes. */
struct batch {
    struct arena a;
    struct call_spec *specs;
    size_t *place; /* specs[k] is v[place[k]] */
    size_t n, len;
};

/* Settle every call; invalid ones get their receipt at once. */
static enum pawl_status settle_all(struct pawl *p, struct batch *b, const struct pawl_spec *v,
                                   size_t n, bool atomic, struct pawl_receipt *out,
                                   struct pawl_err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct pawl_err why = { 0 };
        struct call_spec *s = &b->specs[b->n];
        const struct pawl_spec *given = ARRAY_AT(v, i);
        enum pawl_status st = spec_settle(p, &b->a, given, s, &why);
        if (st == PAWL_OK && b->len + s->input.bytes.len > BATCH_LEN_MAX)
            st = err_set(&why, PAWL_TOO_LARGE, "the batch's inputs exceed %d bytes", BATCH_LEN_MAX);
        if (st == PAWL_OK) {
            b->len += s->input.bytes.len;
            b->place[b->n++] = i;
            snprintf(out[i].id, sizeof(out[i].id), "%.*s", BYTES_ARG(s->id));
            continue;
        }
        receipt_refused(given->id, &why, &out[i]);
        if (st == PAWL_NO_MEMORY || atomic)
            return err_set(err, st, "call %zu of the batch: %s", i, why.text);
    }
    return PAWL_OK;
}

static enum pawl_status send_batch(struct pawl *p, struct batch *b, bool atomic,
                                   struct pawl_receipt *out, struct pawl_err *err)
{
    struct op op = { .kind = OP_ACCEPT,
                     .a = &b->a,
                     .accept = { .v = b->specs, .n = b->n, .atomic = atomic } };
    enum pawl_status st = exec_do(p->e, &op);
    if (st != PAWL_OK) {
        struct pawl_err why = op.err;
        for (size_t k = 0; k < b->n; k++) {
            struct pawl_receipt *r = &out[b->place[k]];
            if (st == PAWL_UNKNOWN)
                unknown_of(b->specs[k].id, op.err.text, &why);
            r->status = st;
            snprintf(r->error, sizeof(r->error), "%.190s", why.text);
        }
        return err_set(err, st, "%s", b->n == 1 ? why.text : op.err.text);
    }
    for (size_t k = 0; k < b->n; k++)
        receipt_of(p->e, &b->specs[k], &op.accept.out[k], &out[b->place[k]]);
    return PAWL_OK;
}

/* The batch was refused as a whole: no receipt may say OK. */
static void refuse_rest(struct pawl_receipt *out, size_t n, enum pawl_status st)
{
    for (size_t i = 0; i < n; i++) {
        if (out[i].status != PAWL_OK)
            continue;
        out[i].status = st;
        snprintf(out[i].error, sizeof(out[i].error), "no call of its batch was stored");
    }
}

enum pawl_status pawl_submit(struct pawl *p, const struct pawl_spec *v, size_t n, unsigned flags,
                             struct pawl_receipt *out, struct pawl_err *err)
{
    bool atomic = flags & PAWL_ATOMIC;
    if (!p || !v || !out || n < 1 || n > BATCH_MAX || flags & ~(unsigned)PAWL_ATOMIC ||
        v->size > STRUCT_SIZE_MAX)
        return err_set(err, PAWL_INVALID, "pawl_submit: an argument is NULL, or n is not 1 to %d",
                       BATCH_MAX);
    struct batch b = { 0 };
    memset(out, 0, n * sizeof(*out));
    arena_init(&b.a, REQUEST_LEN_MAX);
    b.specs = arena_alloc(&b.a, n * sizeof(*b.specs));
    b.place = arena_alloc(&b.a, n * sizeof(*b.place));
    enum pawl_status st = b.specs && b.place ? PAWL_OK : err_no_memory(err, "reading a batch");
    if (st == PAWL_OK)
        st = settle_all(p, &b, v, n, atomic, out, err);
    if (st == PAWL_OK && b.n)
        st = send_batch(p, &b, atomic, out, err);
    if (st != PAWL_OK)
        refuse_rest(out, n, st);
    arena_release(&b.a);
    return st;
}

/* ---- Wait ------------------------------------------------------------------------------------ */

/* One caller that waits. The answer of the accept and the end of the call come from other threads.
 * The caller returns when the accept is answered and the call has ended or the wait is over, or
 * when the commit of the accept has no answer for too long. The caller and the accept each hold a
 * reference; the last one frees it. */
struct caller {
    struct waiter waiter;
    struct write_job job;     /* the accept */
    struct call_spec spec;    /* a copy, where the store thread may use it for longer */
    struct arena arena;       /* the answer of the accept, and what `spec` points to */
    atomic_int refs;          /* the caller, and the accept while it is under way */
    atomic_int state;         /* of the accept */
    atomic_bool late;         /* its commit has no answer for too long */
    struct one_shot over;     /* the wait is over: the call ended, or it was refused, or had ended
                             before,     or the attempt must stop */
    struct one_shot answered; /* the accept is answered: its last access to this struct */
    struct one_shot woken;    /* the end was reported: its last access to this struct */
    struct pawl_shown *shown; /* filled by the thread that reports the end */
    struct exec *e;
    bool told, no_memory; /* `shown` holds the end; there was no memory to copy it */
    bool known;           /* it had ended before: the accept removed the waiter */
    bool duplicate;
    enum pawl_status status;
    struct pawl_err err;
};
enum { ACCEPT_OUT, ACCEPT_LEFT, ACCEPT_ANSWERED };

static struct caller *caller_new(struct exec *e)
{
    struct caller *c = mem_zalloc(sizeof(*c));
    if (!c)
        return NULL;
    c->e = e;
    c->shown = shown_new();
    atomic_init(&c->refs, 1);
    arena_init(&c->arena, REQUEST_LEN_MAX);
    one_shot_init(&c->over);
    one_shot_init(&c->answered);
    one_shot_init(&c->woken);
    return c;
}

static void caller_unref(struct caller *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
        return;
    pawl_shown_free(c->shown);
    arena_release(&c->arena);
    mem_free(c);
}

/* The first of the two wins: the answer of the accept, or the caller that leaves. */
static bool caller_move(struct caller *c, int to)
{
    int out = ACCEPT_OUT;
    return atomic_compare_exchange_strong(&c->state, &out, to);
}

static void caller_take(struct caller *c, const struct call *ended)
{
    c->told = view_fill(&c->shown->arena, ended, &c->shown->view);
    c->no_memory = !c->told;
}

static void caller_told(struct waiter *w, const struct call *ended)
{
    caller_take((struct caller *)w, ended);
}

static void caller_wake(struct waiter *w)
{
    struct caller *c = (struct caller *)w;
    one_shot_set(&c->over);
    one_shot_set(&c->woken);
}

/* The call had ended before: use its answer, unless another thread reports the end at the same
 * time. False: then that thread wakes the caller. */
static bool caller_known(struct caller *c, const struct call *ended)
{
    c->known = exec_unwait(c->e, &c->waiter);
    if (c->known)
        caller_take(c, ended);
    return c->known;
}

/* Runs on the store thread, or, when refused, on the thread that watches commits. */
static void caller_accepted(struct write_job *j)
{
    struct caller *c = (struct caller *)((char *)j - offsetof(struct caller, job));
    const struct op *op = &j->op;
    if (!caller_move(c, ACCEPT_ANSWERED)) {
        caller_unref(c);
        return;
    }
    c->status = op->status;
    bool over = true;
    if (op->status != PAWL_OK) {
        c->err = op->err;
    } else {
        const struct accepted *r = &op->accept.out[0];
        c->status = r->status;
        c->duplicate = r->duplicate;
        if (r->status != PAWL_OK)
            accepted_error(c->e, op->accept.v, r, c->err.text, sizeof(c->err.text));
        else if (pawl_state_ended(r->call.state))
            over = caller_known(c, &r->call);
        else
            over = false; /* its end will be reported */
    }
    if (over)
        one_shot_set(&c->over);
    one_shot_set(&c->answered);
    caller_unref(c);
}

/* Runs on the thread that watches commits. */
static void caller_late(struct write_job *j)
{
    struct caller *c = (struct caller *)((char *)j - offsetof(struct caller, job));
    atomic_store(&c->late, true);
    one_shot_set(&c->over);
}

static enum pawl_status caller_post(struct caller *c, const struct call_spec *spec,
                                    struct pawl_err *err)
{
    bool copied = exec_may_stall(c->e);
    if (!copied)
        c->spec = *spec;
    else if (!call_spec_copy(&c->arena, spec, &c->spec))
        return err_no_memory(err, "waiting for a call");
    c->job = (struct write_job){ .op = { .kind = OP_ACCEPT,
                                         .a = &c->arena,
                                         .accept = { .v = &c->spec, .n = 1, .want_result = true } },
                                 .done = caller_accepted,
                                 .late = caller_late,
                                 .weight = 1,
                                 .len = spec->input.bytes.len };
    atomic_fetch_add(&c->refs, 1);
    enum pawl_status st = exec_post(c->e, &c->job, err);
    if (st != PAWL_OK)
        atomic_fetch_sub(&c->refs, 1);
    return st;
}

/* Set *out when the call has ended. */
static enum pawl_status look(struct exec *e, struct bytes id, struct pawl_shown **out,
                             struct pawl_err *err)
{
    struct pawl_shown *shown = NULL;
    enum pawl_status st = show_now(e, id, &shown, err);
    if (st == PAWL_OK && pawl_state_ended(shown->view.state))
        *out = shown;
    else
        pawl_shown_free(shown);
    return st;
}

/* Read the call before waiting. When the database is away, or a connection just broke, a waiting
 * caller gets no error: read again until the end is reported or the time is up. */
static enum pawl_status look_first(struct caller *c, struct bytes id, int64_t until_us,
                                   struct pawl_shown **out, struct pawl_err *err)
{
    for (;;) {
        enum pawl_status st = look(c->e, id, out, err);
        int64_t now_us = world_mono(&world_real);
        if (st != PAWL_BUSY || now_us >= until_us)
            return st;
        if (one_shot_wait(&c->over, MIN(now_us + LOOK_AGAIN_US, until_us)))
            return PAWL_OK;
    }
}

/* What the caller returns after the wait. A refusal comes first: an end that was reported meanwhile
 * belongs to another call, which has the id. */
static enum pawl_status caller_result(struct caller *c, struct bytes id, struct pawl_shown **out,
                                      struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    if (c->status != PAWL_OK)
        st = err_set(err, c->status, "%s", c->err.text);
    else if (c->told)
        *out = TAKE(c->shown);
    else if (c->no_memory)
        st = err_no_memory(err, "showing a call");
    else
        st = show_now(c->e, id, out, err);
    if (st == PAWL_OK)
        (*out)->view.duplicate = c->duplicate;
    return st;
}

/* Wait until the call ends, the time is up, or the waiting attempt is stopped. False: the commit of
 * the accept has no answer, and the caller leaves. */
static bool caller_wait(struct caller *c, const struct waiting *w, int64_t until_us)
{
    if (w->by)
        attempt_also(w->by, &c->over);
    one_shot_wait(&c->over, until_us);
    if (w->by)
        attempt_also(w->by, NULL);
    while (w->spec && !one_shot_wait(&c->answered, world_mono(&world_real) + ANSWER_LOOK_US))
        if (atomic_load(&c->late) && caller_move(c, ACCEPT_LEFT))
            return false;
    return true;
}

/* Remove the waiter. If the end is being reported right now, wait for that thread's last access. */
static void caller_unwait(struct caller *c)
{
    if (!c->known && !one_shot_is_set(&c->woken) && !exec_unwait(c->e, &c->waiter))
        while (!one_shot_wait(&c->woken, world_mono(&world_real) + SEC_US))
            ;
}

enum pawl_status wait_for(struct exec *e, const struct waiting *w, struct pawl_shown **out,
                          struct pawl_err *err)
{
    int64_t until_us = world_mono(&world_real) + w->wait_us;
    struct caller *c = caller_new(e);
    if (!c || !c->shown) {
        caller_unref(c);
        return err_no_memory(err, "waiting for a call");
    }
    c->waiter = (struct waiter){ .id = w->id, .tell = caller_told, .wake = caller_wake };
    exec_wait(e, &c->waiter);
    *out = NULL;
    enum pawl_status st =
        w->spec ? caller_post(c, w->spec, err) : look_first(c, w->id, until_us, out, err);
    bool left = st == PAWL_OK && !*out && !caller_wait(c, w, until_us);
    caller_unwait(c);
    if (left)
        st = c->status = exec_unknown(&c->err);
    else if (st == PAWL_OK && !*out)
        st = caller_result(c, w->id, out, err);
    if (st == PAWL_UNKNOWN && c->status == PAWL_UNKNOWN)
        unknown_of(w->id, c->err.text, err);
    caller_unref(c);
    return st;
}

static enum pawl_status check_wait(int64_t wait_us, struct pawl_err *err)
{
    if (wait_us < 0 || wait_us > WAIT_MAX_US)
        return err_set(err, PAWL_INVALID, "field \"wait\": must be 0 to %d s",
                       (int)(WAIT_MAX_US / SEC_US));
    return PAWL_OK;
}

enum pawl_status pawl_submit_wait(struct pawl *p, const struct pawl_spec *spec, int64_t wait_us,
                                  struct pawl_shown **out, struct pawl_err *err)
{
    struct call_spec s;
    struct arena a;
    if (!p || !spec || !out)
        return err_set(err, PAWL_INVALID, "pawl_submit_wait: an argument is NULL");
    enum pawl_status st = check_wait(wait_us, err);
    if (st != PAWL_OK)
        return st;
    arena_init(&a, REQUEST_LEN_MAX);
    st = spec_settle(p, &a, spec, &s, err);
    if (st == PAWL_OK)
        st = wait_for(p->e, &(struct waiting){ .spec = &s, .id = s.id, .wait_us = wait_us }, out,
                      err);
    arena_release(&a);
    return st;
}

enum pawl_status pawl_get(struct pawl *p, const char *id, int64_t wait_us, struct pawl_shown **out,
                          struct pawl_err *err)
{
    if (!p || !id || !out)
        return err_set(err, PAWL_INVALID, "pawl_get: an argument is NULL");
    enum pawl_status st = check_wait(wait_us, err);
    const char *fault = name_fault(bytes_of(id));
    if (st == PAWL_OK && fault)
        st = err_set(err, PAWL_INVALID, "field \"id\": %s", fault);
    if (st != PAWL_OK)
        return st;
    if (wait_us)
        return wait_for(p->e, &(struct waiting){ .id = bytes_of(id), .wait_us = wait_us }, out,
                        err);
    return show_now(p->e, bytes_of(id), out, err);
}
