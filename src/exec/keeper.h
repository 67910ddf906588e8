/*
 * keeper.h - what the keeper thread remembers between its rounds. Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_KEEPER_H
#define EXEC_KEEPER_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/job.h"
#include "exec/node.h"
#include "store/store.h"

struct exec;

/* KEEP_LEAD: one a role. */
enum keep { KEEP_BEAT, KEEP_SWEEP, KEEP_GC, KEEP_BURY, KEEP_LEAD, KEEP_COUNT = KEEP_LEAD + 2 };

/* A write that comes round, at most one under way. */
struct chore {
    struct exec *e;
    struct job job;
    struct arena arena; /* owned: the answer of the last one */
    atomic_bool under_way;
    atomic_bool denied; /* the account may not, and said so once */
    int64_t began_us, ended_us;
    char node[256], boot[64]; /* what a burial speaks of, while it is under way */
};

/* What is known of the other nodes' beats: a counter, and since when (monotonic, ours) it stands
 * still. */
struct seen_node {
    char node[256], boot[64];
    int64_t beats, since_us;
    bool fresh;
};
struct observer {
    struct seen_node *v; /* owned */
    size_t n;
    int64_t beating_since_us, last_us;
    int64_t seen_us; /* when the registry was last read */
};

struct keeper {
    pthread_mutex_t lock; /* again, nudged, closed */
    pthread_cond_t wake;
    struct job *again; /* finishes to offer again */
    int64_t again_us;
    bool nudged, closed;
    atomic_int_least64_t wake_us; /* when it will wake by itself; 0 while awake */

    /* The keeper's own from here on. */
    struct store *store; /* owned */
    struct chore chores[KEEP_COUNT];
    struct observer observer;
    int64_t clock_us, beat_us, sweep_us, gc_us, tend_us, wishes_us, look_us, lead_us;
    int64_t led_until_us[2]; /* by another node, at least until then (monotonic); 0: by none */
    int64_t due_us;          /* when another node may be dead */
    int64_t beat_tried_us;   /* when a beat of the keeper's was last due */
    int64_t tended_commits;
    bool swept, collected, look_again;
    atomic_bool probe;    /* does the database answer? */
    atomic_bool registry; /* nodes or leaders may have changed */
    atomic_bool doubt;    /* a beat or claim was refused: are we still the node? */
};

/* Allocate e->keeper and open its connection. */
enum pawl_status keeper_init(struct exec *e, struct pawl_err *err);
/* Free it; its thread has ended. Accepts one that was not made. */
void keeper_release(struct exec *e);
/* The keeper thread; `exec` is the handle. Ends after keeper_close(). */
void *keeper_main(void *exec);
/* End the thread. */
void keeper_close(struct exec *e);
/* Run a round now. Any thread. */
void keeper_nudge(struct exec *e);
/* Run a round no later than this (monotonic). Any thread. */
void keeper_by(struct exec *e, int64_t mono_us);
/* Read who leads now. Any thread. */
void keeper_registry(struct exec *e);
/* The database says that this process is no longer the node: find out whether another process has
 * its name. Any thread. */
void keeper_doubt(struct exec *e);
/* The database refused something: find out whether it answers at all. Any thread. */
void keeper_probe(struct exec *e);
/* Post this finish again a little later: the database did not store it. Store thread. */
void keeper_repost(struct exec *e, struct job *j);

/* Send a chore on its way; false when the last one has not come back. Keeper thread. */
bool chore_post(struct chore *c, struct op op);

void observer_release(struct observer *o);
/* Compare every other node's counter with what it was; bury who stood still for the whole grace
 * while we beat. On whichever thread beats, after a beat that was stored. When the next one may be
 * dead (monotonic). */
int64_t observer_look(struct exec *e, struct store *s, int64_t now_us);
/* Stand for roles and keep them, when that is due. */
void lead_round(struct exec *e, int64_t now_us);
/* On the store thread: a chore about a role is settled. */
void lead_done(struct exec *e, const struct chore *c);
/* Has another node the role, for all we know? Then its work is not ours. */
bool lead_elsewhere(struct exec *e, enum lead_role role, int64_t now_us);
/* Our own beat did not get through: what others did meanwhile says nothing. */
void observer_silent(struct exec *e);

#endif
