/*
 * work.c - POST /v1/work/claim and /v1/work/extend: leases for workers that are HTTP clients
 * (work.h).
 *
 * A client that has gone takes nothing: that is checked right before a claim is posted, and if it
 * left while the claim was being committed, the leased calls are given back at once, uncounted.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/work.h"

#include "api/ask.h"
#include "api/ask_io.h"
#include "api/auth.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/claim_wait.h"
#include "api/internal.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/wait.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "exec/node.h"
#include "exec/waiter.h"
#include "exec/work_signal.h"
#include "model/fields.h"
#include "model/needs.h"

/* ---- What is asked for ----------------------------------------------------------------------- */

#define SECONDS(us) ((us) / SEC_US)

static const struct field claim_fields[] = {
    { "worker", FIELD_NAME, offsetof(struct claim_in, worker), FIELD_NULL,
      .dflt = "the token's name, or http",
      .about = "who works: shown as the node of the calls it takes, and named when it is lost" },
    { "queues", FIELD_ARRAY, offsetof(struct claim_in, queues), FIELD_NULL,
      .dflt = "all that the token may work", .about = "names of queues" },
    { "types", FIELD_ARRAY, offsetof(struct claim_in, types), FIELD_NULL, .dflt = "all",
      .about = "names of types" },
    { "has", FIELD_ARRAY, offsetof(struct claim_in, has), FIELD_NULL, .max = HAS_MAX, .dflt = "[]",
      .unit = "up to 64 names",
      .about = "capabilities of the worker: it gets only calls that need no others. With `steps`, "
               "`v:X` also says that its code is version X" },
    { "steps", FIELD_BOOL, offsetof(struct claim_in, steps), .dflt = "false",
      .about = "true: the worker takes steps. It gets runs that have begun, and all calls come "
               "with `steps`" },
    { "max", FIELD_INT, offsetof(struct claim_in, max), .min = 1, .max = CLAIM_MAX, .dflt = "1",
      .unit = "calls, 1..1000", .about = "how many calls at most" },
    { "wait", FIELD_SECONDS, offsetof(struct claim_in, wait_us), .min = 0,
      .max = SECONDS(WAIT_MAX_US), .dflt = "0", .about = "how long to wait for something to do" },
    { "lease_for", FIELD_SECONDS, offsetof(struct claim_in, lease_us), .min = SECONDS(LEASE_MIN_US),
      .max = SECONDS(LEASE_MAX_US), .dflt = "the setting lease_for, 30",
      .about = "how long the calls are held unless the lease is extended" },
};
static_assert(CLAIM_MAX == 1000, "the table says so");
const struct shape claim_shape = SHAPE("Claim", claim_fields);

void claim_in_init(struct claim_in *in, const struct api *api)
{
    *in = (struct claim_in){ .max = 1, .lease_us = api->lease_us };
}

static enum pawl_status read_names(struct arena *a, const struct json *list, const char *field,
                                   const struct bytes **out, size_t *out_n, struct pawl_err *err)
{
    if (!list)
        return PAWL_OK;
    if (!list->count || list->count > LANES_MAX)
        return err_set(err, PAWL_INVALID, "field \"%s\": has %zu names, not in 1..%d", field,
                       list->count, LANES_MAX);
    struct bytes *v = arena_alloc(a, list->count * sizeof(*v));
    if (!v)
        return err_no_memory(err, "reading a claim");
    size_t n = 0;
    for (const struct json *one = list->first; one; one = one->next) {
        const char *fault = "is not a string";
        if (one->kind == JSON_STRING) {
            v[n] = json_string(a, one);
            fault = v[n].data ? name_fault(v[n]) : "is too long";
        }
        if (fault)
            return err_set(err, PAWL_INVALID, "field \"%s\": name %zu, %.*s, %s", field, n + 1,
                           (int)MIN(one->raw.len, 40), one->raw.data, fault);
        n++;
    }
    *out = v;
    *out_n = n;
    return PAWL_OK;
}

/* For a token that is limited to some queues: check those that it named, or else take all of its
 * own. */
