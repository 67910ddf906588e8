/*
 * workflow_inside.h - what the files of the feature `workflow` share: rows as a transaction sees
 * them, and how they are read and written. Room-private; store thread, inside a transaction.
 *
 * A run is locked before it is decided upon, and kept in memory until the transaction ends, so that
 * operations of one group see what earlier ones decided. Steps are read under that lock.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FEATURE_WORKFLOW_INSIDE_H
#define FEATURE_WORKFLOW_INSIDE_H

#include "feature/workflow.h"
#include "store/feature.h"

/* The step of the schema that made the tables. Its second half says that no older node is left. */
#define WORKFLOW_STEP 12

#define RUN_BUCKETS 256
/* Columns of workflow_lock. */
#define RUN_COLUMNS 24
/* Steps that one statement reads. */
#define STEPS_PAGE 1000

enum run_flag {
    RUN_CUT = 1,       /* its last pass ended without a word: a step may have happened */
    RUN_HAS_INPUT = 2, /* it has restarted: its input replaces the call's */
    RUN_BEGUN = 4,     /* it is a flow; without: it only has signals */
    RUN_ENDED = 8,
    RUN_DIVERGED = 16,  /* it has ended because its code contradicts its journal */
    RUN_PINNED = 32,    /* it is for workers of its version alone, as its lane says */
    RUN_RESTARTS = 256, /* the bits from here on: how often it has restarted */
};
enum run_reason { REASON_NONE, REASON_FAILED, REASON_CANCELLED, REASON_TIMEOUT };
/* For lists: what the row alone says of the run. */
enum run_shown {
    SHOWN_NOT, /* it has not begun */
    SHOWN_OPEN,
    SHOWN_UNDOES,
    SHOWN_COMPLETED,
    SHOWN_FAILED,
    SHOWN_CANCELLED,
    SHOWN_UNDONE,
};
/* FINAL: a fork took it over, and never undoes it. */
enum step_undo { UNDO_CAN = 1, UNDO_WAS = 2, UNDO_FINAL = 4, UNDO_BITS = 7 };

/* A row of `step`. */
struct step_row {
    struct step_row *next; /* of the run, in no order */
    int64_t no, nth;
    struct bytes name;
    enum step_kind kind;
    enum step_status status;
    struct payload result;
    struct bytes error, node;
    int64_t attempts, undos, until_us, awaits, started_us, completed_us;
    bool stored;  /* there is such a row, as the transaction sees it; false: it was looked for */
    bool written; /* a change of it may be buffered */
};

/* How often stored steps of a run used a name. */
struct step_use {
    struct step_use *next; /* of the run, in no order */
    struct bytes name;     /* borrowed from an operation of the transaction */
    int64_t nth;           /* the last; 0: it was not used */
};

/* A row of `workflow`, and whether there is one. */
struct run {
    struct run *same; /* of the bucket */
    int64_t seq;
    bool stored, written;
    int64_t rev, generation, next_no, steps, bytes;
    struct bytes version;
    int64_t waits;             /* AWAIT_... */
    struct bytes wait_signals; /* names, a newline between them */
    int64_t deadline_us;
    int64_t next_signal, unread;
    int64_t flags; /* RUN_... */
    int64_t undoing_us;
    enum run_reason reason;
    struct bytes error;
    enum run_compensation compensation;
    int64_t undone; /* undos that have ended */
    int64_t last_done_us, created_us;
    struct bytes name; /* its type */
    enum run_shown shown;
    struct bytes pass; /* token of the last lease that let go of it, as text */
    int64_t wait_us;   /* when what it waits for ends; 0: never */
    /* In this transaction: */
    struct step_row *steps_read;
    struct step_use *uses;   /* read */
    bool let_go;             /* its pass suspended it, so its leaving is no cut */
    bool sure;               /* its pass undoes or has not begun: no step is in doubt */
    bool doubtful;           /* its pass ended without saying what became of its step */
    enum run_reason undoes;  /* flow_end() decided that it has to undo; NONE: it did not */
    struct bytes undoes_for; /* with it: the error */
    bool ends;               /* flow_end() decided that its undoing is over */
    enum run_compensation ends_undone; /* with it */
    bool wants_undo;                   /* its retry is to undo */
    int64_t from_no;                   /* its retry forgets the steps from this one on; 0: none */
    struct bytes diverges;             /* the end of its pass contradicts the journal: why */
};

/* What a transaction remembers. */
struct runs {
    struct run *v[RUN_BUCKETS];
};

/* ---- Rows (workflow_rows.c) ------------------------------------------------------------------ */

/* Lock and read the rows of these runs, unless the transaction has them. */
MUST_USE enum pawl_status runs_lock(struct ledger *d, const int64_t *seqs, size_t n,
                                    struct pawl_err *err);
/* The row of a run, which was locked; `stored` false: there is none. NULL: it was not locked. */
struct run *run_find(struct ledger *d, int64_t seq);
/* The row of a run, locked now if it was not. */
MUST_USE enum pawl_status run_get(struct ledger *d, int64_t seq, struct run **out,
                                  struct pawl_err *err);
