/*
 * engine.h - a server engine beside its floor: batches of 1,000 calls on two connections, in
 * alternating rounds.
 *
 * What is measured is a `side`: it accepts, claims and finishes, with one connection for each
 * thread. The engine is one side, through store.h, the same for every URL. A floor is another,
 * written by hand on the same tables; it is all that the bench of a further engine needs.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include <pawl.h>

#include "base/macros.h"
#include "bench/floor.h"
#include "bench/table.h"

#define BENCH_BATCH 1000
#define BENCH_CONNS 2
/* The result that is stored for every call. */
extern const char bench_result[];
extern const size_t bench_result_len;

/* A database and schema that a side works in. */
struct bench_place {
    const char *url;
    const char *schema; /* NULL: "pawl" */
};

/* What can be measured. A connection is used by one thread at a time; each of accept, claim and
 * finish is one transaction. */
struct bench_side {
    enum pawl_status (*open)(const struct bench_place *place, void **out, struct pawl_err *err);
    void (*close)(void *conn); /* accepts NULL */
    /* Prepare to accept these calls; not measured. `ids` is borrowed until the next load. */
    enum pawl_status (*load)(void *conn, const struct bench_id *ids, size_t n,
                             struct pawl_err *err);
    /* Accept n of the loaded calls, from index `at`. */
    enum pawl_status (*accept)(void *conn, size_t at, size_t n, struct pawl_err *err);
    /* Lease up to max calls and read their inputs; the connection remembers the lease. *out_n 0:
     * none is left. */
    enum pawl_status (*claim)(void *conn, size_t max, size_t *out_n, struct pawl_err *err);
    /* Store a result for every call of the lease, which ends it. */
    enum pawl_status (*finish)(void *conn, struct pawl_err *err);
    /* Finish one lease and claim the next in one transaction. */
    enum pawl_status (*finish_claim)(void *conn, size_t max, size_t *out_n, struct pawl_err *err);
};

/* The engine behind a URL. A batch is one operation with 1,000 calls, as a program submits it
 * (batch), or 1,000 operations with one call each, as 1,000 callers make that share a group
 * (singles). */
extern const struct bench_side bench_side_batch, bench_side_singles;
/* Plain libpq and plain libmariadb (floor_pg.c, floor_maria.c). */
extern const struct bench_side bench_floor_pg, bench_floor_maria;
/* The floor for the engine of a URL; NULL: SQLite, whose floor is floor.h, or an unknown engine. */
const struct bench_side *bench_floor_of(const char *url);
/* Make the schema with its tables. */
MUST_USE enum pawl_status bench_engine_schema(const struct bench_place *place,
                                              struct pawl_err *err);

/* A comparison: two sides in turn, each in its own place with the schema in it, so that both are of
 * the same size. */
struct bench_engine {
    struct bench_place place, floor_place;
    const struct bench_side *floor;
    /* Called between two measurements, on each database, for work that the server would otherwise
     * do at any moment (vacuum, analyze). May be NULL. */
    enum pawl_status (*tend)(const char *url, struct pawl_err *err);
    size_t rounds, calls; /* of one round; a multiple of 2,000 */
    double goal;          /* the least ratio to the floor */
    struct bench_rounds accept, singles, drain, fused;
    struct bench_rounds burst_accept, burst_drain;
};
/* Measure accept, singles, drain and fused in alternating rounds. */
MUST_USE enum pawl_status bench_engine_run(struct bench_engine *e, struct pawl_err *err);
/* Measure only the burst figures, on empty databases: a few calls, then a pause in which the server
 * counts how few they are, then many at once on the same connections. It shows a side whose query
 * plans were made for few rows. */
MUST_USE enum pawl_status bench_engine_burst(struct bench_engine *e, struct pawl_err *err);
/* Print the rows, between bench_table_begin() and bench_table_end(). */
void bench_engine_rows(const struct bench_engine *e, struct bench_table *t);

enum bench_shape { SHAPE_ACCEPT, SHAPE_DRAIN, SHAPE_FUSED };
struct bench_alone {
    struct bench_place place;
    const struct bench_side *side;
    enum bench_shape shape;
    size_t calls; /* a multiple of 1,000 */
};
/* Accept and then drain `calls` calls on two connections of one side alone; both are timed. */
MUST_USE enum pawl_status bench_engine_through(const struct bench_alone *b, double *out_accept,
                                               double *out_drain, struct pawl_err *err);
/* Do one shape of work on one connection alone, to trace it. *out_s: how long it took. */
MUST_USE enum pawl_status bench_engine_alone(const struct bench_alone *b, double *out_s,
                                             struct pawl_err *err);

#endif
