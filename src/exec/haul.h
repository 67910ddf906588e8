/*
 * haul.h - a long backlog, run off on connections of its own.
 *
 * When claims come back full with hundreds of quick calls of one queue, none of them with a key,
 * groups are long: whatever else is to be stored would wait for each of them, and the database
 * would have one of us to serve at a time. So haulers claim from that queue, and store the ends of
 * what they claimed, a group at a time and side by side; the store thread claims from all others
 * meanwhile. The store thread forms their groups and settles them; a hauler does nothing but commit
 * one. Only where the engine lets several write at the same time.
 *
 *     idle -> loading            store thread: is there something?
 *     loading -> loaded, idle    store thread: a group is formed; there is nothing
 *     loaded -> back             hauler: it is committed
 *     back -> idle               store thread: it is settled
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_HAUL_H
#define EXEC_HAUL_H

#include <pthread.h>

#include "exec/group.h"
#include "exec/try.h"

#define HAULERS 2
/* A claim that brought so many begins it. */
#define HAUL_MIN 256

enum haul_stage { HAUL_IDLE, HAUL_LOADING, HAUL_LOADED, HAUL_BACK };

struct hauler {
    struct exec *e; /* borrowed */
    pthread_t thread;
    bool runs; /* its thread was made */

    /* Under hauls.lock. */
    enum haul_stage stage;
    struct job *head, **end; /* ends that wait for its next group */
    size_t n;
    size_t out;         /* calls of its last claim whose ends are to come, as far as we know; */
    int64_t claimed_us; /* when that was; monotonic */
    int64_t since_us;   /* when the first that waits came; monotonic */
    bool flying;        /* some wait, or are being committed */

    /* The store thread's, and the hauler's while it is loaded. */
    struct group group;
    int64_t took_us;
    enum pawl_status status;

    /* The store thread's. */
    struct lease_run *spare; /* a claim that came back empty, or not at all */
    int64_t again_us;        /* when to ask again for one that did not; monotonic */
    char queue_name[NAME_LEN_MAX];
    struct bytes queue; /* that it claims from; in queue_name */
};

struct hauls {
    pthread_mutex_t lock;
    pthread_cond_t loaded; /* haulers: a group, or leave */
    pthread_cond_t idle;   /* haul_close: one has nothing left */
    struct hauler v[HAULERS];
    bool open, closed;
    int64_t others_us; /* store thread: when somebody else last wrote something; monotonic */
    bool off;          /* store thread: there was no thread to be had, so nobody hauls */
};

void haul_open(struct exec *e);
/* What they have is stored; then their threads end. The store thread still runs. */
void haul_close(struct exec *e);
void haul_release(struct exec *e);

/* Any thread: the end of a try that a hauler claimed waits for its next group. False: it is for the
 * store thread. */
bool haul_post(struct pawl_call *t);
/* Store thread: a claim of his brought so many. */
void haul_out(struct hauler *h, size_t n);
/* Store thread, once a round: settle what is back, load who has enough. */
void haul_turn(struct exec *e);
/* Store thread: when to come again (monotonic), though nobody nudges. */
int64_t haul_next(struct exec *e);

#endif