/* A row of an answer with the columns of workflow_lock. */
struct run run_read(const struct led_rows *rows, int i);
/* A run that has no row: as it is when it begins. `name`: its type; absent: that of its call, which
 * this transaction has not made. */
MUST_USE enum pawl_status run_new(struct ledger *d, struct run *r, struct bytes name,
                                  struct pawl_err *err);
/* What is shown of a run whose call has this state. */
enum run_shown run_shown(const struct run *r, enum pawl_state state);
/* Write the row as it is: a new one, or one that was changed. */
MUST_USE enum pawl_status run_put(struct ledger *d, struct run *r, struct pawl_err *err);

struct step_ref {
    struct run *run;
    int64_t no;
};
/* Read these steps of runs that are locked, unless the transaction has them. */
MUST_USE enum pawl_status steps_load(struct ledger *d, const struct step_ref *v, size_t n,
                                     struct pawl_err *err);
/* The step, which was loaded; `stored` false: there is none. NULL: it was not loaded. */
struct step_row *step_at(struct run *r, int64_t no);
/* The step with this stored name; *out NULL: there is none. */
MUST_USE enum pawl_status step_by_name(struct ledger *d, struct run *r, struct bytes name,
                                       struct step_row **out, struct pawl_err *err);
/* A row of an answer with the columns of step_find, without its seq; the column `first` is its seq.
 */
struct step_row step_read(const struct led_rows *rows, int i, int first);
/* Write the row as it is. */
MUST_USE enum pawl_status step_put(struct ledger *d, struct run *r, struct step_row *s,
                                   struct pawl_err *err);
struct name_ref {
    struct run *run;
    struct bytes name;
};
/* Read how often these names were used, unless the transaction knows: for step_uses(). */
MUST_USE enum pawl_status uses_load(struct ledger *d, const struct name_ref *v, size_t n,
                                    struct pawl_err *err);
/* How often the name was used by steps of the run so far, with those that this transaction plans.
 */
MUST_USE enum pawl_status step_uses(struct ledger *d, struct run *r, struct bytes name,
                                    int64_t *out_nth, struct pawl_err *err);

/* How long the results of all its stored steps are. */
MUST_USE enum pawl_status steps_len(struct ledger *d, int64_t seq, int64_t *out,
                                    struct pawl_err *err);

/* Count for workflow_counts(): a step that ended, a signal, a run whose code contradicts its
 * journal; one that begins to undo. */
void workflow_count_step(void);
void workflow_count_signal(void);
void workflow_count_divergence(void);
void workflow_count_compensation(void);
/* Steps that were read for a pass. */
void workflow_count_read(int64_t steps);
/* A child whose id another call has. */
void workflow_count_taken(void);

/* Before a row is buffered: if a change of it may be (`again`), write what is buffered first,
 * because one statement changes a row once. */
MUST_USE enum pawl_status row_once(struct ledger *d, bool again, struct pawl_err *err);

/* What a signal says of the step that consumed it: its number, above the number of restarts before
 * it, since what was consumed before a restart is final. */
static inline int64_t signal_used_by(const struct run *r, int64_t no)
{
    return r->flags / RUN_RESTARTS << 32 | no;
}

#define I(x) ((union feature_value){ .i = (x) })
#define B(x) ((union feature_value){ .b = (x) })

/* ---- Operations ------------------------------------------------------------------------------ */

/* The operations. */
MUST_USE enum pawl_status workflow_steps(struct ledger *d, struct op *op, struct pawl_err *err);
/* The run begins with this operation, which is STEPS or RESTART, if it has not. *out false: that
 * was refused (feature_flow_begin()). */
MUST_USE enum pawl_status workflow_begin(struct ledger *d, struct op *op, struct run *r, bool *out,
                                         struct pawl_err *err);
