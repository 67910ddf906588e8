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
    struct mem_call **calls;      /* owned; by seq - 1; NULL: forgotten */
    size_t calls_cap;
    struct tree ready;              /* lane, retry_alone, -priority, run_at, seq */
    struct tree expiry;             /* expires_at, seq: pending calls only */
    struct tree later;              /* run_at, seq: delayed calls with a key */
    struct tree held;               /* lease, -priority, run_at, seq */
    struct tree keep;               /* keep_until, seq: ended calls */
    struct tree forget;             /* forget_at, seq: tombstones */
    struct tree leases;             /* token */
    struct tree ends;               /* until, token: leases that have an end */
    int64_t last_seq, last_version; /* of calls and places in lines; of objects */
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
    int64_t key_pending_max; /* 0: no bound */
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
/* A sequence number that no call gets; 0 without memory. */
MUST_USE int64_t seq_next(struct mem_db *db);
/* Does the queue and type have no lane, and can they have none any more? */
bool lane_none_left(struct mem_db *db, struct bytes queue, struct bytes type);
/* The lane, made when it is new. OK, FULL, NO_MEMORY. */
MUST_USE enum pawl_status lane_get(struct mem_db *db, struct bytes queue, struct bytes type,
                                   struct lane **out);
/* The queue, made when it is new; NULL without memory. */
struct queue *queue_get(struct mem_db *db, struct bytes name);
/* End a call without an owner's doing: cancelled or expired while it was pending. Its key is the
 * caller's to settle. */
MUST_USE enum pawl_status call_end(struct mem_tx *tx, struct mem_call *c, enum pawl_state state);
/* Add to op->ended. */
MUST_USE enum pawl_status told_ended(struct mem_tx *tx, const struct mem_call *c);
/* The call as it stands, nothing copied, all of it. */
struct call call_model(const struct mem_call *c, int64_t now_us);
/* The same with everything in `a`; payloads only when asked for. A tombstone shows id, state and
 * times. False without memory. */
MUST_USE bool call_show(struct arena *a, const struct mem_call *c, int64_t now_us, unsigned with,
                        struct call *out);

/* ---- Keys and objects (key.c, object.c) -------------------------------------------------------
 */

struct mem_key *key_find(const struct mem_db *db, struct bytes name);
/* The key, made when it is new; NULL without memory. */
struct mem_key *key_get(struct mem_db *db, struct bytes name);
/* The first call of the line, held or not, and the one behind; NULL: none. */
struct mem_call *line_first(const struct mem_key *k);
struct mem_call *line_next(const struct mem_key *k, const struct mem_call *c);
/* Calls that have not ended and that no lease holds. */
int64_t key_pending(const struct mem_key *k);
/* The same of one type: what an object has. */
int64_t key_pending_type(const struct mem_key *k, struct bytes type);
/* Is it held, and another one of its run comes before it? */
bool call_behind(const struct mem_call *c);
/* Of a call that is held: has it begun? Neither those behind have, nor those beyond the width of
 * their lease. */
bool call_begun(const struct mem_call *c);
/* Does the first call of the line run? */
bool line_runs(const struct mem_key *k);
/* Put on offer what should be, and nothing else. Accepts NULL. False without memory. */
MUST_USE bool key_settle(struct mem_db *db, struct mem_key *k);
/* Forget what nothing is left of. Accepts NULL. False without memory. */
MUST_USE bool key_forget(struct mem_db *db, struct mem_key *k);
/* To the end of its line. False without memory. */
MUST_USE bool call_join(struct mem_db *db, struct mem_call *c);
/* Up to max delayed calls whose time has come join; how many, below 0 without memory. */
MUST_USE int64_t join_due(struct mem_tx *tx, int64_t max);
/* The object; NULL for none. */
struct mem_object *object_find(const struct mem_db *db, struct bytes type, struct bytes key);
/* Write its state; the version. 0 without memory. */
MUST_USE int64_t object_set(struct mem_tx *tx, struct bytes type, struct mem_key *k,
                            struct payload state);
