/*
 * lease_cache.c - what a handle remembers of the leases it gave out, so that a finish need not read
 * it.
 *
 * What the end of an attempt needs of its call does not change while a lease names it. Which of the
 * calls have ended does change, and that a call has become a flow. So a handle that ends a call of
 * a lease that it does not remember, in this process or another, rewrites the lease
 * (led_lease_done), which changes its `rev`, and so does a step of a flow: what is remembered is
 * valid only while `rev` is the one that this handle has read or written. An entry may be dropped
 * at any time, and is dropped after any error or if the cache grows too long.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "store/ledger/cache.h"

/* How many calls a handle remembers, in all its leases. */
#define CACHE_MAX (32 << 10)
/* The largest entry whose memory is used again. A lease of 1,000 calls has some 300 KiB, which
 * malloc would return to the kernel and fault in again with every claim. Not under
 * AddressSanitizer, which finds uses of freed memory only. */
#if ASAN
#define SPARE_LEN_MAX 0
#else
#define SPARE_LEN_MAX (1 << 20)
#endif
/* How many calls are looked at for the id of an item. */
#define ID_FIND_MAX 8
#ifdef PAWL_TEST
size_t led_cache_max;
#endif

static size_t cache_max(void)
{
#ifdef PAWL_TEST
    if (led_cache_max)
        return led_cache_max;
#endif
    return CACHE_MAX;
}

static struct led_cached_lease **slot(struct ledger *c, const struct token *token)
{
    struct led_cached_lease **at =
        &c->lease_cache.slots[led_hash(token->b, sizeof token->b) % LED_CACHE_SLOTS];
    while (*at && !token_eq((*at)->token, *token))
        at = &(*at)->same;
    return at;
}

static void drop(struct ledger *c, struct led_cached_lease *k)
{
    if (!k)
        return;
    *slot(c, &k->token) = k->same;
    *(k->older ? &k->older->newer : &c->lease_cache.oldest) = k->newer;
    *(k->newer ? &k->newer->older : &c->lease_cache.newest) = k->older;
    c->lease_cache.n -= k->n;
    if (k->size > SPARE_LEN_MAX) {
        mem_free(k);
        return;
    }
    mem_free(c->lease_cache.spare);
    c->lease_cache.spare = k;
}

/* Memory for an entry: that of the last one that was dropped, if it fits. */
static struct led_cached_lease *entry_make(struct ledger *c, size_t size)
{
    struct led_cached_lease *k = c->lease_cache.spare;
    if (k && k->size >= size && k->size / 4 <= size) {
        c->lease_cache.spare = NULL;
        return k;
    }
    k = mem_alloc(size);
    if (k)
        k->size = size;
    return k;
}

static void enter(struct ledger *c, struct led_cached_lease *k)
{
    drop(c, *slot(c, &k->token)); /* an earlier lease with the same token */
    *slot(c, &k->token) = k;
    k->same = NULL;
    k->older = c->lease_cache.newest;
    k->newer = NULL;
    *(k->older ? &k->older->newer : &c->lease_cache.oldest) = k;
    c->lease_cache.newest = k;
    c->lease_cache.n += k->n;
    while (c->lease_cache.n > cache_max())
        drop(c, c->lease_cache.oldest);
}

struct led_cached_lease *led_cache_find(struct ledger *c, const struct led_lease *l)
{
    struct led_cached_lease *k = *slot(c, &l->token);
    CHECK(!k || k->n > 0);
    bool same = k && k->rev == l->rev && k->claimed_us == l->claimed_us && k->n == l->n;
    for (size_t i = 0; same && i < k->n; i++)
        same = k->v[i].seq == l->held[i].seq;
    if (!same)
        drop(c, k);
    return same ? k : NULL;
}

void led_cache_ask(struct ledger *c, struct led_batch *b)
{
    struct led_params p = { 0 };
    int64_t low = INT64_MAX, high = 0;
    for (const struct led_lease *l = c->tx->first_lease; l; l = l->newer) {
        const struct led_cached_lease *k = *slot(c, &l->token);
        if (!k)
            continue;
        low = MIN(low, k->v[0].seq);
        high = MAX(high, k->v[k->n - 1].seq);
    }
    c->tx->ahead.asked_cancel_requests = true;
    if (!high)
        return;
    led_int(&p, low);
    led_int(&p, high);
    led_batch_ask(b, SQL_LEASE_CANCEL_REQUESTS, &p, &c->tx->ahead.cancel_requests);
}

static const struct led_cached_call *call_find(const struct led_cached_lease *k, int64_t seq)
{
    size_t low = 0, high = k->n;
    while (low < high) {
        size_t at = low + (high - low) / 2;
        if (k->v[at].seq == seq)
            return &k->v[at];
        if (k->v[at].seq < seq)
            low = at + 1;
        else
            high = at;
    }
    return NULL;
}

