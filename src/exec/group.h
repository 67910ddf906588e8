/*
 * group.h - operations that are committed together, and the jobs they belong to. Room-private;
 * store thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_GROUP_H
#define EXEC_GROUP_H

#include "base/limits.h"
#include "exec/write_job.h"

struct exec;

struct group {
    struct op *ops[GROUP_MAX + 1];
    struct write_job *jobs;
    struct write_job *claim;
    size_t n;
    bool fresh; /* after it calls may be due that were not before */
    bool frees; /* a key becomes free with it, or may */
};

/* Store thread: the group was committed or refused, and its operations say how. Calls every job's
 * `done`, notifies other processes, and wakes the waiters. */
void group_settle(struct exec *e, struct group *g);

#endif
