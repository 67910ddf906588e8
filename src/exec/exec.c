/*
 * exec.c - opening and closing the handle, posting writes and waiting for their answers (exec.h,
 * write_job.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/exec.h"

#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "exec/one_shot.h"
#include "exec/internal.h"
#include "exec/housekeeping.h"
#include "exec/replay.h"

/* An operation with its copies, and its answer: a batch, or a full claim. */
#define ANSWER_LEN_MAX ((size_t)BATCH_LEN_MAX * 4 + (64 << 20))

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
    const char *node = conf->node;
    e->conf = *conf;
    e->conf.url = copy_text(conf->url);
    e->conf.schema = copy_text(conf->schema ? conf->schema : "pawl");
    if (!e->conf.url || !e->conf.schema)
        return err_no_memory(err, "opening the database");
    return name_open(e, node, err);
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
                               .call_timeout_us = e->conf.call_timeout_us,
                               .input_len_max = e->conf.input_len_max,
                               .lifetime_us = e->conf.pool_lifetime_us,
                               .retry_max_us = e->conf.heartbeat_grace_us / 8,
                               .idle_us = e->conf.heartbeat_grace_us,
                               .features = e->conf.features,
                               .n_features = e->conf.n_features };
    return store_open(&conf, out, err);
}

/* Ask twice when the first answer took long, since the offset is wrong by up to half of that; and
 * when it failed at once, since a connection that was cut does not mean that the database is away.
 */
enum pawl_status exec_measure_clock(struct exec *e, struct store *s, struct pawl_err *err)
{
    int64_t now_us, best_us = INT64_MAX;
    for (int i = 0; i < 2; i++) {
        int64_t began_us = world_mono(&world_real);
        enum pawl_status st = store_now(s, &now_us, err);
        int64_t took_us = world_mono(&world_real) - began_us;
        if (st == PAWL_OK && took_us < best_us) {
            best_us = took_us;
            atomic_store(&e->clock_offset_us, now_us - began_us - took_us / 2);
        }
        if ((st == PAWL_OK && took_us < CLOCK_NEAR_US) || (st != PAWL_OK && took_us >= PROBE_US))
            break;
    }
    return best_us < INT64_MAX ? PAWL_OK : err->status;
}

static enum pawl_status open_writer(struct exec *e, struct pawl_err *err)
{
    enum pawl_status st = exec_store(e, STORE_HASTY, &e->writer, err);
    if (st == PAWL_OK)
        st = check_schema(e, err);
    if (st == PAWL_OK)
        st = exec_measure_clock(e, e->writer, err);
    if (st == PAWL_OK)
        e->traits = store_traits(e->writer);
    return st;
}

/* Make the parts that hold memory but run nothing yet. */
static enum pawl_status make_parts(struct exec *e, struct pawl_err *err)
{
    enum pawl_status st = queue_init(&e->queue, err);
    work_signal_init(&e->work_signal);
    member_init(&e->member);
    unwritable_init(&e->unwritable);
    stats_init(&e->stats);
    rates_init(&e->rates);
    failures_init(&e->failures);
    journals_init(&e->journals);
    if (st == PAWL_OK)
        st = pool_init(&e->pool, err);
    if (st == PAWL_OK)
        st = waiters_init(&e->waiters, err);
    if (st == PAWL_OK)
        st = readers_init(&e->readers, e->conf.pool_size, e->conf.pool_timeout_us, err);
    if (st == PAWL_OK)
        st = open_writer(e, err);
    if (st == PAWL_OK)
        st = housekeeping_init(e, err);
    return st;
}

static enum pawl_status start_threads(struct exec *e, struct pawl_err *err)
{
    enum pawl_status st = stall_open(e, err);
    if (st == PAWL_OK)
        st = solo_open(e, err);
    if (st != PAWL_OK)
        return st;
    bulk_open(e);
    e->writer_runs = !pthread_create(&e->writer_thread, NULL, writer_main, e);
    e->housekeeping_runs =
        e->writer_runs && !pthread_create(&e->housekeeping_thread, NULL, housekeeping_main, e);
    if (!e->housekeeping_runs)
        return err_no_memory(err, "starting the store thread");
    st = beat_open(e, err);
    return st == PAWL_OK ? notify_open(e, err) : st;
}

