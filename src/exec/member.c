/*
 * member.c - this process in the registry of nodes: entering, what each heartbeat says, and
 * stopping when none is stored.
 *
 * Other nodes take what this one holds when no heartbeat of it was stored for the whole grace. This
 * process counts from the moment at which the last stored one was sent, by its own monotonic clock,
 * and is done before they begin: its workers are told to stop and what they hold is handed back.
 * The clocks of the database and of other nodes play no part in that. Any thread, unless a function
 * says otherwise.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "exec/internal.h"
#include "exec/housekeeping.h"

static const struct {
    unsigned bit;
    const char *name;
} roles[] = { { DUTY_GATEWAY, "gateway" },
              { DUTY_WORKER, "worker" },
              { DUTY_SCHEDULER, "scheduler" } };

unsigned duty_find(struct bytes name)
{
    for (size_t i = 0; i < COUNT_OF(roles); i++)
        if (bytes_eq(name, bytes_of(roles[i].name)))
            return roles[i].bit;
    return 0;
}

void member_init(struct membership *m)
{
    *m = (struct membership){ 0 };
    pthread_condattr_t attr;
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&m->wake, &attr);
    pthread_condattr_destroy(&attr);
    atomic_init(&m->connections, 0);
}

static void forget(struct membership *m)
{
    mem_free(m->address);
    mem_free(m->roles_text);
    mem_free(m->queues);
    has_release(&m->has);
    m->address = m->roles_text = m->queues = NULL;
}

void member_release(struct membership *m)
{
    forget(m);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->wake);
}

static enum pawl_status watch(struct exec *e, struct pawl_err *err);

/* ---- Entering -------------------------------------------------------------------------------- */

/* The strings joined by newlines, allocated; NULL without memory. */
static char *joined(const char *const *v, size_t n)
{
    size_t len = 1, at = 0;
    for (size_t i = 0; i < n; i++)
        len += strlen(v[i]) + 1;
    char *out = mem_zalloc(len);
    for (size_t i = 0; out && i < n; i++)
        at += (size_t)snprintf(out + at, len - at, "%s%s", i ? "\n" : "", v[i]);
    return out;
}

static enum pawl_status describe(struct membership *m, const struct exec_member *given,
                                 struct pawl_err *err)
{
    const char *names[COUNT_OF(roles)];
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(roles); i++)
        if (given->roles & roles[i].bit)
            names[n++] = roles[i].name;
    forget(m);
    m->roles = given->roles;
    m->slots = given->slots;
    m->roles_text = joined(names, n);
    m->address = given->address ? joined(&given->address, 1) : NULL;
    m->queues = given->n_queues ? joined(given->queues, given->n_queues) : NULL;
    bool ok = m->roles_text && (m->address || !given->address) && (m->queues || !given->n_queues);
    return ok ? has_make(&m->has, given->has, given->n_has, err)
              : err_no_memory(err, "entering the registry");
}

static struct bytes text_or_none(const char *text)
{
    return text ? bytes_of(text) : BYTES_NONE;
}

/* What every heartbeat says. */
static struct node_op said(struct exec *e)
{
    struct pool *p = &e->pool;
    struct node_op n = { .node = bytes_of(e->conf.node),
                         .boot = bytes_of(e->boot),
                         .slots = e->member.slots,
                         .connections = atomic_load(&e->member.connections),
                         .cpu_milli = process_cpu_milli(),
                         .memory = process_memory() };
    pthread_mutex_lock(&p->lock);
    n.busy = (int)p->n_running;
    n.state = p->stopping || p->drained ? NODE_DRAINING : NODE_ACTIVE;
    pthread_mutex_unlock(&p->lock);
    return n;
}

/* Do one operation now, then tell the waiters of calls that it ended, and claims of calls that it
 * freed. */
static enum pawl_status post(struct exec *e, struct op *op, struct pawl_err *err)
{
    struct arena a;
    arena_init(&a, 16 << 20);
    op->a = &a;
    enum pawl_status st = exec_do(e, op);
    if (st != PAWL_OK)
        err_set(err, st, "%s", op->err.text);
    exec_look(e, op->ended, op->n_ended);
    if (st == PAWL_OK && op->node.reclaimed)
        exec_work_came(e);
    op->a = NULL;
    arena_release(&a);
    return st;
}

enum pawl_status exec_join(struct exec *e, struct pawl_err *err)
{
    const struct membership *m = &e->member;
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    struct op op = { .kind = OP_JOIN, .node = said(e) };
    op.node.host = bytes_of(host);
    op.node.version = BYTES(PAWL_VERSION);
    op.node.address = text_or_none(m->address);
    op.node.roles = text_or_none(m->roles_text);
    op.node.queues = text_or_none(m->queues);
    op.node.has = text_or_none(m->has.text);
    op.node.fail_lost = e->conf.fail_lost;
    return post(e, &op, err);
}

