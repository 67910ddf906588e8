/*
 * op.h - what can be asked of a store: writes as operations that share a commit, and reads.
 *
 * Each operation is atomic and independent of the others in its commit; any number of them go into
 * one transaction (store_commit). Each has its question, an arena for its answer, and the answer.
 * They speak of calls, leases and nodes: rows, SQL text, begin and commit stay inside the engines.
 * Operations of one commit take effect in the order given: a later one sees what an earlier one
 * did.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_OP_H
#define STORE_OP_H

#include "base/arena.h"
#include "base/ident.h"
#include "model/call.h"

/* ---- Writes ---------------------------------------------------------------------------------- */

/* OP_ACCEPT: store calls. Known ids are answered from what is stored, without a write. */
struct accepted {
    enum pawl_status status; /* OK, CONFLICT (other content), GONE (past retention), FULL (lanes, or
                                the key's line), STATE (needs, before pawl migrate finish) */
    bool duplicate;
    int64_t line_full; /* FULL: so many calls are pending on its key; 0: no lane is left */
    struct call call;  /* as it is stored: the new call, the known one, or (GONE) id, state, times;
                          a duplicate has its input and result when .want_result */
};
struct accept {
    const struct call_spec *v; /* settled (call_spec_settle) */
    size_t n;
    bool atomic; /* all or none: on the first refusal nothing of this operation is stored, op.status
                    is that refusal and `refused` its index */
    bool want_result;     /* return input and result of duplicates */
    struct accepted *out; /* n, in the op's arena, made by the engine; the same id twice in v: the
                             later one is a duplicate or conflict of the earlier */
    size_t refused;
};

/* The stored state of an object; version 0: there is none. */
struct object_state {
    struct payload payload;
    int64_t version;
};

/* OP_CLAIM: lease due calls, best first: priority, then run_at, then seq, over all lanes served. A
 * call that has a key is followed by its run: the calls behind it in its line, in order. The
 * claimer chooses the token: repeating a claim whose answer was lost returns the same lease. */
struct claim {
    struct token token;
    struct bytes node, boot;    /* the owner: a process incarnation */
    struct bytes worker;        /* shown as the call's node; absent: the node is shown */
    const struct bytes *queues; /* n_queues 0: all */
    size_t n_queues;
    const struct bytes *types; /* n_types 0: all */
    size_t n_types;
    const struct bytes *has; /* capabilities (needs.h), settled: only calls that need no other */
    size_t n_has;
    int max;     /* 1..CLAIM_MAX */
    int run_max; /* calls of one key at most; 0: one */
    int max_any; /* once so many are taken, only calls of `quick` types are taken, and only those
                    in runs; 0: types make no difference */
    const struct bytes *quick; /* with max_any: types of which the claimer takes more than it has
                                  free slots, since each call takes a few milliseconds */
    size_t n_quick;            /* 0 with max_any: no type is quick */
    int width; /* how many of its calls the claimer runs at once; stored with the lease. Calls begin
                  in the lease's order, and only the first `width` that have not ended count as
                  begun, for readers and when the lease is reclaimed. 0: all of them */
    int64_t lease_us;    /* 0: the lease lives as long as its node beats */
    bool no_retry_alone; /* do not take calls that were lost before */
    struct bytes last; /* a queue whose calls come after those of the others, within each priority;
                          absent: none */
    struct bytes without; /* a queue that is not served, even if `queues` names it; with max_any its
                             types that are not quick are served; absent: none */
    /* answer */
    struct call *calls; /* n, with inputs; state PROCESSING; attempt counts before this one */
    struct object_state *states; /* n, set for the first call of each key; NULL: no call has a key
                                  */
    size_t n;
    int64_t until_us; /* 0 with lease_us 0 */
    bool more; /* a due call is left that this claim could have taken (with no_retry_alone, calls
                  lost before do not count), or the line of a key whose call on offer had expired */
    int64_t next_due_us; /* without `more`: the earliest run_at of what is not due yet; 0: none */
};

/* The `until_us` of a claim that has just taken its calls: a lease with an end does not outlive the
 * timeouts of its calls. A call behind another of its run has not begun and has no deadline. */
static inline int64_t claim_until(const struct claim *q)
{
    int64_t last_us = 0;
    for (size_t i = 0; i < q->n && q->until_us; i++)
        last_us = MAX(last_us, q->calls[i].position
                                   ? INT64_MAX
                                   : call_deadline(&q->calls[i].spec, q->calls[i].claimed_us));
    return MIN(q->until_us, last_us);
}

