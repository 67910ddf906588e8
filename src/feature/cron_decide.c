/*
 * cron_decide.c - what a PUT, PAUSE or RESUME of a schedule comes to (cron_inside.h): the one order
 * of decisions, for the operation (cron.c) and for the question what it would do (cron_would()).
 *
 * Inside a transaction, or on a connection for reading. Nothing is written here.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/cron_inside.h"

#include <stdio.h>

#include "store/store.h"

/* ---- Conditions ------------------------------------------------------------------------------ */

static bool fits(const struct cron_op *q, const struct row *r)
{
    bool conditional = q->if_version || q->n_or_versions || q->if_any;
    if (q->if_none && r->stored)
        return false;
    bool any = !conditional || (q->if_any && r->stored);
    any = any || (r->stored && q->if_version == r->version);
    for (size_t i = 0; i < q->n_or_versions; i++)
        any = any || (r->stored && q->or_versions[i] == r->version);
    return any;
}

bool cron_blocked(const struct cron_op *q, const struct row *r, bool must_exist,
                  struct pawl_err *why)
{
    char version[32] = "";
    if (must_exist && !r->stored) {
        err_set(why, PAWL_NOT_FOUND, "no schedule \"%.*s\"", BYTES_ARG(q->name));
        return true;
    }
    if (fits(q, r))
        return false;
    if (r->stored)
        snprintf(version, sizeof version, "%lld", (long long)r->version);
    err_set(why, PAWL_STALE, "schedule \"%.*s\" %s%s", BYTES_ARG(q->name),
            r->stored ? "has version " : "does not exist", version);
    return true;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* Did an earlier try of this operation store this row? */
static bool is_own(const struct cron_op *q, const struct row *r)
{
    return q->made_us && r->stored && r->version == q->made_us;
}

static void refuse(const struct cron_op *q, struct decided *out, enum pawl_status status,
                   const char *text)
{
    err_set(&out->why, status, "schedule \"%.*s\"%s", BYTES_ARG(q->name), text);
    out->refused = true;
}

/* The schedule is not the stored one: can it tick? */
static void decide_new(struct ledger *d, const struct cron_op *q, const struct row *r,
                       struct decided *out)
{
    int64_t now_us = feature_now(d);
    enum pawl_status st = plan_given(q->schedule, &out->plan, &out->why);
    if (st == PAWL_OK)
        st = schedule_rule_check(&out->plan.s.rule, out->plan.zone, now_us, &out->why);
    out->refused = st != PAWL_OK;
    /* Never back, and never to a tick of the former schedule. */
    if (st == PAWL_OK &&
        !schedule_next(&out->plan.s.rule, out->plan.zone, MAX(now_us, r->last.at_us), &out->next))
        refuse(q, out, PAWL_INVALID, " has no tick in the future");
    out->change = r->stored ? CRON_UPDATE : CRON_CREATE;
}

static enum pawl_status decide_put(struct ledger *d, const struct cron_op *q, const struct row *r,
                                   struct decided *out, struct pawl_err *err)
{
    const struct schedule *s = q->schedule;
    bool finished;
    enum pawl_status st = feature_finished(d, CRON_STEP, &finished, err);
    if (st == PAWL_OK && !finished)
        refuse(q, out, PAWL_STATE,
               " needs every node to run this version: run pawl migrate finish");
    if (st == PAWL_OK && finished)
        st = schedule_write(feature_arena(d), s, &out->spec, err);
    if (st != PAWL_OK || !finished)
        return st;
    bool same = r->stored && bytes_eq(out->spec, r->spec);
    out->pauses = same && s->paused_given && s->paused != (r->pause == PAUSE_YES);
    out->paused = s->paused_given ? s->paused : r->pause == PAUSE_YES;
    out->own = same && !out->pauses && is_own(q, r);
    if (out->own)
        return PAWL_OK;
    out->refused = cron_blocked(q, r, false, &out->why);
    if (out->refused)
        return PAWL_OK;
    if (!same)
        decide_new(d, q, r, out);
    else
        out->change = out->pauses ? CRON_UPDATE : CRON_NO_CHANGE;
    return PAWL_OK;
}

enum pawl_status cron_decide(struct ledger *d, const struct cron_op *q, const struct row *r,
                             struct decided *out, struct pawl_err *err)
{
    *out = (struct decided){ .change = CRON_NO_CHANGE, .paused = q->what == CRON_PAUSE };
    if (q->what == CRON_PUT)
        return decide_put(d, q, r, out, err);
    bool same = r->stored && (r->pause == PAUSE_YES) == out->paused;
    out->own = same && is_own(q, r);
    out->refused = !out->own && cron_blocked(q, r, true, &out->why);
    out->pauses = !same;
    out->change = same ? CRON_NO_CHANGE : CRON_UPDATE;
    return PAWL_OK;
}

/* ---- As a question --------------------------------------------------------------------------- */

struct wondering {
    const struct cron_op *q;
    enum cron_change change;
};

static enum pawl_status look(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct wondering *w = ctx;
    struct led_params p = { 0 };
    struct led_rows *rows;
    struct decided v;
    led_text(&p, w->q->name);
    enum pawl_status st = feature_query(d, SQL_CRON_READ, &p, &rows, err);
    struct row r = { .name = w->q->name };
    if (st == PAWL_OK && rows->n)
        r = row_read(rows, 0);
    if (st == PAWL_OK)
        st = cron_decide(d, w->q, &r, &v, err);
    if (st != PAWL_OK)
        return st;
    w->change = v.change;
    if (v.refused && err)
        *err = v.why;
    return v.refused ? v.why.status : PAWL_OK;
}

enum pawl_status cron_would(struct store *s, const struct cron_op *q, enum cron_change *out,
                            struct pawl_err *err)
{
    struct wondering w = { .q = q };
    enum pawl_status st = store_look(s, LOOK_SNAPSHOT, look, &w, err);
    *out = w.change;
    return st;
}
