/*
 * finish.c - POST /v1/work/finish: how the attempts of a lease ended, the calls they send, and a
 * claim for more work.
 *
 * All results are stored together or none. A claim in the same request is posted right behind the
 * finish and shares its commit. The claim's token is derived from the request itself, so that the
 * same finish sent again finds the same lease and gets the same answer.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/ask_io.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/internal.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/step_json.h"
#include "api/work.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "exec/waiter.h"
#include "exec/work_signal.h"
#include "exec/write_job.h"
#include "model/fields.h"
#include "model/spec_json.h"

/* ---- What is said of one call ---------------------------------------------------------------- */

struct result_in {
    struct bytes id, result, result_base64, error, state, state_base64;
    bool retry, release, cancelled, state_delete;
    int64_t retry_in_us;
    const struct json *calls;
    struct bytes restart;
    struct steps_in steps;
};

/* In the order of the table, for the bits of `given`. */
enum {
    R_ID,
    R_RESULT,
    R_BASE64,
    R_ERROR,
    R_RETRY,
    R_RETRY_IN,
    R_RELEASE,
    R_CANCELLED,
    R_STATE,
    R_STATE_BASE64,
    R_STATE_DELETE,
    R_CALLS,
    R_RESTART,
    R_STEPS,
    R_PUBLISH
};

#define AT(member) offsetof(struct result_in, member)
static const struct field result_fields[] = {
    [R_ID] = { "id", FIELD_NAME, AT(id), .flags = FIELD_MUST, .about = "which call of the lease" },
    [R_RESULT] = { "result", FIELD_JSON, AT(result), .about = "completed, with this result" },
    [R_BASE64] = { "result_base64", FIELD_BASE64, AT(result_base64),
                   .about = "completed, with these bytes" },
    [R_ERROR] = { "error", FIELD_TEXT, AT(error), .unit = "cut at 4 KiB",
                  .about = "an error; counts as an attempt" },
    [R_RETRY] = { "retry", FIELD_BOOL, AT(retry), .dflt = "true",
                  .about = "with error; false: failed for good" },
    [R_RETRY_IN] = { "retry_in", FIELD_SECONDS, AT(retry_in_us), .max = DURATION_MAX_US / SEC_US,
                     .dflt = "the call's backoff",
                     .about = "with error: when it is attempted again; alone: later, counts as "
                              "nothing" },
    [R_RELEASE] = { "release", FIELD_BOOL, AT(release), .dflt = "false",
                    .about = "true: give it back, counts as nothing" },
    [R_CANCELLED] = { "cancelled", FIELD_BOOL, AT(cancelled), .dflt = "false",
                      .about = "true: it stopped because it was to be cancelled" },
    [R_STATE] = { "state", FIELD_JSON, AT(state), .dflt = "the state stays as it is",
                  .about = "with a result of a call that has a key: its object's new state" },
    [R_STATE_BASE64] = { "state_base64", FIELD_BASE64, AT(state_base64),
                         .about = "these bytes, instead of state" },
    [R_STATE_DELETE] = { "state_delete", FIELD_BOOL, AT(state_delete), .dflt = "false",
                         .about = "true: its object is deleted, instead of state" },
    [R_CALLS] = { "calls", FIELD_ARRAY, AT(calls), .shape = &spec_shape, .unit = "at most 10000",
                  .dflt = "[]",
                  .about = "calls to send, accepted in the same commit; with a result only. Their "
                           "ids default to ID.1, ID.2 ..., their parent to ID" },
    [R_RESTART] = { "restart", FIELD_JSON, AT(restart),
                    .about = "a workflow: forget its steps and begin again with this input" },
    [R_STEPS] = { "steps", FIELD_ARRAY, AT(steps.steps), .shape = &step_shape, .dflt = "[]",
                  .unit = "up to 1000",
                  .about = "a workflow: steps that have ended and were not stored yet" },
    [R_PUBLISH] = { "publish", FIELD_OBJECT, AT(steps.publish), FIELD_NULL, .shape = &any_shape,
                    .about = "a workflow: values by name" },
};
#undef AT
static const struct shape result_shape = SHAPE("FinishResult", result_fields);