enum pawl_status exec_enter(struct exec *e, const struct exec_member *given, struct pawl_err *err)
{
    struct membership *m = &e->member;
    enum pawl_status st = describe(m, given, err);
    int turn = name_turn(e->conf.node);
    if (st == PAWL_OK)
        st = name_settle(e, err);
    int64_t sent_us = world_mono(&world_real);
    if (st == PAWL_OK)
        st = exec_join(e, err);
    name_turn_end(turn);
    struct op beat = { .kind = OP_BEAT, .node = said(e) };
    if (st == PAWL_OK)
        st = post(e, &beat, err);
    if (st != PAWL_OK)
        return st;
    pthread_mutex_lock(&m->lock);
    m->joined = true;
    m->sent_us = sent_us;
    pthread_mutex_unlock(&m->lock);
    housekeeping_nudge(e);
    beat_nudge(e);
    return watch(e, err);
}

bool exec_entered(struct exec *e)
{
    pthread_mutex_lock(&e->member.lock);
    bool in = e->member.joined;
    pthread_mutex_unlock(&e->member.lock);
    return in;
}

void exec_connections(struct exec *e, int64_t n)
{
    atomic_store(&e->member.connections, n);
}

void exec_leave(struct exec *e)
{
    struct membership *m = &e->member;
    struct pawl_err err;
    pthread_mutex_lock(&m->lock);
    bool in = m->joined;
    m->joined = false;
    pthread_mutex_unlock(&m->lock);
    struct op op = { .kind = OP_LEAVE,
                     .node = { .node = bytes_of(e->conf.node), .boot = bytes_of(e->boot) } };
    enum pawl_status st = in ? post(e, &op, &err) : PAWL_OK;
    if (st != PAWL_OK && st != PAWL_LOST_LEASE)
        log_line(LOG_WARN, "node \"%s\" could not leave: %s", e->conf.node, err.text);
}

/* ---- Heartbeats ------------------------------------------------------------------------------ */

bool member_beat(struct exec *e, struct op *out)
{
    pthread_mutex_lock(&e->pool.lock);
    bool replaced = e->pool.replaced;
    pthread_mutex_unlock(&e->pool.lock);
    if (replaced || !exec_entered(e))
        return false;
    *out = (struct op){ .kind = OP_BEAT, .node = said(e) };
    return true;
}

/* How long before other nodes take our calls we are done; handlers that look whether they are told
 * to stop get half of it. */
static int64_t margin(const struct exec *e)
{
    return MIN(e->conf.heartbeat_interval_us, e->conf.heartbeat_grace_us / 4);
}

void member_stored(struct exec *e, int64_t sent_us)
{
    struct membership *m = &e->member;
    int64_t now_us = world_mono(&world_real);
    pthread_mutex_lock(&m->lock);
    m->sent_us = MAX(m->sent_us, sent_us);
    /* A heartbeat whose commit waited for longer than that says nothing about now; the next follows
     * at once. */
    bool recent = now_us < m->sent_us + e->conf.heartbeat_grace_us - margin(e);
    bool was_cut = m->cut != CUT_NOT;
    m->why[0] = '\0';
    if (recent)
        m->cut = CUT_NOT;
    pthread_mutex_unlock(&m->lock);
    if (!was_cut || !recent)
        return;
    log_line(LOG_WARN, "node \"%s\": heartbeats are stored again; the workers go on", e->conf.node);
    pool_cut_off(e, false);
}

void member_refused(struct exec *e, const char *why)
{
    struct membership *m = &e->member;
    pthread_mutex_lock(&m->lock);
    snprintf(m->why, sizeof m->why, "%s", why);
    pthread_mutex_unlock(&m->lock);
}

