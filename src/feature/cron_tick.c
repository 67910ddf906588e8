/*
 * cron_tick.c - ticks: what is due is decided, submitted and moved on in one commit
 * (cron_inside.h).
 *
 * Store thread, inside a transaction. A tick is decided once: its schedule's row is locked while it
 * is decided, and the row moves to the next tick in the same commit. Two processes never decide one
 * tick, because the second one skips the locked row, and finds it moved later. A repeat of a commit
 * that was stored finds nothing due, so it answers no ticks; a repeat of one that was not stored
 * decides again.
 *
 * Whether the call of the last tick has ended is read in a statement after the row's lock. A commit
 * that ends such a call locks the row too, in cron_moved(), after it has decided the end: so either
 * that commit sees the tick that waits, or this one sees the end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "base/hook.h"
#include "base/limits.h"
#include "feature/cron_inside.h"
#include "feature/zones.h"

/* A schedule with a tick that waits is looked at again after this: a call that was submitted before
 * the schedule got its `overlap` tells nobody of its end, and a cancel may have been lost. */
#define WAIT_LOOK_US (5 * SEC_US)

/* One schedule while it is decided. */
struct turn {
    struct row *r;
    struct plan plan;
    bool bad;   /* it cannot be read */
    bool open;  /* the call of its last tick has not ended */
    bool again; /* look at it at once */
};

/* A tick to be submitted. */
struct planned {
    struct turn *t;
    int64_t at_us;
    const char *fault; /* its call cannot be submitted: why; else NULL */
};

struct ticking {
    struct ledger *d;
    struct arena *a;   /* of the answer */
    struct cron_op *q; /* NULL: nobody asked, a call ended */
    struct turn *turns;
    size_t n_turns;
    struct planned *v;
    struct call_spec *specs;
    size_t n, cap, len; /* len: bytes of input */
};

void row_set_due(struct row *r, int64_t now_us)
{
    r->due_us = r->next.at_us;
    if (r->waiting_us && (!r->due_us || r->due_us > now_us + WAIT_LOOK_US))
        r->due_us = now_us + WAIT_LOOK_US;
    if (r->pause == PAUSE_OVER)
        r->due_us = now_us;
    if (r->pause == PAUSE_YES)
        r->due_us = 0;
}

/* ---- What is due ----------------------------------------------------------------------------- */

/* Lock schedules that are due, as many as fit into one commit. */
static enum pawl_status due_lock(struct ticking *k, struct bytes **out, size_t *out_n,
                                 struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *rows;
    size_t n = 0, len = 0;
    led_int(&p, feature_now(k->d));
    led_int(&p, k->q->max);
    enum pawl_status st = feature_query(k->d, SQL_CRON_DUE, &p, &rows, err);
    if (st != PAWL_OK)
        return st;
    CHECK(rows->n <= k->q->max);
    struct bytes *names = arena_alloc(feature_arena(k->d), ((size_t)rows->n + 1) * sizeof *names);
    if (!names)
        return err_no_memory(err, "schedules");
    for (; n < (size_t)rows->n && (n == 0 || len < CLAIM_LEN_MAX); n++) {
        names[n] = led_get(rows, (int)n, 0);
        CHECK(names[n].len > 0 && led_get_int(rows, (int)n, 1) > 0);
        len += (size_t)led_get_int(rows, (int)n, 1);
    }
    k->q->more = n < (size_t)rows->n || rows->n == k->q->max;
    *out = names;
    *out_n = n;
    return PAWL_OK;
}

/* Make a turn of each of these schedules, whose rows are locked or will be. */
static enum pawl_status turns_make(struct ticking *k, struct bytes *names, size_t n,
                                   struct pawl_err *err)
{
    enum pawl_status st = rows_lock(k->d, names, n, err);
    k->turns = arena_zalloc(feature_arena(k->d), n + 1, sizeof *k->turns);
    if (st == PAWL_OK && !k->turns)
        return err_no_memory(err, "schedules");
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        struct row *r = row_find(k->d, names[i]);
        if (r && r->stored)
            k->turns[k->n_turns++].r = r;
    }
    return st;
}

