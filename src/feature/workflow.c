/*
 * workflow.c - the feature `workflow`: which function decides which operation, and the copies of
 * their questions.
 *
 * Store thread, except copy().
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/workflow_inside.h"

/* ---- The feature ----------------------------------------------------------------------------- */

/* Does the operation speak of steps of a run that its lease names? */
static bool speaks(const struct op *op)
{
    const struct workflow_op *q = op->feature.ctx;
    return op->feature.seq && q->what == WORKFLOW_STEPS;
}

/* Read the steps that the operations speak of, and how often the names of new ones were used. */
static enum pawl_status load_steps(struct ledger *d, struct op *const *ops, size_t n, size_t n_refs,
                                   struct pawl_err *err)
{
    struct arena *a = feature_arena(d);
    struct step_ref *refs = arena_alloc(a, (n_refs + 1) * sizeof *refs);
    struct name_ref *names = arena_alloc(a, (n_refs + 1) * sizeof *names);
    size_t at = 0, n_names = 0;
    if (!refs || !names)
        return err_no_memory(err, "workflows");
    for (size_t i = 0; i < n; i++) {
        const struct workflow_op *q = ops[i]->feature.ctx;
        for (size_t k = 0; speaks(ops[i]) && k < q->steps.n; k++)
            refs[at++] = (struct step_ref){ run_find(d, ops[i]->feature.seq), q->steps.v[k].no };
    }
    enum pawl_status st = steps_load(d, refs, at, err);
    at = 0;
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        const struct workflow_op *q = ops[i]->feature.ctx;
        for (size_t k = 0; speaks(ops[i]) && k < q->steps.n; k++, at++) {
            const struct workflow_step *s = &q->steps.v[k];
            if (s->kind == STEP_UNDO || step_name_fault(s->name))
                continue;
            if (!step_at(refs[at].run, s->no)->stored)
                names[n_names++] = (struct name_ref){ refs[at].run, s->name };
        }
    }
    return st == PAWL_OK ? uses_load(d, names, n_names, err) : st;
}

/* Lock the rows of all runs that operations of the group name by their lease, and read what these
 * speak of. */
static enum pawl_status load(struct ledger *d, struct op *const *ops, size_t n,
                             struct pawl_err *err)
{
    int64_t *seqs = arena_alloc(feature_arena(d), (n + 1) * sizeof *seqs);
    size_t some = 0, n_refs = 0;
    if (!seqs)
        return err_no_memory(err, "workflows");
    for (size_t i = 0; i < n; i++) {
        const struct workflow_op *q = ops[i]->feature.ctx;
        if (ops[i]->feature.seq)
            seqs[some++] = ops[i]->feature.seq;
        n_refs += speaks(ops[i]) ? q->steps.n : 0;
    }
    enum pawl_status st = runs_lock(d, seqs, some, err);
    return st == PAWL_OK ? load_steps(d, ops, n, n_refs, err) : st;
}

static enum pawl_status apply(struct ledger *d, struct op *op, struct pawl_err *err)
{
    const struct workflow_op *q = op->feature.ctx;
    switch (q->what) {
    case WORKFLOW_STEPS:
        return workflow_steps(d, op, err);
    case WORKFLOW_SIGNAL:
        return workflow_signal(d, op, err);
    case WORKFLOW_CANCEL:
        return workflow_cancel(d, op, err);
    case WORKFLOW_RETRY:
        return workflow_retry(d, op, err);
    case WORKFLOW_RESTART:
        return workflow_restart(d, op, err);
    case WORKFLOW_FORK:
        return workflow_fork(d, op, err);
    }
    CHECK(!"an operation of workflows");
    return PAWL_BROKEN;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static struct payload payload_copy(struct arena *a, struct payload p)
{
    return (struct payload){ p.form, arena_copy(a, p.bytes) };
}

static const struct bytes *names_copy(struct arena *a, const struct bytes *v, size_t n)
{
    struct bytes *to = n ? arena_alloc(a, n * sizeof *to) : NULL;
    for (size_t i = 0; to && i < n; i++)
        to[i] = arena_copy(a, v[i]);
    return to;
}

static const struct call_spec *spec_copy(struct arena *a, const struct call_spec *s)
{
    struct call_spec *to = s ? arena_alloc(a, sizeof *to) : NULL;
    return to && call_spec_copy(a, s, to) ? to : NULL;
}

static const struct call_spec *specs_copy(struct arena *a, const struct call_spec *v, size_t n)
{
    struct call_spec *to = n ? arena_alloc(a, n * sizeof *to) : NULL;
    for (size_t i = 0; to && i < n; i++)
        if (!call_spec_copy(a, &v[i], &to[i]))
            return NULL;
    return to;
}

static struct workflow_step *steps_copy(struct arena *a, const struct workflow_steps *q)
{
    struct workflow_step *to = arena_alloc(a, (q->n + 1) * sizeof *to);
    for (size_t i = 0; to && i < q->n; i++) {
        const struct workflow_step *s = &q->v[i];
        to[i] = *s;
        to[i].name = arena_copy(a, s->name);
        to[i].result = payload_copy(a, s->result);
        to[i].error = arena_copy(a, s->error);
        to[i].wait.signals = names_copy(a, s->wait.signals, s->wait.n_signals);
        to[i].wait.children = names_copy(a, s->wait.children, s->wait.n_children);
        to[i].call = spec_copy(a, s->call);
    }
    return to;
}

static const struct workflow_value *values_copy(struct arena *a, const struct workflow_steps *q)
{
    struct workflow_value *to = arena_alloc(a, (q->n_published + 1) * sizeof *to);
    for (size_t i = 0; to && i < q->n_published; i++)
        to[i] = (struct workflow_value){ arena_copy(a, q->published[i].name),
                                         payload_copy(a, q->published[i].value) };
    return to;
}

static void *copy(struct arena *a, const void *ctx)
{
    const struct workflow_op *q = ctx;
    struct workflow_op *to = arena_alloc(a, sizeof *to);
    if (!to)
        return NULL;
    *to = *q;
    to->id = arena_copy(a, q->id);
    to->steps.v = steps_copy(a, &q->steps);
    to->steps.published = values_copy(a, &q->steps);
    to->steps.send = specs_copy(a, q->steps.send, q->steps.n_send);
    to->steps.version = arena_copy(a, q->steps.version);
    to->steps.node = arena_copy(a, q->steps.node);
    to->name = arena_copy(a, q->name);
    to->value = payload_copy(a, q->value);
    to->key = arena_copy(a, q->key);
    to->start = spec_copy(a, q->start);
    to->from = arena_copy(a, q->from);
    to->fork_id = arena_copy(a, q->fork_id);
    to->input = payload_copy(a, q->input);
    return a->failed ? NULL : to;
}

const struct feature feature_workflow = {
    .name = "workflow",
    .watch = WATCH_FLOW | WATCH_CHILD,
    .load = load,
    .apply = apply,
    .former = workflow_former,
    .moved = workflow_moved,
    .forget = workflow_forget,
    .inbox = workflow_inbox,
    .copy = copy,
    .flows_ending = flows_ending,
    .flow_end = flow_end,
    .flow_cancel = flow_cancel,
    .flow_retry = flow_retry,
    .flows_shown = flows_shown,
    .keep = workflow_keep,
    .gc = workflow_gc,
};
