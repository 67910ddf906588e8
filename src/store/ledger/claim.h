/*
 * claim.h - a claim that is being decided. Private to the claim*.c files of store/ledger.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_LEDGER_CLAIM_H
#define STORE_LEDGER_CLAIM_H

#include "store/ledger/cache.h"

struct pair {
    int64_t track, rank, run_at_us;
    bool last;  /* its queue comes last among those of its rank */
    bool quick; /* its type is quick: its calls may fill the claim beyond max_any, and come in runs
                 */
    bool gated; /* a rule holds for its lane: it is not quick, and is asked before it is read */
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
    int n_keys;              /* how many keys are among the calls taken */
    size_t len;
    int expired;
    int regated;           /* calls that were moved to the lane that the rules want for them */
    int64_t rank;          /* the rank that is being taken */
    bool complete, passed; /* complete: take no more; passed: another transaction has locked a key
                            */
    bool grab;             /* rows of `ready` are deleted by the statement that finds them */
    bool fetched;          /* the first fetch is done, and what was decided before it is written */
    unsigned writes;       /* tx->writes when the pairs were read */
    bool left;             /* a due call in memory was not taken */
    int64_t next_us; /* when the first call in memory becomes due that is due later; INT64_MAX: none
                      */
};

/* ---- claim_look.c ---------------------------------------------------------------------------- */

/* Is the type quick, so that its calls may fill the claim beyond max_any? Without max_any all types
 * are. */
bool led_claim_quick(const struct claim *q, struct bytes type);
/* Does the claim serve the pair's track? Fills in the pair's `last` and `quick`. Not if the
 * lane does not exist. */
MUST_USE enum pawl_status led_claim_serves(struct claiming *g, struct pair *p, bool *out,
                                           struct pawl_err *err);
/* Fill in `pairs`: as they were when the transaction began, if nothing has been written since.
 * First do what comes before a claim: read the inbox, add key notes, let delayed calls whose time
 * has come join. */
MUST_USE enum pawl_status led_claim_look(struct claiming *g, struct pawl_err *err);
/* Is the first call of a served pair due? */
bool led_claim_any_due(const struct claiming *g);
/* Answer `more` and `next_due_us`: from memory, if what the look found is still what is stored;
 * with the group's last write (tx->late), if no operation follows in the group; otherwise now,
 * after writing what is decided. Then the answer does not see what later operations do. */
MUST_USE enum pawl_status led_claim_answer(struct claiming *g, struct pawl_err *err);

/* ---- claim_take.c ---------------------------------------------------------------------------- */

/* Is the call past its expiry? */
bool led_claim_over(const struct claiming *g, const struct led_call *it);
/* Does the claim have room for the call's input? With an engine inside the process, a long input is
 * read now. */
MUST_USE enum pawl_status led_claim_fits(struct claiming *g, struct led_call *it, bool *out,
                                         struct pawl_err *err);
/* Have max_any calls been taken, so that only calls of quick types may follow? */
bool led_claim_only_quick(const struct claiming *g);
/* May another call be taken or expire? */
bool led_claim_goes_on(const struct claiming *g);
/* End the call as `expired`, and report it in op->ended. */
MUST_USE enum pawl_status led_claim_expire(struct claiming *g, struct led_call *it,
                                           struct pawl_err *err);
/* Put the call into the claim's lease. `k` is its key, which is locked, or NULL without one;
 * `position` counts the calls of its run before it. */
MUST_USE enum pawl_status led_claim_take(struct claiming *g, struct led_call *it, struct led_key *k,
                                         int64_t position, struct pawl_err *err);

/* ---- claim_run.c ----------------------------------------------------------------------------- */

/* Lock the keys of these candidates that no other transaction has locked, and read the calls of
 * their lines that may go with them. */
MUST_USE enum pawl_status led_claim_lines(struct claiming *g, struct led_call *const *v, size_t n,
                                          struct pawl_err *err);
/* Decide about one candidate: take it with its run, let it expire, or leave it. *progress is set
 * unless it is left for a later claim. */
MUST_USE enum pawl_status led_claim_candidate(struct claiming *g, struct led_call *it,
                                              bool *progress, struct pawl_err *err);

/* ---- claim_stored.c, claim_memory.c ---------------------------------------------------------- */

/* Take due calls of `ready` of n pairs, which have one rank. */
MUST_USE enum pawl_status led_claim_rank(struct claiming *g, const struct pair *p, size_t n,
                                         struct pawl_err *err);
/* Take up to n due calls of one pair. *out: how many were found. */
MUST_USE enum pawl_status led_claim_from(struct claiming *g, const struct pair *p, size_t n,
                                         size_t *out, struct pawl_err *err);
/* Is the call in another lane than the rules for keys want? Then it is moved there, and not taken
 * (gate.c). */
MUST_USE enum pawl_status led_claim_regate(struct claiming *g, struct led_call *it, bool *out,
                                           struct pawl_err *err);
/* Take calls of a pair that is gated, as many as the rules allow (gate.c). */
MUST_USE enum pawl_status led_claim_gated(struct claiming *g, const struct pair *p,
                                          struct pawl_err *err);
/* For qsort() of struct led_call *: by run_at, then seq. */
int led_claim_compare(const void *a, const void *b);
/* Give heads, in memory, to keys that the group has freed; each is read with the calls that may go
 * with it. Keys whose stored line has to be written first stay on tx->due. */
MUST_USE enum pawl_status led_claim_heads(struct claiming *g, struct pawl_err *err);
/* Take due calls that are in memory and not stored. */
MUST_USE enum pawl_status led_claim_memory(struct claiming *g, struct pawl_err *err);

/* ---- claim_show.c ---------------------------------------------------------------------------- */

/* For qsort() of struct held: by seq, the order of a lease's list. */
int led_held_compare(const void *a, const void *b);
/* The answer of an earlier claim with this token was lost: answer again with the calls that the
 * lease holds now. */
MUST_USE enum pawl_status led_claim_repeat(struct claiming *g, const struct led_lease *l,
                                           struct pawl_err *err);
/* Fill in q->calls and q->states, with inputs and the states of objects, in op->a. */
MUST_USE enum pawl_status led_claim_show(struct claiming *g, struct pawl_err *err);

#endif
