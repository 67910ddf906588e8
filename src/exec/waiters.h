/*
 * waiters.h - who waits for which id.
 *
 * A waiter is entered before the question is asked (register, look, park), and told once: by the
 * commit that ended the call here, or by a look when it ended elsewhere. Telling has two parts.
 * `tell` copies what the waiter wants, under the table's lock; `wake` lets it go, later and without
 * the lock, so that the many who are woken by one commit do not run into each other there. The
 * waiter's memory is its owner's: waiters_drop() says whether it was told, and whoever was told
 * leaves only after `wake`.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_WAITERS_H
#define EXEC_WAITERS_H

#include <pthread.h>

#include "model/call.h"

struct waiter {
    struct bytes id;                                      /* borrowed from the owner */
    void (*tell)(struct waiter *w, const struct call *c); /* c is borrowed for the call */
    void (*wake)(struct waiter *w);                       /* the last touch */
    struct waiter *next;                                  /* same bucket; or told, not yet woken */
    bool entered, look;                                   /* in the table; a look was asked for */
    uint64_t no;                                          /* those who came later have more */
};

struct waiters {
    pthread_mutex_t lock;
    struct waiter **buckets; /* owned */
    size_t n_buckets, n;
    size_t n_look;
    uint64_t came; /* all who were ever entered */
};

MUST_USE enum pawl_status waiters_init(struct waiters *w, struct pawl_err *err);
void waiters_release(struct waiters *w);
/* True when it is the only one: nobody listened to other processes until now. */
bool waiters_enter(struct waiters *w, struct waiter *one);
/* Take it out. False: it was told, and its `wake` has come or will. */
bool waiters_drop(struct waiters *w, struct waiter *one);
/* Tell all who wait for this id, the first `came` of all, and put them, out of the table, before
 * `told`; wake them with waiters_wake(). WAITERS_ALL: whoever waits now. */
#define WAITERS_ALL UINT64_MAX
struct waiter *waiters_tell(struct waiters *w, const struct call *ended, uint64_t came,
                            struct waiter *told);
void waiters_wake(struct waiter *told);
/* Ask for a look at this id; true when somebody waits for it. */
bool waiters_mark(struct waiters *w, struct bytes id);
void waiters_mark_all(struct waiters *w);
/* The ids marked, copied into `a`, at most max; marks are taken back. `came`: whom an answer to
 * what is asked from now on concerns. Who comes later may ask about a call that has begun anew. */
size_t waiters_marked(struct waiters *w, struct arena *a, struct bytes *out, size_t max,
                      uint64_t *came);
bool waiters_any_marked(struct waiters *w);
size_t waiters_count(struct waiters *w);

#endif