/* OP_FINISH: end attempts of one lease, all items together or none. op.status LOST_LEASE: the lease
 * is unknown, over, reclaimed, or does not name one of the calls; nothing was stored. A repeat of a
 * finish that was stored gets the answer of the first. Calls of one key must end in the order of
 * their run: else INVALID. When one does not complete, those behind it are RELEASEd with it. Only
 * RELEASE may name a call behind one that is still open: that call, and those behind it, go back to
 * the line. */
enum state_do { STATE_KEEP, STATE_SET, STATE_DELETE };
struct finish_item {
    int64_t seq; /* or 0 and: */
    struct bytes id;
    enum ending how;     /* not END_LOST */
    int64_t retry_in_us; /* ERROR: below 0 means the call's backoff. LATER: from now */
    struct payload result;
    struct bytes error;           /* at most ERROR_LEN_MAX */
    int64_t started_us;           /* when its handler began; 0: when it was claimed */
    const struct call_spec *send; /* settled; accepted in the same commit, with RESULT only */
    size_t n_send;
    enum state_do state_do;  /* of its object (type, key), when it completes; a call without a key:
                                INVALID */
    struct payload object;   /* SET: JSON or bytes */
    struct feature_op *with; /* NULL, or an operation of a feature that is stored if and only if the
                                item is stored now, with the item as its fence. It is decided before
                                anything of the item; if it is refused, the item ends as END_ERROR
                                with the text of the refusal, retried after the call's backoff, and
                                nothing of `with`, `send` and the state is stored */
    /* answer */
    int64_t version; /* of the object, with SET that was stored now; else 0 */
    int64_t seq_found;
    enum pawl_state state; /* FAILED with how RESULT: an id in `send` exists with other content */
    int64_t run_at_us;     /* with PENDING */
    int64_t finished_us;   /* with an ended state */
    struct attempt_counts counts; /* as they are now */
    struct bytes error_out;       /* what was stored as its error; absent for none */
    struct bytes queue; /* the call's; absent: the item was answered before. Borrowed from the
                           engine until its next commit */
    struct bytes type;  /* with queue, and borrowed like it */
    bool flow;          /* it has begun to take steps, so PENDING is shown as PROCESSING */
};
struct finish {
    struct token token;
    struct finish_item *v;
    size_t n;
    int64_t until_us; /* answer: when the lease ends; 0: no call of it is left, or it lives as long
                         as its node beats */
};

/* OP_EXTEND: move a lease's end. Calls past their timeout end as TIMEOUT; the lease keeps the
 * others, at most until the last of their deadlines. LOST_LEASE: it is over, or no call is left of
 * it. */
struct extend {
    struct token token;
    int64_t lease_us;
    int64_t until_us;        /* answer */
    struct bytes *cancelled; /* answer: ids of the lease's calls that have a cancel request */
    size_t n_cancelled;
    struct bytes *timed_out; /* answer: ids of calls that this operation ended as TIMEOUT; in
                                op.ended too when they will not be retried */
    size_t n_timed_out;
};

/* OP_CANCEL, OP_RETRY, OP_MOVE: by id. NOT_FOUND, GONE, STATE (`state` says which). OP_MOVE: BUSY
 * while a lease holds the call and has not begun it; its owner hands it back soon, or begins it. */
struct by_id {
    struct bytes id;
    int64_t run_at_us;  /* OP_MOVE; 0: unchanged */
    int priority;       /* OP_MOVE; PAWL_SAME: unchanged */
    struct bytes queue; /* OP_MOVE; absent: unchanged */
    bool only_pending;  /* OP_CANCEL: STATE instead of a cancel request when it is processing */
    /* answer */
    int64_t seq;
    enum pawl_state state; /* after the operation: CANCEL: CANCELLED, or PROCESSING with the cancel
                              request stored; RETRY: PENDING, PROCESSING for a flow (feature.h);
                              with STATE: the state that does not allow it */
};

/* OP_PAUSE: pause or resume a queue, which need not exist yet. */
struct pause {
    struct bytes queue;
    bool paused;
};

/* OP_OBJECT: write or delete an object's state from outside a call. BUSY: a lease holds the key; it
 * may be tried again when the lease has ended. STALE: the condition does not hold: the object has
 * another version than those named, or does not exist. NOT_FOUND: DELETE of an object that does not
 * exist. STATE: DELETE without `cancel` while calls of this type and key are pending. */
