/*
 * fault_plan.c - see fault_plan.h.
 *
 * Kinds are drawn without replacement until all were used, so that a short plan has all of them
 * too.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fault_plan.h"

#include "check.h"
#include "own_world.h"

#define MS INT64_C(1000)
#define SEC INT64_C(1000000)
enum { NODES_MAX = 16, DECK = 14 };

static const enum fault_kind cards[DECK] = {
    FAULT_KILL,    FAULT_KILL, FAULT_KILL, FAULT_FREEZE, FAULT_FREEZE,  FAULT_FREEZE, FAULT_RESTART,
    FAULT_RESTART, FAULT_CUT,  FAULT_CUT,  FAULT_CUT,    FAULT_DB_KILL, FAULT_POISON, FAULT_DB_CLEAN
};

struct dealer {
    uint64_t seed;
    enum fault_kind deck[DECK];
    int left;
};

static int64_t dice(struct dealer *d, int64_t below)
{
    return (int64_t)(mix64(d->seed++) % (uint64_t)below);
}

static enum fault_kind deal(struct dealer *d)
{
    if (!d->left) {
        memcpy(d->deck, cards, sizeof cards);
        d->left = DECK;
    }
    int at = (int)dice(d, d->left);
    enum fault_kind kind = d->deck[at];
    d->deck[at] = d->deck[--d->left];
    return kind;
}

/* How long the node is down: frozen for longer than the grace, or killed and restarted after a
 * while. */
static int64_t length(struct dealer *d, enum fault_kind kind, int64_t grace_us)
{
    if (kind == FAULT_FREEZE)
        return grace_us + SEC / 2 + dice(d, 2 * grace_us);
    return kind == FAULT_KILL ? dice(d, 2 * grace_us) : 0;
}

static bool of_a_node(enum fault_kind kind)
{
    return kind == FAULT_KILL || kind == FAULT_FREEZE || kind == FAULT_RESTART;
}

/* A node that has no other fault at that time, searched from a random one on; -1: none. */
static int free_node(struct dealer *d, const int64_t *busy_us, int nodes, int64_t at_us)
{
    int from = (int)dice(d, nodes);
    for (int i = 0; i < nodes; i++)
        if (busy_us[(from + i) % nodes] <= at_us)
            return (from + i) % nodes;
    return -1;
}

size_t fault_plan_make(uint64_t seed, int nodes, int64_t seconds, int64_t grace_us,
                       struct planned_fault *out)
{
    struct dealer d = { .seed = mix64(seed) };
    int64_t busy_us[NODES_MAX] = { 0 }, at_us = SEC;
    size_t n = 0;
    TRUE(nodes > 0 && nodes <= NODES_MAX);
    for (; at_us < seconds * SEC && n < FAULT_PLAN_MAX; at_us += 200 * MS + dice(&d, 1500) * MS) {
        enum fault_kind kind = deal(&d);
        int node = of_a_node(kind) ? free_node(&d, busy_us, nodes, at_us) : -1;
        if (of_a_node(kind) && node < 0)
            kind = FAULT_CUT;
        int64_t for_us = length(&d, kind, grace_us);
        if (node >= 0)
            busy_us[node] = at_us + for_us + SEC / 2;
        out[n++] = (struct planned_fault){ at_us, kind, node, for_us };
    }
    return n;
}

const char *fault_name(enum fault_kind kind)
{
    static const char *const names[FAULT_KINDS] = {
        "killed",          "frozen", "restarted", "connections cut", "database restarted",
        "database killed", "poison"
    };
    return names[kind];
}
