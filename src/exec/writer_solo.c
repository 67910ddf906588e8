/*
 * writer_solo.c - writes that must not hold up the others: handlers' transactions, ticks of
 * schedules, and a write that met a row which a transaction outside Pawl holds.
 *
 * Only on engines with several writers. Each thread has a connection of its own and commits one job
 * at a time; the job then goes to the store thread, which calls its `done` as if it had committed
 * it. Threads are made as they are needed and stay.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/internal.h"

static struct write_job *take(struct writer_solo *s)
{
    pthread_mutex_lock(&s->lock);
    s->idle++;
    while (!s->head && !s->closed)
        pthread_cond_wait(&s->wake, &s->lock);
    s->idle--;
    struct write_job *j = s->head;
    if (j) {
        s->head = j->next;
        j->next = NULL;
        s->waiting--;
        if (!s->head)
            s->end = &s->head;
    }
    pthread_mutex_unlock(&s->lock);
    return j;
}

static void commit(struct exec *e, struct under_way *way, struct store *store, struct write_job *j)
{
    struct op *op = &j->op;
    int64_t began_us = world_mono(&world_real);
    stall_begin(e, way, store, j);
    (void)store_commit(store, &op, 1);
    stall_end(e, way);
    /* Here, because the texts in `op` are the store's until the next commit. */
    count_group(e, &op, 1, world_mono(&world_real) - began_us);
}

static void *solo_main(void *arg)
{
    struct exec *e = arg;
    struct under_way way;
    struct write_job *j;
    pthread_mutex_lock(&e->solo.lock);
    struct store *store = TAKE(e->solo.first);
    pthread_mutex_unlock(&e->solo.lock);
    /* A handler's COMMIT may run triggers of the application: one that takes long says nothing
     * about other commits. */
    stall_enter(e, &way, false);
    while ((j = take(&e->solo))) {
        struct pawl_err err = { 0 };
        enum pawl_status st = store ? PAWL_OK : exec_store(e, STORE_WRITER, &store, &err);
        if (st != PAWL_OK)
            op_refuse(&j->op, &err); /* Without a connection nothing was stored. */
        else
            commit(e, &way, store, j);
        j->answered = true;
        /* The queue is closed after this thread has ended. */
        CHECK(queue_put(&e->queue, j, true, &err) == PAWL_OK);
    }
    stall_leave(e, &way);
    store_close(store);
    return NULL;
}

bool solo_post(struct exec *e, struct write_job *j)
{
    struct writer_solo *s = &e->solo;
    if (!s->max)
        return false;
    pthread_mutex_lock(&s->lock);
    bool taken = !s->closed;
    if (taken && s->waiting >= s->idle && s->n < s->max)
        s->n += !pthread_create(&s->v[s->n], NULL, solo_main, e);
    taken = taken && s->n > 0;
    if (taken) {
        j->next = NULL;
        *s->end = j;
        s->end = &j->next;
        s->waiting++;
        pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
    return taken;
}

struct write_job *solo_shed(struct exec *e, int stalled)
{
    struct writer_solo *s = &e->solo;
    pthread_mutex_lock(&s->lock);
    struct write_job *out = stalled < s->n ? NULL : write_jobs_shed(&s->head);
    for (const struct write_job *j = out; j; j = j->next)
        s->waiting--;
    s->end = &s->head;
    while (*s->end)
        s->end = &(*s->end)->next;
    pthread_mutex_unlock(&s->lock);
    return out;
}

enum pawl_status solo_open(struct exec *e, struct pawl_err *err)
{
    struct writer_solo *s = &e->solo;
    if (e->traits & STORE_ONE_WRITER)
        return PAWL_OK;
    enum pawl_status st = exec_store(e, STORE_WRITER, &s->first, err);
    if (st != PAWL_OK)
        return st;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    s->end = &s->head;
    s->max = MIN(e->conf.pool_size, SOLO_MAX);
    return PAWL_OK;
}

void solo_close(struct exec *e)
{
    struct writer_solo *s = &e->solo;
    if (!s->max)
        return;
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < s->n; i++)
        pthread_join(s->v[i], NULL);
    s->n = 0;
}

void solo_release(struct exec *e)
{
    store_close(e->solo.first);
    if (!e->solo.max)
        return;
    pthread_mutex_destroy(&e->solo.lock);
    pthread_cond_destroy(&e->solo.wake);
}
