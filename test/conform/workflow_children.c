/*
 * workflow_children.c - children of runs over generations, branches and forks: which end wakes
 * whom, their ids, and keys for which they would wait.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "workflow_case.h"

#include <stdio.h>
#include <string.h>

/* ---- Who is woken ---------------------------------------------------------------------------- */

/* A join whose step was forgotten waits for nobody: its child does not count for the step that has
 * its number now. */
static void ends_for_a_forgotten_step(struct conform_fixture *b, bool again)
{
    struct pass p = pass_of_new(b, "x");
    const char *old = child_of(&p, 1, "part", NULL);
    OK(join(&p, 2, "all", old, false, 10), &b->op.err);
    TRUE(p.answer.steps.suspended);
    advance(b, 10 * SEC_US);
    struct pass q = pass_named(b, "x");
    OK(join(&q, 2, "all", old, false, 10), &b->op.err);
    EQ_INT(q.steps[0].status, STEP_TIMEOUT);
    if (again) {
        OK(cancel_run(b, "x", false, NULL), &b->op.err);
        OK(retry_from(b, "x", "part"), &b->op.err);
    } else {
        restart(&q, "2");
    }
    struct pass r = pass_named(b, "x");
    const char *new = child_of(&r, 1, "part", NULL);
    OK(join(&r, 2, "all", new, false, 0), &b->op.err);
    TRUE(r.answer.steps.suspended);
    child_ends(b, old);
    if (get(b, "x").waiting_for == WAIT_WORKER) { /* woken, and nothing has come */
        struct pass s = pass_named(b, "x");
        OK(join(&s, 2, "all", new, false, 0), &b->op.err);
        TRUE(s.answer.steps.suspended);
    }
    child_ends(b, new);
    struct pass s = pass_named(b, "x");
    OK(join(&s, 2, "all", new, false, 0), &b->op.err);
    EQ_TEXT(s.steps[0].result_out.bytes, arena_printf(&b->a, "[\"%s\"]", new));
    end_pass(&s, END_RESULT);
}

WORKFLOW_CASE(a_child_from_before_a_restart_does_not_count)
{
    ends_for_a_forgotten_step(b, false);
}

WORKFLOW_CASE(a_child_from_before_a_retry_does_not_count)
{
    ends_for_a_forgotten_step(b, true);
}

static struct workflow_step join_step(int64_t no, const char *name, const struct bytes *ids,
                                      size_t n)
{
    return (struct workflow_step){ .no = no,
                                   .name = bytes_of(name),
                                   .kind = STEP_JOIN,
                                   .says = SAYS_WAIT,
                                   .wait = {
                                       .children = ids, .n_children = n, .children_given = true } };
}

/* Two branches join the same child; one of them goes on, and the other one still waits. */
WORKFLOW_CASE(branches_that_join_one_child_are_both_woken)
{
    struct pass p = pass_of_new(b, "x");
    const char *one = child_of(&p, 1, "a", NULL), *two = child_of(&p, 2, "b", NULL);
    const struct bytes ids[] = { bytes_of(one), bytes_of(two) };
    const struct workflow_step both[] = { join_step(3, "left", ids, 2),
                                          join_step(4, "right", ids + 1, 1) };
    OK(pass_steps(&p, both, 2), &b->op.err);
    TRUE(p.answer.steps.suspended);
    child_ends(b, two);
    struct pass q = pass_named(b, "x");
    OK(pass_steps(&q, both, 2), &b->op.err);
    FALSE(q.answer.steps.suspended);
    EQ_INT(q.steps[0].status, STEP_WAITING);
    EQ_TEXT(q.steps[1].result_out.bytes, "[\"x.b#1\"]");
    OK(pass_steps(&q, both, 1), &b->op.err); /* the other branch has ended */
    TRUE(q.answer.steps.suspended);
    child_ends(b, one);
    struct pass r = pass_named(b, "x");
    OK(pass_steps(&r, both, 1), &b->op.err);
    EQ_TEXT(r.steps[0].result_out.bytes, "[\"x.a#1\",\"x.b#1\"]");
    end_pass(&r, END_RESULT);
}

