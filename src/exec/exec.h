/*
 * exec.h - the machine as `lib` sees it: post writes, read, wait for ends, run handlers.
 *
 * One struct exec is one open database in one process: a store thread that commits, a keeper thread
 * that needs no traffic, connections for reading, and (after exec_start) worker threads. All
 * functions may be called from any thread unless they say otherwise.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_EXEC_H
#define EXEC_EXEC_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/job.h"
#include "exec/pool.h"
#include "exec/registry.h"
#include "exec/waiters.h"
#include "store/store.h"

/* What exec_open() is told; strings are copied. Every number is set, none means "default". */
struct exec_conf {
    const char *url, *schema, *node;
    const struct world *world;
    int pool_size;
    int64_t heartbeat_interval_us, heartbeat_grace_us, reclaim_interval_us;
    int64_t retention_us, remember_us, gc_interval_us; /* gc_interval_us 0: never by itself */
    bool no_migrate, paused;
};

struct exec_stats {
    atomic_int_least64_t accepted, duplicates, claimed, completed, failed_tries, ended, lost,
        commits, repeats;
};

/* Connections for reading: opened when first needed, borrowed one at a time. */
struct readers {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    struct store **idle; /* owned */
    int n_idle, n_open, max;
};

/* What the keeper remembers between its rounds. */
struct keeper;

/* Work may have come: counted, and those who claim by hand wait for the count to move. */
struct epoch {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t n;
    int waiting;
};

struct exec {
    struct exec_conf conf; /* strings owned */
    char boot[UUID_TEXT_LEN + 1];
    unsigned traits;
    struct store *writer; /* owned; the store thread's alone once it runs */
    struct queue queue;
    struct readers readers;
    struct waiters waiters;
    struct waiter *told; /* store thread only: to wake when its group is settled */
    struct registry registry;
    struct pool pool;
    struct keeper *keeper; /* owned */
    struct epoch epoch;
    struct exec_stats stats;
    pthread_t writer_thread, keeper_thread;
    bool writer_runs, keeper_runs;
    atomic_int_least64_t clock_offset_us; /* database clock minus monotonic */
    atomic_int refs;                      /* the handle and every thread that may outlive it */
};

MUST_USE enum pawl_status exec_open(const struct exec_conf *conf, struct exec **out,
                                    struct pawl_err *err);
/* Stops the workers hard, answers what was posted, closes. Accepts NULL. Threads whose handler does
 * not return keep the memory alive until it does. */
void exec_close(struct exec *e);
void exec_unref(struct exec *e);

/* The database's clock, from the monotonic one and the last known difference. */
int64_t exec_now(struct exec *e);

/* Hand a job over; its `done` is called on the store thread after the commit. On BUSY it is still
 * yours. */
MUST_USE enum pawl_status exec_post(struct exec *e, struct job *j, struct pawl_err *err);
/* Post one operation and wait for its answer; not on the store thread. Returns op->status. */
enum pawl_status exec_do(struct exec *e, struct op *op);

/* Borrow a connection for reading, at most 30 s later; give it back. BUSY. */
MUST_USE enum pawl_status exec_reader(struct exec *e, struct store **out, struct pawl_err *err);
void exec_reader_back(struct exec *e, struct store *s);

/* Calls may have ended or become due without our own finish: look again soon. */
void exec_look(struct exec *e, const struct bytes *ids, size_t n);
void exec_work_came(struct exec *e);
/* Does anybody here want to hear of what other processes do? */
bool exec_listens(struct exec *e);

/* Those who wait for work by hand: the number rises whenever work may have come. */
uint64_t exec_epoch(struct exec *e);
void exec_epoch_move(struct exec *e);
/* Until it has moved from `seen`, or until_us (monotonic) has passed. */
void exec_epoch_wait(struct exec *e, uint64_t seen, int64_t until_us);

/* Run the registered handlers; see pawl_start() and pawl_stop(). */
struct exec_workers {
    int slots;
    const char *const *queues;
    size_t n_queues;
};
MUST_USE enum pawl_status exec_start(struct exec *e, const struct exec_workers *w,
                                     struct pawl_err *err);
MUST_USE enum pawl_status exec_stop(struct exec *e, int64_t grace_us, struct pawl_err *err);

/* ---- Inside the room ------------------------------------------------------------------------- */

void *writer_main(void *exec);
/* Enter the registry; what another boot of this name held is taken back first. */
MUST_USE enum pawl_status exec_join(struct exec *e, int slots, struct pawl_err *err);
/* The database says that we are no longer the node: the keeper looks whether that is so. Any
 * thread. */
void keeper_doubt(struct exec *e);
enum pawl_status keeper_init(struct exec *e, struct pawl_err *err);
void keeper_release(struct exec *e);
void *keeper_main(void *exec);
void keeper_nudge(struct exec *e);
/* Wake the keeper no later than this (monotonic). */
void keeper_by(struct exec *e, int64_t mono_us);
void keeper_close(struct exec *e);
/* Try this finish again a little later: the database was away. */
void keeper_repost(struct exec *e, struct job *j);

enum pawl_status readers_init(struct readers *r, int max, struct pawl_err *err);
void readers_release(struct readers *r);

#endif
