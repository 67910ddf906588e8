/*
 * unwritable.h - a database that answers and refuses every write (unwritable.c). Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_UNWRITABLE_H
#define EXEC_UNWRITABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/op.h"

struct exec;

struct unwritable {
    atomic_bool whole;             /* the last group was refused as a whole */
    atomic_int_least64_t since_us; /* the first refusal since a row was changed; 0: none; monotonic
                                    */
    atomic_int_least64_t last_us;  /* the last one */
    atomic_int_least64_t told_us;  /* since_us, once it was logged; 0: not, or no longer refused */
    pthread_mutex_t lock;
    char text[sizeof((struct pawl_err *)0)->text]; /* under the lock: what the database said last */
};

/* No write was refused yet. */
void unwritable_init(struct unwritable *r);
/* After the last thread that may call any of these has ended. */
void unwritable_release(struct unwritable *r);
/* How a group went: its status and its operations. Store thread. */
void unwritable_note(struct exec *e, enum pawl_status st, struct op *const *ops, size_t n);
/* The database was away and answers again: refusals of that time do not count. Housekeeping thread.
 */
void unwritable_restart(struct exec *e);
/* Log when writes begin to be refused for good, and when they are stored again. Housekeeping
 * thread. */
void unwritable_look(struct exec *e);
/* When a write was last refused (monotonic); 0: none since one was stored, or the database does not
 * answer at all. */
int64_t unwritable_last(const struct exec *e);
/* Copy what the database said when it last refused a write; "" before it did. Any thread. */
void unwritable_copy(struct exec *e, char *out, size_t size);

#endif