/* Tell of a tick that could not be submitted; `id` absent: of a schedule that cannot be read, which
 * only a TICK tells, since it looks at it again and again. */
static enum pawl_status tell(struct ticking *k, const struct turn *t, struct bytes id,
                             enum pawl_status status, const char *text, struct pawl_err *err)
{
    if (!k->q && id.data)
        cron_unasked_refuse(&(struct cron_refused){ t->r->name, id, bytes_of(text), status });
    if (!k->q || k->q->n_refused == CRON_REFUSED_MAX)
        return PAWL_OK;
    if (!k->q->refused)
        k->q->refused = arena_zalloc(k->a, CRON_REFUSED_MAX, sizeof *k->q->refused);
    if (!k->q->refused)
        return err_no_memory(err, "ticks");
    k->q->refused[k->q->n_refused++] =
        (struct cron_refused){ .schedule = arena_copy(k->a, t->r->name),
                               .id = arena_copy(k->a, id),
                               .text = arena_copy(k->a, bytes_of(text)),
                               .status = status };
    return k->a->failed ? err_no_memory(err, "ticks") : PAWL_OK;
}

static void unread(struct ticking *k, const struct row *r)
{
    int64_t since_us = r->next.at_us ? r->next.at_us : r->waiting_us;
    if (!k->q)
        return;
    k->q->unread++;
    if (!k->q->unread_since_us || since_us < k->q->unread_since_us)
        k->q->unread_since_us = since_us;
}

/* Read each schedule. One that cannot be read must not stop the others. */
static enum pawl_status plans_read(struct ticking *k, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; st == PAWL_OK && i < k->n_turns; i++) {
        struct turn *t = &k->turns[i];
        struct pawl_err why = { 0 };
        enum pawl_status read = plan_stored(feature_arena(k->d), t->r, &t->plan, &why);
        if (read == PAWL_NO_MEMORY)
            return err_no_memory(err, "schedules");
        t->bad = read != PAWL_OK;
        if (t->bad) {
            unread(k, t->r);
            st = tell(k, t, BYTES_NONE, read, why.text, err);
        }
    }
    return st;
}

static bool ended_here(struct ledger *d, int64_t seq)
{
    const struct memory *m = cron_memory(d);
    for (size_t i = 0; m && i < m->n_ended; i++)
        if (m->ended[i] == seq)
            return true;
    return false;
}

/* Find out which calls of last ticks have not ended, in a statement of its own after the locks.
 * What ended in this transaction may not be written yet. */