/* Two branches wait for one child; what settles the second is no end of a child. The first one
 * still waits for it. */
static void other_branch_goes_on(struct conform_fixture *b, bool by_signal)
{
    static const struct bytes go = BYTES("go");
    struct pass p = pass_of_new(b, "x");
    const char *one = child_of(&p, 1, "a", NULL);
    const struct bytes id = bytes_of(one);
    struct workflow_step both[] = { join_step(2, "left", &id, 1), join_step(3, "right", &id, 1) };
    both[1].kind = STEP_SELECT;
    both[1].wait.signals = &go;
    both[1].wait.n_signals = 1;
    both[1].wait.has_until = true;
    both[1].wait.in_us = 60 * SEC_US;
    OK(pass_steps(&p, both, 2), &b->op.err);
    TRUE(p.answer.steps.suspended);
    if (by_signal)
        OK(signal_to(b, "x", "go", "1", NULL), &b->op.err);
    else
        advance(b, 60 * SEC_US);
    struct pass q = pass_named(b, "x");
    OK(pass_steps(&q, both, 2), &b->op.err);
    EQ_INT(q.steps[0].status, STEP_WAITING);
    EQ_INT(q.steps[1].status, STEP_COMPLETED);
    OK(pass_steps(&q, both, 1), &b->op.err);
    TRUE(q.answer.steps.suspended);
    child_ends(b, one);
    struct pass r = pass_named(b, "x");
    OK(pass_steps(&r, both, 1), &b->op.err);
    EQ_TEXT(r.steps[0].result_out.bytes, "[\"x.a#1\"]");
    end_pass(&r, END_RESULT);
}

WORKFLOW_CASE(a_signal_for_one_branch_leaves_the_child_of_both)
{
    other_branch_goes_on(b, true);
}

WORKFLOW_CASE(the_time_of_one_branch_leaves_the_child_of_both)
{
    other_branch_goes_on(b, false);
}

/* A fork and the run that it was forked from wait for the same child. */
WORKFLOW_CASE(a_child_wakes_its_run_and_the_fork_of_it)
{
    struct pass p = pass_of_new(b, "x");
    const char *child = child_of(&p, 1, "part", NULL);
    step_ok(&p, 2, "a", "1");
    OK(fork_from(b, "x", "a", "y"), &b->op.err);
    struct pass f = pass_named(b, "y");
    OK(join(&f, 2, "all", child, false, 0), &b->op.err);
    TRUE(f.answer.steps.suspended);
    OK(join(&p, 3, "all", child, false, 0), &b->op.err);
    TRUE(p.answer.steps.suspended);
    EQ_TEXT(get(b, child).spec.parent, "x");
    child_ends(b, child);
    struct pass q = pass_named(b, "x"), g = pass_named(b, "y");
    OK(join(&q, 3, "all", child, false, 0), &b->op.err);
    EQ_TEXT(q.steps[0].result_out.bytes, "[\"x.part#1\"]");
    OK(join(&g, 2, "all", child, false, 0), &b->op.err);
    EQ_TEXT(g.steps[0].result_out.bytes, "[\"x.part#1\"]");
    EQ_STR(child_of(&g, 3, "part", NULL), "y.part#2"); /* its own have its id */
    end_pass(&q, END_RESULT);
    end_pass(&g, END_RESULT);
}

/* A fork takes over the children of the steps before it, final as these are: its undoing asks none
 * of them to cancel, and the children of later steps are not its own. */
