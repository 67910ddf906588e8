/*
 * workflow.c - steps that are stored once, waits, signals and children of workflows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "workflow_case.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "model/needs.h"
#include "sql_names.h"
#include "store/feature.h"

/* ---- Steps ----------------------------------------------------------------------------------- */

WORKFLOW_CASE(a_stored_step_is_answered_as_it_was_stored)
{
    struct pass p = pass_of_new(b, "x");
    step_ok(&p, 1, "charge", "7");
    step_ok(&p, 1, "charge", "8"); /* another pass, or a lost answer */
    EQ_TEXT(p.steps[0].result_out.bytes, "7");
    step_ok(&p, 2, "charge", "9");
    EQ_TEXT(p.steps[0].stored_name, "charge#2");
    step_ok(&p, 3, "mail", NULL);
    EQ_STR(journal_of(b, p.seq), "1 charge run completed 7\n"
                                 "2 charge#2 run completed 9\n"
                                 "3 mail run completed ");
    end_pass(&p, END_RESULT);
    STATE_IS(b, "x", PAWL_COMPLETED);
}

WORKFLOW_CASE(steps_of_one_name_that_are_stored_together_are_numbered)
{
    struct workflow_step v[3];
    struct pass p = pass_of_new(b, "x");
    for (int i = 0; i < 3; i++)
        v[i] = (struct workflow_step){
            .no = i + 1, .name = BYTES("a"), .kind = STEP_RUN, .says = SAYS_RESULT
        };
    OK(pass_steps(&p, v, 3), &b->op.err);
    EQ_TEXT(p.steps[1].stored_name, "a#2");
    for (int i = 0; i < 3; i++)
        v[i].no = i + 3;
    OK(pass_steps(&p, v, 3), &b->op.err); /* the first of them is stored */
    EQ_STR(journal_of(b, p.seq), "1 a run completed \n"
                                 "2 a#2 run completed \n"
                                 "3 a#3 run completed \n"
                                 "4 a#4 run completed \n"
                                 "5 a#5 run completed ");
    end_pass(&p, END_RESULT);
}

static struct workflow_journal journal_from(struct pass *p, int64_t no, int64_t have_rev)
{
    struct conform_fixture *b = p->b;
    struct workflow_journal j;
    OK(workflow_journal_read(b->s, &b->a, p->seq, no, STEPS_LEN_MAX, have_rev, &j, &b->err),
       &b->err);
    EQ_INT(j.seq, p->seq);
    return j;
}

/* What one statement reads has an edge: some hundred steps, some 64 KiB. */
WORKFLOW_CASE(a_journal_is_read_whatever_its_size)
{
    static char big[40002];
    struct pass p = pass_of_new(b, "x");
    memset(big, '7', sizeof big - 1);
    for (int64_t no = 1; no <= 105; no++) {
        step_ok(&p, no, "a", no == 105 ? "false" : "true");
        struct workflow_journal j = journal_from(&p, 1, 0);
        EQ_UINT(j.n, (size_t)no);
        EQ_INT(j.next_no, no + 1);
        EQ_INT(j.next, 0);
        EQ_INT(j.v[no - 1].no, no);
    }
    struct workflow_journal j = journal_from(&p, 104, 0);
    EQ_UINT(j.n, 2);
    EQ_TEXT(j.v[1].name, "a#105");
    EQ_TEXT(j.v[1].result.bytes, "false");
    EQ_UINT(journal_from(&p, 1, j.rev).n, 0); /* it is known */
    for (int64_t no = 106; no <= 107; no++) {
        step_ok(&p, no, "big", big);
        j = journal_from(&p, 100, 0);
        EQ_UINT(j.n, (size_t)no - 99);
        EQ_TEXT(j.v[no - 100].result.bytes, big);
    }
    end_pass(&p, END_RESULT);
}

WORKFLOW_CASE(a_pass_that_is_cut_off_goes_on_elsewhere)
{
    struct pass p = pass_of_new(b, "x");
    step_ok(&p, 1, "a", "1");
    FALSE(journal_read(b, p.seq).doubt);
    end_pass(&p, END_RELEASE);
    TRUE(journal_read(b, p.seq).doubt);
    struct pass q = pass_begin(b);
    EQ_INT(q.seq, p.seq);
    struct workflow_step s = { .no = 2, .name = BYTES("b"), .kind = STEP_RUN, .says = SAYS_RESULT };
    EQ_STATUS(pass_steps(&p, &s, 1), PAWL_LOST_LEASE, &b->op.err);
    step_ok(&q, 2, "b", "2");
    end_pass(&q, END_RESULT);
    STATE_IS(b, "x", PAWL_COMPLETED);
}

/* A claim of this node, whose lease ends unless it is extended. */
static struct pass pass_on(struct conform_fixture *b, const char *node_name)
{
    static const struct bytes has[] = { NEED_STEPS };
    struct claim q = want(b, 1);
    q.node = bytes_of(node_name);
    q.has = has;
    q.n_has = COUNT_OF(has);
    q.lease_us = 10 * SEC_US;
    q = claim_as(b, q);
    EQ_UINT(q.n, 1);
    return (struct pass){ .b = b, .token = q.token, .seq = q.calls[0].seq };
}

