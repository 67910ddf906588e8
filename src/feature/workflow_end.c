/*
 * workflow_end.c - how a run ends, and how it begins to undo what it did: what the ledger asks of
 * the feature about flows (store/feature.h).
 *
 * Store thread. flow_end() only decides; what it decided is written when the ledger tells of the
 * move. A run that has to undo is pending again: the pass that undoes is one that was claimed after
 * undoing_at was committed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/workflow_inside.h"

#include <stdatomic.h>

#include "base/limits.h"

static struct {
    _Atomic int64_t steps, signals, compensations, divergences, steps_read, taken;
} counts;

void workflow_count_step(void)
{
    atomic_fetch_add(&counts.steps, 1);
}

void workflow_count_signal(void)
{
    atomic_fetch_add(&counts.signals, 1);
}

void workflow_count_divergence(void)
{
    atomic_fetch_add(&counts.divergences, 1);
}

void workflow_count_compensation(void)
{
    atomic_fetch_add(&counts.compensations, 1);
}

void workflow_count_read(int64_t steps)
{
    atomic_fetch_add(&counts.steps_read, steps);
}

void workflow_count_taken(void)
{
    atomic_fetch_add(&counts.taken, 1);
}

void workflow_counts(struct workflow_counts *out)
{
    out->steps = atomic_load(&counts.steps);
    out->signals = atomic_load(&counts.signals);
    out->compensations = atomic_load(&counts.compensations);
    out->divergences = atomic_load(&counts.divergences);
    out->steps_read = atomic_load(&counts.steps_read);
    out->taken = atomic_load(&counts.taken);
}

/* ---- Undoing --------------------------------------------------------------------------------- */

/* Ask the children that have not ended to cancel, unless another run may wait for them: a fork of
 * this one. */
static enum pawl_status children_cancel(struct ledger *d, const struct run *r, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    int64_t after = 0;
    int n = CHILDREN_PAGE;
    while (st == PAWL_OK && n == CHILDREN_PAGE) {
        struct led_params p = { 0 };
        struct led_rows *rows;
        led_int(&p, r->seq);
        led_int(&p, after);
        led_int(&p, CHILDREN_PAGE);
        st = feature_query(d, SQL_CHILD_OWN, &p, &rows, err);
        n = st == PAWL_OK ? rows->n : 0;
        for (int i = 0; i < n && st == PAWL_OK; i++) {
            struct op nested = { .kind = OP_CANCEL, .by_id = { .id = led_get(rows, i, 1) } };
            after = led_get_int(rows, i, 0);
            st = feature_nested(d, &nested, err); /* refused: it has ended */
        }
    }
    return st;
}

/* From now on it undoes; the row is not written yet. */
static void undo_set(struct ledger *d, struct run *r, enum run_reason reason, struct bytes error)
{
    CHECK(!r->undoing_us && reason != REASON_NONE);
    r->undoing_us = feature_now(d);
    r->reason = reason;
    r->error = error;
    r->compensation = UNDO_GOES_ON;
    r->deadline_us = 0;
    r->waits = r->wait_us = 0;
    workflow_count_compensation();
}

enum pawl_status run_undo(struct ledger *d, struct run *r, enum run_reason reason,
                          struct bytes error, struct pawl_err *err)
{
    if (r->undoing_us)
        return PAWL_OK;
    undo_set(d, r, reason, error);
    return r->stored ? children_cancel(d, r, err) : PAWL_OK;
}

/* ---- The end of an attempt ------------------------------------------------------------------- */

enum pawl_status flows_ending(struct ledger *d, const int64_t *seqs, size_t n, struct pawl_err *err)
{
    return runs_lock(d, seqs, n, err);
}

static void undo_next(struct run *r, struct flow_end *q, enum run_reason reason, struct bytes error)
{
    r->undoes = reason;
    r->undoes_for = error;
    q->next = FLOW_AGAIN;
}

