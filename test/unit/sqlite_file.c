/*
 * sqlite_file.c - what `pawl doctor` says about a file that cannot be written, and what a handle
 * does with one that was cut short.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli_fixture.h"
#include "lite.h"

/* ---- Writing --------------------------------------------------------------------------------- */

/* The level and the text of the check `writing`, from a handle that is opened for it. */
static void writing_is(const char *url, enum finding_level level, const char *text)
{
    AUTO(store_end) struct store *s = NULL;
    struct arena a;
    struct findings f = { 0 };
    struct pawl_err err = { 0 };
    arena_init(&a, 1 << 20);
    OK(store_open(&(struct store_conf){ .url = url, .role = STORE_READER }, &s, &err), &err);
    OK(store_doctor(s, &a, &f, &err), &err);
    size_t i = 0;
    while (i < f.n && strcmp(f.v[i].name, "writing") != 0)
        i++;
    LT_INT(i, f.n);
    EQ_STR(f.v[i].text, text);
    EQ_INT(f.v[i].level, level);
    arena_release(&a);
}

/* A server holds it open, so its log exists, and SQLite opens it for reading without an error. */
static void served(struct lite_fixture *r, const char *folder)
{
    EQ_INT(mkdir(folder, 0755), 0);
    EQ_INT(chmod(".", 0755), 0);
    lite_fixture_open(r, "sqlite:disk/x.db", NULL);
    EQ_INT(access("disk/x.db-wal", F_OK), 0);
}

TEST(a_file_that_can_be_written_is_said_so)
{
    struct lite_fixture r;
    served(&r, "disk");
    writing_is("sqlite:disk/x.db", FINDING_OK, "the file and its folder can be written");
    lite_fixture_close(&r);
}

TEST(doctor_finds_a_read_only_file_system)
{
    struct lite_fixture r;
    served(&r, "disk");
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("disk", "disk", NULL, MS_BIND, NULL) != 0 ||
        mount(NULL, "disk", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) != 0)
        skip("needs a read-only mount, and may not make one: %s", strerror(errno));
    writing_is("sqlite:disk/x.db", FINDING_BAD,
               "disk/x.db cannot be written: its folder is on a read-only file system; mount it "
               "for writing, or put the database elsewhere");
    EQ_INT(cli_run("doctor --db sqlite:disk/x.db"), 9);
    HAS_STR(cli_out, "disk/x.db cannot be written: its folder is on a read-only file system");
    lite_fixture_close(&r);
}

/* Only the file is on a read-only mount, as containers do it. */
TEST(doctor_finds_a_file_that_is_mounted_read_only)
{
    struct lite_fixture r;
    served(&r, "disk");
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("disk/x.db", "disk/x.db", NULL, MS_BIND, NULL) != 0 ||
        mount(NULL, "disk/x.db", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) != 0)
        skip("needs a read-only mount, and may not make one: %s", strerror(errno));
    writing_is("sqlite:disk/x.db", FINDING_BAD,
               "disk/x.db cannot be written: the file is on a read-only file system; mount it for "
               "writing, or put the database elsewhere");
    lite_fixture_close(&r);
}

/* A file of one server that has ended, opened again when its disk is full. */
TEST(a_full_disk_is_the_reason_at_the_start_too)
{
    static char block[4096];
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mkdir("disk", 0755) != 0 || mount("none", "disk", "tmpfs", 0, "size=4m") != 0)
        skip("needs a disk of its own, and may not mount one: %s", strerror(errno));
    EQ_INT(cli_run("migrate up --db sqlite:disk/x.db"), 0);
    int fd = open("disk/filler", O_WRONLY | O_CREAT, 0600);
    GE_INT(fd, 0);
    while (write(fd, block, sizeof block) == sizeof block)
        ;
    close(fd);
    EQ_INT(cli_run("serve --db sqlite:disk/x.db --listen 127.0.0.1:0"), 6);
    HAS_STR(cli_err_out, "database \"disk/x.db\": opening: the disk is full");
    EQ_INT(unlink("disk/filler"), 0);
    EQ_INT(cli_run("migrate status --db sqlite:disk/x.db"), 0);
}

TEST(a_folder_is_no_database)
{
    static const char *const urls[] = { "sqlite:/", "sqlite:.", "sqlite:disk", "sqlite:disk/" };
    EQ_INT(mkdir("disk", 0755), 0);
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        char command[64];
        snprintf(command, sizeof command, "migrate up --db %s", urls[i]);
        EQ_INT(cli_run(command), 2);
        HAS_STR(cli_err_out, "cannot be opened: it is a folder; name a file in it");
    }
}

/* Root may write every file, so it becomes another user. */
static void as_another_user(bool other)
{
    if (getuid() == 0)
        EQ_INT(seteuid(other ? 65534 : 0), 0);
}

