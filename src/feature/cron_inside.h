/*
 * cron_inside.h - what the files of the feature `cron` share: rows as a transaction sees them, and
 * how they are read and written. Room-private; store thread, inside a transaction.
 *
 * A row is locked before it is decided upon, and kept in memory until the transaction ends, so that
 * operations of one group see what earlier ones decided.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FEATURE_CRON_INSIDE_H
#define FEATURE_CRON_INSIDE_H

#include "feature/cron.h"
#include "model/schedule.h"
#include "store/feature.h"

/* The step of the schema that made the tables. Its second half says that no older node is left. */
#define CRON_STEP 10

#define ROW_BUCKETS 256

enum cron_pause { PAUSE_NO, PAUSE_YES, PAUSE_OVER }; /* OVER: resumed, and not ticked since */

/* A row of `schedule`, and whether there is one. */
struct row {
    struct row *same; /* of the bucket */
    struct bytes name, spec;
    bool stored;  /* there is such a row, as the transaction sees it */
    bool written; /* a change of it may be buffered, so a further one has to wait for that */
    int64_t version;
    enum cron_pause pause;
    struct bytes zone_data;
    struct schedule_tick next; /* at_us 0: none */
    struct schedule_tick last; /* at_us 0: none */
    int64_t due_us;            /* 0: never */
    struct bytes last_id;
    int64_t last_seq;
    int64_t waiting_us;
    int64_t created_us, updated_us;
};

/* What a transaction remembers. */
struct memory {
    struct row *rows[ROW_BUCKETS];
    int64_t *ended; /* seqs of watched calls that ended in this transaction */
    size_t n_ended;
};

/* The schedule of a row, ready to be computed with. */
struct plan {
    struct schedule s;
    const struct zone *zone;
};

/* NULL without memory. */
struct memory *cron_memory(struct ledger *d);

/* Lock and read the rows of these names, unless the transaction has them. */
MUST_USE enum pawl_status rows_lock(struct ledger *d, const struct bytes *names, size_t n,
                                    struct pawl_err *err);
/* The row of a name, which was locked; `stored` false: there is none. NULL: it was not locked. */
struct row *row_find(struct ledger *d, struct bytes name);
/* Buffer a row as it is: a new one, one of which everything may have changed, one that a tick
 * changed; and the removal of one. */
MUST_USE enum pawl_status row_add(struct ledger *d, struct row *r, struct pawl_err *err);
MUST_USE enum pawl_status row_put(struct ledger *d, struct row *r, struct pawl_err *err);
MUST_USE enum pawl_status row_move(struct ledger *d, struct row *r, struct pawl_err *err);
MUST_USE enum pawl_status row_remove(struct ledger *d, struct row *r, struct pawl_err *err);
/* Set due_us according to the rest of the row. */
void row_set_due(struct row *r, int64_t now_us);
/* A row of an answer with the columns of cron_lock. */
struct row row_read(const struct led_rows *rows, int i);

/* A row of `tick`. */
struct tick_row {
    int64_t at_us, no;
    enum cron_kind kind;
    enum cron_reason reason;
    struct bytes zone, call_id, node;
    int64_t count; /* 0: 1 */
};
/* Add a row of `tick` for the schedule of this name, to be written with the group. */
MUST_USE enum pawl_status tick_add(struct ledger *d, struct bytes name, const struct tick_row *t,
                                   struct pawl_err *err);

/* Prepare a schedule that was given, or that a row has, for computing. INVALID: there is no such
 * zone; BROKEN: what is stored, or the data of the zone, is damaged. */
MUST_USE enum pawl_status plan_given(const struct schedule *s, struct plan *out,
                                     struct pawl_err *err);
MUST_USE enum pawl_status plan_stored(struct arena *a, const struct row *r, struct plan *out,
                                      struct pawl_err *err);

/* A tick at this instant, with what a clock of the zone shows then. */
struct schedule_tick tick_in(const struct zone *z, int64_t at_us);

/* What a PUT, PAUSE or RESUME comes to, whether it is done or only asked about. */
struct decided {
    enum cron_change change;
    bool refused; /* `why` says so */
    struct pawl_err why;
    bool own;    /* an earlier try of this operation stored the row as it is */
    bool pauses; /* an UPDATE of `paused` alone */
    bool paused; /* as it is to be */
    /* of a PUT that is another schedule than the stored one: */
    struct bytes spec;
    struct plan plan;
    struct schedule_tick next;
};
/* Decide it for this row, which is `stored` or not; nothing is written. */
MUST_USE enum pawl_status cron_decide(struct ledger *d, const struct cron_op *q,
                                      const struct row *r, struct decided *out,
                                      struct pawl_err *err);
/* Must the schedule exist, and does it not? Does the operation's condition not hold? *why says so.
 */
bool cron_blocked(const struct cron_op *q, const struct row *r, bool must_exist,
                  struct pawl_err *why);

/* The call of a tick, settled; `at_us` 0: a manual run. */
MUST_USE enum pawl_status plan_call(struct ledger *d, const struct plan *p, struct bytes name,
                                    struct bytes id, int64_t at_us, struct call_spec *out,
                                    struct pawl_err *err);
/* Is what an accept of a tick or run of this schedule found the call of another one? Names may have
 * `!` and `@`, so that a run of "a" with the key "b!k" has the id of one of "a!b" with the key "k".
 */
bool call_is_others(const struct accepted *a, struct bytes name);
/* A number that is the same for the same id. */
uint64_t id_hash(struct bytes id);
/* `cron:NAME@TIME`, and `cron:NAME@NOW!manual` whose NOW always has microseconds; shortened where
 * they are too long; absent without memory. */
struct bytes tick_id(struct arena *a, struct bytes name, int64_t at_us);
struct bytes manual_id(struct arena *a, struct bytes name, int64_t now_us);

/* Count, and keep for the log, what was decided without an operation that answers (cron_unasked.c):
 * a tick that was submitted; one that was skipped; what a nested operation did; a tick that could
 * not be submitted. */
void cron_unasked_waited(bool is_new);
void cron_unasked_skipped(enum cron_reason reason);
void cron_unasked_add(const struct cron_op *q);
void cron_unasked_refuse(const struct cron_refused *r);

/* The operations (cron.c, cron_tick.c). */
MUST_USE enum pawl_status cron_tick(struct ledger *d, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status cron_zones(struct ledger *d, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status cron_moved(struct ledger *d, const struct moved *v, size_t n,
                                     struct pawl_err *err);

#endif
