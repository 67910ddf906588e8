/*
 * cli.h - what the subcommands of `pawl` share: the table of commands, tables of options, and
 * output for people and for programs.
 *
 * A subcommand is one file with one `const struct command cmd_NAME`, listed in commands.c. main.c
 * checks the options against the command's table before it calls run(). `--help`, `pawl help` and
 * doc/cli.md are printed from the same tables, so they always match what is read. One thread.
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

/* One option: `--name ARG` or `--name=ARG`, some also as a letter (option_letter()); a flag has no
 * argument. */
struct option_row {
    const char *name;     /* without the dashes; NULL ends the table */
    const char *arg;      /* what follows, as help shows it: "N"; NULL: a flag */
    const char *fallback; /* the default. For a command's own option also what cli_option() returns;
                             else only text for the help. NULL: none */
    const char *help;     /* one line; --help adds the default */
};

/* What a command works on. This decides which shared options it has. */
enum reach {
    REACH_DATABASE, /* --db, --schema */
    REACH_SERVER,   /* --url: it is an HTTP client */
    REACH_NOTHING   /* neither; it also runs when a setting is invalid */
};

struct command {
    const char *name;
    const char *summary;              /* one line for `pawl help`, lower case, no stop */
    const char *usage;                /* positional arguments, "[status|up|finish]"; "" for none */
    const char *about;                /* a few sentences for --help; NULL: the summary is enough */
    const char *example;              /* lines to paste into a shell, each without indentation */
    const struct option_row *options; /* its own, besides those of its reach and of all commands;
                                         NULL: none */
    int args_max;                     /* positional arguments it takes; more are an error */
    enum reach reach;
    /* Runs the command; argv holds the positional arguments only. Returns the exit code: 0, or the
     * return value of cli_fail(). */
    int (*run)(struct cli *cli, int argc, char **argv);
};

/* Every command, in the order of the help; NULL ends the list. */
extern const struct command *const commands[];
extern const struct command cmd_archive, cmd_attempts, cmd_backup, cmd_batch, cmd_bench, cmd_call,
    cmd_cancel, cmd_completion, cmd_cron, cmd_doctor, cmd_drain, cmd_events, cmd_gc, cmd_get,
    cmd_help, cmd_keys, cmd_leaders, cmd_limits, cmd_list, cmd_man, cmd_migrate, cmd_nodes,
    cmd_object, cmd_pause, cmd_queues, cmd_requeue_stuck, cmd_resume, cmd_retry, cmd_serve,
    cmd_submit, cmd_token, cmd_unblock, cmd_undrain, cmd_workflow, cmd_version, cmd_work;
/* The options that every command has. */
extern const struct option_row options_common[];
/* The options that every command of this reach has; a table without rows when there are none. */
const struct option_row *options_of(enum reach reach);
/* The command of this name; NULL when there is none. */
const struct command *command_find(const char *name);

#define CLI_OPTIONS_MAX 64

struct cli {
    const struct command *command;
    FILE *out, *err;
    bool json;                /* --json: `out` gets one JSON value and nothing else */
    bool colour;              /* `out` is a terminal, not a dumb one, and NO_COLOR is not set */
    bool live;                /* `err` is a terminal, not a dumb one: progress may be drawn */
    bool person;              /* stdin and `err` are terminals: a question may be asked */
    bool drawn;               /* `err` shows a line of progress */
    struct settings settings; /* resolved: command line, environment, file, default */
    struct {
        const struct option_row *row;
        const char *value; /* "" for a flag */
    } given[CLI_OPTIONS_MAX];
    int n_given;
};

/* ---- Options --------------------------------------------------------------------------------- */

/* The value of one of this command's options: the last one given, else its fallback, else NULL. */
const char *cli_option(const struct cli *cli, const char *name);
/* Was the option given on the command line? */
bool cli_flag(const struct cli *cli, const char *name);
/* How often the option was given. */
int cli_count(const struct cli *cli, const char *name);
/* The value of the i-th time it was given, from 0; NULL when it was given less often. */
const char *cli_nth(const struct cli *cli, const char *name, int i);
/* Parse the option as a whole number from min to max. INVALID: the message names the option. */
MUST_USE enum pawl_status cli_int(const struct cli *cli, const char *name, int64_t min, int64_t max,
                                  int64_t *out, struct pawl_err *err);
