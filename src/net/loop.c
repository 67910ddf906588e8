/*
 * loop.c - the loop thread: posted tasks, tasks deferred to the end of an iteration, work on other
 * threads.
 *
 * libuv does the polling. A post is one compare-and-swap; only the first of a burst wakes the loop.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/mem.h"
#include "base/world.h"
#include "net/loop.h"

/* ---- Tasks ----------------------------------------------------------------------------------- */

void loop_post(struct loop *l, struct loop_task *t)
{
    struct loop_task *newest = atomic_load_explicit(&l->posted, memory_order_relaxed);
    do
        t->next = newest;
    while (!atomic_compare_exchange_weak_explicit(&l->posted, &newest, t, memory_order_release,
                                                  memory_order_relaxed));
    /* `t` may be freed by now. The thread that found the list empty wakes the loop for all
     * posts. */
    if (!newest)
        uv_async_send(&l->wake);
}

void loop_stop(struct loop *l)
{
    atomic_store(&l->stop, true);
    uv_async_send(&l->wake);
}

static void tasks_run(struct loop_task *t)
{
    while (t) {
        struct loop_task *next = t->next;
        t->run(t);
        t = next;
    }
}

static struct loop_task *reversed(struct loop_task *newest)
{
    struct loop_task *oldest = NULL;
    while (newest) {
        struct loop_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void on_wake(uv_async_t *wake)
{
    struct loop *l = wake->data;
    tasks_run(reversed(atomic_exchange_explicit(&l->posted, NULL, memory_order_acquire)));
    if (atomic_exchange(&l->stop, false))
        uv_stop(&l->uv);
}

void loop_later(struct loop *l, struct loop_task *t)
{
    t->next = NULL;
    *l->later_end = t;
    l->later_end = &t->next;
}

/* Tasks deferred while these run wait for the next time. */
static void later_run(struct loop *l)
{
    struct loop_task *first = l->later;
    l->later = NULL;
    l->later_end = &l->later;
    tasks_run(first);
}

/* ---- An iteration ---------------------------------------------------------------------------- */

static void on_alarm(uv_timer_t *alarm)
{
    struct loop *l = alarm->data;
    l->alarm_us = 0;
    timers_run(l, world_mono(&world_real));
}

static void alarm_set(struct loop *l)
{
    int64_t at_us = l->timers ? l->timers->at_us : 0;
    if (at_us == l->alarm_us)
        return;
    l->alarm_us = at_us;
    if (!at_us) {
        uv_timer_stop(&l->alarm);
        return;
    }
    uv_update_time(&l->uv);
    int64_t left_us = MAX(at_us - world_mono(&world_real), 0);
    uv_timer_start(&l->alarm, on_alarm, (uint64_t)(left_us + 999) / 1000, 0);
}

static void on_hurry(uv_idle_t *hurry)
{
    (void)hurry;
}

static void on_before(uv_prepare_t *before)
{
    struct loop *l = before->data;
    later_run(l);
    alarm_set(l);
    if (l->later)
        uv_idle_start(&l->hurry, on_hurry);
    else
        uv_idle_stop(&l->hurry);
}

static void on_after(uv_check_t *after)
{
    later_run(after->data);
}

/* libuv uses write(2): for a client that has left it must return EPIPE, not end the process. */
static void run_without_sigpipe(uv_loop_t *uv)
{
    sigset_t pipe_only, old;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &old);
    uv_run(uv, UV_RUN_DEFAULT);
    while (sigtimedwait(&pipe_only, NULL, &(struct timespec){ 0 }) == SIGPIPE)
        ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void loop_run(struct loop *l)
{
    run_without_sigpipe(&l->uv);
}

/* ---- Begin and end --------------------------------------------------------------------------- */

enum pawl_status loop_open(struct loop **out, struct pawl_err *err)
{
    struct loop *l = mem_zalloc(sizeof *l);
    if (!l)
        return err_no_memory(err, "event loop");
    int failed = uv_loop_init(&l->uv);
    if (failed) {
        mem_free(l);
        return err_set(err, PAWL_BUSY, "event loop: %s", uv_strerror(failed));
    }
    failed = uv_async_init(&l->uv, &l->wake, on_wake);
    if (failed) {
        uv_loop_close(&l->uv);
        mem_free(l);
        return err_set(err, PAWL_BUSY, "event loop: %s", uv_strerror(failed));
    }
    uv_timer_init(&l->uv, &l->alarm);
    uv_prepare_init(&l->uv, &l->before);
    uv_check_init(&l->uv, &l->after);
    uv_idle_init(&l->uv, &l->hurry);
    l->wake.data = l->alarm.data = l->before.data = l->after.data = l->hurry.data = l;
    l->later_end = &l->later;
    uv_prepare_start(&l->before, on_before);
    uv_check_start(&l->after, on_after);
    *out = l;
    return PAWL_OK;
}

void loop_close(struct loop *l)
{
    if (!l)
        return;
    uv_close((uv_handle_t *)&l->wake, NULL);
    uv_close((uv_handle_t *)&l->alarm, NULL);
    uv_close((uv_handle_t *)&l->before, NULL);
    uv_close((uv_handle_t *)&l->after, NULL);
    uv_close((uv_handle_t *)&l->hurry, NULL);
    /* Work on other threads, and connections of closed servers, finish here. */
    while (uv_loop_close(&l->uv) == UV_EBUSY) {
        uv_run(&l->uv, UV_RUN_ONCE);
        later_run(l);
    }
    mem_free(l);
}

/* ---- Work on other threads ------------------------------------------------------------------- */

static void on_work(uv_work_t *inside)
{
    struct loop_work *w = inside->data;
    w->work(w);
}

static void on_work_done(uv_work_t *inside, int status)
{
    struct loop_work *w = inside->data;
    (void)status;
    mem_free(inside);
    w->inside = NULL;
    w->done(w);
}

enum pawl_status loop_work(struct loop *l, struct loop_work *w, struct pawl_err *err)
{
    uv_work_t *inside = mem_alloc(sizeof *inside);
    if (!inside)
        return err_no_memory(err, "work for another thread");
    inside->data = w;
    w->inside = inside;
    int failed = uv_queue_work(&l->uv, inside, on_work, on_work_done);
    if (!failed)
        return PAWL_OK;
    mem_free(inside);
    w->inside = NULL;
    return err_set(err, PAWL_BUSY, "work for another thread: %s", uv_strerror(failed));
}
