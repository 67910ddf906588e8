/*
 * workflow_gc.c - gc and archive of runs: what stays while it may be needed, and that nothing
 * stays in any table when all is gone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "workflow_case.h"

#include <stdio.h>
#include <string.h>

static const char *const tables[] = { "pawl_workflow", "pawl_step", "pawl_signal", "pawl_published",
                                      "pawl_child" };

static int64_t rows(struct conform_fixture *b, const char *table)
{
    return engine_int(b->url, arena_printf(&b->a, "SELECT COUNT(*) FROM %s", table));
}

/* Nothing of any run is stored. */
static void nothing_left(struct conform_fixture *b)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        if (rows(b, tables[i]) != 0)
            FAIL("%lld rows are left in %s", (long long)rows(b, tables[i]), tables[i]);
}

/* Remove what has ended: by retention, or by hand with or without the archive. Returns how many. */
enum way { RETENTION, BY_HAND, ARCHIVE, WAYS };

static int64_t removes(struct conform_fixture *b, enum way how)
{
    struct op op = { .kind = OP_GC, .gc = { .max = GC_STEP_MAX } };
    if (how == RETENTION) {
        advance(b, RETENTION_US + 3601 * SEC_US); /* also what was kept an hour longer */
        return gc(b).removed;
    }
    advance(b, SEC_US);
    op.gc.ended_before_us = now(b);
    op.gc.archive = how == ARCHIVE;
    OK(one(b, &op), &op.err);
    return op.gc.removed;
}

/* A run with a row in every table. */
static struct pass full(struct conform_fixture *b, const char *id)
{
    static const struct workflow_value value = { BYTES("at"), { PAWL_JSON, BYTES("1") } };
    accept_one(b, id);
    struct pass p = pass_named(b, id);
    step_undoable(&p, 1, "a", "1");
    OK(signal_to(b, id, "go", "1", "k"), &b->op.err);
    OK(signal_to(b, id, "unread", "1", NULL), &b->op.err);
    OK(wait_signal(&p, 2, "go", 0), &b->op.err);
    EQ_STR(child_of(&p, 3, "c", NULL), arena_printf(&b->a, "%s.c#1", id));
    p.answer = (struct workflow_op){ .what = WORKFLOW_STEPS,
                                     .steps = { .published = &value, .n_published = 1 } };
    struct op op = {
        .kind = OP_FEATURE,
        .feature = { .of = &feature_workflow, .ctx = &p.answer, .token = p.token, .seq = p.seq }
    };
    OK(one(b, &op), &op.err);
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        GT_INT(rows(b, tables[i]), 0);
    return p;
}

/* It was removed; its id may still be known. */
static void gone(struct conform_fixture *b, const char *id)
{
    enum pawl_status st = found(b, id);
    TRUE(st == PAWL_GONE || st == PAWL_NOT_FOUND);
}

static void retention_and_by_hand(struct conform_fixture *b,
                                  void (*body)(struct conform_fixture *, enum way))
{
    for (enum way how = RETENTION; how < WAYS; how++) {
        body(b, how);
        nothing_left(b);
        advance(b, RETENTION_US + REMEMBER_US + 7200 * SEC_US);
        gc(b); /* the ids, so that the next round may have them */
    }
}

/* ---- What stays ------------------------------------------------------------------------------ */

static void open_run(struct conform_fixture *b, enum way how)
{
    struct pass p = full(b, "x");
    child_ends(b, "x.c#1");
    EQ_INT(removes(b, how), 0); /* it runs */
    STATE_IS(b, "x.c#1", PAWL_COMPLETED);
    OK(wait_signal(&p, 4, "other", 0), &b->op.err);
    EQ_INT(removes(b, how), 0); /* it waits */
    EQ_INT((int64_t)journal_read(b, p.seq).n, 4);
    STATE_IS(b, "x.c#1", PAWL_COMPLETED);
    OK(signal_to(b, "x", "other", "1", NULL), &b->op.err);
    p = pass_named(b, "x");
    OK(wait_signal(&p, 4, "other", 0), &b->op.err);
    OK(join(&p, 5, "all", "x.c#1", false, 0), &b->op.err);
    EQ_TEXT(p.steps[0].result_out.bytes, "[\"x.c#1\"]");
    end_pass(&p, END_REFUSE);
    EQ_INT(removes(b, how), 0); /* it is to undo */
    p = pass_named(b, "x");
    undo_ok(&p, 6, "a");
    EQ_INT(removes(b, how), 0); /* it undoes */
    end_pass(&p, END_RESULT);
    STATE_IS(b, "x", PAWL_FAILED);
    EQ_INT(removes(b, how), 2);
    gone(b, "x");
    gone(b, "x.c#1");
}

WORKFLOW_CASE(a_run_that_has_not_ended_and_its_children_stay)
{
    retention_and_by_hand(b, open_run);
}

/* Children of children: each waits for its own run alone. */
static void nested(struct conform_fixture *b, enum way how)
{
    struct pass top = full(b, "x"), p = pass_named(b, "x.c#1");
    EQ_STR(child_of(&p, 1, "d", NULL), "x.c#1.d#1");
    child_ends(b, "x.c#1.d#1");
    EQ_INT(removes(b, how), 0);
    end_pass(&p, END_RESULT);
    EQ_INT(removes(b, how), 1); /* the run of d has ended */
    gone(b, "x.c#1.d#1");
    STATE_IS(b, "x.c#1", PAWL_COMPLETED);
    EQ_STR(journal_of(b, p.seq), "1 d child completed \"x.c#1.d#1\"");
    end_pass(&top, END_RESULT);
    EQ_INT(removes(b, how), 2);
}

