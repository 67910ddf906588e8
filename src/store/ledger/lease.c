/*
 * lease.c - leases: which calls they hold, and which of these have ended.
 *
 * A lease that is to be changed is locked first. Which of its calls have ended is asked in a
 * separate statement after that, so that it sees what the former holder of the lock did.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/ledger/cache.h"

static struct led_lease **slot(struct ledger *c, const struct token *token)
{
    struct led_lease **at = &c->tx->leases[led_hash(token->b, sizeof token->b) % LED_BUCKETS];
    while (*at && !token_eq((*at)->token, *token))
        at = &(*at)->same;
    return at;
}

/* A lease in memory; it was loaded before. */
static struct led_lease *lease_of(struct ledger *c, const struct token *token)
{
    struct led_lease *l = *slot(c, token);
    assert(l);
    return l;
}

struct led_lease *led_lease_new(struct ledger *c, const struct token *token)
{
    struct led_lease **at = slot(c, token);
    if (*at)
        return *at;
    struct led_lease *l = arena_zalloc(&c->scratch, 1, sizeof *l);
    if (!l)
        return NULL;
    l->token = *token;
    l->missing = true;
    l->newer = c->tx->first_lease;
    c->tx->first_lease = l;
    *at = l;
    return l;
}

enum pawl_status led_lease_make(struct ledger *c, const struct token *token, struct led_lease **out,
                                struct pawl_err *err)
{
    struct led_lease *l = *out = led_lease_new(c, token);
    enum pawl_status st = l ? PAWL_OK : err_no_memory(err, "a lease");
    if (st == PAWL_OK && l->stored)
        st = led_flush(c, err);
    CHECK(st != PAWL_OK || (l->missing && !l->stored));
    return st;
}

/* The packed list of a lease is short if `pos` is the call's own number. With one writer that is
 * the place of nearly all calls. Otherwise nearly all calls have the place that their number in the
 * key gives them, so in the list the call's own number stands for that place. */
void led_places_read(const struct ledger *c, struct held *v, size_t n)
{
    for (size_t i = 0; i < n && !c->db->one_writer; i++)
        if (v[i].key && v[i].pos == v[i].seq)
            v[i].pos = v[i].key_no * LINE_STEP;
}

void led_places_list(const struct ledger *c, struct held *v, size_t n)
{
    for (size_t i = 0; i < n && !c->db->one_writer; i++)
        if (v[i].key && v[i].pos == v[i].key_no * LINE_STEP)
            v[i].pos = v[i].seq;
}

/* By key, then in the order of its run. */
static int compare_runs(const void *a, const void *b, void *held)
{
    const struct held *x = (const struct held *)held + *(const int *)a;
    const struct held *y = (const struct held *)held + *(const int *)b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->pos > y->pos) - (x->pos < y->pos);
}

bool led_lease_list(struct ledger *c, struct led_lease *l, struct held *held, size_t n)
{
    int *order = arena_alloc(&c->scratch, (n + 1) * sizeof *order);
    size_t m = 0;
    l->held = held;
    l->n = l->named = l->left = n;
    l->cached = false;
    l->state = arena_zalloc(&c->scratch, n + 1, 1);
    l->run = arena_zalloc(&c->scratch, n + 1, sizeof *l->run);
    l->begun = arena_alloc(&c->scratch, (n + 1) * sizeof *l->begun);
    l->begun_left = 0;
    if (!order || !l->state || !l->run || !l->begun)
        return false;
    for (size_t i = 0; i < n; i++) {
        l->run[i] = (struct led_link){ -1, -1 };
        if (held[i].key)
            order[m++] = (int)i;
    }
    qsort_r(order, m, sizeof *order, compare_runs, held);
    for (size_t i = 1; i < m; i++) {
        if (held[order[i]].key != held[order[i - 1]].key)
            continue;
        l->run[order[i]].before = order[i - 1];
        l->run[order[i - 1]].behind = order[i];
    }
    return true;
}