static enum pawl_status open_read(struct ticking *k, struct pawl_err *err)
{
    int64_t *seqs = arena_alloc(feature_arena(k->d), (k->n_turns + 1) * sizeof *seqs);
    struct led_params p = { 0 };
    struct led_rows *rows;
    size_t n = 0;
    if (!seqs)
        return err_no_memory(err, "ticks");
    for (size_t i = 0; i < k->n_turns; i++) {
        const struct turn *t = &k->turns[i];
        bool asks =
            !t->bad && t->r->last_seq && (t->plan.s.overlap != OVERLAP_ALLOW || t->r->waiting_us);
        if (asks && !ended_here(k->d, t->r->last_seq))
            seqs[n++] = t->r->last_seq;
    }
    if (n == 0)
        return PAWL_OK;
    led_ints(k->d, &p, seqs, n);
    enum pawl_status st = feature_query(k->d, SQL_CRON_CALL_OPEN, &p, &rows, err);
    CHECK(st != PAWL_OK || (size_t)rows->n <= n);
    for (size_t i = 0; st == PAWL_OK && i < k->n_turns; i++)
        for (int j = 0; j < rows->n && k->turns[i].r->last_seq; j++)
            k->turns[i].open |= led_get_int(rows, j, 0) == k->turns[i].r->last_seq;
    return st;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* Plan a call for this tick. */
static enum pawl_status submit(struct ticking *k, struct turn *t, int64_t at_us,
                               struct pawl_err *err)
{
    struct arena *a = feature_arena(k->d);
    if (k->n == k->cap) {
        size_t cap = k->cap ? 2 * k->cap : 16;
        struct planned *v = arena_alloc(a, cap * sizeof *v);
        struct call_spec *specs = arena_alloc(a, cap * sizeof *specs);
        if (!v || !specs)
            return err_no_memory(err, "ticks");
        if (k->n) {
            memcpy(v, k->v, k->n * sizeof *v);
            memcpy(specs, k->specs, k->n * sizeof *specs);
        }
        k->v = v;
        k->specs = specs;
        k->cap = cap;
    }
    struct pawl_err why = { 0 };
    struct bytes id = tick_id(a, t->r->name, at_us);
    if (!id.data)
        return err_no_memory(err, "ticks");
    enum pawl_status st = plan_call(k->d, &t->plan, t->r->name, id, at_us, &k->specs[k->n], &why);
    if (st == PAWL_NO_MEMORY)
        return err_no_memory(err, "ticks");
    k->v[k->n] = (struct planned){ t, at_us, NULL };
    if (st != PAWL_OK) {
        k->v[k->n].fault = arena_text(a, bytes_of(why.text));
        if (!k->v[k->n].fault)
            return err_no_memory(err, "ticks");
    }
    k->len += k->specs[k->n].input.bytes.len;
    k->n++;
    return PAWL_OK;
}

static enum pawl_status skip(struct ticking *k, const struct turn *t, int64_t at_us,
                             enum cron_reason reason, struct pawl_err *err)
{
    struct tick_row row = { .at_us = at_us,
                            .kind = CRON_SKIPPED,
                            .reason = reason,
                            .zone = t->plan.s.zone,
                            .node = k->q ? k->q->node : BYTES_NONE };
    if (k->q) {
        k->q->skipped++;
        k->q->skipped_for[reason]++;
    } else {
        cron_unasked_skipped(reason);
    }
    return tick_add(k->d, t->r->name, &row, err);
}

/* This tick waits until the last call has ended. One that waited before is given up. */
static enum pawl_status let_wait(struct ticking *k, struct turn *t, int64_t at_us,
                                 struct pawl_err *err)
{
    int64_t before_us = t->r->waiting_us;
    t->r->waiting_us = at_us;
    return before_us ? skip(k, t, before_us, CRON_REPLACED, err) : PAWL_OK;
}

/* A tick that is due; `newest`: no later one is. */
static enum pawl_status tick_one(struct ticking *k, struct turn *t, int64_t at_us, bool newest,
                                 struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    switch (t->plan.s.overlap) {
    case OVERLAP_ALLOW:
        return submit(k, t, at_us, err);
    case OVERLAP_SKIP:
        if (t->open)
            return skip(k, t, at_us, CRON_OVERLAP, err);
        break;
    case OVERLAP_WAIT:
        if (t->open)
            return let_wait(k, t, at_us, err);
        break;
    case OVERLAP_REPLACE:
        if (t->open)
            return let_wait(k, t, at_us, err);
        if (!newest) /* the next one would cancel it at once */
            return skip(k, t, at_us, CRON_REPLACED, err);
        break;
    }
    if (t->r->waiting_us) { /* the call that it waited for has ended; a newer one replaces it */
        st = skip(k, t, t->r->waiting_us, CRON_REPLACED, err);
        t->r->waiting_us = 0;
    }
    t->open = true;
    return st == PAWL_OK ? submit(k, t, at_us, err) : st;
}

/* The call that the waiting tick waited for has ended. */
static enum pawl_status wait_over(struct ticking *k, struct turn *t, struct pawl_err *err)
{
    int64_t at_us = t->r->waiting_us;
    if (!at_us || t->open)
        return PAWL_OK;
    t->r->waiting_us = 0;
    t->open = true;
    return submit(k, t, at_us, err);
}

/* Compute the next tick again, if the data of the zone is newer here than what it was computed
 * with.
 */
static bool zone_renewed(struct row *r, const struct plan *p, struct arena *a)
{
    struct bytes own = bytes_of(zone_version(p->zone));
    if (!r->next.at_us || !zone_version_newer(own, r->zone_data))
        return false;
    int64_t after_us = MAX(r->last.at_us, MIN(r->updated_us, r->next.at_us - 1));
    if (!schedule_follow(&p->s.rule, p->zone, &r->last, after_us, &r->next))
        r->next = (struct schedule_tick){ 0 };
    r->zone_data = arena_copy(a, own);
    return true;
}

/* Submit what schedule_decide() names, oldest first, as far as it fits into this commit. */
static enum pawl_status ticks_submit(struct ticking *k, struct turn *t,
                                     const struct schedule_due *due, struct pawl_err *err)
{
    struct row *r = t->r;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < due->n_submit && st == PAWL_OK; i++) {
        if (i && k->len >= CLAIM_LEN_MAX) { /* the others are due at the next look */
            r->next = due->submit[i];
            t->again = true;
            break;
        }
        st = tick_one(k, t, due->submit[i].at_us, i + 1 == due->n_submit, err);
        r->last = due->submit[i];
    }
    return st;
}

