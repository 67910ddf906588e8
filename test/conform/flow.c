/*
 * flow.c - calls that begin to take steps: who may claim them, what they are to everybody, how they
 * wait and go on. The feature is that of the tests (test/lib/flow.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "flow_case.h"

#include <stdio.h>
#include <string.h>

#include "model/needs.h"

/* ---- Begun ----------------------------------------------------------------------------------- */

FLOW_CASE(a_step_is_stored_once)
{
    int64_t x = accept_one(b, "x");
    struct token t = claim_steps(b, 1, 0);
    struct flow_op again = { .step = 1 };
    flow_step(b, t, x, 1);
    OK(flow_do(b, &again, t, x), &b->op.err);
    TRUE(b->op.feature.repeated);
    EQ_INT(again.steps, 1);
    flow_step(b, t, x, 2);
    STATE_IS(b, "x", PAWL_PROCESSING);
    finish_ok(b, t, "x", "5");
    STATE_IS(b, "x", PAWL_COMPLETED);
    EQ_STR(flow_told(b, x), "23");
}

FLOW_CASE(only_a_worker_for_steps_gets_a_flow)
{
    int64_t x = accept_one(b, "x"), y = accept_one(b, "y");
    struct token t = claim_n(b, 1); /* anyone may begin it */
    flow_wait(b, t, x, 1, now(b));
    EQ_STR(claimable(b, want(b, 10)), "y");
    EQ_STR(claimable(b, want_steps(b, 10)), "x y");
    (void)y;
}

FLOW_CASE(needs_of_a_flow_are_shown_as_they_were)
{
    static const struct bytes needs[] = { BYTES("gpu"), BYTES("0x") },
                              has[] = { BYTES("0x"), NEED_STEPS, BYTES("gpu") };
    struct call_spec s = plan("x");
    s.needs = needs;
    s.n_needs = COUNT_OF(needs);
    int64_t x = accept_spec(b, s).call.seq;
    struct claim q = want_steps(b, 1);
    q.has = has;
    q.n_has = COUNT_OF(has);
    q = claim_as(b, q);
    EQ_UINT(q.n, 1);
    flow_wait(b, q.token, x, 1, now(b));
    struct call c = get(b, "x");
    EQ_UINT(c.spec.n_needs, 2);
    EQ_TEXT(c.spec.needs[0], "0x");
    EQ_TEXT(c.spec.needs[1], "gpu");
    EQ_STR(claimable(b, want_steps(b, 1)), ""); /* it still needs them */
    q = want_steps(b, 1);
    q.has = has;
    q.n_has = COUNT_OF(has);
    q = claim_as(b, q);
    EQ_UINT(q.n, 1);
    EQ_UINT(q.calls[0].spec.n_needs, 2);
}

FLOW_CASE(no_call_is_a_flow_before_the_second_half)
{
    int64_t x = accept_one(b, "x");
    struct token t = claim_steps(b, 1, 0);
    struct flow_op q = { .step = 1 };
    engine_rows(b->url, "UPDATE pawl_migration SET finished = 0 WHERE number = 11");
    EQ_STATUS(flow_do(b, &q, t, x), PAWL_STATE, &b->op.err);
    HAS_STR(b->op.err.text, "migrate finish");
    EQ_STR(engine_rows(b->url, "SELECT steps FROM flow"), "0");
    finish_ok(b, t, "x", "1");
}

FLOW_CASE(a_flow_no_longer_expires)
{
    struct call_spec s = plan("x");
    s.expires_in_us = 10 * SEC_US;
    int64_t x = flow_waiting(b, s, now(b) + 60 * SEC_US);
    EQ_INT(get(b, "x").expires_us, 0);
    advance(b, 30 * SEC_US);
    EQ_INT(sweep(b).expired, 0);
    STATE_IS(b, "x", PAWL_PROCESSING);
    flow_wake(b, x);
    struct token t = claim_steps(b, 1, 0);
    finish_ok(b, t, "x", "1");
}

