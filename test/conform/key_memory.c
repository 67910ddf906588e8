/*
 * key_memory.c - allocations fail during operations on keys: queues, numbers, objects and blocks
 * are unchanged afterwards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "conform.h"

#define FAILURES_MAX 20000

struct play {
    struct finish_item items[3];
    struct call_spec sends[1];
    struct op ops[12];
    struct op *v[12];
    size_t n;
};

static void add(struct play *s, struct op op)
{
    s->ops[s->n] = op;
    s->v[s->n] = &s->ops[s->n];
    s->n++;
}

/* Set up data so that every operation below has something to do. The token holds a, b and c. */
static struct token furnish(struct conform_fixture *b)
{
    line_up(b, "past", "o");
    finish_ok(b, claim_run(b, 1, 1).token, "o", "1");
    advance(b, RETENTION_US);
    struct call_spec s = keyed("x", "blocked");
    s.on_dead = PAWL_ON_DEAD_BLOCK;
    accept_spec(b, s);
    line_up(b, "blocked", "y");
    OK(finish(b, claim_run(b, 1, 1).token, "x", END_REFUSE), NULL);
    line_up(b, "k", "abcd");
    struct token held = claim_run_for(b, 3, 3, 300 * SEC_US).token;
    s = keyed("e", "expiring");
    s.expires_in_us = SEC_US;
    accept_spec(b, s);
    line_up(b, "expiring", "f");
    s = keyed("late", "expiring");
    s.delay_us = SEC_US;
    accept_spec(b, s);
    object_put(b, "t", "deleted", "[1]");
    line_up(b, "deleted", "gh");
    line_up(b, "moving", "mn");
    advance(b, SEC_US);
    return held;
}

static struct op object_is(enum state_do how, const char *key)
{
    return (struct op){ .kind = OP_OBJECT,
                        .object = { .type = BYTES("t"),
                                    .key = bytes_of(key),
                                    .how = how,
                                    .state = { PAWL_JSON, BYTES("[2]") },
                                    .cancel = how == STATE_DELETE } };
}

static void write_play(struct conform_fixture *b, struct play *s, struct token held)
{
    struct claim q = want(b, 5);
    struct op move = by_id_op(OP_MOVE, "m");
    q.run_max = 5;
    q.lease_us = 30 * SEC_US;
    move.by_id.run_at_us = now(b) + SEC_US;
    s->items[0] = item("a", END_RESULT);
    s->items[1] = item("b", END_ERROR);
    s->items[2] = item("c", END_RESULT);
    s->items[0].send = s->sends;
    s->items[0].n_send = 1;
    s->items[0].state_do = STATE_SET;
    s->items[0].object = (struct payload){ PAWL_JSON, BYTES("[3]") };
    s->sends[0] = settled(b, keyed("sent", "sent to"));
    add(s, accept_op(b, keyed("fresh", "fresh")));
    add(s,
        (struct op){ .kind = OP_UNBLOCK, .unblock = { .key = BYTES("blocked"), .retry = true } });
    add(s, finish_op(held, s->items, 3));
    add(s, object_is(STATE_SET, "new"));
    add(s, object_is(STATE_DELETE, "deleted"));
    add(s, move);
    add(s, by_id_op(OP_CANCEL, "n"));
    add(s, claim_op(q));
    add(s, (struct op){ .kind = OP_GC, .gc = { .max = 10 } });
    add(s, (struct op){ .kind = OP_SWEEP, .sweep = { .max = 10 } });
    add(s, (struct op){ .kind = OP_UNBLOCK, .unblock = { .key = BYTES("past") } });
}

static const char *all_of(struct conform_fixture *b)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    dump_object(&text, b->s, BYTES("t"), BYTES("k"));
    dump_object(&text, b->s, BYTES("t"), BYTES("new"));
    dump_object(&text, b->s, BYTES("t"), BYTES("deleted"));
    const char *out = arena_printf(&b->a, "%s%.*s", snapshot(b), BYTES_ARG(buf_bytes(&text)));
    buf_release(&text);
    return out;
}

CASE(a_group_with_keys_without_memory_leaves_what_was_before, .deadline_s = 300)
{
    struct play *s = arena_zalloc(&b->a, 1, sizeof *s);
    write_play(b, s, furnish(b));
    for (size_t i = 0; i < s->n; i++)
        s->v[i]->a = &b->a;
    const char *before = all_of(b);
    int step = b->engine->sql ? 7 : 1; /* every allocation on mem, a sample on other engines */
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
        EQ_STR(all_of(b), before);
    }
    TRUE(b->engine->sql || n > 1);
    LT_INT(n, FAILURES_MAX);
    for (size_t i = 0; i + 1 < s->n; i++)
        OK(s->v[i]->status, &s->v[i]->err);
    EQ_STATUS(s->v[s->n - 1]->status, PAWL_NOT_FOUND, NULL); /* gc has forgotten the key */
    /* A rolled-back group may leave a gap. */
    GT_INT(object_of(b, "t", "new").version, 2);
    EQ_TEXT(object_of(b, "t", "k").state.bytes, "[3]");
    EQ_STR(ids_of(b, &s->v[7]->claim), "x y fresh sent");
}

CASE(reading_keys_without_memory_says_so, .deadline_s = 120)
{
    furnish(b);
    int64_t n = 1;
    for (; n < FAILURES_MAX; n++) {
        struct arena a;
        struct object o;
        struct key_query q = { .limit = 10 };
        struct key_rows rows;
        arena_init(&a, 1 << 20);
        mem_torture(n, 0);
        bool ok = store_object(b->s, &a, BYTES("t"), BYTES("deleted"), &o, &b->err) == PAWL_OK &&
                  store_keys(b->s, &a, &q, &rows, &b->err) == PAWL_OK;
        mem_torture(0, 0);
        arena_release(&a);
        if (ok)
            break;
        EQ_STATUS(b->err.status, PAWL_NO_MEMORY, &b->err);
    }
    LT_INT(n, FAILURES_MAX);
}
