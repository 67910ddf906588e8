/*
 * store.h - what every storage engine promises, and the checked functions that other rooms call.
 *
 * A `struct store` is one connection. It is used by one thread at a time, by default the store
 * thread that opened it; opening several on one database is normal. Other rooms call store_*(),
 * which checks the arguments, calls the slot and checks the answer, so that every engine passes the
 * same checks.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdatomic.h>

#include "base/world.h"
#include "store/op.h"

struct store;

/* HASTY: a writer that gets BUSY at once (store_blocked) instead of waiting when another
 * application's transaction has locked a row; another thread then does that write. DRIVER_ONLY: a
 * connection for tables that are not the ledger's; it touches none of the ledger's. Where the
 * engine has STORE_DRIVEN its handle begins with a `struct ledger`, of which only the driver is
 * used. */
enum store_role { STORE_WRITER, STORE_READER, STORE_HASTY, STORE_DRIVER_ONLY };

/* Borrowed by open for the call; strings are copied. */
struct store_conf {
    const char *url;    /* "sqlite:PATH", "mem:NAME", or a wrapped one: "trace+sqlite:PATH" */
    const char *schema; /* NULL: "pawl"; letters, digits and _, at most 32, a letter first */
    enum store_role role;
    const struct world *world; /* NULL: world_real; must outlive the store */
    int64_t retention_us, remember_us;
    int64_t key_pending_max; /* calls that may wait on one key; 0: no limit */
    int64_t call_timeout_us; /* of calls without a timeout whose text comes in SQL and is read by a
                                feature; 0: the model's default */
    size_t input_len_max;    /* of these calls; 0: INPUT_LEN_MAX */
    int64_t retry_max_us;    /* the longest pause before connecting again; 0: the engine's default
                              */
    int64_t lifetime_us; /* a connection older than that is replaced between two uses; 0: never */
    int64_t idle_us;     /* the server ends a transaction that was idle for so long; 0: the engine's
                            default */
    const struct feature *const *features; /* (store/feature.h), which the handle tells of calls
                                              that moved or are gone; they outlive it */
    size_t n_features;
};

enum {
    STORE_ONE_WRITER = 1, /* one connection writes at a time: heartbeats are part of the group, and
                             handler SQL delays all other writes */
    STORE_DURABLE = 2,    /* its data survives the process */
    STORE_SHARED = 4,     /* other handles may write to it: poll `version` */
    STORE_HINTS = 8,      /* processes can notify each other: `hint` */
    STORE_DRIVEN = 16,    /* its handle begins with a `struct ledger` (store/ledger) */
};

/* What a notification to the other processes is about: work that may be claimed; calls that have
 * ended; nodes that joined, left, died or are to drain, and roles that became free; schedules that
 * may be due earlier than before. */
enum { HINT_WORK = 1, HINT_ENDED = 2, HINT_NODES = 4, HINT_TIMES = 8, HINT_ALL = 15 };
struct hint {
    unsigned tell;    /* HINT_..., 0: nothing */
    int64_t until_us; /* monotonic: wait no longer */
    int wake_fd;      /* stop waiting when it is readable; -1: none */
    unsigned heard;   /* answer: HINT_...; all of them after the connection was lost */
};

/* How store_look() reads. */
enum store_look {
    LOOK_SNAPSHOT, /* all statements see the database as it was at one moment */
    LOOK_ALONE, /* one statement, without a transaction around it; feature_now() is 0, except with
                   the clock of a test */
};
/* What store_look() calls (store/feature.h). */
struct ledger;
typedef enum pawl_status feature_look_fn(struct ledger *d, void *ctx, struct pawl_err *err);

struct store_ops {
    const char *name; /* "sqlite" */
    unsigned traits;

    /* Open a connection; conf was checked by store_open(). */
    enum pawl_status (*open)(const struct store_conf *conf, struct store **out,
                             struct pawl_err *err);
    void (*close)(struct store *s);

    /* Bring the schema up to date under a lock, so that two processes may start together. `finish`
     * also runs the halves that must wait until no node of an older version is left. */
    enum pawl_status (*migrate)(struct store *s, bool finish, struct pawl_err *err);
    /* Which version the schema has, and which this program wants. */
    enum pawl_status (*schema)(struct store *s, struct schema *out, struct pawl_err *err);

    /* Commit all n operations in one durable transaction. OK: committed; v[i]->status answers each.
     * Any other status: nothing was committed (UNKNOWN: perhaps it was), and the answers mean
     * nothing. One bad operation must show as its own status if the engine can tell which it is; if
     * not, store_commit() halves the group. */
    enum pawl_status (*commit)(struct store *s, struct op *const *v, size_t n,
                               struct pawl_err *err);

