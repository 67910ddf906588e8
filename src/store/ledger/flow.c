/*
 * flow.c - flows: calls that have begun to take steps ("Flows" in README.md).
 *
 * What says so is the lane: that of the call, with NEED_STEPS among its needs. The row of the call,
 * its entry in a lease, and its row in `ready` or `line` all have the lane, so it is known wherever
 * the call is. From then on the call is PROCESSING to everybody until it ends, also while it waits
 * and no lease holds it. In memory it is PENDING then, as it is stored.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/hook.h"
#include "base/limits.h"
#include "model/needs.h"
#include "store/ledger/flow.h"

/* ---- What a call is -------------------------------------------------------------------------- */

enum pawl_status led_flow(struct ledger *c, const struct led_call *it, bool *out,
                          struct pawl_err *err)
{
    *out = false;
    return led_flowless(c, it->now.lane) ? PAWL_OK : led_lane_flow(c, it->now.lane, out, err);
}

enum pawl_status led_state(struct ledger *c, const struct led_call *it, enum pawl_state *out,
                           struct pawl_err *err)
{
    bool flow = false;
    enum pawl_status st = it->now.state == PAWL_PENDING ? led_flow(c, it, &flow, err) : PAWL_OK;
    *out = flow ? PAWL_PROCESSING : it->now.state;
    return st;
}

/* ---- For readers ----------------------------------------------------------------------------- */

enum pawl_status led_flow_heads(struct ledger *c, const struct led_key *k, bool *out,
                                struct pawl_err *err)
{
    struct led_call *it = NULL;
    *out = false;
    if (!c->flows || k->turn != KEY_OFFERED)
        return PAWL_OK;
    enum pawl_status st = led_call_get(c, k->head, &it, err);
    return st == PAWL_OK && it && it->now.place == AT_READY ? led_flow(c, it, out, err) : st;
}

bool led_flow_waits(const struct ledger *c, const struct led_call *it)
{
    const struct led_lane *lane = led_lane_at(c, it->now.lane);
    return it->now.state == PAWL_PENDING && lane && lane->flow;
}

enum pawl_status led_flows_look(struct ledger *c, struct led_call *const *v, size_t n,
                                struct pawl_err *err)
{
    int64_t *seqs = NULL;
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        bool flow;
        enum pawl_status st = led_lane_flow(c, v[i]->now.lane, &flow, err);
        if (st != PAWL_OK)
            return st;
        if (!c->flows || !c->flows->flows_shown || v[i]->flow_shown || !led_flow_waits(c, v[i]))
            continue;
        seqs = seqs ? seqs : arena_alloc(&c->scratch, (n - i) * sizeof *seqs);
        if (!seqs)
            return err_no_memory(err, "calls");
        seqs[m++] = v[i]->seq;
    }
    enum call_wait *waits = m ? arena_zalloc(&c->scratch, m, sizeof *waits) : NULL;
    if (!waits)
        return m ? err_no_memory(err, "calls") : PAWL_OK;
    enum pawl_status st = c->flows->flows_shown(c, seqs, m, waits, err);
    for (size_t i = 0; i < m && st == PAWL_OK; i++) {
        struct led_call *it = led_call_find(c, seqs[i]);
        it->flow_wait = waits[i];
        it->flow_shown = true;
    }
    return st;
}

enum pawl_status led_flow_show(struct ledger *c, struct led_call *it, struct call_where where,
                               struct call *out, struct pawl_err *err)
{
    enum pawl_status st = led_flows_look(c, &it, 1, err);
    bool later = it->now.run_at_us > c->now_us;
    if (later && it->flow_wait)
        out->waiting_for = it->flow_wait;
    else if (later && !where.behind && !out->counts.attempts)
        out->waiting_for = WAIT_TIMER;
    else
        out->waiting_for = call_waiting_for(out, c->now_us, where);
    if (it->now.place == AT_READY)
        out->position = 0; /* its key is its own */
    if (it->now.run_at_us >= FLOW_NEVER_US)
        out->run_at_us = it->own_run_at_us;
    out->state = PAWL_PROCESSING;
    return st;
}

/* ---- An attempt ends, a cancel, a retry ------------------------------------------------------ */

