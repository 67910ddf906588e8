/*
 * doctor.c - how healthy a database file is: settings, sizes, room on its disk, SQLite's own check.
 *
 * Everything here only reads. The check of the file runs on a read-only connection of its own, for
 * a bounded time, so that no writer has to wait for it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "store/sqlite/engine.h"

/* A log this long: a reader keeps it from starting over, or no process copies it. */
#define LOG_WARN_LEN (INT64_C(256) << 20)
/* Below the first a group of calls may not fit; below the second an operator should act soon. */
#define ROOM_BAD_LEN (INT64_C(64) << 20)
#define ROOM_WARN_LEN (INT64_C(1) << 30)
/* How long the file's own check may take; a large file is checked in part. */
#define CHECK_US (3 * SEC_US)
#define CHECK_STEPS 10000

static void size_text(int64_t len, char out[32])
{
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
    double n = (double)len;
    size_t u = 0;
    while (n >= 1024 && u + 1 < COUNT_OF(units)) {
        n /= 1024;
        u++;
    }
    snprintf(out, 32, u ? "%.1f %s" : "%.0f %s", n, units[u]);
}

/* ---- Settings -------------------------------------------------------------------------------- */

/* The first column of the first row as text; "" when there is none. */
static void pragma_text(sqlite3 *db, const char *sql, char *out, size_t size)
{
    sqlite3_stmt *q = NULL;
    out[0] = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        snprintf(out, size, "%s", (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
}

static void look_at_settings(struct led_visit *v)
{
    char mode[32], sync[32], page[32];
    pragma_text(lite_in(v->c)->db, "PRAGMA journal_mode", mode, sizeof mode);
    pragma_text(lite_in(v->c)->db, "PRAGMA synchronous", sync, sizeof sync);
    pragma_text(lite_in(v->c)->db, "PRAGMA page_size", page, sizeof page);
    bool wal = strcmp(mode, "wal") == 0;
    bool full = strcmp(sync, "2") == 0 || strcmp(sync, "3") == 0;
    led_found(v, FINDING_OK, "sqlite", "%s (built with %s)", sqlite3_libversion(), SQLITE_VERSION);
    led_found(v, wal ? FINDING_OK : FINDING_BAD, "journal_mode", wal ? "%s" : "%s; Pawl needs wal",
              mode);
    led_found(v, full ? FINDING_OK : FINDING_BAD, "synchronous", "%s",
              full ? "full" : "not full: an accepted call may be lost with the power");
    led_found(v, FINDING_OK, "isolation", "serializable: one writer at a time");
    led_found(v, FINDING_OK, "page_size", "%s bytes", page);
}

/* ---- The file and its disk ------------------------------------------------------------------- */

static int64_t file_len(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? (int64_t)s.st_size : -1;
}

static void look_at_file(struct led_visit *v)
{
    char text[32], unused[32], log_text[32];
    const char *log_path = arena_printf(v->a, "%s-wal", lite_in(v->c)->path);
    int64_t len = file_len(lite_in(v->c)->path), log_len = log_path ? file_len(log_path) : -1;
    pragma_text(lite_in(v->c)->db, "PRAGMA freelist_count", unused, sizeof unused);
    size_text(MAX(len, 0), text);
    size_text(MAX(log_len, 0), log_text);
    led_found(v, FINDING_OK, "file", "%s, %s, %s unused pages", lite_in(v->c)->path, text, unused);
    if (log_len > LOG_WARN_LEN)
        led_found(v, FINDING_WARN, "log",
                  "%s: a connection that reads for long keeps it from shrinking", log_text);
    else
        led_found(v, FINDING_OK, "log", "%s", log_text);
}

/* SQLite opens a file that it may not write for reading, without a word. */
static void look_at_writing(struct led_visit *v)
{
    struct lite *c = lite_in(v->c);
    char why[200];
    if (lite_unwritable(c->path, why, sizeof why))
        led_found(v, FINDING_BAD, "writing", "%s cannot be written: %s", c->path, why);
    else if (sqlite3_db_readonly(c->db, "main") == 1)
        led_found(v, FINDING_BAD, "writing",
                  "%s can only be read; change its owner or mode, or mount its disk for writing",
                  c->path);
    else
        led_found(v, FINDING_OK, "writing", "the file and its folder can be written");
}

static void look_at_disk(struct led_visit *v)
{
    struct statvfs room;
    char text[32];
    if (statvfs(lite_in(v->c)->path, &room) != 0)
        return;
    int64_t left = (int64_t)room.f_bavail * (int64_t)room.f_frsize;
    size_text(left, text);
    enum finding_level level = left < ROOM_BAD_LEN    ? FINDING_BAD
                               : left < ROOM_WARN_LEN ? FINDING_WARN
                                                      : FINDING_OK;
    led_found(v, level, "disk", "%s free%s", text, level == FINDING_OK ? "" : ": make room");
}

/* A WAL needs memory that processes share, which a network file system does not offer. */
static void look_at_mount(struct led_visit *v)
{
    static const struct {
        unsigned type;
        const char *name;
    } remote[] = {
        { 0x6969, "NFS" }, { 0xff534d42, "CIFS" }, { 0xfe534d42, "SMB2" },
        { 0x517b, "SMB" }, { 0x01021997, "9p" },
    };
    struct statfs fs;
    if (statfs(lite_in(v->c)->path, &fs) != 0)
        return;
    for (size_t i = 0; i < COUNT_OF(remote); i++)
        if ((unsigned)fs.f_type == remote[i].type)
            led_found(v, FINDING_BAD, "mount", "the file is on %s; SQLite needs a local disk",
                      remote[i].name);
}

/* ---- Its own check --------------------------------------------------------------------------- */

/* By the real clock: a test's may stand still. */
static int check_late(void *ctx)
{
    return world_mono(&world_real) > *(int64_t *)ctx;
}

static void quick_check(struct led_visit *v, sqlite3 *db)
{
    sqlite3_stmt *q = NULL;
    int64_t until_us = world_mono(&world_real) + CHECK_US;
    sqlite3_progress_handler(db, CHECK_STEPS, check_late, &until_us);
    int rc = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;
    if (text && strcmp(text, "ok") == 0)
        led_found(v, FINDING_OK, "integrity", "ok");
    else if (text)
        led_found(v, FINDING_BAD, "integrity", "%.300s", text);
    else if ((rc & 0xff) == SQLITE_INTERRUPT)
        led_found(v, FINDING_OK, "integrity",
                  "nothing wrong found in %d s, the rest was not looked at",
                  (int)(CHECK_US / SEC_US));
    else if ((rc & 0xff) == SQLITE_BUSY)
        led_found(v, FINDING_WARN, "integrity", "not checked: the database is busy");
    else
        led_found(v, FINDING_BAD, "integrity", "%.300s", sqlite3_errmsg(db));
    sqlite3_finalize(q);
}

static void look_inside(struct led_visit *v)
{
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(lite_in(v->c)->path, &db, flags, NULL) == SQLITE_OK)
        quick_check(v, db);
    else
        led_found(v, FINDING_WARN, "integrity", "not checked: %.300s",
                  db ? sqlite3_errmsg(db) : "?");
    sqlite3_close(db);
}

static enum pawl_status look(struct led_visit *v, struct pawl_err *err)
{
    (void)err;
    look_at_settings(v);
    look_at_file(v);
    look_at_writing(v);
    look_at_disk(v);
    look_at_mount(v);
    look_inside(v);
    return PAWL_OK;
}

enum pawl_status lite_doctor(struct store *s, struct arena *a, struct findings *out,
                             struct pawl_err *err)
{
    return led_doctor(&(struct led_visit){ led_of(s), a, out }, look, err);
}
