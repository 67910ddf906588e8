/*
 * workflow_case.c - see workflow_case.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "workflow_case.h"

#include <stdio.h>
#include <string.h>

#include "model/needs.h"
#include "store/feature.h"

static const struct feature *const workflow_features[] = { &feature_workflow };

struct conform_fixture *workflow_fixture(void *param, const char *wrapper)
{
    static char url[200];
    if (engine_of(param)->kind == ENGINE_MEM)
        skip("mem keeps calls only");
    if (strchr(param, '+') && *wrapper)
        skip("%s is wrapped already", (const char *)param);
    snprintf(url, sizeof url, "%s%s", wrapper, (const char *)param);
    struct conform_fixture *b = conform_fixture_open(url);
    store_close(b->s);
    b->features = workflow_features;
    b->n_features = COUNT_OF(workflow_features);
    b->s = conform_fixture_handle(b);
    return b;
}

/* ---- Passes ---------------------------------------------------------------------------------- */

static struct claim claim_runs(struct conform_fixture *b, int max)
{
    static const struct bytes has[] = { NEED_STEPS };
    struct claim q = want(b, max);
    q.has = has;
    q.n_has = COUNT_OF(has);
    return claim_as(b, q);
}

static struct pass pass_with(struct conform_fixture *b, struct token token, const struct call *c)
{
    return (struct pass){ .b = b,
                          .token = token,
                          .seq = c->seq,
                          .id = arena_copy(&b->a, c->spec.id),
                          .undoing = journal_read(b, c->seq).undoing };
}

struct pass pass_begin(struct conform_fixture *b)
{
    struct claim q = claim_runs(b, 1);
    EQ_UINT(q.n, 1);
    return pass_with(b, q.token, &q.calls[0]);
}

struct pass pass_begin_as(struct conform_fixture *b, const struct bytes *has, size_t n_has)
{
    struct claim q = want(b, 1);
    q.has = has;
    q.n_has = n_has;
    q = claim_as(b, q);
    EQ_UINT(q.n, 1);
    return pass_with(b, q.token, &q.calls[0]);
}

struct pass pass_named(struct conform_fixture *b, const char *id)
{
    struct claim q = claim_runs(b, 10);
    const struct call *it = NULL;
    for (size_t i = 0; i < q.n; i++) {
        struct finish_item back = { .seq = q.calls[i].seq, .how = END_RELEASE };
        if (bytes_eq(q.calls[i].spec.id, bytes_of(id)))
            it = &q.calls[i];
        else
            OK(finish_item(b, q.token, back), &b->err);
    }
    if (!it)
        FAIL("run \"%s\" cannot be claimed, but \"%s\"", id, ids_of(b, &q));
    return pass_with(b, q.token, it);
}

struct pass pass_of_new(struct conform_fixture *b, const char *id)
{
    accept_one(b, id);
    return pass_begin(b);
}

enum pawl_status pass_steps(struct pass *p, const struct workflow_step *v, size_t n)
{
    TRUE(n <= COUNT_OF(p->steps));
    memcpy(p->steps, v, n * sizeof *v);
    p->answer = (struct workflow_op){ .what = WORKFLOW_STEPS,
                                      .steps = { .v = p->steps,
                                                 .n = n,
                                                 .undoing = p->undoing,
                                                 .node = BYTES("n1"),
                                                 .version = p->version,
                                                 .pin = p->pin,
                                                 .by_lease = p->by_lease } };
    struct op op = {
        .kind = OP_FEATURE,
        .feature = { .of = &feature_workflow, .ctx = &p->answer, .token = p->token, .seq = p->seq }
    };
    return one(p->b, &op);
}

static struct payload json(const char *text)
{
    return text ? (struct payload){ PAWL_JSON, bytes_of(text) } : (struct payload){ 0 };
}

static void ended(struct pass *p, struct workflow_step s)
{
    OK(pass_steps(p, &s, 1), &p->b->op.err);
    FALSE(p->answer.steps.suspended);
    EQ_INT(p->steps[0].status, STEP_COMPLETED);
}

void step_ok(struct pass *p, int64_t no, const char *name, const char *text)
{
    ended(p, (struct workflow_step){ .no = no,
                                     .name = bytes_of(name),
                                     .kind = STEP_RUN,
                                     .says = SAYS_RESULT,
                                     .result = json(text),
                                     .attempts = 1 });
}

void step_undoable(struct pass *p, int64_t no, const char *name, const char *text)
{
    ended(p, (struct workflow_step){ .no = no,
                                     .name = bytes_of(name),
                                     .kind = STEP_RUN,
                                     .says = SAYS_RESULT,
                                     .result = json(text),
                                     .attempts = 1,
                                     .undo = true });
}

void undo_ok(struct pass *p, int64_t no, const char *name)
{
    ended(p, (struct workflow_step){ .no = no,
                                     .name = bytes_of(name),
                                     .kind = STEP_UNDO,
                                     .says = SAYS_RESULT,
                                     .attempts = 1 });
}

enum pawl_status wait_signal(struct pass *p, int64_t no, const char *name, int64_t seconds)
{
    struct bytes signal = bytes_of(name);
    const struct workflow_step s = { .no = no,
                                     .name = signal,
                                     .kind = STEP_SIGNAL,
                                     .says = SAYS_WAIT,
                                     .wait = { .signals = &signal,
                                               .n_signals = 1,
                                               .has_until = seconds != 0,
                                               .in_us = seconds * SEC_US } };
    return pass_steps(p, &s, 1);
}

