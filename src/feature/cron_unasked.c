/*
 * cron_unasked.c - ticks that were decided without an operation that could answer them (cron.h):
 * what this process counts of them, and those that could not be submitted, until exec logs them.
 *
 * Any thread. Process-wide: a metric and a log line belong to the process. What is decided here may
 * be rolled back and decided again, so it is counted and logged again, too; a tick that nobody
 * hears of would be worse.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "feature/cron_inside.h"

static struct {
    pthread_mutex_t lock;
    struct cron_unasked sum;
    struct cron_unasked_refused refused[CRON_REFUSED_MAX];
    size_t n_refused;
} unasked = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* n_refused, for a look without the lock. */
static atomic_size_t waiting;

void cron_unasked(struct cron_unasked *out)
{
    pthread_mutex_lock(&unasked.lock);
    *out = unasked.sum;
    pthread_mutex_unlock(&unasked.lock);
}

void cron_unasked_waited(bool is_new)
{
    pthread_mutex_lock(&unasked.lock);
    unasked.sum.waited++;
    unasked.sum.accepted += is_new;
    pthread_mutex_unlock(&unasked.lock);
}

void cron_unasked_skipped(enum cron_reason reason)
{
    pthread_mutex_lock(&unasked.lock);
    unasked.sum.skipped[reason]++;
    pthread_mutex_unlock(&unasked.lock);
}

void cron_unasked_add(const struct cron_op *q)
{
    pthread_mutex_lock(&unasked.lock);
    unasked.sum.missed += q->missed;
    for (size_t i = 0; i < CRON_REASONS; i++)
        unasked.sum.skipped[i] += q->skipped_for[i];
    pthread_mutex_unlock(&unasked.lock);
}

void cron_unasked_refuse(const struct cron_refused *r)
{
    pthread_mutex_lock(&unasked.lock);
    if (unasked.n_refused < CRON_REFUSED_MAX) {
        struct cron_unasked_refused *to = &unasked.refused[unasked.n_refused++];
        snprintf(to->schedule, sizeof to->schedule, "%.*s", BYTES_ARG(r->schedule));
        snprintf(to->id, sizeof to->id, "%.*s", BYTES_ARG(r->id));
        snprintf(to->text, sizeof to->text, "%.*s", BYTES_ARG(r->text));
    }
    atomic_store(&waiting, unasked.n_refused);
    pthread_mutex_unlock(&unasked.lock);
}

bool cron_unasked_take(struct cron_unasked_refused *out)
{
    if (atomic_load_explicit(&waiting, memory_order_relaxed) == 0)
        return false;
    pthread_mutex_lock(&unasked.lock);
    bool any = unasked.n_refused > 0;
    if (any) {
        *out = unasked.refused[0];
        unasked.n_refused--;
        memmove(unasked.refused, unasked.refused + 1,
                unasked.n_refused * sizeof unasked.refused[0]);
    }
    atomic_store(&waiting, unasked.n_refused);
    pthread_mutex_unlock(&unasked.lock);
    return any;
}
