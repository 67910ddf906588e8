/*
 * queue.h - the bounded queue of writes: any thread puts jobs in, the store thread takes them out.
 * Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_QUEUE_H
#define EXEC_QUEUE_H

#include <pthread.h>

#include "exec/write_job.h"

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct write_job *head, *tail;
    size_t depth, enough; /* enough: how many jobs wake the store thread */
    bool sleeping;        /* the store thread waits on `wake` */
    bool nudged;          /* look again, though no job came */
    bool closed;          /* takes no more; the store thread ends when it is empty */
};

/* NO_MEMORY. */
enum pawl_status queue_init(struct queue *q, struct pawl_err *err);
/* The queue is empty and no thread uses it any more. */
void queue_release(struct queue *q);
/* Append a job. BUSY, and the job is still the caller's, when STORE_QUEUE_MAX jobs wait or the
 * queue is closed. `must` jobs (finishes, give-backs) are taken beyond the bound: the number of
 * slots bounds them. */
MUST_USE enum pawl_status queue_put(struct queue *q, struct write_job *j, bool must,
                                    struct pawl_err *err);
/* Append the jobs linked from `first`, in their order. BUSY: none of them. */
MUST_USE enum pawl_status queue_put_all(struct queue *q, struct write_job *first,
                                        struct pawl_err *err);
/* Call the job's `late`, if it has one and was not told before. */
void write_job_tell_late(struct write_job *j);
/* Remove from a list all jobs that have `late` and are not answered; returns them in their order.
 */
struct write_job *write_jobs_shed(struct write_job **head);
/* The same for the queue. Jobs that are answered stay and are told that they are late, because the
 * store thread will not come to them soon. */
struct write_job *queue_shed(struct queue *q);
/* Wake the store thread though no job came: there may be something to claim. */
void queue_nudge(struct queue *q);
/* Refuse further jobs; the store thread ends when it has taken the rest. */
void queue_close(struct queue *q);
/* How many jobs wait. */
size_t queue_depth(struct queue *q);

struct write_job_list {
    struct write_job *head;
    size_t n;
    bool ended; /* closed and empty */
};
/* Store thread: wait for a job, a nudge or until_us (monotonic), then take up to a group's worth of
 * jobs. An OP_HANDLER is taken alone. */
struct write_job_list queue_take(struct queue *q, int64_t until_us);
/* Store thread: wait until n jobs are there. False: until_us (monotonic) passed first. */
bool queue_gather(struct queue *q, size_t n, int64_t until_us);

#endif
