/*
 * feature.c - operations of features (store/feature.h): their fence, what they load together, the
 * operations that they run inside theirs, and what they are told about calls.
 *
 * The functions feature_...() are called by features, on the thread of the handle, inside the
 * functions that this file calls. Features see what the group has decided in memory through nested
 * operations alone; their own tables they read and write with statements of their own.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/hook.h"
#include "base/limits.h"
#include "store/ledger/flow.h"

/* What a feature does about calls that moved may move others. A chain that is longer than this has
 * no end. */
#define MOVED_ROUNDS_MAX 8

/* ---- Loading --------------------------------------------------------------------------------- */

static enum pawl_status load(struct ledger *c, const struct feature *of, struct op *const *v,
                             size_t n, struct pawl_err *err)
{
    return of->load && n ? of->load(c, v, n, err) : PAWL_OK;
}

/* By feature, so that two groups lock the rows of several features in the same order; operations of
 * one feature stay in their order. */
struct loading {
    struct op *op;
    size_t i;
};

static int compare_loading(const void *a, const void *b)
{
    const struct loading *x = a, *y = b;
    int order = strcmp(x->op->feature.of->name, y->op->feature.of->name);
    return order ? order : (x->i > y->i) - (x->i < y->i);
}

/* Make the operation of a finish_item.with. */
static struct op *with_make(struct ledger *c, struct op *op, const struct finish_item *it,
                            const struct token *token)
{
    struct led_with *w = arena_zalloc(&c->scratch, 1, sizeof *w);
    if (!w)
        return NULL;
    w->asked = it->with;
    w->op = (struct op){ .kind = OP_FEATURE, .a = op->a, .feature = *it->with };
    w->op.feature.token = *token;
    w->op.feature.seq = it->seq_found;
    if (c->tx->with_at) {
        w->next = c->tx->with_at->next;
        c->tx->with_at->next = w;
    } else {
        w->next = c->tx->withs;
        c->tx->withs = w;
    }
    c->tx->with_at = w;
    return &w->op;
}

/* The operations of features in the group, with those of its finish items; NULL without memory. */
static struct loading *collect(struct ledger *c, struct op *const *v, size_t n, size_t *out_n)
{
    size_t max = 1, m = 0;
    for (size_t i = 0; i < n; i++)
        max += v[i]->kind == OP_FINISH ? v[i]->finish.n : 1;
    struct loading *out = arena_alloc(&c->scratch, max * sizeof *out);
    for (size_t i = 0; i < n && out; i++) {
        if (v[i]->kind == OP_FEATURE)
            out[m] = (struct loading){ v[i], m };
        m += v[i]->kind == OP_FEATURE;
        for (size_t k = 0; v[i]->kind == OP_FINISH && k < v[i]->finish.n; k++) {
            const struct finish_item *it = &v[i]->finish.v[k];
            struct op *with = it->with ? with_make(c, v[i], it, &v[i]->finish.token) : NULL;
            if (with)
                out[m] = (struct loading){ with, m };
            m += with != NULL;
        }
    }
    *out_n = m;
    return c->scratch.failed ? NULL : out;
}

/* Find the call that the operation names by its id; 0: there is none. */
static enum pawl_status seq_find(struct ledger *c, struct feature_op *q, struct pawl_err *err)
{
    struct led_lease *l = NULL;
    struct led_id *id;
    size_t at = 0;
    if (token_none(q->token) || q->seq || !q->id.data)
        return PAWL_OK;
    enum pawl_status st = led_lease_get(c, &q->token, &l, err);
    if (st == PAWL_OK && l && l->cached)
        q->seq = led_cache_seq(c, &q->token, q->id, &at);
    if (st != PAWL_OK || q->seq)
        return st;
    st = led_id_get(c, q->id, &id, err);
    if (st == PAWL_OK)
        q->seq = id->seq;
    return st;
}