static enum pawl_status allow_queues(const struct principal *who, struct claim *want,
                                     struct pawl_err *err)
{
    for (size_t i = 0; i < want->n_queues; i++)
        if (!principal_works(who, want->queues[i]))
            return err_set(err, PAWL_FORBIDDEN, "token \"%.*s\" may not work queue \"%.*s\"",
                           BYTES_ARG(who->name), BYTES_ARG(want->queues[i]));
    if (!want->n_queues && who->n_queues) {
        want->queues = who->queues;
        want->n_queues = who->n_queues;
    }
    return PAWL_OK;
}

/* The name of the worker. Without one it is the name of the token, and not of the node: the client
 * must not be taken for the server itself. */
static struct bytes worker_name(const struct principal *who, const struct claim_in *in)
{
    if (in->worker.data)
        return in->worker;
    return who->name.len ? who->name : BYTES("http");
}

/* It takes steps. `v:X` in its `has` says besides that its code is version X, whatever its type. */
static enum pawl_status has_steps(struct arena *a, struct claim *want, struct pawl_err *err)
{
    const struct bytes *given = want->has;
    size_t n = want->n_has;
    enum pawl_status st = needs_begin(a, BYTES_NONE, &want->has, &want->n_has, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        char text[NEED_VERSION_LEN_MAX];
        struct bytes version = version_in_has(given[i]);
        const char *fault = version.data ? version_fault(version) : NULL;
        if (!version.data)
            continue;
        if (fault)
            return err_set(err, PAWL_INVALID, "field \"has\": \"%.*s\" names a version, which %s",
                           BYTES_ARG(given[i]), fault);
        struct bytes name = arena_copy(a, version_name(version, BYTES_NONE, text));
        st = name.data ? needs_add(a, name, &want->has, &want->n_has, err)
                       : err_no_memory(err, "reading a claim");
    }
    return st;
}

enum pawl_status claim_read(struct ask *q, const struct claim_in *in, struct claiming *c,
                            struct pawl_err *err)
{
    struct exec *e = q->api->exec;
    struct claim *want = &c->want;
    *want = (struct claim){ .token = token_make(q->api->world),
                            .node = bytes_of(exec_node(e)),
                            .boot = bytes_of(exec_boot(e)),
                            .worker = worker_name(&q->who, in),
                            .max = in->max,
                            .run_max = 1,
                            .lease_us = in->lease_us };
    enum pawl_status st =
        read_names(q->a, in->queues, "queues", &want->queues, &want->n_queues, err);
    if (st == PAWL_OK)
        st = read_names(q->a, in->types, "types", &want->types, &want->n_types, err);
    const struct needs_field has = { "has", HAS_MAX };
    if (st == PAWL_OK)
        st = needs_of_json(q->a, in->has, &has, &want->has, &want->n_has, err);
    if (st == PAWL_OK)
        st = needs_settle(q->a, &has, &want->has, &want->n_has, err);
    if (st == PAWL_OK)
        st = allow_queues(&q->who, want, err);
    c->steps = in->steps;
    return st == PAWL_OK && in->steps ? has_steps(q->a, want, err) : st;
}

/* ---- Looking --------------------------------------------------------------------------------- */

static void looked(struct ask_write *w);

void claim_look(struct claiming *c)
{
    struct exec *e = c->ask->api->exec;
    if (c->line && exec_drained(e)) {
        line_back(c, 0); /* Undraining announces that work may have come. */
        return;
    }
    c->looking = true;
    c->look = (struct ask_write){ .done = looked };
    c->look.job.op = (struct op){ .kind = OP_CLAIM, .claim = c->want };
    c->look.job.weight = 1;
    ask_write(c->ask, &c->look);
}

/* Make the answer "no calls, no error". */
static void forget(struct claiming *c)
{
    struct op *op = &c->look.job.op;
    op->kind = OP_CLAIM;
    op->status = PAWL_OK;
    op->claim.n = 0;
}

static void given_back(struct ask_write *w)
{
    struct claiming *c = (struct claiming *)((char *)w - offsetof(struct claiming, back));
    /* When the give-back was refused, the lease runs out: later, and counted as lost. */
    if (w->job.op.status == PAWL_OK)
        exec_work_came(c->ask->api->exec);
    forget(c);
    c->found(c);
}

