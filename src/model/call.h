/*
 * call.h - a call as a value: what was requested, its state, and its legal transitions.
 *
 *     pending --claim--> processing --finish--> completed | failed | dead_letter | cancelled
 *        ^                   |
 *        +---- retry, loss --+
 *     pending --> cancelled | expired           ended, not completed --retry--> pending
 *
 * Pure: no I/O, no clock. All engines decide with these functions and only store the result, so
 * that they decide alike. Pointers are borrowed from the code that filled the struct.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_CALL_H
#define MODEL_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/world.h"

#define FINGERPRINT_LEN 16

/* Form PAWL_NOTHING has no bytes and reads as null. */
struct payload {
    enum pawl_form form;
    struct bytes bytes;
};

struct backoff {
    int64_t base_us, max_us;
    double factor, jitter;
};

struct tag {
    struct bytes name, value;
};

/* Which features are told when a call leaves a lease or ends (call_spec.watch, held.marks). Numbers
 * that are stored: a bit keeps its meaning. */
enum {
    WATCH_CRON = 1, /* the tick of a schedule, of which the next tick depends */
    WATCH_CHILD = 2,
    WATCH_LIMIT = 4,
    WATCH_BATCH = 8,
    WATCH_END = 16,
    WATCH_ALL = 31,
    WATCH_FLOW = 32, /* a flow, whatever else watches it; told and never stored */
};

/* The request for a call. After call_spec_settle() every name that has a default is filled in, and
 * the fingerprint is set. keep_us 0 means the retention setting. */
struct call_spec {
    struct bytes id, type, method, key, queue;
    struct payload input;
    int priority, max_attempts, max_lost;
    int64_t delay_us, run_at_us;          /* at most one is not 0 */
    int64_t expires_in_us, expires_at_us; /* at most one is not 0 */
    int64_t timeout_us, keep_us;
    int64_t run_timeout_us; /* how long it may take in all, from when it is first due; 0: for ever
                             */
    int64_t run_until_us;   /* the end of that; set when it is accepted */
    struct backoff backoff;
    enum pawl_on_dead on_dead;
    unsigned watch;                                   /* WATCH_..., set by features alone */
    struct bytes caller, client, parent, traceparent; /* absent when not given */
    const struct bytes *needs; /* capabilities; settled: sorted, each once (needs.h) */
    size_t n_needs;
    struct bytes schedule; /* whose tick it is; absent: of none. Set by schedules alone */
    int64_t scheduled_us;  /* the time of that tick; 0: a person asked for it, or it is no tick */
    const struct tag *tags;
    size_t n_tags;
    unsigned char fingerprint[FINGERPRINT_LEN];
};

/* Copy the spec and everything it points to into `a`. False without memory. */
bool call_spec_copy(struct arena *a, const struct call_spec *s, struct call_spec *out);

/* Set every field to its default, without id and type. */
void call_spec_init(struct call_spec *s);

/* Check every field against the contract, fill in what is missing (a UUIDv7 id, default names),
 * check that a JSON input is JSON, and compute the fingerprint. INVALID and TOO_LARGE name the
 * field. New values live in `a`; `w` supplies ids. */
MUST_USE enum pawl_status call_spec_settle(struct arena *a, const struct world *w,
                                           struct call_spec *s, struct pawl_err *err);

/* Compute s->fingerprint over type, method, key and input, length-prefixed. A JSON input counts as
 * its canonical text, so white space and member order do not matter. INVALID when that is not
 * JSON. */
MUST_USE enum pawl_status call_fingerprint(struct arena *a, struct call_spec *s,
                                           struct pawl_err *err);

/* The options that are neither columns nor defaults, as a small JSON object in `a`, e.g.
 * {"max_attempts":5,"timeout_us":1000000}; absent when all are defaults. Engines store it
 * unchanged. */
MUST_USE enum pawl_status call_options_write(struct arena *a, const struct call_spec *s,
                                             struct bytes *out, struct pawl_err *err);
/* The inverse, into a spec from call_spec_init(). It also reads "needs", which
 * call_options_write() leaves out, because a stored call has them in its lane: an inbox has them
 * here. BROKEN for anything else. */
MUST_USE enum pawl_status call_options_read(struct arena *a, struct bytes text, struct call_spec *s,
                                            struct pawl_err *err);
/* Tags as one JSON object of strings {"k":"v"} in `a`; absent when there are none. */
MUST_USE enum pawl_status call_tags_write(struct arena *a, const struct call_spec *s,
                                          struct bytes *out, struct pawl_err *err);
/* The inverse: set s->tags, in `a`. BROKEN when call_tags_write() did not write it. */
MUST_USE enum pawl_status call_tags_read(struct arena *a, struct bytes text, struct call_spec *s,
                                         struct pawl_err *err);

/* Attempts since the last retry by a person, and how many such retries there were. */
struct attempt_counts {
    int attempts; /* attempts that ended in an error or a timeout */
    int lost;     /* attempts whose owner died */
    int redrives;
};

/* A call that was lost before is claimed alone from then on. */
static inline bool counts_retry_alone(struct attempt_counts t)
{
    return t.lost > 0;
}

