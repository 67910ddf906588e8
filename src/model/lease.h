/*
 * lease.h - the calls of a lease, as the one compact value that every engine stores.
 *
 * A lease names up to CLAIM_MAX calls, each with the data to make it pending again: attempts, lane,
 * priority, run_at. A success does not change the lease; a retry or a release removes the call from
 * it; the last finish deletes it. Pure.
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
    struct attempt_counts counts; /* before this attempt */
    /* With a key; all 0 without one. */
    int key;        /* index of the key among the lease's keys, from 1; calls of one key share it */
    int64_t pos;    /* its place in the key's line, to which it returns when it is released */
    int64_t key_no; /* its number within the key, from 1 */
    unsigned marks; /* WATCH_... bits of the claim, besides those of the call itself */
    int64_t since_us; /* of a flow: when its present step began; 0: when the attempt began */
};

/* Pack n items sorted by seq into `a`. Seqs are stored as differences; other fields only where they
 * differ from those of a new call (no attempts, lane and priority of the previous item, run_at as a
 * difference), so that an ordinary call takes a few bytes. `version`: the one that the worker says
 * it has of its code (needs.h); absent: none. NO_MEMORY. */
MUST_USE enum pawl_status lease_pack(struct arena *a, const struct held *v, size_t n,
                                     struct bytes version, struct bytes *out, struct pawl_err *err);
/* Unpack into `a`; the version is borrowed from `packed`. BROKEN when lease_pack() did not write
 * it; NO_MEMORY. */
MUST_USE enum pawl_status lease_unpack(struct arena *a, struct bytes packed, struct held **out,
                                       size_t *out_n, struct bytes *out_version,
                                       struct pawl_err *err);
/* The item with this seq, by binary search; NULL when the lease does not name it. */
struct held *lease_find(struct held *v, size_t n, int64_t seq);

/* Which calls of a lease have begun. The owner runs `width` calls at once and begins them in the
 * order of the lease: priority descending, run_at ascending, seq ascending. On entry begun[i] says
 * that the i-th call has no outcome and that every earlier call of its run has one (a call without
 * a key is a run by itself). On return only the first `width` of these stay true; with width 0 all
 * of them. n is at most CLAIM_MAX. */
void lease_begun(const struct held *v, size_t n, int width, bool *begun);

/* The error of an attempt whose owner was lost: `worker "w1" was lost`, or `node "n1" was lost`
 * when the lease names no worker. In `a`; NULL without memory. */
const char *lease_lost_text(struct arena *a, bool by_worker, struct bytes owner);

#endif
