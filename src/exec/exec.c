/*
 * exec.c - opening, closing, posting: the parts of the machine put together.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/exec.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

static char *copy_text(const char *text)
{
    size_t len = strlen(text) + 1;
    char *c = mem_alloc(len);
    if (c)
        memcpy(c, text, len);
    return c;
}

static enum pawl_status copy_conf(struct exec *e, const struct exec_conf *conf,
                                  struct pawl_err *err)
{
    char host[256] = "localhost";
    gethostname(host, sizeof(host) - 1);
    e->conf = *conf;
    e->conf.url = copy_text(conf->url);
    e->conf.schema = copy_text(conf->schema ? conf->schema : "pawl");
    e->conf.node = copy_text(conf->node ? conf->node : host);
    if (!e->conf.url || !e->conf.schema || !e->conf.node)
        return err_no_memory(err, "opening the database");
    return PAWL_OK;
}

static enum pawl_status check_schema(struct exec *e, struct pawl_err *err)
{
    return e->conf.no_migrate ? store_fits(e->writer, err) : store_migrate(e->writer, false, err);
}

enum pawl_status exec_store(const struct exec *e, enum store_role role, struct store **out,
                            struct pawl_err *err)
{
    struct store_conf conf = { .url = e->conf.url,
                               .schema = e->conf.schema,
                               .role = role,
                               .world = e->conf.world,
                               .retention_us = e->conf.retention_us,
                               .remember_us = e->conf.remember_us,
                               .key_pending_max = e->conf.key_pending_max,
                               .lifetime_us = e->conf.pool_lifetime_us,
                               .retry_max_us = e->conf.heartbeat_grace_us / 8,
                               .idle_us = e->conf.heartbeat_grace_us };
    return store_open(&conf, out, err);
}

static enum pawl_status open_writer(struct exec *e, struct pawl_err *err)
{
    int64_t now_us;
    enum pawl_status st = exec_store(e, STORE_HASTY, &e->writer, err);
    if (st == PAWL_OK)
        st = check_schema(e, err);
    if (st == PAWL_OK)
        st = store_now(e->writer, &now_us, err);
    if (st != PAWL_OK)
        return st;
    e->traits = store_traits(e->writer);
    atomic_store(&e->clock_offset_us, now_us - world_mono(&world_real));
    return PAWL_OK;
}

/* The parts that hold memory but run nothing yet. */
static enum pawl_status make_parts(struct exec *e, struct pawl_err *err)
{
    enum pawl_status st = queue_init(&e->queue, err);
    epoch_init(&e->epoch);
    member_init(&e->member);
    stats_init(&e->stats);
    rates_init(&e->rates);
    if (st == PAWL_OK)
        st = pool_init(&e->pool, err);
    if (st == PAWL_OK)
        st = waiters_init(&e->waiters, err);
    if (st == PAWL_OK)
        st = readers_init(&e->readers, e->conf.pool_size, e->conf.pool_timeout_us, err);
    if (st == PAWL_OK)
        st = open_writer(e, err);
    if (st == PAWL_OK)
        st = keeper_init(e, err);
    return st;
}

static enum pawl_status start_threads(struct exec *e, struct pawl_err *err)
{
    enum pawl_status st = side_open(e, err);
    if (st != PAWL_OK)
        return st;
    haul_open(e);
    e->writer_runs = !pthread_create(&e->writer_thread, NULL, writer_main, e);
    e->keeper_runs = e->writer_runs && !pthread_create(&e->keeper_thread, NULL, keeper_main, e);
    if (!e->keeper_runs)
        return err_no_memory(err, "starting the store thread");
    st = beat_open(e, err);
    return st == PAWL_OK ? ear_open(e, err) : st;
}

enum pawl_status exec_open(const struct exec_conf *conf, struct exec **out, struct pawl_err *err)
{
    struct exec *e = mem_zalloc(sizeof(*e));
    if (!e)
        return err_no_memory(err, "opening the database");
    atomic_init(&e->refs, 1);
    uuid7_make(conf->world, e->boot);
    enum pawl_status st = copy_conf(e, conf, err);
    if (st == PAWL_OK)
        st = make_parts(e, err);
    if (st == PAWL_OK)
        st = start_threads(e, err);
    if (st != PAWL_OK) {
        exec_close(e);
        return st;
    }
    *out = e;
    return PAWL_OK;
}

void exec_unref(struct exec *e)
{
    if (atomic_fetch_sub(&e->refs, 1) > 1)
        return;
    ear_release(e);
    side_release(e);
    haul_release(e);
    beat_release(e);
    keeper_release(e);
    readers_release(&e->readers);
    waiters_release(&e->waiters);
    pool_release(&e->pool);
    member_release(&e->member);
    registry_release(&e->registry);
    store_close(e->writer);
    queue_release(&e->queue);
    epoch_release(&e->epoch);
    rates_release(&e->rates);
    mem_free((char *)e->conf.url);
    mem_free((char *)e->conf.schema);
    mem_free((char *)e->conf.node);
    mem_free(e);
}

