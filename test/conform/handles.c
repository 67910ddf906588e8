/*
 * handles.c - one lease and several handles: what one handle caches must not survive what another
 * one did.
 *
 * A worker may talk to any server, so claim, extend and finish of one lease may come through
 * different processes.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

/* The fixture's handle and another one, used in turn. */
struct pair {
    struct store *first, *second; /* the second is owned */
};

static struct pair pair_open(struct conform_fixture *b)
{
    return (struct pair){ b->s, conform_fixture_handle(b) };
}

static void pair_end(struct conform_fixture *b, struct pair p)
{
    b->s = p.first;
    store_close(p.second);
}

CASE(a_lease_is_finished_through_another_handle)
{
    struct pair p = pair_open(b);
    accept_n(b, "a", 3);
    struct token t = claim_for(b, 3, 30 * SEC_US);
    b->s = p.second;
    finish_ok(b, t, "a0", "1");
    b->s = p.first;
    finish_ok(b, t, "a1", "1");
    finish_ok(b, t, "a0", "2"); /* a repeat */
    b->s = p.second;
    finish_ok(b, t, "a2", "1");
    EQ_TEXT(get(b, "a0").result.bytes, "1");
    b->s = p.first;
    struct op op = { .kind = OP_EXTEND, .extend = { .token = t, .lease_us = SEC_US } };
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, &op.err);
    pair_end(b, p);
}

CASE(whoever_only_looked_at_a_lease_looks_again)
{
    struct pair p = pair_open(b);
    accept_n(b, "a", 3);
    struct claim q = want(b, 3);
    q.lease_us = 30 * SEC_US;
    q = claim_as(b, q);
    b->s = p.second;
    EQ_INT(claim_as(b, q).n, 3); /* the same claim again, through the other handle */
    b->s = p.first;
    finish_ok(b, q.token, "a0", "1");
    finish_error(b, q.token, "a1", "x");
    b->s = p.second;
    EQ_INT(claim_as(b, q).n, 1);
    finish_ok(b, q.token, "a0", "2"); /* a repeat, not a second outcome */
    EQ_TEXT(get(b, "a0").result.bytes, "1");
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    STATE_IS(b, "a0", PAWL_COMPLETED);
    EQ_INT(get(b, "a1").counts.lost, 0);
    pair_end(b, p);
}

CASE(whoever_only_looked_does_not_put_back_what_has_ended)
{
    struct pair p = pair_open(b);
    accept_n(b, "a", 2);
    struct claim q = want(b, 2);
    q.lease_us = 30 * SEC_US;
    q = claim_as(b, q);
    b->s = p.second;
    claim_as(b, q);
    b->s = p.first;
    finish_ok(b, q.token, "a0", "1");
    b->s = p.second;
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    STATE_IS(b, "a0", PAWL_COMPLETED);
    STATE_IS(b, "a1", PAWL_PENDING);
    pair_end(b, p);
}

CASE(a_token_used_again_elsewhere_is_another_lease)
{
    struct pair p = pair_open(b);
    accept_n(b, "a", 2);
    struct claim q = want(b, 1);
    claim_as(b, q); /* a0 */
    b->s = p.second;
    finish_ok(b, q.token, "a0", "1"); /* the lease is gone */
    EQ_INT(claim_as(b, q).n, 1);      /* a1, under the same token */
    b->s = p.first;
    finish_ok(b, q.token, "a1", "1");
    STATE_IS(b, "a1", PAWL_COMPLETED);
    pair_end(b, p);
}

/* A retry of a call in a batch lease, with the retry and the reclaim on different handles. */
CASE(a_retry_elsewhere_is_not_revived_here)
{
    struct pair p = pair_open(b);
    accept_n(b, "a", 2);
    struct token t1 = claim_for(b, 2, 30 * SEC_US);
    b->s = p.second;
    OK(finish(b, t1, "a1", END_RELEASE), NULL);
    struct token t2 = claim_n(b, 1);
    b->s = p.first;
    EQ_STATUS(finish(b, t1, "a1", END_RESULT), PAWL_OK, NULL); /* a repeat of the release */
    EQ_INT(b->item.state, PAWL_PENDING);
    STATE_IS(b, "a1", PAWL_PROCESSING);
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    finish_ok(b, t2, "a1", "1");
    EQ_STR(claimable(b, want(b, 5)), "a0");
    pair_end(b, p);
}

CASE(a_stale_owner_is_fenced_on_its_own_handle)
{
    struct pair p = pair_open(b);
    accept_one(b, "a");
    struct token t = claim_for(b, 1, 30 * SEC_US);
    b->s = p.second;
    advance(b, 30 * SEC_US);
    sweep(b);
    struct token t2 = claim_n(b, 1);
    b->s = p.first;
    EQ_STATUS(finish(b, t, "a", END_RESULT), PAWL_LOST_LEASE, NULL);
    finish_ok(b, t2, "a", "1");
    pair_end(b, p);
}

CASE(lanes_and_pauses_made_elsewhere_are_seen)
{
    struct pair p = pair_open(b);
    accept_one(b, "a");
    EQ_STR(claimable(b, want(b, 5)), "a");
    b->s = p.second;
    struct call_spec s = plan("b");
    s.queue = BYTES("new");
    int64_t before = accept_spec(b, s).call.seq;
    pause_queue(b, "default", true);
    b->s = p.first;
    EQ_STR(claimable(b, want(b, 5)), "b");
    s.id = BYTES("c");
    int64_t after = accept_spec(b, s).call.seq;
    GT_INT(after, before); /* a connection's first number may be far above the previous one */
    pair_end(b, p);
}

CASE(gc_elsewhere_is_seen)
{
    struct pair p = pair_open(b);
    struct call_spec s = plan("short");
    s.keep_us = SEC_US;
    accept_spec(b, s);
    accept_one(b, "long");
    struct token t = claim_for(b, 2, 30 * SEC_US);
    finish_ok(b, t, "short", "1");
    advance(b, SEC_US);
    b->s = p.second;
    EQ_INT(gc(b).removed, 1);
    b->s = p.first;
    EQ_STATUS(finish(b, t, "short", END_RESULT), PAWL_LOST_LEASE, NULL);
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    EQ_STATUS(found(b, "short"), PAWL_GONE, NULL);
    pair_end(b, p);
}
