/*
 * work.c - claim, extend and finish for hosts that run their own loop.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "exec/work_signal.h"
#include "exec/write_job.h"
#include "exec/waiter.h"
#include "lib/lib.h"
#include "model/needs.h"

/* ---- Claim ----------------------------------------------------------------------------------- */

struct lease_holder {
    struct pawl_lease shown; /* first: the caller's pointer is also the one to free */
    struct arena arena;
};

static enum pawl_status read_names(struct arena *a, const char *const *given, size_t n,
                                   const char *field, const struct bytes **out,
                                   struct pawl_err *err)
{
    if (!n)
        return PAWL_OK;
    if (n > LANES_MAX || !given)
        return err_set(err, PAWL_INVALID, "field \"%s\": %zu names, limit %d", field, n, LANES_MAX);
    struct bytes *v = arena_alloc(a, n * sizeof(*v));
    if (!v)
        return err_no_memory(err, "reading a claim");
    for (size_t i = 0; i < n; i++) {
        v[i] = bytes_of(given[i]);
        const char *fault = name_fault(v[i]);
        if (fault)
            return err_set(err, PAWL_INVALID, "field \"%s\": a name %s", field, fault);
    }
    *out = v;
    return PAWL_OK;
}

static enum pawl_status read_has(struct arena *a, const struct pawl_claim *g, struct claim *c,
                                 struct pawl_err *err)
{
    if (g->n_has > HAS_MAX || (g->n_has && !g->has))
        return err_set(err, PAWL_INVALID, "field \"has\": has %zu names, limit %d", g->n_has,
                       HAS_MAX);
    struct bytes *v = arena_alloc(a, (g->n_has + 1) * sizeof(*v));
    if (!v)
        return err_no_memory(err, "reading a claim");
    for (size_t i = 0; i < g->n_has; i++)
        v[i] = g->has[i] ? bytes_of(g->has[i]) : BYTES("");
    c->has = v;
    c->n_has = g->n_has;
    return needs_settle(a, &(struct needs_field){ "has", HAS_MAX }, &c->has, &c->n_has, err);
}

static enum pawl_status check_claim(const struct pawl_claim *g, struct claim *c,
                                    struct pawl_err *err)
{
    if (g->max < 0 || g->max > CLAIM_MAX)
        return err_set(err, PAWL_INVALID, "field \"max\": %d, must be 1 to %d", g->max, CLAIM_MAX);
    if (g->wait_us < 0 || g->wait_us > WAIT_MAX_US)
        return err_set(err, PAWL_INVALID, "field \"wait\": must be 0 to %d s",
                       (int)(WAIT_MAX_US / SEC_US));
    c->max = g->max ? g->max : 1;
    c->lease_us = g->lease_us ? g->lease_us : 30 * SEC_US;
    if (c->lease_us < LEASE_MIN_US || c->lease_us > LEASE_MAX_US)
        return err_set(err, PAWL_INVALID, "field \"lease_for\": must be 1 s to 1 h");
    const char *fault = g->worker ? name_fault(bytes_of(g->worker)) : NULL;
    if (fault)
        return err_set(err, PAWL_INVALID, "field \"worker\": %s", fault);
    c->worker = bytes_of(g->worker);
    return PAWL_OK;
}

static enum pawl_status read_claim(struct pawl *p, struct arena *a, const struct pawl_claim *g,
                                   struct claim *c, struct pawl_err *err)
{
    *c = (struct claim){ .node = bytes_of(exec_node(p->e)), .boot = bytes_of(exec_boot(p->e)) };
    enum pawl_status st = check_claim(g, c, err);
    if (st == PAWL_OK)
        st = read_names(a, g->queues, g->n_queues, "queues", &c->queues, err);
    if (st == PAWL_OK)
        st = read_names(a, g->types, g->n_types, "types", &c->types, err);
    c->n_queues = g->n_queues;
    c->n_types = g->n_types;
    if (st == PAWL_OK)
        st = read_has(a, g, c, err);
    if (st == PAWL_OK && g->repeats && !token_parse(bytes_of(g->repeats), &c->token))
        st = err_set(err, PAWL_LOST_LEASE,
                     "lease \"%.40s\" is malformed; expected the 32 hex digits a claim gave",
                     g->repeats);
    if (st == PAWL_OK && !g->repeats)
        c->token = token_make(exec_conf_of(p->e)->world);
    return st;
}

