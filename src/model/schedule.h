/*
 * schedule.h - a schedule as a value: when a call is submitted again and again, and which call.
 *
 * It is read from JSON in the one shape that clients, settings, SQL and C use, and written as the
 * text that the database keeps and clients see. Pure, any thread; the clock is a parameter.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_SCHEDULE_H
#define MODEL_SCHEDULE_H

#include "base/buf.h"
#include "base/json.h"
#include "model/call.h"
#include "model/fields.h"
#include "model/ticks.h"

/* What becomes of a tick while the call of the last one has not ended. */
enum overlap { OVERLAP_ALLOW, OVERLAP_SKIP, OVERLAP_WAIT, OVERLAP_REPLACE };

struct schedule {
    struct bytes name; /* absent: not given */
    /* Exactly one of the three: an expression, a period, a list of times (sorted, each once). */
    struct bytes cron;
    int64_t every_us;
    const int64_t *at;
    size_t n_at;
    struct bytes zone;     /* "UTC" when not given */
    struct call_spec call; /* read, not settled: no id, run_at, expires_at; delay and expires_in
                              count from the tick */
    enum catch_up catch_up;
    int64_t catch_up_for_us; /* LAST: a tick that is later than this is missed */
    enum overlap overlap;
    int64_t jitter_us;
    int64_t starts_us, ends_us; /* the first and the last time of a tick; 0: no bound */
    bool paused;
    bool paused_given; /* false: a schedule that is stored stays as it is, a new one runs */
};

/* Set every field to its default. */
void schedule_init(struct schedule *s);

/* The object that schedule_read() takes. */
extern const struct shape schedule_shape;

/* How to read one. */
struct schedule_limits {
    int64_t now_us;          /* the database's clock */
    int64_t call_timeout_us; /* of a call without a timeout; 0: the model's default */
    size_t input_len_max;    /* 0: INPUT_LEN_MAX */
};
/* Read a schedule and check all of it, except what needs the data of its zone (model/cron.h).
 * INVALID and TOO_LARGE name the field; those of the call are `call.NAME`. What is made lives in
 * `a`; strings may point into the text of `object`. */
MUST_USE enum pawl_status schedule_read(struct arena *a, const struct json *object,
                                        const struct schedule_limits *l, struct schedule *out,
                                        struct pawl_err *err);
/* The same for an object that has the members of the call beside its own instead of in `call`, as a
 * block of the settings file has; errors then name them without `call.`. */
MUST_USE enum pawl_status schedule_read_flat(struct arena *a, const struct json *object,
                                             const struct schedule_limits *l, struct schedule *out,
                                             struct pawl_err *err);
/* Check a schedule that was filled in by hand, as reading one does, and sort `at` into `a`. */
MUST_USE enum pawl_status schedule_check(struct arena *a, struct schedule *s,
                                         const struct schedule_limits *l, struct pawl_err *err);

/* Everything but name and paused as one JSON object in `a`: equal schedules give equal text, except
 * that the input is kept byte for byte. It is what the database keeps and clients see. */
MUST_USE enum pawl_status schedule_write(struct arena *a, const struct schedule *s,
                                         struct bytes *out, struct pawl_err *err);
/* Append its members without the braces; leave_out: TICK_... (model/spec_json.h). */
void schedule_add(struct buf *b, const struct schedule *s, unsigned leave_out);
/* The inverse, with `name` as its name. BROKEN when schedule_write() did not write it. */
MUST_USE enum pawl_status schedule_stored(struct arena *a, struct bytes name, struct bytes text,
                                          struct schedule *out, struct pawl_err *err);

/* The words of the two choices, in the order of their enums, separated by `|`. */
#define CATCH_UP_WORDS "last|none|all"
#define OVERLAP_WORDS "allow|skip|wait|replace"

#endif
