/*
 * worker.c - threads that take pending events and give them their values.
 *
 * Each has its own connection and shares with the others only the list of events that failed and
 * the stop flag. An event whose value cannot be made is skipped by all workers of this process, for
 * a time that doubles with each failure; the others continue after it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <pthread.h>
#include <time.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "events/table.h"

#define SKIP_FIRST_US SEC_US
#define SKIP_MAX_US (60 * SEC_US)
/* The wait after a conflict with another transaction, and after a database that does not answer. */
#define MET_US (5 * MS_US)
#define AWAY_US (250 * MS_US)
/* The same kind of failure is logged at most this often. */
#define SAY_US (10 * SEC_US)

/* An event that failed. */
struct skip {
    int64_t id, until_us, for_us;
};

struct events_workers {
    struct events_workers_conf conf;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool stopping;
    struct skip skips[EVENTS_SKIP_MAX];
    size_t n_skips;
    struct worker *v; /* owned */
    size_t n;
    atomic_llong done, failed, polls, empty, again;
};

struct worker {
    struct events_workers *w;
    struct events_db *db; /* owned */
    pthread_t thread;
    bool runs;
    int single; /* batches of one that are left, to find out which event fails */
    bool idle;  /* its last poll was empty */
    int64_t said_us;
};

static size_t a_word(void *ctx, int64_t id, char out[EVENT_VALUE_MAX + 1])
{
    (void)ctx, (void)id;
    return event_word(&world_real, out);
}

/* ---- Events that failed ---------------------------------------------------------------------- */

/* The entry of this id, or room for it: of too many, the entry that ends first is replaced. */
static struct skip *skip_slot(struct events_workers *w, int64_t id)
{
    struct skip *soonest = NULL;
    for (size_t i = 0; i < w->n_skips; i++) {
        if (w->skips[i].id == id)
            return &w->skips[i];
        if (!soonest || w->skips[i].until_us < soonest->until_us)
            soonest = &w->skips[i];
    }
    struct skip *s = w->n_skips < EVENTS_SKIP_MAX ? &w->skips[w->n_skips++] : soonest;
    *s = (struct skip){ .id = id };
    return s;
}

static void skip_add(void *ctx, int64_t id)
{
    struct events_workers *w = ctx;
    int64_t first = w->conf.skip_us ? w->conf.skip_us : SKIP_FIRST_US;
    pthread_mutex_lock(&w->lock);
    struct skip *s = skip_slot(w, id);
    s->for_us = s->for_us ? MIN(s->for_us * 2, MAX(SKIP_MAX_US, first)) : first;
    s->until_us = world_mono(&world_real) + s->for_us;
    pthread_mutex_unlock(&w->lock);
    atomic_fetch_add(&w->failed, 1);
}

/* The ids to skip now; 0, which no event has, is always among them. */
static size_t skip_list(struct events_workers *w, int64_t out[EVENTS_SKIP_MAX + 1])
{
    int64_t now = world_mono(&world_real);
    size_t n = 0, kept = 0;
    out[n++] = 0;
    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->n_skips; i++) {
        const struct skip *s = &w->skips[i];
        if (s->until_us > now)
            out[n++] = s->id;
        /* How often it failed is remembered for the same time again. */
        if (s->until_us + s->for_us > now)
            w->skips[kept++] = *s;
    }
    w->n_skips = kept;
    pthread_mutex_unlock(&w->lock);
    return n;
}

/* ---- One worker ------------------------------------------------------------------------------ */

static bool stopping(struct events_workers *w)
{
    pthread_mutex_lock(&w->lock);
    bool yes = w->stopping;
    pthread_mutex_unlock(&w->lock);
    return yes;
}

/* Wait for that time, or until it stops. */
static void rest(struct events_workers *w, int64_t us)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = t.tv_nsec + us % SEC_US * 1000;
    t.tv_sec += us / SEC_US + ns / 1000000000;
    t.tv_nsec = ns % 1000000000;
    pthread_mutex_lock(&w->lock);
    while (!w->stopping && pthread_cond_timedwait(&w->cond, &w->lock, &t) == 0) {
    }
    pthread_mutex_unlock(&w->lock);
}

static int64_t some_of(int64_t us)
{
    return (int64_t)(world_unit(&world_real) * (double)us);
}

static void say(struct worker *k, const struct pawl_err *err)
{
    int64_t now = world_mono(&world_real);
    if (k->said_us && now - k->said_us < SAY_US)
        return;
    k->said_us = now;
    log_line(err->status == PAWL_BUSY || err->status == PAWL_UNKNOWN ? LOG_WARN : LOG_ERROR,
             "events: %s", err->text);
}

