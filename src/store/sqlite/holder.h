/*
 * holder.h - who holds a call, and which calls of a lease have begun. Private to store/sqlite.
 *
 * For readers, and for operations that show a call: a finish and a reclaim use lease.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_SQLITE_HOLDER_H
#define STORE_SQLITE_HOLDER_H

#include "base/arena.h"
#include "base/ident.h"
#include "model/lease.h"

struct lite;
struct lite_shelf;

/* A lease as it is stored. */
struct lite_looked {
    struct lite_looked *next;
    struct token token;
    struct bytes owner; /* worker or node */
    int64_t claimed_us;
    int width;
    struct held *held; /* n, rising by seq */
    size_t n;
    bool *open, *begun; /* n; NULL: not looked at, see lite_looked_begun() */
};

/* Leases that the running transaction has looked at, so that a page of calls of one lease reads and
 * unpacks it once. Valid with `tx`, while this connection changes nothing. */
struct lite_looks {
    struct arena a;
    uint64_t tx;
    int changes; /* sqlite3_total_changes() then */
    struct lite_looked *first;
    size_t n_calls; /* in all of them */
};

/* Who holds a call. BROKEN: no lease holds it. */
struct lite_holder {
    struct bytes owner; /* on `to` */
    int64_t claimed_us;
    struct held held;
    bool begun;       /* else it is shown pending */
    int64_t before;   /* calls of its run that stand before it without an outcome */
    int64_t position; /* in its key, as it is shown; 0 without a key */
};
MUST_USE enum pawl_status lite_holder(struct lite *c, struct lite_shelf *to, int64_t seq,
                                      struct lite_holder *out, struct pawl_err *err);

/* Fill in `open` and `begun`, in arena `a`, by looking at the outcome of every call. */
MUST_USE enum pawl_status lite_looked_begun(struct lite *c, struct arena *a, struct lite_looked *l,
                                            struct pawl_err *err);

#endif
