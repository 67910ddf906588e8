-- How calls ended.

-- name: outcome_add
-- in:   seq bigint, status int, form int, result bytea, error text, attempts int, lost int, redrives int,
--       key_no bigint, token bytea, node text, claimed_at bigint, started_at bigint, finished_at bigint,
--       keep_until bigint
-- why:  Plainly: a second outcome of one call must fail.
INSERT INTO pawl_outcome (seq, status, form, result, error, attempts, lost, redrives, key_no, token, node,
                          claimed_at, started_at, finished_at, keep_until)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15);

-- name: outcome_of_token
-- in:   seq bigint, token bytea
-- out:  status int, error text, attempts int, lost int, redrives int, finished_at bigint
SELECT status, error, attempts, lost, redrives, finished_at FROM pawl_outcome WHERE seq = ?1 AND token = ?2;

-- name: outcome_remove
-- in:   seq bigint
DELETE FROM pawl_outcome WHERE seq = ?1;

-- name: outcome_kept
-- in:   now bigint, max int
-- out:  seq bigint, status int, finished_at bigint, keep_until bigint, token bytea
SELECT seq, status, finished_at, keep_until, token FROM pawl_outcome INDEXED BY pawl_outcome_keep
WHERE keep_until <= ?1 ORDER BY keep_until, seq LIMIT ?2;

-- name: outcome_walk
-- in:   after bigint
-- out:  as outcome_kept
-- why:  Without an index on finished_at, which every finish would pay for and only an archive would read.
SELECT seq, status, finished_at, keep_until, token FROM pawl_outcome WHERE seq > ?1 ORDER BY seq;

-- name: outcome_list_bad
-- in:   status int, below bigint
-- out:  seq bigint
-- why:  "status <> 3" is what lets SQLite use the partial index for a status it does not know yet.
SELECT seq FROM pawl_outcome INDEXED BY pawl_outcome_bad
WHERE status = ?1 AND status <> 3 AND seq < ?2 ORDER BY seq DESC;

-- name: outcome_keep
-- in:   seq bigint, keep_until bigint
-- why:  The one update of an outcome: a call that blocked its key was kept without an end until somebody decided.
UPDATE pawl_outcome SET keep_until = ?2 WHERE seq = ?1;
