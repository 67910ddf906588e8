/*
 * workflow.h - workflows: calls that take steps, and what is asked of their rows.
 *
 * A call begins to be a workflow with its first stored step or wait; from then on it is a flow of
 * the ledger (store/feature.h). A change is an OP_FEATURE of feature_workflow with a struct
 * workflow_op as its ctx; a read is one of the functions below on a connection for reading. Every
 * change may run twice and then answers what the first one stored. doc/internals/workflows.md has
 * the tables and the rules.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FEATURE_WORKFLOW_H
#define FEATURE_WORKFLOW_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/macros.h"
#include "model/call.h"
#include "model/workflow.h"

struct feature;
struct store;

extern const struct feature feature_workflow;

/* ---- Steps: what a pass stores --------------------------------------------------------------- */

/* What a step waits for; the first to come settles it. */
struct workflow_wait {
    const struct bytes *signals; /* names */
    size_t n_signals;
    const struct bytes *children; /* ids; `children_given` with n_children 0 is settled at once */
    size_t n_children;
    bool children_given;
    bool any;         /* one of the children is enough */
    bool has_until;   /* it ends at until_us, or after in_us; the first pass says when */
    int64_t until_us; /* 0: in_us */
    int64_t in_us;
};

enum step_says {
    SAYS_BEGUN,   /* it is about to run */
    SAYS_RESULT,  /* it has ended, with `result` */
    SAYS_ERROR,   /* its last try has failed: it may have happened. UNDO: the run stops */
    SAYS_REFUSED, /* it has failed and has not happened. UNDO: the run stops */
    SAYS_RETRY,   /* a try has failed, and there will be another in retry_in_us */
    SAYS_WAIT,    /* `wait` settles it */
    SAYS_PASSED,  /* SLEEP: its time had passed when its lease was claimed */
    SAYS_CHILD,   /* `call` is to be accepted as its child */
};

struct workflow_step {
    int64_t no;        /* from 1, in the order of the program */
    struct bytes name; /* as code gives it; of an UNDO: the stored name of the step that it undoes
                        */
    enum step_kind kind;
    enum step_says says;
    struct payload result;
    struct bytes error;
    int attempts; /* tries so far, with this one; 0: one more than before */
    int64_t retry_in_us;
    bool undo;      /* it has an undo */
    int64_t undoes; /* UNDO: the `no` of the step that it undoes */
    struct workflow_wait wait;
    const struct call_spec *call; /* CHILD: not settled; its id is made of the step's name */
    /* answer: as it is stored now, with `attempts` */
    enum step_status status;
    struct bytes stored_name, error_out;
    struct payload result_out; /* of a wait: what settled it, as JSON */
    int64_t completed_us;
    int64_t until_us;
};

struct workflow_value {
    struct bytes name;
    struct payload value;
};

struct workflow_steps { /* fenced: .token and .seq of the feature_op */
    struct workflow_step *v;
    size_t n;
    const struct workflow_value *published;
    size_t n_published;
    const struct call_spec *send; /* settled: accepted if the last of the steps is stored now */
    size_t n_send;
    struct bytes version; /* of the module; absent: none. Stored when the run begins */
    bool pin;             /* a run that begins now is for workers of this version alone */
    struct bytes node;    /* recorded with the steps */
    bool undoing;         /* this pass undoes */
    bool by_lease;        /* `undoing`, `node` and `version` are taken from the lease */
    bool ends;            /* finish_item.with: nothing waits, and the item says what follows. Also
                             of RESTART, whose item is a LATER */
    /* answer */
    bool suspended;    /* the lease has let go of it */
    int64_t run_at_us; /* with it: when it is due; INT64_MAX: when something comes */
    bool diverged;     /* the run has ended as dead_letter: `why` names both steps */
    bool stuck;        /* the same, because an undo has failed for good */
    bool unpublished;  /* refused because of a value that it publishes: TOO_LARGE, FULL */
    struct bytes why;
    struct bytes taken; /* the id of a child that was not made, because another call has it */
    int64_t rev;        /* of the run, after this; 0: it has ended */
};

/* ---- The other changes ----------------------------------------------------------------------- */

