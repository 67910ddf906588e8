/*
 * ops.h - the operations of a group, and what they share. Private to store/sqlite.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_SQLITE_OPS_H
#define STORE_SQLITE_OPS_H

#include "store/sqlite/engine.h"

/* They answer in op->status and op->err; what they return is not OK only when the whole transaction
 * must be undone. */
MUST_USE enum pawl_status lite_accept(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_claim(struct lite *c, struct op *op, struct pawl_err *err);
/* *out_stored: items that were written now; the others had been answered before. */
MUST_USE enum pawl_status lite_finish(struct lite *c, struct op *op, struct finish *f,
                                      size_t *out_stored, struct pawl_err *err);
MUST_USE enum pawl_status lite_extend(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_cancel(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_redrive(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_move_to(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_object_op(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_unblock(struct lite *c, struct op *op, struct pawl_err *err);
/* Does the registry say that this process is no longer the node? */
MUST_USE enum pawl_status lite_node_replaced(struct lite *c, struct bytes node, struct bytes boot,
                                             bool *out, struct pawl_err *err);
MUST_USE enum pawl_status lite_join(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_beat(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_leave(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_bury(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_drain(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_lead(struct lite *c, struct op *op, struct pawl_err *err);
/* The node, under this boot (own) or under every other one, leads nothing any more. */
MUST_USE enum pawl_status lite_vacate(struct lite *c, const struct node_op *n, bool own,
                                      struct pawl_err *err);
MUST_USE enum pawl_status lite_sweep(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_gc(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_requeue(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_handler(struct lite *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status lite_script_op(struct lite *c, struct op *op, struct pawl_err *err);

/* What operations share. */

/* The state of (type, key), on `a`; version 0: there is none. */
MUST_USE enum pawl_status lite_object_read(struct lite *c, struct arena *a, struct bytes type,
                                           struct bytes key, struct object_state *out,
                                           struct pawl_err *err);
/* SET or DELETE; *out_version with SET. */
MUST_USE enum pawl_status lite_object_write(struct lite *c, const struct object_op *o,
                                            int64_t *out_version, struct pawl_err *err);

/* What is known about the ids of a batch before any of it is written. */
struct lite_look {
    enum lite_known { KNOWN_NOT, KNOWN_SAME, KNOWN_OTHER } known; /* OTHER: other content */
    bool new_lane; /* the first of the batch that needs this lane made */
};
/* out[i] answers v[i]; the same id twice: the later is compared with the earlier. */
MUST_USE enum pawl_status lite_look(struct lite *c, const struct call_spec *v, size_t n,
                                    struct lite_look *out, struct pawl_err *err);
/* Write down a call; id_add says whether it was new. */
MUST_USE enum pawl_status lite_call_make(struct lite *c, const struct call_spec *s, int lane,
                                         struct call *out, bool *out_new, struct pawl_err *err);
/* Made when it is new and there is room; 0: full. */
MUST_USE enum pawl_status lite_lane_for(struct lite *c, const struct call_spec *s, int *out,
                                        struct pawl_err *err);
/* How one try ends; finish and reclaim fill it. */
struct lite_try {
    struct try_end end;
    struct payload result;
    struct bytes error;
    int64_t started_us;
    bool owner; /* the owner's own word: it leaves its token behind, so that a repeat is recognised
                 */
    struct verdict verdict; /* answer */
    struct bytes id;        /* answer, in scratch; absent with a result */
};
/* Decide and write how the i-th call of the lease ended; the list itself is the caller's to
 * correct. When the call ended and id is not NULL, *id is its id, in scratch. */
MUST_USE enum pawl_status lite_try_end(struct lite *c, struct lite_lease *l, size_t i,
                                       struct lite_try *t, struct bytes *id, struct pawl_err *err);
/* Take back what the lease still holds, and end it. */
MUST_USE enum pawl_status lite_reclaim(struct lite *c, struct op *op, const struct token *token,
                                       const struct try_end *how, int64_t *count,
                                       struct pawl_err *err);
/* Calls of a lease with an end that are past their timeout end so; their ids go into op->extend.
 * *out_last_us: when the last of those that are left is past its own. *l is NULL when none is. */
MUST_USE enum pawl_status lite_time_out(struct lite *c, struct op *op, struct lite_lease **l,
                                        int64_t *out_last_us, struct pawl_err *err);
/* Redrive: `as` is the call as it stands, ended. */
MUST_USE enum pawl_status lite_redrive_call(struct lite *c, const struct call *as,
                                            struct pawl_err *err);
/* A pending call ends without an owner: cancelled or expired. `as` is the call as it stands. */
MUST_USE enum pawl_status lite_end_pending(struct lite *c, const struct call *as,
                                           enum pawl_state to, struct pawl_err *err);

#endif
