/*
 * queue.c - the bounded queue of writes (queue.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <time.h>

#include "base/limits.h"
#include "exec/queue.h"

enum pawl_status queue_init(struct queue *q, struct pawl_err *err)
{
    pthread_condattr_t attr;
    *q = (struct queue){ 0 };
    if (pthread_mutex_init(&q->lock, NULL))
        return err_no_memory(err, "making a queue");
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->wake, &attr);
    pthread_condattr_destroy(&attr);
    return PAWL_OK;
}

void queue_release(struct queue *q)
{
    CHECK(!q->head);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->wake);
}

/* Append a linked list of n jobs, or refuse all of them. */
static enum pawl_status put(struct queue *q, struct write_job *first, struct write_job *last,
                            size_t n, bool must, struct pawl_err *err)
{
    pthread_mutex_lock(&q->lock);
    bool refuse = q->closed || (!must && q->depth + n > STORE_QUEUE_MAX);
    bool wake = false;
    if (!refuse) {
        if (q->tail)
            q->tail->next = first;
        else
            q->head = first;
        q->tail = last;
        q->depth += n;
        wake = q->sleeping && q->depth >= q->enough;
        q->sleeping = q->sleeping && !wake;
    }
    bool closed = q->closed;
    pthread_mutex_unlock(&q->lock);
    if (wake)
        pthread_cond_signal(&q->wake);
    if (!refuse)
        return PAWL_OK;
    return closed ? err_set(err, PAWL_BUSY, "this process is closing its database")
                  : err_set(err, PAWL_BUSY, "%d writes are waiting for the database, limit %d",
                            STORE_QUEUE_MAX, STORE_QUEUE_MAX);
}

enum pawl_status queue_put(struct queue *q, struct write_job *j, bool must, struct pawl_err *err)
{
    j->next = NULL;
    return put(q, j, j, 1, must, err);
}

enum pawl_status queue_put_all(struct queue *q, struct write_job *first, struct pawl_err *err)
{
    struct write_job *last = first;
    size_t n = 1;
    for (; last->next; last = last->next)
        n++;
    return put(q, first, last, n, false, err);
}

static void wake_for(struct queue *q, bool *flag)
{
    pthread_mutex_lock(&q->lock);
    *flag = true;
    bool wake = q->sleeping;
    q->sleeping = false;
    pthread_mutex_unlock(&q->lock);
    if (wake)
        pthread_cond_signal(&q->wake);
}

void queue_nudge(struct queue *q)
{
    wake_for(q, &q->nudged);
}

void queue_close(struct queue *q)
{
    wake_for(q, &q->closed);
}

size_t queue_depth(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    size_t n = q->depth;
    pthread_mutex_unlock(&q->lock);
    return n;
}

void write_job_tell_late(struct write_job *j)
{
    if (!j->late || j->told_late)
        return;
    j->told_late = true;
    j->late(j);
}

struct write_job *write_jobs_shed(struct write_job **head)
{
    struct write_job *out = NULL, **end = &out, **at = head;
    while (*at) {
        struct write_job *j = *at;
        if (j->late && !j->answered) {
            *at = j->next;
            *end = j;
            end = &j->next;
        } else {
            at = &j->next;
        }
    }
    *end = NULL;
    return out;
}

struct write_job *queue_shed(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    struct write_job *out = write_jobs_shed(&q->head);
    for (const struct write_job *j = out; j; j = j->next)
        q->depth--;
    q->tail = NULL;
    for (struct write_job *j = q->head; j; j = j->next) {
        q->tail = j;
        write_job_tell_late(j);
    }
    pthread_mutex_unlock(&q->lock);
    return out;
}

/* Take up to a group's worth of jobs from the head, in order. */
static struct write_job_list cut(struct queue *q)
{
    struct write_job_list l = { .head = q->head };
    size_t weight = 0, len = 0;
    struct write_job *last = NULL;
    for (struct write_job *j = q->head; j; last = j, j = j->next) {
        bool alone = j->op.kind == OP_HANDLER && !j->answered;
        if (last && (alone || weight + j->weight > GROUP_MAX || len + j->len > GROUP_LEN_MAX))
            break;
        weight += j->weight;
        len += j->len;
        l.n++;
        if (alone) {
            last = j;
            break;
        }
    }
    if (last) {
        q->head = last->next;
        last->next = NULL;
        q->depth -= l.n;
    }
    if (!q->head)
        q->tail = NULL;
    return l;
}

/* Sleep under the lock. False: until_us has passed. */
static bool sleep_until(struct queue *q, int64_t until_us)
{
    struct timespec until = { .tv_sec = until_us / SEC_US, .tv_nsec = until_us % SEC_US * 1000 };
    q->sleeping = true;
    int late = pthread_cond_timedwait(&q->wake, &q->lock, &until);
    q->sleeping = false;
    return !late;
}

bool queue_gather(struct queue *q, size_t n, int64_t until_us)
{
    pthread_mutex_lock(&q->lock);
    q->enough = n;
    while (q->depth < n && !q->closed && sleep_until(q, until_us))
        ;
    q->enough = 0;
    bool there = q->depth >= n;
    pthread_mutex_unlock(&q->lock);
    return there;
}

struct write_job_list queue_take(struct queue *q, int64_t until_us)
{
    pthread_mutex_lock(&q->lock);
    while (!q->head && !q->nudged && !q->closed && sleep_until(q, until_us))
        ;
    q->nudged = false;
    struct write_job_list l = cut(q);
    l.ended = q->closed && !l.n;
    pthread_mutex_unlock(&q->lock);
    return l;
}
