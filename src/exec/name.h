/*
 * name.h - the node's name: what it is when none was given, and that no living process of this
 * machine has it already. Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_NAME_H
#define EXEC_NAME_H

#include "base/err.h"
#include "base/macros.h"

struct exec;

struct exec_name {
    struct exec_name *next;
    char text[];
};

/* e->conf.node, from what was given. NULL: the host's name and 8 hex digits over machine, database
 * and working folder: the same after a restart, another one for another server of this machine. */
MUST_USE enum pawl_status name_open(struct exec *e, const char *given, struct pawl_err *err);
/* Others of this machine may take the name from now on. */
void name_leave(struct exec *e);
void name_release(struct exec *e);

/* Processes of this machine that enter under one name do so one after the other: from reading the
 * registry to being in it. The number is for name_turn_end(); below 0 there is no turn to be had,
 * which only means that two may enter at once. */
int name_turn(const char *node);
void name_turn_end(int turn);

/* Before entering: be known as alive to other processes of this machine, and do not take the name
 * of one that lives. A name that was given is refused then, with STATE; a default one gets a number
 * (`host-1a2b3c4d-2`), and e->conf.node is that. */
MUST_USE enum pawl_status name_settle(struct exec *e, struct pawl_err *err);

#endif
