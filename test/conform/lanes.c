/*
 * lanes.c - what calls need and workers have, and lanes that come and go.
 *
 * When an empty lane is removed differs from engine to engine, so the cases here let a day pass.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

#include "base/hook.h"

#define HOUR_US (3600 * SEC_US)

static const struct bytes names[] = { { "big", 3 }, { "gpu", 3 }, { "v:2", 3 } };
#define BIG names, 1
#define GPU names + 1, 1
#define V2 names + 2, 1
#define BIG_GPU names, 2

static struct call_spec needing(const char *id, const struct bytes *needs, size_t n)
{
    struct call_spec s = plan(id);
    s.needs = needs;
    s.n_needs = n;
    return s;
}

static struct claim having(struct conform_fixture *b, const struct bytes *has, size_t n)
{
    struct claim q = want(b, 20);
    q.has = has;
    q.n_has = n;
    return q;
}

/* ---- Needs ----------------------------------------------------------------------------------- */

CASE(a_call_waits_for_a_worker_that_has_all_it_needs)
{
    accept_one(b, "plain");
    accept_spec(b, needing("gpu", GPU));
    accept_spec(b, needing("both", BIG_GPU));
    accept_spec(b, needing("v2", V2));
    EQ_STR(claimable(b, want(b, 20)), "plain");
    EQ_STR(claimable(b, having(b, GPU)), "plain gpu");
    EQ_STR(claimable(b, having(b, BIG)), "plain");
    EQ_STR(claimable(b, having(b, BIG_GPU)), "plain gpu both");
    EQ_STR(claimable(b, having(b, V2)), "plain v2");
    EQ_STR(claimable(b, having(b, names, 3)), "plain gpu both v2");
    EQ_STR(claimable(b, want(b, 20)), "plain"); /* the answer of the last worker is not kept */
}

CASE(what_no_worker_has_is_no_work)
{
    accept_spec(b, needing("gpu", GPU));
    struct call_spec s = needing("later", GPU);
    s.delay_us = SEC_US;
    accept_spec(b, s);
    struct claim q = claim_as(b, having(b, V2));
    EQ_INT(q.n, 0);
    FALSE(q.more);
    EQ_INT(q.next_due_us, 0);
    EQ_INT(get(b, "gpu").waiting_for, WAIT_WORKER);
    EQ_INT(queue_of(b, "default").pending, 2);
    q = claim_as(b, having(b, GPU));
    EQ_INT(q.n, 1);
    EQ_INT(q.next_due_us, now(b) + SEC_US);
}

/* Claims of several workers in one group, beside the call that one of them can run. */
CASE(claims_of_one_group_have_what_each_has)
{
    struct op accept = accept_op(b, needing("gpu", GPU));
    struct op plain = claim_op(having(b, V2)), able = claim_op(having(b, BIG_GPU));
    able.claim.token = fresh_token(b);
    TOGETHER(b, &accept, &plain, &able);
    EQ_INT(plain.claim.n, 0);
    EQ_STR(ids_of(b, &able.claim), "gpu");
}

CASE(needs_are_sorted_and_shown)
{
    const struct bytes mixed[] = { names[1], names[0], names[1] };
    struct call made = accept_spec(b, needing("a", mixed, 3)).call;
    accept_one(b, "b");
    for (int i = 0; i < 2; i++) {
        struct call c = i ? get(b, "a") : made;
        EQ_INT(c.spec.n_needs, 2);
        EQ_TEXT(c.spec.needs[0], "big");
        EQ_TEXT(c.spec.needs[1], "gpu");
    }
    EQ_INT(get(b, "b").spec.n_needs, 0);
    struct claim q = claim_as(b, having(b, BIG_GPU));
    EQ_STR(ids_of(b, &q), "a b");
    EQ_INT(q.calls[0].spec.n_needs, 2);
    EQ_TEXT(q.calls[0].spec.needs[1], "gpu");
    EQ_INT(q.calls[1].spec.n_needs, 0);
    struct page page = { 0 };
    struct query all = { .queue = BYTES("default"), .limit = 10 };
    OK(store_list(b->s, &b->a, &all, &page, &b->err), &b->err);
    EQ_INT(page.n, 2);
    EQ_INT(page.v[1].spec.n_needs, 2);
}

