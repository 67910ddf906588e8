/*
 * pass_told.c - passes that are told to stop because of what other nodes stored: a cancel of their
 * run, or its end (pass.h).
 *
 * A run that undoes has no cancel request: its row says since when. So a node asks about the passes
 * that run here, by their numbers, as often as it looks for cancel requests; without passes it asks
 * nothing. A cancel of this process is told at once (exec_run_cancel()).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/log.h"
#include "exec/internal.h"
#include "exec/pass.h"

static bool may_stop(struct pawl_call *t, int64_t x)
{
    (void)x;
    return atomic_load(&t->pass) && atomic_load(&t->stop) == STOP_NONE &&
           atomic_load(&t->stage) == ATTEMPT_RUNNING;
}

void passes_look(struct exec *e, struct store *s)
{
    struct pawl_call *v[SLOTS_MAX];
    struct workflow_pass passes[SLOTS_MAX];
    bool stop[SLOTS_MAX] = { false };
    struct pawl_err err;
    size_t n = pool_pick(&e->pool, may_stop, 0, v, COUNT_OF(v));
    for (size_t i = 0; i < n; i++)
        passes[i] = (struct workflow_pass){ v[i]->call->seq, v[i]->call->claimed_us };
    /* When the database is away, the next look tells them. */
    enum pawl_status st = n ? workflow_stops(s, passes, n, stop, &err) : PAWL_OK;
    for (size_t i = 0; i < n; i++) {
        if (st == PAWL_OK && stop[i])
            attempt_stop(v[i], STOP_CANCEL_REQUEST);
        attempt_unref(v[i]);
    }
}
