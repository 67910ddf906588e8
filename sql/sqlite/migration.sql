-- Which migration steps were applied, and single numbers. The table of steps exists before the first step.

-- name: migration_table
-- why:  Created by the first process; the applied steps are then a list in the database.
CREATE TABLE IF NOT EXISTS pawl_migration (
  number     INTEGER PRIMARY KEY,
  word       TEXT NOT NULL,
  checksum   BLOB NOT NULL,
  applied_at INTEGER NOT NULL,
  finished   INTEGER NOT NULL
);

-- name: migration_exists
-- in:   table text
-- out:  one int
-- why:  An empty file has no such table; a query of the catalogue is not an error.
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1;

-- name: migration_list
-- out:  number int, checksum bytea, finished int
SELECT number, checksum, finished FROM pawl_migration ORDER BY number;

-- name: migration_add
-- in:   number int, word text, checksum bytea, applied_at bigint, finished int
INSERT INTO pawl_migration (number, word, checksum, applied_at, finished) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: migration_finish
-- in:   number int
UPDATE pawl_migration SET finished = 1 WHERE number = ?1;

-- name: migration_finished
-- in:   number int
-- out:  finished int
SELECT finished FROM pawl_migration WHERE number = ?1;

-- name: meta_get
-- in:   name text
-- out:  value bigint
SELECT value FROM pawl_meta WHERE name = ?1;

-- name: meta_set
-- in:   name text, value bigint
-- why:  Once a group, with the last number used: an update for each call would cost as much as the call.
UPDATE pawl_meta SET value = ?2 WHERE name = ?1;
