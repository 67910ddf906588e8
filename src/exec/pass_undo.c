/*
 * pass_undo.c - undoing what a run did (pass.h).
 *
 * A pass that undoes runs the handler again, which names the undo functions at the steps that it
 * passes over. Where it would take a step that is not stored, or when it returns, the undos begin:
 * first those of steps that may have happened, then those of completed steps, the last one first.
 * Each is a step of its own.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/pass_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- What is to be undone -------------------------------------------------------------------- */

static bool room(struct pawl_call *t, struct pass *p)
{
    if (p->n_undos < p->cap_undos)
        return true;
    size_t cap = p->cap_undos ? p->cap_undos * 2 : 16;
    struct pass_undo *v = arena_alloc(&t->arena, cap * sizeof *v);
    if (!v)
        return false;
    if (p->n_undos)
        memcpy(v, p->undos, p->n_undos * sizeof *v);
    p->undos = v;
    p->cap_undos = cap;
    return true;
}

/* May a step without a stored result have happened? It has begun, or a try of it has failed; or the
 * last pass was cut off, and this is the first step that it did not store. */
static bool in_doubt(const struct pass *p, const struct workflow_row *row)
{
    return row ? row->status == STEP_FAILED || !step_ended(row->status) : p->journal->doubt;
}

void pass_undo_note(struct pawl_call *t, const struct pass_step *s, struct bytes stored,
                    const struct workflow_row *row)
{
    struct pass *p = atomic_load(&t->pass);
    bool completed = row && row->status == STEP_COMPLETED;
    /* A stored step without an undo is final: taken over by a fork, or older than its undo. */
    if (!s->undo || (row && (row->undone || !row->undo)) || (!completed && !in_doubt(p, row)))
        return;
    struct pass_step *kept = arena_alloc(&t->arena, sizeof *kept);
    if (!kept || !room(t, p)) {
        pass_over(t, PASS_BACK, BYTES_NONE);
        return;
    }
    *kept = *s;
    p->undos[p->n_undos++] =
        (struct pass_undo){ .no = p->no,
                            .completed_us = row ? row->completed_us : 0,
                            .name = stored,
                            .step = kept,
                            .result = completed ? row->result : (struct payload){ 0 },
                            .unknown = !completed };
}

static int compare(const void *a, const void *b)
{
    const struct pass_undo *x = a, *y = b;
    if (x->unknown != y->unknown)
        return x->unknown ? -1 : 1;
    if (x->completed_us != y->completed_us && !x->unknown)
        return x->completed_us < y->completed_us ? 1 : -1;
    return (x->no < y->no) - (x->no > y->no);
}

/* ---- Undoing --------------------------------------------------------------------------------- */

/* The stored row of the undo of this step, and the next free number. */
static const struct workflow_row *undo_row(struct pawl_call *t, const struct pass_undo *u,
                                           int64_t *out_no)
{
    const struct journal *j = atomic_load(&t->pass)->journal;
    const struct workflow_row *found = NULL;
    *out_no = j->n ? j->v[j->n - 1].no + 1 : 1;
    for (size_t i = 0; i < j->n && !found; i++) {
        const struct workflow_row *row = &j->v[i];
        if (row->kind == STEP_UNDO && row->name.len == u->name.len + 5 &&
            !memcmp(row->name.data + 5, u->name.data, u->name.len))
            found = row;
    }
    return found;
}

/* Store what came of a try. True: the undo has ended well. */
static bool say(struct pawl_call *t, struct workflow_step *step, const struct pass_step *s,
                const struct pass_try *try)
{
    struct op op;
    bool again =
        try->how == END_LATER || (try->how == END_ERROR && step->attempts < s->max_attempts);
    step->says = try->how == END_RESULT ? SAYS_RESULT : again ? SAYS_RETRY : SAYS_REFUSED;
    step->error = try->error;
    step->attempts -= try->how == END_LATER;
    if (step->says == SAYS_RETRY)
        step->retry_in_us = try->retry_in_us >= 0
                                ? try->retry_in_us
                                : backoff_us(&s->backoff, step->attempts, &world_real);
    if (!pass_say_sending(
            t,
            &(struct pass_saying){
                .v = step, .n = 1, .sql = try->sql, .send = try->send, .n_send = try->n_send },
            &op))
        return false;
    if (op.status != PAWL_OK)
        pass_over(t, PASS_ERROR, pass_refusal(t, &op));
    return op.status == PAWL_OK;
}

/* Undo one step. False: the pass is over. */
static bool undo_one(struct pawl_call *t, const struct pass_undo *u)
{
    int64_t no;
    const struct workflow_row *row = undo_row(t, u, &no);
    struct pass_try try;
    if (row && step_ended(row->status))
        return true;
    struct workflow_step step = { .no = row ? row->no : no,
                                  .name = u->name,
                                  .kind = STEP_UNDO,
                                  .attempts = (row ? row->attempts : 0) + 1 };
    const char *name = arena_printf(&t->arena, "undo:%.*s", BYTES_ARG(u->name));
    if (!name) {
        pass_over(t, PASS_BACK, BYTES_NONE);
        return false;
    }
    pass_try_timed(t, u->step, &step);
    pass_try(t, u->step, u, bytes_of(name), &try);
    pass_try_over(t, u->step);
    if (atomic_load(&t->stage) != ATTEMPT_RUNNING) {
        pass_over(t, PASS_GONE, BYTES_NONE);
        return false;
    }
    if (try.how == END_CANCELLED || try.how == END_RELEASE) {
        pass_over(t, PASS_BACK, BYTES_NONE);
        return false;
    }
    return say(t, &step, u->step, &try);
}

const struct workflow_row *pass_undo_missing(const struct pass *p)
{
    const struct journal *j = p->journal;
    for (size_t i = 0; i < j->n; i++) {
        const struct workflow_row *row = &j->v[i];
        bool due = row->kind == STEP_RUN && row->undo && !row->undone;
        if (due && row->status != STEP_REFUSED && row->no > p->no)
            return row;
    }
    return NULL;
}

enum pass_answer pass_undo(struct pawl_call *t)
{
    struct pass *p = atomic_load(&t->pass);
    const struct workflow_row *missing = pass_undo_missing(p);
    if (missing) {
        const char *text = arena_printf(
            &t->arena, "the handler ended before its step \"%.*s\", which has to be undone",
            BYTES_ARG(missing->name));
        return pass_over(t, PASS_ERROR, text ? bytes_of(text) : BYTES("a step was not reached"));
    }
    if (p->n_undos)
        qsort(p->undos, p->n_undos, sizeof *p->undos, compare);
    for (size_t i = 0; i < p->n_undos && p->over == PASS_RUNS; i++) {
        if (atomic_load(&t->stop) == STOP_PROCESS)
            return pass_over(t, PASS_BACK, BYTES_NONE);
        if (!undo_one(t, &p->undos[i]))
            return PASS_VOID;
    }
    return pass_over(t, PASS_UNDONE, BYTES_NONE);
}
