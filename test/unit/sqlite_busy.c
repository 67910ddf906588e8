/*
 * sqlite_busy.c - waiting for the single write lock: with a timeout, and nothing is lost with
 * several processes on one file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lite.h"

#define WRITERS 3
#define ROUNDS 30

TEST(a_lock_that_is_not_let_go_is_busy)
{
    struct lite_fixture holder, r;
    lite_fixture_open(&holder, "sqlite:busy.db", NULL);
    lite_fixture_open(&r, "sqlite:busy.db", NULL);
    OK(lite_begin(lite_of_fixture(&holder), PLAIN_BEGIN_WRITE, &holder.err), &holder.err);
    struct op op = { .kind = OP_PAUSE, .a = &r.a, .pause = { BYTES("q"), true } }, *v = &op;
    int64_t begun = world_mono(&world_real);
    EQ_STATUS(r.s->ops->commit(r.s, &v, 1, &r.err), PAWL_BUSY, NULL);
    int64_t took = world_mono(&world_real) - begun;
    GT_INT(took, 1500 * MS_US);
    LT_INT(took, 15 * SEC_US * check_scale());
    HAS_STR(r.err.text, "busy.db");
    struct lite *tx = lite_of_fixture(&holder);
    lite_undo(&tx);
    OK(r.s->ops->commit(r.s, &v, 1, &r.err), &r.err);
    lite_fixture_close(&r);
    lite_fixture_close(&holder);
}

/* Accept, claim and finish at the same time, from several processes. */
static void work(int me)
{
    struct lite_fixture r;
    lite_fixture_open(&r, "sqlite:busy.db", NULL);
    r.ids = me * 1000000;
    for (int i = 0; i < ROUNDS; i++) {
        lite_accept_n(&r, "t", 20, 10, 0);
        struct op op = { .kind = OP_CLAIM,
                         .claim = { .token = token_make(&world_real),
                                    .node = BYTES("n"),
                                    .boot = BYTES("b"),
                                    .max = 20 } };
        OK(lite_one(&r, &op), &op.err);
        for (size_t k = 0; k < op.claim.n; k++)
            OK(lite_finish_seq(&r, op.claim.token, op.claim.calls[k].seq), NULL);
    }
    lite_fixture_close(&r);
}

TEST(processes_share_a_file, .deadline_s = 120)
{
    struct lite_fixture r;
    lite_fixture_open(&r, "sqlite:busy.db", NULL);
    lite_fixture_close(&r);
    for (int i = 0; i < WRITERS; i++) {
        pid_t child = fork();
        TRUE(child >= 0);
        if (child == 0) {
            work(i);
            _exit(0);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        TRUE(wait(&status) > 0);
        EQ_INT(status, 0);
    }
    lite_fixture_open(&r, "sqlite:busy.db", NULL);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_call"), WRITERS * ROUNDS * 20);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_outcome"), WRITERS * ROUNDS * 20);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_ready"), 0);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_lease"), 0);
    lite_fixture_close(&r);
}

TEST(version_changes_when_another_connection_commits)
{
    struct lite_fixture a, b;
    int64_t first, second;
    lite_fixture_open(&a, "sqlite:busy.db", NULL);
    lite_fixture_open(&b, "sqlite:busy.db", NULL);
    OK(store_version(a.s, &first, &a.err), &a.err);
    OK(store_version(a.s, &second, &a.err), &a.err);
    EQ_INT(first, second);
    lite_accept_n(&b, "t", 1, 1, 0);
    OK(store_version(a.s, &second, &a.err), &a.err);
    NE_INT(first, second);
    lite_fixture_close(&b);
    lite_fixture_close(&a);
}

RUNS_ON(ENGINE_FILE)