enum workflow_do {
    WORKFLOW_STEPS,
    WORKFLOW_SIGNAL,  /* NOT_FOUND, GONE, STATE (ended), FULL, CONFLICT (the key had another value)
                       */
    WORKFLOW_CANCEL,  /* NOT_FOUND, GONE, STATE (ended, and nothing is left to undo) */
    WORKFLOW_RETRY,   /* NOT_FOUND, GONE, STATE */
    WORKFLOW_FORK,    /* NOT_FOUND, GONE, STATE, CONFLICT */
    WORKFLOW_RESTART, /* fenced: forget the steps, and begin again with `input` */
};

struct workflow_op {
    enum workflow_do what;
    struct bytes id;             /* SIGNAL, CANCEL, RETRY, FORK: of the run */
    struct workflow_steps steps; /* STEPS; of RESTART what it says of the pass */
    /* SIGNAL */
    struct bytes name;
    struct payload value;
    struct bytes key;              /* absent: none */
    const struct call_spec *start; /* settled: accept this call first, unless it exists */
    bool own;                      /* with `start`: one of another client is CONFLICT */
    /* CANCEL */
    bool compensate;
    bool no_drop; /* FORBIDDEN to drop a compensation that has failed */
    /* RETRY, FORK */
    struct bytes from;    /* stored name of a step; absent: RETRY goes on */
    struct bytes fork_id; /* FORK: of the new run; absent: a new one */
    /* RESTART */
    struct payload input;
    /* answer */
    bool duplicate;        /* SIGNAL: the key was known; FORK: the run was there */
    bool started;          /* SIGNAL with `start`: the call is new */
    struct accepted *call; /* SIGNAL with `start`: the call */
    enum pawl_state state; /* of the run after it */
    int64_t seq;           /* CANCEL: of the run */
    /* The operation's own: chosen at its first try, so that a repeat knows its row again. */
    int64_t made_rev;
    struct bytes made_id;
};

/* ---- Reads ----------------------------------------------------------------------------------- */

/* A stored step. */
struct workflow_row {
    int64_t no;
    struct bytes name; /* as stored */
    enum step_kind kind;
    enum step_status status;
    struct payload result;
    struct bytes error, node;
    int attempts;
    bool undo, undone;
    bool final; /* a fork took it over, and never undoes it */
    int64_t until_us, started_us, completed_us;
};

/* What a pass needs to go on. */
struct workflow_journal {
    int64_t seq, rev, generation, next_no;
    struct bytes version;
    bool pinned; /* only workers of this version go on with it */
    bool undoing, cancelled, doubt;
    int64_t undoing_us;  /* when the undoing was decided; a pass that was claimed before it goes on
                          */
    int64_t deadline_us; /* its run_timeout passes then; 0: never, or it undoes */
    struct bytes error;  /* with undoing: why */
    bool has_input;      /* after a restart: instead of the call's */
    struct payload input;
    struct workflow_row *v; /* by no, from `from_no` on */
    size_t n;
    int64_t next; /* the next from_no; 0: that was all */
};
/* Read the journal of a run: up to len_max bytes of steps, at least one. `have_rev`: the steps are
 * left out (n 0) if the run has this rev. seq 0 in the answer: it has none yet. */
MUST_USE enum pawl_status workflow_journal_read(struct store *s, struct arena *a, int64_t seq,
                                                int64_t from_no, size_t len_max, int64_t have_rev,
                                                struct workflow_journal *out, struct pawl_err *err);

/* Does this lease hold this call at this moment? LOST_LEASE: it does not. *out_claimed_us: since
 * when. */
MUST_USE enum pawl_status workflow_held(struct store *s, struct arena *a, struct token token,
                                        struct bytes id, int64_t *out_seq, int64_t *out_claimed_us,
                                        struct pawl_err *err);

/* A pass of a run: since when its lease is claimed. */
struct workflow_pass {
    int64_t seq, claimed_us;
};
/* Which of these passes have to stop? stop[i] is set for those whose run, since they were claimed,
 * was cancelled, ended, or is out of its time. A pass that undoes only stops when the run ends. */
