/*
 * claim.h - a claim while it is being decided. Private to the claim*.c files of store/ledger.
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
    bool complete, passed; /* passed: another transaction held a key */
    bool grab;             /* what is found is deleted at once */
    bool fetched;          /* something was, and what was decided before is written */
    unsigned writes;       /* tx->writes when the pairs were asked for */
    bool left;             /* a due call in memory was not taken */
    int64_t next_us;       /* of those in memory that are due later; INT64_MAX: none */
};

/* ---- claim_look.c ---------------------------------------------------------------------------- */

/* Is the type one of those that may fill the claim beyond max_any? Without max_any all are. */
bool led_claim_quick(const struct claim *q, struct bytes type);
/* Does the claim serve the pair's track? The pair's `last` and `quick` are filled in. */
MUST_USE enum pawl_status led_claim_serves(struct claiming *g, struct pair *p, bool *out,
                                           struct pawl_err *err);
/* Fill in `pairs`: as they were when the transaction began, if nothing came since. What is to be
 * taken up before a claim is taken up: inbox, key notes, delayed calls whose time has come. */
MUST_USE enum pawl_status led_claim_look(struct claiming *g, struct pawl_err *err);
/* Is the first call of a served pair due? */
bool led_claim_any_due(const struct claiming *g);
/* Answer `more` and `next_due_us`: from memory, if what the look found is still what is stored;
 * with the group's last write (tx->late), if no operation follows in the group; or now, after
 * writing what is decided: what later operations do is not seen. */
MUST_USE enum pawl_status led_claim_answer(struct claiming *g, struct pawl_err *err);

/* ---- claim_take.c ---------------------------------------------------------------------------- */

/* Is the call past its expiry? */
bool led_claim_over(const struct claiming *g, const struct led_call *it);
/* Does the claim have room for the call's input? An engine inside the process reads a long input
 * now. */
MUST_USE enum pawl_status led_claim_fits(struct claiming *g, struct led_call *it, bool *out,
                                         struct pawl_err *err);
/* Were so many calls taken that only calls of quick types may follow? */
bool led_claim_only_quick(const struct claiming *g);
/* May another call be taken or expire? */
bool led_claim_goes_on(const struct claiming *g);
/* The call ends `expired`. */
MUST_USE enum pawl_status led_claim_expire(struct claiming *g, struct led_call *it,
                                           struct pawl_err *err);
/* The call is held by the claim's lease; `k` is its key, which is locked, NULL without one;
 * `position` counts the calls of its run before it. */
MUST_USE enum pawl_status led_claim_take(struct claiming *g, struct led_call *it, struct led_key *k,
                                         int64_t position, struct pawl_err *err);

/* ---- claim_run.c ----------------------------------------------------------------------------- */

/* Lock the keys of these candidates, and read as much of their lines as may go with them. */
MUST_USE enum pawl_status led_claim_lines(struct claiming *g, struct led_call *const *v, size_t n,
                                          struct pawl_err *err);
/* Decide about one candidate: it is taken with its run, expires, or is left. *progress is set
 * unless it is left for a later claim. */
MUST_USE enum pawl_status led_claim_candidate(struct claiming *g, struct led_call *it,
                                              bool *progress, struct pawl_err *err);

/* ---- claim_stored.c, claim_memory.c ---------------------------------------------------------- */

/* Take due calls of `ready` of n pairs, which have one rank. */
MUST_USE enum pawl_status led_claim_rank(struct claiming *g, const struct pair *p, size_t n,
                                         struct pawl_err *err);
/* For qsort() of struct led_call *: by run_at, then seq. */
int led_claim_compare(const void *a, const void *b);
/* Keys that the group has freed get their heads, in memory, each read with the calls that may go
 * with it. Those of which the stored line has to be written first are left: tx->due. */
MUST_USE enum pawl_status led_claim_heads(struct claiming *g, struct pawl_err *err);
/* Take due calls that are in memory and not stored. */
MUST_USE enum pawl_status led_claim_memory(struct claiming *g, struct pawl_err *err);

/* ---- claim_show.c ---------------------------------------------------------------------------- */

/* By seq: the order of a lease's list. */
int led_held_compare(const void *a, const void *b);
/* The answer of the first claim was lost: take what the lease holds now. */
MUST_USE enum pawl_status led_claim_repeat(struct claiming *g, const struct led_lease *l,
                                           struct pawl_err *err);
/* Fill in the calls that were taken, with inputs and objects. */
MUST_USE enum pawl_status led_claim_show(struct claiming *g, struct pawl_err *err);

#endif
