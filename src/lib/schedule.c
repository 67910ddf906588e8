/*
 * schedule.c - schedules that programs and modules declare, stored when the workers start.
 *
 * What a struct pawl_schedule has is written as JSON and read again, so that it meets the same
 * rules and sentences as a schedule from HTTP, settings and SQL.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "exec/write_job.h"
#include "feature/cron.h"
#include "lib/lib.h"
#include "model/schedule.h"

/* An input in base64, and what is read from it. */
#define DECLARED_LEN_MAX (16 << 20)

struct declared {
    struct declared *next;
    struct arena arena; /* of everything that it points to */
    struct bytes name;
    bool removes;
    struct schedule s;
};

static struct declared *declared_new(void)
{
    struct declared *d = mem_zalloc(sizeof *d);
    if (d)
        arena_init(&d->arena, DECLARED_LEN_MAX);
    return d;
}

static void declared_drop(struct declared *d)
{
    arena_release(&d->arena);
    mem_free(d);
}

void declared_free(struct pawl *p)
{
    for (struct declared *d = p->declared, *next; d; d = next) {
        next = d->next;
        declared_drop(d);
    }
    p->declared = NULL;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static enum pawl_status rule_of(const struct pawl_schedule *s, struct schedule *out,
                                struct pawl_err *err)
{
    int given = (s->cron != NULL) + (s->every_us != 0) + (s->n_at != 0);
    if (given != 1)
        return err_set(err, PAWL_INVALID,
                       "field \"cron\": exactly one of cron, every_us and at_us must be given");
    if (s->n_at && !s->at_us)
        return err_set(err, PAWL_INVALID, "field \"at\": has %zu times and a NULL pointer",
                       s->n_at);
    if (s->n_at > SCHEDULE_TIMES_MAX)
        return err_set(err, PAWL_INVALID, "field \"at\": has %zu times, limit %d", s->n_at,
                       SCHEDULE_TIMES_MAX);
    out->rule.kind = s->cron ? SCHEDULE_CRON : s->n_at ? SCHEDULE_AT : SCHEDULE_EVERY;
    out->cron = bytes_of(s->cron);
    out->rule.every_us = s->every_us;
    out->rule.at_us = s->at_us;
    out->rule.n_at = s->n_at;
    out->rule.starts_us = s->starts_at_us;
    out->rule.ends_us = s->ends_at_us;
    return PAWL_OK;
}

/* What JSON cannot say, or would say wrongly. */
static enum pawl_status values_of(struct arena *a, const struct pawl_schedule *s,
                                  int64_t call_timeout_us, struct schedule *out,
                                  struct pawl_err *err)
{
    if (!s->call)
        return err_set(err, PAWL_INVALID, "field \"call\": is missing");
    if (s->call->id || s->call->run_at_us || s->call->expires_at_us)
        return err_set(err, PAWL_INVALID,
                       "field \"call\": id, run_at and expires_at come with each tick");
    if ((unsigned)s->catch_up > PAWL_CATCH_UP_ALL || (unsigned)s->overlap > PAWL_OVERLAP_REPLACE)
        return err_set(err, PAWL_INVALID,
                       "fields \"catch_up\" and \"overlap\": must be values of their enums");
    schedule_init(out);
    out->catch_up = (enum catch_up)s->catch_up;
    out->overlap = (enum overlap)s->overlap;
    out->jitter_us = s->jitter_us;
    if (s->catch_up_for_us)
        out->catch_up_for_us = s->catch_up_for_us;
    if (s->zone)
        out->zone = bytes_of(s->zone);
    enum pawl_status st = rule_of(s, out, err);
    if (st == PAWL_OK)
        st = spec_read(a, s->call, &out->call, err);
    if (!s->call->timeout_us && call_timeout_us)
        out->call.timeout_us = call_timeout_us;
    return st;
}

/* The settings of the node count as they do for a PUT. The JSON leaves out a timeout that is the
 * model's default, so it is read back with that one. */
static enum pawl_status declared_read(struct declared *d, const struct exec_conf *conf,
                                      const struct pawl_schedule *s, struct pawl_err *err)
{
    const struct schedule_limits limits = { .input_len_max = conf->input_len_max };
    struct schedule given;
    struct bytes text;
    struct json *object;
    const char *fault = s->name ? name_fault(bytes_of(s->name)) : "is missing";
    if (fault)
        return err_set(err, PAWL_INVALID, "field \"name\": %s", fault);
    d->name = arena_copy(&d->arena, bytes_of(s->name));
    enum pawl_status st = values_of(&d->arena, s, conf->call_timeout_us, &given, err);
    if (st == PAWL_OK)
        st = schedule_write(&d->arena, &given, &text, err);
    if (st == PAWL_OK)
        st = json_parse(&d->arena, text, &object, err);
    if (st == PAWL_OK)
        st = schedule_read(&d->arena, object, &limits, &d->s, err);
    d->s.paused = d->s.paused_given = s->paused;
    return st == PAWL_OK && d->arena.failed ? err_no_memory(err, "a schedule") : st;
}

/* ---- Declaring ------------------------------------------------------------------------------- */

static enum pawl_status enter(struct pawl *p, struct declared *d, const char *name,
                              struct pawl_err *err)
{
    if (exec_started(p->e))
        return err_set(err, PAWL_STATE, "schedule \"%.255s\": declare it before pawl_start()",
                       name);
    if (!p->declared)
        p->last_declared = &p->declared;
    *p->last_declared = d;
    p->last_declared = &d->next;
    return PAWL_OK;
}

static enum pawl_status settle(struct pawl_module *m, struct declared *d, enum pawl_status st,
                               const struct pawl_err *why, const char *name)
{
    struct pawl_err err = { 0 };
    if (st == PAWL_OK)
        st = enter(m->p, d, name, &err);
    else
        err_set(&err, st, "schedule \"%.100s\": %.350s", name ? name : "", why->text);
    if (st != PAWL_OK && d)
        declared_drop(d);
    return module_remember(m, st, &err);
}

enum pawl_status pawl_schedule(struct pawl_module *m, const struct pawl_schedule *schedule)
{
    struct pawl_schedule s = { PAWL_SCHEDULE_INIT };
    struct pawl_err err = { 0 };
    if (!m)
        return PAWL_INVALID;
    if (!schedule || schedule->size < sizeof(size_t) || schedule->size > STRUCT_SIZE_MAX) {
        enum pawl_status bad = err_set(
            &err, PAWL_INVALID, "struct pawl_schedule: initialise it with PAWL_SCHEDULE_INIT");
        return module_remember(m, bad, &err);
    }
    memcpy(&s, schedule, MIN(schedule->size, sizeof s));
    struct declared *d = declared_new();
    enum pawl_status st =
        d ? declared_read(d, exec_conf_of(m->p->e), &s, &err) : err_no_memory(&err, "a schedule");
    return settle(m, d, st, &err, s.name);
}

enum pawl_status pawl_unschedule(struct pawl_module *m, const char *name)
{
    struct pawl_err err = { 0 };
    if (!m)
        return PAWL_INVALID;
    const char *fault = name ? name_fault(bytes_of(name)) : "is missing";
    struct declared *d = declared_new();
    enum pawl_status st = d ? PAWL_OK : err_no_memory(&err, "a schedule");
    if (st == PAWL_OK && fault)
        st = err_set(&err, PAWL_INVALID, "field \"name\": %s", fault);
    if (st == PAWL_OK) {
        d->removes = true;
        d->name = arena_copy(&d->arena, bytes_of(name));
        st = d->name.data ? PAWL_OK : err_no_memory(&err, "a schedule");
    }
    return settle(m, d, st, &err, name);
}

/* ---- Storing --------------------------------------------------------------------------------- */

static enum pawl_status store_one(struct pawl *p, struct declared *d, struct pawl_err *err)
{
    struct arena a;
    arena_init(&a, DECLARED_LEN_MAX);
    struct cron_op cron = { .what = d->removes ? CRON_DELETE : CRON_PUT,
                            .name = d->name,
                            .schedule = &d->s };
    struct op op = { .kind = OP_FEATURE,
                     .a = &a,
                     .feature = { .of = &feature_cron, .ctx = &cron } };
    enum pawl_status st = exec_do(p->e, &op);
    if (st == PAWL_NOT_FOUND && d->removes)
        st = PAWL_OK;
    if (st != PAWL_OK)
        err_set(err, st, "schedule \"%.*s\": %.350s", (int)MIN(d->name.len, 100), d->name.data,
                op.err.text);
    arena_release(&a);
    return st;
}

enum pawl_status declared_store(struct pawl *p, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (struct declared *d = p->declared; d && st == PAWL_OK; d = d->next)
        st = store_one(p, d, err);
    return st;
}
