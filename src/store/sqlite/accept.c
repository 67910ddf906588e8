/*
 * accept.c - writing calls down. Known ids are answered from what is stored, without a write.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/sqlite/move.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/read.h"

/* ---- One call -------------------------------------------------------------------------------- */

static enum pawl_status tags_write(struct lite *c, const struct call_spec *s, int64_t seq,
                                   struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < s->n_tags && st == PAWL_OK; i++)
        st = lite_run(c, SQL_TAG_ADD, ARGS(TEXT(s->tags[i].name), TEXT(s->tags[i].value), INT(seq)),
                      NULL, err);
    return st;
}

static enum pawl_status row_write(struct lite *c, const struct call_spec *s, int lane,
                                  const struct call *as, struct pawl_err *err)
{
    struct bytes options, tags;
    enum pawl_status st = call_options_write(&c->scratch, s, &options, err);
    if (st == PAWL_OK)
        st = call_tags_write(&c->scratch, s, &tags, err);
    if (st != PAWL_OK)
        return st;
    return lite_run(c, SQL_CALL_ADD,
                    ARGS(INT(as->seq), TEXT(s->id), INT(lane), TEXT(s->method), TEXT(s->key),
                         INT(s->input.form), BLOB(s->input.bytes), INT(s->priority),
                         INT(as->created_us), INT(as->run_at_us), INT_OR_NULL(as->expires_us),
                         TEXT(options), TEXT(s->caller), TEXT(s->client), TEXT(s->parent),
                         TEXT(s->traceparent), TEXT(tags)),
                    NULL, err);
}

/* Where a new call waits: where it can be claimed, or in its key's line. */
static enum pawl_status place_new(struct lite *c, const struct call_spec *s, int lane,
                                  struct call *out, struct call_where *where, struct pawl_err *err)
{
    struct lite_key *k;
    bool offer = true;
    enum pawl_status st = PAWL_OK;
    if (s->key.data) {
        struct lite_place p = { .pos = out->seq,
                                .seq = out->seq,
                                .lane = lane,
                                .priority = s->priority,
                                .run_at_us = out->run_at_us };
        st = lite_key_get(c, s->key, &k, err);
        if (st != PAWL_OK)
            return st;
        out->in_line = out->run_at_us <= c->now_us;
        offer = false;
        st = out->in_line ? lite_key_join(c, k, &p, &offer, err) : lite_key_later(c, k, &p, err);
        if (out->in_line)
            out->position = MAX(k->held - 1, 0) + k->waiting;
        where->behind = out->in_line && !offer;
    }
    if (st == PAWL_OK && offer)
        return lite_fresh_add(c,
                              &(struct lite_fresh){ .seq = out->seq,
                                                    .run_at_us = out->run_at_us,
                                                    .expires_us = out->expires_us,
                                                    .spec = s,
                                                    .lane = lane,
                                                    .priority = s->priority },
                              err);
    if (st == PAWL_OK && out->expires_us)
        st = lite_run(c, SQL_EXPIRY_ADD, ARGS(INT(out->expires_us), INT(out->seq)), NULL, err);
    return st;
}

enum pawl_status lite_call_make(struct lite *c, const struct call_spec *s, int lane,
                                struct call *out, bool *out_new, struct pawl_err *err)
{
    struct bytes print = { (const char *)s->fingerprint, sizeof s->fingerprint };
    int changed = 0;
    struct call_where where = { 0 };
    enum pawl_status st = lite_seq_load(c, err);
    if (st == PAWL_OK)
        st =
            lite_run(c, SQL_ID_ADD, ARGS(TEXT(s->id), INT(c->seq + 1), BLOB(print)), &changed, err);
    *out_new = changed == 1;
    if (st != PAWL_OK || changed == 0)
        return st;
    *out = (struct call){
        .spec = *s, .seq = ++c->seq, .state = PAWL_PENDING, .created_us = c->now_us
    };
    call_times(s, c->now_us, &out->run_at_us, &out->expires_us);
    st = row_write(c, s, lane, out, err);
    if (st == PAWL_OK)
        st = tags_write(c, s, out->seq, err);
    if (st == PAWL_OK)
        st = place_new(c, s, lane, out, &where, err);
    if (st == PAWL_OK)
        st = lite_lane_paused(c, lane, &where.queue_paused, err);
    if (st == PAWL_OK)
        out->waiting_for = call_waiting_for(out, c->now_us, where);
    return st;
}

enum pawl_status lite_lane_for(struct lite *c, const struct call_spec *s, int *out,
                               struct pawl_err *err)
{
    enum pawl_status st = lite_lane_find(c, s->queue, s->type, out, err);
    if (st != PAWL_OK || *out || lite_lanes_full(c, 1))
        return st;
    return lite_lane_make(c, s->queue, s->type, out, err);
}

