/*
 * cli_fixture.h - run the program `pawl` through the shell, and read what it printed.
 *
 * The program runs in the case's own folder. Every function ends the case when it cannot do its
 * work.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_FIXTURE_H
#define CLI_FIXTURE_H

#include "base/json.h"
#include "check.h"

#define CLI_PROGRAM PAWL_BUILD_DIR "/pawl"
#define CLI_TEXT_MAX (256 << 10)

/* What the program printed on stdout and stderr in the last run. */
extern char cli_out[CLI_TEXT_MAX], cli_err_out[CLI_TEXT_MAX];

/* Run `pawl ARGS`; fills cli_out and cli_err_out. Returns the exit code. */
int cli_run(const char *args);
/* The same with shell assignments in front of the program. */
int cli_run_with(const char *assignments, const char *args);

/* Run a line of shell with a terminal as stdin, stdout and stderr; what it shows is in cli_out.
 * Returns the exit code. */
int cli_on_terminal(const char *line);

/* Parse cli_out as one JSON value; valid until the next call. */
struct json *cli_answer(void);
/* A member of such a value as a number. */
int64_t cli_number(const struct json *v, const char *name);
/* A member of such a value as a string. */
const char *cli_text(const struct json *v, const char *name);

/* Run SQL on an SQLite file, without Pawl. */
void cli_sql(const char *path, const char *statement);
/* Read a file into `to`, which has CLI_TEXT_MAX bytes. */
void cli_read_file(const char *path, char *to);
/* Write a file with this content. */
void cli_write_file(const char *path, const char *content);

#endif