TEST(doctor_finds_files_that_may_not_be_written)
{
    struct lite_fixture r;
    served(&r, "disk");
    EQ_INT(chmod("disk", 0777) | chmod("disk/x.db", 0444) | chmod("disk/x.db-shm", 0444) |
               chmod("disk/x.db-wal", 0444),
           0);
    as_another_user(true);
    writing_is("sqlite:disk/x.db", FINDING_BAD,
               "disk/x.db cannot be written: the file may not be written by this user; change its "
               "owner or its mode");
    as_another_user(false);
    EQ_INT(chmod("disk/x.db", 0666), 0);
    as_another_user(true);
    writing_is("sqlite:disk/x.db", FINDING_BAD,
               "disk/x.db cannot be written: its -wal file may not be written by this user;"
               " change its owner or its mode");
    as_another_user(false);
    EQ_INT(chmod("disk", 0555) | chmod("disk/x.db-wal", 0666) | chmod("disk/x.db-shm", 0666), 0);
    as_another_user(true);
    writing_is("sqlite:disk/x.db", FINDING_BAD,
               "disk/x.db cannot be written: its folder may not be written by this user; change "
               "its owner or its mode");
    as_another_user(false);
    EQ_INT(chmod("disk", 0755), 0);
    lite_fixture_close(&r);
}

/* ---- A file that is cut ---------------------------------------------------------------------- */

static int64_t file_len(void)
{
    struct stat s;
    return stat("cut.db", &s) == 0 ? (int64_t)s.st_size : -1;
}

/* Calls of some 2 MiB, all of them copied from the log into the file, and looked at by r. */
static void filled(struct lite_fixture *r)
{
    lite_fixture_open(r, "sqlite:cut.db", NULL);
    lite_accept_n(r, "t", 200, 10000, 0);
    cli_sql("cut.db", "PRAGMA wal_checkpoint(TRUNCATE)");
    GT_INT(file_len(), 2000000);
    lite_accept_n(r, "t", 1, 1, 0);
}

static enum pawl_status accept_one(struct lite_fixture *r, const char *id, struct op *op)
{
    struct call_spec *s = arena_zalloc(&r->a, 1, sizeof *s);
    call_spec_init(s);
    s->id = bytes_of(id);
    s->type = BYTES("t");
    OK(call_spec_settle(&r->a, &world_real, s, &r->err), &r->err);
    *op = (struct op){ .kind = OP_ACCEPT, .a = &r->a, .accept = { .v = s, .n = 1 } };
    struct op *one = op;
    return store_commit(r->s, &one, 1);
}

static void is_refused(struct lite_fixture *r)
{
    struct op op;
    EQ_STATUS(accept_one(r, "late", &op), PAWL_BUSY, &op.err);
    HAS_STR(op.err.text, "database \"cut.db\": the file was cut from ");
    HAS_STR(op.err.text, " bytes while it was in use; stop the server and restore the file from a "
                         "backup");
}

/* Also when the file is long enough again: what it had is gone. */
TEST(a_cut_file_takes_nothing_more)
{
    struct lite_fixture r;
    filled(&r);
    EQ_INT(truncate("cut.db", 100000), 0);
    is_refused(&r);
    EQ_INT(truncate("cut.db", 10000000), 0);
    is_refused(&r);
    lite_fixture_close(&r);
    EQ_INT(access("cut.db-wal", F_OK), 0); /* may be all that is left */
}

TEST(an_emptied_file_takes_nothing_more)
{
    struct lite_fixture r;
    filled(&r);
    EQ_INT(truncate("cut.db", 0), 0);
    is_refused(&r);
    lite_fixture_close(&r);
}

/* Without our own memory of its pages, SQLite says "file is not a database". */
TEST(what_sqlite_finds_in_a_cut_file_is_not_called_damage)
{
    struct lite_fixture r;
    struct get g = { .ids = (struct bytes[]){ BYTES("i1") }, .n = 1 };
    filled(&r);
    cli_sql("cut.db", "UPDATE pawl_meta SET value = value; PRAGMA wal_checkpoint(TRUNCATE)");
    EQ_INT(truncate("cut.db", 0), 0);
    EQ_STATUS(store_get(r.s, &r.a, &g, &r.err), PAWL_BUSY, &r.err);
    HAS_STR(r.err.text, "the file was cut from ");
    is_refused(&r);
    lite_fixture_close(&r);
}

/* A checkpoint would make the file as long as before, with zeros in it. */
TEST(the_log_is_not_copied_into_a_cut_file)
{
    struct lite_fixture r, side;
    filled(&r);
    lite_fixture_open(&side, "sqlite:cut.db", NULL);
    lite_accept_n(&side, "t", 1, 1, 0);
    lite_accept_n(&r, "t", 100, 1000, 0);
    EQ_INT(truncate("cut.db", 50000), 0);
    EQ_STATUS(store_tend(side.s, &side.err), PAWL_BUSY, &side.err);
    HAS_STR(side.err.text, "to 50000 bytes while it was in use");
    EQ_INT(file_len(), 50000);
    is_refused(&r);
    lite_fixture_close(&side);
    lite_fixture_close(&r);
    EQ_INT(file_len(), 50000);
}

/* VACUUM makes the file shorter, and its header says so. */
TEST(a_file_that_became_smaller_is_not_cut)
{
    struct lite_fixture r;
    filled(&r);
    int64_t before = file_len();
    cli_sql("cut.db", "UPDATE pawl_call SET input = NULL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
    LT_INT(file_len(), before / 2);
    lite_accept_n(&r, "t", 300, 10000, 0);
    cli_sql("cut.db", "PRAGMA wal_checkpoint(TRUNCATE)");
    lite_accept_n(&r, "t", 1, 1, 0);
    GT_INT(file_len(), before);
    lite_fixture_close(&r);
}
