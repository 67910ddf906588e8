/*
 * schedule.h - a schedule as a value: when it ticks (ticks.h), which call each tick
 * submits, and what is done about ticks that were missed or that overlap.
 *
 * It is read from JSON in the one shape that clients, settings, SQL and C use, and written as the
 * text that the database keeps and clients see. Pure, any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_SCHEDULE_H
#define MODEL_SCHEDULE_H

#include "base/json.h"
#include "model/call.h"
#include "model/fields.h"
#include "model/ticks.h"

/* What becomes of a tick while the call of the last one has not ended. */
enum overlap { OVERLAP_ALLOW, OVERLAP_SKIP, OVERLAP_WAIT, OVERLAP_REPLACE };

struct schedule {
    struct bytes name; /* absent: not given */
    struct schedule_rule rule;
    struct bytes cron;     /* the text of rule.cron; absent with another kind of rule */
    struct bytes zone;     /* "UTC" when not given */
    struct call_spec call; /* read, not settled: no id, run_at, expires_at; delay and expires_in
                              count from the tick */
    enum catch_up catch_up;
    int64_t catch_up_for_us;
    enum overlap overlap;
    int64_t jitter_us;
    bool paused;
    bool paused_given; /* false: a schedule that is stored stays as it is, a new one runs */
};

/* Set every field to its default: no rule, no call. */
void schedule_init(struct schedule *s);

/* The object that schedule_read() takes. */
extern const struct shape schedule_shape;

/* How to read one. */
struct schedule_limits {
    int64_t call_timeout_us; /* of a call without a timeout; 0: the model's default */
    size_t input_len_max;    /* 0: INPUT_LEN_MAX */
};
/* Read a schedule and check all of it, except what needs its zone or the time
 * (schedule_rule_check). INVALID and TOO_LARGE name the field; those of the call are `call.NAME`.
 * What is made lives in `a`; strings may point into the text of `object`. */
MUST_USE enum pawl_status schedule_read(struct arena *a, const struct json *object,
                                        const struct schedule_limits *l, struct schedule *out,
                                        struct pawl_err *err);
/* The same for an object that has the members of the call beside its own instead of in `call`, as a
 * block of the settings file has; errors then name them without `call.`. */
MUST_USE enum pawl_status schedule_read_flat(struct arena *a, const struct json *object,
                                             const struct schedule_limits *l, struct schedule *out,
                                             struct pawl_err *err);
/* Everything but name and paused as one JSON object in `a`. Equal schedules, as they were read,
 * give equal text: defaults are left out, times, tags and needs are sorted and there once; the
 * input alone is kept byte for byte. It is what the database keeps and clients see. */
MUST_USE enum pawl_status schedule_write(struct arena *a, const struct schedule *s,
                                         struct bytes *out, struct pawl_err *err);
/* The inverse, with `name` as its name. BROKEN when schedule_write() did not write it. */
MUST_USE enum pawl_status schedule_stored(struct arena *a, struct bytes name, struct bytes text,
                                          struct schedule *out, struct pawl_err *err);

/* The words of the two choices, in the order of their enums, separated by `|`. */
#define CATCH_UP_WORDS "last|none|all"
#define OVERLAP_WORDS "allow|skip|wait|replace"

#endif
