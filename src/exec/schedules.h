/*
 * schedules.h - ticking schedules: work of the node that leads `scheduler`, and of every node while
 * none does. Room-private.
 *
 * Safe to do on several nodes: each tick is decided once (feature/cron.h). The database's clock
 * decides what is due; ours only says when to ask.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_SCHEDULES_H
#define EXEC_SCHEDULES_H

#include <stdatomic.h>

#include "feature/cron.h"

struct exec;

/* What the housekeeping thread remembers between its rounds; times are world_mono. */
struct schedules {
    int64_t look_us;             /* look at the earliest due time then */
    bool ticked, zoned, forgot;  /* a write of that kind was posted, and its answer was not read */
    bool leads;                  /* this node ticked at the last look */
    int64_t zones_seen;          /* zones_changes() that was dealt with; below 0: none */
    int64_t zones_from;          /* zones_changes() when the walk began; below 0: begin again */
    char after[256];             /* where the walk after a change of zone data continues */
    int64_t zones_us, forget_us; /* not before */
    atomic_bool changed;         /* a schedule may be due earlier than was known */
    struct cron_op tick, zones, forget; /* of the writes that are under way */
};

/* Make them so that the first round looks. */
void schedules_init(struct schedules *s);
/* Post what is due. Housekeeping thread. */
void schedules_round(struct exec *e, int64_t now_us);
/* When the next round is needed (world_mono). Housekeeping thread. */
int64_t schedules_next(struct exec *e);
/* Log the ticks that could not be submitted when the call they waited for ended. Any thread; cheap
 * when there is none. */
void schedules_tell(void);
/* A schedule was put or resumed, here or on another node: look soon. Any thread. */
void schedules_changed(struct exec *e);

#endif
