/*
 * flow.h - a feature that only tests have: calls that take steps (flows, store/feature.h).
 *
 * Its operation begins a flow, stores a step once, lets it wait, or ends it. The first letters of a
 * call's id say what its feature decides:
 *
 *     "saga..."   an attempt that would end it otherwise than completed sets `undoing`, and it runs
 *                 again; while it is undoing, a result ends it as failed ("undone"), and a refusal
 *                 as dead_letter ("undo refused")
 *     "final..."  it may not be retried
 *
 * Its tables are made by the test; its statements are in sql/ENGINE/flow.sql, for test builds.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FLOW_H
#define FLOW_H

#include "engines.h"
#include "store/feature.h"

/* The ctx of its operations, which are fenced unless they end or keep a flow. */
struct flow_op {
    int64_t step; /* store this step, from 1, unless it is stored; the first one begins the flow */
    int64_t until_us;     /* then wait until; 0: no wait */
    enum call_wait waits; /* what readers are told that it waits for */
    int64_t seq;          /* without a fence: the flow to be ended, or kept */
    struct flow_end_as end;
    int keep;        /* 1: gc is to keep it; -1: no longer */
    bool begin_only; /* begin, and store nothing */
    /* answer */
    int64_t steps;
    bool cancel; /* a cancel was requested before it began */
};

extern const struct feature flow_feature;
/* For store_conf.features. */
extern const struct feature *const flow_features[1];

/* What its functions were called for, in this process. */
struct flow_seen {
    int ending, ended, asked; /* calls of flows_ending(), flows of all of them; of flow_end() */
    int cancelled, retried, shown, moved, forgotten, kept;
    enum ending how;       /* of the last flow_end() */
    enum pawl_state state; /* likewise */
};
extern struct flow_seen flow_seen;

/* Make the tables. */
void flow_tables(struct store *s, const struct engine *engine);
/* The operation behind a fence; `q` is borrowed. */
struct op flow_fenced(struct flow_op *q, struct token token, int64_t seq);
/* The same without a fence, for q->seq. */
struct op flow_open(struct flow_op *q);

#endif
