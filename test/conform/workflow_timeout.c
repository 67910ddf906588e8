/*
 * workflow_timeout.c - run_timeout: of runs that have not begun, run, wait, sleep, or undo.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "workflow_case.h"

#include <stdio.h>
#include <string.h>

#include "store/feature.h"

#define TIMEOUT_US (60 * SEC_US)

/* Accept a call that may take a minute in all. */
static void limited(struct conform_fixture *b, const char *id)
{
    struct call_spec s = plan(id);
    s.run_timeout_us = TIMEOUT_US;
    accept_spec(b, s);
}

/* The run is cancelled by its pass, which undoes the step `a`, if it has one. */
static void undoes(struct conform_fixture *b, const char *id, bool has_undo, int64_t no)
{
    struct pass p = pass_named(b, id);
    TRUE(p.undoing);
    struct workflow_journal j = journal_read(b, p.seq);
    TRUE(j.cancelled);
    EQ_TEXT(j.error, "its run_timeout has passed");
    if (has_undo)
        undo_ok(&p, no, "a");
    end_pass(&p, END_RESULT);
    struct call c = get(b, id);
    EQ_INT(c.state, PAWL_CANCELLED);
    EQ_TEXT(c.error, "its run_timeout has passed");
}

WORKFLOW_CASE(before_it_begins_it_is_cancelled)
{
    struct call_spec late = plan("late");
    late.run_timeout_us = TIMEOUT_US;
    late.delay_us = TIMEOUT_US; /* it counts from when it is due */
    limited(b, "x");
    accept_spec(b, late);
    advance(b, TIMEOUT_US - 1);
    sweep(b);
    STATE_IS(b, "x", PAWL_PENDING);
    advance(b, 1);
    sweep(b);
    STATE_IS(b, "x", PAWL_CANCELLED);
    STATE_IS(b, "late", PAWL_PENDING);
    advance(b, TIMEOUT_US);
    sweep(b);
    STATE_IS(b, "late", PAWL_CANCELLED);
    EQ_STR(claimable(b, want(b, 1)), "");
}

/* It was claimed in time and stores its first step too late: that is known to the undoing. */
WORKFLOW_CASE(a_first_step_that_took_too_long)
{
    limited(b, "x");
    struct pass p = pass_begin(b);
    advance(b, TIMEOUT_US);
    sweep(b);
    STATE_IS(b, "x", PAWL_PROCESSING);
    const struct workflow_step s = { .no = 1,
                                     .name = BYTES("a"),
                                     .kind = STEP_RUN,
                                     .says = SAYS_RESULT,
                                     .result = { PAWL_JSON, BYTES("1") },
                                     .undo = true };
    OK(pass_steps(&p, &s, 1), &b->op.err);
    TRUE(p.answer.steps.suspended);
    EQ_STR(journal_of(b, p.seq), "1 a run completed 1");
    undoes(b, "x", true, 2);
}

WORKFLOW_CASE(while_it_runs)
{
    limited(b, "x");
    struct pass p = pass_begin(b);
    step_undoable(&p, 1, "a", "1");
    advance(b, TIMEOUT_US);
    sweep(b);
    STATE_IS(b, "x", PAWL_PROCESSING);
    const struct workflow_step s = {
        .no = 2, .name = BYTES("b"), .kind = STEP_RUN, .says = SAYS_RESULT
    };
    OK(pass_steps(&p, &s, 1), &b->op.err);
    TRUE(p.answer.steps.suspended);
    undoes(b, "x", true, 3);
}

/* It does not ask again before it ends: it was in time if it says so. */
WORKFLOW_CASE(a_pass_that_ends_too_late)
{
    limited(b, "x");
    struct pass p = pass_begin(b);
    step_undoable(&p, 1, "a", "1");
    advance(b, TIMEOUT_US + SEC_US);
    end_pass(&p, END_RESULT);
    STATE_IS(b, "x", PAWL_COMPLETED);
}

enum waits { ASLEEP, SIGNAL, CHILDREN, RETRY };

