-- Pending calls with a key, but for the one on offer. A place below 0 has not joined the line.

-- name: line_add
-- in:   key text, pos bigint, seq bigint, lane int, priority int, run_at bigint, attempts int, lost int,
--       redrives int, key_no bigint
INSERT INTO pawl_line (key, pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- name: line_remove
-- in:   key text, pos bigint
DELETE FROM pawl_line WHERE key = ?1 AND pos = ?2;

-- name: line_claim
-- in:   key text, upto bigint
-- why:  A run is where the line begins, so it goes as a range. The number of rows must come out right.
DELETE FROM pawl_line WHERE key = ?1 AND pos > 0 AND pos <= ?2;

-- name: line_run
-- in:   key text, max int
-- out:  pos bigint, seq bigint, lane int, priority int, run_at bigint, attempts int, lost int, redrives int,
--       key_no bigint
SELECT pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no FROM pawl_line
WHERE key = ?1 AND pos > 0 ORDER BY pos LIMIT ?2;

-- name: line_find
-- in:   seq bigint
-- out:  as line_run
SELECT pos, seq, lane, priority, run_at, attempts, lost, redrives, key_no FROM pawl_line WHERE seq = ?1;

-- name: line_newer
-- in:   key text, pos bigint
-- out:  n bigint
-- why:  From the end: whoever asks for a place has mostly just joined.
SELECT count(*) FROM pawl_line WHERE key = ?1 AND pos > ?2;

-- name: line_of_key
-- in:   key text, max int
-- out:  seq bigint, lane int
-- why:  Every one of the key, delayed ones too; from the end, so that ending them one by one moves nobody up.
SELECT seq, lane FROM pawl_line WHERE key = ?1 ORDER BY pos DESC LIMIT ?2;

-- name: line_due
-- in:   now bigint, max int
-- out:  seq bigint, key text
SELECT seq, key FROM pawl_line INDEXED BY pawl_line_later
WHERE pos < 0 AND run_at <= ?1 ORDER BY run_at, seq LIMIT ?2;

-- name: line_next
-- in:   now bigint
-- out:  run_at bigint
SELECT run_at FROM pawl_line INDEXED BY pawl_line_later WHERE pos < 0 AND run_at > ?1 ORDER BY run_at LIMIT 1;

-- name: line_list
-- in:   max int
-- out:  lane int, run_at bigint
SELECT lane, run_at FROM pawl_line LIMIT ?1;
