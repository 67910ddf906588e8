/*
 * session.c - a handler's SQL: the worker asks, the store thread runs it inside the call's
 * transaction.
 *
 * At its first statement the worker posts an OP_HANDLER and waits until the store thread has begun
 * it. From then on the store thread serves this attempt alone, statement by statement, until the
 * attempt is over; then its finish is applied in the same transaction. In a longer run it begins
 * when every result before it is stored, so that its transaction is the only finish of the run
 * under way. On an engine with one writer all other writes wait meanwhile, so the whole may last
 * SQLITE_TX_US; then the store thread ends the attempt itself and undoes what it did. On other
 * engines it has a thread and a connection of its own (writer_solo.c), and lasts as long as the
 * call may.
 *
 *     NEW --posted--> POSTED --begun--> OPEN <--> ASKED       worker asks, store thread answers
 *      |                 |                |---> COMMIT        the attempt was ended by its worker
 *      |                 |                |---> ABORT         ... or by another thread
 *      +------> DEAD <---+ (never begun)  +---> DEAD          settled
 * SPDX-License-Identifier: Apache-2.0
 */
#include <time.h>

#include "base/hook.h"
#include "base/limits.h"
#include "exec/internal.h"
#include "exec/pass.h"
#include "exec/run.h"

/* How often within the grace an idle open transaction sends a statement. */
#define AWAKE_SHARE 3
/* An attempt that got no transaction is retried after this: not at once, because the rest may work
 * meanwhile. */
#define AGAIN_US (250 * MS_US)

enum session_state { S_NEW, S_POSTED, S_OPEN, S_ASKED, S_COMMIT, S_ABORT, S_DEAD };

struct session {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    enum session_state state;
    bool begun, failed; /* the store thread has entered it; a statement went wrong */
    bool fresh;         /* the worker's own: the next statement opens a transaction */
    struct op *step;    /* of a pass: what ends the transaction of a step; NULL: a finish does */
    bool step_keeps;    /* with it: the SQL is to be kept */
    int64_t deadline_us;
    struct write_job job; /* the OP_HANDLER */
    struct op end;        /* its end: the finish of this attempt */
    struct sql_query query;
    struct pawl_rows rows;
    enum pawl_status status;
    struct pawl_err err;
};

static void move(struct session *s, enum session_state to)
{
    s->state = to;
    pthread_cond_broadcast(&s->moved);
}

/* ---- On the store thread --------------------------------------------------------------------- */

static void serve(struct pawl_call *t, struct session *s, struct sql_tx *tx)
{
    s->query.deadline_us = s->deadline_us;
    if (s->failed)
        s->status = err_set(&s->err, PAWL_STATE, "an earlier statement of this attempt failed");
    else
        s->status = store_sql(tx, &t->arena, &s->query, &s->rows, &s->err);
    if (s->status != PAWL_OK)
        s->failed = true;
    move(s, S_OPEN);
}

/* The server ends a transaction that was idle for the grace, so that what a stopped process locked
 * becomes free. A handler that lives and takes its time must not be ended by that. */
static void stay_awake(struct session *s, struct sql_tx *tx)
{
    struct arena a;
    struct pawl_rows rows;
    struct sql_query q = { .sql = "SELECT 1", .deadline_us = s->deadline_us };
    arena_init(&a, 64 << 10);
    if (!s->failed && store_sql(tx, &a, &q, &rows, &s->err) != PAWL_OK) {
        s->status = s->err.status;
        s->failed = true;
    }
    arena_release(&a);
}

static struct timespec moment(int64_t us)
{
    return (struct timespec){ .tv_sec = us / SEC_US, .tv_nsec = us % SEC_US * 1000 };
}

/* Wait for the worker, and keep the transaction from being idle; where others can write meanwhile.
 */
static void wait_awake(struct pawl_call *t, struct session *s, struct sql_tx *tx)
{
    struct timespec until =
        moment(world_mono(&world_real) + t->e->conf.heartbeat_grace_us / AWAKE_SHARE);
    if (pthread_cond_timedwait(&s->moved, &s->lock, &until) && s->state == S_OPEN)
        stay_awake(s, tx);
}

