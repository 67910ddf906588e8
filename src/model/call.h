/*
 * call.h - a call as a value: what was asked, where it stands, and the moves that are legal.
 *
 *     pending --claim--> processing --finish--> completed | failed | dead_letter | cancelled
 *        ^                   |
 *        +---- retry, loss --+
 *     pending --> cancelled | expired           ended, not completed --redrive--> pending
 *
 * Pure: no I/O, no clock. Engines decide with these functions and only remember the answer, so that
 * every engine decides alike. Everything is borrowed from whoever filled the struct.
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

/* form PAWL_NOTHING has no bytes and reads as null. */
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

/* What was asked. After call_spec_settle() every name that has a default has it, and the
 * fingerprint is set. keep_us 0 means the retention setting. */
struct call_spec {
    struct bytes id, type, method, key, queue;
    struct payload input;
    int priority, max_attempts, max_lost;
    int64_t delay_us, run_at_us;          /* at most one is not 0 */
    int64_t expires_in_us, expires_at_us; /* at most one is not 0 */
    int64_t timeout_us, keep_us;
    struct backoff backoff;
    enum pawl_on_dead on_dead;
    struct bytes caller, client, parent, traceparent; /* absent when not given */
    const struct tag *tags;
    size_t n_tags;
    unsigned char fingerprint[FINGERPRINT_LEN];
};

/* A copy of all it names, in `a`; false without memory. */
bool call_spec_copy(struct arena *a, const struct call_spec *s, struct call_spec *out);

/* All defaults, no id, no type. */
void call_spec_init(struct call_spec *s);

/* Check every field against the contract, make what is missing (a UUIDv7 id, default names), check
 * that a JSON input is JSON, and take the fingerprint. INVALID or TOO_LARGE name the field. What it
 * makes lives in `a`. `w` gives ids. */
MUST_USE enum pawl_status call_spec_settle(struct arena *a, const struct world *w,
                                           struct call_spec *s, struct pawl_err *err);

/* type, method, key and input, length-prefixed; a JSON input counts as its canonical text, so white
 * space and member order do not matter. */
MUST_USE enum pawl_status call_fingerprint(struct arena *a, struct call_spec *s,
                                           struct pawl_err *err);

/* The options that are neither columns nor defaults, as a small JSON object, e.g.
 * {"max_attempts":5,"timeout_us":1000000}; absent when all are defaults. Engines store it as it is.
 */
MUST_USE enum pawl_status call_options_write(struct arena *a, const struct call_spec *s,
                                             struct bytes *out, struct pawl_err *err);
/* Its inverse onto a spec that call_spec_init() made. BROKEN: not something we wrote. */
MUST_USE enum pawl_status call_options_read(struct arena *a, struct bytes text, struct call_spec *s,
                                            struct pawl_err *err);
/* Tags as one JSON object of strings {"k":"v"}; absent for none; and back. */
MUST_USE enum pawl_status call_tags_write(struct arena *a, const struct call_spec *s,
                                          struct bytes *out, struct pawl_err *err);
MUST_USE enum pawl_status call_tags_read(struct arena *a, struct bytes text, struct call_spec *s,
                                         struct pawl_err *err);

/* How often it was tried since its last redrive, and how often it was redriven. */
struct tries {
    int attempts; /* ended in an error or timeout */
    int lost;     /* the owner died */
    int redrives;
};

/* A call that was lost before is a suspect: it is claimed alone. */
static inline bool tries_suspect(struct tries t)
{
    return t.lost > 0;
}

enum call_wait { WAIT_NONE, WAIT_TIME, WAIT_RETRY, WAIT_KEY, WAIT_PAUSED, WAIT_LIMIT, WAIT_WORKER };
const char *call_wait_name(enum call_wait w); /* NULL for WAIT_NONE */

