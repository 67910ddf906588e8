/*
 * steps.c - workers over HTTP that take steps: POST and GET /v1/work/steps, and the journals that
 * come with a claim.
 *
 * Which pass undoes is never asked of the worker: a pass that was claimed before the undoing was
 * decided goes on as it began, and its next operation ends it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/ask_io.h"
#include "api/auth.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/internal.h"
#include "api/list.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/step_json.h"
#include "api/work.h"
#include "base/limits.h"
#include "exec/work_signal.h"
#include "model/cursor.h"

/* Results of the steps of all calls of one claim. */
#define CLAIM_STEPS_LEN_MAX ((size_t)64 << 20)

/* ---- Storing --------------------------------------------------------------------------------- */

struct steps_body {
    struct bytes lease, id;
    struct steps_in in;
};

static const struct field steps_fields[] = {
    { "lease", FIELD_LEASE, offsetof(struct steps_body, lease), FIELD_MUST,
      .about = "as the claim gave it" },
    { "id", FIELD_NAME, offsetof(struct steps_body, id), FIELD_MUST,
      .about = "which call of the lease" },
    { "steps", FIELD_ARRAY, offsetof(struct steps_body, in.steps), .shape = &step_shape,
      .unit = "up to 1000", .dflt = "[]", .about = "what is said of its steps" },
    { "wait", FIELD_OBJECT, offsetof(struct steps_body, in.wait), FIELD_NULL, .shape = &wait_shape,
      .about = "what settles the one step that says nothing else" },
    { "publish", FIELD_OBJECT, offsetof(struct steps_body, in.publish), FIELD_NULL,
      .shape = &any_shape, .about = "values by name, readable from outside while it runs" },
};
const struct shape steps_shape = SHAPE("Steps", steps_fields);

struct steps_write {
    struct ask_write w; /* first */
    struct workflow_op op;
};

static void stored_add(struct buf *b, const struct workflow_steps *s)
{
    json_add_name(b, "steps");
    buf_add_char(b, '[');
    for (size_t i = 0; i < s->n; i++) {
        const struct workflow_step *v = &s->v[i];
        if (!v->status)
            continue; /* not stored: the run undoes, and this pass does not know */
        json_add_comma(b);
        step_add(b, &(struct workflow_row){ .no = v->no,
                                            .name = v->stored_name,
                                            .kind = v->kind,
                                            .status = v->status,
                                            .result = v->result_out,
                                            .error = v->error_out,
                                            .attempts = v->attempts,
                                            .until_us = v->until_us,
                                            .completed_us = v->completed_us });
    }
    buf_add_char(b, ']');
}

static void steps_stored(struct ask_write *aw)
{
    struct ask *q = aw->ask;
    const struct op *op = &aw->job.op;
    const struct workflow_op *w = op->feature.ctx;
    struct exec *e = q->api->exec;
    if (op->status != PAWL_OK) {
        struct pawl_err err = op->err;
        err.status = op->status;
        ask_write_end(aw);
        ask_fail(q, &err);
        return;
    }
    if (w->steps.diverged) {
        const char *why = arena_text(q->a, w->steps.why);
        struct bytes id = arena_copy(q->a, op->feature.id);
        ask_write_end(aw);
        ask_refuse(q, &(struct refusal){
                          .status = PAWL_STATE, .text = why, .id = id, .state = PAWL_DEAD_LETTER });
        return;
    }
    if (w->steps.suspended && w->steps.run_at_us)
        exec_work_due(e, w->steps.run_at_us);
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    if (w->steps.suspended)
        add_bool(b, "suspended", true);
    else
        stored_add(b, &w->steps);
    buf_add_char(b, '}');
    ask_write_end(aw);
    ask_reply(q, 200, b);
}

static enum pawl_status steps_read(struct ask *q, struct steps_write *s, struct pawl_err *err)
{
    struct steps_body in = { 0 };
    struct feature_op *f = &s->w.job.op.feature;
    s->op = (struct workflow_op){ .what = WORKFLOW_STEPS,
                                  .steps = { .by_lease = true,
                                             .pin = exec_conf_of(q->api->exec)->pin_versions } };
    s->w.job.op = (struct op){ .kind = OP_FEATURE };
    enum pawl_status st = body_object(q, &in, NULL, err);
    if (st == PAWL_OK)
        st = steps_of_json(q, &in.in, false, &s->op.steps, err);
    if (st == PAWL_OK && !s->op.steps.n && !s->op.steps.n_published)
        st = err_set(err, PAWL_INVALID, "field \"steps\": there is nothing to store");
    /* The lease is checked last: a request that is malformed elsewhere is INVALID first. */
    if (st == PAWL_OK)
        st = lease_read(in.lease, &f->token, err);
    f->of = &feature_workflow;
    f->ctx = &s->op;
    f->id = in.id;
    return st;
}

