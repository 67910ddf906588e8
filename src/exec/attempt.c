/*
 * attempt.c - running one attempt of a call and posting its end to the store (attempt.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/attempt.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "exec/internal.h"
#include "exec/pass.h"
#include "exec/run.h"

/* The answer of a finish: its error texts and little else. */
#define END_LEN_MAX (1 << 20)

/* Most neighbours in a claim have the same handler, so `before` is compared first. */
static int handler_of(const struct registry *r, const struct call_spec *s, int before)
{
    if (before >= 0 && bytes_eq(r->v[before].type_b, s->type) &&
        bytes_eq(r->v[before].method_b, s->method))
        return before;
    return registry_find(r, s->type, s->method);
}

static void attempt_make(struct pawl_call *t, struct lease_run *l, struct run *r,
                         const struct call *c)
{
    t->e = l->e;
    t->lease = l;
    t->run = r;
    t->call = c;
    t->input = c->spec.input;
    atomic_init(&t->undoing, false);
    atomic_init(&t->stage, ATTEMPT_QUEUED);
    atomic_init(&t->stop, STOP_NONE);
    atomic_init(&t->refs, 1); /* held by its finish */
    one_shot_init(&t->stopped);
    arena_init(&t->arena, ATTEMPT_LEN_MAX);
    arena_init(&t->end_arena, END_LEN_MAX);
    t->item = (struct finish_item){ .seq = c->seq, .id = c->spec.id, .retry_in_us = -1 };
    t->finish = (struct finish){ .token = l->token, .v = &t->item, .n = 1 };
}

/* How many of the claimed calls from here on form one run: calls of one key are adjacent. */
static size_t run_len(const struct claim *c, size_t from)
{
    struct bytes key = c->calls[from].spec.key;
    size_t n = 1;
    while (key.data && from + n < c->n && bytes_eq(c->calls[from + n].spec.key, key))
        n++;
    return n;
}

/* Make what only a longer run needs. */
static bool flow_make(struct run *r, struct lease_run *l)
{
    pthread_condattr_t attr;
    struct flow *f = arena_zalloc(&l->arena, 1, sizeof(*f));
    if (!f)
        return false;
    f->items = arena_alloc(&l->arena, r->n * sizeof(*f->items));
    if (!f->items)
        return false;
    pthread_mutex_init(&f->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&f->moved, &attr);
    pthread_condattr_destroy(&attr);
    f->n = r->n;
    f->next = l->flows;
    l->flows = f;
    r->flow = f;
    return true;
}

enum pawl_status attempt_make_all(struct lease_run *l, struct run **out)
{
    const struct claim *c = &l->job.op.claim;
    struct pawl_call *v = arena_zalloc(&l->arena, c->n, sizeof(*v));
    struct run *runs = arena_zalloc(&l->arena, c->n, sizeof(*runs)), *last = NULL;
    if (!v || !runs)
        return PAWL_NO_MEMORY;
    int handler = -1;
    atomic_init(&l->left, c->n);
    for (size_t i = 0; i < c->n; last = runs++) {
        runs->v = &v[i];
        runs->n = run_len(c, i);
        if (c->states)
            runs->state = c->states[i].payload;
        if (runs->n > 1 && !flow_make(runs, l))
            return PAWL_NO_MEMORY;
        for (size_t k = 0; k < runs->n; k++, i++) {
            attempt_make(&v[i], l, runs, &c->calls[i]);
            handler = handler_of(&l->e->registry, &c->calls[i].spec, handler);
            v[i].handler = handler;
        }
        if (last)
            last->next = runs;
        else
            *out = runs;
    }
    return PAWL_OK;
}

void lease_run_reset(struct lease_run *l)
{
    for (struct flow *f = TAKE(l->flows); f; f = f->next) {
        pthread_mutex_destroy(&f->lock);
        pthread_cond_destroy(&f->moved);
    }
    l->begun = NULL;
    arena_reset(&l->arena);
}

void lease_run_free(struct lease_run *l)
{
    if (!l)
        return;
    lease_run_reset(l);
    arena_release(&l->arena);
    mem_free(l);
}

void attempt_unref(struct pawl_call *t)
{
    if (atomic_fetch_sub(&t->refs, 1) > 1)
        return;
    struct lease_run *l = t->lease;
    session_free(t);
    pass_free(t);
    arena_release(&t->arena);
    arena_release(&t->end_arena);
    lease_run_unref(l);
}

void lease_run_unref(struct lease_run *l)
{
    if (atomic_fetch_sub(&l->left, 1) == 1)
        lease_run_free(l);
}

struct pawl_call *attempt_of(struct write_job *j)
{
    return (struct pawl_call *)((char *)j - offsetof(struct pawl_call, job));
}

void attempt_tell(struct pawl_call *t, enum attempt_stop why)
{
    int none = STOP_NONE;
    if (!atomic_compare_exchange_strong(&t->stop, &none, why))
        return;
    one_shot_set(&t->stopped);
    if (t->also)
        one_shot_set(t->also);
}

