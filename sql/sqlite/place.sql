-- The places of calls: ready, key queues (line), expiry, cancel requests, outcomes, attempts. Every read of
-- pawl_ready uses one index and one (track, rank), so its cost depends only on the rows it returns.

-- name: ready_add
-- in:   seq bigint, track int, rank int, run_at bigint, attempts int, lost int, redrives int
INSERT INTO pawl_ready (seq, track, rank, run_at, attempts, lost, redrives) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: ready_remove
-- in:   seq bigint
DELETE FROM pawl_ready WHERE seq = ?1;

-- name: ready_pairs
-- out:  track int, rank int, run_at bigint
-- why:  Skips from one used (track, rank) to the next, without reading the other rows of each. Two plain comparisons:
--       with a row value, ">" scans all equal rows.
WITH RECURSIVE p (track, rank, run_at) AS (
  SELECT * FROM (SELECT track, rank, run_at FROM pawl_ready INDEXED BY pawl_ready_due
                 ORDER BY track, rank, run_at, seq LIMIT 1)
  UNION ALL
  SELECT r.track, r.rank, r.run_at FROM p CROSS JOIN pawl_ready r ON r.seq = coalesce(
    (SELECT n.seq FROM pawl_ready n INDEXED BY pawl_ready_due WHERE n.track = p.track AND n.rank > p.rank
     ORDER BY n.rank, n.run_at, n.seq LIMIT 1),
    (SELECT n.seq FROM pawl_ready n INDEXED BY pawl_ready_due WHERE n.track > p.track
     ORDER BY n.track, n.rank, n.run_at, n.seq LIMIT 1)))
SELECT track, rank, run_at FROM p;

-- name: ready_take
-- in:   track int, rank int, now bigint, max int, len bigint: of each input that comes along
-- out:  seq bigint, track int, run_at bigint, attempts int, lost int, redrives int, pos bigint, key_no bigint, id text,
--       method text, key text, created_at bigint, run_at bigint, expires_at bigint, options text, caller text,
--       client text, parent text, trace text, tags text, form int, length bigint (only of an input that is too long),
--       input bytea
-- why:  In the order of the index, so nothing is sorted, and each call and key is one descent of its table. Without
--       cancel request and lane: a pending call has neither when only one connection writes at a time.
SELECT r.seq, r.track, r.run_at, r.attempts, r.lost, r.redrives, k.head_pos, k.head_no,
       c.id, c.method, c.key, c.created_at, c.run_at, c.expires_at, c.options, c.caller, c.client,
       c.parent, c.trace, c.tags, c.form,
       CASE WHEN length(c.input) > ?5 THEN length(c.input) END, CASE WHEN length(c.input) <= ?5 THEN c.input END
FROM pawl_ready r INDEXED BY pawl_ready_due
CROSS JOIN pawl_call c ON c.seq = r.seq
LEFT JOIN pawl_key k ON k.key = c.key
WHERE r.track = ?1 AND r.rank = ?2 AND r.run_at <= ?3 ORDER BY r.run_at, r.seq LIMIT ?4;

-- name: ready_times
-- in:   track int, rank int, now bigint, max int
-- out:  run_at bigint
-- why:  How far a claim of several tracks reads into each, from the index alone.
SELECT run_at FROM pawl_ready INDEXED BY pawl_ready_due
WHERE track = ?1 AND rank = ?2 AND run_at <= ?3 ORDER BY run_at LIMIT ?4;

-- name: ready_remove_same
-- in:   track int, rank int, run_at bigint, first seq bigint, last seq bigint
-- why:  A claim mostly takes the first rows of a pair in the index: deleting a range costs half as much as one by
--       one. Every condition is on a column of the index, so that no other row is read.
DELETE FROM pawl_ready INDEXED BY pawl_ready_due WHERE track = ?1 AND rank = ?2 AND run_at = ?3 AND seq BETWEEN ?4 AND ?5;

-- name: ready_remove_between
-- in:   track int, rank int, after bigint, before bigint
DELETE FROM pawl_ready INDEXED BY pawl_ready_due WHERE track = ?1 AND rank = ?2 AND run_at > ?3 AND run_at < ?4;

-- name: ready_count
-- in:   track int, rank int, until bigint, max int
-- out:  track int, n bigint
SELECT ?1, count(*) FROM (
  SELECT 1 FROM pawl_ready INDEXED BY pawl_ready_due
  WHERE track = ?1 AND rank = ?2 AND run_at <= ?3 LIMIT ?4);

