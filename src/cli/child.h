/*
 * child.h - run one program for one call: input to stdin, stdout and the end of stderr back.
 *
 * The program is /bin/sh -c CMD in its own process group. One thread drives it with child_turn();
 * nothing blocks longer than that thread asks for.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* How much of the end of stderr becomes the error's text, in bytes. */
#define CHILD_TAIL_LEN 3000

struct child {
    pid_t pid;
    int in, out, err; /* our ends of its pipes; -1: closed */
    struct bytes input;
    size_t written;
    struct buf output;
    char tail[CHILD_TAIL_LEN + 1];
    size_t tail_len;
    bool ended;
    int status;        /* as waitpid() gave it */
    int64_t killed_us; /* monotonic: when the first signal was sent; 0: none was */
    bool too_long;     /* stdout passed its limit */
};

struct child_conf {
    const char *command;
    char *const *env;   /* the whole environment, NAME=VALUE each; NULL ends it */
    struct bytes input; /* borrowed until child_release() */
    size_t output_max;  /* stdout in bytes; a program that writes more is killed */
};
/* Start the program. BUSY: no process could be created. child_release() in both cases. */
MUST_USE enum pawl_status child_open(struct child *c, const struct child_conf *conf,
                                     struct pawl_err *err);
/* Move bytes through the pipes until `until_us` (monotonic) or until the program has ended. True:
 * it has ended. */
bool child_turn(struct child *c, int64_t until_us);
/* Send SIGTERM to its process group, and SIGKILL two seconds later; with `now` SIGKILL at once. */
void child_kill(struct child *c, bool now);
/* Kill what still runs in its process group, and free everything. */
void child_release(struct child *c);

/* ---- The meaning of an exit status (pure) ---------------------------------------------------- */

enum child_end { CHILD_RESULT, CHILD_REFUSE, CHILD_LATER, CHILD_ERROR };
/* What a status from waitpid() means. Exit code 0: result; 65: refused for good; 75: run again
 * later; anything else: an error. */
enum child_end child_end_of(int status);
/* Write the error's text: the end of stderr, or the exit code or signal when stderr is empty. */
void child_error_text(int status, struct bytes tail, char *out, size_t size);
/* Add stdout as a member of a finish request: `"result":JSON` when it is JSON, a JSON string when
 * it is UTF-8, else `"result_base64"`. */
void child_result_add(struct buf *b, struct bytes output);

#endif
