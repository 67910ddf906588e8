/*
 * wiped_db.h - a server's database in the state after its migration, restored quickly many times.
 *
 * The migration runs once. A reset empties the tables, restores the rows that the migration had
 * written, and sets every counter back to 1. The list of tables is read from the server, so a new
 * migration step needs no change here.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef WIPED_DB_H
#define WIPED_DB_H

struct db_session;

struct wiped_db {
    struct db_session *session; /* owned */
    char sql[1900];             /* the statements of a reset */
};

/* Prepare resets of the case's database (engine_url), which must be migrated. Ends the case when it
 * cannot. */
void wiped_db_make(struct wiped_db *p, const char *param);
/* Restore the state after the migration. No process may have the database open. */
void wiped_db_reset(const struct wiped_db *p);
/* Close the session. */
void wiped_db_end(struct wiped_db *p);

#endif
