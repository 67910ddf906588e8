/*
 * sqlite_backup.c - a copy of an SQLite file that is in use: consistent, complete, and never over
 * another file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lite.h"

#define GROUP 10

static int64_t ask_file(const char *path, const char *sql)
{
    struct lite_fixture r;
    char url[64];
    snprintf(url, sizeof url, "sqlite:%s", path);
    lite_fixture_open(&r, url, NULL);
    int64_t n = lite_ask(&r, sql);
    lite_fixture_close(&r);
    return n;
}

struct seen {
    int64_t calls, done, total;
};

static void count(void *ctx, int64_t done, int64_t total)
{
    struct seen *s = ctx;
    TRUE(done >= s->done && done <= total);
    *s = (struct seen){ s->calls + 1, done, total };
}

TEST(a_copy_has_everything_and_its_own_file)
{
    struct lite_fixture r;
    struct seen seen = { 0 };
    lite_fixture_open(&r, "sqlite:from.db", NULL);
    lite_accept_n(&r, "t", 500, 40000, 0); /* several steps of pages */
    struct backup b = { .path = "to.db", .progress = count, .ctx = &seen };
    OK(store_backup(r.s, &b, &r.err), &r.err);
    GT_INT(seen.calls, 1);
    EQ_INT(seen.done, seen.total);
    struct stat s;
    EQ_INT(stat("to.db", &s), 0);
    EQ_INT(s.st_mode & 0777, 0600);
    NE_INT(access("to.db-wal", F_OK), 0);
    NE_INT(access("to.db-journal", F_OK), 0);
    EQ_INT(ask_file("to.db", "SELECT count(*) FROM pawl_call"), 500);
    /* The handle works afterwards as before. */
    lite_accept_n(&r, "t", 1, 1, 0);
    lite_fixture_close(&r);
}

TEST(a_copy_overwrites_nothing)
{
    struct lite_fixture r;
    lite_fixture_open(&r, "sqlite:from.db", NULL);
    FILE *f = fopen("mine", "w");
    TRUE(f && fputs("mine", f) >= 0 && fclose(f) == 0);
    struct backup b = { .path = "mine" };
    EQ_STATUS(store_backup(r.s, &b, &r.err), PAWL_INVALID, &r.err);
    HAS_STR(r.err.text, "backup \"mine\": the file is there already");
    struct stat s;
    EQ_INT(stat("mine", &s), 0);
    EQ_INT(s.st_size, 4);
    b.path = "no/such/folder/x";
    EQ_STATUS(store_backup(r.s, &b, &r.err), PAWL_INVALID, &r.err);
    HAS_STR(r.err.text, "No such file");
    lite_fixture_close(&r);
}

/* Damage is reported, and no file is left that looks like a backup. */
TEST(a_damaged_file_makes_no_backup)
{
    struct lite_fixture r;
    lite_fixture_open(&r, "sqlite:from.db", NULL);
    lite_accept_n(&r, "t", 50, 100, 0);
    sqlite3_exec(lite_of_fixture(&r)->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    lite_fixture_close(&r);
    FILE *f = fopen("from.db", "r+");
    TRUE(f && fseek(f, 5 * 4096, SEEK_SET) == 0);
    for (int i = 0; i < 4096; i++)
        fputc(0x5a, f);
    fclose(f);
    struct store *s = NULL;
    struct pawl_err err;
    OK(store_open(&(struct store_conf){ .url = "sqlite:from.db" }, &s, &err), &err);
    EQ_STATUS(store_backup(s, &(struct backup){ .path = "to.db" }, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, "to.db");
    NE_INT(access("to.db", F_OK), 0);
    store_close(s);
}

/* ---- While others write ---------------------------------------------------------------------- */

static atomic_int accepted;
static atomic_bool enough;

static void *write_on(void *arg)
{
    struct lite_fixture r;
    (void)arg;
    lite_fixture_open(&r, "sqlite:busy.db", NULL);
    while (!atomic_load(&enough)) {
        lite_accept_n(&r, "t", GROUP, 5000, 0); /* one commit */
        atomic_fetch_add(&accepted, GROUP);
    }
    lite_fixture_close(&r);
    return NULL;
}

TEST(a_copy_is_of_one_moment_while_others_write)
{
    struct lite_fixture r;
    pthread_t writer;
    lite_fixture_open(&r, "sqlite:busy.db", NULL);
    EQ_INT(pthread_create(&writer, NULL, write_on, NULL), 0);
    for (int i = 0; i < 4; i++) {
        char path[32];
        snprintf(path, sizeof path, "copy-%d.db", i);
        int before = atomic_load(&accepted);
        while (atomic_load(&accepted) < before + 50 * GROUP) /* it does write */
            usleep(1000);
        before = atomic_load(&accepted);
        OK(store_backup(r.s, &(struct backup){ .path = path }, &r.err), &r.err);
        int64_t n = ask_file(path, "SELECT count(*) FROM pawl_call");
        GE_INT(n, before); /* everything that was accepted when it began */
        EQ_INT(n % GROUP, 0);
        EQ_INT(ask_file(path, "SELECT count(*) FROM pawl_ready"), n);
        EQ_INT(ask_file(path, "SELECT value FROM pawl_meta WHERE name = 'seq'"), n);
    }
    atomic_store(&enough, true);
    EQ_INT(pthread_join(writer, NULL), 0);
    lite_fixture_close(&r);
}

TEST(what_is_no_file_is_not_copied)
{
    struct store *s = NULL;
    struct pawl_err err;
    OK(store_open(&(struct store_conf){ .url = "mem:x" }, &s, &err), &err);
    EQ_STATUS(store_backup(s, &(struct backup){ .path = "to.db" }, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "engine \"mem\"");
    store_close(s);
}

RUNS_ON(ENGINE_FILE)
