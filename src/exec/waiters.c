/*
 * waiters.c - the table of waiters, hashed by id, grown as needed (waiters.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/waiters.h"

#include "base/mem.h"

#define BUCKETS_FIRST 256

/* FNV-1a is enough: a client that crafts colliding ids only makes its own chains longer. */
static uint64_t hash(struct bytes id)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < id.len; i++)
        h = (h ^ (unsigned char)id.data[i]) * UINT64_C(0x100000001b3);
    return h ^ (h >> 29);
}

static struct waiter **bucket(struct waiters *w, struct bytes id)
{
    return &w->buckets[hash(id) & (w->n_buckets - 1)];
}

enum pawl_status waiters_init(struct waiters *w, struct pawl_err *err)
{
    *w = (struct waiters){ .n_buckets = BUCKETS_FIRST };
    w->buckets = mem_zalloc(BUCKETS_FIRST * sizeof(struct waiter *));
    if (!w->buckets)
        return err_no_memory(err, "making the table of waiters");
    pthread_mutex_init(&w->lock, NULL);
    return PAWL_OK;
}

void waiters_release(struct waiters *w)
{
    if (!w->buckets)
        return;
    CHECK(w->n == 0);
    mem_free(w->buckets);
    pthread_mutex_destroy(&w->lock);
}

/* Without memory the table stays as it is, and its chains get longer. */
static void grow(struct waiters *w)
{
    size_t n = w->n_buckets * 2;
    struct waiter **old = w->buckets, **fresh = mem_zalloc(n * sizeof(struct waiter *));
    if (!fresh)
        return;
    size_t n_old = w->n_buckets;
    w->buckets = fresh;
    w->n_buckets = n;
    for (size_t i = 0; i < n_old; i++) {
        for (struct waiter *o = old[i], *next; o; o = next) {
            struct waiter **b = bucket(w, o->id);
            next = o->next;
            o->next = *b;
            *b = o;
        }
    }
    mem_free(old);
}

bool waiters_enter(struct waiters *w, struct waiter *one)
{
    pthread_mutex_lock(&w->lock);
    if (w->n >= w->n_buckets)
        grow(w);
    struct waiter **b = bucket(w, one->id);
    one->next = *b;
    one->entered = true;
    one->look = false;
    one->no = w->came++;
    *b = one;
    bool first = w->n++ == 0;
    pthread_mutex_unlock(&w->lock);
    return first;
}

/* Unlink *at from its chain. */
static struct waiter *unlink_at(struct waiters *w, struct waiter **at)
{
    struct waiter *o = *at;
    *at = o->next;
    o->entered = false;
    w->n--;
    w->n_look -= o->look;
    o->look = false;
    return o;
}

bool waiters_drop(struct waiters *w, struct waiter *one)
{
    pthread_mutex_lock(&w->lock);
    bool there = one->entered;
    if (there) {
        struct waiter **at = bucket(w, one->id);
        while (*at != one)
            at = &(*at)->next;
        unlink_at(w, at);
    }
    pthread_mutex_unlock(&w->lock);
    return there;
}

struct waiter *waiters_tell(struct waiters *w, const struct call *ended, uint64_t came,
                            struct waiter *told)
{
    pthread_mutex_lock(&w->lock);
    struct waiter **at = w->n ? bucket(w, ended->spec.id) : NULL;
    while (at && *at) {
        if ((*at)->no >= came || !bytes_eq((*at)->id, ended->spec.id)) {
            at = &(*at)->next;
            continue;
        }
        struct waiter *o = unlink_at(w, at);
        o->tell(o, ended);
        o->next = told;
        told = o;
    }
    pthread_mutex_unlock(&w->lock);
    return told;
}

void waiters_wake(struct waiter *told)
{
    for (struct waiter *o = told, *next; o; o = next) {
        next = o->next; /* Its memory may be freed by `wake`. */
        o->wake(o);
    }
}

static void mark(struct waiters *w, struct waiter *o)
{
    w->n_look += !o->look;
    o->look = true;
}

bool waiters_mark(struct waiters *w, struct bytes id)
{
    bool any = false;
    pthread_mutex_lock(&w->lock);
    for (struct waiter *o = w->n ? *bucket(w, id) : NULL; o; o = o->next) {
        if (bytes_eq(o->id, id)) {
            mark(w, o);
            any = true;
        }
    }
    pthread_mutex_unlock(&w->lock);
    return any;
}

void waiters_mark_all(struct waiters *w)
{
    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; w->n && i < w->n_buckets; i++)
        for (struct waiter *o = w->buckets[i]; o; o = o->next)
            mark(w, o);
    pthread_mutex_unlock(&w->lock);
}

size_t waiters_marked(struct waiters *w, struct arena *a, struct bytes *out, size_t max,
                      uint64_t *came)
{
    size_t n = 0;
    pthread_mutex_lock(&w->lock);
    *came = w->came;
    for (size_t i = 0; w->n_look && n < max && i < w->n_buckets; i++) {
        for (struct waiter *o = w->buckets[i]; o && n < max; o = o->next) {
            if (!o->look)
                continue;
            struct bytes id = arena_copy(a, o->id);
            if (!id.data)
                break;
            o->look = false;
            w->n_look--;
            out[n++] = id;
        }
    }
    pthread_mutex_unlock(&w->lock);
    return n;
}

bool waiters_any_marked(struct waiters *w)
{
    pthread_mutex_lock(&w->lock);
    bool any = w->n_look > 0;
    pthread_mutex_unlock(&w->lock);
    return any;
}

size_t waiters_count(struct waiters *w)
{
    pthread_mutex_lock(&w->lock);
    size_t n = w->n;
    pthread_mutex_unlock(&w->lock);
    return n;
}