enum pawl_status sleep_for(struct pass *p, int64_t no, const char *name, int64_t seconds)
{
    const struct workflow_step s = { .no = no,
                                     .name = bytes_of(name),
                                     .kind = STEP_SLEEP,
                                     .says = SAYS_WAIT,
                                     .wait = { .has_until = true, .in_us = seconds * SEC_US } };
    return pass_steps(p, &s, 1);
}

const char *child_of(struct pass *p, int64_t no, const char *name, const char *key)
{
    struct call_spec call = plan("unused");
    call.type = BYTES("child");
    call.key = key ? bytes_of(key) : BYTES_NONE;
    const struct workflow_step s = {
        .no = no, .name = bytes_of(name), .kind = STEP_CHILD, .says = SAYS_CHILD, .call = &call
    };
    OK(pass_steps(p, &s, 1), &p->b->op.err);
    EQ_INT(p->steps[0].status, STEP_COMPLETED);
    struct bytes id = p->steps[0].result_out.bytes;
    return arena_printf(&p->b->a, "%.*s", (int)id.len - 2, id.data + 1);
}

enum pawl_status join(struct pass *p, int64_t no, const char *name, const char *ids, bool any,
                      int64_t seconds)
{
    struct bytes v[64];
    size_t n = 0;
    for (const char *at = ids; *at;) {
        size_t len = strcspn(at, " ");
        TRUE(n < COUNT_OF(v));
        v[n++] = (struct bytes){ at, len };
        at += len + (at[len] == ' ');
    }
    const struct workflow_step s = { .no = no,
                                     .name = bytes_of(name),
                                     .kind = STEP_JOIN,
                                     .says = SAYS_WAIT,
                                     .wait = { .children = v,
                                               .n_children = n,
                                               .children_given = true,
                                               .any = any,
                                               .has_until = seconds != 0,
                                               .in_us = seconds * SEC_US } };
    return pass_steps(p, &s, 1);
}

void end_pass(struct pass *p, enum ending how)
{
    struct finish_item f = { .seq = p->seq, .how = how };
    if (how == END_RESULT)
        f.result = json("\"done\"");
    else
        f.error = BYTES("broke");
    OK(finish_item(p->b, p->token, f), &p->b->err);
}

void restart(struct pass *p, const char *text)
{
    struct workflow_op q = { .what = WORKFLOW_RESTART, .input = json(text) };
    struct op op = { .kind = OP_FEATURE,
                     .feature = {
                         .of = &feature_workflow, .ctx = &q, .token = p->token, .seq = p->seq } };
    OK(one(p->b, &op), &op.err);
}

void child_ends(struct conform_fixture *b, const char *id)
{
    struct claim q = want(b, 10);
    q = claim_as(b, q);
    TRUE(q.n > 0);
    for (size_t i = 0; i < q.n; i++) {
        const char *it = arena_printf(&b->a, "%.*s", BYTES_ARG(q.calls[i].spec.id));
        OK(finish(b, q.token, it, strcmp(it, id) == 0 ? END_RESULT : END_RELEASE), &b->err);
    }
    EQ_STR(pawl_state_name(state_of(b, id)), pawl_state_name(PAWL_COMPLETED));
}

/* ---- From outside ---------------------------------------------------------------------------- */

enum pawl_status change(struct conform_fixture *b, struct workflow_op q)
{
    static struct workflow_op asked;
    asked = q;
    struct op op = { .kind = OP_FEATURE, .feature = { .of = &feature_workflow, .ctx = &asked } };
    return one(b, &op);
}

enum pawl_status signal_to(struct conform_fixture *b, const char *id, const char *name,
                           const char *text, const char *key)
{
    return change(b, (struct workflow_op){ .what = WORKFLOW_SIGNAL,
                                           .id = bytes_of(id),
                                           .name = bytes_of(name),
                                           .value = json(text),
                                           .key = key ? bytes_of(key) : BYTES_NONE });
}

enum pawl_status retry_from(struct conform_fixture *b, const char *id, const char *from)
{
    return change(b, (struct workflow_op){
                         .what = WORKFLOW_RETRY, .id = bytes_of(id), .from = bytes_of(from) });
}

enum pawl_status fork_from(struct conform_fixture *b, const char *id, const char *from,
                           const char *new_id)
{
    return change(b, (struct workflow_op){ .what = WORKFLOW_FORK,
                                           .id = bytes_of(id),
                                           .from = bytes_of(from),
                                           .fork_id = bytes_of(new_id) });
}

enum pawl_status cancel_run(struct conform_fixture *b, const char *id, bool compensate,
                            enum pawl_state *out_state)
{
    enum pawl_status st =
        change(b, (struct workflow_op){
                      .what = WORKFLOW_CANCEL, .id = bytes_of(id), .compensate = compensate });
    if (out_state)
        *out_state = ((const struct workflow_op *)b->op.feature.ctx)->state;
    return st;
}

/* ---- Reads ----------------------------------------------------------------------------------- */

struct workflow_journal journal_read(struct conform_fixture *b, int64_t seq)
{
    struct workflow_journal j;
    OK(workflow_journal_read(b->s, &b->a, seq, 1, (size_t)STEPS_LEN_MAX, 0, &j, &b->err), &b->err);
    return j;
}

const char *journal_of(struct conform_fixture *b, int64_t seq)
{
    struct workflow_journal j = journal_read(b, seq);
    const char *out = "";
    for (size_t i = 0; i < j.n; i++)
        out = arena_printf(&b->a, "%s%s%lld %.*s %s %s %.*s%s", out, i ? "\n" : "",
                           (long long)j.v[i].no, BYTES_ARG(j.v[i].name),
                           step_kind_name((int64_t)j.v[i].kind),
                           step_status_name((int64_t)j.v[i].status), BYTES_ARG(j.v[i].result.bytes),
                           j.v[i].undone ? " undone" : "");
    return out;
}
