/*
 * lease.h - leases, and what a connection remembers of them (lease.c says why). Private to
 * store/sqlite.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_SQLITE_LEASE_H
#define STORE_SQLITE_LEASE_H

#include <sys/types.h>

#include "model/lease.h"
#include "store/op.h"

struct lite;

/* What this connection remembers of a lease: believed while `rev` is what is stored, and without
 * asking again in the transaction that asked last. One block; ended by lease.c. */
struct lite_lease {
    struct lite_lease *next; /* same bucket */
    struct token token;
    int64_t rev, until_us, claimed_us; /* until 0: as long as its node beats */
    int width;                         /* calls its owner runs at once; 0: all */
    struct bytes owner;                /* worker or node */
    bool by_worker;                    /* `owner` is a worker's name */
    uint64_t read_tx, used;
    bool touched;          /* changed by the running transaction: forget it when that is undone */
    bool rewrite;          /* the stored list is to be replaced by ours before commit */
    size_t n, named, left; /* in memory, on the list, of these without an outcome */
    struct held *held;     /* n, rising by seq */
    int64_t *keep_us;      /* n; -1: not known */
    struct lite_link *run; /* n; with a key: who is before and behind it in its run */
    unsigned char *state;  /* n; enum lite_held */
    struct bytes *keys;    /* by held.key - 1; NULL: not known */
    size_t n_keys;
};
struct lite_link {
    int before, behind; /* index; -1: nobody */
};
enum lite_held { HELD_OPEN, HELD_ENDED, HELD_OFF };

#define LEASE_BUCKETS 256
/* Leases one connection remembers: some thousand slots' worth; past it the one unused longest goes.
 */
#define LEASES_MAX 512

/* The lease as it is now; NULL: there is none. Borrowed until the transaction ends. */
MUST_USE enum pawl_status lite_lease_get(struct lite *c, const struct token *token,
                                         struct lite_lease **out, struct pawl_err *err);
/* Write a new lease over `held` (rising by seq) and remember it. */
struct lite_hold {
    const struct held *held;
    const int64_t *keep_us;
    size_t n;
    const struct bytes *keys;
    size_t n_keys;
};
MUST_USE enum pawl_status lite_lease_make(struct lite *c, const struct claim *q,
                                          const struct lite_hold *h, struct pawl_err *err);
/* out[i]: has the i-th call begun? n of them; the others that are open are handed back uncounted.
 */
void lite_lease_begun(const struct lite_lease *l, bool *out);
/* The key of its i-th call; absent: it has none. In scratch, or the lease's. */
MUST_USE enum pawl_status lite_lease_key(struct lite *c, const struct lite_lease *l, size_t i,
                                         struct bytes *out, struct pawl_err *err);
/* The index of a call in the list, or -1. */
ssize_t lite_lease_find(const struct lite_lease *l, int64_t seq);
/* The i-th call has its outcome (off false) or left the list (off true). The last one ends the
 * lease; *l is NULL then. */
MUST_USE enum pawl_status lite_lease_done(struct lite *c, struct lite_lease **l, size_t i, bool off,
                                          struct pawl_err *err);
/* A call that ended under this token leaves its list, if the lease is still there: it is about to
 * be pending again, or gone. */
MUST_USE enum pawl_status lite_lease_leave(struct lite *c, struct bytes token, int64_t seq,
                                           struct pawl_err *err);
MUST_USE enum pawl_status lite_lease_drop(struct lite *c, struct lite_lease *taken,
                                          struct pawl_err *err);
/* Write the lists that changed. */
MUST_USE enum pawl_status lite_leases_write(struct lite *c, struct pawl_err *err);
/* The transaction ended; `undone`: what it touched is forgotten. */
void lite_leases_after(struct lite *c, bool undone);
void lite_leases_end(struct lite *c);
static inline bool lite_lease_over(const struct lite_lease *l, int64_t now_us)
{
    return l->until_us && l->until_us <= now_us;
}

#endif
