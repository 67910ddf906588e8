/*
 * flow_views.c - flows in the views that people read in SQL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "flow_case.h"

#include <stdio.h>
#include <string.h>

#include "model/needs.h"

#define ROWS(b, ...) engine_rows((b)->url, arena_printf(&(b)->a, __VA_ARGS__))

/* Calls in every place: "wait", "due" and "line" are flows that no lease holds, "step" one that is
 * held behind the width, "new" and "ahead" are no flows. */
static void calls_everywhere(struct conform_fixture *b)
{
    flow_waiting(b, plan("wait"), FLOW_NEVER_US);
    flow_wake(b, flow_waiting(b, plan("due"), FLOW_NEVER_US));
    int64_t first = accept_spec(b, keyed("line", "k")).call.seq;
    struct claim q = want_steps(b, 10);
    static const struct bytes type[] = { BYTES("t") };
    q.types = type;
    q.n_types = 1;
    q = claim_as(b, q);
    EQ_UINT(q.n, 2); /* due and line */
    flow_step(b, q.token, first, 1);
    OK(finish(b, q.token, "due", END_RELEASE), &b->err);
    OK(finish(b, q.token, "line", END_REFUSE), &b->err);
    accept_spec(b, keyed("behind", "k"));
    OK(by_id(b, OP_RETRY, "line"), &b->op.err); /* it stands behind the other */
    struct call_spec s = plan("step");
    s.type = BYTES("u");
    s.needs = (const struct bytes[]){ BYTES("gpu") };
    s.n_needs = 1;
    int64_t step = accept_spec(b, s).call.seq;
    s.id = BYTES("ahead");
    accept_spec(b, s);
    static const struct bytes has[] = { NEED_STEPS, BYTES("gpu") }, other[] = { BYTES("u") };
    q = want_steps(b, 2);
    q.has = has;
    q.n_has = COUNT_OF(has);
    q.types = other;
    q.n_types = 1;
    q.width = 1;
    q = claim_as(b, q);
    EQ_UINT(q.n, 2);
    flow_step(b, q.token, step, 1);
    accept_one(b, "new");
}

FLOW_CASE(a_view_of_calls_says_what_readers_say)
{
    static const char *const ids[] = { "wait", "due", "line", "behind", "step", "ahead", "new" };
    if (b->engine->kind != ENGINE_SERVER || b->engine->tables[strlen(b->engine->tables) - 1] != '.')
        skip("it has no view of calls");
    calls_everywhere(b);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        struct call c = get(b, ids[i]);
        EQ_STR(ROWS(b, "SELECT status FROM pawl_calls WHERE id = '%s'", ids[i]),
               pawl_state_name(c.state));
        EQ_STR(ROWS(b,
                    "SELECT round(extract(epoch FROM run_at) * 1000000)::bigint FROM pawl_calls "
                    "WHERE id = '%s'",
                    ids[i]),
               arena_printf(&b->a, "%lld", (long long)c.run_at_us));
    }
    EQ_STR(ROWS(b, "SELECT id FROM pawl_calls WHERE status = '%s' ORDER BY seq", "processing"),
           "wait\ndue\nline\nstep");
    EQ_STR(ROWS(b, "SELECT id FROM pawl_calls WHERE status = '%s' ORDER BY seq", "pending"),
           "behind\nahead\nnew");
    EQ_STR(ROWS(b, "SELECT count(*) FROM pawl_calls WHERE id <> '%s'", ""), "7");
}

FLOW_CASE(a_view_of_runs_says_what_readers_say)
{
    static const char *const ids[] = { "wait", "due", "line", "behind", "new" };
    calls_everywhere(b);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        ROWS(b,
             "INSERT INTO pawl_tick (name, at, no, kind, zone, count, call_id, created_at) "
             "VALUES ('s', 1, 0, 1, 'UTC', 1, '%s', 1)",
             ids[i]);
        EQ_STR(engine_rows(b->url, "SELECT status FROM pawl_cron_runs"),
               pawl_state_name(state_of(b, ids[i])));
        engine_rows(b->url, "DELETE FROM pawl_tick");
    }
}
