/*
 * claim.h - a claim while it is being decided. Private to store/ledger: claim.c takes calls,
 * claim_show.c makes the answer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_LEDGER_CLAIM_H
#define STORE_LEDGER_CLAIM_H

#include "store/ledger/cache.h"

struct pair {
    int64_t track, rank, run_at_us;
    bool last;  /* in its rank: it is of the queue that comes last */
    bool quick; /* its type is: its calls may fill the claim beyond max_any, and come in runs */
};

struct claiming {
    struct ledger *c;
    struct op *op;
    struct claim *q;
    struct pair *pairs; /* served, by rank, then track */
    size_t n_pairs;
    struct led_call **taken; /* q->max */
    struct held *held;       /* q->max */
    int64_t *position;       /* q->max */
    int n_keys;              /* so many keys among them */
    size_t len;
    int expired;
    int64_t rank;          /* of what is being taken */
    bool complete, passed; /* passed: somebody else held a key */
    bool grab;             /* what is found is deleted at once */
    bool fetched;          /* something was, and what was decided before is written */
};

/* By seq: the order of a lease's list. */
int led_held_compare(const void *a, const void *b);
/* The answer of the first claim was lost: take what the lease holds now. */
MUST_USE enum pawl_status led_claim_repeat(struct claiming *g, const struct led_lease *l,
                                           struct pawl_err *err);
/* Fill in the calls that were taken, with inputs and objects. */
MUST_USE enum pawl_status led_claim_show(struct claiming *g, struct pawl_err *err);

#endif
