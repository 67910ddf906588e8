/*
 * engine.h - one SQLite connection as Pawl uses it: statements, lanes, leases, the running
 * transaction.
 *
 * Private to store/sqlite. A `struct lite` belongs to one thread at a time (SQLITE_OPEN_NOMUTEX).
 * What is remembered between transactions (lanes, leases) is a copy of the database that is checked
 * before it is believed; what belongs to one transaction is numbered by `tx` and worth nothing in
 * the next.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_SQLITE_ENGINE_H
#define STORE_SQLITE_ENGINE_H

#include "store/sqlite/holder.h"
#include "store/sqlite/key.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/lease.h"
#include "store/sqlite/stmt.h"
#include "store/store.h"

#define SCHEMA_LEN_MAX 32

/* A call that can be claimed since the running transaction, and whose row in pawl_ready is not
 * written yet. */
struct lite_fresh {
    int64_t seq, run_at_us;
    int64_t expires_us; /* with spec: its row in pawl_expiry is not written either; 0: it has none
                         */
    const struct call_spec *spec; /* accepted now: borrowed from the operation, for the transaction;
                                     NULL: it came on offer */
    int lane, priority;
    struct tries tries;
};

struct lite {
    struct store base;
    sqlite3 *db;               /* owned */
    const struct world *world; /* borrowed */
    enum store_role role;
    char *path; /* owned */
    char schema[SCHEMA_LEN_MAX + 1];
    int64_t retention_us, remember_us, key_pending_max;

    const char *const *texts;       /* of the statements: sql_sqlite, or sql_sqlite_ledger */
    sqlite3_stmt *stmts[SQL_COUNT]; /* owned, made at first use */
    sqlite3_stmt *plain[PLAIN_COUNT];
    int64_t busy_until; /* world_mono: when waiting for the lock ends */

    /* Remembered. */
    struct lite_lanes lanes;
    struct lite_lease *leases[LEASE_BUCKETS]; /* owned */
    size_t n_leases;
    uint64_t lease_clock;

    /* The running transaction. */
    uint64_t tx; /* counts up */
    int64_t now_us;
    struct arena scratch; /* reset when a transaction begins */
    struct arena unpack;  /* for one look at one lease */
    int64_t seq;          /* the last number given out; valid with seq_tx */
    uint64_t seq_tx;
    int64_t seq_stored;
    int64_t version; /* of objects, the last one given out; valid with version_tx */
    uint64_t version_tx;
    struct lite_keys keys;
    struct bytes *paused; /* in scratch; valid with paused_tx */
    size_t n_paused;
    uint64_t paused_tx;
    struct lite_looks looks;
    bool wishes; /* pawl_cancel has rows; valid with wishes_tx */
    uint64_t wishes_tx;
    struct lite_fresh *fresh; /* owned */
    size_t n_fresh, fresh_cap;
    int64_t fresh_low; /* no fresh call has a lower seq */
    bool gathers;      /* the running operation leaves fresh calls unwritten */

    /* Checkpoints. */
    int wal_pages;   /* after the last commit of ours */
    int wal_next;    /* look again when the log has this many */
    int64_t tend_at; /* world_mono of the next background checkpoint */
    int64_t tend_gap_us;
    int64_t tend_version;
    int tend_copied; /* frames that were copied when we last looked */

    /* The application's SQL. */
    bool guard;           /* what is prepared now is not ours: refuse what is not theirs */
    char refused[160];    /* why the guard said no */
    int64_t sql_until_us; /* world_mono; 0: no limit */
    bool sql_late;        /* it passed */
};

/* The way from a slot's argument to ours, whichever engine's handle it is. */
struct lite *lite_of(struct store *s);

/* The schema's steps as this program knows them; a test may be an older or a newer program. */
#ifdef PAWL_TEST
extern const struct sql_migration *lite_migrations;
#else
#define lite_migrations sql_sqlite_migrations
#endif

/* ---- The connection (conn.c)
 * --------------------------------------------------------------------- */

/* Open what conf->url names, ready for statements. */
MUST_USE enum pawl_status lite_connect(const struct store_conf *conf, struct lite **out,
                                       struct pawl_err *err);
/* What SQLite said last, as a status and a sentence. The only place where its codes are read. */
enum pawl_status lite_fail(struct lite *c, int rc, const char *doing, struct pawl_err *err);
/* BUSY when the file is no longer where it was opened: what is written into it would be lost when
 * the last process closes it. */
