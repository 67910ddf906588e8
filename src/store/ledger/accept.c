/*
 * accept.c - accepting calls. Known ids are answered from what is stored, without a write.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "model/needs.h"
#include "store/ledger/cache.h"

/* ---- One call -------------------------------------------------------------------------------- */

/* A due call with a key joins the line. If the key is free and its line is empty, the call is the
 * head at once. */
static void place_in_line(struct ledger *c, struct led_call *it, struct led_key *k)
{
    struct led_stand *s = &it->now;
    bool first = k->got && k->turn == KEY_IDLE && k->waiting == 0;
    s->pos = led_line_place(c, it->seq);
    s->place = first ? AT_READY : AT_LINE;
    *(k->got ? &k->waiting : &k->note_waiting) += 1;
    if (first)
        led_key_offer(k, it->seq, s);
    else if (k->got)
        led_line_join(k, it);
    CHECK(!k->got || led_line_stored(k) >= 0);
    c->tx->fresh = c->tx->fresh || first;
}

/* Put a new call where it waits: in `ready`, or in its key's line. */
static enum pawl_status place_new(struct ledger *c, struct led_call *it, struct call *out,
                                  struct call_where *where, struct pawl_err *err)
{
    struct led_stand *s = &it->now;
    struct led_key *k;
    s->place = AT_READY;
    if (!it->spec.key.data) {
        c->tx->fresh = true;
        return PAWL_OK;
    }
    enum pawl_status st = led_key_get(c, it->spec.key, LOCK_TRY, &k, err);
    if (st != PAWL_OK)
        return st;
    out->in_line = s->run_at_us <= c->now_us;
    if (!out->in_line) {
        s->place = AT_DELAYED;
        *(k->got ? &k->later : &k->note_later) += 1;
        c->tx->delayed = true;
    } else {
        place_in_line(c, it, k);
        out->position = MAX(k->held - 1, 0) + k->waiting + k->note_waiting + k->seen_waiting;
        where->behind = s->place == AT_LINE;
        CHECK(out->position > 0); /* its key counts it */
    }
    k->dirty = k->dirty || k->got;
    c->tx->noted = c->tx->noted || !k->got;
    if (k->got)
        led_key_turn(c, k);
    return PAWL_OK;
}

enum pawl_status led_call_make(struct ledger *c, const struct call_spec *s, int lane,
                               struct call *out, struct pawl_err *err)
{
    struct led_id *id;
    struct call_where where = { 0 };
    int64_t seq;
    enum pawl_status st = led_id_get(c, s->id, &id, err);
    if (st == PAWL_OK)
        st = led_number_next(c, &seq, err);
    if (st != PAWL_OK)
        return st;
    struct led_call *it = led_call_new(c, seq);
    if (!it)
        return err_no_memory(err, "a call");
    if (it->fresh || it->partial || it->was.place != AT_NONE)
        return err_set(err, PAWL_BROKEN, "database: the number %lld was given to two calls",
                       (long long)seq);
    CHECK(!id->claimed || id->claimed == seq);
    id->seq = seq;
    id->fresh = !id->claimed;
    memcpy(id->fingerprint, s->fingerprint, FINGERPRINT_LEN);
    *out = (struct call){ .spec = *s, .seq = seq, .state = PAWL_PENDING, .created_us = c->now_us };
    call_times(s, c->now_us, &out->run_at_us, &out->expires_us);
    call_run_until(&out->spec, out->run_at_us, &out->expires_us);
    if (needs_steps(s->needs, s->n_needs)) /* a flow from the start has begun: it cannot expire */
        out->expires_us = 0;
    it->spec = out->spec; /* borrowed from the operation, for the transaction */
    it->spec.delay_us = it->spec.run_at_us = it->spec.expires_in_us = it->spec.expires_at_us = 0;
    it->payload = it->fresh = true;
    it->created_us = c->now_us;
    it->own_lane = lane;
    it->own_priority = s->priority;
    it->own_run_at_us = out->run_at_us;
    it->own_expires_us = out->expires_us;
    it->now = (struct led_stand){ .state = PAWL_PENDING,
                                  .lane = lane,
                                  .priority = s->priority,
                                  .run_at_us = out->run_at_us,
                                  .expires_us = out->expires_us };
    st = place_new(c, it, out, &where, err);
    if (st == PAWL_OK)
        st = led_lane_paused(c, lane, &where.queue_paused, err);
    if (st == PAWL_OK)
        out->waiting_for = call_waiting_for(out, c->now_us, where);
    return st;
}

