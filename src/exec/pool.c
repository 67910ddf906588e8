/*
 * pool.c - how much to claim, and taking in what a claim brought (pool.h). Store thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/pool.h"

#include "base/hook.h"
#include "base/log.h"
#include "base/mem.h"
#include "exec/internal.h"
#include "exec/housekeeping.h"
#include "exec/writer_bulk.h"
#include "exec/run.h"

/* Claim ahead what the slots are likely to begin in this time: long enough to hide a commit, short
 * enough that a call does not wait here while another node is idle. */
#define PREFETCH_US 10000
/* The pause after a claim that failed, which shows that the database is in trouble. */
#define CLAIM_PAUSE_US (50 * MS_US)
/* A run is claimed for about this long at most, and stops after it (run.c): meanwhile the calls of
 * its key cannot go to another worker or node. */
#define RUN_CLAIM_US (50 * MS_US)
#define RUN_MAX 256
/* Bulk writing stops after this long for a claim that sees everything: bulk writers do not claim
 * calls that were lost before. */
#define BULK_US (5 * SEC_US)
/* The inputs of a claim, the calls around them, and the attempts. */
#define LEASE_LEN_MAX (CLAIM_LEN_MAX + INPUT_LEN_MAX + (32 << 20))

enum pawl_status pool_init(struct pool *p, struct pawl_err *err)
{
    pthread_condattr_t attr;
    (void)err;
    *p = (struct pool){ .next_claim_us = INT64_MAX };
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->work, &attr);
    pthread_cond_init(&p->quiet, &attr);
    pthread_condattr_destroy(&attr);
    return PAWL_OK;
}

void pool_release(struct pool *p)
{
    CHECK(!p->head && !p->running);
    lease_run_free(p->spare);
    for (size_t i = 0; i < p->n_queues; i++)
        mem_free((char *)p->queues[i].data);
    mem_free(p->queues);
    has_release(&p->has);
    durations_release(&p->durations);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->quiet);
}

bool pool_started(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    bool started = p->started;
    pthread_mutex_unlock(&p->lock);
    return started;
}

/* ---- How much to claim: on the store thread -------------------------------------------------- */

static bool may_claim(const struct exec *e)
{
    const struct pool *p = &e->pool;
    return p->started && !p->stopping && !p->replaced && !p->drained && !p->cut &&
           !e->conf.paused && p->hung < HUNG_MAX;
}

/* Slots that no slow call holds, running or queued; under the lock. A slot whose thread could not
 * be made does not count. */
static int64_t open_slots(const struct pool *p)
{
    int64_t have = MAX(MIN(p->slots, p->threads - p->hung - p->blocked), 0);
    int64_t n = have - p->n_slow + atomic_load(&p->ending_slow);
    return MIN(MAX(n, 0), have);
}

/* How many calls that are not slow to hold: one for each open slot, and those that will begin
 * within PREFETCH_US, at most ahead_max. Under the lock. */
static int64_t target(const struct pool *p, int64_t ahead_max)
{
    const struct durations *d = &p->durations;
    int64_t open = open_slots(p);
    if (!d->n_quick)
        return open;
    double ahead = (double)open * PREFETCH_US / MAX(d->mean_us, 1.0);
    return open + (int64_t)MIN(ahead, (double)ahead_max);
}

/* How many calls that are not slow this node holds, without `others`; under the lock. */
static int64_t held_quick(const struct pool *p, size_t others)
{
    int64_t ending = atomic_load(&p->ending) - atomic_load(&p->ending_slow);
    int64_t n = (int64_t)(p->n_queued - others + p->n_running) - p->hung - p->blocked - p->n_slow;
    return MAX(n - ending, 0);
}

/* How many calls to claim now, under the lock.
 *
 * `work_may_be_due`: something may be due which no claim has looked for: new calls, a retry, and
 * also a finish that freed a key, since the next call of that key can be claimed from that commit
 * on. The claim comes last in its group and sees all of them. It is left out only while the calls
 * that wait here fill half of what we want ahead: no worker is idle then, the flag stays set, and
 * the claim comes with the group that finds fewer of them. A run counts in full while it waits (it
 * bounds what we hold) and as one while it runs (it occupies one slot), so that a long run never
 * hides an idle slot from other keys. */
