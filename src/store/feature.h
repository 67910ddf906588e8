/*
 * feature.h - features: tables and rules beside the ledger that commit in the same transaction as
 * calls.
 *
 * A feature (src/feature) is a struct of functions over tables of its own, written once for all
 * engines. exec hands the features to the store when it opens a handle (store_conf.features); the
 * store knows none of them by name. What changes a feature's tables is an operation of kind
 * OP_FEATURE, which shares a commit with operations of every other kind. The functions below run on
 * the thread of the handle, inside its transaction, and see what earlier operations of the group
 * decided.
 *
 * Rules for features (src/feature/README.md says why):
 * - Decide before the first write: an operation that is refused has written nothing.
 * - Answer your own repeat: a group whose commit was lost runs again, so insert rows once
 *   (ON CONFLICT DO NOTHING) and answer what is stored.
 * - Order of locks: leases, ids that are known beforehand, keys, a feature's rows (by table, then
 * by key), ids that only apply() can know, new rows. What is relied on is read in a new statement
 *   after the lock.
 * - Lock only rows that no transaction of an application can hold.
 *
 * Reading without changing anything is store_look() (store/store.h), whose function may call
 * feature_query(), feature_now() and feature_arena().
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_FEATURE_H
#define STORE_FEATURE_H

#include "base/text.h"
#include "store/ledger/stmt.h"
#include "store/store.h"

struct ledger;

/* A watched call that left a lease, or ended. `watch`: the bits with which it is watched. */
struct moved {
    int64_t seq;
    struct bytes id;
    enum pawl_state from, to; /* to PENDING: its attempt ended, and it will be retried */
    unsigned watch;
};

/* A row that an application wrote into the inbox in SQL (PostgreSQL), for the feature whose name is
 * its kind. */
struct inbox_row {
    struct bytes what;   /* to be done, in words of the feature */
    struct bytes name;   /* of the thing */
    struct bytes text;   /* absent: none */
    struct bytes client; /* the user of the session */
};

/* Functions that are NULL are not called. Each returns another status than OK only if the whole
 * transaction must be undone. */
/* An attempt of a flow is about to end: the verdict of the model, and what is to become of it. */
struct flow_end {
    int64_t seq;
    struct bytes id;
    enum pawl_state state; /* PENDING: it will be retried, or goes on later */
    enum ending how;
    struct bytes error;           /* with an error, a timeout, a refusal, a loss */
    struct attempt_counts counts; /* after this attempt */
    int64_t claimed_us;           /* when the attempt was claimed */
    bool begun; /* its handler may have begun; false: it was claimed and given back, or taken back,
                   before that */
    /* answer */
    enum flow_next {
        FLOW_AS_IS,
        FLOW_AGAIN, /* pending and due now, with no attempts counted */
        FLOW_ENDS,  /* with `state` and `error`; what it was to send is not sent, its object keeps
                       its  state */
    } next;
};

/* The lane of a call, for a feature that holds calls back by it. */
struct gated_lane {
    struct bytes queue, type;
    struct bytes gate; /* absent: none */
};
/* How many calls of a lane a claim may take. */
struct gate_pass {
    struct gated_lane lane;
    size_t n;
    int64_t next_us; /* with n 0: ask again then; 0: when a call leaves, or the rules change */
    void *of;        /* the feature's own, for the transaction */
};

