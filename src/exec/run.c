/*
 * run.c - calls of one key, one after another on one worker, and their results in order (run.h).
 *
 * A worker ends most attempts, the housekeeping thread those whose time is up, exec_stop() the
 * rest; the store thread settles them. What these threads share of a longer run is its flow, under
 * the flow's lock. A thread that holds it takes no second lock.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/run.h"

#include <time.h>

#include "base/limits.h"
#include "base/log.h"
#include "exec/internal.h"
#include "exec/housekeeping.h"

/* A run lasts no longer than this plus its last call: other keys need the worker, and the rest of
 * the run cannot go to another node meanwhile. */
#define RUN_US (50 * MS_US)

static size_t index_of(const struct pawl_call *t)
{
    return (size_t)(t - t->run->v);
}

/* ---- On its way to the store ----------------------------------------------------------------- */

static size_t item_weight(const struct finish_item *v)
{
    return 1 + (v->how == END_RESULT ? v->n_send : 0);
}

static size_t item_len(const struct finish_item *v)
{
    size_t len = v->result.bytes.len + v->object.bytes.len;
    for (size_t i = 0; v->how == END_RESULT && i < v->n_send; i++)
        len += v->send[i].input.bytes.len;
    return len;
}

static void put(struct pawl_call *t)
{
    struct pawl_err err;
    if (!bulk_post(t) && queue_put(&t->e->queue, &t->job, true, &err) != PAWL_OK)
        run_abandon(&t->job);
}

void run_post_one(struct pawl_call *t, struct finish_item *v)
{
    t->finish.v = v;
    t->job =
        (struct write_job){ .op = { .kind = OP_FINISH, .a = &t->end_arena, .finish = t->finish },
                            .done = pool_finish_done,
                            .weight = item_weight(v),
                            .len = item_len(v),
                            .frees = t->call->spec.key.data ? FREES_YES : FREES_NO };
    put(t);
}

/* Store thread: let this finish carry all results that have gathered by now. */
static void gather(struct write_job *j)
{
    struct pawl_call *t = attempt_of(j);
    struct flow *f = t->run->flow;
    size_t first = index_of(t), n = 0, weight = 0, len = 0;
    pthread_mutex_lock(&f->lock);
    CHECK(f->flying && f->sent == first && first < f->done);
    for (; first + n < f->done; n++) {
        weight += item_weight(&f->items[first + n]);
        len += item_len(&f->items[first + n]);
        if (n && (f->singly || weight > GROUP_MAX || len > GROUP_LEN_MAX))
            break;
    }
    f->sent = first + n;
    bool last = f->sent == f->n || (f->closed && f->sent == f->done);
    pthread_mutex_unlock(&f->lock);
    j->op.finish = (struct finish){ .token = t->lease->token, .v = &f->items[first], .n = n };
    j->frees = last ? FREES_YES : FREES_NO;
    j->prepare = NULL;
}

/* Post the results that have gathered from `t` on. Results that join until the store thread takes
 * the job go along. */
