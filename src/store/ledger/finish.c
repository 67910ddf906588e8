/*
 * finish.c - how attempts end: an owner's finish with the calls it sends, and the end of one
 * attempt, which reclaim uses too.
 *
 * All items of a finish are checked before any of them changes anything: an item that the lease
 * does not hold, and that was not answered under the same token before, refuses the whole finish.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "store/ledger/flow.h"

/* ---- One attempt ends ------------------------------------------------------------------------ */

static bool error_kept(enum ending how)
{
    return how == END_ERROR || how == END_TIMEOUT || how == END_REFUSE || how == END_LOST;
}

static struct bytes token_bytes(const struct led_lease *l)
{
    return (struct bytes){ (const char *)l->token.b, sizeof l->token.b };
}

/* Add the row of `attempt` for this end, if it needs one: an attempt that counts does, and so does
 * a call that the owner of a lease with `until` hands back, so that a repeated finish finds the
 * answer. */
static enum pawl_status row_add(struct ledger *c, const struct led_lease *l, struct led_call *it,
                                const struct led_end *e, struct pawl_err *err)
{
    const struct verdict *v = &e->verdict;
    bool trace = e->owner && l->until_us && v->next == PAWL_PENDING;
    if (!v->count_attempt && !trace)
        return PAWL_OK;
    struct led_attempt *t = arena_zalloc(&c->scratch, 1, sizeof *t);
    if (!t)
        return err_no_memory(err, "an attempt");
    *t = (struct led_attempt){ .older = it->ended_attempts,
                               .attempt_no = it->now.counts.attempts + it->now.counts.lost + 1,
                               .how = (int)e->end.how,
                               .state = v->next,
                               .error = error_kept(e->end.how) ? e->error : BYTES_NONE,
                               .node = l->owner,
                               .token = e->owner ? token_bytes(l) : BYTES_NONE,
                               .started_us = e->started_us,
                               .finished_us = c->now_us };
    it->ended_attempts = t;
    return PAWL_OK;
}

static struct led_outcome *outcome_make(struct ledger *c, const struct led_lease *l,
                                        const struct led_call *it, const struct led_end *e)
{
    enum pawl_state to = e->verdict.next;
    struct led_outcome *o = arena_zalloc(&c->scratch, 1, sizeof *o);
    if (!o)
        return NULL;
    bool failed = to == PAWL_FAILED || to == PAWL_DEAD_LETTER;
    int64_t keep_us = it->spec.keep_us ? it->spec.keep_us : c->retention_us;
    struct bytes error = e->flow == FLOW_ENDS ? e->flow_error : failed ? e->error : BYTES_NONE;
    *o = (struct led_outcome){ .error = error,
                               .node = l->owner,
                               .token = e->owner ? token_bytes(l) : BYTES_NONE,
                               .claimed_us = l->claimed_us,
                               .started_us = e->started_us,
                               .finished_us = c->now_us,
                               .keep_until_us =
                                   call_blocks(&it->spec, to) ? INT64_MAX : c->now_us + keep_us };
    if (to == PAWL_COMPLETED)
        o->result = e->result;
    return o;
}

/* Set when the attempt began. It is never before the end of the call before it in its key: the two
 * times come from different clocks, the worker's and the database's. */
static enum pawl_status started(struct ledger *c, const struct led_lease *l,
                                const struct led_call *it, struct led_end *e, struct pawl_err *err)
{
    struct led_key *k;
    if (!e->started_us)
        e->started_us = l->claimed_us;
    if (!it->spec.key.data)
        return PAWL_OK;
    enum pawl_status st = led_key_get(c, it->spec.key, LOCK_WAIT, &k, err);
    if (st == PAWL_OK)
        e->started_us = MAX(e->started_us, k->ended_us);
    return st;
}

/* A lean call is enough to end its attempt; any other is loaded. */
static enum pawl_status lean_get(struct ledger *c, int64_t seq, struct led_call **out,
                                 struct pawl_err *err)
{
    *out = led_call_find(c, seq);
    return *out && (*out)->lean ? PAWL_OK : led_call_get(c, seq, out, err);
}

enum pawl_status led_held_call(struct ledger *c, int64_t seq, struct led_call **out,
                               struct pawl_err *err)
{
    enum pawl_status st = lean_get(c, seq, out, err);
    if (st == PAWL_OK && (!*out || (*out)->now.place != AT_HELD))
        return led_again(c, "a call of a lease", err);
    return st == PAWL_OK ? led_holders_load(c, out, 1, err) : st;
}

