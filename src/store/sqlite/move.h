/*
 * move.h - moving a call between places, and what a transaction keeps about that. Private to
 * store/sqlite.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_SQLITE_MOVE_H
#define STORE_SQLITE_MOVE_H

#include "store/sqlite/engine.h"

/* How a call ended, as pawl_outcome has it. */
struct lite_end {
    struct payload result;
    struct bytes error, node;
    const struct token *token;               /* NULL: ended by no owner */
    int64_t claimed_us, started_us, keep_us; /* keep 0: the retention setting */
    bool blocks;                             /* it holds its key, and is kept as long */
};
/* One move of one call. */
struct lite_move {
    int64_t seq;
    enum pawl_state from, to;
    struct tries tries;         /* as they are after it */
    int lane, priority;         /* to PENDING */
    int64_t run_at_us;          /* to PENDING */
    int64_t expires_us;         /* from or to PENDING: its row in pawl_expiry; 0: it has none */
    const struct lite_end *end; /* to an ended state */
    struct bytes key;           /* absent: it has none */
    int64_t key_no;
    int64_t pos;    /* to PENDING, with a key: its place in the line; 0: the end */
    bool later;     /* to PENDING, with a key: it joins when it is due */
    int64_t behind; /* from PROCESSING, with a key: the next of its run; 0: it is the last */
};
/* The one function that moves a call between places. */
MUST_USE enum pawl_status lite_move(struct lite *c, const struct lite_move *m,
                                    struct pawl_err *err);
/* The same for the first n calls of one (track, rank), from PENDING to PROCESSING: those up to and
 * with the one named. Whatever else stood there before it has been taken out. */
struct lite_claimed {
    int64_t track, rank, run_at_us, seq;
    size_t n;
};
MUST_USE enum pawl_status lite_move_claimed(struct lite *c, const struct lite_claimed *m,
                                            struct pawl_err *err);
/* A fresh call is pending: remembered, and written into pawl_ready by lite_fresh_write(). */
MUST_USE enum pawl_status lite_fresh_add(struct lite *c, const struct lite_fresh *f,
                                         struct pawl_err *err);
/* Could this be one of the transaction's fresh calls that are not written yet? */
bool lite_fresh_has(const struct lite *c, int64_t seq);
MUST_USE enum pawl_status lite_fresh_write(struct lite *c, struct pawl_err *err);
/* Its rows, now. */
MUST_USE enum pawl_status lite_ready_add(struct lite *c, const struct lite_fresh *f,
                                         struct pawl_err *err);
/* The next version of an object. */
MUST_USE enum pawl_status lite_version_next(struct lite *c, int64_t *out, struct pawl_err *err);
MUST_USE enum pawl_status lite_wish_has(struct lite *c, int64_t seq, bool *out,
                                        struct pawl_err *err);
MUST_USE enum pawl_status lite_wish_add(struct lite *c, int64_t seq, struct pawl_err *err);
MUST_USE enum pawl_status lite_seq_load(struct lite *c, struct pawl_err *err);
/* Add an id to op->ended. */
MUST_USE enum pawl_status lite_told_ended(struct op *op, struct bytes id, struct pawl_err *err);
static inline int lite_track(int lane, struct tries t)
{
    return lane * 2 + (tries_suspect(t) ? 1 : 0);
}

#endif