CASE(needs_are_not_what_makes_a_call)
{
    accept_spec(b, needing("a", GPU));
    struct accepted again = accept_spec(b, needing("a", V2));
    TRUE(again.duplicate);
    EQ_INT(again.call.spec.n_needs, 1);
    EQ_TEXT(again.call.spec.needs[0], "gpu");
    TRUE(accept_spec(b, plan("a")).duplicate);
}

CASE(order_holds_over_lanes_with_different_needs)
{
    static const struct bytes *const needs[] = { NULL, names, names + 1, names };
    static const size_t n_needs[] = { 0, 1, 1, 2 };
    for (int i = 0; i < 12; i++) {
        struct call_spec s = needing(arena_printf(&b->a, "c%d", i), needs[i % 4], n_needs[i % 4]);
        s.priority = i >= 8;
        accept_spec(b, s);
    }
    EQ_STR(claimable(b, having(b, BIG_GPU)), "c8 c9 c10 c11 c0 c1 c2 c3 c4 c5 c6 c7");
    EQ_STR(claimable(b, having(b, GPU)), "c8 c10 c0 c2 c4 c6");
}

CASE(a_moved_call_keeps_its_needs)
{
    accept_spec(b, needing("a", GPU));
    struct op op = by_id_op(OP_MOVE, "a");
    op.by_id.queue = BYTES("other");
    OK(one(b, &op), &op.err);
    EQ_TEXT(get(b, "a").spec.queue, "other");
    EQ_INT(get(b, "a").spec.n_needs, 1);
    EQ_STR(claimable(b, want(b, 20)), "");
    EQ_STR(claimable(b, having(b, GPU)), "a");
}

CASE(a_call_that_is_retried_or_lost_keeps_its_needs)
{
    accept_spec(b, needing("a", GPU));
    struct claim q = having(b, GPU);
    q.lease_us = 30 * SEC_US;
    q = claim_as(b, q);
    OK(finish(b, q.token, "a", END_REFUSE), NULL);
    OK(by_id(b, OP_RETRY, "a"), NULL);
    EQ_STR(claimable(b, want(b, 20)), "");
    q.token = fresh_token(b);
    q = claim_as(b, q);
    EQ_INT(q.n, 1);
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    EQ_STR(claimable(b, want(b, 20)), "");
    EQ_STR(claimable(b, having(b, GPU)), "a");
    EQ_INT(get(b, "a").spec.n_needs, 1);
}

/* A call of a key waits for the one before it, whatever that one needs. */
CASE(a_run_ends_at_other_needs)
{
    struct call_spec s = keyed("b", "k");
    line_up(b, "k", "a");
    s.needs = names + 1;
    s.n_needs = 1;
    accept_spec(b, s);
    s.id = BYTES("c");
    accept_spec(b, s);
    line_up(b, "k", "d");
    struct claim q = having(b, GPU);
    q.run_max = 10;
    q = claim_as(b, q);
    EQ_STR(ids_of(b, &q), "a");
    OK(finish(b, q.token, "a", END_RESULT), NULL);
    EQ_STR(claimable(b, want(b, 20)), "");
    q.token = fresh_token(b);
    q = claim_as(b, q);
    EQ_STR(ids_of(b, &q), "b c");
    EQ_INT(q.calls[1].spec.n_needs, 1);
    OK(finish_run(b, q.token, "bc", "rr"), NULL);
    EQ_STR(claimable(b, want(b, 20)), "d");
}

CASE(a_sent_call_has_needs)
{
    accept_one(b, "a");
    struct call_spec send[] = { settled(b, needing("gpu", GPU)), settled(b, plan("plain")) };
    struct finish_item f = item("a", END_RESULT);
    f.send = send;
    f.n_send = 2;
    OK(finish_item(b, claim_n(b, 1), f), &b->err);
    EQ_INT(get(b, "gpu").spec.n_needs, 1);
    EQ_STR(claimable(b, want(b, 20)), "plain");
    EQ_STR(claimable(b, having(b, GPU)), "gpu plain");
}

CASE(many_sets_of_needs_are_lanes_of_their_own)
{
    enum { SETS = 300 };
    struct bytes all[SETS];
    for (int i = 0; i < SETS; i++) {
        all[i] = bytes_of(arena_printf(&b->a, "n%03d", i));
        accept_spec(b, needing(arena_printf(&b->a, "c%d", i), &all[i], 1));
        if (i >= NEEDS_MAX)
            accept_spec(b, needing(arena_printf(&b->a, "w%d", i), &all[i - NEEDS_MAX], NEEDS_MAX));
    }
    EQ_STR(claimable(b, having(b, &all[200], 2)), "c200 c201");
    EQ_STR(claimable(b, having(b, &all[100], NEEDS_MAX)),
           "c100 c101 c102 c103 c104 c105 c106 c107 c108 c109 c110 c111 c112 c113 c114 c115 w116");
    EQ_STR(claimable(b, having(b, V2)), "");
}

