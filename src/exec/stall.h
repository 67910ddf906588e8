/*
 * stall.h - watching commits that have no answer (stall.c). Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_STALL_H
#define EXEC_STALL_H

#include <pthread.h>

#include "exec/write_job.h"
#include "store/store.h"

/* One for each thread that commits. */
struct under_way {
    struct store *store;    /* borrowed, while it commits; NULL: it does not */
    struct write_job *jobs; /* what it commits, linked by `next` */
    int64_t since_us;       /* told: when its COMMIT was sent; monotonic */
    bool told;              /* the jobs' callers were told UNKNOWN */
    bool counts; /* a stall of this thread means that the database stalls, so new writes are
                    refused. False for writer_solo.c: an application's triggers may be slow */
    struct under_way *next;
};

struct stall {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    struct under_way *all, writer, beat;
    bool open, runs, closed, sleeping;
};

/* Start the thread that watches, where the engine has several writers; else all of this does
 * nothing. */
MUST_USE enum pawl_status stall_open(struct exec *e, struct pawl_err *err);
/* End the thread; no thread commits any more. */
void stall_close(struct exec *e);
/* Free what stall_open() made; after stall_close(). */
void stall_release(struct exec *e);
/* The calling thread will commit; it owns *u until stall_leave(). `counts`: see struct under_way.
 */
void stall_enter(struct exec *e, struct under_way *u, bool counts);
/* It will commit no more. */
void stall_leave(struct exec *e, struct under_way *u);
/* Call before store_commit(); jobs may be NULL. */
void stall_begin(struct exec *e, struct under_way *u, struct store *store, struct write_job *jobs);
/* Call after it, before any job is settled: from here on none of them is told `late`. */
void stall_end(struct exec *e, struct under_way *u);

#endif