/* Each dies in its own step, and max_lost is two: losses count from the last stored step. */
WORKFLOW_CASE(five_nodes_are_lost_in_five_steps)
{
    struct call_spec s = plan("x");
    s.max_lost = 2;
    s.max_attempts = 1;
    accept_spec(b, s);
    for (int i = 1; i <= 6; i++) {
        struct pass p = pass_on(b, arena_printf(&b->a, "node%d", i));
        EQ_INT(get(b, "x").counts.lost, i > 1);
        if (i > 1)
            step_ok(&p, i - 1, "add", "1");
        struct call c = get(b, "x");
        EQ_INT(c.counts.lost, 0);
        EQ_INT(c.counts.attempts, 0);
        EQ_TEXT(c.node, arena_printf(&b->a, "node%d", i));
        if (i == 6) {
            end_pass(&p, END_RESULT);
            break;
        }
        advance(b, 11 * SEC_US);
        EQ_INT(sweep(b).reclaimed, 1);
        c = get(b, "x");
        EQ_INT(c.state, i > 1 ? PAWL_PROCESSING : PAWL_PENDING); /* the first step begins it */
        EQ_INT(c.counts.lost, 1);
        EQ_INT(c.counts.attempts, 0);
    }
    struct call c = get(b, "x");
    EQ_INT(c.state, PAWL_COMPLETED);
    EQ_INT(c.counts.lost, 0);
    EQ_UINT(attempts_of(b, "x").n, 5); /* people see them all */
}

WORKFLOW_CASE(code_that_contradicts_the_journal_stops_the_run)
{
    struct pass p = pass_of_new(b, "x");
    step_ok(&p, 1, "charge", "7");
    struct workflow_step s = {
        .no = 1, .name = BYTES("mail"), .kind = STEP_RUN, .says = SAYS_RESULT
    };
    OK(pass_steps(&p, &s, 1), &b->op.err);
    TRUE(p.answer.steps.diverged);
    struct call c = get(b, "x");
    EQ_INT(c.state, PAWL_DEAD_LETTER);
    EQ_TEXT(c.error, "step 1 is run \"charge\", and the code asks for run \"mail\"");
    EQ_STATUS(finish(b, p.token, "x", END_RESULT), PAWL_LOST_LEASE, &b->err);
    /* After the fix it goes on. */
    OK(by_id(b, OP_RETRY, "x"), &b->op.err);
    STATE_IS(b, "x", PAWL_PROCESSING);
    struct pass q = pass_begin(b);
    step_ok(&q, 1, "charge", "8");
    EQ_TEXT(q.steps[0].result_out.bytes, "7");
    end_pass(&q, END_RESULT);
    STATE_IS(b, "x", PAWL_COMPLETED);
}

WORKFLOW_CASE(wrong_steps_are_refused_and_store_nothing)
{
    char long_name[200];
    struct pass p = pass_of_new(b, "x");
    const struct workflow_step good = {
        .no = 1, .name = BYTES("a"), .kind = STEP_RUN, .says = SAYS_RESULT
    };
    memset(long_name, 'n', sizeof long_name);
    for (int i = 0; i < 6; i++) {
        struct workflow_step v[2] = { good, good };
        enum pawl_status want = PAWL_INVALID;
        v[1].no = 2;
        if (i == 0)
            v[1].no = 0;
        else if (i == 1)
            v[1].name = BYTES("a#2");
        else if (i == 2)
            v[1].name = (struct bytes){ long_name, sizeof long_name };
        else if (i == 3)
            v[1].name = BYTES_NONE;
        else if (i == 4)
            v[1].no = 5000;
        else {
            v[1].kind = STEP_UNDO;
            want = PAWL_STATE;
        }
        EQ_STATUS(pass_steps(&p, v, 2), want, &b->op.err);
        EQ_STR(journal_of(b, p.seq), "");
    }
    end_pass(&p, END_RESULT);
}

WORKFLOW_CASE(a_step_that_is_tried_again_waits_for_its_backoff)
{
    struct pass p = pass_of_new(b, "x");
    const struct workflow_step s = { .no = 1,
                                     .name = BYTES("call"),
                                     .kind = STEP_RUN,
                                     .says = SAYS_RETRY,
                                     .error = BYTES("503"),
                                     .attempts = 1,
                                     .retry_in_us = 10 * SEC_US };
    OK(pass_steps(&p, &s, 1), &b->op.err);
    TRUE(p.answer.steps.suspended);
    EQ_INT(p.answer.steps.run_at_us, now(b) + 10 * SEC_US);
    EQ_INT(get(b, "x").waiting_for, WAIT_RETRY);
    EQ_STR(claimable(b, want(b, 1)), "");
    advance(b, 11 * SEC_US);
    struct pass q = pass_begin(b);
    EQ_INT(journal_read(b, p.seq).v[0].attempts, 1);
    FALSE(journal_read(b, p.seq).doubt);
    step_ok(&q, 1, "call", "5");
    end_pass(&q, END_RESULT);
}

/* ---- Sleeps ---------------------------------------------------------------------------------- */

WORKFLOW_CASE(a_sleep_frees_the_slot_and_its_end_does_not_move)
{
    struct pass p = pass_of_new(b, "x");
    OK(sleep_for(&p, 1, "nap", 60), &b->op.err);
    TRUE(p.answer.steps.suspended);
    STATE_IS(b, "x", PAWL_PROCESSING);
    EQ_INT(get(b, "x").waiting_for, WAIT_TIMER);
    int64_t until_us = journal_read(b, p.seq).v[0].until_us;
    EQ_INT(until_us, now(b) + 60 * SEC_US);
    advance(b, 30 * SEC_US);
    struct op wake = { .kind = OP_WAKE, .wake = { &p.seq, 1 } };
    OK(one(b, &wake), &wake.err);
    struct pass q = pass_begin(b); /* too early: the same end */
    OK(sleep_for(&q, 1, "nap", 60), &b->op.err);
    TRUE(q.answer.steps.suspended);
    EQ_INT(q.answer.steps.run_at_us, until_us);
    advance(b, 30 * SEC_US);
    struct pass r = pass_begin(b);
    OK(sleep_for(&r, 1, "nap", 60), &b->op.err);
    FALSE(r.answer.steps.suspended);
    EQ_INT(r.steps[0].status, STEP_COMPLETED);
    end_pass(&r, END_RESULT);
    STATE_IS(b, "x", PAWL_COMPLETED);
}

