/*
 * lease.c - leases, and what this connection remembers of them.
 *
 * A finish needs the lease's list and who of it has ended. Reading that each time would cost as
 * much as the finish, so the connection that claimed remembers it. The rule that keeps memory
 * honest: whoever changes who is left on a list it did not remember (another process finishes a
 * call of ours) writes the list anew, which raises rev; memory with another rev is thrown away. So
 * one look at rev, once a group, is the fence and the check in one. Lists are written once a group,
 * at its end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "store/sqlite/read.h"

static size_t bucket_of(const struct token *t)
{
    return t->b[0]; /* tokens are dice */
}

static struct lite_lease *remembered(struct lite *c, const struct token *token)
{
    for (struct lite_lease *l = c->leases[bucket_of(token)]; l; l = l->next)
        if (token_eq(l->token, *token))
            return l;
    return NULL;
}

static void forget(struct lite *c, struct lite_lease *l)
{
    struct lite_lease **at = &c->leases[bucket_of(&l->token)];
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    c->n_leases--;
    mem_free(l);
}

void lite_leases_end(struct lite *c)
{
    for (size_t i = 0; i < LEASE_BUCKETS; i++)
        while (c->leases[i])
            forget(c, c->leases[i]);
}

void lite_leases_after(struct lite *c, bool undone)
{
    for (size_t i = 0; i < LEASE_BUCKETS && c->n_leases; i++)
        for (struct lite_lease *l = c->leases[i], *next; l; l = next) {
            next = l->next;
            /* Read and not taken over: whoever remembers it as well may end calls of it untold. */
            if (l->rewrite || (l->touched && undone))
                forget(c, l);
            else
                l->touched = false;
        }
}

/* ---- Remembering ----------------------------------------------------------------------------- */

/* By key, then in the order of its run. */
static int compare_runs(const void *a, const void *b, void *held)
{
    const struct held *x = (const struct held *)held + *(const int *)a;
    const struct held *y = (const struct held *)held + *(const int *)b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->pos > y->pos) - (x->pos < y->pos);
}

static void runs_link(struct lite_lease *l)
{
    int order[CLAIM_MAX];
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        l->run[i] = (struct lite_link){ -1, -1 };
        if (l->held[i].key)
            order[n++] = (int)i;
    }
    qsort_r(order, n, sizeof *order, compare_runs, l->held);
    for (size_t i = 1; i < n; i++) {
        if (l->held[order[i]].key != l->held[order[i - 1]].key)
            continue;
        l->run[order[i]].before = order[i - 1];
        l->run[order[i - 1]].behind = order[i];
    }
}

/* One block for everything; NULL without memory. */
static struct lite_lease *lease_new(const struct token *token, struct bytes owner,
                                    const struct lite_hold *h)
{
    size_t n = h->n, names = owner.len;
    size_t per_call = sizeof(struct held) + sizeof(int64_t) + sizeof(struct lite_link) + 1;
    for (size_t i = 0; i < h->n_keys; i++)
        names += h->keys[i].len;
    struct lite_lease *l =
        mem_zalloc(sizeof *l + n * per_call + h->n_keys * sizeof(struct bytes) + names);
    if (!l)
        return NULL;
    l->token = *token;
    l->n = l->named = l->left = n;
    l->n_keys = h->n_keys;
    l->held = (struct held *)(l + 1);
    l->keep_us = (int64_t *)(l->held + n);
    l->keys = h->n_keys ? (struct bytes *)(l->keep_us + n) : NULL;
    l->run = (struct lite_link *)((struct bytes *)(l->keep_us + n) + h->n_keys);
    l->state = (unsigned char *)(l->run + n);
    char *name = (char *)(l->state + n);
    memcpy(l->held, h->held, n * sizeof *l->held);
    memcpy(name, owner.data, owner.len);
    l->owner = (struct bytes){ name, owner.len };
    name += owner.len;
    for (size_t i = 0; i < h->n_keys; i++) {
        memcpy(name, h->keys[i].data, h->keys[i].len);
        l->keys[i] = (struct bytes){ name, h->keys[i].len };
        name += h->keys[i].len;
    }
    runs_link(l);
    return l;
}

/* Make room by forgetting whoever was not asked for longest. What the running transaction has
 * touched is more than memory and stays. */
static void make_room(struct lite *c)
{
    struct lite_lease *oldest = NULL;
    if (c->n_leases < LEASES_MAX)
        return;
    for (size_t i = 0; i < LEASE_BUCKETS; i++)
        for (struct lite_lease *l = c->leases[i]; l; l = l->next)
            if (!l->touched && l->read_tx != c->tx && (!oldest || l->used < oldest->used))
                oldest = l;
    if (oldest)
        forget(c, oldest);
}

