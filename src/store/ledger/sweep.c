/*
 * sweep.c - bounded steps of housekeeping: expiry, leases past their end, retention.
 *
 * Rows that another sweeper has locked are skipped.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "store/ledger/cache.h"

/* Read up to max rows whose time is at or before by_us. */
static enum pawl_status due(struct ledger *c, enum sql_name name, int64_t by_us, int max,
                            struct led_rows **out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    enum pawl_status st = led_flush(c, err);
    led_int(&p, by_us);
    led_int(&p, max);
    if (st == PAWL_OK)
        st = led_query(c, name, &p, out, err);
    return st == PAWL_OK ? led_rows_check(*out, name, (size_t)max, err) : st;
}

/* For several kinds: *first, the earliest time, and *any, whether one is due; each may be NULL. */
static enum pawl_status ask(struct ledger *c, const enum sql_name *kinds, size_t n, bool *any,
                            int64_t *first, struct pawl_err *err)
{
    enum pawl_status st = led_flush(c, err);
    struct led_params p = { 0 };
    led_int(&p, c->now_us);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        int64_t v = 0;
        st = led_number(c, kinds[i], &p, 0, &v, err);
        if (st == PAWL_OK && first && v && v <= c->now_us) /* the caller would not rest */
            st = err_set(err, PAWL_BROKEN, "database: %s gives %lld, which is not to come",
                         sql_name_text[kinds[i]], (long long)v);
        if (any)
            *any = *any || v;
        if (first && v && (!*first || v < *first))
            *first = v;
    }
    return st;
}

/* Load calls, and lock their keys. */
static enum pawl_status calls_load(struct ledger *c, const int64_t *seqs, size_t n,
                                   struct pawl_err *err)
{
    size_t n_keys = 0;
    struct bytes *keys = arena_alloc(&c->scratch, (n + 1) * sizeof *keys);
    if (!keys)
        return err_no_memory(err, "a sweep");
    enum pawl_status st = led_calls_load(c, seqs, n, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        const struct led_call *it = led_call_find(c, seqs[i]);
        if (it && it->spec.key.data)
            keys[n_keys++] = it->spec.key;
    }
    return st == PAWL_OK && n_keys ? led_keys_load(c, keys, n_keys, LOCK_WAIT, err) : st;
}

/* The numbers of calls in the first column of the rows, in scratch; `what` has them. */
static enum pawl_status numbers(struct ledger *c, const struct led_rows *r, const char *what,
                                const int64_t **out, struct pawl_err *err)
{
    int64_t *v = arena_alloc(&c->scratch, ((size_t)r->n + 1) * sizeof *v);
    enum pawl_status st = v ? PAWL_OK : err_no_memory(err, what);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        v[i] = led_get_int(r, i, 0);
        st = led_number_check(v[i], what, err);
    }
    *out = v;
    return st;
}

static enum pawl_status calls_of(struct ledger *c, const struct led_rows *r, struct pawl_err *err)
{
    const int64_t *seqs;
    enum pawl_status st = numbers(c, r, "a call past its expiry", &seqs, err);
    return st == PAWL_OK ? calls_load(c, seqs, (size_t)r->n, err) : st;
}

/* ---- Sweep ----------------------------------------------------------------------------------- */

static enum pawl_status expire_some(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    enum pawl_status st = due(c, SQL_EXPIRY_DUE, c->now_us, op->sweep.max, &r, err);
    if (st == PAWL_OK)
        st = calls_of(c, r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct led_call *it = led_call_find(c, led_get_int(r, i, 0));
        if (!it || it->now.state != PAWL_PENDING)
            return led_again(c, "a call past its expiry", err);
        st = led_end_pending(c, it, call_expired_as(&it->spec, it->now.expires_us), err);
        if (st == PAWL_OK)
            st = led_told_ended(op, it->spec.id, err);
        op->sweep.expired++;
    }
    return st;
}