MUST_USE enum pawl_status workflow_stops(struct store *s, const struct workflow_pass *v, size_t n,
                                         bool *stop, struct pawl_err *err);

/* A run as readers see it. */
struct workflow_run {
    struct call call; /* with input and result if they were asked for */
    enum workflow_status status;
    bool begun; /* false: it only has signals */
    struct bytes current_step, version;
    struct bytes error; /* while it undoes: why; else the call's */
    enum run_compensation compensation;
    bool has_input; /* after a restart: instead of the call's */
    struct payload input;
    int64_t started_us;
    int64_t rev;
    /* for what it waits; nothing unless status is WAITING */
    struct bytes *wait_signals, *wait_children;
    size_t n_wait_signals, n_wait_children;
    int64_t wait_until_us; /* 0: without an end */
};

struct workflow_query {
    enum workflow_status status; /* ANY: all */
    bool live;                   /* with ANY: only those that have not ended */
    struct bytes name, client;   /* absent: all */
    int64_t before_seq;          /* 0: from the newest */
    int limit;                   /* 1..LIST_MAX: rows that are looked at */
};
struct workflow_page {
    struct workflow_run *v; /* newest first, without inputs and results */
    size_t n;
    int64_t next_before; /* the next before_seq, also when n is below the limit; 0: that was all */
};
/* Read one page of the runs that have begun. `q->client`: only those of this client. */
MUST_USE enum pawl_status workflow_list(struct store *s, struct arena *a,
                                        const struct workflow_query *q, struct workflow_page *out,
                                        struct pawl_err *err);

struct workflow_signal_row {
    struct bytes name;
    int64_t at_us, used_us; /* used_us 0: no step has consumed it */
};
/* All that is known of a run. */
struct workflow_detail {
    struct workflow_run run;
    struct workflow_row *steps;
    struct workflow_signal_row *signals; /* oldest first, the last SIGNALS_SHOWN_MAX */
    struct workflow_value *published;    /* by name */
    struct bytes *children;              /* ids, the first CHILDREN_SHOWN_MAX */
    size_t n_steps, n_signals, n_published, n_children;
    bool truncated; /* there is more of something */
};
/* Read a run: steps and published values of at most len_max bytes each, at least one. `contents`:
 * with input, result and published values. NOT_FOUND: there is no such call, or nothing of a run is
 * stored; GONE. `client`: NOT_FOUND unless the call is this client's; absent: anybody's. */
MUST_USE enum pawl_status workflow_get(struct store *s, struct arena *a, struct bytes id,
                                       struct bytes client, size_t len_max, bool contents,
                                       struct workflow_detail *out, struct pawl_err *err);
/* A published value. *out_ended: the run has ended, and none will come. NOT_FOUND: no such call,
 * GONE; a value that is not there is *out_found false. */
MUST_USE enum pawl_status workflow_published(struct store *s, struct arena *a, struct bytes id,
                                             struct bytes client, struct bytes name,
                                             struct payload *out, bool *out_found, bool *out_ended,
                                             struct pawl_err *err);

/* For metrics: how many runs have not ended, and how many of each queue wait for what. */
struct workflow_waiting {
    struct bytes queue;
    enum call_wait what; /* SIGNAL, CHILDREN, TIMER, RETRY */
    int64_t n;
};
struct workflow_figures {
    int64_t open; /* up to COUNT_MAX */
    struct workflow_waiting *v;
    size_t n;
};
/* Read the figures. */
MUST_USE enum pawl_status workflow_figures(struct store *s, struct arena *a,
                                           struct workflow_figures *out, struct pawl_err *err);
/* The first that applies of what a run waits for (AWAIT_...). */
enum call_wait workflow_wait_of(int64_t waits);

/* For the log and metrics: what was decided since the process began, without those of repeats. Any
 * thread. */
struct workflow_counts {
    int64_t steps, signals, compensations, divergences;
    int64_t steps_read; /* of journals, for passes and claims: what replay costs the database */
    int64_t taken;      /* children that were not made, because another call has their id */
};
/* Read the counts. */
void workflow_counts(struct workflow_counts *out);

#endif
