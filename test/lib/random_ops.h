/*
 * random_ops.h - random operations on a small world: few ids, few names, tokens that may be stale.
 *
 * Everything follows from `dice`, so that a sequence can be played again.
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

/* What a claim once answered. */
struct lease_known {
    struct token token;
    struct bytes ids[RANDOM_ITEMS];
    int64_t seqs[RANDOM_ITEMS];
    bool keyed[RANDOM_ITEMS];
    size_t n;
};

struct random_ops {
    uint64_t dice;
    struct arena a;            /* the questions' */
    const struct world *world; /* borrowed */
    struct lease_known leases[RANDOM_TOKENS];
    int last_lease;  /* the one that was learned last */
    int64_t version; /* an object's, seen last */
};

/* Any operation but a handler's and a script. */
void random_op(struct random_ops *q, struct op *op);
/* Learn from an answer, so that later finishes name what was claimed and versions match. */
void random_learn(struct random_ops *q, const struct op *op);
struct query random_query(struct random_ops *q);

/* 0..n-1. */
int below(struct random_ops *q, int n);
bool one_in(struct random_ops *q, int n);

#endif