/* Choose the place of a call that is handed back. The head of its key stays the head: in the line,
 * a call that was committed late may have a place before it. */
enum pawl_status led_place_back(struct ledger *c, const struct led_call *it, enum led_place *out,
                                struct pawl_err *err)
{
    struct led_key *k;
    *out = AT_READY;
    if (!it->spec.key.data)
        return PAWL_OK;
    enum pawl_status st = led_key_get(c, it->spec.key, LOCK_WAIT, &k, err);
    if (st == PAWL_OK && !(k->turn == KEY_HELD && k->head == it->seq))
        *out = AT_LINE;
    return st;
}

enum pawl_status led_attempt_end(struct ledger *c, struct led_lease *l, size_t i, struct led_end *e,
                                 struct led_call **out, struct pawl_err *err)
{
    struct led_call *it;
    CHECK(i < l->n && l->state[i] == HELD_OPEN); /* an attempt ends once */
    enum pawl_status st = led_held_call(c, l->held[i].seq, &it, err);
    if (st == PAWL_OK)
        st = started(c, l, it, e, err);
    if (st != PAWL_OK)
        return st;
    int64_t held_us = l->until_us ? MIN(l->until_us, c->now_us) : c->now_us;
    int64_t began_us = l->held[i].since_us ? l->held[i].since_us : e->started_us;
    if (!attempt_timed_out(&c->scratch, &it->spec, began_us, held_us, &e->end, &e->error))
        return err_no_memory(err, "an attempt");
    struct attempt_of attempt = { &it->spec, it->now.counts, it->now.run_at_us };
    e->end.cancel_requested = it->now.cancel_requested;
    e->verdict = call_after(&attempt, &e->end, c->now_us, c->world);
    e->claimed_us = l->claimed_us;
    e->unbegun = e->unbegun && !l->held[i].since_us; /* else it has stored a step */
    st = led_flow_ends(c, it, e, err);
    if (st == PAWL_OK)
        st = row_add(c, l, it, e, err);
    if (st != PAWL_OK)
        return st;
    struct led_stand to = it->now;
    to.state = e->verdict.next;
    to.counts = e->verdict.counts;
    if (to.state == PAWL_PENDING) {
        st = led_place_back(c, it, &to.place, err);
        if (st != PAWL_OK)
            return st;
        to.run_at_us = e->verdict.run_at_us;
    } else {
        to.place = AT_ENDED;
        to.lane = it->own_lane;
        to.priority = it->own_priority;
        to.outcome = outcome_make(c, l, it, e);
        if (!to.outcome)
            return err_no_memory(err, "an outcome");
    }
    int behind = l->run[i].behind;
    *out = it;
    return led_put(c, it, to, behind < 0 ? 0 : l->held[behind].seq, err);
}

/* ---- Former answers -------------------------------------------------------------------------- */

static void former_outcome(struct op *op, const struct token *token, const struct led_call *it,
                           struct finish_item *f, bool *out)
{
    const struct led_outcome *o = it->now.place == AT_ENDED ? it->now.outcome : NULL;
    *out = o && o->token.len == sizeof token->b &&
           memcmp(o->token.data, token->b, sizeof token->b) == 0;
    if (!*out)
        return;
    f->state = it->now.state;
    f->error_out = arena_copy(op->a, o->error);
    f->counts = it->now.counts;
    f->finished_us = o->finished_us;
}

/* Look for a former answer in `attempt`: state, end and error as they were, the rest as it is now.
 */
static enum pawl_status former_attempt(struct ledger *c, struct op *op, const struct token *token,
                                       struct led_call *it, struct finish_item *f, bool *out,
                                       struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    enum pawl_status st = it->ended_attempts ? led_flush(c, err) : PAWL_OK;
    led_int(&p, it->seq);
    led_text(&p, (struct bytes){ (const char *)token->b, sizeof token->b });
    if (st == PAWL_OK)
        st = led_query(c, SQL_ATTEMPT_OF_TOKEN, &p, &r, err);
    *out = st == PAWL_OK && r->n > 0;
    if (!*out)
        return st;
    f->state = (enum pawl_state)led_get_int(r, 0, 0);
    if (f->state != PAWL_PENDING && !pawl_state_ended(f->state))
        return err_set(err, PAWL_BROKEN, "call %lld: an attempt left it in state %d",
                       (long long)it->seq, (int)f->state);
    f->error_out = arena_copy(op->a, led_get(r, 0, 1));
    f->finished_us = f->state == PAWL_PENDING ? 0 : led_get_int(r, 0, 2);
    if (it->now.place == AT_HELD)
        st = led_holders_load(c, &it, 1, err);
    f->counts = it->now.counts;
    f->run_at_us = it->now.state == PAWL_PENDING ? it->now.run_at_us : 0;
    return st;
}

