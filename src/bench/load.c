/*
 * load.c - loads as a program that links libpawl makes them (load.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench/load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/world.h"
#include "bench/table.h"

/* A load that takes longer is stuck, not slow. */
#define STUCK_US (120 * SEC_US)
#define WAIT_US (30 * SEC_US)
#define BATCH_MAX_HERE 1000
#define THREADS_MAX 256
/* How many latencies each thread keeps; then the newest replace the oldest. */
#define KEPT_MAX 65536

enum pawl_status load_open(const struct load_conf *conf, struct pawl **out, struct pawl_err *err)
{
    /* Continuous gc: the shortest interval there is; the library itself decides the pauses between
     * steps. */
    struct pawl_options o = { PAWL_OPTIONS_INIT, .db = conf->url, .schema = conf->schema,
                              .node = conf->node, .gc_interval_us = conf->gc ? MS_US : -1 };
    return pawl_open(&o, out, err);
}

void load_end(struct pawl **p)
{
    pawl_close(*p);
}

/* ---- The handler ----------------------------------------------------------------------------- */

/* How many attempts began: tells load_work_off() when to stop, without asking the database. Static,
 * because a handler gets no argument from its program; benchmarks run one load at a time. */
static struct {
    atomic_llong begun;
    _Atomic double last; /* when the last one began, by bench_clock() */
    atomic_llong target;
    pthread_mutex_t lock;
    pthread_cond_t reached;
} noops = { .lock = PTHREAD_MUTEX_INITIALIZER, .reached = PTHREAD_COND_INITIALIZER };

static int noop(struct pawl_call *c)
{
    (void)c;
    atomic_store(&noops.last, bench_clock());
    if (atomic_fetch_add(&noops.begun, 1) + 1 == atomic_load(&noops.target)) {
        pthread_mutex_lock(&noops.lock);
        pthread_cond_broadcast(&noops.reached);
        pthread_mutex_unlock(&noops.lock);
    }
    return 0;
}

static int step_noop(struct pawl_call *c, void *arg)
{
    return pawl_reply_int(c, *(const int *)arg);
}

/* Steps one after another, each stored before the next begins. */
static int flow(struct pawl_call *c, int n)
{
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "step-%d", i % 100);
        if (pawl_step(
                c, &(struct pawl_step){ PAWL_STEP_INIT, .name = name, .run = step_noop, .arg = &i },
                NULL))
            return 0;
    }
    return pawl_reply_int(c, n);
}

static int flow10(struct pawl_call *c)
{
    return flow(c, 10);
}

static int flow1(struct pawl_call *c)
{
    return flow(c, 1);
}

static enum pawl_status handler_on(struct pawl *p, const char *type, pawl_handler *h,
                                   struct pawl_err *err)
{
    enum pawl_status st = pawl_on(pawl_program(p), type, "run", h);
    return st == PAWL_OK ? st : err_set(err, st, "the handler of \"%s\" was refused", type);
}

enum pawl_status load_start(struct pawl *p, struct pawl_err *err)
{
    enum pawl_status st = handler_on(p, LOAD_TYPE_NOOP, noop, err);
    return st == PAWL_OK ? pawl_start(p, NULL, err) : st;
}

enum pawl_status load_start_flows(struct pawl *p, int slots, struct pawl_err *err)
{
    enum pawl_status st = handler_on(p, LOAD_TYPE_NOOP, noop, err);
    if (st == PAWL_OK)
        st = handler_on(p, LOAD_TYPE_FLOW10, flow10, err);
    if (st == PAWL_OK)
        st = handler_on(p, LOAD_TYPE_FLOW1, flow1, err);
    struct pawl_workers w = { PAWL_WORKERS_INIT, .slots = slots };
    return st == PAWL_OK ? pawl_start(p, &w, err) : st;
}

static bool noops_wait(void)
{
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STUCK_US / SEC_US;
    pthread_mutex_lock(&noops.lock);
    while (atomic_load(&noops.begun) < atomic_load(&noops.target) && rc == 0)
        rc = pthread_cond_timedwait(&noops.reached, &noops.lock, &until);
    pthread_mutex_unlock(&noops.lock);
    return atomic_load(&noops.begun) >= atomic_load(&noops.target);
}