static size_t figures_of(struct conform_fixture *b)
{
    struct workflow_figures f;
    OK(workflow_figures(b->s, &b->a, &f, &b->err), &b->err);
    EQ_INT(f.open, 1);
    for (size_t i = 0; i < f.n; i++)
        EQ_INT(f.v[i].what, WAIT_TIMER);
    return f.n;
}

/* A pass of a C handler knows from its claim that the sleep is over. */
WORKFLOW_CASE(that_a_sleep_is_over_is_stored_with_the_next_step)
{
    struct pass p = pass_of_new(b, "x");
    struct workflow_step v[] = {
        { .no = 1, .name = BYTES("nap"), .kind = STEP_SLEEP, .says = SAYS_PASSED },
        { .no = 2, .name = BYTES("a"), .kind = STEP_RUN, .says = SAYS_RESULT, .attempts = 1 },
    };
    EQ_STATUS(pass_steps(&p, v, 2), PAWL_INVALID, &b->op.err); /* it has not begun to sleep */
    EQ_STR(journal_of(b, p.seq), "");
    OK(sleep_for(&p, 1, "nap", 60), &b->op.err);
    EQ_UINT(figures_of(b), 1);
    advance(b, 60 * SEC_US);
    struct pass q = pass_begin(b);
    EQ_UINT(figures_of(b), 0); /* it goes on */
    for (int i = 0; i < 2; i++) {
        OK(pass_steps(&q, v, 2), &b->op.err); /* the second time its answer was lost */
        FALSE(q.answer.steps.suspended);
        EQ_STR(journal_of(b, q.seq), "1 nap sleep completed \n2 a run completed ");
    }
    v[0].no = v[1].no = 2;
    EQ_STATUS(pass_steps(&q, v, 1), PAWL_INVALID, &b->op.err); /* it is no sleep */
    end_pass(&q, END_RESULT);
    STATE_IS(b, "x", PAWL_COMPLETED);
}

/* A pass that does not know that the run has to undo stores what happened after the sleep. */
WORKFLOW_CASE(a_sleep_that_is_over_does_not_hide_what_was_done_before_it)
{
    struct pass p = pass_of_new(b, "x");
    step_undoable(&p, 1, "reserve", "1");
    OK(sleep_for(&p, 2, "nap", 60), &b->op.err);
    advance(b, 60 * SEC_US);
    struct pass q = pass_begin(b);
    OK(change(
           b,
           (struct workflow_op){ .what = WORKFLOW_CANCEL, .id = BYTES("x"), .compensate = true }),
       &b->op.err);
    const struct workflow_step v[] = {
        { .no = 2, .name = BYTES("nap"), .kind = STEP_SLEEP, .says = SAYS_PASSED },
        { .no = 3, .name = BYTES("mail"), .kind = STEP_RUN, .says = SAYS_RESULT, .attempts = 1 },
    };
    OK(pass_steps(&q, v, 2), &b->op.err);
    TRUE(q.answer.steps.suspended);
    EQ_STR(journal_of(b, q.seq), "1 reserve run completed 1\n"
                                 "2 nap sleep waiting \n"
                                 "3 mail run completed ");
    struct pass r = pass_begin(b);
    TRUE(r.undoing);
    undo_ok(&r, 4, "reserve");
    end_pass(&r, END_RESULT);
    STATE_IS(b, "x", PAWL_CANCELLED);
}

/* ---- Signals --------------------------------------------------------------------------------- */

WORKFLOW_CASE(signals_are_read_in_the_order_in_which_they_came)
{
    struct pass p = pass_of_new(b, "x");
    OK(signal_to(b, "x", "paid", "1", NULL), &b->op.err); /* before the first step */
    OK(signal_to(b, "x", "other", "0", NULL), &b->op.err);
    OK(signal_to(b, "x", "paid", "2", NULL), &b->op.err);
    FALSE(get(b, "x").waiting_for);
    OK(wait_signal(&p, 1, "paid", 0), &b->op.err);
    EQ_TEXT(p.steps[0].result_out.bytes, "1");
    OK(wait_signal(&p, 1, "paid", 0), &b->op.err); /* the answer was lost */
    EQ_TEXT(p.steps[0].result_out.bytes, "1");
    OK(wait_signal(&p, 2, "paid", 0), &b->op.err);
    EQ_TEXT(p.steps[0].result_out.bytes, "2");
    OK(wait_signal(&p, 3, "paid", 0), &b->op.err);
    TRUE(p.answer.steps.suspended);
    EQ_INT(get(b, "x").waiting_for, WAIT_SIGNAL);
    EQ_STR(claimable(b, want(b, 1)), "");
    OK(signal_to(b, "x", "other", "9", NULL), &b->op.err); /* not for this one */
    TRUE(get(b, "x").run_at_us != now(b) || get(b, "x").waiting_for == WAIT_SIGNAL);
    OK(signal_to(b, "x", "paid", "3", NULL), &b->op.err);
    TRUE(b->op.feature.brings);
    struct pass q = pass_begin(b);
    OK(wait_signal(&q, 3, "paid", 0), &b->op.err);
    EQ_TEXT(q.steps[0].result_out.bytes, "3");
    end_pass(&q, END_RESULT);
    EQ_STATUS(signal_to(b, "x", "paid", "4", NULL), PAWL_STATE, &b->op.err);
    EQ_STATUS(signal_to(b, "nobody", "paid", "4", NULL), PAWL_NOT_FOUND, &b->op.err);
}

