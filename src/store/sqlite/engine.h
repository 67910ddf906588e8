/*
 * engine.h - one SQLite connection as Pawl uses it: statements, transactions, the log, the
 * application's SQL. Private to store/sqlite.
 *
 * A `struct lite` begins with the ledger that runs on it (store/ledger), and belongs to one thread
 * at a time (SQLITE_OPEN_NOMUTEX).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_SQLITE_ENGINE_H
#define STORE_SQLITE_ENGINE_H

#include "store/ledger/ledger.h"
#include "store/sqlite/stmt.h"

/* Numbers of calls and versions of objects: rows of pawl_meta, read when a transaction first needs
 * one and written once, before its commit. */
enum { LITE_SEQ, LITE_VERSION, LITE_COUNTERS };
struct lite_counter {
    int64_t last, stored; /* the last one given out, and what the row says */
    bool known;
};

struct lite {
    struct ledger ledger;
    sqlite3 *db;      /* owned */
    char *path;       /* owned */
    bool driver_only; /* for tables that are not the ledger's, which are not touched */

    sqlite3_stmt *stmts[SQL_COUNT]; /* owned, made at first use */
    sqlite3_stmt *plain[PLAIN_COUNT];
    bool lists[SQL_COUNT];              /* the statement takes a column as a JSON array */
    unsigned short answered[SQL_COUNT]; /* rows of its last answer: room for the next */
    int64_t busy_until;                 /* world_mono: when waiting for the lock ends */

    /* The running transaction. */
    struct lite_counter counters[LITE_COUNTERS];
    const struct led_rows *took; /* in scratch: what the last ready_take found; NULL: rows were
                                    added since */
    int took_at;                 /* rows before this one were removed */

    /* The file. */
    int64_t file_len;  /* how long it was when it was last looked at and whole */
    int64_t file_left; /* file_cut: how long it is now */
    bool file_cut;     /* it was cut short while it was open */

    /* Checkpoints. */
    int wal_pages;   /* of the log, after our last commit */
    int wal_next;    /* checkpoint when the log has this many */
    int64_t tend_at; /* world_mono of the next background checkpoint */
    int64_t tend_gap_us;
    int64_t tend_version;
    int tend_copied; /* frames that were copied after the last checkpoint */

    /* The application's SQL. */
    bool guard;           /* an application's SQL is being prepared: check it */
    char refused[160];    /* why the guard refused it */
    int64_t sql_until_us; /* world_mono; 0: no limit */
    bool sql_late;        /* the limit passed */
};

/* The handle of a store, and of a ledger. */
static inline struct lite *lite_of(struct store *s)
{
    return (struct lite *)s;
}

static inline struct lite *lite_in(struct ledger *l)
{
    return (struct lite *)l;
}

/* ---- The connection (conn.c) ----------------------------------------------------------------- */

/* SQLite's last error, which was rc, as a status and a sentence. */
enum pawl_status lite_fail(struct lite *c, int rc, struct led_doing doing, struct pawl_err *err);
/* Sleep 1 to 5 ms, at random, so that connections that wait for the lock do not retry together. */
void lite_nap(struct lite *c);

/* ---- The file (file.c) ----------------------------------------------------------------------- */

/* BUSY when the file is no longer where it was opened, or a part of it is gone: what is written
 * into it would be lost when the last process closes it, or would hide what is lost. */
MUST_USE enum pawl_status lite_intact(struct lite *c, struct pawl_err *err);
/* Is it known why nothing can be written at this path? Then `out` says so and what to do: "its
 * folder is on a read-only file system; mount it for writing, ...". */
bool lite_unwritable(const char *path, char *out, size_t size);
/* Has the disk of this path no room left? */
bool lite_disk_full(const char *path);

/* ---- Transactions (tx.c) --------------------------------------------------------------------- */

/* Begin a transaction; one that is open is rolled back first. Sets ledger.now_us. */
MUST_USE enum pawl_status lite_begin(struct lite *c, enum lite_plain how, struct pawl_err *err);
/* For AUTO: roll back unless it was taken. Also ends a read. */
void lite_undo(struct lite **c);
/* UNKNOWN: the commit may have reached the log. After anything but OK it is rolled back. */
MUST_USE enum pawl_status lite_commit(struct lite *taken, struct pawl_err *err);

/* ---- The driver (driver.c, driver_stmt.c) ---------------------------------------------------- */

extern const struct led_driver lite_driver;
/* For tables that are not the ledger's (STORE_DRIVER_ONLY): patience(ms) in SQL, a limit on how
 * long a transaction's statements take. */
MUST_USE enum pawl_status lite_driver_init(struct lite *c, struct pawl_err *err);
/* Run a statement that returns rows, in scratch; one that changes *out_rows rows. */
MUST_USE enum pawl_status lite_drive_ask(struct lite *c, enum sql_name name,
                                         const struct led_params *p, struct led_rows **out,
                                         struct pawl_err *err);
MUST_USE enum pawl_status lite_drive_change(struct lite *c, enum sql_name name,
                                            const struct led_params *p, int64_t *out_rows,
                                            struct pawl_err *err);

/* ---- Slots ----------------------------------------------------------------------------------- */

/* What struct store_ops promises of the slot of this name. */
enum pawl_status lite_migrate(struct store *s, bool finish, struct pawl_err *err);
enum pawl_status lite_schema(struct store *s, struct schema *out, struct pawl_err *err);
enum pawl_status lite_version(struct store *s, int64_t *out, struct pawl_err *err);
enum pawl_status lite_tend(struct store *s, struct pawl_err *err);
enum pawl_status lite_steps(const struct store_conf *conf, struct arena *a, struct steps *out,
                            struct pawl_err *err);
enum pawl_status lite_doctor(struct store *s, struct arena *a, struct findings *out,
                             struct pawl_err *err);
enum pawl_status lite_backup(struct store *s, const struct backup *b, struct pawl_err *err);
enum pawl_status lite_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                          struct pawl_rows *out, struct pawl_err *err);
/* Keep the log short (checkpoint.c): called by the writer between two commits, which it makes for
 * files that are intact only. */
void lite_bound_log(struct lite *c);
/* Take over SQLite's hook after commits, which counts the pages of the log. */
void lite_checkpoint_init(struct lite *c);

/* ---- The application's SQL (guard.c) --------------------------------------------------------- */

/* Install the guard, when a connection opens. */
void lite_guard_init(struct lite *c);
/* Run the statements of a module, inside the running transaction. INVALID: they have a mistake, and
 * all of them are undone; if the transaction is gone, so is what came before them. */
MUST_USE enum pawl_status lite_theirs_script(struct lite *c, struct bytes text,
                                             struct pawl_err *err);

extern const struct store_ops store_sqlite;

#endif
