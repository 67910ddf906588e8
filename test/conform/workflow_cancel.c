/*
 * workflow_cancel.c - cancels of runs that run, wait, or undo: what they change, and what they do
 * not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "model/needs.h"
#include "workflow_case.h"

#include <stdio.h>
#include <string.h>

enum waits { SIGNAL, CHILDREN, ASLEEP, RETRY, WAITS };

/* A run that waits; its first step is `a`, with an undo. */
static struct pass waiting(struct conform_fixture *b, const char *id, enum waits how)
{
    const struct workflow_step again = { .no = 2,
                                         .name = BYTES("b"),
                                         .kind = STEP_RUN,
                                         .says = SAYS_RETRY,
                                         .error = BYTES("503"),
                                         .retry_in_us = 600 * SEC_US };
    accept_one(b, id);
    struct pass p = pass_named(b, id);
    step_undoable(&p, 1, "a", "1");
    if (how == SIGNAL)
        OK(wait_signal(&p, 2, "go", 0), &b->op.err);
    else if (how == CHILDREN)
        OK(join(&p, 3, "all", child_of(&p, 2, "c", NULL), false, 0), &b->op.err);
    else if (how == ASLEEP)
        OK(sleep_for(&p, 2, "nap", 600), &b->op.err);
    else
        OK(pass_steps(&p, &again, 1), &b->op.err);
    TRUE(p.answer.steps.suspended);
    return p;
}

/* The three ways to ask for it with compensation. */
static enum pawl_status asks(struct conform_fixture *b, const char *id, int way,
                             enum pawl_state *out)
{
    if (way == 0)
        return cancel_run(b, id, true, out);
    enum pawl_status st = by_id(b, OP_CANCEL, id);
    *out = b->op.by_id.state;
    return st;
}

static const char *count(struct conform_fixture *b, const char *table)
{
    return engine_rows(b->url, arena_printf(&b->a, "SELECT COUNT(*) FROM %s", table));
}

/* ---- While it waits -------------------------------------------------------------------------- */

WORKFLOW_CASE(a_cancel_wakes_a_run_from_every_wait)
{
    static const enum call_wait waits_for[] = { WAIT_SIGNAL, WAIT_CHILDREN, WAIT_TIMER,
                                                WAIT_RETRY };
    for (int i = 0; i < 2 * WAITS; i++) {
        const char *id = arena_printf(&b->a, "x%d", i);
        enum waits how = (enum waits)(i % WAITS);
        enum pawl_state state;
        waiting(b, id, how);
        EQ_INT(get(b, id).waiting_for, waits_for[how]);
        OK(asks(b, id, i / WAITS, &state), &b->op.err);
        EQ_INT(state, PAWL_PROCESSING);
        if (how == CHILDREN) /* it is asked, too; it had not begun */
            EQ_INT(state_of(b, arena_printf(&b->a, "%s.c#1", id)), PAWL_CANCELLED);
        struct pass q = pass_named(b, id);
        TRUE(q.undoing);
        FALSE(journal_read(b, q.seq).doubt);
        undo_ok(&q, 4, "a");
        end_pass(&q, END_RESULT);
        EQ_INT(state_of(b, id), PAWL_CANCELLED);
        EQ_STATUS(asks(b, id, i / WAITS, &state), i / WAITS ? PAWL_OK : PAWL_STATE, NULL);
        EQ_STATUS(signal_to(b, id, "go", "1", NULL), PAWL_STATE, &b->op.err);
    }
    EQ_STR(count(b, "pawl_cancel"), "0");
    EQ_STR(count(b, "pawl_ready"), "0");
}