/* Ask for the wait, or for the same again. */
static void wait_as(struct pass *p, enum waits how)
{
    const struct workflow_step again = { .no = 2,
                                         .name = BYTES("b"),
                                         .kind = STEP_RUN,
                                         .says = SAYS_RETRY,
                                         .error = BYTES("503"),
                                         .retry_in_us = 600 * SEC_US };
    switch (how) {
    case ASLEEP:
        OK(sleep_for(p, 2, "nap", 600), &p->b->op.err);
        break;
    case SIGNAL:
        OK(wait_signal(p, 2, "go", 0), &p->b->op.err);
        break;
    case CHILDREN:
        if (journal_read(p->b, p->seq).n == 1)
            EQ_STR(child_of(p, 2, "c", NULL), "children.c#1");
        OK(join(p, 3, "all", "children.c#1", false, 0), &p->b->op.err);
        break;
    case RETRY:
        OK(pass_steps(p, &again, 1), &p->b->op.err);
        break;
    }
    TRUE(p->answer.steps.suspended);
}

/* In each wait it is due at its deadline, and not before. The pass that is due does not know why;
 * what it asks for tells. */
WORKFLOW_CASE(while_it_waits)
{
    static const char *const ids[] = { "asleep", "signal", "children", "retry" };
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        limited(b, ids[i]);
        struct pass p = pass_named(b, ids[i]);
        step_undoable(&p, 1, "a", "1");
        wait_as(&p, (enum waits)i);
        EQ_INT(p.answer.steps.run_at_us, now(b) + TIMEOUT_US);
        advance(b, TIMEOUT_US - 1);
        NE_INT(get(b, ids[i]).waiting_for, WAIT_WORKER);
        advance(b, 1);
        struct pass q = pass_named(b, ids[i]);
        FALSE(q.undoing);
        wait_as(&q, (enum waits)i);
        if (i == CHILDREN)
            STATE_IS(b, "children.c#1", PAWL_CANCELLED);
        undoes(b, ids[i], true, 4);
    }
}

WORKFLOW_CASE(a_shorter_wait_comes_first)
{
    limited(b, "x");
    struct pass p = pass_begin(b);
    OK(sleep_for(&p, 1, "nap", 45), &b->op.err);
    EQ_INT(p.answer.steps.run_at_us, now(b) + 45 * SEC_US);
    advance(b, 45 * SEC_US);
    struct pass q = pass_begin(b);
    OK(sleep_for(&q, 1, "nap", 45), &b->op.err);
    EQ_INT(q.steps[0].status, STEP_COMPLETED);
    OK(sleep_for(&q, 2, "nap", 45), &b->op.err);
    EQ_INT(q.answer.steps.run_at_us, now(b) + 15 * SEC_US);
    advance(b, 15 * SEC_US);
    struct pass r = pass_begin(b);
    OK(sleep_for(&r, 2, "nap", 45), &b->op.err);
    TRUE(r.answer.steps.suspended);
    undoes(b, "x", false, 0);
}

WORKFLOW_CASE(while_it_undoes_it_has_no_effect)
{
    limited(b, "x");
    struct pass p = pass_begin(b);
    step_undoable(&p, 1, "a", "1");
    step_undoable(&p, 2, "b", "2");
    end_pass(&p, END_REFUSE);
    struct pass q = pass_begin(b);
    TRUE(q.undoing);
    undo_ok(&q, 3, "b");
    advance(b, 2 * TIMEOUT_US);
    sweep(b);
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM pawl_workflow WHERE deadline IS NOT NULL"),
           "0");
    undo_ok(&q, 4, "a");
    end_pass(&q, END_RESULT);
    struct call c = get(b, "x");
    EQ_INT(c.state, PAWL_FAILED); /* and not cancelled */
    EQ_TEXT(c.error, "broke");
}

