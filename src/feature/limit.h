/*
 * limit.h - limits: how many calls run at once, and how many begin in a time, over all nodes.
 *
 * A limit of n is n rows (slots). A claim takes free ones, which nobody waits for; a call that
 * leaves its lease frees its own. So n rows never hold n + 1, and no row is one that every claim
 * changes. doc/internals/limits.md has the tables and the rules.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FEATURE_LIMIT_H
#define FEATURE_LIMIT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/macros.h"
#include "model/limit.h"

struct feature;
struct store;

extern const struct feature feature_limit;

/* ---- Changes: an OP_FEATURE of feature_limit with a struct limit_op as its ctx --------------- */

enum limit_do {
    LIMIT_PUT,    /* STATE before the second half of its step, FULL with LIMITS_MAX of them */
    LIMIT_REMOVE, /* NOT_FOUND */
};
struct limit_op {
    enum limit_do what;
    struct bytes name;
    const struct limit *limit; /* PUT: checked */
    /* answer */
    bool created, changed;
    bool removes; /* the operation's own: it has removed it */
};

/* ---- Reads ----------------------------------------------------------------------------------- */

struct limit_row {
    struct limit limit;
    int64_t running; /* calls that have a slot; 0 without `max` */
    int64_t created_us, updated_us;
};
struct limit_query {
    struct bytes after; /* name; absent: from the first */
    int limit;          /* 1..LIST_MAX */
};
struct limit_page {
    struct limit_row *v; /* by name */
    size_t n;
    struct bytes next; /* the next `after`; absent: that was all */
};
/* Read one page. */
MUST_USE enum pawl_status limit_list(struct store *s, struct arena *a, const struct limit_query *q,
                                     struct limit_page *out, struct pawl_err *err);
/* Read one. NOT_FOUND. */
MUST_USE enum pawl_status limit_get(struct store *s, struct arena *a, struct bytes name,
                                    struct limit_row *out, struct pawl_err *err);

#endif
