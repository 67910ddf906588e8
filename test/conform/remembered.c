/*
 * remembered.c - the lease cache of a handle: when it is small, when a token comes twice in one
 * group, and when a group drops what it had loaded.
 *
 * On the servers these go through the lease cache of store/ledger. Two of the cases found writes
 * into freed memory there, which only a sanitizer shows.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"
#include "store/ledger/ledger.h"

static struct finish_item result_of(const char *id)
{
    struct finish_item f = item(id, END_RESULT);
    f.result = (struct payload){ PAWL_JSON, BYTES("1") };
    return f;
}

static struct op accept_many(struct conform_fixture *b, const char *prefix, int n)
{
    struct call_spec *v = arena_zalloc(&b->a, (size_t)n, sizeof *v);
    TRUE(v != NULL);
    for (int i = 0; i < n; i++)
        v[i] = settled(b, plan(arena_printf(&b->a, "%s%d", prefix, i)));
    return (struct op){ .kind = OP_ACCEPT, .accept = { .v = v, .n = (size_t)n } };
}

/* As one group or not at all: store_commit() would split a refused group. */
static void as_one(struct conform_fixture *b, struct op *const *v, size_t n)
{
    if (!b->engine->server) {
        commit(b, v, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        v[i]->a = &b->a;
    OK(b->s->ops->commit(b->s, v, n, &b->err), &b->err);
}

/* The last call of a lease ends, and the group claims again under the same token. */
static void token_twice(struct conform_fixture *b, int n, bool stored)
{
    accept_one(b, "a");
    struct claim q = want(b, 1);
    claim_as(b, q);
    if (stored)
        accept_n(b, "b", n);
    struct finish_item f = result_of("a");
    struct op finish = finish_op(q.token, &f, 1);
    struct op accept = stored ? by_id_op(OP_MOVE, "b0") : accept_many(b, "b", n);
    q.max = n;
    struct op again = claim_op(q);
    as_one(b, (struct op *const[]){ &finish, &accept, &again }, 3);
    OK(finish.status, &finish.err);
    OK(accept.status, &accept.err);
    OK(again.status, &again.err);
    EQ_INT(again.claim.n, n);
    for (int i = 0; i < n; i++)
        finish_ok(b, q.token, arena_printf(&b->a, "b%d", i), "1");
    struct op op = { .kind = OP_EXTEND, .extend = { .token = q.token, .lease_us = SEC_US } };
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, &op.err);
}

CASE(a_token_used_twice_in_one_group_is_another_lease)
{
    token_twice(b, 5, true);
}

CASE(a_token_used_twice_in_one_group_takes_calls_of_the_group)
{
    token_twice(b, 5, false);
}

/* The cache holds two leases. A group reads both and makes a third, which evicts them. */
CASE(a_lease_is_pushed_out_while_its_group_looks_at_it)
{
    led_cache_max = 6;
    accept_n(b, "a", 6);
    struct token t1 = claim_n(b, 3), t2 = claim_n(b, 3);
    accept_n(b, "b", 6);
    struct finish_item f1 = result_of("a0"), f2 = result_of("a3");
    struct op first = finish_op(t1, &f1, 1), second = finish_op(t2, &f2, 1);
    struct claim q = want(b, 6);
    struct op third = claim_op(q);
    TOGETHER(b, &first, &second, &third);
    EQ_INT(third.claim.n, 6);
    finish_ok(b, t1, "a0", "2"); /* a repeat: the first answer stays */
    finish_ok(b, t1, "a1", "1");
    finish_ok(b, t2, "a4", "1");
    for (int i = 0; i < 6; i++)
        finish_ok(b, q.token, arena_printf(&b->a, "b%d", i), "1");
    finish_ok(b, t1, "a2", "1");
    finish_ok(b, t2, "a5", "1");
    EQ_TEXT(get(b, "a0").result.bytes, "1");
    struct queue_row row = queue_of(b, "default");
    EQ_INT(row.pending + row.processing, 0);
}

/* More calls in one lease than the cache holds. */
CASE(a_lease_longer_than_what_is_remembered)
{
    led_cache_max = 2;
    accept_n(b, "a", 3);
    struct token t = claim_n(b, 3);
    for (int i = 0; i < 3; i++)
        finish_ok(b, t, arena_printf(&b->a, "a%d", i), "1");
    accept_n(b, "b", 2);
    t = claim_n(b, 2); /* as many */
    finish_ok(b, t, "b0", "1");
    finish_ok(b, t, "b1", "1");
}

/* gc drops what the group had loaded of the calls it forgot; the effects of the finish before it
 * stay. */
CASE(a_finish_in_a_group_with_gc_is_remembered)
{
    ended_call(b, "old", PAWL_COMPLETED);
    advance(b, RETENTION_US);
    EQ_INT(gc(b).removed, 1);
    accept_n(b, "a", 2);
    struct claim q = want(b, 2);
    claim_as(b, q);
    advance(b, REMEMBER_US);
    struct finish_item f = result_of("a0");
    struct op finish = finish_op(q.token, &f, 1);
    struct op sweeper = { .kind = OP_GC, .gc = { .max = 10 } };
    TOGETHER(b, &finish, &sweeper);
    EQ_INT(sweeper.gc.forgotten, 1);
    q = claim_as(b, q); /* the same claim again: the calls that are left */
    EQ_STR(ids_of(b, &q), "a1");
    finish_ok(b, q.token, "a1", "1");
}

/* The key has no calls left: its numbers start again, also when the same gc forgets older ids. */
CASE(a_key_of_which_nothing_is_left_begins_anew)
{
    ended_call(b, "old", PAWL_COMPLETED);
    advance(b, RETENTION_US);
    EQ_INT(gc(b).removed, 1);
    line_up(b, "k", "a");
    struct claim q = claim_run(b, 1, 1);
    EQ_INT(q.calls[0].key_no, 1);
    finish_ok(b, q.token, "a", "1");
    advance(b, REMEMBER_US);
    struct gc g = gc(b);
    EQ_INT(g.removed, 1);
    EQ_INT(g.forgotten, 1);
    line_up(b, "k", "b");
    q = claim_run(b, 1, 1);
    EQ_STR(ids_of(b, &q), "b");
    EQ_INT(q.calls[0].key_no, 1);
}
