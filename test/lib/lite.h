/*
 * lite.h - what the tests of the SQLite engine share: a database of their own, calls by the
 * thousand, and the operations as one-liners that end the case unless they succeed.
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

/* world NULL: the real one. */
void lite_fixture_open(struct lite_fixture *r, const char *url, const struct world *world);
void lite_fixture_close(struct lite_fixture *r);
struct lite *lite_of_fixture(const struct lite_fixture *r);

/* n calls i0, i1, ... of this type, `len` bytes of input each, due after delay. */
void lite_accept_n(struct lite_fixture *r, const char *type, int n, size_t len, int64_t delay_us);
/* Commit one operation; its status. */
enum pawl_status lite_one(struct lite_fixture *r, struct op *op);
/* Claim up to max of one type (NULL: all); the calls are op.claim.calls. */
struct op lite_claim_of(struct lite_fixture *r, const char *type, int max, unsigned char token);
enum pawl_status lite_finish_seq(struct lite_fixture *r, struct token token, int64_t seq);
/* One number out of the file, by the connection's own SQL. */
int64_t lite_ask(const struct lite_fixture *r, const char *sql);

#endif