/* Take back the leases whose tokens are in the first column. */
static enum pawl_status reclaim_listed(struct ledger *c, struct op *op, const struct led_rows *r,
                                       struct attempt_end end, int64_t *count, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct bytes b = led_get(r, i, 0);
        struct token token;
        if (b.len != sizeof token.b)
            return err_set(err, PAWL_BROKEN, "a lease has a token of %zu bytes", b.len);
        memcpy(token.b, b.data, sizeof token.b);
        st = led_reclaim(c, op, &token, &end, count, err);
    }
    return st;
}

static enum pawl_status reclaim_some(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct sweep *s = &op->sweep;
    struct attempt_end end = { .how = END_LOST, .fail_lost = s->fail_lost, .timed = true };
    enum pawl_status st = due(c, SQL_LEASE_OVER, c->now_us, s->max, &r, err);
    return st == PAWL_OK ? reclaim_listed(c, op, r, end, &s->reclaimed, err) : st;
}

enum pawl_status led_requeue(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct requeue *q = &op->requeue;
    struct led_rows *r = NULL;
    q->leases = q->reclaimed = 0;
    q->more = false;
    enum pawl_status st = due(c, SQL_LEASE_OLD, q->claimed_before_us, q->max, &r, err);
    if (st != PAWL_OK)
        return st;
    q->leases = r->n;
    st =
        reclaim_listed(c, op, r, (struct attempt_end){ .how = END_LOST, .fail_lost = q->fail_lost },
                       &q->reclaimed, err);
    if (st == PAWL_OK)
        st = due(c, SQL_LEASE_OLD, q->claimed_before_us, 1, &r, err);
    q->more = st == PAWL_OK && r->n > 0;
    return st;
}

enum pawl_status led_sweep(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct sweep *s = &op->sweep;
    static const enum sql_name now[] = { SQL_EXPIRY_ANY_DUE, SQL_LEASE_ANY_OVER, SQL_LINE_ANY_DUE };
    static const enum sql_name next[] = { SQL_EXPIRY_NEXT, SQL_LEASE_NEXT, SQL_LINE_NEXT };
    s->expired = s->reclaimed = s->cancelled = s->joined = s->next_us = 0;
    s->more = false;
    enum pawl_status st = led_inbox_move(c, s->max, err);
    if (st == PAWL_OK)
        st = led_key_notes_fold(c, err);
    if (st == PAWL_OK)
        st = expire_some(c, op, err);
    if (st == PAWL_OK)
        st = reclaim_some(c, op, err);
    if (st == PAWL_OK)
        st = led_keys_join_due(c, s->max, &s->joined, err);
    if (st == PAWL_OK)
        st = led_inbox_any(c, &s->more, err);
    if (st == PAWL_OK)
        st = ask(c, now, COUNT_OF(now), &s->more, NULL, err);
    return st == PAWL_OK ? ask(c, next, COUNT_OF(next), NULL, &s->next_us, err) : st;
}

/* ---- Retention ------------------------------------------------------------------------------- */

/* Remove an ended call; only a tombstone is kept, for remember_us after the call's retention. */
static enum pawl_status remove_one(struct ledger *c, struct led_call *it, int64_t remember_us,
                                   struct pawl_err *err)
{
    const struct led_outcome *o = it->now.outcome;
    CHECK(it->now.place == AT_ENDED && o->keep_until_us != INT64_MAX); /* INT64_MAX: it blocks its
                                                                          key */
    enum pawl_status st = led_lease_leave(c, o->token, it->seq, err);
    if (st != PAWL_OK)
        return st;
    it->forget_us = o->keep_until_us + remember_us;
    it->now.place = AT_GONE;
    return it->spec.key.data ? led_key_gone(c, it->spec.key, err) : PAWL_OK;
}