WORKFLOW_CASE(a_signal_of_one_key_is_one)
{
    struct pass p = pass_of_new(b, "x");
    OK(signal_to(b, "x", "paid", "1", "k"), &b->op.err);
    OK(signal_to(b, "x", "paid", "1", "k"), &b->op.err);
    EQ_STATUS(signal_to(b, "x", "paid", "2", "k"), PAWL_CONFLICT, &b->op.err);
    EQ_STATUS(signal_to(b, "x", "sent", "1", "k"), PAWL_CONFLICT, &b->op.err);
    OK(wait_signal(&p, 1, "paid", 0), &b->op.err);
    OK(signal_to(b, "x", "paid", "1", "k"), &b->op.err); /* consumed: still known */
    OK(wait_signal(&p, 2, "paid", 0), &b->op.err);
    TRUE(p.answer.steps.suspended);
}

/* Send signals `from` to `to`, each with its number as its key, all in one commit. */
static void signals(struct conform_fixture *b, const char *id, int from, int to)
{
    size_t n = (size_t)(to - from + 1);
    struct workflow_op *q = arena_zalloc(&b->a, n, sizeof *q);
    struct op *op = arena_zalloc(&b->a, n, sizeof *op);
    struct op **v = arena_zalloc(&b->a, n, sizeof(struct op *));
    TRUE(q && op && v);
    for (size_t i = 0; i < n; i++) {
        q[i] = (struct workflow_op){ .what = WORKFLOW_SIGNAL,
                                     .id = bytes_of(id),
                                     .name = BYTES("s"),
                                     .value = { PAWL_JSON, BYTES("1") } };
        q[i].key = bytes_of(arena_printf(&b->a, "k%d", from + (int)i));
        op[i] =
            (struct op){ .kind = OP_FEATURE, .feature = { .of = &feature_workflow, .ctx = &q[i] } };
        v[i] = &op[i];
    }
    commit(b, v, n);
    for (size_t i = 0; i < n; i++)
        OK(op[i].status, &op[i].err);
}

/* Is the key still known? If not, this signal is a new one. */
static bool key_known(struct conform_fixture *b, const char *id, const char *key)
{
    OK(signal_to(b, id, "s", "1", key), &b->op.err);
    return ((const struct workflow_op *)b->op.feature.ctx)->duplicate;
}

WORKFLOW_CASE(gc_forgets_keys_of_consumed_signals_but_not_of_the_last)
{
    struct pass p = pass_of_new(b, "x");
    signals(b, "x", 1, 2);
    for (int i = 1; i <= 2; i++)
        OK(wait_signal(&p, i, "s", 0), &b->op.err);
    signals(b, "x", 3, SIGNAL_KEYS_MIN + 6);
    for (int i = 3; i <= 5; i++) /* of the others none is consumed */
        OK(wait_signal(&p, i, "s", 0), &b->op.err);
    advance(b, SIGNAL_KEYS_US - 1);
    OK(wait_signal(&p, 6, "s", 0), &b->op.err); /* a day later */
    FALSE(gc_max(b, 2).more);
    TRUE(key_known(b, "x", "k1"));
    advance(b, 1);
    TRUE(gc_max(b, 2).more);
    TRUE(gc_max(b, 2).more);
    FALSE(gc_max(b, 2).more);
    TRUE(key_known(b, "x", "k6"));
    TRUE(key_known(b, "x", "k7"));
    FALSE(key_known(b, "x", "k5"));
    FALSE(key_known(b, "x", "k1"));
    advance(b, SIGNAL_KEYS_US);
    FALSE(gc(b).more);
    FALSE(key_known(b, "x", "k6"));
}

WORKFLOW_CASE(a_signal_that_is_unread_again_is_not_forgotten)
{
    struct pass p = pass_of_new(b, "x");
    signals(b, "x", 1, 1);
    OK(wait_signal(&p, 1, "s", 0), &b->op.err);
    signals(b, "x", 2, SIGNAL_KEYS_MIN + 1);
    OK(change(b, (struct workflow_op){ .what = WORKFLOW_CANCEL, .id = BYTES("x") }), &b->op.err);
    STATE_IS(b, "x", PAWL_CANCELLED);
    OK(change(b,
              (struct workflow_op){ .what = WORKFLOW_RETRY, .id = BYTES("x"), .from = BYTES("s") }),
       &b->op.err);
    advance(b, SIGNAL_KEYS_US);
    FALSE(gc(b).more);
    struct pass q = pass_begin(b);
    OK(wait_signal(&q, 1, "s", 0), &b->op.err);
    TRUE(key_known(b, "x", "k1"));
    advance(b, SIGNAL_KEYS_US);
    FALSE(gc(b).more);
    FALSE(key_known(b, "x", "k1"));
}