/* Stop the workers when the last stored heartbeat is too long ago. Returns when to look again. */
static int64_t keep(struct exec *e, int64_t now_us)
{
    struct membership *m = &e->member;
    pthread_mutex_lock(&m->lock);
    int64_t tell_us = m->sent_us + e->conf.heartbeat_grace_us - margin(e);
    int64_t end_us = tell_us + margin(e) / 2;
    int64_t silent_us = now_us - m->sent_us;
    bool in = m->joined, tell = in && m->cut == CUT_NOT && now_us >= tell_us;
    if (tell)
        m->cut = CUT_TOLD;
    bool end = in && m->cut == CUT_TOLD && now_us >= end_us;
    if (end)
        m->cut = CUT_DONE;
    int64_t next_us = !in || m->cut == CUT_DONE ? INT64_MAX : m->cut == CUT_TOLD ? end_us : tell_us;
    char why[sizeof m->why];
    memcpy(why, m->why, sizeof why);
    pthread_mutex_unlock(&m->lock);
    if (tell) {
        log_line(LOG_ERROR,
                 "node \"%s\": no heartbeat was stored for %.1f s; stopping the workers%s%s",
                 e->conf.node, (double)silent_us / SEC_US, *why ? ": " : "", why);
        pool_cut_off(e, true);
    }
    if (end)
        pool_take_all(e);
    return next_us;
}

/* A thread of its own, because a thread that asks the database anything may wait longer than the
 * grace. */
static void *member_main(void *arg)
{
    struct exec *e = arg;
    struct membership *m = &e->member;
    for (bool closed = false; !closed;) {
        int64_t now_us = world_mono(&world_real);
        int64_t next_us = MIN(keep(e, now_us), now_us + margin(e) / 2);
        struct timespec until = { .tv_sec = next_us / SEC_US, .tv_nsec = next_us % SEC_US * 1000 };
        pthread_mutex_lock(&m->lock);
        while (!m->closed && !pthread_cond_timedwait(&m->wake, &m->lock, &until))
            ;
        closed = m->closed;
        pthread_mutex_unlock(&m->lock);
    }
    return NULL;
}

static enum pawl_status watch(struct exec *e, struct pawl_err *err)
{
    struct membership *m = &e->member;
    if (!m->runs)
        m->runs = !pthread_create(&m->thread, NULL, member_main, e);
    return m->runs ? PAWL_OK : err_no_memory(err, "watching the heartbeat");
}

void member_close(struct exec *e)
{
    struct membership *m = &e->member;
    if (!m->runs)
        return;
    pthread_mutex_lock(&m->lock);
    m->closed = true;
    pthread_mutex_unlock(&m->lock);
    pthread_cond_signal(&m->wake);
    pthread_join(m->thread, NULL);
    m->runs = false;
}

bool member_cut(struct exec *e)
{
    pthread_mutex_lock(&e->member.lock);
    bool cut = e->member.cut != CUT_NOT;
    pthread_mutex_unlock(&e->member.lock);
    return cut;
}

void member_why(struct exec *e, char *out, size_t size)
{
    pthread_mutex_lock(&e->member.lock);
    snprintf(out, size, "%s", e->member.why);
    pthread_mutex_unlock(&e->member.lock);
}

/* ---- What the registry says of us ------------------------------------------------------------ */

uint64_t member_look(struct exec *e)
{
    pthread_mutex_lock(&e->member.lock);
    uint64_t n = e->member.drains;
    pthread_mutex_unlock(&e->member.lock);
    return n;
}

/* Set whether the node should drain; `since` NULL: decided here. True when that is a change to act
 * on. */
static bool drain_is(struct membership *m, bool drain, const uint64_t *since)
{
    pthread_mutex_lock(&m->lock);
    bool news = m->drain != drain && (!since || *since == m->drains);
    if (news)
        m->drain = drain;
    m->drains += !since;
    pthread_mutex_unlock(&m->lock);
    return news;
}

void member_seen(struct exec *e, const struct node_row *own, uint64_t since)
{
    if (!exec_entered(e))
        return;
    if (!bytes_eq(own->boot, bytes_of(e->boot))) {
        housekeeping_doubt(e);
    } else if (drain_is(&e->member, own->drain, &since)) {
        log_line(LOG_INFO, "node \"%s\": %s", e->conf.node,
                 own->drain ? "draining" : "no longer draining");
        exec_drain(e, own->drain);
    }
}

void exec_drain_requested(struct exec *e, bool drain)
{
    drain_is(&e->member, drain, NULL);
    exec_drain(e, drain);
    registry_changed(e);
}

void registry_changed(struct exec *e)
{
    beat_nudge(e);
    housekeeping_registry(e);
}

void exec_on_replaced(struct exec *e, void (*replaced)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&e->member.lock);
    e->member.replaced = replaced;
    e->member.replaced_ctx = ctx;
    pthread_mutex_unlock(&e->member.lock);
}

void member_replaced(struct exec *e)
{
    pthread_mutex_lock(&e->member.lock); /* The lock is held, so that no thread is inside once
                                            exec_on_replaced(NULL) returns. */
    if (e->member.replaced)
        e->member.replaced(e->member.replaced_ctx);
    pthread_mutex_unlock(&e->member.lock);
}