WORKFLOW_CASE(a_fork_that_undoes_leaves_the_children_of_its_run)
{
    struct pass p = pass_of_new(b, "x");
    const char *one = child_of(&p, 1, "a", NULL), *two = child_of(&p, 2, "b", NULL);
    const char *ids = arena_printf(&b->a, "%s %s", one, two);
    OK(fork_from(b, "x", "b", "y"), &b->op.err);
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM pawl_child"), "3");
    struct pass f = pass_named(b, "y");
    const char *own = child_of(&f, 2, "c", NULL);
    OK(join(&f, 3, "all", arena_printf(&b->a, "%s %s", one, own), false, 0), &b->op.err);
    OK(join(&p, 3, "all", ids, false, 0), &b->op.err);
    OK(cancel_run(b, "y", true, NULL), &b->op.err);
    STATE_IS(b, "x.a#1", PAWL_PENDING);
    STATE_IS(b, "x.b#1", PAWL_PENDING);
    STATE_IS(b, "y.c#1", PAWL_CANCELLED);
    f = pass_named(b, "y");
    end_pass(&f, END_RESULT);
    OK(cancel_run(b, "x", true, NULL), &b->op.err); /* the run that made them asks them */
    STATE_IS(b, "x.a#1", PAWL_CANCELLED);
    STATE_IS(b, "x.b#1", PAWL_CANCELLED);
}

/* The fork goes on and waits for the child, whatever becomes of the run that made it. */
WORKFLOW_CASE(a_run_that_undoes_leaves_the_children_of_a_fork)
{
    struct pass p = pass_of_new(b, "x");
    const char *one = child_of(&p, 1, "a", NULL), *two = child_of(&p, 2, "b", NULL);
    OK(fork_from(b, "x", "b", "y"), &b->op.err);
    struct pass f = pass_named(b, "y");
    OK(join(&f, 2, "all", one, false, 0), &b->op.err);
    TRUE(f.answer.steps.suspended);
    OK(wait_signal(&p, 3, "go", 0), &b->op.err);
    OK(cancel_run(b, "x", true, NULL), &b->op.err);
    STATE_IS(b, "x.a#1", PAWL_PENDING);
    EQ_INT(state_of(b, two), PAWL_CANCELLED);
    child_ends(b, one);
    f = pass_named(b, "y");
    OK(join(&f, 2, "all", one, false, 0), &b->op.err);
    EQ_TEXT(f.steps[0].result_out.bytes, "[\"x.a#1\"]");
    end_pass(&f, END_RESULT);
}

/* What was done before a restart is final. */
WORKFLOW_CASE(a_restart_leaves_the_children_from_before_it)
{
    struct pass p = pass_of_new(b, "x");
    child_of(&p, 1, "a", NULL);
    restart(&p, "2");
    p = pass_named(b, "x");
    child_of(&p, 1, "a", NULL);
    OK(wait_signal(&p, 2, "go", 0), &b->op.err);
    OK(cancel_run(b, "x", true, NULL), &b->op.err);
    STATE_IS(b, "x.a#1", PAWL_PENDING);
    STATE_IS(b, "x~2.a#1", PAWL_CANCELLED);
}

/* ---- Generations ----------------------------------------------------------------------------- */

