/*
 * worker.c - the worker threads: take a run, execute its calls one after another, take the next.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/log.h"
#include "exec/internal.h"
#include "exec/housekeeping.h"
#include "exec/run.h"

static void list_add(struct pool *p, struct pawl_call *t)
{
    t->prev = NULL;
    t->next = p->running;
    if (p->running)
        p->running->prev = t;
    p->running = t;
    t->in_run_list = true;
    t->deadline_us = world_mono(&world_real) + t->call->spec.timeout_us;
    p->n_running++;
    pool_count_slow(p, t, !durations_quick(&p->durations, t->handler));
}

static void list_remove(struct pool *p, struct pawl_call *t)
{
    if (t->prev)
        t->prev->next = t->next;
    else
        p->running = t->next;
    if (t->next)
        t->next->prev = t->prev;
    t->in_run_list = false;
    p->n_running--;
    pool_count_slow(p, t, false);
    if (t->hung)
        p->hung--;
    if (t->ending)
        atomic_fetch_sub(&p->ending, 1);
    if (t->ending_slow)
        atomic_fetch_sub(&p->ending_slow, 1);
}

/* More threads than slots, because a handler came back from waiting or hanging? */
static bool surplus(const struct pool *p)
{
    return p->threads - p->hung - p->blocked > p->slots;
}

/* This attempt is over; begin the next one of the run, unless the workers are to begin nothing
 * more. Both in one step under the lock, so that another thread always finds one of them in the
 * list. */
static struct pawl_call *pass_on(struct pool *p, struct pawl_call *t, struct pawl_call *next)
{
    int64_t took_us = world_mono(&world_real) - t->began_us;
    struct pawl_call *back = NULL;
    pthread_mutex_lock(&p->lock);
    if (t->ran) /* an attempt that was cancelled before it ran says nothing about its handler */
        durations_note(&p->durations, t->handler, took_us);
    list_remove(p, t);
    if (next && (p->stopping || p->drained || p->replaced))
        back = TAKE(next);
    if (next)
        list_add(p, next);
    pthread_mutex_unlock(&p->lock);
    if (back)
        attempt_take_over(back, ATTEMPT_QUEUED, END_RELEASE, NULL);
    attempt_unref(t);
    return next;
}

/* Execute the calls of a run; its first attempt is in the list. */
static void work_through(struct exec *e, struct run *r)
{
    bool longer = run_enter(r);
    for (struct pawl_call *t = r->v; t;) {
        housekeeping_by(e, t->deadline_us);
        bool on = attempt_run(t);
        t = pass_on(&e->pool, t, run_next(r, on));
    }
    if (longer)
        run_leave(r);
}

static void *worker_main(void *arg)
{
    struct exec *e = arg;
    struct pool *p = &e->pool;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        p->idle++;
        while (!p->head && !p->stopping && !surplus(p))
            pthread_cond_wait(&p->work, &p->lock);
        p->idle--;
        if (!p->head || surplus(p))
            break;
        struct run *r = pool_dequeue(p);
        list_add(p, r->v);
        bool more = p->head && p->idle;
        /* A long run filled what we wanted ahead while it was queued, and occupies one slot now:
         * claim for the idle workers. */
        bool starving = r->n > 1 && p->work_may_be_due && p->idle && !p->head;
        pthread_mutex_unlock(&p->lock);
        if (more)
            pthread_cond_signal(&p->work); /* Each worker wakes the next one, so idle workers cost
                                              nothing. */
        if (starving)
            queue_nudge(&e->queue);
        work_through(e, r);
        pthread_mutex_lock(&p->lock);
    }
    p->threads--;
    bool pass_on = p->head && p->idle;
    pthread_cond_broadcast(&p->quiet);
    pthread_mutex_unlock(&p->lock);
    if (pass_on)
        pthread_cond_signal(&p->work);
    exec_unref(e);
    return NULL;
}

void pool_ending(struct pawl_call *t)
{
    struct pool *p = &t->e->pool;
    if (t->run->flow) /* its worker goes on with the next call of the run */
        return;
    t->ending = true;
    t->ending_slow = atomic_load(&t->slow);
    if (t->ending_slow)
        atomic_fetch_add(&p->ending_slow, 1);
    atomic_fetch_add(&p->ending, 1);
}

void pool_finishes_in_flight(struct exec *e, int more)
{
    struct pool *p = &e->pool;
    pthread_mutex_lock(&p->lock);
    p->finishes_in_flight += more;
    bool tell = p->stopping && !p->finishes_in_flight;
    if (tell)
        pthread_cond_broadcast(&p->quiet);
    pthread_mutex_unlock(&p->lock);
}

bool pool_add_worker(struct exec *e)
{
    struct pool *p = &e->pool;
    pthread_attr_t attr;
    pthread_t thread;
    atomic_fetch_add(&e->refs, 1);
    pthread_mutex_lock(&p->lock);
    p->threads++;
    pthread_mutex_unlock(&p->lock);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attr, worker_main, e);
    pthread_attr_destroy(&attr);
    if (failed) {
        pthread_mutex_lock(&p->lock);
        p->threads--;
        pthread_mutex_unlock(&p->lock);
        exec_unref(e);
    }
    return !failed;
}

void attempt_block(struct pawl_call *t, bool blocked)
{
    struct exec *e = t->e;
    struct pool *p = &e->pool;
    pthread_mutex_lock(&p->lock);
    p->blocked += blocked ? 1 : -1;
    t->blocked = blocked;
    pool_count_slow(p, t, !blocked && !t->hung && !durations_quick(&p->durations, t->handler));
    bool more = blocked && !p->stopping && p->threads - p->hung - p->blocked < p->slots &&
                p->threads < SLOTS_MAX + HUNG_MAX;
    pthread_mutex_unlock(&p->lock);
    if (more && !pool_add_worker(e))
        log_line(LOG_WARN, "no thread could be made in place of a waiting worker");
    if (blocked)
        queue_nudge(&e->queue); /* A slot is free: claim for it. */
}
