/*
 * replay.h - a replay: the handler of a run goes over its stored journal once more, and nothing
 * comes of it. For exec and lib.
 *
 * A replay is the last thing that its process does, and the process has no database: the struct
 * exec of a replay reads from one store that it is given, and refuses every write. A durable point
 * that is stored is answered from the journal. At the first that is not stored, or is another one
 * than the stored, or when the handler returns, it is known how the code fits: that is written
 * down, and the process ends, so that no code of the handler runs behind that place.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_REPLAY_H
#define EXEC_REPLAY_H

#include "base/limits.h"
#include "feature/workflow.h"
#include "store/store.h"

struct exec;
struct pawl_call;

/* How the code fits the journal. */
enum replay_end {
    REPLAY_NONE,     /* not known: the process ended before, or still runs */
    REPLAY_FITS,     /* it asked for every stored step, or for the one that goes on next */
    REPLAY_DIVERGES, /* it asks for `asked`, and stored is `stored` */
    REPLAY_MISSES,   /* it ended, as `text` says, and never asked for `stored` */
    REPLAY_FAILS,    /* a durable point was called wrongly, as `text` says: the run would fail */
    REPLAY_BLIND,    /* what follows cannot be seen in a replay: `text` says why */
    REPLAY_UNSERVED, /* no handler serves the call */
    REPLAY_PINNED,   /* the run is pinned to another version than that of its handler */
};

/* A step: its place, its kind, its name as stored. */
struct replay_point {
    int64_t no; /* 0: none */
    enum step_kind kind;
    char name[STEP_NAME_LEN_MAX + 24];
};

/* What a replay writes down, also on its way, so that another process sees how far it came. */
struct replay_outcome {
    enum replay_end end;
    struct replay_point asked;  /* the last step that was asked for */
    struct replay_point stored; /* what is stored at its place; MISSES: at the first place that was
                                   not asked for */
    char text[400];
};

/* What is replayed. All is borrowed until the process ends. */
struct replay {
    const struct call *call; /* with its input */
    const struct workflow_journal *journal;
    struct payload state; /* of the call's object */
    int64_t now_us;       /* the database's clock */
    struct replay_outcome *out;
};

/* A handle for handlers to be registered with. `reader` needs store_get() alone. The handle is
 * never closed. From now on exec_open() answers STATE in this process. */
MUST_USE enum pawl_status replay_open(const struct replay *r, struct store *reader,
                                      struct exec **out, struct pawl_err *err);
/* Run the handler of the call. */
_Noreturn void replay_run(struct exec *e);
/* Is this the handle of a replay? */
bool exec_replays(const struct exec *e);
/* Inside the handler: what it asks for now cannot be known in a replay. */
_Noreturn void replay_blind(struct pawl_call *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- For passes ------------------------------------------------------------------------------ */

/* A numbered point is asked for; `row` is what is stored there, NULL: nothing. Returns when the row
 * answers it. */
void replay_point(struct pawl_call *t, const struct workflow_step *asked,
                  const struct workflow_row *row);
/* A point is called wrongly. A pass that undoes is as far as the handler comes. */
_Noreturn void replay_misused(struct pawl_call *t, struct bytes why);
/* The pass cannot go on, because of this: for good, or in this process. */
_Noreturn void replay_over(struct pawl_call *t, bool for_good, struct bytes why);
/* The run begins again. */
_Noreturn void replay_restarts(struct pawl_call *t);
/* Does this process replay? */
bool replay_here(void);

#endif