FLOW_CASE(a_cancel_that_came_before_is_told)
{
    int64_t x = accept_one(b, "x");
    struct token t = claim_steps(b, 1, 0);
    struct flow_op q = { .step = 1 }, more = { .step = 2 };
    OK(by_id(b, OP_CANCEL, "x"), &b->op.err);
    TRUE(get(b, "x").cancel_requested);
    OK(flow_do(b, &q, t, x), &b->op.err);
    TRUE(q.cancel);
    FALSE(get(b, "x").cancel_requested);
    OK(flow_do(b, &more, t, x), &b->op.err);
    FALSE(more.cancel);
    /* No request is left that would cancel it. */
    OK(finish(b, t, "x", END_RELEASE), &b->err);
    STATE_IS(b, "x", PAWL_PROCESSING);
}

FLOW_CASE(what_an_undone_group_began_is_not_begun)
{
    int64_t x = accept_one(b, "x");
    struct token t = claim_steps(b, 1, 0), wrong = t;
    struct flow_op q = { .step = 1 };
    wrong.b[0] ^= 1;
    EQ_STATUS(flow_do(b, &q, wrong, x), PAWL_LOST_LEASE, &b->op.err);
    OK(finish(b, t, "x", END_RELEASE), &b->err);
    STATE_IS(b, "x", PAWL_PENDING);
    EQ_STR(claimable(b, want(b, 1)), "x");
}

/* ---- Attempts and times ---------------------------------------------------------------------- */

FLOW_CASE(attempts_count_within_one_pass)
{
    struct call_spec s = plan("x");
    s.max_attempts = 2;
    s.backoff = (struct backoff){ .base_us = 1, .max_us = 1, .factor = 1 };
    int64_t x = accept_spec(b, s).call.seq;
    for (int step = 1; step <= 4; step++) {
        struct token t = claim_steps(b, 1, 0);
        flow_step(b, t, x, step);
        finish_error(b, t, "x", "no");
        EQ_INT(get(b, "x").counts.attempts, 1);
        STATE_IS(b, "x", PAWL_PROCESSING);
        advance(b, 1 * SEC_US);
    }
    struct token t = claim_steps(b, 1, 0);
    finish_error(b, t, "x", "no"); /* without a step between */
    STATE_IS(b, "x", PAWL_DEAD_LETTER);
    EQ_UINT(attempts_of(b, "x").n, 5);
}

FLOW_CASE(a_step_makes_a_lost_call_good)
{
    int64_t x = accept_one(b, "x");
    claim_steps(b, 1, 10 * SEC_US);
    advance(b, 11 * SEC_US);
    sweep(b);
    EQ_INT(get(b, "x").counts.lost, 1);
    struct token t = claim_steps(b, 1, 0);
    flow_step(b, t, x, 1);
    EQ_INT(get(b, "x").counts.lost, 0);
    OK(finish(b, t, "x", END_RELEASE), &b->err);
    accept_one(b, "y");
    EQ_STR(claimable(b, want_steps(b, 2)), "x y"); /* no longer alone */
}

