/*
 * fresh_db.h - an empty, migrated SQLite database, restored quickly many times.
 *
 * It is migrated once and copied; on tmpfs where there is one, because these tests do not test
 * fsync.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FRESH_DB_H
#define FRESH_DB_H

struct fresh_db {
    char dir[64], empty[96], file[96];
    char url[128]; /* of the database that fresh_db_reset() makes */
};

/* Make the database. Ends the case when it cannot. A case that fails keeps its folder. */
void fresh_db_make(struct fresh_db *p);
/* Restore the empty database. No process may have it open. */
void fresh_db_reset(const struct fresh_db *p);
/* Remove the files. */
void fresh_db_end(const struct fresh_db *p);

#endif
