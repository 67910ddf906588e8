/*
 * run_queue.c - the runs that were claimed and wait for a worker: sorted, and not for long.
 *
 * The store thread adds them, workers take them, the housekeeping thread hands back those that wait
 * too long; all under pool.lock.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "exec/internal.h"
#include "exec/run.h"

/* The order that lease_begun() assumes for the calls of one lease. */
static bool due_before(const struct run *a, const struct run *b)
{
    const struct call *x = a->v->call, *y = b->v->call;
    if (x->spec.priority != y->spec.priority)
        return x->spec.priority > y->spec.priority;
    if (x->run_at_us != y->run_at_us)
        return x->run_at_us < y->run_at_us;
    return x->seq < y->seq;
}

/* Workers take runs by priority; then those that bulk writers claimed come last; then by due time.
 * A lease is a bulk writer's as a whole, so its runs begin in the order of due_before(). */
static bool run_before(const struct run *a, const struct run *b)
{
    bool bulk = a->v->lease->bulk, other = b->v->lease->bulk;
    if (a->v->call->spec.priority == b->v->call->spec.priority && bulk != other)
        return other;
    return due_before(a, b);
}

static struct run *merge(struct run *a, struct run *b)
{
    struct run *first = NULL, **end = &first;
    while (a && b) {
        struct run **from = run_before(b, a) ? &b : &a;
        *end = *from;
        end = &(*end)->next;
        *from = *end;
    }
    *end = a ? a : b;
    return first;
}

static struct run *sorted(struct run *first)
{
    struct run *middle = first;
    if (!first || !first->next)
        return first;
    for (const struct run *end = first->next; end && end->next; end = end->next->next)
        middle = middle->next;
    struct run *second = TAKE(middle->next);
    return merge(sorted(first), sorted(second));
}

struct run *pool_arrange(struct run *first)
{
    bool rising = true;
    for (const struct run *r = first; r && r->next; r = r->next)
        rising = rising && !run_before(r->next, r);
    return rising ? first : sorted(first);
}

void pool_count_slow(struct pool *p, struct pawl_call *t, bool counts)
{
    if (atomic_load(&t->slow) == counts)
        return;
    atomic_store(&t->slow, counts);
    p->n_slow += counts ? 1 : -1;
    CHECK(p->n_slow >= 0);
}

void pool_enqueue(struct pool *p, struct run *first, size_t n)
{
    struct run *last = first;
    bool bulk = first->v->lease->bulk;
    for (struct run *r = first; r; last = r, r = r->next)
        pool_count_slow(p, r->v, !durations_quick(&p->durations, r->v->handler));
    if (!p->head) {
        p->head = first;
        p->tail = last;
    } else if (!run_before(first, p->tail)) {
        p->tail->next = first;
        p->tail = last;
    } else {
        p->tail = run_before(last, p->tail) ? p->tail : last;
        p->head = merge(p->head, first);
    }
    p->n_queued += n;
    p->n_bulk += bulk ? n : 0;
}

struct run *pool_dequeue(struct pool *p)
{
    struct run *r = p->head;
    struct lease_run *l = r->v->lease;
    /* Otherwise, when a call kills this process, other calls of its lease would be counted as lost.
     */
    CHECK(!l->begun || !due_before(r, l->begun));
    l->begun = r;
    pool_unqueue(p, NULL, r);
    return r;
}

void pool_unqueue(struct pool *p, struct run *before, struct run *r)
{
    if (before)
        before->next = r->next;
    else
        p->head = r->next;
    if (p->tail == r)
        p->tail = before;
    p->n_queued -= r->n;
    p->n_bulk -= r->v->lease->bulk ? r->n : 0;
}

/* ---- Runs that wait too long ----------------------------------------------------------------- */

/* Calls that have run for this long are why others wait, so their types are not quick. It is less
 * than STALE_US because they begin after they are queued: if they were not noted, the calls that
 * are handed back would be claimed ahead again at once. */
#define SLOW_US (STALE_US / 2)

/* Returns when the first queued run is stale. If one is, note running calls of quick types that
 * turned out slow, since they are why it waits. Under the lock. */
static int64_t stale_next(struct pool *p, int64_t now_us)
{
    int64_t next_us = INT64_MAX;
    for (const struct run *r = p->head; r; r = r->next)
        next_us = MIN(next_us, r->v->lease->came_us + STALE_US);
    if (next_us > now_us)
        return next_us;
    for (struct pawl_call *t = p->running; t; t = t->next) {
        if (t->hung || t->blocked || atomic_load(&t->stage) != ATTEMPT_RUNNING ||
            t->began_us + SLOW_US > now_us)
            continue;
        durations_note_running(&p->durations, t->handler, now_us - t->began_us);
        pool_count_slow(p, t, true);
    }
    return next_us;
}

static bool holds_more(const struct pawl_call *t)
{
    const struct run *r = t->run;
    return r->flow && !r->cut && t + 1 < r->v + r->n && atomic_load(&t->stage) != ATTEMPT_OVER;
}

/* Calls stand behind it in its run, and it takes long. */
static bool holds_back(struct pawl_call *t, int64_t now_us)
{
    if (!holds_more(t) || atomic_load(&t->stage) != ATTEMPT_RUNNING ||
        t->began_us + STALE_US > now_us)
        return false;
    t->run->cut = true;
    return true;
}

/* Hand back what stands behind calls that take long; when to look again. Until then nobody could
 * move such a call to another queue or another time. */
static int64_t cut_runs(struct pool *p, int64_t now_us)
{
    struct pawl_call *v[64];
    int64_t next_us = INT64_MAX;
    size_t n;
    do {
        n = pool_pick(p, holds_back, now_us, v, COUNT_OF(v));
        for (size_t i = 0; i < n; i++) {
            run_cut(v[i]->run);
            attempt_unref(v[i]);
        }
    } while (n == COUNT_OF(v));
    pthread_mutex_lock(&p->lock);
    for (const struct pawl_call *t = p->running; t; t = t->next) {
        if (!holds_more(t))
            continue;
        bool runs = atomic_load(&t->stage) == ATTEMPT_RUNNING; /* else it is about to */
        next_us = MIN(next_us, (runs ? t->began_us : now_us) + STALE_US);
    }
    pthread_mutex_unlock(&p->lock);
    return next_us;
}

int64_t pool_stale(struct exec *e, int64_t now_us)
{
    struct pool *p = &e->pool;
    struct run *back = NULL, **end = &back, *before = NULL;
    pthread_mutex_lock(&p->lock);
    int64_t next_us = stale_next(p, now_us);
    for (struct run *r = next_us <= now_us ? p->head : NULL, *next; r; r = next) {
        next = r->next;
        if (r->v->lease->came_us + STALE_US > now_us) {
            before = r;
            continue;
        }
        pool_unqueue(p, before, r);
        pool_count_slow(p, r->v, false);
        r->next = NULL;
        *end = r;
        end = &r->next;
    }
    if (next_us <= now_us)
        next_us = stale_next(p, now_us);
    pthread_mutex_unlock(&p->lock);
    for (struct run *r = back, *next; r; r = next) {
        next = r->next;
        run_release(r);
    }
    return MIN(next_us, cut_runs(p, now_us));
}