enum pawl_status led_features_load(struct ledger *c, struct op *const *v, size_t n,
                                   struct pawl_err *err)
{
    size_t m = 0;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        if (v[i]->kind == OP_FEATURE)
            st = seq_find(c, &v[i]->feature, err);
    if (st != PAWL_OK)
        return st;
    struct loading *all = collect(c, v, n, &m);
    struct op **sorted = arena_alloc(&c->scratch, (m + 1) * sizeof(struct op *));
    if (!all || !sorted)
        return err_no_memory(err, "a group");
    led_sort(all, m, sizeof *all, compare_loading);
    for (size_t i = 0; i < m; i++)
        sorted[i] = all[i].op;
    for (size_t i = 0, k; i < m && st == PAWL_OK; i = k) {
        for (k = i + 1; k < m && sorted[k]->feature.of == sorted[i]->feature.of; k++)
            ;
        st = load(c, sorted[i]->feature.of, sorted + i, k - i, err);
    }
    c->tx->with_at = NULL;
    c->tx->loaded = true;
    CRASH_POINT("ledger.features_loaded");
    PAUSE_POINT("ledger.features_loaded");
    return st;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* Does the lease hold the call open? If not, op->status says so. */
static enum pawl_status fence(struct ledger *c, struct op *op, struct pawl_err *err)
{
    const struct feature_op *q = &op->feature;
    struct led_lease *l;
    if (token_none(q->token))
        return PAWL_OK;
    enum pawl_status st = led_lease_get(c, &q->token, &l, err);
    if (st != PAWL_OK)
        return st;
    ssize_t i = l && !led_lease_over(l, c->now_us) ? led_lease_find(l, q->seq) : -1;
    return i >= 0 && l->state[i] == HELD_OPEN ? PAWL_OK : op_not_held(op, &q->token, q->id, q->seq);
}

/* `loaded`: its rows were loaded in this transaction. */
static enum pawl_status decide(struct ledger *c, struct op *op, bool loaded, struct pawl_err *err)
{
    struct feature_op *q = &op->feature;
    q->brings = q->timed = q->repeated = false;
    enum pawl_status st = loaded ? PAWL_OK : load(c, q->of, &op, 1, err);
    if (st == PAWL_OK)
        st = q->of->apply(c, op, err);
    op->brings = op->brings || q->brings;
    op->timed = op->timed || q->timed;
    return st;
}

/* Was the operation, whose fence does not hold, stored before? */
static enum pawl_status former(struct ledger *c, struct op *op, bool loaded, struct pawl_err *err)
{
    struct feature_op *q = &op->feature;
    struct pawl_err lost = op->err;
    q->brings = q->timed = q->repeated = false;
    enum pawl_status st = loaded ? PAWL_OK : load(c, q->of, &op, 1, err);
    op->status = PAWL_OK;
    if (st == PAWL_OK)
        st = q->of->former(c, op, err);
    if (!q->repeated) {
        op->status = PAWL_LOST_LEASE;
        op->err = lost;
    }
    return st;
}

enum pawl_status led_feature(struct ledger *c, struct op *op, struct pawl_err *err)
{
    enum pawl_status st = fence(c, op, err);
    if (st == PAWL_OK && op->status == PAWL_LOST_LEASE && op->feature.of->former && op->feature.seq)
        return former(c, op, c->tx->loaded, err);
    return st == PAWL_OK && op->status == PAWL_OK ? decide(c, op, c->tx->loaded, err) : st;
}

/* Items are mostly decided in the order in which their operations were made. */
static struct op *with_find(struct ledger *c, const struct feature_op *asked)
{
    struct led_with *w = c->tx->with_at ? c->tx->with_at->next : c->tx->withs;
    if (!w || w->asked != asked)
        for (w = c->tx->withs; w && w->asked != asked;)
            w = w->next;
    c->tx->with_at = w ? w : c->tx->with_at;
    return w ? &w->op : NULL;
}

enum pawl_status led_feature_with(struct ledger *c, struct op *op, struct finish_item *it,
                                  const struct token *token, struct op **out, struct pawl_err *err)
{
    bool loaded = true;
    *out = with_find(c, it->with);
    if (!*out) { /* a finish that was not foreseen: of a handler, or nested */
        loaded = false;
        *out = with_make(c, op, it, token);
    }
    if (!*out)
        return err_no_memory(err, "a finish");
    op_clear(*out);
    (*out)->feature.seq = it->seq_found; /* it was loaded as this one, or is read now */
    enum pawl_status st = decide(c, *out, loaded && c->tx->loaded, err);
    it->with->brings = (*out)->feature.brings;
    it->with->repeated = (*out)->feature.repeated;
    op->brings = op->brings || (*out)->brings;
    op->timed = op->timed || (*out)->timed;
    return st;
}

/* ---- Calls that moved ------------------------------------------------------------------------ */

enum pawl_status led_moved_add(struct ledger *c, const struct led_call *call,
                               const struct led_stand *to, struct pawl_err *err)
{
    struct led_cache *tx = c->tx;
    enum led_place was = call->now.place;
    bool flow = false;
    enum pawl_status st = led_flow(c, call, &flow, err);
    unsigned watch = (call->spec.watch | call->now.marks | (flow ? WATCH_FLOW : 0)) & c->watch;
    bool ends = to->place == AT_ENDED && was != AT_ENDED;
    if (st != PAWL_OK || !watch || (was != AT_HELD && !ends))
        return st;
    if (tx->n_moved == tx->moved_room) {
        size_t room = tx->moved_room ? tx->moved_room * 2 : 16;
        struct moved *v = arena_alloc(&c->scratch, room * sizeof *v);
        if (!v)
            return err_no_memory(err, "calls that moved");
        if (tx->n_moved)
            memcpy(v, tx->moved, tx->n_moved * sizeof *v);
        tx->moved = v;
        tx->moved_room = room;
    }
    tx->moved[tx->n_moved++] =
        (struct moved){ .seq = call->seq,
                        .id = call->spec.id,
                        .from = flow && ends ? PAWL_PROCESSING : call->now.state,
                        .to = to->state,
                        .watch = watch };
    return PAWL_OK;
}

/* Tell one feature of those that it watches. */
static enum pawl_status tell(struct ledger *c, const struct feature *f, const struct moved *v,
                             size_t n, struct pawl_err *err)
{
    size_t m = 0;
    if (!f->moved)
        return PAWL_OK;
    struct moved *of = arena_alloc(&c->scratch, n * sizeof *of);
    if (!of)
        return err_no_memory(err, "calls that moved");
    for (size_t i = 0; i < n; i++)
        if (v[i].watch & f->watch)
            of[m++] = v[i];
    return m ? f->moved(c, of, m, err) : PAWL_OK;
}

/* Whose answer has what features do about calls that moved: one that was done; else the extend that
 * was refused because it ended all that its lease had left. No other refused operation moves calls,
 * and nobody looks for news in the answer of one. */
static struct op *teller(struct op *const *v, size_t n)
{
    struct op *extend = NULL;
    for (size_t i = 0; i < n; i++) {
        if (v[i]->status == PAWL_OK)
            return v[i];
        if (v[i]->kind == OP_EXTEND && v[i]->extend.n_timed_out)
            extend = v[i];
    }
    return extend ? extend : v[0];
}

enum pawl_status led_moved_tell(struct ledger *c, struct op *const *v, size_t n,
                                struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    CHECK(n > 0);
    c->tx->telling = teller(v, n);
    for (int round = 0; c->tx->n_moved && st == PAWL_OK; round++) {
        const struct moved *some = c->tx->moved;
        size_t n_some = c->tx->n_moved;
        CHECK(round < MOVED_ROUNDS_MAX);
        c->tx->moved = NULL;
        c->tx->n_moved = c->tx->moved_room = 0;
        for (size_t i = 0; i < c->n_features && st == PAWL_OK; i++)
            st = tell(c, c->features[i], some, n_some, err);
        CRASH_POINT("ledger.moved_told");
    }
    return st;
}

enum pawl_status led_features_forget(struct ledger *c, const int64_t *seqs, size_t n,
                                     struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < c->n_features && st == PAWL_OK; i++)
        if (c->features[i]->forget)
            st = c->features[i]->forget(c, seqs, n, err);
    CRASH_POINT("ledger.features_forgot");
    return st;
}

