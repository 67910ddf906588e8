/*
 * cron.h - schedules: rows that submit calls by the clock, and what is asked of them.
 *
 * A schedule is a value (model/schedule.h) stored under its name; a tick is one time of it, decided
 * once: submitted as the call `cron:NAME@TIME`, skipped, or missed. A change is an OP_FEATURE of
 * feature_cron with a struct cron_op as its ctx; a read is one of the functions below on a
 * connection for reading. Times are the database's; a node's clock decides nothing.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FEATURE_CRON_H
#define FEATURE_CRON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/macros.h"
#include "model/call.h"

struct feature;
struct schedule;
struct store;

/* For OP_FEATURE: .feature = { .of = &feature_cron, .ctx = &cron_op }. mem: answers INVALID. */
extern const struct feature feature_cron;

/* Schedules that one TICK decides, and calls that it submits: one commit of about 100 ms. */
#define CRON_STEP_MAX 1000

/* ---- Changes --------------------------------------------------------------------------------- */

enum cron_do {
    CRON_PUT,    /* store a schedule. Equal to what is stored: nothing is written. STALE: the
                    condition does not hold. INVALID: it has no time in the future. STATE: nodes of
                    an older version live, `migrate finish` has not run */
    CRON_DELETE, /* remove it. Submitted calls stay. NOT_FOUND, STALE */
    CRON_PAUSE,  /* no ticks until it is resumed. Paused already: nothing is written. NOT_FOUND,
                    STALE */
    CRON_RESUME, /* ticks again; those missed meanwhile are caught up as after a downtime.
                    NOT_FOUND, STALE */
    CRON_RUN,    /* submit its call now, whatever `overlap` says, also while it is paused.
                    NOT_FOUND. CONFLICT, GONE, FULL: as for an OP_ACCEPT of that call */
    CRON_TICK,   /* decide what is due, of up to `max` schedules. Others that decide the same rows
                    are skipped: each tick is decided once */
    CRON_ZONES,  /* compute the next time of up to `max` schedules again that were computed with
                    older time zone data than this process has */
    CRON_FORGET, /* remove up to `max` ticks that were decided before `before_us` */
};

/* Why a tick was skipped. */
enum cron_reason {
    CRON_NO_REASON, /* it was not */
    CRON_OVERLAP,   /* the call of the last one had not ended */
    CRON_REPLACED,  /* it waited for that end, and a newer one came */
    CRON_CHANGED,   /* it waited for that end, and the schedule was changed or removed */
    CRON_CONFLICT,  /* another call had its id */
    CRON_GONE,      /* a call with its id had ended and was no longer kept */
    CRON_FULL,      /* its key, or the number of queues and types, was full */
    CRON_BAD_CALL,  /* its call broke the contract of calls */
    CRON_REASONS
};
/* Its name in the API and in the database: "overlap". NULL for CRON_NO_REASON. */
const char *cron_reason_name(enum cron_reason reason);

/* A tick that a TICK could not submit, for the log. */
struct cron_refused {
    struct bytes schedule;
    struct bytes id;   /* of its call; absent: the schedule could not be read, is left as it is, and
                          will be looked at again in a minute */
    struct bytes text; /* what was wrong */
    enum pawl_status status;
};
#define CRON_REFUSED_MAX 20
/* A schedule that cannot be read is looked at again after this: another node may be able to. */
#define CRON_UNREAD_LOOK_US (60 * SEC_US)

