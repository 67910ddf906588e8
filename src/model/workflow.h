/*
 * workflow.h - steps of workflows as values: their kinds, what came of them, their names, and which
 * step a wait is settled by. Pure.
 *
 * The first use of a name in a run is stored as `name`, the n-th as `name#n`; the undo of a step is
 * the step `undo:NAME`, of the name as stored; a child's id always carries its number: `ID.name#n`,
 * and from the second generation on `ID~2.name#n`.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_WORKFLOW_H
#define MODEL_WORKFLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

/* Stored numbers: a kind keeps its own. */
#define STEP_KIND_MAP(X)                                                                           \
    X(RUN, 1, "run")                                                                               \
    X(SLEEP, 2, "sleep")                                                                           \
    X(SIGNAL, 3, "signal")                                                                         \
    X(CHILD, 4, "child")                                                                           \
    X(JOIN, 5, "join")                                                                             \
    X(SELECT, 6, "select")                                                                         \
    X(VALUE, 7, "value")                                                                           \
    X(UNDO, 8, "undo")
#define STEP_ENUM(name, number, text) STEP_##name = number,
enum step_kind { STEP_KIND_MAP(STEP_ENUM) };
#undef STEP_ENUM

/* What came of a step. Stored numbers. */
#define STEP_STATUS_MAP(X)                                                                         \
    X(BEGUN, 1, "running")                                                                         \
    X(WAITING, 2, "waiting")                                                                       \
    X(RETRYING, 3, "retrying")                                                                     \
    X(COMPLETED, 4, "completed")                                                                   \
    X(FAILED, 5, "failed")                                                                         \
    X(REFUSED, 6, "failed")                                                                        \
    X(TIMEOUT, 7, "timeout")
#define STEP_ENUM(name, number, text) STEP_##name = number,
enum step_status { STEP_STATUS_MAP(STEP_ENUM) };
#undef STEP_ENUM

/* Names in the API; NULL for another number. */
const char *step_kind_name(int64_t kind);
const char *step_status_name(int64_t status);
/* The kind with this name; 0: none has it. */
enum step_kind step_kind_of(struct bytes name);
/* Has the step ended, so that it never runs again? */
static inline bool step_ended(enum step_status status)
{
    return status >= STEP_COMPLETED;
}

/* What is wrong with the name that code gives a step, as the end of the sentence `step "x": its
 * name ...`; NULL when it is valid: a name of at most STEP_NAME_LEN_MAX bytes without "#", which
 * separates its number. */
const char *step_name_fault(struct bytes name);
/* The name as it is stored, in `a`: the n-th use, n from 1. Absent without memory. */
struct bytes step_name(struct arena *a, struct bytes name, int64_t nth);
/* The inverse: the name as code gives it, borrowed, and its number; 0: what is behind the last "#"
 * is not the number of a use, so no step is stored under this name. */
struct bytes step_name_plain(struct bytes stored, int64_t *out_nth);
/* The id of a child, in `a`, shortened if it is too long (ident_derived); absent without memory. */
struct bytes step_child_id(struct arena *a, struct bytes parent, int64_t generation,
                           struct bytes name, int64_t nth);

/* ---- Runs ------------------------------------------------------------------------------------ */

/* What is shown of a run. */
#define WORKFLOW_STATUS_WORDS "running|waiting|completed|failed|compensating|compensated|cancelled"
enum workflow_status {
    WORKFLOW_ANY,
    WORKFLOW_RUNNING,
    WORKFLOW_WAITING,
    WORKFLOW_COMPLETED,
    WORKFLOW_FAILED,
    WORKFLOW_COMPENSATING,
    WORKFLOW_COMPENSATED,
    WORKFLOW_CANCELLED,
};
/* Its name in the API; NULL for WORKFLOW_ANY. */
const char *workflow_status_name(enum workflow_status status);
/* The status with this name; WORKFLOW_ANY: none has it. */
enum workflow_status workflow_status_of(struct bytes name);

/* What is known of the undoing of a run. Stored numbers. */
enum run_compensation { UNDO_NONE, UNDO_GOES_ON, UNDO_DONE, UNDO_FAILED };
/* Its name in the API; NULL for UNDO_NONE. */
const char *workflow_compensation_name(enum run_compensation c);

/* ---- Waits ----------------------------------------------------------------------------------- */

/* For what a run waits, as bits that are stored. */
enum {
    AWAIT_SIGNAL = 1,
    AWAIT_CHILDREN = 2,
    AWAIT_TIME = 4,
    AWAIT_RETRY = 8, /* a step will be tried again */
    AWAIT_EACH = 16, /* several steps wait for the same child: each end of one wakes the run */
};

/* What has come for a wait, as the locked rows say. */
struct wait_seen {
    bool signal;      /* there is an unread signal of one of its names */
    int64_t children; /* for which it waits */
    int64_t left;     /* of them, those that have not ended */
    bool any;         /* one child is enough */
    int64_t until_us; /* 0: no end */
};
enum wait_by { WAIT_BY_NOTHING, WAIT_BY_SIGNAL, WAIT_BY_CHILDREN, WAIT_BY_TIME };
/* By what the wait is settled at this moment. A signal goes before children, and both before the
 * time: what came at the instant of the timeout has come. */
enum wait_by wait_settled(const struct wait_seen *w, int64_t now_us);

#endif
