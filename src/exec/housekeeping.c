/*
 * housekeeping.c - housekeeping: the thread for periodic work, such as heartbeats, sweeps,
 * deadlines, reads for waiters, gc and checkpoints.
 *
 * It sleeps until the earliest thing is due. Its writes are jobs like all others, at most one of
 * each kind under way; its reads use a connection of its own.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/housekeeping.h"

#include <stddef.h>
#include <time.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "exec/internal.h"
#include "exec/run.h"
#include "feature/workflow.h"

/* A finish that was not stored is posted again after this. */
#define REPOST_US (50 * MS_US)
/* This long after a refused write, a heartbeat is tried through the store thread: no other write
 * may come that would show that the database stores again. */
#define WRITE_AGAIN_US (1 * SEC_US)
#define TEND_US (100 * MS_US)
/* How often the difference of the clocks is measured. */
#define CLOCK_US (5 * SEC_US)
/* While there is other work, gc takes at most one part in this many of the time. */
#define GC_SHARE 16
#define LOOK_MAX 1000

enum pawl_status housekeeping_init(struct exec *e, struct pawl_err *err)
{
    pthread_condattr_t attr;
    struct housekeeping *k = mem_zalloc(sizeof(*k));
    if (!k)
        return err_no_memory(err, "making the housekeeping thread");
    pthread_mutex_init(&k->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&k->wake, &attr);
    pthread_condattr_destroy(&attr);
    atomic_init(&k->wake_us, 0);
    schedules_init(&k->schedules);
    for (size_t i = 0; i < PERIODIC_COUNT; i++) {
        k->periodics[i].e = e;
        arena_init(&k->periodics[i].arena, 64 << 20);
    }
    e->housekeeping = k;
    return exec_store(e, STORE_READER, &k->store, err);
}

void housekeeping_release(struct exec *e)
{
    struct housekeeping *k = e->housekeeping;
    if (!k)
        return;
    for (struct write_job *j = k->again, *next; j; j = next) {
        next = j->next;
        run_abandon(j);
    }
    for (size_t i = 0; i < PERIODIC_COUNT; i++)
        arena_release(&k->periodics[i].arena);
    peers_release(&k->peers);
    store_close(k->store);
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->wake);
    mem_free(k);
    e->housekeeping = NULL;
}

static void wake(struct housekeeping *k, bool *flag)
{
    pthread_mutex_lock(&k->lock);
    *flag = true;
    pthread_mutex_unlock(&k->lock);
    pthread_cond_signal(&k->wake);
}

void housekeeping_nudge(struct exec *e)
{
    wake(e->housekeeping, &e->housekeeping->nudged);
}

void housekeeping_close(struct exec *e)
{
    wake(e->housekeeping, &e->housekeeping->closed);
}

void housekeeping_by(struct exec *e, int64_t mono_us)
{
    if (mono_us < atomic_load_explicit(&e->housekeeping->wake_us, memory_order_relaxed))
        housekeeping_nudge(e);
}

void housekeeping_repost(struct exec *e, struct write_job *j)
{
    struct housekeeping *k = e->housekeeping;
    pthread_mutex_lock(&k->lock);
    j->next = k->again;
    k->again = j;
    if (!k->again_us)
        k->again_us = world_mono(&world_real) + REPOST_US;
    k->nudged = true;
    pthread_mutex_unlock(&k->lock);
    pthread_cond_signal(&k->wake);
}

static void repost_due(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    struct pawl_err err;
    pthread_mutex_lock(&k->lock);
    struct write_job *list = NULL;
    if (k->again && k->again_us <= now_us) {
        list = TAKE(k->again);
        k->again_us = 0;
    }
    pthread_mutex_unlock(&k->lock);
    for (struct write_job *j = list, *next; j; j = next) {
        next = j->next;
        if (queue_put(&e->queue, j, true, &err) != PAWL_OK)
            run_abandon(j);
    }
}

/* ---- Periodic writes ------------------------------------------------------------------------- */

static struct periodic *periodic_of(struct write_job *j)
{
    return (struct periodic *)((char *)j - offsetof(struct periodic, job));
}