    /* Reads: answers live in `a`. The contract of each is at its struct in op.h. */
    enum pawl_status (*get)(struct store *s, struct arena *a, struct get *g, struct pawl_err *err);
    enum pawl_status (*list)(struct store *s, struct arena *a, const struct query *q,
                             struct page *out, struct pawl_err *err);
    /* NOT_FOUND, GONE. */
    enum pawl_status (*attempts)(struct store *s, struct arena *a, struct bytes id,
                                 struct attempts *out, struct pawl_err *err);
    /* The newest copy with this id. NOT_FOUND. NULL: it keeps no archive. */
    enum pawl_status (*archived)(struct store *s, struct arena *a, struct bytes id,
                                 struct archived *out, struct pawl_err *err);
    /* NOT_FOUND. */
    enum pawl_status (*object)(struct store *s, struct arena *a, struct bytes type,
                               struct bytes key, struct object *out, struct pawl_err *err);
    enum pawl_status (*keys)(struct store *s, struct arena *a, const struct key_query *q,
                             struct key_rows *out, struct pawl_err *err);
    enum pawl_status (*queues)(struct store *s, struct arena *a, struct queue_rows *out,
                               struct pawl_err *err);
    enum pawl_status (*nodes)(struct store *s, struct arena *a, struct node_rows *out,
                              struct pawl_err *err);
    enum pawl_status (*leaders)(struct store *s, struct arena *a, struct leader_rows *out,
                                struct pawl_err *err);
    enum pawl_status (*cancel_requests)(struct store *s, struct arena *a,
                                        struct cancel_requests *out, struct pawl_err *err);
    /* Call `look` for reading (store/feature.h). NULL: the engine keeps calls only. */
    enum pawl_status (*look)(struct store *s, enum store_look how, feature_look_fn *look, void *ctx,
                             struct pawl_err *err);
    /* The database's clock. */
    enum pawl_status (*now)(struct store *s, int64_t *out_us, struct pawl_err *err);
    /* A number that differs from the last answer when another connection may have committed since.
     * Cheap enough to ask every few milliseconds. */
    enum pawl_status (*version)(struct store *s, int64_t *out, struct pawl_err *err);
    /* Notify the other processes, then wait for a notification of one of them, on a handle that is
     * used for nothing else. A notification has no content besides HINT_... and may be lost, so its
     * receiver also polls `version`, only less often. STATE: notifications do not get through here,
     * and will not. NULL: the engine has none. */
    enum pawl_status (*hint)(struct store *s, struct hint *h, struct pawl_err *err);
    /* Maintenance that must not delay the writer (SQLite: checkpoint), on a separate connection.
     * NULL: nothing to do. */
    enum pawl_status (*tend)(struct store *s, struct pawl_err *err);

    /* The schema's steps, with table names according to conf->schema. Opens no connection. NULL:
     * there are none. */
    enum pawl_status (*steps)(const struct store_conf *conf, struct arena *a, struct steps *out,
                              struct pawl_err *err);
    /* Check the database's health: changes nothing, takes a few seconds at most. NULL: no checks.
     */
    enum pawl_status (*doctor)(struct store *s, struct arena *a, struct findings *out,
                               struct pawl_err *err);

    /* SQL that grants these roles of the database the rights they need and no others; table names
     * according to conf->schema. Opens no connection. NULL: the engine has no roles. */
    enum pawl_status (*grants)(const struct store_conf *conf, const struct roles *roles,
                               struct arena *a, const char **out, struct pawl_err *err);
    /* Run the SQL of `grants`, in one transaction where that is possible. INVALID for a role that
     * does not exist, and for an account that may not grant; STATE for a schema that is older than
     * this program's. NULL together with `grants`. */
    enum pawl_status (*grant)(struct store *s, const char *sql, struct pawl_err *err);
    /* Copy the database as it is at one moment, while other connections use it. OK: the copy is
     * synced and checked; with any other status the file has been removed. NULL: the database is
     * not a file, and is copied with its own tools. */
    enum pawl_status (*backup)(struct store *s, const struct backup *b, struct pawl_err *err);

    /* One statement of the application inside OP_HANDLER. */
    enum pawl_status (*sql)(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                            struct pawl_rows *out, struct pawl_err *err);
};