WORKFLOW_CASE(without_compensation_it_ends_in_every_wait)
{
    for (int i = 0; i < WAITS; i++) {
        const char *id = arena_printf(&b->a, "x%d", i);
        enum pawl_state state;
        struct pass p = waiting(b, id, (enum waits)i);
        OK(cancel_run(b, id, false, &state), &b->op.err);
        EQ_INT(state, PAWL_CANCELLED);
        EQ_INT(state_of(b, id), PAWL_CANCELLED);
        const char *journal = journal_of(b, p.seq);
        const struct workflow_step late = {
            .no = 9, .name = BYTES("z"), .kind = STEP_RUN, .says = SAYS_RESULT
        };
        OK(pass_steps(&p, &late, 1), &b->op.err); /* its pass was let go before: that is all it
                                                     hears */
        TRUE(p.answer.steps.suspended);
        EQ_STR(journal_of(b, p.seq), journal);
        OK(cancel_run(b, id, false, &state), &b->op.err); /* a repeat */
    }
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM pawl_workflow WHERE compensation > 0"), "0");
    EQ_STR(count(b, "pawl_lease"), "0");
}

/* ---- While it runs --------------------------------------------------------------------------- */

/* Asked twice before it stores anything more. */
WORKFLOW_CASE(a_cancel_while_it_runs)
{
    for (int way = 0; way < 2; way++) {
        const char *id = arena_printf(&b->a, "x%d", way);
        enum pawl_state state;
        accept_one(b, id);
        struct pass p = pass_named(b, id);
        step_undoable(&p, 1, "a", "1");
        for (int i = 0; i < 2; i++) {
            OK(asks(b, id, way, &state), &b->op.err);
            EQ_INT(state, PAWL_PROCESSING);
        }
        FALSE(get(b, id).cancel_requested); /* no request any more: it is decided */
        OK(wait_signal(&p, 2, "go", 0), &b->op.err);
        TRUE(p.answer.steps.suspended);
        EQ_STR(journal_of(b, p.seq), "1 a run completed 1"); /* and does not wait */
        struct pass q = pass_named(b, id);
        TRUE(q.undoing);
        undo_ok(&q, 2, "a");
        end_pass(&q, END_RESULT);
        EQ_INT(state_of(b, id), PAWL_CANCELLED);
    }
}

/* A pass that was claimed before may say how it ends; the undoing is decided. */
WORKFLOW_CASE(a_pass_that_ends_after_a_cancel)
{
    static const enum ending how[] = { END_RESULT, END_REFUSE, END_ERROR, END_RELEASE };
    for (size_t i = 0; i < COUNT_OF(how); i++) {
        const char *id = arena_printf(&b->a, "x%zu", i);
        enum pawl_state state;
        accept_one(b, id);
        struct pass p = pass_named(b, id);
        step_undoable(&p, 1, "a", "1");
        advance(b, SEC_US);
        OK(cancel_run(b, id, true, &state), &b->op.err);
        end_pass(&p, how[i]);
        EQ_INT(state_of(b, id), PAWL_PROCESSING);
        advance(b, 60 * SEC_US);
        struct pass q = pass_named(b, id);
        TRUE(q.undoing);
        undo_ok(&q, 2, "a");
        end_pass(&q, END_RESULT);
        EQ_INT(state_of(b, id), PAWL_CANCELLED);
    }
}

/* ---- While it undoes ------------------------------------------------------------------------- */

/* Everything that is stored of runs. */
static const char *stored(struct conform_fixture *b)
{
    const char *calls = snapshot(b);
    const char *runs = arena_text(
        &b->a,
        bytes_of(engine_rows(b->url, "SELECT rev * 1000 + reason * 100 + compensation * 10 + "
                                     "undone FROM pawl_workflow ORDER BY seq")));
    return arena_printf(&b->a, "%s\n%s", calls, runs);
}