enum pawl_status load_work_off(struct pawl *p, size_t n, double *out_per_s, struct pawl_err *err)
{
    struct pawl_stats stats = { PAWL_STATS_INIT };
    atomic_store(&noops.begun, 0);
    atomic_store(&noops.target, (long long)n);
    double began = bench_clock();
    enum pawl_status st = load_start(p, err);
    if (st == PAWL_OK && !noops_wait())
        st = err_set(err, PAWL_BUSY, "%lld of %zu calls began within 120 s",
                     (long long)atomic_load(&noops.begun), n);
    atomic_store(&noops.target, 0);
    /* pawl_stop() returns when the last outcome is committed. */
    if (st == PAWL_OK)
        st = pawl_stop(p, STUCK_US, err);
    *out_per_s = (double)n / (bench_clock() - began);
    if (st != PAWL_OK)
        return st;
    pawl_stats(p, &stats);
    if (stats.completed != (int64_t)n)
        return err_set(err, PAWL_BROKEN, "%lld of %zu calls completed", (long long)stats.completed,
                       n);
    return PAWL_OK;
}

static int64_t completed(struct pawl *p)
{
    struct pawl_stats stats = { PAWL_STATS_INIT };
    pawl_stats(p, &stats);
    return stats.completed;
}

enum pawl_status load_first(struct pawl *p, size_t n, double *out_per_s, struct pawl_err *err)
{
    int64_t before = completed(p), now = before;
    double began = bench_clock(), until = began + STUCK_US / SEC_US;
    enum pawl_status st = pawl_pause(p, "default", false, err);
    while (st == PAWL_OK && (now = completed(p)) - before < (int64_t)n && bench_clock() < until)
        nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    *out_per_s = (double)(now - before) / (bench_clock() - began);
    if (st == PAWL_OK)
        st = pawl_pause(p, "default", true, err);
    if (st == PAWL_OK && now - before < (int64_t)n)
        st = err_set(err, PAWL_BUSY, "%lld of %zu calls completed within 120 s",
                     (long long)(now - before), n);
    return st;
}

/* ---- Batches --------------------------------------------------------------------------------- */

static enum pawl_status receipts_ok(const struct pawl_receipt *r, size_t n, struct pawl_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (r[i].status != PAWL_OK || r[i].duplicate)
            return err_set(err, r[i].status != PAWL_OK ? r[i].status : PAWL_BROKEN,
                           "call \"%s\": %s", r[i].id,
                           r[i].duplicate ? "is said to be known" : r[i].error);
    return PAWL_OK;
}

enum pawl_status load_submit(struct pawl *p, const struct load_batch *b, double *out_per_s,
                             struct pawl_err *err)
{
    struct pawl_spec *specs = calloc(b->batch, sizeof *specs);
    struct pawl_receipt *receipts = calloc(b->batch, sizeof *receipts);
    enum pawl_status st = specs && receipts ? PAWL_OK : err_no_memory(err, "a batch");
    double began = bench_clock();
    for (size_t at = 0; at < b->n && st == PAWL_OK; at += b->batch) {
        size_t n = MIN(b->batch, b->n - at);
        for (size_t i = 0; i < n; i++)
            specs[i] = (struct pawl_spec){ PAWL_SPEC_INIT,
                                           .id = b->ids ? b->ids[at + i].text : NULL,
                                           .type = b->type,
                                           .queue = b->queue,
                                           .needs = &b->need,
                                           .n_needs = b->need != NULL,
                                           .input = { PAWL_JSON, bench_input, bench_input_len } };
        st = pawl_submit(p, specs, n, 0, receipts, err);
        if (st == PAWL_OK)
            st = receipts_ok(receipts, n, err);
    }
    *out_per_s = (double)b->n / (bench_clock() - began);
    free(specs);
    free(receipts);
    return st;
}

/* ---- By hand --------------------------------------------------------------------------------- */

static void lease_end(struct pawl_lease **l)
{
    pawl_lease_free(*l);
}

static enum pawl_status finish_all(struct pawl *p, const struct pawl_lease *l, struct pawl_err *err)
{
    struct pawl_finish v[BATCH_MAX_HERE];
    enum pawl_state states[BATCH_MAX_HERE];
    for (size_t i = 0; i < l->n; i++) {
        if (l->calls[i].input.len != bench_input_len)
            return err_set(err, PAWL_BROKEN, "call \"%s\" came without its input", l->calls[i].id);
        v[i] =
            (struct pawl_finish){ PAWL_FINISH_INIT, .id = l->calls[i].id, .how = PAWL_END_RESULT };
    }
    enum pawl_status st = pawl_finish(p, l->token, v, l->n, states, err);
    for (size_t i = 0; i < l->n && st == PAWL_OK; i++)
        if (states[i] != PAWL_COMPLETED)
            st = err_set(err, PAWL_BROKEN, "call \"%s\" is %s", l->calls[i].id,
                         pawl_state_name(states[i]));
    return st;
}