#define HAS(bit) ((given >> (bit)&1) != 0)

/* Read what the result does to the state of the call's object. */
static enum pawl_status state_of(const struct result_in *in, uint64_t given,
                                 struct finish_item *out, struct pawl_err *err)
{
    int n = HAS(R_STATE) + HAS(R_STATE_BASE64) + in->state_delete;
    const char *field = in->state_delete ? "state_delete" : HAS(R_STATE) ? "state" : "state_base64";
    if (!n)
        return PAWL_OK;
    if (n > 1)
        return err_set(err, PAWL_INVALID,
                       "call \"%.*s\": send only one of state, state_base64, state_delete",
                       BYTES_ARG(in->id));
    if (out->how != END_RESULT)
        return err_set(err, PAWL_INVALID,
                       "field \"%s\": call \"%.*s\" can set a state only together with a result",
                       field, BYTES_ARG(in->id));
    out->state_do = in->state_delete ? STATE_DELETE : STATE_SET;
    if (HAS(R_STATE))
        out->object = (struct payload){ PAWL_JSON, in->state };
    else if (HAS(R_STATE_BASE64))
        out->object = (struct payload){ PAWL_BYTES, in->state_base64 };
    if (out->object.bytes.len > STATE_LEN_MAX)
        return err_set(err, PAWL_TOO_LARGE, "call \"%.*s\": its state is %zu bytes, limit %d",
                       BYTES_ARG(in->id), out->object.bytes.len, STATE_LEN_MAX);
    return PAWL_OK;
}

/* Read how the attempt ended: exactly one of the endings must be given. */
static enum pawl_status ending_of(const struct result_in *in, uint64_t given,
                                  struct finish_item *out, struct pawl_err *err)
{
    bool later = HAS(R_RETRY_IN) && !HAS(R_ERROR);
    int n = HAS(R_RESULT) + HAS(R_BASE64) + HAS(R_ERROR) + later + in->release + in->cancelled +
            HAS(R_RESTART);
    if (n != 1)
        return err_set(
            err, PAWL_INVALID,
            "call \"%.*s\": send one of result, result_base64, error, retry_in, release, "
            "cancelled, restart",
            BYTES_ARG(in->id));
    if (HAS(R_RETRY) && !HAS(R_ERROR))
        return err_set(err, PAWL_INVALID,
                       "field \"retry\": call \"%.*s\" has no error to be retried",
                       BYTES_ARG(in->id));
    if (HAS(R_RETRY) && !in->retry && HAS(R_RETRY_IN))
        return err_set(err, PAWL_INVALID,
                       "field \"retry_in\": call \"%.*s\" also says \"retry\" false",
                       BYTES_ARG(in->id));
    if (HAS(R_ERROR)) {
        out->how = HAS(R_RETRY) && !in->retry ? END_REFUSE : END_ERROR;
        out->retry_in_us = HAS(R_RETRY_IN) ? in->retry_in_us : -1;
        out->error = utf8_cut(in->error, ERROR_LEN_MAX);
    } else if (later) {
        out->how = END_LATER;
        out->retry_in_us = in->retry_in_us;
    } else if (HAS(R_RESTART)) {
        out->how = END_LATER;
    } else if (in->release || in->cancelled) {
        out->how = in->release ? END_RELEASE : END_CANCELLED;
    } else {
        out->how = END_RESULT;
        out->result = HAS(R_RESULT) ? (struct payload){ PAWL_JSON, in->result }
                                    : (struct payload){ PAWL_BYTES, in->result_base64 };
    }
    if (out->result.bytes.len > RESULT_LEN_MAX)
        return err_set(err, PAWL_TOO_LARGE, "call \"%.*s\": its result is %zu bytes, limit %d",
                       BYTES_ARG(in->id), out->result.bytes.len, RESULT_LEN_MAX);
    return state_of(in, given, out, err);
}
#undef HAS

