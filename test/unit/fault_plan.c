/*
 * fault_plan.c - the fault plan follows from the seed alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fault_plan.h"

#include "check.h"

#define SEC INT64_C(1000000)
enum { NODES = 3 };

static struct planned_fault v[FAULT_PLAN_MAX], w[FAULT_PLAN_MAX];

TEST(a_seed_makes_the_same_list_again)
{
    size_t n = fault_plan_make(42, NODES, 240, SEC, v);
    EQ_INT((int64_t)fault_plan_make(42, NODES, 240, SEC, w), (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        EQ_INT(v[i].at_us, w[i].at_us);
        EQ_INT(v[i].kind, w[i].kind);
        EQ_INT(v[i].node, w[i].node);
        EQ_INT(v[i].for_us, w[i].for_us);
    }
}

TEST(another_seed_makes_another)
{
    size_t n = fault_plan_make(42, NODES, 60, SEC, v), m = fault_plan_make(43, NODES, 60, SEC, w);
    bool same = n == m;
    for (size_t i = 0; same && i < n; i++)
        same = v[i].at_us == w[i].at_us && v[i].kind == w[i].kind && v[i].node == w[i].node;
    FALSE(same);
}

TEST(a_minute_has_every_kind)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        int kinds[FAULT_KINDS] = { 0 };
        size_t n = fault_plan_make(seed, NODES, 60, SEC, v);
        for (size_t i = 0; i < n; i++)
            kinds[v[i].kind]++;
        for (int k = 0; k < FAULT_KINDS; k++)
            GT_INT(kinds[k], 0);
    }
}

TEST(a_node_that_is_down_is_left_in_peace)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        int64_t busy_us[NODES] = { 0 }, last_us = 0;
        size_t n = fault_plan_make(seed, NODES, 60, SEC, v);
        for (size_t i = 0; i < n; i++) {
            GE_INT(v[i].at_us, last_us);
            LT_INT(v[i].at_us, 60 * SEC);
            last_us = v[i].at_us;
            if (v[i].node < 0)
                continue;
            LT_INT(v[i].node, NODES);
            GE_INT(v[i].at_us, busy_us[v[i].node]);
            busy_us[v[i].node] = v[i].at_us + v[i].for_us;
        }
    }
}

TEST(who_is_frozen_is_so_for_longer_than_the_grace)
{
    size_t n = fault_plan_make(7, NODES, 240, SEC, v);
    for (size_t i = 0; i < n; i++)
        if (v[i].kind == FAULT_FREEZE)
            GT_INT(v[i].for_us, SEC);
}

TEST(a_list_has_an_end)
{
    EQ_INT((int64_t)fault_plan_make(1, NODES, 100000, SEC, v), FAULT_PLAN_MAX);
    EQ_INT((int64_t)fault_plan_make(1, NODES, 1, SEC, v), 0);
}
