/*
 * workflow_retry.c - retries from a step, after an undo and after a restart, and forks: which
 * results and signals stay, and what is refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "workflow_case.h"

#include <stdio.h>
#include <string.h>

/* ---- Retry from a step ----------------------------------------------------------------------- */

WORKFLOW_CASE(a_retry_from_a_step_forgets_it_and_what_follows)
{
    struct pass p = pass_of_new(b, "x");
    OK(signal_to(b, "x", "go", "1", "k1"), &b->op.err);
    OK(signal_to(b, "x", "go", "2", NULL), &b->op.err);
    step_ok(&p, 1, "a", "1");
    OK(wait_signal(&p, 2, "go", 0), &b->op.err);
    step_ok(&p, 3, "a", "3");
    EQ_STR(child_of(&p, 4, "c", NULL), "x.c#1");
    OK(wait_signal(&p, 5, "go", 0), &b->op.err);
    EQ_TEXT(p.steps[0].result_out.bytes, "2");
    EQ_STATUS(retry_from(b, "x", "a"), PAWL_STATE, &b->op.err); /* it has not ended */
    OK(cancel_run(b, "x", false, NULL), &b->op.err);
    EQ_STATUS(retry_from(b, "x", "a#3"), PAWL_NOT_FOUND, &b->op.err);
    EQ_STATUS(retry_from(b, "x", "none"), PAWL_NOT_FOUND, &b->op.err);
    STATE_IS(b, "x", PAWL_CANCELLED);
    OK(retry_from(b, "x", "a#2"), &b->op.err);
    EQ_STR(journal_of(b, p.seq), "1 a run completed 1\n"
                                 "2 go signal completed 1");
    EQ_INT(journal_read(b, p.seq).generation, 2);
    struct pass q = pass_named(b, "x");
    step_ok(&q, 3, "a", "4");
    EQ_TEXT(q.steps[0].stored_name, "a#2");
    EQ_STR(child_of(&q, 4, "c", NULL), "x~2.c#1");
    OK(wait_signal(&q, 5, "go", 0), &b->op.err); /* unread again; the first one is not */
    EQ_TEXT(q.steps[0].result_out.bytes, "2");
    OK(wait_signal(&q, 6, "go", 0), &b->op.err);
    TRUE(q.answer.steps.suspended);
    OK(signal_to(b, "x", "go", "1", "k1"), &b->op.err); /* its key is known */
    EQ_INT(get(b, "x").waiting_for, WAIT_SIGNAL);
    OK(signal_to(b, "x", "go", "3", NULL), &b->op.err);
    struct pass r = pass_named(b, "x");
    end_pass(&r, END_RESULT);
    STATE_IS(b, "x", PAWL_COMPLETED);
}

/* What an earlier generation consumed is final, whatever the numbers of its steps were. */
WORKFLOW_CASE(a_retry_after_a_restart_gives_back_only_its_own_signals)
{
    struct pass p = pass_of_new(b, "x");
    for (int i = 1; i <= 4; i++)
        OK(signal_to(b, "x", "go", arena_printf(&b->a, "%d", i), NULL), &b->op.err);
    for (int i = 1; i <= 2; i++)
        OK(wait_signal(&p, i, "go", 0), &b->op.err);
    restart(&p, "2");
    struct pass q = pass_named(b, "x");
    OK(wait_signal(&q, 1, "go", 0), &b->op.err);
    EQ_TEXT(q.steps[0].result_out.bytes, "3");
    OK(cancel_run(b, "x", false, NULL), &b->op.err);
    OK(retry_from(b, "x", "go"), &b->op.err);
    struct pass r = pass_named(b, "x");
    for (int i = 1; i <= 2; i++) {
        OK(wait_signal(&r, i, "go", 0), &b->op.err);
        EQ_TEXT(r.steps[0].result_out.bytes, i == 1 ? "3" : "4");
    }
    OK(wait_signal(&r, 3, "go", 0), &b->op.err);
    TRUE(r.answer.steps.suspended);
}

