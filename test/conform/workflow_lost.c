/*
 * workflow_lost.c - changes of workflows whose commit had no answer: they run again, and answer
 * what the first one stored.
 *
 * Runs on the fault wrapper over the engine of the case.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "workflow_case.h"

#include "base/macros.h"

#define LOST_CASE(name)                                                                            \
    static void name##_body(struct conform_fixture *b);                                            \
    TEST(name)                                                                                     \
    {                                                                                              \
        AUTO(conform_fixture_end) struct conform_fixture *b = workflow_fixture(param, "fault+");   \
        name##_body(b);                                                                            \
    }                                                                                              \
    static void name##_body(struct conform_fixture *b)

/* The answer of the next commit is lost. */
static void lose(void)
{
    store_fault(1, FAULT_AFTER, PAWL_UNKNOWN);
}

static void lost(void)
{
    EQ_INT(store_fault_count(), 2); /* the commit was sent twice */
}

static const char *signals_of(struct conform_fixture *b, const char *id)
{
    struct workflow_detail d;
    const char *out = "";
    OK(workflow_get(b->s, &b->a, bytes_of(id), BYTES_NONE, STEPS_PAGE_LEN_MAX, true, &d, &b->err),
       &b->err);
    for (size_t i = 0; i < d.n_signals; i++)
        out = arena_printf(&b->a, "%s%.*s ", out, BYTES_ARG(d.signals[i].name));
    return out;
}

LOST_CASE(a_step)
{
    struct pass p = pass_of_new(b, "x");
    const struct workflow_step s = { .no = 1,
                                     .name = BYTES("a"),
                                     .kind = STEP_RUN,
                                     .says = SAYS_RESULT,
                                     .result = { PAWL_JSON, BYTES("1") } };
    lose();
    OK(pass_steps(&p, &s, 1), &b->op.err);
    lost();
    EQ_STR(journal_of(b, p.seq), "1 a run completed 1");
    EQ_INT(journal_read(b, p.seq).v[0].attempts, 1);
    end_pass(&p, END_RESULT);
}

LOST_CASE(a_wait_that_suspended)
{
    struct pass p = pass_of_new(b, "x");
    lose();
    OK(wait_signal(&p, 1, "go", 0), &b->op.err);
    lost();
    TRUE(p.answer.steps.suspended);
    OK(wait_signal(&p, 1, "go", 0), &b->op.err); /* the worker's request was lost, too */
    TRUE(p.answer.steps.suspended);
    OK(signal_to(b, "x", "go", "1", NULL), &b->op.err);
    struct pass q = pass_begin(b);
    OK(wait_signal(&p, 1, "go", 0), &b->op.err); /* the former pass comes late */
    TRUE(p.answer.steps.suspended);
    OK(wait_signal(&q, 1, "go", 0), &b->op.err);
    EQ_TEXT(q.steps[0].result_out.bytes, "1");
    end_pass(&q, END_RESULT);
    EQ_STATUS(wait_signal(&q, 2, "go", 0), PAWL_LOST_LEASE, &b->op.err);
}

LOST_CASE(a_step_that_diverged)
{
    struct pass p = pass_of_new(b, "x");
    step_ok(&p, 1, "charge", "7");
    const struct workflow_step s = {
        .no = 1, .name = BYTES("mail"), .kind = STEP_RUN, .says = SAYS_RESULT
    };
    lose();
    OK(pass_steps(&p, &s, 1), &b->op.err);
    lost();
    TRUE(p.answer.steps.diverged);
    EQ_TEXT(p.answer.steps.why, "step 1 is run \"charge\", and the code asks for run \"mail\"");
    STATE_IS(b, "x", PAWL_DEAD_LETTER);
}

LOST_CASE(a_signal_without_a_key)
{
    struct pass p = pass_of_new(b, "x");
    step_ok(&p, 1, "a", "1");
    lose();
    OK(signal_to(b, "x", "go", "1", NULL), &b->op.err);
    lost();
    EQ_STR(signals_of(b, "x"), "go ");
    OK(signal_to(b, "x", "go", "1", NULL), &b->op.err); /* another one of the same content */
    EQ_STR(signals_of(b, "x"), "go go ");
    end_pass(&p, END_RESULT);
}

LOST_CASE(a_signal_that_starts)
{
    struct call_spec spec = plan("x");
    OK(call_spec_settle(&b->a, &world_real, &spec, &b->err), &b->err);
    lose();
    OK(change(b, (struct workflow_op){ .what = WORKFLOW_SIGNAL,
                                       .id = BYTES("x"),
                                       .name = BYTES("go"),
                                       .value = { PAWL_JSON, BYTES("1") },
                                       .start = &spec }),
       &b->op.err);
    lost();
    EQ_STR(signals_of(b, "x"), "go ");
}

LOST_CASE(a_restart)
{
    struct pass p = pass_of_new(b, "x");
    step_ok(&p, 1, "a", "1");
    struct workflow_op q = { .what = WORKFLOW_RESTART, .input = { PAWL_JSON, BYTES("2") } };
    struct op op = { .kind = OP_FEATURE,
                     .feature = {
                         .of = &feature_workflow, .ctx = &q, .token = p.token, .seq = p.seq } };
    lose();
    OK(one(b, &op), &op.err);
    lost();
    EQ_INT(journal_read(b, p.seq).generation, 2);
    struct pass r = pass_begin(b);
    end_pass(&r, END_RESULT);
}

LOST_CASE(changes_by_id)
{
    struct pass p = pass_of_new(b, "x");
    step_ok(&p, 1, "a", "1");
    step_ok(&p, 2, "b", "2");
    lose();
    OK(change(b, (struct workflow_op){ .what = WORKFLOW_CANCEL, .id = BYTES("x") }),
       &b->op.err); /* without compensation */
    lost();
    STATE_IS(b, "x", PAWL_CANCELLED);
    lose();
    OK(change(b,
              (struct workflow_op){ .what = WORKFLOW_FORK, .id = BYTES("x"), .from = BYTES("b") }),
       &b->op.err);
    lost();
    struct workflow_query q = { .limit = 10 };
    struct workflow_page page;
    OK(workflow_list(b->s, &b->a, &q, &page, &b->err), &b->err);
    EQ_UINT(page.n, 2);
    lose();
    OK(change(b,
              (struct workflow_op){ .what = WORKFLOW_RETRY, .id = BYTES("x"), .from = BYTES("b") }),
       &b->op.err);
    lost();
    EQ_STR(journal_of(b, p.seq), "1 a run completed 1");
}