enum pawl_status led_features_gc(struct ledger *c, int max, bool *more, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < c->n_features && st == PAWL_OK; i++)
        if (c->features[i]->gc)
            st = c->features[i]->gc(c, max, more, err);
    return st;
}

/* Those of the calls that this feature watches. */
static enum pawl_status keep_ask(struct ledger *c, const struct feature *f, const int64_t *seqs,
                                 size_t n, bool *keep, struct pawl_err *err)
{
    int64_t *v = arena_alloc(&c->scratch, n * sizeof *v);
    bool *stays = arena_zalloc(&c->scratch, n, sizeof *stays);
    size_t m = 0;
    if (!v || !stays)
        return err_no_memory(err, "gc");
    for (size_t i = 0; i < n; i++) {
        const struct led_call *it = led_call_find(c, seqs[i]);
        bool flow = false;
        enum pawl_status st = it ? led_flow(c, it, &flow, err) : PAWL_OK;
        if (st != PAWL_OK)
            return st;
        if (it && ((it->spec.watch | (flow ? WATCH_FLOW : 0)) & f->watch))
            v[m++] = seqs[i];
    }
    enum pawl_status st = m ? f->keep(c, v, m, stays, err) : PAWL_OK;
    for (size_t i = 0, at = 0; i < n && at < m; i++)
        if (seqs[i] == v[at])
            keep[i] |= stays[at++];
    return st;
}

