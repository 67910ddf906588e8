/*
 * node.h - this process among the nodes: the registry, its roles, draining, leadership.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_NODE_H
#define EXEC_NODE_H

#include <pawl.h>

#include "base/bytes.h"
#include "base/macros.h"

struct exec;

/* What a node does, its roles in the registry: answer HTTP, run handlers, compete for leadership.
 */
enum { DUTY_GATEWAY = 1, DUTY_WORKER = 2, DUTY_SCHEDULER = 4, DUTY_ALL = 7 };
/* The bit of a role's name; 0: there is no such role. */
unsigned duty_find(struct bytes name);

struct exec_member {
    const char *address;       /* NULL: it answers no HTTP */
    unsigned roles;            /* DUTY_... */
    int slots;                 /* handlers that will run here; 0: none */
    const char *const *queues; /* n_queues 0: all */
    size_t n_queues;
    const char *const *has; /* capabilities of its workers */
    size_t n_has;
};
/* Enter the registry and begin to send heartbeats; once, and before anything is claimed. Strings
 * are copied. STATE: a living process of this machine has the node's name. */
MUST_USE enum pawl_status exec_enter(struct exec *e, const struct exec_member *m,
                                     struct pawl_err *err);
/* Is this process in the registry? */
bool exec_entered(struct exec *e);
/* Leave the registry: calls that are still held go back uncounted, led roles become free. A failure
 * is logged; other nodes then notice the silence. */
void exec_leave(struct exec *e);
/* How many HTTP clients are connected; the next heartbeat says so. */
void exec_connections(struct exec *e, int64_t n);
/* Set the function to call once, on a thread of the machine, when another process has taken this
 * node's name; it must not block. NULL: none; when this returns no thread is inside the old one. */
void exec_on_replaced(struct exec *e, void (*replaced)(void *ctx), void *ctx);

/* Drain: take no new work. What was claimed and has not begun is handed back uncounted, running
 * handlers go on. False: claim again. */
void exec_drain(struct exec *e, bool drained);
/* The same for a caller that has stored the request in the registry: the next read of the registry
 * then finds nothing new. */
void exec_drain_requested(struct exec *e, bool drain);
/* Is this node drained? */
bool exec_drained(struct exec *e);

/* Roles that one node at a time has (lead.c). */
enum lead_role { LEAD_MAINTENANCE, LEAD_SCHEDULER, LEAD_COUNT };
/* Does this node hold the role now? */
bool exec_leads(struct exec *e, enum lead_role role);

/* CPU use of this process over the last second or more, in thousandths of a core. */
int64_t process_cpu_milli(void);
/* Resident memory of this process in bytes; 0 when it cannot be read. */
int64_t process_memory(void);

#endif