static enum pawl_status forget_some(struct ledger *c, struct gc *g, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    enum pawl_status st = due(c, SQL_GONE_OVER, c->now_us, g->max, &r, err);
    if (st != PAWL_OK || r->n == 0)
        return st;
    struct led_params seqs = { 0 }, ids = { 0 };
    struct led_column seq, id;
    led_column_init(&seq, &c->scratch, LED_INTS);
    led_column_init(&id, &c->scratch, LED_TEXTS);
    for (int i = 0; i < r->n; i++) {
        st = led_number_check(led_get_int(r, i, 0), "a tombstone", err);
        if (st != PAWL_OK)
            return st;
        led_add_int(&seq, led_get_int(r, i, 0));
        led_add_bytes(&id, led_get(r, i, 1));
    }
    led_column(&seqs, &seq);
    led_column(&ids, &id);
    int64_t gone = 0;
    st = led_run(c, SQL_GONE_REMOVE, &seqs, &gone, err);
    if (st == PAWL_OK && gone != r->n)
        st = led_again(c, "a tombstone", err);
    if (st == PAWL_OK)
        st = led_run(c, SQL_ID_REMOVE, &ids, NULL, err);
    g->forgotten = r->n;
    /* The rows in memory are out of date now. The keys to be removed are marked there, so they are
     * removed before the memory is dropped. */
    if (st == PAWL_OK)
        st = led_keys_drop(c, err);
    return st == PAWL_OK ? led_forget(c, err) : st;
}

/* How long gc leaves alone a call past its retention that a feature keeps. */
#define KEPT_AGAIN_US (3600 * SEC_US)

/* Calls to be removed. */
struct removing {
    const int64_t *seqs;
    const int64_t *remember; /* for each, how long its id is remembered; NULL: the setting */
    size_t n;
    bool archive; /* copy them to the archive first */
    bool again;   /* gc finds those that stay again, unless they are kept for longer */
};

/* Leave out the calls that features keep. */
static enum pawl_status keep_some(struct ledger *c, struct removing *r, struct pawl_err *err)
{
    bool *keep = arena_zalloc(&c->scratch, r->n + 1, sizeof *keep);
    int64_t *seqs = arena_alloc(&c->scratch, (r->n + 1) * sizeof *seqs);
    int64_t *remember = arena_alloc(&c->scratch, (r->n + 1) * sizeof *remember);
    size_t n = 0;
    if (!keep || !seqs || !remember)
        return err_no_memory(err, "gc");
    enum pawl_status st = led_features_keep(c, r->seqs, r->n, keep, err);
    for (size_t i = 0; i < r->n && st == PAWL_OK; i++) {
        struct led_call *it = led_call_find(c, r->seqs[i]);
        if (!keep[i]) {
            remember[n] = r->remember ? r->remember[i] : c->remember_us;
            seqs[n++] = r->seqs[i];
        } else if (r->again && it->now.place == AT_ENDED) {
            struct led_outcome *o = arena_alloc(&c->scratch, sizeof *o);
            if (!o)
                return err_no_memory(err, "gc");
            *o = *it->now.outcome;
            o->keep_until_us = c->now_us + KEPT_AGAIN_US;
            it->now.outcome = o;
        }
    }
    r->seqs = seqs;
    r->remember = remember;
    r->n = n;
    return st;
}

static enum pawl_status remove_listed(struct ledger *c, struct gc *g, struct removing *r,
                                      struct pawl_err *err)
{
    struct led_rows *copied = NULL;
    struct led_params p = { 0 };
    enum pawl_status st = calls_load(c, r->seqs, r->n, err);
    if (st == PAWL_OK && c->n_features)
        st = keep_some(c, r, err);
    const int64_t *seqs = r->seqs;
    size_t n = r->n;
    led_ints(c, &p, seqs, n);
    led_int(&p, c->now_us);
    if (st == PAWL_OK && r->archive && n)
        st = led_query(c, SQL_ARCHIVE_ADD, &p, &copied, err);
    /* What is not copied must not be removed. Only some engines say how many were. */
    if (st == PAWL_OK && copied && copied->n && led_get_int(copied, 0, 0) != (int64_t)n)
        st = led_again(c, "an archived call", err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++, g->removed++) {
        struct led_call *it = led_call_find(c, seqs[i]);
        int64_t remember_us = r->remember ? r->remember[i] : c->remember_us;
        st = it && it->now.place == AT_ENDED ? remove_one(c, it, remember_us, err)
                                             : led_again(c, "an ended call", err);
    }
    return st == PAWL_OK && n ? led_features_forget(c, seqs, n, err) : st;
}

