/*
 * schedules.c - ticking schedules (schedules.h).
 *
 * An idle round is one cheap read: when is the next schedule due? Then the thread sleeps until that
 * moment. A schedule that is put or resumed elsewhere is noticed by a notification, and where there
 * are none at the next look, LOOK_US later. What is due is decided by operations, one at a time:
 * thousands may be due in one second. On an engine with several writers they commit beside the
 * store thread, so that no other write waits for them; else in small steps while others write.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/schedules.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "exec/housekeeping.h"
#include "exec/internal.h"
#include "feature/zones.h"
#include "store/feature.h"

/* How long a schedule that was put on another node may go unnoticed without notifications, and with
 * them, since one may be lost. */
#define LOOK_US (2 * SEC_US)
#define HEARING_LOOK_US (10 * SEC_US)
/* After a read or write that failed. */
#define AGAIN_US (500 * MS_US)
/* What is due is locked: another node is ticking it, or has just died in the middle. */
#define LOCKED_US (50 * MS_US)
/* Schedules in one commit while others write too, and their commits wait for this one. */
#define STEP_SHARED 50
/* Schedules in one commit after the data of time zones changed. */
#define STEP_ZONES 200
/* Others write: one of them came within this time. */
#define RECENT_US (200 * MS_US)
/* Schedules in one commit on a connection of its own: calls that end wait for the rows of their
 * schedules. */
#define STEP_ASIDE 250

/* ---- Answers --------------------------------------------------------------------------------- */

/* One cancel of a call that a newer tick replaces. */
struct cancel_job {
    struct write_job job;
    struct arena arena;
};

/* Store thread. Whether it was refused does not matter: the call is named again while a tick waits
 * for its end. */
static void cancel_done(struct write_job *j)
{
    struct cancel_job *c = (struct cancel_job *)j;
    arena_release(&c->arena);
    mem_free(c);
}

static void cancel_post(struct exec *e, struct bytes id)
{
    struct pawl_err err;
    struct cancel_job *c = mem_zalloc(sizeof *c);
    if (!c)
        return;
    arena_init(&c->arena, 1 << 20);
    c->job = (struct write_job){ .op = { .kind = OP_CANCEL, .a = &c->arena },
                                 .done = cancel_done,
                                 .weight = 1 };
    c->job.op.by_id.id = arena_copy(&c->arena, id);
    if (!c->job.op.by_id.id.data || queue_put(&e->queue, &c->job, false, &err) != PAWL_OK)
        cancel_done(&c->job);
}

#define NOT_SUBMITTED "schedule \"%.*s\": its tick %.*s was not submitted: %.*s"

static void tell_refused(const struct cron_op *q)
{
    for (size_t i = 0; i < q->n_refused; i++) {
        const struct cron_refused *r = &q->refused[i];
        if (r->id.data)
            log_line(LOG_WARN, NOT_SUBMITTED, BYTES_ARG(r->schedule), BYTES_ARG(r->id),
                     BYTES_ARG(r->text));
        else
            log_line(LOG_ERROR, "schedule \"%.*s\" does not tick: %.*s", BYTES_ARG(r->schedule),
                     BYTES_ARG(r->text));
    }
}

void schedules_tell(void)
{
    struct cron_unasked_refused r;
    while (cron_unasked_take(&r))
        log_line(LOG_WARN, NOT_SUBMITTED, BYTES_ARG(bytes_of(r.schedule)),
                 BYTES_ARG(bytes_of(r.id)), BYTES_ARG(bytes_of(r.text)));
}

/* When this time of the database's clock is, by ours. */
static int64_t mono_of(struct exec *e, int64_t db_us, int64_t now_us)
{
    return now_us + MAX(db_us - exec_now(e), 0);
}

static int64_t look_again_us(struct exec *e, int64_t now_us)
{
    return now_us + (notify_works(e) ? HEARING_LOOK_US : LOOK_US);
}

/* Sleep until the next schedule is due; 0: none ever. */
static void sleep_until(struct exec *e, int64_t next_us, int64_t now_us)
{
    struct schedules *s = &e->housekeeping->schedules;
    s->look_us = look_again_us(e, now_us);
    if (next_us)
        s->look_us = MIN(s->look_us, mono_of(e, next_us, now_us));
}