WORKFLOW_CASE(a_hundred_generations_have_a_child_each)
{
    enum { ROUNDS = 100 };
    struct pass p = pass_of_new(b, "x");
    OK(signal_to(b, "x", "unread", "7", NULL), &b->op.err);
    for (int i = 1; i <= ROUNDS; i++) {
        const char *id = child_of(&p, 1, "part", NULL);
        EQ_STR(id, i == 1 ? "x.part#1" : arena_printf(&b->a, "x~%d.part#1", i));
        const char *key = arena_printf(&b->a, "k%d", i);
        OK(signal_to(b, "x", "go", "1", key), &b->op.err);
        OK(wait_signal(&p, 2, "go", 0), &b->op.err);
        EQ_TEXT(p.steps[0].result_out.bytes, "1");
        OK(join(&p, 3, "all", id, false, 0), &b->op.err);
        TRUE(p.answer.steps.suspended);
        child_ends(b, id);
        p = pass_named(b, "x");
        OK(join(&p, 3, "all", id, false, 0), &b->op.err);
        EQ_INT(p.steps[0].status, STEP_COMPLETED);
        if (i == ROUNDS)
            break;
        restart(&p, arena_printf(&b->a, "%d", i + 1));
        p = pass_named(b, "x");
        EQ_INT(journal_read(b, p.seq).generation, i + 1);
        EQ_UINT(journal_read(b, p.seq).n, 0);
    }
    for (int i = 1; i <= ROUNDS; i += 33) { /* keys of consumed signals are known */
        OK(signal_to(b, "x", "go", "1", arena_printf(&b->a, "k%d", i)), &b->op.err);
        TRUE(((const struct workflow_op *)b->op.feature.ctx)->duplicate);
    }
    OK(wait_signal(&p, 4, "go", 0), &b->op.err);
    TRUE(p.answer.steps.suspended); /* repeats were no new signals */
    OK(signal_to(b, "x", "go", "1", "last"), &b->op.err);
    p = pass_named(b, "x");
    OK(wait_signal(&p, 4, "go", 0), &b->op.err);
    OK(wait_signal(&p, 5, "unread", 0), &b->op.err); /* it came in the first generation */
    EQ_TEXT(p.steps[0].result_out.bytes, "7");
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM pawl_call"), "101");
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM pawl_child WHERE ended = 3"), "100");
    end_pass(&p, END_RESULT);
}

/* Ids that are made of a run's are shortened where they would be too long. */
WORKFLOW_CASE(children_and_forks_of_a_run_with_a_long_id)
{
    char id[NAME_LEN_MAX + 1];
    memset(id, 'i', NAME_LEN_MAX);
    id[NAME_LEN_MAX] = 0;
    struct pass p = pass_of_new(b, id);
    const char *one = child_of(&p, 1, "part", NULL), *two = child_of(&p, 2, "part", NULL);
    LE_INT(strlen(one), NAME_LEN_MAX);
    NE_INT(strcmp(one, two), 0);
    EQ_TEXT(get(b, one).spec.parent, id);
    OK(join(&p, 3, "all", one, false, 0), &b->op.err);
    TRUE(p.answer.steps.suspended);
    child_ends(b, one);
    p = pass_named(b, id);
    OK(join(&p, 3, "all", one, false, 0), &b->op.err);
    EQ_TEXT(p.steps[0].result_out.bytes, arena_printf(&b->a, "[\"%s\"]", one));
    OK(change(b, (struct workflow_op){ .what = WORKFLOW_FORK,
                                       .id = bytes_of(id),
                                       .from = BYTES("part#2") }),
       &b->op.err);
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM pawl_workflow"), "2");
}

/* ---- Ids ------------------------------------------------------------------------------------- */

/* One step of the pass is a child of this name. */
static struct workflow_step child_step(int64_t no, const char *name, const struct call_spec *call)
{
    return (struct workflow_step){
        .no = no, .name = bytes_of(name), .kind = STEP_CHILD, .says = SAYS_CHILD, .call = call
    };
}

/* Another call has the id: with other content, with the same, or it had it and is gone. What else
 * the operation says is stored, and the run goes on. */