static enum pawl_status lease_row(struct ledger *c, const struct led_rows *r, int row,
                                  struct led_lease **out, struct pawl_err *err)
{
    struct bytes b = led_get(r, row, 0);
    struct token token;
    struct held *held;
    size_t n;
    if (b.len != sizeof token.b)
        return err_set(err, PAWL_BROKEN, "a lease has a token of %zu bytes", b.len);
    memcpy(token.b, b.data, sizeof token.b);
    struct led_lease *l = led_lease_new(c, &token);
    *out = l;
    if (l && (l->locked || !l->missing)) /* locked: keep what is in memory; only read: it must be
                                            unchanged */
        return l->locked || l->rev == led_get_int(r, row, 6) ? PAWL_OK
                                                             : led_again(c, "a lease", err);
    struct bytes version;
    enum pawl_status st = lease_unpack(&c->scratch, led_get(r, row, 7), &held, &n, &version, err);
    if (st != PAWL_OK)
        return st;
    led_places_read(c, held, n);
    if (!l || !led_lease_list(c, l, held, n))
        return err_no_memory(err, "a lease");
    l->missing = false;
    l->stored = true;
    l->node = arena_copy(&c->scratch, led_get(r, row, 1));
    l->boot = arena_copy(&c->scratch, led_get(r, row, 2));
    l->worker = arena_copy(&c->scratch, led_get(r, row, 3));
    l->owner = l->worker.data ? l->worker : l->node;
    l->version = arena_copy(&c->scratch, version);
    l->claimed_us = led_get_int(r, row, 4);
    l->until_us = led_get_int(r, row, 5);
    l->rev = led_get_int(r, row, 6);
    l->width = (int)led_get_int(r, row, 8);
    l->cached = led_cache_find(c, l) != NULL;
    return c->scratch.failed ? err_no_memory(err, "a lease")
                             : led_lease_check(c, l, LED_LOADED, err);
}

/* Mark the calls of these leases that have ended. */
static enum pawl_status ended_load(struct ledger *c, struct led_lease *const *v, size_t n,
                                   struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    struct led_column col;
    led_column_init(&col, &c->scratch, LED_INTS);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < v[i]->n; k++)
            led_add_int(&col, v[i]->held[k].seq);
    led_column(&p, &col);
    enum pawl_status st = n ? led_query(c, SQL_LEASE_ENDED, &p, &r, err) : PAWL_OK;
    for (int i = 0; r && i < r->n; i++) {
        bool asked = false;
        for (size_t k = 0; k < n; k++) {
            ssize_t at = led_lease_find(v[k], led_get_int(r, i, 0));
            asked = asked || at >= 0;
            if (at < 0 || v[k]->state[at] != HELD_OPEN)
                continue;
            v[k]->state[at] = HELD_ENDED;
            v[k]->left--;
        }
        if (!asked)
            return err_set(err, PAWL_BROKEN, "database: call %lld has ended and no lease names it",
                           (long long)led_get_int(r, i, 0));
    }
    return st;
}

static struct token row_token(const struct led_rows *r, int row)
{
    struct bytes b = led_get(r, row, 0);
    struct token token = { { 0 } };
    memcpy(token.b, b.data, MIN(b.len, sizeof token.b));
    return token;
}

static enum pawl_status leases_read(struct ledger *c, const struct led_rows *r, bool ended,
                                    struct pawl_err *err)
{
    struct led_lease **fresh = arena_zalloc(&c->scratch, (size_t)r->n + 1, sizeof *fresh);
    size_t n = 0;
    enum pawl_status st = fresh ? PAWL_OK : err_no_memory(err, "leases");
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct token token = row_token(r, i);
        const struct led_lease *had = *slot(c, &token);
        bool known = had && had->locked;
        struct led_lease *l = NULL;
        st = lease_row(c, r, i, &l, err);
        if (st == PAWL_OK && !known)
            fresh[n++] = l;
    }
    return st == PAWL_OK && ended ? ended_load(c, fresh, n, err) : st;
}

/* A lease that was read without a lock must still exist. */
static enum pawl_status still_missing(struct ledger *c, const struct token *v, size_t n,
                                      const struct led_rows *r, struct pawl_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct led_lease *l = lease_of(c, &v[i]);
        bool found = l->locked || l->missing;
        for (int k = 0; k < r->n && !found; k++)
            found = token_eq(row_token(r, k), v[i]);
        if (!found)
            return led_again(c, "a lease", err);
    }
    return PAWL_OK;
}

/* The tokens whose leases were not locked or requested yet. */
static bool leases_wanting(struct ledger *c, const struct token *v, size_t n,
                           struct led_column *out)
{
    led_column_init(out, &c->scratch, LED_BLOBS);
    for (size_t i = 0; i < n; i++) {
        struct led_lease *l = led_lease_new(c, &v[i]);
        if (!l)
            return false;
        if (!l->locked && !l->asked) /* many operations of a group may name the same one */
            led_add_bytes(out, (struct bytes){ (const char *)v[i].b, sizeof v[i].b });
        l->asked = true;
    }
    return true;
}

