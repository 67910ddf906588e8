/*
 * waiters.h - the table of waiters (waiter.h), hashed by id. Room-private; any thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_WAITERS_H
#define EXEC_WAITERS_H

#include <pthread.h>

#include "exec/waiter.h"

struct waiters {
    pthread_mutex_t lock;
    struct waiter **buckets; /* owned */
    size_t n_buckets, n;
    size_t n_look;
    uint64_t came; /* all that were ever entered */
};

/* NO_MEMORY. */
MUST_USE enum pawl_status waiters_init(struct waiters *w, struct pawl_err *err);
/* The table is empty. */
void waiters_release(struct waiters *w);
/* Enter a waiter. True when it is the only one: until now other processes' commits did not matter.
 */
bool waiters_enter(struct waiters *w, struct waiter *one);
/* Take it out. False: it was told, and its `wake` was or will be called. */
bool waiters_drop(struct waiters *w, struct waiter *one);
#define WAITERS_ALL UINT64_MAX
/* Tell all waiters of this id that are among the first `came` ever entered (WAITERS_ALL: all of
 * them), and link them, out of the table, before `told`. Returns the new list, for waiters_wake().
 */
struct waiter *waiters_tell(struct waiters *w, const struct call *ended, uint64_t came,
                            struct waiter *told);
/* Call `wake` of each. */
void waiters_wake(struct waiter *told);
/* Ask the housekeeping thread to read this call; true when it has waiters. */
bool waiters_mark(struct waiters *w, struct bytes id);
/* The same for every id with waiters. */
void waiters_mark_all(struct waiters *w);
/* Take the marked ids, at most max, copied into `a`. *came is for waiters_tell(): an answer to what
 * is read from now on concerns only waiters that are in the table now, because one that comes later
 * may ask about a call that was begun anew. */
size_t waiters_marked(struct waiters *w, struct arena *a, struct bytes *out, size_t max,
                      uint64_t *came);
/* Is any id marked? */
bool waiters_any_marked(struct waiters *w);
/* How many waiters there are. */
size_t waiters_count(struct waiters *w);

#endif