struct object_op {
    struct bytes type, key;
    enum state_do how;          /* SET or DELETE */
    struct payload state;       /* SET: JSON or bytes */
    int64_t if_version;         /* 0: any */
    const int64_t *or_versions; /* versions that are allowed besides if_version */
    size_t n_or_versions;
    bool if_any; /* it must exist, in any version */
    bool cancel; /* DELETE: pending calls of the key end cancelled, in op.ended too */
    int64_t version, updated_us, cancelled; /* answer; version: SET: the new one, STALE: the present
                                               one */
};

/* Does the write have a condition? */
static inline bool object_conditional(const struct object_op *o)
{
    return o->if_version || o->if_any;
}

/* Does its condition hold for an object of this version? 0: there is none. */
static inline bool object_fits(const struct object_op *o, int64_t version)
{
    if (!object_conditional(o))
        return true;
    bool fits = version && (o->if_any || o->if_version == version);
    for (size_t i = 0; i < o->n_or_versions; i++)
        fits |= version && o->or_versions[i] == version;
    return fits;
}

/* OP_UNBLOCK: free a key that an ended call blocks. NOT_FOUND: the key is unknown. STATE: it is not
 * blocked. */
struct unblock {
    struct bytes key;
    bool retry;      /* retry the call that blocks it, first in the line; else the next call goes on
                        offer */
    struct bytes id; /* answer: the call that blocked it */
};

/* OP_JOIN: enter the registry under a new boot id. What any other boot of this name held is
 * reclaimed first (counted as lost), and the roles that it held become free.
 * OP_BEAT: the heartbeat. LOST_LEASE when another boot has taken the name.
 * OP_LEAVE: leave the registry; what is still held is handed back uncounted, and the node's roles
 * become free.
 * OP_BURY: declare another node dead: reclaim what it holds, free its roles and mark it dead, but
 * only while its beat counter is still `beats`; STATE when it has moved.
 * OP_DRAIN: store whether the node is to take no new work, whichever boot has the name; NOT_FOUND.
 */
enum node_state { NODE_JOINING, NODE_ACTIVE, NODE_DRAINING };
struct node_op {
    struct bytes node, boot;
    struct bytes host, version; /* JOIN */
    struct bytes address;       /* JOIN: where it answers HTTP; absent: nowhere */
    struct bytes roles, queues; /* JOIN: names with newlines between them; absent: no roles, all
                                   queues */
    struct bytes has;           /* JOIN: capabilities, as needs_text() writes them */
    enum node_state state;      /* BEAT; after a join it is JOINING */
    int slots, busy;            /* JOIN, BEAT */
    int64_t connections;        /* JOIN, BEAT: of HTTP clients */
    int64_t cpu_milli;          /* JOIN, BEAT: thousandths of a core */
    int64_t memory;             /* JOIN, BEAT: bytes */
    bool drain;                 /* DRAIN */
    int64_t beats;              /* BURY */
    bool fail_lost;             /* JOIN, BURY: reclaim_action = fail */
    int64_t reclaimed;          /* answer: calls reclaimed or handed back */
};

/* OP_LEAD: ask for a role that one node at a time holds. The asker gets it when it is free (its
 * lease is over by the database's clock), and keeps it when it held it before; each new holder
 * raises the epoch. With `resign` the asker gives it up. LOST_LEASE: the registry has the asker's
 * name under another boot, or dead. NOT_FOUND: there is no such role. What a leader does must be
 * safe to do twice: a lease ends by a clock, and its former holder may not know it yet. */
struct lead {
    struct bytes role, node, boot;
    int64_t lease_us;
    bool resign;
    /* answer */
    bool ours;
    int64_t epoch, until_us; /* of the present holder; until_us 0: the role is free */
};

/* OP_SWEEP: one bounded step of what no request triggers: pending calls past expires_at end
 * `expired`, leases past their `until` are reclaimed (counted as lost), delayed calls with a key
 * whose time has come join its line. */
struct sweep {
    int max;
    bool fail_lost;
    int64_t expired, reclaimed, cancelled, joined; /* answer */
    int64_t next_us; /* answer: when the next expiry, lease end or joining is due; 0: none */
    bool more;       /* answer: something is left that is due now */
    int64_t version; /* answer: what store_version() of this handle would have said; 0: it was not
                        asked, because the engine answers that without a statement, or a transaction
                        was needed */
};