void claim_give_back(struct claiming *c)
{
    const struct claim *got = &c->look.job.op.claim;
    struct finish_item *v = arena_zalloc(&c->look.arena, got->n, sizeof(*v));
    if (!v) {
        forget(c);
        c->found(c);
        return;
    }
    for (size_t i = 0; i < got->n; i++)
        v[i] = (struct finish_item){ .seq = got->calls[i].seq,
                                     .id = got->calls[i].spec.id,
                                     .how = END_RELEASE };
    c->back = (struct ask_write){ .done = given_back };
    c->back.job.op =
        (struct op){ .kind = OP_FINISH, .finish = { .token = got->token, .v = v, .n = got->n } };
    c->back.job.weight = got->n;
    ask_write(c->ask, &c->back);
}

static bool unwanted(const struct claiming *c)
{
    return c->unwanted || c->ask->r->gone;
}

static void looked(struct ask_write *w)
{
    struct claiming *c = (struct claiming *)w;
    const struct op *op = &w->job.op;
    bool ok = op->status == PAWL_OK;
    c->looking = false;
    if (op->n_ended) {
        exec_look(c->ask->api->exec, op->ended, op->n_ended);
        exec_work_came(c->ask->api->exec); /* The next calls of their keys may be due now. */
    }
    if (ok && !op->claim.n && c->line && !c->over && !unwanted(c)) {
        int64_t next_due_us = op->claim.next_due_us;
        bool more = op->claim.more;
        ask_write_end(w);
        if (more)
            claim_look(c);
        else
            line_back(c, next_due_us);
        return;
    }
    timed_wait_leave(&c->timed);
    line_leave(c, ok && op->claim.n && op->claim.more);
    if (ok && op->claim.n && unwanted(c))
        claim_give_back(c);
    else if (ok && op->claim.n && c->steps)
        claim_journals(c);
    else
        c->found(c);
}

/* The wait is over. If the claim is looking, its answer decides. */
static void waited(struct timed_wait *p, enum wait_why why)
{
    struct claiming *c = (struct claiming *)((char *)p - offsetof(struct claiming, timed));
    c->over = true;
    c->unwanted |= why == WAIT_REVOKED;
    if (c->looking)
        return;
    line_leave(c, false);
    forget(c);
    c->found(c);
}

void claim_unwant(struct claiming *c)
{
    c->unwanted = true;
    if (!c->line || c->looking)
        return;
    timed_wait_leave(&c->timed);
    line_leave(c, false);
    forget(c);
    c->found(c);
}

void claim_begin(struct ask *q, struct claiming *c, int64_t wait_us)
{
    c->ask = q;
    forget(c);
    if (q->r->gone || (!wait_us && exec_drained(q->api->exec))) {
        c->found(c);
        return;
    }
    if (wait_us) {
        if (!line_enter(c)) {
            c->look.job.op.status = err_no_memory(&c->look.job.op.err, "waiting for work");
            c->found(c);
            return;
        }
        c->looking = true; /* timed_wait_enter() may call waited() at once. */
        c->timed.over = waited;
        timed_wait_enter(q, &c->timed, world_mono(&world_real) + wait_us);
        if (c->over) {
            c->looking = false;
            line_leave(c, false);
            c->found(c);
            return;
        }
    }
    claim_look(c);
}

/* ---- Answering ------------------------------------------------------------------------------- */

/* Append the state that the call finds; `of` NULL, or without a version: there is none. */
static void state_add(struct buf *b, const struct object_state *of)
{
    bool is = of && of->version;
    add_payload(b, "state", "state_base64", is ? of->payload : (struct payload){ 0 }, 0);
    if (is)
        add_int(b, "state_version", of->version);
    else
        add_raw(b, "state_version", BYTES_NONE);
}

void claim_add(struct ask *q, struct buf *b, const struct claiming *c)
{
    const struct claim *got = &c->look.job.op.claim;
    char token[33];
    token_text(got->token, token);
    add_text(b, "lease", got->n ? bytes_of(token) : BYTES_NONE);
    add_time(b, "until", got->n ? got->until_us : 0);
    json_add_name(b, "calls");
    buf_add_char(b, '[');
    for (size_t i = 0; i < got->n; i++) {
        struct call call = got->calls[i];
        json_add_comma(b);
        claim_journal_take(c, i, &call);
        call_add(b, &call, ask_show(q, SHOW_ALL) | SHOW_OPEN);
        add_int(b, "attempt", call.counts.attempts + call.counts.lost + 1);
        state_add(b, got->states ? &got->states[i] : NULL);
        claim_journal_add(b, c, i);
        buf_add_char(b, '}');
    }
    buf_add_char(b, ']');
}

