/*
 * walk.h - due calls of the lanes a claim serves, best first, over what is stored and what is
 * fresh.
 *
 * Private to store/sqlite. The cost is a few steps down an index for each (lane, priority) that is
 * served and in use, and one row for each call that is taken: what waits in other lanes, in paused
 * queues or for a later time is never looked at. Everything lives in the transaction's scratch.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_SQLITE_WALK_H
#define STORE_SQLITE_WALK_H

#include "store/sqlite/engine.h"

/* One due call. */
struct candidate {
    int64_t rank, run_at_us, seq; /* its order, with: */
    bool last;                    /* it is of the queue that comes last in its rank */
    int lane;
    struct tries tries;
    struct lite_fresh *fresh; /* NULL: it is stored */
};

struct source;

struct walk {
    const struct claim *q;
    bool *served, *last;         /* by lane - 1 */
    bool *quick;                 /* the same: its calls may fill the claim beyond max_any */
    struct source *pairs;        /* every (track, rank) in use, by rank */
    size_t n_pairs, n_open;      /* of which the first n_open were begun */
    struct candidate *fresh;     /* due fresh calls in order */
    size_t n_fresh, at_fresh;    /* those before at_fresh are done with */
    size_t best_fresh, at_quick; /* at_quick: no quick one stands before it */
    size_t chunk;                /* rows to read at a time */
    bool no_suspects;            /* pass over suspects from now on */
    bool only_quick;             /* pass over lanes that are not quick from now on */
    struct source *best;         /* where the last peek was found; NULL: at best_fresh */
};

MUST_USE enum pawl_status walk_open(struct lite *c, const struct claim *q, struct walk *out,
                                    struct pawl_err *err);
/* The best call left; NULL: none. Borrowed until walk_pop(). */
MUST_USE enum pawl_status walk_peek(struct lite *c, struct walk *w, const struct candidate **out,
                                    struct pawl_err *err);
/* Done with the call peeked at last; taken: it is claimed, else it was taken out of ready already.
 */
void walk_pop(struct walk *w, bool taken);
/* Take every stored call that was claimed out of ready. */
MUST_USE enum pawl_status walk_claim(struct lite *c, const struct walk *w, struct pawl_err *err);
/* The earliest run_at of what is served and not due; 0: none. */
MUST_USE enum pawl_status walk_next_due(struct lite *c, struct walk *w, int64_t *out,
                                        struct pawl_err *err);

#endif
