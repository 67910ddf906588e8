/*
 * dump.h - a database server's own program for copies: how it is called for a URL, and running it.
 *
 * A password goes to it in the environment and never on its command line, where every user of the
 * machine could read it. One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_DUMP_H
#define CLI_DUMP_H

#include "base/arena.h"
#include "store/op.h"

#define DUMP_PROGRAMS_MAX 2
#define DUMP_ARGS_MAX 128

struct dump_plan {
    const char *programs[DUMP_PROGRAMS_MAX + 1]; /* the first that is in PATH; NULL ends them */
    const char *argv[DUMP_ARGS_MAX + 2];         /* its name stands first; NULL ends them */
    size_t n_args;
    const char *secret; /* NAME=VALUE for its environment; NULL: none */
    const char *package;
};

/* Does the URL name a server that has such a program? */
bool dump_for(const char *url);
/* Is that program given our tables by name? */
bool dump_by_table(const char *url);
/* The URL without what is before its scheme: "trace+sqlite:x" is "sqlite:x". */
const char *dump_bare(const char *url);
/* How to call it, on `a`: for Pawl's schema alone, as it is at one moment. `steps` are what made
 * the schema: where a schema is a prefix they say which tables are ours. Pure. */
MUST_USE enum pawl_status dump_plan(const char *url, const char *schema, const struct steps *steps,
                                    struct arena *a, struct dump_plan *out, struct pawl_err *err);

/* Run it with its output into a new file, made with mode 0600, until a moment of world_mono. Synced
 * when OK; with anything else the file is gone again. `progress` is told the bytes, now and then.
 */
struct dump_run {
    const char *path;
    int64_t until_us;
    void (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx;
};
MUST_USE enum pawl_status dump_run(const struct dump_plan *plan, const struct dump_run *run,
                                   struct pawl_err *err);

#endif
