/*
 * cron_ahead.c - which schedules have ticked for a time that is to come (cron.h). Any thread, with
 * a connection of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/cron_inside.h"
#include "store/store.h"

struct looking {
    struct arena *a;
    int64_t after_us;
    struct cron_ahead *out;
};

static enum pawl_status look(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct looking *l = ctx;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_int(&p, l->after_us);
    enum pawl_status st = feature_query(d, SQL_CRON_AHEAD, &p, &rows, err);
    if (st != PAWL_OK || rows->n == 0)
        return st;
    l->out->n = led_get_int(rows, 0, 0);
    if (l->out->n == 0)
        return PAWL_OK;
    l->out->first = arena_copy(l->a, led_get(rows, 0, 1));
    l->out->last_us = led_get_int(rows, 0, 2);
    return l->a->failed ? err_no_memory(err, "schedules") : PAWL_OK;
}

enum pawl_status cron_ahead(struct store *s, struct arena *a, int64_t after_us,
                            struct cron_ahead *out, struct pawl_err *err)
{
    struct looking l = { a, after_us, out };
    *out = (struct cron_ahead){ 0 };
    return store_look(s, LOOK_ALONE, look, &l, err);
}
