/*
 * file.c - what the file system says about the database file: may it be written, is it still where
 * it was opened, is all of it still there.
 *
 * SQLite notices none of that: it opens a file that it may not write for reading, and goes on
 * writing into one that was deleted, or of which only a part is left. What must stay true: nothing
 * is committed, and no part of the log is copied, into such a file.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "store/sqlite/engine.h"

/* ---- Where it was opened, and whole ---------------------------------------------------------- */

/* Of the file's header: where the size of a page, the number of pages and the two counters are that
 * say whether that number is valid. */
#define HEADER_LEN 100
#define AT_PAGE_LEN 16
#define AT_CHANGES 24
#define AT_PAGES 28
#define AT_VALID_FOR 92

static int64_t big_endian(const unsigned char *at, int n)
{
    int64_t v = 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | at[i];
    return v;
}

/* How long the file is by its own header; 0: the header does not say; -1: there is no header. */
static int64_t len_by_header(sqlite3_file *f)
{
    unsigned char h[HEADER_LEN];
    if (f->pMethods->xRead(f, h, sizeof h, 0) != SQLITE_OK || memcmp(h, "SQLite format 3", 16) != 0)
        return -1;
    int64_t page_len = big_endian(h + AT_PAGE_LEN, 2);
    if (memcmp(h + AT_CHANGES, h + AT_VALID_FOR, 4) != 0)
        return 0;
    return big_endian(h + AT_PAGES, 4) * (page_len == 1 ? 65536 : page_len);
}

/* Was the file cut short while it was open? It also becomes shorter when another program has run
 * VACUUM; its header then agrees. Once true it stays true: the next checkpoint would make the file
 * as long as before, with zeros in place of what was lost. */
static bool was_cut(struct lite *c)
{
    sqlite3_file *f = NULL;
    sqlite3_int64 len = 0;
    if (c->file_cut)
        return true;
    if (sqlite3_file_control(c->db, "main", SQLITE_FCNTL_FILE_POINTER, &f) != SQLITE_OK || !f ||
        !f->pMethods || f->pMethods->xFileSize(f, &len) != SQLITE_OK)
        return false;
    int64_t full = len < c->file_len ? len_by_header(f) : 0;
    c->file_cut = full < 0 || full > len;
    if (c->file_cut)
        c->file_left = len;
    else
        c->file_len = len;
    return c->file_cut;
}

enum pawl_status lite_intact(struct lite *c, struct pawl_err *err)
{
    int moved = 0;
    int rc = sqlite3_file_control(c->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (rc == SQLITE_OK && moved)
        return err_set(err, PAWL_BUSY,
                       "database \"%s\": the file was moved or deleted while it was in use; put it "
                       "back, or restart the server",
                       c->path);
    if (was_cut(c))
        return err_set(err, PAWL_BUSY,
                       "database \"%s\": the file was cut from %lld to %lld bytes while it was in "
                       "use; stop the server and restore the file from a backup",
                       c->path, (long long)c->file_len, (long long)c->file_left);
    return PAWL_OK;
}

/* ---- May it be written? ---------------------------------------------------------------------- */

#define READ_ONLY_DISK                                                                             \
    "is on a read-only file system; mount it for writing, or put the database elsewhere"

/* What hinders this user from writing at a path that exists; NULL: nothing. */
static const char *hindrance(const char *path, int how)
{
    if (faccessat(AT_FDCWD, path, how, AT_EACCESS) == 0 || errno == ENOENT)
        return NULL;
    return errno == EROFS   ? READ_ONLY_DISK
           : errno == EPERM ? "may not be changed by any user; chattr -i allows it"
                            : "may not be written by this user; change its owner or its mode";
}

static void folder_of(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(out, size, "%.*s", slash ? (int)(slash - path) + (slash == path) : 1,
             slash ? path : ".");
}

bool lite_disk_full(const char *path)
{
    char folder[4096];
    struct statvfs disk;
    folder_of(path, folder, sizeof folder);
    return statvfs(folder, &disk) == 0 && disk.f_blocks > 0 && disk.f_bavail == 0;
}

bool lite_unwritable(const char *path, char *out, size_t size)
{
    static const char *const files[][2] = { { "", "the file" },
                                            { "-wal", "its -wal file" },
                                            { "-shm", "its -shm file" } };
    char folder[4096], file[4096];
    struct statvfs disk;
    struct stat is;
    if (stat(path, &is) == 0 && S_ISDIR(is.st_mode)) {
        snprintf(out, size, "it is a folder; name a file in it");
        return true;
    }
    folder_of(path, folder, sizeof folder);
    if (statvfs(folder, &disk) != 0) {
        snprintf(out, size, "its folder %s",
                 errno == ENOENT ? "does not exist" : "is not a folder");
        return errno == ENOENT || errno == ENOTDIR;
    }
    const char *why = disk.f_flag & ST_RDONLY ? READ_ONLY_DISK : hindrance(folder, W_OK | X_OK);
    if (why) {
        snprintf(out, size, "its folder %s", why);
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        snprintf(file, sizeof file, "%.4000s%s", path, files[i][0]);
        why = hindrance(file, W_OK);
        if (why) {
            snprintf(out, size, "%s %s", files[i][1], why);
            return true;
        }
    }
    return false;
}
