/*
 * sqlite_memory.c - each allocation inside SQLite fails in turn: the group is stored or it is not,
 * and the connection still works.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <unistd.h>

#include "lite.h"

#define ALLOCATIONS_MAX 5000

static sqlite3_mem_methods real;
static int64_t fail_at, asked;

static void *failing_malloc(int n)
{
    return ++asked == fail_at ? NULL : real.xMalloc(n);
}

static void *failing_realloc(void *p, int n)
{
    return ++asked == fail_at ? NULL : real.xRealloc(p, n);
}

static void torture_on(void)
{
    EQ_INT(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real), SQLITE_OK);
    sqlite3_mem_methods mine = real;
    mine.xMalloc = failing_malloc;
    mine.xRealloc = failing_realloc;
    EQ_INT(sqlite3_config(SQLITE_CONFIG_MALLOC, &mine), SQLITE_OK);
}

/* Accept, claim and finish in one group; a retry too, so that every kind of row is written. */
static enum pawl_status group(struct lite_fixture *r, struct token held, int64_t seq)
{
    static const struct tag tag = { { "k", 1 }, { "v", 1 } };
    struct call_spec s;
    call_spec_init(&s);
    s.id = BYTES("fresh");
    s.type = BYTES("another type");
    s.tags = &tag;
    s.n_tags = 1;
    OK(call_spec_settle(&r->a, &world_real, &s, &r->err), &r->err);
    struct finish_item item = { .seq = seq, .how = END_ERROR, .error = BYTES("x") };
    struct op accept = { .kind = OP_ACCEPT, .a = &r->a, .accept = { .v = &s, .n = 1 } };
    struct op finish = { .kind = OP_FINISH,
                         .a = &r->a,
                         .finish = { .token = held, .v = &item, .n = 1 } };
    struct op claim = {
        .kind = OP_CLAIM,
        .a = &r->a,
        .claim = { .token = { { 9 } }, .node = BYTES("n"), .boot = BYTES("b"), .max = 2 }
    };
    struct op *v[] = { &finish, &accept, &claim };
    return r->s->ops->commit(r->s, v, 3, &r->err);
}

TEST(whichever_allocation_fails, .deadline_s = 120)
{
    int64_t at;
    torture_on();
    for (at = 1; at < ALLOCATIONS_MAX; at += check_long() ? 1 : 7) {
        struct lite_fixture r;
        unlink("memory.db");
        lite_fixture_open(&r, "sqlite:memory.db", NULL);
        lite_accept_n(&r, "t", 3, 1, 0);
        struct op held = lite_claim_of(&r, "t", 2, 1);
        asked = 0;
        fail_at = at;
        enum pawl_status st = group(&r, held.claim.token, held.claim.calls[0].seq);
        bool reached = asked >= at;
        fail_at = 0;
        TRUE(st == PAWL_OK || st == PAWL_NO_MEMORY);
        int64_t done = lite_ask(&r, "SELECT count(*) FROM pawl_attempt");
        EQ_INT(done, st == PAWL_OK);
        EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_call"), 3 + done);
        EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_lease"), 1 + done);
        if (st != PAWL_OK)
            OK(group(&r, held.claim.token, held.claim.calls[0].seq), &r.err);
        lite_fixture_close(&r);
        if (!reached)
            break;
    }
    LT_INT(at, ALLOCATIONS_MAX);
}

RUNS_ON(ENGINE_FILE)
