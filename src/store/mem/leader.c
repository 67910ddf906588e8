/*
 * leader.c - roles that one node at a time holds, by a lease and the database's clock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "store/mem/mem.h"

void mem_leaders_init(struct mem_db *db)
{
    static const char *const roles[] = { "maintenance", "scheduler" };
    for (size_t i = 0; i < COUNT_OF(roles); i++)
        db->leaders[i] = (struct mem_leader){ .thing = { .kind = THING_LEADER, .present = true },
                                              .role = roles[i] };
}

static bool held_by(const struct mem_leader *l, struct bytes node)
{
    return l->now.until_us && bytes_eq(bytes_of(l->now.node), node);
}

bool leaders_vacate(struct mem_db *db, struct bytes node, struct bytes boot, bool same_boot)
{
    for (size_t i = 0; i < COUNT_OF(db->leaders); i++) {
        struct mem_leader *l = &db->leaders[i];
        if (!held_by(l, node) || bytes_eq(bytes_of(l->now.boot), boot) != same_boot)
            continue;
        if (!undo_save(db, &l->thing))
            return false;
        l->now.until_us = 0;
    }
    return true;
}

static struct mem_leader *leader_find(struct mem_db *db, struct bytes role)
{
    for (size_t i = 0; i < COUNT_OF(db->leaders); i++)
        if (bytes_eq(bytes_of(db->leaders[i].role), role))
            return &db->leaders[i];
    return NULL;
}

static void take(struct mem_leader *l, const struct lead *q, bool had, int64_t now_us)
{
    if (!had) {
        snprintf(l->now.node, sizeof l->now.node, "%.*s", BYTES_ARG(q->node));
        snprintf(l->now.boot, sizeof l->now.boot, "%.*s", BYTES_ARG(q->boot));
        l->now.epoch++;
        l->now.acquired_us = now_us;
    }
    l->now.until_us = now_us + q->lease_us;
    CHECK(l->now.epoch > 0 && l->now.acquired_us > 0 && l->now.until_us > now_us);
}

enum pawl_status mem_lead(struct mem_tx *tx, struct lead *q)
{
    struct op *op = tx->op;
    struct mem_leader *l = leader_find(tx->db, q->role);
    if (!l) {
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "no role \"%.*s\"", BYTES_ARG(q->role));
        return PAWL_OK;
    }
    if (mem_node_replaced(tx->db, q->node, q->boot)) {
        op->status = err_set(&op->err, PAWL_LOST_LEASE, "node \"%.*s\" is no longer this process",
                             BYTES_ARG(q->node));
        return PAWL_OK;
    }
    bool had = held_by(l, q->node) && bytes_eq(bytes_of(l->now.boot), q->boot) &&
               l->now.until_us > tx->now_us;
    bool may = q->resign ? had : had || l->now.until_us <= tx->now_us;
    if (may && !undo_save(tx->db, &l->thing))
        return PAWL_NO_MEMORY;
    if (may && q->resign)
        l->now.until_us = 0;
    else if (may)
        take(l, q, had, tx->now_us);
    q->ours = may && !q->resign;
    q->epoch = l->now.epoch;
    q->until_us = l->now.until_us;
    return PAWL_OK;
}
