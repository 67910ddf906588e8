/*
 * name.h - the node's name: the default, and making sure that no living process of this machine has
 * it already. Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_NAME_H
#define EXEC_NAME_H

#include "base/err.h"
#include "base/macros.h"

struct exec;

/* Names are kept until the handle is freed: another thread may still read an old one. */
struct exec_name {
    struct exec_name *next;
    char text[];
};

/* Set e->conf.node to the given name. NULL: to a default, made of the host's name and 8 hex digits
 * over machine, database and working folder, so that it is the same after a restart and differs for
 * another server of this machine. NO_MEMORY. */
MUST_USE enum pawl_status name_open(struct exec *e, const char *given, struct pawl_err *err);
/* Give the name up: other processes of this machine may take it from now on. */
void name_leave(struct exec *e);
/* Give it up and free all names. */
void name_release(struct exec *e);

/* Wait for a lock of this machine on the name, so that processes with one name enter the registry
 * one after the other: from reading it to being in it. Returns a file descriptor for
 * name_turn_end(). Below 0: there is no lock, which only means that two may enter at once. */
int name_turn(const char *node);
/* Release it; accepts what name_turn() returned. */
void name_turn_end(int turn);

/* Before entering the registry: show other processes of this machine that this boot lives, and do
 * not take the name of one that lives. A given name is refused then, with STATE; a default name
 * gets a number (`host-1a2b3c4d-2`), and e->conf.node becomes that. */
MUST_USE enum pawl_status name_settle(struct exec *e, struct pawl_err *err);

#endif
