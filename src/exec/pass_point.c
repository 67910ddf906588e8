/*
 * pass_point.c - durable points that run no code: waits, children, values, changes, published
 * values, restarts (pass.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/pass_inside.h"

#include <string.h>

#include "base/limits.h"
#include "exec/replay.h"
#include "store/feature.h"

enum pass_answer pass_known(struct pawl_call *t, const struct workflow_row *row,
                            struct payload *out)
{
    if (row->status == STEP_FAILED || row->status == STEP_REFUSED)
        return atomic_load(&t->undoing) ? pass_undo(t) : pass_over(t, PASS_FAILED, row->error);
    if (out)
        *out = row->result;
    return row->status == STEP_TIMEOUT ? PASS_TIMEOUT : PASS_GOES_ON;
}

/* What the store answered to a step that it settles. */
static enum pass_answer settled(struct pawl_call *t, const struct op *op,
                                const struct workflow_step *s, struct payload *out)
{
    if (op->status != PAWL_OK)
        return pass_over(t, op->status == PAWL_STATE ? PASS_ERROR : PASS_FAILED,
                         pass_refusal(t, op));
    struct workflow_row row = { .status = s->status,
                                .error = s->error_out,
                                .result = { s->result_out.form,
                                            arena_copy(&t->arena, s->result_out.bytes) } };
    if (s->result_out.bytes.data && !row.result.bytes.data)
        return pass_over(t, PASS_BACK, BYTES_NONE);
    return pass_known(t, &row, out);
}

/* Has the sleep ended by its time? By the clock of the database, which said it when the run was
 * claimed; later passes do not move that time. */
static bool passed(const struct pawl_call *t, const struct workflow_row *row)
{
    return row && row->kind == STEP_SLEEP && row->status == STEP_WAITING && row->until_us &&
           row->until_us <= t->call->claimed_us;
}

/* That a sleep is over is stored with what comes next: a pass that is cut off before finds the same
 * again. */
static enum pass_answer slept(struct pawl_call *t, const struct workflow_step *s)
{
    struct workflow_step over = { .no = atomic_load(&t->pass)->no,
                                  .name = arena_copy(&t->arena, s->name),
                                  .kind = s->kind,
                                  .says = SAYS_PASSED };
    if (!over.name.data)
        return pass_over(t, PASS_ERROR, BYTES("no memory for its steps"));
    return pass_lazy(t, &over) ? PASS_GOES_ON : PASS_VOID;
}

static enum pass_answer point(struct pawl_call *t, struct workflow_step *s, struct payload *out)
{
    const struct workflow_row *row;
    struct bytes name;
    struct op op;
    if (!pass_enter(t) || !pass_next(t, s->kind, s->name, &row, &name))
        return PASS_VOID;
    if (row && step_ended(row->status))
        return pass_known(t, row, out);
    if (atomic_load(&t->undoing))
        return pass_undo(t);
    if (passed(t, row))
        return slept(t, s);
    s->no = atomic_load(&t->pass)->no;
    return pass_say(t, s, 1, PASS_NO_SQL, &op) ? settled(t, &op, s, out) : PASS_VOID;
}

enum pass_answer pass_wait(struct pawl_call *t, enum step_kind kind, struct bytes name,
                           const struct workflow_wait *w, struct payload *out)
{
    return point(
        t, &(struct workflow_step){ .name = name, .kind = kind, .says = SAYS_WAIT, .wait = *w },
        out);
}

enum pass_answer pass_child(struct pawl_call *t, struct bytes name, const struct call_spec *call,
                            struct payload *out)
{
    return point(t,
                 &(struct workflow_step){
                     .name = name, .kind = STEP_CHILD, .says = SAYS_CHILD, .call = call },
                 out);
}

