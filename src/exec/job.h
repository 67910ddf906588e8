/*
 * job.h - a write on its way to the store: an operation, where its answer lives, and who hears of
 * it.
 *
 * Ownership moves with the job: from exec_post() until `done` is called it is the machine's, then
 * whoever's `done` it was. A job is embedded in something larger; nothing here allocates.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_JOB_H
#define EXEC_JOB_H

#include <pthread.h>

#include "exec/gate.h"
#include "store/op.h"

/* May calls be due after a finish that were not before, because a key became free? */
enum frees { FREES_PERHAPS, FREES_NO, FREES_YES };

struct job {
    struct op op;
    /* On the store thread, before the commit: the last moment to say what is in `op`. NULL: it is
     * said. */
    void (*prepare)(struct job *j);
    /* On the store thread, after the commit; must not block. One with `late` that waited while a
     * commit had no answer is told BUSY on the thread that watches commits instead. */
    void (*done)(struct job *j);
    /* A caller waits for the answer, and its commit has none for COMMIT_WAIT_US: called once, on
     * the thread that watches commits, under a lock, so that the job is not settled meanwhile; must
     * not block, take a lock, or touch `op`. `done` still comes, later. NULL: nobody waits. */
    void (*late)(struct job *j);
    struct job *next;
    bool told_late;   /* `late` was called */
    bool answered;    /* it was committed beside the others (side.c): only `done` is left */
    size_t weight;    /* calls it carries, for the size of a group */
    size_t len;       /* bytes it carries */
    enum frees frees; /* OP_FINISH; of one by hand nobody knows */
    /* OP_OBJECT: while its key is held it waits for a finish that frees one, until then (monotonic)
     * at the latest; a moment, for nothing else ends it. 0: it does not wait. */
    int64_t turn_until_us;
};

/* Any thread in, the store thread out. */
struct queue {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct job *head, *tail;
    size_t depth, enough; /* how many wake the store thread */
    bool sleeping;        /* the store thread waits on `wake` */
    bool nudged;          /* look again, though no job came */
    bool closed;          /* takes no more; the store thread ends when it is empty */
};

enum pawl_status queue_init(struct queue *q, struct pawl_err *err);
void queue_release(struct queue *q);
/* BUSY when STORE_QUEUE_MAX wait already, or it is closed. `must` jobs (finishes, give-backs) are
 * taken even beyond the bound, which their number of slots bounds. */
MUST_USE enum pawl_status queue_put(struct queue *q, struct job *j, bool must,
                                    struct pawl_err *err);
/* The jobs linked from `first`, in their order; BUSY: none of them. */
MUST_USE enum pawl_status queue_put_all(struct queue *q, struct job *first, struct pawl_err *err);
/* Call `late`, if it has one and was not told before. */
void job_tell_late(struct job *j);
/* Out of the list: all that have `late` and are not answered; in their order. */
struct job *jobs_shed(struct job **head);
/* The same for the queue. Those that are answered are told that they are late, for the store thread
 * will not come to them soon. */
struct job *queue_shed(struct queue *q);
/* Make the store thread look for a claim. */
void queue_nudge(struct queue *q);
void queue_close(struct queue *q);
size_t queue_depth(struct queue *q);

struct job_list {
    struct job *head;
    size_t n;
    bool ended; /* closed and empty */
};
/* Wait until something is there, somebody nudged, or until_us (monotonic) passes; then take up to a
 * group's worth. An OP_HANDLER comes alone. */
struct job_list queue_take(struct queue *q, int64_t until_us);
/* Wait until n jobs are there, or until_us passes. False: they are not. */
bool queue_gather(struct queue *q, size_t n, int64_t until_us);

#endif
