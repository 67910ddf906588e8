/*
 * beat.h - the heartbeat thread, on engines with several writers. Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_BEAT_H
#define EXEC_BEAT_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/store.h"

struct exec;

struct beater {
    struct store *store; /* owned; used by the heartbeat thread alone */
    pthread_t thread;
    pthread_mutex_t lock; /* nudged, closed */
    pthread_cond_t wake;
    bool open, nudged, closed;
    atomic_bool runs; /* read by the housekeeping thread, also while the beat is being closed */
};

/* Open a connection and start the thread. Does nothing on an engine with one writer: there the
 * housekeeping thread posts heartbeats. */
MUST_USE enum pawl_status beat_open(struct exec *e, struct pawl_err *err);
/* Send a heartbeat and read the registry now. Any thread. */
void beat_nudge(struct exec *e);
/* End the thread. */
void beat_close(struct exec *e);
/* Free what beat_open() made; after beat_close(). */
void beat_release(struct exec *e);

#endif
