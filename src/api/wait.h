/*
 * wait.h - requests that wait without a thread: for a time, for the end of a call, until their
 * client leaves or the server stops.
 *
 * Loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_WAIT_H
#define API_WAIT_H

#include "api/ask.h"
#include "exec/waiter.h"

/* Why a request that waits goes on. */
enum wait_why {
    WAIT_TIME_UP,     /* its time is up */
    WAIT_CLIENT_GONE, /* the client has left (q->r->cut: no answer reaches it any more) */
    WAIT_STOPPING,    /* the server is stopping */
    WAIT_REVOKED,     /* its token may not do this any more (q->revoked: the answer will say so) */
};

struct timed_wait {
    struct ask *ask;
    /* Called once, unless timed_wait_leave() came first. */
    void (*over)(struct timed_wait *p, enum wait_why why);
    struct loop_timer timer;
    struct timed_wait *next, **link;
};
/* Let the ask wait until until_us (monotonic). May call `over` at once, when the client has left or
 * the server is stopping. An ask waits in one place at a time. */
void timed_wait_enter(struct ask *q, struct timed_wait *p, int64_t until_us);
/* End the wait without calling `over`. Does nothing when it does not wait. */
void timed_wait_leave(struct timed_wait *p);

/* The tokens have changed: end the waits of those that may not ask any more. */
void timed_wait_check(struct api *api);

/* ---- Waiting for the end of a call ----------------------------------------------------------- */

enum wait_end {
    WAIT_TOLD,   /* w->call is the call as it ended, in w->arena */
    WAIT_FAILED, /* it has ended, but there was no memory for it */
    WAIT_OVER,   /* time is up, client gone or server stopping: w->why */
};
/* Enter before the store is asked, so that the end cannot fall between; then begin to wait, or
 * leave. */
struct wait {
    struct waiter waiter; /* first */
    struct timed_wait timed;
    struct loop_task task;
    struct arena arena; /* what was told */
    struct call call;
    bool entered, told, woken, waiting, failed;
    enum wait_why why;
    void (*done)(struct wait *w, enum wait_end how); /* once, after wait_begin() */
};
/* Register for the end of this call. `id` must live as long as the ask. */
void wait_enter(struct ask *q, struct wait *w, struct bytes id);
/* Wait until the call ends or until_us (monotonic); w->done is called once, perhaps at once. */
void wait_begin(struct wait *w, int64_t until_us);
/* Stop waiting. True: `done` will not be called. False: the end was told already, and `done` comes
 * with WAIT_TOLD although the wait never began. */
bool wait_leave(struct wait *w);
/* Free what was told. */
void wait_end(struct wait *w);

#endif
