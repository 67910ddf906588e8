/*
 * lead.c - leadership: roles that one node at a time holds with a lease. Acquiring, extending and
 * resigning them.
 *
 * The node that holds a role does what needs to be done only once: `maintenance` sweeps and
 * collects, `scheduler` is for work that goes by the clock. All of that may safely be done twice,
 * so a leader that does not know yet that it lost its role does no harm; and while no node holds
 * `maintenance`, every node does its work. Housekeeping thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stddef.h>

#include "exec/internal.h"
#include "exec/housekeeping.h"

static const char *const names[LEAD_COUNT] = { "maintenance", "scheduler" };

/* Longer than it takes to declare a dead node dead, which ends its leases. So a long lease costs
 * nothing and is rarely extended. */
static int64_t lease_us(const struct exec *e)
{
    return 3 * e->conf.heartbeat_grace_us;
}

/* May this node hold roles now? */
static bool stands(struct exec *e)
{
    if (!exec_entered(e) || !(e->member.roles & DUTY_SCHEDULER) || member_cut(e))
        return false;
    pthread_mutex_lock(&e->pool.lock);
    bool on = !e->pool.stopping && !e->pool.drained && !e->pool.replaced;
    pthread_mutex_unlock(&e->pool.lock);
    return on;
}

static void ask(struct exec *e, int role, bool resign)
{
    periodic_post(&e->housekeeping->periodics[PERIODIC_LEAD + role],
                  (struct op){ .kind = OP_LEAD,
                               .lead = { .role = bytes_of(names[role]),
                                         .node = bytes_of(e->conf.node),
                                         .boot = bytes_of(e->boot),
                                         .lease_us = lease_us(e),
                                         .resign = resign } });
}

/* Acquire, extend or resign one role, given its row. Returns how long it can be left alone. */
static int64_t consider(struct exec *e, int role, const struct leader_row *r, bool may)
{
    struct housekeeping *k = e->housekeeping;
    int64_t left_us = r->until_us ? r->until_us - exec_now(e) : 0;
    bool ours = left_us > 0 && bytes_eq(r->node, bytes_of(e->conf.node)) &&
                bytes_eq(r->boot, bytes_of(e->boot));
    k->led_until_us[role] = left_us > 0 && !ours ? world_mono(&world_real) + left_us : 0;
    if (!ours)
        atomic_store(&e->lead_until_us[role], 0);
    if (ours && !may)
        ask(e, role, true);
    else if (may && (left_us <= 0 || (ours && left_us < lease_us(e) / 2)))
        ask(e, role, false);
    /* Another node may resign its role at any time, so look at least this often. */
    return MAX(ours ? left_us - lease_us(e) / 2 : 0, e->conf.heartbeat_interval_us);
}

void lead_round(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    struct leader_rows rows;
    struct pawl_err err;
    struct arena a;
    if ((now_us < k->lead_us && !atomic_exchange(&k->registry, false)) ||
        (!exec_entered(e) && e->traits & STORE_ONE_WRITER))
        return;
    int64_t rest_us = INT64_MAX;
    arena_init(&a, 1 << 20);
    bool may = stands(e);
    if (store_leaders(k->store, &a, &rows, &err) == PAWL_OK)
        for (size_t i = 0; i < rows.n; i++)
            for (int role = 0; role < LEAD_COUNT; role++)
                if (bytes_eq(rows.v[i].role, bytes_of(names[role])))
                    rest_us = MIN(rest_us, consider(e, role, &rows.v[i], may));
    k->lead_us = now_us + (rest_us < INT64_MAX ? rest_us : e->conf.heartbeat_interval_us);
    arena_release(&a);
}

void lead_done(struct exec *e, const struct periodic *c)
{
    const struct lead *q = &c->job.op.lead;
    int role = (int)(c - e->housekeeping->periodics) - PERIODIC_LEAD;
    bool ours = c->job.op.status == PAWL_OK && q->ours;
    atomic_store(&e->lead_until_us[role], ours ? c->began_us + q->lease_us : 0);
}

bool exec_leads(struct exec *e, enum lead_role role)
{
    return atomic_load(&e->lead_until_us[role]) > world_mono(&world_real);
}

bool lead_elsewhere(struct exec *e, enum lead_role role, int64_t now_us)
{
    return e->housekeeping->led_until_us[role] > now_us;
}