/* The time is up. True: this ended the attempt. False: another thread just did, and will say so. */
static bool time_is_up(struct pawl_call *t, struct session *s)
{
    int running = ATTEMPT_RUNNING;
    if (!atomic_compare_exchange_strong(&t->stage, &running, ATTEMPT_OVER))
        return false;
    t->theirs =
        (struct finish_item){ .seq = t->call->seq,
                              .id = t->call->spec.id,
                              .how = END_ERROR,
                              .retry_in_us = -1,
                              .started_us = t->started_us,
                              .error = BYTES("its transaction was open for longer than 1 s") };
    move(s, S_ABORT);
    return true;
}

/* OP_HANDLER's run: true commits what the SQL did together with the handler's answer. */
static bool session_run(void *ctx, struct sql_tx *tx)
{
    struct pawl_call *t = ctx;
    struct session *s = atomic_load(&t->session);
    /* Where others can write meanwhile, only the deadline of the attempt ends it, which the
     * housekeeping thread watches. */
    bool timed = t->e->traits & STORE_ONE_WRITER, late = false;
    pthread_mutex_lock(&s->lock);
    s->begun = true;
    s->deadline_us = timed ? world_mono(&world_real) + SLOWER(SQLITE_TX_US) : t->deadline_us;
    struct timespec until = moment(s->deadline_us);
    if (s->state == S_POSTED)
        move(s, S_OPEN);
    while (s->state != S_COMMIT && s->state != S_ABORT) {
        if (s->state == S_ASKED)
            serve(t, s, tx);
        else if (!timed)
            wait_awake(t, s, tx);
        else if (pthread_cond_timedwait(&s->moved, &s->lock, &until) && s->state == S_OPEN)
            timed = late = time_is_up(t, s);
    }
    bool commit = s->state == S_COMMIT && (s->step ? s->step_keeps : t->item.how == END_RESULT);
    if (s->step) {
        s->end = *s->step;
    } else {
        t->finish.v = s->state == S_COMMIT ? &t->item : &t->theirs;
        s->end = (struct op){ .kind = OP_FINISH, .finish = t->finish };
    }
    pthread_mutex_unlock(&s->lock);
    if (late) {
        attempt_stop(t, STOP_TIME);
        pool_hung(t);
    }
    return commit;
}

/* Store thread: the transaction of a step is settled. */
static void step_done(struct session *s)
{
    const struct op *op = &s->job.op;
    pthread_mutex_lock(&s->lock);
    *s->step = s->end;
    s->step->status = op->status;
    s->step->err = op->err;
    s->step->ended = op->ended;
    s->step->n_ended = op->n_ended;
    move(s, S_DEAD);
    pthread_mutex_unlock(&s->lock);
}

/* Store thread: the transaction is settled, or never began. */
static void session_done(struct write_job *j)
{
    struct session *s = (struct session *)((char *)j - offsetof(struct session, job));
    struct pawl_call *t = j->op.handler.ctx;
    bool ours = s->begun; /* Set by session_run(), before this job was answered. */
    if (ours && s->step) {
        step_done(s);
        return;
    }
    if (!ours)
        run_untake(t);
    pthread_mutex_lock(&s->lock);
    bool aborted = s->state == S_ABORT;
    s->status = j->op.status;
    s->err = j->op.err;
    move(s, S_DEAD);
    pthread_mutex_unlock(&s->lock);
    if (!ours) {
        if (aborted)
            run_end(t, &t->theirs);
        return; /* else the worker is told that it could not begin */
    }
    t->job = (struct write_job){ .op = { .kind = OP_FINISH,
                                         .a = &t->end_arena,
                                         .finish = s->end.finish,
                                         .status = j->op.status,
                                         .err = j->op.err,
                                         .ended = j->op.ended,
                                         .n_ended = j->op.n_ended } };
    if (j->op.status == PAWL_OK || j->op.status == PAWL_LOST_LEASE) {
        struct exec *e = t->e;
        bool keyed = t->call->spec.key.data;
        pool_finish_done(&t->job);
        if (keyed)
            exec_work_came(e); /* No claim shared its commit: a transaction commits alone. */
        return;
    }
    /* The commit failed and the SQL is undone: the handler has to run again, and this attempt is
     * not counted. */
    t->theirs = (struct finish_item){
        .seq = t->call->seq, .id = t->call->spec.id, .how = END_RELEASE, .started_us = t->started_us
    };
    run_post_one(t, &t->theirs);
}

