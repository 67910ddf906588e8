/*
 * limit_inside.h - what the files of limits share: limit.c (changes), limit_claim.c (claims, and
 * calls that leave), limit_read.c. Private to them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FEATURE_LIMIT_INSIDE_H
#define FEATURE_LIMIT_INSIDE_H

#include "feature/limit.h"
#include "model/call.h"
#include "store/feature.h"

/* The step of the schema whose second half allows limits. */
#define LIMIT_STEP 13

/* A stored limit. Its number is never used again. */
struct rule {
    int64_t number, created_us, updated_us;
    struct limit limit;
};
/* All of them, sorted by name. */
struct rules {
    int64_t rev;
    size_t n;
    struct rule v[];
};
/* Read the rules as rows of limit_read; their names are borrowed from the answer. */
MUST_USE enum pawl_status rules_query(struct ledger *d, struct rule **out, size_t *out_n,
                                      struct pawl_err *err);
/* Does the rule hold for the calls of this lane, whatever their keys? */
bool rule_holds(const struct rule *r, const struct gated_lane *lane);

/* What claims ask, and what they tell of calls that leave: the hooks gates_..., gate_... and moved
 * of feature_limit; their contracts are in store/feature.h. */
enum pawl_status limit_gates_read(struct ledger *d, int64_t rev, void **memory,
                                  struct pawl_err *err);
void limit_gates_free(void *memory);
bool limit_gated(const void *memory, const struct gated_lane *lane);
struct bytes limit_gate_of(const void *memory, struct arena *a, const struct gated_lane *lane,
                           struct bytes key);
enum pawl_status limit_shut(struct ledger *d, const void *memory, const struct gated_lane *lane,
                            bool *out, struct pawl_err *err);
enum pawl_status limit_ask(struct ledger *d, void *memory, struct gate_pass *p,
                           struct pawl_err *err);
enum pawl_status limit_took(struct ledger *d, const struct gate_pass *p, const int64_t *seqs,
                            size_t n, struct pawl_err *err);
enum pawl_status limit_moved(struct ledger *d, const struct moved *v, size_t n,
                             struct pawl_err *err);

#endif