/* Remove it, if there is one. False without memory. */
MUST_USE bool object_remove(struct mem_db *db, struct bytes type, struct bytes key);

/* ---- How an attempt ends (finish.c, node.c)
 * --------------------------------------------------------
 */

/* What ends one attempt of a call that is held. */
struct ending_of {
    struct attempt_end end;
    struct payload result;
    struct bytes error;
    int64_t started_us;
    bool owner; /* a finish of the owner: it leaves the token, and a trace of what it hands back */
};
/* Decide with the model and write it. A call that is pending again is off its lease's list. */
MUST_USE enum pawl_status attempt_end_write(struct mem_tx *tx, struct mem_call *c,
                                            const struct ending_of *said);
/* What is held of the key's run from place `pos` on goes back to the line, as RELEASE. Those that
 * end by it are told, unless `finish` names them. Adds to *count. */
MUST_USE enum pawl_status run_hand_back(struct mem_tx *tx, struct mem_key *k, int64_t pos,
                                        bool owner, int64_t *count);
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
MUST_USE enum pawl_status lease_reclaim(struct mem_tx *tx, struct mem_lease *l,
                                        struct attempt_end how, int64_t *count);
/* The last moment at which a call of the lease is within its timeout; 0: it holds none. */
int64_t lease_deadline(const struct mem_db *db, const struct mem_lease *l);
/* Calls of the lease that are past their timeout end so; their ids go into `q`. */
MUST_USE enum pawl_status lease_time_out(struct mem_tx *tx, struct mem_lease *l, struct extend *q);

/* ---- Operations -------------------------------------------------------------------------------
 */

enum pawl_status mem_accept(struct mem_tx *tx, struct accept *q);
enum pawl_status mem_claim(struct mem_tx *tx, struct claim *q);
enum pawl_status mem_finish(struct mem_tx *tx, struct finish *q);
enum pawl_status mem_extend(struct mem_tx *tx, struct extend *q);
enum pawl_status mem_cancel(struct mem_tx *tx, struct by_id *q);
enum pawl_status mem_retry(struct mem_tx *tx, struct by_id *q);
enum pawl_status mem_move(struct mem_tx *tx, struct by_id *q);
/* What a retry does, once it is known to be legal. */
MUST_USE enum pawl_status call_retry(struct mem_tx *tx, struct mem_call *c);
enum pawl_status mem_object(struct mem_tx *tx, struct object_op *q);
enum pawl_status mem_unblock(struct mem_tx *tx, struct unblock *q);
enum pawl_status mem_pause(struct mem_tx *tx, struct pause *q);
enum pawl_status mem_join(struct mem_tx *tx, struct node_op *q);
/* Does the registry say that this process is no longer the node? */
bool mem_node_replaced(const struct mem_db *db, struct bytes node, struct bytes boot);
enum pawl_status mem_beat(struct mem_tx *tx, struct node_op *q);
enum pawl_status mem_leave(struct mem_tx *tx, struct node_op *q);
enum pawl_status mem_bury(struct mem_tx *tx, struct node_op *q);
enum pawl_status mem_drain(struct mem_tx *tx, struct node_op *q);
enum pawl_status mem_lead(struct mem_tx *tx, struct lead *q);
void mem_leaders_init(struct mem_db *db);
/* The node, under this boot or under every other one, leads nothing any more. */
MUST_USE bool leaders_vacate(struct mem_db *db, struct bytes node, struct bytes boot,
                             bool same_boot);
enum pawl_status mem_sweep(struct mem_tx *tx, struct sweep *q);
enum pawl_status mem_gc(struct mem_tx *tx, struct gc *q);
MUST_USE enum pawl_status mem_requeue(struct mem_tx *tx, struct requeue *q);

/* ---- Reads (read.c, read_key.c) ---------------------------------------------------------------
 */

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

/* Tries that are shown: errors, timeouts, refusals, losses. */
bool attempt_shown(const struct attempt_row *t);
void blobs_free(struct blob *b, const struct blob *until);

#endif