WORKFLOW_CASE(a_signal_at_the_instant_of_the_timeout_has_come)
{
    struct pass p = pass_of_new(b, "x");
    OK(wait_signal(&p, 1, "paid", 10), &b->op.err);
    TRUE(p.answer.steps.suspended);
    advance(b, 10 * SEC_US);
    OK(signal_to(b, "x", "paid", "1", NULL), &b->op.err);
    struct pass q = pass_begin(b);
    OK(wait_signal(&q, 1, "paid", 10), &b->op.err);
    EQ_TEXT(q.steps[0].result_out.bytes, "1");
    OK(wait_signal(&q, 2, "paid", 10), &b->op.err);
    advance(b, 10 * SEC_US);
    struct pass r = pass_begin(b);
    OK(wait_signal(&r, 2, "paid", 10), &b->op.err);
    EQ_INT(r.steps[0].status, STEP_TIMEOUT);
    end_pass(&r, END_RESULT);
}

WORKFLOW_CASE(a_select_is_settled_by_the_first_to_come)
{
    static const struct bytes names[] = { BYTES("yes"), BYTES("no") };
    struct pass p = pass_of_new(b, "x");
    const struct workflow_step s = {
        .no = 1,
        .name = BYTES("answer"),
        .kind = STEP_SELECT,
        .says = SAYS_WAIT,
        .wait = { .signals = names, .n_signals = 2, .has_until = true, .in_us = 5 * SEC_US }
    };
    struct workflow_step later = s;
    OK(pass_steps(&p, &s, 1), &b->op.err);
    TRUE(p.answer.steps.suspended);
    OK(signal_to(b, "x", "no", "{\"why\":1}", NULL), &b->op.err);
    struct pass q = pass_begin(b);
    OK(pass_steps(&q, &s, 1), &b->op.err);
    EQ_TEXT(q.steps[0].result_out.bytes, "{\"signal\":\"no\",\"value\":{\"why\":1}}");
    later.no = 2;
    OK(pass_steps(&q, &later, 1), &b->op.err);
    advance(b, 5 * SEC_US);
    struct pass r = pass_begin(b);
    OK(pass_steps(&r, &later, 1), &b->op.err);
    EQ_INT(r.steps[0].status, STEP_COMPLETED);
    HAS_STR(arena_printf(&b->a, "%.*s", BYTES_ARG(r.steps[0].result_out.bytes)), "{\"until\":\"");
}

/* ---- Published values ------------------------------------------------------------------------ */

/* Publish n values of this length, under the names `from`, `from` + 1, ..., with step `no`. */
static enum pawl_status publish(struct pass *p, int64_t no, int from, size_t n, size_t len)
{
    struct conform_fixture *b = p->b;
    struct workflow_value *v = arena_zalloc(&b->a, n, sizeof *v);
    char *text = arena_alloc(&b->a, len + 1);
    TRUE(v && text);
    memset(text, '7', len);
    for (size_t i = 0; i < n; i++)
        v[i] = (struct workflow_value){ bytes_of(arena_printf(&b->a, "v%d", from + (int)i)),
                                        { PAWL_JSON, { text, len } } };
    p->steps[0] = (struct workflow_step){
        .no = no, .name = BYTES("a"), .kind = STEP_RUN, .says = SAYS_RESULT
    };
    p->answer = (struct workflow_op){
        .what = WORKFLOW_STEPS, .steps = { .v = p->steps, .n = 1, .published = v, .n_published = n }
    };
    struct op op = {
        .kind = OP_FEATURE,
        .feature = { .of = &feature_workflow, .ctx = &p->answer, .token = p->token, .seq = p->seq }
    };
    return one(b, &op);
}

/* How many values the run shows. */
static size_t published(struct conform_fixture *b, const char *id)
{
    struct workflow_detail d;
    OK(workflow_get(b->s, &b->a, bytes_of(id), BYTES_NONE, 1 << 20, true, &d, &b->err), &b->err);
    return d.n_published;
}

WORKFLOW_CASE(a_run_shows_a_thousand_values)
{
    struct pass p = pass_of_new(b, "x");
    OK(publish(&p, 1, 1, 1, 1), &b->op.err);
    OK(publish(&p, 2, 2, PUBLISHED_MAX - 1, 1), &b->op.err);
    EQ_UINT(published(b, "x"), PUBLISHED_MAX);
    EQ_STATUS(publish(&p, 3, PUBLISHED_MAX, 2, 1), PAWL_FULL, &b->op.err);
    EQ_STR(b->op.err.text, "published value \"v1001\": the run shows 1000 values already");
    EQ_UINT(journal_read(b, p.seq).n, 2); /* nothing of it is stored */
    EQ_UINT(published(b, "x"), PUBLISHED_MAX);
    OK(publish(&p, 3, 500, 501, 2), &b->op.err); /* in place of others */
    EQ_UINT(published(b, "x"), PUBLISHED_MAX);
    EQ_STATUS(publish(&p, 4, 1, 1, RESULT_LEN_MAX + 1), PAWL_TOO_LARGE, &b->op.err);
    EQ_STR(b->op.err.text, "published value \"v1\": it is longer than 1 MiB");
    OK(publish(&p, 4, 1, 1, RESULT_LEN_MAX), &b->op.err);
    end_pass(&p, END_RESULT);
}