WORKFLOW_CASE(a_cancel_while_it_undoes_changes_nothing)
{
    struct pass p = pass_of_new(b, "x");
    enum pawl_state state;
    step_undoable(&p, 1, "a", "1");
    step_undoable(&p, 2, "b", "2");
    end_pass(&p, END_REFUSE);
    for (int i = 0; i < 3; i++) { /* nobody has it, its pass does, half of it is undone */
        if (i == 1)
            p = pass_named(b, "x");
        if (i == 2)
            undo_ok(&p, 3, "b");
        const char *before = stored(b);
        for (int way = 0; way < 2; way++) {
            OK(asks(b, "x", way, &state), &b->op.err);
            EQ_INT(state, PAWL_PROCESSING);
        }
        EQ_STR(stored(b), before);
    }
    undo_ok(&p, 4, "a");
    end_pass(&p, END_RESULT);
    STATE_IS(b, "x", PAWL_FAILED); /* as it was decided first */
    EQ_TEXT(get(b, "x").error, "broke");
}

/* What the run shows of its undoing, as a number of run_compensation. */
static const char *compensation(struct conform_fixture *b, int64_t seq)
{
    return engine_rows(
        b->url, arena_printf(&b->a, "SELECT compensation FROM pawl_workflow WHERE seq = %lld",
                             (long long)seq));
}

WORKFLOW_CASE(without_compensation_it_ends_while_it_undoes)
{
    for (int i = 0; i < 3; i++) {
        const char *id = arena_printf(&b->a, "x%d", i);
        enum pawl_state state;
        accept_one(b, id);
        struct pass p = pass_named(b, id);
        step_undoable(&p, 1, "a", "1");
        step_undoable(&p, 2, "b", "2");
        end_pass(&p, END_REFUSE);
        if (i >= 1)
            p = pass_named(b, id);
        if (i == 2)
            undo_ok(&p, 3, "b");
        OK(cancel_run(b, id, false, &state), &b->op.err);
        EQ_INT(state, PAWL_CANCELLED);
        EQ_INT(state_of(b, id), PAWL_CANCELLED);
        const struct workflow_step s = {
            .no = 4, .name = BYTES("a"), .kind = STEP_UNDO, .says = SAYS_RESULT
        };
        EQ_STATUS(pass_steps(&p, &s, 1), PAWL_LOST_LEASE, &b->op.err);
        if (i >= 1)
            EQ_STATUS(finish(b, p.token, id, END_RESULT), PAWL_LOST_LEASE, &b->err);
        EQ_STR(compensation(b, p.seq), "0"); /* it does not go on */
        EQ_STATUS(cancel_run(b, id, true, &state), PAWL_STATE, &b->op.err);
    }
    EQ_STR(claimable(b, want(b, 10)), "");
    EQ_STR(count(b, "pawl_lease"), "0");
}

/* ---- After it has ended ---------------------------------------------------------------------- */

/* A run that failed without undoing begins to undo; the call's own cancel does not do that. */
WORKFLOW_CASE(a_cancel_of_a_run_that_stopped_undoes_it)
{
    struct pass p = pass_of_new(b, "x");
    enum pawl_state state;
    step_undoable(&p, 1, "a", "1");
    const struct workflow_step other = {
        .no = 1, .name = BYTES("z"), .kind = STEP_RUN, .says = SAYS_RESULT
    };
    OK(pass_steps(&p, &other, 1), &b->op.err);
    TRUE(p.answer.steps.diverged);
    STATE_IS(b, "x", PAWL_DEAD_LETTER);
    EQ_STATUS(by_id(b, OP_CANCEL, "x"), PAWL_STATE, &b->op.err);
    OK(cancel_run(b, "x", true, &state), &b->op.err);
    STATE_IS(b, "x", PAWL_PROCESSING);
    struct pass q = pass_named(b, "x");
    TRUE(q.undoing);
    undo_ok(&q, 2, "a");
    end_pass(&q, END_RESULT);
    STATE_IS(b, "x", PAWL_FAILED);
    EQ_TEXT(get(b, "x").error, "step 1 is run \"a\", and the code asks for run \"z\"");
    EQ_STATUS(cancel_run(b, "x", true, &state), PAWL_STATE, &b->op.err); /* nothing is left */
    struct pass r = pass_of_new(b, "y");
    step_ok(&r, 1, "a", "1");
    end_pass(&r, END_RESULT);
    EQ_STATUS(cancel_run(b, "y", true, &state), PAWL_STATE, &b->op.err);
    EQ_STATUS(cancel_run(b, "y", false, &state), PAWL_STATE, &b->op.err);
    EQ_STATUS(cancel_run(b, "none", true, &state), PAWL_NOT_FOUND, &b->op.err);
}

