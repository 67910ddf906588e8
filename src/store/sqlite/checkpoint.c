/*
 * checkpoint.c - keeping the log short: copying what it holds into the file, mostly beside the
 * writer.
 *
 * There are two parts. `tend` copies in the background on a connection of its own, which is most of
 * the work. But only a writer that finds all of the log copied starts it over, and under continuous
 * writing the background copy is always one commit late: so when the log is longer than
 * LOG_PAGES_MAX the writer copies the short rest itself, between two commits. Both checkpoints are
 * PASSIVE: they wait for no other connection, and a reader with an old view only makes the log
 * longer.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "store/sqlite/engine.h"

/* 32 MiB of 4 KiB pages: some forty groups of 1,000 calls, and still found in memory by the
 * readers. */
#define LOG_PAGES_MAX 8192
/* After a copy that a reader or another copy kept from ending: try again so many pages later. */
#define LOG_PAGES_STEP 1024
/* Pages to copy at a time in the background: enough to be worth two fsyncs. */
#define TEND_PAGES 2048
#define TEND_GAP_MIN_US (20 * MS_US)
#define TEND_GAP_MAX_US (2 * SEC_US)

static int committed(void *ctx, sqlite3 *db, const char *name, int pages)
{
    struct lite *c = ctx;
    (void)db;
    (void)name;
    c->wal_pages = pages;
    return SQLITE_OK;
}

void lite_checkpoint_init(struct lite *c)
{
    c->wal_next = LOG_PAGES_MAX;
    c->tend_gap_us = TEND_GAP_MIN_US;
    c->tend_version = -1;
    sqlite3_wal_hook(c->db, committed, c);
}

void lite_bound_log(struct lite *c)
{
    int log = 0, copied = 0;
    if (c->wal_pages < LOG_PAGES_MAX)
        c->wal_next = LOG_PAGES_MAX; /* it started over */
    if (c->wal_pages < c->wal_next)
        return;
    CRASH_POINT("checkpoint.before");
    int rc = sqlite3_wal_checkpoint_v2(c->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &log, &copied);
    CRASH_POINT("checkpoint.after");
    /* After an error the log still has everything: it is copied later. */
    bool whole = rc == SQLITE_OK && log == copied;
    c->wal_next = whole ? LOG_PAGES_MAX : c->wal_pages + LOG_PAGES_STEP;
}

/* Come back sooner when much was waiting, later when little was. */
static void next_gap(struct lite *c, int waited)
{
    if (waited > TEND_PAGES)
        c->tend_gap_us = MAX(c->tend_gap_us / 2, TEND_GAP_MIN_US);
    else if (waited < TEND_PAGES / 2)
        c->tend_gap_us = MIN(c->tend_gap_us * 2, TEND_GAP_MAX_US);
}

enum pawl_status lite_tend(struct store *s, struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    int64_t version, now = world_mono(c->ledger.world);
    int log = 0, copied = 0;
    if (now < c->tend_at)
        return PAWL_OK;
    enum pawl_status st = lite_version(s, &version, err);
    if (st != PAWL_OK || version == c->tend_version)
        return st; /* no commit since: nothing to copy */
    st = lite_intact(c, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("checkpoint.tend");
    int rc = sqlite3_wal_checkpoint_v2(c->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &log, &copied);
    if ((rc & 0xff) == SQLITE_BUSY)
        return PAWL_OK; /* another connection is copying */
    if (rc != SQLITE_OK)
        return lite_fail(c, rc, LED_PHASE("checkpoint"), err);
    next_gap(c, log >= c->tend_copied ? log - c->tend_copied : log);
    c->tend_copied = copied;
    c->tend_version = version;
    c->tend_at = now + c->tend_gap_us;
    return PAWL_OK;
}