CASE(a_node_says_what_it_has)
{
    struct op join = node_op(OP_JOIN, "n", "b");
    join.node.has = BYTES("big\ngpu");
    OK(one(b, &join), &join.err);
    struct node_rows rows;
    OK(store_nodes(b->s, &b->a, &rows, &b->err), &b->err);
    EQ_INT(rows.n, 1);
    EQ_TEXT(rows.v[0].has, "big\ngpu");
    join = node_op(OP_JOIN, "n", "b2");
    OK(one(b, &join), &join.err);
    OK(store_nodes(b->s, &b->a, &rows, &b->err), &b->err);
    ABSENT(rows.v[0].has);
}

/* ---- Lanes without calls --------------------------------------------------------------------- */

/* One gc for every lane that one step looks at, `rounds` times in each quarter of an hour. */
static void gc_for(struct conform_fixture *b, int64_t us, int steps)
{
    for (int64_t passed = 0; passed < us; passed += HOUR_US / 4) {
        advance(b, HOUR_US / 4);
        for (int i = 0; i < steps; i++)
            gc(b);
    }
}

static bool listed(struct conform_fixture *b, const char *queue)
{
    struct queue_rows rows;
    bool found = false;
    OK(store_queues(b->s, &b->a, &rows, &b->err), &b->err);
    for (size_t i = 0; i < rows.n; i++)
        found = found || bytes_eq(rows.v[i].queue, bytes_of(queue));
    return found;
}

/* A number from the tables; `otherwise` where there are none. */
static int64_t stored(struct conform_fixture *b, const char *sql, int64_t otherwise)
{
    return b->engine->kind & ENGINE_MEM ? otherwise : engine_int(b->engine->url, sql);
}

/* Accept a call of this queue, and end it. */
static void pass_through(struct conform_fixture *b, const char *id, const char *queue)
{
    struct call_spec s = plan(id);
    s.queue = bytes_of(queue);
    accept_spec(b, s);
    OK(by_id(b, OP_CANCEL, id), NULL);
}

CASE(a_lane_without_calls_is_removed)
{
    pass_through(b, "a", "one");
    pass_through(b, "b", "two");
    pass_through(b, "c", "three");
    accept_spec(b, needing("d", GPU)); /* it stays, and so does its lane */
    pass_through(b, "e", "last");
    EQ_INT(stored(b, "SELECT max(lane) FROM pawl_lane", 5), 5);
    gc_for(b, 6 * HOUR_US, 1);
    FALSE(listed(b, "one"));
    FALSE(listed(b, "two"));
    TRUE(listed(b, "default"));
    EQ_STR(claimable(b, having(b, GPU)), "d");
    /* The lane with the highest number stays, so that no number is used twice. */
    EQ_INT(stored(b, "SELECT count(*) FROM pawl_lane", 2), 2);
    EQ_INT(stored(b, "SELECT max(lane) FROM pawl_lane", 5), 5);
    /* The queue is used again: another lane. */
    struct call_spec s = plan("f");
    s.queue = BYTES("two");
    accept_spec(b, s);
    TRUE(listed(b, "two"));
    EQ_INT(stored(b, "SELECT max(lane) FROM pawl_lane", 6), 6);
    EQ_TEXT(get(b, "f").spec.queue, "two");
    EQ_STR(claimable(b, having(b, GPU)), "d f");
    gc_for(b, 6 * HOUR_US, 1);
    EQ_INT(stored(b, "SELECT count(*) FROM pawl_lane", 2), 2);
}

