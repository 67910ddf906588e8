/*
 * lite.h - for tests of the SQLite engine: a database of their own, thousands of calls, and
 * operations as one-liners that end the case unless they succeed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LITE_H
#define LITE_H

#include "base/limits.h"
#include "check.h"
#include "engines.h"
#include "store/sqlite/engine.h"

struct lite_fixture {
    struct store *s; /* owned */
    struct arena a;
    struct pawl_err err;
    int ids; /* calls accepted so far */
};

/* Open and migrate the database; world NULL: the real clock. */
void lite_fixture_open(struct lite_fixture *r, const char *url, const struct world *world);
/* Close the store and free the fixture. */
void lite_fixture_close(struct lite_fixture *r);
/* The SQLite connection of the fixture's store. */
struct lite *lite_of_fixture(const struct lite_fixture *r);

/* Accept n calls i0, i1, ... of this type with `len` bytes of input each, due after delay_us. */
void lite_accept_n(struct lite_fixture *r, const char *type, int n, size_t len, int64_t delay_us);
/* Commit one operation. Returns its status. */
enum pawl_status lite_one(struct lite_fixture *r, struct op *op);
/* Claim up to max calls of one type (NULL: all); they are op.claim.calls. */
struct op lite_claim_of(struct lite_fixture *r, const char *type, int max, unsigned char token);
/* Finish one call of the lease with a result. */
enum pawl_status lite_finish_seq(struct lite_fixture *r, struct token token, int64_t seq);
/* One number from the file, by SQL on the store's connection. */
int64_t lite_ask(const struct lite_fixture *r, const char *sql);

#endif
