/*
 * limit_claim.c - claims take slots and rates of limits, and calls that leave their lease give the
 * slots back (limit_inside.h).
 *
 * Store thread, inside a transaction. Slots are locked with SKIP LOCKED, in the order of the
 * limits' names: a claim waits for none, and a slot that another claim has locked is looked for
 * again soon. A leave waits for a row alone that it takes over from a call which leaves too. What
 * must stay true: a slot has a call exactly while a lease holds it; and while a limit has more rows
 * than it allows, none of them is free, so that nothing begins until enough has left.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "feature/limit_inside.h"

/* Another transaction has locked what a claim needs: look again after this time. */
#define LOCKED_US (5 * MS_US)

/* ---- Rules in memory ------------------------------------------------------------------------- */

/* Columns of limit_read. */
enum {
    C_NUMBER,
    C_NAME,
    C_QUEUE,
    C_TYPE,
    C_PREFIX,
    C_RUNNING,
    C_RATE,
    C_PER,
    C_BURST,
    C_CREATED,
    C_UPDATED
};

enum pawl_status rules_query(struct ledger *d, struct rule **out, size_t *out_n,
                             struct pawl_err *err)
{
    struct led_rows *r;
    enum pawl_status st = feature_query(d, SQL_LIMIT_READ, NULL, &r, err);
    if (st != PAWL_OK)
        return st;
    *out_n = (size_t)r->n;
    *out = arena_alloc(feature_arena(d), (*out_n + 1) * sizeof **out);
    if (!*out)
        return err_no_memory(err, "limits");
    for (int i = 0; i < r->n; i++) {
        struct rule *it = &(*out)[i];
        *it = (struct rule){ .number = led_get_int(r, i, C_NUMBER),
                             .created_us = led_get_int(r, i, C_CREATED),
                             .updated_us = led_get_int(r, i, C_UPDATED),
                             .limit = { .name = led_get(r, i, C_NAME),
                                        .queue = led_get(r, i, C_QUEUE),
                                        .type = led_get(r, i, C_TYPE),
                                        .key_prefix = led_get(r, i, C_PREFIX),
                                        .max = (int)led_get_int(r, i, C_RUNNING),
                                        .rate = (int)led_get_int(r, i, C_RATE),
                                        .per_us = led_get_int(r, i, C_PER),
                                        .burst = (int)led_get_int(r, i, C_BURST) } };
        CHECK(it->number > 0 && it->limit.name.len && (it->limit.max > 0 || it->limit.rate > 0));
        CHECK(it->limit.max >= 0 && it->limit.max <= LIMIT_MAX && it->limit.rate >= 0);
        CHECK(!it->limit.rate || (it->limit.per_us > 0 && it->limit.burst > 0));
        CHECK(i == 0 || bytes_cmp(it[-1].limit.name, it->limit.name) < 0);
    }
    return PAWL_OK;
}

static size_t text_len(const struct limit *l)
{
    return l->name.len + l->queue.len + l->type.len + l->key_prefix.len;
}

static char *put(char *at, struct bytes *b)
{
    if (!b->data)
        return at;
    memcpy(at, b->data, b->len);
    b->data = at;
    return at + b->len;
}

/* Copy them into memory that outlives the transaction. */
static struct rules *rules_keep(const struct rule *v, size_t n, int64_t rev)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += text_len(&v[i].limit);
    struct rules *out = mem_alloc(sizeof *out + n * sizeof *v + len);
    if (!out)
        return NULL;
    out->rev = rev;
    out->n = n;
    char *at = (char *)(out->v + n);
    for (size_t i = 0; i < n; i++) {
        struct limit *l = &out->v[i].limit;
        out->v[i] = v[i];
        at = put(put(put(put(at, &l->name), &l->queue), &l->type), &l->key_prefix);
    }
    return out;
}

enum pawl_status limit_gates_read(struct ledger *d, int64_t rev, void **memory,
                                  struct pawl_err *err)
{
    struct rules *old = *memory;
    struct rule *v;
    size_t n;
    if (old && old->rev == rev)
        return PAWL_OK;
    enum pawl_status st = rules_query(d, &v, &n, err);
    struct rules *now = st == PAWL_OK ? rules_keep(v, n, rev) : NULL;
    if (st == PAWL_OK && !now)
        return err_no_memory(err, "limits");
    if (st != PAWL_OK)
        return st;
    mem_free(old);
    *memory = now;
    return PAWL_OK;
}

void limit_gates_free(void *memory)
{
    mem_free(memory);
}

static bool is_or_any(struct bytes want, struct bytes it)
{
    return !want.data || bytes_eq(want, it);
}

