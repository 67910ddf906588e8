/*
 * schedules.c - the schedules that the settings file declares: stored when the server starts, and
 * again on SIGHUP.
 *
 * Each is a PUT under its name; one that is stored already is not written again, and one that is in
 * the file no longer stays as it is. At the start the main thread waits for each; on SIGHUP another
 * thread does it, with copies, because the loop must not wait for the database. One file is stored
 * at a time: a newer one waits for the older one, which then stops after the schedule it is at.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "exec/node.h"
#include "exec/write_job.h"
#include "feature/cron.h"
#include "lib/lib.h"
#include "model/schedule.h"
#include "server/server.h"

#define ONE_LEN_MAX (8 << 20)
#define ALL_LEN_MAX (16 << 20)

/* What is stored for one settings file. */
struct declared {
    struct loop_work inside; /* first */
    struct server *s;
    atomic_bool outdated; /* the settings were read again since; any thread */
    struct arena arena;
    const char *file;
    struct conf_schedule *v; /* in the arena */
    size_t n;
    int64_t call_timeout_us;
    size_t input_len_max;
    size_t changed;
    struct pawl_err err;
};

static enum pawl_status put_one(struct declared *d, struct arena *a, const struct conf_schedule *c,
                                struct pawl_err *err)
{
    const struct schedule_limits limits = { d->call_timeout_us, d->input_len_max };
    struct exec *e = d->s->pawl->e;
    struct schedule s;
    struct json *v;
    enum pawl_status st = json_parse(a, c->text, &v, err);
    if (st == PAWL_OK)
        st = schedule_read_flat(a, v, &limits, &s, err);
    if (st != PAWL_OK)
        return st;
    struct cron_op cron = {
        .what = CRON_PUT, .name = bytes_of(c->name), .schedule = &s, .node = bytes_of(exec_node(e))
    };
    struct op op = { .kind = OP_FEATURE, .a = a, .feature = { .of = &feature_cron, .ctx = &cron } };
    st = exec_do(e, &op);
    if (st != PAWL_OK)
        return err_set(err, st, "%s", op.err.text);
    const struct cron_op *done = op.feature.ctx; /* it may be a copy of ours */
    if (done->changed)
        log_line(LOG_INFO, "schedule \"%.100s\": %s, from %.150s:%d", c->name,
                 done->created ? "created" : "changed", d->file, c->line);
    d->changed += done->changed;
    return PAWL_OK;
}

/* Store them in the order of the file. The first that is refused ends it, and so does a newer file;
 * those before it stay. */
static enum pawl_status put_all(struct declared *d)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < d->n && st == PAWL_OK && !atomic_load(&d->outdated); i++) {
        struct pawl_err why = { 0 };
        struct arena a;
        arena_init(&a, ONE_LEN_MAX);
        st = put_one(d, &a, &d->v[i], &why);
        arena_release(&a);
        if (st != PAWL_OK)
            err_set(&d->err, st, "%.150s:%d: schedule \"%.100s\": %.250s", d->file,
                    conf_schedule_line(&d->v[i], why.text), d->v[i].name, why.text);
    }
    return st;
}

/* Fill *d with what these settings declare; with `copy` nothing of them is borrowed. */
static enum pawl_status declared_fill(struct declared *d, struct server *s,
                                      const struct settings *settings, bool copy,
                                      struct pawl_err *err)
{
    d->s = s;
    d->file = settings->file;
    d->v = settings->schedules;
    d->n = settings->n_schedules;
    d->call_timeout_us = settings->v[SET_CALL_TIMEOUT].number;
    d->input_len_max = (size_t)settings->v[SET_MAX_INPUT].number;
    arena_init(&d->arena, ALL_LEN_MAX);
    if (!copy || !d->n)
        return PAWL_OK;
    d->file = arena_text(&d->arena, bytes_of(settings->file));
    d->v = arena_zalloc(&d->arena, d->n, sizeof(*d->v));
    for (size_t i = 0; d->v && i < d->n; i++)
        d->v[i] = (struct conf_schedule){
            .name = arena_text(&d->arena, bytes_of(settings->schedules[i].name)),
            .text = arena_copy(&d->arena, settings->schedules[i].text),
            .line = settings->schedules[i].line,
            .lines = arena_copy(&d->arena, settings->schedules[i].lines),
        };
    return d->arena.failed ? err_no_memory(err, "the schedules of the settings") : PAWL_OK;
}

enum pawl_status schedules_store(struct server *s, struct pawl_err *err)
{
    struct declared d = { 0 };
    enum pawl_status st = declared_fill(&d, s, &s->settings, false, err);
    if (st == PAWL_OK)
        st = put_all(&d);
    if (st != PAWL_OK)
        *err = d.err;
    arena_release(&d.arena);
    return st;
}

/* ---- On SIGHUP ------------------------------------------------------------------------------- */

static void again_work(struct loop_work *w)
{
    struct declared *d = (struct declared *)w;
    d->err.status = put_all(d);
}

static void again_free(struct declared *d)
{
    if (!d)
        return;
    arena_release(&d->arena);
    free(d);
}

static void again_done(struct loop_work *w);

/* Begin with the newest file, when the one before is done. */
static void again_next(struct server *s)
{
    struct pawl_err err = { 0 };
    if (s->storing || !s->to_store)
        return;
    if (atomic_load(&s->stopping)) {
        again_free(s->to_store);
        s->to_store = NULL;
        return;
    }
    struct declared *d = s->storing = s->to_store;
    s->to_store = NULL;
    d->inside.work = again_work;
    d->inside.done = again_done;
    if (loop_work(s->loop, &d->inside, &err) == PAWL_OK)
        return;
    log_line(LOG_ERROR, "schedules not stored: %s", err.text);
    s->storing = NULL;
    again_free(d);
}

static void again_done(struct loop_work *w)
{
    struct declared *d = (struct declared *)w;
    struct server *s = d->s;
    if (d->err.status != PAWL_OK)
        log_line(LOG_ERROR, "schedules not stored, from this one on: %s", d->err.text);
    else
        log_line(LOG_INFO, "%zu schedules of the settings: %zu stored, %s", d->n, d->changed,
                 atomic_load(&d->outdated) ? "until the file was read again"
                                           : "the others as they were");
    s->storing = NULL;
    again_free(d);
    again_next(s);
}

void schedules_store_again(struct server *s)
{
    struct pawl_err err = { 0 };
    struct declared *d = calloc(1, sizeof(*d));
    enum pawl_status st = d ? declared_fill(d, s, &s->settings, true, &err)
                            : err_no_memory(&err, "the schedules of the settings");
    if (st != PAWL_OK) {
        log_line(LOG_ERROR, "schedules not stored: %s", err.text);
        again_free(d);
        return;
    }
    again_free(s->to_store);
    s->to_store = d;
    if (s->storing)
        atomic_store(&s->storing->outdated, true);
    if (!d->n) { /* nothing to store, but what an older file had must not come after it */
        again_free(d);
        s->to_store = NULL;
    }
    again_next(s);
}
