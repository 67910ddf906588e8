/*
 * workflow_ask.c - what is asked of a run from outside: signals, cancel, retry, fork; and the
 * version of a module.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "exec/waiter.h"
#include "exec/work_signal.h"
#include "exec/write_job.h"
#include "feature/workflow.h"
#include "lib/lib.h"
#include "model/needs.h"
#include "store/feature.h"

#define ANSWER_LEN_MAX (8 << 20)

static enum pawl_status check(struct pawl *p, const char *field, const char *name,
                              struct pawl_err *err)
{
    if (!p)
        return err_set(err, PAWL_INVALID, "the handle is NULL");
    const char *fault = name_fault(bytes_of(name));
    return fault ? err_set(err, PAWL_INVALID, "field \"%s\": %s", field, fault) : PAWL_OK;
}

/* Ask, and tell the waiters and workers of this process. What the answer names lives in `a`. */
static enum pawl_status ask(struct pawl *p, struct arena *a, struct workflow_op *q,
                            struct pawl_err *err)
{
    struct op op = { .kind = OP_FEATURE, .a = a, .feature = { .of = &feature_workflow, .ctx = q } };
    enum pawl_status st = exec_do(p->e, &op);
    *q = *(const struct workflow_op *)op.feature.ctx;
    if (st != PAWL_OK)
        return err_set(err, st, "%s", op.err.text);
    exec_look(p->e, op.ended, op.n_ended);
    exec_look(p->e, &q->id, 1);
    exec_work_came(p->e);
    return PAWL_OK;
}

enum pawl_status pawl_signal(struct pawl *p, const char *id, const char *name,
                             struct pawl_data value, const char *key, struct pawl_err *err)
{
    struct arena a;
    enum pawl_status st = check(p, "id", id, err);
    if (st == PAWL_OK)
        st = check(p, "name", name, err);
    if (st == PAWL_OK && key)
        st = check(p, "key", key, err);
    if (st == PAWL_OK)
        st = data_check(value, "value", err);
    if (st == PAWL_OK && value.len > RESULT_LEN_MAX)
        st = err_set(err, PAWL_TOO_LARGE, "field \"value\": %zu bytes, limit %d", value.len,
                     RESULT_LEN_MAX);
    if (st == PAWL_OK && value.form == PAWL_JSON)
        st = json_check(payload_of(value).bytes, err);
    if (st != PAWL_OK)
        return st;
    arena_init(&a, ANSWER_LEN_MAX);
    st = ask(p, &a,
             &(struct workflow_op){ .what = WORKFLOW_SIGNAL,
                                    .id = bytes_of(id),
                                    .name = bytes_of(name),
                                    .value = payload_of(value),
                                    .key = bytes_of(key) },
             err);
    arena_release(&a);
    return st;
}

enum pawl_status pawl_workflow_cancel(struct pawl *p, const char *id, unsigned flags,
                                      enum pawl_state *out_state, struct pawl_err *err)
{
    struct arena a;
    struct workflow_op q = { .what = WORKFLOW_CANCEL,
                             .id = bytes_of(id),
                             .compensate = !(flags & PAWL_NO_UNDO) };
    enum pawl_status st = check(p, "id", id, err);
    if (st == PAWL_OK && flags & ~(unsigned)PAWL_NO_UNDO)
        st = err_set(err, PAWL_INVALID, "pawl_workflow_cancel: unknown flags");
    if (st != PAWL_OK)
        return st;
    arena_init(&a, ANSWER_LEN_MAX);
    st = ask(p, &a, &q, err);
    if (st == PAWL_OK)
        exec_cancel(p->e, q.seq);
    arena_release(&a);
    if (out_state)
        *out_state = q.state;
    return st;
}

enum pawl_status pawl_workflow_retry(struct pawl *p, const char *id, const char *from,
                                     struct pawl_err *err)
{
    struct arena a;
    struct workflow_op q = { .what = WORKFLOW_RETRY, .id = bytes_of(id), .from = bytes_of(from) };
    enum pawl_status st = check(p, "id", id, err);
    if (st == PAWL_OK && from)
        st = check(p, "from", from, err);
    if (st != PAWL_OK)
        return st;
    arena_init(&a, ANSWER_LEN_MAX);
    st = ask(p, &a, &q, err);
    arena_release(&a);
    return st;
}

enum pawl_status pawl_workflow_fork(struct pawl *p, const char *id, const char *from,
                                    const char *new_id, char out_id[256], struct pawl_err *err)
{
    struct arena a;
    struct workflow_op q = { .what = WORKFLOW_FORK,
                             .id = bytes_of(id),
                             .from = bytes_of(from),
                             .fork_id = bytes_of(new_id) };
    enum pawl_status st = check(p, "id", id, err);
    if (st == PAWL_OK)
        st = check(p, "from", from, err);
    if (st == PAWL_OK && new_id)
        st = check(p, "new_id", new_id, err);
    if (st != PAWL_OK)
        return st;
    arena_init(&a, ANSWER_LEN_MAX);
    st = ask(p, &a, &q, err);
    struct bytes made = new_id ? q.fork_id : q.made_id;
    if (st == PAWL_OK && out_id)
        snprintf(out_id, 256, "%.*s", BYTES_ARG(made));
    arena_release(&a);
    return st;
}

enum pawl_status pawl_module_version(struct pawl_module *m, const char *version)
{
    struct pawl_err err = { 0 };
    const char *fault = version ? version_fault(bytes_of(version)) : "is missing";
    if (!m)
        return PAWL_INVALID;
    if (fault)
        return module_remember(
            m, err_set(&err, PAWL_INVALID, "pawl_module_version: the version %s", fault), &err);
    snprintf(m->version, sizeof m->version, "%s", version);
    return PAWL_OK;
}
