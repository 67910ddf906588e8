/*
 * wiped_db.h - a database of a server as its migration left it, again and again.
 *
 * What a migration costs is paid once: a reset empties the tables, puts back the rows that the
 * migration had written, and lets every counter begin at 1 again. Which tables there are is asked,
 * so that a new step of the schema changes nothing here.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef WIPED_DB_H
#define WIPED_DB_H

struct db_session;

struct wiped_db {
    struct db_session *session; /* owned */
    char sql[1900];             /* what a reset says */
};

/* The database of the case's parameter (engine_url), which is migrated. Ends the case when it
 * cannot. */
void wiped_db_make(struct wiped_db *p, const char *param);
/* Nobody may have it open. */
void wiped_db_reset(const struct wiped_db *p);
void wiped_db_end(struct wiped_db *p);

#endif