/* ---- A batch, looked at before it is written ------------------------------------------------- */

/* A call of a batch, for sorting by id or by lane; equal ones stay in their order. */
struct entry {
    const struct call_spec *s;
    size_t i;
    struct led_lane_names lane; /* look_lanes() */
};

static int compare_ids(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = bytes_cmp(x->s->id, y->s->id);
    return order ? order : (x->i > y->i) - (x->i < y->i);
}

static int lanes_cmp(const struct led_lane_names *x, const struct led_lane_names *y)
{
    int order = bytes_cmp(x->queue, y->queue);
    if (!order)
        order = bytes_cmp(x->type, y->type);
    if (!order)
        order = (x->n_needs > y->n_needs) - (x->n_needs < y->n_needs);
    for (size_t i = 0; i < x->n_needs && !order; i++)
        order = bytes_cmp(x->needs[i], y->needs[i]);
    return order ? order : bytes_cmp(x->gate, y->gate);
}

static int compare_lanes(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = lanes_cmp(&x->lane, &y->lane);
    return order ? order : (x->i > y->i) - (x->i < y->i);
}

static enum led_known same_print(const unsigned char *a, const unsigned char *b)
{
    return memcmp(a, b, FINGERPRINT_LEN) == 0 ? KNOWN_SAME : KNOWN_OTHER;
}

/* Compare ids with each other and with what is stored. */
static enum pawl_status look_ids(struct ledger *c, struct entry *e, size_t n, struct led_look *out,
                                 struct pawl_err *err)
{
    const struct entry *first = NULL;
    led_sort(e, n, sizeof *e, compare_ids);
    for (size_t k = 0; k < n; k++) {
        struct led_id *id;
        if (first && bytes_eq(first->s->id, e[k].s->id)) {
            out[e[k].i].known = same_print(first->s->fingerprint, e[k].s->fingerprint);
            continue;
        }
        enum pawl_status st = led_id_get(c, e[k].s->id, &id, err);
        if (st != PAWL_OK)
            return st;
        if (id->seq)
            out[e[k].i].known = same_print(id->fingerprint, e[k].s->fingerprint);
        else
            first = &e[k];
    }
    return PAWL_OK;
}

/* Which of these calls need a new lane? None of them has one in use, as far as is known. */
static enum pawl_status look_lanes(struct ledger *c, struct entry *e, size_t n,
                                   struct led_look *out, struct pawl_err *err)
{
    bool retired = false;
    enum pawl_status st = led_lanes_lock(c, err);
    for (size_t k = 0; k < n && st == PAWL_OK; k++) {
        int lane = 0;
        st = led_lane_find(c, &e[k].lane, &lane, err);
        retired = retired || (!lane && led_lane_known(c, &e[k].lane));
    }
    /* Those that are retired, or fill the table, may have been removed. */
    if (st == PAWL_OK && (retired || led_lanes_full(c, n)))
        st = led_lanes_sure(c, err);
    qsort(e, n, sizeof *e, compare_lanes);
    for (size_t k = 0; k < n && st == PAWL_OK; k++)
        out[e[k].i].new_lane = !led_lane_known(c, &e[k].lane) &&
                               (k == 0 || lanes_cmp(&e[k].lane, &e[k - 1].lane) != 0);
    return st;
}

