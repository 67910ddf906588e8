/*
 * claim_ahead.c - claims of more calls than the node has free slots, which take only quick types:
 * max_any, quick, and what the claim reports about the calls it left.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static const struct bytes quick[] = { { "quick", 5 }, { "fast", 4 } };

/* A claim of up to max calls, of which up to max_any of any type. */
static struct claim ahead(struct conform_fixture *b, int max, int max_any)
{
    struct claim q = want(b, max);
    q.max_any = max_any;
    q.quick = quick;
    q.n_quick = 2;
    q.run_max = 10;
    return q;
}

static struct call_spec spec_of(const char *id, const char *queue, const char *type)
{
    struct call_spec s = plan(id);
    s.queue = bytes_of(queue);
    s.type = bytes_of(type);
    return s;
}

/* A call for each letter: small letters are slow types, capitals quick ones. */
static void accept_mix(struct conform_fixture *b, const char *queue, const char *letters,
                       int priority)
{
    for (const char *l = letters; *l; l++) {
        struct call_spec s =
            spec_of(arena_printf(&b->a, "%c", *l), queue, *l < 'a' ? "quick" : "slow");
        s.priority = priority;
        OK(accept_spec(b, s).status, NULL);
    }
}

CASE(beyond_max_any_only_quick_types_are_taken)
{
    accept_mix(b, "q", "aBcDeF", 0);
    EQ_STR(claimable(b, ahead(b, 10, 1)), "a B D F");
    EQ_STR(claimable(b, ahead(b, 10, 2)), "a B D F");
    EQ_STR(claimable(b, ahead(b, 10, 3)), "a B c D F");
    EQ_STR(claimable(b, ahead(b, 3, 1)), "a B D");
    EQ_STR(claimable(b, ahead(b, 10, 10)), "a B c D e F");
    EQ_STR(claimable(b, ahead(b, 2, 10)), "a B");
    EQ_STR(claimable(b, ahead(b, 10, 0)), "a B c D e F"); /* the types do not matter */
}

CASE(what_is_passed_over_is_not_touched)
{
    accept_mix(b, "q", "abcD", 0);
    struct claim q = claim_as(b, ahead(b, 10, 1));
    EQ_STR(ids_of(b, &q), "a D");
    STATE_IS(b, "b", PAWL_PENDING);
    EQ_INT(get(b, "b").claimed_us, 0);
    EQ_INT(queue_of(b, "q").pending, 2);
    q = claim_as(b, ahead(b, 10, 1)); /* the next claim finds them, in order */
    EQ_STR(ids_of(b, &q), "b");
    q = claim_as(b, ahead(b, 10, 5));
    EQ_STR(ids_of(b, &q), "c");
}

CASE(no_type_is_quick_when_none_is_named)
{
    accept_mix(b, "q", "aBcD", 0);
    struct claim q = ahead(b, 10, 2);
    q.quick = NULL;
    q.n_quick = 0;
    q = claim_as(b, q);
    EQ_STR(ids_of(b, &q), "a B");
    TRUE(q.more);
}

CASE(a_type_may_be_quick_and_not_served)
{
    accept_mix(b, "q", "aBcD", 0);
    struct bytes slow = BYTES("slow");
    struct claim q = ahead(b, 10, 1);
    q.types = &slow;
    q.n_types = 1;
    q = claim_as(b, q);
    EQ_STR(ids_of(b, &q), "a");
    TRUE(q.more);
}

CASE(queues_and_priorities_keep_their_order)
{
    accept_mix(b, "q1", "aB", 0);
    accept_mix(b, "q2", "cD", 5);
    accept_mix(b, "q3", "eF", -5);
    accept_mix(b, "q2", "gH", 0);
    EQ_STR(claimable(b, ahead(b, 10, 1)), "c D B H F");
    EQ_STR(claimable(b, ahead(b, 10, 3)), "c D a B H F");
    EQ_STR(claimable(b, ahead(b, 10, 5)), "c D a B g H F");
    EQ_STR(claimable(b, ahead(b, 4, 3)), "c D a B");
    struct claim q = ahead(b, 10, 3);
    q.last = BYTES("q1");
    EQ_STR(claimable(b, q), "c D g H B F");
    q = ahead(b, 10, 2);
    q.without = BYTES("q2"); /* none of its quick types; slow ones as usual */
    EQ_STR(claimable(b, q), "c a B F");
    q.max_any = 0;
    EQ_STR(claimable(b, q), "a B e F");
}

