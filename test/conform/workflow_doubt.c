/*
 * workflow_doubt.c - which ends of a pass leave a step in doubt, because it may have begun, and
 * which do not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "model/needs.h"
#include "workflow_case.h"

/* Give the pass back as a node does whose handler began then; 0: it has not begun. */
static void give_back(struct pass *p, enum ending how, int64_t started_us)
{
    struct finish_item f = { .seq = p->seq, .how = how, .started_us = started_us };
    OK(finish_item(p->b, p->token, f), &p->b->err);
}

/* A run that is due again in a second. Returns its seq. */
static int64_t asleep(struct conform_fixture *b, const char *id)
{
    struct pass p = pass_of_new(b, id);
    step_ok(&p, 1, "a", "1");
    OK(sleep_for(&p, 2, "nap", 1), &b->op.err);
    TRUE(p.answer.steps.suspended);
    return p.seq;
}

WORKFLOW_CASE(a_pass_that_is_given_back_unbegun_leaves_no_doubt)
{
    int64_t seq = asleep(b, "x");
    advance(b, SEC_US);
    const enum ending hows[] = { END_RELEASE, END_LATER, END_CANCELLED };
    for (size_t i = 0; i < COUNT_OF(hows); i++) {
        struct pass p = pass_begin(b);
        give_back(&p, hows[i], 0);
        FALSE(journal_read(b, seq).doubt);
    }
    struct pass p = pass_begin(b);
    give_back(&p, END_RELEASE, now(b));
    TRUE(journal_read(b, seq).doubt);
    p = pass_begin(b);
    give_back(&p, END_RELEASE, 0);
    TRUE(journal_read(b, seq).doubt); /* since the pass before */
    p = pass_begin(b);
    OK(sleep_for(&p, 2, "nap", 1), &b->op.err);
    step_ok(&p, 3, "b", "1");
    give_back(&p, END_RELEASE, 0); /* it has stored a step, so it had begun */
    TRUE(journal_read(b, seq).doubt);
}

WORKFLOW_CASE(what_a_worker_outside_did_before_it_gave_a_run_back_is_not_known)
{
    static const struct bytes has[] = { NEED_STEPS };
    int64_t seq = asleep(b, "x");
    advance(b, SEC_US);
    struct claim q = want(b, 1);
    q.has = has;
    q.n_has = COUNT_OF(has);
    q.lease_us = 60 * SEC_US;
    q = claim_as(b, q);
    EQ_UINT(q.n, 1);
    OK(finish(b, q.token, "x", END_RELEASE), &b->err);
    TRUE(journal_read(b, seq).doubt);
}

/* A node that runs one call at once held two runs when it died. */
WORKFLOW_CASE(a_run_that_a_dead_node_had_not_begun_is_not_in_doubt)
{
    static const struct bytes has[] = { NEED_STEPS };
    int64_t first = asleep(b, "x"), other = asleep(b, "y");
    advance(b, SEC_US);
    struct claim q = want(b, 2);
    q.has = has;
    q.n_has = COUNT_OF(has);
    q.width = 1;
    q = claim_as(b, q);
    EQ_UINT(q.n, 2);
    EQ_INT(q.calls[0].seq, first);
    OK(node(b, OP_JOIN, "n1", "b2"), &b->op.err); /* its next boot takes them back */
    TRUE(journal_read(b, first).doubt);
    FALSE(journal_read(b, other).doubt);
}
