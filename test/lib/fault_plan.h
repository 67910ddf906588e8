/*
 * fault_plan.h - a list of faults for a cluster, with their times, generated from a seed: the same
 * seed makes the same list.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FAULT_PLAN_H
#define FAULT_PLAN_H

#include <stddef.h>
#include <stdint.h>

enum fault_kind {
    FAULT_KILL,     /* a node is killed, and started again after a while */
    FAULT_FREEZE,   /* a node is stopped (SIGSTOP) for longer than the grace, then continued */
    FAULT_RESTART,  /* a node is asked to end (SIGTERM), and started again */
    FAULT_CUT,      /* every connection to the database is cut */
    FAULT_DB_CLEAN, /* the database is restarted cleanly */
    FAULT_DB_KILL,  /* the database is killed and restarted: it recovers from its log */
    FAULT_POISON    /* a call is submitted that kills the process that runs it */
};
enum { FAULT_KINDS = 7, FAULT_PLAN_MAX = 1000 };

struct planned_fault {
    int64_t at_us; /* since the start */
    enum fault_kind kind;
    int node;       /* -1: no particular node */
    int64_t for_us; /* how long the node is down or stopped */
};

/* The kind in words, for output. */
const char *fault_name(enum fault_kind kind);
/* Fill `out` with faults sorted by time, for this many seconds: every kind is used again and again,
 * and a node that is down or stopped gets no further fault. Returns their number, at most
 * FAULT_PLAN_MAX, for which `out` must have room. */
size_t fault_plan_make(uint64_t seed, int nodes, int64_t seconds, int64_t grace_us,
                       struct planned_fault *out);

#endif
