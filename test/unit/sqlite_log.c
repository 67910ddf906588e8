/*
 * sqlite_log.c - the WAL stays short while writing never stops, and shrinks again after a reader
 * held it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <sys/stat.h>

#include "lite.h"

#define MIB (INT64_C(1) << 20)
/* The writer's limit (32 MiB), the group that exceeds it, and the rounding of the file size. */
#define LOG_LEN_MAX (40 * MIB)

static int64_t log_len(void)
{
    struct stat s;
    return stat("log.db-wal", &s) == 0 ? (int64_t)s.st_size : 0;
}

static void write_mib(struct lite_fixture *r, int mib)
{
    for (int i = 0; i < mib; i += 2) {
        lite_accept_n(r, "t", 200, 10000, 0);
        arena_reset(&r->a);
    }
}

TEST(a_writer_alone_keeps_the_log_short)
{
    struct lite_fixture r;
    lite_fixture_open(&r, "sqlite:log.db", NULL);
    for (int i = 0; i < 6; i++) {
        write_mib(&r, 20);
        LT_INT(log_len(), LOG_LEN_MAX);
    }
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_call"), r.ids);
    lite_fixture_close(&r);
}

/* A reader's old snapshot makes the WAL longer, not wrong; and it does not cost a checkpoint in
 * each commit. */
TEST(a_reader_only_makes_the_log_longer)
{
    struct lite_fixture r, reader;
    lite_fixture_open(&r, "sqlite:log.db", NULL);
    lite_fixture_open(&reader, "sqlite:log.db", NULL);
    lite_accept_n(&r, "t", 1, 1, 0);
    OK(lite_begin(lite_of_fixture(&reader), PLAIN_BEGIN, &reader.err), &reader.err);
    EQ_INT(lite_ask(&reader, "SELECT count(*) FROM pawl_call"), 1);
    write_mib(&r, 50);
    GT_INT(log_len(), LOG_LEN_MAX);
    EQ_INT(lite_ask(&reader, "SELECT count(*) FROM pawl_call"), 1);
    struct lite *tx = lite_of_fixture(&reader);
    lite_undo(&tx);
    write_mib(&r, 10);
    EQ_INT(lite_ask(&reader, "SELECT count(*) FROM pawl_call"), r.ids);
    /* All of it could be copied, so the WAL starts again at its beginning instead of growing. */
    int64_t len = log_len();
    write_mib(&r, 20);
    LE_INT(log_len(), len);
    lite_fixture_close(&reader);
    lite_fixture_close(&r);
}

TEST(tend_copies_beside_the_writer)
{
    struct lite_fixture r, side;
    struct stat before, after;
    lite_fixture_open(&r, "sqlite:log.db", NULL);
    lite_fixture_open(&side, "sqlite:log.db", NULL);
    EQ_INT(stat("log.db", &before), 0);
    write_mib(&r, 10);
    OK(store_tend(side.s, &side.err), &side.err);
    EQ_INT(stat("log.db", &after), 0);
    GT_INT((int64_t)after.st_size, (int64_t)before.st_size + 8 * MIB);
    OK(store_tend(side.s, &side.err), &side.err); /* nothing new: nothing to do */
    lite_fixture_close(&side);
    lite_fixture_close(&r);
}

RUNS_ON(ENGINE_FILE)
