/*
 * floor.h - the floor of SQLite: what plain SQLite does with the library's tables and nothing else.
 *
 * The same work as the library's (accept a batch, claim a batch, finish a batch), written by hand
 * with prepared statements: no checks, no fingerprints, no receipts, no threads. What the library
 * needs beyond this is its overhead. Also fills databases with history, far faster than calls could
 * run. One thread. After the first failure every function does nothing; ask floor_ok() once.
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

/* Where ids are made unique: in pawl_id, as the ledger does; in a pawl_id without the fingerprint,
 * which is in the row of the call; or by an index on pawl_call, which then needs a second look, at
 * the tombstones, to know that an id is new. */
enum floor_ids { FLOOR_IDS_OWN, FLOOR_IDS_SLIM, FLOOR_IDS_ON_CALL, FLOOR_IDS_COUNT };

struct floor_conf {
    const char *path;
    enum floor_ids ids;
    bool attach; /* the tables exist already: a database of the library */
    bool unsafe; /* synchronous = OFF, for filling; never for measuring */
};

/* Open the file with the library's settings, and make the tables unless `attach`. */
MUST_USE enum pawl_status floor_open(const struct floor_conf *conf, struct floor **out,
                                     struct pawl_err *err);
/* Close it. Accepts NULL. */
void floor_close(struct floor *f);
/* The first failure, if there was one. */
MUST_USE enum pawl_status floor_ok(const struct floor *f, struct pawl_err *err);

/* ---- The work -------------------------------------------------------------------------------- */

/* Kinds of ids, as text of 36 characters: UUIDs v4 (random) or v7 (in time order). */
enum bench_ids { BENCH_IDS_RANDOM, BENCH_IDS_ORDERED };
struct bench_id {
    char text[40];
};
/* Make n ids. */
void bench_ids_make(enum bench_ids kind, struct bench_id *out, size_t n);

/* The input of every call: some 100 bytes of JSON, as of a small job. */
extern const char bench_input[];
extern const size_t bench_input_len;

#define FLOOR_BATCH_MAX 1000

/* What a claim brought, for the finish. */
struct floor_lease {
    unsigned char token[16];
    int64_t seqs[FLOOR_BATCH_MAX];
    size_t n;
};

/* Accept n calls, in one transaction. */
void floor_accept(struct floor *f, const struct bench_id *ids, size_t n);
/* Lease up to max calls in one transaction. with_input: also read what a worker needs (id, method,
 * input). */
void floor_claim(struct floor *f, size_t max, bool with_input, struct floor_lease *out);
/* Store a result for every call of the lease, in one transaction. */
void floor_finish(struct floor *f, const struct floor_lease *l);
/* Finish one lease and claim the next in the same transaction; l holds the old one, then the new
 * one. */
void floor_finish_claim(struct floor *f, size_t max, bool with_input, struct floor_lease *l);
/* Accept and claim in one transaction, as for a caller that waits. */
void floor_accept_claim(struct floor *f, const struct bench_id *ids, size_t n,
                        struct floor_lease *out);

/* ---- Filling and dropping -------------------------------------------------------------------- */

struct floor_fill {
    const char *type;
    size_t n;
    enum bench_ids ids;
    bool pending;          /* pending and due; else completed */
    int64_t keep_until_us; /* of completed ones */
    struct bench_id *out;  /* every n/n_out-th id, for looking up; may be NULL */
    size_t n_out;
};
/* Insert n calls in large transactions; open the floor with `unsafe`. */
void floor_fill(struct floor *f, const struct floor_fill *fill);

/* Remove up to max ended calls past their retention, in one transaction; their ids stay known.
 * Returns how many there were. */
size_t floor_drop(struct floor *f, int64_t now_us, size_t max);

/* Run a statement that gives one number; -1 on failure. */
int64_t floor_number(struct floor *f, const char *sql);
/* Checkpoint: copy the WAL into the file, so that the next measurement begins with an empty one. */
void floor_checkpoint(struct floor *f);

#endif