CASE(a_lane_with_calls_of_any_kind_stays)
{
    struct call_spec s = plan("waits");
    s.queue = BYTES("waiting");
    accept_spec(b, s);
    pause_queue(b, "waiting", true);
    s = keyed("delayed", "k");
    s.queue = BYTES("later");
    s.delay_us = 100 * HOUR_US;
    accept_spec(b, s);
    s = plan("held");
    s.queue = BYTES("held");
    accept_spec(b, s);
    struct token t = claim_n(b, 1);
    s = plan("kept");
    s.queue = BYTES("kept");
    s.keep_us = 100 * HOUR_US;
    accept_spec(b, s);
    OK(by_id(b, OP_CANCEL, "kept"), NULL);
    pass_through(b, "gone", "gone");
    pass_through(b, "last", "last");
    gc_for(b, 6 * HOUR_US, 1);
    EQ_INT(stored(b, "SELECT count(*) FROM pawl_lane", 5), 5);
    EQ_INT(stored(b, "SELECT count(*) FROM pawl_lane WHERE retired_at = 0", 4), 4);
    finish_ok(b, t, "held", "1");
    OK(by_id(b, OP_RETRY, "kept"), NULL);
    pause_queue(b, "waiting", false);
    EQ_STR(claimable(b, want(b, 10)), "waits kept");
}

/* As often as it has calls again before it is removed. */
CASE(a_retired_lane_is_used_again)
{
    char id[] = "a";
    for (; *id < 'e'; ++*id) {
        pass_through(b, id, "q");
        pass_through(b, arena_printf(&b->a, "%s'", id), "r");
        gc_for(b, HOUR_US, 1);
    }
    struct call_spec s = plan("z");
    s.queue = BYTES("q");
    accept_spec(b, s);
    gc_for(b, 6 * HOUR_US, 1);
    TRUE(listed(b, "q"));
    EQ_INT(stored(b, "SELECT min(lane) FROM pawl_lane", 1), 1);
    EQ_INT(stored(b, "SELECT max(retired_at) FROM pawl_lane WHERE queue = 'q'", 0), 0);
    EQ_STR(claimable(b, want(b, 10)), "z");
}

/* A handle that knew the lane before it was removed makes another. */
CASE(a_lane_that_was_removed_elsewhere_is_not_used)
{
    accept_spec(b, plan("a"));
    pass_through(b, "b", "q");
    pass_through(b, "c", "r");
    struct store *first = b->s;
    AUTO(store_end) struct store *second = conform_fixture_handle(b);
    b->s = second;
    EQ_STR(claimable(b, want(b, 10)), "a");
    gc_for(b, 6 * HOUR_US, 1);
    b->s = first;
    struct call_spec s = plan("d");
    s.queue = BYTES("q");
    accept_spec(b, s);
    EQ_INT(stored(b,
                  "SELECT count(*) FROM pawl_call c WHERE NOT EXISTS (SELECT 1 FROM pawl_lane l "
                  "WHERE l.lane = c.lane)",
                  0),
           0);
    EQ_STR(claimable(b, want(b, 10)), "a d");
    b->s = second;
    EQ_STR(claimable(b, want(b, 10)), "a d");
    EQ_TEXT(get(b, "d").spec.queue, "q");
    b->s = first;
}

/* Retire these lanes, so that the next gc removes them. */
static void retire(struct conform_fixture *b, int steps)
{
    do
        gc_for(b, HOUR_US / 4, steps);
    while (stored(b, "SELECT count(*) FROM pawl_lane WHERE retired_at > 0", 1) == 0);
    gc_for(b, HOUR_US / 4, steps);
    advance(b, HOUR_US);
}

