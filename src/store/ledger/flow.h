/*
 * flow.h - flows: what the operations of the ledger ask about them (flow.c). Private to
 * store/ledger; what features call is in store/feature.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_LEDGER_FLOW_H
#define STORE_LEDGER_FLOW_H

#include "store/ledger/cache.h"

/* Is the call a flow? False without a feature that has flows. */
MUST_USE enum pawl_status led_flow(struct ledger *c, const struct led_call *it, bool *out,
                                   struct pawl_err *err);
/* Its state to everybody: a flow that waits is PROCESSING. */
MUST_USE enum pawl_status led_state(struct ledger *c, const struct led_call *it,
                                    enum pawl_state *out, struct pawl_err *err);
/* For readers, whose lanes are read: is it a flow that no lease holds and that has not ended? */
bool led_flow_waits(const struct ledger *c, const struct led_call *it);
/* For readers: is the first call of the key, which no lease holds, a flow, so that it has begun? */
MUST_USE enum pawl_status led_flow_heads(struct ledger *c, const struct led_key *k, bool *out,
                                         struct pawl_err *err);
/* For readers: read the lanes of these calls, and what flows among them wait for. */
MUST_USE enum pawl_status led_flows_look(struct ledger *c, struct led_call *const *v, size_t n,
                                         struct pawl_err *err);
/* Such a flow as a reader sees it; *out has been filled in as for any pending call. */
MUST_USE enum pawl_status led_flow_show(struct ledger *c, struct led_call *it,
                                        struct call_where where, struct call *out,
                                        struct pawl_err *err);
/* Let the feature read its rows of those of these calls that are flows: their attempts may end, or
 * they are cancelled or retried. */
MUST_USE enum pawl_status led_flows_ending(struct ledger *c, struct led_call *const *v, size_t n,
                                           struct pawl_err *err);
/* The same for the calls that the operations of a group name. */
MUST_USE enum pawl_status led_flows_foresee(struct ledger *c, struct op *const *v, size_t n,
                                            struct pawl_err *err);
/* An attempt of this call ends with e->verdict: if it is a flow, its feature may decide otherwise.
 */
MUST_USE enum pawl_status led_flow_ends(struct ledger *c, struct led_call *it, struct led_end *e,
                                        struct pawl_err *err);
/* Cancel a flow. */
MUST_USE enum pawl_status led_flow_cancel(struct ledger *c, struct led_call *it,
                                          struct pawl_err *err);
/* An ended call is about to be retried: if it is a flow, its feature may refuse, in op->status. */
MUST_USE enum pawl_status led_flow_retry(struct ledger *c, struct op *op, struct led_call *it,
                                         struct pawl_err *err);

#endif
