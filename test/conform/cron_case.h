/*
 * cron_case.h - helpers of the cases about schedules, so that a case reads like a sentence.
 *
 * The clock is the case's own. It begins at 2026-11-15T08:00:00Z, a Sunday.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CRON_CASE_H
#define CRON_CASE_H

#include "conform.h"
#include "feature/cron.h"
#include "zone_folder.h"

#define MINUTE_US (60 * SEC_US)
#define HOUR_US (3600 * SEC_US)

/* The operation, on a fixture whose handle knows the features from now on. */
struct op cron_op_of(struct conform_fixture *b, struct cron_op q);
/* Commit one operation; b->op is its answer. */
struct cron_op *cron(struct conform_fixture *b, struct cron_op q);
/* A PUT of this JSON. */
struct cron_op put_op(struct conform_fixture *b, const char *name, const char *json);
/* Store a schedule; it must be taken. */
struct cron_op *put(struct conform_fixture *b, const char *name, const char *json);
/* The same for a schedule of each minute, with these members besides (",\"jitter\":1"). */
void put_minute(struct conform_fixture *b, const char *name, const char *more);
/* Store a schedule of each minute whose stored text cannot be read. */
struct cron_op *put_unread(struct conform_fixture *b, const char *name);
/* Commit an operation that needs only a name. Returns its status. */
enum pawl_status named(struct conform_fixture *b, enum cron_do what, const char *name);
/* Decide what is due, by node "n1". */
struct cron_op *tick(struct conform_fixture *b);

/* One schedule as it is stored; ends the case when there is none. */
struct cron_row row_of(struct conform_fixture *b, const char *name);
/* The ticks of a schedule, oldest first: "08:01 submitted, 08:02 skipped/overlap, 08:09 missed*7".
 */
const char *runs(struct conform_fixture *b, const char *name);
/* The ids of all calls that are due, in the order in which they are claimed. */
const char *due(struct conform_fixture *b);

#endif