struct feature {
    const char *name;
    unsigned watch; /* WATCH_... bits of calls (call_spec.watch, or set by the claim that holds
                       them) that it wants to hear of in moved() */
    /* A group has n operations of this feature: lock and read the rows they need, in the order of
     * locks above, with as few statements as possible. After leases and keys of the group are
     * locked, before any operation decides. */
    enum pawl_status (*load)(struct ledger *d, struct op *const *ops, size_t n,
                             struct pawl_err *err);
    /* Decide one operation, in its turn. The fence has been checked. A refusal is in op->status and
     * op->err. */
    enum pawl_status (*apply)(struct ledger *d, struct op *op, struct pawl_err *err);
    /* The fence of an operation does not hold, perhaps because the operation itself was stored
     * before and let go of the call: answer that, with op->feature.repeated; else it is LOST_LEASE.
     */
    enum pawl_status (*former)(struct ledger *d, struct op *op, struct pawl_err *err);
    /* Watched calls moved. Called before a claim of the group looks for calls, and before the group
     * is written, until nothing moves any more; more than MOVED_ROUNDS_MAX rounds end the process.
     * Never called while another function of a feature runs. */
    enum pawl_status (*moved)(struct ledger *d, const struct moved *v, size_t n,
                              struct pawl_err *err);
    /* These calls were removed after their retention: remove what belongs to them. */
    enum pawl_status (*forget)(struct ledger *d, const int64_t *seqs, size_t n,
                               struct pawl_err *err);
    /* gc runs a step: remove up to `max` rows of yours that need not be kept any more. *more is set
     * if there are others. Of ended calls you hear in forget(). */
    enum pawl_status (*gc)(struct ledger *d, int max, bool *more, struct pawl_err *err);
    /* Take over a row of the inbox, in the transaction of a claim or sweep. A refusal is in *why,
     * for inbox_conflicts; else the row is removed. */
    enum pawl_status (*inbox)(struct ledger *d, const struct inbox_row *r, struct pawl_err *why,
                              struct pawl_err *err);
    /* Copy an operation's question and answer place (ctx), with all it points to, into `a`: for a
     * caller that may leave before the answer. NULL without memory. */
    void *(*copy)(struct arena *a, const void *ctx);

    /* ---- Gates: one feature has these ---- */

    /* Its rules have this revision: read them if *memory, NULL at first, has those of another one.
     * What a claim reads stays so until its transaction ends. gates_free() frees *memory. */
    enum pawl_status (*gates_read)(struct ledger *d, int64_t rev, void **memory,
                                   struct pawl_err *err);
    void (*gates_free)(void *memory);
    /* Does a rule hold for the calls of this lane? */
    bool (*gated)(const void *memory, const struct gated_lane *lane);
    /* The gate of calls with this key in this queue and of this type: what of the rules that hold
     * for keys holds for them. Empty: nothing does; absent without memory. */
    struct bytes (*gate_of)(const void *memory, struct arena *a, const struct gated_lane *lane,
                            struct bytes key);
    /* For readers: may no call of this lane, for which a rule holds, begin now? */
    enum pawl_status (*gate_shut)(struct ledger *d, const void *memory,
                                  const struct gated_lane *lane, bool *out, struct pawl_err *err);
    /* A claim wants up to p->n calls of p->lane, for which a rule holds: how many may it take? It
     * takes them under the locks that this takes; none of these is waited for. */
    enum pawl_status (*gate_ask)(struct ledger *d, void *memory, struct gate_pass *p,
                                 struct pawl_err *err);
    /* It has taken these, at most p->n. They leave their lease in moved(), with WATCH_LIMIT. */
    enum pawl_status (*gate_took)(struct ledger *d, const struct gate_pass *p, const int64_t *seqs,
                                  size_t n, struct pawl_err *err);

    /* ---- Flows: one feature has these ---- */

    /* Attempts of these flows may end in this transaction, or they are cancelled or retried: lock
     * and read the feature's rows of them. By seq, each flow once in a transaction, before the
     * functions below name it. */
    enum pawl_status (*flows_ending)(struct ledger *d, const int64_t *seqs, size_t n,
                                     struct pawl_err *err);
    /* Decide what follows. It writes nothing: what is to be written is written in moved(). A finish
     * may ask twice, with a result and then with what became of it; the last answer counts. */
    enum pawl_status (*flow_end)(struct ledger *d, struct flow_end *q, struct pawl_err *err);
    /* A cancel of a flow that has not ended. It stays PROCESSING. */
    enum pawl_status (*flow_cancel)(struct ledger *d, int64_t seq, struct pawl_err *err);
    /* An ended flow is about to be pending again: it will go on as a flow. A refusal is in
     * op->status and op->err. */
    enum pawl_status (*flow_retry)(struct ledger *d, int64_t seq, struct op *op,
                                   struct pawl_err *err);
    /* For the owner of a lease that was claimed then and holds these flows: set stop[i] for those
     * that are to stop, because they were cancelled since, or are out of their time. A pass that
     * undoes is not told of what it undoes for. */
    enum pawl_status (*flows_stop)(struct ledger *d, const int64_t *seqs, size_t n,
                                   int64_t claimed_us, bool *stop, struct pawl_err *err);
    /* For readers: what these flows wait for, which no lease holds. WAIT_NONE: it is not known. */
    enum pawl_status (*flows_shown)(struct ledger *d, const int64_t *seqs, size_t n,
                                    enum call_wait *out, struct pawl_err *err);
    /* Before gc removes ended calls that the feature watches (flows: if `watch` has WATCH_FLOW):
     * set keep[i] for those that have to stay for now. May be had by any feature. */
    enum pawl_status (*keep)(struct ledger *d, const int64_t *seqs, size_t n, bool *keep,
                             struct pawl_err *err);
};

