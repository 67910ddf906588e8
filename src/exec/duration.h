/*
 * duration.h - how long handlers take, and which types are quick: only those are claimed ahead.
 * Room-private.
 *
 * A type is quick when its calls take a few milliseconds, as measured in this process. A type that
 * never ran here counts as slow: its first calls are claimed as slots become free, and their ends
 * measure it. The mean is kept by handler; one slow handler makes its whole type slow, because a
 * claim chooses by type. Everything here is under pool.lock.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_DURATION_H
#define EXEC_DURATION_H

#include "exec/registry.h"

/* A handler with a mean below this is quick: another node would not claim and begin the call
 * sooner. */
#define QUICK_US 3000
/* How many ends of a handler make a mean that is relied on. */
#define DURATION_SAMPLES_MIN 8

struct durations {
    const struct registry *registry; /* borrowed; sealed */
    struct duration {
        double mean_us;
        int n;           /* samples, up to those that the mean remembers */
        bool steps;      /* its calls take steps */
        size_t type;     /* index into registry.types */
    } * v;               /* owned; by the handler's index in the registry */
    bool *quick_type;    /* owned; by type */
    struct bytes *quick; /* owned; the quick types' names, borrowed */
    size_t n_quick;
    double mean_us; /* of recent calls of all quick types; 0: there was none */
};

#ifdef PAWL_TEST
/* Above 0: handlers count as measured with this mean from the start. */
extern int64_t durations_assumed_us;
#endif

/* Start measuring the handlers of a sealed registry, which is borrowed. NO_MEMORY. */
MUST_USE enum pawl_status durations_init(struct durations *d, const struct registry *r,
                                         struct pawl_err *err);
/* Free what durations_init() made. Accepts zeroed memory. */
void durations_release(struct durations *d);

/* A call of this handler took so long. handler below 0: there is none, and nothing is noted. */
void durations_note(struct durations *d, int handler, int64_t took_us);
/* A call of this handler has run for so long and has not returned: its mean is at least that. */
void durations_note_running(struct durations *d, int handler, int64_t for_us);
/* A call of this handler takes steps: its type is slow from now on, whatever it takes. Such calls
 * are not claimed in longer runs, and not by bulk writers. */
void durations_note_steps(struct durations *d, int handler);
/* Is the type of this handler quick? A call without a handler fails at once: it is quick. */
bool durations_quick(const struct durations *d, int handler);
/* Are all registered types quick? */
bool durations_all_quick(const struct durations *d);

#endif
