/*
 * sqlite_lease.c - the lease cache of a connection, when others change leases and when there are
 * too many.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lite.h"

TEST(two_connections_end_one_lease_by_turns)
{
    struct lite_fixture a, b;
    lite_fixture_open(&a, "sqlite:lease.db", NULL);
    lite_fixture_open(&b, "sqlite:lease.db", NULL);
    lite_accept_n(&a, "t", 8, 1, 0);
    struct op op = lite_claim_of(&a, "t", 8, 1);
    EQ_INT(op.claim.n, 8);
    for (int i = 0; i < 8; i++)
        OK(lite_finish_seq(i % 2 ? &b : &a, op.claim.token, op.claim.calls[i].seq), NULL);
    EQ_INT(lite_ask(&a, "SELECT count(*) FROM pawl_outcome"), 8);
    EQ_INT(lite_ask(&a, "SELECT count(*) FROM pawl_lease"), 0);
    lite_fixture_close(&b);
    lite_fixture_close(&a);
}

TEST(more_leases_than_are_remembered)
{
    struct lite_fixture r;
    lite_fixture_open(&r, "sqlite:lease.db", NULL);
    const int n = 150;
    led_cache_max = 100; /* calls, two of each lease */
    struct token *tokens = arena_zalloc(&r.a, (size_t)n, sizeof *tokens);
    int64_t *seqs = arena_zalloc(&r.a, (size_t)n, sizeof *seqs);
    lite_accept_n(&r, "t", 2 * n, 1, 0);
    for (int i = 0; i < n; i++) {
        struct op op = { .kind = OP_CLAIM,
                         .claim = { .token = token_make(&world_real),
                                    .node = BYTES("n1"),
                                    .boot = BYTES("b1"),
                                    .max = 2 } };
        OK(lite_one(&r, &op), &op.err);
        EQ_INT(op.claim.n, 2);
        tokens[i] = op.claim.token;
        seqs[i] = op.claim.calls[0].seq;
        OK(lite_finish_seq(&r, tokens[i], op.claim.calls[1].seq), NULL);
    }
    LE_INT(led_of(r.s)->lease_cache.n, led_cache_max);
    for (int i = 0; i < n; i++)
        OK(lite_finish_seq(&r, tokens[i], seqs[i]), NULL);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_outcome"), 2 * n);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_lease"), 0);
    lite_fixture_close(&r);
}

/* When a group is rolled back its cache entries go too: the outcome is not stored, so it is not
 * cached. */
TEST(an_undone_group_is_forgotten)
{
    struct lite_fixture r;
    lite_fixture_open(&r, "sqlite:lease.db", NULL);
    lite_accept_n(&r, "t", 2, 1, 0);
    struct op claim = lite_claim_of(&r, "t", 2, 1);
    struct finish_item item = { .seq = claim.claim.calls[0].seq, .how = END_RESULT };
    struct op finish = { .kind = OP_FINISH,
                         .a = &r.a,
                         .finish = { .token = claim.claim.token, .v = &item, .n = 1 } };
    struct op bad = { .kind = OP_COUNT, .a = &r.a };
    struct op *v[] = { &finish, &bad };
    EQ_STATUS(r.s->ops->commit(r.s, v, 2, &r.err), PAWL_INVALID, NULL);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_outcome"), 0);
    OK(lite_finish_seq(&r, claim.claim.token, item.seq), NULL);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_outcome"), 1);
    lite_fixture_close(&r);
}

/* Inconsistent data stops the operation, and the error names it. */
TEST(a_call_in_two_places_is_broken)
{
    struct lite_fixture r;
    lite_fixture_open(&r, "sqlite:lease.db", NULL);
    lite_accept_n(&r, "t", 1, 1, 0);
    struct op claim = lite_claim_of(&r, "t", 1, 1);
    int64_t seq = claim.claim.calls[0].seq;
    OK(lite_finish_seq(&r, claim.claim.token, seq), NULL);
    lite_ask(&r, "INSERT INTO pawl_ready VALUES (1, 2, 0, 0, 0, 0, 0) RETURNING 1");
    struct get g = { .ids = &BYTES("i0"), .n = 1 };
    EQ_STATUS(store_get(r.s, &r.a, &g, &r.err), PAWL_BROKEN, NULL);
    HAS_STR(r.err.text, "call 1 is in two places");
    lite_ask(&r, "DELETE FROM pawl_ready RETURNING 1");
    lite_ask(&r, "DELETE FROM pawl_outcome RETURNING 1");
    EQ_STATUS(store_get(r.s, &r.a, &g, &r.err), PAWL_BROKEN, NULL);
    HAS_STR(r.err.text, "call 1 is neither pending nor held nor ended");
    lite_fixture_close(&r);
}

RUNS_ON(ENGINE_FILE)
