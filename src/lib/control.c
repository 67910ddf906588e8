/*
 * control.c - cancel, retry, move, pause, gc: one operation each, and its consequences in this
 * process.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/text.h"
#include "exec/work_signal.h"
#include "exec/write_job.h"
#include "exec/waiter.h"
#include "feature/cron.h"
#include "lib/lib.h"

#define ANSWER_LEN_MAX (1 << 20)

static enum pawl_status check_id(struct pawl *p, const char *id, struct pawl_err *err)
{
    if (!p)
        return err_set(err, PAWL_INVALID, "the handle is NULL");
    const char *fault = name_fault(bytes_of(id));
    return fault ? err_set(err, PAWL_INVALID, "field \"id\": %s", fault) : PAWL_OK;
}

/* Do one operation on a call by its id, and tell the waiters and workers of this process. */
static enum pawl_status by_id(struct pawl *p, enum op_kind kind, struct by_id *what,
                              struct pawl_err *err)
{
    struct arena a;
    arena_init(&a, ANSWER_LEN_MAX);
    struct op op = { .kind = kind, .a = &a, .by_id = *what };
    int64_t until_us = kind == OP_MOVE ? world_mono(&world_real) + MOVE_WAIT_US : 0;
    enum pawl_status st = exec_do_by(p->e, &op, until_us);
    *what = op.by_id;
    if (st != PAWL_OK)
        err_set(err, st, "%s", op.err.text);
    else if (kind == OP_CANCEL && what->state == PAWL_PROCESSING)
        exec_cancel(p->e, what->seq);
    else if (kind == OP_CANCEL)
        exec_look(p->e, &what->id, 1);
    else
        exec_work_came(p->e);
    arena_release(&a);
    return st;
}

enum pawl_status pawl_cancel(struct pawl *p, const char *id, enum pawl_state *out_state,
                             struct pawl_err *err)
{
    struct by_id what = { .id = bytes_of(id) };
    enum pawl_status st = check_id(p, id, err);
    if (st == PAWL_OK)
        st = by_id(p, OP_CANCEL, &what, err);
    if (out_state)
        *out_state = what.state;
    return st;
}

enum pawl_status pawl_retry(struct pawl *p, const char *id, struct pawl_err *err)
{
    struct by_id what = { .id = bytes_of(id) };
    enum pawl_status st = check_id(p, id, err);
    return st == PAWL_OK ? by_id(p, OP_RETRY, &what, err) : st;
}

enum pawl_status pawl_move(struct pawl *p, const char *id, int64_t run_at_us, int priority,
                           const char *queue, struct pawl_err *err)
{
    struct by_id what = {
        .id = bytes_of(id), .run_at_us = run_at_us, .priority = priority, .queue = bytes_of(queue)
    };
    enum pawl_status st = check_id(p, id, err);
    if (st != PAWL_OK)
        return st;
    const char *fault = queue ? name_fault(what.queue) : NULL;
    if (fault)
        return err_set(err, PAWL_INVALID, "field \"queue\": %s", fault);
    if (run_at_us < 0)
        return err_set(err, PAWL_INVALID, "field \"run_at\": must not be below 0");
    if (priority != PAWL_SAME && (priority < PRIORITY_MIN || priority > PRIORITY_MAX))
        return err_set(err, PAWL_INVALID, "field \"priority\": %d, must be %d to %d", priority,
                       PRIORITY_MIN, PRIORITY_MAX);
    return by_id(p, OP_MOVE, &what, err);
}

enum pawl_status pawl_pause(struct pawl *p, const char *queue, bool paused, struct pawl_err *err)
{
    if (!p)
        return err_set(err, PAWL_INVALID, "pawl_pause: the handle is NULL");
    const char *fault = name_fault(bytes_of(queue));
    if (fault)
        return err_set(err, PAWL_INVALID, "field \"queue\": %s", fault);
    struct arena a;
    arena_init(&a, ANSWER_LEN_MAX);
    struct op op = { .kind = OP_PAUSE,
                     .a = &a,
                     .pause = { .queue = bytes_of(queue), .paused = paused } };
    enum pawl_status st = exec_do(p->e, &op);
    if (st != PAWL_OK)
        err_set(err, st, "%s", op.err.text);
    else if (!paused)
        exec_work_came(p->e);
    arena_release(&a);
    return st;
}

/* What came of ticks of schedules, past its own retention: all of it, in small batches. */
static enum pawl_status gc_ticks(struct pawl *p, struct pawl_err *err)
{
    struct cron_op forget = { .what = CRON_FORGET,
                              .keep_us = exec_conf_of(p->e)->cron_runs_us,
                              .max = GC_STEP_MAX };
    bool more = exec_has_features(p->e);
    enum pawl_status st = PAWL_OK;
    while (st == PAWL_OK && more) {
        struct arena a;
        arena_init(&a, ANSWER_LEN_MAX);
        struct op op = { .kind = OP_FEATURE,
                         .a = &a,
                         .feature = { .of = &feature_cron, .ctx = &forget } };
        st = exec_do(p->e, &op);
        if (st == PAWL_OK)
            more = ((const struct cron_op *)op.feature.ctx)->more; /* it may be a copy of ours */
        else
            err_set(err, st, "%s", op.err.text);
        arena_release(&a);
    }
    return st;
}

enum pawl_status pawl_gc(struct pawl *p, int64_t max, int64_t *out_removed, int64_t *out_forgotten,
                         struct pawl_err *err)
{
    int64_t removed = 0, forgotten = 0;
    enum pawl_status st = PAWL_OK;
    bool more = true;
    if (!p || max < 0)
        return err_set(err, PAWL_INVALID, "pawl_gc: the handle is NULL, or max is below 0");
    while (st == PAWL_OK && more && removed + forgotten < max) {
        struct arena a;
        arena_init(&a, ANSWER_LEN_MAX);
        int64_t left = max - removed - forgotten;
        struct op op = { .kind = OP_GC, .a = &a, .gc = { .max = (int)MIN(left, GC_STEP_MAX) } };
        st = exec_do(p->e, &op);
        if (st != PAWL_OK)
            err_set(err, st, "%s", op.err.text);
        removed += st == PAWL_OK ? op.gc.removed : 0;
        forgotten += st == PAWL_OK ? op.gc.forgotten : 0;
        more = op.gc.more;
        arena_release(&a);
    }
    if (out_removed)
        *out_removed = removed;
    if (out_forgotten)
        *out_forgotten = forgotten;
    return st == PAWL_OK && max ? gc_ticks(p, err) : st;
}