enum pawl_status led_leases_ask(struct ledger *c, struct led_batch *b, const struct token *v,
                                size_t n, struct led_rows **out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_column col;
    if (!leases_wanting(c, v, n, &col))
        return err_no_memory(err, "leases");
    led_column(&p, &col);
    if (col.n)
        led_batch_ask(b, SQL_LEASE_READ, &p, out);
    return PAWL_OK;
}

static enum pawl_status leases_take(struct ledger *c, const struct token *v, size_t n,
                                    const struct led_rows *r, bool ended, struct pawl_err *err)
{
    enum pawl_status st = led_rows_check(r, SQL_LEASE_READ, n, err);
    if (st == PAWL_OK)
        st = still_missing(c, v, n, r, err);
    if (st == PAWL_OK)
        st = leases_read(c, r, ended, err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++)
        lease_of(c, &v[i])->locked = true;
    return st;
}

enum pawl_status led_leases_take(struct ledger *c, const struct token *v, size_t n,
                                 const struct led_rows *r, struct pawl_err *err)
{
    return leases_take(c, v, n, r, false, err);
}

enum pawl_status led_leases_load(struct ledger *c, const struct token *v, size_t n,
                                 struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    struct led_column col;
    if (!leases_wanting(c, v, n, &col))
        return err_no_memory(err, "leases");
    if (col.n == 0)
        return PAWL_OK;
    led_column(&p, &col);
    enum pawl_status st = led_query(c, SQL_LEASE_READ, &p, &r, err);
    return st == PAWL_OK ? leases_take(c, v, n, r, true, err) : st;
}

enum pawl_status led_lease_get(struct ledger *c, const struct token *token, struct led_lease **out,
                               struct pawl_err *err)
{
    *out = NULL;
    enum pawl_status st = led_leases_load(c, token, 1, err);
    if (st == PAWL_OK && !lease_of(c, token)->missing)
        *out = lease_of(c, token);
    return st;
}

/* Fill in the call from the list of its lease. */
static void hold(struct led_call *it, struct led_lease *l, const struct held *h)
{
    it->lease = l;
    it->now.lane = h->lane;
    it->now.priority = h->priority;
    it->now.run_at_us = h->run_at_us;
    it->now.counts = h->counts;
    it->now.pos = h->pos;
    it->now.key_no = h->key_no;
    it->now.marks = h->marks;
    if (h->counts.redrives > 0)
        it->now.expires_us = 0;
    it->was = it->now;
}

/* Fill in a lean call from a row of lease_calls. */
static enum pawl_status lean_row(struct ledger *c, const struct led_rows *r, int row,
                                 struct pawl_err *err)
{
    struct led_call *it = led_call_find(c, led_get_int(r, row, 0));
    struct led_lease *l = it ? it->lease : NULL;
    if (!l || l->state[it->held_at] != HELD_OPEN || l->left == 0)
        return err_set(err, PAWL_BROKEN, "database: call %lld is listed twice for its lease",
                       (long long)led_get_int(r, row, 0));
    if (led_get_int(r, row, 1)) {
        l->state[it->held_at] = HELD_ENDED;
        l->left--;
        it->lease = NULL;
        return PAWL_OK;
    }
    call_spec_init(&it->spec);
    it->lean = true;
    it->spec.id = led_get(r, row, 2);
    it->own_lane = (int)led_get_int(r, row, 3);
    it->spec.key = led_get(r, row, 4);
    it->own_priority = (int)led_get_int(r, row, 5);
    it->now.expires_us = led_get_int(r, row, 6);
    it->now.cancel_requested = !led_null(r, row, 8);
    enum pawl_status st = call_options_read(&c->scratch, led_get(r, row, 7), &it->spec, err);
    hold(it, l, &l->held[it->held_at]);
    return st == PAWL_OK ? led_call_check(it, LED_LOADED, err) : st;
}

/* The same for a remembered lease. Id and key are borrowed from the cache, whose entries are not
 * freed before the transaction ends (led_cache_stored, led_cache_doubt). */