/* ---- On the worker --------------------------------------------------------------------------- */

static enum pawl_status session_make(struct pawl_call *t, struct session **out,
                                     struct pawl_err *err)
{
    pthread_condattr_t attr;
    struct session *s = arena_zalloc(&t->arena, 1, sizeof(*s));
    if (!s)
        return err_no_memory(err, "opening a transaction");
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->moved, &attr);
    pthread_condattr_destroy(&attr);
    s->fresh = true;
    atomic_store(&t->session, s);
    *out = s;
    return PAWL_OK;
}

/* A transaction that has not begun. */
static void session_ready(struct pawl_call *t, struct session *s)
{
    s->fresh = false;
    s->begun = s->failed = false;
    s->step = NULL;
    s->job =
        (struct write_job){ .op = { .kind = OP_HANDLER,
                                    .a = t->pass ? pass_answers(t) : &t->end_arena,
                                    .handler = { .run = session_run, .ctx = t, .end = &s->end } },
                            .done = session_done,
                            .weight = 1 };
}

/* May the transaction begin? A thread that ends the attempt from now on finds the session. One that
 * ended it before did not, and would never tell the store thread: so look at the stage after the
 * session was made. */
static enum pawl_status session_may(struct pawl_call *t, struct session *s, struct pawl_err *err)
{
    bool over = atomic_load(&t->stage) != ATTEMPT_RUNNING;
    enum pawl_status st =
        over ? err_set(err, PAWL_STATE, "this attempt is over") : run_take(t, err);
    pthread_mutex_lock(&s->lock);
    if (st == PAWL_OK && s->state != S_NEW)
        st = err_set(err, PAWL_STATE, "this attempt is over");
    if (st == PAWL_OK)
        s->state = S_POSTED;
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* It could not be posted: the queue is closed. */
static void session_unpost(struct pawl_call *t, struct session *s)
{
    run_untake(t);
    pthread_mutex_lock(&s->lock);
    bool aborted = s->state == S_ABORT;
    move(s, S_DEAD);
    pthread_mutex_unlock(&s->lock);
    if (aborted)
        run_end(t, &t->theirs);
}

/* Post it and wait until the store thread has begun it. The queue and every operation in it are
 * bounded, so the wait ends. */
static enum pawl_status session_begin(struct pawl_call *t, struct session *s, struct pawl_err *err)
{
    enum pawl_status st = session_may(t, s, err);
    if (st == PAWL_OK) {
        if (!solo_post(t->e, &s->job))
            st = queue_put(&t->e->queue, &s->job, true, err);
        if (st != PAWL_OK)
            session_unpost(t, s);
    }
    pthread_mutex_lock(&s->lock);
    while (s->state == S_POSTED)
        pthread_cond_wait(&s->moved, &s->lock);
    if (st == PAWL_OK && s->state != S_OPEN)
        st = s->state == S_DEAD && s->status != PAWL_OK
                 ? err_set(err, s->status, "%s", s->err.text)
                 : err_set(err, PAWL_STATE, "this attempt is over");
    s->failed = st != PAWL_OK; /* Then session_check() turns a reply into an error. */
    s->status = st;
    if (s->failed && err)
        s->err = *err;
    pthread_mutex_unlock(&s->lock);
    return st;
}

enum pawl_status session_sql(struct pawl_call *t, const struct sql_query *q, struct pawl_rows *out,
                             struct pawl_err *err)
{
    struct session *s = atomic_load(&t->session);
    enum pawl_status st = PAWL_OK;
    if (!s) {
        st = session_make(t, &s, err);
        if (st != PAWL_OK)
            return st;
    }
    if (s->fresh) {
        session_ready(t, s);
        st = session_begin(t, s, err);
        if (st != PAWL_OK)
            return st;
    }
    pthread_mutex_lock(&s->lock);
    if (s->state == S_OPEN) {
        s->query = *q;
        move(s, S_ASKED);
        while (s->state == S_ASKED)
            pthread_cond_wait(&s->moved, &s->lock);
    }
    /* If the transaction ended meanwhile, `status` is that of its end, not of the statement. */
    if (s->state != S_OPEN)
        st = err_set(err, PAWL_STATE, "this attempt's transaction is over");
    else if (s->status != PAWL_OK)
        st = err_set(err, s->status, "%s", s->err.text);
    else
        *out = s->rows;
    pthread_mutex_unlock(&s->lock);
    return st;
}

bool session_open(struct pawl_call *t)
{
    struct session *s = atomic_load(&t->session);
    if (!s)
        return false;
    pthread_mutex_lock(&s->lock);
    bool open = s->state != S_DEAD && s->state != S_NEW;
    pthread_mutex_unlock(&s->lock);
    return open;
}

void session_check(struct pawl_call *t)
{
    struct session *s = atomic_load(&t->session);
    if (!s)
        return;
    struct finish_item *f = &t->item;
    pthread_mutex_lock(&s->lock);
    if (s->failed && f->how == END_RESULT) {
        char *text = arena_printf(&t->arena, "its SQL failed: %s", s->err.text);
        attempt_error(t, END_ERROR, text ? bytes_of(text) : BYTES("its SQL failed"));
        f->retry_in_us = -1;
        f->state_do = STATE_KEEP;
    }
    /* The database was away before the first statement, which is no failure of the handler. */
    if (s->failed && !s->begun && s->status == PAWL_BUSY && f->how == END_ERROR) {
        attempt_error(t, END_LATER, BYTES_NONE);
        f->retry_in_us = AGAIN_US;
    }
    pthread_mutex_unlock(&s->lock);
}

bool session_finish(struct pawl_call *t)
{
    struct session *s = atomic_load(&t->session);
    if (!s)
        return false;
    pthread_mutex_lock(&s->lock);
    bool open = s->state == S_OPEN;
    if (open)
        move(s, S_COMMIT);
    pthread_mutex_unlock(&s->lock);
    return open;
}

enum pawl_status session_step(struct pawl_call *t, struct op *end, bool keep)
{
    struct session *s = atomic_load(&t->session);
    pthread_mutex_lock(&s->lock);
    bool open = s->state == S_OPEN;
    if (open) {
        s->step = end;
        s->step_keeps = keep;
        move(s, S_COMMIT);
        while (s->state != S_DEAD)
            pthread_cond_wait(&s->moved, &s->lock);
        s->state = S_NEW;
        s->fresh = true;
        s->failed = false;
    } else {
        end->status = err_set(&end->err, PAWL_STATE, "this attempt is over");
    }
    pthread_mutex_unlock(&s->lock);
    if (open)
        run_untake(t);
    return end->status;
}

void session_reset(struct pawl_call *t)
{
    struct session *s = atomic_load(&t->session);
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    if (s->state == S_DEAD) {
        s->state = S_NEW;
        s->fresh = true;
        s->failed = false;
    }
    pthread_mutex_unlock(&s->lock);
}

bool session_abort(struct pawl_call *t)
{
    struct session *s = atomic_load(&t->session);
    if (!s)
        return false;
    pthread_mutex_lock(&s->lock);
    bool open = s->state == S_POSTED || s->state == S_OPEN || s->state == S_ASKED;
    if (open)
        move(s, S_ABORT);
    else if (s->state == S_NEW)
        move(s, S_DEAD);
    pthread_mutex_unlock(&s->lock);
    return open;
}

void session_free(struct pawl_call *t)
{
    struct session *s = atomic_load(&t->session);
    if (!s)
        return;
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->moved);
}
