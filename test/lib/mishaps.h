/*
 * mishaps.h - what goes wrong in a cluster and when, made from one number: the same number makes
 * the same list.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MISHAPS_H
#define MISHAPS_H

#include <stddef.h>
#include <stdint.h>

enum mishap_kind {
    MISHAP_KILL,     /* a node is killed, and started again after a while */
    MISHAP_FREEZE,   /* a node is stopped for longer than the grace, and goes on */
    MISHAP_RESTART,  /* a node is asked to end, and started again */
    MISHAP_CUT,      /* every connection to the database ends */
    MISHAP_DB_CLEAN, /* the database restarts as an administrator does it */
    MISHAP_DB_KILL,  /* the database restarts and had no time to write anything */
    MISHAP_POISON    /* a call comes that kills whoever runs it */
};
enum { MISHAP_KINDS = 7, MISHAPS_MAX = 1000 };

struct mishap {
    int64_t at_us; /* from the beginning */
    enum mishap_kind kind;
    int node;       /* -1: none in particular */
    int64_t for_us; /* how long the node is down or stopped */
};

const char *mishap_name(enum mishap_kind kind);
/* By their times, over that many seconds: every kind once in every few, and a node that is down or
 * stopped is left in peace. The number of them; the list has room for MISHAPS_MAX. */
size_t mishaps_make(uint64_t seed, int nodes, int64_t seconds, int64_t grace_us,
                    struct mishap *out);

#endif
