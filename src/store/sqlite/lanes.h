/*
 * lanes.h - number <-> (queue, type) in memory, and which queues are paused. Private to
 * store/sqlite.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_SQLITE_LANES_H
#define STORE_SQLITE_LANES_H

#include "store/op.h"

struct lite;

struct lite_lane {
    struct bytes queue, type; /* owned: one block, at queue.data */
    uint64_t paused_tx;       /* `paused` is true to this transaction */
    bool paused;
};

struct lite_lanes {
    struct lite_lane *v; /* owned; lane n is v[n - 1] */
    size_t n, cap;
    size_t n_stored; /* of these were there when the transaction began */
    int *slots;      /* owned; lane numbers by hash of (queue, type); 0: free */
    size_t n_slots;
    uint64_t read_tx; /* the table was read up to its end in this transaction */
};

/* Read what other connections added, once a transaction. */
MUST_USE enum pawl_status lite_lanes_read(struct lite *c, struct pawl_err *err);
/* 0 when nobody has made it yet. */
MUST_USE enum pawl_status lite_lane_find(struct lite *c, struct bytes queue, struct bytes type,
                                         int *out, struct pawl_err *err);
/* Make a lane that is not there. The caller has seen that there is room. */
MUST_USE enum pawl_status lite_lane_make(struct lite *c, struct bytes queue, struct bytes type,
                                         int *out, struct pawl_err *err);
bool lite_lanes_full(const struct lite *c, size_t more);
/* The lane with this number; BROKEN: there is none. */
MUST_USE enum pawl_status lite_lane(struct lite *c, int lane, const struct lite_lane **out,
                                    struct pawl_err *err);
MUST_USE enum pawl_status lite_lane_paused(struct lite *c, int lane, bool *out,
                                           struct pawl_err *err);
MUST_USE enum pawl_status lite_pause(struct lite *c, struct op *op, struct pawl_err *err);
void lite_lanes_undo(struct lite *c);
void lite_lanes_end(struct lite *c);

#endif
