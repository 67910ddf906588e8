/*
 * housekeeping.h - housekeeping: the thread for periodic work, and what it remembers between its
 * rounds. Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_HOUSEKEEPING_H
#define EXEC_HOUSEKEEPING_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/write_job.h"
#include "exec/node.h"
#include "exec/schedules.h"
#include "store/store.h"

struct exec;

/* The periodic writes. PERIODIC_LEAD: one for each role. */
enum keep {
    PERIODIC_BEAT,
    PERIODIC_SWEEP,
    PERIODIC_GC,
    PERIODIC_BURY,
    PERIODIC_TICK,
    PERIODIC_ZONES,
    PERIODIC_FORGET,
    PERIODIC_LEAD,
    PERIODIC_COUNT = PERIODIC_LEAD + 2
};

/* A periodic write; at most one of each kind is under way. */
struct periodic {
    struct exec *e;
    struct write_job job;
    struct arena arena; /* owned: the last answer */
    atomic_bool under_way;
    atomic_bool denied; /* the database account may not do this, and that was logged once */
    int64_t began_us, ended_us;
    char node[256], boot[64]; /* PERIODIC_BURY: the node it declares dead, while it is under way */
};

/* What is known of another node's heartbeats: the counter, and since when (monotonic, our clock) it
 * has not moved. */
struct seen_node {
    char node[256], boot[64];
    int64_t beats, since_us;
    bool fresh;
};
/* Finds dead nodes (peers.c); used by the thread that sends heartbeats. */
struct peers {
    struct seen_node *v; /* owned */
    size_t n;
    int64_t beating_since_us, last_us;
    int64_t seen_us; /* when the registry was last read */
};

struct housekeeping {
    pthread_mutex_t lock; /* again, nudged, closed */
    pthread_cond_t wake;
    struct write_job *again; /* finishes to post again */
    int64_t again_us;
    bool nudged, closed;
    atomic_int_least64_t wake_us; /* when it wakes by itself; 0 while awake */

    /* From here on used by the housekeeping thread alone, except for the atomic members. */
    struct store *store; /* owned */
    struct periodic periodics[PERIODIC_COUNT];
    struct peers peers;
    struct schedules schedules;
    int64_t clock_us, beat_us, sweep_us, gc_us, tend_us, cancel_requests_us, look_us, lead_us;
    int64_t led_until_us[2]; /* another node holds the role at least until then (monotonic); 0: none
                                does */
    int64_t due_us;          /* when the next node may have to be declared dead */
    int64_t beat_tried_us;   /* when a heartbeat through the store thread was last due */
    int64_t tended_commits;
    bool swept, collected, look_again;
    atomic_bool probe;        /* find out whether the database answers */
    atomic_bool registry;     /* nodes or leaders may have changed */
    atomic_bool beat_refused; /* the database refused the heartbeat thread's last heartbeat */
    atomic_bool doubt; /* a heartbeat or claim was refused: find out whether this process still is
                          the node */
};

/* Make `e->housekeeping` and open its connection. */
enum pawl_status housekeeping_init(struct exec *e, struct pawl_err *err);
/* Free it; its thread has ended. Accepts one that was not made. */
void housekeeping_release(struct exec *e);
/* The housekeeping thread; `exec` is the handle. Ends after housekeeping_close(). */
void *housekeeping_main(void *exec);
/* End the thread. */
void housekeeping_close(struct exec *e);
/* Run a round now. Any thread. */
void housekeeping_nudge(struct exec *e);
/* Run a round no later than this (monotonic). Any thread. */
void housekeeping_by(struct exec *e, int64_t mono_us);
/* Read who leads now. Any thread. */
void housekeeping_registry(struct exec *e);
/* The database says that this process is no longer the node: find out whether another process has
 * its name. Any thread. */
void housekeeping_doubt(struct exec *e);
/* The database refused something: find out whether it answers at all. Any thread. */
void housekeeping_probe(struct exec *e);
/* Post this finish again a little later: the database did not store it. Store thread. */
void housekeeping_repost(struct exec *e, struct write_job *j);

/* Post a periodic write. False: the last one of its kind has not been answered yet. Housekeeping
 * thread. */
bool periodic_post(struct periodic *c, struct op op);
/* The same for one that takes long: where the engine has several writers, other writes do not wait
 * for it. */
bool periodic_post_aside(struct periodic *c, struct op op);

/* Free what it remembers. */
void peers_release(struct peers *o);
/* Read the registry and compare every other node's counter with the last one seen. Declare dead
 * each node whose counter did not move for the whole grace while our own heartbeats were stored.
 * Called by the thread that sends heartbeats, after one that was stored. Returns when the next node
 * may have to be declared dead (monotonic). */
int64_t peers_look(struct exec *e, struct store *s, int64_t now_us);
/* Acquire free roles and extend our own, when that is due. Housekeeping thread. */
void lead_round(struct exec *e, int64_t now_us);
/* Store thread: a periodic write about a role is settled. */
void lead_done(struct exec *e, const struct periodic *c);
/* Does another node hold the role, as far as is known? Then its work is not done here. Housekeeping
 * thread. */
bool lead_elsewhere(struct exec *e, enum lead_role role, int64_t now_us);
/* Our own heartbeat was not stored: what other nodes did meanwhile must not count against them. */
void peers_silent(struct exec *e);

#endif