void claim_end(struct claiming *c)
{
    ask_read_end(&c->read);
    ask_write_end(&c->back);
    ask_write_end(&c->look);
}

static void claim_found(struct claiming *c)
{
    struct ask *q = c->ask;
    const struct op *op = &c->look.job.op;
    if (op->status != PAWL_OK) {
        struct pawl_err err = op->err;
        claim_end(c);
        ask_fail(q, &err);
        return;
    }
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    claim_add(q, b, c);
    buf_add_char(b, '}');
    claim_end(c);
    ask_reply(q, 200, b);
}

void route_claim(struct ask *q)
{
    struct claim_in in;
    struct pawl_err err;
    claim_in_init(&in, q->api);
    struct claiming *c = arena_zalloc(q->a, 1, sizeof(*c));
    enum pawl_status st = c ? PAWL_OK : err_no_memory(&err, "reading a claim");
    if (st == PAWL_OK)
        st = body_object(q, &in, NULL, &err);
    if (st == PAWL_OK)
        st = claim_read(q, &in, c, &err);
    if (st != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    c->found = claim_found;
    claim_begin(q, c, in.wait_us);
}

/* ---- Extend ---------------------------------------------------------------------------------- */

struct extend_in {
    struct bytes lease;
    int64_t lease_us;
};

static const struct field extend_fields[] = {
    { "lease", FIELD_LEASE, offsetof(struct extend_in, lease), FIELD_MUST,
      .about = "as the claim gave it" },
    { "lease_for", FIELD_SECONDS, offsetof(struct extend_in, lease_us),
      .min = SECONDS(LEASE_MIN_US), .max = SECONDS(LEASE_MAX_US),
      .dflt = "the setting lease_for, 30", .about = "how long from now" },
};
const struct shape extend_shape = SHAPE("Extend", extend_fields);

enum pawl_status lease_read(struct bytes text, struct token *out, struct pawl_err *err)
{
    /* All zeros would mean no lease at all (feature_op.token). */
    if (token_parse(text, out) && !token_none(*out))
        return PAWL_OK;
    return err_set(err, PAWL_LOST_LEASE,
                   "lease \"%.*s\" is malformed; expected the 32 hex digits a claim gave",
                   (int)MIN(text.len, 40), text.data);
}

static void ids_add(struct buf *b, const char *name, const struct bytes *v, size_t n)
{
    json_add_name(b, name);
    buf_add_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        json_add_comma(b);
        json_add_string(b, v[i]);
    }
    buf_add_char(b, ']');
}

static void extended(struct ask_write *w)
{
    struct ask *q = w->ask;
    const struct op *op = &w->job.op;
    if (op->n_ended)
        exec_look(q->api->exec, op->ended, op->n_ended);
    if (op->n_ended || op->extend.n_timed_out)
        exec_work_came(q->api->exec); /* a timed out call may be due again, and its key free */
    if (op->status != PAWL_OK) {
        struct pawl_err err = op->err;
        ask_write_end(w);
        ask_fail(q, &err);
        return;
    }
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    add_time(b, "until", op->extend.until_us);
    ids_add(b, "cancelled", op->extend.cancelled, op->extend.n_cancelled);
    ids_add(b, "timed_out", op->extend.timed_out, op->extend.n_timed_out);
    buf_add_char(b, '}');
    ask_write_end(w);
    ask_reply(q, 200, b);
}

void route_extend(struct ask *q)
{
    struct extend_in in = { .lease_us = q->api->lease_us };
    struct pawl_err err;
    struct ask_write *w = arena_zalloc(q->a, 1, sizeof(*w));
    enum pawl_status st = w ? PAWL_OK : err_no_memory(&err, "reading an extend");
    if (st == PAWL_OK)
        st = body_object(q, &in, NULL, &err);
    if (st == PAWL_OK)
        st = lease_read(in.lease, &w->job.op.extend.token, &err);
    if (st != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    w->job.op.kind = OP_EXTEND;
    w->job.op.extend.lease_us = in.lease_us;
    w->job.weight = 1;
    w->done = extended;
    ask_write(q, w);
}