/* How many of these calls are copied in one step. With one writer, other writers wait meanwhile, so
 * large calls end the step early. */
static enum pawl_status copied_at_once(struct ledger *c, const struct gc *g, const int64_t *seqs,
                                       size_t *n, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    int64_t len = 0;
    if (!g->archive || !c->db->one_writer)
        return PAWL_OK;
    led_ints(c, &p, seqs, *n);
    enum pawl_status st = led_query(c, SQL_ARCHIVE_LEN, &p, &r, err);
    if (st == PAWL_OK && (size_t)r->n != *n) /* an outcome has no call */
        st = led_again(c, "an ended call", err);
    size_t i = 0;
    for (; st == PAWL_OK && i < *n && len < CLAIM_LEN_MAX; i++)
        len += led_get_int(r, (int)i, 0);
    *n = i;
    return st;
}

/* Remove calls that ended before a time, in the order of seq. */
static enum pawl_status gc_ended(struct ledger *c, struct gc *g, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    size_t n = 0;
    int at = 0;
    enum pawl_status st = due(c, SQL_OUTCOME_WALK, g->after_seq, LIST_LOOK_MAX, &r, err);
    if (st != PAWL_OK)
        return st;
    int64_t *seqs = arena_alloc(&c->scratch, (size_t)g->max * sizeof *seqs);
    if (!seqs)
        return err_no_memory(err, "an archive");
    for (; at < r->n && n < (size_t)g->max; at++)
        if (led_get_int(r, at, 1) < g->ended_before_us && led_get_int(r, at, 2) != INT64_MAX)
            seqs[n++] = led_get_int(r, at, 0);
    g->more = n == (size_t)g->max || r->n == LIST_LOOK_MAX;
    g->next_seq = g->more ? led_get_int(r, at - 1, 0) : 0;
    if (g->more && g->next_seq <= g->after_seq) /* the caller would not end */
        return err_set(err, PAWL_BROKEN, "database: outcomes after call %lld begin with call %lld",
                       (long long)g->after_seq, (long long)g->next_seq);
    size_t all = n;
    st = copied_at_once(c, g, seqs, &n, err);
    if (st == PAWL_OK && n < all) {
        g->more = true;
        g->next_seq = seqs[n - 1];
    }
    struct removing v = { .seqs = seqs, .n = n, .archive = g->archive };
    return st == PAWL_OK ? remove_listed(c, g, &v, err) : st;
}

/* Columns of removal_take. */
enum { REMOVAL_SEQ, REMOVAL_ARCHIVE, REMOVAL_REMEMBER, REMOVAL_STANDS };

/* Those of the marked calls that stand, to be archived or not. */
static enum pawl_status remove_marked(struct ledger *c, struct gc *g, const struct led_rows *rows,
                                      bool archive, struct pawl_err *err)
{
    int64_t *seqs = arena_alloc(&c->scratch, ((size_t)rows->n + 1) * sizeof *seqs);
    int64_t *remember = arena_alloc(&c->scratch, ((size_t)rows->n + 1) * sizeof *remember);
    size_t n = 0;
    if (!seqs || !remember)
        return err_no_memory(err, "gc");
    for (int i = 0; i < rows->n; i++) {
        if (!led_get_int(rows, i, REMOVAL_STANDS) ||
            (led_get_int(rows, i, REMOVAL_ARCHIVE) != 0) != archive)
            continue;
        seqs[n] = led_get_int(rows, i, REMOVAL_SEQ);
        remember[n] = led_get_int(rows, i, REMOVAL_REMEMBER);
        if (remember[n++] < 0) /* its id would be new again at once, and a repeat would run */
            return err_set(err, PAWL_BROKEN, "database: call %lld is to be remembered for %lld us",
                           (long long)seqs[n - 1], (long long)remember[n - 1]);
    }
    struct removing r = { .seqs = seqs, .remember = remember, .n = n, .archive = archive };
    return n ? remove_listed(c, g, &r, err) : PAWL_OK;
}

