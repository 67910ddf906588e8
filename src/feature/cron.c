/*
 * cron.c - the feature `cron`: schedules that are put, removed, paused, resumed, and run by hand.
 * Ticks are in cron_tick.c.
 *
 * Store thread, inside a transaction. Every operation may run twice: a group whose commit has no
 * answer, or that met a deadlock, is decided again. What an operation chooses (a version, the
 * moment of a manual run) it chooses at its first try and keeps in its struct cron_op, so at the
 * second try it knows its own row: a row with the version that it made, or a call with the id that
 * it made. If the first try was rolled back instead, the same choice is simply made again.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/cron_inside.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* Runs without a key that are asked for in one microsecond take the next ones, up to so many. */
#define MANUAL_TRIES 100

static enum pawl_status refuse(struct op *op, enum pawl_status status, const char *text)
{
    const struct cron_op *q = op->feature.ctx;
    op->status = err_set(&op->err, status, "schedule \"%.*s\"%s", BYTES_ARG(q->name), text);
    return PAWL_OK;
}

/* The answer of a check that failed. Only what this schedule alone has brought about is an answer;
 * without memory the group is undone. */
static enum pawl_status refused(struct op *op, const struct pawl_err *why, struct pawl_err *err)
{
    if (why->status == PAWL_NO_MEMORY) {
        if (err)
            *err = *why;
        return why->status;
    }
    op->err = *why;
    op->status = why->status;
    return PAWL_OK;
}

/* The version of the next change, the same at every try. */
static int64_t version_make(const struct ledger *d, struct cron_op *q, const struct row *r)
{
    if (!q->made_us)
        q->made_us = MAX(feature_now(d), r->version + 1);
    return q->made_us;
}

/* The condition does not hold, or there is no such schedule: the operation is refused. */
static bool blocked(struct op *op, const struct row *r, bool must_exist)
{
    struct cron_op *q = op->feature.ctx;
    if (!cron_blocked(q, r, must_exist, &op->err))
        return false;
    op->status = op->err.status;
    q->version = r->stored ? r->version : 0;
    return true;
}

/* ---- Put ------------------------------------------------------------------------------------- */

/* The ticks of the former schedule that were due and not decided, as one row; `p` NULL: it cannot
 * be read, so only the stored one is known. */
static struct tick_row former_missed(const struct row *r, const struct plan *p, int64_t now_us)
{
    struct tick_row t = { .at_us = r->next.at_us, .kind = CRON_MISSED, .count = 1 };
    struct schedule_tick newest;
    if (p && schedule_prev(&p->s.rule, p->zone, now_us, &newest) && newest.at_us > r->next.at_us) {
        t.at_us = newest.at_us;
        t.count += schedule_count(&p->s.rule, p->zone, r->next.at_us, now_us);
    }
    return t;
}

/* Ticks of the former schedule that were due and not decided are over, also those that came while
 * it was paused: it never ticks again. Only their count is kept. */
static enum pawl_status former_ends(struct ledger *d, struct cron_op *q, const struct row *r,
                                    struct pawl_err *err)
{
    struct pawl_err why;
    struct plan p = { 0 };
    int64_t now_us = feature_now(d);
    enum pawl_status read = plan_stored(feature_arena(d), r, &p, &why), st = PAWL_OK;
    struct bytes zone = p.s.zone.data ? p.s.zone : BYTES("UTC");
    if (read == PAWL_NO_MEMORY)
        return err_no_memory(err, "a schedule");
    if (r->waiting_us) {
        struct tick_row t = { .at_us = r->waiting_us,
                              .kind = CRON_SKIPPED,
                              .reason = CRON_CHANGED,
                              .zone = zone,
                              .node = q->node };
        q->skipped++;
        q->skipped_for[CRON_CHANGED]++;
        st = tick_add(d, r->name, &t, err);
    }
    if (st != PAWL_OK || !r->next.at_us || r->next.at_us > now_us)
        return st;
    struct tick_row t = former_missed(r, read == PAWL_OK ? &p : NULL, now_us);
    t.zone = zone;
    t.node = q->node;
    q->missed += t.count;
    return tick_add(d, r->name, &t, err);
}

/* A change that is decided again has not counted anything yet. */
static void counts_clear(struct cron_op *q)
{
    q->skipped = 0;
    q->missed = 0;
    memset(q->skipped_for, 0, sizeof q->skipped_for);
}

/* Everything but the spec stays as it is. */
static enum pawl_status pause_write(struct ledger *d, struct op *op, struct row *r, bool paused,
                                    struct pawl_err *err)
{
    struct cron_op *q = op->feature.ctx;
    r->version = version_make(d, q, r);
    r->pause = paused ? PAUSE_YES : PAUSE_OVER;
    r->updated_us = feature_now(d);
    row_set_due(r, feature_now(d));
    q->changed = true;
    q->version = r->version;
    op->feature.timed = !paused;
    return row_put(d, r, err);
}

