/*
 * fixture.h - an open database for tests of the library, and helpers that most of them need.
 *
 * A file says RUNS_ON(ENGINES_ALL), and each of its cases runs on every engine; the case's
 * parameter is passed to fixture_open(). Every function ends the case when it cannot do its work.
 * Waits are conditions with a deadline, never sleeps. A BUSY or UNKNOWN answer is retried, except
 * by fixture_ended() and fixture_ends(): the library promises that a waiting caller is not turned
 * away.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "engines.h"

#define FIXTURE_MS INT64_C(1000)
#define FIXTURE_SEC INT64_C(1000000)

/* How long a wait may take before the case fails: long enough for a busy machine. */
#define FIXTURE_WAIT_US (30 * FIXTURE_SEC * check_scale())

/* Wait until the condition holds; it is evaluated every millisecond. */
#define UNTIL(cond)                                                                                \
    do {                                                                                           \
        int64_t until_ = fixture_mono() + FIXTURE_WAIT_US;                                         \
        while (!(cond)) {                                                                          \
            if (fixture_mono() > until_)                                                           \
                FAIL("did not come: %s", #cond);                                                   \
            usleep(1000);                                                                          \
        }                                                                                          \
    } while (0)

/* Is this the engine in memory? */
bool fixture_is_mem(const void *param);
/* The monotonic clock in microseconds. */
int64_t fixture_mono(void);

/* Open the database of `param`: heartbeats every 100 ms, sweeps every 50 ms, no automatic gc, and a
 * grace of 20 s, so that a busy machine does not make a node stop its own workers. A case about
 * dead nodes sets its own. */
struct pawl *fixture_open(const void *param);
/* The same with options; fields that are set in `o` are kept. */
struct pawl *fixture_open_as(const void *param, struct pawl_options o);

/* Register a handler for TYPE.run. */
void fixture_on(struct pawl *p, const char *type, pawl_handler *handler);
/* Start the workers with this many slots. */
void fixture_start(struct pawl *p, int slots);
/* To be called before fixture_start(): every type counts as quick from the first call on, as if its
 * run time had been measured. So calls are claimed ahead and in runs, whatever their handlers do.
 */
void fixture_assume_quick(void);

/* Submit one new call with default options; ends the case when it is refused or already known. */
void fixture_submit(struct pawl *p, const char *id, const char *type);
/* The same with the options in `s`. */
void fixture_submit_as(struct pawl *p, struct pawl_spec s);
/* The same, but return the receipt whatever it says. */
struct pawl_receipt fixture_offer(struct pawl *p, struct pawl_spec s);
/* Submit n calls "c0", "c1", ... of one type in one batch. */
void fixture_submit_many(struct pawl *p, const char *type, int n);

/* The call's present state. */
enum pawl_state fixture_state(struct pawl *p, const char *id);
/* Wait for the call's end, and return its state. */
enum pawl_state fixture_ended(struct pawl *p, const char *id);
/* The call as pawl_get() shows it; the caller frees it. */
struct pawl_shown *fixture_get(struct pawl *p, const char *id);
/* Assert that the call ends in this state within FIXTURE_WAIT_US. */
void fixture_ends(struct pawl *p, const char *id, enum pawl_state want);
/* How many calls are in this state; 0: in any. */
int fixture_count(struct pawl *p, enum pawl_state state);
/* Wait until no call is pending or processing. */
void fixture_drain(struct pawl *p);

/* Claim up to max calls of a type; ends the case when there is none. The caller frees the lease. */
struct pawl_lease *fixture_claim(struct pawl *p, const char *type, int max);
/* Finish one call of the lease. `out` is its state afterwards. */
enum pawl_status fixture_finish(struct pawl *p, const char *token, const char *id,
                                enum pawl_ending how, enum pawl_state *out, struct pawl_err *err);

/* Handlers that many tests use. This one replies its input. */
int fixture_echo(struct pawl_call *c);
/* Always fails with an error. */
int fixture_fails(struct pawl_call *c);
/* Refuses: fails for good. */
int fixture_refuse(struct pawl_call *c);
/* Counts itself in fixture_inside and blocks until fixture_open_gate(); then replies. */
int fixture_blocks(struct pawl_call *c);
extern atomic_int fixture_inside, fixture_runs;
/* Let the handlers in fixture_blocks() go on. */
void fixture_open_gate(void);

#endif