bool run_late(const struct ledger *d, const struct run *r)
{
    return !r->undoing_us && r->deadline_us && r->deadline_us <= feature_now(d);
}

/* A pass that undoes has ended. */
static void undone_or_not(struct run *r, struct flow_end *q)
{
    /* Its worker ends it with a result or a refusal when every undo has ended. */
    bool failed = q->how != END_RESULT && q->how != END_REFUSE;
    q->next = FLOW_ENDS;
    if (failed) {
        q->state = PAWL_DEAD_LETTER;
    } else {
        q->state = r->reason == REASON_FAILED ? PAWL_FAILED : PAWL_CANCELLED;
        q->error = r->reason == REASON_CANCELLED ? BYTES_NONE : r->error;
    }
    r->ends = true;
    r->ends_undone = failed ? UNDO_FAILED : r->undone ? UNDO_DONE : UNDO_NONE;
}

enum pawl_status flow_end(struct ledger *d, struct flow_end *q, struct pawl_err *err)
{
    struct run *r;
    enum pawl_status st = run_get(d, q->seq, &r, err);
    if (st != PAWL_OK)
        return st;
    r->undoes = REASON_NONE;
    r->ends = false;
    bool knows = r->undoing_us && q->claimed_us >= r->undoing_us;
    r->sure = knows || !q->begun;
    r->doubtful = !knows && (q->how == END_ERROR || q->how == END_TIMEOUT || q->how == END_LOST);
    q->next = FLOW_AS_IS;
    if (r->diverges.data) {
        r->doubtful = false;
        q->next = FLOW_ENDS;
        q->state = PAWL_DEAD_LETTER;
        q->error = r->diverges;
        r->flags |= RUN_DIVERGED;
        r->ends = r->undoing_us; /* a retry goes on with the undoing */
        r->ends_undone = UNDO_FAILED;
        return PAWL_OK;
    }
    /* A pass that was told so gives it back, or ends with an error. */
    if (r->stored && run_late(d, r) && q->how != END_RESULT && q->how != END_REFUSE) {
        undo_next(r, q, REASON_TIMEOUT, BYTES(RUN_LATE_TEXT));
        return PAWL_OK;
    }
    if (q->state == PAWL_PENDING || !r->stored)
        return PAWL_OK;
    if (knows)
        undone_or_not(r, q);
    else if (r->undoing_us) /* it was claimed before, and does not know */
        q->next = FLOW_AGAIN;
    else if (q->state == PAWL_FAILED && r->steps)
        undo_next(r, q, REASON_FAILED, q->error);
    return PAWL_OK;
}

/* ---- Moves ----------------------------------------------------------------------------------- */

/* The row of a run that has left a lease, or has ended. */
static enum pawl_status run_moved(struct ledger *d, struct run *r, const struct moved *v,
                                  struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    if (!r->stored)
        return PAWL_OK;
    if (pawl_state_ended(v->to)) {
        r->waits = 0;
        r->deadline_us = 0;
        r->wait_us = 0;
        r->flags |= RUN_ENDED;
        if (r->doubtful) /* a cancel may undo it */
            r->flags |= RUN_CUT;
        if (r->ends)
            r->compensation = r->ends_undone;
        else if (r->compensation == UNDO_GOES_ON) /* a person ended it without the undos */
            r->compensation = UNDO_NONE;
        r->ends = false;
        r->shown = run_shown(r, v->to);
        return run_put(d, r, err);
    }
    if (r->let_go) {
        r->let_go = false;
        return PAWL_OK;
    }
    if (r->undoes == REASON_FAILED) /* it said how it ends */
        r->flags = r->doubtful ? r->flags | RUN_CUT : r->flags & ~RUN_CUT;
    else if (!r->sure)
        r->flags |= RUN_CUT;
    if (r->undoes)
        st = run_undo(d, r, r->undoes, r->undoes_for, err);
    r->undoes = REASON_NONE;
    r->sure = false;
    return st == PAWL_OK ? run_put(d, r, err) : st;
}

