/*
 * lease.h - which calls a lease holds, as the one compact value every engine stores.
 *
 * A lease names up to CLAIM_MAX calls, with what is needed to put each back: its tries, its lane,
 * its priority, its run_at. A success does not touch it; a retry or give-back takes the call off
 * the list; the last finish deletes it. Pure.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_LEASE_H
#define MODEL_LEASE_H

#include "base/arena.h"
#include "base/ident.h"
#include "model/call.h"

struct held {
    int64_t seq;
    int64_t run_at_us;
    int lane;
    int priority;
    struct tries tries; /* before this try */
    /* With a key; all 0 without. */
    int key;        /* which of the lease's keys, from 1: calls of one key have the same */
    int64_t pos;    /* its place in the key's line: where it goes when it is handed back */
    int64_t key_no; /* from 1 */
};

/* Pack n items sorted by seq. Seqs are stored as differences, the rest only where it differs from a
 * fresh call's (tries 0, same lane/priority as the item before, run_at as a difference), so that an
 * ordinary call takes a handful of bytes. */
MUST_USE enum pawl_status lease_pack(struct arena *a, const struct held *v, size_t n,
                                     struct bytes *out, struct pawl_err *err);
/* BROKEN: not what lease_pack wrote, or seqs not rising. */
MUST_USE enum pawl_status lease_unpack(struct arena *a, struct bytes packed, struct held **out,
                                       size_t *out_n, struct pawl_err *err);
/* The item with this seq by binary search; NULL when the lease does not name it. */
struct held *lease_find(struct held *v, size_t n, int64_t seq);

/* Which calls of a lease have begun. A claimer runs `width` of its calls at once, and begins them
 * in the lease's order: priority falling, run_at rising, seq rising. On entry begun[i] says whether
 * the i-th call has no outcome and no call without one stands before it in its run (a call without
 * a key is a run of one). On return it is true for the first `width` of these only; with width 0
 * for all of them. n is CLAIM_MAX at most. */
void lease_begun(const struct held *v, size_t n, int width, bool *begun);

/* The error of an attempt whose owner was lost: `worker "w1" was lost`, or `node "n1" was lost`
 * when the lease names no worker. On `a`; NULL without memory. */
const char *lease_lost_text(struct arena *a, bool by_worker, struct bytes owner);

#endif
