/*
 * work_signal.c - a number that rises when work may have come, for claims by hand (work_signal.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <time.h>

#include "exec/internal.h"

void work_signal_init(struct work_signal *p)
{
    pthread_condattr_t attr;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->moved, &attr);
    pthread_condattr_destroy(&attr);
}

void work_signal_release(struct work_signal *p)
{
    CHECK(!p->watch && !p->telling);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->moved);
}

void exec_work_signal_raise(struct exec *e)
{
    struct work_signal *p = &e->work_signal;
    pthread_mutex_lock(&p->lock);
    p->n++;
    bool any = p->waiting;
    struct work_signal_watch *w = p->asked ? p->watch : NULL;
    p->asked = false;
    p->telling += w != NULL;
    pthread_mutex_unlock(&p->lock);
    if (any)
        pthread_cond_broadcast(&p->moved);
    if (!w)
        return;
    w->moved(w);
    pthread_mutex_lock(&p->lock);
    p->telling--;
    pthread_mutex_unlock(&p->lock);
    pthread_cond_broadcast(&p->moved); /* exec_work_signal_watch(NULL) may wait for this. */
}

uint64_t exec_work_signal(struct exec *e)
{
    pthread_mutex_lock(&e->work_signal.lock);
    uint64_t n = e->work_signal.n;
    pthread_mutex_unlock(&e->work_signal.lock);
    return n;
}

void exec_work_signal_wait(struct exec *e, uint64_t seen, int64_t until_us)
{
    struct work_signal *p = &e->work_signal;
    struct timespec until = { .tv_sec = until_us / SEC_US, .tv_nsec = until_us % SEC_US * 1000 };
    pthread_mutex_lock(&p->lock);
    p->waiting++;
    while (p->n == seen && !pthread_cond_timedwait(&p->moved, &p->lock, &until))
        ;
    p->waiting--;
    pthread_mutex_unlock(&p->lock);
}

void exec_work_signal_watch(struct exec *e, struct work_signal_watch *w)
{
    struct work_signal *p = &e->work_signal;
    pthread_mutex_lock(&p->lock);
    CHECK(!w || !p->watch);
    p->watch = w;
    p->asked = false;
    while (p->telling)
        pthread_cond_wait(&p->moved, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void exec_work_signal_ask(struct exec *e)
{
    struct work_signal *p = &e->work_signal;
    pthread_mutex_lock(&p->lock);
    bool first = !p->asked;
    p->asked = p->watch != NULL;
    pthread_mutex_unlock(&p->lock);
    /* The store thread looks for other processes' commits only while that matters here, and may
     * sleep longer than that. */
    if (first && e->traits & STORE_SHARED)
        queue_nudge(&e->queue);
}

void exec_work_signal_unask(struct exec *e)
{
    pthread_mutex_lock(&e->work_signal.lock);
    e->work_signal.asked = false;
    pthread_mutex_unlock(&e->work_signal.lock);
}