static void lean_cached(struct led_call *it, const struct led_cached_lease *k)
{
    struct led_lease *l = it->lease;
    size_t i = it->held_at;
    const struct led_cached_call *v = &k->v[i];
    CHECK(l && i < k->n && v->seq == it->seq);
    if (v->ended) {
        l->state[i] = HELD_ENDED;
        l->left--;
        it->lease = NULL;
        return;
    }
    it->lean = true;
    it->spec = v->spec;
    it->own_lane = v->lane;
    it->own_priority = v->priority;
    it->now.expires_us = v->expires_us;
    hold(it, l, &l->held[i]);
}

/* Apply cancel requests to remembered calls: any process may store one at any time. */
static void cancel_requests_take(struct ledger *c, const struct led_rows *r)
{
    for (int i = 0; r && i < r->n; i++) {
        struct led_call *it = led_call_find(c, led_get_int(r, i, 0));
        CHECK(!it || !it->lease || it->now.place == AT_HELD);
        if (it && it->lease)
            it->now.cancel_requested = it->was.cancel_requested = true;
    }
}

enum pawl_status led_leases_calls(struct ledger *c, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_batch *b = arena_alloc(&c->scratch, sizeof *b);
    struct led_params p = { 0 };
    struct led_column col;
    bool cached = false;
    if (!b)
        return err_no_memory(err, "a lease");
    b->n = 0;
    led_column_init(&col, &c->scratch, LED_INTS);
    for (struct led_lease *l = c->tx->first_lease; l; l = l->newer) {
        const struct led_cached_lease *known = l->cached ? led_cache_find(c, l) : NULL;
        l->cached = known != NULL;
        cached = cached || known;
        for (size_t k = 0; !l->missing && k < l->n; k++) {
            struct led_call *it = led_call_new(c, l->held[k].seq);
            if (!it)
                return err_no_memory(err, "a lease");
            if (it->lease && it->lease != l)
                return err_set(err, PAWL_BROKEN, "call %lld is in two leases", (long long)it->seq);
            *it = (struct led_call){ .same = it->same,
                                     .newer = it->newer,
                                     .seq = it->seq,
                                     .partial = true,
                                     .lease = l,
                                     .held_at = k };
            it->now.place = AT_HELD;
            it->now.state = PAWL_PROCESSING;
            it->was = it->now;
            if (known)
                lean_cached(it, known);
            else
                led_add_int(&col, it->seq);
        }
    }
    if (c->scratch.failed)
        return err_no_memory(err, "a lease");
    led_column(&p, &col);
    if (col.n)
        led_batch_ask(b, SQL_LEASE_CALLS, &p, &r);
    if (cached && !c->tx->ahead.asked_cancel_requests)
        led_cache_ask(c, b);
    enum pawl_status st = b->n ? led_batch_run(c, b, err) : PAWL_OK;
    if (st == PAWL_OK && r && (size_t)r->n != col.n)
        st = err_set(err, PAWL_BROKEN, "database: %d calls of leases instead of %zu", r->n, col.n);
    for (int i = 0; st == PAWL_OK && r && i < r->n; i++)
        st = lean_row(c, r, i, err);
    if (st == PAWL_OK)
        cancel_requests_take(c, c->tx->ahead.cancel_requests);
    return st;
}

/* The lease in memory that holds this call. */
static struct led_lease *holder_of(struct ledger *c, int64_t seq, size_t *out)
{
    for (struct led_lease *l = c->tx->first_lease; l; l = l->newer) {
        ssize_t at = l->missing ? -1 : led_lease_find(l, seq);
        if (at < 0 || l->state[at] != HELD_OPEN)
            continue;
        *out = (size_t)at;
        return l;
    }
    return NULL;
}

static bool hold_in(struct ledger *c, struct led_call *it)
{
    size_t at;
    struct led_lease *l = holder_of(c, it->seq, &at);
    if (l)
        hold(it, l, &l->held[at]);
    return l != NULL;
}

static const char *lost_text(struct ledger *c, int64_t seq)
{
    const char *text = arena_printf(&c->scratch, "call %lld is neither pending nor held nor ended",
                                    (long long)seq);
    return text ? text : "a call";
}

/* Read the leases that may hold calls with numbers from low to high. */
static enum pawl_status leases_around(struct ledger *c, int64_t low, int64_t high,
                                      struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    led_int(&p, low);
    led_int(&p, high);
    enum pawl_status st = led_query(c, SQL_LEASE_AROUND, &p, &r, err);
    return st == PAWL_OK ? leases_read(c, r, true, err) : st;
}

