/*
 * flow_case.h - for the cases of flows: a fixture whose handles have the feature of
 * test/lib/flow.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CONFORM_FLOW_CASE_H
#define CONFORM_FLOW_CASE_H

#include "conform.h"
#include "flow.h"

/* A fixture with the feature and its tables; `wrapper` is the beginning of its URL. */
struct conform_fixture *flow_fixture(void *param, const char *wrapper);

#define FLOW_CASE(name)                                                                            \
    static void name##_body(struct conform_fixture *b);                                            \
    TEST(name)                                                                                     \
    {                                                                                              \
        AUTO(conform_fixture_end) struct conform_fixture *b = flow_fixture(param, "");             \
        name##_body(b);                                                                            \
    }                                                                                              \
    static void name##_body(struct conform_fixture *b)

/* A claim by a worker that has NEED_STEPS. */
struct claim want_steps(struct conform_fixture *b, int max);
/* Claim n calls as such a worker; there must be n. Returns the token. */
struct token claim_steps(struct conform_fixture *b, int n, int64_t lease_us);
/* Commit this operation behind a fence; its answer is in *q. Returns its status. */
enum pawl_status flow_do(struct conform_fixture *b, struct flow_op *q, struct token token,
                         int64_t seq);
/* Store a step; it must be stored. */
void flow_step(struct conform_fixture *b, struct token token, int64_t seq, int64_t step);
/* Store a step and wait; it must wait. */
void flow_wait(struct conform_fixture *b, struct token token, int64_t seq, int64_t step,
               int64_t until_us);
/* A new call that a worker has begun to take steps of, and that waits until then. Returns its seq.
 */
int64_t flow_waiting(struct conform_fixture *b, struct call_spec s, int64_t until_us);
/* Make it due now. */
void flow_wake(struct conform_fixture *b, int64_t seq);
/* End, or keep, a flow from outside. Returns the operation's status. */
enum pawl_status flow_from_outside(struct conform_fixture *b, struct flow_op q);
/* What the feature was told of a call: "from-to", 23 for processing to completed. */
const char *flow_told(struct conform_fixture *b, int64_t seq);

#endif