static enum pawl_status decide(struct ticking *k, struct turn *t, struct pawl_err *err)
{
    struct row *r = t->r;
    struct schedule_due due;
    int64_t now_us = feature_now(k->d);
    bool paused = r->pause == PAUSE_OVER;
    enum pawl_status st = PAWL_OK;
    (void)zone_renewed(r, &t->plan, feature_arena(k->d));
    r->pause = PAUSE_NO;
    if (!r->next.at_us || r->next.at_us > now_us)
        return wait_over(k, t, err);
    if (!paused)
        k->q->late_us = MAX(k->q->late_us, now_us - r->next.at_us);
    schedule_decide(&t->plan.s.rule, t->plan.zone, &r->next, now_us, paused, t->plan.s.catch_up,
                    t->plan.s.catch_up_for_us, &due);
    if (due.missed) {
        struct tick_row row = { .at_us = due.missed_last_us,
                                .kind = CRON_MISSED,
                                .zone = t->plan.s.zone,
                                .count = due.missed,
                                .node = k->q->node };
        st = tick_add(k->d, r->name, &row, err);
        r->last = tick_in(t->plan.zone, due.missed_last_us);
        k->q->missed += due.missed;
    }
    r->next = due.has_next ? due.next : (struct schedule_tick){ 0 };
    r->zone_data = bytes_of(zone_version(t->plan.zone)); /* a zone stays in memory */
    if (st == PAWL_OK)
        st = ticks_submit(k, t, &due, err);
    return st == PAWL_OK ? wait_over(k, t, err) : st;
}

/* ---- Submitting ------------------------------------------------------------------------------ */

static const struct {
    enum pawl_status status;
    enum cron_reason reason;
    const char *text;
} refusals[] = {
    { PAWL_CONFLICT, CRON_CONFLICT, "another call already has this id" },
    { PAWL_GONE, CRON_GONE, "a call with this id has ended and is no longer kept" },
    { PAWL_FULL, CRON_FULL, "its key, or the number of queues and types, is full" },
};