WORKFLOW_CASE(a_child_whose_id_is_taken_fails_its_step)
{
    struct call_spec call = plan("unused"), gone = plan("x.gone#1"), other = plan("x.other#1");
    gone.keep_us = SEC_US;
    accept_spec(b, gone);
    OK(finish(b, claim_for(b, 1, 0), "x.gone#1", END_RESULT), &b->err);
    advance(b, 2 * SEC_US);
    gc(b);
    struct pass p = pass_of_new(b, "x");
    other.type = BYTES("other");
    accept_spec(b, other);
    accept_one(b, "x.same#1");
    const struct workflow_step v[] = {
        child_step(1, "gone", &call),
        child_step(2, "free", &call),
        child_step(3, "other", &call),
        child_step(4, "same", &call),
        { .no = 5,
          .name = BYTES("a"),
          .kind = STEP_RUN,
          .says = SAYS_RESULT,
          .result = { PAWL_JSON, BYTES("7") } },
    };
    struct workflow_counts before, after;
    workflow_counts(&before);
    OK(pass_steps(&p, v, COUNT_OF(v)), &b->op.err);
    workflow_counts(&after);
    EQ_INT(after.taken - before.taken, 3);
    EQ_STR(journal_of(b, p.seq), "1 gone child failed \n"
                                 "2 free child completed \"x.free#1\"\n"
                                 "3 other child failed \n"
                                 "4 same child failed \n"
                                 "5 a run completed 7");
    EQ_TEXT(p.steps[2].error_out, "CONFLICT: a call with the id \"x.other#1\" exists already");
    EQ_INT(p.steps[2].status, STEP_REFUSED);
    TRUE(p.answer.steps.taken.data);
    EQ_TEXT(get(b, "x.free#1").spec.parent, "x");
    EQ_STR(engine_rows(b->url, "SELECT COUNT(*) FROM pawl_child"), "1");
    OK(pass_steps(&p, v, COUNT_OF(v)), &b->op.err); /* the answer was lost */
    FALSE(p.answer.steps.taken.data);
    end_pass(&p, END_RESULT);
}