static void remember(struct lite *c, struct lite_lease *l)
{
    make_room(c);
    struct lite_lease **at = &c->leases[bucket_of(&l->token)];
    l->next = *at;
    *at = l;
    c->n_leases++;
    l->read_tx = c->tx;
    l->used = ++c->lease_clock;
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* Which calls of a list that we read have ended meanwhile. */
static enum pawl_status ended_read(struct lite *c, struct lite_lease *l, struct pawl_err *err)
{
    for (size_t i = 0; i < l->n; i++) {
        int64_t ended;
        enum pawl_status st =
            lite_number(c, SQL_LEASE_HELD_ENDED, ARGS(INT(l->held[i].seq)), 0, &ended, err);
        if (st != PAWL_OK)
            return st;
        l->keep_us[i] = -1;
        l->state[i] = ended ? HELD_ENDED : HELD_OPEN;
        l->left -= ended != 0;
    }
    return PAWL_OK;
}

static enum pawl_status lease_row(struct lite *c, const struct token *token, sqlite3_stmt *q,
                                  struct lite_lease **out, struct pawl_err *err)
{
    struct held *held;
    size_t n;
    arena_reset(&c->unpack);
    enum pawl_status st = lease_unpack(&c->unpack, lite_column(q, 4), &held, &n, err);
    if (st != PAWL_OK)
        return st;
    struct lite_lease *l =
        lease_new(token, lite_column(q, 0), &(struct lite_hold){ .held = held, .n = n });
    if (!l)
        return err_no_memory(err, "a lease");
    l->claimed_us = lite_int(q, 1);
    l->until_us = lite_int(q, 2);
    l->rev = lite_int(q, 3);
    l->width = (int)lite_int(q, 5);
    l->by_worker = lite_int(q, 6) != 0;
    *out = l;
    return PAWL_OK;
}

static enum pawl_status lease_load(struct lite *c, const struct token *token,
                                   struct lite_lease **out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    struct lite_lease *l = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_LEASE_READ, ARGS(TOKEN(token)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    if (st == PAWL_OK && row)
        st = lease_row(c, token, q, &l, err);
    if (st == PAWL_OK && l)
        st = ended_read(c, l, err);
    if (st != PAWL_OK) {
        mem_free(l);
        return st;
    }
    if (l) {
        /* Read, not claimed: another connection may remember this list, and our first change must
         * tell it. */
        l->rewrite = true;
        remember(c, l);
    }
    *out = l;
    return PAWL_OK;
}

enum pawl_status lite_lease_get(struct lite *c, const struct token *token, struct lite_lease **out,
                                struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    struct lite_lease *l = remembered(c, token);
    bool row = false;
    *out = l;
    if (l && l->read_tx == c->tx)
        return PAWL_OK;
    if (!l)
        return lease_load(c, token, out, err);
    enum pawl_status st = lite_query(c, SQL_LEASE_REV, ARGS(TOKEN(token)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    if (st != PAWL_OK)
        return st;
    if (row && lite_int(q, 0) == l->rev) {
        l->until_us = lite_int(q, 1);
        l->read_tx = c->tx;
        l->used = ++c->lease_clock;
        return PAWL_OK;
    }
    forget(c, l);
    *out = NULL;
    return row ? lease_load(c, token, out, err) : PAWL_OK;
}

enum pawl_status lite_lease_key(struct lite *c, const struct lite_lease *l, size_t i,
                                struct bytes *out, struct pawl_err *err)
{
    struct lite_shelf to = { .a = &c->scratch };
    const struct held *h = &l->held[i];
    struct call call;
    *out = BYTES_NONE;
    if (!h->key || l->keys) {
        if (h->key)
            *out = l->keys[h->key - 1];
        return PAWL_OK;
    }
    enum pawl_status st = lite_asked(c, &to, h->seq, false, &call, err);
    if (st == PAWL_OK && !call.spec.key.data)
        st = err_set(err, PAWL_BROKEN, "call %lld is held for a key it does not have",
                     (long long)h->seq);
    *out = call.spec.key;
    return st;
}

ssize_t lite_lease_find(const struct lite_lease *l, int64_t seq)
{
    struct held *h = lease_find(l->held, l->n, seq);
    return h ? h - l->held : -1;
}

void lite_lease_begun(const struct lite_lease *l, bool *out)
{
    for (size_t i = 0; i < l->n; i++) {
        int before = l->run[i].before;
        out[i] = l->state[i] == HELD_OPEN && (before < 0 || l->state[before] != HELD_OPEN);
    }
    lease_begun(l->held, l->n, l->width, out);
}

/* ---- Changing -------------------------------------------------------------------------------- */

/* Where rev begins. A token may be claimed under again when its lease is gone; memory of the former
 * lease must not fit the new one. SQLite's dice, not the world's: this is nobody's decision. */
static int64_t first_rev(void)
{
    uint32_t dice;
    sqlite3_randomness(sizeof dice, &dice);
    return (int64_t)dice << 20;
}

enum pawl_status lite_lease_make(struct lite *c, const struct claim *q, const struct lite_hold *h,
                                 struct pawl_err *err)
{
    const struct held *held = h->held;
    size_t n = h->n;
    struct bytes packed;
    int64_t rev = first_rev();
    enum pawl_status st = lease_pack(&c->scratch, held, n, &packed, err);
    if (st == PAWL_OK)
        st = lite_run(c, SQL_LEASE_ADD,
                      ARGS(TOKEN(&q->token), TEXT(q->node), TEXT(q->boot), TEXT(q->worker),
                           INT(c->now_us), INT_OR_NULL(q->until_us), INT(rev), INT(held[0].seq),
                           INT(held[n - 1].seq), BLOB(packed), INT(q->width)),
                      NULL, err);
    if (st != PAWL_OK)
        return st;
    struct lite_lease *l = lease_new(&q->token, q->worker.data ? q->worker : q->node, h);
    if (!l)
        return PAWL_OK; /* Remembering is a convenience; a finish can read the row. */
    memcpy(l->keep_us, h->keep_us, n * sizeof *h->keep_us);
    l->rev = rev;
    l->width = q->width;
    l->claimed_us = c->now_us;
    l->until_us = q->until_us;
    l->by_worker = q->worker.data != NULL;
    l->touched = true;
    remember(c, l);
    return PAWL_OK;
}

enum pawl_status lite_lease_drop(struct lite *c, struct lite_lease *taken, struct pawl_err *err)
{
    struct token token = taken->token;
    int changed = 0;
    forget(c, taken);
    enum pawl_status st = lite_run(c, SQL_LEASE_REMOVE, ARGS(TOKEN(&token)), &changed, err);
    if (st == PAWL_OK && changed != 1)
        st = err_set(err, PAWL_BROKEN, "a lease vanished while we held it");
    return st;
}

enum pawl_status lite_lease_done(struct lite *c, struct lite_lease **l, size_t i, bool off,
                                 struct pawl_err *err)
{
    struct lite_lease *it = *l;
    CHECK(i < it->n && it->state[i] == HELD_OPEN && it->left > 0);
    it->state[i] = off ? HELD_OFF : HELD_ENDED;
    it->left--;
    it->named -= off;
    it->touched = true;
    it->rewrite = it->rewrite || off;
    if (it->left > 0)
        return PAWL_OK;
    *l = NULL;
    return lite_lease_drop(c, it, err);
}

static enum pawl_status list_write(struct lite *c, struct lite_lease *l, struct pawl_err *err)
{
    struct held *held = arena_alloc(&c->scratch, l->n * sizeof *held);
    struct bytes packed;
    size_t n = 0;
    if (!held)
        return err_no_memory(err, "a lease");
    for (size_t i = 0; i < l->n; i++)
        if (l->state[i] != HELD_OFF)
            held[n++] = l->held[i];
    CHECK(n == l->named && n >= l->left);
    l->rewrite = false;
    if (n == 0) /* nobody is left on it, though nobody of ours was the last: it goes all the same */
        return lite_run(c, SQL_LEASE_REMOVE, ARGS(TOKEN(&l->token)), NULL, err);
    enum pawl_status st = lease_pack(&c->scratch, held, n, &packed, err);
    if (st == PAWL_OK)
        st = lite_run(c, SQL_LEASE_REWRITE,
                      ARGS(TOKEN(&l->token), INT(held[0].seq), INT(held[n - 1].seq), BLOB(packed)),
                      NULL, err);
    l->rev++;
    return st;
}

enum pawl_status lite_leases_write(struct lite *c, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < LEASE_BUCKETS && c->n_leases; i++)
        for (struct lite_lease *l = c->leases[i]; l && st == PAWL_OK; l = l->next)
            if (l->touched && l->rewrite)
                st = list_write(c, l, err);
    return st;
}

enum pawl_status lite_lease_leave(struct lite *c, struct bytes token, int64_t seq,
                                  struct pawl_err *err)
{
    struct token t;
    struct lite_lease *l;
    if (token.len != sizeof t.b)
        return PAWL_OK;
    memcpy(t.b, token.data, sizeof t.b);
    enum pawl_status st = lite_lease_get(c, &t, &l, err);
    ssize_t i = st == PAWL_OK && l ? lite_lease_find(l, seq) : -1;
    if (i < 0 || l->state[i] != HELD_ENDED)
        return st;
    l->state[i] = HELD_OFF;
    l->named--;
    l->touched = l->rewrite = true;
    return PAWL_OK;
}
