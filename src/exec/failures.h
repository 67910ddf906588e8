/*
 * failures.h - log lines for attempts that failed or were lost, and for children that were not
 * made, a bounded number a second. Room-private; any thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_FAILURES_H
#define EXEC_FAILURES_H

#include <pthread.h>

#include "store/op.h"

struct exec;

struct failures {
    pthread_mutex_t lock;
    int64_t second;   /* monotonic: the second that `told` is about */
    int told;         /* lines in it */
    int64_t left_out; /* attempts without a line that were not counted in one yet */
};

/* Zeroed memory becomes usable. */
void failures_init(struct failures *f);
/* No thread logs through it any more. */
void failures_release(struct failures *f);
/* Log the failed and lost attempts and the missing children of operations that were just committed.
 * Called by the thread that committed them, before its next commit: the texts are the store's. */
void failures_tell(struct exec *e, struct op *const *v, size_t n);
/* The id of a child that the operation did not make, because another call has it; absent: none, or
 * `f` is NULL, or of another feature. */
struct bytes failures_taken(const struct feature_op *f);
/* Log how many were left out, once the second they belong to is over. `now`: at once. */
void failures_flush(struct exec *e, bool now);

#endif