/* The token of the operation's lease, as text in scratch. */
struct bytes workflow_pass(struct ledger *d, const struct op *op);
/* An operation of a lease that does not hold the run any more: was it stored before? */
MUST_USE enum pawl_status workflow_former(struct ledger *d, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status workflow_signal(struct ledger *d, struct op *op, struct pawl_err *err);
/* A row of the inbox: a signal from SQL. */
MUST_USE enum pawl_status workflow_inbox(struct ledger *d, const struct inbox_row *r,
                                         struct pawl_err *why, struct pawl_err *err);
MUST_USE enum pawl_status workflow_cancel(struct ledger *d, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status workflow_retry(struct ledger *d, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status workflow_restart(struct ledger *d, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status workflow_fork(struct ledger *d, struct op *op, struct pawl_err *err);
/* A step of gc: remove up to `max` consumed signals whose keys need not be known any more. */
MUST_USE enum pawl_status workflow_gc(struct ledger *d, int max, bool *more, struct pawl_err *err);
/* When the key of a signal that is consumed now need not be known any more; 0: while it is one of
 * the run's last, that is not known. */
int64_t signal_old_at(const struct ledger *d, const struct run *r, int64_t no);
/* Has the run ended, as its locked row says? Before it begins, its call says it. */
bool run_ended(const struct run *r, const struct feature_call *c);
/* The first step that is no longer done, because it was undone, or failed last; *out 0: none. */
MUST_USE enum pawl_status first_undone(struct ledger *d, const struct run *r, int64_t *out,
                                       struct pawl_err *err);
/* The step that the operation's `from` names. NULL: it is refused. */
MUST_USE enum pawl_status workflow_from(struct ledger *d, struct op *op, struct run *r,
                                        struct step_row **out, struct pawl_err *err);

/* The call with this id and its row, locked. NULL: the operation is refused. What *out says was
 * read before the lock. */
MUST_USE enum pawl_status workflow_named(struct ledger *d, struct op *op, struct bytes id,
                                         struct feature_call *out, struct run **out_run,
                                         struct pawl_err *err);
/* Refuse the operation because of the call with this id. */
void workflow_say_refused(struct op *op, struct bytes id, enum pawl_status status);
/* STATE: the run has ended, as `end` says behind its state. */
void workflow_say_ended(struct op *op, const struct feature_call *c, const char *end);

/* The wait of this step, which has not ended (workflow_wait.c): settled, then `status` and `result`
 * of the row say by what; or begun, then its row says until when and for how many children. */
MUST_USE enum pawl_status wait_step(struct ledger *d, struct run *r, struct step_row *s,
                                    const struct workflow_wait *w, bool *out_settled,
                                    struct pawl_err *err);
/* The first name of a wait that is neither a child of the run nor the id of one of the n_made calls
 * that the operation makes (without an id: no call); absent: all are. */
MUST_USE enum pawl_status wait_unknown(struct ledger *d, const struct run *r,
                                       const struct workflow_wait *w, const struct call_spec *made,
                                       size_t n_made, struct bytes *out, struct pawl_err *err);
/* How long the value is that would settle a wait for signals now; 0: there is none. */
MUST_USE enum pawl_status wait_len(struct ledger *d, const struct run *r,
                                   const struct workflow_wait *w, int64_t *out,
                                   struct pawl_err *err);
/* Children have ended: their parents count them, and go on if they wait for them. */
MUST_USE enum pawl_status children_ended(struct ledger *d, const struct moved *v, size_t n,
                                         struct pawl_err *err);
/* Make these runs due now, if they wait. */
MUST_USE enum pawl_status runs_wake(struct ledger *d, const int64_t *seqs, size_t n,
                                    struct pawl_err *err);
/* May the run show the values that its pass publishes (workflow_signal.c)? known[i]: it shows one
 * of that name already. If not, the operation is refused. */
MUST_USE enum pawl_status values_check(struct ledger *d, struct op *op, struct run *r, bool *known,
                                       struct pawl_err *err);
/* Show them, in place of earlier ones. */
MUST_USE enum pawl_status values_write(struct ledger *d, const struct run *r,
                                       const struct workflow_steps *q, const bool *known,
                                       struct pawl_err *err);

/* ---- Reads (workflow_read.c) ----------------------------------------------------------------- */

struct journal_look {
    struct arena *a;
    int64_t seq, from_no, have_rev;
    size_t len_max;
    struct workflow_journal *out; /* zeroed */
    bool more;                    /* it is more than one statement may read */
};
/* For store_look(): read a journal; `ctx` is a struct journal_look. */
MUST_USE enum pawl_status workflow_journal_look(struct ledger *d, void *ctx, struct pawl_err *err);

/* From now on the run undoes what it did (workflow_end.c). */
MUST_USE enum pawl_status run_undo(struct ledger *d, struct run *r, enum run_reason reason,
                                   struct bytes error, struct pawl_err *err);

/* Is it out of its time, and does not undo yet? */
bool run_late(const struct ledger *d, const struct run *r);
#define RUN_LATE_TEXT "its run_timeout has passed"

/* The functions of struct feature (workflow_end.c; flow_retry() is in workflow_change.c). */
MUST_USE enum pawl_status flows_ending(struct ledger *d, const int64_t *seqs, size_t n,
                                       struct pawl_err *err);
MUST_USE enum pawl_status flow_end(struct ledger *d, struct flow_end *q, struct pawl_err *err);
MUST_USE enum pawl_status flow_cancel(struct ledger *d, int64_t seq, struct pawl_err *err);
MUST_USE enum pawl_status flow_retry(struct ledger *d, int64_t seq, struct op *op,
                                     struct pawl_err *err);
MUST_USE enum pawl_status flows_stop(struct ledger *d, const int64_t *seqs, size_t n,
                                     int64_t claimed_us, bool *stop, struct pawl_err *err);
MUST_USE enum pawl_status flows_shown(struct ledger *d, const int64_t *seqs, size_t n,
                                      enum call_wait *out, struct pawl_err *err);
MUST_USE enum pawl_status workflow_moved(struct ledger *d, const struct moved *v, size_t n,
                                         struct pawl_err *err);
MUST_USE enum pawl_status workflow_keep(struct ledger *d, const int64_t *seqs, size_t n, bool *keep,
                                        struct pawl_err *err);
MUST_USE enum pawl_status workflow_forget(struct ledger *d, const int64_t *seqs, size_t n,
                                          struct pawl_err *err);

#endif
