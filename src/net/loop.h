/*
 * loop.h - struct loop, for this room only.
 *
 * An iteration consists of timers, deferred tasks (prepare), the poll with its reads and posted
 * tasks, and deferred tasks again (check). So the tasks that its requests defer run after all of
 * these requests have reached their handler.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/http.h" /* before uv.h, which defines MIN too */

#include <uv.h>

struct loop {
    uv_loop_t uv;
    uv_async_t wake;     /* a task was posted, or loop_stop() */
    uv_timer_t alarm;    /* for the earliest of `timers` */
    uv_prepare_t before; /* before the poll */
    uv_check_t after;    /* after it */
    uv_idle_t hurry;     /* active while tasks are deferred: the poll must not wait */

    _Atomic(struct loop_task *) posted; /* newest first; any thread */
    atomic_bool stop;

    struct loop_task *later, **later_end; /* oldest first */
    struct loop_timer *timers;            /* pairing heap, the earliest on top */
    int64_t alarm_us;                     /* when `alarm` is set for; 0: not set */
    int64_t pass_us;                      /* while timers run: the current time */
};

/* Monotonic time at the start of this iteration. */
static inline int64_t loop_now(const struct loop *l)
{
    return (int64_t)uv_now(&l->uv) * 1000;
}

/* timer.c: run the timers that are due. */
void timers_run(struct loop *l, int64_t now_us);

#endif