/* A value is stored before any code runs that may use it, or with what is stored next. */
enum pass_answer pass_value(struct pawl_call *t, struct bytes name, struct payload mine,
                            struct payload *out)
{
    const struct workflow_row *row;
    struct bytes stored;
    if (!pass_enter(t) || !pass_next(t, STEP_VALUE, name, &row, &stored))
        return PASS_VOID;
    struct pass *p = atomic_load(&t->pass);
    if (row && step_ended(row->status))
        return pass_known(t, row, out);
    if (atomic_load(&t->undoing))
        return pass_undo(t);
    struct workflow_step s = { .no = p->no,
                               .name = arena_copy(&t->arena, name),
                               .kind = STEP_VALUE,
                               .says = SAYS_RESULT,
                               .result = { mine.form, arena_copy(&t->arena, mine.bytes) },
                               .attempts = 1 };
    if (t->arena.failed)
        return pass_over(t, PASS_ERROR, BYTES("no memory for its steps"));
    p->must_store = true;
    *out = s.result;
    return pass_lazy(t, &s) ? PASS_GOES_ON : PASS_VOID;
}

bool pass_patched(struct pawl_call *t, struct bytes id)
{
    if (!pass_enter(t))
        return false;
    struct pass *p = atomic_load(&t->pass);
    struct pass_name *known = pass_entry(t, p->patched, 1, id);
    if (!known) {
        pass_over(t, PASS_ERROR, BYTES("no memory for its steps"));
        return false;
    }
    if (known->n)
        return known->n == 2;
    const char *text = arena_printf(&t->arena, "patched:%.*s", BYTES_ARG(id));
    struct bytes name = text ? bytes_of(text) : BYTES_NONE;
    const struct workflow_row *row = pass_row(p, p->no + 1);
    bool met = !row || (row->kind == STEP_VALUE && bytes_eq(row->name, name));
    known->n = met ? 2 : 1;
    if (!met || (!row && atomic_load(&t->undoing)))
        return met;
    struct payload value;
    return pass_value(t, name, (struct payload){ PAWL_JSON, BYTES("true") }, &value) ==
           PASS_GOES_ON;
}

enum pass_answer pass_publish(struct pawl_call *t, struct bytes name, struct payload value)
{
    struct pass *p;
    if (!pass_enter(t))
        return PASS_VOID;
    p = atomic_load(&t->pass);
    if (atomic_load(&t->undoing))
        return PASS_GOES_ON;
    size_t at = 0;
    while (at < p->n_published && !bytes_eq(p->published[at].name, name))
        at++;
    if (at == PUBLISHED_MAX)
        return pass_over(t, PASS_FAILED, BYTES("more published values than the 1000 of a run"));
    if (at == p->cap_published) {
        size_t cap = at ? at * 2 : 4;
        struct workflow_value *v = arena_alloc(&t->arena, cap * sizeof *v);
        if (!v)
            return pass_over(t, PASS_ERROR, BYTES("no memory for its steps"));
        if (at)
            memcpy(v, p->published, at * sizeof *v);
        p->published = v;
        p->cap_published = cap;
    }
    p->n_published += at == p->n_published;
    p->published[at] =
        (struct workflow_value){ arena_copy(&t->arena, name),
                                 { value.form, arena_copy(&t->arena, value.bytes) } };
    return t->arena.failed ? pass_over(t, PASS_ERROR, BYTES("no memory for its steps"))
                           : PASS_GOES_ON;
}

enum pass_answer pass_restart(struct pawl_call *t, struct payload input)
{
    struct workflow_op q = { .what = WORKFLOW_RESTART, .input = input, .steps = pass_context(t) };
    struct op op;
    if (!pass_enter(t))
        return PASS_VOID;
    if (t->e->replay)
        replay_restarts(t);
    if (atomic_load(&t->undoing))
        return pass_undo(t);
    if (!pass_flush(t))
        return PASS_VOID;
    if (pass_ask(t, &q, &op))
        return pass_over(t, op.status == PAWL_STATE ? PASS_BACK : PASS_FAILED,
                         pass_refusal(t, &op));
    return PASS_VOID;
}

/* ---- Children that have ended ---------------------------------------------------------------- */

bool pass_child_ended(struct pawl_call *t, struct bytes id)
{
    struct pass *p = atomic_load(&t->pass);
    for (const struct pass_name *one = p ? p->ended[0] : NULL; one; one = one->same)
        if (bytes_eq(one->name, id))
            return true;
    return false;
}

void pass_child_is_ended(struct pawl_call *t, struct bytes id)
{
    struct pass *p = atomic_load(&t->pass);
    if (!pass_entry(t, p->ended, 1, id))
        pass_over(t, PASS_ERROR, BYTES("no memory for its steps"));
}
