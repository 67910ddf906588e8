-- Which steps of the schema were applied, and single numbers. The table of steps is older than the first step.

-- name: migration_table
-- why:  Made by whoever comes first; the steps themselves are then a list in the database.
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
-- why:  An empty file has no table to ask; asking the catalogue is no error.
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

-- name: meta_get
-- in:   name text
-- out:  value bigint
SELECT value FROM pawl_meta WHERE name = ?1;

-- name: meta_set
-- in:   name text, value bigint
-- why:  Once a group, with the last number given out: a counter row per call would cost as much as the call.
UPDATE pawl_meta SET value = ?2 WHERE name = ?1;