static enum pawl_status put_new(struct ledger *d, struct op *op, struct row *r,
                                const struct decided *v, struct pawl_err *err)
{
    struct cron_op *q = op->feature.ctx;
    int64_t now_us = feature_now(d);
    bool is_new = !r->stored;
    enum pawl_status st = is_new ? PAWL_OK : former_ends(d, q, r, err);
    r->version = version_make(d, q, r);
    r->created_us = is_new ? now_us : r->created_us;
    r->updated_us = now_us;
    r->spec = v->spec;
    r->zone_data = arena_copy(feature_arena(d), bytes_of(zone_version(v->plan.zone)));
    r->next = v->next;
    r->last = tick_in(v->plan.zone, r->last.at_us);
    r->waiting_us = 0;
    r->pause = v->paused ? PAUSE_YES : PAUSE_NO;
    row_set_due(r, now_us);
    q->created = is_new;
    q->changed = true;
    q->version = r->version;
    op->feature.timed = !v->paused;
    if (st != PAWL_OK || !r->zone_data.data)
        return st == PAWL_OK ? err_no_memory(err, "a schedule") : st;
    return is_new ? row_add(d, r, err) : row_put(d, r, err);
}

/* A PUT, PAUSE or RESUME. A repeat finds the row that its first try stored, and answers as that
 * did: `created` and `changed` still stand in the struct. Two operations that chose the same
 * version from the same former row differ in their spec, or it does not matter which of them stored
 * it. */
static enum pawl_status put(struct ledger *d, struct op *op, struct row *r, struct pawl_err *err)
{
    struct cron_op *q = op->feature.ctx;
    struct decided v;
    enum pawl_status st = cron_decide(d, q, r, &v, err);
    if (st != PAWL_OK)
        return st;
    bool tells = !v.refused || v.why.status == PAWL_STALE;
    if (tells)
        q->version = r->stored ? r->version : 0;
    if (v.own)
        return PAWL_OK;
    q->created = q->changed = false;
    counts_clear(q);
    if (v.refused)
        return refused(op, &v.why, err);
    if (v.change == CRON_NO_CHANGE)
        return PAWL_OK;
    return v.pauses ? pause_write(d, op, r, v.paused, err) : put_new(d, op, r, &v, err);
}

/* ---- The others ------------------------------------------------------------------------------ */

/* A repeat that finds no row removed it itself, or another did so meanwhile: it is gone either way.
 */
static enum pawl_status remove_row(struct ledger *d, struct op *op, struct row *r,
                                   struct pawl_err *err)
{
    struct cron_op *q = op->feature.ctx;
    if (q->removes && !r->stored)
        return PAWL_OK;
    if (blocked(op, r, true))
        return PAWL_OK;
    q->removes = true;
    counts_clear(q);
    enum pawl_status st = former_ends(d, q, r, err);
    return st == PAWL_OK ? row_remove(d, r, err) : st;
}

/* The id of a manual run. Without a key it is made from the moment, which must differ from that of
 * other runs of this schedule: the row's lock keeps them apart, and a run that is stored is looked
 * for by its id. */
static struct bytes run_id(struct ledger *d, struct cron_op *q)
{
    struct arena *a = feature_arena(d);
    char *id = q->run_key.data
                   ? arena_printf(a, "cron:%.*s!%.*s", BYTES_ARG(q->name), BYTES_ARG(q->run_key))
                   : NULL;
    if (q->run_key.data)
        return id ? ident_derived(a, bytes_of(id)) : BYTES_NONE;
    return manual_id(a, q->name, q->made_us);
}

static enum pawl_status run_accept(struct ledger *d, struct op *op, const struct plan *p,
                                   struct accepted *out, struct pawl_err *err)
{
    struct cron_op *q = op->feature.ctx;
    struct call_spec spec;
    struct op accept = { .kind = OP_ACCEPT, .accept = { .v = &spec, .n = 1 } };
    q->id = run_id(d, q);
    if (!q->id.data)
        return err_no_memory(err, "a manual run");
    enum pawl_status st = plan_call(d, p, q->name, q->id, 0, &spec, err);
    spec.client = q->client;
    if (st == PAWL_OK)
        st = feature_nested(d, &accept, err);
    if (st != PAWL_OK)
        return st;
    if (accept.status != PAWL_OK) {
        op->status = accept.status;
        op->err = accept.err;
        return PAWL_OK;
    }
    *out = accept.accept.out[0];
    if (call_is_others(out, q->name))
        out->status = PAWL_CONFLICT;
    return PAWL_OK;
}