CASE(slow_calls_alone_fill_the_free_slots)
{
    accept_mix(b, "q", "abcdefgh", 0);
    struct claim q = claim_as(b, ahead(b, 1000, 3));
    EQ_STR(ids_of(b, &q), "a b c");
    TRUE(q.more);
    EQ_INT(q.next_due_us, 0);
    q = claim_as(b, ahead(b, 1000, 3));
    EQ_STR(ids_of(b, &q), "d e f");
    q = claim_as(b, ahead(b, 1000, 3));
    EQ_STR(ids_of(b, &q), "g h");
    FALSE(q.more);
}

CASE(more_speaks_of_slow_types_too)
{
    accept_mix(b, "q", "aBCD", 0);
    struct claim q = claim_as(b, ahead(b, 2, 1));
    EQ_STR(ids_of(b, &q), "a B");
    TRUE(q.more);
    accept_mix(b, "q", "e", 0);
    q = claim_as(b, ahead(b, 10, 1));
    EQ_STR(ids_of(b, &q), "C D");
    TRUE(q.more); /* e */
    accept_mix(b, "q", "F", 0);
    q = claim_as(b, want(b, 1));
    TRUE(q.more);
    q = claim_as(b, want(b, 1));
    FALSE(q.more);
}

CASE(what_is_not_due_is_said_as_ever)
{
    struct call_spec s = spec_of("late", "q", "slow");
    s.delay_us = 20;
    OK(accept_spec(b, s).status, NULL);
    accept_mix(b, "q", "aB", 0);
    struct claim q = claim_as(b, ahead(b, 10, 1));
    EQ_STR(ids_of(b, &q), "a B");
    FALSE(q.more);
    EQ_INT(q.next_due_us, now(b) + 20);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static void line_of(struct conform_fixture *b, const char *key, const char *type,
                    const char *letters)
{
    for (const char *l = letters; *l; l++) {
        struct call_spec s = spec_of(arena_printf(&b->a, "%c", *l), "q", type);
        s.key = bytes_of(key);
        OK(accept_spec(b, s).status, NULL);
    }
}

CASE(only_quick_types_come_in_runs)
{
    line_of(b, "k", "slow", "abc");
    line_of(b, "m", "quick", "DEF");
    struct claim q = claim_as(b, ahead(b, 10, 8));
    EQ_STR(ids_of(b, &q), "a D E F");
    OK(finish_run(b, q.token, "a", "r"), &b->op.err);
    EQ_STR(claimable(b, ahead(b, 10, 8)), "b");
    q = ahead(b, 10, 0);
    EQ_STR(claimable(b, q), "b c");
}

CASE(calls_of_a_run_count)
{
    line_of(b, "k", "quick", "ABC");
    accept_mix(b, "q", "defG", 0);
    EQ_STR(claimable(b, ahead(b, 10, 2)), "A B C G");
    EQ_STR(claimable(b, ahead(b, 10, 4)), "A B C d G");
    EQ_STR(claimable(b, ahead(b, 10, 5)), "A B C d e G");
    EQ_STR(claimable(b, ahead(b, 2, 1)), "A B");
    /* Calls that its run displaced are still there. */
    struct claim q = claim_as(b, ahead(b, 10, 2));
    q = claim_as(b, ahead(b, 10, 9));
    EQ_STR(ids_of(b, &q), "d e f");
}

CASE(a_quick_line_is_found_behind_slow_ones)
{
    line_of(b, "k1", "slow", "ab");
    line_of(b, "k2", "slow", "cd");
    line_of(b, "k3", "slow", "ef");
    line_of(b, "m", "fast", "GHI");
    struct claim q = ahead(b, 3, 1);
    q.run_max = 2;
    q = claim_as(b, q);
    EQ_STR(ids_of(b, &q), "a G H");
    q = claim_as(b, ahead(b, 10, 1));
    EQ_STR(ids_of(b, &q), "c");
    TRUE(q.more);
}

/* ---- retry_alone, expiry, new calls ---------------------------------------------------------- */

CASE(lost_calls_are_as_ever)
{
    accept_mix(b, "q", "a", 0);
    claim_for(b, 1, SEC_US);
    advance(b, SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    accept_mix(b, "q", "bCD", 0);
    struct claim q = claim_as(b, ahead(b, 10, 1));
    EQ_STR(ids_of(b, &q), "a"); /* claimed by itself */
    TRUE(q.more);
    OK(finish(b, q.token, "a", END_RELEASE), NULL);
    q = ahead(b, 10, 1);
    q.no_retry_alone = true;
    EQ_STR(claimable(b, q), "b C D");
}

CASE(expired_calls_are_ended_only_where_they_could_be_taken)
{
    accept_mix(b, "q", "aB", 0);
    struct call_spec s = spec_of("x", "q", "slow");
    s.expires_in_us = 5;
    OK(accept_spec(b, s).status, NULL);
    s = spec_of("Y", "q", "quick");
    s.expires_in_us = 5;
    OK(accept_spec(b, s).status, NULL);
    accept_mix(b, "q", "C", 0);
    advance(b, 10);
    struct claim q = claim_as(b, ahead(b, 10, 1));
    EQ_STR(ids_of(b, &q), "a B C");
    STATE_IS(b, "x", PAWL_PENDING); /* passed over */
    STATE_IS(b, "Y", PAWL_EXPIRED);
    TRUE(q.more);
    EQ_INT(claim_as(b, ahead(b, 10, 1)).n, 0);
    STATE_IS(b, "x", PAWL_EXPIRED);
}

CASE(fresh_calls_of_the_group_follow_the_same_rule)
{
    const char *ids[] = { "a", "B", "c", "D", "e" };
    struct call_spec v[5];
    for (int i = 0; i < 5; i++)
        v[i] = settled(b, spec_of(ids[i], "q", ids[i][0] < 'a' ? "quick" : "slow"));
    struct op accept = { .kind = OP_ACCEPT, .accept = { .v = v, .n = 5 } };
    struct op first = claim_op(ahead(b, 10, 2)), second = claim_op(ahead(b, 10, 1));
    TOGETHER(b, &accept, &first, &second);
    EQ_STR(ids_of(b, &first.claim), "a B D");
    TRUE(first.claim.more);
    EQ_STR(ids_of(b, &second.claim), "c");
    EQ_STR(claimable(b, want(b, 10)), "e");
}

CASE(fresh_calls_come_among_stored_ones)
{
    accept_mix(b, "q", "aB", 0);
    struct call_spec v[] = { settled(b, spec_of("c", "q", "slow")),
                             settled(b, spec_of("D", "q", "quick")) };
    struct op accept = { .kind = OP_ACCEPT, .accept = { .v = v, .n = 2 } };
    struct op claim = claim_op(ahead(b, 10, 1));
    TOGETHER(b, &accept, &claim);
    EQ_STR(ids_of(b, &claim.claim), "a B D");
    EQ_STR(claimable(b, want(b, 10)), "c");
}

CASE(a_full_claim_of_quick_calls_behind_many_slow_ones)
{
    struct call_spec *v = arena_zalloc(&b->a, 3000, sizeof *v);
    TRUE(v != NULL);
    for (int i = 0; i < 3000; i++)
        v[i] = settled(b, spec_of(arena_printf(&b->a, "c%d", i), "q", i < 1500 ? "slow" : "fast"));
    struct op accept = { .kind = OP_ACCEPT, .accept = { .v = v, .n = 3000 } };
    OK(one(b, &accept), &accept.err);
    struct claim q = claim_as(b, ahead(b, CLAIM_MAX, 16));
    EQ_INT(q.n, CLAIM_MAX);
    EQ_INT(q.calls[15].seq, 16);
    EQ_TEXT(q.calls[16].spec.id, "c1500");
    EQ_TEXT(q.calls[CLAIM_MAX - 1].spec.id, "c2483");
    TRUE(q.more);
    q = claim_as(b, ahead(b, CLAIM_MAX, 1));
    EQ_INT(q.n, 517);
    EQ_TEXT(q.calls[0].spec.id, "c16");
    TRUE(q.more);
}