enum pawl_status exec_open(const struct exec_conf *conf, struct exec **out, struct pawl_err *err)
{
    if (replay_here())
        return err_set(err, PAWL_STATE, "this process replays a journal, and opens no database");
    struct exec *e = mem_zalloc(sizeof(*e));
    if (!e)
        return err_no_memory(err, "opening the database");
    atomic_init(&e->refs, 1);
    e->presence = -1;
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
    notify_release(e);
    solo_release(e);
    bulk_release(e);
    beat_release(e);
    stall_release(e);
    housekeeping_release(e);
    readers_release(&e->readers);
    waiters_release(&e->waiters);
    pool_release(&e->pool);
    member_release(&e->member);
    unwritable_release(&e->unwritable);
    registry_release(&e->registry);
    store_close(e->writer);
    queue_release(&e->queue);
    work_signal_release(&e->work_signal);
    rates_release(&e->rates);
    failures_release(&e->failures);
    journals_release(&e->journals);
    mem_free((char *)e->conf.url);
    mem_free((char *)e->conf.schema);
    name_release(e);
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
    notify_close(e);
    beat_close(e);
    if (e->housekeeping_runs) {
        housekeeping_close(e);
        pthread_join(e->housekeeping_thread, NULL);
    }
    if (e->writer_runs)
        bulk_close(e);
    solo_close(e);
    if (e->writer_runs) {
        queue_close(&e->queue);
        pthread_join(e->writer_thread, NULL);
        failures_flush(e, true);
    }
    stall_close(e);
    name_leave(e); /* a thread that hangs keeps the memory, not the name */
    exec_unref(e);
}

const struct exec_conf *exec_conf_of(const struct exec *e)
{
    return &e->conf;
}

const char *exec_node(const struct exec *e)
{
    return e->conf.node;
}

const char *exec_boot(const struct exec *e)
{
    return e->boot;
}

bool exec_has_features(const struct exec *e)
{
    return e->traits & STORE_DRIVEN;
}

int64_t exec_now(struct exec *e)
{
    return world_mono(&world_real) +
           atomic_load_explicit(&e->clock_offset_us, memory_order_relaxed);
}

/* While the database is away, refuse a write at once, instead of after a wait that ends the same
 * way. The housekeeping thread finds out when it is back. */
static enum pawl_status may_post(struct exec *e, struct pawl_err *err)
{
    if (e->replay)
        return err_set(err, PAWL_STATE, "this process replays a journal, and stores nothing");
    if (!atomic_load(&e->away_us) || !atomic_load(&e->unwritable.whole))
        return exec_stalled(e, err);
    return err_set(err, PAWL_BUSY, "the database does not answer");
}

enum pawl_status exec_post(struct exec *e, struct write_job *j, struct pawl_err *err)
{
    enum pawl_status st = may_post(e, err);
    return st == PAWL_OK ? queue_put(&e->queue, j, false, err) : st;
}

enum pawl_status exec_post_all(struct exec *e, struct write_job *first, struct pawl_err *err)
{
    enum pawl_status st = may_post(e, err);
    return st == PAWL_OK ? queue_put_all(&e->queue, first, err) : st;
}

/* How an operation is done whose caller waits for it. */
struct sync_how {
    int64_t turn_until_us; /* write_job.h */
    bool give_back;        /* hand back what a claim took when its caller has left */
};

/* One operation whose caller waits. It is on the caller's stack where every commit is answered
 * soon. Else it is allocated ("apart"), with copies of all it names, because the store thread may
 * hold it longer than the caller waits. */