void exec_close(struct exec *e)
{
    struct pawl_err err;
    if (!e)
        return;
    if (e->writer_runs && exec_stop(e, 0, &err) != PAWL_OK)
        log_line(LOG_WARN, "closing the database: %s", err.text);
    member_close(e);
    ear_close(e);
    beat_close(e);
    if (e->keeper_runs) {
        keeper_close(e);
        pthread_join(e->keeper_thread, NULL);
    }
    if (e->writer_runs)
        haul_close(e);
    side_close(e);
    if (e->writer_runs) {
        queue_close(&e->queue);
        pthread_join(e->writer_thread, NULL);
    }
    exec_unref(e);
}

int64_t exec_now(struct exec *e)
{
    return world_mono(&world_real) +
           atomic_load_explicit(&e->clock_offset_us, memory_order_relaxed);
}

/* While the database is away whoever asks for something hears so at once, instead of after a wait
 * that ends the same way. The keeper finds out when it is back. */
static enum pawl_status at_the_door(struct exec *e, struct pawl_err *err)
{
    if (!atomic_load(&e->away_us) || !atomic_load(&e->refused))
        return PAWL_OK;
    return err_set(err, PAWL_BUSY, "the database does not answer");
}

enum pawl_status exec_post(struct exec *e, struct job *j, struct pawl_err *err)
{
    enum pawl_status st = at_the_door(e, err);
    return st == PAWL_OK ? queue_put(&e->queue, j, false, err) : st;
}

enum pawl_status exec_post_all(struct exec *e, struct job *first, struct pawl_err *err)
{
    enum pawl_status st = at_the_door(e, err);
    return st == PAWL_OK ? queue_put_all(&e->queue, first, err) : st;
}

struct sync_job {
    struct job job;
    struct gate gate;
};

static void sync_done(struct job *j)
{
    gate_open(&((struct sync_job *)j)->gate);
}

enum pawl_status exec_do(struct exec *e, struct op *op)
{
    return exec_do_by(e, op, 0);
}

enum pawl_status exec_do_by(struct exec *e, struct op *op, int64_t turn_until_us)
{
    struct sync_job s = {
        .job = { .op = *op, .done = sync_done, .weight = 1, .turn_until_us = turn_until_us }
    };
    gate_init(&s.gate);
    if (op->kind == OP_ACCEPT) {
        s.job.weight = op->accept.n;
        for (size_t i = 0; i < op->accept.n; i++)
            s.job.len += op->accept.v[i].input.bytes.len;
    }
    op->status = exec_post(e, &s.job, &op->err);
    if (op->status != PAWL_OK)
        return op->status;
    while (!gate_wait(&s.gate, world_mono(&world_real) + SEC_US))
        ; /* It comes: the queue is bounded and so is every operation in it. */
    *op = s.job.op;
    return op->status;
}

void exec_wait(struct exec *e, struct waiter *w)
{
    if (waiters_enter(&e->waiters, w) && e->traits & STORE_SHARED)
        queue_nudge(&e->queue);
}

void exec_look(struct exec *e, const struct bytes *ids, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= waiters_mark(&e->waiters, ids[i]);
    if (any)
        keeper_nudge(e);
}

void exec_work_came(struct exec *e)
{
    pool_work_came(e, 0);
    exec_epoch_move(e);
}

bool exec_listens(struct exec *e)
{
    pthread_mutex_lock(&e->epoch.lock);
    bool by_hand = e->epoch.waiting || e->epoch.asked;
    pthread_mutex_unlock(&e->epoch.lock);
    pthread_mutex_lock(&e->pool.lock);
    bool working = e->pool.started && !e->pool.stopping;
    pthread_mutex_unlock(&e->pool.lock);
    return by_hand || working || waiters_count(&e->waiters);
}

void exec_figures(struct exec *e, struct exec_figures *out)
{
    struct pool *p = &e->pool;
    pthread_mutex_lock(&p->lock);
    *out = (struct exec_figures){ .slots = p->slots,
                                  .busy = (int)p->n_running - p->hung,
                                  .queued = (int)p->n_queued,
                                  .hung = p->hung,
                                  .blocked = p->blocked,
                                  .started = p->started,
                                  .drained = p->drained,
                                  .stopping = p->stopping,
                                  .replaced = p->replaced };
    pthread_mutex_unlock(&p->lock);
    out->writes_waiting = queue_depth(&e->queue);
    out->waiting = waiters_count(&e->waiters);
    int64_t away_us = atomic_load(&e->away_us);
    out->away_us = away_us ? MAX(world_mono(&world_real) - away_us, 1) : 0;
}