/* Its tick. Written with the call: a repeat that finds the call finds the tick as well. Its number
 * comes from its id, so that runs of one microsecond have a row each. */
static enum pawl_status run_tick(struct ledger *d, const struct cron_op *q, const struct plan *p,
                                 struct pawl_err *err)
{
    struct tick_row t = { .at_us = q->made_us,
                          .no = 1 + (int64_t)(id_hash(q->id) % INT32_MAX),
                          .kind = CRON_MANUAL,
                          .zone = p->s.zone,
                          .call_id = q->id,
                          .node = q->node };
    return tick_add(d, q->name, &t, err);
}

/* Without a key, the moment is chosen at the first try: the first one at which no other run was
 * asked for. At a later try a call with that id is the own one. (Known edge: two runs that were
 * asked for in the same microsecond on two nodes, of which one was rolled back and repeated, are
 * one run.) */
static enum pawl_status run(struct ledger *d, struct op *op, struct row *r, struct pawl_err *err)
{
    struct cron_op *q = op->feature.ctx;
    struct pawl_err why;
    struct accepted a = { 0 };
    struct plan p;
    bool first = q->made_us == 0;
    if (!r->stored) {
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "no schedule \"%.*s\"", BYTES_ARG(q->name));
        return PAWL_OK;
    }
    enum pawl_status st = plan_stored(feature_arena(d), r, &p, &why);
    if (st != PAWL_OK)
        return refused(op, &why, err);
    if (first)
        q->made_us = feature_now(d);
    for (int tries = 0; st == PAWL_OK && op->status == PAWL_OK; tries++) {
        st = run_accept(d, op, &p, &a, err);
        bool taken = st == PAWL_OK && op->status == PAWL_OK &&
                     (a.duplicate || a.status == PAWL_CONFLICT || a.status == PAWL_GONE);
        if (!first || !taken || q->run_key.data)
            break;
        if (tries == MANUAL_TRIES)
            return refuse(op, PAWL_BUSY, ": too many runs of it were asked for at this moment");
        q->made_us++;
    }
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    if (a.status != PAWL_OK)
        return refuse(op, a.status,
                      a.status == PAWL_FULL       ? ": its key or the queues and types are full"
                      : a.status == PAWL_CONFLICT ? ": another call already has the id of this run"
                                                  : ": this run has ended and is no longer kept");
    q->duplicate = q->run_key.data && a.duplicate;
    q->id = arena_copy(op->a, q->id);
    if (!q->id.data)
        return err_no_memory(err, "a manual run");
    return a.duplicate ? PAWL_OK : run_tick(d, q, &p, err);
}

/* Ticks that are over: nobody else removes them, and what is removed already is no mistake. */
static enum pawl_status forget_ticks(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct cron_op *q = op->feature.ctx;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_int(&p, q->before_us ? q->before_us : feature_now(d) - q->keep_us);
    led_int(&p, q->max);
    enum pawl_status st = feature_query(d, SQL_TICK_OLD, &p, &rows, err);
    CHECK(st != PAWL_OK || rows->n <= q->max);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        CHECK(led_get(rows, i, 0).len > 0);
        const union feature_value v[] = { { .b = led_get(rows, i, 0) },
                                          { .i = led_get_int(rows, i, 1) },
                                          { .i = led_get_int(rows, i, 2) } };
        st = feature_row(d, SQL_TICK_REMOVE, "tii", v, FEATURE_ANY, err);
    }
    q->removed = st == PAWL_OK ? rows->n : 0;
    q->more = st == PAWL_OK && rows->n == q->max;
    return st;
}

/* ---- The feature ----------------------------------------------------------------------------- */

static bool named(enum cron_do what)
{
    return what != CRON_TICK && what != CRON_ZONES && what != CRON_FORGET;
}

static enum pawl_status load(struct ledger *d, struct op *const *ops, size_t n,
                             struct pawl_err *err)
{
    struct bytes *names = arena_alloc(feature_arena(d), (n + 1) * sizeof *names);
    size_t some = 0;
    if (!names)
        return err_no_memory(err, "schedules");
    for (size_t i = 0; i < n; i++) {
        const struct cron_op *q = ops[i]->feature.ctx;
        if (named(q->what))
            names[some++] = q->name;
    }
    return rows_lock(d, names, some, err);
}

static enum pawl_status apply_named(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct cron_op *q = op->feature.ctx;
    struct bytes name = q->name;
    /* A gc in the same group makes the transaction forget its rows; then it is read again. */
    enum pawl_status st = rows_lock(d, &name, 1, err);
    struct row *r = st == PAWL_OK ? row_find(d, q->name) : NULL;
    if (!r)
        return st == PAWL_OK ? err_no_memory(err, "schedules") : st;
    switch (q->what) {
    case CRON_PUT:
    case CRON_PAUSE:
    case CRON_RESUME:
        return put(d, op, r, err);
    case CRON_DELETE:
        return remove_row(d, op, r, err);
    case CRON_RUN:
        return run(d, op, r, err);
    case CRON_TICK:
    case CRON_ZONES:
    case CRON_FORGET:
        break;
    }
    CHECK(!"a named operation");
    return PAWL_BROKEN;
}

