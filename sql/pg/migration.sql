-- Which steps of the schema were applied. The table, and the schema it is in, are older than the first step.

-- name: migration_schema
CREATE SCHEMA IF NOT EXISTS pawl;

-- name: migration_table
-- why:  Made by whoever comes first; the steps themselves are then a list in the database.
CREATE TABLE IF NOT EXISTS pawl.migration (
  number     integer PRIMARY KEY,
  word       text NOT NULL,
  checksum   bytea NOT NULL,
  applied_at bigint NOT NULL,
  finished   integer NOT NULL
);

-- name: migration_exists
-- in:   schema text, table text
-- out:  one int
-- why:  An empty database has no table to ask; asking the catalogue is no error.
SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relname = $2::text AND c.relkind = 'r';

-- name: migration_lock
-- why:  Two processes that start together take turns: the second finds everything done.
SELECT pg_advisory_xact_lock(1885435756, hashtext($1::text));

-- name: migration_list
-- out:  number int, checksum bytea, finished int
SELECT number, checksum, finished FROM pawl.migration ORDER BY number;

-- name: migration_add
-- in:   number int, word text, checksum bytea, applied_at bigint, finished int
INSERT INTO pawl.migration (number, word, checksum, applied_at, finished)
VALUES ($1::bigint, $2::text, $3::bytea, $4::bigint, $5::bigint);

-- name: migration_finish
-- in:   number int
UPDATE pawl.migration SET finished = 1 WHERE number = $1::bigint;

-- name: meta_get
-- in:   name text
-- out:  value bigint
SELECT value FROM pawl.meta WHERE name = $1::text;
