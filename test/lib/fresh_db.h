/*
 * fresh_db.h - an empty, migrated SQLite database again and again, fast.
 *
 * It is migrated once and copied; on tmpfs where there is one, because fsync is not what is tested
 * then.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FRESH_DB_H
#define FRESH_DB_H

struct fresh_db {
    char dir[64], empty[96], file[96];
    char url[128]; /* of the database that fresh_db_reset() makes */
};

/* Ends the case when it cannot. A case that fails leaves its folder behind for a look. */
void fresh_db_make(struct fresh_db *p);
/* Nobody may have it open. */
void fresh_db_reset(const struct fresh_db *p);
void fresh_db_end(const struct fresh_db *p);

#endif
