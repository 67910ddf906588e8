/*
 * group.c - what the thread of a lane does with a group: one transaction for all new events, one
 * scan for all events to find.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/mem.h"
#include "events/inside.h"

/* ---- New events ------------------------------------------------------------------------------ */

static void all_failed(struct errand **v, size_t n, enum pawl_status st, const struct pawl_err *err)
{
    for (size_t i = 0; i < n; i++) {
        v[i]->status = st;
        v[i]->err = *err;
    }
}

/* A client whose time is up before the commit has answered gets the id in its error. */
static void told(void *ctx, int64_t first, size_t n)
{
    struct errand **v = ctx;
    for (size_t i = 0; i < n; i++)
        atomic_store(&v[i]->id, first + (int64_t)i);
}

/* Add as many of them as there are ids, and return how many. */
static size_t add_some(struct events_db *db, struct errand **v, size_t n, struct event *events)
{
    struct pawl_err err = { 0 };
    for (size_t i = 0; i < n; i++)
        events[i].value =
            v[i]->pending ? BYTES_NONE : (struct bytes){ v[i]->value, v[i]->value_len };
    struct event_add add = { .v = events, .n = n, .told = told, .ctx = v };
    enum pawl_status st = events_db_add(db, &add, &err);
    if (st != PAWL_OK && st != PAWL_UNKNOWN)
        add.n = n;
    all_failed(v, add.n, st, &err);
    for (size_t i = 0; i < add.n; i++)
        atomic_store(&v[i]->id, st == PAWL_OK || st == PAWL_UNKNOWN ? events[i].id : 0);
    return add.n;
}

void group_add(struct events_db *db, struct errand **v, size_t n)
{
    struct event *events = mem_zalloc(n * sizeof *events);
    struct pawl_err err = { 0 };
    if (!events) {
        all_failed(v, n, err_no_memory(&err, "events"), &err);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        v[i]->pending = v[i]->kind == ERRAND_ADD_LATER;
        if (!v[i]->pending)
            v[i]->value_len = event_word(&world_real, v[i]->value);
    }
    for (size_t done = 0; done < n;)
        done += add_some(db, v + done, n - done, events);
    mem_free(events);
}

/* ---- Questions ------------------------------------------------------------------------------- */

static size_t pick(struct errand **v, size_t n, enum errand_kind kind, struct errand **out)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (v[i]->kind == kind)
            out[found++] = v[i];
    return found;
}

static void count_all(struct events_db *db, struct errand **v, size_t n)
{
    struct pawl_err err = { 0 };
    int64_t count = 0;
    enum pawl_status st = events_db_count(db, &count, &err);
    all_failed(v, n, st, &err);
    for (size_t i = 0; i < n; i++)
        v[i]->count = count;
}

static void find_all(struct events_db *db, struct errand **v, size_t n)
{
    struct arena a;
    struct pawl_err err = { 0 };
    arena_init(&a, EVENTS_LOOK_LEN_MAX);
    struct event *events = arena_zalloc(&a, n, sizeof *events);
    for (size_t i = 0; events && i < n; i++)
        events[i].id = v[i]->id;
    enum pawl_status st =
        events ? events_db_find(db, &a, events, n, &err) : err_no_memory(&err, "events");
    all_failed(v, n, st, &err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        struct bytes value = events[i].value;
        v[i]->there = events[i].id != 0;
        v[i]->pending = !value.data;
        v[i]->value_len = MIN(value.len, sizeof v[i]->value - 1);
        if (value.len)
            memcpy(v[i]->value, value.data, v[i]->value_len);
    }
    arena_release(&a);
}

static void ready_all(struct events_db *db, struct errand **v, size_t n)
{
    struct pawl_err err = { 0 };
    all_failed(v, n, events_db_ready(db, &err), &err);
}

void group_look(struct events_db *db, struct errand **v, size_t n)
{
    static const struct {
        enum errand_kind kind;
        void (*run)(struct events_db *db, struct errand **v, size_t n);
    } kinds[] = { { ERRAND_READY, ready_all },
                  { ERRAND_FIND, find_all },
                  { ERRAND_COUNT, count_all } };
    struct errand *some[EVENTS_LOOK_MAX];
    CHECK(n <= EVENTS_LOOK_MAX);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        size_t found = pick(v, n, kinds[i].kind, some);
        if (found)
            kinds[i].run(db, some, found);
    }
}