/* A process that only submits may use a database account without the rights for this; then it is
 * left to the nodes. */
static bool left_to_nodes(struct exec *e, const struct periodic *c)
{
    return atomic_load(&c->denied) && !exec_entered(e);
}

/* Log a failed periodic write, unless the database is away, which keep_clock() logs. */
static void tell_failure(struct exec *e, struct periodic *c)
{
    const struct op *op = &c->job.op;
    bool before = op->status == PAWL_INVALID && atomic_exchange(&c->denied, true);
    bool said = before && left_to_nodes(e, c); /* a node tries again, and logs it each time */
    if (op->status != PAWL_OK && op->status != PAWL_LOST_LEASE && op->status != PAWL_STATE &&
        op->status != PAWL_BUSY && op->status != PAWL_UNKNOWN && !said)
        log_line(LOG_WARN, "%s: %s%s", op_name(op->kind), op->err.text,
                 left_to_nodes(e, c) ? "; left to the nodes" : "");
    if (op->status == PAWL_OK)
        atomic_store(&c->denied, false);
}

/* On the store thread. */
static void periodic_done(struct write_job *j)
{
    struct periodic *c = periodic_of(j);
    struct exec *e = c->e;
    if (j->op.n_ended)
        exec_look(e, j->op.ended, j->op.n_ended);
    if (j->op.kind == OP_BEAT && j->op.status == PAWL_OK)
        member_stored(e, c->began_us);
    else if (j->op.kind == OP_BEAT)
        member_refused(e, j->op.err.text);
    if (j->op.kind == OP_LEAD)
        lead_done(e, c);
    if ((j->op.kind == OP_BEAT || j->op.kind == OP_LEAD) && j->op.status == PAWL_LOST_LEASE)
        housekeeping_doubt(e);
    const struct sweep *s = j->op.kind == OP_SWEEP ? &j->op.sweep : NULL;
    /* What left the line of its key lets the next call of it run. */
    if ((s && s->reclaimed + s->expired + s->cancelled + s->joined > 0) ||
        (j->op.kind == OP_BURY && j->op.node.reclaimed))
        exec_work_came(e);
    tell_failure(e, c);
    c->ended_us = world_mono(&world_real);
    atomic_store(&c->under_way, false);
    housekeeping_nudge(e);
}

/* aside: on a thread of its own, where the engine has several writers. */
static bool post(struct periodic *c, struct op op, bool aside)
{
    struct pawl_err err;
    if (atomic_load(&c->under_way))
        return false;
    arena_reset(&c->arena);
    op.a = &c->arena;
    c->job = (struct write_job){ .op = op, .done = periodic_done, .weight = 1 };
    c->began_us = world_mono(&world_real);
    atomic_store(&c->under_way, true);
    if (aside && solo_post(c->e, &c->job))
        return true;
    if (queue_put(&c->e->queue, &c->job, false, &err) == PAWL_OK)
        return true;
    atomic_store(&c->under_way, false);
    return false;
}

bool periodic_post(struct periodic *c, struct op op)
{
    return post(c, op, false);
}

bool periodic_post_aside(struct periodic *c, struct op op)
{
    return post(c, op, true);
}

static bool periodic_free(const struct periodic *c)
{
    return !atomic_load(&c->under_way);
}

/* When a heartbeat goes through the store thread: every one on an engine with one writer, and on
 * every engine one to find out whether writes that were refused are stored again; also while the
 * heartbeat thread's own are refused, because an idle node may write nothing else for long. */
static int64_t beat_due(const struct exec *e)
{
    const struct housekeeping *k = e->housekeeping;
    int64_t due_us = e->traits & STORE_ONE_WRITER ? k->beat_us : INT64_MAX;
    int64_t refused_us = unwritable_last(e);
    bool refused = refused_us || (atomic_load(&k->beat_refused) && !atomic_load(&e->away_us));
    if (refused && periodic_free(&k->periodics[PERIODIC_BEAT]))
        due_us = MIN(due_us, MAX(refused_us, k->beat_tried_us) + WRITE_AGAIN_US);
    return due_us;
}

