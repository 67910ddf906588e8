/*
 * write_job.h - a write on its way to the store: an operation, where its answer lives, and the
 * functions that hear of it.
 *
 * A job is embedded in a larger struct; nothing here allocates. From a successful exec_post() until
 * `done` is called the job belongs to the machine, then to its owner again.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_WRITE_JOB_H
#define EXEC_WRITE_JOB_H

#include "base/macros.h"
#include "store/op.h"

struct exec;

/* May calls be due after a finish that were not due before, because a key became free? */
enum frees { FREES_PERHAPS, FREES_NO, FREES_YES };

struct write_job {
    struct op op;
    /* Store thread, before the commit: fill `op` at the last moment. NULL: `op` is complete. */
    void (*prepare)(struct write_job *j);
    /* Store thread, after the commit; must not block. A job with `late` that was still queued while
     * a commit had no answer is told BUSY instead, on the thread that watches commits. */
    void (*done)(struct write_job *j);
    /* A caller waits for the answer, and the commit has had none for COMMIT_WAIT_US. Called once,
     * on the thread that watches commits, under a lock that keeps the job from being settled
     * meanwhile: must not block, take a lock, or touch `op`. `done` is still called later. NULL: no
     * caller waits. */
    void (*late)(struct write_job *j);
    struct write_job *next;
    bool told_late;   /* `late` was called */
    bool answered;    /* it was committed on another thread (writer_solo.c): only `done` is left */
    size_t weight;    /* calls it carries, for the size of a group */
    size_t len;       /* bytes it carries */
    enum frees frees; /* OP_FINISH; FREES_PERHAPS for a finish by hand, whose key is not known */
    /* OP_OBJECT: while its key is held the job waits for a finish that frees a key. OP_MOVE: while
     * its call is held and has not begun the job is repeated. At most until this moment
     * (monotonic). Keep it short: nothing else ends the wait. 0: it does not wait. */
    int64_t turn_until_us;
    int64_t turn_at_us; /* the store thread's own: it is asked again then */
};

/* Hand a job to the store thread, which calls its `done` after the commit. BUSY: the queue is full,
 * the database does not answer, or a commit stalls; the job is still the caller's. */
MUST_USE enum pawl_status exec_post(struct exec *e, struct write_job *j, struct pawl_err *err);
/* The same for a list linked by `next`: all of them or none. They are queued in one step, so that
 * the store thread cannot take only the first: they share a commit, as far as a group holds them.
 */
MUST_USE enum pawl_status exec_post_all(struct exec *e, struct write_job *first,
                                        struct pawl_err *err);

/* Post one operation and wait for its answer; not on the store thread. Returns op->status. UNKNOWN
 * (only where exec_may_stall()): the commit had no answer for COMMIT_WAIT_US and may still be
 * stored. Then `op` has no answer, and the memory that it names may be freed: it was copied. */
enum pawl_status exec_do(struct exec *e, struct op *op);
/* exec_do() for an OP_OBJECT or OP_MOVE that waits for its turn until then (struct write_job). */
enum pawl_status exec_do_by(struct exec *e, struct op *op, int64_t turn_until_us);
/* exec_do() for an OP_CLAIM with a token that only this caller knows: when it returned UNKNOWN and
 * the commit lands later, the claimed calls are handed back uncounted. */
enum pawl_status exec_claim(struct exec *e, struct op *op);

/* May a commit on this engine wait for something outside it, such as a standby? Then a caller that
 * posts a job must be able to leave before `done`, so the job has to own copies of what it names.
 */
bool exec_may_stall(const struct exec *e);
/* BUSY while a commit has had no answer for COMMIT_WAIT_US. */
enum pawl_status exec_stalled(struct exec *e, struct pawl_err *err);
/* Fill *err with the status and the sentence for a caller that leaves such a commit: UNKNOWN. */
enum pawl_status exec_unknown(struct pawl_err *err);

#endif
