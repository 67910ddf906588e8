/*
 * conn.c - opening and closing a connection, its settings, its waiting, and what SQLite's errors
 * mean.
 *
 * What must stay true: synchronous is FULL and the journal a WAL before anything is accepted, so
 * that a commit that was answered survives a power cut.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <time.h>

#include "base/limits.h"
#include "base/mem.h"
#include "store/sqlite/engine.h"

/* How long to wait for the lock; then the caller gets BUSY, as in an outage of a server. */
#define BUSY_US (2 * SEC_US)
/* The same when the clock is a test's and stands still: naps of 1 ms or more. */
#define BUSY_NAPS_MAX 2000
/* Page cache in KiB: the writer keeps the pages that it uses often; readers rely on the kernel's.
 */
#define WRITER_CACHE 65536
#define READER_CACHE 8192
/* Bytes to which a log is cut when it starts over, after a slow reader has made it grow. */
#define LOG_KEPT (64 << 20)

/* ---- Errors ---------------------------------------------------------------------------------- */

/* A full or failing disk is a condition of the database that may end: BUSY, like an outage. FULL is
 * for our own limits. */
static enum pawl_status status_of(int rc)
{
    if (rc == SQLITE_IOERR_NOMEM)
        return PAWL_NO_MEMORY;
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
    case SQLITE_INTERRUPT:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return PAWL_BUSY;
    case SQLITE_NOMEM:
        return PAWL_NO_MEMORY;
    case SQLITE_TOOBIG:
        return PAWL_TOO_LARGE;
    default: /* CORRUPT, NOTADB, CONSTRAINT, SCHEMA, ERROR: what is stored is not what we stored */
        return PAWL_BROKEN;
    }
}

