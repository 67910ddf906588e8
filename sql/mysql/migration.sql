-- Which migration steps were applied. The table exists before the first step.

-- name: migration_table
-- why:  Created by the first process; the applied steps are then a list in the database.
CREATE TABLE IF NOT EXISTS pawl_migration (
  number     INT NOT NULL PRIMARY KEY,
  word       VARBINARY(255) NOT NULL,
  checksum   VARBINARY(32) NOT NULL,
  applied_at BIGINT NOT NULL,
  finished   INT NOT NULL
) ENGINE = InnoDB;

-- name: migration_exists
-- in:   schema text, table text
-- out:  one int
-- why:  An empty database has no such table; a query of the catalogue is not an error.
SELECT 1 FROM information_schema.TABLES
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = CONCAT(CONVERT($1 USING utf8), '_', CONVERT($2 USING utf8));

-- name: migration_columns
-- in:   schema text
-- out:  table_name text, column_name text
-- why:  CREATE TABLE IF NOT EXISTS passes over a table of another program that has the name.
SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = DATABASE()
  AND LEFT(TABLE_NAME, CHAR_LENGTH(CONVERT($1 USING utf8)) + 1) = CONCAT(CONVERT($1 USING utf8), '_');

-- name: migration_lock
-- in:   schema text, seconds int
-- out:  one int
-- why:  Two processes that start together run one after the other: the second finds everything done.
SELECT GET_LOCK(CONCAT('pawl/', MD5(CONCAT(DATABASE(), '/', $1))), $2);

-- name: migration_unlock
-- in:   schema text
SELECT RELEASE_LOCK(CONCAT('pawl/', MD5(CONCAT(DATABASE(), '/', $1))));

-- name: migration_list
-- out:  number int, checksum bytea, finished int
SELECT number, checksum, finished FROM pawl_migration ORDER BY number;

-- name: migration_add
-- in:   number int, word text, checksum bytea, applied_at bigint, finished int
INSERT INTO pawl_migration (number, word, checksum, applied_at, finished) VALUES ($1, $2, $3, $4, $5);

-- name: migration_finish
-- in:   number int
UPDATE pawl_migration SET finished = 1 WHERE number = $1;

-- name: migration_finished
-- in:   number int
-- out:  finished int
SELECT finished FROM pawl_migration WHERE number = $1;

-- name: meta_get
-- in:   name text
-- out:  value bigint
SELECT value FROM pawl_meta WHERE name = $1;