/* OP_GC: one bounded step: ended calls past keep_until become tombstones, tombstones past
 * forget_at are removed. Never a call that has not ended, or that blocks its key. With
 * `ended_before_us` it removes calls that ended before that instead, by seq, and no tombstones: the
 * asker chooses the moment once, and repeats with after_seq until `more` is false. */
struct gc {
    int max;
    int64_t ended_before_us; /* 0: those past keep_until */
    int64_t after_seq;       /* with ended_before_us: only calls with a higher seq */
    bool archive;            /* what is removed is copied into the archive, in the same commit */
    /* answer */
    int64_t removed, forgotten;
    int64_t next_seq; /* with ended_before_us and `more`: the next after_seq; else 0 */
    bool more;
};

/* OP_REQUEUE: one bounded step: end the leases that were claimed before a moment. Their calls are
 * reclaimed (counted as lost), whether or not the owner beats; a later finish of the owner is
 * LOST_LEASE. */
struct requeue {
    int max;                   /* leases */
    int64_t claimed_before_us; /* chosen once by the asker, by the database's clock */
    bool fail_lost;
    int64_t leases, reclaimed; /* answer: leases ended, calls reclaimed */
    bool more;                 /* answer: such a lease is left */
};

/* OP_FEATURE: an operation of a feature (store/feature.h), which has tables of its own. INVALID:
 * the engine keeps calls only. LOST_LEASE: the fence does not hold, and nothing was stored.
 * Everything else is decided by the feature. */
struct feature;
struct feature_op {
    const struct feature *of;
    void *ctx; /* question and answer, of a type that the feature knows; what the answer names is in
                  the operation's arena. The caller of exec_do() reads the answer here, because it
                  may be a copy (feature.copy) */
    struct token token; /* with `seq` the fence: this lease holds this call open, else LOST_LEASE.
                           None: no fence */
    int64_t seq;
    struct bytes id; /* with `token` and `seq` 0: the call's id; `seq` is set then */
    /* answer */
    bool brings;   /* calls may be due now that were not before */
    bool timed;    /* what the feature does by the clock may be due earlier than before */
    bool repeated; /* an earlier operation had stored this answer; this one stored nothing */
};

/* OP_WAKE: pending calls that are due later are due now; others stay as they are, without an error.
 * It never waits for a key that another transaction has locked: then it leaves a key note, and the
 * call is due as soon as the key has been looked at (a few milliseconds). */
struct wake {
    const int64_t *seqs;
    size_t n;
};

/* OP_HANDLER: a handler's own SQL and its end in one transaction: an OP_FINISH or an OP_FEATURE.
 * The engine opens the transaction and calls `run` on the store thread with a handle for SQL. `run`
 * returns true to apply `end` together with the SQL, false to roll the SQL back first and apply
 * `end` alone. If `end` is refused (LOST_LEASE) the SQL is rolled back as well, and so it is if
 * `end` turns out to be a repeat (feature_op.repeated): then the SQL was committed before. It is
 * the only operation of its commit, and is never repeated, because the handler cannot run again
 * here. The answer of `end` (its status, what ended) is the answer of the handler's operation;
 * `end` has its own question and the answers of its kind. */
struct sql_tx;
struct op;
struct handler_op {
    bool (*run)(void *ctx, struct sql_tx *tx);
    void *ctx;
    struct op *end;     /* read after run returns; it uses the arena of the handler's operation */
    bool committed_sql; /* answer: the SQL was committed */
};
/* One statement inside OP_HANDLER's run, on the store thread. Rows live in `a`. */
struct sql_query {
    const char *sql;
    const struct pawl_value *params;
    size_t n_params;
    int64_t deadline_us; /* world_mono; BUSY when it has passed */
};

/* OP_SCRIPT: run statements of the application (a module's CREATE TABLE IF NOT EXISTS). */
struct script {
    struct bytes sql;
};