/* ---- For the functions of a feature ---------------------------------------------------------- */

/* The transaction's time, its scratch memory (everything that was read lives as long as the
 * transaction), and the source of ids and random numbers. */
int64_t feature_now(const struct ledger *d);
struct arena *feature_arena(struct ledger *d);
const struct world *feature_world(const struct ledger *d);
/* Settings of the ledger that features need: how long ended calls are kept; the timeout of calls
 * without one, and the largest input (0: the model's), for calls that come in SQL. */
int64_t feature_retention(const struct ledger *d);
int64_t feature_call_timeout(const struct ledger *d);
size_t feature_input_max(const struct ledger *d);
/* Has the second half of this step of the schema run, so that no node of an older version is left?
 */
MUST_USE enum pawl_status feature_finished(struct ledger *d, int step, bool *out,
                                           struct pawl_err *err);
/* What this feature remembers in this transaction: `size` bytes in scratch, zeroed when they are
 * first asked for. NULL without memory. */
void *feature_memory(struct ledger *d, const struct feature *f, size_t size);

/* Run a query of ours, after the rows that features have added were written; what the group decided
 * about calls may not be written yet. *out is never NULL after OK. */
MUST_USE enum pawl_status feature_query(struct ledger *d, enum sql_name name,
                                        const struct led_params *p, struct led_rows **out,
                                        struct pawl_err *err);
/* The same for a statement that changes rows. *out_rows: how many; may be NULL. */
MUST_USE enum pawl_status feature_run(struct ledger *d, enum sql_name name,
                                      const struct led_params *p, int64_t *out_rows,
                                      struct pawl_err *err);

/* The values of one row, in the order of its kinds. */
union feature_value {
    int64_t i;
    struct bytes b;
};
/* How many rows the statement changes.
 * EXACT: one for each row that was added, because these rows are locked, or no other transaction
 *        can add them. They are written together with COMMIT.
 * NEW:   the same, unless another transaction has added such a row meanwhile; then the group is
 *        repeated. They are written before COMMIT, which costs a round trip.
 * ANY:   perhaps fewer. */
enum feature_count { FEATURE_ANY, FEATURE_EXACT, FEATURE_NEW };
/* Add a row to be written with the group: all rows of one statement in one round trip, in the order
 * in which their statements were first used. They are one statement, so no two of them may change
 * the same row: the second change of a row is a feature_run(), or follows feature_rows_write().
 * `kinds` (borrowed for ever) has a letter for each value: i number, z number or null for 0, t
 * text, b bytes (absent: null). Bytes are borrowed for the transaction. */
MUST_USE enum pawl_status feature_row(struct ledger *d, enum sql_name name, const char *kinds,
                                      const union feature_value *v, enum feature_count count,
                                      struct pawl_err *err);
/* Write the rows that were added so far: before the second change of one of them. */
MUST_USE enum pawl_status feature_rows_write(struct ledger *d, struct pawl_err *err);

/* Another transaction changed `what` first: the whole group is repeated. Returns BUSY. */
enum pawl_status feature_again(struct ledger *d, const char *what, struct pawl_err *err);
/* Calls may be due now that were not before: tell it with the answer of the operation that is being
 * decided, or that moved calls. */
void feature_brings(struct ledger *d);
/* Before the rules of gates change: no claim runs until the transaction ends, and none that runs
 * now is left. */
MUST_USE enum pawl_status feature_gates_lock(struct ledger *d, struct pawl_err *err);
/* Is it a call of this lane and key that is meant? An absent key: it has none. */
typedef bool feature_match_fn(const struct gated_lane *lane, struct bytes key, void *ctx);
/* The calls that leases hold open, and that `match` names, are watched with these bits from now on:
 * in *out, a column of their numbers, rising. For an operation that has no fence, before it locks
 * anything else. */
MUST_USE enum pawl_status feature_held_watch(struct ledger *d, unsigned marks,
                                             feature_match_fn *match, void *ctx, int64_t **out,
                                             size_t *out_n, struct pawl_err *err);

