/*
 * open.c - handles: several on one database, its schema, its clock, and noticing writes of others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>

#include "conform.h"

CASE(two_handles_see_one_database)
{
    AUTO(store_end) struct store *other = conform_fixture_handle(b);
    accept_one(b, "a");
    struct store *mine = b->s;
    b->s = other;
    STATE_IS(b, "a", PAWL_PENDING);
    struct token t = claim_n(b, 1);
    b->s = mine;
    finish_ok(b, t, "a", "1");
}

CASE(a_reader_reads)
{
    accept_one(b, "a");
    struct store_conf conf = { .url = b->url, .role = STORE_READER, .world = &b->world.world };
    AUTO(store_end) struct store *reader = NULL;
    OK(store_open(&conf, &reader, &b->err), &b->err);
    struct store *mine = b->s;
    b->s = reader;
    STATE_IS(b, "a", PAWL_PENDING);
    b->s = mine;
    claim_n(b, 1);
    b->s = reader;
    STATE_IS(b, "a", PAWL_PROCESSING); /* later commits are visible */
    b->s = mine;
}

CASE(another_schema_is_another_database)
{
    accept_one(b, "a");
    struct store_conf conf = { .url = b->url, .schema = "other", .world = &b->world.world };
    AUTO(store_end) struct store *other = NULL;
    OK(store_open(&conf, &other, &b->err), &b->err);
    OK(store_migrate(other, false, &b->err), &b->err);
    struct store *mine = b->s;
    b->s = other;
    EQ_STATUS(found(b, "a"), PAWL_NOT_FOUND, NULL);
    EQ_INT(accept_one(b, "a"), 1);
    b->s = mine;
    STATE_IS(b, "a", PAWL_PENDING);
}

/* An engine does not report what the command checks itself: no finding is shown twice. */
CASE(a_doctor_says_each_thing_once)
{
    static const char *const commands[] = { "engine", "schema", "clock", "queues", "nodes" };
    struct findings f = { 0 };
    OK(store_doctor(b->s, &b->a, &f, &b->err), &b->err);
    for (size_t i = 0; i < f.n; i++) {
        for (size_t k = 0; k < i; k++)
            TRUE(strcmp(f.v[i].name, f.v[k].name) != 0);
        for (size_t k = 0; k < COUNT_OF(commands); k++)
            if (strcmp(f.v[i].name, commands[k]) == 0)
                FAIL("the engine speaks of \"%s\"", commands[k]);
    }
}

struct hand {
    struct conform_fixture *b;
    int number, done;
};

/* Claim and finish on a separate handle until nothing is left. */
static void *work(void *ctx)
{
    struct hand *h = ctx;
    AUTO(store_end) struct store *s = conform_fixture_handle(h->b);
    struct arena a;
    arena_init(&a, 64 << 20);
    for (unsigned turn = 0;; turn++) {
        struct token t = { { 2, (unsigned char)h->number } };
        memcpy(t.b + 8, &turn, sizeof turn);
        struct op claim = claim_op(
            (struct claim){ .token = t, .node = BYTES("n"), .boot = BYTES("b"), .max = 25 });
        struct op *v = &claim;
        arena_reset(&a);
        claim.a = &a;
        OK(store_commit(s, &v, 1), &claim.err);
        if (claim.claim.n == 0)
            break;
        struct finish_item *items = arena_zalloc(&a, claim.claim.n, sizeof *items);
        for (size_t i = 0; i < claim.claim.n; i++)
            items[i] = (struct finish_item){ .seq = claim.claim.calls[i].seq, .how = END_RESULT };
        struct op end = finish_op(t, items, claim.claim.n);
        end.a = &a;
        v = &end;
        OK(store_commit(s, &v, 1), &end.err);
        OK(end.status, &end.err);
        h->done += (int)claim.claim.n;
    }
    arena_release(&a);
    return NULL;
}

CASE(many_threads_share_the_work)
{
    enum { HANDS = 4, CALLS = 1000 };
    struct hand hands[HANDS];
    pthread_t threads[HANDS];
    int done = 0;
    accept_n(b, "a", CALLS);
    for (int i = 0; i < HANDS; i++) {
        hands[i] = (struct hand){ .b = b, .number = i };
        EQ_INT(pthread_create(&threads[i], NULL, work, &hands[i]), 0);
    }
    for (int i = 0; i < HANDS; i++) {
        EQ_INT(pthread_join(threads[i], NULL), 0);
        done += hands[i].done;
    }
    EQ_INT(done, CALLS); /* each by exactly one handle */
    EQ_INT(queue_of(b, "default").processing, 0);
}