enum call_wait {
    WAIT_NONE,
    WAIT_TIME,
    WAIT_RETRY,
    WAIT_KEY,
    WAIT_PAUSED,
    WAIT_LIMIT,
    WAIT_WORKER,
    /* of flows */
    WAIT_SIGNAL,
    WAIT_CHILDREN,
    WAIT_TIMER,
};
/* The name of a reason in the API; NULL for WAIT_NONE. */
const char *call_wait_name(enum call_wait w);

/* A call and its state. A time that has not come is 0. */
struct call {
    struct call_spec spec;
    int64_t seq;
    enum pawl_state state;
    enum call_wait waiting_for;
    bool flow;        /* it has begun to take steps */
    bool in_line;     /* with a key: it is in the key's line and has not ended */
    int64_t position; /* with in_line: 0 while it runs, else its place in the line: 1 is next */
    int64_t key_no;   /* its number within its key, assigned when it is first claimed; 0 before */
    bool cancel_requested;
    struct attempt_counts counts;
    struct payload result;
    struct bytes error, node;
    int64_t created_us, run_at_us, claimed_us, started_us, finished_us, expires_us, keep_until_us;
};

/* Copy the call and everything it points to into `a`; out may be c. False without memory. */
bool call_copy(struct arena *a, const struct call *c, struct call *out);

/* Is the transition legal? from 0: the call does not exist yet. */
bool call_may(enum pawl_state from, enum pawl_state to);

/* The state with this name in the API; 0 when there is none. */
enum pawl_state call_state_of(struct bytes name);

/* ---- Decisions: what follows when an attempt ends -------------------------------------------- */

enum ending {
    END_RESULT = PAWL_END_RESULT,
    END_ERROR = PAWL_END_ERROR,
    END_TIMEOUT = PAWL_END_TIMEOUT,
    END_REFUSE = PAWL_END_REFUSE,
    END_LATER = PAWL_END_LATER,
    END_RELEASE = PAWL_END_RELEASE,
    END_CANCELLED = PAWL_END_CANCELLED,
    END_LOST = 8, /* its owner died; only reclaim uses it */
};

struct verdict {
    enum pawl_state next;         /* PENDING or an ended state */
    struct attempt_counts counts; /* after this attempt */
    int64_t run_at_us;            /* with PENDING */
    bool count_attempt;           /* it is recorded in the history of attempts */
};

/* How one attempt ended. */
struct attempt_end {
    enum ending how;
    int64_t retry_in_us; /* ERROR: below 0 means the call's backoff, as for every TIMEOUT; LATER:
                            from now */
    bool alone;          /* LOST: it was the only call of its lease */
    bool fail_lost;      /* LOST: reclaim_action = fail: ends `failed` at once */
    bool timed;          /* LOST, when an engine reclaims: TIMEOUT instead if the timeout has passed
                            (attempt_timed_out) */
    bool cancel_requested; /* a cancel request is stored for the call */
};

/* The call of that attempt. */
struct attempt_of {
    const struct call_spec *spec;
    struct attempt_counts counts; /* before the attempt */
    int64_t run_at_us;            /* its run_at when it was claimed */
};

/* Decide what follows. `now_us` is the database's clock. A lost or released call keeps its
 * `run_at_us`, and so its place. With a cancel request every ending that would return to pending
 * becomes cancelled. */
struct verdict call_after(const struct attempt_of *c, const struct attempt_end *e, int64_t now_us,
                          const struct world *w);

/* When an attempt that began at `begun_us` exceeds its timeout. */
static inline int64_t call_deadline(const struct call_spec *s, int64_t begun_us)
{
    return s->timeout_us ? begun_us + s->timeout_us : INT64_MAX;
}

/* An attempt is reclaimed from its owner, which held it until held_us. If `end` is `timed` and the
 * timeout had passed by then, it becomes a TIMEOUT, and *error its sentence, in `a`. False without
 * memory. */
MUST_USE bool attempt_timed_out(struct arena *a, const struct call_spec *s, int64_t begun_us,
                                int64_t held_us, struct attempt_end *end, struct bytes *error);

/* The wait after the n-th error (n from 1): min(max, base * factor^(n-1)), varied by the jitter. */
int64_t backoff_us(const struct backoff *b, int n, const struct world *w);

/* When a new call is due and when it expires. A run_at in the past means now; expires 0 means
 * never. */
void call_times(const struct call_spec *s, int64_t now_us, int64_t *out_run_at_us,
                int64_t *out_expires_us);
/* When its run_timeout passes: run_until_us, as it is if it is set, because the call was submitted
 * in SQL and is accepted later. Until it has begun that is like an expiry: *expires_us becomes the
 * earlier of both. */
void call_run_until(struct call_spec *s, int64_t run_at_us, int64_t *expires_us);
/* How a call that has not begun ends at this expiry: EXPIRED, or CANCELLED by its run_timeout. */
enum pawl_state call_expired_as(const struct call_spec *s, int64_t expires_us);

/* What an engine knows of a pending call. `behind`: it has a key and is not the next of the key's
 * line, or it is next while another call of the key runs or blocks it. */
struct call_where {
    bool queue_paused, behind;
    bool limited; /* a limit lets no call of its lane begin */
};
/* Why a pending call does not run; WAIT_NONE for any other call. */
enum call_wait call_waiting_for(const struct call *c, int64_t now_us, struct call_where where);

/* Does a call that ended in this state block its key until a person decides? */
bool call_blocks(const struct call_spec *s, enum pawl_state ended);

#endif