/* Is the number in a list like "3,17"? */
static bool gate_names(struct bytes gate, int64_t number)
{
    int64_t n = 0;
    for (size_t i = 0; i <= gate.len; i++) {
        bool digit = i < gate.len && gate.data[i] >= '0' && gate.data[i] <= '9';
        if (!digit && n == number)
            return true;
        n = digit ? n * 10 + (gate.data[i] - '0') : 0;
    }
    return false;
}

bool rule_holds(const struct rule *r, const struct gated_lane *lane)
{
    return is_or_any(r->limit.queue, lane->queue) && is_or_any(r->limit.type, lane->type) &&
           (!r->limit.key_prefix.data || gate_names(lane->gate, r->number));
}

bool limit_gated(const void *memory, const struct gated_lane *lane)
{
    const struct rules *all = memory;
    for (size_t i = 0; i < all->n; i++)
        if (rule_holds(&all->v[i], lane))
            return true;
    return false;
}

struct bytes limit_gate_of(const void *memory, struct arena *a, const struct gated_lane *lane,
                           struct bytes key)
{
    const struct rules *all = memory;
    struct bytes out = BYTES("");
    /* By name, not by number: every handle that knows these rules writes the same text. */
    for (size_t i = 0; i < all->n && out.data; i++) {
        const struct rule *r = &all->v[i];
        const struct limit *l = &r->limit;
        if (!l->key_prefix.data || !limit_has_key(l, key) || !is_or_any(l->queue, lane->queue) ||
            !is_or_any(l->type, lane->type))
            continue;
        out = bytes_of(arena_printf(a, "%.*s%s%lld", BYTES_ARG(out), out.len ? "," : "",
                                    (long long)r->number));
    }
    return out;
}

/* ---- Slots and rates that a claim may use ---------------------------------------------------- */

/* The rate of a rule in this transaction. */
struct bucket {
    struct bucket *next;
    int64_t number, used_ns;
    bool locked;
};
/* What a reader found of a rule. */
struct seen {
    struct seen *next;
    int64_t number;
    bool shut;
};
struct memory {
    struct bucket *buckets;
    struct seen *seen;
};

/* What a pass has of one rule. */
struct share {
    const struct rule *rule;
    int64_t *slots; /* NULL: it has no max */
    struct bucket *bucket;
};
struct shares {
    size_t n;
    struct share v[];
};

static void next_by(struct gate_pass *p, int64_t at_us)
{
    p->next_us = p->next_us ? MIN(p->next_us, at_us) : at_us;
}

/* Lock up to p->n free slots of the rule. */
static enum pawl_status slots_ask(struct ledger *d, struct share *s, struct gate_pass *p,
                                  struct pawl_err *err)
{
    struct led_params q = { 0 };
    struct led_rows *r;
    led_int(&q, s->rule->number);
    led_int(&q, (int64_t)p->n);
    enum pawl_status st = feature_query(d, SQL_SLOT_FREE, &q, &r, err);
    if (st != PAWL_OK)
        return st;
    CHECK((size_t)r->n <= p->n);
    s->slots = arena_alloc(feature_arena(d), ((size_t)r->n + 1) * sizeof *s->slots);
    if (!s->slots)
        return err_no_memory(err, "a claim");
    for (int i = 0; i < r->n; i++)
        s->slots[i] = led_get_int(r, i, 0);
    p->n = (size_t)r->n;
    if (r->n)
        return PAWL_OK;
    q.n--;
    st = feature_query(d, SQL_SLOT_ANY, &q, &r, err);
    if (st == PAWL_OK && r->n)
        next_by(p, feature_now(d) + LOCKED_US);
    return st;
}

static enum pawl_status bucket_lock(struct ledger *d, int64_t number, struct bucket **out,
                                    struct pawl_err *err)
{
    struct memory *m = feature_memory(d, &feature_limit, sizeof *m);
    struct led_params p = { 0 };
    struct led_rows *r;
    struct bucket *b = m ? m->buckets : NULL;
    while (b && b->number != number)
        b = b->next;
    *out = b;
    if (b)
        return PAWL_OK;
    b = m ? arena_zalloc(feature_arena(d), 1, sizeof *b) : NULL;
    if (!b)
        return err_no_memory(err, "a claim");
    led_int(&p, number);
    enum pawl_status st = feature_query(d, SQL_BUCKET_LOCK, &p, &r, err);
    if (st != PAWL_OK)
        return st;
    *b = (struct bucket){ m->buckets, number, r->n ? led_get_int(r, 0, 0) : 0, r->n > 0 };
    m->buckets = *out = b;
    return PAWL_OK;
}

