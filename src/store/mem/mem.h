/*
 * mem.h - the in-memory database, one handle on it, and the operations as functions.
 *
 * Everything but opening and closing happens under the database's mutex. Operations return OK
 * (op->status has the answer) or NO_MEMORY, which undoes the whole group.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_MEM_MEM_H
#define STORE_MEM_MEM_H

#include <pthread.h>

#include "store/mem/thing.h"
#include "store/store.h"

struct mem_db {
    struct mem_db *next; /* in the process's list of databases */
    char *name;          /* owned; schema, colon, name */
    int handles;
    pthread_mutex_t lock; /* of all below */

    struct table ids, lanes, queues, nodes;
    struct mem_call **calls; /* owned; by seq - 1; NULL: forgotten */
    size_t calls_cap;
    struct tree ready;  /* lane, suspect, -priority, run_at, seq */
    struct tree expiry; /* expires_at, seq: pending calls only */
    struct tree held;   /* lease, -priority, run_at, seq */
    struct tree keep;   /* keep_until, seq: ended calls */
    struct tree forget; /* forget_at, seq: tombstones */
    struct tree leases; /* token */
    struct tree ends;   /* until, token: leases that have an end */
    int64_t last_seq;
    int last_lane;
    int64_t last_serial; /* of leases; never undone, only unique */
    uint64_t finishes;
    int64_t version;
    struct undo undo;
};

struct mem {
    struct store base;
    struct mem_db *db;
    const struct world *world;
    int64_t retention_us, remember_us;
    int64_t own; /* of the database's version, commits of this very handle; under its lock */
};

/* One operation inside one commit. */
struct mem_tx {
    struct mem *s;
    struct mem_db *db;
    int64_t now_us;
    struct op *op;
};

#define KEY(...) ((struct tree_key){ { __VA_ARGS__ } })
#define THING_OF(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* ---- Calls (call.c) ---------------------------------------------------------------------------
 */

struct tree_key ready_key(const struct mem_call *c);
struct tree_key token_key(struct token t);
struct mem_call *call_by_id(const struct mem_db *db, struct bytes id);
/* The call a tree node is the place of. */
struct mem_call *call_at(struct tree_node *by_place);
/* Write down a new pending call. OK, FULL (no lane left), NO_MEMORY. */
MUST_USE enum pawl_status call_make(struct mem_tx *tx, const struct call_spec *spec,
                                    struct mem_call **out);
/* The one function that moves a call: from where it stands to `to` (whose blobs are ignored). The
 * call has been saved. */
void call_put(struct mem_db *db, struct mem_call *c, struct stand to);
/* The lane, made when it is new. OK, FULL, NO_MEMORY. */
MUST_USE enum pawl_status lane_get(struct mem_db *db, struct bytes queue, struct bytes type,
                                   struct lane **out);
/* The queue, made when it is new; NULL without memory. */
struct queue *queue_get(struct mem_db *db, struct bytes name);
/* End a call without an owner's doing: cancelled or expired while it was pending. */
MUST_USE enum pawl_status call_end(struct mem_tx *tx, struct mem_call *c, enum pawl_state state);
/* Add to op->ended. */
MUST_USE enum pawl_status told_ended(struct mem_tx *tx, const struct mem_call *c);
/* The call as it stands, nothing copied, all of it. */
struct call call_model(const struct mem_call *c, int64_t now_us);
/* The same with everything in `a`; payloads only when asked for. A tombstone shows id, state and
 * times. False without memory. */
MUST_USE bool call_show(struct arena *a, const struct mem_call *c, int64_t now_us, unsigned with,
                        struct call *out);

/* ---- How a try ends (finish.c, node.c) --------------------------------------------------------
 */

/* What ends one try of a call that is held. */
struct ending_of {
    struct try_end end;
    struct payload result;
    struct bytes error;
    int64_t started_us;
    bool owner; /* a finish of the owner: it leaves the token, and a trace of what it hands back */
};
/* Decide with the model and write it. A call that is pending again is off its lease's list. */
MUST_USE enum pawl_status try_end_write(struct mem_tx *tx, struct mem_call *c,
                                        const struct ending_of *e);
struct mem_lease *lease_find_token(const struct mem_db *db, struct token token);
/* The first call without an outcome, in claim order; NULL: it can be dropped. */
struct mem_call *lease_first(const struct mem_db *db, const struct mem_lease *l);
struct mem_call *lease_next(const struct mem_db *db, const struct mem_call *c);
bool lease_over(const struct mem_lease *l, int64_t now_us);
/* Take one call off its list. The call itself moves by call_put(). */
MUST_USE bool lease_off(struct mem_db *db, struct mem_lease *l);
/* The lease an ended call ended under may still stand for the sake of others: off its list. */
MUST_USE bool lease_leave(struct mem_db *db, const struct mem_call *c);
/* Take back every call of the lease as LOST or RELEASE and drop it; adds to *count. */
MUST_USE enum pawl_status lease_reclaim(struct mem_tx *tx, struct mem_lease *l, struct try_end how,
                                        int64_t *count);

/* ---- Operations -------------------------------------------------------------------------------
 */

enum pawl_status mem_accept(struct mem_tx *tx, struct accept *q);
enum pawl_status mem_claim(struct mem_tx *tx, struct claim *q);
enum pawl_status mem_finish(struct mem_tx *tx, struct finish *q);
enum pawl_status mem_extend(struct mem_tx *tx, struct extend *q);
enum pawl_status mem_cancel(struct mem_tx *tx, struct by_id *q);
enum pawl_status mem_redrive(struct mem_tx *tx, struct by_id *q);
enum pawl_status mem_move(struct mem_tx *tx, struct by_id *q);
enum pawl_status mem_pause(struct mem_tx *tx, struct pause *q);
enum pawl_status mem_join(struct mem_tx *tx, struct node_op *q);
/* Does the registry say that this process is no longer the node? */
bool mem_node_replaced(const struct mem_db *db, struct bytes node, struct bytes boot);
enum pawl_status mem_beat(struct mem_tx *tx, struct node_op *q);
enum pawl_status mem_leave(struct mem_tx *tx, struct node_op *q);
enum pawl_status mem_bury(struct mem_tx *tx, struct node_op *q);
enum pawl_status mem_sweep(struct mem_tx *tx, struct sweep *q);
enum pawl_status mem_gc(struct mem_tx *tx, struct gc *q);

/* ---- Reads (read.c, list.c) -------------------------------------------------------------------
 */

enum pawl_status mem_get(struct store *s, struct arena *a, struct get *g, struct pawl_err *err);
enum pawl_status mem_list(struct store *s, struct arena *a, const struct query *q, struct page *out,
                          struct pawl_err *err);
enum pawl_status mem_attempts(struct store *s, struct arena *a, struct bytes id,
                              struct attempts *out, struct pawl_err *err);
enum pawl_status mem_queues(struct store *s, struct arena *a, struct queue_rows *out,
                            struct pawl_err *err);
enum pawl_status mem_nodes(struct store *s, struct arena *a, struct node_rows *out,
                           struct pawl_err *err);
enum pawl_status mem_wishes(struct store *s, struct arena *a, struct wishes *out,
                            struct pawl_err *err);

/* Tries that are shown: errors, timeouts, refusals, losses. */
bool try_shown(const struct try_row *t);
void blobs_free(struct blob *b, const struct blob *until);

#endif