/* Before its first step it is a call like others. */
WORKFLOW_CASE(a_cancel_before_it_begins)
{
    enum pawl_state state;
    for (int i = 0; i < 2; i++) {
        const char *id = arena_printf(&b->a, "x%d", i);
        accept_one(b, id);
        OK(signal_to(b, id, "go", "1", NULL), &b->op.err); /* it has a row, and has not begun */
        OK(cancel_run(b, id, i == 0, &state), &b->op.err);
        EQ_INT(state, PAWL_CANCELLED);
        EQ_STATUS(signal_to(b, id, "go", "2", NULL), PAWL_STATE, &b->op.err);
    }
    struct pass p = pass_of_new(b, "y");
    OK(cancel_run(b, "y", true, &state), &b->op.err);
    EQ_INT(state, PAWL_PROCESSING);
    TRUE(get(b, "y").cancel_requested);
    const struct workflow_step s = {
        .no = 1, .name = BYTES("a"), .kind = STEP_RUN, .says = SAYS_RESULT, .undo = true
    };
    OK(pass_steps(&p, &s, 1), &b->op.err); /* its first step was under way */
    TRUE(p.answer.steps.suspended);
    struct pass q = pass_named(b, "y");
    TRUE(q.undoing);
    undo_ok(&q, 2, "a");
    end_pass(&q, END_RESULT);
    STATE_IS(b, "y", PAWL_CANCELLED);
}

/* A restart is the first that it says, and it was cancelled before. */
WORKFLOW_CASE(a_cancel_before_it_begins_with_a_restart)
{
    enum pawl_state state;
    struct pass p = pass_of_new(b, "x");
    OK(cancel_run(b, "x", true, &state), &b->op.err);
    restart(&p, "2");
    struct pass q = pass_named(b, "x");
    TRUE(q.undoing);
    FALSE(journal_read(b, q.seq).doubt);
    EQ_INT(journal_read(b, q.seq).generation, 1);
    end_pass(&q, END_RESULT);
    STATE_IS(b, "x", PAWL_CANCELLED);
}

/* The last steps of a pass that undoes come with its end, and are not those of the journal. */
WORKFLOW_CASE(a_run_that_diverges_while_it_undoes_goes_on_with_that)
{
    struct pass p = pass_of_new(b, "x");
    step_undoable(&p, 1, "a", "1");
    step_undoable(&p, 2, "b", "2");
    end_pass(&p, END_REFUSE);
    struct pass q = pass_named(b, "x");
    undo_ok(&q, 3, "b");
    struct workflow_step other = {
        .no = 2, .name = BYTES("z"), .kind = STEP_RUN, .says = SAYS_RESULT
    };
    struct workflow_op last = { .what = WORKFLOW_STEPS,
                                .steps = { .v = &other, .n = 1, .undoing = true, .ends = true } };
    struct feature_op with = {
        .of = &feature_workflow, .ctx = &last, .token = q.token, .seq = q.seq
    };
    struct finish_item f = item("x", END_RESULT);
    f.with = &with;
    OK(finish_item(b, q.token, f), &b->err);
    STATE_IS(b, "x", PAWL_DEAD_LETTER);
    EQ_STR(compensation(b, p.seq), "3"); /* failed */
    OK(by_id(b, OP_RETRY, "x"), &b->op.err);
    struct pass r = pass_named(b, "x");
    TRUE(r.undoing);
    undo_ok(&r, 4, "a");
    end_pass(&r, END_RESULT);
    STATE_IS(b, "x", PAWL_FAILED);
}

/* ---- Who is told ----------------------------------------------------------------------------- */