/* All operations, each with its name in traces and metrics. */
#define OP_MAP(X)                                                                                  \
    X(ACCEPT, accept)                                                                              \
    X(CLAIM, claim)                                                                                \
    X(FINISH, finish)                                                                              \
    X(EXTEND, extend)                                                                              \
    X(CANCEL, cancel)                                                                              \
    X(RETRY, retry)                                                                                \
    X(MOVE, move)                                                                                  \
    X(PAUSE, pause)                                                                                \
    X(OBJECT, object)                                                                              \
    X(UNBLOCK, unblock)                                                                            \
    X(JOIN, join)                                                                                  \
    X(BEAT, beat)                                                                                  \
    X(LEAVE, leave)                                                                                \
    X(BURY, bury)                                                                                  \
    X(DRAIN, drain)                                                                                \
    X(LEAD, lead)                                                                                  \
    X(SWEEP, sweep)                                                                                \
    X(GC, gc)                                                                                      \
    X(REQUEUE, requeue)                                                                            \
    X(HANDLER, handler)                                                                            \
    X(SCRIPT, script)                                                                              \
    X(FEATURE, feature)                                                                            \
    X(WAKE, wake)

#define OP_ENUM(name, text) OP_##name,
enum op_kind { OP_MAP(OP_ENUM) OP_COUNT };
#undef OP_ENUM
/* Its name in traces and metrics; "?" for a number that is no operation. */
const char *op_name(enum op_kind kind);

/* An attempt whose owner died, or that was reclaimed after its timeout; for the log. */
struct lost_attempt {
    struct bytes id, type, error;
    bool late;             /* it was reclaimed after its timeout */
    int attempt_no;        /* from 1 */
    enum pawl_state state; /* of its call, after this operation */
};

struct op {
    enum op_kind kind;
    struct arena *a; /* borrowed: the answer lives here. Not used by another thread meanwhile */
    union {
        struct accept accept;
        struct claim claim;
        struct finish finish;
        struct extend extend;
        struct by_id by_id;
        struct pause pause;
        struct object_op object;
        struct unblock unblock;
        struct node_op node;
        struct lead lead;
        struct sweep sweep;
        struct gc gc;
        struct requeue requeue;
        struct handler_op handler;
        struct script script;
        struct feature_op feature;
        struct wake wake;
    };
    enum pawl_status status; /* answer: OK, or why this operation did nothing */
    struct pawl_err err;     /* answer, with a status that is not OK */
    struct bytes *ended; /* answer, in the arena: ids of calls that ended as a side effect (expired,
                            cancelled by a cancel request, dead-lettered by a loss), so that their
                            waiters can be told */
    size_t n_ended;
    bool brings; /* answer: a feature did more in this commit than the operation says: calls may be
                    due now that were not, or `ended` has calls of its own */
    bool timed;  /* answer: what features do by the clock may be due earlier than before */
    struct lost_attempt *lost; /* answer, in the arena: the first LOST_TOLD_MAX of n_lost */
    size_t n_lost;
};

/* Copy the question and everything it points to into `a`, where its answer will live too: for an
 * operation that may be answered after its caller has returned. False without memory. Not for
 * OP_HANDLER. */
MUST_USE bool op_copy(struct arena *a, const struct op *op, struct op *out);

/* Clear an earlier answer: status OK, and nothing ended. */
void op_clear(struct op *op);

/* Answer BUSY with this text, and clear an earlier answer: the operation was not tried, or not to
 * its end. */
void op_refuse(struct op *op, const struct pawl_err *why);

/* For engines: add one to op->lost, of which the first LOST_TOLD_MAX are kept. The texts are
 * copied. OK, NO_MEMORY. */
MUST_USE enum pawl_status op_lost(struct op *op, const struct lost_attempt *one,
                                  struct pawl_err *err);

/* ---- Reads ----------------------------------------------------------------------------------- */

enum { WITH_INPUT = 1, WITH_RESULT = 2 };

/* store_get: out[i] is the call ids[i]; found[i] is OK, NOT_FOUND, or GONE (then only id, state and
 * times are set). */
struct get {
    const struct bytes *ids;
    size_t n;
    unsigned with;
    enum pawl_status *found; /* answer: n, in the arena */
    struct call *out;        /* answer: n, in the arena */
};

/* store_archived: the copy that OP_GC with `archive` keeps of a call. It does not have claimed_us,
 * expires_us and keep_until_us. */
struct archived {
    struct call call;
    int64_t archived_us;
};

/* store_list: newest first (seq falling), every filter given must hold. */
struct query {
    enum pawl_state state; /* 0: all */
    struct bytes queue, type, method, key, parent, caller, client, tag_name, tag_value;
    int64_t since_us, until_us; /* created in [since, until); 0: open */
    int64_t before_seq;         /* 0: from the newest */
    int limit;                  /* 1..LIST_MAX */
    unsigned with;
};
struct page {
    struct call *v;
    size_t n;
    int64_t next_before; /* the next before_seq, also when n is below the limit; 0: that was all */
};

