/*
 * writer_bulk.c - the bulk writers: loading, committing, settling (writer_bulk.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "exec/writer_bulk.h"

#include "exec/internal.h"

/* Flush at ENOUGH queued results; fewer wait WAIT_US for more. */
#define ENOUGH 512
#define WAIT_US (3 * MS_US)
/* While other writes came this recently, one bulk writer works alone and yields the rest of the
 * machine to them. */
#define RECENT_US (100 * MS_US)

/* ---- Finishes that wait ---------------------------------------------------------------------- */

static bool nothing_left(const struct writer_bulk *h)
{
    return h->stage == BULK_IDLE && !h->head;
}

bool bulk_post(struct pawl_call *t)
{
    struct writer_bulk *h = t->lease->bulk;
    struct write_job *j = &t->job;
    if (!h)
        return false;
    struct bulk_writers *all = &t->e->bulk;
    pthread_mutex_lock(&all->lock);
    h->out -= h->out > 0;
    bool taken = !all->closed && j->weight == 1 && j->frees == FREES_NO;
    bool flies = taken && !h->flying;
    h->flying |= taken;
    if (taken) {
        j->next = NULL;
        if (!h->n++)
            h->since_us = world_mono(&world_real);
        *h->end = j;
        h->end = &j->next;
    }
    bool tell = taken && h->stage == BULK_IDLE && (h->n == 1 || h->n == ENOUGH || !h->out);
    pthread_mutex_unlock(&all->lock);
    if (flies)
        pool_finishes_in_flight(t->e, 1); /* exec_stop() waits for them */
    if (tell)
        queue_nudge(&t->e->queue);
    return taken;
}

void bulk_let_go(struct pawl_call *t)
{
    struct writer_bulk *h = t->lease->bulk;
    if (!h)
        return;
    pthread_mutex_lock(&t->e->bulk.lock);
    h->out -= h->out > 0;
    pthread_mutex_unlock(&t->e->bulk.lock);
    queue_nudge(&t->e->queue);
}

void bulk_out(struct writer_bulk *h, size_t n)
{
    pthread_mutex_lock(&h->e->bulk.lock);
    h->out = n;
    h->claimed_us = world_mono(&world_real);
    pthread_mutex_unlock(&h->e->bulk.lock);
}

/* ---- The bulk writer ------------------------------------------------------------------------- */

static void commit_bulk(struct writer_bulk *h, struct store **store)
{
    struct pawl_err err = { 0 };
    int64_t began_us = world_mono(&world_real);
    PAUSE_POINT("bulk.commit");
    enum pawl_status st = *store ? PAWL_OK : exec_store(h->e, STORE_HASTY, store, &err);
    if (st == PAWL_OK)
        st = store_commit(*store, h->group.ops, h->group.n);
    else
        for (size_t i = 0; i < h->group.n; i++)
            op_refuse(h->group.ops[i], &err);
    h->status = st;
    h->took_us = world_mono(&world_real) - began_us;
}

static void *bulk_main(void *arg)
{
    struct writer_bulk *h = arg;
    struct bulk_writers *all = &h->e->bulk;
    struct store *store = NULL; /* owned; opened with the first group */
    for (;;) {
        pthread_mutex_lock(&all->lock);
        /* After the close results may still wait for this thread: it ends when none is left. */
        while (h->stage != BULK_LOADED && !(all->closed && nothing_left(h)))
            pthread_cond_wait(&all->loaded, &all->lock);
        bool leave = h->stage != BULK_LOADED;
        pthread_mutex_unlock(&all->lock);
        if (leave)
            break;
        commit_bulk(h, &store);
        pthread_mutex_lock(&all->lock);
        h->stage = BULK_BACK;
        pthread_mutex_unlock(&all->lock);
        queue_nudge(&h->e->queue);
    }
    store_close(store);
    return NULL;
}

/* ---- The store thread ------------------------------------------------------------------------ */

/* Move up to a group's worth of waiting finishes into its group. */
static void take_ends(struct writer_bulk *h)
{
    struct group *g = &h->group;
    struct write_job **end = &g->jobs;
    while (h->head && g->n < GROUP_MAX) {
        struct write_job *j = h->head;
        h->head = j->next;
        h->n--;
        g->ops[g->n++] = &j->op;
        *end = j;
        end = &j->next;
    }
    *end = NULL;
    if (!h->head)
        h->end = &h->head;
}

static bool enough(const struct writer_bulk *h, bool closed)
{
    return h->n && (!h->out || h->n >= ENOUGH || closed ||
                    world_mono(&world_real) >= h->since_us + WAIT_US);
}

/* Nothing of its last claim has ended yet: wait a moment, so that the next claim shares a commit
 * with the results. Slow handlers are not waited for. */
static bool expects(const struct writer_bulk *h)
{
    return !h->n && h->out && world_mono(&world_real) < h->claimed_us + WAIT_US;
}

static bool asks_again(const struct writer_bulk *h)
{
    return h->spare && h->spare->again;
}

/* How many calls to claim with its next group; 0: none. */
static int claim_max(const struct writer_bulk *h)
{
    const struct bulk_writers *all = &h->e->bulk;
    int64_t now_us = world_mono(&world_real);
    if (asks_again(h))
        return now_us >= h->again_us;
    if (h != all->v && now_us < atomic_load(&all->others_us) + RECENT_US)
        return 0;
    return pool_bulk_want(h->e);
}

