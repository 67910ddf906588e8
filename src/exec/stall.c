/*
 * stall.c - commits that have no answer: callers that wait for them are told, new writes are
 * refused.
 *
 * A database that confirms a commit only when a standby has it (PostgreSQL's
 * synchronous_standby_names, MariaDB's semi-synchronous replication) lets every COMMIT wait while
 * that standby is away. The thread that sent it goes on waiting: to cancel the wait would show rows
 * that no standby has. So the thread in this file tells the callers that wait for such a commit
 * UNKNOWN after COMMIT_WAIT_US, takes the jobs that wait behind it out of the queue, and has new
 * writes refused at once (exec_stalled). All of that ends when the answer comes.
 *
 * Only on engines with several writers, where a commit may wait for something outside the process.
 * What must stay true: a job is told late under the lock, and the thread that commits takes that
 * lock before it settles anything, so that no job is told late after it was settled.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <time.h>

#include "base/hook.h"
#include "base/limits.h"
#include "base/log.h"
#include "exec/internal.h"

/* How often the queue is emptied while a commit has no answer: a thread that was about to post when
 * the stall began puts its job in afterwards. */
#define SHED_US (100 * MS_US)

static enum pawl_status why(struct pawl_err *err)
{
    return err_set(err, PAWL_BUSY,
                   "the database has not confirmed a commit for %d s; perhaps it waits for a "
                   "standby that is away",
                   (int)(COMMIT_WAIT_US / SEC_US));
}

bool exec_may_stall(const struct exec *e)
{
    return e->stall.open;
}

enum pawl_status exec_stalled(struct exec *e, struct pawl_err *err)
{
    return atomic_load(&e->stalled_us) ? why(err) : PAWL_OK;
}

enum pawl_status exec_unknown(struct pawl_err *err)
{
    return err_set(err, PAWL_UNKNOWN,
                   "the database has not confirmed the commit for %d s; it may still be stored: "
                   "repeat it with the same id",
                   (int)(COMMIT_WAIT_US / SEC_US));
}

/* ---- Under the lock -------------------------------------------------------------------------- */

static void tell(const struct under_way *u)
{
    for (struct write_job *j = u->jobs; j; j = j->next)
        write_job_tell_late(j);
}

/* Set since when new writes are refused, and log when that begins or ends. */
static void set_stalled(struct exec *e)
{
    int64_t since_us = 0, was_us = atomic_load(&e->stalled_us);
    for (const struct under_way *u = e->stall.all; u; u = u->next)
        if (u->told && u->counts && (!since_us || u->since_us < since_us))
            since_us = u->since_us;
    atomic_store(&e->stalled_us, since_us);
    if (since_us && !was_us)
        log_line(LOG_ERROR,
                 "the database has not confirmed a commit for %.1f s; still waiting, and "
                 "refusing new writes",
                 (double)(world_mono(&world_real) - since_us) / SEC_US);
    else if (!since_us && was_us)
        log_line(LOG_WARN, "the database confirmed a commit after %.1f s; taking writes again",
                 (double)(world_mono(&world_real) - was_us) / SEC_US);
}

/* Look at one thread that commits. Returns when to look again. */
static int64_t look(struct exec *e, struct under_way *u, int64_t now_us)
{
    int64_t sent_us = store_committing(u->store);
    if (!u->told && !sent_us)
        return now_us + SLOWER(COMMIT_WAIT_US);
    if (!u->told && now_us < sent_us + SLOWER(COMMIT_WAIT_US))
        return sent_us + SLOWER(COMMIT_WAIT_US);
    if (!u->told) {
        u->told = true;
        u->since_us = sent_us;
        set_stalled(e); /* Before they are told, so that a caller that tries again at once is
                           refused. */
        tell(u);
    }
    return now_us + SHED_US;
}

/* Look at all of them. Returns when to look again. */
static int64_t look_at_all(struct exec *e)
{
    int64_t now_us = world_mono(&world_real), next_us = INT64_MAX;
    for (struct under_way *u = e->stall.all; u; u = u->next)
        if (u->store)
            next_us = MIN(next_us, look(e, u, now_us));
    return next_us;
}

/* How many threads of writer_solo.c are in commits without an answer. */
static int solos_stalled(const struct stall *s)
{
    int n = 0;
    for (const struct under_way *u = s->all; u; u = u->next)
        n += u->told && !u->counts;
    return n;
}

/* ---- Jobs that wait behind such a commit ----------------------------------------------------- */