static enum pawl_status fill_lease(struct lease_holder *h, const struct claim *c,
                                   struct pawl_err *err)
{
    struct pawl_view *v = arena_zalloc(&h->arena, c->n ? c->n : 1, sizeof(*v));
    struct pawl_state_of *states = arena_zalloc(&h->arena, c->n ? c->n : 1, sizeof(*states));
    for (size_t i = 0; v && i < c->n; i++)
        view_fill(&h->arena, &c->calls[i], &v[i]);
    for (size_t i = 0; states && c->states && i < c->n; i++) {
        struct payload state = c->states[i].payload;
        state.bytes = arena_copy(&h->arena, state.bytes);
        states[i] = (struct pawl_state_of){ data_of(state), c->states[i].version };
    }
    h->shown =
        (struct pawl_lease){ .until_us = c->until_us, .calls = v, .n = c->n, .states = states };
    if (c->n)
        token_text(c->token, h->shown.token);
    /* Claimed and not shown: the lease will end, and its calls become pending again, counted as
     * lost. */
    return h->arena.failed ? err_no_memory(err, "showing a claim") : PAWL_OK;
}

/* Claim; while nothing is due, wait until something may be, or the time is up. A repeated claim has
 * a token that its caller knows. */
static enum pawl_status claim_loop(struct pawl *p, const struct claim *c,
                                   const struct pawl_claim *g, struct lease_holder *h,
                                   struct pawl_err *err)
{
    int64_t until_us = world_mono(&world_real) + g->wait_us;
    for (;;) {
        struct arena a;
        uint64_t seen = exec_work_signal(p->e);
        arena_init(&a, REQUEST_LEN_MAX);
        struct op op = { .kind = OP_CLAIM, .a = &a, .claim = *c };
        enum pawl_status st = g->repeats ? exec_do(p->e, &op) : exec_claim(p->e, &op);
        int64_t now_us = world_mono(&world_real), next_us = op.claim.next_due_us;
        bool done = st != PAWL_OK || op.claim.n || now_us >= until_us;
        if (st != PAWL_OK)
            err_set(err, st, "%s", op.err.text);
        else if (done)
            st = fill_lease(h, &op.claim, err);
        exec_look(p->e, op.ended, op.n_ended);
        if (op.n_ended)
            exec_work_came(p->e); /* calls behind these in a key may be next now */
        arena_release(&a);
        if (done)
            return st;
        int64_t wake_us = next_us ? now_us + MAX(next_us - exec_now(p->e), 0) : INT64_MAX;
        exec_work_signal_wait(p->e, seen, MIN(wake_us, until_us));
    }
}

enum pawl_status pawl_claim(struct pawl *p, const struct pawl_claim *claim, struct pawl_lease **out,
                            struct pawl_err *err)
{
    struct pawl_claim g = { PAWL_CLAIM_INIT };
    struct claim c;
    struct arena a;
    if (!p || !out || (claim && (claim->size < sizeof(size_t) || claim->size > STRUCT_SIZE_MAX)))
        return err_set(
            err, PAWL_INVALID,
            "pawl_claim: an argument is NULL, or the size of struct pawl_claim is wrong");
    if (claim)
        memcpy(&g, claim, MIN(claim->size, sizeof(g)));
    struct lease_holder *h = mem_zalloc(sizeof(*h));
    if (!h)
        return err_no_memory(err, "claiming");
    arena_init(&h->arena, REQUEST_LEN_MAX);
    arena_init(&a, 1 << 20);
    enum pawl_status st = read_claim(p, &a, &g, &c, err);
    if (st == PAWL_OK)
        st = claim_loop(p, &c, &g, h, err);
    arena_release(&a);
    if (st == PAWL_OK)
        *out = &h->shown;
    else
        pawl_lease_free(&h->shown);
    return st;
}

