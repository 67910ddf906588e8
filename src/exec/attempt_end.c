/*
 * attempt_end.c - how attempts end: at their deadline, by a cancel request, and when their finish
 * is settled.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/log.h"
#include "exec/internal.h"
#include "exec/housekeeping.h"
#include "exec/run.h"

size_t pool_pick(struct pool *p, bool (*pick)(struct pawl_call *t, int64_t x), int64_t x,
                 struct pawl_call **out, size_t max)
{
    size_t n = 0;
    pthread_mutex_lock(&p->lock);
    for (struct pawl_call *t = p->running; t && n < max; t = t->next) {
        if (pick(t, x)) {
            atomic_fetch_add(&t->refs, 1);
            out[n++] = t;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return n;
}

static bool is_late(struct pawl_call *t, int64_t now_us)
{
    return t->deadline_us <= now_us && atomic_load(&t->stage) == ATTEMPT_RUNNING;
}

bool pool_any(struct pawl_call *t, int64_t x)
{
    (void)t;
    (void)x;
    return true;
}

void pool_hung(struct pawl_call *t)
{
    struct pool *p = &t->e->pool;
    pthread_mutex_lock(&p->lock);
    bool hung = t->in_run_list && !t->hung;
    if (hung) {
        t->hung = true;
        p->hung++;
        pool_count_slow(p, t, false);
    }
    bool more = hung && !p->stopping && p->hung < HUNG_MAX;
    bool full = hung && p->hung == HUNG_MAX;
    pthread_mutex_unlock(&p->lock);
    if (full)
        log_line(LOG_ERROR, "%d handlers did not return from their timeout; claiming no more",
                 HUNG_MAX);
    if (more && !pool_add_worker(t->e))
        log_line(LOG_WARN, "no thread could be made in place of a hung worker");
    if (more)
        queue_nudge(&t->e->queue); /* A slot is free: claim for it. */
}

static void time_out(struct pawl_call *t)
{
    char text[64];
    snprintf(text, sizeof(text), "took longer than its timeout of %g s",
             (double)t->call->spec.timeout_us / SEC_US);
    /* Void the answer before telling the handler: one that wakes up and answers must not win. */
    bool ours = attempt_take_over(t, ATTEMPT_RUNNING, END_TIMEOUT, text);
    attempt_stop(t, STOP_TIME);
    if (ours)
        pool_hung(t);
}

int64_t pool_deadlines(struct exec *e, int64_t now_us)
{
    struct pool *p = &e->pool;
    struct pawl_call *late[64];
    size_t n;
    do {
        n = pool_pick(p, is_late, now_us, late, COUNT_OF(late));
        for (size_t i = 0; i < n; i++) {
            time_out(late[i]);
            attempt_unref(late[i]);
        }
    } while (n == COUNT_OF(late));
    int64_t next_us = INT64_MAX;
    pthread_mutex_lock(&p->lock);
    for (struct pawl_call *t = p->running; t; t = t->next)
        if (atomic_load(&t->stage) != ATTEMPT_OVER)
            next_us = MIN(next_us, t->deadline_us);
    pthread_mutex_unlock(&p->lock);
    return next_us;
}

static struct pawl_call *run_find(const struct run *r, int64_t seq)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].call->seq == seq)
            return &r->v[i];
    return NULL;
}

/* A call that has not begun. A run of one leaves the queue, and its attempt is returned for the
 * caller to end; in a longer run the call is told now, and ends when its turn comes. Under the
 * lock. */
static struct pawl_call *cancel_queued(struct pool *p, int64_t seq)
{
    struct run *before = NULL;
    for (struct run *r = p->head; r; before = r, r = r->next) {
        struct pawl_call *t = run_find(r, seq);
        if (t && r->n == 1) {
            pool_unqueue(p, before, r);
            pool_count_slow(p, t, false);
            return t;
        }
        if (t)
            attempt_tell(t, STOP_CANCEL_REQUEST);
    }
    return NULL;
}

/* Does it take steps, and not undo? */
static bool goes_forward(struct pawl_call *t)
{
    return atomic_load(&t->pass) && !atomic_load(&t->undoing);
}

void exec_cancel(struct exec *e, int64_t seq)
{
    struct pool *p = &e->pool;
    pthread_mutex_lock(&p->lock);
    struct pawl_call *waiting = cancel_queued(p, seq);
    for (struct pawl_call *t = p->running; t; t = t->next) {
        struct pawl_call *one = run_find(t->run, seq);
        /* A pass that has not read its journal yet will find there that it undoes. */
        if (one && (!one->call->flow || goes_forward(one)))
            attempt_tell(one, STOP_CANCEL_REQUEST);
    }
    pthread_mutex_unlock(&p->lock);
    if (waiting)
        attempt_take_over(waiting, ATTEMPT_QUEUED, END_CANCELLED, NULL);
}

bool exec_takes_steps(struct exec *e)
{
    struct pool *p = &e->pool;
    bool takes = false;
    pthread_mutex_lock(&p->lock);
    for (struct pawl_call *t = p->running; t && !takes; t = t->next)
        takes = goes_forward(t);
    pthread_mutex_unlock(&p->lock);
    return takes;
}