/* Read one call that the result sends: its parent is the sending call, and its id derives from that
 * unless it has one. */
static enum pawl_status read_send(struct ask *q, const struct json *one, struct bytes id, size_t n,
                                  struct call_spec *out, struct pawl_err *err)
{
    if (one->kind != JSON_OBJECT)
        return err_set(err, PAWL_INVALID, "field \"calls\": item %zu is %.*s, not an object", n,
                       (int)MIN(one->raw.len, 40), one->raw.data);
    enum pawl_status st = spec_read_json(q->a, one, q->api->call_timeout_us, out, err);
    if (st != PAWL_OK)
        return st;
    if (!out->id.data)
        out->id = bytes_of(arena_printf(q->a, "%.*s.%zu", BYTES_ARG(id), n));
    if (!out->id.data)
        return err_no_memory(err, "reading a finish");
    if (!out->parent.data)
        out->parent = id;
    out->client = q->who.name;
    return call_spec_settle(q->a, q->api->world, out, err);
}

static enum pawl_status read_sends(struct ask *q, const struct json *list, struct finish_item *out,
                                   struct pawl_err *err)
{
    if (!list || !list->count)
        return PAWL_OK;
    if (out->how != END_RESULT)
        return err_set(err, PAWL_INVALID,
                       "field \"calls\": call \"%.*s\" can send calls only together with a result",
                       BYTES_ARG(out->id));
    if (list->count > SEND_MAX)
        return err_set(err, PAWL_INVALID, "field \"calls\": call \"%.*s\" sends %zu, limit %d",
                       BYTES_ARG(out->id), list->count, SEND_MAX);
    struct call_spec *v = arena_alloc(q->a, list->count * sizeof(*v));
    enum pawl_status st = v ? PAWL_OK : err_no_memory(err, "reading a finish");
    for (const struct json *one = list->first; one && st == PAWL_OK; one = one->next) {
        st = read_send(q, one, out->id, out->n_send + 1, &v[out->n_send], err);
        if (st == PAWL_OK)
            out->n_send++;
    }
    out->send = v;
    return st;
}

/* What is stored of a workflow together with the end of its attempt. */
static enum pawl_status read_flow(struct ask *q, const struct result_in *in, uint64_t given,
                                  struct finish_item *out, struct pawl_err *err)
{
    bool restarts = given >> R_RESTART & 1, stores = in->steps.steps || in->steps.publish;
    if (!restarts && !stores)
        return PAWL_OK;
    if (restarts && stores)
        return err_set(err, PAWL_INVALID,
                       "field \"restart\": call \"%.*s\": a restart forgets its steps: send "
                       "neither steps nor publish",
                       BYTES_ARG(in->id));
    if (restarts && in->restart.len > q->api->input_len_max)
        return err_set(err, PAWL_TOO_LARGE, "field \"restart\": is %zu bytes, limit %zu",
                       in->restart.len, q->api->input_len_max);
    struct feature_op *f = arena_zalloc(q->a, 1, sizeof *f);
    struct workflow_op *w = arena_zalloc(q->a, 1, sizeof *w);
    if (!f || !w)
        return err_no_memory(err, "reading a finish");
    *f = (struct feature_op){ .of = &feature_workflow, .ctx = w };
    *w = (struct workflow_op){ .what = restarts ? WORKFLOW_RESTART : WORKFLOW_STEPS,
                               .steps = { .by_lease = true,
                                          .ends = true,
                                          .pin = exec_conf_of(q->api->exec)->pin_versions },
                               .input = { PAWL_JSON, in->restart } };
    out->with = f;
    return steps_of_json(q, &in->steps, true, &w->steps, err);
}

