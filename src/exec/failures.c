/*
 * failures.c - a log line for every attempt that failed or was lost, and for every operation in
 * which a run got no child, because its id was taken.
 *
 * The stored call has the error and shows it to a client that asks; the log is for people who did
 * not know that there is something to ask for. Many failures must not make as many lines:
 * LOG_FAILURES_MAX a second are logged, the rest is counted, and the count is logged when the
 * second is over (the housekeeping thread looks). Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/failures.h"

#include "base/limits.h"
#include "base/log.h"
#include "exec/internal.h"
#include "feature/workflow.h"

void failures_init(struct failures *f)
{
    pthread_mutex_init(&f->lock, NULL);
}

void failures_release(struct failures *f)
{
    pthread_mutex_destroy(&f->lock);
}

void failures_flush(struct exec *e, bool now)
{
    struct failures *f = &e->failures;
    int64_t second = world_mono(&world_real) / SEC_US, count = 0;
    pthread_mutex_lock(&f->lock);
    if (now || f->second != second) {
        count = f->left_out;
        f->left_out = 0;
    }
    pthread_mutex_unlock(&f->lock);
    if (count)
        log_fields(LOG_WARN, "more attempts failed or were lost than were logged",
                   (const struct log_field[]){ LOG_NUMBER("left_out", count) }, 1);
}

/* May this attempt have a line? Else it is counted. */
static bool take_line(struct failures *f)
{
    int64_t second = world_mono(&world_real) / SEC_US;
    pthread_mutex_lock(&f->lock);
    if (f->second != second) {
        f->second = second;
        f->told = 0;
    }
    bool may = f->told < LOG_FAILURES_MAX;
    f->told += may;
    f->left_out += !may;
    pthread_mutex_unlock(&f->lock);
    return may;
}

static void tell(struct exec *e, const char *message, const struct lost_attempt *a)
{
    failures_flush(e, false);
    if (!take_line(&e->failures))
        return;
    const struct log_field fields[] = {
        LOG_TEXT("id", a->id),
        LOG_TEXT("type", a->type),
        LOG_NUMBER("try", a->attempt_no),
        LOG_TEXT("status", bytes_of(pawl_state_name(a->state))),
        LOG_TEXT("error", a->error.data ? a->error : BYTES("")),
    };
    log_fields(LOG_WARN, message, fields, COUNT_OF(fields));
}

static const char *failed_message(enum pawl_state state)
{
    switch (state) {
    case PAWL_PENDING:
        return "call failed, to be tried again";
    case PAWL_DEAD_LETTER:
        return "call failed too often: dead letter";
    default:
        return "call failed for good";
    }
}

static const char *lost_message(enum pawl_state state)
{
    switch (state) {
    case PAWL_PENDING:
        return "call lost, to be tried again";
    case PAWL_DEAD_LETTER:
        return "call lost too often: dead letter";
    default:
        return "call lost, and ended";
    }
}

struct bytes failures_taken(const struct feature_op *f)
{
    const struct workflow_op *q = f && f->of == &feature_workflow ? f->ctx : NULL;
    return q && !f->repeated ? q->steps.taken : BYTES_NONE;
}

static void tell_taken(struct exec *e, const struct feature_op *f)
{
    struct bytes id = failures_taken(f);
    if (!id.data)
        return;
    failures_flush(e, false);
    if (take_line(&e->failures))
        log_fields(LOG_WARN, "call not accepted as a child, because another one has its id",
                   (const struct log_field[]){ LOG_TEXT("id", id) }, 1);
}

/* A repeated finish has no type: it was logged when it was stored. A cancelled call did not fail.
 */
static void tell_finish(struct exec *e, const struct finish *q)
{
    for (size_t i = 0; i < q->n; i++) {
        const struct finish_item *f = &q->v[i];
        tell_taken(e, f->with);
        if (!f->type.data || !f->error_out.data || f->state == PAWL_COMPLETED ||
            f->state == PAWL_CANCELLED)
            continue;
        /* Only a call that took steps is pending after it was refused. */
        bool undoes = f->how == END_REFUSE && f->state == PAWL_PENDING;
        bool begun = f->flow && f->state == PAWL_PENDING;
        tell(e, undoes ? "call failed, and undoes its steps" : failed_message(f->state),
             &(struct lost_attempt){ .id = f->id,
                                     .type = f->type,
                                     .error = f->error_out,
                                     /* A run that undoes counts its attempts anew. */
                                     .attempt_no = MAX(f->counts.attempts + f->counts.lost, 1),
                                     .state = begun ? PAWL_PROCESSING : f->state });
    }
}

static void tell_lost(struct exec *e, const struct op *op)
{
    size_t n = MIN(op->n_lost, (size_t)LOST_TOLD_MAX);
    for (size_t i = 0; i < n; i++)
        tell(e, (op->lost[i].late ? failed_message : lost_message)(op->lost[i].state),
             &op->lost[i]);
    pthread_mutex_lock(&e->failures.lock);
    e->failures.left_out += (int64_t)(op->n_lost - n);
    pthread_mutex_unlock(&e->failures.lock);
}

void failures_tell(struct exec *e, struct op *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct op *op = v[i];
        if (op->status != PAWL_OK)
            continue;
        if (op->kind == OP_HANDLER)
            op = op->handler.end;
        if (op->kind == OP_FINISH)
            tell_finish(e, &op->finish);
        else if (op->kind == OP_FEATURE)
            tell_taken(e, &op->feature);
        op = v[i];
        if (op->n_lost)
            tell_lost(e, op);
    }
}
