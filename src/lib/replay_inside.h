/*
 * replay_inside.h - what the files of replays share: replay.c (the parent), replay_child.c (the
 * child), replay_wire.c (what they say to each other). Private to them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LIB_REPLAY_INSIDE_H
#define LIB_REPLAY_INSIDE_H

#include <sys/types.h>

#include "lib/replay.h"

/* Memory that both processes see. */
struct replay_shared {
    struct replay_outcome outcome;
    pid_t parent;
    bool loaded;         /* the modules are */
    struct pawl_err err; /* why they cannot be; status OK: there is none */
};

/* What the child does; `r->call` NULL: it loads the modules and ends. */
_Noreturn void replay_child(const struct replay_conf *c, const struct replay *r,
                            struct replay_shared *shared, int fd);

/* Child: the call with this id, by the parent. As store_get() of one id. */
MUST_USE enum pawl_status wire_get(int fd, struct arena *a, struct bytes id,
                                   enum pawl_status *out_found, struct call *out,
                                   struct pawl_err *err);
/* Parent: read one request and answer it. False: the child has closed its end, or says what it
 * should not. *out_st is what the database answered. */
MUST_USE bool wire_serve(int fd, struct store *s, enum pawl_status *out_st, struct pawl_err *err);

#endif