/* A retry after it has passed is not bounded by it, one before it is. */
WORKFLOW_CASE(a_retry_after_it_has_passed)
{
    limited(b, "x");
    advance(b, TIMEOUT_US);
    sweep(b);
    STATE_IS(b, "x", PAWL_CANCELLED);
    OK(by_id(b, OP_RETRY, "x"), &b->op.err);
    struct pass p = pass_begin(b);
    step_ok(&p, 1, "a", "1");
    OK(sleep_for(&p, 2, "nap", 600), &b->op.err);
    EQ_INT(p.answer.steps.run_at_us, now(b) + 600 * SEC_US);
    limited(b, "y");
    OK(finish(b, pass_named(b, "y").token, "y", END_REFUSE), &b->err);
    OK(by_id(b, OP_RETRY, "y"), &b->op.err);
    struct pass q = pass_named(b, "y");
    OK(sleep_for(&q, 1, "nap", 600), &b->op.err);
    EQ_INT(q.answer.steps.run_at_us, now(b) + TIMEOUT_US);
}

/* A run that begins by a restart, and one that went on after its undoing, are bounded as others. */
WORKFLOW_CASE(after_a_restart_and_after_a_retry)
{
    limited(b, "x");
    struct pass p = pass_begin(b);
    restart(&p, "2");
    p = pass_begin(b);
    OK(wait_signal(&p, 1, "go", 0), &b->op.err);
    EQ_INT(p.answer.steps.run_at_us, now(b) + TIMEOUT_US);
    limited(b, "y");
    int64_t until_us = now(b) + TIMEOUT_US;
    p = pass_named(b, "y");
    step_undoable(&p, 1, "a", "1");
    end_pass(&p, END_REFUSE);
    p = pass_named(b, "y");
    undo_ok(&p, 2, "a");
    end_pass(&p, END_RESULT);
    STATE_IS(b, "y", PAWL_FAILED);
    advance(b, TIMEOUT_US / 2);
    OK(by_id(b, OP_RETRY, "y"), &b->op.err);
    p = pass_named(b, "y");
    OK(wait_signal(&p, 1, "go", 0), &b->op.err);
    EQ_INT(p.answer.steps.run_at_us, until_us);
    OK(cancel_run(b, "y", false, NULL), &b->op.err);
    advance(b, TIMEOUT_US / 2);
    OK(by_id(b, OP_RETRY, "y"), &b->op.err);
    p = pass_named(b, "y");
    OK(wait_signal(&p, 1, "go", 0), &b->op.err);
    EQ_INT(p.answer.steps.run_at_us, FLOW_NEVER_US);
}

/* A restart is as late as any step. */
WORKFLOW_CASE(a_restart_that_comes_too_late)
{
    limited(b, "x");
    struct pass p = pass_begin(b);
    step_undoable(&p, 1, "a", "1");
    advance(b, TIMEOUT_US);
    restart(&p, "2");
    EQ_STR(journal_of(b, p.seq), "1 a run completed 1");
    undoes(b, "x", true, 2);
    limited(b, "y");
    p = pass_named(b, "y");
    advance(b, TIMEOUT_US);
    restart(&p, "2"); /* its first word */
    undoes(b, "y", false, 0);
}

/* A fork has as long as a new run; it has begun, so that it does not expire. */
WORKFLOW_CASE(a_fork_has_its_own)
{
    limited(b, "x");
    struct pass p = pass_begin(b);
    step_ok(&p, 1, "look", "1");
    step_ok(&p, 2, "b", "2");
    advance(b, TIMEOUT_US / 2);
    OK(fork_from(b, "x", "b", "y"), &b->op.err);
    int64_t until_us = now(b) + TIMEOUT_US;
    EQ_INT(get(b, "y").expires_us, 0);
    struct pass f = pass_begin(b);
    EQ_TEXT(f.id, "y");
    step_undoable(&f, 2, "a", "3");
    OK(sleep_for(&f, 3, "nap", 600), &b->op.err);
    EQ_INT(f.answer.steps.run_at_us, until_us);
    advance(b, TIMEOUT_US);
    sweep(b);
    STATE_IS(b, "y", PAWL_PROCESSING);
    f = pass_named(b, "y");
    OK(sleep_for(&f, 3, "nap", 600), &b->op.err);
    TRUE(f.answer.steps.suspended);
    undoes(b, "y", true, 4);
}