struct cron_op {
    enum cron_do what;
    struct bytes name;               /* of the schedule; not TICK, ZONES, FORGET */
    const struct schedule *schedule; /* PUT; its name is not used */
    /* PUT, DELETE, PAUSE, RESUME; STALE when the condition does not hold. */
    int64_t if_version;         /* 0: any */
    const int64_t *or_versions; /* versions that are allowed besides if_version */
    size_t n_or_versions;
    bool if_any;          /* it must exist, in any version */
    bool if_none;         /* PUT: it must not exist */
    struct bytes run_key; /* RUN: the id is cron:NAME!KEY, a repeat is the same run; absent:
                             cron:NAME@NOW!manual */
    struct bytes client;  /* RUN: stored with the call; absent: none */
    struct bytes node;    /* RUN, TICK: recorded with the tick */
    int max;              /* TICK, ZONES, FORGET: 1..CRON_STEP_MAX */
    int64_t before_us;    /* FORGET; 0: now - keep_us */
    int64_t keep_us;      /* FORGET */
    struct bytes after;   /* ZONES: only names behind it; absent: from the first */
    /* answer */
    bool created;    /* PUT: there was none */
    bool changed;    /* PUT, PAUSE, RESUME: something was written */
    int64_t version; /* PUT, PAUSE, RESUME: as it is now; STALE: the present one, 0: there is none
                      */
    struct bytes id; /* RUN: of the call */
    bool duplicate;  /* RUN: the call was there */
    int submitted;   /* TICK: ticks. Counted without those of a repeat */
    int skipped;     /* TICK; PUT, DELETE: ticks of the former schedule */
    int skipped_for[CRON_REASONS]; /* of the skipped */
    int64_t missed;                /* TICK: ticks that were due and are not caught up; PUT, DELETE:
                                      ticks of the former schedule */
    int64_t late_us;               /* TICK: how late the oldest of them was decided; 0: none */
    struct bytes *ids;             /* TICK: n_ids calls that were submitted */
    size_t n_ids;
    struct cron_refused *refused; /* TICK: the first CRON_REFUSED_MAX */
    size_t n_refused;
    int unread;              /* TICK: schedules that are due and cannot be read: they do not tick */
    int64_t unread_since_us; /* TICK: the oldest tick that one of them waits for */
    struct bytes *cancels; /* TICK: n_cancels calls that a newer tick replaces: an OP_CANCEL of each
                              is asked for, which the poster of the TICK posts. They are answered
                              again every few seconds until they have ended */
    size_t n_cancels;
    bool more;         /* TICK, ZONES, FORGET: something is left that this could have done */
    int64_t next_us;   /* TICK without `more`: when the next schedule is due; 0: none ever */
    struct bytes next; /* ZONES with `more`: the next `after` */
    int64_t removed;   /* FORGET; ZONES: rows that were computed again */
    /* The operation's own: what it chose at its first try. A group that is repeated, because its
     * commit has no answer or met a deadlock, chooses the same, and so knows its own row again. */
    int64_t made_us;
    bool removes;
};

/* ---- Reads ----------------------------------------------------------------------------------- */

/* A schedule as it is stored. */
struct cron_row {
    struct bytes name, spec; /* spec: canonical JSON of schedule_write() */
    int64_t version;
    int64_t next_us; /* the next tick that is not decided; 0: none. While it is paused, or waits
                        to be decided, in the past */
    bool paused;
    struct bytes zone_data; /* version of the time zone data that next_us was computed with */
    int64_t last_us;        /* the last tick that was decided, manual runs aside; 0: none */
    struct bytes last_id;   /* the last call that was submitted, manual runs aside; absent: none */
    int64_t waiting_us;     /* the tick that waits until the last call has ended; 0: none */
    int64_t created_us, updated_us;
};

/* Read one schedule into `a`. NOT_FOUND. */
MUST_USE enum pawl_status cron_get(struct store *s, struct arena *a, struct bytes name,
                                   struct cron_row *out, struct pawl_err *err);

/* What a change would do, were it made now. */
enum cron_change { CRON_NO_CHANGE, CRON_CREATE, CRON_UPDATE };
/* Answer for a PUT, PAUSE or RESUME what its operation would, and write nothing: refusals are the
 * same, also that of a condition that does not hold. */
MUST_USE enum pawl_status cron_would(struct store *s, const struct cron_op *q,
                                     enum cron_change *out, struct pawl_err *err);

/* Schedules by name. */
struct cron_query {
    struct bytes after; /* absent: from the first */
    int limit;          /* 1..LIST_MAX */
};
struct cron_rows {
    struct cron_row *v;
    size_t n;
    struct bytes next; /* the next `after`; absent: that was all */
};
/* Read one page of schedules into `a`. q->limit is 1 to LIST_MAX. A page whose specs would be
 * longer than SCHEDULE_PAGE_LEN_MAX has fewer, at least one. */
