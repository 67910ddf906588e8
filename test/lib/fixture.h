/*
 * fixture.h - an open database for tests of the library, and the questions they ask over and over.
 *
 * A file says RUNS_ON(ENGINES_ALL), and each of its cases runs on every engine; the case's
 * parameter goes into fixture_open(). Everything here ends the case when it cannot do what it says.
 * Waits are conditions with a deadline, never sleeps. What is BUSY or UNKNOWN is asked once more,
 * but not by fixture_ended() and fixture_ends(): that somebody who waits is not sent away is a
 * promise.
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

/* How long a wait may take before the case fails: long, for machines that are busy. */
#define FIXTURE_WAIT_US (30 * FIXTURE_SEC * check_scale())

/* Wait until it holds; look every millisecond. */
#define UNTIL(cond)                                                                                \
    do {                                                                                           \
        int64_t until_ = fixture_mono() + FIXTURE_WAIT_US;                                         \
        while (!(cond)) {                                                                          \
            if (fixture_mono() > until_)                                                           \
                FAIL("did not come: %s", #cond);                                                   \
            usleep(1000);                                                                          \
        }                                                                                          \
    } while (0)

bool fixture_is_mem(const void *param);
int64_t fixture_mono(void);

/* Open the database `param` names: beats every 100 ms, sweeps every 50 ms, gc by hand, and a grace
 * so long (20 s) that no busy machine makes a node stop its own workers; a case about dead nodes
 * says its own. Fields set in `o` stand. */
struct pawl *fixture_open(const void *param);
struct pawl *fixture_open_as(const void *param, struct pawl_options o);

/* Serve type.run. */
void fixture_on(struct pawl *p, const char *type, pawl_handler *handler);
void fixture_start(struct pawl *p, int slots);
/* Before fixture_start(): every type counts as quick from the first call on, as if calls of it had
 * been measured. So they are claimed ahead and in runs, whatever their handlers do. */
void fixture_assume_quick(void);

/* One fresh call with defaults, or as `s` says; ends the case when it is refused or known already.
 */
void fixture_submit(struct pawl *p, const char *id, const char *type);
void fixture_submit_as(struct pawl *p, struct pawl_spec s);
/* The same without an opinion on the answer. */
struct pawl_receipt fixture_offer(struct pawl *p, struct pawl_spec s);
/* "c0", "c1", ... "c(n-1)" of one type, in one batch. */
void fixture_submit_many(struct pawl *p, const char *type, int n);

/* As it is now; when it has ended. */
enum pawl_state fixture_state(struct pawl *p, const char *id);
enum pawl_state fixture_ended(struct pawl *p, const char *id);
struct pawl_shown *fixture_get(struct pawl *p, const char *id);
/* It ends like this, within the time of a wait. */
void fixture_ends(struct pawl *p, const char *id, enum pawl_state want);
/* How many calls are in this state; 0: all of them. */
int fixture_count(struct pawl *p, enum pawl_state state);
/* Wait until none is pending or processing. */
void fixture_drain(struct pawl *p);

/* One call by hand, which must be there. The lease is the caller's to free. */
struct pawl_lease *fixture_claim(struct pawl *p, const char *type, int max);
/* Finish one call of it. */
enum pawl_status fixture_finish(struct pawl *p, const char *token, const char *id,
                                enum pawl_ending how, enum pawl_state *out, struct pawl_err *err);

/* Handlers most tests need. */
int fixture_echo(struct pawl_call *c);   /* replies its input */
int fixture_fails(struct pawl_call *c);  /* an error, always */
int fixture_refuse(struct pawl_call *c); /* never again */
int fixture_blocks(struct pawl_call *c); /* counts itself into fixture_inside, until
                                        fixture_open_gate(); then replies */
extern atomic_int fixture_inside, fixture_runs;
void fixture_open_gate(void);

#endif
