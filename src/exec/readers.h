/*
 * readers.h - the pool of connections for reading behind exec_reader(). Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_READERS_H
#define EXEC_READERS_H

#include <pthread.h>

#include "store/store.h"

struct readers {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    struct store **idle; /* owned */
    int n_idle, n_open, max;
    int64_t wait_us; /* the longest wait for one before BUSY */
};

/* Opens nothing yet. NO_MEMORY. */
enum pawl_status readers_init(struct readers *r, int max, int64_t wait_us, struct pawl_err *err);
/* Close the connections; all were given back. Accepts one that was not initialized (all 0). */
void readers_release(struct readers *r);

#endif
