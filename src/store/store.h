/*
 * store.h - what every storage engine promises, and the checked functions everybody calls.
 *
 * A `struct store` is one connection. It is used by one thread at a time, by default the store
 * thread that opened it; opening several on one database is normal. Everybody calls store_*(): it
 * checks the arguments, calls the slot, checks the answer and counts it, so that each engine is
 * watched by the same eyes.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdatomic.h>

#include "base/world.h"
#include "store/op.h"

struct store;

/* HASTY: a writer for whom others do what meets a row that a stranger's transaction holds: it hears
 * BUSY at once (store_blocked) instead of waiting. BARE: a connection for tables that are not the
 * ledger's, none of which is touched: where the engine has STORE_DRIVEN its handle begins with a
 * `struct ledger`, whose driver is all there is to it. */
enum store_role { STORE_WRITER, STORE_READER, STORE_HASTY, STORE_DRIVER_ONLY };

/* Borrowed by open for the call; strings are copied. */
struct store_conf {
    const char *url;    /* "sqlite:PATH", "mem:NAME", or a wrapped one: "trace+sqlite:PATH" */
    const char *schema; /* NULL: "pawl"; letters, digits and _, at most 32, a letter first */
    enum store_role role;
    const struct world *world; /* NULL: world_real; must outlive the store */
    int64_t retention_us, remember_us;
    int64_t key_pending_max; /* calls that may wait on one key; 0: no bound */
    int64_t retry_max_us;    /* the longest pause before a lost connection is tried again; 0: the
                                engine's own */
    int64_t lifetime_us; /* a connection older than that is replaced between two uses; 0: never */
    int64_t idle_us;     /* how long a transaction may hold rows while nothing is asked of it: then
                            the server ends it; 0: the engine's own */
};

enum {
    STORE_ONE_WRITER = 1, /* one connection writes at a time: beats ride in the group, handler SQL
                             holds everybody up */
    STORE_DURABLE = 2,    /* survives the process */
    STORE_SHARED = 4,     /* others may write to it: ask `version` now and then */
    STORE_HINTS = 8,      /* processes can tell each other to look: `hint` */
    STORE_DRIVEN = 16,    /* its handle begins with a `struct ledger` (store/ledger) */
};

/* What one process has the others look for. Work that may be claimed; calls that have ended; nodes
 * that joined, left, died or are to drain, and roles that became free. */
enum { HINT_WORK = 1, HINT_ENDED = 2, HINT_NODES = 4, HINT_ALL = 7 };
struct hint {
    unsigned tell;    /* HINT_..., 0: nothing */
    int64_t until_us; /* monotonic */
    int wake_fd;      /* stop waiting when it can be read; -1: none */
    unsigned heard;   /* answer; also everything at once after a connection was lost */
};

struct store_ops {
    const char *name; /* "sqlite" */
    unsigned traits;

    enum pawl_status (*open)(const struct store_conf *conf, struct store **out,
                             struct pawl_err *err);
    void (*close)(struct store *s);

    /* Bring the schema up to date under a lock: two processes starting together are fine. `finish`
     * also runs the halves that wait until no old node is left. */
    enum pawl_status (*migrate)(struct store *s, bool finish, struct pawl_err *err);
    enum pawl_status (*schema)(struct store *s, struct schema *out, struct pawl_err *err);

    /* All n operations in one durable transaction. OK: committed; v[i]->status answers each.
     * Anything else: nothing was committed (UNKNOWN: perhaps it was), and the answers mean nothing.
     * One bad operation must show as its own status if the engine can tell; if not, store_commit()
     * halves the group. */
    enum pawl_status (*commit)(struct store *s, struct op *const *v, size_t n,
                               struct pawl_err *err);

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
    /* The database's clock. */
    enum pawl_status (*now)(struct store *s, int64_t *out_us, struct pawl_err *err);
    /* A number that differs from the last answer when another connection may have committed since.
     * Cheap enough to ask every few milliseconds. */
    enum pawl_status (*version)(struct store *s, int64_t *out, struct pawl_err *err);
    /* Tell the other processes, then wait until one of them tells us, on a handle that does nothing
     * else. A hint may be lost and says no more than "look": whoever relies on it asks `version`
     * too, only more rarely. STATE: none get through here, and none will. NULL: there are none. */
    enum pawl_status (*hint)(struct store *s, struct hint *h, struct pawl_err *err);
    /* Work that must not stand in the writer's way (SQLite: checkpoint), on a connection of its
     * own. NULL: nothing to do. */
    enum pawl_status (*tend)(struct store *s, struct pawl_err *err);