/* Room that removed lanes leave is used: by one call, an atomic batch, a finish that sends. */
CASE(removed_lanes_make_room, .deadline_s = 240)
{
    enum { LEFT = 3 };
    struct call_spec *v = arena_zalloc(&b->a, LANES_MAX, sizeof *v);
    accept_one(b, "sender");
    for (int i = 1; i < LANES_MAX; i++) {
        struct call_spec s = plan(arena_printf(&b->a, "id%d", i));
        s.type = bytes_of(arena_printf(&b->a, "type%d", i));
        s.expires_in_us = i <= LEFT ? SEC_US : 0;
        v[i - 1] = settled(b, s);
    }
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = v, .n = LANES_MAX - 1 } };
    OK(one(b, &op), &op.err);
    EQ_STATUS(accept_spec(b, needing("past", GPU)).status, PAWL_FULL, NULL);
    advance(b, SEC_US);
    EQ_INT(sweep(b).expired, LEFT);
    retire(b, LANES_MAX / 200);
    struct store *first = b->s;
    AUTO(store_end) struct store *other = conform_fixture_handle(b);
    b->s = other; /* it goes on knowing the lanes that are removed now */
    TRUE(listed(b, "default"));
    b->s = first;
    for (int i = 0; i < LANES_MAX / 200; i++)
        gc(b);

    struct claim q = want(b, 1);
    struct bytes type = BYTES("t");
    q.types = &type;
    q.n_types = 1;
    struct finish_item f = item("sender", END_RESULT);
    struct call_spec send = settled(b, needing("sent", V2));
    f.send = &send;
    f.n_send = 1;
    OK(finish_item(b, claim_as(b, q).token, f), &b->err);
    EQ_INT(b->item.state, PAWL_COMPLETED);
    struct call_spec batch[] = { settled(b, needing("x", GPU)), settled(b, needing("y", BIG_GPU)),
                                 settled(b, needing("z", BIG)) };
    op = (struct op){ .kind = OP_ACCEPT, .accept = { .v = batch, .n = 3, .atomic = true } };
    EQ_STATUS(one(b, &op), PAWL_FULL, &op.err);
    EQ_INT(op.accept.refused, 2);
    op = (struct op){ .kind = OP_ACCEPT, .accept = { .v = batch, .n = 2, .atomic = true } };
    OK(one(b, &op), &op.err);
    EQ_STATUS(accept_spec(b, needing("past", BIG)).status, PAWL_FULL, NULL);

    b->s = other;
    q = having(b, names, 3);
    q.types = &type;
    q.n_types = 1;
    EQ_STR(claimable(b, q), "sent x y");
    EQ_STATUS(accept_spec(b, needing("past", BIG)).status, PAWL_FULL, NULL);
    b->s = first;
}

/* One group brings a lane back, removes another, and makes that one again. */
CASE(a_group_sees_the_lanes_that_it_removed)
{
    pass_through(b, "a", "one");
    pass_through(b, "b", "two");
    pass_through(b, "c", "last");
    retire(b, 1);
    struct call_spec first = plan("first"), second = plan("second");
    first.queue = BYTES("one");
    second.queue = BYTES("two");
    struct op back = accept_op(b, first), again = accept_op(b, second);
    struct op removes = { .kind = OP_GC, .gc = { .max = GC_STEP_MAX } };
    TOGETHER(b, &back, &removes, &again);
    OK(back.accept.out[0].status, NULL);
    OK(again.accept.out[0].status, NULL);
    EQ_INT(stored(b, "SELECT lane FROM pawl_lane WHERE queue = 'one'", 1), 1);
    EQ_INT(stored(b, "SELECT lane FROM pawl_lane WHERE queue = 'two'", 4), 4);
    EQ_STR(claimable(b, want(b, 10)), "first second");
}

/* ---- Two handles at the same time ------------------------------------------------------------ */

static struct meeting {
    struct conform_fixture *b;
    struct store *other;
    const char *at;
    enum pawl_status status;
    int met;
} meeting;

/* While one handle removes lanes, another uses one of them. */
static void meet(const char *name, void *ctx)
{
    struct conform_fixture *b = meeting.b;
    (void)ctx;
    if (strcmp(name, meeting.at) != 0 || meeting.met++)
        return;
    struct call_spec spec = plan("met");
    spec.queue = BYTES("q");
    struct op op = accept_op(b, spec), *v = &op;
    op.a = &b->a;
    meeting.status = store_commit(meeting.other, &v, 1);
}

/* Let the lane be retired; the next gc is the one that removes it. */
static void remove_meeting(struct conform_fixture *b, const char *at)
{
    pass_through(b, "a", "q");
    pass_through(b, "b", "r");
    retire(b, 1);
    meeting.b = b;
    meeting.at = at;
    hook_on_pause(meet, NULL);
    gc(b);
    hook_on_pause(NULL, NULL);
}

static bool has_locks(struct conform_fixture *b)
{
    return strcmp(b->engine->says, "postgres") == 0 || strcmp(b->engine->says, "mariadb") == 0;
}

/* It waits for the lock and is told to try again; then the lane is gone, and it makes another. */
CASE(a_lane_is_not_used_while_it_is_removed)
{
    if (!has_locks(b))
        skip("one connection writes at a time");
    meeting.other = conform_fixture_handle(b);
    remove_meeting(b, "ledger.lanes_gc");
    EQ_INT(meeting.met, 1);
    EQ_STATUS(meeting.status, PAWL_BUSY, NULL);
    EQ_INT(stored(b, "SELECT count(*) FROM pawl_lane WHERE queue = 'q'", 0), 0);
    struct store *s = b->s;
    b->s = meeting.other;
    struct call_spec spec = plan("met");
    spec.queue = BYTES("q");
    accept_spec(b, spec);
    store_close(b->s);
    b->s = s;
    EQ_INT(stored(b, "SELECT max(lane) FROM pawl_lane WHERE queue = 'q'", 3), 3);
    EQ_STR(claimable(b, want(b, 10)), "met");
}

