-- Claimable calls. Every look is pinned to one index and to one (track, rank), so that it costs what it returns,
-- whatever else waits.

-- name: ready_add
-- in:   seq bigint, track int, rank int, run_at bigint, attempts int, lost int, redrives int
INSERT INTO pawl_ready (seq, track, rank, run_at, attempts, lost, redrives) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: ready_remove
-- in:   seq bigint
DELETE FROM pawl_ready WHERE seq = ?1;

-- name: ready_claim
-- in:   track int, rank int, before bigint
-- why:  What a claim takes of a pair is where its index begins, so it goes as a range: half the cost of one by
--       one. The number of rows must come out right.
DELETE FROM pawl_ready INDEXED BY pawl_ready_due WHERE track = ?1 AND rank = ?2 AND run_at < ?3;

-- name: ready_claim_same
-- in:   track int, rank int, run_at bigint, upto bigint
DELETE FROM pawl_ready INDEXED BY pawl_ready_due WHERE track = ?1 AND rank = ?2 AND run_at = ?3 AND seq <= ?4;

-- name: ready_pair
-- in:   track int, rank int
-- out:  track int, rank int
-- why:  The next pair in use, in one step down the index however many rows the pair before it has. It must say
--       ">=" with the next rank: ">" makes SQLite walk over all rows that are equal.
SELECT track, rank FROM pawl_ready INDEXED BY pawl_ready_due
WHERE (track, rank) >= (?1, ?2) ORDER BY track, rank LIMIT 1;

-- name: ready_due
-- in:   track int, rank int, after bigint, now bigint, max int
-- out:  seq bigint, run_at bigint, attempts int, lost int, redrives int
SELECT seq, run_at, attempts, lost, redrives FROM pawl_ready INDEXED BY pawl_ready_due
WHERE track = ?1 AND rank = ?2 AND run_at > ?3 AND run_at <= ?4 ORDER BY run_at, seq LIMIT ?5;

-- name: ready_due_same
-- in:   track int, rank int, run_at bigint, after bigint, max int
-- out:  as ready_due
-- why:  The rest of one run_at: calls accepted together share theirs, and a row value comparison would walk
--       over those already seen.
SELECT seq, run_at, attempts, lost, redrives FROM pawl_ready INDEXED BY pawl_ready_due
WHERE track = ?1 AND rank = ?2 AND run_at = ?3 AND seq > ?4 ORDER BY seq LIMIT ?5;

-- name: ready_after
-- in:   track int, rank int, after bigint
-- out:  run_at bigint
SELECT run_at FROM pawl_ready INDEXED BY pawl_ready_due
WHERE track = ?1 AND rank = ?2 AND run_at > ?3 ORDER BY run_at LIMIT 1;

-- name: ready_count
-- in:   track int, rank int, until bigint, max int
-- out:  n bigint
SELECT count(*) FROM (
  SELECT 1 FROM pawl_ready INDEXED BY pawl_ready_due
  WHERE track = ?1 AND rank = ?2 AND run_at <= ?3 LIMIT ?4);

-- name: ready_tries
-- in:   seq bigint
-- out:  attempts int, lost int, redrives int
SELECT attempts, lost, redrives FROM pawl_ready WHERE seq = ?1;

-- name: ready_list
-- in:   below bigint
-- out:  seq bigint
-- why:  What is pending, in the line or not: two indexes, merged.
SELECT seq FROM pawl_ready WHERE seq < ?1 UNION ALL
SELECT seq FROM pawl_line INDEXED BY pawl_line_seq WHERE seq < ?1 ORDER BY seq DESC;