static void beat(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    bool beats_here = e->traits & STORE_ONE_WRITER;
    struct op op;
    if (now_us < beat_due(e) && !(beats_here && atomic_load(&k->registry)))
        return;
    k->beat_tried_us = now_us;
    if (!member_beat(e, &op))
        return;
    k->beat_us = now_us + e->conf.heartbeat_interval_us;
    periodic_post(&k->periodics[PERIODIC_BEAT], op);
    if (!beats_here)
        return;
    k->due_us = peers_look(e, k->store, now_us);
    k->beat_us = MIN(k->beat_us, k->due_us);
}

void housekeeping_registry(struct exec *e)
{
    atomic_store(&e->housekeeping->registry, true);
    housekeeping_nudge(e);
}

void housekeeping_doubt(struct exec *e)
{
    atomic_store(&e->housekeeping->doubt, true);
    housekeeping_nudge(e);
}

void housekeeping_probe(struct exec *e)
{
    if (!atomic_load(&e->away_us) && !atomic_exchange(&e->housekeeping->probe, true))
        housekeeping_nudge(e);
}

/* Does the registry have our name with another boot? */
static enum pawl_status taken(struct exec *e, bool *out, struct pawl_err *err)
{
    struct node_rows rows;
    struct arena a;
    arena_init(&a, 16 << 20);
    enum pawl_status st = store_nodes(e->housekeeping->store, &a, &rows, err);
    *out = false;
    for (size_t i = 0; st == PAWL_OK && i < rows.n; i++)
        if (bytes_eq(rows.v[i].node, bytes_of(e->conf.node)))
            *out = !bytes_eq(rows.v[i].boot, bytes_of(e->boot));
    arena_release(&a);
    return st;
}

/* A heartbeat or claim was refused because this process is not the node. Either another process has
 * the name, and this one stops working. Or this process was silent for so long that another node
 * declared it dead: its calls belong to other nodes by now, so its finishes are void, but it lives,
 * and enters the registry again. */
static void settle_doubt(struct exec *e)
{
    struct pawl_err err;
    bool replaced;
    if (!atomic_exchange(&e->housekeeping->doubt, false))
        return;
    pthread_mutex_lock(&e->pool.lock);
    bool on = !e->pool.replaced;
    pthread_mutex_unlock(&e->pool.lock);
    if (!on || !exec_entered(e))
        return;
    enum pawl_status st = taken(e, &replaced, &err);
    if (st == PAWL_OK && replaced) {
        pool_replaced(e);
        return;
    }
    if (st == PAWL_OK)
        st = exec_join(e, &err);
    if (st == PAWL_OK)
        registry_changed(e);
    if (st == PAWL_OK)
        log_line(LOG_WARN,
                 "node \"%s\": other nodes declared it dead; it has entered the registry again",
                 e->conf.node);
    else
        atomic_store(&e->housekeeping->doubt, true); /* The database was away: try again in the next
                                                  round. */
    exec_work_came(e);
}

static void sweep(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    struct periodic *c = &k->periodics[PERIODIC_SWEEP];
    if (!periodic_free(c))
        return;
    if (c->job.op.kind == OP_SWEEP && c->job.op.status == PAWL_OK && k->swept) {
        const struct sweep *s = &c->job.op.sweep;
        k->swept = false;
        if (s->more)
            k->sweep_us = now_us;
        else if (s->next_us)
            k->sweep_us = MIN(k->sweep_us, now_us + MAX(s->next_us - exec_now(e), 0));
    }
    if (now_us < k->sweep_us)
        return;
    k->sweep_us = now_us + e->conf.reclaim_interval_us;
    if (left_to_nodes(e, c) || lead_elsewhere(e, LEAD_MAINTENANCE, now_us))
        return;
    k->swept = periodic_post(
        c, (struct op){ .kind = OP_SWEEP,
                        .sweep = { .max = SWEEP_STEP_MAX, .fail_lost = e->conf.fail_lost } });
}

/* Is there other work for the store thread? */
static bool others_work(struct exec *e)
{
    pthread_mutex_lock(&e->pool.lock);
    bool busy = e->pool.n_running || e->pool.n_queued;
    pthread_mutex_unlock(&e->pool.lock);
    return busy || queue_depth(&e->queue);
}