/* Between the look and the lock: what the lock's holder sees then decides. */
CASE(a_lane_that_was_brought_back_is_not_removed)
{
    if (!has_locks(b))
        skip("one connection writes at a time");
    meeting.other = conform_fixture_handle(b);
    remove_meeting(b, "ledger.lanes_due");
    EQ_INT(meeting.met, 1);
    OK(meeting.status, NULL);
    store_close(meeting.other);
    EQ_INT(stored(b, "SELECT lane FROM pawl_lane WHERE queue = 'q'", 1), 1);
    EQ_INT(stored(b, "SELECT max(retired_at) FROM pawl_lane WHERE queue = 'q'", 0), 0);
    EQ_STR(claimable(b, want(b, 10)), "met");
}

/* While a transaction that has chosen its lane stands still, the lane is removed. */
static void stall(const char *name, void *ctx)
{
    struct conform_fixture *b = meeting.b;
    (void)ctx;
    if (strcmp(name, meeting.at) != 0 || meeting.met++ != 1)
        return; /* before its second operation */
    struct store *s = b->s;
    b->s = meeting.other;
    gc_for(b, 6 * HOUR_US, 1);
    b->s = s;
    EQ_INT(stored(b, "SELECT count(*) FROM pawl_lane WHERE queue = 'q'", 0), 0);
}

CASE(a_transaction_that_stood_still_does_not_use_a_removed_lane)
{
    if (!has_locks(b))
        skip("one connection writes at a time");
    pass_through(b, "a", "q");
    pass_through(b, "b", "r");
    meeting.b = b;
    meeting.other = conform_fixture_handle(b);
    meeting.at = "ledger.next_op";
    struct call_spec spec = plan("stood");
    spec.queue = BYTES("q");
    struct op first = accept_op(b, spec), second = accept_op(b, plan("second"));
    hook_on_pause(stall, NULL);
    TOGETHER(b, &first, &second);
    hook_on_pause(NULL, NULL);
    OK(first.accept.out[0].status, NULL);
    store_close(meeting.other);
    EQ_TEXT(get(b, "stood").spec.queue, "q");
    EQ_STR(claimable(b, want(b, 10)), "stood second");
    EQ_INT(stored(b, "SELECT max(lane) FROM pawl_lane WHERE queue = 'q'", 3), 3);
}

/* Another handle takes the id that the second operation of a group is about to use. */
static void overtake(const char *name, void *ctx)
{
    struct conform_fixture *b = meeting.b;
    (void)ctx;
    if (strcmp(name, meeting.at) != 0 || meeting.met++ != 1)
        return; /* before its second operation */
    struct op op = accept_op(b, plan("twice")), *v = &op;
    op.a = &b->a;
    meeting.status = store_commit(meeting.other, &v, 1);
}

/* A group removes a lane, reads the table without it, and is undone: the lane is still there. */
CASE(an_undone_group_has_removed_no_lane)
{
    if (!has_locks(b))
        skip("one connection writes at a time");
    pass_through(b, "a", "q");
    accept_one(b, "b");
    retire(b, 1);
    meeting.b = b;
    meeting.other = conform_fixture_handle(b);
    meeting.at = "ledger.next_op";
    struct op removes = { .kind = OP_GC, .gc = { .max = GC_STEP_MAX } };
    struct op accept = accept_op(b, plan("twice"));
    hook_on_pause(overtake, NULL);
    TOGETHER(b, &removes, &accept);
    hook_on_pause(NULL, NULL);
    OK(meeting.status, NULL);
    TRUE(accept.accept.out[0].duplicate);
    struct call_spec spec = plan("c");
    spec.queue = BYTES("q");
    struct store *first = b->s;
    b->s = meeting.other;
    accept_spec(b, spec);
    store_close(b->s);
    b->s = first;
    EQ_STR(claimable(b, want(b, 10)), "b twice c");
    spec.id = BYTES("d");
    accept_spec(b, spec);
    EQ_INT(stored(b, "SELECT count(*) FROM pawl_lane WHERE queue = 'q'", 1), 1);
    EQ_STR(claimable(b, want(b, 10)), "b twice c d");
}
