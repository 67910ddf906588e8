/*
 * child.h - one program run for one call: input in, output and the end of its errors out.
 *
 * The program is /bin/sh -c CMD in a process group of its own. The caller drives it by child_turn()
 * from one thread; nothing blocks longer than the caller says.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* The end of stderr that becomes the error's text. */
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
    int64_t killed_us; /* monotonic: when it was first told to end; 0: it was not */
    bool too_long;     /* stdout passed its limit */
};

/* env: NAME=VALUE, NULL at the end, all there is. input is borrowed until child_release(). */
struct child_conf {
    const char *command;
    char *const *env;
    struct bytes input;
    size_t output_max;
};
MUST_USE enum pawl_status child_open(struct child *c, const struct child_conf *conf,
                                     struct pawl_err *err);
/* Move bytes and look whether it has ended, for at most this long (monotonic). True: it has. */
bool child_turn(struct child *c, int64_t until_us);
/* Ask its whole group to end; after two seconds, or when `now`, without asking. */
void child_kill(struct child *c, bool now);
/* Kills what still runs. */
void child_release(struct child *c);

/* ---- What an ended program means (pure) ------------------------------------------------------ */

enum child_end { CHILD_RESULT, CHILD_REFUSE, CHILD_LATER, CHILD_ERROR };
/* 0: result; 65: failed for good; 75: again later; everything else an error. */
enum child_end child_end_of(int status);
/* The error's text: the end of stderr, or how it ended when it said nothing. */
void child_error_text(int status, struct bytes tail, char *out, size_t size);
/* stdout as the member of a finish: `"result":JSON`, a JSON string, or `"result_base64"`. */
void child_result_add(struct buf *b, struct bytes output);

#endif