static bool has_thread(struct writer_bulk *h)
{
    if (!h->runs)
        h->runs = !pthread_create(&h->thread, NULL, bulk_main, h);
    h->e->bulk.off = !h->runs;
    return h->runs;
}

/* Form its next group, if there is something to commit. */
static void load(struct writer_bulk *h)
{
    struct bulk_writers *all = &h->e->bulk;
    struct group *g = &h->group;
    *g = (struct group){ 0 };
    pthread_mutex_lock(&all->lock);
    bool ends = enough(h, all->closed), closed = all->closed;
    bool waits = !ends && (h->n || expects(h));
    h->stage = waits ? BULK_IDLE : BULK_LOADING;
    if (ends)
        take_ends(h);
    pthread_mutex_unlock(&all->lock);
    if (waits)
        return;
    int want = closed ? 0 : claim_max(h);
    if (want && has_thread(h))
        g->claim = pool_claim_job(h->e, want, h);
    if (g->claim)
        g->ops[g->n++] = &g->claim->op;
    pthread_mutex_lock(&all->lock);
    h->stage = g->n ? BULK_LOADED : BULK_IDLE;
    pthread_cond_broadcast(g->n ? &all->loaded : &all->idle);
    pthread_mutex_unlock(&all->lock);
}

static void settle(struct writer_bulk *h)
{
    struct bulk_writers *all = &h->e->bulk;
    unwritable_note(h->e, h->status, h->group.ops, h->group.n);
    count_group(h->e, h->group.ops, h->group.n, h->took_us);
    group_settle(h->e, &h->group);
    pthread_mutex_lock(&all->lock);
    h->stage = BULK_IDLE;
    if (h->head)
        h->since_us = 0; /* they have waited long enough: flush them */
    bool landed = h->flying && !h->head;
    h->flying = h->head;
    pthread_cond_broadcast(&all->idle);
    pthread_mutex_unlock(&all->lock);
    if (landed)
        pool_finishes_in_flight(h->e, -1);
}

void bulk_turn(struct exec *e)
{
    if (!e->bulk.open)
        return;
    pool_bulk_check(e);
    for (size_t i = 0; i < BULK_WRITERS; i++) {
        struct writer_bulk *h = &e->bulk.v[i];
        pthread_mutex_lock(&e->bulk.lock);
        enum bulk_stage stage = h->stage;
        pthread_mutex_unlock(&e->bulk.lock);
        if (stage == BULK_BACK)
            settle(h);
        if (stage != BULK_LOADED)
            load(h);
    }
}

int64_t bulk_next(struct exec *e)
{
    int64_t at_us = e->pool.bulk ? e->pool.bulk_until_us : INT64_MAX;
    if (!e->bulk.open)
        return at_us;
    pthread_mutex_lock(&e->bulk.lock);
    for (size_t i = 0; i < BULK_WRITERS; i++) {
        const struct writer_bulk *h = &e->bulk.v[i];
        if (h->stage == BULK_BACK)
            at_us = 0;
        if (h->stage == BULK_IDLE && h->head)
            at_us = MIN(at_us, enough(h, e->bulk.closed) ? 0 : h->since_us + WAIT_US);
        if (h->stage == BULK_IDLE && expects(h))
            at_us = MIN(at_us, h->claimed_us + WAIT_US);
        if (h->stage == BULK_IDLE && asks_again(h))
            at_us = MIN(at_us, h->again_us);
    }
    pthread_mutex_unlock(&e->bulk.lock);
    return at_us;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

void bulk_open(struct exec *e)
{
    struct bulk_writers *all = &e->bulk;
    if (e->traits & STORE_ONE_WRITER)
        return;
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->loaded, NULL);
    pthread_cond_init(&all->idle, NULL);
    for (size_t i = 0; i < BULK_WRITERS; i++) {
        all->v[i].e = e;
        all->v[i].end = &all->v[i].head;
    }
    all->open = true;
}

static bool all_idle(const struct bulk_writers *all)
{
    for (size_t i = 0; i < BULK_WRITERS; i++)
        if (!nothing_left(&all->v[i]))
            return false;
    return true;
}

void bulk_close(struct exec *e)
{
    struct bulk_writers *all = &e->bulk;
    if (!all->open)
        return;
    pthread_mutex_lock(&all->lock);
    all->closed = true;
    pthread_mutex_unlock(&all->lock);
    queue_nudge(&e->queue);
    pthread_mutex_lock(&all->lock);
    while (!all_idle(all))
        pthread_cond_wait(&all->idle, &all->lock);
    pthread_cond_broadcast(&all->loaded);
    pthread_mutex_unlock(&all->lock);
    for (size_t i = 0; i < BULK_WRITERS; i++)
        if (all->v[i].runs)
            pthread_join(all->v[i].thread, NULL);
}

void bulk_release(struct exec *e)
{
    struct bulk_writers *all = &e->bulk;
    if (!all->open)
        return;
    for (size_t i = 0; i < BULK_WRITERS; i++)
        lease_run_free(all->v[i].spare);
    pthread_mutex_destroy(&all->lock);
    pthread_cond_destroy(&all->loaded);
    pthread_cond_destroy(&all->idle);
}