static int compare_seqs(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void exec_undoing(struct exec *e, const int64_t *seqs, size_t n)
{
    struct pool *p = &e->pool;
    pthread_mutex_lock(&p->lock);
    for (struct pawl_call *t = p->running; t; t = t->next)
        if (goes_forward(t) && bsearch(&t->call->seq, seqs, n, sizeof *seqs, compare_seqs))
            attempt_tell(t, STOP_CANCEL_REQUEST);
    pthread_mutex_unlock(&p->lock);
}

void pool_replaced(struct exec *e)
{
    struct pool *p = &e->pool;
    struct pawl_call *v[SLOTS_MAX];
    pthread_mutex_lock(&p->lock);
    bool first = !p->replaced;
    p->replaced = true;
    pthread_mutex_unlock(&p->lock);
    if (!first)
        return;
    log_line(LOG_ERROR, "node \"%s\": another process has taken this name; claiming no more",
             e->conf.node);
    size_t n = pool_pick(p, pool_any, 0, v, COUNT_OF(v));
    for (size_t i = 0; i < n; i++) {
        attempt_stop(v[i], STOP_PROCESS);
        attempt_unref(v[i]);
    }
    member_replaced(e);
}

/* ---- A finish is settled: on the store thread ------------------------------------------------ */

/* Tell those who wait for this call how it ended. */
static void tell_waiters(struct pawl_call *t, const struct finish_item *f)
{
    struct call c = *t->call;
    struct attempt_counts before = c.counts;
    bool repeated = f->state == PAWL_COMPLETED && f->how != END_RESULT;
    if (repeated || before.attempts || before.lost || before.redrives) {
        /* The attempt does not know the whole call: a give-back that found a stored result does not
         * have it, and the claimed call has the due time of this attempt, not of the first. Let the
         * housekeeping thread read the stored call. */
        exec_look(t->e, &c.spec.id, 1);
        return;
    }
    int64_t keep_us = c.spec.keep_us ? c.spec.keep_us : t->e->conf.retention_us;
    c.state = f->state;
    c.counts = f->counts;
    c.result = f->state == PAWL_COMPLETED ? f->result : (struct payload){ 0 };
    c.error = f->error_out;
    c.started_us = f->started_us ? f->started_us : c.claimed_us;
    c.finished_us = f->finished_us;
    c.keep_until_us = call_blocks(&c.spec, c.state) ? 0 : f->finished_us + keep_us;
    c.in_line = false;
    t->e->told = waiters_tell(&t->e->waiters, &c, WAITERS_ALL, t->e->told);
}

void pool_stored(struct pawl_call *t, const struct finish_item *f)
{
    struct exec *e = t->e;
    if (f->state == PAWL_PENDING) {
        exec_work_due(e, f->run_at_us); /* Claims by hand may serve this type, too. */
        return;
    }
    if (f->state == PAWL_COMPLETED && f->n_send)
        exec_work_came(e); /* Claims by hand may want them. */
    tell_waiters(t, f);
}

/* The database refused this finish itself, not the connection: store an error with what it said,
 * once. */
static bool turn_into_error(struct pawl_call *t, const struct op *op)
{
    if (run_refused(t))
        return true;
    if (t->replaced_once)
        return false;
    t->replaced_once = true;
    snprintf(t->their_error, sizeof(t->their_error), "its result was not stored: %.200s",
             op->err.text);
    t->theirs = (struct finish_item){ .seq = t->call->seq,
                                      .id = t->call->spec.id,
                                      .how = END_ERROR,
                                      .retry_in_us = -1,
                                      .started_us = t->started_us,
                                      .error = bytes_of(t->their_error) };
    run_post_one(t, &t->theirs);
    return true;
}

void pool_finish_late(struct write_job *j)
{
    struct pawl_call *t = attempt_of(j);
    if (t->run->flow || t->late) /* a flow is counted from its first result to its last */
        return;
    t->late = true;
    pool_finishes_in_flight(t->e, 1);
}

void pool_finish_over(struct pawl_call *t)
{
    if (t->late)
        pool_finishes_in_flight(t->e, -1);
    attempt_unref(t);
}

void pool_alone_over(struct pawl_call *t)
{
    struct exec *e = t->e;
    if (!t->lease->retry_alone)
        return;
    pthread_mutex_lock(&e->pool.lock);
    e->pool.retry_alone = false;
    pthread_mutex_unlock(&e->pool.lock);
    pool_work_came(e, 0);
}

void pool_finish_done(struct write_job *j)
{
    struct pawl_call *t = attempt_of(j);
    struct exec *e = t->e;
    struct op *op = &j->op;
    exec_look(e, op->ended, op->n_ended); /* calls that were cancelled when they were handed back */
    switch (op->status) {
    case PAWL_OK:
    case PAWL_LOST_LEASE: /* The call belongs to another node now; this answer is void. */
        break;
    case PAWL_BUSY:
    case PAWL_UNKNOWN:
    case PAWL_NO_MEMORY:
        arena_reset(&t->end_arena);
        atomic_fetch_add(&e->stats.repeats, 1);
        pool_finish_late(j);
        housekeeping_repost(e, j);
        return;
    default:
        pool_finish_late(j);
        if (turn_into_error(t, op))
            return;
        log_fields(LOG_ERROR, "the end of a call could not be stored",
                   (const struct log_field[]){ LOG_TEXT("id", t->call->spec.id),
                                               LOG_TEXT("type", t->call->spec.type),
                                               LOG_TEXT("error", bytes_of(op->err.text)) },
                   3);
    }
    pool_alone_over(t);
    if (t->run->flow) {
        run_settled(t, op);
        return;
    }
    if (op->status == PAWL_OK)
        pool_stored(t, &op->finish.v[0]);
    else
        exec_look(e, &t->call->spec.id, 1);
    pool_finish_over(t);
}
