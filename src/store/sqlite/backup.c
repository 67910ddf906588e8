/*
 * backup.c - a copy of the whole file as it is at one moment, while others work on it.
 *
 * The copy is SQLite's own, page by page, from inside one read transaction. With a WAL its
 * view does not change, so the copy never starts over, and no writer waits for it. What must stay
 * true: a copy that was not synced and did not pass its own check is never left behind.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite/engine.h"

/* 4 MiB at a time: often enough to print progress. */
#define STEP_PAGES 1024

struct copy {
    struct lite *c; /* the connection to the original */
    const struct backup *b;
    sqlite3 *to; /* owned */
};

static enum pawl_status copy_fail(struct copy *k, int rc, const char *doing, struct pawl_err *err)
{
    const char *why = k->to && (sqlite3_errcode(k->to) & 0xff) == (rc & 0xff)
                          ? sqlite3_errmsg(k->to)
                          : sqlite3_errstr(rc);
    enum pawl_status st = (rc & 0xff) == SQLITE_NOMEM ? PAWL_NO_MEMORY : PAWL_BUSY;
    return err_set(err, st, "backup \"%s\": %s: %s", k->b->path, doing, why);
}

/* The file must be new: one that exists may be needed. */
static enum pawl_status file_make(const struct backup *b, struct pawl_err *err)
{
    int fd = open(b->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return err_set(err, PAWL_INVALID, "backup \"%s\": the file is there already", b->path);
    if (fd < 0)
        return err_set(err, PAWL_INVALID, "backup \"%s\": %s", b->path, strerror(errno));
    close(fd);
    return PAWL_OK;
}

static enum pawl_status pages_copy(struct copy *k, struct pawl_err *err)
{
    sqlite3_backup *run = sqlite3_backup_init(k->to, "main", k->c->db, "main");
    if (!run)
        return copy_fail(k, sqlite3_errcode(k->to), "starting", err);
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK) {
        rc = sqlite3_backup_step(run, STEP_PAGES);
        int64_t total = sqlite3_backup_pagecount(run);
        if (k->b->progress)
            k->b->progress(k->b->ctx, total - sqlite3_backup_remaining(run), total);
    }
    int end = sqlite3_backup_finish(run);
    if (rc == SQLITE_DONE && end == SQLITE_OK)
        return PAWL_OK;
    return copy_fail(k, rc == SQLITE_DONE ? end : rc, "copying", err);
}

/* One row of text, which must be this. */
static enum pawl_status must_say(struct copy *k, const char *sql, const char *want,
                                 struct pawl_err *err)
{
    sqlite3_stmt *q = NULL;
    enum pawl_status st = PAWL_OK;
    int rc = sqlite3_prepare_v2(k->to, sql, -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;
    if (!text)
        st = copy_fail(k, rc, "checking", err);
    else if (strcmp(text, want) != 0)
        st = err_set(err, PAWL_BROKEN, "backup \"%s\": %s says: %.300s", k->b->path, sql, text);
    sqlite3_finalize(q);
    return st;
}

/* Without a WAL the copy is one file, which can be read from a read-only place; a store that opens
 * it turns the WAL on again. */
static enum pawl_status copy_check(struct copy *k, struct pawl_err *err)
{
    enum pawl_status st = must_say(k, "PRAGMA journal_mode = DELETE", "delete", err);
    return st == PAWL_OK ? must_say(k, "PRAGMA integrity_check(1)", "ok", err) : st;
}

static enum pawl_status copy_make(struct copy *k, struct pawl_err *err)
{
    AUTO(lite_undo) struct lite *tx = NULL;
    int64_t any;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(k->b->path, &k->to, flags, NULL);
    if (rc != SQLITE_OK)
        return copy_fail(k, rc, "opening", err);
    sqlite3_extended_result_codes(k->to, 1);
    enum pawl_status st = lite_begin(k->c, PLAIN_BEGIN, err);
    if (st != PAWL_OK)
        return st;
    tx = k->c;
    /* A read transaction gets its view with its first read. */
    st = lite_number(k->c, SQL_MIGRATION_EXISTS, ARGS(TEXT(BYTES("x"))), 0, &any, err);
    if (st == PAWL_OK)
        st = pages_copy(k, err);
    return st == PAWL_OK ? copy_check(k, err) : st;
}

static enum pawl_status file_sync(const struct backup *b, struct pawl_err *err)
{
    int fd = open(b->path, O_RDWR | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    int why = errno;
    if (fd >= 0)
        close(fd);
    return ok ? PAWL_OK
              : err_set(err, PAWL_BUSY, "backup \"%s\": syncing: %s", b->path, strerror(why));
}

enum pawl_status lite_backup(struct store *s, const struct backup *b, struct pawl_err *err)
{
    struct copy k = { .c = lite_of(s), .b = b };
    enum pawl_status st = file_make(b, err);
    if (st != PAWL_OK)
        return st;
    st = copy_make(&k, err);
    int rc = sqlite3_close(k.to);
    if (st == PAWL_OK && rc != SQLITE_OK)
        st = copy_fail(&(struct copy){ .c = k.c, .b = b }, rc, "closing", err);
    if (st == PAWL_OK)
        st = file_sync(b, err);
    if (st != PAWL_OK)
        unlink(b->path);
    return st;
}