/* A run that is due again in a second. Returns its seq. */
static int64_t asleep(struct conform_fixture *b, const char *id)
{
    struct pass p = pass_of_new(b, id);
    step_ok(&p, 1, "a", "1");
    OK(sleep_for(&p, 2, "nap", 1), &b->op.err);
    TRUE(p.answer.steps.suspended);
    return p.seq;
}

/* The calls that an extend of the lease names as to be stopped, with spaces between them. */
static const char *stops(struct conform_fixture *b, struct token t)
{
    struct op op = { .kind = OP_EXTEND, .extend = { .token = t, .lease_us = 600 * SEC_US } };
    const char *out = "";
    OK(one(b, &op), &op.err);
    for (size_t i = 0; i < op.extend.n_cancelled; i++)
        out = arena_printf(&b->a, "%s%s%.*s", out, i ? " " : "", BYTES_ARG(op.extend.cancelled[i]));
    return out;
}

/* A lease of these runs and calls, by a worker outside the node. */
static struct token held_outside(struct conform_fixture *b, size_t n)
{
    static const struct bytes has[] = { NEED_STEPS };
    struct claim q = want(b, (int)n);
    q.has = has;
    q.n_has = COUNT_OF(has);
    q.lease_us = 600 * SEC_US;
    q = claim_as(b, q);
    EQ_UINT(q.n, n);
    return q.token;
}

WORKFLOW_CASE(an_extend_names_runs_that_were_cancelled_since_their_claim)
{
    asleep(b, "x");
    asleep(b, "y");
    accept_one(b, "plain");
    advance(b, SEC_US);
    struct token t = held_outside(b, 3);
    EQ_STR(stops(b, t), "");
    advance(b, 1);
    OK(by_id(b, OP_CANCEL, "x"), &b->op.err);
    EQ_STR(stops(b, t), "x");
    OK(by_id(b, OP_CANCEL, "plain"), &b->op.err);
    EQ_STR(stops(b, t), "x plain");
    OK(change(
           b,
           (struct workflow_op){ .what = WORKFLOW_CANCEL, .id = BYTES("y"), .compensate = true }),
       &b->op.err);
    EQ_STR(stops(b, t), "x y plain");
    OK(finish(b, t, "x", END_CANCELLED), &b->err);
    EQ_STR(stops(b, t), "y plain");
    t = held_outside(b, 1); /* it undoes, and knows why */
    EQ_STR(stops(b, t), "");
    OK(by_id(b, OP_CANCEL, "x"), &b->op.err);
    EQ_STR(stops(b, t), "");
}

WORKFLOW_CASE(a_cancel_and_an_extend_of_one_commit_agree)
{
    asleep(b, "x");
    advance(b, SEC_US);
    struct token t = held_outside(b, 1);
    struct op extend = { .kind = OP_EXTEND, .extend = { .token = t, .lease_us = SEC_US } };
    struct op cancel = by_id_op(OP_CANCEL, "x");
    advance(b, 1);
    TOGETHER(b, &cancel, &extend);
    EQ_UINT(extend.extend.n_cancelled, 1);
    EQ_TEXT(extend.extend.cancelled[0], "x");
}

WORKFLOW_CASE(an_extend_names_runs_that_are_out_of_their_time)
{
    struct call_spec s = plan("x");
    s.run_timeout_us = 100 * SEC_US;
    accept_spec(b, s);
    struct pass p = pass_begin(b);
    step_ok(&p, 1, "a", "1");
    EQ_STR(stops(b, p.token), "");
    advance(b, 100 * SEC_US);
    EQ_STR(stops(b, p.token), "x");
    end_pass(&p, END_ERROR); /* it is not tried again, and undoes */
    struct workflow_journal j = journal_read(b, p.seq);
    TRUE(j.undoing);
    TRUE(j.cancelled);
    struct pass q = pass_begin(b);
    EQ_STR(stops(b, q.token), "");
    end_pass(&q, END_RESULT);
    STATE_IS(b, "x", PAWL_CANCELLED);
}
