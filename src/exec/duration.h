/*
 * duration.h - how long handlers take, and which types are quick: what may be claimed ahead.
 *
 * A type is quick when calls of it take a few milliseconds, as far as was measured here. One that
 * never ran here counts as slow: its first calls are claimed as slots are free, and their ends say
 * more. The mean is kept by handler; one slow handler makes its whole type slow, since a claim
 * chooses by type.
 * All of it is under pool.lock.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_DURATION_H
#define EXEC_DURATION_H

#include "exec/registry.h"

/* A handler with a mean below this is quick: waiting for another node would take longer. */
#define QUICK_US 3000
/* So many ends of a handler make a mean that is relied on. */
#define DURATION_SAMPLES_MIN 8

struct durations {
    const struct registry *registry; /* borrowed; sealed */
    struct duration {
        double mean_us;
        int n;           /* samples, up to those that the mean remembers */
        size_t type;     /* index into registry.types */
    } * v;               /* owned; by the handler's index in the registry */
    bool *quick_type;    /* owned; by type */
    struct bytes *quick; /* owned; the quick types' names, borrowed */
    size_t n_quick;
    double mean_us; /* of all calls of quick types, lately; 0: there was none */
};

#ifdef PAWL_TEST
/* Above 0: handlers count as measured with this mean from the start. */
extern int64_t durations_assumed_us;
#endif

/* For the handlers of a sealed registry. NO_MEMORY. */
MUST_USE enum pawl_status durations_init(struct durations *d, const struct registry *r,
                                         struct pawl_err *err);
void durations_release(struct durations *d);

/* A call of this handler took so long; below 0: there is no such handler, and nothing is noted. */
void durations_note(struct durations *d, int handler, int64_t took_us);
/* A call of this handler has run for so long and goes on. */
void durations_note_running(struct durations *d, int handler, int64_t for_us);
/* Is the type of this handler quick? A call without a handler fails at once: it is quick. */
bool durations_quick(const struct durations *d, int handler);
/* Are all types? */
bool durations_all_quick(const struct durations *d);

#endif
