/*
 * count.c - counting what a group did.
 *
 * A group has some thousand calls at most, usually of one queue, so the lock is taken once a group
 * and the last queue found is compared first.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/mem.h"
#include "exec/internal.h"
#include "store/feature.h"

/* ---- Histograms ------------------------------------------------------------------------------ */

static const double group_bounds[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024 };
/* Microseconds. A commit on a good disk takes a few hundred; a slow one takes seconds. */
static const double commit_bounds[] = { 100,   250,    500,    1000,   2500,    5000,   10000,
                                        25000, 100000, 250000, 500000, 1000000, 2500000 };
static_assert(COUNT_OF(group_bounds) <= HISTOGRAM_BOUNDS_MAX, "the bounds fit");
static_assert(COUNT_OF(commit_bounds) <= HISTOGRAM_BOUNDS_MAX, "the bounds fit");

static void add(atomic_int_least64_t *to, int64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static void histogram_add(struct histogram *h, int64_t value)
{
    size_t i = 0;
    while (i < h->n && (double)value > h->bounds[i])
        i++;
    add(&h->at[i], 1);
    add(&h->sum, value);
}

const struct exec_stats *exec_stats_of(const struct exec *e)
{
    return &e->stats;
}

void stats_init(struct exec_stats *s)
{
    s->group_ops.bounds = group_bounds;
    s->group_ops.n = COUNT_OF(group_bounds);
    s->commit_us.bounds = commit_bounds;
    s->commit_us.n = COUNT_OF(commit_bounds);
}

/* ---- Each queue's pace ----------------------------------------------------------------------- */

void rates_init(struct rates *r)
{
    pthread_mutex_init(&r->lock, NULL);
}

void rates_release(struct rates *r)
{
    for (size_t i = 0; i < RATE_BUCKETS; i++) {
        for (struct rate *one = r->buckets[i], *next; one; one = next) {
            next = one->next;
            mem_free(one);
        }
    }
    pthread_mutex_destroy(&r->lock);
}

static size_t bucket_of(struct bytes queue)
{
    uint32_t h = UINT32_C(2166136261); /* FNV-1a: names are short */
    for (size_t i = 0; i < queue.len; i++)
        h = (h ^ (unsigned char)queue.data[i]) * UINT32_C(16777619);
    return h % RATE_BUCKETS;
}

static struct rate *rate_find(const struct rates *r, struct bytes queue)
{
    struct rate *one = r->buckets[bucket_of(queue)];
    while (one && !bytes_eq(one->queue, queue))
        one = one->next;
    return one;
}

/* Without memory, or past the bound, the pace of a queue is not known: nothing else depends on it.
 */
static struct rate *rate_make(struct rates *r, struct bytes queue)
{
    struct rate *one = r->n < LANES_MAX ? mem_zalloc(sizeof(*one) + queue.len + 1) : NULL;
    if (!one)
        return NULL;
    char *name = (char *)(one + 1);
    memcpy(name, queue.data, queue.len);
    one->queue = (struct bytes){ name, queue.len };
    struct rate **at = &r->buckets[bucket_of(queue)];
    one->next = *at;
    *at = one;
    r->n++;
    return one;
}

/* One group being counted. */
struct counting {
    struct exec *e;
    struct rate *last; /* the last one found */
    int64_t second;
    int64_t failures; /* attempts that failed or were lost, or calls that ended so */
};

static void count_pace(struct counting *c, struct bytes queue, int64_t accepted, int64_t ended)
{
    struct rates *r = &c->e->rates;
    if (!c->last || !bytes_eq(c->last->queue, queue))
        c->last = rate_find(r, queue);
    if (!c->last)
        c->last = rate_make(r, queue);
    if (!c->last)
        return;
    __typeof__(c->last->at[0]) *at = &c->last->at[c->second % RATE_SECONDS];
    if (at->second != c->second) {
        at->second = c->second;
        at->accepted = at->ended = 0;
    }
    at->accepted += accepted;
    at->ended += ended;
}

struct pace exec_pace(struct exec *e, struct bytes queue)
{
    struct rates *r = &e->rates;
    int64_t second = world_mono(&world_real) / SEC_US, accepted = 0, ended = 0;
    pthread_mutex_lock(&r->lock);
    const struct rate *one = rate_find(r, queue);
    for (size_t i = 0; one && i < RATE_SECONDS; i++) {
        if (one->at[i].second <= second - RATE_SECONDS)
            continue;
        accepted += one->at[i].accepted;
        ended += one->at[i].ended;
    }
    pthread_mutex_unlock(&r->lock);
    return (struct pace){ (double)accepted / RATE_SECONDS, (double)ended / RATE_SECONDS };
}

/* ---- A group --------------------------------------------------------------------------------- */

static void count_accept(struct counting *c, const struct accept *q)
{
    int64_t duplicates = 0, fresh = 0;
    for (size_t i = 0; i < q->n; i++) {
        duplicates += q->out[i].duplicate;
        if (q->out[i].status != PAWL_OK || q->out[i].duplicate)
            continue;
        fresh++;
        count_pace(c, q->v[i].queue, 1, 0);
    }
    add(&c->e->stats.accepted, fresh);
    add(&c->e->stats.duplicates, duplicates);
}

static void count_finish(struct counting *c, const struct finish *q)
{
    int64_t failed = 0, ended = 0, completed = 0;
    for (size_t i = 0; i < q->n; i++) {
        const struct finish_item *f = &q->v[i];
        c->failures += failures_taken(f->with).data != NULL;
        if (!f->queue.data)
            continue; /* A repeated finish was counted when it was stored. */
        failed += f->how == END_ERROR || f->how == END_TIMEOUT || f->how == END_REFUSE;
        completed += f->state == PAWL_COMPLETED;
        c->failures += f->error_out.data != NULL;
        if (!pawl_state_ended(f->state))
            continue;
        ended++;
        count_pace(c, f->queue, 0, 1);
    }
    add(&c->e->stats.failed_tries, failed);
    add(&c->e->stats.ended, ended);
    add(&c->e->stats.completed, completed);
}

/* How long what was seen of schedules that cannot be read holds: each is looked at again within. */
#define UNREAD_US (CRON_UNREAD_LOOK_US + 30 * SEC_US)

int64_t exec_unread_since(const struct exec_stats *s)
{
    bool old = world_mono(&world_real) - atomic_load(&s->unread_seen) > UNREAD_US;
    return old ? 0 : atomic_load(&s->unread_since);
}

/* Under the lock of the rates, like all that count_op() does: no other group looks and stores
 * between. Readers take no lock, so `since` is stored before `seen`: who finds the new `seen` finds
 * the new `since` or a later one. */
static void count_unread(struct exec_stats *s, const struct cron_op *q)
{
    int64_t known_us = exec_unread_since(s);
    if (!q->unread)
        return;
    add(&s->unread, q->unread);
    if (known_us && known_us < q->unread_since_us)
        return;
    atomic_store(&s->unread_since, q->unread_since_us);
    atomic_store(&s->unread_seen, world_mono(&world_real));
}

static void count_cron(struct counting *c, const struct cron_op *q)
{
    struct exec_stats *s = &c->e->stats;
    if (q->what == CRON_RUN && !q->duplicate) {
        add(&s->ticks_manual, 1);
        add(&s->accepted, 1);
    }
    if (q->what == CRON_TICK) {
        add(&s->ticks, q->submitted);
        add(&s->accepted, (int64_t)q->n_ids);
        count_unread(s, q);
    }
    add(&s->ticks_missed, q->missed); /* also those of a schedule that is put or removed */
    for (size_t i = 0; i < CRON_REASONS; i++)
        add(&s->ticks_skipped[i], q->skipped_for[i]);
}

static void count_op(struct counting *c, const struct op *op)
{
    struct exec_stats *s = &c->e->stats;
    const struct op *end = op->kind == OP_HANDLER ? op->handler.end : op;
    const struct finish *f = end->kind == OP_FINISH ? &end->finish : NULL;
    if (op->status == PAWL_LOST_LEASE && f)
        add(&s->lost, (int64_t)f->n);
    if (op->status != PAWL_OK)
        return;
    add(&s->ended, (int64_t)op->n_ended);
    c->failures += op->n_lost > 0;
    if (end->kind == OP_FEATURE)
        c->failures += failures_taken(&end->feature).data != NULL;
    if (op->kind == OP_ACCEPT)
        count_accept(c, &op->accept);
    else if (op->kind == OP_CLAIM)
        add(&s->claimed, (int64_t)op->claim.n);
    else if (op->kind == OP_FEATURE && op->feature.of == &feature_cron)
        count_cron(c, op->feature.ctx);
    else if (f)
        count_finish(c, f);
}

void count_group(struct exec *e, struct op *const *v, size_t n, int64_t took_us)
{
    struct counting c = { .e = e, .second = world_mono(&world_real) / SEC_US };
    pthread_mutex_lock(&e->rates.lock);
    for (size_t i = 0; i < n; i++)
        count_op(&c, v[i]);
    pthread_mutex_unlock(&e->rates.lock);
    if (c.failures)
        failures_tell(e, v, n);
    add(&e->stats.commits, 1);
    histogram_add(&e->stats.group_ops, (int64_t)n);
    histogram_add(&e->stats.commit_us, took_us);
}