/* The call with this id, looked for from the call behind the last one that was found: items of a
 * finish mostly come in the order of their lease. */
static const struct led_cached_call *id_find(const struct led_cached_lease *k, struct bytes id,
                                             size_t *at)
{
    for (size_t i = *at; i < k->n && i < *at + ID_FIND_MAX; i++)
        if (bytes_eq(k->v[i].spec.id, id)) {
            *at = i + 1;
            return &k->v[i];
        }
    return NULL;
}

int64_t led_cache_seq(struct ledger *c, const struct token *token, struct bytes id, size_t *at)
{
    const struct led_cached_lease *k = *slot(c, token);
    const struct led_cached_call *it = k ? id_find(k, id, at) : NULL;
    CHECK(!it || it->seq > 0);
    return it ? it->seq : 0;
}

bool led_cache_keys(struct ledger *c, const struct finish *q, struct bytes *out, size_t *out_n)
{
    const struct led_cached_lease *k = *slot(c, &q->token);
    size_t at = 0;
    *out_n = 0;
    for (size_t i = 0; i < q->n; i++) {
        const struct finish_item *f = &q->v[i];
        const struct led_cached_call *it = !k       ? NULL
                                           : f->seq ? call_find(k, f->seq)
                                                    : id_find(k, f->id, &at);
        if (!it)
            return false;
        if (it->ended || !it->spec.key.data)
            continue;
        out[*out_n] = arena_copy(&c->scratch, it->spec.key); /* k may be dropped before the end */
        if (!out[(*out_n)++].data)
            return false;
    }
    return true;
}

static char *put(char *to, struct bytes *b)
{
    if (!b->data)
        return to;
    memcpy(to, b->data, b->len);
    b->data = to;
    return to + b->len;
}

/* Remember a lease that was made in the transaction that has just been committed. */
static void keep(struct ledger *c, const struct led_lease *l)
{
    size_t len = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct led_call *it = led_call_find(c, l->held[i].seq);
        if (!it || it->partial || it->lean || l->state[i] != HELD_OPEN)
            return;
        len += it->spec.id.len + it->spec.key.len;
    }
    struct led_cached_lease *k =
        l->n <= cache_max() ? entry_make(c, sizeof *k + l->n * sizeof *k->v + len) : NULL;
    if (!k)
        return;
    k->token = l->token;
    k->rev = l->rev + l->writes;
    k->claimed_us = l->claimed_us;
    k->n = l->n;
    char *to = (char *)(k->v + l->n);
    for (size_t i = 0; i < l->n; i++) {
        const struct led_call *it = led_call_find(c, l->held[i].seq);
        struct led_cached_call *v = &k->v[i];
        *v = (struct led_cached_call){ .seq = it->seq,
                                       .spec = it->spec,
                                       .lane = it->own_lane,
                                       .priority = it->own_priority,
                                       .expires_us = it->now.expires_us };
        v->spec.input = (struct payload){ 0 };
        v->spec.type = v->spec.method = v->spec.queue = v->spec.caller = v->spec.client =
            v->spec.parent = v->spec.traceparent = v->spec.schedule = BYTES_NONE;
        v->spec.needs = NULL; /* the lane has them */
        v->spec.n_needs = 0;
        v->spec.tags = NULL;
        v->spec.n_tags = 0;
        to = put(put(to, &v->spec.id), &v->spec.key);
    }
    enter(c, k);
}

/* Entries are looked up by token every time, because one that is entered here may push out another
 * lease of the same transaction. */
void led_cache_stored(struct ledger *c)
{
    for (struct led_lease *l = c->tx->first_lease; l; l = l->newer) {
        bool same = l->cached && !l->missing && !l->rewritten;
        struct led_cached_lease *k = same ? led_cache_find(c, l) : NULL;
        for (size_t i = 0; k && i < l->n; i++) {
            const struct led_call *it = led_call_find(c, l->held[i].seq);
            k->v[i].ended = l->state[i] != HELD_OPEN;
            if (it && it->now.place == AT_HELD && it->own_lane) { /* it may be a flow now */
                k->v[i].lane = it->own_lane;
                k->v[i].expires_us = it->now.expires_us;
            }
        }
        if (k)
            k->rev += l->writes;
        if (!same && (l->cached || l->fresh))
            drop(c, *slot(c, &l->token));
        if (l->fresh && !l->missing && !l->rewritten)
            keep(c, l);
    }
}

void led_cache_doubt(struct ledger *c)
{
    for (struct led_lease *l = c->tx ? c->tx->first_lease : NULL; l; l = l->newer)
        if (l->cached || l->fresh) {
            drop(c, *slot(c, &l->token));
            l->cached = false;
        }
}

void led_cache_end(struct ledger *c)
{
    while (c->lease_cache.oldest)
        drop(c, c->lease_cache.oldest);
    mem_free(TAKE(c->lease_cache.spare));
}