static enum pawl_status read_result(struct ask *q, const struct json *one, struct finish_item *out,
                                    struct pawl_err *err)
{
    struct result_in in = { 0 };
    uint64_t given;
    if (one->kind != JSON_OBJECT)
        return err_set(err, PAWL_INVALID, "field \"results\": an item is %.*s, not an object",
                       (int)MIN(one->raw.len, 40), one->raw.data);
    enum pawl_status st = fields_read(q->a, one, &result_shape, &in, &given, err);
    if (st != PAWL_OK)
        return st;
    *out = (struct finish_item){ .id = in.id };
    st = ending_of(&in, given, out, err);
    if (st == PAWL_OK)
        st = read_flow(q, &in, given, out, err);
    return st == PAWL_OK ? read_sends(q, in.calls, out, err) : st;
}

/* ---- The request ----------------------------------------------------------------------------- */

struct finish_in {
    struct bytes lease;
    const struct json *results, *claim;
};

static const struct field finish_fields[] = {
    { "lease", FIELD_LEASE, offsetof(struct finish_in, lease), FIELD_MUST,
      .about = "as the claim gave it" },
    { "results", FIELD_ARRAY, offsetof(struct finish_in, results), FIELD_MUST,
      .about = "how the calls ended; the rest of the lease may follow", .shape = &result_shape,
      .unit = "1..1000" },
    { "claim", FIELD_OBJECT, offsetof(struct finish_in, claim), FIELD_NULL,
      .about = "take more work in the same commit", .shape = &claim_shape },
};
const struct shape finish_shape = SHAPE("Finish", finish_fields);

/* One finish request until it is answered. */
struct finishing {
    struct ask_write w; /* first */
    struct claiming claim;
    bool claims;            /* the request has a claim */
    bool finished, claimed; /* the finish is answered; the claim is answered */
    int64_t wait_us;
};

/* Derive the claim's token from the lease and the body: the same request sent again means the same
 * claim. */
static enum pawl_status claim_token(struct ask *q, struct finishing *f, struct pawl_err *err)
{
    unsigned char sum[32];
    struct bytes parts[] = { BYTES("claim of a finish"),
                             { (const char *)f->w.job.op.finish.token.b, 16 },
                             q->r->body };
    if (!digest_parts(parts, COUNT_OF(parts), sum))
        return err_no_memory(err, "reading a finish");
    memcpy(f->claim.want.token.b, sum, sizeof(f->claim.want.token.b));
    return PAWL_OK;
}

static enum pawl_status read_claim(struct ask *q, const struct json *object, struct finishing *f,
                                   struct pawl_err *err)
{
    struct claim_in in;
    if (!object)
        return PAWL_OK;
    claim_in_init(&in, q->api);
    f->claims = true;
    enum pawl_status st = fields_read(q->a, object, &claim_shape, &in, NULL, err);
    if (st == PAWL_OK)
        st = claim_read(q, &in, &f->claim, err);
    if (st == PAWL_OK)
        st = claim_token(q, f, err);
    f->wait_us = in.wait_us;
    return st;
}

static enum pawl_status read_results(struct ask *q, const struct json *list, struct finish *out,
                                     struct pawl_err *err)
{
    if (!list->count || list->count > CLAIM_MAX)
        return err_set(err, PAWL_INVALID, "field \"results\": has %zu items, not in 1..%d",
                       list->count, CLAIM_MAX);
    struct finish_item *v = arena_zalloc(q->a, list->count, sizeof(*v));
    enum pawl_status st = v ? PAWL_OK : err_no_memory(err, "reading a finish");
    out->v = v;
    for (const struct json *one = list->first; one && st == PAWL_OK; one = one->next)
        st = read_result(q, one, &v[out->n++], err);
    return st;
}