static enum pawl_status former(struct ledger *c, struct op *op, const struct token *token,
                               struct finish_item *f, bool *out, struct pawl_err *err)
{
    struct led_call *it;
    *out = false;
    enum pawl_status st = led_call_get(c, f->seq_found, &it, err);
    if (st != PAWL_OK || !it || it->now.place == AT_GONE)
        return st;
    former_outcome(op, token, it, f, out);
    if (!*out)
        st = former_attempt(c, op, token, it, f, out, err);
    if (st == PAWL_OK && *out)
        st = led_flow(c, it, &f->flow, err);
    return st == PAWL_OK && op->a->failed ? err_no_memory(err, "a finish") : st;
}

/* ---- Looking at the items -------------------------------------------------------------------- */

static int compare_seqs(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void say_twice(struct op *op, const struct finish *f, int64_t seq)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].seq_found == seq && f->v[i].id.data) {
            op->status =
                err_set(&op->err, PAWL_INVALID, "call \"%.*s\" is named twice in one finish",
                        BYTES_ARG(f->v[i].id));
            return;
        }
    op->status =
        err_set(&op->err, PAWL_INVALID, "call %lld is named twice in one finish", (long long)seq);
}

/* Load the ids of all items that have no number, in one query: their lease is not remembered, or is
 * not what was remembered. */
static enum pawl_status ids_load(struct ledger *c, const struct finish *f, struct pawl_err *err)
{
    struct bytes *ids = arena_alloc(&c->scratch, f->n * sizeof *ids);
    size_t n = 0;
    if (!ids)
        return err_no_memory(err, "a finish");
    for (size_t i = 0; i < f->n; i++)
        if (!f->v[i].seq)
            ids[n++] = f->v[i].id;
    return n ? led_ids_load(c, ids, n, err) : PAWL_OK;
}

enum pawl_status led_finish_find(struct ledger *c, struct finish *f, struct pawl_err *err)
{
    struct led_lease *l = NULL;
    size_t at = 0;
    enum pawl_status st = led_lease_get(c, &f->token, &l, err);
    bool cached = l && l->cached;
    if (st == PAWL_OK && !cached)
        st = ids_load(c, f, err);
    for (size_t i = 0; i < f->n && st == PAWL_OK; i++) {
        struct finish_item *it = &f->v[i];
        struct led_id *id;
        it->seq_found = it->seq;
        if (!it->seq && cached)
            it->seq_found = led_cache_seq(c, &f->token, it->id, &at);
        if (it->seq_found)
            continue;
        st = led_id_get(c, it->id, &id, err);
        if (st == PAWL_OK)
            it->seq_found = id->seq;
    }
    return st;
}

/* Find the calls that the items name; each may be named once. */
static enum pawl_status items_find(struct ledger *c, struct op *op, struct finish *f,
                                   struct pawl_err *err)
{
    int64_t *seqs = arena_alloc(&c->scratch, f->n * sizeof *seqs);
    enum pawl_status st = seqs ? led_finish_find(c, f, err) : err_no_memory(err, "a finish");
    if (st != PAWL_OK)
        return st;
    for (size_t i = 0; i < f->n; i++) {
        struct finish_item *it = &f->v[i];
        it->state = 0;
        it->run_at_us = it->finished_us = it->version = 0;
        it->error_out = it->queue = it->type = BYTES_NONE;
        it->flow = false;
        seqs[i] = it->seq_found;
    }
    led_sort(seqs, f->n, sizeof *seqs, compare_seqs);
    for (size_t i = 1; i < f->n && op->status == PAWL_OK; i++)
        if (seqs[i] && seqs[i] == seqs[i - 1])
            say_twice(op, f, seqs[i]);
    return PAWL_OK;
}

static bool holds(const struct ledger *c, const struct led_lease *l, int64_t seq)
{
    ssize_t i = l && !led_lease_over(l, c->now_us) ? led_lease_find(l, seq) : -1;
    return i >= 0 && l->state[i] == HELD_OPEN;
}