/* Parse the option as a duration (`5s`, `500ms`). INVALID: the message names the option. */
MUST_USE enum pawl_status cli_duration(const struct cli *cli, const char *name, int64_t *out_us,
                                       struct pawl_err *err);

/* ---- The database ---------------------------------------------------------------------------- */

/* The database URL from the settings, with `env:NAME` resolved. It may hold a password: print it
 * only through url_safe(). */
const char *cli_db(const struct cli *cli);
/* The schema's name from the settings. */
const char *cli_schema(const struct cli *cli);
/* The path in a URL of a database file, without the engine and its wrappers ("trace+sqlite:PATH").
 * NULL: the URL names no file. */
const char *cli_db_file(const char *url);
/* NOT_FOUND when the database is a file that does not exist: opening it would create a new one, and
 * the name may be misspelled. */
MUST_USE enum pawl_status cli_db_exists(const struct cli *cli, struct pawl_err *err);

/* ---- The terminal ---------------------------------------------------------------------------- */

/* Print `pawl COMMAND: message` on stderr, with --json `{"error":{...}}`. Returns the exit code of
 * the status. */
int cli_fail(struct cli *cli, const struct pawl_err *err);
/* The same. With --json the error also has the id of the call it is about; NULL: none. */
int cli_fail_id(struct cli *cli, const struct pawl_err *err, const char *id);
/* The same, with the message from a printf format. */
int cli_failf(struct cli *cli, enum pawl_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Report a missing argument: `ID is missing; usage: pawl get ID`. Returns the code of INVALID. */
int cli_missing(struct cli *cli, const char *what);
/* Report a wrong argument: `unknown subcommand "x"; expected serve or work`. An empty `argument`
 * means that it is missing. Returns the code of INVALID. */
int cli_unknown(struct cli *cli, const char *what, const char *argument, const char *expected);
/* Flush stdout. Returns 0, or an exit code when writing failed: a full disk behind `> file` must
 * not look like success. */
int cli_done(struct cli *cli);

/* Print a question on `err` and read one line from stdin. True for y and yes. Only to be called
 * when cli->person is set. */
bool cli_ask(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Draw a line of progress in place of the one before. Does nothing unless `err` is a terminal. */
void cli_progress(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Remove the line of progress, if there is one. */
void cli_progress_end(struct cli *cli);

enum paint { PAINT_NONE, PAINT_GOOD, PAINT_WARN, PAINT_BAD, PAINT_HEAD, PAINT_DIM };
/* The escape sequence before a coloured text; "" when colour is off. */
const char *paint_on(const struct cli *cli, enum paint paint);
/* The escape sequence behind it; "" when colour is off. */
const char *paint_off(const struct cli *cli, enum paint paint);

/* Print the --help of one command. */
void help_command(struct cli *cli, const struct command *c);
/* Print the overview of all commands: `pawl help`. */
void help_overview(struct cli *cli);
/* Print doc/settings.md. Returns the exit code. */
int help_settings_page(struct cli *cli);
/* Print a pawl.conf with every setting commented out. Returns the exit code. */
int help_settings_conf(struct cli *cli);

/* Read the command line without the command's name. Options go into cli->given and cli->settings;
 * positional arguments move to the front of argv, their number is *out_n. */
MUST_USE enum pawl_status options_read(struct cli *cli, int argc, char **argv, int *out_n,
                                       struct pawl_err *err);

/* The index of the command's name in argv, behind any options and their values; argc when there is
 * none. INVALID: an option in front of it belongs to no command. */
MUST_USE enum pawl_status command_place(int argc, char **argv, int *out_at, struct pawl_err *err);
/* The short form of an option, 'n' for --limit; 0 for none. */
char option_letter(const char *name);

/* Finds the most similar of several names, for "did you mean". */
struct nearest {
    const char *asked, *best;
    int distance;
};
/* Compare one more name with `asked`. `name` is borrowed. */
void nearest_offer(struct nearest *n, const char *name);
/* The most similar name so far; NULL when none is similar enough. */
const char *nearest_name(const struct nearest *n);

#endif