static int64_t bytes_of_results(struct conform_fixture *b, int64_t seq)
{
    return engine_int(
        b->url,
        arena_printf(&b->a, "SELECT bytes FROM pawl_workflow WHERE seq = %lld", (long long)seq));
}

/* 64 MiB is what a run has, and not what it ever had. */
WORKFLOW_CASE(results_that_were_forgotten_leave_room)
{
    struct pass p = pass_of_new(b, "x");
    step_ok(&p, 1, "a", "1234");
    step_ok(&p, 2, "b", "123456");
    step_ok(&p, 3, "c", NULL);
    EQ_INT(bytes_of_results(b, p.seq), 10);
    OK(fork_from(b, "x", "b", "y"), &b->op.err);
    struct pass f = pass_named(b, "y");
    EQ_INT(bytes_of_results(b, f.seq), 4);
    OK(cancel_run(b, "x", false, NULL), &b->op.err);
    OK(retry_from(b, "x", "b"), &b->op.err);
    EQ_INT(bytes_of_results(b, p.seq), 4);
    struct pass q = pass_named(b, "x");
    step_ok(&q, 2, "b", "12");
    EQ_INT(bytes_of_results(b, p.seq), 6);
    restart(&q, "2");
    EQ_INT(bytes_of_results(b, p.seq), 0);
}

/* ---- Retry after an undo --------------------------------------------------------------------- */

/* A run that did look, reserve, charge and undid the last two. */
static int64_t undone(struct conform_fixture *b, const char *id)
{
    accept_one(b, id);
    struct pass p = pass_named(b, id);
    step_ok(&p, 1, "look", "0");
    step_undoable(&p, 2, "reserve", "1");
    step_undoable(&p, 3, "charge", "2");
    end_pass(&p, END_REFUSE);
    struct pass q = pass_named(b, id);
    TRUE(q.undoing);
    undo_ok(&q, 4, "charge");
    undo_ok(&q, 5, "reserve");
    end_pass(&q, END_RESULT);
    EQ_INT(state_of(b, id), PAWL_FAILED);
    return p.seq;
}

WORKFLOW_CASE(a_retry_after_an_undo_begins_at_the_first_step_undone)
{
    static const char *const late[] = { "charge", "undo:charge", "undo:reserve" };
    int64_t x = undone(b, "x");
    const char *before = journal_of(b, x);
    for (size_t i = 0; i < COUNT_OF(late); i++) {
        EQ_STATUS(retry_from(b, "x", late[i]), PAWL_STATE, &b->op.err);
        HAS_STR(b->op.err.text, "step 2 was undone: a retry begins there or before it");
    }
    EQ_STR(journal_of(b, x), before);
    STATE_IS(b, "x", PAWL_FAILED);
    OK(retry_from(b, "x", "reserve"), &b->op.err);
    EQ_STR(journal_of(b, x), "1 look run completed 0");
    int64_t y = undone(b, "y");
    OK(retry_from(b, "y", "look"), &b->op.err);
    EQ_STR(journal_of(b, y), "");
    EQ_INT(journal_read(b, y).generation, 2);
}

/* The call's own retry and a retry without a step do the same. */
WORKFLOW_CASE(every_retry_after_an_undo_forgets_what_was_undone)
{
    for (int i = 0; i < 2; i++) {
        const char *id = i ? "x" : "y";
        int64_t seq = undone(b, id);
        OK(i ? by_id(b, OP_RETRY, id)
             : change(b, (struct workflow_op){ .what = WORKFLOW_RETRY, .id = bytes_of(id) }),
           &b->op.err);
        EQ_STR(journal_of(b, seq), "1 look run completed 0");
        struct workflow_journal j = journal_read(b, seq);
        EQ_INT(j.generation, 2);
        FALSE(j.undoing);
        struct pass p = pass_named(b, id);
        FALSE(p.undoing);
        step_undoable(&p, 2, "reserve", "9");
        end_pass(&p, END_RESULT);
        EQ_INT(state_of(b, id), PAWL_COMPLETED);
    }
}

