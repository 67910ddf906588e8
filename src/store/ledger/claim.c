/*
 * claim.c - leasing due calls, best first, over every lane a worker serves.
 *
 * The pairs (track, rank) in use are found by skipping through the index; rank by rank the due rows
 * of the tracks that are served are deleted, or locked where keys are about, and read with their
 * calls, passing over what others are claiming. Keys that others hold are passed over too. While a
 * claim walks nothing comes on offer: what it has read must stay. When nothing stored is due, the
 * new calls of the group are taken as they are, before they are written.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/ledger/claim.h"

/* Columns of ready_take: where the call's begin. */
#define TAKEN_READY 8
/* Somebody else held a key: its calls are looked at again after this. */
#define PASSED_US (5 * MS_US)

/* ---- Which pairs ----------------------------------------------------------------------------- */

static bool named(const struct bytes *v, size_t n, struct bytes name)
{
    for (size_t i = 0; i < n; i++)
        if (bytes_eq(v[i], name))
            return true;
    return n == 0;
}

/* Without max_any types make no difference. */
static bool is_quick(const struct claim *q, struct bytes type)
{
    return !q->max_any || (q->n_quick && named(q->quick, q->n_quick, type));
}

/* Does the claim serve the pair's track? Its `last` and `quick` are filled in. */
static enum pawl_status serves(struct claiming *g, struct pair *p, bool *out, struct pawl_err *err)
{
    const struct claim *q = g->q;
    const struct led_lane *lane;
    bool paused = false;
    *out = p->last = p->quick = false;
    if (q->no_suspects && p->track % 2)
        return PAWL_OK;
    enum pawl_status st = led_lane(g->c, (int)(p->track / 2), &lane, err);
    if (st != PAWL_OK || !named(q->queues, q->n_queues, lane->queue) ||
        (q->without.data && bytes_eq(lane->queue, q->without) && is_quick(q, lane->type)) ||
        !named(q->types, q->n_types, lane->type))
        return st;
    p->last = q->last.data && bytes_eq(lane->queue, q->last);
    p->quick = is_quick(q, lane->type);
    st = led_lane_paused(g->c, (int)(p->track / 2), &paused, err);
    *out = !paused;
    return st;
}

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->last != y->last)
        return y->last ? -1 : 1;
    return (x->track > y->track) - (x->track < y->track);
}

/* The pairs of an answer of ready_pairs that the claim serves. */
static enum pawl_status pairs_take(struct claiming *g, const struct led_rows *r,
                                   struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    g->n_pairs = 0;
    g->pairs = arena_alloc(&g->c->scratch, ((size_t)r->n + 1) * sizeof *g->pairs);
    if (!g->pairs)
        return err_no_memory(err, "a claim");
    led_marks_answered(g->c, r);
    for (int i = 0; i < r->n && st == PAWL_OK; i++) {
        struct pair p = { .track = led_get_int(r, i, 0),
                          .rank = led_get_int(r, i, 1),
                          .run_at_us = led_get_int(r, i, 2) };
        bool served;
        st = serves(g, &p, &served, err);
        if (served)
            g->pairs[g->n_pairs++] = p;
    }
    qsort(g->pairs, g->n_pairs, sizeof *g->pairs, compare_pairs);
    return st;
}

/* ---- Taking ---------------------------------------------------------------------------------- */

static bool over(const struct claiming *g, const struct led_call *it)
{
    return it->now.expires_us && it->now.expires_us <= g->c->now_us;
}

/* Does the claim have room for it? Of an engine inside the process its long input is read now. */
static enum pawl_status fits(struct claiming *g, struct led_call *it, bool *out,
                             struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    bool room = !g->q->n || g->len + it->input_len <= CLAIM_LEN_MAX;
    if (it->cut && room && g->c->db->one_writer) {
        st = led_payloads_load(g->c, &it, 1, err);
        it->cut = st != PAWL_OK;
    }
    *out = !it->cut && (!g->q->n || g->len + it->spec.input.bytes.len <= CLAIM_LEN_MAX);
    return st;
}

/* So many were taken that only calls of quick types may follow. */
static bool only_quick(const struct claiming *g)
{
    return g->q->max_any && g->q->n >= (size_t)g->q->max_any;
}

static bool goes_on(const struct claiming *g)
{
    return g->q->n < (size_t)g->q->max && g->expired < CLAIM_MAX && !g->complete;
}