struct sync_job {
    struct write_job job; /* first */
    struct one_shot over; /* apart: answered, or late; else: answered, and not touched afterwards */
    struct one_shot answered; /* apart: answered, and not touched afterwards */
    struct arena arena;
    struct exec *e; /* borrowed */
    struct sync_how how;
    atomic_int state;
};
enum { SYNC_WAITS, SYNC_LEFT, SYNC_DONE };

static void sync_done(struct write_job *j)
{
    one_shot_set(&((struct sync_job *)j)->over);
}

static void sync_free(struct sync_job *s)
{
    arena_release(&s->arena);
    mem_free(s);
}

/* The answer and the caller that gives up race: the first one decides. */
static bool sync_move(struct sync_job *s, int to)
{
    int waits = SYNC_WAITS;
    return atomic_compare_exchange_strong(&s->state, &waits, to);
}

/* When the give-back was refused, the lease runs out: later, and counted as lost. */
static void sync_given_back(struct write_job *j)
{
    struct sync_job *s = (struct sync_job *)j;
    if (j->op.status == PAWL_OK)
        exec_work_came(s->e);
    sync_free(s);
}

/* Hand the calls of this lease back, uncounted: its caller has left with the token. False: it took
 * none, or no memory. */
static bool sync_give_back(struct sync_job *s)
{
    const struct claim *got = &s->job.op.claim;
    struct pawl_err err;
    if (!s->how.give_back || s->job.op.status != PAWL_OK || !got->n)
        return false;
    struct finish_item *v = arena_zalloc(&s->arena, got->n, sizeof(*v));
    if (!v)
        return false;
    for (size_t i = 0; i < got->n; i++)
        v[i] = (struct finish_item){ .seq = got->calls[i].seq,
                                     .id = got->calls[i].spec.id,
                                     .how = END_RELEASE };
    s->job = (struct write_job){ .op = { .kind = OP_FINISH,
                                         .a = &s->arena,
                                         .finish = { .token = got->token, .v = v, .n = got->n } },
                                 .done = sync_given_back,
                                 .weight = got->n };
    return queue_put(&s->e->queue, &s->job, true, &err) == PAWL_OK;
}

/* The caller was told UNKNOWN and has left. */
static void sync_orphaned(struct sync_job *s)
{
    const struct op *op = &s->job.op;
    exec_look(s->e, op->ended, op->n_ended);
    if (!sync_give_back(s))
        sync_free(s);
}

static void sync_apart_done(struct write_job *j)
{
    struct sync_job *s = (struct sync_job *)j;
    if (!sync_move(s, SYNC_DONE)) {
        sync_orphaned(s);
        return;
    }
    one_shot_set(&s->over);
    one_shot_set(&s->answered);
}

/* Wake the caller to look. If it leaves, sync_apart_done() frees the rest. */
static void sync_late(struct write_job *j)
{
    one_shot_set(&((struct sync_job *)j)->over);
}

static void sync_post(struct sync_job *s, struct op *op)
{
    one_shot_init(&s->over);
    one_shot_init(&s->answered);
    s->job.weight = 1;
    s->job.turn_until_us = s->how.turn_until_us;
    if (op->kind == OP_ACCEPT) {
        s->job.weight = op->accept.n;
        for (size_t i = 0; i < op->accept.n; i++)
            s->job.len += op->accept.v[i].input.bytes.len;
    }
    op->status = exec_post(s->e, &s->job, &op->err);
}

/* Returns at last, because the store thread answers every job of its queue, and a job whose commit
 * has no answer is told that it is late. */
static void sync_wait(struct one_shot *g)
{
    while (!one_shot_wait(g, world_mono(&world_real) + SEC_US))
        ;
}

/* Move the answer into the caller's arena, as if it had been made there. */
static void sync_take(struct sync_job *s, struct op *op)
{
    struct arena *a = op->a;
    *op = s->job.op;
    op->a = a;
    arena_adopt(a, &s->arena);
    sync_free(s);
}