FLOW_CASE(a_lost_flow_is_due_at_once)
{
    int64_t x = accept_one(b, "x");
    struct token t = claim_steps(b, 1, 10 * SEC_US);
    flow_step(b, t, x, 1);
    advance(b, 11 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    struct call c = get(b, "x");
    EQ_INT(c.state, PAWL_PROCESSING);
    EQ_INT(c.counts.lost, 1);
    EQ_INT(c.waiting_for, WAIT_WORKER);
    ABSENT(c.node);
    EQ_INT(flow_seen.how, END_LOST);
    EQ_STR(claimable(b, want_steps(b, 1)), "x");
}

FLOW_CASE(a_timeout_counts_from_the_last_step)
{
    struct call_spec s = plan("x");
    s.timeout_us = 10 * SEC_US;
    int64_t x = accept_spec(b, s).call.seq;
    struct token t = claim_steps(b, 1, 60 * SEC_US);
    struct op extend = { .kind = OP_EXTEND, .extend = { .token = t, .lease_us = 60 * SEC_US } };
    advance(b, 8 * SEC_US);
    flow_step(b, t, x, 1);
    OK(one(b, &extend), &extend.err);
    EQ_INT(extend.extend.until_us, now(b) + 10 * SEC_US);
    advance(b, 8 * SEC_US);
    OK(one(b, &extend), &extend.err);
    EQ_UINT(extend.extend.n_timed_out, 0);
    advance(b, 1 * SEC_US);
    flow_step(b, t, x, 2); /* the lease was to end with the timeout, in a second */
    advance(b, 9 * SEC_US);
    OK(one(b, &extend), &extend.err);
    EQ_UINT(extend.extend.n_timed_out, 0);
    EQ_INT(extend.extend.until_us, now(b) + 1 * SEC_US);
    advance(b, 1 * SEC_US);
    sweep(b);
    EQ_INT(flow_seen.how, END_TIMEOUT);
    EQ_INT(get(b, "x").counts.attempts, 1);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

FLOW_CASE(a_flow_waits_for_a_time)
{
    int64_t x = flow_waiting(b, plan("x"), now(b) + 60 * SEC_US);
    struct call c = get(b, "x");
    EQ_INT(c.state, PAWL_PROCESSING);
    EQ_INT(c.waiting_for, WAIT_TIMER);
    EQ_INT(c.run_at_us, now(b) + 60 * SEC_US);
    EQ_INT(c.counts.attempts, 0);
    ABSENT(c.node);
    EQ_UINT(attempts_of(b, "x").n, 0);
    EQ_STR(flow_told(b, x), "21");
    struct claim q = claim_as(b, want_steps(b, 1));
    EQ_UINT(q.n, 0);
    EQ_INT(q.next_due_us, now(b) + 60 * SEC_US);
    advance(b, 60 * SEC_US);
    EQ_INT(get(b, "x").waiting_for, WAIT_WORKER);
    finish_ok(b, claim_steps(b, 1, 0), "x", "1");
}

FLOW_CASE(a_flow_waits_for_ever_until_it_is_woken)
{
    struct call_spec s = plan("x");
    int64_t before = now(b), x = flow_waiting(b, s, FLOW_NEVER_US);
    struct claim q = claim_as(b, want_steps(b, 1));
    EQ_UINT(q.n, 0);
    EQ_INT(q.next_due_us, 0);
    EQ_INT(get(b, "x").run_at_us, before);
    flow_wake(b, x);
    STATE_IS(b, "x", PAWL_PROCESSING);
    EQ_INT(get(b, "x").waiting_for, WAIT_WORKER);
    finish_ok(b, claim_steps(b, 1, 0), "x", "1");
}

FLOW_CASE(readers_are_told_what_each_waits_for)
{
    static const struct {
        const char *id;
        enum call_wait waits;
    } v[] = {
        { "x", WAIT_SIGNAL }, { "y", WAIT_CHILDREN }, { "z", WAIT_RETRY }, { "w", WAIT_NONE }
    };
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        struct flow_op q = { .step = 1, .until_us = FLOW_NEVER_US, .waits = v[i].waits };
        int64_t seq = accept_one(b, v[i].id);
        OK(flow_do(b, &q, claim_steps(b, 1, 0), seq), &b->op.err);
    }
    accept_one(b, "p");
    flow_seen.shown = 0;
    struct query q = { .state = PAWL_PROCESSING, .limit = 10 };
    struct page page;
    OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
    EQ_UINT(page.n, 4);
    EQ_INT(flow_seen.shown, 1); /* once for the page */
    EQ_INT(page.v[3].waiting_for, WAIT_SIGNAL);
    EQ_INT(page.v[2].waiting_for, WAIT_CHILDREN);
    EQ_INT(page.v[1].waiting_for, WAIT_RETRY);
    EQ_INT(page.v[0].waiting_for, WAIT_TIMER);
    q.state = PAWL_PENDING;
    OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
    EQ_UINT(page.n, 1);
    EQ_TEXT(page.v[0].spec.id, "p");
}

FLOW_CASE(what_a_lease_says_of_a_flow_that_left_it_is_void)
{
    int64_t x = accept_one(b, "x"), y = accept_one(b, "y");
    struct token t = claim_steps(b, 2, 0);
    struct flow_op late = { .step = 2 };
    flow_wait(b, t, x, 1, now(b) + SEC_US);
    EQ_STATUS(flow_do(b, &late, t, x), PAWL_LOST_LEASE, &b->op.err);
    struct flow_op again = { .step = 1, .until_us = now(b) + SEC_US };
    OK(flow_do(b, &again, t, x), &b->op.err); /* what was stored gets the first answer */
    TRUE(b->op.feature.repeated);
    EQ_STATUS(finish(b, t, "x", END_RESULT), PAWL_LOST_LEASE, &b->err);
    flow_step(b, t, y, 1); /* it keeps the other */
    finish_ok(b, t, "y", "1");
}

FLOW_CASE(a_page_counts_as_processing_and_a_queue_as_waiting)
{
    flow_waiting(b, plan("x"), now(b) + 60 * SEC_US);
    int64_t y = flow_waiting(b, plan("y"), now(b) + 60 * SEC_US);
    flow_wake(b, y);
    int64_t z = accept_one(b, "z");
    (void)z;
    struct queue_row row = queue_of(b, "default");
    EQ_INT(row.waiting, 2);
    EQ_INT(row.pending, 1);
    EQ_INT(row.due, 1);
    EQ_INT(row.processing, 0);
    EQ_UINT(claim_as(b, want_steps(b, 2)).n, 2);
    row = queue_of(b, "default");
    EQ_INT(row.waiting, 1);
    EQ_INT(row.processing, 2);
    EQ_INT(row.pending, 0);
    EQ_INT(row.oldest_due_us, 0);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

FLOW_CASE(a_flow_that_waits_keeps_its_key)
{
    int64_t a = accept_spec(b, keyed("a", "k")).call.seq;
    accept_spec(b, keyed("b", "k"));
    struct token t = claim_steps(b, 1, 0);
    flow_wait(b, t, a, 1, now(b) + 60 * SEC_US);
    EQ_STR(claimable(b, want_steps(b, 10)), "");
    struct call c = get(b, "a");
    EQ_INT(c.position, 0);
    TRUE(c.in_line);
    EQ_INT(c.key_no, 1);
    EQ_INT(get(b, "b").waiting_for, WAIT_KEY);
    EQ_INT(get(b, "b").position, 1);
    struct key_row k = key_of(b, "k");
    EQ_TEXT(k.head, "a");
    EQ_INT(k.head_state, PAWL_PROCESSING);
    EQ_INT(k.waiting_for, WAIT_TIMER);
    struct call_spec urgent = keyed("c", "k");
    urgent.priority = 9;
    accept_spec(b, urgent);
    EQ_STR(claimable(b, want_steps(b, 10)), "");
    flow_wake(b, a);
    EQ_STR(claimable(b, want_steps(b, 10)), "a");
    finish_ok(b, claim_steps(b, 1, 0), "a", "1");
    EQ_STR(claimable(b, want_steps(b, 1)), "b");
}

FLOW_CASE(calls_claimed_behind_a_flow_go_back)
{
    int64_t seq[3];
    for (int i = 0; i < 3; i++)
        seq[i] = accept_spec(b, keyed(i == 0 ? "a" : i == 1 ? "b" : "c", "k")).call.seq;
    struct claim q = want_steps(b, 3);
    struct flow_op early = { .step = 1 };
    q.run_max = 3;
    q = claim_as(b, q);
    EQ_UINT(q.n, 3);
    EQ_STATUS(flow_do(b, &early, q.token, seq[1]), PAWL_INVALID, &b->op.err);
    HAS_STR(b->op.err.text, "has not ended");
    flow_wait(b, q.token, seq[0], 1, now(b) + SEC_US);
    STATE_IS(b, "b", PAWL_PENDING);
    EQ_STATUS(finish(b, q.token, "b", END_RESULT), PAWL_LOST_LEASE, &b->err);
    advance(b, SEC_US);
    finish_ok(b, claim_steps(b, 1, 0), "a", "1");
    finish_ok(b, claim_steps(b, 1, 0), "b", "1");
    finish_ok(b, claim_steps(b, 1, 0), "c", "1");
}

FLOW_CASE(an_object_is_busy_while_a_flow_of_its_key_waits)
{
    struct object_op set = {
        .type = BYTES("t"), .key = BYTES("k"), .how = STATE_SET, .state = { PAWL_JSON, BYTES("1") }
    };
    object_put(b, "t", "k", "0");
    int64_t a = flow_waiting(b, keyed("a", "k"), FLOW_NEVER_US);
    EQ_STATUS(object(b, set), PAWL_BUSY, &b->op.err);
    HAS_STR(b->op.err.text, "a call is running");
    EQ_INT(object_of(b, "t", "k").pending, 0);
    set.how = STATE_DELETE;
    EQ_STATUS(object(b, set), PAWL_BUSY, &b->op.err);
    set.cancel = true;
    accept_spec(b, keyed("b", "k"));
    OK(object(b, set), &b->op.err);
    EQ_INT(flow_seen.cancelled, 1);
    STATE_IS(b, "a", PAWL_PROCESSING);
    STATE_IS(b, "b", PAWL_CANCELLED);
    EQ_INT(b->op.object.cancelled, 2);
    EQ_STR(claimable(b, want_steps(b, 1)), "a"); /* woken */
    (void)a;
}

/* ---- Repeats, and two writers ---------------------------------------------------------------- */

/* Answers are lost: each group runs again. */
TEST(lost_answers_repeat_what_flows_do)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = flow_fixture(param, "fault+");
    for (int i = 0; i < 12; i++) {
        const char *id = arena_printf(&b->a, "x%d", i);
        int64_t x = accept_one(b, id);
        struct token t = claim_steps(b, 1, 0);
        flow_step(b, t, x, 1);
        struct flow_op wait = { .step = 2, .until_us = FLOW_NEVER_US, .waits = WAIT_SIGNAL };
        OK(flow_do(b, &wait, t, x), &b->op.err); /* its lease lets go of it the first time */
        EQ_STR(engine_rows(b->url, arena_printf(&b->a, "SELECT steps FROM flow WHERE seq = %lld",
                                                (long long)x)),
               "2");
        STATE_IS(b, "x0", i ? PAWL_COMPLETED : PAWL_PROCESSING);
        flow_wake(b, x);
        t = claim_steps(b, 1, 0);
        flow_step(b, t, x, 3);
        finish_ok(b, t, id, "1");
    }
}

/* A second handle remembers neither the lease nor the lane. */
FLOW_CASE(two_handles_share_a_flow)
{
    AUTO(store_end) struct store *first = b->s;
    int64_t x = accept_one(b, "x");
    struct token t = claim_steps(b, 1, 0);
    struct store *second = b->s = conform_fixture_handle(b);
    flow_step(b, t, x, 1);
    b->s = first;
    flow_step(b, t, x, 2);
    b->s = second;
    STATE_IS(b, "x", PAWL_PROCESSING);
    flow_wait(b, t, x, 3, now(b));
    b->s = first;
    STATE_IS(b, "x", PAWL_PROCESSING);
    t = claim_steps(b, 1, 0);
    b->s = second;
    OK(by_id(b, OP_CANCEL, "x"), &b->op.err);
    EQ_INT(b->op.by_id.state, PAWL_PROCESSING);
    EQ_INT(flow_seen.cancelled, 1);
    finish_ok(b, t, "x", "1");
}

/* ---- A handler's SQL ------------------------------------------------------------------------- */

static bool step_sql(void *ctx, struct sql_tx *tx)
{
    struct conform_fixture *b = ctx;
    struct pawl_rows rows;
    struct sql_query q = { .sql = "INSERT INTO app VALUES (1)", .deadline_us = INT64_MAX };
    OK(store_sql(tx, &b->a, &q, &rows, &b->err), &b->err);
    return true;
}

/* The first step and the last one: it becomes a flow, and waits, with the SQL. */
FLOW_CASE(a_step_commits_with_its_sql)
{
    if (!b->engine->sql)
        skip("%s has no handler SQL", b->engine->name);
    struct op script = { .kind = OP_SCRIPT, .script.sql = BYTES("CREATE TABLE app (n INT)") };
    OK(one(b, &script), &script.err);
    int64_t x = accept_spec(b, keyed("x", "k")).call.seq;
    struct token t = claim_steps(b, 1, 0);
    struct flow_op q = { .step = 1 }, wait = { .step = 2, .until_us = FLOW_NEVER_US };
    struct op end = flow_fenced(&q, t, x);
    struct op op = { .kind = OP_HANDLER, .handler = { .run = step_sql, .ctx = b, .end = &end } };
    OK(one(b, &op), &op.err);
    TRUE(op.handler.committed_sql);
    OK(one(b, &op), &op.err); /* its answer was lost, and the attempt runs again */
    TRUE(end.feature.repeated && !op.handler.committed_sql);
    end = flow_fenced(&wait, t, x);
    OK(one(b, &op), &op.err);
    TRUE(op.handler.committed_sql);
    OK(one(b, &op), &op.err);
    TRUE(end.feature.repeated && !op.handler.committed_sql);
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM app"), "2");
    EQ_INT(get(b, "x").waiting_for, WAIT_TIMER);
    flow_wake(b, x);
    finish_ok(b, claim_steps(b, 1, 0), "x", "1");
}