void attempt_stop(struct pawl_call *t, enum attempt_stop why)
{
    pthread_mutex_lock(&t->e->pool.lock);
    attempt_tell(t, why);
    pthread_mutex_unlock(&t->e->pool.lock);
}

void attempt_also(struct pawl_call *t, struct one_shot *g)
{
    pthread_mutex_lock(&t->e->pool.lock);
    t->also = g;
    /* It was told to stop before: no other thread will open the event. */
    if (g && atomic_load(&t->stop) != STOP_NONE)
        one_shot_set(g);
    pthread_mutex_unlock(&t->e->pool.lock);
}

bool attempt_take_over(struct pawl_call *t, enum attempt_stage from, enum ending how,
                       const char *error)
{
    int expected = from;
    if (!atomic_compare_exchange_strong(&t->stage, &expected, ATTEMPT_OVER))
        return false;
    snprintf(t->their_error, sizeof(t->their_error), "%s", error ? error : "");
    t->theirs = (struct finish_item){ .seq = t->call->seq,
                                      .id = t->call->spec.id,
                                      .how = how,
                                      .retry_in_us = -1,
                                      .started_us = from == ATTEMPT_RUNNING ? t->started_us : 0,
                                      .error = error ? bytes_of(t->their_error) : BYTES_NONE };
    if (how == END_TIMEOUT)
        pass_timed_out(t, &t->theirs);
    if (!session_abort(t))
        run_end(t, &t->theirs);
    return true;
}

void attempt_error(struct pawl_call *t, enum ending how, struct bytes text)
{
    t->item.how = how;
    t->item.error = utf8_cut(text, ERROR_LEN_MAX);
    t->item.result = (struct payload){ 0 };
}

/* The handler returned a number of its own. */
static void answer_code(struct pawl_call *t, int code)
{
    char *text = arena_printf(&t->arena, "the handler returned %d", code);
    attempt_error(t, END_ERROR, text ? bytes_of(text) : BYTES("the handler returned an error"));
}

void attempt_settle(struct pawl_call *t, int code)
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
    if (f->how == END_RESULT && t->state_fault.data)
        attempt_error(t, t->state_for_good ? END_REFUSE : END_ERROR, t->state_fault);
    if (f->how != END_RESULT)
        f->state_do = STATE_KEEP; /* A failed attempt does not change the state. */
    if (f->how != END_ERROR)
        return;
    /* An error of a handler that was told to stop is no failure of the work: after a cancel request
     * the call is cancelled, in a stopping process it is handed back. */
    int stop = atomic_load(&t->stop);
    if (stop == STOP_CANCEL_REQUEST)
        f->how = END_CANCELLED;
    else if (stop == STOP_PROCESS)
        f->how = END_RELEASE;
}

static void run_handler(struct pawl_call *t)
{
    const struct call_spec *s = &t->call->spec;
    int64_t again_us;
    if (t->call->flow && !pass_open(t, &again_us)) {
        attempt_settle(t, 0);
        attempt_error(t, END_LATER, BYTES_NONE);
        t->item.retry_in_us = again_us;
        t->item.started_us = 0; /* no handler began */
        t->ran = false;
        return;
    }
    if (t->handler >= 0) {
        attempt_settle(t, t->e->registry.v[t->handler].handler(t));
        return;
    }
    char *text = arena_printf(&t->arena, "%.*s has no method \"%.*s\" on node \"%s\"",
                              BYTES_ARG(s->type), BYTES_ARG(s->method), t->e->conf.node);
    attempt_settle(t, 0);
    attempt_error(t, END_ERROR, text ? bytes_of(text) : BYTES("no such method"));
    t->item.retry_in_us = -1;
}

bool attempt_run(struct pawl_call *t)
{
    int queued = ATTEMPT_QUEUED;
    atomic_fetch_add(&t->refs, 1); /* held by the handler */
    t->started_us = MAX(exec_now(t->e), t->call->claimed_us);
    t->began_us = world_mono(&world_real);
    t->state = t->run->state;
    /* A cancel request found it queued behind other calls of its run. */
    if (atomic_load(&t->stop) == STOP_CANCEL_REQUEST &&
        attempt_take_over(t, ATTEMPT_QUEUED, END_CANCELLED, NULL))
        return false;
    if (!atomic_compare_exchange_strong(&t->stage, &queued, ATTEMPT_RUNNING))
        return false;
    t->ran = true;
    run_handler(t);
    return attempt_close(t, true);
}

bool attempt_close(struct pawl_call *t, bool returns)
{
    bool finish = pass_end(t);
    int running = ATTEMPT_RUNNING;
    if (!atomic_compare_exchange_strong(&t->stage, &running, ATTEMPT_OVER))
        return false; /* Its deadline or a stop ended it first: its answer is void. */
    if (!finish) {
        run_let_go(t);
        return false;
    }
    session_check(t);
    bool result = t->item.how == END_RESULT;
    if (result)
        run_keep_state(t);
    if (returns)
        pool_ending(t);
    if (!session_finish(t))
        run_end(t, &t->item);
    return result;
}