/* ---- A batch, looked at before it is written ------------------------------------------------- */

/* One of a batch, for sorting: by id, or by lane; the earlier one first among equals. */
struct entry {
    const struct call_spec *s;
    size_t i;
};

static int compare_ids(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = bytes_cmp(x->s->id, y->s->id);
    return order ? order : (x->i > y->i) - (x->i < y->i);
}

static int compare_lanes(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = bytes_cmp(x->s->queue, y->s->queue);
    if (!order)
        order = bytes_cmp(x->s->type, y->s->type);
    return order ? order : (x->i > y->i) - (x->i < y->i);
}

static enum lite_known same_print(const unsigned char *a, const unsigned char *b)
{
    return memcmp(a, b, FINGERPRINT_LEN) == 0 ? KNOWN_SAME : KNOWN_OTHER;
}

/* Ids against each other and against what is stored. */
static enum pawl_status look_ids(struct lite *c, struct entry *e, size_t n, struct lite_look *out,
                                 struct pawl_err *err)
{
    const struct entry *first = NULL;
    qsort(e, n, sizeof *e, compare_ids);
    for (size_t k = 0; k < n; k++) {
        unsigned char print[FINGERPRINT_LEN];
        int64_t seq;
        if (first && bytes_eq(first->s->id, e[k].s->id)) {
            out[e[k].i].known = same_print(first->s->fingerprint, e[k].s->fingerprint);
            continue;
        }
        enum pawl_status st = lite_id_find(c, e[k].s->id, &seq, print, err);
        if (st != PAWL_OK)
            return st;
        if (seq)
            out[e[k].i].known = same_print(print, e[k].s->fingerprint);
        else
            first = &e[k];
    }
    return PAWL_OK;
}