/* Run another operation inside this transaction, of any kind but CLAIM, HANDLER, SCRIPT and GC. It
 * takes effect, or is refused, like one of the group; its answer lives in scratch unless nested->a
 * is set. The calls that it ends are added to the `ended` of the operation that is being decided
 * (in moved(): of one that moved calls), and that operation's `brings` is set if calls may be due,
 * so that waiters and workers are told. */
MUST_USE enum pawl_status feature_nested(struct ledger *d, struct op *nested, struct pawl_err *err);

/* ---- Calls as the group sees them ------------------------------------------------------------ */

/* A call with what earlier operations of the group decided. Strings live as long as the
 * transaction. */
struct feature_call {
    int64_t seq; /* 0: there is no such call */
    struct bytes id, key, queue, type;
    struct bytes error;    /* of one that has ended */
    enum pawl_state state; /* of a flow that waits: PROCESSING */
    bool flow, held;       /* held: by a lease */
    bool gone;             /* its retention is over: only id and state are known */
    int priority;
    int64_t run_at_us;
    int64_t run_until_us; /* its run_timeout passes then; 0: never, also after a retry that came
                             when it had passed */
};
/* Read these calls at once, so that feature_call_at() finds them in memory. */
MUST_USE enum pawl_status feature_calls_load(struct ledger *d, const int64_t *seqs, size_t n,
                                             struct pawl_err *err);
MUST_USE enum pawl_status feature_call_at(struct ledger *d, int64_t seq, struct feature_call *out,
                                          struct pawl_err *err);
/* The request of a call that is not gone, with its input; its needs are those of its user. It was
 * settled; what said when it is due or expires is not kept. */
MUST_USE enum pawl_status feature_call_spec(struct ledger *d, int64_t seq, struct call_spec *out,
                                            struct pawl_err *err);
MUST_USE enum pawl_status feature_call_named(struct ledger *d, struct bytes id,
                                             struct feature_call *out, struct pawl_err *err);

/* ---- Flows ----------------------------------------------------------------------------------- */

/* A flow is a call that has begun to take steps. From then on it is PROCESSING to everybody until
 * it ends, also while it waits and no lease holds it; only a worker that has NEED_STEPS gets it.
 * The first four act on the call that the fence of `op`, an OP_FEATURE, names. */

/* Later than every time: a flow that waits for an event alone. */
#define FLOW_NEVER_US TIME_LAST_US

/* It is a flow from now on, if it is not one yet; that is its first step. `version`: if it begins
 * now, only workers that have this version for its type get it from now on (needs.h); absent: every
 * worker that has NEED_STEPS. *out_cancel: a cancel was requested before, and that request is
 * removed. Refused, in op->status: STATE before the second half of the schema's step has run;
 * INVALID while a call before it in its run has not ended; FULL without a lane. */
MUST_USE enum pawl_status feature_flow_begin(struct ledger *d, struct op *op, struct bytes version,
                                             bool *out_cancel, struct pawl_err *err);
/* What the lease of the fence says. */
struct flow_claimed {
    int64_t at_us;
    struct bytes owner;   /* its worker, or else its node */
    struct bytes version; /* the one that the worker has for every type; absent: none, or several */
};
/* Read it. */
MUST_USE enum pawl_status feature_claimed(struct ledger *d, const struct op *op,
                                          struct flow_claimed *out, struct pawl_err *err);
/* A step of it is stored: attempts and losses count anew, and its timeout begins anew. */
MUST_USE enum pawl_status feature_flow_step(struct ledger *d, const struct op *op,
                                            struct pawl_err *err);
/* It leaves its lease, and waits until run_at_us or OP_WAKE. With a key it stays the first of the
 * key. moved() is told, flow_end() is not asked. */
MUST_USE enum pawl_status feature_flow_suspend(struct ledger *d, struct op *op, int64_t run_at_us,
                                               struct pawl_err *err);
/* How a flow ends. */
struct flow_end_as {
    enum pawl_state state; /* COMPLETED, FAILED, DEAD_LETTER, CANCELLED */
    struct bytes error;    /* FAILED, DEAD_LETTER */
    struct payload result; /* COMPLETED */
};
/* End a flow, wherever it is; one that has ended stays as it is, and what is no flow must not be
 * named. What its lease's owner says later
 * is LOST_LEASE. moved() is told. */
MUST_USE enum pawl_status feature_flow_end(struct ledger *d, int64_t seq, struct flow_end_as as,
                                           struct pawl_err *err);

#endif
