/*
 * beat.c - the heartbeat thread, with a connection of its own.
 *
 * For engines with several writers: a heartbeat must not wait behind a group, a read, or a
 * connection that hangs, because other nodes take what this one holds when it does not come. On
 * engines with one writer the housekeeping thread posts heartbeats, which are committed with a
 * group. The thread that sends heartbeats also watches those of the other nodes (peers.c).
 * SPDX-License-Identifier: Apache-2.0
 */
#include <time.h>

#include "base/log.h"
#include "exec/internal.h"
#include "exec/housekeeping.h"

/* A heartbeat that failed is sent again soon: the grace that other nodes allow is running. */
#define AGAIN_US (250 * MS_US)

/* Send one, and look at the other nodes. Returns when the next is due. */
static int64_t beat_once(struct exec *e)
{
    struct beater *b = &e->beater;
    struct op op, *one = &op;
    struct arena a;
    int64_t now_us = world_mono(&world_real);
    if (!member_beat(e, &op))
        return now_us + e->conf.heartbeat_interval_us;
    arena_init(&a, 1 << 20);
    op.a = &a;
    stall_begin(e, &e->stall.beat, b->store, NULL);
    enum pawl_status st = store_commit(b->store, &one, 1);
    stall_end(e, &e->stall.beat);
    arena_release(&a);
    bool stored = st == PAWL_OK && op.status == PAWL_OK;
    atomic_store(&e->housekeeping->beat_refused, !stored && op.status != PAWL_LOST_LEASE);
    if (stored) {
        member_stored(e, now_us);
        /* The commit was slow, and those of other nodes may have been: their silence meanwhile must
         * not count. */
        if (world_mono(&world_real) > now_us + e->conf.heartbeat_interval_us)
            peers_silent(e);
        int64_t due_us = peers_look(e, b->store, now_us);
        return MIN(now_us + e->conf.heartbeat_interval_us, due_us);
    }
    peers_silent(e);
    member_refused(e, op.err.text);
    if (op.status == PAWL_LOST_LEASE)
        housekeeping_doubt(e);
    else
        housekeeping_probe(e);
    return now_us + MIN(AGAIN_US, e->conf.heartbeat_interval_us);
}

static void *beat_main(void *arg)
{
    struct exec *e = arg;
    struct beater *b = &e->beater;
    for (;;) {
        int64_t next_us = beat_once(e);
        struct timespec until = { .tv_sec = next_us / SEC_US, .tv_nsec = next_us % SEC_US * 1000 };
        pthread_mutex_lock(&b->lock);
        while (!b->closed && !b->nudged && !pthread_cond_timedwait(&b->wake, &b->lock, &until))
            ;
        bool closed = b->closed;
        b->nudged = false;
        pthread_mutex_unlock(&b->lock);
        if (closed)
            return NULL;
    }
}

enum pawl_status beat_open(struct exec *e, struct pawl_err *err)
{
    struct beater *b = &e->beater;
    pthread_condattr_t attr;
    if (e->traits & STORE_ONE_WRITER)
        return PAWL_OK;
    enum pawl_status st = exec_store(e, STORE_WRITER, &b->store, err);
    if (st != PAWL_OK)
        return st;
    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->wake, &attr);
    pthread_condattr_destroy(&attr);
    b->open = true;
    b->runs = !pthread_create(&b->thread, NULL, beat_main, e);
    return b->runs ? PAWL_OK : err_no_memory(err, "starting the heartbeat");
}

static void wake(struct beater *b, bool *flag)
{
    pthread_mutex_lock(&b->lock);
    *flag = true;
    pthread_mutex_unlock(&b->lock);
    pthread_cond_signal(&b->wake);
}

void beat_nudge(struct exec *e)
{
    if (e->beater.runs)
        wake(&e->beater, &e->beater.nudged);
}

void beat_close(struct exec *e)
{
    struct beater *b = &e->beater;
    if (!b->runs)
        return;
    wake(b, &b->closed);
    pthread_join(b->thread, NULL);
    b->runs = false;
}

void beat_release(struct exec *e)
{
    struct beater *b = &e->beater;
    store_close(b->store);
    if (!b->open)
        return;
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->wake);
}