/* A name that is no child's, perhaps mistyped, would let the run go on too early. */
WORKFLOW_CASE(a_wait_for_what_is_no_child_is_refused)
{
    struct pass p = pass_of_new(b, "x");
    const char *one = child_of(&p, 1, "a", NULL);
    accept_one(b, "other");
    EQ_STATUS(join(&p, 2, "all", "nosuch", false, 0), PAWL_INVALID, &b->op.err);
    EQ_STR(b->op.err.text, "step 2 \"all\": \"nosuch\" is no child of this run");
    EQ_STATUS(join(&p, 2, "all", arena_printf(&b->a, "%s other", one), true, 5), PAWL_INVALID,
              &b->op.err);
    EQ_STR(b->op.err.text, "step 2 \"all\": \"other\" is no child of this run");
    EQ_STR(journal_of(b, p.seq), "1 a child completed \"x.a#1\"");
    /* A child of the same operation is one, whether its id was free or not. */
    accept_one(b, "x.d#1");
    struct call_spec call = plan("unused");
    const struct bytes ids[] = { BYTES("x.c#1"), BYTES("x.d#1"), bytes_of(one) };
    const struct workflow_step v[] = { child_step(2, "c", &call), child_step(3, "d", &call),
                                       join_step(4, "all", ids, 3) };
    OK(pass_steps(&p, v, 3), &b->op.err);
    TRUE(p.answer.steps.suspended);
    child_ends(b, one);
    child_ends(b, "x.c#1");
    p = pass_named(b, "x");
    OK(pass_steps(&p, &v[2], 1), &b->op.err);
    EQ_TEXT(p.steps[0].result_out.bytes, "[\"x.c#1\",\"x.a#1\"]");
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static enum pawl_status child_keyed(struct pass *p, int64_t no, const char *key)
{
    struct call_spec call = plan("unused");
    call.key = bytes_of(key);
    const struct workflow_step s = {
        .no = no, .name = BYTES("c"), .kind = STEP_CHILD, .says = SAYS_CHILD, .call = &call
    };
    return pass_steps(p, &s, 1);
}

/* A child of a child, and so on; each is the run of the next. */
WORKFLOW_CASE(a_child_with_the_key_of_an_ancestor_is_refused)
{
    accept_spec(b, keyed("x", "k0"));
    struct pass top = pass_named(b, "x"), p = top;
    for (int i = 1; i <= 3; i++) {
        OK(child_keyed(&p, 1, arena_printf(&b->a, "k%d", i)), &b->op.err);
        p = pass_begin(b);
    }
    EQ_TEXT(p.id, "x.c#1.c#1.c#1");
    for (int i = 0; i <= 3; i++) {
        EQ_STATUS(child_keyed(&p, 1, arena_printf(&b->a, "k%d", i)), PAWL_INVALID, &b->op.err);
        HAS_STR(b->op.err.text, "the key of its call");
    }
    EQ_STR(journal_of(b, p.seq), "");
    /* When the ancestor has ended its key is free, and nobody waits for itself. */
    end_pass(&top, END_RESULT);
    OK(child_keyed(&p, 1, "k0"), &b->op.err);
}

/* The run above has ended; its fork, which joins the same child, has not. */
WORKFLOW_CASE(a_child_with_the_key_of_a_second_parent_is_refused)
{
    accept_spec(b, keyed("x", "k"));
    struct pass top = pass_named(b, "x");
    OK(child_keyed(&top, 1, "k1"), &b->op.err);
    struct pass p = pass_named(b, "x.c#1");
    step_ok(&top, 2, "a", "1");
    OK(fork_from(b, "x", "a", "y"), &b->op.err);
    end_pass(&top, END_RESULT);
    struct pass f = pass_named(b, "y");
    OK(join(&f, 2, "all", "x.c#1", false, 0), &b->op.err);
    TRUE(f.answer.steps.suspended);
    EQ_STATUS(child_keyed(&p, 1, "k"), PAWL_INVALID, &b->op.err);
    OK(child_keyed(&p, 1, "other"), &b->op.err);
}

/* Two runs whose children have each other's key: nobody refuses that, and what GET shows names all
 * that is needed to see it. */
WORKFLOW_CASE(runs_that_wait_for_each_other_are_named)
{
    accept_spec(b, keyed("x", "kx"));
    struct pass p = pass_named(b, "x");
    accept_spec(b, keyed("y", "ky"));
    struct pass q = pass_named(b, "y");
    OK(child_keyed(&p, 1, "ky"), &b->op.err);
    OK(child_keyed(&q, 1, "kx"), &b->op.err);
    OK(join(&p, 2, "all", "x.c#1", false, 0), &b->op.err);
    OK(join(&q, 2, "all", "y.c#1", false, 0), &b->op.err);
    static const char *const runs[] = { "x", "y" }, *const children[] = { "x.c#1", "y.c#1" };
    for (int i = 0; i < 2; i++) {
        EQ_INT(get(b, runs[i]).waiting_for, WAIT_CHILDREN);
        EQ_INT(get(b, runs[i]).position, 0);
        struct call c = get(b, children[i]);
        EQ_INT(c.waiting_for, WAIT_KEY);
        EQ_INT(c.position, 1);
        EQ_TEXT(c.spec.parent, runs[i]);
        struct key_row k = key_of(b, i ? "kx" : "ky"); /* the key that it waits for */
        EQ_TEXT(k.head, i ? "x" : "y");
        EQ_INT(k.waiting_for, WAIT_CHILDREN);
    }
    EQ_STR(claimable(b, want(b, 10)), "");
    OK(cancel_run(b, "y", false, NULL), &b->op.err); /* a person decides */
    child_ends(b, "x.c#1");
    p = pass_named(b, "x");
    OK(join(&p, 2, "all", "x.c#1", false, 0), &b->op.err);
    end_pass(&p, END_RESULT);
}

WORKFLOW_CASE(a_child_that_a_join_names_twice_is_one)
{
    struct pass p = pass_of_new(b, "x");
    const char *one = child_of(&p, 1, "a", NULL), *two = child_of(&p, 2, "b", NULL);
    const char *ids = arena_printf(&b->a, "%s %s %s %s", one, two, one, one);
    OK(join(&p, 3, "all", ids, false, 0), &b->op.err);
    TRUE(p.answer.steps.suspended);
    child_ends(b, one);
    child_ends(b, two);
    struct pass q = pass_named(b, "x");
    OK(join(&q, 3, "all", ids, false, 0), &b->op.err);
    EQ_TEXT(q.steps[0].result_out.bytes, "[\"x.a#1\",\"x.b#1\"]");
    end_pass(&q, END_RESULT);
}
