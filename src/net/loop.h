/*
 * loop.h - the inside of struct loop, for this room.
 *
 * A turn is: timers, what was put off (prepare), poll with its reads and posted tasks, what was put
 * off again (check). So whatever a turn's requests put off runs after the last of them was handed
 * over.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/http.h" /* before uv.h, which brings a MIN of its own */

#include <uv.h>

struct loop {
    uv_loop_t uv;
    uv_async_t wake;     /* a task was posted, or loop_stop() */
    uv_timer_t alarm;    /* for the first of `timers` */
    uv_prepare_t before; /* before the poll */
    uv_check_t after;    /* after it */
    uv_idle_t hurry;     /* while something is put off the poll must not wait */

    _Atomic(struct loop_task *) posted; /* newest first; any thread */
    atomic_bool stop;

    struct loop_task *later, **later_end; /* oldest first */
    struct loop_timer *timers;            /* pairing heap, the first one on top */
    int64_t alarm_us;                     /* what `alarm` is set for; 0: not */
    int64_t pass_us;                      /* while timers run: now */
};

/* Monotonic, as of the beginning of this turn. */
static inline int64_t loop_now(const struct loop *l)
{
    return (int64_t)uv_now(&l->uv) * 1000;
}

/* timer.c: run what is due. */
void timers_run(struct loop *l, int64_t now_us);

#endif