/* How many of p->n may begin by the rate of the rule. */
static enum pawl_status rate_ask(struct ledger *d, struct share *s, struct gate_pass *p,
                                 struct pawl_err *err)
{
    int64_t next_us = 0;
    enum pawl_status st = bucket_lock(d, s->rule->number, &s->bucket, err);
    if (st != PAWL_OK)
        return st;
    int64_t n = 0;
    if (s->bucket->locked)
        n = limit_tokens(&s->rule->limit, s->bucket->used_ns, feature_now(d), &next_us);
    else
        next_us = feature_now(d) + LOCKED_US;
    p->n = MIN(p->n, (size_t)n);
    if (next_us)
        next_by(p, next_us);
    return PAWL_OK;
}

enum pawl_status limit_ask(struct ledger *d, void *memory, struct gate_pass *p,
                           struct pawl_err *err)
{
    const struct rules *all = memory;
    struct shares *some = arena_alloc(feature_arena(d), sizeof *some + all->n * sizeof some->v[0]);
    enum pawl_status st = PAWL_OK;
    if (!some)
        return err_no_memory(err, "a claim");
    some->n = 0;
    /* Rates first: without a token no slot has to be locked. */
    for (size_t i = 0; i < all->n; i++)
        if (rule_holds(&all->v[i], &p->lane))
            some->v[some->n++] = (struct share){ .rule = &all->v[i] };
    for (size_t i = 0; i < some->n && st == PAWL_OK && p->n; i++)
        if (some->v[i].rule->limit.rate)
            st = rate_ask(d, &some->v[i], p, err);
    for (size_t i = 0; i < some->n && st == PAWL_OK && p->n; i++)
        if (some->v[i].rule->limit.max)
            st = slots_ask(d, &some->v[i], p, err);
    p->of = some;
    return st;
}

/* ---- For readers ----------------------------------------------------------------------------- */

/* Has the rule no slot left, or no token? */
static enum pawl_status rule_shut(struct ledger *d, const struct rule *r, bool *out,
                                  struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *rows;
    int64_t next_us;
    enum pawl_status st = PAWL_OK;
    *out = false;
    led_int(&p, r->number);
    if (r->limit.max)
        st = feature_query(d, SQL_SLOT_ANY, &p, &rows, err);
    *out = st == PAWL_OK && r->limit.max && rows->n == 0;
    if (st != PAWL_OK || *out || !r->limit.rate)
        return st;
    st = feature_query(d, SQL_BUCKET_ANY, &p, &rows, err);
    *out = st == PAWL_OK && rows->n &&
           limit_tokens(&r->limit, led_get_int(rows, 0, 0), feature_now(d), &next_us) == 0;
    return st;
}

/* A page of calls has few lanes: each rule is looked at once. */
static enum pawl_status rule_seen(struct ledger *d, const struct rule *r, bool *out,
                                  struct pawl_err *err)
{
    struct memory *m = feature_memory(d, &feature_limit, sizeof *m);
    struct seen *s = m ? m->seen : NULL;
    while (s && s->number != r->number)
        s = s->next;
    if (s) {
        *out = s->shut;
        return PAWL_OK;
    }
    s = m ? arena_alloc(feature_arena(d), sizeof *s) : NULL;
    if (!s)
        return err_no_memory(err, "limits");
    enum pawl_status st = rule_shut(d, r, out, err);
    *s = (struct seen){ m->seen, r->number, *out };
    m->seen = s;
    return st;
}

enum pawl_status limit_shut(struct ledger *d, const void *memory, const struct gated_lane *lane,
                            bool *out, struct pawl_err *err)
{
    const struct rules *all = memory;
    enum pawl_status st = PAWL_OK;
    *out = false;
    for (size_t i = 0; i < all->n && st == PAWL_OK && !*out; i++)
        if (rule_holds(&all->v[i], lane))
            st = rule_seen(d, &all->v[i], out, err);
    return st;
}

/* ---- What a claim took ----------------------------------------------------------------------- */

#define I(x) ((union feature_value){ .i = (x) })

/* A row of a bucket is written once for each lane that uses it. */
static enum pawl_status bucket_put(struct ledger *d, const struct bucket *b, struct pawl_err *err)
{
    struct led_params p = { 0 };
    int64_t rows = 0;
    led_ints(d, &p, &b->number, 1);
    led_ints(d, &p, &b->used_ns, 1);
    enum pawl_status st = feature_run(d, SQL_BUCKET_PUT, &p, &rows, err);
    CHECK(st != PAWL_OK || rows == 1);
    return st;
}