static int wanted(const struct exec *e)
{
    const struct pool *p = &e->pool;
    if (!may_claim(e) || (!p->work_may_be_due && world_mono(&world_real) < p->next_claim_us))
        return 0;
    int64_t aim = target(p, CLAIM_MAX), free = aim - held_quick(p, p->n_bulk);
    /* A claim for the last few free places costs as much as one for many: wait for half of them,
     * unless a worker is idle. */
    if (free <= 0 || (p->n_queued > p->n_bulk && free < aim / 2))
        return 0;
    return (int)MIN(free, CLAIM_MAX);
}

/* End bulk writing: the next claim of the store thread sees all queues. */
static void bulk_ends(struct pool *p)
{
    p->bulk = false;
    pthread_mutex_lock(&p->lock);
    p->work_may_be_due = true;
    pthread_mutex_unlock(&p->lock);
}

int pool_bulk_want(struct exec *e)
{
    struct pool *p = &e->pool;
    if (!p->bulk)
        return 0;
    pthread_mutex_lock(&p->lock);
    int64_t aim = target(p, BULK_WRITERS * CLAIM_MAX), free = aim - held_quick(p, 0);
    bool may = may_claim(e);
    pthread_mutex_unlock(&p->lock);
    if (aim < BULK_MIN) /* handlers have become slower */
        bulk_ends(p);
    return may && p->bulk && free >= BULK_MIN ? (int)MIN(free, CLAIM_MAX) : 0;
}

void pool_bulk_check(struct exec *e)
{
    const struct pool *p = &e->pool;
    if (p->bulk && (e->bulk.off || world_mono(&world_real) >= p->bulk_until_us))
        bulk_ends(&e->pool);
}

int pool_want(struct exec *e, bool fresh)
{
    struct pool *p = &e->pool;
    pthread_mutex_lock(&p->lock);
    p->work_may_be_due |= fresh; /* Remember it also when no slot is free now. */
    int want = wanted(e);
    pthread_mutex_unlock(&p->lock);
    return want;
}

int64_t pool_next_claim(struct exec *e)
{
    struct pool *p = &e->pool;
    int64_t at_us = INT64_MAX;
    pthread_mutex_lock(&p->lock);
    if (wanted(e))
        at_us = 0;
    else if (may_claim(e) && !p->work_may_be_due)
        at_us = p->next_claim_us;
    pthread_mutex_unlock(&p->lock);
    return at_us;
}

static void next_claim_by(struct pool *p, int64_t mono_us)
{
    p->next_claim_us = MIN(p->next_claim_us, mono_us);
}

/* What a claim of the store thread says about the backlog. Under the lock. */
static void note_backlog(struct exec *e, const struct lease_run *l)
{
    struct pool *p = &e->pool;
    const struct claim *c = &l->job.op.claim;
    /* A claim that left out calls which were lost before does not know whether such calls are due;
     * look again if the one that was running has ended meanwhile. */
    p->work_may_be_due = c->more || (c->no_retry_alone && !p->retry_alone);
    /* The answer to a repeated claim does not know what is due now. */
    p->work_may_be_due |= l->again;
    p->next_claim_us = INT64_MAX;
    if (c->next_due_us)
        next_claim_by(p, world_mono(&world_real) + MAX(c->next_due_us - exec_now(e), 0));
}

/* Queue what the claim found, and note what it says about the backlog. False: the workers are
 * stopping or drained. */
static bool take_in(struct exec *e, struct lease_run *l, struct run *runs)
{
    struct pool *p = &e->pool;
    size_t n = l->job.op.claim.n;
    l->came_us = world_mono(&world_real);
    runs = pool_arrange(runs);
    if (l->bulk)
        bulk_out(l->bulk, runs ? n : 0);
    pthread_mutex_lock(&p->lock);
    bool stopping = p->stopping || p->drained || p->cut;
    if (!l->bulk)
        note_backlog(e, l);
    if (l->retry_alone && !stopping)
        p->retry_alone = true;
    if (!stopping && runs)
        pool_enqueue(p, runs, n);
    bool wake = p->head && p->idle;
    pthread_mutex_unlock(&p->lock);
    if (wake)
        pthread_cond_signal(&p->work);
    if (runs)
        housekeeping_by(e, l->came_us + STALE_US);
    return !stopping;
}