    /* The schema's steps, their table names as conf->schema has them. Opens nothing. NULL: it has
     * none. */
    enum pawl_status (*steps)(const struct store_conf *conf, struct arena *a, struct steps *out,
                              struct pawl_err *err);
    /* Look at the database's health: changes nothing, takes a few seconds at most. NULL: nothing to
     * say. */
    enum pawl_status (*doctor)(struct store *s, struct arena *a, struct findings *out,
                               struct pawl_err *err);

    /* SQL that lets these roles of the database do their part, and nothing more; names as
     * conf->schema has them. Opens nothing. NULL: it has no roles. */
    enum pawl_status (*grants)(const struct store_conf *conf, const struct roles *roles,
                               struct arena *a, const char **out, struct pawl_err *err);
    /* Run what `grants` gave, in one transaction where that is possible. INVALID for a role that
     * does not exist, and for an account that may not grant; STATE for a schema that is older than
     * this program's. NULL with `grants`. */
    enum pawl_status (*grant)(struct store *s, const char *sql, struct pawl_err *err);
    /* A copy of the database as it is at one moment, while others work on it: synced and checked
     * before OK is said; with anything else the file is gone again. NULL: it is no file; whoever
     * wants a copy asks the database's own tools. */
    enum pawl_status (*backup)(struct store *s, const struct backup *b, struct pawl_err *err);

    /* One statement of the application inside OP_HANDLER. */
    enum pawl_status (*sql)(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                            struct pawl_rows *out, struct pawl_err *err);
};

/* Every engine's struct begins with this. */
struct store {
    const struct store_ops *ops;
    bool hasty; /* set by store_open() */
    /* World_mono: when something was sent that commits and has no answer yet; 0: nothing was. Set
     * by the engine's thread (store_commits), read by any (store_committing). */
    atomic_int_least64_t commit_us;
};
/* For engines whose commits may wait for somebody else, as for a synchronous standby: one is on its
 * way, or is answered. */
static inline void store_commits(struct store *s, bool sent)
{
    atomic_store(&s->commit_us, sent ? world_mono(&world_real) : 0);
}
/* Every engine's handle for handler SQL begins with this. */
struct sql_tx {
    const struct store_ops *ops;
};

/* The engine a URL names; NULL and INVALID for none. Wrappers ("trace+", "fault+") come off first.
 */
MUST_USE enum pawl_status store_engine(const char *url, const struct store_ops **out,
                                       struct pawl_err *err);
MUST_USE enum pawl_status store_open(const struct store_conf *conf, struct store **out,
                                     struct pawl_err *err);
/* The traits of the engine at the bottom of any wrappers. */
unsigned store_traits(const struct store *s);
/* Since when (world_mono) a commit of this handle waits for its answer; 0: none does, or the engine
 * never waits for anybody else. Any thread, while the handle is open. */
int64_t store_committing(const struct store *s);
void store_close(struct store *s); /* accepts NULL */
void store_end(struct store **s);  /* for AUTO */

/* For engines: LOST_LEASE as the answer of an operation, naming the lease; the call it was to end,
 * too. Always OK: the operation is answered. */
enum pawl_status op_lost_lease(struct op *op, const struct token *token);
enum pawl_status op_not_held(struct op *op, const struct token *token, struct bytes id,
                             int64_t seq);
/* For engines: BUSY as the answer of an OP_MOVE, naming the worker or node that holds the call. */
void op_not_begun(struct op *op, struct bytes owner);

/* BUSY because somebody held a row for too long: alone, and later, it may well do. */
bool store_blocked(const struct pawl_err *err);
/* INVALID because the account may not do that: the server has roles, and this one lacks a right. */
bool store_denied(const struct pawl_err *err);

MUST_USE enum pawl_status store_migrate(struct store *s, bool finish, struct pawl_err *err);
MUST_USE enum pawl_status store_schema(struct store *s, struct schema *out, struct pawl_err *err);