MUST_USE enum pawl_status cron_list(struct store *s, struct arena *a, const struct cron_query *q,
                                    struct cron_rows *out, struct pawl_err *err);

/* What came of a tick. */
enum cron_kind {
    CRON_SUBMITTED = 1,
    CRON_MANUAL,  /* a call that was asked for by RUN */
    CRON_SKIPPED, /* `reason` says why: cron_reason_name() */
    CRON_MISSED,  /* `count` ticks that were not caught up, of which this is the newest */
};
struct cron_run {
    struct bytes name; /* of the schedule */
    int64_t at_us;     /* the time of the tick; MANUAL: when it was asked for */
    int64_t no;        /* tells ticks of one time apart */
    enum cron_kind kind;
    struct bytes reason; /* SKIPPED; else absent */
    struct bytes zone;
    int64_t count;      /* MISSED; else 1 */
    int64_t decided_us; /* when it was submitted, skipped or found missed */
    /* The call, with SUBMITTED and MANUAL; `state` 0: it is no longer known. */
    struct bytes id;
    enum pawl_state state;
    struct bytes node, error; /* node: that ran the call, else that decided the tick */
    int64_t started_us, finished_us;
};
struct cron_run_query {
    struct bytes name;
    int64_t before_us, before_no; /* only ticks before (at_us, no); 0: from the newest */
    int limit;                    /* 1..LIST_MAX */
};
struct cron_run_rows {
    struct cron_run *v; /* newest first */
    size_t n;
    bool more; /* there are older ones: before the last of v */
};
/* Read ticks of one schedule, also of one that was deleted, and what their calls came to. */
MUST_USE enum pawl_status cron_runs(struct store *s, struct arena *a,
                                    const struct cron_run_query *q, struct cron_run_rows *out,
                                    struct pawl_err *err);

/* Read the newest tick of each of these schedules, which are sorted by name, and what their calls
 * came to: *out has one for each, `kind` 0: none is kept. One statement for the ticks and a read of
 * the calls, with any number of schedules. of->n is at most LIST_MAX. */
MUST_USE enum pawl_status cron_last(struct store *s, struct arena *a, const struct cron_rows *of,
                                    struct cron_run **out, struct pawl_err *err);

/* For timers and metrics, cheap with any number of schedules. */
struct cron_due {
    int64_t next_us; /* when the next schedule is due, perhaps in the past; 0: none ever */
    int64_t now_us;  /* the database's clock */
};
/* Read when the next schedule is due, with one statement on the index of due times. */
MUST_USE enum pawl_status cron_due(struct store *s, struct cron_due *out, struct pawl_err *err);

/* Schedules whose last tick is later than a time. */
struct cron_ahead {
    int64_t n;
    struct bytes first; /* by name; absent: n is 0 */
    int64_t last_us;    /* the latest of these ticks */
};
/* Read them, the name into `a`. Looks at every schedule. */
MUST_USE enum pawl_status cron_ahead(struct store *s, struct arena *a, int64_t after_us,
                                     struct cron_ahead *out, struct pawl_err *err);

/* Ticks that this process decided without an operation that could answer them: because the call
 * that they waited for ended, or because their schedule was changed in SQL. */
struct cron_unasked {
    int64_t waited, missed; /* waited: submitted after the call that they waited for */
    int64_t accepted;       /* of the waited: calls that were new */
    int64_t skipped[CRON_REASONS];
};
/* Read how many. Counted when they are decided: a commit that is repeated counts twice. Any thread.
 */
void cron_unasked(struct cron_unasked *out);

/* One of them that could not be submitted, for the log; strings are cut. */
struct cron_unasked_refused {
    char schedule[256], id[256], text[200];
};
/* Take over the oldest that nobody took. False: there is none. Only the first CRON_REFUSED_MAX are
 * kept. Any thread; cheap when there is none. */
bool cron_unasked_take(struct cron_unasked_refused *out);

#endif