enum pawl_status led_holders_load(struct ledger *c, struct led_call *const *v, size_t n,
                                  struct pawl_err *err)
{
    int64_t low = INT64_MAX, high = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i]->now.place != AT_HELD || v[i]->lease || hold_in(c, v[i]))
            continue;
        low = MIN(low, v[i]->seq);
        high = MAX(high, v[i]->seq);
    }
    if (high == 0)
        return PAWL_OK;
    enum pawl_status st = leases_around(c, low, high, err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++)
        if (v[i]->now.place == AT_HELD && !v[i]->lease && !hold_in(c, v[i]))
            st = led_again(c, lost_text(c, v[i]->seq), err);
    return st;
}

enum pawl_status led_all_leases(struct ledger *c, struct pawl_err *err)
{
    return leases_around(c, 0, INT64_MAX, err);
}

ssize_t led_lease_find(const struct led_lease *l, int64_t seq)
{
    struct held *h = lease_find(l->held, l->n, seq);
    return h ? h - l->held : -1;
}

int64_t led_lease_before(const struct led_lease *l, size_t i, size_t *out_first)
{
    int64_t n = 0;
    *out_first = i;
    for (int at = l->run[i].before; at >= 0; at = l->run[at].before)
        if (l->state[at] == HELD_OPEN) {
            *out_first = (size_t)at;
            n++;
        }
    return n;
}

/* Is it open, with no open call before it in its run? */
static bool is_first(const struct led_lease *l, size_t i)
{
    int before = l->run[i].before;
    return l->state[i] == HELD_OPEN && (before < 0 || l->state[before] != HELD_OPEN);
}

bool led_lease_begun(struct led_lease *l, size_t i)
{
    if (!l->width || l->left <= (size_t)l->width)
        return is_first(l, i);
    if (l->begun_left != l->left) {
        for (size_t k = 0; k < l->n; k++)
            l->begun[k] = is_first(l, k);
        lease_begun(l->held, l->n, l->width, l->begun);
        l->begun_left = l->left;
    }
    return l->begun[i];
}

enum pawl_status led_head_begun(struct ledger *c, const struct led_key *k, bool *out,
                                struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    size_t at = 0;
    struct led_lease *l = holder_of(c, k->head, &at);
    enum pawl_status st = PAWL_OK;
    led_int(&p, k->head);
    led_int(&p, k->head);
    if (!l)
        st = led_query(c, SQL_LEASE_AROUND, &p, &r, err);
    if (st == PAWL_OK && r)
        st = leases_read(c, r, true, err);
    if (st == PAWL_OK && r)
        l = holder_of(c, k->head, &at);
    if (st == PAWL_OK && !l && (c->reading || c->db->one_writer))
        st = led_again(c, lost_text(c, k->head), err);
    *out = !l || led_lease_begun(l, at);
    return st;
}

int64_t led_claim_until(const struct claim *q, struct led_call *const *taken,
                        const int64_t *position, int64_t now_us)
{
    int64_t last_us = 0;
    for (size_t i = 0; i < q->n && q->until_us; i++)
        last_us = MAX(last_us, position[i] ? INT64_MAX : call_deadline(&taken[i]->spec, now_us));
    return MIN(q->until_us, last_us);
}

void led_lease_done(struct led_lease *l, size_t i, bool off)
{
    CHECK(i < l->n && l->state[i] == HELD_OPEN && l->left > 0);
    l->state[i] = off ? HELD_OFF : HELD_ENDED;
    l->left--;
    l->named -= off;
    /* Other handles that remember the lease must notice: see lease_cache.c. */
    l->dirty = l->dirty || off || !l->cached;
    if (l->left == 0) {
        l->missing = true;
        l->dirty = true;
    }
}

enum pawl_status led_lease_leave(struct ledger *c, struct bytes token, int64_t seq,
                                 struct pawl_err *err)
{
    struct token t;
    struct led_lease *l;
    if (!token.len)
        return PAWL_OK;
    if (token.len != sizeof t.b)
        return err_set(err, PAWL_BROKEN, "call %lld: its outcome has a token of %zu bytes",
                       (long long)seq, token.len);
    memcpy(t.b, token.data, sizeof t.b);
    enum pawl_status st = led_lease_get(c, &t, &l, err);
    ssize_t i = st == PAWL_OK && l ? led_lease_find(l, seq) : -1;
    if (i < 0 || l->state[i] != HELD_ENDED)
        return st;
    l->state[i] = HELD_OFF;
    l->named--;
    l->dirty = true;
    return PAWL_OK;
}