MUST_USE enum pawl_status lite_moved(struct lite *c, struct pawl_err *err);
/* A few milliseconds, never the same few: whoever waits for the lock must not march in step. */
void lite_nap(struct lite *c);

/* ---- Transactions (tx.c)
 * ------------------------------------------------------------------------- */

MUST_USE enum pawl_status lite_begin(struct lite *c, enum lite_plain how, struct pawl_err *err);
/* For AUTO: roll back unless it was taken. */
void lite_undo(struct lite **c);
/* Forget what the transaction kept in memory: what it wrote was undone. */
void lite_forget(struct lite *c);
MUST_USE enum pawl_status lite_commit(struct lite *taken, struct pawl_err *err);
/* A read: `AUTO(lite_undo) struct lite *tx`; nothing is lost by rolling it back. */

/* ---- Slots
 * --------------------------------------------------------------------------------------- */

enum pawl_status lite_open(const struct store_conf *conf, struct store **out, struct pawl_err *err);
void lite_close(struct store *s);
enum pawl_status lite_migrate(struct store *s, bool finish, struct pawl_err *err);
enum pawl_status lite_schema(struct store *s, struct schema *out, struct pawl_err *err);
enum pawl_status lite_commit_ops(struct store *s, struct op *const *v, size_t n,
                                 struct pawl_err *err);
enum pawl_status lite_get(struct store *s, struct arena *a, struct get *g, struct pawl_err *err);
enum pawl_status lite_list(struct store *s, struct arena *a, const struct query *q,
                           struct page *out, struct pawl_err *err);
enum pawl_status lite_archived(struct store *s, struct arena *a, struct bytes id,
                               struct archived *out, struct pawl_err *err);
enum pawl_status lite_attempts(struct store *s, struct arena *a, struct bytes id,
                               struct attempts *out, struct pawl_err *err);
enum pawl_status lite_object(struct store *s, struct arena *a, struct bytes type, struct bytes key,
                             struct object *out, struct pawl_err *err);
enum pawl_status lite_keys(struct store *s, struct arena *a, const struct key_query *q,
                           struct key_rows *out, struct pawl_err *err);
enum pawl_status lite_queues(struct store *s, struct arena *a, struct queue_rows *out,
                             struct pawl_err *err);
enum pawl_status lite_leaders(struct store *s, struct arena *a, struct leader_rows *out,
                              struct pawl_err *err);
enum pawl_status lite_nodes(struct store *s, struct arena *a, struct node_rows *out,
                            struct pawl_err *err);
enum pawl_status lite_wishes(struct store *s, struct arena *a, struct wishes *out,
                             struct pawl_err *err);
enum pawl_status lite_now(struct store *s, int64_t *out_us, struct pawl_err *err);
enum pawl_status lite_version(struct store *s, int64_t *out, struct pawl_err *err);
enum pawl_status lite_tend(struct store *s, struct pawl_err *err);
enum pawl_status lite_steps(const struct store_conf *conf, struct arena *a, struct steps *out,
                            struct pawl_err *err);
enum pawl_status lite_doctor(struct store *s, struct arena *a, struct findings *out,
                             struct pawl_err *err);
enum pawl_status lite_backup(struct store *s, const struct backup *b, struct pawl_err *err);
enum pawl_status lite_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                          struct pawl_rows *out, struct pawl_err *err);
/* A connection without the ledger (driver.c). */
enum pawl_status lite_bare_open(const struct store_conf *conf, struct store **out,
                                struct pawl_err *err);
/* Keep the log short (checkpoint.c): called by the writer between two commits. */
void lite_bound_log(struct lite *c);
void lite_checkpoint_init(struct lite *c);

/* ---- The application's SQL (guard.c)
 * ------------------------------------------------------------- */

/* The guard over it, installed when a connection opens. */
void lite_guard_init(struct lite *c);
/* One statement of a handler, inside the running transaction and until its deadline. It may have
 * rolled the transaction back (OR ROLLBACK, a full disk): sqlite3_get_autocommit() says so. */
MUST_USE enum pawl_status lite_theirs(struct lite *c, struct arena *a, const struct sql_query *q,
                                      struct pawl_rows *out, struct pawl_err *err);
/* Statements of a module, inside the running transaction. INVALID: theirs is the mistake, and
 * nothing of them stands; if the transaction is gone, nor does anything before them. */
MUST_USE enum pawl_status lite_theirs_script(struct lite *c, struct bytes text,
                                             struct pawl_err *err);

extern const struct store_ops store_sqlite;

#endif