/* Every engine's struct begins with this. */
struct store {
    const struct store_ops *ops;
    bool hasty; /* STORE_HASTY; set by store_open() */
    /* world_mono: when a commit was sent that has no answer yet; 0: none. Set by the engine's
     * thread (store_commits), read by any (store_committing). */
    atomic_int_least64_t commit_us;
};
/* For engines whose commits may wait for another server, such as a synchronous standby: a commit
 * was sent, or it is answered. */
static inline void store_commits(struct store *s, bool sent)
{
    atomic_store(&s->commit_us, sent ? world_mono(&world_real) : 0);
}
/* Every engine's handle for handler SQL begins with this. */
struct sql_tx {
    const struct store_ops *ops;
};

/* The engine that a URL names, which may be a wrapper ("trace+", "fault+"). INVALID: there is none.
 */
MUST_USE enum pawl_status store_engine(const char *url, const struct store_ops **out,
                                       struct pawl_err *err);
/* Check conf and open a connection; `conf` is borrowed for the call. INVALID names the setting. */
MUST_USE enum pawl_status store_open(const struct store_conf *conf, struct store **out,
                                     struct pawl_err *err);
/* The traits (STORE_...) of the engine below any wrappers. */
unsigned store_traits(const struct store *s);
/* Since when (world_mono) a commit of this handle waits for its answer; 0: none does, or the
 * engine's commits never wait for another server. Any thread, while the handle is open. */
int64_t store_committing(const struct store *s);
/* Close the connection and free the handle. Accepts NULL. */
void store_close(struct store *s);
/* store_close() for AUTO: sets *s to NULL. */
void store_end(struct store **s);

/* For engines: answer the operation with LOST_LEASE and a text that names the lease. Always OK: the
 * operation is answered. */
enum pawl_status op_lost_lease(struct op *op, const struct token *token);
/* The same for a call that the lease does not hold; `id` absent: the text names `seq`. */
enum pawl_status op_not_held(struct op *op, const struct token *token, struct bytes id,
                             int64_t seq);
/* For engines: answer an OP_MOVE with BUSY and a text that names the worker or node that holds the
 * call. */
void op_not_begun(struct op *op, struct bytes owner);

/* Is this BUSY because another transaction held a row lock for too long? The operation may succeed
 * later, in a commit of its own. */
bool store_blocked(const struct pawl_err *err);
/* Is this INVALID because the database account lacks a right? */
bool store_denied(const struct pawl_err *err);

/* Bring the schema up to date; `finish` also runs the halves that must wait until no node of an
 * older version is left. STATE: the schema needs a newer program. */
MUST_USE enum pawl_status store_migrate(struct store *s, bool finish, struct pawl_err *err);
/* Which version the schema has, and which this program wants. */
MUST_USE enum pawl_status store_schema(struct store *s, struct schema *out, struct pawl_err *err);

/* Commit n operations together. If the engine refuses the group for a reason that one operation may
 * have caused, the group is halved, down to single operations, so that a bad operation fails alone
 * at the cost of about log2(n) commits. Always answers every operation: v[i]->status and, when it
 * is not OK, v[i]->err. BUSY is retried a few times first. An UNKNOWN group is repeated unchanged;
 * its operations are UNKNOWN only when that fails too. Returns OK when every operation has an
 * answer from the database. */
enum pawl_status store_commit(struct store *s, struct op *const *v, size_t n);

/* Read calls by id: g->found[i] and g->out[i] answer g->ids[i]. g->n is above 0. */
MUST_USE enum pawl_status store_get(struct store *s, struct arena *a, struct get *g,
                                    struct pawl_err *err);
/* Read one page of the calls that match, newest first. q->limit is 1 to LIST_MAX. */
MUST_USE enum pawl_status store_list(struct store *s, struct arena *a, const struct query *q,
                                     struct page *out, struct pawl_err *err);
/* Read the attempts of a call, oldest first. NOT_FOUND, GONE. */
MUST_USE enum pawl_status store_attempts(struct store *s, struct arena *a, struct bytes id,
                                         struct attempts *out, struct pawl_err *err);
/* Read the newest copy with this id in the archive. NOT_FOUND, also when the engine keeps none. */
MUST_USE enum pawl_status store_archived(struct store *s, struct arena *a, struct bytes id,
                                         struct archived *out, struct pawl_err *err);
/* For engines: a row of the statement archive_read. */
enum { ARCHIVE_TEXTS = 19, ARCHIVE_NUMBERS = 11 };
struct archive_row {
    struct bytes text[ARCHIVE_TEXTS]; /* in the statement's order */
    int64_t number[ARCHIVE_NUMBERS];
};
/* Turn the row into the call it was, copied into `a`. BROKEN when its state, tags or options are
 * not those of an archived call. */