/* One step of gc, then a pause in proportion to what it cost, so that gc takes a bounded share
 * while there is other work. Without other work there is no pause. */
static void gc(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    struct periodic *c = &k->periodics[PERIODIC_GC];
    if (!e->conf.gc_interval_us || !periodic_free(c))
        return;
    if (k->collected) {
        k->collected = false;
        bool more = c->job.op.status == PAWL_OK && c->job.op.gc.more;
        int64_t cost_us = c->ended_us - c->began_us;
        int64_t pause_us = others_work(e) ? cost_us * GC_SHARE : 0;
        k->gc_us = now_us + (more ? pause_us : e->conf.gc_interval_us);
    }
    if (now_us < k->gc_us)
        return;
    k->gc_us = now_us + e->conf.gc_interval_us;
    if (left_to_nodes(e, c) || lead_elsewhere(e, LEAD_MAINTENANCE, now_us))
        return;
    k->collected = periodic_post(c, (struct op){ .kind = OP_GC, .gc = { .max = GC_STEP_MAX } });
}

static void tend(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    struct pawl_err err;
    int64_t commits = atomic_load(&e->stats.commits);
    if (now_us < k->tend_us || commits == k->tended_commits)
        return;
    k->tend_us = now_us + TEND_US;
    k->tended_commits = commits;
    if (store_tend(k->store, &err) != PAWL_OK && err.status != PAWL_BUSY)
        log_line(LOG_WARN, "maintenance of the database: %s", err.text);
}

/* ---- Reads: what other processes did --------------------------------------------------------- */

/* Read all calls whose waiters were marked, in one batch, and tell those whose call has ended. */
static void look(struct exec *e)
{
    struct housekeeping *k = e->housekeeping;
    struct bytes *ids;
    struct pawl_err err;
    struct waiter *told = NULL;
    struct get g = { 0 };
    struct arena a;
    uint64_t came = 0;
    arena_init(&a, 256 << 20);
    ids = arena_alloc(&a, LOOK_MAX * sizeof(*ids));
    g = (struct get){ .ids = ids, .with = WITH_INPUT | WITH_RESULT };
    g.n = ids ? waiters_marked(&e->waiters, &a, ids, LOOK_MAX, &came) : 0;
    if (g.n && store_get(k->store, &a, &g, &err) == PAWL_OK) {
        for (size_t i = 0; i < g.n; i++)
            if (g.found[i] == PAWL_OK && pawl_state_ended(g.out[i].state))
                told = waiters_tell(&e->waiters, &g.out[i], came, told);
        k->look_again = g.n == LOOK_MAX;
        atomic_fetch_add(&e->found, told != NULL);
    } else if (g.n) {
        for (size_t i = 0; i < g.n; i++)
            waiters_mark(&e->waiters, g.ids[i]); /* The database was away: mark them again. */
        k->look_us = world_mono(&world_real) + REPOST_US;
    }
    waiters_wake(told);
    arena_release(&a);
}

/* A run that has begun has no cancel request: that it undoes is all there is to be seen. */
static void look_for_cancelled_runs(struct exec *e, struct arena *a)
{
    int64_t *seqs;
    size_t n;
    struct pawl_err err;
    if (e->traits & STORE_DRIVEN && exec_takes_steps(e) &&
        workflow_undoing_read(e->housekeeping->store, a, &seqs, &n, &err) == PAWL_OK)
        exec_undoing(e, seqs, n);
}

static void look_for_cancel_requests(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    struct cancel_requests w;
    struct pawl_err err;
    struct arena a;
    if (!(e->traits & STORE_SHARED) || now_us < k->cancel_requests_us)
        return;
    k->cancel_requests_us = now_us + e->conf.reclaim_interval_us;
    pthread_mutex_lock(&e->pool.lock);
    bool busy = e->pool.n_running || e->pool.n_queued;
    pthread_mutex_unlock(&e->pool.lock);
    if (!busy)
        return;
    arena_init(&a, 16 << 20);
    if (store_cancel_requests(k->store, &a, &w, &err) == PAWL_OK)
        for (size_t i = 0; i < w.n; i++)
            exec_cancel(e, w.seqs[i]);
    look_for_cancelled_runs(e, &a);
    arena_release(&a);
}

