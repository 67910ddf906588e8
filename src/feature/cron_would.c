/*
 * cron_would.c - what a change of a schedule would do (cron.h). Any thread, with a connection for
 * reading.
 *
 * What must stay true: it answers what cron.c would, in the same order.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/cron_inside.h"
#include "store/store.h"

struct wondering {
    const struct cron_op *q;
    enum cron_change change;
};

static enum pawl_status refuse(const struct cron_op *q, enum pawl_status status, const char *text,
                               struct pawl_err *err)
{
    return err_set(err, status, "schedule \"%.*s\"%s", BYTES_ARG(q->name), text);
}

static enum pawl_status read_it(struct ledger *d, struct bytes name, struct row *out,
                                struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *rows;
    *out = (struct row){ .name = name };
    led_text(&p, name);
    enum pawl_status st = feature_query(d, SQL_CRON_READ, &p, &rows, err);
    if (st == PAWL_OK && rows->n)
        *out = row_read(rows, 0);
    return st;
}

static enum pawl_status would_pause(struct wondering *w, const struct row *r, struct pawl_err *err)
{
    if (!r->stored)
        return err_set(err, PAWL_NOT_FOUND, "no schedule \"%.*s\"", BYTES_ARG(w->q->name));
    bool same = (r->pause == PAUSE_YES) == (w->q->what == CRON_PAUSE);
    w->change = same ? CRON_NO_CHANGE : CRON_UPDATE;
    return PAWL_OK;
}

static enum pawl_status would_put(struct ledger *d, struct wondering *w, const struct row *r,
                                  struct pawl_err *err)
{
    const struct schedule *s = w->q->schedule;
    struct schedule_tick next;
    struct plan p;
    struct bytes spec;
    bool finished;
    enum pawl_status st = feature_finished(d, CRON_STEP, &finished, err);
    if (st == PAWL_OK && !finished)
        st = refuse(w->q, PAWL_STATE,
                    " needs every node to run this version: run pawl migrate finish", err);
    if (st == PAWL_OK)
        st = schedule_write(feature_arena(d), s, &spec, err);
    if (st != PAWL_OK)
        return st;
    if (r->stored && bytes_eq(spec, r->spec)) {
        bool pauses = s->paused_given && s->paused != (r->pause == PAUSE_YES);
        w->change = pauses ? CRON_UPDATE : CRON_NO_CHANGE;
        return PAWL_OK;
    }
    w->change = r->stored ? CRON_UPDATE : CRON_CREATE;
    st = plan_given(s, &p, err);
    if (st == PAWL_OK)
        st = schedule_rule_check(&s->rule, p.zone, feature_now(d), err);
    if (st == PAWL_OK &&
        !schedule_next(&s->rule, p.zone, MAX(feature_now(d), r->last.at_us), &next))
        st = refuse(w->q, PAWL_INVALID, " has no tick in the future", err);
    return st;
}

static enum pawl_status look(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct wondering *w = ctx;
    struct row r;
    enum pawl_status st = read_it(d, w->q->name, &r, err);
    if (st != PAWL_OK)
        return st;
    return w->q->what == CRON_PUT ? would_put(d, w, &r, err) : would_pause(w, &r, err);
}

enum pawl_status cron_would(struct store *s, const struct cron_op *q, enum cron_change *out,
                            struct pawl_err *err)
{
    struct wondering w = { .q = q };
    enum pawl_status st = store_look(s, LOOK_SNAPSHOT, look, &w, err);
    *out = w.change;
    return st;
}
