/*
 * table.h - the two tables, over one connection. Private to the room; one thread at a time.
 *
 * Everything here answers with a status and logs nothing. BUSY: nothing was stored, the same again
 * may well do. UNKNOWN: the answer to a commit was lost, and nobody can tell any more.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVENTS_TABLE_H
#define EVENTS_TABLE_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/world.h"
#include "events/events.h"

struct events_db;

MUST_USE enum pawl_status events_db_open(const char *url, int64_t lifetime_us,
                                         struct events_db **out, struct pawl_err *err);
void events_db_close(struct events_db *db); /* accepts NULL */
/* The tables and the one row of the counter, made where they are missing; safe when several do it
 * at once. STATE: tables of these names are there and are somebody else's. */
MUST_USE enum pawl_status events_db_make(struct events_db *db, struct pawl_err *err);
/* One counter is there, and the database answers. */
MUST_USE enum pawl_status events_db_ready(struct events_db *db, struct pawl_err *err);

struct event {
    int64_t id;         /* 0: none yet */
    struct bytes value; /* absent: pending */
};
/* The next ids, in a row, for the first *n events, in one transaction with them; *n: so many were
 * left. `told` (may be NULL) hears the first id and how many before they are committed. FULL: there
 * are no more ids. UNKNOWN: the ids are those they may have. */
struct event_add {
    struct event *v;
    size_t n; /* in, out */
    void (*told)(void *ctx, int64_t first, size_t n);
    void *ctx;
};
MUST_USE enum pawl_status events_db_add(struct events_db *db, struct event_add *add,
                                        struct pawl_err *err);

MUST_USE enum pawl_status events_db_count(struct events_db *db, int64_t *out, struct pawl_err *err);
/* n ids in one scan; v[i].value is filled in, in `a`, and v[i].id is 0 when there is no such event.
 */
MUST_USE enum pawl_status events_db_find(struct events_db *db, struct arena *a, struct event *v,
                                         size_t n, struct pawl_err *err);

/* Up to max pending events, held, given their values and let go in one transaction. */
struct event_work {
    size_t max;
    bool idle;           /* nothing was found the last time */
    const int64_t *skip; /* ids to pass by, at least one: 0 is no event's */
    size_t n_skip;
    event_maker *make;
    void *ctx;
    void (*failed)(void *ctx, int64_t id); /* it could not be made */
    void *failed_ctx;
    size_t taken, done; /* out */
    int64_t first;      /* out: the id of the first that was taken */
};
MUST_USE enum pawl_status events_db_work(struct events_db *db, struct event_work *w,
                                         struct pawl_err *err);
/* After BUSY: did it meet somebody else's transaction, so that the same at once may do? */
bool events_db_met(const struct events_db *db);

#endif
