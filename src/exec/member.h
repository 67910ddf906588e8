/*
 * member.h - this process in the registry of nodes (node.h is what others see of it). Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_MEMBER_H
#define EXEC_MEMBER_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/has.h"
#include "exec/node.h"
#include "store/op.h"

struct node_row;

struct membership {
    pthread_mutex_t lock;
    /* Set by exec_enter(), before another thread reads them. */
    char *address, *roles_text, *queues; /* owned; NULL: none; none; all */
    struct has has;
    unsigned roles;
    int slots;
    atomic_int_least64_t connections; /* of HTTP clients */
    /* Under the lock. */
    bool joined;     /* it is in the registry and sends heartbeats */
    bool drain;      /* what the registry last said that it should do */
    uint64_t drains; /* how often this process decided that itself */
    int64_t sent_us; /* when the last heartbeat that was stored was sent; monotonic */
    enum {
        CUT_NOT,
        CUT_TOLD,
        CUT_DONE
    } cut; /* sent_us is too long ago: workers were told to stop;
              their calls were handed back */
    char why[sizeof((struct pawl_err *)0)->text]; /* the error of the last heartbeat; "": it was
                                                     stored */
    void (*replaced)(void *ctx);
    void *replaced_ctx;
    pthread_t thread; /* watches sent_us, and never asks the database anything */
    pthread_cond_t wake;
    bool runs, closed;
};

/* Not in the registry yet. */
void member_init(struct membership *m);
/* After member_close(). */
void member_release(struct membership *m);
/* Write this process into the registry; the calls that an earlier boot of this name held are
 * reclaimed first. Not on the store thread. */
MUST_USE enum pawl_status exec_join(struct exec *e, struct pawl_err *err);
/* Fill *out with the next heartbeat. False: send none, because this process is not in the registry
 * or another one has its name. */
bool member_beat(struct exec *e, struct op *out);
/* A heartbeat that was sent then (monotonic) is stored. Starts the workers again if they were
 * stopped for lack of one. */
void member_stored(struct exec *e, int64_t sent_us);
/* A heartbeat was not stored, for this reason. */
void member_refused(struct exec *e, const char *why);
/* End the thread that watches the heartbeat. */
void member_close(struct exec *e);
/* Are the workers stopped because no heartbeat was stored for too long? */
bool member_cut(struct exec *e);
/* Copy the error of the last heartbeat; "": it was stored, or has no answer yet. */
void member_why(struct exec *e, char *out, size_t size);
/* Call before the registry is read; the result goes to member_seen(), so that a drain decided here
 * in between is not undone by the older row. */
uint64_t member_look(struct exec *e);
/* This process's row as it was read after member_look() returned `since`: drain or stop draining as
 * it says; another boot in it raises a doubt (housekeeping_doubt). */
void member_seen(struct exec *e, const struct node_row *own, uint64_t since);
/* Call the function that exec_on_replaced() set. */
void member_replaced(struct exec *e);
/* Nodes or leaders may have changed: send a heartbeat and read the registry now. Any thread. */
void registry_changed(struct exec *e);

#endif