enum pawl_status lite_fail(struct lite *c, int rc, struct led_doing doing, struct pawl_err *err)
{
    int full = c->db ? sqlite3_extended_errcode(c->db) : rc;
    /* Without memory SQLite may not have noted its error: believe what it returned. */
    if ((full & 0xff) != (rc & 0xff))
        full = rc;
    bool damage = (full & 0xff) == SQLITE_CORRUPT || (full & 0xff) == SQLITE_NOTADB;
    if (c->db && damage && lite_intact(c, err) != PAWL_OK)
        return PAWL_BUSY; /* that is why */
    bool noted = c->db && (sqlite3_errcode(c->db) & 0xff) == (rc & 0xff);
    const char *why = noted ? sqlite3_errmsg(c->db) : sqlite3_errstr(rc);
    /* SQLite does not say why it could not make the -shm file as long as it needs. */
    if ((full & 0xff) == SQLITE_IOERR && lite_disk_full(c->path))
        why = "the disk is full";
    enum pawl_status st = led_failed(status_of(full), c->path, doing, bytes_of(why), err);
    if (err)
        err->native = full;
    return st;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

void lite_nap(struct lite *c)
{
    int64_t us = MS_US + (int64_t)(world_dice(c->ledger.world) % (4 * MS_US));
    struct timespec t = { .tv_nsec = us * 1000 };
    nanosleep(&t, NULL);
}

/* SQLite's own handler sleeps up to 100 ms, so the connection that has waited longest comes last;
 * short naps of random length give each connection the same chance. */
static int busy(void *ctx, int naps)
{
    struct lite *c = ctx;
    int64_t now = world_mono(c->ledger.world);
    if (naps == 0)
        c->busy_until = now + BUSY_US;
    if (now >= c->busy_until || naps >= BUSY_NAPS_MAX)
        return 0;
    lite_nap(c);
    return 1;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static enum pawl_status path_read(struct lite *c, const struct store_conf *conf,
                                  struct pawl_err *err)
{
    const char *path = strchr(conf->url, ':');
    if (!path || !path[1] || path[1] == ':')
        return err_set(err, PAWL_INVALID, "url \"%s\": sqlite: is followed by a file's path",
                       conf->url);
    size_t len = strlen(path + 1) + 1;
    c->path = mem_alloc(len);
    if (!c->path)
        return err_no_memory(err, "a connection");
    memcpy(c->path, path + 1, len);
    c->ledger.path = c->path;
    return PAWL_OK;
}

static enum pawl_status file_open(struct lite *c, struct pawl_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(c->path, &c->db, flags, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_extended_result_codes(c->db, 1);
        sqlite3_busy_handler(c->db, busy, c);
        return PAWL_OK;
    }
    int os = c->db ? sqlite3_system_errno(c->db) : 0;
    if (rc == SQLITE_NOMEM)
        return err_no_memory(err, "a connection");
    char why[200];
    bool known = lite_unwritable(c->path, why, sizeof why);
    enum pawl_status st =
        err_set(err, PAWL_INVALID, "database \"%s\": cannot be opened: %s", c->path,
                known ? why
                : os  ? strerror(os)
                      : sqlite3_errstr(rc));
    if (err)
        err->native = rc;
    return st;
}

/* The answer of a PRAGMA as text in `out`; some have none. */
static int pragma(struct lite *c, const char *text, char *out, size_t size)
{
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(c->db, text, -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    if (rc == SQLITE_ROW && out)
        snprintf(out, size, "%s", (const char *)sqlite3_column_text(q, 0));
    int end = sqlite3_finalize(q);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : end != SQLITE_OK ? end : rc;
}

/* Several processes may switch a new file to WAL at once. SQLite does not call the busy handler for
 * that, so the wait is here. */
static enum pawl_status wal_on(struct lite *c, struct pawl_err *err)
{
    char mode[16] = "";
    int rc = SQLITE_BUSY;
    for (int i = 0; i < BUSY_NAPS_MAX / 2 && (rc & 0xff) == SQLITE_BUSY; i++) {
        if (i)
            lite_nap(c);
        rc = pragma(c, "PRAGMA journal_mode = WAL", mode, sizeof mode);
    }
    bool refused = (rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY;
    char why[200];
    if (refused && lite_unwritable(c->path, why, sizeof why))
        return err_set(err, PAWL_INVALID, "database \"%s\": cannot be opened: %s", c->path, why);
    if (rc != SQLITE_OK)
        return lite_fail(c, rc, LED_PHASE("opening"), err);
    if (strcmp(mode, "wal") != 0)
        return err_set(err, PAWL_INVALID,
                       "database \"%s\": needs a WAL, and this file or disk only does \"%s\"",
                       c->path, mode);
    return PAWL_OK;
}

static enum pawl_status settings(struct lite *c, enum store_role role, struct pawl_err *err)
{
    char cache[64], log[64];
    snprintf(cache, sizeof cache, "PRAGMA cache_size = -%d",
             role == STORE_READER ? READER_CACHE : WRITER_CACHE);
    snprintf(log, sizeof log, "PRAGMA journal_size_limit = %d", LOG_KEPT);
    const char *const all[] = {
        "PRAGMA synchronous = FULL",
        "PRAGMA foreign_keys = OFF",
        "PRAGMA temp_store = MEMORY",
        "PRAGMA wal_autocheckpoint = 0",
        "PRAGMA secure_delete = OFF",
        cache,
        log,
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        int rc = pragma(c, all[i], NULL, 0);
        if (rc != SQLITE_OK)
            return lite_fail(c, rc, LED_PHASE("opening"), err);
    }
    return PAWL_OK;
}

/* Which statements take a column as a JSON array. */
static void statements_init(struct lite *c)
{
    for (int i = 0; i < SQL_COUNT; i++)
        c->lists[i] = sql_sqlite[i] && strstr(sql_sqlite[i], "json_each");
}

static enum pawl_status connect_to(struct lite *c, const struct store_conf *conf,
                                   struct pawl_err *err)
{
    enum pawl_status st = path_read(c, conf, err);
    if (st == PAWL_OK)
        st = file_open(c, err);
    if (st == PAWL_OK)
        st = wal_on(c, err);
    if (st == PAWL_OK)
        st = settings(c, conf->role, err);
    if (st != PAWL_OK)
        return st;
    statements_init(c);
    lite_guard_init(c);
    lite_checkpoint_init(c);
    return c->driver_only ? lite_driver_init(c, err) : PAWL_OK;
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static void close_lite(struct store *s)
{
    struct lite *c = lite_of(s);
    lite_statements_end(c);
    /* The log may be all that is left of a file that was cut: keep it. */
    if (c->db && c->file_cut)
        sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (c->db)
        CHECK(sqlite3_close(c->db) == SQLITE_OK);
    led_end(&c->ledger);
    mem_free(c->path);
    mem_free(c);
}

/* The slots of a handle for tables that are not the ledger's. */
static const struct store_ops driver_only_ops = {
    .name = "sqlite",
    .traits = STORE_ONE_WRITER | STORE_DURABLE | STORE_SHARED | STORE_DRIVEN,
    .close = close_lite,
};

static enum pawl_status open_lite(const struct store_conf *conf, struct store **out,
                                  struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    struct lite *c = mem_zalloc(sizeof *c);
    if (!c)
        return err_no_memory(err, "a connection");
    c->driver_only = conf->role == STORE_DRIVER_ONLY;
    c->ledger.base.ops = c->driver_only ? &driver_only_ops : &store_sqlite;
    s = &c->ledger.base;
    led_init(&c->ledger, conf, &lite_driver);
    enum pawl_status st = connect_to(c, conf, err);
    if (st == PAWL_OK)
        *out = TAKE(s);
    return st;
}

static enum pawl_status now(struct store *s, int64_t *out_us, struct pawl_err *err)
{
    (void)err;
    *out_us = world_now(led_of(s)->world);
    return PAWL_OK;
}

enum pawl_status lite_version(struct store *s, int64_t *out, struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    enum pawl_status st = lite_plain(c, PLAIN_VERSION, err);
    if (st == PAWL_OK) {
        CHECK(sqlite3_data_count(c->plain[PLAIN_VERSION]) == 1);
        *out = lite_int(c->plain[PLAIN_VERSION], 0);
        sqlite3_reset(c->plain[PLAIN_VERSION]);
    }
    return st;
}

const struct store_ops store_sqlite = {
    .name = "sqlite",
    .traits = STORE_ONE_WRITER | STORE_DURABLE | STORE_SHARED | STORE_DRIVEN,
    .open = open_lite,
    .close = close_lite,
    .migrate = lite_migrate,
    .schema = lite_schema,
    .commit = led_commit_ops,
    .get = led_get_calls,
    .list = led_list,
    .attempts = led_attempts,
    .archived = led_archived,
    .object = led_read_object,
    .keys = led_read_keys,
    .queues = led_queues,
    .nodes = led_nodes,
    .leaders = led_leaders,
    .cancel_requests = led_cancel_requests,
    .look = led_feature_look,
    .now = now,
    .version = lite_version,
    .tend = lite_tend,
    .steps = lite_steps,
    .doctor = lite_doctor,
    .backup = lite_backup,
    .sql = lite_sql,
};
