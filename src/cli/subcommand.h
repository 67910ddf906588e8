/*
 * subcommand.h - commands of several words: `pawl cron put`, `pawl limits rm`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_SUBCOMMAND_H
#define CLI_SUBCOMMAND_H

#include "cli/remote.h"

/* How many names a subcommand takes that takes several. */
#define SUBCOMMAND_NAMES_MAX 1000

struct subcommand {
    const char *name; /* NULL ends the table */
    int (*run)(struct remote *r, int argc, char **argv);
    const char *argument; /* the first one, which it needs; NULL: it takes none */
    int args_max;
    const char *options; /* its own of the command's options, each with a space before and behind */
};
/* Run the subcommand that argv begins with, with a client for the server; options of others are
 * errors. `otherwise`: the one that runs without a word; NULL: a word is needed. Returns the exit
 * code. */
int subcommand_run(struct cli *cli, const struct subcommand *v, const char *otherwise, int argc,
                   char **argv);

/* A list that the server answers page by page. */
struct listing {
    const char *path;           /* with its filters; NULL: r->err says why */
    const char *member, *has;   /* of the answer: its list, and what each in it has */
    const char *const *columns; /* NULL ends them */
    void (*row)(struct remote *r, struct cli_table *s, const struct json *one);
};
/* Print as much of the list as the option --limit says. Returns the exit code. */
int remote_list(struct remote *r, const struct listing *p);

#endif
