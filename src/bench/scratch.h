/*
 * scratch.h - places in somebody's database that are `pawl bench`'s own: made under names
 * that nobody has, and removed again.
 *
 * On PostgreSQL a schema each, elsewhere tables with a prefix. Nothing else in the database is
 * looked at. One thread, none beside it: the caller forks after it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BENCH_SCRATCH_H
#define BENCH_SCRATCH_H

#include <stdbool.h>

#include <pawl.h>

#include "base/macros.h"

enum { SCRATCH_ENGINE, SCRATCH_FLOOR, SCRATCH_SERVED, SCRATCH_COUNT };

struct bench_scratch {
    const char *url;               /* borrowed */
    char names[SCRATCH_COUNT][33]; /* of the schemas */
    bool made[SCRATCH_COUNT];      /* or begun to be */
};

/* All of them, with tables. After an error some may be there: remove them. */
MUST_USE enum pawl_status bench_scratch_make(struct bench_scratch *s, const char *url,
                                             struct pawl_err *err);
/* What is there of them. Whoever used them may just have been killed: it is tried for a while. An
 * error names what is left; the others are gone all the same. */
MUST_USE enum pawl_status bench_scratch_remove(struct bench_scratch *s, struct pawl_err *err);

#endif
