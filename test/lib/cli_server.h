/*
 * cli_server.h - the program `pawl` beside a server of the case, for tests of commands that ask
 * one.
 *
 * Everything happens in the case's own folder. Every function ends the case when it cannot do its
 * work.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_SERVER_H
#define CLI_SERVER_H

#include <sys/types.h>

#define PAWL PAWL_BUILD_DIR "/pawl"
#define TEXT_MAX (64 << 10)

extern char out[TEXT_MAX], err_out[TEXT_MAX]; /* what the last run printed */
extern int port;                              /* of the server */
extern pid_t server;

/* Read a file into `to`, which has TEXT_MAX bytes. */
void slurp(const char *path, char *to);
/* Read from fd until the text appears. */
void read_until(int fd, char *to, const char *text);
/* Start a server in this folder with these options in addition; it ends with the case. */
void serve(const char *more);
/* Wait until the log of that server has this text; what it has then is in `out`. */
void serve_logged(const char *text);
/* Run a line of shell in which $u is "127.0.0.1:PORT" and `pawl` is the program. Returns the exit
 * code. */
int run(const char *line);
/* Run `pawl ARGS` with a terminal as stdin, stdout and stderr. With `prompt` it waits for that text
 * and types `answer`; the output is in `out`. Returns the exit code. */
int run_on_terminal(const char *args, const char *prompt, const char *answer);

#endif