/* A batch failed, not because of a conflict. If it had one event, that event is skipped; of several
 * it is unknown which one failed, so they are taken one by one. */
static void blame(struct worker *k, const struct event_work *b, const struct pawl_err *err)
{
    if (b->taken > 1)
        k->single = EVENTS_BATCH_MAX;
    else if (b->taken == 1)
        skip_add(k->w, b->first);
    say(k, err);
}

static void one_batch(struct worker *k)
{
    struct events_workers *w = k->w;
    struct pawl_err err = { 0 };
    int64_t skip[EVENTS_SKIP_MAX + 1];
    struct event_work b = { .max = k->single > 0 ? 1 : (size_t)w->conf.batch,
                            .idle = k->idle,
                            .skip = skip,
                            .n_skip = skip_list(w, skip),
                            .make = w->conf.make,
                            .ctx = w->conf.ctx,
                            .failed = skip_add,
                            .failed_ctx = w };
    enum pawl_status st = events_db_work(k->db, &b, &err);
    atomic_fetch_add(&w->polls, 1);
    atomic_fetch_add(&w->done, (long long)b.done);
    if (k->single > 0)
        k->single--;
    k->idle = st == PAWL_OK && b.taken == 0;
    if (k->idle) {
        atomic_fetch_add(&w->empty, 1);
        rest(w, w->conf.poll_us + some_of(w->conf.jitter_us));
    } else if (st == PAWL_BUSY && events_db_met(k->db)) {
        atomic_fetch_add(&w->again, 1);
        log_line(LOG_DEBUG, "events: repeated: %s", err.text);
        rest(w, MET_US + some_of(MET_US));
    } else if (st == PAWL_BUSY || st == PAWL_UNKNOWN || st == PAWL_NO_MEMORY) {
        say(k, &err);
        rest(w, AWAY_US + some_of(AWAY_US));
    } else if (st != PAWL_OK) {
        blame(k, &b, &err);
        if (b.taken == 0)
            rest(w, w->conf.poll_us);
    }
}

static void *worker_main(void *arg)
{
    struct worker *k = arg;
    while (!stopping(k->w))
        one_batch(k);
    return NULL;
}

/* ---- All workers ----------------------------------------------------------------------------- */

static enum pawl_status worker_open(struct worker *k, bool first, struct pawl_err *err)
{
    const struct events_workers_conf *conf = &k->w->conf;
    enum pawl_status st = events_db_open(conf->db, conf->lifetime_us, &k->db, err);
    return st == PAWL_OK && first ? events_db_make(k->db, err) : st;
}

enum pawl_status events_workers_open(const struct events_workers_conf *conf,
                                     struct events_workers **out, struct pawl_err *err)
{
    pthread_condattr_t mono;
    struct events_workers *w = mem_zalloc(sizeof *w);
    if (!w)
        return err_no_memory(err, "workers");
    w->conf = *conf;
    if (!w->conf.make)
        w->conf.make = a_word;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&mono);
    pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
    pthread_cond_init(&w->cond, &mono);
    pthread_condattr_destroy(&mono);
    w->v = mem_zalloc((size_t)conf->threads * sizeof *w->v);
    enum pawl_status st = w->v ? PAWL_OK : err_no_memory(err, "workers");
    for (int i = 0; i < conf->threads && st == PAWL_OK; i++) {
        w->v[w->n++].w = w;
        st = worker_open(&w->v[i], i == 0, err);
    }
    for (size_t i = 0; i < w->n && st == PAWL_OK; i++) {
        w->v[i].runs = pthread_create(&w->v[i].thread, NULL, worker_main, &w->v[i]) == 0;
        st = w->v[i].runs ? PAWL_OK : err_no_memory(err, "a worker's thread");
    }
    if (st == PAWL_OK)
        *out = w;
    else
        events_workers_close(w);
    return st;
}

void events_workers_stop(struct events_workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

void events_workers_close(struct events_workers *w)
{
    if (!w)
        return;
    events_workers_stop(w);
    for (size_t i = 0; i < w->n; i++) {
        if (w->v[i].runs)
            pthread_join(w->v[i].thread, NULL);
        events_db_close(w->v[i].db);
    }
    pthread_cond_destroy(&w->cond);
    pthread_mutex_destroy(&w->lock);
    mem_free(w->v);
    mem_free(w);
}

void events_workers_figures(const struct events_workers *w, struct events_figures *out)
{
    *out = (struct events_figures){ .done = atomic_load(&w->done),
                                    .failed = atomic_load(&w->failed),
                                    .polls = atomic_load(&w->polls),
                                    .empty = atomic_load(&w->empty),
                                    .again = atomic_load(&w->again) };
}
