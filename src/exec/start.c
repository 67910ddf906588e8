/*
 * start.c - starting the workers and stopping them, with grace and without.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <time.h>

#include "base/hook.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "exec/internal.h"
#include "exec/housekeeping.h"
#include "exec/run.h"

static enum pawl_status copy_queues(struct pool *p, const struct exec_workers *w,
                                    struct pawl_err *err)
{
    for (size_t i = 0; i < p->n_queues; i++)
        mem_free((char *)p->queues[i].data); /* left by a start that failed further on */
    mem_free(p->queues);
    p->queues = NULL;
    p->n_queues = 0;
    if (!w->n_queues)
        return PAWL_OK;
    p->queues = mem_zalloc(w->n_queues * sizeof(*p->queues));
    for (size_t i = 0; p->queues && i < w->n_queues; i++) {
        size_t len = strlen(w->queues[i]);
        char *text = mem_alloc(len + 1);
        if (!text)
            return err_no_memory(err, "starting the workers");
        memcpy(text, w->queues[i], len + 1);
        p->queues[p->n_queues++] = (struct bytes){ text, len };
    }
    return p->queues ? PAWL_OK : err_no_memory(err, "starting the workers");
}

/* Enter the registry as a process without HTTP. */
static enum pawl_status enter(struct exec *e, const struct exec_workers *w, struct pawl_err *err)
{
    if (exec_entered(e))
        return PAWL_OK;
    return exec_enter(e,
                      &(struct exec_member){ .roles = DUTY_WORKER | DUTY_SCHEDULER,
                                             .slots = w->slots,
                                             .queues = w->queues,
                                             .n_queues = w->n_queues,
                                             .has = w->has,
                                             .n_has = w->n_has },
                      err);
}

/* A setting without effect is better known. */
static void warn_no_version(const struct exec *e)
{
    const struct registry *r = &e->registry;
    bool any = !e->conf.pin_versions;
    for (size_t i = 0; i < r->n && !any; i++)
        any = r->v[i].version.data != NULL;
    if (!any)
        log_line(LOG_WARN, "versions is pin, and no handler of this process has a version: runs "
                           "that begin here are not pinned (pawl_module_version)");
}

enum pawl_status exec_start(struct exec *e, const struct exec_workers *w, struct pawl_err *err)
{
    struct pool *p = &e->pool;
    if (pool_started(p))
        return err_set(err, PAWL_STATE, "the workers were started already");
    if (w->slots < 1 || w->slots > SLOTS_MAX)
        return err_set(err, PAWL_INVALID, "%d slots: must be 1 to %d", w->slots, SLOTS_MAX);
    if (!e->registry.n)
        return err_set(err, PAWL_INVALID, "no handler is registered: there is nothing to run");
    enum pawl_status st = registry_seal(&e->registry, err);
    if (st == PAWL_OK)
        st = durations_init(&p->durations, &e->registry, err);
    if (st == PAWL_OK)
        st = copy_queues(p, w, err);
    if (st == PAWL_OK)
        st = has_make(&p->has, w->has, w->n_has, err);
    if (st == PAWL_OK)
        st = has_versions(&p->has, &e->registry, err);
    if (st == PAWL_OK)
        st = enter(e, w, err); /* The first heartbeat is stored before anything is claimed. */
    if (st != PAWL_OK)
        return st;
    int made = 0;
    p->slots = w->slots;
    while (made < w->slots && pool_add_worker(e))
        made++;
    if (!made)
        return err_no_memory(err, "starting the workers");
    if (made < w->slots)
        log_line(LOG_WARN, "%d workers run instead of %d: no more threads could be made", made,
                 w->slots);
    warn_no_version(e);
    pthread_mutex_lock(&p->lock);
    p->slots = made; /* a lease records how many of its calls may run at once */
    p->started = true;
    p->work_may_be_due = true;
    pthread_mutex_unlock(&p->lock);
    housekeeping_nudge(e);
    queue_nudge(&e->queue);
    return PAWL_OK;
}

bool exec_started(struct exec *e)
{
    return pool_started(&e->pool);
}

/* Wait until every worker has left, or until then (monotonic). Returns how many have not. */
static int wait_quiet(struct pool *p, int64_t until_us)
{
    struct timespec until = { .tv_sec = until_us / SEC_US, .tv_nsec = until_us % SEC_US * 1000 };
    pthread_mutex_lock(&p->lock);
    while (p->threads && !pthread_cond_timedwait(&p->quiet, &p->lock, &until))
        ;
    int left = p->threads;
    pthread_mutex_unlock(&p->lock);
    return left;
}

