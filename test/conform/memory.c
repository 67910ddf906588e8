/*
 * memory.c - allocations fail at any point: a group is stored as a whole or not at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "conform.h"

#define FAILURES_MAX 20000

/* Set up data so that every operation below has something to do. */
static void furnish(struct conform_fixture *b)
{
    struct tag tag = { BYTES("k"), BYTES("v") };
    struct call_spec s = plan("tagged");
    s.tags = &tag;
    s.n_tags = 1;
    s.expires_in_us = 500 * SEC_US;
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    ended_call(b, "old", PAWL_COMPLETED);
    advance(b, RETENTION_US / 2);
    ended_call(b, "failed", PAWL_FAILED);
    accept_spec(b, s);
    accept_n(b, "p", 3);
    advance(b, RETENTION_US / 2);
}

struct play {
    struct token held, ending;
    struct finish_item items[2];
    struct call_spec sends[2];
    struct op ops[10];
    struct op *v[10];
    size_t n;
};

static void add(struct play *s, struct op op)
{
    s->ops[s->n] = op;
    s->v[s->n] = &s->ops[s->n];
    s->n++;
}

static void write_play(struct conform_fixture *b, struct play *s)
{
    struct claim q = want(b, 5);
    q.token = s->ending;
    q.lease_us = 30 * SEC_US;
    struct call_spec fresh = plan("fresh");
    fresh.queue = BYTES("new queue");
    s->n = 0;
    s->items[0] = item("p0", END_RESULT);
    s->items[1] = item("p1", END_ERROR);
    s->items[0].send = s->sends;
    s->items[0].n_send = 2;
    s->items[1].error = BYTES("boom");
    s->sends[0] = settled(b, plan("sent 0"));
    s->sends[1] = settled(b, plan("sent 1"));
    add(s, accept_op(b, fresh));
    add(s, finish_op(s->held, s->items, 2));
    add(s, by_id_op(OP_RETRY, "failed"));
    add(s, by_id_op(OP_CANCEL, "p2"));
    add(s, claim_op(q));
    add(s, (struct op){ .kind = OP_GC, .gc = { .max = 10 } });
    add(s, (struct op){ .kind = OP_SWEEP, .sweep = { .max = 10 } });
    add(s, node_op(OP_JOIN, "n1", "b2"));
    add(s, node_op(OP_BEAT, "n1", "b2"));
    add(s, (struct op){ .kind = OP_PAUSE, .pause = { .queue = BYTES("q"), .paused = true } });
}

/* Calls the engine directly: store_commit() would split a failed group and try its halves. */
CASE(a_group_without_memory_leaves_what_was_before, .deadline_s = 300)
{
    furnish(b);
    struct play *s = arena_zalloc(&b->a, 1, sizeof *s);
    struct claim q = want(b, 2);
    struct bytes queue = BYTES("default");
    q.queues = &queue;
    q.n_queues = 1;
    OK(by_id(b, OP_CANCEL, "tagged"), NULL);
    s->held = claim_as(b, q).token;
    s->ending = fresh_token(b);
    write_play(b, s);
    for (size_t i = 0; i < s->n; i++)
        s->v[i]->a = &b->a;
    const char *before = snapshot(b);
    /* Every allocation on mem, a sample on other engines, which are slower. */
    int step = b->engine->sql ? 7 : 1;
    int64_t n = 1;
    for (; n < FAILURES_MAX; n += step) {
        for (size_t i = 0; i < s->n; i++) {
            s->v[i]->status = PAWL_OK;
            s->v[i]->n_ended = 0;
        }
        mem_torture(n, 0);
        enum pawl_status st = b->s->ops->commit(b->s, s->v, s->n, &b->err);
        mem_torture(0, 0);
        if (st == PAWL_OK)
            break;
        EQ_STATUS(st, PAWL_NO_MEMORY, &b->err);
        b->a.failed = false; /* the arena has failed too; reset it */
        EQ_STR(snapshot(b), before);
    }
    TRUE(b->engine->sql || n > 1); /* an engine may have enough memory from before */
    LT_INT(n, FAILURES_MAX);
    for (size_t i = 0; i < s->n; i++)
        OK(s->v[i]->status, &s->v[i]->err);
    STATE_IS(b, "p0", PAWL_COMPLETED);
    STATE_IS(b, "sent 1", PAWL_PROCESSING);
    EQ_STATUS(found(b, "old"), PAWL_GONE, NULL);
}