static int compare_seqs(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum pawl_status led_flows_ending(struct ledger *c, struct led_call *const *v, size_t n,
                                  struct pawl_err *err)
{
    int64_t *seqs = NULL;
    size_t m = 0;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < n && st == PAWL_OK && c->flows; i++) {
        bool flow;
        st = led_flow(c, v[i], &flow, err);
        if (st != PAWL_OK || !flow || v[i]->flow_asked)
            continue;
        seqs = seqs ? seqs : arena_alloc(&c->scratch, (n - i) * sizeof *seqs);
        if (!seqs)
            return err_no_memory(err, "flows");
        v[i]->flow_asked = true;
        seqs[m++] = v[i]->seq;
    }
    if (st != PAWL_OK || !m || !c->flows->flows_ending)
        return st;
    led_sort(seqs, m, sizeof *seqs, compare_seqs);
    return c->flows->flows_ending(c, seqs, m, err);
}

/* The call that an operation on one call names; NULL: it is new or unknown. */
static struct led_call *named(struct ledger *c, struct bytes id, struct pawl_err *err)
{
    struct led_id *it;
    return led_id_get(c, id, &it, err) == PAWL_OK && it->seq ? led_call_find(c, it->seq) : NULL;
}

enum pawl_status led_flows_foresee(struct ledger *c, struct op *const *v, size_t n,
                                   struct pawl_err *err)
{
    size_t max = 0, m = 0;
    /* A flow in a lane that is not known yet is asked about when its attempt ends. */
    for (size_t i = 0; i < n && c->flows && c->lanes.any_flow; i++)
        max += v[i]->kind == OP_FINISH                             ? v[i]->finish.n
               : v[i]->kind == OP_CANCEL || v[i]->kind == OP_RETRY ? 1
                                                                   : 0;
    if (!max)
        return PAWL_OK;
    struct led_call **calls = arena_alloc(&c->scratch, max * sizeof *calls);
    if (!calls)
        return err_no_memory(err, "a group");
    for (size_t i = 0; i < n; i++) {
        if (v[i]->kind == OP_CANCEL || v[i]->kind == OP_RETRY)
            if ((calls[m] = named(c, v[i]->by_id.id, err)))
                m++;
        for (size_t k = 0; v[i]->kind == OP_FINISH && k < v[i]->finish.n; k++) {
            const struct finish_item *it = &v[i]->finish.v[k];
            if (it->seq_found > 0 && (calls[m] = led_call_find(c, it->seq_found)))
                m++;
        }
    }
    return led_flows_ending(c, calls, m, err);
}

enum pawl_status led_flow_ends(struct ledger *c, struct led_call *it, struct led_end *e,
                               struct pawl_err *err)
{
    bool flow;
    e->flow = FLOW_AS_IS;
    if (led_flowless(c, it->now.lane))
        return PAWL_OK;
    enum pawl_status st = led_flow(c, it, &flow, err);
    if (st != PAWL_OK || !flow || !c->flows->flow_end)
        return st;
    struct verdict *v = &e->verdict;
    struct flow_end q = { .seq = it->seq,
                          .id = it->spec.id,
                          .state = v->next,
                          .how = e->end.how,
                          .error = e->error,
                          .counts = v->counts,
                          .claimed_us = e->claimed_us,
                          .begun = !e->unbegun };
    st = led_flows_ending(c, &it, 1, err);
    if (st == PAWL_OK)
        st = c->flows->flow_end(c, &q, err);
    if (st != PAWL_OK)
        return st;
    e->flow = q.next;
    if (q.next == FLOW_AGAIN) {
        v->next = PAWL_PENDING;
        v->counts.attempts = v->counts.lost = 0;
        v->run_at_us = c->now_us;
    } else if (q.next == FLOW_ENDS) {
        CHECK(pawl_state_ended(q.state) && call_may(PAWL_PROCESSING, q.state));
        v->next = q.state;
        v->run_at_us = 0;
        e->flow_error = q.error;
    }
    return PAWL_OK;
}

enum pawl_status led_flow_cancel(struct ledger *c, struct led_call *it, struct pawl_err *err)
{
    enum pawl_status st = led_flows_ending(c, &it, 1, err);
    CRASH_POINT("ledger.flow_cancel");
    return st == PAWL_OK && c->flows->flow_cancel ? c->flows->flow_cancel(c, it->seq, err) : st;
}

