/*
 * workflows.h - what is to be done for workflows now and then: forgetting the keys of old signals.
 * Room-private.
 *
 * Each process that stored signals does it, for as long as their keys are known and a little
 * longer; harmless on several. Others ask nothing: what is left goes with its run.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_WORKFLOWS_H
#define EXEC_WORKFLOWS_H

#include "feature/workflow.h"

struct exec;

/* What the housekeeping thread remembers between its rounds. */
struct workflows {
    int64_t forget_us;         /* not before; world_mono */
    int64_t until_us;          /* and not after, unless there is more; world_mono */
    int64_t signals;           /* of workflow_counts(), as it was last seen */
    bool forgot;               /* it was posted, and its answer was not read */
    struct workflow_op forget; /* of the write that is under way */
};

/* Post what is due. Housekeeping thread. */
void workflows_round(struct exec *e, int64_t now_us);

#endif