CASE(the_schema_is_the_wanted_one)
{
    struct schema s;
    OK(store_schema(b->s, &s, &b->err), &b->err);
    GT_INT(s.version, 0);
    EQ_INT(s.version, s.wanted);
    LE_INT(s.min_version, s.version);
    FALSE(s.finish_due);
    accept_one(b, "a");
    OK(store_migrate(b->s, true, &b->err), &b->err); /* again: nothing changes */
    STATE_IS(b, "a", PAWL_PENDING);
}

CASE(the_clock_is_the_databases)
{
    int64_t at = 0;
    OK(store_now(b->s, &at, &b->err), &b->err);
    EQ_INT(at, now(b));
    advance(b, 12345);
    OK(store_now(b->s, &at, &b->err), &b->err);
    EQ_INT(at, now(b));
}

CASE(a_commit_elsewhere_changes_the_version)
{
    AUTO(store_end) struct store *other = conform_fixture_handle(b);
    int64_t first = 0, second = 0, third = 0;
    OK(store_version(other, &first, &b->err), &b->err);
    accept_one(b, "a");
    OK(store_version(other, &second, &b->err), &b->err);
    NE_INT(second, first);
    /* Nothing was written. Where the version belongs to the whole server, other cases commit at the
     * same time; a read that changed it itself would do so every time. */
    for (int i = 0; i < 500 && third != second; i++) {
        OK(store_version(other, &second, &b->err), &b->err);
        OK(store_version(other, &third, &b->err), &b->err);
    }
    EQ_INT(third, second);
}

CASE(tending_is_harmless)
{
    accept_one(b, "a");
    OK(store_tend(b->s, &b->err), &b->err);
    STATE_IS(b, "a", PAWL_PENDING);
}

TEST(a_database_that_is_none_is_refused, .plain = true)
{
    struct store *s = NULL;
    struct pawl_err err;
    const char *urls[] = { "nosuch:x", "", "mem", "trace+nosuch:x" };
    for (int i = 0; i < 4; i++) {
        struct store_conf conf = { .url = urls[i] };
        EQ_STATUS(store_open(&conf, &s, &err), PAWL_INVALID, &err);
    }
    struct store_conf conf = { .url = "mem:x", .schema = "bad-name" };
    EQ_STATUS(store_open(&conf, &s, &err), PAWL_INVALID, &err);
}

/* One more schema in the fixture's database. */
static struct store *schema_open(struct conform_fixture *b, const char *schema)
{
    struct store *s = NULL;
    struct store_conf conf = { .url = b->url,
                               .schema = schema,
                               .world = &b->world.world,
                               .retention_us = RETENTION_US,
                               .remember_us = REMEMBER_US };
    OK(store_open(&conf, &s, &b->err), &b->err);
    OK(store_migrate(s, true, &b->err), &b->err);
    return s;
}

/* The same ids, keys, nodes and queues in two schemas do not affect each other. */
CASE(schemas_of_one_database_do_not_see_each_other)
{
    struct store *first = b->s, *second = schema_open(b, "Shop_2");
    line_up(b, "k", "ab");
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    pause_queue(b, "q", true);
    struct token t = claim_n(b, 1);
    const char *before = snapshot(b);

    b->s = second;
    EQ_STATUS(found(b, "a"), PAWL_NOT_FOUND, NULL);
    struct node_rows nodes;
    OK(store_nodes(b->s, &b->a, &nodes, &b->err), &b->err);
    EQ_INT(nodes.n, 0);
    struct queue_rows queues;
    OK(store_queues(b->s, &b->a, &queues, &b->err), &b->err);
    EQ_INT(queues.n, 0);
    line_up(b, "k", "a"); /* new here: its key is free, and its number is the first */
    EQ_INT(get(b, "a").seq, 1);
    EQ_STATUS(finish(b, t, "a", END_RESULT), PAWL_LOST_LEASE, NULL);
    finish_ok(b, claim_n(b, 1), "a", "2");
    OK(node(b, OP_JOIN, "n1", "b2"), NULL); /* takes nothing back in the other schema */
    EQ_INT(b->op.node.reclaimed, 0);

    b->s = first;
    EQ_STR(snapshot(b), before);
    finish_ok(b, t, "a", "1");
    store_close(second);
}