static void refuse(struct write_job *first)
{
    struct pawl_err err;
    why(&err);
    for (struct write_job *j = first, *next; j; j = next) {
        next = j->next; /* `done` takes the job */
        j->next = NULL;
        op_refuse(&j->op, &err);
        j->done(j);
    }
}

/* Refuse the jobs that no thread will take soon: in the queue, waiting for a key's turn, or for a
 * thread of writer_solo.c. Called under the lock, and releases it meanwhile, because the jobs' own
 * functions and the lists take locks. The store thread touches the list of turns only while it does
 * not commit. */
static void shed(struct exec *e)
{
    struct stall *s = &e->stall;
    bool writer = s->writer.told;
    int solos = solos_stalled(s);
    if (!writer && !solos)
        return;
    struct write_job *turns = writer ? write_jobs_shed(&e->turns) : NULL;
    pthread_mutex_unlock(&s->lock);
    refuse(turns);
    if (writer)
        refuse(queue_shed(&e->queue));
    if (solos)
        refuse(solo_shed(e, solos));
    pthread_mutex_lock(&s->lock);
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void *stall_main(void *arg)
{
    struct exec *e = arg;
    struct stall *s = &e->stall;
    pthread_mutex_lock(&s->lock);
    while (!s->closed) {
        int64_t next_us = look_at_all(e);
        shed(e);
        if (s->closed)
            break;
        s->sleeping = next_us == INT64_MAX;
        struct timespec until = { .tv_sec = next_us / SEC_US, .tv_nsec = next_us % SEC_US * 1000 };
        if (s->sleeping)
            pthread_cond_wait(&s->wake, &s->lock);
        else
            pthread_cond_timedwait(&s->wake, &s->lock, &until);
        s->sleeping = false;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void stall_enter(struct exec *e, struct under_way *u, bool counts)
{
    struct stall *s = &e->stall;
    if (!s->open)
        return;
    pthread_mutex_lock(&s->lock);
    *u = (struct under_way){ .counts = counts, .next = s->all };
    s->all = u;
    pthread_mutex_unlock(&s->lock);
}

void stall_leave(struct exec *e, struct under_way *u)
{
    struct stall *s = &e->stall;
    if (!s->open)
        return;
    pthread_mutex_lock(&s->lock);
    struct under_way **at = &s->all;
    while (*at && *at != u)
        at = &(*at)->next;
    if (*at)
        *at = u->next;
    pthread_mutex_unlock(&s->lock);
}

/* Once awake, the watching thread sleeps for two seconds at least, so a busy writer wakes it no
 * more often than that. */
void stall_begin(struct exec *e, struct under_way *u, struct store *store, struct write_job *jobs)
{
    struct stall *s = &e->stall;
    if (!s->open)
        return;
    pthread_mutex_lock(&s->lock);
    u->store = store;
    u->jobs = jobs;
    u->told = false;
    bool wake = s->sleeping;
    s->sleeping = false;
    pthread_mutex_unlock(&s->lock);
    if (wake)
        pthread_cond_signal(&s->wake);
}

void stall_end(struct exec *e, struct under_way *u)
{
    struct stall *s = &e->stall;
    if (!s->open)
        return;
    pthread_mutex_lock(&s->lock);
    u->store = NULL;
    u->jobs = NULL;
    if (u->told) {
        u->told = false;
        set_stalled(e);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- Opening and closing --------------------------------------------------------------------- */

enum pawl_status stall_open(struct exec *e, struct pawl_err *err)
{
    struct stall *s = &e->stall;
    pthread_condattr_t attr;
    if (e->traits & STORE_ONE_WRITER)
        return PAWL_OK;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attr);
    pthread_condattr_destroy(&attr);
    s->open = true;
    stall_enter(e, &s->writer, true);
    stall_enter(e, &s->beat, true);
    s->runs = !pthread_create(&s->thread, NULL, stall_main, e);
    return s->runs ? PAWL_OK : err_no_memory(err, "starting the thread that watches commits");
}

void stall_close(struct exec *e)
{
    struct stall *s = &e->stall;
    if (!s->runs)
        return;
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    pthread_mutex_unlock(&s->lock);
    pthread_cond_signal(&s->wake);
    pthread_join(s->thread, NULL);
    s->runs = false;
}

void stall_release(struct exec *e)
{
    struct stall *s = &e->stall;
    if (!s->open)
        return;
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->wake);
}
