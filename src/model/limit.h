/*
 * limit.h - a limit as a value: for which calls it holds, how many of them run at once, and how
 * many begin in a time. Pure, any thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_LIMIT_H
#define MODEL_LIMIT_H

#include "base/json.h"
#include "model/fields.h"

struct limit {
    struct bytes name;                    /* absent: not given */
    struct bytes queue, type, key_prefix; /* at least one; absent: any */
    int max;                              /* how many run at once; 0: any number */
    int rate;                             /* how many begin in per_us; 0: any number */
    int64_t per_us;
    int burst; /* of these, how many at one time */
};

/* The object that limit_read() takes. */
extern const struct shape limit_shape;
/* Read a limit and check all of it. INVALID names the field. Strings live in `a`. */
MUST_USE enum pawl_status limit_read(struct arena *a, const struct json *object, struct limit *out,
                                     struct pawl_err *err);
/* The same checks for a limit that was made by hand; fills in the defaults of per_us and burst. */
MUST_USE enum pawl_status limit_settle(struct limit *l, struct pawl_err *err);
/* Do they hold for the same calls, and do both have slots, or neither? */
bool limit_same_calls(const struct limit *a, const struct limit *b);
/* Does the key begin with its prefix? False for calls without a key. */
bool limit_has_key(const struct limit *l, struct bytes key);
/* Are they the same, name apart? */
bool limit_same(const struct limit *a, const struct limit *b);

/* The rate of a limit, as the time up to which it has been used. Each call uses an interval; the
 * more of it lies ahead of now, the fewer may begin. */
int64_t limit_interval_ns(const struct limit *l);
/* How many calls may begin now. *out_next_us, with 0: when one may. */
int64_t limit_tokens(const struct limit *l, int64_t used_ns, int64_t now_us, int64_t *out_next_us);
/* Up to when it is used once n more have begun. */
int64_t limit_use(const struct limit *l, int64_t used_ns, int64_t now_us, int64_t n);

#endif
