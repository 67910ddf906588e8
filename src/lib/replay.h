/*
 * replay.h - replaying the journal of a run against modules, in a process of its own. For commands.
 *
 * The caller's process never loads the modules. A child does, replays one journal and ends; it has
 * no file of its parent but one socket, by which it asks for calls of other runs to be read. So
 * nothing that a handler does can reach the database, and a handler that crashes or hangs ends its
 * child alone. One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LIB_REPLAY_H
#define LIB_REPLAY_H

#include "exec/replay.h"

struct replay_conf {
    const char *const *modules; /* paths, as the setting `module` has them */
    size_t n_modules;
    struct store *store; /* borrowed: read while a child runs */
    int64_t timeout_us;  /* of one replay */
};

/* How the child ended. */
enum replay_fate {
    REPLAY_ENDED,   /* with an outcome */
    REPLAY_CRASHED, /* by `signal` */
    REPLAY_EXITED,  /* with `code`, and without an outcome */
    REPLAY_HUNG,    /* it was killed at the deadline */
};

struct replay_result {
    enum replay_fate fate;
    int signal, code;
    struct replay_outcome outcome; /* unless it ENDED: how far it came */
};

/* Can the modules be loaded? The error of the first that cannot; also for one that crashes. */
MUST_USE enum pawl_status replay_modules(const struct replay_conf *c, struct pawl_err *err);
/* Replay r, whose `out` is not used. BUSY: there is no process to be had; NO_MEMORY; the database's
 * error. */
MUST_USE enum pawl_status replay_journal(const struct replay_conf *c, const struct replay *r,
                                         struct replay_result *out, struct pawl_err *err);

#endif