/* Commit n operations together; if the engine refuses the group for a reason that may be one
 * operation's fault it is halved, down to one, so that a bad operation fails alone at the cost of
 * some log2(n) commits. Always answers every operation: v[i]->status and, when it is not OK,
 * v[i]->err. BUSY is tried again a few times first. An UNKNOWN group is repeated as it is; only
 * when that fails too its operations are UNKNOWN. Returns OK when every operation has an answer
 * from the database. */
enum pawl_status store_commit(struct store *s, struct op *const *v, size_t n);

MUST_USE enum pawl_status store_get(struct store *s, struct arena *a, struct get *g,
                                    struct pawl_err *err);
MUST_USE enum pawl_status store_list(struct store *s, struct arena *a, const struct query *q,
                                     struct page *out, struct pawl_err *err);
MUST_USE enum pawl_status store_attempts(struct store *s, struct arena *a, struct bytes id,
                                         struct attempts *out, struct pawl_err *err);
MUST_USE enum pawl_status store_archived(struct store *s, struct arena *a, struct bytes id,
                                         struct archived *out, struct pawl_err *err);
/* For engines: a row of archive_read as the call it was, copied into `a`. */
enum { ARCHIVE_TEXTS = 18, ARCHIVE_NUMBERS = 11 };
struct archive_row {
    struct bytes text[ARCHIVE_TEXTS]; /* in the statement's order */
    int64_t number[ARCHIVE_NUMBERS];
};
MUST_USE enum pawl_status archived_read(struct arena *a, const struct archive_row *row,
                                        struct archived *out, struct pawl_err *err);
MUST_USE enum pawl_status store_object(struct store *s, struct arena *a, struct bytes type,
                                       struct bytes key, struct object *out, struct pawl_err *err);
MUST_USE enum pawl_status store_keys(struct store *s, struct arena *a, const struct key_query *q,
                                     struct key_rows *out, struct pawl_err *err);
MUST_USE enum pawl_status store_queues(struct store *s, struct arena *a, struct queue_rows *out,
                                       struct pawl_err *err);
MUST_USE enum pawl_status store_nodes(struct store *s, struct arena *a, struct node_rows *out,
                                      struct pawl_err *err);
MUST_USE enum pawl_status store_leaders(struct store *s, struct arena *a, struct leader_rows *out,
                                        struct pawl_err *err);
MUST_USE enum pawl_status store_cancel_requests(struct store *s, struct arena *a,
                                                struct cancel_requests *out, struct pawl_err *err);
MUST_USE enum pawl_status store_now(struct store *s, int64_t *out_us, struct pawl_err *err);
MUST_USE enum pawl_status store_version(struct store *s, int64_t *out, struct pawl_err *err);
MUST_USE enum pawl_status store_hint(struct store *s, struct hint *h, struct pawl_err *err);
MUST_USE enum pawl_status store_tend(struct store *s, struct pawl_err *err);
/* Empty for an engine without a schema or without an opinion. */
MUST_USE enum pawl_status store_steps(const struct store_conf *conf, struct arena *a,
                                      struct steps *out, struct pawl_err *err);
MUST_USE enum pawl_status store_doctor(struct store *s, struct arena *a, struct findings *out,
                                       struct pawl_err *err);
/* May this program work on the database as it is? STATE names both versions when it may not: the
 * schema is older than what it wants, or needs a newer program. */
MUST_USE enum pawl_status store_fits(struct store *s, struct pawl_err *err);
/* INVALID for an engine that has no roles (no file to copy). */
MUST_USE enum pawl_status store_grants(const struct store_conf *conf, const struct roles *roles,
                                       struct arena *a, const char **out, struct pawl_err *err);
MUST_USE enum pawl_status store_grant(struct store *s, const char *sql, struct pawl_err *err);
MUST_USE enum pawl_status store_backup(struct store *s, const struct backup *b,
                                       struct pawl_err *err);
MUST_USE enum pawl_status store_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                                    struct pawl_rows *out, struct pawl_err *err);

/* The fault wrapper's dial, process-wide, for tests: `what` happens at the n-th slot call from now
 * (from 1); BEFORE: the slot is not called and `status` is returned; AFTER: the slot does its work
 * and `status` is returned all the same (a lost answer). n 0 switches off. */
enum fault_when { FAULT_BEFORE, FAULT_AFTER };
void store_fault(int64_t n, enum fault_when when, enum pawl_status status);
int64_t store_fault_count(void); /* slot calls since the last store_fault() */

#endif
