/*
 * key.h - keys, their lines and whose turn it is. Private to store/sqlite.
 *
 * A key's row is read when a transaction first needs it, changed in memory and written once
 * (lite_keys_write). The line itself is always in its table.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_SQLITE_KEY_H
#define STORE_SQLITE_KEY_H

#include "model/call.h"
#include "store/op.h"

struct lite;
struct lite_move;

/* As pawl_key.state has it. */
enum lite_turn { KEY_IDLE, KEY_OFFERED, KEY_HELD, KEY_BLOCKED };

struct lite_key {
    struct lite_key *next; /* same bucket */
    struct lite_key *due;  /* whose turn is decided later */
    struct bytes name;     /* in scratch */
    bool stored, dirty, is_due;
    enum lite_turn turn;
    int64_t head;              /* on offer, the first of the run without an outcome, or blocking */
    int64_t head_pos, head_no; /* unless it is held */
    int64_t next_no;
    int64_t held;           /* calls a lease holds without an outcome */
    int64_t waiting, later; /* in line and on offer; delayed */
    int64_t since_us;       /* blocked */
    int64_t ended_us;       /* when a call last ended that was held */
};

#define KEY_BUCKETS 1024

/* Valid with `tx`. */
struct lite_keys {
    uint64_t tx;
    struct lite_key *buckets[KEY_BUCKETS];
    struct lite_key *due; /* while `hold`: turns to be decided when it is over */
    bool hold;
};

/* A row of the line. */
struct lite_place {
    int64_t pos, seq, run_at_us, key_no;
    int lane, priority;
    struct tries tries;
};

/* The key, as this transaction has it; one nobody knows is idle. Borrowed for the transaction. */
MUST_USE enum pawl_status lite_key_get(struct lite *c, struct bytes name, struct lite_key **out,
                                       struct pawl_err *err);
MUST_USE enum pawl_status lite_keys_write(struct lite *c, struct pawl_err *err);
static inline int64_t lite_key_pending(const struct lite_key *k)
{
    return k->waiting + k->later;
}

/* A new call that is due: on offer when the key is idle (*out_offer), else in the line. */
MUST_USE enum pawl_status lite_key_join(struct lite *c, struct lite_key *k,
                                        const struct lite_place *p, bool *out_offer,
                                        struct pawl_err *err);
/* A call that is to join at p->run_at_us. */
MUST_USE enum pawl_status lite_key_later(struct lite *c, struct lite_key *k,
                                         const struct lite_place *p, struct pawl_err *err);
/* The parts of a move (move.c) that concern the key. Out of wherever it is pending; into the line,
 * at m->pos, 0: its end; and, when it was held, no longer. */
MUST_USE enum pawl_status lite_key_out(struct lite *c, struct lite_key *k, int64_t seq,
                                       struct pawl_err *err);
MUST_USE enum pawl_status lite_key_into(struct lite *c, struct lite_key *k,
                                        const struct lite_move *m, struct pawl_err *err);
/* The key is perhaps free: offer its first call. Called at the end of every move of a keyed call.
 */
MUST_USE enum pawl_status lite_key_turn(struct lite *c, struct lite_key *k, struct pawl_err *err);
/* Between the two nothing is put on offer: a claim is walking. *out_any: something was then. */
void lite_keys_hold(struct lite *c);
MUST_USE enum pawl_status lite_keys_release(struct lite *c, bool *out_any, struct pawl_err *err);

/* The call on offer is claimed: its number in its key. */
int64_t lite_key_take_head(struct lite_key *k, int64_t *out_pos);
/* The first calls of the line, up to max, into scratch. */
MUST_USE enum pawl_status lite_key_line(struct lite *c, const struct lite_key *k, int max,
                                        struct lite_place **out, size_t *out_n,
                                        struct pawl_err *err);
/* One of them is claimed, behind those taken before: its number. Its row goes with
 * lite_key_taken().
 */
int64_t lite_key_take_next(struct lite_key *k, const struct lite_place *p);
/* The n first rows of the line, up to this place, were claimed. */
MUST_USE enum pawl_status lite_key_taken(struct lite *c, struct lite_key *k, int64_t pos, size_t n,
                                         struct pawl_err *err);

/* Where a pending call stands: place.pos 0 when it is on offer. BROKEN when it is nowhere. */
MUST_USE enum pawl_status lite_key_place(struct lite *c, int64_t seq, bool *out_found,
                                         struct lite_place *out, struct pawl_err *err);
/* The place of a call in the line as it is shown, from 1. */
MUST_USE enum pawl_status lite_key_position(struct lite *c, const struct lite_key *k, int64_t pos,
                                            int64_t *out, struct pawl_err *err);

/* Up to max delayed calls whose time has come join. */
MUST_USE enum pawl_status lite_keys_join_due(struct lite *c, int max, int64_t *out_joined,
                                             struct pawl_err *err);
/* The last call of a key went: so does what is known of the key, if nothing else is left of it. */
MUST_USE enum pawl_status lite_key_gone(struct lite *c, struct bytes name, struct pawl_err *err);

#endif