void pawl_lease_free(struct pawl_lease *lease)
{
    struct lease_holder *h = (struct lease_holder *)lease;
    if (!h)
        return;
    arena_release(&h->arena);
    mem_free(h);
}

/* ---- Extend and finish ----------------------------------------------------------------------- */

static enum pawl_status read_token(const char *text, struct token *out, struct pawl_err *err)
{
    if (!text || !token_parse(bytes_of(text), out))
        return err_set(err, PAWL_LOST_LEASE,
                       "lease \"%.40s\" is malformed; expected the 32 hex digits a claim gave",
                       text ? text : "");
    return PAWL_OK;
}

enum pawl_status pawl_extend(struct pawl *p, const char *token, int64_t lease_us,
                             int64_t *out_until_us, struct pawl_err *err)
{
    struct arena a;
    struct op op = { .kind = OP_EXTEND, .a = &a };
    if (!p)
        return err_set(err, PAWL_INVALID, "pawl_extend: the handle is NULL");
    enum pawl_status st = read_token(token, &op.extend.token, err);
    if (st != PAWL_OK)
        return st;
    op.extend.lease_us = lease_us ? lease_us : 30 * SEC_US;
    if (op.extend.lease_us < LEASE_MIN_US || op.extend.lease_us > LEASE_MAX_US)
        return err_set(err, PAWL_INVALID, "field \"lease_for\": must be 1 s to 1 h");
    arena_init(&a, 1 << 20);
    st = exec_do(p->e, &op);
    if (op.n_ended)
        exec_look(p->e, op.ended, op.n_ended);
    if (op.n_ended || op.extend.n_timed_out)
        exec_work_came(p->e); /* a retry has a time, and a key may be free */
    if (st != PAWL_OK)
        err_set(err, st, "%s", op.err.text);
    else if (out_until_us)
        *out_until_us = op.extend.until_us;
    arena_release(&a);
    return st;
}

/* The calls that a finish sends: settled, with the finished call as parent and in their default
 * ids. */
static enum pawl_status read_sends(struct pawl *p, struct arena *a, const struct pawl_finish *g,
                                   struct finish_item *out, struct pawl_err *err)
{
    if (!g->n_send)
        return PAWL_OK;
    if (g->n_send > SEND_MAX || !g->send || g->send->size > STRUCT_SIZE_MAX ||
        g->how != PAWL_END_RESULT)
        return err_set(err, PAWL_INVALID,
                       "call \"%s\": sends %zu calls, limit %d, with a result only", g->id,
                       g->n_send, SEND_MAX);
    struct call_spec *v = arena_alloc(a, g->n_send * sizeof(*v));
    enum pawl_status st = v ? PAWL_OK : err_no_memory(err, "reading a finish");
    for (size_t i = 0; st == PAWL_OK && i < g->n_send; i++) {
        struct pawl_spec s = { PAWL_SPEC_INIT };
        const struct pawl_spec *given = ARRAY_AT(g->send, i);
        memcpy(&s, given, MIN(given->size, sizeof(s)));
        if (!s.id)
            s.id = arena_printf(a, "%s.%zu", g->id, i + 1);
        if (!s.parent)
            s.parent = g->id;
        st = spec_settle(p, a, &s, &v[i], err);
    }
    out->send = v;
    out->n_send = g->n_send;
    return st;
}

/* What happens to the state of its object. */
static enum pawl_status read_state(const struct pawl_finish *g, struct finish_item *out,
                                   struct pawl_err *err)
{
    out->object = payload_of(g->state);
    out->state_do = g->delete_state                    ? STATE_DELETE
                    : out->object.form != PAWL_NOTHING ? STATE_SET
                                                       : STATE_KEEP;
    if (out->state_do == STATE_KEEP)
        return PAWL_OK;
    if (g->how != PAWL_END_RESULT)
        return err_set(err, PAWL_INVALID, "call \"%s\": a state may be set with a result only",
                       g->id);
    if (g->delete_state && out->object.form != PAWL_NOTHING)
        return err_set(err, PAWL_INVALID, "call \"%s\": state and delete_state are both given",
                       g->id);
    return g->delete_state ? PAWL_OK : state_check(g->state, err);
}