static void claim_failed(struct exec *e, struct lease_run *l)
{
    struct pool *p = &e->pool;
    if (l && l->bulk) {
        l->bulk->again_us = world_mono(&world_real) + CLAIM_PAUSE_US;
        bulk_ends(p);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->work_may_be_due = false;
    /* Not next_claim_by(): the time of a delayed call that is due has passed already. */
    p->next_claim_us = world_mono(&world_real) + CLAIM_PAUSE_US;
    pthread_mutex_unlock(&p->lock);
}

/* Hand a whole claim back: there is no memory to run it, or this node may not run it any more.
 * False: the lease is still ours, and no other node takes it while this process sends heartbeats.
 */
static bool give_back(struct lease_run *l)
{
    struct claim *c = &l->job.op.claim;
    struct finish_item *v = mem_zalloc(c->n * sizeof(*v));
    if (!v)
        return false;
    for (size_t i = 0; i < c->n; i++)
        v[i] = (struct finish_item){ .seq = c->calls[i].seq,
                                     .id = c->calls[i].spec.id,
                                     .how = END_RELEASE };
    struct op op = { .kind = OP_FINISH, .a = &l->arena, .finish = { l->token, v, .n = c->n } };
    struct op *one = &op;
    enum pawl_status st = store_commit(l->e->writer, &one, 1);
    mem_free(v);
    return st == PAWL_OK || st == PAWL_LOST_LEASE;
}

/* The queue that filled a claim comes last in the next one. Otherwise calls of other queues, which
 * are due later, would wait for its whole backlog. */
static void note_busiest_queue(struct exec *e, const struct claim *c)
{
    struct pool *p = &e->pool;
    struct bytes queue = c->n ? c->calls[0].spec.queue : BYTES_NONE;
    bool one = c->n && c->more && queue.len <= sizeof p->busiest_name, keyed = false;
    if (p->bulk)
        return; /* this claim leaves out the queue of the bulk writers */
    for (size_t i = 0; i < c->n && one; i++) {
        one = bytes_eq(c->calls[i].spec.queue, queue);
        keyed |= c->calls[i].spec.key.data != NULL;
    }
    p->busiest_queue = BYTES_NONE;
    if (!one)
        return;
    memcpy(p->busiest_name, queue.data, queue.len);
    p->busiest_queue = (struct bytes){ p->busiest_name, queue.len };
    p->bulk = e->bulk.open && !e->bulk.off && c->n >= BULK_MIN && !keyed;
    p->bulk_until_us = world_mono(&world_real) + BULK_US;
}

/* End bulk writing when its queue is empty, or has calls with a key. */
static void note_bulk(struct pool *p, const struct claim *c)
{
    bool on = c->more;
    for (size_t i = 0; i < c->n && on; i++)
        on = !c->calls[i].spec.key.data;
    if (p->bulk && !on)
        bulk_ends(p);
}

/* Keep an unused lease and its memory for the next claim. */
static void lease_spare(struct lease_run *l)
{
    struct lease_run **spare = l->bulk ? &l->bulk->spare : &l->e->pool.spare;
    lease_run_reset(l);
    lease_run_free(*spare);
    *spare = l;
}

static void claim_done(struct write_job *j)
{
    struct lease_run *l = (struct lease_run *)((char *)j - offsetof(struct lease_run, job));
    struct exec *e = l->e;
    struct run *runs = NULL;
    PAUSE_POINT("exec.claimed");
    if (j->op.n_ended) {
        exec_look(e, j->op.ended, j->op.n_ended);
        exec_work_signal_raise(e); /* The next call of their keys may be due now, and not for this
                                      node. */
    }
    if (j->op.status != PAWL_OK) {
        /* Repeat it: the database may have stored a lease that we do not know of, and only the same
         * token gets it back. A token that was not used is as good as a new one. */
        l->again = j->op.status != PAWL_LOST_LEASE;
        claim_failed(e, l);
        if (j->op.status == PAWL_LOST_LEASE)
            housekeeping_doubt(e);
    } else if (j->op.claim.n && attempt_make_all(l, &runs) != PAWL_OK) {
        l->again = !give_back(l);
        claim_failed(e, l);
    } else {
        atomic_fetch_add(&e->found, j->op.claim.n > 0);
        if (l->bulk)
            note_bulk(&e->pool, &j->op.claim);
        else
            note_busiest_queue(e, &j->op.claim);
        l->retry_alone = j->op.claim.n && counts_retry_alone(j->op.claim.calls[0].counts);
        bool taken = take_in(e, l, runs);
        l->again = false;
        if (taken && runs)
            return;
        if (runs && !give_back(l)) {
            l->again = true; /* the next claim has the same token, and so gets the same calls */
            claim_failed(e, l);
        }
    }
    lease_spare(l);
}

static struct lease_run *lease_make(struct exec *e, struct writer_bulk *h)
{
    struct lease_run *l = mem_zalloc(sizeof(*l));
    if (!l) {
        claim_failed(e, NULL);
        return NULL;
    }
    l->e = e;
    l->bulk = h;
    arena_init(&l->arena, LEASE_LEN_MAX);
    return l;
}

/* Limit what is claimed beyond the open slots to quick types. Under the lock; the list is copied
 * into the claim's memory, because it may change while the claim is under way. False: no memory. */
static bool claim_quick(struct lease_run *l, const struct pool *p, struct claim *c)
{
    const struct durations *d = &p->durations;
    double fit = RUN_CLAIM_US / MAX(d->mean_us, 1.0);
    c->run_max = d->n_quick ? (int)MIN(MAX(fit, 1.0), RUN_MAX) : 1;
    if (durations_all_quick(d))
        return true;
    struct bytes *quick = arena_alloc(&l->arena, d->n_quick * sizeof *quick);
    if (!quick)
        return false;
    memcpy(quick, d->quick, d->n_quick * sizeof *quick);
    c->quick = quick;
    c->n_quick = d->n_quick;
    c->max_any = (int)MAX(MIN(open_slots(p), (int64_t)c->max), 1);
    return true;
}

/* Make it a claim of a bulk writer: quick types of one queue. A repeated claim asks for the same
 * queue as before. */
static void bulk_from(struct claim *c, struct writer_bulk *h, const struct pool *p, bool again)
{
    if (!again) {
        memcpy(h->queue_name, p->busiest_queue.data, p->busiest_queue.len);
        h->queue = (struct bytes){ h->queue_name, p->busiest_queue.len };
    }
    c->queues = &h->queue;
    c->n_queues = 1;
    if (c->n_quick) { /* 0: only a repeated claim gets here, for as few calls as max_any */
        c->types = c->quick;
        c->n_types = c->n_quick;
        c->max_any = 0;
    }
    c->no_retry_alone = true;
    c->last = c->without = BYTES_NONE;
}

struct write_job *pool_claim_job(struct exec *e, int max, struct writer_bulk *h)
{
    struct pool *p = &e->pool;
    struct lease_run *l = h ? TAKE(h->spare) : TAKE(p->spare);
    if (!l && !(l = lease_make(e, h)))
        return NULL;
    if (l->again)
        max = l->job.op.claim.max; /* As many as the first one may have got. */
    else
        l->token = token_make(e->conf.world);
    l->retry_alone = false;
    l->job = (struct write_job){ .op = { .kind = OP_CLAIM,
                                         .a = &l->arena,
                                         .claim = { .token = l->token,
                                                    .node = bytes_of(e->conf.node),
                                                    .boot = bytes_of(e->boot),
                                                    .queues = p->queues,
                                                    .n_queues = p->n_queues,
                                                    .types = e->registry.types,
                                                    .n_types = e->registry.n_types,
                                                    .has = p->has.v,
                                                    .n_has = p->has.n,
                                                    .max = max,
                                                    .width = p->slots,
                                                    .last = p->bulk ? BYTES_NONE : p->busiest_queue,
                                                    .without =
                                                        p->bulk ? p->busiest_queue : BYTES_NONE } },
                                 .done = claim_done };
    struct claim *c = &l->job.op.claim;
    pthread_mutex_lock(&p->lock);
    c->no_retry_alone = p->retry_alone;
    bool room = claim_quick(l, p, c);
    pthread_mutex_unlock(&p->lock);
    if (!room) {
        /* A claim that may have taken something is repeated with its token, later. */
        claim_failed(e, l);
        lease_spare(l);
        return NULL;
    }
    if (h)
        bulk_from(c, h, p, l->again);
    return &l->job;
}

void pool_work_came(struct exec *e, int64_t at_us)
{
    struct pool *p = &e->pool;
    pthread_mutex_lock(&p->lock);
    bool started = p->started;
    int64_t wait_us = at_us ? at_us - exec_now(e) : 0;
    if (wait_us <= 0)
        p->work_may_be_due = true;
    else
        next_claim_by(p, world_mono(&world_real) + wait_us);
    pthread_mutex_unlock(&p->lock);
    if (started)
        queue_nudge(&e->queue);
}