enum pawl_status led_features_keep(struct ledger *c, const int64_t *seqs, size_t n, bool *keep,
                                   struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < c->n_features && n && st == PAWL_OK; i++)
        if (c->features[i]->keep)
            st = keep_ask(c, c->features[i], seqs, n, keep, err);
    return st;
}

/* ---- For features ---------------------------------------------------------------------------- */

int64_t feature_now(const struct ledger *d)
{
    return d->now_us;
}

struct arena *feature_arena(struct ledger *d)
{
    return &d->scratch;
}

const struct world *feature_world(const struct ledger *d)
{
    return d->world;
}

int64_t feature_retention(const struct ledger *d)
{
    return d->retention_us;
}

int64_t feature_call_timeout(const struct ledger *d)
{
    return d->call_timeout_us;
}

size_t feature_input_max(const struct ledger *d)
{
    return d->input_len_max;
}

enum pawl_status feature_finished(struct ledger *d, int step, bool *out, struct pawl_err *err)
{
    return led_finished(d, step, out, err);
}

void *feature_memory(struct ledger *d, const struct feature *f, size_t size)
{
    for (struct led_memory *m = d->tx->memory; m; m = m->next)
        if (m->of == f)
            return m->bytes;
    struct led_memory *m = arena_alloc(&d->scratch, sizeof *m);
    void *bytes = arena_zalloc(&d->scratch, 1, size);
    if (!m || !bytes)
        return NULL;
    *m = (struct led_memory){ .next = d->tx->memory, .of = f, .bytes = bytes };
    d->tx->memory = m;
    return bytes;
}

enum pawl_status feature_query(struct ledger *d, enum sql_name name, const struct led_params *p,
                               struct led_rows **out, struct pawl_err *err)
{
    enum pawl_status st = led_rows_flush(d, err);
    *out = NULL;
    return st == PAWL_OK ? led_query(d, name, p, out, err) : st;
}

enum pawl_status feature_run(struct ledger *d, enum sql_name name, const struct led_params *p,
                             int64_t *out_rows, struct pawl_err *err)
{
    CHECK(!d->reading);
    enum pawl_status st = led_rows_flush(d, err);
    return st == PAWL_OK ? led_run(d, name, p, out_rows, err) : st;
}

enum pawl_status feature_row(struct ledger *d, enum sql_name name, const char *kinds,
                             const union feature_value *v, enum feature_count count,
                             struct pawl_err *err)
{
    return led_row_add(d, name, kinds, v, count, err);
}

enum pawl_status feature_rows_write(struct ledger *d, struct pawl_err *err)
{
    CHECK(!d->reading);
    return led_rows_flush(d, err);
}

/* ---- Nested operations ----------------------------------------------------------------------- */

/* Load what a batch of calls needs with a few statements: what a group foresees for its accepts.
 * led_accept() draws the numbers and loads the keys. */
static enum pawl_status accept_load(struct ledger *c, const struct accept *q, struct pawl_err *err)
{
    struct bytes *ids = arena_alloc(&c->scratch, (q->n + 1) * sizeof *ids);
    int64_t *seqs = arena_alloc(&c->scratch, (q->n + 1) * sizeof *seqs);
    struct led_call **held = arena_alloc(&c->scratch, (q->n + 1) * sizeof(struct led_call *));
    size_t n = 0, n_held = 0;
    if (!ids || !seqs || !held)
        return err_no_memory(err, "accepted calls");
    if (c->db->one_writer)
        return PAWL_OK;
    for (size_t i = 0; i < q->n; i++)
        ids[i] = q->v[i].id;
    enum pawl_status st = led_ids_load(c, ids, q->n, err);
    for (size_t i = 0; i < q->n && st == PAWL_OK; i++) {
        struct led_id *id;
        st = led_id_get(c, ids[i], &id, err);
        if (st == PAWL_OK && id->seq)
            seqs[n++] = id->seq;
    }
    if (st == PAWL_OK && n)
        st = led_calls_load(c, seqs, n, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct led_call *it = led_call_find(c, seqs[i]);
        if (it && it->now.place == AT_HELD)
            held[n_held++] = it;
    }
    return st == PAWL_OK && n_held ? led_holders_load(c, held, n_held, err) : st;
}

