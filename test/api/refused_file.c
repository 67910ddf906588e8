/*
 * refused_file.c - faults of a database file: its disk is full, it is deleted, it is cut short, it
 * is moved away and put back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "heard.h"
#include "web.h"

#define REFUSES "the database refuses writes: "
#define AGAIN "the database stores writes again"

/* grace_s 0: no heartbeat is missed for as long as a case takes. */
static void begin(struct web *w, const char *url, int grace_s)
{
    setenv("PAWL_CHECK_SCALE", "2", 1); /* REFUSED_WAIT_US is 4 s: no longer than necessary */
    heard_begin();
    struct pawl *p = fixture_open_as(
        NULL, (struct pawl_options){ .db = url,
                                     .heartbeat_grace_us = grace_s * FIXTURE_SEC * check_scale() });
    fixture_on(p, "echo", fixture_echo);
    fixture_start(p, 1);
    web_begin_as(w, p, NULL);
    EQ_INT(POST(w, "/v1/calls?wait=30", "{\"type\":\"echo\"}").status, 200);
    EQ_INT(GET(w, "/readyz").status, 200);
}

/* ---- A full disk ----------------------------------------------------------------------------- */

/* A small file system that only this process sees. */
static void small_disk(void)
{
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mkdir("disk", 0700) || mount("none", "disk", "tmpfs", 0, "size=4m"))
        skip("no disk can be mounted here");
}

static void fill_disk(void)
{
    static char block[4096];
    int fd = open("disk/filler", O_WRONLY | O_CREAT, 0600);
    GE_INT(fd, 0);
    while (write(fd, block, sizeof block) == sizeof block)
        ;
    close(fd);
}

TEST(a_full_disk_is_named, .deadline_s = 120)
{
    struct web w;
    static char body[100000];
    snprintf(body, sizeof body, "{\"type\":\"echo\",\"input\":\"%090000d\"}", 7);
    small_disk();
    begin(&w, "sqlite:disk/full.db", 5); /* more than it takes until /readyz says so */
    fill_disk();
    /* The WAL has room for a few small commits. */
    UNTIL(POST(&w, "/v1/calls", body).status == 503 && GET(&w, "/readyz").status == 503);
    HAS_STR(AT(GET(&w, "/readyz"), "reason"), REFUSES);
    HAS_STR(AT(GET(&w, "/readyz"), "reason"), "disk is full");
    HAS_STR(heard_line(REFUSES), "disk is full");
    UNTIL(heard_count("stopping the workers"));
    HAS_STR(heard_line("stopping the workers"), "disk is full");
    EQ_INT(GET(&w, "/readyz").status, 503);
    EQ_INT(heard_count(REFUSES), 1);
    EQ_INT(unlink("disk/filler"), 0);
    UNTIL(GET(&w, "/readyz").status == 200);
    UNTIL(heard_count(AGAIN) == 1);
    EQ_INT(POST(&w, "/v1/calls?wait=30", "{\"type\":\"echo\"}").status, 200);
    web_end(&w);
    heard_end();
}

/* ---- A file that is not there any more ------------------------------------------------------- */

#define MOVED "was moved or deleted while it was in use"

static void is_gone_as(struct web *w, const char *why)
{
    struct web_answer a = POST(w, "/v1/calls", "{\"type\":\"echo\"}");
    EQ_INT(a.status, 503);
    HAS_STR(AT(a, "error.message"), why);
    HAS_STR(AT(a, "error.message"), "gone.db");
    UNTIL(GET(w, "/readyz").status == 503);
    HAS_STR(AT(GET(w, "/readyz"), "reason"), why);
    POST(w, "/v1/calls", "{\"type\":\"echo\"}");
    EQ_INT(heard_count(REFUSES), 1);
    HAS_STR(heard_line(REFUSES), why);
}

static void is_gone(struct web *w)
{
    is_gone_as(w, MOVED);
}

TEST(a_file_that_is_deleted_takes_nothing, .deadline_s = 120)
{
    struct web w;
    begin(&w, "sqlite:gone.db", 0);
    EQ_INT(unlink("gone.db") | unlink("gone.db-wal") | unlink("gone.db-shm"), 0);
    is_gone(&w);
    web_end(&w);
    heard_end();
}

/* Another file under the same name is not the same database. */
TEST(a_file_that_is_replaced_takes_nothing, .deadline_s = 120)
{
    struct web w;
    begin(&w, "sqlite:gone.db", 0);
    EQ_INT(rename("gone.db", "old.db"), 0);
    close(open("gone.db", O_WRONLY | O_CREAT, 0600));
    is_gone(&w);
    web_end(&w);
    heard_end();
}

TEST(a_file_that_is_put_back_is_used_again, .deadline_s = 120)
{
    struct web w;
    begin(&w, "sqlite:gone.db", 0);
    EQ_INT(rename("gone.db", "away.db"), 0);
    is_gone(&w);
    EQ_INT(rename("away.db", "gone.db"), 0);
    UNTIL(GET(&w, "/readyz").status == 200);
    UNTIL(heard_count(AGAIN) == 1);
    EQ_INT(POST(&w, "/v1/calls?wait=30", "{\"type\":\"echo\"}").status, 200);
    web_end(&w);
    heard_end();
    EQ_INT(engine_int("sqlite:gone.db", "SELECT count(*) FROM pawl_call"), 2);
}

/* ---- A file of which a part is gone ---------------------------------------------------------- */

static int64_t file_len(void)
{
    struct stat s;
    return stat("gone.db", &s) == 0 ? (int64_t)s.st_size : -1;
}

/* It was answered 200: SQLite writes into its log, and what is gone is missed by the next one that
 * reads it. */
TEST(a_file_that_is_emptied_takes_nothing, .deadline_s = 120)
{
    struct web w;
    begin(&w, "sqlite:gone.db", 0);
    EQ_INT(truncate("gone.db", 0), 0);
    is_gone_as(&w, "bytes while it was in use; stop the server and restore the file from a backup");
    web_end(&w);
    heard_end();
    EQ_INT(access("gone.db-wal", F_OK), 0);
}

/* Once the log was copied into it. Bytes that come back are not those that were lost. */
TEST(a_file_that_is_cut_takes_nothing, .deadline_s = 120)
{
    struct web w;
    begin(&w, "sqlite:gone.db", 0);
    UNTIL(POST(&w, "/v1/calls", "{\"type\":\"echo\"}").status == 202 && file_len() > 50000);
    EQ_INT(POST(&w, "/v1/calls?wait=30", "{\"type\":\"echo\"}").status, 200);
    EQ_INT(truncate("gone.db", 20000), 0);
    is_gone_as(&w, "to 20000 bytes while it was in use");
    EQ_INT(truncate("gone.db", 10000000), 0);
    EQ_INT(POST(&w, "/v1/calls", "{\"type\":\"echo\"}").status, 503);
    EQ_INT(GET(&w, "/readyz").status, 503);
    web_end(&w);
    heard_end();
}
