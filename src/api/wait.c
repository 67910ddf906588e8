/*
 * wait.c - requests that wait without a thread: for a time, for the end of a call, until their
 * client leaves or the server stops (wait.h). Loop thread, except for the functions that say
 * otherwise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/wait.h"

#include "api/ask.h"
#include "api/auth.h"
#include "api/call_json.h"
#include "api/claim_wait.h"
#include "api/internal.h"
#include "api/route.h"
#include "exec/waiter.h"

/* How large the copy of one call may be. */
#define TOLD_LEN_MAX ((size_t)8 << 20)

/* ---- Timed waits ----------------------------------------------------------------------------- */

static void timed_wait_over(struct timed_wait *p, enum wait_why why)
{
    timed_wait_leave(p);
    p->over(p, why);
}

static void timed_wait_late(struct loop_timer *t)
{
    timed_wait_over((struct timed_wait *)((char *)t - offsetof(struct timed_wait, timer)),
                    WAIT_TIME_UP);
}

static void timed_wait_gone(struct http_request *r)
{
    struct ask *q = r->user;
    if (q->timed)
        timed_wait_over(q->timed, WAIT_CLIENT_GONE);
}

/* May its token still do this? */
static void check_again(struct ask *q)
{
    struct principal who;
    struct pawl_err err;
    q->reloads = q->api->reloads;
    q->revoked = auth_check(q->api->auth, q->r, q->route->may, &who, &err);
}

void timed_wait_enter(struct ask *q, struct timed_wait *p, int64_t until_us)
{
    struct api *api = q->api;
    CHECK(!q->timed);
    if (p->ask != q) /* wait_enter() has set it already, and another thread may be reading it in
                        wait_wake(). */
        p->ask = q;
    p->timer = (struct loop_timer){ .run = timed_wait_late };
    p->next = api->waits;
    p->link = &api->waits;
    if (p->next)
        p->next->link = &p->next;
    api->waits = p;
    q->timed = p;
    q->r->on_gone = timed_wait_gone;
    if (q->reloads != api->reloads)
        check_again(q);
    if (q->r->gone || api->stopping)
        timed_wait_over(p, q->r->gone ? WAIT_CLIENT_GONE : WAIT_STOPPING);
    else if (q->revoked != PAWL_OK)
        timed_wait_over(p, WAIT_REVOKED);
    else
        loop_timer_set(api->loop, &p->timer, until_us);
}

void timed_wait_leave(struct timed_wait *p)
{
    if (!p->link)
        return;
    *p->link = p->next;
    if (p->next)
        p->next->link = p->link;
    p->link = NULL;
    p->ask->timed = NULL;
    p->ask->r->on_gone = NULL;
    loop_timer_cancel(p->ask->api->loop, &p->timer);
}

void timed_wait_check(struct api *api)
{
    for (struct timed_wait *p = api->waits; p; p = p->next)
        check_again(p->ask);
    /* The end of one wait may end others, or begin new ones. */
    for (struct timed_wait *p = api->waits; p;) {
        bool over = p->ask->revoked != PAWL_OK;
        if (over)
            timed_wait_over(p, WAIT_REVOKED);
        p = over ? api->waits : p->next;
    }
}

void api_stop(struct api *api)
{
    api->stopping = true;
    /* No request begins to wait any more, so this loop ends. */
    while (api->waits)
        timed_wait_over(api->waits, WAIT_STOPPING);
    claim_wait_stop(api);
}

/* ---- Waiting for a call's end ---------------------------------------------------------------- */

/* On the thread that ended the call, under the lock of the table: only copy. */
static void wait_tell(struct waiter *waiter, const struct call *ended)
{
    struct wait *w = (struct wait *)waiter;
    w->failed = !call_copy(&w->arena, ended, &w->call);
    w->told = true;
}

/* On the same thread, without the lock; its last access. */
static void wait_wake(struct waiter *waiter)
{
    struct wait *w = (struct wait *)waiter;
    loop_post(w->timed.ask->api->loop, &w->task);
}

static void wait_say_told(struct wait *w)
{
    w->waiting = false;
    timed_wait_leave(&w->timed);
    w->done(w, w->failed ? WAIT_FAILED : WAIT_TOLD);
}

static void wait_woken(struct loop_task *t)
{
    struct wait *w = (struct wait *)((char *)t - offsetof(struct wait, task));
    w->woken = true;
    if (w->waiting)
        wait_say_told(w);
}

static void wait_over(struct timed_wait *p, enum wait_why why)
{
    struct wait *w = (struct wait *)((char *)p - offsetof(struct wait, timed));
    if (!exec_unwait(p->ask->api->exec, &w->waiter))
        return; /* Completed concurrently: wait_woken() answers. */
    w->waiting = w->entered = false;
    w->why = why;
    w->done(w, WAIT_OVER);
}

void wait_enter(struct ask *q, struct wait *w, struct bytes id)
{
    arena_init(&w->arena, TOLD_LEN_MAX);
    w->timed = (struct timed_wait){ .ask = q, .over = wait_over };
    w->task.run = wait_woken;
    w->waiter = (struct waiter){ .id = id, .tell = wait_tell, .wake = wait_wake };
    w->entered = true;
    exec_wait(q->api->exec, &w->waiter);
}

void wait_begin(struct wait *w, int64_t until_us)
{
    w->waiting = true;
    if (w->woken)
        wait_say_told(w);
    else
        timed_wait_enter(w->timed.ask, &w->timed, until_us);
}

bool wait_leave(struct wait *w)
{
    timed_wait_leave(&w->timed);
    if (!w->entered || w->woken)
        return true;
    if (exec_unwait(w->timed.ask->api->exec, &w->waiter)) {
        w->waiting = w->entered = false;
        return true;
    }
    w->waiting = true; /* Told, but wait_woken() has not run yet: it calls `done`. */
    return false;
}

void wait_end(struct wait *w)
{
    arena_release(&w->arena);
}
