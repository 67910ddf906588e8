/*
 * writer_solo.h - threads that commit one job at a time beside the store thread (writer_solo.c).
 * Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_WRITER_SOLO_H
#define EXEC_WRITER_SOLO_H

#include <pthread.h>

#include "exec/write_job.h"
#include "store/store.h"

#define SOLO_MAX 64
struct writer_solo {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct write_job *head, **end;
    struct store *first; /* owned until the first thread takes it: opened early, so that no handler
                            waits for a connection */
    pthread_t v[SOLO_MAX];
    int n, idle, max, waiting; /* max 0: the engine has one writer, and there are no threads */
    bool closed;
};

/* Commit this job on a thread of its own; its `done` is called on the store thread all the same.
 * False: there is no such thread, and the job is still the caller's. Any thread. */
bool solo_post(struct exec *e, struct write_job *j);
/* Remove the waiting jobs with `late`, in their order, if `stalled` threads in commits without an
 * answer are all there are; else NULL, because a thread will take them soon. */
struct write_job *solo_shed(struct exec *e, int stalled);
/* Open the first connection, where the engine has several writers. Threads start when needed. */
MUST_USE enum pawl_status solo_open(struct exec *e, struct pawl_err *err);
/* Commit what was posted, then end the threads. The store thread still runs. */
void solo_close(struct exec *e);
/* Free what solo_open() made; after solo_close(). */
void solo_release(struct exec *e);

#endif