/* A tick that could not be submitted is recorded, and does not stop the others. */
static enum pawl_status submit_refused(struct ticking *k, const struct planned *v,
                                       const struct call_spec *s, enum pawl_status status,
                                       struct pawl_err *err)
{
    enum cron_reason reason = CRON_BAD_CALL;
    const char *text = v->fault ? v->fault : "its call was refused";
    for (size_t i = 0; i < COUNT_OF(refusals); i++)
        if (refusals[i].status == status) {
            reason = refusals[i].reason;
            text = refusals[i].text;
        }
    v->t->again = v->t->r->waiting_us != 0; /* it waits for a call that has ended */
    enum pawl_status st = skip(k, v->t, v->at_us, reason, err);
    return st == PAWL_OK ? tell(k, v->t, s->id, status, text, err) : st;
}

static enum pawl_status submit_stored(struct ticking *k, const struct planned *v,
                                      const struct call_spec *s, const struct accepted *a,
                                      struct pawl_err *err)
{
    struct row *r = v->t->r;
    struct tick_row row = { .at_us = v->at_us,
                            .kind = CRON_SUBMITTED,
                            .zone = v->t->plan.s.zone,
                            .call_id = s->id,
                            .node = k->q ? k->q->node : BYTES_NONE };
    r->last_id = s->id;
    r->last_seq = a->call.seq;
    if (!k->q)
        cron_unasked_waited(!a->duplicate);
    else if (k->q->submitted++, !a->duplicate)
        k->q->ids[k->q->n_ids++] = arena_copy(k->a, s->id);
    return tick_add(k->d, r->name, &row, err);
}

/* Submit all that is planned, in one nested operation. */
static enum pawl_status submit_all(struct ticking *k, struct pawl_err *err)
{
    struct op accept = { .kind = OP_ACCEPT };
    struct call_spec *specs = arena_alloc(feature_arena(k->d), (k->n + 1) * sizeof *specs);
    size_t n = 0;
    if (k->q)
        k->q->ids = arena_zalloc(k->a, k->n + 1, sizeof *k->q->ids);
    if (!specs || (k->q && !k->q->ids))
        return err_no_memory(err, "ticks");
    for (size_t i = 0; i < k->n; i++)
        if (!k->v[i].fault)
            specs[n++] = k->specs[i];
    accept.accept.v = specs;
    accept.accept.n = n;
    enum pawl_status st = n ? feature_nested(k->d, &accept, err) : PAWL_OK;
    if (st == PAWL_OK && n && accept.status != PAWL_OK) {
        if (err)
            *err = accept.err;
        return accept.status;
    }
    for (size_t i = 0, at = 0; st == PAWL_OK && i < k->n; i++) {
        const struct accepted *a = k->v[i].fault ? NULL : &accept.accept.out[at++];
        enum pawl_status status = a ? a->status : PAWL_INVALID;
        if (a && call_is_others(a, k->v[i].t->r->name))
            status = PAWL_CONFLICT;
        if (status == PAWL_OK)
            st = submit_stored(k, &k->v[i], &k->specs[i], a, err);
        else
            st = submit_refused(k, &k->v[i], &k->specs[i], status, err);
    }
    return st == PAWL_OK && k->a->failed ? err_no_memory(err, "ticks") : st;
}

/* The call that a newer tick replaces. Not cancelled here: a commit that ends it holds its lease
 * and waits for the schedule's row, and this one holds the row. */
static enum pawl_status replace(struct ticking *k, const struct turn *t, struct pawl_err *err)
{
    if (t->plan.s.overlap != OVERLAP_REPLACE || !t->r->waiting_us || !t->r->last_id.data)
        return PAWL_OK;
    k->q->cancels[k->q->n_cancels] = arena_copy(k->a, t->r->last_id);
    return k->q->cancels[k->q->n_cancels++].data ? PAWL_OK : err_no_memory(err, "ticks");
}

