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

    struct table ids, lanes, queues, nodes, keys, objects;
    struct mem_leader leaders[2]; /* by role */
    struct mem_call **calls;      /* owned; index seq - 1; NULL: removed, or never a call's */
    size_t calls_cap;
    struct tree ready;              /* lane, retry_alone, -priority, run_at, seq */
    struct tree expiry;             /* expires_at, seq: pending calls only */
    struct tree delayed;            /* run_at, seq: delayed calls with a key */
    struct tree held;               /* lease, -priority, run_at, seq */
    struct tree keep;               /* keep_until, seq: ended calls */
    struct tree forget;             /* forget_at, seq: tombstones */
    struct tree leases;             /* token */
    struct tree ends;               /* until, token: leases that have an end */
    int64_t last_seq, last_version; /* of calls and places in lines; of objects */
    int last_lane;
    int64_t last_serial; /* of leases; not restored by undo, because it must only be unique */
    uint64_t finishes;   /* passes over the items of a finish; marks calls as seen (finish.c) */
    int64_t version;     /* commits that changed something */
    struct undo undo;
};

struct mem {
    struct store base;
    struct mem_db *db;
    const struct world *world;
    int64_t retention_us, remember_us;
    int64_t key_pending_max; /* 0: no limit */
    int64_t own; /* how many of db->version are commits of this handle; under db->lock */
};

/* One operation inside one commit. */
struct mem_tx {
    struct mem *s;
    struct mem_db *db;
    int64_t now_us;
    struct op *op;
};

/* How long a lane without calls stays. */
#define MEM_LANE_EMPTY_US (70 * 60 * SEC_US)

#define KEY(...) ((struct tree_key){ { __VA_ARGS__ } })
#define THING_OF(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* ---- Calls (call.c) -------------------------------------------------------------------------- */

/* The key of a call in db->ready: claims read it in this order. */
struct tree_key ready_key(const struct mem_call *c);
/* The key of a lease in db->leases; keys are ordered as memcmp orders tokens. */
struct tree_key token_key(struct token t);
/* The call with this id, a tombstone too; NULL: none. */
struct mem_call *call_by_id(const struct mem_db *db, struct bytes id);
/* The call whose by_place is this node; NULL for NULL. */
struct mem_call *call_at(struct tree_node *by_place);
/* Store a new pending call. OK, FULL (no lane left), NO_MEMORY. */
MUST_USE enum pawl_status call_make(struct mem_tx *tx, const struct call_spec *spec,
                                    struct mem_call **out);
/* The only function that moves a call: from c->now to `to` (whose blobs are ignored). The caller
 * has called undo_save() for the call. */
void call_put(struct mem_db *db, struct mem_call *c, struct stand to);
/* Use the next sequence number for a place in a line, so that no call gets it; 0 without memory. */
MUST_USE int64_t seq_next(struct mem_db *db);
/* The lane of this spec's queue, type and needs, created when it is new. OK, FULL, NO_MEMORY. */
MUST_USE enum pawl_status lane_get(struct mem_db *db, const struct call_spec *spec,
                                   struct lane **out);
/* For gc: remove lanes that have had no call for MEM_LANE_EMPTY_US. False without memory. */
MUST_USE bool lanes_remove(struct mem_tx *tx);
/* The queue, created when it is new; NULL without memory. */
struct queue *queue_get(struct mem_db *db, struct bytes name);
/* End a pending call as cancelled or expired. The caller calls key_settle() for its key. */
MUST_USE enum pawl_status call_end(struct mem_tx *tx, struct mem_call *c, enum pawl_state state);
/* Add the call's id to op->ended. OK, NO_MEMORY. */
MUST_USE enum pawl_status told_ended(struct mem_tx *tx, const struct mem_call *c);
/* The call as readers see it, payloads included; pointers are borrowed from the database. */
struct call call_model(const struct mem_call *c, int64_t now_us);
/* The same, copied into `a`; payloads only as `with` (WITH_...) says. A tombstone has id, state and
 * times. False without memory. */
MUST_USE bool call_show(struct arena *a, const struct mem_call *c, int64_t now_us, unsigned with,
                        struct call *out);

/* ---- Keys and objects (key.c, object.c) ------------------------------------------------------ */