WORKFLOW_CASE(a_child_of_a_child_goes_when_its_own_run_has_ended)
{
    retention_and_by_hand(b, nested);
}

/* Both the run and its fork are parents. */
static void forked(struct conform_fixture *b, enum way how)
{
    struct pass p = full(b, "x");
    step_ok(&p, 4, "b", "1");
    child_ends(b, "x.c#1");
    OK(fork_from(b, "x", "b", "y"), &b->op.err);
    end_pass(&p, END_RESULT);
    EQ_INT(removes(b, how), 1);
    gone(b, "x");
    STATE_IS(b, "x.c#1", PAWL_COMPLETED);
    struct pass f = pass_named(b, "y");
    EQ_UINT(journal_read(b, f.seq).n, 3); /* its steps are its own */
    OK(join(&f, 4, "all", "x.c#1", false, 0), &b->op.err);
    EQ_TEXT(f.steps[0].result_out.bytes, "[\"x.c#1\"]");
    end_pass(&f, END_RESULT);
    EQ_INT(removes(b, how), 2);
}

WORKFLOW_CASE(a_child_stays_for_the_fork_of_its_run)
{
    retention_and_by_hand(b, forked);
}

static void stuck(struct conform_fixture *b, enum way how)
{
    enum pawl_state state;
    struct pass p = full(b, "x");
    child_ends(b, "x.c#1");
    end_pass(&p, END_REFUSE);
    p = pass_named(b, "x");
    const struct workflow_step s = {
        .no = 4, .name = BYTES("a"), .kind = STEP_UNDO, .says = SAYS_REFUSED, .error = BYTES("no")
    };
    OK(pass_steps(&p, &s, 1), &b->op.err);
    TRUE(p.answer.steps.stuck);
    STATE_IS(b, "x", PAWL_DEAD_LETTER);
    EQ_INT(removes(b, how), 1); /* its children may go: it has ended */
    gone(b, "x.c#1");
    EQ_INT(removes(b, how), 0);
    STATE_IS(b, "x", PAWL_DEAD_LETTER);
    EQ_UINT(journal_read(b, p.seq).n, 4);
    OK(cancel_run(b, "x", false, &state), &b->op.err); /* an admin drops it */
    STATE_IS(b, "x", PAWL_DEAD_LETTER);
    EQ_INT(removes(b, how), 1);
    gone(b, "x");
}

WORKFLOW_CASE(a_run_whose_compensation_failed_stays_until_it_is_dropped)
{
    retention_and_by_hand(b, stuck);
}

/* ---- What goes ------------------------------------------------------------------------------- */

/* However a run ended, and also one that never began and has signals. */
static void all_ends(struct conform_fixture *b, enum way how)
{
    static const char *const ids[] = { "done", "refused", "cancelled", "diverged", "restarted" };
    enum pawl_state state;
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        struct pass p = full(b, ids[i]);
        child_ends(b, arena_printf(&b->a, "%s.c#1", ids[i]));
        const struct workflow_step other = {
            .no = 1, .name = BYTES("z"), .kind = STEP_RUN, .says = SAYS_RESULT
        };
        switch (i) {
        case 0:
            end_pass(&p, END_RESULT);
            break;
        case 1:
            end_pass(&p, END_REFUSE);
            p = pass_named(b, ids[i]);
            undo_ok(&p, 4, "a");
            end_pass(&p, END_RESULT);
            break;
        case 2:
            OK(cancel_run(b, ids[i], false, &state), &b->op.err);
            break;
        case 3:
            OK(pass_steps(&p, &other, 1), &b->op.err);
            break;
        default:
            restart(&p, "2");
            p = pass_named(b, ids[i]);
            EQ_STR(child_of(&p, 1, "c", NULL), "restarted~2.c#1");
            child_ends(b, "restarted~2.c#1");
            end_pass(&p, END_RESULT);
        }
        TRUE(pawl_state_ended(state_of(b, ids[i])));
    }
    accept_one(b, "signalled");
    OK(signal_to(b, "signalled", "go", "1", "k"), &b->op.err);
    OK(by_id(b, OP_CANCEL, "signalled"), &b->op.err);
    EQ_INT(removes(b, how), 2 * (int64_t)COUNT_OF(ids) + 2);
    EQ_INT(rows(b, "pawl_call"), 0);
}

WORKFLOW_CASE(every_row_of_a_run_goes_with_it)
{
    retention_and_by_hand(b, all_ends);
}

/* Run and child past their retention at once, in steps of one call: in either order. */
WORKFLOW_CASE(in_small_steps_all_goes_too)
{
    struct pass p = full(b, "x");
    child_ends(b, "x.c#1");
    end_pass(&p, END_RESULT);
    p = full(b, "y");
    end_pass(&p, END_RESULT); /* before its child, which is cancelled by hand */
    OK(by_id(b, OP_CANCEL, "y.c#1"), &b->op.err);
    advance(b, RETENTION_US + SEC_US);
    int64_t removed = 0;
    for (int i = 0; i < 10; i++)
        removed += gc_max(b, 1).removed;
    EQ_INT(removed, 4);
    nothing_left(b);
}