-- name: line_add
-- in:   key text, pos bigint, seq bigint, lane int, priority int, run_at bigint, attempts int, lost int,
--       redrives int, key_no bigint
INSERT INTO pawl_line (key, pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- name: line_remove
-- in:   seq bigint
DELETE FROM pawl_line INDEXED BY pawl_line_seq WHERE seq = ?1;

-- name: line_run
-- in:   key text, max int
-- out:  key text, pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no
SELECT key, pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no FROM pawl_line
WHERE key = ?1 AND pos > 0 ORDER BY pos LIMIT ?2;

-- name: line_take
-- in:   key text, max int, len bigint: of each input that comes along
-- out:  key text, pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no; of the call what ready_take has
SELECT n.key, n.pos, n.seq, n.lane, n.priority, n.run_at, n.attempts, n.lost, n.redrives, n.key_no,
       c.id, c.method, c.key, c.created_at, c.run_at, c.expires_at, c.options, c.caller, c.client,
       c.parent, c.trace, c.tags, c.form,
       CASE WHEN length(c.input) > ?3 THEN length(c.input) END, CASE WHEN length(c.input) <= ?3 THEN c.input END
FROM pawl_line n CROSS JOIN pawl_call c ON c.seq = n.seq
WHERE n.key = ?1 AND n.pos > 0 ORDER BY n.pos LIMIT ?2;

-- name: line_newer
-- in:   key text, pos bigint
-- out:  n bigint
-- why:  From the end: most requests for a position come from a call that has just joined.
SELECT count(*) FROM pawl_line WHERE key = ?1 AND pos > ?2;

-- name: line_of_key
-- in:   key text, max int
-- out:  seq bigint
-- why:  All calls of the key, also delayed ones.
SELECT seq FROM pawl_line WHERE key = ?1 ORDER BY pos LIMIT ?2;

-- name: line_due
-- in:   now bigint, max int
-- out:  seq bigint, key text
SELECT seq, key FROM pawl_line INDEXED BY pawl_line_later
WHERE pos < 0 AND run_at <= ?1 ORDER BY run_at, seq LIMIT ?2;

-- name: line_any_due
-- in:   now bigint
SELECT 1 FROM pawl_line INDEXED BY pawl_line_later WHERE pos < 0 AND run_at <= ?1 LIMIT 1;

-- name: claim_look
-- out:  inbox int, hint int: null, since there are none; run_at bigint: when the first of the delayed calls joins
SELECT NULL, NULL, (SELECT run_at FROM pawl_line INDEXED BY pawl_line_later WHERE pos < 0 ORDER BY run_at, seq LIMIT 1);

-- name: line_next
-- in:   now bigint
-- out:  run_at bigint
SELECT run_at FROM pawl_line INDEXED BY pawl_line_later WHERE pos < 0 AND run_at > ?1 ORDER BY run_at LIMIT 1;

-- name: line_list
-- in:   now bigint, max int
-- out:  lane int, n bigint, due bigint, oldest bigint
SELECT lane, count(*), sum(run_at <= ?1), min(run_at) FROM (SELECT lane, run_at FROM pawl_line LIMIT ?2) GROUP BY lane;

-- name: expiry_add
-- in:   expires_at bigint, seq bigint
INSERT INTO pawl_expiry (expires_at, seq) VALUES (?1, ?2);

-- name: expiry_remove
-- in:   expires_at bigint, seq bigint
DELETE FROM pawl_expiry WHERE expires_at = ?1 AND seq = ?2;

-- name: expiry_due
-- in:   now bigint, max int
-- out:  seq bigint
SELECT seq FROM pawl_expiry WHERE expires_at <= ?1 ORDER BY expires_at, seq LIMIT ?2;

-- name: expiry_any_due
-- in:   now bigint
SELECT 1 FROM pawl_expiry WHERE expires_at <= ?1 LIMIT 1;

-- name: expiry_next
-- in:   now bigint
-- out:  expires_at bigint
SELECT expires_at FROM pawl_expiry WHERE expires_at > ?1 ORDER BY expires_at LIMIT 1;

-- name: cancel_request_add
-- in:   seq bigint, wished_at bigint
INSERT INTO pawl_cancel (seq, wished_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING;

-- name: cancel_request_remove
-- in:   seq bigint
DELETE FROM pawl_cancel WHERE seq = ?1;

-- name: cancel_request_list
-- in:   max int
-- out:  seq bigint
-- why:  A result that was stored before the cancel request wins.
SELECT w.seq FROM pawl_cancel w WHERE NOT EXISTS (SELECT 1 FROM pawl_outcome o WHERE o.seq = w.seq)
ORDER BY w.seq LIMIT ?1;

-- name: outcome_add
-- in:   seq bigint, status int, form int, result bytea, error text, attempts int, lost int, redrives int,
--       key_no bigint, token bytea, node text, claimed_at bigint, started_at bigint, finished_at bigint,
--       keep_until bigint
-- why:  A plain INSERT: a second outcome of one call must fail.
INSERT INTO pawl_outcome (seq, status, form, result, error, attempts, lost, redrives, key_no, token, node,
                          claimed_at, started_at, finished_at, keep_until)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15);

-- name: outcome_remove
-- in:   seq bigint
DELETE FROM pawl_outcome WHERE seq = ?1;

-- name: outcome_keep
-- in:   seq bigint, keep_until bigint
-- why:  The only update of an outcome: a call that blocks its key is kept without a time limit until an operator
--       unblocks the key.
UPDATE pawl_outcome SET keep_until = ?2 WHERE seq = ?1;

-- name: outcome_kept
-- in:   now bigint, max int
-- out:  seq bigint
SELECT seq FROM pawl_outcome INDEXED BY pawl_outcome_keep WHERE keep_until <= ?1 ORDER BY keep_until, seq LIMIT ?2;

-- name: outcome_due
-- in:   now bigint
SELECT 1 FROM pawl_outcome INDEXED BY pawl_outcome_keep WHERE keep_until <= ?1 LIMIT 1;

-- name: attempt_add
-- in:   seq bigint, no int, try int, how int, status int, error text, node text, token bytea, started_at bigint,
--       finished_at bigint
-- why:  `no` continues from the highest stored number, row by row.
INSERT INTO pawl_attempt (seq, no, try, how, status, error, node, token, started_at, finished_at)
VALUES (?1, 1 + coalesce((SELECT max(no) FROM pawl_attempt WHERE seq = ?1), 0), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- name: attempt_of_token
-- in:   seq bigint, token bytea
-- out:  status int, error text, finished_at bigint
-- why:  The owner's newest row. A token is passed as text: its bytes are compared.
SELECT status, error, finished_at FROM pawl_attempt WHERE seq = ?1 AND token = CAST(?2 AS BLOB) ORDER BY no DESC LIMIT 1;

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