/* The key; NULL: unknown. */
struct mem_key *key_find(const struct mem_db *db, struct bytes name);
/* The key, created when it is new; NULL without memory. */
struct mem_key *key_get(struct mem_db *db, struct bytes name);
/* The first call of the line, held or not; NULL: the line is empty. */
struct mem_call *line_first(const struct mem_key *k);
/* The call behind `c` in the line; NULL: `c` is the last. */
struct mem_call *line_next(const struct mem_key *k, const struct mem_call *c);
/* How many calls of the key have not ended and are held by no lease. */
int64_t key_pending(const struct mem_key *k);
/* The same for one type: the pending calls of an object. */
int64_t key_pending_type(const struct mem_key *k, struct bytes type);
/* Is the call held, and behind another one of its run? */
bool call_behind(const struct mem_call *c);
/* Has this held call begun? A call behind another has not, nor has one beyond the width of its
 * lease. */
bool call_begun(const struct mem_call *c);
/* Is the first call of the line held, and has it begun? */
bool line_runs(const struct mem_key *k);
/* Put the first call of the line on offer if the key is neither held nor blocked, and no other
 * call. Called after every change to calls of the key. Accepts NULL. False without memory. */
MUST_USE bool key_settle(struct mem_db *db, struct mem_key *k);
/* Remove the key when it has no call and no object. Accepts NULL. False without memory. */
MUST_USE bool key_forget(struct mem_db *db, struct mem_key *k);
/* Put a delayed call at the end of its key's line. False without memory. */
MUST_USE bool call_join(struct mem_db *db, struct mem_call *c);
/* Let up to max delayed calls whose time has come join their lines. Returns how many, below 0
 * without memory. */
MUST_USE int64_t join_due(struct mem_tx *tx, int64_t max);
/* The object; NULL: none. */
struct mem_object *object_find(const struct mem_db *db, struct bytes type, struct bytes key);
/* Write its state. Returns the new version, 0 without memory. */
MUST_USE int64_t object_set(struct mem_tx *tx, struct bytes type, struct mem_key *k,
                            struct payload state);
/* Remove it, if there is one. False without memory. */
MUST_USE bool object_remove(struct mem_db *db, struct bytes type, struct bytes key);

/* ---- How an attempt ends (finish.c, node.c) -------------------------------------------------- */

/* How one attempt of a held call ends. */
struct ending_of {
    struct attempt_end end;
    struct payload result;
    struct bytes error;
    int64_t started_us;
    bool owner; /* a finish of the owner: its rows have the token, and a call that it hands back
                   under a lease with an end leaves a row, so that a repeat finds it */
};
/* Decide with the model what follows and write it. A call that is pending again is taken off its
 * lease's list. */
MUST_USE enum pawl_status attempt_end_write(struct mem_tx *tx, struct mem_call *c,
                                            const struct ending_of *said);
/* Hand the held calls of the key from place `pos` on back to the line, as RELEASE. Those that end
 * by it (a cancel request) go into op->ended, unless an item of the owner's finish names them. Adds
 * to *count. */
MUST_USE enum pawl_status run_hand_back(struct mem_tx *tx, struct mem_key *k, int64_t pos,
                                        bool owner, int64_t *count);
/* The lease with this token; NULL: none. */
struct mem_lease *lease_find_token(const struct mem_db *db, struct token token);
/* The first call of the lease without an outcome, in the lease's order; NULL: none is left. */
struct mem_call *lease_first(const struct mem_db *db, const struct mem_lease *l);
/* The call after `c` in the lease that holds `c`; NULL: `c` is the last. */
struct mem_call *lease_next(const struct mem_db *db, const struct mem_call *c);
/* Does the lease have an end that has passed? */
bool lease_over(const struct mem_lease *l, int64_t now_us);
/* Count one call less on the lease's list; call_put() moves the call itself. False without memory.
 */
MUST_USE bool lease_off(struct mem_db *db, struct mem_lease *l);
/* Take an ended call off the list of the lease under which it ended, if that still exists for other
 * calls. False without memory. */
MUST_USE bool lease_leave(struct mem_db *db, const struct mem_call *c);
/* End the lease: calls that have begun end as `how`, the others as RELEASE. Adds to *count. */
MUST_USE enum pawl_status lease_reclaim(struct mem_tx *tx, struct mem_lease *l,
                                        struct attempt_end how, int64_t *count);