/* A call as it stands. Times that have not come are 0. */
struct call {
    struct call_spec spec;
    int64_t seq;
    enum pawl_state state;
    enum call_wait waiting_for;
    bool in_line;     /* with a key: it has joined the line and has not ended */
    int64_t position; /* with in_line: 0 while it runs, else its place: 1 is next */
    int64_t key_no;   /* its number in its key, given when it is claimed first; 0: not yet */
    bool cancel_requested;
    struct tries tries;
    struct payload result;
    struct bytes error, node;
    int64_t created_us, run_at_us, claimed_us, started_us, finished_us, expires_us, keep_until_us;
};

/* May a call move from one state to another? from 0: it does not exist yet. */
bool call_may(enum pawl_state from, enum pawl_state to);

/* The words of the contract; 0 when the text is none. */
enum pawl_state call_state_of(struct bytes name);

/* ---- Decisions: what follows from how a try ended ---------------------------------------------
 */

enum ending {
    END_RESULT = PAWL_END_RESULT,
    END_ERROR = PAWL_END_ERROR,
    END_TIMEOUT = PAWL_END_TIMEOUT,
    END_REFUSE = PAWL_END_REFUSE,
    END_LATER = PAWL_END_LATER,
    END_RELEASE = PAWL_END_RELEASE,
    END_CANCELLED = PAWL_END_CANCELLED,
    END_LOST = 8, /* its owner died; only reclaim says so */
};

struct verdict {
    enum pawl_state next; /* PENDING or an ended state */
    struct tries tries;   /* as they are after it */
    int64_t run_at_us;    /* with PENDING */
    bool count_try;       /* it belongs into the history of tries */
};

/* What one try's end was. */
struct try_end {
    enum ending how;
    int64_t retry_in_us; /* ERROR: below 0 means the call's backoff, as for every TIMEOUT; LATER:
                            from now */
    bool alone;          /* LOST: it was the only call of its lease */
    bool fail_lost;      /* LOST: reclaim_action = fail: ends `failed` at once */
    bool timed;          /* LOST, by an engine that takes a try back: TIMEOUT instead when it is
                            past its timeout (try_timed_out) */
    bool wish;           /* a cancel wish is stored for it */
};

/* Of the call whose try it was. */
struct try_of {
    const struct call_spec *spec;
    struct tries tries; /* before it */
    int64_t run_at_us;  /* what it was claimed with */
};

/* Decide. `now_us` is the database's clock; `run_at_us` of a lost or released call stays what it
 * was, so that it keeps its place. A wish turns every ending that would go back to pending into
 * cancelled. */
struct verdict call_after(const struct try_of *c, const struct try_end *e, int64_t now_us,
                          const struct world *w);

/* When a try that began then is past its timeout. */
static inline int64_t call_deadline(const struct call_spec *s, int64_t begun_us)
{
    return s->timeout_us ? begun_us + s->timeout_us : INT64_MAX;
}

/* A try is taken back from its owner, which held it until held_us. If `end` says `timed` and its
 * timeout had passed by then, it becomes a TIMEOUT and *error the sentence that says so, in `a`.
 * False without memory. */
MUST_USE bool try_timed_out(struct arena *a, const struct call_spec *s, int64_t begun_us,
                            int64_t held_us, struct try_end *end, struct bytes *error);

/* After the n-th error (n from 1): min(max, base * factor^(n-1)), give or take jitter of it. */
int64_t backoff_us(const struct backoff *b, int n, const struct world *w);

/* When a fresh call is due and when it expires: run_at in the past means now; expires 0 when never.
 */
void call_times(const struct call_spec *s, int64_t now_us, int64_t *out_run_at_us,
                int64_t *out_expires_us);

/* Why a pending call is not running, from what an engine knows. One with a key that is not the next
 * of its line, or is next while another of its key runs or blocks it, waits for its key: `behind`.
 */
struct call_where {
    bool queue_paused, behind;
};
enum call_wait call_waiting_for(const struct call *c, int64_t now_us, struct call_where where);

/* Does a call that ended so hold its key until somebody decides? */
bool call_blocks(const struct call_spec *s, enum pawl_state ended);

#endif