/* What is half undone is undone first: from which step it then goes forward is asked after that. */
WORKFLOW_CASE(a_retry_from_a_step_while_the_undoing_has_failed)
{
    static const char *const from[] = { "reserve", "charge", "undo:charge", "undo:reserve" };
    const struct workflow_step stuck = { .no = 4,
                                         .name = BYTES("reserve"),
                                         .kind = STEP_UNDO,
                                         .says = SAYS_ERROR,
                                         .error = BYTES("closed") };
    struct pass p = pass_of_new(b, "x");
    step_undoable(&p, 1, "reserve", "1");
    step_undoable(&p, 2, "charge", "2");
    end_pass(&p, END_REFUSE);
    struct pass q = pass_named(b, "x");
    undo_ok(&q, 3, "charge");
    OK(pass_steps(&q, &stuck, 1), &b->op.err);
    STATE_IS(b, "x", PAWL_DEAD_LETTER);
    const char *before = journal_of(b, p.seq);
    for (size_t i = 0; i < COUNT_OF(from); i++) {
        EQ_STATUS(retry_from(b, "x", from[i]), PAWL_STATE, &b->op.err);
        HAS_STR(b->op.err.text, "its undoing has failed: retry it without a step");
    }
    EQ_STR(journal_of(b, p.seq), before);
    STATE_IS(b, "x", PAWL_DEAD_LETTER);
    OK(by_id(b, OP_RETRY, "x"), &b->op.err);
    q = pass_named(b, "x");
    TRUE(q.undoing);
    undo_ok(&q, 4, "reserve");
    end_pass(&q, END_RESULT);
    OK(retry_from(b, "x", "reserve"), &b->op.err);
}

/* ---- Forks ----------------------------------------------------------------------------------- */

/* The input of the call that can be claimed next. */
static const char *input_of(struct conform_fixture *b, struct pass *p)
{
    struct workflow_journal j = journal_read(b, p->seq);
    struct call c = get(b, arena_text(&b->a, p->id));
    struct bytes in = j.has_input ? j.input.bytes : c.spec.input.bytes;
    return arena_text(&b->a, in);
}

WORKFLOW_CASE(a_fork_of_a_run_that_restarted_has_its_input)
{
    struct pass p = pass_of_new(b, "x");
    step_ok(&p, 1, "old", "1");
    restart(&p, "{\"n\":2}");
    struct pass q = pass_named(b, "x");
    EQ_STR(input_of(b, &q), "{\"n\":2}");
    step_ok(&q, 1, "a", "1");
    step_ok(&q, 2, "b", "2");
    OK(fork_from(b, "x", "b", "y"), &b->op.err);
    struct pass f = pass_named(b, "y");
    EQ_STR(journal_of(b, f.seq), "1 a run completed 1");
    EQ_STR(input_of(b, &f), "{\"n\":2}");
    end_pass(&f, END_RESULT);
    end_pass(&q, END_RESULT);
}

/* A fork of a run in any state goes on by itself; steps that wait are not taken over. */
WORKFLOW_CASE(a_fork_leaves_the_run_as_it_is)
{
    struct pass p = pass_of_new(b, "x");
    step_undoable(&p, 1, "a", "1");
    OK(signal_to(b, "x", "go", "5", NULL), &b->op.err);
    step_ok(&p, 2, "b", "2");
    OK(wait_signal(&p, 3, "other", 0), &b->op.err);
    const char *was = journal_of(b, p.seq);
    OK(fork_from(b, "x", "b", "y"), &b->op.err);
    OK(fork_from(b, "x", "other", "z"), &b->op.err);
    EQ_STATUS(fork_from(b, "x", "none", "w"), PAWL_NOT_FOUND, &b->op.err);
    EQ_STATUS(fork_from(b, "x", "b", ""), PAWL_INVALID, &b->op.err);
    struct call_spec other = plan("w");
    other.type = BYTES("other");
    accept_spec(b, other);
    EQ_STATUS(fork_from(b, "x", "b", "w"), PAWL_CONFLICT, &b->op.err);
    EQ_STR(journal_of(b, p.seq), was);
    EQ_INT(get(b, "x").waiting_for, WAIT_SIGNAL);
    EQ_TEXT(get(b, "y").spec.type, "t"); /* the same workers run both */
    EQ_TEXT(get(b, "y").spec.queue, "default");
    EQ_UINT(get(b, "y").spec.n_needs, 0);
    struct pass y = pass_named(b, "y");
    OK(wait_signal(&y, 2, "go", 0), &b->op.err); /* signals are the other run's */
    TRUE(y.answer.steps.suspended);
    struct pass z = pass_named(b, "z");
    EQ_STR(journal_of(b, z.seq), "1 a run completed 1\n"
                                 "2 b run completed 2");
    end_pass(&z, END_REFUSE); /* nothing of its own is to be undone */
    if (state_of(b, "z") == PAWL_PROCESSING) {
        z = pass_named(b, "z");
        FALSE(journal_read(b, z.seq).v[0].undo);
        end_pass(&z, END_RESULT);
    }
    STATE_IS(b, "z", PAWL_FAILED);
    EQ_STR(journal_of(b, p.seq), was);
}