enum pawl_status led_flows_stop(struct ledger *c, const struct led_lease *l, bool *requested,
                                struct pawl_err *err)
{
    int64_t *seqs = NULL;
    size_t *at = NULL, n = 0;
    if (!c->flows || !c->flows->flows_stop)
        return PAWL_OK;
    for (size_t i = 0; i < l->n; i++) {
        bool flow;
        enum pawl_status st = led_lane_flow(c, l->held[i].lane, &flow, err);
        if (st != PAWL_OK)
            return st;
        if (!flow || l->state[i] != HELD_OPEN)
            continue;
        seqs = seqs ? seqs : arena_alloc(&c->scratch, (l->n - i) * sizeof *seqs);
        at = at ? at : arena_alloc(&c->scratch, (l->n - i) * sizeof *at);
        if (!seqs || !at)
            return err_no_memory(err, "a lease");
        at[n] = i;
        seqs[n++] = l->held[i].seq;
    }
    bool *stop = n ? arena_zalloc(&c->scratch, n, sizeof *stop) : NULL;
    if (!stop)
        return n ? err_no_memory(err, "a lease") : PAWL_OK;
    enum pawl_status st = c->flows->flows_stop(c, seqs, n, l->claimed_us, stop, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        requested[at[i]] = requested[at[i]] || stop[i];
    return st;
}

enum pawl_status led_flow_retry(struct ledger *c, struct op *op, struct led_call *it,
                                struct pawl_err *err)
{
    bool flow;
    enum pawl_status st = led_flow(c, it, &flow, err);
    if (st != PAWL_OK || !flow || !c->flows->flow_retry)
        return st;
    st = led_flows_ending(c, &it, 1, err);
    return st == PAWL_OK ? c->flows->flow_retry(c, it->seq, op, err) : st;
}

/* ---- For the feature that has flows ---------------------------------------------------------- */

/* A call as the lease of an operation's fence holds it. */
struct fenced {
    struct led_lease *l;
    size_t i;
    struct led_call *it;
};

static enum pawl_status fenced_call(struct ledger *c, const struct op *op, struct fenced *out,
                                    struct pawl_err *err)
{
    const struct feature_op *q = &op->feature;
    CHECK(op->kind == OP_FEATURE && !token_none(q->token));
    enum pawl_status st = led_lease_get(c, &q->token, &out->l, err);
    ssize_t at = st == PAWL_OK && out->l ? led_lease_find(out->l, q->seq) : -1;
    CHECK(st != PAWL_OK || (at >= 0 && out->l->state[at] == HELD_OPEN)); /* the fence held */
    out->i = (size_t)at;
    return st == PAWL_OK ? led_held_call(c, q->seq, &out->it, err) : st;
}

/* Move it to the lane of flows that need this version; op->status says why not. */
static enum pawl_status lane_move(struct ledger *c, struct op *op, struct fenced *f,
                                  struct bytes version, struct pawl_err *err)
{
    struct held *h = &f->l->held[f->i];
    const struct led_lane *from;
    int lane = 0;
    enum pawl_status st = led_lane(c, h->lane, &from, err);
    if (st != PAWL_OK)
        return st;
    struct led_lane_names to = from->names; /* their bytes stay when lanes move */
    st = needs_begin(&c->scratch, version, &to.needs, &to.n_needs, err);
    if (st == PAWL_OK)
        st = led_lane_for(c, &to, &lane, err);
    if (st == PAWL_OK && !lane)
        op->status =
            err_set(&op->err, PAWL_FULL, "queue \"%.*s\", type \"%.*s\": %d lanes, limit %d",
                    BYTES_ARG(to.queue), BYTES_ARG(to.type), LANES_MAX, LANES_MAX);
    if (st == PAWL_OK && lane)
        h->lane = f->it->now.lane = f->it->own_lane = lane;
    return st;
}

/* Its timeout begins anew. A lease that was to end with that timeout ends with the new one. */
static void step(struct ledger *c, struct fenced *f)
{
    struct held *h = &f->l->held[f->i];
    const struct call_spec *s = &f->it->spec;
    if (f->l->until_us && f->l->until_us == call_deadline(s, led_since(f->l, f->i)))
        f->l->until_us = call_deadline(s, c->now_us);
    h->counts.attempts = h->counts.lost = 0;
    h->since_us = c->now_us;
    f->it->now.counts = h->counts;
    f->l->dirty = true;
}

enum pawl_status feature_flow_begin(struct ledger *d, struct op *op, struct bytes version,
                                    bool *out_cancel, struct pawl_err *err)
{
    struct fenced f;
    bool flow = false, finished = false;
    *out_cancel = false;
    CHECK(d->flows && !d->reading);
    enum pawl_status st = fenced_call(d, op, &f, err);
    if (st == PAWL_OK)
        st = led_flow(d, f.it, &flow, err);
    if (st != PAWL_OK || flow)
        return st;
    st = led_finished(d, FLOW_STEP, &finished, err);
    if (st != PAWL_OK)
        return st;
    int before = f.l->run[f.i].before;
    if (!finished)
        op->status = err_set(&op->err, PAWL_STATE,
                             "call \"%.*s\": steps need every node to run this version: run pawl "
                             "migrate finish",
                             BYTES_ARG(f.it->spec.id));
    else if (before >= 0 && f.l->state[before] == HELD_OPEN)
        op->status = err_set(&op->err, PAWL_INVALID,
                             "call \"%.*s\": the call before it in key \"%.*s\" has not ended",
                             BYTES_ARG(f.it->spec.id), BYTES_ARG(f.it->spec.key));
    if (op->status == PAWL_OK)
        st = lane_move(d, op, &f, version, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    *out_cancel = f.it->now.cancel_requested;
    f.it->now.cancel_requested = false;
    f.it->now.expires_us = f.it->own_expires_us = 0;
    f.it->begins = true;
    step(d, &f);
    CRASH_POINT("ledger.flow_begun");
    PAUSE_POINT("ledger.flow_begun");
    return PAWL_OK;
}

enum pawl_status feature_claimed(struct ledger *d, const struct op *op, struct flow_claimed *out,
                                 struct pawl_err *err)
{
    struct fenced f;
    enum pawl_status st = fenced_call(d, op, &f, err);
    if (st == PAWL_OK)
        *out = (struct flow_claimed){ f.l->claimed_us, f.l->owner, f.l->version };
    return st;
}

enum pawl_status feature_flow_step(struct ledger *d, const struct op *op, struct pawl_err *err)
{
    struct fenced f;
    enum pawl_status st = fenced_call(d, op, &f, err);
    if (st == PAWL_OK)
        step(d, &f);
    return st;
}

/* It leaves its lease for `to`; the calls behind it in its run are handed back. */
static enum pawl_status leave(struct ledger *c, struct op *op, struct fenced *f,
                              struct led_stand to, struct pawl_err *err)
{
    struct finish none = { 0 };
    int behind = f->l->run[f->i].behind;
    enum pawl_status st = led_put(c, f->it, to, behind < 0 ? 0 : f->l->held[behind].seq, err);
    if (st != PAWL_OK)
        return st;
    led_lease_done(f->l, f->i, true);
    return led_hand_back(c, op, f->l, behind, &none, err);
}

enum pawl_status feature_flow_suspend(struct ledger *d, struct op *op, int64_t run_at_us,
                                      struct pawl_err *err)
{
    struct fenced f;
    bool flow;
    enum pawl_status st = fenced_call(d, op, &f, err);
    if (st == PAWL_OK)
        st = led_flow(d, f.it, &flow, err);
    if (st != PAWL_OK)
        return st;
    CHECK(flow);
    struct led_stand to = f.it->now;
    to.state = PAWL_PENDING;
    to.counts.attempts = to.counts.lost = 0;
    to.run_at_us = MIN(MAX(run_at_us, d->now_us), FLOW_NEVER_US);
    st = led_place_back(d, f.it, &to.place, err);
    if (st == PAWL_OK)
        st = leave(d, op, &f, to, err);
    CRASH_POINT("ledger.flow_suspended");
    PAUSE_POINT("ledger.flow_suspended");
    return st;
}

/* The lease that holds it, locked. */
static enum pawl_status holder_lock(struct ledger *c, struct fenced *f, struct pawl_err *err)
{
    enum pawl_status st = led_holders_load(c, &f->it, 1, err);
    if (st == PAWL_OK)
        st = led_lease_get(c, &f->it->lease->token, &f->l, err);
    ssize_t at = st == PAWL_OK && f->l ? led_lease_find(f->l, f->it->seq) : -1;
    if (st == PAWL_OK && (at < 0 || f->l->state[at] != HELD_OPEN))
        return led_again(c, "a call of a lease", err);
    f->i = (size_t)at;
    return st;
}

static enum pawl_status end_flow(struct ledger *c, struct fenced *f, struct flow_end_as as,
                                 struct pawl_err *err)
{
    struct led_call *it = f->it;
    struct led_lease *l = it->now.place == AT_HELD ? f->l : NULL;
    struct led_stand to = it->now;
    struct led_outcome *o = arena_zalloc(&c->scratch, 1, sizeof *o);
    if (!o)
        return err_no_memory(err, "an outcome");
    bool failed = as.state == PAWL_FAILED || as.state == PAWL_DEAD_LETTER;
    int64_t keep_us = it->spec.keep_us ? it->spec.keep_us : c->retention_us;
    *o = (struct led_outcome){ .result = as.result,
                               .error = failed ? as.error : BYTES_NONE,
                               .node = l ? l->owner : BYTES_NONE,
                               .claimed_us = l ? l->claimed_us : 0,
                               .started_us = l ? l->claimed_us : 0,
                               .finished_us = c->now_us,
                               .keep_until_us = call_blocks(&it->spec, as.state)
                                                    ? INT64_MAX
                                                    : c->now_us + keep_us };
    to.place = AT_ENDED;
    to.state = as.state;
    to.outcome = o;
    to.lane = it->own_lane;
    to.priority = it->own_priority;
    enum pawl_status st = l ? leave(c, c->tx->telling, f, to, err) : led_put(c, it, to, 0, err);
    if (st == PAWL_OK && it->spec.key.data && !l) /* led_put() does this for a call of a lease */
        led_key_find(c, it->spec.key)->ended_us = c->now_us;
    return st;
}

enum pawl_status feature_flow_end(struct ledger *d, int64_t seq, struct flow_end_as as,
                                  struct pawl_err *err)
{
    struct fenced f = { 0 };
    bool flow;
    CHECK(!d->reading && d->tx->telling);
    CHECK(call_may(PAWL_PROCESSING, as.state) && as.state != PAWL_PENDING);
    enum pawl_status st = led_call_get(d, seq, &f.it, err);
    if (st == PAWL_OK && !f.it)
        st = led_again(d, "a flow", err);
    if (st == PAWL_OK && f.it->now.place == AT_HELD)
        st = holder_lock(d, &f, err);
    if (st == PAWL_OK)
        st = led_flow(d, f.it, &flow, err);
    if (st != PAWL_OK || f.it->now.place >= AT_ENDED)
        return st;
    CHECK(flow);
    d->tx->unlocked = d->tx->unlocked || f.it->now.place != AT_HELD; /* nothing locks its place */
    st = end_flow(d, &f, as, err);
    if (st == PAWL_OK)
        st = led_told_ended(d->tx->telling, f.it->spec.id, err);
    d->tx->telling->brings = true;
    return st;
}

enum pawl_status feature_calls_load(struct ledger *d, const int64_t *seqs, size_t n,
                                    struct pawl_err *err)
{
    return n ? led_calls_load(d, seqs, n, err) : PAWL_OK;
}

enum pawl_status feature_call_at(struct ledger *d, int64_t seq, struct feature_call *out,
                                 struct pawl_err *err)
{
    struct led_call *it = led_call_find(d, seq);
    const struct led_lane *lane = NULL;
    enum pawl_status st = PAWL_OK;
    *out = (struct feature_call){ 0 };
    if (!it || !it->lean)
        st = led_call_get(d, seq, &it, err);
    if (st != PAWL_OK || !it)
        return st;
    bool late = it->now.counts.redrives && it->spec.run_until_us <= d->now_us;
    *out = (struct feature_call){ .seq = seq,
                                  .id = it->spec.id,
                                  .key = it->spec.key,
                                  .priority = it->now.priority,
                                  .held = it->now.place == AT_HELD,
                                  .gone = it->now.place == AT_GONE,
                                  .run_at_us = it->now.run_at_us,
                                  .run_until_us = late ? 0 : it->spec.run_until_us };
    if (it->now.place == AT_ENDED)
        out->error = it->now.outcome->error;
    if (!out->gone)
        st = led_lane(d, it->now.lane, &lane, err);
    if (st == PAWL_OK && lane) {
        out->queue = lane->names.queue;
        out->type = lane->names.type;
        out->flow = lane->flow;
    }
    return st == PAWL_OK ? led_state(d, it, &out->state, err) : st;
}

enum pawl_status feature_call_spec(struct ledger *d, int64_t seq, struct call_spec *out,
                                   struct pawl_err *err)
{
    struct led_call *it;
    const struct led_lane *lane;
    enum pawl_status st = led_call_get(d, seq, &it, err);
    if (st == PAWL_OK && (!it || it->now.place == AT_GONE))
        return led_again(d, "a call", err);
    if (st == PAWL_OK)
        st = led_payloads_load(d, &it, 1, err);
    if (st == PAWL_OK)
        st = led_lane(d, it->now.lane, &lane, err);
    if (st != PAWL_OK)
        return st;
    *out = it->spec;
    out->queue = lane->names.queue;
    out->type = lane->names.type;
    out->n_needs = lane->names.n_needs;
    out->needs = needs_given(&d->scratch, lane->names.needs, &out->n_needs);
    return d->scratch.failed ? err_no_memory(err, "a call") : PAWL_OK;
}

enum pawl_status feature_call_named(struct ledger *d, struct bytes id, struct feature_call *out,
                                    struct pawl_err *err)
{
    struct led_id *it;
    *out = (struct feature_call){ 0 };
    enum pawl_status st = led_id_get(d, id, &it, err);
    if (st == PAWL_OK && it->seq)
        st = feature_call_at(d, it->seq, out, err);
    return st;
}