static enum pawl_status read_finish(struct ask *q, struct finishing *f, struct pawl_err *err)
{
    struct finish_in in = { 0 };
    struct op *op = &f->w.job.op;
    op->kind = OP_FINISH;
    enum pawl_status st = body_object(q, &in, NULL, err);
    if (st == PAWL_OK)
        st = read_results(q, in.results, &op->finish, err);
    /* The lease is checked last: a request that is malformed elsewhere is INVALID first. */
    struct pawl_err lost = { 0 };
    if (st == PAWL_OK)
        lost.status = lease_read(in.lease, &op->finish.token, &lost);
    if (st == PAWL_OK)
        st = read_claim(q, in.claim, f, err);
    if (st == PAWL_OK && lost.status != PAWL_OK) {
        *err = lost;
        st = lost.status;
    }
    return st;
}

/* ---- Answering ------------------------------------------------------------------------------- */

void finish_told(struct exec *e, const struct finish *f)
{
    int64_t due_us = INT64_MAX;
    for (size_t i = 0; i < f->n; i++) {
        if (pawl_state_ended(f->v[i].state))
            exec_look(e, &f->v[i].id, 1);
        else
            due_us = MIN(due_us, f->v[i].run_at_us);
    }
    if (due_us == INT64_MAX)
        return; /* exec itself looks for the next call of a key that became free. */
    exec_work_due(e, due_us);
}

static void finish_end(struct finishing *f)
{
    claim_end(&f->claim);
    ask_write_end(&f->w);
}

/* A workflow that goes on is processing, also while it waits. */
static enum pawl_state state_shown(const struct finish_item *it)
{
    return it->flow && it->state == PAWL_PENDING ? PAWL_PROCESSING : it->state;
}

static void answer(struct ask *q, struct finishing *f)
{
    const struct op *op = &f->w.job.op;
    if (op->status != PAWL_OK) {
        struct pawl_err err = op->err;
        finish_end(f);
        ask_fail(q, &err);
        return;
    }
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"results\":[");
    for (size_t i = 0; i < op->finish.n; i++) {
        json_add_comma(b);
        buf_add_char(b, '{');
        add_text(b, "id", op->finish.v[i].id);
        add_text(b, "status", bytes_of(pawl_state_name(state_shown(&op->finish.v[i]))));
        buf_add_char(b, '}');
    }
    buf_add_char(b, ']');
    add_time(b, "until", op->finish.until_us);
    if (f->claims) {
        json_add_name(b, "claim");
        buf_add_char(b, '{');
        claim_add(q, b, &f->claim);
        buf_add_char(b, '}');
    }
    buf_add_char(b, '}');
    finish_end(f);
    ask_reply(q, 200, b);
}

static void claim_found(struct claiming *c)
{
    struct finishing *f = (struct finishing *)((char *)c - offsetof(struct finishing, claim));
    /* The finish is what counts: it is answered even when the claim failed. */
    if (c->look.job.op.status != PAWL_OK)
        c->look.job.op.claim.n = 0;
    f->claimed = true;
    if (f->finished)
        answer(c->ask, f);
}

static void finished(struct ask_write *w)
{
    struct finishing *f = (struct finishing *)w;
    if (w->job.op.status == PAWL_OK)
        finish_told(w->ask->api->exec, &w->job.op.finish);
    else
        claim_unwant(&f->claim); /* The finish was not stored, so the claim must take nothing. */
    f->finished = true;
    if (!f->claims || f->claimed)
        answer(w->ask, f);
}

void route_finish(struct ask *q)
{
    struct pawl_err err;
    struct finishing *f = arena_zalloc(q->a, 1, sizeof(*f));
    enum pawl_status st = f ? PAWL_OK : err_no_memory(&err, "reading a finish");
    if (st == PAWL_OK)
        st = read_finish(q, f, &err);
    if (st != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    struct write_job *j = &f->w.job;
    for (size_t i = 0; i < j->op.finish.n; i++) {
        const struct finish_item *it = &j->op.finish.v[i];
        j->weight += 1 + it->n_send;
        j->len += it->result.bytes.len + it->object.bytes.len;
    }
    f->w.done = finished;
    ask_write(q, &f->w);
    if (!f->claims)
        return;
    f->claim.found = claim_found;
    claim_begin(q, &f->claim, f->wait_us);
}