/* What a fork took over is final in it: its undoing says so, and refuses to undo it. */
WORKFLOW_CASE(a_fork_does_not_undo_what_it_took_over)
{
    const struct workflow_step a = {
        .no = 3, .name = BYTES("a"), .kind = STEP_UNDO, .says = SAYS_RESULT
    };
    struct pass p = pass_of_new(b, "x");
    step_undoable(&p, 1, "a", "1");
    step_undoable(&p, 2, "b", "2");
    OK(fork_from(b, "x", "b", "y"), &b->op.err);
    struct pass f = pass_named(b, "y");
    step_undoable(&f, 2, "b", "3");
    OK(cancel_run(b, "y", true, NULL), &b->op.err);
    end_pass(&f, END_RELEASE);
    struct pass g = pass_named(b, "y");
    TRUE(g.undoing);
    struct workflow_journal j = journal_read(b, g.seq);
    TRUE(j.v[0].final);
    FALSE(j.v[1].final);
    EQ_STATUS(pass_steps(&g, &a, 1), PAWL_STATE, &b->op.err);
    EQ_STR(b->op.err.text, "step 3 \"a\": what it undoes is final in this run");
    undo_ok(&g, 3, "b");
    end_pass(&g, END_RESULT);
    STATE_IS(b, "y", PAWL_CANCELLED);
    EQ_STR(journal_of(b, g.seq), "1 a run completed 1\n"
                                 "2 b run completed 3 undone\n"
                                 "3 undo:b undo completed ");
    OK(retry_from(b, "y", "a"), &b->op.err); /* then it is the fork's own */
    struct pass h = pass_named(b, "y");
    step_undoable(&h, 1, "a", "4");
    FALSE(journal_read(b, h.seq).v[0].final);
    end_pass(&h, END_REFUSE);
    h = pass_named(b, "y");
    undo_ok(&h, 2, "a");
    end_pass(&h, END_RESULT);
    OK(cancel_run(b, "x", true, NULL), &b->op.err); /* the other run undoes what is its own */
    end_pass(&p, END_RELEASE);
    struct pass q = pass_named(b, "x");
    undo_ok(&q, 3, "b");
    undo_ok(&q, 4, "a");
    end_pass(&q, END_RESULT);
}

/* A step that was undone is not done, so a fork does not take it over as such. */
WORKFLOW_CASE(a_fork_after_an_undo_begins_at_the_first_step_undone)
{
    undone(b, "x");
    EQ_STATUS(fork_from(b, "x", "charge", "y"), PAWL_STATE, &b->op.err);
    EQ_STR(b->op.err.text, "step 2 was undone: a fork begins there or before it");
    OK(fork_from(b, "x", "reserve", "y"), &b->op.err);
    struct pass y = pass_named(b, "y");
    FALSE(y.undoing);
    EQ_STR(journal_of(b, y.seq), "1 look run completed 0");
    EQ_STATUS(fork_from(b, "x", "undo:charge", "z"), PAWL_STATE, &b->op.err);
    end_pass(&y, END_RESULT);
    STATE_IS(b, "y", PAWL_COMPLETED);
}
