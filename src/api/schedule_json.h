/*
 * schedule_json.h - schedules and their runs as clients see them.
 *
 * What needs the database or the files of time zones is read on another thread, inside an
 * ask_read's `work`; printing is pure.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_SCHEDULE_JSON_H
#define API_SCHEDULE_JSON_H

#include "api/ask_io.h"
#include "base/buf.h"
#include "base/limits.h"
#include "feature/cron.h"
#include "model/schedule.h"

/* A schedule with what is computed for an answer. */
struct schedule_shown {
    struct cron_row row;
    struct schedule s;
    int64_t next[SCHEDULE_NEXT_SHOWN]; /* coming times; none while it is paused */
    size_t n_next;
    const char *note;     /* what a reader may not expect; NULL: nothing */
    const char *error;    /* why it does not tick: it cannot be read here; NULL: it can */
    bool unknown;         /* with `error`: `s` is not filled */
    struct cron_run last; /* the newest run; `kind` 0: none is kept */
};
/* Make *out, one for each of these rows, which are sorted by name: read the stored texts and the
 * newest runs, compute the coming times. A text that cannot be read, or a zone, is told in its
 * `error`: one such schedule must not hide the others of a list. */
MUST_USE enum pawl_status schedules_show(struct ask_read *rd, struct store *st,
                                         const struct cron_rows *rows, int64_t now_us,
                                         struct schedule_shown **out);
/* Append it as an object. `contents`: with input and tags of its call, and the error of its newest
 * run. */
void schedule_json_add(struct buf *b, const struct schedule_shown *s, int64_t now_us,
                       bool contents);
/* Append a run as an object. */
void run_json_add(struct buf *b, const struct cron_run *r, bool contents);

#endif
