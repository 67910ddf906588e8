/*
 * dump.h - backups with the database server's dump program (pg_dump, mariadb-dump): build its
 * command line from a URL, and run it.
 *
 * The password is passed in the environment, never on the command line, where every user of the
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
    const char *programs[DUMP_PROGRAMS_MAX + 1]; /* the first in PATH is used; NULL ends them */
    const char *argv[DUMP_ARGS_MAX + 2];         /* argv[0] is the program; NULL ends them */
    size_t n_args;
    const char *secret;  /* NAME=VALUE for its environment; NULL: none */
    const char *package; /* that installs the program, for errors */
};

/* Is the database of this URL copied by a dump program? */
bool dump_for(const char *url);
/* Does that program take a list of tables (MariaDB, MySQL), and not a schema? */
bool dump_by_table(const char *url);
/* The URL without the names of wrappers: "sqlite:x" for "trace+sqlite:x". */
const char *dump_inner_url(const char *url);
/* Build the command line on `a`: a consistent dump of Pawl's schema alone. Where a schema is a
 * prefix of table names, the applied migration `steps` say which tables are ours. Pure. */
MUST_USE enum pawl_status dump_plan(const char *url, const char *schema, const struct steps *steps,
                                    struct arena *a, struct dump_plan *out, struct pawl_err *err);

struct dump_run {
    const char *path; /* must not exist; created with mode 0600 */
    int64_t until_us; /* of world_mono(): when the program is killed */
    void (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx;
};
/* Run the program with its stdout going to run->path, and call `progress` from time to time with
 * the bytes so far. OK: the file is complete and synced; on an error it is removed. */
MUST_USE enum pawl_status dump_run(const struct dump_plan *plan, const struct dump_run *run,
                                   struct pawl_err *err);

#endif
