/*
 * floor.h - the floor: what straight SQLite does with the library's own tables and nothing
 * else.
 *
 * The same shapes of work as the library's (accept a batch, claim a batch, finish a batch), written
 * by hand with prepared statements: no checks, no fingerprints of anything, no receipts, no
 * threads. Whatever the library does beyond this is its overhead. Also fills databases with history
 * far faster than calls could run. One thread. Every function does nothing after the first failure;
 * ask floor_ok() once.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl.h>

#include "base/macros.h"

struct floor;

/* Where ids are unique: in pawl_id, as the ledger has it; in a pawl_id that leaves the fingerprint
 * to the call's row; or by an index on pawl_call, which then needs a second look at the tombstones
 * before it believes that an id is new. */
enum floor_ids { FLOOR_IDS_OWN, FLOOR_IDS_SLIM, FLOOR_IDS_ON_CALL, FLOOR_IDS_COUNT };

struct floor_conf {
    const char *path;
    enum floor_ids ids;
    bool attach; /* the tables are there already: a database of the library's */
    bool unsafe; /* synchronous = OFF, for filling; never for measuring */
};

MUST_USE enum pawl_status floor_open(const struct floor_conf *conf, struct floor **out,
                                     struct pawl_err *err);
/* Accepts NULL. */
void floor_close(struct floor *f);
MUST_USE enum pawl_status floor_ok(const struct floor *f, struct pawl_err *err);

/* ---- The work -------------------------------------------------------------------------------- */

/* Text ids of 36 characters: v4 (random) or v7 (in time order), as UUIDs are written. */
enum bench_ids { BENCH_IDS_RANDOM, BENCH_IDS_ORDERED };
struct bench_id {
    char text[40];
};
void bench_ids_make(enum bench_ids kind, struct bench_id *out, size_t n);

/* Some 100 bytes of JSON, as a small job has. */
extern const char bench_input[];
extern const size_t bench_input_len;

#define FLOOR_BATCH_MAX 1000

/* What a claim brought; finish takes it. */
struct floor_lease {
    unsigned char token[16];
    int64_t seqs[FLOOR_BATCH_MAX];
    size_t n;
};

/* One transaction each. */
void floor_accept(struct floor *f, const struct bench_id *ids, size_t n);
/* with_input: also read what a worker needs to run each call (id, method, input). */
void floor_claim(struct floor *f, size_t max, bool with_input, struct floor_lease *out);
void floor_finish(struct floor *f, const struct floor_lease *l);
/* Finish one lease and claim the next in the same transaction; l is both. */
void floor_finish_claim(struct floor *f, size_t max, bool with_input, struct floor_lease *l);
/* Accept and claim at once, for a caller who waits. */
void floor_accept_claim(struct floor *f, const struct bench_id *ids, size_t n,
                        struct floor_lease *out);

/* ---- Filling and dropping -------------------------------------------------------------------- */

struct floor_fill {
    const char *type;
    size_t n;
    enum bench_ids ids;
    bool pending;          /* in pawl_ready, due; else completed */
    int64_t keep_until_us; /* of completed ones */
    struct bench_id *out;  /* every n/n_out-th id, for looking up; may be NULL */
    size_t n_out;
};
/* Large transactions; open with `unsafe`. */
void floor_fill(struct floor *f, const struct floor_fill *fill);

/* Drop up to max ended calls whose time is over, in one transaction; their ids stay refused.
 * Returns how many there were. */
size_t floor_drop(struct floor *f, int64_t now_us, size_t max);

/* One number from one statement, -1 on failure. */
int64_t floor_number(struct floor *f, const char *sql);
/* Copy the log into the file, so that the next measurement begins with an empty one. */
void floor_checkpoint(struct floor *f);

#endif