enum pawl_status workflow_moved(struct ledger *d, const struct moved *v, size_t n,
                                struct pawl_err *err)
{
    int64_t *seqs = arena_alloc(feature_arena(d), (n + 1) * sizeof *seqs);
    size_t some = 0;
    if (!seqs)
        return err_no_memory(err, "workflows");
    for (size_t i = 0; i < n; i++)
        if (v[i].watch & WATCH_FLOW)
            seqs[some++] = v[i].seq;
    enum pawl_status st = runs_lock(d, seqs, some, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        if (v[i].watch & WATCH_FLOW)
            st = run_moved(d, run_find(d, v[i].seq), &v[i], err);
    return st == PAWL_OK ? children_ended(d, v, n, err) : st;
}

/* ---- Cancel and retry of the call ------------------------------------------------------------ */

enum pawl_status flow_cancel(struct ledger *d, int64_t seq, struct pawl_err *err)
{
    struct run *r;
    enum pawl_status st = run_get(d, seq, &r, err);
    if (st != PAWL_OK || r->undoing_us)
        return st;
    if (!r->stored)
        st = run_new(d, r, BYTES_NONE, err);
    if (st == PAWL_OK)
        st = run_undo(d, r, REASON_CANCELLED, BYTES("cancelled"), err);
    if (st == PAWL_OK)
        st = run_put(d, r, err);
    return st == PAWL_OK ? runs_wake(d, &seq, 1, err) : st;
}

/* ---- Readers and gc -------------------------------------------------------------------------- */

enum pawl_status flows_shown(struct ledger *d, const int64_t *seqs, size_t n, enum call_wait *out,
                             struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_ints(d, &p, seqs, n);
    enum pawl_status st = feature_query(d, SQL_WORKFLOW_READ, &p, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        struct run r = run_read(rows, i);
        for (size_t k = 0; k < n; k++)
            if (seqs[k] == r.seq)
                out[k] = workflow_wait_of(r.waits);
    }
    return st;
}

/* Keep a run whose compensation failed, and a child as long as one of its parents has not ended.
 */
enum pawl_status workflow_keep(struct ledger *d, const int64_t *seqs, size_t n, bool *keep,
                               struct pawl_err *err)
{
    struct led_params p = { 0 }, q = { 0 };
    struct led_rows *rows;
    led_ints(d, &p, seqs, n);
    enum pawl_status st = feature_query(d, SQL_WORKFLOW_READ, &p, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        struct run r = run_read(rows, i);
        for (size_t k = 0; k < n; k++)
            keep[k] = keep[k] || (seqs[k] == r.seq && r.compensation == UNDO_FAILED);
    }
    led_ints(d, &q, seqs, n);
    if (st == PAWL_OK)
        st = feature_query(d, SQL_CHILD_LIVE, &q, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++)
        for (size_t k = 0; k < n; k++)
            keep[k] = keep[k] || seqs[k] == led_get_int(rows, i, 0);
    return st;
}

enum pawl_status workflow_forget(struct ledger *d, const int64_t *seqs, size_t n,
                                 struct pawl_err *err)
{
    static const enum sql_name all[] = { SQL_STEP_FORGET, SQL_SIGNAL_FORGET, SQL_PUBLISHED_FORGET,
                                         SQL_CHILD_FORGET, SQL_WORKFLOW_REMOVE };
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < COUNT_OF(all) && st == PAWL_OK; i++) {
        struct led_params p = { 0 };
        struct led_column from;
        led_ints(d, &p, seqs, n);
        led_column_init(&from, feature_arena(d), LED_INTS);
        for (size_t k = 0; k < n; k++)
            led_add_int(&from, 0);
        if (all[i] == SQL_STEP_FORGET)
            led_column(&p, &from);
        st = feature_run(d, all[i], &p, NULL, err);
    }
    return st;
}