struct attempt {
    int attempt_no;
    enum ending how; /* ERROR, TIMEOUT, REFUSE, LOST */
    struct bytes error, node;
    int64_t started_us, finished_us;
};
struct attempts {
    struct attempt *v; /* oldest first, the last ATTEMPTS_SHOWN_MAX, of every retry */
    size_t n;
};

/* store_object: NOT_FOUND when the key has no state of this type. */
struct object {
    struct bytes type, key;
    struct payload state;
    int64_t version, updated_us;
    int64_t pending; /* calls of this type and key that no lease holds */
};

/* store_keys: keys on which a call waits or runs, or that are blocked; by name. */
struct key_query {
    struct bytes after; /* absent: from the first */
    bool blocked;       /* only those */
    int limit;          /* 1..LIST_MAX */
};
struct key_row {
    struct bytes key, head; /* head: the id of the call that runs, blocks, or is next */
    enum pawl_state head_state;
    enum call_wait waiting_for; /* of the head */
    bool blocked;
    int64_t pending;
    int64_t since_us; /* blocked: since when; else when the head was accepted */
};
struct key_rows {
    struct key_row *v;
    size_t n;
    struct bytes next; /* the next `after`, also when n is below the limit; absent: that was all */
};

struct queue_row {
    struct bytes queue;
    bool paused;
    int64_t pending, due, processing; /* up to COUNT_MAX */
    int64_t waiting;                  /* flows that no lease holds; they are in no other count */
    int64_t oldest_due_us;            /* run_at of the longest-due call; 0: none */
};
struct queue_rows {
    struct queue_row *v; /* by name; every queue that was ever submitted to or paused */
    size_t n;
};

struct node_row {
    /* as struct node_op has them */
    struct bytes node, boot, host, version, address, roles, queues, has;
    bool dead;
    enum node_state state;
    bool drain; /* a request is stored that it takes no new work */
    int slots, busy;
    int64_t beats, started_us, beat_us;
    int64_t connections, cpu_milli, memory;
};
struct node_rows {
    struct node_row *v;
    size_t n;
};

/* store_leaders: every role, by name. */
struct leader_row {
    struct bytes role, node, boot; /* node, boot absent: it is free */
    int64_t epoch;                 /* how many holders it has had */
    int64_t acquired_us, until_us; /* 0: it is free */
};
struct leader_rows {
    struct leader_row *v;
    size_t n;
};

/* store_cancel_requests: held calls that have a cancel request. */
struct cancel_requests {
    int64_t *seqs;
    size_t n;
};

struct schema {
    int version, wanted, min_version; /* version 0: empty database */
    bool finish_due;                  /* a finish half has not run yet */
};

/* One step of the schema as SQL, for an operator who runs it by hand. */
struct step {
    int number;
    const char *word;   /* "ledger" */
    const char *expand; /* may run while nodes of an older version work */
    const char *finish; /* runs when no such node is left; "" when there is nothing to finish */
};
struct steps {
    struct step *v; /* by number, from 1 */
    size_t n;
};

/* The database's own roles, for `migrate grants`; NULL: leave that one out. */
struct roles {
    const char *app;     /* submits, and reads what it submitted; it may use no table */
    const char *monitor; /* reads everything but inputs, results, errors, states and tags */
    const char *admin;   /* runs nodes: everything but DDL, which is the owner's */
};

/* A copy of the whole database as a file. */
struct backup {
    const char *path; /* a file that does not exist yet; created with mode 0600 */
    /* Called repeatedly with the pages copied and the pages in all; may be NULL. */
    void (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx;
};

/* What an engine reports about the health of its database: its version, its isolation level,
 * settings that weaken a promise, a pooler in between, sizes. BAD: promises do not hold, or soon
 * will not. SKIP: this account may not look, so nothing is known; it does not change the verdict.
 */
enum finding_level { FINDING_OK, FINDING_SKIP, FINDING_WARN, FINDING_BAD };
struct finding {
    enum finding_level level;
    const char *name; /* "journal_mode" */
    const char *text; /* one line; what to do when it is not OK */
};
struct findings {
    struct finding *v;
    size_t n;
};

#endif