static void post_from(struct pawl_call *t)
{
    const struct finish_item *v = &t->run->flow->items[index_of(t)];
    t->job = (struct write_job){ .op = { .kind = OP_FINISH, .a = &t->end_arena },
                                 .prepare = gather,
                                 .done = pool_finish_done,
                                 .weight = item_weight(v),
                                 .len = item_len(v) };
    put(t);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* Let no further call begin. Returns the index of the first one that would have; n: the flow was
 * closed before. Under the lock. */
static size_t close_flow(struct flow *f)
{
    size_t from = f->closed ? f->n : f->begun;
    f->closed = true;
    pthread_cond_broadcast(&f->moved);
    return from;
}

/* Drop attempts that will never be finished: the store has handed their calls back, or will. */
static void drop(struct run *r, size_t from, size_t to, bool look)
{
    for (size_t i = from; i < to; i++) {
        struct pawl_call *t = &r->v[i];
        if (look)
            exec_look(t->e, &t->call->spec.id, 1);
        attempt_unref(t);
    }
}

/* The SQL transaction took over the end of this attempt and will not store it. (A transaction that
 * does store its end may still be under way when the next attempt of the run ends.) Under the lock.
 */
static bool untake(struct flow *f, size_t i)
{
    if (!f->taken || f->done != i + 1)
        return false;
    f->taken = f->flying = false;
    f->done--;
    f->sent--;
    return true;
}

void run_end(struct pawl_call *t, struct finish_item *v)
{
    struct run *r = t->run;
    struct flow *f = r->flow;
    if (!f) {
        run_post_one(t, v);
        return;
    }
    pthread_mutex_lock(&f->lock);
    bool flying = f->flying, voided = f->voided, post = false;
    untake(f, index_of(t));
    if (!voided) {
        CHECK(f->done == index_of(t));
        f->items[f->done++] = *v;
        post = !f->flying;
        f->flying = true;
    }
    size_t end = f->n, rest = v->how == END_RESULT ? end : close_flow(f);
    pthread_mutex_unlock(&f->lock);
    drop(r, rest, end, false);
    if (post && !flying)
        pool_finishes_in_flight(t->e, 1);
    if (post)
        post_from(t);
    else if (voided)
        drop(r, index_of(t), index_of(t) + 1, true);
}

void run_release(struct run *r)
{
    if (r->flow)
        r->flow->begun = 1; /* No other thread has it. */
    attempt_take_over(r->v, ATTEMPT_QUEUED, END_RELEASE, NULL);
}

/* Store thread: those that were behind the call that runs are back in the line, or not ours. */
static void cut_done(struct write_job *j)
{
    struct pawl_call *t = attempt_of(j);
    struct exec *e = t->e;
    struct op *op = &j->op;
    exec_look(e, op->ended, op->n_ended); /* cancelled when they were handed back */
    switch (op->status) {
    case PAWL_BUSY:
    case PAWL_UNKNOWN:
    case PAWL_NO_MEMORY:
        arena_reset(&t->end_arena);
        atomic_fetch_add(&e->stats.repeats, 1);
        housekeeping_repost(e, j);
        return;
    case PAWL_OK:
        pool_stored(t, &op->finish.v[0]);
        break;
    case PAWL_LOST_LEASE: /* They went back with the call before them. */
        break;
    default:
        log_line(LOG_ERROR, "calls that have not begun could not be handed back: %s", op->err.text);
    }
    pool_finishes_in_flight(e, -1);
    drop(t->run, index_of(t), t->run->n, op->status != PAWL_OK);
}

void run_cut(struct run *r)
{
    struct flow *f = r->flow;
    pthread_mutex_lock(&f->lock);
    size_t from = f->begun;
    bool any = !f->closed && from < f->n;
    if (any)
        f->n = from;
    pthread_mutex_unlock(&f->lock);
    if (!any)
        return;
    struct pawl_call *t = &r->v[from];
    /* The store takes those behind it along. */
    t->theirs =
        (struct finish_item){ .seq = t->call->seq, .id = t->call->spec.id, .how = END_RELEASE };
    pool_finishes_in_flight(t->e, 1);
    t->finish.v = &t->theirs;
    t->job =
        (struct write_job){ .op = { .kind = OP_FINISH, .a = &t->end_arena, .finish = t->finish },
                            .done = cut_done,
                            .weight = r->n - from };
    put(t);
}

/* ---- On the worker --------------------------------------------------------------------------- */

bool run_enter(struct run *r)
{
    if (!r->flow)
        return false;
    r->began_us = world_mono(&world_real);
    atomic_fetch_add(&r->v->lease->left, 1);
    r->flow->begun = 1; /* It was queued until now; only this worker has it. */
    return true;
}

void run_leave(struct run *r)
{
    struct lease_run *l = r->v->lease;
    if (r->state_of)
        attempt_unref(r->state_of);
    lease_run_unref(l);
}

void run_keep_state(struct pawl_call *t)
{
    struct run *r = t->run;
    if (!r->flow || t->item.state_do == STATE_KEEP)
        return;
    struct pawl_call *former = r->state_of;
    bool set = t->item.state_do == STATE_SET;
    r->state = set ? t->item.object : (struct payload){ 0 };
    r->state_of = set ? t : NULL;
    if (set)
        atomic_fetch_add(&t->refs, 1);
    if (former)
        attempt_unref(former);
}

struct pawl_call *run_next(struct run *r, bool on)
{
    struct flow *f = r->flow;
    if (!f)
        return NULL;
    pthread_mutex_lock(&f->lock);
    size_t end = f->n, rest = on ? end : close_flow(f);
    struct pawl_call *next = f->closed || f->begun == end ? NULL : &r->v[f->begun++];
    pthread_mutex_unlock(&f->lock);
    drop(r, rest, end, false);
    if (!next || world_mono(&world_real) < r->began_us + RUN_US)
        return next;
    attempt_take_over(next, ATTEMPT_QUEUED, END_RELEASE, NULL);
    return NULL;
}

/* Under the flow's lock. */
static enum pawl_status wait_before(struct pawl_call *t, struct pawl_err *err)
{
    struct flow *f = t->run->flow;
    size_t i = index_of(t);
    struct timespec until = { .tv_sec = t->deadline_us / SEC_US,
                              .tv_nsec = t->deadline_us % SEC_US * 1000 };
    while (f->settled < i && !f->closed)
        if (pthread_cond_timedwait(&f->moved, &f->lock, &until))
            break;
    if (f->closed)
        return err_set(err, PAWL_STATE, "this attempt is over");
    return f->settled < i
               ? err_set(err, PAWL_BUSY, "the calls before it in its key are not stored yet")
               : PAWL_OK;
}

enum pawl_status run_wait_before(struct pawl_call *t, struct pawl_err *err)
{
    struct flow *f = t->run->flow;
    if (!f)
        return PAWL_OK;
    pthread_mutex_lock(&f->lock);
    enum pawl_status st = wait_before(t, err);
    pthread_mutex_unlock(&f->lock);
    return st;
}

void run_let_go(struct pawl_call *t)
{
    struct run *r = t->run;
    struct flow *f = r->flow;
    pool_alone_over(t);
    bulk_let_go(t);
    if (f) {
        pthread_mutex_lock(&f->lock);
        size_t end = f->n, rest = close_flow(f);
        pthread_mutex_unlock(&f->lock);
        drop(r, rest, end, true);
    }
    exec_work_came(t->e); /* its slot is free, and calls that were behind it may be due */
    pool_finish_over(t);
}

enum pawl_status run_take(struct pawl_call *t, struct pawl_err *err)
{
    struct flow *f = t->run->flow;
    size_t i = index_of(t);
    if (!f)
        return PAWL_OK;
    pthread_mutex_lock(&f->lock);
    enum pawl_status st = wait_before(t, err);
    if (st == PAWL_OK) {
        f->done = f->sent = i + 1;
        f->taken = f->flying = true;
    }
    pthread_mutex_unlock(&f->lock);
    if (st == PAWL_OK)
        pool_finishes_in_flight(t->e, 1);
    return st;
}

void run_untake(struct pawl_call *t)
{
    struct flow *f = t->run->flow;
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    bool landed = untake(f, index_of(t));
    pthread_mutex_unlock(&f->lock);
    if (landed)
        pool_finishes_in_flight(t->e, -1);
}

/* ---- Settled: on the store thread ------------------------------------------------------------ */

/* Tell the waiters of the calls in this finish. Returns how many completed, from the first on. */
static size_t tell(struct pawl_call *t, const struct op *op)
{
    struct flow *f = t->run->flow;
    size_t good = 0;
    if (op->status != PAWL_OK)
        return 0;
    for (; good < op->finish.n; good++) {
        struct finish_item *v = &op->finish.v[good];
        /* As the store records it: not before the call in front of it had ended. */
        v->started_us = MAX(v->started_us, f->ended_us);
        f->ended_us = v->finished_us;
        pool_stored(&t[good], v);
        if (v->state != PAWL_COMPLETED)
            break; /* The store handed back the calls behind it. */
    }
    return good;
}

void run_settled(struct pawl_call *t, const struct op *op)
{
    struct run *r = t->run;
    struct flow *f = r->flow;
    size_t first = index_of(t), n = op->finish.n;
    bool look = op->status != PAWL_OK;
    size_t completed = tell(t, op);
    bool good = completed == n;
    pthread_mutex_lock(&f->lock);
    CHECK(f->flying && f->sent == first + n);
    f->settled = f->sent;
    f->taken = false;
    bool more = good && f->done > f->sent;
    f->flying = more;
    size_t end = f->n, rest = good ? end : close_flow(f);
    /* Attempts that ran behind it are dropped; one that runs now is dropped when it ends. */
    size_t ran = good ? f->sent : f->done;
    f->voided = !good;
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
    if (more)
        post_from(&r->v[first + n]);
    else
        pool_finishes_in_flight(t->e, -1);
    drop(r, first + n, ran, true);
    drop(r, rest, end, look);
    /* Calls in this finish behind the one that did not complete were handed back, or cancelled. */
    drop(r, first + MIN(completed + 1, n), first + n, true);
    drop(r, first, first + MIN(completed + 1, n), look);
}

bool run_refused(struct pawl_call *t)
{
    struct flow *f = t->run->flow;
    if (!f || t->job.op.finish.n == 1)
        return false;
    pthread_mutex_lock(&f->lock);
    f->singly = true;
    f->sent = index_of(t);
    pthread_mutex_unlock(&f->lock);
    arena_reset(&t->end_arena);
    post_from(t);
    return true;
}

void run_abandon(struct write_job *j)
{
    struct pawl_call *t = attempt_of(j);
    struct run *r = t->run;
    struct flow *f = r->flow;
    if (!f) {
        pool_finish_over(t);
        return;
    }
    pthread_mutex_lock(&f->lock);
    bool handed_back = index_of(t) >= f->n;
    size_t end = f->n, rest = handed_back ? end : close_flow(f), done = f->done;
    f->voided = f->voided || !handed_back;
    pthread_mutex_unlock(&f->lock);
    pool_finishes_in_flight(t->e, -1);
    if (handed_back) {
        drop(r, index_of(t), r->n, false);
        return;
    }
    drop(r, rest, end, false);
    drop(r, index_of(t), done, false);
}
