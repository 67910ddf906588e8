/*
 * table.h - the two tables, over one connection. Private to the room; one thread at a time.
 *
 * Everything here returns a status and logs nothing. BUSY: nothing was stored, and a repetition may
 * succeed. UNKNOWN: the answer to a commit was lost, and the result cannot be found out.
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

/* Connect. The caller owns *out and closes it with events_db_close(). `url` must outlive it.
 * INVALID for an engine without a driver. */
MUST_USE enum pawl_status events_db_open(const char *url, int64_t lifetime_us,
                                         struct events_db **out, struct pawl_err *err);
/* Close the connection; accepts NULL. */
void events_db_close(struct events_db *db);
/* Create the tables and the one row of the counter if they are missing; safe when several processes
 * do it at once. STATE: tables of these names exist and have other columns. */
MUST_USE enum pawl_status events_db_make(struct events_db *db, struct pawl_err *err);
/* OK when the database answers and there is exactly one counter; BROKEN otherwise. */
MUST_USE enum pawl_status events_db_ready(struct events_db *db, struct pawl_err *err);

struct event {
    int64_t id;         /* 0: none yet */
    struct bytes value; /* absent: pending */
};
/* Events to add. */
struct event_add {
    struct event *v;
    size_t n; /* in, out */
    void (*told)(void *ctx, int64_t first, size_t n);
    void *ctx;
};
/* Give the first add->n events the next consecutive ids and insert them, in one transaction. On
 * return add->n is how many: fewer when ids run out. `told` (may be NULL) is called with the first
 * id and the number before the commit. FULL: no id is left. UNKNOWN: the events have these ids if
 * they are stored. */
MUST_USE enum pawl_status events_db_add(struct events_db *db, struct event_add *add,
                                        struct pawl_err *err);

/* The number of events, by one scan. */
MUST_USE enum pawl_status events_db_count(struct events_db *db, int64_t *out, struct pawl_err *err);
/* Find n events in one scan. v[i].value is set, in `a`; v[i].id becomes 0 when there is no such
 * event. */
MUST_USE enum pawl_status events_db_find(struct events_db *db, struct arena *a, struct event *v,
                                         size_t n, struct pawl_err *err);

/* A batch of pending events. */
struct event_work {
    size_t max;
    bool idle;           /* the last poll was empty */
    const int64_t *skip; /* ids to leave out, at least one: 0, which no event has */
    size_t n_skip;
    event_maker *make;
    void *ctx;
    void (*failed)(void *ctx, int64_t id); /* its value could not be made */
    void *failed_ctx;
    size_t taken, done; /* out */
    int64_t first;      /* out: the id of the first one taken */
};
/* Lock up to w->max pending events, give them their values, and commit, in one transaction. */
MUST_USE enum pawl_status events_db_work(struct events_db *db, struct event_work *w,
                                         struct pawl_err *err);
/* After BUSY: did it conflict with another transaction, so that repeating it may succeed at
 * once? */
bool events_db_met(const struct events_db *db);

#endif