static enum pawl_status apply(struct ledger *d, struct op *op, struct pawl_err *err)
{
    const struct cron_op *q = op->feature.ctx;
    if (named(q->what))
        return apply_named(d, op, err);
    CHECK(q->max >= 1 && q->max <= CRON_STEP_MAX);
    if (q->what == CRON_TICK)
        return cron_tick(d, op, err);
    return q->what == CRON_ZONES ? cron_zones(d, op, err) : forget_ticks(d, op, err);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static const struct schedule *copy_schedule(struct arena *a, const struct schedule *s)
{
    size_t n = s ? s->rule.n_at : 0;
    struct schedule *to = s ? arena_alloc(a, sizeof *to) : NULL;
    int64_t *at = to && n ? arena_zalloc(a, n, sizeof *at) : NULL;
    if (!to)
        return NULL;
    *to = *s;
    to->name = arena_copy(a, s->name);
    to->cron = arena_copy(a, s->cron);
    to->zone = arena_copy(a, s->zone);
    if (at)
        memcpy(at, s->rule.at_us, n * sizeof *at);
    to->rule.at_us = at;
    return call_spec_copy(a, &s->call, &to->call) ? to : NULL;
}

static void *copy(struct arena *a, const void *ctx)
{
    const struct cron_op *q = ctx;
    struct cron_op *to = arena_alloc(a, sizeof *to);
    int64_t *versions =
        q->n_or_versions ? arena_zalloc(a, q->n_or_versions, sizeof *versions) : NULL;
    if (!to)
        return NULL;
    *to = *q;
    to->name = arena_copy(a, q->name);
    to->run_key = arena_copy(a, q->run_key);
    to->client = arena_copy(a, q->client);
    to->node = arena_copy(a, q->node);
    to->after = arena_copy(a, q->after);
    to->schedule = copy_schedule(a, q->schedule);
    if (versions)
        memcpy(versions, q->or_versions, q->n_or_versions * sizeof *versions);
    to->or_versions = versions;
    return a->failed || (q->schedule && !to->schedule) ? NULL : to;
}

/* ---- From SQL -------------------------------------------------------------------------------- */

/* The rules of a PUT under this name, with the settings of this node. */
static enum pawl_status row_schedule(struct ledger *d, const struct inbox_row *r,
                                     struct schedule *out, struct pawl_err *why)
{
    const struct schedule_limits limits = { feature_call_timeout(d), feature_input_max(d) };
    struct arena *a = feature_arena(d);
    char inside[TEXT_QUOTE_LEN], outside[TEXT_QUOTE_LEN];
    struct json *v;
    enum pawl_status st = json_parse(a, r->text, &v, why);
    if (st == PAWL_OK)
        st = schedule_read(a, v, &limits, out, why);
    if (st == PAWL_OK && out->name.data && !bytes_eq(out->name, r->name))
        st = err_set(why, PAWL_INVALID, "field \"name\": is \"%s\", and the argument says \"%s\"",
                     text_quote(out->name, inside), text_quote(r->name, outside));
    return st;
}

/* The row goes in the commit that does what it says: it is taken over once. Removing what is not
 * there is done. */
static enum pawl_status inbox(struct ledger *d, const struct inbox_row *r, struct pawl_err *why,
                              struct pawl_err *err)
{
    struct schedule s;
    bool puts = bytes_eq(r->what, BYTES("put"));
    struct cron_op q = { .what = puts ? CRON_PUT : CRON_DELETE, .name = r->name, .schedule = &s };
    struct op op = { .kind = OP_FEATURE, .feature = { .of = &feature_cron, .ctx = &q } };
    enum pawl_status st = puts ? row_schedule(d, r, &s, why) : PAWL_OK;
    if (st == PAWL_NO_MEMORY)
        return err_no_memory(err, "a schedule");
    if (st != PAWL_OK)
        return PAWL_OK; /* *why says what is wrong */
    st = feature_nested(d, &op, err);
    if (st == PAWL_OK && op.status != PAWL_OK && op.status != PAWL_NOT_FOUND)
        *why = op.err;
    if (st == PAWL_OK)
        cron_unasked_add(&q);
    return st;
}

const struct feature feature_cron = {
    .name = "cron",
    .watch = WATCH_CRON,
    .load = load,
    .apply = apply,
    .moved = cron_moved,
    .inbox = inbox,
    .copy = copy,
};
