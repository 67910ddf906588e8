/*
 * work_signal.h - waiting for work by hand: a number that rises whenever a call may have become
 * due.
 *
 * A claim that finds nothing reads the number before it claims and waits until it has moved. A
 * program with an event loop does not block: it registers a watch, which is called once for each
 * exec_work_signal_ask(). Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_WORK_SIGNAL_H
#define EXEC_WORK_SIGNAL_H

#include <stdint.h>

struct exec;

/* Calls may have become due: the workers' claims and those by hand look again. */
void exec_work_came(struct exec *e);
/* The same from this moment of the database's clock on; 0: now. */
void exec_work_due(struct exec *e, int64_t at_us);

/* The number now. */
uint64_t exec_work_signal(struct exec *e);
/* Block until it differs from `seen`, or until_us (monotonic) has passed. */
void exec_work_signal_wait(struct exec *e, uint64_t seen, int64_t until_us);

struct work_signal_watch {
    void (*moved)(struct work_signal_watch *w); /* on the thread that moved it; must not block */
};
/* Register the one watch, borrowed. NULL: remove it; when this returns no thread is inside its
 * `moved`. */
void exec_work_signal_watch(struct exec *e, struct work_signal_watch *w);
/* Call the watch at the next move, once. Ask before you look for work, or a move between the two is
 * missed. */
void exec_work_signal_ask(struct exec *e);
/* Take that back. */
void exec_work_signal_unask(struct exec *e);

#endif