static enum pawl_status rows_move(struct ticking *k, size_t n, struct pawl_err *err)
{
    int64_t now_us = feature_now(k->d);
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        struct turn *t = &k->turns[i];
        row_set_due(t->r, now_us);
        if (t->bad)
            t->r->due_us = now_us + CRON_UNREAD_LOOK_US;
        else if (t->again)
            t->r->due_us = now_us;
        if (k->q && t->again)
            k->q->more = true;
        if (k->q && !t->bad)
            st = replace(k, t, err);
        if (st == PAWL_OK)
            st = row_move(k->d, t->r, err);
    }
    return st;
}

/* ---- The operations -------------------------------------------------------------------------- */

static void answer_clear(struct cron_op *q)
{
    q->submitted = q->skipped = 0;
    memset(q->skipped_for, 0, sizeof q->skipped_for);
    q->missed = q->late_us = q->next_us = 0;
    q->ids = q->cancels = NULL;
    q->n_ids = q->n_refused = q->n_cancels = 0;
    q->refused = NULL;
    q->unread = 0;
    q->unread_since_us = 0;
    q->more = false;
}

static enum pawl_status next_read(struct ticking *k, struct pawl_err *err)
{
    struct led_rows *rows;
    enum pawl_status st = feature_query(k->d, SQL_CRON_NEXT, NULL, &rows, err);
    if (st != PAWL_OK || rows->n == 0)
        return st;
    k->q->next_us = led_get_int(rows, 0, 0);
    CHECK(rows->n == 1 && k->q->next_us > 0);
    return PAWL_OK;
}

enum pawl_status cron_tick(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct ticking k = { .d = d, .a = op->a, .q = op->feature.ctx };
    struct bytes *names;
    size_t n, done = 0;
    answer_clear(k.q);
    enum pawl_status st = due_lock(&k, &names, &n, err);
    CRASH_POINT("cron.due");
    if (st == PAWL_OK && n)
        st = turns_make(&k, names, n, err);
    if (st == PAWL_OK)
        st = plans_read(&k, err);
    if (st == PAWL_OK)
        st = open_read(&k, err);
    k.q->cancels = arena_zalloc(op->a, k.n_turns + 1, sizeof *k.q->cancels);
    if (st == PAWL_OK && !k.q->cancels)
        return err_no_memory(err, "ticks");
    for (; st == PAWL_OK && done < k.n_turns; done++) {
        if (k.n >= CRON_STEP_MAX || k.len >= CLAIM_LEN_MAX)
            break; /* the others stay due */
        if (!k.turns[done].bad)
            st = decide(&k, &k.turns[done], err);
    }
    k.q->more = k.q->more || done < k.n_turns;
    if (st == PAWL_OK && k.n)
        st = submit_all(&k, err);
    if (st == PAWL_OK)
        st = rows_move(&k, done, err);
    PAUSE_POINT("cron.ticked");
    CRASH_POINT("cron.ticked");
    return st == PAWL_OK ? next_read(&k, err) : st;
}

/* Compute schedules again after the data of time zones changed. What another node computed with the
 * same data is passed over by the statement, so a repeat does nothing. */
enum pawl_status cron_zones(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct ticking k = { .d = d, .a = op->a, .q = op->feature.ctx };
    struct led_params p = { 0 };
    struct led_rows *rows;
    struct bytes after = k.q->after.data ? k.q->after : BYTES("");
    char release[ZONE_VERSION_LEN];
    zones_release(release);
    led_text(&p, after);
    led_text(&p, bytes_of(release));
    led_int(&p, k.q->max);
    k.q->removed = 0;
    k.q->more = false;
    enum pawl_status st = feature_query(d, SQL_CRON_OLD_ZONE, &p, &rows, err);
    if (st != PAWL_OK || rows->n == 0)
        return st;
    CHECK(rows->n <= k.q->max);
    struct bytes *names = arena_alloc(feature_arena(d), (size_t)rows->n * sizeof *names);
    if (!names)
        return err_no_memory(err, "schedules");
    for (int i = 0; i < rows->n; i++) {
        names[i] = led_get(rows, i, 0);
        /* The walk goes on behind the last of them, and so ends. */
        CHECK(bytes_cmp(names[i], after) > 0);
        after = names[i];
    }
    k.q->next = arena_copy(op->a, names[rows->n - 1]);
    k.q->more = rows->n == k.q->max;
    st = turns_make(&k, names, (size_t)rows->n, err);
    if (st == PAWL_OK)
        st = plans_read(&k, err);
    for (size_t i = 0; st == PAWL_OK && i < k.n_turns; i++) {
        struct turn *t = &k.turns[i];
        if (t->bad || !zone_renewed(t->r, &t->plan, feature_arena(d)))
            continue;
        k.q->removed++;
        row_set_due(t->r, feature_now(d));
        st = row_move(d, t->r, err);
    }
    PAUSE_POINT("cron.zones");
    return st == PAWL_OK && !k.q->next.data ? err_no_memory(err, "schedules") : st;
}