/* The results of a longer run are stored one finish after another, and a refused finish is posted
 * again; leaving the registry hands back whatever is not stored. So wait for them, no longer than
 * this. */
static void wait_stored(struct pool *p, int64_t until_us)
{
    struct timespec until = { .tv_sec = until_us / SEC_US, .tv_nsec = until_us % SEC_US * 1000 };
    pthread_mutex_lock(&p->lock);
    while (p->finishes_in_flight && !pthread_cond_timedwait(&p->quiet, &p->lock, &until))
        ;
    pthread_mutex_unlock(&p->lock);
}

/* Handlers that look get a moment to see that they should stop; then their calls are handed back.
 */
static void stop_hard(struct exec *e)
{
    struct pool *p = &e->pool;
    struct pawl_call *v[SLOTS_MAX + HUNG_MAX];
    size_t n = pool_pick(p, pool_any, 0, v, COUNT_OF(v));
    for (size_t i = 0; i < n; i++)
        attempt_stop(v[i], STOP_PROCESS);
    wait_quiet(p, world_mono(&world_real) + 200 * MS_US);
    for (size_t i = 0; i < n; i++) {
        attempt_take_over(v[i], ATTEMPT_RUNNING, END_RELEASE, NULL);
        attempt_unref(v[i]);
    }
}

/* Take everything that has not begun out of the queue; under the lock. */
static struct run *take_queued(struct pool *p)
{
    struct run *queued = TAKE(p->head);
    p->tail = NULL;
    p->n_queued = p->n_bulk = 0;
    for (const struct run *r = queued; r; r = r->next)
        pool_count_slow(p, r->v, false);
    return queued;
}

static void hand_back(struct run *queued)
{
    for (struct run *r = queued, *next; r; r = next) {
        next = r->next;
        run_release(r);
    }
}

/* Claim no more, and hand back what has not begun. True the first time. */
static bool stop_claiming(struct exec *e)
{
    struct pool *p = &e->pool;
    pthread_mutex_lock(&p->lock);
    bool first = !p->stopping;
    p->stopping = true;
    struct run *queued = take_queued(p);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    hand_back(queued);
    return first;
}

void exec_drain(struct exec *e, bool drained)
{
    struct pool *p = &e->pool;
    pthread_mutex_lock(&p->lock);
    p->drained = drained;
    struct run *queued = drained ? take_queued(p) : NULL;
    pthread_mutex_unlock(&p->lock);
    hand_back(queued);
    if (!drained)
        exec_work_came(e);
}

void pool_cut_off(struct exec *e, bool cut)
{
    struct pool *p = &e->pool;
    struct pawl_call *v[SLOTS_MAX + HUNG_MAX];
    pthread_mutex_lock(&p->lock);
    p->cut = cut;
    struct run *queued = cut ? take_queued(p) : NULL;
    pthread_mutex_unlock(&p->lock);
    hand_back(queued);
    size_t n = cut ? pool_pick(p, pool_any, 0, v, COUNT_OF(v)) : 0;
    for (size_t i = 0; i < n; i++) {
        attempt_stop(v[i], STOP_PROCESS);
        attempt_unref(v[i]);
    }
    if (!cut)
        exec_work_came(e);
}

void pool_take_all(struct exec *e)
{
    struct pawl_call *v[SLOTS_MAX + HUNG_MAX];
    size_t n = pool_pick(&e->pool, pool_any, 0, v, COUNT_OF(v));
    for (size_t i = 0; i < n; i++) {
        if (attempt_take_over(v[i], ATTEMPT_RUNNING, END_RELEASE, NULL))
            pool_hung(v[i]);
        attempt_unref(v[i]);
    }
}

bool exec_drained(struct exec *e)
{
    pthread_mutex_lock(&e->pool.lock);
    bool drained = e->pool.drained;
    pthread_mutex_unlock(&e->pool.lock);
    return drained;
}

enum pawl_status exec_stop(struct exec *e, int64_t grace_us, struct pawl_err *err)
{
    struct pool *p = &e->pool;
    if (!pool_started(p)) {
        exec_leave(e);
        return PAWL_OK;
    }
    int64_t until_us = world_mono(&world_real) + grace_us;
    bool first = stop_claiming(e);
    housekeeping_registry(e); /* Resign the roles that this node holds. */
    int left = wait_quiet(p, until_us);
    if (left) {
        stop_hard(e);
        left = wait_quiet(p, 0);
    }
    wait_stored(p, MAX(until_us, world_mono(&world_real) + SLOWER(SEC_US)));
    if (first)
        exec_leave(e);
    if (!left)
        return PAWL_OK;
    return err_set(err, PAWL_BUSY,
                   "%d handlers did not return in time; their calls were handed back", left);
}
