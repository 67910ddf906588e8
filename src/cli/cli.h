/*
 * cli.h - what the subcommands of `pawl` share: one table of commands, one table of options each,
 * and the ways to speak to a person or to a program.
 *
 * A subcommand is one file with one `const struct command cmd_NAME`, listed in commands.c. main.c
 * reads its options against its table before run() is called, so run() sees checked names only and
 * `--help`, `pawl help` and doc/cli.md cannot disagree with what is read. One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <pawl.h>

#include "base/macros.h"
#include "cli/settings.h"

struct cli;

/* One option. `--name ARG` or `--name=ARG`, some also by a letter (option_letter()); a flag has no
 * arg. */
struct option_row {
    const char *name;     /* without the dashes; NULL ends the table */
    const char *arg;      /* what follows, as help shows it: "N"; NULL: a flag */
    const char *fallback; /* the default: of a command's own option what cli_option() answers, else
                             words for the help; NULL: none */
    const char *help;     /* one line; the default is added by --help itself */
};

/* What a command works on; it decides which options it has besides its own. */
enum reach {
    REACH_DATABASE, /* --db, --schema */
    REACH_SERVER,   /* --url, over HTTP like anybody else */
    REACH_NOTHING   /* a wrong setting does not stop it */
};

struct command {
    const char *name;
    const char *summary; /* one line for `pawl help`, lower case, no stop */
    const char *usage;   /* positional arguments, "[status|up|finish]"; "" for none */
    const char *about;   /* a few sentences for --help; NULL: the summary says it all */
    const char *example; /* lines ready to paste, each without indentation */
    const struct option_row *options; /* its own; those of its reach and of all are added; may be
                                         NULL */
    int args_max;                     /* positional arguments it takes; more are refused for it */
    enum reach reach;
    /* argv holds the positional arguments only. Returns the exit code: 0, or what cli_fail() gave.
     */
    int (*run)(struct cli *cli, int argc, char **argv);
};

/* Every command, in the order help shows them; name NULL ends it. */
extern const struct command *const commands[];
extern const struct command cmd_archive, cmd_attempts, cmd_backup, cmd_batch, cmd_bench, cmd_call,
    cmd_cancel, cmd_completion, cmd_doctor, cmd_drain, cmd_events, cmd_gc, cmd_get, cmd_help,
    cmd_keys, cmd_leaders, cmd_list, cmd_man, cmd_migrate, cmd_nodes, cmd_object, cmd_pause,
    cmd_queues, cmd_requeue_stuck, cmd_resume, cmd_retry, cmd_serve, cmd_submit, cmd_token,
    cmd_unblock, cmd_undrain, cmd_version, cmd_work;
/* Tables of options besides a command's own: of all, and of its reach. */
extern const struct option_row options_common[];
const struct option_row *options_of(enum reach reach);
const struct command *command_find(const char *name); /* NULL for none */

#define CLI_OPTIONS_MAX 64

struct cli {
    const struct command *command;
    FILE *out, *err;
    bool json;                /* --json: one JSON value on `out`, nothing else there */
    bool colour;              /* of `out`: a terminal, not a dumb one, and NO_COLOR is not set */
    bool live;                /* of `err`: a terminal, not a dumb one, so progress may be drawn */
    bool person;              /* stdin and `err` are terminals, so a question may be asked */
    bool drawn;               /* a line of progress stands on `err` */
    struct settings settings; /* resolved: command line, environment, file, default */
    struct {
        const struct option_row *row;
        const char *value; /* "" for a flag */
    } given[CLI_OPTIONS_MAX];
    int n_given;
};

/* ---- Options --------------------------------------------------------------------------------- */

/* The value of an option of this command: as given (the last one wins), else its fallback, else
 * NULL. */
