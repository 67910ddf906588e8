/*
 * promises.c - the promises of doc/promises.md, by number, as far as one store can keep them.
 *
 * Tests that need processes are in test/crash.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

CASE(promise_1_accepted_means_stored)
{
    accept_one(b, "a");
    AUTO(store_end) struct store *other = conform_fixture_handle(b);
    struct store *first = b->s;
    b->s = other;
    store_close(first); /* the handle that accepted it is closed */
    STATE_IS(b, "a", PAWL_PENDING);
    EQ_STR(claimable(b, want(b, 1)), "a");
    other = NULL; /* the fixture closes it */
}

CASE(promise_2_outcome_and_sent_calls_commit_as_one)
{
    accept_one(b, "a");
    struct token t = claim_for(b, 1, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    struct token t2 = claim_n(b, 1);
    struct call_spec send[] = { settled(b, plan("mail")) };
    struct finish_item f = item("a", END_RESULT);
    f.send = send;
    f.n_send = 1;
    /* The slow owner: none of its writes is stored. */
    EQ_STATUS(finish_item(b, t, f), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(found(b, "mail"), PAWL_NOT_FOUND, NULL);
    OK(finish_item(b, t2, f), NULL);
    STATE_IS(b, "mail", PAWL_PENDING);
    STATE_IS(b, "a", PAWL_COMPLETED);
}

CASE(promise_2_a_repeated_finish_lands_once)
{
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    finish_ok(b, t, "a", "1");
    const char *before = snapshot(b);
    finish_ok(b, t, "a", "2");
    EQ_STR(snapshot(b), before);
}

/* How much the version changes while three duplicates are submitted. */
static int64_t duplicates_move(struct conform_fixture *b, struct store *watcher)
{
    int64_t version = 0, after = 0;
    OK(store_version(watcher, &version, &b->err), &b->err);
    for (int i = 0; i < 3; i++) {
        advance(b, 1);
        struct accepted r = accept_spec(b, plan("a"));
        TRUE(r.duplicate);
        EQ_TEXT(r.call.result.bytes, "\"first\"");
    }
    OK(store_version(watcher, &after, &b->err), &b->err);
    return after - version;
}

CASE(promise_3_a_duplicate_gets_the_first_ones_answer_without_a_write)
{
    accept_one(b, "a");
    finish_ok(b, claim_n(b, 1), "a", "\"first\"");
    AUTO(store_end) struct store *watcher = conform_fixture_handle(b);
    const char *before = snapshot(b);
    /* Where the version belongs to the whole server, other cases and the server itself change it
     * too; a write of ours would change it every time. */
    int64_t moved = 1;
    for (int i = 0; i < 500 && moved; i++)
        moved = duplicates_move(b, watcher);
    EQ_INT(moved, 0);
    EQ_STR(snapshot(b), before);
    EQ_INT(accept_one(b, "b"), 2); /* no number was used */
}

CASE(promise_3_other_content_is_a_conflict)
{
    accept_one(b, "a");
    finish_ok(b, claim_n(b, 1), "a", "\"mine\"");
    struct call_spec s = plan("a");
    s.input.bytes = BYTES("\"other\"");
    struct accepted r = accept_spec(b, s);
    EQ_STATUS(r.status, PAWL_CONFLICT, NULL);
    ABSENT(r.call.result.bytes); /* never another call's result */
}

CASE(promise_3_an_id_is_remembered_as_long_as_stated)
{
    ended_call(b, "a", PAWL_COMPLETED);
    advance(b, RETENTION_US);
    gc(b);
    advance(b, REMEMBER_US - 1);
    gc(b);
    EQ_STATUS(accept_spec(b, plan("a")).status, PAWL_GONE, NULL); /* refused rather than run */
}

CASE(promise_5_a_stale_owner_can_change_nothing)
{
    accept_n(b, "a", 2);
    struct token stale = claim_for(b, 2, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    sweep(b);
    struct token t = claim_n(b, 1);
    const char *before = snapshot(b);
    enum ending hows[] = { END_RESULT, END_ERROR,   END_TIMEOUT,  END_REFUSE,
                           END_LATER,  END_RELEASE, END_CANCELLED };
    for (size_t i = 0; i < COUNT_OF(hows); i++) {
        EQ_STATUS(finish(b, stale, "a0", hows[i]), PAWL_LOST_LEASE, NULL);
        EQ_STATUS(finish(b, stale, "a1", hows[i]), PAWL_LOST_LEASE, NULL);
    }
    struct op op = { .kind = OP_EXTEND, .extend = { .token = stale, .lease_us = SEC_US } };
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, &op.err);
    EQ_STR(snapshot(b), before);
    finish_ok(b, t, "a0", "\"new owner\"");
    EQ_STATUS(finish(b, stale, "a0", END_RESULT), PAWL_LOST_LEASE, NULL);
    EQ_TEXT(get(b, "a0").result.bytes, "\"new owner\"");
}

CASE(promise_5_another_leases_call_is_not_mine)
{
    accept_n(b, "a", 2);
    struct token t1 = claim_n(b, 1), t2 = claim_n(b, 1);
    EQ_STATUS(finish(b, t1, "a1", END_RESULT), PAWL_LOST_LEASE, NULL);
    finish_ok(b, t2, "a1", "1");
    EQ_STATUS(finish(b, t1, "a1", END_RESULT), PAWL_LOST_LEASE, NULL);
    finish_ok(b, t1, "a0", "1");
}

CASE(promise_6_a_dead_nodes_work_comes_back_without_traffic)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_n(b, "a", 3);
    struct token t = claim_n(b, 3);
    struct op bury = node_op(OP_BURY, "n1", "b1");
    OK(one(b, &bury), &bury.err);
    EQ_INT(bury.node.reclaimed, 3);
    for (int i = 0; i < 3; i++) {
        struct claim q = want(b, 1);
        q.node = BYTES("n2");
        q = claim_as(b, q);
        EQ_INT(q.n, 1);
        EQ_STATUS(finish(b, t, i == 0 ? "a0" : "a1", END_RESULT), PAWL_LOST_LEASE, NULL);
    }
}

CASE(promise_6_a_restarted_node_fences_its_former_self)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    OK(node(b, OP_JOIN, "n1", "b2"), NULL);
    EQ_STATUS(finish(b, t, "a", END_RESULT), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(node(b, OP_BEAT, "n1", "b1"), PAWL_LOST_LEASE, NULL);
}

CASE(promise_6_a_clean_stop_hands_over_at_once)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_n(b, "a", 2);
    claim_n(b, 2);
    OK(node(b, OP_LEAVE, "n1", "b1"), NULL);
    EQ_STR(claimable(b, want(b, 5)), "a0 a1"); /* not counted: none is marked retry_alone */
}