enum pawl_status lite_look(struct lite *c, const struct call_spec *v, size_t n,
                           struct lite_look *out, struct pawl_err *err)
{
    struct entry *e = arena_alloc(&c->scratch, n * sizeof *e);
    size_t missing = 0;
    if (!e)
        return err_no_memory(err, "a batch");
    memset(out, 0, n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        e[i] = (struct entry){ &v[i], i };
    enum pawl_status st = look_ids(c, e, n, out, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        int lane = 0;
        if (out[i].known == KNOWN_NOT)
            st = lite_lane_find(c, v[i].queue, v[i].type, &lane, err);
        if (out[i].known == KNOWN_NOT && !lane)
            e[missing++] = (struct entry){ &v[i], i };
    }
    qsort(e, missing, sizeof *e, compare_lanes);
    for (size_t k = 0; k < missing; k++)
        out[e[k].i].new_lane = k == 0 || !bytes_eq(e[k].s->queue, e[k - 1].s->queue) ||
                               !bytes_eq(e[k].s->type, e[k - 1].s->type);
    return st;
}

/* ---- The operation --------------------------------------------------------------------------- */

/* How many calls are pending on its key, `more` of them new in the same operation, when that is as
 * many as may be; else 0. */
static enum pawl_status line_full(struct lite *c, const struct call_spec *s, int64_t more,
                                  int64_t *out, struct pawl_err *err)
{
    struct lite_key *k;
    *out = 0;
    if (!s->key.data || !c->key_pending_max)
        return PAWL_OK;
    enum pawl_status st = lite_key_get(c, s->key, &k, err);
    if (st == PAWL_OK && lite_key_pending(k) + more >= c->key_pending_max)
        *out = lite_key_pending(k) + more;
    return st;
}

static enum pawl_status say_full(const struct lite *c, const struct call_spec *s,
                                 const struct accepted *a, struct pawl_err *err)
{
    if (a->line_full)
        return err_set(err, PAWL_FULL, "key \"%.*s\": %lld calls pending, limit %lld",
                       BYTES_ARG(s->key), (long long)a->line_full, (long long)c->key_pending_max);
    return err_set(err, PAWL_FULL, "queue \"%.*s\", type \"%.*s\": %d lanes, limit %d",
                   BYTES_ARG(s->queue), BYTES_ARG(s->type), LANES_MAX, LANES_MAX);
}

/* The id is known: what stands there, and how that compares. */
static enum pawl_status known(struct lite *c, struct op *op, const struct call_spec *s,
                              struct accepted *out, struct pawl_err *err)
{
    unsigned char print[FINGERPRINT_LEN];
    struct lite_shelf to = { .a = op->a };
    int64_t seq;
    enum pawl_status st = lite_id_find(c, s->id, &seq, print, err);
    if (st == PAWL_OK && lite_fresh_has(c, seq))
        st = lite_fresh_write(c, err);
    if (st != PAWL_OK)
        return st;
    bool same = same_print(print, s->fingerprint) == KNOWN_SAME;
    unsigned with = same && op->accept.want_result ? WITH_INPUT | WITH_RESULT : 0;
    st = lite_stands(c, &to, seq, with, &out->call, err);
    if (st != PAWL_OK && st != PAWL_GONE)
        return st;
    out->status = same ? st : PAWL_CONFLICT;
    out->duplicate = out->status == PAWL_OK;
    return PAWL_OK;
}

static enum pawl_status accept_one(struct lite *c, struct op *op, const struct call_spec *s,
                                   struct accepted *out, struct pawl_err *err)
{
    int lane;
    int64_t seq = 0;
    bool fresh = false;
    enum pawl_status st = lite_lane_find(c, s->queue, s->type, &lane, err);
    if (st == PAWL_OK)
        st = line_full(c, s, 0, &out->line_full, err);
    /* A new lane is made only for a call that is new, and a line is full only to one. */
    if (st == PAWL_OK && (!lane || out->line_full))
        st = lite_id_find(c, s->id, &seq, NULL, err);
    if (seq)
        out->line_full = 0;
    if (st == PAWL_OK && !lane && !seq && !out->line_full)
        st = lite_lane_for(c, s, &lane, err);
    if (st == PAWL_OK && !seq && (!lane || out->line_full)) {
        out->status = PAWL_FULL;
        return PAWL_OK;
    }
    if (st == PAWL_OK && !seq)
        st = lite_call_make(c, s, lane, &out->call, &fresh, err);
    if (st == PAWL_OK && !fresh)
        st = known(c, op, s, out, err);
    return st;
}

/* Would the i-th of a batch find its line full? Those before it that are new count. */
static enum pawl_status line_full_at(struct lite *c, const struct accept *q,
                                     const struct lite_look *look, size_t i, int64_t *out,
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

/* The first of an atomic batch that would be refused; n: none. */
static enum pawl_status first_refusal(struct lite *c, struct op *op, size_t *out,
                                      struct pawl_err *err)
{
    struct accept *q = &op->accept;
    struct lite_look *look = arena_alloc(&c->scratch, q->n * sizeof *look);
    size_t lanes = 0;
    enum pawl_status st =
        look ? lite_look(c, q->v, q->n, look, err) : err_no_memory(err, "a batch");
    for (*out = 0; st == PAWL_OK && *out < q->n; ++*out) {
        struct accepted *answer = &q->out[*out];
        lanes += look[*out].new_lane;
        if (look[*out].known == KNOWN_NOT)
            st = line_full_at(c, q, look, *out, &answer->line_full, err);
        if (answer->line_full || (look[*out].new_lane && lite_lanes_full(c, lanes)))
            answer->status = PAWL_FULL;
        else if (look[*out].known != KNOWN_NOT) {
            int64_t seq;
            st = lite_id_find(c, q->v[*out].id, &seq, NULL, err);
            if (st == PAWL_OK && seq)
                st = known(c, op, &q->v[*out], answer, err);
            else if (look[*out].known == KNOWN_OTHER)
                answer->status = PAWL_CONFLICT; /* with an earlier one of the batch */
        }
        if (st != PAWL_OK || answer->status != PAWL_OK)
            break;
    }
    return st;
}

static void say_refused(const struct lite *c, struct op *op, const struct call_spec *s,
                        const struct accepted *a)
{
    enum pawl_status st = op->status = a->status;
    if (st == PAWL_FULL)
        say_full(c, s, a, &op->err);
    else if (st == PAWL_GONE)
        err_set(&op->err, st, "call \"%.*s\" has ended and is no longer kept", BYTES_ARG(s->id));
    else
        err_set(&op->err, st, "call \"%.*s\" already exists with other content", BYTES_ARG(s->id));
}

enum pawl_status lite_accept(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct accept *q = &op->accept;
    enum pawl_status st = PAWL_OK;
    q->out = arena_zalloc(op->a, q->n, sizeof *q->out);
    if (!q->out)
        return err_no_memory(err, "accepted calls");
    if (q->atomic) {
        st = first_refusal(c, op, &q->refused, err);
        if (st == PAWL_OK && q->refused < q->n) {
            say_refused(c, op, &q->v[q->refused], &q->out[q->refused]);
            return PAWL_OK;
        }
        q->refused = 0;
        memset(q->out, 0, q->n * sizeof *q->out);
    }
    for (size_t i = 0; i < q->n && st == PAWL_OK; i++)
        st = accept_one(c, op, &q->v[i], &q->out[i], err);
    return st;
}