static enum pawl_status do_apart(struct exec *e, struct op *op, struct sync_how how)
{
    struct sync_job *s = mem_zalloc(sizeof(*s));
    if (s)
        arena_init(&s->arena, ANSWER_LEN_MAX);
    if (!s || !op_copy(&s->arena, op, &s->job.op)) {
        if (s)
            sync_free(s);
        return op->status = err_no_memory(&op->err, "a write");
    }
    s->e = e;
    s->how = how;
    s->job.done = sync_apart_done;
    s->job.late = sync_late;
    sync_post(s, op);
    if (op->status != PAWL_OK) {
        sync_free(s);
        return op->status;
    }
    sync_wait(&s->over);
    if (sync_move(s, SYNC_LEFT))
        return op->status = exec_unknown(&op->err);
    sync_wait(&s->answered);
    sync_take(s, op);
    return op->status;
}

static enum pawl_status do_sync(struct exec *e, struct op *op, struct sync_how how)
{
    if (e->stall.open)
        return do_apart(e, op, how);
    struct sync_job s = { .job = { .op = *op, .done = sync_done }, .e = e, .how = how };
    sync_post(&s, op);
    if (op->status != PAWL_OK)
        return op->status;
    sync_wait(&s.over);
    *op = s.job.op;
    return op->status;
}

enum pawl_status exec_do(struct exec *e, struct op *op)
{
    return do_sync(e, op, (struct sync_how){ 0 });
}

enum pawl_status exec_do_by(struct exec *e, struct op *op, int64_t turn_until_us)
{
    return do_sync(e, op, (struct sync_how){ .turn_until_us = turn_until_us });
}

enum pawl_status exec_claim(struct exec *e, struct op *op)
{
    return do_sync(e, op, (struct sync_how){ .give_back = true });
}

void exec_wait(struct exec *e, struct waiter *w)
{
    /* The store thread looks for other processes' commits only while that matters: it may sleep. */
    if (waiters_enter(&e->waiters, w) && e->traits & STORE_SHARED)
        queue_nudge(&e->queue);
}

bool exec_unwait(struct exec *e, struct waiter *w)
{
    return waiters_drop(&e->waiters, w);
}

void exec_look(struct exec *e, const struct bytes *ids, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= waiters_mark(&e->waiters, ids[i]);
    if (any)
        housekeeping_nudge(e);
}

void exec_work_came(struct exec *e)
{
    exec_work_due(e, 0);
}

void exec_work_due(struct exec *e, int64_t at_us)
{
    pool_work_came(e, at_us);
    exec_work_signal_raise(e);
}

enum pawl_status exec_on(struct exec *e, const char *type, const char *method,
                         pawl_handler *handler, struct pawl_err *err)
{
    return registry_add(&e->registry, type, method, handler, err);
}

enum pawl_status exec_version(struct exec *e, const char *type, const char *method,
                              struct bytes version, struct pawl_err *err)
{
    int at = registry_find(&e->registry, bytes_of(type), bytes_of(method));
    return registry_version(&e->registry, at, version, err);
}

size_t exec_handlers(const struct exec *e)
{
    return e->registry.n;
}

bool exec_listens(struct exec *e)
{
    pthread_mutex_lock(&e->work_signal.lock);
    bool by_hand = e->work_signal.waiting || e->work_signal.asked;
    pthread_mutex_unlock(&e->work_signal.lock);
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
    int64_t stalled_us = atomic_load(&e->stalled_us);
    out->stalled_us = stalled_us ? MAX(world_mono(&world_real) - stalled_us, 1) : 0;
    int64_t refused_us = atomic_load(&e->unwritable.told_us);
    out->refused_us = refused_us ? MAX(world_mono(&world_real) - refused_us, 1) : 0;
    out->cut = member_cut(e);
    if (refused_us)
        unwritable_copy(e, out->why, sizeof out->why);
    else if (out->cut)
        member_why(e, out->why, sizeof out->why);
}