/* One call kills its process each time it runs; 500 good calls are in its first claim. */
CASE(promise_7_bad_work_cannot_block_good_work)
{
    accept_n(b, "good", 250);
    accept_one(b, "poison");
    accept_n(b, "more", 250);
    claim_for(b, 501, 30 * SEC_US);
    int losses = 0, done = 0;
    for (int turn = 0; turn < 2000; turn++) {
        struct claim q = want(b, 501);
        q.lease_us = 30 * SEC_US;
        q = claim_as(b, q);
        bool poisoned = false;
        for (size_t i = 0; i < q.n; i++)
            poisoned |= bytes_eq(q.calls[i].spec.id, BYTES("poison"));
        if (q.n == 0 || poisoned) { /* the process dies */
            losses += poisoned;
            advance(b, 30 * SEC_US);
            if (sweep(b).reclaimed == 0)
                break;
            continue;
        }
        for (size_t i = 0; i < q.n; i++) {
            struct finish_item f = { .seq = q.calls[i].seq, .how = END_RESULT };
            OK(finish_item(b, q.token, f), NULL);
            done++;
        }
    }
    EQ_INT(done, 500);
    STATE_IS(b, "poison", PAWL_DEAD_LETTER);
    EQ_INT(losses, 4); /* and the one that was not alone: max_lost 5 */
    EQ_INT(get(b, "good0").counts.lost, 1);
    STATE_IS(b, "more249", PAWL_COMPLETED);
}

CASE(promise_7_deliveries_are_counted_at_claim)
{
    struct call_spec s = plan("a");
    s.max_lost = 1;
    accept_spec(b, s);
    claim_for(b, 1, 30 * SEC_US); /* no worker ever reports anything */
    advance(b, 30 * SEC_US);
    sweep(b);
    STATE_IS(b, "a", PAWL_DEAD_LETTER);
}

CASE(promise_8_everything_stored_has_the_databases_clock)
{
    int64_t t0 = now(b);
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_one(b, "a");
    advance(b, 10);
    struct token t = claim_n(b, 1);
    advance(b, 10);
    finish_ok(b, t, "a", "1");
    struct call c = get(b, "a");
    EQ_INT(c.created_us, t0);
    EQ_INT(c.claimed_us, t0 + 10);
    EQ_INT(c.finished_us, t0 + 20);
    int64_t at = 0;
    OK(store_now(b->s, &at, &b->err), &b->err);
    EQ_INT(at, t0 + 20);
}

/* The promise is that every case here runs on every engine; this case checks that they agree byte
 * for byte. */
CASE(promise_9_the_same_on_every_engine)
{
    accept_n(b, "a", 4);
    struct token t = claim_for(b, 3, 30 * SEC_US);
    finish_ok(b, t, "a0", "[1]");
    finish_error(b, t, "a1", "boom");
    advance(b, 30 * SEC_US);
    sweep(b);
    const char *mine = snapshot(b);
    AUTO(conform_fixture_end) struct conform_fixture *m = conform_fixture_open("mem:promise 9");
    accept_n(m, "a", 4);
    t = claim_for(m, 3, 30 * SEC_US);
    finish_ok(m, t, "a0", "[1]");
    finish_error(m, t, "a1", "boom");
    advance(m, 30 * SEC_US);
    sweep(m);
    EQ_STR(mine, snapshot(m));
}