/* Check that every item is held by the lease or was answered before (then its state is filled in).
 * Otherwise op->status refuses the finish. */
static enum pawl_status items_check(struct ledger *c, struct op *op, struct finish *f,
                                    const struct led_lease *l, struct pawl_err *err)
{
    for (size_t i = 0; i < f->n; i++) {
        struct finish_item *it = &f->v[i];
        bool answered = false;
        if (holds(c, l, it->seq_found))
            continue;
        if (it->seq_found > 0) {
            enum pawl_status st = former(c, op, &f->token, it, &answered, err);
            if (st != PAWL_OK)
                return st;
        }
        if (answered)
            continue;
        return op_not_held(op, &f->token, it->id, it->seq);
    }
    return PAWL_OK;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Items of one key must be in the order of their run, except calls that are handed back, and only
 * calls with a key may have a state. `named` marks the calls of the items before. */
static enum pawl_status key_check(struct ledger *c, struct op *op, const struct finish_item *f,
                                  const struct led_lease *l, bool *named, struct pawl_err *err)
{
    struct led_call *it;
    enum pawl_status st = lean_get(c, f->seq_found, &it, err);
    if (st != PAWL_OK || !it)
        return st == PAWL_OK ? led_again(c, "a call of a lease", err) : st;
    if (!f->seq)
        st = led_id_check(f->id, it, err);
    if (st != PAWL_OK)
        return st;
    if (!it->spec.key.data && f->state_do != STATE_KEEP) {
        op->status =
            err_set(&op->err, PAWL_INVALID, "call \"%.*s\" has no key: it cannot keep a state",
                    BYTES_ARG(it->spec.id));
        return PAWL_OK;
    }
    if (f->state) /* answered before */
        return PAWL_OK;
    ssize_t at = led_lease_find(l, f->seq_found);
    CHECK(at >= 0); /* items_check() has found it */
    int before = l->run[at].before;
    named[at] = true;
    if (f->how != END_RELEASE && before >= 0 && l->state[before] == HELD_OPEN && !named[before])
        op->status = err_set(&op->err, PAWL_INVALID,
                             "call \"%.*s\": the call before it in key \"%.*s\" has not ended",
                             BYTES_ARG(it->spec.id), BYTES_ARG(it->spec.key));
    return PAWL_OK;
}

/* Check the items, and lock all their keys at once, in order. */
static enum pawl_status keys_check(struct ledger *c, struct op *op, const struct finish *f,
                                   const struct led_lease *l, struct pawl_err *err)
{
    bool *named = arena_zalloc(&c->scratch, l ? l->n + 1 : 1, sizeof *named);
    struct bytes *keys = arena_alloc(&c->scratch, (f->n + 1) * sizeof *keys);
    size_t n = 0;
    if (!named || !keys)
        return err_no_memory(err, "a finish");
    for (size_t i = 0; i < f->n; i++) {
        enum pawl_status st = key_check(c, op, &f->v[i], l, named, err);
        if (st != PAWL_OK || op->status != PAWL_OK)
            return st;
        const struct led_call *it = led_call_find(c, f->v[i].seq_found);
        if (!f->v[i].state && it->spec.key.data)
            keys[n++] = it->spec.key;
    }
    return n ? led_keys_load(c, keys, n, LOCK_WAIT, err) : PAWL_OK;
}

static enum pawl_status state_write(struct ledger *c, struct finish_item *f,
                                    const struct led_call *it, struct pawl_err *err)
{
    const struct led_lane *lane;
    struct led_object *o;
    enum pawl_status st = led_lane(c, it->now.lane, &lane, err);
    if (st == PAWL_OK && f->state_do == STATE_SET) /* the former state is not needed */
        st = led_object_over(c, lane->names.type, it->spec.key, &o, err);
    else if (st == PAWL_OK)
        st = led_object_get(c, lane->names.type, it->spec.key, &o, err);
    if (st == PAWL_OK)
        st = led_object_set(c, o, f->state_do, f->object, err);
    if (st == PAWL_OK && f->state_do == STATE_SET)
        f->version = o->state.version;
    return st;
}

/* ---- What it sends --------------------------------------------------------------------------- */

/* Replace the result by this failure. */
static enum pawl_status send_failed(struct op *op, struct led_end *e, enum ending how,
                                    struct bytes id, const char *why, struct pawl_err *err)
{
    const char *text = arena_printf(op->a, "outgoing call \"%.*s\"%s", BYTES_ARG(id), why);
    e->end.how = how;
    e->end.retry_in_us = -1;
    e->error = bytes_of(text);
    return text ? PAWL_OK : err_no_memory(err, "a finish");
}

static enum pawl_status send_all(struct ledger *c, struct op *op, const struct finish_item *f,
                                 struct led_end *e, struct pawl_err *err)
{
    struct led_look *look = arena_alloc(&c->scratch, f->n_send * sizeof *look);
    size_t lanes = 0, n = 0;
    enum pawl_status st =
        look ? led_look(c, f->send, f->n_send, look, err) : err_no_memory(err, "sent calls");
    for (size_t i = 0; i < f->n_send && st == PAWL_OK; i++) {
        if (look[i].known == KNOWN_OTHER)
            return send_failed(op, e, END_REFUSE, f->send[i].id,
                               " already exists with other content", err);
        n += look[i].known == KNOWN_NOT;
    }
    for (size_t i = 0; i < f->n_send && st == PAWL_OK; i++) {
        bool allowed = true;
        lanes += look[i].new_lane;
        if (look[i].known == KNOWN_NOT)
            st = led_needs_allowed(c, &f->send[i], &allowed, err);
        if (st == PAWL_OK && !allowed)
            return send_failed(op, e, END_ERROR, f->send[i].id,
                               ": its needs wait for pawl migrate finish", err);
        if (st == PAWL_OK && look[i].new_lane && led_lanes_full(c, lanes))
            return send_failed(op, e, END_ERROR, f->send[i].id, ": too many queues and types", err);
    }
    if (st == PAWL_OK)
        st = led_numbers(c, n, err);
    for (size_t i = 0; i < f->n_send && st == PAWL_OK; i++) {
        struct call call;
        struct led_lane_names names;
        int lane = 0;
        if (look[i].known != KNOWN_NOT)
            continue;
        st = led_lane_names(c, &f->send[i], &names, err);
        if (st == PAWL_OK)
            st = led_lane_for(c, &names, &lane, err);
        if (st == PAWL_OK)
            st = led_call_make(c, &f->send[i], lane, &call, err);
    }
    return st;
}

/* ---- The operation --------------------------------------------------------------------------- */

static void answer(struct ledger *c, struct arena *a, const struct led_end *e,
                   struct finish_item *f)
{
    const struct verdict *v = &e->verdict;
    bool pending = v->next == PAWL_PENDING;
    bool failed = v->next == PAWL_FAILED || v->next == PAWL_DEAD_LETTER;
    f->state = v->next;
    f->counts = v->counts;
    f->run_at_us = pending ? v->run_at_us : 0;
    f->finished_us = pending ? 0 : c->now_us;
    f->error_out = failed || (pending && v->count_attempt) ? e->error : BYTES_NONE;
    if (failed && e->flow == FLOW_ENDS)
        f->error_out = arena_copy(a, e->flow_error);
}

/* Hand back every call behind one that did not complete, whatever the finish says about it, unless
 * it was handed back before. */
enum pawl_status led_hand_back(struct ledger *c, struct op *op, struct led_lease *l, int i,
                               struct finish *f, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (; i >= 0 && st == PAWL_OK; i = l->run[i].behind) {
        if (l->state[i] != HELD_OPEN)
            continue;
        struct led_end e = { .end = { .how = END_RELEASE }, .owner = true, .unbegun = true };
        struct led_call *it = NULL;
        bool named = false;
        st = led_attempt_end(c, l, (size_t)i, &e, &it, err);
        for (size_t k = 0; k < f->n && st == PAWL_OK && !named; k++)
            if ((named = f->v[k].seq_found == l->held[i].seq))
                answer(c, op->a, &e, &f->v[k]);
        if (st == PAWL_OK && it->now.place == AT_ENDED && !named)
            st = led_told_ended(op, it->spec.id, err);
        if (st == PAWL_OK)
            led_lease_done(l, (size_t)i, e.verdict.next == PAWL_PENDING);
    }
    return st;
}

/* What is stored with the item is decided first: if it is refused, the item ends as an error. */
static enum pawl_status with_apply(struct ledger *c, struct op *op, const struct finish *f,
                                   struct finish_item *it, struct led_end *e, struct pawl_err *err)
{
    struct op *with;
    enum pawl_status st = led_feature_with(c, op, it, &f->token, &with, err);
    if (st != PAWL_OK || with->status == PAWL_OK)
        return st;
    e->end.how = END_ERROR;
    e->end.retry_in_us = -1;
    e->error = arena_copy(op->a, bytes_of(with->err.text));
    return e->error.data ? PAWL_OK : err_no_memory(err, "a finish");
}

/* What goes with a result: calls that it sends, and the state of its object. Not if its feature
 * lets a flow end otherwise, or go on. */
static enum pawl_status result_apply(struct ledger *c, struct op *op, struct finish_item *it,
                                     struct led_end *e, struct pawl_err *err)
{
    struct led_call *call;
    if (e->end.how != END_RESULT || (!it->n_send && it->state_do == STATE_KEEP))
        return PAWL_OK;
    enum pawl_status st = led_held_call(c, it->seq_found, &call, err);
    struct led_end first = *e;
    first.verdict = (struct verdict){ .next = PAWL_COMPLETED };
    if (st == PAWL_OK)
        st = led_flow_ends(c, call, &first, err);
    if (st != PAWL_OK || first.flow != FLOW_AS_IS)
        return st;
    if (it->n_send)
        st = send_all(c, op, it, e, err);
    if (st == PAWL_OK && e->end.how == END_RESULT && it->state_do != STATE_KEEP)
        st = state_write(c, it, call, err);
    return st;
}

/* Does the owner give it back before its handler began? A node says when that began; what a worker
 * outside did before it gives a call back is not known. */
static bool gives_back_unbegun(const struct led_lease *l, const struct finish_item *it)
{
    bool back = it->how == END_RELEASE || it->how == END_LATER || it->how == END_CANCELLED;
    return back && !it->started_us && !l->until_us;
}

static enum pawl_status finish_one(struct ledger *c, struct op *op, struct led_lease *l,
                                   struct finish *f, struct finish_item *it, struct pawl_err *err)
{
    ssize_t at = led_lease_find(l, it->seq_found);
    CHECK(at >= 0 && l->state[at] == HELD_OPEN); /* items_check() has found it */
    size_t i = (size_t)at;
    int behind = l->run[i].behind;
    struct led_end e = { .end = { .how = it->how, .retry_in_us = it->retry_in_us },
                         .result = it->result,
                         .error = it->error,
                         .started_us = it->started_us,
                         .claimed_us = l->claimed_us,
                         .owner = true,
                         .unbegun = gives_back_unbegun(l, it) };
    const struct led_lane *lane;
    struct led_call *call;
    enum pawl_status st = PAWL_OK;
    if (it->with)
        st = with_apply(c, op, f, it, &e, err);
    if (st == PAWL_OK)
        st = result_apply(c, op, it, &e, err);
    if (st == PAWL_OK)
        st = led_lane(c, l->held[i].lane, &lane, err);
    if (st != PAWL_OK)
        return st;
    it->queue = lane->names.queue;
    it->type = lane->names.type;
    it->flow = lane->flow;
    st = led_attempt_end(c, l, i, &e, &call, err);
    if (st != PAWL_OK)
        return st;
    answer(c, op->a, &e, it);
    led_lease_done(l, i, it->state == PAWL_PENDING);
    if (it->state != PAWL_COMPLETED && behind >= 0)
        st = led_hand_back(c, op, l, behind, f, err);
    return st;
}

enum pawl_status led_finish(struct ledger *c, struct op *op, struct finish *f, size_t *out_stored,
                            struct pawl_err *err)
{
    struct led_lease *l = NULL;
    *out_stored = 0;
    enum pawl_status st = items_find(c, op, f, err);
    if (st == PAWL_OK && op->status == PAWL_OK)
        st = led_lease_get(c, &f->token, &l, err);
    if (st == PAWL_OK && op->status == PAWL_OK)
        st = items_check(c, op, f, l, err);
    if (st == PAWL_OK && op->status == PAWL_OK)
        st = keys_check(c, op, f, l, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    for (size_t i = 0; i < f->n && st == PAWL_OK; i++) {
        if (f->v[i].state)
            continue; /* answered before, or handed back with the one before it */
        st = finish_one(c, op, l, f, &f->v[i], err);
        ++*out_stored;
    }
    f->until_us = l && !l->missing && !led_lease_over(l, c->now_us) ? l->until_us : 0;
    return st;
}
