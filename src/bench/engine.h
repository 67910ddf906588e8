/*
 * engine.h - a server engine beside its floor: batches of 1,000 on two connections, in
 * alternating rounds.
 *
 * Whatever is measured is a `side`: it accepts, claims and finishes on a connection of its own for
 * each thread. The engine is one, through store.h, the same for every URL; a floor is another,
 * written by hand on the same tables, and all that a second engine has to bring.
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
/* What is stored as the result of every call. */
extern const char bench_result[];
extern const size_t bench_result_len;

/* Where a side has its tables. */
struct bench_place {
    const char *url;
    const char *schema; /* NULL: "pawl" */
};

/* A connection is used by one thread at a time. */
struct bench_side {
    enum pawl_status (*open)(const struct bench_place *place, void **out, struct pawl_err *err);
    void (*close)(void *conn); /* accepts NULL */
    /* Get ready to accept these; not measured. Borrowed until the next load. */
    enum pawl_status (*load)(void *conn, const struct bench_id *ids, size_t n,
                             struct pawl_err *err);
    /* One transaction each. Accept n of what was loaded, from `at`: */
    enum pawl_status (*accept)(void *conn, size_t at, size_t n, struct pawl_err *err);
    /* Lease up to max and read their inputs; the connection remembers the lease. 0: none is left.
     */
    enum pawl_status (*claim)(void *conn, size_t max, size_t *out_n, struct pawl_err *err);
    /* A result for every call of the lease, which ends. */
    enum pawl_status (*finish)(void *conn, struct pawl_err *err);
    enum pawl_status (*finish_claim)(void *conn, size_t max, size_t *out_n, struct pawl_err *err);
};

/* The engine behind a URL. A batch is one operation of 1,000 calls, as a program hands it in, or
 * 1,000 operations of one call, as 1,000 callers do who meet in one group. */
extern const struct bench_side bench_side_batch, bench_side_singles;
/* Straight libpq and straight libmariadb (floor_pg.c, floor_maria.c). */
extern const struct bench_side bench_floor_pg, bench_floor_maria;
/* The floor of a URL's engine; NULL: it has none of this kind. */
const struct bench_side *bench_floor_of(const char *url);
/* Make the schema. */
MUST_USE enum pawl_status bench_engine_schema(const struct bench_place *place,
                                              struct pawl_err *err);

/* Two sides take turns, each in a place of its own with the schema in it, so that both are of one
 * size. */
struct bench_engine {
    struct bench_place place, floor_place;
    const struct bench_side *floor;
    /* Between two measurements, on each database: what the server would do at some moment of its
     * own choosing. May be NULL. */
    enum pawl_status (*tend)(const char *url, struct pawl_err *err);
    size_t rounds, calls; /* of one round; a multiple of 2,000 */
    double goal;          /* of the floor, at least */
    struct bench_rounds accept, singles, drain, fused;
    struct bench_rounds burst_accept, burst_drain;
};
MUST_USE enum pawl_status bench_engine_run(struct bench_engine *e, struct pawl_err *err);
/* Instead, on databases that are empty: after a few calls, and after the server has seen how few
 * they are, many at once on the same connections. Whoever made his plans then has the wrong ones.
 */
MUST_USE enum pawl_status bench_engine_burst(struct bench_engine *e, struct pawl_err *err);
/* Between the table's begin and end. */
void bench_engine_rows(const struct bench_engine *e, struct bench_table *t);

enum bench_shape { SHAPE_ACCEPT, SHAPE_DRAIN, SHAPE_FUSED };
struct bench_alone {
    struct bench_place place;
    const struct bench_side *side;
    enum bench_shape shape;
    size_t calls; /* a multiple of 1,000 */
};
/* So many calls accepted and then drained, by two connections of one side alone, both timed. */
MUST_USE enum pawl_status bench_engine_through(const struct bench_alone *b, double *out_accept,
                                               double *out_drain, struct pawl_err *err);
/* One shape of work by one connection alone, for a trace: how long it took. */
MUST_USE enum pawl_status bench_engine_alone(const struct bench_alone *b, double *out_s,
                                             struct pawl_err *err);

#endif