static enum pawl_status expire(struct claiming *g, struct led_call *it, struct pawl_err *err)
{
    enum pawl_status st = led_end_pending(g->c, it, PAWL_EXPIRED, err);
    g->expired++;
    return st == PAWL_OK ? led_told_ended(g->op, it->spec.id, err) : st;
}

/* Its number in the key, and the place it comes back to: behind all that were handed out. */
static void place(const struct ledger *c, struct led_key *k, const struct led_call *it,
                  struct led_stand *to)
{
    bool numbered = to->key_no;
    if (!numbered)
        to->key_no = k->next_no++;
    if (c->db->one_writer) /* it keeps the one it has */
        return;
    if (!numbered || to->pos >= LINE_FRESH) {
        to->pos = MAX(k->last_place, (k->next_no - 1) * LINE_STEP) + numbered;
        to->pos += numbered && to->pos == it->seq; /* that would stand for another one */
    }
    k->last_place = MAX(k->last_place, to->pos);
}

static enum pawl_status take(struct claiming *g, struct led_call *it, struct led_key *k,
                             int64_t position, struct pawl_err *err)
{
    struct led_stand to = it->now;
    size_t n = g->q->n;
    if (k)
        place(g->c, k, it, &to);
    g->n_keys += k && position == 0;
    g->held[n] = (struct held){ .seq = it->seq,
                                .run_at_us = to.run_at_us,
                                .lane = to.lane,
                                .priority = to.priority,
                                .tries = to.tries,
                                .key = k ? g->n_keys : 0,
                                .pos = k ? to.pos : 0,
                                .key_no = k ? to.key_no : 0 };
    to.place = AT_HELD;
    to.state = PAWL_PROCESSING;
    g->taken[n] = it;
    g->position[n] = position;
    g->len += it->spec.input.bytes.len;
    g->q->n++;
    return led_put(g->c, it, to, 0, err);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

struct run {
    struct led_key *key;
    int lane, left;
    int64_t position;
    bool stopped;
};

static enum pawl_status run_one(struct claiming *g, struct run *r, struct led_call *it,
                                struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    bool fit = false;
    r->stopped =
        it->now.lane != r->lane || tries_suspect(it->now.tries) || it->now.run_at_us > g->c->now_us;
    if (r->stopped)
        return PAWL_OK;
    bool expired = over(g, it);
    if (expired)
        st = expire(g, it, err);
    else
        st = fits(g, it, &fit, err);
    g->complete = g->complete || (!expired && !fit);
    if (st == PAWL_OK && fit) {
        st = take(g, it, r->key, ++r->position, err);
        r->left--;
    }
    r->stopped = !goes_on(g);
    return st;
}

/* The calls behind a key's first one, as far as they may go with it. */
static enum pawl_status take_run(struct claiming *g, struct led_key *k,
                                 const struct led_call *first, struct pawl_err *err)
{
    struct run r = { .key = k, .lane = first->now.lane, .left = g->q->run_max - 1 };
    enum pawl_status st = PAWL_OK;
    r.left = (int)MIN((int64_t)r.left, (int64_t)g->q->max - (int64_t)g->q->n);
    while (st == PAWL_OK && r.left > 0 && k->waiting > 0 && !r.stopped && goes_on(g)) {
        if (!k->n_ahead) { /* not foreseen, or some have expired: look again */
            st = led_flush(g->c, err);
            if (st == PAWL_OK)
                st = led_lines_take(g->c, &k, &(int64_t){ r.left }, 1,
                                    CLAIM_LEN_MAX - (int64_t)g->len, err);
            r.stopped = !k->n_ahead;
        }
        for (; k->n_ahead && st == PAWL_OK && !r.stopped && r.left > 0; k->n_ahead--)
            st = run_one(g, &r, *k->ahead++, err);
    }
    k->n_ahead = 0;
    return st;
}

/* ---- Candidates ------------------------------------------------------------------------------ */

/* A row of ready_take as a call. */
static enum pawl_status candidate(struct claiming *g, const struct led_rows *r, int row,
                                  struct led_call **out, struct pawl_err *err)
{
    struct led_call *it = led_call_new(g->c, led_get_int(r, row, 0));
    *out = it;
    if (!it)
        return err_no_memory(err, "a claim");
    it->grabbed = g->grab;
    if (it->skipped)
        return PAWL_OK;
    it->lease = NULL;
    it->now = (struct led_stand){ .place = AT_READY,
                                  .state = PAWL_PENDING,
                                  .lane = (int)(led_get_int(r, row, 1) / 2),
                                  .priority = (int)-g->rank,
                                  .run_at_us = led_get_int(r, row, 2),
                                  .tries = { .attempts = (int)led_get_int(r, row, 3),
                                             .lost = (int)led_get_int(r, row, 4),
                                             .redrives = (int)led_get_int(r, row, 5) },
                                  .pos = led_get_int(r, row, 6),
                                  .key_no = led_get_int(r, row, 7) };
    return led_call_taken(g->c, r, row, TAKEN_READY, it, err);
}

static int compare_due(const void *a, const void *b)
{
    const struct led_call *x = *(struct led_call *const *)a, *y = *(struct led_call *const *)b;
    if (x->now.run_at_us != y->now.run_at_us)
        return x->now.run_at_us < y->now.run_at_us ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* The inputs that were too long to come along, as far as the claim has room for them. */
static enum pawl_status inputs_load(struct claiming *g, struct led_call **v, size_t n,
                                    struct pawl_err *err)
{
    struct led_call **cut = arena_alloc(&g->c->scratch, (n + 1) * sizeof *cut);
    size_t m = 0, len = g->len;
    if (!cut)
        return err_no_memory(err, "a claim");
    for (size_t i = 0; i < n; i++) {
        len += v[i]->input_len;
        if (v[i]->cut && (len <= CLAIM_LEN_MAX || (g->q->n == 0 && i == 0)))
            cut[m++] = v[i];
    }
    enum pawl_status st = m ? led_payloads_load(g->c, cut, m, err) : PAWL_OK;
    for (size_t i = 0; i < m; i++)
        cut[i]->cut = false;
    return st;
}

/* The rows of ready_take or ready_grab, best first. */
static enum pawl_status found(struct claiming *g, const struct led_rows *r, struct led_call **v,
                              struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    g->c->keyed = false;
    for (int i = 0; i < r->n && st == PAWL_OK; i++) {
        st = candidate(g, r, i, &v[i], err);
        g->c->keyed |= st == PAWL_OK && v[i]->spec.key.data;
    }
    if (st != PAWL_OK || !(g->grab || g->c->db->one_writer))
        return st;
    led_sort(v, (size_t)r->n, sizeof(struct led_call *), compare_due);
    return g->c->db->one_writer ? PAWL_OK : inputs_load(g, v, (size_t)r->n, err);
}

static void take_ask(struct ledger *c, struct led_batch *b)
{
    led_batch_ask(b, c->tx->take.name, c->tx->take.params, &c->tx->take.rows);
}

/* Where the due tracks of a rank go on. */
struct from {
    struct led_column track, run_at, seq;
    struct led_mark last; /* added */
};

/* May calls of this pair be taken now? A suspect only as the first. */
static bool may_give(const struct claiming *g, const struct pair *p, bool quick)
{
    return p->run_at_us <= g->c->now_us && (g->q->n == 0 || p->track % 2 == 0) &&
           (p->quick || !quick);
}

static void from_gather(struct claiming *g, const struct pair *p, size_t n, bool quick,
                        struct from *out)
{
    led_column_init(&out->track, &g->c->scratch, LED_INTS);
    led_column_init(&out->run_at, &g->c->scratch, LED_INTS);
    led_column_init(&out->seq, &g->c->scratch, LED_INTS);
    for (size_t i = 0; i < n; i++)
        if (may_give(g, &p[i], quick)) {
            struct led_mark *m = &out->last;
            *m = (struct led_mark){ .track = p[i].track };
            led_mark_get(g->c, p[i].track, p[i].rank, &m->run_at_us, &m->seq);
            led_add_int(&out->track, m->track);
            led_add_int(&out->run_at, m->run_at_us);
            led_add_int(&out->seq, m->seq);
        }
}

static void from_put(struct led_params *q, const struct led_column *k, bool one, int64_t last)
{
    if (one)
        led_int(q, last);
    else
        led_column(q, k);
}

/* How many calls of a rank to look for at a time, and of which pairs. */
struct share {
    size_t limit;
    bool quick; /* only of quick types */
    bool any;   /* some of its pairs may give something */
    bool slow;  /* the same of slow types, which bounds the limit */
};

/* No more than may be taken: while calls of slow types are due in the rank, up to max_any of all;
 * else up to max. */
static struct share share_of(const struct claiming *g, const struct pair *p, size_t n, bool quick)
{
    struct share s = { .limit = (size_t)g->q->max - g->q->n, .quick = quick || only_quick(g) };
    for (size_t i = 0; i < n; i++) {
        bool may = may_give(g, &p[i], s.quick);
        s.any = s.any || may;
        s.slow = s.slow || (may && !p[i].quick);
    }
    if (s.slow)
        s.limit = MIN(s.limit, (size_t)g->q->max_any - g->q->n);
    return s;
}

/* The best due calls of one rank, locked, in order, no more than may be taken. Without keys all of
 * them will be taken; of heads of lines most may not, since the calls behind them come along. What
 * is decided by now is written on the way (once: later it would put back what the claim has found
 * and left): rows that are locked are in the way of others. */
static enum pawl_status fetch(struct claiming *g, const struct pair *p, size_t n,
                              struct share share, struct led_call ***out, size_t *out_n,
                              struct pawl_err *err)
{
    struct led_params q = { 0 };
    struct from from;
    size_t limit = share.limit;
    from_gather(g, p, n, share.quick, &from);
    *out_n = 0;
    if (from.track.n == 0)
        return PAWL_OK;
    g->rank = p[0].rank;
    g->grab = g->c->db->grabs && !g->c->keyed;
    bool one = g->grab && from.track.n == 1;
    from_put(&q, &from.track, one, from.last.track);
    led_int(&q, g->rank);
    led_int(&q, g->c->now_us);
    led_int(&q, (int64_t)limit);
    bool each = g->grab || g->c->db->one_writer;
    led_int(&q, MAX(CLAIM_LEN_MAX - (int64_t)g->len, 0) / (each ? (int64_t)limit : 1));
    from_put(&q, &from.run_at, one, from.last.run_at_us);
    from_put(&q, &from.seq, one, from.last.seq);
    struct led_take *t = &g->c->tx->take;
    t->name = one ? SQL_READY_GRAB_ONE : g->grab ? SQL_READY_GRAB : SQL_READY_TAKE;
    t->params = &q;
    enum pawl_status st = g->fetched ? led_query(g->c, t->name, &q, &t->rows, err)
                                     : led_flush_ask(g->c, take_ask, err);
    if (st != PAWL_OK)
        return st;
    const struct led_rows *r = t->rows;
    g->fetched = true;
    *out = arena_alloc(&g->c->scratch, ((size_t)r->n + 1) * sizeof **out);
    if (!*out)
        return err_no_memory(err, "a claim");
    *out_n = MIN((size_t)r->n, limit);
    return found(g, r, *out, err);
}

static enum pawl_status call_quick(struct claiming *g, const struct led_call *it, bool *out,
                                   struct pawl_err *err)
{
    const struct led_lane *lane;
    *out = true;
    if (!g->q->max_any)
        return PAWL_OK;
    enum pawl_status st = led_lane(g->c, it->now.lane, &lane, err);
    *out = st == PAWL_OK && is_quick(g->q, lane->type);
    return st;
}

/* The keys of these, and as much of their lines as may go with them. */
static enum pawl_status lines_ahead(struct claiming *g, struct led_call *const *v, size_t n,
                                    struct pawl_err *err)
{
    struct ledger *c = g->c;
    struct bytes *names = arena_alloc(&c->scratch, (n + 1) * sizeof *names);
    struct led_key **keys = arena_alloc(&c->scratch, (n + 1) * sizeof(struct led_key *));
    int64_t *max = arena_alloc(&c->scratch, (n + 1) * sizeof *max);
    int64_t room = (int64_t)g->q->max - (int64_t)g->q->n;
    size_t n_names = 0, n_keys = 0;
    if (!names || !keys || !max)
        return err_no_memory(err, "a claim");
    for (size_t i = 0; i < n; i++)
        if (v[i]->spec.key.data)
            names[n_names++] = v[i]->spec.key;
    enum pawl_status st = n_names ? led_keys_load(c, names, n_names, LOCK_TRY, err) : PAWL_OK;
    for (size_t i = 0; st == PAWL_OK && i < n && room > 1; i++, room--) {
        struct led_key *k;
        bool quick = false;
        if (!v[i]->spec.key.data || tries_suspect(v[i]->now.tries))
            continue;
        st = call_quick(g, v[i], &quick, err);
        if (st != PAWL_OK || !quick)
            continue;
        st = led_key_get(c, v[i]->spec.key, LOCK_TRY, &k, err);
        if (st != PAWL_OK || !k->got)
            continue;
        max[n_keys] = MIN(MIN((int64_t)g->q->run_max, k->waiting) - 1, room - 1);
        if (max[n_keys] <= 0)
            continue;
        room -= max[n_keys];
        keys[n_keys++] = k;
    }
    if (st == PAWL_OK && n_keys)
        st = led_lines_take(c, keys, max, n_keys, CLAIM_LEN_MAX - (int64_t)g->len, err);
    return st;
}

static enum pawl_status take_candidate(struct claiming *g, struct led_call *it, bool *progress,
                                       struct pawl_err *err)
{
    struct led_key *k = NULL;
    bool suspect = tries_suspect(it->now.tries), quick = true, fit = false;
    if (it->skipped || (suspect && g->q->n))
        return PAWL_OK;
    enum pawl_status st = call_quick(g, it, &quick, err);
    if (st != PAWL_OK || (!quick && only_quick(g)))
        return st; /* a run before it has filled the claim: it is left as it was found */
    if (it->spec.key.data)
        st = led_key_get(g->c, it->spec.key, LOCK_TRY, &k, err);
    if (st != PAWL_OK)
        return st;
    if (k && !k->got) {
        it->skipped = g->passed = true;
        return PAWL_OK;
    }
    *progress = true;
    if (!g->passed) /* what was passed over is to be found again */
        led_mark_raise(g->c, it->now.lane * 2 + suspect, -it->now.priority, it->now.run_at_us,
                       it->seq);
    if (over(g, it)) {
        st = expire(g, it, err);
        g->q->more |= k && k->waiting > 0; /* the rest of its line is the next claim's */
        return st;
    }
    st = fits(g, it, &fit, err);
    if (st != PAWL_OK || !fit) {
        g->complete = true;
        return st;
    }
    st = take(g, it, k, 0, err);
    if (st == PAWL_OK && k && !suspect && quick)
        st = take_run(g, k, it, err);
    g->complete = g->complete || suspect;
    return st;
}

static enum pawl_status take_rank(struct claiming *g, const struct pair *p, size_t n,
                                  struct pawl_err *err)
{
    bool whole = false, again = false, quick = false;
    enum pawl_status st = PAWL_OK;
    while (st == PAWL_OK && !whole && goes_on(g)) {
        struct led_call **v = NULL;
        struct share share = share_of(g, p, n, quick);
        size_t m = 0;
        bool progress = false;
        if (!share.any)
            break;
        st = again ? led_flush(g->c, err) : PAWL_OK;
        if (st == PAWL_OK)
            st = fetch(g, p, n, share, &v, &m, err);
        whole = m < share.limit;
        again = true;
        if (st == PAWL_OK && m)
            st = lines_ahead(g, v, m, err);
        for (size_t i = 0; i < m && st == PAWL_OK && goes_on(g); i++)
            st = take_candidate(g, v[i], &progress, err);
        if (!progress && !share.slow)
            break;
        quick = quick || !progress; /* keys of others came first: quick types are looked for beyond
                                       them */
    }
    return st;
}

/* ---- New calls ------------------------------------------------------------------------------- */

static int compare_fresh(const void *a, const void *b, void *q)
{
    const struct led_call *x = *(struct led_call *const *)a, *y = *(struct led_call *const *)b;
    const struct bytes *last = &((const struct claim *)q)->last;
    if (x->now.priority != y->now.priority)
        return x->now.priority > y->now.priority ? -1 : 1;
    bool x_last = last->data && bytes_eq(x->spec.queue, *last);
    bool y_last = last->data && bytes_eq(y->spec.queue, *last);
    if (x_last != y_last)
        return y_last ? -1 : 1;
    return compare_due(a, b);
}

/* Calls that this group brings, when nothing else is due: they go straight to who claims them, and
 * never stand where others could find them. */
static enum pawl_status take_fresh(struct claiming *g, struct pawl_err *err)
{
    struct ledger *c = g->c;
    struct led_call **v;
    size_t n = 0, all = 0;
    enum pawl_status st = PAWL_OK;
    for (struct led_call *it = c->tx->first_call; it; it = it->newer)
        all += it->fresh;
    v = arena_alloc(&c->scratch, (all + 1) * sizeof(struct led_call *));
    if (!v)
        return err_no_memory(err, "a claim");
    for (struct led_call *it = c->tx->first_call; it && st == PAWL_OK; it = it->newer) {
        struct pair of = { .track = (int64_t)it->now.lane * 2 };
        bool served = false;
        if (it->fresh && it->now.place == AT_READY && it->now.run_at_us <= c->now_us)
            st = serves(g, &of, &served, err);
        if (served)
            v[n++] = it;
    }
    qsort_r(v, n, sizeof(struct led_call *), compare_fresh, g->q);
    for (size_t i = 0; i < n && st == PAWL_OK && goes_on(g); i++)
        st = take_candidate(g, v[i], &(bool){ false }, err);
    return st;
}

/* ---- The lease ------------------------------------------------------------------------------- */

static enum pawl_status lease_write(struct claiming *g, struct pawl_err *err)
{
    const struct claim *q = g->q;
    struct led_lease *l;
    enum pawl_status st = led_lease_make(g->c, &q->token, &l, err);
    if (st != PAWL_OK)
        return st;
    const struct led_ahead *a = &g->c->tx->ahead;
    bool shared = a->shared && bytes_eq(a->whose, q->node);
    if (!q->lease_us && !shared) { /* only now: a claim that finds nothing leaves nothing behind */
        struct led_rows *node;
        struct led_params p = { 0 };
        led_text(&p, q->node);
        st = led_query(g->c, SQL_NODE_SHARE, &p, &node, err);
        if (st != PAWL_OK)
            return st;
        if (led_node_replaced(q->boot, node))
            return led_again(g->c, "the node", err);
    }
    led_sort(g->held, q->n, sizeof *g->held, led_held_compare);
    if (!led_lease_list(g->c, l, g->held, q->n))
        return err_no_memory(err, "a lease");
    l->missing = l->rewritten = false;
    l->dirty = l->locked = l->fresh = true;
    l->node = q->node;
    l->boot = q->boot;
    l->worker = q->worker;
    l->owner = q->worker.data ? q->worker : q->node;
    l->claimed_us = g->c->now_us;
    l->until_us = g->q->until_us = led_claim_until(q, g->taken, g->position, g->c->now_us);
    l->width = q->width;
    l->rev = 1;
    for (size_t i = 0; i < q->n; i++)
        g->taken[i]->lease = l;
    return PAWL_OK;
}

/* ---- What comes first, and last -------------------------------------------------------------- */

static void pairs_ask(struct ledger *c, struct led_batch *b, bool last)
{
    c->tx->ahead.by_marks = led_marks_trusted(c, last);
    c->tx->ahead.full |= !c->tx->ahead.by_marks;
    if (c->tx->ahead.by_marks)
        led_marks_ask(c, b, &c->tx->ahead.pairs);
    else
        led_batch_ask(b, SQL_READY_PAIRS, NULL, &c->tx->ahead.pairs);
}

static void look_ask(struct ledger *c, struct led_batch *b)
{
    led_batch_ask(b, SQL_CLAIM_LOOK, NULL, &c->tx->ahead.look);
    pairs_ask(c, b, false);
}

void led_claim_ask(struct ledger *c, struct led_batch *b, const struct claim *q)
{
    struct led_params p = { 0 };
    led_text(&p, q->node);
    /* Sharing it is a write: only where the claim is likely to find something. */
    c->tx->ahead.shared = c->busy && !q->lease_us;
    led_batch_ask(b, c->tx->ahead.shared ? SQL_NODE_SHARE : SQL_NODE_READ, &p, &c->tx->ahead.node);
    c->tx->ahead.whose = q->node;
    look_ask(c, b);
    c->tx->ahead.asked = true;
}

static bool any_due(const struct claiming *g)
{
    for (size_t i = 0; i < g->n_pairs; i++)
        if (g->pairs[i].run_at_us <= g->c->now_us)
            return true;
    return false;
}

/* At everything that is stored. */
static enum pawl_status look_again(struct claiming *g, struct pawl_err *err)
{
    struct led_batch *b = arena_alloc(&g->c->scratch, sizeof *b);
    if (!b)
        return err_no_memory(err, "a claim");
    b->n = 0;
    pairs_ask(g->c, b, false);
    enum pawl_status st = led_batch_run(g->c, b, err);
    return st == PAWL_OK ? pairs_take(g, g->c->tx->ahead.pairs, err) : st;
}

/* Columns of claim_look; it has one row. */
enum { LOOK_INBOX, LOOK_HINT, LOOK_JOINS };

/* What there is to claim: as it was when the transaction began, if nothing came since. */
static enum pawl_status look(struct claiming *g, struct pawl_err *err)
{
    struct ledger *c = g->c;
    struct led_ahead *a = &c->tx->ahead;
    int64_t joined;
    enum pawl_status st = PAWL_OK;
    for (int pass = 0; pass < 2 && st == PAWL_OK; pass++) {
        if (!a->asked || c->tx->news || c->tx->due)
            st = led_flush_ask(c, look_ask, err);
        a->asked = false;
        if (st != PAWL_OK || pass)
            break;
        bool sent = !led_null(a->look, 0, LOOK_INBOX), hinted = !led_null(a->look, 0, LOOK_HINT);
        bool due =
            !led_null(a->look, 0, LOOK_JOINS) && led_get_int(a->look, 0, LOOK_JOINS) <= c->now_us;
        if (!sent && !hinted && !due)
            break;
        if (sent)
            st = led_inbox_move(c, CLAIM_MAX, err);
        if (st == PAWL_OK && hinted)
            st = led_hints_fold(c, err);
        if (st == PAWL_OK && due)
            st = led_keys_join_due(c, CLAIM_MAX, &joined, err);
    }
    if (st == PAWL_OK)
        st = pairs_take(g, a->pairs, err);
    /* Nothing, as far as we remember: others may have put something behind our marks. */
    if (st == PAWL_OK && a->by_marks && !any_due(g) && led_marks_doubt(c))
        st = look_again(g, err);
    c->marks.dry = st == PAWL_OK && !any_due(g);
    /* What is stored comes before what is new, or after it: the database sorts them. */
    if (st == PAWL_OK && c->tx->fresh && any_due(g)) {
        st = led_flush_ask(c, look_ask, err);
        if (st == PAWL_OK)
            st = pairs_take(g, a->pairs, err);
    }
    return st;
}

void led_claim_ask_last(struct ledger *c, struct led_batch *b)
{
    if (c->tx->first_key) /* else no line is another one than it was */
        led_batch_ask(b, SQL_CLAIM_LOOK, NULL, &c->tx->ahead.look);
    pairs_ask(c, b, true);
}

/* What is left, and when the next is due. */
static enum pawl_status look_ahead(struct claiming *g, struct pawl_err *err)
{
    struct claim *q = g->q;
    const struct led_ahead *a = &g->c->tx->ahead;
    enum pawl_status st = pairs_take(g, a->pairs, err);
    for (size_t i = 0; st == PAWL_OK && i < g->n_pairs; i++) {
        int64_t at = g->pairs[i].run_at_us;
        q->more = q->more || at <= g->c->now_us;
        if (!q->next_due_us || at < q->next_due_us)
            q->next_due_us = at;
    }
    int64_t joins = led_null(a->look, 0, LOOK_JOINS)
                        ? 0
                        : MAX(led_get_int(a->look, 0, LOOK_JOINS), g->c->now_us + 1);
    if (joins && (!q->next_due_us || joins < q->next_due_us))
        q->next_due_us = joins;
    /* Only what others hold is left, for all we know: no use in asking again at once. */
    if (g->passed && q->n == 0) {
        q->more = false;
        q->next_due_us = g->c->now_us + PASSED_US;
    }
    /* Whoever relies on marks finds what others put behind them only by looking again: nobody else
     * will say so, and a call must not wait for the next one to come. */
    int64_t again = g->c->now_us + led_marks_rest(g->c);
    if (!a->full && (!q->next_due_us || again < q->next_due_us))
        q->next_due_us = again;
    if (q->more)
        q->next_due_us = 0;
    return st;
}

void led_claim_late(struct ledger *c)
{
    struct claiming g = { .c = c, .q = c->tx->late, .passed = c->tx->late_passed };
    if (look_ahead(&g, NULL) != PAWL_OK)
        g.q->more = true; /* it is stored: the next claim will see */
}

/* Others of the group come after it: what they do is not seen. */
static enum pawl_status answer_now(struct ledger *c, struct pawl_err *err)
{
    enum pawl_status st = led_flush_ask(c, led_claim_ask_last, err);
    if (st == PAWL_OK)
        led_claim_late(c);
    c->tx->late = NULL;
    return st;
}

/* ---- The walk -------------------------------------------------------------------------------- */

static enum pawl_status walk(struct claiming *g, struct pawl_err *err)
{
    struct ledger *c = g->c;
    enum pawl_status st = PAWL_OK;
    c->tx->hold = true;
    if (c->tx->fresh)
        st = take_fresh(g, err);
    for (size_t i = 0, n; st == PAWL_OK && i < g->n_pairs && goes_on(g); i += n) {
        const struct pair *p = g->pairs + i;
        for (n = 1; i + n < g->n_pairs && p[n].rank == p->rank && p[n].last == p->last; n++)
            ;
        st = take_rank(g, p, n, err);
    }
    c->tx->hold = false;
    return st;
}

static enum pawl_status take_all(struct claiming *g, struct pawl_err *err)
{
    struct ledger *c = g->c;
    enum pawl_status st = look(g, err);
    bool idle = st == PAWL_OK && !c->tx->fresh && !any_due(g);
    if (st == PAWL_OK && !idle)
        st = walk(g, err);
    if (st == PAWL_OK && g->q->n)
        st = lease_write(g, err);
    c->busy = g->q->n > 0;
    c->tx->late = g->q;
    c->tx->late_passed = g->passed;
    if (st != PAWL_OK || c->tx->last_op)
        return st;
    if (!idle || c->tx->news || c->tx->due)
        return answer_now(c, err);
    /* It changed nothing: hundreds of claims may wait for other types, and one look is enough for
     * all of them in a group. */
    led_claim_late(c);
    c->tx->late = NULL;
    c->tx->ahead.asked = true;
    return PAWL_OK;
}

/* ---- The operation --------------------------------------------------------------------------- */

static bool room(struct claiming *g)
{
    size_t max = (size_t)g->q->max;
    struct arena *a = &g->c->scratch;
    /* Room for many, of which few are needed: written as they are taken, not before. */
    g->taken = arena_alloc(a, max * sizeof(struct led_call *));
    g->held = arena_alloc(a, max * sizeof *g->held);
    g->position = arena_alloc(a, max * sizeof *g->position);
    return g->taken && g->held && g->position;
}

static enum pawl_status node_asked(struct ledger *c, const struct claim *q, bool *replaced,
                                   struct pawl_err *err)
{
    struct led_rows *node = c->tx->ahead.node;
    struct led_params p = { 0 };
    enum pawl_status st = PAWL_OK;
    led_text(&p, q->node);
    if (!node || !bytes_eq(c->tx->ahead.whose, q->node))
        st = led_query(c, SQL_NODE_READ, &p, &node, err);
    *replaced = st == PAWL_OK && led_node_replaced(q->boot, node);
    return st;
}

enum pawl_status led_claim(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct claim *q = &op->claim;
    struct claiming g = { .c = c, .op = op, .q = q };
    struct led_lease *l;
    bool replaced = false;
    q->calls = NULL;
    q->states = NULL;
    q->n = 0;
    q->run_max = MAX(q->run_max, 1);
    q->more = false;
    q->next_due_us = q->until_us = 0;
    if (!room(&g))
        return err_no_memory(err, "a claim");
    enum pawl_status st = led_lease_get(c, &q->token, &l, err);
    if (st == PAWL_OK && !l && !q->lease_us)
        st = node_asked(c, q, &replaced, err);
    if (st != PAWL_OK)
        return st;
    if (l) {
        st = led_claim_repeat(&g, l, err);
    } else if (replaced) {
        op->status = err_set(&op->err, PAWL_LOST_LEASE, "node \"%.*s\" is no longer this process",
                             BYTES_ARG(q->node));
        return PAWL_OK;
    } else {
        q->until_us = q->lease_us ? c->now_us + q->lease_us : 0;
        st = take_all(&g, err);
        if (q->n == 0)
            q->until_us = 0;
    }
    return st == PAWL_OK ? led_claim_show(&g, err) : st;
}
