/*
 * readers.c - connections for reading: opened when first needed, borrowed one at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <time.h>

#include "base/mem.h"
#include "exec/internal.h"

enum pawl_status readers_init(struct readers *r, int max, int64_t wait_us, struct pawl_err *err)
{
    pthread_condattr_t attr;
    *r = (struct readers){ .max = max, .wait_us = wait_us };
    r->idle = mem_zalloc((size_t)max * sizeof(*r->idle));
    if (!r->idle)
        return err_no_memory(err, "making room for connections");
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->freed, &attr);
    pthread_condattr_destroy(&attr);
    return PAWL_OK;
}

void readers_release(struct readers *r)
{
    if (!r->idle)
        return;
    CHECK(r->n_idle == r->n_open);
    for (int i = 0; i < r->n_idle; i++)
        store_close(r->idle[i]);
    mem_free(r->idle);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->freed);
}

/* Take an idle connection, or the right to open one (*out NULL). False: the wait took too long. */
static bool take(struct readers *r, struct store **out)
{
    int64_t until_us = world_mono(&world_real) + r->wait_us;
    struct timespec until = { .tv_sec = until_us / SEC_US, .tv_nsec = until_us % SEC_US * 1000 };
    bool late = false;
    *out = NULL;
    pthread_mutex_lock(&r->lock);
    while (!r->n_idle && r->n_open == r->max && !late)
        late = pthread_cond_timedwait(&r->freed, &r->lock, &until) != 0;
    bool got = r->n_idle || r->n_open < r->max;
    if (r->n_idle)
        *out = r->idle[--r->n_idle];
    else if (got)
        r->n_open++;
    pthread_mutex_unlock(&r->lock);
    return got;
}

static void give(struct readers *r, struct store *s)
{
    pthread_mutex_lock(&r->lock);
    if (s)
        r->idle[r->n_idle++] = s;
    else
        r->n_open--;
    pthread_mutex_unlock(&r->lock);
    pthread_cond_signal(&r->freed);
}

enum pawl_status exec_reader(struct exec *e, struct store **out, struct pawl_err *err)
{
    struct readers *r = &e->readers;
    if (!take(r, out))
        return err_set(err, PAWL_BUSY, "all %d connections for reading are in use", r->max);
    if (*out)
        return PAWL_OK;
    enum pawl_status st = exec_store(e, STORE_READER, out, err);
    if (st != PAWL_OK)
        give(r, NULL);
    return st;
}

void exec_reader_back(struct exec *e, struct store *s)
{
    give(&e->readers, s);
}
