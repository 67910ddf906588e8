/*
 * fault_plan.h - what goes wrong in a cluster and when, made from one number: the same number makes
 * the same list.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FAULT_PLAN_H
#define FAULT_PLAN_H

#include <stddef.h>
#include <stdint.h>

enum fault_kind {
    FAULT_KILL,     /* a node is killed, and started again after a while */
    FAULT_FREEZE,   /* a node is stopped for longer than the grace, and goes on */
    FAULT_RESTART,  /* a node is asked to end, and started again */
    FAULT_CUT,      /* every connection to the database ends */
    FAULT_DB_CLEAN, /* the database restarts as an administrator does it */
    FAULT_DB_KILL,  /* the database restarts and had no time to write anything */
    FAULT_POISON    /* a call comes that kills whoever runs it */
};
enum { FAULT_KINDS = 7, FAULT_PLAN_MAX = 1000 };

struct planned_fault {
    int64_t at_us; /* from the beginning */
    enum fault_kind kind;
    int node;       /* -1: none in particular */
    int64_t for_us; /* how long the node is down or stopped */
};

const char *fault_name(enum fault_kind kind);
/* By their times, over that many seconds: every kind once in every few, and a node that is down or
 * stopped is left in peace. The number of them; the list has room for FAULT_PLAN_MAX. */
size_t fault_plan_make(uint64_t seed, int nodes, int64_t seconds, int64_t grace_us,
                       struct planned_fault *out);

#endif
