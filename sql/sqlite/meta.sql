-- Single numbers.

-- name: meta_get
-- in:   name text
-- out:  value bigint
SELECT value FROM pawl_meta WHERE name = ?1;

-- name: meta_set
-- in:   name text, value bigint
-- why:  Once a group, with the last number given out: a counter row per call would cost as much as the call.
UPDATE pawl_meta SET value = ?2 WHERE name = ?1;
