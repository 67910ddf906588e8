/*
 * lanes_gc.c - lanes without calls are retired, and removed later.
 *
 * One step of gc looks at a few lanes. It looks without a lock first: mostly there is nothing to
 * do. Under the lock it looks again, in a new statement, and that decides. Since when a lane has
 * had no call, and how long it has been retired, is also measured by this process's own clock, so
 * that a database's clock that jumps removes nothing early.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "store/ledger/cache.h"

/* Columns of lane_look. */
enum { LOOK_LANE, LOOK_RETIRED, LOOK_USED };

/* What to do with the lanes of one look. */
struct lanes_due {
    struct led_column retire, use, remove;
};

static void due_init(struct ledger *c, struct lanes_due *d)
{
    led_column_init(&d->retire, &c->scratch, LED_INTS);
    led_column_init(&d->use, &c->scratch, LED_INTS);
    led_column_init(&d->remove, &c->scratch, LED_INTS);
}

static size_t due_count(const struct lanes_due *d)
{
    return d->retire.n + d->use.n + d->remove.n;
}

static void judge_retired(const struct ledger *c, struct led_lane *it, int64_t mono_us,
                          struct lanes_due *d)
{
    const struct led_lanes *l = &c->lanes;
    bool last = it->number == l->v[l->n - 1].number; /* it holds the highest number */
    if (!it->since_us)
        it->since_us = mono_us;
    else if (!last && mono_us - it->since_us >= LANE_RETIRED_US &&
             c->now_us - it->retired_us >= LANE_RETIRED_US)
        led_add_int(&d->remove, it->number);
}

static void judge(const struct ledger *c, struct led_lane *it, bool used, int64_t retired_us,
                  struct lanes_due *d)
{
    int64_t mono_us = world_mono(c->world);
    if (it->retired_us != retired_us || used)
        it->since_us = 0;
    it->retired_us = retired_us;
    if (used && retired_us)
        led_add_int(&d->use, it->number);
    else if (!used && retired_us)
        judge_retired(c, it, mono_us, d);
    else if (!used && !it->since_us)
        it->since_us = mono_us;
    else if (!used && mono_us - it->since_us >= LANE_EMPTY_US)
        led_add_int(&d->retire, it->number);
}

/* Look at the next lanes; *last is the last of them, 0 after the end of the table. */
static enum pawl_status look(struct ledger *c, int after, struct lanes_due *d, int *last,
                             struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    due_init(c, d);
    led_int(&p, after);
    led_int(&p, LANES_GC_MAX);
    enum pawl_status st = led_query(c, SQL_LANE_LOOK, &p, &r, err);
    if (st == PAWL_OK)
        st = led_rows_check(r, SQL_LANE_LOOK, LANES_GC_MAX, err);
    if (st != PAWL_OK)
        return st;
    *last = after;
    for (int i = 0; i < r->n; i++) {
        int64_t number = led_get_int(r, i, LOOK_LANE);
        if (number <= *last || number > LANE_NUMBER_MAX) /* gc would look at some for ever */
            return err_set(err, PAWL_BROKEN, "database: lane %lld follows lane %d",
                           (long long)number, *last);
        struct led_lane *it = led_lane_at(c, *last = (int)number);
        if (it) /* else it was made just now */
            judge(c, it, led_get_int(r, i, LOOK_USED) != 0, led_get_int(r, i, LOOK_RETIRED), d);
    }
    if (r->n < LANES_GC_MAX)
        *last = 0;
    return PAWL_OK;
}

static enum pawl_status write_one(struct ledger *c, enum sql_name name,
                                  const struct led_column *lanes, bool now, struct pawl_err *err)
{
    struct led_params p = { 0 };
    int64_t rows = 0;
    if (!lanes->n)
        return PAWL_OK;
    led_column(&p, lanes);
    if (now)
        led_int(&p, c->now_us);
    enum pawl_status st = led_run(c, name, &p, &rows, err);
    if (st == PAWL_OK && rows != (int64_t)lanes->n)
        st = led_again(c, "a lane", err);
    return st;
}

/* Under the lock no other transaction brings a lane back. */
static enum pawl_status write_due(struct ledger *c, int after, struct pawl_err *err)
{
    struct lanes_due d;
    int last;
    PAUSE_POINT("ledger.lanes_due");
    enum pawl_status st = led_lanes_lock(c, err);
    PAUSE_POINT("ledger.lanes_gc");
    if (st == PAWL_OK)
        st = look(c, after, &d, &last, err);
    if (st != PAWL_OK)
        return st;
    c->lanes.stale = c->lanes.changed = true; /* committed or undone: read again what is stored */
    c->lanes.whole = false;
    st = write_one(c, SQL_LANE_RETIRE, &d.retire, true, err);
    if (st == PAWL_OK)
        st = write_one(c, SQL_LANE_USE, &d.use, false, err);
    if (st == PAWL_OK)
        st = write_one(c, SQL_LANE_REMOVE, &d.remove, false, err);
    CRASH_POINT("ledger.lanes_gc");
    return st;
}

enum pawl_status led_lanes_gc(struct ledger *c, struct pawl_err *err)
{
    struct led_lanes *l = &c->lanes;
    struct lanes_due d;
    int64_t mono_us = world_mono(c->world);
    bool finished;
    int last = 0, after = l->gc_after;
    if ((!after && mono_us < l->gc_us) || l->n != l->n_stored || l->n_back)
        return PAWL_OK;
    enum pawl_status st = led_finished(c, LANES_STEP, &finished, err);
    if (st == PAWL_OK && finished)
        st = led_flush(c, err); /* calls of this group count */
    if (st == PAWL_OK && finished)
        st = led_lanes_read(c, err);
    if (st == PAWL_OK && finished)
        st = look(c, after, &d, &last, err);
    if (st == PAWL_OK && finished && due_count(&d))
        st = write_due(c, after, err);
    if (st != PAWL_OK)
        return st;
    if (!after)
        l->gc_us = mono_us + LANES_GC_US;
    l->gc_after = last;
    return PAWL_OK;
}