WORKFLOW_CASE(the_values_of_a_run_have_a_length_in_all)
{
    struct pass p = pass_of_new(b, "x");
    int all = PUBLISHED_LEN_MAX / RESULT_LEN_MAX, at = 0;
    for (; at < all; at += 8)
        OK(publish(&p, at / 8 + 1, at, 8, RESULT_LEN_MAX), &b->op.err);
    EQ_STATUS(publish(&p, at, all, 1, 1), PAWL_FULL, &b->op.err);
    EQ_STR(b->op.err.text, "published value \"v64\": the values of the run would exceed 64 MiB");
    OK(publish(&p, at / 8 + 1, 0, 1, RESULT_LEN_MAX), &b->op.err);
    OK(publish(&p, at / 8 + 2, 0, 1, RESULT_LEN_MAX - 1), &b->op.err);
    OK(publish(&p, at / 8 + 3, all, 1, 1), &b->op.err);
    EQ_STATUS(publish(&p, at, 0, 1, RESULT_LEN_MAX), PAWL_FULL, &b->op.err);
}

/* ---- Children -------------------------------------------------------------------------------- */

WORKFLOW_CASE(a_run_joins_its_children)
{
    struct pass p = pass_of_new(b, "x");
    const char *one = child_of(&p, 1, "ship", NULL), *two = child_of(&p, 2, "ship", NULL);
    EQ_STR(one, "x.ship#1");
    EQ_STR(two, "x.ship#2");
    EQ_TEXT(get(b, one).spec.parent, "x");
    const char *both = arena_printf(&b->a, "%s %s", one, two);
    OK(join(&p, 3, "all", both, false, 0), &b->op.err);
    TRUE(p.answer.steps.suspended);
    EQ_INT(get(b, "x").waiting_for, WAIT_CHILDREN);
    child_ends(b, one);
    EQ_INT(get(b, "x").waiting_for, WAIT_CHILDREN);
    child_ends(b, two);
    struct pass q = pass_begin(b);
    EQ_INT(q.seq, p.seq);
    OK(join(&q, 3, "all", both, false, 0), &b->op.err);
    EQ_TEXT(q.steps[0].result_out.bytes, "[\"x.ship#1\",\"x.ship#2\"]");
    end_pass(&q, END_RESULT);
}

WORKFLOW_CASE(one_child_is_enough_for_any)
{
    struct pass p = pass_of_new(b, "x");
    const char *one = child_of(&p, 1, "a", NULL), *two = child_of(&p, 2, "b", NULL);
    const char *both = arena_printf(&b->a, "%s %s", one, two);
    OK(join(&p, 3, "any", both, true, 60), &b->op.err);
    child_ends(b, two);
    struct pass q = pass_begin(b);
    EQ_INT(q.seq, p.seq);
    OK(join(&q, 3, "any", both, true, 60), &b->op.err);
    EQ_TEXT(q.steps[0].result_out.bytes, "[\"x.b#1\"]");
    OK(join(&q, 4, "rest", one, false, 60), &b->op.err);
    TRUE(q.answer.steps.suspended);
    child_ends(b, one);
    struct pass r = pass_begin(b);
    OK(join(&r, 4, "rest", one, false, 60), &b->op.err);
    EQ_TEXT(r.steps[0].result_out.bytes, "[\"x.a#1\"]");
    OK(join(&r, 5, "none", "", false, 60), &b->op.err);
    EQ_TEXT(r.steps[0].result_out.bytes, "[]");
    end_pass(&r, END_RESULT);
}

WORKFLOW_CASE(a_child_with_the_key_of_its_run_is_refused)
{
    struct call_spec call = plan("unused"), mine = keyed("x", "k");
    accept_spec(b, mine);
    struct pass p = pass_begin(b);
    call.key = BYTES("k");
    const struct workflow_step s = {
        .no = 1, .name = BYTES("c"), .kind = STEP_CHILD, .says = SAYS_CHILD, .call = &call
    };
    EQ_STATUS(pass_steps(&p, &s, 1), PAWL_INVALID, &b->op.err);
    EQ_STR(journal_of(b, p.seq), "");
}

/* ---- Undoing --------------------------------------------------------------------------------- */

WORKFLOW_CASE(a_refusal_after_a_step_undoes_it)
{
    struct pass p = pass_of_new(b, "x");
    step_undoable(&p, 1, "reserve", "1");
    step_undoable(&p, 2, "charge", "2");
    end_pass(&p, END_REFUSE);
    STATE_IS(b, "x", PAWL_PROCESSING);
    struct workflow_journal j = journal_read(b, p.seq);
    TRUE(j.undoing);
    EQ_TEXT(j.error, "broke");
    struct pass q = pass_begin(b);
    TRUE(q.undoing);
    struct workflow_step s = {
        .no = 3, .name = BYTES("mail"), .kind = STEP_RUN, .says = SAYS_RESULT
    };
    EQ_STATUS(pass_steps(&q, &s, 1), PAWL_STATE, &b->op.err);
    undo_ok(&q, 3, "charge");
    undo_ok(&q, 4, "reserve");
    undo_ok(&q, 4, "reserve");
    EQ_STR(journal_of(b, p.seq), "1 reserve run completed 1 undone\n"
                                 "2 charge run completed 2 undone\n"
                                 "3 undo:charge undo completed \n"
                                 "4 undo:reserve undo completed ");
    end_pass(&q, END_RESULT);
    struct call c = get(b, "x");
    EQ_INT(c.state, PAWL_FAILED);
    EQ_TEXT(c.error, "broke");
}

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

WORKFLOW_CASE(a_cancel_of_a_waiting_run_undoes_it)
{
    struct pass p = pass_of_new(b, "x");
    step_undoable(&p, 1, "reserve", "1");
    OK(wait_signal(&p, 2, "paid", 0), &b->op.err);
    TRUE(p.answer.steps.suspended);
    OK(by_id(b, OP_CANCEL, "x"), &b->op.err);
    EQ_INT(b->op.by_id.state, PAWL_PROCESSING);
    struct pass q = pass_begin(b);
    TRUE(q.undoing);
    undo_ok(&q, 3, "reserve");
    end_pass(&q, END_RESULT);
    STATE_IS(b, "x", PAWL_CANCELLED);
}