static void ticked(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    struct schedules *s = &k->schedules;
    const struct op *op = &k->periodics[PERIODIC_TICK].job.op;
    s->ticked = false;
    if (op->status != PAWL_OK) {
        s->look_us = now_us + AGAIN_US;
        return;
    }
    tell_refused(&s->tick);
    for (size_t i = 0; i < s->tick.n_cancels; i++)
        cancel_post(e, s->tick.cancels[i]);
    sleep_until(e, s->tick.next_us, now_us);
    if (s->tick.more)
        s->look_us = now_us;
    else if (!s->tick.submitted && !s->tick.skipped && !s->tick.missed)
        s->look_us = MAX(s->look_us, now_us + LOCKED_US);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static bool is_free(const struct housekeeping *k, enum keep kind)
{
    return !atomic_load(&k->periodics[kind].under_way);
}

static struct op op_of(struct cron_op *q)
{
    return (struct op){ .kind = OP_FEATURE, .feature = { .of = &feature_cron, .ctx = q } };
}

/* How many schedules the next commit decides. */
static int step(struct exec *e, int64_t now_us)
{
    if (!(e->traits & STORE_ONE_WRITER))
        return STEP_ASIDE;
    return now_us < atomic_load(&e->bulk.others_us) + RECENT_US ? STEP_SHARED : CRON_STEP_MAX;
}

static void tick(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    struct schedules *s = &k->schedules;
    struct cron_due due;
    struct pawl_err err;
    if (s->ticked)
        ticked(e, now_us);
    if (atomic_exchange(&s->changed, false))
        s->look_us = now_us;
    if (now_us < s->look_us)
        return;
    s->look_us = now_us + AGAIN_US;
    if (cron_due(k->store, &due, &err) != PAWL_OK)
        return; /* the database is away, which keep_clock() logs */
    if (!due.next_us || due.next_us > due.now_us) {
        sleep_until(e, due.next_us, now_us);
        return;
    }
    s->tick = (struct cron_op){ .what = CRON_TICK,
                                .node = bytes_of(e->conf.node),
                                .max = step(e, now_us) };
    s->ticked = periodic_post_aside(&k->periodics[PERIODIC_TICK], op_of(&s->tick));
}

/* A step of the walk is answered. Once the walk is over, what was there when it began is dealt
 * with: data that changed meanwhile was not yet there for its first schedules. A walk that began
 * before this node last came on duty (zones_from below 0) begins again. */
static void zoned(struct exec *e, int64_t now_us)
{
    struct schedules *s = &e->housekeeping->schedules;
    bool done = e->housekeeping->periodics[PERIODIC_ZONES].job.op.status == PAWL_OK;
    bool on = done && s->zones.more && s->zones_from >= 0;
    s->zoned = false;
    if (done && !s->zones.more)
        s->zones_seen = s->zones_from;
    snprintf(s->after, sizeof s->after, "%.*s", on ? (int)s->zones.next.len : 0,
             on ? s->zones.next.data : "");
    if (done && s->zones.removed)
        atomic_store(&s->changed, true);
    if (!done)
        s->zones_us = now_us + AGAIN_US;
}

/* After this node began to tick, and after the data of time zones changed on this machine. */
static void zones(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    struct schedules *s = &k->schedules;
    int64_t changes = zones_changes();
    if (s->zoned)
        zoned(e, now_us);
    if (s->zones_seen == changes || now_us < s->zones_us)
        return;
    if (!s->after[0])
        s->zones_from = changes;
    s->zones =
        (struct cron_op){ .what = CRON_ZONES, .after = bytes_of(s->after), .max = STEP_ZONES };
    s->zoned = periodic_post(&k->periodics[PERIODIC_ZONES], op_of(&s->zones));
    if (!s->zoned) /* no room in the queue */
        s->zones_us = now_us + AGAIN_US;
}

/* Ticks past their retention, in steps, by the node that collects everything else. */
static void forget(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    struct schedules *s = &k->schedules;
    if (s->forgot) {
        s->forgot = false;
        if (k->periodics[PERIODIC_FORGET].job.op.status == PAWL_OK && s->forget.more)
            s->forget_us = now_us;
    }
    if (!e->conf.gc_interval_us || now_us < s->forget_us)
        return;
    s->forget_us = now_us + e->conf.gc_interval_us;
    if (lead_elsewhere(e, LEAD_MAINTENANCE, now_us))
        return;
    s->forget = (struct cron_op){ .what = CRON_FORGET,
                                  .keep_us = e->conf.cron_runs_us,
                                  .max = GC_STEP_MAX };
    s->forgot = periodic_post(&k->periodics[PERIODIC_FORGET], op_of(&s->forget));
}

/* May this process tick now? Another node leads, or this one is none. */
static bool on_duty(struct exec *e, int64_t now_us)
{
    return e->traits & STORE_DRIVEN && exec_entered(e) &&
           !lead_elsewhere(e, LEAD_SCHEDULER, now_us);
}

void schedules_init(struct schedules *s)
{
    s->zones_seen = -1;
    atomic_init(&s->changed, true);
}

void schedules_round(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    struct schedules *s = &k->schedules;
    bool duty = on_duty(e, now_us);
    if (duty && !s->leads) {
        s->look_us = 0;
        s->zones_seen = -1; /* the node before may have had other data */
        s->zones_from = -1;
        s->after[0] = 0;
    }
    s->leads = duty;
    if (duty && is_free(k, PERIODIC_ZONES))
        zones(e, now_us);
    if (duty && is_free(k, PERIODIC_TICK))
        tick(e, now_us);
    if (e->traits & STORE_DRIVEN && exec_entered(e) && is_free(k, PERIODIC_FORGET))
        forget(e, now_us);
}

int64_t schedules_next(struct exec *e)
{
    struct housekeeping *k = e->housekeeping;
    const struct schedules *s = &k->schedules;
    int64_t next_us = INT64_MAX;
    if (!(e->traits & STORE_DRIVEN) || !exec_entered(e))
        return next_us;
    if (s->leads && is_free(k, PERIODIC_TICK))
        next_us = s->look_us;
    if (s->leads && is_free(k, PERIODIC_ZONES) && s->zones_seen < 0)
        next_us = MIN(next_us, s->zones_us);
    if (e->conf.gc_interval_us && is_free(k, PERIODIC_FORGET))
        next_us = MIN(next_us, s->forget_us);
    return next_us;
}

void schedules_changed(struct exec *e)
{
    atomic_store(&e->housekeeping->schedules.changed, true);
    housekeeping_nudge(e);
}
