/*
 * holder.c - who holds a call, and which calls of a lease have begun (holder.h).
 *
 * The holder of one call looks at the outcomes of its run only, as long as the lease names no more
 * calls than its owner runs at once. Of a longer lease every call is looked at, once a transaction.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/holder.h"

#include "base/limits.h"
#include "store/sqlite/read.h"

/* Calls of the leases that are kept at a time: a page of a list looks at fewer. */
#define LOOKED_CALLS_MAX (64 << 10)

/* ---- Leases that were looked at -------------------------------------------------------------- */

static void looks_forget(struct lite_looks *k)
{
    arena_reset(&k->a);
    k->first = NULL;
    k->n_calls = 0;
}

/* Forget what may no longer be true. */
static void looks_check(struct lite *c)
{
    struct lite_looks *k = &c->looks;
    int changes = sqlite3_total_changes(c->db);
    if (k->tx == c->tx && k->changes == changes)
        return;
    looks_forget(k);
    k->tx = c->tx;
    k->changes = changes;
}

static struct lite_looked *looked_at(const struct lite *c, int64_t seq, struct held **out)
{
    for (struct lite_looked *l = c->looks.first; l; l = l->next)
        if ((*out = lease_find(l->held, l->n, seq)))
            return l;
    return NULL;
}

static bool known(const struct lite *c, struct bytes token)
{
    for (const struct lite_looked *l = c->looks.first; l; l = l->next)
        if (bytes_eq(token, (struct bytes){ (const char *)l->token.b, sizeof l->token.b }))
            return true;
    return false;
}

/* Columns of lease_around. */
enum { AROUND_OWNER, AROUND_CLAIMED, AROUND_HELD, AROUND_TOKEN, AROUND_WIDTH };

static enum pawl_status looked_add(struct lite *c, sqlite3_stmt *q, struct pawl_err *err)
{
    struct lite_looks *k = &c->looks;
    struct bytes token = lite_column(q, AROUND_TOKEN);
    struct lite_looked *l = arena_zalloc(&k->a, 1, sizeof *l);
    if (!l)
        return err_no_memory(err, "a lease");
    if (token.len != sizeof l->token.b)
        return err_set(err, PAWL_BROKEN, "a lease has a token of %zu bytes", token.len);
    memcpy(l->token.b, token.data, sizeof l->token.b);
    l->owner = arena_copy(&k->a, lite_column(q, AROUND_OWNER));
    l->claimed_us = lite_int(q, AROUND_CLAIMED);
    l->width = (int)lite_int(q, AROUND_WIDTH);
    enum pawl_status st = lease_unpack(&k->a, lite_column(q, AROUND_HELD), &l->held, &l->n, err);
    if (st != PAWL_OK || k->a.failed)
        return st == PAWL_OK ? err_no_memory(err, "a lease") : st;
    l->next = k->first;
    k->first = l;
    k->n_calls += l->n;
    return PAWL_OK;
}

/* The lease that names a call: those whose range covers the seq are opened one by one. */
static enum pawl_status lease_of(struct lite *c, int64_t seq, struct lite_looked **out,
                                 struct held **out_held, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    /* A group may have handed it back and claimed it again: two rows would name it. */
    enum pawl_status st = lite_leases_write(c, err);
    if (st != PAWL_OK)
        return st;
    looks_check(c);
    if ((*out = looked_at(c, seq, out_held)))
        return PAWL_OK;
    if (c->looks.n_calls > LOOKED_CALLS_MAX)
        looks_forget(&c->looks);
    st = lite_query(c, SQL_LEASE_AROUND, ARGS(INT(seq)), &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row) {
        if (known(c, lite_column(q, AROUND_TOKEN)))
            continue;
        st = looked_add(c, q, err);
        if (st == PAWL_OK && (*out = looked_at(c, seq, out_held)))
            return PAWL_OK;
    }
    if (st == PAWL_OK)
        st = err_set(err, PAWL_BROKEN, "call %lld is neither pending nor held nor ended",
                     (long long)seq);
    return st;
}

