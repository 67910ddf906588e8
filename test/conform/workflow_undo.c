/*
 * workflow_undo.c - what may be undone, and what of it is in doubt.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "workflow_case.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"

/* One undo of the step with this stored name. */
static enum pawl_status undo(struct pass *p, int64_t no, const char *name, enum step_says says)
{
    const struct workflow_step s = {
        .no = no, .name = bytes_of(name), .kind = STEP_UNDO, .says = says, .error = BYTES("busy")
    };
    return pass_steps(p, &s, 1);
}

WORKFLOW_CASE(what_has_not_happened_is_not_undone)
{
    const struct workflow_step no = {
        .no = 2, .name = BYTES("b"), .kind = STEP_RUN, .says = SAYS_REFUSED, .undo = true
    };
    struct pass p = pass_of_new(b, "x");
    step_undoable(&p, 1, "a", "1");
    OK(pass_steps(&p, &no, 1), &b->op.err);
    end_pass(&p, END_REFUSE);
    struct pass q = pass_begin(b);
    FALSE(journal_read(b, q.seq).doubt);
    EQ_STATUS(undo(&q, 3, "zz", SAYS_RESULT), PAWL_INVALID, &b->op.err);
    EQ_STR(b->op.err.text, "step 3 \"zz\": the run has no such step");
    EQ_STATUS(undo(&q, 3, "b", SAYS_RESULT), PAWL_STATE, &b->op.err);
    EQ_STR(b->op.err.text, "step 3 \"b\": what it undoes has not happened");
    OK(undo(&q, 3, "a", SAYS_RETRY), &b->op.err);
    struct pass r = pass_begin(b);
    EQ_STATUS(undo(&r, 4, "a", SAYS_RESULT), PAWL_INVALID, &b->op.err);
    EQ_STR(b->op.err.text, "step 4 \"a\": the undo of this step is step 3");
    OK(undo(&r, 3, "a", SAYS_RESULT), &b->op.err);
    EQ_STATUS(undo(&r, 4, "a", SAYS_RESULT), PAWL_INVALID, &b->op.err);
    EQ_STR(journal_of(b, q.seq), "1 a run completed 1 undone\n"
                                 "2 b run failed \n"
                                 "3 undo:a undo completed ");
    end_pass(&r, END_RESULT);
}

/* The last pass was cut off, so a step that is not stored may have happened. */
WORKFLOW_CASE(a_step_in_doubt_is_undone_by_its_name)
{
    struct pass p = pass_of_new(b, "x");
    step_undoable(&p, 1, "a", "1");
    advance(b, SEC_US);
    OK(cancel_run(b, "x", true, NULL), &b->op.err);
    end_pass(&p, END_RELEASE);
    struct pass q = pass_begin(b);
    TRUE(journal_read(b, q.seq).doubt);
    OK(undo(&q, 2, "b", SAYS_RESULT), &b->op.err);
    EQ_STATUS(undo(&q, 3, "b", SAYS_RESULT), PAWL_INVALID, &b->op.err);
    undo_ok(&q, 3, "a");
    end_pass(&q, END_RESULT);
    STATE_IS(b, "x", PAWL_CANCELLED);
}

/* The same if that was its last try: it undoes at once, or when a person says so. */
WORKFLOW_CASE(a_step_in_doubt_at_the_end_is_undone_by_its_name)
{
    for (int i = 0; i < 2; i++) {
        const char *id = i ? "lost" : "failed";
        struct call_spec once = plan(id);
        once.max_attempts = once.max_lost = 1;
        accept_spec(b, once);
        OK(node(b, OP_JOIN, "n1", "b1"), NULL);
        struct pass p = pass_named(b, id);
        step_undoable(&p, 1, "a", "1");
        if (!i) {
            end_pass(&p, END_ERROR);
        } else {
            OK(node(b, OP_JOIN, "n1", "b2"), NULL); /* the process of its pass is gone */
            OK(node(b, OP_JOIN, "n1", "b1"), NULL);
            STATE_IS(b, "lost", PAWL_DEAD_LETTER);
            OK(cancel_run(b, id, true, NULL), &b->op.err);
        }
        struct pass q = pass_named(b, id);
        TRUE(q.undoing);
        TRUE(journal_read(b, q.seq).doubt);
        OK(undo(&q, 2, "b", SAYS_RESULT), &b->op.err);
        undo_ok(&q, 3, "a");
        end_pass(&q, END_RESULT);
        EQ_INT(state_of(b, id), PAWL_FAILED);
    }
}

/* ---- Room for results ------------------------------------------------------------------------ */

static const char *megabyte(struct conform_fixture *b)
{
    char *text = arena_alloc(&b->a, RESULT_LEN_MAX + 1);
    TRUE(text);
    memset(text, '7', RESULT_LEN_MAX);
    text[RESULT_LEN_MAX] = 0;
    return text;
}

/* A step that ends with this JSON. */
static enum pawl_status step_with(struct pass *p, int64_t no, enum step_kind kind, const char *json)
{
    const struct workflow_step s = { .no = no,
                                     .name = BYTES("a"),
                                     .kind = kind,
                                     .says = SAYS_RESULT,
                                     .result = { PAWL_JSON, bytes_of(json) },
                                     .undo = true };
    return pass_steps(p, &s, 1);
}

/* A run that has all the results it may have waits for no further signal, and can be undone. */
WORKFLOW_CASE(a_run_that_is_full_can_be_undone)
{
    static const char full[] = "the results of the run would exceed 64 MiB; restart it";
    const char *mb = megabyte(b);
    int all = STEPS_LEN_MAX / RESULT_LEN_MAX;
    struct pass p = pass_of_new(b, "x");
    OK(signal_to(b, "x", "go", "12", NULL), &b->op.err);
    for (int no = 1; no < all; no++)
        OK(step_with(&p, no, STEP_RUN, mb), &b->op.err);
    struct workflow_step two[2];
    for (int i = 0; i < 2; i++)
        two[i] = (struct workflow_step){ .no = all + i,
                                         .name = BYTES("a"),
                                         .kind = STEP_RUN,
                                         .says = SAYS_RESULT,
                                         .result = { PAWL_JSON, { mb, RESULT_LEN_MAX / 2 + 1 } } };
    EQ_STATUS(pass_steps(&p, two, 2), PAWL_FULL, &b->op.err); /* together they are too long */
    two[0].result.bytes.len = RESULT_LEN_MAX - 1;
    OK(pass_steps(&p, two, 1), &b->op.err);
    EQ_STATUS(step_with(&p, all + 1, STEP_RUN, "12"), PAWL_FULL, &b->op.err);
    HAS_STR(b->op.err.text, full);
    EQ_STATUS(wait_signal(&p, all + 1, "go", 0), PAWL_FULL, &b->op.err);
    HAS_STR(b->op.err.text, full);
    OK(wait_signal(&p, all + 1, "other", 0), &b->op.err); /* it has no result yet */
    TRUE(p.answer.steps.suspended);
    OK(cancel_run(b, "x", true, NULL), &b->op.err);
    struct pass q = pass_named(b, "x");
    OK(step_with(&q, all + 2, STEP_UNDO, mb), &b->op.err);
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM pawl_step WHERE kind = 8"), "1");
    end_pass(&q, END_RESULT);
    STATE_IS(b, "x", PAWL_CANCELLED);
}