/* Remove calls that functions in SQL have marked. */
static enum pawl_status gc_marked(struct ledger *c, struct gc *g, struct pawl_err *err)
{
    struct led_rows *rows = NULL;
    struct led_params p = { 0 }, done = { 0 };
    if (!c->db->inbox)
        return PAWL_OK;
    led_int(&p, g->max);
    enum pawl_status st = led_flush(c, err);
    if (st == PAWL_OK)
        st = led_query(c, SQL_REMOVAL_TAKE, &p, &rows, err);
    if (st != PAWL_OK || rows->n == 0)
        return st;
    const int64_t *seqs;
    st = numbers(c, rows, "a call that SQL removes", &seqs, err);
    if (st == PAWL_OK)
        st = remove_marked(c, g, rows, true, err);
    if (st == PAWL_OK)
        st = remove_marked(c, g, rows, false, err);
    led_ints(c, &done, seqs, (size_t)rows->n);
    int64_t gone = 0;
    if (st == PAWL_OK)
        st = led_run(c, SQL_REMOVAL_REMOVE, &done, &gone, err);
    if (st == PAWL_OK && gone != rows->n) /* they are locked. A mark that stays would act again */
        st = led_again(c, "a mark of an ended call", err);
    return st;
}

/* Remove calls past their retention. */
static enum pawl_status gc_kept(struct ledger *c, struct gc *g, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    if (g->removed >= g->max)
        return PAWL_OK;
    enum pawl_status st = due(c, SQL_OUTCOME_KEPT, c->now_us, g->max - (int)g->removed, &r, err);
    const int64_t *seqs = NULL;
    if (st == PAWL_OK)
        st = numbers(c, r, "an ended call", &seqs, err);
    if (st != PAWL_OK)
        return st;
    struct removing v = { .seqs = seqs, .n = (size_t)r->n, .archive = g->archive, .again = true };
    return remove_listed(c, g, &v, err);
}

static enum pawl_status marked_any(struct ledger *c, bool *out, struct pawl_err *err)
{
    int64_t any = 0;
    enum pawl_status st =
        c->db->inbox ? led_number(c, SQL_REMOVAL_ANY, NULL, 0, &any, err) : PAWL_OK;
    *out = *out || any;
    return st;
}

enum pawl_status led_gc(struct ledger *c, struct op *op, struct pawl_err *err)
{
    struct gc *g = &op->gc;
    static const enum sql_name kinds[] = { SQL_OUTCOME_DUE, SQL_GONE_DUE };
    g->removed = g->forgotten = g->next_seq = 0;
    g->more = false;
    if (g->ended_before_us)
        return gc_ended(c, g, err);
    enum pawl_status st = gc_marked(c, g, err);
    if (st == PAWL_OK)
        st = gc_kept(c, g, err);
    if (st == PAWL_OK)
        st = forget_some(c, g, err);
    if (st == PAWL_OK)
        st = led_inbox_forget(c, g->max, err);
    if (st == PAWL_OK)
        st = led_lanes_gc(c, err);
    if (st == PAWL_OK)
        st = led_features_gc(c, g->max, &g->more, err);
    if (st == PAWL_OK)
        st = marked_any(c, &g->more, err);
    return st == PAWL_OK ? ask(c, kinds, COUNT_OF(kinds), &g->more, NULL, err) : st;
}