WORKFLOW_CASE(a_pass_that_does_not_know_may_store_what_happened_and_is_let_go)
{
    struct pass p = pass_of_new(b, "x");
    step_undoable(&p, 1, "reserve", "1");
    advance(b, SEC_US);
    OK(by_id(b, OP_CANCEL, "x"), &b->op.err);
    const struct workflow_step s = {
        .no = 2, .name = BYTES("charge"), .kind = STEP_RUN, .says = SAYS_RESULT, .undo = true
    };
    OK(pass_steps(&p, &s, 1), &b->op.err);
    TRUE(p.answer.steps.suspended);
    EQ_INT(p.answer.steps.run_at_us, now(b));
    struct pass q = pass_begin(b);
    TRUE(q.undoing);
    undo_ok(&q, 3, "charge");
    undo_ok(&q, 4, "reserve");
    end_pass(&q, END_RESULT);
    STATE_IS(b, "x", PAWL_CANCELLED);
}

static const struct workflow_step failed_try = { .no = 2,
                                                 .name = BYTES("charge"),
                                                 .kind = STEP_RUN,
                                                 .says = SAYS_RETRY,
                                                 .error = BYTES("503"),
                                                 .attempts = 1,
                                                 .undo = true,
                                                 .retry_in_us = 10 * SEC_US };

/* The try may have charged before it failed. */
WORKFLOW_CASE(a_pass_that_does_not_know_may_store_a_try_that_failed)
{
    struct pass p = pass_of_new(b, "x");
    step_undoable(&p, 1, "reserve", "1");
    advance(b, SEC_US);
    OK(by_id(b, OP_CANCEL, "x"), &b->op.err);
    OK(pass_steps(&p, &failed_try, 1), &b->op.err);
    TRUE(p.answer.steps.suspended);
    EQ_INT(p.answer.steps.run_at_us, now(b));
    EQ_STR(journal_of(b, p.seq), "1 reserve run completed 1\n"
                                 "2 charge run retrying ");
    struct pass q = pass_begin(b);
    TRUE(q.undoing);
    undo_ok(&q, 3, "charge");
    undo_ok(&q, 4, "reserve");
    end_pass(&q, END_RESULT);
    STATE_IS(b, "x", PAWL_CANCELLED);
}

WORKFLOW_CASE(a_step_is_in_doubt_until_its_undo_has_ended)
{
    struct pass p = pass_of_new(b, "x");
    struct workflow_step undo = failed_try;
    step_undoable(&p, 1, "reserve", "1");
    end_pass(&p, END_RELEASE); /* in the middle of "charge" */
    OK(by_id(b, OP_CANCEL, "x"), &b->op.err);
    struct pass q = pass_begin(b);
    TRUE(q.undoing && journal_read(b, p.seq).doubt);
    undo.no = 3;
    undo.kind = STEP_UNDO;
    OK(pass_steps(&q, &undo, 1), &b->op.err);
    TRUE(q.answer.steps.suspended);
    advance(b, 11 * SEC_US);
    struct pass r = pass_begin(b);
    TRUE(r.undoing && journal_read(b, p.seq).doubt);
    undo_ok(&r, 3, "charge");
    undo_ok(&r, 4, "reserve");
    end_pass(&r, END_RESULT);
    STATE_IS(b, "x", PAWL_CANCELLED);
}

WORKFLOW_CASE(a_retry_after_an_undo_forgets_what_was_undone)
{
    struct pass p = pass_of_new(b, "x");
    step_ok(&p, 1, "look", "0");
    step_undoable(&p, 2, "reserve", "1");
    end_pass(&p, END_REFUSE);
    struct pass q = pass_begin(b);
    undo_ok(&q, 3, "reserve");
    end_pass(&q, END_RESULT);
    STATE_IS(b, "x", PAWL_FAILED);
    EQ_STATUS(change(b, (struct workflow_op){ .what = WORKFLOW_RETRY,
                                              .id = BYTES("x"),
                                              .from = BYTES("undo:reserve") }),
              PAWL_STATE, &b->op.err);
    OK(by_id(b, OP_RETRY, "x"), &b->op.err);
    EQ_STR(journal_of(b, p.seq), "1 look run completed 0");
    EQ_INT(journal_read(b, p.seq).generation, 2);
    struct pass r = pass_begin(b);
    FALSE(r.undoing);
    step_undoable(&r, 2, "reserve", "3");
    EQ_STR(child_of(&r, 3, "c", NULL), "x~2.c#1");
    end_pass(&r, END_RESULT);
    STATE_IS(b, "x", PAWL_COMPLETED);
}

/* ---- Restart and fork ------------------------------------------------------------------------ */

WORKFLOW_CASE(a_restart_keeps_unread_signals)
{
    struct pass p = pass_of_new(b, "x");
    step_ok(&p, 1, "a", "1");
    OK(signal_to(b, "x", "go", "5", NULL), &b->op.err);
    restart(&p, "{\"n\":2}");
    STATE_IS(b, "x", PAWL_PROCESSING);
    struct pass r = pass_begin(b);
    struct workflow_journal j = journal_read(b, p.seq);
    EQ_UINT(j.n, 0);
    EQ_INT(j.generation, 2);
    TRUE(j.has_input);
    EQ_TEXT(j.input.bytes, "{\"n\":2}");
    FALSE(j.doubt);
    OK(wait_signal(&r, 1, "go", 0), &b->op.err);
    EQ_TEXT(r.steps[0].result_out.bytes, "5");
    end_pass(&r, END_RESULT);
}