/* ---- Which calls have begun ------------------------------------------------------------------ */

static enum pawl_status is_open(struct lite *c, int64_t seq, bool *out, struct pawl_err *err)
{
    int64_t ended = 0;
    enum pawl_status st = lite_number(c, SQL_LEASE_HELD_ENDED, ARGS(INT(seq)), 0, &ended, err);
    *out = !ended;
    return st;
}

/* begun[i]: it is open, and no open call stands before it in its run. */
static enum pawl_status firsts(struct arena *a, struct lite_looked *l, struct pawl_err *err)
{
    int64_t *lowest = arena_zalloc(a, CLAIM_MAX + 1, sizeof *lowest); /* place of an open call */
    if (!lowest)
        return err_no_memory(err, "a lease");
    for (size_t i = 0; i < l->n; i++) {
        const struct held *h = &l->held[i];
        if (h->key > CLAIM_MAX)
            return err_set(err, PAWL_BROKEN, "a stored lease has a key of no call");
        if (l->open[i] && h->key && (!lowest[h->key] || h->pos < lowest[h->key]))
            lowest[h->key] = h->pos;
    }
    for (size_t i = 0; i < l->n; i++)
        l->begun[i] = l->open[i] && (!l->held[i].key || lowest[l->held[i].key] == l->held[i].pos);
    return PAWL_OK;
}

enum pawl_status lite_looked_begun(struct lite *c, struct arena *a, struct lite_looked *l,
                                   struct pawl_err *err)
{
    bool *open = arena_zalloc(a, l->n + 1, sizeof *open);
    bool *begun = arena_zalloc(a, l->n + 1, sizeof *begun);
    enum pawl_status st = open && begun ? PAWL_OK : err_no_memory(err, "a lease");
    for (size_t i = 0; i < l->n && st == PAWL_OK; i++)
        st = is_open(c, l->held[i].seq, &open[i], err);
    if (st != PAWL_OK)
        return st;
    l->open = open;
    l->begun = begun;
    st = firsts(a, l, err);
    if (st == PAWL_OK)
        lease_begun(l->held, l->n, l->width, l->begun);
    return st;
}

/* How many of its run stand before it without an outcome, and the first of these, or itself. */
static enum pawl_status run_before(struct lite *c, const struct lite_looked *l,
                                   const struct held *h, int64_t *out, const struct held **first,
                                   struct pawl_err *err)
{
    *out = 0;
    *first = h;
    for (size_t i = 0; h->key && i < l->n; i++) {
        const struct held *at = &l->held[i];
        bool open;
        if (at->key != h->key || at->pos >= h->pos)
            continue;
        enum pawl_status st = is_open(c, at->seq, &open, err);
        if (st != PAWL_OK)
            return st;
        *out += open;
        if (open && at->pos < (*first)->pos)
            *first = at;
    }
    return PAWL_OK;
}

enum pawl_status lite_holder(struct lite *c, struct lite_shelf *to, int64_t seq,
                             struct lite_holder *out, struct pawl_err *err)
{
    struct lite_looked *l;
    struct held *h;
    const struct held *first = NULL;
    enum pawl_status st = lease_of(c, seq, &l, &h, err);
    if (st != PAWL_OK)
        return st;
    *out = (struct lite_holder){ .owner = arena_copy(to->a, l->owner),
                                 .claimed_us = l->claimed_us,
                                 .held = *h };
    st = run_before(c, l, h, &out->before, &first, err);
    bool all = !l->width || l->n <= (size_t)l->width; /* whatever is first has begun */
    if (st == PAWL_OK && !all && !l->begun)
        st = lite_looked_begun(c, &c->looks.a, l, err);
    if (st != PAWL_OK)
        return st;
    bool runs = all || l->begun[first - l->held];
    out->begun = runs && !out->before;
    out->position = h->key ? out->before + !runs : 0;
    return PAWL_OK;
}
