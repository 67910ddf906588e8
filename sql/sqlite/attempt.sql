-- Tries that did not succeed, and former outcomes. how: 2 error, 3 timeout, 4 refused, 8 lost are shown.

-- name: attempt_add
-- in:   seq bigint, try int, how int, status int, error text, node text, token bytea, started_at bigint,
--       finished_at bigint
INSERT INTO pawl_attempt (seq, no, try, how, status, error, node, token, started_at, finished_at)
VALUES (?1, 1 + coalesce((SELECT max(no) FROM pawl_attempt WHERE seq = ?1), 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- name: attempt_of_outcome
-- in:   seq bigint
-- why:  A redriven call's former outcome. how 0 is never shown as a try, and its token answers a repeat.
INSERT INTO pawl_attempt (seq, no, try, how, status, error, node, token, started_at, finished_at)
SELECT seq, 1 + coalesce((SELECT max(no) FROM pawl_attempt WHERE seq = ?1), 0), attempts + lost, 0, status, error,
       node, token, started_at, finished_at
FROM pawl_outcome WHERE seq = ?1;

-- name: attempt_of_token
-- in:   seq bigint, token bytea
-- out:  status int, error text, finished_at bigint
SELECT status, error, finished_at FROM pawl_attempt WHERE seq = ?1 AND token = ?2 ORDER BY no DESC LIMIT 1;

-- name: attempt_error
-- in:   seq bigint
-- out:  error text
SELECT error FROM pawl_attempt WHERE seq = ?1 AND how IN (2, 3, 4, 8) ORDER BY no DESC LIMIT 1;

-- name: attempt_list
-- in:   seq bigint, max int
-- out:  try int, how int, error text, node text, started_at bigint, finished_at bigint
SELECT try, how, error, node, started_at, finished_at FROM pawl_attempt
WHERE seq = ?1 AND how IN (2, 3, 4, 8) ORDER BY no DESC LIMIT ?2;

-- name: attempt_remove
-- in:   seq bigint
DELETE FROM pawl_attempt WHERE seq = ?1;