WORKFLOW_CASE(a_fork_has_the_steps_before_and_never_undoes_them)
{
    struct pass p = pass_of_new(b, "x");
    step_undoable(&p, 1, "reserve", "1");
    const char *child = child_of(&p, 2, "ship", NULL);
    step_undoable(&p, 3, "charge", "3");
    end_pass(&p, END_RESULT);
    OK(change(b, (struct workflow_op){ .what = WORKFLOW_FORK,
                                       .id = BYTES("x"),
                                       .from = BYTES("charge"),
                                       .fork_id = BYTES("y") }),
       &b->op.err);
    child_ends(b, child);
    struct pass q = pass_begin(b);
    EQ_TEXT(q.id, "y");
    EQ_STR(journal_of(b, q.seq), "1 reserve run completed 1\n"
                                 "2 ship child completed \"x.ship#1\"");
    FALSE(journal_read(b, q.seq).v[0].undo);
    OK(join(&q, 3, "wait", child, false, 0), &b->op.err);
    EQ_TEXT(q.steps[0].result_out.bytes, "[\"x.ship#1\"]");
    end_pass(&q, END_RESULT);
    STATE_IS(b, "y", PAWL_COMPLETED);
}

static enum pawl_status bytes_look(struct ledger *d, void *ctx, struct pawl_err *err)
{
    int64_t *n = ctx;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_ints(d, &p, n, 1);
    enum pawl_status st = feature_query(d, SQL_WORKFLOW_READ, &p, &rows, err);
    *n = st == PAWL_OK && rows->n == 1 ? led_get_int(rows, 0, 6) : -1;
    return st;
}

/* How long the results of a run are, as its row says. */
static int64_t bytes_of_run(struct conform_fixture *b, int64_t seq)
{
    int64_t n = seq;
    OK(store_look(b->s, LOOK_ALONE, bytes_look, &n, &b->err), &b->err);
    return n;
}

/* The limit of all results of a run counts what it has, not what was forgotten. */
WORKFLOW_CASE(results_are_counted_in_forks_and_after_a_retry)
{
    struct pass p = pass_of_new(b, "x");
    step_ok(&p, 1, "a", "\"12345678\"");
    step_ok(&p, 2, "b", "\"1234\"");
    step_ok(&p, 3, "c", "\"12\"");
    EQ_INT(bytes_of_run(b, p.seq), 10 + 6 + 4);
    end_pass(&p, END_REFUSE);
    struct pass undoes = pass_begin(b);
    end_pass(&undoes, END_RESULT);
    STATE_IS(b, "x", PAWL_FAILED);
    OK(change(b, (struct workflow_op){ .what = WORKFLOW_FORK,
                                       .id = BYTES("x"),
                                       .from = BYTES("c"),
                                       .fork_id = BYTES("y") }),
       &b->op.err);
    struct pass fork = pass_begin(b);
    EQ_TEXT(fork.id, "y");
    EQ_INT(bytes_of_run(b, fork.seq), 10 + 6);
    OK(change(b,
              (struct workflow_op){ .what = WORKFLOW_RETRY, .id = BYTES("x"), .from = BYTES("b") }),
       &b->op.err);
    EQ_INT(bytes_of_run(b, p.seq), 10);
}

/* ---- Answers that are lost ------------------------------------------------------------------- */

/* Every operation is stored, and its group is decided again because the answer is lost. */
TEST(what_a_lost_answer_stored_is_stored_once)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = workflow_fixture(param, "fault+");
    for (int i = 0; i < 6; i++) {
        const char *id = arena_printf(&b->a, "x%d", i);
        struct pass p = pass_of_new(b, id);
        step_undoable(&p, 1, "charge", "7");
        OK(wait_signal(&p, 2, "paid", 0), &b->op.err);
        TRUE(p.answer.steps.suspended);
        OK(signal_to(b, id, "paid", "1", "k"), &b->op.err);
        OK(signal_to(b, id, "paid", "1", "k"), &b->op.err);
        struct pass q = pass_begin(b);
        OK(wait_signal(&q, 2, "paid", 0), &b->op.err);
        EQ_TEXT(q.steps[0].result_out.bytes, "1");
        EQ_STR(child_of(&q, 3, "c", NULL), arena_printf(&b->a, "%s.c#1", id));
        OK(wait_signal(&q, 4, "paid", 1), &b->op.err); /* only one signal came */
        TRUE(q.answer.steps.suspended);
        OK(by_id(b, OP_CANCEL, id), &b->op.err);
        struct claim child = want(b, 10); /* its child was asked to cancel, and has ended */
        EQ_UINT(claim_as(b, child).n, 0);
        struct pass r = pass_begin(b);
        TRUE(r.undoing);
        undo_ok(&r, 5, "charge");
        EQ_STR(journal_of(b, p.seq), arena_printf(&b->a,
                                                  "1 charge run completed 7 undone\n"
                                                  "2 paid signal completed 1\n"
                                                  "3 c child completed \"%s.c#1\"\n"
                                                  "4 paid#2 signal waiting \n"
                                                  "5 undo:charge undo completed ",
                                                  id));
        end_pass(&r, END_RESULT);
        EQ_INT(get(b, id).state, PAWL_CANCELLED);
    }
}