MUST_USE enum pawl_status archived_read(struct arena *a, const struct archive_row *row,
                                        struct archived *out, struct pawl_err *err);
/* Read the state of an object. NOT_FOUND. */
MUST_USE enum pawl_status store_object(struct store *s, struct arena *a, struct bytes type,
                                       struct bytes key, struct object *out, struct pawl_err *err);
/* Read one page of keys by name. q->limit is 1 to LIST_MAX. */
MUST_USE enum pawl_status store_keys(struct store *s, struct arena *a, const struct key_query *q,
                                     struct key_rows *out, struct pawl_err *err);
/* Read all queues, nodes or roles, by name. */
MUST_USE enum pawl_status store_queues(struct store *s, struct arena *a, struct queue_rows *out,
                                       struct pawl_err *err);
MUST_USE enum pawl_status store_nodes(struct store *s, struct arena *a, struct node_rows *out,
                                      struct pawl_err *err);
MUST_USE enum pawl_status store_leaders(struct store *s, struct arena *a, struct leader_rows *out,
                                        struct pawl_err *err);
/* Read which held calls have a cancel request, by seq. */
MUST_USE enum pawl_status store_cancel_requests(struct store *s, struct arena *a,
                                                struct cancel_requests *out, struct pawl_err *err);
/* Call `look` to read with this handle: with LOOK_SNAPSHOT the feature_query() calls of `look`
 * (store/feature.h) all see the database as it was at one moment; with LOOK_ALONE there may be only
 * one of them. What is to be kept is copied; scratch ends with the look. INVALID: the engine keeps
 * calls only. */
MUST_USE enum pawl_status store_look(struct store *s, enum store_look how, feature_look_fn *look,
                                     void *ctx, struct pawl_err *err);
/* Read the database's clock. */
MUST_USE enum pawl_status store_now(struct store *s, int64_t *out_us, struct pawl_err *err);
/* A number that differs from the last answer when another connection may have committed since. */
MUST_USE enum pawl_status store_version(struct store *s, int64_t *out, struct pawl_err *err);
/* Notify the other processes, then wait for a notification. STATE: the engine carries none, or none
 * get through. */
MUST_USE enum pawl_status store_hint(struct store *s, struct hint *h, struct pawl_err *err);
/* Do maintenance that must not delay the writer; nothing where the engine needs none. */
MUST_USE enum pawl_status store_tend(struct store *s, struct pawl_err *err);
/* The schema's steps as SQL, by number; empty for an engine without a schema. */
MUST_USE enum pawl_status store_steps(const struct store_conf *conf, struct arena *a,
                                      struct steps *out, struct pawl_err *err);
/* Check the database's health; empty for an engine without checks. */
MUST_USE enum pawl_status store_doctor(struct store *s, struct arena *a, struct findings *out,
                                       struct pawl_err *err);
/* Can this program work with the schema as it is? If not, STATE names both versions: the schema is
 * older than the program wants, or needs a newer program. */
MUST_USE enum pawl_status store_fits(struct store *s, struct pawl_err *err);
/* SQL that grants these roles their rights, in `a`. INVALID: the engine has no roles, or a name is
 * not allowed. */
MUST_USE enum pawl_status store_grants(const struct store_conf *conf, const struct roles *roles,
                                       struct arena *a, const char **out, struct pawl_err *err);
/* Run the SQL of store_grants(). INVALID: the engine has no roles, a role does not exist, or this
 * account may not grant. STATE: the schema is older than this program's. */
MUST_USE enum pawl_status store_grant(struct store *s, const char *sql, struct pawl_err *err);
/* Copy the database into a file. INVALID: the engine has no file to copy. */
MUST_USE enum pawl_status store_backup(struct store *s, const struct backup *b,
                                       struct pawl_err *err);
/* Run one statement of the application inside OP_HANDLER; its rows live in `a`. */
MUST_USE enum pawl_status store_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                                    struct pawl_rows *out, struct pawl_err *err);

/* For tests: let the n-th slot call from now (from 1) of the fault wrapper fail with `status`, in
 * the whole process. BEFORE: the slot is not called. AFTER: the slot does its work, and `status` is
 * returned nevertheless (a lost answer). n FAULT_EVERY: every call fails; 0: none does. */
enum fault_when { FAULT_BEFORE, FAULT_AFTER };
enum { FAULT_EVERY = -1 };
void store_fault(int64_t n, enum fault_when when, enum pawl_status status);
/* How many slot calls there were since the last store_fault(). */
int64_t store_fault_count(void);

#endif