/* The last deadline of the lease's calls; 0: it holds none. */
int64_t lease_deadline(const struct mem_db *db, const struct mem_lease *l);
/* End the calls of the lease that are past their timeout as TIMEOUT; their ids go into
 * q->timed_out. */
MUST_USE enum pawl_status lease_time_out(struct mem_tx *tx, struct mem_lease *l, struct extend *q);

/* ---- Operations ------------------------------------------------------------------------------ */

/* Each does what store/README.md says of its operation: OK (op->status has the answer), or
 * NO_MEMORY. */
enum pawl_status mem_accept(struct mem_tx *tx, struct accept *q);
enum pawl_status mem_claim(struct mem_tx *tx, struct claim *q);
enum pawl_status mem_finish(struct mem_tx *tx, struct finish *q);
enum pawl_status mem_extend(struct mem_tx *tx, struct extend *q);
enum pawl_status mem_cancel(struct mem_tx *tx, struct by_id *q);
enum pawl_status mem_retry(struct mem_tx *tx, struct by_id *q);
enum pawl_status mem_move(struct mem_tx *tx, struct by_id *q);
enum pawl_status mem_object(struct mem_tx *tx, struct object_op *q);
enum pawl_status mem_unblock(struct mem_tx *tx, struct unblock *q);
enum pawl_status mem_pause(struct mem_tx *tx, struct pause *q);
enum pawl_status mem_join(struct mem_tx *tx, struct node_op *q);
enum pawl_status mem_beat(struct mem_tx *tx, struct node_op *q);
enum pawl_status mem_leave(struct mem_tx *tx, struct node_op *q);
enum pawl_status mem_bury(struct mem_tx *tx, struct node_op *q);
enum pawl_status mem_drain(struct mem_tx *tx, struct node_op *q);
enum pawl_status mem_lead(struct mem_tx *tx, struct lead *q);
enum pawl_status mem_sweep(struct mem_tx *tx, struct sweep *q);
enum pawl_status mem_gc(struct mem_tx *tx, struct gc *q);
enum pawl_status mem_requeue(struct mem_tx *tx, struct requeue *q);
/* Retry an ended call, for which that is known to be legal. OK, NO_MEMORY. */
MUST_USE enum pawl_status call_retry(struct mem_tx *tx, struct mem_call *c);
/* Does the registry have the node's name under another boot, or dead? */
bool mem_node_replaced(const struct mem_db *db, struct bytes node, struct bytes boot);
/* Set up the roles of a new database; all are free. */
void mem_leaders_init(struct mem_db *db);
/* Free the roles that the node holds under this boot (same_boot), or under every other one. False
 * without memory. */
MUST_USE bool leaders_vacate(struct mem_db *db, struct bytes node, struct bytes boot,
                             bool same_boot);

/* ---- Reads (read.c, read_key.c) -------------------------------------------------------------- */

/* The reading slots of struct store_ops. Each locks the mutex and copies its answer into `a`. */
enum pawl_status mem_get(struct store *s, struct arena *a, struct get *g, struct pawl_err *err);
enum pawl_status mem_list(struct store *s, struct arena *a, const struct query *q, struct page *out,
                          struct pawl_err *err);
enum pawl_status mem_attempts(struct store *s, struct arena *a, struct bytes id,
                              struct attempts *out, struct pawl_err *err);
enum pawl_status mem_read_object(struct store *s, struct arena *a, struct bytes type,
                                 struct bytes key, struct object *out, struct pawl_err *err);
enum pawl_status mem_read_keys(struct store *s, struct arena *a, const struct key_query *q,
                               struct key_rows *out, struct pawl_err *err);
enum pawl_status mem_queues(struct store *s, struct arena *a, struct queue_rows *out,
                            struct pawl_err *err);
enum pawl_status mem_nodes(struct store *s, struct arena *a, struct node_rows *out,
                           struct pawl_err *err);
enum pawl_status mem_leaders(struct store *s, struct arena *a, struct leader_rows *out,
                             struct pawl_err *err);
enum pawl_status mem_cancel_requests(struct store *s, struct arena *a, struct cancel_requests *out,
                                     struct pawl_err *err);

/* Is this row shown to readers? Errors, timeouts, refusals and losses are. */
bool attempt_shown(const struct attempt_row *t);
/* Free a call's blobs from `b`, the newest, up to and without `until`. */
void blobs_free(struct blob *b, const struct blob *until);

#endif