/* Is the kind one that locks all rows that it changes? */
static bool locks(enum op_kind kind)
{
    return kind == OP_ACCEPT || kind == OP_FINISH || kind == OP_EXTEND || kind == OP_FEATURE;
}

/* Tell of a call that a nested operation named and ended. */
static enum pawl_status told_seq(struct ledger *c, int64_t seq, struct pawl_err *err)
{
    const struct led_call *it = led_call_find(c, seq);
    return it ? led_told_ended(c->tx->telling, it->spec.id, err) : PAWL_OK;
}

static enum pawl_status told_lost(struct ledger *c, const struct op *nested, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < MIN(nested->n_lost, (size_t)LOST_TOLD_MAX) && st == PAWL_OK; i++)
        st = op_lost(c->tx->telling, &nested->lost[i], err);
    return st;
}

/* May calls be due after this nested operation that were not before? */
static bool brings(const struct op *nested)
{
    bool any = nested->kind != OP_ACCEPT && nested->kind != OP_EXTEND && nested->kind != OP_FEATURE;
    for (size_t i = 0; nested->kind == OP_ACCEPT && i < nested->accept.n && !any; i++)
        any = nested->accept.out[i].status == PAWL_OK && !nested->accept.out[i].duplicate;
    return any || nested->brings;
}

/* The answer of the operation that is being decided, or told for, has what the nested one did. */
static enum pawl_status told(struct ledger *c, const struct op *nested, struct pawl_err *err)
{
    struct op *to = c->tx->telling;
    enum pawl_status st = PAWL_OK;
    to->brings = to->brings || brings(nested);
    to->timed = to->timed || nested->timed;
    for (size_t i = 0; i < nested->n_ended && st == PAWL_OK; i++)
        st = led_told_ended(to, nested->ended[i], err);
    if (st == PAWL_OK && nested->kind == OP_CANCEL && nested->by_id.state == PAWL_CANCELLED)
        st = led_told_ended(to, nested->by_id.id, err);
    for (size_t i = 0; nested->kind == OP_FINISH && i < nested->finish.n && st == PAWL_OK; i++) {
        const struct finish_item *it = &nested->finish.v[i];
        if (it->queue.data && pawl_state_ended(it->state))
            st = told_seq(c, it->seq_found, err);
    }
    to->brings = to->brings || to->n_ended;
    return st == PAWL_OK ? told_lost(c, nested, err) : st;
}

enum pawl_status feature_nested(struct ledger *d, struct op *nested, struct pawl_err *err)
{
    enum op_kind kind = nested->kind;
    CHECK(!d->reading && d->tx->telling);
    /* gc forgets what the features of this group remember. */
    CHECK(kind != OP_CLAIM && kind != OP_HANDLER && kind != OP_SCRIPT && kind != OP_GC);
    nested->a = nested->a ? nested->a : &d->scratch;
    op_clear(nested);
    d->tx->unlocked = d->tx->unlocked || !locks(kind);
    enum pawl_status st = kind == OP_ACCEPT ? accept_load(d, &nested->accept, err) : PAWL_OK;
    if (st == PAWL_OK && kind == OP_FEATURE)
        st = fence(d, nested, err);
    if (st == PAWL_OK && kind == OP_FEATURE && nested->status == PAWL_OK)
        st = decide(d, nested, false, err);
    else if (st == PAWL_OK && kind != OP_FEATURE)
        st = led_apply(d, nested, err);
    return st == PAWL_OK && nested->status == PAWL_OK ? told(d, nested, err) : st;
}

/* ---- Reading --------------------------------------------------------------------------------- */

enum pawl_status led_feature_look(struct store *s, enum store_look how, feature_look_fn *look,
                                  void *ctx, struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    enum pawl_status st =
        how == LOOK_ALONE ? led_begin_autocommit(c, err) : led_begin(c, LED_READ, NULL, err);
    AUTO(led_undo) struct ledger *tx = st == PAWL_OK ? c : NULL;
    return st == PAWL_OK ? look(c, ctx, err) : st;
}