enum pawl_status limit_took(struct ledger *d, const struct gate_pass *p, const int64_t *seqs,
                            size_t n, struct pawl_err *err)
{
    const struct shares *some = p->of;
    enum pawl_status st = PAWL_OK;
    CHECK(n > 0 && n <= p->n);
    for (size_t i = 0; i < some->n && st == PAWL_OK; i++) {
        const struct share *s = &some->v[i];
        for (size_t k = 0; s->slots && k < n && st == PAWL_OK; k++) {
            const union feature_value v[] = { I(s->rule->number), I(s->slots[k]), I(seqs[k]) };
            st = feature_row(d, SQL_SLOT_TAKE, "iii", v, FEATURE_EXACT, err);
        }
        if (s->bucket && st == PAWL_OK) {
            s->bucket->used_ns =
                limit_use(&s->rule->limit, s->bucket->used_ns, feature_now(d), (int64_t)n);
            st = bucket_put(d, s->bucket, err);
        }
    }
    return st;
}

/* ---- Calls that leave ------------------------------------------------------------------------ */

/* Columns of slot_of_call. */
enum { S_NUMBER, S_NO, S_SEQ, S_SURPLUS, S_LIMIT_HAS_SURPLUS };

static enum pawl_status slot_change(struct ledger *d, enum sql_name name, int64_t number,
                                    int64_t no, struct pawl_err *err)
{
    const union feature_value v[] = { I(number), I(no) };
    return feature_row(d, name, "ii", v, FEATURE_EXACT, err);
}

/* Other calls that leave have locked all surplus rows; how often to look again. */
#define TAKE_OVER_TRIES 10

/* The limit has more rows than it allows: this one, which is not surplus, goes instead of one that
 * is. A surplus row that another transaction has locked is waited for: should that transaction be
 * undone, its call still runs. */
static enum pawl_status take_over(struct ledger *d, int64_t number, bool *out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *r;
    enum pawl_status st = PAWL_OK;
    bool any = true;
    *out = false;
    led_int(&p, number);
    for (int i = 0; i < TAKE_OVER_TRIES && st == PAWL_OK && any && !*out; i++) {
        st = feature_query(d, SQL_SLOT_SURPLUS, &p, &r, err);
        *out = st == PAWL_OK && r->n;
        if (*out)
            return slot_change(d, SQL_SLOT_KEEP, number, led_get_int(r, 0, 0), err);
        /* The row that was waited for is gone: are there others? */
        if (st == PAWL_OK)
            st = feature_query(d, SQL_SLOT_SURPLUS_ANY, &p, &r, err);
        any = st == PAWL_OK && r->n;
    }
    return st == PAWL_OK && any ? feature_again(d, "a limit", err) : st;
}

/* Surplus rows go first: then those that are left are of calls that stay. */
static enum pawl_status slots_leave(struct ledger *d, const struct led_rows *r,
                                    struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (int i = 0; i < r->n && st == PAWL_OK; i++)
        if (led_get_int(r, i, S_SURPLUS))
            st = slot_change(d, SQL_SLOT_REMOVE, led_get_int(r, i, S_NUMBER),
                             led_get_int(r, i, S_NO), err);
    for (int i = 0; i < r->n && st == PAWL_OK; i++) {
        int64_t number = led_get_int(r, i, S_NUMBER), no = led_get_int(r, i, S_NO);
        bool over = false;
        CHECK(number > 0 && led_get_int(r, i, S_SEQ) > 0);
        if (led_get_int(r, i, S_SURPLUS))
            continue;
        if (led_get_int(r, i, S_LIMIT_HAS_SURPLUS))
            st = take_over(d, number, &over, err);
        if (st == PAWL_OK)
            st = slot_change(d, over ? SQL_SLOT_REMOVE : SQL_SLOT_LEAVE, number, no, err);
        if (!over)
            feature_brings(d);
    }
    return st;
}

static int compare_seqs(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum pawl_status limit_moved(struct ledger *d, const struct moved *v, size_t n,
                             struct pawl_err *err)
{
    int64_t *seqs = arena_alloc(feature_arena(d), (n + 1) * sizeof *seqs);
    struct led_params p = { 0 };
    struct led_rows *r;
    if (!seqs)
        return err_no_memory(err, "limits");
    for (size_t i = 0; i < n; i++)
        seqs[i] = v[i].seq;
    qsort(seqs, n, sizeof *seqs, compare_seqs);
    led_ints(d, &p, seqs, n);
    enum pawl_status st = feature_query(d, SQL_SLOT_OF_CALL, &p, &r, err);
    return st == PAWL_OK ? slots_leave(d, r, err) : st;
}