/* ---- Calls that ended ------------------------------------------------------------------------ */

/* Remember what ended. *out: the seqs, n of them. */
static enum pawl_status remember(struct ledger *d, const struct moved *v, size_t n,
                                 const int64_t **out, size_t *out_n, struct pawl_err *err)
{
    struct memory *m = cron_memory(d);
    int64_t *all = m ? arena_alloc(feature_arena(d), (m->n_ended + n + 1) * sizeof *all) : NULL;
    if (!all)
        return err_no_memory(err, "ticks");
    if (m->n_ended)
        memcpy(all, m->ended, m->n_ended * sizeof *all);
    size_t first = m->n_ended;
    m->ended = all;
    for (size_t i = 0; i < n; i++)
        if (pawl_state_ended(v[i].to))
            all[m->n_ended++] = v[i].seq;
    *out = all + first;
    *out_n = m->n_ended - first;
    return PAWL_OK;
}

/* Which schedules had one of these calls as their last tick? Their rows are locked. */
static enum pawl_status schedules_of(struct ticking *k, const int64_t *seqs, size_t n,
                                     struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *rows;
    for (size_t i = 0; i < n; i++)
        CHECK(seqs[i] > 0); /* 0 is a schedule without a call */
    led_ints(k->d, &p, seqs, n);
    enum pawl_status st = feature_query(k->d, SQL_CRON_OF_CALL, &p, &rows, err);
    if (st != PAWL_OK || rows->n == 0)
        return st;
    struct bytes *names = arena_alloc(feature_arena(k->d), (size_t)rows->n * sizeof *names);
    if (!names)
        return err_no_memory(err, "schedules");
    for (int i = 0; i < rows->n; i++)
        names[i] = led_get(rows, i, 0);
    return turns_make(k, names, (size_t)rows->n, err);
}

enum pawl_status cron_moved(struct ledger *d, const struct moved *v, size_t n, struct pawl_err *err)
{
    struct ticking k = { .d = d, .a = feature_arena(d) };
    const int64_t *seqs = NULL;
    size_t n_seqs = 0, some = 0;
    enum pawl_status st = remember(d, v, n, &seqs, &n_seqs, err);
    if (st != PAWL_OK || n_seqs == 0)
        return st;
    st = schedules_of(&k, seqs, n_seqs, err);
    for (size_t i = 0; i < k.n_turns; i++) /* only where a tick waits */
        if (k.turns[i].r->waiting_us && k.turns[i].r->pause == PAUSE_NO &&
            ended_here(d, k.turns[i].r->last_seq))
            k.turns[some++] = k.turns[i];
    k.n_turns = some;
    if (st == PAWL_OK && some)
        st = plans_read(&k, err);
    for (size_t i = 0; st == PAWL_OK && i < some; i++)
        if (!k.turns[i].bad)
            st = wait_over(&k, &k.turns[i], err);
    if (st == PAWL_OK && k.n)
        st = submit_all(&k, err);
    return st == PAWL_OK ? rows_move(&k, some, err) : st;
}
