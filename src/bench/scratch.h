/*
 * scratch.h - scratch schemas of `pawl bench` in a user's database: made under new names, and
 * removed again.
 *
 * On PostgreSQL each is a schema, elsewhere tables with a prefix. Nothing else in the database is
 * read or changed. One thread; no other runs meanwhile, because the caller forks after it.
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
    char names[SCRATCH_COUNT][33]; /* names of the schemas */
    bool made[SCRATCH_COUNT];      /* made, or begun */
};

/* Make all of them, with tables. After an error some may exist: remove them. */
MUST_USE enum pawl_status bench_scratch_make(struct bench_scratch *s, const char *url,
                                             struct pawl_err *err);
/* Remove those that were made. The process that used them may just have been killed and still hold
 * locks, so this retries for a while. An error names what is left; the others are removed all the
 * same. */
MUST_USE enum pawl_status bench_scratch_remove(struct bench_scratch *s, struct pawl_err *err);

#endif
