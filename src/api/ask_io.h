/*
 * ask_io.h - how a request reaches the store and comes back: a write through exec's store thread, a
 * read on one of the loop's threads for work.
 *
 * Both structs stand at the head of the route's own struct, made on q->a and zeroed. Their memory
 * must be given back (ask_write_end, ask_read_end) before the ask ends.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_ASK_IO_H
#define API_ASK_IO_H

#include <stdatomic.h>

#include "api/ask.h"
#include "exec/write_job.h"

/* A write on its way. Fill job.op (without .a) and `done`, then ask_write(). */
struct ask_write {
    struct write_job job; /* first */
    struct ask *ask;
    struct arena arena;                /* what the answer in job.op points at */
    void (*done)(struct ask_write *w); /* loop thread */
    struct loop_task task;
    struct ask_write *next;
    struct bytes id;       /* the call it is about, for an answer of UNKNOWN; absent: several */
    struct loop_task late; /* its commit has had no answer for too long */
    bool is_late;          /* `late` was posted; set before the answer, never after */
    atomic_int settled;    /* see ask_write_settled() */
    bool (*quiet)(struct ask_write *w); /* store thread: true when the loop need not hear of this
                                           answer now; NULL: it always must */
};
/* Post the write. The writes of one turn of the loop are posted together and so share a commit.
 * `done` is called exactly once, with the answer in job.op and job.op.status; with BUSY also when
 * it could not be posted. When its commit has had no answer for COMMIT_WAIT_US the client is
 * answered UNKNOWN with `id`, and the route goes on as if the client had gone: `done` is still
 * called. */
void ask_write(struct ask *q, struct ask_write *w);
/* For a write with `quiet`, whose answer may not have been announced. True: it is settled and its
 * answer may be read. False: it is still out, and `done` will be called. Loop thread. */
bool ask_write_settled(struct ask_write *w);
/* Free the answer's memory. Accepts one that was never posted. */
void ask_write_end(struct ask_write *w);

/* A read. Fill `work` and `done`, then ask_read(). */
struct ask_read {
    struct loop_work inside; /* first */
    struct ask *ask;
    struct arena arena;
    /* Another thread, with a borrowed connection: may use rd->arena and its own struct, not q->a.
     */
    enum pawl_status (*work)(struct ask_read *rd, struct store *s);
    void (*done)(struct ask_read *rd); /* loop thread */
    enum pawl_status status;           /* what work returned, or why there was no connection */
    struct pawl_err err;
};
/* Run it. `done` is called exactly once, perhaps before this returns. */
void ask_read(struct ask *q, struct ask_read *rd);
/* Free what it read. */
void ask_read_end(struct ask_read *rd);
/* The same for one that failed. Returns why. */
struct pawl_err ask_read_why(struct ask_read *rd);
/* Did it fail? Then it has been freed, and the ask has ended with why. */
bool ask_read_failed(struct ask_read *rd);

#endif
