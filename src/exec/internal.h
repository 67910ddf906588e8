/*
 * internal.h - struct exec, for the files of this room alone: exec.h and its neighbours are what
 * others see.
 *
 * Locks: each part has its own, and a thread that holds one takes no second.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_INTERNAL_H
#define EXEC_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/beat.h"
#include "exec/count.h"
#include "exec/notify.h"
#include "exec/work_signal.h"
#include "exec/exec.h"
#include "exec/failures.h"
#include "exec/journal.h"
#include "exec/writer_bulk.h"
#include "exec/member.h"
#include "exec/name.h"
#include "exec/pool.h"
#include "exec/queue.h"
#include "exec/readers.h"
#include "exec/registry.h"
#include "exec/writer_solo.h"
#include "exec/stall.h"
#include "exec/unwritable.h"
#include "exec/waiters.h"

struct housekeeping;
struct replay;

/* Counts the moments at which work may have come; claims by hand wait for it to move
 * (work_signal.h). */
struct work_signal {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t n;
    int waiting;
    struct work_signal_watch *watch; /* borrowed; NULL: none */
    bool asked;                      /* the watch is to be called at the next move */
    int telling;                     /* threads inside watch->moved */
};

struct exec {
    struct exec_conf conf; /* strings owned */
    char boot[UUID_TEXT_LEN + 1];
    struct exec_name *names; /* owned: conf.node, and those it was before */
    bool named;              /* the name was given, so no other is chosen */
    int presence;            /* the socket that shows that this boot lives; -1: none */
    unsigned traits;
    struct store *writer; /* owned; used by the store thread alone once it runs */
    struct queue queue;
    struct readers readers;
    struct waiters waiters;
    struct waiter *told;     /* store thread only: to wake when its group is settled */
    struct write_job *turns; /* store thread only: writes that wait for their key's turn */
    struct registry registry;
    struct pool pool;
    struct membership member;
    atomic_int_least64_t lead_until_us[LEAD_COUNT]; /* monotonic; 0: not led by this node */
    struct housekeeping *housekeeping;              /* owned */
    struct notify notify;
    struct writer_solo solo;
    struct bulk_writers bulk;
    struct beater beater;
    struct stall stall;
    struct unwritable unwritable;
    struct work_signal work_signal;
    struct exec_stats stats;
    struct rates rates;
    struct failures failures;
    struct journals journals;    /* of runs that this node suspended */
    const struct replay *replay; /* a replay's: there is no database (replay.h); else NULL */
    pthread_t writer_thread, housekeeping_thread;
    bool writer_runs, housekeeping_runs;
    atomic_int_least64_t clock_offset_us; /* database clock minus monotonic */
    atomic_int_least64_t away_us;    /* since when it does not answer (monotonic); 0: it does */
    atomic_int_least64_t stalled_us; /* since when a commit has no answer (monotonic), once that is
                                        COMMIT_WAIT_US ago; 0: none is so late */
    atomic_int_least64_t found; /* claims and reads that found something; compared, not shown */
    atomic_int refs;            /* the handle and every thread that may outlive it */
};

/* Drop a reference; the last one frees everything. */
void exec_unref(struct exec *e);

/* How often a database that does not answer is asked again; the engine's own pauses between two
 * connects are longer. */
#define PROBE_US (100 * MS_US)
/* An answer that took less than this gives the time accurately enough. */
#define CLOCK_NEAR_US (20 * MS_US)
/* Measure the difference of the database's clock and ours. Fails when the database does not answer.
 * The thread that owns `s`. */
MUST_USE enum pawl_status exec_measure_clock(struct exec *e, struct store *s, struct pawl_err *err);
/* Open a connection for the caller to own. */
MUST_USE enum pawl_status exec_store(const struct exec *e, enum store_role role, struct store **out,
                                     struct pawl_err *err);

/* Do commits of other processes matter here now? Only while workers run, or a claim or a waiter
 * waits. */
bool exec_listens(struct exec *e);

/* A zeroed signal becomes usable. */
void work_signal_init(struct work_signal *p);
/* No thread waits for it, and the watch was removed. */
void work_signal_release(struct work_signal *p);
/* Raise the number: wake those who wait, call the watch. Not under a lock. */
void exec_work_signal_raise(struct exec *e);

/* The store thread; `exec` is the handle. Ends when the queue is closed and empty. */
void *writer_main(void *exec);

#endif