enum pawl_status load_drain(struct pawl *p, size_t n, size_t max, double *out_per_s,
                            struct pawl_err *err)
{
    const char *types[] = { LOAD_TYPE_HAND };
    struct pawl_claim claim = { PAWL_CLAIM_INIT, .worker = "bench", .types = types,
                                .n_types = 1,    .max = (int)max,   .lease_us = 60 * SEC_US };
    enum pawl_status st = PAWL_OK;
    size_t finished = 0;
    double began = bench_clock();
    while (finished < n && st == PAWL_OK) {
        AUTO(lease_end) struct pawl_lease *l = NULL;
        st = pawl_claim(p, &claim, &l, err);
        if (st == PAWL_OK && l->n == 0)
            st = err_set(err, PAWL_BROKEN, "%zu of %zu calls could be claimed", finished, n);
        if (st == PAWL_OK)
            st = finish_all(p, l, err);
        if (st == PAWL_OK)
            finished += l->n;
    }
    *out_per_s = (double)finished / (bench_clock() - began);
    return st;
}

/* ---- Threads that wait ----------------------------------------------------------------------- */

struct caller {
    struct pawl *p;
    const char *type;
    double until;
    size_t done;
    bool to_handler;
    double *us; /* owned; KEPT_MAX of them */
    enum pawl_status status;
    struct pawl_err err;
    pthread_t thread;
};

static enum pawl_status call_once(struct caller *c)
{
    struct pawl_shown *shown = NULL;
    struct pawl_spec spec = { PAWL_SPEC_INIT, .type = c->type,
                              .input = { PAWL_JSON, bench_input, bench_input_len } };
    enum pawl_status st = pawl_submit_wait(c->p, &spec, WAIT_US, &shown, &c->err);
    if (st == PAWL_OK && pawl_shown_view(shown)->state != PAWL_COMPLETED)
        st = err_set(&c->err, PAWL_BROKEN, "call \"%s\" is %s", pawl_shown_view(shown)->id,
                     pawl_state_name(pawl_shown_view(shown)->state));
    pawl_shown_free(shown);
    return st;
}

static void *caller_main(void *arg)
{
    struct caller *c = arg;
    double now = bench_clock();
    while (now < c->until && c->status == PAWL_OK) {
        double began = now;
        c->status = call_once(c);
        now = bench_clock();
        double end = c->to_handler ? atomic_load(&noops.last) : now;
        c->us[c->done++ % KEPT_MAX] = (end - began) * 1e6;
    }
    return NULL;
}

static enum pawl_status callers_run(struct caller *v, size_t n, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    size_t started = 0;
    for (; started < n && st == PAWL_OK; started++)
        if (pthread_create(&v[started].thread, NULL, caller_main, &v[started]) != 0) {
            st = err_set(err, PAWL_BUSY, "thread %zu of %zu could not be started", started + 1, n);
            break;
        }
    for (size_t i = 0; i < started; i++) {
        pthread_join(v[i].thread, NULL);
        if (st == PAWL_OK && v[i].status != PAWL_OK) {
            st = v[i].status;
            *err = v[i].err;
        }
    }
    return st;
}

static void callers_sum(struct caller *v, size_t n, double *all, struct load_waited *out)
{
    size_t total = 0, kept = 0;
    for (size_t i = 0; i < n; i++) {
        size_t mine = MIN(v[i].done, KEPT_MAX);
        total += v[i].done;
        memcpy(all + kept, v[i].us, mine * sizeof *all);
        kept += mine;
    }
    out->per_s = (double)total;
    out->p50_us = bench_quantile(all, kept, 0.50);
    out->p99_us = bench_quantile(all, kept, 0.99);
}

enum pawl_status load_wait(struct pawl *p, const struct load_wait *w, struct load_waited *out,
                           struct pawl_err *err)
{
    struct caller v[THREADS_MAX] = { 0 };
    size_t n = MIN(w->threads, THREADS_MAX);
    double *us = malloc(2 * n * KEPT_MAX * sizeof *us);
    if (!us)
        return err_no_memory(err, "latencies");
    double began = bench_clock();
    for (size_t i = 0; i < n; i++)
        v[i] = (struct caller){ .p = p,
                                .type = w->type ? w->type : LOAD_TYPE_NOOP,
                                .until = began + w->seconds,
                                .to_handler = w->to_handler,
                                .us = us + i * KEPT_MAX };
    enum pawl_status st = callers_run(v, n, err);
    double took = bench_clock() - began;
    callers_sum(v, n, us + n * KEPT_MAX, out);
    out->per_s /= took;
    free(us);
    return st;
}
