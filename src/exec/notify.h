/*
 * notify.h - notifications to and from other processes (LISTEN and NOTIFY). Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_NOTIFY_H
#define EXEC_NOTIFY_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/store.h"

struct exec;

/* On engines without notifications nothing of this runs. */
struct notify {
    struct store *store; /* owned; used by its thread alone */
    pthread_t thread;
    bool open;
    int wake_fd;                     /* owned, while open */
    atomic_uint tell;                /* HINT_... to be sent */
    atomic_bool runs, hears, closed; /* runs: read by threads that started before this one */
};

/* Open a connection and start the thread, where the engine has notifications; else do nothing. */
MUST_USE enum pawl_status notify_open(struct exec *e, struct pawl_err *err);
/* End the thread. */
void notify_close(struct exec *e);
/* Free what notify_open() made; after notify_close(). */
void notify_release(struct exec *e);
/* Notify other processes of this (HINT_...), soon. Any thread; does not block. */
void notify_send(struct exec *e, unsigned kinds);
/* Do other processes' notifications arrive now? While they do not, the store thread polls faster.
 */
bool notify_works(struct exec *e);

#endif
