/*
 * group.h - operations that are committed together, and who hears of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_GROUP_H
#define EXEC_GROUP_H

#include "base/limits.h"
#include "exec/job.h"

struct exec;

struct group {
    struct op *ops[GROUP_MAX + 1];
    struct job *jobs;
    struct job *claim;
    size_t n;
    bool fresh; /* it brings calls that may be claimed */
    bool frees; /* a key becomes free with it */
};

/* Store thread: it is committed, or refused; everybody hears how it went. */
void group_settle(struct exec *e, struct group *g);

#endif
