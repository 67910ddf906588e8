/*
 * failures.h - a line in the log for every attempt that failed or was lost, as far as that is
 * bounded. Room-private.
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
    int64_t second;   /* monotonic: the one that `told` is about */
    int told;         /* lines in it */
    int64_t left_out; /* not told, and not yet counted in a line */
};

void failures_init(struct failures *f);
void failures_release(struct failures *f);
/* Tell of what these operations, which were just committed, say of failed and lost attempts. The
 * thread that committed them, or the one that counts them. */
void failures_tell(struct exec *e, struct op *const *v, size_t n);
/* Say how many were left out, when the second they belong to is over; or now. */
void failures_flush(struct exec *e, bool now);

#endif