/* The database answers. After an outage look at everything at once: notifications were lost, and
 * what was due is late. */
static void back(struct exec *e)
{
    int64_t since_us = atomic_exchange(&e->away_us, 0);
    if (!since_us)
        return;
    log_line(LOG_WARN, "the database answers again, after %.1f s",
             (double)(world_mono(&world_real) - since_us) / SEC_US);
    waiters_mark_all(&e->waiters);
    exec_work_came(e);
    beat_nudge(e);
    unwritable_restart(e);
}

/* Measure the difference of the clocks, and with that whether the database answers at all. */
static void keep_clock(struct exec *e, int64_t mono_us)
{
    struct housekeeping *k = e->housekeeping;
    struct pawl_err err;
    int64_t none = 0;
    bool probe = atomic_exchange(&k->probe, false);
    if (mono_us < k->clock_us && !probe)
        return;
    if (exec_measure_clock(e, k->store, &err) == PAWL_OK) {
        k->clock_us = mono_us + CLOCK_US;
        back(e);
        return;
    }
    k->clock_us = mono_us + PROBE_US;
    if (atomic_compare_exchange_strong(&e->away_us, &none, mono_us))
        log_line(LOG_ERROR, "the database does not answer: %s", err.text);
}

/* ---- The round ------------------------------------------------------------------------------- */

static int64_t round_once(struct exec *e)
{
    struct housekeeping *k = e->housekeeping;
    int64_t now_us = world_mono(&world_real);
    keep_clock(e, now_us);
    unwritable_look(e);
    int64_t next_us = MIN(pool_deadlines(e, now_us), pool_stale(e, now_us));
    repost_due(e, now_us);
    settle_doubt(e);
    beat(e, now_us);
    lead_round(e, now_us);
    schedules_round(e, now_us);
    sweep(e, now_us);
    gc(e, now_us);
    look_for_cancel_requests(e, now_us);
    if (now_us >= k->look_us && waiters_any_marked(&e->waiters))
        look(e);
    tend(e, now_us);
    failures_flush(e, false);
    if (k->look_again) {
        k->look_again = false;
        return now_us;
    }
    next_us = MIN(MIN(next_us, k->clock_us), schedules_next(e));
    /* A periodic write that is under way nudges us at its end, which may be far off: its commit may
     * stall.
     */
    if (periodic_free(&k->periodics[PERIODIC_SWEEP]))
        next_us = MIN(next_us, k->sweep_us);
    bool entered = exec_entered(e);
    if (entered)
        next_us = MIN(next_us, beat_due(e));
    if (entered || !(e->traits & STORE_ONE_WRITER))
        next_us = MIN(next_us, k->lead_us);
    if (e->conf.gc_interval_us && periodic_free(&k->periodics[PERIODIC_GC]))
        next_us = MIN(next_us, k->gc_us);
    if (waiters_any_marked(&e->waiters))
        next_us = MIN(next_us, k->look_us);
    if (k->tended_commits != atomic_load(&e->stats.commits))
        next_us = MIN(next_us, k->tend_us);
    return next_us;
}

void *housekeeping_main(void *arg)
{
    struct exec *e = arg;
    struct housekeeping *k = e->housekeeping;
    for (;;) {
        int64_t next_us = round_once(e);
        pthread_mutex_lock(&k->lock);
        if (k->again)
            next_us = MIN(next_us, k->again_us);
        atomic_store(&k->wake_us, next_us);
        struct timespec until = { .tv_sec = next_us / SEC_US, .tv_nsec = next_us % SEC_US * 1000 };
        while (!k->nudged && !k->closed && !pthread_cond_timedwait(&k->wake, &k->lock, &until))
            ;
        k->nudged = false;
        bool closed = k->closed;
        atomic_store(&k->wake_us, 0);
        pthread_mutex_unlock(&k->lock);
        if (closed)
            return NULL;
    }
}
