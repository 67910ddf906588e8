/*
 * try.c - running one try and seeing its end to the store.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/try.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "exec/exec.h"

/* A finish's answer: its error text and little else. */
#define END_LEN_MAX (1 << 16)

enum pawl_status try_make_all(struct lease_run *l, struct pawl_call **out)
{
    const struct claim *c = &l->job.op.claim;
    struct pawl_call *v = arena_zalloc(&l->arena, c->n, sizeof(*v));
    if (!v)
        return PAWL_NO_MEMORY;
    atomic_init(&l->left, c->n);
    for (size_t i = 0; i < c->n; i++) {
        struct pawl_call *t = &v[i];
        t->e = l->e;
        t->lease = l;
        t->call = &c->calls[i];
        atomic_init(&t->stage, TRY_QUEUED);
        atomic_init(&t->stop, STOP_NONE);
        atomic_init(&t->refs, 1); /* its finish */
        gate_init(&t->stopped);
        arena_init(&t->arena, TRY_LEN_MAX);
        arena_init(&t->end_arena, END_LEN_MAX);
        t->item =
            (struct finish_item){ .seq = t->call->seq, .id = t->call->spec.id, .retry_in_us = -1 };
        t->finish = (struct finish){ .token = l->token, .v = &t->item, .n = 1 };
    }
    *out = v;
    return PAWL_OK;
}

void lease_run_free(struct lease_run *l)
{
    if (!l)
        return;
    arena_release(&l->arena);
    mem_free(l);
}

void try_unref(struct pawl_call *t)
{
    if (atomic_fetch_sub(&t->refs, 1) > 1)
        return;
    struct lease_run *l = t->lease;
    session_free(t);
    arena_release(&t->arena);
    arena_release(&t->end_arena);
    if (atomic_fetch_sub(&l->left, 1) == 1)
        lease_run_free(l);
}

void try_stop(struct pawl_call *t, enum try_stop why)
{
    int none = STOP_NONE;
    if (!atomic_compare_exchange_strong(&t->stop, &none, why))
        return;
    gate_open(&t->stopped);
    pthread_mutex_lock(&t->e->pool.lock);
    if (t->also)
        gate_open(t->also);
    pthread_mutex_unlock(&t->e->pool.lock);
}

void try_also(struct pawl_call *t, struct gate *g)
{
    pthread_mutex_lock(&t->e->pool.lock);
    t->also = g;
    /* Told before we asked: `stop` was set, and nobody will come again. */
    if (g && atomic_load(&t->stop) != STOP_NONE)
        gate_open(g);
    pthread_mutex_unlock(&t->e->pool.lock);
}

void try_post_finish(struct pawl_call *t, struct finish_item *v)
{
    size_t sent = v->how == END_RESULT ? v->n_send : 0;
    struct pawl_err err;
    t->finish.v = v;
    t->job = (struct job){ .op = { .kind = OP_FINISH, .a = &t->end_arena, .finish = t->finish },
                           .done = pool_finish_done,
                           .weight = 1 + sent,
                           .len = v->result.bytes.len };
    for (size_t i = 0; i < sent; i++)
        t->job.len += v->send[i].input.bytes.len;
    if (queue_put(&t->e->queue, &t->job, true, &err) != PAWL_OK)
        try_unref(t); /* The database is closed: the lease is found and returned by the next start.
                       */
}

bool try_take_over(struct pawl_call *t, enum try_stage from, enum ending how, const char *error)
{
    int expected = from;
    if (!atomic_compare_exchange_strong(&t->stage, &expected, TRY_OVER))
        return false;
    snprintf(t->their_error, sizeof(t->their_error), "%s", error ? error : "");
    t->theirs = (struct finish_item){ .seq = t->call->seq,
                                      .id = t->call->spec.id,
                                      .how = how,
                                      .retry_in_us = -1,
                                      .started_us = from == TRY_RUNNING ? t->started_us : 0,
                                      .error = error ? bytes_of(t->their_error) : BYTES_NONE };
    if (!session_abort(t))
        try_post_finish(t, &t->theirs);
    return true;
}

void try_error(struct pawl_call *t, enum ending how, struct bytes text)
{
    t->item.how = how;
    t->item.error = utf8_cut(text, ERROR_LEN_MAX);
    t->item.result = (struct payload){ 0 };
}

/* A number the handler made up itself. */
static void answer_code(struct pawl_call *t, int code)
{
    char *text = arena_printf(&t->arena, "the handler returned %d", code);
    try_error(t, END_ERROR, text ? bytes_of(text) : BYTES("the handler returned an error"));
}

/* From what the handler returned and said to how the try ended. */
static void settle(struct pawl_call *t, int code)
{
    struct finish_item *f = &t->item;
    f->started_us = t->started_us;
    f->send = t->send;
    f->n_send = t->n_send;
    if (code == 0) {
        if (!t->answered || f->how != END_RESULT) {
            f->how = END_RESULT;
            f->result = (struct payload){ 0 };
        }
    } else if (!t->answered || (int)f->how != code) {
        answer_code(t, code);
    }
    if (f->how != END_ERROR)
        return;
    /* Being told to stop is no failure of the work: a wish ends it, a stopping process hands it
     * back. */
    int stop = atomic_load(&t->stop);
    if (stop == STOP_WISH)
        f->how = END_CANCELLED;
    else if (stop == STOP_PROCESS)
        f->how = END_RELEASE;
}

static void run_handler(struct pawl_call *t)
{
    const struct call_spec *s = &t->call->spec;
    pawl_handler *handler = registry_find(&t->e->registry, s->type, s->method);
    if (handler) {
        settle(t, handler(t));
        return;
    }
    char *text = arena_printf(&t->arena, "%.*s has no method \"%.*s\" on node \"%s\"",
                              BYTES_ARG(s->type), BYTES_ARG(s->method), t->e->conf.node);
    settle(t, 0);
    try_error(t, END_ERROR, text ? bytes_of(text) : BYTES("no such method"));
    t->item.retry_in_us = -1;
}

void try_run(struct pawl_call *t)
{
    int queued = TRY_QUEUED;
    atomic_fetch_add(&t->refs, 1); /* the handler */
    t->started_us = exec_now(t->e);
    t->began_us = world_mono(&world_real);
    if (!atomic_compare_exchange_strong(&t->stage, &queued, TRY_RUNNING))
        return;
    run_handler(t);
    int running = TRY_RUNNING;
    if (!atomic_compare_exchange_strong(&t->stage, &running, TRY_OVER))
        return; /* Its deadline or a stop came first: whatever it answered is void. */
    if (!session_finish(t))
        try_post_finish(t, &t->item);
}