void route_steps(struct ask *q)
{
    struct pawl_err err;
    struct steps_write *s = arena_zalloc(q->a, 1, sizeof *s);
    enum pawl_status st = s ? PAWL_OK : err_no_memory(&err, "reading steps");
    if (st == PAWL_OK)
        st = steps_read(q, s, &err);
    if (st != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    for (size_t i = 0; i < s->op.steps.n; i++)
        s->w.job.len += s->op.steps.v[i].result.bytes.len;
    s->w.job.weight = s->op.steps.n + 1;
    s->w.done = steps_stored;
    ask_write(q, &s->w);
}

/* ---- Reading further pages ------------------------------------------------------------------- */

struct page_read {
    struct ask_read read; /* first */
    struct token token;
    struct bytes id;
    int64_t from_no;
    struct workflow_journal j;
};

static enum pawl_status page_work(struct ask_read *rd, struct store *s)
{
    struct page_read *r = (struct page_read *)rd;
    int64_t seq, claimed_us;
    enum pawl_status st =
        workflow_held(s, &rd->arena, r->token, r->id, &seq, &claimed_us, &rd->err);
    return st == PAWL_OK ? workflow_journal_read(s, &rd->arena, seq, r->from_no, STEPS_PAGE_LEN_MAX,
                                                 -1, &r->j, &rd->err)
                         : st;
}

static void page_done(struct ask_read *rd)
{
    struct page_read *r = (struct page_read *)rd;
    struct ask *q = rd->ask;
    if (rd->status != PAWL_OK) {
        struct pawl_err err = rd->err;
        err.status = rd->status;
        ask_read_end(rd);
        ask_fail(q, &err);
        return;
    }
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    steps_page_add(b, r->j.v, r->j.n, r->j.next);
    buf_add_char(b, '}');
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_steps_page(struct ask *q)
{
    struct value lease = ask_query(q, "lease"), id = ask_query(q, "id");
    struct value cursor = ask_query(q, "cursor");
    struct pawl_err err;
    struct page_read *r = arena_zalloc(q->a, 1, sizeof *r);
    if (!r) {
        ask_no_memory(q);
        return;
    }
    if (!lease.given || !id.given) {
        ask_refusef(q, PAWL_INVALID, "field \"%s\": is missing", lease.given ? "id" : "lease");
        return;
    }
    r->from_no = 1;
    if (cursor.given && !cursor_read(cursor.text, &r->from_no)) {
        refuse_cursor(q, cursor.text);
        return;
    }
    if (lease_read(lease.text, &r->token, &err) != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    r->id = id.text;
    r->read.work = page_work;
    r->read.done = page_done;
    ask_read(q, &r->read);
}

/* ---- Claims ---------------------------------------------------------------------------------- */

static struct claiming *claiming_of(struct ask_read *rd)
{
    return (struct claiming *)((char *)rd - offsetof(struct claiming, read));
}

static enum pawl_status journals_work(struct ask_read *rd, struct store *s)
{
    struct claiming *c = claiming_of(rd);
    const struct claim *got = &c->look.job.op.claim;
    size_t left = CLAIM_STEPS_LEN_MAX;
    enum pawl_status st = PAWL_OK;
    struct workflow_journal *v = arena_zalloc(&rd->arena, got->n, sizeof *v);
    if (!v)
        return err_no_memory(&rd->err, "journals");
    for (size_t i = 0; i < got->n && st == PAWL_OK; i++) {
        if (!got->calls[i].flow)
            continue;
        st = workflow_journal_read(s, &rd->arena, got->calls[i].seq, 1,
                                   MIN(left, (size_t)STEPS_PAGE_LEN_MAX), -1, &v[i], &rd->err);
        for (size_t k = 0; k < v[i].n; k++)
            left -= MIN(left, v[i].v[k].result.bytes.len);
    }
    c->journals = v;
    return st;
}

/* Without its journal a run cannot go on: it is given back, and claimed again soon. */
static void journals_done(struct ask_read *rd)
{
    struct claiming *c = claiming_of(rd);
    if (rd->status != PAWL_OK || c->unwanted || c->ask->r->gone)
        claim_give_back(c);
    else
        c->found(c);
}

void claim_journals(struct claiming *c)
{
    const struct claim *got = &c->look.job.op.claim;
    bool any = false;
    for (size_t i = 0; i < got->n; i++)
        any = any || got->calls[i].flow;
    if (!any) {
        c->found(c);
        return;
    }
    c->read.work = journals_work;
    c->read.done = journals_done;
    ask_read(c->ask, &c->read);
}

/* Does this pass undo? One that was claimed before that was decided does not. */
static bool undoes(const struct workflow_journal *j, const struct call *call)
{
    return j->undoing_us && call->claimed_us >= j->undoing_us;
}

void claim_journal_take(const struct claiming *c, size_t i, struct call *call)
{
    const struct workflow_journal *j = c->journals ? &c->journals[i] : NULL;
    if (!j || !j->seq)
        return;
    if (j->has_input)
        call->spec.input = j->input;
    if (!undoes(j, call))
        return;
    call->error = j->error;
    call->cancel_requested = j->cancelled;
}

void claim_journal_add(struct buf *b, const struct claiming *c, size_t i)
{
    static const struct workflow_journal none;
    const struct workflow_journal *j = c->journals ? &c->journals[i] : &none;
    const struct call *call = &c->look.job.op.claim.calls[i];
    if (!c->steps)
        return;
    steps_page_add(b, j->v, j->n, j->next);
    add_bool(b, "undoing", undoes(j, call));
    add_bool(b, "doubt", undoes(j, call) && j->doubt);
}
