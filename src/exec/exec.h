/*
 * exec.h - the machine as other rooms see it: open a database, register handlers, run them, read,
 * and ask how things stand.
 *
 * One struct exec is one open database in one process: a store thread that commits, a housekeeping
 * thread for periodic work, connections for reading, and (after exec_start) worker threads. What
 * else others use is beside this header: write_job.h (writes), waiter.h (waiting for the end of a
 * call), work_signal.h (waiting for work), node.h (this process among the nodes), stats.h
 * (counters). All functions may be called from any thread unless they say otherwise.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_EXEC_H
#define EXEC_EXEC_H

#include <pawl.h>

#include "base/macros.h"
#include "base/world.h"
#include "store/store.h"

/* How long a move waits for a call that is held and has not begun. A node that lives hands it back,
 * or begins it, sooner: STALE_US after it was claimed, RUN_US more behind others of its run. */
#define MOVE_WAIT_US (1 * SEC_US)

/* What exec_open() is told; strings are copied. Every number is set, none means "default". */
struct exec_conf {
    const char *url, *schema;
    const char *_Atomic node; /* NULL: a default name (name.h); changes at most in exec_enter() */
    const struct world *world;
    int pool_size;
    int64_t heartbeat_interval_us, heartbeat_grace_us, reclaim_interval_us;
    int64_t retention_us, remember_us, gc_interval_us; /* gc_interval_us 0: never by itself */
    int64_t cron_runs_us;                              /* how long what came of ticks is kept */
    int64_t pool_timeout_us;          /* the longest wait for a connection for reading */
    int64_t pool_lifetime_us;         /* a connection older than that is replaced; 0: never */
    int64_t poll_min_us, poll_max_us; /* how often to look for what other processes did */
    int64_t key_pending_max;          /* calls that may wait on one key; 0: no bound */
    int64_t call_timeout_us; /* of calls of schedules without a timeout that come in C and SQL; 0:
                                the model's default */
    size_t input_len_max;    /* of these calls; 0: INPUT_LEN_MAX */
    const struct feature *const *features; /* (store/feature.h) of every connection; they outlive
                                              the handle */
    size_t n_features;
    bool fail_lost;    /* a call whose attempt was lost ends `failed` */
    bool pin_versions; /* a run that begins is for workers of its handler's version alone */
    bool no_migrate, paused;
};

struct exec;

/* Open the database, bring its schema up to date (no_migrate: only check it) and start the threads.
 * On failure *out is not set and nothing is left open. */
MUST_USE enum pawl_status exec_open(const struct exec_conf *conf, struct exec **out,
                                    struct pawl_err *err);
/* Stop the workers without grace, answer every posted write, close the database. Accepts NULL. A
 * thread whose handler does not return keeps the memory alive until it does. */
void exec_close(struct exec *e);

/* The settings in use; valid while `e` is open. */
const struct exec_conf *exec_conf_of(const struct exec *e);
/* The node's name. A pointer that was returned stays valid while `e` is open, also when
 * exec_enter() chooses another name. */
const char *exec_node(const struct exec *e);
/* The id of this start of the process: a UUID, new with every exec_open(). */
const char *exec_boot(const struct exec *e);
/* Does its engine store what features bring, such as schedules? mem: does not. */
bool exec_has_features(const struct exec *e);
/* The database's clock, computed from the monotonic clock and the last measured difference. */
int64_t exec_now(struct exec *e);

/* ---- Reading --------------------------------------------------------------------------------- */

/* Borrow a connection for reading, opening one if there are fewer than pool_size. BUSY when none
 * became free within pool_timeout_us; the database's error when it cannot be opened. */
MUST_USE enum pawl_status exec_reader(struct exec *e, struct store **out, struct pawl_err *err);
/* Return what exec_reader() lent. */
void exec_reader_back(struct exec *e, struct store *s);

/* ---- Handlers and workers -------------------------------------------------------------------- */

/* Register the handler of type.method; before exec_start(), one thread. CONFLICT when there is one
 * already, INVALID for a bad name, FULL, NO_MEMORY. Strings are copied. */
MUST_USE enum pawl_status exec_on(struct exec *e, const char *type, const char *method,
                                  pawl_handler *handler, struct pawl_err *err);
/* The handler of type.method, which was just registered, is of this version of its module.
 * NO_MEMORY. */
MUST_USE enum pawl_status exec_version(struct exec *e, const char *type, const char *method,
                                       struct bytes version, struct pawl_err *err);
/* How many handlers are registered. */
size_t exec_handlers(const struct exec *e);

struct exec_workers {
    int slots;
    const char *const *queues; /* copied; n_queues 0: all queues */
    size_t n_queues;
    const char *const *has; /* copied: capabilities, for calls that need them */
    size_t n_has;
};
/* Start worker threads for the registered handlers, as pawl_start() promises. Enters the registry
 * of nodes first, unless exec_enter() did. STATE when they were started before, INVALID, NO_MEMORY,
 * or what entering failed with; then no worker runs. */
MUST_USE enum pawl_status exec_start(struct exec *e, const struct exec_workers *w,
                                     struct pawl_err *err);
/* Has exec_start() succeeded? Stays true after exec_stop(). */
bool exec_started(struct exec *e);
/* Stop the workers as pawl_stop() promises, then leave the registry. Blocks for grace_us and a
 * moment more. BUSY: some handlers did not return; their calls were handed back. */
MUST_USE enum pawl_status exec_stop(struct exec *e, int64_t grace_us, struct pawl_err *err);

/* A cancel of this call was stored while it was processing: if its handler runs or waits to run
 * here, tell it to stop. `seq` is the call's row number. */
void exec_cancel(struct exec *e, int64_t seq);
/* Does a handler run here that takes steps, and does not undo? */
bool exec_takes_steps(struct exec *e);
/* These runs undo: tell their passes that run here and do not know it. `seqs` rises. */
void exec_undoing(struct exec *e, const int64_t *seqs, size_t n);

/* ---- How things stand ------------------------------------------------------------------------ */

struct exec_figures {
    int slots, busy; /* busy: handlers that run, without the hung ones */
    int queued;      /* claimed, not begun */
    int hung;        /* workers whose handler did not return from its timeout */
    int blocked;     /* workers whose handler waits for another call */
    bool started, drained, stopping;
    bool replaced;         /* another process has taken this node's name */
    size_t writes_waiting; /* jobs that the store thread has not taken */
    size_t waiting;        /* callers that wait for the end of a call */
    int64_t away_us;       /* for how long the database has not answered; 0: it does */
    int64_t stalled_us; /* for how long a commit has had no answer, past COMMIT_WAIT_US; else 0 */
    int64_t refused_us; /* for how long every write was refused, past REFUSED_WAIT_US; else 0 */
    bool cut;           /* the workers are stopped: no heartbeat was stored for too long */
    char why[sizeof((struct pawl_err *)0)->text]; /* refused_us, cut: what the database said; or ""
                                                   */
};
/* Fill *out for people and metrics. Takes several locks one after another, so the members need not
 * be of the same moment. */
void exec_figures(struct exec *e, struct exec_figures *out);

#endif