const char *cli_option(const struct cli *cli, const char *name);
/* Was it on the command line? */
bool cli_flag(const struct cli *cli, const char *name);
/* How often it was given, and the value of the i-th time. */
int cli_count(const struct cli *cli, const char *name);
const char *cli_nth(const struct cli *cli, const char *name, int i);
/* The option as a whole number within min..max; INVALID names the option. */
MUST_USE enum pawl_status cli_int(const struct cli *cli, const char *name, int64_t min, int64_t max,
                                  int64_t *out, struct pawl_err *err);
/* The option as a duration (`5s`, `500ms`). */
MUST_USE enum pawl_status cli_duration(const struct cli *cli, const char *name, int64_t *out_us,
                                       struct pawl_err *err);

/* ---- The database ---------------------------------------------------------------------------- */

/* The URL (`--db`, PAWL_DB, default; env: already followed), never to be printed: see url_safe().
 */
const char *cli_db(const struct cli *cli);
const char *cli_schema(const struct cli *cli);
/* The file that a URL names, behind its engine and any wrappers ("trace+sqlite:"); NULL: none. */
const char *cli_db_file(const char *url);
/* NOT_FOUND when the database is a file that does not exist, so that a typing error makes no new
 * one. */
MUST_USE enum pawl_status cli_db_exists(const struct cli *cli, struct pawl_err *err);

/* ---- The terminal -------------------------------------------------------------------------- */

/* Say on stderr `pawl COMMAND: sentence` (with --json `{"error":{...}}`); returns its exit code. */
int cli_fail(struct cli *cli, const struct pawl_err *err);
/* The same; with --json the error has the id of the call that it is about. NULL: none. */
int cli_fail_id(struct cli *cli, const struct pawl_err *err, const char *id);
/* The same from a format. */
int cli_failf(struct cli *cli, enum pawl_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* INVALID: `ID is missing; usage: pawl get ID`. */
int cli_missing(struct cli *cli, const char *what);
/* INVALID: `unknown subcommand "x"; expected serve or work`; argument is "" when none was given. */
int cli_unknown(struct cli *cli, const char *what, const char *argument, const char *expected);
/* Did everything reach stdout? A full disk behind `> file` must not look like success. */
int cli_done(struct cli *cli);

/* Ask a question on `err` and read one line of stdin: was it y or yes? For cli->person only. */
bool cli_ask(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* One line that replaces the one before, on a terminal only. cli_progress_end() wipes it. */
void cli_progress(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);
void cli_progress_end(struct cli *cli);

enum paint { PAINT_NONE, PAINT_GOOD, PAINT_WARN, PAINT_BAD, PAINT_HEAD, PAINT_DIM };
/* The escape sequences around a piece of text; "" when there is no colour. */
const char *paint_on(const struct cli *cli, enum paint paint);
const char *paint_off(const struct cli *cli, enum paint paint);

/* --help of one command, and the overview that `pawl help` gives. */
void help_command(struct cli *cli, const struct command *c);
void help_overview(struct cli *cli);
/* doc/settings.md, and a pawl.conf in which every setting stands commented out. */
int help_settings_page(struct cli *cli);
int help_settings_conf(struct cli *cli);

/* Read the command line without the command's name: options into cli->given and cli->settings,
 * positional arguments to the front of argv, their number in *out_n. */
MUST_USE enum pawl_status options_read(struct cli *cli, int argc, char **argv, int *out_n,
                                       struct pawl_err *err);

/* Where the command's name stands: behind the options in front of it and their values; argc when
 * there is none. INVALID: one of them is an option of no command. */
MUST_USE enum pawl_status command_place(int argc, char **argv, int *out_at, struct pawl_err *err);
/* The short form of an option, 'n' for --limit; 0 for none. */
char option_letter(const char *name);

/* The nearest of a list of names, for "did you mean"; NULL when none is near. */
struct nearest {
    const char *asked, *best;
    int distance;
};
void nearest_offer(struct nearest *n, const char *name);
const char *nearest_name(const struct nearest *n);

#endif