enum pawl_status led_look(struct ledger *c, const struct call_spec *v, size_t n,
                          struct led_look *out, struct pawl_err *err)
{
    struct entry *e = arena_alloc(&c->scratch, (n + 1) * sizeof *e);
    size_t missing = 0;
    if (!e)
        return err_no_memory(err, "a batch");
    memset(out, 0, n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        e[i] = (struct entry){ .s = &v[i], .i = i };
    enum pawl_status st = look_ids(c, e, n, out, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct led_lane_names names;
        int lane = 0;
        if (out[i].known != KNOWN_NOT)
            continue;
        st = led_lane_names(c, &v[i], &names, err);
        if (st == PAWL_OK)
            st = led_lane_find(c, &names, &lane, err);
        if (!lane)
            e[missing++] = (struct entry){ &v[i], i, names };
    }
    return st == PAWL_OK && missing ? look_lanes(c, e, missing, out, err) : st;
}

/* ---- The operation --------------------------------------------------------------------------- */

/* If the key of the call has no room: how many calls are pending on it, with `more` new ones of the
 * same operation. Else 0. */
static enum pawl_status line_full(struct ledger *c, const struct call_spec *s, int64_t more,
                                  int64_t *out, struct pawl_err *err)
{
    struct led_key *k;
    *out = 0;
    if (!s->key.data || !c->key_pending_max)
        return PAWL_OK;
    enum pawl_status st = led_key_get(c, s->key, LOCK_TRY, &k, err);
    CHECK(st != PAWL_OK || led_key_pending(k) >= 0);
    if (st == PAWL_OK && led_key_pending(k) + more >= c->key_pending_max)
        *out = led_key_pending(k) + more;
    return st;
}

static enum pawl_status say_no_room(const struct ledger *c, const struct call_spec *s,
                                    const struct accepted *a, struct pawl_err *err)
{
    if (a->status == PAWL_STATE)
        return err_set(err, PAWL_STATE,
                       "field \"%s\": every node must run this version first: run pawl migrate "
                       "finish",
                       s->run_timeout_us ? "run_timeout" : "needs");
    if (a->line_full)
        return err_set(err, PAWL_FULL, "key \"%.*s\": %lld calls pending, limit %lld",
                       BYTES_ARG(s->key), (long long)a->line_full, (long long)c->key_pending_max);
    return err_set(err, PAWL_FULL, "queue \"%.*s\", type \"%.*s\": %d lanes, limit %d",
                   BYTES_ARG(s->queue), BYTES_ARG(s->type), LANES_MAX, LANES_MAX);
}

/* The id is known: answer with its call, and whether its content is the same. */
static enum pawl_status known(struct ledger *c, struct op *op, const struct call_spec *s,
                              const struct led_id *id, struct accepted *out, struct pawl_err *err)
{
    struct led_call *it;
    bool same = same_print(id->fingerprint, s->fingerprint) == KNOWN_SAME;
    unsigned with = same && op->accept.want_result ? WITH_INPUT | WITH_RESULT : 0;
    enum pawl_status st = led_call_get(c, id->seq, &it, err);
    if (st == PAWL_OK && !it)
        return led_again(c, "an id names a call that does not exist", err);
    if (st == PAWL_OK)
        st = led_id_check(id->id, it, err);
    if (st == PAWL_OK)
        st = led_show(c, op->a, it, with, &out->call, err);
    if (st != PAWL_OK)
        return st;
    out->status = !same ? PAWL_CONFLICT : it->now.place == AT_GONE ? PAWL_GONE : PAWL_OK;
    out->duplicate = out->status == PAWL_OK;
    return PAWL_OK;
}

enum pawl_status led_needs_allowed(struct ledger *c, const struct call_spec *s, bool *out,
                                   struct pawl_err *err)
{
    *out = true;
    if (s->run_timeout_us) /* an option that older nodes do not know */
        return led_finished(c, FLOW_STEP, out, err);
    return s->n_needs ? led_finished(c, LANES_STEP, out, err) : PAWL_OK;
}

static enum pawl_status accept_one(struct ledger *c, struct op *op, const struct call_spec *s,
                                   struct accepted *out, struct pawl_err *err)
{
    struct led_lane_names names;
    struct led_id *id;
    bool allowed = true;
    int lane;
    enum pawl_status st =
        c->db->one_writer ? led_id_claim(c, s, &id, err) : led_id_get(c, s->id, &id, err);
    if (st != PAWL_OK)
        return st;
    if (id->seq)
        return known(c, op, s, id, out, err);
    st = line_full(c, s, 0, &out->line_full, err);
    if (st == PAWL_OK)
        st = led_needs_allowed(c, s, &allowed, err);
    if (st == PAWL_OK && !out->line_full && allowed)
        st = led_lane_names(c, s, &names, err);
    if (st == PAWL_OK && !out->line_full && allowed)
        st = led_lane_for(c, &names, &lane, err);
    if (st == PAWL_OK && (out->line_full || !allowed || !lane)) {
        out->status = allowed ? PAWL_FULL : PAWL_STATE;
        return led_id_release(c, id, err);
    }
    return st == PAWL_OK ? led_call_make(c, s, lane, &out->call, err) : st;
}

/* Would the i-th call of a batch find its line full? New calls before it count. */
static enum pawl_status line_full_at(struct ledger *c, const struct accept *q,
                                     const struct led_look *look, size_t i, int64_t *out,
                                     struct pawl_err *err)
{
    int64_t more = 0;
    enum pawl_status st = line_full(c, &q->v[i], (int64_t)i, out, err);
    if (st != PAWL_OK || !*out)
        return st;
    for (size_t k = 0; k < i; k++)
        more += look[k].known == KNOWN_NOT && bytes_eq(q->v[k].key, q->v[i].key);
    return line_full(c, &q->v[i], more, out, err);
}

/* The index of the first call of an atomic batch that would be refused; n: none would be. */
static enum pawl_status first_refusal(struct ledger *c, struct op *op, const struct led_look *look,
                                      size_t *out, struct pawl_err *err)
{
    struct accept *q = &op->accept;
    size_t lanes = 0;
    enum pawl_status st = PAWL_OK;
    for (*out = 0; st == PAWL_OK && *out < q->n; ++*out) {
        struct accepted *answer = &q->out[*out];
        struct led_id *id;
        bool allowed = true;
        lanes += look[*out].new_lane;
        if (look[*out].known == KNOWN_NOT)
            st = line_full_at(c, q, look, *out, &answer->line_full, err);
        if (st == PAWL_OK && look[*out].known == KNOWN_NOT)
            st = led_needs_allowed(c, &q->v[*out], &allowed, err);
        if (st == PAWL_OK)
            st = led_id_get(c, q->v[*out].id, &id, err);
        if (st != PAWL_OK)
            return st;
        if (!allowed)
            answer->status = PAWL_STATE;
        else if (answer->line_full || (look[*out].new_lane && led_lanes_full(c, lanes)))
            answer->status = PAWL_FULL;
        else if (look[*out].known != KNOWN_NOT && id->seq)
            st = known(c, op, &q->v[*out], id, answer, err);
        else if (look[*out].known == KNOWN_OTHER)
            answer->status = PAWL_CONFLICT; /* conflicts with an earlier call of the batch */
        if (st != PAWL_OK || answer->status != PAWL_OK)
            break;
    }
    return st;
}

void led_say_refused(const struct ledger *c, struct op *op, const struct call_spec *s,
                     const struct accepted *a)
{
    enum pawl_status st = op->status = a->status;
    if (st == PAWL_FULL || st == PAWL_STATE)
        say_no_room(c, s, a, &op->err);
    else if (st == PAWL_GONE)
        err_set(&op->err, st, "call \"%.*s\" has ended and is no longer kept", BYTES_ARG(s->id));
    else
        err_set(&op->err, st, "call \"%.*s\" already exists with other content", BYTES_ARG(s->id));
}

/* Load the keys of the new calls, and draw their numbers. */
static enum pawl_status prepare(struct ledger *c, const struct accept *q,
                                const struct led_look *look, struct pawl_err *err)
{
    struct bytes *keys = arena_alloc(&c->scratch, (q->n + 1) * sizeof *keys);
    size_t n_keys = 0, n = 0;
    if (!keys)
        return err_no_memory(err, "a batch");
    for (size_t i = 0; i < q->n; i++) {
        if (look[i].known != KNOWN_NOT)
            continue;
        n++;
        if (q->v[i].key.data)
            keys[n_keys++] = q->v[i].key;
    }
    enum pawl_status st = n_keys ? led_keys_load(c, keys, n_keys, LOCK_TRY, err) : PAWL_OK;
    /* If one of them may be refused, draw numbers later: a refused call uses no number. */
    bool sure = !led_lanes_full(c, n);
    for (size_t i = 0; st == PAWL_OK && i < n_keys && sure && c->key_pending_max; i++) {
        struct led_key *k;
        st = led_key_get(c, keys[i], LOCK_TRY, &k, err);
        sure = st == PAWL_OK && led_key_pending(k) + (int64_t)n <= c->key_pending_max;
    }
    return st == PAWL_OK && sure ? led_numbers(c, n, err) : st;
}

/* Load together what the calls of a batch need. *refused: the whole batch is refused. */
static enum pawl_status look_ahead(struct ledger *c, struct op *op, bool *refused,
                                   struct pawl_err *err)
{
    struct accept *q = &op->accept;
    struct led_look *look = arena_alloc(&c->scratch, q->n * sizeof *look);
    if (!look)
        return err_no_memory(err, "accepted calls");
    enum pawl_status st = led_look(c, q->v, q->n, look, err);
    if (st == PAWL_OK && q->atomic) {
        st = first_refusal(c, op, look, &q->refused, err);
        *refused = st == PAWL_OK && q->refused < q->n;
        if (*refused) {
            led_say_refused(c, op, &q->v[q->refused], &q->out[q->refused]);
            return PAWL_OK;
        }
        q->refused = 0;
        memset(q->out, 0, q->n * sizeof *q->out);
    }
    return st == PAWL_OK ? prepare(c, q, look, err) : st;
}

/* A node of a version before WATCH_STEP would read a watched call as damaged. */
static enum pawl_status watch_check(struct ledger *c, struct op *op, struct pawl_err *err)
{
    const struct accept *q = &op->accept;
    unsigned watch = 0;
    bool finished;
    for (size_t i = 0; i < q->n; i++)
        watch |= q->v[i].watch;
    if (!watch)
        return PAWL_OK;
    enum pawl_status st = led_finished(c, WATCH_STEP, &finished, err);
    if (st == PAWL_OK && !finished)
        op->status = err_set(&op->err, PAWL_STATE,
                             "a call that a feature watches needs every node to run this version: "
                             "run pawl migrate finish");
    return st;
}

enum pawl_status led_accept(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct accept *q = &op->accept;
    bool refused = false;
    q->out = arena_zalloc(op->a, q->n, sizeof *q->out);
    if (!q->out)
        return err_no_memory(err, "accepted calls");
    enum pawl_status st = watch_check(c, op, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    if (q->atomic || !c->db->one_writer)
        st = look_ahead(c, op, &refused, err);
    if (refused)
        return st;
    for (size_t i = 0; i < q->n && st == PAWL_OK; i++)
        st = accept_one(c, op, &q->v[i], &q->out[i], err);
    return st;
}
