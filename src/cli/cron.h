/*
 * cron.h - what the files of `pawl cron` share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_CRON_H
#define CLI_CRON_H

#include "cli/remote.h"

/* What Pawl always answers about a schedule. */
#define SCHEDULE_HAS "name version"

/* The path "/v1/schedules/NAME" + rest, with NAME checked and escaped. NULL, with the error in
 * r->err: no name has this form, or there is no memory. */
char *cron_path(struct remote *r, const char *name, const char *rest);

/* ---- cron_show.c ----------------------------------------------------------------------------- */

/* `pawl cron list`. Like the following, they return the exit code. */
int cron_list_run(struct remote *r);
/* `pawl cron get NAME`. */
int cron_get_run(struct remote *r, const char *name);
/* `pawl cron runs NAME`. */
int cron_runs_run(struct remote *r, const char *name);
/* `pawl cron next EXPRESSION|NAME`. */
int cron_next_run(struct remote *r, const char *what);

/* ---- cron_put.c ------------------------------------------------------------------------------ */

/* `pawl cron put NAME [JSON]`; json NULL: made of the options. */
int cron_put_run(struct remote *r, const char *name, const char *json);

/* ---- cron_apply.c ---------------------------------------------------------------------------- */

/* `pawl cron apply FILE`. */
int cron_apply_run(struct remote *r, const char *file);

#endif