CASE(reading_without_memory_says_so, .deadline_s = 120)
{
    furnish(b);
    struct bytes id = BYTES("tagged");
    int64_t n = 1;
    for (; n < FAILURES_MAX; n++) {
        struct arena a;
        struct get g = { .ids = &id, .n = 1, .with = WITH_INPUT | WITH_RESULT };
        struct query q = { .limit = 10, .with = WITH_INPUT };
        struct page page;
        struct attempts t;
        struct queue_rows queues;
        struct node_rows nodes;
        struct cancel_requests requests;
        arena_init(&a, 1 << 20);
        mem_torture(n, 0);
        bool ok = store_get(b->s, &a, &g, &b->err) == PAWL_OK &&
                  store_list(b->s, &a, &q, &page, &b->err) == PAWL_OK &&
                  store_attempts(b->s, &a, id, &t, &b->err) == PAWL_OK &&
                  store_queues(b->s, &a, &queues, &b->err) == PAWL_OK &&
                  store_nodes(b->s, &a, &nodes, &b->err) == PAWL_OK &&
                  store_cancel_requests(b->s, &a, &requests, &b->err) == PAWL_OK;
        mem_torture(0, 0);
        arena_release(&a);
        if (ok)
            break;
        EQ_STATUS(b->err.status, PAWL_NO_MEMORY, &b->err);
    }
    LT_INT(n, FAILURES_MAX);
}

CASE(opening_without_memory_says_so)
{
    accept_one(b, "a");
    for (int64_t n = 1; n < FAILURES_MAX; n++) {
        struct store *s = NULL;
        struct store_conf conf = { .url = b->url, .schema = "fresh" };
        mem_torture(n, 0);
        enum pawl_status st = store_open(&conf, &s, &b->err);
        mem_torture(0, 0);
        if (st == PAWL_OK) {
            store_close(s);
            return;
        }
        EQ_STATUS(st, PAWL_NO_MEMORY, &b->err);
    }
    FAIL("it never opened");
}

CASE(an_answer_that_does_not_fit_its_arena_fails_alone)
{
    accept_n(b, "a", 3);
    struct arena small;
    arena_init(&small, 64);
    struct op claim = claim_op(want(b, 3)), accept = accept_op(b, plan("b"));
    claim.a = &small;
    accept.a = &b->a;
    struct op *v[] = { &accept, &claim };
    NE_INT(store_commit(b->s, v, 2), PAWL_OK);
    OK(accept.status, &accept.err);
    EQ_STATUS(claim.status, PAWL_NO_MEMORY, &claim.err);
    STATE_IS(b, "a0", PAWL_PENDING);
    arena_release(&small);
}

/* Operator requests, under the same conditions. */
CASE(an_archive_and_a_requeue_without_memory_leave_what_was_before, .deadline_s = 300)
{
    furnish(b);
    line_up(b, "k", "xyz");
    int leases = 0;
    while (claim_run(b, 2, 2).n)
        leases++;
    GT_INT(leases, 2);
    advance(b, 1);
    struct play *s = arena_zalloc(&b->a, 1, sizeof *s);
    TRUE(s != NULL);
    add(s, (struct op){ .kind = OP_GC,
                        .gc = { .max = 10, .ended_before_us = now(b), .archive = true } });
    add(s,
        (struct op){ .kind = OP_REQUEUE, .requeue = { .max = 10, .claimed_before_us = now(b) } });
    for (size_t i = 0; i < s->n; i++)
        s->v[i]->a = &b->a;
    const char *before = snapshot(b);
    int64_t n = 1;
    enum pawl_status st = PAWL_NO_MEMORY;
    for (; n < FAILURES_MAX && st != PAWL_OK; n++) {
        mem_torture(n, 0);
        st = b->s->ops->commit(b->s, s->v, s->n, &b->err);
        mem_torture(0, 0);
        if (st == PAWL_OK)
            break;
        EQ_STATUS(st, PAWL_NO_MEMORY, &b->err);
        b->a.failed = false;
        EQ_STR(snapshot(b), before);
    }
    LT_INT(n, FAILURES_MAX);
    EQ_INT(s->ops[0].gc.removed, 2);
    EQ_INT(s->ops[1].requeue.leases, leases);
    EQ_STATUS(found(b, "old"), PAWL_GONE, NULL);
    STATE_IS(b, "x", PAWL_PENDING);
}
