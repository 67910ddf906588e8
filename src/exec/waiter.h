/*
 * waiter.h - waiting for the end of a call.
 *
 * Enter a waiter before the question is asked (submit, or read the call), so that the end cannot
 * fall between. It is told once: by the commit that ended the call in this process, or after a read
 * when the call ended elsewhere. Telling has two parts: `tell` copies what the waiter wants, under
 * the table's lock; `wake` lets it go, later and without the lock, so that the many threads woken
 * by one commit do not contend for it. The waiter's memory is its owner's. It may be freed after
 * exec_unwait() returned true, else only after `wake`.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_WAITER_H
#define EXEC_WAITER_H

#include "model/call.h"

struct exec;

struct waiter {
    struct bytes id; /* borrowed from the owner */
    /* The call as it ended, borrowed for this call. The thread that found the end; under a lock. */
    void (*tell)(struct waiter *w, const struct call *c);
    void (*wake)(struct waiter *w); /* the last touch; must not block */
    /* The table's own. */
    struct waiter *next; /* same bucket; or told, not yet woken */
    bool entered, look;  /* in the table; a read was asked for */
    uint64_t no;         /* in the order of entering */
};

/* Enter a waiter whose id, tell and wake are set. */
void exec_wait(struct exec *e, struct waiter *w);
/* Take it out again. False: it was told, and its `wake` was or will be called. */
bool exec_unwait(struct exec *e, struct waiter *w);
/* These calls may have ended without a finish of this process: the housekeeping thread reads them
 * soon, if waiters of this process wait for them. */
void exec_look(struct exec *e, const struct bytes *ids, size_t n);

#endif