static enum pawl_status read_finish(struct pawl *p, struct arena *a,
                                    const struct pawl_finish *given, struct finish_item *out,
                                    struct pawl_err *err)
{
    struct pawl_finish g = { PAWL_FINISH_INIT };
    if (given->size < sizeof(size_t) || given->size > STRUCT_SIZE_MAX)
        return err_set(err, PAWL_INVALID,
                       "struct pawl_finish: initialise it with PAWL_FINISH_INIT");
    memcpy(&g, given, MIN(given->size, sizeof(g)));
    const char *fault = name_fault(bytes_of(g.id));
    if (fault)
        return err_set(err, PAWL_INVALID, "field \"id\": %s", fault);
    if (g.how < PAWL_END_RESULT || g.how > PAWL_END_CANCELLED)
        return err_set(err, PAWL_INVALID, "call \"%s\": how is %d, not one of enum pawl_ending",
                       g.id, (int)g.how);
    *out = (struct finish_item){ .id = bytes_of(g.id),
                                 .how = (enum ending)g.how,
                                 .retry_in_us = g.retry_in_us,
                                 .result = payload_of(g.result),
                                 .error = utf8_cut(bytes_of(g.error), ERROR_LEN_MAX) };
    if (data_check(g.result, "result", err) != PAWL_OK)
        return PAWL_INVALID;
    if (g.how == PAWL_END_ERROR && g.retry_in_us == 0)
        out->retry_in_us = -1;
    if (g.retry_in_us > DURATION_MAX_US)
        return err_set(err, PAWL_INVALID, "call \"%s\": retry_in is over 100 years", g.id);
    if (out->result.bytes.len > RESULT_LEN_MAX)
        return err_set(err, PAWL_TOO_LARGE, "call \"%s\": its result is %zu bytes, limit %d", g.id,
                       out->result.bytes.len, RESULT_LEN_MAX);
    if (out->result.form == PAWL_JSON && json_check(out->result.bytes, err) != PAWL_OK)
        return PAWL_INVALID;
    enum pawl_status st = read_state(&g, out, err);
    return st == PAWL_OK ? read_sends(p, a, &g, out, err) : st;
}

/* Waiters of this process read the call: the finish does not carry all of it. */
static void finish_told(struct pawl *p, const struct op *op, enum pawl_state *out_states)
{
    bool again = false;
    for (size_t i = 0; i < op->finish.n; i++) {
        const struct finish_item *f = &op->finish.v[i];
        again |= f->state == PAWL_PENDING || f->n_send;
        if (out_states)
            out_states[i] = f->state;
        if (pawl_state_ended(f->state))
            exec_look(p->e, &f->id, 1);
    }
    if (again)
        exec_work_came(p->e);
}

enum pawl_status pawl_finish(struct pawl *p, const char *token, const struct pawl_finish *v,
                             size_t n, enum pawl_state *out_states, struct pawl_err *err)
{
    struct arena a;
    struct op op = { .kind = OP_FINISH, .a = &a };
    if (!p || !v || n < 1 || n > CLAIM_MAX || v->size > STRUCT_SIZE_MAX)
        return err_set(err, PAWL_INVALID, "pawl_finish: an argument is NULL, or n is not 1 to %d",
                       CLAIM_MAX);
    enum pawl_status st = read_token(token, &op.finish.token, err);
    if (st != PAWL_OK)
        return st;
    arena_init(&a, REQUEST_LEN_MAX);
    struct finish_item *items = arena_zalloc(&a, n, sizeof(*items));
    st = items ? PAWL_OK : err_no_memory(err, "reading a finish");
    for (size_t i = 0; st == PAWL_OK && i < n; i++)
        st = read_finish(p, &a, ARRAY_AT(v, i), &items[i], err);
    if (st == PAWL_OK) {
        op.finish.v = items;
        op.finish.n = n;
        st = exec_do(p->e, &op);
        if (st != PAWL_OK)
            err_set(err, st, "%s", op.err.text);
        else
            finish_told(p, &op, out_states);
    }
    arena_release(&a);
    return st;
}
