/*
 * counter.h - a feature that only tests have: counters, and an operation that counts once.
 *
 * It uses every function of store/feature.h, as a feature of src/feature would. What it is told of
 * calls it writes into a table, and it acts on the names of calls that ended:
 *
 *     "a>b>c"     the call "b>c" is cancelled, which is told in turn
 *     "next:x"    a new call "after:x" is accepted
 *
 * Its tables are made by the test; its statements are in sql/ENGINE/counter.sql, for test builds.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef COUNTER_H
#define COUNTER_H

#include "engines.h"
#include "store/feature.h"

/* The ctx of its operations. */
struct counter_op {
    struct bytes id;   /* the operation counts once under this id */
    struct bytes name; /* of the counter, which is made when it is new */
    int64_t by;
    bool refuse;       /* INVALID */
    struct op *nested; /* run in this order, whatever the answer of each */
    size_t n_nested;
    int64_t value; /* answer: of the counter, after it */
};

extern const struct feature counter_feature;
/* For store_conf.features. */
extern const struct feature *const counter_features[1];

/* What its functions were called for, in this process. */
struct counter_seen {
    int loads, loaded, applied; /* calls of load(), operations of all of them, calls of apply() */
    int told, moved;            /* calls of moved(), ledger's calls of all of them */
    int forgotten;              /* ledger's calls, of all calls of forget() */
};
extern struct counter_seen counter_seen;

/* Make the tables. */
void counter_tables(struct store *s, const struct engine *engine);
/* The operation; `q` is borrowed. */
struct op counter_count(struct counter_op *q);
/* The same behind a fence: this lease holds this call. */
struct op counter_fenced(struct counter_op *q, struct token token, int64_t seq);

/* What the tables hold: in one snapshot. */
struct counter_sums {
    int64_t counters, total, ops;
};
/* For store_look(): read it into ctx, a struct counter_sums. */
feature_look_fn counter_look;

#endif
