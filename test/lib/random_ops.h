/*
 * random_ops.h - random operations with few ids, few names, and tokens that may be stale.
 *
 * All choices follow from `dice`, so that a sequence can be repeated.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RANDOM_OPS_H
#define RANDOM_OPS_H

#include "own_world.h"
#include "store/store.h"

#define RANDOM_IDS 16
#define RANDOM_KEYS 3 /* "k1", "k2", ... */
#define RANDOM_TOKENS 10
#define RANDOM_ITEMS 6

/* A lease from the answer to a claim. */
struct lease_known {
    struct token token;
    struct bytes ids[RANDOM_ITEMS];
    int64_t seqs[RANDOM_ITEMS];
    bool keyed[RANDOM_ITEMS];
    size_t n;
};

struct random_ops {
    uint64_t dice;
    struct arena a;            /* for the operations' memory */
    const struct world *world; /* borrowed */
    struct lease_known leases[RANDOM_TOKENS];
    int last_lease;  /* the lease learned last */
    int64_t version; /* version of an object, as last seen */
};

/* Fill in a random operation; all kinds except handlers and scripts. */
void random_op(struct random_ops *q, struct op *op);
/* Remember what an answer said, so that later operations finish claimed calls and use matching
 * versions. */
void random_learn(struct random_ops *q, const struct op *op);
/* A random query for a list of calls. */
struct query random_query(struct random_ops *q);

/* A random number from 0 to n-1. */
int below(struct random_ops *q, int n);
/* True once in n times, on average. */
bool one_in(struct random_ops *q, int n);

#endif
