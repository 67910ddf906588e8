/*
 * flow_writers.c - another connection makes a call a flow while ours decides about it: ours is
 * undone and decided again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "flow_case.h"

#include <stdio.h>
#include <string.h>

/* ---- What the other connection does meanwhile ------------------------------------------------ */

struct meanwhile {
    struct op *v; /* nested, one after the other; the other connection acts before the last */
    size_t n;
    bool late; /* it acts after the last */
    void (*other)(void);
};

static struct conform_fixture *fixture;
static struct store *theirs;
static struct token token;
static int64_t seq;

/* Commit on the other connection. */
static void as_other(void (*act)(void))
{
    struct store *ours = fixture->s;
    fixture->s = theirs;
    act();
    fixture->s = ours;
}

static enum pawl_status run(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct meanwhile *m = op->feature.ctx;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < m->n && st == PAWL_OK; i++) {
        if (i + 1 == m->n && !m->late && m->other)
            as_other(TAKE(m->other));
        st = feature_nested(d, &m->v[i], err);
    }
    if (st == PAWL_OK && m->other)
        as_other(TAKE(m->other));
    return st;
}

static const struct feature between = { .name = "between", .apply = run };
static const struct feature *const both[] = { &between, &flow_feature };

static struct conform_fixture *two_writers(void *param)
{
    struct conform_fixture *b = flow_fixture(param, "");
    if (b->engine->kind != ENGINE_SERVER) {
        conform_fixture_end(&b);
        skip("one connection writes at a time");
    }
    theirs = b->s;
    b->features = both;
    b->n_features = COUNT_OF(both);
    b->s = conform_fixture_handle(b);
    fixture = b;
    return b;
}

#define WRITERS_CASE(name)                                                                         \
    static void name##_body(struct conform_fixture *b);                                            \
    TEST(name)                                                                                     \
    {                                                                                              \
        AUTO(conform_fixture_end) struct conform_fixture *b = two_writers(param);                  \
        name##_body(b);                                                                            \
        store_close(theirs);                                                                       \
    }                                                                                              \
    static void name##_body(struct conform_fixture *b)

static enum pawl_status with(struct conform_fixture *b, struct meanwhile *m)
{
    struct op op = { .kind = OP_FEATURE, .feature = { .of = &between, .ctx = m } };
    enum pawl_status st = one(b, &op);
    TRUE(m->other == NULL);
    return st;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void claims_begins_waits(void)
{
    flow_wait(fixture, claim_steps(fixture, 1, 0), seq, 1, FLOW_NEVER_US);
}

WRITERS_CASE(a_pending_call_that_waits_as_a_flow_is_not_cancelled)
{
    struct op stop = by_id_op(OP_CANCEL, "x");
    struct meanwhile m = { &stop, 1, true, claims_begins_waits };
    seq = accept_one(b, "x");
    OK(with(b, &m), &b->op.err);
    OK(stop.status, &stop.err);
    EQ_INT(stop.by_id.state, PAWL_PROCESSING);
    STATE_IS(b, "x", PAWL_PROCESSING);
    EQ_INT(flow_seen.cancelled, 1);
}

WRITERS_CASE(the_head_of_a_key_that_waits_as_a_flow_is_not_cancelled)
{
    struct op v[] = { by_id_op(OP_RETRY, "x"), by_id_op(OP_CANCEL, "x") };
    struct meanwhile m = { v, 2, false, claims_begins_waits }; /* the first one reads the call */
    seq = accept_spec(b, keyed("x", "k")).call.seq;
    OK(with(b, &m), &b->op.err);
    OK(v[1].status, &v[1].err);
    EQ_INT(v[1].by_id.state, PAWL_PROCESSING);
    STATE_IS(b, "x", PAWL_PROCESSING);
    EQ_INT(flow_seen.cancelled, 1);
}

static void begins(void)
{
    flow_step(fixture, token, seq, 1);
}

WRITERS_CASE(a_cancel_request_is_not_stored_for_a_new_flow)
{
    struct op v[] = { by_id_op(OP_CANCEL, "x"), by_id_op(OP_CANCEL, "x") };
    struct meanwhile m = { v, 2, false, begins };
    v[0].by_id.only_pending = true; /* reads the call and locks nothing */
    seq = accept_one(b, "x");
    token = claim_steps(b, 1, 0);
    OK(with(b, &m), &b->op.err);
    OK(v[1].status, &v[1].err);
    EQ_INT(flow_seen.cancelled, 1);
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM pawl_cancel"), "0");
    EQ_STR(engine_rows(b->url, "SELECT undoing FROM flow"), "1");
}

static void moves_on(void)
{
    flow_wake(fixture, seq);
    flow_wait(fixture, claim_steps(fixture, 1, 0), seq, 2, FLOW_NEVER_US);
}

WRITERS_CASE(a_wake_of_a_flow_that_waits_again_wakes_it)
{
    struct op wake = { .kind = OP_WAKE, .wake = { &seq, 1 } };
    struct meanwhile m = { &wake, 1, true, moves_on };
    seq = flow_waiting(b, plan("x"), FLOW_NEVER_US);
    OK(with(b, &m), &b->op.err);
    EQ_STR(claimable(b, want_steps(b, 1)), "x");
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM pawl_ready"), "1");
}

static void wakes_claims(void)
{
    flow_wake(fixture, seq);
    token = claim_steps(fixture, 1, 0);
}

WRITERS_CASE(a_wake_of_the_head_of_a_key_that_is_claimed_meanwhile_does_nothing)
{
    struct op v[] = { by_id_op(OP_RETRY, "x"), { .kind = OP_WAKE, .wake = { &seq, 1 } } };
    struct meanwhile m = { v, 2, false, wakes_claims }; /* the first one reads the call */
    seq = flow_waiting(b, keyed("x", "k"), FLOW_NEVER_US);
    accept_spec(b, keyed("y", "k"));
    OK(with(b, &m), &b->op.err);
    OK(v[1].status, &v[1].err);
    finish_ok(b, token, "x", "1");
    EQ_STR(claimable(b, want_steps(b, 1)), "y");
}

static void claims(void)
{
    token = claim_steps(fixture, 1, 0);
}

WRITERS_CASE(a_flow_that_is_claimed_meanwhile_is_ended_in_its_lease)
{
    struct flow_op q = { 0 };
    struct op end = flow_open(&q);
    struct meanwhile m = { &end, 1, true, claims };
    seq = flow_waiting(b, plan("x"), now(b));
    q.seq = seq;
    q.end = (struct flow_end_as){ .state = PAWL_CANCELLED };
    OK(with(b, &m), &b->op.err);
    OK(end.status, &end.err);
    STATE_IS(b, "x", PAWL_CANCELLED);
    EQ_STATUS(finish(b, token, "x", END_RESULT), PAWL_LOST_LEASE, &b->err);
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM pawl_lease"), "0");
}
